//! Who waits for whom among the sessions of a database server, as the server itself has it in its memory: who queues for a lock sleeps as
//! anybody does, and of a server with threads for its sessions not even a title tells.
//!
//! In: waits of processes for each other. Out: the same, with the lock, and with the client of the session that has it. A server is looked
//! at only if somebody may wait for its answer, or for a lock of it.

use super::looked_up::named;
use holdup_collect::database_locks;
use holdup_evidence::Ns;
use holdup_evidence::facts::{LockSession, SessionState};
use holdup_evidence::observed::{Awaited, Doing, Quote, SeenProcess, SeenWait};
use holdup_knowledge::postgres_titles;
use holdup_knowledge::user_code::mysql;
use holdup_proc::conversations::Connection;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::task_list::Process;
use holdup_proc::{Root, descriptors, names};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

/// The shortest wait for an answer of a server for which its locks are looked at: statements of a healthy one take less.
const MIN_ANSWER_NS: Ns = 1_000_000_000;

/// Nanoseconds in a millisecond.
const MS: Ns = 1_000_000;

/// Steps from one who waits to the session at the end.
const MAX_STEPS: usize = 64;

/// How long is waited for a wait that has no known beginning, to see that it goes on.
const AGAIN: Duration = Duration::from_millis(1_100);

/// Adds who waits for locks of databases; `processes` are those of the machine, and `connections` its connections.
pub(super) fn add<'a>(
    root: &Root,
    processes: impl Iterator<Item = &'a Process>,
    connections: &[Connection],
    quote: &Quote,
    waits: &mut Vec<SeenWait>,
) {
    let servers = servers(root, processes, connections, waits);
    if servers.is_empty() {
        return;
    }
    let mut sessions = database_locks::of_machine(&servers);
    let since = |one: &LockSession| {
        let address = one.client.as_ref()?.address?;
        let own = connections.iter().find(|other| other.local == address)?;
        own.asks_ms.or(own.received_ms).map(|ms| Ns::from(ms) * MS)
    };
    let threaded = |one: &&LockSession| one.waits.is_some() && one.pid == one.server;
    let mut known: HashMap<(u32, u64), Ns> = HashMap::new();
    for one in sessions.iter().filter(threaded) {
        known.extend(since(one).map(|ns| ((one.server, one.id), ns)));
    }
    // Of a connection by a Unix socket the kernel does not tell since when.
    if sessions
        .iter()
        .filter(threaded)
        .any(|one| !known.contains_key(&(one.server, one.id)))
    {
        std::thread::sleep(AGAIN);
        let before = std::mem::replace(&mut sessions, database_locks::of_machine(&servers));
        for one in sessions.iter().filter(threaded) {
            let id = (one.server, one.id);
            let same = before
                .iter()
                .any(|other| (other.server, other.id) == id && other.waits == one.waits);
            if same {
                known.entry(id).or_insert(AGAIN.as_nanos() as Ns);
            }
        }
    }
    let pids: BTreeSet<u32> = (sessions.iter())
        .flat_map(|one| [Some(one.pid), client(one)])
        .flatten()
        .filter(|pid| *pid > 0)
        .collect();
    let names = named(root, pids.into_iter().collect());
    join(&sessions, &known, &names, quote, waits);
}

