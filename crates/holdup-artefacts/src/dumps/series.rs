//! Several dumps of one JVM: who stands where it stood.

use super::{Doing, Dump, DumpThread};
use holdup_evidence::Ns;
use std::collections::{HashMap, HashSet};

/// A thread that stands in the same place in every dump of its JVM.
#[derive(Debug)]
pub struct Still<'a, 'd> {
    /// The thread in the first of them.
    pub first: &'d DumpThread<'a>,
    /// The same in the last.
    pub last: &'d DumpThread<'a>,
    /// How many dumps.
    pub dumps: usize,
    /// The time from the first to the last, by the dumps or by the thread's own age.
    pub span: Option<Ns>,
}

type Key<'a> = (&'a str, Option<u32>, Option<u64>);

fn key<'a>(seen: &DumpThread<'a>) -> Key<'a> {
    (&seen.thread.name, seen.thread.tid, seen.thread.number)
}

/// Threads that stand still in a series of at least two dumps of one JVM. Dumps are of one JVM where at least half of the
/// threads of the smaller are in the other too.
pub fn still<'a, 'd>(dumps: &'d [Dump<'a>]) -> Vec<Still<'a, 'd>> {
    let mut series: Vec<Vec<&Dump<'a>>> = Vec::new();
    // The series that begin with a dump in which a thread is: there may be a thousand dumps, each of a JVM of its own.
    let mut with: HashMap<Who<'a>, Vec<usize>> = HashMap::new();
    // And how many threads that dump has.
    let mut sizes: Vec<usize> = Vec::new();
    for dump in dumps {
        let threads: HashSet<Who<'a>> = dump.threads.iter().map(who).collect();
        let mut common = vec![0_usize; series.len()];
        for place in threads.iter().filter_map(|thread| with.get(thread)).flatten() {
            if let Some(count) = common.get_mut(*place) {
                *count += 1;
            }
        }
        let same = |(size, common): (&usize, &usize)| *common > 0 && *common * 2 >= threads.len().min(*size);
        match sizes.iter().zip(&common).position(same) {
            Some(place) => series[place].push(dump),
            None => {
                sizes.push(threads.len());
                for thread in threads {
                    with.entry(thread).or_default().push(series.len());
                }
                series.push(vec![dump]);
            }
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
    let later: Vec<HashMap<Key<'a>, &'d DumpThread<'a>>> = dumps
        .iter()
        .skip(1)
        .map(|dump| dump.threads.iter().map(|seen| (key(seen), seen)).collect())
        .collect();
    for seen in &first.threads {
        let there = |dump: &HashMap<Key<'a>, &'d DumpThread<'a>>| {
            let other = dump.get(&key(seen)).copied()?;
            (other.thread.stack == seen.thread.stack && other.doing == seen.doing).then_some(other)
        };
        let others: Option<Vec<&'d DumpThread<'a>>> = later.iter().map(there).collect();
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

/// How a thread is known again in another dump of the same JVM.
type Who<'a> = (&'a str, Option<u32>);

fn who<'a>(seen: &DumpThread<'a>) -> Who<'a> {
    (&seen.thread.name, seen.thread.tid)
}
