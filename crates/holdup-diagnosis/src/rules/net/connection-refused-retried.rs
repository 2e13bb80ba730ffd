//! Asking a closed port again and again, with sleeps in between.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::connections::Connections;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Refusals from which it is a program that tries again rather than one that goes on to the next address.
const MIN_REFUSALS: u64 = 3;

/// The same for a program that already runs, where it was watched between two of them and nothing accepted it: how often it had tried before
/// nobody knows, and with the pauses that programs take by then few fall into the time in which they are watched.
const MIN_REFUSALS_SEEN: u64 = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ConnectionRefusedRetried, check)
    .about("it retries a closed port, and sleeps between attempts")
    .causes(&[Cause::TimerSleep]);

/// The peer between whose refusals the most sleep was, if that is worth a finding.
pub(in crate::rules) fn refused<'a>(run: &Run<'a>, waits: &Waits<'_>) -> Option<&'a Connections> {
    let peers = run.attributed.connections.iter();
    let worst = peers
        .filter(|peer| {
            let seen = run.attributed.of_threads && peer.made == 0 && peer.sleeps > 0;
            peer.refused >= if seen { MIN_REFUSALS_SEEN } else { MIN_REFUSALS }
        })
        .max_by_key(|peer| peer.slept_ns)?;
    let twice = about_all(run, worst).saturating_mul(2);
    let whole = run.attributed.of_threads && twice > run.attributed.wall;
    // What other processes and other threads sleep says nothing of this one. A script has commands that sleep for it.
    let most_of_it = match by_itself(waits, worst) {
        Some(theirs) => twice > theirs.own(),
        None => whole || twice > waits.own(),
    };
    (most_of_it && (whole || run.matters(worst.slept_ns.min(waits.cost()), MATTERS))).then_some(worst)
}

/// The sleep of all rounds, where only that between two refusals is counted: of a program that already ran, the sleep in which observation began
/// and that in which it ended are of the same kind, and where it is watched for a few rounds they are most of them.
fn about_all(run: &Run<'_>, peer: &Connections) -> Ns {
    let between = peer.refused.saturating_sub(1).max(1);
    match run.attributed.of_threads && peer.made == 0 {
        true => peer.slept_ns.saturating_mul(between.saturating_add(2)) / between,
        false => peer.slept_ns,
    }
}

/// The sleeps of the thread that made these connections; of its process where those of that thread are not known apart.
fn by_itself<'a>(waits: &Waits<'a>, peer: &Connections) -> Option<Waits<'a>> {
    let thread = |wait: &AttributedWait| (wait.asker.name.pid, wait.asker.name.tid);
    let own = waits.only(|wait| peer.by.tid != 0 && thread(wait) == (peer.by.pid, peer.by.tid));
    own.or_else(|| waits.only(|wait| wait.asker.name.pid == peer.by.pid))
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    match refused(run, waits) {
        Some(peer) => {
            let theirs = by_itself(waits, peer);
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
