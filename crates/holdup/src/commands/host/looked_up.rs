//! What is looked up of processes: sessions of databases, the other ends of what stopped ones have open, and names.
//!
//! In: the tree. Out: questions, ends and names, for [`super::behind`].

use super::behind::{MAX_WAITS, Wait};
use super::close_looks::{self, Close, Question};
use holdup_evidence::Cause;
use holdup_evidence::observed::Awaited;
use holdup_knowledge::functions::{self, Meaning};
use holdup_knowledge::{postgres_titles, programs};
use holdup_proc::descriptors::{self, Open};
use holdup_proc::root::text_if_there;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::{Root, names, tasks};
use std::collections::{BTreeSet, HashMap};

/// Stopped processes, and ends of theirs, whose other ends are looked for.
pub(super) const MAX_STOPPED: usize = 16;
const MAX_ENDS: usize = 256;

/// Threads of a process that may wait at such an end.
const MAX_WAITING_THREADS: usize = 32;

/// Processes whose titles may tell of a session.
pub(super) fn sessions(root: &Root) -> Vec<Question> {
    let all = tasks::processes(root).into_iter();
    let servers =
        all.filter(|pid| names::comm(root, *pid).is_some_and(|name| postgres_titles::is_server(&name)));
    servers
        .take(MAX_WAITS)
        .map(|pid| Question::Session { pid })
        .collect()
}

/// The other ends of what stopped processes have open, each with the stopped process.
pub(super) fn ends_of(root: &Root, stopped: &BTreeSet<u32>) -> Vec<(Open, u32)> {
    let mut all = Vec::new();
    for pid in stopped.iter().take(MAX_STOPPED) {
        let Some(ends) = descriptors::ends(root, *pid) else {
            continue;
        };
        let reads = ends.read.iter().map(|inode| Open::PipeToWrite(*inode));
        let writes = ends.written.iter().map(|inode| Open::PipeToRead(*inode));
        let peers = ends.sockets.iter().take(MAX_ENDS).flat_map(|inode| {
            let queued = unix_peers::queued(*inode);
            queued.into_iter().chain(unix_peers::of(*inode)).map(Open::Socket)
        });
        all.extend(
            reads
                .chain(writes)
                .chain(peers)
                .take(MAX_ENDS)
                .map(|end| (end, *pid)),
        );
    }
    all
}

/// What a person calls these processes: interpreters with their scripts.
pub(super) fn named(root: &Root, pids: Vec<u32>) -> HashMap<u32, String> {
    let names: HashMap<u32, String> = pids
        .iter()
        .filter_map(|pid| Some((*pid, names::comm(root, *pid)?)))
        .collect();
    let asked = names.iter().filter(|(_, name)| programs::is_interpreter(name));
    let asked: Vec<Question> = asked.map(|(pid, _)| Question::Program { pid: *pid }).collect();
    let answers = match asked.is_empty() {
        true => close_looks::Answers::default(),
        false => Close::start(root, asked).take(),
    };
    names
        .into_iter()
        .map(|(pid, name)| (pid, answers.program(pid, &name).unwrap_or(name)))
        .collect()
}

/// How many threads of a process are looked at for the call that they are in.
pub(super) fn waiting_threads(root: &Root, pid: u32) -> Vec<u32> {
    tasks::threads(root, pid)
        .into_iter()
        .take(MAX_WAITING_THREADS)
        .collect()
}

/// The child that a process sleeps for, if it has one.
pub(super) fn awaited_child(root: &Root, pid: u32) -> Option<u32> {
    let function = text_if_there(&root.proc.join(pid.to_string()).join("wchan"))?;
    let meaning = functions::meaning(functions::plain(function.trim()));
    let waits = matches!(
        meaning,
        Some(Meaning::Is(_, Cause::ProcessChild) | Meaning::Innermost(_, Cause::ProcessChild))
    );
    match tasks::children(root, pid).as_slice() {
        [child] if waits => Some(*child),
        _ => None,
    }
}

/// Those with their parents, of processes that wait for a file's lock: a script queues by a command.
pub(super) fn with_parents(root: &Root, waits: &[Wait], pids: BTreeSet<u32>) -> Vec<u32> {
    let mut all = pids;
    all.extend(lockers(waits).filter_map(|pid| names::parent(root, pid)));
    all.into_iter().collect()
}

/// The names of these, where those that wait for a file's lock are called by the script that has begun them: `sh job.sh (flock)`.
pub(super) fn with_jobs(root: &Root, waits: &[Wait], known: HashMap<u32, String>) -> HashMap<u32, String> {
    let mut named = known.clone();
    for pid in lockers(waits) {
        let Some(parent) = names::parent(root, pid) else {
            continue;
        };
        let Some((own, script)) = known.get(&pid).zip(known.get(&parent)) else {
            continue;
        };
        // An interpreter's own name says nothing; nor does one script that has begun another.
        let is_script = names::comm(root, parent).is_some_and(|name| name != *script);
        let is_command = names::comm(root, pid).is_some_and(|name| !programs::is_interpreter(&name));
        if is_script && is_command && awaited_child(root, parent) == Some(pid) {
            named.insert(pid, format!("{script} ({own})"));
        }
    }
    named
}

fn lockers(waits: &[Wait]) -> impl Iterator<Item = u32> + '_ {
    let of_locks = waits.iter().filter(|wait| wait.1 == Awaited::FileLock);
    of_locks.map(|wait| wait.0)
}
