//! What interrupts take of the CPUs that are used: the kernel's ticks count that time as the thread's own.
//!
//! In: how many interrupts each CPU serves, and how long threads that are followed ran where. Where there are many, a thread of holdup's
//! own looks at the clock on that CPU for a moment, again and again: what lies between two looks and is neither its own doing nor
//! another's turn is interrupts, with what the CPU and a hypervisor need to take them. Out: the part of a CPU that they take, by kind.
//! An estimate, and reported as one.
//!
//! Who would miss it: a user who may not trace, on a CPU that interrupts take up (a busy network card, a forgotten profiler's timers). Without
//! it that time counts as the program's own and the report blames its code, as it does of the scenario `interrupts-take-the-cpu`.

use crate::clocks as machine;
use crate::interrupts::{self, Counts};
use crate::root::{Root, text_if_there};
use crate::sampling::clocks::turns;
use holdup_evidence::{INTERRUPTS, Ns, ThreadId};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver};

/// Interrupts a second from which a CPU is worth a look: at a microsecond each, the least that one takes, a hundredth of it.
const MIN_INTERRUPTS_PER_SECOND: u64 = 10_000;

/// Between two readings of the counts, nanoseconds, and so many times what reading took, on machines with many CPUs.
const EVERY: Ns = 100_000_000;
const TIMES: Ns = 1_000;

/// Between two measurements of a CPU, nanoseconds: one takes two thousandths of that.
const AGAIN: Ns = 1_000_000_000;

/// How long a measurement holds, nanoseconds.
const GOOD_FOR: Ns = 3 * AGAIN;

/// A CPU is worth it that threads had for this part of the time.
const USED: u64 = 5;

/// Windows of a measurement in which nobody else had a turn, how many are tried for them, and how long each is, nanoseconds.
const WINDOWS: usize = 8;
const TRIED: usize = 32;
const WINDOW: Ns = 250_000;

/// A measurement that was given no more of the CPU than this in all is given up, nanoseconds.
const PATIENCE: Ns = 500_000_000;

/// Shorter gaps between two looks are the look's own; longer ones another thread's turn.
const MIN_GAP_NS: Ns = 700;
const MAX_GAP_NS: Ns = 100_000;

/// Where a look at the clock takes longer than this, nanoseconds, gaps can't be distinguished from looks.
const SLOW_CLOCK: Ns = 300;

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Interrupted {
    /// When the counts were read last, what they were, and when they are due.
    read: Option<(Ns, BTreeMap<u32, Counts>)>,
    due: Ns,
    /// How long threads ran on each CPU since then.
    used: BTreeMap<u32, Ns>,
    /// By CPU: when it was measured, the part that they take, and how many of each kind there were.
    measured: BTreeMap<u32, (Ns, f64)>,
    kinds: BTreeMap<u32, Counts>,
    /// How long which threads ran where since there are many and it is not known what they take.
    before: BTreeMap<(ThreadId, u32), Ns>,
    under_way: Option<(u32, Receiver<Option<f64>>)>,
    /// Interrupts a second where that could not be measured, most.
    unmeasured: Option<(u32, u64)>,
}

impl Interrupted {
    /// A thread ran on a CPU for so long. Returns what of it interrupts took, by kind; with what they took before that was measured, where
    /// there were as many all the while.
    pub(super) fn ran(&mut self, (thread, cpu): (ThreadId, u32), ns: Ns, now: Ns) -> [Ns; INTERRUPTS.len()] {
        let used = self.used.entry(cpu).or_default();
        *used = used.saturating_add(ns);
        let measured = self.measured.get(&cpu);
        let part = measured.filter(|(at, _)| now.saturating_sub(*at) < GOOD_FOR);
        let (Some((_, part)), Some(kinds)) = (part, self.kinds.get(&cpu)) else {
            let before = self.before.entry((thread, cpu)).or_default();
            *before = before.saturating_add(ns);
            return [0; INTERRUPTS.len()];
        };
        let ns = ns.saturating_add(self.before.remove(&(thread, cpu)).unwrap_or_default());
        split((ns as f64 * part) as Ns, kinds)
    }

