//! Recordings: what was observed, in a file.
//!
//! In: [`Segment`]s, an observation each. Out: Parquet files, one a segment, and segments from them that are equal to what was
//! written, so that rules and views say of a recording what they would have said then.
//!
//! A file has two parts. Its columns ([`table`]) are for the engines that people have: a row a wait, a cause of the critical path, a
//! thread and cause. holdup itself reads the *whole*, a packed JSON that stands between the columns and the footer
//! where Parquet lets anybody put what others skip; which is where, the file's metadata says. So reading a recording, which
//! may come from anybody, takes a footer, one zstd frame and one JSON, each within bounds ([`footer`], [`whole`]), and never a
//! library that reserves memory by what a file says of itself. A test holds the columns against the whole.

mod bound;
mod bound_look;
mod error;
mod file;
mod focus;
mod footer;
mod head;
pub mod hour;
mod merge;
mod secrets;
pub mod spool;
mod stacks;
mod table;
pub mod unlike;
pub mod usual;
mod whole;

pub use bound::{MAX_PIECES, MAX_WAITS, bound};
pub use bound_look::bound_look;
pub use error::Error;
pub use file::{Draft, Folder, folder, peek, read, read_one, read_sums, save};
pub use focus::only_process;
pub use head::{Head, Zone};
pub use merge::{Break, Merging, merge};
pub use secrets::{mask, redact, redact_report};
pub use table::{COLUMNS, Column, Values};

use holdup_evidence::SystemFacts;
use holdup_evidence::host::HostLook;
use holdup_model::attributed::Attributed;
use std::io::Write;

/// The latest version of the format: a holdup that knows only earlier ones would misread such a file. A file has the earliest
/// that tells all of it.
pub const VERSION: u32 = 2;

/// The version that brought looks at a whole machine. One that knows none would take it for a machine on which nothing waited.
const VERSION_OF_LOOKS: u32 = 2;

/// The version of all else.
const VERSION_OF_WAITS: u32 = 1;

/// Where recordings are where nobody says otherwise.
pub const DIRECTORY: &str = "/var/lib/holdup";

/// One observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Whose, when, where, made by what.
    pub head: Head,
    /// What attribution made of it.
    pub attributed: Attributed,
    /// What the machine said of itself.
    pub facts: SystemFacts,
    /// A look at the whole machine, of `holdup host`; the rules judge that, then, and `attributed` has next to nothing.
    pub look: Option<HostLook>,
}

impl Segment {
    /// The version that a file of it has.
    fn version(&self) -> u32 {
        match self.look {
            Some(_) => VERSION_OF_LOOKS,
            None => VERSION_OF_WAITS,
        }
    }
}

/// Writes a segment as a Parquet file.
///
/// # Errors
/// When `out` does not take it.
pub fn write<W: Write + Send>(segment: &Segment, out: W) -> std::io::Result<()> {
    table::write(segment, out)
}

/// Reads what stands in the whole of a file once it is unpacked; for tests with contents of anybody's.
///
/// # Errors
/// What is wrong with it.
pub fn contents(text: &[u8]) -> Result<(Attributed, SystemFacts, Option<HostLook>), String> {
    whole::understood(text).map_err(|wrong| match wrong {
        whole::Wrong::Damaged(why) => why,
        whole::Wrong::TooLarge(what, most) => format!("{what}, at most {most}"),
    })
}
