//! Ready to run, but others had the CPU.

use crate::rules::{
    Extend, Generality, MATTERS, Rule, RuleId, Run, Waits, commands, duration, fires, queueing, saturated,
    say,
};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Nanoseconds of queueing below which there is no harm, whatever its share: a program that shares a CPU waits for one
/// turn of another as a matter of course, and a turn is 3 to 10 ms, longer while a machine is busy.
const MIN_QUEUED_NS: Ns = 30_000_000;

/// Queueing, in nanoseconds, below which a turn is no more than being woken takes: an idle CPU has to leave its rest, in
/// a guest by way of the hypervisor, which takes some tens of microseconds.
const MAX_WAKEUP_NS: Ns = 100_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::CpuContended, check, saturated::seen)
    .about("threads are runnable, but other threads have the CPU")
    .causes(&[Cause::SchedRunqueue, Cause::SchedSteal])
    .generality(Generality::Describes)
    .explains(&[RuleId::SomeRequestsSlow]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    if waits.cause() == Cause::SchedSteal {
        return fires(
            RULE.finding(
                Severity::Warning,
                "The hypervisor ran something else on this machine's CPUs",
                waits,
            )
            .remedy(Remedy::safe(
                "move the guest to a host with less load, or give it dedicated CPUs",
            )),
        );
    }
    if waits.cost() < MIN_QUEUED_NS {
        return fires(short(run, waits));
    }
    queued(run, waits)
}

/// A nice value counts only within a session where each session has a group of its own.
fn lower_them(run: &Run<'_>) -> &'static str {
    match run
        .facts
        .sysctl
        .get("kernel/sched_autogroup_enabled")
        .map(String::as_str)
    {
        Some("1") => {
            "move the other processes to other CPUs, or lower their share (cpu.weight; for another session, \
             /proc/PID/autogroup instead of nice)"
        }
        _ => "move the other processes to other CPUs, or lower their priority (nice, cpu.weight)",
    }
}

/// Nobody is in the way of so little.
fn short(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    RULE.finding(
        Severity::Note,
        format!(
            "It was runnable for {} before it got a CPU: one or two time slices of another task",
            duration(waits.cost())
        ),
        waits,
    )
    .and_if(queueing::who_ran(run, waits))
    .remedy(Remedy::safe(
        "do nothing, unless it happens each time and each millisecond matters",
    ))
}

/// Nobody else had the CPU for most of it: it is what being woken takes, very often.
fn slow_wakings(waits: &Waits<'_>, who: &str, others: Ns) -> Finding {
    let title = format!(
        "{} wakeups of {who}, {} each until it ran",
        waits.count(),
        duration(waits.median())
    );
    RULE.finding(Severity::Note, title, waits)
        .and(Evidence::new(
            format!(
                "other tasks ran for only {} of {} in that time: the rest is the cost of wakeups",
                duration(others),
                duration(waits.own())
            ),
            "sched_switch",
        ))
        .confidence(Confidence::Suspect)
        .remedy(Remedy::safe(
            "hand over more work at a time, so that there are fewer wakeups",
        ))
}

/// It was holdup itself for most of the queueing, and nobody else for as long as matters: a cost of observing, which is gone without it,
/// and nothing that is wrong.
fn observed(waits: &Waits<'_>, who: &str, ours: Ns) -> Verdict {
    Verdict::Clear(format!(
        "holdup itself had the CPU for {} of the {} in which {who} was runnable",
        duration(ours),
        duration(waits.own())
    ))
}

/// Others ran.
fn queued(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let instead = queueing::ran_instead(waits);
    let (who, pid) = queueing::who(waits);
    let own = |name: &str| {
        run.attributed
            .threads
            .iter()
            .any(|thread| thread.name.process == name || thread.name.thread == name)
    };
    let own_ns: Ns = instead
        .iter()
        .filter(|(name, _)| own(name))
        .map(|(_, ns)| ns)
        .sum();
    let all_ns: Ns = instead.iter().map(|(_, ns)| ns).sum();
    // Who had the CPU is said only where most of the queueing shows it; a guest's CPU may not have run at all.
    let seen = all_ns.saturating_mul(2) >= waits.own();
    let by_itself = seen && own_ns.saturating_mul(2) > all_ns;
    if !seen && waits.median() < MAX_WAKEUP_NS {
        return fires(slow_wakings(waits, &who, all_ns));
    }
    let ours = queueing::by_observer(run, waits);
    let another = instead.iter().find(|(name, _)| !queueing::is_observer(run, name));
    let another_matters = another.is_some_and(|(_, ns)| run.matters(*ns, MATTERS));
    if ours.saturating_mul(2) > waits.own() && !another_matters {
        return observed(waits, &who, ours);
    }
    // A program's own threads and holdup's are not the ones to name where others ran, too.
    let named: Ns = instead
        .iter()
        .filter(|(name, _)| queueing::is_observer(run, name))
        .map(|(_, ns)| ns)
        .sum();
    let proven = ours.saturating_mul(2) > named;
    let other = instead
        .iter()
        .find(|(name, _)| !(own(name) || proven && queueing::is_observer(run, name)));
    let more_threads = instead.first().is_some_and(|(name, _)| own(name));
    let (severity, title) = match (instead.first(), other) {
        (Some(_), _) if by_itself => (
            Severity::Note,
            "It has more runnable threads than CPUs".to_owned(),
        ),
        (Some(_), Some((other, _))) if seen && more_threads => (Severity::Warning, {
            let program = say::name_or(&waits.main().asker.name.process, &who);
            format!("{program} has more runnable threads than CPUs, and {other} runs beside them")
        }),
        (Some((name, _)), other) if seen => (
            Severity::Warning,
            format!(
                "{} had the CPU while {who} was runnable",
                other.map_or(*name, |(other, _)| *other)
            ),
        ),
        _ => (
            Severity::Warning,
            format!("{who} was runnable and waited for a CPU"),
        ),
    };
    let finding = RULE
        .finding(severity, title, waits)
        .about_if_unnamed(match (seen, by_itself, other) {
            (true, true, _) => queueing::winner(waits),
            (true, false, Some((other, _))) => Some(Resource::named(ResourceKind::Process, *other)),
            _ => None,
        });
    let finding = match (instead.is_empty(), seen) {
        (true, _) => finding.confidence(Confidence::Suspect),
        (false, true) => finding
            .and_if(queueing::who_ran(run, waits))
            .confidence(Confidence::Proved),
        (false, false) => finding
            .and(Evidence::new(
                format!(
                    "other tasks ran for only {} of {} in that time: {}",
                    duration(all_ns),
                    duration(waits.own()),
                    queueing::names(run, &instead)
                ),
                "sched_switch",
            ))
            .confidence(Confidence::Suspect),
    };
    let finding = finding.and_if(queueing::stolen(run));
    fires(match by_itself {
        true => finding.remedy(Remedy::safe(
            "give it more CPUs; fewer threads take as long, but disturb other programs less",
        )),
        false => finding
            .remedy(Remedy::changing(lower_them(run), "they then take longer"))
            .remedy(
                Remedy::safe("check whether it is bound to one CPU, and let it run on more").with_command(
                    match commands::has_ended(run, pid) {
                        // It had the CPUs of the shell that began it.
                        true => "taskset -pc $$".to_owned(),
                        false => format!("taskset -pc {pid}"),
                    },
                ),
            ),
    })
}
