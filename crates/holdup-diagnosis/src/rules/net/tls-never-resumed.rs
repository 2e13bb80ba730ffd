//! Every TLS handshake is a full one. Here by artefacts; live, by `made_anew`.

use super::super::log_times::quote;
use crate::rules::{Rule, RuleId, Run, fires, made_anew, say};
use holdup_evidence::observed::{Happening, TlsEvent, What};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_churn(RuleId::TlsNeverResumed, made_anew::handshakes_of, check)
    .about("every TLS handshake is a full one: no session is resumed")
    .causes(&[Cause::NetTls]);

/// Full handshakes with one peer from which "none was resumed" is no beginning any more: the first has nothing to resume,
/// and a second at the same time has not either.
const MIN_HANDSHAKES: usize = 3;

/// What a client can do.
const ONE_CONTEXT: &str =
    "make one TLS context (SSLContext, SSL_CTX) for all connections: sessions are kept in it";

/// What an artefact shows of one peer, or of all that it does not name.
#[derive(Default)]
struct PeerHandshakes<'a> {
    peer: Option<&'a str>,
    hello: Option<(&'a Happening, u32, Option<bool>)>,
    hellos: usize,
    certificate: Option<&'a Happening>,
    certificates: usize,
    not_resumed: usize,
    resumed: usize,
    /// Connections of a client made for trying that had no session to offer; the first.
    fresh: usize,
    tried: Option<(&'a Happening, Option<u64>)>,
    /// And those that offered one in vain.
    in_vain: usize,
}

impl PeerHandshakes<'_> {
    fn is_several(&self) -> bool {
        self.in_vain > 0 || self.full() >= MIN_HANDSHAKES
    }

    fn full(&self) -> usize {
        // The first of those who come back had nothing to offer, and is a full one, too.
        let tried = match self.in_vain {
            0 => 0,
            again => again.saturating_add(self.fresh.min(1)),
        };
        self.certificates.max(self.not_resumed).max(tried)
    }
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let all = by_peer(observed);
    // Where one peer takes sessions up, another still may not.
    let never = all.iter().filter(|seen| seen.resumed == 0 && seen.is_several());
    let resumed: usize = all.iter().map(|seen| seen.resumed).sum();
    let Some(most) = never
        .max_by_key(|seen| seen.full())
        .or(all.iter().max_by_key(|seen| (seen.full(), seen.hellos)))
    else {
        return Verdict::CannotTell(
            "how TLS handshakes went: a log with `-Djavax.net.debug=ssl,handshake`, or `openssl s_client -reconnect`"
                .to_owned(),
        );
    };
    let full = most.full();
    let several = most.is_several() && most.resumed == 0;
    if resumed > 0 && !several {
        let known: usize = all.iter().map(|seen| seen.full().max(seen.fresh)).sum();
        return Verdict::Clear(format!(
            "{resumed} of {} handshakes resumed an earlier session",
            known + resumed
        ));
    }
    if full == 0 {
        return Verdict::CannotTell(match (most.hello, most.tried) {
            (Some((hello, id, ticket)), _) => unanswered(observed, hello, id, ticket),
            (None, Some((first, _))) => format!(
                "whether sessions are resumed: the connections of {} had none to offer (with TLS 1.3, \
                 `-reconnect` does not wait for a ticket); `openssl s_client -sess_out FILE`, then `-sess_in \
                 FILE`",
                observed.place(&first.quote)
            ),
            (None, None) => {
                "whether the handshakes were full ones: neither a hello nor a certificate is in the log"
                    .to_owned()
            }
        });
    }
    let shown = most.certificate.or(most.hello.map(|(hello, ..)| hello));
    let proved = most.in_vain > 0;
    let Some(shown) = shown else {
        return Verdict::Clear(format!("{full} handshakes without a line to show for them"));
    };
    let first = quote(observed, shown.text.clone(), &shown.quote);
    let title = match (several, most.certificates) {
        (true, _) => format!("None of {full} TLS handshakes resumed an earlier session"),
        (false, 0) => format!("{full} full TLS handshakes: no earlier session was resumed"),
        (false, _) => "The server sent its certificate: a full TLS handshake".to_owned(),
    };
    let severity = if several {
        Severity::Warning
    } else {
        Severity::Note
    };
    let mut finding = Finding::without_duration(RULE.id.id(), severity, title, Cause::NetTls, first);
    let counts = match several {
        true => format!(
            "{full} full handshakes with {}, 0 resumed: a full one costs both sides a signature and a round trip more",
            most.peer.unwrap_or("peers that the log does not name")
        ),
        false => format!("{full} full and 0 resumed: too few to say that sessions are never resumed"),
    };
    finding = finding.and(quote(observed, counts, &shown.quote));
    if let Some((first, bytes)) = most.tried.filter(|_| proved) {
        let read = bytes.map(|bytes| format!("; the first took {bytes} bytes from the server"));
        let text = format!(
            "{} of them came back and got a new session, not that of before{}",
            most.in_vain,
            read.unwrap_or_default()
        );
        finding = finding.and(quote(observed, text, &first.quote));
    }
    if let Some((hello, id, ticket)) = most.hello {
        finding = finding.and(quote(observed, offer(id, ticket), &hello.quote));
    }
    if let Some((why, count, first)) = reason(observed, shown.quote.source) {
        let times = say::several(count, "time");
        finding = finding.and(quote(
            observed,
            format!("the log says why, {times}: {why}"),
            &first.quote,
        ));
    }
    fires(
        finding
            .confidence(match (proved, several) {
                (true, _) => Confidence::Proved,
                (false, true) if most.peer.is_some() => Confidence::Strong,
                (false, _) => Confidence::Suspect,
            })
            .remedy(Remedy::safe(
                "reuse connections: HTTP keep-alive, a connection pool",
            ))
            .remedy(Remedy::safe(match proved {
                true => "let the server keep sessions or give tickets (nginx: `ssl_session_cache`, `ssl_session_tickets`), with \
                         common keys where several servers stand behind one address",
                false => ONE_CONTEXT,
            }))
            .remedy(Remedy::safe(
                "look whether a fatal alert ends each session, and whether the server gives tickets",
            )),
    )
}

