//! Keeps the report of a run with thousands of threads readable.
//!
//! In: the ledgers and waits of every thread. Out: those of the [`MOST_THREADS`] that matter most, unchanged,
//! and for the rest one ledger a process name and one wait a process name and cause, with all sums kept.
//! What matters most is what the elapsed time was spent on, then length of life: a short-lived child on the
//! critical path says more than an idle worker that was there throughout.

use holdup_analysis::attributed::{
    Asker, AttributedWait, Holder, How, Resource, Tally, ThreadLedger, ThreadName,
};
use holdup_evidence::{Cause, Ns};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Threads that have an entry of their own; the contract's number.
const MOST_THREADS: usize = 200;

type Ledgers<'a> = Vec<Cow<'a, ThreadLedger>>;
type Waits<'a> = Vec<Cow<'a, AttributedWait>>;

/// Folds the threads beyond the first [`MOST_THREADS`].
pub(super) fn fold<'a>(threads: &'a [ThreadLedger], waits: &'a [AttributedWait]) -> (Ledgers<'a>, Waits<'a>) {
    if threads.len() <= MOST_THREADS {
        return (
            threads.iter().map(Cow::Borrowed).collect(),
            waits.iter().map(Cow::Borrowed).collect(),
        );
    }
    let mut cost: HashMap<&ThreadName, Ns> = HashMap::new();
    for wait in waits {
        *cost.entry(&wait.asker.name).or_default() += wait.cost_ns();
    }
    let mut order: Vec<&ThreadLedger> = threads.iter().collect();
    // An entry that stands for several threads already is one of the rest.
    order.sort_by_key(|thread| {
        let cost = cost.get(&thread.name).copied().unwrap_or(0);
        std::cmp::Reverse((thread.threads <= 1, cost, thread.wall))
    });
    let kept: HashSet<&ThreadName> = order[..MOST_THREADS].iter().map(|thread| &thread.name).collect();
    (fold_threads(threads, &kept), fold_waits(waits, &kept))
}

fn fold_threads<'a>(threads: &'a [ThreadLedger], kept: &HashSet<&ThreadName>) -> Ledgers<'a> {
    let (own, rest): (Vec<_>, Vec<_>) = threads.iter().partition(|thread| kept.contains(&thread.name));
    let mut folds: BTreeMap<&str, ThreadLedger> = BTreeMap::new();
    for thread in rest {
        let fold = folds.entry(&thread.name.process).or_insert_with(|| ThreadLedger {
            name: several(&thread.name),
            ..ThreadLedger::default()
        });
        if fold.name.pid != thread.name.pid {
            fold.name.pid = 0;
        }
        fold.threads += thread.threads.max(1);
        fold.wall += thread.wall;
        fold.lost += thread.lost;
        fold.open |= thread.open;
        for (cause, tally) in &thread.causes {
            add(fold.causes.entry(*cause).or_default(), tally);
        }
    }
    own.into_iter()
        .map(Cow::Borrowed)
        .chain(folds.into_values().map(Cow::Owned))
        .collect()
}

fn fold_waits<'a>(waits: &'a [AttributedWait], kept: &HashSet<&ThreadName>) -> Waits<'a> {
    let (own, rest): (Vec<_>, Vec<_>) = waits.iter().partition(|wait| kept.contains(&wait.asker.name));
    let mut folds: BTreeMap<(&str, Cause), AttributedWait> = BTreeMap::new();
    for wait in rest {
        folds
            .entry((&wait.asker.name.process, wait.cause))
            .and_modify(|fold| merge(fold, wait))
            .or_insert_with(|| {
                let mut fold = wait.clone();
                fold.asker.name = several(&wait.asker.name);
                fold
            });
    }
    let mut all: Waits = own
        .into_iter()
        .map(Cow::Borrowed)
        .chain(folds.into_values().map(Cow::Owned))
        .collect();
    all.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    all
}

/// Adds a wait to a fold. What the two do not share, the fold does not name: the resource of one of them
/// would be wrong for the others' time.
fn merge(fold: &mut AttributedWait, wait: &AttributedWait) {
    if fold.asker.name.pid != wait.asker.name.pid {
        fold.asker.name.pid = 0;
    }
    if (&fold.asker.frame, &fold.asker.module) != (&wait.asker.frame, &wait.asker.module) {
        fold.asker = Asker {
            name: std::mem::take(&mut fold.asker.name),
            ..Asker::default()
        };
    }
    if fold.resource != wait.resource {
        fold.resource = Resource {
            kind: fold.resource.kind,
            ..Resource::default()
        };
    }
    if fold.call != wait.call {
        fold.call = None;
    }
    if fold.bytes != wait.bytes {
        fold.bytes = None;
    }
    // Percentiles can't be added up; the larger one is at least a bound.
    fold.p50 = fold.p50.max(wait.p50);
    fold.p99 = fold.p99.max(wait.p99);
    if wait.max > fold.max {
        (fold.max, fold.max_started, fold.max_ended) = (wait.max, wait.max_started, wait.max_ended);
    }
    if wait.how == How::Sampled {
        fold.how = How::Sampled;
    }
    fold.ns += wait.ns;
    fold.path_ns += wait.path_ns;
    fold.handed_on_ns += wait.handed_on_ns;
    fold.count += wait.count;
    fold.timed_out += wait.timed_out;
    // Standard errors of independent samples add up in squares; their sum is a safe bound.
    fold.error += wait.error;
    fold.open |= wait.open;
    fold.why_unknown = fold.why_unknown.take().or_else(|| wait.why_unknown.clone());
    if fold.kernel_stack.is_empty() {
        fold.kernel_stack.clone_from(&wait.kernel_stack);
    }
    for holder in &wait.holders {
        let like = |known: &&mut Holder| {
            (&known.name.process, known.how_known, known.doing)
                == (&holder.name.process, holder.how_known, holder.doing)
        };
        match fold.holders.iter_mut().find(like) {
            Some(known) => known.ns += holder.ns,
            None => fold.holders.push(holder.clone()),
        }
    }
    fold.chain.clear();
    for (name, ns) in &wait.ran_instead {
        match fold.ran_instead.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += ns,
            None => fold.ran_instead.push((name.clone(), *ns)),
        }
    }
}

