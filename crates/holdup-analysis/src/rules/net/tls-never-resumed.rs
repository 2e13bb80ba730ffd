//! Every TLS handshake is a full one.

use super::super::log_times::quote;
use crate::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, fires};
use holdup_evidence::observed::{Happening, TlsEvent, What};
use holdup_evidence::{Cause, Observed};
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::TlsNeverResumed,
    about: "every TLS handshake is a full one: no session is taken up again",
    needs: &[Need::Artefacts],
    causes: &[Cause::NetTls],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

/// Full handshakes with one peer from which "none was resumed" is no beginning any more: the first has nothing to resume,
/// and a second at the same time has not either.
const SEVERAL: usize = 3;

/// What the logs of one artefact show.
#[derive(Default)]
struct Seen<'a> {
    hello: Option<(&'a Happening, u32, Option<bool>)>,
    hellos: usize,
    servers: BTreeSet<&'a str>,
    certificate: Option<&'a Happening>,
    certificates: usize,
    not_resumed: usize,
    resumed: usize,
}

impl Seen<'_> {
    fn full(&self) -> usize {
        self.certificates.max(self.not_resumed)
    }
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let sources: BTreeSet<u32> = tls(observed).map(|(one, _)| one.quote.source).collect();
    let all: Vec<Seen<'_>> = sources.iter().map(|source| seen(observed, *source)).collect();
    let Some(most) = all.iter().max_by_key(|seen| (seen.full(), seen.hellos)) else {
        return Verdict::CannotTell(
            "how TLS handshakes went: a log with `-Djavax.net.debug=ssl,handshake`, or `openssl s_client -reconnect`"
                .to_owned(),
        );
    };
    let (full, resumed) = (most.full(), most.resumed);
    if resumed > 0 {
        return Verdict::Clear(format!(
            "{resumed} of {} handshakes took up an earlier session",
            full + resumed
        ));
    }
    if full == 0 {
        return Verdict::CannotTell(match most.hello {
            Some((hello, id, ticket)) => unanswered(observed, hello, id, ticket),
            None => "whether the handshakes were full ones: neither a hello nor a certificate is in the log"
                .to_owned(),
        });
    }
    let shown = most.certificate.or(most.hello.map(|(hello, ..)| hello));
    let Some(shown) = shown else {
        return Verdict::Clear(format!("{full} handshakes without a line to show for them"));
    };
    let peers = most.servers.len().max(1);
    let first = quote(observed, shown.text.clone(), &shown.quote);
    let several = full >= SEVERAL.saturating_add(peers - 1);
    let title = match (several, most.certificates) {
        (true, _) => format!("None of {full} TLS handshakes took up an earlier session"),
        (false, 0) => format!("{full} full TLS handshakes: no earlier session was taken up"),
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
            match most.servers.len() {
                0 => "peers that the log does not name".to_owned(),
                1 => most.servers.iter().copied().collect(),
                many => format!("{many} servers"),
            }
        ),
        false => format!("{full} full and 0 resumed: too few to say that sessions are never taken up"),
    };
    finding = finding.and(quote(observed, counts, &shown.quote));
    if let Some((hello, id, ticket)) = most.hello {
        finding = finding.and(quote(observed, offer(id, ticket), &hello.quote));
    }
    fires(
        finding
            .confidence(if several {
                Confidence::Strong
            } else {
                Confidence::Suspect
            })
            .remedy(Remedy::safe(
                "keep connections open and use them again: HTTP keep-alive, a pool of connections",
            ))
            .remedy(Remedy::safe(
                "make one TLS context (SSLContext, SSL_CTX) for all connections: sessions are kept in it",
            ))
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
        "whether a session is taken up: the ClientHello of {place} has no ServerHello, and one alone proves neither; {by_id}{tickets}"
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

fn tls(observed: &Observed) -> impl Iterator<Item = (&Happening, &TlsEvent)> {
    observed.happenings.iter().filter_map(|one| match &one.what {
        What::Tls(event) => Some((one, event)),
        _ => None,
    })
}

fn seen(observed: &Observed, source: u32) -> Seen<'_> {
    let mut seen = Seen::default();
    for (one, event) in tls(observed).filter(|(one, _)| one.quote.source == source) {
        match event {
            TlsEvent::ClientHello {
                session_id,
                server,
                ticket,
            } => {
                seen.hellos += 1;
                seen.hello = Some((one, *session_id, *ticket));
                seen.servers.extend(server.as_deref());
            }
            TlsEvent::ServerHello { resumed: Some(true) } => seen.resumed += 1,
            TlsEvent::ServerHello { resumed: Some(false) } => {
                seen.not_resumed += 1;
                seen.certificate = seen.certificate.or(Some(one));
            }
            TlsEvent::Certificate => {
                seen.certificates += 1;
                if seen.certificates == 1 {
                    seen.certificate = Some(one);
                }
            }
            TlsEvent::ServerHello { resumed: None } | TlsEvent::Fatal { .. } | TlsEvent::Finished => {}
        }
    }
    seen
}
