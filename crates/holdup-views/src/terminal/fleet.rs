//! The report of many hosts: how many and when, the worst of it in one sentence, and a line for each host.
//!
//! In: a report with hosts. Out: what leads from one host to another; then hosts with a problem first, by their first finding; then those that have stopped; then the others, which `-v`
//! lists. What could not be read, and how much was read, stands at the end.

use crate::headline::Headline;
use crate::sheet::{Paint, Sheet};
use crate::text::{shorten, width};
use crate::units::{bytes, counted, duration};
use holdup_model::finding::Severity;
use holdup_model::report::{Finding, FleetHost, FleetPath, FleetStore, PathStep, ReachedBy, Report};

/// Hosts without a finding that are listed; `-v` lists all.
const QUIET_HOSTS: usize = 5;

/// Findings of a host beside the first that `-v` lists.
const FINDINGS: usize = 5;

/// Problems that are listed; `-v` lists all.
const PROBLEMS: usize = 3;

/// Paths from host to host that are shown, and others that end where one of them does; `-v` shows all.
const PATHS: usize = 3;
const DEPENDANTS: usize = 3;

/// Columns of a host's name at most.
const NAME: usize = 32;

/// Writes it.
pub(super) fn write(sheet: &mut Sheet, report: &Report, store: &FleetStore) {
    let style = *sheet.style();
    super::margins::headline(sheet, &first_sentence(report));
    header(sheet, report, store);
    sheet.blank();
    if !style.quiet {
        paths(sheet, report);
    }
    let names = report.hosts.iter().map(|host| width(&host.name).min(NAME));
    let column = names.max().unwrap_or_default() + 2;
    let (mut worse, rest): (Vec<_>, Vec<_>) = report
        .hosts
        .iter()
        .partition(|host| first(report, host).is_some_and(|finding| finding.severity != Severity::Note));
    // In the order of findings, which is worst first.
    worse.sort_by_key(|host| report.findings.iter().position(|one| is_of(one, host)));
    for host in &worse {
        line(sheet, column, host, first(report, host));
        if style.verbose {
            for more in report
                .findings
                .iter()
                .filter(|one| is_of(one, host))
                .skip(1)
                .take(FINDINGS)
            {
                let body = vec![sheet.words(&more.title)];
                sheet.line(column, body);
            }
        }
    }
    let (ended, well): (Vec<_>, Vec<_>) = rest
        .into_iter()
        .partition(|host| host.silent_since.is_some() || host.dropped > 0 || !host.problems.is_empty());
    for host in &ended {
        line(sheet, column, host, None);
    }
    let listed = if style.verbose { well.len() } else { QUIET_HOSTS };
    if !style.quiet {
        for host in well.iter().take(listed) {
            line(sheet, column, host, None);
        }
        if let Some(more @ 1..) = well.len().checked_sub(listed) {
            let words = format!(
                "{} without a hold-up; -v lists them",
                counted(more as u64, "more host", "more hosts")
            );
            let body = vec![sheet.words(&words).paint(Paint::Dim)];
            sheet.line(1, body);
        }
    }
    sheet.blank();
    of_store(sheet, store);
}

/// Whether a finding is of a host; one of several hosts has a place of its own.
fn is_of(finding: &Finding, host: &FleetHost) -> bool {
    finding.host.as_ref() == Some(&host.id) && !is_across(finding)
}

fn is_across(finding: &Finding) -> bool {
    finding.rule == FleetPath::RULE
}

fn first<'a>(report: &'a Report, host: &FleetHost) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| is_of(finding, host))
}

/// The worst finding and on how many hosts its rule has one; else how many hosts are silent, or that nothing was found.
fn first_sentence(report: &Report) -> Headline {
    let of = |sentence: String, severity| Headline {
        sentence,
        parts: None,
        remark: None,
        size: None,
        severity,
        is_first_finding: false,
    };
    let of_worst = |sentence: String, worst: &Finding| Headline {
        sentence,
        parts: None,
        ..Headline::of(worst)
    };
    let worst = report
        .findings
        .first()
        .filter(|one| one.severity != Severity::Note);
    if let Some(worst) = worst {
        if is_across(worst) {
            return Headline::of(worst);
        }
        let like = |host: &&FleetHost| {
            let found = report.findings.iter().filter(|one| is_of(one, host));
            found
                .clone()
                .any(|one| one.rule == worst.rule && one.severity != Severity::Note)
        };
        let hosts = report.hosts.iter().filter(like).count();
        let host = worst.host.as_deref().unwrap_or_default();
        let name = report.hosts.iter().find(|one| one.id == host);
        let name = name.map_or(host, |one| one.name.as_str());
        let others = match hosts.saturating_sub(1) {
            0 => String::new(),
            more => format!(
                "; the same rule reports {}",
                counted(more as u64, "other host", "other hosts")
            ),
        };
        return of_worst(format!("{name}: {}{others}", worst.title), worst);
    }
    let silent = report
        .hosts
        .iter()
        .filter(|host| host.silent_since.is_some())
        .count() as u64;
    let judged = report.hosts.iter().filter(|host| host.sentence.is_some()).count() as u64;
    match (judged, silent) {
        (0, _) => of(
            "No host has a recording of that time.".to_owned(),
            Some(Severity::Warning),
        ),
        (_, 0) => of(
            format!("No hold-up found on {}.", counted(judged, "host", "hosts")),
            None,
        ),
        (_, silent) => of(
            format!("{} stopped reporting.", counted(silent, "host", "hosts")),
            Some(Severity::Warning),
        ),
    }
}

