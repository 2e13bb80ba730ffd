//! A unit's start ran out of time and was killed; often it is then tried again, and the boot looks merely slow.

use crate::boot::seeding::{self, Seeding};
use crate::boot::units::{Start, between, starts};
use crate::boot::{chain, waits};
use crate::rules::{Generality, Rule, RuleId, Run, logs};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, UnitEvent, What};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

const SECOND: Ns = 1_000_000_000;

/// Units of a boot that are looked at: more than any machine has that time out.
const MAX_UNITS: usize = 1_000;

/// Default of `DefaultTimeoutStartSec=`, seconds.
const DEFAULT_LIMIT_SECONDS: Ns = 90;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::UnitStartTimedOut, check)
    .about("the start of a unit timed out")
    .causes(&[Cause::RandomUnseeded])
    .generality(Generality::Describes)
    .intermediate();

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let clock = Clock::of(observed);
    let all = starts(observed);
    let seedings = seeding::all(observed, &clock);
    let ended: Vec<Vec<&Start<'_>>> = seedings.iter().map(|one| one.all_ended(&all, &clock)).collect();
    let mut spoken_of: Vec<&Start<'_>> = Vec::new();
    let mut findings = Vec::new();
    for (place, start) in all.iter().enumerate() {
        let Some((_, step)) = start.timed_out else {
            continue;
        };
        // Devices and the network have rules that say more.
        if !waits::of_a_start(step) || waits::is_device(start.unit, step) || waits::is_network(start.unit) {
            continue;
        }
        // Its later tries are reported with the first.
        if spoken_of.iter().any(|other| other.same_boot(start, &clock)) {
            continue;
        }
        spoken_of.push(start);
        if spoken_of.len() >= MAX_UNITS {
            break;
        }
        // What it waited for, where a later try ended in the instant in which that came.
        let known = ended
            .iter()
            .any(|ended| Seeding::was_for_this(start, ended, &clock));
        let cause = if known {
            Cause::RandomUnseeded
        } else {
            Cause::Unknown
        };
        let later = all.get(place + 1..).unwrap_or_default().iter();
        let later: Vec<&Start<'_>> = later.filter(|other| other.same_boot(start, &clock)).collect();
        if let Some(mut found) = finding(observed, &clock, start, (&all, &later), cause) {
            found.ns = start.took(&clock).filter(|_| run.boot);
            findings.push(found);
        }
    }
    if findings.is_empty() {
        return logs::manager_silent(observed, "a start that timed out");
    }
    Verdict::Fires(findings)
}

/// What happened, in a sentence; `tries` are all later ones, and those of them that ran out of time too.
fn title(start: &Start<'_>, clock: &Clock<'_>, tries: (usize, usize)) -> String {
    let step = start.timed_out.map_or("start", |(_, step)| step);
    // The line with which it began is older than the log has it.
    let at_least = start.began.is_some_and(|one| clock.was_taken_late(one));
    let took = start.took(clock).map(logs::seconds);
    let least = if at_least { "at least " } else { "" };
    let length = took.map_or(String::new(), |took| format!(" after {least}{took}"));
    let out_of_time = format!("{} timed out in its {step} step{length}", start.unit);
    match tries {
        (0, _) => out_of_time,
        (_, 0) => format!("{out_of_time}, and was started again"),
        (_, more) => format!("{out_of_time}, and {} more", logs::times(more)),
    }
}

fn finding(
    observed: &Observed,
    clock: &Clock<'_>,
    start: &Start<'_>,
    (all, later): (&[Start<'_>], &[&Start<'_>]),
    cause: Cause,
) -> Option<Finding> {
    let (line, _) = start.timed_out?;
    let took = start.took(clock);
    let more = later.iter().filter(|other| other.timed_out.is_some()).count();
    let title = title(start, clock, (later.len(), more));
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        cause,
        logs::quote(observed, line),
    );
    if took.is_some_and(|ns| ns.abs_diff(DEFAULT_LIMIT_SECONDS * SECOND) <= 2 * SECOND) {
        let text = format!(
            "{DEFAULT_LIMIT_SECONDS} s is the default timeout of systemd: it waited for something that did not happen"
        );
        finding = finding.and(logs::about(observed, line, text));
    }
    if let Some(one) = start.again {
        finding = finding.and(logs::quote(observed, one));
    }
    if let Some(other) = later.iter().find(|other| other.timed_out.is_none())
        && let (Some(began), Some(up)) = (other.began, other.listens.or(other.up))
        && let Some(ns) = between(clock, began, up)
    {
        let what = if other.listens.is_some() {
            "it listened"
        } else {
            "it was up"
        };
        let which = match more {
            0 => "the second start".to_owned(),
            more => format!("start {}", more + 2),
        };
        let text = match ns {
            0 => format!("{what} in the second of {which}"),
            ns => format!("{what} {} after {which}", logs::seconds(ns)),
        };
        finding = finding.and(logs::about(observed, up, text));
    }
    for one in failed_with(observed, clock, line) {
        finding = finding.and(logs::quote(observed, one));
    }
    finding = chain::holes_of(observed, clock, all, start)
        .into_iter()
        .fold(finding, Finding::and);
    let unit = crate::rules::say::quoted(start.unit);
    Some(
        finding
            .remedy(
                Remedy::safe("find the command of this step, and run it under holdup: holdup run -- COMMAND")
                    .with_command(format!(
                        "systemctl show -p ExecStartPre -p ExecStart -p TimeoutStartUSec {unit}"
                    )),
            )
            .remedy(
                Remedy::safe("read the kernel log of the same minutes: randomness, disks, network servers")
                    .with_command("journalctl -b -k"),
            )
            .remedy(Remedy::pointless(
                "a longer TimeoutStartSec=: it then waits longer for the same thing",
            )),
    )
}

/// What did not start because of this: the lines that say so came with it.
fn failed_with<'a>(observed: &'a Observed, clock: &Clock<'_>, line: &Happening) -> Vec<&'a Happening> {
    let happenings = observed.happenings.iter();
    happenings
        .filter(|one| matches!(one.what, What::Unit(UnitEvent::DependencyFailed { .. })))
        .filter(|one| one.quote.source == line.quote.source && one.quote.line > line.quote.line)
        .filter(|one| between(clock, line, one).is_some_and(|ns| ns <= SECOND))
        .take(logs::QUOTED)
        .collect()
}
