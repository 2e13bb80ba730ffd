//! Processes that serve a client which another process has accepted, as sessions do, and whose client may have had the last word.
//!
//! The problem: a client that speaks within a tick of the kernel's clock after it was answered may be the one who waits, or not. Of a session that
//! waits for its ancestor meanwhile that decides whether it rests. In: processes, as observation begins. Out: such connections of theirs, as
//! conversations of which it is not known who had the last word. They are no requests until somebody is known to have them.

use super::moment::Moment;
use holdup_evidence::{Earlier, Event, Ns};
use holdup_proc::{clocks, conversations};
use std::collections::{BTreeSet, HashSet};

/// Processes that are looked at: of more, a recorder's, each look would take long.
const MAX_PROCESSES: usize = 64;

/// The kernel's coarse clock is not finer than this, nanoseconds.
const TICK: Ns = 10_000_000;

/// Nanoseconds in a millisecond.
const NS_IN_MS: Ns = 1_000_000;

/// Looks at these processes.
pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Vec<Event> {
    let mut found = Vec::new();
    if pids.len() > MAX_PROCESSES {
        return found;
    }
    let here = moment.namespace(std::process::id());
    let mut words = None;
    for pid in pids {
        let Some(ends) = moment.ends(*pid).filter(|_| moment.namespace(*pid) == here) else {
            continue;
        };
        let sockets = moment.sockets(*pid);
        let own = |inode: u64| inode != 0 && ends.sockets.contains(&inode);
        let listeners = || sockets.tcp.iter().filter(|one| one.listens);
        let ports: HashSet<u16> = listeners().map(|one| one.local.port()).collect();
        let mut accepted = sockets
            .tcp
            .iter()
            .filter(|one| !one.listens && own(one.inode) && ports.contains(&one.local.port()));
        // Who listens itself is no session.
        if listeners().any(|one| own(one.inode)) || accepted.next().is_none() {
            continue;
        }
        let now = clocks::monotonic();
        let words = words.get_or_insert_with(conversations::read);
        let theirs = words.iter().filter(|one| {
            own(one.inode) && ports.contains(&one.local.port()) && one.may_ask && one.unread == 0
        });
        found.extend(theirs.filter_map(|one| {
            let ago = Ns::from(one.received_ms?).saturating_mul(NS_IN_MS);
            Some(Event::Earlier(Earlier {
                pid: *pid,
                connection: one.inode,
                inode: one.inode,
                said_at: now.saturating_sub(ago),
                tick: TICK,
                by_client: true,
                after: None,
                words: None,
                unclear: true,
            }))
        }));
    }
    found
}
