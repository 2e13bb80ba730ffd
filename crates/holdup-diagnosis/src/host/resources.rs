//! What the machine has of each resource: how much is used, how much waits for it, what failed; and who uses it.
//!
//! In: figures. Out: a line for each resource that something is known of. No line judges.

use super::load::{mean, sum};
use crate::rules::{percent, say, waiters};
use holdup_evidence::host::{HostSight, Use};
use holdup_evidence::observed::{Limited, Metric, SeenCgroup, SeenFileSystem};
use holdup_evidence::{Observed, SystemFacts};
use holdup_knowledge::file_systems;
use holdup_model::report::HostResource;
use holdup_model::report::HostResourceName;

/// Users that are named of a resource.
const USERS: usize = 3;

/// Amounts from which a user is worth a name: percent of a CPU, KiB of memory, KiB a second.
const PERCENT: f64 = 1.0;
const MEMORY: f64 = 16.0 * 1024.0;
const RATE: f64 = 4.0;

/// Percent of the time in which a disk is busy, or pressure, from which it is reported; what does nothing is not.
const MIN_SHARE: f64 = 0.05;

/// Clocks that are read without a system call.
const QUICK: [&str; 4] = [
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "kvm-clock",
    "tsc",
];

/// Disks that are reported: the busiest.
const DISKS: usize = 4;

/// All of them.
pub(super) fn of(observed: &Observed, facts: &SystemFacts, sight: &HostSight) -> Vec<HostResource> {
    let mut all = Vec::new();
    let mut add = |name: HostResourceName, text: Option<String>, users: Vec<String>| {
        if let Some(text) = text {
            all.push(HostResource {
                name,
                short: false,
                text,
                users,
            });
        }
    };
    let percent = |use_: &Use| format!("{:.0} % of a CPU", use_.amount);
    add(
        HostResourceName::Cpu,
        cpu(observed, facts),
        users(&sight.cpu, PERCENT, percent),
    );
    let kib = |use_: &Use| bytes(use_.amount);
    add(
        HostResourceName::Memory,
        memory(observed),
        users(&sight.memory, MEMORY, kib),
    );
    add(
        HostResourceName::Swap,
        swap(observed),
        users(&sight.swap, MEMORY, kib),
    );
    for (name, text) in disks(observed) {
        let waiters = waiters::of(observed, &name);
        let users = waiters.map(|waiters| format!("waited for by {}", waiters.sentence()));
        add(
            HostResourceName::Disk(name),
            Some(text),
            users.into_iter().collect(),
        );
    }
    // Which disk a process uses is not known.
    add(HostResourceName::AllDisks, transfers(observed, sight), Vec::new());
    add(HostResourceName::FileSystems, file_systems(observed), Vec::new());
    add(HostResourceName::Network, network(observed, facts), Vec::new());
    add(HostResourceName::CgroupLimits, cgroups(observed), Vec::new());
    let limits = limits(observed, facts);
    for (name, what) in [
        (HostResourceName::Tasks, "threads"),
        (HostResourceName::OpenFiles, "files are open"),
        (HostResourceName::Connections, "tracked connections"),
    ] {
        let known = limits.iter().find(|(of, used, _)| *of == what && *used >= 1.0);
        let text = known.map(|(_, used, limit)| {
            let most = if *limit < 1e15 {
                format!("{limit:.0}")
            } else {
                "any number".to_owned()
            };
            format!("{used:.0} {what} of at most {most}")
        });
        add(name, text, Vec::new());
    }
    all
}

fn users(all: &[Use], from: f64, amount: impl Fn(&Use) -> String) -> Vec<String> {
    all.iter()
        .filter(|one| one.amount >= from)
        .take(USERS)
        .map(|one| format!("{} {}", one.who(), amount(one)))
        .collect()
}

/// An amount in KiB, in words.
fn bytes(kib: f64) -> String {
    say::bytes((kib.max(0.0) * 1024.0) as u64)
}

/// `, some task stalled for it 3.1 % of the time`.
fn pressure(observed: &Observed, metric: Metric, words: &str) -> String {
    let stalled = mean(observed, metric, "").filter(|percent| *percent >= MIN_SHARE);
    stalled.map_or_else(String::new, |percent| {
        format!(", {words} {percent:.1} % of the time")
    })
}

