//! Who waits for whom in a database server, read from its memory.
//!
//! In: memory, and addresses of symbols that the server exports to its extensions. Out: sessions that wait for a lock, and the sessions
//! that they wait for. No offset is taken from a version's sources where it can be found: structures refer to each other in ways
//! that nothing else does, and what does not is not believed.

pub mod mariadb;
pub mod pgbouncer;
pub mod postgres;

use std::collections::HashSet;

/// Sessions of a server that are looked at.
pub const MAX_SESSIONS: usize = 1024;

/// Members of one list that are walked: locks of a session, holders of a lock, sessions in its queue.
const MAX_MEMBERS: usize = 2048;

/// A walk along a list of somebody else's: it ends, whatever stands there.
#[derive(Debug, Default)]
struct Walk(HashSet<u64>);

impl Walk {
    /// Whether to go on to that member.
    fn goes_on(&mut self, to: u64) -> bool {
        to != 0 && self.0.len() < MAX_MEMBERS && self.0.insert(to)
    }
}
