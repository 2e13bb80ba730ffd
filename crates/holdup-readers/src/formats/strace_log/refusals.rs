//! Connections that are refused, and how long is slept until the next is asked for.
//!
//! In: connects and sleeps by process and parent. Out: [`Refused`], one a peer. A shell's loop asks and sleeps in
//! processes of their own: so what a process does counts for its parent too.

use super::threads::Place;
use holdup_evidence::Ns;
use holdup_evidence::observed::Refused;
use std::collections::HashMap;

/// Peers that are remembered.
const PEERS: usize = 1_000;

/// `-ECONNREFUSED`.
pub(super) const REFUSED: i64 = -111;

/// A process and its parent.
type Family = (Place, Option<Place>);

/// What has passed since a refusal.
#[derive(Debug, Clone, Copy)]
struct After {
    peer: usize,
    slept: Ns,
    sleeps: u64,
}

/// Peers and what became of requests to them.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    peers: Vec<(Refused, Option<i64>)>,
    by_peer: HashMap<Box<str>, usize>,
    /// By process: the peer that refused it or its child last, and the sleep since.
    after: HashMap<Place, After>,
}

impl Refusals {
    pub(super) fn connect(
        &mut self,
        family: Family,
        peer: &str,
        by: (&str, u32),
        result: Option<i64>,
        at: Option<i64>,
    ) {
        let places = [Some(family.0), family.1];
        /// `-EINPROGRESS`: nothing has come of it yet.
        const BEGUN: i64 = -115;
        if result == Some(BEGUN) {
            return;
        }
        // Sleep counts once another request follows it.
        let mut since: Option<After> = None;
        for place in places.into_iter().flatten() {
            since = since.or(self.after.remove(&place));
        }
        if let Some(since) = since
            && let Some((entry, _)) = self.peers.get_mut(since.peer)
        {
            entry.slept = entry.slept.saturating_add(since.slept);
            entry.sleeps += since.sleeps;
        }
        let known = self.by_peer.get(peer).copied();
        let refused = result == Some(REFUSED);
        let made = result == Some(0);
        let Some(number) = known.or_else(|| refused.then(|| self.begin(peer)).flatten()) else {
            return;
        };
        let Some((entry, first)) = self.peers.get_mut(number) else {
            return;
        };
        if refused {
            entry.refused += 1;
            entry.by = by.0.to_owned();
            entry.pid = by.1;
            *first = first.or(at);
            for place in places.into_iter().flatten() {
                let after = After {
                    peer: number,
                    slept: 0,
                    sleeps: 0,
                };
                self.after.insert(place, after);
            }
        } else if made {
            if entry.made == 0
                && let (Some(first), Some(at)) = (*first, at)
            {
                entry.until = u64::try_from(at.saturating_sub(first)).unwrap_or(0);
            }
            entry.made += 1;
        }
    }

    /// A sleep of a process, or of a child of the one whose other child was refused.
    pub(super) fn sleep(&mut self, family: Family, ns: Ns) {
        let places = [Some(family.0), family.1];
        let known = places
            .into_iter()
            .flatten()
            .find(|place| self.after.contains_key(place));
        if let Some(after) = known.and_then(|place| self.after.get_mut(&place)) {
            after.slept = after.slept.saturating_add(ns);
            after.sleeps += 1;
        }
    }

    pub(super) fn finish(self) -> Vec<Refused> {
        self.peers.into_iter().map(|(entry, _)| entry).collect()
    }

    fn begin(&mut self, peer: &str) -> Option<usize> {
        if self.peers.len() >= PEERS {
            return None;
        }
        self.peers.push((
            Refused {
                peer: peer.to_owned(),
                ..Refused::default()
            },
            None,
        ));
        self.by_peer.insert(peer.into(), self.peers.len() - 1);
        Some(self.peers.len() - 1)
    }
}
