//! Sleeping a little, again and again, to look whether something has happened.

use super::connection_refused_retried::refused;
use super::local_ports_used_up::without_port;
use super::sleeps_on_purpose::is_delayed;
use crate::rules::{
    Generality, HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, awaited_sleepers, duration, for_nobody,
    java_waits, percent, say,
};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::Kind;
use holdup_knowledge::{interpreters, python, system_calls};
use holdup_model::attributed::FdKind;
use holdup_model::attributed::{AttributedWait, Holder, How, Pace, Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// Sleeps from which it is a habit.
const MIN_SLEEPS: u64 = 5;

/// How much longer than the median the long sleeps may be, as a half of it: equal lengths with the scheduler's delays.
/// A program that backs off doubles instead.
const EQUAL: u64 = 2;

/// How far the mean may be from the median, as one part in so many of it.
const UNEVEN: u64 = 4;

/// Of so many sleeps, one after which it let another thread go on: who looks for something does so once, when it is found.
const HANDS_ON: u64 = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SleepPolling, check)
    .about("it polls with sleeps of a fixed length")
    .causes(&[Cause::TimerSleep])
    .generality(Generality::General)
    .explains(&[RuleId::SleepsOnPurpose]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // What it looks for is then known, and reported by a rule of its own.
    if let Some(peer) = refused(run, waits) {
        return Verdict::Clear(format!(
            "it sleeps between connections that {} refuses",
            peer.peer
        ));
    }
    if let Some(peer) = without_port(run, waits) {
        return Verdict::Clear(format!(
            "it sleeps between connections to {} for which no local port is left",
            peer.peer
        ));
    }
    // A shell's loop sleeps in a new process each time, so the asker is the program and the function, not the thread.
    let groups = waits.split(|wait| {
        let asker = &wait.asker;
        (asker.name.process.clone(), asker.frame.clone(), wait.call.clone())
    });
    let groups = groups.into_iter().flat_map(|group| by_parent(run, group));
    // The thread of an event loop sleeps for whichever of its tasks is next: that says nothing of one of them.
    let groups = groups.filter(|group| !python::runs_event_loop(&group.main().asker.stack));
    let (habits, others): (Vec<_>, Vec<_>) = groups.partition(|group| is_habit(run, group));
    let (working, habits): (Vec<_>, Vec<_>) = habits
        .into_iter()
        .partition(|group| in_requests(run, group) || handed_on(run, group) * HANDS_ON >= group.count());
    let (fed, habits): (Vec<_>, Vec<_>) = habits.into_iter().partition(|group| is_fed(run, group));
    let (unsure, habits): (Vec<_>, Vec<_>) = habits.into_iter().partition(|group| is_averaged(run, group));
    let (paced, habits): (Vec<_>, Vec<_>) = habits.into_iter().partition(is_paced);
    let (unnamed, habits): (Vec<_>, Vec<_>) = habits.into_iter().partition(is_unnamed_timer);
    let (beats, habits): (Vec<_>, Vec<_>) = habits.into_iter().partition(|group| is_heartbeat(run, group));
    let habits: Vec<_> = habits
        .iter()
        .filter(|group| run.matters(group.cost(), MATTERS))
        .collect();
    if let (true, Some(group)) = (
        habits.is_empty(),
        unsure.iter().find(|group| run.matters(group.cost(), MATTERS)),
    ) {
        return Verdict::CannotTell(format!(
            "whether {} sleeps have one length: they were sampled, and only their mean is known. Tracing \
             shows it",
            group.count()
        ));
    }
    if let (true, Some(group)) = (habits.is_empty(), unnamed.first()) {
        return Verdict::CannotTell(format!(
            "whether the {} sleeps of an event loop, {} each time, look for something: which timer they were for is not known",
            group.count(),
            duration(group.median())
        ));
    }
    if let (true, Some(group)) = (habits.is_empty(), paced.first()) {
        let text = match group.main().pace {
            Pace::FixedTimes => "what delays one does not delay the others: it does something at fixed times",
            _ => "each until an instant: at fixed times, as far as so few sleeps show",
        };
        return Verdict::Clear(format!("it slept {} times, {text}", group.count()));
    }
    if let (true, Some(group)) = (habits.is_empty(), beats.first()) {
        return Verdict::Clear(format!(
            "an event loop slept {} times, {} each time, and awaited nothing else: its heartbeat",
            group.count(),
            duration(group.median())
        ));
    }
    if let (true, Some(group)) = (habits.is_empty(), working.first()) {
        if in_requests(run, group) {
            return Verdict::Clear(format!(
                "it slept {} times, mostly with a request in progress: the sleep is part of the answer, not \
                 polling",
                group.count()
            ));
        }
        return Verdict::Clear(format!(
            "it slept {} times, and {} times woke a thread that waited for it: the sleep is its work, not \
             polling",
            group.count(),
            handed_on(run, group)
        ));
    }
    if let (true, Some(group)) = (habits.is_empty(), fed.first()) {
        return Verdict::Clear(format!(
            "it slept {} times while other threads waited for it to receive their data: it had work, so it \
             did not poll",
            group.count()
        ));
    }
    if habits.is_empty() {
        let most = others.iter().map(Waits::count).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "it slept {} of the elapsed time, at most {most} times from one place, not each time as long",
            percent(run.share(waits.cost())),
        ));
    }
    Verdict::Fires(habits.into_iter().map(|group| finding(run, group)).collect())
}

