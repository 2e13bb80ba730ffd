//! Runs written by hand, of which it is plain what they would take.

use super::{Doubt, Predictions, Question};
use crate::attribution::{Attribution, Classifier};
use crate::classify::Classified;
use holdup_evidence::{
    Allowed, Call, Cause, Clock, End, Event, Finish, Ns, RanInstead, Start, SystemFacts, TaskName, ThreadId,
    Wait, Waker,
};

/// A hundredth of a second: what the runs below are reported in.
const UNIT: Ns = 10_000_000;

/// The cause is what the call's number says.
fn classifier() -> Classifier {
    Classifier {
        wait: |site| Classified {
            cause: Cause::ALL[usize::try_from(site.call.number).expect("told by hand")],
            resource: Default::default(),
            timed_out: false,
            bytes: None,
            call: None,
            why_unknown: None,
        },
        ..Classifier::default()
    }
}

fn call(cause: Cause) -> Call {
    let number = Cause::ALL.iter().position(|one| *one == cause).expect("listed");
    Call {
        number: i32::try_from(number).expect("few"),
        args: [0; 4],
    }
}

fn task(thread: u32) -> TaskName {
    TaskName {
        pid: 100,
        tid: 100 + thread,
        name: format!("t{thread}"),
        kernel: false,
    }
}

/// Threads of one process whose clocks are moved by hand. Times are in [`UNIT`]s.
struct Script {
    cpus: u32,
    /// Whether who ends a wait does so by its end.
    exits: bool,
    clocks: Vec<(Ns, Clock, u32)>,
    events: Vec<Event>,
}

impl Script {
    fn on(cpus: u32) -> Script {
        let mut script = Script {
            cpus,
            exits: false,
            clocks: Vec::new(),
            events: Vec::new(),
        };
        script.born(None);
        script
    }

    fn id(thread: usize) -> ThreadId {
        ThreadId(u32::try_from(thread).expect("few"))
    }

    fn born(&mut self, parent: Option<usize>) -> usize {
        let at = parent.map_or(0, |parent| self.clocks[parent].0);
        let thread = self.clocks.len();
        self.events.push(Event::Start(Start {
            at,
            thread: Script::id(thread),
            task: task(Script::id(thread).0),
            parent: parent.map(|parent| (Script::id(parent), self.clocks[parent].1)),
            inside: None,
            role: Default::default(),
            adopted: None,
        }));
        self.clocks.push((at, Clock::default(), 0));
        thread
    }

    /// Ran for so long after having queued for so long.
    fn runs(&mut self, thread: usize, cpu: Ns, queued: Ns) {
        let (at, clock, _) = &mut self.clocks[thread];
        *at += (cpu + queued) * UNIT;
        clock.cpu += cpu * UNIT;
        clock.queued += queued * UNIT;
    }

    /// Waits for something of its own, or until the other does what it is at now.
    fn waits(&mut self, thread: usize, cause: Cause, until: Result<Ns, usize>) {
        let start = self.clocks[thread].0;
        let (end, waker) = match until {
            Ok(length) => (
                start + length * UNIT,
                Waker::Interrupt {
                    soft: false,
                    socket: None,
                },
            ),
            Err(other) => (
                self.clocks[other].0,
                Waker::Thread {
                    thread: Script::id(other),
                    clock: self.clocks[other].1,
                    call: if self.exits {
                        Call::named("exit")
                    } else {
                        call(Cause::CpuUser)
                    },
                },
            ),
        };
        let (at, clock, seq) = &mut self.clocks[thread];
        clock.blocked += end - start;
        (*at, *seq) = (end, *seq + 1);
        self.events.push(Event::Wait(Box::new(Wait {
            clock: *clock,
            waker,
            ..Wait::new(Script::id(thread), *seq, (start, end), call(cause))
        })));
    }

    fn ends(&mut self, thread: usize) {
        let (at, clock, seq) = self.clocks[thread];
        self.events.push(Event::End(Box::new(End {
            at,
            thread: Script::id(thread),
            task: task(Script::id(thread).0),
            born: at - clock.total(),
            clock,
            blockings: u64::from(seq),
            lost: (0, 0),
            interrupts: Default::default(),
            account: None,
            open: None,
            exit_code: 0,
        })));
    }

