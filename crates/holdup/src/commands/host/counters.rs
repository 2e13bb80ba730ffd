//! The kernel's counters of the whole machine, in turns, as the collecting script writes them: each line behind its file's
//! name, each turn behind the time.
//!
//! In: the tree, some times. Out: figures by the readers of `holdup read`. What was read in one turn was measured together, so
//! all of it becomes one report; and a figure's place is its file, for the text itself is nowhere.

use holdup_evidence::observed::{Quote, Source, Taken};
use holdup_proc::root::text_if_there;
use holdup_proc::{Root, clocks};
use holdup_readers::{Account, Readers, Reading};
use std::collections::BTreeMap;

/// Files that are read in each turn, below `/proc`.
const EACH: [&str; 11] = [
    "stat",
    "vmstat",
    "diskstats",
    "meminfo",
    "loadavg",
    "net/snmp",
    "net/netstat",
    "net/sockstat",
    "sys/fs/file-nr",
    "sys/net/netfilter/nf_conntrack_count",
    "sys/net/netfilter/nf_conntrack_max",
];

/// Files that are read once.
const ONCE: [&str; 4] = [
    "sys/kernel/pid_max",
    "sys/kernel/threads-max",
    "sys/net/core/somaxconn",
    "sys/net/ipv4/ip_local_port_range",
];

/// Lines of `/proc/stat` that say nothing here, and are long on large machines.
const PASSED: [&str; 2] = ["intr ", "softirq "];

/// Bytes that are kept of all turns: a machine with 500 CPUs and 500 disks has 100 KiB a turn.
const MAX_BYTES: usize = 12 << 20;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    text: String,
    /// Lines in it.
    lines: u64,
    /// Where a file's lines begin: line, file, turn.
    parts: Vec<(u64, &'static str, u32)>,
    turns: u32,
    began: Option<f64>,
    now: Option<f64>,
    cut: bool,
}

impl Counters {
    /// Reads all files.
    pub(super) fn turn(&mut self, root: &Root) {
        let uptime = text_if_there(&root.proc.join("uptime")).unwrap_or_default();
        let seconds = uptime
            .split_ascii_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        self.now = seconds.or(self.now);
        self.began = self.began.or(seconds);
        if self.text.len() > MAX_BYTES {
            self.cut = true;
            return;
        }
        self.add("uptime", &uptime);
        if self.turns == 0 {
            for file in ONCE {
                self.add(file, &text_if_there(&root.proc.join(file)).unwrap_or_default());
            }
        }
        for file in EACH {
            self.add(file, &text_if_there(&root.proc.join(file)).unwrap_or_default());
        }
        self.turns += 1;
    }

    fn add(&mut self, file: &'static str, text: &str) {
        self.parts.push((self.lines + 1, file, self.turns));
        let lines = text.lines().filter(|line| !line.is_empty());
        for line in lines.filter(|line| !PASSED.iter().any(|start| line.starts_with(start))) {
            self.text.push_str("/proc/");
            self.text.push_str(file);
            self.text.push(':');
            self.text.push_str(line);
            self.text.push('\n');
            self.lines += 1;
        }
    }

    /// Seconds since boot at the last turn.
    pub(super) fn now(&self) -> Option<f64> {
        self.now
    }

    /// Seconds between the first turn and the last.
    pub(super) fn watched(&self) -> f64 {
        let watched = self.now.zip(self.began).map(|(now, began)| now - began);
        watched.unwrap_or(0.0).max(0.0)
    }

    /// Whether there was more than is kept.
    pub(super) fn cut(&self) -> bool {
        self.cut
    }

    /// Has the readers read it.
    pub(super) fn hand_over(&mut self, readers: &mut Readers) {
        readers.read_taken(NAME, &mut self.text.as_bytes(), now());
        self.text = String::new();
    }

    /// Gives figures the turns as reports and the files as places. What one turn shows was measured together.
    pub(super) fn place(&self, reading: &mut Reading) {
        let own = reading
            .observed
            .sources
            .iter()
            .position(|source| source.name == NAME);
        let Some(own) = own.and_then(|own| u32::try_from(own).ok()) else {
            return;
        };
        let mut sources: BTreeMap<&'static str, u32> = BTreeMap::new();
        let (observed, accounts) = (&mut reading.observed, &mut reading.accounts);
        for series in observed.series.iter_mut().filter(|series| series.source == own) {
            for point in &mut series.points {
                let after = self.parts.partition_point(|(line, ..)| *line <= point.quote.line);
                let Some((_, file, turn)) = after.checked_sub(1).and_then(|at| self.parts.get(at)) else {
                    continue;
                };
                let source = *sources.entry(file).or_insert_with(|| {
                    observed.sources.push(Source {
                        name: format!("/proc/{file}"),
                        ..Source::default()
                    });
                    accounts.push(Account::default());
                    u32::try_from(observed.sources.len() - 1).expect("artefacts are far fewer than 2^32")
                });
                point.report = *turn;
                point.quote = Quote { source, line: 0 };
            }
        }
    }
}

/// The name of the text among artefacts.
const NAME: &str = "/proc";

/// This instant on both clocks.
pub(super) fn now() -> Taken {
    let monotonic = clocks::monotonic();
    Taken {
        unix: clocks::unix_minus_monotonic()
            .and_then(|offset| offset.checked_add(i64::try_from(monotonic).ok()?)),
        since_boot: clocks::boot_minus_monotonic().map(|offset| monotonic + offset),
    }
}
