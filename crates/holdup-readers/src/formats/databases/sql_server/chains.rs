//! Sessions of SQL Server that block each other: who stands at the beginning of each chain.

use holdup_evidence::observed::Quote;
use std::collections::BTreeMap;

/// Steps of a chain that are followed.
const MAX_STEPS: usize = 100;

/// A session, and who blocks it.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) blocker: Option<u64>,
    pub(super) wait: String,
    pub(super) ms: Option<f64>,
    pub(super) does: String,
    pub(super) quote: Quote,
}

/// Sessions by their number.
#[derive(Debug, Default)]
pub(super) struct Sessions(pub(super) BTreeMap<u64, Session>);

impl Sessions {
    /// Those that another one blocks.
    pub(super) fn blocked(&self) -> Vec<u64> {
        let blocked = self.0.iter().filter(|(_, one)| one.blocker.is_some());
        blocked.map(|(id, _)| *id).collect()
    }

    /// Those that are blocked, by the session at the beginning of their chain; those of a ring have none.
    pub(super) fn chains(&self) -> BTreeMap<u64, Vec<u64>> {
        let mut chains: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for id in self.blocked() {
            if let Some(first) = self.first_of(id) {
                chains.entry(first).or_default().push(id);
            }
        }
        chains
    }

    /// The session at the beginning of the chain that one is in; `None` in a ring.
    fn first_of(&self, id: u64) -> Option<u64> {
        let mut at = id;
        for _ in 0..MAX_STEPS {
            match self.0.get(&at).and_then(|session| session.blocker) {
                Some(blocker) => at = blocker,
                None => return Some(at),
            }
        }
        None
    }

    /// The one of these that has waited longest.
    pub(super) fn longest_wait(&self, ids: &[u64]) -> Option<(u64, &Session)> {
        let sessions = ids.iter().filter_map(|id| Some((*id, self.0.get(id)?)));
        sessions.max_by(|(_, one), (_, other)| one.ms.unwrap_or(0.0).total_cmp(&other.ms.unwrap_or(0.0)))
    }
}
