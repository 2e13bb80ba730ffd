//! Comparisons, made as they are made of real ones, from made-up numbers.

use super::MS;
use holdup_comparison::comparison::frames::Frames;
use holdup_comparison::comparison::made::Thing;
use holdup_comparison::comparison::runs::{Part, Run};
use holdup_comparison::comparison::source::{Measured, REQUEST, Source};
use holdup_comparison::comparison::{Side, compare};
use holdup_evidence::Cause;
use holdup_evidence::observed::Weight;
use holdup_model::report::{Backend, Compared, Measure, Report, SubjectKind};
use std::collections::BTreeMap;

/// A cause and its time a request, µs.
type Each = (Cause, u64);

fn run(causes: &[Each], pace: f64, made: &[(Thing, f64)], kernel: &str) -> Source {
    let requests = 500.0;
    let ns = |us: u64| us as f64 * MS as f64 / 1e3 * requests * pace;
    let run = Run {
        units: requests,
        total: causes.iter().map(|(_, us)| ns(*us)).sum(),
        parts: causes
            .iter()
            .map(|(cause, us)| (Part::own(cause.id()), ns(*us)))
            .collect(),
        stretches: Vec::new(),
    };
    Source {
        name: "client.json".to_owned(),
        what: Some(Compared::Recordings),
        measure: Measure::Ns,
        runs: vec![Measured {
            units: BTreeMap::from([(REQUEST, requests)]),
            requests: Some(run.clone()),
            run,
            made: made
                .iter()
                .map(|(what, each)| (what.clone().into(), each * requests))
                .collect(),
        }],
        facts: BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]),
        notes: Vec::new(),
        stacks: Default::default(),
    }
}

fn report(before: &Side, after: &Side) -> Report {
    let command = vec![before.name.clone(), after.name.clone()];
    let mut report = super::without_waits(SubjectKind::Diff, Backend::Artefact, command);
    report.comparison = Some(compare(before, after, &[], None).expect("they are of one kind"));
    report
}

/// Another HTTP client: no thread for each handshake, and no session that is taken up again. Four runs each.
pub fn traded() -> Report {
    const BEFORE: &[Each] = &[
        (Cause::NetReceive, 20_800),
        (Cause::CpuUser, 20_400),
        (Cause::SchedRunqueue, 4_800),
        (Cause::Unknown, 200),
    ];
    const AFTER: &[Each] = &[
        (Cause::NetReceive, 36_900),
        (Cause::CpuUser, 20_500),
        (Cause::Unknown, 480),
    ];
    let side = |name: &str, causes: &[Each], made: &[(Thing, f64)], kernel: &str| Side {
        name: name.to_owned(),
        sources: [1.0, 1.004, 0.997, 1.001]
            .map(|pace| run(causes, pace, made, kernel))
            .to_vec(),
    };
    report(
        &side(
            "java-client",
            BEFORE,
            &[(Thing::Threads, 1.0), (Thing::ResumedHandshakes, 1.0)],
            "6.12.9",
        ),
        &side("apache-client", AFTER, &[(Thing::FullHandshakes, 1.0)], "6.18.1"),
    )
}

/// One run each.
pub fn one_each() -> Report {
    let side = |name: &str, us: u64| Side {
        name: name.to_owned(),
        sources: vec![run(
            &[(Cause::DiskSync, us), (Cause::CpuUser, 300)],
            1.0,
            &[],
            "6.12.9",
        )],
    };
    report(&side("monday.json", 1_200), &side("tuesday.json", 1_900))
}

/// Profiles, with functions that came and went, and lambdas that have other addresses.
pub fn profiles() -> Report {
    let side = |name: &str, stacks: &[(&str, u64)]| {
        let mut frames = Frames::default();
        for (stack, weight) in stacks {
            frames.add(stack.as_bytes(), *weight);
        }
        Side {
            name: name.to_owned(),
            sources: vec![Source::of_profile(name.to_owned(), &frames, Weight::Count)],
        }
    };
    report(
        &side(
            "before.collapsed",
            &[
                (
                    "java/lang/Thread.run;shop/Controller.get;shop/Client$$Lambda$14/0x7f01.run;java/net/SocketInputStream.socketRead0",
                    4_500,
                ),
                (
                    "java/lang/Thread.run;shop/Controller.get;shop/Client$$Lambda$14/0x7f01.run;java/lang/Thread.start0",
                    800,
                ),
                ("java/lang/Thread.run;shop/Controller.get;shop/Json.write", 4_700),
            ],
        ),
        &side(
            "after.collapsed",
            &[
                (
                    "java/lang/Thread.run;shop/Controller.get;shop/Client$$Lambda$99/0x7fee.run;java/net/SocketInputStream.socketRead0",
                    12_800,
                ),
                (
                    "java/lang/Thread.run;shop/Controller.get;shop/Client$$Lambda$99/0x7fee.run;sun/security/x509/X509CertImpl.verify",
                    400,
                ),
                ("java/lang/Thread.run;shop/Controller.get;shop/Json.write", 6_800),
            ],
        ),
    )
}
