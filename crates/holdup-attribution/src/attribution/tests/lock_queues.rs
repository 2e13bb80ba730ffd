//! Queues for locks that the path goes around.

use super::scene::{By, ENDS, Scene, WRITE, path, row, waits_for_mutex_of};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;

const MS: Ns = 1_000_000;

/// The futex of a lock, of an interpreter's lock, and of the ends of threads.
const LOCK: u64 = 7;
const GLOBAL: u64 = 8;
const END_OF: u64 = 100;

/// A wait for one futex, until another thread ends it.
fn waits(scene: &mut Scene, id: u32, futex: u64, until: Ns, by: u32) {
    scene
        .wait(id, Cause::LockFutex, until, By::Thread(by, WRITE))
        .call
        .args[0] = futex;
}

/// The same for the lock, whose word names its owner.
fn queues(scene: &mut Scene, id: u32, until: Ns, by: u32) {
    let wait = scene.wait(id, Cause::LockFutex, until, By::Thread(by, WRITE));
    waits_for_mutex_of(wait, 100 + by);
    wait.call.args[0] = LOCK;
}

/// What the waits for a futex cost, all together.
fn cost(run: &Attributed, futex: u64) -> Ns {
    let name = futex.to_string();
    let rows = run.waits.iter().filter(|row| row.resource.name == name);
    rows.map(|row| row.cost_ns()).sum()
}

/// Whoever was given the lock waits next, for a moment, for what the same thread has: there the walk backwards leaves it.
#[test]
fn a_lock_that_the_path_goes_around_costs_what_its_queue_was() {
    let mut scene = Scene::new("python3");
    scene.cpu(0, 10 * MS);
    scene.thread(1, 0, "python3");
    scene.wait(1, Cause::TimerSleep, 2000 * MS, By::Interrupt);
    scene.cpu(0, 10 * MS);
    queues(&mut scene, 0, 2000 * MS, 1);
    scene.cpu(1, MS);
    waits(&mut scene, 0, GLOBAL, 2001 * MS, 1);
    scene.cpu(0, 9 * MS);
    scene.end(1);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(
        path(&run),
        [(Cause::CpuUser, 20 * MS), (Cause::TimerSleep, 1990 * MS)]
    );
    assert_eq!(cost(&run, LOCK), 1980 * MS);
}

/// Four threads one after the other: what their waits have in common counts once, and the table has only what the path is.
#[test]
fn waits_of_several_for_one_lock_count_once() {
    let mut scene = Scene::new("python3");
    for thread in 1..=4 {
        scene.thread(thread, 0, "python3");
    }
    for thread in 1..=4 {
        let (begins, ends) = (Ns::from(thread - 1) * 500 * MS, Ns::from(thread) * 500 * MS);
        if begins > 0 {
            queues(&mut scene, thread, begins, thread - 1);
            scene.cpu(thread - 1, MS);
            // The one before goes on for a moment.
            waits(&mut scene, thread, GLOBAL, begins + MS, thread - 1);
        }
        scene.wait(thread, Cause::TimerSleep, ends, By::Interrupt);
    }
    for thread in 1..=4 {
        let ends = Ns::from(thread) * 500 * MS + MS;
        if thread == 4 {
            scene.cpu(4, MS);
        }
        scene
            .wait(0, Cause::LockFutex, ends, By::Thread(thread, ENDS))
            .call
            .args[0] = END_OF + u64::from(thread);
        scene.end(thread);
    }
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(run.elapsed, 2001 * MS);
    let slept: Ns = path(&run)
        .iter()
        .filter(|(cause, _)| *cause == Cause::TimerSleep)
        .map(|(_, ns)| ns)
        .sum();
    assert_eq!(slept, 1997 * MS);
    assert_eq!(
        cost(&run, LOCK),
        1500 * MS,
        "0.5 s, 1 s and 1.5 s from the same instant on"
    );
}

