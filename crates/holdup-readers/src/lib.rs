//! Artefacts that people have, as evidence: `holdup read`'s eyes.
//!
//! In: streams with names. Out: a [`Reading`]: what they show ([`Observed`], [`SystemFacts`]), and for each an
//! [`Account`] of which lines were understood. A format is one file below `formats/`, chosen by what a stream contains and
//! never by its name. Readers never fail whole: a line that can't be understood is counted, and the next one is read.

mod account;
mod collected;
mod copied;
mod day_time;
mod emphasis;
mod figures;
mod find;
mod format;
mod formats;
mod gather;
mod inert;
mod input;
mod json;
mod kernel;
mod known_figures;
mod lines;
mod load;
mod manager;
mod messages;
mod numbers;
pub mod own_log;
mod prompt;
mod quoted;
mod rest;
mod sizes;
mod stamp;
mod statements;
mod stream;
mod tasks;
mod text;
mod timespan;
mod typography;

pub use account::{Account, Files, Misunderstood};
pub use collected::SCRIPT as COLLECT_SCRIPT;
pub use format::{Family, Format};
pub use formats::ALL as FORMATS;
pub use formats::profiles::collapsed::{StackLines, stacks};
pub use formats::text::ID as TEXT;
pub use stream::{HEAD, recognise};

use gather::Gather;
use holdup_evidence::observed::Taken;
use holdup_evidence::{Observed, SystemFacts};
use input::Allowance;
use std::io::Read;
use std::path::Path;

/// What was read of all artefacts together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// What they show.
    pub observed: Observed,
    /// What they say of the machine.
    pub facts: SystemFacts,
    /// What was understood of each; one for each entry of `observed.sources`, in the same order.
    pub accounts: Vec<Account>,
}

#[cfg(test)]
impl Reading {
    /// What the statements say.
    fn texts(&self) -> Vec<&str> {
        let statements = self.observed.statements.iter();
        statements.map(|one| one.text.as_str()).collect()
    }

    /// Spans with their names, milliseconds.
    fn spans_ms(&self) -> Vec<(&str, u64)> {
        let spans = self.observed.spans.iter();
        spans
            .map(|span| (span.name.as_str(), span.ns / 1_000_000))
            .collect()
    }

    /// The greatest value of the first series.
    fn greatest(&self, metric: holdup_evidence::observed::Metric) -> Option<f64> {
        Some(self.observed.of(metric).next()?.greatest()?.value)
    }
}

/// Reads artefacts one after another into one reading.
#[derive(Debug, Default)]
pub struct Readers {
    gather: Gather,
    allowance: Allowance,
}

impl Readers {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Readers {
        Readers::default()
    }

    /// Nothing read yet; `watch` is reported the bytes of each piece that is read of the files of [`Readers::read_path`].
    #[must_use]
    pub fn watched(watch: impl Fn(u64) + 'static) -> Readers {
        let mut readers = Readers::default();
        readers.allowance.watch.0 = Some(std::rc::Rc::new(watch));
        readers
    }

    /// Reads one stream to its end, or as far as it can be read, unpacked if it is packed; why it ended early is in its
    /// account.
    pub fn read(&mut self, name: &str, stream: &mut dyn Read) {
        input::stream(name, stream, &mut self.gather, &mut self.allowance);
    }

    /// Reads one stream of which it is known when it was taken: its clock is then joined with those of the others.
    pub fn read_taken(&mut self, name: &str, stream: &mut dyn Read, taken: Taken) {
        let first = self.gather.sources();
        self.read(name, stream);
        for source in first..self.gather.sources() {
            let source = u32::try_from(source).expect("artefacts are far fewer than 2^32");
            self.gather.out_of(source).source().taken = Some(taken);
        }
    }

    /// Reads a file, or every file below a folder.
    ///
    /// # Errors
    /// Why it can't be read at all.
    pub fn read_path(&mut self, path: &Path) -> std::io::Result<()> {
        input::path(path, &mut self.gather, &mut self.allowance)
    }

    /// All that was read.
    #[must_use]
    pub fn finish(self) -> Reading {
        self.gather.finish()
    }
}

/// Reads one text; for tests and small things.
#[must_use]
pub fn read_text(name: &str, text: &[u8]) -> Reading {
    let mut readers = Readers::new();
    readers.read(name, &mut &*text);
    readers.finish()
}

/// Reads a text as one format, whatever it looks like; for tests with hostile input.
#[must_use]
pub fn read_as(format: &'static Format, text: &[u8]) -> Reading {
    let mut gather = Gather::default();
    stream::read_as(format, text, &mut gather);
    gather.finish()
}
