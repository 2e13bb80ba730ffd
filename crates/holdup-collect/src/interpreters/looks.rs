//! Looks at the threads of interpreters, while they are traced.
//!
//! A wait that has ended is reported when its frames are gone. So threads are looked at now and then, and what is found is kept for the
//! wait that is reported afterwards ([`super::sightings`]). A look reads the frames of those threads that sleep and have had a wait end
//! since they were seen: who sleeps on costs nothing. In: threads, and processes that have mapped an interpreter's file. Out: sightings, and interpreters that are
//! refused. A child reads, which can be left behind; nobody waits for it. Looks get rarer until all of them together take one per
//! cent of a CPU. What is done once, for an interpreter that is new, is not counted.

mod listed;

use super::node_waits;
use super::running::{self, Ran, Running};
use super::sightings::{Sighting, Sightings};
use super::{KEPT, Kept, Which, interpreted, kept_one, turns_counted};
use holdup_detached::Failed;
use holdup_evidence::{Call, Frame, Ns, ThreadId};
use holdup_proc::blocking::{self, Reader};
use holdup_proc::{Root, clocks, memory, tasks};
use holdup_runtimes::interpreted::{AwaitedLock, Held, Interpreted as Read, Refused, Thread};
use holdup_symbols::{Interpreted, ProcessKey};
use listed::Listed;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Least time between two looks, nanoseconds.
pub(super) const OFTEN: Ns = 20_000_000;

/// Looks take a hundredth of a CPU, and so much more at once, nanoseconds.
const SHARE: u64 = 100;
const AT_ONCE: Ns = 20_000_000;

/// Threads that are asked about in a look: a millisecond or two, so that the rest before the next is short. Half of them are those whose
/// waits have ended last: who waits often is seen although a thousand others have not been seen yet.
const THREADS_MAX: usize = 32;

/// Event loops of which is kept how many tasks they had.
const LOOPS_MAX: usize = 1024;

/// CPU time that a process may take in a look, nanoseconds, and the frames that come of it. The rest has its turn later.
const CPU_MAX: Ns = 5_000_000;
const FRAMES_MAX: usize = 8192;

/// A child that has said nothing for so long is left behind, nanoseconds.
const STUCK: Ns = 2_000_000_000;

/// Children that are started: each but the first stands for a process that could not be read.
const STARTS_MAX: u32 = 16;

/// How long a question may take to be sent. There is always room for it unless the child is stuck.
const SEND: Duration = Duration::from_millis(5);

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    which: Which,
    tids: Vec<u32>,
    /// Threads that use a CPU.
    running: Vec<u32>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Answer {
    refused: Option<Refused>,
    seen: Vec<Seen>,
    /// Threads that may have run meanwhile, with the frames in which they stayed, and what that cost.
    ran: Vec<Ran>,
    ran_cpu: Ns,
    /// An address within the function that executes, where it is known.
    executor: Option<u64>,
    /// Who has the global lock; the outer `None` where that could not be read.
    held: Option<Option<Held>>,
    /// What it cost.
    cpu: Ns,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) tid: u32,
    /// It was found asleep after this instant, and had not run when its frames were read.
    pub(super) asleep: Ns,
    /// When reading its frames began, and when it was over.
    pub(super) from: Ns,
    pub(super) to: Ns,
    pub(super) frames: Vec<Read>,
    /// The frames of who waits for each descriptor, by inode, where it waits for several.
    pub(super) by: Vec<(u64, Vec<Read>)>,
    /// The lock that it waits for.
    pub(super) lock: Option<AwaitedLock>,
    /// Where it keeps an event loop from its events: how many tasks that has.
    pub(super) tasks: Option<u64>,
}

/// Who of a process is looked at next.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) process: ProcessKey,
    pub(super) pid: u32,
    /// Threads that sleep, if they still do.
    pub(super) asleep: Vec<u32>,
    /// Threads that use a CPU.
    pub(super) running: Vec<u32>,
}

