//! One thread waits for a lock that another thread has, and keeps.
//!
//! The problem: one thread is no queue, but the lock names its owner, so that who is in the way is known. The choice: what nobody else of
//! the observed threads accounts for (the waiter's own time), or what the path spent in others while it waited, named with both places in the
//! program.

use super::lock_convoy::is_condition;
use crate::rules::{
    Extend, Generality, MATTERS, Need, Rule, RuleId, Run, Waits, asked, held, java_waits, root, say,
};
use holdup_evidence::Cause;
use holdup_knowledge::user_code::{self, Primitive};
use holdup_model::attributed::{AttributedWait, Holder, HowKnown, JavaLock};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::LockHeld, check)
    .about("another thread has a lock, and keeps it")
    .needs(&[Need::SchedulerEvents, Need::LockHolders])
    .causes(&[Cause::LockFutex, Cause::LockMonitor])
    .generality(Generality::General)
    .explains(&[RuleId::WaitUncategorised]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let locks = waits
        .only(|wait| is_held(run, wait))
        .map_or_else(Vec::new, |held| {
            held.split(|wait| (wait.asker.name.pid, wait.resource.name.clone()))
        });
    let one = |lock: &&Waits<'_>| run.matters(lock.cost(), MATTERS) && is_one_thread(lock);
    let findings: Vec<Finding> = locks
        .iter()
        .filter(one)
        .filter_map(|lock| finding(run, lock))
        .collect();
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "of {}, none was one thread's for a lock whose owner is known, of which nobody else accounts for the time",
            say::several(waits.iter().count() as u64, "wait")
        ));
    }
    Verdict::Fires(findings)
}

/// Whether the lock names who has it, that one can let go of it, and somebody loses time by it.
fn is_held(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let keeps = |holder: &Holder| holder.how_known.holds() && !held::takes_turns(run, holder);
    let keeps = |holder: &Holder| keeps(holder) || let_go(wait, holder);
    // Whoever needs a class while it is initialised is a queue also alone.
    !wait.resource.is_many()
        && java_waits::lock(wait) != Some(JavaLock::Class)
        // A monitor of Java's is waited for by a condition of the C library's.
        && (wait.cause != Cause::LockFutex || !is_condition(wait))
        && !wait.deadlock
        && wait.orphaned.is_none()
        && user_code::allocator(&wait.asker.stack).is_none()
        && wait.holders.iter().any(keeps)
}

/// Whether somebody let a mutex go that notes no owner, as Rust's: only the one that has it does.
fn let_go(wait: &AttributedWait, holder: &Holder) -> bool {
    let mutex = user_code::primitive(&wait.asker.stack) == Some(Primitive::Mutex);
    mutex && holder.how_known == HowKnown::Waker && holder.name.pid == wait.asker.name.pid
}

/// More of them are a queue, which is another rule's.
fn is_one_thread(lock: &Waits<'_>) -> bool {
    let tids: BTreeSet<u32> = lock.iter().map(|wait| wait.asker.name.tid).collect();
    tids.len() == 1
}

fn finding(run: &Run<'_>, lock: &Waits<'_>) -> Option<Finding> {
    let main = lock.main();
    let all = lock.holders();
    let noted = all.iter().find(|holder| holder.how_known.holds());
    let owner = noted.or_else(|| all.iter().find(|holder| let_go(main, holder)))?;
    let has = match noted {
        Some(_) => "has",
        None => "had until it let it go",
    };
    let what = match &main.resource.detail.symbol {
        Some(symbol) => format!("the lock {symbol}"),
        None => "a lock".to_owned(),
    };
    let title = Title::from(format!(
        "{} waits{} for {what} that {} {has}",
        say::who(&main.asker.name),
        asked::place(lock),
        held::who(owner, main),
    ))
    .with(held::with_it(run, owner));
    let finding = RULE
        .finding(Severity::Warning, title, lock)
        .and(say::meanwhile(owner))
        .and_if(say::way(lock))
        .and_if(say::clock(run, lock))
        .proved_if(noted.is_some());
    let finding = match root::of(lock) {
        Some(root) => finding.remedy(root.remedy()),
        None => finding,
    };
    Some(finding.remedy(Remedy::safe(match owner.doing {
        Some(cause) if cause.on_cpu() || cause == Cause::SchedRunqueue => {
            "do less while holding it, or split it into several locks"
        }
        _ => "do not wait for anything else while holding it, or with a time limit",
    })))
}
