//! The way from a wait to where its time went.
//!
//! In: waits with who was in their way, and the chain of the longest of them. Out: steps from the waiter to the end. Circles end the way,
//! and it has at most [`MAX_STEPS`] steps.

use holdup_evidence::observed::Limited;
use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::{Attributed, AttributedWait, Holder, HowKnown, ThreadName};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Steps of a way. Whoever is further away than that is not what one would change.
const MAX_STEPS: usize = 16;

/// Process and thread.
pub(super) type Id = (u32, u32);

/// A thread on the way, and what it was in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) name: &'a ThreadName,
    pub(crate) cause: Option<Cause>,
    pub(crate) ns: Ns,
}

impl Step<'_> {
    pub(super) fn id(&self) -> Id {
        (self.name.pid, self.name.tid)
    }
}

/// The waits of one process, by thread.
type Rows<'a> = BTreeMap<u32, Vec<&'a AttributedWait>>;

/// All waits, by process and thread.
#[derive(Debug)]
pub(crate) struct Graph<'a> {
    rows: HashMap<u32, Rows<'a>>,
    /// Threads that waited for a lock of a database.
    sessions: HashSet<Id>,
    /// By their parents: children that were stopped, and that the parent uses. What it passes on to them gets no answer.
    stopped: HashMap<u32, Step<'a>>,
    /// Cgroups whose CPU time was used up, by the processes in them.
    throttled: HashMap<u32, &'a str>,
    /// The only one of them.
    only_throttled: Option<&'a str>,
    /// The cgroups of processes that have run into their limits of memory.
    short: HashMap<u32, &'a str>,
}

/// Who was mostly in the way: the one that was for longest, of those that did the same for at least half of the time. Several threads
/// of one process may answer in turn.
fn mostly(wait: &AttributedWait) -> Option<&Holder> {
    let alike = |one: &Holder, other: &Holder| {
        let same = one.name.pid == other.name.pid || one.name.process == other.name.process;
        same && (one.doing == other.doing || one.name == other.name)
    };
    let most = wait.holders.iter().max_by_key(|holder| {
        let others = wait.holders.iter().filter(|other| alike(holder, other));
        let all = others.map(|other| other.ns).fold(0, Ns::saturating_add);
        (all, holder.ns)
    })?;
    let others = wait.holders.iter().filter(|other| alike(most, other));
    let all = others.map(|other| other.ns).fold(0, Ns::saturating_add);
    (all.saturating_mul(2) >= wait.ns).then_some(most)
}

/// Whether something stopped a thread from outside.
pub(crate) fn is_halted(cause: Cause) -> bool {
    matches!(cause, Cause::ProcessStopped | Cause::ProcessFrozen)
}

/// Whose time is no wait for anybody else.
fn ends_here(cause: Cause) -> bool {
    // Who stopped a process has done so, and is not what it waits for.
    is_halted(cause) || cause.on_cpu() || matches!(cause, Cause::Idle | Cause::TimerSleep | Cause::NetAccept)
}

