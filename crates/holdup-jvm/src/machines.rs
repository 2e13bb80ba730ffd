//! The machines of a run, each read by a child process of its own that can be left behind.
//!
//! Reading another process's memory can block for as long as that process's address space is locked or a page of it does
//! not come. So each machine is read by a child, and one that has not answered in time is not asked again until it
//! has. In: frames of code without a file, from the walker of stacks; and that it is time to look at locks. Out: Java
//! frames, and which threads wait for whose locks.
//!
//! Locks are looked at while threads wait, for afterwards nobody knows who had them. A look costs as much as there are
//! threads, so looks get rarer until all of them together take half a per cent of a CPU.

use crate::arch::SAVED;
use crate::frames::Walk;
use crate::itself::Itself;
use crate::machine::{Machine, Structures, Unread};
use crate::memory::Running;
use crate::monitors::{Found, Sighting};
use crate::pools::Pool;
use crate::safepoints::Operations;
use crate::structures::SYMBOLS;
use crate::virtuals::Virtuals;
use holdup_detached::{Bytes, Failed};
use holdup_evidence::{Frame, Ns};
use holdup_proc::blocking::{self, Reader as Child};
use holdup_proc::clocks;
use holdup_symbols::{Asked, Mapped, ProcessKey, Registers, Runtime, StackBytes, Walked};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is waited for. The first takes some 10 ms, for the tables are read; others some 100 µs. What has
/// come later is thrown away, and the next question asked as ever: the reader may only have waited for a CPU.
const LIMIT: Duration = Duration::from_millis(200);

/// Machines that are read at a time.
const MACHINES_MAX: usize = 256;

/// Frames of a machine that are kept to be shared by the stacks that have them; then they are gathered anew.
const FRAMES_MAX: usize = 65_536;

/// Least time between two looks at locks: a wait that is worth a name is longer.
const OFTEN: Duration = Duration::from_millis(20);

/// A look is followed by so many times the CPU time that it took without one: it costs a quarter of a per cent of a core.
const RARELY: u32 = 400;

/// The same where waits are looked at, too: there looks at locks are all that tells of them, and their cost is a part of what looks may cost.
const LESS_RARELY: u32 = 100;

/// All of them. Clones are of the same.
#[derive(Debug, Clone)]
pub struct Machines(Arc<Mutex<Readers>>);

/// A look that takes longer is taken for one that will not end.
const STUCK: Duration = Duration::from_secs(1);

/// What was seen of a machine's locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Whose.
    pub process: ProcessKey,
    /// When it began.
    pub from: Ns,
    /// When it was over.
    pub to: Ns,
    /// The threads that waited for a lock with an owner.
    pub waiting: Vec<Sighting>,
    /// The threads that waited for another's end, and whose: ids in their pid namespace.
    pub joins: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Readers {
    of: HashMap<ProcessKey, Reader>,
    limit: Duration,
    /// See [`RARELY`].
    rarely: u32,
    /// What has not been taken yet.
    looks: Vec<Look>,
}

#[derive(Debug)]
struct Reader {
    child: Child<Question, Answer>,
    /// Those that came so far: most stacks have the same.
    frames: HashSet<Arc<Frame>>,
    /// Answers to questions other than for locks that have not come in time.
    owed: u32,
    /// Since when its locks are looked at.
    looking: Option<Instant>,
    looked: bool,
    next_look: Instant,
    rarely: u32,
    pid: u32,
    structures: Structures,
}

#[derive(Debug, Serialize, Deserialize)]
enum Question {
    Walk(Place),
    Operations,
    Itself,
    Virtuals,
    Pools,
    Locks,
}

#[derive(Debug, Serialize, Deserialize)]
struct Place {
    registers: Held,
    interrupted: bool,
    start: u64,
    bytes: Bytes,
    at: Ns,
}

/// Registers, as they are sent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Held {
    ip: u64,
    sp: u64,
    sp_known: bool,
    saved: [Option<u64>; SAVED],
}

