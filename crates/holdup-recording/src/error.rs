//! What can be wrong with a recording, each in one sentence that says what the user can do.

use std::path::PathBuf;

/// Why a recording can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("cannot {what} {path:?}: {error}")]
    Io {
        /// `read`, `write`, `list`.
        what: &'static str,
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Somebody else could decide where it is written.
    #[error("cannot write {path:?}: {refused}")]
    Place {
        /// Which file.
        path: PathBuf,
        /// Why.
        refused: holdup_files::Refused,
    },
    /// What is there must not be replaced.
    #[error("{path:?} is not a regular file; name a new file for the recording")]
    NotAFile {
        /// What is there.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{path:?} is not a recording of holdup; `holdup read` reads artefacts")]
    NotARecording {
        /// Which file.
        path: PathBuf,
    },
    /// A later holdup wrote it.
    #[error(
        "{path:?} is a recording of version {version}, made by holdup {by}; this holdup reads versions up to {}: use that one, or \
         a later one",
        crate::VERSION
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The holdup that wrote it.
        by: String,
    },
    /// It holds many segments.
    #[error(
        "{path:?} holds the segments of an hour in one file; `holdup fleet show` on the folder above its day reads it"
    )]
    Hour {
        /// Which file.
        path: PathBuf,
    },
    /// It is cut off or changed.
    #[error("{path:?} is damaged ({why}); nothing in it is used")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Larger than any recording is.
    #[error("{path:?} exceeds a limit of recordings ({what}, at most {most}); nothing in it is used")]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Of what there is too much.
        what: &'static str,
        /// How much there may be.
        most: u64,
    },
    /// A directory without any.
    #[error(
        "there is no recording in {path:?}; `-o FILE` of `holdup run`, `holdup attach` and `holdup host` makes one"
    )]
    Empty {
        /// Which directory.
        path: PathBuf,
    },
}
