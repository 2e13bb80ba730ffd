//! The reports of hosts as one.
//!
//! In: hosts, each judged. Out: one report: sums are sums, and whatever is of one host says of which. Nothing is judged here, and what waits for
//! another host is joined with it elsewhere ([`joins`]). What cannot be added up (percentiles, windows, tasks, a time line) stays with `holdup show` of that host.

use crate::hosts::Judged;
use crate::listing::Listing;
use crate::{joins, layout};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::Severity;
use holdup_model::host_figures::HostFigures;
use holdup_model::report::{
    Backend, CannotTell, CauseShare, Coverage, FleetPath, FleetStore, Lost, NotMeasured, Report, RuledOut,
    SCHEMA, Subject, SubjectKind, Tool,
};
use holdup_times::Window;
use std::collections::BTreeMap;

/// Puts hosts together.
pub(crate) fn combine(hosts: Vec<Judged>, store: FleetStore, window: Window) -> Report {
    let reports = || hosts.iter().filter_map(|one| one.report.as_ref());
    let mut whole = Report {
        schema: SCHEMA.to_owned(),
        holdup: Tool {
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        subject: Subject {
            kind: SubjectKind::Fleet,
            command: vec![store.url.clone()],
            pids: vec![],
            started: store.from.clone(),
            wall_ns: u64::try_from(window.to.saturating_sub(window.from)).unwrap_or_default(),
            exit: None,
            elsewhere: vec![],
        },
        machine: None,
        coverage: coverage(reports()),
        causes: causes(reports()),
        requests: None,
        threads: vec![],
        waits: vec![],
        findings: vec![],
        ruled_out: ruled_out(&hosts),
        cannot_tell: cannot_tell(&hosts),
        artefacts: vec![],
        account: None,
        outcome: None,
        boot: None,
        host: None,
        churn: None,
        jvms: vec![],
        tasks: vec![],
        comparison: None,
        scaling: None,
        experiment: None,
        prediction: None,
        gate: None,
        recording: None,
        windows: vec![],
        timeline: None,
        host_figures: HostFigures::default(),
        hosts: vec![],
        store: Some(store),
        paths: vec![],
    };
    for one in hosts {
        if let Some(report) = one.report {
            take(&mut whole, report, &one.host.id);
        }
        whole.hosts.push(one.host);
    }
    joins::join(&mut whole);
    order(&mut whole);
    whole
}

/// Adds what is of one host, and says so of each piece.
fn take(whole: &mut Report, report: Report, id: &str) {
    let observed = whole.coverage.observed_ns.unwrap_or_default();
    let host = || Some(id.to_owned());
    whole.threads.extend(report.threads.into_iter().map(|mut thread| {
        thread.host = host();
        thread
    }));
    whole.waits.extend(report.waits.into_iter().map(|mut wait| {
        wait.host = host();
        wait.share = share(wait.ns, observed);
        wait.chain.iter_mut().for_each(|link| link.host = host());
        wait
    }));
    whole
        .findings
        .extend(report.findings.into_iter().map(|mut finding| {
            finding.host = host();
            finding
        }));
}

/// Worst first, as in the report of one host; of those as bad, what is of several hosts before what is of one of them.
fn order(whole: &mut Report) {
    let rank = |severity: Severity| match severity {
        Severity::Critical => 0,
        Severity::Warning => 1,
        Severity::Note => 2,
    };
    whole.findings.sort_by_key(|finding| {
        let alone = finding.rule != FleetPath::RULE;
        (rank(finding.severity), alone, std::cmp::Reverse(finding.ns))
    });
    whole.waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    whole
        .threads
        .sort_by_key(|thread| std::cmp::Reverse(thread.wall_ns));
}

fn share(ns: Ns, whole: Ns) -> f64 {
    match whole {
        0 => 0.0,
        whole => ns as f64 / whole as f64,
    }
}

/// Sums; one that nobody has is none.
fn sum<'a>(reports: impl Iterator<Item = &'a Report>, of: impl Fn(&Coverage) -> Option<Ns>) -> Option<Ns> {
    reports
        .filter_map(|report| of(&report.coverage))
        .fold(None, |sum: Option<Ns>, ns| {
            Some(sum.unwrap_or_default().saturating_add(ns))
        })
}

