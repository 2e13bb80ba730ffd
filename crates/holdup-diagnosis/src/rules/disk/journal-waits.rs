//! A change of a file system has to wait for the transaction that is being written.

use crate::rules::devices::for_each_device;
use crate::rules::{Extend, Generality, Need, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_knowledge::functions::families::journal_is_full;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::JournalWaits, check)
    .about("changes wait for the file system's journal")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::DiskJournal])
    .generality(Generality::Describes);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    for_each_device(run, waits, |group, device, who| {
        let full = group
            .main()
            .kernel_stack
            .iter()
            .any(|function| journal_is_full(function));
        let state = match full {
            true => "it is full and needs a checkpoint first",
            false => "a transaction is being written, or waits for others",
        };
        let title = format!("{who} waits for the journal of {}: {state}", device.name);
        let finding = RULE
            .finding(Severity::Warning, title, group)
            .and_if(say::kernel_top(group));
        let finding = device.tell(finding);
        let finding = match full {
            true => finding.remedy(Remedy::changing(
                "give the file system a larger journal (ext4: tune2fs -O ^has_journal, then -J size=…; XFS: at mkfs), or one on a \
                 faster device",
                "the file system has to be unmounted for that",
            )),
            false => finding.remedy(Remedy::safe(
                "find the program that syncs on this file system, and make it sync less often or elsewhere",
            )),
        };
        finding
            .remedy(Remedy::safe(
                "make fewer changes at once: create, rename and delete fewer files, use one archive instead \
                 of many small files",
            ))
            .remedy(Remedy::pointless(
                "syncing less in this program: it does not wait for its own data, but for room in the \
                 journal",
            ))
    })
}
