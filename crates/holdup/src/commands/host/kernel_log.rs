//! The kernel's log, as far as it tells of trouble.
//!
//! In: `/dev/kmsg`. Out: the records of the last hour, which rules judge, and in short what came before: a process that was
//! ended for memory last week is no trouble of now, and worth knowing. Where a counter tells whether something still goes on,
//! it decides, and not the hour. How the machine came up is `holdup boot`'s.

use super::instead::Kill;
use holdup_evidence::Observed;
use holdup_evidence::host::{HostSight, OlderTrouble};
use holdup_evidence::observed::{Happening, KernelEvent, Metric, What, When};
use holdup_proc::{Root, kernel_log};
use std::collections::BTreeSet;

/// Its name among artefacts.
pub(super) const NAME: &str = "/dev/kmsg";

/// Microseconds for which a record is of now: an hour, in which who calls for help has noticed.
const RECENT: u64 = 3_600_000_000;

/// Microseconds, nanoseconds in a second.
const MICRO: f64 = 1e6;
const NANO: f64 = 1e9;

/// Nanoseconds for which a hung task is of now, whatever it does: it may have another id here, in a container.
const HUNG_NS: u64 = 120_000_000_000;

/// Nanoseconds after which the kernel would have said again that a CPU is locked up or stalled. It does so after some 20 s and 63 s.
const REPEATED_NS: u64 = 300_000_000_000;

/// The records of the last hour; what the older ones tell goes into `sight`.
pub(super) fn read(root: &Root, now: Option<f64>, sight: &mut HostSight) -> String {
    let log = match kernel_log::text(root) {
        Ok(log) => log,
        Err(error) => {
            let why = format!("{NAME}: {error}");
            super::hole(
                sight,
                "messages of the kernel log (hung tasks, out-of-memory kills, failing disks)",
                &why,
                "root, or CAP_SYSLOG",
            );
            return String::new();
        }
    };
    let now = now.unwrap_or(0.0);
    let from = ((now * MICRO) as u64).saturating_sub(RECENT);
    let (recent, old) = split(&log, from);
    if !old.is_empty() {
        let observed = holdup_readers::read_text(NAME, old.as_bytes()).observed;
        add_older(&observed.happenings, now, &mut sight.older);
    }
    recent
}

/// Kills for memory that the log has of the last hour, oldest first; `now` is in seconds since boot.
pub(super) fn kills(root: &Root, now: f64) -> Vec<Kill> {
    let Ok(log) = kernel_log::text(root) else {
        return Vec::new();
    };
    let (recent, _) = split(&log, ((now * MICRO) as u64).saturating_sub(RECENT));
    let observed = holdup_readers::read_text(NAME, recent.as_bytes()).observed;
    let kills = observed.happenings.iter().filter_map(|happening| {
        let What::Kernel(KernelEvent::OomKill {
            process, pid, cgroup, ..
        }) = &happening.what
        else {
            return None;
        };
        Some(Kill {
            pid: *pid,
            name: process.clone(),
            cgroup: cgroup.clone(),
            ago: ((now * NANO) as u64).saturating_sub(at(happening)?),
        })
    });
    kills.collect()
}

/// Records from an instant on, in microseconds since boot, and those before. A line that is none belongs to the one before it.
fn split(log: &str, from: u64) -> (String, String) {
    let (mut recent, mut old) = (String::new(), String::new());
    let mut is_recent = false;
    for line in log.lines() {
        let prefix = line.split_once(';').map(|(prefix, _)| prefix);
        let at = prefix.and_then(|prefix| prefix.split(',').nth(2)?.parse::<u64>().ok());
        is_recent = at.map_or(is_recent, |at| at >= from);
        let part = if is_recent { &mut recent } else { &mut old };
        part.push_str(line);
        part.push('\n');
    }
    (recent, old)
}

