//! Requests that are read and answered, and which of them are slow.

use super::{Answering, UntoldRequests, slow};
use holdup_evidence::{Cause, Clock, Ns, Request, RequestStep, ThreadId};

fn answer(answering: &mut Answering, number: u64, ns: Ns, spent: &[(Cause, Ns)]) {
    answer_as(answering, number, ns, spent, 1);
}

fn answer_for(answering: &mut Answering, number: u64, ns: Ns, weight: u32) {
    answer_as(answering, number, ns, &[], weight);
}

fn answer_as(answering: &mut Answering, number: u64, ns: Ns, spent: &[(Cause, Ns)], weight: u32) {
    let request = |at, step| Request {
        at,
        thread: ThreadId(1),
        clock: Clock::default(),
        connection: number,
        weight,
        step,
    };
    let begins = format!("GET /{number}?secret HTTP/1.1\r\n").into_bytes();
    let read = request(
        0,
        RequestStep::Read {
            begins: begins.clone(),
            port: 80,
        },
    );
    answering.read(&read, Vec::new(), &begins, 80);
    let open = answering.open.remove(&number).unwrap();
    answering.answered(ns, open, spent.to_vec());
}

#[test]
fn what_the_slow_ones_had_more_of_is_told() {
    let mut answering = Answering::default();
    for number in 0..99 {
        answer(&mut answering, number, 1_000, &[(Cause::CpuUser, 1_000)]);
    }
    answer(
        &mut answering,
        99,
        50_000,
        &[(Cause::CpuUser, 1_000), (Cause::LockFile, 49_000)],
    );
    answering.kept.sort_by_key(|one| one.ns);
    let found = slow(&answering.kept).unwrap();
    assert_eq!((found.number, found.ns, found.usual), (1, 50_000, 1_000));
    assert_eq!(found.more, [(Cause::LockFile, 49_000)]);
    assert_eq!(found.line.as_deref(), Some("GET /99"));
    let requests = answering.finish(100_000, &UntoldRequests::default(), 0);
    assert_eq!((requests.count, requests.p50, requests.p99), (100, 1_000, 1_000));
    assert_eq!(requests.longest, 50_000);
}

#[test]
fn a_thread_that_answers_nobody_else_meanwhile_is_told() {
    let request = |at, thread, connection, step| Request {
        at,
        thread: ThreadId(thread),
        clock: Clock::default(),
        connection,
        weight: 1,
        step,
    };
    // The slowest is read at 0, and another at `other`, which is answered first, or after it.
    let look_up = |other: Ns, answered: Ns, of: u32| {
        let mut answering = Answering::default();
        let mut read = |connection, thread, at| {
            let step = RequestStep::Read {
                begins: Vec::new(),
                port: 80,
            };
            let request = request(at, thread, connection, step);
            answering.read(&request, Vec::new(), b"*3\r\n$4\r\neval\r\n$9\r\nsecret", 80);
        };
        read(1, 1, 0);
        read(2, of, other);
        let mut ends = [(1, 1_000), (2, answered)];
        ends.sort_by_key(|(_, at)| *at);
        for (connection, at) in ends {
            let open = answering.open.remove(&connection).unwrap();
            answering.answered(at, open, Vec::new());
        }
        answering.kept.sort_by_key(|one| one.ns);
        let found = slow(&answering.kept).unwrap();
        assert_eq!(found.line.as_deref(), Some("EVAL"));
        found.nobody_else
    };
    assert!(look_up(900, 1_001, 1));
    assert!(!look_up(500, 600, 1), "it goes on with others");
    assert!(!look_up(900, 1_001, 2), "another thread answers others");
}

#[test]
fn what_is_answered_when_something_else_came_says_nothing_of_the_others() {
    const LONG: Ns = 10_000_000;
    let open = |earlier| super::Open {
        read_at: 0,
        reader: ThreadId(1),
        left: false,
        earlier,
        resting: false,
        before: Vec::new(),
        line: None,
        port: 80,
        weight: 4,
    };
    let idle = |ns| [(Cause::Idle, ns), (Cause::CpuUser, LONG - ns)];
    assert!(open(false).rested(&idle(LONG - 1), LONG, false));
    assert!(
        !open(false).rested(&idle(LONG / 3), LONG, false),
        "something was done for it"
    );
    assert!(
        !open(false).rested(&idle(LONG - 1), LONG, true),
        "a timer held it"
    );
    assert!(
        !open(true).rested(&idle(LONG - 1), LONG, false),
        "nobody saw what was done"
    );
    assert!(
        !open(false).rested(&[(Cause::Idle, 900)], 1_000, false),
        "its client sent the rest"
    );
    let mut answering = Answering::default();
    answering.answered_at_last(&open(false), LONG);
    let requests = answering.finish(LONG, &UntoldRequests::default(), 0);
    assert_eq!((requests.count, requests.longest, requests.total), (0, 0, 0));
    assert_eq!((requests.at_last.count, requests.at_last.longest), (4, LONG));
}

