//! Rounds: all threads are looked at, and what that comes to is reported as events.
//!
//! In: CMD's process id, and calls of [`Sampler::round`]. Out: the events of [`holdup_evidence`], in an order in which what an event
//! refers to came before it. A round has three steps: what can't block is read of each thread; what may block is asked for
//! beside; then each thread's time is reported, a creator's before those that it made, and the end of a child before the wait of the one
//! that waited for it ([`super::telling`]).

use super::account::{Account, Look};
use super::aside::Aside;
use super::clocks::{Counted, Stat, TICK, blockings, stat};
use super::examined::Examined;
use super::instead::Instead;
use super::interrupted::Interrupted;
use super::look::{Question, Want};
use super::on_cpu::{OnCpu, Registers};
use super::other_ends::OtherEnds;
use super::processes::Threads;
use super::requests::Requests;
use super::since::CpuClocks;
use super::site::{has_ended, sleeps};
use super::task::Folder;
use super::unmet::Unmet;
use super::waiting::{Met, Reach, Waiting};
use crate::clocks as machine;
use crate::maps::Mapping;
use crate::root::Root;
use holdup_evidence::{Event, INTERRUPTS, Ns, Role, Seq, ThreadId, UserStackId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Threads that are followed at most: each has two files open and some kilobytes of books.
pub const MOST_THREADS: usize = 20_000;

/// Files that a thread has open: its folder, its `schedstat`, and the list of threads of a process that has one alone.
const OF_A_THREAD: usize = 3;

/// Files that are left for what is read now and then.
const OF_READERS: usize = 24;

/// Threads that are looked at closely in one round, at least, and as a part of all: a close look costs as much as some twenty glances at
/// who has not run. With many threads that go on, each round takes the next ones in turn, and rounds stay frequent enough to see
/// who comes, goes and sleeps.
const CLOSE_LOOKS: usize = 256;
const OF_ALL: usize = 16;

/// Generations that are met in one round: children of those that are new, theirs, and so on.
const GENERATIONS: usize = 4;

/// Between two looks at all processes for children that nobody lists, in nanoseconds, and in what one of them takes: it may have a hundredth of
/// a CPU.
pub(super) const SCAN: Ns = 5_000_000;
pub(super) const SCAN_SHARE: Ns = 100;

/// Turns stacks into numbers.
pub trait Stacks {
    /// A process is a copy of another now.
    fn born(&mut self, pid: u32, parent: u32);
    /// It has this code, as of now.
    fn mapped(&mut self, pid: u32, mappings: &[Mapping]);
    /// It is gone.
    fn ended(&mut self, pid: u32);
    /// Whether another stack may be taken: they cost more than all else.
    fn wanted(&mut self, now: Ns) -> bool;
    /// Whether the code at an address is known.
    fn knows(&self, pid: u32, address: u64) -> bool;
    /// The number of a stack of a sleeper, by its thread id and its count of turns, that was read at an instant: stack pointer,
    /// instruction pointer, memory.
    fn stack(
        &mut self,
        pid: u32,
        sleeper: (u32, Option<u64>),
        at: Ns,
        registers: (u64, u64),
        memory: &[u8],
    ) -> Option<UserStackId>;
    /// The same of a running thread, all of whose registers are known.
    fn running(&mut self, pid: u32, at: Ns, registers: &Registers, memory: &[u8]) -> Option<UserStackId>;
}

/// A thread that is followed.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) folder: Folder,
    pub(super) account: Account<Arc<Waiting>>,
    pub(super) born: Ns,
    pub(super) name: String,
    pub(super) seq: Seq,
    pub(super) cpu_seq: Seq,
    /// What interrupts took of its CPU time, by kind.
    pub(super) interrupts: [Ns; INTERRUPTS.len()],
    /// CPU ticks in its own code and in the kernel, as reported so far.
    pub(super) ticks: (u64, u64),
    /// Whether what it waits in is still to be asked for.
    pub(super) unasked: bool,
    /// Whether a stack was taken, or asked for, of what it waits in.
    pub(super) stack_asked: bool,
    /// Where the kernel counts no turns: our own count of changes.
    pub(super) changes: u64,
    /// Where it was seen running, and the CPU time that stands for, as far as that is not known yet.
    pub(super) running: Vec<(UserStackId, Ns)>,
    /// Whether a look that showed that it was woken was left for the next round: nobody was seen yet who can have done it.
    pub(super) put_off: bool,
    /// Of one that slept when it was found: since when, and how many turns it had had. Gone when it has run.
    pub(super) before: Option<(Ns, u64)>,
}

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) threads: Option<Threads>,
    pub(super) members: BTreeSet<ThreadId>,
    pub(super) parent: u32,
    /// Whether it was asked about, or is in the way of one that was.
    pub(super) role: Role,
    /// Whether its code was read since it last ran another program.
    pub(super) mapped: bool,
    /// Whether a thread of it was seen running in code that is not known.
    pub(super) runs_unknown: bool,
    /// What its children have used that were not met.
    pub(super) unmet: Unmet,
    /// Its pid namespace, by number, if that is not holdup's.
    pub(super) namespace: Option<u32>,
}

