//! What a database's sessions wait for, as its log and its lists tell it: who is in whose way.

use super::{duration, logs};
use holdup_artefacts::sessions::{Queue, SessionRecord, Sessions};
use holdup_evidence::observed::{DatabaseServer, SessionDoing};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// What somebody waits for a lock before it is worth a word, in nanoseconds: PostgreSQL itself logs waits from there on
/// (`deadlock_timeout`), and MySQL's list counts whole seconds.
const MIN_NS: Ns = 1_000_000_000;

/// Sessions that wait where nothing tells for how long: one may have been caught in a wait of no account.
const MIN_SESSIONS: usize = 2;

/// Queues that are reported, and waits of each.
const MAX_QUEUES: usize = 3;
const MAX_WAITS: usize = 3;

/// PostgreSQL's lock that keeps everybody else out; what `alter table` and its like ask for.
const EXCLUSIVE: &str = "AccessExclusiveLock";

/// Judges what artefacts tell of sessions, as findings of `rule`.
pub(super) fn check(rule: &str, observed: &Observed) -> Verdict {
    let sessions = Sessions::of(observed);
    if sessions.all.is_empty() {
        return Verdict::CannotTell(
            "what the sessions of a database wait for: its log with log_lock_waits, or its list of sessions (pg_stat_activity, \
             SHOW FULL PROCESSLIST)"
                .to_owned(),
        );
    }
    let gave_up = |doing| {
        sessions
            .all
            .iter()
            .filter(move |one| one.session.doing == doing)
            .count()
    };
    let failed = gave_up(SessionDoing::GaveUp) + gave_up(SessionDoing::Deadlocked);
    let queues: Vec<Queue<'_>> = sessions
        .queues()
        .into_iter()
        .filter(|queue| matters(&sessions, queue))
        .collect();
    if queues.is_empty() {
        let longest = sessions
            .longest()
            .map(|ns| format!(", the longest for {}", duration(ns)));
        let waits = match sessions.waiting() {
            1 => "1 session of the database waits".to_owned(),
            number => format!("{number} sessions of the database wait"),
        };
        return Verdict::Clear(format!(
            "{waits} for a lock{}, and {failed} gave up",
            longest.unwrap_or_default()
        ));
    }
    let findings = queues
        .iter()
        .take(MAX_QUEUES)
        .map(|queue| finding(rule, observed, &sessions, queue));
    Verdict::Fires(findings.collect())
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn matters(sessions: &Sessions<'_>, queue: &Queue<'_>) -> bool {
    let timed = queue.waits.iter().any(|one| one.session.doing_ns.is_some());
    let longest = queue.waits.iter().map(SessionRecord::waited).max().unwrap_or(0);
    let deadlock = queue
        .waits
        .iter()
        .any(|one| one.session.doing == SessionDoing::Deadlocked);
    deadlock
        || if timed {
            longest >= MIN_NS
        } else {
            // One that is idle in its transaction keeps its locks until somebody comes back.
            let open = match root(sessions, queue) {
                Root::Perhaps(one) => one.session.doing == SessionDoing::IdleInTransaction,
                Root::SessionRecord(roots) => {
                    !idle(sessions, queue.waits[0].session.server, &roots).is_empty()
                }
                Root::Unknown => false,
            };
            queue.waits.len() >= MIN_SESSIONS || open
        }
}

/// Who is at the root, and how that is known.
enum Root<'a> {
    /// The server says that these have the lock.
    SessionRecord(Vec<&'a str>),
    /// Nothing says who has it; but one session alone is idle, and has been since before the first began to wait.
    Perhaps(SessionRecord<'a>),
    Unknown,
}

fn root<'a>(sessions: &Sessions<'a>, queue: &Queue<'a>) -> Root<'a> {
    if !queue.roots.is_empty() {
        return Root::SessionRecord(queue.roots.clone());
    }
    let Some(first) = queue.waits.first() else {
        return Root::Unknown;
    };
    let server = first.session.server;
    if let Some(one) = defines(sessions, first) {
        return Root::Perhaps(one);
    }
    // Who is said to be in a transaction comes first; a connection of MySQL's that sleeps may have one open.
    let found = sessions
        .that(server, SessionDoing::IdleInTransaction)
        .next()
        .is_some();
    let idle = match found || server == DatabaseServer::Postgresql {
        true => SessionDoing::IdleInTransaction,
        false => SessionDoing::Idle,
    };
    let mut before = sessions
        .that(server, idle)
        .filter(|found| match found.session.doing_ns {
            Some(idle) => idle >= first.waited(),
            None => first.session.doing_ns.is_none(),
        });
    match (before.next(), before.next()) {
        (Some(one), None) => Root::Perhaps(one),
        _ => Root::Unknown,
    }
}

fn finding(rule: &str, observed: &Observed, sessions: &Sessions<'_>, queue: &Queue<'_>) -> Finding {
    let first = queue.waits.first().expect("a queue has somebody who waits");
    let server = first.session.server;
    let longest = first.waited();
    let root = root(sessions, queue);
    let over = queue.waits.iter().all(|one| sessions.over(one));
    let waits = match (queue.waits.len(), over) {
        (_, true) => "waited",
        (1, false) => "waits",
        (_, false) => "wait",
    };
    let who = match queue.waits.as_slice() {
        [one] if !one.session.id.is_empty() => format!("Session {} of {}", one.session.id, server.name()),
        waits => format!("{} of {}", count(waits.len(), "session"), server.name()),
    };
    // What the one that has waited for longest wants.
    let statement = statement(&first.session.statement);
    let time = match longest {
        0 => String::new(),
        longest => format!(" for up to {}", duration(longest)),
    };
    let circle = is_circle(queue);
    let title = match &root {
        _ if circle => format!(
            "{who} waited for each other until {} ended one of them: a deadlock",
            server.name()
        ),
        Root::SessionRecord(roots) => format!(
            "{who} {waits}{time} behind {}{}{statement}",
            session(roots),
            idle(sessions, server, roots)
        ),
        Root::Perhaps(one) => format!(
            "{who} {waits}{time} for locks, perhaps those of session {}{}{}{statement}",
            one.session.id,
            match one.session.doing {
                SessionDoing::IdleInTransaction => ", which is idle in its transaction",
                _ => "",
            },
            common_lock(queue).map_or_else(String::new, |lock| format!(" ({lock})"))
        ),
        Root::Unknown => match common_lock(queue) {
            Some(lock) => {
                format!("{who} {waits}{time} for {lock}{statement}; its holder is not in the list")
            }
            None => {
                // A copy may be cut where the longest wait stands.
                let mut locks = queue.waits.iter().map(|one| one.session.lock.as_str());
                let known = locks.find(|lock| !lock.is_empty());
                let known = known.map_or_else(String::new, |lock| format!(", at least one for {lock}"));
                format!("{who} {waits}{time} for locks of other sessions{known}{statement}")
            }
        },
    };
    let (confidence, severity) = match &root {
        _ if circle => (Confidence::Proved, Severity::Warning),
        Root::SessionRecord(_) => (Confidence::Proved, Severity::Warning),
        Root::Perhaps(_) | Root::Unknown if longest > 0 => (Confidence::Strong, Severity::Warning),
        Root::Perhaps(_) | Root::Unknown => (Confidence::Suspect, Severity::Warning),
    };
    let mut shown = queue.waits.iter();
    let longest_wait = evidence(
        observed,
        sessions,
        shown.next().expect("a queue has somebody who waits"),
    );
    let total = queue
        .waits
        .iter()
        .map(SessionRecord::waited)
        .fold(0, Ns::saturating_add);
    let mut finding = Finding::new(rule, severity, title, Cause::LockFutex, total, longest_wait);
    for one in shown.take(MAX_WAITS - 1) {
        finding = finding.and(evidence(observed, sessions, one));
    }
    for (one, text) in about_root(sessions, server, &root) {
        finding = finding.and(logs::about(observed, one.happening, text));
    }
    if let Some(barrier) = queue
        .waits
        .iter()
        .find(|one| is_barrier(one))
        .filter(|_| queue.waits.len() > 1)
    {
        let text = format!(
            "session {} waits for an exclusive lock on a table: all later sessions queue behind it, readers \
             too",
            barrier.session.id
        );
        finding = finding.and(logs::about(observed, barrier.happening, text));
    }
    let finding = finding.confidence(confidence);
    match circle {
        true => finding
            .remedy(Remedy::safe(
                "lock rows in the same order in each transaction, and retry in the program when the server \
                 ends one",
            ))
            .remedy(Remedy::pointless(
                "a longer deadlock_timeout: the deadlock is then found later",
            )),
        false => remedies(finding, server, &root),
    }
}

/// Characters of a statement that a title has: enough for the words up to the table.
const STATEMENT_CHARS: usize = 60;

/// ` (update t set …)`, cut at a word; nothing where the statement is not known.
fn statement(text: &str) -> String {
    let words = text.split_whitespace();
    let mut told = String::new();
    for word in words {
        if told.chars().count() + word.chars().count() >= STATEMENT_CHARS {
            told.push_str(" …");
            break;
        }
        if !told.is_empty() {
            told.push(' ');
        }
        told.push_str(word);
    }
    match told.as_str() {
        "" | " …" => String::new(),
        told => format!(" ({told})"),
    }
}

/// The lock that all of them wait for, in the server's words.
fn common_lock<'a>(queue: &Queue<'a>) -> Option<&'a str> {
    let mut locks = queue.waits.iter().map(|one| one.session.lock.as_str());
    let first = locks.next().filter(|lock| !lock.is_empty())?;
    locks.all(|lock| lock == first).then_some(first)
}

