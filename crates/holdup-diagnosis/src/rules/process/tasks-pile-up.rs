//! Tasks pile up at one place in the kernel.

use crate::rules::blocked;
use crate::rules::blocked::{Group, Series};
use crate::rules::figures::span;
use crate::rules::{Generality, Rule, RuleId, Run, fires, say};
use holdup_evidence::observed::SeenThread;
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Severity, Verdict};

/// Tasks at one place in every list from which they pile up: one or two are the work of one program.
pub(crate) const MIN_TASKS_IN_EACH_LIST: usize = 3;

/// The same where there is one list only: an instant shows chance as well, so it takes more.
const MIN_TASKS_IN_ONE_LIST: usize = 6;

/// Lists in all of which one and the same task must be at the same place before that is worth a note.
const MIN_LISTS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::TasksPileUp, check)
    .about("tasks pile up at one place in the kernel")
    .causes(&[Cause::Unknown])
    .generality(Generality::Describes)
    .explains(&[RuleId::CpuWaitsForDisk])
    .intermediate();

/// What is missing where no list tells states.
const MISSING: &str =
    "which tasks are blocked, and in what: `ps -eLo pid,tid,stat,wchan:32,comm`, best several times";

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(series) = blocked::series(observed) else {
        return Verdict::CannotTell(MISSING.to_owned());
    };
    let lists = series.instants.len();
    if lists > 1
        && let Some(group) = series.same_place(MIN_TASKS_IN_EACH_LIST)
    {
        return fires(pile(&series, &group, Confidence::Strong));
    }
    if lists == 1
        && let Some(group) = series.largest(|group| group.tasks.len() >= MIN_TASKS_IN_ONE_LIST)
    {
        return fires(pile(&series, &group, Confidence::Suspect));
    }
    if let Some(group) = stands_still(&series) {
        return fires(still(&series, &group));
    }
    // Of tasks that somebody chose, what they wait for is the question.
    if !series.whole {
        return match series.largest(|group| !group.function.is_empty()) {
            Some(group) => fires(still(&series, &group)),
            None => Verdict::CannotTell(MISSING.to_owned()),
        };
    }
    Verdict::Clear(format!(
        "{} tasks are blocked in the kernel (D) in {}",
        span(&series.blocked(), 0),
        say::several(lists as u64, "list")
    ))
}

fn pile<'a>(series: &Series<'a>, group: &Group<'a>, confidence: Confidence) -> Finding {
    let channel = series.channel(group);
    let lists = series.instants.len();
    let often = match lists {
        1 => String::new(),
        lists => {
            format!(", so many at the most of {lists} lists, and at least {MIN_TASKS_IN_EACH_LIST} in each")
        }
    };
    let place = match group.function {
        "" => "in the kernel".to_owned(),
        function => format!("at {function}{}", series.phrase(group)),
    };
    let who = blocked::names(&group.tasks);
    let title = format!("{} blocked {place}: {who}", blocked::tasks(group.tasks.len()));
    let severity = match series.told_by_disk(channel) {
        true => Severity::Note,
        false => Severity::Warning,
    };
    let first = series.evidence(group, &often);
    let mut finding = Finding::without_duration(RULE.id.id(), severity, title, channel.cause, first);
    if lists == 1 {
        finding = finding.and(Evidence::new(
            "one list shows one instant: only a second list shows whether they are still there",
            series.place(),
        ));
    }
    // Without the place it is not known that they wait for the same.
    let confidence = if group.function.is_empty() {
        Confidence::Suspect
    } else {
        confidence
    };
    blocked::tell(finding, series, group).confidence(confidence)
}

/// Tasks that are blocked at the same place in every one of several lists.
fn stands_still<'a>(series: &Series<'a>) -> Option<Group<'a>> {
    if series.instants.len() < MIN_LISTS {
        return None;
    }
    let (first, others) = series.instants.split_first()?;
    let stays = |function: &str, task: &SeenThread| {
        others.iter().all(|instant| {
            let mut same = instant.groups.iter().filter(|group| group.function == function);
            same.any(|group| group.tasks.iter().any(|other| other.tid == task.tid))
        })
    };
    first.groups.iter().find_map(|group| {
        let found = !group.function.is_empty();
        let tasks: Vec<&SeenThread> = group
            .tasks
            .iter()
            .copied()
            .filter(|task| found && stays(group.function, task))
            .collect();
        (!tasks.is_empty()).then_some(Group {
            function: group.function,
            tasks,
        })
    })
}

fn still<'a>(series: &Series<'a>, group: &Group<'a>) -> Finding {
    let channel = series.channel(group);
    let how_often = match series.instants.len() {
        1 => String::new(),
        lists => format!(" in each of {lists} lists"),
    };
    let verb = if group.tasks.len() == 1 { "is" } else { "are" };
    let title = format!(
        "{} {verb} blocked at {}{how_often}{}",
        blocked::names(&group.tasks),
        group.function,
        series.phrase(group)
    );
    let first = series.evidence(group, &how_often);
    let finding = Finding::without_duration(RULE.id.id(), Severity::Note, title, channel.cause, first);
    blocked::tell(finding, series, group).confidence(Confidence::Suspect)
}
