//! A JVM stands still while it writes a figure of its own into a mapped file on a slow disk.

use crate::rules::devices::device;
use crate::rules::{MATTERS, Need, Rule, RuleId, Run, Waits, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::JvmFiguresOnSlowDisk, check)
    .about("a JVM waits for a disk to write its performance data")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[
        Cause::DiskWrite,
        Cause::DiskJournal,
        Cause::DiskWriteback,
        Cause::MemPagefault,
    ])
    .from(0.0)
    .explains(&[RuleId::MappedWriteWaits]);

/// In the path of the file.
const FILE: &str = "/hsperfdata_";

/// Whether a JVM has a file mapped that is called by a number, as its figures are: where `/tmp` is mounted elsewhere too, the folder may
/// have another name here.
fn of_jvm(run: &Run<'_>, wait: &AttributedWait, file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    is_number && run.facts.jvms.iter().any(|jvm| jvm.pid == wait.asker.name.pid)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let stores = waits.only(|wait| {
        let file = device(run, wait).file;
        let file = file.as_deref().unwrap_or(&wait.resource.name);
        wait.call.is_none() && (file.contains(FILE) || of_jvm(run, wait, file))
    });
    let Some(stores) = stores else {
        return Verdict::Clear(format!("0 waits of {} were for such a file", waits.cause()));
    };
    let main = stores.main();
    let pid = main.asker.name.pid;
    // While the thread that stops all others waits, all others do.
    let stopped = run.waits(|wait| {
        wait.asker.name.pid == pid && matches!(wait.cause, Cause::RuntimeSafepoint | Cause::RuntimeGc)
    });
    let others = stopped.map_or(0, |stopped| stopped.cost());
    if !run.matters(stores.cost().max(others), MATTERS) {
        return Verdict::Clear(format!(
            "waits for it took {} of the elapsed time",
            percent(run.share(stores.cost()))
        ));
    }
    let who = say::name_or(&main.asker.name.process, "a JVM");
    let title =
        format!("{who} waits for a disk to write its performance data, and all its threads wait with it");
    let tells = device(run, main);
    let mut finding = RULE
        .finding(Severity::Warning, title, &stores)
        .confidence(Confidence::Proved)
        .and(Evidence::new(
            "it counts collections and safepoints in a mapped file while all threads are stopped, and a \
             write to it blocked",
            say::SCHEDULER,
        ));
    // What the one that stores waits is what all others stand still.
    finding.ns = Some(stores.cost().max(stores.own().min(others)));
    fires(
        tells
            .tell(finding)
            .remedy(Remedy::changing(
                "disable the mapped file: -XX:+PerfDisableSharedMem",
                "jps and jstat no longer see it; jcmd does",
            ))
            .remedy(Remedy::changing(
                "put /tmp on a tmpfs",
                "its content uses memory and is lost at a reboot",
            ))
            .remedy(Remedy::pointless(
                "tuning the garbage collector: it waits for the disk",
            )),
    )
}
