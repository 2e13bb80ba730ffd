//! A log says that somebody gave up waiting for a connection, or was refused one.

use crate::rules::{Check, Generality, MATTERS, Need, Place, Rule, RuleId, Run, duration, logs};
use holdup_evidence::observed::{Happening, LogEvent, SeenSession, SessionDoing, What};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::ConnectionPoolEmpty,
    about: "a log says that no connection was free, in a pool or at a server",
    needs: &[Need::Artefacts],
    causes: &[Cause::LockFutex],
    from: MATTERS,
    generality: Generality::Specific,
    explains: &[],
    place: Place::Way,
    check: Check::Artefacts(check),
};

/// Pools that are told; those with most who gave up first.
const POOLS: usize = 3;

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
                "whether connections were free: the log of a program that takes them from a pool".to_owned(),
            )
        });
    }
    let mut told: Vec<(&Whose<'_>, &Gathered<'_>)> = pools.iter().collect();
    told.sort_by_key(|(_, pool)| std::cmp::Reverse(pool.lines.len()));
    let findings = told
        .into_iter()
        .take(POOLS)
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
            format!("A connection of {name} was waited for in vain {times}: given up{after}")
        }
        Whose::Server(name) => {
            format!("{name} refused clients {times}: it had as many connections as it may have")
        }
    };
    let first = pool.lines.first().expect("a pool is told of by a line");
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
            .map(|waiting| format!("; up to {waiting} waited for one at once"))
            .unwrap_or_default();
        finding = finding.and(logs::about(
            observed,
            first,
            format!("it may have {size} connections, and none was free{waiting}"),
        ));
    }
    let keeps = "find who keeps connections: work that takes long while it has one, or one that is not given back (a transaction around a \
                 call to another service, a path without close)";
    match whose {
        Whose::Pool(_) => {
            let finding = finding.remedy(Remedy::safe(keeps));
            of_pool(finding, &first.text).remedy(Remedy::pointless(
                "a larger pool, before that is known: what keeps connections keeps more of them, and the database does not work faster for it",
            ))
        }
        Whose::Server(_) => finding
            .remedy(
                Remedy::safe("see who has them, and what for")
                    .with_command("psql -c \"select usename, application_name, client_addr, state, count(*) from pg_stat_activity group by 1, 2, 3, 4 order by 5 desc\""),
            )
            .remedy(Remedy::safe(keeps))
            .remedy(Remedy::changing(
                "share fewer connections among all clients (PgBouncer, or smaller pools in each program), rather than raise max_connections",
                "with a pool that hands on a connection after each transaction, what belongs to a session (settings, prepared statements) is lost between them",
            )),
    }
}

/// How to see who keeps connections, by whose words the line has.
fn of_pool(finding: Finding, line: &str) -> Finding {
    let hikari = line.contains("Connection is not available");
    let java =
        hikari || line.contains("Unable to fetch a connection") || line.contains("Timeout waiting for");
    let dumps = "take three dumps of the threads while it happens: those that have a connection are the ones inside the database's driver, or \
                 in a call to something else between two statements";
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
            "let HikariCP log who has had a connection for long, with the stack that took it: leakDetectionThreshold=10000",
        )),
        false => finding,
    }
}
