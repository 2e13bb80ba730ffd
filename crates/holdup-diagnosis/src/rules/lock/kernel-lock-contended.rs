//! Waiting for a lock inside the kernel: of the address space, or another.

use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_model::attributed::HowKnown;
use holdup_model::finding::{Confidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::KernelLockContended, check)
    .about("threads contend for a lock inside the kernel")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::MemMmaplock, Cause::LockKernel]);

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let holders = waits.holders();
    // The one that let go last need not be the one that had it longest; an owner that the kernel names is.
    let owner = holders
        .iter()
        .find(|holder| holder.how_known == HowKnown::KernelLock);
    let whose = owner.map_or(String::new(), |owner| {
        format!(" that {} holds", say::who_with_pid(&owner.name))
    });
    let title = match (waits.cause(), main.resource.detail.object.as_ref()) {
        (Cause::MemMmaplock, _) if owner.is_some() => {
            format!("{who} waits for the lock on {}{whose}", main.resource.name)
        }
        (Cause::MemMmaplock, _) => {
            format!("Threads of {who} contend for the lock of their address space (mmap lock)")
        }
        (_, Some(object)) => format!("{who} waits for the kernel lock of {object}{whose}"),
        (_, None) => format!("{who} waits for a lock inside the kernel{whose}"),
    };
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .and_if(say::kernel_top(waits))
        .and_if(owner.or(holders.first()).map(say::meanwhile))
        .confidence(match owner {
            Some(_) => Confidence::Proved,
            None if holders.is_empty() => Confidence::Suspect,
            None => Confidence::Strong,
        });
    fires(match waits.cause() {
        Cause::MemMmaplock => finding.remedy(Remedy::safe(
            "map and unmap less often: use larger blocks, an allocator that keeps memory (MALLOC_TOP_PAD_, \
             M_MMAP_THRESHOLD), or processes instead of threads",
        )),
        _ => finding.remedy(Remedy::safe(
            "make this call from fewer threads at once, or use different files or directories",
        )),
    })
}
