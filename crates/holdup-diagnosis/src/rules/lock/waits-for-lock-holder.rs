//! Waiting for a file lock that someone else holds.

use crate::rules::{Extend, Generality, MATTERS, Need, Rule, RuleId, Run, Waits, root, say};
use holdup_evidence::Cause;
use holdup_model::attributed::{AttributedWait, Holder};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::WaitsForLockHolder, check)
    .about("another process holds a file lock")
    .needs(&[Need::SchedulerEvents, Need::LockHolders])
    .causes(&[Cause::LockFile])
    .generality(Generality::Describes);

/// Who has the lock. The kernel notes only the process: of the waiter's own one that is another of its threads.
fn holder_named(run: &Run<'_>, main: &AttributedWait, holder: &Holder) -> String {
    match holder.name.pid == main.asker.name.pid {
        true => format!("another thread of {}", say::who_with_pid(&holder.name)),
        false => say::script(run, holder.name.pid).map_or_else(
            || say::who_with_pid(&holder.name),
            |script| format!("{script} (pid {})", holder.name.pid),
        ),
    }
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let groups = run.worth(waits, waits.split(|wait| wait.resource.name.clone()), MATTERS);
    let finding = |group: &Waits<'_>| {
        let main = group.main();
        let who = say::who(&main.asker.name);
        let file = say::name_or(&main.resource.name, "a file");
        let holders = group.holders();
        let root = root::of(group);
        let title = match holders.first() {
            Some(holder) => Title::from(format!(
                "{who} waits for a lock on {file} that {} holds",
                holder_named(run, main, holder)
            ))
            .with(root.map_or_else(String::new, |root| root.stands_of(holder.name.pid))),
            None => Title::from(format!(
                "{who} waits for a lock on {file} that another process holds"
            )),
        };
        let finding = RULE
            .finding(Severity::Warning, title, group)
            .and_if(holders.first().map(say::meanwhile))
            .and_if(say::way(group))
            .and_if(say::clock(run, group))
            .proved_if(!holders.is_empty());
        let stopped = |holder: &&Holder| holder.doing == Some(Cause::ProcessStopped);
        let finding = match holders.first() {
            Some(holder) if stopped(&holder) && holder.name.pid != 0 => finding.remedy(
                Remedy::changing(
                    format!(
                        "continue {}: while it is stopped it releases nothing",
                        say::who_with_pid(&holder.name)
                    ),
                    "it was stopped for a reason: a terminal (Ctrl-Z), a debugger, an operator",
                )
                .with_command(format!("kill -CONT {}", holder.name.pid)),
            ),
            Some(holder) => root
                .map(|root| root.remedy())
                .into_iter()
                .fold(finding, Finding::remedy)
                .remedy(Remedy::safe(format!(
                    "wait for {} to finish, or start the two at different times",
                    say::who_with_pid(&holder.name)
                ))),
            None => finding.remedy(
                Remedy::safe("list the processes that have the file open")
                    .with_command(format!("fuser -v {}", say::quoted(file))),
            ),
        };
        finding
            .remedy(Remedy::safe(
                "make the holder keep the lock for a shorter time, or lock a smaller part",
            ))
            .remedy(Remedy::pointless(
                "removing the lock file: two processes then each hold a lock, on two different files",
            ))
    };
    Verdict::Fires(groups.iter().map(finding).collect())
}