    /// Main's end, and what is predicted.
    fn predictions(mut self) -> Predictions {
        self.ends(0);
        let question = Question {
            cpus: self.cpus,
            together: &[],
        };
        let mut attribution = Attribution::with(classifier()).predicting(question);
        for event in &self.events {
            attribution.push(event);
        }
        let finish = Finish {
            ended: self.clocks[0].0,
            ..Finish::default()
        };
        let run = attribution.finish(&finish, &SystemFacts::default());
        run.predictions.expect("asked for")
    }
}

/// What it would take without the cause, in units, rounded.
fn without(predictions: &Predictions, cause: Cause) -> Ns {
    let found = predictions.without(cause).expect("predicted");
    (found.elapsed_ns + UNIT / 2) / UNIT
}

#[test]
fn a_wait_of_ones_own_is_gained_whole() {
    let mut script = Script::on(2);
    script.runs(0, 10, 0);
    script.waits(0, Cause::DiskSync, Ok(30));
    script.runs(0, 5, 0);
    let predictions = script.predictions();
    assert_eq!(without(&predictions, Cause::DiskSync), 15);
    let half = predictions
        .list
        .iter()
        .find(|one| one.factor == 0.5 && one.without == Cause::DiskSync);
    assert_eq!(half.expect("the first is halved").elapsed_ns, 30 * UNIT);
    assert_eq!(without(&predictions, Cause::CpuUser), 30);
}

/// Main waits for a thread that sleeps, and another that reads, started at the same time: sleep, read.
fn two_branches(sleep: Ns, read: Ns) -> Predictions {
    let mut script = Script::on(2);
    let sleeper = script.born(Some(0));
    let reader = script.born(Some(0));
    script.waits(sleeper, Cause::TimerSleep, Ok(sleep));
    script.waits(reader, Cause::DiskRead, Ok(read));
    let mut joined = [(sleep, sleeper), (read, reader)];
    joined.sort_unstable();
    script.exits = true;
    for (_, thread) in joined {
        script.waits(0, Cause::LockFutex, Err(thread));
        script.ends(thread);
    }
    script.runs(0, 10, 0);
    script.predictions()
}

#[test]
fn another_branch_becomes_critical_next() {
    let predictions = two_branches(90, 70);
    assert_eq!(without(&predictions, Cause::TimerSleep), 80);
    assert_eq!(without(&predictions, Cause::DiskRead), 100);
    // A join is no lock.
    assert_eq!(without(&predictions, Cause::LockFutex), 100);
}

#[test]
fn a_convoy_goes_on_side_by_side_without_its_lock() {
    let mut script = Script::on(2);
    let other = script.born(Some(0));
    script.waits(0, Cause::DiskSync, Ok(20));
    script.waits(other, Cause::LockFutex, Err(0));
    script.waits(other, Cause::DiskSync, Ok(20));
    script.waits(0, Cause::ProcessChild, Err(other));
    script.ends(other);
    script.runs(0, 1, 0);
    let predictions = script.predictions();
    assert_eq!(without(&predictions, Cause::LockFutex), 21);
    assert_eq!(without(&predictions, Cause::DiskSync), 1);
}

/// Two threads that run for 40 each on one CPU, the second bound to CPUs.
fn queue(allowed: Allowed, cpus: u32) -> Predictions {
    let mut script = Script::on(cpus);
    let one = script.born(Some(0));
    let two = script.born(Some(0));
    script.runs(one, 40, 39);
    script.runs(two, 40, 40);
    for thread in [one, two] {
        script.events.push(Event::RanInstead(RanInstead {
            at: script.clocks[thread].0,
            thread: Script::id(thread),
            ns: UNIT,
            by: None,
            cpu: 0,
            by_class: Default::default(),
            class: Default::default(),
            same_group: true,
            allowed,
        }));
    }
    for thread in [one, two] {
        script.waits(0, Cause::LockFutex, Err(thread));
        script.ends(thread);
    }
    script.runs(0, 20, 0);
    script.predictions()
}

