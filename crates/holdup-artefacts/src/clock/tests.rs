//! What is one instant, what is not, and what is not known.

use super::Clock;
use holdup_evidence::Observed;
use holdup_evidence::observed::{Civil, Happening, KernelEvent, Quote, Source, Taken, What, When};

const SECOND: u64 = 1_000_000_000;

fn wall(second: u64) -> When {
    When::Civil(Civil {
        day: Some(100),
        year_known: false,
        of_day: second * SECOND,
    })
}

fn at(source: u32, line: u64) -> Quote {
    Quote { source, line }
}

fn happening(source: u32, line: u64, what: KernelEvent, at: Option<When>, boot: Option<u64>) -> Happening {
    Happening {
        what: What::Kernel(what),
        at,
        since_boot: boot.map(|second| second * SECOND),
        quote: Quote { source, line },
        text: String::new(),
    }
}

fn boot(id: Option<&str>) -> KernelEvent {
    KernelEvent::Boot {
        release: "6.1".to_owned(),
        id: id.map(str::to_owned),
    }
}

const SEEDED: KernelEvent = KernelEvent::RandomSeeded { fully: true };

fn observed(hosts: &[Option<&str>], happenings: Vec<Happening>) -> Observed {
    let source = |host: &Option<&str>| Source {
        host: host.map(str::to_owned),
        ..Source::default()
    };
    Observed {
        sources: hosts.iter().map(source).collect(),
        happenings,
        ..Observed::default()
    }
}

#[test]
fn one_wall_is_one_clock_and_two_hosts_are_two() {
    let of = |one, other| {
        let observed = observed(&[one, other], vec![]);
        let clock = Clock::of(&observed);
        clock.same_instant((&at(0, 1), wall(50)), (&at(1, 1), wall(51)), SECOND)
    };
    assert_eq!(of(Some("box"), Some("box.example")), Some(true));
    assert_eq!(of(Some("box"), None), Some(true));
    assert_eq!(of(Some("box"), Some("other")), None);
}

#[test]
fn two_boots_are_never_joined_by_their_time_since_boot() {
    let since = |second| When::SinceBoot(second * SECOND);
    let of = |happenings| {
        let observed = observed(&[None, None], happenings);
        let clock = Clock::of(&observed);
        clock.apart((&at(0, 9), since(105)), (&at(1, 9), since(105)))
    };
    let beside = |first: [Option<u64>; 2], second: [Option<u64>; 2]| {
        let of_one = |source, [began, seeded]: [Option<u64>; 2]| {
            let began = happening(source, 1, boot(None), began.map(wall), None);
            let seeded = seeded.map(|second| happening(source, 2, SEEDED, None, Some(second)));
            std::iter::once(began).chain(seeded)
        };
        of(of_one(0, first).chain(of_one(1, second)).collect())
    };
    // Nothing says that they are one.
    assert_eq!(of(vec![]), None);
    assert_eq!(beside([None, Some(102)], [None, Some(102)]), None);
    // Two boots on one wall: so long after the one is not so long after the other.
    assert_eq!(
        beside([Some(1_000), None], [Some(4_000), None]),
        Some(i128::from(3_000 * SECOND))
    );
    // Begun together, and yet another time to seed the generator: something is wrong.
    assert_eq!(beside([Some(1_000), Some(102)], [Some(1_001), Some(105)]), None);
    // They began together.
    assert_eq!(beside([Some(1_000), None], [Some(1_001), None]), Some(0));
    let with_ids = |one, other| {
        of(vec![
            happening(0, 1, boot(Some(one)), None, None),
            happening(1, 1, boot(Some(other)), None, None),
        ])
    };
    assert_eq!(with_ids("a", "a"), Some(0));
    assert_eq!(with_ids("a", "b"), None);
}

#[test]
fn a_line_with_both_clocks_joins_them() {
    let unix = |second: u64| When::Unix((second * SECOND) as i64);
    // The first line was taken three seconds late.
    let lines = vec![
        happening(0, 1, boot(None), Some(unix(1_003)), Some(0)),
        happening(0, 2, SEEDED, Some(unix(1_020)), Some(20)),
    ];
    let observed = observed(&[None, None], lines);
    let clock = Clock::of(&observed);
    let since_boot = When::SinceBoot(30 * SECOND);
    assert_eq!(
        clock.apart((&at(0, 9), since_boot), (&at(1, 1), unix(1_030))),
        Some(0)
    );
    let mut lines = observed.happenings.clone();
    lines.remove(0);
    let observed = self::observed(&[None, None], lines);
    let clock = Clock::of(&observed);
    assert_eq!(
        clock.apart((&at(0, 9), since_boot), (&at(1, 1), unix(1_031))),
        Some(i128::from(SECOND))
    );
    assert_eq!(clock.apart((&at(0, 9), since_boot), (&at(1, 1), wall(31))), None);
}

