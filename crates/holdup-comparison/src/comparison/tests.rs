//! Comparisons of made-up sources, said in words.

use super::frames::Frames;
use super::made::Thing;
use super::runs::{Part, Run};
use super::source::{Measured, REQUEST, RUN, SECOND, Source};
use super::{Per, Side, compare};
use holdup_evidence::observed::{Samples, Weight};
use holdup_evidence::{Cause, Observed, SystemFacts};
use holdup_model::report::{Compared, Comparison, Measure, Presence};
use std::collections::BTreeMap;

const MS: f64 = 1e6;

/// One attach, with so many requests.
fn recording(name: &str, requests: f64, causes: &[(Cause, f64)], made: &[(Thing, f64)]) -> Source {
    let run = |units: f64| Run {
        units,
        total: causes.iter().map(|(_, ms)| ms * MS * requests).sum(),
        parts: causes
            .iter()
            .map(|(cause, ms)| (Part::own(cause.id()), ms * MS * requests))
            .collect(),
        stretches: Vec::new(),
    };
    Source {
        name: name.to_owned(),
        what: Some(Compared::Recordings),
        measure: Measure::Ns,
        runs: vec![Measured {
            run: run(1.0),
            units: BTreeMap::from([(SECOND, 60.0), (REQUEST, requests)]),
            requests: Some(run(requests)),
            made: made
                .iter()
                .map(|(what, each)| (what.clone().into(), each * requests))
                .collect(),
        }],
        facts: BTreeMap::from([("kernel".to_owned(), "6.12".to_owned())]),
        notes: Vec::new(),
        stacks: Default::default(),
    }
}

fn side(sources: Vec<Source>) -> Side {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    Side {
        name: names.join(", "),
        sources,
    }
}

/// Another client: no thread for each handshake any more, and no session taken up again.
fn traded() -> (Side, Side) {
    let before = recording(
        "before",
        500.0,
        &[
            (Cause::NetReceive, 20.8),
            (Cause::CpuUser, 20.4),
            (Cause::SchedRunqueue, 5.0),
        ],
        &[(Thing::Threads, 1.0), (Thing::ResumedHandshakes, 1.0)],
    );
    let mut after = recording(
        "after",
        400.0,
        &[
            (Cause::NetReceive, 37.0),
            (Cause::CpuUser, 20.4),
            (Cause::SchedRunqueue, 0.5),
        ],
        &[(Thing::FullHandshakes, 1.0)],
    );
    after.facts.insert("kernel".to_owned(), "6.18".to_owned());
    (side(vec![before]), side(vec![after]))
}

#[test]
fn a_trade_is_named_and_nothing_is_claimed_of_one_run_each() {
    let (before, after) = traded();
    let comparison = compare(&before, &after, &[], None).unwrap();
    assert_eq!(
        (comparison.unit.as_str(), comparison.change_ns),
        ("request", Some(11_700_000))
    );
    assert_eq!(comparison.significant, None);
    assert_eq!(
        comparison.verdict,
        [
            "AFTER took longer than BEFORE: +11.7 ms (+25.3 %) a request (BEFORE 46.2 ms, AFTER 57.9 ms), more than all of it \
             waiting for a network peer to send, none of it unexplained; AFTER has fewer threads, but a full TLS handshake each \
             time.",
            "More than all of it is waiting for a network peer to send (net.receive), +16.2 ms (BEFORE 20.8 ms, AFTER 37.0 ms).",
            "BEFORE and AFTER are one run each, so this may be noise: run-to-run variation was not measured. \
             Record at least four runs of each to know.",
        ]
    );
    assert_eq!(
        comparison.trade.as_deref(),
        Some(
            "AFTER has fewer threads made (BEFORE 1, AFTER 0 a request), but more TLS handshakes in full (BEFORE 0, AFTER 1 a \
             request), fewer TLS handshakes resumed (BEFORE 1, AFTER 0 a request) and more waiting for a network peer to \
             send (BEFORE 20.8 ms, AFTER 37.0 ms a request)."
        )
    );
    assert_eq!(comparison.differences[0].what, "kernel");
    assert_eq!(
        (comparison.explained_ns, comparison.unexplained_ns),
        (Some(11_700_000), Some(0))
    );
}

