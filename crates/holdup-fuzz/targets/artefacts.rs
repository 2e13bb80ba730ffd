//! Every format of artefacts, whichever there are. Input: an artefact. It is read as what it looks like, packed or not,
//! with all changes of format in it; and by each reader alone, whatever it looks like.

use holdup_readers::{FORMATS, Reading, read_as, read_text};

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 600;

/// The samples of every format.
pub(crate) const SEEDS: &str = "../holdup/tests/samples";

/// Reads it in all ways, and looks at what must be true of any reading.
pub(crate) fn run(bytes: &[u8]) {
    check(&read_text("input", bytes));
    for format in FORMATS {
        check(&read_as(format, bytes));
    }
}

/// What a reading owes to those who rely on it.
fn check(reading: &Reading) {
    let observed = &reading.observed;
    assert_eq!(observed.sources.len(), reading.accounts.len());
    for account in &reading.accounts {
        assert!(account.evidence + account.ignorable + account.not_understood <= account.lines);
    }
    for series in &observed.series {
        assert!((series.source as usize) < observed.sources.len());
        assert!(series.points.is_sorted_by_key(|point| point.report));
        assert!(series.points.iter().all(|point| point.value.is_finite()));
        assert!(series.count >= series.points.len() as u64);
    }
    for (stack, _) in observed.samples.iter().flat_map(|samples| &samples.stacks) {
        assert!((stack.0 as usize) < observed.stacks.len());
    }
}
