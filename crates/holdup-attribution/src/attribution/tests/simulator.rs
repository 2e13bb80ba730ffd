//! A machine with a few CPUs on which threads run, queue, block, wake each other, are born and end.
//!
//! It emits what a source would, and keeps its whole history, in which the critical path is found by really
//! walking backwards.

use super::call_for;
use holdup_evidence::{
    Account, AskerSample, Cause, Clock, CpuSample, End, Event, Finish, Frame, Ns, OpenState, Start, TaskName,
    ThreadId, UserStackId, Wait, WaitMemory, Waker,
};
use std::collections::BTreeMap;

/// What a wait may be for here.
const CAUSES: &[Cause] = &[
    Cause::LockFutex,
    Cause::IpcPipe,
    Cause::DiskRead,
    Cause::ProcessChild,
    Cause::PollWait,
];

/// One random number for each choice of a step: what, who, whom, how long.
pub(super) type Step = (u8, u8, u8, u8);

/// Time by thread id and cause.
pub(super) type Times = BTreeMap<(u32, Cause), Ns>;

#[derive(Debug, Clone, Copy)]
struct Segment {
    cause: Cause,
    length: Ns,
    /// Who ended a wait, and how many segments that thread had then.
    waker: Option<(usize, usize)>,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Running,
    Queued,
    Blocked { since: Ns, cause: Cause },
    Ended,
}

#[derive(Debug)]
struct Thread {
    pid: u32,
    tid: u32,
    born: Ns,
    creator: Option<(usize, usize)>,
    state: State,
    clock: Clock,
    waits: u32,
    samples: u32,
    history: Vec<Segment>,
    /// The cause that memory, when it arrives, will give to the last wait.
    memory: Option<Cause>,
}

/// The machine.
#[derive(Debug)]
pub(super) struct Machine {
    cpus: usize,
    /// A step's number is so many nanoseconds.
    unit: Ns,
    now: Ns,
    threads: Vec<Thread>,
    /// What the source would have said.
    pub(super) events: Vec<Event>,
    ended: Option<usize>,
}

/// When the run starts: not 0, so that a time taken for a length is found out.
const START: Ns = 1_000;

impl Machine {
    /// Runs steps until they are over or CMD has ended, then closes what lives on.
    pub(super) fn run(cpus: usize, steps: &[Step]) -> Machine {
        Machine::in_units(cpus, steps, 7)
    }

    /// The same, with steps of other lengths.
    pub(super) fn in_units(cpus: usize, steps: &[Step], unit: Ns) -> Machine {
        let mut machine = Machine {
            cpus,
            unit,
            now: START,
            threads: Vec::new(),
            events: Vec::new(),
            ended: None,
        };
        machine.born(None, true);
        for step in steps {
            machine.step(*step);
            if machine.ended.is_some() {
                break;
            }
        }
        machine.close();
        machine
    }

    /// What a source hands over at the end.
    pub(super) fn finish(&self) -> Finish {
        Finish {
            started: START,
            ended: self.now,
            user_stacks: (0..4)
                .map(|stack| {
                    vec![Frame {
                        symbol: Some(format!("asker_{}", stack % 3)),
                        module: Some("program".to_owned()),
                        ..Frame::default()
                    }]
                })
                .collect(),
            ..Finish::default()
        }
    }

    fn id(thread: usize) -> ThreadId {
        ThreadId(u32::try_from(thread).expect("few threads"))
    }

    fn task(&self, thread: usize) -> TaskName {
        TaskName {
            pid: self.threads[thread].pid,
            tid: self.threads[thread].tid,
            name: format!("t{thread}"),
            kernel: false,
        }
    }

    fn born(&mut self, creator: Option<usize>, new_process: bool) {
        let index = self.threads.len();
        let tid = 100 + u32::try_from(index).expect("few threads");
        let pid = match creator {
            Some(creator) if !new_process => self.threads[creator].pid,
            _ => tid,
        };
        self.threads.push(Thread {
            pid,
            tid,
            born: self.now,
            creator: creator.map(|creator| (creator, self.threads[creator].history.len())),
            state: State::Queued,
            clock: Clock::default(),
            waits: 0,
            samples: 0,
            history: Vec::new(),
            memory: None,
        });
        self.events.push(Event::Start(Start {
            at: self.now,
            thread: Machine::id(index),
            task: self.task(index),
            parent: creator.map(|creator| (Machine::id(creator), self.threads[creator].clock)),
            inside: None,
            role: Default::default(),
            adopted: None,
        }));
    }

    fn pick(&self, number: u8, wanted: fn(&State) -> bool) -> Option<usize> {
        let those: Vec<usize> = (0..self.threads.len())
            .filter(|thread| wanted(&self.threads[*thread].state))
            .collect();
        (!those.is_empty()).then(|| those[number as usize % those.len()])
    }

