//! A CPU did not switch tasks for so long that the kernel complains.

use crate::rules::{Rule, RuleId, Run, fires, logs};
use holdup_evidence::observed::KernelEvent;
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::CpuLockedUp, check)
    .about("one task occupied a CPU for many seconds")
    .causes(&[Cause::CpuKernel]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lines = logs::happenings(observed, |event| match event {
        KernelEvent::SoftLockup { cpu, process, ns } => Some(Some((*cpu, process.as_str(), *ns))),
        KernelEvent::RcuStall | KernelEvent::HardLockup { .. } => Some(None),
        _ => None,
    });
    let Some((first, _)) = lines.first() else {
        return logs::kernel_silent(observed, "a CPU that does not switch tasks");
    };
    let hard = logs::happenings(observed, |event| match event {
        KernelEvent::HardLockup { cpu } => Some(*cpu),
        _ => None,
    });
    let lockups = lines.iter().filter_map(|(one, lockup)| Some((*one, (*lockup)?)));
    let longest = lockups.clone().max_by_key(|(_, (_, _, ns))| *ns);
    let (line, title) = match longest {
        Some((one, (cpu, process, ns))) => (
            one,
            format!("CPU {cpu} was occupied by {process} for {}", logs::seconds(ns)),
        ),
        None => match hard.first() {
            Some((one, cpu)) => (*one, format!("CPU {cpu} took no interrupts: hard lockup")),
            None => (
                *first,
                "A CPU did not reach a quiescent state: RCU reports a stall".to_owned(),
            ),
        },
    };
    let mut cpus: Vec<u32> = lockups.clone().map(|(_, (cpu, _, _))| cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let counted = lockups.count();
    let text = format!(
        "{counted} soft lockups on {} CPUs and {} stalls found by RCU are logged{}",
        cpus.len(),
        lines.len() - counted - hard.len(),
        match hard.len() {
            0 => String::new(),
            hard => format!(", and {hard} hard lockups"),
        }
    );
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        title,
        Cause::CpuKernel,
        logs::quote(observed, line),
    )
    .and(logs::about(observed, line, text));
    fires(
        finding
            .remedy(
                Remedy::safe(
                    "check the host first in a virtual machine: a virtual CPU that gets no real one \
                 looks the same",
                )
                .with_command("vmstat 1 5    # column st: time that the host took"),
            )
            .remedy(Remedy::safe(
                "read the stack after the line on a real machine: it names the driver or file system that \
                 occupies the CPU",
            )),
    )
}
