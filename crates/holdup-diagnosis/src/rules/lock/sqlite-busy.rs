//! SQLite waits for another connection's lock by sleeping and looking again.

use crate::rules::{MATTERS, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::user_code;
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SqliteBusy, check)
    .about("an SQLite database is locked by another connection")
    .causes(&[Cause::TimerSleep]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let busy = waits.only(|wait| user_code::sqlite_waits(&wait.asker.stack));
    let Some(busy) = busy.filter(|busy| run.matters(busy.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "sleep took {} of the elapsed time, but not in SQLite",
            percent(run.share(waits.cost()))
        ));
    };
    let who = say::who(&busy.main().asker.name);
    let title = format!("{who} waits for another connection to unlock an SQLite database");
    let text = format!(
        "SQLite polls the lock with sleeps between: {} times, up to {} each",
        busy.count(),
        duration(busy.longest().max)
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, &busy)
        .and(Evidence::new(text, "user stacks"))
        .confidence(Confidence::Strong);
    finding.resource = Resource {
        kind: ResourceKind::Lock,
        name: "the lock of an SQLite database".to_owned(),
        ..Resource::default()
    };
    fires(
        finding
            .remedy(
                Remedy::safe("find the connection that keeps a transaction open, and commit it sooner")
                    .with_command("lslocks"),
            )
            .remedy(Remedy::safe(
                "begin write transactions with BEGIN IMMEDIATE, and do nothing slow in them",
            ))
            .remedy(Remedy::changing(
                "use PRAGMA journal_mode=WAL: readers and a writer then work at the same time",
                "it needs shared memory, so no network file system; writers still wait for each other",
            ))
            .remedy(Remedy::pointless(
                "a longer busy timeout: it waits longer instead of failing",
            )),
    )
}
