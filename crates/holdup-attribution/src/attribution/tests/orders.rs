//! Processes and threads of a service that wait for a word from each other, and those that wait for a child of theirs.

use super::scene::Scene;
use crate::attribution::Attribution;
use holdup_evidence::{
    Adopted, Call, Cause, Event, Finish, GoesOn, Ns, Object, ObjectId, ObjectKind, OtherEnd, PolledFd,
    Serving, SocketAddress, ThreadId, Wait, WaitMemory,
};
use holdup_model::attributed::Attributed;

const PIPE: ObjectId = ObjectId(1);
const TOLD: ObjectId = ObjectId(2);
const CLIENT: ObjectId = ObjectId(3);
const BACKEND: ObjectId = ObjectId(4);
const LASTS: Ns = 50_000_000;

const READ: Call = Call {
    number: 0,
    args: [3, 0x1000, 1, 0],
};
const EPOLL_WAIT: Call = Call {
    number: 232,
    args: [5, 0x1000, 1, u64::MAX],
};

fn object(id: ObjectId, kind: ObjectKind) -> Event {
    let object = Object {
        kind,
        path: None,
        file_system: String::new(),
        device: Default::default(),
        inode: 1000 + u64::from(id.0),
    };
    Event::Object { id, object }
}

fn socket(local: &str, peer: &str) -> ObjectKind {
    ObjectKind::Socket {
        family: 2,
        kind: 1,
        protocol: 6,
        state: 1,
        local: SocketAddress::Inet(local.parse().unwrap()),
        peer: SocketAddress::Inet(peer.parse().unwrap()),
        peer_pid: None,
    }
}

/// A master (pid 100), its worker (101) and the worker's child (102); the master serves at port 80.
fn family(ends: &[u32]) -> Scene {
    let mut scene = Scene::new("master");
    scene.process(1, 0, "master");
    scene.process(2, 1, "tool");
    for event in &mut scene.events {
        let Event::Start(start) = event else { continue };
        start.parent = None;
        let parent = start.task.pid - 1;
        start.adopted = Some(Adopted {
            parent,
            process: start.task.name.clone(),
        });
    }
    scene.events.extend([
        Event::Serving(Serving {
            processes: vec![100, 101],
            addresses: vec![SocketAddress::Inet("10.0.0.1:80".parse().unwrap())],
            ..Serving::default()
        }),
        object(PIPE, ObjectKind::Pipe),
        object(TOLD, ObjectKind::Signalfd),
        object(CLIENT, socket("10.0.0.1:80", "10.0.0.9:4000")),
        object(BACKEND, socket("10.0.0.1:5000", "10.0.0.2:5432")),
    ]);
    if !ends.is_empty() {
        scene.events.push(Event::OtherEnd(OtherEnd {
            object: PIPE,
            processes: ends.to_vec(),
            listens: false,
        }));
    }
    scene
}

/// What the worker waited for.
fn waited(mut scene: Scene, cause: Cause, prepare: impl FnOnce(&mut Wait)) -> Cause {
    scene.left_waiting(1, cause, LASTS, prepare);
    let mut attribution = Attribution::of_threads();
    for event in &scene.events {
        attribution.push(event);
    }
    let finish = Finish {
        ended: LASTS,
        ..Finish::default()
    };
    let run: Attributed = attribution.finish(&finish, &scene.facts);
    let waits = run.waits.iter();
    let mut of_worker = waits.filter(|row| row.asker.name.tid == 101 && !row.cause.on_cpu());
    of_worker.next().map_or(Cause::Unknown, |row| row.cause)
}

fn reads(wait: &mut Wait) {
    wait.call = READ;
    wait.object = Some(PIPE);
}

