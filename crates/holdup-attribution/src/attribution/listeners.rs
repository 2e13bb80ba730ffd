//! Requests by the listener that they came in on.
//!
//! In: requests as they are answered, and those that are open at the end. Out: how many each listener had, and how long they took.
//! Of how long only the sample that is kept of all is known; how many is what that stands for.

use super::requests::Answered;
use holdup_evidence::Ns;
use holdup_model::attributed::OfListener;
use std::collections::BTreeMap;

/// Listeners distinguished: a program with more is a proxy for whatever there is, and the first say what the rest do.
const MAX_LISTENERS: usize = 64;

/// What is counted of each.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    answered: u64,
    longest: Ns,
}

/// Listeners with requests, by port; 0 stands for all Unix sockets.
#[derive(Debug, Clone, Default)]
pub(super) struct Listeners {
    counts: BTreeMap<u16, Count>,
}

impl Listeners {
    /// A request was answered that stands for so many.
    pub(super) fn answered(&mut self, port: u16, ns: Ns, weight: u32) {
        if self.counts.len() >= MAX_LISTENERS && !self.counts.contains_key(&port) {
            return;
        }
        let count = self.counts.entry(port).or_default();
        count.answered += u64::from(weight);
        count.longest = count.longest.max(ns);
    }

    /// What it comes to. `sorted`: those kept, shortest first; `open`: ports of those that nobody has answered.
    pub(super) fn finish(mut self, sorted: &[Answered], open: &[u16]) -> Vec<OfListener> {
        for port in open {
            if self.counts.len() < MAX_LISTENERS {
                self.counts.entry(*port).or_default();
            }
        }
        let of = |(port, count): (u16, Count)| {
            let kept: Vec<Ns> = sorted
                .iter()
                .filter(|one| one.port == port)
                .map(|one| one.ns)
                .collect();
            let at = |percent: usize| {
                let rank = (kept.len() * percent).div_ceil(100).max(1) - 1;
                kept.get(rank).copied().unwrap_or(0)
            };
            OfListener {
                port: (port != 0).then_some(port),
                count: count.answered,
                p50: at(50),
                p99: at(99),
                longest: count.longest,
                open: open.iter().filter(|one| **one == port).count() as u64,
            }
        };
        self.counts.into_iter().map(of).collect()
    }
}

/// The port that all of these came in on, where others came in elsewhere.
pub(super) fn only_port(of: &[Answered], all: &[Answered]) -> Option<u16> {
    let port = of.first()?.port;
    let same = of.iter().all(|one| one.port == port);
    (same && port != 0 && all.iter().any(|one| one.port != port)).then_some(port)
}
