//! What runs are put together from.

use holdup_evidence::{Cause, Frame, Ns};
use holdup_model::attributed::Attributed;
use holdup_model::attributed::{
    Asker, AttributedWait, Coverage, How, Pace, Resource, ResourceKind, Tally, ThreadLedger, ThreadName,
};
use std::collections::BTreeMap;

use super::MS;

pub(super) fn name(pid: u32, tid: u32, process: &str, thread: &str) -> ThreadName {
    ThreadName {
        pid,
        tid,
        process: process.to_owned(),
        thread: thread.to_owned(),
    }
}

pub(super) fn frame(symbol: Option<&str>, module: &str, offset: u64) -> Frame {
    Frame {
        symbol: symbol.map(str::to_owned),
        module: Some(module.to_owned()),
        offset,
        ..Frame::default()
    }
}

pub(super) fn resource(kind: ResourceKind, name: &str, detail: &[(&str, &str)]) -> Resource {
    Resource {
        kind,
        name: name.to_owned(),
        detail: detail
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

/// One wait of `ns`, all of it on the path.
pub(super) fn wait(who: &ThreadName, cause: Cause, ns: Ns) -> AttributedWait {
    AttributedWait {
        deadlock: false,
        orphaned: None,
        cause,
        ns,
        path_ns: ns,
        handed_on_ns: 0,
        count: 1,
        max: ns,
        p50: ns,
        p99: ns,
        max_started: 0,
        max_ended: 0,
        how: if cause.on_cpu() { How::Sampled } else { How::Exact },
        error: if cause.on_cpu() { MS } else { 0 },
        open: false,
        timed_out: 0,
        held_open_ns: 0,
        pace: Pace::Unknown,
        call: None,
        bytes: None,
        resource: Resource::default(),
        asker: Asker {
            name: who.clone(),
            ..Asker::default()
        },
        holders: Vec::new(),
        chain: Vec::new(),
        ran_instead: Vec::new(),
        queue: None,
        kernel_stack: Vec::new(),
        why_unknown: None,
        tcp: None,
        read_at: String::new(),
        judged_by: None,
        outstanding: 0,
    }
}

/// The attribution that these waits make: ledgers by thread, and the path from their path times.
pub(super) fn attributed(waits: Vec<AttributedWait>) -> Attributed {
    let mut path: BTreeMap<Cause, Tally> = BTreeMap::new();
    let mut threads: Vec<ThreadLedger> = Vec::new();
    let mut coverage = Coverage {
        own_cost: 30 * MS,
        ..Coverage::default()
    };
    for wait in &waits {
        if !threads.iter().any(|thread| thread.name == wait.asker.name) {
            threads.push(ThreadLedger {
                name: wait.asker.name.clone(),
                threads: 1,
                ..ThreadLedger::default()
            });
        }
        let known = threads.iter_mut().find(|thread| thread.name == wait.asker.name);
        let thread = known.expect("pushed above");
        let own = thread.causes.entry(wait.cause).or_default();
        for (tally, ns) in [
            (own, wait.ns),
            (path.entry(wait.cause).or_default(), wait.path_ns),
        ] {
            tally.ns += ns;
            tally.count += wait.count;
            tally.max = tally.max.max(wait.max);
            tally.open |= wait.open;
        }
        thread.wall += wait.ns;
        thread.open |= wait.open;
        coverage.observed += wait.ns;
        if wait.cause == Cause::Unknown {
            coverage.unknown += wait.ns;
        } else {
            coverage.attributed += wait.ns;
        }
    }
    path.retain(|_, tally| tally.ns > 0);
    Attributed {
        elapsed: path.values().map(|tally| tally.ns).sum(),
        path,
        threads,
        waits,
        coverage,
        connections: Vec::new(),
        ..Attributed::default()
    }
}
