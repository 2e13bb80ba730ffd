//! A wait for a lock or condition that no thread which there is can end: copied by fork, or left behind by a thread.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, awaited_threads, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::python;
use holdup_knowledge::signal_handlers::handling_with_lock;
use holdup_knowledge::user_code::{Primitive, primitive};
use holdup_model::attributed::{AttributedWait, Orphaned, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Share of the elapsed time from which it is spoken of: what nobody can end lasts until the program is ended from outside,
/// which may be soon after.
const MIN_SHARE: f64 = 0.01;

/// How long such a wait must have lasted, nanoseconds: a thread that has been made and not been heard of yet may end shorter
/// ones.
const MIN_WAIT_NS: Ns = 50_000_000;

/// Places that a title names.
const MAX_PLACES: usize = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::LockOwnerGone, check)
    .about("no thread is left that could release the lock")
    .causes(&[Cause::LockFutex])
    .from(MIN_SHARE);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // Who waits in a signal's handler waits for what that interrupted.
    let of_handler = |wait: &AttributedWait| handling_with_lock(&wait.asker.stack).is_some();
    let orphaned = waits.only(|wait| {
        wait.orphaned.is_some() && !wait.deadlock && wait.max >= MIN_WAIT_NS && !of_handler(wait)
    });
    let groups = orphaned.map_or_else(Vec::new, |all| {
        all.split(|wait| {
            let whole = wait.orphaned.as_ref().is_some_and(|orphaned| orphaned.all_of > 0);
            // All threads of a process are one finding, whatever each of them waits for.
            let lock = (!whole).then(|| wait.resource.name.clone());
            (wait.asker.name.pid, lock)
        })
    });
    let findings: Vec<Finding> = groups
        .iter()
        .filter(|group| run.matters(group.cost(), MIN_SHARE))
        .filter_map(finding)
        .collect();
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => Verdict::Clear(format!(
            "of {}, each could have been ended by another thread",
            say::several(waits.count().max(1), "wait")
        )),
    }
}

fn finding(waits: &Waits<'_>) -> Option<Finding> {
    let main = waits.iter().find(|wait| wait.orphaned.is_some())?;
    let orphaned = main.orphaned.as_ref()?;
    let awaited = primitive(&main.asker.stack);
    let who = match orphaned.all_of {
        0 => say::who(&main.asker.name),
        _ => main.asker.name.process.clone(),
    };
    let alone = orphaned.alone.then(|| {
        Evidence::new(
            format!(
                "{} has no other thread, and the lock is not shared with other processes",
                say::who_with_pid(&main.asker.name)
            ),
            "threads of the process, and the flags of the call",
        )
    });
    // A signal handler may post a semaphore: whether this one has such a handler is not seen.
    let handler = orphaned.owner.is_none().then(|| {
        Evidence::new(
            "a signal handler could also release it if it is a semaphore or an event: handlers were not \
             observed",
            "signal-safety(7)",
        )
    });
    let all = (orphaned.all_of > 0).then(|| {
        Evidence::new(
            format!(
                "all {} threads of {} wait as observation ends, each for something that processes do not share",
                orphaned.all_of,
                say::who_with_pid(&ThreadName {
                    thread: String::new(),
                    ..main.asker.name.clone()
                })
            ),
            "threads of the process, and the flags of their calls",
        )
    });
    let severity = match orphaned.owner {
        Some(_) => Severity::Critical,
        None => Severity::Warning,
    };
    if orphaned.sharers > 0 {
        return Some(shared(waits, main, orphaned));
    }
    if orphaned.queue_sharers > 0 {
        return Some(of_queue(waits, main, orphaned.queue_sharers));
    }
    let finding = RULE
        .finding(severity, title(&who, orphaned, awaited, &places(waits)), waits)
        .and_if(orphaned.owner.as_ref().map(named))
        .and_if(alone)
        .and_if(all)
        .and_if(handler)
        .and(Evidence::new(
            "it had no timeout, and no thread released it during the observation",
            say::SCHEDULER,
        ))
        // Two independent signs prove it.
        .confidence(match (&orphaned.owner, orphaned.alone) {
            (Some(_), true) => Confidence::Proved,
            (Some(_), false) => Confidence::Strong,
            (None, _) => Confidence::Suspect,
        });
    if orphaned.all_of > 0 {
        return Some(finding
            .remedy(Remedy::safe(
                "find out which thread should have ended the first of these waits: a task that waits for \
                 another task of the same pool occupies a thread that the other one needs; use a separate \
                 pool, or a callback instead of a wait",
            ))
            .remedy(Remedy::safe(
                "check the condition with the lock held before waiting: a signal before the wait begins is \
                 lost",
            ))
            .remedy(Remedy::pointless("waiting longer: the wait never ends by itself")));
    }
    Some(match &orphaned.owner {
        Some(owner) if owner.pid == 0 && !orphaned.alone => finding
            .remedy(Remedy::safe(
                "release the locks of the thread on every path on which it can end",
            ))
            .remedy(Remedy::safe(
                "or make the lock robust (PTHREAD_MUTEX_ROBUST): the next waiter then gets EOWNERDEAD",
            ))
            .remedy(Remedy::pointless("waiting longer: the wait never ends by itself")),
        // Of these the child of a fork has a copy, too; but a program with one thread that never forked is the plainer story.
        None if awaited == Some(Primitive::Condition) => finding
            .remedy(Remedy::safe(
                "keep the condition in a variable that is set and read with the mutex held, and wait only \
                 while it is false: a signal before the wait begins is lost",
            ))
            .remedy(Remedy::safe(
                "check whether the thread that should signal has ended or never existed: fork copies the \
                 memory, but only the calling thread",
            ))
            .remedy(Remedy::pointless("waiting longer: the wait never ends by itself")),
        // Nothing was forked while it was held: who was to give or to take has ended.
        None if given(awaited) => finding
            .remedy(Remedy::safe(
                "find out why the thread at the other end has ended: with an exception that nobody read, most likely, or because it was \
                 told to before the others were done; its log says",
            ))
            .remedy(Remedy::safe(
                "let a thread that takes from a queue or sets a result do so on every path on which it can end (finally), and wait with a \
                 timeout, or for its end as well",
            ))
            .remedy(Remedy::pointless("waiting longer: the wait never ends by itself")),
        _ => finding
            .remedy(Remedy::safe(
                "do not fork without exec in a program with threads: use posix_spawn, or exec right after \
                 fork; in Python, use multiprocessing with the start method spawn or forkserver",
            ))
            .remedy(Remedy::safe(
                "fork before threads are started, or hold the lock across fork (pthread_atfork)",
            ))
            .remedy(Remedy::pointless("waiting longer: the wait never ends by itself")),
    })
}

