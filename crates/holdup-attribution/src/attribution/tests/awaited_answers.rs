//! Event loops with a request to answer, which have asked somebody else: what they wait for, and for how long.

use super::balances;
use super::scene::{By, Scene};
use crate::attribution::Attribution;
use holdup_evidence::{
    Call, Cause, DeviceNumber, Event, Finish, Ns, Object, ObjectId, ObjectKind, PolledFd, Serving,
    SocketAddress, ThreadId, Wait, WaitMemory,
};
use holdup_model::attributed::{Attributed, AttributedWait};

const MS: Ns = 1_000_000;
const TCP: u16 = 6;
const UDP: u16 = 17;
const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;

/// A client's connection, a connection that is being made, a socket on which names are asked for.
const CLIENT: ObjectId = ObjectId(1);
const CONNECTING: ObjectId = ObjectId(2);
const NAMES: ObjectId = ObjectId(3);
const CONNECTING_LATER: ObjectId = ObjectId(4);

fn socket(scene: &mut Scene, id: ObjectId, protocol: u16, state: u8, local: &str, peer: &str) {
    let object = Object {
        kind: ObjectKind::Socket {
            family: 2,
            kind: if protocol == TCP { 1 } else { 2 },
            protocol,
            state,
            local: SocketAddress::Inet(local.parse().unwrap()),
            peer: SocketAddress::Inet(peer.parse().unwrap()),
            peer_pid: None,
        },
        path: None,
        file_system: String::new(),
        device: DeviceNumber { major: 0, minor: 0 },
        inode: 1000 + u64::from(id.0),
    };
    scene.events.push(Event::Object { id, object });
}

/// A server on port 80.
fn server() -> Scene {
    let mut scene = Scene::new("server");
    scene.events.push(Event::Serving(Serving {
        processes: vec![100],
        masters: Vec::new(),
        loops: Vec::new(),
        addresses: vec![SocketAddress::Inet("10.0.0.1:80".parse().unwrap())],
    }));
    socket(
        &mut scene,
        CLIENT,
        TCP,
        ESTABLISHED,
        "10.0.0.1:80",
        "10.0.0.9:40000",
    );
    socket(
        &mut scene,
        CONNECTING,
        TCP,
        SYN_SENT,
        "10.0.0.1:41000",
        "192.0.2.2:5432",
    );
    socket(
        &mut scene,
        CONNECTING_LATER,
        TCP,
        SYN_SENT,
        "10.0.0.1:41001",
        "192.0.2.2:5432",
    );
    socket(
        &mut scene,
        NAMES,
        UDP,
        ESTABLISHED,
        "10.0.0.1:42000",
        "192.0.2.53:53",
    );
    scene
}

fn set(objects: &[(ObjectId, u16)]) -> Box<WaitMemory> {
    let polled = objects.iter().enumerate().map(|(fd, (object, events))| PolledFd {
        fd: fd as i32,
        events: *events,
        revents: 0,
        object: Some(*object),
        own: false,
    });
    Box::new(WaitMemory {
        polled: polled.collect(),
        ..WaitMemory::empty(ThreadId(0), 0)
    })
}

/// The loop's next wait: a client's request ends it after 20 ms. It has a request to answer.
fn round(scene: &mut Scene, at: Ns, prepare: impl FnOnce(&mut Wait)) {
    let wait = scene.wait(0, Cause::PollWait, at, By::Interrupt);
    wait.call = Call {
        number: 232,
        args: [5, 0, 16, 1000],
    };
    wait.serves = true;
    wait.ready = Some(CLIENT);
    prepare(wait);
}

fn attributed(scene: &mut Scene, ended: Ns) -> Attributed {
    scene.end(0);
    let mut attribution = Attribution::of_threads();
    for event in &scene.events {
        attribution.push(event);
    }
    let finish = Finish {
        ended,
        ..Finish::default()
    };
    let run = attribution.finish(&finish, &scene.facts);
    assert_eq!(balances(&run), Ok(()));
    run
}

fn row(run: &Attributed, cause: Cause) -> &AttributedWait {
    let rows: Vec<_> = run.waits.iter().filter(|row| row.cause == cause).collect();
    let [row] = rows[..] else {
        panic!("{cause:?}: {:?}", run.waits);
    };
    row
}

#[test]
fn a_connection_is_outstanding_for_as_long_as_it_is_made_whoever_stirs_the_loop() {
    let mut scene = server();
    for round_number in 1..=100 {
        // The later one comes first in the set.
        let polled = match round_number {
            1..=50 => vec![(CLIENT, POLLIN), (CONNECTING, POLLOUT)],
            _ => vec![
                (CONNECTING_LATER, POLLOUT),
                (CLIENT, POLLIN),
                (CONNECTING, POLLOUT),
            ],
        };
        round(&mut scene, round_number * 20 * MS, |wait| {
            wait.asked = Some(set(&polled))
        });
    }
    let run = attributed(&mut scene, 2_000 * MS);
    let connects = row(&run, Cause::NetConnect);
    assert_eq!((connects.count, connects.ns), (100, 2_000 * MS));
    assert!(connects.resource.name.starts_with("192.0.2.2:5432"));
    assert_eq!((connects.max, connects.outstanding), (20 * MS, 2_000 * MS));
}

#[test]
fn a_name_is_outstanding_until_an_answer_comes() {
    // In every so many rounds the answer comes, and it asks anew.
    let outstanding = |answered: Option<u64>| {
        let mut scene = server();
        for round_number in 1..=100 {
            round(&mut scene, round_number * 20 * MS, |wait| {
                wait.unanswered = Some(NAMES);
                if answered.is_some_and(|every| round_number % every == 0) {
                    wait.ready = Some(NAMES);
                }
            });
        }
        let run = attributed(&mut scene, 2_000 * MS);
        let names = run.waits.iter().filter(|row| row.cause == Cause::NetDns);
        names.map(|row| row.outstanding).max().unwrap()
    };
    assert_eq!(outstanding(None), 2_000 * MS);
    assert_eq!(outstanding(Some(5)), 80 * MS);
}

#[test]
fn a_loop_without_a_request_has_nothing_outstanding_for_one() {
    let mut scene = server();
    for round_number in 1..=10 {
        round(&mut scene, round_number * 20 * MS, |wait| {
            wait.serves = false;
            wait.asked = Some(set(&[(CLIENT, POLLIN), (CONNECTING, POLLOUT)]));
        });
    }
    let run = attributed(&mut scene, 200 * MS);
    assert!(
        run.waits.iter().all(|row| row.outstanding == 0),
        "{:?}",
        run.waits
    );
    assert!(run.waits.iter().any(|row| row.cause == Cause::Idle));
}
