//! Connections in trouble, by lists of sockets: nobody answers, nobody acknowledges, nobody reads.
//!
//! In: [`Observed`]. Out: the verdicts of `connection-unanswered`, `connection-cut` and `peer-does-not-read` on artefacts.

use super::sockets::{self, EACH};
use super::{Extend, RuleId, Run, duration, say};
use holdup_evidence::observed::{Quote, SeenConnection, SocketKey, SocketTable, TcpState};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Requests to one address that stand at an instant, from which it is hardly chance that none was answered yet.
const MIN_PENDING_REQUESTS: u64 = 3;

/// Times that data was sent again without an answer from which the other end is gone: the fourth comes some three seconds
/// after the first.
const MIN_UNANSWERED: u64 = 4;

/// Bytes that wait for a peer, without the figures of `ss -i`, from which a look is worth while: several windows of data.
const MIN_UNSENT_BYTES: u64 = 262_144;

/// What was missing, where no list is there.
const NO_LIST: &str = "which connections there are, and in which state: `ss -tanpio`";

/// The verdict of `connection-unanswered`.
pub(super) fn unanswered(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut found: Vec<Request<'_>> = Vec::new();
    for table in &observed.sockets {
        for request in requests(table) {
            if sockets::queues_here(table, request.peer) {
                continue;
            }
            match found.iter_mut().find(|known| known.peer == request.peer) {
                Some(known) if known.repeated.max(known.count) < request.repeated.max(request.count) => {
                    *known = request
                }
                Some(_) => {}
                None => found.push(request),
            }
        }
    }
    found.retain(|request| request.repeated > 0 || request.count >= MIN_PENDING_REQUESTS);
    found.sort_by_key(|request| std::cmp::Reverse((request.repeated > 0, request.count)));
    if found.is_empty() {
        let asking: u64 = observed
            .sockets
            .iter()
            .map(|table| sockets::of_state(table, TcpState::SynSent))
            .sum();
        return match sockets::total(observed) {
            0 => Verdict::CannotTell(NO_LIST.to_owned()),
            all => Verdict::Clear(format!(
                "{} of {} ask for a connection, none of them again",
                asking,
                say::several(all, "socket")
            )),
        };
    }
    Verdict::Fires(
        found
            .iter()
            .take(EACH)
            .map(|request| silent(observed, request))
            .collect(),
    )
}

/// Requests to one address.
struct Request<'a> {
    peer: &'a str,
    count: u64,
    /// How often one of them was repeated.
    repeated: u64,
    process: Option<&'a str>,
    quote: &'a Quote,
}

fn requests(table: &SocketTable) -> Vec<Request<'_>> {
    let mut all: Vec<Request<'_>> = sockets::counts(table, TcpState::SynSent, SocketKey::Peer)
        .map(|count| Request {
            peer: &count.of,
            count: count.count,
            repeated: 0,
            process: None,
            quote: &count.quote,
        })
        .collect();
    let asking = table
        .connections
        .iter()
        .filter(|one| one.state == Some(TcpState::SynSent));
    for one in asking {
        match all.iter_mut().find(|request| request.peer == one.peer) {
            Some(request) => {
                request.repeated = request.repeated.max(one.unanswered);
                request.process = request.process.or(one.process.as_deref());
            }
            None => all.push(Request {
                peer: &one.peer,
                count: 1,
                repeated: one.unanswered,
                process: one.process.as_deref(),
                quote: &one.quote,
            }),
        }
    }
    all
}

fn silent(observed: &Observed, request: &Request<'_>) -> Finding {
    let peer = request.peer;
    let text = match request.repeated {
        0 => format!(
            "{} to {peer} are unanswered (SYN-SENT)",
            say::several(request.count, "request")
        ),
        1 => format!(
            "{} to {peer} unanswered (SYN-SENT), repeated once",
            say::several(request.count, "request")
        ),
        times => format!(
            "{} to {peer} unanswered (SYN-SENT), repeated up to {times} times",
            say::several(request.count, "request")
        ),
    };
    Finding::without_duration(
        RuleId::ConnectionUnanswered.id(),
        Severity::Warning,
        match request.count {
            0..2 => format!("{peer} does not answer connection requests"),
            count => format!("{peer} does not answer connection requests ({count} wait in SYN-SENT)"),
        },
        Cause::NetConnect,
        sockets::evidence(observed, text, request.quote),
    )
    .about(sockets::socket(peer), sockets::asker(request.process))
    .confidence(if request.repeated > 0 {
        Confidence::Strong
    } else {
        Confidence::Suspect
    })
    .remedy(
        Remedy::safe("trace the route of the packets, and find where they are dropped").with_command(
            format!(
                "ip route get {}",
                say::quoted(
                    peer.rsplit_once(':')
                        .map_or(peer, |(host, _)| host)
                        .trim_matches(['[', ']'])
                )
            ),
        ),
    )
    .remedy(Remedy::safe(
        "configure the firewall to reject instead of drop: the program then fails at once",
    ))
    .remedy(Remedy::safe(
        "set a connect timeout in the program, or remove the dead address from its list",
    ))
}

