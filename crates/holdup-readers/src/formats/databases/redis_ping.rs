//! `redis-cli --latency` and `--latency-history`: how long Redis takes to answer `PING`; and `--intrinsic-latency`: how long the machine itself
//! keeps a program from running.
//!
//! In: `min: 0, max: 15, avg: 0.19 (427 samples)`, `Max latency so far: 1204 microseconds.` Out: a statement about the longest, with the mean.
//! Source: `redis-cli.c`, whose `--latency` is in milliseconds; Redis' documentation, "Diagnosing latency issues".

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, number, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("redis-ping", Family::Databases, recognise).about("redis-cli --latency");

/// Milliseconds of a round trip that a network of 1 Gbit/s takes by itself (Redis' documentation, "Diagnosing latency issues"): what answers
/// within them is as quick as it can be. Longer ones depend on the network, of which nothing is known here.
const NETWORK_MS: f64 = 0.2;

/// Microseconds of the longest pause of a machine on which Redis' documentation calls Redis quick (same page). Machines that run normally have
/// had pauses of up to 40 ms there, so that longer ones are not judged.
const QUIET_MACHINE_US: f64 = 115.0;

fn recognise(head: &[u8]) -> Sureness {
    let ping = holds(head, " samples)") && any_line(head, |line| Ping::of(line).is_some());
    Sureness::certain_if(
        ping || holds(head, "Max latency so far: ") && any_line(head, |line| pause(line).is_some()),
    )
}

/// A line of `--latency`, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ping {
    most: f64,
    mean: f64,
    samples: f64,
}

impl Ping {
    fn of(line: &str) -> Option<Ping> {
        // A screen that is written over keeps all of its lines in one: the last of them counts.
        let rest = line.get(line.rfind("min: ")?..)?;
        let (_, rest) = rest.split_once("max: ")?;
        let (most, rest) = rest.split_once(", avg: ")?;
        let (mean, rest) = rest.split_once(" (")?;
        let (samples, _) = rest.split_once(" samples)")?;
        Some(Ping {
            most: number(most)?,
            mean: number(mean)?,
            samples: number(samples)?,
        })
    }
}

/// Microseconds of `Max latency so far: 1204 microseconds.`
fn pause(line: &str) -> Option<f64> {
    let (_, rest) = line.rsplit_once("Max latency so far: ")?;
    number(rest.split_once(" microseconds")?.0)
}

#[derive(Debug, Default)]
struct Reader {
    worst: Option<(Ping, Quote)>,
    lines: u64,
    pause: Option<(f64, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(ping) = Ping::of(&text) {
            self.lines = self.lines.saturating_add(1);
            if self
                .worst
                .as_ref()
                .is_none_or(|(worst, _)| ping.mean > worst.mean)
            {
                self.worst = Some((ping, out.here()));
            }
            return Understood::Evidence;
        }
        let Some(us) = pause(&text) else {
            return Understood::Ignorable;
        };
        // Each line has the greatest so far.
        self.pause = Some((us, out.here()));
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        if let Some((ping, quote)) = read.worst {
            let ns = (ping.most.clamp(0.0, 1e12) * 1e6) as Ns;
            let mut text = format!(
                "Redis took {} ms at the mean to answer PING, at most {} ms, of {:.0} samples",
                rounded(ping.mean),
                rounded(ping.most),
                ping.samples
            );
            if read.lines > 1 {
                text.push_str(&format!("; the slowest of {} intervals", read.lines));
            }
            let kind = match ping.mean > NETWORK_MS {
                true => StatementKind::Took,
                false => {
                    text.push_str(&format!("; up to {NETWORK_MS} ms at the mean is well"));
                    StatementKind::WithinNorm
                }
            };
            out.statement(statements::one(kind, Some(ns), quote, text));
        }
        if let Some((us, quote)) = read.pause {
            let ns = (us.clamp(0.0, 1e12) * 1e3) as Ns;
            let (kind, norm) = match us > QUIET_MACHINE_US {
                true => (StatementKind::Took, "; Redis cannot answer sooner than that"),
                false => (StatementKind::WithinNorm, "; up to 115 µs is well"),
            };
            let text = format!(
                "the machine itself kept a program that does nothing else from running for {} at most{norm}",
                duration(ns)
            );
            out.statement(statements::one(kind, Some(ns), quote, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_slowest_interval() {
        let text = "min: 0, max: 2, avg: 0.20 (1400 samples) -- 15.01 seconds range\nmin: 0, max: 310, avg: 4.61 (900 samples) -- 15.00 seconds range\n";
        let reading = read_text("r", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "redis-ping");
        assert_eq!(
            reading.texts(),
            [
                "Redis took 4.61 ms at the mean to answer PING, at most 310 ms, of 900 samples; the slowest of 2 intervals"
            ]
        );
        let well = "min: 0, max: 2, avg: 0.20 (1400 samples)\n";
        assert_eq!(
            read_text("r", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn a_machine_that_pauses() {
        let text = "Max latency so far: 1 microseconds.\nMax latency so far: 31204 microseconds.\n";
        let reading = read_text("r", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
        assert!(
            reading.texts()[0].contains("from running for 31.2 ms at most"),
            "{reading:?}"
        );
        let well = "Max latency so far: 1 microseconds.\nMax latency so far: 83 microseconds.\n";
        assert_eq!(
            read_text("r", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn other_texts_are_none() {
        let text = "min: 0, max: 3, avg: many (3 samples)\n";
        assert_ne!(
            read_text("r", text.as_bytes()).observed.sources[0].format,
            "redis-ping"
        );
    }
}