fn add(sum: &mut Tally, tally: &Tally) {
    sum.ns += tally.ns;
    sum.count += tally.count;
    sum.max = sum.max.max(tally.max);
    sum.open |= tally.open;
}

/// The name of an entry for several threads of one process name.
fn several(name: &ThreadName) -> ThreadName {
    ThreadName {
        tid: 0,
        thread: name.process.clone(),
        ..name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_THREADS, fold};
    use holdup_analysis::attributed::{Asker, AttributedWait, Resource, Tally, ThreadLedger, ThreadName};
    use holdup_evidence::Cause;
    use std::collections::BTreeMap;

    fn name(tid: u32) -> ThreadName {
        ThreadName {
            pid: tid,
            tid,
            process: format!("job{}", tid % 3),
            thread: "job".to_owned(),
        }
    }

    fn wait(tid: u32, cause: Cause, ns: u64, path_ns: u64) -> AttributedWait {
        serde_json::from_value(serde_json::json!({"cause": cause, "ns": ns, "path_ns": path_ns, "count": 2}))
            .map(|wait: AttributedWait| AttributedWait {
                resource: Resource {
                    name: format!("/tmp/{tid}"),
                    ..Resource::default()
                },
                asker: Asker {
                    name: name(tid),
                    frame: Some("main".to_owned()),
                    ..Asker::default()
                },
                ..wait
            })
            .expect("only fields that exist")
    }

    #[test]
    fn sums_are_kept_and_the_one_on_the_path_stays() {
        let count = MOST_THREADS as u32 + 100;
        let threads: Vec<ThreadLedger> = (1..=count)
            .map(|tid| ThreadLedger {
                name: name(tid),
                threads: 1,
                wall: u64::from(1_000 - tid),
                causes: BTreeMap::from([(
                    Cause::TimerSleep,
                    Tally {
                        ns: u64::from(1_000 - tid),
                        count: 2,
                        ..Tally::default()
                    },
                )]),
                ..ThreadLedger::default()
            })
            .collect();
        // The shortest-lived thread is the one that the elapsed time was spent in.
        let waits: Vec<AttributedWait> = (1..=count)
            .map(|tid| {
                wait(
                    tid,
                    Cause::TimerSleep,
                    u64::from(1_000 - tid),
                    u64::from(tid == count),
                )
            })
            .collect();
        let (folded_threads, folded_waits) = fold(&threads, &waits);
        assert_eq!(folded_threads.len(), MOST_THREADS + 3);
        assert_eq!(folded_waits.len(), MOST_THREADS + 3);
        assert_eq!(
            folded_threads.iter().map(|thread| thread.threads).sum::<u32>(),
            count
        );
        assert_eq!(
            folded_threads.iter().map(|thread| thread.wall).sum::<u64>(),
            threads.iter().map(|thread| thread.wall).sum::<u64>()
        );
        assert_eq!(
            folded_waits
                .iter()
                .map(|wait| (wait.ns, wait.count))
                .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
            waits
                .iter()
                .map(|wait| (wait.ns, wait.count))
                .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
        );
        assert!(
            folded_waits
                .iter()
                .any(|wait| wait.path_ns > 0 && wait.asker.name.tid == count)
        );
        let fold = folded_waits
            .iter()
            .find(|wait| wait.asker.name.tid == 0)
            .expect("a fold");
        assert_eq!(fold.resource.name, "");
        assert_eq!(fold.asker.frame.as_deref(), Some("main"));
    }

    #[test]
    fn few_threads_are_left_alone() {
        let threads = vec![ThreadLedger {
            name: name(7),
            ..ThreadLedger::default()
        }];
        let waits = vec![wait(7, Cause::DiskRead, 5, 5)];
        let (folded_threads, folded_waits) = fold(&threads, &waits);
        assert_eq!(*folded_threads[0], threads[0]);
        assert_eq!(*folded_waits[0], waits[0]);
    }
}