fn coverage<'a>(reports: impl Iterator<Item = &'a Report> + Clone) -> Coverage {
    let mut lost: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
    let mut missing: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for report in reports.clone() {
        for one in &report.coverage.lost {
            let all = lost.entry(&one.what).or_default();
            *all = (all.0.saturating_add(one.count), all.1.saturating_add(one.ns));
        }
        for one in &report.coverage.not_measured {
            *missing.entry((&one.what, &one.why, &one.fix)).or_default() += 1;
        }
    }
    Coverage {
        backend: reports
            .clone()
            .next()
            .map_or(Backend::Bpf, |report| report.coverage.backend),
        observed_ns: sum(reports.clone(), |of| of.observed_ns),
        attributed_ns: sum(reports.clone(), |of| of.attributed_ns),
        unknown_ns: sum(reports.clone(), |of| of.unknown_ns),
        own_cost_ns: sum(reports, |of| Some(of.own_cost_ns)).unwrap_or_default(),
        lost: lost
            .into_iter()
            .map(|(what, (count, ns))| Lost {
                what: what.to_owned(),
                count,
                ns,
            })
            .collect(),
        not_measured: missing
            .into_iter()
            .map(|((what, why, fix), hosts)| NotMeasured {
                what: format!("{what} ({})", counted_hosts(hosts)),
                why: why.to_owned(),
                fix: fix.to_owned(),
            })
            .collect(),
        budget: None,
    }
}

fn counted_hosts(count: u64) -> String {
    format!("on {}", holdup_views::units::counted(count, "host", "hosts"))
}

fn causes<'a>(reports: impl Iterator<Item = &'a Report>) -> Vec<CauseShare> {
    let mut all: BTreeMap<Cause, CauseShare> = BTreeMap::new();
    for one in reports.flat_map(|report| &report.causes) {
        let sum = all.entry(one.cause).or_insert_with(|| CauseShare {
            cause: one.cause,
            ns: 0,
            share: 0.0,
            count: 0,
            max_ns: 0,
            open: false,
        });
        sum.ns = sum.ns.saturating_add(one.ns);
        sum.count = sum.count.saturating_add(one.count);
        sum.max_ns = sum.max_ns.max(one.max_ns);
        sum.open |= one.open;
    }
    let whole: Ns = all.values().map(|one| one.ns).sum();
    let mut all: Vec<CauseShare> = all.into_values().collect();
    for one in &mut all {
        one.share = share(one.ns, whole);
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.ns));
    all
}

/// Rules that are clear on every host that was judged: each says why, as the first of them has it.
fn ruled_out(hosts: &[Judged]) -> Vec<RuledOut> {
    let judged: Vec<(&str, &Report)> = hosts
        .iter()
        .filter_map(|one| Some((one.host.id.as_str(), one.report.as_ref()?)))
        .collect();
    let mut clear: BTreeMap<&str, (u64, &str, &str)> = BTreeMap::new();
    for (id, report) in &judged {
        for one in &report.ruled_out {
            clear.entry(&one.rule).or_insert((0, id, &one.why)).0 += 1;
        }
    }
    clear
        .into_iter()
        .filter(|(_, (count, ..))| *count == judged.len() as u64)
        .map(|(rule, (count, id, why))| RuledOut {
            rule: rule.to_owned(),
            why: format!("{}; {id}: {why}", counted_hosts(count)),
        })
        .collect()
}

/// Rules that could not tell on some host, with the hosts that each reason is of.
fn cannot_tell(hosts: &[Judged]) -> Vec<CannotTell> {
    let mut missing: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for report in hosts.iter().filter_map(|one| one.report.as_ref()) {
        for one in &report.cannot_tell {
            *missing.entry((&one.rule, &one.missing)).or_default() += 1;
        }
    }
    missing
        .into_iter()
        .map(|((rule, missing), count)| CannotTell {
            rule: rule.to_owned(),
            missing: format!("{missing} ({})", counted_hosts(count)),
        })
        .collect()
}

/// What is said of the store.
pub(crate) fn store(
    url: &str,
    window: Window,
    (objects_read, bytes_read): (u64, u64),
    listing: Listing,
) -> FleetStore {
    FleetStore {
        url: url.to_owned(),
        from: layout::rfc3339(window.from),
        to: layout::rfc3339(window.to),
        objects_listed: listing.objects,
        objects_read,
        bytes_read,
        problems: listing.problems,
    }
}
