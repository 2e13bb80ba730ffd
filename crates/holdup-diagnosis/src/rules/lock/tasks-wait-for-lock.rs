//! Tasks of a language runtime wait for a lock of the program, at a first look and at a last. No thread waits for it.

use crate::rules::{Check, Generality, Need, Place, Rule, RuleId, Run, say, tasks};
use holdup_evidence::Cause;
use holdup_model::attributed::Task;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::TasksWaitForLock,
    about: "tasks of a runtime wait for a lock, at a first look and at a last",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::LockFutex],
    from: 0.0,
    generality: Generality::Specific,
    explains: &[],
    place: Place::End,
    check: Check::Attached(check),
};

/// What the tasks wait for, as it follows "wait".
const WHAT: &str = "for a lock";

fn check(run: &Run<'_>) -> Verdict {
    tasks::judge(run, WHAT, |task| task.lock, finding)
}

/// Who has the lock, where that is known.
fn has_it(run: &Run<'_>, tasks: &[&Task]) -> Evidence {
    let source = "the layout of the runtime's locks";
    let known = tasks.iter().find_map(|task| {
        let held_by = task.held_by?;
        let all = run.attributed.tasks.iter();
        all.into_iter()
            .find(|one| (one.pid, one.id) == (task.pid, held_by))
    });
    match known {
        Some(holder) => {
            let name = holder.name.as_deref().unwrap_or("a task");
            let doing = match holder.resource.name.as_str() {
                "" => holder.cause.phrase().to_owned(),
                what => format!("waiting for {what}"),
            };
            let text = format!(
                "held by {} in {}, {doing}",
                say::name_or(name, "a task"),
                tasks::place(holder)
            );
            Evidence::new(text, source)
        }
        None => Evidence::new(
            "who has the lock is not known: the runtime does not note it",
            source,
        ),
    }
}

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let finding = tasks::finding(run, RULE.id, Severity::Warning, waiting, [WHAT, ""])
        .confidence(Confidence::Strong)
        .and(has_it(run, waiting));
    let finding = match tasks::places(waiting, tasks::place).len() {
        1 => finding,
        _ => finding.remedy(Remedy::safe(
            "check whether these functions take the same locks in different orders: each then waits for a lock that another of them has",
        )),
    };
    finding.remedy(Remedy::safe(
        "look in a dump of all tasks for one that has locked it and waits for something else, or has returned without unlocking it",
    ))
}
