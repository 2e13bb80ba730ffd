//! What interpreters that are watched interpret: `python3` says nothing, `python3 app.py` is what a person knows.
//!
//! In: processes that are watched. Out: names of those that are interpreters with a script. Arguments are read by a child that can be
//! abandoned ([`super::behind`]); no more of them is kept than the script's name.

use super::behind::Readers;
use holdup_evidence::facts::{Program, StoppedChild};
use holdup_knowledge::programs;
use holdup_proc::{Root, descriptors, names, titles};

/// Processes that are looked through, and those whose arguments are read.
const WATCHED_MAX: usize = 8192;
const ASKED_MAX: usize = 512;

/// The letter of a process that a signal has stopped.
const STOPPED: char = 'T';

/// The names of these.
pub(super) fn look<'a>(watched: impl Iterator<Item = &'a u32>) -> Vec<Program> {
    let root = Root::system();
    let known = watched
        .take(WATCHED_MAX)
        .filter_map(|pid| Some((*pid, names::comm(&root, *pid)?)));
    let interpreters: Vec<(u32, String)> = known
        .filter(|(_, comm)| programs::is_interpreter(comm))
        .take(ASKED_MAX)
        .collect();
    if interpreters.is_empty() {
        return Vec::new();
    }
    let mut readers: Readers<u32, Option<Vec<String>>> =
        Readers::new(|| Box::new(|pid| titles::arguments(&Root::system(), pid)));
    let named = interpreters.into_iter().filter_map(|(pid, comm)| {
        let arguments = readers.ask(pid, pid).flatten()?;
        let name = programs::named(&comm, arguments.iter().map(String::as_str))?;
        Some(Program { pid, name })
    });
    named.collect()
}

/// Those of these that are stopped, and that their parents use by pipes or sockets.
pub(super) fn stopped<'a>(watched: impl Iterator<Item = &'a u32>) -> Vec<StoppedChild> {
    let root = Root::system();
    let stopped = watched
        .take(WATCHED_MAX)
        .filter(|pid| names::state(&root, **pid) == Some(STOPPED));
    let children = stopped.take(ASKED_MAX).filter_map(|pid| {
        let parent = names::parent(&root, *pid).filter(|parent| *parent > 1)?;
        descriptors::is_used_by_program(&root, *pid).then_some(StoppedChild { pid: *pid, parent })
    });
    children.collect()
}
