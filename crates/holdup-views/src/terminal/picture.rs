//! Which waits a person gets to see, and how they add up.
//!
//! In: a report. Out: entries that tile the elapsed time ([`Picture::tiles`] and the rest), and beside them
//! the waits that passed time on to others ([`Picture::handed_on`]), which tile nothing: when `sh` waits for
//! `make` and `make` for `cc`, the elapsed second is `cc`'s, and the other two waited for it.
//!
//! Waits of many threads with the same cause, resource and asker are one entry. What is too small for an
//! entry alone is one with the others of its cause, so that a cause that is large in sum is never hidden in
//! "everything else". Pure: numbers and choices, no text.

use crate::terminal::margins::of_machine;
use crate::units::{percent, whole_percent};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{How, ResourceKind, Uncertainty, error_together};
use holdup_model::finding::Severity;
use holdup_model::report::{Finding, Report, Wait};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Per mille of the elapsed time that makes an entry. Twenty such fit into a whole; what is less can't be why
/// something was slow.
pub(super) const LEAST_PER_MILLE: u64 = 50;

/// The same on `-v`; a floor still, so that the entries of a run with a million places are 200 at most.
const LEAST_PER_MILLE_OF_ALL: u64 = 5;

/// Entries of where the time went. More than three are read by nobody who asked "what is it?": the line below them has the causes of what is
/// left, and `-v` has all.
const MAX_TILES: usize = 3;

/// Entries of who waited for that.
const MOST_HANDED_ON: usize = 3;

/// Percent of the elapsed time that may be unresolved before the rest is no ground for a verdict: with a
/// third of the time unseen, the largest cause that was seen need not be the largest.
const MOST_UNRESOLVED_PERCENT: u64 = 30;

/// What the time of one cause went to, at one place or at several.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) cause: Cause,
    /// Of the elapsed time.
    pub(crate) ns: Ns,
    /// The waits it is made of and what each has in it, largest first; not empty but for time that no wait
    /// accounts for.
    pub(crate) members: Vec<(&'a Wait, Ns)>,
    /// Whether the members differ in resource or asker.
    pub(crate) several_places: bool,
    /// One standard error of its time, nanoseconds; 0 where it is exact.
    pub(crate) error: Ns,
}

impl<'a> Entry<'a> {
    /// The wait that stands for all when one place is reported.
    pub(crate) fn largest(&self) -> Option<&'a Wait> {
        self.members.first().map(|(wait, _)| *wait)
    }

    /// A figure of the members added up; not of the elapsed time, but of their own.
    pub(crate) fn sum(&self, of: impl Fn(&Wait) -> u64) -> u64 {
        self.members.iter().map(|(wait, _)| of(wait)).sum()
    }

    /// The member with the longest single wait. Only of entries that have members.
    pub(crate) fn longest(&self) -> &'a Wait {
        let longest = self
            .members
            .iter()
            .map(|(wait, _)| *wait)
            .max_by_key(|wait| wait.max_ns);
        longest.expect("callers have a member")
    }

    /// Whether some of it was still waiting when observation ended.
    pub(crate) fn open(&self) -> bool {
        self.members.iter().any(|(wait, _)| wait.open)
    }

    /// Whether its time is an estimate, to a hundredth of it or worse: of what looks now and then have met. How CPU time splits is
    /// sampled always, and said so where it matters.
    pub(crate) fn estimated(&self) -> bool {
        !self.cause.on_cpu() && self.error.saturating_mul(100) >= self.ns.max(1)
    }

    /// What is to be said before its time and its share: that it goes on, or that it is an estimate.
    pub(crate) fn qualified(&self) -> &'static str {
        match (self.open(), self.estimated()) {
            (true, _) => "≥",
            (false, true) => "about ",
            (false, false) => "",
        }
    }

    /// Its share of a whole: of an estimate no more figures than it has.
    pub(crate) fn share(&self, whole: Ns) -> String {
        match self.estimated() {
            true => format!("~{}", whole_percent(self.ns, whole)),
            false => percent(self.ns, whole),
        }
    }

    /// Its time; where one wait of it goes on since before observation began, how long that has been.
    pub(crate) fn so_far(&self) -> Ns {
        let open = self.members.iter().filter(|(wait, _)| wait.open);
        let longest = open.map(|(wait, _)| wait.max_ns).max();
        self.ns.max(longest.unwrap_or(0))
    }

    /// The members added up by a name, largest first.
    pub(crate) fn by<Name: Ord>(&self, name: impl Fn(&'a Wait) -> Name) -> Vec<(Name, Ns)> {
        let mut sums: BTreeMap<Name, Ns> = BTreeMap::new();
        for (wait, ns) in &self.members {
            *sums.entry(name(wait)).or_default() += ns;
        }
        let mut sums: Vec<(Name, Ns)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, ns)| Reverse(*ns));
        sums
    }
}

