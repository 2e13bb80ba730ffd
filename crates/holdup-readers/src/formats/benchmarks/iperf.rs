//! `iperf3` and `iperf`.
//!
//! In: a line of the host, a row for each interval, rows of the whole with `sender`. Out: the rate of the whole, and how much of it was
//! sent again.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("iperf", Family::Times, recognise).about("iperf3");

const NAME: usize = 80;

/// Bytes of a segment on an ordinary network.
const SEGMENT: f64 = 1_448.0;

/// A part of all segments that was sent again from which it is much: the norm of lists of counters.
const MIN_RESENT_SHARE: f64 = 0.001;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let heading = |line: &str| {
        line.contains("Interval")
            && line.contains("Transfer")
            && (line.contains("Bitrate") || line.contains("Bandwidth"))
    };
    Sureness::certain_if(text.lines().any(heading))
}

/// `1.48 MBytes` as bytes.
fn size(number: &str, unit: &str) -> Option<f64> {
    let factor = match unit {
        "Bytes" => 1.0,
        "KBytes" => 1024.0,
        "MBytes" => 1_048_576.0,
        "GBytes" => 1_073_741_824.0,
        "TBytes" => 1_099_511_627_776.0,
        _ => return None,
    };
    Some(decimal(number.as_bytes())? * factor)
}

/// What a row has.
#[derive(Debug, Clone)]
struct Row {
    from: f64,
    to: f64,
    bytes: f64,
    rate: String,
    again: Option<f64>,
    /// Datagrams that were lost, and all.
    lost: Option<(f64, f64)>,
    /// What may be on the way at once, where the row has it.
    window: String,
    whole: bool,
    /// What stands in the brackets.
    stream: String,
    quote: Quote,
}

impl Row {
    /// `[  5]   0.00-10.00  sec  1.48 MBytes  1.24 Mbits/sec  8812             sender`.
    fn of(text: &str, quote: Quote) -> Option<Row> {
        let (stream, rest) = text.strip_prefix('[')?.split_once(']')?;
        let words: Vec<&str> = rest.split_whitespace().take(16).collect();
        let at = words.iter().position(|word| *word == "sec")?;
        let span = words.get(..at)?.concat();
        let (from, to) = span.split_once('-')?;
        let [number, unit, rate, rate_unit, behind @ ..] = words.get(at + 1..)? else {
            return None;
        };
        Some(Row {
            from: decimal(from.as_bytes())?,
            to: decimal(to.as_bytes())?,
            bytes: size(number, unit)?,
            rate: format!("{rate} {rate_unit}"),
            again: again(behind),
            lost: lost(behind),
            window: match behind {
                [_, size, unit, ..] if unit.ends_with("Bytes") => format!("{size} {unit}"),
                _ => String::new(),
            },
            whole: behind.contains(&"sender"),
            stream: stream.trim().to_owned(),
            quote,
        })
    }
}

/// How many segments were sent again; of datagrams the jitter stands there, with its unit.
fn again(behind: &[&str]) -> Option<f64> {
    match behind {
        [_, "ms", ..] => None,
        [word, ..] => decimal(word.as_bytes()),
        [] => None,
    }
}

/// `0.012 ms  10132/81234 (12%)`, with a blank behind the stroke in older versions: how many datagrams were lost, of how many.
fn lost(behind: &[&str]) -> Option<(f64, f64)> {
    let [_, "ms", rest @ ..] = behind else { return None };
    let joined = rest.concat();
    let (lost, rest) = joined.split_once('/')?;
    let all = rest.split('(').next()?;
    let number = |text: &str| decimal(text.as_bytes()).filter(|value| *value >= 0.0);
    number(lost).zip(number(all)).filter(|(_, all)| *all > 0.0)
}

/// The part of the datagrams from which a loss is much: what voice and video bear.
const MIN_LOST: f64 = 0.01;

