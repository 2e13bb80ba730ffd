//! Tests of vmstat: of all versions, with other units, of disks, without a heading, and rubbish.

use crate::{Reading, read_text};
use holdup_evidence::observed::{Metric, When};

const TABLE: &str =
    "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- ----Zeitstempel----
 r  b   swpd   frei   buff  Cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
 8  1     70 231448  10792 111052   75   84  4742  3917  874 6070 43 17 36  3  0 2026-11-22 04:09:47
 2  1     71 231448  10792 111052  410    0     4  1985  484 2829 19  8 12 61  0 2026-11-22 04:09:49
";

fn values(reading: &Reading, metric: Metric, of: &str) -> Vec<(f64, bool)> {
    let found = reading.observed.of(metric).find(|series| series.of == of);
    let points = found.map(|series| series.points.as_slice()).unwrap_or_default();
    points
        .iter()
        .map(|point| (point.value, point.since_boot))
        .collect()
}

#[test]
fn the_first_row_is_since_boot_but_for_what_is_a_state() {
    let reading = read_text("v", TABLE.as_bytes());
    assert_eq!(
        values(&reading, Metric::SwapInKibPerSecond, ""),
        [(75.0, true), (410.0, false)]
    );
    assert_eq!(
        values(&reading, Metric::ProcessesRunnable, ""),
        [(8.0, false), (2.0, false)]
    );
    assert_eq!(values(&reading, Metric::MemoryFreeKib, "")[0], (231_448.0, false));
    let points = &reading
        .observed
        .of(Metric::CpuIowaitPercent)
        .next()
        .unwrap()
        .points;
    assert_eq!(points[1].over, Some(2_000_000_000));
    assert!(matches!(points[1].at, Some(When::Unix(_))));
    assert_eq!(reading.accounts[0].not_understood, 0);
    let reading = read_text("v", format!("# vmstat -y 2\n{TABLE}").as_bytes());
    assert_eq!(values(&reading, Metric::SwapInKibPerSecond, "")[0], (75.0, false));
}

#[test]
fn rows_that_lost_their_heading() {
    let text = " 3 14 812044 231448  10792 111052   75 9184  4742  3917  874 6070 13  7  0 80  0\n 2 11 812044 231448  10792 111052  \
        410 8000     4  1985  484 2829  9  8  2 81  0\n";
    let reading = read_text("v", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "vmstat");
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(
        values(&reading, Metric::CpuIowaitPercent, ""),
        [(80.0, false), (81.0, false)]
    );
    assert_eq!(
        values(&reading, Metric::SwapOutKibPerSecond, "")[0],
        (9184.0, false)
    );
    // What does not add up to a whole is of something else.
    for other in [
        text.replace(" 80  0", " 60  0").replace(" 81  0", " 11  0"),
        text.replace(" 0\n", " 0.0\n"),
    ] {
        assert_ne!(
            read_text("v", other.as_bytes()).observed.sources[0].format,
            "vmstat",
            "{other}"
        );
    }
}

#[test]
fn memory_in_another_unit_is_not_taken_for_kib() {
    let text = TABLE.replace("231448  10792 111052", "   226     10    108");
    let reading = read_text("v", text.as_bytes());
    assert_eq!(values(&reading, Metric::MemoryFreeKib, ""), []);
    assert_eq!(values(&reading, Metric::SwapUsedKib, ""), []);
    assert_eq!(values(&reading, Metric::CpuIdlePercent, "").len(), 2);
}

#[test]
fn counters_of_disks_are_told_by_their_differences() {
    let text =
        "disk- ------------reads------------ ------------writes----------- -----IO------ -----timestamp-----
   total merged sectors      ms  total merged sectors      ms    cur    sec                 CET
sda      100     10     800     500    200     20    1600    1000      0      5 2026-11-22 04:09:40
sda      110     10     880     700    200     20    1600    1000      0     15 2026-11-22 04:10:00
";
    let reading = read_text("v", text.as_bytes());
    assert_eq!(values(&reading, Metric::DiskReadWaitMs, "sda"), [(20.0, false)]);
    assert_eq!(
        values(&reading, Metric::DiskReadRequestKib, "sda"),
        [(4.0, false)]
    );
    assert_eq!(
        values(&reading, Metric::DiskReadsPerSecond, "sda"),
        [(0.5, false)]
    );
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), [(50.0, false)]);
    // Nothing was written: there is no time for a write.
    assert_eq!(values(&reading, Metric::DiskWriteWaitMs, "sda"), []);
}

#[test]
fn hostile_text_of_any_kind_is_survived() {
    let disks = "disk- ---reads---\n total merged sectors ms total merged sectors ms cur sec\nsda 1 1 1 1 1 1 1 1 1 1\nsda 0 2 2 2 2 2 2 2 2 2\n";
    let whole = format!("{TABLE}{disks}");
    for at in 0..whole.len() {
        let (head, tail) = whole.as_bytes().split_at(at);
        for rubbish in [
            &b""[..],
            b"\0",
            b"\xff ",
            b" 99999999999999999999999 ",
            b" -1 ",
            b"\r\n",
        ] {
            let reading = read_text("v", &[head, rubbish, tail].concat());
            let account = &reading.accounts[0];
            assert_eq!(
                account.lines,
                account.evidence + account.ignorable + account.not_understood
            );
        }
    }
}
