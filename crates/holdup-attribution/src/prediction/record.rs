//! The graph of a run's waits: who ran for how long, waited for what, and was woken by whom at which point.
//!
//! In: starts, waits, CPU samples and ends as attribution meets them. Out: a [`Graph`]. A thread's list is cut wherever it wakes or makes
//! another, so a point is a number of steps. It is kept under `--predict` alone, and only up to [`MAX_STEPS`]: what is longer is not predicted.

use super::Question;
use holdup_evidence::{Cause, Clock, Event, Ns, OpenState, Seq, ThreadId, Wait, Waker};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::{Attributed, Pace};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Steps that are kept, over all threads: 48 bytes each, and as much again while predicting.
const MAX_STEPS: usize = 1_000_000;

/// Threads end together if it takes them no more than this part of the elapsed time.
pub(crate) const TOGETHER: u64 = 100;

/// Threads that end so shortly before their process does may be ended by that, nanoseconds: what the kernel takes to kill them.
const KILLED: Ns = 5_000_000;

/// A place in a thread's list: so many of its steps are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) line: usize,
    pub(super) steps: usize,
}

/// What a thread did.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// It was ready or ran until `end`, for `length`, `cpu` of it on a CPU.
    Run { end: Ns, length: Ns, cpu: Ns },
    /// It waited.
    Wait {
        length: Ns,
        end: Ns,
        seq: Seq,
        /// Where the thread of the run stood that ended it; else it was a device, a timer or an outsider.
        by: Option<Point>,
        /// Whether it was for that one's end, and so for all of its work.
        for_end: bool,
        cause: Cause,
    },
}

/// A thread.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Where its creator stood.
    pub(super) creator: Option<Point>,
    /// When it was born, for one without a creator in the run.
    pub(super) born: Ns,
    pub(super) steps: Vec<Step>,
    /// Whether CMD's process ends with it; of several in the end one is left.
    pub(super) of_cmd: bool,
    /// CPU samples in user mode, and in the kernel.
    pub(super) samples: (u64, u64),
    /// The group of threads that may run on the same CPUs.
    pub(super) pool: usize,
    /// Whether its sleeps end at fixed times.
    pub(super) at_fixed_times: bool,
    /// CPU time for which a quota had been spent.
    pub(super) throttled: Ns,
    pid: u32,
    tid: u32,
    at: Ns,
    clock: Clock,
    /// Which CPUs, as a bit each, where that was reported.
    allowed: Option<u64>,
    /// What its waits were told to be for.
    causes: Vec<(Seq, Cause)>,
    /// Those that it made and that ended since it last waited for one of them to.
    ended: Vec<usize>,
}

/// Takes the graph down.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    question: Question,
    lines: Vec<Line>,
    numbers: HashMap<ThreadId, usize>,
    steps: usize,
    /// When it became too long.
    too_long: Option<Ns>,
    lost: Ns,
    open: bool,
}

impl Recorder {
    pub(crate) fn new(question: Question) -> Recorder {
        Recorder {
            question,
            lines: Vec::new(),
            numbers: HashMap::new(),
            steps: 0,
            too_long: None,
            lost: 0,
            open: false,
        }
    }

    /// What needs no judgement of attribution's.
    pub(crate) fn push(&mut self, event: &Event) {
        if self.too_long.is_some() {
            return;
        }
        match event {
            Event::Start(start) if !self.numbers.contains_key(&start.thread) => {
                let creator = start
                    .parent
                    .map(|(parent, clock)| self.cut(parent, &clock, start.at));
                let ids = (start.task.pid, start.task.tid);
                self.born(start.thread, start.at, ids, creator);
            }
            Event::Start(start) => {
                let line = self.numbers[&start.thread];
                (self.lines[line].pid, self.lines[line].tid) = (start.task.pid, start.task.tid);
            }
            Event::Cpu(sample) => {
                if let Some(line) = self.numbers.get(&sample.thread) {
                    let samples = &mut self.lines[*line].samples;
                    samples.0 += u64::from(sample.user);
                    samples.1 += u64::from(!sample.user);
                }
            }
            Event::RanInstead(ran) if ran.allowed.count > 0 && ran.allowed.count <= 64 => {
                if let Some(line) = self.numbers.get(&ran.thread) {
                    self.lines[*line].allowed = Some(ran.allowed.first);
                }
            }
            Event::End(end) => {
                if let Some(OpenState::Blocked(wait)) = &end.open {
                    self.waited(wait, None);
                }
                let line = self.met(end.thread, &end.clock, end.at);
                // What it is in the middle of as observation ends nobody waits for.
                if end.open.is_none() {
                    self.advance(line, &end.clock, end.at);
                    self.joins(line, end.at.saturating_sub(KILLED));
                    let creator = self.lines.get(line).and_then(|line| line.creator);
                    if let Some(creator) = creator.and_then(|creator| self.lines.get_mut(creator.line)) {
                        creator.ended.push(line);
                    }
                }
                if let Some(line) = self.lines.get_mut(line) {
                    line.throttled = end.clock.throttled;
                }
            }
            _ => {}
        }
    }

