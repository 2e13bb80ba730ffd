//! What is known of a server that does nothing and owes answers: whether it is silent on its other connections as well, what its own logs say, and
//! whether the file system that it writes to is short of room.
//!
//! The problem: a server that withholds its service by an alarm or a limit of its own sleeps like one that has nothing to do. In: waits for
//! answers, and connections. Out: the same waits, those for servers at the end of a way with more in [`Owed`].

use super::close_looks::{Close, Question};
use super::looked_up::named;
use super::queued;
use holdup_collect::own_logs;
use holdup_evidence::Ns;
use holdup_evidence::facts::{LogReason, OwnLog};
use holdup_evidence::observed::{Awaited, FilledVolume, Owed, SeenWait, Short, Silence};
use holdup_proc::Root;
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::listen_queues::ListenQueue;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The shortest wait whose server is looked at.
const MIN_NS: Ns = 3_000_000_000;

/// What a server may use of one CPU, percent, if it does nothing.
const MAX_CPU_PERCENT: u32 = 20;

/// Servers that are looked at, and programs that are kept of each.
const SERVERS_MAX: usize = 8;
const PROGRAMS_MAX: usize = 6;

/// Whoever falls silent stops on all connections within this, milliseconds: clients find out when they ask next.
const ABOUT_MS: u64 = 5_000;

/// And within this part of the time for which the server owes an answer, where that is less.
const ABOUT_PART: u64 = 4;

/// Nanoseconds in a millisecond.
const MS: Ns = 1_000_000;

/// Adds what is known; `lived` are processes with how long they have lived.
pub(super) fn tell(
    root: &Root,
    own: u32,
    connections: &[Connection],
    queues: &[ListenQueue],
    lived: &HashMap<u32, Ns>,
    waits: &mut [SeenWait],
) {
    let servers = at_the_end(waits);
    if servers.is_empty() {
        return;
    }
    let mut silences = silences(root, own, connections, queues, &servers);
    let logs = own_logs::said(&servers.keys().copied().collect());
    let says = |pid: u32| -> Vec<OwnLog> {
        let theirs = logs.iter().filter(|log| log.writers.contains(&pid));
        theirs.cloned().collect()
    };
    let short = |pid: &u32| {
        let about_room =
            |reason: LogReason| matches!(reason, LogReason::NoSpace | LogReason::Refuses | LogReason::Limit);
        says(*pid)
            .iter()
            .flat_map(|log| &log.said)
            .any(|line| about_room(line.reason))
    };
    let asked: Vec<Question> = (servers.keys().copied().filter(short))
        .map(|pid| Question::Filled { pid })
        .collect();
    let answers = match asked.is_empty() {
        true => super::close_looks::Answers::default(),
        false => Close::start(root, asked).take(),
    };
    for (pid, silence) in &mut silences {
        silence.lived = lived.get(pid).copied().unwrap_or(0);
    }
    for wait in waits {
        let Some(pid) = wait.holder.as_ref().map(|holder| holder.pid) else {
            continue;
        };
        if let (Short::Answer(owed), true) = (&mut wait.short, servers.contains_key(&pid)) {
            owed.silence = silences.get(&pid).cloned();
            owed.says = says(pid);
            owed.filled = answers.filled(pid).map(|volume| with_name(root, volume));
        }
    }
}

/// The same with what a person calls the one who has filled it.
fn with_name(root: &Root, volume: &FilledVolume) -> FilledVolume {
    let mut volume = volume.clone();
    for by in volume.by.iter_mut() {
        let mut names = named(root, vec![by.pid]);
        by.name = names.remove(&by.pid).unwrap_or_default();
    }
    volume
}

/// Whether a server does next to nothing.
fn is_idle(owed: &Owed) -> bool {
    !owed.blocked && owed.cpu_percent.is_some_and(|percent| percent < MAX_CPU_PERCENT)
}

/// Servers that owe answers for long, do nothing, and wait for nobody, with how long they owe them.
pub(super) fn at_the_end(waits: &[SeenWait]) -> BTreeMap<u32, Ns> {
    let waiters: HashSet<u32> = waits.iter().map(|wait| wait.waiter.pid).collect();
    let mut servers: BTreeMap<u32, Ns> = BTreeMap::new();
    for wait in waits
        .iter()
        .filter(|wait| wait.on == Awaited::Answer && wait.ns >= MIN_NS)
    {
        let (Short::Answer(owed), Some(holder)) = (&wait.short, &wait.holder) else {
            continue;
        };
        if is_idle(owed) && !waiters.contains(&holder.pid) {
            let known = servers.entry(holder.pid).or_default();
            *known = (*known).max(wait.ns);
        }
    }
    let mut longest: Vec<(u32, Ns)> = servers.into_iter().collect();
    longest.sort_by_key(|(pid, ns)| (std::cmp::Reverse(*ns), *pid));
    longest.into_iter().take(SERVERS_MAX).collect()
}

