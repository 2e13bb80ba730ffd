//! Figures of the machine over time, on the clock of what was observed: how busy its CPUs and disks were, and how much tasks stood
//! still for want of something.
//!
//! In: the kernel's counters, again and again. Out: shares, one for each stretch between two readings; where there are many,
//! neighbours become one. A wait is known by its thread; whether the whole machine was short just then, these tell.

use holdup_evidence::{HostCounters, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stretches at most: a pixel or more each on any screen, and 20 KB of a page.
pub const MAX_STRETCHES: usize = 240;

/// Disks that are reported, the busiest.
const MAX_DISKS: usize = 8;

/// A disk is left out if its busy share never exceeds this.
const MIN_BUSY_SHARE: f64 = 0.005;

/// Microseconds and milliseconds in nanoseconds.
const MICROSECOND: f64 = 1e3;
const MILLISECOND: f64 = 1e6;

/// Figures of the machine over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostFigures {
    /// The times between readings, in order, 240 at most.
    pub stretches: Vec<HostStretch>,
    /// What was read, each with a value for each of these times.
    pub lines: Vec<HostLine>,
}

/// A time between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostStretch {
    /// When it begins, since observation began.
    pub from_ns: Ns,
    /// How long it is.
    pub ns: Ns,
}

/// One figure over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostLine {
    /// Which.
    pub figure: HostFigure,
    /// Of which disk; empty of the whole machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// Shares of the stretches, 0..1, to the thousandth; null where it was not known.
    pub shares: Vec<Option<f64>>,
}

/// What is measured, as a share of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostFigure {
    /// CPUs had something to do: of the time of all of them.
    CpuBusy,
    /// CPUs had nothing to do while a task waited for a disk: of the time of all of them.
    CpuIowait,
    /// Some task stood still for want of a CPU (`/proc/pressure/cpu`).
    PressureCpu,
    /// Some task stood still for want of memory.
    PressureMemory,
    /// Some task stood still for want of a disk.
    PressureIo,
    /// A disk had something to do.
    DiskBusy,
}

