//! The server of a network file system does not answer.

use crate::rules::{Rule, RuleId, Run, logs};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, KernelEvent, What};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::NetworkServerSilent, check)
    .about("the server of a network file system does not answer")
    .causes(&[Cause::FsNetwork])
    .explains(&[RuleId::LoadIsNotCpu]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lines = logs::happenings(observed, |event| match event {
        KernelEvent::NfsServer { server, ok, .. } => Some((server.as_str(), *ok)),
        _ => None,
    });
    let mut servers: Vec<&str> = Vec::new();
    for (_, (server, ok)) in &lines {
        if !ok && !servers.contains(server) {
            servers.push(server);
        }
    }
    if servers.is_empty() {
        return logs::kernel_silent(observed, "a file server that does not answer");
    }
    let clock = Clock::of(observed);
    let findings = servers.iter().filter_map(|server| {
        let of_it: Vec<(&Happening, bool)> = lines
            .iter()
            .filter(|(_, (name, _))| name == server)
            .map(|(one, (_, ok))| (*one, *ok))
            .collect();
        finding(observed, &clock, server, &of_it)
    });
    Verdict::Fires(findings.collect())
}

fn finding(
    observed: &Observed,
    clock: &Clock<'_>,
    server: &str,
    rows: &[(&Happening, bool)],
) -> Option<Finding> {
    let silences = rows.iter().filter(|(_, ok)| !ok).count();
    let first = rows.iter().find(|(_, ok)| !ok).map(|(one, _)| *one)?;
    let gave_up = rows.iter().any(|(one, _)| {
        matches!(
            &one.what,
            What::Kernel(KernelEvent::NfsServer { gave_up: true, .. })
        )
    });
    let requests = match gave_up {
        true => ": requests to it timed out",
        false => "",
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        format!("The file server {server} did not answer{requests}"),
        Cause::FsNetwork,
        logs::quote(observed, first),
    );
    let mut began: Option<&Happening> = None;
    let mut longest: Option<(Ns, &Happening)> = None;
    for (one, ok) in rows {
        if !ok {
            began = began.or(Some(one));
        } else if let Some(from) = began.take() {
            let times = from.at.zip(one.at);
            let apart = times.and_then(|(at, later)| clock.apart((&from.quote, at), (&one.quote, later)));
            if let Some(ns) = apart.and_then(|ns| Ns::try_from(ns).ok())
                && longest.is_none_or(|(most, _)| ns > most)
            {
                longest = Some((ns, one));
            }
        }
    }
    let still = began.is_some();
    if let Some((ns, answered)) = longest {
        let text = format!(
            "it answered again {} later; the kernel reported {} that it did not",
            logs::seconds(ns),
            logs::times(silences)
        );
        finding = finding.and(logs::about(observed, answered, text));
    }
    if still && let Some((last, _)) = rows.last() {
        finding = finding.and(logs::about(
            observed,
            last,
            "the log does not say that it answered again",
        ));
    }
    let finding = finding
        .remedy(
            Remedy::safe("check the server and the network to it, and what waits for it").with_command(
                format!(
                    "ping -c 3 {}; grep -h . /proc/fs/nfsfs/servers; mount -t nfs,nfs4,cifs",
                    crate::rules::say::quoted(server)
                ),
            ),
        )
        .remedy(Remedy::changing(
            "mount with the options soft and timeo where possible: programs then get an error instead of a \
             wait",
            "a program that does not expect errors may lose its writes",
        ));
    Some(finding)
}
