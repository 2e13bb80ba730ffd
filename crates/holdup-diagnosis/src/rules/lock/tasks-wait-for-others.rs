//! Tasks of a language runtime wait for what another task or thread of the program is to do, at a first look and at a last: and that one waits
//! itself, or there is none.

use crate::rules::beside::{doing, outside};
use crate::rules::{Extend, Rule, RuleId, Run, say, tasks};
use holdup_evidence::facts::FailedTask;
use holdup_evidence::{Cause, Ns, TaskRuntime};
use holdup_knowledge::asyncio::{self, Given};
use holdup_knowledge::python;
use holdup_model::attributed::{AttributedWait, Common, Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::TasksWaitForOthers, check)
    .about("tasks of a runtime wait for what another task or thread does not do")
    .causes(&[Cause::LockFutex])
    .from(0.0)
    .explains(&[RuleId::WaitUncategorised]);

/// What the tasks wait for, where that is several things.
const WHAT: &str = "for others";

/// How Python names the task that it begins a program with.
const FIRST_TASK: &str = "Task-1";

/// Where tasks are read.
const MEMORY: &str = "the program's own structures, read from its memory";

/// Part of the time watched that a wait of a thread is of no matter in: one part of this many.
const NO_MATTER: Ns = 50;

fn check(run: &Run<'_>) -> Verdict {
    let of_interest = |task: &Task| {
        failed_beside(run, task).is_some()
            || awaited(task).is_some_and(|given| match Giver::of(run, &[task]) {
                Some(Giver::Nobody) => !stops(task, given),
                // Work may be due at any time.
                Some(_) => given != Given::Item && !stops(task, given),
                None => false,
            })
    };
    tasks::judge(run, WHAT, of_interest, finding)
}

/// What another task or thread is to do for one.
fn awaited(task: &Task) -> Option<Given> {
    let waits = task.runtime == TaskRuntime::Asyncio && !task.lock && !task.pool && task.awaits.is_none();
    let inside = matches!(task.cause, Cause::LockFutex | Cause::Idle) && task.place.is_some();
    asyncio::given(&task.stack).filter(|_| waits && inside)
}

/// Whether the program's first task waits to be reported of the program's end.
fn stops(task: &Task, given: Given) -> bool {
    let outermost = task.stack.last() == task.place.as_ref();
    matches!(given, Given::Signal | Given::Result) && outermost && task.name.as_deref() == Some(FIRST_TASK)
}

/// The task that has failed beside one that waits for what only another task or thread can do.
fn failed_beside<'a>(run: &Run<'a>, task: &Task) -> Option<&'a FailedTask> {
    let given = awaited(task).filter(|given| !stops(task, *given))?;
    // A worker of a queue may rest, and a program may have taken note of a failure and go on.
    let is_alone = |one: &FailedTask| {
        let left = || Giver::of(run, &[task]);
        one.unasked && matches!(left(), Some(Giver::Nobody))
    };
    let beside = |one: &FailedTask| one.pid == task.pid && one.waiting.contains(&task.id);
    let mut failed = run.facts.failed_tasks.iter();
    failed.find(|one| beside(one) && (given != Given::Item || is_alone(one)))
}

/// A task that has failed, with where it did: `rpc-receive (Channel.receive) has ended with TypeError in Tick.parse (model.py:14)`.
fn has_failed(failed: &FailedTask) -> String {
    let own = failed.frames.last().and_then(|frame| frame.symbol.as_deref());
    let name = failed.name.as_deref().unwrap_or("one");
    let who = own.map_or_else(|| name.to_owned(), |own| format!("{name} ({own})"));
    let raised = failed.frames.iter().find(|frame| !python::is_of_library(frame));
    let raised = raised.map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
    let unasked = match failed.unasked {
        true => ", and nobody has asked for its result",
        false => "",
    };
    format!(
        "the task {who}, which uses the same object, has ended with {}{raised}{unasked}",
        say::name_or(&failed.exception, "an exception")
    )
}

