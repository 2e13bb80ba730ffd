//! Each look at the clock is a system call, because the kernel reads it from a device.

use crate::rules::{MATTERS, Need, Rule, RuleId, Run, Waits, duration, fires, logs, percent};
use holdup_evidence::observed::KernelEvent;
use holdup_evidence::{Cause, Observed};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Sources that can only be read in the kernel, on every kernel.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::SlowClocksource, check, seen)
    .about("each read of the clock is a slow system call")
    .needs(&[Need::SchedulerEvents, Need::CpuSamples])
    .causes(&[Cause::CpuKernel]);

fn check(run: &Run<'_>, kernel: &Waits<'_>) -> Verdict {
    let clock = kernel.only(|wait| system_calls::is_named(wait.call.as_deref(), Kind::ReadsClock));
    let cost = clock.as_ref().map_or(0, Waits::cost);
    let Some(waits) = clock.filter(|waits| run.matters(waits.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "system calls that read the clock took {}, {} of the elapsed time",
            duration(cost),
            percent(run.share(cost))
        ));
    };
    let share = percent(run.share(waits.cost()));
    let Some(source) = run.facts.clocksource.as_deref() else {
        return Verdict::CannotTell(format!(
            "why reading the clock takes {share} of the time: the clock source of the kernel was not read"
        ));
    };
    if !SLOW.contains(&source) {
        return Verdict::Clear(format!(
            "reading the clock takes {share}, but the clock source {source} can be read without a system call"
        ));
    }
    let finding = RULE
        .finding(
            Severity::Warning,
            format!("{share} of the time is spent in reading the clock: the clock source of the kernel is \
             {source}"),
            &waits,
        )
        .and(Evidence::new(
            format!("{source} is a device that only the kernel can read: no program can read the time without a system call"),
            "current_clocksource",
        ))
        .confidence(Confidence::Strong);
    fires(remedies(finding))
}

/// What logs show: that the kernel gave up a clock source. What it took in its place is slower nearly always.
fn seen(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lines = logs::happenings(observed, |event| match event {
        KernelEvent::ClockUnstable { from } => Some(from.as_str()),
        _ => None,
    });
    let Some((first, from)) = lines.first() else {
        return logs::kernel_silent(observed, "a clock source that the kernel stopped using");
    };
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        format!(
            "The kernel stopped using its clock source {from}: each read of the clock may now be a slow \
             system call"
        ),
        Cause::CpuKernel,
        logs::quote(observed, first),
    )
    .confidence(Confidence::Suspect);
    fires(remedies(finding))
}

fn remedies(finding: Finding) -> Finding {
    finding
            .remedy(
                Remedy::safe("check whether a better source exists (tsc, kvm-clock, arch_sys_counter), and \
                 why the kernel does not use it")
                    .with_command(
                        "cat /sys/devices/system/clocksource/clocksource0/available_clocksource; dmesg | grep -i clocksource"
                            .to_owned(),
                    ),
            )
            .remedy(Remedy::changing(
                "select it with clocksource= on the kernel command line",
                "a source that the kernel marked as unstable may make the time run wrong",
            ))
}
