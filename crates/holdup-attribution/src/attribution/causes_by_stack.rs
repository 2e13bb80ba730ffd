//! What threads in the way did, where only their stacks show it.
//!
//! The problem: what a thread in the way did is reported as its waits are, and what a user stack says of them is known at the end: a Java thread
//! that sleeps was in a wait for a futex until then. The choice: where nearly all of a thread's waits for futexes were shown to be for
//! something else, those that others saw it in were too.
//!
//! In: all rows. Out: the same, with holders and chains that agree with them.

use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::AttributedWait;
use holdup_model::attributed::JudgedBy;
use std::collections::{BTreeMap, HashMap};

/// Part of a thread's waits for futexes that must be for one cause, 0..1: below it those that others saw may be the rest.
const NEARLY_ALL: f64 = 0.9;

/// Marks the rows that have another cause than `before`: the thread's other waits decided.
pub(super) fn mark_judged(rows: &mut [AttributedWait], before: &[Cause]) {
    for (row, before) in rows.iter_mut().zip(before) {
        if row.cause != *before {
            row.judged_by = Some(JudgedBy::OTHER_WAITS);
        }
    }
}

/// Tells again what threads in the way did.
pub(super) fn correct(waits: &mut [AttributedWait]) {
    let futex = |wait: &&AttributedWait| system_calls::is_named(wait.call.as_deref(), Does::WaitsForFutex);
    let rows = waits.iter().filter(futex);
    let found = mostly(rows.map(|wait| (wait.asker.name.tid, wait.cause, wait.ns)));
    for wait in waits.iter_mut() {
        for holder in &mut wait.holders {
            if holder.doing == Some(Cause::LockFutex) {
                holder.doing = found.get(&holder.name.tid).copied().or(holder.doing);
            }
        }
        for link in &mut wait.chain {
            if link.cause == Cause::LockFutex {
                link.cause = found.get(&link.name.tid).copied().unwrap_or(link.cause);
            }
        }
    }
}

/// Tells again what threads in the way did, by what the stacks of their own waits of that cause say, whether they were asked about or only
/// followed. `rows`: of a thread what its waits were taken for, what they were for, and how long.
pub(super) fn correct_by_stacks(
    waits: &mut [AttributedWait],
    rows: impl Iterator<Item = (u32, (Cause, Cause, Ns))>,
) {
    let rows = by_cause(rows);
    for wait in waits.iter_mut() {
        for holder in &mut wait.holders {
            let before = holder.doing.map(|doing| (holder.name.tid, doing));
            holder.doing = before
                .and_then(|before| rows.get(&before).copied())
                .or(holder.doing);
        }
        for link in &mut wait.chain {
            link.cause = rows
                .get(&(link.name.tid, link.cause))
                .copied()
                .unwrap_or(link.cause);
        }
    }
}

/// What the waits of one cause of each thread were nearly all for, where that is something else.
fn by_cause(rows: impl Iterator<Item = (u32, (Cause, Cause, Ns))>) -> HashMap<(u32, Cause), Cause> {
    let mut threads: HashMap<(u32, Cause), BTreeMap<Cause, Ns>> = HashMap::new();
    for (tid, (before, one, ns)) in rows.filter(|(tid, _)| *tid != 0) {
        *threads.entry((tid, before)).or_default().entry(one).or_default() += ns;
    }
    let one = threads.into_iter().filter_map(|((tid, before), causes)| {
        let (cause, most) = causes.iter().max_by_key(|(_, ns)| **ns)?;
        let all: Ns = causes.values().sum();
        let nearly = *cause != before && *most as f64 >= NEARLY_ALL * all as f64;
        nearly.then_some(((tid, before), *cause))
    });
    one.collect()
}

/// What each thread's waits for futexes were nearly all for, where that is something else.
fn mostly(rows: impl Iterator<Item = (u32, Cause, Ns)>) -> HashMap<u32, Cause> {
    let mut threads: HashMap<u32, BTreeMap<Cause, Ns>> = HashMap::new();
    for (tid, cause, ns) in rows.filter(|(tid, ..)| *tid != 0) {
        *threads.entry(tid).or_default().entry(cause).or_default() += ns;
    }
    let found = threads.into_iter().filter_map(|(tid, causes)| {
        let (cause, most) = causes.iter().max_by_key(|(_, ns)| **ns)?;
        let all: Ns = causes.values().sum();
        let nearly = *cause != Cause::LockFutex && *most as f64 >= NEARLY_ALL * all as f64;
        nearly.then_some((tid, *cause))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::{by_cause, mostly};
    use holdup_evidence::Cause;

    #[test]
    fn a_followed_thread_did_what_its_own_stacks_tell() {
        let rows = [
            (7, (Cause::IpcQueue, Cause::LockFutex, 95)),
            (7, (Cause::IpcQueue, Cause::IpcQueue, 5)),
            (7, (Cause::DiskSync, Cause::DiskSync, 50)),
            (8, (Cause::IpcQueue, Cause::LockFutex, 50)),
            (8, (Cause::IpcQueue, Cause::NetSend, 50)),
            (0, (Cause::IpcQueue, Cause::LockFutex, 50)),
        ];
        let found = by_cause(rows.into_iter());
        assert_eq!(found.len(), 1);
        assert_eq!(found[&(7, Cause::IpcQueue)], Cause::LockFutex);
    }

    #[test]
    fn a_thread_did_what_nearly_all_of_its_waits_were_told_to_be_for() {
        let rows = [
            (7, Cause::TimerSleep, 95),
            (7, Cause::LockFutex, 5),
            (8, Cause::TimerSleep, 50),
            (8, Cause::LockFutex, 50),
            (9, Cause::LockFutex, 50),
            (0, Cause::TimerSleep, 50),
        ];
        let found = mostly(rows.into_iter());
        assert_eq!(found.len(), 1);
        assert_eq!(found[&7], Cause::TimerSleep);
    }
}
