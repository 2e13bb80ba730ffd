//! Chains that lead through processes of several threads, of which descriptors name only the process.

use super::scene::{By, Scene, WRITE, row, waits_for_mutex_of};
use holdup_evidence::{
    Adopted, Cause, DeviceNumber, Event, LockHolder, LockOwner, Ns, Object, ObjectId, ObjectKind, OtherEnd,
    PolledFd, Role, SocketAddress, ThreadId, Wait, WaitMemory,
};
use holdup_model::attributed::{Attributed, Link};

const MS: Ns = 1_000_000;
const END: Ns = 1000 * MS;

/// What the client waits for, and what the server does: one of them leads back to the client.
const TO_SERVER: ObjectId = ObjectId(7);
const TO_CLIENT: ObjectId = ObjectId(8);
const TO_BACKEND: ObjectId = ObjectId(9);

/// CMD is thread 0 of process 100. A server (process 101, threads 1 and up to 4) and a backend (process 105, thread 5) are watched
/// beside it.
fn scene(workers: u32) -> Scene {
    let mut scene = Scene::new("client");
    scene.process(1, 0, "server");
    for worker in 2..2 + workers {
        scene.thread(worker, 1, "worker");
    }
    scene.process(5, 0, "backend");
    for event in &mut scene.events {
        if let Event::Start(start) = event
            && start.thread != ThreadId(0)
        {
            start.parent = None;
            start.role = Role::Neighbour;
        }
    }
    for (object, process) in [(TO_SERVER, 101), (TO_CLIENT, 100), (TO_BACKEND, 105)] {
        scene.events.push(Event::OtherEnd(OtherEnd {
            object,
            processes: vec![process],
            listens: false,
        }));
    }
    scene
}

fn polls(objects: &[ObjectId]) -> impl FnOnce(&mut Wait) + use<> {
    let polled = objects.iter().map(|object| PolledFd {
        fd: 3,
        events: 1,
        revents: 0,
        object: Some(*object),
        own: false,
    });
    let asked = WaitMemory {
        polled: polled.collect(),
        ..WaitMemory::empty(ThreadId(0), 1)
    };
    move |wait| wait.asked = Some(Box::new(asked))
}

fn chain(run: &Attributed) -> Vec<(u32, Cause)> {
    let row = row(run, 0, Cause::NetReceive);
    let look_up = |link: &Link| (link.name.tid, link.cause);
    row.chain.iter().map(look_up).collect()
}

/// The client's wait is reported first: what the others do is known later.
fn client_waits(scene: &mut Scene) {
    scene.left_waiting(0, Cause::NetReceive, END, |wait| wait.object = Some(TO_SERVER));
}

#[test]
fn the_thread_that_waits_for_somebody_outside_is_followed_and_not_back_to_who_asked() {
    let mut scene = scene(3);
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::Idle, END, |_| {});
    scene.left_waiting(2, Cause::LockFutex, END, |_| {});
    scene.left_waiting(3, Cause::NetReceive, END, polls(&[TO_CLIENT, TO_BACKEND]));
    scene.left_waiting(4, Cause::DeviceWait, END, |_| {});
    scene.left_waiting(5, Cause::ProcessStopped, END, |_| {});
    let run = scene.attributed();
    assert_eq!(
        chain(&run),
        [
            (100, Cause::NetReceive),
            (103, Cause::NetReceive),
            (105, Cause::ProcessStopped)
        ]
    );
    let holder = &row(&run, 0, Cause::NetReceive).holders[0];
    assert_eq!((holder.name.pid, holder.doing), (101, Some(Cause::NetReceive)));
}

