//! Verdicts over slices whose truth was planted.

use super::{Measured, Slice, SliceWaits, Turn, interval_of_median, judge, lengths, order};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Scaling, ScalingVerdict};

/// What an operation takes, nanoseconds.
#[derive(Clone, Copy, Default)]
struct Each {
    kernel: u64,
    queued: u64,
    blocked: u64,
}

const REPEATS: u64 = 6;

/// Slices with so many workers, a per cent apart from each other.
fn slices(workers: u32, each: Each) -> Vec<Slice> {
    (0..REPEATS)
        .map(|repeat| {
            let operations = 1_000;
            let scaled = |ns: u64| ns * operations * (98 + repeat) / 100;
            let all = each.kernel + each.queued + each.blocked;
            Slice {
                workers,
                operations,
                wall: scaled(all),
                cpu: scaled(each.kernel),
                ticks_user: 0,
                ticks_kernel: scaled(each.kernel),
                queued: scaled(each.queued),
                blocked: scaled(each.blocked),
                lengths: vec![(lengths::bucket(all) as u32, operations)],
            }
        })
        .collect()
}

/// A subject beside a control, on so many CPUs.
fn measured(cpus: u32, subject: &[(u32, Each)], control: &[(u32, Each)]) -> Measured {
    let all = |arms: &[(u32, Each)]| {
        arms.iter()
            .flat_map(|(workers, each)| slices(*workers, *each))
            .collect()
    };
    Measured {
        what: "reads".to_owned(),
        unit: "read".to_owned(),
        programs: false,
        control_what: "a plain file".to_owned(),
        cpus,
        seed: 7,
        subject: all(subject),
        control: all(control),
        notes: Vec::new(),
    }
}

fn kernel(kernel: u64) -> Each {
    Each {
        kernel,
        ..Each::default()
    }
}

/// An attribution with one row.
fn seen(cause: &str, resource: serde_json::Value, ns: u64) -> Attributed {
    serde_json::from_value(serde_json::json!({"waits": [
        {"cause": cause, "ns": ns, "resource": resource, "asker": {"name": {"pid": 7, "tid": 7, "process": "holdup-worker"}}},
        {"cause": "process.child", "ns": 99_000_000_000_u64, "asker": {"name": {"pid": 5, "tid": 5}}},
        {"cause": "ipc.pipe", "ns": 99_000_000_000_u64, "asker": {"name": {"pid": 7, "tid": 7, "process": "holdup-worker"}}},
    ]}))
    .unwrap()
}

fn with(measured: &Measured, few: &Attributed, many: &Attributed) -> Scaling {
    let of = |attributed, workers| SliceWaits {
        attributed,
        operations: 1_000,
        workers,
        leader: 5,
        programs: measured.programs,
    };
    judge(measured, Some(&[of(few, 1), of(many, 16)]))
}

#[test]
fn queueing_for_a_cpu_is_no_contention_however_much_it_is() {
    let queued = |queued| Each {
        queued,
        ..kernel(8_000)
    };
    let of_control = |queued| Each {
        queued,
        ..kernel(500)
    };
    let measured = measured(
        2,
        &[(1, queued(0)), (2, queued(300)), (16, queued(56_000))],
        &[(1, of_control(0)), (2, of_control(20)), (16, of_control(3_500))],
    );
    let judged = judge(&measured, None);
    assert_eq!(
        (judged.verdict, judged.contends_on),
        (ScalingVerdict::CpuBound, None)
    );
    assert_eq!((judged.sigma, judged.kappa), (None, None));
    assert!(judged.no_fit.unwrap().contains("2 CPUs"));
}

#[test]
fn nothing_that_grows_scales_and_has_a_law_without_contention() {
    let same = kernel(8_000);
    let points = [(1, same), (2, same), (4, same), (8, same)];
    let judged = judge(&measured(8, &points, &points), None);
    assert_eq!(judged.verdict, ScalingVerdict::Scales);
    let [sigma, kappa] = judged.fit.unwrap();
    assert!(sigma < 0.02 && kappa < 0.01, "{sigma} {kappa}");
    assert!(judged.points.iter().all(|point| point.fitted.is_some()));
    assert!((judged.points[3].ideal / judged.points[0].throughput - 8.0).abs() < 1e-9);
}

