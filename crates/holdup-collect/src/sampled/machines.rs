//! Which waits of sampled processes were for locks that a Java virtual machine keeps: as when tracing, by the machine's own structures.
//!
//! In: events of a round, and which processes' mappings were read. Out: the same events, the waits with their locks, and which processes are such
//! machines.

use super::stops::Account;
use crate::jvms::is_libjvm;
use crate::runtimes::Runtimes;
use holdup_evidence::{Event, LockHolder, OpenState, ThreadId};
use holdup_jvm::Machines;
use holdup_proc::{clocks, maps};
use holdup_symbols::{ProcessKey, Runtime};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How long the accounts of all machines are waited for in a round. One takes some 100 µs, and comes after a look at the locks of its threads,
/// if one is under way.
const LIMIT: Duration = Duration::from_millis(100);

/// Those that are followed.
#[derive(Debug)]
pub(super) struct SampledMachines {
    runtimes: Runtimes,
    /// Threads that live: process id, thread id.
    threads: HashMap<ThreadId, (u32, u32)>,
    /// What a process that is one is called by its structures' readers.
    keys: HashMap<u32, ProcessKey>,
    /// Their accounts of what they stopped their threads for, as read last.
    accounts: HashMap<u32, Account>,
}

/// A process whose code was read for the first time since it runs its program.
#[derive(Debug)]
pub(super) struct Began {
    pid: u32,
    key: ProcessKey,
    is_machine: bool,
}

/// Whether a process with these mappings is one.
pub(super) fn is_machine(mappings: &[maps::Mapping]) -> bool {
    mappings.iter().any(|mapping| is_libjvm(&mapping.path))
}

impl Began {
    pub(super) fn with(pid: u32, key: ProcessKey, mappings: &[maps::Mapping]) -> Began {
        Began {
            pid,
            key,
            is_machine: is_machine(mappings),
        }
    }
}

impl Default for SampledMachines {
    fn default() -> SampledMachines {
        SampledMachines {
            runtimes: Runtimes::sampled(),
            threads: HashMap::new(),
            keys: HashMap::new(),
            accounts: HashMap::new(),
        }
    }
}

impl SampledMachines {
    /// For stacks that come to code that was written by a machine.
    pub(super) fn machines(&self) -> Machines {
        self.runtimes.machines()
    }

    /// What reads their stacks.
    pub(super) fn reader(&self) -> Box<dyn Runtime> {
        self.runtimes.reader()
    }

    /// Has the locks looked at for the last time, of all: those that wait to the end are known by it.
    pub(super) fn look_now(&mut self) {
        if !self.keys.is_empty() {
            self.runtimes.look_at_locks_now();
        }
    }

    /// Who was seen to wait for whose end: a thread, and the other's id.
    pub(super) fn joins(&self) -> impl Iterator<Item = (ThreadId, u32)> {
        self.runtimes.joins()
    }

    /// What a round reported, with the locks of its waits. `began`: whose code was read meanwhile.
    pub(super) fn judge(&mut self, events: Vec<Event>, began: Vec<Began>) -> Vec<Event> {
        let mut listed = Vec::with_capacity(events.len());
        for Began { pid, key, is_machine } in began {
            if let Some(old) = self.keys.remove(&pid).filter(|old| *old != key) {
                self.runtimes.exit(old);
            }
            if !is_machine {
                continue;
            }
            listed.push(Event::IsJvm { pid });
            self.keys.insert(pid, key);
            for (thread, (_, tid)) in self.threads.iter().filter(|(_, (of, _))| *of == pid) {
                self.runtimes.born(key, *tid, *thread);
            }
        }
        if !self.keys.is_empty() {
            self.runtimes.look_at_locks();
        }
        self.read_accounts(&events);
        for mut event in events {
            match &mut event {
                Event::Start(start) => {
                    let (pid, tid) = (start.task.pid, start.task.tid);
                    self.threads.insert(start.thread, (pid, tid));
                    if let Some(key) = self.keys.get(&pid) {
                        self.runtimes.born(*key, tid, start.thread);
                    }
                }
                Event::Wait(wait) => {
                    if let Some(lock) = self.runtimes.lock_of(wait) {
                        wait.holder = Some(LockHolder::Runtime(lock));
                    } else if let Some((pid, _)) = self.threads.get(&wait.thread)
                        && let Some(stop) = self.accounts.get_mut(pid).and_then(|account| account.stop(wait))
                    {
                        wait.holder = Some(LockHolder::Stopped(stop));
                    }
                }
                Event::End(end) => {
                    if let Some(OpenState::Blocked(wait)) = &mut end.open
                        && let Some(lock) = self.runtimes.lock_of(wait)
                    {
                        wait.holder = Some(LockHolder::Runtime(lock));
                    }
                    if let Some((pid, tid)) = self.threads.remove(&end.thread)
                        && pid == tid
                        && let Some(key) = self.keys.remove(&pid)
                    {
                        self.accounts.remove(&pid);
                        self.runtimes.exit(key);
                    }
                    self.runtimes.forget(end.thread);
                }
                _ => {}
            }
            listed.push(event);
        }
        listed
    }

    /// Reads the accounts of those for which a thread has waited since they were read last, and of those that have not said yet on what.
    fn read_accounts(&mut self, events: &[Event]) {
        if self.keys.is_empty() {
            return;
        }
        let of_machines = events.iter().filter_map(|event| {
            let Event::Wait(wait) = event else {
                return None;
            };
            let (pid, _) = self.threads.get(&wait.thread)?;
            let due = self.accounts.get(pid).is_none_or(|account| account.is_of(wait));
            (self.keys.contains_key(pid) && due).then_some(*pid)
        });
        let until = Instant::now() + LIMIT;
        for pid in of_machines.collect::<BTreeSet<u32>>() {
            if let Some(now) = self.runtimes.machines().operations(pid, until) {
                self.accounts
                    .entry(pid)
                    .or_default()
                    .read(now, clocks::monotonic());
            }
        }
    }
}
