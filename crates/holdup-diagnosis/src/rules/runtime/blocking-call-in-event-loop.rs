//! A function that an event loop calls blocks its thread: no other task of the loop runs meanwhile.

use crate::rules::beside::{doing, doing_with_peer, is_busy, is_within, other, others};
use crate::rules::{
    Extend, HARM_FLOOR, MATTERS, Need, Rule, RuleId, Run, Waits, duration, java_waits, root, say,
};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::{Cause, Frame, Language, TaskRuntime};
use holdup_knowledge::user_code::{Primitive, primitive};
use holdup_knowledge::{javascript, python, rust};
use holdup_model::attributed::{AttributedWait, Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::BlockingCallInEventLoop, check)
    .about("a blocking call keeps an event loop from its other tasks")
    .needs(&[Need::SchedulerEvents, Need::WaitMemory])
    .causes(&[
        Cause::TimerSleep,
        Cause::NetReceive,
        Cause::NetSend,
        Cause::NetConnect,
        Cause::NetDns,
        Cause::NetTls,
        Cause::PollWait,
        Cause::IpcPipe,
        Cause::IpcUnix,
        Cause::ProcessChild,
        Cause::LockFutex,
        Cause::LockFile,
        Cause::DiskRead,
        Cause::DiskSync,
    ])
    .explains(&[RuleId::SleepPolling]);

/// Whose loop it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loop {
    Asyncio,
    Node,
    /// One of tokio's workers, which are several threads.
    Tokio,
}

/// The loop that a wait kept from its other tasks.
fn kept(wait: &AttributedWait) -> Option<Loop> {
    let stack = &wait.asker.stack;
    // The frames of who asked a library's thread are others'.
    if wait.resource.detail.asks_for_threads.is_some() {
        return None;
    }
    if python::keeps_event_loop(stack) {
        return Some(Loop::Asyncio);
    }
    if javascript::keeps_event_loop(stack) {
        return Some(Loop::Node);
    }
    rust::keeps_event_loop(stack).then_some(Loop::Tokio)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let by_function = waits.split(|wait| {
        let name = &wait.asker.name;
        let kept = kept(wait);
        // Workers of one runtime take over each other's tasks.
        let tid = (kept != Some(Loop::Tokio)).then_some(name.tid);
        (
            kept,
            name.pid,
            tid,
            asker(wait).and_then(|frame| frame.symbol.clone()),
        )
    });
    let mut longest = 0;
    let mut findings = Vec::new();
    for group in by_function {
        let Some(of) = kept(group.main()) else { continue };
        longest = longest.max(group.longest().max);
        if group.longest().max >= HARM_FLOOR && run.matters(group.cost(), MATTERS) {
            findings.push(finding(run, &group, of));
        }
    }
    match (findings.is_empty(), longest) {
        (false, _) => Verdict::Fires(findings),
        (true, 0) => {
            Verdict::Clear("0 of these waits were in functions that an event loop called".to_owned())
        }
        (true, longest) => Verdict::Clear(format!(
            "no call blocked an event loop for {} or longer; the longest took {}",
            duration(HARM_FLOOR),
            duration(longest)
        )),
    }
}

/// The program's function that made the call.
fn asker(wait: &AttributedWait) -> Option<&Frame> {
    let stack = &wait.asker.stack;
    if let Some(asker) = python::asker(stack) {
        return Some(asker);
    }
    let named = |frame: &&Frame| frame.symbol.is_some() && frame.symbol == wait.asker.frame;
    stack.iter().find(named)
}

/// The function of a library that it called, as far as that is Python: the one next to it.
fn called(wait: &AttributedWait) -> Option<&Frame> {
    let frames = wait.asker.stack.iter();
    let frames: Vec<&Frame> = frames
        .filter(|frame| frame.language == Language::Python)
        .collect();
    let asker = asker(wait)?;
    let at = frames.iter().position(|frame| std::ptr::eq(*frame, asker))?;
    frames.get(at.checked_sub(1)?).copied()
}