/// Who is looked at, and when.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Processes that have mapped an interpreter's file.
    holders: BTreeMap<ProcessKey, u32>,
    threads: BTreeMap<(ProcessKey, u32), ThreadId>,
    ids: HashMap<ThreadId, (ProcessKey, u32)>,
    /// Who was not seen since a wait ended, and when that was.
    due: BTreeMap<(ProcessKey, u32), Ns>,
    /// Who uses a CPU.
    running: Running,
    /// The first of them since the last look.
    recent: Vec<(ProcessKey, u32)>,
    reader: Option<Reader<Question, Answer>>,
    starts: u32,
    /// About whom it owes an answer, and since when nothing came.
    asked: VecDeque<(ProcessKey, u32)>,
    since: Ns,
    /// When the last look began, and what is still to be paid of what looks took by then.
    began: Ns,
    unpaid: Ns,
    /// Who was asked about last.
    after: Option<(ProcessKey, u32)>,
    stuck: BTreeSet<u32>,
    /// Which functions execute, by what answers said since this was asked for last.
    executors: Vec<(ProcessKey, u64)>,
    busy_loops: BTreeMap<(u32, u32), u64>,
    /// Who had the global locks of processes in the looks that were gathered last.
    held: Vec<(ProcessKey, u32, Option<Held>)>,
}

impl Looks {
    /// The most tasks that event loops had while they were kept from their events, by process and thread.
    pub(super) fn busy_loops(&self) -> &BTreeMap<(u32, u32), u64> {
        &self.busy_loops
    }

    fn keeps_loop(&mut self, thread: (u32, u32), tasks: Option<u64>) {
        let Some(tasks) = tasks else { return };
        if self.busy_loops.len() < LOOPS_MAX || self.busy_loops.contains_key(&thread) {
            let most = self.busy_loops.entry(thread).or_default();
            *most = tasks.max(*most);
        }
    }

    /// Who had the global lock of a process in each look that was gathered since this was asked.
    pub(super) fn held(&mut self) -> Vec<(ProcessKey, u32, Option<Held>)> {
        std::mem::take(&mut self.held)
    }

    /// Whether a process has mapped an interpreter's file.
    pub(super) fn holds(&self, process: ProcessKey) -> bool {
        self.holders.contains_key(&process)
    }

    /// It has.
    pub(super) fn hold(&mut self, process: ProcessKey, pid: u32) {
        if self.holders.insert(process, pid).is_none() {
            let threads = self.threads.range((process, 0)..=(process, u32::MAX));
            self.due.extend(threads.map(|(id, _)| (*id, 0)));
        }
    }

    /// It has not any more.
    pub(super) fn release(&mut self, process: ProcessKey) {
        if self.holders.remove(&process).is_some() {
            self.due.retain(|(of, _), _| *of != process);
        }
    }

    /// A thread lives.
    pub(super) fn born(&mut self, process: ProcessKey, tid: u32, thread: ThreadId) {
        self.threads.insert((process, tid), thread);
        self.ids.insert(thread, (process, tid));
        if self.holds(process) {
            self.due.insert((process, tid), 0);
        }
    }

    /// A thread's wait has ended.
    pub(super) fn wait_ended(&mut self, thread: ThreadId, start: Ns, end: Ns) {
        if !self.holders.is_empty()
            && let Some(id) = self.ids.get(&thread)
            && self.holds(id.0)
        {
            self.running.waited(thread, start, end);
            if self.recent.len() < THREADS_MAX / 2 && !self.recent.contains(id) {
                self.recent.push(*id);
            }
            self.due.insert(*id, end);
        }
    }

    /// A thread used a CPU at this instant: the frames in which it was seen to run about then, innermost first; empty where it was not.
    pub(super) fn ran(&mut self, thread: ThreadId, at: Ns) -> Vec<Interpreted> {
        let Some(id) = self.ids.get(&thread).filter(|(process, _)| self.holds(*process)) else {
            return Vec::new();
        };
        self.running.used_cpu(*id);
        self.running.frames(thread, at).to_vec()
    }

    /// It is gone.
    pub(super) fn forget(&mut self, process: ProcessKey, tid: u32, thread: ThreadId) {
        self.running.forget((process, tid), thread);
        self.ids.remove(&thread);
        // Another may have the id by now.
        if self.threads.get(&(process, tid)) == Some(&thread) {
            self.threads.remove(&(process, tid));
            self.due.remove(&(process, tid));
        }
    }

