//! The run again, with a wait taken away.
//!
//! In: a graph, how much of a fair share each piece asks for, and what is taken away. Out: the elapsed time. Threads that are ready
//! get on at the rate of their pool ([`super::sharing`]), so that of each pool only the one that is done first need be looked at: a
//! replay takes as many turns as there are steps. Order and sums depend on nothing but the input.

use super::record::{Graph, Point, Step};
use super::sharing::rates;
use holdup_evidence::{Cause, Ns};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// What is taken away.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WhatIf<'a> {
    pub(super) causes: &'a [Cause],
    /// What is left of it, 0..1.
    pub(super) factor: f64,
}

/// How long a thread has a CPU before another one's turn comes, nanoseconds: a tick of a kernel with 250 of them a second. A thread that need
/// not wait any more need not queue after the waking: of so many turns it had queued for, it saves the first.
const TURN: f64 = 4_000_000.0;

/// An instant, or an amount of shared time, that can be ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct When(f64);

impl Eq for When {}

impl PartialOrd for When {
    fn partial_cmp(&self, other: &When) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for When {
    fn cmp(&self, other: &When) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What a thread is at.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Unborn,
    /// On its way; it takes until this instant at least.
    Ready {
        at_least: f64,
    },
    /// It has had its share, and keeps its CPU until then.
    Holds,
    Waits,
    Ended,
}

struct Thread {
    state: State,
    done: usize,
    /// Whether its last wait was none.
    skipped: bool,
    /// Timers that were set before this number are off.
    ticket: u32,
}

struct Machine<'a> {
    graph: &'a Graph,
    demands: &'a [Vec<f64>],
    what_if: Option<WhatIf<'a>>,
    cpu_shares: Vec<BTreeMap<Cause, f64>>,
    now: f64,
    threads: Vec<Thread>,
    /// Ready threads of each pool, and the fair share that they have had since the begin.
    ready: Vec<usize>,
    shared: Vec<f64>,
    by_share: Vec<BinaryHeap<Reverse<(When, usize)>>>,
    timers: BinaryHeap<Reverse<(When, usize, u32)>>,
    waiting: HashMap<Point, Vec<usize>>,
    children: HashMap<Point, Vec<usize>>,
    /// Threads that may get on now.
    moving: Vec<usize>,
    /// Threads of CMD's process that have not ended.
    left: usize,
}

/// How long the run takes; `None` where threads wait for each other for good.
pub(super) fn replay(graph: &Graph, demands: &[Vec<f64>], what_if: Option<WhatIf<'_>>) -> Option<Ns> {
    let mut machine = Machine::new(graph, demands, what_if);
    while machine.left > 0 {
        machine.turn()?;
    }
    Some(machine.now.round() as Ns)
}