#[test]
fn what_was_made_is_told_briefly_and_with_its_price() {
    let clause = |before: &[(Thing, f64)], after: &[(Thing, f64)], ms: f64| {
        let side_of =
            |made: &[(Thing, f64)], ms: f64| side(vec![recording("r", 100.0, &[(Cause::NetTls, ms)], made)]);
        let comparison = compare(&side_of(before, 5.0), &side_of(after, ms), &[], None).unwrap();
        let (_, clause) = comparison.verdict[0].split_once("; ").unwrap_or(("", ""));
        (clause.to_owned(), comparison.trade.is_some())
    };
    let threads = [(Thing::Threads, 1.0)];
    let full = [(Thing::FullHandshakes, 1.0)];
    let some = [(Thing::FullHandshakes, 0.4)];
    let said = |words: &str, trade: bool| (words.to_owned(), trade);
    assert_eq!(
        clause(&threads, &full, 9.0),
        said(
            "AFTER has fewer threads, but a full TLS handshake each time.",
            true
        )
    );
    assert_eq!(
        clause(&threads, &some, 9.0),
        said("AFTER has fewer threads, but more full TLS handshakes.", true)
    );
    // The other way round the gain is the other, and what was won is not called each time's.
    assert_eq!(
        clause(&full, &threads, 9.0),
        said(
            "AFTER has fewer full TLS handshakes, but a thread made each time.",
            true
        )
    );
    assert_eq!(
        clause(&threads, &[(Thing::Threads, 0.0)], 2.0),
        said("AFTER has fewer threads.", false)
    );
    assert_eq!(
        clause(&threads, &[(Thing::Threads, 0.0)], 9.0),
        said(
            "AFTER has fewer threads, but more waiting in a TLS handshake.",
            true
        )
    );
    assert_eq!(clause(&threads, &threads, 9.0), said("", false));
}

#[test]
fn what_one_side_does_not_tell_of_builds_is_no_difference() {
    let (mut before, mut after) = traded();
    let fact = |side: &mut Side, what: &str, is: &str| {
        side.sources[0].facts.insert(what.to_owned(), is.to_owned());
    };
    fact(&mut before, "build of libssl.so.3", "aa");
    fact(&mut after, "build of libssl.so.3", "bb");
    fact(&mut before, "build of libnet.so", "cc");
    fact(&mut after, "Java virtual machine", "OpenJDK 17 -Xmx1g");
    let comparison = compare(&before, &after, &[], None).unwrap();
    let named: Vec<&str> = comparison
        .differences
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    assert_eq!(named, ["Java virtual machine", "build of libssl.so.3", "kernel"]);
    assert_eq!(comparison.differences[0].before, "unknown");
}

#[test]
fn the_other_way_round_everything_is_the_other_way() {
    let (before, after) = traded();
    let there = compare(&before, &after, &[], None).unwrap();
    let back = compare(&after, &before, &[], None).unwrap();
    assert_eq!(there.change_ns.map(|ns| -ns), back.change_ns);
    for one in &there.causes {
        let other = back.causes.iter().find(|other| other.cause == one.cause).unwrap();
        assert_eq!((one.change_ns, one.before_ns), (-other.change_ns, other.after_ns));
    }
    assert!(
        back.trade
            .unwrap()
            .starts_with("AFTER has fewer TLS handshakes in full")
    );
}

