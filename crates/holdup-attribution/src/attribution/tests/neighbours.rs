//! A run beside which those are watched who are in its way: they are named and followed, and the path stays the run's.

use super::scene::{By, Scene, WRITE, path, row};
use holdup_evidence::{
    Cause, Event, LockHolder, LockOwner, ObjectId, OtherEnd, PolledFd, Role, ThreadId, WaitMemory,
};
use holdup_model::attributed::HowKnown;

/// CMD is thread 0, and thread 1 is of a server that was there before and is watched beside it.
fn with_server() -> Scene {
    let mut scene = Scene::new("client");
    scene.cpu(0, 100);
    scene.process(1, 0, "server");
    for event in &mut scene.events {
        if let Event::Start(start) = event
            && start.thread == ThreadId(1)
        {
            start.parent = None;
            start.role = Role::Neighbour;
        }
    }
    scene
}

#[test]
fn an_answer_of_a_neighbour_keeps_its_cause_on_the_path_and_names_what_the_neighbour_did() {
    let mut scene = with_server();
    scene.wait(1, Cause::DiskSync, 900, By::Interrupt);
    scene.wait(0, Cause::NetReceive, 900, By::Thread(1, WRITE)).object = Some(ObjectId(7));
    scene.cpu(0, 100);
    scene.end(0);
    let run = scene.attributed();
    assert!(path(&run).contains(&(Cause::NetReceive, 800)), "{:?}", path(&run));
    assert!(path(&run).iter().all(|(cause, _)| *cause != Cause::DiskSync));
    assert_eq!(run.threads.len(), 1, "the neighbour's time is nobody's answer");
    let waited = row(&run, 0, Cause::NetReceive);
    let holder = &waited.holders[0];
    assert_eq!((holder.name.pid, holder.doing), (101, Some(Cause::DiskSync)));
    let causes: Vec<Cause> = waited.chain.iter().map(|link| link.cause).collect();
    assert_eq!(causes, [Cause::NetReceive, Cause::DiskSync]);
}

#[test]
fn who_does_not_answer_within_a_time_limit_is_named() {
    let mut scene = with_server();
    scene.events.push(Event::OtherEnd(OtherEnd {
        object: ObjectId(7),
        processes: vec![101],
        listens: false,
    }));
    scene.left_waiting(1, Cause::TimerSleep, 1000, |_| {});
    scene.wait(0, Cause::NetReceive, 900, By::Interrupt).object = Some(ObjectId(7));
    scene.cpu(0, 100);
    scene.end(0);
    let run = scene.attributed();
    let holder = &row(&run, 0, Cause::NetReceive).holders[0];
    assert_eq!((holder.name.pid, holder.how_known), (101, HowKnown::SocketPeer));
}

/// A client of two workers, neither of which has accepted it, if `listens`.
fn of_two_workers(listens: bool, second: Cause) -> Scene {
    let mut scene = with_server();
    scene.process(2, 0, "server");
    scene.events.push(Event::OtherEnd(OtherEnd {
        object: ObjectId(7),
        processes: vec![101, 102],
        listens,
    }));
    scene.wait(1, Cause::Idle, 900, By::Interrupt);
    scene.wait(2, second, 900, By::Interrupt);
    scene.wait(0, Cause::NetReceive, 900, By::Interrupt).object = Some(ObjectId(7));
    scene.cpu(0, 100);
    scene.end(0);
    scene
}

#[test]
fn of_workers_none_of_which_is_free_the_one_that_works_longest_is_named() {
    let mut scene = with_server();
    scene.process(2, 0, "server");
    scene.events.push(Event::OtherEnd(OtherEnd {
        object: ObjectId(7),
        processes: vec![101, 102],
        listens: true,
    }));
    scene.wait(1, Cause::DiskRead, 500, By::Interrupt);
    scene.wait(2, Cause::DiskSync, 900, By::Interrupt);
    scene.wait(0, Cause::NetReceive, 900, By::Interrupt).object = Some(ObjectId(7));
    scene.cpu(0, 100);
    scene.end(0);
    let run = scene.attributed();
    let holder = &row(&run, 0, Cause::NetReceive).holders[0];
    assert_eq!((holder.name.pid, holder.doing), (102, Some(Cause::DiskSync)));
}

#[test]
fn of_several_that_have_an_end_nobody_is_named_where_one_is_free_or_the_connection_was_accepted() {
    for (listens, second) in [
        (true, Cause::DiskSync),
        (false, Cause::DiskSync),
        (true, Cause::Idle),
    ] {
        let run = of_two_workers(listens, second).attributed();
        assert!(
            row(&run, 0, Cause::NetReceive).holders.is_empty(),
            "{listens} {second:?}"
        );
    }
}

#[test]
fn all_that_have_an_end_of_a_polled_pipe_are_named_also_behind_a_set_of_epoll() {
    let mut scene = with_server();
    scene.process(2, 0, "sleep");
    scene.events.push(Event::OtherEnd(OtherEnd {
        object: ObjectId(8),
        processes: vec![101, 102],
        listens: false,
    }));
    let polled = |object, own| PolledFd {
        fd: 5,
        events: 1,
        revents: 0,
        object: Some(ObjectId(object)),
        own,
    };
    scene.left_waiting(0, Cause::IpcPipe, 900, |wait| {
        wait.object = Some(ObjectId(6));
        wait.asked = Some(Box::new(WaitMemory {
            polled: vec![polled(7, true), polled(8, false)],
            ..WaitMemory::empty(wait.thread, wait.seq)
        }));
    });
    let run = scene.attributed();
    let waited = row(&run, 0, Cause::IpcPipe);
    let mut ends: Vec<u32> = waited.holders.iter().map(|holder| holder.name.pid).collect();
    ends.sort_unstable();
    assert_eq!(ends, [101, 102]);
}

#[test]
fn the_end_of_a_sleep_has_nobody_in_its_way() {
    let mut scene = with_server();
    scene.events.push(Event::OtherEnd(OtherEnd {
        object: ObjectId(7),
        processes: vec![101],
        listens: false,
    }));
    scene.left_waiting(1, Cause::TimerSleep, 1000, |_| {});
    scene.wait(0, Cause::TimerSleep, 900, By::Interrupt).object = Some(ObjectId(7));
    scene.cpu(0, 100);
    scene.end(0);
    let run = scene.attributed();
    assert!(row(&run, 0, Cause::TimerSleep).holders.is_empty());
}

#[test]
fn a_session_waits_for_the_client_of_the_session_that_has_the_lock() {
    let mut scene = with_server();
    scene.left_waiting(1, Cause::TimerSleep, 1000, |_| {});
    scene.left_waiting(0, Cause::PollWait, 900, |wait| {
        wait.holder = Some(LockHolder::Session(LockOwner { pid: 101, tid: 101 }));
    });
    let run = scene.attributed();
    let waited = row(&run, 0, Cause::PollWait);
    let holder = &waited.holders[0];
    assert_eq!(
        (holder.name.pid, holder.how_known, holder.doing),
        (101, HowKnown::SessionLock, Some(Cause::TimerSleep))
    );
}
