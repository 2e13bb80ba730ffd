//! Starting and ending threads costs more than what they do.

use crate::attributed::{AttributedWait, ThreadLedger};
use crate::finding::{Confidence, Evidence, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::{Cause, Ns};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::ManyShortThreads,
    about: "many threads are started that hardly do anything",
    needs: &[Need::SchedulerEvents, Need::CpuSamples],
    causes: &[Cause::CpuKernel],
    from: 0.0,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

/// Threads of one process from which they are many.
const MANY: u64 = 200;

/// How long a thread that hardly does anything runs and waits, without queueing for a CPU, in nanoseconds. Starting and
/// ending one takes 20 to 60 µs.
const HARDLY: Ns = 1_000_000;

/// Calls by which the C library starts and ends a thread and keeps its stack.
const CALLS: &[&str] = &[
    "clone",
    "clone3",
    "exit",
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "set_robust_list",
    "rseq",
    "rt_sigprocmask",
];

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let threads = short_threads(&run.attributed.threads);
    let most = threads.iter().max_by_key(|(_, (count, _))| *count);
    let (count, of) = most.map_or((0, 0), |(pid, (count, _))| (*count, *pid));
    let making = waits.only(|wait| wait.asker.name.pid == of && makes(wait));
    let cost = making.as_ref().map_or(0, Waits::cost);
    let making =
        making.filter(|making| count >= MANY && run.matters_without_queueing(making.cost(), MATTERS));
    let (Some(making), Some((_, (count, lived)))) = (making, most) else {
        return Verdict::Clear(format!(
            "{} that hardly did anything, {} of the elapsed time in the calls that make and end them",
            say::several(count, "thread"),
            percent(run.share(cost))
        ));
    };
    let who = say::name_or(&making.main().asker.name.process, "The program").to_owned();
    let title = format!("{who} starts {count} threads that hardly do anything");
    let text = format!(
        "each lives {} without queueing; making and ending them takes {} of the program's time in the kernel",
        duration(lived / count.max(&1)),
        percent(run.share_of_own(making.cost()))
    );
    fires(
        RULE.finding(Severity::Warning, title, &making)
            .and(Evidence::new(text, "births and ends, CPU samples"))
            .confidence(Confidence::Strong)
            .remedy(Remedy::safe(
                "keep a few threads and hand them work (a pool) instead of starting one for each piece",
            ))
            .remedy(Remedy::safe("give each thread more to do at once")),
    )
}

fn makes(wait: &AttributedWait) -> bool {
    wait.call.as_deref().is_some_and(|call| CALLS.contains(&call))
}

/// How many short threads each process had, and how long they lived together. Threads that the report lists together
/// have the process's id and no own.
fn short_threads(threads: &[ThreadLedger]) -> BTreeMap<u32, (u64, Ns)> {
    let mut processes: BTreeMap<u32, (u64, Ns)> = BTreeMap::new();
    for thread in threads
        .iter()
        .filter(|thread| thread.name.tid != thread.name.pid && thread.name.pid != 0)
    {
        let queued = thread
            .causes
            .get(&Cause::SchedRunqueue)
            .map_or(0, |tally| tally.ns);
        let lived = thread.wall.saturating_sub(queued);
        if lived / u64::from(thread.threads.max(1)) <= HARDLY {
            let (count, all) = processes.entry(thread.name.pid).or_default();
            *count += u64::from(thread.threads);
            *all = all.saturating_add(lived);
        }
    }
    processes
}
