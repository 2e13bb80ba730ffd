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

/// Programs that a title names, and the part of what is used from which one is named.
const MAX_TITLED: usize = 2;
const MIN_TITLED_PART: u64 = 4;

/// `, 24 of them of bash build.sh and 22 of python3 agent.py`.
fn most(limit: &TaskLimit) -> String {
    let much = limit.programs.iter().take(MAX_TITLED);
    let much = much.filter(|one| one.tasks.saturating_mul(MIN_TITLED_PART) >= limit.used);
    let names: Vec<String> = much
        .enumerate()
        .map(|(at, one)| {
            let name = say::name_or(&one.name, "a process");
            match at {
                0 => format!("{} of them of {name}", one.tasks),
                _ => format!("{} of {name}", one.tasks),
            }
        })
        .collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(", {}", names.join(" and ")),
    }
}

fn finding(run: &Run<'_>, limit: &TaskLimit) -> Option<Finding> {
    // Nobody counts what a user is refused: who has no process left and sleeps tries again, or needs none.
    let refused = limit.refused.filter(|count| *count > 0);
    // Of a whole machine small waits are not kept one by one: then nobody knows who tries.
    let main = who_tries(run, limit);
    if main.is_none() && refused.is_none() {
        return None;
    }
    if let Some(main) = main {
        let own: Ns = run
            .waits(|wait| wait.asker.name.pid == main.asker.name.pid)?
            .own();
        let sleeps = main.cause == Cause::TimerSleep && main.ns.saturating_mul(2) > own;
        if refused.is_none() && !sleeps {
            return None;
        }
    }
    let who = main.map_or_else(String::new, |main| match say::script(run, main.asker.name.pid) {
        Some(script) => format!("{script} (pid {})", main.asker.name.pid),
        None => say::who_with_pid(&main.asker.name),
    });
    let (of, setting) = match &limit.of {
        TasksOf::User(name) => (format!("user {name}"), "RLIMIT_NPROC"),
        TasksOf::Cgroup(path) => (format!("cgroup {path}"), "pids.max"),
    };
    let most = most(limit);
    let title = match main {
        Some(_) => format!(
            "{who} can start no process: {of} has {} of at most {} ({setting}){most}",
            limit.used, limit.limit
        ),
        None => format!(
            "No process can be started: {of} has {} of at most {} ({setting}){most}",
            limit.used, limit.limit
        ),
    };
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
    let user = limit.programs.first();
    let look = user.map(|one| {
        Remedy::safe("find out why those do not end, and give them a time limit")
            .with_command(format!("holdup attach -p {}", one.pid))
    });
    let finding = match main {
        Some(main) => {
            let ns = main.ns.min(run.attributed.elapsed);
            Finding::new(RULE.id.id(), severity, title, main.cause, ns, used)
        }
        None => Finding::without_duration(RULE.id.id(), severity, title, Cause::KernelWork, used),
    };
    let mut finding = finding
        .about(resource, main.map(|main| main.asker.clone()).unwrap_or_default())
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
