//! Which waits of sampled processes were for locks that a Java virtual machine keeps: as when tracing, by the machine's own structures.
//!
//! In: events of a round, and which processes' mappings were read. Out: the same events, the waits with their locks, and which processes are such
//! machines.

use crate::collect::jvms::is_libjvm;
use crate::collect::runtimes::Runtimes;
use holdup_evidence::{Event, LockHolder, OpenState, ThreadId};
use holdup_proc::maps;
use holdup_symbols::{ProcessKey, Runtime};
use std::collections::HashMap;

/// Those that are followed.
#[derive(Debug, Default)]
pub(super) struct SampledMachines {
    runtimes: Runtimes,
    /// Threads that live: process id, thread id.
    threads: HashMap<ThreadId, (u32, u32)>,
    /// What a process that is one is called by its structures' readers.
    keys: HashMap<u32, ProcessKey>,
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

impl SampledMachines {
    /// For stacks that come to code that was written by a machine.
    pub(super) fn reader(&self) -> Box<dyn Runtime> {
        self.runtimes.reader()
    }

    /// Has the locks looked at for the last time, of all: those that wait to the end are told by it.
    pub(super) fn look_now(&mut self) {
        if !self.keys.is_empty() {
            self.runtimes.look_at_locks_now();
        }
    }

    /// What a round told, with the locks of its waits. `began`: whose code was read meanwhile.
    pub(super) fn told(&mut self, events: Vec<Event>, began: Vec<Began>) -> Vec<Event> {
        let mut told = Vec::with_capacity(events.len());
        for Began { pid, key, is_machine } in began {
            if let Some(old) = self.keys.remove(&pid).filter(|old| *old != key) {
                self.runtimes.exit(old);
            }
            if !is_machine {
                continue;
            }
            told.push(Event::IsJvm { pid });
            self.keys.insert(pid, key);
            for (thread, (_, tid)) in self.threads.iter().filter(|(_, (of, _))| *of == pid) {
                self.runtimes.born(key, *tid, *thread);
            }
        }
        if !self.keys.is_empty() {
            self.runtimes.look_at_locks();
        }
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
                        self.runtimes.exit(key);
                    }
                    self.runtimes.forget(end.thread);
                }
                _ => {}
            }
            told.push(event);
        }
        told
    }
}
