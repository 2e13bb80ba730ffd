//! A unit's start ran out of time and was killed; often it is then tried again, and the boot looks merely slow.

use crate::artefacts::clock::Clock;
use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::units::{Start, between, starts};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, logs, seeding};
use holdup_evidence::{Cause, Ns, Observed};

const SECOND: Ns = 1_000_000_000;

/// Default of `DefaultTimeoutStartSec=` and of a device's job, seconds.
const DEFAULT_LIMIT: Ns = 90;

/// What steps of a start are called, of services, mounts, swap and devices.
const OF_A_START: [&str; 6] = ["start", "condition", "mount", "activation", "exec", "wait for"];

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::UnitStartTimedOut,
    about: "a unit's start ran out of time and was killed",
    needs: &[Need::Artefacts],
    causes: &[Cause::RandomUnseeded],
    from: MATTERS,
    gives_way_to: &[RuleId::CrngNotSeeded],
    place: Place::Way,
    check: Check::Artefacts(check),
};

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let clock = Clock::of(observed);
    let all = starts(observed);
    let seedings = seeding::all(observed, &clock);
    let mut spoken_of: Vec<&Start<'_>> = Vec::new();
    let mut findings = Vec::new();
    for (place, start) in all.iter().enumerate() {
        let Some((_, step)) = start.timed_out else {
            continue;
        };
        // A unit that takes too long to stop is another trouble, and holds up nobody's start.
        if !OF_A_START.iter().any(|begin| step.starts_with(begin)) {
            continue;
        }
        // Its later tries are told with the first.
        if spoken_of.iter().any(|other| other.same_boot(start, &clock)) {
            continue;
        }
        spoken_of.push(start);
        // What it waited for, where a later try ended in the instant in which that came.
        let known = seedings.iter().any(|one| one.was_for_this(start, &all, &clock));
        let cause = if known {
            Cause::RandomUnseeded
        } else {
            Cause::Unknown
        };
        let later = all.get(place + 1..).unwrap_or_default().iter();
        let later: Vec<&Start<'_>> = later.filter(|other| other.same_boot(start, &clock)).collect();
        findings.extend(finding(observed, &clock, start, &later, cause));
    }
    if findings.is_empty() {
        return logs::manager_silent(observed, "a start that ran out of time");
    }
    Verdict::Fires(findings)
}

fn finding(
    observed: &Observed,
    clock: &Clock<'_>,
    start: &Start<'_>,
    later: &[&Start<'_>],
    cause: Cause,
) -> Option<Finding> {
    let (line, step) = start.timed_out?;
    let took = start.took(clock);
    let length = took
        .map(|ns| format!(" after {}", logs::seconds(ns)))
        .unwrap_or_default();
    let more = later.iter().filter(|other| other.timed_out.is_some()).count();
    let title = match (later.is_empty(), more) {
        (false, 0) => format!(
            "{} ran out of time in its {step} step{length}, and was started again",
            start.unit
        ),
        (false, more) => format!(
            "{} ran out of time in its {step} step{length}, and {} more",
            start.unit,
            logs::times(more)
        ),
        (true, _) => format!("{} ran out of time in its {step} step{length}", start.unit),
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        cause,
        logs::quote(observed, line),
    );
    if took.is_some_and(|ns| ns.abs_diff(DEFAULT_LIMIT * SECOND) <= 2 * SECOND) {
        let text =
            format!("{DEFAULT_LIMIT} s is systemd's default limit: nothing was slow, something did not come");
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
        let text = format!("{what} {} after {which}", logs::seconds(ns));
        finding = finding.and(logs::about(observed, up, text));
    }
    let unit = crate::rules::say::quoted(start.unit);
    Some(
        finding
            .remedy(
                Remedy::safe(
                    "see which command this step runs, and let holdup watch it: holdup run -- COMMAND",
                )
                .with_command(format!(
                    "systemctl show -p ExecStartPre -p ExecStart -p TimeoutStartUSec {unit}"
                )),
            )
            .remedy(
                Remedy::safe(
                    "see what the kernel said in the same minutes: randomness, disks, network servers",
                )
                .with_command("journalctl -b -k"),
            )
            .remedy(Remedy::pointless(
                "a longer TimeoutStartSec=: it then waits longer for the same thing",
            )),
    )
}
