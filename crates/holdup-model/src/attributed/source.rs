//! How live evidence was taken, and what follows from it.
//!
//! This is the only place that knows how tracing and sampling differ. Each method answers one question about the evidence. Code that
//! needs to know asks that question, and does not compare the source itself.

use serde::{Deserialize, Serialize};

/// Where live evidence came from. In files this is a flag: whether it was sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Source {
    /// Probes in the kernel, which record each event.
    #[default]
    Traced,
    /// Samples of `/proc`. Between two samples nothing is observed.
    Sampled,
}

impl From<bool> for Source {
    fn from(sampled: bool) -> Source {
        match sampled {
            true => Source::Sampled,
            false => Source::Traced,
        }
    }
}

impl From<Source> for bool {
    fn from(source: Source) -> bool {
        source == Source::Sampled
    }
}

impl Source {
    /// Whether the record of a wait has the waker, if a thread was one.
    #[must_use]
    pub fn records_wakers(self) -> bool {
        self == Source::Traced
    }

    /// Whether evidence comes from probes in the kernel, by whose names rules cite it.
    #[must_use]
    pub fn has_probes(self) -> bool {
        self == Source::Traced
    }

    /// Whether each wait is recorded with its own start and end. Counts and lengths of waits are exact then, and estimates otherwise.
    #[must_use]
    pub fn records_each_wait(self) -> bool {
        self == Source::Traced
    }

    /// Whether each process is observed from start to exit. Otherwise a process may live between two samples.
    #[must_use]
    pub fn records_each_process(self) -> bool {
        self == Source::Traced
    }

    /// Whether the time that a thread lost to interrupts is measured for that thread. Otherwise it is estimated from moments of the
    /// same time.
    #[must_use]
    pub fn measures_interrupts(self) -> bool {
        self == Source::Traced
    }

    /// Whether CPU time in the kernel has kernel stacks. Without them a thread's system call may be unknown too.
    #[must_use]
    pub fn samples_kernel_stacks(self) -> bool {
        self == Source::Traced
    }

    /// Whether data that a process writes is observed.
    #[must_use]
    pub fn records_writes(self) -> bool {
        self == Source::Traced
    }

    /// Whether the process at the other end of a pipe is found, if it is part of the run. Samples miss it where several processes have
    /// both ends open.
    #[must_use]
    pub fn finds_pipe_peers(self) -> bool {
        self == Source::Traced
    }

    /// The source of both together: it can answer only what both can.
    #[must_use]
    pub fn and(self, other: Source) -> Source {
        Source::from(bool::from(self) || bool::from(other))
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn a_file_has_a_flag_and_one_sampled_part_makes_the_whole_sampled() {
        for source in [Source::Traced, Source::Sampled] {
            assert_eq!(Source::from(bool::from(source)), source);
            assert_eq!(source.and(Source::Sampled), Source::Sampled);
            assert_eq!(source.and(Source::Traced), source);
        }
        assert_eq!(serde_json::to_string(&Source::Sampled).unwrap(), "true");
    }
}
