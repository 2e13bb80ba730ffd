//! Pipes that stay open, signals that interrupt, and waits that only a user stack tells: written by hand.

use super::scene::{By, Scene, WRITE, exiting, path, row};
use holdup_evidence::{Call, Cause};
use holdup_model::attributed::HowKnown;

/// `close`.
const CLOSE: Call = Call {
    number: 3,
    args: [1, 0, 0, 0],
};
/// `kill`.
const KILL: Call = Call {
    number: 62,
    args: [0; 4],
};

/// A shell that reads what a subshell writes; the subshell starts another process, which sleeps until 1000.
fn substitution(subshell_ends: u64) -> Scene {
    let mut scene = Scene::new("bash");
    scene.process(1, 0, "bash");
    scene.process(2, 1, "bash");
    scene.exec(2, "daemon");
    scene.cpu(1, subshell_ends);
    if subshell_ends < 1000 {
        scene.end(1);
    }
    scene.wait(2, Cause::TimerSleep, 1000, By::Interrupt);
    scene
}

#[test]
fn a_pipe_is_held_open_from_when_the_creator_is_gone() {
    for (waking, held) in [(exiting(), 900), (CLOSE, 900), (WRITE, 0)] {
        let mut scene = substitution(100);
        scene.wait(0, Cause::IpcPipe, 1000, By::Thread(2, waking));
        scene.end(2);
        scene.end(0);
        let run = scene.attributed();
        let read = row(&run, 0, Cause::IpcPipe);
        assert_eq!(read.held_open_ns, held, "{waking:?}");
        assert_eq!(read.ns, 1000);
    }
}

#[test]
fn a_command_that_is_still_awaited_holds_nothing_open() {
    let mut scene = substitution(1000);
    scene.wait(0, Cause::IpcPipe, 1000, By::Thread(2, exiting()));
    scene.end(2);
    scene.end(1);
    scene.end(0);
    assert_eq!(row(&scene.attributed(), 0, Cause::IpcPipe).held_open_ns, 0);
    // A direct child of the reader is what it waits for.
    let mut scene = Scene::new("bash");
    scene.process(1, 0, "date");
    scene.cpu(1, 1000);
    scene.wait(0, Cause::IpcPipe, 1000, By::Thread(1, exiting()));
    scene.end(1);
    scene.end(0);
    assert_eq!(row(&scene.attributed(), 0, Cause::IpcPipe).held_open_ns, 0);
}

#[test]
fn whoever_interrupts_by_a_signal_is_not_in_the_way() {
    for (cause, waking, named) in [
        (Cause::ProcessChild, KILL, None),
        (Cause::IpcPipe, KILL, None),
        (Cause::NetReceive, KILL, None),
        (Cause::NetDns, KILL, None),
        (Cause::ProcessChild, exiting(), Some(HowKnown::Waker)),
        (Cause::IpcSignal, KILL, Some(HowKnown::Waker)),
    ] {
        let mut scene = Scene::new("timeout");
        scene.process(1, 0, "python3");
        scene.cpu(0, 500);
        scene.wait(1, cause, 500, By::Thread(0, waking));
        scene.end(1);
        scene.end(0);
        let run = scene.attributed();
        let holders = &row(&run, 1, cause).holders;
        assert_eq!(holders.first().map(|holder| holder.how_known), named, "{cause}");
    }
}

#[test]
fn whoever_ends_the_process_of_a_waiting_thread_is_not_its_peer() {
    for (cause, waking, named) in [
        (Cause::NetDns, exiting(), false),
        (Cause::IpcPipe, exiting(), false),
        (Cause::NetReceive, WRITE, true),
    ] {
        let mut scene = Scene::new("node");
        scene.thread(1, 0, "libuv-worker");
        scene.cpu(0, 500);
        scene.wait(1, cause, 500, By::Thread(0, waking));
        scene.end(1);
        scene.end(0);
        let run = scene.attributed();
        assert_eq!(!row(&run, 1, cause).holders.is_empty(), named, "{cause}");
    }
}

#[test]
fn a_wait_for_a_pipe_that_a_key_broke_off_was_for_who_wrote_there_before() {
    let mut scene = Scene::new("git");
    scene.process(1, 0, "remote-http");
    scene.cpu(1, 10);
    scene.wait(0, Cause::IpcPipe, 10, By::Thread(1, WRITE));
    scene.wait(0, Cause::IpcPipe, 1000, By::Interrupt);
    scene.wait(1, Cause::NetDns, 1001, By::Interrupt);
    scene.end(1);
    scene.end(0);
    let run = scene.attributed();
    let holder = &row(&run, 0, Cause::IpcPipe).holders[0];
    assert_eq!(
        (&*holder.name.process, holder.doing),
        ("remote-http", Some(Cause::NetDns))
    );
}

#[test]
fn a_user_stack_may_tell_another_cause_and_everything_still_adds_up() {
    let mut scene = Scene::new("python3");
    scene.wait(0, Cause::TimerSleep, 300, By::Interrupt);
    scene.asked(0, "take_gil", 300);
    scene.wait(0, Cause::TimerSleep, 600, By::Interrupt);
    scene.asked(0, "pause", 300);
    scene.wait(0, Cause::LockFutex, 650, By::Interrupt);
    scene.asked(0, "take_gil", 50);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(
        path(&run),
        [(Cause::TimerSleep, 300), (Cause::RuntimeInterpreter, 350)]
    );
    assert_eq!(run.threads[0].causes[&Cause::RuntimeInterpreter].ns, 350);
    assert_eq!(run.path[&Cause::RuntimeInterpreter].count, 2);
    assert_eq!(
        row(&run, 0, Cause::TimerSleep).asker.frame.as_deref(),
        Some("pause")
    );
}
