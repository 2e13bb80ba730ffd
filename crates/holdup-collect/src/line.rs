//! Where collection says how far it is. The words are made here; a terminal's line shows them.

use holdup_evidence::units::counted;
use std::time::Duration;

/// A line that says how far it is.
pub trait Line {
    /// Says how far it is, if it is time to; the words are asked for only then.
    fn tell(&mut self, words: &dyn Fn() -> String);

    /// Takes the line away; another may follow.
    fn clear(&mut self);
}

/// `watching 4 of 10 s, 41 threads; Ctrl-C ends it`.
#[must_use]
pub fn watching(so_far: Duration, of: Option<Duration>, threads: usize) -> String {
    let so_far = so_far.as_secs();
    let time = match of {
        Some(of) => format!("{so_far} of {} s", of.as_secs_f64()),
        None => format!("for {so_far} s"),
    };
    let threads = counted(threads as u64, "thread", "threads");
    format!("watching {time}, {threads}; Ctrl-C ends it")
}

#[cfg(test)]
mod tests {
    use super::watching;
    use std::time::Duration;

    #[test]
    fn it_says_how_long_and_of_how_long() {
        let seconds = Duration::from_secs_f64;
        assert_eq!(
            watching(seconds(4.7), Some(seconds(10.0)), 41),
            "watching 4 of 10 s, 41 threads; Ctrl-C ends it"
        );
        assert_eq!(
            watching(seconds(1.0), Some(seconds(2.5)), 1),
            "watching 1 of 2.5 s, 1 thread; Ctrl-C ends it"
        );
        assert_eq!(
            watching(seconds(75.0), None, 2),
            "watching for 75 s, 2 threads; Ctrl-C ends it"
        );
    }
}
