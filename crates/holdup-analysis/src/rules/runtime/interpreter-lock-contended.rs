//! Threads of an interpreter take turns, because only one of them may run the language at a time.

use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::InterpreterLockContended,
    about: "an interpreter's threads take turns",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::RuntimeInterpreter],
    from: 0.0,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let processes = waits.split(|wait| wait.asker.name.pid);
    let worth = processes
        .iter()
        .filter(|process| run.matters_without_queueing(process.cost(), MATTERS));
    let findings: Vec<Finding> = worth.map(|process| finding(run, process)).collect();
    if findings.is_empty() {
        return Verdict::Clear(run.little(RULE.causes));
    }
    Verdict::Fires(findings)
}

fn finding(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let who = say::name_or(&main.asker.name.process, "the program");
    let lock = say::name_or(&main.resource.name, "the interpreter's global lock");
    let threads: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    let title = format!("Threads of {who} take turns: only the one that has {lock} runs");
    let text = format!(
        "{} waited for it, together {} as long as the whole run",
        say::several(threads.len() as u64, "thread"),
        percent(run.share(waits.own()))
    );
    RULE.finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, "user stacks"))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "use processes instead of threads for what computes (multiprocessing, ProcessPoolExecutor)",
        ))
        .remedy(Remedy::safe(
            "compute in code that lets go of the lock meanwhile, as numpy, zlib and hashlib do with large inputs",
        ))
        .remedy(Remedy::pointless("more threads: one at a time runs"))
}