/// Programs that were started from several places sleep each for its own reason.
fn by_parent<'a>(run: &Run<'a>, group: Waits<'a>) -> Vec<Waits<'a>> {
    let parent = |wait: &AttributedWait| {
        let pid = wait.asker.name.pid;
        let started = |parent: &AttributedWait| {
            parent.cause == Cause::ProcessChild && parent.holders.iter().any(|child| child.name.pid == pid)
        };
        run.waits(started).map(|parent| parent.main().asker.name.pid)
    };
    // Only the longest children of a parent are known: where one parent is, the unknown ones are its own.
    let known: BTreeSet<u32> = group.iter().filter_map(parent).collect();
    match known.len() {
        0 | 1 => vec![group],
        _ => group.split(parent),
    }
}

/// Whether most of such sleep was that of threads with a request to answer, and there were about as many requests.
fn in_requests(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let Some(requests) = &run.attributed.requests else {
        return false;
    };
    let slept = requests
        .causes
        .get(&Cause::TimerSleep)
        .map_or(0, |tally| tally.ns);
    requests.count.saturating_mul(HANDS_ON) >= group.count() && slept.saturating_mul(2) >= group.own()
}

/// How often the sleepers ended another thread's wait for a lock, in a pipe or on a connection. A parent waits for the end of a sleep
/// that it started for itself.
fn handed_on(run: &Run<'_>, group: &Waits<'_>) -> u64 {
    let sleepers: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let by_sleeper = |holder: &&Holder| holder.name.tid != 0 && sleepers.contains(&holder.name.tid);
    let ns = |holder: &Holder| u128::from(holder.ns);
    let ended = run.attributed.waits.iter().filter(|wait| {
        let others = !wait.cause.on_cpu() && wait.cause != Cause::ProcessChild;
        others && wait.holders.iter().any(|holder| by_sleeper(&holder))
    });
    // Which of a row's waits each of its holders ended is not kept: as many as its part of their time.
    let part = |wait: &AttributedWait| {
        let all: u128 = wait.holders.iter().map(ns).sum();
        let own: u128 = wait.holders.iter().filter(by_sleeper).map(ns).sum();
        u64::try_from(u128::from(wait.count) * own / all.max(1)).unwrap_or(wait.count)
    };
    ended.map(part).sum()
}

