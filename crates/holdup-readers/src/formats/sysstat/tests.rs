//! Tests of the sysstat family: units, first reports, tables of a day, several hosts, JSON cut short, and rubbish.

use crate::{Reading, read_text};
use holdup_evidence::observed::{Metric, Series, When};

const MIDDLE: &str = "Time: 05:11:56 AM
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           5.92    0.00    5.36   21.74    0.00   66.99

Device:         rrqm/s   wrqm/s     r/s     w/s    rMB/s    wMB/s avgrq-sz avgqu-sz   await  svctm  %util
sdb               0.00   700.40    0.00  180.40     0.00     3.90    44.12     4.62   25.35   5.46  98.96

Time: 05:12:06 AM
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           5.05    0.00    4.34   19.98    0.00   70.64

Device:         rrqm/s   wrqm/s     r/s     w/s    rMB/s    wMB/s avgrq-sz avgqu-sz   await  svctm  %util
sdb               0.00   630.60    0.00  164.80     0.00     3.64    45.20     3.37   20.56   5.47  90.16
";

const BANNER: &str = "Linux 6.1.0 (host1) \t2026-11-22 \t_x86_64_\t(8 CPU)\n\n";

fn series<'a>(reading: &'a Reading, metric: Metric, of: &str) -> &'a Series {
    let found = reading.observed.of(metric).find(|series| series.of == of);
    found.unwrap_or_else(|| panic!("no {metric:?} of {of:?}: {:?}", reading.accounts))
}

fn values(reading: &Reading, metric: Metric, of: &str) -> Vec<f64> {
    series(reading, metric, of)
        .points
        .iter()
        .map(|point| point.value)
        .collect()
}

#[test]
fn a_log_without_banner_has_no_average_since_boot() {
    let reading = read_text("x", MIDDLE.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "iostat");
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sdb"), [98.96, 90.16]);
    // Megabytes become KiB, sectors of 512 bytes too.
    assert_eq!(values(&reading, Metric::DiskRequestKib, "sdb")[0], 22.06);
    assert_eq!(
        values(&reading, Metric::DiskWriteKibPerSecond, "sdb")[0],
        3.90 * 1024.0
    );
    let points = &series(&reading, Metric::CpuIdlePercent, "").points;
    assert!(points.iter().all(|point| !point.since_boot));
    assert_eq!(points[1].over, Some(10_000_000_000));
    assert_eq!((points[1].report, points[1].quote.line), (1, 10));
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn with_a_banner_the_first_report_is_since_boot_but_with_y() {
    let report = MIDDLE
        .replace("Time: 05:11:56 AM\n", "")
        .replace("Time: 05:12:06 AM\n", "");
    for (head, first) in [
        ("", true),
        ("$ iostat -xyz 1 2\n", false),
        ("$ iostat -xz --human 1\n", true),
    ] {
        let reading = read_text("x", format!("{head}{BANNER}{report}").as_bytes());
        let points = &series(&reading, Metric::DiskUtilPercent, "sdb").points;
        assert_eq!(
            points.iter().map(|p| p.since_boot).collect::<Vec<_>>(),
            [first, false],
            "{head}"
        );
        let last = reading.accounts.last().unwrap();
        assert_eq!(last.not_understood, 0);
        assert_eq!(
            (reading.facts.cpus, reading.facts.kernel_release.as_deref()),
            (Some(8), Some("6.1.0"))
        );
        assert_eq!(
            reading.observed.sources.last().unwrap().host.as_deref(),
            Some("host1")
        );
    }
}

#[test]
fn any_order_of_columns_commas_units_and_odd_hyphens() {
    let text = "avg\u{2010}cpu: %idle %user\n 7,5 90,0\n\nDevice %util aqu\u{2011}sz rkB/s r/s\nsdb 99,00 1,5 1,5M 3,00\n";
    let reading = read_text("x", text.as_bytes());
    assert_eq!(values(&reading, Metric::CpuIdlePercent, ""), [7.5]);
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sdb"), [99.0]);
    assert_eq!(values(&reading, Metric::DiskQueueLength, "sdb"), [1.5]);
    assert_eq!(values(&reading, Metric::DiskReadKibPerSecond, "sdb"), [1536.0]);
    let tail =
        "avg-cpu: %idle\n 50\n\n r/s rkB/s Device\n 3.0 4.0k sda\n\n aqu-sz %util Device\n 0.1 12.5% sda\n";
    let reading = read_text("x", tail.as_bytes());
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), [12.5]);
    // Several tables of one report.
    assert_eq!(
        series(&reading, Metric::DiskUtilPercent, "sda").points[0].report,
        0
    );
}

