//! Segments made of dice: every part of a segment in some value or other, hostile text included.
#![allow(dead_code, reason = "each test uses some of it")]

mod budget;
mod churn;
mod datagrams;
mod limits;
mod looks;
mod pools;
mod tasks;

use holdup_evidence::facts::{
    Acceptor, AwaitedPeer, ConnectedClients, CpuTime, DatabaseSession, LedBack, Listener, LockKind,
    LockSession, LockWait, Mount, NameServer, Program, QueuedBytes, SessionClient, SessionState, SetAside,
    SharedListener, StoppedChild, ThreadSession, Workers,
};
use holdup_evidence::observed::{CgroupUser, Limited, Quote, SeenCgroup, SeenProcess};
use holdup_evidence::{Cause, EventLoop, Frame, Jvm, Language, SystemFacts};
use holdup_model::attributed::{
    AnsweredAtLast, Asker, Attributed, AttributedWait, Certainty, Coverage, Holder, How, HowKnown, Judge,
    JudgedBy, Link, NamedRequests, OfListener, Orphaned, Pace, Queue, Reason, Requests, Resource,
    ResourceKind, SlowRequest, Tally, ThreadLedger, ThreadName, Unanswered,
};
use holdup_model::connections::{Connections, TcpSeen};
use holdup_model::host_figures::{HostFigure, HostFigures, HostLine, HostStretch};
use holdup_model::prediction::{Doubt, Prediction, Predictions};
use holdup_model::report::{Backend, Elsewhere, SubjectKind};
use holdup_model::timeline::{EndedBy, Piece, Rest, Task, Timeline, Window};
use holdup_recording::{Head, Segment, Zone};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Text that programs give themselves.
const TEXTS: &[&str] = &[
    "",
    "a b\"c\\d",
    "\u{1b}[31mred\u{7}",
    "x\0y",
    "{\"stack\":[1]}",
    "naïve ☂ 日本",
    "</script><!--",
    "libc.so.6",
    "/var/lib/mysql/ib_logfile0",
];

