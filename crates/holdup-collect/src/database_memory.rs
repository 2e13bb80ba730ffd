//! What database servers have in their memory of their sessions, as far as it can be read by symbols that they export.
//!
//! The problem: a stack says that a session waits for a lock, and not of which kind, nor for which table. PostgreSQL exports the text of the
//! statement that a process executes. MariaDB exports its table of stages, by the kind of lock; what describes a session has the address of the
//! text of its stage, and the functions that wait for a lock have the address of that description on their stack. Of a session that waits for its client, the call that its thread sleeps in has the connection.
//! In: observed servers and their threads, when observation ends. Out: kinds, tables and clients. All memory is hostile: pieces of
//! fixed size, texts that are checked, and a child that can be abandoned ([`super::behind`]) reads them.

use super::Observation;
use super::behind::Readers;
use super::moment::Moment;
use super::sessions::STOPPED;
use holdup_evidence::Call;
use holdup_evidence::facts::{SessionClient, ThreadSession};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_knowledge::user_code::mysql;
use holdup_knowledge::{postgres_titles, sql};
use holdup_proc::descriptors::Open;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::{Root, memory, names, tasks};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// Where PostgreSQL has the text of what a process executes.
const STATEMENT: &str = "debug_query_string";

/// The file of PostgreSQL's server.
const POSTGRES: &str = "postgres";

/// The most that is read of a statement, bytes.
const STATEMENT_BYTES: usize = 2048;

/// Sessions whose statements are read.
const MAX_STATEMENTS: usize = 32;

/// Threads of a server that are looked at, and servers.
const MAX_THREADS: usize = 1024;
const MAX_SERVERS: usize = 4;

/// How much of a sleeping thread's stack is looked through for the address of what describes its session, bytes: the function that waits is
/// among the innermost few, and has it.
const STACK_BYTES: usize = 512;

/// How much is read of what such an address leads to, bytes. MariaDB 10.11 has the stage within the first ten thousand.
const SESSION_BYTES: usize = 16 * 1024;

/// The most that the table of stages takes, bytes: it has some ten entries of 24 or 32 bytes.
const TABLE_BYTES: usize = 512;

/// The longest text of a stage, bytes.
const NAME_BYTES: usize = 64;

/// What is asked of a thread.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Question {
    /// The text to which a pointer at this address leads.
    Text(u32, u64),
    /// What a thread sleeps in; with the table of stages.
    Thread { pid: u32, tid: u32, stages: Option<u64> },
}

/// What was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Answer {
    Text(String),
    /// The stage that it waits in.
    Stage(String),
    /// The socket that it waits for, by inode.
    Socket(u64),
}

type Memory = Readers<Question, Option<Answer>>;

/// Reads what is known of sessions of these processes.
pub(super) fn look(observation: &mut Observation, pids: &BTreeSet<u32>) -> Vec<ThreadSession> {
    let mut memory: Memory = Readers::new(|| Box::new(answer));
    statements(observation, &mut memory);
    let root = Root::system();
    let is_server = |pid: &u32| names::comm(&root, *pid).is_some_and(|name| mysql::is_server(&name));
    let servers: Vec<u32> = pids.iter().copied().filter(is_server).take(MAX_SERVERS).collect();
    let mut found = Vec::new();
    for pid in servers {
        threads(observation, pid, &mut memory, &mut found);
    }
    found
}

/// What the sessions of PostgreSQL execute that wait for a lock.
fn statements(observation: &mut Observation, memory: &mut Memory) {
    for pid in observation.sessions.waiting().into_iter().take(MAX_STATEMENTS) {
        let Some(at) = observation
            .naming
            .address_of(pid, |file| file == POSTGRES, STATEMENT)
        else {
            continue;
        };
        if let Some(Answer::Text(text)) = memory.ask(pid, Question::Text(pid, at)).flatten() {
            observation.sessions.executes(pid, sql::outline(&text));
        }
    }
    debug_assert!(
        postgres_titles::is_server(POSTGRES),
        "the file has the name of the process"
    );
}

