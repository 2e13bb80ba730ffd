//! The kernel's settings and limits: `sysctl -a`, and files below `/proc/sys`.
//!
//! In: `net.core.somaxconn = 4096`, or one value where a heading or a prefix names the file. Out: facts of the machine, and
//! how full the tables are that have a limit.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, words};
use holdup_evidence::observed::Metric;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("sysctl", Family::Host, recognise).about("sysctl");

/// Settings that rules look at.
const KEPT: &[&str] = &[
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_retries2",
    "net/ipv4/tcp_syn_retries",
    "net/ipv4/tcp_tw_reuse",
    "kernel/pid_max",
    "kernel/sched_autogroup_enabled",
    "kernel/sched_rt_runtime_us",
    "kernel/threads-max",
    "vm/dirty_background_bytes",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_ratio",
    "vm/min_free_kbytes",
    "vm/swappiness",
    "vm/watermark_scale_factor",
];

/// Bytes of a value that are kept.
const VALUE: usize = 100;

/// Lines that are looked at, and settings among them from which it is no chance.
const LOOKED_AT: usize = 60;
const MIN_SETTINGS: usize = 3;

/// Where settings begin.
const AREAS: &[&[u8]] = &[
    b"abi.", b"crypto.", b"debug.", b"dev.", b"fs.", b"kernel.", b"net.", b"sunrpc.", b"user.", b"vm.",
];

fn recognise(head: &[u8]) -> Sureness {
    let lines = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    let (mut all, mut settings) = (0, 0);
    for line in lines.take(LOOKED_AT) {
        all += 1;
        settings += usize::from(setting(line).is_some());
    }
    Sureness::certain_if(settings >= MIN_SETTINGS || (settings > 0 && settings == all))
}

/// Name and value.
fn setting(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memmem::find(line, b" =")?;
    let name = line.get(..at)?.trim_ascii();
    let is_name = |byte: &u8| byte.is_ascii_graphic();
    let known = AREAS.iter().any(|area| name.starts_with(area));
    (known && name.iter().all(is_name)).then_some((name, line.get(at + 2..)?.trim_ascii()))
}

#[derive(Debug, Default)]
struct Reader {
    begun: bool,
    /// What of the path is known, where a heading names it.
    path: Option<Option<String>>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if !std::mem::replace(&mut self.begun, true) {
            out.report(None, None, false);
        }
        if let Some((name, value)) = setting(line) {
            // Names of interfaces may have dots in them; none of those is looked at.
            let path: String = text_of(name).replace('.', "/");
            return one(&path, value, out);
        }
        let path = self.path.get_or_insert_with(|| {
            let tool = out.source().tool.clone().unwrap_or_default();
            let mut paths = tool
                .split_whitespace()
                .filter_map(|word| word.strip_prefix("/proc/sys/"));
            let (first, second) = (paths.next(), paths.next());
            first.filter(|_| second.is_none()).map(str::to_owned)
        });
        match path.clone() {
            Some(path) => one(&path, line, out),
            None if line.starts_with(b"sysctl: ") => Understood::Ignorable,
            None => Understood::No,
        }
    }
}

/// One setting by its path.
fn one(path: &str, value: &[u8], out: &mut Out<'_>) -> Understood {
    let mut numbers = words(value).map(|word| decimal(word).filter(|number| *number >= 0.0));
    let mut number = || numbers.next().flatten();
    match path {
        "fs/file-nr" => {
            let (Some(used), Some(free), Some(most)) = (number(), number(), number()) else {
                return Understood::No;
            };
            out.figure(Metric::OpenFiles, "", (used - free).max(0.0));
            out.figure(Metric::OpenFilesLimit, "", most);
        }
        "net/netfilter/nf_conntrack_count" | "net/netfilter/nf_conntrack_max" | "net/nf_conntrack_max" => {
            let Some(number) = number() else {
                return Understood::No;
            };
            let metric = match path.ends_with("count") {
                true => Metric::ConntrackEntries,
                false => Metric::ConntrackLimit,
            };
            out.figure(metric, "", number);
        }
        "kernel/random/entropy_avail" => {
            let Some(bits) = number().filter(|bits| *bits <= 65_536.0) else {
                return Understood::No;
            };
            out.figure(Metric::EntropyAvailableBits, "", bits);
            out.facts().random.entropy_available = Some(bits as u32);
        }
        "kernel/random/poolsize" => {
            let Some(bits) = number().filter(|bits| *bits <= 65_536.0) else {
                return Understood::No;
            };
            out.figure(Metric::EntropyPoolBits, "", bits);
            out.facts().random.pool_size = Some(bits as u32);
        }
        "kernel/random/read_wakeup_threshold" => out.facts().random.blocking_pool = Some(true),
        "kernel/osrelease" => {
            let release = text_of(value.get(..VALUE).unwrap_or(value));
            out.facts().kernel_release.get_or_insert(release);
        }
        path if KEPT.contains(&path) => {
            let value: Vec<String> = words(value.get(..VALUE).unwrap_or(value)).map(text_of).collect();
            let known = &mut out.facts().sysctl;
            known.entry(path.to_owned()).or_insert(value.join(" "));
        }
        _ => return Understood::Ignorable,
    }
    Understood::Evidence
}