fn cpu(observed: &Observed, facts: &SystemFacts) -> Option<String> {
    let idle = mean(observed, Metric::CpuIdlePercent, "")?;
    let part = |metric| mean(observed, metric, "").unwrap_or(0.0);
    let mut text = format!("{idle:.0} % idle");
    for (metric, words) in [
        (Metric::CpuUserPercent, "programs"),
        (Metric::CpuNicePercent, "programs of low priority"),
        (Metric::CpuSystemPercent, "kernel"),
        (Metric::CpuIowaitPercent, "idle with a disk request open"),
        (Metric::CpuSoftirqPercent, "soft interrupts"),
        (Metric::CpuStealPercent, "taken by the hypervisor"),
    ] {
        let percent = part(metric);
        if percent >= 1.0 {
            text.push_str(&format!(", {percent:.0} % {words}"));
        }
    }
    text.push_str(&pressure(
        observed,
        Metric::PressureCpuSomePercent,
        "at least one task waited for a CPU",
    ));
    // A clock that is read without leaving the program is nobody's trouble.
    if let Some(clock) = facts
        .clocksource
        .as_deref()
        .filter(|clock| !QUICK.contains(clock))
    {
        text.push_str(&format!("; clock {clock}"));
    }
    Some(text)
}

fn memory(observed: &Observed) -> Option<String> {
    let total = mean(observed, Metric::MemoryTotalKib, "")?;
    let available = mean(observed, Metric::MemoryAvailableKib, "")?;
    let stalls = pressure(
        observed,
        Metric::PressureMemorySomePercent,
        "at least one task stalled for it",
    );
    Some(format!(
        "{} of {} available{stalls}",
        bytes(available),
        bytes(total)
    ))
}

fn swap(observed: &Observed) -> Option<String> {
    let total = mean(observed, Metric::SwapTotalKib, "")?;
    if total < 1.0 {
        return Some("none is enabled".to_owned());
    }
    let used = mean(observed, Metric::SwapUsedKib, "").unwrap_or(0.0);
    Some(format!("{} of {} used", bytes(used), bytes(total)))
}

/// Who reads and writes most.
fn transfers(observed: &Observed, sight: &HostSight) -> Option<String> {
    let rate = |use_: &Use| format!("{}/s", bytes(use_.amount));
    let mut all = users(&sight.writes, RATE, |one| format!("{} written", rate(one)));
    all.extend(users(&sight.reads, RATE, |one| format!("{} read", rate(one))));
    let stalls = pressure(
        observed,
        Metric::PressureIoSomePercent,
        "at least one task stalled for a disk",
    );
    // Which of them it was is not known, either.
    all.extend(stalls.strip_prefix(", ").map(str::to_owned));
    (!all.is_empty()).then(|| all.join(", "))
}

/// The busiest disks, most first.
fn disks(observed: &Observed) -> Vec<(String, String)> {
    let mut all: Vec<(f64, &str)> = observed
        .of(Metric::DiskUtilPercent)
        .filter_map(|series| {
            Some((
                mean(observed, Metric::DiskUtilPercent, &series.of)?,
                series.of.as_str(),
            ))
        })
        .filter(|(busy, _)| *busy >= MIN_SHARE)
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let one = |(busy, name): (f64, &str)| {
        let value = |metric| mean(observed, metric, name).unwrap_or(0.0);
        let mut text = format!("{busy:.0} % of the time busy");
        for (metric, words) in [
            (Metric::DiskReadsPerSecond, "reads/s"),
            (Metric::DiskWritesPerSecond, "writes/s"),
        ] {
            let rate = value(metric);
            if rate >= 0.5 {
                text.push_str(&format!(", {rate:.0} {words}"));
            }
        }
        let waits = value(Metric::DiskWaitMs)
            .max(value(Metric::DiskReadWaitMs))
            .max(value(Metric::DiskWriteWaitMs));
        if waits >= 0.1 {
            text.push_str(&format!(", {waits:.1} ms each"));
        }
        let queue = value(Metric::DiskQueueLength);
        if queue >= 0.1 {
            text.push_str(&format!(", {queue:.1} in flight"));
        }
        (name.to_owned(), text)
    };
    all.into_iter().take(DISKS).map(one).collect()
}

fn file_systems(observed: &Observed) -> Option<String> {
    let fullest = |one: &&SeenFileSystem| one.used_percent.unwrap_or(0.0);
    let all = observed
        .file_systems
        .iter()
        .filter(|one| one.used_percent.is_some());
    // What is made full is always so.
    let all = all.filter(|one| {
        let kind = one.kind.as_deref().and_then(file_systems::named);
        !kind.is_some_and(|known| known.image)
    });
    let count = all.clone().count();
    let most = all.max_by(|a, b| fullest(a).total_cmp(&fullest(b)))?;
    let left = most.available_kib.map(bytes).unwrap_or_default();
    Some(format!(
        "{} is {:.0} % full ({left} left), the fullest of {}",
        most.mount,
        fullest(&most),
        say::several(count as u64, "local one")
    ))
}

