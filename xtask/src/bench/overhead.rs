//! `cargo xtask bench overhead`: the same programs with and without observers, in turn, on one core.
//!
//! Ratios are taken within a round and their median printed, so that what else the machine does meanwhile hits
//! all alike. Beside the ratio of elapsed time stands that of the program's CPU time: where the machine is busy, it is the
//! one to look at.

use super::observer::{Bench, Observer, Sample};
use super::project;
use super::samples::{median, range};
use crate::workspace;
use anyhow::bail;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often each observer has its turn
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Round trips of the program that switches all the time
    #[arg(long, default_value_t = 200_000)]
    round_trips: u64,
    /// Calls of the program that never blocks
    #[arg(long, default_value_t = 15_000_000)]
    calls: u64,
    /// Only these of the programs: pipe, futex, getppid, make, hackbench
    programs: Vec<String>,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// A program to measure.
pub(super) struct Program {
    /// As it is chosen.
    pub(super) name: &'static str,
    /// As the table calls it.
    pub(super) title: String,
    /// Its command; prints its seconds.
    pub(super) command: Vec<String>,
    /// On one core, because the figures are bimodal where the scheduler decides. What is parallel is not.
    pub(super) pinned: bool,
    /// The ratio that it should not exceed.
    bar: f64,
}

/// The samples of one observer: `None` where a run did not count.
struct Column {
    observer: Observer,
    samples: Vec<Option<Sample>>,
    refused: Vec<String>,
}

/// Messages of each of hackbench's senders to each receiver: a second or two untraced.
const HACKBENCH_LOOPS: u32 = 1000;

/// Measures and prints one table a program.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let bench = Bench {
        holdup: workspace::holdup(args.holdup.as_deref())?,
        folder: workspace::scratch("bench")?,
    };
    let all = programs(args.round_trips, args.calls, &bench.folder)?;
    for program in chosen(all, &args.programs)? {
        let observers = Observer::available().into_iter();
        let mut columns: Vec<Column> = observers
            .filter(|observer| program.pinned || *observer != Observer::HoldupSameCore)
            .map(Column::new)
            .collect();
        for round in 1..=args.rounds {
            if std::io::stderr().is_terminal() {
                eprint!("\r\x1b[K{}: round {round} of {}", program.title, args.rounds);
            }
            // Each is first in its turn: what runs after something else finds another machine.
            let first = round % columns.len();
            let (before, from) = columns.split_at_mut(first);
            for column in from.iter_mut().chain(before) {
                column.add(bench.measure(column.observer, &program)?);
            }
        }
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
        println!(
            "{}, {} rounds, medians; at most {:.2}",
            program.title, args.rounds, program.bar
        );
        print(&columns);
        println!();
    }
    Ok(())
}

/// Those that were named; all of them if none was.
pub(super) fn chosen(all: Vec<Program>, names: &[String]) -> anyhow::Result<Vec<Program>> {
    if let Some(unknown) = names
        .iter()
        .find(|name| !all.iter().any(|one| one.name == **name))
    {
        let known: Vec<&str> = all.iter().map(|one| one.name).collect();
        bail!("there is no program {unknown}; there are: {}", known.join(", "));
    }
    let wanted = |one: &Program| names.is_empty() || names.iter().any(|name| name == one.name);
    Ok(all.into_iter().filter(wanted).collect())
}

