//! Stacks of sleeping threads, as far as stack pointer and memory lead.
//!
//! The kernel tells of a sleeper where its stack is and where it goes on, and no other register. So a frame whose caller can only be
//! found by one that it has not saved itself is the last. In: mappings, as `/proc/PID/maps` has them, and memory. Out: numbers of
//! stacks. A running thread's registers are all known, where it may be seen at all.

use super::machines::{Began, is_machine};
use crate::asyncio;
use crate::goroutines::{self, FirstLook, Parked};
use crate::interpreters::{self, Interpreters, Turns};
use crate::nodes::Engines;
use crate::{shared_words, tokio, virtual_threads};
use holdup_evidence::arch::SAVED;
use holdup_evidence::{NotMeasured, Ns, UserStackId};
use holdup_jvm::Machines;
use holdup_proc::maps;
use holdup_proc::sampling::Stacks;
use holdup_proc::sampling::on_cpu::Registers;
use holdup_symbols::{Beside, Mapping, ProcessKey, RawStack, Runtime, UserStacks};
use std::collections::HashMap;

/// Of what a round may take, a stack may take so much more: the dearer they turn out, the fewer are taken.
const SHARE: Ns = 100;

/// What stacks of those that sleep to the end may take in all, nanoseconds, and how many.
const MAX_TOTAL_NS: Ns = 300_000_000;
const MAX_STACKS: u64 = 256;

/// Code regions of a process, and its number.
#[derive(Debug, Default)]
struct Process {
    key: Option<ProcessKey>,
    code: Vec<maps::Mapping>,
}

/// All stacks of a run.
#[derive(Debug)]
pub(super) struct SampledStacks {
    stacks: UserStacks,
    interpreters: Interpreters,
    engines: Engines,
    processes: HashMap<u32, Process>,
    /// Where goroutines stood at first.
    goroutines: FirstLook,
    /// The same of tasks of `asyncio`.
    asyncio: asyncio::FirstLook,
    virtual_threads: virtual_threads::FirstLook,
    tokio: tokio::FirstLook,
    next: u32,
    /// Whose code was read for the first time lately.
    began: Vec<Began>,
    /// Stacks that were asked for in this round.
    asked: u64,
    /// What a stack costs, lately, nanoseconds.
    cost: Ns,
    /// Before this instant none is wanted.
    not_before: Ns,
    /// Of how many more each is wanted, whatever it costs.
    all: u64,
}

impl SampledStacks {
    /// With a runtime that tells the frames of code that it has written.
    pub(super) fn told_by(runtime: Box<dyn Runtime>) -> SampledStacks {
        let engines = Engines::default();
        SampledStacks {
            stacks: UserStacks::new()
                .told_by(runtime)
                .told_by(Box::new(engines.clone()))
                .interpreted_by(interpreters::evaluates),
            interpreters: Interpreters::default(),
            engines,
            began: Vec::new(),
            processes: HashMap::new(),
            goroutines: FirstLook::default(),
            asyncio: asyncio::FirstLook::default(),
            virtual_threads: virtual_threads::FirstLook::default(),
            tokio: tokio::FirstLook::default(),
            next: 0,
            asked: 0,
            cost: 100_000,
            not_before: 0,
            all: 0,
        }
    }

    /// Observation is about to end: a stack of each that sleeps, for as long as takes a moment.
    pub(super) fn take_all(&mut self) {
        self.all = (MAX_TOTAL_NS / self.cost.max(1)).min(MAX_STACKS);
    }

    /// Processes whose code was read for the first time since this was asked.
    pub(super) fn began(&mut self) -> Vec<Began> {
        std::mem::take(&mut self.began)
    }

    /// A round took so much CPU time, stacks included.
    pub(super) fn round_took(&mut self, took: Ns) {
        if let Some(each) = took.checked_div(self.asked) {
            self.cost = (self.cost * 7 + each) / 8;
        }
        self.asked = 0;
    }

    /// What goroutines wait for that are parked now.
    pub(super) fn parked(&mut self, machines: &Machines) -> Parked {
        let keys = |(pid, process): (&u32, &Process)| Some((*pid, process.key?));
        let processes = self.processes.iter().filter_map(keys);
        let mut parked = goroutines::parked(&mut self.stacks, processes.clone(), &mut self.goroutines, None);
        let (interpreters, stacks) = (&mut self.interpreters, &mut self.stacks);
        asyncio::add(
            &mut parked,
            interpreters,
            stacks,
            processes.clone(),
            &self.asyncio,
        );
        tokio::add(&mut parked, stacks, processes.clone(), &self.tokio);
        let first = &self.virtual_threads;
        let tid_of = |_, inside| Some(inside);
        let all = processes.clone();
        virtual_threads::add(&mut parked, machines, &mut self.stacks, processes, first, tid_of);
        parked.shared_words = shared_words::awaited(all.map(|(pid, _)| pid));
        parked
    }

