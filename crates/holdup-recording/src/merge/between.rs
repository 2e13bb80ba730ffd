//! What lies between two segments: a boot, a clock that was set, a machine that slept, a time without a recording.

use crate::Head;
use holdup_evidence::{Ns, SystemFacts};
use serde::{Deserialize, Serialize};

/// From which difference on the clock was set and not steered: steering changes a clock by at most 500 millionths (adjtimex(2)), 30 ms
/// in a minute.
const SET_NS: u64 = 100_000_000;

/// From which gap on it is one: the time to close one segment and begin the next is less.
const GAP_NS: i64 = 2_000_000_000;

/// Something between two segments. Instants are Unix time, nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Break {
    /// The machine was booted anew.
    Boot {
        /// Before this.
        at: i64,
    },
    /// They are of two machines.
    Host {
        /// From this on.
        at: i64,
        /// The first one.
        from: Option<String>,
        /// The second.
        to: Option<String>,
    },
    /// The clock was set.
    Clock {
        /// Before this.
        at: i64,
        /// By so much; forward if positive. Nanoseconds.
        by: i64,
    },
    /// The machine slept.
    Suspended {
        /// Before this.
        at: i64,
        /// For so long, nanoseconds.
        ns: Ns,
    },
    /// Nothing was recorded.
    Gap {
        /// From,
        from: i64,
        /// to.
        to: i64,
    },
    /// Both tell of the same time, so what was then counts twice.
    Overlap {
        /// From,
        from: i64,
        /// to.
        to: i64,
    },
}

impl Break {
    /// Whether no thread is the same before and after.
    pub(super) fn parts_threads(&self) -> bool {
        matches!(self, Break::Boot { .. } | Break::Host { .. })
    }
}

/// How a segment's clocks stood to each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    unix_minus_monotonic: Option<i64>,
    boot_minus_monotonic: Option<Ns>,
}

impl Clocks {
    pub(super) fn of(facts: &SystemFacts) -> Clocks {
        Clocks {
            unix_minus_monotonic: facts.unix_minus_monotonic,
            boot_minus_monotonic: facts.boot_minus_monotonic,
        }
    }

    /// What makes an instant of these clocks one of the others' with the same date.
    pub(super) fn ahead_of(self, other: Clocks) -> i64 {
        match (self.unix_minus_monotonic, other.unix_minus_monotonic) {
            (Some(own), Some(other)) => own.saturating_sub(other),
            _ => 0,
        }
    }
}

/// What lies between.
pub(super) fn breaks(before: &Head, clocks: Clocks, after: &Head, then: Clocks) -> Vec<Break> {
    let at = after.started_unix;
    let mut breaks = Vec::new();
    if before.host != after.host {
        breaks.push(Break::Host {
            at,
            from: before.host.clone(),
            to: after.host.clone(),
        });
    } else if before.boot_id != after.boot_id {
        breaks.push(Break::Boot { at });
    } else {
        let suspended = match (clocks.boot_minus_monotonic, then.boot_minus_monotonic) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => 0,
        };
        if suspended > SET_NS {
            breaks.push(Break::Suspended { at, ns: suspended });
        }
        let by = then
            .ahead_of(clocks)
            .saturating_sub(i64::try_from(suspended).unwrap_or(i64::MAX));
        if by.unsigned_abs() > SET_NS {
            breaks.push(Break::Clock { at, by });
        }
    }
    let ended = before.ended_unix();
    if at.saturating_sub(ended) > GAP_NS {
        breaks.push(Break::Gap { from: ended, to: at });
    } else if ended.saturating_sub(at) > GAP_NS {
        breaks.push(Break::Overlap {
            from: at,
            to: ended.min(after.ended_unix()),
        });
    }
    breaks
}