/// Of a wait for another thread of the process that nobody is known to end: who is past the place where it waits, else the only one that waits for
/// something itself, else that nobody is there.
fn beside(run: &Run<'_>, waits: &Waits<'_>, of: Loop) -> String {
    let owned = waits.holders().iter().any(|holder| holder.how_known.holds());
    if waits.cause() != Cause::LockFutex || owned {
        return String::new();
    }
    let others = others(run, waits);
    let locked = lock(waits.longest()).is_some();
    let place = asker(waits.longest()).filter(|_| locked);
    let mut within = others
        .iter()
        .filter(|other| place.is_some_and(|place| is_within(other, place)));
    match (others.as_slice(), within.next(), within.next()) {
        (_, Some(one), None) => {
            format!(
                "; {} seems to have it, {}",
                other(&one.asker.name),
                doing_with_peer(run, one)
            )
        }
        ([one], ..) => format!(
            "; its only other thread that waits for something is {}",
            doing_with_peer(run, one)
        ),
        ([], ..) if of == Loop::Tokio && locked && is_of_no_thread(run, waits) => {
            let task = may_have(run, waits).map_or_else(String::new, |frame| {
                format!(", perhaps the one in {}", say::place(frame))
            });
            format!(
                "; no thread is past that: a task that waits at an await has kept the lock{task}, or whoever had it has ended"
            )
        }
        _ => String::new(),
    }
}

/// The type or module in which a function is, by its name.
fn owner(frame: &Frame) -> Option<&str> {
    let symbol = frame.symbol.as_deref()?.trim_end_matches("::{{closure}}");
    symbol.rsplit_once("::").map(|(owner, _)| owner)
}

/// Where a task of tokio stands at an await in a function of the same type as the one that wants the lock, if all of them do so in one place.
fn may_have<'a>(run: &Run<'a>, waits: &Waits<'_>) -> Option<&'a Frame> {
    let wanted = owner(asker(waits.longest())?)?;
    let pid = waits.main().asker.name.pid;
    let tasks = run.attributed.tasks.iter().filter(|task| {
        task.pid == pid && task.runtime == TaskRuntime::Tokio && task.state == TaskState::Waiting
    });
    let of_type = |task: &'a Task| task.stack.iter().find(|frame| owner(frame) == Some(wanted));
    let mut places = tasks.filter_map(of_type);
    let first = places.next()?;
    let same = |frame: &Frame| (&frame.symbol, frame.line) == (&first.symbol, first.line);
    places.all(same).then_some(first)
}

/// Whether a lock that stands taken is of no thread of the process: each is known, none computes meanwhile, and none stands in a function of the
/// program for a thread: it may have the lock, whatever it waits for.
fn is_of_no_thread(run: &Run<'_>, waits: &Waits<'_>) -> bool {
    let name = &waits.main().asker.name;
    let own: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    let may_have = |wait: &AttributedWait| {
        let other = wait.asker.name.pid == name.pid && !own.contains(&wait.asker.name.tid);
        let place = chosen_frame(&wait.asker.stack);
        other && wait.open && wait.cause == Cause::LockFutex && place.is_some_and(is_applications)
    };
    java_waits::stands(run, waits.longest())
        && !run.attributed.waits.iter().any(may_have)
        && !is_busy(run, waits)
        && all_known(run, waits.main().asker.name.pid)
}

/// The lock that a call waits for.
fn lock(wait: &AttributedWait) -> Option<Primitive> {
    let is_lock = |one: &Primitive| matches!(one, Primitive::Mutex | Primitive::ReadWriteLock);
    primitive(&wait.asker.stack)
        .filter(|_| wait.cause == Cause::LockFutex)
        .filter(is_lock)
}

/// For what a call of Rust waits for a lock, with the crate that the program called for it: `a reader-writer lock of dashmap`.
fn lock_words(wait: &AttributedWait) -> Option<String> {
    let what = match lock(wait)? {
        Primitive::Mutex => "a mutex",
        _ => "a reader-writer lock",
    };
    let place = asker(wait)?;
    let at = wait
        .asker
        .stack
        .iter()
        .position(|frame| std::ptr::eq(frame, place))?;
    let called = wait.asker.stack.get(at.checked_sub(1)?)?;
    let of = rust::fetched_crate(called).map_or_else(String::new, |name| format!(" of {name}"));
    Some(format!("waiting for {what}{of}"))
}