#[test]
fn a_clock_that_was_set_joins_nothing() {
    let lines = vec![
        happening(0, 1, boot(None), Some(wall(1_000)), Some(0)),
        happening(0, 2, SEEDED, Some(wall(9_020)), Some(20)),
    ];
    let observed = observed(&[None, None], lines);
    let clock = Clock::of(&observed);
    assert_eq!(
        clock.apart(
            (&at(0, 9), When::SinceBoot(30 * SECOND)),
            (&at(1, 1), wall(1_030))
        ),
        None
    );
    // What both clocks tell of themselves stays true.
    assert_eq!(clock.since_boot(&observed.happenings[1]), Some(20 * SECOND));
}

#[test]
fn since_the_start_of_a_process() {
    let mut observed = observed(&[None, None], vec![]);
    let since = When::SinceStart(5 * SECOND);
    let apart = |observed: &Observed| Clock::of(observed).apart((&at(0, 1), since), (&at(1, 1), wall(45)));
    assert_eq!(apart(&observed), None);
    observed.sources[0].started = Some(wall(40));
    assert_eq!(apart(&observed), Some(0));
}

#[test]
fn when_a_log_runs_over_two_boots_each_line_is_in_its_own() {
    let lines = vec![
        happening(0, 1, boot(None), Some(wall(1_000)), None),
        happening(0, 2, SEEDED, Some(wall(1_102)), None),
        happening(0, 5, boot(None), Some(wall(4_000)), None),
        happening(0, 6, SEEDED, Some(wall(4_105)), None),
    ];
    let observed = observed(&[None], lines);
    let clock = Clock::of(&observed);
    let seeded = |place: usize| clock.since_boot(&observed.happenings[place]);
    assert_eq!((seeded(1), seeded(3)), (Some(102 * SECOND), Some(105 * SECOND)));
    assert_eq!(clock.same_boot(&at(0, 2), &at(0, 6)), Some(false));
    assert_eq!(clock.same_boot(&at(0, 1), &at(0, 4)), Some(true));
}

#[test]
fn both_clocks_written_down_when_it_was_taken_join_them() {
    let mut observed = observed(&[None, None], vec![]);
    let since = When::SinceBoot(30 * SECOND);
    let apart = |observed: &Observed| {
        let unix = When::Unix(1_030 * SECOND as i64);
        Clock::of(observed).apart((&at(0, 1), since), (&at(1, 1), unix))
    };
    assert_eq!(apart(&observed), None);
    observed.sources[0].taken = Some(Taken {
        unix: Some(1_500 * SECOND as i64),
        since_boot: Some(500 * SECOND),
    });
    assert_eq!(apart(&observed), Some(0));
}

#[test]
fn a_journal_takes_the_first_lines_of_a_boot_late() {
    // The kernel's first line was taken 20 s after the boot began; seeded at 30 s.
    let of = |seeded_here: u64| {
        let mut observed = observed(
            &[None, None],
            vec![
                happening(0, 1, boot(None), Some(wall(1_020)), None),
                happening(0, 2, SEEDED, Some(wall(seeded_here)), None),
                happening(1, 1, boot(None), Some(wall(1_000)), Some(0)),
                happening(1, 2, SEEDED, Some(wall(1_030)), Some(30)),
            ],
        );
        observed.sources[0].format = "journal".to_owned();
        let clock = Clock::of(&observed);
        let (first, seeded) = (&observed.happenings[0], &observed.happenings[1]);
        assert!(clock.is_at_least(seeded) && clock.was_taken_late(first));
        assert!(!clock.is_at_least(&observed.happenings[3]));
        clock.same_boot(&at(0, 2), &at(1, 2))
    };
    assert_eq!(of(1_030), Some(true));
    assert_eq!(of(1_040), Some(false));
    // It was seeded before the journal's daemon was there.
    assert_eq!(of(1_021), None);
}
