//! Runs written by hand: each thread's doings in turn, with clocks kept as the kernel side would.

use super::{attribute, call_for};
use holdup_evidence::{
    AskerSample, Call, Cause, Clock, CpuSample, End, Event, FUTEX_AT, FUTEX_WORDS, Finish, Frame,
    KernelStackId, LockHolder, Ns, OpenState, Start, SystemFacts, TaskName, ThreadId, UserStackId, Wait,
    Waker,
};
use holdup_model::attributed::{Attributed, AttributedWait};
use std::collections::BTreeMap;

#[derive(Clone)]
struct Actor {
    task: TaskName,
    born: Ns,
    clock: Clock,
    seq: u32,
    samples: u32,
}

/// Who ends a wait.
pub(super) enum By {
    /// A device or a timer.
    Interrupt,
    /// A thread of the run, in this call.
    Thread(u32, Call),
    /// A process outside of it.
    Outside(u32, &'static str),
}

/// A run being reported.
#[derive(Clone, Default)]
pub(super) struct Scene {
    actors: BTreeMap<u32, Actor>,
    pub(super) events: Vec<Event>,
    pub(super) stacks: Vec<Vec<Frame>>,
    pub(super) facts: SystemFacts,
}

/// The write system call: one that moves data through a pipe.
pub(super) const WRITE: Call = Call {
    number: 1,
    args: [1, 0, 0, 0],
};

/// What a thread is in that ends, and others of its process do not.
pub(super) const ENDS: Call = Call {
    number: 60,
    args: [0; 4],
};

/// What a thread is in that ends its process.
pub(super) fn exiting() -> Call {
    Call {
        number: 231,
        args: [0; 4],
    }
}

impl Scene {
    /// CMD: one thread, number 0, at instant 0.
    pub(super) fn new(name: &str) -> Scene {
        let mut scene = Scene::default();
        scene.actor(0, 100, 100, name, 0);
        scene.events.push(Event::Start(Start {
            at: 0,
            thread: ThreadId(0),
            task: scene.actors[&0].task.clone(),
            parent: None,
            inside: None,
            role: Default::default(),
            adopted: None,
        }));
        scene
    }

    fn actor(&mut self, id: u32, pid: u32, tid: u32, name: &str, born: Ns) {
        let actor = Actor {
            task: TaskName {
                pid,
                tid,
                name: name.to_owned(),
                kernel: false,
            },
            born,
            clock: Clock::default(),
            seq: 0,
            samples: 0,
        };
        self.actors.insert(id, actor);
    }

    fn now(&self, id: u32) -> Ns {
        self.actors[&id].born + self.actors[&id].clock.total()
    }

    fn birth(&mut self, id: u32, by: u32, pid: u32, name: &str) {
        let at = self.now(by);
        self.actor(id, pid, 100 + id, name, at);
        self.events.push(Event::Start(Start {
            at,
            thread: ThreadId(id),
            task: self.actors[&id].task.clone(),
            parent: Some((ThreadId(by), self.actors[&by].clock)),
            inside: None,
            role: Default::default(),
            adopted: None,
        }));
    }

    /// A new process of this name; its pid is 100 more than its number.
    pub(super) fn process(&mut self, id: u32, by: u32, name: &str) {
        self.birth(id, by, 100 + id, name);
    }

    /// A new thread of the creator's process.
    pub(super) fn thread(&mut self, id: u32, by: u32, name: &str) {
        let pid = self.actors[&by].task.pid;
        self.birth(id, by, pid, name);
    }

    pub(super) fn exec(&mut self, id: u32, name: &str) {
        let at = self.now(id);
        let actor = self.actors.get_mut(&id).expect("told before");
        actor.task.name = name.to_owned();
        let task = actor.task.clone();
        self.events.push(Event::Exec {
            at,
            thread: ThreadId(id),
            task,
            program: format!("/bin/{name}"),
        });
    }

    pub(super) fn cpu(&mut self, id: u32, ns: Ns) {
        self.actors.get_mut(&id).expect("told before").clock.cpu += ns;
    }

    /// CPU time that was counted already, and of it what was with a request to answer.
    pub(super) fn served(&mut self, id: u32, ns: Ns) {
        self.actors.get_mut(&id).expect("told before").clock.served_cpu += ns;
    }

    pub(super) fn queue(&mut self, id: u32, ns: Ns) {
        self.actors.get_mut(&id).expect("told before").clock.queued += ns;
    }

    /// Waits that are like the last one reported, and have no records: so many, of so much time in all.
    pub(super) fn repeats(&mut self, id: u32, repeats: u64, ns: Ns) {
        let clock = &mut self.actors.get_mut(&id).expect("told before").clock;
        clock.blocked += ns;
        clock.repeated += ns;
        clock.repeats += repeats;
    }

