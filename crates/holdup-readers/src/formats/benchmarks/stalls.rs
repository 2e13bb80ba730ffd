//! Intervals of a transfer in which nothing is sent, one behind the other, while nothing is sent again either: no loss, but somebody who does not
//! take what is sent.
//!
//! In: for each interval which stream it is of, how many bytes it sent, and the congestion window. Out: how long it stands, behind how much.

/// Intervals in a row from which it stands.
const MIN_RUN: u64 = 5;

/// Bytes that were sent before: a test with a limit to its rate sends a block now and then, and an idle one nothing.
const MIN_BYTES: f64 = 1_048_576.0;

/// Follows the first stream of a test.
#[derive(Debug, Default)]
pub(super) struct Runs {
    stream: Option<String>,
    rows: u64,
    /// Intervals with nothing since the last one with something, and how many such stretches began.
    run: u64,
    stretches: u64,
    longest: u64,
    /// What was sent before the first stretch, in how many intervals.
    bytes: f64,
    filled: u64,
    /// The window within the stretch; `None` where it changed.
    window: Option<String>,
}

impl Runs {
    pub(super) fn take(&mut self, stream: &str, bytes: f64, window: &str) {
        let own = self.stream.get_or_insert_with(|| stream.to_owned());
        if own != stream {
            return;
        }
        self.rows += 1;
        if bytes > 0.0 {
            self.run = 0;
            if self.stretches == 0 {
                self.bytes += bytes;
                self.filled += 1;
            }
            return;
        }
        if self.run == 0 {
            self.stretches += 1;
            self.window = Some(window.to_owned());
        } else if self.window.as_ref().is_some_and(|before| before != window) {
            self.window = None;
        }
        self.run += 1;
        self.longest = self.longest.max(self.run);
    }

    /// What it says; `none_again` is whether nothing was sent again, where that is counted.
    pub(super) fn told(&self, none_again: Option<bool>) -> Option<String> {
        let again = match none_again {
            Some(false) => return None,
            Some(true) => "; nothing was sent again (no retransmits), so that it is no loss",
            None => "",
        };
        let stands = self.stretches == 1 && self.longest >= MIN_RUN && self.bytes >= MIN_BYTES;
        let window = self.window.as_ref().filter(|window| !window.is_empty());
        let window = window.map_or_else(String::new, |window| {
            format!(", and the congestion window stays at {window}")
        });
        let before = match self.filled {
            1 => "the first interval".to_owned(),
            filled => format!("the first {filled} intervals"),
        };
        stands.then(|| {
            format!(
                "after {before}, which sent {:.1} MBytes, no data was sent in {} of {} intervals{again}{window}: the receiver, or something on the way, takes no more",
                self.bytes / MIN_BYTES,
                self.longest,
                self.rows
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Runs;

    fn told(bytes: &[f64], none_again: impl Into<Option<bool>>) -> Option<String> {
        let mut runs = Runs::default();
        for bytes in bytes {
            runs.take("5", *bytes, "64.0 KBytes");
            // Another stream is not looked at.
            runs.take("7", 1e9, "1 KBytes");
        }
        runs.told(none_again.into())
    }

    #[test]
    fn a_transfer_that_stops_behind_its_first_second() {
        let text = told(&[33_554_432.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], true).unwrap();
        assert!(
            text.starts_with("after the first interval, which sent 32.0 MBytes, no data was sent in 6 of 7 intervals; nothing was sent again"),
            "{text}"
        );
        assert!(text.contains("stays at 64.0 KBytes"), "{text}");
        // A version that does not count what it sends again.
        let text = told(&[33_554_432.0, 0.0, 0.0, 0.0, 0.0, 0.0], None::<bool>).unwrap();
        assert!(!text.contains("sent again"), "{text}");
    }

    #[test]
    fn losses_limits_and_idle_tests_are_others() {
        assert_eq!(told(&[33_554_432.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], false), None);
        // A limited rate sends a block now and then.
        assert_eq!(
            told(&[2e6, 0.0, 0.0, 0.0, 0.0, 0.0, 2e6, 0.0, 0.0, 0.0], true),
            None
        );
        assert_eq!(told(&[131_072.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], true), None);
        assert_eq!(told(&[2e6, 0.0, 0.0, 2e6], true), None);
    }
}