impl<'a> Graph<'a> {
    /// Of these waits.
    pub(crate) fn new(attributed: &'a Attributed, facts: &'a SystemFacts) -> Graph<'a> {
        let parents = facts.stopped_children.iter().rev();
        // The first one counts if a process is there twice.
        let parents: HashMap<u32, u32> = parents.map(|child| (child.pid, child.parent)).collect();
        let at_limit = facts.cgroups_at_limit.iter();
        let (throttled, short): (Vec<_>, Vec<_>) = at_limit.partition(|one| one.what == Limited::CpuTime);
        let mut graph = Graph {
            rows: HashMap::new(),
            sessions: HashSet::new(),
            stopped: HashMap::new(),
            throttled: HashMap::new(),
            short: HashMap::new(),
            only_throttled: match throttled.as_slice() {
                [one] => Some(&one.cgroup),
                _ => None,
            },
        };
        for one in short {
            let members = one.members.iter().map(|pid| (*pid, one.cgroup.as_str()));
            graph.short.extend(members);
        }
        for one in throttled {
            let members = one.members.iter().map(|pid| (*pid, one.cgroup.as_str()));
            graph.throttled.extend(members);
        }
        for row in &attributed.waits {
            // Of a row that stands for several threads nobody knows whose chain it has.
            if row.asker.name.tid == 0 {
                continue;
            }
            let id = (row.asker.name.pid, row.asker.name.tid);
            let of_process = graph.rows.entry(id.0).or_default();
            of_process.entry(id.1).or_default().push(row);
            if row.resource.detail.database_lock.is_some() {
                graph.sessions.insert(id);
            }
            let parent = parents.get(&row.asker.name.pid);
            if let Some(parent) = parent.filter(|_| row.cause == Cause::ProcessStopped) {
                let step = Step {
                    name: &row.asker.name,
                    cause: Some(row.cause),
                    ns: row.ns,
                };
                let known = graph.stopped.entry(*parent).or_insert(step);
                if known.ns < step.ns {
                    *known = step;
                }
            }
        }
        graph
    }

    /// A thread's rows; none where it has none.
    fn of_thread(&self, id: Id) -> &[&'a AttributedWait] {
        let rows = self.rows.get(&id.0).and_then(|threads| threads.get(&id.1));
        rows.map_or(&[], Vec::as_slice)
    }

    /// The longest of a thread's waits with this cause.
    pub(super) fn row(&self, id: Id, cause: Cause) -> Option<&'a AttributedWait> {
        let rows = self.of_thread(id).iter().copied();
        rows.filter(|row| row.cause == cause).max_by_key(|row| row.ns)
    }

    /// All of a process's rows.
    pub(super) fn of_process(&self, pid: u32) -> impl Iterator<Item = &'a AttributedWait> + '_ {
        let threads = self.rows.get(&pid).into_iter();
        threads.flat_map(|threads| threads.values().flatten().copied())
    }

    /// From the one that waits, itself included, to the end.
    pub(crate) fn way(&self, row: &'a AttributedWait) -> Vec<Step<'a>> {
        let mut way = vec![Step {
            name: &row.asker.name,
            cause: Some(row.cause),
            ns: row.ns,
        }];
        // The chain is that of the longest wait: it stands for all of them if that one is at least half of their time, and it reaches as
        // far as its links last for at least half of that.
        let is_most = row.max.saturating_mul(2) >= row.ns;
        if is_most {
            let before = row.chain.iter();
            let links = row.chain.iter().skip(1).zip(before);
            // A parent waits for its child whatever that does, and however often it does something else.
            let long = links
                .take_while(|(link, before)| {
                    // Who stopped a process is not what it waits for.
                    if is_halted(before.cause) {
                        return false;
                    }
                    let is_child = before.cause == Cause::ProcessChild;
                    is_child || link.ns.saturating_mul(2) >= row.max.min(row.ns)
                })
                .map(|(link, _)| link);
            for link in long.take(MAX_STEPS) {
                let step = Step {
                    name: &link.name,
                    cause: Some(link.cause),
                    ns: link.ns,
                };
                if way.iter().any(|other| other.id() == step.id()) {
                    return way;
                }
                way.push(step);
            }
        }
        let first = (!is_most || way.len() == 1).then_some(row);
        self.go_on(&mut way, first);
        self.to_stopped_child(&mut way, row.max.min(row.ns));
        way
    }

    /// Goes on from a process that waits for whatever comes to its child that was stopped, if that was so for at least half of the wait.
    fn to_stopped_child(&self, way: &mut Vec<Step<'a>>, longest: Ns) {
        let relays = |cause| {
            let waits = matches!(cause, None | Some(Cause::Idle | Cause::PollWait));
            waits || matches!(cause, Some(Cause::IpcPipe | Cause::IpcUnix | Cause::NetReceive))
        };
        let Some(last) = way.last().filter(|last| way.len() > 1 && relays(last.cause)) else {
            return;
        };
        let child = self.stopped.get(&last.name.pid);
        let child = child.filter(|child| child.ns.saturating_mul(2) >= longest);
        if let Some(child) = child.filter(|child| way.iter().all(|step| step.id() != child.id())) {
            way.push(*child);
        }
    }

    /// Goes on from the last step by who was mostly in the way of its thread.
    fn go_on(&self, way: &mut Vec<Step<'a>>, mut row: Option<&'a AttributedWait>) {
        while let Some(last) = way.last().copied() {
            let Some(cause) = last.cause.filter(|cause| !ends_here(*cause)) else {
                return;
            };
            let Some(wait) = row.take().or_else(|| self.row(last.id(), cause)) else {
                return;
            };
            let beside = || self.asked_in_poll(wait);
            let Some(holder) = mostly(wait).or_else(|| {
                let asked = beside()?;
                if let Some(last) = way.last_mut() {
                    last.cause = Some(asked.cause);
                }
                mostly(asked)
            }) else {
                return;
            };
            let next = Step {
                name: &holder.name,
                cause: holder.doing,
                ns: holder.ns,
            };
            if way.len() >= MAX_STEPS || way.iter().any(|step| step.id() == next.id()) {
                return;
            }
            way.push(next);
        }
    }

    /// Of a poll that names its few descriptors: the answer that the same thread awaits on one of them, as its other polls showed. A program
    /// that waits for one answer looks many times, and not each look shows for what.
    fn asked_in_poll(&self, wait: &AttributedWait) -> Option<&'a AttributedWait> {
        let of = self.of_thread((wait.asker.name.pid, wait.asker.name.tid));
        let asked = of.iter().copied().filter(|row| {
            row.cause == Cause::NetReceive
                && !row.resource.name.is_empty()
                && wait.resource.name.contains(row.resource.name.as_str())
        });
        asked
            .max_by_key(|row| row.ns)
            .filter(|_| wait.cause == Cause::PollWait)
    }

    /// Whether a thread waits for something that only the next one has, and has until it lets go of it: a lock. The end of any other
    /// wait is that somebody does something, which may be ordinary work.
    pub(super) fn has_what_is_awaited(&self, waiter: &Step<'a>, next: &Step<'a>) -> bool {
        match waiter.cause {
            Some(Cause::LockFile | Cause::LockKernel | Cause::MemMmaplock) => true,
            Some(cause @ (Cause::LockFutex | Cause::LockMonitor | Cause::LockSysv)) => {
                self.is_session(waiter, next)
                    || self.row(waiter.id(), cause).is_some_and(|row| {
                        let most = row.holders.iter().max_by_key(|holder| holder.ns);
                        most.is_some_and(|holder| {
                            holder.how_known != HowKnown::Waker && holder.name.pid == next.name.pid
                        })
                    })
            }
            Some(Cause::IpcQueue | Cause::PollWait) => self.is_session(waiter, next),
            _ => false,
        }
    }

    /// Whether one session of a database waits for a lock that another one of the same server has.
    pub(super) fn is_session(&self, waiter: &Step<'a>, next: &Step<'a>) -> bool {
        self.sessions.contains(&waiter.id())
            && waiter.name.process == next.name.process
            && waiter.name.pid != next.name.pid
    }

    /// Whether a thread waited for a lock of a database.
    pub(super) fn waited_for_session(&self, id: Id) -> bool {
        self.sessions.contains(&id)
    }

    /// The lock of a database that a thread waited for longest.
    pub(super) fn lock_of_session(&self, id: Id) -> Option<&'a AttributedWait> {
        let rows = self.of_thread(id).iter().copied();
        rows.filter(|row| row.resource.detail.database_lock.is_some())
            .max_by_key(|row| row.ns)
    }

    /// The cgroup of a process that has run into its limit of memory.
    pub(super) fn short_in(&self, pid: u32) -> Option<&'a str> {
        self.short.get(&pid).copied()
    }

    /// The cgroup whose CPU quota throttled a process: where one alone did so, whoever has ended since was in it.
    pub(super) fn throttled_by(&self, pid: u32) -> Option<&'a str> {
        self.throttled.get(&pid).copied().or(self.only_throttled)
    }

    /// The address at which a thread on a way awaits an answer, or to be accepted.
    pub(super) fn asked_at(&self, step: &Step<'a>) -> Option<&'a str> {
        let cause = step
            .cause
            .filter(|cause| matches!(cause, Cause::NetReceive | Cause::NetConnect))?;
        let row = self.row(step.id(), cause)?;
        Some(row.resource.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Processes that were seen to be the other end of a socket, by the name of that socket.
    pub(super) fn servers(&self) -> HashMap<&'a str, &'a ThreadName> {
        let rows = self.rows.values().flat_map(BTreeMap::values).flatten();
        let peers = rows.flat_map(|row| {
            let holders = row.holders.iter();
            let peers = holders.filter(|holder| holder.how_known == HowKnown::SocketPeer);
            peers.map(|holder| (row.resource.name.as_str(), &holder.name))
        });
        peers.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;
    use holdup_evidence::{Cause, SystemFacts};
    use holdup_model::attributed::{Attributed, AttributedWait};

    fn wait(pid: u32, tid: u32, cause: &str, ns: u64) -> AttributedWait {
        let mut wait: AttributedWait = serde_json::from_value(serde_json::json!({ "cause": cause })).unwrap();
        (wait.asker.name.pid, wait.asker.name.tid, wait.ns) = (pid, tid, ns);
        wait
    }

    fn of(waits: Vec<AttributedWait>) -> Attributed {
        Attributed {
            waits,
            ..Attributed::default()
        }
    }

    #[test]
    fn of_one_process_its_own_rows_are_walked_and_no_others() {
        let all = (1..=3000).flat_map(|pid| {
            let own = [
                (pid, "cpu.user", 10),
                (pid, "disk.sync", 20),
                (pid + 90_000, "cpu.user", 30),
            ];
            own.map(|(tid, cause, ns)| wait(pid, tid, cause, ns))
        });
        let (attributed, facts) = (of(all.collect()), SystemFacts::default());
        let graph = Graph::new(&attributed, &facts);
        let mut walked = 0;
        for pid in 1..=3000 {
            walked += graph.rows[&pid].values().map(Vec::len).sum::<usize>();
            let own: Vec<u64> = graph.of_process(pid).map(|row| row.ns).collect();
            assert_eq!(own, [10, 20, 30], "thread by thread, in a certain order");
        }
        assert_eq!(walked, attributed.waits.len(), "each row once");
        assert_eq!(graph.of_process(3001).count(), 0);
    }

    #[test]
    fn threads_of_one_number_in_two_processes_are_not_mixed_up() {
        let attributed = of(vec![
            wait(5, 7, "disk.sync", 40),
            wait(6, 7, "disk.sync", 900),
            wait(5, 7, "disk.sync", 50),
            // One that stands for several threads.
            wait(5, 0, "disk.sync", 5000),
        ]);
        let facts = SystemFacts::default();
        let graph = Graph::new(&attributed, &facts);
        assert_eq!(graph.row((5, 7), Cause::DiskSync).unwrap().ns, 50);
        assert_eq!(graph.row((6, 7), Cause::DiskSync).unwrap().ns, 900);
        assert!(
            graph.row((5, 7), Cause::LockFutex).is_none() && graph.row((7, 7), Cause::DiskSync).is_none()
        );
        assert_eq!(graph.of_process(5).count(), 2);
    }
}
