//! The rows of a segment: its waits, and its sums by cause.

use crate::Segment;
use holdup_analysis::attributed::{AttributedWait, Tally, ThreadName};
use holdup_evidence::Cause;
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
}

impl Kind {
    /// As the column has it.
    pub(super) fn id(self) -> &'static str {
        match self {
            Kind::Wait => "wait",
            Kind::Path => "path",
            Kind::Thread => "thread",
            Kind::Request => "request",
        }
    }
}

/// A row.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) kind: Kind,
    pub(super) cause: Cause,
    pub(super) tally: Tally,
    pub(super) name: Option<&'a ThreadName>,
    pub(super) wait: Option<&'a AttributedWait>,
    /// How many threads it stands for.
    pub(super) threads: Option<u32>,
}

/// All rows, those of one kind together.
pub(super) fn of(segment: &Segment) -> Vec<Row<'_>> {
    let attributed = &segment.attributed;
    let waits = attributed.waits.iter().map(|wait| Row {
        kind: Kind::Wait,
        cause: wait.cause,
        tally: Tally {
            ns: wait.ns,
            count: wait.count,
            max: wait.max,
            open: wait.open,
        },
        name: Some(&wait.asker.name),
        wait: Some(wait),
        threads: None,
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
    waits.chain(path).chain(threads).chain(requests).collect()
}

fn of_causes(kind: Kind, causes: &BTreeMap<Cause, Tally>) -> impl Iterator<Item = Row<'_>> {
    causes.iter().map(move |(cause, tally)| Row {
        kind,
        cause: *cause,
        tally: *tally,
        name: None,
        wait: None,
        threads: None,
    })
}
