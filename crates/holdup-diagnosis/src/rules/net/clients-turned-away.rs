//! A server accepts connections and ends them at once, without reading a request: it has reached its limit of clients.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, connected, duration, limit_settings, say};
use holdup_evidence::facts::Listener;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::churn::Conversations;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::net::SocketAddr;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ClientsTurnedAway, check)
    .about("a server ends connections at once, without reading a request")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

/// Connections that were accepted from which it is no single client that was refused.
const MIN_MADE: u64 = 3;

/// How long such a connection is open at most, at the median, nanoseconds.
const MAX_OPEN_NS: Ns = 100_000_000;

/// Of the connections that ended, one in so many may have had a request.
const WITH_REQUEST: u64 = 4;

/// Connections that stay open from which they are what uses the limit up.
const MIN_HELD: u32 = 3;

fn check(run: &Run<'_>) -> Verdict {
    let Some(churn) = &run.attributed.churn else {
        return Verdict::CannotTell(
            "whether it ends connections at once: how long they were open".to_owned(),
        );
    };
    let accepted = || churn.connections.iter().filter(|one| one.accepted);
    let found: Vec<Finding> = accepted()
        .filter(|one| turns_away(one))
        .filter_map(|one| finding(run, one))
        .collect();
    if found.is_empty() {
        let most = accepted().map(|one| one.closed_here).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "{} that it had accepted were closed first by it, at most; they had requests, stayed open for longer, or nobody had others open",
            say::several(most, "connection")
        ));
    }
    Verdict::Fires(found)
}

fn turns_away(one: &Conversations) -> bool {
    let asked = one.once.saturating_add(one.more).saturating_add(one.untold);
    one.made >= MIN_MADE
        && one.closed.saturating_mul(2) >= one.made
        && one.closed_here.saturating_mul(2) >= one.closed
        && asked.saturating_mul(WITH_REQUEST) <= one.closed
        && one.p50 <= MAX_OPEN_NS
}

/// The listener at which they were accepted.
fn listener<'a>(run: &Run<'a>, one: &Conversations) -> Option<&'a Listener> {
    let end: SocketAddr = one.end.parse().ok()?;
    let is_it = |listener: &&Listener| {
        let (own, ip) = (listener.address.ip().to_canonical(), end.ip().to_canonical());
        listener.address.port() == end.port() && (own == ip || own.is_unspecified())
    };
    run.facts.listeners.iter().find(is_it)
}

fn finding(run: &Run<'_>, one: &Conversations) -> Option<Finding> {
    let clients = listener(run, one).map_or(&[][..], |listener| &listener.clients);
    let open = clients
        .iter()
        .map(|one| one.connections)
        .fold(0, u32::saturating_add);
    // Without others a limit cannot be used up: it has another reason.
    if open < MIN_HELD {
        return None;
    }
    let who = say::name_or(&one.by.name.process, "a server");
    let most = connected::most(run, clients);
    let title = format!(
        "{who} turns clients away at {}: it ended {} of {} at once, without a request; {}",
        one.end,
        one.closed_here,
        say::several(one.made, "connection"),
        most.unwrap_or_else(|| format!("{} stay open", say::several(open.into(), "other connection")))
    );
    let ended = Evidence::new(
        format!(
            "{} accepted, {} closed first by the server, open for {} at the median; no request was read on {} of them",
            say::several(one.made, "connection"),
            one.closed_here,
            duration(one.p50),
            one.closed.saturating_sub(one.once + one.more + one.untold)
        ),
        "the connections' begin and end",
    );
    let limit = limit_settings::connections(who).or_else(|| limit_settings::workers(who));
    let raise = limit.unwrap_or("its limit of connections");
    // It turns clients away for as long as it was observed, whatever its threads do.
    let theirs = run.waits(|wait| wait.asker.name.pid == one.by.name.pid && wait.cause == Cause::Idle);
    let ns = theirs
        .map_or(0, |theirs| theirs.own())
        .min(run.attributed.elapsed);
    let finding = Finding::new(RULE.id.id(), Severity::Warning, title, Cause::Idle, ns, ended)
        .and_if(connected::evidence(run, clients))
        .confidence(Confidence::Suspect);
    let finding = finding.about(
        Resource::named(ResourceKind::Socket, one.end.as_str()),
        one.by.clone(),
    );
    let holder = clients.first().filter(|first| !first.pids.is_empty());
    let finding = match holder {
        Some(first) => finding.remedy(connected::close_remedy(run, first)),
        None => finding,
    };
    Some(
        finding
            .remedy(Remedy::changing(
                format!("raise {raise}, if that is used up"),
                "each client needs memory",
            ))
            .remedy(Remedy::safe(
                "read what it says as it ends them, in its log or in the error that the client gets",
            ))
            .remedy(Remedy::pointless(
                "more CPUs or workers: it does not work on those clients",
            )),
    )
}