    /// A wait that ends at this instant.
    pub(super) fn wait(&mut self, id: u32, cause: Cause, until: Ns, by: By) -> &mut Wait {
        let waker = match by {
            By::Interrupt => Waker::Interrupt {
                soft: false,
                socket: None,
            },
            By::Thread(waker, call) => {
                assert_eq!(self.now(waker), until, "the waker acts when the wait ends");
                Waker::Thread {
                    thread: ThreadId(waker),
                    clock: self.actors[&waker].clock,
                    call,
                }
            }
            By::Outside(pid, name) => Waker::Outside {
                task: TaskName {
                    pid,
                    tid: pid,
                    name: name.to_owned(),
                    kernel: false,
                },
                call: WRITE,
            },
        };
        let wait = self.record(id, cause, until, waker);
        self.events.push(Event::Wait(Box::new(wait)));
        match self.events.last_mut() {
            Some(Event::Wait(wait)) => wait,
            _ => unreachable!("it was just pushed"),
        }
    }

    fn record(&mut self, id: u32, cause: Cause, until: Ns, waker: Waker) -> Wait {
        let start = self.now(id);
        let actor = self.actors.get_mut(&id).expect("told before");
        actor.seq += 1;
        actor.clock.blocked += until.checked_sub(start).expect("a wait ends after it began");
        Wait {
            clock: actor.clock,
            waker,
            ..Wait::new(ThreadId(id), actor.seq, (start, until), call_for(cause, 0))
        }
    }

    /// The last wait of a thread was asked for by this function.
    pub(super) fn asked(&mut self, id: u32, function: &str, weight: Ns) {
        let seq = self.actors[&id].seq;
        self.sample_stack(id, seq, false, function, weight);
    }

    /// A look at a running thread.
    pub(super) fn look(&mut self, id: u32, user: bool, function: Option<&str>) {
        let at = self.now(id);
        let actor = self.actors.get_mut(&id).expect("told before");
        actor.samples += 1;
        let seq = actor.samples;
        self.events.push(Event::Cpu(CpuSample {
            at,
            thread: ThreadId(id),
            seq,
            user,
            call: Call::none(),
            object: None,
            kernel_stack: None,
        }));
        if let Some(function) = function {
            self.sample_stack(id, seq, true, function, 1);
        }
    }

    fn sample_stack(&mut self, id: u32, seq: u32, on_cpu: bool, function: &str, weight: Ns) {
        let stack = vec![Frame {
            symbol: Some(function.to_owned()),
            module: Some("program".to_owned()),
            ..Frame::default()
        }];
        let known = self.stacks.iter().position(|known| *known == stack);
        let index = known.unwrap_or_else(|| {
            self.stacks.push(stack);
            self.stacks.len() - 1
        });
        self.events.push(Event::Asker(AskerSample {
            thread: ThreadId(id),
            first: seq,
            seq,
            on_cpu,
            stack: UserStackId(u32::try_from(index).expect("few stacks")),
            weight,
        }));
    }

    pub(super) fn kernel_stack(&mut self, id: u32, frame: &str) -> KernelStackId {
        self.events.push(Event::KernelStack {
            id: KernelStackId(id),
            frames: vec![frame.to_owned()],
        });
        KernelStackId(id)
    }

    pub(super) fn end(&mut self, id: u32) {
        self.close(id, None);
    }

    /// A thread that waits for this when observation ends.
    pub(super) fn left_waiting(&mut self, id: u32, cause: Cause, until: Ns, prepare: impl FnOnce(&mut Wait)) {
        let mut wait = self.record(id, cause, until, Waker::Unknown);
        prepare(&mut wait);
        self.close(id, Some(OpenState::Blocked(Box::new(wait))));
    }

    fn close(&mut self, id: u32, open: Option<OpenState>) {
        let at = self.now(id);
        let actor = &self.actors[&id];
        self.events.push(Event::End(Box::new(End {
            at,
            thread: ThreadId(id),
            task: actor.task.clone(),
            born: actor.born,
            clock: actor.clock,
            blockings: u64::from(actor.seq),
            lost: (0, 0),
            interrupts: [0; 6],
            account: None,
            open,
            exit_code: 0,
        })));
    }

    /// Attributes it; observation ends with CMD.
    pub(super) fn attributed(&self) -> Attributed {
        let finish = Finish {
            ended: self.now(0),
            user_stacks: self.stacks.clone(),
            ..Finish::default()
        };
        let run = attribute(&self.events, &finish, &self.facts);
        assert_eq!(super::balances(&run), Ok(()));
        run
    }
}

/// Memory around a futex: the word itself, and those behind it.
pub(super) fn words(from_futex: &[u32]) -> LockHolder {
    let mut words = [0; FUTEX_WORDS];
    words[FUTEX_AT..FUTEX_AT + from_futex.len()].copy_from_slice(from_futex);
    LockHolder::FutexWords(words)
}

/// A wait for a mutex that is locked, with waiters, by this thread id.
pub(super) fn waits_for_mutex_of(wait: &mut Wait, tid: u32) {
    wait.call.args[2] = 2;
    wait.holder = Some(words(&[2, 0, tid, 1]));
}

/// The only row of a thread (by number) with this cause.
pub(super) fn row(run: &Attributed, id: u32, cause: Cause) -> &AttributedWait {
    let mut rows = run
        .waits
        .iter()
        .filter(|row| row.asker.name.tid == 100 + id && row.cause == cause);
    let row = rows.next().expect("there is such a row");
    assert!(rows.next().is_none(), "there is one such row");
    row
}

/// The path's times by cause.
pub(super) fn path(run: &Attributed) -> Vec<(Cause, Ns)> {
    run.path.iter().map(|(cause, tally)| (*cause, tally.ns)).collect()
}
