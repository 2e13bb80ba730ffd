//! Requests that a timer of their server's own holds up.
//!
//! The problem: what a server writes as its timer runs out, where its client has had the last word, is an answer that was held back, or it is
//! something that nobody has asked for: a heartbeat, a part of a stream, the end of a wait that the client had asked for. In: what a client
//! said, and what the server had said before. Out: those that want an answer. A request with a name tells by that; of what has none, a word that
//! follows the server's own at once is about that one.

use super::earlier::PAUSE;
use holdup_evidence::{Earlier, Ns, Request};
use holdup_knowledge::redis;
use holdup_model::attributed::HeldByTimer;
use std::collections::HashMap;

/// Connections of which it is kept when something was last said there, sixteen bytes each.
const CONNECTIONS_MAX: usize = 65_536;

/// What a client has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// When.
    pub(super) at: Ns,
    /// For how many it stands.
    weight: u32,
    /// Whether it is something to be answered as soon as that can be.
    pub(super) wants_answer: bool,
}

impl Asked {
    /// `line`: its name; `after`: how long the server had been silent there, `None` where it had said nothing.
    pub(super) fn new(at: Ns, weight: u32, line: Option<&str>, after: Option<Ns>) -> Asked {
        let wants_answer = match line {
            Some(line) => !redis::waits_by_design(line),
            None => after.is_none_or(|after| after >= PAUSE),
        };
        Asked {
            at,
            weight,
            wants_answer,
        }
    }

    /// What was said before anybody looked.
    pub(super) fn earlier(one: &Earlier) -> Asked {
        let asked = Asked::new(one.said_at, 1, None, one.after);
        // Who spoke again without an answer to the last time does not want one.
        let each = one
            .words
            .is_none_or(|words| words.sent >= words.received.saturating_sub(1));
        Asked {
            wants_answer: asked.wants_answer && each,
            ..asked
        }
    }
}

/// Those that were held.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    pub(super) by_timer: HeldByTimer,
    /// When the server last answered on a connection.
    last: HashMap<u64, Ns>,
}

impl Held {
    /// How long the server had been silent on a connection, if it has answered there.
    pub(super) fn since_last(&self, connection: u64, at: Ns) -> Option<Ns> {
        Some(at.saturating_sub(*self.last.get(&connection)?))
    }

    /// The server has said something.
    pub(super) fn answered(&mut self, answer: &Request) {
        if self.last.len() >= CONNECTIONS_MAX {
            self.last.clear();
        }
        self.last.insert(answer.connection, answer.at);
    }

    /// This was answered as a timer had run out.
    pub(super) fn add(&mut self, asked: &Asked, answer: &Request) {
        let (ns, weight) = (answer.at.saturating_sub(asked.at), u64::from(asked.weight));
        let held = &mut self.by_timer;
        held.count += weight;
        held.ns = held.ns.saturating_add(ns.saturating_mul(weight));
        if ns >= held.longest {
            (held.longest, held.by) = (ns, Some(answer.thread.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Asked;
    use holdup_evidence::{Earlier, Ns, Words};

    const SECOND: Ns = 1_000_000_000;

    #[test]
    fn a_request_with_a_name_wants_an_answer_unless_it_asks_to_wait() {
        let wants = |line| Asked::new(0, 1, Some(line), Some(1_000)).wants_answer;
        assert!(wants("GET /page") && wants("HGETALL") && wants("POST /blpop"));
        assert!(!wants("BRPOP"), "a pop with a limit of time");
        assert!(!wants("REPLCONF"), "a replica that says how far it is");
        assert!(!wants("SUBSCRIBE") && !wants("XREAD") && !wants("WAIT"));
    }

    #[test]
    fn a_word_without_a_name_that_follows_the_servers_own_is_no_request() {
        let wants = |after| Asked::new(0, 1, None, after).wants_answer;
        assert!(wants(None), "the first word of all");
        assert!(wants(Some(2 * SECOND)), "after a pause");
        assert!(!wants(Some(300_000)), "the answer to a heartbeat");
    }

    #[test]
    fn who_spoke_before_observation_wants_an_answer_if_there_was_one_each_time() {
        let wants = |after, words: Option<(u32, u32)>| {
            let earlier = Earlier {
                pid: 1,
                connection: 1,
                inode: 1,
                said_at: 0,
                tick: 1,
                by_client: true,
                after,
                words: words.map(|(received, sent)| Words { received, sent }),
                unclear: false,
            };
            Asked::earlier(&earlier).wants_answer
        };
        assert!(wants(Some(SECOND), Some((10, 9))));
        assert!(wants(None, Some((1, 0))));
        assert!(
            !wants(Some(SECOND), Some((90, 9))),
            "a replica reports each second"
        );
        assert!(!wants(Some(300_000), Some((10, 9))), "it answers heartbeats");
    }
}
