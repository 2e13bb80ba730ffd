//! Tasks of language runtimes, as the report has them.

use super::{Holder, StackFrame};
use crate::attributed::{Resource, TaskState};
use holdup_evidence::{Cause, Ns, TaskRuntime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A task of a language runtime. No thread stands for it while it waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Whose it is.
    pub runtime: TaskRuntime,
    /// Its id in the program, as the program's own dumps print it.
    pub id: String,
    /// Its name; null where tasks have none, as goroutines.
    pub name: Option<String>,
    /// What it did.
    pub state: TaskState,
    /// What for; `unknown` where that is not known.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// About how long it had waited, by the runtime's own note; 0 where there is none. Go's note is off by up to the time between two
    /// of its garbage collections.
    pub since_ns: Ns,
    /// Of that, under observation.
    pub ns: Ns,
    /// Where it stood in the application's code.
    pub asker: TaskAsker,
    /// What it waited for.
    pub resource: Resource,
    /// Who was in the way; null where that is not known.
    pub held_by: Option<Holder>,
    /// Ids of the tasks that are known to wait for this one.
    pub awaited_by: Vec<String>,
}

/// Where a task stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskAsker {
    /// Process id.
    pub pid: u32,
    /// Process name.
    pub process: String,
    /// The application's function.
    pub frame: Option<String>,
    /// Its module.
    pub module: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
    /// The whole stack, innermost first.
    pub stack: Vec<StackFrame>,
}