    /// A thread has ended.
    pub(super) fn forget(&mut self, thread: ThreadId) {
        self.before.retain(|(of, _), _| *of != thread);
    }

    /// A CPU's interrupts a second where what they took could not be measured.
    pub(super) fn unmeasured(&self) -> Option<(u32, u64)> {
        self.unmeasured
    }

    /// Reads and measures, if that is due.
    pub(super) fn look(&mut self, root: &Root, now: Ns) {
        self.take_measured(now);
        if now < self.due {
            return;
        }
        let counts = interrupts::read(root);
        let took = machine::monotonic().saturating_sub(now);
        self.due = now + EVERY.max(took.saturating_mul(TIMES));
        let Some((before, old)) = self.read.replace((now, counts.clone())) else {
            return;
        };
        let elapsed = now.saturating_sub(before).max(1);
        let used = std::mem::take(&mut self.used);
        let mut most: Option<(u32, u64)> = None;
        for (cpu, count) in counts {
            let Some(old) = old.get(&cpu) else {
                continue;
            };
            let passed: Counts = std::array::from_fn(|kind| count[kind].saturating_sub(old[kind]));
            let rate = a_second(passed.iter().sum(), elapsed);
            self.kinds.insert(cpu, passed);
            if rate < MIN_INTERRUPTS_PER_SECOND {
                self.measured.remove(&cpu);
                self.before.retain(|(_, at), _| *at != cpu);
                continue;
            }
            let used = used.get(&cpu).copied().unwrap_or_default();
            let measured = self.measured.get(&cpu).map(|(at, _)| *at);
            let due = measured.is_none_or(|at| now.saturating_sub(at) >= AGAIN);
            if due && used.saturating_mul(USED) >= elapsed && most.is_none_or(|(_, more)| rate > more) {
                most = Some((cpu, rate));
            }
        }
        if let (Some((cpu, rate)), None) = (most, &self.under_way) {
            match measure(cpu) {
                Some(measurement) => self.under_way = Some((cpu, measurement)),
                None => self.unmeasured = Some((cpu, rate)),
            }
        }
    }

    fn take_measured(&mut self, now: Ns) {
        let Some((cpu, measurement)) = &self.under_way else {
            return;
        };
        let came = match measurement.try_recv() {
            Ok(came) => came,
            Err(mpsc::TryRecvError::Empty) => return,
            Err(mpsc::TryRecvError::Disconnected) => None,
        };
        match came {
            Some(part) => {
                self.measured.insert(*cpu, (now, part));
            }
            None => {
                let counts: u64 = self.kinds.get(cpu).map_or(0, |kinds| kinds.iter().sum());
                self.unmeasured = Some((*cpu, a_second(counts, EVERY)));
            }
        }
        self.under_way = None;
    }
}

fn a_second(count: u64, elapsed: Ns) -> u64 {
    const SECOND: u128 = 1_000_000_000;
    u64::try_from(u128::from(count) * SECOND / u128::from(elapsed.max(1))).unwrap_or(u64::MAX)
}

/// By how many there were of each kind: what one of each takes is not known.
fn split(ns: Ns, kinds: &Counts) -> [Ns; INTERRUPTS.len()] {
    let all: u128 = kinds.iter().map(|count| u128::from(*count)).sum();
    kinds.map(|count| {
        let part = u128::from(ns) * u128::from(count) / all.max(1);
        Ns::try_from(part).unwrap_or(ns)
    })
}

/// Measures a CPU on a thread of its own: what interrupts take of it, 0 to 1. A thread is enough: it reads the clock and its own
/// `schedstat`, and can't be stuck.
fn measure(cpu: u32) -> Option<Receiver<Option<f64>>> {
    let (tell, found) = mpsc::channel();
    let measure = move || {
        tell.send(on(cpu)).ok();
    };
    std::thread::Builder::new()
        .name("interrupts".to_owned())
        .spawn(measure)
        .ok()?;
    Some(found)
}