/// Whether another thread gives what is waited for, or takes something away: no lock that one has.
fn given(awaited: Option<Primitive>) -> bool {
    matches!(
        awaited,
        Some(Primitive::Queue | Primitive::Room | Primitive::Future | Primitive::Barrier)
    )
}

/// A semaphore that processes share, of whom all wait for it.
fn shared(waits: &Waits<'_>, main: &AttributedWait, orphaned: &Orphaned) -> Finding {
    let place = chosen_frame(&main.asker.stack)
        .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
    let all = match orphaned.sharers {
        1 => "no other process has it mapped".to_owned(),
        count => format!("all {count} processes that have it mapped wait for it"),
    };
    let title = format!(
        "{} waits for {}{place}, and no process is left that could post it: {all}",
        say::who(&main.asker.name),
        main.resource.name
    );
    let file = main.resource.detail.file.as_deref().unwrap_or_default();
    RULE.finding(Severity::Critical, title, waits)
        .and(Evidence::new(
            format!("its value is 0, and {all}: whoever took it has ended without giving it back"),
            format!("/proc/PID/maps, {file}"),
        ))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "let whoever takes it give it back on every path, or use a lock that the kernel releases when its owner ends: flock, fcntl, or a \
             robust mutex",
        ))
        .remedy(Remedy::changing(
            "to go on now: post it once, or remove its file and start its users again",
            "what its last owner was doing may be half done",
        ))
        .remedy(Remedy::pointless("waiting longer: the wait never ends by itself"))
}

