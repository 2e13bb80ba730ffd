//! sync(2) waits for every file system of the machine.

use crate::rules::devices::device;
use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SyncWaitsForAll, check)
    .about("sync waits for all file systems of the machine")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::DiskSync]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let all = waits.only(|wait| wait.call.as_deref() == Some("sync"));
    let Some(waits) = all.filter(|waits| run.matters(waits.cost(), MATTERS)) else {
        return Verdict::Clear("sync of all file systems took less than 10 % of the elapsed time".into());
    };
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let seen = waits.iter().find(|wait| wait.resource.detail.device.is_some());
    let device = seen.map(|wait| device(run, wait));
    let mostly = device
        .as_ref()
        .map_or_else(String::new, |device| format!(", here for {}", device.name));
    let title = format!("{who} calls sync, which waits for all file systems of the machine{mostly}");
    let mut finding = RULE
        .finding(Severity::Warning, title, &waits)
        .and_if(say::kernel_top(&waits));
    if let Some((wait, device)) = seen.zip(device) {
        let mount = wait.resource.detail.mount.as_ref();
        let text = mount.map(|mount| format!("pages of {mount} were being written to {}", device.name));
        finding = finding.and_if(text.map(|text| Evidence::new(text, "folio_wait_writeback")));
        finding.resource = wait.resource.clone();
        finding = device.tell(finding);
    }
    fires(
        finding
            .remedy(
                Remedy::safe("sync only one file or file system: fsync, syncfs, sync -f FILE")
                    .with_command("sync -f FILE"),
            )
            .remedy(Remedy::pointless(
                "writing less in this program: sync also waits for the data of others",
            )),
    )
}
