//! How a thread came to queue for a CPU: who outranked it, and where it might have run.
//!
//! In: the records of who ran instead, each of which stands for some of the thread's queueing. Out: sums, bounded
//! by the number of CPUs distinguished.

use holdup_evidence::{Allowed, Ns, RanInstead, Scheduling};
use holdup_model::attributed::Queue;

/// CPUs distinguished: as many as a record's set has bits.
const CPUS: u32 = 64;

/// Sums of one ledger.
#[derive(Debug, Clone, Default)]
pub(super) struct Queueing {
    /// All queueing that records stand for.
    known: Ns,
    /// Of that: behind real-time tasks.
    real_time: Ns,
    /// Of that: behind tasks of the same group of a better nice value, or, of an idle-class thread, behind any other.
    outranked: Ns,
    /// How the thread was scheduled when it last queued.
    class: Option<Scheduling>,
    /// Where it might run then.
    allowed: Allowed,
    /// CPUs that it queued on, by number below [`CPUS`], a bit each.
    queued_on: u64,
}

impl Queueing {
    /// Takes a record.
    pub(super) fn add(&mut self, ran: &RanInstead) {
        self.known = self.known.saturating_add(ran.ns);
        self.class = Some(ran.class);
        self.allowed = ran.allowed;
        if ran.cpu < CPUS {
            self.queued_on |= 1 << ran.cpu;
        }
        if ran.by.is_none() {
            return;
        }
        let outranked = match (ran.by_class, ran.class) {
            (Scheduling::RealTime, Scheduling::RealTime) => false,
            (Scheduling::RealTime, _) => {
                self.real_time = self.real_time.saturating_add(ran.ns);
                false
            }
            _ if !ran.same_group => false,
            (Scheduling::Fair { .. }, Scheduling::Idle) => true,
            (Scheduling::Fair { nice: by }, Scheduling::Fair { nice: own }) => by < own,
            _ => false,
        };
        if outranked {
            self.outranked = self.outranked.saturating_add(ran.ns);
        }
    }

    /// Takes over another ledger's sums.
    pub(super) fn absorb(&mut self, other: &Queueing) {
        if other.known > self.known {
            self.class = other.class;
            self.allowed = other.allowed;
        }
        self.known = self.known.saturating_add(other.known);
        self.real_time = self.real_time.saturating_add(other.real_time);
        self.outranked = self.outranked.saturating_add(other.outranked);
        self.queued_on |= other.queued_on;
    }

    /// As rules read it; nothing where no record came.
    pub(super) fn queue(&self) -> Option<Queue> {
        let class = self.class?;
        let cpus = |set: u64| (0..CPUS).filter(|cpu| set >> cpu & 1 == 1).collect();
        Some(Queue {
            known: self.known,
            real_time: self.real_time,
            outranked: self.outranked,
            nice: match class {
                Scheduling::Fair { nice } => Some(nice),
                _ => None,
            },
            idle_class: class == Scheduling::Idle,
            allowed_count: self.allowed.count,
            allowed: cpus(self.allowed.first),
            queued_on: cpus(self.queued_on),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Queueing;
    use holdup_evidence::{Allowed, RanInstead, Scheduling, TaskName, ThreadId};

    fn behind(by: Scheduling, own: Scheduling) -> (u64, u64) {
        let mut queueing = Queueing::default();
        queueing.add(&RanInstead {
            at: 10,
            thread: ThreadId(0),
            ns: 7,
            by: Some(TaskName {
                pid: 1,
                tid: 1,
                name: "other".to_owned(),
                kernel: false,
            }),
            cpu: 3,
            by_class: by,
            class: own,
            same_group: true,
            allowed: Allowed {
                count: 2,
                first: 0b1010,
            },
        });
        let queue = queueing.queue().unwrap();
        assert_eq!(
            (queue.known, queue.allowed, queue.queued_on),
            (7, vec![1, 3], vec![3])
        );
        (queue.real_time, queue.outranked)
    }

    #[test]
    fn only_a_better_rank_outranks() {
        let fair = |nice| Scheduling::Fair { nice };
        assert_eq!(behind(Scheduling::RealTime, fair(0)), (7, 0));
        assert_eq!(behind(Scheduling::RealTime, Scheduling::RealTime), (0, 0));
        assert_eq!(behind(fair(0), fair(0)), (0, 0));
        assert_eq!(behind(fair(0), fair(10)), (0, 7));
        assert_eq!(behind(fair(10), fair(0)), (0, 0));
        assert_eq!(behind(fair(19), Scheduling::Idle), (0, 7));
        assert_eq!(behind(Scheduling::Idle, Scheduling::Idle), (0, 0));
    }
}
