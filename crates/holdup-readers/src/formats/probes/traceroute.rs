//! `traceroute`: how long the answer of each hop on the way to a host takes.
//!
//! In: a heading with the host, a row for each hop with up to three times, `*` for one that did not come. Out: one statement: from which hop on
//! it takes long, or which one says that the host cannot be reached, or behind which nothing answers any more. A hop that is slow or silent
//! while those behind it are not says nothing of the way.

use super::{cut, ms};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("traceroute", Family::Host, recognise)
    .about("traceroute")
    .openings(&["traceroute to "]);

/// Hops of one way: a packet has no more lives.
const MAX_HOPS: usize = 255;

/// Milliseconds on one hop that no distance in one country takes, and the part of the whole way that such a hop takes at least.
const LONG_HOP_MS: f64 = 50.0;
const LONG_PART: f64 = 0.3;

/// Silent hops at the end that are told: a few routers that do not answer are usual, and so are hosts that do not.
const MIN_SILENT: usize = 3;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    Sureness::certain_if(text.lines().any(|line| target(line.trim()).is_some()))
}

/// The host and the address of `traceroute to example.com (192.0.2.1), 30 hops max, 60 byte packets`.
fn target(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("traceroute to ")?;
    let host = rest.split([' ', ',']).next()?;
    let address = rest.split_once('(').and_then(|(_, rest)| rest.split(')').next());
    (rest.contains(" hops max") && !host.is_empty()).then_some((host, address.unwrap_or(host)))
}

#[derive(Debug)]
struct Hop {
    number: u64,
    host: String,
    /// The shortest of its times: the others waited for the router itself.
    best: Option<f64>,
    /// `!H`: that it cannot pass packets on to the host.
    refuses: Option<String>,
    /// Whether it is the host itself.
    target: bool,
}

