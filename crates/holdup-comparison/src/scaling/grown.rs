//! What waits grew with the number of workers: one observed slice beside another.
//!
//! In: the attributed waits of a slice with few workers and of one with many. Out: for each thing that was waited for or spun on,
//! how much more an operation waited for it, most first. What a wait is for is reported as attribution tells it; here it is only counted
//! by the operation.

use holdup_evidence::Cause;
use holdup_model::attributed::{Attributed, AttributedWait, ResourceKind};
use std::collections::BTreeMap;

/// A slice that was observed.
#[derive(Debug, Clone, Copy)]
pub struct SliceWaits<'a> {
    /// Its waits.
    pub attributed: &'a Attributed,
    /// Operations of all workers together.
    pub operations: u64,
    /// How many workers.
    pub workers: u32,
    /// The process that started the workers: its own waits are no part of an operation.
    pub leader: u32,
    /// Whether each operation is a program of its own: then workers only wait for these.
    pub programs: bool,
}

/// Something of which an operation waits more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grown {
    pub(super) cause: Cause,
    pub(super) name: String,
    /// More an operation, nanoseconds.
    pub(super) ns: f64,
}

/// The name of the workers' processes.
pub const WORKER: &str = "holdup-worker";

/// What grew, most first: spins on a CPU if `on_cpu`, else waits without one.
pub(super) fn grown(few: &SliceWaits<'_>, many: &SliceWaits<'_>, on_cpu: bool) -> Vec<Grown> {
    let before = each(few, on_cpu);
    let mut grown: Vec<Grown> = each(many, on_cpu)
        .into_iter()
        .map(|((cause, name), ns)| {
            let before = before.get(&(cause, name.clone())).copied().unwrap_or(0.0);
            Grown {
                cause,
                name,
                ns: ns - before,
            }
        })
        .filter(|one| one.ns > 0.0)
        .collect();
    grown.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    grown
}

/// How long an operation was ready to run and had no CPU, in all threads of it, nanoseconds.
pub(super) fn queued(seen: &SliceWaits<'_>) -> f64 {
    let sum: u64 = seen
        .own()
        .filter(|wait| wait.cause == Cause::SchedRunqueue)
        .map(|wait| wait.ns)
        .sum();
    sum as f64 / seen.operations.max(1) as f64
}

impl SliceWaits<'_> {
    /// Waits and CPU time of operations, and not of those who begin and end them.
    pub(super) fn own(&self) -> impl Iterator<Item = &AttributedWait> {
        self.attributed.waits.iter().filter(|wait| {
            let name = &wait.asker.name;
            name.pid != self.leader && !(self.programs && name.process == WORKER)
        })
    }
}

/// Time of an operation by what it was for.
fn each(seen: &SliceWaits<'_>, on_cpu: bool) -> BTreeMap<(Cause, String), f64> {
    let mut sums = BTreeMap::new();
    let operations = seen.operations.max(1) as f64;
    for wait in seen.own().filter(|wait| counts(wait, seen.programs, on_cpu)) {
        *sums.entry((wait.cause, said(wait))).or_default() += wait.ns as f64 / operations;
    }
    sums
}

/// Whether it is a wait that workers can be in each other's way with.
fn counts(wait: &AttributedWait, programs: bool, on_cpu: bool) -> bool {
    let spins = wait.resource.detail.spinlock.is_some();
    if on_cpu {
        return wait.cause == Cause::CpuKernel && spins;
    }
    // What another thread of the run was late for because it ran, or wanted to, is no wait of its own.
    let for_a_cpu = wait.chain.last().is_some_and(|link| {
        link.cause.on_cpu() || matches!(link.cause, Cause::SchedRunqueue | Cause::SchedThrottled)
    });
    match wait.cause {
        cause if cause.on_cpu() => false,
        Cause::SchedRunqueue | Cause::SchedThrottled | Cause::SchedSteal | Cause::Idle | Cause::Unknown => {
            false
        }
        // A worker waits for its begin on a pipe, and for nothing else.
        Cause::IpcPipe if !programs => false,
        Cause::ProcessChild if programs => false,
        _ => !(programs && for_a_cpu),
    }
}

/// What a person would call it: waits of many files for one disk are for that disk.
fn said(wait: &AttributedWait) -> String {
    let resource = &wait.resource;
    let disk = resource
        .detail
        .device_name
        .as_ref()
        .filter(|name| !name.is_empty());
    match disk {
        Some(disk) if resource.kind == ResourceKind::File && wait.cause.id().starts_with("disk.") => {
            disk.clone()
        }
        _ => resource.name.clone(),
    }
}
