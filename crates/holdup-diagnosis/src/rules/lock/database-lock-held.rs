//! A database's session waits for a row, a table or another thing that another session has locked.

use crate::rules::lock_sessions::{Ends, Released};
use crate::rules::{
    Extend, MATTERS, Rule, RuleId, Run, Waits, database_sessions, live_sessions, lock_sessions, percent, say,
    thread_sessions,
};
use holdup_evidence::{Cause, Observed};
use holdup_knowledge::user_code::{self, mysql};
use holdup_model::attributed::{Common, DatabaseServer};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::{BTreeMap, BTreeSet};

/// Sessions whose ids are spelt out in the command to copy; the others are in the server's own view.
const MAX_SESSIONS: usize = 8;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::DatabaseLockHeld, check, check_artefacts)
    .about("a database session waits for a lock of another session")
    .causes(&[Cause::LockFutex]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let locked = waits.only(|wait| wait.resource.detail.database_lock.is_some());
    let Some(locked) = locked.filter(|locked| run.matters(locked.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "locks and conditions took {} of the time, of which too little was in the lock table of a \
             database to matter",
            percent(run.share(waits.cost()))
        ));
    };
    let kinds = locked.split(|wait| match lock_sessions::group(run, wait) {
        Some(end) => (Some(end), String::new()),
        None => (None, wait.resource.name.clone()),
    });
    let kinds = run.worth(&locked, kinds, MATTERS);
    Verdict::Fires(kinds.iter().map(|kind| finding(run, kind)).collect())
}

fn check_artefacts(_run: &Run<'_>, observed: &Observed) -> Verdict {
    database_sessions::check(RULE.id.id(), observed)
}

fn finding(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let mut sessions: Vec<u32> = waits.iter().map(|wait| wait.asker.name.pid).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let ends = lock_sessions::of(run, waits);
    let what = ends
        .as_ref()
        .and_then(|ends| ends.thing(table(run, waits)))
        .unwrap_or_else(|| thing(run, waits));
    // Who has it needs no guess where the server's memory tells.
    let unknown = ends.is_none();
    let in_the_way = live_sessions::in_the_way(run, &sessions).filter(|_| unknown);
    let clients = thread_sessions::of(run, main.asker.name.pid).filter(|_| unknown);
    let (held, held_by_others) =
        match main.resource.common() == Some(Common::LockedRow) || in_the_way.is_some() || ends.is_some() {
            true => ("", ""),
            false => (
                ", which another session of the database has locked",
                ", which other sessions of the database have locked",
            ),
        };
    // Where a thread is a session, they are counted by threads.
    let threads: BTreeSet<(u32, u32)> = waits
        .iter()
        .map(|wait| (wait.asker.name.pid, wait.asker.name.tid))
        .collect();
    let of_threads = main.resource.detail.database_lock == Some(DatabaseServer::Mysql);
    let count = if of_threads { threads.len() } else { sessions.len() };
    let title = match count {
        1 => format!("{} waits for {what}{held}", say::who_with_pid(&main.asker.name)),
        _ => format!(
            "{count} sessions of {} wait for {what}{held_by_others}",
            say::who(&main.asker.name)
        ),
    };
    let clause = match (&ends, &in_the_way, &clients) {
        (Some(ends), ..) => ends.clause(),
        (None, Some(them), _) => them.clause(),
        (None, None, Some(clients)) => clients.clause(),
        (None, None, None) => String::new(),
    };
    let title = Title::from(title).with(clause);
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .and_if(ends.as_ref().map(|ends| ends.evidence()))
        .and_if(clients.as_ref().map(|them| them.evidence()))
        .and_if(statements(run, &sessions))
        .and_if(in_the_way.as_ref().map(|them| them.evidence()))
        .confidence(Confidence::Strong);
    for remedy in ends.iter().flat_map(|ends| ends.remedies()) {
        finding = finding.remedy(remedy);
    }
    for remedy in in_the_way.iter().flat_map(|them| them.remedies()) {
        finding = finding.remedy(remedy);
    }
    if let Some(remedy) = clients.as_ref().and_then(|them| them.remedy()) {
        finding = finding.remedy(remedy);
    }
    let released = ends.as_ref().map_or(Released::Transaction, Ends::released_by);
    let finding = match main.resource.detail.database_lock {
        Some(DatabaseServer::Mysql) => of_mysql(finding, unknown, released),
        _ => of_postgresql(finding, &sessions, unknown, released),
    };
    finding.remedy(Remedy::pointless(match released {
        Released::Transaction | Released::Definition => {
            "a faster disk or more CPUs: the session waits for a commit of another session"
        }
        Released::Prepared => {
            "a faster disk or more CPUs, or to end sessions: none of them has the prepared transaction"
        }
        Released::Program => {
            "a faster disk or more CPUs, or a limit for transactions: the program that took the lock has to release it"
        }
    }))
}