/// The run would take as long without that thread: its wait for the lock costs nothing.
#[test]
fn a_thread_that_nothing_depends_on_stands_in_no_queue() {
    let mut scene = Scene::new("server");
    scene.thread(1, 0, "logger");
    scene.cpu(0, 2000 * MS);
    queues(&mut scene, 1, 2000 * MS, 0);
    scene.cpu(0, 100 * MS);
    scene.cpu(1, 10 * MS);
    scene.end(1);
    scene.end(0);
    assert_eq!(cost(&scene.attributed(), LOCK), 0);
    // Main waits for its end.
    let mut scene = Scene::new("server");
    scene.thread(1, 0, "logger");
    scene.cpu(0, 2000 * MS);
    queues(&mut scene, 1, 2000 * MS, 0);
    scene.cpu(1, 10 * MS);
    scene.cpu(0, 5 * MS);
    scene
        .wait(0, Cause::LockFutex, 2010 * MS, By::Thread(1, ENDS))
        .call
        .args[0] = END_OF;
    scene.end(1);
    scene.cpu(0, MS);
    scene.end(0);
    assert_eq!(cost(&scene.attributed(), LOCK), 2000 * MS);
}

/// A thread that the run needed at first waits for the logger afterwards, and nobody for that one any more.
#[test]
fn a_thread_that_somebody_with_time_to_spare_waits_for_stands_in_no_queue() {
    let mut scene = Scene::new("server");
    scene.thread(1, 0, "logger");
    scene.thread(2, 0, "loader");
    scene.cpu(2, 100 * MS);
    waits(&mut scene, 0, GLOBAL, 100 * MS, 2);
    scene.cpu(0, 1900 * MS);
    queues(&mut scene, 1, 2000 * MS, 0);
    scene.cpu(1, 10 * MS);
    waits(&mut scene, 2, END_OF + 1, 2010 * MS, 1);
    scene.end(1);
    scene.end(2);
    scene.cpu(0, 100 * MS);
    scene.end(0);
    assert_eq!(cost(&scene.attributed(), LOCK), 0);
}

/// Threads of a pool that wait for what the main thread puts in do not wait for a lock, as nobody who waits there lets it go.
#[test]
fn who_is_woken_from_outside_a_queue_stands_in_none() {
    let mut scene = Scene::new("pool");
    scene.thread(1, 0, "worker");
    scene.thread(2, 0, "worker");
    scene.wait(0, Cause::TimerSleep, 1000 * MS, By::Interrupt);
    waits(&mut scene, 1, LOCK, 1000 * MS, 0);
    waits(&mut scene, 2, LOCK, 1000 * MS, 0);
    for thread in [1, 2] {
        scene.cpu(thread, MS);
    }
    scene
        .wait(0, Cause::LockFutex, 1001 * MS, By::Thread(2, ENDS))
        .call
        .args[0] = END_OF;
    scene.end(1);
    scene.end(2);
    scene.cpu(0, 99 * MS);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(row(&run, 1, Cause::LockFutex).cost_ns(), 0);
}

/// A wait for a monitor of Java's is many waits with time limits, which nobody ends.
#[test]
fn a_lock_whose_owner_is_on_the_path_costs_what_that_did_meanwhile_at_least() {
    let mut scene = Scene::new("java");
    scene.thread(1, 0, "java");
    scene.wait(1, Cause::TimerSleep, 1000 * MS, By::Interrupt);
    for look in 1..=3 {
        let wait = scene.wait(0, Cause::LockFutex, look * 300 * MS, By::Interrupt);
        waits_for_mutex_of(wait, 101);
        wait.call.args[0] = LOCK;
    }
    waits(&mut scene, 0, GLOBAL, 1000 * MS, 1);
    scene.cpu(0, 10 * MS);
    scene.end(1);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(run.elapsed, 1010 * MS);
    assert_eq!(cost(&run, LOCK), 900 * MS);
}
