//! Pools of threads that a runtime keeps for what blocks: whether all of one are taken.
//!
//! In: waits with their stacks, and how a runtime's pool is known by them. Out: the waits that all threads of one process's pool were in at once.
//! A file for each runtime says how: [`super::libuv_pool`], [`super::tokio_pool`].

use super::{Run, Waits, say};
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::AttributedWait;
use std::collections::{BTreeMap, BTreeSet};

/// A pool whose threads were all taken.
pub(super) struct Full<'a> {
    /// What they were in.
    pub(super) waits: Waits<'a>,
    /// How many they are.
    pub(super) threads: usize,
    /// How long all were at once, nanoseconds.
    pub(super) both: Ns,
}

/// Names of what is waited for that a sentence has.
const NAMED_MAX: usize = 2;

/// For what all of these wait, where that is of one kind, as it follows "wait": `opening FIFOs that no process opens at the other end
/// (/run/a, /run/b and 2 others)`.
pub(super) fn awaited(waits: &Waits<'_>) -> Option<String> {
    let main = waits.main();
    if waits.iter().any(|wait| wait.cause != main.cause) {
        return None;
    }
    let opens = |wait: &AttributedWait| {
        wait.cause == Cause::IpcPipe && system_calls::is_named(wait.call.as_deref(), Kind::Opens)
    };
    let alone = waits.iter().all(|wait| wait.holders.is_empty());
    let what = match (waits.iter().all(opens), alone) {
        (true, true) => "opening FIFOs that no process opens at the other end",
        (true, false) => "opening FIFOs",
        (false, _) => main.cause.phrase(),
    };
    // Without a path the resource is the call.
    let names: BTreeSet<&str> = waits.iter().map(|wait| wait.resource.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| name.starts_with('/')).collect();
    let first = names[..names.len().min(NAMED_MAX)].join(", ");
    Some(match (names.len(), names.len().saturating_sub(NAMED_MAX)) {
        (0, _) => what.to_owned(),
        (_, 0) => format!("{what} ({first})"),
        (_, more) => format!("{what} ({first} and {})", say::several(more as u64, "other")),
    })
}

/// The pools that were full, of each process. `of_pool`: whether a wait is of a thread of such a pool; `waits_for_work`: whether that thread was
/// free in it.
pub(super) fn full<'a>(
    run: &Run<'a>,
    of_pool: fn(&AttributedWait) -> bool,
    waits_for_work: fn(&AttributedWait) -> bool,
) -> Vec<Full<'a>> {
    let mut pools: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for wait in run.attributed.waits.iter().filter(|wait| of_pool(wait)) {
        let name = &wait.asker.name;
        pools.entry(name.pid).or_default().insert(name.tid);
    }
    let pools = pools.iter();
    let works = |wait: &AttributedWait| !wait.cause.on_cpu() && of_pool(wait) && !waits_for_work(wait);
    pools
        .filter_map(|(pid, tids)| one(run, *pid, tids, works))
        .collect()
}

fn one<'a>(
    run: &Run<'a>,
    pid: u32,
    tids: &BTreeSet<u32>,
    works: impl Fn(&AttributedWait) -> bool,
) -> Option<Full<'a>> {
    let of_thread = |wait: &AttributedWait, tid: u32| {
        let name = &wait.asker.name;
        (name.pid, name.tid) == (pid, tid) && works(wait)
    };
    let mut longest: Vec<&AttributedWait> = Vec::new();
    for tid in tids {
        let own = run.attributed.waits.iter().filter(|wait| of_thread(wait, *tid));
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
