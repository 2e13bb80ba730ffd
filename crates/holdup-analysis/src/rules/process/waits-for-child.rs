//! Waiting for a child process, whose own time is what matters.

use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::WaitsForChild,
    about: "a process waits for its child",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::ProcessChild],
    from: MATTERS,
    gives_way_to: &[RuleId::ChildCannotWrite],
    place: Place::Way,
    check: Check::Waits(check),
};

/// How much longer than its parent's a wait for a grandchild may be to be the same time: the two begin and end a fork
/// and an exit apart, which a busy machine draws out.
const SAME_TIME: f64 = 1.1;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let groups = run.worth(waits, waits.split(|wait| wait.asker.name.pid), MATTERS);
    let told = |inner: &Waits<'_>| groups.iter().any(|outer| leads_to(outer, inner));
    let outermost = groups.iter().filter(|group| !told(group));
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
    let children = group.holders();
    let title = match children.as_slice() {
        [] => format!("{who} waits for a child process"),
        [child] => format!("{who} waits for its child {}", say::who(&child.name)),
        [child, others @ ..] => format!(
            "{who} waits for its children: {} the longest, and {}",
            say::who(&child.name),
            say::several(others.len() as u64, "other")
        ),
    };
    let child = children
        .first()
        .map_or_else(|| "the child".to_owned(), |child| say::who(&child.name));
    RULE.finding(Severity::Note, title, group)
        .about_if_unnamed(children.first().map(say::in_the_way))
        .and_if(children.first().map(say::meanwhile))
        .and_if(say::way(group))
        .proved_if(!children.is_empty())
        .remedy(Remedy::safe(format!("look at {child}: this wait is its time")))
}