/// Whether of each thread of a process is known where it is.
fn all_known(run: &Run<'_>, pid: u32) -> bool {
    let rows = run
        .attributed
        .waits
        .iter()
        .filter(|wait| wait.asker.name.pid == pid);
    let known: BTreeSet<u32> = rows
        .filter(|wait| !wait.asker.stack.is_empty())
        .map(|wait| wait.asker.name.tid)
        .collect();
    let mut threads = run
        .attributed
        .threads
        .iter()
        .filter(|thread| thread.name.pid == pid);
    threads.all(|thread| known.contains(&thread.name.tid))
}

/// Whether no thread of a process but its first can run JavaScript: all others are known, and none is a worker.
fn is_without_workers(run: &Run<'_>, pid: u32) -> bool {
    let mut rows = run
        .attributed
        .waits
        .iter()
        .filter(|wait| wait.asker.name.pid == pid);
    all_known(run, pid) && !rows.any(|wait| javascript::is_worker(&wait.asker.stack))
}

/// What a wait in `Atomics.wait` is for, and who could end it.
fn notified(run: &Run<'_>, wait: &AttributedWait) -> String {
    let who = match is_without_workers(run, wait.asker.name.pid) {
        true => ", and no other thread of the process runs JavaScript",
        false => "",
    };
    format!("in Atomics.wait, until another thread calls Atomics.notify{who}")
}

/// The other end of a connection that a call waited for, for the end of a title.
fn peer(run: &Run<'_>, wait: &AttributedWait) -> String {
    let of_peer = matches!(
        wait.cause,
        Cause::NetReceive | Cause::NetSend | Cause::NetConnect | Cause::NetTls
    );
    let holder = wait
        .holders
        .first()
        .filter(|holder| of_peer && holder.name.pid != 0);
    match (holder, say::peer(&wait.resource).as_str()) {
        (Some(holder), "") => format!(", {}", say::program(run, &holder.name)),
        (Some(holder), address) => format!(", {} at {address}", say::program(run, &holder.name)),
        (None, address) if of_peer && !address.is_empty() => format!(", {address}"),
        (None, _) => String::new(),
    }
}

/// Whether the call is for the end of a child, through whatever the process hears of it.
fn for_child(wait: &AttributedWait) -> bool {
    wait.cause == Cause::ProcessChild || javascript::awaits_child(&wait.asker.stack)
}

/// Who is in the way of the call, and what that one does, for the end of a title: a child, another process, or another thread that has the lock.
fn beyond(run: &Run<'_>, waits: &Waits<'_>) -> String {
    let longest = waits.longest();
    let pid = longest.asker.name.pid;
    let holders = waits.holders();
    let child = holders
        .iter()
        .find(|holder| holder.name.pid != 0 && holder.name.pid != pid);
    let named = match (for_child(longest), child) {
        (true, Some(child)) => format!(", {}", say::who_with_pid(&child.name)),
        _ => String::new(),
    };
    if let Some(root) = root::of(waits) {
        let direct = child.map_or(0, |child| child.name.pid);
        return named + &root.stands_of(direct);
    }
    let owner = holders
        .iter()
        .find(|holder| holder.how_known.holds() && holder.name.pid == pid);
    let Some(owner) = owner else { return named };
    let own = |wait: &&AttributedWait| (wait.asker.name.pid, wait.asker.name.tid) == (pid, owner.name.tid);
    let does = run.attributed.waits.iter().filter(own).max_by_key(|wait| wait.ns);
    let does = does.map_or_else(String::new, |wait| format!(", {}", doing(wait)));
    format!(", which {} has{does}", other(&owner.name))
}