    fn born(&mut self, thread: ThreadId, at: Ns, (pid, tid): (u32, u32), creator: Option<Point>) -> usize {
        let line = self.lines.len();
        self.lines.push(Line {
            creator,
            born: at,
            steps: Vec::new(),
            of_cmd: false,
            samples: (0, 0),
            pool: 0,
            at_fixed_times: false,
            throttled: 0,
            pid,
            tid,
            at,
            clock: Clock::default(),
            allowed: None,
            causes: Vec::new(),
            ended: Vec::new(),
        });
        self.numbers.insert(thread, line);
        // A thread costs as much as some steps.
        self.count(4, at);
        line
    }

    fn count(&mut self, steps: usize, at: Ns) {
        self.steps += steps;
        if self.steps > MAX_STEPS && self.too_long.is_none() {
            self.too_long = Some(at);
            self.lines = Vec::new();
            self.numbers = HashMap::new();
        }
    }

    /// A thread whose birth was not known begins where its clock says.
    fn met(&mut self, thread: ThreadId, clock: &Clock, at: Ns) -> usize {
        match self.numbers.get(&thread) {
            Some(line) => *line,
            None => self.born(thread, at.saturating_sub(clock.total()), (0, 0), None),
        }
    }

    /// Where a thread stands as it does something to another.
    fn cut(&mut self, thread: ThreadId, clock: &Clock, at: Ns) -> Point {
        let line = self.met(thread, clock, at);
        self.advance(line, clock, at);
        let steps = self.lines.get(line).map_or(0, |line| line.steps.len());
        Point { line, steps }
    }

    /// A thread ran, or was ready to, until here.
    fn advance(&mut self, line: usize, clock: &Clock, at: Ns) {
        let Some(thread) = self.lines.get_mut(line) else {
            return;
        };
        let length = at.saturating_sub(thread.at);
        let cpu = clock.cpu.saturating_sub(thread.clock.cpu).min(length);
        let queued = clock.queued.saturating_sub(thread.clock.queued).min(length - cpu);
        thread.clock = *clock;
        if length == 0 {
            return;
        }
        thread.at = at;
        thread.steps.push(Step::Run { end: at, length, cpu });
        self.lost = self.lost.saturating_add(length - cpu - queued);
        self.count(1, at);
    }

    /// A wait is over. `by`: the thread of the run that has ended it, where the path goes on with that one; an ended one
    /// stands at its end.
    pub(crate) fn waited(&mut self, wait: &Wait, by: Option<ThreadId>) {
        if self.too_long.is_some() {
            return;
        }
        let by = match (&wait.waker, by) {
            (Waker::Thread { clock, .. }, Some(thread)) => Some(self.cut(thread, clock, wait.end)),
            (_, Some(thread)) => self.numbers.get(&thread).map(|line| Point {
                line: *line,
                steps: self.lines[*line].steps.len(),
            }),
            (_, None) => None,
        };
        let line = self.met(wait.thread, &wait.clock, wait.end);
        self.advance(line, &wait.clock, wait.start);
        let exits = match &wait.waker {
            Waker::Thread { call, .. } => system_calls::is(call, Does::Exits),
            _ => true,
        };
        let for_end = by.is_some() && exits;
        let own = |by: Point| self.lines.get(by.line).and_then(|by| by.creator);
        if for_end && by.and_then(own).is_some_and(|creator| creator.line == line) {
            self.joins(line, wait.end);
        }
        let Some(thread) = self.lines.get_mut(line) else {
            return;
        };
        let length = wait.end.saturating_sub(wait.start.max(thread.at));
        thread.at = thread.at.max(wait.end);
        thread.steps.push(Step::Wait {
            length,
            end: wait.end,
            seq: wait.seq,
            by,
            for_end,
            cause: Cause::Unknown,
        });
        self.count(1, wait.end);
    }

