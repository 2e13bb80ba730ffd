//! Who has the connections of a listener, in words.
//!
//! In: clients of a listener, by the names of their processes. Out: parts of titles, and evidence.

use super::{Run, say};
use holdup_evidence::facts::{Acceptor, ConnectedClients};
use holdup_model::finding::{Evidence, Remedy};

/// Names of clients that are listed.
const MAX_LISTED: usize = 3;

/// Where it is read.
const SOURCE: &str = "/proc/net/tcp and /proc/PID/fd";

/// Connections of a listener in all.
pub(super) fn connections(clients: &[ConnectedClients]) -> u64 {
    clients.iter().map(|one| u64::from(one.connections)).sum()
}

/// What whoever has too many of them may do.
pub(super) fn close_remedy(run: &Run<'_>, one: &ConnectedClients) -> Remedy {
    let close = Remedy::safe(format!(
        "close connections in {} that it does not need, or let it use a pool",
        who(run, one)
    ));
    match one.pids.first() {
        Some(pid) => close.with_command(format!("holdup attach -p {pid}")),
        None => close,
    }
}

/// `python3 poller.py (pid 7)`, `nginx (pids 7, 8, 9 and 3 more)`, `192.0.2.7`.
pub(super) fn who(run: &Run<'_>, one: &ConnectedClients) -> String {
    let mut scripts: Vec<Option<&str>> = one.pids.iter().map(|pid| say::script(run, *pid)).collect();
    scripts.dedup();
    let script = match scripts.as_slice() {
        [script] => *script,
        _ => None,
    };
    let from = one.address.map(|address| address.to_string());
    let unseen = from.as_deref().unwrap_or("clients that are no process seen here");
    let name = script.unwrap_or_else(|| say::name_or(&one.process, unseen));
    let parts: Vec<String> = one.pids.iter().map(u32::to_string).collect();
    let more = (one.processes as usize).saturating_sub(parts.len());
    match (parts.as_slice(), more) {
        ([], _) => name.to_owned(),
        ([pid], 0) => format!("{name} (pid {pid})"),
        (_, 0) => format!("{name} (pids {})", parts.join(", ")),
        (_, more) => format!("{name} (pids {} and {more} more)", parts.join(", ")),
    }
}

/// Whether it is known who they are.
fn is_known(one: &ConnectedClients) -> bool {
    !one.pids.is_empty() || one.address.is_some_and(|address| !address.is_loopback())
}

/// `5 connections of python3 poller.py (pid 7)`, where all are of the same, and whether that is one connection.
pub(super) fn all(run: &Run<'_>, clients: &[ConnectedClients]) -> Option<(String, bool)> {
    match clients {
        [one] if is_known(one) => {
            let count = say::several(one.connections.into(), "connection");
            Some((format!("{count} of {}", who(run, one)), one.connections == 1))
        }
        _ => None,
    }
}

/// For the end of a title: `60 of its 64 connections are of python3 (pid 7)`; `None` where nobody is known, or nobody has most of them.
pub(super) fn most(run: &Run<'_>, clients: &[ConnectedClients]) -> Option<String> {
    let all = connections(clients);
    let first = clients.first().filter(|one| is_known(one))?;
    let theirs = u64::from(first.connections);
    if theirs.saturating_mul(2) <= all {
        return None;
    }
    let whose = who(run, first);
    Some(match (theirs, all) {
        (1, 1) => format!("its only connection is of {whose}"),
        (theirs, all) if theirs == all => format!("all of its {all} connections are of {whose}"),
        (theirs, all) => format!("{theirs} of its {all} connections are of {whose}"),
    })
}

/// All that is known of them.
pub(super) fn evidence(run: &Run<'_>, clients: &[ConnectedClients]) -> Option<Evidence> {
    let each = |one: &ConnectedClients| format!("{} of {}", one.connections, who(run, one));
    let listed: Vec<String> = clients.iter().take(MAX_LISTED).map(each).collect();
    let more = clients.len().saturating_sub(listed.len());
    let more = match more {
        0 => String::new(),
        more => format!(", and those of {more} other programs"),
    };
    let all = say::several(connections(clients), "accepted connection");
    (!listed.is_empty()).then(|| Evidence::new(format!("{all} there: {}{more}", listed.join(", ")), SOURCE))
}

/// `memcached (pid 7)`, `gunicorn (pid 7 and 3 more)`; `None` where nobody is known.
pub(super) fn acceptors(all: &[Acceptor]) -> Option<String> {
    let first = all.first()?;
    let name = say::name_or(&first.process, "a process");
    Some(match all.len() {
        1 => format!("{name} (pid {})", first.pid),
        many => format!("{name} (pid {} and {} more)", first.pid, many - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::{Run, all, most, who};
    use holdup_evidence::SystemFacts;
    use holdup_evidence::facts::{ConnectedClients, Program};
    use holdup_model::attributed::Attributed;

    fn clients(process: &str, pids: &[u32], processes: u32, connections: u32) -> ConnectedClients {
        ConnectedClients {
            process: process.to_owned(),
            address: None,
            pids: pids.to_vec(),
            processes,
            connections,
        }
    }

    #[test]
    fn who_has_most_is_named_and_who_has_not_is_no() {
        let attributed = Attributed::default();
        let facts = SystemFacts {
            programs: vec![Program {
                pid: 5,
                name: "python3 poller.py".to_owned(),
            }],
            ..SystemFacts::default()
        };
        let run = &Run::new(&attributed, &facts);
        let script = clients("python3", &[5], 1, 5);
        assert_eq!(
            all(run, std::slice::from_ref(&script)),
            Some(("5 connections of python3 poller.py (pid 5)".to_owned(), false))
        );
        let far = ConnectedClients {
            address: Some([192, 0, 2, 7].into()),
            ..clients("", &[], 0, 1)
        };
        assert_eq!(
            all(run, std::slice::from_ref(&far)),
            Some(("1 connection of 192.0.2.7".to_owned(), true))
        );
        let first = clients("indexer", &[7], 1, 60);
        let second = clients("web", &[8, 9], 2, 4);
        assert_eq!(
            most(run, &[first.clone(), second.clone()]).as_deref(),
            Some("60 of its 64 connections are of indexer (pid 7)")
        );
        assert_eq!(
            most(run, std::slice::from_ref(&first)).as_deref(),
            Some("all of its 60 connections are of indexer (pid 7)")
        );
        assert_eq!(most(run, &[second.clone(), clients("api", &[3], 1, 4)]), None);
        assert_eq!(most(run, &[clients("", &[], 0, 9)]), None, "nobody is known");
        assert_eq!(
            who(run, &clients("api", &[1, 2, 3], 9, 9)),
            "api (pids 1, 2, 3 and 6 more)"
        );
    }
}