/// What a hello without its answer leaves open.
fn unanswered(observed: &Observed, hello: &Happening, id: u32, ticket: Option<bool>) -> String {
    let place = observed.place(&hello.quote);
    let by_id = match id {
        0 => "by id it offers nothing to resume".to_owned(),
        id => format!("its session id of {id} bytes may be an earlier session's or a new random one"),
    };
    let tickets = match ticket {
        None => "; tickets and keys are cut off",
        Some(true) => "; it offers a ticket or key",
        Some(false) => "; it offers no ticket and no key",
    };
    format!(
        "whether a session is resumed: the ClientHello of {place} has no ServerHello, and alone proves \
         neither; {by_id}{tickets}"
    )
}

fn offer(id: u32, ticket: Option<bool>) -> String {
    let tickets = match ticket {
        None => "",
        Some(true) => " and a ticket or key",
        Some(false) => " and neither ticket nor key",
    };
    match id {
        0 => format!("the last ClientHello has an empty session id{tickets}"),
        id => format!("the last ClientHello has a session id of {id} bytes{tickets}"),
    }
}

/// Why a log says that sessions were not taken up: what it says most often, how often, and where first.
fn reason(observed: &Observed, source: u32) -> Option<(&str, u64, &Happening)> {
    let mut reasons: BTreeMap<&str, (u64, &Happening)> = BTreeMap::new();
    for (one, event) in tls(observed).filter(|(one, _)| one.quote.source == source) {
        if let TlsEvent::NotResumed { why } = event {
            reasons.entry(why).or_insert((0, one)).0 += 1;
        }
    }
    let (why, (count, first)) = reasons.into_iter().max_by_key(|(_, (count, _))| *count)?;
    Some((why, count, first))
}

fn tls(observed: &Observed) -> impl Iterator<Item = (&Happening, &TlsEvent)> {
    observed.happenings.iter().filter_map(|one| match &one.what {
        What::Tls(event) => Some((one, event)),
        _ => None,
    })
}

/// What each artefact shows of each peer. A log without its hellos' names has all peers in one.
fn by_peer(observed: &Observed) -> Vec<PeerHandshakes<'_>> {
    let mut peers: BTreeMap<(u32, Option<&str>), PeerHandshakes<'_>> = BTreeMap::new();
    for (one, event) in tls(observed) {
        let peer = match event {
            TlsEvent::ClientHello { server, .. }
            | TlsEvent::ServerHello { server, .. }
            | TlsEvent::Certificate { server } => server.as_deref(),
            TlsEvent::Tried { .. }
            | TlsEvent::Fatal { .. }
            | TlsEvent::NotResumed { .. }
            | TlsEvent::Finished => None,
        };
        let seen = peers
            .entry((one.quote.source, peer))
            .or_insert_with(|| PeerHandshakes {
                peer,
                ..PeerHandshakes::default()
            });
        seen.take(one, event);
    }
    peers.into_values().collect()
}

impl<'a> PeerHandshakes<'a> {
    fn take(&mut self, one: &'a Happening, event: &TlsEvent) {
        match event {
            TlsEvent::ClientHello {
                session_id, ticket, ..
            } => {
                self.hellos += 1;
                self.hello = Some((one, *session_id, *ticket));
            }
            TlsEvent::ServerHello {
                resumed: Some(true), ..
            }
            | TlsEvent::Tried { resumed: true, .. } => self.resumed += 1,
            TlsEvent::ServerHello {
                resumed: Some(false), ..
            } => {
                self.not_resumed += 1;
                self.certificate = self.certificate.or(Some(one));
            }
            TlsEvent::Tried { offered, bytes, .. } => {
                self.tried = self.tried.or(Some((one, *bytes)));
                if *offered {
                    self.in_vain += 1;
                    self.certificate = self.certificate.or(Some(one));
                } else {
                    self.fresh += 1;
                }
            }
            TlsEvent::Certificate { .. } => {
                self.certificates += 1;
                if self.certificates == 1 {
                    self.certificate = Some(one);
                }
            }
            TlsEvent::ServerHello { resumed: None, .. }
            | TlsEvent::Fatal { .. }
            | TlsEvent::NotResumed { .. }
            | TlsEvent::Finished => {}
        }
    }
}