/// What somebody should know of, in words whose plural is made by an `s` at their end; `None` of what is no trouble, or that of a boot.
fn trouble(event: &KernelEvent) -> Option<&'static str> {
    Some(match event {
        KernelEvent::HungTask { .. } => "hung task",
        KernelEvent::SoftLockup { .. } | KernelEvent::HardLockup { .. } => "CPU lock-up",
        KernelEvent::RcuStall | KernelEvent::CpuStall(_) => "stalled CPU",
        KernelEvent::OomKill { .. } => "out-of-memory kill",
        KernelEvent::IoError { .. } => "failed device request",
        KernelEvent::MediumError { .. } => "unreadable sector",
        KernelEvent::FileSystemError { .. } => "file system error",
        KernelEvent::ConntrackFull => "full connection table",
        KernelEvent::SynFlood { .. } => "connection request flood",
        KernelEvent::DeviceReset { .. }
        | KernelEvent::TransmitTimeout { .. }
        | KernelEvent::NfsServer { .. }
        | KernelEvent::ClockUnstable { .. }
        | KernelEvent::Boot { .. }
        | KernelEvent::RandomSeeded { .. }
        | KernelEvent::UnseededRead { .. }
        | KernelEvent::Step(_) => return None,
    })
}

/// Adds what was reported, by kind: how often, and the words and the age of the last; `now` in seconds since boot.
fn add_older(happenings: &[Happening], now: f64, older: &mut Vec<OlderTrouble>) {
    for happening in happenings {
        let What::Kernel(event) = &happening.what else {
            continue;
        };
        let Some(what) = trouble(event) else { continue };
        let place = older.iter().position(|known| known.what == what);
        let place = place.unwrap_or_else(|| {
            older.push(OlderTrouble {
                what: what.to_owned(),
                ..OlderTrouble::default()
            });
            older.len() - 1
        });
        let Some(found) = older.get_mut(place) else {
            continue;
        };
        found.count += 1;
        found.text = message(happening);
        found.ago = ((now * NANO) as u64).saturating_sub(at(happening).unwrap_or(0));
    }
}

/// The kernel's words, without what stands before them.
fn message(happening: &Happening) -> String {
    let text = happening.text.as_str();
    text.split_once(';').map_or(text, |(_, words)| words).to_owned()
}

/// Whether the log itself, or the look, shows that a state is over. A task that hung does so no more if it is not blocked now. While a CPU
/// is locked up or stalled, the kernel repeats that.
fn is_over(happening: &Happening, now: u64, blocked: Option<&BTreeSet<u32>>) -> bool {
    let Some(at) = at(happening) else { return false };
    let ago = now.saturating_sub(at);
    match &happening.what {
        What::Kernel(KernelEvent::HungTask { pid, .. }) => {
            ago > HUNG_NS && blocked.is_some_and(|blocked| !blocked.contains(pid))
        }
        What::Kernel(KernelEvent::SoftLockup { .. } | KernelEvent::RcuStall | KernelEvent::CpuStall(_)) => {
            ago > REPEATED_NS
        }
        _ => false,
    }
}

/// When the kernel said it, in nanoseconds since boot.
fn at(happening: &Happening) -> Option<u64> {
    match (happening.since_boot, happening.at) {
        (Some(ns), _) | (None, Some(When::SinceBoot(ns))) => Some(ns),
        _ => None,
    }
}

/// Leaves of what was read what tells of trouble: a pause in the kernel's log is none of a machine that runs, and how it came up
/// is another question. A flood of connection requests, of which the kernel speaks once a listener, is of now only if requests
/// found a queue full during the look; else it joins what is over. So does a hung task that is not blocked any more: `blocked` are the
/// threads that are, by their ids.
pub(super) fn keep_trouble(
    observed: &mut Observed,
    now: Option<f64>,
    blocked: &Option<BTreeSet<u32>>,
    sight: &mut HostSight,
) {
    observed.spans.clear();
    let counted = observed
        .of(Metric::SynQueueOverflows)
        .flat_map(|series| &series.points);
    let floods = counted
        .filter(|point| !point.since_boot)
        .any(|point| point.value > 0.0);
    let all = std::mem::take(&mut observed.happenings);
    let seconds = now.unwrap_or(0.0);
    let (over, of_now): (Vec<_>, Vec<_>) = all.into_iter().partition(|happening| {
        matches!(happening.what, What::Kernel(KernelEvent::SynFlood { .. })) && !floods
            || is_over(happening, (seconds * NANO) as u64, blocked.as_ref())
    });
    add_older(&over, seconds, &mut sight.older);
    observed.happenings = of_now;
    observed.happenings.retain(|happening| match &happening.what {
        What::Kernel(
            KernelEvent::Boot { .. }
            | KernelEvent::RandomSeeded { .. }
            | KernelEvent::UnseededRead { .. }
            | KernelEvent::Step(_),
        ) => false,
        What::Kernel(_) => true,
        What::Unit(_) | What::Jvm(_) | What::Tls(_) | What::Session(_) | What::Log(_) => false,
    });
}