/// Where the elapsed time went.
#[derive(Debug)]
pub(crate) struct Picture<'a> {
    /// Largest first; with `rest` they add up to the elapsed time.
    pub(crate) tiles: Vec<Entry<'a>>,
    /// Waits on the path during which it was with others, largest first.
    pub(crate) handed_on: Vec<Entry<'a>>,
    /// Elapsed time in no tile, by cause, largest first.
    pub(crate) rest: Vec<(Cause, Ns)>,
}

/// Makes the picture. With `all`, everything is in some entry and there is no rest.
pub(crate) fn picture(report: &Report, all: bool) -> Picture<'_> {
    let least = if all {
        LEAST_PER_MILLE_OF_ALL
    } else {
        LEAST_PER_MILLE
    };
    let whole = worth_a_look(report);
    let large = |ns: Ns| u128::from(ns) * 1_000 >= u128::from(whole) * u128::from(least);
    let limit = |most: usize| if all { usize::MAX } else { most };

    let of_threads = report.of_threads();
    let own = |wait: &Wait| match of_threads {
        true => wait.ns,
        false => wait.path_ns,
    };
    let mut tiles = entries(report, own, large);
    add_unaccounted(&mut tiles, report);
    // Waiting for work is shown, and nobody's answer.
    // Nor is what a machine's first sentence tells of ever a large part of all its threads' time.
    let first = report.findings.first();
    let first = first.filter(|first| !all && of_machine(report) && first.severity > Severity::Note);
    let leads = |entry: &Entry<'_>| first.is_some_and(|first| tells_of(first, entry));
    tiles.sort_by_key(|entry| {
        let idle = of_threads && entry.cause == Cause::Idle;
        (!leads(entry), idle, Reverse(entry.ns), entry.cause)
    });
    // On a machine all that rests is one line.
    let rests = |entry: &mut Entry<'_>| !all && of_machine(report) && entry.cause.rests() && !leads(entry);
    let resting: Vec<Entry<'_>> = tiles.extract_if(.., rests).collect();
    let shown = tiles
        .iter()
        .take(limit(MAX_TILES))
        .take_while(|entry| all || large(entry.ns) || leads(entry));
    let mut rest = tiles.split_off(shown.count());
    rest.extend(resting);
    let mut rest_by_cause: BTreeMap<Cause, Ns> = BTreeMap::new();
    for entry in rest {
        *rest_by_cause.entry(entry.cause).or_default() += entry.ns;
    }
    let mut rest: Vec<(Cause, Ns)> = rest_by_cause.into_iter().collect();
    rest.sort_by_key(|(cause, ns)| (Reverse(*ns), *cause));

    // Who rests until others are done waits for nothing that anybody misses.
    let waited = |wait: &Wait| match wait.cause {
        Cause::Idle if !all => 0,
        _ => wait.handed_on_ns,
    };
    let mut handed_on = entries(report, waited, large);
    handed_on.retain(|entry| all || large(entry.ns));
    // Threads that wait side by side hand on the same stretch: together no more than there is.
    for entry in &mut handed_on {
        entry.ns = entry.ns.min(report.whole_ns());
    }
    handed_on.truncate(limit(MOST_HANDED_ON));
    Picture {
        tiles,
        handed_on,
        rest,
    }
}

/// Whether a finding is about this: the same cause, of the process or the thing that it names.
pub(crate) fn tells_of(finding: &Finding, entry: &Entry<'_>) -> bool {
    let pid = finding.asker.pid;
    let thing = finding.resource.name.as_str();
    let same = |wait: &Wait| {
        (pid != 0 && wait.asker.pid == pid) || (!thing.is_empty() && wait.resource.name == thing)
    };
    entry.cause == finding.cause && entry.members.iter().any(|(wait, _)| same(wait))
}

/// The time that entries are held against: of threads that run already, what was not waiting for work, and no less than one of them was
/// observed. A machine's thirty threads of its own that rest would otherwise hide the one that stands still all the time.
fn worth_a_look(report: &Report) -> Ns {
    let whole = report.whole_ns();
    if !report.of_threads() {
        return whole;
    }
    let idle = report.causes.iter().filter(|share| share.cause == Cause::Idle);
    let idle: Ns = idle.map(|share| share.ns).sum();
    whole.saturating_sub(idle).max(report.subject.wall_ns).min(whole)
}

