//! Who is looked at, in which order and how often.

use super::Looks;
use holdup_evidence::ThreadId;
use holdup_symbols::ProcessKey;

const PYTHON: ProcessKey = ProcessKey(1);
const OTHER: ProcessKey = ProcessKey(2);

fn asked(looks: &mut Looks) -> Vec<(u32, Vec<u32>)> {
    let round = looks.round(0).into_iter();
    round.map(|one| (one.pid, one.asleep)).collect()
}

#[test]
fn threads_of_interpreters_are_asked_about_once_a_wait_of_theirs_has_ended() {
    let mut looks = Looks::default();
    looks.born(PYTHON, 10, ThreadId(10));
    looks.born(OTHER, 20, ThreadId(20));
    assert!(looks.nothing_to_do());
    looks.hold(PYTHON, 10);
    looks.born(PYTHON, 11, ThreadId(11));
    assert_eq!(asked(&mut looks), [(10, vec![10, 11])]);
    looks.due.clear();
    assert_eq!(asked(&mut looks), []);
    looks.wait_ended(ThreadId(11), 0, 500);
    looks.wait_ended(ThreadId(20), 0, 500);
    assert_eq!(asked(&mut looks), [(10, vec![11])]);
    looks.release(PYTHON);
    assert!(looks.nothing_to_do() && looks.due.is_empty());
}

#[test]
fn looks_that_take_much_get_rarer_until_they_take_a_hundredth() {
    let mut looks = Looks::default();
    let (mut now, mut took) = (0, 0);
    for _ in 0..100 {
        while !looks.may_begin(now) {
            now += 1_000_000;
        }
        looks.round(now);
        looks.charge(3_000_000);
        took += 3_000_000;
        assert!(took <= now / 100 + 26_000_000, "{took} of {now}");
    }
    assert!(now < 29_000_000_000, "{now}");
}

#[test]
fn the_threads_of_a_large_process_have_turns() {
    let mut looks = Looks::default();
    looks.hold(PYTHON, 1);
    looks.hold(OTHER, 2);
    for tid in 0..50 {
        looks.born(PYTHON, tid, ThreadId(tid));
    }
    looks.born(OTHER, 500, ThreadId(500));
    assert_eq!(asked(&mut looks), [(1, (0..32).collect())]);
    let rest = [(1, (32..50).chain(0..13).collect()), (2, vec![500])];
    assert_eq!(asked(&mut looks), rest);
    for tid in 20..50 {
        looks.wait_ended(ThreadId(tid), 0, 100);
    }
    let recent = (20..36).chain(13..20).chain(36..45);
    assert_eq!(
        asked(&mut looks),
        [(1, recent.collect())],
        "who was in a wait is first"
    );
    looks.forget(OTHER, 500, ThreadId(500));
    assert_eq!(looks.due.len(), 50);
}
