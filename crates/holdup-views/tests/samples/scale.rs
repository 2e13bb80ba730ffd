//! Workers, measured as they are by `holdup scale`, from made-up numbers.

use holdup_comparison::scaling::{Measured, Slice, SliceWaits, judge, lengths};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, Report, SubjectKind};

/// Workers, and what an operation takes: on a CPU, without one, waiting; nanoseconds.
type Point = (u32, u64, u64, u64);

fn slices(points: &[Point]) -> Vec<Slice> {
    let each = |(workers, cpu, queued, blocked): &Point| {
        let (workers, cpu, queued, blocked) = (*workers, *cpu, *queued, *blocked);
        (0..6_u64).map(move |repeat| {
            let operations = 10_000;
            let sum = |ns: u64| ns * operations * (97 + repeat) / 100;
            let long = lengths::bucket(20 * (cpu + queued + blocked)) as u32;
            Slice {
                workers,
                operations,
                wall: sum(cpu + queued + blocked),
                cpu: sum(cpu),
                ticks_user: sum(cpu / 10),
                ticks_kernel: sum(cpu - cpu / 10),
                queued: sum(queued),
                blocked: sum(blocked),
                lengths: vec![(lengths::bucket(cpu) as u32, operations - 200), (long, 200)],
            }
        })
    };
    points.iter().flat_map(each).collect()
}

fn report(measured: &Measured, seen: Option<&[SliceWaits<'_>; 2]>) -> Report {
    let command = vec![measured.what.clone()];
    let mut report = super::without_waits(SubjectKind::Scale, Backend::Bpf, command);
    report.scaling = Some(judge(measured, seen));
    report
}

/// Sixteen readers of one locked file, on two CPUs.
pub fn contends() -> Report {
    let measured = Measured {
        what: "reads of 65536 bytes of /srv/state under flock".to_owned(),
        unit: "locked read".to_owned(),
        programs: false,
        control_what: "reads of 65536 bytes under flock from a file of each worker's own, in memory"
            .to_owned(),
        cpus: 2,
        seed: 4_711,
        subject: slices(&[
            (1, 5_000, 100, 0),
            (2, 5_200, 150, 6_000),
            (4, 5_300, 400, 17_000),
            (16, 5_400, 900, 90_000),
        ]),
        control: slices(&[
            (1, 4_800, 100, 0),
            (2, 4_900, 150, 0),
            (4, 4_900, 5_100, 0),
            (16, 5_000, 34_000, 0),
        ]),
        notes: Vec::new(),
    };
    let many: Attributed = serde_json::from_value(serde_json::json!({"waits": [{
        "cause": "lock.file", "ns": 900_000_000, "resource": {"kind": "lock", "name": "/srv/state"},
        "asker": {"name": {"pid": 7, "tid": 7, "process": "holdup-worker"}},
    }]}))
    .expect("only fields that exist");
    let few = Attributed::default();
    let seen = |attributed, workers| SliceWaits {
        attributed,
        operations: 10_000,
        workers,
        leader: 1,
        programs: false,
    };
    report(&measured, Some(&[seen(&few, 1), seen(&many, 16)]))
}

/// The same, with what the many waited for beside the points, as `holdup scale` has it where it could observe them.
pub fn observed() -> Report {
    let mut report = super::database().report();
    report.subject.kind = SubjectKind::Scale;
    report.scaling = contends().scaling;
    report
}

/// Readers who lose a little to each other on eight CPUs, so that there is a law to fit.
pub fn scales() -> Report {
    let measured = Measured {
        what: "reads of 4096 bytes from /dev/urandom".to_owned(),
        unit: "read".to_owned(),
        programs: false,
        control_what: "reads of 4096 bytes from a file of each worker's own, in memory".to_owned(),
        cpus: 8,
        seed: 4_711,
        subject: slices(&[
            (1, 8_000, 0, 0),
            (2, 8_100, 0, 0),
            (4, 8_500, 0, 0),
            (8, 9_200, 0, 0),
        ]),
        control: slices(&[(1, 500, 0, 0), (2, 505, 0, 0), (4, 515, 0, 0), (8, 540, 0, 0)]),
        notes: vec!["made up".to_owned()],
    };
    report(&measured, None)
}
