//! Which piece of code an address belongs to.
//!
//! In: an address. Out: the blob of the code cache that it lies in (a compiled method, a stub, the interpreter), found as
//! the machine itself finds it: a heap's map of segments leads back to where the blob begins. Blobs are kept by their
//! address, and looked at again when they were last seen a while ago: code is thrown away, and other code written there.

use crate::layout::{Heaps, Layout, Start};
use crate::memory::{Memory, Source};
use holdup_evidence::{Frame, Ns};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Heaps of code that are looked at; there are one or three.
const HEAPS_MAX: u64 = 16;

/// Steps back through a map of segments: each is 254 segments of 64 bytes or more, but for maps in many pieces.
const STEPS_MAX: usize = 4096;

/// Largest blob, bytes. The interpreter's is the largest, with 300 KB.
const BLOB_MAX: u64 = 1 << 26;

/// Largest frame, words. Java's stacks have a megabyte.
const FRAME_MAX: u64 = 1 << 17;

/// Longest name of a blob, bytes.
const NAME_MAX: usize = 128;

/// For so long a blob is taken to be what it was, nanoseconds: the machine frees code in turns of seconds at most, and
/// never what is on a stack.
pub(crate) const FRESH: Ns = 1_000_000_000;

/// Blobs and places in them that are kept, before all are forgotten.
const BLOBS_MAX: usize = 16_384;

/// Frames of places that are kept, before all are forgotten. A large server has some ten thousand; each can take a kilobyte.
const FRAMES_MAX: usize = 100_000;

/// A piece of code.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) start: u64,
    end: u64,
    pub(crate) kind: Kind,
    /// First address of the instructions.
    pub(crate) code: u64,
    /// What the frame takes, the return address with it, bytes; 0 where it has none of its own.
    pub(crate) frame_bytes: u64,
    /// Before this many bytes of instructions the frame is not there yet.
    pub(crate) complete: u64,
    /// When it was last seen to be this one.
    seen: Ns,
    /// The frames of places in it, by their distance from the beginning.
    pub(crate) frames: HashMap<u64, Arc<[Arc<Frame>]>>,
}

/// What a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A Java method, compiled.
    Compiled {
        method: u64,
        id: u32,
        /// Between native code and Java: there are no places in it.
        native: bool,
    },
    /// Between Java and the machine.
    Stub,
}

/// The blobs that were seen, and the heaps that they are in.
#[derive(Debug, Default)]
pub(crate) struct Code {
    heaps: Vec<Heap>,
    blobs: BTreeMap<u64, Blob>,
    /// Frames of places that were kept since all were forgotten.
    kept: usize,
}

#[derive(Debug, Clone, Copy)]
struct Heap {
    low: u64,
    high: u64,
    segments: u64,
    segments_end: u64,
    bits: u32,
}

impl Code {
    /// The blob at an address; `at` is when the address was on a stack.
    pub(crate) fn find<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        layout: &Layout,
        address: u64,
        at: Ns,
    ) -> Option<&mut Blob> {
        let known = self.blobs.range(..=address).next_back();
        let known = known.filter(|(_, blob)| address < blob.end);
        let fresh = known.is_some_and(|(_, blob)| at.saturating_sub(blob.seen) < FRESH);
        let start = match known {
            Some((start, _)) if fresh => *start,
            _ => {
                let start = self.start(memory, layout, address)?;
                let seen = read(memory, layout, start, at)?;
                if !(start..seen.end).contains(&address) {
                    return None;
                }
                self.keep(seen);
                start
            }
        };
        self.blobs.get_mut(&start)
    }

    /// Keeps the frames of a place in the blob that begins there.
    pub(crate) fn remember(&mut self, start: u64, distance: u64, frames: &Arc<[Arc<Frame>]>) {
        if self.kept.saturating_add(frames.len()) > FRAMES_MAX {
            self.blobs.values_mut().for_each(|blob| blob.frames.clear());
            self.kept = 0;
        }
        if let Some(blob) = self.blobs.get_mut(&start) {
            self.kept += frames.len();
            blob.frames.insert(distance, Arc::clone(frames));
        }
    }

    fn keep(&mut self, seen: Blob) {
        if self.blobs.len() >= BLOBS_MAX {
            self.blobs.clear();
            self.kept = 0;
        }
        match self.blobs.get_mut(&seen.start) {
            Some(known) if known.end == seen.end && known.kind == seen.kind && known.code == seen.code => {
                known.seen = seen.seen;
            }
            _ => {
                // What it lies over is gone.
                let over: Vec<u64> = self
                    .blobs
                    .range(..seen.end)
                    .rev()
                    .take_while(|(_, blob)| blob.end > seen.start)
                    .map(|(start, _)| *start)
                    .collect();
                for start in over {
                    self.blobs.remove(&start);
                }
                self.blobs.insert(seen.start, seen);
            }
        }
    }

    fn start<S: Source>(&mut self, memory: &mut Memory<S>, layout: &Layout, address: u64) -> Option<u64> {
        let within = |heap: &&Heap| (heap.low..heap.high).contains(&address);
        if !self.heaps.iter().any(|heap| within(&heap)) {
            // They grow.
            self.heaps = heaps(memory, layout).unwrap_or_default();
        }
        let heap = *self.heaps.iter().find(within)?;
        let mut segment = (address - heap.low) >> heap.bits;
        for _ in 0..STEPS_MAX {
            let at = heap.segments.checked_add(segment)?;
            if at >= heap.segments_end {
                return None;
            }
            match memory.byte(at)? {
                0 => {
                    let block = heap.low.checked_add(segment.checked_shl(heap.bits)?)?;
                    let used = memory.byte(block.checked_add(layout.cache.used)?)? != 0;
                    return block.checked_add(layout.cache.header).filter(|_| used);
                }
                u8::MAX => return None,
                back => segment = segment.checked_sub(u64::from(back))?,
            }
        }
        None
    }

    /// Whether an address is in one of the heaps that are known.
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.heaps
            .iter()
            .any(|heap| (heap.low..heap.high).contains(&address))
    }
}

