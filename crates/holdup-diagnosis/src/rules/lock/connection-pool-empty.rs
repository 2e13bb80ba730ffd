//! A log says that somebody gave up waiting for a connection, or was refused one.

use crate::rules::{Rule, RuleId, Run, duration, logs};
use holdup_evidence::observed::{Happening, LogEvent, SeenSession, SessionDoing, What};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ConnectionPoolEmpty, check)
    .about("a log says that no connection was free, in a pool or at a server")
    .causes(&[Cause::LockFutex])
    .intermediate();

/// Pools that are reported; those with most who gave up first.
const MAX_POOLS: usize = 3;

/// Who had no connection: a client of a pool, or of the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose<'a> {
    Pool(&'a str),
    Server(&'static str),
}

/// What one pool's lines say.
struct Gathered<'a> {
    lines: Vec<&'a Happening>,
    longest: Option<Ns>,
    size: Option<u64>,
    most_waiting: Option<u64>,
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut pools: BTreeMap<Whose<'_>, Gathered<'_>> = BTreeMap::new();
    for one in &observed.happenings {
        let Some((whose, ns, size, waiting)) = said(one) else {
            continue;
        };
        let pool = pools.entry(whose).or_insert_with(|| Gathered {
            lines: Vec::new(),
            longest: None,
            size: None,
            most_waiting: None,
        });
        pool.lines.push(one);
        pool.longest = pool.longest.max(ns);
        pool.size = size.or(pool.size);
        pool.most_waiting = pool.most_waiting.max(waiting);
    }
    if pools.is_empty() {
        return logs::nobody_gave_up(observed, "had no connection free").unwrap_or_else(|| {
            Verdict::CannotTell(
                "whether connections were free: the log of a program that uses a connection pool".to_owned(),
            )
        });
    }
    let mut rows: Vec<(&Whose<'_>, &Gathered<'_>)> = pools.iter().collect();
    rows.sort_by_key(|(_, pool)| std::cmp::Reverse(pool.lines.len()));
    let findings = rows
        .into_iter()
        .take(MAX_POOLS)
        .map(|(whose, pool)| finding(observed, *whose, pool));
    Verdict::Fires(findings.collect())
}

type Said<'a> = (Whose<'a>, Option<Ns>, Option<u64>, Option<u64>);

fn said(one: &Happening) -> Option<Said<'_>> {
    match &one.what {
        What::Log(LogEvent::NoConnectionFree {
            pool,
            ns,
            size,
            waiting,
        }) => Some((Whose::Pool(pool), *ns, *size, *waiting)),
        What::Session(SeenSession {
            server,
            doing: SessionDoing::Refused,
            ..
        }) => Some((Whose::Server(server.name()), None, None, None)),
        _ => None,
    }
}

fn finding(observed: &Observed, whose: Whose<'_>, pool: &Gathered<'_>) -> Finding {
    let count = pool.lines.len();
    let times = match count {
        1 => "once".to_owned(),
        _ => format!("{count} times"),
    };
    let title = match whose {
        Whose::Pool(name) => {
            let name = match name {
                "" => "the pool".to_owned(),
                name => format!("the pool {name}"),
            };
            let after = pool
                .longest
                .map(|ns| format!(" after {}", duration(ns)))
                .unwrap_or_default();
            format!("Waits for a connection of {name} timed out {times}{after}")
        }
        Whose::Server(name) => {
            format!("{name} refused clients {times}: its limit of connections was reached")
        }
    };
    let first = pool.lines.first().expect("every line names a pool");
    let total = pool.longest.unwrap_or(0).saturating_mul(count as Ns);
    let mut finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::LockFutex,
        total,
        logs::quote(observed, first),
    )
    .confidence(Confidence::Strong);
    if let Some(last) = pool.lines.last().filter(|_| count > 1) {
        finding = finding.and(logs::quote(observed, last));
    }
    if let Some(size) = pool.size {
        let waiting = pool
            .most_waiting
            .map(|waiting| format!("; up to {waiting} waited for one at the same time"))
            .unwrap_or_default();
        finding = finding.and(logs::about(
            observed,
            first,
            format!("its limit is {size} connections, and none was free{waiting}"),
        ));
    }
    let keeps = "find out which code keeps connections: long work while it has one, or a connection that is \
     not returned (a transaction around a call to another service, a path without close)";
    match whose {
        Whose::Pool(_) => {
            let finding = finding.remedy(Remedy::safe(keeps));
            of_pool(finding, &first.text).remedy(Remedy::pointless(
                "a larger pool, before that is known: the same code then keeps more connections, and the \
                 database is no faster",
            ))
        }
        Whose::Server(_) => finding
            .remedy(
                Remedy::safe("list the connections and their users")
                    .with_command("psql -c \"select usename, application_name, client_addr, state, count(*) from pg_stat_activity group by 1, 2, 3, 4 order by 5 desc\""),
            )
            .remedy(Remedy::safe(keeps))
            .remedy(Remedy::changing(
                "share fewer connections among all clients (PgBouncer, or smaller pools in each program) \
                 instead of raising max_connections",
                "with transaction pooling, session state (settings, prepared statements) is lost between \
                 transactions",
            )),
    }
}

/// How to see who keeps connections, by whose words the line has.
fn of_pool(finding: Finding, line: &str) -> Finding {
    let hikari = line.contains("Connection is not available");
    let java =
        hikari || line.contains("Unable to fetch a connection") || line.contains("Timeout waiting for");
    let dumps = "take three thread dumps while it happens: the threads with a connection are inside the \
     database driver, or in another call between two statements";
    let finding = match (java, line.contains("QueuePool")) {
        (true, _) => finding.remedy(Remedy::safe(dumps).with_command(
            "for i in 1 2 3; do jcmd PID Thread.print; sleep 2; done > dumps.txt; holdup read dumps.txt",
        )),
        (false, true) => finding.remedy(Remedy::safe(dumps).with_command(
            "for i in 1 2 3; do py-spy dump --pid PID; sleep 2; done > dumps.txt; holdup read dumps.txt",
        )),
        (false, false) => finding,
    };
    match hikari {
        true => finding.remedy(Remedy::safe(
            "set leakDetectionThreshold=10000: HikariCP then logs the stack of code that keeps a connection \
             for long",
        )),
        false => finding,
    }
}
