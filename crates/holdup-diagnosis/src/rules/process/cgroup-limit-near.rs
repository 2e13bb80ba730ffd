//! A cgroup has nearly all that it may have of processes or memory.

use crate::rules::{Rule, RuleId, Run, say};
use holdup_evidence::observed::{Awaited, CgroupUser, Limited, SeenCgroup};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Part of a limit on processes from which a burst of a few reaches it: then nothing can be started in there.
pub(crate) const TASKS: f64 = 0.9;

/// Part of a limit on memory from which it is worth a note: services that are given a heap of nine tenths of it are usual.
const MEMORY: f64 = 0.9;

/// The same from which the next wish for a few megabytes ends a process.
pub(crate) const MEMORY_SHORT: f64 = 0.97;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::CgroupLimitNear, check)
    .about("a cgroup is near its limit of processes or memory")
    .causes(&[Cause::KernelWork, Cause::MemReclaim]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let limited: Vec<&SeenCgroup> = observed
        .cgroups
        .iter()
        .filter(|one| one.limit > 0.0 && one.what != Limited::CpuTime)
        .collect();
    let part = |one: &SeenCgroup| one.used / one.limit;
    let Some(nearest) = limited.iter().max_by(|a, b| part(a).total_cmp(&part(b))) else {
        return Verdict::CannotTell(
            "which limits cgroups have, and what they use of them: `holdup host`".into(),
        );
    };
    let found: Vec<Finding> = limited
        .iter()
        .filter(|one| !(one.paused && is_waited_for(observed, one)))
        .filter_map(|one| Some(finding(observed, one, severity(one)?)))
        .collect();
    if !found.is_empty() {
        return Verdict::Fires(found);
    }
    Verdict::Clear(format!(
        "{}, the nearest to its limit, has {} of {}",
        nearest.cgroup,
        amount(nearest.what, nearest.used),
        amount(nearest.what, nearest.limit)
    ))
}

/// Whether somebody waits for memory there: then that is the finding.
fn is_waited_for(observed: &Observed, one: &SeenCgroup) -> bool {
    let mut waits = observed.waits.iter().flatten();
    waits.any(|wait| wait.on == Awaited::Memory && wait.name == one.cgroup)
}

fn severity(one: &SeenCgroup) -> Option<Severity> {
    let part = one.used / one.limit;
    let refused = one.refused.unwrap_or(0) > 0;
    match one.what {
        Limited::Tasks if refused => Some(Severity::Critical),
        Limited::Tasks if part >= TASKS => Some(Severity::Warning),
        Limited::Memory if one.paused => Some(Severity::Critical),
        Limited::Memory if refused || part >= MEMORY_SHORT => Some(Severity::Warning),
        Limited::Memory if part >= MEMORY => Some(Severity::Note),
        Limited::Tasks | Limited::Memory | Limited::CpuTime => None,
    }
}

fn amount(what: Limited, value: f64) -> String {
    match what {
        Limited::Memory => say::bytes(value as u64),
        Limited::Tasks | Limited::CpuTime => say::several(value as u64, "task"),
    }
}

/// Part of what a cgroup has from which the program that has it stands in the title.
const MIN_NAMED_SHARE: f64 = 0.3;

/// `, 38 of them of python3 agent.py`: the programs that have most, if that is much.
fn most(one: &SeenCgroup) -> String {
    let much = one
        .users
        .iter()
        .filter(|user| user.amount >= MIN_NAMED_SHARE * one.used);
    let names: Vec<String> = much
        .take(2)
        .enumerate()
        .map(|(at, user)| {
            let name = say::name_or(&user.name, "a program");
            match one.what {
                Limited::Memory => format!(
                    "{} of it {name} (pid {})",
                    say::bytes(user.amount as u64),
                    user.pid
                ),
                Limited::Tasks | Limited::CpuTime if at == 0 => {
                    format!("{:.0} of them of {name}", user.amount)
                }
                Limited::Tasks | Limited::CpuTime => format!("{:.0} of {name}", user.amount),
            }
        })
        .collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(", {}", names.join(" and ")),
    }
}

