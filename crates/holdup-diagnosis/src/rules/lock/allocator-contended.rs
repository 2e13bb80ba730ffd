//! Threads wait in turn for a lock of the C library's allocator.

use crate::rules::{MATTERS, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::signal_handlers::handling_with_lock;
use holdup_knowledge::user_code;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::AllocatorContended, check)
    .about("threads contend for the allocator's lock")
    .causes(&[Cause::LockFutex])
    .from(0.0)
    .explains(&[RuleId::CpuBound]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // A signal's handler that allocates may wait for its own thread.
    let inside = waits.only(|wait| {
        let stack = &wait.asker.stack;
        user_code::allocator(stack).is_some() && handling_with_lock(stack).is_none()
    });
    let cost = inside.as_ref().map_or(0, Waits::cost);
    let processes = inside.map_or_else(Vec::new, |inside| inside.split(|wait| wait.asker.name.pid));
    let worth: Vec<Finding> = processes
        .iter()
        .filter(|process| run.matters_without_queueing(process.cost(), MATTERS))
        .map(finding)
        .collect();
    if worth.is_empty() {
        return Verdict::Clear(format!(
            "waits for locks of the allocator took {} of the elapsed time",
            percent(run.share(cost))
        ));
    }
    Verdict::Fires(worth)
}

fn finding(waits: &Waits<'_>) -> Finding {
    let process = &waits.main().asker.name.process;
    let threads: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    let functions: BTreeSet<&str> = waits
        .iter()
        .filter_map(|wait| user_code::allocator(&wait.asker.stack))
        .collect();
    let functions: Vec<&str> = functions.into_iter().collect();
    let who = say::name_or(process, "the program");
    let title = format!("Threads of {who} contend for the lock of the memory allocator");
    let text = format!(
        "{} waited in {}",
        say::several(threads.len() as u64, "thread"),
        functions.join(", ")
    );
    RULE.finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, "user stacks"))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "allocate less often: reuse blocks, and free them in the thread that allocated them",
        ))
        .remedy(Remedy::safe(
            "raise MALLOC_ARENA_MAX (or M_ARENA_MAX) if it is set: each arena has a lock",
        ))
        .remedy(Remedy::changing(
            "try an allocator for many threads (jemalloc, tcmalloc, mimalloc) with LD_PRELOAD",
            "its memory use differs: measure both",
        ))
        .remedy(Remedy::pointless(
            "more threads: each one waits for the same lock",
        ))
}