/// Servers for which somebody waits, or may: an answer and the next question within one tick of the kernel's clock look like no question.
fn servers<'a>(
    root: &Root,
    processes: impl Iterator<Item = &'a Process>,
    connections: &[Connection],
    waits: &[SeenWait],
) -> Vec<u32> {
    let waits_long = |one: &Connection| {
        let since = one.asks_ms.or(one.received_ms.filter(|_| one.may_ask));
        since.is_some_and(|ms| Ns::from(ms) * MS >= MIN_ANSWER_NS)
    };
    let long: HashSet<_> = (connections.iter().filter(|one| waits_long(one)))
        .map(|one| (one.peer, one.local))
        .collect();
    let asked = |pid: u32| {
        let sockets = descriptors::ends(root, pid)
            .map(|ends| ends.sockets)
            .unwrap_or_default();
        let own = connections.iter().filter(|one| sockets.contains(&one.inode));
        let by_unix = || {
            sockets
                .iter()
                .any(|inode| unix_peers::of(*inode).is_some_and(|peer| peer != 0))
        };
        own.into_iter().any(|one| long.contains(&(one.local, one.peer))) || by_unix()
    };
    let threaded = processes
        .filter(|process| mysql::is_server(&process.name))
        .map(|process| process.pid);
    let threaded = threaded.filter(|pid| asked(*pid));
    let sessions = waits.iter().filter(|wait| wait.on == Awaited::SessionLock);
    let forked = sessions
        .filter_map(|wait| names::parent(root, wait.waiter.pid))
        .filter(|pid| names::comm(root, *pid).is_some_and(|name| postgres_titles::is_server(&name)));
    let all: BTreeSet<u32> = threaded.chain(forked).collect();
    all.into_iter().collect()
}

fn client(session: &LockSession) -> Option<u32> {
    session.client.as_ref()?.pid
}

/// The session at the end of a queue; `None` where they wait for each other, or where it is not known.
fn end<'a>(first: &'a LockSession, by_id: &HashMap<(u32, u64), &'a LockSession>) -> Option<&'a LockSession> {
    let mut at = first;
    for _ in 0..MAX_STEPS {
        let Some(waits) = &at.waits else { return Some(at) };
        at = by_id.get(&(at.server, *waits.behind.first()?))?;
    }
    None
}