impl Hop {
    /// ` 3  core1.example.net (192.0.2.3)  180.332 ms  181.010 ms *`.
    fn of(text: &str, address: &str) -> Option<Hop> {
        let mut words = text.split_whitespace();
        let number: u64 = words.next()?.parse().ok().filter(|number| *number <= 255)?;
        let rest: Vec<&str> = words.take(24).collect();
        let times = rest.windows(2).filter(|two| two.get(1) == Some(&"ms"));
        let times = times.filter_map(|two| decimal(two.first()?.as_bytes()));
        let best = times.min_by(f64::total_cmp);
        let silent = !rest.is_empty() && rest.iter().all(|word| *word == "*");
        let host = rest.iter().find(|word| **word != "*").copied().unwrap_or("*");
        let target = rest.iter().any(|word| word.trim_matches(['(', ')']) == address);
        let refuses = rest.iter().find(|word| word.starts_with('!'));
        (best.is_some() || silent).then(|| Hop {
            number,
            host: cut(host),
            best,
            refuses: refuses.map(|word| cut(word)),
            target,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    quote: Quote,
    to: String,
    address: String,
    hops: Vec<Hop>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some((host, address)) = target(text) {
            self.close(out);
            self.quote = out.here();
            self.to = cut(host);
            self.address = cut(address);
            return Understood::Evidence;
        }
        match Hop::of(text, &self.address) {
            Some(hop) if self.hops.len() < MAX_HOPS => {
                self.hops.push(hop);
                Understood::Evidence
            }
            _ => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        if all.hops.is_empty() {
            return;
        }
        let silent = all.hops.iter().rev().take_while(|hop| hop.best.is_none()).count();
        let last = all.hops.iter().rev().find(|hop| hop.best.is_some());
        // What the host itself refuses has reached it.
        let refusal = last.filter(|last| !last.target);
        if let Some((last, refuses)) = refusal.and_then(|last| Some((last, last.refuses.as_ref()?))) {
            let text = format!(
                "the way to {} ends at hop {} ({}), which says that the host cannot be reached ({refuses})",
                all.to, last.number, last.host
            );
            out.statement(statements::one(StatementKind::Unreachable, None, all.quote, text));
            return;
        }
        if silent >= MIN_SILENT {
            let behind = match last {
                Some(last) => format!("behind hop {} ({})", last.number, last.host),
                None => "from the first hop on".to_owned(),
            };
            let text = format!(
                "nothing answers on the way to {} {behind}: a firewall keeps the answers back, as is usual, or packets are dropped there",
                all.to
            );
            out.statement(statements::one(StatementKind::Warned, None, all.quote, text));
            return;
        }
        let Some((last, whole)) = last.and_then(|last| Some((last, last.best?))) else {
            return;
        };
        let more = slow_from(&all.hops, whole).unwrap_or_default();
        let hops = match last.target && silent == 0 {
            true => format!("over {} hops", last.number),
            false => format!("up to hop {}", last.number),
        };
        let text = format!("the way to {} takes {whole:.1} ms {hops}{more}", all.to);
        out.statement(statements::one(
            StatementKind::Took,
            Some(ms(whole)),
            all.quote,
            text,
        ));
    }
}

/// The hop that takes long and a good part of the way, if all behind it take as long.
fn slow_from(hops: &[Hop], whole: f64) -> Option<String> {
    let mut before = 0.0_f64;
    hops.iter().enumerate().find_map(|(at, hop)| {
        hop.best?;
        let behind = hops.iter().skip(at).filter_map(|hop| hop.best);
        let through = behind.fold(f64::INFINITY, f64::min);
        let takes = through - before;
        before = before.max(through);
        (takes >= LONG_HOP_MS && takes >= whole * LONG_PART).then(|| {
            format!(
                ", of which {takes:.1} ms come at hop {} ({}): the link to it is long, slow or overloaded",
                hop.number, hop.host
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(rows: &str) -> (StatementKind, String) {
        let text = format!("traceroute to example.com (192.0.2.9), 30 hops max, 60 byte packets\n{rows}");
        let reading = read_text("t", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "traceroute");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn the_hop_at_which_it_takes_long() {
        let (kind, told) = said(
            " 1  gw (192.168.0.1)  0.5 ms  0.6 ms  0.7 ms\n 2  core (192.0.2.3)  180.3 ms * 181.0 ms\n 3  * * *\n 4  192.0.2.9 (192.0.2.9)  182.0 ms  183.0 ms  182.5 ms\n",
        );
        assert_eq!(kind, StatementKind::Took);
        assert_eq!(
            told,
            "the way to example.com takes 182.0 ms over 4 hops, of which 179.8 ms come at hop 2 (core): the link to it is long, slow or overloaded"
        );
    }

    #[test]
    fn where_nothing_answers_any_more() {
        let (kind, told) =
            said(" 1  gw (192.168.0.1)  0.5 ms  0.6 ms  0.7 ms\n 2  * * *\n 3  * * *\n 4  * * *\n");
        assert_eq!(kind, StatementKind::Warned);
        assert!(told.contains("behind hop 1 (gw)"), "{told}");
    }

    #[test]
    fn a_hop_that_cannot_pass_packets_on_and_a_host_that_refuses_them_itself() {
        let first = " 1  gw (192.168.0.1)  0.5 ms  0.6 ms  0.7 ms\n";
        let (kind, told) = said(&format!(
            "{first} 2  core (192.0.2.3)  3010.1 ms !H  3010.2 ms !H  3010.4 ms !H\n"
        ));
        assert_eq!(kind, StatementKind::Unreachable);
        assert_eq!(
            told,
            "the way to example.com ends at hop 2 (core), which says that the host cannot be reached (!H)"
        );
        let (kind, _) = said(&format!(
            "{first} 2  192.0.2.9 (192.0.2.9)  9.1 ms !X  9.2 ms !X  9.4 ms !X\n"
        ));
        assert_eq!(kind, StatementKind::Took);
        let (_, told) = said(&format!(
            "{first} 2  core (192.0.2.3)  9.1 ms  9.2 ms  9.3 ms\n 3  * * *\n"
        ));
        assert_eq!(told, "the way to example.com takes 9.1 ms up to hop 2");
    }

    #[test]
    fn a_healthy_way_and_a_router_that_is_slow_to_answer_for_itself() {
        let own = " 1  gw (192.168.0.1)  90.5 ms  80.6 ms  70.7 ms\n 2  * * *\n 3  192.0.2.9 (192.0.2.9)  9.1 ms  9.2 ms  9.3 ms\n";
        assert_eq!(
            said(own),
            (
                StatementKind::Took,
                "the way to example.com takes 9.1 ms over 3 hops".to_owned()
            )
        );
        let _ = read_text("t", b"traceroute to x (y), 30 hops max\n1\n2 *\n999 a 1 ms\n");
    }
}
