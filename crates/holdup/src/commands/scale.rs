//! `holdup scale`: how throughput and latency change as workers are added, and whether they are in each other's way.
//!
//! In: what a worker is to do, and how many there are to be. Out: a report with points, verdict and what they contend for. Every point
//! is measured several times without any tracing, in an order that is drawn, beside a control; then one worker and many are observed
//! once, to name what grew. The report's waits are those of the many.

use crate::cli::{Backend, Color, ScaleArgs};
use crate::output::{Outputs, Place};
use crate::progress::Progress;
use crate::scale::{self, Arms, Bench, Job, Operations, Taken};
use crate::usage::Usage;
use crate::verdict;
use anyhow::{Context, bail};
use holdup_collect as collect;
use holdup_comparison::scaling::{Measured, SliceWaits, WORKER, judge, order};
use holdup_evidence::{Cause, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::finding::Verdicts;
use holdup_model::report::{self, Finding, NotMeasured, Report, SubjectKind};
use holdup_report::Subject;
use holdup_subject::signals::Signals;
use holdup_subject::subject::User;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Where name servers listen.
const DNS_PORT: u16 = 53;

/// Exit status after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// Measures, judges, prints.
///
/// # Errors
/// When what is to be measured can't be, or the report can't be written.
pub(crate) fn run(args: &ScaleArgs, color: Color) -> anyhow::Result<u8> {
    let job = job(args)?;
    let control = match &args.control {
        Some(path) => Job::Read {
            path: path.clone(),
            size: args.size(),
        },
        None => job.control(),
    };
    let workers = numbers(&args.workers);
    let outputs = Outputs::open(&args.report, Place::Stdout, color)?;
    let mut signals = Signals::watch()?;
    let mut bench = Bench {
        user: User::asked(args.user.user.as_deref(), args.user.preserve_env)?,
        timeout: args.timeout,
        signals: &mut signals,
    };
    match measure(args, &mut bench, &job, &control, &workers) {
        Ok(report) => {
            outputs.write(&report);
            Ok(0)
        }
        Err(error) if error.is::<scale::Interrupted>() => {
            crate::output::say(&error.to_string());
            Ok(INTERRUPTED)
        }
        Err(error) => Err(error),
    }
}

fn measure(
    args: &ScaleArgs,
    bench: &mut Bench<'_>,
    job: &Job,
    control: &Job,
    workers: &[u32],
) -> anyhow::Result<Report> {
    let mut progress = Progress::begin(args.report.quiet);
    let operations = match args.operations {
        Some(operations) => {
            bench.try_once(job)?;
            Operations {
                subject: operations,
                control: operations,
            }
        }
        None => Operations {
            subject: bench.calibrate(job)?,
            control: bench.calibrate(control)?,
        },
    };
    let seed = match args.seed {
        Some(seed) => seed,
        None => drawn()?,
    };
    let turns = order(workers, args.repeats, seed);
    let arms = bench.measure(job, control, &turns, operations, |at, of| {
        progress
            .tell(|| format!("measured {at} of {of} slices, then the workers are observed; Ctrl-C ends it"));
    })?;
    let most = workers.last().copied().unwrap_or(1);
    progress.tell(|| "measured; now the workers are observed".to_owned());
    let observed = match args.backend {
        Backend::Proc => Err(anyhow::anyhow!("--backend proc reads only the kernel's counters")),
        Backend::Auto | Backend::Bpf => observe(bench, job, most, operations.subject),
    };
    drop(progress);
    let measured = |arms: &Arms| Measured {
        what: job.words(),
        unit: job.unit().to_owned(),
        programs: job.programs(),
        control_what: control.words(),
        cpus: cpus(),
        seed,
        subject: arms.subject.iter().map(|one| one.slice.clone()).collect(),
        control: arms.control.iter().map(|one| one.slice.clone()).collect(),
        notes: scale::notes(arms, job),
    };
    match observed {
        Ok([few, many]) => {
            let seen = [few.seen(job), many.seen(job)];
            let scaling = judge(&measured(&arms), Some(&seen));
            let subject = Subject {
                kind: SubjectKind::Scale,
                ..verdict::subject_of_attach(vec![job.words()], &many.collected)
            };
            let mut report = verdict::of(subject, &many.collected);
            report
                .findings
                .retain(|finding| !of_apparatus(finding, many.leader));
            report.scaling = Some(scaling);
            Ok(report)
        }
        Err(error) if args.backend == Backend::Bpf || error.is::<scale::Interrupted>() => Err(error),
        Err(error) => {
            let mut report = unobserved(job, &error);
            report.scaling = Some(judge(&measured(&arms), None));
            Ok(report)
        }
    }
}

/// Whether a finding is about the leader and its workers waiting for each other's begin and end: that is how it is measured, and no
/// trouble of anybody's.
fn of_apparatus(finding: &Finding, leader: u32) -> bool {
    let asker = &finding.asker;
    (asker.process == WORKER || asker.pid == leader)
        && matches!(
            finding.cause,
            Cause::IpcPipe | Cause::ProcessChild | Cause::PollWait
        )
}

/// What was observed of a slice.
struct ObservedSlice {
    collected: collect::Collected,
    operations: u64,
    workers: u32,
    leader: u32,
}

impl ObservedSlice {
    fn seen(&self, job: &Job) -> SliceWaits<'_> {
        SliceWaits {
            attributed: &self.collected.attributed,
            operations: self.operations,
            workers: self.workers,
            leader: self.leader,
            programs: job.programs(),
        }
    }
}

