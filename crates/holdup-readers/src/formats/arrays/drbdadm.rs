//! `drbdadm status` and `drbdsetup status` of DRBD 9, and the resources that LINSTOR lists.
//!
//! In: a line for each resource, set in below it its own disks and its peers, each with their disks; rows of `linstor resource list`. Out: for each
//! resource that is not whole what is missing, whether a copy of it runs, and whether LINSTOR says otherwise. Source: `drbdsetup-status(8)`.

use super::{NAME, cut};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("drbd-status", Family::Host, recognise)
    .about("drbdadm status, linstor resource list");

/// Resources, peers of one and rows that are kept, and resources that are told.
const MAX_RESOURCES: usize = 2_000;
const MAX_PEERS: usize = 32;
const MAX_TOLD: usize = 12;

/// Bytes of a line that are looked at.
const LINE_BYTES: usize = 400;

/// States of a disk that has all data, or is meant to have none.
const WELL: [&str; 3] = ["UpToDate", "Diskless", "Consistent"];

/// States of a connection in which data goes over it, or may.
const CONNECTED: [&str; 1] = ["Connected"];

/// What is said of a copy that waits for another one, or for a person.
const COPIES: [&str; 8] = [
    "SyncSource",
    "SyncTarget",
    "PausedSyncS",
    "PausedSyncT",
    "WFBitMapS",
    "WFBitMapT",
    "StartingSyncS",
    "StartingSyncT",
];

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let of_status = |line: &str| begins_resource(line).is_some();
    let has_disks = text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("disk:") || line.starts_with("volume:") || line.starts_with("peer-disk:")
    });
    let listed = text.lines().any(is_heading);
    Sureness::certain_if(listed || has_disks && text.lines().any(of_status))
}

/// `data role:Secondary`, `data node-id:1 role:Secondary suspended:no`, not set in.
fn begins_resource(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(' ')?;
    let of_status = rest.starts_with("role:") || rest.starts_with("node-id:") && rest.contains(" role:");
    (!name.is_empty() && !name.contains(':') && of_status).then_some((name, rest))
}

/// The heading of LINSTOR's list.
fn is_heading(line: &str) -> bool {
    let cells = cells(line);
    cells.contains(&"ResourceName") && cells.contains(&"Node") && cells.contains(&"State")
}

/// What stands between the strokes of a table.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    let stroke = |char: char| matches!(char, '┊' | '│' | '|');
    if !line.starts_with(stroke) {
        return Vec::new();
    }
    line.trim_matches(stroke)
        .split(stroke)
        .map(str::trim)
        .take(24)
        .collect()
}

/// The value of `key:value` among words.
fn value<'a>(words: &'a str, key: &str) -> Option<&'a str> {
    let found = words
        .split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix(':'));
    found.filter(|value| !value.is_empty())
}

#[derive(Debug, Default)]
struct Peer {
    name: String,
    connection: String,
    replication: String,
    disk: String,
    done: String,
    suspended: String,
}

#[derive(Debug)]
struct Resource {
    name: String,
    /// The machine that was asked, where a prompt tells it.
    host: String,
    disk: String,
    suspended: String,
    no_quorum: bool,
    peers: Vec<Peer>,
    quote: Quote,
}

