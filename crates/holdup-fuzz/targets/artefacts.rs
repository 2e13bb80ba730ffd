//! Every format of artefacts, whichever there are. Input: an artefact. It is read as what it looks like, packed or not,
//! with all changes of format in it; and by readers alone, whatever it looks like. Which ones its bytes choose: what all samples cost
//! all readers grows with the square of the formats, and was a third of the time that all tests take.

use holdup_readers::{FORMATS, Reading, read_as, read_text};
use std::hash::{DefaultHasher, Hasher};

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 600;

/// The samples of every format.
pub(crate) const SEEDS: &str = "../holdup/tests/samples";

/// One reader in so many reads an input alone. Of some 9,000 inputs each reader still reads 750 alone.
const ONE_IN: u64 = 12;

/// Reads it as what it looks like and by some readers alone, and looks at what must be true of any reading.
pub(crate) fn run(bytes: &[u8]) {
    check(&read_text("input", bytes));
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    let first = hasher.finish() % ONE_IN;
    for (number, format) in (0..).zip(FORMATS) {
        if number % ONE_IN == first {
            check(&read_as(format, bytes));
        }
    }
}

/// What once broke a reader is read by all of them.
#[test]
fn what_broke_a_reader_is_read_by_all() {
    let target = crate::Target::named("artefacts").unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(target.folder()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for format in FORMATS {
            check(&read_as(format, &bytes));
        }
        files += 1;
    }
    assert!(files > 0);
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