impl HostFigures {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty() || self.lines.is_empty()
    }

    /// Adds what passed between two readings; instants are those of the readings.
    pub fn add(&mut self, before: &HostCounters, now: &HostCounters) {
        let ns = now.at.saturating_sub(before.at);
        if ns == 0 {
            return;
        }
        self.stretches.push(HostStretch {
            from_ns: before.at,
            ns,
        });
        let length = ns as f64;
        if let Some((before, now)) = before.cpu.zip(now.cpu)
            && now.all > before.all
        {
            let all = (now.all - before.all) as f64;
            // Both have been seen to run backwards by a tick.
            let iowait = now.iowait.saturating_sub(before.iowait) as f64 / all;
            let idle = now.idle.saturating_sub(before.idle) as f64 / all;
            self.tell(HostFigure::CpuBusy, "", 1.0 - idle - iowait);
            self.tell(HostFigure::CpuIowait, "", iowait);
        }
        let kinds = [
            HostFigure::PressureCpu,
            HostFigure::PressureMemory,
            HostFigure::PressureIo,
        ];
        for (figure, (before, now)) in kinds.into_iter().zip(before.stalled.iter().zip(&now.stalled)) {
            if let Some((before, now)) = before.zip(*now) {
                let stalled = now.saturating_sub(before) as f64 * MICROSECOND;
                self.tell(figure, "", stalled / length);
            }
        }
        for (disk, now) in &now.disks {
            if let Some(before) = before.disks.get(disk) {
                let busy = now.saturating_sub(*before) as f64 * MILLISECOND;
                self.tell(HostFigure::DiskBusy, disk, busy / length);
            }
        }
        self.level();
        self.thin();
    }

    /// The value of the last stretch.
    fn tell(&mut self, figure: HostFigure, of: &str, share: f64) {
        let same = |line: &HostLine| line.figure == figure && line.of == of;
        let at = self.lines.iter().position(same).unwrap_or_else(|| {
            self.lines.push(HostLine {
                figure,
                of: of.to_owned(),
                shares: Vec::new(),
            });
            self.lines.len() - 1
        });
        let shares = &mut self.lines[at].shares;
        shares.resize(self.stretches.len() - 1, None);
        shares.push(Some(thousandths(share)));
    }

    /// Each line has a value, or none, for each stretch.
    fn level(&mut self) {
        let length = self.stretches.len();
        for line in &mut self.lines {
            line.shares.resize(length, None);
        }
    }

    /// Puts those behind that begin so much later. They may be anybody's: a recording's.
    pub fn append(&mut self, later: Ns, mut next: HostFigures) {
        next.stretches.truncate(MAX_STRETCHES);
        next.level();
        let before = self.stretches.len();
        self.stretches
            .extend(next.stretches.iter().map(|stretch| HostStretch {
                from_ns: stretch.from_ns.saturating_add(later),
                ns: stretch.ns,
            }));
        for line in next.lines {
            match self
                .lines
                .iter_mut()
                .find(|known| known.figure == line.figure && known.of == line.of)
            {
                Some(known) => {
                    known.shares.resize(before, None);
                    known.shares.extend(line.shares);
                }
                None => {
                    let shares = std::iter::repeat_n(None, before).chain(line.shares).collect();
                    self.lines.push(HostLine { shares, ..line });
                }
            }
        }
        self.level();
        self.thin();
        self.choose();
    }

    /// Neighbours become one until there are few enough. What lies far apart stays apart: nothing is reported of the time between.
    fn thin(&mut self) {
        while self.stretches.len() > MAX_STRETCHES {
            let end = |stretch: &HostStretch| stretch.from_ns.saturating_add(stretch.ns);
            let mut groups: Vec<Vec<usize>> = Vec::new();
            let mut at = 0;
            while at < self.stretches.len() {
                let pair = self.stretches.get(at + 1).filter(|next| {
                    let gap = next.from_ns.saturating_sub(end(&self.stretches[at]));
                    gap <= next.ns.saturating_add(self.stretches[at].ns) / 10
                });
                groups.push((at..=at + usize::from(pair.is_some())).collect());
                at += 1 + usize::from(pair.is_some());
            }
            // All far apart: only what was made to be so is. Of that the first are enough.
            if groups.len() == self.stretches.len() {
                groups.truncate(MAX_STRETCHES);
            }
            for line in &mut self.lines {
                line.shares = groups
                    .iter()
                    .map(|group| line.mean(group, &self.stretches))
                    .collect();
            }
            self.stretches = groups
                .iter()
                .map(|group| {
                    let (first, last) = (self.stretches[group[0]], self.stretches[group[group.len() - 1]]);
                    HostStretch {
                        from_ns: first.from_ns,
                        ns: end(&last).saturating_sub(first.from_ns),
                    }
                })
                .collect();
        }
    }

    /// Leaves the busiest disks, the busiest first.
    fn choose(&mut self) {
        let of_disk = |line: &HostLine| line.figure == HostFigure::DiskBusy;
        self.lines
            .retain(|line| !of_disk(line) || line.peak() > MIN_BUSY_SHARE);
        self.lines.sort_by(|a, b| {
            let peaks = || b.peak().total_cmp(&a.peak());
            let disks = of_disk(a) && of_disk(b);
            a.figure
                .cmp(&b.figure)
                .then_with(|| if disks { peaks() } else { std::cmp::Ordering::Equal })
                .then_with(|| a.of.cmp(&b.of))
        });
        let others = self.lines.iter().filter(|line| !of_disk(line)).count();
        self.lines.truncate(others + MAX_DISKS);
    }

    /// All that was added, with instants since this one; what was over before it is left out.
    #[must_use]
    pub fn since(mut self, began: Ns) -> HostFigures {
        let end = |stretch: &HostStretch| stretch.from_ns.saturating_add(stretch.ns);
        let early = self.stretches.partition_point(|stretch| end(stretch) <= began);
        self.stretches.drain(..early);
        for line in &mut self.lines {
            line.shares.drain(..early.min(line.shares.len()));
        }
        for stretch in &mut self.stretches {
            let end = end(stretch);
            stretch.from_ns = stretch.from_ns.saturating_sub(began);
            stretch.ns = end.saturating_sub(began) - stretch.from_ns;
        }
        self.choose();
        self
    }
}

impl HostLine {
    /// The greatest share.
    fn peak(&self) -> f64 {
        self.shares.iter().flatten().copied().fold(0.0, f64::max)
    }

    /// The mean over some stretches, of those that have a value.
    fn mean(&self, group: &[usize], stretches: &[HostStretch]) -> Option<f64> {
        let found = group.iter().filter_map(|at| {
            let share = self.shares.get(*at).copied().flatten()?;
            Some((share, stretches[*at].ns as f64))
        });
        let (sum, ns) = found.fold((0.0, 0.0), |(sum, all), (share, ns)| (sum + share * ns, all + ns));
        (ns > 0.0).then(|| thousandths(sum / ns))
    }
}