/// Whether others waited, for most of the sleep, for the sleepers to take what they sent to them: there was always something there.
fn is_fed(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let sleepers: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.pid).collect();
    let sends = Kind::Sends | Kind::Writes | Kind::MovesData;
    let to_send = run.attributed.waits.iter().filter(|wait| {
        let channel = matches!(wait.cause, Cause::NetSend | Cause::IpcPipe | Cause::IpcUnix);
        channel
            && system_calls::is_named(wait.call.as_deref(), sends)
            && !sleepers.contains(&wait.asker.name.pid)
    });
    let for_them = to_send.map(|wait| {
        let theirs = wait
            .holders
            .iter()
            .filter(|holder| sleepers.contains(&holder.name.pid));
        theirs.fold(0_u64, |sum, holder| sum.saturating_add(holder.ns))
    });
    for_them.fold(0_u64, u64::saturating_add).saturating_mul(2) >= group.own()
}

/// Many sleeps of about one length, one after the other.
fn is_habit(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let one_alone = group.iter().any(|wait| wait.count >= MIN_SLEEPS);
    let several = group.split(|wait| wait.asker.name.pid).iter().any(|process| {
        process
            .iter()
            .any(|wait| wait.asker.name.tid != process.main().asker.name.tid)
    });
    // Threads that sleep side by side do not sleep again.
    if (several || group.own() > run.attributed.elapsed) && !one_alone {
        return false;
    }

    let median = group.median();
    let longest = group.iter().map(|wait| wait.p99).max().unwrap_or(0);
    let shortest = group.iter().map(|wait| wait.p50).min().unwrap_or(0);
    // Long and short in turn have a median that is one of them.
    let mean = group.own() / group.count().max(1);
    let even = mean.abs_diff(median) <= median / UNEVEN;
    let equal = even && longest <= median + median / EQUAL && shortest >= median / EQUAL;
    group.count() >= MIN_SLEEPS && median > 0 && equal
}

/// Where a source looks now and then, sleeps of one thread that were over between two looks are reported as so many of one length.
fn is_averaged(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let averaged = |wait: &AttributedWait| wait.how == How::Sampled && wait.count > 1;
    !run.attributed.source.records_each_wait() && group.iter().any(averaged)
}

/// Sleeps that keep a pace are for what they are, and not for something else to happen.
fn is_paced(group: &Waits<'_>) -> bool {
    let by_timer = |wait: &AttributedWait| wait.resource.detail.fd_kind == Some(FdKind::Timerfd);
    match group.main().pace {
        Pace::FixedTimes | Pace::Until => true,
        Pace::OneAfterTheOther => false,
        Pace::Unknown => by_timer(group.main()),
    }
}

/// Whether these are sleeps of an interpreter's event loop until its next timer, and nothing shows whose that is: a clock's tick, a limit of time
/// and a look whether something has happened are the same there.
fn is_unnamed_timer(group: &Waits<'_>) -> bool {
    group.iter().all(|wait| {
        let in_loop = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll);
        in_loop && chosen_frame(&wait.asker.stack).is_some_and(interpreters::is_own_code)
    })
}

/// Of programs that run already: whether it is the heartbeat of an event loop, which awaits what others do and has nothing outstanding.
/// One that looks for something looks more often than people notice, or has other waits each time.
fn is_heartbeat(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let epoll = |wait: &AttributedWait| system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll);
    let in_loop = group.iter().all(epoll);
    if !run.attributed.of_threads || !in_loop || group.median() < HARM_FLOOR {
        return false;
    }
    let sleepers: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let works = run.waits(|wait| {
        let elsewhere =
            !wait.cause.on_cpu() && !matches!(wait.cause, Cause::TimerSleep | Cause::SchedRunqueue);
        elsewhere && sleepers.contains(&wait.asker.name.tid)
    });
    works.map_or(0, |works| works.count()) * HANDS_ON < group.count()
}

