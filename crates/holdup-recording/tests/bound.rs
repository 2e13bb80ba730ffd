//! A recorder's segment is bounded, and its sums are what they were.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod support;

use holdup_evidence::Cause;
use holdup_evidence::facts::Unaccepted;
use holdup_model::timeline::Piece;
use holdup_recording::{MAX_PIECES, MAX_WAITS, Segment, bound, write};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use std::collections::BTreeMap;
use support::Dice;

/// Programs and causes that are distinguished beside the rows that stand for themselves: 40 and the others, of each cause.
fn most_rows() -> usize {
    MAX_WAITS + 41 * Cause::ALL.len()
}

/// A machine that is busy with many programs: rows and pieces of many segments in one.
fn busy(seed: u64, programs: usize) -> Segment {
    let mut dice = Dice::new(seed);
    let mut segment = dice.segment();
    let waits = &mut segment.attributed.waits;
    while waits.len() < 3 * programs {
        waits.extend(dice.segment().attributed.waits);
    }
    for (number, wait) in waits.iter_mut().enumerate() {
        wait.asker.name.process = format!("program-{}", number % programs);
        wait.ns %= 1 << 40;
        wait.count %= 1 << 20;
    }
    let rows = u32::try_from(waits.len()).unwrap();
    let causes = Cause::ALL;
    segment.attributed.timeline.pieces = (0..20_000u32)
        .map(|number| Piece {
            task: 0,
            start: u64::from(number),
            ns: u64::from(number.wrapping_mul(2_654_435_761)),
            cause: causes[number as usize % causes.len()],
            wait: Some(number % rows),
            ended_by: None,
            before: 0,
            open: false,
        })
        .collect();
    segment.attributed.timeline.left_out = 5;
    segment.attributed.timeline.tasks = vec![holdup_model::timeline::Task::default()];
    segment
}

/// Time, count and longest by cause.
fn by_cause(segment: &Segment) -> BTreeMap<Cause, (u64, u64, u64)> {
    let mut sums: BTreeMap<Cause, (u64, u64, u64)> = BTreeMap::new();
    for wait in &segment.attributed.waits {
        let sum = sums.entry(wait.cause).or_default();
        *sum = (sum.0 + wait.ns, sum.1 + wait.count, sum.2.max(wait.max));
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_busy_machine_has_a_bounded_segment_with_the_same_sums(seed in any::<u64>()) {
        let whole = busy(seed, 700);
        let mut kept = whole.clone();
        bound(&mut kept);
        let (rows, pieces) = (&kept.attributed.waits, &kept.attributed.timeline.pieces);
        prop_assert!(rows.len() <= most_rows() && rows.len() < whole.attributed.waits.len(), "{} rows", rows.len());
        prop_assert_eq!(by_cause(&kept), by_cause(&whole));
        prop_assert_eq!(&kept.attributed.threads, &whole.attributed.threads);
        prop_assert_eq!(&kept.attributed.windows, &whole.attributed.windows);
        // A deadlock is reported whatever it cost.
        let circles = |segment: &Segment| segment.attributed.waits.iter().filter(|wait| wait.deadlock).count();
        prop_assert!(circles(&kept) >= circles(&whole).min(MAX_WAITS));
        prop_assert_eq!(pieces.len(), MAX_PIECES);
        prop_assert_eq!(kept.attributed.timeline.left_out, 5 + 20_000 - MAX_PIECES as u64);
        prop_assert!(kept.attributed.timeline.rest.is_empty());
        // A piece belongs to a row of its row's cause.
        for piece in pieces {
            let row = &rows[piece.wait.unwrap() as usize];
            let was = whole.attributed.timeline.pieces.iter().find(|one| one.start == piece.start).unwrap();
            prop_assert_eq!(row.cause, whole.attributed.waits[was.wait.unwrap() as usize].cause);
        }
        // What it does not tell any more it says.
        let said: Vec<&str> = kept.attributed.coverage.not_measured.iter().map(|missing| missing.0.as_str()).collect();
        prop_assert!(said.contains(&"short waits one by one") && said.contains(&"short intervals of the time line"), "{said:?}");
    }

    #[test]
    fn what_is_within_the_bounds_stays_as_it_is(seed in any::<u64>()) {
        let mut whole = Dice::new(seed).segment();
        whole.attributed.waits.truncate(MAX_WAITS);
        whole.attributed.timeline.rest.clear();
        whole.attributed.timeline.left_out = 0;
        let mut kept = whole.clone();
        bound(&mut kept);
        prop_assert_eq!(&kept.attributed.waits, &whole.attributed.waits);
        prop_assert_eq!(kept.attributed.coverage, whole.attributed.coverage);
    }
}

#[test]
fn a_server_whose_clients_are_queued_stands_for_itself_however_little_it_did() {
    const SERVER: u32 = 4242;
    let mut segment = busy(7, 700);
    let waits = &mut segment.attributed.waits;
    waits.iter_mut().for_each(|wait| wait.deadlock = false);
    let idle = &mut waits[0];
    (idle.cause, idle.ns, idle.path_ns) = (Cause::Idle, 1, 0);
    (idle.asker.name.pid, idle.asker.name.tid) = (SERVER, SERVER);
    let kept = |segment: &Segment| {
        let mut rows = segment.attributed.waits.iter();
        rows.any(|row| row.asker.name.tid == SERVER)
    };
    let mut alike = segment.clone();
    bound(&mut alike);
    assert!(!kept(&alike));
    segment.facts.unaccepted = Some(vec![Unaccepted {
        processes: vec![SERVER],
        before: 1,
        after: 3,
        ..Unaccepted::default()
    }]);
    bound(&mut segment);
    assert!(kept(&segment));
}

#[test]
fn ten_times_the_programs_take_no_more_room() {
    let size = |programs: usize| {
        let mut segment = busy(7, programs);
        bound(&mut segment);
        let mut file = Vec::new();
        write(&segment, &mut file).unwrap();
        file.len()
    };
    let (many, ten_times_as_many) = (size(400), size(4_000));
    assert!(
        ten_times_as_many < many + many / 4,
        "{many} bytes, and {ten_times_as_many}"
    );
}
