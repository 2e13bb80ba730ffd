//! The TLS handshake of one connection: of what kind it is, how long it lasts, and so which waits are for it.
//!
//! In: the first records of both directions, and when the client said more. Out: its kind as soon as it is reported, its end, and
//! whether an instant lies in it. The end is the client's last word: with TLS 1.3, and where a session was taken up, that
//! begins the second turn; a full handshake before TLS 1.3 ends with the answer to it. Of TLS 1.3 some clients (Java's) send
//! the record that changes the cipher, which means nothing there, by itself and as soon as the server has begun to answer:
//! that is a turn by itself, and the last word begins the third.

use crate::handshake::{self, Handshake};
use holdup_evidence::Ns;
use holdup_evidence::churn::{Closed, Hello, Turned};

/// Bytes of the first record of one direction that are kept: as many as the source copies.
const HELLO_MOST: usize = 2048;

/// Bytes of a record that changes the cipher: a head (5) and a 1.
const CHANGE_CIPHER: u32 = 6;

/// Bytes of a client's last words in a TLS 1.3 handshake without a certificate of its own: a record to change the cipher (6), and
/// the sum of all before with the longest hash in use (5 + 4 + 48 + 1 + 16). If its second turn was no longer, its first
/// question came in the third.
const FINISHED_MOST: u32 = 80;

/// What is known of a connection's handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tls {
    /// Nothing of one was seen.
    #[default]
    None,
    /// It has begun.
    Begun,
    /// It is of this kind.
    Known(Handshake),
}

/// A connection's handshake so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Shaking {
    pub(super) tls: Tls,
    question: Vec<u8>,
    answer: Vec<u8>,
    began: Ns,
    /// The server wants another hello: whatever follows, the second turn is the handshake's, too.
    again: bool,
    /// The client's second turn: when it began, and its bytes.
    second: Option<(Ns, u32)>,
    third: Option<Ns>,
    /// How long it took, once that is known.
    pub(super) took: Option<Ns>,
}

impl Shaking {
    /// Takes a piece of a first record; returns what kind of handshake it is, if that is known by it.
    pub(super) fn hello(&mut self, hello: &Hello) -> Option<Handshake> {
        let bytes = match hello.answer {
            true => &mut self.answer,
            false => &mut self.question,
        };
        if bytes.len() != hello.offset as usize || bytes.len() + hello.bytes.len() > HELLO_MOST {
            return None;
        }
        bytes.extend(&hello.bytes);
        if self.tls == Tls::None {
            self.tls = Tls::Begun;
            self.began = hello.at;
        }
        if self.tls != Tls::Begun || self.answer.is_empty() {
            return None;
        }
        self.again |= handshake::asks_again(&self.answer);
        let reading = handshake::read(&self.question, &self.answer)?;
        self.tls = Tls::Known(reading);
        (self.question, self.answer) = (Vec::new(), Vec::new());
        Some(reading)
    }

    /// The client has said more; `made` is when the connection was made. Returns how long the handshake took, if it is over by that.
    pub(super) fn turned(&mut self, turned: &Turned, made: Ns) -> Option<Ns> {
        match turned.turns {
            // What changes the cipher is not the last word, and that follows within the turn.
            2 => {
                let began = self.second.filter(|second| second.1 > CHANGE_CIPHER);
                let began = began.map_or(turned.at, |second| second.0);
                self.second = Some((began, turned.second_bytes));
            }
            _ => self.third = self.third.or(Some(turned.at)),
        }
        let Tls::Known(handshake) = self.tls else {
            return None;
        };
        let (began, bytes) = self.second?;
        let end = match (handshake, self.third) {
            (Handshake { tls_1_3: true, .. }, third) if bytes <= CHANGE_CIPHER => third?,
            (Handshake { tls_1_3: true, .. } | Handshake { resumed: true, .. }, _) => began,
            (Handshake { .. }, third) => third.map(|_| turned.second_answered)?,
        };
        self.over(end, made)
    }

    /// The connection is closed. Returns how long the handshake took, if that was not known before.
    pub(super) fn closed(&mut self, closed: &Closed, made: Ns) -> Option<Ns> {
        let Tls::Known(handshake) = self.tls else {
            return None;
        };
        let end = match handshake {
            Handshake { tls_1_3: true, .. } if closed.second_bytes <= CHANGE_CIPHER => closed.third_began,
            Handshake { tls_1_3: true, .. } | Handshake { resumed: true, .. } => closed.second_began,
            Handshake { .. } => closed.second_answered,
        };
        self.over(end, made)
    }

