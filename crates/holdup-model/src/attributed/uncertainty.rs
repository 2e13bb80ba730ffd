//! How far off estimated times are, of one row and of several together.

use holdup_evidence::Ns;
use std::collections::BTreeMap;

/// How far off the time of one row may be, as it is needed to say it of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uncertainty {
    /// Process and thread.
    pub thread: (u32, u32),
    /// Whether it is one of those that are added up.
    pub of_these: bool,
    /// Whether it is time on a CPU.
    pub on_cpu: bool,
    /// One standard error, nanoseconds.
    pub error: Ns,
}

/// One standard error of several rows together, of all rows that their threads have. What a thread was blocked in all is known, so what
/// one row has too much another has too little: several are no further off than all others are, and no less than the worst of
/// them. Threads are wrong each by itself.
#[must_use]
pub fn error_together(rows: impl Iterator<Item = Uncertainty>) -> Ns {
    #[derive(Default)]
    struct Sums {
        these: Ns,
        others: Ns,
        worst: Ns,
    }
    let mut threads: BTreeMap<(u32, u32, bool), Sums> = BTreeMap::new();
    for row in rows {
        let (pid, tid) = row.thread;
        let sums = threads.entry((pid, tid, row.on_cpu)).or_default();
        let sum = if row.of_these {
            &mut sums.these
        } else {
            &mut sums.others
        };
        *sum = sum.saturating_add(row.error);
        if row.of_these {
            sums.worst = sums.worst.max(row.error);
        }
    }
    let of_thread = |sums: &Sums| sums.these.min(sums.others.max(sums.worst)) as f64;
    let squares: f64 = threads.values().map(|sums| of_thread(sums).powi(2)).sum();
    squares.sqrt().round() as Ns
}

#[cfg(test)]
mod tests {
    use super::{Uncertainty, error_together};

    fn row(tid: u32, of_these: bool, error: u64) -> Uncertainty {
        Uncertainty {
            thread: (1, tid),
            of_these,
            on_cpu: false,
            error,
        }
    }

    #[test]
    fn what_one_has_too_much_another_has_too_little() {
        let together = |rows: &[Uncertainty]| error_together(rows.iter().copied());
        assert_eq!(together(&[]), 0);
        assert_eq!(
            together(&[row(1, true, 30), row(1, true, 40), row(1, false, 90)]),
            70
        );
        assert_eq!(
            together(&[row(1, true, 30), row(1, true, 40), row(1, false, 35)]),
            40
        );
        assert_eq!(together(&[row(1, true, 30), row(2, true, 40)]), 50, "two threads");
        assert_eq!(together(&[row(1, false, 30)]), 0);
    }
}
