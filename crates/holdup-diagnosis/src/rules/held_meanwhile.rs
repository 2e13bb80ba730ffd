//! What a thread does with a lock that others wait for.
//!
//! The problem: of a thread that sleeps, waits for a server or writes to a disk with a lock, the time is said twice: by the finding about the lock,
//! and by one about what the thread does, which costs at least as much and so comes first. That it sleeps on purpose, or that a server is slow, is half
//! the answer: whoever waits for the lock loses that time because the lock is kept meanwhile. The choice: the finding about the lock comes
//! first, and a sleep with a lock is no finding of its own. In: findings, and the rows of locks with their owners. Out: the same findings in that order.

use super::{MATTERS, Rule, RuleId, Run};
use holdup_evidence::Cause;
use holdup_model::attributed::{AttributedWait, Holder, HowKnown};
use holdup_model::finding::Finding;
use std::collections::BTreeSet;

/// A lock costs at least one part in this many of what its owner does for it to be said first: with less most of that was without the lock.
const MIN_PART: u64 = 2;

/// A thread, and what it did.
type Deed = (u32, u32, Cause);

/// Whether a finding says that threads wait for a lock that others have.
fn is_about_lock(rule: &Rule) -> bool {
    matches!(
        rule.id,
        RuleId::LockHeld | RuleId::LockConvoy | RuleId::WaitsForLockHolder | RuleId::SemaphoreHeld
    )
}

/// What the owners of the lock that a finding is about did while others waited for it. Of a wait through which a lock goes from hand to hand only
/// the first owner is known: those of the queue that do the same have the lock then.
fn deeds(run: &Run<'_>, finding: &Finding) -> BTreeSet<Deed> {
    let of_lock = |wait: &&AttributedWait| {
        let same = (wait.cause, wait.asker.name.pid) == (finding.cause, finding.asker.name.pid);
        same && wait.resource.name == finding.resource.name
    };
    let owner = |holder: &&Holder| {
        let has = holder.how_known.holds() || holder.how_known == HowKnown::Waker;
        has && holder.name.tid != 0
    };
    let waits: Vec<&AttributedWait> = run.attributed.waits.iter().filter(of_lock).collect();
    let owners = waits
        .iter()
        .flat_map(|wait| &wait.holders)
        .filter(owner)
        .filter_map(|owner| Some((owner.name.pid, owner.name.tid, owner.doing?)));
    let mut deeds: BTreeSet<Deed> = owners.collect();
    let causes: BTreeSet<Cause> = deeds.iter().map(|(.., cause)| *cause).collect();
    for wait in waits {
        let name = &wait.asker.name;
        deeds.extend(causes.iter().map(|cause| (name.pid, name.tid, *cause)));
    }
    deeds
}

/// Drops that threads sleep on purpose, where all but a little of it was with locks that others waited for, and that is reported.
pub(super) fn join(run: &Run<'_>, found: &mut Vec<(&Rule, Finding)>) -> Option<(RuleId, RuleId)> {
    if run.observed.is_some() || run.machine {
        return None;
    }
    let locks = found.iter().filter(|(rule, _)| is_about_lock(rule));
    let (by, first) = locks.max_by_key(|(_, finding)| finding.ns)?;
    let (by, lock_ns) = (by.id, first.ns.unwrap_or(0));
    let with_lock = deeds(run, first);
    let aside = |wait: &AttributedWait| {
        let name = &wait.asker.name;
        wait.cause == Cause::TimerSleep && !with_lock.contains(&(name.pid, name.tid, wait.cause))
    };
    if run
        .waits(aside)
        .is_some_and(|aside| run.matters(aside.cost(), MATTERS))
    {
        return None;
    }
    let before = found.len();
    // Of a sleep that is much longer than anybody waited, most was without the lock.
    let longer = |finding: &Finding| finding.ns.unwrap_or(0) > lock_ns.saturating_mul(MIN_PART);
    found.retain(|(rule, finding)| rule.id != RuleId::SleepsOnPurpose || longer(finding));
    (found.len() < before).then_some((RuleId::SleepsOnPurpose, by))
}

/// Whether a finding is of what a task does with the lock that a queue of tasks is for.
fn with_tasks_lock(run: &Run<'_>, finding: &Finding) -> bool {
    let asker = &finding.asker;
    let own = run.attributed.task_queues.iter();
    let mut holders = own
        .filter(|queue| {
            queue.pid == asker.name.pid && queue.covered.saturating_mul(MIN_PART) >= finding.ns.unwrap_or(0)
        })
        .flat_map(|queue| &queue.holders);
    holders.any(|holder| {
        let named = holder.place.symbol.is_some() && holder.place.symbol == asker.frame;
        named && holder.cause == finding.cause
    })
}

