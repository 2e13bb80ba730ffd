//! Waiting for a child process, whose own time is what matters.

use crate::rules::{Extend, Generality, MATTERS, Rule, RuleId, Run, Waits, root, say};
use holdup_evidence::Cause;
use holdup_model::attributed::Holder;
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::WaitsForChild, check)
    .about("a process waits for its child")
    .causes(&[Cause::ProcessChild])
    .generality(Generality::Describes)
    .intermediate();

/// How much longer than its parent's a wait for a grandchild may be to be the same time: the two begin and end a fork
/// and an exit apart, which a busy machine draws out.
const SAME_TIME: f64 = 1.1;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let groups = run.worth(waits, waits.split(|wait| wait.asker.name.pid), MATTERS);
    let holds = |inner: &Waits<'_>| groups.iter().any(|outer| leads_to(outer, inner));
    let outermost = groups.iter().filter(|group| !holds(group));
    Verdict::Fires(outermost.map(finding).collect())
}

/// Whether one waits for the process of another, or its way goes on through it, and takes its wait in, so that to tell
/// it once is enough.
fn leads_to(outer: &Waits<'_>, inner: &Waits<'_>) -> bool {
    let (waiter, through) = (outer.main().asker.name.pid, inner.main().asker.name.pid);
    let child = outer
        .iter()
        .flat_map(|wait| &wait.holders)
        .any(|child| child.name.pid == through);
    let on_the_way = outer.main().chain.iter().any(|link| link.name.pid == through);
    waiter != through && (child || on_the_way) && inner.cost() as f64 <= outer.cost() as f64 * SAME_TIME
}

fn finding(group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let mut children = group.holders();
    // One child is known by its end, or by having lived until the wait was broken off; it is one all the same.
    let mut known = BTreeSet::new();
    children.retain(|child| child.name.pid == 0 || known.insert(child.name.pid));
    let halted = children.first().and_then(halted);
    let title = match children.as_slice() {
        [] => format!("{who} waits for a child process"),
        [child] => format!("{who} waits for its child {}", named(group, child)),
        [child, others @ ..] => format!(
            "{who} waits for its children: {} the longest, and {}",
            say::who(&child.name),
            say::several(others.len() as u64, "other")
        ),
    };
    let child = children
        .first()
        .map_or_else(|| "the child".to_owned(), |child| say::who(&child.name));
    let sleeps = children
        .first()
        .is_some_and(|child| child.doing == Some(Cause::TimerSleep));
    let (severity, title) = match halted {
        None => {
            let sleeps = sleeps && children.len() == 1;
            let beyond = match beyond(group, &children) {
                nothing if nothing.is_empty() && sleeps => ", which sleeps on purpose".to_owned(),
                beyond => beyond,
            };
            (Severity::Note, title + &beyond)
        }
        Some(how) if group.open() => (Severity::Critical, format!("{title}, which is {}", how.words())),
        Some(how) => (Severity::Warning, format!("{title}, which was {}", how.words())),
    };
    let finding = RULE
        .finding(severity, title, group)
        .about_if_unnamed(children.first().map(say::in_the_way))
        .and_if(children.first().map(say::meanwhile))
        .and_if(say::way(group))
        .proved_if(!children.is_empty());
    match (halted, children.first()) {
        (Some(Halted::Stopped), Some(stopped)) => finding.remedy(
            Remedy::changing("find out why it was stopped, and continue it", HAD_A_REASON)
                .with_command(format!("kill -CONT {}", stopped.name.pid)),
        ),
        (Some(_), _) => finding.remedy(Remedy::changing(
            "find out what froze the cgroup (a paused container?), and thaw it",
            HAD_A_REASON,
        )),
        (None, _) => finding.remedy(Remedy::safe(format!(
            "look at {child}: this wait is its running time"
        ))),
    }
}

/// A child; of an interpreter that runs already its script.
fn named(group: &Waits<'_>, child: &Holder) -> String {
    match group.run.attributed.of_threads {
        true => say::program(&group.run, &child.name),
        false => say::who(&child.name),
    }
}

/// Of a wait that was found going on: what the child does, or whoever that waits for, since nobody sees it end.
fn beyond(group: &Waits<'_>, children: &[Holder]) -> String {
    let child = children
        .first()
        .filter(|_| group.run.attributed.of_threads && group.open());
    let root = child.and_then(|child| Some((root::of(group)?, child)));
    root.map_or_else(String::new, |(root, child)| root.stands_of(child.name.pid))
}

const HAD_A_REASON: &str = "it may have been stopped for a reason";

/// How a child is kept from doing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halted {
    Stopped,
    Frozen,
}

impl Halted {
    fn words(self) -> &'static str {
        match self {
            Halted::Stopped => "stopped",
            Halted::Frozen => "frozen",
        }
    }
}

/// Whether a child could do nothing, for most of the time for which it was waited for: how.
fn halted(child: &Holder) -> Option<Halted> {
    match child.doing? {
        Cause::ProcessStopped => Some(Halted::Stopped),
        Cause::ProcessFrozen => Some(Halted::Frozen),
        _ => None,
    }
}