#[test]
fn threads_that_wait_for_a_lock_lead_to_who_has_it() {
    let mut scene = scene(3);
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::NetAccept, END, |_| {});
    scene.left_waiting(2, Cause::LockFutex, END, |wait| waits_for_mutex_of(wait, 104));
    scene.left_waiting(3, Cause::LockFutex, END, |wait| waits_for_mutex_of(wait, 104));
    scene.left_waiting(4, Cause::TimerSleep, END, |_| {});
    let run = scene.attributed();
    assert_eq!(chain(&run), [(100, Cause::NetReceive), (104, Cause::TimerSleep)]);
}

/// A session's own connection: who has opened it is at a port of the kernel's choice, or has no path.
const OF_SESSION: ObjectId = ObjectId(10);

fn session(local: SocketAddress, peer: SocketAddress) -> Event {
    let object = Object {
        kind: ObjectKind::Socket {
            family: 2,
            kind: 1,
            protocol: 0,
            state: 1,
            local,
            peer,
            peer_pid: None,
        },
        path: None,
        inode: 10,
        device: DeviceNumber::default(),
        file_system: "sockfs".into(),
    };
    Event::Object {
        id: OF_SESSION,
        object,
    }
}

#[test]
fn a_session_that_rests_before_its_own_client_has_nobody_elses_request() {
    let inet = |text: &str| SocketAddress::Inet(text.parse().unwrap());
    let unix = |path: &str| SocketAddress::Unix(path.to_owned());
    // (its own end, the other end, what it looks like, whether it rests)
    for (own, other, cause, rests) in [
        (unix("/run/db.sock"), unix(""), Cause::IpcUnix, true),
        (
            inet("10.0.0.1:3306"),
            inet("10.0.0.2:43210"),
            Cause::NetReceive,
            true,
        ),
        // It has asked somebody else.
        (
            inet("10.0.0.1:43210"),
            inet("10.0.0.2:3306"),
            Cause::NetReceive,
            false,
        ),
        (unix(""), unix("/run/other.sock"), Cause::IpcUnix, false),
    ] {
        let mut scene = scene(3);
        scene.events.push(session(own, other));
        client_waits(&mut scene);
        scene.left_waiting(1, Cause::NetAccept, END, |_| {});
        scene.left_waiting(2, Cause::LockFutex, END, |_| {});
        scene.left_waiting(3, cause, END, polls(&[OF_SESSION]));
        scene.left_waiting(4, Cause::Idle, END, |_| {});
        let ends = chain(&scene.attributed());
        let end = if rests {
            (102, Cause::LockFutex)
        } else {
            (103, cause)
        };
        assert_eq!(ends.last(), Some(&end), "{ends:?}");
    }
}

#[test]
fn a_session_that_rests_is_all_there_is_where_nobody_else_does_anything() {
    let mut scene = scene(1);
    scene.events.push(session(
        SocketAddress::Unix("/run/db.sock".to_owned()),
        SocketAddress::Unix(String::new()),
    ));
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::NetAccept, END, |_| {});
    scene.left_waiting(2, Cause::IpcUnix, END, polls(&[OF_SESSION]));
    let ends = chain(&scene.attributed());
    assert_eq!(ends.last(), Some(&(102, Cause::IpcUnix)), "{ends:?}");
}

#[test]
fn sessions_whose_lock_another_process_has_lead_to_that() {
    let mut scene = scene(3);
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::NetAccept, END, |_| {});
    for session in [2, 3] {
        scene.left_waiting(session, Cause::LockFutex, END, |wait| {
            wait.holder = Some(LockHolder::Session(LockOwner { pid: 105, tid: 105 }));
        });
    }
    scene.left_waiting(4, Cause::Idle, END, |_| {});
    scene.left_waiting(5, Cause::ProcessStopped, END, |_| {});
    let ends = chain(&scene.attributed());
    assert_eq!(ends.last(), Some(&(105, Cause::ProcessStopped)), "{ends:?}");
    assert_eq!(ends.len(), 3, "{ends:?}");
}

