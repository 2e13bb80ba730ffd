//! The critical chain of a boot beside its logs: which hole in it was what.
//!
//! In: units and holes as `systemd-analyze critical-chain` has them, and starts of units as logs have them. Out: for a hole,
//! the wait that fills it. The chain counts from when systemd began and carries no date, and two boots of a machine look
//! alike; so the two are taken for one boot only where units took as long in the one as in the other.

use super::units::{Start, behind, starts};
use super::waits::{self, For, Waited, device_path};
use crate::rules::logs;
use holdup_artefacts::clock::Clock;
use holdup_evidence::Observed;
use holdup_evidence::observed::{Span, SpanKind, When};
use holdup_model::finding::Evidence;
use holdup_model::report::{ChainUnit, Hole};

/// Holes that are looked at, the first ones: a chain has a handful, and each is compared with all starts.
const HOLES: usize = 20;

/// Units as the chain has them, the last first.
pub(super) fn units(observed: &Observed) -> Vec<ChainUnit> {
    let of_chain = |span: &&Span| {
        let source = observed.sources.get(span.quote.source as usize);
        source.is_some_and(|source| source.format == "systemd-chain")
    };
    let spans: Vec<&Span> = observed.spans.iter().filter(of_chain).collect();
    let Some(source) = spans.last().map(|span| span.quote.source) else {
        return Vec::new();
    };
    let reached = spans
        .iter()
        .filter(|span| span.quote.source == source && span.kind == SpanKind::UnitReached);
    reached
        .map(|span| {
            let own = spans
                .iter()
                .find(|own| own.kind == SpanKind::UnitStart && own.quote == span.quote);
            ChainUnit {
                unit: span.name.clone(),
                reached_ns: span.ns,
                took_ns: own.map(|own| own.ns),
            }
        })
        .collect()
}

/// The holes of the chain, longest first, each with what filled it.
pub(super) fn holes(observed: &Observed, clock: &Clock<'_>) -> Vec<Hole> {
    let spans = observed.spans.iter();
    let mut holes: Vec<Hole> = spans
        .filter(|span| span.kind == SpanKind::ChainHole)
        .take(HOLES)
        .map(|span| Hole {
            unit: span.name.clone(),
            after: span.thread.clone().unwrap_or_default(),
            began_ns: match span.began {
                Some(When::SinceStart(ns)) => Some(ns),
                _ => None,
            },
            ns: span.ns,
            what: filled(observed, clock, span),
            source: observed.place(&span.quote),
        })
        .collect();
    holes.sort_by_key(|hole| std::cmp::Reverse(hole.ns));
    holes
}

/// The holes of the chain that a start filled, each as evidence.
pub(crate) fn holes_of(
    observed: &Observed,
    clock: &Clock<'_>,
    all: &[Start<'_>],
    start: &Start<'_>,
) -> Vec<Evidence> {
    let line = |start: &Start<'_>| start.ended().map(|one| one.quote.clone());
    let holes = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::ChainHole);
    holes
        .take(HOLES)
        .filter(|hole| {
            let filled = behind(observed, clock, all, hole);
            filled.is_some_and(|by| line(by).is_some() && line(by) == line(start))
        })
        .map(|hole| {
            let text = format!(
                "{} waited for it: the chain has nothing before it for {}",
                hole.name,
                logs::seconds(hole.ns)
            );
            Evidence::new(text, observed.place(&hole.quote))
        })
        .collect()
}

/// What filled a hole: the start that was waited for, or the unit's own earlier try; `None` where no log of the same boot tells.
fn filled(observed: &Observed, clock: &Clock<'_>, hole: &Span) -> Option<String> {
    let starts = starts(observed);
    let start = behind(observed, clock, &starts, hole)?;
    // What that try was for is known where it ended with what it waited for.
    let wait = waits::all(observed, clock).into_iter().find(|wait| {
        let began = start.began.is_some_and(|began| began.quote == wait.began.quote);
        wait.unit == start.unit && began
    });
    Some(match wait {
        Some(wait) => words(&wait, &hole.name),
        None => {
            let took = start.took(clock).map_or("for a time".to_owned(), logs::seconds);
            format!("{} was starting, {took}", start.unit)
        }
    })
}

/// What filled a hole before a unit, in words.
fn words(wait: &Waited<'_>, unit: &str) -> String {
    let length = logs::seconds(wait.ns);
    match wait.what {
        For::Seeding => format!(
            "{} waited for the random generator to be seeded, {length}",
            wait.unit
        ),
        For::Device => format!(
            "it waited {length} for {}, which did not appear",
            device_path(wait.unit)
        ),
        For::Network => format!("{} waited for the network, {length}", wait.unit),
        For::Unknown if wait.unit == unit => format!(
            "an earlier attempt to start it, which timed out in its {} step after {length}",
            wait.step
        ),
        For::Unknown => format!("{} timed out in its {} step after {length}", wait.unit, wait.step),
    }
}
