//! A store into a mapped file waits for the disk.

use crate::rules::devices::device;
use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::MappedWriteWaits, check)
    .about("a store into a mapped file waits for the disk")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::DiskWrite, Cause::DiskJournal])
    .explains(&[RuleId::JournalWaits, RuleId::SmallSynchronousWrites]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(stores) = waits
        .only(|wait| wait.call.is_none())
        .filter(|stores| run.matters(stores.cost(), MATTERS))
    else {
        return Verdict::Clear(format!(
            "{} outside of system calls took less than 10 % of the elapsed time",
            waits.cause()
        ));
    };
    let main = stores.main();
    let who = say::who(&main.asker.name);
    let device = device(run, main);
    let file = device.file.as_deref().filter(|file| file.starts_with('/'));
    let file = file.map_or_else(
        || "a mapped file".to_owned(),
        |file| format!("the mapped file {file}"),
    );
    let why = match stores.cause() {
        Cause::DiskJournal => "the file system's journal",
        _ => "the page that is being written to the disk",
    };
    let title = format!("{who} writes to memory of {file}, and waits for {why}");
    let finding = RULE
        .finding(Severity::Warning, title, &stores)
        .and(Evidence::new(
            "no system call was in progress: a store instruction had to wait",
            say::SCHEDULER,
        ))
        .and_if(say::kernel_top(&stores));
    fires(
        device
            .tell(finding)
            .remedy(Remedy::safe(
                "put small mapped files that may be lost in a crash on a tmpfs (Java: \
                 -XX:+PerfDisableSharedMem, or a tmpfs on /tmp)",
            ))
            .remedy(Remedy::safe("make other programs write less to this disk"))
            .remedy(Remedy::pointless(
                "looking for a system call or a garbage collection pause: there is \
             none",
            )),
    )
}
