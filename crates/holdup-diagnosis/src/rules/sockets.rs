//! Lists of sockets as rules ask about them: who waits at which listener, which connections are in trouble.
//!
//! In: [`Observed`]. Out: rows with their place. What two lists say is never added up: they may be of one machine at two
//! times.

use holdup_evidence::Observed;
use holdup_evidence::observed::{
    Quote, SeenConnection, SeenQueue, SocketCount, SocketKey, SocketTable, TcpState,
};
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::Evidence;

/// Findings of one rule about several sockets.
pub(super) const EACH: usize = 3;

/// Connections in a state, of all tables, with their table.
pub(super) fn connections(observed: &Observed) -> impl Iterator<Item = (&SocketTable, &SeenConnection)> {
    let tables = observed.sockets.iter();
    tables.flat_map(|table| table.connections.iter().map(move |one| (table, one)))
}

/// Listeners with a queue, of all tables, with their table.
pub(super) fn queues(observed: &Observed, unix: bool) -> impl Iterator<Item = (&SocketTable, &SeenQueue)> {
    let tables = observed.sockets.iter();
    tables
        .flat_map(|table| table.queues.iter().map(move |one| (table, one)))
        .filter(move |(_, one)| one.unix == unix)
}

/// Counts of a state by what the sockets have in common, in one table, most first.
pub(super) fn counts(
    table: &SocketTable,
    state: TcpState,
    by: SocketKey,
) -> impl Iterator<Item = &SocketCount> {
    let counts = table.counts.iter();
    counts.filter(move |count| count.state == state && count.by == by)
}

/// How many sockets of a state a table has.
pub(super) fn of_state(table: &SocketTable, state: TcpState) -> u64 {
    counts(table, state, SocketKey::All)
        .map(|count| count.count)
        .sum()
}

/// The table that has most sockets of a state, if there is one with sockets.
pub(super) fn most_of(observed: &Observed, state: TcpState) -> Option<&SocketTable> {
    let tables = observed.sockets.iter().filter(|table| table.total > 0);
    tables.max_by_key(|table| of_state(table, state))
}

/// Sockets of all tables together: for the number that rules a trouble out.
pub(super) fn total(observed: &Observed) -> u64 {
    observed.sockets.iter().map(|table| table.total).sum()
}

/// Whether a listener at `local` is one that a client of `peer` reaches: the same port, at the same address or at all.
pub(super) fn serves(local: &str, peer: &str) -> bool {
    let (Some((own, port)), Some((host, wanted))) = (local.rsplit_once(':'), peer.rsplit_once(':')) else {
        return false;
    };
    let any = matches!(own, "0.0.0.0" | "*" | "[::]" | "::" | "");
    let here = host == "127.0.0.1" || host == "[::1]" || host == "::1";
    port == wanted && (own == host || (any && here))
}

/// Whether a clients' queue at a listener of the table is where requests to this address stand.
pub(super) fn queues_here(table: &SocketTable, peer: &str) -> bool {
    let mut queues = table.queues.iter();
    queues.any(|queue| !queue.unix && serves(&queue.local, peer))
}

/// Words with the place of a row.
pub(super) fn evidence(observed: &Observed, text: impl Into<String>, quote: &Quote) -> Evidence {
    let place = observed.place(quote);
    Evidence::new(
        text,
        match place.is_empty() {
            true => "the list of sockets".to_owned(),
            false => place,
        },
    )
}

/// An address as a resource.
pub(super) fn socket(address: &str) -> Resource {
    Resource {
        kind: ResourceKind::Socket,
        name: address.to_owned(),
        ..Resource::default()
    }
}

/// The process as the one who waits.
pub(super) fn asker(process: Option<&str>) -> Asker {
    Asker {
        name: ThreadName {
            process: process.unwrap_or_default().to_owned(),
            ..ThreadName::default()
        },
        ..Asker::default()
    }
}

#[cfg(test)]
mod tests {
    use super::serves;

    #[test]
    fn a_listener_at_all_addresses_serves_its_own_machine() {
        assert!(serves("127.0.0.1:80", "127.0.0.1:80"));
        assert!(serves("0.0.0.0:80", "127.0.0.1:80") && serves("[::]:80", "[::1]:80"));
        assert!(
            !serves("0.0.0.0:80", "10.0.0.9:80"),
            "it may be another machine's"
        );
        assert!(!serves("127.0.0.1:80", "127.0.0.1:8080") && !serves("x", "y"));
    }
}
