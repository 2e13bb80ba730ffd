//! Connections that are made anew for each request, as they were seen live: what they carried, what making them cost, and
//! how their TLS handshakes went.
//!
//! In: [`Churn`]. Out: the verdicts of `connections-made-anew` and `tls-never-resumed` on what runs.

use super::sockets::{self, EACH};
use super::{Extend, HARM_FLOOR, MATTERS, RuleId, Run, duration, percent, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::churn::{Churn, Conversations};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Closed connections with one end from which it is not that a pool fills, shrinks or moves: pools of clients have some ten
/// connections.
const MIN_CONNECTIONS: u64 = 20;

/// Share of them that carried one request each, from which that is the way it is done: a few of any client end so.
const MIN_SHARE: f64 = 0.90;

/// A second, from which they are worth a note: what lists of sockets are judged by, 500 in the minute that Linux remembers
/// them.
const MIN_PER_SECOND: f64 = 500.0 / 60.0;

/// Connections a second without TLS that any server accepts without noticing.
const MANY_PER_SECOND: f64 = 100.0;

/// Making a connection is free where it takes one part of this many of the time for which it is open.
const CHEAP: Ns = 20;

/// Handshakes from which "none was resumed" is the way it is done. What begins at once finds nothing to take up, and a
/// client's pool has some ten connections.
const MIN_HANDSHAKES: u64 = 20;

/// Share of handshakes that take up a session below which sessions are as good as not kept: tickets that expire and servers
/// that are restarted leave far more.
const MAX_RESUMED_SHARE: f64 = 0.10;

/// Where it was seen.
const SOURCE: &str = "inet_sock_set_state, sock_send_length, sock_recv_length";
const RECORDS: &str = "first records of each connection";

/// What is missing on kernels that do not tell what is sent and received.
const NEEDS_TRAFFIC: &str = "what connections carried: Linux 6.3 or later tells";

/// Whether they carried one request each.
fn once_each(one: &Conversations) -> bool {
    one.closed >= MIN_CONNECTIONS && one.once as f64 >= MIN_SHARE * one.closed as f64
}

/// What making them cost, of the whole that is reported.
fn cost(run: &Run<'_>, ns: Ns) -> Ns {
    ns.min(run.attributed.elapsed)
}

fn about(one: &Conversations) -> Resource {
    Resource {
        kind: ResourceKind::Socket,
        name: one.end.clone(),
        ..sockets::socket(&one.end)
    }
}

/// The verdict of `connections-made-anew`.
pub(super) fn connections(run: &Run<'_>, churn: &Churn) -> Verdict {
    let closed: u64 = churn.connections.iter().map(|one| one.closed).sum();
    if closed > 0 && !churn.traffic_told {
        return Verdict::CannotTell(NEEDS_TRAFFIC.to_owned());
    }
    let worth = |one: &&Conversations| {
        let often = churn.per_second(one.closed) >= MIN_PER_SECOND && !is_cheap(churn, one);
        once_each(one) && (often || is_costly(run, one))
    };
    let found: Vec<&Conversations> = churn.connections.iter().filter(worth).collect();
    if found.is_empty() {
        let once: u64 = churn.connections.iter().map(|one| one.once).sum();
        return Verdict::Clear(format!(
            "{} closed, {once} of them after one request",
            match closed {
                1 => "1 connection was".to_owned(),
                closed => format!("{closed} connections were"),
            }
        ));
    }
    Verdict::Fires(
        found
            .iter()
            .take(EACH)
            .map(|one| made_anew(run, churn, one))
            .collect(),
    )
}

/// Whether making them is as good as free: without a TLS handshake, and in next to none of the time for which they are open; of those that were
/// accepted the client knows that time, so they are only many or few.
fn is_cheap(churn: &Churn, one: &Conversations) -> bool {
    let little = match one.accepted {
        true => churn.per_second(one.closed) < MANY_PER_SECOND,
        false => one.setup_ns.saturating_mul(CHEAP) <= one.open_ns,
    };
    one.tls.all() == 0 && little
}

/// Whether making them takes so much that it is trouble. Of those that were accepted the time is the client's.
fn is_costly(run: &Run<'_>, one: &Conversations) -> bool {
    !one.accepted && matters(run, one, one.setup_ns)
}

/// Whether a part of what they took matters: of the whole, or, where they are made to answer requests, of the time that those take.
fn matters(run: &Run<'_>, one: &Conversations, ns: Ns) -> bool {
    let of_requests = of_requests(run, one, ns).is_some_and(|share| share >= MATTERS);
    run.matters(cost(run, ns), MATTERS) || of_requests && cost(run, ns) >= HARM_FLOOR
}

/// Share of the time with requests to answer; `None` where most of these connections were not made for any.
fn of_requests(run: &Run<'_>, one: &Conversations, ns: Ns) -> Option<f64> {
    let requests = run.attributed.requests.as_ref()?;
    let whole: Ns = requests.causes.values().map(|tally| tally.ns).sum();
    let made_for_them = one.for_requests * 2 > one.made && whole > 0;
    made_for_them.then(|| (ns as f64 / whole as f64).min(1.0))
}

fn made_anew(run: &Run<'_>, churn: &Churn, one: &Conversations) -> Finding {
    let who = say::name_or(&one.by.name.process, "The program").to_owned();
    let end = &one.end;
    let rate = churn.per_second(one.closed);
    let title = match one.accepted {
        false => format!("{who} opens a connection to {end} for each request: {rate:.0} a second"),
        true => format!("Clients of {end} open a connection for each request: {rate:.0} a second"),
    };
    let (ours, theirs) = match one.accepted {
        false => (who.as_str(), "the server"),
        true => (who.as_str(), "the client"),
    };
    let carried = format!(
        "{} of {} that were closed had carried one request and its answer; {ours} closed {} of them first, {theirs} {}",
        one.once,
        say::several(one.closed, "connection"),
        one.closed_here,
        one.closed_by_peer
    );
    let took = (!one.accepted).then(|| {
        Evidence::new(
            format!(
                "making one takes {}, {} of the {} for which it is open",
                duration(one.setup_ns / one.closed.max(1)),
                percent(one.setup_ns as f64 / one.open_ns.max(1) as f64),
                duration(one.open_ns / one.closed.max(1)),
            ),
            SOURCE,
        )
    });
    let handshakes = (one.tls.all() > 0).then(|| Evidence::new(handshakes(one), RECORDS));
    let of_requests = of_requests(run, one, one.setup_ns).filter(|_| !one.accepted).map(|share| {
        let text = format!(
            "they are made for requests that are to be answered, and making them is {} of the time that those take",
            percent(share)
        );
        Evidence::new(text, SOURCE)
    });
    let costly = is_costly(run, one);
    let severity = if costly { Severity::Warning } else { Severity::Note };
    let cause = match one.tls.ns.saturating_mul(2) > one.setup_ns {
        true => Cause::NetTls,
        false => Cause::NetConnect,
    };
    let first = Evidence::new(carried, SOURCE);
    let id = RuleId::ConnectionsMadeAnew.id();
    let finding = match one.accepted {
        true => Finding::without_duration(id, severity, title, cause, first),
        false => Finding::new(id, severity, title, cause, cost(run, one.setup_ns), first),
    };
    let closer_is_server = one.accepted == (one.closed_here > one.closed_by_peer);
    let mostly_full = one.tls.full > one.tls.resumed;
    let finding = finding
        .about(about(one), one.by.clone())
        .and_if(took)
        .and_if(of_requests)
        .and_if(handshakes)
        .and_if(asked_by(one))
        .confidence(Confidence::Proved)
        .remedy(Remedy::safe(match closer_is_server {
            true => "enable keep-alive in the server: it closes the connections",
            false => "reuse connections: one client object or session for all requests, or a pool",
        }));
    let finding = match closer_is_server {
        true => finding.remedy(Remedy::safe(
            "then let the client use them again: one client object for all requests, or a pool",
        )),
        false => finding,
    };
    let finding = match mostly_full {
        true => finding.remedy(Remedy::safe(SESSIONS)),
        false => finding,
    };
    finding.remedy(Remedy::pointless(
        "a shorter TIME-WAIT: the cost is in opening connections and in their TLS handshakes",
    ))
}

/// Where in its code it asks for them.
fn asked_by(one: &Conversations) -> Option<Evidence> {
    let frame = one.by.frame.as_deref()?;
    let name = &one.by.name;
    Some(Evidence::new(
        format!("asked for in {frame}, by {}", say::who(name)),
        "user stacks at connect",
    ))
}

/// What a full handshake costs where a connection can't be kept, and what can be saved of it.
const SESSIONS: &str = "resume TLS sessions where connections cannot be kept (one TLS context for all \
 connections, and a server that stores sessions or issues tickets); a TLS 1.3 ticket serves one connection";

fn handshakes(one: &Conversations) -> String {
    let tls = &one.tls;
    let mean = match tls.mean() {
        0 => String::new(),
        mean if one.accepted => format!(", {} each", duration(mean)),
        mean => format!(
            ", {} each, {} of the time for which connections are open",
            duration(mean),
            percent((tls.ns as f64 / one.open_ns.max(1) as f64).min(1.0))
        ),
    };
    let untold = match tls.untold {
        0 => String::new(),
        untold => format!(", {untold} of unknown kind"),
    };
    format!(
        "TLS handshakes: {} full, {} resumed{untold}{mean}",
        tls.full, tls.resumed
    )
}

/// The verdict of `tls-never-resumed`.
pub(super) fn handshakes_of(run: &Run<'_>, churn: &Churn) -> Verdict {
    let sum = |of: &dyn Fn(&Conversations) -> u64| -> u64 { churn.connections.iter().map(of).sum() };
    let (full, resumed) = (sum(&|one| one.tls.full), sum(&|one| one.tls.resumed));
    let made = sum(&|one| one.made);
    if made > 0 && !churn.traffic_told {
        return Verdict::CannotTell(NEEDS_TRAFFIC.to_owned());
    }
    let never = |one: &&Conversations| {
        let listed = one.tls.full + one.tls.resumed;
        listed >= MIN_HANDSHAKES && (one.tls.resumed as f64) < MAX_RESUMED_SHARE * listed as f64
    };
    let found: Vec<&Conversations> = churn.connections.iter().filter(never).collect();
    if found.is_empty() {
        let untold = sum(&|one| one.tls.untold);
        if untold >= MIN_HANDSHAKES && full + resumed < MIN_HANDSHAKES {
            return Verdict::CannotTell(format!(
                "how {untold} TLS handshakes went: their first records could not be read whole"
            ));
        }
        return Verdict::Clear(format!(
            "{resumed} of {} resumed an earlier session",
            say::several(full + resumed, "TLS handshake")
        ));
    }
    Verdict::Fires(
        found
            .iter()
            .take(EACH)
            .map(|one| never_resumed(run, churn, one))
            .collect(),
    )
}

fn never_resumed(run: &Run<'_>, churn: &Churn, one: &Conversations) -> Finding {
    let tls = &one.tls;
    let found = tls.full + tls.resumed;
    let who = say::name_or(&one.by.name.process, "The program").to_owned();
    let none = match tls.resumed {
        0 => "None".to_owned(),
        some => format!("Only {some}"),
    };
    let with = match one.accepted {
        true => format!("with clients at {}", one.end),
        false => format!("of {who} with {}", one.end),
    };
    let title = format!("{none} of {found} TLS handshakes {with} resumed an earlier session");
    let refuses = tls.in_vain * 2 > tls.full;
    // Whoever makes a connection for each request keeps it instead, and needs no session: that is known by its own rule.
    let told_already = once_each(one) && is_costly(run, one);
    let harm = match one.accepted {
        true => refuses,
        false => !told_already && matters(run, one, tls.ns),
    };
    let severity = if harm { Severity::Warning } else { Severity::Note };
    let text = format!(
        "{} full handshakes, {:.1} a second, {} resumed; {} earlier session",
        tls.full,
        churn.per_second(tls.full),
        tls.resumed,
        match tls.in_vain {
            0 => "no client offered an".to_owned(),
            1 => "1 client offered an".to_owned(),
            many => format!("{many} clients offered an"),
        }
    );
    let first = Evidence::new(text, RECORDS);
    let id = RuleId::TlsNeverResumed.id();
    let finding = match one.accepted {
        true => Finding::without_duration(id, severity, title, Cause::NetTls, first),
        false => Finding::new(id, severity, title, Cause::NetTls, cost(run, tls.ns), first),
    };
    let took = (tls.mean() > 0).then(|| {
        let text = format!("one takes {}", duration(tls.mean()));
        Evidence::new(text, SOURCE)
    });
    finding
        .about(about(one), one.by.clone())
        .and_if(took)
        .and_if(asked_by(one))
        .confidence(if refuses { Confidence::Proved } else { Confidence::Strong })
        .remedy(Remedy::safe(
            "reuse connections: HTTP keep-alive, a connection pool",
        ))
        .remedy(Remedy::safe(match refuses {
            true => "let the server keep sessions or give tickets (nginx: `ssl_session_cache`, `ssl_session_tickets`), with \
                     common keys where several servers stand behind one address",
            false => "let the client keep sessions: one TLS context (SSLContext, SSL_CTX) for all connections, and, where the \
                      library does not do it by itself, the last session given to the next connection",
        }))
}