/// Observes one worker, and then many.
fn observe(
    bench: &mut Bench<'_>,
    job: &Job,
    many: u32,
    operations: u64,
) -> anyhow::Result<[ObservedSlice; 2]> {
    // Both are made before the first is observed: from then on holdup comes before others, and its children would, too. The one that
    // is let go first is made last: each holds the pipes of those before it open, and would keep them from seeing that they are
    // dropped.
    let all = bench.prepare(job, many, operations)?;
    let one = bench.prepare(job, 1, operations)?;
    Ok([observe_one(bench, one, 1)?, observe_one(bench, all, many)?])
}

fn observe_one(bench: &mut Bench<'_>, mut taken: Taken, workers: u32) -> anyhow::Result<ObservedSlice> {
    let how = collect::How {
        tracing: holdup_bpf::Options {
            buffer: BUFFER,
            pace: holdup_bpf::Pace::Command,
        },
        keep: None,
        jvm_attach: collect::Ask::Never,
        follow: false,
        logs: false,
        predict: None,
        budget: None,
    };
    let leader = taken.subject.pid();
    let collected = collect::run(&mut taken.subject, bench.signals, how, None)
        .map_err(|error| super::run::without_evidence(error, "the workers"))?;
    if collected.ended.is_none() {
        taken.subject.signal(libc::SIGKILL);
        taken.subject.wait()?;
        bail!(scale::Interrupted);
    }
    let operations = taken.measured(workers, bench.timeout)?.slice.operations;
    Ok(ObservedSlice {
        collected,
        operations,
        workers,
        leader,
    })
}

/// Bytes between kernel and holdup, as `run` has them.
const BUFFER: u32 = 16 << 20;

/// The report where nothing could be observed: counters alone.
fn unobserved(job: &Job, why: &anyhow::Error) -> Report {
    let subject = Subject {
        kind: SubjectKind::Scale,
        backend: report::Backend::Proc,
        command: vec![job.words()],
        pids: Vec::new(),
        started: holdup_proc::clocks::monotonic(),
        exit: None,
        elsewhere: Vec::new(),
    };
    let facts = holdup_proc::facts::collect(
        &holdup_proc::Root::system(),
        &holdup_proc::facts::Question::default(),
        &mut Vec::new(),
    );
    let facts = SystemFacts {
        unix_minus_monotonic: facts.unix_minus_monotonic,
        boot_minus_monotonic: facts.boot_minus_monotonic,
        ..SystemFacts::default()
    };
    let version = env!("CARGO_PKG_VERSION");
    let mut report = holdup_report::build(
        subject,
        &Attributed::default(),
        Verdicts::default(),
        &facts,
        version,
    );
    report.machine = verdict::this_machine();
    report.coverage.observed_ns = None;
    report.coverage.attributed_ns = None;
    report.coverage.unknown_ns = None;
    report.coverage.not_measured.push(NotMeasured {
        what: "the names of the resources that the workers waited for".to_owned(),
        why: format!("{why:#}"),
        fix: "run holdup as root, on a kernel with BPF; `holdup doctor` shows what is missing".to_owned(),
    });
    report
}

