//! Ready to run, but others had the CPU, or a quota was spent.

use crate::attributed::{Resource, ResourceKind};
use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::{Cause, Ns};
use std::collections::BTreeMap;

/// Part of the queueing, one in so many, that the quota must account for to be called the reason. The kernel counts
/// throttled time by CPU, the run by thread, so that the two never agree exactly.
const THROTTLED_PART: Ns = 4;

/// Others that are named at most.
const NAMED: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::CpuContended,
    about: "it is ready to run, but others have the CPU or a quota is spent",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::SchedRunqueue, Cause::SchedThrottled, Cause::SchedSteal],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check,
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    fires(match waits.cause() {
        Cause::SchedSteal => RULE
            .finding(
                Severity::Warning,
                "The hypervisor ran something else on this machine's CPUs".into(),
                waits,
            )
            .remedy(Remedy::safe(
                "move the guest to a host with less on it, or give it CPUs of its own",
            )),
        cause if cause == Cause::SchedThrottled || throttled(run, waits) => limited(run, waits),
        _ => queued(run, waits),
    })
}

fn throttled(run: &Run<'_>, waits: &Waits<'_>) -> bool {
    let cgroup = &run.facts.cgroup;
    cgroup.cpu_throttled.is_some_and(|(times, ns)| {
        times > 0 && ns.saturating_mul(THROTTLED_PART) >= waits.own() && cgroup.cpu_quota.is_some()
    })
}

/// The limit is the reason.
fn limited(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let cgroup = &run.facts.cgroup;
    let path = cgroup.path.as_deref().unwrap_or("its cgroup");
    let quota = cgroup.cpu_quota.map(|(quota, period)| {
        let cpus = quota as f64 / period.max(1) as f64;
        (
            format!("{cpus:.2} CPUs"),
            format!(
                "{} of every {}",
                duration(quota * 1_000),
                duration(period * 1_000)
            ),
        )
    });
    let title = match &quota {
        Some((cpus, _)) => format!("The limit of its cgroup, {cpus}, is used up"),
        None => "The CPU limit of its cgroup is used up".to_owned(),
    };
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .confidence(Confidence::Proved);
    finding.resource = Resource {
        kind: ResourceKind::Cgroup,
        name: path.to_owned(),
        detail: BTreeMap::new(),
    };
    if let Some((_, each)) = &quota {
        finding = finding.and(Evidence::new(
            format!("cgroup {path} may run {each}"),
            "its CPU quota and period",
        ));
    }
    if let Some((times, ns)) = cgroup.cpu_throttled {
        let text = format!("stopped {times} times while it ran, for {} in all", duration(ns));
        finding = finding.and(Evidence::new(text, "cpu.stat"));
    }
    finding
        .remedy(Remedy::changing(
            "raise the quota or take it away",
            "others on this machine get less CPU",
        ))
        .remedy(Remedy::safe(
            "use fewer threads, so that the quota lasts for the period",
        ))
        .remedy(Remedy::pointless(
            "a faster machine or more CPUs: the quota is what ends",
        ))
}

/// Others ran.
fn queued(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let mut instead: BTreeMap<&str, Ns> = BTreeMap::new();
    for (name, ns) in waits.iter().flat_map(|wait| &wait.ran_instead) {
        *instead.entry(name).or_default() += ns;
    }
    let mut instead: Vec<(&str, Ns)> = instead.into_iter().collect();
    instead.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let who = say::who(&waits.main().asker.name);
    let own = |name: &str| {
        run.attributed
            .threads
            .iter()
            .any(|thread| thread.name.process == name || thread.name.thread == name)
    };
    let own_ns: Ns = instead
        .iter()
        .filter(|(name, _)| own(name))
        .map(|(_, ns)| ns)
        .sum();
    let all_ns: Ns = instead.iter().map(|(_, ns)| ns).sum();
    // Who had the CPU is said only where most of the queueing shows it; a guest's CPU may not have run at all.
    let seen = all_ns.saturating_mul(2) >= waits.own();
    let by_itself = seen && own_ns.saturating_mul(2) > all_ns;
    let (severity, title) = match instead.first() {
        Some(_) if by_itself => (
            Severity::Note,
            "It has more work ready than CPUs to run it on".to_owned(),
        ),
        Some((name, _)) if seen => (
            Severity::Warning,
            format!("{name} had the CPU while {who} was ready to run"),
        ),
        _ => (
            Severity::Warning,
            format!("{who} was ready to run, and had to wait for a CPU"),
        ),
    };
    let winner = instead.first().filter(|_| seen).map(|(name, _)| Resource {
        kind: ResourceKind::Process,
        name: (*name).to_owned(),
        detail: BTreeMap::new(),
    });
    let finding = RULE.finding(severity, title, waits).about_if_unnamed(winner);
    let finding = match instead.is_empty() {
        true => finding.confidence(Confidence::Suspect),
        false => {
            let names: Vec<String> = instead
                .iter()
                .take(NAMED)
                .map(|(name, ns)| format!("{name} {}", percent(*ns as f64 / all_ns.max(1) as f64)))
                .collect();
            let names = names.join(", ");
            let (text, confidence) = match seen {
                true => (
                    format!("who ran meanwhile on its CPU: {names}"),
                    Confidence::Proved,
                ),
                false => (
                    format!(
                        "others ran for only {} of {} meanwhile: {names}",
                        duration(all_ns),
                        duration(waits.own())
                    ),
                    Confidence::Suspect,
                ),
            };
            finding
                .and(Evidence::new(text, "sched_switch"))
                .confidence(confidence)
        }
    };
    match by_itself {
        true => finding.remedy(Remedy::safe(
            "give it more CPUs; with fewer threads it takes as long, but disturbs others less",
        )),
        false => finding
            .remedy(Remedy::changing(
                "move the others away, or give them a lower priority (nice, cpu.weight)",
                "they take longer then",
            ))
            .remedy(
                Remedy::safe("let it run on more CPUs: see whether it is bound to one")
                    .with_command(format!("taskset -pc {}", waits.main().asker.name.pid)),
            ),
    }
}