#[test]
fn where_several_may_be_meant_nobody_is_picked() {
    let mut scene = scene(3);
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::Idle, END, |_| {});
    // One has the request, and who has its lock is not known; the other does something now and then.
    scene.left_waiting(2, Cause::LockFutex, END, |_| {});
    scene.left_waiting(3, Cause::TimerSleep, END, |_| {});
    scene.left_waiting(4, Cause::Idle, END, |_| {});
    let run = scene.attributed();
    let ends = chain(&run);
    let picked = |one: &(u32, Cause)| matches!(one.1, Cause::TimerSleep | Cause::LockFutex);
    assert!(!ends.iter().any(picked), "{ends:?}");
}

/// A server with a thread for each connection, and one that does its rounds: `begins`: when, after the client, the two begin what they do.
fn served_since(begins: [Ns; 2]) -> Vec<(u32, Cause)> {
    let mut scene = scene(3);
    scene.cpu(0, 100 * MS);
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::Idle, END, |_| {});
    for (thread, begins) in [2, 3].into_iter().zip(begins) {
        scene.cpu(thread, 100 * MS + begins);
        scene.left_waiting(thread, Cause::TimerSleep, END, |_| {});
    }
    scene.left_waiting(4, Cause::LockFutex, END, |_| {});
    chain(&scene.attributed())
}

#[test]
fn of_several_the_one_that_began_to_sleep_as_the_request_came_has_it() {
    let has = |thread: u32| [(100, Cause::NetReceive), (thread, Cause::TimerSleep)];
    assert_eq!(served_since([MS / 4, 400 * MS]), has(102));
    assert_eq!(served_since([300 * MS, MS / 4]), has(103));
    assert_eq!(served_since([200 * MS, 30 * MS]), has(103), "a busy machine");
    let long_after = served_since([300 * MS, 400 * MS]);
    assert!(!long_after.contains(&(102, Cause::TimerSleep)), "{long_after:?}");
}

#[test]
fn of_a_process_of_which_several_may_have_the_request_it_is_said_how_many() {
    let mut scene = scene(3);
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::Idle, END, |_| {});
    scene.left_waiting(2, Cause::NetReceive, END, |_| {});
    scene.left_waiting(3, Cause::DiskRead, END, |_| {});
    // A worker without work, which stood so before.
    scene.left_waiting(4, Cause::LockFutex, END, |_| {});
    let run = scene.attributed();
    let holder = &row(&run, 0, Cause::NetReceive).holders[0];
    assert_eq!((holder.doing, holder.others_busy), (Some(Cause::Idle), 2));
}

/// The kernel notes which process has locked a file, and none of its threads.
fn waits_for_file_of(wait: &mut Wait, pid: u32) {
    wait.holder = Some(LockHolder::FileLock { pid });
}

fn chain_for_file(run: &Attributed) -> Vec<(u32, Cause)> {
    let row = row(run, 0, Cause::LockFile);
    row.chain.iter().map(|link| (link.name.tid, link.cause)).collect()
}

#[test]
fn a_file_lock_leads_to_the_thread_of_its_process_that_waits_for_something_else() {
    let mut scene = scene(3);
    scene.left_waiting(0, Cause::LockFile, END, |wait| waits_for_file_of(wait, 101));
    scene.left_waiting(1, Cause::NetAccept, END, |_| {});
    // Two more threads of the process that has it want it, too.
    for id in [2, 3] {
        scene.left_waiting(id, Cause::LockFile, END, |wait| waits_for_file_of(wait, 101));
    }
    scene.left_waiting(4, Cause::NetReceive, END, |wait| wait.object = Some(TO_BACKEND));
    scene.left_waiting(5, Cause::DiskSync, END, |_| {});
    let run = scene.attributed();
    assert_eq!(
        chain_for_file(&run),
        [
            (100, Cause::LockFile),
            (104, Cause::NetReceive),
            (105, Cause::DiskSync)
        ]
    );
    let holder = &row(&run, 0, Cause::LockFile).holders[0];
    assert_eq!((holder.name.pid, holder.doing), (101, Some(Cause::NetReceive)));
}