    fn over(&mut self, end: Ns, made: Ns) -> Option<Ns> {
        if self.took.is_some() || end == 0 {
            return None;
        }
        self.took = Some(end.saturating_sub(made));
        self.took
    }

    /// Whether its client was in it at that instant, and not before or behind it.
    pub(super) fn lasts_at(&self, at: Ns) -> bool {
        if self.tls == Tls::None || at < self.began {
            return false;
        }
        let Some((_, bytes)) = self.second.filter(|(second, _)| at >= *second) else {
            return true;
        };
        let in_third = self.third.is_some_and(|third| at >= third);
        !in_third
            && match self.tls {
                Tls::Known(Handshake { tls_1_3: true, .. }) => bytes <= CHANGE_CIPHER,
                Tls::Known(Handshake { resumed, .. }) => !resumed,
                Tls::Begun | Tls::None => self.again,
            }
    }

    /// How many turns it took before the first question; `None`: that cannot be determined.
    pub(super) fn turns(&self, closed: &Closed) -> Option<usize> {
        match self.tls {
            Tls::None => Some(0),
            Tls::Begun => None,
            Tls::Known(Handshake { tls_1_3: true, .. }) if closed.second_bytes > FINISHED_MOST => Some(1),
            Tls::Known(Handshake { tls_1_3: true, .. }) => Some(2),
            Tls::Known(Handshake { resumed: true, .. }) => Some(1),
            Tls::Known(Handshake { .. }) => Some(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Shaking, Tls};
    use crate::handshake::Handshake;
    use holdup_evidence::churn::Turned;

    fn shaking_of(tls_1_3: bool, resumed: bool) -> Shaking {
        Shaking {
            tls: Tls::Known(Handshake {
                tls_1_3,
                resumed,
                offered: None,
            }),
            began: 10,
            ..Shaking::default()
        }
    }

    fn turned(at: u64, turns: u32, second_bytes: u32) -> Turned {
        Turned {
            at,
            connection: 1,
            turns,
            second_bytes,
            second_answered: 35,
        }
    }

    #[test]
    fn a_clients_last_word_ends_it() {
        for (tls_1_3, resumed, in_second, took) in [
            (true, false, false, 15),
            (true, true, false, 15),
            (false, true, false, 15),
            (false, false, true, 30),
        ] {
            let mut shaking = shaking_of(tls_1_3, resumed);
            let place = format!("{tls_1_3} {resumed}");
            assert!(
                !shaking.lasts_at(9) && shaking.lasts_at(10) && shaking.lasts_at(19),
                "{place}"
            );
            let first = shaking.turned(&turned(20, 2, 300), 5);
            assert_eq!(shaking.lasts_at(30), in_second, "{place}");
            let second = shaking.turned(&turned(40, 3, 300), 5);
            assert_eq!(first.or(second), Some(took), "{place}");
            assert!(!shaking.lasts_at(40), "{place}");
            assert!(
                shaking.lasts_at(19),
                "what is told late is judged by its own time: {place}"
            );
        }
    }

    #[test]
    fn a_change_of_the_cipher_by_itself_is_no_last_word() {
        let mut shaking = shaking_of(true, false);
        assert_eq!(shaking.turned(&turned(20, 2, 6), 5), None);
        assert!(shaking.lasts_at(30));
        assert_eq!(shaking.turned(&turned(40, 3, 6), 5), Some(35));
        assert!(shaking.lasts_at(30) && !shaking.lasts_at(40));
    }

    #[test]
    fn nor_is_it_one_until_more_follows() {
        let mut shaking = shaking_of(true, false);
        assert_eq!(shaking.turned(&turned(20, 2, 6), 5), None);
        assert_eq!(shaking.turned(&turned(21, 2, 80), 5), Some(16));
        assert!(!shaking.lasts_at(30));
    }

    #[test]
    fn of_an_unknown_kind_the_first_turn_is_all_that_is_sure() {
        let mut shaking = Shaking {
            tls: Tls::Begun,
            began: 10,
            ..Shaking::default()
        };
        assert!(shaking.lasts_at(15));
        assert_eq!(shaking.turned(&turned(20, 2, 300), 5), None);
        assert!(!shaking.lasts_at(30));
        shaking.again = true;
        assert!(shaking.lasts_at(30), "another hello was asked for");
    }

    #[test]
    fn what_is_no_tls_is_no_handshake() {
        assert!(!Shaking::default().lasts_at(100));
    }
}
