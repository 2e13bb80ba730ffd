//! Tests of top: its versions and locales, several reports, cut tables and rubbish.

use crate::{Reading, read_text};
use holdup_evidence::observed::{Metric, State};

const OLD: &str = "top - 09:10:11 up 12 days, 14:49,  3 users,  load average: 2.55, 1.73, 1.67
Tasks: 108 total,   1 running, 107 sleeping,   0 stopped,   0 zombie
Cpu(s): 11.6%us,  1.7%sy,  0.0%ni,  3.6%id, 82.3%wa,  0.0%hi,  0.2%si,  0.6%st
Mem:   1000000k total,   990000k used,    10000k free,     1400k buffers
Swap:  2000000k total,  1003088k used,   996912k free,    45348k cached
\u{a0}
  PID USER      PR  NI  VIRT  RES  SHR S %CPU %MEM    TIME+  COMMAND
29702 john      20   0 2956m 1.3g 3984 S 21.4 77.9 490:35.59 hungry
    1 root      20   0  2956  130  398 S  0.0  0.1   0:35.59 init
   77 root      20   0  2956  130  398 D  0.0  0.1   0:35.59 jbd2 with blanks
";

fn value(reading: &Reading, metric: Metric, of: &str) -> Option<f64> {
    let mut series = reading.observed.of(metric).filter(|series| series.of == of);
    series
        .next()
        .and_then(|series| series.points.first())
        .map(|point| point.value)
}

#[test]
fn the_old_style_has_its_units_at_the_numbers() {
    let reading = read_text("t", OLD.as_bytes());
    let look_up = |metric| value(&reading, metric, "");
    assert_eq!(look_up(Metric::LoadAverage1), Some(2.55));
    assert_eq!(look_up(Metric::LoadAverage15), Some(1.67));
    assert_eq!(look_up(Metric::CpuIowaitPercent), Some(82.3));
    assert_eq!(look_up(Metric::MemoryTotalKib), Some(1_000_000.0));
    assert_eq!(look_up(Metric::SwapUsedKib), Some(1_003_088.0));
    assert_eq!(look_up(Metric::ProcessesTotal), Some(108.0));
    let hungry = "hungry (pid 29702)";
    assert_eq!(value(&reading, Metric::ProcessMemoryPercent, hungry), Some(77.9));
    let [snapshot] = reading.observed.snapshots.as_slice() else {
        panic!("{reading:?}")
    };
    assert_eq!(snapshot.total, Some(3));
    assert_eq!(snapshot.threads.len(), 2);
    assert_eq!(snapshot.threads[1].name, "jbd2 with blanks");
    assert_eq!(snapshot.threads[1].state, State::Uninterruptible);
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn the_new_style_has_them_in_front_and_commas_in_some_countries() {
    let text = "top - 04:04:55 up  7:22,  0 user,  load average: 1,60, 0,50, 3,78
Tasks: 149 gesamt,   3 laufend, 146 schlafend,   0 gestoppt,   2 Zombie
%Cpu(s): 45,1 be, 13,2 sy,  0,0 ni, 41,3 un,  0,0 wa,  0,0 hi,  0,4 si,  0,0 st
MiB Mem :   7956,5 total,   1000,0 free,   2000,5 used,   4956,0 buff/cache
MiB Swap:   2048,0 total,   2047,5 free,      0,5 used.   5700,0 avail Mem
";
    let reading = read_text("t", text.as_bytes());
    let look_up = |metric| value(&reading, metric, "");
    assert_eq!(look_up(Metric::LoadAverage5), Some(0.5));
    assert_eq!(look_up(Metric::CpuSystemPercent), Some(13.2));
    assert_eq!(look_up(Metric::CpuSoftirqPercent), Some(0.4));
    assert_eq!(look_up(Metric::MemoryAvailableKib), Some(5700.0 * 1024.0));
    assert_eq!(look_up(Metric::SwapUsedKib), Some(512.0));
    assert_eq!(look_up(Metric::ProcessesZombie), Some(2.0));
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn of_several_reports_the_first_is_none_of_an_interval() {
    let twice = OLD.to_owned() + &OLD.replace("82.3%wa", "12.3%wa");
    let reading = read_text("t", twice.as_bytes());
    let iowait = reading.observed.of(Metric::CpuIowaitPercent).next().unwrap();
    assert_eq!(iowait.greatest().map(|point| point.value), Some(12.3));
    let load = reading.observed.of(Metric::LoadAverage1).next().unwrap();
    assert_eq!(load.of_intervals().count(), 2);
    assert_eq!(reading.observed.snapshots.len(), 2);
}

#[test]
fn busybox_and_a_table_alone() {
    let text = "Mem: 15678K used, 484321K free, 16K shrd, 512K buff, 4096K cached
CPU:  10% usr   5% sys   0% nic  25% idle  60% io   0% irq   0% sirq
Load average: 0.00 0.01 0.05 1/123 4567
  PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND
   61     1 root     D     1234   3%   0  40% dd if=/dev/sda
";
    let reading = read_text("t", text.as_bytes());
    assert_eq!(value(&reading, Metric::CpuIowaitPercent, ""), Some(60.0));
    assert_eq!(value(&reading, Metric::MemoryFreeKib, ""), Some(484_321.0));
    assert_eq!(reading.observed.snapshots[0].threads[0].parent, Some(1));
    assert_eq!(reading.accounts[0].not_understood, 0);
    let table = &OLD[OLD.find("  PID").unwrap()..];
    let reading = read_text("t", table.as_bytes());
    assert_eq!(reading.observed.snapshots[0].threads.len(), 2);
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn rubbish_and_cut_lines_are_counted_and_nothing_worse() {
    for cut in 0..OLD.len() {
        let mut text = OLD.as_bytes()[..cut].to_vec();
        text.extend_from_slice(
            b"\n\xff\x00\xfe rubbish: 1,,2 %%\n99999999999999999999 x x x x x x D 1e999 -5 ::: z\n",
        );
        let reading = read_text("t", &text);
        assert!(reading.accounts[0].lines >= 2);
    }
}

#[test]
fn a_summary_on_one_line_is_read_as_far_as_it_goes() {
    let text = "top - 19:42:06 up 23:59, 2 users, load average: 34.64, 35.80, 35.76 Tasks: 679 total, 1 running, 678 sleeping, \
        0 stopped, 0 zombie Cpu(s): 15.0%us, 5.0%sy, 0.0%ni, 20.0%id, 60.0%wa, 0.0%hi, 0.0%si, 0.0%st Mem: 16";
    let reading = read_text("t", text.as_bytes());
    assert_eq!(value(&reading, Metric::LoadAverage1, ""), Some(34.64));
    assert_eq!(value(&reading, Metric::ProcessesRunnable, ""), Some(1.0));
    assert_eq!(value(&reading, Metric::CpuIowaitPercent, ""), Some(60.0));
}
