//! Tests of reports of stuck worker pools: that come again, quoted, wrapped, of newer kernels, and cut.

use crate::read_text;
use holdup_evidence::observed::StatementKind;

const TEXT: &str = "[ 336.887598] BUG: workqueue lockup - pool cpus=2 node=0 flags=0x0 nice=0 stuck for 42s!
[ 336.887606] Showing busy workqueues and worker pools:
[ 336.887607] workqueue events: flags=0x0
[ 336.887608]   pwq 10: cpus=5 node=0 flags=0x0 nice=0 active=3/256 refcnt=4
[ 336.887611]     pending: other_work, other_work
[ 336.887619]   pwq 4: cpus=2 node=0 flags=0x0 nice=0 active=15/256 refcnt=16
[ 336.887621]     in-flight: 3701:flush_all [blk]
[ 336.887624]     pending: average, 3*average, sweep [net], BAR(3701)
[ 336.887643] workqueue events_power_efficient: flags=0x80
[ 336.887644]   pwq 4: cpus=2 node=0 flags=0x0 nice=0 active=1/256 refcnt=2
[ 336.887645]     pending: sweep
[ 336.887646] pool 4: cpus=2 node=0 flags=0x0 nice=0 hung=42s workers=3 idle: 12 34
";

#[test]
fn the_function_that_has_the_worker_and_who_waits_for_it() {
    let reading = read_text("d", TEXT.as_bytes());
    assert_eq!(
        reading.texts(),
        [
            "flush_all (work queue events, worker 3701) is in flight in the kernel's worker pool of CPU 2, which has been stuck for 42 s \
            (workqueue lockup); 7 wait for it: 4 average, 2 sweep, BAR"
        ]
    );
    let one = &reading.observed.statements[0];
    assert_eq!((one.kind, one.ns), (StatementKind::Stalled, Some(42_000_000_000)));
    // The report comes again, and the later one stands.
    let again = TEXT.replace("42s", "73s").replace("[ 336", "[ 367");
    let texts = read_text("d", format!("{TEXT}{again}").as_bytes());
    assert!(texts.texts()[0].contains("stuck for 73 s"), "{texts:?}");
    assert_eq!(texts.texts().len(), 1);
}

#[test]
fn newer_kernels_tell_how_long_a_work_runs() {
    let text = TEXT.replace(
        "flush_all [blk]",
        "flush_all [blk] for 41s, bh:tasklet_run for 3s",
    );
    let reading = read_text("d", text.as_bytes());
    assert!(
        reading.texts()[0].starts_with(
            "flush_all (work queue events, worker 3701, for 41 s), tasklet_run (worker bh, for 3 s) are in flight in the kernel's worker pool"
        ),
        "{reading:?}"
    );
}

#[test]
fn a_report_without_times_that_was_quoted_and_wrapped() {
    let bare: String = TEXT
        .lines()
        .map(|line| format!("> {}\n", line.get(14..).unwrap_or_default()))
        .collect();
    let wrapped = bare.replace(" stuck for 42s!", " stuck\n> for 42s!");
    for text in [bare, wrapped] {
        let reading = read_text("d", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "dmesg", "{text}");
        assert!(
            reading.texts()[0].starts_with("flush_all (work queue events, worker 3701)"),
            "{reading:?}"
        );
        assert!(reading.texts()[0].contains("for 42 s"), "{reading:?}");
    }
}

#[test]
fn nothing_in_flight_and_rubbish() {
    let text = "[ 9.1] BUG: workqueue lockup - pool cpus=0-7 flags=0x4 nice=-20 stuck for 31s!\n[ 9.2] Freeing unused memory\n";
    assert_eq!(
        read_text("d", text.as_bytes()).texts(),
        [
            "the kernel's worker pool of CPUs 0-7 with nice -20 has been stuck for 31 s (workqueue lockup), and nothing in flight is \
            told of it"
        ]
    );
    for text in [
        "BUG: workqueue lockup - pool\nin-flight: :,:(\npending: *,99999999999999999999*x\npwq \n",
        "workqueue events: flags=0x0\n  in-flight: 3:x\n",
    ] {
        assert!(
            read_text("d", text.as_bytes()).observed.statements.len() <= 1,
            "{text}"
        );
    }
}
