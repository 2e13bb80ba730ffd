//! `mtr --report`: what comes back from each hop on the way to a host.
//!
//! In: a heading, a row for each hop. Out: one statement: how much is lost at the end and from which hop on, or how long the
//! round trip is. A hop that does not answer while the hops behind it do is how many routers are set up, and loses nothing.

use super::{cut, ms, percent};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mtr", Family::Host, recognise).about("mtr --report");

/// Hops of one way: a packet has no more lives.
const MAX_HOPS: usize = 255;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    // Rows alone: one may be chance.
    let rows = || {
        text.lines()
            .filter(|line| line.contains(".|--") && Hop::of(line).is_some())
    };
    Sureness::certain_if(text.lines().any(is_heading) || rows().take(MIN_ROWS).count() == MIN_ROWS)
}

/// Rows that are no chance, without a heading.
const MIN_ROWS: usize = 2;

fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| *word != "Loss%");
    words.next().is_some() && words.next() == Some("Snt")
}

#[derive(Debug)]
struct Hop {
    number: u64,
    host: String,
    lost: f64,
    mean: f64,
    most: f64,
}

impl Hop {
    /// `3.|-- 192.0.2.7  0.0%  10  0.3  0.6  0.3  1.2  0.3`.
    fn of(line: &str) -> Option<Hop> {
        let mut words = line.split_whitespace();
        let number = words.next()?.split('.').next()?.parse().ok()?;
        let host = words.next()?;
        let lost = percent(words.next()?)?;
        let (_sent, _last) = (decimal(words.next()?.as_bytes())?, words.next());
        let mean = words.next().and_then(|mean| decimal(mean.as_bytes()));
        let most = words.nth(1).and_then(|most| decimal(most.as_bytes()));
        Some(Hop {
            number,
            host: cut(host),
            lost,
            mean: mean.unwrap_or(0.0),
            most: most.unwrap_or(0.0),
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    quote: Quote,
    hops: Vec<Hop>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let text = text.trim();
        if text.is_empty() || text.starts_with("Start:") {
            return Understood::Ignorable;
        }
        if is_heading(text) {
            self.end(out);
            self.quote = out.here();
            return Understood::Evidence;
        }
        match Hop::of(text) {
            Some(hop) if self.hops.len() < MAX_HOPS => {
                self.hops.push(hop);
                Understood::Evidence
            }
            _ => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(last) = all.hops.last() else { return };
        let near = near_end(&all.hops).map_or_else(String::new, |near| format!("; {near}"));
        if last.lost <= 0.0 {
            let text = format!(
                "the round trip to {} takes {:.1} ms at the mean, {}over {} hops without loss at the end{near}",
                last.host,
                last.mean,
                slow_from(&all.hops).unwrap_or_default(),
                all.hops.len()
            );
            out.statement(statements::one(
                StatementKind::Took,
                Some(ms(last.mean)),
                all.quote,
                text,
            ));
            return;
        }
        // From the first hop behind which each one loses.
        let losing = all.hops.iter().rev().take_while(|hop| hop.lost > 0.0);
        let first = losing.last().unwrap_or(last);
        let from = match first.number == last.number {
            true => "and none on the way".to_owned(),
            false => format!("from hop {} on ({}, {} %)", first.number, first.host, first.lost),
        };
        let text = format!(
            "{} % of the packets to {} are lost, {from}{near}",
            last.lost, last.host
        );
        let kind = match last.lost >= 100.0 {
            true => StatementKind::Unreachable,
            false => StatementKind::Failed,
        };
        out.statement(statements::one(kind, None, all.quote, text));
    }
}

/// Milliseconds that the first hop, which is mostly in the same house, takes at the mean from which its link is slow.
const LONG_FIRST_MS: f64 = 30.0;

/// The first hop, where the way is bad from there on: no hop behind it is better. One that is merely slow to answer for itself is not
/// meant, for then the hops behind it are faster.
fn near_end(hops: &[Hop]) -> Option<String> {
    let first = hops.first().filter(|hop| hop.number == 1 && hop.lost < 100.0)?;
    let answering = || hops.iter().skip(1).filter(|hop| hop.lost < 100.0);
    answering().next()?;
    let through = answering().map(|hop| hop.mean).fold(first.mean, f64::min);
    let slow = through >= LONG_FIRST_MS;
    let loses = first.lost > 0.0
        && answering().all(|hop| hop.lost > 0.0)
        && hops
            .last()
            .is_some_and(|last| last.lost > 0.0 && last.lost < 100.0);
    if !slow && !loses {
        return None;
    }
    // A first hop far away that loses nothing may be one that is meant to be there.
    let far = match loses {
        true => "",
        false => ", or a VPN or mobile network is between",
    };
    Some(format!(
        "it begins at the first hop ({}: {} % lost, {:.1} ms at the mean, {:.1} ms at most), so the local network or the link to it \
         (Wi-Fi, cable, modem) is bad{far}",
        first.host, first.lost, first.mean, first.most
    ))
}

/// Milliseconds on one hop that no distance in one country takes.
const LONG_HOP_MS: f64 = 50.0;

/// The part of the whole way that such a hop takes at least.
const LONG_PART: f64 = 0.3;

/// The first hop that takes long, and a good part of the way: all hops behind it take as long, for one that is slow to answer for
/// itself says nothing of the packets that it passes on.
fn slow_from(hops: &[Hop]) -> Option<String> {
    let last = hops.last()?;
    let mut before = 0.0_f64;
    let mut answering = hops.iter().enumerate().filter(|(_, hop)| hop.lost < 100.0);
    let (takes, hop) = answering.find_map(|(at, hop)| {
        let behind = hops.iter().skip(at).filter(|hop| hop.lost < 100.0);
        let through = behind.map(|hop| hop.mean).fold(f64::INFINITY, f64::min);
        let takes = through - before;
        before = before.max(through);
        (takes >= LONG_HOP_MS && takes >= last.mean * LONG_PART).then_some((takes, hop))
    })?;
    Some(format!(
        "{takes:.1} ms of that from hop {} on ({}, {} % lost there), ",
        hop.number, hop.host, hop.lost
    ))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn statement_of(rows: &str) -> String {
        let text = format!("HOST: here   Loss%   Snt   Last   Avg  Best  Wrst StDev\n{rows}");
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mtr");
        assert_eq!(reading.accounts[0].not_understood, 0);
        reading.observed.statements[0].text.clone()
    }

    #[test]
    fn the_hop_that_takes_most_of_a_long_way_is_named() {
        let hop = |number: u32, mean: &str| {
            format!("  {number}.|-- 192.0.2.{number}   0.0%    60  177.1  {mean}   0.9 702.8 158.0\n")
        };
        let first = hop(1, "72.2") + &hop(2, "88.4") + &hop(3, "90.9");
        assert_eq!(
            statement_of(&first),
            "the round trip to 192.0.2.3 takes 90.9 ms at the mean, 72.2 ms of that from hop 1 on (192.0.2.1, 0 % lost there), over 3 hops without loss at the end; it begins at the first hop (192.0.2.1: 0 % lost, 72.2 ms at the mean, 702.8 ms at most), so the local network or the link to it (Wi-Fi, cable, modem) is bad, or a VPN or mobile network is between"
        );
        // One that is slow to answer for itself passes packets on.
        let own = hop(1, "0.4") + &hop(2, "180.0") + &hop(3, "9.9");
        assert!(!statement_of(&own).contains("from hop"));
    }

    #[test]
    fn loss_from_the_first_hop_on_is_of_the_near_end_and_a_hop_slow_for_itself_is_not() {
        let hop = |number: u32, lost: &str, mean: &str| {
            format!("  {number}.|-- 192.0.2.{number}   {lost}%    60  7.1  {mean}   0.9 90.8 8.0\n")
        };
        let near = "it begins at the first hop (192.0.2.1: 5.0 % lost, 1.2 ms at the mean, 90.8 ms at most)";
        let lossy = statement_of(&(hop(1, "5.0", "1.2") + &hop(2, "5.0", "9.4") + &hop(3, "4.0", "9.9")));
        assert!(lossy.contains(&near.replace("5.0", "5")), "{lossy}");
        for healthy in [
            hop(1, "0.0", "1.2") + &hop(2, "0.0", "40.0") + &hop(3, "0.0", "41.0"),
            hop(1, "0.0", "45.0") + &hop(2, "0.0", "4.0") + &hop(3, "0.0", "4.5"),
            hop(1, "5.0", "1.2") + &hop(2, "0.0", "4.0") + &hop(3, "0.0", "4.5"),
            hop(1, "0.0", "80.0"),
            hop(1, "5.0", "1.2") + &hop(2, "0.0", "4.0") + &hop(3, "0.0", "4.5") + &hop(4, "30.0", "9.5"),
        ] {
            assert!(!statement_of(&healthy).contains("begins at"), "{healthy}");
        }
    }

    #[test]
    fn rows_that_lost_their_heading() {
        let rows = "> 11.|-- 192.0.2.1   0.0%    10    0.3   0.6   0.3   1.2   0.3\n> 12.|-- 192.0.2.9  40.0%    10    9.3   9.6   9.3   9.9   0.3\n";
        let reading = read_text("m", rows.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mtr");
        assert_eq!(
            reading.texts(),
            ["40 % of the packets to 192.0.2.9 are lost, and none on the way"]
        );
        let other = "1.|-- a\n2.|-- b\n";
        assert_ne!(read_text("m", other.as_bytes()).observed.sources[0].format, "mtr");
    }

    #[test]
    fn loss_counts_where_it_reaches_the_end() {
        let rows = "  1.|-- 192.0.2.1   0.0%    10    0.3   0.6   0.3   1.2   0.3\n  2.|-- ???   100.0    10    0.0   0.0   0.0   0.0   0.0\n";
        let end = "  3.|-- 198.51.100.9   0.0%    10    9.3   9.6   9.3   9.9   0.3\n";
        assert_eq!(
            statement_of(&format!("{rows}{end}")),
            "the round trip to 198.51.100.9 takes 9.6 ms at the mean, over 3 hops without loss at the end"
        );
        let lost = rows.replace("100.0", "30.0%") + &end.replace("0.0%", "20.0%");
        assert_eq!(
            statement_of(&lost),
            "20 % of the packets to 198.51.100.9 are lost, from hop 2 on (???, 30 %)"
        );
        assert_eq!(
            statement_of(&(rows.replace("100.0", "0.0%") + &end.replace("0.0%", "100.0"))),
            "100 % of the packets to 198.51.100.9 are lost, and none on the way"
        );
    }
}