/// A row of LINSTOR's list.
#[derive(Debug)]
struct Row {
    resource: String,
    node: String,
    state: String,
    connections: String,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    host: String,
    resources: Vec<Resource>,
    rows: Vec<Row>,
    columns: Vec<String>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let text = text.trim_end();
        if is_heading(text) {
            self.columns = cells(text).into_iter().map(str::to_owned).collect();
            return Understood::Evidence;
        }
        if let Some((name, rest)) = begins_resource(text) {
            if self.resources.len() < MAX_RESOURCES {
                self.resources.push(Resource {
                    name: cut(name, NAME),
                    host: self.host.clone(),
                    disk: String::new(),
                    suspended: value(rest, "suspended").unwrap_or("no").to_owned(),
                    no_quorum: false,
                    peers: Vec::new(),
                    quote: out.here(),
                });
            }
            return Understood::Evidence;
        }
        let row = cells(text);
        if row.len() > 2 {
            return self.row(&row, out);
        }
        if let Some((before, rest)) = text.split_once('@')
            && !before.contains(' ')
        {
            let host = rest.split([':', ' ', '#', '$']).next().unwrap_or_default();
            self.host = cut(host, NAME);
            return Understood::No;
        }
        if text.starts_with(' ') || text.starts_with('\t') {
            return self.below(text.trim());
        }
        match text.chars().all(|char| !char.is_alphanumeric()) {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let mut told = 0;
        for resource in &read.resources {
            let kind = resource.kind();
            if kind != StatementKind::WithinNorm && told < MAX_TOLD {
                told += 1;
                let text = resource.sentence(&read.rows);
                out.statement(statements::one(kind, None, resource.quote.clone(), text));
            }
        }
        for row in &read.rows {
            let known = read
                .resources
                .iter()
                .any(|resource| resource.name == row.resource);
            if let Some((kind, text)) = row.told().filter(|_| !known && told < MAX_TOLD) {
                told += 1;
                out.statement(statements::one(kind, None, row.quote.clone(), text));
            }
        }
        let quote = read.resources.first().map(|resource| resource.quote.clone());
        if told == 0
            && let Some(quote) = quote.or_else(|| read.rows.first().map(|row| row.quote.clone()))
        {
            let count = read.resources.len().max(read.rows.len());
            let text =
                format!("all disks of DRBD are up to date or meant to be without data ({count} listed)");
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
    }
}

impl Reader {
    fn row(&mut self, row: &[&str], out: &Out<'_>) -> Understood {
        let cell = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            row.get(at).map(|cell| cut(cell, NAME))
        };
        let (Some(resource), Some(node), Some(state)) = (cell("ResourceName"), cell("Node"), cell("State"))
        else {
            return Understood::No;
        };
        let connections = cell("Conns").unwrap_or_default();
        if self.rows.len() < MAX_RESOURCES {
            self.rows.push(Row {
                resource,
                node,
                state,
                connections,
                quote: out.here(),
            });
        }
        Understood::Evidence
    }

    /// A line that is set in: a disk of the resource, a peer, or a disk of a peer.
    fn below(&mut self, text: &str) -> Understood {
        let Some(resource) = self.resources.last_mut() else {
            return Understood::No;
        };
        let first = text.split_whitespace().next().unwrap_or_default();
        if !first.contains(':') {
            if resource.peers.len() < MAX_PEERS && (text.contains("role:") || text.contains("connection:")) {
                resource.peers.push(Peer {
                    name: cut(first, NAME),
                    connection: value(text, "connection").unwrap_or("Connected").to_owned(),
                    ..Peer::default()
                });
                return Understood::Evidence;
            }
            return Understood::No;
        }
        if let Some(disk) = value(text, "disk") {
            if resource.disk.is_empty() || WELL.contains(&resource.disk.as_str()) {
                disk.clone_into(&mut resource.disk);
            }
            resource.no_quorum |= value(text, "quorum") == Some("no");
            return Understood::Evidence;
        }
        let (Some(disk), Some(peer)) = (value(text, "peer-disk"), resource.peers.last_mut()) else {
            return Understood::Ignorable;
        };
        if peer.disk.is_empty() || WELL.contains(&peer.disk.as_str()) {
            disk.clone_into(&mut peer.disk);
        }
        if let Some(replication) = value(text, "replication").filter(|what| COPIES.contains(what)) {
            replication.clone_into(&mut peer.replication);
            value(text, "done").unwrap_or_default().clone_into(&mut peer.done);
        }
        let suspended = value(text, "resync-suspended").filter(|why| *why != "no");
        suspended.unwrap_or_default().clone_into(&mut peer.suspended);
        Understood::Evidence
    }
}

