//! Several dumps of one JVM: who stands where it stood.

use super::{Doing, Dump, Seen};
use holdup_evidence::Ns;
use std::collections::{HashMap, HashSet};

/// A thread that stands in the same place in every dump of its JVM.
#[derive(Debug)]
pub(crate) struct Still<'a, 'd> {
    /// The thread in the first of them.
    pub(crate) first: &'d Seen<'a>,
    /// The same in the last.
    pub(crate) last: &'d Seen<'a>,
    /// How many dumps.
    pub(crate) dumps: usize,
    /// The time from the first to the last, by the dumps or by the thread's own age.
    pub(crate) span: Option<Ns>,
}

type Key<'a> = (&'a str, Option<u32>, Option<u64>);

fn key<'a>(seen: &Seen<'a>) -> Key<'a> {
    (&seen.thread.name, seen.thread.tid, seen.thread.number)
}

/// Threads that stand still in a series of at least two dumps of one JVM. Dumps are of one JVM where at least half of the
/// threads of the smaller are in the other too.
pub(crate) fn still<'a, 'd>(dumps: &'d [Dump<'a>]) -> Vec<Still<'a, 'd>> {
    let mut series: Vec<Vec<&Dump<'a>>> = Vec::new();
    for dump in dumps {
        match series
            .iter_mut()
            .find(|one| one.first().is_some_and(|first| same(first, dump)))
        {
            Some(one) => one.push(dump),
            None => series.push(vec![dump]),
        }
    }
    let mut all = Vec::new();
    for one in series.iter().filter(|one| one.len() >= 2) {
        in_series(one, &mut all);
    }
    all
}

fn in_series<'a, 'd>(dumps: &[&'d Dump<'a>], all: &mut Vec<Still<'a, 'd>>) {
    let (Some(first), Some(last)) = (dumps.first(), dumps.last()) else {
        return;
    };
    let later: Vec<HashMap<Key<'a>, &'d Seen<'a>>> = dumps
        .iter()
        .skip(1)
        .map(|dump| dump.threads.iter().map(|seen| (key(seen), seen)).collect())
        .collect();
    for seen in &first.threads {
        let there = |dump: &HashMap<Key<'a>, &'d Seen<'a>>| {
            let other = dump.get(&key(seen)).copied()?;
            (other.thread.stack == seen.thread.stack && other.doing == seen.doing).then_some(other)
        };
        let others: Option<Vec<&'d Seen<'a>>> = later.iter().map(there).collect();
        let Some(other) = others.and_then(|others| others.last().copied()) else {
            continue;
        };
        if seen.doing == Doing::Unknown || seen.frames.is_empty() {
            continue;
        }
        let by_age = other.thread.elapsed.zip(seen.thread.elapsed);
        let by_dumps = last.snapshot.at.zip(first.snapshot.at);
        let by_dumps = by_dumps.and_then(|(last, first)| u64::try_from(last.since(first)?).ok());
        let span = by_age
            .and_then(|(last, first)| last.checked_sub(first))
            .or(by_dumps);
        all.push(Still {
            first: seen,
            last: other,
            dumps: dumps.len(),
            span,
        });
    }
}

fn same(one: &Dump<'_>, other: &Dump<'_>) -> bool {
    let of = |dump: &Dump<'_>| -> HashSet<(String, Option<u32>)> {
        let threads = dump.threads.iter().map(|seen| seen.thread);
        threads.map(|thread| (thread.name.clone(), thread.tid)).collect()
    };
    let (one, other) = (of(one), of(other));
    let common = one.intersection(&other).count();
    common * 2 >= one.len().min(other.len()) && common > 0
}
