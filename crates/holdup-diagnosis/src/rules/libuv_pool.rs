//! libuv's pool of threads, in which Node and others have files, names and cryptography done: whether all of it is taken.
//!
//! In: waits with their stacks. Out: the waits that all threads of one process's pool were in at once. What is asked of the pool meanwhile
//! queues, however quick it is by itself; the queue is in the program's memory and has no thread, so that it is not seen.

use super::{Run, Waits};
use holdup_evidence::Ns;
use holdup_model::attributed::AttributedWait;
use std::collections::{BTreeMap, BTreeSet};

/// The function that a thread of the pool runs, under the start of a thread; what it waits in for work; and the name that newer
/// versions of libuv give it.
const WORKER: &str = "worker";
const STARTS: [&str; 2] = ["start_thread", "uv__thread_start"];
const FOR_WORK: &str = "uv_cond_wait";
const NAME: &str = "libuv-worker";

/// Functions between the two, of which one shows that the program is one of libuv's.
const WORK: &str = "uv_";

/// A pool whose threads were all taken.
pub(super) struct Full<'a> {
    /// What they were in.
    pub(super) waits: Waits<'a>,
    /// How many they are.
    pub(super) threads: usize,
    /// How long all were at once, nanoseconds.
    pub(super) both: Ns,
}

fn symbols(wait: &AttributedWait) -> impl Iterator<Item = &str> {
    let stack = wait.asker.stack.iter();
    stack.filter_map(|frame| frame.symbol.as_deref())
}

fn of_pool(wait: &AttributedWait) -> bool {
    if wait.asker.name.thread == NAME {
        return true;
    }
    let names: Vec<&str> = symbols(wait).collect();
    let begins = names
        .windows(2)
        .any(|pair| pair[0] == WORKER && STARTS.contains(&pair[1]));
    begins && names.iter().any(|name| name.starts_with(WORK))
}

fn waits_for_work(wait: &AttributedWait) -> bool {
    symbols(wait).any(|name| name == FOR_WORK)
}

/// The pools that were full, of each process.
pub(super) fn full<'a>(run: &Run<'a>) -> Vec<Full<'a>> {
    let mut pools: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for wait in run.attributed.waits.iter().filter(|wait| of_pool(wait)) {
        let name = &wait.asker.name;
        pools.entry(name.pid).or_default().insert(name.tid);
    }
    let pools = pools.iter();
    pools.filter_map(|(pid, tids)| one(run, *pid, tids)).collect()
}

fn one<'a>(run: &Run<'a>, pid: u32, tids: &BTreeSet<u32>) -> Option<Full<'a>> {
    let works = |wait: &AttributedWait, tid: u32| {
        let name = &wait.asker.name;
        (name.pid, name.tid) == (pid, tid) && !wait.cause.on_cpu() && of_pool(wait) && !waits_for_work(wait)
    };
    let mut longest: Vec<&AttributedWait> = Vec::new();
    for tid in tids {
        let own = run.attributed.waits.iter().filter(|wait| works(wait, *tid));
        longest.push(own.max_by_key(|wait| wait.max)?);
    }
    let from = longest.iter().map(|wait| wait.max_started).max()?;
    let until = longest.iter().map(|wait| wait.max_ended).min()?;
    let waits = run.waits(|wait| longest.iter().any(|one| std::ptr::eq(*one, wait)))?;
    Some(Full {
        waits,
        threads: tids.len(),
        both: until.saturating_sub(from),
    })
}