#[test]
fn absurd_and_negative_figures_are_not_taken() {
    let text = "Device r/s rsec/s %util\nsda -3.0 18446744073709551615.00 100.30\nsdb 1.0 2.0 1250.00\n";
    let reading = read_text("x", text.as_bytes());
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), [100.0]);
    assert!(values(&reading, Metric::DiskReadsPerSecond, "sda").is_empty());
    assert!(values(&reading, Metric::DiskReadKibPerSecond, "sda").is_empty());
    assert!(values(&reading, Metric::DiskUtilPercent, "sdb").is_empty());
}

#[test]
fn tables_of_a_day_are_joined_by_their_times_past_midnight() {
    let text = format!(
        "{BANNER}11:50:01 PM CPU %user %idle\n12:00:01 AM all 10.0 90.0\n12:10:01 AM all 20.0 80.0\n\
         Average: all 15.0 85.0\n\n11:50:01 PM LINUX RESTART (8 CPU)\n\
         11:50:01 PM DEV tps %util\n12:00:01 AM sda 5.0 50.0\n12:00:01 AM sdb 5.0 51.0\n12:10:01 AM sda 6.0 60.0\n\
         Durchschn.: sda 5.5 55.0\n"
    );
    let reading = read_text("x", text.as_bytes());
    let (idle, util) = (
        series(&reading, Metric::CpuIdlePercent, ""),
        series(&reading, Metric::DiskUtilPercent, "sda"),
    );
    let reports = |series: &Series| {
        series
            .points
            .iter()
            .map(|point| (point.report, point.at))
            .collect::<Vec<_>>()
    };
    assert_eq!(reports(idle), reports(util));
    assert_eq!(idle.points.len(), 2);
    assert_eq!(util.points[0].over, Some(600_000_000_000));
    let Some(When::Civil(at)) = util.points[1].at else {
        panic!("{util:?}")
    };
    assert_eq!((at.day, at.of_day), (Some(20_780), 601_000_000_000));
    assert_eq!(reading.accounts[0].not_understood, 0, "{:?}", reading.accounts);
    assert_eq!(reading.observed.sources[0].format, "sar");
}

#[test]
fn a_tool_without_interval_prints_the_average_since_boot() {
    let of = |text: &str| {
        let reading = read_text("x", format!("{BANNER}{text}").as_bytes());
        let points = &series(&reading, Metric::CpuIdlePercent, "").points;
        (reading.observed.sources[0].format.clone(), points[0].since_boot)
    };
    let columns = "CPU %usr %nice %sys %iowait %irq %soft %steal %guest %idle";
    let row = "all 1 0 1 0 0 0 0 0 98";
    let text = format!("04:00:01 {columns}\n04:00:01 {row}\n");
    assert_eq!(of(&text), ("mpstat".to_owned(), true));
    let text = format!("04:00:01 {columns}\n04:00:02 {row}\n");
    assert_eq!(of(&text), ("mpstat".to_owned(), false));
}

#[test]
fn processes_with_blanks_and_threads() {
    let text = "04:00:01 UID TGID TID %usr %CPU CPU Command\n04:00:02 0 77 - 1.0 31.0 1 Web Content\n\
                04:00:02 0 - 78 1.0 30.0 1 |__GC Thread#0\n\n# Time UID PID kB_wr/s Command\n1396137601 0 9 5.0 dd\n";
    let reading = read_text("x", text.as_bytes());
    assert_eq!(
        values(&reading, Metric::ProcessCpuPercent, "Web Content (pid 77)"),
        [31.0]
    );
    assert_eq!(reading.observed.of(Metric::ProcessCpuPercent).count(), 1);
    assert_eq!(
        values(&reading, Metric::ProcessWriteKibPerSecond, "dd (pid 9)"),
        [5.0]
    );
    assert_eq!(reading.accounts[0].not_understood, 0, "{:?}", reading.accounts);
}

#[test]
fn a_second_banner_begins_another_artefact() {
    let text = format!("{BANNER}{MIDDLE}{}{MIDDLE}", BANNER.replace("host1", "host2"));
    let reading = read_text("x", text.as_bytes());
    let hosts: Vec<_> = reading
        .observed
        .sources
        .iter()
        .map(|s| s.host.as_deref())
        .collect();
    assert_eq!(hosts, [Some("host1"), Some("host2")]);
    assert_eq!(reading.observed.of(Metric::DiskUtilPercent).count(), 2);
}