fn heaps<S: Source>(memory: &mut Memory<S>, layout: &Layout) -> Option<Vec<Heap>> {
    let cache = &layout.cache;
    let addresses = match cache.heaps {
        Heaps::One(address) => vec![memory.pointer(address)?],
        Heaps::Several {
            array,
            length,
            elements,
        } => {
            let array = memory.pointer(array)?;
            let count = u64::from(memory.int(array.checked_add(length)?)?).min(HEAPS_MAX);
            let elements = memory.pointer(array.checked_add(elements)?)?;
            (0..count)
                .filter_map(|index| memory.pointer(elements.checked_add(index * 8)?))
                .collect()
        }
    };
    let heap = |address: u64| {
        let mut word = |offset: u64| memory.word(address.checked_add(offset)?);
        let heap = Heap {
            low: word(cache.low)?,
            high: word(cache.high)?,
            segments: word(cache.segments)?,
            segments_end: word(cache.segments_end)?,
            bits: memory.int(address.checked_add(cache.segment_bits)?)?,
        };
        (heap.low < heap.high && heap.bits < 32).then_some(heap)
    };
    Some(addresses.into_iter().filter_map(heap).collect())
}

fn read<S: Source>(memory: &mut Memory<S>, layout: &Layout, start: u64, at: Ns) -> Option<Blob> {
    let fields = &layout.blob;
    let field = |offset: u64| start.checked_add(offset);
    let size = u64::from(memory.int(field(fields.size)?)?);
    if size == 0 || size > BLOB_MAX {
        return None;
    }
    let name = memory.pointer(field(fields.name)?)?;
    let name = memory.c_text(name, NAME_MAX)?;
    let native = name == "native nmethod";
    let kind = if native || name == "nmethod" {
        Kind::Compiled {
            method: memory.pointer(field(layout.compiled.method)?)?,
            id: memory.int(field(layout.compiled.compile_id)?)?,
            native,
        }
    } else {
        Kind::Stub
    };
    let words = memory.int(field(fields.frame_size)?)?.cast_signed();
    let words = u64::try_from(words).unwrap_or(0);
    let complete = if fields.frame_complete_short {
        i32::from(memory.short(field(fields.frame_complete)?)?.cast_signed())
    } else {
        memory.int(field(fields.frame_complete)?)?.cast_signed()
    };
    Some(Blob {
        start,
        end: start.checked_add(size)?,
        kind,
        code: place(memory, fields.code, start, start)?,
        frame_bytes: if words <= FRAME_MAX { words * 8 } else { 0 },
        complete: u64::try_from(complete).unwrap_or(0),
        seen: at,
        frames: HashMap::new(),
    })
}

/// An address that a structure tells by a pointer, or by how far it is from `base`.
pub(crate) fn place<S: Source>(
    memory: &mut Memory<S>,
    start: Start,
    structure: u64,
    base: u64,
) -> Option<u64> {
    match start {
        Start::Pointer(offset) => memory.pointer(structure.checked_add(offset)?),
        Start::Offset(offset) => {
            let distance = memory.int(structure.checked_add(offset)?)?;
            base.checked_add(u64::from(distance))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Blob, Code, FRAMES_MAX, Kind};
    use holdup_evidence::Frame;
    use std::collections::HashMap;
    use std::sync::Arc;

    #[test]
    fn a_piece_of_code_with_any_number_of_places_takes_memory_for_so_many_frames() {
        let mut code = Code::default();
        code.keep(Blob {
            start: 0x1000,
            end: 0x2000,
            kind: Kind::Stub,
            code: 0x1000,
            frame_bytes: 8,
            complete: 0,
            seen: 0,
            frames: HashMap::new(),
        });
        let frame = Arc::new(Frame::default());
        let frames: Arc<[Arc<Frame>]> = vec![frame; 100].into();
        let places = FRAMES_MAX as u64 / 50;
        for place in 0..places {
            code.remember(0x1000, place, &frames);
        }
        let kept = &code.blobs[&0x1000].frames;
        assert!(kept.len() * 100 <= FRAMES_MAX);
        assert!(kept.contains_key(&(places - 1)), "the last one is known");
    }
}
