//! What a person calls processes: interpreters with what they interpret.

use holdup_evidence::SystemFacts;
use holdup_model::attributed::ThreadName;
use std::collections::HashMap;

/// Names of programs by process id.
#[derive(Debug, Default)]
pub(crate) struct Names<'a>(HashMap<u32, &'a str>);

impl<'a> Names<'a> {
    /// Those that observation found.
    pub(crate) fn of(facts: &'a SystemFacts) -> Names<'a> {
        let programs = facts.programs.iter();
        Names(programs.map(|one| (one.pid, one.name.as_str())).collect())
    }

    /// The program of a thread. An id may have been another process's before.
    pub(crate) fn program(&self, name: &'a ThreadName) -> &'a str {
        self.program_of(name.pid, &name.process)
    }

    /// The program of a process by its id and its own name.
    pub(crate) fn program_of(&self, pid: u32, process: &'a str) -> &'a str {
        let known = self.0.get(&pid).copied();
        known
            .filter(|known| known.starts_with(process))
            .unwrap_or(process)
    }
}