/// Words with which a statement begins that changes a definition, and keeps everybody else from it meanwhile.
const DEFINES: [&str; 7] = [
    "create", "alter", "truncate", "drop", "rename", "optimize", "repair",
];

/// The one session that has changed a definition for longer than the first has waited for its lock.
fn defines<'a>(sessions: &Sessions<'a>, first: &SessionRecord<'a>) -> Option<SessionRecord<'a>> {
    let of_definition = first.session.lock.contains("metadata lock");
    let of_definition = of_definition.then(|| sessions.that(first.session.server, SessionDoing::Works))?;
    let mut longer = of_definition.filter(|one| {
        let word = one
            .session
            .statement
            .split_whitespace()
            .next()
            .unwrap_or_default();
        one.session.doing_ns >= first.session.doing_ns
            && DEFINES.iter().any(|defines| word.eq_ignore_ascii_case(defines))
    });
    let one = longer.next()?;
    longer.next().is_none().then_some(one)
}

/// Whether each waits for another, so that none is at the root.
fn is_circle(queue: &Queue<'_>) -> bool {
    let ended = |record: &SessionRecord<'_>| record.session.doing == SessionDoing::Deadlocked;
    queue.roots.is_empty() && queue.waits.iter().any(ended)
}

fn session(ids: &[&str]) -> String {
    match ids {
        [one] => format!("session {one}"),
        _ => format!("one of the sessions {}", ids.join(" and ")),
    }
}