/// Drops that tasks sleep, or poll by sleeping, where that was with a lock that others waited for, and that is reported.
pub(super) fn join_tasks(run: &Run<'_>, found: &mut Vec<(&Rule, Finding)>) -> Option<(RuleId, RuleId)> {
    let (by, _) = found
        .iter()
        .find(|(rule, _)| rule.id == RuleId::TasksQueueForLock)?;
    let (by, mut dropped) = (by.id, None);
    found.retain(|(rule, finding)| {
        let sleeps = matches!(rule.id, RuleId::SleepsOnPurpose | RuleId::SleepPolling);
        let with_lock = sleeps && with_tasks_lock(run, finding);
        if with_lock {
            dropped = Some(rule.id);
        }
        !with_lock
    });
    dropped.map(|dropped| (dropped, by))
}

/// Moves findings about locks before those about what the locks' owners do meanwhile.
pub(super) fn locks_first(run: &Run<'_>, found: &mut Vec<(&Rule, Finding)>) {
    if run.observed.is_some() || run.machine {
        return;
    }
    let mut at = 0;
    while at < found.len() {
        let later = (at + 1..found.len()).find(|later| {
            let (rule, lock) = &found[*later];
            let other = &found[at].1;
            let enough = lock.ns.unwrap_or(0).saturating_mul(MIN_PART) >= other.ns.unwrap_or(u64::MAX);
            let (name, cause) = (&other.asker.name, other.cause);
            let of_tasks = rule.id == RuleId::TasksQueueForLock && with_tasks_lock(run, other);
            let of_threads = is_about_lock(rule)
                && !is_about_lock(found[at].0)
                && deeds(run, lock).contains(&(name.pid, name.tid, cause));
            enough && lock.severity == other.severity && (of_threads || of_tasks)
        });
        if let Some(later) = later {
            let lock = found.remove(later);
            found.insert(at, lock);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::mostly;
    use super::super::judge;
    use super::super::run::Run;
    use holdup_evidence::{Cause, Ns, SystemFacts};
    use holdup_model::attributed::{Attributed, AttributedWait, Holder, HowKnown, ResourceKind, ThreadName};

    const SECOND: Ns = 1_000_000_000;

    fn name(tid: u32) -> ThreadName {
        ThreadName {
            pid: 10,
            tid,
            process: "shop".to_owned(),
            thread: "shop".to_owned(),
        }
    }

    /// A thread waits for a lock for so long, which another has.
    fn queued(tid: u32, owner: u32, doing: Cause, ns: Ns) -> AttributedWait {
        let mut wait = mostly(Cause::LockFutex, 1, 1.0, SECOND).waits.remove(0);
        wait.asker.name = name(tid);
        (wait.ns, wait.path_ns, wait.handed_on_ns) = (ns, 0, ns);
        wait.resource.kind = ResourceKind::Lock;
        wait.resource.name = "futex 0x5581".to_owned();
        wait.call = Some("futex".to_owned());
        wait.holders = vec![Holder {
            name: name(owner),
            how_known: HowKnown::MutexOwner,
            doing: Some(doing),
            ns,
            stack: Vec::new(),
            place: None,
            others_busy: 0,
        }];
        wait
    }

    /// The rules that speak, in their order, where a thread does this for two seconds.
    fn rules(does: Cause, waits: &[AttributedWait]) -> Vec<String> {
        let mut run: Attributed = mostly(does, 1, 1.0, 2 * SECOND);
        run.waits[0].asker.name = name(11);
        run.waits.extend_from_slice(waits);
        let judged = judge(&Run::new(&run, &SystemFacts::default()));
        judged
            .findings
            .iter()
            .map(|finding| finding.rule.clone())
            .collect()
    }

    #[test]
    fn a_sleep_with_a_lock_is_the_locks() {
        let sleeps = Cause::TimerSleep;
        assert_eq!(rules(sleeps, &[]), ["sleeps-on-purpose"]);
        let held = queued(10, 11, sleeps, 2 * SECOND);
        assert_eq!(rules(sleeps, &[held]), ["lock-held"]);
        // The first owner that is known has it for all of the wait; the other has waited for it before it slept.
        let convoy = [queued(11, 12, sleeps, SECOND), queued(10, 12, sleeps, 2 * SECOND)];
        assert_eq!(rules(sleeps, &convoy), ["lock-convoy"]);
        // Another sleeps, with a lock that nobody waits for.
        let other = queued(10, 13, sleeps, 2 * SECOND);
        assert_eq!(rules(sleeps, &[other]), ["lock-held", "sleeps-on-purpose"]);
        // It sleeps for a moment with the lock, and then for long without it.
        let moment = queued(10, 11, sleeps, SECOND / 2);
        assert_eq!(rules(sleeps, &[moment]), ["lock-held", "sleeps-on-purpose"]);
    }

    #[test]
    fn a_lock_comes_before_what_its_owner_waits_for_unless_it_is_the_least_of_it() {
        let receives = Cause::NetReceive;
        let held = |ns| rules(receives, &[queued(10, 11, receives, ns)]);
        assert_eq!(held(2 * SECOND).first().map(String::as_str), Some("lock-held"));
        assert_eq!(
            held(SECOND * 3 / 2).first().map(String::as_str),
            Some("lock-held")
        );
        assert_ne!(held(SECOND / 2).first().map(String::as_str), Some("lock-held"));
    }
}
