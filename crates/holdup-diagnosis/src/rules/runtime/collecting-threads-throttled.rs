//! A JVM's collecting threads use up the CPU quota of its cgroup, and all stand still until the next period.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, fires, percent, say};
use holdup_attribution::attribution::{VM_THREAD, collects};
use holdup_evidence::{Cause, Jvm};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::CollectingThreadsThrottled, check)
    .about("garbage collection has more threads than the CPU quota allows, and is throttled")
    .causes(&[Cause::SchedThrottled])
    .explains(&[RuleId::CpuQuotaSpent]);

/// Part of the throttled time, one in so many, that must be of threads that collect: they are a few of many.
const MIN_SHARE_ONE_IN: u64 = 4;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let of_jvm = |pid: u32| run.facts.jvms.iter().find(|jvm| jvm.pid == pid);
    let collecting = waits.only(|wait| {
        let name = wait.asker.name.thread.as_str();
        of_jvm(wait.asker.name.pid).is_some() && (collects(name) || name == VM_THREAD)
    });
    let Some(collecting) = collecting else {
        return Verdict::Clear("0 threads that collect garbage were throttled".to_owned());
    };
    let pid = collecting.main().asker.name.pid;
    let Some(jvm) = of_jvm(pid) else {
        return Verdict::Clear("0 of the throttled processes are JVMs".to_owned());
    };
    let Some(quota) = run.facts.cgroup.cpu_quota.as_ref() else {
        return Verdict::CannotTell("the CPU quota of the JVM's cgroup".to_owned());
    };
    let by_name = collecting.iter().filter(|wait| collects(&wait.asker.name.thread));
    let threads: BTreeSet<u32> = by_name.map(|wait| wait.asker.name.tid).collect();
    let threads = (threads.len() as u32).max(jvm.collecting_threads);
    let paid = quota.cpus().ceil().max(1.0);
    let enough = collecting.own().saturating_mul(MIN_SHARE_ONE_IN) >= waits.own();
    if f64::from(threads) <= paid || !enough {
        return Verdict::Clear(format!(
            "{} for a quota of {:.2} CPUs, and {} of the throttled time is theirs",
            say::several(u64::from(threads), "collecting thread"),
            quota.cpus(),
            percent(collecting.own() as f64 / waits.own().max(1) as f64)
        ));
    }
    fires(finding(run, waits, jvm, threads, quota.cpus()))
}

fn finding(run: &Run<'_>, waits: &Waits<'_>, jvm: &Jvm, threads: u32, cpus: f64) -> Finding {
    let who = say::name_or(&waits.main().asker.name.process, "a JVM");
    let title = format!(
        "{threads} threads of {who} collect garbage with a quota of {cpus:.2} CPUs: it is throttled for {} \
         of the time",
        percent(run.share(waits.cost()))
    );
    let found = jvm.options.iter().find(|option| {
        [
            "-XX:ParallelGCThreads=",
            "-XX:ActiveProcessorCount=",
            "-XX:-UseContainerSupport",
        ]
        .iter()
        .any(|begins| option.starts_with(begins))
    });
    RULE.finding(Severity::Warning, title, waits)
        .confidence(Confidence::Strong)
        .and_if(
            found.map(|option| {
                Evidence::new(format!("{option} sets this number"), "the JVM's performance data")
            }),
        )
        .and(Evidence::new(
            "a thread that is throttled during a collection delays all threads until the next period",
            say::SCHEDULER,
        ))
        .remedy(Remedy::safe(format!(
            "use as many collecting threads as the quota has CPUs: -XX:ParallelGCThreads={:.0}, or the \
             default of the JVM, which knows its quota since JDK 8u191 (no -XX:-UseContainerSupport, no \
             larger -XX:ActiveProcessorCount)",
            cpus.ceil()
        )))
        .remedy(Remedy::changing(
            "raise the quota or take it away",
            "other programs on this machine get less CPU",
        ))
}