/// `38 tasks of python3 agent.py (38 processes, pid 7)`.
fn user_of(one: &SeenCgroup, user: &CgroupUser) -> String {
    format!(
        "{} of {} ({}, pid {})",
        amount(one.what, user.amount),
        say::name_or(&user.name, "a program"),
        say::several(user.processes, "process"),
        user.pid
    )
}

fn finding(observed: &Observed, one: &SeenCgroup, severity: Severity) -> Finding {
    let (used, limit) = (amount(one.what, one.used), amount(one.what, one.limit));
    let refused = one.refused.filter(|count| *count > 0);
    let is_tasks = one.what == Limited::Tasks;
    let then = match (is_tasks, refused) {
        (true, Some(_)) => "no process can be started there",
        (true, None) => "soon no process can be started there",
        (false, _) if one.paused => {
            "its OOM killer is disabled, and whoever needs more waits until another one gives some back"
        }
        (false, Some(_)) => "a process was ended there for it",
        (false, None) => "processes that need more are killed",
    };
    let title = match is_tasks {
        true => format!(
            "The cgroup {} has {:.0} of at most {limit} (processes and threads, pids.max){}: {then}",
            one.cgroup,
            one.used,
            most(one)
        ),
        false => format!(
            "The cgroup {} uses {used} of at most {limit} of memory{}: {then}",
            one.cgroup,
            most(one)
        ),
    };
    let place = match (observed.place(&one.quote), is_tasks) {
        (place, _) if !place.is_empty() => place,
        (_, true) => "pids.current".to_owned(),
        (_, false) => "memory.current".to_owned(),
    };
    let (cause, setting, left_out) = match is_tasks {
        true => (Cause::KernelWork, "pids.max", ""),
        false => (
            Cause::MemReclaim,
            "memory.max, or memory.limit_in_bytes",
            "; cached files, which it can give back, are not counted",
        ),
    };
    let first = Evidence::new(format!("{used} of at most {limit}{left_out}"), place.clone());
    let mut finding = Finding::without_duration(RULE.id.id(), severity, title, cause, first);
    if let Some(count) = refused {
        let text = match is_tasks {
            true => format!("{} while it was watched", say::several(count, "refused start")),
            false => format!(
                "{} for memory while it was watched",
                if count == 1 {
                    "1 process was ended".to_owned()
                } else {
                    format!("{count} processes were ended")
                }
            ),
        };
        finding = finding.and(Evidence::new(text, place));
    }
    if let [_, ..] = one.users.as_slice() {
        let listed: Vec<String> = one.users.iter().map(|user| user_of(one, user)).collect();
        let text = format!("who has most: {}", listed.join(", "));
        finding = finding.and(Evidence::new(
            text,
            "cgroup.procs, /proc/PID/statm, /proc/PID/task",
        ));
    }
    let resource = Resource::named(ResourceKind::Cgroup, &one.cgroup)
        .with(|facts| facts.setting = Some(setting.to_owned()));
    let finding = finding
        .about(resource, Asker::default())
        .confidence(Confidence::Proved);
    let finding = match one.users.first() {
        Some(user) if user.amount >= MIN_NAMED_SHARE * one.used => finding.remedy(
            Remedy::safe(match is_tasks {
                true => format!("find out why {} does not end", say::name_or(&user.name, "it")),
                false => format!("find out what {} keeps in memory", say::name_or(&user.name, "it")),
            })
            .with_command(format!("holdup attach -p {}", user.pid)),
        ),
        _ => finding,
    };
    let finding = match is_tasks {
        true => finding.remedy(
            Remedy::safe("list its processes, and find those that do not end")
                .with_command(format!("systemd-cgls {}", say::quoted(&one.cgroup))),
        ),
        false => finding.remedy(Remedy::safe(
            "find the process that uses the memory, and check whether it grows (memory.stat: anon, shmem, \
             kernel)",
        )),
    };
    finding.remedy(Remedy::changing(
        format!("raise its limit ({setting})"),
        "a leak also reaches the next limit, and the machine has its own limits",
    ))
}