/// Elapsed time whose cause could not be determined or not followed far enough: unknown (lost included), polls of which
/// it is not known what they awaited, kernel locks without a name.
pub(crate) fn unresolved(report: &Report) -> Ns {
    let whole: Ns = report
        .causes
        .iter()
        .filter(|share| matches!(share.cause, Cause::Unknown | Cause::PollWait))
        .map(|share| share.ns)
        .sum();
    let unnamed: Ns = report
        .waits
        .iter()
        .filter(|wait| wait.cause == Cause::LockKernel && wait.resource.name.is_empty())
        .map(|wait| wait.path_ns)
        .sum();
    whole + unnamed
}

/// Whether too much is unresolved for any verdict.
pub(crate) fn too_little_seen(report: &Report) -> bool {
    let limit = u128::from(report.whole_ns()) * u128::from(MOST_UNRESOLVED_PERCENT);
    u128::from(unresolved(report)) * 100 > limit
}

/// What makes two waits one entry.
#[derive(PartialEq, Eq, Hash)]
enum Place<'a> {
    /// Always one for its cause: the places are many and each says little.
    Any,
    /// The resource and the asker.
    At(ResourceKind, &'a str, Option<&'a str>, Option<&'a str>),
}

fn place(wait: &Wait) -> Place<'_> {
    match wait.cause {
        Cause::CpuUser
        | Cause::CpuInterrupt
        | Cause::SchedRunqueue
        | Cause::SchedThrottled
        | Cause::SchedSteal => Place::Any,
        _ => Place::At(
            wait.resource.kind,
            &wait.resource.name,
            wait.asker.frame.as_deref(),
            wait.asker.module.as_deref(),
        ),
    }
}

/// Entries of the time that `of` tells of each wait, largest first; what is not `large` alone is one entry a
/// cause.
fn entries<'a>(report: &'a Report, of: impl Fn(&Wait) -> Ns, large: impl Fn(Ns) -> bool) -> Vec<Entry<'a>> {
    let mut places: HashMap<(Cause, Place<'a>), Vec<(&'a Wait, Ns)>> = HashMap::new();
    for wait in &report.waits {
        let ns = of(wait);
        if ns > 0 {
            places
                .entry((wait.cause, place(wait)))
                .or_default()
                .push((wait, ns));
        }
    }
    let mut entries = Vec::new();
    let mut small: BTreeMap<Cause, Entry<'a>> = BTreeMap::new();
    for ((cause, place), members) in places {
        let ns = members.iter().map(|(_, ns)| ns).sum();
        let entry = Entry {
            cause,
            ns,
            members,
            several_places: place == Place::Any,
            error: 0,
        };
        if large(ns) {
            entries.push(entry);
            continue;
        }
        small
            .entry(cause)
            .and_modify(|sum| {
                sum.ns += ns;
                sum.members.extend(&entry.members);
                sum.several_places = true;
            })
            .or_insert(entry);
    }
    entries.extend(small.into_values());
    for entry in &mut entries {
        entry
            .members
            .sort_by_key(|(wait, ns)| (Reverse(*ns), wait.asker.pid, wait.asker.tid));
        entry.error = error(report, entry);
    }
    let order = |entry: &Entry| {
        (
            Reverse(entry.ns),
            entry.cause,
            entry.largest().map(|wait| wait.asker.tid),
        )
    };
    entries.sort_by_key(order);
    entries
}

/// One standard error of an entry's time, where looks now and then say what it was for.
fn error(report: &Report, entry: &Entry<'_>) -> Ns {
    if entry.cause.on_cpu() || !entry.members.iter().any(|(wait, _)| wait.error_ns > 0) {
        return 0;
    }
    let these: HashSet<*const Wait> = entry
        .members
        .iter()
        .map(|(wait, _)| std::ptr::from_ref(*wait))
        .collect();
    let of = |wait: &Wait| Uncertainty {
        thread: (wait.asker.pid, wait.asker.tid),
        of_these: these.contains(&std::ptr::from_ref(wait)),
        on_cpu: wait.cause.on_cpu(),
        error: match wait.how {
            How::Sampled => wait.error_ns,
            How::Exact => 0,
        },
    };
    error_together(report.waits.iter().map(of)).min(entry.ns)
}

