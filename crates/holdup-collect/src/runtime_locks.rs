//! Which waits are for locks that a runtime keeps.
//!
//! In: what was seen of runtimes' locks each time they were looked at, and waits as they are reported. Out: the lock of a wait.
//! A look and a wait belong together if the thread waited for as long as the look took. A thread that was seen to wait for
//! one lock of one owner in one look after the other is taken to have done so in between: virtual machines wake such
//! threads now and then to see whether the lock is free, which makes many waits of one. Such a one is on the word on which it
//! was seen: what the thread reads, or sleeps, between two turns with the lock is something else.

use holdup_evidence::{Ns, RuntimeLock, RuntimeLockKind, RuntimeLockSource, ThreadId, Wait};
use holdup_jvm::{How, Kind, Look, Sighting};
use holdup_model::attributed::Source;
use holdup_symbols::ProcessKey;
use std::collections::{HashMap, VecDeque};

/// Stretches kept of a thread: its waits are reported some 20 ms after they ended.
const STRETCHES_MAX: usize = 8;

/// Threads of which some are kept, before all are forgotten.
const THREADS_MAX: usize = 65_536;

/// Where waits are looked at, too, a look at locks stands for what a thread waited on the same word for so long before and after it,
/// nanoseconds: looks are up to so far apart.
const STANDS_FOR: Ns = 1_000_000_000;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct RuntimeLocks {
    /// How waits are observed.
    source: Source,
    /// Threads by the id that their runtime has for them.
    threads: HashMap<(ProcessKey, u32), ThreadId>,
    /// The same the other way round.
    ids: HashMap<ThreadId, (ProcessKey, u32)>,
    /// How often each process was looked at.
    looks: HashMap<ProcessKey, u64>,
    seen: HashMap<ThreadId, LockWaits>,
    /// Who waited for whose end when their process was looked at last.
    joins: HashMap<ProcessKey, Vec<(u32, u32)>>,
}

/// What was seen of a thread.
#[derive(Debug, Default)]
struct LockWaits {
    stretches: VecDeque<Stretch>,
    /// Where it waits for monitors, and for other locks: each thread has a word of its own for either. And where for classes.
    words: [Option<u64>; 3],
}

/// A time in which a thread waited for one lock.
#[derive(Debug)]
struct Stretch {
    /// When the first look that saw it began and ended, and the last.
    first: (Ns, Ns),
    latest: (Ns, Ns),
    /// The number of the look that saw it last, and how many did.
    last: u64,
    times: u64,
    lock: RuntimeLock,
}

/// Bits of an address that tell the two words of one condition variable apart: the C library takes turns with them.
const OF_ONE_CONDITION: u32 = 3;

impl Stretch {
    /// Whether a wait was for this lock; learns on which word such waits are.
    fn is_of(&self, wait: &Wait, words: &mut [Option<u64>; 3]) -> bool {
        let word = wait.call.args[0] >> OF_ONE_CONDITION;
        let known = &mut words[kind(self.lock.kind)];
        let lasted = |look: (Ns, Ns)| wait.start <= look.0 && look.1 <= wait.end;
        if lasted(self.first) || lasted(self.latest) {
            *known = Some(word);
            return true;
        }
        self.times > 1 && *known == Some(word) && self.common(wait) > 0
    }

    /// How long there was between the two, if a wait on that word was of this kind of lock.
    fn near(&self, wait: &Wait, words: &[Option<u64>; 3]) -> Option<Ns> {
        let word = Some(wait.call.args[0] >> OF_ONE_CONDITION);
        let between = self.first.0.saturating_sub(wait.end);
        let between = between.max(wait.start.saturating_sub(self.latest.1));
        (words[kind(self.lock.kind)] == word && between <= STANDS_FOR).then_some(between)
    }

    fn common(&self, wait: &Wait) -> Ns {
        let (from, to) = (self.first.0, self.latest.1);
        to.min(wait.end).saturating_sub(from.max(wait.start))
    }
}

impl RuntimeLocks {
    /// For waits that are observed so.
    pub(super) fn from_source(source: Source) -> RuntimeLocks {
        RuntimeLocks {
            source,
            ..RuntimeLocks::default()
        }
    }

    /// A thread lives; `tid` is its id in its own pid namespace.
    pub(super) fn born(&mut self, process: ProcessKey, tid: u32, thread: ThreadId) {
        self.threads.insert((process, tid), thread);
        self.ids.insert(thread, (process, tid));
    }

    /// Which thread a runtime means by an id.
    pub(super) fn thread(&self, process: ProcessKey, tid: u32) -> Option<ThreadId> {
        self.threads.get(&(process, tid)).copied()
    }

