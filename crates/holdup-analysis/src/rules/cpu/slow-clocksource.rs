//! Each look at the clock is a system call, because the kernel reads it from a device.

use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, logs, percent};
use holdup_evidence::observed::KernelEvent;
use holdup_evidence::{Cause, Observed};
use holdup_knowledge::system_calls::{self, Kind};

/// Sources that can only be read in the kernel, on every kernel.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::SlowClocksource,
    about: "each look at the clock is a slow system call",
    needs: &[Need::SchedulerEvents, Need::CpuSamples],
    causes: &[Cause::CpuKernel],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Both(check, seen),
};

fn check(run: &Run<'_>, kernel: &Waits<'_>) -> Verdict {
    let clock = kernel.only(|wait| system_calls::is_named(wait.call.as_deref(), Kind::ReadsClock));
    let cost = clock.as_ref().map_or(0, Waits::cost);
    let Some(waits) = clock.filter(|waits| run.matters(waits.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "system calls that ask for the time took {}, {} of the elapsed time",
            duration(cost),
            percent(run.share(cost))
        ));
    };
    let share = percent(run.share(waits.cost()));
    let Some(source) = run.facts.clocksource.as_deref() else {
        return Verdict::CannotTell(format!(
            "why asking for the time takes {share} of the time: which clock source the kernel uses was not read"
        ));
    };
    if !SLOW.contains(&source) {
        return Verdict::Clear(format!(
            "asking for the time takes {share}, but the clock source {source} can be read without a system call"
        ));
    }
    let finding = RULE
        .finding(
            Severity::Warning,
            format!("{share} of the time goes into asking for the time: the kernel's clock source is {source}"),
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
    let told = logs::told(observed, |event| match event {
        KernelEvent::ClockUnstable { from } => Some(from.as_str()),
        _ => None,
    });
    let Some((first, from)) = told.first() else {
        return logs::kernel_silent(observed, "a clock source that was given up");
    };
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        format!(
            "The kernel gave up its clock source {from}: each look at the clock may now be a slow system call"
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
                Remedy::safe("see whether a better source is there (tsc, kvm-clock, arch_sys_counter), and why it was given up")
                    .with_command(
                        "cat /sys/devices/system/clocksource/clocksource0/available_clocksource; dmesg | grep -i clocksource"
                            .to_owned(),
                    ),
            )
            .remedy(Remedy::changing(
                "choose it (clocksource= on the kernel's command line)",
                "a source that the kernel marked as unstable may make the time run wrong",
            ))
}
