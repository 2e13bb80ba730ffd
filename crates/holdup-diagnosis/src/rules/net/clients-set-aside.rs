//! An event loop has accepted clients, does not listen to them, and is idle itself: something else has to end first.

use super::output_not_read;
use super::requests_wait_their_turn::limit_of;
use crate::rules::asked_behind as asked;
use crate::rules::{Extend, Generality, Rule, RuleId, Run, Waits, live_sessions, say};
use holdup_evidence::Cause;
use holdup_evidence::facts::{DatabaseSession, SessionState, SetAside};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, AwaitedClients, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ClientsSetAside, check)
    .about("an idle event loop keeps clients waiting")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

/// Time in which threads of the process did something else than wait for work, as a part of the time in which its event loops did: with more it
/// is not idle. It waits for an answer itself, or another thread listens to the clients, as of a server with a thread for each.
const MAX_ELSE_SHARE: f64 = 0.1;

/// CPU time of other threads of the process, as a part of what its event loops use: with more the clients may be with those, as of a server
/// whose loop hands requests to a pool of threads.
const MAX_OTHER_THREADS_SHARE: f64 = 0.1;

/// Where sets and sockets are read.
const SETS: &str = "/proc/PID/fdinfo and /proc/net/tcp, at the start and end of the observation";

fn check(run: &Run<'_>) -> Verdict {
    let Some(loops) = &run.facts.set_aside else {
        return Verdict::CannotTell("which clients its event loops listen to: their epoll sets".to_owned());
    };
    let findings: Vec<Finding> = loops.iter().filter_map(|one| finding(run, one)).collect();
    if findings.is_empty() {
        let most = loops.iter().map(|one| one.clients).max();
        return Verdict::Clear(format!(
            "no idle event loop kept clients waiting: {} set aside at the start and end of the observation, at most",
            say::several(most.unwrap_or(0).into(), "client")
        ));
    }
    Verdict::Fires(findings)
}

/// Whether a thread listens to a client outside of its loop's set: it reads from a connection, or polls nothing else.
fn listens_elsewhere(wait: &AttributedWait) -> bool {
    let polls = system_calls::is_named(wait.call.as_deref(), Kind::Polls);
    let request = || {
        let awaited = AwaitedClients::read(&wait.resource.name);
        matches!(awaited, Some(AwaitedClients::Request(_)))
    };
    reads(wait) || polls && request()
}

/// Whether an event loop waits for work in it. One that waits for an answer polls, too, and is not idle.
fn polls_idly(wait: &AttributedWait) -> bool {
    wait.cause == Cause::Idle
        && system_calls::is_named(wait.call.as_deref(), Kind::Polls | Kind::WaitsForEpoll)
}

fn reads(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::Reads | Kind::Receives)
}

/// Sessions of a database that are an event loop's connections to it.
struct Behind<'a> {
    idle: Vec<&'a DatabaseSession>,
    waits: usize,
    works: usize,
}

impl<'a> Behind<'a> {
    fn of(run: &Run<'a>, pid: u32) -> Behind<'a> {
        let of_client = |session: &&DatabaseSession| {
            let client = session.client.as_ref();
            client.and_then(|client| client.pid) == Some(pid)
        };
        let of = |state| {
            let its = run.facts.database_sessions.iter().filter(of_client);
            its.filter(move |session| session.state == state)
        };
        Behind {
            idle: of(SessionState::IdleInTransaction).collect(),
            waits: of(SessionState::Waiting).count(),
            works: of(SessionState::Works).count(),
        }
    }

    /// What they do that others wait for, for a title; `None` where nothing of that is known.
    fn clause(&self) -> Option<String> {
        let of_them = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 of its connections to PostgreSQL {one}"),
            count => format!("{count} of its connections to PostgreSQL {many}"),
        };
        if !self.idle.is_empty() {
            return Some(of_them(
                self.idle.len(),
                "is idle in a transaction",
                "are idle in transactions",
            ));
        }
        if self.waits > 0 {
            return Some(of_them(
                self.waits,
                "waits for a lock of another session",
                "wait for locks of other sessions",
            ));
        }
        (self.works > 0).then(|| of_them(self.works, "executes a statement", "execute statements"))
    }
}

