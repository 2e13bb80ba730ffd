//! `holdup run`: plan, collect, attribute, diagnose, render.

use crate::cli::{Backend, Color, RunArgs};
use crate::commands::doctor;
use crate::gate::{self, Gate};
use crate::output::{self, Outputs, Place, say};
use crate::recorded::{Recording, Scope};
use crate::usage::Usage;
use crate::verdict;
use anyhow::{anyhow, bail};
use holdup_collect::budget::Ceiling;
use holdup_collect::privileges::Part;
use holdup_collect::{self as collect, Collected, EventsFile, Predict};
use holdup_report::Subject as Observed;
use holdup_subject::signals::Signals;
use holdup_subject::subject::{self, Command, NotShown, NotStarted, Subject, User};
use nix::poll::PollTimeout;

/// What is to be done: all that can be wrong about it was found out before CMD runs.
#[derive(Debug)]
struct Plan {
    command: Command,
    outputs: Outputs,
    gate: Option<Gate>,
    recording: Option<Recording>,
    events: Option<EventsFile>,
    source: Source,
    verbose: bool,
}

/// Where the evidence is to come from.
#[derive(Debug)]
enum Source {
    /// Tracing, and nothing else.
    Traced(collect::How),
    /// Looking at `/proc`, because that was asked for.
    Sampled(Option<Ceiling>),
    /// Tracing; where that is not to be had, looking at `/proc`.
    Best(collect::How),
}

/// Runs CMD, prints the report and returns CMD's exit status; with conditions, theirs where CMD succeeded.
///
/// # Errors
/// When the plan is wrong, CMD did not start, or nothing could be observed.
pub(crate) fn run(args: &RunArgs, color: Color) -> anyhow::Result<u8> {
    let plan = plan(args, color)?;
    let mut signals = Signals::watch()?;
    let mut subject = Subject::prepare(&plan.command)?;
    plan.outputs.leave_stdio_to_cmd()?;
    let gated = match collect_by(&plan.source, &mut subject, &mut signals, plan.events.as_ref()) {
        Ok(mut collected) => {
            if plan.verbose {
                collected
                    .problems
                    .iter()
                    .for_each(|problem| say(&problem.to_string()));
            }
            let observed = verdict::subject_of_run(&plan.command, &subject, &collected);
            let report = verdict::of(observed.clone(), &collected);
            let judged = plan.outputs.write_judged(report, plan.gate.as_ref());
            let gated = plan.gate.is_some().then_some(judged);
            keep_events(plan.events, &mut collected, &observed);
            if let Some(recording) = plan.recording
                && let Err(error) = recording.write(observed, collected)
            {
                say(&error.to_string());
            }
            gated
        }
        // CMD runs and must not be left alone because of our trouble.
        Err(error) if subject.runs() => {
            say(&format!("observing the command failed: {error:#}"));
            let gate = plan.gate.as_ref();
            gate.map(|gate| gate::status_without_report(Some(gate), 0))
        }
        // Sampling needs no privilege: what it says of itself is what is the matter.
        Err(error) if !matches!(plan.source, Source::Traced(_)) && !error.is::<NotShown>() => {
            return Err(error);
        }
        Err(error) => return Err(without_evidence(error, "the command")),
    };
    let status = see_out(&mut subject, &mut signals)?;
    Ok(gate::status_of_run(status, gated))
}

fn plan(args: &RunArgs, color: Color) -> anyhow::Result<Plan> {
    if args.predict && matches!(args.observation.backend, Backend::Proc) {
        bail!(Usage::Wrong(
            "--predict needs tracing, because sampling does not record wakers: remove --backend proc"
                .to_owned()
        ));
    }
    Ok(Plan {
        command: Command {
            argv: args.command.clone(),
            user: User::asked(args.user.user.as_deref(), args.user.preserve_env)?,
        },
        gate: Gate::open(&args.gate)?,
        outputs: Outputs::open(&args.observation.report, Place::Stderr, color)?,
        recording: Recording::open(&args.observation.recording, Scope::default())?,
        events: output::events(args.observation.events.as_deref())?,
        source: source(args),
        verbose: args.observation.report.verbose,
    })
}

fn source(args: &RunArgs) -> Source {
    let how = collect::How {
        tracing: holdup_bpf::Options {
            buffer: args.observation.buffer,
            pace: holdup_bpf::Pace::Command,
        },
        keep: Some(Part::Trace),
        jvm_attach: args.observation.jvm.ask(),
        follow: !args.alone,
        logs: !args.observation.no_logs,
        predict: args.predict.then_some(Predict { together: &[] }),
        budget: args.observation.budget.budget.map(Ceiling::set),
    };
    match args.observation.backend {
        Backend::Bpf => Source::Traced(how),
        Backend::Proc => Source::Sampled(args.observation.budget.budget.map(Ceiling::set)),
        Backend::Auto => Source::Best(how),
    }
}

/// Collects, and falls back where that was left open: tracing fails before CMD runs, if it does.
fn collect_by(
    source: &Source,
    subject: &mut Subject,
    signals: &mut Signals,
    events: Option<&EventsFile>,
) -> anyhow::Result<Collected> {
    let (how, error) = match source {
        Source::Traced(how) => return collect::run(subject, signals, *how, events),
        Source::Sampled(budget) => return collect::sample(subject, signals, None, *budget, events),
        Source::Best(how) => match collect::run(subject, signals, *how, events) {
            Err(error) if subject.is_held_back() && !error.is::<NotStarted>() && !error.is::<NotShown>() => {
                (how, error)
            }
            collected => return collected,
        },
    };
    if !subject::proc_is_ours() {
        return Err(NotShown.into());
    }
    let why = doctor::lacking().unwrap_or_else(|| format!("{error:#}"));
    say(&format!(
        "/proc is sampled, because the command cannot be traced here: {why}; `holdup doctor` shows what to \
         change"
    ));
    if how.predict.is_some() {
        say("nothing is predicted: sampling does not record wakers");
    }
    collect::sample(subject, signals, Some(&why), how.budget, events)
}

/// A CMD that did not start is its own sentence; anything else is a matter of this machine or these privileges.
/// `what` is what should have been observed.
pub(crate) fn without_evidence(error: anyhow::Error, what: &str) -> anyhow::Error {
    if let Some(not_shown) = error.downcast_ref::<NotShown>() {
        return anyhow!("{not_shown}");
    }
    if error.is::<NotStarted>() || error.is::<collect::EndedBefore>() {
        return error;
    }
    let why = doctor::lacking().unwrap_or_else(|| format!("{error:#}"));
    anyhow!("cannot observe {what} here: {why}; `holdup doctor` shows what to change")
}

/// Ends the copy of the events, if there is one. An error is said, and changes nothing else.
pub(crate) fn keep_events(file: Option<EventsFile>, collected: &mut Collected, observed: &Observed) {
    let Some((file, events)) = file.zip(collected.events.take()) else {
        return;
    };
    let written = events
        .finish(observed, &collected.attributed, &collected.facts)
        .map_err(anyhow::Error::from)
        .and_then(|()| file.complete());
    if let Err(error) = written {
        say(&format!("the events cannot be written: {error:#}"));
    }
}

/// Stays until CMD has ended, passing signals on, and returns its status.
fn see_out(subject: &mut Subject, signals: &mut Signals) -> anyhow::Result<u8> {
    if subject.try_wait()?.is_none() {
        say("the command still runs; waiting for its end");
    }
    loop {
        if let Some(ended) = subject.try_wait()? {
            return Ok(ended.status());
        }
        signals.wait(subject, PollTimeout::NONE);
        signals.serve(subject);
    }
}
