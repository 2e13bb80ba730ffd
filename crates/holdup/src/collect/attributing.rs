//! The way into attribution, and a copy of what goes in: `--events FILE`.
//!
//! In: events, in their order. Out: what attribution makes of them; and where a file was named, the same events in it.

use holdup_analysis::Attributed;
use holdup_analysis::attribution::Attribution;
use holdup_events::{Ending, Observed, Settings, Writer};
use holdup_evidence::{Cause, Event, Finish, SystemFacts, Wait};
use holdup_files::NewFile;
use std::fs::File;
use std::io::{self, Seek};
use std::sync::{Arc, Mutex, PoisonError};

/// Where events go: a file that gets its name when it is complete. An observation that is begun again begins it anew.
#[derive(Debug, Clone)]
pub(crate) struct EventsFile(Arc<Mutex<Option<NewFile>>>);

impl EventsFile {
    pub(crate) fn new(file: NewFile) -> EventsFile {
        EventsFile(Arc::new(Mutex::new(Some(file))))
    }

    fn begin(&self, settings: Settings) -> io::Result<Begun> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let complete = || io::Error::other("it was already complete");
        let mut file = held.as_mut().ok_or_else(complete)?.file().try_clone()?;
        file.rewind()?;
        file.set_len(0)?;
        Ok(Begun {
            writer: Writer::begin(file, env!("CARGO_PKG_VERSION"), settings),
            file: self.clone(),
        })
    }

    /// Gives it its name.
    fn finish(&self) -> io::Result<()> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        held.map_or(Ok(()), |file| file.finish().map_err(io::Error::other))
    }
}

/// A file of events that is being written.
#[derive(Debug)]
struct Begun {
    writer: Writer<File>,
    file: EventsFile,
}

/// Attribution, and the copy.
#[derive(Debug)]
pub(super) struct Attributing {
    attribution: Attribution,
    copy: Option<Begun>,
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
            copy.writer.event(event);
        }
        self.attribution.push(event);
    }

    pub(super) fn so_far(&self, waits: &[Wait], finish: &Finish, facts: &SystemFacts) -> Attributed {
        self.attribution.so_far(waits, finish, facts)
    }

    /// What all of it comes to, and the copy, which lacks what is found out afterwards.
    pub(super) fn finish(self, finish: Finish, facts: &SystemFacts) -> (Attributed, Option<EventsCopy>) {
        let attributed = self.attribution.finish(&finish, facts);
        let copy = self.copy.map(|copy| EventsCopy {
            copy,
            finish,
            found_unmeasured: Vec::new(),
        });
        (attributed, copy)
    }
}

/// A copy of events that lacks its end.
#[derive(Debug)]
pub(crate) struct EventsCopy {
    copy: Begun,
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
    pub(crate) fn finish(
        self,
        observed: &holdup_views::report::Subject,
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
        self.copy.writer.finish(ending)?;
        self.copy.file.finish()
    }
}
