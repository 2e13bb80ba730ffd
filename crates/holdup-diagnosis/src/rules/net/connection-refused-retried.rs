//! Asking a closed port again and again, with sleeps in between.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::Cause;
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::connections::Connections;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Refusals from which it is a program that tries again rather than one that goes on to the next address.
const MIN_REFUSALS: u64 = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ConnectionRefusedRetried, check)
    .about("it retries a closed port, and sleeps between attempts")
    .causes(&[Cause::TimerSleep]);

/// The peer between whose refusals the most sleep was, if that is worth a finding.
pub(in crate::rules) fn refused<'a>(run: &Run<'a>, waits: &Waits<'_>) -> Option<&'a Connections> {
    let peers = run.attributed.connections.iter();
    let worst = peers
        .filter(|peer| peer.refused >= MIN_REFUSALS)
        .max_by_key(|peer| peer.slept_ns)?;
    let twice = worst.slept_ns.saturating_mul(2);
    let whole = run.attributed.of_threads && twice > run.attributed.wall;
    // What other processes sleep says nothing of this one. A script has commands that sleep for it.
    let most_of_it = match waits.only(|wait| wait.asker.name.pid == worst.by.pid) {
        Some(theirs) => twice > theirs.own(),
        None => whole || twice > waits.own(),
    };
    (most_of_it && (whole || run.matters(worst.slept_ns.min(waits.cost()), MATTERS))).then_some(worst)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    match refused(run, waits) {
        Some(peer) => {
            let theirs = waits.only(|wait| wait.asker.name.pid == peer.by.pid);
            let finding = finding(run, theirs.as_ref().unwrap_or(waits), peer);
            Verdict::Fires(vec![finding])
        }
        None => {
            let refused = run.attributed.connections.iter().map(|peer| peer.refused).sum();
            Verdict::Clear(format!(
                "{} refused, and the sleep between them is not most of the sleep",
                say::several(refused, "connection")
            ))
        }
    }
}

fn finding(run: &Run<'_>, waits: &Waits<'_>, peer: &Connections) -> Finding {
    let address = &peer.peer;
    let title = format!(
        "{} retries {address}, which refuses connections: {} refused, {} of sleep between them",
        say::program(run, &peer.by),
        say::several(peer.refused, "connection"),
        duration(peer.slept_ns)
    );
    let text = format!(
        "{} were refused at once, because no process listens on this port; {} between them",
        say::several(peer.refused, "request"),
        say::several(peer.sleeps, "sleep")
    );
    let seen = match waits.main().read_at.as_str() {
        "" => "the result of each connection request".to_owned(),
        place => place.to_owned(),
    };
    let late = waits.median() / 2;
    let then = match (peer.made, peer.refused_until) {
        (0, _) | (_, 0) => "none was accepted before the end".to_owned(),
        (_, until) => format!(
            "the port was opened {} after the first refusal; a sleep of {} detects that {} late on average",
            duration(until),
            duration(waits.median()),
            duration(late)
        ),
    };
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, seen.as_str()))
        .and(Evidence::new(then, seen.as_str()))
        .proved_if(true);
    finding.ns = finding.ns.map(|ns| ns.min(peer.slept_ns));
    finding.resource = Resource::named(ResourceKind::Socket, address)
        .with(|facts| facts.peer = Some(address.as_str().into()));
    let port = address.rsplit(':').next().unwrap_or_default();
    finding
        .remedy(
            Remedy::safe(
                "find out why no process listens there: it starts slowly, it failed, or it listens \
             elsewhere",
            )
            .with_command(format!("ss -ltnp sport = :{}", say::quoted(port))),
        )
        .remedy(Remedy::safe(
            "start the client after the server is ready (Type=notify or socket activation of systemd, a \
             health check)",
        ))
        .remedy(Remedy::changing(
            "sleep for less between the first attempts, and longer only later",
            "a peer that is down gets more requests",
        ))
}