#[test]
fn who_queues_for_one_cpu_has_one_each_without_the_queue() {
    let one_cpu = Allowed { count: 1, first: 1 };
    assert_eq!(without(&queue(one_cpu, 2), Cause::SchedRunqueue), 60);
    assert_eq!(without(&queue(Allowed::default(), 1), Cause::SchedRunqueue), 60);
}

#[test]
fn what_comes_early_then_shares_the_cpu() {
    // Both compute for 40; one sleeps for 40 before.
    let mut script = Script::on(1);
    let late = script.born(Some(0));
    let early = script.born(Some(0));
    script.runs(early, 40, 0);
    script.waits(late, Cause::TimerSleep, Ok(40));
    script.runs(late, 40, 0);
    script.waits(0, Cause::LockFutex, Err(early));
    script.ends(early);
    script.waits(0, Cause::LockFutex, Err(late));
    script.ends(late);
    script.runs(0, 1, 0);
    assert_eq!(without(&script.predictions(), Cause::TimerSleep), 81);
}

#[test]
fn what_is_not_modelled_is_said() {
    let mut script = Script::on(2);
    for _ in 0..5 {
        script.waits(0, Cause::TimerSleep, Ok(10));
    }
    script.runs(0, 1, 0);
    let predictions = script.predictions();
    let sleep = predictions.without(Cause::TimerSleep).expect("predicted");
    assert_eq!(sleep.doubts, [Doubt::Polling]);

    let mut script = Script::on(2);
    let other = script.born(Some(0));
    script.waits(0, Cause::DiskSync, Ok(30));
    script.waits(other, Cause::DiskRead, Ok(30));
    script.waits(0, Cause::LockFutex, Err(other));
    script.ends(other);
    script.runs(0, 1, 0);
    let predictions = script.predictions();
    let sync = predictions.without(Cause::DiskSync).expect("predicted");
    assert_eq!(sync.doubts, [Doubt::DeviceQueueing]);
}

#[test]
fn a_command_that_goes_on_is_not_predicted() {
    let question = Question {
        cpus: 1,
        together: &[],
    };
    let mut script = Script::on(1);
    script.waits(0, Cause::TimerSleep, Ok(10));
    let mut attribution = Attribution::with(classifier()).predicting(question);
    for event in &script.events {
        attribution.push(event);
    }
    let finish = Finish {
        ended: 20 * UNIT,
        ..Finish::default()
    };
    let run = attribution.finish(&finish, &SystemFacts::default());
    let predictions = run.predictions.expect("asked for");
    assert_eq!(
        predictions.without(Cause::TimerSleep),
        Err("the command had not ended")
    );
}

#[test]
fn who_joins_one_waits_for_all_of_them() {
    // The longer one is joined first: no wait for the other is seen.
    let mut script = Script::on(2);
    let long = script.born(Some(0));
    let short = script.born(Some(0));
    script.waits(long, Cause::TimerSleep, Ok(90));
    script.waits(short, Cause::DiskRead, Ok(70));
    script.ends(short);
    script.exits = true;
    script.waits(0, Cause::LockFutex, Err(long));
    script.ends(long);
    script.runs(0, 10, 0);
    let predictions = script.predictions();
    assert_eq!(without(&predictions, Cause::TimerSleep), 80);
    // A join is no lock.
    assert_eq!(without(&predictions, Cause::LockFutex), 100);
}

#[test]
fn several_causes_are_taken_away_together() {
    let mut script = Script::on(2);
    script.waits(0, Cause::DiskSync, Ok(30));
    script.waits(0, Cause::DiskRead, Ok(20));
    script.waits(0, Cause::TimerSleep, Ok(5));
    script.ends(0);
    let question = Question {
        cpus: 2,
        together: &[Cause::DiskSync, Cause::DiskRead],
    };
    let mut attribution = Attribution::with(classifier()).predicting(question);
    for event in &script.events {
        attribution.push(event);
    }
    let run = attribution.finish(&Finish::default(), &SystemFacts::default());
    assert_eq!(run.predictions.expect("asked for").together, Some(5 * UNIT));
}
