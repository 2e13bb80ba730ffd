//! The global lock of an interpreter: who had it when somebody looked.

use crate::UserStackId;
use serde::{Deserialize, Serialize};

/// What looks at the global lock of one process came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterpreterLock {
    /// Process id.
    pub pid: u32,
    /// How many looks there were, those that found it free among them.
    pub looks: u64,
    /// Who had it, and where it stood.
    pub holders: Vec<InterpreterLockHolder>,
}

/// A thread that had the lock, in one place of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterpreterLockHolder {
    /// Thread id.
    pub tid: u32,
    /// In how many looks.
    pub looks: u64,
    /// The frames of the language.
    pub stack: UserStackId,
}
