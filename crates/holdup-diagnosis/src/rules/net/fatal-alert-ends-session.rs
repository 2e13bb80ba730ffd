//! A fatal alert ends TLS sessions, so that they can't be resumed.

use super::super::log_times::quote;
use crate::rules::{Rule, RuleId, Run, fires};
use holdup_evidence::observed::{Happening, TlsEvent, What};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::FatalAlertEndsSession, check)
    .about("a fatal alert ends TLS sessions, which then cannot be resumed")
    .causes(&[Cause::NetTls]);

/// Functions by which a program closes its input: an alert from there is the closing side's own.
const CLOSING: &str = "shutdownInput";

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut events = 0;
    let mut fatal: BTreeMap<(&str, Option<&str>), Vec<&Happening>> = BTreeMap::new();
    for one in &observed.happenings {
        let What::Tls(event) = &one.what else { continue };
        events += 1;
        if let TlsEvent::Fatal { why, raised_by } = event {
            fatal.entry((why, raised_by.as_deref())).or_default().push(one);
        }
    }
    let Some(((why, raised_by), all)) = fatal.iter().max_by_key(|(_, all)| all.len()) else {
        return match events {
            0 => Verdict::CannotTell(
                "whether sessions end by a fatal alert: a log with `-Djavax.net.debug=ssl,handshake`"
                    .to_owned(),
            ),
            events => Verdict::Clear(format!("0 of {events} TLS events are fatal alerts")),
        };
    };
    let first = all[0];
    let title = match all.len() {
        1 => format!("A fatal alert ended a TLS connection: {why}"),
        many => format!("Fatal alerts ended {many} TLS connections: {why}"),
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::NetTls,
        quote(observed, first.text.clone(), &first.quote),
    )
    .and(quote(
        observed,
        "a session that ended with a fatal alert is not resumed: the next handshake with this peer is a full \
         one",
        &first.quote,
    ))
    .confidence(Confidence::Strong);
    if let Some(by) = raised_by {
        finding = finding.and(quote(observed, format!("raised by {by}"), &first.quote));
    }
    let own = raised_by.is_some_and(|by| by.contains(CLOSING));
    let remedy = match own {
        true => Remedy::safe(
            "use a JDK that throws there without an alert (such as 17), or a client that closes the socket \
             without shutting down its input first",
        ),
        false => {
            Remedy::safe("read the alert: one side refuses the certificate, protocol or data of the other")
        }
    };
    fires(
        finding
            .remedy(remedy)
            .remedy(Remedy::safe("reuse connections, so that fewer are closed")),
    )
}