#[test]
fn waits_for_each_other_contend_and_the_lock_is_named() {
    let blocked = |blocked| Each {
        blocked,
        ..kernel(2_000)
    };
    let measured = measured(
        2,
        &[(1, blocked(0)), (16, blocked(40_000))],
        &[
            (1, kernel(1_900)),
            (
                16,
                Each {
                    queued: 13_000,
                    ..kernel(1_900)
                },
            ),
        ],
    );
    let lock = serde_json::json!({"kind": "lock", "name": "/srv/job.lock"});
    let report = with(
        &measured,
        &Attributed::default(),
        &seen("lock.file", lock, 40_000_000),
    );
    assert_eq!(report.verdict, ScalingVerdict::Contends);
    assert_eq!(report.contends_on.as_deref(), Some("/srv/job.lock"));
    // Nobody saw for what: that they contend is known by the counters alone.
    let report = judge(&measured, None);
    assert_eq!(
        (report.verdict, report.contends_on),
        (ScalingVerdict::Contends, None)
    );
}

#[test]
fn what_the_control_waits_too_is_the_machines() {
    let blocked = |blocked| Each {
        blocked,
        ..kernel(2_000)
    };
    let arm = [(1, blocked(500)), (8, blocked(9_000))];
    assert_ne!(
        judge(&measured(8, &arm, &arm), None).verdict,
        ScalingVerdict::Contends
    );
}

#[test]
fn kernel_time_must_spin_or_grow_by_more_than_a_core_that_is_shared_can_explain() {
    let one = kernel(8_000);
    let plain = [(1, kernel(500)), (2, kernel(500))];
    let spin = serde_json::json!({"kind": "lock", "name": "spinlock in extract_buf", "detail": {"spinlock": "extract_buf"}});
    let shared = measured(2, &[(1, one), (2, kernel(14_000))], &plain);
    assert_eq!(judge(&shared, None).verdict, ScalingVerdict::Scales);
    let call = serde_json::json!({"kind": "file", "name": "/dev/urandom"});
    let report = with(
        &shared,
        &Attributed::default(),
        &seen("cpu.kernel", call, 14_000_000),
    );
    assert_eq!(report.verdict, ScalingVerdict::Scales);
    let report = with(
        &shared,
        &Attributed::default(),
        &seen("cpu.kernel", spin, 6_000_000),
    );
    assert_eq!(report.verdict, ScalingVerdict::Contends);
    assert_eq!(report.contends_on.as_deref(), Some("spinlock in extract_buf"));
    let more = measured(2, &[(1, one), (2, kernel(30_000))], &plain);
    assert_eq!(judge(&more, None).verdict, ScalingVerdict::Contends);
}

#[test]
fn cpu_time_that_grows_for_the_control_too_is_the_machines() {
    let judged = judge(
        &measured(
            4,
            &[(1, kernel(8_000)), (4, kernel(24_000))],
            &[(1, kernel(500)), (4, kernel(1_500))],
        ),
        None,
    );
    assert_eq!(judged.verdict, ScalingVerdict::Scales);
}

#[test]
fn a_program_whose_children_queue_does_not_contend() {
    // Counters see its main thread wait; what was observed of it is that a child had no CPU.
    let blocked = |blocked| Each {
        blocked,
        ..kernel(2_000_000)
    };
    let mut programs = measured(
        2,
        &[(1, blocked(100_000)), (16, blocked(15_000_000))],
        &[(1, kernel(1_000)), (16, kernel(1_000))],
    );
    programs.programs = true;
    let queued = serde_json::json!({"kind": "kernel", "name": ""});
    let report = with(
        &programs,
        &Attributed::default(),
        &seen("sched.runqueue", queued, 15_000_000_000),
    );
    assert_ne!(report.verdict, ScalingVerdict::Contends);
    let mut lock = seen(
        "lock.file",
        serde_json::json!({"kind": "lock", "name": "/l"}),
        15_000_000_000,
    );
    lock.waits[0].asker.name.process = "flock".to_owned();
    let report = with(&programs, &Attributed::default(), &lock);
    assert_eq!(
        (report.verdict, report.contends_on.as_deref()),
        (ScalingVerdict::Contends, Some("/l"))
    );
}

