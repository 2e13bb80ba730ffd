//! Figures of the whole machine while something is observed: its counters, once a second, every five of a recorder, or less often where reading them is dear.
//!
//! In: time that goes by. Out: [`HostFigures`]. Counters are small files of the kernel's that never block.

use super::own_cpu_time;
use holdup_evidence::HostCounters;
use holdup_model::host_figures::HostFigures;
use holdup_proc::{Root, host_counters};
use std::time::{Duration, Instant};

/// Between two readings of a recorder, which has a minute to tell and less to spend.
const RECORDERS_EVERY: Duration = Duration::from_secs(5);

/// Between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// And at least so many times the CPU time that one takes: a thousandth of a core.
const SPARSELY: u32 = 1_000;

/// What was read so far.
#[derive(Debug)]
pub struct Figures {
    root: Root,
    last: HostCounters,
    every: Duration,
    next: Instant,
    total: HostFigures,
}

impl Figures {
    /// Reads for the first time.
    pub fn begin(root: &Root) -> Figures {
        Figures::begin_every(root, EVERY)
    }

    /// The same as seldom as a recorder reads.
    pub(super) fn begin_sparse(root: &Root) -> Figures {
        Figures::begin_every(root, RECORDERS_EVERY)
    }

    fn begin_every(root: &Root, every: Duration) -> Figures {
        Figures {
            root: root.clone(),
            last: host_counters::read(root),
            every,
            next: Instant::now() + every,
            total: HostFigures::default(),
        }
    }

    /// Reads if it is time to.
    pub fn turn(&mut self) {
        if Instant::now() >= self.next {
            self.read();
        }
    }

    fn read(&mut self) {
        let before = own_cpu_time();
        let now = host_counters::read(&self.root);
        self.total.add(&self.last, &now);
        self.last = now;
        let took = Duration::from_nanos(own_cpu_time().saturating_sub(before));
        self.next = Instant::now() + self.every.max(took * SPARSELY);
    }

    /// What was read so far.
    pub(super) fn so_far(&self) -> HostFigures {
        self.total.clone()
    }

    /// Reads for the last time, at the end of what is observed: what holdup itself makes of it afterwards is no part of it. Instants are of
    /// `CLOCK_MONOTONIC`.
    pub fn finish(mut self) -> HostFigures {
        self.read();
        self.total
    }
}