    /// Processes that could not be read in time.
    pub(super) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.stuck.iter().copied()
    }

    /// Addresses within the functions that execute, of processes about which answers came since this was asked for last.
    pub(super) fn executors(&mut self) -> Vec<(ProcessKey, u64)> {
        std::mem::take(&mut self.executors)
    }

    /// Whether there is nobody to look at, and no answer to come.
    pub(super) fn nothing_to_do(&self) -> bool {
        self.holders.is_empty() && self.asked.is_empty()
    }

    /// How many children were started.
    pub(super) fn starts(&self) -> u32 {
        self.starts
    }

    /// A look took so much CPU time of this process.
    pub(super) fn charge(&mut self, cpu: Ns) {
        self.unpaid = self.unpaid.saturating_add(cpu);
    }

    /// Whether it is time to look.
    pub(super) fn may_begin(&self, now: Ns) -> bool {
        let elapsed = now.saturating_sub(self.began);
        let unpaid = self.unpaid.saturating_sub(elapsed / SHARE);
        self.asked.is_empty() && elapsed >= OFTEN && unpaid <= AT_ONCE
    }

    /// Who is looked at next: processes, and threads of each.
    pub(super) fn round(&mut self, now: Ns) -> Vec<Round> {
        let (first, rest) = match self.after {
            Some(after) => (
                (Bound::Excluded(after), Bound::Unbounded),
                Some((Bound::Unbounded, Bound::Included(after))),
            ),
            None => ((Bound::Unbounded, Bound::Unbounded), None),
        };
        let first = self.due.range(first);
        let rest = rest.into_iter().flat_map(|rest| self.due.range(rest));
        let mut wanted = std::mem::take(&mut self.recent);
        for (id, _) in first.chain(rest) {
            if wanted.len() >= THREADS_MAX {
                break;
            }
            self.after = Some(*id);
            if !wanted.contains(id) {
                wanted.push(*id);
            }
        }
        let mut round: Vec<Round> = Vec::new();
        let asleep = wanted.into_iter().map(|id| (id, false));
        let running = self.running.take(now).into_iter().map(|id| (id, true));
        for ((process, tid), runs) in asleep.chain(running) {
            let Some(pid) = self.holders.get(&process).copied() else {
                continue;
            };
            let place = round.iter().position(|one| one.process == process);
            let place = place.unwrap_or_else(|| {
                round.push(Round {
                    process,
                    pid,
                    asleep: Vec::new(),
                    running: Vec::new(),
                });
                round.len() - 1
            });
            match runs {
                true => round[place].running.push(tid),
                false => round[place].asleep.push(tid),
            }
        }
        let paid = now.saturating_sub(self.began) / SHARE;
        self.unpaid = self.unpaid.saturating_sub(paid);
        self.began = now;
        round
    }

    /// Asks about threads of a process.
    pub(super) fn ask(&mut self, which: Which, round: Round, now: Ns) {
        if self.reader.is_none() && self.starts < STARTS_MAX {
            self.starts += 1;
            self.reader = Reader::start(&blocking::reader(c"holdup-frames"), None, answerer).ok();
        }
        let Some(reader) = &mut self.reader else { return };
        let (process, pid) = (round.process, which.pid);
        let question = Question {
            which,
            tids: round.asleep,
            running: round.running,
        };
        match reader.ask(question, &[], Instant::now() + SEND) {
            Ok(()) => {
                if self.asked.is_empty() {
                    self.since = now;
                }
                self.asked.push_back((process, pid));
            }
            // What was sent of it is no question.
            Err(Failed::Late) => {
                let (process, pid) = self.asked.front().copied().unwrap_or((process, pid));
                self.give_up(process, pid);
            }
            Err(Failed::Gone) => self.give_up(process, pid),
        }
    }

    /// Takes the answers that have come; gives back whose interpreters are refused.
    pub(super) fn gather(&mut self, now: Ns, sightings: &mut Sightings) -> Vec<(ProcessKey, Refused)> {
        let mut refused = Vec::new();
        while let Some((process, pid)) = self.asked.front().copied()
            && let Some(reader) = &mut self.reader
        {
            match reader.answer(Instant::now()) {
                Ok(answer) => {
                    self.asked.pop_front();
                    self.since = now;
                    self.charge(answer.cpu);
                    self.running.charge(answer.ran_cpu);
                    self.held.extend(answer.held.map(|held| (process, pid, held)));
                    refused.extend(answer.refused.map(|refused| (process, refused)));
                    self.executors
                        .extend(answer.executor.map(|executor| (process, executor)));
                    for one in answer.ran {
                        self.keeps_loop((pid, one.tid), one.tasks);
                        let Ran {
                            tid,
                            from,
                            to,
                            frames,
                            ..
                        } = one;
                        if let Some(thread) = self.threads.get(&(process, tid)) {
                            self.running
                                .seen(*thread, (from, to), interpreted(frames).collect());
                        }
                    }
                    for one in answer.seen {
                        let Seen { from, to, lock, .. } = one;
                        self.keeps_loop((pid, one.tid), one.tasks);
                        let id = (process, one.tid);
                        // What it was seen in may have ended since: then it is due again.
                        if self.due.get(&id).is_some_and(|end| *end < one.asleep) {
                            self.due.remove(&id);
                        }
                        if let Some(thread) = self.threads.get(&id) {
                            let by = one.by.into_iter();
                            let sighting = Sighting {
                                from,
                                to,
                                frames: interpreted(one.frames).collect(),
                                by: by
                                    .map(|(inode, frames)| (inode, interpreted(frames).collect()))
                                    .collect(),
                                lock,
                            };
                            sightings.seen(*thread, sighting);
                        }
                    }
                }
                Err(Failed::Late) if now.saturating_sub(self.since) < STUCK => break,
                Err(Failed::Late | Failed::Gone) => self.give_up(process, pid),
            }
        }
        refused
    }

    /// A process broke the child, or the child is stuck in it: neither is used again.
    fn give_up(&mut self, process: ProcessKey, pid: u32) {
        self.asked.clear();
        self.release(process);
        self.stuck.insert(pid);
        if let Some(reader) = self.reader.take() {
            reader.abandon(pid);
        }
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        // It may be stuck in the one that it is asked about.
        if let (Some((_, pid)), Some(reader)) = (self.asked.front(), self.reader.take()) {
            reader.abandon(*pid);
        }
    }
}

