//! The parts of `holdup.report/1` that scenarios judge, and the workload's own account of its time.
//!
//! In: the JSON of a report, the lines of a truth file. Out: both as data. Not holdup's own types on purpose:
//! what is judged here is the contract, as any other program would read it.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A report.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Report {
    /// What was observed.
    pub(crate) subject: Subject,
    /// Whose time was seen.
    pub(crate) coverage: Coverage,
    /// The elapsed time by cause, along the critical path.
    pub(crate) causes: Vec<CauseShare>,
    /// Each thread's waits.
    pub(crate) waits: Vec<Wait>,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
}

/// What was observed.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Subject {
    /// Elapsed time in nanoseconds.
    pub(crate) wall_ns: u64,
}

/// Whose time was seen.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Coverage {
    /// Sum of the threads' lives in nanoseconds.
    pub(crate) observed_ns: u64,
    /// What did not reach holdup.
    #[serde(default)]
    pub(crate) lost: Vec<Lost>,
}

/// Something of a kind that did not reach holdup.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Lost {
    /// What.
    pub(crate) what: String,
    /// How many.
    pub(crate) count: u64,
}

impl Report {
    /// How many wakings and waits the kernel did not show, as the report itself says.
    pub(crate) fn hidden(&self) -> u64 {
        const KINDS: [&str; 2] = [
            "wakings that the kernel did not show",
            "waits whose record was dropped",
        ];
        let lost = self.coverage.lost.iter();
        lost.filter(|lost| KINDS.contains(&lost.what.as_str()))
            .map(|lost| lost.count)
            .sum()
    }
}

/// A cause and its part.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct CauseShare {
    /// Its id.
    pub(crate) cause: String,
    /// Of the elapsed time, 0..1.
    pub(crate) share: f64,
}

/// Waits of one thread with one cause, resource and asker.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Wait {
    /// Its cause.
    pub(crate) cause: String,
    /// Total in nanoseconds.
    pub(crate) ns: u64,
    /// What was waited for.
    pub(crate) resource: Resource,
    /// Who asked.
    pub(crate) asker: Asker,
    /// All that were in the way.
    #[serde(default)]
    pub(crate) holders: Vec<Task>,
}

/// What was waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Resource {
    /// Its name.
    pub(crate) name: String,
    /// More about it.
    #[serde(default)]
    pub(crate) detail: BTreeMap<String, String>,
}

/// Who asked.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Asker {
    /// Process name.
    pub(crate) process: String,
    /// Thread name.
    pub(crate) thread: String,
    /// The function.
    pub(crate) frame: Option<String>,
    /// Its module.
    pub(crate) module: Option<String>,
}

/// A thread.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Task {
    /// Process id.
    pub(crate) pid: u32,
    /// Process name.
    pub(crate) process: String,
    /// Thread name.
    pub(crate) thread: String,
    /// Of one in the way: how that is known.
    #[serde(default)]
    pub(crate) how_known: String,
}

/// What is wrong.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Finding {
    /// The rule.
    pub(crate) rule: String,
    /// `note`, `warning` or `critical`.
    pub(crate) severity: String,
    /// The cause it is about.
    pub(crate) cause: String,
    /// One line.
    pub(crate) title: String,
    /// Of the elapsed time, 0..1.
    pub(crate) share: Option<f64>,
    /// What it is about.
    pub(crate) resource: Resource,
    /// Who asked.
    pub(crate) asker: Asker,
    /// What it rests on.
    pub(crate) evidence: Vec<Text>,
    /// What to do.
    pub(crate) remedies: Vec<Text>,
}

/// A sentence of a finding.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Text {
    /// The words.
    pub(crate) text: String,
    /// A command to type, in remedies.
    #[serde(default)]
    pub(crate) command: Option<String>,
}

impl Resource {
    /// Everything that it is called.
    pub(crate) fn words(&self) -> String {
        let details = self.detail.values().map(String::as_str);
        std::iter::once(self.name.as_str())
            .chain(details)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Asker {
    /// Everything that it is called.
    pub(crate) fn words(&self) -> String {
        let code = [&self.frame, &self.module].into_iter().flatten();
        [&self.process, &self.thread]
            .into_iter()
            .chain(code)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Finding {
    /// Everything that it says.
    pub(crate) fn words(&self) -> String {
        let mut words = vec![self.title.clone(), self.resource.words()];
        for text in self.evidence.iter().chain(&self.remedies) {
            words.push(text.text.clone());
            words.extend(text.command.clone());
        }
        words.join("\n")
    }
}

/// What the workload measured of itself, lines added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    /// Nanoseconds that the trouble took.
    pub(crate) waited_ns: u64,
    /// Nanoseconds in all.
    pub(crate) elapsed_ns: u64,
    /// Nanoseconds for which a thread was ready and not running.
    pub(crate) queued_ns: u64,
    /// Who was in the way.
    pub(crate) holder_pid: Option<u32>,
}

/// One line of a truth file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TruthLine {
    waited_ns: u64,
    elapsed_ns: u64,
    queued_ns: u64,
    holder_pid: Option<u32>,
}

impl Truth {
    /// Adds up the lines of a truth file: waited and queued are summed, elapsed is the longest.
    pub(crate) fn parse(text: &str) -> serde_json::Result<Truth> {
        let mut truth = Truth::default();
        for line in text.lines() {
            let line: TruthLine = serde_json::from_str(line)?;
            truth.waited_ns += line.waited_ns;
            truth.queued_ns += line.queued_ns;
            truth.elapsed_ns = truth.elapsed_ns.max(line.elapsed_ns);
            truth.holder_pid = line.holder_pid.or(truth.holder_pid);
        }
        Ok(truth)
    }

    /// The trouble's share of the elapsed time, 0..1.
    pub(crate) fn share(&self) -> f64 {
        of(self.waited_ns, self.elapsed_ns)
    }

    /// The trouble's share of the time that was not spent queueing for a CPU, 0..1.
    pub(crate) fn trouble(&self) -> f64 {
        of(self.waited_ns, self.elapsed_ns.saturating_sub(self.queued_ns))
    }

    /// Queueing's share of the elapsed time, 0..1: how busy the machine was with others.
    pub(crate) fn queued(&self) -> f64 {
        of(self.queued_ns, self.elapsed_ns)
    }
}

/// A part of a whole; nothing of nothing is 0.
#[allow(
    clippy::cast_precision_loss,
    reason = "shares need no more than a float's 53 bits"
)]
pub(crate) fn of(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        (part as f64 / whole as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Truth;

    #[test]
    fn lines_add_up_and_the_longest_is_the_whole() {
        let text = concat!(
            "{\"waited_ns\": 10, \"elapsed_ns\": 12, \"queued_ns\": 1}\n",
            "{\"waited_ns\": 20, \"elapsed_ns\": 22}\n",
            "{\"elapsed_ns\": 40, \"holder_pid\": 7}\n",
        );
        let truth = Truth::parse(text).unwrap();
        assert_eq!(
            truth,
            Truth {
                waited_ns: 30,
                elapsed_ns: 40,
                queued_ns: 1,
                holder_pid: Some(7)
            }
        );
        assert!((truth.share() - 0.75).abs() < 1e-9);
    }

    #[test]
    fn a_word_that_is_not_known_is_refused() {
        assert!(Truth::parse("{\"waitedns\": 1}").is_err());
    }

    #[test]
    fn nothing_is_no_share() {
        assert!(Truth::default().share().abs() < f64::EPSILON);
    }
}
