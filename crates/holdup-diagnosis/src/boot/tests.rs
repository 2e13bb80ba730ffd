//! Time that is proved goes to one cause only, and what is not known to be of one boot is never joined.

use super::{attribute, free, of, tenths};
use holdup_artefacts::attribute as of_calls;
use holdup_evidence::observed::{BootStep, Happening, KernelEvent, Quote, Source, UnitEvent, What, When};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::report::MilestoneKind;

const SECOND: Ns = 1_000_000_000;

fn source(name: &str) -> Source {
    Source {
        name: name.to_owned(),
        format: "journal".to_owned(),
        kernel_lines: 10,
        manager_lines: 10,
        ..Source::default()
    }
}

fn happening(source: u32, line: u64, second: Ns, what: What) -> Happening {
    Happening {
        what,
        at: Some(When::Unix(1_000 * SECOND as i64 + (second * SECOND) as i64)),
        since_boot: Some(second * SECOND),
        quote: Quote { source, line },
        text: format!("line {line}"),
    }
}

fn starting(unit: &str) -> What {
    What::Unit(UnitEvent::Starting {
        unit: unit.to_owned(),
    })
}

fn timed_out(unit: &str) -> What {
    What::Unit(UnitEvent::TimedOut {
        unit: unit.to_owned(),
        step: "start".to_owned(),
    })
}

fn boot() -> What {
    What::Kernel(KernelEvent::Boot {
        release: "6.1".to_owned(),
        id: None,
    })
}

/// A boot with these starts that ran out of time: unit, begin, end.
fn observed(starts: &[(&str, Ns, Ns)]) -> Observed {
    let mut happenings = vec![happening(0, 1, 0, boot())];
    let mut events: Vec<(Ns, What)> = Vec::new();
    for (unit, begin, end) in starts {
        events.push((*begin, starting(unit)));
        events.push((*end, timed_out(unit)));
    }
    events.sort_by_key(|(second, _)| *second);
    for (line, (second, what)) in (2..).zip(events) {
        happenings.push(happening(0, line, second, what));
    }
    Observed {
        sources: vec![source("boot.log")],
        happenings,
        ..Observed::default()
    }
}

#[test]
fn waits_that_overlap_are_counted_once() {
    let observed = observed(&[
        ("dev-sdb1.device", 5, 95),
        ("web.service", 50, 140),
        ("short.service", 60, 70),
    ]);
    let found = of(&observed);
    assert_eq!(found.waits.len(), 3);
    let mut attributed = of_calls(&observed);
    attribute(&observed, &found, &mut attributed);
    let ns = |cause| attributed.path.get(&cause).map(|tally| tally.ns / SECOND);
    assert_eq!((ns(Cause::DeviceWait), ns(Cause::Unknown)), (Some(90), Some(45)));
    assert_eq!(attributed.elapsed, 140 * SECOND);
}

#[test]
fn what_is_free_of_an_interval() {
    let given = [(10, 20), (15, 30), (40, 50)];
    for ((begin, end), left) in [
        ((0, 5), 5),
        ((0, 60), 30),
        ((12, 18), 0),
        ((25, 45), 10),
        ((50, 55), 5),
        ((20, 20), 0),
    ] {
        assert_eq!(free(begin, end, &given), left, "{begin} to {end}");
    }
}

#[test]
fn what_came_hours_later_is_not_of_the_boot() {
    let found = of(&observed(&[("a.service", 5, 95), ("late.service", 7_200, 7_290)]));
    let units: Vec<&str> = found.waits.iter().map(|wait| wait.unit.as_str()).collect();
    assert_eq!(units, ["a.service"]);
    assert!(
        found.verdict.contains("90 s of it a.service"),
        "{}",
        found.verdict
    );
}

#[test]
fn another_log_without_a_common_clock_stays_apart() {
    let mut observed = observed(&[("a.service", 5, 95)]);
    observed.sources.push(source("other.log"));
    let mut other = happening(1, 1, 3, starting("b.service"));
    // As dmesg prints it, without any date: no clock of the first.
    (other.at, other.since_boot) = (Some(When::SinceStart(3)), None);
    observed.happenings.push(other);
    let found = of(&observed);
    assert_eq!(found.apart, ["other.log"]);
    assert!(
        found
            .milestones
            .iter()
            .all(|one| !one.source.starts_with("other"))
    );
}

#[test]
fn nothing_at_all_is_no_boot() {
    let found = of(&Observed::default());
    assert_eq!((found.took_ns, found.milestones.len()), (None, 0));
    assert_eq!(found.verdict, "The duration of the boot is not known.");
}

#[test]
fn parts_read_as_people_compare_them() {
    for (ms, text) in [
        (90_000, "90 s"),
        (101_669, "101.7 s"),
        (120_030, "120 s"),
        (1_500, "1.50 s"),
    ] {
        assert_eq!(tenths(ms * 1_000_000), text);
    }
}

fn seeded() -> What {
    What::Kernel(KernelEvent::RandomSeeded { fully: true })
}

fn init() -> What {
    What::Kernel(KernelEvent::Step(BootStep::InitStarted {
        program: "/init".to_owned(),
    }))
}

/// A kernel's log in which these happen, each in its second.
fn kernel_log(events: Vec<(Ns, What)>) -> Observed {
    let mut log = observed(&[]);
    for (line, (second, what)) in (2..).zip(events) {
        log.happenings.push(happening(0, line, second, what));
    }
    log
}

#[test]
fn a_seeding_before_the_first_program_is_neither_the_end_of_the_boot_nor_anybodys_wait() {
    let found = of(&kernel_log(vec![(0, seeded()), (2, init())]));
    assert_eq!(found.took_ns, Some(2 * SECOND));
    assert!(found.verdict.contains("/init"), "{}", found.verdict);
    let seeding = found
        .milestones
        .iter()
        .find(|one| one.what == MilestoneKind::RandomSeeded);
    assert_eq!(seeding.unwrap().text, "the random generator is seeded");
}

#[test]
fn programs_that_ran_before_the_seeding_are_said_to_have_had_nothing() {
    let found = of(&kernel_log(vec![(2, init()), (12, seeded())]));
    assert_eq!(found.took_ns, Some(12 * SECOND));
    let seeding = found
        .milestones
        .iter()
        .find(|one| one.what == MilestoneKind::RandomSeeded);
    let text = &seeding.unwrap().text;
    assert!(
        text.contains("10.0 s after the first program") || text.contains("10 s after the first program"),
        "{text}"
    );
}