fn finding(run: &Run<'_>, one: &SetAside) -> Option<Finding> {
    // That rule tells of these clients, too.
    if output_not_read::is_full(run, one.pid) {
        return None;
    }
    let theirs = run.waits(|wait| wait.asker.name.pid == one.pid)?;
    let queue = queue(run, one, &theirs);
    if queue.is_some() {
        return queue;
    }
    let idle = theirs.only(polls_idly)?;
    let loops: BTreeSet<u32> = idle.iter().map(|wait| wait.asker.name.tid).collect();
    // Who has no CPU on a busy machine is as idle as before.
    let does_else = |wait: &AttributedWait| match wait.cause {
        Cause::Idle => listens_elsewhere(wait),
        cause => cause != Cause::SchedRunqueue,
    };
    let most = idle.own() as f64 * MAX_ELSE_SHARE;
    let own = |part: Option<Waits<'_>>| part.map_or(0, |part| part.own()) as f64;
    if own(theirs.only(does_else)) > most {
        return None;
    }
    let runs = |of_loop: bool| {
        let runs =
            |wait: &AttributedWait| wait.cause.on_cpu() && loops.contains(&wait.asker.name.tid) == of_loop;
        own(theirs.only(runs))
    };
    if runs(false) > runs(true) * MAX_OTHER_THREADS_SHARE {
        return None;
    }
    let main = idle.main();
    let behind = Behind::of(run, one.pid);
    let clause = behind.clause();
    let asked = match clause {
        None => asked::unanswered(one),
        Some(_) => None,
    };
    if let Some(server) = asked {
        return Some(asked::finding(run, one, server, &idle));
    }
    let held = !behind.idle.is_empty() || behind.waits > 0;
    let serves = serves(one, behind.idle.len());
    let title = format!(
        "{} keeps {} waiting, and is idle itself: {}{}",
        say::who_with_pid(&main.asker.name),
        say::several(one.clients.into(), "client"),
        clause.as_deref().unwrap_or("what they wait for is not known"),
        serves
            .as_ref()
            .map_or_else(String::new, |who| format!("; it serves {who}")),
    );
    let aside = Evidence::new(
        format!(
            "{} had a connection that it did not listen to or read from, and {} that it listened to",
            say::several(one.clients.into(), "client"),
            one.listened_to
        ),
        SETS,
    );
    let sessions: Vec<String> = behind
        .idle
        .iter()
        .map(|session| {
            format!(
                "{} (pid {})",
                say::name_or(&session.process, "a session"),
                session.pid
            )
        })
        .collect();
    let titles = (!sessions.is_empty()).then(|| {
        Evidence::new(
            format!("idle in transactions: {}", sessions.join(", ")),
            "the titles of the server's processes",
        )
    });
    let severity = match held {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let ns = idle.own().min(run.attributed.elapsed);
    let clients = Resource::named(ResourceKind::Process, say::who(&main.asker.name))
        .with(|facts| facts.pid = Some(one.pid));
    let finding = Finding::new(RULE.id.id(), severity, title, main.cause, ns, aside)
        .about(clients, main.asker.clone())
        .and_if(titles)
        .confidence(match clause.is_some() {
            true => Confidence::Strong,
            false => Confidence::Suspect,
        });
    Some(with_remedies(finding, one, &idle, held))
}

/// Part of the time of a loop that waits for answers, from which its clients wait for those or for their turn to be asked for.
const MIN_ASKS_SHARE: f64 = 0.5;

/// Whether an event loop waits for an answer.
fn asks(wait: &AttributedWait) -> bool {
    let answer = matches!(wait.cause, Cause::NetReceive | Cause::NetConnect | Cause::IpcUnix);
    answer && system_calls::is_named(wait.call.as_deref(), Kind::Polls | Kind::WaitsForEpoll)
}

/// A loop that waits for answers on fewer connections than it has clients that wait: one question for each of those connections is on its
/// way, and the other clients wait for their turn. That several questions may share one is not seen; so it is a note, but where it has
/// several connections to one server, each of which serves somebody else.
fn queue(run: &Run<'_>, one: &SetAside, theirs: &Waits<'_>) -> Option<Finding> {
    let asking = theirs.only(asks)?;
    let main = asking.main();
    let of_loop = theirs.only(|wait| wait.asker.name.tid == main.asker.name.tid)?;
    if (asking.own() as f64) < of_loop.own() as f64 * MIN_ASKS_SHARE || one.asks_on == 0 {
        return None;
    }
    let who = say::who_with_pid(&main.asker.name);
    let unsent = asked::unsent(one);
    let waiting = one.clients.saturating_sub(one.asks_on).max(unsent);
    if waiting == 0 {
        return None;
    }
    let (verb, pronoun) = match waiting {
        1 => ("waits", "its"),
        _ => ("wait", "their"),
    };
    let clients = say::several(waiting.into(), "client");
    let taken = asked::taken(run, one).filter(|_| unsent == waiting);
    let is = if waiting == 1 { "is" } else { "are" };
    let free = asked::with_free(one).filter(|_| unsent == waiting);
    let same = free.and_then(|_| only_name(run));
    let title = match (&taken, free, &same) {
        (Some(taken), ..) => format!("{clients} of {who} {is} queued in it: {taken}"),
        (None, Some(server), Some(name)) => format!(
            "{clients} of {who} {is} queued in it behind {} for the same thing, one at a time: all that it was asked and did not answer is \
             {name}, and {}",
            match server.asking {
                1 => "a request".to_owned(),
                many => format!("{many} requests"),
            },
            asked::free_words(server)
        ),
        (None, Some(server), None) => format!(
            "{clients} of {who} {is} queued in it, and no limit of its connections is why: {}",
            asked::free_words(server)
        ),
        _ => format!(
            "{clients} of {who} {verb} for {pronoun} turn in it: it asks on {} for {}",
            say::several(one.asks_on.into(), "connection"),
            say::several(one.clients.into(), "client")
        ),
    };
    let aside = Evidence::new(
        format!(
            "{} had a connection that it did not listen to or read from, and it had {} to others",
            say::several(one.clients.into(), "client"),
            say::several(one.asks_on.into(), "connection")
        ),
        SETS,
    );
    let (severity, confidence) = match (&taken, &same) {
        (Some(_), _) => (Severity::Warning, Confidence::Strong),
        (None, Some(_)) => (Severity::Warning, Confidence::Suspect),
        (None, None) => (Severity::Note, Confidence::Suspect),
    };
    // Its answers come to the same time: the queue before them stands first.
    let ns = match severity {
        Severity::Warning => asking.own(),
        _ => asking.own().min(run.attributed.elapsed),
    };
    let finding = Finding::new(RULE.id.id(), severity, title, main.cause, ns, aside)
        .about(main.resource.clone(), main.asker.clone())
        .and_if(asked::words(one))
        .and_if(asked::served(run, one))
        .confidence(confidence);
    if same.is_some() {
        return Some(
            finding
                .remedy(Remedy::safe(
                    "let several requests for one thing pass at the same time, or answer all of them with one answer: mark in a cache what \
                     it may not keep (of Varnish, `beresp.uncacheable`, a hit-for-miss), or let it keep it for a moment (a time to live, grace)",
                ))
                .remedy(Remedy::pointless(
                    "more connections to the server behind it: one is free",
                )),
        );
    }
    if free.is_some() {
        return Some(finding.remedy(Remedy::safe(format!(
            "ask {who} itself (its log, its status page) what these clients wait for"
        ))));
    }
    let raise = "the servers behind it get more requests at once";
    let limit = limit_of(&main.asker.name.process).unwrap_or("its limit of connections to its servers");
    let finding = match severity {
        Severity::Warning => finding.remedy(Remedy::safe(
            "give long requests (exports, uploads, event streams) servers or a limit of their own: they keep the connections from the others",
        )),
        _ => finding,
    };
    Some(finding.remedy(Remedy::changing(
        format!("raise {limit}, once its servers answer sooner"),
        raise,
    )))
}

/// Requests without an answer from which it is no chance that all are for one thing.
const MIN_SAME: u64 = 2;

/// What all requests ask for that have no answer, where that is one thing and others were answered.
fn only_name(run: &Run<'_>) -> Option<String> {
    let named = &run.attributed.requests.as_ref()?.named;
    let mut open = named.iter().filter(|one| one.unanswered > 0);
    let only = open.next().filter(|one| one.unanswered >= MIN_SAME)?;
    let others = named.iter().any(|one| one.line != only.line && one.answered > 0);
    (open.next().is_none() && others).then(|| only.line.clone())
}

fn with_remedies(finding: Finding, one: &SetAside, idle: &Waits<'_>, held: bool) -> Finding {
    let who = say::who(&idle.main().asker.name);
    if !held {
        return finding.remedy(Remedy::safe(format!(
            "ask {who} itself (its log, its status page) what the clients that it set aside wait for"
        )));
    }
    let client = one.serves.first().and_then(|client| Some((client, client.pid?)));
    let ends = client.map(|(client, pid)| match client.stopped {
        true => live_sessions::go_on(&live_sessions::process(&client.process, pid), pid),
        false => Remedy::safe(format!(
            "make {} commit or roll back: look at what it does instead",
            live_sessions::process(&client.process, pid)
        ))
        .with_command(format!("holdup attach -p {pid}")),
    });
    let finding = match ends {
        Some(ends) => finding.remedy(ends),
        None => finding,
    };
    finding
        .remedy(Remedy::safe("ask the server which sessions are idle in a transaction, and since when").with_command(
            "psql -c \"select pid, state, now() - xact_start as since, query from pg_stat_activity where state like 'idle in transaction%' order by since desc\"",
        ))
        .remedy(Remedy::changing(
            "set idle_in_transaction_session_timeout to end unused transactions",
            "the program must repeat the transaction that is ended",
        ))
        .remedy(Remedy::pointless(
            "a faster database: its sessions wait for their clients",
        ))
}

/// The clients that have those connections, where there can be no others: as many are listened to as have one.
fn serves(one: &SetAside, connections: usize) -> Option<String> {
    let known = one.serves.len();
    let all = known > 0 && known == one.listened_to as usize && known <= connections;
    let names: Vec<String> = one.serves.iter().filter_map(live_sessions::client).collect();
    all.then(|| names.join(", "))
}
