//! What is made anew, from the records about it. Addresses and first bytes are hostile.

use super::network::address;
use super::{memory, optional_object};
use crate::decode::RawEvent;
use crate::skeleton::types as wire;
use holdup_evidence::ThreadId;
use holdup_evidence::churn::{Closed, Closer, Conversation, Hello, Made, Turned};

pub(super) fn made_by(raw: &wire::holdup_memory) -> RawEvent {
    let what = match wire::holdup_made(raw.seq) {
        wire::holdup_made::HOLDUP_MADE_THREAD => Made::Thread,
        wire::holdup_made::HOLDUP_MADE_PROCESS => Made::Process,
        _ => Made::Connection,
    };
    RawEvent::MadeBy(what, Box::new(memory(raw)))
}

pub(super) fn hello(raw: &wire::holdup_hello) -> RawEvent {
    RawEvent::Hello(Hello {
        at: raw.at,
        connection: raw.connection,
        socket: optional_object(raw.object),
        answer: raw.answer != 0,
        offset: raw.offset,
        bytes: raw.bytes.iter().take(raw.len as usize).copied().collect(),
    })
}

pub(super) fn conversation(raw: &wire::holdup_conversation) -> RawEvent {
    let step = wire::holdup_conversation_step(u32::from(raw.step));
    if step == wire::holdup_conversation_step::HOLDUP_CONVERSATION_TURNED {
        return RawEvent::Turned(Turned {
            at: raw.at,
            connection: raw.connection,
            turns: raw.turns,
            second_bytes: raw.second,
            second_answered: raw.second_answered,
        });
    }
    let closer = match wire::holdup_closer(raw.closer) {
        wire::holdup_closer::HOLDUP_CLOSED_HERE => Some(Closer::Here),
        wire::holdup_closer::HOLDUP_CLOSED_BY_PEER => Some(Closer::Peer),
        _ => None,
    };
    let made = raw.made.max(raw.began);
    RawEvent::Conversation(Conversation {
        at: raw.at.max(made),
        thread: ThreadId(raw.head.thread),
        connection: raw.connection,
        accepted: raw.accepted != 0,
        end: address(raw.family, raw.end, raw.port),
        began: raw.began,
        made,
        closed: (step == wire::holdup_conversation_step::HOLDUP_CONVERSATION_CLOSED).then_some(Closed {
            turns: raw.turns,
            second_began: raw.second_began,
            second_answered: raw.second_answered,
            second_bytes: raw.second,
            third_began: raw.third_began,
            closer,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::{conversation, hello};
    use crate::decode::RawEvent;
    use crate::skeleton::types as wire;
    use holdup_evidence::churn::Closer;

    #[test]
    fn a_length_beyond_the_bytes_takes_those_that_are_there() {
        let raw = wire::holdup_hello {
            len: u32::MAX,
            ..wire::holdup_hello::default()
        };
        let RawEvent::Hello(hello) = hello(&raw) else {
            panic!("another record");
        };
        assert_eq!(hello.bytes.len(), raw.bytes.len());
    }

    #[test]
    fn what_a_client_says_more_is_no_connection() {
        let raw = wire::holdup_conversation {
            step: 2,
            turns: 2,
            second: 80,
            at: 9,
            ..wire::holdup_conversation::default()
        };
        let RawEvent::Turned(turned) = conversation(&raw) else {
            panic!("another record");
        };
        assert_eq!((turned.at, turned.turns, turned.second_bytes), (9, 2, 80));
    }

    #[test]
    fn who_closed_first_is_told_of_closed_connections() {
        let raw = wire::holdup_conversation {
            step: 1,
            closer: 2,
            began: 9,
            ..wire::holdup_conversation::default()
        };
        let look_up = |raw| match conversation(raw) {
            RawEvent::Conversation(look_up) => look_up,
            other => panic!("{other:?}"),
        };
        assert_eq!(look_up(&raw).closed.unwrap().closer, Some(Closer::Peer));
        assert_eq!(
            (look_up(&raw).made, look_up(&raw).at),
            (9, 9),
            "time does not run backwards"
        );
        assert_eq!(
            look_up(&wire::holdup_conversation { step: 0, ..raw }).closed,
            None
        );
    }
}