/// A share as it is told.
fn thousandths(share: f64) -> f64 {
    (share.clamp(0.0, 1.0) * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::{HostFigure, HostFigures, HostStretch, MAX_DISKS, MAX_STRETCHES};
    use holdup_evidence::{CpuTicks, HostCounters, Ns};

    const SECOND: Ns = 1_000_000_000;

    /// After so many seconds, of which a quarter was busy, an eighth in wait for disks, and `sda` busy for half.
    fn counters(seconds: u64) -> HostCounters {
        HostCounters {
            at: 1_000 * SECOND + seconds * SECOND,
            cpu: Some(CpuTicks {
                all: 800 * seconds,
                idle: 500 * seconds,
                iowait: 100 * seconds,
            }),
            stalled: [Some(200_000 * seconds), None, Some(50_000 * seconds)],
            disks: [("sda".to_owned(), 500 * seconds), ("sdb".to_owned(), 7)].into(),
        }
    }

    fn watched(seconds: u64) -> HostFigures {
        let mut figures = HostFigures::default();
        for second in 0..seconds {
            figures.add(&counters(second), &counters(second + 1));
        }
        figures.since(1_000 * SECOND + SECOND / 2)
    }

    fn shares(figures: &HostFigures) -> Vec<(HostFigure, &str, Option<f64>)> {
        let lines = figures.lines.iter();
        lines
            .map(|line| {
                assert_eq!(line.shares.len(), figures.stretches.len());
                (line.figure, line.of.as_str(), line.shares[0])
            })
            .collect()
    }

    const RIGHT: [(HostFigure, &str, Option<f64>); 5] = [
        (HostFigure::CpuBusy, "", Some(0.25)),
        (HostFigure::CpuIowait, "", Some(0.125)),
        (HostFigure::PressureCpu, "", Some(0.2)),
        (HostFigure::PressureIo, "", Some(0.05)),
        (HostFigure::DiskBusy, "sda", Some(0.5)),
    ];

    #[test]
    fn counters_become_shares_of_the_time_between() {
        let figures = watched(3);
        assert_eq!(shares(&figures), RIGHT);
        let stretch = |from_ns, ns| HostStretch { from_ns, ns };
        assert_eq!(
            figures.stretches,
            [
                stretch(0, SECOND / 2),
                stretch(SECOND / 2, SECOND),
                stretch(SECOND * 3 / 2, SECOND)
            ]
        );
    }

    #[test]
    fn a_long_time_has_few_stretches_and_the_same_shares() {
        let figures = watched(3_600);
        assert_eq!(shares(&figures), RIGHT);
        let count = figures.stretches.len();
        assert!((MAX_STRETCHES / 2..=MAX_STRETCHES).contains(&count), "{count}");
        let all: Ns = figures.stretches.iter().map(|stretch| stretch.ns).sum();
        assert_eq!(all, 3_600 * SECOND - SECOND / 2);
    }

    #[test]
    fn segments_follow_on_each_other_with_the_gap_between_them() {
        let mut whole = HostFigures::default();
        let minute = 60 * SECOND;
        for at in [0, 1, 2, 3, 20, 21] {
            whole.append(at * minute, watched(60));
        }
        assert_eq!(shares(&whole), RIGHT);
        assert!(whole.stretches.len() <= MAX_STRETCHES);
        let gaps = whole.stretches.windows(2).filter(|pair| {
            let end = pair[0].from_ns + pair[0].ns;
            pair[1].from_ns > end + minute
        });
        assert_eq!(gaps.count(), 1);
    }

    #[test]
    fn what_a_line_lacks_is_none_and_hostile_lines_are_taken() {
        let mut figures = HostFigures::default();
        let mut without = counters(1);
        without.cpu = None;
        figures.add(&counters(0), &without);
        figures.add(&counters(1), &counters(2));
        let busy = figures
            .lines
            .iter()
            .find(|line| line.figure == HostFigure::CpuBusy)
            .unwrap();
        assert_eq!(busy.shares, [None, Some(0.25)]);
        let hostile = r#"{"stretches": [{"from_ns": 18446744073709551615, "ns": 18446744073709551615}, {}],
            "lines": [{"figure": "disk-busy", "of": "x", "shares": []}, {"figure": "cpu-busy", "shares": [1e300, null, -7, 5]}]}"#;
        for number in 0..400 {
            let one: HostFigures = serde_json::from_str(hostile).unwrap();
            figures.append(number, one.clone());
            figures.append(u64::MAX, one.since(7));
        }
        assert!(figures.stretches.len() <= MAX_STRETCHES && figures.lines.len() <= 5 + MAX_DISKS);
        assert!(
            figures
                .lines
                .iter()
                .all(|line| line.shares.len() == figures.stretches.len())
        );
    }
}
