//! Connections that end as fast as they are made: one for each request. Here by lists of sockets; live, by `made_anew`.

use crate::rules::{Extend, Rule, RuleId, Run, fires, say};
use crate::rules::{made_anew, sockets};
use holdup_evidence::observed::{SocketCount, SocketKey, TcpState};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Connections with one peer, or of one service, that this machine closed within [`TIME_WAIT_SECONDS`], from which it is not
/// that some pool shrank.
const MIN_CONNECTIONS: u64 = 500;

/// Seconds for which Linux remembers a connection that it closed (TIME-WAIT); it can't be set.
const TIME_WAIT_SECONDS: f64 = 60.0;

/// How many times the established ones they must be.
const TIMES: u64 = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_churn(RuleId::ConnectionsMadeAnew, made_anew::connections, check)
    .about("a new connection is opened for each request")
    .causes(&[Cause::NetConnect, Cause::NetTls]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(table) = sockets::most_of(observed, TcpState::TimeWait) else {
        return Verdict::CannotTell("which connections there are, and in which state: `ss -tan`".to_owned());
    };
    // By peer it is the client that closes, by own address the server.
    let both =
        [SocketKey::Peer, SocketKey::Local].map(|by| sockets::counts(table, TcpState::TimeWait, by).next());
    let many = both.into_iter().flatten().max_by_key(|count| count.count);
    let established = |count: &SocketCount| -> u64 {
        let same = sockets::counts(table, TcpState::Established, count.by);
        same.filter(|other| other.of == count.of)
            .map(|other| other.count)
            .sum()
    };
    let Some(many) =
        many.filter(|count| count.count >= MIN_CONNECTIONS && count.count >= TIMES * established(count))
    else {
        return Verdict::Clear(format!(
            "{} of {} were closed in the last minute (TIME-WAIT)",
            sockets::of_state(table, TcpState::TimeWait),
            say::several(table.total, "socket")
        ));
    };
    let (count, rate) = (many.count, many.count as f64 / TIME_WAIT_SECONDS);
    let title = match many.by {
        SocketKey::Peer => format!(
            "Connections to {} are not reused: about {rate:.0} a second end",
            many.of
        ),
        _ => format!(
            "Connections of clients of {} are not reused: about {rate:.0} a second end",
            many.of
        ),
    };
    let text = format!(
        "{count} connections were closed here within the last minute (TIME-WAIT), {} are established",
        established(many)
    );
    let listed = table.listening.map(|count| {
        sockets::evidence(
            observed,
            format!("{} in the list beside them", say::several(count, "listener")),
            &table.quote,
        )
    });
    fires(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Note,
            title,
            Cause::NetConnect,
            sockets::evidence(observed, text, &many.quote),
        )
        .about(sockets::socket(&many.of), sockets::asker(None))
        .and_if(listed)
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "reuse connections: a pool in the client (large enough for idle connections), keep-alive at the \
             server and at proxies",
        ))
        .remedy(Remedy::pointless(
            "a shorter TIME-WAIT: the cost is in opening connections and in their TLS handshakes",
        )),
    )
}