/// What the threads of a server wait for that has one for each session.
fn threads(observation: &mut Observation, pid: u32, memory: &mut Memory, found: &mut Vec<ThreadSession>) {
    let stages = observation
        .naming
        .address_of(pid, mysql::is_server, mysql::STAGES);
    let mut moment = Moment::now();
    let accepted = accepted(pid, &mut moment);
    let mut waiting: Vec<(u32, u64)> = Vec::new();
    for tid in tasks::threads(&moment.root, pid).into_iter().take(MAX_THREADS) {
        match memory.ask(pid, Question::Thread { pid, tid, stages }).flatten() {
            Some(Answer::Stage(stage)) => found.push(ThreadSession {
                pid,
                tid,
                stage: Some(stage),
                client: None,
            }),
            Some(Answer::Socket(inode)) if accepted.contains_key(&inode) => waiting.push((tid, inode)),
            Some(Answer::Socket(_) | Answer::Text(_)) | None => {}
        }
    }
    // Nobody's client is looked for where nobody waits.
    if found.iter().all(|one| one.pid != pid) {
        return;
    }
    let other = |inode: &u64| accepted.get(inode).and_then(|end| end.inode);
    let wanted: HashSet<Open> = waiting
        .iter()
        .filter_map(|(_, inode)| other(inode))
        .map(Open::Socket)
        .collect();
    let holders = match wanted.is_empty() {
        true => HashMap::new(),
        false => moment.holders(&wanted),
    };
    for (tid, inode) in waiting {
        let holder = other(&inode).and_then(|inode| holders.get(&Open::Socket(inode)));
        let client = holder.and_then(|pids| pids.iter().copied().find(|one| *one != pid));
        found.push(ThreadSession {
            pid,
            tid,
            stage: None,
            client: Some(SessionClient {
                address: accepted.get(&inode).and_then(|end| end.address),
                pid: client,
                process: client
                    .and_then(|pid| names::comm(&moment.root, pid))
                    .unwrap_or_default(),
                stopped: client.is_some_and(|pid| names::state(&moment.root, pid) == Some(STOPPED)),
            }),
        });
    }
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherEnd {
    pub(super) address: Option<SocketAddr>,
    pub(super) inode: Option<u64>,
}

/// The connections that a process has accepted at listeners of its own, by inode.
pub(super) fn accepted(pid: u32, moment: &mut Moment) -> HashMap<u64, OtherEnd> {
    let Some(ends) = moment.ends(pid) else {
        return HashMap::new();
    };
    let same_namespace = moment.namespace(pid) == moment.namespace(std::process::id());
    let sockets = moment.sockets(pid);
    let own = |inode: u64| inode != 0 && ends.sockets.contains(&inode);
    let listeners = sockets.tcp.iter().filter(|one| one.listens && own(one.inode));
    let ports: HashSet<u16> = listeners.map(|one| one.local.port()).collect();
    let tcp = sockets
        .tcp
        .iter()
        .filter(|one| !one.listens && own(one.inode) && ports.contains(&one.local.port()));
    let tcp = tcp.map(|one| {
        let end = OtherEnd {
            address: Some(one.peer),
            inode: sockets.other_end(one.local, one.peer),
        };
        (one.inode, end)
    });
    let unix = sockets
        .unix
        .iter()
        .filter(|(inode, one)| !one.listens && own(**inode));
    let unix = unix.map(|(inode, _)| {
        let end = OtherEnd {
            address: None,
            // The kernel lists the ends of Unix sockets for the namespace of whoever asks.
            inode: unix_peers::of(*inode).filter(|_| same_namespace),
        };
        (*inode, end)
    });
    tcp.chain(unix).collect()
}

/// What a child does with a question.
pub(super) fn answer(question: Question) -> Option<Answer> {
    match question {
        Question::Text(pid, at) => {
            let text = text(pid, word(pid, at)?, STATEMENT_BYTES)?;
            Some(Answer::Text(text))
        }
        Question::Thread { pid, tid, stages } => {
            let root = Root::system();
            let call = tasks::call(&root, tid)?;
            let [first, second, third, fourth, ..] = call.args;
            let call = Call {
                number: call.number,
                args: [first, second, third, fourth],
            };
            if system_calls::is(&call, Kind::WaitsForFutex) {
                let stack = memory::read(tid, tasks::stack_pointer(&root, tid)?, STACK_BYTES)?;
                return stage(tid, &stack, stages?).map(Answer::Stage);
            }
            let fd = if system_calls::is(&call, Kind::Reads | Kind::Receives | Kind::Writes | Kind::Sends) {
                call.args[0]
            } else if system_calls::is(&call, Kind::Polls) && call.args[1] == 1 {
                // `struct pollfd` begins with the descriptor.
                u64::from(u32::from_ne_bytes(
                    memory::read(tid, call.args[0], 4)?.try_into().ok()?,
                ))
            } else {
                return None;
            };
            let link = root.proc.join(pid.to_string()).join("fd").join(fd.to_string());
            let target = std::fs::read_link(link).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            inode.parse().ok().map(Answer::Socket)
        }
    }
}

/// The texts of the stages that a table leads to, by their addresses.
fn stages_of(tid: u32, table: u64) -> HashMap<u64, &'static str> {
    let bytes = memory::read(tid, table, TABLE_BYTES).unwrap_or_default();
    let known = |at: u64| Some((at, mysql::stage(&text(tid, at, NAME_BYTES)?)?));
    words(&bytes).filter(|at| *at != 0).filter_map(known).collect()
}

