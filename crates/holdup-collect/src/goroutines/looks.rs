//! Looks at goroutines that wait for descriptors and timers, while their threads are traced.
//!
//! A Go program waits for all of them in one thread, whose stack names the runtime alone. So the goroutines are looked at now and then,
//! once a wait of such a thread has ended since the last look; and a wait that lasted for the whole of a look gets the stacks of the
//! goroutine whose descriptor ended it. In: processes, waits as they are reported, objects. Out: stacks. A child reads, which can be
//! left behind; nobody waits for it. Looks get rarer until all of them together take one per cent of a CPU.

use super::which;
use crate::interpreters::thread_cpu;
use holdup_detached::Failed;
use holdup_evidence::{Ns, Object, ObjectId, Seq, ThreadId, UserStackId, Wait, Waker};
use holdup_jvm::Running;
use holdup_knowledge::go;
use holdup_knowledge::system_calls::{self, Kind as Does};
use holdup_proc::blocking::{self, Reader};
use holdup_proc::{clocks, memory};
use holdup_runtimes::go::{Awaits, Function, Place, Program, Whose};
use holdup_symbols::{ProcessKey, UserStacks};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Least time between two looks, nanoseconds.
const OFTEN: Ns = 20_000_000;

/// Looks take a hundredth of a CPU, and so much more at once, nanoseconds.
const SHARE: u64 = 100;
const AT_ONCE: Ns = 20_000_000;

/// A child that has said nothing for so long is left behind, nanoseconds.
const STUCK: Ns = 2_000_000_000;

/// Children that are started: each but the first stands for a process that could not be read.
const STARTS_MAX: u32 = 16;

/// How long a question may take to be sent. There is always room for it unless the child is stuck.
const SEND: Duration = Duration::from_millis(5);

/// Looks at a process that are kept: its waits are reported some 20 ms after they ended.
const KEPT_MAX: usize = 8;

/// Goroutines of one look that are kept.
const LINES_MAX: usize = 512;

/// Programs that the child keeps; then all are forgotten.
const PROGRAMS_MAX: usize = 64;

/// How often a process is asked whether it is a Go program, and a Go program that is not what it will be once it has started.
const TRIES_MAX: u32 = 8;

/// Objects whose inodes are kept, then all are forgotten; and threads whose last wait is.
const OBJECTS_MAX: usize = 65_536;
const THREADS_MAX: usize = 65_536;

/// Native stacks that are kept with the shortest wait of each; and a wait is about as long as another if it lasts for one part in so many
/// of it, or longer.
const STACKS_MAX: usize = 4_096;
const ABOUT_AS_LONG: u64 = 2;

/// What stands for a wait: the stacks of the goroutine that waits for the descriptor, and of those that wait for it.
pub(crate) type Stacks = Arc<Vec<Vec<u64>>>;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Question {
    pid: u32,
    /// No other program has it.
    number: u32,
    place: Place,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Answer {
    look: Option<Look>,
    /// What it cost.
    cpu: Ns,
}

#[derive(Debug, Serialize, Deserialize)]
struct Look {
    from: Ns,
    to: Ns,
    /// Who waits for what.
    lines: Vec<Seen>,
    /// Whether a goroutine ran or could: it may wait for something by now.
    runs: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    awaits: Awaited,
    stacks: Stacks,
    /// Whether one of them stands in the application's code, and is not without work.
    asks: bool,
}

/// What a goroutine waits for, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Awaited {
    /// What has this inode.
    Inode(u64),
    /// A timer.
    Timer,
}

/// What is known of a process.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// It was found to be no Go program so often, or is none that can be read.
    No(u32),
    /// It is one. It was refused so often since it was read last.
    There(u32, Place, u32),
}

/// Who was looked at, and what was seen.
#[derive(Debug, Default)]
pub(crate) struct GoLooks {
    known: HashMap<ProcessKey, Known>,
    /// How many programs were found.
    found: u32,
    /// Processes of which a thread's wait has ended, or may have begun, since they were looked at.
    due: BTreeMap<ProcessKey, u32>,
    reader: Option<Reader<Question, Answer>>,
    starts: u32,
    /// About whom it owes an answer.
    asked: Option<(ProcessKey, u32)>,
    began: Ns,
    /// What is still to be paid of what looks took.
    unpaid: Ns,
    after: Option<ProcessKey>,
    stuck: BTreeSet<u32>,
    looks: HashMap<ProcessKey, VecDeque<Look>>,
    /// Since when somebody waited for what has an inode, at each look since.
    awaited: HashMap<ProcessKey, HashMap<u64, Ns>>,
    inodes: HashMap<ObjectId, u64>,
    /// The last wait of each thread that waited for several things.
    met: HashMap<ThreadId, Met>,
    /// Native stacks of waits that were seen, and how long the shortest of each lasted.
    shortest: HashMap<(ProcessKey, UserStackId, Option<u64>), Ns>,
}

