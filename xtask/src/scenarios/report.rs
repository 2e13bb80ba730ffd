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
    /// The time of those who had requests to answer.
    #[serde(default)]
    pub(crate) requests: Option<Requests>,
    /// How the whole machine does, where that was looked at.
    #[serde(default)]
    pub(crate) host: Option<Host>,
    /// What was recorded, where it is a recording that is shown.
    #[serde(default)]
    pub(crate) recording: Option<Recording>,
    /// What the rules can say is not the matter.
    #[serde(default)]
    pub(crate) ruled_out: Vec<RuledOut>,
    /// With and without a wait, where that was tried.
    #[serde(default)]
    pub(crate) experiment: Option<Experiment>,
}

impl Report {
    /// Whether it is of all that ran on a machine: by a look at it, or by a recording. Then findings are judged, and no cause has a share.
    pub(crate) fn of_machine(&self) -> bool {
        self.host.is_some() || self.recording.as_ref().is_some_and(|recording| recording.machine)
    }
}

/// What a report of a recording says of that.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Recording {
    /// Whether all that ran on the machine is in it.
    #[serde(default)]
    pub(crate) machine: bool,
}

/// A command as it is, and without a wait.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Experiment {
    /// As it is.
    pub(crate) baseline_ns: u64,
    /// Without.
    #[serde(default)]
    pub(crate) measured_ns: Option<u64>,
    /// How much faster; none where there is no verdict.
    #[serde(default)]
    pub(crate) speedup: Option<f64>,
}

impl Experiment {
    /// The part of the time that is saved, 0..1; 0 where there is no verdict.
    pub(crate) fn saved(&self) -> f64 {
        let measured = self.measured_ns.filter(|_| self.speedup.is_some());
        measured.map_or(0.0, |ns| {
            of(self.baseline_ns.saturating_sub(ns), self.baseline_ns)
        })
    }
}

/// The time of those who had requests to answer.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Requests {
    /// By cause; shares of all of it.
    pub(crate) causes: Vec<RequestCause>,
}

/// A cause's part of it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RequestCause {
    /// The cause.
    pub(crate) cause: String,
    /// Nanoseconds.
    pub(crate) ns: u64,
    /// Of all of it, 0..1.
    pub(crate) share: f64,
}

/// How a whole machine does.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Host {
    /// The first sentence.
    pub(crate) verdict: String,
    /// Facts that wait to hurt.
    pub(crate) facts: Vec<Text>,
    /// What there is of each resource.
    pub(crate) resources: Vec<Text>,
}

impl Host {
    /// Everything that it says.
    pub(crate) fn words(&self) -> String {
        let rows = self
            .facts
            .iter()
            .chain(&self.resources)
            .map(|row| row.text.as_str());
        std::iter::once(self.verdict.as_str())
            .chain(rows)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A rule that does not apply.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RuledOut {
    /// Its id.
    pub(crate) rule: String,
    /// The figure that says so.
    pub(crate) why: String,
}

/// What was observed.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Subject {
    /// `run`, or `host`, or `attach`: then causes are of all threads' time, waiting for work included.
    pub(crate) kind: String,
    /// Elapsed time in nanoseconds.
    pub(crate) wall_ns: u64,
}

/// Whose time was seen.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Coverage {
    /// Sum of the threads' lives in nanoseconds; of a whole machine none has a length.
    pub(crate) observed_ns: Option<u64>,
    /// What did not reach holdup.
    #[serde(default)]
    pub(crate) lost: Vec<Lost>,
    /// What could not be observed at all.
    #[serde(default)]
    pub(crate) not_measured: Vec<NotMeasured>,
}

/// Something that could not be observed.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct NotMeasured {
    /// What.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
    /// What would make it visible.
    pub(crate) fix: String,
}

/// Something of a kind that did not reach holdup.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Lost {
    /// What.
    pub(crate) what: String,
    /// How many.
    pub(crate) count: u64,
}

/// Waiting for work, which no trouble is a part of.
const IDLE: &str = "idle";

impl Report {
    /// Causes and their shares of the time with requests to answer.
    pub(crate) fn in_requests(&self) -> Vec<CauseShare> {
        let causes = self.requests.iter().flat_map(|requests| &requests.causes);
        causes
            .map(|one| CauseShare {
                cause: one.cause.clone(),
                share: one.share,
            })
            .collect()
    }

    /// Nanoseconds of that.
    pub(crate) fn requests_ns(&self) -> u64 {
        let causes = self.requests.iter().flat_map(|requests| &requests.causes);
        causes.map(|one| one.ns).sum()
    }

    /// Causes and their shares of the time that was not waiting for work: of a command's elapsed time, all of it.
    pub(crate) fn busy(&self) -> Vec<CauseShare> {
        let attached = self.subject.kind == "attach";
        let idle = self.causes.iter().find(|one| attached && one.cause == IDLE);
        let busy = 1.0 - idle.map_or(0.0, |one| one.share);
        let others = self.causes.iter().filter(|one| !attached || one.cause != IDLE);
        others
            .map(|one| CauseShare {
                cause: one.cause.clone(),
                share: if busy > 0.0 { one.share / busy } else { 0.0 },
            })
            .collect()
    }

    /// How many wakings and waits the kernel did not show, as the report itself says.
    pub(crate) fn hidden(&self) -> u64 {
        const KINDS: [&str; 3] = [
            "wakeups not reported by the kernel",
            "context switches not reported by the kernel",
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
    /// How long.
    #[serde(default)]
    pub(crate) ns: Option<u64>,
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
