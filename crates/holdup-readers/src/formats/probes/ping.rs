//! `ping`: packets that a host sends back.
//!
//! In: a heading with the host, a line for each answer, a summary. Each may lack. Out: a statement for each host: how many
//! packets are lost, or how long the round trip is.

use super::{cut, ms, percent};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("ping", Family::Host, recognise).about("ping");

/// Lines in which it is looked for.
const LOOKED_AT: usize = 60;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let known = |line: &str| heading(line).is_some() || answer(line).is_some() || summary(line).is_some();
    let lines = head.lines().map(str::trim).take(LOOKED_AT);
    match lines.filter(|line| known(line)).count() {
        0 => Sureness::No,
        1 => Sureness::Likely,
        _ => Sureness::Certain,
    }
}

/// `PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.`
fn heading(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("PING ")?;
    let host = rest.split([' ', ',', ':']).next()?;
    (rest.contains('(') && rest.contains("bytes")).then_some(host)
}

/// The host and the milliseconds of `64 bytes from 192.0.2.7: icmp_seq=1 ttl=64 time=0.5 ms`.
fn answer(line: &str) -> Option<(&str, f64)> {
    let (_, rest) = line.split_once(" bytes from ")?;
    let host = rest.split([':', ' ']).next()?;
    let (_, time) = rest.split_once("time=")?;
    let time = time.split([' ', 'm']).next()?;
    Some((host, decimal(time.as_bytes())?))
}

/// Packets sent, and the share that is lost, of `5 packets transmitted, 4 received, 20% packet loss, time 4005ms`.
fn summary(line: &str) -> Option<(u64, f64)> {
    let (sent, rest) = line.split_once(" packets transmitted")?;
    let (before, _) = rest.split_once("packet loss")?;
    Some((
        sent.parse().ok()?,
        percent(before.split_whitespace().next_back()?)?,
    ))
}

/// Milliseconds at the mean and at most, of `rtt min/avg/max/mdev = 0.5/0.7/0.9/0.1 ms`.
fn round_trips(line: &str) -> Option<(f64, f64)> {
    let (names, values) = line.split_once(" = ")?;
    if !names.contains("min/avg/max") {
        return None;
    }
    let mut values = values.split(['/', ' ']).map(|value| decimal(value.as_bytes()));
    let (_, mean, most) = (values.next()??, values.next()??, values.next()??);
    Some((mean, most))
}

#[derive(Debug, Default)]
struct Reader {
    host: String,
    quote: Option<Quote>,
    answers: u64,
    sum: f64,
    most: f64,
    summary: Option<(u64, f64)>,
    round_trips: Option<(f64, f64)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(host) = heading(text) {
            self.end(out);
            self.host = cut(host);
        } else if let Some((host, time)) = answer(text) {
            if self.host.is_empty() {
                self.host = cut(host);
            }
            self.answers += 1;
            self.sum += time;
            self.most = self.most.max(time);
        } else if let Some(summary) = summary(text) {
            self.summary = Some(summary);
        } else if let Some(trips) = round_trips(text) {
            self.round_trips = Some(trips);
        } else if text.starts_with("--- ") && text.ends_with("statistics ---") {
            if let Some(host) = text.split(' ').nth(1).filter(|_| self.host.is_empty()) {
                self.host = cut(host);
            }
        } else {
            return Understood::No;
        }
        self.quote.get_or_insert_with(|| out.here());
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        let host = if all.host.is_empty() {
            "the host"
        } else {
            &all.host
        };
        let measured = (all.answers > 0).then(|| (all.sum / all.answers as f64, all.most));
        let trips = all.round_trips.or(measured);
        let times = trips.map(|(mean, most)| {
            format!("the round trip to {host} takes {mean:.1} ms at the mean and {most:.1} ms at most")
        });
        if let Some((sent, lost)) = all.summary.filter(|(_, lost)| *lost >= 100.0) {
            let text = format!("{host} does not answer: {lost} % of {sent} packets are lost");
            out.statement(statements::one(StatementKind::Unreachable, None, quote, text));
            return;
        }
        let lost = all.summary.filter(|(_, lost)| *lost > 0.0);
        let (kind, text) = match (lost, times) {
            (Some((sent, lost)), times) => {
                let times = times.map_or_else(String::new, |times| format!("; {times}"));
                let text = format!("{host} does not answer {lost} % of {sent} packets (loss){times}");
                (StatementKind::Failed, text)
            }
            (None, Some(times)) => (StatementKind::Took, times),
            (None, None) => return,
        };
        let longest = trips.map(|(_, most)| ms(most));
        out.statement(statements::one(kind, longest, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind::{self, Failed, Took, Unreachable};

    fn statements_of(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "ping");
        assert_eq!(reading.accounts[0].not_understood, 0);
        reading
            .observed
            .statements
            .into_iter()
            .map(|one| (one.kind, one.text))
            .collect()
    }

    #[test]
    fn losses_and_round_trips() {
        let text = "PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.\n64 bytes from 192.0.2.7: icmp_seq=1 ttl=60 time=90.0 ms\n\
            64 bytes from 192.0.2.7: icmp_seq=2 ttl=60 time=110 ms\n";
        let words = "the round trip to 192.0.2.7 takes 100.0 ms at the mean and 110.0 ms at most";
        assert_eq!(statements_of(text), [(Took, words.to_owned())]);
        let some = format!(
            "{text}\n--- 192.0.2.7 ping statistics ---\n4 packets transmitted, 2 received, 50% packet loss, time 3004ms\n\
             rtt min/avg/max/mdev = 90.0/100.0/110.0/10.0 ms\n"
        );
        let expected = format!("192.0.2.7 does not answer 50 % of 4 packets (loss); {words}");
        assert_eq!(statements_of(&some), [(Failed, expected)]);
        let none = "--- db.example ping statistics ---\n3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2041ms\n";
        let expected = "db.example does not answer: 100 % of 3 packets are lost".to_owned();
        assert_eq!(statements_of(none), [(Unreachable, expected)]);
    }
}
