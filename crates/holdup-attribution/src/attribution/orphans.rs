//! Waits for a lock or condition that no thread which there is could have ended.
//!
//! The problem: a process that is made by `fork` has a copy of all locks and one thread. A lock that another thread of its
//! creator had at that moment is locked in the copy for good, and nobody is there to let it go; what is seen is a wait like
//! any other. The same where a thread ends with a lock. The choice: a private futex is a matter of one process's threads, so a
//! lock in which the owner's number is that of another process's thread, or of none, is such a copy or was left behind;
//! and whoever is the only thread of its process has no other to end such a wait: at most a signal's handler. It is believed only
//! where nobody did end it, and no time limit was set. Of a mutex that processes share, the owner must have ended, and nobody else live under
//! its id. Where all threads of a process wait so as observation ends, none of them can end
//! another's wait: a pool whose tasks wait for tasks of the same pool comes to that, and no lock has an owner then.
//!
//! In: a futex wait that is over or open at the end. Out: an [`Orphan`].

use super::deadlock;
use super::holders;
use super::ledger::Ledger;
use super::owners;
use super::task_table::{Identity, Named, TaskTable};
use super::thread::Threads;
use holdup_evidence::{Call, Cause, LockHolder, Ns, Wait};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::{AttributedWait, HowKnown, Orphaned, ThreadName};
use std::collections::BTreeMap;

/// `FUTEX_CMD_MASK`, `FUTEX_WAIT` and `FUTEX_WAIT_BITSET`.
const OPERATION: u64 = 0x7f;
const WAITS: [u64; 2] = [0, 9];

/// How long all threads of a process must have stood so, nanoseconds. A thread that is woken or made is known a moment later,
/// on a machine with many runnable threads some hundred milliseconds; what cannot end stands for as long as one looks.
const MIN_STANDING_NS: Ns = 500_000_000;

/// Why nobody could have ended a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orphan {
    /// The owner that the lock names; `Err` with a thread id under which nobody lives.
    owner: Option<Result<Named, u32>>,
    /// Whether the waiter is its process's only thread.
    alone: bool,
}

impl Orphan {
    /// As a row has it.
    pub(super) fn orphaned(&self, tasks: &TaskTable) -> Orphaned {
        Orphaned {
            owner: self.owner.map(|owner| match owner {
                Ok(named) => tasks.describe(&named),
                Err(tid) => ThreadName {
                    tid,
                    ..ThreadName::default()
                },
            }),
            alone: self.alone,
            all_of: 0,
            sharers: 0,
            queue_sharers: 0,
        }
    }
}

/// Whether it is a wait for a private futex without a time limit that nobody ended.
fn endless(wait: &Wait) -> bool {
    unended(wait) && !owners::shared(&wait.call)
}

/// The same, whoever may share the futex.
fn unended(wait: &Wait) -> bool {
    // Newer calls have other arguments.
    let newer = system_calls::is(&wait.call, Does::WaitsForFutex) && wait.call.name() != Some("futex");
    let waits = WAITS.contains(&(wait.call.args[1] & OPERATION));
    !newer && waits && !limited(&wait.call) && !holders::let_go(&wait.waker)
}

/// Whether a time limit was set.
fn limited(call: &Call) -> bool {
    call.args[3] != 0
}

/// Whether a wait, while it lasts, can be ended by nobody but another thread of the process: a private futex, or the end of such a thread,
/// which the kernel tells by a futex that has its id and is not private.
pub(super) fn by_own_threads(wait: &Wait, waiter: &Identity, tasks: &TaskTable, threads: &Threads) -> bool {
    let joined = || {
        let [_, operation, value, _] = wait.call.args;
        let waits = wait.call.name() == Some("futex") && WAITS.contains(&(operation & OPERATION));
        let other = tasks.as_seen_by(waiter, value as u32, wait.start);
        let other = other.and_then(|id| threads.get(&id));
        waits
            && !limited(&wait.call)
            && other.is_some_and(|other| !other.ended && other.identity.process == waiter.process)
    };
    endless(wait) || joined()
}

/// The threads of one process that live as observation ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    threads: u64,
    endless: u64,
    /// When the last of those waits began.
    since: Ns,
}

impl Standing {
    /// Adds a thread's ledger.
    pub(super) fn add(&mut self, ledger: &Ledger) {
        if ledger.open {
            self.threads += u64::from(ledger.threads);
            let since = ledger.sites.iter().filter_map(|site| site.endless).max();
            if let Some(since) = since.filter(|_| ledger.threads == 1) {
                self.endless += 1;
                self.since = self.since.max(since);
            }
        }
    }

