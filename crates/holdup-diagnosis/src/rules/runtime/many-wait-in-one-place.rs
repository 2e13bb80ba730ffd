//! Many threads of a dump wait in the same line of the program.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, dumps as dumped, duration};
use holdup_artefacts::dumps::{Doing, Dump, DumpThread, dumps};
use holdup_evidence::observed::SnapshotKind;
use holdup_evidence::{Cause, Observed};
use holdup_knowledge::go;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// Threads from which they are many: fewer meet in one place by chance.
pub(crate) const MIN_THREADS: usize = 4;

/// Part of the threads that have something to do, from which it is what the program waits for.
const MIN_SHARE: f64 = 0.5;

/// Places that are reported; those with most threads first.
const MAX_PLACES: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ManyWaitInOnePlace, check)
    .about("many threads of a dump wait in the same line of code")
    .causes(&[Cause::NetReceive, Cause::LockFutex])
    .generality(Generality::Describes)
    .intermediate();

/// Pools of a JVM's threads have names and are another rule's.
fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let mut places: BTreeMap<&str, Gathered<'_, '_>> = BTreeMap::new();
    let mut most = 0;
    for dump in dumps
        .iter()
        .filter(|dump| dump.snapshot.kind != SnapshotKind::Jvm)
    {
        let busy = dump
            .threads
            .iter()
            .filter(|seen| seen.doing != Doing::Idle)
            .count();
        for gathered in gathered(dump, busy) {
            most = most.max(gathered.threads.len());
            let known = places.get(gathered.place);
            let longer = known.is_none_or(|known| known.threads.len() < gathered.threads.len());
            if longer && gathered.tells() {
                places.insert(gathered.place, gathered);
            }
        }
    }
    let mut gathereds: Vec<&Gathered<'_, '_>> = places.values().collect();
    gathereds.sort_by_key(|gathered| std::cmp::Reverse(gathered.threads.len()));
    if gathereds.is_empty() {
        return Verdict::Clear(format!(
            "at most {most} threads of a dump of another program than a JVM wait in one place"
        ));
    }
    Verdict::Fires(
        gathereds
            .into_iter()
            .take(MAX_PLACES)
            .filter_map(|one| finding(run, one))
            .collect(),
    )
}

/// Threads that wait in one line of the program.
struct Gathered<'d, 'a> {
    place: &'a str,
    doing: Doing,
    threads: Vec<&'d DumpThread<'a>>,
    /// Threads of the dump that are not idle.
    busy: usize,
}

fn gathered<'d, 'a>(dump: &'d Dump<'a>, busy: usize) -> Vec<Gathered<'d, 'a>> {
    let mut places: BTreeMap<(&'a str, Doing), Vec<&'d DumpThread<'a>>> = BTreeMap::new();
    for seen in &dump.threads {
        let waits = matches!(
            seen.doing,
            Doing::Waits(_) | Doing::WaitsForPool | Doing::WaitsForTask | Doing::WaitsUnknown
        );
        // A queue for a lock that is reported is another rule's, and a sleep is on purpose.
        let lock = seen
            .thread
            .waits_for
            .as_ref()
            .is_some_and(|lock| !lock.id.is_empty());
        let elsewhere = (dumped::wants_lock(seen) && lock) || seen.doing == Doing::Waits(Cause::TimerSleep);
        if let Some(place) = seen.asker().filter(|_| waits && !elsewhere) {
            places.entry((place, seen.doing)).or_default().push(seen);
        }
    }
    let of = |((place, doing), threads)| Gathered {
        place,
        doing,
        threads,
        busy,
    };
    places.into_iter().map(of).collect()
}

impl Gathered<'_, '_> {
    /// Whether it says something: what they wait for is known, or how long; or it is a line of Python itself in which they
    /// stand, and not the library's queue, in which workers without work stand too.
    fn tells(&self) -> bool {
        let count = self.threads.len();
        let waited = self
            .threads
            .iter()
            .filter(|seen| seen.thread.waited.is_some())
            .count();
        let lock = self.threads.iter().all(|seen| dumped::wants_lock(seen));
        let most = count as f64 >= MIN_SHARE * self.busy as f64;
        let enough = count >= MIN_THREADS && (most || lock || waited >= MIN_THREADS);
        let own_line = |seen: &&&DumpThread<'_>| {
            seen.kind == SnapshotKind::Python && seen.frames.first().is_some_and(|top| *top == self.place)
        };
        match self.doing {
            // Who waits for tasks is mostly one that gave them to others.
            Doing::WaitsForTask => false,
            Doing::WaitsUnknown => {
                let long = self
                    .threads
                    .iter()
                    .filter(|seen| sends(seen) && seen.thread.waited.is_some());
                enough
                    && (long.count() >= MIN_THREADS
                        || self.threads.iter().filter(own_line).count() >= MIN_THREADS)
            }
            _ => enough,
        }
    }
}