    /// A thread that waits for the end of one that it made waits for the ends of all that it made: for those that have ended already no wait
    /// is seen, and there would be one if they ended later than the others. The same at its own end, where it is not known when it
    /// would have waited. Who ends after `before` in the same process may be killed by its end.
    fn joins(&mut self, line: usize, before: Ns) {
        let Some(thread) = self.lines.get_mut(line) else {
            return;
        };
        let (at, pid, ended) = (thread.at, thread.pid, std::mem::take(&mut thread.ended));
        for other in ended {
            let theirs = &self.lines[other];
            let by = Point {
                line: other,
                steps: theirs.steps.len(),
            };
            if theirs.at <= before || theirs.pid != pid {
                self.lines[line].steps.push(Step::Wait {
                    length: 0,
                    end: at,
                    seq: 0,
                    by: Some(by),
                    for_end: true,
                    cause: Cause::Unknown,
                });
            }
        }
    }

    /// What a wait was for.
    pub(crate) fn set_cause(&mut self, thread: ThreadId, seq: Seq, cause: Cause) {
        if let Some(line) = self.numbers.get(&thread) {
            self.lines[*line].causes.push((seq, cause));
        }
    }

    /// CMD's process ends with this one, as far as is known; `open`: it has not ended.
    pub(crate) fn ends_cmd(&mut self, thread: ThreadId, open: bool) {
        if let Some(line) = self.numbers.get(&thread) {
            self.lines[*line].of_cmd = true;
        }
        self.open |= open;
    }

    /// Observation is over.
    pub(super) fn into_graph(mut self, run: &Attributed) -> Result<Graph, String> {
        if let Some(at) = self.too_long {
            let seconds = at.saturating_sub(run.began) / 1_000_000_000;
            return Err(format!(
                "too long to predict: after {seconds} s there were more than {MAX_STEPS} waits and wakeups"
            ));
        }
        if self.open || !self.lines.iter().any(|line| line.of_cmd) {
            return Err("the command had not ended".to_owned());
        }
        self.ends_with_one();
        let paced = run
            .waits
            .iter()
            .filter(|row| row.cause == Cause::TimerSleep && row.pace == Pace::FixedTimes);
        let paced: HashSet<u32> = paced.map(|row| row.asker.name.tid).collect();
        let mut pools = Pools::default();
        let masks: Vec<Option<u64>> = (0..self.lines.len()).map(|line| self.mask(line)).collect();
        for (line, mask) in self.lines.iter_mut().zip(masks) {
            line.pool = pools.of(mask, self.question.cpus);
            line.at_fixed_times = line.tid != 0 && paced.contains(&line.tid);
            line.causes.sort_by_key(|(seq, _)| *seq);
            let found = std::mem::take(&mut line.causes);
            for step in &mut line.steps {
                if let Step::Wait { seq, cause, .. } = step
                    && let Ok(at) = found.binary_search_by_key(seq, |(seq, _)| *seq)
                {
                    *cause = found[at].1;
                }
            }
        }
        let start = self.lines.iter().map(|line| line.born).min().unwrap_or(0);
        Ok(Graph {
            question: self.question,
            lines: self.lines,
            pools: pools.sizes,
            lost: self.lost,
            start,
        })
    }

