//! Files that a scanner looks at before they may be opened.

use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, decisions, duration, fires, say};
use holdup_evidence::Cause;
use holdup_knowledge::functions::families;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::PermissionScannerSlow, check)
    .about("a file scanner is slow to allow each open")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::SecurityDecision]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let waits = match decisions::asked(run, waits, "fanotify", families::of_fanotify) {
        Ok(waits) => waits,
        Err(clear) => return clear,
    };
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let holders = waits.holders();
    let scanner = holders.first();
    let by = scanner.map_or_else(
        || "a scanner of files (fanotify)".to_owned(),
        |holder| format!("{} (fanotify)", say::who_with_pid(&holder.name)),
    );
    let calls = if system_calls::is_named(main.call.as_deref(), Kind::Execs) {
        "start a program"
    } else {
        "open files"
    };
    let each = duration(waits.own() / waits.count().max(1));
    let title = format!("{who} waits {each} for {by} to allow each request to {calls}");
    let mut finding = RULE
        .finding(Severity::Warning, title, &waits)
        .and_if(scanner.map(say::meanwhile))
        .and_if(say::kernel_top(&waits))
        .proved_if(scanner.is_some());
    if let Some(file) = main.resource.detail.file.as_ref() {
        finding = finding.and(Evidence::new(
            format!("the longest was for {file}"),
            "the call's path",
        ));
    }
    let exclude = match scanner {
        Some(holder) => format!(
            "exclude this directory or this program from the scans of {}",
            say::who(&holder.name)
        ),
        None => "exclude this directory or this program from the scans of the scanner".to_owned(),
    };
    fires(
        finding
            .remedy(Remedy::changing(exclude, "excluded files are not scanned"))
            .remedy(Remedy::safe(
                "open fewer files: one archive instead of many small files, a cache that keeps them open",
            ))
            .remedy(Remedy::pointless(
                "a faster disk: the wait is not for the data of the file",
            )),
    )
}
