//! Interpreters and tasks of runtimes, as they are looked at beside the records.
//!
//! In: the processes that are watched. Out: what looks at them came to.

use super::Naming;
use crate::asyncio;
use crate::database_locks::Awaited;
use crate::goroutines::{self, Parked};
use crate::{shared_words, suspended, task_looks, tokio, virtual_threads};
use holdup_evidence::{EventLoop, InterpreterLock, NotMeasured, RuntimeTask};

impl Naming {
    /// Has the threads of interpreters and goroutines looked at, and takes what earlier looks came to.
    pub(crate) fn look_at_interpreters(&mut self) {
        let (runtimes, tids) = (&self.runtimes, &self.tids);
        let tid_of = |process, inside| tids.get(&runtimes.thread(process, inside)?).copied();
        self.interpreters.look(&mut self.user_stacks, tid_of);
        self.goroutine_looks.look(&mut self.user_stacks);
    }

    /// Where a process has an exported symbol of its program, or of a library whose file name is `wanted`.
    pub(crate) fn address_of(&mut self, pid: u32, wanted: fn(&str) -> bool, symbol: &str) -> Option<u64> {
        let process = *self.processes.get(&pid)?;
        let found = self.user_stacks.find(process, pid, wanted, &[symbol])?;
        found.addresses.first().copied().flatten()
    }

    /// The same of several symbols; each is `None` where it is not exported.
    pub(crate) fn addresses_of(
        &mut self,
        pid: u32,
        wanted: fn(&str) -> bool,
        symbols: &[&'static str],
    ) -> Option<Vec<Option<u64>>> {
        let process = *self.processes.get(&pid)?;
        Some(self.user_stacks.find(process, pid, wanted, symbols)?.addresses)
    }

    /// Who must act before sessions of databases get their locks, as it was seen last.
    pub(crate) fn awaits_in_databases(&mut self, awaited: Awaited) {
        self.in_databases = awaited;
    }

    /// Event loops that were kept from their events.
    pub(crate) fn event_loops(&self) -> Vec<EventLoop> {
        self.interpreters.event_loops()
    }

    /// Who had the global locks of interpreters.
    pub(crate) fn global_locks(&self) -> Vec<InterpreterLock> {
        self.interpreters.global_locks()
    }

    /// Interpreters whose frames are not read.
    pub(crate) fn refused_interpreters(&self) -> impl Iterator<Item = NotMeasured> {
        self.interpreters
            .not_measured()
            .chain(self.engines.not_measured())
    }

    /// Looks where goroutines stand, the first time that it is asked to.
    pub(crate) fn look_at_goroutines(&mut self) {
        let processes = self.processes.iter().map(|(pid, key)| (*pid, *key));
        self.goroutines.look(&mut self.user_stacks, processes.clone());
        self.asyncio
            .look(&mut self.interpreters, &mut self.user_stacks, processes.clone());
        self.suspended
            .look(&mut self.interpreters, &mut self.user_stacks, processes.clone());
        self.tokio.look(&mut self.user_stacks, processes.clone());
        self.virtual_threads.look(&self.runtimes.machines(), processes);
    }

    /// Looks again at functions of Node.js that wait, if that is due: their addresses change while they are young.
    pub(crate) fn look_at_functions_again(&mut self) {
        let processes = self.processes.iter().map(|(pid, key)| (*pid, *key));
        self.suspended
            .look(&mut self.interpreters, &mut self.user_stacks, processes);
    }

    /// Looks at tasks of tokio whose types were not known before: they are read meanwhile, by a process apart.
    pub(crate) fn look_at_tokio(&mut self) {
        let processes = self.processes.iter().map(|(pid, key)| (*pid, *key));
        self.tokio.look(&mut self.user_stacks, processes);
    }

    /// Looks at tasks, if that is due.
    pub(crate) fn look_at_tasks(&mut self) {
        if let Some(begun) = self.task_looks.is_due() {
            let tasks = self.tasks_now();
            self.task_looks.met(begun, tasks);
        }
    }

    /// Tasks of runtimes that can be read in a moment, as they are now: those of Node.js need a walk through the heap.
    fn tasks_now(&mut self) -> Vec<RuntimeTask> {
        let processes = self.processes.iter().map(|(pid, key)| (*pid, *key));
        let mut now = goroutines::parked(
            &mut self.user_stacks,
            processes.clone(),
            &mut self.goroutines,
            Some(&self.goroutine_looks),
        );
        let (interpreters, stacks) = (&mut self.interpreters, &mut self.user_stacks);
        asyncio::add(&mut now, interpreters, stacks, processes.clone(), &self.asyncio);
        tokio::add(&mut now, stacks, processes.clone(), &self.tokio);
        let machines = self.runtimes.machines();
        let (runtimes, tids) = (&self.runtimes, &self.tids);
        let tid_of = |process, inside| tids.get(&runtimes.thread(process, inside)?).copied();
        let (first, stacks) = (&self.virtual_threads, &mut self.user_stacks);
        virtual_threads::add(&mut now, &machines, stacks, processes, first, tid_of);
        now.tasks
    }

    /// What goroutines wait for that are parked now.
    pub(crate) fn parked(&mut self) -> Parked {
        let processes = self.processes.iter().map(|(pid, key)| (*pid, *key));
        let mut parked = goroutines::parked(
            &mut self.user_stacks,
            processes.clone(),
            &mut self.goroutines,
            Some(&self.goroutine_looks),
        );
        let (interpreters, stacks) = (&mut self.interpreters, &mut self.user_stacks);
        asyncio::add(
            &mut parked,
            interpreters,
            stacks,
            processes.clone(),
            &self.asyncio,
        );
        suspended::add(
            &mut parked,
            interpreters,
            stacks,
            processes.clone(),
            &self.suspended,
        );
        tokio::add(&mut parked, stacks, processes.clone(), &self.tokio);
        let machines = self.runtimes.machines();
        let (runtimes, tids) = (&self.runtimes, &self.tids);
        let tid_of = |process, inside| tids.get(&runtimes.thread(process, inside)?).copied();
        let (first, stacks) = (&self.virtual_threads, &mut self.user_stacks);
        virtual_threads::add(&mut parked, &machines, stacks, processes.clone(), first, tid_of);
        parked.looks = self.task_looks.finish();
        task_looks::shorten(&mut parked.tasks, &parked.looks);
        parked.shared_words = shared_words::awaited(processes.map(|(pid, _)| pid));
        parked
    }
}