/// What a look came to.
struct Look {
    seen: Vec<Seen>,
    ran: Vec<Ran>,
    ran_cpu: Ns,
    /// An address within the function that executes, where it is known.
    executor: Option<u64>,
    /// Who has the global lock; the outer `None` where that could not be read.
    held: Option<Option<Held>>,
    /// What it cost.
    cpu: Ns,
}

/// What a child keeps.
#[derive(Debug)]
struct Child {
    root: Root,
    interpreters: Kept,
    /// By the number of their interpreter.
    listed: HashMap<u32, Listed>,
}

/// What a child does.
fn answerer() -> impl FnMut(Question, Vec<std::os::fd::OwnedFd>) -> Answer {
    let mut child = Child {
        root: Root::system(),
        interpreters: Kept::new(),
        listed: HashMap::new(),
    };
    move |question, _| child.answer(&question)
}

impl Child {
    fn answer(&mut self, question: &Question) -> Answer {
        match self.look(question) {
            Ok(Look {
                seen,
                ran,
                ran_cpu,
                executor,
                held,
                cpu,
            }) => Answer {
                refused: None,
                seen,
                ran,
                ran_cpu,
                executor,
                held,
                cpu,
            },
            Err(refused) => Answer {
                refused: Some(refused),
                ..Answer::default()
            },
        }
    }

