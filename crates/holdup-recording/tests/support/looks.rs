//! Made-up looks at a machine.

use super::Dice;
use holdup_evidence::Observed;
use holdup_evidence::host::{HostLook, HostSight, Use};
use holdup_evidence::observed::{
    Awaited, CpuShare, Doing, Metric, Point, Precedence, Quote, SeenClient, SeenLoad, SeenProcess,
    SeenThread, SeenWait, Series, Short, Snapshot, SnapshotKind, Source, StackId, Stacks, State, When,
};
use holdup_evidence::randomness::Randomness;

impl Dice {
    /// Values that are no whole numbers, of every size.
    pub(super) fn real(&mut self) -> f64 {
        self.number() as f64 / (1 + self.below(997)) as f64
    }

    pub(super) fn look(&mut self) -> HostLook {
        let mut stacks = Stacks::default();
        let stack = stacks.intern(["folio_wait_bit", "ext4_sync_file"]);
        let observed = Observed {
            series: self.list(4, Dice::series),
            sources: self.list(2, |dice| Source {
                name: dice.text(),
                ..Source::default()
            }),
            snapshots: self.list(2, |dice| dice.snapshot(stack)),
            stacks,
            waits: self.some(|dice| {
                dice.list(2, |dice| SeenWait {
                    waiter: SeenProcess {
                        pid: dice.below(1 << 22) as u32,
                        name: dice.text(),
                        doing: Doing::Stopped,
                        client: dice.some(|dice| SeenClient {
                            pid: 9,
                            name: dice.text(),
                        }),
                        load: dice.some(|_| SeenLoad::default()),
                        full: dice.some(Dice::text),
                        descriptors: dice.some(|_| 24),
                        tracer: dice.some(|dice| SeenClient {
                            pid: 10,
                            name: dice.text(),
                        }),
                        cgroup: dice.some(Dice::text),
                    },
                    on: Awaited::FileLock,
                    name: dice.text(),
                    ns: dice.number(),
                    alone: true,
                    short: Short::Cpu(CpuShare {
                        cpus: dice.text(),
                        by: Precedence::Nice { own: 4, other: -4 },
                        ..CpuShare::default()
                    }),
                    ..SeenWait::default()
                })
            }),
            ..Observed::default()
        };
        HostLook {
            observed,
            sight: HostSight {
                watched: self.number(),
                frozen: self.list(2, Dice::text),
                cpu: self.list(2, |dice| Use {
                    process: dice.text(),
                    pid: 7,
                    amount: dice.real(),
                    processes: 3,
                    nice: -4,
                    run_by: dice.text(),
                }),
                ..HostSight::default()
            },
            randomness: Randomness {
                quality: self.some(|_| 900),
                ..Randomness::default()
            },
        }
    }

    pub(super) fn series(&mut self) -> Series {
        Series {
            metric: self.of(&[
                Metric::DiskUtilPercent,
                Metric::LoadAverage1,
                Metric::MemoryFreeKib,
            ]),
            of: self.text(),
            source: 0,
            points: self.list(3, |dice| Point {
                value: dice.real(),
                at: dice.some(|dice| When::SinceBoot(dice.number())),
                since_boot: dice.yes(),
                ..Point::default()
            }),
            count: self.number(),
            sum: self.real(),
        }
    }

    pub(super) fn snapshot(&mut self, stack: StackId) -> Snapshot {
        Snapshot {
            at: self.some(|dice| When::SinceBoot(dice.number())),
            threads: self.list(3, |dice| SeenThread {
                name: dice.text(),
                tid: dice.some(|dice| dice.below(1 << 22) as u32),
                state: dice.of(&[State::Runnable, State::Uninterruptible]),
                kernel_stack: dice.some(|_| stack),
                cpu_percent: dice.some(Dice::real),
                ..SeenThread::default()
            }),
            total: self.some(Dice::number),
            of_threads: Some(true),
            ..Snapshot::new(SnapshotKind::Kernel, Quote::default())
        }
    }
}
