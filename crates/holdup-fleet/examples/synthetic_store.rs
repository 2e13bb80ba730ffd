//! Fills a directory with the recordings of many hosts that never were, for those who measure or compare what reads a store.
//!
//! In: `DIRECTORY HOSTS MINUTES ROWS`. Out: a segment a host and minute in the [layout](../../../docs/fleet.md) of a store, each with that many
//! waits, and on stdout what all waits add up to, nanoseconds. The same arguments make the same store. How much time a cause takes
//! is made up; what is compared with it are sums, and how many objects of which size there are.

#![allow(clippy::print_stdout, reason = "an example for the command line")]

use anyhow::{Context, bail};
use holdup_evidence::{Cause, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, SubjectKind};
use holdup_recording::{Head, Segment};
use holdup_store::layout::{self, Name};
use std::path::Path;

/// Length of a segment, nanoseconds.
const MINUTE_NS: u64 = 60_000_000_000;

/// 2026-11-29 08:00 UTC, nanoseconds of Unix time.
const BEGIN_NS: i64 = 1_795_939_200_000_000_000;

/// When the hosts started before the first segment, nanoseconds.
const UPTIME_NS: u64 = 1_000_000_000;

/// What the waits are for, in turn.
const CAUSES: [Cause; 6] = [
    Cause::Idle,
    Cause::DiskSync,
    Cause::LockFutex,
    Cause::NetReceive,
    Cause::IpcPipe,
    Cause::TimerSleep,
];

/// Who waits, in turn.
const PROGRAMS: [&str; 7] = [
    "nginx",
    "checkout",
    "postgres",
    "redis-server",
    "cron",
    "backup",
    "java",
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, hosts, minutes, rows] = arguments.as_slice() else {
        bail!("usage: synthetic_store DIRECTORY HOSTS MINUTES ROWS");
    };
    let (hosts, minutes, rows): (u64, u64, u64) = (hosts.parse()?, minutes.parse()?, rows.parse()?);
    let mut sum: u64 = 0;
    for host in 0..hosts {
        for minute in 0..minutes {
            let segment = segment(host, minute, rows)?;
            sum += segment.attributed.waits.iter().map(|wait| wait.ns).sum::<u64>();
            put(Path::new(directory), &segment)?;
        }
    }
    println!("{sum}");
    Ok(())
}

/// A minute of a host.
fn segment(host: u64, minute: u64, rows: u64) -> anyhow::Result<Segment> {
    let began = (
        UPTIME_NS + minute * MINUTE_NS,
        BEGIN_NS + (minute * MINUTE_NS).cast_signed(),
    );
    let head = Head {
        host: Some(format!("host-{host}")),
        boot_id: Some(format!("{host:016x}-boot")),
        kernel: Some("6.1".to_owned()),
        command: vec!["the whole machine".to_owned()],
        ..Head::new((SubjectKind::Attach, Backend::Bpf), began, MINUTE_NS)
    };
    let waits: Vec<serde_json::Value> = (0..rows)
        .map(|row| wait(host, minute, row))
        .collect::<anyhow::Result<_>>()?;
    let attributed: Attributed = serde_json::from_value(serde_json::json!({
        "of_threads": true, "elapsed": MINUTE_NS, "wall": MINUTE_NS, "waits": waits,
    }))
    .context("make a segment")?;
    Ok(Segment {
        head,
        attributed,
        facts: SystemFacts::default(),
        look: None,
    })
}

/// One wait of that minute: its length is odd in the last digits, so that a sum that was rounded differs.
fn wait(host: u64, minute: u64, row: u64) -> anyhow::Result<serde_json::Value> {
    let cause = pick(&CAUSES, row)?;
    let program = pick(&PROGRAMS, row / 6)?;
    let ns = 1_000_003 + (host * 7_919 + minute * 104_729 + row * 1_299_709) % 997_000_000;
    let name = serde_json::json!({"pid": 100 + row, "tid": 100 + row, "process": program, "thread": program});
    Ok(serde_json::json!({
        "cause": cause, "ns": ns, "count": 1 + row % 50, "max": ns / 2,
        "resource": {"name": format!("thing-{}", row % 37)}, "asker": {"name": name},
    }))
}

fn pick<T: Copy>(all: &[T], turn: u64) -> anyhow::Result<T> {
    let place = usize::try_from(turn)? % all.len();
    all.get(place).copied().context("nothing to pick from")
}

/// Where a recorder would have put it.
fn put(directory: &Path, segment: &Segment) -> anyhow::Result<()> {
    let host = segment.head.host.as_deref().unwrap_or_default();
    let id = layout::host_id(Some(host), host);
    let path = directory.join(layout::place(&id, &Name::of(&segment.head)));
    let folder = path.parent().context("a place without a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    holdup_recording::save(segment, &path).with_context(|| format!("write {}", path.display()))
}
