//! The stream of events that enters attribution, in a file.
//!
//! In: each [`Event`] as it is pushed, and how observation ended. Out: a file of lines of JSON, packed with gzip (`zcat FILE | jq .`), and from
//! such a file the same [`Attributed`] again. It is what everything behind collection can be tested with: without root, without BPF, on
//! any machine.
//!
//! The form: the first line is a [`Head`], then each line is an [`Event`], the last one an [`Ending`]. Lines name their fields, because
//! events get new ones: files of before must be read for as long as the new fields have a default.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Events, ReadError};
pub use write::Writer;

use holdup_attribution::attribution::Attribution;
use holdup_evidence::{Cause, Event, Finish, Ns, SystemFacts};
use holdup_model::attributed::{Attributed, Source};
use holdup_model::host_figures::HostFigures;
use holdup_model::prediction::Question;
use holdup_model::report::{Backend, Elsewhere, SubjectKind};
use serde::{Deserialize, Serialize};

/// The version of the form. A reader refuses higher ones.
pub const VERSION: u32 = 1;

/// How the events are to be attributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The whole is all observed threads' time, and not a command's elapsed time.
    pub of_threads: bool,
    /// Single pieces of time that are kept at the most; `None`: as many as attribution keeps by itself.
    pub pieces: Option<usize>,
    /// CPUs that the command may use, where a prediction was asked for.
    pub predict_cpus: Option<u32>,
    /// How the events were taken.
    #[serde(rename = "sampled")]
    pub source: Source,
}

impl Settings {
    /// Attribution of nothing so far. `together`: causes to predict together.
    #[must_use]
    pub fn attribution(self, together: &'static [Cause]) -> Attribution {
        let attribution = match self.of_threads {
            true => Attribution::of_threads(),
            false => Attribution::new(),
        };
        let attribution = match self.pieces {
            Some(pieces) => attribution.keeping(pieces),
            None => attribution,
        };
        let attribution = attribution.observed_by(self.source);
        match self.predict_cpus {
            Some(cpus) => attribution.predicting(Question { cpus, together }),
            None => attribution,
        }
    }
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`VERSION`] of who wrote it.
    pub holdup_events: u32,
    /// holdup's own version.
    pub holdup: String,
    /// How they are attributed.
    #[serde(default)]
    pub settings: Settings,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Kind.
    pub kind: SubjectKind,
    /// Where the evidence came from.
    pub backend: Backend,
    /// The command line.
    pub command: Vec<String>,
    /// Process ids, the command's own first.
    pub pids: Vec<u32>,
    /// When observation began, `CLOCK_MONOTONIC`, nanoseconds.
    pub started: Ns,
    /// Exit status as a shell has it; `None` while it runs on.
    pub exit: Option<i32>,
    /// Processes in other namespaces.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
}

/// How observation ended: the last line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// What the source handed over.
    pub finish: Finish,
    /// What the machine said of itself.
    pub facts: SystemFacts,
    /// What was found not to have been measured by looking at what attribution made of the events: what, why, what would help.
    #[serde(default)]
    pub found_unmeasured: Vec<(String, String, String)>,
    /// Figures of the whole machine, which attribution passes on.
    #[serde(default)]
    pub host_figures: HostFigures,
    /// What was observed; `None` where whoever wrote this did not come to that.
    #[serde(default)]
    pub observed: Option<Observed>,
}

/// An observation as it was, attributed.
#[derive(Debug)]
pub struct Replayed {
    /// By whom it was made.
    pub head: Head,
    /// What attribution makes of it.
    pub attributed: Attributed,
    /// How it ended.
    pub ending: Ending,
}

/// Attributes a file's events.
///
/// # Errors
/// When it is no such file, is cut short, or is of a later version.
pub fn replay(file: impl std::io::Read) -> Result<Replayed, ReadError> {
    let mut events = Events::open(file)?;
    let mut attribution = events.head().settings.attribution(&[]);
    while let Some(event) = events.next_event()? {
        attribution.push(&event);
    }
    let (head, ending) = events.end()?;
    let mut attributed = attribution.finish(&ending.finish, &ending.facts);
    attributed.host_figures = ending.host_figures.clone();
    attributed
        .coverage
        .not_measured
        .extend(ending.found_unmeasured.iter().cloned());
    Ok(Replayed {
        head,
        attributed,
        ending,
    })
}

/// A line after the first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Event(Event),
    End(Box<Ending>),
}
