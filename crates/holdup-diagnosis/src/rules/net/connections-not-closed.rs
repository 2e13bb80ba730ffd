//! A program keeps connections open that its peers have closed.

use crate::rules::sockets::EACH;
use crate::rules::{Extend, Rule, RuleId, Run, say, sockets};
use holdup_evidence::observed::{SocketCount, SocketKey, SocketTable, TcpState};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Connections closed by the peer and not by the program, at one instant, from which it is no chance: a program that
/// closes them at all does so within milliseconds of reading the end.
const MIN_CONNECTIONS: u64 = 20;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ConnectionsNotClosed, check)
    .about("a program does not close connections that its peers have closed")
    .causes(&[Cause::NetConnect]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(table) = sockets::most_of(observed, TcpState::CloseWait) else {
        return Verdict::CannotTell("which connections there are, and in which state: `ss -tanp`".to_owned());
    };
    let mut whose: Vec<&SocketCount> =
        sockets::counts(table, TcpState::CloseWait, SocketKey::Process).collect();
    if whose.is_empty() {
        whose = sockets::counts(table, TcpState::CloseWait, SocketKey::Local).collect();
    }
    whose.retain(|count| count.count >= MIN_CONNECTIONS);
    if whose.is_empty() {
        // Of clients each has a port of its own: what they have in common is the peer.
        whose = sockets::counts(table, TcpState::CloseWait, SocketKey::Peer).collect();
        whose.retain(|count| count.count >= MIN_CONNECTIONS);
    }
    if whose.is_empty() {
        return Verdict::Clear(format!(
            "{} of {} wait for a program to close them (CLOSE-WAIT)",
            sockets::of_state(table, TcpState::CloseWait),
            say::several(table.total, "socket")
        ));
    }
    Verdict::Fires(
        whose
            .iter()
            .take(EACH)
            .map(|count| finding(observed, table, count))
            .collect(),
    )
}

fn finding(observed: &Observed, table: &SocketTable, count: &SocketCount) -> Finding {
    let who = match count.by {
        SocketKey::Process => count.of.clone(),
        SocketKey::Peer => format!("The client of {}", count.of),
        _ => format!("The program at {}", count.of),
    };
    let title = format!(
        "{who} does not close {} connections that its peers have closed",
        count.count
    );
    let text = format!(
        "{} connections in CLOSE-WAIT, of {}",
        count.count,
        say::several(table.total, "socket")
    );
    let open: u64 = sockets::counts(table, TcpState::Established, count.by)
        .filter(|other| other.of == count.of)
        .map(|other| other.count)
        .sum();
    let open = (open > 0).then(|| {
        sockets::evidence(
            observed,
            format!("beside {open} that are established"),
            &count.quote,
        )
    });
    Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::NetConnect,
        sockets::evidence(observed, text, &count.quote),
    )
    .about(
        sockets::socket(&count.of),
        sockets::asker((count.by == SocketKey::Process).then_some(&*count.of)),
    )
    .and_if(open)
    .confidence(Confidence::Strong)
    .remedy(
        Remedy::safe(
            "find out what the program does with them: its threads wait for something else, or it \
         does not close them",
        )
        .with_command("ss -tanp state close-wait"),
    )
    .remedy(Remedy::safe(
        "look at its threads: if all workers of a pool wait, none of them reads the end of \
     a connection",
    ))
    .remedy(Remedy::pointless(
        "kernel settings (tcp_fin_timeout, tcp_tw_reuse, keep-alives): only the program can close these",
    ))
}