/// Whether the list says that the one at the root has nothing to do with its transaction.
fn idle(sessions: &Sessions<'_>, server: DatabaseServer, roots: &[&str]) -> &'static str {
    let [one] = roots else {
        return "";
    };
    match sessions.doing(server, one, SessionDoing::IdleInTransaction) {
        Some(_) => ", which is idle in its transaction",
        None => "",
    }
}

/// Something that stands in everybody's way: it waits for a lock that excludes all others.
fn is_barrier(record: &&SessionRecord<'_>) -> bool {
    let alters = record
        .session
        .statement
        .get(..5)
        .is_some_and(|word| word.eq_ignore_ascii_case("alter"));
    record.session.lock.starts_with(EXCLUSIVE) || alters
}

fn evidence(observed: &Observed, sessions: &Sessions<'_>, record: &SessionRecord<'_>) -> Evidence {
    let session = record.session;
    let client = match session.client.as_str() {
        "" => String::new(),
        client => format!(" ({client})"),
    };
    let what = match session.lock.as_str() {
        "" => "a lock".to_owned(),
        lock => lock_in_words(lock),
    };
    let time = match (session.doing_ns, sessions.over(record)) {
        (Some(ns), false) => format!("has waited {}", duration(ns)),
        (Some(ns), true) => format!("waited {}", duration(ns)),
        (None, false) => "waits".to_owned(),
        (None, true) => "waited".to_owned(),
    };
    let holders = sessions.holders(*record);
    let behind = match holders.as_slice() {
        [] => String::new(),
        more => format!(" behind {}", more.join(" and ")),
    };
    let statement = match session.statement.as_str() {
        "" => String::new(),
        statement => format!(": {statement}"),
    };
    let text = format!(
        "session {}{client} {time}{behind} for {what}{statement}",
        session.id
    );
    logs::about(observed, record.happening, text)
}

/// What PostgreSQL's list calls what is waited for, in words.
fn lock_in_words(lock: &str) -> String {
    match lock {
        "transactionid" => "the end of a transaction that has changed its row".to_owned(),
        "tuple" => "its turn at a row".to_owned(),
        "relation" => "a table".to_owned(),
        "virtualxid" => "the end of a transaction that began before".to_owned(),
        "advisory" => "an advisory lock".to_owned(),
        "extend" => "room at the end of a table".to_owned(),
        _ => lock.to_owned(),
    }
}

/// What is known of those at the root.
fn about_root<'a>(
    sessions: &Sessions<'a>,
    server: DatabaseServer,
    root: &Root<'a>,
) -> Vec<(SessionRecord<'a>, String)> {
    let since =
        |record: &SessionRecord<'_>| record.session.doing_ns.map(|ns| format!(" for {}", duration(ns)));
    let last = |record: &SessionRecord<'_>| match record.session.statement.as_str() {
        "" => String::new(),
        statement => format!("; its last statement: {statement}"),
    };
    let of = |record: &SessionRecord<'_>| match record.session.client.as_str() {
        "" => String::new(),
        client => format!(" ({client})"),
    };
    match root {
        Root::SessionRecord(roots) => roots
            .iter()
            .filter_map(|id| {
                let idle = sessions.doing(server, id, SessionDoing::IdleInTransaction);
                let works = sessions.doing(server, id, SessionDoing::Works);
                let (record, does) = idle
                    .map(|record| (record, "is idle in its transaction"))
                    .or_else(|| works.map(|record| (record, "works")))?;
                let since = since(&record).unwrap_or_default();
                Some((
                    record,
                    format!("session {id}{} {does}{since}{}", of(&record), last(&record)),
                ))
            })
            .collect(),
        Root::Perhaps(record) => {
            let idle = match record.session.doing {
                SessionDoing::IdleInTransaction => "is idle in its transaction",
                _ => "sleeps, perhaps in a transaction,",
            };
            let text = format!(
                "session {}{} {idle}{}; no other session has been idle as long as these wait, so it may hold \
                 the lock{}",
                record.session.id,
                of(record),
                since(record).unwrap_or_default(),
                last(record)
            );
            vec![(*record, text)]
        }
        Root::Unknown => Vec::new(),
    }
}