/// A wait for several things.
#[derive(Debug, Clone, Copy)]
struct Met {
    seq: Seq,
    start: Ns,
    end: Ns,
    /// The inode of what ended it.
    by: Option<u64>,
    /// Nothing became ready, and the time ran out, as far as is known.
    by_timer: bool,
}

impl GoLooks {
    /// An object is described.
    pub(crate) fn described(&mut self, id: ObjectId, object: &Object) {
        if self.inodes.len() >= OBJECTS_MAX {
            self.inodes.clear();
        }
        self.inodes.insert(id, object.inode);
    }

    /// What has ended a wait, by inode, or what it goes on for: of whom somebody was asked, as attribution takes it.
    pub(crate) fn ended_by(&self, wait: &Wait) -> Option<u64> {
        let by = wait.unanswered.filter(|_| wait.serves).or(wait.ready)?;
        self.inodes.get(&by).copied()
    }

    /// A thread of a process may wait already.
    pub(crate) fn begin(&mut self, process: ProcessKey, pid: u32) {
        self.due.insert(process, pid);
    }

    /// A wait is met; it may be so again. `over`: it has ended.
    pub(crate) fn meet(&mut self, wait: &Wait, process: Option<(u32, ProcessKey)>, over: bool) {
        let polls = system_calls::is(&wait.call, Does::WaitsForEpoll);
        let Some((pid, process)) = process.filter(|_| polls) else {
            return;
        };
        if matches!(self.known.get(&process), Some(Known::No(tries)) if *tries >= TRIES_MAX) {
            return;
        }
        if over {
            self.due.insert(process, pid);
        }
        if self.met.len() >= THREADS_MAX {
            self.met.clear();
        }
        let by = wait.unanswered.filter(|_| wait.serves).or(wait.ready);
        let met = Met {
            seq: wait.seq,
            start: wait.start,
            end: wait.end,
            by: self.ended_by(wait),
            by_timer: by.is_none() && matches!(wait.waker, Waker::Interrupt { socket: None, .. }),
        };
        self.met.insert(wait.thread, met);
    }

    /// A thread is gone.
    pub(crate) fn forget(&mut self, thread: ThreadId) {
        self.met.remove(&thread);
    }

    /// The process runs another program now, or none.
    pub(crate) fn exit(&mut self, process: ProcessKey) {
        self.known.remove(&process);
        self.due.remove(&process);
        self.looks.remove(&process);
        self.awaited.remove(&process);
    }

    /// Since when somebody waits for what has this inode, if somebody did at each look since.
    pub(crate) fn awaited_since(&self, process: ProcessKey, inode: u64) -> Option<Ns> {
        self.awaited.get(&process)?.get(&inode).copied()
    }

