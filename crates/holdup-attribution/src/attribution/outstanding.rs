//! Since when an event loop awaits answers: a loop that others stir looks many times before one comes, and no single wait is as long.
//!
//! In: at each of its waits, the sockets on which a connection or an answer is outstanding. Out: how long each of them is.

use holdup_evidence::Ns;

/// Sockets that are remembered of one loop. Those beyond begin anew with each wait.
const MAX_SOCKETS: usize = 256;

/// A socket on which something is outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// The socket.
    pub(super) inode: u64,
    /// A connection that is being made, and no answer.
    pub(super) connecting: bool,
}

/// What is outstanding.
#[derive(Debug, Clone, Default)]
pub(super) struct Outstanding {
    since: Vec<(Asked, Ns)>,
}

impl Outstanding {
    /// The loop began to wait at `start`, with these outstanding. What is outstanding no more is forgotten. `all`: whether the loop's
    /// set is known; otherwise connections that were being made still are, as far as anybody knows.
    pub(super) fn renew(&mut self, start: Ns, now: &[Asked], all: bool) {
        let all = all || self.since.len() >= MAX_SOCKETS;
        self.since
            .retain(|(asked, _)| now.contains(asked) || asked.connecting && !all);
        for asked in now {
            let known = self.since.iter().any(|(known, _)| known.inode == asked.inode);
            if !known && self.since.len() < MAX_SOCKETS {
                self.since.push((*asked, start));
            }
        }
    }

    /// Something came on that socket.
    pub(super) fn over(&mut self, inode: u64) {
        self.since.retain(|(asked, _)| asked.inode != inode);
    }

    /// Since when something is outstanding there.
    pub(super) fn since(&self, inode: u64) -> Option<Ns> {
        let found = self.since.iter().find(|(asked, _)| asked.inode == inode);
        found.map(|(_, since)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, MAX_SOCKETS, Outstanding};

    const CONNECTION: Asked = Asked {
        inode: 1,
        connecting: true,
    };
    const ANSWER: Asked = Asked {
        inode: 2,
        connecting: false,
    };

    #[test]
    fn what_stays_outstanding_keeps_its_beginning() {
        let mut outstanding = Outstanding::default();
        outstanding.renew(10, &[CONNECTION], true);
        outstanding.renew(20, &[ANSWER, CONNECTION], true);
        assert_eq!(outstanding.since(1), Some(10));
        assert_eq!(outstanding.since(2), Some(20));
        outstanding.over(2);
        outstanding.renew(30, &[ANSWER, CONNECTION], true);
        assert_eq!(outstanding.since(2), Some(30), "answered, and asked anew");
        outstanding.renew(40, &[ANSWER], true);
        assert_eq!(outstanding.since(1), None, "it left the set");
    }

    #[test]
    fn a_set_that_is_not_known_ends_no_connection_and_every_question() {
        let mut outstanding = Outstanding::default();
        outstanding.renew(10, &[CONNECTION, ANSWER], true);
        outstanding.renew(20, &[], false);
        assert_eq!(outstanding.since(1), Some(10));
        assert_eq!(outstanding.since(2), None);
    }

    #[test]
    fn a_loop_with_many_connections_takes_bounded_memory() {
        let many = (0..2 * MAX_SOCKETS as u64).map(|inode| Asked {
            inode,
            connecting: true,
        });
        let many: Vec<Asked> = many.collect();
        let mut outstanding = Outstanding::default();
        outstanding.renew(10, &many, true);
        assert_eq!(outstanding.since.len(), MAX_SOCKETS);
    }
}
