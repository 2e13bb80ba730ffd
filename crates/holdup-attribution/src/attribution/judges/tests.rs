//! Each judge alone, and the order of judges: of two that claim a wait the first is believed.

use super::super::Attribution;
use super::super::ended_wait::EndedWait;
use super::super::object_cache::Reading;
use super::super::what::WhatId;
use super::{Case, JudgeFn, PRECEDENCE, Subject, Verdict, decide, first_that_knows};
use super::{idle, jvm, kernel, runtime_lock, server_timer, spent_on, tls};
use holdup_evidence::churn::{Conversation, Hello};
use holdup_evidence::{
    Adopted, Call, Cause, Earlier, Event, JvmStop, LockHolder, Ns, Object, ObjectId, ObjectKind, PauseWork,
    PolledFd, Request, RequestStep, RuntimeLock, RuntimeLockKind, RuntimeLockSource, Serving, SocketAddress,
    Start, TaskName, ThreadId, Wait, WaitMemory,
};
use holdup_model::attributed::{Certainty, Judge, Reason};

const PID: u32 = 7;
const THREAD: ThreadId = ThreadId(1);
const SOCKET: ObjectId = ObjectId(3);
const MS: Ns = 1_000_000;
const RECVFROM: i32 = 45;
const FUTEX: i32 = 202;
const EPOLL_WAIT: i32 = 232;
/// `FUTEX_WAIT_PRIVATE`, and `FUTEX_WAIT_BITSET_PRIVATE` with the clock of the day.
const FUTEX_WAIT: u64 = 0x80;
const FUTEX_CONDITION: u64 = 0x189;

/// A process with one thread of this name.
fn process(thread: &str) -> Attribution {
    let mut run = Attribution::of_threads();
    run.push(&Event::Start(Start {
        at: 0,
        thread: THREAD,
        task: TaskName {
            pid: PID,
            tid: PID + 1,
            name: thread.to_owned(),
            kernel: false,
        },
        parent: None,
        inside: None,
        role: Default::default(),
        adopted: Some(Adopted {
            process: "shop".to_owned(),
            parent: 1,
        }),
    }));
    run
}

/// The process listens on port 80.
fn serves(run: &mut Attribution) {
    run.push(&Event::Serving(Serving {
        processes: vec![PID],
        addresses: vec![SocketAddress::Inet("0.0.0.0:80".parse().unwrap())],
        ..Serving::default()
    }));
    run.push(&Event::Object {
        id: SOCKET,
        object: Object {
            kind: ObjectKind::Socket {
                family: 2,
                kind: 1,
                protocol: 6,
                state: 10,
                local: SocketAddress::Inet("0.0.0.0:80".parse().unwrap()),
                peer: SocketAddress::Inet("0.0.0.0:0".parse().unwrap()),
                peer_pid: None,
            },
            path: None,
            inode: 1,
            device: Default::default(),
            file_system: "sockfs".into(),
        },
    });
}

/// The thread has sent the first bytes of a TLS handshake on [`SOCKET`].
fn shakes_hands(run: &mut Attribution) {
    const HANDSHAKE: &[u8] = include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../holdup-fuzz/corpus/handshakes/tls-1.3-full"
    ));
    let (length, rest) = HANDSHAKE.split_first_chunk::<2>().unwrap();
    run.push(&Event::Conversation(Conversation {
        at: 2 * MS,
        thread: THREAD,
        connection: 1,
        accepted: false,
        end: "10.0.0.5:443".parse().unwrap(),
        began: MS,
        made: 2 * MS,
        closed: None,
    }));
    run.push(&Event::Hello(Hello {
        at: 3 * MS,
        connection: 1,
        socket: Some(SOCKET),
        answer: false,
        offset: 0,
        bytes: rest[..usize::from(u16::from_be_bytes(*length))].to_vec(),
    }));
}

fn wait(number: i32, args: [u64; 4]) -> Wait {
    Wait::new(THREAD, 1, (4 * MS, 9 * MS), Call { number, args })
}

fn receive() -> Wait {
    Wait {
        object: Some(SOCKET),
        ..wait(RECVFROM, [3, 0, 0, 0])
    }
}

fn futex(operation: u64) -> Wait {
    wait(FUTEX, [0x1000, operation, 3, 0])
}

/// A poll of [`SOCKET`] alone, with a request to answer.
fn poll() -> Wait {
    let polled = PolledFd {
        fd: 3,
        events: 1,
        revents: 0,
        object: Some(SOCKET),
        own: false,
    };
    Wait {
        serves: true,
        asked: Some(Box::new(WaitMemory {
            polled: vec![polled],
            ..WaitMemory::empty(THREAD, 1)
        })),
        ..wait(EPOLL_WAIT, [5, 0, 1, 0])
    }
}

