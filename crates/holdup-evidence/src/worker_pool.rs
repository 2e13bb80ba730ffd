//! Pools of threads that a runtime's library keeps, and what stands in their queues.

use serde::{Deserialize, Serialize};

/// A pool, as it was when observation ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerPool {
    /// Process id.
    pub pid: u32,
    /// Ids of its workers.
    pub workers: Vec<u32>,
    /// How many workers it may have; 0 where that is not known.
    pub most: u32,
    /// Tasks in its queue that were due and that no worker had begun, at least.
    pub queued: u64,
    /// The workers that waited for the result of one of these tasks.
    pub await_queued: Vec<u32>,
}
