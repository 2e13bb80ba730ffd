//! Files of /proc and /sys as people paste them: with headings, with prefixes, cut, and with absurd figures.

use crate::{FORMATS, Reading, read_as, read_text};
use holdup_evidence::observed::Metric;

/// Values and whether each is of the time since boot.
fn values(reading: &Reading, metric: Metric, of: &str) -> Vec<(f64, bool)> {
    let series = reading.observed.of(metric).filter(|series| series.of == of);
    series
        .flat_map(|series| series.points.iter().map(|point| (point.value, point.since_boot)))
        .collect()
}

const DISK: &str = "   8       0 sda 1000 10 8000 2000 500 5 4000 1500 0 3000 3500 0 0 0 0 100 200\n   8       1 sda1 1 0 8 2 0 0 0 0 0 2 2 0 0 0 0 0 0\n";
const LATER: &str = "   8       0 sda 1100 10 8800 2400 500 5 4000 1500 0 4800 5500 0 0 0 0 110 230\n   8       1 sda1 1 0 8 2 0 0 0 0 0 2 2 0 0 0 0 0 0\n";

#[test]
fn disks_by_the_difference_of_two_readings() {
    let text = format!("37.50 70.10\n{DISK}39.50 73.10\n{LATER}");
    let reading = read_text("d", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "diskstats");
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), [(90.0, false)]);
    assert_eq!(
        values(&reading, Metric::DiskReadsPerSecond, "sda"),
        [(50.0, false)]
    );
    assert_eq!(
        values(&reading, Metric::DiskReadWaitMs, "sda"),
        [(2.0, true), (4.0, false)]
    );
    assert_eq!(values(&reading, Metric::DiskFlushWaitMs, "sda")[1], (3.0, false));
    assert_eq!(values(&reading, Metric::DiskQueueLength, "sda"), [(1.0, false)]);
    assert_eq!(
        (reading.accounts[0].not_understood, &*reading.accounts[0].problems),
        (0, &[][..])
    );
}

#[test]
fn without_times_no_rate_is_told() {
    let reading = read_text("d", format!("{DISK}{LATER}").as_bytes());
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), []);
    assert_eq!(
        values(&reading, Metric::DiskReadWaitMs, "sda"),
        [(2.0, true), (4.0, false)]
    );
    assert_eq!(reading.accounts[0].problems.len(), 1);
}