/// A walk, as it is sent.
#[derive(Debug, Serialize, Deserialize)]
struct WalkFound {
    frames: Vec<Arc<Frame>>,
    caller: Option<Held>,
    name: Option<(u32, Arc<str>)>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Walk(Option<WalkFound>),
    Operations(Option<Operations>),
    Itself(Option<Itself>),
    Virtuals(Option<Virtuals>),
    Pools(Option<Vec<Pool>>),
    Locks {
        from: Ns,
        to: Ns,
        /// What it cost.
        cpu: Duration,
        found: Found,
        structures: Structures,
    },
}

impl From<Registers> for Held {
    fn from(registers: Registers) -> Held {
        let Registers {
            ip,
            sp,
            sp_known,
            saved,
        } = registers;
        Held {
            ip,
            sp,
            sp_known,
            saved,
        }
    }
}

impl From<Held> for Registers {
    fn from(held: Held) -> Registers {
        let Held {
            ip,
            sp,
            sp_known,
            saved,
        } = held;
        Registers {
            ip,
            sp,
            sp_known,
            saved,
        }
    }
}

impl From<Walk> for WalkFound {
    fn from(walk: Walk) -> WalkFound {
        WalkFound {
            frames: walk.frames,
            caller: walk.caller.map(Held::from),
            name: walk.name,
        }
    }
}

impl Default for Machines {
    fn default() -> Machines {
        Machines::waiting(LIMIT)
    }
}

impl Machines {
    /// With another limit for how long an answer is waited for.
    #[must_use]
    pub fn waiting(limit: Duration) -> Machines {
        Machines(Arc::new(Mutex::new(Readers {
            of: HashMap::new(),
            limit,
            rarely: RARELY,
            looks: Vec::new(),
        })))
    }

    /// With locks looked at more often, for a source that looks at waits as well.
    #[must_use]
    pub fn less_rarely(self) -> Machines {
        self.readers().rarely = LESS_RARELY;
        self
    }

    /// Has the locks of those looked at whose turn it is, and hands out what earlier looks came to. Waits for nobody.
    pub fn look(&self) -> Vec<Look> {
        let mut readers = self.readers();
        let now = Instant::now();
        readers.gather();
        for reader in readers.of.values_mut() {
            if reader.next_look <= now {
                reader.look(now);
            }
        }
        std::mem::take(&mut readers.looks)
    }

    /// Looks at all once more, and waits for them as long as for any answer.
    pub fn look_now(&self) -> Vec<Look> {
        let mut readers = self.readers();
        readers.gather();
        let now = Instant::now();
        for reader in readers.of.values_mut() {
            reader.look(now);
        }
        let until = latest(readers.limit);
        let Readers { of, looks, .. } = &mut *readers;
        for (process, reader) in of {
            while reader.looking.is_some()
                && let Ok(answer) = reader.child.answer(until)
            {
                reader.take(*process, answer, looks);
            }
        }
        std::mem::take(looks)
    }

    /// What a process's machine has stopped its threads for, if it answers in time.
    pub fn operations(&self, pid: u32, until: Instant) -> Option<Operations> {
        match self.asked_of(pid, Question::Operations, until)? {
            Answer::Operations(operations) => operations,
            _ => None,
        }
    }

    /// What a process's machine is, if it answers in time.
    pub fn itself(&self, pid: u32, until: Instant) -> Option<Itself> {
        match self.asked_of(pid, Question::Itself, until)? {
            Answer::Itself(itself) => itself,
            _ => None,
        }
    }

    /// The virtual threads of a process's machine, if it answers in time.
    pub fn virtuals(&self, pid: u32, until: Instant) -> Option<Virtuals> {
        match self.asked_within(pid, Question::Virtuals, until, true)? {
            Answer::Virtuals(virtuals) => virtuals,
            _ => None,
        }
    }

    /// The pools of threads of a process's machine, if it answers in time.
    pub fn pools(&self, pid: u32, until: Instant) -> Option<Vec<Pool>> {
        match self.asked_within(pid, Question::Pools, until, true)? {
            Answer::Pools(pools) => pools,
            _ => None,
        }
    }

