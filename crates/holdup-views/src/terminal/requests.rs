//! The line about requests: how many, how long, and what the slow ones had more of.

use super::margins::{HEADER, of_machine};
use crate::sheet::Sheet;
use crate::units::{counted, duration};
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{ListenerRequests, Report, Requests};

/// Listeners that are distinguished.
const LISTENERS: usize = 6;

/// Causes named that slow requests had more of.
const CAUSES: usize = 2;

/// Mean of the slow requests of a whole machine, below which nobody misses the time, nanoseconds.
const MIN_SLOW_OF_MACHINE_NS: Ns = 10_000_000;

/// Writes it below the header, where requests were reported and there were any.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let Some(requests) = &report.requests else {
        return;
    };
    let each = listeners(requests);
    for words in [all(requests)].into_iter().flatten().chain(each).chain(
        [
            slow(requests, of_machine(report)),
            at_last(requests),
            open(requests),
            (!of_machine(report)).then(|| resting(requests)).flatten(),
        ]
        .into_iter()
        .flatten(),
    ) {
        let body = vec![sheet.words(&words)];
        sheet.line(HEADER, body);
    }
}

fn all(requests: &Requests) -> Option<String> {
    (requests.count > 0).then(|| {
        format!(
            "{} answered: median {}, 99 % within {}, slowest {}",
            counted(requests.count, "request", "requests"),
            duration(requests.p50_ns),
            duration(requests.p99_ns),
            duration(requests.max_ns)
        )
    })
}

/// A line for each listener, where there are several and not too many to read.
fn listeners(requests: &Requests) -> Vec<String> {
    if !(2..=LISTENERS).contains(&requests.listeners.len()) {
        return Vec::new();
    }
    let line = |one: &ListenerRequests| {
        let at = match one.port {
            Some(port) => format!("on port {port}"),
            None => "on Unix sockets".to_owned(),
        };
        let open = (one.open > 0).then(|| format!(", {} unanswered", counted(one.open, "more", "more")));
        let times = (one.count > 0).then(|| {
            format!(
                ", median {}, 99 % within {}, slowest {}",
                duration(one.p50_ns),
                duration(one.p99_ns),
                duration(one.max_ns)
            )
        });
        format!(
            "{at}: {} answered{}{}",
            one.count,
            times.unwrap_or_default(),
            open.unwrap_or_default()
        )
    };
    requests.listeners.iter().map(line).collect()
}

/// What the slow ones had more of. `machine`: of all services of a machine together some requests are answered when something comes, such as
/// a queue's next entry: these are slow by design.
fn slow(requests: &Requests, machine: bool) -> Option<String> {
    let slow = requests.slow.as_ref()?;
    let most = slow.more.first()?.cause;
    if machine && (most.rests() || most == Cause::PollWait || slow.mean_ns < MIN_SLOW_OF_MACHINE_NS) {
        return None;
    }
    let more: Vec<String> = slow
        .more
        .iter()
        .take(CAUSES)
        .map(|more| {
            format!(
                "{} more {} ({})",
                duration(more.ns),
                more.cause.phrase(),
                more.cause
            )
        })
        .collect();
    let several = match slow.count {
        0 | 1 => String::new(),
        count => format!(" {count} of them"),
    };
    let port = slow.port.map(|port| format!(", all on port {port}"));
    let example = slow.request.as_deref().map(|line| format!(", such as {line}"));
    (!more.is_empty() && slow.mean_ns > slow.usual_ns).then(|| {
        format!(
            "the slowest{}{}{}: {}, {}",
            several,
            port.unwrap_or_default(),
            example.unwrap_or_default(),
            duration(slow.mean_ns),
            more.join(", ")
        )
    })
}

fn at_last(requests: &Requests) -> Option<String> {
    (requests.at_last > 0).then(|| {
        format!(
            "{} answered only when something else came, after {} at most, while the thread that had read it was idle: a \
             subscription, a blocking pop or a long poll waits so by design",
            counted(requests.at_last, "more", "more"),
            duration(requests.at_last_max_ns)
        )
    })
}

fn open(requests: &Requests) -> Option<String> {
    (requests.open > 0).then(|| {
        let going_on = requests.causes.iter().find(|cause| cause.open);
        let what = going_on.map(|cause| format!(", {} ({})", cause.cause.phrase(), cause.cause));
        format!(
            "{} unanswered, the oldest for {}{}",
            counted(requests.open, "request", "requests"),
            duration(requests.oldest_open_ns),
            what.unwrap_or_default()
        )
    })
}

fn resting(requests: &Requests) -> Option<String> {
    (requests.resting > 0).then(|| {
        format!(
            "{} sent data that no thread works on: a request that waits, part of one, or a subscription",
            counted(requests.resting, "client", "clients")
        )
    })
}