#[test]
fn a_file_lock_of_a_process_all_of_whose_threads_rest_leads_to_none_of_them() {
    let mut scene = scene(2);
    scene.left_waiting(0, Cause::LockFile, END, |wait| waits_for_file_of(wait, 101));
    for id in [1, 2, 3] {
        scene.left_waiting(id, Cause::Idle, END, |_| {});
    }
    let run = scene.attributed();
    let links = chain_for_file(&run);
    assert!(
        links
            .iter()
            .all(|(_, cause)| matches!(cause, Cause::LockFile | Cause::Idle)),
        "{links:?}"
    );
    assert_eq!(row(&run, 0, Cause::LockFile).holders[0].doing, Some(Cause::Idle));
}

#[test]
fn a_semaphore_leads_to_the_thread_at_work_of_who_took_it_last() {
    let mut scene = scene(2);
    scene.left_waiting(0, Cause::LockSysv, END, |wait| {
        wait.holder = Some(LockHolder::Semaphore { pid: 101 });
    });
    scene.left_waiting(1, Cause::NetAccept, END, |_| {});
    scene.left_waiting(2, Cause::DiskSync, END, |_| {});
    scene.left_waiting(3, Cause::Idle, END, |_| {});
    let run = scene.attributed();
    assert_eq!(
        row(&run, 0, Cause::LockSysv).holders[0].doing,
        Some(Cause::DiskSync)
    );
}

#[test]
fn a_parent_that_has_the_other_end_of_a_pair_is_not_whom_its_worker_waits_for() {
    const TO_PARENT: ObjectId = ObjectId(10);
    let mut scene = scene(0);
    scene.process(6, 0, "master");
    for event in &mut scene.events {
        match event {
            Event::Start(start) if start.thread == ThreadId(6) => {
                (start.parent, start.role) = (None, Role::Neighbour);
            }
            Event::Start(start) if start.thread == ThreadId(1) => {
                start.adopted = Some(Adopted {
                    process: "server".to_owned(),
                    parent: 106,
                });
            }
            _ => {}
        }
    }
    scene.events.push(Event::OtherEnd(OtherEnd {
        object: TO_PARENT,
        processes: vec![106],
        listens: false,
    }));
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::PollWait, END, polls(&[TO_PARENT, TO_BACKEND]));
    scene.left_waiting(5, Cause::DiskSync, END, |_| {});
    scene.left_waiting(6, Cause::IpcSignal, END, |_| {});
    let run = scene.attributed();
    assert_eq!(
        chain(&run).last(),
        Some(&(105, Cause::DiskSync)),
        "{:?}",
        chain(&run)
    );
}

#[test]
fn two_that_wait_for_each_others_answers_end_the_chain() {
    let mut scene = scene(0);
    client_waits(&mut scene);
    scene.left_waiting(1, Cause::NetReceive, END, polls(&[TO_CLIENT]));
    let run = scene.attributed();
    assert!(chain(&run).len() <= 3, "{:?}", chain(&run));
}

#[test]
fn what_somebody_further_on_did_longer_than_the_wait_is_known_at_the_end() {
    let mut scene = scene(0);
    // The client gives up each 300 ms, while the server waits for its backend all the time.
    for round in 1..=3 {
        let wait = scene.wait(0, Cause::NetReceive, round * 300 * MS, By::Interrupt);
        wait.object = Some(TO_SERVER);
    }
    scene.wait(5, Cause::DiskSync, 950 * MS, By::Interrupt);
    let wait = scene.wait(1, Cause::NetReceive, 950 * MS, By::Thread(5, WRITE));
    wait.object = Some(TO_BACKEND);
    scene.cpu(0, 100 * MS);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(
        chain(&run),
        [
            (100, Cause::NetReceive),
            (101, Cause::NetReceive),
            (105, Cause::DiskSync)
        ]
    );
}
