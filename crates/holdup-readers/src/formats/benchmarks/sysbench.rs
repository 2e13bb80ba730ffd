//! `sysbench`.
//!
//! Out: how long an event took at the mean, at the 95th percentile and at most, how many there were a second, and errors.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("sysbench", Family::Times, recognise).about("sysbench");

/// Bytes of a rate.
const RATE: usize = 20;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let has = |name: &str| text.lines().any(|line| line.trim_start().starts_with(name));
    let latency = has("Latency (ms):") || has("per-request statistics:") || has("Response time");
    Sureness::certain_if(latency && (has("General statistics:") || has("95th percentile:") || has("approx.")))
}

#[derive(Debug, Default)]
struct Reader {
    quote: Option<Quote>,
    mean: Option<Ns>,
    slow: Option<Ns>,
    longest: Option<Ns>,
    rate: String,
    threads: String,
    errors: String,
}

/// `12822.10` and `12822.10ms`, in milliseconds.
fn ms(word: &str) -> Option<Ns> {
    let ms = decimal(word.trim_end_matches("ms").as_bytes())?;
    (0.0..1e12).contains(&ms).then_some((ms * 1e6) as Ns)
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..300).unwrap_or(line));
        let Some((name, rest)) = text.trim().split_once(':') else {
            return Understood::Ignorable;
        };
        let first = rest.split_whitespace().next().unwrap_or_default();
        let per_second = || {
            let rate = rest.split_once('(')?.1.split(' ').next()?;
            Some(rate.chars().take(RATE).collect::<String>())
        };
        match name.trim() {
            "avg" => self.mean = ms(first),
            "max" => {
                self.longest = ms(first);
                self.quote = Some(out.here());
            }
            "transactions" | "events per second" => {
                self.rate = per_second().unwrap_or_else(|| first.chars().take(RATE).collect());
            }
            "Number of threads" => self.threads = first.chars().take(RATE).collect(),
            "ignored errors" | "reconnects" if first != "0" => {
                self.errors = format!("{} {}", first.chars().take(RATE).collect::<String>(), name.trim());
            }
            name if name.contains("95") && name.contains("percentile") => self.slow = ms(first),
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let (Some(quote), Some(mean)) = (read.quote, read.mean) else {
            return;
        };
        let mut text = format!("an event took {} at the mean", duration(mean));
        if let Some(slow) = read.slow {
            text.push_str(&format!(", 95 % within {}", duration(slow)));
        }
        if let Some(longest) = read.longest {
            text.push_str(&format!(", {} at most", duration(longest)));
        }
        let part = |value: &str, before: &str, behind: &str| match value {
            "" => String::new(),
            value => format!("{before}{value}{behind}"),
        };
        text.push_str(&part(&read.rate, "; ", " a second"));
        text.push_str(&part(&read.threads, " with ", " threads"));
        text.push_str(&part(&read.errors, "; ", ""));
        out.statement(statements::one(
            StatementKind::Took,
            read.longest.or(read.mean),
            quote,
            text,
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn how_long_an_event_took() {
        let text = "Number of threads: 64\nSQL statistics:\n    transactions:                        80     (1.23 per sec.)\n    ignored errors:                      3      (0.05 per sec.)\n\n\
            General statistics:\n    total time:                          65.0211s\n\nLatency (ms):\n         min:        1201.32\n         avg:       12822.10\n         max:       41233.91\n         95th percentile:   38119.00\n";
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "sysbench");
        assert_eq!(
            reading.texts(),
            [
                "an event took 12.82 s at the mean, 95 % within 38.12 s, 41.23 s at most; 1.23 a second with 64 threads; 3 ignored errors"
            ]
        );
    }
}
