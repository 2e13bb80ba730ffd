//! Births, connections and handshakes, told to a whole attribution.

use crate::attribution::Attribution;
use holdup_evidence::churn::{Closed, Closer, Conversation, Hello, Made, MadeBy, Turned};
use holdup_evidence::{
    Adopted, Call, Cause, Clock, End, Event, Finish, Frame, Ns, Object, ObjectId, ObjectKind, Role,
    SocketAddress, Start, SystemFacts, TaskName, ThreadId, UserStackId, Wait, Waker,
};
use holdup_model::churn::{Born, Churn, Conversations};

const MS: Ns = 1_000_000;
const SERVER: u32 = 100;

fn task(pid: u32, tid: u32, name: &str) -> TaskName {
    TaskName {
        pid,
        tid,
        name: name.to_owned(),
        kernel: false,
    }
}

fn clock(blocked: Ns) -> Clock {
    Clock {
        blocked,
        ..Clock::default()
    }
}

/// A server with one thread that ran already.
fn watched() -> Attribution {
    let mut run = Attribution::of_threads();
    run.push(&Event::Start(Start {
        at: 0,
        thread: ThreadId(1),
        task: task(SERVER, SERVER, "shop"),
        parent: None,
        inside: None,
        role: Role::Subject,
        adopted: Some(Adopted {
            process: "shop".to_owned(),
            parent: 1,
        }),
    }));
    run
}

fn born(run: &mut Attribution, thread: u32, pid: u32, at: Ns) {
    run.push(&Event::Start(Start {
        at,
        thread: ThreadId(thread),
        task: task(pid, 1000 + thread, "shop"),
        parent: Some((ThreadId(1), clock(at))),
        inside: None,
        role: Role::Subject,
        adopted: None,
    }));
}

fn ended(run: &mut Attribution, thread: u32, pid: u32, name: &str, born: Ns, at: Ns) {
    run.push(&Event::End(Box::new(End {
        at,
        thread: ThreadId(thread),
        task: task(pid, 1000 + thread, name),
        born,
        clock: clock(at - born),
        blockings: 0,
        lost: (0, 0),
        interrupts: Default::default(),
        account: None,
        open: None,
        exit_code: 0,
    })));
}

fn churn_of(run: Attribution) -> Churn {
    let frame = |symbol: &str| Frame {
        symbol: Some(symbol.to_owned()),
        module: Some("shop".to_owned()),
        ..Frame::default()
    };
    let finish = Finish {
        started: 0,
        ended: 10_000 * MS,
        user_stacks: vec![vec![frame("once")], vec![frame("serve")]],
        traffic_told: true,
        ..Finish::default()
    };
    run.finish(&finish, &SystemFacts::default()).churn.unwrap()
}

#[test]
fn births_are_told_by_who_made_them_and_where() {
    let mut run = watched();
    for number in 0..100 {
        let at = Ns::from(number) * 10 * MS;
        born(&mut run, 10 + number, SERVER, at);
        for stack in [1, if number == 0 { 0 } else { 1 }] {
            run.push(&Event::MadeBy(MadeBy {
                thread: ThreadId(1),
                what: Made::Thread,
                connection: 0,
                stack: UserStackId(stack),
            }));
        }
        if number < 99 {
            ended(&mut run, 10 + number, SERVER, "worker", at, at + 2 * MS);
        }
    }
    born(&mut run, 500, 777, 1_000 * MS);
    ended(&mut run, 500, 777, "convert", 1_000 * MS, 1_003 * MS);
    let churn = churn_of(run);
    assert_eq!(churn.made.len(), 2);
    let threads = &churn.made[0];
    assert_eq!(
        (threads.what, threads.made, threads.ended),
        (Born::Thread, 100, 99)
    );
    assert_eq!(threads.longest, 2 * MS);
    assert_eq!(threads.by.frame.as_deref(), Some("serve"));
    assert_eq!(
        (threads.by.name.pid, threads.by.name.process.as_str()),
        (SERVER, "shop")
    );
    assert_eq!(
        (threads.names[0].name.as_str(), threads.names[0].count),
        ("worker", 99)
    );
    assert_eq!(churn.per_second(threads.made), 10.0);
    let processes = &churn.made[1];
    assert_eq!(
        (processes.what, processes.made, processes.p50),
        (Born::Process, 1, 3 * MS)
    );
    assert_eq!(processes.names[0].name, "convert");
}

#[test]
fn what_a_neighbour_makes_is_not_told() {
    let mut run = Attribution::of_threads();
    run.push(&Event::Start(Start {
        at: 0,
        thread: ThreadId(1),
        task: task(SERVER, SERVER, "other"),
        parent: None,
        inside: None,
        role: Role::Neighbour,
        adopted: None,
    }));
    born(&mut run, 2, SERVER, MS);
    assert_eq!(churn_of(run).made, []);
}

