//! Threads that wait for their turn at the next client, and threads that wait for a lock.

use super::scene::{By, Scene, WRITE, waits_for_mutex_of};
use holdup_evidence::{Cause, DeviceNumber, Event, Ns, Object, ObjectId, ObjectKind, Serving, SocketAddress};
use holdup_model::attributed::Attributed;

const LISTENER: ObjectId = ObjectId(1);
const LISTEN: u8 = 10;

/// A server at port 80 with two threads: the second waits for the mutex while the first, which has it, waits by `cause` and on the
/// listener or not. `serves`: whether the second has a request to answer.
fn two_threads(cause: Cause, on: Option<ObjectId>, serves: bool) -> Attributed {
    let address = || SocketAddress::Inet("10.0.0.1:80".parse().unwrap());
    let mut scene = Scene::new("server");
    scene.events.push(Event::Serving(Serving {
        processes: vec![100],
        masters: Vec::new(),
        loops: Vec::new(),
        addresses: vec![address()],
    }));
    let object = Object {
        kind: ObjectKind::Socket {
            family: 2,
            kind: 1,
            protocol: 6,
            state: LISTEN,
            local: address(),
            peer: SocketAddress::Inet("0.0.0.0:0".parse().unwrap()),
            peer_pid: None,
        },
        path: None,
        file_system: String::new(),
        device: DeviceNumber { major: 0, minor: 0 },
        inode: 1001,
    };
    scene.events.push(Event::Object { id: LISTENER, object });
    scene.thread(1, 0, "worker");
    scene.wait(0, cause, 100, By::Interrupt).object = on;
    let waiter = scene.wait(1, Cause::LockFutex, 100, By::Thread(0, WRITE));
    waits_for_mutex_of(waiter, 100);
    waiter.serves = serves;
    scene.end(1);
    scene.end(0);
    scene.attributed()
}

/// What the second thread waited for, and for how long.
fn waited(run: &Attributed) -> Vec<(Cause, Ns)> {
    let rows = run.waits.iter().filter(|row| row.asker.name.tid == 101);
    rows.map(|row| (row.cause, row.ns)).collect()
}

#[test]
fn who_waits_for_a_mutex_whose_owner_waits_for_the_next_client_waits_for_its_turn() {
    let run = two_threads(Cause::NetAccept, Some(LISTENER), false);
    assert_eq!(waited(&run), [(Cause::Idle, 100)]);
}

#[test]
fn a_request_that_is_to_be_answered_waits_for_the_mutex_whatever_its_owner_does() {
    let run = two_threads(Cause::NetAccept, Some(LISTENER), true);
    assert_eq!(waited(&run), [(Cause::LockFutex, 100)]);
}

#[test]
fn an_owner_that_waits_for_something_else_than_a_client_is_no_turn() {
    let run = two_threads(Cause::DiskRead, None, false);
    assert_eq!(waited(&run), [(Cause::LockFutex, 100)]);
}