/// From host to host, each step under the one that waits for it, and below them who else waits for the same.
fn paths(sheet: &mut Sheet, report: &Report) {
    let (all, others) = match sheet.style().verbose {
        true => (usize::MAX, usize::MAX),
        false => (PATHS, DEPENDANTS),
    };
    for path in report.paths.iter().take(all) {
        for (depth, step) in path.steps.iter().enumerate() {
            let next = path.steps.get(depth + 1);
            branch(sheet, depth, &words_of(report, step, next));
        }
        for step in path.dependants.iter().take(others) {
            branch(sheet, 0, &format!("also {}", words_of(report, step, None)));
        }
        if let Some(more @ 1..) = path.dependants.len().checked_sub(others) {
            let words = format!("and {}", counted(more as u64, "more process", "more processes"));
            branch(sheet, 0, &words);
        }
        sheet.blank();
    }
}

fn branch(sheet: &mut Sheet, depth: usize, words: &str) {
    let body = vec![sheet.words(words)];
    match depth {
        0 => sheet.line(1, body),
        _ => {
            let corner = if sheet.style().unicode { "└" } else { "`-" };
            let before = format!("{}{corner}", " ".repeat(2 * depth));
            let lead = vec![sheet.name(&before).paint(Paint::Dim)];
            sheet.led(lead, width(&before) + 1, body);
        }
    }
}

/// `app-1, checkout: 2.90 s waiting for a network peer to send, at 10.0.4.17:5432`.
fn words_of(report: &Report, step: &PathStep, next: Option<&PathStep>) -> String {
    let host = report.hosts.iter().find(|host| host.id == step.host);
    let host = host.map_or(step.host.as_str(), |host| host.name.as_str());
    let who = format!("{host}, {} (pid {})", step.process, step.pid);
    let Some(cause) = step.cause else {
        return format!("{who}: nothing that it did there explains it");
    };
    let address = next.and_then(|next| next.reached.address.as_ref());
    let about = match (address, &step.resource) {
        (Some(address), _) => format!(": {address}"),
        (None, Some(name)) if !cause.on_cpu() => format!(": {name}"),
        (None, _) => String::new(),
    };
    match step.reached.by {
        // A link of its host's own chain tells of one wait, and not of all.
        ReachedBy::Host if step.resource.is_none() => format!("{who}: {}", cause.phrase()),
        _ => format!("{who}: {} {}{about}", duration(step.ns), cause.phrase()),
    }
}

/// `38 hosts   2026-11-29T13:00:00Z to 2026-11-29T13:10:00Z`.
fn header(sheet: &mut Sheet, report: &Report, store: &FleetStore) {
    let hosts = counted(report.hosts.len() as u64, "host", "hosts");
    let body = vec![
        sheet.name(&hosts).paint(Paint::Bold),
        sheet.name(&format!("{} to {}", store.from, store.to)).after(3),
    ];
    sheet.line(super::margins::HEADER, body);
}

/// A host: its name, what was found, and what is missing of it.
fn line(sheet: &mut Sheet, column: usize, host: &FleetHost, finding: Option<&Finding>) {
    let paint = match finding.map(|finding| finding.severity) {
        Some(Severity::Critical) => Paint::Red,
        Some(Severity::Warning) => Paint::Yellow,
        _ => Paint::Plain,
    };
    let said = finding
        .map(|finding| finding.title.as_str())
        .or(host.sentence.as_deref());
    let mut body = vec![sheet.words(said.unwrap_or("No recording of that time."))];
    let mut beside = Vec::new();
    beside.extend(
        host.silent_since
            .as_ref()
            .map(|since| format!("silent since {since}")),
    );
    if host.dropped > 0 {
        beside.push(format!(
            "{} dropped",
            counted(host.dropped, "segment", "segments")
        ));
    }
    beside.extend(
        host.problems
            .iter()
            .take(PROBLEMS)
            .map(|one| format!("skipped: {one}")),
    );
    if !beside.is_empty() {
        body.push(
            sheet
                .words(&format!("({})", beside.join("; ")))
                .paint(Paint::Yellow),
        );
    }
    let name = shorten(&host.name, NAME, sheet.style().unicode);
    let lead = vec![sheet.name(&name).paint(paint)];
    sheet.led(lead, column, body);
}

/// What was read, and what could not be.
pub(super) fn of_store(sheet: &mut Sheet, store: &FleetStore) {
    let all = if sheet.style().verbose {
        usize::MAX
    } else {
        PROBLEMS
    };
    for problem in store.problems.iter().take(all) {
        let body = vec![
            sheet
                .words(&format!("unreadable: {problem}"))
                .paint(Paint::Yellow),
        ];
        sheet.line(1, body);
    }
    if let Some(more @ 1..) = store.problems.len().checked_sub(all) {
        let words = format!(
            "{} unreadable; -v lists them",
            counted(more as u64, "more object is", "more objects are")
        );
        let body = vec![sheet.words(&words).paint(Paint::Yellow)];
        sheet.line(1, body);
    }
    let words = format!(
        "read {} of {} in {} of {} listed",
        bytes(store.bytes_read),
        store.url,
        counted(store.objects_read, "object", "objects"),
        store.objects_listed
    );
    let body = vec![sheet.words(&words).paint(Paint::Dim)];
    sheet.line(1, body);
}