/// What a worker is to do.
fn job(args: &ScaleArgs) -> anyhow::Result<Job> {
    let size = args.size();
    Ok(if let Some(path) = &args.read {
        Job::Read {
            path: path.clone(),
            size,
        }
    } else if args.getrandom {
        Job::Getrandom { size }
    } else if let Some(directory) = &args.sync {
        Job::Sync {
            directory: directory.clone(),
            size,
        }
    } else if let Some(path) = &args.lock {
        Job::Lock {
            path: path.clone(),
            size,
        }
    } else if let Some(server) = &args.dns {
        let name = args.name.clone();
        if !scale::is_name(&name) {
            bail!(Usage::Wrong(format!("--name needs a host name, not {name:?}")));
        }
        Job::Dns {
            server: address(server)?,
            name,
        }
    } else {
        Job::Program {
            argv: args.command.clone(),
        }
    })
}

/// The address of a name server, with or without a port.
fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let bare = text
        .parse::<IpAddr>()
        .map(|address| SocketAddr::new(address, DNS_PORT));
    bare.or_else(|_| text.parse()).map_err(|_| {
        Usage::Wrong(format!(
            "--dns needs an address such as 127.0.0.53, 192.0.2.1:5353 or [2001:db8::1]:53, not {text:?}"
        ))
        .into()
    })
}

/// Each number once, in order, from one worker on: what grows shows from there.
fn numbers(asked: &[u32]) -> Vec<u32> {
    let mut numbers = asked.to_vec();
    numbers.push(1);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// CPUs that workers may use: by affinity and by the cgroup's quota.
fn cpus() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cpus).unwrap_or(u32::MAX)
}

/// A number to draw with, of six digits, so that a person can give it again.
fn drawn() -> anyhow::Result<u64> {
    let mut bytes = [0_u8; 8];
    // SAFETY: fills at most as much as there is; it does not wait.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    nix::errno::Errno::result(got)
        .map(|_| u64::from_ne_bytes(bytes) % 1_000_000)
        .context("cannot read random numbers for the order of measurements; use --seed")
}

/// Reads a list such as `1,2,4`.
pub(crate) fn worker_number(text: &str) -> Result<u32, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| (1..=scale::MOST_WORKERS).contains(number))
        .ok_or_else(|| {
            format!(
                "numbers of workers from 1 to {}, such as 1,2,4,8",
                scale::MOST_WORKERS
            )
        })
}

/// Reads the longest that one operation may take.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    holdup_times::lengths::length(text)
}

#[cfg(test)]
mod tests {
    use super::{address, numbers, worker_number};

    #[test]
    fn numbers_of_workers_are_in_order_once_and_begin_with_one() {
        assert_eq!(numbers(&[8, 2, 8, 4]), [1, 2, 4, 8]);
        assert_eq!(numbers(&[1]), [1]);
        assert_eq!((worker_number("16"), worker_number(" 4")), (Ok(16), Ok(4)));
        for wrong in ["0", "-1", "x", "", "4097", "1.5"] {
            assert!(worker_number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_server_is_an_address_with_or_without_a_port() {
        assert_eq!(address("127.0.0.53").unwrap().to_string(), "127.0.0.53:53");
        assert_eq!(address("192.0.2.1:5353").unwrap().to_string(), "192.0.2.1:5353");
        assert_eq!(address("::1").unwrap().to_string(), "[::1]:53");
        assert!(address("dns.example").is_err());
    }
}
