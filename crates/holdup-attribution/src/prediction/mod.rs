//! What a command's elapsed time would be without a wait: `holdup run --predict`.
//!
//! The problem: what the critical path shows for a cause is the most that can be gained, and mostly not what is gained, because
//! another branch becomes critical next. The choice: the whole graph of a run's waits is kept ([`Recorder`]), and replayed with
//! that wait taken away ([`replay`]), as IPS-2's "logical zeroing" does with procedures (Miller and others, 1990) and Dimemas with messages.
//! Causal profiling (Coz, 2015) finds the same by slowing down everything else, which observation must not do.
//!
//! How the replay goes. A thread is a list of pieces of CPU time and of waits. A wait that a thread of the run ended is over when that
//! thread comes to the point at which it ended it, or is none if it has been there already; any other keeps its length, sleeps until
//! an instant included (Python and Rust name an instant where they mean a length); only sleeps that were seen to end at
//! fixed times end at those. A wait for the cause that is taken away has its length times the factor; so has, at half, one that a thread ended, as
//! a limit. Threads that are ready share the CPUs that they may run on evenly, which is what the kernel's fair scheduler comes to when its
//! slices are short; nice values and cgroup weights within the run are not modelled. How much each piece was held up
//! by others than the run's threads, or favoured, is taken from what was seen ([`sharing`]).
//!
//! What is not predicted: a wait that did not happen and would now (a lock that was free, a buffer that was never empty), less
//! work where a wait's work goes with it, and what [`Doubt`] lists. Before anything is predicted the run itself is replayed;
//! unless its own time comes out, nothing is said but why.
//!
//! In: a run's events by way of attribution, and what attribution made of them. Out: [`Prediction`]s.

mod doubts;
mod record;
mod replay;
mod sharing;

#[cfg(test)]
mod tests;

pub(crate) use record::Recorder;
#[cfg(test)]
pub(crate) use record::TOGETHER;

use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use holdup_model::prediction::{Doubt, Prediction, Predictions, Question};
use record::Graph;
use replay::{WhatIf, replay};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Causes predicted at most: a replay of the largest graph takes about a second each.
const MAX_CAUSES: usize = 8;

/// Of these also at half.
const HALVED: usize = 3;

/// A cause is predicted from this share of the elapsed time on, on the path or handed on: less is below what a prediction can tell.
const WORTH_IT: f64 = 0.02;

/// And also from so many times the elapsed time of all threads' waits: to be told that nothing is gained helps, too.
const OFF_PATH: f64 = 0.10;

/// How far the replay of the run as it was may be from what was seen, as a share of it.
const TOLERANCE: f64 = 0.02;

/// Thread time whose records were lost, as a share of the elapsed time, from which the graph has holes that matter.
const LOST: f64 = 0.02;

/// By how much the graph's time for a cause may differ from the report's, as a share of the latter: more means that waits were reported
/// by user stacks, of which the graph knows nothing.
const MAX_DIFFERENCE: f64 = 0.10;

/// Predicts from a graph, beside what attribution made of the same events.
pub(crate) fn predict(recorder: Recorder, run: &Attributed) -> Predictions {
    match recorder.into_graph(run).and_then(|graph| of_graph(&graph, run)) {
        Ok(predictions) => predictions,
        Err(why) => Predictions {
            not: Some(why),
            ..Predictions::default()
        },
    }
}

fn of_graph(graph: &Graph, run: &Attributed) -> Result<Predictions, String> {
    if share(graph.lost, run.elapsed) > LOST {
        return Err("records of too many waits were lost".to_owned());
    }
    let demands = sharing::demands(graph);
    let Some(again) = replay(graph, &demands, None) else {
        return Err("the records contradict each other: the run cannot be replayed".to_owned());
    };
    if share(again.abs_diff(run.elapsed), run.elapsed) > TOLERANCE {
        let percent = 100.0 * again as f64 / run.elapsed.max(1) as f64;
        return Err(format!(
            "an unchanged replay takes {percent:.0} % of the real time"
        ));
    }
    // What the replay of the run itself is off by, it is off by here. Where threads get in each other's way sooner, a replay can end
    // later; nobody would count on that.
    let without = |causes: &[Cause], factor| {
        let then = replay(graph, &demands, Some(WhatIf { causes, factor }))?;
        Some(run.elapsed.saturating_sub(again.saturating_sub(then)))
    };
    let (causes, otherwise) = chosen(graph, run);
    let mut list = Vec::new();
    let halves = causes.iter().take(HALVED).map(|cause| (*cause, 0.5));
    for (cause, factor) in causes.iter().map(|cause| (*cause, 0.0)).chain(halves) {
        if let Some(elapsed_ns) = without(&[cause], factor) {
            list.push(Prediction {
                without: cause,
                factor,
                elapsed_ns,
                doubts: doubts::of(cause, factor, graph, run),
            });
        }
    }
    let asked = graph.question.together;
    Ok(Predictions {
        list,
        together: (!asked.is_empty()).then(|| without(asked, 0.0)).flatten(),
        not: otherwise,
    })
}

/// What is worth predicting, most first, and a word on those that are and can't be.
fn chosen(graph: &Graph, run: &Attributed) -> (Vec<Cause>, Option<String>) {
    let mut by_key: BTreeMap<Cause, (Ns, Ns)> = BTreeMap::new();
    for row in &run.waits {
        let sums = by_key.entry(row.cause).or_default();
        sums.0 = sums.0.saturating_add(row.cost_ns());
        sums.1 = sums.1.saturating_add(row.ns);
    }
    let worth = |(cost, ns): (Ns, Ns)| {
        ns > 0 && (share(cost, run.elapsed) >= WORTH_IT || share(ns, run.elapsed) >= OFF_PATH)
    };
    let mut causes: Vec<(Cause, (Ns, Ns))> = by_key
        .iter()
        .filter(|(cause, sums)| can_be_taken_away(**cause) && worth(**sums))
        .map(|(cause, sums)| (*cause, *sums))
        .collect();
    causes.sort_by_key(|(_, (cost, ns))| (Reverse(*cost), Reverse(*ns)));
    let same = |cause: Cause, ns: Ns| {
        let own = graph.time_for(cause);
        cause.on_cpu() || cause == Cause::SchedRunqueue || share(own.abs_diff(ns), ns) <= MAX_DIFFERENCE
    };
    let (good, bad): (Vec<_>, Vec<_>) = causes.iter().partition(|(cause, (_, ns))| same(*cause, *ns));
    let names: Vec<&str> = bad.iter().map(|(cause, _)| cause.id()).collect();
    let otherwise = (!names.is_empty()).then(|| {
        format!(
            "waits for {} were recognised by their user stacks, after the graph was built",
            names.join(", ")
        )
    });
    let good = good
        .into_iter()
        .map(|(cause, _)| cause)
        .take(MAX_CAUSES)
        .collect();
    (good, otherwise)
}

/// Whether there is a "without". Who waits for work waits for others; what is lost or not reported is no thing; interrupts and
/// hypervisors come from outside, and how a quota is spent depends on everything.
fn can_be_taken_away(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::Idle
            | Cause::Unknown
            | Cause::SchedThrottled
            | Cause::SchedSteal
            | Cause::CpuInterrupt
            | Cause::ProcessStopped
    )
}

/// A part of a whole; of nothing, nothing.
fn share(part: Ns, whole: Ns) -> f64 {
    part as f64 / whole.max(1) as f64
}
