//! Threads of an interpreter take turns, because only one of them may run the language at a time.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, percent, say};
use holdup_evidence::{Cause, Language, Ns};
use holdup_knowledge::interpreters;
use holdup_model::attributed::{AttributedWait, HowKnown};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::InterpreterLockContended, check)
    .about("threads contend for the global lock of an interpreter")
    .causes(&[Cause::RuntimeInterpreter])
    .from(0.0)
    .explains(&[RuleId::CpuBound]);

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

/// Threads that a sentence names.
const MAX_NAMED: usize = 3;

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

/// A thread that was found to have the lock.
struct LockHolder {
    tid: u32,
    /// The application's function, and its line.
    place: String,
    /// How much of the waits it was in the way of.
    ns: Ns,
}

/// The threads that looks found to have the lock, and where; most of the waits first.
fn holders(waits: &Waits<'_>) -> Vec<LockHolder> {
    let mut holders: Vec<LockHolder> = Vec::new();
    for holder in waits.holders() {
        if holder.how_known != HowKnown::Interpreter {
            continue;
        }
        let Some(frame) = interpreters::asker(&holder.stack) else {
            continue;
        };
        let (tid, place) = (holder.name.tid, say::place(frame));
        match holders
            .iter_mut()
            .find(|known| known.tid == tid && known.place == place)
        {
            Some(known) => known.ns += holder.ns,
            None => holders.push(LockHolder {
                tid,
                place,
                ns: holder.ns,
            }),
        }
    }
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.ns));
    holders
}

/// Whether a wait is for the lock of Ruby.
fn in_ruby(wait: &AttributedWait) -> bool {
    let mut frames = wait.asker.stack.iter();
    frames.any(|frame| frame.language == Language::Ruby)
}

/// How often each of them had it.
fn seen(holders: &[LockHolder]) -> Option<Evidence> {
    let all: Ns = holders.iter().map(|holder| holder.ns).sum();
    let listed: Vec<String> = (holders.iter().take(MAX_NAMED))
        .map(|holder| {
            let share = percent(holder.ns as f64 / all.max(1) as f64);
            format!("~{share} thread {} in {}", holder.tid, holder.place)
        })
        .collect();
    let source = "the interpreter's structures, read from its memory now and then";
    (!listed.is_empty()).then(|| Evidence::new(format!("the lock was held: {}", listed.join(", ")), source))
}

fn kept(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let who = say::name_or(&main.asker.name.process, "the program");
    let lock = say::name_or(&main.resource.name, "the interpreter's global lock");
    let holders = holders(waits);
    let title = match holders.first() {
        Some(holder) => format!(
            "Threads of {who} wait for {lock}, held by thread {} in {}: it does not run",
            holder.tid, holder.place
        ),
        None => format!("Threads of {who} wait for {lock}, whose holder does not run"),
    };
    let ruby = in_ruby(main);
    let keeper = keeper(run, waits).filter(|_| holders.is_empty());
    let keeper = keeper.map(|wait| {
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
        .and_if(seen(&holders))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(match ruby {
            true => "release the lock around blocking code of an extension: rb_thread_call_without_gvl",
            false => {
                "release the lock around blocking code: Py_BEGIN_ALLOW_THREADS in an extension, nogil in Cython, \
                 CDLL instead of PyDLL in ctypes"
            }
        }))
        .remedy(Remedy::safe(match ruby {
            true => "print the stack of each thread: rbspy dump --pid",
            false => "print the stack of each thread: py-spy dump --native --pid",
        }))
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
    let holders = holders(waits);
    let title = match holders.first() {
        Some(first) => {
            let tids: Vec<String> = (holders.iter())
                .filter(|holder| holder.place == first.place)
                .map(|holder| holder.tid.to_string())
                .take(MAX_NAMED)
                .collect();
            let threads = if tids.len() == 1 { "thread" } else { "threads" };
            format!(
                "Threads of {who} contend for {lock}, held mostly in {} by {threads} {}: only its holder runs",
                first.place,
                tids.join(" and ")
            )
        }
        None => format!("Threads of {who} contend for {lock}: only its holder runs"),
    };
    let text = format!(
        "{} waited for it, together {} as long as the whole run",
        say::several(threads.len() as u64, "thread"),
        percent(run.share(waits.own()))
    );
    RULE.finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, "user stacks"))
        .and_if(seen(&holders))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(match in_ruby(main) {
            true => "use processes instead of threads for computation (workers of the server, Process.fork, Ractor)",
            false => "use processes instead of threads for computation (multiprocessing, ProcessPoolExecutor)",
        }))
        .remedy(Remedy::safe(match in_ruby(main) {
            true => "limit what computes for long in one call: Regexp.timeout for expressions, batches for large data",
            false => "compute in code that releases the lock, such as numpy, zlib and hashlib with large inputs",
        }))
        .remedy(Remedy::pointless("more threads: only one runs at a time"))
}
