//! Where something was read.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// An artefact, or the part of one that is of one format.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// Its name: as it was given, followed by the path within an archive.
    pub name: String,
    /// Id of its format, such as `iostat`.
    pub format: String,
    /// The host that it names itself.
    pub host: Option<String>,
    /// What it says of its own tool and version.
    pub tool: Option<String>,
    /// When it was taken, where whoever took it wrote that down: this joins its clock with others'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// The instant that its times since its start count from, where a line of it tells both.
    pub started: Option<super::When>,
    /// Lines of it that the kernel wrote: what a log that says nothing of a trouble can rule out.
    pub kernel_lines: u64,
    /// Lines of it that the service manager wrote.
    pub manager_lines: u64,
}

/// An instant on two clocks at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taken {
    /// Nanoseconds since the epoch.
    pub unix: Option<i64>,
    /// Nanoseconds since the machine's boot.
    pub since_boot: Option<Ns>,
}

/// A place in an artefact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Quote {
    /// Place of the artefact in the list of sources.
    pub source: u32,
    /// Line, from 1; 0 where the format has none.
    pub line: u64,
}
