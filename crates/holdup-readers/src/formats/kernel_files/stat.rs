//! `/proc/stat`: what the CPUs did since boot. Of several readings the differences are taken; how long they took shows in
//! the CPUs' own time.

use super::clock::Clock;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::Metric;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("proc-stat", Family::Host, recognise).about("/proc/stat");

/// The columns that are of time on the machine itself: guests' time is in the first two already.
const COLUMNS: [Metric; 8] = [
    Metric::CpuUserPercent,
    Metric::CpuNicePercent,
    Metric::CpuSystemPercent,
    Metric::CpuIdlePercent,
    Metric::CpuIowaitPercent,
    Metric::CpuIrqPercent,
    Metric::CpuSoftirqPercent,
    Metric::CpuStealPercent,
];

/// CPUs that a kernel has at most.
const CPUS: u32 = 8192;

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines
        .clone()
        .any(|line| (line.starts_with(b"cpu ") || line.starts_with(b"cpu\t")) && times(line).is_some());
    let second = lines.any(|line| line.starts_with(b"cpu0 ") && times(line).is_some());
    if first && second {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

/// The times of a `cpu` line; four at least, as of Linux 2.4.
fn times(line: &[u8]) -> Option<[u64; COLUMNS.len()]> {
    let mut times = [0; COLUMNS.len()];
    let mut numbers = words(line).skip(1);
    for (at, time) in times.iter_mut().enumerate() {
        match numbers.next() {
            Some(word) => *time = whole(word)?,
            None if at >= 4 => break,
            None => return None,
        }
    }
    Some(times)
}

#[derive(Debug, Default)]
struct Reader {
    clock: Clock,
    last: Option<[u64; COLUMNS.len()]>,
    switches: Option<u64>,
    started: Option<u64>,
    over: Option<Ns>,
    cpus: u32,
    readings: u64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() || self.clock.line(line) {
            return Understood::Ignorable;
        }
        let mut fields = words(line);
        let name = fields.next().unwrap_or_default();
        let number = || words(line).nth(1).and_then(whole);
        match name {
            b"cpu" => match times(line) {
                Some(times) => {
                    self.machine(times, out);
                    Understood::Evidence
                }
                None => Understood::No,
            },
            b"ctxt" => {
                let Some(count) = number() else {
                    return Understood::No;
                };
                let before = self.switches.replace(count);
                let grown = before.and_then(|before| count.checked_sub(before));
                if let (Some(grown), Some(over)) = (grown, self.over) {
                    out.figure(
                        Metric::ContextSwitchesPerSecond,
                        "",
                        grown as f64 * 1e9 / over as f64,
                    );
                }
                Understood::Evidence
            }
            // Processes and threads that were started since boot.
            b"processes" => {
                let Some(count) = number() else {
                    return Understood::No;
                };
                let before = self.started.replace(count);
                let grown = before.and_then(|before| count.checked_sub(before));
                if let (Some(grown), Some(over)) = (grown, self.over) {
                    out.figure(
                        Metric::TasksStartedPerSecond,
                        "",
                        grown as f64 * 1e9 / over as f64,
                    );
                }
                Understood::Evidence
            }
            // Whoever reads the file runs, too. One instant is not enough to speak of a queue.
            b"procs_running" | b"procs_blocked" => {
                let Some(count) = number().filter(|count| *count < 1 << 22) else {
                    return Understood::No;
                };
                if self.readings > 1 {
                    let (metric, reader) = match name {
                        b"procs_running" => (Metric::ProcessesRunnable, 1),
                        _ => (Metric::ProcessesBlocked, 0),
                    };
                    out.figure(metric, "", count.saturating_sub(reader) as f64);
                }
                Understood::Evidence
            }
            b"intr" | b"btime" | b"softirq" | b"swap" | b"page" | b"disk_io:" => Understood::Ignorable,
            _ => match name.strip_prefix(b"cpu").and_then(whole) {
                Some(_) if times(line).is_some() => {
                    if self.readings == 1 {
                        self.cpus = (self.cpus + 1).min(CPUS);
                    }
                    Understood::Evidence
                }
                _ => Understood::No,
            },
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if self.cpus > 0 {
            out.facts().cpus.get_or_insert(self.cpus);
        }
    }
}

impl Reader {
    fn machine(&mut self, times: [u64; COLUMNS.len()], out: &mut Out<'_>) {
        self.readings += 1;
        let (at, over) = self.clock.reading();
        let before = self.last.replace(times);
        let first = before.is_none();
        let before = before.unwrap_or_default();
        let grown: Vec<u64> = times
            .iter()
            .zip(before)
            // Idle and iowait may go back a little.
            .map(|(now, before)| now.saturating_sub(before))
            .collect();
        let all = grown.iter().copied().fold(0, u64::saturating_add);
        // A hundredth of a second each, of all CPUs together.
        let by_themselves =
            (self.cpus > 0 && !first).then(|| (all / u64::from(self.cpus)).saturating_mul(10_000_000));
        self.over = over.or(by_themselves).filter(|over| *over > 0);
        out.report(at, self.over, first);
        if all == 0 {
            return;
        }
        for (metric, grown) in COLUMNS.into_iter().zip(grown) {
            out.figure(metric, "", grown as f64 * 100.0 / all as f64);
        }
    }
}
