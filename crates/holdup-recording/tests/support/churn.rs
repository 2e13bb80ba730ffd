//! What was made anew, made of dice.

use super::Dice;
use holdup_model::churn::{Births, Born, Called, Churn, Conversations, Ends, Failure, Handshakes};

impl Dice {
    pub(super) fn churn(&mut self) -> Churn {
        let dice = self;
        Churn {
            watched: dice.number(),
            made: dice.list(2, |dice| Births {
                what: dice.of(&[Born::Thread, Born::Process]),
                by: dice.asker(),
                made: dice.number(),
                names: dice.list(2, |dice| Called {
                    name: dice.text(),
                    count: dice.number(),
                }),
                ..Births::default()
            }),
            connections: dice.list(2, |dice| Conversations {
                end: dice.text(),
                by: dice.asker(),
                tls: Handshakes {
                    full: dice.number(),
                    ..Handshakes::default()
                },
                ..Conversations::default()
            }),
            ends: dice.list(2, |dice| Ends {
                by: dice.asker().name,
                program: dice.text(),
                ended: dice.number(),
                failed: dice.number(),
                failure: dice.some(|dice| dice.of(&[Failure::Status(3), Failure::Signal(11)])),
                alike: dice.number(),
                p50: dice.number(),
            }),
            traffic_told: dice.yes(),
        }
    }
}