    /// Processes whose memory could not be read in time.
    pub(crate) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.stuck.iter().copied()
    }

    /// The stacks of who waited in a wait of a thread, if they were seen in it. `open`: it goes on.
    pub(crate) fn of(&self, process: ProcessKey, thread: ThreadId, seq: Seq, open: bool) -> Option<Stacks> {
        let met = self.met.get(&thread).filter(|met| met.seq == seq)?;
        let looks = self.looks.get(&process)?.iter().rev();
        let mut within = looks.filter(|look| met.start < look.from && (open || look.to < met.end));
        within.find_map(|look| met.who(look, open))
    }

    /// A wait has this native stack, and was seen or not. Whether waits that were seen stand for it: they are about as long, with the same
    /// native stack, and ended by the same. A much shorter one may be another function's, which looks are too rare to meet.
    pub(crate) fn is_told_by_others(
        &mut self,
        process: ProcessKey,
        (thread, seq): (ThreadId, Seq),
        native: UserStackId,
        seen: bool,
    ) -> bool {
        let Some(met) = self.met.get(&thread).filter(|met| met.seq == seq) else {
            return false;
        };
        let length = met.end.saturating_sub(met.start);
        let key = (process, native, met.by);
        if !seen {
            let shortest = self.shortest.get(&key);
            return shortest.is_some_and(|shortest| length.saturating_mul(ABOUT_AS_LONG) >= *shortest);
        }
        if self.shortest.len() < STACKS_MAX || self.shortest.contains_key(&key) {
            let least = self.shortest.entry(key).or_insert(length);
            *least = length.min(*least);
        }
        false
    }

    /// Has a program's goroutines looked at if it is time to, and takes what the last look came to. Waits for nobody.
    pub(crate) fn look(&mut self, stacks: &mut UserStacks) {
        if self.due.is_empty() && self.asked.is_none() {
            return;
        }
        let now = clocks::monotonic();
        self.gather(now);
        let elapsed = now.saturating_sub(self.began);
        let unpaid = self.unpaid.saturating_sub(elapsed / SHARE);
        if self.asked.is_some() || elapsed < OFTEN || unpaid > AT_ONCE {
            return;
        }
        let next = match self.after {
            Some(after) => self.due.range(after..).find(|(process, _)| **process != after),
            None => None,
        };
        let Some((process, pid)) = next
            .or_else(|| self.due.iter().next())
            .map(|(process, pid)| (*process, *pid))
        else {
            return;
        };
        self.due.remove(&process);
        self.after = Some(process);
        if self.stuck.contains(&pid) {
            return;
        }
        let Some((number, place)) = self.which(stacks, process, pid) else {
            return;
        };
        (self.began, self.unpaid) = (now, unpaid);
        if self.reader.is_none() && self.starts < STARTS_MAX {
            self.starts += 1;
            self.reader = Reader::start(&blocking::reader(c"holdup-go"), None, answerer).ok();
        }
        let Some(reader) = &mut self.reader else { return };
        let question = Question { pid, number, place };
        self.asked = Some((process, pid));
        if reader.ask(question, &[], Instant::now() + SEND).is_err() {
            self.give_up(pid);
        }
    }

    fn which(&mut self, stacks: &mut UserStacks, process: ProcessKey, pid: u32) -> Option<(u32, Place)> {
        match self.known.get(&process) {
            Some(Known::There(number, place, _)) => Some((*number, *place)),
            Some(Known::No(tries)) if *tries >= TRIES_MAX => None,
            known => {
                let tries = known.map_or(0, |known| match known {
                    Known::No(tries) => *tries,
                    Known::There(..) => 0,
                });
                let place = which(stacks, pid, process).and_then(|(_, place)| place);
                let now = match place {
                    Some(place) => {
                        self.found = self.found.wrapping_add(1);
                        Known::There(self.found, place, 0)
                    }
                    None => Known::No(tries + 1),
                };
                self.known.insert(process, now);
                place.map(|place| (self.found, place))
            }
        }
    }

    /// Takes the answer that has come.
    fn gather(&mut self, now: Ns) {
        let (Some((process, pid)), Some(reader)) = (self.asked, &mut self.reader) else {
            return;
        };
        match reader.answer(Instant::now()) {
            Ok(Answer { look, cpu }) => {
                self.asked = None;
                self.unpaid = self.unpaid.saturating_add(cpu);
                self.judge(process, look.is_some());
                let Some(look) = look else { return };
                if look.runs && self.known.contains_key(&process) {
                    self.due.insert(process, pid);
                }
                let before = self.awaited.remove(&process).unwrap_or_default();
                self.awaited.insert(process, still_awaited(&look, &before));
                let looks = self.looks.entry(process).or_default();
                looks.push_back(look);
                if looks.len() > KEPT_MAX {
                    looks.pop_front();
                }
            }
            Err(Failed::Late) if now.saturating_sub(self.began) < STUCK => {}
            Err(Failed::Late | Failed::Gone) => self.give_up(pid),
        }
    }

    /// A program was read, or refused. While it starts, it is not yet what it will be.
    fn judge(&mut self, process: ProcessKey, read: bool) {
        if let Some(known) = self.known.get_mut(&process)
            && let Known::There(_, _, refused) = known
        {
            match read {
                true => *refused = 0,
                false if *refused < TRIES_MAX => *refused += 1,
                false => *known = Known::No(TRIES_MAX),
            }
        }
    }

    /// A process broke the child, or the child is stuck in it: neither is used again.
    fn give_up(&mut self, pid: u32) {
        self.asked = None;
        self.stuck.insert(pid);
        if let Some(reader) = self.reader.take() {
            reader.abandon(pid);
        }
    }
}

