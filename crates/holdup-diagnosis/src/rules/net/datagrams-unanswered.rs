//! A process sends requests over UDP, and nothing comes back, or only errors.

use crate::rules::name_chain::Chain;
use crate::rules::{Extend, Generality, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{
    Asker, AttributedWait, DatagramPeer, DatagramProtocol, Datagrams, Peer, Resource, ResourceKind,
};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::DatagramsUnanswered, check)
    .about("a server that is asked over UDP does not answer, or answers with errors")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

/// Requests without an answer from which it is no datagram that was lost on its way.
const MIN_UNANSWERED: u64 = 3;

/// Nanoseconds for which nothing came back: the time limit of one question of an ordinary resolver is several times that.
const MIN_SILENCE: Ns = 1_000_000_000;

/// The same of a server before which questions of others stand, too: one that is busy takes them up within less.
const MIN_SILENCE_BEHIND: Ns = 200_000_000;

/// What one question takes of a socket's queue, bytes, as the kernel counts it: over the loopback device less than a third of this.
const DATAGRAM_BYTES: u64 = 2304;

/// Answers from which a peer is one that answers, whatever is spoken there, if there was one to every second datagram.
const MIN_ANSWERS: u64 = 3;

/// Answers with errors from which it is no single name that cannot be resolved; every second answer has to be one.
const MIN_FAILED: u64 = 5;

fn check(run: &Run<'_>) -> Verdict {
    let Some(all) = &run.attributed.datagrams else {
        return Verdict::CannotTell(
            "whether it sent anything over UDP while datagrams were counted".to_owned(),
        );
    };
    // Of several peers of one process the first has most requests without an answer.
    let mut told = Vec::new();
    let mut findings = Vec::new();
    for one in &all.peers {
        if !told.contains(&one.by.pid)
            && let Some(finding) = silent(run, all, one).or_else(|| failing(run, one))
        {
            told.push(one.by.pid);
            findings.push(finding);
        }
    }
    if findings.is_empty() {
        let most = all.peers.iter().map(|one| one.unanswered).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "UDP peers: {}, at most {} in a row that nothing came back to; those owed no answer, or another rule has them",
            all.peers.len(),
            say::several(most, "datagram"),
        ));
    }
    Verdict::Fires(findings)
}

/// Whether something is to come back: it is a request of a protocol that is known, or what was sent before was answered.
fn owes(one: &DatagramPeer) -> bool {
    let before = one.sent.saturating_sub(one.unanswered);
    one.protocol.is_some() || (one.received >= MIN_ANSWERS && one.received.saturating_mul(2) >= before)
}

fn is_silent(run: &Run<'_>, one: &DatagramPeer) -> bool {
    let long = one.silent >= MIN_SILENCE || one.silent >= MIN_SILENCE_BEHIND && has_backlog(run, one);
    one.unanswered >= MIN_UNANSWERED && long && owes(one)
}

/// Whether more stands unread before a server of this machine than was sent to it since it last answered: it has read nothing for longer than
/// that, though its client has asked again only a moment ago.
fn has_backlog(run: &Run<'_>, one: &DatagramPeer) -> bool {
    let mut servers = run.facts.name_servers.iter();
    let server = servers.find(|server| server.address.to_string() == one.peer);
    let unread = server.and_then(|server| server.unread).unwrap_or_default();
    one.received == 0 && unread.0 > one.sent.saturating_mul(DATAGRAM_BYTES)
}

/// What its threads did meanwhile: none of them waits for this peer in a call of its own, which is another rule's.
fn meanwhile<'a>(run: &Run<'a>, one: &DatagramPeer) -> Option<Waits<'a>> {
    let theirs = run.waits(|wait| wait.asker.name.pid == one.by.pid)?;
    let peer = one.peer.parse().ok();
    let for_it = |wait: &AttributedWait| match &wait.resource.detail.peer {
        Some(Peer::Address(address)) => peer == Some(*address) && wait.cause != Cause::Idle,
        _ => false,
    };
    theirs.only(for_it).is_none().then_some(theirs)
}