    fn pass(&mut self, length: Ns) {
        self.now += length;
        for thread in &mut self.threads {
            let (cause, rare, part) = match thread.state {
                State::Running => {
                    thread.clock.cpu += length;
                    let part = length / 3;
                    thread.clock.interrupt += part;
                    (Cause::CpuUser, Cause::CpuInterrupt, part)
                }
                State::Queued => {
                    thread.clock.queued += length;
                    let part = length / 4;
                    thread.clock.throttled += part;
                    (Cause::SchedRunqueue, Cause::SchedThrottled, part)
                }
                State::Blocked { .. } => {
                    thread.clock.blocked += length;
                    continue;
                }
                State::Ended => continue,
            };
            for (cause, length) in [(rare, part), (cause, length - part)] {
                thread.history.push(Segment {
                    cause,
                    length,
                    waker: None,
                });
            }
        }
    }

    fn schedule(&mut self) {
        let mut free = self.cpus
            - self
                .threads
                .iter()
                .filter(|thread| thread.state == State::Running)
                .count();
        for index in 0..self.threads.len() {
            if free == 0 {
                return;
            }
            if self.threads[index].state == State::Queued {
                self.threads[index].state = State::Running;
                free -= 1;
                if let Some(cause) = self.threads[index].memory.take() {
                    self.remember(index, cause);
                }
            }
        }
    }

    /// The memory of a thread's last wait arrives.
    fn remember(&mut self, index: usize, cause: Cause) {
        let thread = &mut self.threads[index];
        let last = thread
            .history
            .iter_mut()
            .rev()
            .find(|segment| CAUSES.contains(&segment.cause))
            .expect("memory belongs to a wait");
        last.cause = cause;
        let seq = thread.waits;
        self.events.push(Event::WaitMemory(Box::new(WaitMemory {
            returned: Some(i64::from(call_for(cause, 0).number)),
            ..WaitMemory::empty(Machine::id(index), seq)
        })));
    }

    fn step(&mut self, (what, who, whom, length): Step) {
        self.schedule();
        self.pass(Ns::from(length) * self.unit);
        let running = self.pick(who, |state| *state == State::Running);
        let blocked = self.pick(whom, |state| matches!(state, State::Blocked { .. }));
        match (what % 16, running, blocked) {
            (0..=3, Some(thread), _) => {
                self.threads[thread].state = State::Blocked {
                    since: self.now,
                    cause: CAUSES[whom as usize % CAUSES.len()],
                };
            }
            (4..=7, Some(waker), Some(thread)) => self.wake(thread, Some(waker), what),
            (8..=9, _, Some(thread)) => self.wake(thread, None, what),
            (10, Some(creator), _) if self.threads.len() < 12 => self.born(Some(creator), whom % 2 == 0),
            (11, Some(thread), _) if whom % 4 == 0 => self.end(thread),
            (12, Some(thread), _) => self.threads[thread].state = State::Queued,
            (13..=15, Some(thread), _) => self.sample(thread, whom),
            _ => {}
        }
    }

    fn sample(&mut self, index: usize, number: u8) {
        let at = self.now;
        let thread = &mut self.threads[index];
        thread.samples += 1;
        self.events.push(Event::Cpu(CpuSample {
            at,
            thread: Machine::id(index),
            seq: thread.samples,
            user: !number.is_multiple_of(3),
            call: call_for(Cause::CpuKernel, 0),
            object: None,
            kernel_stack: None,
        }));
        if !number.is_multiple_of(5) {
            self.events.push(Event::Asker(AskerSample {
                thread: Machine::id(index),
                first: self.threads[index].samples,
                seq: self.threads[index].samples,
                on_cpu: true,
                stack: UserStackId(u32::from(number % 4)),
                weight: 10,
            }));
        }
    }

    fn record(&self, index: usize, since: Ns, cause: Cause, waker: Waker, memory_follows: bool) -> Wait {
        let thread = &self.threads[index];
        Wait {
            clock: thread.clock,
            waker,
            memory_follows,
            ..Wait::new(
                Machine::id(index),
                thread.waits,
                (since, self.now),
                call_for(cause, u64::from(thread.waits % 3)),
            )
        }
    }

    fn wake(&mut self, index: usize, waker: Option<usize>, number: u8) {
        let State::Blocked { since, cause } = self.threads[index].state else {
            return;
        };
        let who = match waker {
            Some(waker) => Waker::Thread {
                thread: Machine::id(waker),
                clock: self.threads[waker].clock,
                call: call_for(Cause::IpcPipe, 0),
            },
            None if number.is_multiple_of(2) => Waker::Interrupt {
                soft: number.is_multiple_of(4),
                socket: None,
            },
            None => Waker::Outside {
                task: TaskName {
                    pid: 7,
                    tid: 7,
                    name: "outsider".to_owned(),
                    kernel: false,
                },
                call: call_for(Cause::IpcPipe, 0),
            },
        };
        let thread = &mut self.threads[index];
        thread.waits += 1;
        thread.state = State::Queued;
        if cause == Cause::PollWait && number % 32 < 16 {
            thread.memory = Some(Cause::NetReceive);
        }
        let length = self.now - since;
        let mark = waker.map(|waker| (waker, self.threads[waker].history.len()));
        self.threads[index].history.push(Segment {
            cause,
            length,
            waker: mark,
        });
        let follows = cause == Cause::PollWait;
        let wait = self.record(index, since, cause, who, follows);
        let (thread, seq) = (wait.thread, wait.seq);
        self.events.push(Event::Wait(Box::new(wait)));
        if number % 64 < 40 {
            self.events.push(Event::Asker(AskerSample {
                thread,
                first: seq,
                seq,
                on_cpu: false,
                stack: UserStackId(u32::from(number % 4)),
                weight: length.max(1),
            }));
        }
    }