#[test]
fn several_runs_each_are_told_from_chance() {
    let runs = |paces: [f64; 4], more: f64| {
        let one = |pace: f64| {
            let causes = [
                (Cause::DiskSync, (10.0 + more) * pace),
                (Cause::CpuUser, 5.0 * pace),
            ];
            recording("run", 100.0, &causes, &[])
        };
        side(paces.map(one).to_vec())
    };
    let paces = [1.0, 1.01, 0.99, 1.005];
    let comparison = compare(&runs(paces, 0.0), &runs(paces, 3.0), &[], None).unwrap();
    assert_eq!(
        (comparison.significant, comparison.before_n, comparison.after_n),
        (Some(true), 4, 4)
    );
    assert!(
        comparison.verdict[0].starts_with("AFTER is slower than BEFORE: +3.0 ms"),
        "{:?}",
        comparison.verdict
    );
    let significant = |cause: Cause| {
        comparison
            .causes
            .iter()
            .find(|one| one.cause == cause)
            .unwrap()
            .significant
    };
    assert_eq!(significant(Cause::DiskSync), Some(true));
    assert_eq!(significant(Cause::CpuUser), Some(false));
    let [low, high] = comparison.interval_ns.unwrap();
    assert!(low > 2_000_000 && high < 4_000_000, "{low} {high}");
    let same = compare(&runs(paces, 0.0), &runs([1.01, 1.0, 1.005, 0.99], 0.0), &[], None).unwrap();
    assert_eq!(same.significant, Some(false));
    // Three and three can't tell, and say what could.
    let three = |side: Side| Side {
        sources: side.sources[..3].to_vec(),
        ..side
    };
    let few = compare(&three(runs(paces, 0.0)), &three(runs(paces, 3.0)), &[], None).unwrap();
    assert_eq!((few.significant, few.interval_ns), (None, None));
    assert!(
        few.verdict
            .last()
            .unwrap()
            .contains("Record at least four runs of each to know"),
        "{:?}",
        few.verdict
    );
    // One each, and others like BEFORE.
    let one = |side: Side| Side {
        sources: side.sources[..1].to_vec(),
        ..side
    };
    let noise = runs(paces, 0.0).sources;
    let noted = compare(&one(runs(paces, 0.0)), &one(runs(paces, 3.0)), &noise, None).unwrap();
    assert_eq!((noted.significant, noted.noise_n), (Some(true), 4));
}

#[test]
fn what_can_not_be_compared_is_said_in_a_sentence() {
    let (recorded, _) = traded();
    let times = side(vec![Source {
        what: Some(Compared::Times),
        ..recorded.sources[0].clone()
    }]);
    let why =
        |before: &Side, after: &Side, per: Option<&Per>| compare(before, after, &[], per).unwrap_err().0;
    assert_eq!(
        why(&recorded, &times, None),
        "BEFORE is recordings of holdup, AFTER is times: give two of one kind"
    );
    assert!(why(&Side::default(), &recorded, None).starts_with("BEFORE () has nothing that can be compared"));
    let messages = Per::Counted("message".to_owned());
    assert_eq!(
        why(&recorded, &recorded, Some(&messages)),
        "BEFORE and AFTER counts no messages: give how many there were, --per message=BEFORE,AFTER"
    );
    let mut run = recorded.clone();
    run.sources[0].runs[0].units = BTreeMap::from([(RUN, 1.0)]);
    run.sources[0].runs[0].requests = None;
    assert!(why(&recorded, &run, None).contains("no unit of work in common"));
    let given = Per::Given {
        unit: "message".to_owned(),
        before: 100.0,
        after: 200.0,
    };
    let comparison = compare(&recorded, &recorded, &[], Some(&given)).unwrap();
    assert_eq!(
        (
            comparison.unit.as_str(),
            comparison.before_ns,
            comparison.after_ns
        ),
        ("message", Some(231_000_000), Some(115_500_000))
    );
}

fn profile(stacks: &[(&str, u64)]) -> Source {
    let mut frames = Frames::default();
    for (stack, weight) in stacks {
        frames.add(stack.as_bytes(), *weight);
    }
    Source::of_profile("profile".to_owned(), &frames, Weight::Count)
}

/// What is listed of a function.
fn listed<'a>(comparison: &'a Comparison, name: &str) -> &'a holdup_model::report::AmountChange {
    comparison.amounts.iter().find(|one| one.name == name).unwrap()
}