/// A connection that was asked for at 1 ms and made at 2 ms, with so many turns, the second of which began at 10 ms with so many
/// bytes and was answered until 12 ms; closed at 20 ms.
fn talk(run: &mut Attribution, connection: u64, hellos: &[(bool, &[u8])], turns: u32, second_bytes: u32) {
    let conversation = |at, closed| {
        Event::Conversation(Conversation {
            at,
            thread: ThreadId(1),
            connection,
            accepted: false,
            end: "10.0.0.5:443".parse().unwrap(),
            began: MS,
            made: 2 * MS,
            closed,
        })
    };
    run.push(&conversation(2 * MS, None));
    for (answer, bytes) in hellos {
        // As OpenSSL reads: a record's head, then the rest.
        let (head, rest) = bytes.split_at(5);
        for (offset, piece) in [(0, head), (5, rest)] {
            run.push(&Event::Hello(Hello {
                at: 3 * MS,
                connection,
                socket: None,
                answer: *answer,
                offset,
                bytes: piece.to_vec(),
            }));
        }
    }
    let second = |at| if turns > 1 { at } else { 0 };
    run.push(&conversation(
        20 * MS,
        Some(Closed {
            turns,
            second_began: second(10 * MS),
            second_answered: second(12 * MS),
            second_bytes,
            third_began: if turns > 2 { 15 * MS } else { 0 },
            closer: Some(Closer::Peer),
        }),
    ));
}

