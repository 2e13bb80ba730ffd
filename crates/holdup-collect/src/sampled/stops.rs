//! Which waits of a sampled Java virtual machine's threads were for the machine itself.
//!
//! The problem: looks show no wakings, of which pauses are put together when tracing. The choice: what a thread waits on. All that are
//! stopped wait on one word of the machine, and who asked the VM thread for an operation waits on a lock that is for nothing else;
//! libjvm's symbols tell where both are. What the machine is at is its own account: the last operation with its times, and how often
//! each was done since it was read before.
//!
//! In: readings of that account, and a wait. Out: what the thread was stopped for. Nothing here reads anything.

use crate::jvms::operations::{collects, since};
use holdup_evidence::{Collector, JvmStop, Ns, PauseWork, Wait};
use holdup_jvm::Operations;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of what stopped threads wait on: its second word in JDK 17, and no block of the C library's heap is smaller.
const BARRIER: u64 = 16;

/// Bytes of a machine's lock, its condition variable included.
const LOCK: u64 = 128;

/// What begins the names of operations of collectors.
const COLLECTORS: [(&str, Collector); 8] = [
    ("G1", Collector::G1),
    ("Parallel", Collector::Parallel),
    ("GenCollect", Collector::Serial),
    ("Serial", Collector::Serial),
    ("Shenandoah", Collector::Shenandoah),
    ("CMS", Collector::Cms),
    ("Z", Collector::Z),
    ("X", Collector::Z),
];

/// A machine's account.
#[derive(Debug, Default)]
pub(super) struct Account {
    now: Operations,
    /// What was done since it was read before.
    done: Vec<(Arc<str>, u64)>,
    /// Of each operation that was the last at a reading: how long its threads took to stop, and how long they then stood.
    took: HashMap<Arc<str>, (Ns, Ns)>,
    /// What is due to reaching a stop of the waits so far, and was not known as such, nanoseconds; less than 0 where too much was.
    due: i128,
}

impl Account {
    /// It was read, at this instant.
    pub(super) fn read(&mut self, now: Operations, at: Ns) {
        self.done = since(&self.now, &now);
        if let Some((name, began, ended)) = &now.last
            && self
                .now
                .last
                .as_ref()
                .is_none_or(|(_, before, _)| before != began)
        {
            // One that goes on ended before it began.
            let ended = if ended < began { at } else { *ended };
            let reached = now.reached.unwrap_or(ended).clamp(*began, ended.max(*began));
            let took = self.took.entry(Arc::clone(name)).or_default();
            took.0 += reached - began;
            took.1 += ended.saturating_sub(reached);
        }
        self.now = now;
    }

    /// Whether this wait was for the machine.
    pub(super) fn is_of(&self, wait: &Wait) -> bool {
        let [word, ..] = wait.call.args;
        let at = |place: Option<u64>, length: u64| {
            place.is_some_and(|place| word.checked_sub(place).is_some_and(|into| into < length))
        };
        wait.call.name() == Some("futex") && (at(self.now.barrier, BARRIER) || at(self.now.asked, LOCK))
    }

    /// What the machine stopped a thread for, or did for it, if this wait was for that.
    pub(super) fn stop(&mut self, wait: &Wait) -> Option<JvmStop> {
        if !self.is_of(wait) {
            return None;
        }
        let Some(name) = self.operation(wait) else {
            return Some(JvmStop {
                reaching: false,
                work: PauseWork::Unknown,
            });
        };
        let work = work(name);
        let (reaching, standing) = self.took.get(name).copied().unwrap_or_default();
        // A wait is reported as one of the two; so many are reported as reaching that its part of all is right.
        let length = i128::from(wait.end.saturating_sub(wait.start));
        self.due += length * i128::from(reaching) / (i128::from(reaching) + i128::from(standing)).max(1);
        let reaching = self.due * 2 > length;
        if reaching {
            self.due -= length;
        }
        Some(JvmStop { reaching, work })
    }

    /// The last operation, if it was then; else the only kind that there was since the reading before.
    fn operation(&self, wait: &Wait) -> Option<&Arc<str>> {
        let last = self.now.last.as_ref().filter(|(_, began, ended)| {
            let over = ended >= began && *ended <= wait.start;
            *began < wait.end && !over
        });
        match (last, self.done.as_slice()) {
            (Some((name, ..)), _) | (None, [(name, _)]) => Some(name),
            _ => None,
        }
    }
}

