//! `holdup try`: plan, say what is at stake, run A B B A, judge, render.
//!
//! In: CMD and a cause. Out: a report of a run as it is, with the experiment beside it. The middle one of the runs as it is is reported.

use crate::cli::{Color, TryArgs};
use crate::experiment::arms::{
    Done, HOSTS, Hooks, Kind, LISTED, Laboratory, Names, TookTooLong, can_be_kept_apart, order,
};
use crate::experiment::checks::{Reach, Sight, decide};
use crate::experiment::directory;
use crate::experiment::without::{Way, way};
use crate::output::{Outputs, Place, say, write_file};
use crate::progress::Progress;
use crate::usage::Usage;
use crate::verdict;
use anyhow::{Context, bail};
use holdup_collect as collect;
use holdup_comparison::experiment::{Arm, Design, Pair, judge, not_there, nothing_to_take, predict_by_path};
use holdup_evidence::{Cause, LossClass, Ns};
use holdup_files::{Guard, Missing};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Experiment, Outcome, PredictedBy, Report, SubjectKind};
use holdup_subject::signals::Signals;
use holdup_subject::subject::{Command, Here, Standing, User};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Between the kernel and holdup, bytes: what `holdup run` takes where nobody says anything else.
const BUFFER: u32 = 16 << 20;

/// There is no verdict.
const NO_VERDICT: u8 = 1;

/// What is to be kept in mind where runs could not be traced.
const SAMPLED: &str = "elapsed times are exact; the causes and the remaining wait are an estimate from \
 samples of /proc";

/// What came of the runs.
enum Came {
    /// All were made, or one was enough.
    Reported {
        experiment: Box<Experiment>,
        as_is: Vec<Done>,
    },
    /// Why not.
    Refused(String),
}

/// Runs the experiment.
///
/// # Errors
/// When the plan is wrong, or CMD could not be kept apart, run or observed.
pub(crate) fn run(args: &TryArgs, color: Color) -> anyhow::Result<u8> {
    let way = way(&args.without).map_err(Usage::Wrong)?;
    let directory = args.memory.as_deref().map(directory::look).transpose()?;
    let sight = Sight {
        root: nix::unistd::geteuid().is_root(),
        other_user: args.user.user.is_some(),
        hosts: Path::new(HOSTS).is_file(),
        runs: 2 * args.runs,
        directory,
    };
    let reach = decide(way, &sight).map_err(Usage::Wrong)?;
    let user = User::asked(args.user.user.as_deref(), args.user.preserve_env)?;
    let outputs = Outputs::open(&args.report, Place::Stdout, color)?;
    keep_folder(args.keep.as_deref())?;
    // Before anybody is asked: can it be done here at all?
    can_be_kept_apart(way, sight.directory.as_ref())?;
    agreed(args, way, &reach)?;
    let mut signals = Signals::watch()?;
    let mut laboratory = Laboratory {
        way,
        command: Command {
            argv: args.command.clone(),
            user,
        },
        hooks: Hooks {
            prepare: args.prepare.clone(),
            warmup: args.warmup.clone(),
            cleanup: args.cleanup.clone(),
        },
        directory: sight.directory,
        how: collect::How {
            tracing: holdup_bpf::Options {
                buffer: BUFFER,
                pace: holdup_bpf::Pace::Command,
            },
            keep: None,
            jvm_attach: args.jvm.ask(),
            follow: false,
            logs: false,
            predict: Some(collect::Predict { together: way.causes }),
            budget: None,
        },
        limit: Duration::from_secs(args.timeout),
        stdin: again_and_again()?,
        nothing: nothing()?,
        standing: Standing::of_self(),
        here: Here::of_self()?,
        signals: &mut signals,
        written: Vec::new(),
        names: Names::default(),
        untraced: None,
    };
    let design = design(way, reach);
    match runs(args, &mut laboratory, &design)? {
        Came::Refused(why) => {
            say(&why);
            Ok(NO_VERDICT)
        }
        Came::Reported { experiment, as_is } => {
            let found = experiment.outcome != Outcome::Remains;
            outputs.write(&report(*experiment, as_is));
            Ok(if found { 0 } else { NO_VERDICT })
        }
    }
}