fn remedies(finding: Finding, server: DatabaseServer, root: &Root<'_>) -> Finding {
    let finding = match (server, root) {
        (_, Root::SessionRecord(_)) => finding,
        (DatabaseServer::Postgresql, _) => finding.remedy(
            Remedy::safe("ask the server which session blocks which").with_command(
                "psql -c \"select pid, pg_blocking_pids(pid), state, now() - xact_start as since, query from pg_stat_activity where xact_start is not null\"",
            ),
        ),
        (DatabaseServer::Mysql, _) => finding.remedy(
            Remedy::safe("ask the server which transactions are open and since when: the oldest is the root").with_command(
                "mysql -e \"select trx_mysql_thread_id, trx_state, trx_started, trx_query from information_schema.innodb_trx order by trx_started\"",
            ),
        ),
    };
    let finding = finding.remedy(Remedy::safe(
        "look at the program of the root session: its locks stay until it commits",
    ));
    let finding = match server {
        DatabaseServer::Postgresql => finding.remedy(Remedy::changing(
            "set idle_in_transaction_session_timeout to end unused transactions, and lock_timeout so that \
             table changes give up instead of blocking other sessions",
            "the program must repeat the transaction that is ended",
        )),
        DatabaseServer::Mysql => finding.remedy(Remedy::changing(
            "end the root session (KILL ID), and set lock_wait_timeout so that table changes give up instead \
             of blocking other sessions (its default is a year in MySQL, a day in MariaDB)",
            "the program must repeat the transaction that is ended",
        )),
    };
    finding.remedy(Remedy::pointless(
        "a faster disk or more CPUs: these sessions wait for a commit of another session",
    ))
}
