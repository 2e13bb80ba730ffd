//! Several segments as one, as if one had been there all the time.
//!
//! In: segments, oldest first. Out: one whose sums are the sums and whose longest is the longest. A thread that lived on at the end
//! of one segment is the same in the next; one that had ended is another, whatever its number. What can't be put together from
//! what segments keep (percentiles) is estimated, and [`Head::approximate`] says so; what lies between segments is in
//! [`Head::breaks`]. A wait that lasts across segments counts once in each.

mod between;
mod facts;
mod sums;
mod threads;
pub(crate) mod waits;
mod windows;

pub use between::Break;

use crate::focus::as_threads;
use crate::{Head, Segment};
use holdup_evidence::budget::Budget;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use holdup_model::attributed::{Coverage, Tally};
use holdup_model::report::SubjectKind;
use holdup_model::timeline::Timeline;
use std::collections::{BTreeMap, BTreeSet};

/// Puts segments together; `None` of none. One alone stays as it is.
#[must_use]
pub fn merge(segments: impl IntoIterator<Item = Segment>) -> Option<Segment> {
    let mut segments = segments.into_iter();
    let mut merging = Merging::new(segments.next()?);
    segments.for_each(|segment| merging.push(segment));
    Some(merging.finish())
}

/// Several segments on their way to one: takes them one by one, so that a day needs the memory of what it comes to.
#[derive(Debug)]
pub struct Merging {
    whole: Segment,
    /// The head of the last one, and its clocks.
    last: (Head, between::Clocks),
    waits: waits::Waits,
    threads: threads::Threads,
    windows: windows::Windows,
    /// Whether runs are among what ran already.
    mixed: bool,
    /// Whether there are several.
    begun: bool,
    /// How long all of them lasted.
    watched: Ns,
}

impl Merging {
    /// Begins with the oldest.
    #[must_use]
    pub fn new(first: Segment) -> Merging {
        Merging {
            last: (first.head.clone(), between::Clocks::of(&first.facts)),
            watched: lasted(&first.attributed),
            whole: first,
            waits: waits::Waits::default(),
            threads: threads::Threads::default(),
            windows: windows::Windows::default(),
            mixed: false,
            begun: false,
        }
    }

    /// Adds the next.
    pub fn push(&mut self, mut next: Segment) {
        let clocks = between::Clocks::of(&next.facts);
        let breaks = between::breaks(&self.last.0, self.last.1, &next.head, clocks);
        let booted = breaks.iter().any(Break::parts_threads);
        let whole = &mut self.whole;
        if !self.begun {
            self.begun = true;
            self.windows
                .add(0, &std::mem::take(&mut whole.attributed.windows));
            // It names threads and waits by number.
            whole.attributed.timeline = Timeline::default();
            self.threads.begin(&mut whole.attributed);
            self.waits.begin(&mut whole.attributed, &self.threads);
        }
        // As its date says: where the clock was set, time went as people saw it go.
        let begin = next.head.started_unix.saturating_sub(whole.head.started_unix);
        self.windows
            .add(u64::try_from(begin).unwrap_or(0), &next.attributed.windows);
        // Tasks are those of the end.
        whole.attributed.tasks = std::mem::take(&mut next.attributed.tasks);
        whole.attributed.pools = std::mem::take(&mut next.attributed.pools);
        whole.attributed.host_figures.append(
            u64::try_from(begin).unwrap_or(0),
            std::mem::take(&mut next.attributed.host_figures),
        );
        // All instants are known by the clock of the first.
        let shift = clocks.ahead_of(between::Clocks::of(&whole.facts));
        self.threads
            .add(std::mem::take(&mut next.attributed.threads), booted);
        self.waits
            .add(std::mem::take(&mut next.attributed.waits), shift, &self.threads);
        whole.head.breaks.extend(breaks);
        self.last = (next.head.clone(), clocks);
        head(&mut whole.head, next.head);
        // What one turn shows was measured together: of two looks the rules would make one that nobody has had.
        if whole.look.take().is_some() || next.look.is_some() {
            approximately(&mut whole.head, LOOKS);
        }
        facts::add(&mut whole.facts, next.facts, booted);
        let (sum, part) = (&mut whole.attributed, next.attributed);
        // A run is not of one kind with what ran already: then all is reported as threads' time.
        self.mixed |= sum.of_threads != part.of_threads;
        sum.source = sum.source.and(part.source);
        sum.elapsed = sum.elapsed.saturating_add(part.elapsed);
        sum.wall = sum.wall.saturating_add(part.wall);
        self.watched = self.watched.saturating_add(lasted(&part));
        tallies(&mut sum.path, part.path);
        coverage(&mut sum.coverage, part.coverage);
        sums::connections(&mut sum.connections, part.connections);
        sums::churn(&mut sum.churn, part.churn);
        sums::requests(&mut sum.requests, part.requests);
    }

    /// All that were taken, as one.
    #[must_use]
    pub fn finish(mut self) -> Segment {
        if self.begun {
            self.whole.attributed.waits = self.waits.finish();
            self.whole.attributed.threads = self.threads.finish();
            self.whole.attributed.windows = self.windows.finish();
        }
        if self.mixed {
            self.whole.attributed.wall = self.watched;
            as_threads(&mut self.whole.attributed);
            self.whole.head.kind = SubjectKind::Attach;
        }
        self.whole
    }
}