fn silent(run: &Run<'_>, all: &Datagrams, one: &DatagramPeer) -> Option<Finding> {
    if !is_silent(run, one) {
        return None;
    }
    let theirs = meanwhile(run, one)?;
    let about = resource(one);
    let chain = Chain::of(run.facts, &about);
    let who = say::who_with_pid(&one.by);
    let before = match one.received {
        0 => String::new(),
        many => format!(", after {}", say::several(many, "answer")),
    };
    let beside = all.peers.iter().filter(|other| {
        other.by.pid == one.by.pid && other.peer != one.peer && other.protocol == one.protocol
    });
    let beside: Vec<&DatagramPeer> = beside.filter(|_| one.protocol.is_some()).collect();
    let (quiet, answers): (Vec<&DatagramPeer>, Vec<&DatagramPeer>) =
        beside.into_iter().partition(|other| is_silent(run, other));
    let answering = answers.iter().filter(|other| other.received > 0).count() as u64;
    let too = match quiet.len() as u64 {
        0 => String::new(),
        1 => "; 1 other peer does not answer either".to_owned(),
        more => format!("; {more} other peers do not answer either"),
    };
    let instead = match answering {
        0 => String::new(),
        1 => "; 1 other peer answers".to_owned(),
        more => format!("; {more} other peers answer"),
    };
    let title = format!(
        "{who} waits for {} ({}): {} in {}, 0 answered{before}{}{too}{instead}",
        one.peer,
        spoken(one),
        say::several(one.unanswered, "request"),
        duration(one.silent),
        chain.clause(),
    );
    let counted = Evidence::new(
        format!(
            "{} sent to {} in {}, {} came back; nothing for the last {}",
            say::several(one.sent, "datagram"),
            one.peer,
            duration(one.watched),
            one.received,
            duration(one.silent)
        ),
        SOURCE,
    );
    let refused = (all.refused > 0).then(|| {
        Evidence::new(
            format!(
                "meanwhile it sent {} that refuse or say that the server failed (REFUSED, SERVFAIL)",
                say::several(all.refused, "answer")
            ),
            SOURCE,
        )
    });
    // Another one answers the same requests: then it is not known that anybody waits for this one.
    let (severity, ns) = match answering {
        0 => (Severity::Warning, theirs.own()),
        _ => (Severity::Note, 0),
    };
    let repair = chain.remedy().unwrap_or_else(|| {
        Remedy::safe(format!(
            "find out whether {} receives the requests, and what it does",
            one.peer
        ))
        .with_command(format!("tcpdump -ni any udp port {}", port(one)))
    });
    Some(
        finding(run, one, (severity, ns), title, counted)
            .and_if(refused)
            .and_if(chain.evidence())
            .confidence(match one.protocol {
                Some(_) => Confidence::Strong,
                None => Confidence::Suspect,
            })
            .remedy(repair)
            .remedy(Remedy::changing(
                format!("have {} ask another server too", say::who(&one.by)),
                "its load goes to that one",
            ))
            .remedy(Remedy::pointless(
                "a higher limit of requests in flight: each of them waits for the same peer",
            )),
    )
}

/// A peer that answers, and mostly with errors.
fn failing(run: &Run<'_>, one: &DatagramPeer) -> Option<Finding> {
    let names = one.protocol == Some(DatagramProtocol::Dns);
    if !names || one.failed < MIN_FAILED || one.failed.saturating_mul(2) < one.received {
        return None;
    }
    let theirs = run.waits(|wait| wait.asker.name.pid == one.by.pid)?;
    let who = say::who_with_pid(&one.by);
    let title = format!(
        "{} (UDP, DNS) answers {who} with errors: {} of {} are SERVFAIL or REFUSED",
        one.peer,
        one.failed,
        say::several(one.received, "answer")
    );
    let counted = Evidence::new(
        format!(
            "{} sent to {} in {}, {} came back, {} of them with an error",
            say::several(one.sent, "datagram"),
            one.peer,
            duration(one.watched),
            one.received,
            one.failed
        ),
        SOURCE,
    );
    Some(
        finding(run, one, (Severity::Warning, theirs.own()), title, counted)
            .confidence(Confidence::Strong)
            .remedy(
                Remedy::safe("ask it for one of the names: the answer may say why").with_command(format!(
                    "dig @{} -p {} NAME",
                    host(one),
                    port(one)
                )),
            ),
    )
}

fn finding(
    run: &Run<'_>,
    one: &DatagramPeer,
    (severity, ns): (Severity, Ns),
    title: String,
    counted: Evidence,
) -> Finding {
    let ns = ns.min(run.attributed.elapsed);
    let asker = Asker {
        name: one.by.clone(),
        ..Asker::default()
    };
    Finding::new(RULE.id.id(), severity, title, Cause::NetReceive, ns, counted).about(resource(one), asker)
}

/// `UDP, DNS`.
fn spoken(one: &DatagramPeer) -> String {
    let protocol = one
        .protocol
        .map_or_else(String::new, |of| format!(", {}", of.name()));
    format!("UDP{protocol}")
}

fn resource(one: &DatagramPeer) -> Resource {
    let named = Resource::named(ResourceKind::Socket, format!("{} (udp)", one.peer));
    named.with(|facts| facts.peer = one.peer.parse().ok().map(Peer::Address))
}

fn host(one: &DatagramPeer) -> &str {
    let host = one
        .peer
        .rsplit_once(':')
        .map_or(one.peer.as_str(), |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn port(one: &DatagramPeer) -> &str {
    one.peer.rsplit_once(':').map_or("53", |(_, port)| port)
}

/// Where datagrams are counted.
const SOURCE: &str = "sock_send_length and sk_data_ready";