#[test]
fn one_point_and_none_are_no_verdict_of_contention() {
    let judged = judge(&measured(2, &[(1, kernel(5))], &[(1, kernel(5))]), None);
    assert_eq!(judged.verdict, ScalingVerdict::Scales);
    assert!(judged.words[0].contains("One point"));
    assert!(judge(&measured(2, &[], &[]), None).points.is_empty());
}

#[test]
fn the_interval_of_a_median_leaves_out_what_it_may() {
    let values: Vec<f64> = (1..=6).map(f64::from).collect();
    assert_eq!(interval_of_median(&values), [1.0, 6.0]);
    // Of nine, one at each end may go: 2 · (1 + 9) / 512 is below 0.05.
    let values: Vec<f64> = (1..=9).map(f64::from).collect();
    assert_eq!(interval_of_median(&values), [2.0, 8.0]);
    assert_eq!(interval_of_median(&[3.0]), [3.0, 3.0]);
    assert_eq!(interval_of_median(&[]), [0.0, 0.0]);
}

#[test]
fn every_point_has_its_turns_and_the_same_seed_the_same_order() {
    let turns = order(&[1, 2, 8], 4, 7);
    assert_eq!(turns.len(), 24);
    for workers in [1, 2, 8] {
        for control in [false, true] {
            let same = Turn { workers, control };
            assert_eq!(turns.iter().filter(|turn| **turn == same).count(), 4);
        }
    }
    assert_eq!(turns, order(&[1, 2, 8], 4, 7));
    assert_ne!(turns, order(&[1, 2, 8], 4, 8));
}

#[test]
fn factors_beside_others_who_use_the_cpus_are_doubted() {
    let alone = Each {
        kernel: 100_000,
        queued: 900_000,
        blocked: 0,
    };
    let beside_others = measured(
        8,
        &[(1, alone), (8, kernel(100_000))],
        &[(1, kernel(100)), (8, kernel(100))],
    );
    let words = judge(&beside_others, None).words;
    let doubt = "1 worker alone was runnable without a CPU for 904 µs of the 1.0 ms of a read";
    assert!(words.iter().any(|line| line.contains(doubt)), "{words:?}");
    let quiet = measured(
        8,
        &[(1, kernel(100_000)), (8, kernel(100_000))],
        &[(1, kernel(100)), (8, kernel(100))],
    );
    let words = judge(&quiet, None).words;
    assert!(!words.iter().any(|line| line.contains("Others use")), "{words:?}");
}

#[test]
fn who_contends_and_still_does_more_together_is_said_to() {
    let waiting = |blocked: u64| Each {
        kernel: 100_000,
        queued: 0,
        blocked,
    };
    let control = [(1, kernel(100)), (8, kernel(100))];
    let more = judge(
        &measured(8, &[(1, waiting(100_000)), (8, waiting(300_000))], &control),
        None,
    );
    assert_eq!(more.verdict, ScalingVerdict::Contends);
    assert!(
        more.words
            .iter()
            .any(|line| line.contains("8 workers still do 4.00 times")),
        "{:?}",
        more.words
    );
    let less = judge(
        &measured(8, &[(1, waiting(100_000)), (8, waiting(2_000_000))], &control),
        None,
    );
    assert!(
        less.words
            .iter()
            .any(|line| line.contains("8 workers do 0.76 times")),
        "{:?}",
        less.words
    );
}
