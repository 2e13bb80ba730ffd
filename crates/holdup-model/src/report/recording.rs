//! What a report of a recording has beside the rest.

use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where and when it was recorded, and how the report was put together from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// When the first segment that is reported of begins, RFC 3339.
    pub from: String,
    /// When the last one ends.
    pub to: String,
    /// How many segments it was put together from. A segment is reported of whole or not at all.
    pub segments: u32,
    /// The host's name; null where it was taken out, or where the segments are of several.
    pub host: Option<String>,
    /// Its kernel; null where segments differ.
    pub kernel: Option<String>,
    /// Its boot; null where segments differ.
    pub boot_id: Option<String>,
    /// Its time zone's name, where it reported it.
    pub zone: Option<String>,
    /// Seconds east of UTC there.
    pub zone_offset_s: i32,
    /// The version of holdup that recorded it.
    pub recorded_by: String,
    /// Whether more than secrets was taken out.
    pub redacted: bool,
    /// Whether it is of all that ran there, and nobody named what to look at.
    #[serde(default)]
    pub machine: bool,
    /// Of what alone it tells (`process nginx`), where it was asked for that.
    pub only: Vec<String>,
    /// What lies between the segments, in order.
    pub breaks: Vec<RecordingBreak>,
    /// What is estimated because segments were put together.
    pub approximate: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
    /// Segments that were unlike the others, where they were looked for.
    pub unlike: Option<Unlike>,
    /// The same for a person, with times in the reader's zone.
    pub lines: Vec<String>,
}

/// Something between two segments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingBreak {
    /// `boot`, `host`, `clock`, `suspended`, `gap`, `overlap` or `lost`.
    pub kind: String,
    /// When, RFC 3339.
    pub at: String,
    /// For how long; of a clock, by how much it was set forward. Null of a boot or a host.
    pub ns: Option<i64>,
}

/// Segments that were unlike the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unlike {
    /// How many segments were compared.
    pub compared: u32,
    /// Those that are unlike the others, most first.
    pub segments: Vec<UnlikeSegment>,
}

/// A segment that was unlike the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnlikeSegment {
    /// When it begins, RFC 3339.
    pub from: String,
    /// When it ends.
    pub to: String,
    /// Its file.
    pub file: String,
    /// How unlike it is: the length of the vector of its causes' scores.
    pub distance: f64,
    /// What it had more or less of, most unusual first.
    pub causes: Vec<UnlikeCause>,
}

/// A cause that a segment had more or less of than the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnlikeCause {
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// Thread time a second of the segment.
    pub ns_per_s: Ns,
    /// The same at the median of all.
    pub usual_ns_per_s: Ns,
    /// How many robust standard deviations it is off; negative: less.
    pub score: f64,
}
