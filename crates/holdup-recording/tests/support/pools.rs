//! Made-up pools of threads.

use super::Dice;
use holdup_evidence::WorkerPool;

impl Dice {
    pub(super) fn pool(&mut self) -> WorkerPool {
        WorkerPool {
            pid: self.below(9) as u32,
            workers: self.list(2, |dice| dice.below(9) as u32),
            most: self.below(9) as u32,
            queued: self.number(),
            await_queued: self.list(2, |dice| dice.below(9) as u32),
        }
    }
}