/// What a round found of a thread.
#[derive(Debug)]
pub(super) enum Found {
    /// It lives.
    Looked(Look<Arc<Waiting>>, Stat),
    /// It has ended, having been counted so if that could still be read, with this status.
    Ended(Option<(Counted, Stat)>),
}

/// Threads that this round met for the first time: process, thread, name, when it began at the earliest.
#[derive(Debug)]
pub(super) struct Newborn {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) folder: Folder,
    pub(super) stat: Stat,
    pub(super) parent: u32,
}

/// What could not be had, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// Threads beyond those that are followed.
    pub threads: u64,
    /// Sleeping threads whose call could not be read.
    pub calls: u64,
    /// Looks at sleeping threads.
    pub looks: u64,
    /// Sleeping threads whose `syscall` could not be read, though the function in which they sleep could.
    pub arguments: u64,
    /// Sleeping threads whose stack's memory could not be read.
    pub memory: u64,
    /// Processes whose mappings could not be read.
    pub mappings: u64,
    /// Whether no thread could be started that reads what may block.
    pub without_reader: bool,
    /// Where the kernel does not list children: the longest time between two looks at all processes, nanoseconds.
    pub without_children: Option<Ns>,
    /// Threads of which the kernel counts no time in queues.
    pub without_turns: bool,
    /// Whether nobody counts how often a thread blocks.
    pub without_blockings: bool,
    /// Longest time between two rounds, nanoseconds.
    pub longest_interval: Ns,
    /// Rounds.
    pub rounds: u64,
}

/// Looks at CMD and its descendants.
#[derive(Debug)]
pub struct Sampler {
    pub(super) root: Root,
    pub(super) aside: Aside,
    pub(super) threads: BTreeMap<ThreadId, Tracked>,
    pub(super) by_tid: HashMap<u32, ThreadId>,
    pub(super) processes: BTreeMap<u32, Process>,
    pub(super) next: u32,
    pub(super) met: Met,
    pub(super) events: Vec<Event>,
    /// What this round found and has not reported yet.
    pub(super) found: BTreeMap<ThreadId, Found>,
    /// Those that have ended while nobody was seen to have noticed who waited for that, and for how many rounds.
    pub(super) unnoticed: BTreeMap<ThreadId, (Found, u32)>,
    pub(super) newborn: Vec<Newborn>,
    /// When the last round was, and this one is.
    pub(super) last: Ns,
    pub(super) now: Ns,
    /// When the last one of this round was looked at: whoever was found to have ended has ended by then, and what it was counted to have
    /// done was before that.
    pub(super) all_looked_at: Ns,
    pub(super) shortfall: Shortfall,
    /// CPU time of threads that have ended, as far as it was counted.
    pub(super) cpu_of_ended: Ns,
    pub(super) kernel_stacks: bool,
    pub(super) scanned: Ns,
    /// When the next such look is due.
    pub(super) scan_due: Ns,
    /// How many threads may be followed.
    pub(super) most_threads: usize,
    pub(super) other_ends: OtherEnds,
    /// Threads that were seen in a wait with somebody in the way, since that was asked for.
    pub(super) with_holder: Vec<ThreadId>,
    /// Processes that have begun.
    pub(super) next_process: u64,
    /// Boot time minus monotonic time.
    pub(super) suspended: Ns,
    pub(super) own: u32,
    /// The thread at which the next round's close looks begin.
    pub(super) turn: ThreadId,
    /// Whether somebody who had run was not looked at closely, in this round and in the one before.
    pub(super) passed_over: [bool; 2],
    /// Who had begun before this instant is not followed, unless it was asked about.
    pub(super) not_before: Ns,
    /// Who waits for whose end, a thread's id, by what runtimes say.
    pub(super) joins: HashMap<ThreadId, u32>,
    /// Sees running threads, where that is allowed.
    pub(super) on_cpu: OnCpu,
    /// Sees which calls those are in that the kernel works for.
    pub(super) examined: Examined,
    /// Sees what interrupts take of them.
    pub(super) interrupted: Interrupted,
    /// Sees who has the CPUs.
    pub(super) instead: Instead,
    /// Sees what becomes of requests for connections.
    pub(super) requests: Requests,
    /// What those are that are being adopted.
    pub(super) adopts_as: Role,
    /// Tell since when threads sleep that slept when they were found.
    pub(super) cpu_clocks: CpuClocks,
    /// Threads of which that could not be determined.
    pub(super) since_unknown: u64,
}