#[derive(Debug, Default)]
struct Reader {
    host: String,
    again: f64,
    counted: bool,
    bytes: f64,
    whole: Option<Row>,
    slowest: Option<Row>,
    /// Intervals, and those in which not a byte was sent.
    rows: u64,
    empty: u64,
    run: super::stalls::Runs,
    /// Datagrams of all intervals, and of the row of the whole.
    lost: (f64, f64),
    lost_whole: Option<(f64, f64)>,
}

/// Intervals from which a test that sends nothing stands still.
const MIN_EMPTY_ROWS: u64 = 3;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..400).unwrap_or(line));
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("Connecting to host ") {
            self.host = rest
                .split(',')
                .next()
                .unwrap_or_default()
                .chars()
                .take(NAME)
                .collect();
            return Understood::Evidence;
        }
        let Some(row) = Row::of(text, out.here()) else {
            return Understood::Ignorable;
        };
        match row.lost {
            Some(lost) if row.to - row.from >= 5.0 || text.ends_with("receiver") => {
                self.lost_whole = Some(lost)
            }
            Some((lost, all)) => self.lost = (self.lost.0 + lost, self.lost.1 + all),
            None => {}
        }
        if row.whole {
            self.whole = Some(row);
        } else if row.to - row.from < 5.0 {
            self.bytes += row.bytes;
            self.rows += 1;
            self.empty += u64::from(row.bytes <= 0.0);
            self.run.take(&row.stream, row.bytes, &row.window);
            self.again += row.again.unwrap_or(0.0);
            self.counted |= row.again.is_some();
            let slower =
                |slowest: &Row| row.bytes / (row.to - row.from) < slowest.bytes / (slowest.to - slowest.from);
            if row.to > row.from && self.slowest.as_ref().is_none_or(slower) {
                self.slowest = Some(row);
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let Some(row) = self.whole.clone().or(self.slowest.take()) else {
            return;
        };
        let of_whole = self
            .whole
            .as_ref()
            .and_then(|whole| Some((whole.again?, whole.bytes)));
        let (again, bytes) = of_whole.unwrap_or((self.again, self.bytes));
        let host = match self.host.as_str() {
            "" => String::new(),
            host => format!(" to {host}"),
        };
        let mut text = format!("{}{host} over {:.0} s", row.rate, row.to - row.from);
        let mut share = None;
        if of_whole.is_some() || self.counted {
            let part = again / (again + bytes / SEGMENT).max(1.0);
            share = Some(part);
            text.push_str(&format!(
                ", {again:.0} segments were sent again (retr), about {:.2} % (from {} % on it is much)",
                part * 100.0,
                MIN_RESENT_SHARE * 100.0
            ));
        }
        // One that has nothing to send, or ends early, sends nothing again.
        let stands = self.empty >= MIN_EMPTY_ROWS && self.empty * 2 > self.rows && self.again > 0.0;
        if stands {
            let window = match row.window.as_str() {
                "" => String::new(),
                window => format!(", with a congestion window of {window}"),
            };
            text = format!(
                "the transfer{host} is stalled: no data was sent in {} of {} intervals{window}; what it sends is lost on the way or \
                 not acknowledged ({text})",
                self.empty, self.rows
            );
        }
        let none_again = self.counted.then_some(self.again == 0.0);
        let stands = match self.run.told(none_again) {
            Some(told) if !stands => {
                text = format!("the transfer{host} is stalled: {told} ({text})");
                true
            }
            _ => stands,
        };
        let mut much = MIN_RESENT_SHARE;
        if let Some((part, told)) = self.datagrams() {
            share = Some(part);
            much = MIN_LOST;
            text.push_str(&told);
        }
        let kind = match share.is_some_and(|share| share >= much) {
            _ if stands => StatementKind::Stalled,
            true => StatementKind::Failed,
            false => StatementKind::Took,
        };
        out.statement(Statement {
            share,
            ..statements::one(kind, None, row.quote, text)
        });
    }
}

