//! All workers of a pool wait, and tasks stand in its queue: nobody is left to begin them.

use crate::rules::{Generality, Rule, RuleId, Run, Waits, java_waits as java, say};
use holdup_evidence::{Cause, Ns, WorkerPool};
use holdup_model::attributed::{AttributedWait, Awaits};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeMap;

/// Part of the observed time that each worker must have waited for something else than work.
const MIN_WAIT_SHARE: f64 = 0.9;

/// Functions in which workers wait that are reported.
const MAX_PLACES: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::NoWorkerLeft, check)
    .about("all workers of a pool wait, and tasks stand in its queue")
    .causes(&[
        Cause::LockFutex,
        Cause::LockMonitor,
        Cause::NetReceive,
        Cause::NetConnect,
        Cause::NetSend,
        Cause::TimerSleep,
    ])
    .from(0.0)
    .generality(Generality::Consequence)
    .explains(&[RuleId::NobodyCompletes, RuleId::WorkerPoolExhausted])
    .intermediate();

const MEMORY: &str = "the program's own structures, read from its memory";

/// This is judged by the workers' own time: of a JVM's threads most rest.
fn check(run: &Run<'_>) -> Verdict {
    let pools = &run.attributed.pools;
    let stuck: Vec<Finding> = pools
        .iter()
        .filter_map(|pool| Stuck::of(run, pool))
        .map(|stuck| stuck.finding())
        .collect();
    if !stuck.is_empty() {
        return Verdict::Fires(stuck);
    }
    let queued: u64 = pools.iter().map(|pool| pool.queued).sum();
    Verdict::Clear(format!(
        "0 of {} have no worker left; {} in their queues",
        say::several(pools.len() as u64, "pool"),
        say::several(queued, "task")
    ))
}

/// A pool of which no worker is left.
struct Stuck<'a> {
    pool: &'a WorkerPool,
    /// What the workers wait for, each for longest.
    waits: Waits<'a>,
    /// Whether they wait for tasks of the pool itself.
    for_itself: bool,
}

impl<'a> Stuck<'a> {
    fn of(run: &Run<'a>, pool: &'a WorkerPool) -> Option<Stuck<'a>> {
        let own = |wait: &AttributedWait| {
            let name = &wait.asker.name;
            name.pid == pool.pid && pool.workers.contains(&name.tid)
        };
        let waits = |wait: &AttributedWait| wait.cause != Cause::Idle && java::waits_for_lock_too(wait.cause);
        let all = run.waits(|wait| own(wait) && waits(wait))?;
        let mut most: BTreeMap<u32, (Ns, &AttributedWait)> = BTreeMap::new();
        for wait in all.iter() {
            let (ns, longest) = most.entry(wait.asker.name.tid).or_insert((0, wait));
            *ns += wait.ns;
            if wait.ns > longest.ns {
                *longest = wait;
            }
        }
        let enough = MIN_WAIT_SHARE * run.attributed.wall as f64;
        let busy = |(ns, _): &&(Ns, &AttributedWait)| *ns as f64 >= enough;
        if most.values().filter(busy).count() < pool.workers.len() || most.is_empty() {
            return None;
        }
        let stand =
            |wait: &AttributedWait| java::awaits(wait) == Some(Awaits::Task) && java::stands(run, wait);
        let all_stand = most.values().all(|(_, wait)| stand(wait));
        let for_itself = all_stand && (pool.queued > 0 || !pool.await_queued.is_empty());
        let longest: Vec<*const AttributedWait> =
            most.values().map(|(_, wait)| std::ptr::from_ref(*wait)).collect();
        let waits = all.only(|wait| longest.contains(&std::ptr::from_ref(wait)))?;
        (for_itself || pool.queued > 0).then_some(Stuck {
            pool,
            waits,
            for_itself,
        })
    }

    /// Whether each worker waits for the very task that stands in the queue.
    fn is_proved(&self) -> bool {
        self.pool.await_queued.len() == self.pool.workers.len()
    }

    fn finding(&self) -> Finding {
        let count = self.pool.workers.len();
        let name = java::pool_of(&self.waits.main().asker.name.thread);
        let places = java::askers(&self.waits, MAX_PLACES).join(" and ");
        let in_places = match places.as_str() {
            "" => String::new(),
            places => format!(" in {places}"),
        };
        let queued = match self.pool.queued {
            0 => "no worker is left to run these".to_owned(),
            1 => "1 task is queued, and no worker is left to run it".to_owned(),
            queued => format!("{queued} tasks are queued, and no worker is left to run them"),
        };
        let (who, verb) = match count {
            1 => (format!("The only worker of {name}"), ["waits", "is"]),
            count => (format!("All {count} workers of {name}"), ["wait", "are"]),
        };
        let title = match self.for_itself {
            true => format!("{who} {} for tasks of their own pool{in_places}", verb[0]),
            false => format!("{who} {} {}{in_places}", verb[1], self.waits.cause().phrase()),
        };
        let title = Title::from(title).with(format!(": {queued}"));
        let severity = match self.for_itself {
            true => Severity::Critical,
            false => Severity::Warning,
        };
        let most = match self.pool.most {
            0 => String::new(),
            most => format!("; the pool may have {}", say::several(most.into(), "worker")),
        };
        let text = format!(
            "{} live and wait{most}; {} of them wait for the result of a task that is in the queue",
            say::several(count as u64, "worker"),
            self.pool.await_queued.len()
        );
        let finding = RULE
            .finding(severity, title, &self.waits)
            .and(Evidence::new(text, MEMORY))
            .and(Evidence::new(self.does(), "Java frames of the waits"));
        match self.for_itself {
            true => finding
                .confidence(if self.is_proved() {
                    Confidence::Proved
                } else {
                    Confidence::Strong
                })
                .remedy(Remedy::safe(
                    "run tasks that wait for other tasks in a separate pool, or call the inner task directly",
                ))
                .remedy(Remedy::pointless(
                    "waiting longer: the queued tasks need a worker, and each worker waits for one of them",
                )),
            false => finding
                .confidence(Confidence::Strong)
                .remedy(Remedy::safe(
                    "set a timeout for this wait, and find out why there is no answer",
                ))
                .remedy(Remedy::changing(
                    "use more workers, if the resource they wait for can serve more at a time",
                    "the slow resource gets more load",
                )),
        }
    }

    /// What how many of them wait for.
    fn does(&self) -> String {
        let mut kinds: BTreeMap<(Cause, &str), usize> = BTreeMap::new();
        for wait in self.waits.iter() {
            *kinds.entry((wait.cause, &wait.resource.name)).or_default() += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let parts: Vec<String> = kinds
            .iter()
            .take(MAX_PLACES)
            .map(|((cause, name), count)| match *name {
                "" => format!("{count} {}", cause.phrase()),
                name => format!("{count} {}: {name}", cause.phrase()),
            })
            .collect();
        format!("of the workers, {}", parts.join("; "))
    }
}
