//! Event loops of language runtimes, whose thread was found in something else than a wait for events.

use serde::{Deserialize, Serialize};

/// A loop that was kept from its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLoop {
    /// Process id.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// The most tasks that it had meanwhile, with the one that kept it.
    pub tasks: u64,
}
