//! A frozen file system: writers wait, readers do not.

use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::FileSystemFrozen, check)
    .about("the file system is frozen: writers have to wait")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::FsFrozen]);

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let mount = main.resource.detail.mount.as_ref();
    let place = mount.or(main.resource.name.starts_with('/').then_some(&main.resource.name));
    let place_words = place.map_or_else(|| "its file system".to_owned(), Clone::clone);
    let holders = waits.holders();
    let thawed_by = holders.first();
    let title = match thawed_by {
        Some(holder) => format!(
            "{who} could not write to {place_words}, which was frozen until {} thawed it",
            say::who_with_pid(&holder.name)
        ),
        None => format!("{who} cannot write to {place_words}, which is frozen"),
    };
    let severity = if waits.open() {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let mut finding = RULE
        .finding(severity, title, waits)
        .and_if(say::kernel_top(waits))
        .proved_if(thawed_by.is_some());
    if let Some(holder) = thawed_by {
        let text = format!("{} woke the writers", say::who_with_pid(&holder.name));
        finding = finding.and(Evidence::new(text, say::how_known(holder.how_known)));
    }
    let thaw = Remedy::changing(
        "find out what froze it (a backup, a snapshot), and thaw it if that was forgotten",
        "a snapshot in progress is then not consistent",
    );
    let thaw = match place {
        Some(place) => thaw.with_command(format!("fsfreeze --unfreeze {}", say::quoted(place))),
        None => thaw,
    };
    fires(finding.remedy(thaw).remedy(Remedy::pointless(
        "another disk: this one is healthy, and reads work",
    )))
}