    /// How many they are, where all of several wait so, and have for long enough.
    fn all(self, ended: Ns) -> Option<u64> {
        let stand = self.threads > 1 && self.endless == self.threads;
        (stand && ended.saturating_sub(self.since) >= MIN_STANDING_NS).then_some(self.threads)
    }
}

/// Marks the waits of processes all of whose threads wait for each other: whoever could end one of them is in another. What a lock
/// or a circle of owners tells better is left as it is.
pub(super) fn mark_standing(rows: &mut [AttributedWait], processes: &BTreeMap<u32, Standing>, ended: Ns) {
    for (pid, standing) in processes {
        let Some(all_of) = standing.all(ended) else {
            continue;
        };
        let holds = |row: &AttributedWait| row.deadlock || row.orphaned.is_some();
        if rows.iter().any(|row| row.asker.name.pid == *pid && holds(row)) {
            continue;
        }
        let theirs = rows.iter_mut().filter(|row| row.asker.name.pid == *pid);
        for row in theirs.filter(|row| row.cause == Cause::LockFutex && row.open) {
            row.orphaned = Some(Orphaned {
                all_of,
                ..Orphaned::default()
            });
        }
    }
}

/// A mutex that processes share, and whose owner has ended: nobody releases it, unless it is robust, of which the kernel takes care. The
/// source has looked for the owner among all threads of the machine.
fn shared(wait: &Wait, waiter: &Identity, tasks: &TaskTable, threads: &Threads) -> Option<Orphan> {
    let owner = owners::of(wait).filter(|owner| owner.shared && owner.how == HowKnown::MutexOwner)?;
    let here = match tasks.as_seen_by(waiter, owner.tid, wait.start) {
        Some(id) => threads.get(&id).is_none_or(|thread| thread.ended),
        None => true,
    };
    let gone = unended(wait) && waiter.inside.is_none() && here && tasks.is_nobody(owner.tid);
    gone.then_some(Orphan {
        owner: Some(Err(owner.tid)),
        alone: false,
    })
}

/// Judges one wait of this thread.
pub(super) fn judge(wait: &Wait, waiter: &Identity, tasks: &TaskTable, threads: &Threads) -> Option<Orphan> {
    if !endless(wait) {
        return shared(wait, waiter, tasks, threads);
    }
    let alone = deadlock::alone(threads, wait.thread);
    let owner = matches!(wait.holder, Some(LockHolder::FutexWords(_)))
        .then(|| owners::of(wait))
        .flatten()
        .filter(|owner| matches!(owner.how, HowKnown::MutexOwner | HowKnown::RobustList));
    let owner = owner.and_then(|owner| {
        match tasks.as_seen_by(waiter, owner.tid, wait.start) {
            // Whoever was born since has the id of another who is gone.
            Some(id) => {
                let Some(thread) = threads.get(&id) else {
                    return Some(Err(owner.tid));
                };
                let lived = thread.adopted || thread.born <= wait.start;
                let here = thread.identity.process == waiter.process;
                match (lived, here) {
                    (true, true) => None,
                    (true, false) => Some(Ok(tasks.named(&thread.identity))),
                    (false, _) => Some(Err(owner.tid)),
                }
            }
            // In a namespace of its own not all numbers are known.
            None => waiter.inside.is_none().then_some(Err(owner.tid)),
        }
    });
    (alone || owner.is_some()).then_some(Orphan { owner, alone })
}

#[cfg(test)]
mod tests {
    use super::{MIN_STANDING_NS, Standing};

    #[test]
    fn a_process_stands_still_when_all_of_several_threads_do() {
        let since = 7;
        let all = |threads, endless| {
            let standing = Standing {
                threads,
                endless,
                since,
            };
            standing.all(since + MIN_STANDING_NS)
        };
        assert_eq!(all(3, 3), Some(3));
        assert_eq!(all(3, 2), None, "one of them goes on");
        assert_eq!(all(1, 1), None, "told otherwise");
        assert_eq!(all(0, 0), None);
    }

    #[test]
    fn who_has_just_begun_to_wait_may_have_woken_somebody_before() {
        let standing = Standing {
            threads: 4,
            endless: 4,
            since: 1_000,
        };
        assert_eq!(standing.all(1_000 + MIN_STANDING_NS - 1), None);
        assert_eq!(standing.all(1_000 + MIN_STANDING_NS), Some(4));
    }
}
