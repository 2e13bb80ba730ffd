//! Sessions of a database that wait for each other.
//!
//! In: roots so far, ways without an end, and the titles of sessions. Out: who stands behind which session.

use super::ends::{End, Key, Lock};
use super::path::{Graph, Step};
use super::roots::{MIN_LONGEST_NS, Root, join, waiter};
use holdup_evidence::Cause;
use holdup_evidence::facts::SessionState;
use holdup_model::attributed::{AttributedWait, ThreadName};
use std::collections::BTreeMap;

/// A session of a database, by the title that its server has given it.
#[derive(Debug, Clone)]
pub(crate) struct Titled {
    pub(crate) name: ThreadName,
    /// The first process of its server.
    pub(crate) server: u32,
    pub(crate) state: SessionState,
    /// The program at the other end of its connection.
    pub(crate) client: String,
}

/// Sessions that wait for a lock of which nobody was seen to let go: behind the one session of their server that is idle in a transaction,
/// as the titles have it. Of several nobody knows which it is.
pub(super) fn idle<'a>(
    roots: &mut BTreeMap<Key, Root<'a>>,
    loose: &mut Vec<(&'a AttributedWait, Vec<Step<'a>>)>,
    titled: &'a [Titled],
) {
    let of = |pid: u32| titled.iter().find(|one| one.name.pid == pid);
    loose.retain(|(row, way)| {
        let row: &'a AttributedWait = row;
        let waiting = way.last().and_then(|end| of(end.name.pid));
        let Some(waiting) = waiting.filter(|one| one.state == SessionState::Waiting) else {
            return true;
        };
        let idle =
            |one: &&Titled| one.server == waiting.server && one.state == SessionState::IdleInTransaction;
        let mut idle = titled.iter().filter(idle);
        let (Some(one), None) = (idle.next(), idle.next()) else {
            return true;
        };
        let longest = row.max.min(row.ns);
        if longest < MIN_LONGEST_NS {
            return true;
        }
        let own = way.len() <= 1;
        let end = End {
            key: Key::Lock(one.name.pid),
            name: &one.name,
            cause: Some(Cause::Idle),
            resource: None,
            lock: Some(Lock {
                cause: Cause::LockFutex,
                resource: own.then_some(&row.resource),
                session: true,
            }),
            steps: way.len(),
            beyond: None,
            onward: None,
            awaited: None,
            ns: longest,
            asked: true,
        };
        let root = roots.entry(end.key.clone()).or_insert_with(|| Root::new(&end));
        let known = root.lock.and_then(|lock| lock.resource);
        root.add(row, &end, way);
        // The waiting session itself knows what it waits for.
        if let Some(lock) = &mut root.lock {
            lock.resource = lock.resource.or(known).or(own.then_some(&row.resource));
        }
        root.idle_of = Some(&one.client);
        false
    });
}

/// A session that has a lock others wait for and waits for another session itself is no root: it stands in the queue of one that waits for
/// nobody, if one is known.
pub(super) fn waiting<'a>(graph: &Graph<'a>, roots: &mut BTreeMap<Key, Root<'a>>) {
    let of_session = |root: &Root<'_>| root.lock.is_some_and(|lock| lock.session);
    let waits = |root: &Root<'_>| graph.waited_for_session((root.name.pid, root.name.tid));
    let free = roots.values().filter(|root| of_session(root) && !waits(root));
    let Some(first) = free.max_by_key(|root| root.ended).map(|root| root.key.clone()) else {
        return;
    };
    let server = roots.get(&first).map(|root| root.name.process.clone());
    let queued = roots
        .values()
        .filter(|root| of_session(root) && waits(root) && Some(&root.name.process) == server.as_ref());
    let queued: Vec<Key> = queued.map(|root| root.key.clone()).collect();
    for key in queued {
        let Some(from) = roots.remove(&key) else { continue };
        if let Some(into) = roots.get_mut(&first) {
            into.longest = into.longest.max(from.longest);
            for one in from.behind {
                join(&mut into.behind, one);
            }
        }
    }
}

/// Sessions whose blocker nobody saw, where one blocker of that database is known: it is the one that ended such waits.
pub(super) fn behind<'a>(
    graph: &Graph<'a>,
    roots: &mut BTreeMap<Key, Root<'a>>,
    loose: &[(&'a AttributedWait, Vec<Step<'a>>)],
) {
    let blockers = roots.values_mut().filter(|root| {
        let session = root.lock.is_some_and(|lock| lock.session);
        session && root.ended >= MIN_LONGEST_NS
    });
    // Of several the one that ended most.
    let Some(root) = blockers.max_by_key(|root| root.ended) else {
        return;
    };
    let server = root.name.process.clone();
    for (row, way) in loose {
        let end = way.last().filter(|end| graph.waited_for_session(end.id()));
        let stands = |cause| matches!(cause, Cause::IpcQueue | Cause::LockFutex | Cause::PollWait);
        let waits = end.is_some_and(|end| end.name.process == server && end.cause.is_some_and(stands));
        // What is short may be any wait of that session.
        if waits && row.max >= MIN_LONGEST_NS {
            join(&mut root.behind, waiter(row, way.len() <= 1));
            root.longest = root.longest.max(row.max.min(row.ns));
        }
    }
}