fn finding(run: &Run<'_>, waits: &Waits<'_>, of: Loop) -> Finding {
    let longest = waits.longest();
    let name = &longest.asker.name;
    let place = asker(longest).map_or_else(|| "a callback".to_owned(), say::place);
    let in_atomics = of == Loop::Node && javascript::awaits_notify(&longest.asker.stack);
    let (took, why) = match in_atomics {
        true => (duration(longest.max), notified(run, longest)),
        false if for_child(longest) => (duration(longest.max), Cause::ProcessChild.phrase().to_owned()),
        false => {
            let lock = lock_words(longest).filter(|_| of == Loop::Tokio);
            let why = lock.unwrap_or_else(|| longest.cause.phrase().to_owned());
            (duration(longest.max), why)
        }
    };
    let (beside, peer) = (beside(run, waits, of), peer(run, longest) + &beyond(run, waits));
    // Of one that goes on, how long it has done so is said behind the clause, as of all waits.
    let (blocks, long) = match longest.open {
        true => ("has blocked", String::new()),
        false => ("blocks", format!(" for up to {took}")),
    };
    let title = match of {
        Loop::Asyncio | Loop::Node => {
            let who = say::who(name);
            Title::from(format!("{place} {blocks} the event loop of {who}{long}"))
        }
        Loop::Tokio => {
            let workers: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
            let workers = say::several(workers.len() as u64, "worker thread");
            let process = say::name_or(&name.process, "the program");
            Title::from(format!("{place} {blocks} {workers} of tokio in {process}{long}"))
        }
    };
    let title = title.with(format!(": {why}{peer}")).with(beside);
    let call = called(longest).map(|frame| {
        let text = format!("it called {}, which blocks the thread", say::place(frame));
        Evidence::new(text, "user stacks")
    });
    let mut loops = run.attributed.event_loops.iter();
    let tasks = loops.find(|one| (one.pid, one.tid) == (name.pid, name.tid));
    let others = tasks.map_or(0, |one| one.tasks.saturating_sub(1));
    let delayed = (others > 0).then(|| {
        let text = format!(
            "{} of the loop could not run meanwhile",
            say::several(others, "other task")
        );
        Evidence::new(text, "the program's own structures, read from its memory")
    });
    let holders = waits.holders();
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .about_if_unnamed(Some(longest.resource.clone()))
        .and_if(call)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(delayed)
        .confidence(Confidence::Strong);
    match of {
        Loop::Node if in_atomics => finding
            .remedy(Remedy::safe(
                "give Atomics.wait a time limit, and let the worker set the value and notify on every path, also where it throws",
            ))
            .remedy(Remedy::safe(
                "look in the log for an error that ended the worker; listen for its error and exit events, which cannot run while the loop waits",
            ))
            .remedy(Remedy::pointless(
                "a larger UV_THREADPOOL_SIZE: the call is made by the thread of the event loop",
            )),
        Loop::Asyncio => finding
            .remedy(Remedy::safe(
                "await instead of blocking: asyncio.sleep, and a client library with coroutines",
            ))
            .remedy(Remedy::safe(
                "move the call to another thread: await asyncio.to_thread(…), or loop.run_in_executor",
            ))
            .remedy(Remedy::pointless(
                "more tasks or a larger pool of connections: one thread runs all of them",
            )),
        Loop::Node => finding
            .remedy(Remedy::safe(
                "call the function without Sync, with a callback or await: execFile, fs.promises.readFile",
            ))
            .remedy(Remedy::safe("move the call to a worker_threads.Worker"))
            .remedy(Remedy::pointless(
                "a larger UV_THREADPOOL_SIZE: the call is made by the thread of the event loop",
            )),
        Loop::Tokio if lock(longest).is_some() => finding
            .remedy(Remedy::safe(
                "keep no guard of a lock over an await: end its scope before, or use tokio::sync::Mutex or RwLock",
            ))
            .remedy(Remedy::safe("do not block while holding it: tokio::task::spawn_blocking"))
            .remedy(Remedy::pointless(
                "more worker threads: each blocks as soon as it runs such a task",
            )),
        Loop::Tokio => finding
            .remedy(Remedy::safe(
                "move the call to a thread that may block: tokio::task::spawn_blocking",
            ))
            .remedy(Remedy::safe(
                "await instead of blocking: tokio::fs, tokio::net, tokio::time::sleep",
            ))
            .remedy(Remedy::pointless(
                "more worker threads: each blocks as soon as it runs such a task",
            )),
    }
}
