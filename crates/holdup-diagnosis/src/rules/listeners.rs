//! Listeners whose clients wait to be accepted, by lists of sockets and the kernel's counters.
//!
//! In: [`Observed`]. Out: the verdicts of `accept-queue-full` and `unix-queue-full` on artefacts.

use super::sockets::{self, EACH};
use super::{Extend, RuleId, Run, logs, say};
use holdup_evidence::observed::{Metric, SeenQueue, SocketKey, SocketTable, TcpState};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Share of a queue from which a burst overflows it.
const MIN_FULL_SHARE: f64 = 0.8;

/// Clients that wait at least, so that a short queue which holds one is not nearly full.
const MIN_WAITING_CLIENTS: u64 = 5;

/// Clients that wait at a listener whose limit is not known, from which it is full with the limit that listeners mostly
/// have: 128 was the kernel's own until Linux 5.4.
const OLD_LIMIT: u64 = 128;

/// How full a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fullness {
    Nearly,
    /// By what listeners mostly may have, or by requests that stand in front of it.
    Probably,
    /// More wait than the listener asked for: the kernel adds one.
    Full,
}

fn fullness(table: &SocketTable, queue: &SeenQueue) -> Option<Fullness> {
    match queue.limit {
        Some(limit) if queue.waiting > limit => Some(Fullness::Full),
        Some(limit) => {
            let nearly =
                queue.waiting >= MIN_WAITING_CLIENTS && queue.waiting as f64 >= MIN_FULL_SHARE * limit as f64;
            nearly.then_some(Fullness::Nearly)
        }
        None => {
            let stands = knocking(table, queue) > 0 || queue.waiting > OLD_LIMIT;
            stands.then_some(Fullness::Probably)
        }
    }
}

/// Requests for a connection in the same list that this listener has not answered.
fn knocking(table: &SocketTable, queue: &SeenQueue) -> u64 {
    let counts = sockets::counts(table, TcpState::SynSent, SocketKey::Peer);
    let counted: u64 = counts
        .filter(|count| sockets::serves(&queue.local, &count.of))
        .map(|count| count.count)
        .sum();
    let single = table
        .connections
        .iter()
        .filter(|one| one.state == Some(TcpState::SynSent) && sockets::serves(&queue.local, &one.peer));
    counted.max(single.count() as u64)
}

/// The verdict of `accept-queue-full`.
pub(super) fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let findings = full(run, observed, false);
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    let overflows = |now: bool| {
        let series = observed.of(Metric::ListenQueueOverflows);
        let points = series.flat_map(|series| &series.points);
        points
            .filter(move |point| point.since_boot != now)
            .max_by(|a, b| a.value.total_cmp(&b.value))
    };
    if let Some(now) = overflows(true).filter(|point| point.value > 0.0) {
        let title = format!(
            "Listeners' queues overflowed {} between two readings",
            logs::times(now.value as usize)
        );
        let evidence = sockets::evidence(
            observed,
            format!("{:.0} more overflows of listeners' queues", now.value),
            &now.quote,
        );
        return Verdict::Fires(vec![overflowed(Severity::Warning, title, evidence)]);
    }
    let known = overflows(true).is_some();
    if let Some(before) = overflows(false).filter(|point| point.value > 0.0 && !known) {
        let title = format!(
            "Listeners' queues overflowed {} since boot",
            logs::times(before.value as usize)
        );
        let text = format!(
            "they overflowed {} since boot: programs do not accept their connections fast enough, or their backlog is small; only a second \
             reading shows whether it still happens",
            logs::times(before.value as usize)
        );
        let evidence = sockets::evidence(observed, text, &before.quote);
        return Verdict::Fires(vec![overflowed(Severity::Note, title, evidence)]);
    }
    let listening: u64 = observed.sockets.iter().filter_map(|table| table.listening).sum();
    let waiting = sockets::queues(observed, false)
        .map(|(_, queue)| queue.waiting)
        .max();
    match (listening, overflows(false)) {
        (0, None) => Verdict::CannotTell("how many clients wait at which listener: `ss -ltnp`".to_owned()),
        (0, Some(_)) if known => {
            Verdict::Clear("0 overflows of listeners' queues between two readings".to_owned())
        }
        (0, Some(_)) => Verdict::Clear("0 overflows of listeners' queues since boot".to_owned()),
        (count, _) => Verdict::Clear(format!(
            "at most {} at one of {}",
            say::several(waiting.unwrap_or(0), "client"),
            say::several(count, "listener")
        )),
    }
}

/// The verdict of `unix-queue-full`.
pub(super) fn seen_unix(run: &Run<'_>, observed: &Observed) -> Verdict {
    let findings = full(run, observed, true);
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    match sockets::queues(observed, true)
        .map(|(_, queue)| queue)
        .max_by_key(|queue| queue.waiting)
    {
        Some(queue) => Verdict::Clear(format!(
            "{} wait at {}, of at most {}",
            say::several(queue.waiting, "client"),
            queue.local,
            queue.limit.unwrap_or(0)
        )),
        None => Verdict::CannotTell("how many clients wait at which Unix socket: `ss -xlp`".to_owned()),
    }
}