impl Peer {
    fn is_apart(&self) -> bool {
        !CONNECTED.contains(&self.connection.as_str())
    }

    /// ` SyncTarget 64.12 %`.
    fn copy(&self) -> Option<String> {
        let done = match self.done.as_str() {
            "" => String::new(),
            done => format!(" at {done} %"),
        };
        let suspended = match self.suspended.as_str() {
            "" => String::new(),
            why => format!(", suspended ({why})"),
        };
        (!self.replication.is_empty())
            .then(|| format!("{}{done} with {}{suspended}", self.replication, self.name))
    }
}

impl Resource {
    fn is_whole(&self) -> bool {
        WELL.contains(&self.disk.as_str()) || self.disk.is_empty()
    }

    fn kind(&self) -> StatementKind {
        let copies = self.peers.iter().any(|peer| !peer.replication.is_empty());
        let of_peers = self
            .peers
            .iter()
            .all(|peer| peer.disk.is_empty() || WELL.contains(&peer.disk.as_str()));
        let apart = self.peers.iter().any(Peer::is_apart);
        match self.suspended.as_str() {
            "no" if self.is_whole() && of_peers && !apart && !copies && !self.no_quorum => {
                StatementKind::WithinNorm
            }
            "no" if apart => StatementKind::Unreachable,
            _ => StatementKind::Stalled,
        }
    }

    fn sentence(&self, rows: &[Row]) -> String {
        let host = match self.host.as_str() {
            "" => String::new(),
            host => format!(" on {host}"),
        };
        let mut text = format!("{}{host}: its own disk is {}", self.name, self.disk);
        let copies: Vec<String> = self.peers.iter().filter_map(Peer::copy).collect();
        if !copies.is_empty() {
            text.push_str(&format!("; a copy is under way: {}", copies.join(", ")));
        } else if !self.is_whole() {
            let source = self
                .peers
                .iter()
                .find(|peer| peer.disk == "UpToDate" && !peer.is_apart());
            text.push_str(&match source {
                Some(peer) => format!(
                    ", and no resync of it runs on any connection, though {} has all data (UpToDate): the copy stopped and is stuck",
                    peer.name
                ),
                None => ", and no peer that is connected has all data, so that no resync is running".to_owned(),
            });
        }
        for peer in self.peers.iter().filter(|peer| peer.is_apart()) {
            text.push_str(&format!("; {} is not connected ({})", peer.name, peer.connection));
        }
        let behind = self.peers.iter().filter(|peer| {
            !peer.is_apart()
                && peer.replication.is_empty()
                && !peer.disk.is_empty()
                && !WELL.contains(&peer.disk.as_str())
        });
        for peer in behind {
            text.push_str(&format!(
                "; the disk of {} is {}, and nothing is copied to it",
                peer.name, peer.disk
            ));
        }
        if self.suspended != "no" {
            text.push_str(&format!("; its requests are suspended ({})", self.suspended));
        }
        if self.no_quorum {
            text.push_str("; it has no quorum");
        }
        let says = rows.iter().find(|row| {
            row.resource == self.name && (row.node == self.host || self.host.is_empty() && !row.is_well())
        });
        if let Some(row) = says.filter(|row| copies.is_empty() && row.state.contains('%')) {
            text.push_str(&format!("; LINSTOR still shows {} for {}", row.state, row.node));
        }
        text
    }
}

impl Row {
    fn is_well(&self) -> bool {
        WELL.contains(&self.state.as_str())
            || matches!(
                self.state.as_str(),
                "TieBreaker" | "Created" | "InUse" | "DELETING"
            )
    }

