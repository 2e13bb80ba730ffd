//! `holdup run`: plan, collect, attribute, diagnose, render.

use crate::cli::{Backend, Color, RunArgs};
use crate::commands::doctor;
use crate::output::{Asked, Outputs, Place, say};
use crate::signals::Signals;
use crate::subject::{Command, Ended, NotStarted, Subject, User};
use crate::{collect, verdict};
use anyhow::{anyhow, bail};
use holdup_analysis::Attributed;
use holdup_evidence::{Ns, SystemFacts};
use holdup_proc::Problem;
use nix::poll::PollTimeout;

/// What is to be done: all that can be wrong about it was found out before CMD runs.
#[derive(Debug)]
struct Plan {
    command: Command,
    outputs: Outputs,
    tracing: holdup_bpf::Options,
    verbose: bool,
}

/// What observing CMD came to.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The evidence, attributed.
    pub(crate) attributed: Attributed,
    /// What the machine says of itself.
    pub(crate) facts: SystemFacts,
    /// When observation began, `CLOCK_MONOTONIC`.
    pub(crate) started: Ns,
    /// How CMD ended; `None` when the person wanted the report before that.
    pub(crate) ended: Option<Ended>,
    /// What of the machine could not be read, for `-v`.
    pub(crate) problems: Vec<Problem>,
}

/// Runs CMD, prints the report and returns CMD's exit status.
///
/// # Errors
/// When the plan is wrong, CMD did not start, or nothing could be observed.
pub(crate) fn run(args: &RunArgs, color: Color) -> anyhow::Result<u8> {
    let plan = plan(args, color)?;
    let mut signals = Signals::watch()?;
    let mut subject = Subject::prepare(&plan.command)?;
    plan.outputs.leave_stdio_to_cmd()?;
    match collect::run(&mut subject, &mut signals, plan.tracing) {
        Ok(collected) => {
            if plan.verbose {
                collected
                    .problems
                    .iter()
                    .for_each(|problem| say(&problem.to_string()));
            }
            plan.outputs
                .write(&verdict::report(&plan.command, &subject, &collected));
        }
        // CMD runs and must not be left alone because of our trouble.
        Err(error) if subject.runs() => say(&format!("observing the command failed: {error:#}")),
        Err(error) => return Err(without_evidence(error)),
    }
    see_out(&mut subject, &mut signals)
}

fn plan(args: &RunArgs, color: Color) -> anyhow::Result<Plan> {
    if args.backend == Backend::Proc {
        bail!("--backend proc is not in this version; leave the option out, or use --backend bpf");
    }
    Ok(Plan {
        command: Command {
            argv: args.command.clone(),
            user: args.user.as_deref().map(User::look_up).transpose()?,
        },
        outputs: Outputs::open(
            &Asked {
                format: args.format,
                json: args.json.as_deref(),
                verbose: args.verbose,
                quiet: args.quiet,
            },
            Place::Stderr,
            color,
        )?,
        tracing: holdup_bpf::Options { buffer: args.buffer },
        verbose: args.verbose,
    })
}

/// A CMD that did not start is its own sentence; anything else is a matter of this machine or these privileges.
fn without_evidence(error: anyhow::Error) -> anyhow::Error {
    if error.is::<NotStarted>() {
        return error;
    }
    let why = doctor::lacking().unwrap_or_else(|| format!("{error:#}"));
    anyhow!("cannot observe the command here: {why}; `holdup doctor` says what to change")
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
