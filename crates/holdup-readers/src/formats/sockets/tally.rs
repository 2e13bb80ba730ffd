//! One list of sockets being counted: bounded, whatever the list's length.

use super::Row;
use crate::gather::{Out, text_of};
use holdup_evidence::observed::{
    Quote, SeenConnection, SeenQueue, SocketCount, SocketKey, SocketTable, TcpState,
};
use std::collections::HashMap;

/// Values of one thing in common (peers, own addresses, processes) that are counted at a time.
const NAMES: usize = 20_000;

/// Of those that are reported for each state, most first.
const MAX_CONNECTIONS: usize = 8;

/// Listeners and connections that are reported.
const QUEUES: usize = 200;
const CONNECTIONS: usize = 200;

/// Bytes of an address or the name of a process that are kept.
const MAX_BYTES: usize = 120;

/// Bytes that were not answered, from which a connection is worth a look: less is on its way at any instant. What is unread
/// is always reported.
const MIN_UNANSWERED_BYTES: u64 = 16_384;

/// States in the order of their numbers.
const STATES: [TcpState; 11] = [
    TcpState::Established,
    TcpState::SynSent,
    TcpState::SynReceived,
    TcpState::FinWait1,
    TcpState::FinWait2,
    TcpState::TimeWait,
    TcpState::CloseWait,
    TcpState::LastAck,
    TcpState::Listen,
    TcpState::Closing,
    TcpState::Closed,
];

/// Details of a connection, from `ss -i` or from its timer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ConnectionDetails {
    /// Times that what is under way was sent again without an answer.
    pub unanswered: u64,
    pub retransmitted: u64,
    pub segments: Option<u64>,
    /// Nanoseconds.
    pub window_full: Option<u64>,
    pub silent: Option<u64>,
    pub probes: bool,
}

/// How many there are of each state, and where the first was.
type Counts = [(u64, Quote); STATES.len()];

/// One list.
#[derive(Debug, Default)]
pub(super) struct Tally {
    begun: Option<Quote>,
    total: u64,
    listeners: u64,
    states: Counts,
    locals: HashMap<Box<[u8]>, Box<Counts>>,
    peers: HashMap<Box<[u8]>, Box<Counts>>,
    processes: HashMap<Box<[u8]>, Box<Counts>>,
    queues: Vec<SeenQueue>,
    connections: Vec<SeenConnection>,
    left_out: u64,
    /// The connection that what comes next may say more of.
    last: Option<SeenConnection>,
    has_figures: bool,
}

impl Tally {
    /// The list begins here.
    pub(super) fn begin(&mut self, out: &Out<'_>) {
        self.begun.get_or_insert_with(|| out.here());
    }

    /// A row of it.
    pub(super) fn add(&mut self, row: &Row<'_>, details: &ConnectionDetails, limited: bool, out: &Out<'_>) {
        self.begin(out);
        self.settle();
        let here = out.here();
        self.total += 1;
        let Some(at) = STATES.iter().position(|state| *state == row.state) else {
            return;
        };
        count(&mut self.states, at, &here);
        if row.state == TcpState::Listen {
            self.listeners += 1;
            self.queue(row, false, limited.then_some(row.to_send), here);
            return;
        }
        let mut full = name(&mut self.locals, row.local, at, &here);
        // Who asks for connections and does not answer has a port of its own for each.
        let peer = match row.state {
            TcpState::SynReceived => host(row.peer),
            _ => row.peer,
        };
        full |= name(&mut self.peers, peer, at, &here);
        if let Some(process) = row.process {
            full |= name(&mut self.processes, process, at, &here);
        }
        self.left_out += u64::from(full);
        // Of those, the text is only made where it may be reported.
        let open = matches!(
            row.state,
            TcpState::Established | TcpState::SynSent | TcpState::CloseWait
        );
        if open && (unread(Some(row.state), row.received) || row.to_send > 0 || details.unanswered > 0) {
            self.last = Some(SeenConnection {
                state: Some(row.state),
                local: text(row.local),
                peer: text(row.peer),
                process: row.process.map(text),
                unread: row.received,
                unsent: row.to_send,
                quote: here,
                ..SeenConnection::default()
            });
            self.tell(details);
        }
    }

    /// A socket of datagrams, where some wait in it.
    pub(super) fn datagrams(&mut self, row: &Row<'_>, quote: Quote) {
        if row.received > 0 {
            self.settle();
            self.last = Some(SeenConnection {
                local: text(row.local),
                peer: text(row.peer),
                process: row.process.map(text),
                unread: row.received,
                quote,
                ..SeenConnection::default()
            });
        }
    }

    /// A listener's queue, where somebody waits in it.
    pub(super) fn queue(&mut self, row: &Row<'_>, unix: bool, limit: Option<u64>, quote: Quote) {
        if row.received == 0 {
            return;
        }
        self.queues.push(SeenQueue {
            local: text(row.local),
            unix,
            waiting: row.received,
            limit,
            process: row.process.map(text),
            quote,
        });
        if self.queues.len() >= 2 * QUEUES {
            self.queues.sort_by_key(|queue| std::cmp::Reverse(queue.waiting));
            self.left_out += (self.queues.len() - QUEUES) as u64;
            self.queues.truncate(QUEUES);
        }
    }