impl Drop for GoLooks {
    fn drop(&mut self) {
        if let (Some((_, pid)), Some(reader)) = (self.asked, self.reader.take()) {
            reader.abandon(pid);
        }
    }
}

impl Met {
    /// Who waited in it, of those that a look within it has seen.
    fn who(&self, look: &Look, open: bool) -> Option<Stacks> {
        let awaits = match self.by {
            Some(by) => Awaited::Inode(by),
            None if open => {
                return only(
                    look.lines
                        .iter()
                        .filter(|seen| seen.asks && seen.awaits != Awaited::Timer),
                );
            }
            None if self.by_timer => Awaited::Timer,
            None => return None,
        };
        let mut seen = look.lines.iter().filter(|seen| seen.awaits == awaits);
        match awaits {
            Awaited::Inode(_) => seen.next().map(|seen| Arc::clone(&seen.stacks)),
            // Which of several timers it was is not known.
            Awaited::Timer => only(seen),
        }
    }
}

/// Since when each inode of a look is awaited: those that were awaited at the look before as well are so since then. A look has a bounded
/// number of them.
fn still_awaited(look: &Look, before: &HashMap<u64, Ns>) -> HashMap<u64, Ns> {
    let inodes = look.lines.iter().filter_map(|seen| match seen.awaits {
        Awaited::Inode(inode) => Some(inode),
        Awaited::Timer => None,
    });
    let since = |inode| before.get(&inode).copied().unwrap_or(look.to);
    inodes.map(|inode| (inode, since(inode))).collect()
}

/// The stacks of the first of these, if all of them are for one place in the application: a library may read several descriptors for one
/// call, as `os/exec` does.
fn only<'a>(mut seen: impl Iterator<Item = &'a Seen>) -> Option<Stacks> {
    let first = seen.next().filter(|first| first.asks)?;
    seen.all(|other| other.stacks.last() == first.stacks.last())
        .then(|| Arc::clone(&first.stacks))
}

/// What a child does.
fn answerer() -> impl FnMut(Question, Vec<std::os::fd::OwnedFd>) -> Answer {
    let mut programs: HashMap<u32, Program<Running>> = HashMap::new();
    move |question, _| {
        let mut before = thread_cpu();
        let Some(program) = program(&mut programs, question) else {
            return Answer {
                look: None,
                cpu: thread_cpu().saturating_sub(before),
            };
        };
        before = thread_cpu();
        let look = look(program, question.pid);
        Answer {
            look,
            cpu: thread_cpu().saturating_sub(before),
        }
    }
}

/// A program, found out about if it is new: that is done once, and not counted.
fn program(
    programs: &mut HashMap<u32, Program<Running>>,
    Question { pid, number, place }: Question,
) -> Option<&mut Program<Running>> {
    // Where reading memory would end this process, it is not tried.
    if memory::is_refused(pid, place.some_address()?) {
        return None;
    }
    if !programs.contains_key(&number) {
        if programs.len() >= PROGRAMS_MAX {
            programs.clear();
        }
        programs.insert(number, Program::find(Running(pid), place).ok()?);
    }
    programs.get_mut(&number)
}

fn look(program: &mut Program<Running>, pid: u32) -> Option<Look> {
    let from = clocks::monotonic();
    let all = program.goroutines().ok()?;
    let lines = program.lines(&all, whose);
    let awaits = |awaits| match awaits {
        Awaits::Descriptor(number) => inode(pid, number).map(Awaited::Inode),
        Awaits::Timer => Some(Awaited::Timer),
    };
    let seen = lines.into_iter().filter_map(|line| {
        Some(Seen {
            awaits: awaits(line.awaits)?,
            stacks: Arc::new(line.stacks),
            asks: line.asks,
        })
    });
    Some(Look {
        from,
        lines: seen.take(LINES_MAX).collect(),
        to: clocks::monotonic(),
        runs: all.any_runs(),
    })
}

pub(super) fn whose(function: &Function) -> Whose {
    match &*function.name {
        name if go::is_without_work(name) => Whose::WithoutWork,
        name if go::is_applications(name, function.file.as_deref()) => Whose::Application,
        _ => Whose::Library,
    }
}

/// The inode of what a descriptor of a process is open on, where that is a socket or a pipe.
pub(crate) fn inode(pid: u32, descriptor: u32) -> Option<u64> {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    let (_, number) = link.to_str()?.split_once(":[")?;
    number.strip_suffix(']')?.parse().ok()
}
