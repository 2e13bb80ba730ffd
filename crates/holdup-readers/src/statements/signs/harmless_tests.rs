//! Texts of healthy programs that look like signs of trouble, and are none.

use crate::read_text;
use holdup_evidence::observed::StatementKind as Kind;

const TEXTS: [(&str, &str); 6] = [
    (
        "a time of day and a limit of bytes",
        "time=1796004732 level=info msg=\"gc done\" mem_threshold=1073741824\n",
    ),
    (
        "another unit in the name",
        "call done duration_ms=850 write_threshold_s=1\n",
    ),
    (
        "a length that ought to be long",
        "lease ok lifetime=86400 renew_threshold=3600\n",
    ),
    ("a part of a word", "socket ok flags=24 retry_threshold=3\n"),
    (
        "runs that copy as much as the one before",
        "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.51 s, 428 MB/s\n\
         1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.48 s, 433 MB/s\n\
         1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.60 s, 413 MB/s\n\
         1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.55 s, 421 MB/s\n\
         1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.58 s, 416 MB/s\n\
         1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.47 s, 434 MB/s\n",
    ),
    (
        "a mean and a maximum of two things",
        "queue: max 5 us avg 2 us\ndisk read: max 9 ms avg 4 ms\nprobe ok: avg=3ms, max allowed 5s\n",
    ),
];

#[test]
fn what_healthy_programs_write_is_no_sign() {
    for (what, text) in TEXTS {
        let all = read_text("t", text.as_bytes()).observed.statements;
        let wrong = all
            .iter()
            .find(|one| matches!(one.kind, Kind::Stalled | Kind::TimedOut | Kind::Exhausted));
        assert_eq!(wrong.map(|one| &one.text), None, "{what}");
    }
}

#[test]
fn the_end_of_a_trouble_is_no_trouble() {
    for text in [
        "2024-03-01T10:00:00 mon.a [INF] Health check cleared: OSD_FULL (was: 1 full osd(s))\n",
        "2024-03-01T10:00:00 mon.a [INF] Health check cleared: PG_AVAILABILITY (was: Reduced data availability: 3 pgs inactive)\n",
        "smartd[812]: Device: /dev/sda [SAT], No more Currently unreadable (pending) sectors, warning condition reset after 1 email\n",
    ] {
        assert_eq!(read_text("t", text.as_bytes()).observed.statements, [], "{text}");
    }
}

#[test]
fn a_device_that_is_there_or_came_is_not_missed() {
    let checked = "[  ***  ] A start job is running for File System Check on /dev/mapper/vg-data (1min 3s / no limit)\n";
    let came = "[    **] A start job is running for dev-disk-by\\x2duuid-77.device (6s / 1min 30s)\n\
        [  OK  ] Found device Disk 77.\n";
    for text in [checked, came] {
        let all = read_text("t", text.as_bytes()).observed.statements;
        assert!(
            !all.iter().any(|one| one.text.contains("does not appear")),
            "{text}"
        );
    }
}
