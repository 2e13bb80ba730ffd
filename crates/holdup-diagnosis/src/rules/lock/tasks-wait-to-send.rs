//! Tasks of a language runtime wait to send on a channel, at a first look and at a last: nobody received meanwhile.

use crate::rules::{Extend, Rule, RuleId, Run, beside, java_waits, say, tasks};
use holdup_evidence::{Cause, TaskRuntime};
use holdup_knowledge::java;
use holdup_model::attributed::{AttributedWait, Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// What the tasks wait for, as it follows "wait".
const WHAT: &str = "to send on a channel";

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::TasksWaitToSend, check)
    .about("tasks of a runtime wait to send on a channel, at a first look and at a last")
    .causes(&[Cause::LockFutex])
    .from(0.0);

fn check(run: &Run<'_>) -> Verdict {
    tasks::judge(run, WHAT, |task| task.sends, finding)
}

/// Who else may have to do with these channels: tasks that refer to one and do not wait to send on it.
fn candidates<'a>(run: &Run<'a>, sending: &[&Task]) -> Vec<&'a Task> {
    let channels: BTreeSet<u64> = sending
        .iter()
        .flat_map(|task| task.channels.awaits.iter().copied())
        .collect();
    let refers = |task: &&Task| {
        task.channels
            .refers
            .iter()
            .any(|channel| channels.contains(channel))
    };
    let of_process = |task: &&Task| task.pid == sending[0].pid;
    // The runtime's own receive nothing, whatever lies beside what their stacks refer to; who waits to send receives nothing now.
    let may_receive = |task: &&Task| task.place.is_some() && !task.sends;
    run.attributed
        .tasks
        .iter()
        .filter(of_process)
        .filter(refers)
        .filter(may_receive)
        .collect()
}

fn candidate(task: &Task) -> String {
    let place = tasks::place(task);
    let does = match task.state {
        TaskState::Running => "runs",
        TaskState::Ready => "is runnable",
        TaskState::Waiting | TaskState::Idle => "waits",
    };
    match task.resource.name.as_str() {
        "" => format!("{place} {does}"),
        what => format!("{place} {does} for {what}"),
    }
}

/// What tasks of a runtime send to, as it follows "wait", and what nobody does then.
fn words(runtime: TaskRuntime) -> [&'static str; 2] {
    match runtime {
        TaskRuntime::Java => ["for room in a queue", "nobody took from it"],
        TaskRuntime::Go | TaskRuntime::Asyncio | TaskRuntime::Node | TaskRuntime::Tokio => {
            [WHAT, "nobody received"]
        }
    }
}

/// The threads that may be the one that takes: they wait for something outside of the process, with a frame of the class in whose methods the tasks
/// stand; else whatever thread does.
fn takers<'a>(run: &'a Run<'_>, sending: &[&Task]) -> Vec<&'a AttributedWait> {
    let outside = beside::outside(run, sending[0].pid);
    let classes: BTreeSet<&str> = sending
        .iter()
        .filter_map(|task| Some(java::class(task.place.as_ref()?.symbol.as_deref()?)))
        .collect();
    let of_class = |wait: &&&AttributedWait| {
        let mut frames = java_waits::frames(wait).into_iter();
        frames.any(|frame| classes.contains(java::class(java::bare(frame))))
    };
    let same: Vec<&AttributedWait> = outside.iter().filter(of_class).copied().collect();
    if same.is_empty() { outside } else { same }
}

fn finding(run: &Run<'_>, sending: &[&Task]) -> Finding {
    let [what, nobody] = words(sending[0].runtime);
    let others = candidates(run, sending);
    let known = sending.iter().any(|task| !task.channels.awaits.is_empty());
    let who = match (others.is_empty(), known) {
        (false, _) => format!(
            "candidates for the receiver, which refer to the channel: {}",
            tasks::say_places(&tasks::places(&others, candidate))
        ),
        (true, true) => format!(
            "no other {}'s stack refers to the channel",
            tasks::name(sending[0])
        ),
        (true, false) if sending[0].runtime == TaskRuntime::Java => {
            "who takes from the queue is not noted".to_owned()
        }
        (true, false) => "which channel it is was not found".to_owned(),
    };
    let share = tasks::runs(run, sending[0].pid);
    let (severity, confidence) = match share > tasks::RUNS_SHARE {
        true => (Severity::Note, Confidence::Suspect),
        false => (Severity::Warning, Confidence::Strong),
    };
    // A channel with room for so many is used as a semaphore, too: who is past the place where it is sent to has its place.
    let takers = match sending[0].runtime {
        TaskRuntime::Java => takers(run, sending),
        TaskRuntime::Go | TaskRuntime::Asyncio | TaskRuntime::Node | TaskRuntime::Tokio => Vec::new(),
    };
    let inside = tasks::further_in(&run.attributed.tasks, sending);
    let inside: Vec<&Task> = inside.into_iter().map(|(task, _)| task).collect();
    let outcome = match inside.first() {
        None => match takers.as_slice() {
            [] if !others.is_empty() => format!(
                ": {nobody}; {} may be the one that receives, in {}",
                match others.len() {
                    1 => format!("1 {}", tasks::name(others[0])),
                    count => format!("one of {count} {}s", tasks::name(others[0])),
                },
                tasks::say_places(&tasks::places(&others, tasks::stands_called))
            ),
            [] => format!(": {nobody}"),
            [one] => format!(
                ": {nobody}; {} may be the one that takes, {}",
                say::who(&one.asker.name),
                beside::doing_with_peer(run, one)
            ),
            several => format!(": {nobody}; {} threads wait for something else", several.len()),
        },
        Some(first) => format!(
            ": {nobody}; {} further in, in {}",
            match inside.len() {
                1 => format!("1 {} is", tasks::name(first)),
                count => format!("{count} {}s are", tasks::name(first)),
            },
            tasks::say_places(&tasks::places(&inside, tasks::stands_called))
        ),
    };
    let further = (!inside.is_empty()).then(|| {
        let named = tasks::say_places(&tasks::places(&inside, candidate));
        Evidence::new(
            format!("further in the same function, as holders of a semaphore are: {named}"),
            "the functions in which tasks stand",
        )
    });
    let finding = tasks::finding(run, RULE.id, severity, sending, [what, &outcome])
        .confidence(confidence)
        .and_if(further)
        .and(Evidence::new(who, "channels, and the stacks of all tasks"))
        .and(Evidence::new(
            format!("its threads ran for {:.1} % of the time", share * 100.0),
            "the scheduler's events",
        ));
    match others.is_empty() {
        true => finding.remedy(Remedy::safe(
            "look for a receiver that has returned early, for instance after an error or a time limit: give the channel room for one value, \
             or let the sender stop by a context",
        )),
        false => finding.remedy(Remedy::safe(
            "find out why the receiver does not receive: it may wait for something that a sender has",
        )),
    }
}