impl Reader {
    /// How many datagrams were lost, as a part of all and in words.
    fn datagrams(&self) -> Option<(f64, String)> {
        let (lost, all) = self.lost_whole.unwrap_or(self.lost);
        let part = lost / all;
        (all > 0.0).then(|| {
            let told = format!(
                ", {lost:.0} of {all:.0} datagrams ({:.2} %) were lost on the way (from {} % on it is much)",
                part * 100.0,
                MIN_LOST * 100.0
            );
            (part, told)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_rate_and_what_was_sent_again() {
        let text = "Connecting to host 10.0.0.7, port 5201\n[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
            [  5]   0.00-1.00   sec   181 KBytes  1.48 Mbits/sec  812   2.83 KBytes\n[ ID] Interval           Transfer     Bitrate         Retr\n\
            [  5]   0.00-10.00  sec  14.8 MBytes  12.4 Mbits/sec  812             sender\n[  5]   0.00-10.04  sec  14.1 MBytes  11.8 Mbits/sec                  receiver\n";
        let reading = read_text("i", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "iperf");
        let one = &reading.observed.statements[0];
        assert_eq!(
            one.text,
            "12.4 Mbits/sec to 10.0.0.7 over 10 s, 812 segments were sent again (retr), about 7.04 % (from 0.1 % on it is much)"
        );
        assert_eq!(one.kind, StatementKind::Failed);
    }

    #[test]
    fn a_test_that_sends_nothing_most_of_the_time_stands_still() {
        let interval = |second: u32, sent: &str| {
            format!(
                "[  5]   {second}.00-{}.00   sec  {sent} Bytes  0.00 bits/sec    1   1.41 KBytes\n",
                second + 1
            )
        };
        let rows = |sent: &[&str]| {
            let rows = sent.iter().zip(0..).map(|(sent, second)| interval(second, sent));
            format!(
                "Connecting to host 10.0.0.7, port 5201\n[ ID] Interval           Transfer     Bitrate\n{}",
                rows.collect::<String>()
            )
        };
        let told = |text: &str| {
            let one = read_text("i", text.as_bytes()).observed.statements.remove(0);
            (one.kind, one.text)
        };
        let (kind, text) = told(&rows(&["86016", "0.00", "0.00", "0.00", "0.00"]));
        assert_eq!(kind, StatementKind::Stalled);
        assert!(
            text.starts_with("the transfer to 10.0.0.7 is stalled: no data was sent in 4 of 5 intervals, with a congestion window of 1.41 KBytes"),
            "{text}"
        );
        // Nothing was sent again, so nothing was lost.
        let idle =
            rows(&["86016", "0.00", "0.00", "0.00", "0.00"]).replace("bits/sec    1 ", "bits/sec    0 ");
        assert_ne!(told(&idle).0, StatementKind::Stalled);
        // One empty second, as of a client that begins, is none.
        assert_ne!(
            told(&rows(&["86016", "0.00", "86016", "86016"])).0,
            StatementKind::Stalled
        );
    }

    #[test]
    fn datagrams_that_were_lost() {
        let text = "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
            [  5]   0.00-1.00   sec  98.2 MBytes   824 Mbits/sec  0.012 ms  1000/8000 (12%)\n\
            [  5]   1.00-2.00   sec  97.2 MBytes   815 Mbits/sec  0.014 ms  3000/8000 (38%)\n";
        let one = read_text("i", text.as_bytes()).observed.statements.remove(0);
        assert_eq!(one.kind, StatementKind::Failed);
        assert!(
            one.text
                .contains("4000 of 16000 datagrams (25.00 %) were lost on the way"),
            "{}",
            one.text
        );
        // Of the first iperf, with a blank in the figure and a row of the whole.
        let old = "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
            [  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec   0.010 ms    0/  893 (0%)\n";
        let all = read_text("i", old.as_bytes()).observed.statements;
        assert!(all.iter().all(|one| one.kind == StatementKind::Took), "{all:?}");
    }

    #[test]
    fn rubbish_is_survived() {
        let text = "[ ID] Interval Transfer Bandwidth\n[  5] 1-1 sec 0 Bytes 0 bits/sec\n[ 5] sec\n[\n[ 5] 9-1 sec 9 GBytes 9 x 9\n";
        let _ = read_text("i", text.as_bytes());
    }
}
