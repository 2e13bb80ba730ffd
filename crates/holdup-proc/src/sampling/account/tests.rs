//! Lives of threads that are known to the nanosecond, looked at now and then.

use super::{Account, Ends, Interval, Look, Piece};
use crate::sampling::clocks::Counted;
use holdup_evidence::{Clock, Ns};
use proptest::prelude::*;

type Pieces = Vec<Piece<u32>>;

fn pieces(interval: Interval<u32>) -> Pieces {
    interval.before.into_iter().chain(interval.after).collect()
}

fn counted(cpu: Ns, queued: Ns, turns: u64) -> Counted {
    Counted {
        cpu,
        queued,
        turns,
        blockings: Some(turns),
    }
}

fn look(at: Ns, counted: Counted, asleep: Option<u32>) -> Look<u32> {
    Look { at, counted, asleep }
}

#[test]
fn a_wait_that_is_seen_twice_is_known_to_the_nanosecond() {
    let mut account = Account::beginning(0, counted(0, 0, 0));
    assert!(pieces(account.look(look(100, counted(100, 0, 1), Some(7)), Ends::Anywhere)).is_empty());
    account.still(500);
    account.still(900);
    // It has run for 60, queued for 40, and not blocked again.
    let found = pieces(account.look(look(1_100, counted(160, 40, 1), None), Ends::Anywhere));
    let [piece] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((piece.site, piece.start, piece.end), (Some(7), 100, 1_000));
    assert_eq!((piece.doubt, piece.count, piece.clock.blocked), (0, 1, 900));
}

#[test]
fn what_lies_between_two_waits_is_shared_and_in_doubt() {
    let mut account = Account::beginning(0, counted(0, 0, 0));
    account.look(look(0, counted(0, 0, 1), Some(7)), Ends::Anywhere);
    let found = pieces(account.look(look(100, counted(20, 0, 2), Some(8)), Ends::Anywhere));
    let [old] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((old.end, old.doubt), (40, 40));
    let (site, since) = account.asleep().unwrap();
    assert_eq!((*site, since), (8, 60));
}

#[test]
fn a_wait_does_not_end_before_it_can_have() {
    let mut account = Account::beginning(0, counted(0, 0, 0));
    account.look(look(0, counted(0, 0, 1), Some(7)), Ends::Anywhere);
    let found = pieces(account.look(look(100, counted(20, 0, 2), Some(8)), Ends::NotBefore(70)));
    assert_eq!(found[0].end, 70);
    assert_eq!(account.asleep().unwrap().1, 90);
}

