//! Timing of mails in the logs of amavisd and spamd: which step took longest.
//!
//! In: `TIMING [total 12345 ms] - SMTP greeting: 3 (0%)0, SA check: 12000 (97%)98, …` of amavisd, and `spamd: result: … scantime=12.3,…` of
//! spamd. Out: a statement about the longest step of the longest mail, and how many mails there were. Source: `Amavis::Timing` of amavisd-new,
//! `spamd.raw` of SpamAssassin.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, ns_of, number, rounded};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mail-timing", Family::Logs, recognise).about("times of amavisd and spamd");

/// Bytes of a line that are looked at: of one mail there may be a hundred steps.
const LINE_BYTES: usize = 8_192;

/// Steps of one mail.
const MAX_STEPS: usize = 300;

fn recognise(head: &[u8]) -> Sureness {
    let amavis = holds(head, "TIMING")
        && head
            .split(|byte| *byte == b'\n')
            .any(|line| Mail::of_amavis(&text(line)).is_some());
    let spamd = holds(head, "scantime=") && any_line(head, |line| of_spamd(line).is_some());
    // The log of a whole machine may have them too, and has its own reader.
    match amavis || spamd {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

fn text(line: &[u8]) -> String {
    text_of(line.get(..LINE_BYTES).unwrap_or(line))
}

/// How long a mail took, and its longest step.
#[derive(Debug, Clone, PartialEq)]
struct Mail {
    ms: f64,
    step: String,
    step_ms: f64,
    next: Option<(String, f64)>,
}

impl Mail {
    fn of_amavis(line: &str) -> Option<Mail> {
        let (_, rest) = line.split_once("TIMING")?;
        let (_, rest) = rest.split_once("[total ")?;
        let (ms, rest) = rest.split_once(" ms")?;
        // Since 2.9 with the CPU time behind it: `[total 312 ms, cpu 250 ms]`.
        let (_, steps) = rest.split_once("] - ").or_else(|| rest.split_once("] "))?;
        let mut largest = Largest::default();
        for step in steps.split(", ").take(MAX_STEPS) {
            let Some((name, figures)) = step.rsplit_once(": ") else {
                continue;
            };
            let word = figures.split_whitespace().next().unwrap_or_default();
            if let Some(ms) = number(word) {
                largest.take(ms, name, Quote::default());
            }
        }
        let (step_ms, step, _) = largest.first?;
        let next = largest
            .next
            .filter(|(ms, _)| *ms > 0.0)
            .map(|(ms, name)| (name, ms));
        Some(Mail {
            ms: number(ms)?,
            step,
            step_ms,
            next,
        })
    }
}

/// Seconds of `scantime=12.3,`.
fn of_spamd(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once("scantime=")?;
    line.contains("result:").then_some(())?;
    number(rest.split(',').next()?)
}

#[derive(Debug, Default)]
struct Reader {
    longest: Option<(Mail, Quote)>,
    mails: u64,
    /// Milliseconds by the step that was the longest of its mail.
    ms: f64,
    scans: Largest,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text(line);
        if let Some(mail) = Mail::of_amavis(&text) {
            self.mails = self.mails.saturating_add(1);
            self.ms += mail.ms;
            if self
                .longest
                .as_ref()
                .is_none_or(|(longest, _)| mail.ms > longest.ms)
            {
                self.longest = Some((mail, out.here()));
            }
            return Understood::Evidence;
        }
        if let Some(seconds) = of_spamd(&text) {
            let mid = text
                .split_once("mid=")
                .map_or("", |(_, mid)| mid.split([',', ' ']).next().unwrap_or_default());
            self.scans.take(seconds, &name_of(mid), out.here());
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let told = |seconds: f64| duration(ns_of(seconds));
        if let Some((mail, quote)) = read.longest {
            let share = mail.step_ms / mail.ms.max(mail.step_ms).max(1e-9);
            let mut text = format!(
                "the step {} took {} of a mail's {} in amavisd, {} %",
                name_of(&mail.step),
                told(mail.step_ms / 1e3),
                told(mail.ms / 1e3),
                rounded(share * 100.0)
            );
            if let Some((name, ms)) = &mail.next {
                text.push_str(&format!("; next {name}, {}", told(ms / 1e3)));
            }
            if read.mails > 1 {
                let mean = read.ms / 1e3 / read.mails as f64;
                text.push_str(&format!("; {} mails took {} at the mean", read.mails, told(mean)));
            }
            out.statement(Statement {
                share: Some(share),
                ..statements::one(StatementKind::Took, Some(ns_of(mail.ms / 1e3)), quote, text)
            });
        }
        let count = read.scans.count;
        if let Some((seconds, mail, quote)) = read.scans.first {
            let of = if mail.is_empty() {
                "a mail".to_owned()
            } else {
                format!("mail {mail}")
            };
            let mean = read.scans.sum / count.max(1) as f64;
            let text = format!(
                "{of} took spamd {}, the longest of {count} ({} at the mean)",
                told(seconds),
                told(mean)
            );
            out.statement(statements::one(
                StatementKind::Took,
                Some(ns_of(seconds)),
                quote,
                text,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_longest_step_of_a_mail() {
        let text = "Apr  4 10:00:00 mx amavis[812]: (812-01) TIMING [total 10000 ms] - SMTP greeting: 3 (0%)0, SMTP DATA: 97 (1%)1, \
            SA check: 9000 (90%)91, body_hash: 900 (9%)100\n";
        let reading = read_text("a", text.as_bytes());
        assert_eq!(
            reading.texts(),
            ["the step SA check took 9.00 s of a mail's 10.00 s in amavisd, 90 %; next body_hash, 900 ms"]
        );
    }

    #[test]
    fn the_longest_scan() {
        let text = "spamd: result: . 0 - A,B scantime=0.5,size=900,user=x,mid=<1@a>,autolearn=no\n\
            spamd: result: Y 9 - A scantime=41.5,size=900,user=x,mid=<2@a>,autolearn=no\n";
        let reading = read_text("a", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mail-timing");
        assert_eq!(
            reading.texts(),
            ["mail <2@a> took spamd 41.50 s, the longest of 2 (21.00 s at the mean)"]
        );
    }

    #[test]
    fn other_logs_are_none() {
        for text in ["TIMING is all\n", "scantime=3 of nothing\n"] {
            assert_ne!(
                read_text("a", text.as_bytes()).observed.sources[0].format,
                "mail-timing"
            );
        }
    }
}
