//! The boot waited for a device that never appeared, until the time for it ran out.

use crate::boot;
use crate::boot::units::{Start, between, starts};
use crate::boot::waits::{device_path, is_device};
use crate::rules::{Rule, RuleId, Run, logs, say};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, UnitEvent, What};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

const SECOND: Ns = 1_000_000_000;

/// How long after a device's time ran out what needs it is said to fail, nanoseconds: it is done at once, and the log may
/// have whole seconds.
const MAX_FAILURE_DELAY_NS: Ns = 2 * SECOND;

/// How soon after that the boot ends in the emergency shell, nanoseconds: what runs is stopped before.
const MAX_EMERGENCY_DELAY_NS: Ns = 30 * SECOND;

/// Devices that are reported of: more than any machine waits for in vain.
const MAX_DEVICES: usize = 50;

/// Where a boot ends that lacks a file system which it must have.
const EMERGENCY: [&str; 2] = ["emergency.target", "Emergency Mode"];

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::DeviceNeverAppeared, check)
    .about("the boot waited for a device that did not appear")
    .causes(&[Cause::DeviceWait]);

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let clock = Clock::of(observed);
    let starts = starts(observed);
    // The job and the manager's sentence about it are two lines of one time-out.
    let mut devices: Vec<(String, Vec<&Start<'_>>)> = Vec::new();
    for start in &starts {
        if devices.len() >= MAX_DEVICES {
            break;
        }
        let Some((line, _)) = start.timed_out.filter(|(_, step)| is_device(start.unit, step)) else {
            continue;
        };
        let path = device_path(start.unit);
        let known = devices.iter_mut().find(|(other, tries)| {
            let before = tries.first().and_then(|one| one.timed_out);
            *other == path
                && before
                    .is_some_and(|(before, _)| clock.same_boot(&before.quote, &line.quote) != Some(false))
        });
        match known {
            Some((_, tries)) => tries.push(start),
            None => devices.push((path, vec![start])),
        }
    }
    let findings: Vec<Finding> = devices
        .iter()
        .filter_map(|(path, tries)| finding(run, observed, &clock, path, (&starts, tries)))
        .collect();
    if findings.is_empty() {
        return logs::manager_silent(observed, "a device that did not come in time");
    }
    Verdict::Fires(findings)
}

fn finding(
    run: &Run<'_>,
    observed: &Observed,
    clock: &Clock<'_>,
    path: &str,
    (all, tries): (&[Start<'_>], &[&Start<'_>]),
) -> Option<Finding> {
    let (line, _) = tries.first()?.timed_out?;
    let took = tries.iter().find_map(|start| start.took(clock));
    let late = tries
        .iter()
        .any(|start| start.began.is_some_and(|one| clock.was_taken_late(one)));
    let title = match took {
        // The line with which it began is older than the log has it.
        Some(ns) if late => format!(
            "The boot waited at least {} for {path}, which did not appear",
            logs::seconds(ns)
        ),
        Some(ns) => format!(
            "The boot waited {} for {path}, which did not appear",
            logs::seconds(ns)
        ),
        None => format!("The boot waited for {path} until the timeout; it did not appear"),
    };
    let failed = failed_for_it(observed, clock, line);
    let emergency = reached_emergency(observed, clock, line);
    let severity = match emergency {
        Some(_) => Severity::Critical,
        None => Severity::Warning,
    };
    let first = logs::quote(observed, line);
    let mut finding = Finding::without_duration(RULE.id.id(), severity, title, Cause::DeviceWait, first);
    finding.ns = took.filter(|_| run.boot);
    if let Some((first, _)) = failed.first() {
        let mut units: Vec<&str> = failed.iter().map(|(_, unit)| *unit).collect();
        units.dedup();
        let text = format!("not started, because they need it: {}", units.join(", "));
        finding = finding.and(logs::about(observed, first, text));
    }
    if let Some(one) = emergency {
        finding = finding.and(logs::quote(observed, one));
    }
    for start in tries {
        finding = boot::chain::holes_of(observed, clock, all, start)
            .into_iter()
            .fold(finding, Finding::and);
    }
    if took.is_none() {
        let text = "the start of the wait is not in this log; systemd waits 90 s for a device by default";
        finding = finding.and(Evidence::new(text, observed.place(&line.quote)));
    }
    let resource = Resource {
        kind: ResourceKind::Device,
        name: path.to_owned(),
        ..Resource::default()
    };
    Some(
        finding
            .about(resource, Asker::default())
            .confidence(Confidence::Proved)
            .remedy(
                Remedy::safe("check whether the device exists under this name, and which file refers to it")
                    .with_command(format!(
                        "lsblk -f; grep -n -e UUID -e /dev/ /etc/fstab /etc/crypttab; ls -l {}",
                        say::quoted(path)
                    )),
            )
            .remedy(Remedy::changing(
                "set nofail,x-systemd.device-timeout=5s in /etc/fstab if the machine does not need it",
                "services that need that file system then start without it",
            ))
            .remedy(Remedy::pointless(
                "checking the file system: the device was not there",
            )),
    )
}

/// Units that were not started for it.
fn failed_for_it<'a>(
    observed: &'a Observed,
    clock: &Clock<'_>,
    line: &Happening,
) -> Vec<(&'a Happening, &'a str)> {
    let happenings = observed.happenings.iter();
    happenings
        .filter_map(|one| match &one.what {
            What::Unit(UnitEvent::DependencyFailed { unit }) => Some((one, unit.as_str())),
            _ => None,
        })
        .filter(|(one, _)| {
            let after = one.quote.source == line.quote.source && one.quote.line > line.quote.line;
            after && between(clock, line, one).is_some_and(|ns| ns <= MAX_FAILURE_DELAY_NS)
        })
        .collect()
}

/// That the boot ended there.
fn reached_emergency<'a>(
    observed: &'a Observed,
    clock: &Clock<'_>,
    line: &Happening,
) -> Option<&'a Happening> {
    observed.happenings.iter().find(|one| {
        let emergency = match &one.what {
            What::Unit(UnitEvent::Started { unit }) => EMERGENCY.contains(&unit.as_str()),
            _ => false,
        };
        emergency && between(clock, line, one).is_some_and(|ns| ns <= MAX_EMERGENCY_DELAY_NS)
    })
}
