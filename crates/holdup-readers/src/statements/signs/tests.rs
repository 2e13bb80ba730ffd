//! Tests of all watchers, through the reader of texts.

use crate::read_text;
use holdup_evidence::observed::{Statement, StatementKind};

fn said(text: &str) -> Vec<Statement> {
    read_text("t", text.as_bytes()).observed.statements
}

fn has(text: &str, wanted: &str) -> Statement {
    let all = said(text);
    let found = all.iter().find(|one| one.text.contains(wanted));
    found.unwrap_or_else(|| panic!("{wanted}: {all:#?}")).clone()
}

fn has_not(text: &str, wanted: &str) {
    let all = said(text);
    assert!(
        all.iter().all(|one| !one.text.contains(wanted)),
        "{wanted}: {all:#?}"
    );
}

#[test]
fn a_limit_that_was_passed_is_told_with_its_largest_value() {
    let line = |second: u32, value: &str| {
        format!(
            "2026-01-02 00:00:{second:02} [warn]: #1 write took longer time than slow_write_threshold: elapsed_time={value} slow_write_threshold=20.0 plugin_id=\"object:b7\"\n"
        )
    };
    let text = format!("{}{}{}", line(1, "20.5"), line(7, "31.25"), line(9, "22.0"));
    let one = has(
        &text,
        "3 times, at most: elapsed_time 31.25 is over slow_write_threshold 20.0",
    );
    assert!(one.text.contains("object:b7"), "{}", one.text);
    let one = has(
        "2026-01-02T00:00:01Z level=warn msg=\"slow apply\" took=1.5s threshold=500ms member=a\n",
        "took 1.5s is over threshold 500ms",
    );
    assert_eq!(one.ns, Some(1_500_000_000));
    let one = has(
        "task report elapsed_ms=1200, limit_ms=800\n",
        "elapsed_ms 1200 is over limit_ms 800",
    );
    assert_eq!(one.ns, Some(1_200_000_000));
    for within in [
        "took=0.2s threshold=500ms\n",
        "elapsed_time=3 limit=20\n",
        "time=1700000000 limit=20\n",
        "threshold=0 elapsed=4\n",
        "GET /a?limit=10 elapsed=350\n",
        "timeout=30 time_limit=20\n",
    ] {
        has_not(within, "is over");
    }
}

#[test]
fn errors_with_codes_are_told_together_gravest_first() {
    let text = "2026-01-02T03:04:05+00:00 app[web.2]: Process running mem=700M(136.7%)\n\
        2026-01-02T03:04:05+00:00 app[web.2]: Error R14 (Memory quota exceeded)\n\
        2026-01-02T03:01:06+00:00 app[router]: Error H12 (Request timeout) -> shop/a service=30000ms status=503\n\
        2026-01-02T03:02:06+00:00 app[router]: Error H12 (Request timeout) -> shop/b service=30001ms status=503\n";
    let one = has(
        text,
        "app[web.2]: error R14 (Memory quota exceeded), mem=700M(136.7%); app[router]: error H12 (Request timeout), 2 times, longest 30001 ms",
    );
    assert_eq!(one.kind, StatementKind::Exhausted);
    has_not("app: Error R14 (Memory quota exceeded)\n", "app: error R14");
    has_not("Error (a)\nError 5 (b)\nerror A (c)\nError H (d)\n", "; ");
}

#[test]
fn a_boot_without_its_root_device() {
    let mut text = String::new();
    for at in 1..5 {
        text.push_str(&format!(
            "[  {at}0.336428] dracut-initqueue[54]: Warning: dracut-initqueue: timeout, still waiting for following initqueue hooks:\n\
             [  {at}0.357748] dracut-initqueue[54]: Warning: /lib/dracut/hooks/initqueue/finished/devexists-x.sh: \"[ -e \"/dev/disk/by-uuid/77\" ]\"\n"
        ));
    }
    let one = has(
        &text,
        "the boot is waiting in dracut-initqueue for /dev/disk/by-uuid/77, which does not appear; still waiting was reported 4 times; from 10.3 s to 40.4 s",
    );
    assert_eq!(one.kind, StatementKind::TimedOut);
    has_not(
        &format!("{text}[   50.1] EXT4-fs (sda1): mounted filesystem with ordered data mode\n"),
        "the boot is",
    );
    has(
        "Begin: Waiting for root file system ... done.\nGave up waiting for root file system device.  Common problems:\n\
         ALERT!  UUID=12-34 does not exist.  Dropping to a shell!\n",
        "the boot gave up waiting in",
    );
    has(
        "[  *** ] A start job is running for /dev/disk/by-label/data (1min 30s / no limit)\n",
        "the boot is waiting in systemd for /dev/disk/by-label/data",
    );
    has_not(
        "[    1.2] Waiting for root device /dev/mmcblk0p2...\n",
        "the boot",
    );
    has_not(
        "[ *** ] A start job is running for Network Setup (10s / no limit)\n",
        "the boot",
    );
}