    /// Which thread CMD's end waits for. Where its first thread ends its process, others may be in the middle of something, and would
    /// end earlier if that one did; so it counts alone unless others went on for long. A thread that is woken to end has that from its waker.
    fn ends_with_one(&mut self) {
        let last = self
            .lines
            .iter()
            .filter(|line| line.of_cmd)
            .max_by_key(|line| line.at);
        let Some(last) = last.map(|line| line.at) else {
            return;
        };
        let first = self.lines.iter().map(|line| line.born).min().unwrap_or(0);
        let at_once = (last - first.min(last)) / TOGETHER;
        let ends = |line: &Line| line.of_cmd && line.at + at_once >= last;
        let main = self
            .numbers
            .get(&ThreadId(0))
            .filter(|main| ends(&self.lines[**main]));
        let one = main
            .copied()
            .or_else(|| self.lines.iter().position(|line| line.of_cmd && line.at == last));
        for (index, line) in self.lines.iter_mut().enumerate() {
            line.of_cmd = Some(index) == one;
        }
    }

    /// Where a thread may run: where it was told to, or where its creator may, as far as a thread passes that on.
    fn mask(&self, line: usize) -> Option<u64> {
        let creator = |line: &usize| self.lines[*line].creator.map(|creator| creator.line);
        std::iter::successors(Some(line), creator).find_map(|line| self.lines[line].allowed)
    }
}

/// Threads that may run on the same CPUs.
#[derive(Debug, Default)]
struct Pools {
    numbers: HashMap<Option<u64>, usize>,
    sizes: Vec<f64>,
}

/// Sets of CPUs that are distinguished; more share the whole machine.
const MAX_POOLS: usize = 16;

impl Pools {
    fn of(&mut self, mask: Option<u64>, cpus: u32) -> usize {
        let mask = mask.filter(|mask| mask.count_ones() < cpus && self.sizes.len() < MAX_POOLS);
        *self.numbers.entry(mask).or_insert_with(|| {
            self.sizes.push(f64::from(mask.map_or(cpus, u64::count_ones)));
            self.sizes.len() - 1
        })
    }
}

/// The graph of a run's waits.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) question: Question,
    pub(super) lines: Vec<Line>,
    /// How many CPUs the threads of each pool have.
    pub(super) pools: Vec<f64>,
    /// Thread time whose records were lost.
    pub(super) lost: Ns,
    /// When the first thread was born.
    pub(super) start: Ns,
}

impl Graph {
    /// Time that threads waited for this.
    pub(super) fn time_for(&self, wanted: Cause) -> Ns {
        self.waits()
            .filter(|(cause, ..)| *cause == wanted)
            .fold(0, |sum, (_, length, _)| sum.saturating_add(length))
    }

    /// Of that, how much a thread of the run ended.
    pub(super) fn handed_on(&self, wanted: Cause) -> Ns {
        let steps = self.lines.iter().flat_map(|line| &line.steps);
        let ended = steps.filter_map(|step| match step {
            Step::Wait {
                cause,
                length,
                by: Some(_),
                ..
            } if *cause == wanted => Some(*length),
            _ => None,
        });
        ended.fold(0, Ns::saturating_add)
    }

    /// Every wait: for what, how long, until when.
    pub(super) fn waits(&self) -> impl Iterator<Item = (Cause, Ns, Ns)> + '_ {
        let steps = self.lines.iter().flat_map(|line| &line.steps);
        steps.filter_map(|step| match step {
            Step::Wait {
                cause, length, end, ..
            } => Some((*cause, *length, *end)),
            Step::Run { .. } => None,
        })
    }

    /// For which of a thread's CPU time something is: by its samples, or, where it has hardly any, by all.
    pub(super) fn cpu_shares(&self) -> Vec<BTreeMap<Cause, f64>> {
        let all = self.lines.iter().fold((0, 0), |sum, line| {
            (sum.0 + line.samples.0, sum.1 + line.samples.1)
        });
        let of = |(user, kernel): (u64, u64)| {
            let sum = (user + kernel).max(1) as f64;
            let user = if user + kernel == 0 {
                1.0
            } else {
                user as f64 / sum
            };
            BTreeMap::from([(Cause::CpuUser, user), (Cause::CpuKernel, 1.0 - user)])
        };
        let enough = |samples: (u64, u64)| samples.0 + samples.1 >= ENOUGH_SAMPLES;
        self.lines
            .iter()
            .map(|line| of(if enough(line.samples) { line.samples } else { all }))
            .collect()
    }
}

/// Samples from which a thread's own tell how its CPU time splits: a standard error of at most 16 percentage points.
const ENOUGH_SAMPLES: u64 = 10;