#[test]
fn who_was_woken_for_something_else_goes_on_with_the_same_wait() {
    let woken = || {
        let mut account = Account::beginning(0, counted(0, 0, 0));
        account.look(look(0, counted(0, 0, 1), Some(7)), Ends::Anywhere);
        account.look(look(100, counted(0, 0, 1), None), Ends::Anywhere);
        assert_eq!(account.ran_after(), Some((&7, Some(1))));
        account
    };
    let found = pieces(woken().look(look(200, counted(20, 0, 2), None), Ends::NotBefore(150)));
    let [wait] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((wait.site, wait.start, wait.end), (Some(7), 100, 180));
    assert_eq!((wait.seen, wait.doubt), (true, 80));
    // One that has not blocked since, or sleeps since it did, was in no further wait that is over.
    let found = pieces(woken().look(look(200, counted(20, 0, 2), Some(8)), Ends::NotBefore(150)));
    assert!(found.iter().all(|piece| !piece.seen), "{found:?}");
    let found = pieces(woken().look(look(200, counted(100, 0, 1), None), Ends::NotBefore(150)));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_wait_ends_when_it_is_known_to_have_and_the_rest_stays_the_threads() {
    let mut account = Account::beginning(0, counted(0, 0, 0));
    account.look(look(0, counted(0, 0, 1), Some(7)), Ends::Anywhere);
    let next = look(100, counted(20, 0, 2), None);
    assert_eq!(account.ended_by(next.clone()), Some(40));
    let found = pieces(account.look(next, Ends::At(70)));
    let [wait, rest] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((wait.end, wait.seen), (70, true));
    assert_eq!((rest.site, rest.end, rest.seen), (Some(7), 80, false));
}

#[test]
fn who_is_only_ever_seen_running_is_not_called_blocked_before_the_kernel_says_so() {
    let mut account = Account::<u32>::beginning(0, counted(0, 0, 0));
    account.look(look(1_000_000, counted(0, 0, 0), None), Ends::Anywhere);
    // The kernel's count comes late, by up to a tick.
    let (interval, clock) = account.end(4_000_000, Some(counted(4_000_000, 0, 0)), Ends::Anywhere);
    assert!(pieces(interval).is_empty());
    assert_eq!((clock.cpu, clock.blocked), (4_000_000, 0));
}

#[test]
fn what_the_kernel_has_not_counted_yet_is_told_once_it_has() {
    const MS: Ns = 1_000_000;
    let mut account = Account::<u32>::beginning(0, counted(0, 0, 0));
    for at in [5 * MS, 10 * MS] {
        account.look(look(at, counted(0, 0, 0), None), Ends::Anywhere);
        assert_eq!(account.looked(), 0);
    }
    // It queued, which is counted once that is over; then it waited.
    account.look(
        look(15 * MS, counted(2 * MS, 12 * MS, 1), Some(7)),
        Ends::Anywhere,
    );
    let (_, clock) = account.end(30 * MS, Some(counted(3 * MS, 12 * MS, 2)), Ends::Anywhere);
    assert_eq!(
        (clock.cpu, clock.queued, clock.blocked),
        (3 * MS, 12 * MS, 15 * MS)
    );
    // Who has not run for long queues, whatever is counted.
    let mut queues = Account::<u32>::beginning(0, counted(0, 0, 0));
    queues.look(look(30 * MS, counted(0, 0, 0), None), Ends::Anywhere);
    assert_eq!(queues.looked(), 30 * MS);
}

#[test]
fn many_short_waits_count_as_many() {
    let mut account = Account::beginning(0, counted(0, 0, 0));
    account.look(look(0, counted(0, 0, 1), Some(7)), Ends::Anywhere);
    let found = pieces(account.look(look(1_000, counted(0, 0, 11), Some(7)), Ends::Anywhere));
    let count: u64 = found.iter().map(|piece| piece.count).sum();
    assert_eq!(count, 10);
    assert!(found.iter().all(|piece| piece.site == Some(7)));
}

/// A stretch of a life: what the thread did (0: ran, 1: queued, else waited there), for how long.
fn life() -> impl Strategy<Value = Vec<(u32, Ns)>> {
    proptest::collection::vec((0u32..5, 1u64..5_000), 1..60)
}

/// What the kernel would have counted at an instant, and what the thread did.
fn kernel(life: &[(u32, Ns)], at: Ns) -> (Counted, u32) {
    let (mut now, mut counted, mut doing) = (0, Counted::default(), 0);
    counted.blockings = Some(0);
    for (what, length) in life {
        if now > at {
            break;
        }
        let passed = (*length).min(at - now);
        doing = *what;
        match what {
            0 => {
                counted.cpu += passed;
                counted.turns += 1;
            }
            1 => counted.queued += passed,
            _ => counted.blockings = counted.blockings.map(|count| count + 1),
        }
        now += length;
    }
    (counted, doing)
}

proptest! {
    #[test]
    fn a_life_is_tiled_whenever_it_is_looked_at(
        life in life(), mut looks in proptest::collection::vec(0u64..200_000, 0..30), known in any::<bool>(),
    ) {
        let length: Ns = life.iter().map(|(_, length)| length).sum();
        looks.retain(|at| *at < length);
        looks.sort_unstable();
        let mut account = Account::beginning(0, Counted { blockings: Some(0), ..Counted::default() });
        let mut listed = Vec::new();
        for at in looks {
            let (counted, doing) = kernel(&life, at);
            if account.asleep().is_some() && account.turns() == counted.turns && account.counted().queued == counted.queued {
                account.still(at);
                continue;
            }
            listed.extend(pieces(account.look(look(at, counted, (doing > 1).then_some(doing)), Ends::Anywhere)));
        }
        let (last, clock) = account.end(length, known.then(|| kernel(&life, length).0), Ends::Anywhere);
        listed.extend(pieces(last));
        prop_assert_eq!(clock.total(), length, "all of it is told");
        let mut until = 0;
        let mut blocked = 0;
        for piece in &listed {
            prop_assert!(piece.start >= until && piece.end >= piece.start && piece.doubt <= piece.end - piece.start);
            until = piece.end;
            blocked += piece.end - piece.start;
            let so_far: Clock = piece.clock;
            prop_assert_eq!(so_far.total(), piece.end);
            prop_assert_eq!(so_far.blocked, blocked);
        }
        prop_assert_eq!(blocked, clock.blocked);
    }

    #[test]
    fn times_that_make_no_sense_lose_nothing(
        looks in proptest::collection::vec((0u64..1_000, 0u64..2_000, 0u64..2_000, 0u64..9, proptest::option::of(0u32..3)), 0..30),
    ) {
        let mut account = Account::beginning(10, Counted::default());
        let mut last = 10;
        for (at, cpu, queued, turns, asleep) in looks {
            account.look(look(at, counted(cpu, queued, turns), asleep), Ends::Anywhere);
            last = last.max(at);
        }
        let (_, clock) = account.end(last, None, Ends::Anywhere);
        prop_assert_eq!(clock.total(), last - 10);
    }
}