    /// Who was seen, in what executes their code, who had the global lock, and what that cost.
    fn look(&mut self, question: &Question) -> Result<Look, Refused> {
        let which = question.which;
        let interpreter = kept_one(&self.root, &mut self.interpreters, which)?;
        let before = thread_cpu();
        if self.listed.len() >= KEPT && !self.listed.contains_key(&which.number) {
            self.listed.clear();
        }
        let listed = self.listed.entry(which.number).or_default();
        // What went into lists.
        let mut cpu = 0;
        let mut seen = Vec::new();
        let mut frames_read = 0;
        for tid in question.tids.iter().copied() {
            if frames_read >= FRAMES_MAX || thread_cpu().saturating_sub(before + cpu) >= CPU_MAX {
                break;
            }
            let (asleep, before_read) = (clocks::monotonic(), turns(&self.root, tid));
            let Some(inside) = memory::inside_asleep(&self.root, tid) else {
                continue;
            };
            if let Some(engine) = interpreter.node() {
                let one = node_waits::seen(&self.root, engine, which.pid, (tid, asleep));
                if before_read == turns(&self.root, tid) {
                    frames_read += one.count();
                    seen.push(one);
                }
                continue;
            }
            if !listed.threads.contains_key(&inside) {
                cpu += listed.renew(interpreter);
            }
            let Some(thread) = listed.threads.get(&inside).copied() else {
                continue;
            };
            let from = clocks::monotonic();
            let read = interpreter.frames_of(thread);
            let (lock, tasks) = match &read {
                Ok(frames) => {
                    let word = tasks::call(&self.root, tid).filter(|call| is_futex(call.number));
                    let all: Vec<Thread> = listed.threads.values().copied().collect();
                    let lock = interpreter.awaited_lock(thread, word.map(|call| call.args[0]), frames, &all);
                    let python = interpreter.python().filter(|_| keeps_event_loop(frames));
                    let tasks = python.and_then(|python| python.tasks_of_busy_loops().ok());
                    (lock.ok().flatten(), tasks)
                }
                Err(_) => (None, None),
            };
            let to = clocks::monotonic();
            // It has ended, or is another thread of the interpreter's by now: one that ran may leave what it was behind.
            if read.as_ref().map_or(true, Vec::is_empty) {
                listed.threads.remove(&inside);
            }
            if let Ok(frames) = read
                && before_read == turns(&self.root, tid)
            {
                frames_read += frames.len();
                seen.push(Seen {
                    tid,
                    asleep,
                    from,
                    to,
                    frames,
                    by: Vec::new(),
                    lock,
                    tasks,
                });
            }
        }
        let asleep_cpu = thread_cpu().saturating_sub(before);
        let mut ran = Vec::new();
        for tid in question.running.iter().copied() {
            if interpreter.node().is_some() || thread_cpu().saturating_sub(before + cpu) >= CPU_MAX {
                break;
            }
            let Some(inside) = memory::inside(&self.root, tid) else {
                continue;
            };
            if !listed.threads.contains_key(&inside) {
                cpu += listed.renew(interpreter);
            }
            let Some(thread) = listed.threads.get(&inside).copied() else {
                continue;
            };
            ran.extend(running::read(interpreter, thread, tid));
        }
        Ok(Look {
            seen,
            ran,
            ran_cpu: thread_cpu().saturating_sub(before).saturating_sub(asleep_cpu),
            executor: interpreter.executor(),
            held: interpreter.holder().ok(),
            cpu: asleep_cpu,
        })
    }
}

/// Whether a thread is in what its event loop called.
pub(super) fn keeps_event_loop(frames: &[Read]) -> bool {
    let frames: Vec<Frame> = frames.iter().map(|one| Frame::clone(&one.frame)).collect();
    holdup_knowledge::python::keeps_event_loop(&frames)
}

/// Whether a call waits for a word of memory.
fn is_futex(number: i32) -> bool {
    Call { number, args: [0; 4] }.name() == Some("futex")
}

/// How often a thread has run: its turns, or where the kernel does not count them, how often it has blocked.
fn turns(root: &Root, tid: u32) -> Option<u64> {
    turns_counted(root, tid).or_else(|| memory::voluntary_switches(root, tid))
}

/// CPU time of this thread so far.
pub(crate) fn thread_cpu() -> Ns {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    Ns::try_from(time.as_nanos()).unwrap_or(Ns::MAX)
}

#[cfg(test)]
mod tests;