/// On which of their connections these have been silent for as long as they owe an answer.
fn silences(
    root: &Root,
    own: u32,
    connections: &[Connection],
    queues: &[ListenQueue],
    servers: &BTreeMap<u32, Ns>,
) -> BTreeMap<u32, Silence> {
    let by_ends: HashMap<_, &Connection> = connections
        .iter()
        .map(|one| ((one.local, one.peer), one))
        .collect();
    let mut found: BTreeMap<u32, Silence> = BTreeMap::new();
    let mut clients: Vec<(u32, u64)> = Vec::new();
    for (pid, ns) in servers {
        let sockets = descriptors::ends(root, *pid)
            .map(|ends| ends.sockets)
            .unwrap_or_default();
        let taken = connections
            .iter()
            .filter(|one| one.inode != 0 && sockets.contains(&one.inode) && !queued::is_client(queues, one));
        let silence = found.entry(*pid).or_default();
        for one in taken {
            let Some(other) = by_ends
                .get(&(one.peer, one.local))
                .filter(|other| other.inode != 0)
            else {
                continue;
            };
            // What was silent long before tells nothing: a pool keeps connections that nobody needs.
            if last_word(one).is_none_or(|last| last > ns / MS + ABOUT_MS) {
                continue;
            }
            silence.of += 1;
            if is_quiet(one, *ns) {
                silence.connections += 1;
                silence.segments += u64::from(one.sent_segments) + u64::from(one.received_segments);
                clients.push((*pid, other.inode));
            }
        }
    }
    let wanted: HashSet<Open> = clients.iter().map(|(_, inode)| Open::Socket(*inode)).collect();
    let holders = match wanted.is_empty() {
        true => HashMap::new(),
        false => descriptors::holders(root, &wanted, own),
    };
    let of = |inode: u64| holders.get(&Open::Socket(inode))?.first().copied();
    let pids: BTreeSet<u32> = clients.iter().filter_map(|(_, inode)| of(*inode)).collect();
    let names = named(root, pids.into_iter().collect());
    let mut programs: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    for (server, inode) in &clients {
        if let Some(name) = of(*inode).and_then(|pid| names.get(&pid)) {
            *programs.entry((*server, name.as_str())).or_default() += 1;
        }
    }
    for ((server, name), count) in programs {
        if let Some(silence) = found.get_mut(&server) {
            silence.programs.push((name.to_owned(), count));
        }
    }
    for silence in found.values_mut() {
        silence
            .programs
            .sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        silence.programs.truncate(PROGRAMS_MAX);
    }
    found
}

/// Milliseconds since something came or went on a connection.
pub(super) fn last_word(one: &Connection) -> Option<u64> {
    let last = one.sent_ms.into_iter().chain(one.received_ms).min();
    last.map(u64::from)
}

/// Whether nothing has come or gone on a connection for about as long as this.
fn is_quiet(one: &Connection, ns: Ns) -> bool {
    let owed = ns / MS;
    // Of a short time a part only: what was said a moment ago is no silence.
    last_word(one).is_some_and(|last| last >= owed.saturating_sub(ABOUT_MS.min(owed / ABOUT_PART)))
}

#[cfg(test)]
mod tests {
    use super::{at_the_end, is_quiet};
    use holdup_evidence::Ns;
    use holdup_evidence::observed::{Owed, SeenProcess, SeenWait, Short};
    use holdup_proc::conversations::Connection;

    const S: Ns = 1_000_000_000;

    fn wait(waiter: u32, holder: u32, seconds: u64, cpu_percent: u32) -> SeenWait {
        let process = |pid| SeenProcess {
            pid,
            ..SeenProcess::default()
        };
        SeenWait {
            waiter: process(waiter),
            holder: Some(process(holder)),
            ns: seconds * S,
            short: Short::Answer(Owed {
                cpu_percent: Some(cpu_percent),
                ..Owed::default()
            }),
            ..SeenWait::default()
        }
    }

    #[test]
    fn who_does_nothing_and_waits_for_nobody_is_looked_at() {
        let waits = [
            wait(1, 2, 20, 0),
            wait(2, 3, 20, 1),
            wait(4, 5, 20, 90),
            wait(6, 7, 1, 0),
        ];
        let found: Vec<_> = at_the_end(&waits).into_iter().collect();
        assert_eq!(found, [(3, 20 * S)]);
    }

    #[test]
    fn what_came_meanwhile_breaks_a_silence() {
        let at = "127.0.0.1:1".parse().unwrap();
        let last = |sent: u32, received: u32| Connection {
            sent_ms: Some(sent),
            received_ms: Some(received),
            ..Connection::at_rest(at, at, 7)
        };
        assert!(is_quiet(&last(27_300, 27_300), 26 * S));
        assert!(is_quiet(&last(24_000, 24_100), 26 * S));
        assert!(!is_quiet(&last(40_000, 900), 26 * S));
        assert!(!is_quiet(&Connection::at_rest(at, at, 7), 26 * S));
    }
}
