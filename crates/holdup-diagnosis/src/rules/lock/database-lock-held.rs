//! A database's session waits for a row, a table or another thing that another session has locked.

use crate::rules::{Check, Generality, MATTERS, Need, Place, Rule, RuleId, Run, Waits, database_sessions, percent, say};
use holdup_model::attributed::{Common, DatabaseServer};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Sessions whose ids are spelt out in the command to copy; the others are in the server's own view.
const MOST_SESSIONS: usize = 8;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::DatabaseLockHeld,
    about: "a session of a database waits for what another session has locked",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::LockFutex],
    from: MATTERS,
    generality: Generality::Specific,
    explains: &[],
    place: Place::End,
    check: Check::Both(check, check_artefacts),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let locked = waits.only(|wait| wait.resource.detail.database_lock.is_some());
    let Some(locked) = locked.filter(|locked| run.matters(locked.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "locks and conditions took {} of the time, and those in a database's table of locks less than it takes to matter",
            percent(run.share(waits.cost()))
        ));
    };
    let kinds = locked.split(|wait| wait.resource.name.clone());
    let kinds = run.worth(&locked, kinds, MATTERS);
    Verdict::Fires(kinds.iter().map(finding).collect())
}

fn check_artefacts(_run: &Run<'_>, observed: &Observed) -> Verdict {
    database_sessions::check(RULE.id.id(), observed)
}

fn finding(waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let mut sessions: Vec<u32> = waits.iter().map(|wait| wait.asker.name.pid).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let what = &main.resource.name;
    let (held, held_by_others) = match main.resource.common() == Some(Common::LockedRow) {
        true => ("", ""),
        false => (
            ", which another session of the database has locked",
            ", which other sessions of the database have locked",
        ),
    };
    let title = match sessions.as_slice() {
        [_] => format!("{} waits for {what}{held}", say::who_with_pid(&main.asker.name)),
        _ => format!(
            "{} sessions of {} wait for {what}{held_by_others}",
            sessions.len(),
            say::who(&main.asker.name)
        ),
    };
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .confidence(Confidence::Strong);
    let finding = match main.resource.detail.database_lock {
        Some(DatabaseServer::Mysql) => of_mysql(finding),
        _ => of_postgresql(finding, &sessions),
    };
    finding.remedy(Remedy::pointless(
        "a faster disk or more CPUs: the session waits for a commit, not for work",
    ))
}

fn of_postgresql(finding: Finding, sessions: &[u32]) -> Finding {
    let ids: Vec<String> = sessions.iter().take(MOST_SESSIONS).map(u32::to_string).collect();
    let blocked = format!(
        "psql -c \"select pid, pg_blocking_pids(pid), query from pg_stat_activity where pid in ({})\"",
        ids.join(", ")
    );
    finding
        .and(Evidence::new(
            "it sleeps where the server waits for its own table of locks (ProcSleep); who holds the lock is in the server's memory",
            "user stacks",
        ))
        .remedy(Remedy::safe("ask the server which session is in the way").with_command(blocked))
        .remedy(Remedy::safe(
            "see what that session does: one that is idle in its transaction waits for its own client to commit",
        ).with_command("psql -c \"select pid, state, now() - xact_start as since, query from pg_stat_activity where xact_start is not null order by since desc\""))
        .remedy(Remedy::changing(
            "end transactions that nobody uses: idle_in_transaction_session_timeout; and let waiters give up: lock_timeout",
            "the transaction that is ended has to be made again by its program",
        ))
}

fn of_mysql(finding: Finding) -> Finding {
    finding
        .and(Evidence::new(
            "its thread works on a statement of a client, and sleeps where the server waits for a lock with a time limit; who has the lock \
             is in the server's memory",
            "user stacks",
        ))
        .remedy(
            Remedy::safe(
                "ask the server which transactions are open: the oldest that waits for nothing is the one in the way; without a \
                 statement of its own it waits for its own client to commit",
            )
            .with_command("mysql -e \"select trx_mysql_thread_id, trx_state, trx_started, trx_query from information_schema.innodb_trx order by trx_started\""),
        )
        .remedy(Remedy::safe("see who waits for a table's definition, and which connections sleep").with_command(
            "mysql -e \"show full processlist\"",
        ))
        .remedy(Remedy::changing(
            "end the connection that is in the way (KILL ID), and let waiters give up sooner: innodb_lock_wait_timeout for rows, \
             lock_wait_timeout for definitions",
            "the transaction that is ended has to be made again by its program",
        ))
}
