//! Those in the way of sampled waits who are not followed: as when tracing, met while they are likely to be there still.
//!
//! In: events of a round, and waits that were met in it. Out: the same events, with those who are in the way named before they are needed.

use crate::outsiders::{Met, Outsiders};
use holdup_evidence::{Event, LockHolder, OpenState, TaskName, ThreadId, Wait};
use holdup_proc::{Root, names};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Those that were met.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    outsiders: Outsiders,
    /// Processes that are or were followed.
    of_run: HashSet<u32>,
    /// The processes of threads that are followed.
    threads: HashMap<ThreadId, u32>,
    /// Those that were named as having an end of something.
    with_ends: HashSet<u32>,
    /// Those in the way since that was asked.
    in_the_way: BTreeSet<u32>,
}

/// Processes that are remembered as having been named: one that is named anew costs a file.
const MAX_PROCESSES: usize = 4096;

impl Beyond {
    /// What a round reported, with those in the way. `met`: waits with somebody in the way that were met in it, and go on.
    pub(super) fn resolve(&mut self, events: Vec<Event>, met: Vec<Wait>) -> Vec<Event> {
        for event in &events {
            if let Event::Start(start) = event {
                self.of_run.insert(start.task.pid);
                self.threads.insert(start.thread, start.task.pid);
            }
        }
        let mut listed = Vec::with_capacity(events.len());
        for mut wait in met {
            self.meet(&mut wait, &mut listed);
        }
        for mut event in events {
            match &mut event {
                Event::Wait(wait) => self.meet(wait, &mut listed),
                Event::End(end) => {
                    if let Some(OpenState::Blocked(wait)) = &mut end.open {
                        self.meet(wait, &mut listed);
                    }
                    self.threads.remove(&end.thread);
                }
                Event::OtherEnd(end) => {
                    // Of several nobody knows which.
                    if let [pid] = end.processes.as_slice() {
                        self.in_the_way.insert(*pid);
                    }
                    for pid in &end.processes {
                        self.has_an_end(*pid, &mut listed);
                    }
                }
                _ => {}
            }
            listed.push(event);
        }
        listed
    }

    fn meet(&mut self, wait: &mut Wait, events: &mut Vec<Event>) {
        let of_run = &self.of_run;
        let before = events.len();
        let waiter = self.threads.get(&wait.thread).copied();
        self.outsiders
            .meet(waiter, wait, &|pid| of_run.contains(&pid), events);
        let owners = events[before..].iter().filter_map(|event| match event {
            Event::Outsider(task) => Some(task.pid),
            _ => None,
        });
        self.in_the_way.extend(owners);
        self.in_the_way.extend(match &wait.holder {
            Some(
                LockHolder::FileLock { pid }
                | LockHolder::Semaphore { pid }
                | LockHolder::QueueReceiver { pid },
            ) if *pid != 0 => Some(*pid),
            Some(LockHolder::Tracer(owner)) => Some(owner.pid),
            _ => None,
        });
    }

    /// Processes that were found in the way since this was asked, and are not followed.
    pub(super) fn take_in_the_way(&mut self) -> Vec<u32> {
        let all = std::mem::take(&mut self.in_the_way).into_iter();
        all.filter(|pid| !self.of_run.contains(pid)).collect()
    }

    fn has_an_end(&mut self, pid: u32, events: &mut Vec<Event>) {
        if self.of_run.contains(&pid) || self.with_ends.contains(&pid) {
            return;
        }
        if self.with_ends.len() >= MAX_PROCESSES {
            self.with_ends.clear();
        }
        self.with_ends.insert(pid);
        self.outsiders.name(pid);
        events.push(Event::Outsider(TaskName {
            pid,
            tid: pid,
            name: names::comm(&Root::system(), pid).unwrap_or_default(),
            kernel: false,
        }));
    }

    /// All that is known.
    pub(super) fn finish(self) -> Met {
        self.outsiders.finish()
    }
}
