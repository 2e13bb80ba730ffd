//! The parts of `holdup.report/1` that the chores judge, read as any other program would read them.
//!
//! Not holdup's own types on purpose: what is checked here is the contract.

use serde::Deserialize;

/// A report.
#[derive(Debug, Deserialize)]
pub(crate) struct Report {
    /// The schema's name.
    pub(crate) schema: String,
    /// What was observed.
    pub(crate) subject: Subject,
    /// The elapsed time by cause.
    pub(crate) causes: Vec<CauseShare>,
    /// Each thread's time.
    pub(crate) threads: Vec<Thread>,
    /// Each thread's waits.
    pub(crate) waits: Vec<Wait>,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
    /// What was read, of `holdup read`.
    #[serde(default)]
    pub(crate) artefacts: Vec<Artefact>,
    /// The largest things that were read, of `holdup read`.
    #[serde(default)]
    pub(crate) account: Vec<Text>,
    /// What was seen of it all.
    #[serde(default)]
    pub(crate) coverage: Coverage,
}

/// How much was seen.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Coverage {
    /// What was not, though it was there.
    pub(crate) lost: Vec<Lost>,
    /// What can't be seen so.
    #[serde(default)]
    pub(crate) not_measured: Vec<NotMeasured>,
    /// CPU time of the observer, nanoseconds.
    #[serde(default)]
    pub(crate) own_cost_ns: u64,
}

/// A line of what was not seen.
#[derive(Debug, Deserialize)]
pub(crate) struct NotMeasured {
    /// What.
    pub(crate) what: String,
}

/// Records that were dropped.
#[derive(Debug, Deserialize)]
pub(crate) struct Lost {
    /// Which.
    pub(crate) what: String,
    /// How many.
    pub(crate) count: u64,
    /// The time they stood for.
    pub(crate) ns: u64,
}

/// What was observed.
#[derive(Debug, Deserialize)]
pub(crate) struct Subject {
    /// Process ids; CMD's own is the first.
    pub(crate) pids: Vec<u32>,
    /// Elapsed time in nanoseconds.
    pub(crate) wall_ns: u64,
    /// CMD's exit status.
    pub(crate) exit: Option<i32>,
}

/// A cause and its part.
#[derive(Debug, Deserialize)]
pub(crate) struct CauseShare {
    /// Its id.
    pub(crate) cause: String,
    /// Total in nanoseconds.
    pub(crate) ns: u64,
    /// Of the whole.
    pub(crate) share: f64,
    /// How many pieces.
    pub(crate) count: u64,
}

/// A thread.
#[derive(Debug, Deserialize)]
pub(crate) struct Thread {
    /// Process id.
    pub(crate) pid: u32,
    /// Thread id.
    pub(crate) tid: u32,
    /// How many threads this entry stands for.
    #[serde(default = "one")]
    pub(crate) threads: u64,
    /// Its time by cause.
    pub(crate) causes: Vec<CauseShare>,
}

fn one() -> u64 {
    1
}

/// Waits of one thread with one cause, resource and asker.
#[derive(Debug, Deserialize)]
pub(crate) struct Wait {
    /// Its cause.
    pub(crate) cause: String,
    /// Total in nanoseconds.
    pub(crate) ns: u64,
    /// The longest.
    pub(crate) max_ns: u64,
    /// When that began, in nanoseconds since boot.
    pub(crate) max_started_boot_ns: Option<u64>,
    /// Who asked.
    pub(crate) asker: Asker,
}

/// Who asked.
#[derive(Debug, Deserialize)]
pub(crate) struct Asker {
    /// Process id.
    pub(crate) pid: u32,
    /// Thread id.
    pub(crate) tid: u32,
    /// The function.
    pub(crate) frame: Option<String>,
    /// Its module.
    pub(crate) module: Option<String>,
    /// The stack.
    pub(crate) stack: Vec<serde_json::Value>,
}

/// What is wrong.
#[derive(Debug, Deserialize)]
pub(crate) struct Finding {
    /// The rule.
    pub(crate) rule: String,
    /// How bad.
    #[serde(default)]
    pub(crate) severity: String,
    /// What the time was for.
    #[serde(default)]
    cause: String,
    /// One line.
    #[serde(default)]
    title: String,
    /// What it is about.
    #[serde(default)]
    resource: Resource,
    /// What it rests on.
    #[serde(default)]
    evidence: Vec<Text>,
    /// What to do.
    #[serde(default)]
    remedies: Vec<Text>,
}

/// A resource.
#[derive(Debug, Default, Deserialize)]
struct Resource {
    name: String,
}

/// Evidence, a remedy, or a line of an account.
#[derive(Debug, Deserialize)]
pub(crate) struct Text {
    /// Its words.
    pub(crate) text: String,
}

impl Finding {
    /// The sentence that a person reads first.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// All that it says.
    pub(crate) fn words(&self) -> String {
        let more = self
            .evidence
            .iter()
            .chain(&self.remedies)
            .map(|one| one.text.as_str());
        let words: Vec<&str> = [
            self.title.as_str(),
            self.cause.as_str(),
            self.resource.name.as_str(),
        ]
        .into_iter()
        .chain(more)
        .collect();
        words.join("\n")
    }
}

/// An artefact that was read.
#[derive(Debug, Deserialize)]
pub(crate) struct Artefact {
    /// Its name.
    pub(crate) name: String,
    /// Its format.
    pub(crate) format: Option<String>,
    /// Lines read.
    pub(crate) lines: u64,
    /// Of those, lines that were not understood.
    pub(crate) not_understood: u64,
    /// The first few of them.
    pub(crate) misunderstood: Vec<Misunderstood>,
}

/// A line that was not understood.
#[derive(Debug, Deserialize)]
pub(crate) struct Misunderstood {
    /// Its beginning.
    pub(crate) text: String,
}
