//! All workers of a pool stand in the same wait, so that nobody is left for new work.

use crate::artefacts::java::{Doing, Dump, Graph, Seen, dumps};
use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, dumps as dumped, say};
use holdup_evidence::{Cause, Observed};
use std::collections::BTreeMap;

/// Workers from which a pool is judged: of two, both busy is an ordinary instant.
const WORKERS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::WorkerPoolExhausted,
    about: "all workers of a pool stand in the same wait",
    needs: &[Need::Artefacts],
    causes: &[Cause::LockMonitor, Cause::NetReceive],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let mut findings: BTreeMap<&str, Finding> = BTreeMap::new();
    let mut pools_seen = 0;
    for dump in &dumps {
        for (name, workers) in pools(dump) {
            pools_seen += 1;
            if let Some(finding) = exhausted(run, dump, name, &workers) {
                findings.entry(name).or_insert(finding);
            }
        }
    }
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "of {} of at least {WORKERS} workers in the dumps, 0 have all of them in one wait",
            say::several(pools_seen, "pool")
        ));
    }
    Verdict::Fires(findings.into_values().collect())
}

/// The workers of each pool: threads of one name but for the number at its end, under a pool's loop.
fn pools<'d, 'a>(dump: &'d Dump<'a>) -> Vec<(&'a str, Vec<(usize, &'d Seen<'a>)>)> {
    const LOOPS: [&str; 4] = [
        "java.util.concurrent.ThreadPoolExecutor$Worker.run",
        "java.util.concurrent.ForkJoinWorkerThread.run",
        "org.apache.tomcat.util.threads.ThreadPoolExecutor$Worker.run",
        "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.run",
    ];
    let mut pools: BTreeMap<&'a str, Vec<(usize, &'d Seen<'a>)>> = BTreeMap::new();
    for (place, seen) in dump.threads.iter().enumerate() {
        let worker = seen
            .frames
            .iter()
            .any(|frame| LOOPS.iter().any(|name| frame.starts_with(name)));
        if worker {
            let name = seen
                .thread
                .name
                .trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
            pools.entry(name).or_default().push((place, seen));
        }
    }
    pools
        .into_iter()
        .filter(|(_, workers)| workers.len() >= WORKERS)
        .collect()
}

fn exhausted(run: &Run<'_>, dump: &Dump<'_>, pool: &str, workers: &[(usize, &Seen<'_>)]) -> Option<Finding> {
    let (_, first) = workers.first()?;
    let doing = first.doing;
    let asker = first.asker();
    let same = workers
        .iter()
        .all(|(_, seen)| seen.doing == doing && seen.asker() == asker);
    let graph = Graph::of(dump);
    // Behind a lock whose holder is known the queue is told, not the pool.
    let told = workers.iter().all(|(place, _)| graph.holder(*place).is_some());
    let cause = match doing {
        Doing::Waits(cause) if cause != Cause::RandomDevice => cause,
        Doing::WaitsForPool | Doing::WaitsForTask => Cause::LockMonitor,
        _ => return None,
    };
    if !same || told {
        return None;
    }
    let count = workers.len();
    let title = match doing {
        Doing::WaitsForPool => format!("All {count} workers of {pool} wait for a free connection"),
        Doing::WaitsForTask => format!("All {count} workers of {pool} wait for the result of other tasks"),
        _ => format!("All {count} workers of {pool} are {}", cause.phrase()),
    };
    let text = format!("{count} of {count} workers stand in the same place: none is left for new work");
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        cause,
        Evidence::new(text, dumped::place(run, first)),
    )
    .and(dumped::stands(run, first))
    .and_if(waited_for(run, first))
    .about(
        first
            .thread
            .waits_for
            .as_ref()
            .map(dumped::lock)
            .unwrap_or_default(),
        dumped::asker(first),
    )
    .confidence(Confidence::Strong);
    Some(match doing {
        Doing::WaitsForPool => finding
            .remedy(Remedy::safe(
                "find who keeps the connections: let the pool log those that are not given back \
                 (leakDetectionThreshold, removeAbandoned), and make transactions shorter",
            ))
            .remedy(Remedy::pointless("more workers: each one more waits for the same connections")),
        Doing::WaitsForTask => finding
            .remedy(Remedy::safe(
                "let tasks that wait for tasks run in a pool of their own: if these were given to the same pool, none can \
                 ever begin",
            ))
            .remedy(Remedy::pointless("waiting longer, where the tasks are queued in the same pool")),
        _ => finding
            .remedy(Remedy::safe(
                "give what is waited for a time limit, and look why it does not answer",
            ))
            .remedy(Remedy::changing(
                "more workers, if what they wait for can take more at a time",
                "what is slow gets more to do",
            )),
    })
}

fn waited_for(run: &Run<'_>, seen: &Seen<'_>) -> Option<Evidence> {
    let lock = seen.thread.waits_for.as_ref()?;
    let text = format!("{} waits for {}", dumped::name(seen), dumped::lock_name(lock));
    Some(Evidence::new(text, dumped::place(run, seen)))
}
