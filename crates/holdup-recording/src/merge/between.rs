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
    /// A segment was lost: it stands where it belongs, and has nothing in it.
    Lost {
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
    let between = passed(before, after);
    if between > GAP_NS {
        breaks.push(Break::Gap {
            from: at.saturating_sub(between),
            to: at,
        });
    } else if between < -GAP_NS {
        breaks.push(Break::Overlap {
            from: at,
            to: at.saturating_sub(between).min(after.ended_unix()),
        });
    }
    breaks
}

/// What passed from the end of one to the begin of the next while the machine was awake, nanoseconds; below 0: they overlap. Within a boot
/// no clock that somebody may set is asked: where it was set back, two segments have the same dates and tell of different times, and
/// where it was set forward nothing is missing in between.
fn passed(before: &Head, after: &Head) -> i64 {
    if before.is_of_boot_of(after) {
        let signed = |ns: Ns| i64::try_from(ns).unwrap_or(i64::MAX);
        let ended = before.started.saturating_add(before.length);
        return signed(after.started).saturating_sub(signed(ended));
    }
    after.started_unix.saturating_sub(before.ended_unix())
}

#[cfg(test)]
mod tests {
    use super::{Break, Clocks, breaks};
    use crate::Head;
    use holdup_model::report::{Backend, SubjectKind};

    const SECOND: i64 = 1_000_000_000;
    const BEGIN: i64 = 1_772_452_800 * SECOND;

    /// A segment of a minute: when it began by the clock that nobody sets, what the date is ahead of that, and how long the machine had
    /// slept since its boot by then; seconds.
    fn segment(started: i64, ahead: i64, slept: i64) -> (Head, Clocks) {
        let unix_minus_monotonic = BEGIN + (ahead + slept) * SECOND;
        let started = started * SECOND;
        let head = Head {
            host: Some("host".to_owned()),
            boot_id: Some("boot".to_owned()),
            ..Head::new(
                (SubjectKind::Attach, Backend::Bpf),
                (started.cast_unsigned(), started + unix_minus_monotonic),
                (60 * SECOND).cast_unsigned(),
            )
        };
        let clocks = Clocks {
            unix_minus_monotonic: Some(unix_minus_monotonic),
            boot_minus_monotonic: Some((slept * SECOND).cast_unsigned()),
        };
        (head, clocks)
    }

    fn between(one: (Head, Clocks), other: (Head, Clocks)) -> Vec<Break> {
        breaks(&one.0, one.1, &other.0, other.1)
    }

    #[test]
    fn a_clock_that_is_set_is_that_and_no_gap_and_nothing_that_counts_twice() {
        let hour = 3_600;
        assert_eq!(between(segment(0, 0, 0), segment(60, 0, 0)), []);
        for by in [hour, -hour, -30, 1] {
            let at = BEGIN + (60 + by) * SECOND;
            assert_eq!(
                between(segment(0, 0, 0), segment(60, by, 0)),
                [Break::Clock { at, by: by * SECOND }],
                "by {by} s"
            );
        }
        // What steering does in a minute is none.
        let (mut steered, mut clocks) = segment(60, 0, 0);
        steered.started_unix += SECOND / 40;
        clocks.unix_minus_monotonic = clocks.unix_minus_monotonic.map(|ns| ns + SECOND / 40);
        assert_eq!(between(segment(0, 0, 0), (steered, clocks)), []);
    }

    #[test]
    fn a_segment_that_is_lost_says_so_alone_and_among_others() {
        let (mut head, _) = segment(60, 0, 0);
        assert!(!head.is_lost());
        head.lose();
        assert!(head.is_lost());
        let from = BEGIN + 60 * SECOND;
        let to = from + 60 * SECOND;
        assert_eq!(head.breaks, [Break::Lost { from, to }]);
        // Of several one is lost, and not all.
        head.segments = 3;
        assert!(!head.is_lost());
    }

    #[test]
    fn a_machine_that_slept_has_no_clock_that_was_set() {
        let night = 8 * 3_600;
        let at = BEGIN + (60 + night) * SECOND;
        let ns = (night * SECOND).cast_unsigned();
        assert_eq!(
            between(segment(0, 0, 0), segment(60, 0, night)),
            [Break::Suspended { at, ns }]
        );
        // Both: it was set by five minutes as it woke.
        assert_eq!(
            between(segment(0, 0, 0), segment(60, 300, night)),
            [
                Break::Suspended {
                    at: at + 300 * SECOND,
                    ns
                },
                Break::Clock {
                    at: at + 300 * SECOND,
                    by: 300 * SECOND
                }
            ]
        );
    }

    #[test]
    fn what_is_missing_is_what_passed_while_it_was_awake() {
        let hour = 3_600;
        let at = BEGIN + (180 - hour) * SECOND;
        assert_eq!(
            between(segment(0, 0, 0), segment(180, -hour, 0)),
            [
                Break::Clock {
                    at,
                    by: -hour * SECOND
                },
                Break::Gap {
                    from: at - 120 * SECOND,
                    to: at
                }
            ]
        );
        let (from, to) = (BEGIN + 30 * SECOND, BEGIN + 60 * SECOND);
        assert_eq!(
            between(segment(0, 0, 0), segment(30, 0, 0)),
            [Break::Overlap { from, to }]
        );
    }

    #[test]
    fn across_a_boot_there_are_dates_only() {
        let (mut after, clocks) = segment(5, 200, 0);
        after.boot_id = Some("next".to_owned());
        let at = after.started_unix;
        assert_eq!(
            between(segment(0, 0, 0), (after, clocks)),
            [
                Break::Boot { at },
                Break::Gap {
                    from: BEGIN + 60 * SECOND,
                    to: at
                }
            ]
        );
    }
}
