//! What the machine stops all its threads for, by its own account.
//!
//! The machine's VM thread counts each operation for which it stops the threads, and notes which the last one was, and when.
//! None of that is in the tables for debuggers: libjvm's symbols tell where it is, in builds that have them (those of
//! distributions do, from JDK 14 on). In: those addresses. Out: operations by name, and the last one's time.

use crate::memory::{Memory, Source};
use crate::structures::SYMBOLS;
use holdup_evidence::Ns;
use std::sync::Arc;

/// Operations that are looked through; JDK 17 has 76, JDK 25 has 83.
const OPERATIONS_MAX: u64 = 128;

/// Longest name, bytes.
const NAME_MAX: usize = 64;

/// Names, how often each was done, which was the last (its number), and when that began and ended.
const NAMES: &str = "_ZN12VM_Operation6_namesE";
const COUNTS: &str = "_ZN16SafepointTracing9_op_countE";
const LAST: &str = "_ZN16SafepointTracing13_current_typeE";
const BEGAN: &str = "_ZN16SafepointTracing29_last_safepoint_begin_time_nsE";
const ENDED: &str = "_ZN16SafepointTracing27_last_safepoint_end_time_nsE";
/// When all threads had stopped for it; 0 until then.
const REACHED: &str = "_ZN16SafepointTracing28_last_safepoint_sync_time_nsE";
/// Pointers to the barrier, on a word of which stopped threads wait, and to the lock on which those wait that asked for an operation.
const BARRIER: &str = "_ZN20SafepointSynchronize13_wait_barrierE";
const ASKED: &str = "VMOperation_lock";

/// What was done at safepoints.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Operations {
    /// How often each was done since the machine began; those that never were are left out. Hostile text.
    pub counted: Vec<(Arc<str>, u64)>,
    /// The last one: what it was, and when it began and ended, `CLOCK_MONOTONIC`. One that goes on ended before it began.
    pub last: Option<(Arc<str>, Ns, Ns)>,
    /// When all threads had stopped for the last; `None` while they have not, or where that is not known.
    pub reached: Option<Ns>,
    /// The address of the barrier on which stopped threads wait; `None` where it is not known.
    pub barrier: Option<u64>,
    /// The address of the lock on which those wait that asked for an operation; the same.
    pub asked: Option<u64>,
}

/// Where that is.
#[derive(Debug)]
pub(crate) struct Safepoints {
    names: Vec<Arc<str>>,
    counts: u64,
    last: u64,
    began: u64,
    ended: u64,
    reached: Option<u64>,
    barrier: Option<u64>,
    asked: Option<u64>,
}

impl Safepoints {
    /// `symbols`: the addresses of [`SYMBOLS`].
    pub(crate) fn read<S: Source>(memory: &mut Memory<S>, symbols: &[u64]) -> Option<Safepoints> {
        let at = |name: &str| {
            let index = SYMBOLS.iter().position(|symbol| *symbol == name)?;
            symbols.get(index).copied().filter(|address| *address != 0)
        };
        let first = at(NAMES)?;
        let mut names = Vec::new();
        // How many there are is not known: they end where there are no more.
        for index in 0..OPERATIONS_MAX {
            let name = memory
                .pointer(first.checked_add(index * 8)?)
                .and_then(|text| memory.c_text(text, NAME_MAX))
                .filter(|name| is_name(name));
            let Some(name) = name else { break };
            names.push(name.into());
        }
        Some(Safepoints {
            names,
            counts: at(COUNTS)?,
            last: at(LAST)?,
            began: at(BEGAN)?,
            ended: at(ENDED)?,
            reached: at(REACHED),
            barrier: at(BARRIER),
            asked: at(ASKED),
        })
    }