/// A source of choices: the same seed, the same segment.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// splitmix64.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn yes(&mut self) -> bool {
        self.roll() & 1 == 1
    }

    fn text(&mut self) -> String {
        let at = self.below(TEXTS.len() as u64);
        TEXTS[usize::try_from(at).unwrap()].to_owned()
    }

    /// Times and counts: small ones, ordinary ones, and the largest there is.
    fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            _ => self.below(1 << 40),
        }
    }

    fn some<T>(&mut self, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        self.yes().then(|| make(self))
    }

    fn list<T>(&mut self, most: u64, mut make: impl FnMut(&mut Dice) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).unwrap()]
    }

    fn cause(&mut self) -> Cause {
        self.of(Cause::ALL)
    }

    fn name(&mut self) -> ThreadName {
        ThreadName {
            pid: self.below(5) as u32,
            tid: self.below(7) as u32,
            process: self.text(),
            thread: self.text(),
        }
    }

    fn frame(&mut self) -> Frame {
        Frame {
            symbol: self.some(Dice::text),
            module: self.some(Dice::text),
            offset: self.number(),
            file: self.some(Dice::text),
            line: self.some(|dice| dice.below(1000) as u32),
            language: self.of(&[Language::Native, Language::Java, Language::Kernel]),
            inlined: self.yes(),
            package: self.some(Dice::text),
        }
    }

    fn asker(&mut self) -> Asker {
        Asker {
            name: self.name(),
            frame: self.some(Dice::text),
            module: self.some(Dice::text),
            stack: self.list(6, Dice::frame),
        }
    }

    fn tallies(&mut self) -> BTreeMap<Cause, Tally> {
        let tally = |dice: &mut Dice| {
            let tally = Tally {
                ns: dice.number(),
                count: dice.number(),
                max: dice.number(),
                open: dice.yes(),
            };
            (dice.cause(), tally)
        };
        self.list(5, tally).into_iter().collect()
    }

    fn wait(&mut self) -> AttributedWait {
        AttributedWait {
            cause: self.cause(),
            ns: self.number(),
            path_ns: self.number(),
            handed_on_ns: self.number(),
            count: self.number(),
            max: self.number(),
            p50: self.number(),
            p99: self.number(),
            max_started: self.number(),
            max_ended: self.number(),
            how: self.of(&[How::Exact, How::Sampled]),
            error: self.number(),
            open: self.yes(),
            held_open_ns: self.number(),
            pace: self.of(&[
                Pace::Unknown,
                Pace::Until,
                Pace::OneAfterTheOther,
                Pace::FixedTimes,
            ]),
            timed_out: self.number(),
            call: self.some(Dice::text),
            bytes: self.some(Dice::number),
            resource: Resource {
                kind: self.of(&[ResourceKind::File, ResourceKind::Socket, ResourceKind::Lock]),
                name: self.text(),
                detail: self
                    .list(2, |dice| (dice.text(), dice.text()))
                    .into_iter()
                    .collect(),
            },
            asker: self.asker(),
            holders: self.list(2, |dice| Holder {
                name: dice.name(),
                how_known: dice.of(&[HowKnown::Waker, HowKnown::MutexOwner]),
                doing: dice.some(Dice::cause),
                ns: dice.number(),
                stack: dice.list(3, Dice::frame),
                place: dice.some(Dice::frame),
                others_busy: dice.number(),
            }),
            chain: self.list(2, |dice| Link {
                name: dice.name(),
                cause: dice.cause(),
                ns: dice.number(),
                frame: dice.some(Dice::frame),
            }),
            deadlock: self.yes(),
            orphaned: self.some(|dice| Orphaned {
                owner: dice.some(Dice::name),
                alone: dice.yes(),
                all_of: dice.number(),
                sharers: dice.number(),
                queue_sharers: dice.number(),
            }),
            ran_instead: self.list(2, |dice| (dice.text(), dice.number())),
            queue: self.some(|dice| Queue {
                known: dice.number(),
                nice: dice.some(|_| 0),
                allowed: vec![0, 63],
                ..Queue::default()
            }),
            kernel_stack: self.list(3, Dice::text),
            why_unknown: self.some(Dice::text),
            tcp: self.some(|dice| TcpSeen {
                seen: dice.number(),
                device: dice.some(Dice::text),
                ..TcpSeen::default()
            }),
            read_at: self.text(),
            judged_by: self.some(|dice| JudgedBy {
                judge: dice.of(&[Judge::Kernel, Judge::Tls, Judge::Idle]),
                reason: dice.of(&[Reason::KernelStack, Reason::NoClient]),
                certainty: dice.of(&[Certainty::Purpose, Certainty::Mechanism]),
            }),
            outstanding: self.number(),
        }
    }

    fn attributed(&mut self) -> Attributed {
        Attributed {
            elapsed: self.number(),
            of_threads: self.yes(),
            source: self.yes().into(),
            wall: self.number(),
            path: self.tallies(),
            threads: self.list(4, |dice| ThreadLedger {
                name: dice.name(),
                threads: dice.below(9) as u32,
                wall: dice.number(),
                causes: dice.tallies(),
                lost: dice.number(),
                open: dice.yes(),
            }),
            waits: self.list(6, Dice::wait),
            coverage: Coverage {
                observed: self.number(),
                attributed: self.number(),
                unknown: self.number(),
                lost: self.list(2, |dice| (dice.text(), dice.number(), dice.number())),
                not_measured: self.list(2, |dice| (dice.text(), dice.text(), dice.text())),
                own_cost: self.number(),
                budget: self.yes().then(|| self.budget()),
            },
            connections: self.list(2, |dice| Connections {
                peer: dice.text(),
                by: dice.name(),
                made: dice.number(),
                no_port: dice.number(),
                slept_without_port_ns: dice.number(),
                ..Connections::default()
            }),
            host_figures: HostFigures {
                stretches: self.list(4, |dice| HostStretch {
                    from_ns: dice.number(),
                    ns: dice.number(),
                }),
                lines: self.list(3, |dice| HostLine {
                    figure: dice.of(&[HostFigure::CpuBusy, HostFigure::PressureIo, HostFigure::DiskBusy]),
                    of: dice.text(),
                    shares: dice.list(4, |dice| dice.some(|dice| dice.below(1_000) as f64 / 1e3)),
                }),
            },
            tasks: self.list(3, Dice::task),
            task_looks: self.number(),
            task_queues: self.list(2, Dice::task_queue),
            event_loops: self.list(2, |dice| EventLoop {
                pid: dice.below(9) as u32,
                tid: dice.below(9) as u32,
                tasks: dice.number(),
            }),
            pools: self.list(2, Dice::pool),
            predictions: self.some(|dice| Predictions {
                list: dice.list(2, |dice| Prediction {
                    without: dice.of(&[Cause::DiskSync, Cause::NetDns]),
                    factor: 0.5,
                    elapsed_ns: dice.number(),
                    doubts: vec![Doubt::Polling],
                }),
                together: dice.some(Dice::number),
                not: dice.some(Dice::text),
            }),
            churn: self.some(Dice::churn),
            datagrams: self.some(Dice::datagrams),
            requests: self.some(|dice| Requests {
                count: dice.number(),
                p50: dice.number(),
                at_last: AnsweredAtLast {
                    count: dice.number(),
                    longest: dice.number(),
                },
                causes: dice.tallies(),
                slow: dice.some(|dice| SlowRequest {
                    ns: dice.number(),
                    more: vec![(dice.cause(), dice.number())],
                    line: dice.some(Dice::text),
                    nobody_else: dice.yes(),
                    ..SlowRequest::default()
                }),
                named: dice.list(2, |dice| NamedRequests {
                    line: dice.text(),
                    answered: dice.number(),
                    unanswered: dice.number(),
                }),
                listeners: dice.list(2, |dice| OfListener {
                    port: dice.some(|dice| dice.below(65_536) as u16),
                    count: dice.number(),
                    ..OfListener::default()
                }),
                ..Requests::default()
            }),
            unanswered: Unanswered {
                clients: self.number(),
                longest: self.number(),
                by: self.name(),
            },
            began: self.number(),
            windows: self.list(2, |dice| Window {
                from: dice.number(),
                ns: dice.number(),
                causes: [(dice.cause(), dice.number())].into(),
                path: [(dice.cause(), dice.number())].into(),
                requests: dice.number(),
                requests_ns: dice.number(),
            }),
            timeline: Timeline {
                tasks: self.list(2, |dice| Task {
                    name: dice.name(),
                    thread: dice.some(|_| 0),
                }),
                pieces: self.list(3, |dice| Piece {
                    task: 0,
                    start: dice.number(),
                    ns: dice.number(),
                    cause: dice.cause(),
                    wait: dice.some(|_| 0),
                    ended_by: dice.some(|dice| dice.of(&[EndedBy::Task(0), EndedBy::Timer])),
                    before: dice.number(),
                    open: dice.yes(),
                }),
                rest: self.list(1, |dice| Rest {
                    thread: 0,
                    cause: dice.cause(),
                    first: 0,
                    ns: vec![0, dice.number()],
                }),
                left_out: self.number(),
            },
        }
    }

    fn facts(&mut self) -> SystemFacts {
        SystemFacts {
            kernel_release: self.some(Dice::text),
            cpus: self.some(|dice| dice.below(4096) as u32),
            cpu_times: self.list(2, |dice| CpuTime {
                cpu: dice.below(4) as u32,
                idle: dice.number(),
                stolen: dice.number(),
            }),
            mounts: self.list(2, |dice| Mount {
                target: dice.text(),
                ..Mount::default()
            }),
            jvms: self.list(1, |dice| Jvm {
                pid: dice.below(9) as u32,
                options: dice.list(2, Dice::text),
                ..Jvm::default()
            }),
            unaccepted: self.some(|_| vec![]),
            workers: self.list(1, |dice| Workers {
                parent: dice.below(1 << 22) as u32,
                parent_process: dice.text(),
                process: dice.text(),
                pids: dice.list(3, |dice| dice.below(1 << 22) as u32),
                unobserved: dice.below(9) as u32,
                at: dice.list(1, |dice| SharedListener {
                    address: dice.text(),
                    before: dice.below(9) as u32,
                    after: dice.below(9) as u32,
                    led_back: dice.list(2, |_| LedBack::default()),
                }),
            }),
            database_sessions: self.list(2, |dice| DatabaseSession {
                pid: dice.below(1 << 22) as u32,
                process: dice.text(),
                server: dice.below(1 << 22) as u32,
                state: dice.of(&[SessionState::Waiting, SessionState::IdleInTransaction]),
                stopped: dice.yes(),
                client: dice.some(|dice| SessionClient {
                    pid: dice.some(|dice| dice.below(1 << 22) as u32),
                    process: dice.text(),
                    ..SessionClient::default()
                }),
                command: dice.text(),
                tables: dice.list(2, Dice::text),
            }),
            thread_sessions: self.list(1, |dice| ThreadSession {
                pid: dice.below(1 << 22) as u32,
                tid: dice.below(1 << 22) as u32,
                stage: dice.some(Dice::text),
                client: dice.some(|dice| SessionClient {
                    process: dice.text(),
                    ..SessionClient::default()
                }),
            }),
            awaited_peers: self.list(1, |dice| AwaitedPeer {
                pid: dice.below(1 << 22) as u32,
                address: dice.text(),
            }),
            lock_sessions: self.list(2, |dice| LockSession {
                server: dice.below(1 << 22) as u32,
                pid: dice.below(1 << 22) as u32,
                tid: dice.below(1 << 22) as u32,
                process: dice.text(),
                id: dice.number(),
                application: dice.text(),
                state: dice.some(|dice| dice.of(&[SessionState::Waiting, SessionState::Idle])),
                open_ns: dice.some(Dice::number),
                waits: dice.some(|dice| LockWait {
                    kind: dice.of(&[LockKind::Row, LockKind::Advisory]),
                    name: dice.text(),
                    behind: dice.list(2, Dice::number),
                }),
                pooler: None,
                client: dice.some(|dice| SessionClient {
                    process: dice.text(),
                    ..SessionClient::default()
                }),
            }),
            listeners: self.list(1, |dice| Listener {
                waiting: dice.below(9) as u32,
                processes: dice.list(1, |dice| Acceptor {
                    pid: dice.below(1 << 22) as u32,
                    process: dice.text(),
                    stopped: dice.yes(),
                    polled: dice.some(Dice::yes),
                }),
                clients: dice.list(1, |dice| ConnectedClients {
                    process: dice.text(),
                    address: dice.some(|dice| [10, 0, 0, dice.below(9) as u8].into()),
                    pids: vec![7],
                    processes: 1,
                    connections: dice.below(9) as u32,
                }),
                ..Listener::default()
            }),
            name_servers: self.list(1, |dice| NameServer {
                process: dice.text(),
                pid: dice.some(|dice| dice.below(1 << 22) as u32),
                unread: dice.some(|dice| QueuedBytes(dice.number())),
                asks: Some(SocketAddr::from(([127, 0, 0, 1], 53))),
                ..NameServer::default()
            }),
            cgroups_at_limit: self.list(1, |dice| SeenCgroup {
                cgroup: dice.text(),
                what: Limited::Memory,
                used: 7.0,
                limit: 9.0,
                refused: None,
                cpus: None,
                whole: dice.some(|_| 8.0),
                hits: dice.some(|_| 3),
                read_again: Some(4),
                watched: Some(5),
                processes: dice.list(1, |dice| SeenProcess {
                    pid: 7,
                    name: dice.text(),
                    ..SeenProcess::default()
                }),
                members: dice.list(2, |dice| dice.below(1 << 22) as u32),
                users: dice.list(2, |dice| CgroupUser {
                    name: dice.text(),
                    pid: 8,
                    processes: dice.number(),
                    amount: 5.0,
                }),
                paused: true,
                quote: Quote::default(),
            }),
            task_limits: self.some(Dice::task_limits),
            no_descriptor_left: self.some(Dice::no_descriptor_left),
            full_file_systems: self.full_file_systems(),
            frozen_volumes: self.frozen_volumes(),
            answers_awaited: self.answers_awaited(),
            stopped_children: self.list(2, |dice| StoppedChild {
                pid: dice.below(1 << 22) as u32,
                parent: dice.below(1 << 22) as u32,
            }),
            programs: self.list(2, |dice| Program {
                pid: dice.below(1 << 22) as u32,
                name: dice.text(),
            }),
            database_files: vec![Default::default()],
            locked_files: vec![Default::default()],
            unread_answers: self.some(|_| vec![Default::default()]),
            full_outputs: self.some(|_| vec![Default::default()]),
            owed_answers: self.some(|_| vec![Default::default()]),
            lock_files: vec![Default::default()],
            left_unread: self.some(|_| vec![Default::default()]),
            pushed: self.some(|_| vec![Default::default()]),
            moved: vec![Default::default()],
            failed_tasks: vec![Default::default()],
            set_aside: self.some(|dice| {
                dice.list(1, |dice| SetAside {
                    asks_on: 3,
                    pid: dice.below(1 << 22) as u32,
                    process: dice.text(),
                    clients: dice.below(9) as u32,
                    ..SetAside::default()
                })
            }),
            processes: self
                .list(3, |dice| (dice.below(1 << 22) as u32, dice.text()))
                .into_iter()
                .collect(),
            boot_minus_monotonic: self.some(Dice::number),
            unix_minus_monotonic: self.some(|dice| dice.roll().cast_signed()),
            ..SystemFacts::default()
        }
    }

    pub(crate) fn segment(&mut self) -> Segment {
        Segment {
            head: Head {
                holdup: "0.1.0".to_owned(),
                kind: self.of(&[SubjectKind::Run, SubjectKind::Attach]),
                backend: Backend::Bpf,
                command: self.list(3, Dice::text),
                pids: self.list(3, |dice| dice.below(1 << 22) as u32),
                started: self.number(),
                started_unix: self.roll().cast_signed(),
                length: self.number(),
                ended_boot: self.some(Dice::number),
                exit: self.some(|dice| dice.below(256) as i32),
                elsewhere: self.list(1, |dice| Elsewhere {
                    pid: 7,
                    pid_inside: dice.some(|_| 1),
                    root: dice.some(Dice::text),
                    cgroup: dice.some(Dice::text),
                }),
                host: self.some(Dice::text),
                boot_id: self.some(Dice::text),
                kernel: self.some(Dice::text),
                zone: Zone {
                    name: self.some(Dice::text),
                    offset: 3600,
                },
                unit: self.some(Dice::text),
                cgroup: self.some(Dice::text),
                build_ids: self
                    .list(2, |dice| (dice.text(), dice.text()))
                    .into_iter()
                    .collect(),
                redacted: self.yes(),
                detail: vec!["psi.io>20% (34.0)".to_owned()],
                coarse: true,
                segments: 1,
                approximate: vec![],
                breaks: vec![],
            },
            attributed: self.attributed(),
            facts: self.facts(),
            look: self.some(Dice::look),
        }
    }
}
