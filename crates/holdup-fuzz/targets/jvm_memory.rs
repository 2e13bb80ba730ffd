//! The memory of a Java virtual machine that is none, or that somebody has written over. Input: one byte, even for a layout
//! like that of JDK 17 and odd for one like that of 25; then words that are put over a made-up machine's, eleven bytes each:
//! two for where, one for how far from there, eight for what.

#[path = "../../holdup-jvm/tests/made_up/mod.rs"]
mod made_up;

use holdup_jvm::{Machine, Source};
use holdup_symbols::StackBytes;
use made_up::{HOSTILE, MadeUp, STACK};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 2_000;

/// So much of the machine's memory can be written over, bytes: its code, methods, threads and objects.
const HOSTILE_BYTES: u64 = 0xa000;

/// Long enough that everything is looked at again, nanoseconds.
const LATER: u64 = 100_000_000_000;

/// A machine whose memory becomes another's.
#[derive(Debug)]
struct Changing {
    before: MadeUp,
    after: MadeUp,
    changed: Arc<AtomicBool>,
}

impl Source for Changing {
    fn page(&mut self, address: u64, page: &mut [u8; 4096]) -> bool {
        match self.changed.load(Ordering::Relaxed) {
            false => self.before.page(address, page),
            true => self.after.page(address, page),
        }
    }
}

/// Walks the stack and looks at locks: of what was written over from the beginning, and of what was so later.
pub(crate) fn run(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let before = MadeUp::machine(if first % 2 == 0 { 17 } else { 25 });
    let mut after = before.clone();
    for [low, high, near, word @ ..] in rest.as_chunks::<11>().0 {
        let place = u64::from(u16::from_le_bytes([*low, *high])) * 8;
        if place < HOSTILE_BYTES {
            after.put(HOSTILE + place + u64::from(*near % 8), word);
        } else {
            let at = (place as usize + usize::from(*near % 8)) % (after.stack.len() - 8);
            after.stack[at..at + 8].copy_from_slice(word);
        }
    }
    for at_once in [true, false] {
        let changed = Arc::new(AtomicBool::new(at_once));
        let source = Changing {
            before: before.clone(),
            after: after.clone(),
            changed: Arc::clone(&changed),
        };
        let mut machine = Machine::new(source, MadeUp::symbols());
        let mut ask = |made: &MadeUp, interrupted, at| {
            let bytes = StackBytes {
                start: STACK,
                bytes: &made.stack,
            };
            let registers = made.registers.expect("the machine has a thread that waits");
            let walk = machine.walk(registers, interrupted, bytes, at);
            assert!(walk.is_none_or(|walk| walk.frames.len() < 1 << 20));
            let _ = machine.locks();
            let _ = machine.virtuals(at);
        };
        ask(&before, false, 0);
        changed.store(true, Ordering::Relaxed);
        ask(&after, false, LATER);
        ask(&after, true, 2 * LATER);
    }
}
