//! From a look at a machine to the report of `holdup host`, whether the look was now or is read from a recording.
//!
//! In: what was seen. Out: the report. The rules are those of `holdup read`; nothing is read here, no clock either.

use holdup_diagnosis::host as machine;
use holdup_diagnosis::randomness::aspects;
use holdup_diagnosis::rules::{Run, judge};
use holdup_evidence::host::HostLook;
use holdup_evidence::{Ns, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, NotMeasured, Report, SubjectKind};
use holdup_report::Subject;

/// What was looked at, and from when on (`CLOCK_MONOTONIC`).
pub(crate) fn subject(started: Ns) -> Subject {
    Subject {
        kind: SubjectKind::Host,
        backend: Backend::Proc,
        command: vec!["this machine".to_owned()],
        pids: Vec::new(),
        started,
        exit: None,
        elsewhere: vec![],
    }
}

/// Judges it. `attributed` has the figures of the look itself: how long it was, what it cost.
pub(crate) fn report(
    subject: Subject,
    attributed: &Attributed,
    facts: &SystemFacts,
    look: &HostLook,
) -> Report {
    let run = Run::of_artefacts(attributed, facts, &look.observed);
    let judgement = judge(&run);
    let mut host = machine::of(&look.observed, facts, &look.sight);
    machine::mark_short(&mut host, &judgement.findings);
    host.randomness = aspects(&look.randomness);
    // Its date is known by these; the rest of them is reported in its own section.
    let clocks = SystemFacts {
        unix_minus_monotonic: facts.unix_minus_monotonic,
        boot_minus_monotonic: facts.boot_minus_monotonic,
        ..SystemFacts::default()
    };
    let version = env!("CARGO_PKG_VERSION");
    let mut report = holdup_report::build(subject, attributed, judgement.into(), &clocks, version);
    report.subject.wall_ns = attributed.wall;
    if attributed.coverage.observed == 0 {
        report.coverage.observed_ns = None;
        report.coverage.attributed_ns = None;
        report.coverage.unknown_ns = None;
    }
    let holes = look.sight.holes.iter().map(|hole| NotMeasured {
        what: hole.what.clone(),
        why: hole.why.clone(),
        fix: hole.fix.clone(),
    });
    report.coverage.not_measured = holes.collect();
    report.coverage.not_measured.push(NotMeasured {
        what: "how long each wait took".to_owned(),
        why: "task lists are snapshots, so the length of a wait is unknown".to_owned(),
        fix: "holdup attach".to_owned(),
    });
    report.coverage.not_measured.push(NotMeasured {
        what: "which processes read randomness, how much and for how long".to_owned(),
        why: "no file reports it, and a probe on these calls would slow down every system call of the machine"
            .to_owned(),
        fix: "use `holdup attach`: it reports the processes that wait for randomness, and the CPU time of getrandom".to_owned(),
    });
    report.host = Some(host);
    report
}
