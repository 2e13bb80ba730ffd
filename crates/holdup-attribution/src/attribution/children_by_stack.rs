//! The child for which a thread waits that waits by its runtime's own means, as Ruby's `Process.wait` and Node's `execSync` do.
//!
//! The problem: such a wait is a poll to the kernel, and its cause is known from the user stack alone, at the end. Who is in the way was looked
//! for before. In: all rows, and whose child each process is. Out: the same, with the child as the holder and what it did in the chain.

use super::task_table::TaskTable;
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::javascript;
use holdup_model::attributed::{AttributedWait, Holder, HowKnown, Link};
use std::collections::BTreeMap;

/// How much later than its parent's wait a child's own may begin, nanoseconds: it is forked, and runs its program.
const BEGINS_WITHIN_NS: Ns = 500_000_000;

/// How much earlier it may begin, nanoseconds: the parent closes what it does not need before it waits.
const BEGAN_BEFORE_NS: Ns = 50_000_000;

/// Links of one chain.
const MAX_LINKS: usize = 8;

/// Adds the children.
pub(super) fn add(waits: &mut [AttributedWait], tasks: &TaskTable) {
    // Of the pairs of sockets through which a child writes to Node.js it may be unknown who has the other end.
    let for_child = |wait: &AttributedWait| match wait.cause {
        Cause::ProcessChild => true,
        Cause::IpcUnix => javascript::awaits_child(&wait.asker.stack),
        _ => false,
    };
    let lacks = |wait: &AttributedWait| wait.open && wait.holders.is_empty() && for_child(wait);
    if !waits.iter().any(lacks) {
        return;
    }
    // What each process waits for longest.
    let mut longest: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, wait) in waits.iter().enumerate() {
        let known = longest.entry(wait.asker.name.pid).or_insert(at);
        if wait.ns > waits[*known].ns {
            *known = at;
        }
    }
    let found: Vec<(usize, usize)> = (0..waits.len())
        .filter(|at| lacks(&waits[*at]))
        .filter_map(|at| Some((at, child(waits, at, &longest, tasks)?)))
        .collect();
    for (parent, child) in found {
        let (holder, chain) = way(&waits[parent], &waits[child]);
        waits[parent].holders.push(holder);
        waits[parent].chain = chain;
    }
}

/// The only child; of several the only one that began what it does as its parent began to wait.
fn child(
    waits: &[AttributedWait],
    parent: usize,
    longest: &BTreeMap<u32, usize>,
    tasks: &TaskTable,
) -> Option<usize> {
    let (pid, began) = (waits[parent].asker.name.pid, waits[parent].max_started);
    if let Some(only) = tasks.only_child(pid) {
        return longest.get(&only).copied();
    }
    let then = began.saturating_sub(BEGAN_BEFORE_NS)..=began.saturating_add(BEGINS_WITHIN_NS);
    let mut then = longest
        .iter()
        .filter(|(child, at)| tasks.is_child_of(**child, pid) && then.contains(&waits[**at].max_started));
    let (_, at) = then.next()?;
    then.next().is_none().then_some(*at)
}

fn way(parent: &AttributedWait, child: &AttributedWait) -> (Holder, Vec<Link>) {
    let ns = parent.ns.min(child.ns);
    let link = |wait: &AttributedWait| Link {
        name: wait.asker.name.clone(),
        cause: wait.cause,
        ns,
        frame: super::chosen_frame(&wait.asker.stack).cloned(),
    };
    let onward = child.chain.iter().skip(1).cloned();
    let chain = [link(parent), link(child)].into_iter().chain(onward);
    let holder = Holder {
        name: child.asker.name.clone(),
        how_known: HowKnown::Child,
        doing: Some(child.cause),
        ns,
        stack: child.asker.stack.clone(),
        place: None,
        others_busy: 0,
    };
    (holder, chain.take(MAX_LINKS).collect())
}
