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
const REFUSED: i64 = -111;

/// A process and its parent.
type Family = (Place, Option<Place>);

/// Peers and what became of requests to them.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    peers: Vec<(Refused, Option<i64>)>,
    by_peer: HashMap<Box<str>, usize>,
    /// By process: the peer that refused it or its child last.
    after: HashMap<Place, usize>,
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
        for place in places.into_iter().flatten() {
            self.after.remove(&place);
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
                self.after.insert(place, number);
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
        let number = self
            .after
            .get(&family.0)
            .or_else(|| self.after.get(&family.1?))
            .copied();
        if let Some((entry, _)) = number.and_then(|number| self.peers.get_mut(number)) {
            entry.slept = entry.slept.saturating_add(ns);
            entry.sleeps += 1;
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
