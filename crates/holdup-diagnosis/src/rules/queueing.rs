//! What the rules about queueing for a CPU share: who ran instead, who outranked, where it might have run.
//!
//! In: waits with cause `sched.runqueue`. Out: sums over them, and evidence in words.

use super::{Run, Waits, duration, percent, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Queue, Resource, ResourceKind};
use holdup_model::finding::Evidence;
use std::collections::BTreeMap;

/// Others that are named at most.
const NAMED: usize = 3;

/// Who ran while these waits queued, longest first.
pub(super) fn ran_instead<'a>(waits: &Waits<'a>) -> Vec<(&'a str, Ns)> {
    let mut instead: BTreeMap<&str, Ns> = BTreeMap::new();
    for (name, ns) in waits.iter().flat_map(|wait| &wait.ran_instead) {
        *instead.entry(name).or_default() += ns;
    }
    let mut instead: Vec<(&str, Ns)> = instead.into_iter().collect();
    instead.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    instead
}

/// The first of them by name, each with its share and, where it is known, its cgroup.
pub(super) fn names(run: &Run<'_>, instead: &[(&str, Ns)]) -> String {
    let all: Ns = instead.iter().map(|(_, ns)| ns).sum();
    let names: Vec<String> = instead
        .iter()
        .take(NAMED)
        .map(|(name, ns)| {
            let share = percent(*ns as f64 / all.max(1) as f64);
            match run.facts.cgroups.get(*name) {
                Some(cgroup) => format!("{name} {share} (cgroup {cgroup})"),
                None => format!("{name} {share}"),
            }
        })
        .collect();
    names.join(", ")
}

/// That, as evidence.
pub(super) fn who_ran(run: &Run<'_>, waits: &Waits<'_>) -> Option<Evidence> {
    let instead = ran_instead(waits);
    (!instead.is_empty()).then(|| {
        Evidence::new(
            format!(
                "the tasks that ran on its CPU in that time: {}",
                names(run, &instead)
            ),
            "sched_switch",
        )
    })
}

/// How long holdup itself ran meanwhile. A name alone proves nothing, anybody can have it: for each thread that queued it counts
/// for no more than the CPU time that holdup knows that it used.
pub(super) fn by_observer(run: &Run<'_>, waits: &Waits<'_>) -> Ns {
    let most = run.attributed.coverage.own_cost;
    let ours = |wait: &AttributedWait| {
        let named = wait.ran_instead.iter().filter(|(name, _)| is_observer(run, name));
        named.map(|(_, ns)| ns).sum::<Ns>().min(most)
    };
    waits.iter().map(ours).sum()
}

/// Whether a task has the name that holdup has, or one of its children that read for it: those are called `holdup-…`.
pub(super) fn is_observer(run: &Run<'_>, name: &str) -> bool {
    let observer = run.facts.observer.as_deref();
    let rest = observer.and_then(|observer| name.strip_prefix(observer));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The one that ran the longest, as what was waited for.
pub(super) fn winner(waits: &Waits<'_>) -> Option<Resource> {
    ran_instead(waits)
        .first()
        .map(|(name, _)| Resource::named(ResourceKind::Process, *name))
}

/// How the costliest waits came about, where at least half of their queueing tells.
pub(super) fn known<'a>(waits: &Waits<'a>) -> Option<&'a Queue> {
    let main = waits.main();
    let queue = main.queue.as_ref()?;
    (queue.known.saturating_mul(2) >= main.ns && queue.known > 0).then_some(queue)
}

/// Other CPUs than those that it may run on, and how long each was idle meanwhile; `None` where it may run on all, or
/// where that is not known.
pub(super) fn forbidden(run: &Run<'_>, queue: &Queue) -> Option<Vec<(u32, Ns)>> {
    let online = run.facts.cpus?;
    // A set of more than 64 CPUs is known only in part.
    let whole = usize::try_from(queue.allowed_count).is_ok_and(|count| count == queue.allowed.len());
    if queue.allowed_count == 0 || queue.allowed_count >= online || !whole {
        return None;
    }
    let others: Vec<(u32, Ns)> = run
        .facts
        .cpu_times
        .iter()
        .filter(|time| !queue.allowed.contains(&time.cpu))
        .map(|time| (time.cpu, time.idle))
        .collect();
    (!others.is_empty()).then_some(others)
}

/// How much of the elapsed time the hypervisor kept this machine's CPUs for others, where it says so.
pub(super) fn stolen(run: &Run<'_>) -> Option<Evidence> {
    /// Share of the run, over all CPUs, from which it is worth a word.
    const WORTH_A_WORD: f64 = 0.05;
    let stolen: Ns = run.facts.cpu_times.iter().map(|time| time.stolen).sum();
    (run.share(stolen) >= WORTH_A_WORD).then(|| {
        Evidence::new(
            format!(
                "the hypervisor ran other guests for {} on the CPUs of this machine in that time ({}); the \
                 affected threads are not known",
                duration(stolen),
                Cause::SchedSteal
            ),
            "/proc/stat",
        )
    })
}

/// `CPU 0`, `CPUs 0 and 2`, `CPUs 0, 2, 4`.
pub(super) fn cpus(list: &[u32]) -> String {
    let words: Vec<String> = list.iter().map(u32::to_string).collect();
    match words.as_slice() {
        [one] => format!("CPU {one}"),
        [one, two] => format!("CPUs {one} and {two}"),
        _ => format!("CPUs {}", words.join(", ")),
    }
}

/// Who queued, and its process id for a command.
pub(super) fn who(waits: &Waits<'_>) -> (String, u32) {
    let name = &waits.main().asker.name;
    (say::who(name), name.pid)
}
