//! The CPU quota of its cgroup is spent before the period is over.

use crate::attributed::{Resource, ResourceKind};
use crate::finding::{Confidence, Evidence, Remedy, Severity, Verdict};
use crate::rules::{Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::{Cause, Ns};
use std::collections::{BTreeMap, BTreeSet};

/// Part of the queueing, one in so many, that the quota must account for to be called its reason where the kernel does
/// not show which thread is throttled. The kernel counts throttled time by CPU, the run by thread, so that the two never
/// agree exactly.
const THROTTLED_PART: Ns = 4;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::CpuQuotaSpent,
    about: "the CPU quota of its cgroup is spent before the period is over",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::SchedThrottled, Cause::SchedRunqueue],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check,
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let cgroup = &run.facts.cgroup;
    if waits.cause() == Cause::SchedRunqueue && !accounts_for(run, waits) {
        return Verdict::Clear(match cgroup.cpu_throttled {
            Some((times, ns)) => format!(
                "its cgroup was stopped {times} times, for {}, while it ran",
                duration(ns)
            ),
            None => run.little(&[Cause::SchedThrottled]),
        });
    }
    let path = cgroup.path.as_deref().unwrap_or("its cgroup");
    let quota = cgroup
        .cpu_quota
        .map(|(quota, period)| (quota as f64 / period.max(1) as f64, quota, period));
    let title = match quota {
        Some((cpus, ..)) => format!(
            "The limit of its cgroup, {cpus:.2} CPUs, is used up: {} of the time it may not run",
            percent(run.share(waits.cost()))
        ),
        None => format!(
            "The CPU limit of its cgroup is used up: {} of the time it may not run",
            percent(run.share(waits.cost()))
        ),
    };
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .confidence(Confidence::Proved);
    finding.resource = Resource {
        kind: ResourceKind::Cgroup,
        name: path.to_owned(),
        detail: BTreeMap::new(),
    };
    if let Some((_, quota, period)) = quota {
        let (quota, period) = (quota.to_string(), period.to_string());
        finding.resource.detail.insert("quota_us".to_owned(), quota);
        finding.resource.detail.insert("period_us".to_owned(), period);
    }
    let finding = finding
        .and_if(quota.map(|(_, quota, period)| {
            let (may, each) = (duration(quota * 1_000), duration(period * 1_000));
            Evidence::new(
                format!("cgroup {path} may run {may} of every {each}"),
                "its CPU quota and period",
            )
        }))
        .and_if(cgroup.cpu_throttled.map(|(times, ns)| {
            let text = format!("stopped {times} times while it ran, for {} in all", duration(ns));
            Evidence::new(text, "cpu.stat")
        }));
    let threads: BTreeSet<(u32, u32)> = waits
        .iter()
        .filter(|wait| wait.ns > 0)
        .map(|wait| (wait.asker.name.pid, wait.asker.name.tid))
        .collect();
    let too_many = quota.filter(|(cpus, ..)| threads.len() > 1 && threads.len() as f64 > cpus.ceil());
    let finding = finding.and_if(too_many.map(|(cpus, ..)| {
        Evidence::new(
            format!(
                "{} threads use the quota of {cpus:.2} CPUs together: it lasts the shorter the more run at once",
                threads.len()
            ),
            say::SCHEDULER,
        )
    }));
    let fewer = match too_many {
        Some(_) => {
            "start as many workers as the quota has CPUs (GOMAXPROCS, OMP_NUM_THREADS, -XX:ActiveProcessorCount, make -j)"
        }
        None => "use less CPU at a time, so that the quota lasts for the period",
    };
    fires(
        finding
            .remedy(Remedy::changing(
                "raise the quota or take it away",
                "others on this machine get less CPU",
            ))
            .remedy(Remedy::safe(fewer))
            .remedy(Remedy::pointless(
                "a faster machine or more CPUs: the quota is what ends",
            )),
    )
}

/// Whether the cgroup's own count explains queueing, on kernels that do not show it thread by thread.
fn accounts_for(run: &Run<'_>, queued: &Waits<'_>) -> bool {
    if run.of(Cause::SchedThrottled).is_some() {
        return false;
    }
    let cgroup = &run.facts.cgroup;
    cgroup.cpu_throttled.is_some_and(|(times, ns)| {
        times > 0 && ns.saturating_mul(THROTTLED_PART) >= queued.own() && cgroup.cpu_quota.is_some()
    })
}
