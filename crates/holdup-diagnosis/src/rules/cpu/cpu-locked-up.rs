//! A CPU did not switch tasks for so long that the kernel complains.

use crate::rules::kernel_places::{place, told_on_cpu};
use crate::rules::{Rule, RuleId, Run, fires, logs};
use holdup_evidence::observed::{KernelEvent, Stall};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::CpuLockedUp, check)
    .about("one task occupied a CPU for many seconds")
    .causes(&[Cause::CpuKernel]);

/// What one report says.
#[derive(Clone, Copy)]
enum Report<'a> {
    Soft(u32, &'a str, Ns, Option<&'a Stall>),
    Hard(u32, Option<&'a Stall>),
    Rcu(Option<&'a Stall>),
}

impl<'a> Report<'a> {
    /// What the lines behind the first tell.
    fn stall(&self) -> Option<&'a Stall> {
        match self {
            Report::Soft(_, _, _, stall) | Report::Hard(_, stall) | Report::Rcu(stall) => *stall,
        }
    }

    /// The one that says most: how long a CPU was occupied, then who keeps interrupts from it, then whom RCU waits for.
    fn order(&self) -> (u32, u64) {
        match self {
            Report::Soft(_, _, ns, _) => (2, *ns),
            Report::Hard(..) => (1, 0),
            Report::Rcu(stall) => (0, stall.and_then(|stall| stall.jiffies).unwrap_or(0)),
        }
    }

    fn title(&self) -> String {
        match self {
            Report::Soft(cpu, process, ns, stall) => {
                let process = match *process {
                    "" => "one task",
                    name => name,
                };
                format!(
                    "CPU {cpu} was occupied by {process} for {} (soft lockup){}{}",
                    logs::seconds(*ns),
                    stall.map_or_else(String::new, work),
                    stall.map_or_else(String::new, |stall| place(&stall.stack))
                )
            }
            Report::Hard(cpu, stall) => format!(
                "CPU {cpu} took no interrupts: hard lockup{}",
                stall.map_or_else(String::new, occupied)
            ),
            Report::Rcu(None) => "A CPU did not reach a quiescent state: RCU reports a stall".to_owned(),
            Report::Rcu(Some(stall)) => {
                let which = match stall.cpus.as_slice() {
                    [] => "A CPU".to_owned(),
                    [one] => format!("CPU {one}"),
                    [one, other] => format!("CPUs {one} and {other}"),
                    [one, more @ ..] => format!("CPU {one} and {} more CPUs", more.len()),
                };
                let long = stall
                    .jiffies
                    .map_or_else(String::new, |jiffies| format!(" for {jiffies} jiffies"));
                let starved = match stall.starved {
                    true => ", whose own thread got no CPU",
                    false => "",
                };
                format!(
                    "{which} did not reach a quiescent state{long}: RCU reports a stall{starved}{}",
                    occupied(stall)
                )
            }
        }
    }
}

/// ` with the work events free_it`.
fn work(stall: &Stall) -> String {
    match stall.work.as_str() {
        "" => String::new(),
        work => format!(" with the work {work}"),
    }
}

/// `; flusher (pid 12) had the CPU, in write_all`.
fn occupied(stall: &Stall) -> String {
    let place = place(&stall.stack);
    let work = work(stall);
    match stall.task.as_str() {
        "" => place,
        task => format!("; {task} had the CPU{work}{place}"),
    }
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let told = |stall: &'_ Stall| !stall.is_empty();
    let lines = logs::happenings(observed, |event| match event {
        KernelEvent::SoftLockup {
            cpu,
            process,
            ns,
            stall,
        } => Some(Report::Soft(
            *cpu,
            process.as_str(),
            *ns,
            Some(stall).filter(|stall| told(stall)),
        )),
        KernelEvent::HardLockup { cpu, stall } => {
            Some(Report::Hard(*cpu, Some(stall).filter(|stall| told(stall))))
        }
        KernelEvent::CpuStall(stall) => Some(Report::Rcu(Some(stall))),
        KernelEvent::RcuStall => Some(Report::Rcu(None)),
        _ => None,
    });
    // Of equals the first.
    let best = lines.iter().rev().max_by_key(|(_, report)| report.order());
    let Some((line, report)) = best else {
        return logs::kernel_silent(observed, "a CPU that does not switch tasks");
    };
    let title = report.title();
    let lockups = lines.iter().filter_map(|(_, report)| match report {
        Report::Soft(cpu, ..) => Some(*cpu),
        _ => None,
    });
    let hard = lines
        .iter()
        .filter(|(_, report)| matches!(report, Report::Hard(..)))
        .count();
    let mut cpus: Vec<u32> = lockups.clone().collect();
    cpus.sort_unstable();
    cpus.dedup();
    let counted = lockups.count();
    let text = format!(
        "{counted} soft lockups on {} CPUs and {} stalls found by RCU are logged{}: a CPU that is locked up does not leave the \
         kernel's code, and nothing else runs on it",
        cpus.len(),
        lines.len() - counted - hard,
        match hard {
            0 => String::new(),
            hard => format!(", and {hard} hard lockups"),
        }
    );
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        title,
        Cause::CpuKernel,
        logs::quote(observed, line),
    )
    .and(logs::about(observed, line, text));
    if let Some(told) = report.stall().and_then(|stall| told_on_cpu(&stall.stack)) {
        finding = finding.and(logs::about(observed, line, format!("what has the CPU {told}")));
    }
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