/// The lock of a queue between processes that nobody has who lives.
fn of_queue(waits: &Waits<'_>, main: &AttributedWait, sharers: u64) -> Finding {
    let place = chosen_frame(&main.asker.stack)
        .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
    let others = match sharers {
        1 => "no other process shares it".to_owned(),
        count => format!("of the {count} processes that share it none reads or writes"),
    };
    let title = format!(
        "{} waits for the lock of a multiprocessing queue{place}, which a process held that has ended: {others}",
        say::who(&main.asker.name)
    );
    let file = main.resource.detail.file.as_deref().unwrap_or_default();
    RULE.finding(Severity::Critical, title, waits)
        .and(Evidence::new(
            format!(
                "a process has this lock only while it reads or writes a message; {} is 0, and {others}",
                main.resource.name
            ),
            format!("/proc/PID/maps, /proc/PID/task/TID/syscall, {file}"),
        ))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "do not end a process with SIGKILL or terminate() while it uses a queue: tell it to end by a message, or give each process a              queue of its own",
        ))
        .remedy(Remedy::safe(
            "find out what ended it (the kernel's log names processes killed for memory), and use concurrent.futures.ProcessPoolExecutor,              which fails with BrokenProcessPool instead of waiting",
        ))
        .remedy(Remedy::changing(
            "to go on now: start the program that made the queue again",
            "what is in the queue is lost",
        ))
        .remedy(Remedy::pointless("waiting longer: the wait never ends by itself"))
}

/// Where in the program's code threads wait, who does not wait for the end of another first: that one waits for what nobody does.
fn places(waits: &Waits<'_>) -> Vec<String> {
    let mut order: Vec<&AttributedWait> = waits.iter().collect();
    let rank = |wait: &AttributedWait| match primitive(&wait.asker.stack) {
        Some(Primitive::ThreadEnd) => 2,
        _ if is_worker(wait) => 0,
        _ => 1,
    };
    order.sort_by_key(|wait| rank(wait));
    let mut places: Vec<String> = Vec::new();
    for wait in order {
        let frame = chosen_frame(&wait.asker.stack).filter(|frame| frame.line.is_some());
        let worker = if is_worker(wait) {
            ", a worker of a pool"
        } else {
            ""
        };
        let what = primitive(&wait.asker.stack).filter(|_| worker.is_empty());
        let what = what.map_or_else(String::new, |what| {
            format!(" for {}", awaited_threads::what(what))
        });
        let place = frame.map(|frame| format!("{}{what}{worker}", say::place(frame)));
        places.extend(place.filter(|place| !places.contains(place)));
    }
    places.truncate(MAX_PLACES);
    places
}

/// Whether a thread of a pool of Python's works on a task.
fn is_worker(wait: &AttributedWait) -> bool {
    wait.asker.stack.iter().any(python::is_pools_worker)
}

fn title(who: &str, orphaned: &Orphaned, awaited: Option<Primitive>, places: &[String]) -> String {
    match &orphaned.owner {
        None if orphaned.all_of > 0 => {
            let places = match places {
                [] => String::new(),
                places => format!(", in {}", places.join(" and ")),
            };
            format!(
                "All {} threads of {who} wait for each other{places}: none can continue",
                orphaned.all_of
            )
        }
        Some(owner) if owner.pid != 0 => format!(
            "{who} waits for a lock that {} held when this process was forked: no thread can release the \
             copy",
            say::who_with_pid(owner)
        ),
        Some(owner) if orphaned.alone => format!(
            "{who} waits for a lock of thread {}, which is not in this process: no thread can release it",
            owner.tid
        ),
        Some(owner) => format!(
            "{who} waits for a lock of thread {}, which has exited: no thread can release it",
            owner.tid
        ),
        None => match awaited {
            Some(Primitive::Condition) => {
                format!("{who} waits for a condition that another thread would signal, and has none")
            }
            Some(Primitive::Semaphore) => {
                format!("{who} waits for a semaphore that another thread would post, and has none")
            }
            Some(Primitive::Queue) => {
                format!(
                    "{who} waits for the next item of a queue or channel, and no other thread is left to send one"
                )
            }
            Some(Primitive::Room) => {
                format!(
                    "{who} waits for room in a queue or channel, and no other thread is left to receive from it"
                )
            }
            Some(Primitive::Future) => {
                format!("{who} waits for the result of a future, and no other thread is left to set it")
            }
            Some(Primitive::Barrier) => {
                format!("{who} waits for others at a barrier or latch, and no other thread is left to come")
            }
            _ => {
                format!("{who} waits for a lock or condition that another thread would release, and has none")
            }
        },
    }
}

fn named(owner: &ThreadName) -> Evidence {
    let text = match owner.pid {
        0 => format!(
            "the lock names thread {} as its owner; no such thread exists",
            owner.tid
        ),
        pid => format!(
            "the lock names thread {} as its owner, a thread of process {pid}: memory that was copied by \
             fork keeps this owner",
            owner.tid
        ),
    };
    Evidence::new(text, "owner in the mutex")
}
