//! What a machine's pauses were for, by the machine's own account of its operations.
//!
//! In: pauses that were put together from waits, and what the machine has counted before and after them. Out: the operation of each
//! pause, where only one can have been it. The last operation is known with its time; of those before it only how many
//! there were of each kind.

use super::pauses::ObservedPause;
use holdup_evidence::Ns;
use holdup_jvm::Operations;
use std::collections::HashMap;
use std::sync::Arc;

/// Operations that are reported of a machine at most: some five are usual.
const MAX_OPERATIONS: usize = 16;

/// What begins the names of operations that collect garbage, or are a part of that.
const COLLECTING: [&str; 11] = [
    "G1",
    "GenCollect",
    "Parallel",
    "Serial",
    "CollectFor",
    "Shenandoah",
    "ZMark",
    "ZRelocate",
    "ZRendezvous",
    "XMark",
    "XRelocate",
];

/// Whether an operation collects garbage.
pub(crate) fn collects(operation: &str) -> bool {
    COLLECTING.iter().any(|begins| operation.starts_with(begins))
}

/// A machine's account.
#[derive(Debug, Default)]
pub(super) struct Account {
    first: Option<Operations>,
    last: Operations,
}

impl Account {
    /// It was read again, after these pauses: the operation of each.
    pub(super) fn read(&mut self, now: Operations, pauses: &[ObservedPause]) -> Vec<Option<Arc<str>>> {
        // Of what was counted before it was first read nobody knows when it was.
        let named = match self.first {
            None => vec![None; pauses.len()],
            Some(_) => named(&now, since(&self.last, &now), pauses),
        };
        self.first.get_or_insert_with(|| now.clone());
        self.last = now;
        named
    }

    /// What was done since it was first read, and how often; most often first.
    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        let Some(first) = &self.first else {
            return Vec::new();
        };
        let mut rows: Vec<(String, u64)> = since(first, &self.last)
            .into_iter()
            .map(|(name, count)| (name.to_string(), count))
            .collect();
        rows.sort_by(|(one, count), (other, than)| than.cmp(count).then(one.cmp(other)));
        rows.truncate(MAX_OPERATIONS);
        rows
    }
}

/// How often each operation was done between two readings.
pub(crate) fn since(before: &Operations, now: &Operations) -> Vec<(Arc<str>, u64)> {
    let before: HashMap<&str, u64> = before
        .counted
        .iter()
        .map(|(name, count)| (&**name, *count))
        .collect();
    let more = |(name, count): &(Arc<str>, u64)| {
        let more = count.saturating_sub(before.get(&**name).copied().unwrap_or(0));
        (more > 0).then(|| (Arc::clone(name), more))
    };
    now.counted.iter().filter_map(more).collect()
}

fn named(
    now: &Operations,
    mut counted: Vec<(Arc<str>, u64)>,
    pauses: &[ObservedPause],
) -> Vec<Option<Arc<str>>> {
    let mut named: Vec<Option<Arc<str>>> = vec![None; pauses.len()];
    let last = now.last.as_ref();
    // One that goes on is of none of these.
    if let Some((name, began, ended)) = last.filter(|(_, began, ended)| began <= ended)
        && let Some(at) = pauses.iter().rposition(|pause| pause.overlaps(*began, *ended))
    {
        named[at] = Some(Arc::clone(name));
        take(&mut counted, name);
    } else if let Some((name, ..)) = last.filter(|(_, began, ended)| began > ended) {
        take(&mut counted, name);
    }
    if let [(only, count)] = counted.as_slice() {
        let mut left = *count;
        for name in named.iter_mut().filter(|name| name.is_none()) {
            if left > 0 {
                *name = Some(Arc::clone(only));
                left -= 1;
            }
        }
    }
    named
}

/// One of these operations is accounted for.
fn take(counted: &mut Vec<(Arc<str>, u64)>, name: &str) {
    if let Some((_, count)) = counted.iter_mut().find(|(of, _)| &**of == name) {
        *count -= 1;
    }
    counted.retain(|(_, count)| *count > 0);
}

/// How far a pause may lie from the machine's own account of it, nanoseconds: threads run again before that is closed.
pub(super) const NEAR: Ns = 1_000_000;

#[cfg(test)]
mod tests {
    use super::{Account, collects};
    use crate::jvms::pauses::tests::seen;
    use holdup_evidence::Ns;
    use holdup_jvm::Operations;

    const MS: Ns = 1_000_000;

    fn account(counted: &[(&str, u64)], last: (&str, Ns, Ns)) -> Operations {
        let counted = counted.iter().map(|(name, count)| ((*name).into(), *count));
        Operations {
            counted: counted.collect(),
            last: Some((last.0.into(), last.1 * MS, last.2 * MS)),
            ..Operations::default()
        }
    }

    fn names(then: Operations, pauses: &[(Ns, Ns)]) -> Vec<Option<String>> {
        let mut account_of = Account::default();
        account_of.read(
            account(&[("ThreadDump", 7), ("Cleanup", 1)], ("ThreadDump", 1, 2)),
            &[],
        );
        let pauses: Vec<_> = pauses.iter().map(|(from, to)| seen(*from, *to)).collect();
        let named = account_of.read(then, &pauses);
        named
            .into_iter()
            .map(|name| name.map(|name| name.to_string()))
            .collect()
    }

    #[test]
    fn the_last_operation_is_that_of_the_pause_at_its_time() {
        let then = account(&[("ThreadDump", 8), ("Cleanup", 2)], ("Cleanup", 30, 40));
        // Of the other there is only one that it can have been.
        let all = names(then, &[(10, 20), (30, 40)]);
        assert_eq!(all, [Some("ThreadDump".to_owned()), Some("Cleanup".to_owned())]);
    }

    #[test]
    fn of_two_kinds_before_the_last_none_is_told() {
        let then = account(
            &[("ThreadDump", 8), ("Cleanup", 2), ("HeapDumper", 1)],
            ("HeapDumper", 30, 40),
        );
        let all = names(then, &[(5, 8), (10, 20), (30, 40)]);
        assert_eq!(all, [None, None, Some("HeapDumper".to_owned())]);
    }

    #[test]
    fn one_that_goes_on_is_of_no_pause_that_has_ended() {
        let then = account(&[("ThreadDump", 8), ("Cleanup", 2)], ("Cleanup", 50, 2));
        assert_eq!(names(then, &[(10, 20)]), [Some("ThreadDump".to_owned())]);
    }

    #[test]
    fn what_was_counted_before_it_was_first_read_is_not_told() {
        let mut first = Account::default();
        let pauses = [seen(10, 20)];
        let named = first.read(account(&[("ThreadDump", 7)], ("ThreadDump", 10, 20)), &pauses);
        assert_eq!(named, [None]);
        assert_eq!(first.counts(), []);
        first.read(account(&[("ThreadDump", 9)], ("ThreadDump", 10, 20)), &[]);
        assert_eq!(first.counts(), [("ThreadDump".to_owned(), 2)]);
    }

    #[test]
    fn collections_are_told_from_what_only_looks_at_the_heap() {
        assert!(collects("G1CollectForAllocation") && collects("SerialGCCollect"));
        assert!(!collects("GC_HeapInspection") && !collects("HeapDumper"));
    }
}