#[test]
fn profiles_are_scaled_to_the_whole_and_twice_as_long_is_the_same() {
    let stacks = [("run;get;read", 450_u64), ("run;get;write", 550)];
    let twice = stacks.map(|(stack, weight)| (stack, weight * 2));
    let comparison = compare(
        &side(vec![profile(&stacks)]),
        &side(vec![profile(&twice)]),
        &[],
        None,
    )
    .unwrap();
    assert_eq!(comparison.amounts, []);
    assert_eq!(
        comparison.verdict,
        ["No difference: BEFORE and AFTER have the same."]
    );
    let after = [("run;get;read", 640_u64), ("run;get;wait", 5), ("run;get", 355)];
    let comparison = compare(
        &side(vec![profile(&stacks)]),
        &side(vec![profile(&after)]),
        &[],
        None,
    )
    .unwrap();
    assert_eq!((comparison.significant, comparison.before_ns), (None, None));
    let read = listed(&comparison, "read");
    assert!(
        (read.change - 0.19).abs() < 1e-9 && read.within_sampling == Some(false),
        "{read:?}"
    );
    assert_eq!(listed(&comparison, "write").presence, Presence::Gone);
    assert_eq!(listed(&comparison, "wait").presence, Presence::New);
    assert!(
        comparison.amounts.iter().all(|one| one.name != "run"),
        "what is in all stacks does not change"
    );
}

#[test]
fn few_samples_scatter() {
    let comparison = compare(
        &side(vec![profile(&[("run;read", 50), ("run;write", 50)])]),
        &side(vec![profile(&[("run;read", 53), ("run;write", 47)])]),
        &[],
        None,
    );
    let comparison = comparison.unwrap();
    assert!(
        comparison
            .amounts
            .iter()
            .all(|one| one.within_sampling == Some(true))
    );
    assert!(
        comparison.verdict[0].starts_with("No significant difference"),
        "{:?}",
        comparison.verdict
    );
}

#[test]
fn a_profile_beside_times_is_in_time() {
    let timed = |ms: f64, read: u64| {
        let mut times = recording("time", 500.0, &[(Cause::Unknown, ms)], &[]);
        times.what = Some(Compared::Times);
        side(vec![
            times,
            profile(&[("get;socketRead", read), ("get", 1_000 - read)]),
        ])
    };
    let comparison = compare(&timed(46.186, 450), &timed(57.86, 640), &[], None).unwrap();
    let read = listed(&comparison, "socketRead");
    // 45 % of 46.2 ms, 64 % of 57.9 ms: what the field report worked out by hand.
    assert!(
        (read.before / MS - 20.78).abs() < 0.01 && (read.after / MS - 37.03).abs() < 0.01,
        "{read:?}"
    );
    assert_eq!(comparison.change_ns, Some(11_674_000));
    assert!(
        comparison.verdict[1].starts_with("More than all of it is in socketRead"),
        "{:?}",
        comparison.verdict
    );
}

#[test]
fn thread_dumps_of_a_series_are_one_run() {
    use holdup_evidence::observed::{SeenThread, Snapshot, SnapshotKind};
    let dumps = |count: usize, readers: usize| {
        let mut observed = Observed::default();
        let stack = observed.stacks.intern(["read", "main"]);
        let thread = SeenThread {
            stack: Some(stack),
            ..SeenThread::default()
        };
        observed.snapshots = vec![
            Snapshot {
                threads: vec![thread; readers],
                ..Snapshot::new(SnapshotKind::Jvm, Default::default())
            };
            count
        ];
        side(super::artefacts::sources(
            "dumps",
            &observed,
            &SystemFacts::default(),
            None,
        ))
    };
    let comparison = compare(&dumps(3, 2), &dumps(6, 5), &[], None).unwrap();
    let read = listed(&comparison, "read");
    assert_eq!(
        (read.before, read.after, read.measure),
        (2.0, 5.0, Measure::Threads)
    );
    assert_eq!(
        (
            comparison.unit.as_str(),
            comparison.before_n,
            comparison.significant
        ),
        ("dump", 1, None)
    );
}

#[test]
fn a_profile_of_which_stacks_were_left_out_says_so() {
    let mut observed = Observed::default();
    let stack = observed.stacks.intern(["read", "main"]);
    observed.samples = vec![Samples {
        source: 0,
        weight: Weight::Us,
        waiting: None,
        stacks: vec![(stack, 75)],
        total: 100,
        quote: Default::default(),
    }];
    let sources = super::artefacts::sources("p", &observed, &SystemFacts::default(), None);
    assert!(sources[0].notes[0].contains("25.0 %"), "{:?}", sources[0].notes);
}
