//! Pools of threads: their workers, what stands in their queues, and which workers wait for that.
//!
//! In: the machine's threads. A worker of a `ThreadPoolExecutor` runs an object that refers to its pool, so each pool that has a worker is
//! found, and no other. Out: for each its workers, how many it may have, how many tasks nobody has begun, and the workers that wait for the
//! result of one of these: a thread in `FutureTask.get` is parked for the very task. If all workers do, nobody is left to begin them.
//!
//! Nothing is stopped: a queue that is busy may be walked past what was put in, or taken out.

use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::objects::{Met, Reading};
use crate::oops::Oops;
use crate::threads::Fields as Threads;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// Pools that are reported.
const POOLS_MAX: usize = 256;

/// Tasks of a queue that are looked at; of more it is known that there are as many.
const TASKS_MAX: usize = 10_000;

/// The classes of what a worker runs: the runtime's, and Tomcat's, which is a copy.
const WORKERS: [&str; 2] = [
    "java.util.concurrent.ThreadPoolExecutor$Worker",
    "org.apache.tomcat.util.threads.ThreadPoolExecutor$Worker",
];

/// How the name ends of the class of a queue whose tasks are not all due.
const DELAYED: &str = "$DelayedWorkQueue";

/// A pool of threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its workers: ids in their pid namespace.
    pub workers: Vec<u32>,
    /// How many it may have.
    pub most: u32,
    /// How many tasks stand in its queue, at least; 0 where these need not be due.
    pub queued: usize,
    /// The workers that wait for the result of one of those.
    pub await_queued: Vec<u32>,
}

/// A worker: its id, and what it is parked for.
struct Worker {
    tid: u32,
    blocker: Option<u64>,
}

/// All pools that have workers, the one with most first.
pub(crate) fn all<S: Source>(
    memory: &mut Memory<S>,
    layout: &Layout,
    oops: &Oops,
    threads: &Threads,
) -> Option<Vec<Pool>> {
    let mut met = Met::default();
    let list = threads.all(memory)?;
    let blocker = oops.field(memory, layout, oops.thread, "parkBlocker")?;
    let mut read = Reading { memory, layout, oops };
    let mut pools: BTreeMap<u64, Vec<Worker>> = BTreeMap::new();
    for thread in list {
        let Some(object) = threads.object(read.memory, oops, thread) else {
            continue;
        };
        let Some(pool) = pool_of(&mut met, &mut read, object) else {
            continue;
        };
        let Some(tid) = threads.tid(read.memory, thread) else {
            continue;
        };
        let blocker = object
            .checked_add(blocker)
            .and_then(|at| oops.reference(read.memory, at));
        if pools.len() < POOLS_MAX || pools.contains_key(&pool) {
            pools.entry(pool).or_default().push(Worker { tid, blocker });
        }
    }
    let mut found: Vec<Pool> = pools
        .into_iter()
        .map(|(pool, workers)| described(&mut met, &mut read, pool, &workers))
        .collect();
    found.sort_by_key(|pool| std::cmp::Reverse(pool.workers.len()));
    Some(found)
}

/// The pool that a thread is a worker of.
fn pool_of<S: Source>(met: &mut Met, read: &mut Reading<'_, S>, thread: u64) -> Option<u64> {
    // JDK 19 has moved what a thread runs to an object of its own.
    let runs = match met.follow(read, thread, "holder") {
        Some(holder) => met.follow(read, holder, "task"),
        None => met.follow(read, thread, "target"),
    }?;
    let class = read.oops.class_name(read.memory, read.layout, runs)?;
    let is_worker = WORKERS.contains(&class.as_str());
    is_worker.then(|| met.follow(read, runs, "this$0"))?
}

fn described<S: Source>(met: &mut Met, read: &mut Reading<'_, S>, pool: u64, workers: &[Worker]) -> Pool {
    let queue = met.follow(read, pool, "workQueue");
    let queued = queue.map_or_else(Vec::new, |queue| met.queue(read, queue, TASKS_MAX));
    let class = queue.and_then(|queue| read.oops.class_name(read.memory, read.layout, queue));
    // What stands in a queue of delayed tasks may have time.
    let delayed = class.is_some_and(|class| class.ends_with(DELAYED));
    let count = if delayed { 0 } else { queued.len() };
    let mut tasks: HashSet<u64> = HashSet::new();
    for task in queued {
        // A completion service puts a task of its own around the one that was asked for.
        tasks.extend(met.follow(read, task, "task"));
        tasks.insert(task);
    }
    let awaits = |worker: &&Worker| worker.blocker.is_some_and(|task| tasks.contains(&task));
    Pool {
        workers: workers.iter().map(|worker| worker.tid).collect(),
        most: met.number(read, pool, "maximumPoolSize").unwrap_or(0),
        queued: count,
        await_queued: workers.iter().filter(awaits).map(|worker| worker.tid).collect(),
    }
}