    /// It is gone.
    pub(super) fn forget(&mut self, thread: ThreadId) {
        self.seen.remove(&thread);
        // Another may have the id by now.
        if let Some(id) = self.ids.remove(&thread)
            && self.threads.get(&id) == Some(&thread)
        {
            self.threads.remove(&id);
        }
    }

    /// Who waited for whose end at the last look: a thread, and the other's id in their pid namespace.
    pub(super) fn joins(&self) -> impl Iterator<Item = (ThreadId, u32)> {
        let one =
            |process: ProcessKey, (waiter, other): (u32, u32)| Some((self.thread(process, waiter)?, other));
        let all = self.joins.iter();
        all.flat_map(move |(process, joins)| joins.iter().filter_map(move |join| one(*process, *join)))
    }

    /// Its process is gone.
    pub(super) fn exit(&mut self, process: ProcessKey) {
        self.joins.remove(&process);
        self.looks.remove(&process);
    }

    /// What looks came to, in the order of time.
    pub(super) fn looked(&mut self, looks: Vec<Look>) {
        for look in looks {
            let number = self.looks.entry(look.process).or_default();
            *number += 1;
            let number = *number;
            self.joins.insert(look.process, look.joins);
            for sighting in look.waiting {
                let Some(thread) = self.threads.get(&(look.process, sighting.tid)).copied() else {
                    continue;
                };
                if self.seen.len() >= THREADS_MAX {
                    self.seen.clear();
                }
                let stretches = &mut self.seen.entry(thread).or_default().stretches;
                let at = (look.from, look.to);
                let lock = lock(sighting, at);
                match stretches.back_mut() {
                    Some(stretch) if stretch.last + 1 == number && stretch.lock.is_same(&lock) => {
                        (stretch.latest, stretch.last) = (at, number);
                        (stretch.lock.seen.1, stretch.times) = (look.to, stretch.times + 1);
                    }
                    _ => {
                        if stretches.len() >= STRETCHES_MAX {
                            stretches.pop_front();
                        }
                        stretches.push_back(Stretch {
                            first: at,
                            latest: at,
                            last: number,
                            times: 1,
                            lock,
                        });
                    }
                }
            }
        }
    }

    /// The lock that a wait was for, if it was seen: of several owners the one that was seen for the longest.
    pub(super) fn of(&mut self, wait: &Wait) -> Option<RuntimeLock> {
        // All that runtimes make wait for locks wait for futexes.
        if wait.call.name() != Some("futex") {
            return None;
        }
        let LockWaits { stretches, words } = self.seen.get_mut(&wait.thread)?;
        let of_it = stretches.iter().filter(|stretch| stretch.is_of(wait, words));
        if let Some(stretch) = of_it.max_by_key(|stretch| stretch.common(wait)) {
            return Some(stretch.lock.clone());
        }
        // Samples of waits and of locks are taken at different times.
        let near = stretches.iter().filter(|_| !self.source.records_each_wait());
        let near = near.filter_map(|stretch| Some((stretch.near(wait, words)?, stretch)));
        Some(near.min_by_key(|(between, _)| *between)?.1.lock.clone())
    }
}

/// The place of a kind of lock among a thread's words.
fn kind(kind: RuntimeLockKind) -> usize {
    match kind {
        RuntimeLockKind::Monitor => 0,
        RuntimeLockKind::Lock => 1,
        // The others are of interpreters, which are looked at in another way.
        RuntimeLockKind::Class
        | RuntimeLockKind::Mutex
        | RuntimeLockKind::Recursive
        | RuntimeLockKind::Queued
        | RuntimeLockKind::Global
        | RuntimeLockKind::Semaphore => 2,
    }
}

fn lock(sighting: Sighting, seen: (Ns, Ns)) -> RuntimeLock {
    RuntimeLock {
        kind: match sighting.kind {
            Kind::Monitor => RuntimeLockKind::Monitor,
            Kind::Lock => RuntimeLockKind::Lock,
            Kind::Class => RuntimeLockKind::Class,
        },
        class: sighting.class,
        identity: sighting.identity,
        owner: sighting.owner,
        source: match sighting.how {
            How::Structures => RuntimeLockSource::Structures,
            How::Dump => RuntimeLockSource::Dump,
        },
        seen,
    }
}

#[cfg(test)]
mod tests {
    use super::{RuntimeLocks, STANDS_FOR};
    use holdup_evidence::{Call, Ns, ThreadId, Wait};
    use holdup_jvm::{How, Kind, Look, Sighting};
    use holdup_model::attributed::Source;
    use holdup_symbols::ProcessKey;

    const PROCESS: ProcessKey = ProcessKey(1);
    const THREAD: ThreadId = ThreadId(7);

