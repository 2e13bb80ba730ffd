//! Minutes of a mail server that were never observed: for samples, tests and measurements. The same every time.

use holdup_evidence::{Cause, Frame, Ns, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::attributed::{
    Asker, AttributedWait, Coverage, Resource, ResourceKind, Tally, ThreadLedger, ThreadName,
};
use holdup_model::report::{Backend, SubjectKind};
use holdup_recording::{Head, Segment, Zone};
use std::collections::BTreeMap;

/// When the first minute begins: 2026-03-02 12:00:00 UTC, nanoseconds.
pub(crate) const BEGIN: i64 = 1_772_452_800_000_000_000;

/// A segment's length, nanoseconds.
pub(crate) const MINUTE: Ns = 60_000_000_000;

/// The minute in which the disk was slow.
pub(crate) const SLOW: u32 = 7;

/// Time that the queue manager waits for its disk in an ordinary minute, and in the slow one, nanoseconds.
pub(crate) const USUAL_SYNC: Ns = 300_000_000;
pub(crate) const SLOW_SYNC: Ns = 45_000_000_000;

/// When the machine was booted, before the first minute, nanoseconds.
pub(crate) const UP: Ns = 3_600_000_000_000;

fn name(tid: u32, process: &str) -> ThreadName {
    ThreadName {
        pid: tid,
        tid,
        process: process.to_owned(),
        thread: process.to_owned(),
    }
}

fn frame(symbol: &str, module: &str) -> Frame {
    Frame {
        symbol: Some(symbol.to_owned()),
        module: Some(module.to_owned()),
        offset: 0x2f,
        ..Frame::default()
    }
}

fn wait(who: &ThreadName, cause: Cause, ns: Ns, call: &str, resource: Resource) -> AttributedWait {
    AttributedWait {
        cause,
        ns,
        path_ns: if cause == Cause::Idle { 0 } else { ns },
        handed_on_ns: 0,
        count: 30,
        max: ns / 10,
        p50: ns / 40,
        p99: ns / 12,
        call: Some(call.to_owned()),
        resource,
        asker: Asker {
            name: who.clone(),
            frame: Some("vstream_fsync".to_owned()),
            module: Some(who.process.clone()),
            stack: vec![
                frame("fdatasync", "libc.so.6"),
                frame("vstream_fsync", &who.process),
                frame("main", &who.process),
            ],
        },
        ..empty(cause)
    }
}

fn empty(cause: Cause) -> AttributedWait {
    serde_json::from_value(serde_json::json!({ "cause": cause })).expect("all else has defaults")
}

/// Minute `number`, with `servers` processes beside the queue manager.
pub(crate) fn minute(number: u32, servers: u32) -> Segment {
    let started = UP + Ns::from(number) * MINUTE;
    let sync = if number == SLOW { SLOW_SYNC } else { USUAL_SYNC };
    let manager = name(900, "qmgr");
    let queue = Resource {
        kind: ResourceKind::File,
        name: "/var/spool/postfix/active".to_owned(),
        detail: [("device".to_owned(), "sdb1".to_owned())].into_iter().collect(),
    };
    let mut waits = vec![
        wait(&manager, Cause::DiskSync, sync, "fdatasync", queue),
        wait(
            &manager,
            Cause::Idle,
            MINUTE - sync,
            "epoll_wait",
            Resource::default(),
        ),
    ];
    for server in 0..servers {
        let who = name(1_000 + server, "smtpd");
        let busy = 20_000_000 + Ns::from((number * 7 + server) % 5) * 1_000_000;
        waits.push(wait(&who, Cause::CpuUser, busy, "", Resource::default()));
        waits.push(wait(
            &who,
            Cause::Idle,
            MINUTE - busy,
            "poll",
            Resource::default(),
        ));
    }
    let mut threads: BTreeMap<u32, ThreadLedger> = BTreeMap::new();
    let mut path: BTreeMap<Cause, Tally> = BTreeMap::new();
    for wait in &waits {
        let tally = Tally {
            ns: wait.ns,
            count: wait.count,
            max: wait.max,
            open: false,
        };
        let ledger = threads
            .entry(wait.asker.name.tid)
            .or_insert_with(|| ThreadLedger {
                name: wait.asker.name.clone(),
                threads: 1,
                wall: MINUTE,
                open: true,
                ..ThreadLedger::default()
            });
        ledger.causes.insert(wait.cause, tally);
        let sum = path.entry(wait.cause).or_default();
        sum.ns += tally.ns;
        sum.count += tally.count;
        sum.max = sum.max.max(tally.max);
    }
    let observed = MINUTE * threads.len() as u64;
    let elapsed = waits.iter().map(|wait| wait.path_ns).sum::<Ns>().max(MINUTE);
    let unix = BEGIN + i64::from(number) * MINUTE.cast_signed();
    Segment {
        head: Head {
            holdup: "0.1.0".to_owned(),
            command: vec!["unit postfix.service".to_owned()],
            pids: threads.keys().copied().collect(),
            host: Some("mail1".to_owned()),
            boot_id: Some("6c1f7ad4-94a8-4d5e-8b3a-0d2f6f0f9c11".to_owned()),
            kernel: Some("6.1.0-13-amd64".to_owned()),
            zone: Zone {
                name: Some("Europe/Zurich".to_owned()),
                offset: 3_600,
            },
            unit: Some("postfix.service".to_owned()),
            ..Head::new((SubjectKind::Attach, Backend::Bpf), (started, unix), MINUTE)
        },
        attributed: Attributed {
            elapsed,
            of_threads: true,
            wall: MINUTE,
            path,
            threads: threads.into_values().collect(),
            waits,
            coverage: Coverage {
                observed,
                attributed: observed,
                own_cost: 12_000_000,
                ..Coverage::default()
            },
            ..Attributed::default()
        },
        facts: SystemFacts {
            kernel_release: Some("6.1.0-13-amd64".to_owned()),
            cpus: Some(4),
            boot_minus_monotonic: Some(0),
            unix_minus_monotonic: Some(BEGIN - UP.cast_signed()),
            ..SystemFacts::default()
        },
        look: None,
    }
}
