//! Profiles: stacks with weights, whoever took them.
//!
//! In: stacks as text, outermost frame first and `;` between them, with a weight. Out: [`Samples`]. Equal stacks are one;
//! of too many the lightest are forgotten, and their weight stays in the total.

pub(crate) mod collapsed;
pub(super) mod function_table;
pub(super) mod jfr;
pub(super) mod jfr_print;
mod kernel_work;
pub(super) mod line_profiler;
pub(super) mod off_cpu;
pub(super) mod perf_report;
pub(super) mod perf_script;
pub(super) mod pprof;
pub(super) mod v8_ticks;

use crate::gather::Out;
use foldhash::fast::RandomState;
use holdup_evidence::observed::{Quote, Samples, Weight};
use std::collections::HashMap;
use twox_hash::XxHash3_128;

/// Stacks that are remembered while a profile is read; then the lighter half is forgotten.
const REMEMBERED: usize = 100_000;
/// Bytes of all of them: those of a large Java server's profile take some thirty million.
const REMEMBERED_BYTES: usize = 64 << 20;
/// Stacks that are kept of a profile.
const KEPT: usize = 5_000;
/// Frames of a stack that are kept, from the innermost.
const FRAMES: usize = 512;

/// Where a thread parks for a lock that another has, as the innermost frame of a wait.
const LOCK_PARKED: &str = "ReentrantLock$Sync.lock";

/// Kernel functions that a thread that is off the CPU ends in.
const SWITCHED: [&str; 5] = [
    "finish_task_switch",
    "__schedule",
    "schedule",
    "__switch_to",
    "__traceiter_sched_switch",
];
/// Share of the weight, in percent, that must end in these to make a profile one of waiting.
const MIN_WAITING_PERCENT: u64 = 90;

/// A stack and its weight.
struct Weighed {
    stack: Box<[u8]>,
    weight: u64,
}

/// Adds up stacks.
#[derive(Default)]
struct Folded {
    /// By the XXH3 hash of a stack, by which alone it is known again: to compare a stack with the one that was kept, byte by byte, is
    /// to fetch it from memory, which takes longer than all else. The hash is no secret; who makes two stacks that have the same finds
    /// them added up in his own answer.
    weights: HashMap<u128, Weighed, RandomState>,
    /// Bytes of all stacks.
    bytes: usize,
    total: u64,
    forgotten: u64,
}

impl Folded {
    /// Adds a stack, outermost frame first.
    fn add(&mut self, stack: &[u8], weight: u64) {
        self.total = self.total.saturating_add(weight);
        let mark = XxHash3_128::oneshot(stack);
        if let Some(known) = self.weights.get_mut(&mark) {
            known.weight = known.weight.saturating_add(weight);
            return;
        }
        while self.weights.len() >= REMEMBERED
            || self.bytes.saturating_add(stack.len()) > REMEMBERED_BYTES && !self.weights.is_empty()
        {
            self.forget();
        }
        self.bytes += stack.len();
        let stack = stack.into();
        self.weights.insert(mark, Weighed { stack, weight });
    }

    /// Forgets the lighter half.
    fn forget(&mut self) {
        let mut all: Vec<u64> = self.weights.values().map(|known| known.weight).collect();
        let middle = all.len() / 2;
        let (_, median, _) = all.select_nth_unstable(middle);
        let median = *median;
        let mut room = middle;
        let before = self.weights.len();
        self.weights.retain(|_, known| {
            let stays = known.weight > median || known.weight == median && room > 0;
            room = room.saturating_sub(usize::from(stays));
            if !stays {
                self.bytes -= known.stack.len();
            }
            stays
        });
        self.forgotten += (before - self.weights.len()) as u64;
    }

    /// What came of it; `waiting` and `weight` where the format tells.
    fn finish(self, out: &mut Out<'_>, waiting: Option<bool>, weight: Weight, quote: Quote) {
        if self.total == 0 {
            return;
        }
        let all = self.weights.into_values();
        let mut all: Vec<(Box<[u8]>, u64)> = all.map(|known| (known.stack, known.weight)).collect();
        all.sort_unstable_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
        out.account().left_out += self.forgotten + all.len().saturating_sub(KEPT) as u64;
        let asleep: u64 = all
            .iter()
            .filter(|(stack, _)| ends_asleep(stack))
            .map(|(_, weight)| *weight)
            .fold(0, u64::saturating_add);
        let mostly = u128::from(asleep) * 100 >= u128::from(self.total) * u128::from(MIN_WAITING_PERCENT);
        all.truncate(KEPT);
        let stacks = all
            .into_iter()
            .map(|(stack, weight)| {
                let text = String::from_utf8_lossy(&stack);
                // `-` and `--` stand between user and kernel.
                let frames = text
                    .rsplit(';')
                    .filter(|frame| !matches!(*frame, "-" | "--" | ""));
                (out.stack(frames.take(FRAMES)), weight)
            })
            .collect();
        out.samples(Samples {
            source: 0,
            weight,
            waiting: waiting.or(mostly.then_some(true)),
            stacks,
            total: self.total,
            quote,
        });
    }
}

/// Whether the innermost frame is where the scheduler takes a thread off its CPU.
fn ends_asleep(stack: &[u8]) -> bool {
    let innermost = stack.rsplit(|byte| *byte == b';').next().unwrap_or_default();
    let name = innermost.strip_suffix(b"_[k]").unwrap_or(innermost);
    // The compiler adds `.isra.0`, perf an offset and the module.
    let name = name.split(|byte| matches!(byte, b'.' | b'+' | b' ')).next();
    let name = name.unwrap_or_default();
    SWITCHED.iter().any(|function| name == function.as_bytes())
}
