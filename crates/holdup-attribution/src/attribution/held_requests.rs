//! Requests that a timer of their server's own holds up.
//!
//! The problem: what a server writes as its timer runs out, where its client has had the last word, is an answer that was held back, or it is
//! something that nobody has asked for: a heartbeat, a part of a stream, the end of a wait that the client had asked for. In: what a client
//! said, and what the server had said before. Out: those that want an answer. A request with a name tells by that; of what has none, a word that
//! follows the server's own, which a timer has made, at once is about that one.

use super::earlier::PAUSE;
use holdup_evidence::{Earlier, Ns, Request};
use holdup_knowledge::redis;
use holdup_model::attributed::HeldByTimer;
use std::collections::HashMap;

/// Connections of which it is kept when their server last spoke by itself, sixteen bytes each.
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
    /// `line`: its name; `after`: how long the server had been silent there since it spoke by itself, `None` where it had not.
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
        // Who spoke again without an answer to the last time does not want one. Segments are counted, of which a long answer has many: only
        // where there are as many both ways it is certain that there was one answer to each word before.
        let each = match one.words {
            Some(words) => words.received.checked_sub(1) == Some(words.sent),
            None => one.after.is_none(),
        };
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
    /// Connections on which the server's last word was one that a timer had made, with when that was.
    last: HashMap<u64, Ns>,
    /// There were too many of them, and they were forgotten.
    lost: bool,
}

impl Held {
    /// How long the server had been silent on a connection, if its last word there was one that a timer had made, or may have been: then 0.
    pub(super) fn since_last(&self, connection: u64, at: Ns) -> Option<Ns> {
        match self.last.get(&connection) {
            Some(last) => Some(at.saturating_sub(*last)),
            None => self.lost.then_some(0),
        }
    }

    /// The server has said something. `by_timer`: as a timer had run out, so that the next word of its client may be about that.
    pub(super) fn answered(&mut self, answer: &Request, by_timer: bool) {
        if !by_timer {
            self.last.remove(&answer.connection);
            return;
        }
        if self.last.len() >= CONNECTIONS_MAX {
            self.last.clear();
            self.lost = true;
        }
        self.last.insert(answer.connection, answer.at);
    }

    /// A connection was closed: the next one may have its key.
    pub(super) fn closed(&mut self, connection: u64) {
        self.last.remove(&connection);
    }

    /// This was answered at `at` as a timer of the thread `tid` had run out.
    pub(super) fn add(&mut self, asked: &Asked, at: Ns, tid: u32) {
        let (ns, weight) = (at.saturating_sub(asked.at), u64::from(asked.weight));
        let held = &mut self.by_timer;
        held.count += weight;
        held.ns = held.ns.saturating_add(ns.saturating_mul(weight));
        if ns >= held.longest {
            (held.longest, held.by) = (ns, Some(tid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, CONNECTIONS_MAX, Held};
    use holdup_evidence::{Clock, Earlier, Ns, Request, RequestStep, ThreadId, Words};

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

    fn answer(connection: u64, at: Ns) -> Request {
        Request {
            at,
            thread: ThreadId(1),
            clock: Clock::default(),
            connection,
            weight: 1,
            step: RequestStep::Answered,
        }
    }

    #[test]
    fn only_a_word_that_a_timer_made_makes_the_next_one_a_reply_to_it() {
        let mut held = Held::default();
        let wants = |held: &Held, at| Asked::new(at, 1, None, held.since_last(7, at)).wants_answer;
        held.answered(&answer(7, SECOND), false);
        assert!(
            wants(&held, SECOND + 300_000),
            "a statement after the last answer"
        );
        held.answered(&answer(7, 2 * SECOND), true);
        assert!(!wants(&held, 2 * SECOND + 300_000), "the answer to a heartbeat");
        assert!(wants(&held, 4 * SECOND));
        held.closed(7);
        assert!(wants(&held, 2 * SECOND + 300_000), "another connection");
    }

    #[test]
    fn of_too_many_connections_nothing_without_a_name_wants_an_answer() {
        let mut held = Held::default();
        for connection in 0..=CONNECTIONS_MAX as u64 {
            held.answered(&answer(connection, SECOND), true);
        }
        let after = held.since_last(7, 3 * SECOND);
        assert!(!Asked::new(0, 1, None, after).wants_answer);
        assert!(Asked::new(0, 1, Some("GET /page"), after).wants_answer);
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
        assert!(
            !wants(Some(SECOND), Some((10, 40))),
            "answers of several segments hide who spoke twice"
        );
        assert!(wants(None, None) && !wants(Some(SECOND), None), "not counted");
    }
}