fn design(way: &Way, reach: Reach) -> Design {
    Design {
        without: way.name.to_owned(),
        causes: way.causes.to_vec(),
        how: way.how.to_owned(),
        escapes: way.escapes.to_owned(),
        risk: way.risk.to_owned(),
        contained: reach.contained,
        not_contained: reach.not_contained,
    }
}

/// Says what CMD will reach, and asks.
fn agreed(args: &TryArgs, way: &Way, reach: &Reach) -> anyhow::Result<()> {
    // Who is asked has to know what for.
    let asked = !args.yes && std::io::stdin().is_terminal();
    if asked || !args.report.quiet {
        say(&format!(
            "CMD will run {} times: {} unchanged and {} without {}, where {}",
            2 * args.runs,
            args.runs,
            args.runs,
            way.name,
            way.how
        ));
        reach
            .contained
            .iter()
            .for_each(|one| say(&format!("contained: {one}")));
        reach
            .not_contained
            .iter()
            .for_each(|one| say(&format!("NOT contained: {one}")));
    }
    if args.yes {
        return Ok(());
    }
    if !asked {
        bail!(Usage::Wrong(format!(
            "CMD would run {} times, and stdin is not a terminal, so holdup cannot ask; add --yes if these runs are safe",
            2 * args.runs
        )));
    }
    say("Run CMD? [y/N]");
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was run"),
    }
}

/// Runs A B B A, as long as there is something to be learnt.
fn runs(args: &TryArgs, laboratory: &mut Laboratory<'_>, design: &Design) -> anyhow::Result<Came> {
    let mut progress = Progress::begin(args.report.quiet);
    laboratory.warm_up()?;
    let mut as_is: Vec<Done> = Vec::new();
    let mut pairs: Vec<Pair> = Vec::new();
    let mut predicted = None;
    for number in 0..args.runs {
        let mut pair = Pair::default();
        for kind in order(number) {
            let way = laboratory.way;
            progress.tell(|| format!("pair {} of {}, {}", number + 1, args.runs, kind.words(way)));
            let done = match laboratory.run(kind) {
                Ok(done) => done,
                Err(error) if error.is::<TookTooLong>() => return Ok(Came::Refused(error.to_string())),
                Err(error) => return Err(error),
            };
            keep(args.keep.as_deref(), number, kind, &done)?;
            if let Some(why) = failed(&done, kind, way) {
                return Ok(Came::Refused(why));
            }
            let arm = Arm::from(&done.collected.attributed);
            match kind {
                Kind::Without => pair.without = arm,
                Kind::AsIs => {
                    if number == 0 {
                        // Looks that did not meet a wait do not show that there is none, nor does a run of which the kernel hid some.
                        let all_seen = laboratory.untraced.is_none() && !has_unseen_waits(&done);
                        if all_seen && not_there(&arm, design) {
                            let experiment = Box::new(nothing_to_take(design, &arm));
                            let as_is = vec![done];
                            return Ok(Came::Reported { experiment, as_is });
                        }
                        let refused = match (way.refuses)(&done.collected.attributed) {
                            None => laboratory.learn(&done)?,
                            why => why,
                        };
                        if let Some(why) = refused {
                            let why = format!("{} cannot be removed from CMD: {why}", way.name);
                            return Ok(Came::Refused(why));
                        }
                        // Looks do not show who waits for whom, and miss waits.
                        let attributed = &done.collected.attributed;
                        let traced = laboratory.untraced.is_none();
                        predicted = traced.then(|| predict(attributed, &arm, &design.causes));
                    }
                    pair.as_is = arm;
                    as_is.push(done);
                }
            }
        }
        pairs.push(pair);
    }
    progress.clear();
    let mut experiment = Box::new(judge(design, &pairs, predicted));
    experiment.notes.extend(in_the_table(&laboratory.names.known));
    if laboratory.untraced.is_some() {
        experiment.notes.push(SAMPLED.to_owned());
    }
    Ok(Came::Reported { experiment, as_is })
}

