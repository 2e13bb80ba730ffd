//! Goroutines wait for a value of a channel, at a first look and at a last.
//!
//! The problem: a goroutine that waits for a value may be without work, and nothing tells that from one that lacks it. The choice: where a program
//! serves nobody, or a goroutine answers a request, what it waits for is said, as a note. What is known of who should send is said by
//! `goroutines-wait-for-others`, which goes before this rule.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, say, tasks};
use holdup_evidence::{Cause, TaskRuntime};
use holdup_knowledge::go;
use holdup_model::attributed::{Task, TaskOthers};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::GoroutinesAwaitSilence, check)
    .about("goroutines wait for a value of a channel, at a first look and at a last")
    .causes(&[Cause::LockFutex])
    .from(0.0)
    .generality(Generality::Describes);

/// What the goroutines wait for, as it follows "wait".
const WHAT: &str = "to receive from a channel";

fn check(run: &Run<'_>) -> Verdict {
    let mut serving: BTreeMap<u32, bool> = BTreeMap::new();
    for task in &run.attributed.tasks {
        let mut symbols = task.stack.iter().filter_map(|frame| frame.symbol.as_deref());
        let serves = symbols.any(|symbol| go::accepts(symbol) || go::awaits_signals(symbol));
        *serving.entry(task.pid).or_default() |= serves;
    }
    tasks::judge(
        run,
        WHAT,
        |task| awaits(task) && (!serving[&task.pid] || answers(task)),
        finding,
    )
}

/// Whether the application waits for a value that no timer sends.
fn awaits(task: &Task) -> bool {
    let for_value = matches!(task.others, Some(TaskOthers::Value | TaskOthers::First));
    let of_go = task.runtime == TaskRuntime::Go && task.place.is_some();
    for_value && of_go && !task.channels.timed && go::waits_by_itself(&task.stack)
}

/// Whether somebody waits for its answer.
fn answers(task: &Task) -> bool {
    let mut symbols = task.stack.iter().filter_map(|frame| frame.symbol.as_deref());
    symbols.any(go::serves)
}

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let first = waiting[0];
    let kinds: BTreeSet<&str> = waiting.iter().map(|task| task.resource.name.as_str()).collect();
    let what = match (first.others, kinds.len()) {
        (Some(TaskOthers::Value), 1) => WHAT.to_owned(),
        (_, 1) => format!("for {}", first.resource.name),
        _ => "for channels".to_owned(),
    };
    let others = senders(run, waiting);
    let outcome = match others.len() {
        0 => String::new(),
        1 => format!(
            "; 1 other goroutine refers to it, in {}",
            tasks::say_places(&tasks::places(&others, tasks::stands_called))
        ),
        count => format!(
            "; {count} other goroutines refer to it, in {}",
            tasks::say_places(&tasks::places(&others, tasks::stands_called))
        ),
    };
    let answering = waiting.iter().filter(|task| answers(task)).count();
    tasks::finding(run, RULE.id, Severity::Note, waiting, [&what, &outcome])
        .confidence(Confidence::Suspect)
        .and(Evidence::new(
            "a goroutine without work waits in the same way, and one may have got values between the two looks: whether somebody should have sent is not known",
            "channels, and the stacks of all tasks",
        ))
        .and_if((answering > 0).then(|| {
            Evidence::new(
                format!("{} of them answer a request", answering),
                "the stacks of all tasks",
            )
        }))
        .and(Evidence::new(
            format!("its threads ran for {:.1} % of the time", tasks::runs(run, first.pid) * 100.0),
            say::SCHEDULER,
        ))
        .remedy(Remedy::safe(
            "find who sends to that channel, and whether it has returned early: then close the channel, or wait for the end of a context as \
             well (`select`)",
        ))
}

/// Who else refers to one of these channels.
fn senders<'a>(run: &Run<'a>, waiting: &[&Task]) -> Vec<&'a Task> {
    let channels: BTreeSet<u64> = waiting
        .iter()
        .flat_map(|task| task.channels.awaits.iter().copied())
        .collect();
    let other = |task: &&Task| {
        task.pid == waiting[0].pid && task.place.is_some() && waiting.iter().all(|one| one.id != task.id)
    };
    let refers = |task: &&Task| task.channels.refers.iter().any(|one| channels.contains(one));
    let tasks = run.attributed.tasks.iter();
    tasks.filter(other).filter(refers).collect()
}
