//! A proxy's log says that it waited for the server behind it until it gave up.

use crate::rules::{Rule, RuleId, Run, logs};
use holdup_evidence::observed::{Happening, LogEvent, What};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::UpstreamTimesOut, check)
    .about("a proxy logs that its upstream server did not answer in time")
    .causes(&[Cause::NetConnect, Cause::NetReceive])
    .intermediate();

/// Servers that are reported; those that were given up most often first.
const MAX_SERVERS: usize = 3;

/// What nginx is at until it has a connection.
const CONNECTING: &str = "connecting to upstream";

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut servers: BTreeMap<(&str, &str), Vec<&Happening>> = BTreeMap::new();
    for one in &observed.happenings {
        if let What::Log(LogEvent::UpstreamSilent { upstream, doing }) = &one.what {
            servers.entry((upstream, doing)).or_default().push(one);
        }
    }
    if servers.is_empty() {
        return logs::nobody_gave_up(observed, "gave up waiting for a server behind it").unwrap_or_else(
            || Verdict::CannotTell("whether the servers behind a proxy answered: its error log".to_owned()),
        );
    }
    let mut listed: Vec<_> = servers.into_iter().collect();
    listed.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
    let findings = listed
        .iter()
        .take(MAX_SERVERS)
        .map(|((upstream, doing), lines)| finding(observed, upstream, doing, lines));
    Verdict::Fires(findings.collect())
}

fn finding(observed: &Observed, upstream: &str, doing: &str, lines: &[&Happening]) -> Finding {
    let times = match lines.len() {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let connecting = doing == CONNECTING;
    let (title, cause) = match connecting {
        true => (
            format!("{upstream} did not accept the connection of the proxy in time, {times}"),
            Cause::NetConnect,
        ),
        false => (
            format!("{upstream} did not answer the proxy in time, {times}"),
            Cause::NetReceive,
        ),
    };
    let first = lines.first().expect("every line names a server");
    let mut finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title,
        cause,
        0,
        logs::quote(observed, first),
    )
    .confidence(Confidence::Strong);
    if let Some(last) = lines.last().filter(|_| lines.len() > 1) {
        finding = finding.and(logs::quote(observed, last));
    }
    let finding = finding.and(logs::about(
        observed,
        first,
        match connecting {
            true => {
                "it timed out while connecting: the machine is down, drops the packets, or its \
             connection queue is full"
            }
            false => {
                "it was connected and had sent the request: the server works on it, or is too busy to \
             read it"
            }
        },
    ));
    let finding = match connecting {
        true => finding.remedy(
            Remedy::safe(
                "check on that server whether the queue of the listener is full, and whether \
             packets are dropped",
            )
            .with_command("ss -ltn; nstat -az TcpExtListenOverflows TcpExtListenDrops"),
        ),
        false => finding.remedy(
            Remedy::safe("find out on that server what its requests wait for while it happens")
                .with_command("holdup attach --name PROGRAM -d 10"),
        ),
    };
    finding.remedy(Remedy::pointless(
        "a longer timeout of the proxy: its clients wait longer, and the server has more to do at once",
    ))
}