    fn asked_of(&self, pid: u32, question: Question, until: Instant) -> Option<Answer> {
        self.asked_within(pid, question, until, false)
    }

    /// `long`: for a question that takes longer than others, and is asked once.
    fn asked_within(&self, pid: u32, question: Question, until: Instant, long: bool) -> Option<Answer> {
        let mut readers = self.readers();
        let Readers { of, looks, limit, .. } = &mut *readers;
        let (process, reader) = of.iter_mut().find(|(_, reader)| reader.pid == pid)?;
        let left = until.saturating_duration_since(Instant::now());
        let limit = if long { left } else { left.min(*limit) };
        reader.ask(*process, question, limit, looks)
    }

    /// Whether the structures of a process's machine can be read; `None` where it has none that can be asked.
    #[must_use]
    pub fn structures(&self, pid: u32) -> Option<Structures> {
        let readers = self.readers();
        let mut of_process = readers.of.values().filter(|reader| reader.pid == pid);
        of_process.next().map(|reader| match reader.looking {
            Some(since) if since.elapsed() >= STUCK => Structures::Unread(Unread::Late),
            _ => reader.structures,
        })
    }

    /// Which process has this number.
    #[must_use]
    pub fn process(&self, pid: u32) -> Option<ProcessKey> {
        let readers = self.readers();
        let mut all = readers.of.iter();
        all.find(|(_, reader)| reader.pid == pid)
            .map(|(process, _)| *process)
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        // Nothing is left half done where a panic could happen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime for Machines {
    fn is_library(&self, name: &str) -> bool {
        name == "libjvm.so"
    }

    fn symbols(&self) -> &'static [&'static str] {
        &SYMBOLS
    }

    fn begin(&mut self, mapped: Mapped<'_>) {
        let mut readers = self.readers();
        if readers.of.len() < MACHINES_MAX && !readers.of.contains_key(&mapped.process) {
            let rarely = readers.rarely;
            readers
                .of
                .extend(start(mapped, rarely).map(|reader| (mapped.process, reader)));
        }
    }

    fn walk(&mut self, asked: &Asked<'_>) -> Option<Walked> {
        let mut readers = self.readers();
        let Readers { of, looks, limit, .. } = &mut *readers;
        let place = Place {
            registers: asked.registers.into(),
            interrupted: asked.interrupted,
            start: asked.stack.start,
            bytes: Bytes(asked.stack.bytes.to_vec()),
            at: asked.at,
        };
        let reader = of.get_mut(&asked.process)?;
        let answer = reader.ask(asked.process, Question::Walk(place), *limit, looks)?;
        let Answer::Walk(Some(walk)) = answer else {
            return None;
        };
        Some(Walked {
            frames: walk
                .frames
                .into_iter()
                .map(|frame| reader.shared(frame))
                .collect(),
            caller: walk.caller.map(Registers::from),
            thread: walk.name,
        })
    }

    fn exit(&mut self, process: ProcessKey) {
        self.readers().of.remove(&process);
    }
}

impl Readers {
    /// Takes the answers that have come.
    fn gather(&mut self) {
        let Readers { of, looks, .. } = self;
        let now = Instant::now();
        of.retain(|process, reader| {
            loop {
                match reader.child.answer(now) {
                    Ok(answer) => drop(reader.take(*process, answer, looks)),
                    Err(Failed::Late) => return true,
                    Err(Failed::Gone) => return false,
                }
            }
        });
    }
}

impl Reader {
    /// Has its locks looked at, unless it has something to answer still.
    fn look(&mut self, now: Instant) {
        let may = self.looking.is_none() && self.owed == 0;
        if may && self.child.ask(Question::Locks, &[], latest(LIMIT)).is_ok() {
            self.looking = Some(now);
        }
    }