/// Entries for elapsed time that no wait accounts for, so that the tiles add up.
fn add_unaccounted(entries: &mut Vec<Entry<'_>>, report: &Report) {
    for share in &report.causes {
        let found: Ns = entries
            .iter()
            .filter(|entry| entry.cause == share.cause)
            .map(|entry| entry.ns)
            .sum();
        let ns = share.ns.saturating_sub(found);
        if ns > 0 {
            entries.push(Entry {
                cause: share.cause,
                ns,
                members: Vec::new(),
                several_places: false,
                error: 0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST_PER_MILLE, MAX_TILES, entries, picture, too_little_seen};
    use holdup_evidence::{Cause, Ns, SystemFacts};
    use holdup_model::attributed::Attributed;
    use holdup_model::attributed::{AttributedWait, Tally};
    use holdup_model::finding::Verdicts;
    use holdup_model::report::{Backend, Finding, Recording, Report, SubjectKind};
    use holdup_report::{Subject, build};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    /// A run whose waits have these causes, resources, asking threads and times, all on the path.
    fn report(waits: &[(Cause, u8, u8, Ns)]) -> Report {
        let mut attributed = Attributed::default();
        for (cause, resource, tid, ns) in waits {
            attributed.elapsed += ns;
            let tally: &mut Tally = attributed.path.entry(*cause).or_default();
            tally.ns += ns;
            let wait: AttributedWait = serde_json::from_value(serde_json::json!({
                "cause": cause, "ns": ns, "path_ns": ns, "count": 1,
                "resource": {"name": resource.to_string()},
                "asker": {"name": {"pid": 1, "tid": tid}},
            }))
            .expect("only fields that exist");
            attributed.waits.push(wait);
        }
        let subject = Subject {
            kind: SubjectKind::Run,
            backend: Backend::Bpf,
            command: vec![],
            pids: vec![1],
            started: 0,
            exit: Some(0),
            elsewhere: vec![],
        };
        build(
            subject,
            &attributed,
            Verdicts::default(),
            &SystemFacts::default(),
            "0",
        )
    }

    #[test]
    fn the_same_of_many_threads_is_one_entry() {
        let waits: Vec<_> = (1..=8).map(|tid| (Cause::DiskSync, 1, tid, 100)).collect();
        let report = report(&waits);
        let picture = picture(&report, false);
        assert_eq!(picture.tiles.len(), 1);
        assert_eq!((picture.tiles[0].ns, picture.tiles[0].members.len()), (800, 8));
        assert!(!picture.tiles[0].several_places);
    }

    #[test]
    fn a_cause_in_many_small_places_is_not_hidden() {
        let mut waits: Vec<_> = (0..100).map(|file| (Cause::DiskRead, file, 1, 9)).collect();
        waits.push((Cause::CpuUser, 0, 1, 100));
        let report = report(&waits);
        let picture = picture(&report, false);
        assert_eq!(picture.tiles[0].cause, Cause::DiskRead);
        assert_eq!(picture.tiles[0].ns, 900);
        assert!(picture.tiles[0].several_places);
    }

    #[test]
    fn one_thread_that_stands_still_is_not_hidden_by_thirty_that_rest() {
        let mut waits: Vec<_> = (1..=30).map(|tid| (Cause::Idle, 0, tid, 100)).collect();
        waits.push((Cause::LockMonitor, 0, 31, 95));
        waits.push((Cause::DiskRead, 0, 31, 2));
        let mut report = report(&waits);
        report.subject.kind = SubjectKind::Attach;
        report.subject.wall_ns = 100;
        let listed: Vec<_> = picture(&report, false)
            .tiles
            .iter()
            .map(|entry| entry.cause)
            .collect();
        assert!(
            listed.contains(&Cause::LockMonitor) && !listed.contains(&Cause::DiskRead),
            "{listed:?}"
        );
        // Of a server that rests but for moments nothing is worth a line.
        waits.retain(|wait| wait.0 != Cause::LockMonitor);
        let mut rests = self::report(&waits);
        rests.subject.kind = SubjectKind::Attach;
        rests.subject.wall_ns = 100;
        let listed: Vec<_> = picture(&rests, false)
            .tiles
            .iter()
            .map(|entry| entry.cause)
            .collect();
        assert!(!listed.contains(&Cause::DiskRead), "{listed:?}");
    }

    #[test]
    fn what_a_machines_first_sentence_tells_of_is_the_first_line() {
        let mut waits: Vec<_> = (1..=40).map(|tid| (Cause::IpcPipe, 0, tid, 100)).collect();
        waits.push((Cause::ProcessStopped, 7, 41, 90));
        let mut report = report(&waits);
        report.subject.kind = SubjectKind::Attach;
        report.subject.wall_ns = 100;
        let first = |report: &Report| picture(report, false).tiles[0].cause;
        report.recording = Some(Recording {
            machine: true,
            ..Recording::default()
        });
        assert_eq!(first(&report), Cause::IpcPipe);
        let finding = |severity: &str, resource: &str| -> Finding {
            serde_json::from_value(serde_json::json!({
                "rule": "r", "severity": severity, "title": "t", "cause": Cause::ProcessStopped, "ns": 90, "share": null,
                "resource": {"kind": "process", "name": resource, "detail": {}},
                "asker": {"pid": 0, "tid": 0, "process": "", "thread": "", "frame": null, "module": null, "stack": []},
                "evidence": [], "remedies": [], "confidence": "proved",
            }))
            .expect("only fields that exist")
        };
        report.findings = vec![finding("warning", "7")];
        assert_eq!(first(&report), Cause::ProcessStopped);
        // Neither a note nor what is about another thing.
        for other in [finding("note", "7"), finding("warning", "8")] {
            report.findings = vec![other];
            assert_eq!(first(&report), Cause::IpcPipe);
        }
    }

    #[test]
    fn time_without_a_wait_is_an_entry_too() {
        let mut report = report(&[(Cause::CpuUser, 0, 1, 10), (Cause::DiskRead, 0, 1, 90)]);
        report.waits.retain(|wait| wait.cause != Cause::DiskRead);
        let picture = picture(&report, false);
        assert_eq!(picture.tiles[0].cause, Cause::DiskRead);
        assert!(picture.tiles[0].members.is_empty());
    }

    #[test]
    fn what_is_handed_on_is_no_tile() {
        let mut report = report(&[(Cause::TimerSleep, 0, 2, 100), (Cause::IpcPipe, 0, 1, 100)]);
        report.subject.wall_ns = 100;
        report.causes.retain(|share| share.cause == Cause::TimerSleep);
        for wait in report
            .waits
            .iter_mut()
            .filter(|wait| wait.cause == Cause::IpcPipe)
        {
            (wait.path_ns, wait.handed_on_ns) = (0, wait.path_ns);
        }
        let picture = picture(&report, false);
        assert_eq!(picture.tiles.len(), 1);
        assert_eq!(picture.handed_on.len(), 1);
        assert_eq!(picture.handed_on[0].cause, Cause::IpcPipe);
    }

    #[test]
    fn what_is_unresolved_counts_against_a_verdict() {
        let with = |cause, resource: &str, percent| {
            let mut report = report(&[(Cause::CpuUser, 0, 1, 100 - percent), (cause, 0, 1, percent)]);
            let wait = report.waits.iter_mut().find(|wait| wait.cause == cause);
            wait.expect("it was put in").resource.name = resource.to_owned();
            too_little_seen(&report)
        };
        assert!(!with(Cause::Unknown, "", 30));
        assert!(with(Cause::Unknown, "", 31));
        assert!(with(Cause::PollWait, "eventfd", 31));
        assert!(with(Cause::LockKernel, "", 31));
        assert!(!with(Cause::LockKernel, "inode lock of /tmp/x", 31));
        assert!(!with(Cause::DiskRead, "", 31));
    }

    proptest! {
        #[test]
        fn tiles_and_rest_are_the_elapsed_time(
            waits in proptest::collection::vec(
                (0_usize..Cause::ALL.len(), any::<u8>(), 1_u8..5, 1_u64..1_000_000), 1..60),
            all in any::<bool>(),
        ) {
            let waits: Vec<_> = waits.into_iter().map(|(at, r, t, ns)| (Cause::ALL[at], r, t, ns)).collect();
            let report = report(&waits);
            let picture = picture(&report, all);
            let tiles: Ns = picture.tiles.iter().map(|entry| entry.ns).sum();
            let rest: Ns = picture.rest.iter().map(|(_, ns)| ns).sum();
            prop_assert_eq!(tiles + rest, report.subject.wall_ns);
            prop_assert!(picture.tiles.is_sorted_by(|a, b| a.ns >= b.ns));
            prop_assert!(all || picture.tiles.len() <= MAX_TILES);
            prop_assert!(!all || rest == 0);
            prop_assert!(all || picture.tiles.iter().all(|entry| entry.ns * 1_000 >= LEAST_PER_MILLE * report.subject.wall_ns));
            prop_assert!(entries(&report, |wait| wait.ns, |_| true).iter().all(|entry| !entry.members.is_empty()));
        }
    }
}