    fn look(from: Ns, to: Ns, owner: Option<u32>) -> Look {
        let waiting = owner.map(|owner| Sighting {
            how: How::Structures,
            kind: Kind::Monitor,
            tid: 100,
            class: "Till".to_owned(),
            identity: 1,
            owner: Some(owner),
        });
        Look {
            process: PROCESS,
            from,
            to,
            waiting: waiting.into_iter().collect(),
            joins: Vec::new(),
        }
    }

    const FUTEX: i32 = 202;
    const READ: i32 = 0;
    /// Where the thread waits for monitors, and where it sleeps.
    const MONITOR: u64 = 0x7f00_0000_0028;
    const SLEEP: u64 = 0x7f00_0000_1028;

    fn wait(number: i32, word: u64, start: Ns, end: Ns) -> Wait {
        let call = Call {
            number,
            args: [word, 0x189, 0, 0],
        };
        Wait::new(THREAD, 1, (start, end), call)
    }

    fn seen(looks: Vec<Look>) -> RuntimeLocks {
        let mut locks = RuntimeLocks::default();
        locks.born(PROCESS, 100, THREAD);
        locks.looked(looks);
        locks
    }

    fn owner(looks: Vec<Look>, start: Ns, end: Ns) -> Option<u32> {
        seen(looks).of(&wait(FUTEX, MONITOR, start, end))?.owner
    }

    #[test]
    fn a_look_tells_of_a_wait_that_lasted_as_long_as_the_look() {
        let one = || vec![look(100, 110, Some(8))];
        assert_eq!(owner(one(), 50, 200), Some(8));
        assert_eq!(owner(one(), 105, 200), None, "it began meanwhile");
        assert_eq!(owner(one(), 50, 105), None, "it ended meanwhile");
        assert_eq!(owner(one(), 120, 200), None, "it came later");
    }

    #[test]
    fn waits_on_the_same_word_between_looks_that_saw_the_same_are_for_the_same() {
        let mut two = seen(vec![look(100, 110, Some(8)), look(200, 210, Some(8))]);
        let mut owner = |number, word, start, end| two.of(&wait(number, word, start, end))?.owner;
        assert_eq!(owner(FUTEX, MONITOR, 130, 150), None, "it may sleep there");
        assert_eq!(owner(FUTEX, MONITOR, 90, 120), Some(8));
        assert_eq!(owner(FUTEX, MONITOR + 4, 130, 150), Some(8));
        assert_eq!(owner(FUTEX, SLEEP, 130, 150), None);
        assert_eq!(owner(READ, MONITOR, 130, 150), None);
        assert_eq!(owner(READ, MONITOR, 90, 220), None);
        assert_eq!(owner(FUTEX, MONITOR, 220, 250), None);
    }

    #[test]
    fn where_waits_are_looked_at_a_look_stands_for_those_around_it() {
        let mut locks = RuntimeLocks::from_source(Source::Sampled);
        locks.born(PROCESS, 100, THREAD);
        locks.looked(vec![look(100, 110, Some(8))]);
        let mut owner = |word, start, end| locks.of(&wait(FUTEX, word, start, end))?.owner;
        assert_eq!(owner(MONITOR, 150, 200), None, "it may sleep there");
        assert_eq!(owner(MONITOR, 90, 120), Some(8));
        assert_eq!(owner(MONITOR, 150, 200), Some(8));
        assert_eq!(owner(SLEEP, 150, 200), None);
        assert_eq!(owner(MONITOR, STANDS_FOR + 111, STANDS_FOR + 200), None);
    }

    #[test]
    fn of_several_owners_it_is_the_one_that_was_seen_for_the_longest() {
        let mut interrupted = seen(vec![
            look(100, 110, Some(8)),
            look(150, 160, None),
            look(200, 210, Some(8)),
        ]);
        assert_eq!(
            interrupted.of(&wait(FUTEX, MONITOR, 90, 115)).unwrap().owner,
            Some(8)
        );
        assert_eq!(interrupted.of(&wait(FUTEX, MONITOR, 120, 140)), None);
        let handed_on = vec![
            look(100, 110, Some(8)),
            look(200, 210, Some(9)),
            look(300, 310, Some(9)),
        ];
        let lock = seen(handed_on).of(&wait(FUTEX, MONITOR, 90, 400)).unwrap();
        assert_eq!((lock.owner, lock.seen), (Some(9), (200, 310)));
    }

    #[test]
    fn threads_that_ended_are_not_remembered_and_their_ids_are_others() {
        let mut locks = RuntimeLocks::default();
        for number in 0..1000 {
            locks.born(PROCESS, 100, ThreadId(number));
        }
        for number in 0..999 {
            locks.forget(ThreadId(number));
        }
        assert_eq!(locks.thread(PROCESS, 100), Some(ThreadId(999)));
        locks.forget(ThreadId(999));
        assert!(locks.threads.is_empty() && locks.ids.is_empty());
    }
}
