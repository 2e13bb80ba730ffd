//! What an observation may use, made of dice.

use super::Dice;
use holdup_evidence::budget::{Budget, Step, Thinned};

impl Dice {
    pub(super) fn budget(&mut self) -> Budget {
        Budget {
            firm: self.yes(),
            allowed: self.number(),
            used: self.number(),
            steps: self.list(2, |dice| Step {
                what: Thinned::Stacks,
                since: dice.number(),
                until: dice.yes().then(|| dice.number()),
            }),
            ..Budget::default()
        }
    }
}
