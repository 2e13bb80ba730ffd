//! Waits of one host on sockets of another, followed to where they end.
//!
//! In: the report of all hosts, put together from theirs. Out: the same, in which chains go on over hosts, and findings that name the host where a
//! wait began. Only what is proven is joined ([`sockets`]): an address that two hosts have, or a port that two programs serve, joins nothing. Of a
//! process that is waited for, what it did meanwhile is what its own host's report has ([`reasons`]). Clocks of hosts differ, so that nothing is
//! said of order, and only that both were observed at the same time.

mod paths;
mod reasons;
mod sockets;
#[cfg(test)]
pub(crate) mod tests;
mod words;

use crate::layout;
use holdup_evidence::Cause;
use holdup_model::report::{FleetHost, Link, Report};
use jiff::Timestamp;
use paths::{Followed, Step};
use reasons::Reasons;
use sockets::Sockets;
use std::collections::BTreeMap;

/// Waits of which the chain is continued, the longest; those of one host are mostly some tens.
const MAX_CONTINUED: usize = 2_000;

/// Joins what is of several hosts.
pub(crate) fn join(whole: &mut Report) {
    let spans = spans(&whole.hosts);
    let sockets = Sockets::of(&whole.waits);
    let reasons = Reasons::of(&whole.waits, |wait| {
        let server = sockets.server(wait)?;
        let both = [wait.host.as_deref()?, server.host].map(|host| spans.get(host));
        overlap(both).then_some(server)
    });
    if reasons.joined().next().is_none() {
        return;
    }
    let chains = chains(&reasons);
    let names = words::Names::of(&whole.hosts);
    let (paths, findings) = paths::found(&reasons, &whole.findings)
        .into_iter()
        .map(|found| (found.path(), words::finding(&found, &names, &whole.waits)))
        .unzip();
    whole.paths = paths;
    for (at, chain) in chains {
        whole.waits[at].chain = chain;
    }
    let findings: Vec<_> = findings;
    whole.findings.extend(findings);
}

/// When each host was observed.
fn spans(hosts: &[FleetHost]) -> BTreeMap<String, (Timestamp, Timestamp)> {
    let span = |host: &FleetHost| {
        let read = |time: &Option<String>| time.as_ref()?.parse().ok();
        Some((host.id.clone(), (read(&host.from)?, read(&host.to)?)))
    };
    hosts.iter().filter_map(span).collect()
}

/// Whether both were observed at the same time for a moment at least.
fn overlap([one, other]: [Option<&(Timestamp, Timestamp)>; 2]) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.0 < other.1 && other.0 < one.1,
        _ => false,
    }
}

/// The chains of waits that go on on another host. One that attribution has followed on its own host is left as it is.
fn chains(reasons: &Reasons<'_>) -> Vec<(usize, Vec<Link>)> {
    let alone = reasons.joined().filter(|at| reasons.wait(*at).chain.len() <= 1);
    let mut alone: Vec<usize> = alone.collect();
    alone.sort_by_key(|at| std::cmp::Reverse(reasons.wait(*at).ns));
    let followed = alone.into_iter().take(MAX_CONTINUED).map(|at| {
        let Followed { steps, .. } = paths::follow(reasons, reasons.group(vec![at]));
        (at, steps.iter().map(link).collect())
    });
    followed.collect()
}

fn link(step: &Step<'_>) -> Link {
    Link {
        pid: step.pid,
        tid: step.tid,
        process: step.process.to_owned(),
        cause: step.cause.unwrap_or(Cause::Unknown),
        ns: step.ns,
        host: Some(step.host.to_owned()),
    }
}

/// A host's name, for a person.
fn short(id: &str) -> &str {
    layout::name_in(id)
}
