//! The rows of a segment: its waits, its sums by cause, and figures of the machine.

use crate::Segment;
use holdup_evidence::Cause;
use holdup_evidence::observed::{Metric, Series};
use holdup_model::attributed::{AttributedWait, Tally, ThreadName};
use std::collections::BTreeMap;

/// What a row tells. The sums of each kind are of the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A thread's own waits (or CPU time) with one cause, resource and asker.
    Wait,
    /// A cause of the elapsed time along the critical path; of `attach`, of all threads' time.
    Path,
    /// A cause of one thread's time, never redirected.
    Thread,
    /// A cause of the time of threads that had a request to answer.
    Request,
    /// A figure of the whole machine, which is no time.
    Figure,
}

impl Kind {
    /// As the column has it.
    pub(super) fn id(self) -> &'static str {
        match self {
            Kind::Wait => "wait",
            Kind::Path => "path",
            Kind::Thread => "thread",
            Kind::Request => "request",
            Kind::Figure => "figure",
        }
    }
}

/// A row.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) kind: Kind,
    /// `None` of a figure, as the tally.
    pub(super) cause: Option<Cause>,
    pub(super) tally: Option<Tally>,
    pub(super) name: Option<&'a ThreadName>,
    pub(super) wait: Option<&'a AttributedWait>,
    /// How many threads it stands for.
    pub(super) threads: Option<u32>,
    /// The figure.
    pub(super) series: Option<Figure<'a>>,
}

/// A figure of the machine, over a look at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure<'a> {
    pub(super) metric: Metric,
    pub(super) of: &'a String,
    pub(super) mean: f64,
    pub(super) greatest: f64,
}

/// All rows, those of one kind together.
pub(super) fn of(segment: &Segment) -> Vec<Row<'_>> {
    let attributed = &segment.attributed;
    let waits = attributed.waits.iter().map(|wait| Row {
        kind: Kind::Wait,
        cause: Some(wait.cause),
        tally: Some(Tally {
            ns: wait.ns,
            count: wait.count,
            max: wait.max,
            open: wait.open,
        }),
        name: Some(&wait.asker.name),
        wait: Some(wait),
        threads: None,
        series: None,
    });
    let path = of_causes(Kind::Path, &attributed.path);
    let threads = attributed.threads.iter().flat_map(|thread| {
        of_causes(Kind::Thread, &thread.causes).map(|row| Row {
            name: Some(&thread.name),
            threads: Some(thread.threads.max(1)),
            ..row
        })
    });
    let requests = attributed
        .requests
        .iter()
        .flat_map(|requests| of_causes(Kind::Request, &requests.causes));
    let figures = segment.look.iter().flat_map(|look| &look.observed.series);
    let figures = figures.filter_map(of_series);
    waits
        .chain(path)
        .chain(threads)
        .chain(requests)
        .chain(figures)
        .collect()
}

fn of_causes(kind: Kind, causes: &BTreeMap<Cause, Tally>) -> impl Iterator<Item = Row<'_>> {
    causes.iter().map(move |(cause, tally)| Row {
        kind,
        cause: Some(*cause),
        tally: Some(*tally),
        name: None,
        wait: None,
        threads: None,
        series: None,
    })
}

/// Averages since boot say nothing of the look.
fn of_series(series: &Series) -> Option<Row<'_>> {
    let values = || series.of_intervals().map(|point| point.value);
    let count = values().count();
    let figure = Figure {
        metric: series.metric,
        of: &series.of,
        mean: values().sum::<f64>() / count as f64,
        greatest: series.greatest()?.value,
    };
    Some(Row {
        kind: Kind::Figure,
        cause: None,
        tally: None,
        name: None,
        wait: None,
        threads: None,
        series: Some(figure),
    })
}
