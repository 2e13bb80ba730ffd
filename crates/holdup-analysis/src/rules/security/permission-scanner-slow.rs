//! Files that a scanner looks at before they may be opened.

use crate::finding::{Evidence, Remedy, Severity, Verdict};
use crate::rules::{
    Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, decisions, duration, fires, say,
};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::PermissionScannerSlow,
    about: "a scanner of files decides slowly about each open",
    needs: &[Need::SchedulerEvents, Need::KernelStacks],
    causes: &[Cause::SecurityDecision],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let waits = match decisions::asked(run, waits, "fanotify", |name| name.starts_with("fanotify_")) {
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
    let title = format!("{who} may {calls} only after {by} has looked at each: {each} a time");
    let mut finding = RULE
        .finding(Severity::Warning, title, &waits)
        .and_if(scanner.map(say::meanwhile))
        .and_if(say::kernel_top(&waits))
        .proved_if(scanner.is_some());
    if let Some(file) = main.resource.detail.get("file") {
        finding = finding.and(Evidence::new(
            format!("the longest was for {file}"),
            "the call's path",
        ));
    }
    let exclude = match scanner {
        Some(holder) => format!(
            "exclude this directory, or this program, from what {} looks at",
            say::who(&holder.name)
        ),
        None => "exclude this directory, or this program, from what the scanner looks at".to_owned(),
    };
    fires(
        finding
            .remedy(Remedy::changing(exclude, "what is excluded is not scanned"))
            .remedy(Remedy::safe(
                "open fewer files: one archive instead of many small files, a cache that keeps them open",
            ))
            .remedy(Remedy::pointless(
                "a faster disk: the file's data is not waited for",
            )),
    )
}