const JSON: &str = r#"{"sysstat": {"hosts": [{"nodename": "host1", "release": "6.1.0", "number-of-cpus": 2, "statistics": [
{"timestamp": "2026-11-22 04:02:28", "avg-cpu": {"user": 1.0, "iowait": 3.0, "idle": 96.0},
 "disk": [{"disk_device": "sda", "r/s": 1.5, "rrqm": 50.0, "rrqm/s": 2.0, "util": 9.0}]},
{"timestamp": "2026-11-22 04:02:29", "avg-cpu": {"user": 2.0, "iowait": 3.0, "idle": 95.0},
 "disk": [{"disk_device": "sda", "r/s": 2.5, "rrqm": 50.0, "rrqm/s": 2.0, "util": 99.0}]}
]}]}}"#;

#[test]
fn json_is_read_as_far_as_it_goes() {
    let reading = read_text("x", JSON.as_bytes());
    let util = series(&reading, Metric::DiskUtilPercent, "sda");
    assert_eq!(
        util.points
            .iter()
            .map(|p| (p.value, p.since_boot))
            .collect::<Vec<_>>(),
        [(9.0, true), (99.0, false)]
    );
    assert_eq!(
        values(&reading, Metric::DiskReadsMergedPerSecond, "sda"),
        [2.0, 2.0]
    );
    assert_eq!(reading.facts.cpus, Some(2));
    let whole = reading.observed.series.len();
    for end in 0..JSON.len() {
        let reading = read_text("x", &JSON.as_bytes()[..end]);
        assert!(reading.observed.series.len() <= whole);
    }
    let cut = JSON.find("\"user\": 2.0").unwrap();
    let reading = read_text("x", &JSON.as_bytes()[..cut]);
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), [9.0]);
    assert_eq!(reading.accounts[0].not_understood, 1);
    assert!(!reading.accounts[0].problems.is_empty());
}

#[test]
fn hostile_text_of_any_kind_is_survived() {
    let sar =
        "04:00:01 PM CPU %user %idle\n04:00:02 PM all 10.0 90.0\n#Time UID PID %CPU Command\n1 2 3 4 x\n";
    let whole = format!("$ iostat -y\n{BANNER}{MIDDLE}{sar}");
    for at in 0..whole.len() {
        // Cut anywhere, and with rubbish in the middle of it.
        let (head, tail) = whole.as_bytes().split_at(at);
        let _ = read_text("x", head);
        for rubbish in [
            &b"\0\0"[..],
            b"\xe2\x80\x90\xff",
            b" 99999999999999999999 ",
            b"\r\n\r\n",
            b": -1 # / \xc2\xa0",
        ] {
            let reading = read_text("x", &[head, rubbish, tail].concat());
            let account = &reading.accounts[0];
            assert_eq!(
                account.lines,
                account.evidence + account.ignorable + account.not_understood
            );
        }
    }
    let wide = format!(
        "04:00:01 INTR {}\n04:00:02 sum {}\n",
        "CPU ".repeat(500),
        "1.0 ".repeat(500)
    );
    let _ = read_text("x", format!("{BANNER}{wide}").as_bytes());
}

#[test]
fn rows_of_cpus_that_lost_their_heading() {
    let mpstat = "10:00:01 PM  all    6.00    0.00    2.00   31.00    0.00    0.50    0.00    0.00    0.00   60.50\n\
        10:00:02 PM    0   12.00    0.00    3.00   84.50    0.00    0.50    0.00    0.00    0.00    0.00\n\
        10:00:03 PM  all    5.00    0.00    2.00   33.00    0.00    0.50    0.00    0.00    0.00   59.50\n";
    let reading = read_text("m", mpstat.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "mpstat");
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(values(&reading, Metric::CpuIowaitPercent, ""), [31.0, 33.0]);
    assert_eq!(values(&reading, Metric::CpuIowaitPercent, "cpu0"), [84.5]);
    let sar = "11:10:01        all      9.10      0.00      3.40     41.20      0.00     46.30\n\
        11:20:01        all      8.10      0.00      3.40     42.20      0.00     46.30\n";
    let reading = read_text("s", sar.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "sar");
    assert_eq!(values(&reading, Metric::CpuIowaitPercent, ""), [41.2, 42.2]);
    // What does not add up is of something else.
    let other = sar.replace("9.10", "3.10").replace("8.10", "3.00");
    assert_ne!(read_text("s", other.as_bytes()).observed.sources[0].format, "sar");
}

#[test]
fn the_averages_alone_are_read() {
    let text = "Average:        CPU     %user     %nice   %system   %iowait    %steal     %idle\n\
        Average:        all      9.10      0.00      3.40     41.20      0.00     46.30\n\
        Average:          DEV       tps     rkB/s     wkB/s   areq-sz    aqu-sz     await     %util\n\
        Average:          sda     91.00   1000.00     20.00     11.00      9.00    120.00     99.10\n";
    let reading = read_text("a", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "sar");
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(values(&reading, Metric::CpuIowaitPercent, ""), [41.2]);
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), [99.1]);
}
