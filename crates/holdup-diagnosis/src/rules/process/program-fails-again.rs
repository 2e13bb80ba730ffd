//! A program fails, is started again, and fails again.

use crate::rules::{Rule, RuleId, Run, duration, say};
use holdup_evidence::Cause;
use holdup_knowledge::supervisors;
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::churn::{Ends, Failure};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Ends from which it is no chance: whoever keeps a service running has started it again after the first.
const MIN_FAILED: u64 = 2;

/// The same of a program that no supervisor starts: its status may be meant for a script.
const MIN_FAILED_OF_SCRIPT: u64 = 3;

/// Share of all that ended that must have failed.
const MIN_SHARE: f64 = 0.9;

/// Findings of one kind: of several that fail, those that do so most often.
const MAX_FINDINGS: usize = 3;

/// The program by which a script sleeps.
const SLEEP: &str = "sleep";

/// Where it was seen.
const SOURCE: &str = "sched_process_exit";

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ProgramFailsAgain, check)
    .about("a program fails, is started again and fails again")
    .causes(&[Cause::ProcessExit])
    .from(0.0)
    .explains(&[RuleId::SleepPolling]);

fn check(run: &Run<'_>) -> Verdict {
    let Some(churn) = &run.attributed.churn else {
        return Verdict::CannotTell("how processes ended that were started".to_owned());
    };
    let findings: Vec<Finding> = churn
        .ends
        .iter()
        .filter_map(|one| finding(run, one))
        .take(MAX_FINDINGS)
        .collect();
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => {
            let ended: u64 = churn.ends.iter().map(|one| one.ended).sum();
            let failed: u64 = churn.ends.iter().map(|one| one.failed).sum();
            Verdict::Clear(format!(
                "{} ended, {failed} with another status than 0 or by a signal of a defect",
                say::several(ended, "process")
            ))
        }
    }
}

/// Whether a script does nothing but start this program and sleep: then it is what keeps it running.
fn is_restart_loop(ends: &[Ends], one: &Ends) -> bool {
    let mut others = ends
        .iter()
        .filter(|other| other.by.pid == one.by.pid && other.program != one.program);
    others.all(|other| other.program == SLEEP)
}

/// How certain it is that this is trouble, if it may be.
fn severity(ends: &[Ends], one: &Ends, failure: Failure) -> Option<Severity> {
    let most = one.alike as f64 >= MIN_SHARE * one.ended as f64;
    let kept = matches!(failure, Failure::Signal(_)) || supervisors::is_supervisor(&one.by.process);
    // A shell's own children are parts of a script, and what answers by its status has said no.
    let answers = one.program == one.by.process || supervisors::answers_by_status(&one.program);
    match kept {
        _ if !most || answers && !matches!(failure, Failure::Signal(_)) => None,
        true => (one.alike >= MIN_FAILED).then_some(Severity::Warning),
        false if one.alike < MIN_FAILED_OF_SCRIPT => None,
        false if is_restart_loop(ends, one) => Some(Severity::Warning),
        false => Some(Severity::Note),
    }
}

fn finding(run: &Run<'_>, one: &Ends) -> Option<Finding> {
    let failure = one.failure?;
    let churn = run.attributed.churn.as_ref()?;
    let severity = severity(&churn.ends, one, failure)?;
    let by = match say::script(run, one.by.pid) {
        Some(script) => format!("{script} (pid {})", one.by.pid),
        None => say::who_with_pid(&one.by),
    };
    let program = say::name_or(&one.program, "a program");
    let (ended, look) = match failure {
        Failure::Status(status) => (
            format!("ended with status {status}{}", meaning(status)),
            Remedy::safe("read what it wrote before it ended: its log, or the log of what starts it"),
        ),
        Failure::Signal(signal) => (
            format!("crashed ({})", signal_name(signal)),
            Remedy::safe("look at the core dump, or at what it wrote before it crashed")
                .with_command("coredumpctl list"),
        ),
    };
    let title = format!(
        "{by} starts {program} again and again: {} {ended} in {}, typically after {}",
        one.alike,
        duration(churn.watched),
        duration(one.p50)
    );
    let text = format!(
        "{} of {program} ended, {} of them failed; median lifetime {}",
        say::several(one.ended, "process"),
        one.failed,
        duration(one.p50)
    );
    let asker = Asker {
        name: one.by.clone(),
        ..Asker::default()
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        severity,
        title,
        Cause::ProcessExit,
        Evidence::new(text, SOURCE),
    );
    // Of a script that only waits for it, that is the time that the failures take. A supervisor keeps others running, too.
    let waits = run.waits(|wait| wait.cause == Cause::ProcessChild && wait.asker.name.pid == one.by.pid);
    if !supervisors::is_supervisor(&one.by.process) {
        finding.ns = waits.map(|waits| waits.own().min(run.attributed.elapsed));
    }
    Some(
        finding
            .about(Resource::named(ResourceKind::Process, program), asker)
            .confidence(match severity == Severity::Note {
                true => Confidence::Suspect,
                false => Confidence::Strong,
            })
            .remedy(look)
            .remedy(Remedy::pointless("to start it again sooner: it fails each time")),
    )
}

/// What a status means that shells give (`bash(1)`, EXIT STATUS).
fn meaning(status: u8) -> &'static str {
    match status {
        126 => " (it cannot be executed)",
        127 => " (command not found)",
        _ => "",
    }
}

/// Names of the signals that defects raise, by number (`signal(7)`).
fn signal_name(signal: u8) -> String {
    let known = match signal {
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        11 => "SIGSEGV",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    known.to_owned()
}
