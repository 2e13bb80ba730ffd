//! `ctest`: which tests of a run failed or took too long, and which took longest.
//!
//! In: a line for each test that ended (`3/30 Test #3: name ....   Passed    0.03 sec`), the sums, and the list of those that failed.
//! Out: a statement about those that did not pass, and one about the longest. Source: CMake's manual, `ctest(1)`.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, whole};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{counted, duration, whole_percent};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("ctest", Family::Times, recognise).about("ctest");

/// Bytes of a line and of a test's name.
const LINE_BYTES: usize = 400;
const NAME_BYTES: usize = 100;

/// Tests that did not pass that are kept, and that a statement names.
const MAX_TESTS: usize = 1_000;
const MAX_NAMED: usize = 5;

/// Tests that have begun and not ended: as many as run at a time.
const MAX_RUNNING: usize = 1_000;

/// Seconds that are believed.
const MAX_SECONDS: f64 = 1e8;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    Sureness::certain_if(
        text.lines()
            .map(str::trim)
            .any(|line| Ended::of(line).is_some() || sums(line).is_some()),
    )
}

/// `96% tests passed, 4 tests failed out of 108`: how many failed, of how many.
fn sums(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("% tests passed, ")?;
    let (failed, all) = rest.split_once(" tests failed out of ")?;
    whole(failed.as_bytes()).zip(whole(all.as_bytes()))
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Passed,
    Failed,
    TimedOut,
    /// Skipped, disabled, or not there to be run.
    NotRun,
}

impl How {
    /// `***Timeout`, `(Timeout)`, `***Exception: SegFault`.
    fn of(text: &str) -> How {
        let has = |word: &str| text.contains(word);
        match () {
            () if has("Timeout") => How::TimedOut,
            () if has("Skipped") || has("Disabled") || has("Not Run") => How::NotRun,
            () if has("Passed") => How::Passed,
            () => How::Failed,
        }
    }
}

/// A test that has ended.
#[derive(Debug, Clone)]
struct Ended {
    name: String,
    how: How,
    seconds: f64,
}