/// Of programs that run already: whether the sleepers ask somebody between their sleeps, and wait long for the answers. What nobody has
/// answered yet is then what matters first, and the sleep between two questions after that.
fn asks_between(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let sleepers: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let answers = run.waits(|wait| {
        let peers = matches!(
            wait.cause,
            Cause::NetReceive | Cause::NetTls | Cause::NetDns | Cause::IpcUnix
        );
        peers && sleepers.contains(&wait.asker.name.tid)
    });
    run.attributed.of_threads
        && answers.is_some_and(|answers| {
            answers.count().saturating_mul(HANDS_ON) >= group.count() && run.matters(answers.cost(), MATTERS)
        })
}

/// Of programs that run already: whether another thread of the sleepers' process stands in a wait for some thread of it, and none of the
/// sleepers is known to be in its way. The sleeper goes on with its rounds, and that one with nothing.
fn another_stands(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let pids: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.pid).collect();
    let sleepers: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let by_sleeper = |holder: &Holder| sleepers.contains(&holder.name.tid);
    let lacks = |cause| awaited_sleepers::for_others(cause) || cause == Cause::ProcessChild;
    let task_stands = |task: &Task| {
        let waits = task.state == TaskState::Waiting && lacks(task.cause);
        waits && pids.contains(&task.pid) && task.stood >= java_waits::STANDS_NS
    };
    run.attributed.of_threads
        && (run.attributed.tasks.iter().any(task_stands)
            || run.attributed.waits.iter().any(|wait| {
                let name = &wait.asker.name;
                lacks(wait.cause)
                    && pids.contains(&name.pid)
                    && !sleepers.contains(&name.tid)
                    && !wait.holders.iter().any(by_sleeper)
                    && java_waits::stands(run, wait)
            }))
}

/// Of programs that run already: whether the sleeps are long enough to be felt, and nobody else of those observed stands in anything. A daemon
/// makes its rounds so, and only what it looks for between them could say that something is late.
fn makes_rounds(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let sleepers: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let stands = |wait: &AttributedWait| {
        let waits = !wait.cause.on_cpu() && wait.cause != Cause::Idle;
        waits && wait.open && !sleepers.contains(&wait.asker.name.tid)
    };
    run.attributed.of_threads
        && group.median() >= HARM_FLOOR
        && !group.iter().any(|wait| is_delayed(run, wait))
        && !run.attributed.waits.iter().any(stands)
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let about = if group.estimated() { "about " } else { "" };
    let length = format!("{about}{}", duration(group.median()));
    let sleeper = say::who(&group.main().asker.name);
    let times = format!("sleeps {length} at a time, {} times over", group.count());
    // A shell sleeps by starting a program for it, each time anew. A child that sleeps again and again does so by itself.
    let each_anew = group
        .split(|wait| wait.asker.name.pid)
        .iter()
        .all(|process| process.count() < MIN_SLEEPS);
    let started = run.waits(|wait| {
        let waited_for = || wait.holders.iter().any(|child| say::who(&child.name) == sleeper);
        each_anew && wait.cause == Cause::ProcessChild && waited_for()
    });
    let title = match started {
        Some(parent) => format!(
            "{} {times}, by way of {sleeper}",
            say::who(&parent.main().asker.name)
        ),
        None => format!("{sleeper} {times}"),
    };
    let text = format!(
        "polling finds the event {} late on average",
        duration(group.median() / 2)
    );
    // What slows clients is elsewhere, where others of the process serve them and this thread does not.
    let aside = || group.iter().all(|wait| for_nobody::is_aside(run, wait));
    let severity =
        match asks_between(run, group) || aside() || another_stands(run, group) || makes_rounds(run, group) {
            true => Severity::Note,
            false => Severity::Warning,
        };
    RULE.finding(severity, title, group)
        .and(Evidence::new(text, "half of the length of a sleep"))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "wait for the event instead: inotify for files, waitpid for children, poll for sockets, a \
             condition variable for threads",
        ))
        .remedy(Remedy::changing(
            "sleep for a shorter time",
            "it then polls more often, and uses more CPU time",
        ))
}
