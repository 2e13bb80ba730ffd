//! The report as figures with labels: what the formats of monitoring systems are made from.
//!
//! In: a report. Out: [`Figure`]s. A store of series keeps each combination of labels for good, so labels are few: the
//! cause (a closed list), the rule (a closed list) and the process's name, of which the [`PROCESSES`] with the most time are
//! kept and the others added up under an empty name. No process or thread id, path, address or function is a label. So a report
//! makes at most `(PROCESSES + 1) × causes` series of a figure, and the sums stay those of the report.

use crate::text::printable;
use holdup_evidence::Ns;
use holdup_model::finding::Severity;
use holdup_model::report::{Report, Requests};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Processes that are distinguished by name: as many as a page of a dashboard can show.
const PROCESSES: usize = 50;

/// Characters of a process's name that are kept: the kernel keeps 15 bytes; a name of a reader may be longer.
const NAME: usize = 64;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Time; values are nanoseconds.
    Time,
    /// A number.
    Count,
}

/// Whether figures of two reports may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An amount that the time of observation had.
    Sum,
    /// A state or a statistic.
    Gauge,
}

/// A figure: its values by labels.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Words of the name, from the general to the special; the unit is not among them.
    pub(crate) name: &'static [&'static str],
    /// What it is, in a sentence.
    pub(crate) about: &'static str,
    /// What it counts.
    pub(crate) unit: Unit,
    /// Whether it adds up.
    pub(crate) kind: Kind,
    /// Labels and the value.
    pub(crate) values: Values,
}

/// Names of labels and what they are.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// Values with their labels.
pub(crate) type Values = Vec<(Labels, u64)>;

/// All figures of a report that have a value.
pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    let (time, waits) = by_cause(report);
    let lost_records = report.coverage.lost.iter().map(|lost| lost.count).sum();
    let lost_time = report.coverage.lost.iter().map(|lost| lost.ns).sum();
    let coverage = &report.coverage;
    let mut figures = vec![
        Figure {
            name: &["observed"],
            about: "Length of the observation.",
            unit: Unit::Time,
            kind: Kind::Sum,
            values: plain(Some(report.subject.wall_ns)),
        },
        Figure {
            name: &["thread", "observed"],
            about: "Time of all threads while they were observed.",
            unit: Unit::Time,
            kind: Kind::Sum,
            values: plain(coverage.observed_ns),
        },
        Figure {
            name: &["thread", "time"],
            about: "Time of threads by what they spent it on; the causes are those of holdup explain.",
            unit: Unit::Time,
            kind: Kind::Sum,
            values: time,
        },
        Figure {
            name: &["waits"],
            about: "Number of times that threads blocked, by cause.",
            unit: Unit::Count,
            kind: Kind::Sum,
            values: waits,
        },
        Figure {
            name: &["lost", "records"],
            about: "Records that were dropped.",
            unit: Unit::Count,
            kind: Kind::Sum,
            values: plain(Some(lost_records)),
        },
        Figure {
            name: &["lost", "time"],
            about: "Thread time that the dropped records covered.",
            unit: Unit::Time,
            kind: Kind::Sum,
            values: plain(Some(lost_time)),
        },
        Figure {
            name: &["own", "cpu"],
            about: "CPU time of holdup itself, including its BPF programs.",
            unit: Unit::Time,
            kind: Kind::Sum,
            values: plain(Some(coverage.own_cost_ns)),
        },
        Figure {
            name: &["findings"],
            about: "Number of findings, by rule and severity.",
            unit: Unit::Count,
            kind: Kind::Gauge,
            values: findings(report),
        },
    ];
    figures.extend(report.requests.iter().flat_map(requests));
    figures.extend(host(report));
    figures.retain(|figure| !figure.values.is_empty());
    figures
}

fn plain(value: Option<u64>) -> Values {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

/// Time and number of waits by cause and process.
fn by_cause(report: &Report) -> (Values, Values) {
    let mut of_process: BTreeMap<&str, Ns> = BTreeMap::new();
    for wait in &report.waits {
        let sum = of_process.entry(&wait.asker.process).or_default();
        *sum = sum.saturating_add(wait.ns);
    }
    let mut names: Vec<(&str, Ns)> = of_process.into_iter().collect();
    names.sort_by_key(|(name, ns)| (Reverse(*ns), *name));
    let kept: BTreeSet<&str> = names.into_iter().take(PROCESSES).map(|(name, _)| name).collect();
    let mut sums = BTreeMap::new();
    for wait in &report.waits {
        let process = wait.asker.process.as_str();
        let process = if kept.contains(process) {
            label(process)
        } else {
            String::new()
        };
        let (ns, count): &mut (u64, u64) = sums.entry((wait.cause, process)).or_default();
        *ns = ns.saturating_add(wait.ns);
        *count = count.saturating_add(wait.count);
    }
    let labelled = |value: fn(&(u64, u64)) -> u64| {
        let rows = sums.iter().map(|((cause, process), both)| {
            let labels = vec![("cause", cause.id().to_owned()), ("process", process.clone())];
            (labels, value(both))
        });
        rows.collect()
    };
    (labelled(|(ns, _)| *ns), labelled(|(_, count)| *count))
}

/// A name as a label.
fn label(name: &str) -> String {
    printable(name, true).chars().take(NAME).collect()
}

fn findings(report: &Report) -> Values {
    let mut found: BTreeMap<(&str, Severity), u64> = BTreeMap::new();
    for finding in &report.findings {
        *found.entry((&finding.rule, finding.severity)).or_default() += 1;
    }
    let rows = found.into_iter().map(|((rule, severity), count)| {
        let severity = match severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        };
        (
            vec![("rule", label(rule)), ("severity", severity.to_owned())],
            count,
        )
    });
    rows.collect()
}

fn requests(requests: &Requests) -> Vec<Figure> {
    let lengths = [
        ("0.5", requests.p50_ns),
        ("0.99", requests.p99_ns),
        ("1", requests.max_ns),
    ];
    vec![
        Figure {
            name: &["requests"],
            about: "Requests that were answered.",
            unit: Unit::Count,
            kind: Kind::Sum,
            values: plain(Some(requests.count)),
        },
        Figure {
            name: &["requests", "open"],
            about: "Requests that were read and still unanswered at the end.",
            unit: Unit::Count,
            kind: Kind::Gauge,
            values: plain(Some(requests.open)),
        },
        Figure {
            name: &["request", "time"],
            about: "Duration of requests: median, 99th percentile, slowest.",
            unit: Unit::Time,
            kind: Kind::Gauge,
            values: lengths
                .into_iter()
                .map(|(quantile, ns)| (vec![("quantile", quantile.to_owned())], ns))
                .collect(),
        },
    ]
}

/// What only a look at a whole machine tells.
fn host(report: &Report) -> Vec<Figure> {
    let Some(host) = &report.host else {
        return Vec::new();
    };
    let short = host.resources.iter().take(PROCESSES);
    vec![
        Figure {
            name: &["host", "threads"],
            about: "Threads of the machine.",
            unit: Unit::Count,
            kind: Kind::Gauge,
            values: plain(Some(host.threads)),
        },
        Figure {
            name: &["host", "short"],
            about: "1 if a rule reports the resource as short, else 0.",
            unit: Unit::Count,
            kind: Kind::Gauge,
            values: short
                .map(|one| {
                    (
                        vec![("resource", label(&one.name.to_string()))],
                        u64::from(one.short),
                    )
                })
                .collect(),
        },
    ]
}