/// What TCP sends, again and in vain, and how many ports are left.
fn network(observed: &Observed, facts: &SystemFacts) -> Option<String> {
    let sent = sum(observed, Metric::TcpSegmentsSent)?;
    let again = sum(observed, Metric::TcpSegmentsSentAgain).unwrap_or(0.0);
    let mut text = format!("{} sent", say::several(sent as u64, "TCP segment"));
    if again > 0.0 {
        text.push_str(&format!(
            ", {} of them again",
            percent((again / sent.max(1.0)).min(1.0))
        ));
    }
    let full = sum(observed, Metric::ListenQueueOverflows).unwrap_or(0.0);
    if full > 0.0 {
        text.push_str(&format!(
            ", {} turned away by a full accept queue",
            say::several(full as u64, "client")
        ));
    }
    for (metric, words) in [
        (Metric::NetworkReceiveDropsPerSecond, "packets/s dropped"),
        (Metric::NetworkReceiveErrorsPerSecond, "packets/s with errors"),
    ] {
        let all: f64 = observed
            .of(metric)
            .filter_map(|series| mean(observed, metric, &series.of))
            .sum();
        if all >= MIN_SHARE {
            text.push_str(&format!(", {all:.1} {words}"));
        }
    }
    if let Some(open) = mean(observed, Metric::TcpSocketsInUse, "") {
        text.push_str(&format!("; {}", say::several(open as u64, "TCP socket")));
    }
    let waiting = mean(observed, Metric::TcpSocketsTimeWait, "").unwrap_or(0.0);
    let range = facts.sysctl.get("net/ipv4/ip_local_port_range");
    let ends = range.iter().flat_map(|range| range.split_whitespace());
    let mut ends = ends.filter_map(|end| end.parse::<u32>().ok());
    if let (true, Some(from), Some(to)) = (waiting >= 1.0, ends.next(), ends.next()) {
        text.push_str(&format!(
            ", {waiting:.0} more in TIME-WAIT, where each peer can have {}",
            to.saturating_sub(from) + 1
        ));
    }
    Some(text)
}

/// The limit that is nearest.
fn cgroups(observed: &Observed) -> Option<String> {
    // Of memory a cgroup that has run into its limit is the nearest, whatever it could give back.
    let part = |one: &SeenCgroup| match (one.hits.unwrap_or(0), one.whole) {
        (1.., Some(whole)) => whole / one.limit,
        _ => one.used / one.limit,
    };
    let used = || observed.cgroups.iter().filter(|one| one.limit > 0.0);
    let nearest = used().max_by(|a, b| part(a).total_cmp(&part(b)))?;
    let what = match nearest.what {
        Limited::Tasks => format!("{:.0} of {:.0} tasks", nearest.used, nearest.limit),
        Limited::Memory => {
            let (used, limit) = (say::bytes(nearest.used as u64), say::bytes(nearest.limit as u64));
            // Cached files count against the limit, and are given back when it is reached.
            match nearest.whole {
                Some(whole) => {
                    let cached = say::bytes((whole - nearest.used).max(0.0) as u64);
                    let whole = say::bytes(whole as u64);
                    let hits = nearest.hits.filter(|hits| *hits > 0);
                    let hits = hits.map_or_else(String::new, |hits| {
                        format!(
                            "; the limit was reached {}",
                            if hits == 1 {
                                "once".to_owned()
                            } else {
                                format!("{hits} times")
                            }
                        )
                    });
                    format!("{whole} of {limit} of memory, of it {cached} of cached files{hits}")
                }
                None => format!("{used} of {limit} of memory"),
            }
        }
        Limited::CpuTime => format!(
            "its CPU time used up in {} of its periods",
            percent(part(nearest))
        ),
    };
    let of = match used().count() {
        1 => "the only one".to_owned(),
        count => format!("the nearest of {count}"),
    };
    Some(format!("{}, {of}: {what}", nearest.cgroup))
}

/// What is used and how much there may be, where both are reported.
pub(super) fn limits(observed: &Observed, facts: &SystemFacts) -> Vec<(&'static str, f64, f64)> {
    let figure = |metric| mean(observed, metric, "");
    let setting = |name: &str| facts.sysctl.get(name)?.trim().parse::<f64>().ok();
    let tasks = [setting("kernel/pid_max"), setting("kernel/threads-max")];
    let tasks = tasks.into_iter().flatten().reduce(f64::min);
    [
        ("threads", figure(Metric::ThreadsTotal), tasks),
        (
            "files are open",
            figure(Metric::OpenFiles),
            figure(Metric::OpenFilesLimit),
        ),
        (
            "tracked connections",
            figure(Metric::ConntrackEntries),
            figure(Metric::ConntrackLimit),
        ),
    ]
    .into_iter()
    .filter_map(|(what, used, limit)| Some((what, used?, limit.filter(|limit| *limit > 0.0)?)))
    .collect()
}
