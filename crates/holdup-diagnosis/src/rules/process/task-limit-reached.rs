//! A program can start no process: a limit on processes and threads is used up.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, say};
use holdup_evidence::facts::{TaskLimit, TasksOf};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Programs that use the limit up and are named in evidence.
const MAX_NAMES: usize = 5;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::TaskLimitReached, check)
    .about("a program can start no process: the limit of its user or cgroup is used up")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence)
    .explains(&[RuleId::SleepsOnPurpose]);

fn check(run: &Run<'_>) -> Verdict {
    let Some(limits) = &run.facts.task_limits else {
        return Verdict::CannotTell(
            "which limits on processes were used up: /proc/PID/limits, pids.events".to_owned(),
        );
    };
    let findings: Vec<Finding> = limits.iter().filter_map(|limit| finding(run, limit)).collect();
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => Verdict::Clear(format!(
            "{} on processes used up, and nobody was refused one, or slept there",
            say::several(limits.len() as u64, "limit")
        )),
    }
}

/// The process that most likely tries again: of those that are bound the one that sleeps most. What uses the limit up does that, too; so it comes
/// last.
fn who_tries<'a>(run: &Run<'a>, limit: &TaskLimit) -> Option<&'a AttributedWait> {
    let bound = run
        .attributed
        .waits
        .iter()
        .filter(|wait| limit.binds.contains(&wait.asker.name.pid));
    let uses = |wait: &AttributedWait| {
        limit.programs.first().is_some_and(|one| {
            let name = say::script(run, wait.asker.name.pid).unwrap_or(wait.asker.name.process.as_str());
            one.name == name
        })
    };
    bound.max_by_key(|wait| (!uses(wait), wait.cause == Cause::TimerSleep, wait.ns))
}

fn finding(run: &Run<'_>, limit: &TaskLimit) -> Option<Finding> {
    let main = who_tries(run, limit)?;
    let own: Ns = run
        .waits(|wait| wait.asker.name.pid == main.asker.name.pid)?
        .own();
    let sleeps = main.cause == Cause::TimerSleep && main.ns.saturating_mul(2) > own;
    // Nobody counts what a user is refused: who has no process left and sleeps tries again, or needs none.
    let refused = limit.refused.filter(|count| *count > 0);
    if refused.is_none() && !sleeps {
        return None;
    }
    let who = match say::script(run, main.asker.name.pid) {
        Some(script) => format!("{script} (pid {})", main.asker.name.pid),
        None => say::who_with_pid(&main.asker.name),
    };
    let (of, setting) = match &limit.of {
        TasksOf::User(name) => (format!("user {name}"), "RLIMIT_NPROC"),
        TasksOf::Cgroup(path) => (format!("cgroup {path}"), "pids.max"),
    };
    let most = limit.programs.first().map_or_else(String::new, |one| {
        format!(
            ", {} of them of {}",
            one.tasks,
            say::name_or(&one.name, "a process")
        )
    });
    let title = format!(
        "{who} can start no process: {of} has {} of at most {} ({setting}){most}",
        limit.used, limit.limit
    );
    let listed = limit.programs.iter().take(MAX_NAMES);
    let listed: Vec<String> = listed
        .map(|one| {
            format!(
                "{} {} (pid {})",
                one.tasks,
                say::name_or(&one.name, "a process"),
                one.pid
            )
        })
        .collect();
    let (used, raise) = match &limit.of {
        TasksOf::User(name) => (
            Evidence::new(
                format!(
                    "{} processes and threads of user {name}: {}",
                    limit.used,
                    listed.join(", ")
                ),
                "/proc/PID/status and /proc/PID/limits",
            ),
            "raise its limit (LimitNPROC= of its unit, limits.conf), or run it as a user of its own",
        ),
        TasksOf::Cgroup(_) => (
            Evidence::new(
                format!("{} processes and threads: {}", limit.used, listed.join(", ")),
                "pids.current and cgroup.procs",
            ),
            "raise the limit (TasksMax= of its unit, the container's pids.max)",
        ),
    };
    let severity = match refused {
        Some(_) => Severity::Warning,
        None => Severity::Note,
    };
    let resource = match &limit.of {
        TasksOf::User(name) => Resource::named(ResourceKind::Process, name),
        TasksOf::Cgroup(path) => Resource::named(ResourceKind::Cgroup, path),
    };
    let resource = resource.with(|facts| facts.setting = Some(setting.to_owned()));
    let ns = main.ns.min(run.attributed.elapsed);
    let user = limit.programs.first();
    let look = user.map(|one| {
        Remedy::safe("find out why those do not end, and give them a time limit")
            .with_command(format!("holdup attach -p {}", one.pid))
    });
    let mut finding = Finding::new(RULE.id.id(), severity, title, main.cause, ns, used)
        .about(resource, main.asker.clone())
        .and_if(refused.map(|count| {
            Evidence::new(
                format!("the kernel refused {}", say::several(count, "start")),
                "pids.events",
            )
        }))
        .confidence(match refused {
            Some(_) => Confidence::Proved,
            None => Confidence::Strong,
        });
    if let Some(look) = look {
        finding = finding.remedy(look);
    }
    Some(finding.remedy(Remedy::changing(raise, "what does not end uses up any limit")))
}
