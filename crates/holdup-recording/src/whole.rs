//! The whole of a segment as packed JSON, and back.
//!
//! In: attribution and facts. Out: one zstd frame with a checksum. On the way back everything is bounded before it is
//! believed: a frame may be anybody's, and a few bytes of it can claim to be gigabytes.

use crate::Segment;
use crate::stacks::{Misfit, Stacks};
use holdup_evidence::SystemFacts;
use holdup_evidence::host::HostLook;
use holdup_model::attributed::Attributed;
use holdup_model::timeline::Timeline;
use ruzstd::decoding::StreamingDecoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{Read, Write};

/// The largest whole, unpacked, bytes: an hour of a thousand busy threads comes to a tenth of it.
pub(crate) const MOST_UNPACKED: u64 = 64 << 20;

/// The most objects in one: at some 600 bytes for the largest kind these take 300 MB, whatever little they took in the file.
pub(crate) const MOST_OBJECTS: usize = 500_000;

/// Values of all kinds, those of lists too. One is as little as two bytes of text and takes a hundred in memory.
const MOST_VALUES: usize = 8_000_000;

/// zstd's level: 3 is its own default, and packs a segment of 300 KB in 2 ms.
const LEVEL: i32 = 3;

#[derive(Serialize, Deserialize)]
struct Whole<'a> {
    attributed: Cow<'a, Attributed>,
    facts: Cow<'a, SystemFacts>,
    stacks: Stacks,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    look: Option<Cow<'a, HostLook>>,
}

/// What is wrong with a packed whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It can't be unpacked, or is not what was packed.
    Damaged(String),
    /// There is more of something than may be: what, and how much may be.
    TooLarge(&'static str, u64),
}

/// Packs all but the time line, which is by far the most of it, and which sums over many segments do without.
pub(crate) fn pack(segment: &Segment) -> std::io::Result<Vec<u8>> {
    let mut attributed = segment.attributed.clone();
    attributed.timeline = Timeline::default();
    let stacks = Stacks::take_from(&mut attributed);
    packed(&Whole {
        attributed: Cow::Owned(attributed),
        facts: Cow::Borrowed(&segment.facts),
        stacks,
        look: segment.look.as_ref().map(Cow::Borrowed),
    })
}

/// Packs a time line.
pub(crate) fn pack_pieces(timeline: &Timeline) -> std::io::Result<Vec<u8>> {
    packed(timeline)
}

fn packed(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.write_all(&serde_json::to_vec(value)?)?;
    encoder.finish()
}

/// Unpacks.
pub(crate) fn unpack(packed: &[u8]) -> Result<(Attributed, SystemFacts, Option<HostLook>), Wrong> {
    understood(&unpacked(packed)?)
}

/// Reads what stands in a whole once it is unpacked.
pub(crate) fn understood(text: &[u8]) -> Result<(Attributed, SystemFacts, Option<HostLook>), Wrong> {
    let whole: Whole<'_> = value(text)?;
    let mut attributed = whole.attributed.into_owned();
    whole
        .stacks
        .put_into(&mut attributed)
        .map_err(|misfit| match misfit {
            Misfit::Number => Wrong::Damaged("its stacks are those of something else".to_owned()),
            Misfit::TooMany => Wrong::TooLarge("frames", crate::stacks::MOST_FRAMES as u64),
        })?;
    let look = whole.look.map(Cow::into_owned);
    Ok((attributed, whole.facts.into_owned(), look))
}

/// Unpacks a time line.
pub(crate) fn unpack_pieces(packed: &[u8]) -> Result<Timeline, Wrong> {
    value(&unpacked(packed)?)
}

fn value<T: DeserializeOwned>(text: &[u8]) -> Result<T, Wrong> {
    if text.iter().filter(|byte| **byte == b'{').count() > MOST_OBJECTS {
        return Err(Wrong::TooLarge("objects", MOST_OBJECTS as u64));
    }
    if values(text) > MOST_VALUES {
        return Err(Wrong::TooLarge("values", MOST_VALUES as u64));
    }
    serde_json::from_slice(text).map_err(|error| Wrong::Damaged(format!("its contents: {error}")))
}

/// How many values a JSON text has at most: each but the first of a list or an object follows a comma, and that one its bracket. Those in
/// strings count too, which are few.
pub(crate) fn values(text: &[u8]) -> usize {
    text.iter()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
        .count()
}

fn unpacked(packed: &[u8]) -> Result<Vec<u8>, Wrong> {
    let damaged =
        |error: &dyn std::fmt::Display| Wrong::Damaged(format!("its contents don't unpack: {error}"));
    let mut decoder = StreamingDecoder::new(packed).map_err(|error| damaged(&error))?;
    let mut text = Vec::new();
    (&mut decoder)
        .take(MOST_UNPACKED + 1)
        .read_to_end(&mut text)
        .map_err(|error| damaged(&error))?;
    if text.len() as u64 > MOST_UNPACKED {
        return Err(Wrong::TooLarge("bytes unpacked", MOST_UNPACKED));
    }
    let (found, counted) = (
        decoder.decoder.get_checksum_from_data(),
        decoder.decoder.get_calculated_checksum(),
    );
    match found.is_some() && found == counted {
        true => Ok(text),
        false => Err(Wrong::Damaged("its contents have another checksum".to_owned())),
    }
}