impl Sampler {
    /// Looks below this root; `own`: the process that orphans become children of.
    #[must_use]
    pub fn new(root: Root, own: u32) -> Sampler {
        Sampler {
            aside: Aside::new(root.clone()),
            root,
            threads: BTreeMap::new(),
            by_tid: HashMap::new(),
            processes: BTreeMap::new(),
            next: 0,
            met: Met::default(),
            events: Vec::new(),
            found: BTreeMap::new(),
            unnoticed: BTreeMap::new(),
            newborn: Vec::new(),
            last: 0,
            now: 0,
            all_looked_at: 0,
            shortfall: Shortfall::default(),
            cpu_of_ended: 0,
            kernel_stacks: true,
            scanned: 0,
            scan_due: 0,
            most_threads: MOST_THREADS,
            other_ends: OtherEnds::default(),
            with_holder: Vec::new(),
            next_process: 0,
            suspended: machine::boot_minus_monotonic().unwrap_or_default(),
            own,
            turn: ThreadId(0),
            passed_over: [false; 2],
            not_before: 0,
            joins: HashMap::new(),
            on_cpu: OnCpu::default(),
            examined: Examined::default(),
            interrupted: Interrupted::default(),
            instead: Instead::default(),
            requests: Requests::default(),
            adopts_as: Role::Subject,
            cpu_clocks: CpuClocks::default(),
            since_unknown: 0,
        }
    }

    /// A runtime has said who waits for the end of which thread of the same process; what it said before holds no longer.
    pub fn know_joins(&mut self, joins: impl Iterator<Item = (ThreadId, u32)>) {
        self.joins.clear();
        self.joins.extend(joins);
    }

    /// Begins with a process that is about to become CMD. Says whether there is one.
    pub fn begin(&mut self, pid: u32, at: Ns) -> bool {
        (self.last, self.now) = (at, at);
        self.scanned = at;
        let Some(newborn) = self.newborn(pid, pid, self.own) else {
            return false;
        };
        self.start(newborn, None, at, true, None);
        true
    }

    /// A round: events since the last one.
    pub fn round(&mut self, at: Ns, stacks: &mut dyn Stacks) -> Vec<Event> {
        self.last = self.now;
        self.now = at.max(self.last);
        self.shortfall.rounds += 1;
        self.shortfall.longest_interval = self.shortfall.longest_interval.max(self.now - self.last);
        self.passed_over = [false, self.passed_over[0]];
        self.saw_running(stacks);
        self.interrupted.look(&self.root, self.now);
        let mut from = 0;
        let mut room = CLOSE_LOOKS.max(self.threads.len() / OF_ALL);
        for _ in 0..GENERATIONS {
            let mut questions = self.look(ThreadId(from), &mut room, stacks);
            self.all_looked_at = machine::monotonic().max(self.now);
            if from == 0 {
                questions.extend(self.examine(stacks));
                self.find_orphans();
            }
            let answers = self.aside.ask(questions, self.now);
            for answer in answers {
                self.answered(answer, stacks);
            }
            // Who is new is looked at too: many live for no longer than that.
            from = self.next;
            self.tell(stacks);
            if from == self.next {
                break;
            }
        }
        self.waits_on();
        self.tell_instead(None);
        std::mem::take(&mut self.events)
    }

