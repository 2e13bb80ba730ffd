//! What a recorder and the process that uploads its segments tell each other, as two small files beside the segments.
//!
//! The problem: the recorder removes segments, and another process brings them to a store; either may be killed at any instant. The choice:
//! each writes one file that it replaces whole, and nobody else writes that. `.confirmed` is the uploader's: segments that the
//! store has. `.dropped` is the recorder's: segments that it removed before. A segment is named by its [`identity`](crate::Head::identity), which
//! no clock that somebody sets can give to another one. A file that is lost costs a second upload under the same name, or a count.

use crate::{Error, Head};
use holdup_evidence::Ns;
use holdup_files::{Last, NewFile, Refused};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;

/// The uploader's file.
const CONFIRMED: &str = ".confirmed";

/// The recorder's file.
const DROPPED: &str = ".dropped";

/// The largest of either that is read, bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Dropped segments that are remembered, the latest ones: two weeks of a segment a minute.
pub const MAX_DROPPED: usize = 20_000;

/// A segment that was removed before the store had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Its identity.
    pub identity: String,
    /// The host's name; `None` where it was taken out.
    #[serde(default)]
    pub host: Option<String>,
    /// When it began, Unix time, nanoseconds.
    pub started_unix: i64,
    /// How long it lasted, nanoseconds.
    pub length: Ns,
}

impl Dropped {
    /// Of a segment's head.
    #[must_use]
    pub fn of(head: &Head) -> Dropped {
        Dropped {
            identity: head.identity(),
            host: head.host.clone(),
            started_unix: head.started_unix,
            length: head.length,
        }
    }
}

/// What a store has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmed {
    /// Its URL.
    pub store: String,
    /// The identities of segments in the directory that it has.
    pub identities: HashSet<String>,
}

/// What the store has of this directory's segments.
#[must_use]
pub fn confirmed(directory: &Path) -> Confirmed {
    let text = text(&directory.join(CONFIRMED));
    let mut lines = text.lines().map(str::to_owned);
    Confirmed {
        store: lines.next().unwrap_or_default(),
        identities: lines.collect(),
    }
}

/// Says which segments the store has, in place of what was said before.
///
/// # Errors
/// When the directory does not take it.
pub fn confirm(directory: &Path, confirmed: &Confirmed) -> Result<(), Error> {
    let mut lines: Vec<&str> = confirmed.identities.iter().map(String::as_str).collect();
    lines.sort_unstable();
    lines.insert(0, &confirmed.store);
    replace(&directory.join(CONFIRMED), &lines.join("\n"))
}

/// What was dropped, oldest first. Lines that are none are left out.
#[must_use]
pub fn dropped(directory: &Path) -> Vec<Dropped> {
    let text = text(&directory.join(DROPPED));
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Adds segments that are about to be removed, each once.
///
/// # Errors
/// When the directory does not take it; then nothing must be removed that nobody would count.
pub fn add_dropped(directory: &Path, more: &[Dropped]) -> Result<(), Error> {
    let mut all = dropped(directory);
    let known: HashSet<String> = all.iter().map(|one| one.identity.clone()).collect();
    all.extend(more.iter().filter(|one| !known.contains(&one.identity)).cloned());
    let kept = all
        .get(all.len().saturating_sub(MAX_DROPPED)..)
        .unwrap_or_default();
    let lines: Vec<String> = kept
        .iter()
        .filter_map(|one| serde_json::to_string(one).ok())
        .collect();
    replace(&directory.join(DROPPED), &lines.join("\n"))
}

/// A small file's text; empty where there is none that can be read.
fn text(path: &Path) -> String {
    let mut text = String::new();
    if let Ok(file) = std::fs::File::open(path) {
        let whole = file.take(MAX_BYTES).read_to_string(&mut text);
        whole.ok();
    }
    text
}

fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Io {
        what: "write",
        path: path.to_owned(),
        error,
    };
    let refused = |refused: Refused| match refused {
        Refused::Io(error) => failed(error),
        refused => Error::Place {
            path: path.to_owned(),
            refused,
        },
    };
    let mut file = NewFile::open(path, Last::RegularOnly).map_err(refused)?;
    file.file().write_all(text.as_bytes()).map_err(failed)?;
    file.finish_on_disk().map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::{Confirmed, Dropped, add_dropped, confirm, confirmed, dropped};

    fn one(number: i64) -> Dropped {
        Dropped {
            identity: format!("b-{number}"),
            host: Some("db-3".to_owned()),
            started_unix: number,
            length: 60,
        }
    }

    #[test]
    fn what_is_confirmed_is_read_back_and_replaced() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(confirmed(place.path()), Confirmed::default());
        for identities in [&["a-1", "a-2"][..], &["a-2"], &[]] {
            let all = Confirmed {
                store: "s3://ops/holdup".to_owned(),
                identities: identities.iter().map(|one| (*one).to_owned()).collect(),
            };
            confirm(place.path(), &all).unwrap();
            assert_eq!(confirmed(place.path()), all);
        }
    }

    #[test]
    fn what_is_dropped_counts_once_however_often_it_is_said() {
        let place = tempfile::tempdir().unwrap();
        add_dropped(place.path(), &[one(1), one(2)]).unwrap();
        // Killed before it removed them, it says so again.
        add_dropped(place.path(), &[one(1), one(2), one(3)]).unwrap();
        assert_eq!(dropped(place.path()), [one(1), one(2), one(3)]);
    }

    #[test]
    fn a_line_that_is_none_costs_that_line() {
        let place = tempfile::tempdir().unwrap();
        add_dropped(place.path(), &[one(1)]).unwrap();
        let path = place.path().join(super::DROPPED);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{{\"identity\": 7}}\n{text}\nnonsense")).unwrap();
        assert_eq!(dropped(place.path()), [one(1)]);
    }
}