#[test]
fn the_largest_of_times_that_is_far_from_their_mean() {
    let one = has(
        "load: cyclic:   mean: 3826.39 ns, mode: 2968 ns\nload: cyclic:   min: 2603 ns, max: 2073993 ns, std.dev. 29163.42\n",
        "load: cyclic: the largest delay is 2.1 ms, 542 times the mean of 3.8 µs",
    );
    assert_eq!(one.ns, Some(2_073_993));
    has(
        "min/avg/max/mdev = 9.6 us / 12.0 us / 30.0 ms / 1.1 us\n",
        "the largest delay is 30.0 ms, 2500 times the mean of 12 µs",
    );
    for usual in [
        "mean: 10 us\nmax: 400 us\n",
        "mean: 10 ms\nmax: 90 ms\n",
        "mean: 10 us\n\n\n\n\nmax: 90 ms\n",
        "max: 90 ms\n",
    ] {
        has_not(usual, "largest delay");
    }
}

#[test]
fn a_cache_that_never_hits() {
    let one = has(
        "cache directory  /var/cache/cc\ncache hit (direct)                     0\ncache hit (preprocessed)               0\n\
         cache miss                          6459\ncache hit rate                      0.00 %\ncalled for link  16\n\
         unsupported compiler option         3954\nno input file  5\nfiles in cache  30631\nmax cache size   10.0 GB\n",
        "0 hits and 6459 misses (0.00 % hits); beside them unsupported compiler option: 3954",
    );
    assert_eq!(one.share, Some(1.0));
    has(
        "Cacheable calls:   500 / 700 (71.43%)\n  Hits:              2 / 500 ( 0.40%)\n  Misses:          498 / 500 (99.60%)\n\
         Uncacheable calls: 200 / 700 (28.57%)\n",
        "2 hits and 498 misses",
    );
    for good in [
        "cache hit (direct)  900\ncache miss   100\n",
        "Hits: 0\nMisses: 4\n",
        "cache hit  0\nthe rest of it\n\n\n\n\n\n\ncache miss 5000\n",
    ] {
        has_not(good, "never hits");
    }
}

fn status(minute: u32, done: &str, checks: u32) -> String {
    format!(
        "\nTransferred:   {done} MBytes (3{minute}.3 kBytes/s)\nErrors:                 0\nChecks:             {checks}\nElapsed time:  6h3{minute}m22.5s\n"
    )
}

#[test]
fn a_status_that_stands_still() {
    let stands: String = (1..8).map(|minute| status(minute, "857.928", 67_737)).collect();
    let one = has(
        &stands,
        "no progress in 6 min 0 s: 7 reports with the same amounts, from 6h31m22.5s to 6h37m22.5s",
    );
    assert!(one.text.contains("857.928 MBytes"), "{}", one.text);
    assert_eq!(one.kind, StatementKind::Stalled);
    let moves: String = (1..8)
        .map(|minute| status(minute, "857.928", 67_737 + minute))
        .collect();
    has_not(&moves, "no progress");
    let copied: String = (1..9)
        .map(|second| format!("1048576 bytes (1.0 MB, 1.0 MiB) copied, {second}0 s, 1{second} kB/s\n"))
        .collect();
    has(&copied, "no progress in 1 min 10 s");
    let grows: String = (1..9)
        .map(|second| {
            format!("{second}048576 bytes ({second}.0 MB, 1.0 MiB) copied, {second}0 s, 1{second} kB/s\n")
        })
        .collect();
    has_not(&grows, "no progress");
    let idle: String = (1..9)
        .map(|second| format!("2026-01-02 03:04:0{second} INFO received 12 messages at 0 B/s\n"))
        .collect();
    has_not(&idle, "no progress");
}

#[test]
fn rubbish_is_bounded() {
    let mut text = String::new();
    for number in 0..3_000 {
        text.push_str(&format!("limit={number} elapsed=9{number} id=x{number} hit 7 miss 8 mean: 1 us max: {number} ms Error A{number} (b) 5 B/s % received:{number}\n"));
    }
    let all = said(&text);
    assert!(all.len() < 2_000, "{}", all.len());
}
