//! Circles of threads that wait for each other's locks, and what only looks like one.

use super::scene::{By, Scene, exiting, row, waits_for_mutex_of};
use holdup_evidence::{Call, Cause, LockHolder, Ns, RuntimeLock, RuntimeLockKind, RuntimeLockSource, Wait};
use holdup_model::attributed::{Attributed, HowKnown};

/// `FUTEX_PRIVATE_FLAG`.
const PRIVATE: u64 = 128;

/// A call by which a lock is let go.
const UNLOCK: Call = Call {
    number: 202,
    args: [0, 129, 1, 0],
};

/// Makes a wait one for the mutex at this address, which this thread has.
fn mutex(wait: &mut Wait, address: u64, owner: u32) {
    waits_for_mutex_of(wait, owner);
    wait.call.args[0] = address;
    wait.call.args[1] = PRIVATE;
}

/// CMD has another two threads, all at work for 100.
fn three_threads() -> Scene {
    let mut scene = Scene::new("bank");
    scene.thread(1, 0, "teller");
    scene.thread(2, 0, "clerk");
    for id in 0..3 {
        scene.cpu(id, 100);
    }
    scene
}

fn circle(run: &Attributed, id: u32) -> Option<Vec<u32>> {
    let row = row(run, id, Cause::LockFutex);
    row.deadlock
        .then(|| row.chain.iter().map(|link| link.name.tid).collect())
}

/// Ends all threads, the process being killed.
fn killed(mut scene: Scene) -> Attributed {
    for id in [1, 2, 0] {
        scene.end(id);
    }
    scene.attributed()
}

#[test]
fn two_threads_that_wait_for_each_other_are_a_circle_however_it_ends() {
    let mut scene = three_threads();
    mutex(scene.wait(0, Cause::LockFutex, 900, By::Interrupt), 0xb, 101);
    scene.cpu(1, 50);
    mutex(scene.wait(1, Cause::LockFutex, 950, By::Interrupt), 0xa, 100);
    let run = killed(scene);
    assert_eq!(circle(&run, 0), Some(vec![100, 101, 100]));
    assert_eq!(circle(&run, 1), Some(vec![101, 100, 101]));
    let holder = &row(&run, 0, Cause::LockFutex).holders[0];
    assert_eq!(
        (holder.name.tid, holder.how_known, holder.doing),
        (101, HowKnown::MutexOwner, Some(Cause::LockFutex))
    );
}

#[test]
fn threads_that_are_left_waiting_are_a_circle_too() {
    let mut scene = three_threads();
    scene.end(2);
    for (id, address, owner) in [(1, 0xa, 100), (0, 0xb, 101)] {
        scene.left_waiting(id, Cause::LockFutex, 900, |wait| mutex(wait, address, owner));
    }
    let run = scene.attributed();
    assert_eq!(circle(&run, 0), Some(vec![100, 101, 100]));
    assert_eq!(circle(&run, 1), Some(vec![101, 100, 101]));
}

#[test]
fn three_in_a_circle_are_found_and_who_waits_for_one_of_them_is_not_in_it() {
    let mut scene = three_threads();
    scene.thread(3, 0, "guest");
    mutex(scene.wait(0, Cause::LockFutex, 900, By::Interrupt), 0xb, 101);
    mutex(scene.wait(1, Cause::LockFutex, 900, By::Interrupt), 0xc, 102);
    mutex(scene.wait(3, Cause::LockFutex, 900, By::Interrupt), 0xa, 100);
    mutex(scene.wait(2, Cause::LockFutex, 900, By::Interrupt), 0xa, 100);
    scene.end(3);
    let run = killed(scene);
    assert_eq!(circle(&run, 0), Some(vec![100, 101, 102, 100]));
    assert_eq!(circle(&run, 2), Some(vec![102, 100, 101, 102]));
    assert_eq!(circle(&run, 3), None);
}

#[test]
fn a_thread_that_locks_twice_waits_for_itself() {
    let mut scene = three_threads();
    mutex(scene.wait(0, Cause::LockFutex, 900, By::Interrupt), 0xa, 100);
    let run = killed(scene);
    assert_eq!(circle(&run, 0), Some(vec![100, 100]));
}

#[test]
fn a_mutex_that_another_unlocks_is_a_signal() {
    let mut scene = three_threads();
    scene.cpu(1, 800);
    mutex(
        scene.wait(0, Cause::LockFutex, 900, By::Thread(1, UNLOCK)),
        0xa,
        100,
    );
    let run = killed(scene);
    assert_eq!(circle(&run, 0), None);
    let holder = &row(&run, 0, Cause::LockFutex).holders[0];
    assert_eq!((holder.name.tid, holder.how_known), (101, HowKnown::Waker));
}