    pub(crate) fn operations<S: Source>(&self, memory: &mut Memory<S>) -> Option<Operations> {
        let mut counted = Vec::new();
        for (index, name) in (0..).zip(&self.names) {
            let count = memory.word(self.counts.checked_add(index * 8)?)?;
            if count > 0 {
                counted.push((Arc::clone(name), count));
            }
        }
        let last = memory.int(self.last)?;
        let name = self.names.get(usize::try_from(last).ok()?);
        let last = name.and_then(|name| {
            let (began, ended) = (memory.word(self.began)?, memory.word(self.ended)?);
            Some((Arc::clone(name), began, ended))
        });
        let reached = self.reached.and_then(|at| memory.word(at)).filter(|at| *at != 0);
        let barrier = self.barrier.and_then(|at| memory.pointer(at));
        let asked = self.asked.and_then(|at| memory.pointer(at));
        Some(Operations {
            counted,
            last,
            reached,
            barrier,
            asked,
        })
    }
}

/// `G1CollectForAllocation`.
fn is_name(text: &str) -> bool {
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    begins
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::{ASKED, BARRIER, BEGAN, COUNTS, ENDED, LAST, NAMES, REACHED, Safepoints};
    use crate::memory::Memory;
    use crate::structures::SYMBOLS;
    use holdup_runtimes::memory::Written;

    const TABLE: u64 = 0x1000;
    const TEXTS: u64 = 0x2000;
    const ACCOUNT: u64 = 0x3000;

    fn symbols() -> Vec<u64> {
        let places = [
            (NAMES, TABLE),
            (COUNTS, ACCOUNT),
            (LAST, ACCOUNT + 0x100),
            (BEGAN, ACCOUNT + 0x108),
            (ENDED, ACCOUNT + 0x110),
            (REACHED, ACCOUNT + 0x118),
            (BARRIER, ACCOUNT + 0x120),
            (ASKED, ACCOUNT + 0x128),
        ];
        let place = |symbol: &&str| places.iter().find(|(name, _)| name == symbol);
        SYMBOLS
            .iter()
            .map(|symbol| place(symbol).map_or(0, |(_, at)| *at))
            .collect()
    }

    /// Three operations, of which the second was done twice and is the last; what lies behind their names is none.
    fn machine() -> Written {
        let mut memory = Written::default();
        let texts = ["Halt\0", "ThreadDump\0", "G1CollectFull\0", "\u{1}rubbish\0"];
        for (index, text) in texts.into_iter().enumerate() {
            let at = TEXTS + index as u64 * 32;
            memory.put(at, text.as_bytes());
            memory.word(TABLE + index as u64 * 8, at);
        }
        for (index, count) in [0, 2, 1, 99].into_iter().enumerate() {
            memory.word(ACCOUNT + index as u64 * 8, count);
        }
        memory.word(ACCOUNT + 0x100, 1);
        memory.word(ACCOUNT + 0x108, 500);
        memory.word(ACCOUNT + 0x110, 700);
        memory.word(ACCOUNT + 0x118, 600);
        memory.word(ACCOUNT + 0x120, 0x7000);
        memory.word(ACCOUNT + 0x128, 0x8000);
        memory
    }

    #[test]
    fn operations_are_told_by_name_and_those_behind_the_last_are_none() {
        let mut memory = Memory::new(machine());
        let safepoints = Safepoints::read(&mut memory, &symbols()).unwrap();
        let found = safepoints.operations(&mut memory).unwrap();
        let counted: Vec<_> = found
            .counted
            .iter()
            .map(|(name, count)| (&**name, *count))
            .collect();
        assert_eq!(counted, [("ThreadDump", 2), ("G1CollectFull", 1)]);
        assert_eq!(found.last, Some(("ThreadDump".into(), 500, 700)));
        assert_eq!(
            (found.reached, found.barrier, found.asked),
            (Some(600), Some(0x7000), Some(0x8000))
        );
    }

    #[test]
    fn a_library_without_such_symbols_tells_nothing() {
        let none = vec![0; SYMBOLS.len()];
        assert!(Safepoints::read(&mut Memory::new(machine()), &none).is_none());
    }
}
