//! What is said of a path over hosts.
//!
//! In: a path, and what hosts have found on it. Out: a finding that names who waits, on which host it ends, and what goes on there. Its evidence is who waits
//! through which connections, and how it is known who is at the other end of each.

use super::paths::{Found, Step};
use super::short;
use holdup_evidence::Cause;
use holdup_evidence::units::{counted, duration};
use holdup_model::attributed::Resource;
use holdup_model::finding::Confidence;
use holdup_model::report::{Asker, Evidence, Finding, FleetHost, FleetPath, ReachedBy, Wait};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Connections that the evidence lists.
const MAX_EVIDENCE: usize = 40;

/// Where joins come from.
const SOURCE: &str = "waits of both hosts";

/// How hosts are called in sentences: by their names, and two of one name by their ids.
#[derive(Debug)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    pub(super) fn of(hosts: &[FleetHost]) -> Names {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for host in hosts {
            *counts.entry(short(&host.id)).or_default() += 1;
        }
        let several = counts.into_iter().filter(|(_, count)| *count > 1);
        Names(several.map(|(name, _)| name.to_owned()).collect())
    }

    fn name<'a>(&self, id: &'a str) -> &'a str {
        let name = short(id);
        match self.0.contains(name) {
            true => id,
            false => name,
        }
    }
}

/// The finding.
pub(super) fn finding(found: &Found<'_>, names: &Names, waits: &[Wait]) -> Finding {
    let last = &found.steps[found.steps.len() - 1];
    let with_wait = found.steps.iter().rev().find_map(|step| step.wait);
    let at_end = found
        .findings
        .iter()
        .find(|one| one.host.as_deref() == Some(last.host));
    Finding {
        rule: FleetPath::RULE.to_owned(),
        severity: found.severity(),
        title: title(&found.steps, names),
        headline: None,
        clauses: Vec::new(),
        cause: with_wait.map_or(Cause::Unknown, |wait| wait.cause),
        ns: Some(found.steps[0].ns),
        share: None,
        error_ns: 0,
        resource: with_wait.map_or_else(Resource::default, |wait| wait.resource.clone()),
        asker: with_wait.map_or_else(nobody, |wait| wait.asker.clone()),
        evidence: evidence(found, names, waits),
        remedies: at_end.map_or_else(Vec::new, |one| one.remedies.clone()),
        predicted_ns: None,
        confidence: confidence(&found.steps),
        host: Some(last.host.to_owned()),
    }
}

fn nobody() -> Asker {
    Asker {
        pid: 0,
        tid: 0,
        process: String::new(),
        thread: String::new(),
        frame: None,
        module: None,
        stack: vec![],
    }
}

/// Each step is known; that a process did this for the one who waited is known where the thread that serves this connection did it: one that serves
/// the address may have done it for others.
fn confidence(steps: &[Step<'_>]) -> Confidence {
    let mut reached = steps.iter().filter(|step| step.by != ReachedBy::Start);
    match reached.all(|step| step.serves && step.by != ReachedBy::AddressAndPort) {
        true => Confidence::Strong,
        false => Confidence::Suspect,
    }
}

/// `checkout on app-1 waits for postgres on db-3 (10.0.4.17:5432), which was waiting for …`.
fn title(steps: &[Step<'_>], names: &Names) -> String {
    let first = &steps[0];
    let mut title = format!("{} on {}", first.process, names.name(first.host));
    let mut verb = " waits for ";
    let last = steps.len() - 1;
    for (number, step) in steps.iter().enumerate().skip(1) {
        if let Some(at) = step.at {
            let host = names.name(step.host);
            write!(title, "{verb}{} on {host} ({at})", step.process).unwrap_or_default();
            verb = ", which waits for ";
        }
        let goes_on = steps.get(number + 1).is_some_and(|next| next.at.is_some());
        title.push_str(&own_part(step, goes_on, number == last));
    }
    title
}

/// What is said of a step beside its name: that it is in the way, and what it did. Of a host's own chain only the end is told.
fn own_part(step: &Step<'_>, goes_on: bool, is_last: bool) -> String {
    let mut part = String::new();
    if step.at.is_none() && (goes_on || is_last) {
        write!(part, ", behind {} (pid {})", step.process, step.pid).unwrap_or_default();
    }
    if let Some(cause) = step.cause.filter(|_| !goes_on && (step.at.is_some() || is_last)) {
        write!(part, ", which was {}{}", cause.phrase(), about(step)).unwrap_or_default();
    }
    part
}

/// What a step's wait was for, where that has a name.
fn about(step: &Step<'_>) -> String {
    let name = step.wait.map_or("", |wait| wait.resource.name.as_str());
    match name.is_empty() || step.cause.is_some_and(Cause::on_cpu) {
        true => String::new(),
        false => format!(" ({name})"),
    }
}

fn evidence(found: &Found<'_>, names: &Names, waits: &[Wait]) -> Vec<Evidence> {
    let mut all: Vec<Evidence> = Vec::new();
    let mut said = BTreeSet::new();
    for steps in std::iter::once(&found.steps).chain(&found.others) {
        for pair in steps.windows(2) {
            let Some(at) = pair[1].at else { continue };
            if said.insert((pair[0].host, pair[0].pid, at)) && all.len() < MAX_EVIDENCE {
                all.push(Evidence {
                    text: joined(&pair[0], &pair[1], names, waits),
                    source: SOURCE.to_owned(),
                });
            }
        }
    }
    let of_hosts = found.findings.iter().map(|finding| {
        let host = finding.host.as_deref().unwrap_or_default();
        Evidence {
            text: format!("{}: {}", names.name(host), finding.title),
            source: format!("{} on that host", finding.rule),
        }
    });
    all.extend(of_hosts.take(MAX_EVIDENCE));
    all
}

/// Who waited for whom, through which connections, and how that is known.
fn joined(asks: &Step<'_>, serves: &Step<'_>, names: &Names, waits: &[Wait]) -> String {
    let own = asks.waits.iter().filter_map(|at| waits.get(*at));
    let connections: BTreeSet<_> = own.filter_map(|wait| wait.resource.detail.local).collect();
    let at = serves.at.map(|at| at.to_string()).unwrap_or_default();
    let through = match connections.len() {
        0 => String::new(),
        count => format!(" through {}", counted(count as u64, "connection", "connections")),
    };
    let known = match serves.by {
        ReachedBy::FourTuple => "both hosts have the same connection, with the same addresses and ports",
        ReachedBy::AddressAndPort => {
            "by address and port: that host alone has the address, and this program alone serves the port there"
        }
        ReachedBy::Host | ReachedBy::Start => "by that host's report",
    };
    format!(
        "{} on {} waited {} for {at}{through}: that is {} on {} ({known})",
        asks.process,
        names.name(asks.host),
        duration(asks.ns),
        serves.process,
        names.name(serves.host),
    )
}