fn locked(wait: Wait) -> Wait {
    Wait {
        holder: Some(LockHolder::Runtime(RuntimeLock {
            kind: RuntimeLockKind::Monitor,
            class: "shop.Basket".to_owned(),
            identity: 0xab,
            owner: None,
            source: RuntimeLockSource::Dump,
            seen: (0, 0),
        })),
        ..wait
    }
}

fn stopped(wait: Wait) -> Wait {
    Wait {
        holder: Some(LockHolder::Stopped(JvmStop {
            reaching: false,
            work: PauseWork::Unknown,
        })),
        ..wait
    }
}

/// What the kernel shows.
fn shows(cause: Cause, timed_out: bool) -> Reading {
    Reading {
        what: WhatId::LOST,
        cause,
        timed_out,
        bytes: None,
    }
}

/// Looks at a case.
fn case<T>(run: &Attribution, wait: &Wait, reading: Reading, look: impl FnOnce(Case<'_>) -> T) -> T {
    let ended = EndedWait {
        wait,
        waited: 5 * MS,
        on_path: 5 * MS,
        until: 9 * MS,
        handed_on: false,
        askers: &[],
        memory: None,
        open: false,
        for_answer: None,
    };
    let case = Case::new(run.knowledge(), &ended, wait.asked.as_deref(), reading, false);
    look(case.expect("the thread lives"))
}

/// What one judge says.
fn alone(judge: JudgeFn, run: &Attribution, wait: &Wait, reading: Reading) -> Option<(Cause, Reason)> {
    let found = case(run, wait, reading, |case| judge(&case));
    found.map(|verdict| (verdict.cause, verdict.reason))
}

/// Who decides.
fn decides(run: &Attribution, wait: &Wait, reading: Reading) -> Judge {
    case(run, wait, reading, |case| decide(case).by.judge)
}

/// Both judges claim the wait, and the first one decides.
fn in_this_order(pair: [Judge; 2], run: &Attribution, wait: &Wait, reading: Reading) {
    let places = pair.map(|judge| PRECEDENCE.iter().position(|(known, _)| *known == judge).unwrap());
    assert_eq!(places[0] + 1, places[1], "{pair:?} are neighbours");
    for place in places {
        let verdict = case(run, wait, reading, |case| PRECEDENCE[place].1(&case));
        let certainty = verdict.map(|verdict| verdict.certainty);
        assert_eq!(certainty, Some(Certainty::Purpose), "{:?} claims it", pair);
    }
    assert_eq!(decides(run, wait, reading), pair[0]);
}

#[test]
fn the_kernel_decides_where_it_shows_the_purpose() {
    // No cause for which the kernel shows the purpose is one that TLS claims; a certain reading of a receive stands for them.
    let mut run = process("shop");
    shakes_hands(&mut run);
    let wait = receive();
    let reading = shows(Cause::NetReceive, false);
    let decided = case(&run, &wait, reading, |mut case| {
        assert!(tls::judge(&case).is_some());
        case.shown.1 = Certainty::Purpose;
        decide(case).by
    });
    assert_eq!(
        (decided.judge, decided.reason),
        (Judge::Kernel, Reason::SystemCall)
    );
    // A lock is claimed whatever the kernel shows.
    let wait = locked(futex(FUTEX_WAIT));
    for cause in [Cause::MemReclaim, Cause::ProcessStopped, Cause::ProcessFrozen] {
        let reading = shows(cause, false);
        assert!(alone(runtime_lock::judge, &run, &wait, reading).is_some());
        assert_eq!(decides(&run, &wait, reading), Judge::Kernel, "{cause:?}");
    }
}

#[test]
fn tls_comes_before_a_lock_of_a_runtime() {
    let mut run = process("shop");
    shakes_hands(&mut run);
    let pair = [Judge::Tls, Judge::RuntimeLock];
    in_this_order(pair, &run, &locked(receive()), shows(Cause::NetReceive, false));
}

#[test]
fn a_lock_of_the_program_comes_before_a_pause_of_its_machine() {
    let mut run = process("worker");
    run.push(&Event::IsJvm { pid: PID });
    run.push(&Event::JvmPause(holdup_evidence::JvmPause {
        pid: PID,
        by: ThreadId(9),
        from: 4 * MS,
        reached: None,
        to: 9 * MS,
        late: None,
        work: PauseWork::Other,
    }));
    let pair = [Judge::RuntimeLock, Judge::Jvm];
    in_this_order(
        pair,
        &run,
        &locked(futex(FUTEX_WAIT)),
        shows(Cause::LockFutex, false),
    );
}

#[test]
fn the_machine_comes_before_the_timer_of_a_server() {
    let mut run = process("Attach Listener");
    serves(&mut run);
    run.push(&Event::IsJvm { pid: PID });
    answers_by_timer(&mut run);
    let pair = [Judge::Jvm, Judge::ServerTimer];
    in_this_order(pair, &run, &poll(), shows(Cause::PollWait, true));
}

#[test]
fn a_request_held_by_a_timer_comes_before_idle() {
    let mut run = process("shop");
    serves(&mut run);
    answers_by_timer(&mut run);
    let pair = [Judge::ServerTimer, Judge::Idle];
    in_this_order(pair, &run, &poll(), shows(Cause::PollWait, true));
}

fn answers_by_timer(run: &mut Attribution) {
    run.threads.get_mut(&THREAD).unwrap().answers_by_timer = true;
}

#[test]
fn what_is_answered_after_a_timer_ran_out_was_held_by_it_though_it_was_read_before_anybody_looked() {
    let held = |said_at, answered_by: ThreadId| {
        let mut run = process("shop");
        serves(&mut run);
        run.push(&Event::Earlier(Earlier {
            pid: PID,
            connection: 1,
            inode: 5,
            said_at,
            tick: 1,
            by_client: true,
            after: None,
            words: None,
            unclear: false,
        }));
        run.threads.get_mut(&THREAD).unwrap().timer_ran_since = Some(10 * MS);
        run.push(&Event::Request(Request {
            at: 20 * MS,
            thread: answered_by,
            clock: Default::default(),
            connection: 1,
            weight: 1,
            step: RequestStep::Answered,
        }));
        run.threads[&THREAD].answers_by_timer
    };
    assert!(held(5 * MS, THREAD));
    assert!(!held(15 * MS, THREAD), "it came while the timer ran");
    assert!(!held(5 * MS, ThreadId(2)), "somebody else answered");
}

#[test]
fn idle_is_the_last_and_each_judge_is_in_the_list_once() {
    assert_eq!(PRECEDENCE[PRECEDENCE.len() - 1].0, Judge::Idle);
    for (at, (judge, _)) in PRECEDENCE.iter().enumerate() {
        assert!(PRECEDENCE[..at].iter().all(|(earlier, _)| earlier != judge));
    }
}

#[test]
fn a_mechanism_stands_where_nobody_knows_the_purpose() {
    let run = process("shop");
    let wait = receive();
    let by = case(&run, &wait, shows(Cause::NetReceive, false), |case| {
        decide(case).by
    });
    assert_eq!(
        (by.judge, by.reason, by.certainty),
        (Judge::Kernel, Reason::SystemCall, Certainty::Mechanism)
    );
    let nobody = |case: Case<'_>| first_that_knows(&[], &case);
    let (judge, verdict) = case(&run, &wait, shows(Cause::NetReceive, false), nobody);
    assert_eq!((judge, verdict.cause), (Judge::Kernel, Cause::NetReceive));
}

#[test]
fn the_kernel_says_by_what_it_knows() {
    let stack = Wait {
        kernel_stack: Some(holdup_evidence::KernelStackId(1)),
        ..receive()
    };
    assert_eq!(kernel::reason(&stack, false), Reason::KernelStack);
    assert_eq!(kernel::reason(&receive(), true), Reason::SimilarKernelStack);
    assert_eq!(kernel::reason(&receive(), false), Reason::SystemCall);
    assert_eq!(kernel::certainty(Cause::DiskSync), Certainty::Purpose);
    assert_eq!(kernel::certainty(Cause::NetDns), Certainty::Purpose);
    assert_eq!(kernel::certainty(Cause::Unknown), Certainty::Mechanism);
}

#[test]
fn only_talk_on_a_connection_in_a_handshake_is_for_the_handshake() {
    let mut run = process("shop");
    let reading = shows(Cause::NetReceive, false);
    assert_eq!(alone(tls::judge, &run, &receive(), reading), None);
    shakes_hands(&mut run);
    let found = (Cause::NetTls, Reason::TlsHandshake);
    assert_eq!(alone(tls::judge, &run, &receive(), reading), Some(found));
    let elsewhere = Wait {
        object: Some(ObjectId(4)),
        ..receive()
    };
    assert_eq!(alone(tls::judge, &run, &elsewhere, reading), None);
    let connects = shows(Cause::NetConnect, false);
    assert_eq!(alone(tls::judge, &run, &receive(), connects), None);
}

#[test]
fn a_runtime_names_its_lock() {
    let run = process("shop");
    let reading = shows(Cause::LockFutex, true);
    assert_eq!(
        alone(runtime_lock::judge, &run, &futex(FUTEX_WAIT), reading),
        None
    );
    let wait = locked(futex(FUTEX_WAIT));
    let verdict = case(&run, &wait, reading, |case| runtime_lock::judge(&case)).unwrap();
    assert_eq!(verdict.cause, Cause::LockMonitor);
    assert!(verdict.timed_out, "as the kernel shows");
    let Subject::Named(classified) = verdict.subject else {
        panic!("the runtime names it");
    };
    assert_eq!(classified.resource.name, "shop.Basket@ab");
}

#[test]
fn a_machine_stops_its_threads_and_its_own_rest() {
    let mut run = process("worker");
    let reading = shows(Cause::LockFutex, true);
    let wait = stopped(futex(FUTEX_WAIT));
    assert_eq!(alone(jvm::judge, &run, &wait, reading), None, "no machine");
    run.push(&Event::IsJvm { pid: PID });
    let verdict = case(&run, &wait, reading, |case| jvm::judge(&case)).unwrap();
    assert_eq!(
        (verdict.cause, verdict.reason, verdict.timed_out),
        (Cause::RuntimeSafepoint, Reason::JvmStopped, false)
    );
    let reclaims = shows(Cause::MemReclaim, false);
    assert_eq!(alone(jvm::judge, &run, &wait, reclaims), None);
    let mut run = process("C2 CompilerThre");
    run.push(&Event::IsJvm { pid: PID });
    let rests = alone(jvm::judge, &run, &futex(FUTEX_CONDITION), reading);
    assert_eq!(rests, Some((Cause::Idle, Reason::JvmAtRest)));
}

#[test]
fn only_an_expired_timer_of_a_thread_that_answers_by_timers_holds_a_request() {
    let mut run = process("shop");
    serves(&mut run);
    let expired = shows(Cause::PollWait, true);
    assert_eq!(alone(server_timer::judge, &run, &poll(), expired), None);
    answers_by_timer(&mut run);
    let found = Some((Cause::TimerSleep, Reason::AnsweredByTimer));
    assert_eq!(alone(server_timer::judge, &run, &poll(), expired), found);
    let woken = shows(Cause::PollWait, false);
    assert_eq!(alone(server_timer::judge, &run, &poll(), woken), None);
    let no_request = Wait {
        serves: false,
        ..poll()
    };
    assert_eq!(alone(server_timer::judge, &run, &no_request, expired), None);
    let asks = Wait {
        unanswered: Some(ObjectId(5)),
        ..poll()
    };
    assert_eq!(alone(server_timer::judge, &run, &asks, expired), None);
}

#[test]
fn a_server_is_idle_unless_a_request_may_be_behind_its_wait() {
    let mut run = process("shop");
    let polls = shows(Cause::PollWait, false);
    assert_eq!(alone(idle::judge, &run, &poll(), polls), None, "it serves nobody");
    serves(&mut run);
    let found = Some((Cause::Idle, Reason::NoClient));
    assert_eq!(
        alone(idle::judge, &run, &poll(), polls),
        found,
        "even with a request"
    );
    let parked = futex(FUTEX_CONDITION);
    let futexes = shows(Cause::LockFutex, false);
    let found = Some((Cause::Idle, Reason::NoWork));
    assert_eq!(alone(idle::judge, &run, &parked, futexes), found);
    let with_request = Wait {
        serves: true,
        ..parked
    };
    assert_eq!(alone(idle::judge, &run, &with_request, futexes), None);
}

#[test]
fn a_loop_with_a_large_set_is_idle_where_nobody_but_clients_can_stir_it() {
    let idle = |by_clients: Option<bool>, asked: Option<ObjectId>| {
        let mut run = process("shop");
        serves(&mut run);
        run.push(&Event::Serving(Serving {
            loops: by_clients.map(|by| (PID, by)).into_iter().collect(),
            ..Serving::default()
        }));
        let mut polls = poll();
        polls.unanswered = asked;
        if let Some(set) = &mut polls.asked {
            set.polled_truncated = true;
        }
        alone(idle::judge, &run, &polls, shows(Cause::PollWait, true)).map(|(cause, _)| cause)
    };
    assert_eq!(idle(Some(true), None), Some(Cause::Idle));
    assert_eq!(idle(None, None), None, "what else is in the set is not known");
    assert_eq!(idle(Some(false), None), None, "somebody else is in it");
    assert_eq!(idle(Some(true), Some(SOCKET)), None, "it has asked somebody");
}

#[test]
fn an_idle_wait_that_times_out_is_the_time_limit_of_a_request() {
    let verdict = |cause, timed_out| Verdict {
        cause,
        subject: Subject::AsRead,
        certainty: Certainty::Purpose,
        reason: Reason::NoClient,
        timed_out,
        late: None,
    };
    assert_eq!(spent_on(&verdict(Cause::Idle, true)), Cause::TimerSleep);
    assert_eq!(spent_on(&verdict(Cause::Idle, false)), Cause::Idle);
    assert_eq!(spent_on(&verdict(Cause::NetReceive, true)), Cause::NetReceive);
}