fn work(operation: &str) -> PauseWork {
    if !collects(operation) {
        return PauseWork::Operation(operation.to_owned());
    }
    let known = COLLECTORS
        .iter()
        .find(|(begins, _)| operation.starts_with(begins));
    PauseWork::Collection {
        collector: known.map(|(_, collector)| *collector),
        why: None,
    }
}

#[cfg(test)]
mod tests {
    use super::Account;
    use holdup_evidence::{Call, Collector, JvmStop, Ns, PauseWork, ThreadId, Wait};
    use holdup_jvm::Operations;

    const BARRIER: u64 = 0x7000;
    const ASKED: u64 = 0x8000;

    fn wait(word: u64, start: Ns, end: Ns) -> Wait {
        let call = Call {
            args: [word, 0x80, 0, 0],
            ..Call::named("futex")
        };
        Wait::new(ThreadId(1), 1, (start, end), call)
    }

    fn account(counted: &[(&str, u64)], last: (&str, Ns, Ns), reached: Option<Ns>) -> Operations {
        Operations {
            counted: counted
                .iter()
                .map(|(name, count)| ((*name).into(), *count))
                .collect(),
            last: Some((last.0.into(), last.1, last.2)),
            reached,
            barrier: Some(BARRIER),
            asked: Some(ASKED),
        }
    }

    fn dump(reaching: bool) -> Option<JvmStop> {
        let work = PauseWork::Operation("ThreadDump".to_owned());
        Some(JvmStop { reaching, work })
    }

    fn read(accounts: &[Operations]) -> Account {
        let mut account = Account::default();
        accounts.iter().for_each(|now| account.read(now.clone(), 100));
        account
    }

    #[test]
    fn who_waits_on_another_word_is_not_stopped() {
        let now = account(&[], ("ThreadDump", 10, 90), Some(20));
        let of = |word| {
            read(std::slice::from_ref(&now))
                .stop(&wait(word, 5, 100))
                .is_some()
        };
        assert_eq!(
            [BARRIER + 4, BARRIER + 16, ASKED + 100, ASKED + 128].map(of),
            [true, false, true, false]
        );
        let untold = Operations {
            barrier: None,
            asked: None,
            ..now
        };
        assert_eq!(read(&[untold]).stop(&wait(0, 5, 100)), None);
    }

    #[test]
    fn what_took_most_of_it_is_what_it_was_for() {
        let wait = wait(ASKED + 4, 5, 100);
        let late = account(&[], ("ThreadDump", 10, 90), Some(80));
        assert_eq!(read(&[late]).stop(&wait), dump(true));
        let soon = account(&[], ("ThreadDump", 10, 90), Some(20));
        assert_eq!(read(&[soon]).stop(&wait), dump(false));
        let goes_on = account(&[], ("ThreadDump", 10, 0), None);
        assert_eq!(
            read(&[goes_on]).stop(&wait),
            dump(true),
            "some have not stopped yet"
        );
    }

    #[test]
    fn of_many_waits_each_part_is_told_as_often_as_it_took() {
        let mut machine = read(&[account(&[], ("ThreadDump", 10, 90), Some(30))]);
        let waits: Vec<_> = (0..100)
            .filter_map(|_| machine.stop(&wait(BARRIER, 0, 100)))
            .collect();
        let reaching = waits.iter().filter(|stop| stop.reaching).count();
        assert_eq!((waits.len(), reaching), (100, 25));
    }

    #[test]
    fn an_earlier_operation_is_told_if_it_was_the_only_kind() {
        const COLLECTS: &str = "ParallelGCFailedAllocation";
        let before = account(&[(COLLECTS, 3), ("ThreadDump", 1)], ("ThreadDump", 1, 2), None);
        let of = |counted: &[(&str, u64)]| {
            let now = account(counted, ("ThreadDump", 200, 300), None);
            Some(read(&[before.clone(), now]).stop(&wait(BARRIER, 5, 100))?.work)
        };
        let collection = PauseWork::Collection {
            collector: Some(Collector::Parallel),
            why: None,
        };
        assert_eq!(of(&[(COLLECTS, 9), ("ThreadDump", 1)]), Some(collection));
        assert_eq!(of(&[(COLLECTS, 9), ("ThreadDump", 2)]), Some(PauseWork::Unknown));
    }
}