    fn told(&self) -> Option<(StatementKind, String)> {
        let apart = !self.connections.is_empty() && self.connections != "Ok";
        if self.is_well() && !apart {
            return None;
        }
        let kind = match self.state.as_str() {
            _ if apart => StatementKind::Unreachable,
            state if state.contains('%') => StatementKind::Warned,
            "Unknown" => StatementKind::Unreachable,
            _ => StatementKind::Failed,
        };
        let connections = match apart {
            true => format!(", its connections {}", self.connections),
            false => String::new(),
        };
        Some((
            kind,
            format!(
                "{}: its disk on {} is {}{connections}",
                self.resource, self.node, self.state
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let observed = read_text("d", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "drbd-status");
        let all = observed.statements.into_iter().filter(|one| one.of_reader);
        all.map(|one| (one.kind, one.text)).collect()
    }

    const STUCK: &str = "vol-9 role:Secondary\n  disk:Inconsistent\n  alpha role:Primary\n    peer-disk:UpToDate\n  gamma role:Secondary\n    peer-disk:Diskless\n";

    #[test]
    fn a_copy_that_stopped_while_linstor_shows_it() {
        let text = format!(
            "+--------------+\n| ResourceName | Node  | Conns | State              |\n|====|\n| vol-9        | alpha | Ok    | UpToDate           |\n\
             | vol-9        | beta  | Ok    | SyncTarget(41.20%) |\n\nroot@beta:~# drbdadm status vol-9\n{STUCK}"
        );
        let all = said(&text);
        assert_eq!(all[0].0, StatementKind::Stalled);
        assert_eq!(
            all[0].1,
            "vol-9 on beta: its own disk is Inconsistent, and no resync of it runs on any connection, though alpha has all data (UpToDate): the copy \
             stopped and is stuck; LINSTOR still shows SyncTarget(41.20%) for beta"
        );
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn a_copy_that_runs_or_waits_and_a_peer_that_is_gone() {
        let text = STUCK
            .replace(
                "    peer-disk:UpToDate",
                "    replication:SyncTarget peer-disk:UpToDate done:64.12",
            )
            .replace(
                "peer-disk:Diskless",
                "peer-disk:Diskless peer-client:yes resync-suspended:dependency",
            );
        let all = said(&text);
        assert_eq!(
            all[0],
            (
                StatementKind::Stalled,
                "vol-9: its own disk is Inconsistent; a copy is under way: SyncTarget at 64.12 % with alpha"
                    .to_owned()
            )
        );
        let text = "r0 node-id:1 role:Primary suspended:quorum\n  volume:0 minor:1 disk:UpToDate quorum:no blocked:upper\n  \
            beta node-id:2 connection:Connecting role:Unknown congested:no\n    volume:0 replication:Off peer-disk:DUnknown resync-suspended:no\n";
        let all = said(text);
        assert_eq!(all[0].0, StatementKind::Stalled);
        assert!(
            all[0].1.contains(
                "beta is not connected (Connecting); its requests are suspended (quorum); it has no quorum"
            ),
            "{all:?}"
        );
        let apart = text
            .replace("suspended:quorum", "suspended:no")
            .replace("quorum:no", "quorum:yes");
        assert_eq!(said(&apart)[0].0, StatementKind::Unreachable);
    }

    #[test]
    fn what_is_whole_is_within_its_norm() {
        let text = STUCK.replace("Inconsistent", "UpToDate");
        assert_eq!(said(&text)[0].0, StatementKind::WithinNorm);
        let listed = "┊ ResourceName ┊ Node ┊ Conns ┊ State ┊\n┊ a ┊ n1 ┊ Ok ┊ UpToDate ┊\n┊ a ┊ n2 ┊ Ok ┊ Diskless ┊\n";
        assert_eq!(said(listed)[0].0, StatementKind::WithinNorm);
        let lost = listed.replace("Ok ┊ Diskless", "Connecting(n1) ┊ Unknown");
        assert_eq!(said(&lost)[0].0, StatementKind::Unreachable);
    }
}
