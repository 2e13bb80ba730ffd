//! Whom the sampler follows: threads and processes as they are found, and as they go.
//!
//! In: ids from lists of threads and children. Out: [`Tracked`] threads, and the event of each one's birth.

use super::account::Account;
use super::clocks::{Counted, Stat, TICK, blockings, stat};
use super::processes::{self, Threads};
use super::sampler::{Newborn, Process, SCAN, SCAN_SHARE, Sampler, Stacks, Tracked};
use super::site::has_ended;
use super::task::Folder;
use super::unmet::Unmet;
use crate::clocks as machine;
use crate::namespaces::{self, Place};
use holdup_evidence::{Event, Inside, Ns, Role, ThreadId};
use std::collections::BTreeSet;

impl Sampler {
    pub(super) fn find_children(&mut self, id: ThreadId) {
        let Some(thread) = self.threads.get(&id) else {
            return;
        };
        let pid = thread.pid;
        match processes::children(&thread.folder) {
            Some(children) => self.add_processes(children.into_iter().map(|child| (child, pid)).collect()),
            // One that is gone has none.
            None if thread.folder.text("stat").is_some() => self.scan(),
            None => {}
        }
    }

    /// Looks at all processes for those that are children of some that are followed, as often as that may be done.
    fn scan(&mut self) {
        let began = machine::monotonic();
        if began < self.scan_due {
            return;
        }
        let apart = self.now.saturating_sub(self.scanned);
        self.shortfall.without_children = self.shortfall.without_children.max(Some(apart));
        self.scanned = self.now;
        let mut found = processes::parents(&self.root);
        // Parents come before their children, so that a grandchild is met with its parent.
        found.sort_unstable();
        for (child, parent) in found {
            let new = self.newborn.iter().any(|newborn| newborn.pid == parent);
            if new || parent == self.own || self.processes.contains_key(&parent) {
                self.add_processes(vec![(child, parent)]);
            }
        }
        let now = machine::monotonic();
        self.scan_due = now + SCAN.max(now.saturating_sub(began) * SCAN_SHARE);
    }

    /// Those that have lost their parent are ours now.
    pub(super) fn find_orphans(&mut self) {
        if self.shortfall.without_children.is_some() {
            // Who made it may sleep by now, and is not looked at for that.
            self.scan();
        }
        let own = self.own;
        let ours = crate::tasks::children(&self.root, own);
        self.add_processes(ours.into_iter().map(|child| (child, own)).collect());
    }

    pub(super) fn add_processes(&mut self, found: Vec<(u32, u32)>) {
        for (pid, parent) in found {
            let known = self.processes.contains_key(&pid)
                || holdup_detached::is_ours(pid)
                || self.newborn.iter().any(|newborn| newborn.pid == pid)
                || parent == self.own && self.processes.is_empty();
            // Its own readers are no part of what is observed.
            if !known
                && !holdup_detached::is_ours(pid)
                && let Some(newborn) = self.newborn(pid, pid, parent)
                && !self.was_there(self.began(&newborn.stat))
            {
                self.newborn.push(newborn);
            }
        }
    }

    pub(super) fn find_threads(&mut self, pid: u32) {
        for tid in crate::tasks::threads(&self.root, pid) {
            let known = self
                .by_tid
                .get(&tid)
                .and_then(|id| self.threads.get(id))
                .is_some_and(|thread| thread.pid == pid);
            if !known && let Some(newborn) = self.newborn(pid, tid, pid) {
                self.newborn.push(newborn);
            }
        }
    }

    pub(super) fn newborn(&mut self, pid: u32, tid: u32, parent: u32) -> Option<Newborn> {
        if self.threads.len() + self.newborn.len() >= self.most_threads {
            self.shortfall.threads += 1;
            return None;
        }
        let Some(folder) = Folder::open(&self.root, pid, tid) else {
            // No descriptor left, for all that was reckoned; a thread that is gone by now is no loss.
            self.shortfall.threads += u64::from(crate::tasks::threads(&self.root, pid).contains(&tid));
            return None;
        };
        let stat = folder.text("stat").as_deref().and_then(stat)?;
        (!has_ended(stat.state) && !stat.of_kernel).then_some(Newborn {
            pid,
            tid,
            folder,
            stat,
            parent,
        })
    }

    /// The earliest instant at which a thread may have begun.
    pub(super) fn began(&self, stat: &Stat) -> Ns {
        stat.began.saturating_mul(TICK).saturating_sub(self.suspended)
    }