    /// What could not be had so far.
    #[must_use]
    pub fn shortfall(&self) -> Shortfall {
        Shortfall {
            without_reader: self.aside.is_without_reader(),
            ..self.shortfall
        }
    }

    /// How many threads are followed at most.
    #[must_use]
    pub fn most_threads(&self) -> usize {
        self.most_threads
    }

    /// Follows no more threads than so many further open files have room for.
    pub fn keep_within(&mut self, files: usize) {
        let room = files.saturating_sub(OF_READERS) / OF_A_THREAD;
        self.most_threads = MOST_THREADS.min(self.threads.len() + room);
    }

    /// Calls of running threads that were timed by breakpoints.
    #[must_use]
    pub fn timed_calls(&self) -> u64 {
        self.examined.timed()
    }

    /// A CPU and its interrupts a second, where there were many and what they took could not be measured.
    #[must_use]
    pub fn interrupts_unmeasured(&self) -> Option<(u32, u64)> {
        self.interrupted.unmeasured()
    }

    /// Processes whose call, memory and stacks could not be read in time.
    pub fn stuck(&self) -> impl Iterator<Item = u32> {
        self.aside.stuck()
    }

    /// Threads that live, of those that were asked about and what they made.
    #[must_use]
    pub fn living(&self) -> usize {
        let subjects = self
            .processes
            .values()
            .filter(|process| process.role == Role::Subject);
        subjects.map(|process| process.members.len()).sum()
    }

    /// CPU time of all threads that were followed, as far as it was counted, in nanoseconds.
    #[must_use]
    pub fn cpu_seen(&self) -> Ns {
        let living = self.threads.values().map(|thread| thread.account.counted().cpu);
        living.fold(self.cpu_of_ended, Ns::saturating_add)
    }