/// The finding about tasks beside which another one has failed; `others`: how many more wait.
fn beside_failed(run: &Run<'_>, waiting: &[&Task], failed: &FailedTask, others: usize) -> Finding {
    let names: BTreeSet<&str> = waiting.iter().map(|task| task.resource.name.as_str()).collect();
    let what = match names.first() {
        Some(name) if names.len() == 1 && !name.is_empty() => format!("for {name}"),
        _ => WHAT.to_owned(),
    };
    let outcome = format!("; {}", has_failed(failed));
    let own = failed.frames.last().and_then(|frame| frame.symbol.as_deref());
    let own = own.unwrap_or("that task");
    let (link, confidence) = match failed.by_name {
        true => ("its code names what those who wait await", Confidence::Strong),
        // Much of a program works on one object, and not for each other.
        false => (
            "an object that its code worked on is one that the code of those who wait works on",
            Confidence::Suspect,
        ),
    };
    let others = match others {
        0 => None,
        1 => Some("1 more waits for other things".to_owned()),
        others => Some(format!("{others} more wait for other things")),
    };
    tasks::finding(run, RULE.id, Severity::Warning, waiting, [&what, &outcome])
        .confidence(confidence)
        .and(Evidence::new(
            format!(
                "the exception, with the frames that it came through, is kept in the task, and {link}; nothing notes who is to end \
                 their wait"
            ),
            MEMORY,
        ))
        .and_if(others.map(|others| Evidence::new(others, MEMORY)))
        .remedy(Remedy::safe(format!(
            "mend what raises {} there, and begin the task again",
            say::name_or(&failed.exception, "the exception")
        )))
        .remedy(Remedy::safe(format!(
            "let the end of {own} end their waits: in `finally`, set an exception on each future that is open, or run it in a \
             `TaskGroup` with those who need it"
        )))
}