fn join(
    sessions: &[LockSession],
    known: &HashMap<(u32, u64), Ns>,
    names: &HashMap<u32, String>,
    quote: &Quote,
    waits: &mut Vec<SeenWait>,
) {
    let by_id: HashMap<(u32, u64), &LockSession> =
        sessions.iter().map(|one| ((one.server, one.id), one)).collect();
    for waiter in sessions.iter().filter(|one| one.waits.is_some()) {
        let (Some(lock), Some(end)) = (&waiter.waits, end(waiter, &by_id).filter(|end| end.pid != 0)) else {
            continue;
        };
        // A number says nothing to anybody.
        let name = match lock.name.bytes().all(|byte| byte.is_ascii_digit()) {
            true => "",
            false => lock.name.as_str(),
        };
        let process = |pid: u32, name: &str| SeenProcess {
            pid,
            name: names.get(&pid).cloned().unwrap_or_else(|| name.to_owned()),
            ..SeenProcess::default()
        };
        if waiter.pid != waiter.server {
            // The session is a process, which is known to wait.
            let same =
                |wait: &&mut SeenWait| wait.on == Awaited::SessionLock && wait.waiter.pid == waiter.pid;
            for wait in waits.iter_mut().filter(same) {
                name.clone_into(&mut wait.name);
                if wait.holder.as_ref().is_none_or(|holder| holder.pid != end.pid) {
                    let idle = end.state == Some(SessionState::IdleInTransaction);
                    let known = end.client.as_ref().and_then(|one| {
                        let pid = one.pid?;
                        let name = process(pid, &one.process).name;
                        Some(holdup_evidence::observed::SeenClient { pid, name })
                    });
                    wait.holder = Some(SeenProcess {
                        doing: if idle {
                            Doing::IdleInTransaction
                        } else {
                            Doing::Unknown
                        },
                        client: known,
                        ..process(end.pid, &end.process)
                    });
                }
            }
            continue;
        }
        // Of a thread its client stands for it, on both sides.
        let (Some(asks), Some(has)) = (client(waiter), client(end)) else {
            continue;
        };
        let since = known.get(&(waiter.server, waiter.id)).copied();
        let Some(ns) = since.filter(|ns| *ns >= MIN_ANSWER_NS && asks != has) else {
            continue;
        };
        let new = SeenWait {
            waiter: process(asks, ""),
            on: Awaited::SessionLock,
            name: name.to_owned(),
            holder: Some(process(has, "")),
            ns,
            quote: quote.clone(),
            ..SeenWait::default()
        };
        let is_known = waits.iter().any(|wait| {
            wait.on == new.on
                && wait.waiter.pid == asks
                && wait.holder.as_ref().is_some_and(|one| one.pid == has)
        });
        if !is_known {
            waits.push(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::join;
    use holdup_evidence::facts::{LockKind, LockSession, LockWait, SessionClient, SessionState};
    use holdup_evidence::observed::{Awaited, Doing, Quote, SeenProcess, SeenWait};
    use std::collections::HashMap;

    const S: u64 = 1_000_000_000;

    fn session(server: u32, pid: u32, id: u64, client: u32, behind: &[u64]) -> LockSession {
        LockSession {
            server,
            pid,
            id,
            client: Some(SessionClient {
                pid: Some(client),
                ..SessionClient::default()
            }),
            waits: (!behind.is_empty()).then(|| LockWait {
                kind: LockKind::Row,
                name: "rooms.booking".to_owned(),
                behind: behind.to_vec(),
            }),
            ..LockSession::default()
        }
    }

    fn wait(waiter: u32, on: Awaited, holder: u32) -> SeenWait {
        let process = |pid: u32| SeenProcess {
            pid,
            ..SeenProcess::default()
        };
        SeenWait {
            waiter: process(waiter),
            on,
            holder: (holder > 0).then(|| process(holder)),
            ns: 6 * S,
            ..SeenWait::default()
        }
    }

    #[test]
    fn clients_of_threads_wait_for_the_client_at_the_end_of_the_queue() {
        let names = HashMap::from([(20, "rooms".to_owned()), (40, "report".to_owned())]);
        let sessions = [
            session(7, 7, 24, 30, &[11]),
            session(7, 7, 25, 20, &[24]),
            session(7, 7, 26, 20, &[24]),
            session(7, 7, 11, 40, &[]),
        ];
        let mut waits = vec![wait(20, Awaited::Answer, 7), wait(30, Awaited::Answer, 7)];
        let known = HashMap::from([((7, 24), 6 * S), ((7, 25), 6 * S), ((7, 26), 5 * S)]);
        join(&sessions, &known, &names, &Quote::default(), &mut waits);
        let known: Vec<_> = (waits.iter().skip(2))
            .map(|one| {
                (
                    one.waiter.pid,
                    one.on,
                    one.holder.as_ref().unwrap().name.as_str(),
                    one.ns,
                )
            })
            .collect();
        assert_eq!(
            known,
            [
                (30, Awaited::SessionLock, "report", 6 * S),
                (20, Awaited::SessionLock, "report", 6 * S)
            ]
        );
    }

    #[test]
    fn a_session_that_is_a_process_waits_for_the_one_at_the_end() {
        let mut idle = session(7, 50, 50, 40, &[]);
        idle.state = Some(SessionState::IdleInTransaction);
        let sessions = [session(7, 51, 51, 30, &[50]), session(7, 52, 52, 20, &[51]), idle];
        let mut waits = vec![
            wait(51, Awaited::SessionLock, 0),
            wait(52, Awaited::SessionLock, 0),
        ];
        join(
            &sessions,
            &HashMap::new(),
            &HashMap::new(),
            &Quote::default(),
            &mut waits,
        );
        for wait in &waits {
            let holder = wait.holder.as_ref().unwrap();
            assert_eq!((holder.pid, holder.doing), (50, Doing::IdleInTransaction));
            assert_eq!(
                (holder.client.as_ref().unwrap().pid, wait.name.as_str()),
                (40, "rooms.booking")
            );
        }
    }

    #[test]
    fn those_that_wait_for_each_other_have_no_end() {
        let sessions = [session(7, 7, 1, 20, &[2]), session(7, 7, 2, 30, &[1])];
        let mut waits = vec![wait(20, Awaited::Answer, 7), wait(30, Awaited::Answer, 7)];
        join(
            &sessions,
            &HashMap::new(),
            &HashMap::new(),
            &Quote::default(),
            &mut waits,
        );
        assert_eq!(waits.len(), 2);
    }
}
