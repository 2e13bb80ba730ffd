//! What rows of time on a CPU are about: they have no call that names it.

use super::ledger::Ledger;
use holdup_evidence::{Cause, INTERRUPTS, Ns};
use holdup_model::attributed::{AttributedWait, InterruptTime, Resource, ResourceKind, Spin};
use std::cmp::Reverse;

/// What a program's own code is about is the function; without one, the program.
pub(super) fn name_function(row: &mut AttributedWait) {
    if row.cause != Cause::CpuUser {
        return;
    }
    let spin = row.resource.detail.spins.clone();
    let asker = row.asker.frame.as_deref().or(row.asker.module.as_deref());
    let name = spin.as_ref().map(Spin::id).or(asker);
    let resource = Resource::named(ResourceKind::Name, name.unwrap_or(&row.asker.name.process));
    row.resource = resource.with(|facts| {
        facts.spins = spin;
        facts.module.clone_from(&row.asker.module);
    });
}

/// What interrupted is the kind that took the most; each kind with its length.
pub(super) fn name_interrupts(row: &mut AttributedWait, ledger: &Ledger) {
    let mut kinds: Vec<(&str, Ns)> = INTERRUPTS.into_iter().zip(ledger.interrupts).collect();
    kinds.retain(|(_, ns)| *ns > 0);
    kinds.sort_by_key(|(_, ns)| Reverse(*ns));
    let name = kinds.first().map_or("interrupts", |(kind, _)| kind);
    row.resource = Resource::named(ResourceKind::Kernel, name);
    let facts = row.resource.detail.interrupts_mut();
    for (fact, ns) in facts.into_iter().zip(ledger.interrupts) {
        *fact = (ns > 0).then_some(InterruptTime(ns));
    }
}
