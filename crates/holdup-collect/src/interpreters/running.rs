//! Frames of interpreters' threads that use a CPU.
//!
//! The problem: a thread that runs changes its frames while they are read, and the copy of its stack that a sample of the CPU's use takes has the
//! interpreter's own functions alone. The choice: such a thread is read twice, and the frames that are the same in both, counted from the outermost,
//! are those in which it stayed. Samples shortly before and after get them. So which function a sample is of is an estimate, as the sample itself
//! is; a function that is called again and again is met as often as it runs. In: threads that use a CPU, and the waits that they come from. Out:
//! frames.

use super::looks::keeps_event_loop;
use holdup_evidence::{Ns, ThreadId};
use holdup_jvm::Running as RunningProcess;
use holdup_proc::clocks;
use holdup_runtimes::interpreted::{Interpreted as Read, Interpreter, Thread, common};
use holdup_symbols::{Interpreted, ProcessKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Reading those that run takes one part in so many of a CPU, and so much more at once, nanoseconds: a program that starts runs for a while, and what it
/// waits for afterwards is worth more.
const SHARE: u64 = 200;
const AT_ONCE_NS: Ns = 5_000_000;

/// Threads that are read in a look.
const THREADS_MAX: usize = 8;

/// Threads whose frames are kept; then all are forgotten.
const KEPT_MAX: usize = 1_024;

/// How far from a look a sample may be that gets its frames, nanoseconds. Looks come every 20 ms at the most, and on a busy machine ten times as rarely;
/// over all of a thread's samples each look then stands for what it runs about that time.
const NEAR_NS: Ns = 200_000_000;

/// A wait of so long ends what a thread did, nanoseconds; shorter ones, as for the interpreter's lock, interrupt it.
const PAUSE_NS: Ns = 10_000_000;

/// What a thread was seen to run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ran {
    pub(super) tid: u32,
    /// When reading its frames began, and when it was over.
    pub(super) from: Ns,
    pub(super) to: Ns,
    /// Those in which it stayed, innermost first.
    pub(super) frames: Vec<Read>,
    /// Where it keeps an event loop from its events: how many tasks that has.
    pub(super) tasks: Option<u64>,
}

/// Reads the frames in which a thread stays.
pub(super) fn read(interpreter: &mut Interpreter<RunningProcess>, thread: Thread, tid: u32) -> Option<Ran> {
    let from = clocks::monotonic();
    let first = interpreter.frames_of(thread).ok()?;
    let frames = common(&first, interpreter.frames_of(thread).ok()?);
    let to = clocks::monotonic();
    if frames.is_empty() {
        return None;
    }
    let python = interpreter.python().filter(|_| keeps_event_loop(&frames));
    let tasks = python.and_then(|python| python.tasks_of_busy_loops().ok());
    Some(Ran {
        tid,
        from,
        to,
        frames,
        tasks,
    })
}

/// Who uses a CPU, and what they were seen to run.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Those that have used one since they were read.
    due: BTreeSet<(ProcessKey, u32)>,
    /// When they were read last, and what is still to be paid of what that took by then.
    began: Ns,
    unpaid: Ns,
    seen: HashMap<ThreadId, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// When it was read last, and the frames.
    at: (Ns, Ns),
    frames: Vec<Interpreted>,
    /// When its last long wait ended.
    since: Ns,
}

impl Running {
    /// A thread of an interpreter used a CPU.
    pub(super) fn used_cpu(&mut self, id: (ProcessKey, u32)) {
        if self.due.len() < THREADS_MAX {
            self.due.insert(id);
        }
    }

    /// Who is to be read now; nobody while what was read before is not paid for.
    pub(super) fn take(&mut self, now: Ns) -> BTreeSet<(ProcessKey, u32)> {
        let unpaid = self.unpaid.saturating_sub(now.saturating_sub(self.began) / SHARE);
        if unpaid > AT_ONCE_NS {
            return BTreeSet::new();
        }
        (self.began, self.unpaid) = (now, unpaid);
        std::mem::take(&mut self.due)
    }

