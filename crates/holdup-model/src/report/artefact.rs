//! What a report has of artefacts that were read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An artefact, or the part of one that is of one format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Artefact {
    /// Its name as given, followed by the path within an archive.
    pub name: String,
    /// Its format; null where none was recognised.
    pub format: Option<String>,
    /// The host that it names itself.
    pub host: Option<String>,
    /// Bytes read, uncompressed.
    pub bytes: u64,
    /// Lines read (records, of a format without lines).
    pub lines: u64,
    /// Of those, lines that gave evidence or say nothing in this format.
    pub understood: u64,
    /// Of those, lines that were not understood.
    pub not_understood: u64,
    /// The first few of them.
    pub misunderstood: Vec<Misunderstood>,
    /// Things that were understood and left out, because there were too many.
    pub left_out: u64,
    /// What is wrong with it as a whole.
    pub problems: Vec<String>,
    /// Of a folder or an archive: what became of the files in it.
    #[serde(default)]
    pub files: Option<FilesWithin>,
}

/// What became of the files of a folder or an archive; those that were read are artefacts of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesWithin {
    /// Files that were read.
    pub read: u64,
    /// Files of no format that is known.
    pub not_recognised: u64,
    /// The names of the first of those.
    pub names: Vec<String>,
    /// Links, which are never followed.
    pub links: u64,
}

/// A line that was not understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Misunderstood {
    /// Its number, from 1.
    pub line: u64,
    /// Its beginning.
    pub text: String,
}