#[test]
fn old_kernels_have_fewer_fields_and_counters_begin_again() {
    let old = "   8    0 sda 10 0 80 20 5 0 40 15 0 30 35\n";
    let reading = read_text("d", format!("{old}{}", old.replace("80 20", "80 4")).as_bytes());
    assert_eq!(values(&reading, Metric::DiskReadWaitMs, "sda")[0], (2.0, true));
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn files_with_prefixes_share_the_time_of_uptime() {
    let mut text = String::new();
    for (uptime, disk, idle) in [("37.50 70.10", DISK, 1000), ("39.50 73.10", LATER, 1100)] {
        text += &format!("/proc/uptime:{uptime}\n");
        for line in disk.lines() {
            text += &format!("/proc/diskstats:{line}\n");
        }
        text += &format!(
            "/proc/stat:cpu  {} 0 0 {idle} 0 0 0 0 0 0\n/proc/stat:cpu0 5 0 0 5\n",
            idle * 3
        );
        text += "/proc/stat:procs_running 9\n/proc/stat:procs_blocked 2\n";
    }
    let reading = read_text("d", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "kernel-files");
    assert_eq!(values(&reading, Metric::DiskUtilPercent, "sda"), [(90.0, false)]);
    assert_eq!(
        values(&reading, Metric::CpuIdlePercent, ""),
        [(25.0, true), (25.0, false)]
    );
    assert_eq!(values(&reading, Metric::ProcessesRunnable, ""), [(8.0, false)]);
    assert_eq!(
        (reading.facts.cpus, reading.accounts[0].not_understood),
        (Some(1), 0)
    );
}

#[test]
fn files_under_headings_are_each_read_by_their_own_format() {
    let text = "==> /proc/meminfo <==\nMemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:         12 kB\nSwapTotal: 8 kB\nSwapFree: 5 kB\nVmallocTotal:   34359738367 kB\n\n\
        ==> /proc/pressure/memory <==\nsome avg10=0.00 avg60=20.00 avg300=0.10 total=5\n\n==> /proc/sys/fs/file-nr <==\n756\t0\t2466177\n\n\
        ==> /proc/sys/kernel/random/entropy_avail <==\n256\n";
    let reading = read_text("d", text.as_bytes());
    assert_eq!(values(&reading, Metric::MemoryAvailableKib, ""), [(12.0, false)]);
    assert_eq!(values(&reading, Metric::SwapUsedKib, ""), [(3.0, false)]);
    assert_eq!(
        values(&reading, Metric::PressureMemorySomePercent, "")[1],
        (20.0, false)
    );
    assert_eq!(values(&reading, Metric::OpenFiles, ""), [(756.0, false)]);
    assert_eq!(reading.facts.random.entropy_available, Some(256));
    assert_eq!(reading.observed.sources.len(), 1);
    assert_eq!(reading.accounts[0].not_understood, 0, "{:?}", reading.accounts[0]);
}

#[test]
fn counters_a_second_need_times() {
    let one =
        |swapped: u64| format!("nr_free_pages 5\nnr_zone_inactive_anon 1\npgpgin 10\npswpin {swapped}\n");
    let text = format!(
        "Sun Nov 22 07:04:14 UTC 2026\n{}Sun Nov 22 07:04:16 UTC 2026\n{}",
        one(5),
        one(205)
    );
    let reading = read_text("d", text.as_bytes());
    assert_eq!(
        values(&reading, Metric::SwapInPagesPerSecond, ""),
        [(100.0, false)]
    );
    let reading = read_text("d", format!("{}{}", one(5), one(205)).as_bytes());
    assert_eq!(values(&reading, Metric::SwapInPagesPerSecond, ""), []);
}

#[test]
fn settings_are_facts_and_tables_have_limits() {
    let text = "fs.file-nr = 950000\t0\t1000000\nkernel.random.poolsize = 256\nnet.ipv4.ip_local_port_range = 32768\t60999\nnet.netfilter.nf_conntrack_count = 5\nnet.netfilter.nf_conntrack_max = 6\nvm.swappiness = 60\nnet.ipv4.conf.eth0/1.x = 1\n";
    let reading = read_text("d", text.as_bytes());
    assert_eq!(
        reading
            .facts
            .sysctl
            .get("net/ipv4/ip_local_port_range")
            .map(String::as_str),
        Some("32768 60999")
    );
    assert_eq!(values(&reading, Metric::ConntrackLimit, ""), [(6.0, false)]);
    assert_eq!(reading.accounts[0].not_understood, 0);
}

/// Lines of every kind, cut anywhere, with absurd figures, read by every format here.
#[test]
fn rubbish_and_cut_lines() {
    let text = "==> /proc/meminfo <==\nMemTotal: 18446744073709551615 kB\nMemTotal: -5 kB\nSwapFree: 9 kB\n/proc/pressure/io:some avg10=1e9 avg60=-1 avg300=nan total=0\n\
        /proc/pressure/io:some avg10=\n==> <==\n==> /proc/../x <==\n/proc/sys/:\n/proc/sys/fs/file-nr:1 2\n/proc/stat:cpu 18446744073709551615 18446744073709551615 18446744073709551615 1\n\
        /proc/stat:cpu 1 1 1 1\n/proc/diskstats: 8 0 sda 18446744073709551615 0 0 0 0 0 0 0 0 0 0\n/proc/uptime:9 9\n99999999999999999999.0 1.0\n\0\0\u{fffd}\n\
        processor\t: x\nCPU(s): 99999999999\nLinux\nroot= ro\nctxt 5\ncpu4294967296 1 1 1 1\nnr_free_pages x\n";
    let sane = |reading: Reading| {
        let taken = reading.observed.series.iter().flat_map(|series| &series.points);
        taken.into_iter().all(|point| point.value >= 0.0)
    };
    for cut in 0..text.len() {
        let Some(text) = text.get(..cut) else { continue };
        assert!(sane(read_text("x", text.as_bytes())), "{text}");
        let own = FORMATS
            .iter()
            .filter(|format| format.about.contains("/proc") || format.id == "sysctl");
        for format in own.filter(|_| cut % 16 == 0) {
            assert!(sane(read_as(format, text.as_bytes())), "{format:?}: {text}");
        }
    }
}

#[test]
fn the_load_among_other_files_ends_nothing() {
    let turn = |seconds: u32, idle: u32| {
        format!(
            "/proc/uptime:{seconds}.00 1.00\n/proc/stat:cpu  0 0 0 {idle} 0 0 0 0 0 0\n/proc/stat:cpu0 0 0 0 {idle} 0 0 0 0 0 0\n\
             /proc/loadavg:0.{seconds} 0.20 0.30 1/99 7\n/proc/sys/fs/file-nr:900\t0\t1000\n"
        )
    };
    let text = turn(10, 100) + &turn(12, 300);
    let reading = read_text("a", text.as_bytes());
    assert_eq!(
        reading.observed.sources.len(),
        1,
        "{:?}",
        reading.observed.sources
    );
    let load = reading.observed.of(Metric::LoadAverage1).next().unwrap();
    assert_eq!(load.points.len(), 2);
    let idle = reading.observed.of(Metric::CpuIdlePercent).next().unwrap();
    assert_eq!(idle.of_intervals().count(), 1);
    assert_eq!(
        values(&reading, Metric::OpenFiles, ""),
        [(900.0, false), (900.0, false)]
    );
}