    /// More of the row before.
    pub(super) fn tell(&mut self, details: &ConnectionDetails) {
        if let Some(last) = &mut self.last {
            last.unanswered = last.unanswered.max(details.unanswered);
            last.retransmitted = last.retransmitted.max(details.retransmitted);
            last.segments = details.segments.or(last.segments);
            last.window_full = details.window_full.or(last.window_full);
            last.silent = details.silent.or(last.silent);
            last.probes |= details.probes;
        }
    }

    /// The list has the figures of `ss -i`.
    pub(super) fn figures(&mut self) {
        self.has_figures = true;
    }

    /// Whether the row before was of a connection that is looked at.
    pub(super) fn is_open(&self) -> bool {
        self.last.is_some()
    }

    /// The row before is complete.
    fn settle(&mut self) {
        let Some(last) = self.last.take() else { return };
        let waits = unread(last.state, last.unread) || last.unsent >= MIN_UNANSWERED_BYTES;
        if !waits && last.unanswered == 0 && last.retransmitted == 0 && !last.probes {
            return;
        }
        self.connections.push(last);
        if self.connections.len() >= 2 * CONNECTIONS {
            self.sort();
            self.left_out += (self.connections.len() - CONNECTIONS) as u64;
            self.connections.truncate(CONNECTIONS);
        }
    }

    fn sort(&mut self) {
        let weight = |one: &SeenConnection| (one.unanswered, one.unsent.max(one.unread), one.retransmitted);
        self.connections
            .sort_by_key(|connection| std::cmp::Reverse(weight(connection)));
    }

    /// The list is over.
    pub(super) fn flush(&mut self, out: &mut Out<'_>) {
        self.settle();
        self.sort();
        let mut table = std::mem::take(self);
        let Some(quote) = table.begun else { return };
        table.queues.sort_by_key(|queue| std::cmp::Reverse(queue.waiting));
        table.queues.truncate(QUEUES);
        table.connections.truncate(CONNECTIONS);
        let mut counts = Vec::new();
        for (state, (count, quote)) in STATES.iter().zip(&table.states) {
            if *count > 0 {
                counts.push(SocketCount {
                    state: *state,
                    by: SocketKey::All,
                    of: String::new(),
                    count: *count,
                    quote: quote.clone(),
                });
            }
        }
        most(&mut counts, SocketKey::Local, &table.locals);
        most(&mut counts, SocketKey::Peer, &table.peers);
        most(&mut counts, SocketKey::Process, &table.processes);
        out.account().left_out += table.left_out;
        out.sockets(SocketTable {
            total: table.total,
            listening: (table.listeners > 0).then_some(table.listeners),
            queues: table.queues,
            counts,
            connections: table.connections,
            has_figures: table.has_figures,
            quote,
        });
    }
}

fn count(counts: &mut Counts, at: usize, here: &Quote) {
    if let Some((count, first)) = counts.get_mut(at) {
        if *count == 0 {
            *first = here.clone();
        }
        *count += 1;
    }
}

/// Counts under a name; whether there was no room for it.
fn name(names: &mut HashMap<Box<[u8]>, Box<Counts>>, name: &[u8], at: usize, here: &Quote) -> bool {
    let name = name.get(..MAX_BYTES).unwrap_or(name);
    if let Some(counts) = names.get_mut(name) {
        count(counts, at, here);
        return false;
    }
    if names.len() >= NAMES {
        // What there is only one of is no pile.
        names.retain(|_, counts| counts.iter().map(|(count, _)| count).sum::<u64>() > 1);
        if names.len() >= NAMES {
            return true;
        }
    }
    let mut counts = Box::<Counts>::default();
    count(&mut counts, at, here);
    names.insert(name.into(), counts);
    false
}

/// Of each state the names that have most.
fn most(into: &mut Vec<SocketCount>, by: SocketKey, names: &HashMap<Box<[u8]>, Box<Counts>>) {
    for (at, state) in STATES.iter().enumerate() {
        let of_state = names.iter().filter_map(|(name, counts)| {
            let (count, quote) = counts.get(at)?;
            (*count > 1).then_some((name, *count, quote))
        });
        let mut all: Vec<_> = of_state.collect();
        all.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        into.extend(
            all.into_iter()
                .take(MAX_CONNECTIONS)
                .map(|(name, count, quote)| SocketCount {
                    state: *state,
                    by,
                    of: text(name),
                    count,
                    quote: quote.clone(),
                }),
        );
    }
}

/// Whether bytes wait for a reader. The one of a connection that its peer has closed is its end.
fn unread(state: Option<TcpState>, bytes: u64) -> bool {
    bytes > u64::from(state == Some(TcpState::CloseWait))
}

/// An address without its port.
fn host(address: &[u8]) -> &[u8] {
    let port = address.iter().rposition(|byte| *byte == b':');
    port.and_then(|port| address.get(..port)).unwrap_or(address)
}

/// Text of an address or name, cut.
fn text(bytes: &[u8]) -> String {
    text_of(bytes.get(..MAX_BYTES).unwrap_or(bytes))
}
