//! Java's virtual threads and pools of threads when observation ends, and which virtual threads were in the same place at an earlier look.
//!
//! One that waits has no thread of the kernel's. In: processes, and the machines among them. Out: their virtual threads with where each
//! stands, and the workers and queues of their pools. A child reads them that can be left behind, the one that reads the machine's stacks.

use super::goroutines::Parked;
use holdup_evidence::{Frame, NotMeasured, Ns, RuntimeTask, TaskChannels, TaskDoes, TaskRuntime, WorkerPool};
use holdup_jvm::{Does, Machines, Owner, Virtual};
use holdup_proc::{Root, clocks, names};
use holdup_symbols::{Interpreted, ProcessKey, UserStacks};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Machines that are asked.
const MACHINES_MAX: usize = 64;

/// Virtual threads of all machines that are listed; each has a stack.
const LISTED_MAX: usize = 1_000;

/// All machines together are waited for so long, on a machine where they get no CPU; else they answer within milliseconds.
const LIMIT: Duration = Duration::from_secs(3);

/// The same at the first look: the program is observed already.
const FIRST_LIMIT: Duration = Duration::from_secs(1);

/// A process without virtual threads is looked at so often for the first ones.
const TRIES_MAX: u32 = 4;

/// The runtime's words for a virtual thread that keeps its carrier while it waits, and for one that waits for a monitor.
const PINNED: &str = "pinned";
const MONITOR: &str = "monitor";

/// What a virtual thread does, and where it stands, innermost first.
type Stand = (Does, Vec<Arc<Frame>>);

/// The first look at virtual threads that wait.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    /// When each process was looked at, and how often that was tried.
    looked: BTreeMap<u32, (Option<Ns>, u32)>,
    /// By process and number.
    stands: BTreeMap<(u32, u64), Stand>,
}

impl FirstLook {
    /// Looks at the virtual threads of these processes, where nobody has found any before.
    pub(super) fn look(
        &mut self,
        machines: &Machines,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) {
        let until = Instant::now() + FIRST_LIMIT;
        let of_java = |(pid, _): &(u32, ProcessKey)| machines.process(*pid).is_some();
        for (pid, _) in processes.into_iter().filter(of_java).take(MACHINES_MAX) {
            let (at, tries) = self.looked.entry(pid).or_default();
            if at.is_some() || *tries >= TRIES_MAX {
                continue;
            }
            *tries += 1;
            let read = machines.virtuals(pid, until).unwrap_or_default();
            let waiting = read.listed.into_iter().filter(|one| waits(one.does));
            let room = LISTED_MAX.saturating_sub(self.stands.len());
            for one in waiting.take(room) {
                // When it is over: each stood there by then.
                *at = Some(clocks::monotonic());
                self.stands.insert((pid, one.id), (one.does, one.frames));
            }
        }
    }

    /// Since when this one is known to stand as it does now.
    fn stood_since(&self, pid: u32, now: &Virtual) -> Option<Ns> {
        let (does, frames) = self.stands.get(&(pid, now.id))?;
        let same = waits(now.does) && *does == now.does && *frames == now.frames && !frames.is_empty();
        self.looked.get(&pid)?.0.filter(|_| same)
    }
}

fn waits(does: Does) -> bool {
    match does {
        Does::Pinned | Does::Parked | Does::Blocked => true,
        Does::Runs | Does::Ready => false,
    }
}

/// Adds the virtual threads of these processes, and their pools of threads. `tid_of`: the id of a thread that has another in its pid
/// namespace.
pub(super) fn add(
    parked: &mut Parked,
    machines: &Machines,
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    first: &FirstLook,
    tid_of: impl Fn(ProcessKey, u32) -> Option<u32>,
) {
    let until = Instant::now() + LIMIT;
    let of_java = |(pid, _): &(u32, ProcessKey)| machines.process(*pid).is_some();
    for (pid, process) in processes.into_iter().filter(of_java).take(MACHINES_MAX) {
        let tid_of = |inside| tid_of(process, inside);
        let pools = machines.pools(pid, until).unwrap_or_default().into_iter();
        parked.pools.extend(pools.map(|pool| WorkerPool {
            pid,
            workers: pool.workers.into_iter().filter_map(tid_of).collect(),
            most: pool.most,
            queued: pool.queued.try_into().unwrap_or(u64::MAX),
            await_queued: pool.await_queued.into_iter().filter_map(tid_of).collect(),
        }));
        let name = names::comm(&Root::system(), pid).unwrap_or_default();
        // The first answer may be late: what the machine says of itself is read for it.
        let read = machines
            .virtuals(pid, until)
            .or_else(|| machines.virtuals(pid, until));
        let Some(read) = read else { continue };
        let room = LISTED_MAX.saturating_sub(parked.tasks.len());
        let left = u64::try_from(read.listed.len().saturating_sub(room)).unwrap_or(u64::MAX);
        let more = read.more.saturating_add(left);
        if more > 0 {
            parked.not_measured.push(NotMeasured {
                what: format!("places of {more} more virtual threads of {name} (pid {pid})"),
                why: format!("a report lists {LISTED_MAX} tasks"),
                fix: "give `holdup read` a dump of all threads (`jcmd PID Thread.dump_to_file FILE`)".into(),
            });
        }
        for one in read.listed.into_iter().take(room) {
            let stood_since = first.stood_since(pid, &one);
            let (holder, holder_thread) = match one.owner {
                Some(Owner::Virtual(number)) => (Some(number), None),
                Some(Owner::Thread(inside)) => (None, tid_of(inside)),
                None => (None, None),
            };
            parked.tasks.push(RuntimeTask {
                stood_since,
                holder,
                holder_thread,
                ..task(one, pid, &name, stacks)
            });
        }
    }
}

fn task(one: Virtual, pid: u32, process: &str, stacks: &mut UserStacks) -> RuntimeTask {
    let frames: Vec<Interpreted> = one
        .frames
        .into_iter()
        .map(|frame| Interpreted { frame, entry: true })
        .collect();
    RuntimeTask {
        runtime: TaskRuntime::Java,
        pid,
        process: process.to_owned(),
        id: one.id,
        does: match one.does {
            Does::Runs => TaskDoes::Runs,
            Does::Ready => TaskDoes::Ready,
            Does::Pinned | Does::Parked | Does::Blocked => TaskDoes::Waits,
        },
        reason: match one.does {
            Does::Pinned => Some(PINNED.to_owned()),
            Does::Blocked => Some(MONITOR.to_owned()),
            Does::Runs | Does::Ready | Does::Parked => None,
        },
        since: None,
        stood_since: None,
        channels: TaskChannels::default(),
        stack: (!frames.is_empty()).then(|| stacks.intern_interpreted(&frames)),
        name: one.name,
        blocks: None,
        started_by: None,
        awaits: None,
        descriptor: None,
        peer: None,
        opened: None,
        called_in: None,
        holder: None,
        holder_thread: None,
        datagrams: false,
    }
}
