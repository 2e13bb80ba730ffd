//! The end of a process with many threads: written by hand.

use super::scene::{By, Scene, WRITE, exiting, path};
use holdup_evidence::{Call, Cause, Ns};

/// `main` reads from a pipe for 200 and ends the process. The first thread sleeps twice; `awake`: its second sleep is over just
/// before, and it queues for a CPU until it is killed. A third thread sleeps until it is killed.
fn killed(awake: bool, call: Call) -> Scene {
    let mut scene = Scene::new("java");
    scene.cpu(0, 10);
    scene.thread(1, 0, "main");
    scene.thread(2, 0, "worker");
    scene.wait(0, Cause::TimerSleep, 100, By::Interrupt);
    scene.wait(1, Cause::IpcPipe, 210, By::Outside(900, "feeder"));
    if awake {
        scene.wait(0, Cause::TimerSleep, 215, By::Interrupt);
        scene.queue(0, 25);
    }
    scene.cpu(1, 10);
    scene.wait(2, Cause::LockFutex, 220, By::Thread(1, call));
    if !awake {
        scene.wait(0, Cause::TimerSleep, 220, By::Thread(1, call));
        scene.queue(0, 20);
    }
    scene.cpu(1, 2);
    scene.end(1);
    scene.cpu(2, 5);
    scene.end(2);
    scene.cpu(0, 3);
    scene.end(0);
    scene
}

fn sorted(mut found: Vec<(Cause, Ns)>) -> Vec<(Cause, Ns)> {
    found.retain(|(_, ns)| *ns > 0);
    found.sort();
    found
}

#[test]
fn the_path_leads_to_who_ended_the_process_whoever_ends_last() {
    let expected = sorted(vec![
        (Cause::IpcPipe, 200),
        (Cause::CpuUser, 23),
        (Cause::SchedRunqueue, 20),
    ]);
    for awake in [false, true] {
        let found = path(&killed(awake, exiting()).attributed());
        assert_eq!(sorted(found), expected, "awake: {awake}");
    }
}

#[test]
fn a_wait_that_goes_on_when_the_process_is_ended_has_the_rest_of_it() {
    let mut scene = Scene::new("java");
    scene.cpu(0, 10);
    scene.thread(1, 0, "main");
    scene.thread(2, 0, "worker");
    scene.wait(1, Cause::IpcPipe, 210, By::Outside(900, "feeder"));
    scene.wait(2, Cause::LockFutex, 210, By::Thread(1, exiting()));
    scene.end(1);
    scene.end(2);
    // Not to be killed before its disk has answered.
    scene.wait(0, Cause::DiskWrite, 300, By::Interrupt);
    scene.end(0);
    let expected = sorted(vec![
        (Cause::CpuUser, 10),
        (Cause::IpcPipe, 200),
        (Cause::DiskWrite, 90),
    ]);
    assert_eq!(sorted(path(&scene.attributed())), expected);
}

#[test]
fn who_wakes_another_otherwise_does_not_end_it() {
    // The last thread's own timer is then what the run's end waited for.
    let found = path(&killed(true, WRITE).attributed());
    assert!(found.contains(&(Cause::TimerSleep, 205)), "{found:?}");
}

/// `main` reads for 200, and then waits for a thread of its own, which sleeps twice: until 205, and has the CPU from `runs` on.
fn stopped(runs: Ns) -> Vec<(Cause, Ns)> {
    let mut scene = Scene::new("java");
    scene.cpu(0, 10);
    scene.thread(1, 0, "timer");
    scene.wait(1, Cause::TimerSleep, 100, By::Interrupt);
    scene.wait(1, Cause::TimerSleep, 205, By::Interrupt);
    scene.wait(0, Cause::IpcPipe, 210, By::Outside(900, "feeder"));
    scene.cpu(0, 5);
    scene.queue(1, runs - 205);
    scene.cpu(1, 245 - runs);
    let wait = scene.wait(0, Cause::LockFutex, 245, By::Thread(1, WRITE));
    wait.call = Call::named("futex");
    scene.cpu(0, 5);
    scene.end(1);
    scene.end(0);
    sorted(path(&scene.attributed()))
}

#[test]
fn who_was_about_to_run_because_of_the_time_was_told_to_stop_afterwards() {
    let expected = [
        (Cause::CpuUser, 25),
        (Cause::SchedRunqueue, 25),
        (Cause::IpcPipe, 200),
    ];
    assert_eq!(stopped(240), sorted(expected.to_vec()));
    // Who ran before the other waited may have been at work for it.
    let worked = [
        (Cause::CpuUser, 10 + 35 + 5),
        (Cause::SchedRunqueue, 5),
        (Cause::TimerSleep, 195),
    ];
    assert_eq!(stopped(210), sorted(worked.to_vec()));
}

/// `timeout` waits for a signal until its timer expires at 1000, and wakes its child by `call`, which is in `waited`.
fn ended_by_timeout(waited: &str, call: Call) -> Vec<(Cause, Ns)> {
    let mut scene = Scene::new("timeout");
    scene.process(1, 0, "curl");
    scene.wait(0, Cause::IpcSignal, 1000, By::Interrupt);
    scene.cpu(0, 5);
    scene.wait(1, Cause::Unknown, 1005, By::Thread(0, call)).call = Call::named(waited);
    scene.cpu(1, 5);
    scene.wait(0, Cause::IpcSignal, 1010, By::Thread(1, exiting()));
    scene.end(1);
    scene.end(0);
    path(&scene.attributed())
}

#[test]
fn what_a_signal_broke_off_stays_on_the_way() {
    let stays = |waited, call| ended_by_timeout(waited, call).iter().any(|(_, ns)| *ns == 1005);
    for waited in ["poll", "recvfrom", "clock_nanosleep", "futex"] {
        assert!(stays(waited, Call::named("kill")), "{waited}");
        assert!(!stays(waited, WRITE), "{waited}: it got what it waited for");
    }
    // Who waits for a signal gets what it waits for; a set of epoll may have a descriptor for signals.
    assert!(!stays("rt_sigsuspend", Call::named("kill")));
    assert!(!stays("epoll_wait", Call::named("kill")));
}
