//! Where looks come from.
//!
//! In: a [`Watcher`] or [`Recordings`]. Out: events for the screen. Reading from the watcher never blocks.

use super::messages::Message;
use super::recordings::Recordings;
use super::watcher::Watcher;
use holdup_evidence::units::duration;
use holdup_top::Event;
use holdup_views::Look;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// A source.
#[derive(Debug)]
pub(super) enum Source {
    /// This machine.
    Live(Watcher),
    /// Files.
    Recordings(Recordings),
}

impl Source {
    /// Becomes readable when something came.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Source::Live(watcher) => watcher.fd(),
            Source::Recordings(_) => None,
        }
    }

    /// Reads a recording.
    pub(super) fn load(&mut self, at: usize) -> Result<Box<Look>, String> {
        match self {
            Source::Live(_) => Err("it is no longer kept".to_owned()),
            Source::Recordings(recordings) => recordings.load(at).map_err(|error| format!("{error:#}")),
        }
    }

    /// What has come since.
    ///
    /// # Errors
    /// When what came can't be understood.
    pub(super) fn come(&mut self) -> anyhow::Result<Vec<Event>> {
        let Source::Live(watcher) = self else {
            return Ok(Vec::new());
        };
        let mut events = Vec::new();
        for message in watcher.messages()? {
            match message {
                Message::Look(look) => {
                    events.extend(watcher.interval(Instant::now()).map(|interval| {
                        let ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
                        Event::Status(format!("a look every {}", duration(ns)))
                    }));
                    events.push(Event::Look(
                        jiff::Zoned::now().strftime("%H:%M:%S").to_string(),
                        look,
                    ));
                }
                Message::Failed(why) => events.push(Event::Status(format!("no look: {why}"))),
            }
        }
        Ok(events)
    }
}
