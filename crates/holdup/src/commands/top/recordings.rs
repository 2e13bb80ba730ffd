//! Recordings as looks.
//!
//! In: a folder, as `holdup record` fills it. Out: its segments' times, and one at a time what the rules say of it: the same that
//! `holdup show` says.

use crate::commands::show;
use crate::verdict;
use anyhow::{Context, bail};
use holdup_recording::{Folder, Head, folder, read_one};
use holdup_views::Look;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::{Path, PathBuf};

/// Segments, oldest first.
#[derive(Debug)]
pub(super) struct Recordings {
    segments: Vec<(PathBuf, Head)>,
}

impl Recordings {
    /// Those in a folder, and when each began.
    ///
    /// # Errors
    /// When there are none.
    pub(super) fn open(path: &Path) -> anyhow::Result<(Recordings, Vec<String>)> {
        let Folder {
            segments,
            mut problems,
        } = folder(path)?;
        if segments.is_empty() {
            match problems.pop() {
                Some(problem) => bail!(problem),
                None => bail!(
                    "{} has no recordings; `holdup record --dir` makes them",
                    path.display()
                ),
            }
        }
        let zone = TimeZone::system();
        let label = |(_, head): &(PathBuf, Head)| {
            let at = Timestamp::from_nanosecond(head.started_unix.into()).unwrap_or_default();
            at.to_zoned(zone.clone())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string()
        };
        let labels = segments.iter().map(label).collect();
        Ok((Recordings { segments }, labels))
    }

    /// What the rules say of one.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) fn load(&self, at: usize) -> anyhow::Result<Box<Look>> {
        let (path, head) = self.segments.get(at).context("there is no such recording")?;
        let segment = read_one(path)?;
        Ok(Box::new(Look::of(&verdict::of_segment(
            &segment,
            show::is_of_machine(head),
        ))))
    }
}
