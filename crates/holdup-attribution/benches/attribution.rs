//! What attribution costs a wait, and what it keeps: two million of them, from a machine that is made up.
//!
//! In: nothing. Out: a line for each kind of stream, with nanoseconds a wait beyond those of making it up, and how long the end takes.
//! `cargo bench -p holdup-attribution`, for a look before and after a change: it judges nothing.

#![allow(clippy::print_stdout)]

use holdup_attribution::attribution::Attribution;
use holdup_evidence::{
    Call, Clock, Event, Finish, Ns, ObjectId, Start, SystemFacts, TaskName, ThreadId, Wait, Waker,
};
use std::time::Duration;

/// Waits of a stream.
const WAITS: u64 = 2_000_000;

/// How often each is measured: the best counts, because other programs only ever make it slower, on a CPU too.
const ROUNDS: usize = 5;

/// When the first thread is born.
const BEGIN: Ns = 1_000_000_000;

/// A stream.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    threads: u32,
    /// Whether threads end each other's waits, as a run's do; else timers do, and threads are watched.
    of_run: bool,
    /// What threads wait for: so many different futexes each.
    things: u64,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "two threads of a run",
        threads: 2,
        of_run: true,
        things: 1,
    },
    Kind {
        name: "16 watched threads",
        threads: 16,
        of_run: false,
        things: 4,
    },
    Kind {
        name: "200 threads of a run",
        threads: 200,
        of_run: true,
        things: 4,
    },
    Kind {
        name: "4000 watched threads",
        threads: 4_000,
        of_run: false,
        things: 4,
    },
];

/// A machine on which threads take turns.
struct Machine {
    kind: Kind,
    now: Ns,
    clocks: Vec<(Ns, Clock, u32)>,
    random: u64,
    next: usize,
    wait: Event,
}

impl Machine {
    fn new(kind: Kind) -> Machine {
        Machine {
            kind,
            now: BEGIN,
            clocks: vec![(BEGIN, Clock::default(), 0); kind.threads as usize],
            random: 1,
            next: 0,
            wait: Event::Wait(Box::new(Wait {
                object: Some(ObjectId(1)),
                ..Wait::new(
                    ThreadId(0),
                    0,
                    (0, 0),
                    Call {
                        number: 202,
                        args: [0; 4],
                    },
                )
            })),
        }
    }

    /// Knuth's linear congruential generator, its upper half.
    fn random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// Births of all threads.
    fn births(&self) -> Vec<Event> {
        (0..self.kind.threads)
            .map(|id| {
                Event::Start(Start {
                    at: BEGIN,
                    thread: ThreadId(id),
                    task: TaskName {
                        pid: 100,
                        tid: 100 + id,
                        name: format!("t{id}"),
                        kernel: false,
                    },
                    parent: (id > 0 && self.kind.of_run).then_some((ThreadId(0), Clock::default())),
                    inside: None,
                    role: Default::default(),
                    adopted: None,
                })
            })
            .collect()
    }

    /// The next wait that is over: mostly short, one in a thousand a hundred times as long.
    fn next(&mut self) -> &Event {
        let random = self.random();
        let usual = 2_000 + random % 96_000;
        self.now += if random.is_multiple_of(1_000) {
            usual * 100
        } else {
            usual
        };
        let waiter = self.next;
        self.next = (self.next + 1) % self.clocks.len();
        let waker = self.next;
        let now = self.now;
        let thing = self.random() % self.kind.things;
        let Event::Wait(wait) = &mut self.wait else {
            return &self.wait;
        };
        wait.waker = if self.kind.of_run {
            let (at, clock, _) = &mut self.clocks[waker];
            clock.cpu += now - *at;
            *at = now;
            Waker::Thread {
                thread: ThreadId(u32::try_from(waker).unwrap_or(0)),
                clock: *clock,
                call: Call {
                    number: 202,
                    args: [0; 4],
                },
            }
        } else {
            Waker::Interrupt {
                soft: false,
                socket: None,
            }
        };
        let (at, clock, seq) = &mut self.clocks[waiter];
        let elapsed = now - *at;
        let (queued, cpu) = (elapsed / 20, elapsed / 5);
        clock.queued += queued;
        clock.cpu += cpu;
        clock.blocked += elapsed - queued - cpu;
        *seq += 1;
        wait.thread = ThreadId(u32::try_from(waiter).unwrap_or(0));
        wait.seq = *seq;
        wait.start = *at + queued + cpu;
        wait.end = now;
        wait.clock = *clock;
        wait.call.args[0] = thing * 64;
        *at = now;
        &self.wait
    }
}

/// Time that this thread has had on a CPU, by the kernel's account.
fn on_cpu() -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = account.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

fn main() {
    for kind in KINDS {
        let mut best = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            let mut machine = Machine::new(kind);
            let begun = on_cpu();
            for _ in 0..WAITS {
                std::hint::black_box(machine.next());
            }
            best.0 = best.0.min((on_cpu() - begun).as_secs_f64());
            let mut machine = Machine::new(kind);
            let mut attribution = match kind.of_run {
                true => Attribution::new(),
                false => Attribution::of_threads(),
            };
            for birth in machine.births() {
                attribution.push(&birth);
            }
            let begun = on_cpu();
            for _ in 0..WAITS {
                attribution.push(machine.next());
            }
            best.1 = best.1.min((on_cpu() - begun).as_secs_f64());
            let finish = Finish {
                started: BEGIN,
                ended: machine.now,
                ..Finish::default()
            };
            let begun = on_cpu();
            std::hint::black_box(attribution.finish(&finish, &SystemFacts::default()));
            best.2 = best.2.min((on_cpu() - begun).as_secs_f64());
        }
        let each = (best.1 - best.0) * 1e9 / WAITS as f64;
        println!(
            "{:24} {each:6.0} ns a wait, end {:6.1} ms",
            kind.name,
            best.2 * 1e3
        );
    }
}
