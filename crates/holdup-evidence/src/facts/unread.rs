//! Clients that do not read what they are sent.

use super::SessionClient;
use serde::{Deserialize, Serialize};

/// Clients of a process on whose connections the same was unsent when observation began and when it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadAnswers {
    /// Whose clients they are.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// How many.
    pub clients: u32,
    /// What stands on the connection with most of it, bytes.
    pub most: u64,
    /// Those of them that are on this machine, as far as they are few.
    pub readers: Vec<SessionClient>,
}