#[test]
fn threads_that_wait_for_each_other_one_after_the_other_are_none() {
    let mut scene = three_threads();
    scene.cpu(1, 300);
    mutex(
        scene.wait(0, Cause::LockFutex, 400, By::Thread(1, UNLOCK)),
        0xb,
        101,
    );
    scene.cpu(0, 500);
    mutex(
        scene.wait(1, Cause::LockFutex, 900, By::Thread(0, UNLOCK)),
        0xa,
        100,
    );
    let run = killed(scene);
    assert_eq!((circle(&run, 0), circle(&run, 1)), (None, None));
}

/// The teller lets go of a lock that CMD waits for; the clerk gets it, not CMD, and keeps it. Then the teller waits for
/// a lock of CMD's: CMD's owner is out of date, and nobody is stuck.
#[test]
fn a_lock_that_was_handed_on_since_closes_no_circle() {
    let mut scene = three_threads();
    scene.cpu(1, 200);
    mutex(
        scene.wait(2, Cause::LockFutex, 300, By::Thread(1, UNLOCK)),
        0xb,
        101,
    );
    mutex(scene.wait(0, Cause::LockFutex, 900, By::Interrupt), 0xb, 101);
    mutex(scene.wait(1, Cause::LockFutex, 900, By::Interrupt), 0xa, 100);
    let run = killed(scene);
    assert_eq!((circle(&run, 0), circle(&run, 1)), (None, None));
}

#[test]
fn a_circle_that_a_time_limit_broke_was_one() {
    let mut scene = three_threads();
    mutex(scene.wait(0, Cause::LockFutex, 600, By::Interrupt), 0xb, 101);
    scene.cpu(0, 100);
    mutex(
        scene.wait(1, Cause::LockFutex, 700, By::Thread(0, UNLOCK)),
        0xa,
        100,
    );
    let run = killed(scene);
    assert_eq!(circle(&run, 0), Some(vec![100, 101, 100]));
}

#[test]
fn who_was_killed_with_the_waiter_is_still_its_owner() {
    let mut scene = three_threads();
    scene.wait(1, Cause::DiskSync, 900, By::Interrupt);
    scene.cpu(1, 1);
    scene.end(1);
    let wait = scene.wait(0, Cause::LockFutex, 901, By::Thread(1, exiting()));
    mutex(wait, 0xb, 101);
    scene.end(2);
    scene.end(0);
    let run = scene.attributed();
    let holder = &row(&run, 0, Cause::LockFutex).holders[0];
    assert_eq!(
        (holder.name.tid, holder.how_known, holder.doing),
        (101, HowKnown::MutexOwner, Some(Cause::DiskSync))
    );
}

/// Makes a wait one for a runtime's lock, which this thread was seen to have at these instants.
fn monitor(wait: &mut Wait, class: &str, owner: u32, seen: (Ns, Ns)) {
    wait.call = Call {
        number: 202,
        args: [0xf00, PRIVATE, 0, 0],
    };
    wait.holder = Some(LockHolder::Runtime(RuntimeLock {
        kind: RuntimeLockKind::Monitor,
        class: class.to_owned(),
        identity: 1,
        owner: Some(owner),
        source: RuntimeLockSource::Structures,
        seen,
    }));
}

/// Whether two threads that were left waiting for each other's monitors, seen so at these instants, count as a circle.
fn monitors_seen(one: (Ns, Ns), other: (Ns, Ns)) -> bool {
    let mut scene = three_threads();
    scene.end(2);
    for (id, class, owner, seen) in [(1, "Till", 100, one), (0, "Safe", 101, other)] {
        scene.left_waiting(id, Cause::LockFutex, 900, |wait| {
            monitor(wait, class, owner, seen)
        });
    }
    row(&scene.attributed(), 0, Cause::LockMonitor).deadlock
}

#[test]
fn owners_that_a_runtime_told_at_different_times_prove_no_circle() {
    assert!(monitors_seen((300, 310), (300, 310)), "by one look");
    assert!(
        monitors_seen((200, 310), (300, 410)),
        "by looks that have one in common"
    );
    // Each may have let go of the lock before it began to wait for the other.
    assert!(!monitors_seen((200, 210), (300, 310)));
}
