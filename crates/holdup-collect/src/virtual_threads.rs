//! Java's virtual threads when observation ends.
//!
//! One that waits has no thread of the kernel's. In: processes, and the machines among them. Out: their virtual threads with where each
//! stands. A child reads them that can be left behind, the one that reads the machine's stacks.

use super::goroutines::Parked;
use holdup_evidence::{NotMeasured, RuntimeTask, TaskChannels, TaskDoes, TaskRuntime};
use holdup_jvm::{Does, Machines, Virtual};
use holdup_proc::{Root, names};
use holdup_symbols::{Interpreted, ProcessKey, UserStacks};
use std::time::{Duration, Instant};

/// Machines that are asked.
const MACHINES_MAX: usize = 64;

/// Virtual threads of all machines that are listed; each has a stack.
const LISTED_MAX: usize = 1_000;

/// All machines together are waited for so long.
const LIMIT: Duration = Duration::from_secs(1);

/// The runtime's words for a virtual thread that keeps its carrier while it waits, and for one that waits for a monitor.
const PINNED: &str = "pinned";
const MONITOR: &str = "monitor";

/// Adds the virtual threads of these processes.
pub(super) fn add(
    parked: &mut Parked,
    machines: &Machines,
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
) {
    let until = Instant::now() + LIMIT;
    let of_java = |(pid, _): &(u32, ProcessKey)| machines.process(*pid).is_some();
    for (pid, _) in processes.into_iter().filter(of_java).take(MACHINES_MAX) {
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
            parked.tasks.push(task(one, pid, &name, stacks));
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
        awaits: None,
        descriptor: None,
        holder: None,
    }
}