    /// Looks at every thread from one on, at what can't block; `room`: at how many closely. Returns what is to be asked for.
    fn look(&mut self, from: ThreadId, room: &mut usize, stacks: &mut dyn Stacks) -> Vec<Question> {
        let mut questions = Vec::new();
        let mut children = Vec::new();
        // Of whom the code was asked for, which is a long text.
        let mut maps = BTreeSet::new();
        let mut passed_over = None;
        let mut changed = BTreeSet::new();
        for (pid, process) in &mut self.processes {
            let any = process.members.last().is_some_and(|last| *last >= from);
            if any && process.threads.as_mut().is_some_and(Threads::changed) {
                changed.insert(*pid);
            }
        }
        // Each in turn; where there is room for all, who waits for others is looked at after them, so that who has woken somebody is
        // seen to have run.
        let turn = self.turn.max(from);
        let in_turn = self.threads.range(turn..).chain(self.threads.range(from..turn));
        let living = in_turn.filter(|(id, _)| !self.unnoticed.contains_key(id));
        let (waiters, others): (Vec<_>, Vec<_>) = living
            .map(|(id, thread)| (*id, thread.reach().filter(|_| !self.passed_over[1])))
            .partition(|(_, reach)| reach.is_some());
        for (id, reach) in others.iter().chain(&waiters) {
            let woken_by_nobody = reach.is_some_and(|reach| self.roots(*id, reach).next().is_none());
            let Some(thread) = self.threads.get_mut(id) else {
                continue;
            };
            let (turns, [before, now]) = thread.folder.schedstat_within(self.now);
            let process = self.processes.get(&thread.pid);
            if let Some(turns) = turns
                && thread.account.asleep().is_some()
                && turns.count == thread.account.turns()
            {
                thread.account.still(before);
                let connection = thread
                    .account
                    .asleep()
                    .and_then(|(waiting, _)| waiting.tcp.as_ref());
                thread.unasked |= connection.is_some_and(|connection| connection.is_due(before));
                let stack = *room > 0 && !thread.stack_asked && stacks.wanted(before);
                let more = *room > 0 && thread.unasked || stack;
                let state = thread.account.asleep().map(|(waiting, _)| waiting.site.state);
                if let Some(state) = state.filter(|_| more) {
                    *room -= 1;
                    let mapped = process.is_none_or(|process| process.mapped);
                    let code = stack && !mapped && maps.insert(thread.pid);
                    questions.extend(thread.question(*id, state, stack, (self.kernel_stacks, code)));
                }
                continue;
            }
            // Who is gone is noticed at once, and CMD's own end; of the others each has its turn.
            let gone = turns.is_none() && thread.folder.counts_turns();
            if *room == 0 && !gone && *id != ThreadId(0) {
                passed_over = passed_over.or(Some(*id));
                self.passed_over[0] = true;
                continue;
            }
            *room = room.saturating_sub(usize::from(!gone));
            let Some(stat) = thread.folder.text("stat").as_deref().and_then(stat) else {
                self.found.insert(*id, Found::Ended(None));
                continue;
            };
            let status = thread.folder.text("status");
            self.shortfall.without_turns |= turns.is_none();
            let blockings = status.as_deref().and_then(blockings);
            self.shortfall.without_blockings |= blockings.is_none();
            let counted = match turns {
                Some(turns) => Counted {
                    cpu: turns.cpu,
                    queued: turns.queued,
                    turns: turns.count,
                    blockings,
                },
                None => Counted {
                    cpu: (stat.user + stat.kernel) * TICK,
                    queued: 0,
                    turns: blockings.unwrap_or(thread.changes),
                    blockings,
                },
            };
            if has_ended(stat.state) {
                self.found.insert(*id, Found::Ended(Some((counted, stat))));
                continue;
            }
            if woken_by_nobody && !self.passed_over[0] && !std::mem::replace(&mut thread.put_off, true) {
                continue;
            }
            thread.put_off = false;
            children.push(*id);
            let asleep = sleeps(stat.state);
            if thread
                .before
                .is_some_and(|(_, had)| turns.is_none_or(|turns| turns.count != had))
                && thread.account.asleep().is_none()
            {
                thread.before = None;
            }
            if turns.is_none() && asleep.is_some() && thread.same_without_turns(counted) {
                thread.account.still(before);
                continue;
            }
            thread.changes += 1;
            thread.unasked = asleep.is_some();
            thread.stack_asked = false;
            if let Some(state) = asleep {
                self.shortfall.looks += 1;
                let mapped = process.is_none_or(|process| process.mapped) && thread.name == stat.name;
                let stack = stacks.wanted(now);
                let code = stack && !mapped && maps.insert(thread.pid);
                questions.extend(thread.question(*id, state, stack, (self.kernel_stacks, code)));
            }
            // Its code is asked for beside the loop, as a sleeper's is.
            if asleep.is_none()
                && let Some(process) = self.processes.get_mut(&thread.pid)
                && process.runs_unknown
                && maps.insert(thread.pid)
            {
                process.runs_unknown = false;
                let any = holdup_evidence::TaskState::Interruptible;
                questions.extend(thread.question(*id, any, false, (self.kernel_stacks, true)));
            }
            let look = Look {
                at: now,
                counted,
                asleep: asleep.map(|state| Arc::new(Waiting::unknown(state))),
            };
            self.found.insert(*id, Found::Looked(look, stat));
        }
        if from == ThreadId(0) {
            self.turn = passed_over.unwrap_or(ThreadId(0));
            self.put_off_ends();
        }
        for id in children {
            self.find_children(id);
        }
        for pid in changed {
            self.find_threads(pid);
        }
        questions
    }
}

impl Tracked {
    /// Who can have ended what it was seen waiting in last, if only a thread can.
    pub(super) fn reach(&self) -> Option<Reach> {
        let (waiting, _) = self.account.asleep()?;
        waiting.ended_within()
    }

    fn question(
        &mut self,
        id: ThreadId,
        state: holdup_evidence::TaskState,
        stack: bool,
        (kernel_stack, maps): (bool, bool),
    ) -> Option<Question> {
        self.stack_asked |= stack;
        Some(Question {
            key: id.0,
            pid: self.pid,
            tid: self.tid,
            state,
            want: Want {
                stack,
                kernel_stack,
                maps,
            },
            runs_in: None,
        })
    }

    /// Where the kernel counts no turns: whether it sleeps as it did, having used nothing and blocked no more.
    fn same_without_turns(&self, counted: Counted) -> bool {
        let before = self.account.counted();
        let same = before.cpu == counted.cpu && before.blockings == counted.blockings;
        self.account.asleep().is_some() && same && counted.blockings.is_some()
    }
}
