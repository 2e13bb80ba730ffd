//! Counts of passed and failed, and the line that says them.
//!
//! Every chore that judges something ends its output with such a line, `cargo xtask test` adds them up.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// How many passed and how many failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Passed.
    pub(crate) passed: u64,
    /// Failed.
    pub(crate) failed: u64,
}

impl Tally {
    /// One thing, judged.
    pub(crate) fn one(passed: bool) -> Tally {
        Tally {
            passed: u64::from(passed),
            failed: u64::from(!passed),
        }
    }

    /// Reads such a line, or the result line of one of cargo's test programs; `None` for any other line.
    pub(crate) fn from_line(line: &str) -> Option<Tally> {
        match line.strip_prefix("test result: ") {
            Some(rest) => {
                let (_, counts) = rest.split_once(". ")?;
                let mut counts = counts.split("; ");
                Some(Tally {
                    passed: number(counts.next()?, " passed")?,
                    failed: number(counts.next()?, " failed")?,
                })
            }
            None => {
                let (passed, failed) = line.split_once(", ")?;
                Some(Tally {
                    passed: number(passed, " passed")?,
                    failed: number(failed, " failed")?,
                })
            }
        }
    }
}

fn number(text: &str, suffix: &str) -> Option<u64> {
    text.strip_suffix(suffix)?.parse().ok()
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(tallies: I) -> Tally {
        tallies.fold(Tally::default(), |mut sum, tally| {
            sum += tally;
            sum
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn reads_its_own_line_and_cargos() {
        let tally = Tally {
            passed: 12,
            failed: 1,
        };
        assert_eq!(Tally::from_line(&tally.to_string()), Some(tally));
        let cargo = "test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(Tally::from_line(cargo), Some(tally));
    }

    #[test]
    fn reads_nothing_else() {
        for line in [
            "",
            "running 3 tests",
            "12 passed",
            "12 passed, one failed",
            "test a ... ok",
            "x, 1 failed",
        ] {
            assert_eq!(Tally::from_line(line), None, "{line}");
        }
    }
}