impl Ended {
    fn of(line: &str) -> Option<Ended> {
        let line = line.get(..LINE_BYTES).unwrap_or(line);
        // Before it may stand how many of all there were.
        let (before, rest) = line.split_once("Test ")?;
        let counter = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'/' | b' ');
        let (number, rest) = rest.trim_start().strip_prefix('#')?.split_once(':')?;
        if !before.bytes().all(counter) {
            return None;
        }
        whole(number.trim().as_bytes())?;
        let (front, _) = rest.rsplit_once(" sec")?;
        let (front, seconds) = front.trim_end().rsplit_once(' ')?;
        let seconds = decimal(seconds.as_bytes()).filter(|seconds| (0.0..MAX_SECONDS).contains(seconds))?;
        let front = front.trim();
        // Points fill the line up to how it ended.
        let end = [" ..", "..", "***", "   "]
            .iter()
            .filter_map(|end| front.find(end))
            .min()?;
        let (name, how) = front.split_at_checked(end)?;
        let name: String = name.trim().chars().take(NAME_BYTES).collect();
        (!name.is_empty()).then(|| Ended {
            name,
            how: How::of(how),
            seconds,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    ended: u64,
    longest: Option<(Ended, Quote)>,
    /// Those that did not pass, with the seconds that they took where that is known.
    bad: Vec<(String, How, Option<f64>, Quote)>,
    sums: Option<(u64, u64)>,
    total: Option<f64>,
    /// Whether the list of those that failed, or that did not run, is being read.
    listing: bool,
    running: Vec<(String, Quote)>,
    /// Whether the last line says that a test has begun.
    begun_last: bool,
}

impl Reader {
    fn bad(&mut self, name: &str, how: How, seconds: Option<f64>, quote: Quote) {
        let known = self.bad.iter().any(|(known, ..)| known == name);
        if !known && self.bad.len() < MAX_TESTS {
            self.bad.push((name.to_owned(), how, seconds, quote));
        }
    }

    /// `      8 - style_check (Failed)`, with labels behind it.
    fn listed(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let (number, rest) = text.split_once(" - ").filter(|_| self.listing)?;
        whole(number.trim().as_bytes())?;
        let (name, how) = rest.split_once(" (")?;
        let how = How::of(how);
        if matches!(how, How::Failed | How::TimedOut) {
            let name: String = name.trim().chars().take(NAME_BYTES).collect();
            self.bad(&name, how, None, out.here());
        }
        Some(())
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(ended) = Ended::of(text) {
            self.begun_last = false;
            self.ended += 1;
            self.running.retain(|(name, _)| *name != ended.name);
            if matches!(ended.how, How::Failed | How::TimedOut) {
                self.bad(&ended.name, ended.how, Some(ended.seconds), out.here());
            }
            let ran = ended.how != How::NotRun;
            if ran
                && self
                    .longest
                    .as_ref()
                    .is_none_or(|(longest, _)| ended.seconds > longest.seconds)
            {
                self.longest = Some((ended, out.here()));
            }
            return Understood::Evidence;
        }
        let begun = text.strip_prefix("Start ").and_then(|rest| rest.split_once(": "));
        if let Some((_, name)) = begun.filter(|(number, _)| whole(number.trim().as_bytes()).is_some()) {
            self.begun_last = true;
            if self.running.len() < MAX_RUNNING {
                let name = name.trim().chars().take(NAME_BYTES).collect();
                self.running.push((name, out.here()));
            }
            return Understood::Evidence;
        }
        if let Some(sums) = sums(text) {
            self.sums = Some(sums);
            self.running.clear();
            return Understood::Evidence;
        }
        if let Some(rest) = text.strip_prefix("Total Test time (real) =") {
            let seconds = rest.split_whitespace().next().unwrap_or_default();
            self.total = decimal(seconds.as_bytes()).filter(|seconds| (0.0..MAX_SECONDS).contains(seconds));
            return Understood::Evidence;
        }
        if text.starts_with("The following tests FAILED")
            || text.starts_with("The following tests did not run")
        {
            self.listing = true;
            return Understood::Evidence;
        }
        if self.listed(text, out).is_some() {
            return Understood::Evidence;
        }
        let own = [
            "Test project ",
            "Errors while running CTest",
            "Output from these tests are in",
            "Use \"--rerun-failed",
            "Label Time Summary",
            "Subproject Time Summary",
        ];
        match own.iter().any(|own| text.starts_with(own)) || text.contains(" sec*proc ") {
            true => Understood::Ignorable,
            false => {
                self.begun_last = false;
                Understood::No
            }
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        if let Some(statement) = all.failures() {
            out.statement(statement);
        }
        // A run that ends with a test that began: it is what the run waits for, or what it was ended in.
        if let Some((name, quote)) = all.running.last().filter(|_| all.begun_last && all.ended > 0) {
            let text = format!(
                "test {name} began and has not ended: it is the last line of the run, after {} that ended",
                counted(all.ended, "test", "tests")
            );
            out.statement(statements::one(StatementKind::Stalled, None, quote.clone(), text));
        }
        if let Some(statement) = all.longest_test() {
            out.statement(statement);
        }
    }
}

fn ns(seconds: f64) -> Ns {
    (seconds.clamp(0.0, MAX_SECONDS) * 1e9) as Ns
}

impl Reader {
    /// What did not pass.
    fn failures(&self) -> Option<Statement> {
        let (_, _, _, quote) = self.bad.first()?;
        let mut parts = Vec::new();
        for (how, says) in [(How::TimedOut, "timed out"), (How::Failed, "failed")] {
            let of = || self.bad.iter().filter(|(_, known, ..)| *known == how);
            let count = of().count();
            let named: Vec<String> = of()
                .take(MAX_NAMED)
                .map(|(name, _, seconds, _)| match seconds {
                    Some(seconds) => format!("{name} after {}", duration(ns(*seconds))),
                    None => name.clone(),
                })
                .collect();
            if count > 0 {
                let end = if count > MAX_NAMED { ", …" } else { "" };
                let tests = counted(count as u64, "test", "tests");
                parts.push(format!("{tests} {says}: {}{end}", named.join(", ")));
            }
        }
        let timed_out = self.bad.iter().any(|(_, how, ..)| *how == How::TimedOut);
        let kind = if timed_out {
            StatementKind::TimedOut
        } else {
            StatementKind::Failed
        };
        let of = match self.sums {
            Some((_, all)) => format!(" ({all} tests in all)"),
            None => String::new(),
        };
        let text = format!("{}{of}", parts.join("; "));
        Some(statements::one(kind, None, quote.clone(), text))
    }

    fn longest_test(&self) -> Option<Statement> {
        let (longest, quote) = self.longest.as_ref()?;
        let took = ns(longest.seconds);
        // Tests that run side by side add up to more than the run took.
        let total = self.total.map(ns).filter(|total| *total >= took && *total > 0);
        let of = match total {
            Some(total) => format!(
                ", {} of the {} that all took",
                whole_percent(took, total),
                duration(total)
            ),
            None => String::new(),
        };
        let text = format!(
            "test {} took {}, the longest of {}{of}",
            longest.name,
            duration(took),
            counted(self.ended, "test", "tests")
        );
        Some(Statement {
            share: total.map(|total| took as f64 / total as f64),
            ..statements::one(StatementKind::Took, Some(took), quote.clone(), text)
        })
    }
}

#[cfg(test)]
mod tests;
