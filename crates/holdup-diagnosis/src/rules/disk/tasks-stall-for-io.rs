//! Tasks stand still for disks, by the kernel's own account.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, fires, pressures};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Percent of the time in which some task waited for a disk from which that is what work mostly waits for. Lower, one
/// program that reads a file is enough.
pub(crate) const MIN_SOME_PERCENT: f64 = 50.0;

/// The same in which all tasks did that had something to do: a quarter of the time is lost whole.
pub(crate) const MIN_FULL_PERCENT: f64 = 25.0;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::TasksStallForIo, check)
    .about("tasks stall on I/O")
    .causes(&[Cause::DiskRead])
    .generality(Generality::Describes)
    .intermediate();

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let full = pressures::high(observed, Metric::PressureIoFullPercent, MIN_FULL_PERCENT);
    let some = pressures::high(observed, Metric::PressureIoSomePercent, MIN_SOME_PERCENT);
    let Some(worst) = full.or(some) else {
        return match pressures::most(observed, Metric::PressureIoSomePercent) {
            Some(most) => Verdict::Clear(format!("tasks waited for I/O at most {most:.1} % of the time")),
            None => Verdict::CannotTell(
                "for what share of the time tasks waited for I/O: `grep -H . /proc/pressure/*`".to_owned(),
            ),
        };
    };
    let who = if full.is_some() {
        "All tasks were stalled"
    } else {
        "At least one task was stalled"
    };
    let title = format!("{who} on I/O {}{}", worst.words(), worst.place());
    fires(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::DiskRead,
            worst.evidence("waiting for I/O"),
        )
        .confidence(Confidence::Proved)
        .and_if(
            some.filter(|_| full.is_some())
                .map(|some| some.evidence("some task waited")),
        )
        .remedy(Remedy::safe("find the disk, and whether it is busy").with_command("iostat -xz 1 5"))
        .remedy(Remedy::safe("list the processes that read and write").with_command("pidstat -d 1 5"))
        .remedy(Remedy::pointless("more CPUs: they wait for the same disks")),
    )
}