    /// That took so much CPU time.
    pub(super) fn charge(&mut self, cpu: Ns) {
        self.unpaid = self.unpaid.saturating_add(cpu);
    }

    /// It was read meanwhile.
    pub(super) fn seen(&mut self, thread: ThreadId, at: (Ns, Ns), frames: Vec<Interpreted>) {
        let seen = self.of(thread);
        (seen.at, seen.frames) = (at, frames);
    }

    /// A wait of it has ended.
    pub(super) fn waited(&mut self, thread: ThreadId, start: Ns, end: Ns) {
        if end.saturating_sub(start) >= PAUSE_NS {
            self.of(thread).since = end;
        }
    }

    fn of(&mut self, thread: ThreadId) -> &mut Seen {
        if self.seen.len() >= KEPT_MAX && !self.seen.contains_key(&thread) {
            self.seen.clear();
        }
        self.seen.entry(thread).or_default()
    }

    /// The frames in which a thread ran about this instant; none where it was not read about then, or has waited in between.
    pub(super) fn frames(&self, thread: ThreadId, at: Ns) -> &[Interpreted] {
        let near = |seen: &&Seen| {
            let (from, to) = seen.at;
            let near = at.saturating_add(NEAR_NS) >= from && at <= to.saturating_add(NEAR_NS);
            near && from >= seen.since && at >= seen.since
        };
        let seen = self.seen.get(&thread).filter(near);
        seen.map_or(&[], |seen| &seen.frames)
    }

    /// A thread is gone.
    pub(super) fn forget(&mut self, id: (ProcessKey, u32), thread: ThreadId) {
        self.due.remove(&id);
        self.seen.remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use super::{NEAR_NS, PAUSE_NS, Running};
    use holdup_evidence::{Frame, ThreadId};
    use holdup_symbols::{Interpreted, ProcessKey};
    use std::sync::Arc;

    #[test]
    fn those_that_run_are_read_as_rarely_as_it_costs() {
        let mut running = Running::default();
        let mut read = 0;
        for now in (0..10_000_000_000_u64).step_by(20_000_000) {
            running.used_cpu((ProcessKey(1), 7));
            if !running.take(now).is_empty() {
                running.charge(2_000_000);
                read += 1;
            }
        }
        // A two-hundredth of 10 s, and the beginning.
        assert!((25..=29).contains(&read), "{read}");
    }

    #[test]
    fn a_sample_gets_the_frames_of_a_look_that_is_near_and_of_the_same_stretch() {
        let frames = || {
            let frame = Frame {
                symbol: Some("score".to_owned()),
                ..Frame::default()
            };
            vec![Interpreted {
                frame: Arc::new(frame),
                entry: true,
            }]
        };
        let (one, other) = (ThreadId(1), ThreadId(2));
        let mut running = Running::default();
        let at = 1_000_000_000;
        running.seen(one, (at, at + 50), frames());
        let found = |running: &Running, thread, at| running.frames(thread, at).len();
        assert_eq!(found(&running, one, at - NEAR_NS), 1);
        assert_eq!(found(&running, one, at + 50 + NEAR_NS), 1);
        assert_eq!(found(&running, one, at + 51 + NEAR_NS), 0);
        assert_eq!(found(&running, other, at), 0);
        // A moment's wait for a lock changes nothing; a long one does.
        running.waited(one, at + 60, at + 60 + PAUSE_NS - 1);
        assert_eq!(found(&running, one, at + 1_000), 1);
        running.waited(one, at + 60, at + 60 + PAUSE_NS);
        assert_eq!(found(&running, one, at + PAUSE_NS + 1_000), 0);
        running.seen(one, (at + 2 * PAUSE_NS, at + 2 * PAUSE_NS), frames());
        assert_eq!(found(&running, one, at + PAUSE_NS + 1_000), 1);
        assert_eq!(found(&running, one, at), 0, "it was before the wait");
    }
}
