//! The kernel works for it: which call, and on what.

use crate::rules::{Extend, Generality, Need, Rule, RuleId, Run, WORTH_A_NOTE, Waits, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::KernelTimeDominates, check)
    .about("much of the CPU time is spent in the kernel")
    .needs(&[Need::SchedulerEvents, Need::CpuSamples])
    .causes(&[Cause::CpuKernel])
    .from(WORTH_A_NOTE)
    .generality(Generality::Describes);

/// Askers that are named at most.
const ASKERS: usize = 3;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    if let Some(spins) = waits
        .only(|wait| wait.resource.detail.spinlock.is_some())
        .filter(|spins| spins.cost().saturating_mul(2) >= waits.cost())
    {
        return spinning(run, &spins);
    }
    let calls = waits.split(|wait| wait.call.clone());
    let top = &calls[0];
    let main = top.main();
    let share = percent(run.share(waits.cost()));
    if main.call.is_none() && (!run.attributed.source.samples_kernel_stacks() || main.why_unknown.is_some()) {
        return fires(calls_not_seen(waits, &share));
    }
    let title = match main.call.as_deref() {
        Some(call) => format!("It runs in the kernel for {share} of the time, mostly in {call}"),
        None => format!("It runs in the kernel for {share} of the time, mostly outside system calls"),
    };
    let on = match main.resource.name.as_str() {
        // A call without an object is named by itself.
        name if name.is_empty() || main.call.as_deref() == Some(name) => String::new(),
        name => format!(", the most of it on {name}"),
    };
    let call = main.call.as_deref().unwrap_or("page faults and the like");
    let cost = percent(run.share(top.cost()));
    let text = format!("{cost} of the elapsed time in {call}{on}");
    let finding = RULE
        .finding(Severity::Note, title, waits)
        .and(Evidence::new(text, "CPU samples"))
        .and_if(askers(run, top))
        .and_if(say::kernel_top(top))
        .confidence(Confidence::Strong);
    fires(finding.remedy(Remedy::safe(match main.call {
        Some(_) => "make fewer of these calls: larger buffers, several requests in one call",
        None => "touch less new memory: reuse blocks instead of mapping new ones",
    })))
}

/// Of a thread that runs, looks show neither its call nor where in the kernel it is.
fn calls_not_seen(waits: &Waits<'_>, share: &str) -> Finding {
    let title = format!("It runs in the kernel for ~{share} of the time; the calls were not observed");
    let text = "an ordinary user can read only the CPU time of a running thread, not its calls";
    let counted = "the split between user and kernel time is counted in ticks of 10 ms";
    RULE.finding(Severity::Note, title, waits)
        .and(Evidence::new(text, "/proc/PID/syscall"))
        .and(Evidence::new(counted, "CPU samples"))
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe("list its most frequent calls; as root, `holdup run` names them")
                .with_command("strace -f -c COMMAND"),
        )
}

/// The user functions that make the calls, with what each costs.
fn askers(run: &Run<'_>, waits: &Waits<'_>) -> Option<Evidence> {
    let named = waits.only(|wait| wait.asker.frame.is_some())?;
    let groups = named.split(|wait| wait.asker.frame.clone());
    let names: Vec<String> = groups
        .iter()
        .take(ASKERS)
        .filter_map(|group| {
            let frame = group.main().asker.frame.clone()?;
            Some(format!("{frame} {}", percent(run.share(group.cost()))))
        })
        .collect();
    Some(Evidence::new(
        format!("asked by {}", names.join(", ")),
        "user stacks",
    ))
}

/// It is not work: threads take turns at a lock, and those that wait for it do not sleep.
fn spinning(run: &Run<'_>, spins: &Waits<'_>) -> Verdict {
    let by_lock = spins.split(|wait| wait.resource.detail.spinlock.as_ref());
    let top = &by_lock[0];
    let main = top.main();
    let function = main.resource.detail.spinlock.as_deref().unwrap_or_default();
    let title = format!(
        "It spins in the kernel for {} of the time: other threads hold the lock in {function}",
        percent(run.share(spins.cost()))
    );
    let call = main.call.as_deref().unwrap_or("no system call");
    let on = main
        .resource
        .detail
        .of
        .as_ref()
        .filter(|of| main.call.as_deref() != Some(of.as_str()))
        .map(|of| format!(" on {of}"))
        .unwrap_or_default();
    let finding = RULE
        .finding(Severity::Warning, title, spins)
        .and(Evidence::new(format!("in {call}{on}"), "CPU samples"))
        .and_if(askers(run, top))
        .and_if(say::kernel_top(top))
        .confidence(Confidence::Strong);
    fires(
        finding
            .remedy(Remedy::safe(
                "use fewer threads in this call at once, or a separate object for each (file, socket, \
                 directory, futex)",
            ))
            .remedy(Remedy::pointless(
                "more threads or CPUs: they wait for the same lock",
            )),
    )
}