#[test]
fn what_was_read_and_then_rested_is_no_request() {
    let request = |at, step| Request {
        at,
        thread: ThreadId(1),
        clock: Clock::default(),
        connection: 7,
        weight: 1,
        step,
    };
    let read = |answering: &mut Answering, at| {
        let begins = b"\0\0\x04\x08".to_vec();
        answering.read(
            &request(at, RequestStep::Read { begins, port: 80 }),
            Vec::new(),
            b"",
            80,
        );
    };
    let mut answering = Answering::default();
    // A window's update, and a second later the next request.
    read(&mut answering, 0);
    answering.read_on(&request(1_000, RequestStep::ReadOn), vec![(Cause::Idle, 990)]);
    let spent = vec![(Cause::Idle, 990), (Cause::DiskRead, 20)];
    let open = answering.open.remove(&7).unwrap();
    answering.answered(1_020, open, spent);
    assert_eq!(answering.kept[0].ns, 20);
    // The rest of a request, of which its reader has worked on the beginning.
    read(&mut answering, 2_000);
    let spent = vec![(Cause::DiskRead, 900), (Cause::Idle, 90)];
    answering.read_on(&request(3_000, RequestStep::ReadOn), spent.clone());
    let open = answering.open.remove(&7).unwrap();
    answering.answered(3_020, open, spent);
    assert_eq!(answering.kept[1].ns, 1_020);
    read(&mut answering, 4_000);
    answering.add(
        ThreadId(1),
        &vec![(
            Cause::Idle,
            holdup_model::attributed::Tally {
                ns: 900,
                ..Default::default()
            },
        )],
        5_000,
        false,
    );
    let requests = answering.finish(5_000, &UntoldRequests::default(), 0);
    assert_eq!((requests.count, requests.open, requests.resting), (2, 0, 1));
}

#[test]
fn each_listener_has_its_own_and_the_slow_ones_say_where_they_came_in() {
    let mut answering = Answering::default();
    let mut one = |connection: u64, port, ns: Option<Ns>| {
        let request = |at, step| Request {
            at,
            thread: ThreadId(1),
            clock: Clock::default(),
            connection,
            weight: 2,
            step,
        };
        let begins = Vec::new();
        answering.read(
            &request(0, RequestStep::Read { begins, port }),
            Vec::new(),
            b"",
            port,
        );
        if let (Some(ns), Some(open)) = (ns, answering.open.get(&connection).cloned()) {
            answering.open.remove(&connection);
            answering.answered(ns, open, Vec::new());
        }
    };
    for number in 0..60 {
        one(number, 80, Some(1_000));
    }
    for number in 60..63 {
        one(number, 8443, Some(90_000));
    }
    one(63, 0, None);
    let requests = answering.finish(100_000, &UntoldRequests::default(), 0);
    let listed: Vec<_> = requests
        .listeners
        .iter()
        .map(|of| (of.port, of.count, of.p50, of.longest, of.open))
        .collect();
    assert_eq!(
        listed,
        [
            (None, 0, 0, 0, 1),
            (Some(80), 120, 1_000, 1_000, 0),
            (Some(8443), 6, 90_000, 90_000, 0)
        ]
    );
    assert_eq!(requests.slow.unwrap().port, Some(8443));
    // Each stands for two; the one that is open has taken all the time so far.
    assert_eq!(requests.total, 120 * 1_000 + 6 * 90_000 + 2 * 100_000);
}

#[test]
fn memory_does_not_grow_with_their_number() {
    let mut answering = Answering::default();
    for number in 0..20_000 {
        answer(&mut answering, number, number, &[]);
    }
    assert_eq!(answering.kept.len(), super::KEPT);
    let requests = answering.finish(0, &UntoldRequests::default(), 0);
    assert_eq!(requests.count, 20_000);
    assert!((8_000..12_000).contains(&requests.p50), "{}", requests.p50);
}

#[test]
fn those_that_were_not_told_count() {
    let mut answering = Answering::default();
    answer(&mut answering, 1, 1_000, &[]);
    answering.left.insert(ThreadId(7), 500);
    let untold = UntoldRequests {
        answered: 63,
        longest: 9_000,
        open: vec![(ThreadId(1), 400), (ThreadId(7), 400), (ThreadId(7), 600)],
    };
    let requests = answering.finish(10_000, &untold, 0);
    assert_eq!(
        (requests.count, requests.p50, requests.longest),
        (64, 1_000, 9_000)
    );
    assert_eq!((requests.open, requests.oldest_open), (2, 9_600));
}

#[test]
fn a_sample_of_samples_is_fair() {
    // As many short ones as long ones, but of the long ones only each eighth is reported.
    let mut answering = Answering::default();
    for number in 0..80_000 {
        answer_for(&mut answering, number, 1_000, 1);
        if number % 8 == 0 {
            answer_for(&mut answering, number, 2_000, 8);
        }
    }
    let long = answering.kept.iter().filter(|one| one.ns == 2_000).count();
    assert!(
        (super::KEPT * 2 / 5..super::KEPT * 3 / 5).contains(&long),
        "{long}"
    );
}