fn on(cpu: u32) -> Option<f64> {
    let mut set = CpuSet::new();
    set.set(usize::try_from(cpu).ok()?).ok()?;
    sched_setaffinity(Pid::from_raw(0), &set).ok()?;
    let begun = machine::monotonic();
    let root = Root::system();
    let had = || Some(turns(&text_if_there(&root.proc.join("thread-self/schedstat"))?)?.count);
    let (mut sum, mut clean) = ((0, 0), 0);
    for _ in 0..TRIED {
        let before = had()?;
        let (taken, lasted) = window(machine::monotonic)?;
        // A turn of another thread's may be as short as an interrupt.
        if had()? == before {
            sum = (sum.0 + taken, sum.1 + lasted);
            clean += 1;
        }
        if clean == WINDOWS {
            return Some(sum.0 as f64 / sum.1.max(1) as f64);
        }
        if machine::monotonic().saturating_sub(begun) > PATIENCE {
            return None;
        }
    }
    None
}

/// Looks at the clock until a window of its own time is over: what was taken of it, and how long it was. `None` where the clock is slow.
fn window(mut clock: impl FnMut() -> Ns) -> Option<(Ns, Ns)> {
    let (mut taken, mut lasted, mut quickest) = (0, 0, Ns::MAX);
    let mut last = clock();
    while lasted < WINDOW {
        let now = clock();
        let gap = now.saturating_sub(last);
        last = now;
        if gap >= MAX_GAP_NS {
            continue;
        }
        lasted += gap.max(1);
        quickest = quickest.min(gap.max(1));
        if gap > MIN_GAP_NS {
            taken += gap;
        }
    }
    (quickest < SLOW_CLOCK).then_some((taken, lasted))
}

#[cfg(test)]
mod tests {
    use super::{Interrupted, split, window};
    use holdup_evidence::ThreadId;

    /// A clock that moves on by these steps, again and again.
    fn clock(steps: &'static [u64]) -> impl FnMut() -> u64 {
        let mut steps = steps.iter().cycle();
        let mut now = 0;
        move || {
            now += steps.next().unwrap();
            now
        }
    }

    #[test]
    fn gaps_are_interrupts_if_they_are_neither_looks_nor_turns() {
        let part = |steps| window(clock(steps)).map(|(taken, lasted)| taken as f64 / lasted as f64);
        assert_eq!(part(&[50]), Some(0.0));
        let half = part(&[50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 1_000, 500]).unwrap();
        assert!((0.45..0.55).contains(&half), "{half}");
        let with_turns = part(&[50, 4_000_000]);
        assert_eq!(with_turns, Some(0.0), "another thread's turn");
        assert_eq!(part(&[900]), None, "a clock that is slow to read");
    }

    #[test]
    fn what_they_take_is_split_by_how_many_there_are() {
        assert_eq!(split(100, &[0, 3, 1, 0, 0, 0]), [0, 75, 25, 0, 0, 0]);
        assert_eq!(split(100, &[0; 6]), [0; 6]);
    }

    #[test]
    fn what_was_not_measured_is_nothing() {
        let mut interrupted = Interrupted::default();
        let of = |interrupted: &mut Interrupted, cpu, now| interrupted.ran((ThreadId(3), cpu), 1_000, now);
        assert_eq!(of(&mut interrupted, 0, 5), [0; 6]);
        interrupted.measured.insert(0, (5, 0.5));
        interrupted.kinds.insert(0, [0, 9, 0, 0, 0, 0]);
        assert_eq!(of(&mut interrupted, 0, 6), [0, 1_000, 0, 0, 0, 0], "and before");
        assert_eq!(of(&mut interrupted, 0, 6), [0, 500, 0, 0, 0, 0]);
        assert_eq!(of(&mut interrupted, 1, 6), [0; 6]);
        assert_eq!(of(&mut interrupted, 0, u64::MAX), [0; 6], "long ago");
    }
}