/// The verdict of `connection-cut`.
pub(super) fn cut(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let open = |one: &SeenConnection| one.state != Some(TcpState::SynSent);
    let all: Vec<&SeenConnection> = sockets::connections(observed)
        .map(|(_, one)| one)
        .filter(|one| open(one))
        .collect();
    let mut gone: Vec<&&SeenConnection> = all
        .iter()
        .filter(|one| one.unanswered >= MIN_UNANSWERED)
        .collect();
    gone.sort_by_key(|one| std::cmp::Reverse(one.unanswered));
    if gone.is_empty() {
        let known = observed.sockets.iter().any(|table| table.has_figures)
            || all.iter().any(|one| one.unanswered > 0);
        let most = all.iter().map(|one| one.unanswered).max().unwrap_or(0);
        return match known {
            true => Verdict::Clear(format!(
                "unacknowledged data was sent again at most {}",
                say::several(most, "time")
            )),
            false => Verdict::CannotTell(
                "whether peers acknowledge what is sent: no figures (`-i`) and no timers (`-o`) in a list of sockets".to_owned(),
            ),
        };
    }
    let findings = gone.iter().take(EACH).map(|one| {
        let who = say::name_or(one.process.as_deref().unwrap_or_default(), "this machine").to_owned();
        let silent = one.silent.map(|ns| format!("; nothing has come from it for {}", duration(ns)));
        let text = format!(
            "{} to {}: {} bytes unacknowledged or queued, sent again {} times in a row{}",
            one.local,
            one.peer,
            one.unsent,
            one.unanswered,
            silent.unwrap_or_default()
        );
        Finding::without_duration(
            RuleId::ConnectionCut.id(),
            Severity::Warning,
            format!("The connection to {} is cut: data from {who} is no longer acknowledged", one.peer),
            Cause::NetSend,
            sockets::evidence(observed, text, &one.quote),
        )
        .about(sockets::socket(&one.peer), sockets::asker(one.process.as_deref()))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe("check whether the peer is alive, and whether a firewall, a load balancer with an idle limit or a tunnel has dropped the connection").with_command("ss -tnoi state established"))
        .remedy(Remedy::safe("detect it sooner: SO_KEEPALIVE for idle connections, TCP_USER_TIMEOUT for \
         connections that send"))
    });
    Verdict::Fires(findings.collect())
}

/// Whether what the connection holds for its peer waits for that peer to read.
fn is_full(one: &SeenConnection) -> Option<bool> {
    if one.state == Some(TcpState::SynSent) || one.unsent == 0 || one.unanswered >= MIN_UNANSWERED {
        return None;
    }
    match one.probes {
        true => Some(true),
        // Without figures: much waits, and nothing shows why.
        false if one.segments.is_none() && one.unsent >= MIN_UNSENT_BYTES && one.unanswered == 0 => {
            Some(false)
        }
        false => None,
    }
}

/// The verdict of `peer-does-not-read`.
pub(super) fn unread(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut full: Vec<(bool, &SocketTable, &SeenConnection)> = sockets::connections(observed)
        .filter_map(|(table, one)| Some((is_full(one)?, table, one)))
        .collect();
    full.sort_by_key(|(known, _, one)| std::cmp::Reverse((*known, one.unsent)));
    let mut known: Vec<&str> = Vec::new();
    full.retain(|(_, _, one)| {
        let new = !known.contains(&&*one.peer);
        known.push(&one.peer);
        new
    });
    if full.is_empty() {
        return match sockets::total(observed) {
            0 => Verdict::CannotTell(NO_LIST.to_owned()),
            all => {
                let most = sockets::connections(observed).map(|(_, one)| one.unsent).max();
                Verdict::Clear(format!(
                    "at most {} wait to be sent on one of {}, and no window is closed",
                    say::bytes(most.unwrap_or(0)),
                    say::several(all, "socket")
                ))
            }
        };
    }
    let findings = full.iter().take(EACH);
    Verdict::Fires(
        findings
            .map(|(known, table, one)| does_not_read(observed, *known, table, one))
            .collect(),
    )
}

/// The other end of a connection, where it is in the same list.
pub(super) fn other_end<'a>(table: &'a SocketTable, one: &SeenConnection) -> Option<&'a SeenConnection> {
    let mut all = table.connections.iter();
    all.find(|other| other.local == one.peer && other.peer == one.local)
}

fn does_not_read(observed: &Observed, known: bool, table: &SocketTable, one: &SeenConnection) -> Finding {
    let other = other_end(table, one);
    let reader = other.and_then(|other| other.process.as_deref());
    let peer = match reader {
        Some(process) => format!("{process} at {}", one.peer),
        None => one.peer.clone(),
    };
    let who = say::name_or(one.process.as_deref().unwrap_or_default(), "this machine").to_owned();
    let title = match known {
        true => format!("{peer} does not read the data from {who}"),
        false => format!("{} wait to be sent to {peer}", say::bytes(one.unsent)),
    };
    let mut text = format!("{} wait for {} (Send-Q)", say::bytes(one.unsent), one.peer);
    text += match known {
        true => ", whose receive window is closed: the kernel sends probes",
        false => "; `ss -tnio` shows whether it does not read or the network is slow",
    };
    let limited = one.window_full.map(|ns| {
        sockets::evidence(
            observed,
            format!("sending waited {} for room at the peer", duration(ns)),
            &one.quote,
        )
    });
    let unread = other.filter(|other| other.unread > 0).map(|other| -> Evidence {
        sockets::evidence(
            observed,
            format!(
                "{} arrived there and are unread (Recv-Q)",
                say::bytes(other.unread)
            ),
            &other.quote,
        )
    });
    Finding::without_duration(
        RuleId::PeerDoesNotRead.id(),
        if known { Severity::Warning } else { Severity::Note },
        title,
        Cause::NetSend,
        sockets::evidence(observed, text, &one.quote),
    )
    .about(sockets::socket(&one.peer), sockets::asker(one.process.as_deref()))
    .and_if(limited)
    .and_if(unread)
    .confidence(if known {
        Confidence::Strong
    } else {
        Confidence::Suspect
    })
    .remedy(Remedy::safe(format!("find out what {peer} does instead of reading")).with_command("ss -tnpio"))
    .remedy(Remedy::pointless(
        "a larger send buffer or a faster network: neither is full",
    ))
}