/// What they wait for: of MariaDB the kind of lock that the server itself names for most of these threads, of PostgreSQL the table.
fn thing(run: &Run<'_>, waits: &Waits<'_>) -> String {
    let main = waits.main();
    let name = &main.resource.name;
    if main.resource.detail.database_lock == Some(DatabaseServer::Mysql) {
        let kind = thread_sessions::kind(run, main.asker.name.pid).filter(|_| name == mysql::METADATA);
        return kind.map_or_else(|| name.clone(), str::to_owned);
    }
    match table(run, waits) {
        Some(table) if name == user_code::POSTGRES_TABLE => format!("table {table}"),
        _ => name.clone(),
    }
}

/// The table that all their statements name, where it is one.
fn table<'a>(run: &Run<'a>, waits: &Waits<'_>) -> Option<&'a str> {
    let pids: Vec<u32> = waits.iter().map(|wait| wait.asker.name.pid).collect();
    live_sessions::table(run, &pids)
}

/// What the waiting sessions execute, by command.
fn statements(run: &Run<'_>, sessions: &[u32]) -> Option<Evidence> {
    let all = run.facts.database_sessions.iter();
    let known = all.filter(|one| sessions.contains(&one.pid) && !one.command.is_empty());
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for session in known {
        *counts.entry(&session.command).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> = counts
        .iter()
        .map(|(command, count)| format!("{count} {command}"))
        .collect();
    (!parts.is_empty()).then(|| {
        Evidence::new(
            format!("their statements: {}", parts.join(", ")),
            "the server's memory",
        )
    })
}

/// `unknown`: whether who has the lock is still to be found out.
fn of_postgresql(finding: Finding, sessions: &[u32], unknown: bool, released: Released) -> Finding {
    let ids: Vec<String> = sessions.iter().take(MAX_SESSIONS).map(u32::to_string).collect();
    let blocked = format!(
        "psql -c \"select pid, pg_blocking_pids(pid), query from pg_stat_activity where pid in ({})\"",
        ids.join(", ")
    );
    let limits = match released {
        Released::Transaction | Released::Definition => {
            "set idle_in_transaction_session_timeout to end unused transactions, and lock_timeout to let \
             waiters give up"
        }
        Released::Prepared | Released::Program => "set lock_timeout to let waiters give up",
    };
    let limits = Remedy::changing(limits, "the program must repeat the transaction that is ended");
    if !unknown {
        return finding
            .and(Evidence::new(
                "it sleeps where the server waits for its lock table (ProcSleep)",
                "user stacks",
            ))
            .remedy(limits);
    }
    finding
        .and(Evidence::new(
            "it sleeps where the server waits for its lock table (ProcSleep); the lock holder is in the \
             memory of the server",
            "user stacks",
        ))
        .remedy(Remedy::safe("ask the server which session blocks it").with_command(blocked))
        .remedy(Remedy::safe(
            "look at that session: if it is idle in a transaction, it waits for its client to commit",
        ).with_command("psql -c \"select pid, state, now() - xact_start as since, query from pg_stat_activity where xact_start is not null order by since desc\""))
        .remedy(limits)
}

fn of_mysql(finding: Finding, unknown: bool, released: Released) -> Finding {
    let sooner = match released {
        _ if unknown => {
            "let waiters give up sooner: innodb_lock_wait_timeout for rows, lock_wait_timeout for definitions"
        }
        Released::Program => {
            "let waiters give up sooner: the second argument of GET_LOCK is their time limit"
        }
        Released::Definition => "let waiters give up sooner: lock_wait_timeout",
        Released::Transaction | Released::Prepared => "let waiters give up sooner: innodb_lock_wait_timeout",
    };
    let again = match released {
        Released::Program => "the program must try again",
        _ => "the program must repeat the transaction that is ended",
    };
    let sleeps = "its thread executes a statement of a client, and sleeps where the server waits for a lock with \
                  a time limit";
    if !unknown {
        return finding
            .and(Evidence::new(sleeps, "user stacks"))
            .remedy(Remedy::changing(sooner, again));
    }
    finding
        .and(Evidence::new(
            format!("{sleeps}; the lock holder is in the memory of the server"),
            "user stacks",
        ))
        .remedy(
            Remedy::safe(
                "ask the server which transactions are open: the oldest one that does not wait is the \
                 blocker; if it has no statement, it waits for its client to commit",
            )
            .with_command("mysql -e \"select trx_mysql_thread_id, trx_state, trx_started, trx_query from information_schema.innodb_trx order by trx_started\""),
        )
        .remedy(Remedy::safe("list the connections: see which wait for a table definition, and which sleep").with_command(
            "mysql -e \"show full processlist\"",
        ))
        .remedy(Remedy::changing(
            format!("end the blocking connection (KILL ID), and {sooner}"),
            again,
        ))
}
