//! Who waits behind processes of which a rule says what is wrong with them: a server without descriptors, workers that all wait, sessions that
//! wait for a row.
//!
//! The problem: whoever waits for such a server waits in a queue of a socket, for a thread that looks idle, so that no way leads to the
//! trouble. The choice: here the trouble is known already, and its process is enough. In: waits and processes. Out: whoever waited for one of these
//! for long, directly or through others.

use super::path::{Graph, Step};
use super::roots::{MIN_LONGEST_NS, Waiter, join, waiter, waits};
use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::{Attributed, AttributedWait, ThreadName};
use std::collections::{BTreeSet, HashMap};

/// How often those behind somebody who was found are looked for.
const MAX_ROUNDS: usize = 8;

/// All waits of a machine for somebody, with where they lead.
#[derive(Debug)]
pub(crate) struct Ways<'a> {
    graph: Graph<'a>,
    ways: Vec<(&'a AttributedWait, Vec<Step<'a>>)>,
    servers: HashMap<&'a str, &'a ThreadName>,
}

impl<'a> Ways<'a> {
    pub(crate) fn of(attributed: &'a Attributed, facts: &'a SystemFacts) -> Ways<'a> {
        let graph = Graph::new(attributed, facts);
        let rows = attributed.waits.iter().filter(|row| waits(row) && is_long(row));
        let ways = rows.map(|row| (row, graph.way(row))).collect();
        let servers = graph.servers();
        Ways { graph, ways, servers }
    }

    /// Those who waited for these processes. `except`: who keeps these from going on waits for them, too, and is no victim.
    pub(crate) fn behind(&self, pids: &BTreeSet<u32>, except: &BTreeSet<u32>) -> Vec<Waiter<'a>> {
        let mut known = pids.clone();
        let mut found = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let mut new = BTreeSet::new();
            for (row, way) in &self.ways {
                let pid = row.asker.name.pid;
                if known.contains(&pid) || except.contains(&pid) || !self.reaches(way, &known) {
                    continue;
                }
                let directly = self.reaches(&way[..way.len().min(2)], pids);
                join(&mut found, waiter(row, directly));
                new.insert(pid);
            }
            if new.is_empty() {
                break;
            }
            known.extend(new);
        }
        found
    }

    /// What these processes wait for, and those that they wait for: causes, with what they are about.
    pub(crate) fn met(&self, pids: &BTreeSet<u32>) -> Vec<(Cause, Option<&'a str>)> {
        let theirs = self
            .ways
            .iter()
            .filter(|(row, _)| pids.contains(&row.asker.name.pid));
        let steps = theirs.flat_map(|(_, way)| way.iter());
        let met = steps.filter_map(|step| {
            let cause = step.cause?;
            let row = self.graph.row(step.id(), cause);
            Some((cause, row.map(|row| row.resource.name.as_str())))
        });
        met.collect()
    }

    /// Whether somebody on this way asks one of these processes, or asks at an address where one of them answers.
    fn reaches(&self, way: &[Step<'a>], pids: &BTreeSet<u32>) -> bool {
        let asks = |step: &Step<'_>| step.cause.is_some_and(asks);
        for (at, step) in way.iter().enumerate() {
            if at > 0 && pids.contains(&step.name.pid) {
                return true;
            }
            if !asks(step) {
                return false;
            }
        }
        let last = way.last().and_then(|last| self.graph.asked_at(last));
        let server = last.and_then(|address| self.servers.get(address));
        server.is_some_and(|server| pids.contains(&server.pid))
    }
}

/// Whether a thread that waits so has asked for something, or needs what another one has.
fn asks(cause: Cause) -> bool {
    super::ends::depends(cause) || matches!(cause, Cause::NetConnect | Cause::NetSend | Cause::ProcessChild)
}

/// Whether it waited for as long as somebody notices. Who gives up sooner, and asks again, waits as well.
fn is_long(row: &AttributedWait) -> bool {
    let longest: Ns = row.max.min(row.ns);
    longest >= MIN_LONGEST_NS || row.timed_out > 0 && row.ns >= MIN_LONGEST_NS
}