/// Whether a goroutine has something to hand over. One that waits to be given something may be a worker without work.
fn sends(seen: &DumpThread<'_>) -> bool {
    go::sends(&seen.thread.words)
}

fn finding(run: &Run<'_>, gathered: &Gathered<'_, '_>) -> Option<Finding> {
    let first = *gathered.threads.first()?;
    let count = gathered.threads.len();
    let kind = dumped::threads(first.kind);
    let (what, cause) = match gathered.doing {
        Doing::Waits(cause) => (format!("are {}", cause.phrase()), cause),
        Doing::WaitsForPool => (
            "wait for a free connection of a pool".to_owned(),
            Cause::LockFutex,
        ),
        _ if sends(first) => ("wait for a receiver of their data".to_owned(), Cause::LockFutex),
        _ => ("wait in the same line".to_owned(), Cause::Unknown),
    };
    let known = gathered.doing != Doing::WaitsUnknown;
    let text = format!(
        "{count} of the {} {kind} that are not idle are in {}",
        gathered.busy, gathered.place
    );
    let waited = gathered
        .threads
        .iter()
        .filter_map(|seen| seen.thread.waited)
        .min();
    let waited = waited.map(|waited| {
        let text = format!(
            "the last one to arrive has been there for at least {}",
            duration(waited)
        );
        Evidence::new(text, dumped::place(run, first))
    });
    let confidence = match (known, waited.is_some()) {
        (true, true) => Confidence::Strong,
        _ => Confidence::Suspect,
    };
    let remedy = match gathered.doing {
        Doing::Waits(_) if dumped::wants_lock(first) && first.kind == SnapshotKind::Go => {
            "dump the goroutines with their arguments (`/debug/pprof/goroutine?debug=2`, or SIGQUIT): they \
             show the lock"
        }
        Doing::Waits(_) if dumped::wants_lock(first) => {
            "find the lock and its holder: `holdup attach -p PID` names both, or use stacks with arguments \
             (gdb and the debug symbols of the C library)"
        }
        Doing::Waits(_) => {
            "look at the peer of this wait, and set a timeout for the call, so that it fails instead of \
             hanging"
        }
        Doing::WaitsForPool => {
            "find the code that keeps the connections: it does not return one, or does long work while it \
             has one"
        }
        _ if sends(first) => {
            "find the receiver of that channel: it has ended, or is blocked; cancel the sender with its \
             context"
        }
        _ => {
            "look at that line: it takes a lock or calls C code that no frame shows; `py-spy dump --native`, \
             or `holdup attach -p PID` during the wait, names it"
        }
    };
    let lock = first.thread.waits_for.as_ref().map(dumped::lock);
    Some(
        Finding::without_duration(
            RULE.id.id(),
            if known || waited.is_some() {
                Severity::Warning
            } else {
                Severity::Note
            },
            format!("{count} {kind} {what}, in {}", gathered.place),
            cause,
            Evidence::new(text, dumped::place(run, first)),
        )
        .and_if(waited)
        .and(dumped::stands(run, first))
        .about(lock.unwrap_or_default(), dumped::asker(first))
        .confidence(confidence)
        .remedy(Remedy::safe(remedy))
        .remedy(Remedy::pointless(format!(
            "more {kind}: they would wait there too"
        ))),
    )
}
