//! Who was seen waiting for the end of somebody.
//!
//! The problem: of each thread that ends it is asked who waited for that, and thousands may end at once in a process of thousands. The
//! choice: those who wait are entered once a round, by whom they wait for. In: what threads were seen in. Out: for a thread that has
//! ended, those that may have waited for it.

use super::waiting::Awaited;
use holdup_evidence::ThreadId;
use std::collections::HashMap;

/// Threads by whose end they wait for.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// By the process that is a child.
    child: HashMap<u32, Vec<ThreadId>>,
    /// By the process whose any child.
    any_child: HashMap<u32, Vec<ThreadId>>,
    /// By process and thread.
    thread: HashMap<(u32, u32), Vec<ThreadId>>,
}

impl Waiters {
    /// A thread of process `pid` waits for that.
    pub(super) fn add(&mut self, id: ThreadId, pid: u32, awaited: Awaited) {
        let list = match awaited {
            Awaited::Child(child) => self.child.entry(child).or_default(),
            Awaited::AnyChild => self.any_child.entry(pid).or_default(),
            Awaited::Thread(tid) => self.thread.entry((pid, tid)).or_default(),
        };
        list.push(id);
    }

    /// Who may have waited for thread `tid` of process `pid`, whose parent is `parent`.
    pub(super) fn of(&self, pid: u32, tid: u32, parent: u32) -> impl Iterator<Item = ThreadId> {
        let leads = pid == tid;
        let child = self.child.get(&pid).filter(|_| leads);
        let any = self.any_child.get(&parent).filter(|_| leads);
        let lists = [child, any, self.thread.get(&(pid, tid))];
        lists.into_iter().flatten().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Waiters;
    use crate::sampling::waiting::Awaited;
    use holdup_evidence::ThreadId;

    #[test]
    fn a_process_ends_with_its_first_thread_and_a_thread_for_those_of_its_process() {
        let mut waiters = Waiters::default();
        for (id, pid, awaited) in [
            (1, 5, Awaited::AnyChild),
            (2, 5, Awaited::Child(7)),
            (3, 7, Awaited::Thread(8)),
            (4, 9, Awaited::Thread(8)),
            (5, 9, Awaited::AnyChild),
        ] {
            waiters.add(ThreadId(id), pid, awaited);
        }
        let of = |pid, tid, parent| waiters.of(pid, tid, parent).map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(of(7, 7, 5), [2, 1]);
        assert_eq!(of(7, 8, 5), [3]);
        assert_eq!(of(6, 6, 5), [1]);
        assert_eq!(of(6, 6, 1), [0_u32; 0]);
    }
}