    /// Follows a thread from `born` on. `counts`: what was counted before is none of its life under observation.
    /// `adopted`: what it was when it was found, if it runs already.
    pub(super) fn start(
        &mut self,
        newborn: Newborn,
        parent: Option<(ThreadId, holdup_evidence::Clock)>,
        born: Ns,
        counts: bool,
        adopted: Option<holdup_evidence::Adopted>,
    ) {
        let Newborn {
            pid,
            tid,
            folder,
            stat,
            parent: of,
        } = newborn;
        let id = ThreadId(self.next);
        self.next += 1;
        let inherited = || {
            let of_process = self.processes.get(&pid).or_else(|| self.processes.get(&of));
            of_process.map_or(Role::Subject, |process| process.role)
        };
        let role = match &adopted {
            Some(_) => self.adopts_as,
            None => inherited(),
        };
        let before = adopted.as_ref().and_then(|_| self.slept_before(&folder));
        let counted = match (counts, folder.schedstat()) {
            (true, Some(turns)) => Counted {
                cpu: turns.cpu,
                queued: turns.queued,
                turns: turns.count,
                blockings: folder.text("status").as_deref().and_then(blockings),
            },
            _ => Counted {
                blockings: Some(0),
                ..Counted::default()
            },
        };
        let was_there = adopted.is_some();
        let namespace = match self.processes.get(&pid) {
            Some(process) => process.namespace,
            None => self.namespace_of(pid),
        };
        let inside = namespace.and_then(|namespace| {
            let tid = namespaces::inside(&folder.text("status")?)?;
            Some(Inside { namespace, tid })
        });
        self.events.push(Event::Start(holdup_evidence::Start {
            at: born,
            thread: id,
            task: holdup_evidence::TaskName {
                pid,
                tid,
                name: stat.name.clone(),
                kernel: false,
            },
            parent,
            inside,
            role,
            adopted,
        }));
        // Its parent had ended before it was found.
        let gone = of == self.own || !self.processes.contains_key(&of);
        if parent.is_none() && gone && id != ThreadId(0) && pid == tid && !was_there {
            self.events.push(Event::Orphan {
                at: self.now.max(born),
                thread: id,
            });
        }
        let begun = &mut self.next_process;
        let process = self.processes.entry(pid).or_insert_with(|| {
            *begun += 1;
            Process {
                threads: Threads::open(&self.root, pid),
                members: BTreeSet::new(),
                parent: of,
                role,
                mapped: false,
                runs_unknown: false,
                unmet: Unmet::default(),
                namespace,
            }
        });
        process.members.insert(id);
        // By then it may have loaded more than it began with: a launcher loads a virtual machine, and that makes threads.
        process.mapped &= process.members.len() == 1 || !process.members.len().is_power_of_two();
        self.by_tid.insert(tid, id);
        self.threads.insert(
            id,
            Tracked {
                pid,
                tid,
                folder,
                account: Account::beginning(born, counted),
                born,
                name: stat.name,
                seq: 0,
                cpu_seq: 0,
                ticks: if counts { (stat.user, stat.kernel) } else { (0, 0) },
                unasked: false,
                stack_asked: false,
                changes: 0,
                interrupts: [0; holdup_evidence::INTERRUPTS.len()],
                running: Vec::new(),
                put_off: false,
                before,
            },
        );
    }

    /// The pid namespace of a process, if it is not holdup's: locks in its memory name their owners by ids of that one.
    fn namespace_of(&self, pid: u32) -> Option<u32> {
        match namespaces::place(&self.root, pid) {
            Place::Within(within) => within.number(),
            Place::Here | Place::Unknown => None,
        }
    }

    /// A process is gone; of whose making it was not seen it was the maker.
    fn orphaned_by(&mut self, pid: u32) {
        let orphans = self.processes.values().filter(|process| process.parent == pid);
        let first = orphans.filter_map(|process| process.members.first());
        let found = first.map(|thread| Event::Orphan {
            at: self.now,
            thread: *thread,
        });
        self.events.extend(found);
    }

    /// A thread of a process is gone.
    pub(super) fn forget(&mut self, id: ThreadId, stacks: &mut dyn Stacks) {
        let Some(thread) = self.threads.remove(&id) else {
            return;
        };
        self.examined.forget(id);
        self.interrupted.forget(id);
        let cpu = thread.account.counted().cpu;
        self.cpu_of_ended = self.cpu_of_ended.saturating_add(cpu);
        self.child_ended(thread.pid, thread.tid == thread.pid, &thread.name, cpu);
        if self.by_tid.get(&thread.tid) == Some(&id) {
            self.by_tid.remove(&thread.tid);
        }
        let Some(process) = self.processes.get_mut(&thread.pid) else {
            return;
        };
        process.members.remove(&id);
        if let Some(threads) = &mut process.threads {
            threads.ended_one();
        }
        if process.members.is_empty() {
            self.processes.remove(&thread.pid);
            self.orphaned_by(thread.pid);
            stacks.ended(thread.pid);
        }
    }
}