impl<'a> Machine<'a> {
    fn new(graph: &'a Graph, demands: &'a [Vec<f64>], what_if: Option<WhatIf<'a>>) -> Machine<'a> {
        let on_cpu = what_if.is_some_and(|what_if| what_if.causes.iter().any(|cause| cause.on_cpu()));
        let mut machine = Machine {
            graph,
            demands,
            what_if,
            cpu_shares: if on_cpu { graph.cpu_shares() } else { Vec::new() },
            now: 0.0,
            threads: Vec::new(),
            ready: vec![0; graph.pools.len()],
            shared: vec![0.0; graph.pools.len()],
            by_share: graph.pools.iter().map(|_| BinaryHeap::new()).collect(),
            timers: BinaryHeap::new(),
            waiting: HashMap::new(),
            children: HashMap::new(),
            moving: Vec::new(),
            left: graph.lines.iter().filter(|line| line.of_cmd).count(),
        };
        for (index, line) in graph.lines.iter().enumerate() {
            machine.threads.push(Thread {
                state: State::Unborn,
                done: 0,
                skipped: false,
                ticket: 0,
            });
            match line.creator {
                Some(creator) if creator.steps > 0 => {
                    machine.children.entry(creator).or_default().push(index);
                }
                // One that had done nothing yet has made it as it was born itself.
                _ => machine.timer(index, line.born.saturating_sub(graph.start) as f64),
            }
        }
        machine
    }

    /// The next thing that happens.
    fn turn(&mut self) -> Option<()> {
        let queueing = match self.what_if {
            Some(what_if) if what_if.causes.contains(&Cause::SchedRunqueue) => what_if.factor,
            _ => 1.0,
        };
        let mut rate = Vec::new();
        rates(self.graph, &self.ready, queueing, &mut rate);
        let timer = self.timers.peek().map(|Reverse((at, ..))| at.0);
        let first = (0..rate.len())
            .filter_map(|pool| {
                let Reverse((share, _)) = self.by_share[pool].peek()?;
                let wait = (share.0 - self.shared[pool]).max(0.0) / rate[pool];
                Some((When(self.now + wait), pool))
            })
            .min();
        let by_share = first.filter(|(at, _)| timer.is_none_or(|timer| at.0 <= timer));
        let next = by_share.map(|(at, _)| at.0).or(timer)?.max(self.now);
        for (shared, rate) in self.shared.iter_mut().zip(&rate) {
            *shared += rate * (next - self.now);
        }
        self.now = next;
        match by_share {
            Some((_, pool)) => {
                let Reverse((share, index)) = self.by_share[pool].pop()?;
                // No rounding may leave it a moment behind.
                self.shared[pool] = self.shared[pool].max(share.0);
                self.has_had_its_share(index);
            }
            None => {
                let Reverse((_, index, ticket)) = self.timers.pop()?;
                if self.threads[index].ticket == ticket {
                    self.time_is_up(index);
                }
            }
        }
        while let Some(index) = self.moving.pop() {
            self.goes_on(index);
        }
        Some(())
    }

    fn timer(&mut self, index: usize, at: f64) {
        let thread = &mut self.threads[index];
        thread.ticket += 1;
        self.timers.push(Reverse((When(at), index, thread.ticket)));
    }

    fn has_had_its_share(&mut self, index: usize) {
        match self.threads[index].state {
            State::Ready { at_least } if at_least > self.now => {
                self.threads[index].state = State::Holds;
                self.timer(index, at_least);
            }
            _ => self.has_run(index),
        }
    }

    fn has_run(&mut self, index: usize) {
        self.ready[self.graph.lines[index].pool] -= 1;
        self.threads[index].skipped = false;
        self.step_done(index);
    }

    fn time_is_up(&mut self, index: usize) {
        match self.threads[index].state {
            State::Unborn => self.moving.push(index),
            State::Holds => self.has_run(index),
            State::Waits => self.woken(index),
            State::Ready { .. } | State::Ended => {}
        }
    }

    fn woken(&mut self, index: usize) {
        self.threads[index].ticket += 1;
        self.threads[index].skipped = false;
        self.step_done(index);
    }

    /// A thread is one step further; who awaited that is, too.
    fn step_done(&mut self, index: usize) {
        let mut done = vec![index];
        while let Some(index) = done.pop() {
            let thread = &mut self.threads[index];
            thread.done += 1;
            let point = Point {
                line: index,
                steps: thread.done,
            };
            thread.state = State::Waits;
            self.moving.push(index);
            self.moving
                .extend(self.children.remove(&point).unwrap_or_default());
            for waiter in self.waiting.remove(&point).unwrap_or_default() {
                let thread = &mut self.threads[waiter];
                // It may have been let go by its limit.
                let there = graph_waits_at(self.graph, waiter, thread.done) == Some(point);
                if there && thread.state == State::Waits {
                    thread.ticket += 1;
                    thread.skipped = false;
                    done.push(waiter);
                }
            }
        }
    }

    /// Begins a thread's next step.
    fn goes_on(&mut self, index: usize) {
        let line = &self.graph.lines[index];
        let done = self.threads[index].done;
        let Some(step) = line.steps.get(done) else {
            if self.threads[index].state != State::Ended {
                self.threads[index].state = State::Ended;
                self.left -= usize::from(line.of_cmd);
            }
            return;
        };
        match *step {
            Step::Run { cpu, .. } => {
                let (cpu, share) = self.needs(index, cpu as f64, self.demands[index][done]);
                self.threads[index].state = State::Ready {
                    at_least: self.now + cpu,
                };
                self.ready[line.pool] += 1;
                let until = When(self.shared[line.pool] + share);
                self.by_share[line.pool].push(Reverse((until, index)));
            }
            Step::Wait {
                length,
                end,
                by,
                for_end,
                cause,
                ..
            } => {
                // Who joins a thread waits for its work, by the same call as for a lock.
                let taken_away = |what_if: &WhatIf| {
                    what_if.causes.contains(&cause) && !(for_end && cause != Cause::ProcessChild)
                };
                let factor = self
                    .what_if
                    .filter(taken_away)
                    .map_or(1.0, |what_if| what_if.factor);
                let limit = length as f64 * factor;
                self.threads[index].state = State::Waits;
                let over = by.is_some_and(|by| self.threads[by.line].done >= by.steps);
                if over || (limit <= 0.0 && (length > 0 || by.is_none())) {
                    self.threads[index].skipped |= length > 0;
                    return self.step_done(index);
                }
                match by {
                    Some(by) => {
                        self.waiting.entry(by).or_default().push(index);
                        if factor < 1.0 {
                            self.timer(index, self.now + limit);
                        }
                    }
                    None if line.at_fixed_times && cause == Cause::TimerSleep && factor >= 1.0 => {
                        let at = end.saturating_sub(self.graph.start) as f64;
                        self.timer(index, at.max(self.now));
                    }
                    None => self.timer(index, self.now + limit),
                }
            }
        }
    }

    /// The CPU time that a piece takes, and the fair share, with what is taken away.
    fn needs(&self, index: usize, cpu: f64, share: f64) -> (f64, f64) {
        let (mut cpu, mut share) = (cpu, share);
        // It queued for each of its turns, for the first because it was woken.
        let mut waking = (share - cpu).max(0.0) / (1.0 + (cpu / TURN).floor());
        if self.threads[index].skipped {
            // It has a CPU already.
            share -= waking;
            waking = 0.0;
        }
        let Some(what_if) = self.what_if else {
            return (cpu, share);
        };
        if what_if.causes.contains(&Cause::SchedRunqueue) {
            share = share.min(cpu) + what_if.factor * (share - cpu).max(0.0);
            waking *= what_if.factor;
        }
        if let Some(all) = self.cpu_shares.get(index) {
            let part: f64 = what_if.causes.iter().filter_map(|cause| all.get(cause)).sum();
            let left = 1.0 - part * (1.0 - what_if.factor);
            (cpu, share) = (cpu * left, (share - waking) * left + waking);
        }
        (cpu, share)
    }
}

/// What a thread awaits in its next step.
fn graph_waits_at(graph: &Graph, index: usize, done: usize) -> Option<Point> {
    match graph.lines[index].steps.get(done)? {
        Step::Wait { by, .. } => *by,
        Step::Run { .. } => None,
    }
}