/// The stage of the session that a stack belongs to: what the addresses on it lead to has one, and the addresses of no other.
fn stage(tid: u32, stack: &[u8], table: u64) -> Option<String> {
    let stages = stages_of(tid, table);
    if stages.is_empty() {
        return None;
    }
    let of_table = table..table.saturating_add(TABLE_BYTES as u64);
    let leads: BTreeSet<u64> = words(stack)
        .filter(|at| at % 8 == 0 && !of_table.contains(at))
        .collect();
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for at in leads {
        let bytes = memory::read(tid, at, SESSION_BYTES).unwrap_or_default();
        let places = (at..).step_by(8).zip(words(&bytes));
        let outside = places.filter(|(place, _)| !of_table.contains(place));
        found.extend(outside.filter_map(|(_, word)| stages.get(&word)));
    }
    let mut found = found.into_iter();
    let first = found.next()?;
    found.next().is_none().then(|| first.to_owned())
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let eight = bytes.chunks_exact(8);
    eight.map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
}

fn word(tid: u32, at: u64) -> Option<u64> {
    let bytes = memory::read(tid, at, 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// The text at an address, up to its zero, or as much as may be read.
fn text(tid: u32, at: u64, most: usize) -> Option<String> {
    let bytes = memory::read(tid, at, most)?;
    let text = bytes.split(|byte| *byte == 0).next()?;
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Answer, Question, answer, stage};

    /// An entry of such a table.
    #[repr(C)]
    struct Entry {
        key: u64,
        name: *const std::ffi::c_char,
        flags: u64,
    }

    fn entry(name: &std::ffi::CStr) -> Entry {
        Entry {
            key: 0,
            name: name.as_ptr(),
            flags: 0,
        }
    }

    #[test]
    fn a_stage_is_known_by_what_the_stack_leads_to_and_two_are_none() {
        let table = [
            entry(c"Waiting for backup lock"),
            entry(c"Waiting for table metadata lock"),
            entry(c"what no server says"),
        ];
        let table_at = (&raw const table) as u64;
        let session = |name: *const std::ffi::c_char| vec![7_u64, name as u64, 9];
        let waits = session(table[1].name);
        let other = session(table[0].name);
        let (waits, other) = (waits.as_ptr() as u64, other.as_ptr() as u64);
        let stack = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
        let own = std::process::id();
        let found = |words: &[u64]| stage(own, &stack(words), table_at);
        assert_eq!(found(&[3, table_at]), None, "the table itself says nothing");
        assert_eq!(found(&[]), None);
        // Whatever else lies behind them in this process leads to no other text of the table, or to nothing that is reported.
        let listed = found(&[waits]);
        assert!(
            matches!(listed.as_deref(), None | Some("Waiting for table metadata lock")),
            "{listed:?}"
        );
        assert_eq!(found(&[waits, other]), None);
    }

    #[test]
    fn a_text_is_read_to_its_end() {
        let text = c"select 1".as_ptr();
        let read = answer(Question::Text(std::process::id(), (&raw const text) as u64));
        assert!(matches!(read, Some(Answer::Text(text)) if text == "select 1"));
    }
}
