//! Datagrams and their peers, made of dice.

use super::Dice;
use holdup_model::attributed::{DatagramPeer, DatagramProtocol, Datagrams};

impl Dice {
    pub(super) fn datagrams(&mut self) -> Datagrams {
        let dice = self;
        Datagrams {
            peers: dice.list(2, |dice| DatagramPeer {
                peer: dice.text(),
                protocol: dice.some(|dice| dice.of(&[DatagramProtocol::Dns, DatagramProtocol::Sip])),
                sent: dice.number(),
                silent: dice.number(),
                ..DatagramPeer::default()
            }),
            refused: dice.number(),
        }
    }
}