/// All that are measured; what they work on is written into `folder`.
pub(super) fn programs(round_trips: u64, calls: u64, folder: &Path) -> anyhow::Result<Vec<Program>> {
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let words = |text: String| text.split(' ').map(str::to_owned).collect();
    let own = |text: String| [vec![own.clone(), "bench".into(), "workload".into()], words(text)].concat();
    let project = folder.join("project");
    project::generate(&project)?;
    Ok(vec![
        Program {
            name: "pipe",
            title: format!("pinned perf bench sched pipe, {round_trips} round trips"),
            command: words(format!("perf bench -f simple sched pipe -l {round_trips}")),
            pinned: true,
            bar: 1.25,
        },
        Program {
            name: "futex",
            title: format!("two pinned threads and a futex, {round_trips} round trips"),
            command: own(format!("futex {round_trips}")),
            pinned: true,
            bar: 1.25,
        },
        Program {
            name: "getppid",
            title: format!("{calls} getppid, which never block"),
            command: own(format!("getppid {calls}")),
            pinned: true,
            bar: 1.01,
        },
        Program {
            name: "make",
            title: format!("make -j2 of {} C files", project::FILES),
            command: own("build".to_owned())
                .into_iter()
                .chain([project.to_string_lossy().into_owned()])
                .collect(),
            pinned: false,
            bar: 1.02,
        },
        Program {
            name: "hackbench",
            title: format!("hackbench (perf bench sched messaging), 5 groups, {HACKBENCH_LOOPS} loops"),
            command: words(format!(
                "perf bench -f simple sched messaging -g 5 -l {HACKBENCH_LOOPS}"
            )),
            pinned: false,
            bar: 1.3,
        },
    ])
}

impl Column {
    fn new(observer: Observer) -> Column {
        Column {
            observer,
            samples: Vec::new(),
            refused: Vec::new(),
        }
    }

    fn add(&mut self, measured: Result<Sample, String>) {
        match measured {
            Ok(sample) => self.samples.push(Some(sample)),
            Err(why) => {
                self.samples.push(None);
                self.refused.push(why);
            }
        }
    }

    fn all(&self, figure: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().flatten().map(figure).collect()
    }

    /// A figure of this column over another's, round by round, where both counted.
    fn ratios(&self, base: &Column, figure: fn(&Sample) -> f64) -> Vec<f64> {
        let rounds = self.samples.iter().zip(&base.samples);
        rounds
            .filter_map(|(own, base)| Some(figure(own.as_ref()?) / figure(base.as_ref()?)))
            .collect()
    }
}

fn print(columns: &[Column]) {
    println!(
        "  {:<18} {:>9} {:>7} {:>15} {:>8} {:>9} {:>10} {:>8}",
        "", "seconds", "ratio", "range", "of CPU", "start s", "report s", "counted"
    );
    for column in columns {
        let ratios = column.ratios(&columns[0], |sample| sample.seconds);
        let of_cpu = column.ratios(&columns[0], |sample| sample.cpu);
        let spread =
            range(ratios.iter().copied()).map(|(least, greatest)| format!("{least:.3} to {greatest:.3}"));
        println!(
            "  {:<18} {:>9} {:>7} {:>15} {:>8} {:>9} {:>10} {:>8}",
            column.observer.name(),
            figure(median(column.all(|sample| sample.seconds))),
            figure(median(ratios)),
            spread.unwrap_or_default(),
            figure(median(of_cpu)),
            figure(median(column.all(|sample| sample.start_delay))),
            figure(median(column.all(|sample| sample.report_delay))),
            format!(
                "{}/{}",
                column.samples.iter().flatten().count(),
                column.samples.len()
            ),
        );
    }
    for column in columns {
        if let Some(why) = column.refused.last() {
            println!(
                "  {} of {} do not count, the last because {why}",
                column.refused.len(),
                column.observer.name()
            );
        }
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

#[cfg(test)]
mod tests {
    use super::{Column, Observer, Sample};

    #[test]
    fn ratios_pair_rounds_and_leave_out_what_did_not_count() {
        let sample = |seconds| Sample {
            seconds,
            cpu: seconds,
            start_delay: 0.0,
            report_delay: 0.0,
        };
        let mut base = Column::new(Observer::None);
        let mut own = Column::new(Observer::Holdup);
        for (untraced, traced) in [(1.0, Ok(1.5)), (2.0, Err("lost")), (4.0, Ok(5.0))] {
            base.add(Ok(sample(untraced)));
            own.add(traced.map(sample).map_err(str::to_owned));
        }
        assert_eq!(own.ratios(&base, |sample| sample.seconds), [1.5, 1.25]);
        assert_eq!(own.refused, ["lost"]);
    }
}
