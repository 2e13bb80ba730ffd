//! SQLite waits for another connection's lock by sleeping and looking again.

use crate::rules::{MATTERS, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::Cause;
use holdup_evidence::facts::LockedFile;
use holdup_knowledge::{sqlite, user_code};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

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
    let locks = holders(run, &busy);
    let title = title(run, &busy, &locks);
    let text = format!(
        "SQLite polls the lock with sleeps between: {} times, up to {} each",
        busy.count(),
        duration(busy.longest().max)
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, &busy)
        .and(Evidence::new(text, "user stacks"))
        .confidence(match locks.is_empty() {
            true => Confidence::Strong,
            false => Confidence::Proved,
        });
    for lock in &locks {
        finding = finding.and(Evidence::new(
            format!(
                "{} has the bytes of {} locked under which SQLite writes",
                holder(run, lock),
                sqlite::database_of(&lock.file)
            ),
            "/proc/locks and /proc/PID/fdinfo, as observation ended",
        ));
    }
    finding.resource = Resource {
        kind: ResourceKind::Lock,
        name: match locks.first() {
            Some(lock) => format!("SQLite database {}", sqlite::database_of(&lock.file)),
            None => "the lock of an SQLite database".to_owned(),
        },
        ..Resource::default()
    };
    fires(
        finding
            .remedy(remedy(run, &locks))
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

/// Who has the databases locked of which those have the file open that wait.
fn holders<'a>(run: &Run<'a>, busy: &Waits<'_>) -> Vec<&'a LockedFile> {
    let waits = |lock: &&LockedFile| busy.iter().any(|wait| lock.users.contains(&wait.asker.name.pid));
    run.facts.database_files.iter().filter(waits).collect()
}

/// `perl tidy.pl (pid 7)`.
fn holder(run: &Run<'_>, lock: &LockedFile) -> String {
    let name = say::script(run, lock.holder).unwrap_or(&lock.process);
    format!("{} (pid {})", say::name_or(name, "a process"), lock.holder)
}

fn title(run: &Run<'_>, busy: &Waits<'_>, locks: &[&LockedFile]) -> String {
    let who = waiters(run, busy);
    let verb = if who.1 { "wait" } else { "waits" };
    let who = who.0;
    let Some(lock) = locks.first() else {
        return format!("{who} {verb} for another connection to unlock an SQLite database");
    };
    let file = sqlite::database_of(&lock.file);
    let mut peers = run.facts.awaited_peers.iter();
    let does = match peers.find(|peer| peer.pid == lock.holder) {
        _ if lock.stopped => ", which is stopped".to_owned(),
        Some(peer) => format!(", which waits for {} to answer", peer.address),
        None => String::new(),
    };
    format!(
        "{who} {verb} for the lock of SQLite database {file}, held by {}{does}",
        holder(run, lock)
    )
}

/// Who waits: of several processes that work side by side how many, and whether it is several.
fn waiters(run: &Run<'_>, busy: &Waits<'_>) -> (String, bool) {
    let pids: BTreeSet<u32> = busy.iter().map(|wait| wait.asker.name.pid).collect();
    let name = &busy.main().asker.name;
    if pids.len() < 2 {
        return (say::who(name), false);
    }
    let mut groups = run.facts.workers.iter();
    let process = say::name_or(&name.process, "a program");
    let several = match groups.find(|group| pids.iter().all(|pid| group.pids.contains(pid))) {
        Some(group) if group.unobserved == 0 => {
            format!("{} of {} workers of {process}", pids.len(), group.pids.len())
        }
        _ => format!("{} processes of {process}", pids.len()),
    };
    (several, true)
}

fn remedy(run: &Run<'_>, locks: &[&LockedFile]) -> Remedy {
    let Some(lock) = locks.first() else {
        return Remedy::safe("find the connection that keeps a transaction open, and commit it sooner")
            .with_command("lslocks");
    };
    let who = holder(run, lock);
    if lock.stopped {
        return Remedy::changing(
            format!("let {who} run on"),
            "somebody may have stopped it on purpose",
        )
        .with_command(format!("kill -CONT {}", lock.holder));
    }
    Remedy::safe(format!(
        "find out what {who} waits for with the transaction open, and commit before that"
    ))
    .with_command(format!("holdup attach -p {}", lock.holder))
}