#[test]
fn a_pipe_from_ones_parent_brings_orders_and_one_from_ones_child_its_output() {
    assert_eq!(waited(family(&[100]), Cause::IpcPipe, reads), Cause::Idle);
    assert_eq!(
        waited(family(&[100, 103]), Cause::IpcPipe, reads),
        Cause::Idle,
        "siblings have it, too"
    );
    assert_eq!(waited(family(&[102]), Cause::IpcPipe, reads), Cause::IpcPipe);
    assert_eq!(
        waited(family(&[100, 102]), Cause::IpcPipe, reads),
        Cause::IpcPipe,
        "the child may write"
    );
    assert_eq!(
        waited(family(&[]), Cause::IpcPipe, reads),
        Cause::IpcPipe,
        "nobody knows"
    );
}

/// The worker polls the pipe from its parent, and one from its child, which runs this program.
fn polls_both(program: &str) -> Cause {
    const FROM_CHILD: ObjectId = ObjectId(9);
    let mut scene = family(&[100]);
    for event in &mut scene.events {
        if let Event::Start(start) = event
            && start.task.pid == 102
        {
            program.clone_into(&mut start.task.name);
            start.adopted = Some(Adopted {
                parent: 101,
                process: program.to_owned(),
            });
        }
    }
    scene.events.extend([
        object(FROM_CHILD, ObjectKind::Pipe),
        Event::OtherEnd(OtherEnd {
            object: FROM_CHILD,
            processes: vec![102],
            listens: false,
        }),
    ]);
    waited(scene, Cause::IpcPipe, |wait| {
        wait.call = Call {
            number: 7,
            args: [0x1000, 2, u64::MAX, 0],
        };
        wait.object = Some(PIPE);
        let polled = [PIPE, FROM_CHILD].map(|object| PolledFd {
            fd: 3,
            events: 1,
            revents: 0,
            object: Some(object),
            own: false,
        });
        wait.asked = Some(Box::new(WaitMemory {
            polled: polled.to_vec(),
            ..WaitMemory::empty(wait.thread, wait.seq)
        }));
    })
}

#[test]
fn a_helper_that_has_forked_helpers_waits_for_orders_and_one_with_a_tool_for_its_output() {
    assert_eq!(polls_both("master"), Cause::Idle);
    assert_eq!(polls_both("tool"), Cause::IpcPipe);
}

/// The worker's poll is ended by a pipe from its child, which began this long after the poll.
fn stirred_by_child(born: Option<Ns>) -> Cause {
    let mut scene = family(&[102]);
    for event in &mut scene.events {
        if let Event::Start(start) = event
            && start.task.pid == 102
            && let Some(born) = born
        {
            (start.adopted, start.at) = (None, born);
        }
    }
    waited(scene, Cause::IpcPipe, |wait| {
        wait.call = EPOLL_WAIT;
        wait.object = Some(PIPE);
        wait.ready = Some(PIPE);
    })
}

#[test]
fn a_poll_that_a_later_child_ends_was_not_for_that_child() {
    assert_eq!(stirred_by_child(Some(LASTS / 4 * 3)), Cause::Idle);
    assert_eq!(
        stirred_by_child(Some(LASTS / 4)),
        Cause::IpcPipe,
        "most of it was for that"
    );
    assert_eq!(stirred_by_child(None), Cause::IpcPipe, "it was there all along");
}

#[test]
fn threads_of_a_server_tell_each_other_something_by_a_pipe_of_its_own() {
    assert_eq!(waited(family(&[101]), Cause::IpcPipe, reads), Cause::Idle);
    let elsewhere = waited(family(&[103]), Cause::IpcPipe, reads);
    assert_eq!(elsewhere, Cause::IpcPipe, "who has it is no relative");
}

#[test]
fn who_has_a_request_to_answer_waits_for_the_pipe() {
    let serves = |wait: &mut Wait| {
        reads(wait);
        wait.serves = true;
    };
    assert_eq!(waited(family(&[100]), Cause::IpcPipe, serves), Cause::IpcPipe);
}

