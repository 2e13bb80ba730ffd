//! Connecting again and again to a server that ends each connection at once, with sleeps in between.

use crate::rules::{Extend, HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, connected, duration, say};
use holdup_evidence::facts::{ConnectedClients, Listener};
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::churn::Conversations;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::net::SocketAddr;

/// Connections to one peer from which they are made again and again.
const MIN_MADE: u64 = 3;

/// How long such a connection is open at most, at the median, nanoseconds: a server that is over its limit says so and closes.
const MAX_OPEN_NS: Ns = 1_000_000_000;

/// Connections of another client from which it may be the one that uses the server's limit up.
const MIN_HELD: u32 = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ConnectionsEndedAtOnce, check)
    .about("it connects again and again to a server that ends each connection at once")
    .causes(&[Cause::TimerSleep]);

/// Such connections, the sleeps between them, and their server where that is of this machine.
struct Ended<'a> {
    connections: &'a Conversations,
    sleeps: Waits<'a>,
    listener: Option<&'a Listener>,
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let all = || run.attributed.churn.iter().flat_map(|churn| &churn.connections);
    let found: Vec<Finding> = all()
        .filter_map(|one| ended(run, waits, one))
        .map(|ended| ended.finding(run))
        .collect();
    if found.is_empty() {
        let count = all().filter(|one| !one.accepted).map(|one| one.closed_by_peer);
        return Verdict::Clear(format!(
            "{} ended by the peer, none of them again and again between these sleeps",
            say::several(count.fold(0, u64::saturating_add), "connection")
        ));
    }
    Verdict::Fires(found)
}

fn ended<'a>(run: &Run<'a>, waits: &Waits<'a>, one: &'a Conversations) -> Option<Ended<'a>> {
    let again = !one.accepted && one.made >= MIN_MADE && one.closed.saturating_mul(2) >= one.made;
    if !again || one.p50 > MAX_OPEN_NS {
        return None;
    }
    let sleeps = waits.only(|wait| {
        let sleeps = system_calls::is_named(wait.call.as_deref(), Kind::Sleeps);
        sleeps && wait.asker.name.process == one.by.name.process && wait.max >= HARM_FLOOR
    })?;
    let between = sleeps.count().saturating_mul(2) >= one.made;
    if !between || !run.matters(sleeps.cost(), MATTERS) {
        return None;
    }
    let found = Ended {
        connections: one,
        listener: listener(run, one),
        sleeps,
    };
    // A server that answers one question on each connection ends all of them, and so does one that is asked now and then.
    let answered = one.once.saturating_mul(2) > one.closed;
    let requests = run.attributed.requests.as_ref();
    let asked = requests.is_some_and(|requests| requests.open + requests.resting > 0);
    // Whoever is told that the server is over its limit may close sooner than that does.
    let by_server = one.closed_by_peer > 0;
    let fires = match found.holder() {
        Some(_) => by_server || asked,
        None => by_server && asked && !answered,
    };
    fires.then_some(found)
}

/// The listener that those connections are made to.
fn listener<'a>(run: &Run<'a>, one: &Conversations) -> Option<&'a Listener> {
    let end: SocketAddr = one.end.parse().ok()?;
    let is_it = |listener: &&Listener| {
        let (own, ip) = (listener.address.ip().to_canonical(), end.ip().to_canonical());
        listener.address.port() == end.port() && (own == ip || own.is_unspecified())
    };
    let mut all = run.facts.listeners.iter().filter(is_it);
    all.find(|listener| !listener.clients.is_empty())
}

impl Ended<'_> {
    /// Who else has most of the server's connections.
    fn holder(&self) -> Option<&ConnectedClients> {
        let first = self.listener?.clients.first()?;
        let own = first.process == self.connections.by.name.process
            && self
                .sleeps
                .iter()
                .any(|wait| first.pids.contains(&wait.asker.name.pid));
        (first.connections >= MIN_HELD && !own).then_some(first)
    }

    fn finding(&self, run: &Run<'_>) -> Finding {
        let one = self.connections;
        let holder = self.holder();
        let most = self
            .listener
            .filter(|_| holder.is_some())
            .and_then(|listener| connected::most(run, &listener.clients));
        let server = self.listener.and_then(|one| connected::acceptors(&one.processes));
        let server = match server {
            Some(server) => format!("{server} at {}", one.end),
            None => one.end.clone(),
        };
        let title = format!(
            "{} connects again and again to {server}, which ends each connection at once{}",
            say::who(&one.by.name),
            most.map_or_else(String::new, |most| format!(": {most}"))
        );
        let made = Evidence::new(
            format!(
                "{} made to {}, {} of them closed first by it, open for {} at the median; {} between them",
                say::several(one.made, "connection"),
                one.end,
                one.closed_by_peer,
                duration(one.p50),
                say::several(self.sleeps.count(), "sleep")
            ),
            "the connections' begin and end",
        );
        let finding = RULE
            .finding(Severity::Warning, title, &self.sleeps)
            .and(made)
            .and_if(
                self.listener
                    .and_then(|one| connected::evidence(run, &one.clients)),
            )
            .confidence(match holder {
                Some(_) => Confidence::Strong,
                None => Confidence::Suspect,
            });
        let asker = finding.asker.clone();
        let finding = finding.about(Resource::named(ResourceKind::Socket, one.end.as_str()), asker);
        let finding = match holder {
            Some(first) => finding.remedy(connected::close_remedy(run, first)),
            None => finding,
        };
        finding
            .remedy(Remedy::safe(
                "read what the server says as it ends them: in its log, or in the error that the client gets (too many clients, a \
                 wrong password, a protocol that it does not speak)",
            ))
            .remedy(Remedy::changing(
                "raise the server's limit of connections, if that is used up",
                "it needs more memory",
            ))
            .remedy(Remedy::pointless(
                "a shorter sleep: each attempt is ended the same way",
            ))
    }
}