/// How long it lasted, whichever kind it is of.
fn lasted(attributed: &Attributed) -> Ns {
    match attributed.of_threads {
        true => attributed.wall,
        false => attributed.elapsed,
    }
}

/// What is estimated wherever segments are put together.
const PERCENTILES: &str = "p50 and p99 of waits and requests are estimated from those of the segments";

/// What is not known wherever segments are put together.
const TIMELINE: &str = "single intervals are reported for single segments only";

/// What is not known, where looks at a machine are among them.
const LOOKS: &str = "a snapshot of the whole machine is shown alone";

fn head(whole: &mut Head, next: Head) {
    whole.length = u64::try_from(next.ended_unix().saturating_sub(whole.started_unix))
        .unwrap_or(0)
        .max(whole.length);
    whole.segments = whole.segments.saturating_add(next.segments);
    whole.exit = next.exit;
    whole.ended_boot = next.ended_boot;
    let pids: BTreeSet<u32> = whole.pids.iter().copied().collect();
    whole
        .pids
        .extend(next.pids.into_iter().filter(|pid| !pids.contains(pid)));
    if whole.command != next.command {
        whole.command.clear();
    }
    for one in next.elsewhere {
        if !whole.elsewhere.contains(&one) {
            whole.elsewhere.push(one);
        }
    }
    if whole.boot_id != next.boot_id {
        whole.boot_id = None;
    }
    if whole.host != next.host {
        whole.host = None;
    }
    if whole.kernel != next.kernel {
        whole.kernel = None;
    }
    if whole.unit != next.unit {
        whole.unit = None;
    }
    if whole.cgroup != next.cgroup {
        whole.cgroup = None;
    }
    whole.build_ids.extend(next.build_ids);
    whole.redacted |= next.redacted;
    whole.coarse |= next.coarse;
    whole.detail.extend(next.detail);
    whole.breaks.extend(next.breaks);
    for what in &next.approximate {
        approximately(whole, what);
    }
    approximately(whole, PERCENTILES);
    approximately(whole, TIMELINE);
}

/// Says once what can't be exact.
fn approximately(head: &mut Head, what: &str) {
    if !head.approximate.iter().any(|said| said == what) {
        head.approximate.push(what.to_owned());
    }
}

/// Adds up by cause. What was open and is not any more has ended.
fn tallies(whole: &mut BTreeMap<Cause, Tally>, next: BTreeMap<Cause, Tally>) {
    for tally in whole.values_mut() {
        tally.open = false;
    }
    for (cause, tally) in next {
        let sum = whole.entry(cause).or_default();
        sum.ns = sum.ns.saturating_add(tally.ns);
        sum.count = sum.count.saturating_add(tally.count);
        sum.max = sum.max.max(tally.max);
        sum.open = tally.open;
    }
}

/// What each segment might use and has used. Of what was left out the first time of each is kept: later ones are counted from the begin of
/// other segments.
fn budget(whole: &mut Option<Budget>, next: Option<Budget>) {
    let (Some(sum), Some(next)) = (whole.as_mut(), &next) else {
        *whole = whole.take().or(next);
        return;
    };
    for (sum, ns) in [
        (&mut sum.allowed, next.allowed),
        (&mut sum.used, next.used),
        (&mut sum.programs, next.programs),
        (&mut sum.own, next.own),
        (&mut sum.start, next.start),
    ] {
        *sum = sum.saturating_add(ns);
    }
    sum.counted &= next.counted;
    for step in &next.steps {
        if !sum.steps.iter().any(|one| one.what == step.what) {
            sum.steps.push(*step);
        }
    }
}

fn coverage(whole: &mut Coverage, next: Coverage) {
    let add = |sum: &mut Ns, ns: Ns| *sum = sum.saturating_add(ns);
    add(&mut whole.observed, next.observed);
    add(&mut whole.attributed, next.attributed);
    add(&mut whole.unknown, next.unknown);
    add(&mut whole.own_cost, next.own_cost);
    budget(&mut whole.budget, next.budget);
    for (what, count, ns) in next.lost {
        match whole.lost.iter_mut().find(|lost| lost.0 == what) {
            Some(lost) => {
                lost.1 = lost.1.saturating_add(count);
                lost.2 = lost.2.saturating_add(ns);
            }
            None => whole.lost.push((what, count, ns)),
        }
    }
    for what in next.not_measured {
        if !whole.not_measured.contains(&what) {
            whole.not_measured.push(what);
        }
    }
}

/// A percentile of several, each of so many: that of the segment in which the percentile's own place lies when segments are put in
/// the order of theirs. In the middle of what is possible, and exact where all are alike.
pub(crate) fn percentile(of: &mut [(Ns, u64)], hundredth: u64) -> Ns {
    of.sort_unstable();
    let all: u128 = of.iter().map(|(_, count)| u128::from(*count)).sum();
    let place = all * u128::from(hundredth) / 100;
    let mut before = 0;
    for (value, count) in of.iter() {
        before += u128::from(*count);
        if before > place {
            return *value;
        }
    }
    of.last().map_or(0, |(value, _)| *value)
}