/// Whether the kernel showed less than all waits of a run, as some kernels do now and then.
fn has_unseen_waits(done: &Done) -> bool {
    let unseen = [LossClass::WaitRecord, LossClass::Waking, LossClass::Switch].map(LossClass::phrase);
    let lost = &done.collected.attributed.coverage.lost;
    lost.iter()
        .any(|(what, count, _)| *count > 0 && unseen.contains(&what.as_str()))
}

/// Which names were answered from a table.
fn in_the_table(names: &[String]) -> Option<String> {
    let listed = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("names in /etc/hosts in the runs without net.dns: {listed}{more}"))
}

/// Before the second run: what will it be?
fn predict(as_is: &Attributed, arm: &Arm, causes: &[Cause]) -> (Ns, PredictedBy) {
    match as_is.predictions.as_ref().and_then(|all| all.together) {
        Some(ns) => (ns, PredictedBy::Replay),
        None => (predict_by_path(arm, causes), PredictedBy::CriticalPath),
    }
}

/// A CMD that fails has not done its work, and how long it took tells nothing.
fn failed(done: &Done, kind: Kind, way: &Way) -> Option<String> {
    let status = done.ended.status();
    if status == 0 {
        return None;
    }
    let words = match done.words.as_str() {
        "" => "it wrote nothing to stderr".to_owned(),
        words => format!("its last words on stderr: {words}"),
    };
    let hint = match kind {
        Kind::AsIs => {
            "CMD has no terminal here, and stdin is empty unless it is a file; if this status means success, run sh -c 'CMD || true'"
        }
        Kind::Without => {
            "either CMD needs this wait, or a run changes the initial state of the next one (--prepare can restore it)"
        }
    };
    Some(format!(
        "CMD ended with status {status} ({}), so the runs cannot be compared; {words}; {hint}",
        kind.words(way)
    ))
}

/// stdin, if it is a file: that can be read from its start in each run.
fn again_and_again() -> anyhow::Result<Option<File>> {
    let stdin = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .context("cannot keep stdin")?;
    let file = File::from(stdin);
    let regular = file.metadata().is_ok_and(|about| about.is_file());
    Ok(regular.then_some(file))
}

fn nothing() -> anyhow::Result<File> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    null.context("cannot open /dev/null")
}

fn keep_folder(folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = folder else { return Ok(()) };
    holdup_files::folder(path, Guard::Anybody, Missing::Make)
        .map(drop)
        .with_context(|| format!("cannot make {path:?}"))
}

/// Writes the report of a run: `1-as-is.json`, `1-without.json`.
fn keep(folder: Option<&Path>, number: u32, kind: Kind, done: &Done) -> anyhow::Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    let name = match kind {
        Kind::AsIs => "as-is",
        Kind::Without => "without",
    };
    let path = folder.join(format!("{}-{name}.json", number + 1));
    let report = verdict::of(done.observed.clone(), &done.collected);
    let mut text = Vec::new();
    holdup_views::Format::Json
        .write(&report, &mut text)
        .expect("memory can be written to");
    write_file(&path, &text)
}

/// The middle one of the runs as it is, and the experiment.
fn report(experiment: Experiment, mut as_is: Vec<Done>) -> Report {
    as_is.sort_by_key(|done| done.collected.attributed.elapsed);
    let middle = as_is.swap_remove(as_is.len() / 2);
    let mut report = verdict::of(middle.observed, &middle.collected);
    report.subject.kind = SubjectKind::Try;
    report.experiment = Some(experiment);
    report
}
