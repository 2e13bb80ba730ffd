//! What a segment lacks, in plain words for the recorder's journal.
//!
//! In: what its coverage counts as lost. Out: a sentence where it has fallen behind, which a larger buffer mends; and whether the kernel
//! has not shown everything, which nothing does that could be asked for.

use super::observer::Outcome;
use holdup_evidence::{LossClass, NotMeasured, Ns};

/// Records that found the buffer full.
const DROPPED: [LossClass; 5] = [
    LossClass::WaitRecord,
    LossClass::ThreadRecord,
    LossClass::ObjectRecord,
    LossClass::Request,
    LossClass::Connection,
];

/// What was never shown to a program.
const UNSHOWN: [LossClass; 2] = [LossClass::Waking, LossClass::Switch];

/// What is said once of a machine whose kernel does not show everything.
pub(super) const HIDDEN: &str = "this kernel does not report every wakeup and switch to BPF programs: the \
 waker of such a wait, and sometimes its length, is unknown. Each segment counts them; this message \
 appears once (a larger --buffer does not help)";

/// How many of these classes there are.
fn count(lost: &[(String, u64, Ns)], classes: &[LossClass]) -> u64 {
    let of_these = lost
        .iter()
        .filter(|(what, ..)| classes.iter().any(|class| class.phrase() == what));
    of_these.map(|(_, count, _)| count).sum()
}

/// What a segment says whose observer has not written it, where another process can write it.
pub(super) fn lost(outcome: Outcome) -> Option<NotMeasured> {
    let why = match outcome {
        Outcome::Written | Outcome::Hidden | Outcome::Failed => return None,
        Outcome::Late => {
            "the process that observed this segment did not end in time, and was killed".to_owned()
        }
        Outcome::Killed(signal) => format!("the process that observed this segment was ended by {signal}"),
    };
    Some(NotMeasured {
        what: "everything in this segment".to_owned(),
        why,
        fix: "none: the segments before and after it were observed by other processes".to_owned(),
    })
}

/// A plain word where it has fallen behind.
pub(super) fn behind(lost: &[(String, u64, Ns)]) -> Option<String> {
    let records = count(lost, &DROPPED);
    let are = match records {
        0 => return None,
        1 => "1 record of this segment was dropped",
        _ => &format!("{records} records of this segment were dropped"),
    };
    Some(format!(
        "fell behind: {are}, and counted in it; a larger --buffer takes more"
    ))
}

/// Whether the kernel has not shown everything.
pub(super) fn hidden(lost: &[(String, u64, Ns)]) -> bool {
    count(lost, &UNSHOWN) > 0
}

#[cfg(test)]
mod tests {
    use super::{behind, hidden};
    use holdup_evidence::LossClass;

    fn lost(classes: &[(LossClass, u64)]) -> Vec<(String, u64, u64)> {
        let found = classes.iter();
        found
            .map(|(class, count)| (class.phrase().to_owned(), *count, 7))
            .collect()
    }

    #[test]
    fn a_larger_buffer_is_advised_only_where_the_buffer_was_full() {
        let unshown = lost(&[(LossClass::Waking, 9), (LossClass::Switch, 2)]);
        assert_eq!((behind(&unshown), hidden(&unshown)), (None, true));
        let dropped = lost(&[(LossClass::WaitRecord, 40), (LossClass::Request, 2)]);
        assert_eq!(
            behind(&dropped).unwrap(),
            "fell behind: 42 records of this segment were dropped, and counted in it; a larger --buffer \
             takes more"
        );
        assert!(!hidden(&dropped));
        let one = lost(&[(LossClass::ObjectRecord, 1), (LossClass::Waking, 3)]);
        assert!(
            behind(&one)
                .unwrap()
                .contains("1 record of this segment was dropped")
                && hidden(&one)
        );
    }

    #[test]
    fn stacks_that_were_not_taken_are_neither() {
        let stacks = lost(&[(LossClass::StackSample, 5), (LossClass::CpuSample, 5)]);
        assert_eq!((behind(&stacks), hidden(&stacks)), (None, false));
        assert_eq!((behind(&[]), hidden(&[])), (None, false));
    }
}