    fn end(&mut self, index: usize) {
        self.threads[index].state = State::Ended;
        self.emit_end(index, None);
        let cmd = self.threads[0].pid;
        let lives = |thread: &Thread| thread.pid == cmd && thread.state != State::Ended;
        if !self.threads.iter().any(lives) {
            self.ended = Some(index);
        }
    }

    fn emit_end(&mut self, index: usize, open: Option<OpenState>) {
        let thread = &self.threads[index];
        self.events.push(Event::End(Box::new(End {
            at: self.now,
            thread: Machine::id(index),
            task: self.task(index),
            born: thread.born,
            clock: thread.clock,
            blockings: u64::from(thread.waits),
            lost: (0, 0),
            interrupts: [0; 6],
            account: Some(Account::default()),
            open,
            exit_code: 0,
        })));
    }

    /// Observation ends: CMD's threads end first if they still live, all others are open.
    fn close(&mut self) {
        let cmd = self.threads[0].pid;
        for index in 0..self.threads.len() {
            let open = match self.threads[index].state {
                State::Ended => continue,
                State::Running => OpenState::Running,
                State::Queued => OpenState::Runnable,
                State::Blocked { since, cause } => {
                    self.threads[index].waits += 1;
                    let length = self.now - since;
                    self.threads[index].history.push(Segment {
                        cause,
                        length,
                        waker: None,
                    });
                    let wait = self.record(index, since, cause, Waker::Unknown, false);
                    OpenState::Blocked(Box::new(wait))
                }
            };
            self.emit_end(index, Some(open));
            if self.threads[index].pid == cmd && self.threads[index].state != State::Ended {
                // Several may be open at one instant: the last that is reported is the one that is followed.
                self.ended = Some(index);
            }
        }
    }

    /// Walks backwards from CMD's end: the path, and what was handed on along it.
    pub(super) fn walk(&self) -> (Times, Times) {
        let (mut path, mut handed_on) = (Times::new(), Times::new());
        let mut thread = self.ended.expect("the run is closed");
        let mut left = self.threads[thread].history.len();
        loop {
            let tid = self.threads[thread].tid;
            if left == 0 {
                match self.threads[thread].creator {
                    Some(creator) => (thread, left) = creator,
                    None => return (path, handed_on),
                }
                continue;
            }
            let segment = self.threads[thread].history[left - 1];
            match segment.waker {
                Some(waker) => {
                    *handed_on.entry((tid, segment.cause)).or_default() += segment.length;
                    (thread, left) = waker;
                }
                None => {
                    *path.entry((tid, segment.cause)).or_default() += segment.length;
                    left -= 1;
                }
            }
        }
    }

    /// When the path was where, walking backwards: what for, from when, until when.
    pub(super) fn walk_when(&self) -> Vec<(Cause, Ns, Ns)> {
        let mut when = Vec::new();
        let mut at = self.now;
        let mut thread = self.ended.expect("the run is closed");
        let mut left = self.threads[thread].history.len();
        loop {
            if left == 0 {
                match self.threads[thread].creator {
                    Some(creator) => (thread, left) = creator,
                    None => return when,
                }
                continue;
            }
            let segment = self.threads[thread].history[left - 1];
            match segment.waker {
                Some(waker) => (thread, left) = waker,
                None => {
                    when.push((segment.cause, at - segment.length, at));
                    at -= segment.length;
                    left -= 1;
                }
            }
        }
    }

    /// Each thread's own time.
    pub(super) fn own(&self) -> Times {
        let mut own = Times::new();
        for thread in &self.threads {
            for segment in &thread.history {
                *own.entry((thread.tid, segment.cause)).or_default() += segment.length;
            }
        }
        own
    }

    /// When each thread's own time passed: what for, from when, until when.
    pub(super) fn when(&self) -> Vec<(u32, Cause, Ns, Ns)> {
        let mut when = Vec::new();
        for thread in &self.threads {
            let mut at = thread.born;
            for segment in &thread.history {
                when.push((thread.tid, segment.cause, at, at + segment.length));
                at += segment.length;
            }
        }
        when
    }

    /// How long CMD ran.
    pub(super) fn elapsed(&self) -> Ns {
        self.now - START
    }
}