fn connections(run: Attribution) -> Conversations {
    let mut all = churn_of(run).connections;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn questions_in_the_clear_are_turns() {
    let mut run = watched();
    talk(&mut run, 1, &[], 1, 0);
    talk(&mut run, 2, &[], 2, 100);
    talk(&mut run, 3, &[], 0, 0);
    let all = connections(run);
    assert_eq!(
        (all.made, all.closed, all.once, all.more, all.untold),
        (3, 3, 1, 1, 0)
    );
    assert_eq!((all.closed_by_peer, all.closed_here), (3, 0));
    assert_eq!(
        (all.open_ns, all.setup_ns),
        (3 * 19 * MS, 3 * MS),
        "connecting only"
    );
    assert_eq!(all.end, "10.0.0.5:443");
}

/// Of a real handshake: what the client sent first, and the server.
fn real(file: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = file.split_first_chunk::<2>().unwrap();
    rest.split_at(usize::from(u16::from_be_bytes(*length)))
}

const TLS_1_3_FULL: &[u8] = include_bytes!("../../../../holdup-fuzz/corpus/handshakes/tls-1.3-full");
const TLS_1_3_RESUMED: &[u8] = include_bytes!("../../../../holdup-fuzz/corpus/handshakes/tls-1.3-resumed");
const TLS_1_2_FULL: &[u8] = include_bytes!("../../../../holdup-fuzz/corpus/handshakes/tls-1.2-full");
const TLS_1_2_RESUMED: &[u8] = include_bytes!("../../../../holdup-fuzz/corpus/handshakes/tls-1.2-resumed");

#[test]
fn a_handshake_is_no_question() {
    // Each carries one request, and its handshake ends so many ms after the connection was made.
    for (file, turns, second_bytes, resumed, took) in [
        (TLS_1_3_FULL, 2, 400, false, 8),
        (TLS_1_3_FULL, 3, 80, false, 8),
        (TLS_1_3_RESUMED, 2, 400, true, 8),
        (TLS_1_2_FULL, 3, 126, false, 10),
        (TLS_1_2_RESUMED, 2, 300, true, 8),
    ] {
        let (client, server) = real(file);
        let mut run = watched();
        talk(
            &mut run,
            1,
            &[(false, client), (true, server)],
            turns,
            second_bytes,
        );
        let all = connections(run);
        let place = format!("{resumed} {turns}");
        assert_eq!((all.once, all.more, all.untold), (1, 0, 0), "{place}");
        assert_eq!(
            (all.tls.full, all.tls.resumed),
            (u64::from(!resumed), u64::from(resumed))
        );
        assert_eq!(all.tls.in_vain, 0, "{place}");
        assert_eq!(
            (all.tls.mean(), all.setup_ns),
            (took * MS, (took + 1) * MS),
            "{place}"
        );
    }
}

#[test]
fn a_handshake_that_cannot_be_told_leaves_the_requests_untold() {
    let (client, server) = real(TLS_1_3_FULL);
    let mut run = watched();
    talk(&mut run, 1, &[(false, client), (true, &server[..40])], 2, 400);
    let all = connections(run);
    assert_eq!(
        (all.once, all.untold, all.tls.untold, all.tls.all()),
        (0, 1, 1, 1)
    );
}

#[test]
fn a_piece_that_does_not_follow_is_not_taken() {
    let (client, server) = real(TLS_1_3_FULL);
    let mut run = watched();
    talk(
        &mut run,
        1,
        &[(true, server), (true, server), (false, client)],
        1,
        0,
    );
    // The answer's second copy begins at 0 again, which is not where the first ended.
    assert_eq!(connections(run).tls.full, 1);
}

#[test]
fn memory_is_bounded_by_what_is_told_apart() {
    let mut run = watched();
    for number in 0..20_000u32 {
        run.push(&Event::Conversation(Conversation {
            at: 2 * MS,
            thread: ThreadId(1),
            connection: u64::from(number),
            accepted: false,
            end: format!("10.0.{}.{}:443", number / 256, number % 256)
                .parse()
                .unwrap(),
            began: MS,
            made: 2 * MS,
            closed: None,
        }));
    }
    assert_eq!(run.churning.talks.len(), super::MAX_ENTRIES);
    assert!(run.churning.open.len() <= super::MAX_OPEN);
    assert_eq!(churn_of(run).connections.len(), super::LISTED);
}

const SOCKET: u32 = 70;

/// A connection to 10.0.0.5:443, which is the socket with this number.
fn socket() -> Event {
    Event::Object {
        id: ObjectId(SOCKET),
        object: Object {
            kind: ObjectKind::Socket {
                family: 2,
                kind: 1,
                protocol: 6,
                state: 1,
                local: SocketAddress::Inet("10.0.0.9:40000".parse().unwrap()),
                peer: SocketAddress::Inet("10.0.0.5:443".parse().unwrap()),
                peer_pid: None,
            },
            path: None,
            inode: 1,
            device: Default::default(),
            file_system: "sockfs".into(),
        },
    }
}

/// The thread waited for something to be sent on the socket.
fn received(run: &mut Attribution, seq: u32, start: Ns, end: Ns, blocked: Ns) {
    run.push(&Event::Wait(Box::new(Wait {
        clock: Clock {
            cpu: end - blocked,
            blocked,
            ..Clock::default()
        },
        object: Some(ObjectId(SOCKET)),
        waker: Waker::Interrupt {
            soft: true,
            socket: None,
        },
        ..Wait::new(
            ThreadId(1),
            seq,
            (start, end),
            Call {
                number: 45,
                args: [5, 0, 0, 0],
            },
        )
    })));
}

#[test]
fn waits_in_a_handshake_are_for_it_and_those_behind_it_are_not() {
    let (client, server) = real(TLS_1_3_FULL);
    let hello = |at, answer, bytes: &[u8]| {
        Event::Hello(Hello {
            at,
            connection: 1,
            socket: Some(ObjectId(SOCKET)),
            answer,
            offset: 0,
            bytes: bytes.to_vec(),
        })
    };
    let turned = |at, second_bytes| {
        Event::Turned(Turned {
            at,
            connection: 1,
            turns: 2,
            second_bytes,
            second_answered: 0,
        })
    };
    let mut run = watched();
    run.push(&socket());
    run.push(&Event::Conversation(Conversation {
        at: 2 * MS,
        thread: ThreadId(1),
        connection: 1,
        accepted: false,
        end: "10.0.0.5:443".parse().unwrap(),
        began: MS,
        made: 2 * MS,
        closed: None,
    }));
    run.push(&hello(3 * MS, false, client));
    received(&mut run, 1, 3 * MS, 13 * MS, 10 * MS);
    run.push(&hello(13 * MS, true, server));
    received(&mut run, 2, 14 * MS, 17 * MS, 13 * MS);
    // To change the cipher means nothing; the last word comes with the next piece.
    run.push(&turned(18 * MS, 6));
    received(&mut run, 3, 18 * MS, 20 * MS, 15 * MS);
    run.push(&turned(21 * MS, 80));
    received(&mut run, 4, 22 * MS, 92 * MS, 85 * MS);
    let finish = Finish {
        started: 0,
        ended: 100 * MS,
        traffic_told: true,
        ..Finish::default()
    };
    let whole = run.finish(&finish, &SystemFacts::default());
    let of = |cause| whole.path.get(&cause).map_or(0, |tally| tally.ns);
    assert_eq!((of(Cause::NetTls), of(Cause::NetReceive)), (15 * MS, 70 * MS));
    let wait = whole
        .waits
        .iter()
        .find(|wait| wait.cause == Cause::NetTls)
        .unwrap();
    assert_eq!(
        wait.resource.detail.peer.as_ref().unwrap().to_string(),
        "10.0.0.5:443"
    );
    let tls = whole.churn.unwrap().connections[0].tls;
    assert_eq!(
        (tls.full, tls.timed, tls.ns),
        (1, 1, 19 * MS),
        "also of one that is not closed"
    );
}