/// Who else of a process may be the one that is waited for.
enum Giver<'a> {
    /// These tasks wait for something outside of it.
    Tasks(Vec<&'a Task>),
    /// These threads do.
    Threads(Vec<&'a AttributedWait>),
    /// The code of these uses what is waited for. What they wait for themselves is inside of the process, a timer, or work.
    Users(Vec<&'a Task>),
    /// All other tasks wait for each other, and there is no other thread.
    Nobody,
}

impl<'a> Giver<'a> {
    fn of(run: &'a Run<'_>, waiting: &[&Task]) -> Option<Giver<'a>> {
        let pid = waiting.first()?.pid;
        let mut users = tasks::users(&run.attributed.tasks, waiting);
        users.retain(|task| matches!(task.state, TaskState::Waiting | TaskState::Idle) && task.stood > 0);
        // Those that wait for something outside and use it are the ones; of others it is only known that they wait.
        if !users.is_empty() {
            let outside: Vec<&Task> = users
                .iter()
                .copied()
                .filter(|task| is_for_outside(task))
                .collect();
            return Some(match outside.is_empty() {
                true => Giver::Users(users),
                false => Giver::Tasks(outside),
            });
        }
        let own = run.attributed.tasks.iter().filter(|task| task.pid == pid);
        let tasks: Vec<&Task> = own.clone().filter(|task| is_for_outside(task)).collect();
        let threads: Vec<&AttributedWait> = outside(run, pid)
            .into_iter()
            .filter(|wait| !python::runs_event_loop(&wait.asker.stack))
            .collect();
        let work = own
            .clone()
            .any(|task| !matches!(task.state, TaskState::Waiting | TaskState::Idle));
        match (tasks.is_empty(), threads.is_empty()) {
            (_, false) => Some(Giver::Threads(threads)),
            (false, true) => Some(Giver::Tasks(tasks)),
            (true, true) => (!work && is_left(run, pid)).then_some(Giver::Nobody),
        }
    }

    /// For the end of a title.
    fn outcome(&self) -> String {
        match self {
            Giver::Tasks(tasks) => match tasks.as_slice() {
                [one] => format!(
                    "; the only other task that waits for something else is {} in {}",
                    say::name_or(one.name.as_deref().unwrap_or_default(), "one"),
                    stands(one)
                ),
                several => format!(
                    "; {} other tasks wait for something else, in {}",
                    several.len(),
                    tasks::say_places(&tasks::places(several, stands))
                ),
            },
            Giver::Users(users) => {
                let places = tasks::say_places(&tasks::places(users, stands));
                match users.len() {
                    1 => format!("; 1 other task uses it: in {places}"),
                    count => format!("; {count} other tasks use it: in {places}"),
                }
            }
            Giver::Threads(threads) => {
                let places: BTreeSet<String> = threads.iter().map(|wait| doing(wait)).collect();
                let first = doing(threads[0]);
                let count = threads.len() as u64;
                match (count, places.len()) {
                    (1, _) => format!("; the only other thread that waits for something is {first}"),
                    (_, 1) => format!("; {} are {first}", say::several(count, "other thread")),
                    _ => format!(
                        "; {} wait for something, one is {first}",
                        say::several(count, "other thread")
                    ),
                }
            }
            Giver::Nobody => "; no other task or thread is left that could do it".to_owned(),
        }
    }

    fn evidence(&self) -> Evidence {
        match self {
            Giver::Tasks(_) => Evidence::new(
                "nothing notes who is to end the wait; the tasks named wait for something outside of the process",
                MEMORY,
            ),
            Giver::Users(_) => Evidence::new(
                "nothing notes who is to end the wait; the code of the tasks named uses what is waited for",
                MEMORY,
            ),
            Giver::Threads(_) => Evidence::new(
                "nothing notes who is to end the wait; the threads named wait for something outside of the process",
                "the stacks of the process's threads",
            ),
            Giver::Nobody => Evidence::new(
                "no task waits for a timer or a descriptor, and the loop polls only what its own process can make ready",
                "the program's own structures, and the scheduler's events",
            ),
        }
    }
}

/// Whether a task stands in a wait for something outside of the process.
fn is_for_outside(task: &Task) -> bool {
    let outside = matches!(
        task.cause,
        Cause::PollWait
            | Cause::NetConnect
            | Cause::NetReceive
            | Cause::NetSend
            | Cause::NetDns
            | Cause::ProcessChild
    );
    task.state == TaskState::Waiting && outside && task.place.is_some() && task.stood > 0
}

/// Whether nothing but the loops of a process waits, and those for nothing but the process itself.
fn is_left(run: &Run<'_>, pid: u32) -> bool {
    let mut loops = 0;
    for wait in run
        .attributed
        .waits
        .iter()
        .filter(|wait| wait.asker.name.pid == pid)
    {
        let itself = wait.cause == Cause::IpcQueue && wait.resource.common() == Some(Common::OwnWakeup);
        match itself && python::runs_event_loop(&wait.asker.stack) {
            true => loops += 1,
            false if wait.cause == Cause::Idle || wait.ns.saturating_mul(NO_MATTER) < run.attributed.wall => {
            }
            false => return false,
        }
    }
    loops > 0
}

/// Where a task stands, and what it waits for.
fn stands(task: &Task) -> String {
    let on = match task.resource.name.as_str() {
        "" => task.cause.phrase().to_owned(),
        name => format!("waiting for {name}"),
    };
    format!("{}, {on}", tasks::place(task))
}

/// Who sleeps may do it at its next turn, as a scheduler does; and a signal or an answer may never be due. Where the work of a queue is
/// waited for by one, and those who take from it have none, nobody will say that it is done.
fn severity(giver: &Giver<'_>, waiting: &[&Task]) -> Severity {
    let Giver::Users(users) = giver else {
        return Severity::Warning;
    };
    let at_rest = users.iter().all(|task| task.state == TaskState::Idle);
    let all_done = waiting.iter().all(|task| asyncio::joins(&task.stack) && at_rest);
    match all_done {
        true => Severity::Warning,
        false => Severity::Note,
    }
}

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let failed = waiting.iter().find_map(|task| failed_beside(run, task));
    if let Some(failed) = failed {
        let beside = |task: &&&Task| failed_beside(run, task).is_some_and(|one| std::ptr::eq(one, failed));
        let beside: Vec<&Task> = waiting.iter().filter(beside).copied().collect();
        return beside_failed(run, &beside, failed, waiting.len() - beside.len());
    }
    let giver = Giver::of(run, waiting).unwrap_or(Giver::Nobody);
    let names: BTreeSet<&str> = waiting.iter().map(|task| task.resource.name.as_str()).collect();
    let returned =
        |task: &&Task| awaited(task).is_some_and(|given| matches!(given, Given::Return | Given::Result));
    let returns = matches!(giver, Giver::Threads(_)) && waiting.iter().all(returned);
    let what = match names.first() {
        _ if returns => "for functions in other threads".to_owned(),
        Some(name) if names.len() == 1 && !name.is_empty() => format!("for {name}"),
        _ => WHAT.to_owned(),
    };
    let confidence = match giver {
        Giver::Nobody => Confidence::Strong,
        Giver::Tasks(_) | Giver::Threads(_) | Giver::Users(_) => Confidence::Suspect,
    };
    let finding = tasks::finding(
        run,
        RULE.id,
        severity(&giver, waiting),
        waiting,
        [&what, &giver.outcome()],
    )
    .confidence(confidence)
    .and(giver.evidence());
    match giver {
        Giver::Nobody => finding.remedy(Remedy::safe(
            "find the task that was to do it: it has most likely ended with an exception that nobody has asked it for",
        )),
        Giver::Users(_) if waiting.iter().all(|task| asyncio::joins(&task.stack)) => finding.remedy(Remedy::safe(
            "call `task_done()` for each item that was taken from the queue, also where its work fails: in `finally`",
        )),
        Giver::Users(_) => finding.remedy(Remedy::safe(
            "look at the tasks that use it: one of them is to end the wait, and stands elsewhere",
        )),
        Giver::Tasks(_) | Giver::Threads(_) => finding
            .remedy(Remedy::safe("find out what is at the other end of what that one waits for, and what it does"))
            .remedy(Remedy::safe(
                "give both waits a time limit (`asyncio.timeout`, or one of the client)",
            )),
    }
}
