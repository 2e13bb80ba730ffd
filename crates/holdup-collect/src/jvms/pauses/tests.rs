//! Pauses from waits in the order in which the kernel tells them.

use super::{Kind, ObservedPause, Pauses, of_collections};
use holdup_evidence::{Call, Ns, PauseWork, ThreadId, Wait};

const FUTEX: i32 = 202;
const CLOCK_NANOSLEEP: i32 = 230;
const BARRIER: u64 = 0x80;
const CONDITION: u64 = 0x189;
const MS: Ns = 1_000_000;
const VM: Option<ThreadId> = Some(ThreadId(100));

fn wait(thread: u32, number: i32, operation: u64, start: Ns, end: Ns) -> Wait {
    let call = Call {
        number,
        args: [0x1000, operation, 3, 0],
    };
    Wait::new(ThreadId(thread), 1, (start * MS, end * MS), call)
}

/// A pause, milliseconds.
pub(crate) fn seen(from: Ns, to: Ns) -> ObservedPause {
    let mut pauses = Pauses::new(7);
    stopped(&mut pauses, 1, from, to);
    pauses.take().remove(0)
}

fn stopped(pauses: &mut Pauses, thread: u32, start: Ns, end: Ns) {
    pauses.wait(&wait(thread, FUTEX, BARRIER, start, end), Kind::Java, VM);
}

fn figures(seen: ObservedPause) -> (Ns, Option<Ns>, Ns, Option<u32>) {
    let pause = seen.into_pause(PauseWork::Other);
    (
        pause.from / MS,
        pause.reached.map(|at| at / MS),
        pause.to / MS,
        pause.late.map(|thread| thread.0),
    )
}

#[test]
fn all_that_are_let_go_at_once_were_in_one_pause() {
    let mut pauses = Pauses::new(7);
    stopped(&mut pauses, 1, 10, 20);
    stopped(&mut pauses, 2, 12, 21);
    stopped(&mut pauses, 3, 11, 22);
    // The next one begins after the first of them was let go.
    stopped(&mut pauses, 1, 30, 40);
    let all: Vec<_> = pauses.take().into_iter().map(figures).collect();
    assert_eq!(all, [(10, None, 20, None), (30, None, 40, None)]);
    assert!(pauses.take().is_empty());
}

#[test]
fn those_told_with_the_next_records_belong_to_the_same_pause() {
    let mut pauses = Pauses::new(7);
    stopped(&mut pauses, 1, 10, 20);
    assert_eq!(pauses.take().len(), 1);
    stopped(&mut pauses, 2, 12, 21);
    assert!(pauses.take().is_empty());
}

#[test]
fn the_last_to_come_before_the_vm_thread_goes_on_is_late() {
    let mut pauses = Pauses::new(7);
    for at in 10..50 {
        let nap = wait(100, CLOCK_NANOSLEEP, 0, at, at + 1);
        pauses.wait(&nap, Kind::VmThread, None);
    }
    // One that comes back from native code in the middle is stopped, and nobody waited for it.
    stopped(&mut pauses, 3, 55, 60);
    stopped(&mut pauses, 1, 11, 60);
    stopped(&mut pauses, 2, 49, 60);
    let all: Vec<_> = pauses.take().into_iter().map(figures).collect();
    assert_eq!(all, [(10, Some(50), 60, Some(2))]);
}

#[test]
fn nobody_is_late_if_the_last_to_come_came_long_before() {
    let mut pauses = Pauses::new(7);
    for at in 10..50 {
        let nap = wait(100, CLOCK_NANOSLEEP, 0, at, at + 1);
        pauses.wait(&nap, Kind::VmThread, None);
    }
    stopped(&mut pauses, 1, 11, 60);
    stopped(&mut pauses, 2, 12, 60);
    let all: Vec<_> = pauses.take().into_iter().map(figures).collect();
    assert_eq!(
        all,
        [(10, Some(50), 60, None)],
        "who was waited for went where it needs not stop"
    );
}

#[test]
fn naps_of_another_time_say_nothing() {
    let mut pauses = Pauses::new(7);
    pauses.wait(&wait(100, CLOCK_NANOSLEEP, 0, 1, 2), Kind::VmThread, None);
    stopped(&mut pauses, 1, 10, 20);
    let all: Vec<_> = pauses.take().into_iter().map(figures).collect();
    assert_eq!(all, [(10, None, 20, None)]);
}

#[test]
fn who_asked_is_part_of_it_and_the_machines_own_threads_are_not() {
    let mut pauses = Pauses::new(7);
    pauses.wait(&wait(9, FUTEX, CONDITION, 1, 5), Kind::Own, VM);
    pauses.wait(&wait(1, FUTEX, CONDITION, 10, 20), Kind::Java, VM);
    pauses.wait(&wait(2, FUTEX, CONDITION, 12, 19), Kind::Java, None);
    let all: Vec<_> = pauses.take().into_iter().map(figures).collect();
    assert_eq!(all, [(10, None, 20, None)]);
}

#[test]
fn whether_collecting_threads_worked_is_kept() {
    let mut pauses = Pauses::new(7);
    pauses.wait(&wait(50, FUTEX, CONDITION, 2, 12), Kind::Collects, VM);
    stopped(&mut pauses, 1, 10, 20);
    stopped(&mut pauses, 1, 30, 40);
    let worked: Vec<bool> = pauses.take().iter().map(|pause| pause.worked).collect();
    assert_eq!(worked, [true, false]);
}

#[test]
fn of_several_the_longest_are_those_of_collections() {
    let mut pauses = Pauses::new(7);
    for (start, end) in [(10, 11), (20, 29), (30, 35)] {
        stopped(&mut pauses, 1, start, end);
    }
    let seen = pauses.take();
    assert_eq!(of_collections(&seen, 2, 13 * MS), [1, 2]);
    assert_eq!(of_collections(&seen, 0, 0), Vec::<usize>::new());
    assert_eq!(of_collections(&seen, 9, 15 * MS).len(), 3);
    // A collection of a second was in none of these.
    assert_eq!(of_collections(&seen, 1, 1_000 * MS), Vec::<usize>::new());
}
