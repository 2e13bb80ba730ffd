//! A change of a file system has to wait for the transaction that is being written.

use crate::finding::{Remedy, Severity, Verdict};
use crate::rules::{Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, devices::device, say};
use holdup_evidence::Cause;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::JournalWaits,
    about: "changes wait for the file system's transaction that is being written",
    needs: &[Need::SchedulerEvents, Need::KernelStacks],
    causes: &[Cause::DiskJournal],
    from: MATTERS,
    gives_way_to: &[RuleId::MappedWriteWaits],
    place: Place::End,
    check,
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let groups = run.worth(waits, waits.split(|wait| device(run, wait).name), MATTERS);
    let finding = |group: &Waits<'_>| {
        let main = group.main();
        let device = device(run, main);
        let who = say::who(&main.asker.name);
        let title = format!(
            "{who} syncs nothing, and waits for the journal of {}: a transaction is being written",
            device.name
        );
        let finding = RULE
            .finding(Severity::Warning, title, group)
            .and_if(say::kernel_top(group));
        device
            .tell(finding)
            .remedy(Remedy::safe("find who syncs on this file system, and let that be done less often or elsewhere"))
            .remedy(Remedy::changing(
                "give the one that syncs a file system of its own, or the journal a faster device",
                "data has to be moved",
            ))
            .remedy(Remedy::pointless(
                "making this program sync less: it syncs nothing, and waits for the transaction of others",
            ))
    };
    Verdict::Fires(groups.iter().map(finding).collect())
}
