//! The way into attribution, and a copy of what goes in: `--events FILE`.
//!
//! In: events, in their order. Out: what attribution makes of them; and where a file was named, the same events in it.

use holdup_attribution::attribution::Attribution;
use holdup_events::{Ending, Observed, Settings, Writer};
use holdup_evidence::{Cause, Event, Finish, SystemFacts, Wait};
use holdup_files::Destination;
use holdup_model::attributed::Attributed;
use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

/// Where events go. An observation that is begun again begins it anew.
#[derive(Debug)]
pub struct EventsFile {
    file: File,
    /// Gives the file its name when it is complete.
    destination: Destination,
}

impl EventsFile {
    /// Opens it, as reports are.
    pub fn open(path: &Path) -> anyhow::Result<EventsFile> {
        let mut destination = Destination::open(path)?;
        let file = match &mut destination {
            Destination::New(file) => file.file().try_clone()?,
            Destination::Stream(stream) => stream.try_clone()?,
        };
        Ok(EventsFile { file, destination })
    }

    /// All of it is written.
    pub fn complete(self) -> anyhow::Result<()> {
        match self.destination {
            Destination::New(file) => Ok(file.finish()?),
            Destination::Stream(_) => Ok(()),
        }
    }

    fn begin(&self, settings: Settings) -> io::Result<Writer<File>> {
        let mut file = self.file.try_clone()?;
        if matches!(self.destination, Destination::New(_)) {
            file.rewind()?;
            file.set_len(0)?;
        }
        Ok(Writer::begin(file, env!("CARGO_PKG_VERSION"), settings))
    }
}

/// Attribution, and the copy.
#[derive(Debug)]
pub(super) struct Attributing {
    attribution: Attribution,
    copy: Option<Writer<File>>,
}

impl Attributing {
    /// Of nothing so far. `together`: causes to predict together, of which a copy does not tell.
    ///
    /// # Errors
    /// When the file can't be written.
    pub(super) fn begin(
        settings: Settings,
        together: &'static [Cause],
        file: Option<&EventsFile>,
    ) -> io::Result<Attributing> {
        Ok(Attributing {
            attribution: settings.attribution(together),
            copy: file.map(|file| file.begin(settings)).transpose()?,
        })
    }

    pub(super) fn push(&mut self, event: &Event) {
        if let Some(copy) = &mut self.copy {
            copy.event(event);
        }
        self.attribution.push(event);
    }

    pub(super) fn so_far(&self, waits: &[Wait], finish: &Finish, facts: &SystemFacts) -> Attributed {
        self.attribution.so_far(waits, finish, facts)
    }

    /// What all of it comes to, and the copy, which lacks what is found out afterwards.
    pub(super) fn finish(self, finish: Finish, facts: &SystemFacts) -> (Attributed, Option<EventsCopy>) {
        let attributed = self.attribution.finish(&finish, facts);
        let copy = self.copy.map(|writer| EventsCopy {
            writer,
            finish,
            found_unmeasured: Vec::new(),
        });
        (attributed, copy)
    }
}

/// A copy of events that lacks its end.
#[derive(Debug)]
pub struct EventsCopy {
    writer: Writer<File>,
    finish: Finish,
    found_unmeasured: Vec<(String, String, String)>,
}

impl EventsCopy {
    /// Notes what was found not to have been measured after attribution.
    pub(super) fn unmeasured(&mut self, found: &[(String, String, String)]) {
        self.found_unmeasured.extend_from_slice(found);
    }

    /// Writes the end: what was observed, and the facts as they are by now.
    ///
    /// # Errors
    /// When the disk did not take all of it.
    pub fn finish(
        self,
        observed: &holdup_report::Subject,
        attributed: &Attributed,
        facts: &SystemFacts,
    ) -> io::Result<()> {
        let observed = Observed {
            kind: observed.kind,
            backend: observed.backend,
            command: observed.command.clone(),
            pids: observed.pids.clone(),
            started: observed.started,
            exit: observed.exit,
            elsewhere: observed.elsewhere.clone(),
        };
        let ending = Ending {
            finish: self.finish,
            facts: facts.clone(),
            found_unmeasured: self.found_unmeasured,
            host_figures: attributed.host_figures.clone(),
            observed: Some(observed),
        };
        self.writer.finish(ending).map(drop)
    }
}