#[cfg(test)]
mod tests {
    use super::{add_older, keep_trouble, split};
    use holdup_evidence::host::HostSight;
    use holdup_evidence::observed::{Metric, Point, Series};
    use std::collections::BTreeSet;

    #[test]
    fn what_is_of_now_is_told_from_what_was() {
        let log = "4,1,1000000,-;first\n SUBSYSTEM=x\n4,2,9000000,-;second\n more\n";
        let (recent, old) = split(log, 5_000_000);
        assert_eq!(recent, "4,2,9000000,-;second\n more\n");
        assert_eq!(old, "4,1,1000000,-;first\n SUBSYSTEM=x\n");
        assert_eq!(split("no record\n", 5).0, "");
    }

    #[test]
    fn old_kills_are_counted_and_the_boot_is_not() {
        let kill =
            "Out of memory: Killed process 77 (java) total-vm:1kB, anon-rss:5kB, file-rss:0kB, shmem-rss:0kB";
        let log =
            format!("6,1,0,-;Linux version 6.1.0 (x) #1 SMP\n3,2,5000000,-;{kill}\n3,3,65000000,-;{kill}\n");
        let observed = holdup_readers::read_text("kmsg", log.as_bytes()).observed;
        let mut listed = Vec::new();
        add_older(&observed.happenings, 125.0, &mut listed);
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(
            (listed[0].what.as_str(), listed[0].count),
            ("out-of-memory kill", 2)
        );
        assert_eq!(listed[0].ago, 60_000_000_000);
        assert!(listed[0].text.starts_with("Out of memory"), "{}", listed[0].text);
    }

    #[test]
    fn a_flood_is_of_now_if_requests_find_a_queue_full_now() {
        let log = "6,3,65000000,-;TCP: request_sock_TCP: Possible SYN flooding on port 127.0.0.1:9000. Sending cookies.\n";
        for (counted, of_now) in [(None, false), (Some(0.0), false), (Some(3.0), true)] {
            let mut observed = holdup_readers::read_text("kmsg", log.as_bytes()).observed;
            let points = counted.map(|value| Point {
                value,
                ..Point::default()
            });
            let before = Point {
                value: 9.0,
                since_boot: true,
                ..Point::default()
            };
            observed.series.push(Series {
                metric: Metric::SynQueueOverflows,
                of: "dropped".to_owned(),
                source: 0,
                points: std::iter::once(before).chain(points).collect(),
                count: 2,
                sum: 12.0,
            });
            let mut sight = HostSight::default();
            keep_trouble(&mut observed, Some(125.0), &None, &mut sight);
            assert_eq!(observed.happenings.len(), usize::from(of_now), "{counted:?}");
            assert_eq!(sight.older.len(), usize::from(!of_now), "{counted:?}");
        }
    }

    /// Whether a line is of now, at so many seconds since boot, with these threads blocked.
    fn is_of_now(line: &str, now: f64, blocked: Option<&[u32]>) -> bool {
        let mut observed = holdup_readers::read_text("kmsg", line.as_bytes()).observed;
        assert_eq!(observed.happenings.len(), 1, "{line}");
        let blocked = blocked.map(|blocked| blocked.iter().copied().collect::<BTreeSet<u32>>());
        let mut sight = HostSight::default();
        keep_trouble(&mut observed, Some(now), &blocked, &mut sight);
        assert_eq!(observed.happenings.len() + sight.older.len(), 1, "{line}");
        !observed.happenings.is_empty()
    }

    #[test]
    fn a_task_that_hung_is_of_now_while_it_is_blocked() {
        let hung = "3,9,100000000,-;INFO: task tar:77 blocked for more than 120 seconds.\n";
        assert!(is_of_now(hung, 1000.0, Some(&[5, 77])));
        assert!(!is_of_now(hung, 1000.0, Some(&[5])), "it runs again");
        assert!(!is_of_now(hung, 1000.0, Some(&[])), "nothing is blocked");
        assert!(is_of_now(hung, 1000.0, None), "nobody looked");
        assert!(is_of_now(hung, 150.0, Some(&[])), "the line is recent");
    }

    #[test]
    fn a_lock_up_is_of_now_while_the_kernel_repeats_it() {
        let stuck = "0,9,100000000,-;watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [dd:77]\n";
        assert!(is_of_now(stuck, 390.0, Some(&[])));
        assert!(!is_of_now(stuck, 1000.0, Some(&[])));
    }
}
