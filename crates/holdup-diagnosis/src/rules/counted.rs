//! How many wait: the size of a finding whose title names one of several that do the same.
//!
//! The problem: time of threads added up says little to who asks how much of a service stands. In: findings about waits of services, and who
//! works side by side. Out: the same findings, with `4 of 5 workers wait` where several stand in that wait.

use super::{Rule, RuleId, Run};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::Finding;
use std::collections::BTreeSet;

/// Rules whose titles name one who waits, whoever else does. Others count by themselves.
const NAME_ONE: &[RuleId] = &[
    RuleId::PeerSlow,
    RuleId::WaitsForLockHolder,
    RuleId::FileSystemFrozen,
    RuleId::DnsServerSilent,
];

/// Part of the observed time, one in so many, that a thread spends in a wait from which it stands there.
const STANDS: u64 = 2;

/// Says how many wait.
pub(super) fn tell(run: &Run<'_>, found: &mut [(&Rule, Finding)]) {
    if run.machine || !run.attributed.of_threads {
        return;
    }
    for (rule, finding) in found {
        if NAME_ONE.contains(&rule.id)
            && let Some(how_many) = how_many(run, finding)
        {
            finding.title.push(format!("; {how_many} wait"));
        }
    }
}

fn how_many(run: &Run<'_>, finding: &Finding) -> Option<String> {
    let name = &finding.asker.name;
    // Each writes to a file of its own, and all of them to the same file system.
    let of_any_file = finding.cause == Cause::FsFrozen;
    let same = |wait: &&AttributedWait| {
        let stands = wait.open || wait.ns.saturating_mul(STANDS) >= run.attributed.wall;
        wait.cause == finding.cause
            && wait.asker.name.process == name.process
            && stands
            && (of_any_file || wait.resource.name == finding.resource.name)
    };
    let all: BTreeSet<(u32, u32)> = run
        .attributed
        .waits
        .iter()
        .filter(same)
        .map(|wait| (wait.asker.name.pid, wait.asker.name.tid))
        .collect();
    let pids: BTreeSet<u32> = all.iter().map(|(pid, _)| *pid).collect();
    if all.len() < 2 {
        return None;
    }
    if pids.len() < 2 {
        return Some(format!("{} threads", all.len()));
    }
    let mut groups = run.facts.workers.iter().filter(|group| group.unobserved == 0);
    let group = groups.find(|group| pids.iter().all(|pid| group.pids.contains(pid)));
    Some(match group {
        Some(group) => format!("{} of {} workers", pids.len(), group.pids.len()),
        None => format!("{} processes", pids.len()),
    })
}