    /// Looks where goroutines stand, the first time that it is asked to.
    pub(super) fn look_at_goroutines(&mut self, machines: &Machines) {
        let keys = |(pid, process): (&u32, &Process)| Some((*pid, process.key?));
        let processes = self.processes.iter().filter_map(keys);
        self.goroutines.look(&mut self.stacks, processes.clone());
        self.asyncio
            .look(&mut self.interpreters, &mut self.stacks, processes.clone());
        self.tokio.look(&mut self.stacks, processes.clone());
        self.virtual_threads.look(machines, processes);
    }

    /// Looks at tasks of tokio whose types were not read before.
    pub(super) fn look_at_tokio(&mut self) {
        let keys = |(pid, process): (&u32, &Process)| Some((*pid, process.key?));
        self.tokio
            .look(&mut self.stacks, self.processes.iter().filter_map(keys));
    }

    /// Interpreters whose frames are not read.
    pub(super) fn refused_interpreters(&self) -> impl Iterator<Item = NotMeasured> {
        self.interpreters
            .not_measured()
            .chain(self.engines.not_measured())
    }

    /// All of them.
    pub(super) fn finish(self) -> UserStacks {
        self.stacks
    }
}

impl Stacks for SampledStacks {
    fn born(&mut self, pid: u32, _parent: u32) {
        self.ended(pid);
    }

    fn mapped(&mut self, pid: u32, mappings: &[maps::Mapping]) {
        let process = self.processes.entry(pid).or_default();
        let known = std::mem::take(&mut process.code);
        // What it had it has still, and more: it has loaded that since, and is the same program.
        let still = |old: &maps::Mapping| {
            let covers = |new: &maps::Mapping| new.start <= old.start && old.end <= new.end;
            mappings.iter().any(|new| covers(new) && new.path == old.path)
        };
        let key = match process.key.filter(|_| known.iter().all(still)) {
            Some(key) => {
                if is_machine(mappings) && !is_machine(&known) {
                    self.began.push(Began::with(pid, key, mappings));
                }
                key
            }
            None => {
                if let Some(old) = process.key.take() {
                    self.stacks.exit(old);
                    self.interpreters.exit(old);
                }
                let key = ProcessKey(self.next);
                self.next += 1;
                self.began.push(Began::with(pid, key, mappings));
                key
            }
        };
        process.key = Some(key);
        process.code = mappings.to_vec();
        for one in mappings {
            let mapping = Mapping {
                start: one.start,
                end: one.end,
                offset: one.offset,
                path: one.path.clone(),
                device: one.device,
                inode: one.inode,
            };
            self.stacks.map(key, pid, mapping);
        }
    }

    fn ended(&mut self, pid: u32) {
        if let Some(key) = self.processes.remove(&pid).and_then(|process| process.key) {
            self.stacks.exit(key);
            self.interpreters.exit(key);
        }
    }

    fn wanted(&mut self, now: Ns) -> bool {
        if self.all > 0 {
            self.all -= 1;
            self.asked += 1;
            return true;
        }
        if now < self.not_before {
            return false;
        }
        self.asked += 1;
        // Each is paid for before the next: a hundredth of a CPU goes into them.
        self.not_before = self.not_before.max(now.saturating_sub(100_000_000)) + self.cost * SHARE;
        true
    }

    fn knows(&self, pid: u32, address: u64) -> bool {
        let process = self.processes.get(&pid);
        process.is_some_and(|process| {
            process
                .code
                .iter()
                .any(|one| (one.start..one.end).contains(&address))
        })
    }

    fn stack(
        &mut self,
        pid: u32,
        (tid, turns): (u32, Option<u64>),
        at: Ns,
        (sp, ip): (u64, u64),
        bytes: &[u8],
    ) -> Option<UserStackId> {
        let process = self.processes.get(&pid)?.key?;
        // Where the kernel counts no turns, it cannot be seen whether the thread has run since its stack was read.
        let still = |now: &Turns| turns.is_some() && now.turns == turns;
        let interpreted = self
            .interpreters
            .frames(&mut self.stacks, (process, pid, tid), still);
        let raw = RawStack {
            process,
            pid,
            at,
            ip,
            sp,
            saved: [0; SAVED],
            partial: true,
            bytes,
        };
        let beside = Beside {
            interpreted: &interpreted,
            ..Beside::default()
        };
        Some(self.stacks.intern_said(&raw, beside))
    }

    fn running(&mut self, pid: u32, at: Ns, registers: &Registers, bytes: &[u8]) -> Option<UserStackId> {
        let process = self.processes.get(&pid)?.key?;
        Some(self.stacks.intern(&RawStack {
            process,
            pid,
            at,
            ip: registers.ip,
            sp: registers.sp,
            saved: registers.saved,
            partial: false,
            bytes,
        }))
    }
}
