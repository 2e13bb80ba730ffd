//! The CPU quota of its cgroup is spent before the period is over.

use crate::attributed::{Resource, ResourceKind};
use crate::finding::{Confidence, Evidence, Remedy, Severity, Verdict};
use crate::rules::{
    Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, percent, say,
};
use holdup_evidence::facts::CpuQuota;
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
    check: Check::Waits(check),
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
    let quota = cgroup.cpu_quota.as_ref();
    let title = match quota {
        Some(quota) => format!(
            "The limit of its cgroup, {:.2} CPUs, is used up: {} of the time it may not run",
            quota.cpus(),
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
        name: quota.map_or_else(|| "its cgroup".to_owned(), |quota| quota.cgroup.clone()),
        detail: quota.map(detail_of).unwrap_or_default(),
    };
    let finding = finding
        .and_if(quota.map(|quota| {
            let (may, each) = (
                duration(quota.quota_us * 1_000),
                duration(quota.period_us * 1_000),
            );
            Evidence::new(
                format!("cgroup {} may run {may} of every {each}", quota.cgroup),
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
    let too_many = quota.filter(|quota| threads.len() > 1 && threads.len() as f64 > quota.cpus().ceil());
    let finding = finding.and_if(too_many.map(|quota| {
        Evidence::new(
            format!(
                "{} threads use the quota of {:.2} CPUs together: it lasts the shorter the more run at once",
                threads.len(),
                quota.cpus()
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

fn detail_of(quota: &CpuQuota) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("quota_us".to_owned(), quota.quota_us.to_string()),
        ("period_us".to_owned(), quota.period_us.to_string()),
    ])
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