fn set_of(members: &[(ObjectId, u16)], thread: ThreadId, seq: u32) -> WaitMemory {
    let polled = members.iter().map(|(object, events)| PolledFd {
        fd: 3,
        events: *events,
        revents: 0,
        object: Some(*object),
        own: false,
    });
    WaitMemory {
        polled: polled.collect(),
        ..WaitMemory::empty(thread, seq)
    }
}

/// The worker polls these, and its signals made it ready.
fn session(members: &'static [(ObjectId, u16)]) -> impl FnOnce(&mut Wait) {
    move |wait: &mut Wait| {
        wait.call = EPOLL_WAIT;
        wait.ready = Some(TOLD);
        wait.serves = true;
        wait.asked = Some(Box::new(set_of(members, wait.thread, wait.seq)));
    }
}

#[test]
fn a_session_that_listens_to_its_client_owes_it_nothing_whoever_tells_it_something() {
    let cause = |members| waited(family(&[100]), Cause::IpcQueue, session(members));
    assert_eq!(cause(&[(TOLD, 1), (PIPE, 1), (CLIENT, 1)]), Cause::Idle);
    assert_eq!(
        cause(&[(TOLD, 1), (PIPE, 1)]),
        Cause::IpcQueue,
        "a word that it needs first"
    );
    assert_eq!(
        cause(&[(TOLD, 1), (CLIENT, 1), (BACKEND, 1)]),
        Cause::IpcQueue,
        "somebody was asked"
    );
    assert_eq!(
        cause(&[(TOLD, 1), (CLIENT, 4)]),
        Cause::IpcQueue,
        "its answer is not out"
    );
}

#[test]
fn of_a_wait_that_its_set_ended_the_set_is_known_from_the_first_look() {
    const EPOLL: ObjectId = ObjectId(9);
    let cause = |members: &'static [(ObjectId, u16)], on: ObjectId| {
        let mut scene = family(&[100]);
        scene.events.push(Event::GoesOn(GoesOn {
            thread: ThreadId(1),
            start: 0,
            call: EPOLL_WAIT,
            set: Some((EPOLL, Box::new(set_of(members, ThreadId(1), 1)))),
        }));
        waited(scene, Cause::IpcQueue, move |wait| {
            wait.call = EPOLL_WAIT;
            wait.object = Some(on);
            wait.ready = Some(TOLD);
            wait.serves = true;
        })
    };
    let members = &[(TOLD, 1), (PIPE, 1), (CLIENT, 1)];
    assert_eq!(cause(members, EPOLL), Cause::Idle);
    assert_eq!(cause(members, ObjectId(10)), Cause::IpcQueue, "another set");
    assert_eq!(cause(&[(TOLD, 1), (PIPE, 1)], EPOLL), Cause::IpcQueue);
}

#[test]
fn a_session_that_waits_for_a_word_and_its_parents_end_waits_for_the_word() {
    let before = |wait: &mut Wait| {
        session(&[(TOLD, 1), (PIPE, 1)])(wait);
        wait.serves = false;
        wait.ready = None;
    };
    let cause = waited(family(&[100]), Cause::IpcQueue, before);
    assert_ne!(
        cause,
        Cause::Idle,
        "as for a row lock, for a request from before observation"
    );
}

#[test]
fn a_thread_that_joins_another_one_of_its_server_rests() {
    let joins = |tid: u64, flags: u64| {
        let mut scene = family(&[]);
        scene.thread(3, 1, "listener");
        scene.cpu(3, 100);
        scene.end(3);
        waited(scene, Cause::LockFutex, move |wait| {
            wait.call = Call {
                number: 202,
                args: [0x1990, 9 | flags, tid, 0],
            };
        })
    };
    const SHARED: u64 = 256;
    assert_eq!(joins(103, SHARED), Cause::Idle);
    assert_eq!(joins(77, SHARED), Cause::LockFutex, "nobody's id");
}
