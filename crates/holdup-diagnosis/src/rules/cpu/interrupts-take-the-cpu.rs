//! Interrupts run on its CPU while it is on it.

use crate::rules::{Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::attributed::Interrupt;
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::InterruptsTakeTheCpu, check)
    .about("interrupts use the CPU time of the program")
    .causes(&[Cause::CpuInterrupt]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let kind = say::name_or(&main.resource.name, "interrupts");
    let measured = run.attributed.source.measures_interrupts();
    let about = if measured { "" } else { "~" };
    let title = format!(
        "Interrupts take {about}{} of the time while it is on a CPU, mostly for {kind}",
        percent(run.share(waits.cost()))
    );
    let kinds: Vec<String> = main
        .resource
        .detail
        .interrupts()
        .into_iter()
        .map(|(kind, ns)| format!("{kind} {ns}"))
        .collect();
    let text = format!(
        "{} of {}'s time on a CPU went to interrupts: {}",
        duration(main.ns),
        say::who(&main.asker.name),
        kinds.join(", ")
    );
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, "entry and exit of interrupts"))
        .confidence(match measured {
            true => Confidence::Proved,
            false => Confidence::Strong,
        });
    let finding = match main.resource.interrupt() {
        Some(Interrupt::Timers) => finding.remedy(Remedy::safe(
            "find the programs with many timers on that CPU: a profiler that was not stopped, timers of microseconds",
        )),
        Some(Interrupt::NetworkPackets | Interrupt::Calls | Interrupt::Devices) => finding.remedy(
            Remedy::changing(
                "let another CPU serve them (irqbalance, smp_affinity, rps_cpus), or let this program run on others",
                "that CPU is busy with them then",
            )
            .with_command("cat /proc/interrupts /proc/softirqs".to_owned()),
        ),
        _ => finding.remedy(
            Remedy::safe("find the counters that grow").with_command("cat /proc/interrupts /proc/softirqs".to_owned()),
        ),
    };
    fires(finding.remedy(Remedy::pointless(
        "a higher priority: interrupts come before every thread",
    )))
}