fn full(run: &Run<'_>, observed: &Observed, unix: bool) -> Vec<Finding> {
    let mut all: Vec<(Fullness, &SocketTable, &SeenQueue)> = sockets::queues(observed, unix)
        .filter_map(|(table, queue)| Some((fullness(table, queue)?, table, queue)))
        .collect();
    all.sort_by_key(|(fullness, _, queue)| std::cmp::Reverse((*fullness, queue.waiting)));
    // The same listener in a later list is the same trouble.
    let mut known: Vec<&str> = Vec::new();
    all.retain(|(_, _, queue)| {
        let new = !known.contains(&&*queue.local);
        known.push(&queue.local);
        new
    });
    let first = all.iter().take(EACH);
    first
        .map(|(fullness, table, queue)| finding(run, observed, *fullness, table, queue))
        .collect()
}

fn finding(
    run: &Run<'_>,
    observed: &Observed,
    fullness: Fullness,
    table: &SocketTable,
    queue: &SeenQueue,
) -> Finding {
    let who = match &queue.process {
        Some(process) => format!("{process}, which listens at {},", queue.local),
        None => format!("The listener at {}", queue.local),
    };
    let title = match fullness {
        Fullness::Full => format!("{who} accepts no clients, and its queue is full"),
        Fullness::Probably => format!("{who} accepts no clients: {} wait", queue.waiting),
        Fullness::Nearly => format!("{who} has a nearly full queue of clients"),
    };
    let clients = say::several(queue.waiting, "client");
    let text = match queue.limit {
        Some(limit) => format!("{clients} wait to be accepted, of at most {limit} (Recv-Q, Send-Q)"),
        None => format!("{clients} wait to be accepted (Recv-Q)"),
    };
    let severity = if fullness == Fullness::Nearly {
        Severity::Note
    } else {
        Severity::Warning
    };
    let (rule, cause) = match queue.unix {
        true => (RuleId::UnixQueueFull, Cause::IpcUnix),
        false => (RuleId::AcceptQueueFull, Cause::NetConnect),
    };
    let knocking = knocking(table, queue);
    let knocking = (knocking > 0).then(|| {
        sockets::evidence(
            observed,
            format!(
                "{} in the same list get no answer from it (SYN-SENT)",
                say::several(knocking, "request")
            ),
            &queue.quote,
        )
    });
    let overflows = observed
        .of(Metric::ListenQueueOverflows)
        .flat_map(|series| &series.points)
        .max_by(|a, b| a.value.total_cmp(&b.value))
        .filter(|point| point.value > 0.0 && !queue.unix);
    let overflows = overflows.map(|point| {
        let when = if point.since_boot {
            "since boot"
        } else {
            "between two readings"
        };
        let text = format!(
            "listeners' queues overflowed {} {when}",
            logs::times(point.value as usize)
        );
        sockets::evidence(observed, text, &point.quote)
    });
    let most = run.facts.sysctl.get("net/core/somaxconn").map(|most| {
        Evidence::new(
            format!("no queue on this machine may be longer than {most}"),
            "net.core.somaxconn",
        )
    });
    let port = queue.local.rsplit(':').next().unwrap_or_default();
    let look = match queue.unix {
        true => "ss -xlp".to_owned(),
        false => format!("ss -ltnp sport = :{}", say::quoted(port)),
    };
    Finding::without_duration(
        rule.id(),
        severity,
        title,
        cause,
        sockets::evidence(observed, text, &queue.quote),
    )
    .about(sockets::socket(&queue.local), sockets::asker(None))
    .and_if(knocking)
    .and_if(overflows)
    .and_if(most)
    .confidence(match fullness {
        Fullness::Full => Confidence::Strong,
        Fullness::Probably | Fullness::Nearly => Confidence::Suspect,
    })
    .remedy(
        Remedy::safe(
            "find out why the listener does not accept: it is stopped, it waits, or all its workers are busy",
        )
        .with_command(look),
    )
    .remedy(Remedy::safe(
        "configure a longer backlog if it is fast enough on average and clients come in bursts",
    ))
    .remedy(Remedy::pointless(
        "looking for lost packets: the requests reach this machine",
    ))
}

fn overflowed(severity: Severity, title: String, evidence: Evidence) -> Finding {
    Finding::without_duration(
        RuleId::AcceptQueueFull.id(),
        severity,
        title,
        Cause::NetConnect,
        evidence,
    )
    .confidence(Confidence::Strong)
    .remedy(
        Remedy::safe("find the listener with waiting clients (Recv-Q above Send-Q) while it happens")
            .with_command("ss -ltnp"),
    )
    .remedy(Remedy::safe(
        "find out why it does not accept; a longer backlog helps only for bursts",
    ))
}
