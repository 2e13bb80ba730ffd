//! The run as a whole: when it began, which process is CMD, and the path that CMD's last thread carries as it ends.
//!
//! In: the first instant, CMD's process, and threads as they end. Out: the path of the run.

use super::path::Path;
use super::task_table::ProcessId;
use super::thread::{Thread, unknown_path};
use super::windows::Axis;
use holdup_evidence::{Cause, Ns};

/// Whose time is the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// CMD's elapsed time, along the critical path.
    Run,
    /// The time of all threads that are the subject.
    Threads,
}

/// The end of CMD's process so far.
#[derive(Debug, Clone)]
pub(super) struct LastOfCmd {
    at: Ns,
    pub(super) path: Path,
    /// What it was waiting for when observation ended.
    pub(super) open: Option<Cause>,
}

/// The run.
#[derive(Debug, Clone)]
pub(super) struct RunPath {
    pub(super) scope: Scope,
    began: Option<Ns>,
    cmd: Option<ProcessId>,
    last: Option<LastOfCmd>,
}

impl RunPath {
    /// Of a run of which nothing is known yet.
    pub(super) fn new(scope: Scope) -> RunPath {
        RunPath {
            scope,
            began: None,
            cmd: None,
            last: None,
        }
    }

    /// When the run began: with the first record.
    pub(super) fn began(&mut self, first: Ns, axis: &mut Axis) -> Ns {
        *self.began.get_or_insert_with(|| {
            *axis = Axis::beginning(first);
            first
        })
    }

    /// Which process is CMD.
    pub(super) fn cmd_is(&mut self, process: ProcessId) {
        self.cmd = Some(process);
    }

    /// Whether a thread is one of CMD's.
    pub(super) fn is_of_cmd(&self, thread: &Thread) -> bool {
        self.cmd == Some(thread.identity.process)
    }

    /// The path of a thread of which nothing is known before `born`.
    pub(super) fn unknown(&self, run_began: Ns, born: Ns) -> Path {
        match self.scope {
            Scope::Run => unknown_path(run_began, born),
            Scope::Threads => Path::none(),
        }
    }

    /// A thread of CMD has ended at `at`, or was in a wait for `open` as observation ended.
    pub(super) fn step(&mut self, thread: &Thread, at: Ns, open: Option<Cause>) {
        if self.last.as_ref().is_none_or(|last| last.at <= at) {
            self.last = Some(LastOfCmd {
                at,
                path: thread.path.clone(),
                open,
            });
        }
    }

    /// The end of CMD, where the whole is its time.
    pub(super) fn take_last(&mut self) -> Option<LastOfCmd> {
        self.last.take().filter(|_| self.scope == Scope::Run)
    }
}
