//! What was won, and what was paid for it: fewer threads, but a full TLS handshake each time.
//!
//! In: a comparison with what was made anew and the causes. Out: a [`Trade`], which tells itself with its figures, and in a few
//! words for the one sentence of the verdict.

use super::made::{Made, Thing};
use super::words::{each, short};
use holdup_evidence::Cause;
use holdup_evidence::units::duration;
use holdup_model::report::{AmountChange, CauseChange, Comparison};

/// A cause is traded if it changed by at least a tenth of what the whole was or became.
const TRADED: u64 = 10;

/// What is made anew counts as traded if it became less than half, or more than twice as much.
const HALF: f64 = 0.5;

/// As many as this for each unit of work are one each time, and this many none: the first and the last unit of a recording are
/// cut, and connections are made beside the work.
const ONE_EACH: std::ops::Range<f64> = 0.9..1.1;
const HARDLY: f64 = 0.1;

/// Gains and prices.
#[derive(Debug, Clone, Default)]
pub(super) struct Trade {
    gains: Vec<Side>,
    prices: Vec<Side>,
}

/// One of them.
#[derive(Debug, Clone)]
struct Side {
    /// With its figures.
    long: String,
    /// Without.
    short: String,
    /// Whether it is of what was made anew.
    made: bool,
}

impl Trade {
    /// What changed hands in a comparison.
    pub(super) fn of(comparison: &Comparison, all_made: &[(Made, AmountChange)]) -> Trade {
        if comparison.significant == Some(false) {
            return Trade::default();
        }
        let each = each(&comparison.unit);
        let made = |less: bool, good_ones: bool| {
            let of_kind = all_made.iter().filter(move |(made, _)| {
                made.what.is_good() == good_ones && !matches!(made.what, Thing::Calls(_))
            });
            let mut side = of_kind.filter(move |(_, one)| match less {
                true => one.after < one.before * HALF,
                false => one.before < one.after * HALF,
            });
            side.next().map(|(made, one)| of_made(made, one, less, &each))
        };
        let size = comparison.before_ns.max(comparison.after_ns).unwrap_or(0);
        let cause = |less: bool| {
            let found = comparison.causes.iter().filter(|one| {
                one.cause != Cause::Unknown && one.significant != Some(false) && one.change_ns != 0
            });
            let mut large = found.filter(|one| one.change_ns.unsigned_abs() >= size / TRADED);
            large
                .find(|one| (one.change_ns < 0) == less)
                .map(|one| of_cause(one, less, &each))
        };
        // What is good to have much of is won when it becomes more.
        let list = |all: [Option<Side>; 3]| all.into_iter().flatten().collect();
        Trade {
            gains: list([made(true, false), made(false, true), cause(true)]),
            prices: list([made(false, false), made(true, true), cause(false)]),
        }
    }

    /// With all figures, where something was paid for what was won.
    pub(super) fn sentence(&self) -> Option<String> {
        let long = |sides: &[Side]| joined(sides.iter().map(|side| side.long.as_str()).collect());
        let (gains, prices) = (long(&self.gains), long(&self.prices));
        (!gains.is_empty() && !prices.is_empty()).then(|| format!("AFTER has {gains}, but {prices}."))
    }

    /// `AFTER has fewer threads, but a full TLS handshake each time`; of gains alone, or prices alone, those.
    pub(super) fn clause(&self) -> Option<String> {
        let brief = |sides: &[Side]| {
            let made: Vec<&str> = sides
                .iter()
                .filter(|side| side.made)
                .map(|side| side.short.as_str())
                .collect();
            // A full handshake is one that was not resumed: nobody needs both.
            made.first().copied().map(str::to_owned)
        };
        let (gains, prices) = (brief(&self.gains), brief(&self.prices));
        let cause = |sides: &[Side]| {
            sides
                .iter()
                .find(|side| !side.made)
                .map(|side| side.short.clone())
        };
        match (gains, prices) {
            (Some(gain), Some(price)) => Some(format!("AFTER has {gain}, but {price}")),
            // What was made is paid for, or pays, in time that is reported beside it.
            (Some(gain), None) => Some(match cause(&self.prices) {
                Some(price) => format!("AFTER has {gain}, but {price}"),
                None => format!("AFTER has {gain}"),
            }),
            (None, Some(price)) => Some(match cause(&self.gains) {
                Some(gain) => format!("AFTER has {gain}, but {price}"),
                None => format!("AFTER has {price}"),
            }),
            (None, None) => None,
        }
    }
}

fn joined(mut all: Vec<&str>) -> String {
    let last = all.pop().unwrap_or_default();
    match all.is_empty() {
        true => last.to_owned(),
        false => format!("{} and {last}", all.join(", ")),
    }
}

fn of_made(made: &Made, one: &AmountChange, less: bool, each: &str) -> Side {
    let each = match made.in_log {
        true => String::new(),
        false => format!(" {each}"),
    };
    let more = if less { "fewer" } else { "more" };
    let long = format!(
        "{more} {} (BEFORE {}, AFTER {}{each})",
        one.name,
        short(one.before),
        short(one.after)
    );
    Side {
        long,
        short: brief(made, one, less),
        made: true,
    }
}

/// `fewer threads`, `a full TLS handshake each time`.
fn brief(made: &Made, one: &AmountChange, less: bool) -> String {
    let brief = made.what.brief().filter(|_| !made.in_log);
    let (name, single) = brief.unwrap_or((&one.name, ""));
    match less {
        true => format!("fewer {name}"),
        false if !single.is_empty() && one.before < HARDLY && ONE_EACH.contains(&one.after) => {
            format!("{single} each time")
        }
        false => format!("more {name}"),
    }
}

fn of_cause(one: &CauseChange, less: bool, each: &str) -> Side {
    let more = if less { "less" } else { "more" };
    let phrase = one.cause.phrase();
    let long = format!(
        "{more} {phrase} (BEFORE {}, AFTER {} {each})",
        duration(one.before_ns),
        duration(one.after_ns)
    );
    Side {
        long,
        short: format!("{more} {phrase}"),
        made: false,
    }
}
