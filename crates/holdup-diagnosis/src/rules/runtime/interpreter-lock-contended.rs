//! Threads of an interpreter take turns, because only one of them may run the language at a time.

use crate::rules::{
    Check, Extend, Generality, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, percent, say,
};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::InterpreterLockContended,
    about: "threads contend for the global lock of an interpreter",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::RuntimeInterpreter],
    from: 0.0,
    generality: Generality::Specific,
    explains: &[RuleId::CpuBound],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let processes = waits.split(|wait| wait.asker.name.pid);
    let worth = processes
        .iter()
        .filter(|process| run.matters_without_queueing(process.cost(), MATTERS));
    let findings: Vec<Finding> = worth.map(|process| finding(run, process)).collect();
    if findings.is_empty() {
        return Verdict::Clear(run.little(RULE.causes));
    }
    Verdict::Fires(findings)
}

/// Part of the time in which others wait for the lock that its process must be on a CPU: whoever has it runs, mostly.
const MIN_CPU_SHARE: f64 = 0.5;

/// Whether the process hardly ran while its threads waited for the lock: then whoever has it waits with it in hand.
fn is_kept(run: &Run<'_>, waits: &Waits<'_>) -> bool {
    let pid = waits.main().asker.name.pid;
    let busy = |wait: &AttributedWait| {
        wait.asker.name.pid == pid && (wait.cause.on_cpu() || wait.cause == Cause::SchedRunqueue)
    };
    let ran = run.waits(busy).map_or(0, |rows| rows.own());
    (ran as f64) < longest_waiter(waits) as f64 * MIN_CPU_SHARE
}

/// How long the thread waited that waited longest.
fn longest_waiter(waits: &Waits<'_>) -> Ns {
    let mut threads: BTreeMap<u32, Ns> = BTreeMap::new();
    for wait in waits.iter() {
        *threads.entry(wait.asker.name.tid).or_default() += wait.ns;
    }
    threads.into_values().max().unwrap_or(0)
}

/// Who may keep it: the one thread whose own waits, but for this lock, are as long as others waited for it.
fn keeper<'a>(run: &Run<'a>, waits: &Waits<'a>) -> Option<&'a AttributedWait> {
    let pid = waits.main().asker.name.pid;
    let waiters: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    let own = |wait: &AttributedWait| {
        let name = &wait.asker.name;
        let blocked = !wait.cause.on_cpu() && wait.cause != Cause::SchedRunqueue && wait.cause != Cause::Idle;
        name.pid == pid && !waiters.contains(&name.tid) && blocked && wait.asker.frame.is_some()
    };
    let least = longest_waiter(waits) / 2;
    let theirs = run.waits(own)?;
    let threads = theirs.split(|wait| wait.asker.name.tid);
    let mut long = threads.iter().filter(|thread| thread.own() >= least);
    let found = long.next()?;
    long.next()
        .is_none()
        .then(|| found.iter().max_by_key(|wait| wait.ns))?
}

fn kept(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let who = say::name_or(&main.asker.name.process, "the program");
    let lock = say::name_or(&main.resource.name, "the interpreter's global lock");
    let title = format!("Threads of {who} wait for {lock}, whose holder does not run");
    let keeper = keeper(run, waits).map(|wait| {
        let name = &wait.asker.name;
        let text = format!(
            "perhaps thread {} of it, mostly {} in {}, for up to {}",
            name.tid,
            wait.cause.phrase(),
            say::name_or(
                wait.asker.frame.as_deref().unwrap_or_default(),
                "code without a name"
            ),
            duration(wait.max)
        );
        Evidence::new(text, "the other threads of the process in that time")
    });
    RULE.finding(Severity::Warning, title, waits)
        .and(Evidence::new(
            "its threads were almost never on a CPU in that time: the lock holder is blocked",
            say::SCHEDULER,
        ))
        .and_if(keeper)
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "release the lock around blocking code: Py_BEGIN_ALLOW_THREADS in an extension, nogil in Cython, \
             CDLL instead of PyDLL in ctypes",
        ))
        .remedy(Remedy::safe(
            "print the stack of each thread: py-spy dump --native --pid",
        ))
        .remedy(Remedy::pointless("a faster CPU: no thread runs"))
}

fn finding(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    if is_kept(run, waits) {
        return kept(run, waits);
    }
    let main = waits.main();
    let who = say::name_or(&main.asker.name.process, "the program");
    let lock = say::name_or(&main.resource.name, "the interpreter's global lock");
    let threads: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    let title = format!("Threads of {who} contend for {lock}: only its holder runs");
    let text = format!(
        "{} waited for it, together {} as long as the whole run",
        say::several(threads.len() as u64, "thread"),
        percent(run.share(waits.own()))
    );
    RULE.finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, "user stacks"))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "use processes instead of threads for computation (multiprocessing, ProcessPoolExecutor)",
        ))
        .remedy(Remedy::safe(
            "compute in code that releases the lock, such as numpy, zlib and hashlib with large inputs",
        ))
        .remedy(Remedy::pointless("more threads: only one runs at a time"))
}
