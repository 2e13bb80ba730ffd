//! The CPU quota of its cgroup is spent before the period is over.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, duration, fires, percent, quota_users, say};
use holdup_evidence::observed::{Limited, SeenCgroup};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// Part of the queueing, one in so many, that the quota must account for to be called its reason where the kernel does
/// not show which thread is throttled. The kernel counts throttled time by CPU, the run by thread, so that the two never
/// agree exactly.
const THROTTLED_PART: Ns = 4;

/// Part of the periods of a cgroup in which its quota may be spent before that is trouble of those who wait for it: a tenth
/// are bursts, which quotas are there to cut.
pub(crate) const SPENT: f64 = 0.25;

/// Periods, a tenth of a second each as a rule, that say something.
pub(crate) const MIN_PERIODS: f64 = 10.0;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::CpuQuotaSpent, check, counted)
    .about("the cgroup spends its CPU quota before the period ends")
    .causes(&[Cause::SchedThrottled, Cause::SchedRunqueue])
    .explains(&[RuleId::CpuContended]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let cgroup = &run.facts.cgroup;
    if waits.cause() == Cause::SchedRunqueue && !accounts_for(run, waits) {
        return Verdict::Clear(match cgroup.cpu_throttled {
            Some((times, ns)) => format!(
                "its cgroup was throttled {times} times, for {}, while it ran",
                duration(ns)
            ),
            None => run.little(&[Cause::SchedThrottled]),
        });
    }
    let quota = cgroup.cpu_quota.as_ref();
    let title = match quota {
        Some(quota) => format!(
            "The CPU limit of its cgroup, {:.2} CPUs, is used up: it is throttled for {} of the time",
            quota.cpus(),
            percent(run.share(waits.cost()))
        ),
        None => format!(
            "The CPU limit of its cgroup is used up: it is throttled for {} of the time",
            percent(run.share(waits.cost()))
        ),
    };
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .confidence(Confidence::Proved);
    let cgroup_name = quota.map_or("its cgroup", |quota| &quota.cgroup);
    finding.resource = Resource::named(ResourceKind::Cgroup, cgroup_name).with(|facts| {
        facts.quota_us = quota.map(|quota| quota.quota_us);
        facts.period_us = quota.map(|quota| quota.period_us);
    });
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
            let text = format!(
                "throttled {times} times while it ran, for {} in total",
                duration(ns)
            );
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
                "{} threads share the quota of {:.2} CPUs: the more of them run at once, the sooner it is \
                 spent",
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
                "other programs on this machine get less CPU",
            ))
            .remedy(Remedy::safe(fewer))
            .remedy(Remedy::pointless(
                "a faster machine or more CPUs: the quota is the limit",
            )),
    )
}

/// By what cgroups count of themselves.
fn counted(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let of_time = |one: &&SeenCgroup| one.what == Limited::CpuTime && one.limit >= MIN_PERIODS;
    let quotas: Vec<&SeenCgroup> = observed.cgroups.iter().filter(of_time).collect();
    let part = |one: &SeenCgroup| one.used / one.limit;
    let Some(most) = quotas.iter().max_by(|a, b| part(a).total_cmp(&part(b))) else {
        return Verdict::CannotTell("how often cgroups spent their quota: cpu.stat of each".to_owned());
    };
    let spent: Vec<Finding> = quotas
        .iter()
        .filter(|one| part(one) >= SPENT)
        .map(|one| of_cgroup(observed, one))
        .collect();
    if !spent.is_empty() {
        return Verdict::Fires(spent);
    }
    Verdict::Clear(format!(
        "cgroup {} spent its quota in {} of its periods",
        most.cgroup,
        percent(part(most))
    ))
}

fn of_cgroup(observed: &Observed, one: &SeenCgroup) -> Finding {
    let cpus = one
        .cpus
        .map(|cpus| format!(", {cpus:.2} CPUs,"))
        .unwrap_or_default();
    let title = Title::from(format!(
        "The CPU limit of cgroup {}{cpus} is used up in {} of its periods",
        one.cgroup,
        percent(one.used / one.limit)
    ))
    .with(": all its tasks are then throttled")
    .with(quota_users::clause(one));
    let first = Evidence::new(
        format!(
            "{:.0} of {:.0} observed periods ended with its tasks throttled",
            one.used, one.limit
        ),
        match observed.place(&one.quote) {
            place if place.is_empty() => "cpu.stat".to_owned(),
            place => place,
        },
    );
    let resource = Resource {
        kind: ResourceKind::Cgroup,
        name: one.cgroup.clone(),
        ..Resource::default()
    };
    let names: Vec<String> = one
        .processes
        .iter()
        .map(|process| {
            format!(
                "{} (pid {})",
                say::name_or(&process.name, "a process"),
                process.pid
            )
        })
        .collect();
    let throttled =
        (!names.is_empty()).then(|| Evidence::new(format!("in it: {}", names.join(", ")), "cgroup.procs"));
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::SchedThrottled,
        first,
    );
    quota_users::told(finding, one)
    .and_if(throttled)
    .about(resource, Asker::default())
    .confidence(Confidence::Proved)
    .remedy(Remedy::changing(
        "raise the quota or take it away",
        "other programs on this machine get less CPU",
    ))
    .remedy(Remedy::safe(
        "start as many workers as the quota has CPUs (GOMAXPROCS, OMP_NUM_THREADS, -XX:ActiveProcessorCount, make -j)",
    ))
    .remedy(Remedy::pointless(
        "a faster machine or more CPUs: the quota is the limit",
    ))
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
