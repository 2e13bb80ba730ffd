//! A look at that mail server, of `holdup host`. The same every time.

use crate::minutes::{UP, minute};
use holdup_evidence::Observed;
use holdup_evidence::host::{HostLook, HostSight, OlderTrouble, Use};
use holdup_evidence::observed::{
    Metric, Point, Quote, SeenFile, SeenThread, Series, Snapshot, SnapshotKind, Source, State, When,
};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, SubjectKind};
use holdup_recording::Segment;

/// A look at the machine for three seconds of that minute, its disk busy.
pub(crate) fn look(number: u32) -> Segment {
    let mut segment = minute(number, 1);
    let watched = 3_000_000_000;
    segment.head.kind = SubjectKind::Host;
    segment.head.backend = Backend::Proc;
    segment.head.command = vec!["this machine".to_owned()];
    segment.head.pids.clear();
    segment.head.length = watched;
    segment.attributed = Attributed {
        wall: watched,
        ..Attributed::default()
    };
    let mut observed = Observed::default();
    for name in ["/proc/diskstats", "/proc/PID/stat"] {
        observed.sources.push(Source {
            name: name.to_owned(),
            ..Source::default()
        });
    }
    let busy = [96.25, 97.4, 0.1 + 0.2];
    let points = busy.iter().zip(0..).map(|(value, report)| Point {
        report,
        value: *value,
        over: Some(1_000_000_000),
        ..Point::default()
    });
    observed.series.push(Series {
        metric: Metric::DiskUtilPercent,
        of: "sda".to_owned(),
        source: 0,
        points: points.collect(),
        count: 3,
        sum: busy.iter().sum(),
    });
    let stack = observed.stacks.intern(["folio_wait_bit", "ext4_sync_file"]);
    observed.snapshots.push(Snapshot {
        at: Some(When::SinceBoot(UP)),
        threads: vec![SeenThread {
            name: "qmgr".to_owned(),
            tid: Some(701),
            pid: Some(701),
            state: State::Uninterruptible,
            kernel_stack: Some(stack),
            file: Some(SeenFile {
                path: "/home/al/mail1/spool".to_owned(),
                disk: "sda".to_owned(),
                limits: vec![],
            }),
            ..SeenThread::default()
        }],
        total: Some(180),
        of_threads: Some(true),
        ..Snapshot::new(SnapshotKind::Kernel, Quote { source: 1, line: 0 })
    });
    let sight = HostSight {
        watched,
        lists: 1,
        threads: 180,
        cpu: vec![Use {
            process: "qmgr".to_owned(),
            pid: 701,
            amount: 12.5,
            ..Use::default()
        }],
        older: vec![OlderTrouble {
            what: "a disk's error".to_owned(),
            count: 1,
            ago: 7_200_000_000_000,
            text: "fetched https://al:hunter2@mail1/x".to_owned(),
        }],
        ..HostSight::default()
    };
    segment.look = Some(HostLook {
        observed,
        sight,
        ..HostLook::default()
    });
    segment
}
