//! For whom a server waits that owes an answer and is on no connection the one who spoke last.
//!
//! The problem: a server may acknowledge what it was asked, or say that it takes no more for now, and owe the answer all the same; by its last word
//! the client waits for nothing. In: who owes answers, and connections. Out: of each that owes one, the server on whose connection
//! it was active last, where that was since it was asked, and nothing has come or gone there since. Of several such servers it is not known
//! which, and none is said.

use super::queued;
use holdup_evidence::Ns;
use holdup_proc::Root;
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::listen_queues::ListenQueue;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The shortest wait that is looked at closely: what is shorter may be work.
const MIN_NS: Ns = 1_500_000_000;

/// Servers that are looked at in a round, and rounds: a server may ask one that asks another one.
const SERVERS_MAX: usize = 64;
const ROUNDS: usize = 3;

/// A server asks its own at most so long before it was asked itself, milliseconds: the kernel's clock for these has ticks.
const BEFORE_MS: u64 = 200;

/// It does so within this, milliseconds: what it does for longer is work.
const AFTER_MS: u64 = 1000;

/// Two connections whose last words are so close together may each be the last, milliseconds.
const TOGETHER_MS: u64 = 20;

/// Nanoseconds in a millisecond.
const MS: Ns = 1_000_000;

/// Somebody who waits for an answer by that: the process, its server, where that was asked, and for how long.
pub(super) type Waits = (u32, u32, String, Ns);

/// Goes on from those that owe answers. `asked`: who waits for whom, for how long.
pub(super) fn beyond(
    root: &Root,
    own: u32,
    asked: &[(u32, u32, Ns)],
    connections: &[Connection],
    queues: &[ListenQueue],
) -> Vec<Waits> {
    let clients: BTreeSet<u32> = asked.iter().map(|(client, ..)| *client).collect();
    let mut owing: BTreeMap<u32, Ns> = BTreeMap::new();
    for (_, server, ns) in asked
        .iter()
        .filter(|(_, server, ns)| *ns >= MIN_NS && !clients.contains(server))
    {
        let known = owing.entry(*server).or_default();
        *known = (*known).max(*ns);
    }
    let by_inode: HashMap<u64, &Connection> = connections.iter().map(|one| (one.inode, one)).collect();
    let by_ends: HashMap<_, &Connection> = connections
        .iter()
        .map(|one| ((one.local, one.peer), one))
        .collect();
    let mut known: BTreeSet<u32> = clients;
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let mut ends: Vec<(u32, u64, String, Ns)> = Vec::new();
        for (pid, ns) in owing.iter().take(SERVERS_MAX) {
            let sockets = descriptors::ends(root, *pid)
                .map(|ends| ends.sockets)
                .unwrap_or_default();
            let own = sockets.iter().filter_map(|inode| by_inode.get(inode));
            let made = own.filter(|one| one.inode != 0 && queued::is_client(queues, one));
            if let Some((one, ns)) = last(made.copied(), *ns)
                && let Some(other) = by_ends.get(&(one.peer, one.local))
            {
                ends.push((*pid, other.inode, one.peer.to_string(), ns));
            }
        }
        known.extend(owing.keys());
        owing.clear();
        let wanted: HashSet<Open> = ends.iter().map(|(_, inode, ..)| Open::Socket(*inode)).collect();
        if wanted.is_empty() {
            break;
        }
        let holders = descriptors::holders(root, &wanted, own);
        for (pid, inode, at, ns) in ends {
            let server = holders.get(&Open::Socket(inode)).and_then(|pids| pids.first());
            let Some(server) = server.copied().filter(|server| *server != pid) else {
                continue;
            };
            found.push((pid, server, at, ns));
            if !known.contains(&server) {
                let longest = owing.entry(server).or_default();
                *longest = (*longest).max(ns);
            }
        }
    }
    found
}

/// Of connections that a process has made, the one on which it was active last since it was asked, and for how long nothing has come or gone
/// there.
fn last<'a>(made: impl Iterator<Item = &'a Connection>, owed: Ns) -> Option<(&'a Connection, Ns)> {
    let owed_ms = owed / MS;
    let quiet = |one: &Connection| {
        let ms = u64::from(one.sent_ms?.min(one.received_ms.unwrap_or(u32::MAX)));
        let since = ms <= owed_ms.saturating_add(BEFORE_MS) && ms.saturating_add(AFTER_MS) >= owed_ms;
        (since && one.unread == 0 && one.unsent == 0).then_some(ms)
    };
    let mut all: Vec<(u64, &Connection)> = made.filter_map(|one| Some((quiet(one)?, one))).collect();
    all.sort_by_key(|(ms, _)| *ms);
    let (ms, first) = *all.first()?;
    let others = all.iter().skip(1);
    let close = |(other, one): &(u64, &Connection)| *other <= ms + TOGETHER_MS && one.peer != first.peer;
    (!others.into_iter().any(close)).then(|| (first, ms.saturating_mul(MS)))
}

#[cfg(test)]
mod tests {
    use super::last;
    use holdup_evidence::Ns;
    use holdup_proc::conversations::Connection;

    const MS: Ns = 1_000_000;

    fn made(port: u16, sent: u32, received: u32) -> Connection {
        let at = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        Connection {
            sent_ms: Some(sent),
            received_ms: Some(received),
            ..Connection::at_rest(at(40_000), at(port), 7)
        }
    }

    /// The port of the server that one waits for who has owed an answer for so many milliseconds.
    fn port(all: &[Connection], owed_ms: u64) -> Option<u16> {
        last(all.iter(), owed_ms * MS).map(|(one, _)| one.peer.port())
    }

    #[test]
    fn who_was_told_that_it_has_to_wait_waits_for_that_server() {
        let broker = made(5672, 26_728, 26_728);
        assert_eq!(port(&[broker, made(6379, 300, 299)], 26_736), Some(5672));
        assert_eq!(port(&[broker], 3_000), None, "it was quiet before it was asked");
        assert_eq!(
            port(&[broker], 90_000),
            None,
            "it worked for long before it asked"
        );
    }

    #[test]
    fn the_last_word_counts_and_of_two_at_once_none() {
        let (cache, store) = (made(6379, 20_400, 20_399), made(5432, 20_000, 20_000));
        assert_eq!(port(&[cache, store], 20_500), Some(5432));
        assert_eq!(port(&[made(6379, 20_010, 20_005), store], 20_500), None);
        let other = Connection { unread: 7, ..store };
        assert_eq!(port(&[other], 20_500), None, "an answer is there");
    }
}
