//! A pipe does not end because a process that was left behind still has it open.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, percent, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::PipeHeldOpen, check)
    .about("an orphaned background process keeps a pipe open")
    .causes(&[Cause::IpcPipe]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let held = waits.only(|wait| wait.held_open_ns > 0);
    let groups = held.map_or_else(Vec::new, |held| held.split(|wait| wait.asker.name.pid));
    let findings: Vec<Finding> = groups
        .iter()
        .filter(|group| run.matters(cost(group), MATTERS))
        .map(|group| finding(run, group))
        .collect();
    if findings.is_empty() {
        let most = groups.iter().map(cost).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "orphaned processes kept a pipe open for {} of the elapsed time",
            percent(run.share(most))
        ));
    }
    Verdict::Fires(findings)
}

/// What it cost the run that pipes were held open.
fn cost(group: &Waits<'_>) -> u64 {
    let held = group.iter().map(|wait| wait.held_open_ns);
    held.fold(0, u64::saturating_add).min(group.cost())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let who = say::who(&group.main().asker.name);
    let holders = group.holders();
    let holder = holders.first().map_or_else(
        || "a process".to_owned(),
        |holder| say::who_with_pid(&holder.name),
    );
    let held = cost(group);
    let title =
        format!("{who} waits for end of file on a pipe that {holder}, left in the background, keeps open");
    let held = duration(held);
    let records_writes = run.attributed.source.records_writes();
    let text = match records_writes {
        true => format!(
            "for {held} nothing was written, the parent of {holder} had exited, and end of file came when \
             {holder} closed the pipe"
        ),
        false => format!(
            "for {held} no other process had the pipe open for writing, the parent of {holder} had exited, \
             and the wait ended when {holder} exited"
        ),
    };
    let mut finding = RULE
        .finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "process starts, exits and wakeups"))
        .and_if(holders.first().map(say::meanwhile))
        .confidence(match records_writes {
            true => Confidence::Proved,
            false => Confidence::Strong,
        });
    finding.ns = Some(cost(group));
    finding
        .remedy(Remedy::safe(
            "redirect the output of background commands: command >/dev/null 2>&1 &, or to a log file",
        ))
        .remedy(Remedy::safe(
            "close inherited descriptors in a daemon (daemon(3), setsid with redirections, or a service \
             manager)",
        ))
}