    /// Asks, and waits for the answer.
    fn ask(
        &mut self,
        process: ProcessKey,
        question: Question,
        limit: Duration,
        looks: &mut Vec<Look>,
    ) -> Option<Answer> {
        // Whatever it says of earlier questions was asked long ago.
        while self.owed > 0 {
            let answer = self.child.answer(Instant::now()).ok()?;
            self.take(process, answer, looks);
        }
        let until = latest(limit);
        self.child.ask(question, &[], until).ok()?;
        self.owed += 1;
        loop {
            let answer = self.child.answer(until).ok()?;
            if let Some(answer) = self.take(process, answer, looks) {
                return Some(answer);
            }
        }
    }

    /// The same frame as in the stacks before, where it was in one.
    fn shared(&mut self, frame: Arc<Frame>) -> Arc<Frame> {
        if let Some(known) = self.frames.get(&frame) {
            return Arc::clone(known);
        }
        if self.frames.len() >= FRAMES_MAX {
            self.frames.clear();
        }
        self.frames.insert(Arc::clone(&frame));
        frame
    }

    /// Takes an answer, of whatever kind; gives back all but what a look at locks came to.
    fn take(&mut self, process: ProcessKey, answer: Answer, looks: &mut Vec<Look>) -> Option<Answer> {
        match answer {
            Answer::Walk(_)
            | Answer::Operations(_)
            | Answer::Itself(_)
            | Answer::Virtuals(_)
            | Answer::Pools(_) => {
                self.owed = self.owed.saturating_sub(1);
                Some(answer)
            }
            Answer::Locks {
                from,
                to,
                cpu,
                found,
                structures,
            } => {
                self.structures = structures;
                // The first reads what the machine says of itself; that is not done again.
                let cpu = if self.looked { cpu } else { Duration::ZERO };
                (self.looking, self.looked) = (None, true);
                // Tries of what can't be read yet have a pace of their own.
                let rest = match structures {
                    Structures::Untold => Duration::ZERO,
                    Structures::Read | Structures::Unread(_) => cpu * self.rarely,
                };
                self.next_look = Instant::now() + OFTEN.max(rest);
                looks.push(Look {
                    process,
                    from,
                    to,
                    waiting: found.locks,
                    joins: found.joins,
                });
                None
            }
        }
    }
}

fn start(mapped: Mapped<'_>, rarely: u32) -> Option<Reader> {
    let (pid, symbols) = (mapped.pid, mapped.symbols.to_vec());
    let begin = move || {
        let mut machine = Machine::new(Running(pid), symbols);
        move |question, _| answer(&mut machine, question)
    };
    let child = Child::start(&blocking::reader(c"holdup-jvm"), Some(pid), begin).ok()?;
    Some(Reader {
        child,
        frames: HashSet::new(),
        owed: 0,
        looking: None,
        looked: false,
        next_look: Instant::now(),
        rarely,
        pid: mapped.pid,
        structures: Structures::Untold,
    })
}

/// What a child does.
fn answer(machine: &mut Machine<Running>, question: Question) -> Answer {
    match question {
        Question::Walk(place) => {
            let bytes = StackBytes {
                start: place.start,
                bytes: &place.bytes.0,
            };
            let walk = machine.walk(place.registers.into(), place.interrupted, bytes, place.at);
            Answer::Walk(walk.map(WalkFound::from))
        }
        Question::Operations => Answer::Operations(machine.operations()),
        Question::Itself => Answer::Itself(machine.itself()),
        Question::Virtuals => Answer::Virtuals(machine.virtuals(clocks::monotonic())),
        Question::Pools => Answer::Pools(machine.pools()),
        Question::Locks => {
            let (from, before) = (clocks::monotonic(), own_cpu());
            let found = machine.locks();
            Answer::Locks {
                from,
                to: clocks::monotonic(),
                cpu: own_cpu().saturating_sub(before),
                structures: machine.structures(),
                found,
            }
        }
    }
}

/// An instant from now; one that is too far away for the clock is as good as a year.
fn latest(limit: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + limit.min(YEAR)
}

/// CPU time of this thread so far.
fn own_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
