//! How good a prediction was.
//!
//! In: rounds of one program. Out: medians, and whether the prediction is within the bar.

/// How far a prediction may be from what was measured, as a share of the saving that was measured.
pub(super) const AT_MOST: f64 = 0.15;

/// What may be predicted to be saved where nothing is, as a share of the elapsed time.
pub(super) const NOTHING: f64 = 0.03;

/// What one round came to, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// As it is, with nobody watching.
    pub(super) took: u64,
    /// As it is, under holdup.
    pub(super) observed: u64,
    /// What holdup predicts.
    pub(super) predicted: Option<u64>,
    /// Really without the wait, with nobody watching.
    pub(super) measured: u64,
}

/// What all of them came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    pub(super) took: u64,
    pub(super) predicted: Option<u64>,
    pub(super) measured: u64,
    /// How far the prediction is off: see [`AT_MOST`] and [`NOTHING`].
    pub(super) off: Option<f64>,
    pub(super) right: bool,
}

pub(super) fn judge(rounds: &[Round], gains: bool) -> Judged {
    let of = |figure: fn(&Round) -> Option<u64>| median(rounds.iter().filter_map(figure).collect());
    let took = of(|round| Some(round.took)).unwrap_or(0);
    let observed = of(|round| Some(round.observed)).unwrap_or(0);
    let measured = of(|round| Some(round.measured)).unwrap_or(0);
    let predicted = of(|round| round.predicted);
    let off = match gains {
        true => predicted.map(|predicted| {
            predicted.abs_diff(measured) as f64 / took.saturating_sub(measured).max(1) as f64
        }),
        // Of each round for itself: what is said to be saved is of what was seen then.
        false => of(|round| Some(round.observed.saturating_sub(round.predicted?)))
            .map(|saving| saving as f64 / observed.max(1) as f64),
    };
    let at_most = if gains { AT_MOST } else { NOTHING };
    Judged {
        took,
        predicted,
        measured,
        off,
        right: off.is_some_and(|off| off <= at_most),
    }
}

fn median(mut all: Vec<u64>) -> Option<u64> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{Round, judge};

    fn round(predicted: Option<u64>, measured: u64) -> Round {
        Round {
            took: 1000,
            observed: 1010,
            predicted,
            measured,
        }
    }

    #[test]
    fn what_counts_is_the_saving() {
        assert!(judge(&[round(Some(470), 400)], true).right);
        assert!(!judge(&[round(Some(500), 400)], true).right);
        assert!(!judge(&[round(None, 400)], true).right);
        // One round that went wrong does not count.
        let rounds = [
            round(Some(410), 400),
            round(Some(900), 400),
            round(Some(420), 700),
        ];
        assert!(judge(&rounds, true).right);
    }

    #[test]
    fn where_nothing_is_gained_next_to_nothing_may_be_predicted() {
        assert!(judge(&[round(Some(990), 1000)], false).right);
        assert!(!judge(&[round(Some(950), 1000)], false).right);
    }
}
