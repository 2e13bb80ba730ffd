//! Which methods a place in compiled code stands for.
//!
//! The compiler puts methods into those that call them. For each place where a thread can be stopped or call, it leaves a
//! chain of scopes: a method and a bytecode, and the scope that it was put into. In: a compiled method and a place in it.
//! Out: its frames, innermost first.

use crate::code::{Blob, Kind, place};
use crate::compressed::Numbers;
use crate::layout::{Layout, Metadata, Start};
use crate::memory::{Memory, Source};
use crate::methods::Methods;
use holdup_evidence::{Frame, Ns};
use std::sync::Arc;

/// Places of one compiled method; the largest have some ten thousand.
const PLACES_MAX: u64 = 1 << 22;

/// Scopes within each other. Compilers stop at 15 or less by themselves.
const DEPTH_MAX: usize = 256;

/// What a bytecode's number is reported with: one is added, so that "before the first" is 0.
const BYTECODE_BIAS: u32 = 1;

/// The frames of a place in a compiled method. `exact`: the place is where a call returns to, or none; else it is where the
/// thread was interrupted, and the next place behind it stands for it.
pub(crate) fn frames<S: Source>(
    memory: &mut Memory<S>,
    layout: &Layout,
    methods: &mut Methods,
    blob: &Blob,
    pc: u64,
    exact: bool,
    at: Ns,
) -> Option<Vec<Arc<Frame>>> {
    let Kind::Compiled { method, native, .. } = blob.kind else {
        return None;
    };
    let whole = |memory: &mut Memory<S>, methods: &mut Methods| {
        methods
            .frame(memory, layout, method, None, at)
            .map(|frame| vec![frame])
    };
    if native {
        return whole(memory, methods);
    }
    let found = scope(memory, layout, blob, pc, exact)
        .and_then(|scope| chain(memory, layout, methods, blob, scope, at));
    // Where nothing is reported of the place, the method is still known.
    found.or_else(|| whole(memory, methods))
}

/// Where the scope of a place is described, as an offset; found by halves, for places are in order.
fn scope<S: Source>(
    memory: &mut Memory<S>,
    layout: &Layout,
    blob: &Blob,
    pc: u64,
    exact: bool,
) -> Option<u32> {
    let fields = &layout.compiled;
    let base = base(memory, layout, blob)?;
    let first = place(memory, Start::Offset(fields.pcs), blob.start, base)?;
    let end = place(memory, Start::Offset(fields.pcs_end), blob.start, base)?;
    let count = end.checked_sub(first)? / fields.pc_size;
    if count > PLACES_MAX {
        return None;
    }
    let wanted = i32::try_from(pc.checked_sub(blob.code)?).ok()?;
    let mut offset_at = |index: u64| {
        let offset = memory.int(first.checked_add(index * fields.pc_size + fields.pc_offset)?)?;
        Some(offset.cast_signed())
    };
    // The first place that is not before the wanted one.
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if offset_at(middle)? < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if low >= count || (exact && offset_at(low)? != wanted) {
        return None;
    }
    let scope = memory.int(first.checked_add(low * fields.pc_size + fields.pc_scope)?)?;
    Some(scope).filter(|scope| *scope != 0)
}

fn chain<S: Source>(
    memory: &mut Memory<S>,
    layout: &Layout,
    methods: &mut Methods,
    blob: &Blob,
    mut scope: u32,
    at: Ns,
) -> Option<Vec<Arc<Frame>>> {
    let base = base(memory, layout, blob)?;
    let scopes = place(memory, layout.compiled.scopes, blob.start, base)?;
    let metadata = metadata(memory, layout, blob)?;
    let mut frames: Vec<Arc<Frame>> = Vec::new();
    while scope != 0 {
        if frames.len() >= DEPTH_MAX {
            return None;
        }
        let mut numbers = Numbers::at(scopes.checked_add(u64::from(scope))?, layout.version);
        let outer = numbers.next(memory)?;
        // Metadata are counted from one.
        let number = u64::from(numbers.next(memory)?.checked_sub(1)?);
        // Before its first bytecode a method that locks as it begins is at its first line.
        let bytecode = Some(numbers.next(memory)?.saturating_sub(BYTECODE_BIAS));
        let method = memory.pointer(metadata.checked_add(number * 8)?)?;
        let frame = methods.frame(memory, layout, method, bytecode, at)?;
        frames.push(if outer == 0 {
            frame
        } else {
            Arc::new(Frame {
                inlined: true,
                ..(*frame).clone()
            })
        });
        // A scope is described behind those that it is in, never before: no chain goes round.
        if outer >= scope {
            return None;
        }
        scope = outer;
    }
    Some(frames)
}

/// What the offsets of debug information count from.
fn base<S: Source>(memory: &mut Memory<S>, layout: &Layout, blob: &Blob) -> Option<u64> {
    match layout.compiled.apart {
        Some(offset) => memory.pointer(blob.start.checked_add(offset)?),
        None => Some(blob.start),
    }
}

fn metadata<S: Source>(memory: &mut Memory<S>, layout: &Layout, blob: &Blob) -> Option<u64> {
    match layout.compiled.metadata {
        Metadata::Within(offset) => place(memory, Start::Offset(offset), blob.start, blob.start),
        Metadata::Behind(data, relocations) => {
            let data = memory.pointer(blob.start.checked_add(data)?)?;
            let relocations = memory.int(blob.start.checked_add(relocations)?)?;
            data.checked_add(u64::from(relocations))
        }
    }
}
