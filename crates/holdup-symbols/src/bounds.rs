//! How much of observed files is kept in memory.
//!
//! The problem: a browser's or a compiler's tables are tens of megabytes, its debug information hundreds. Who looks at one command has
//! them for a second; a recorder has them for good, and twice while one segment hands over to the next. The choice: a bound on each that
//! whoever observes sets; what is beyond it does without, and is counted.

use std::time::Duration;

/// Bounds, bytes where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Tables of how to find a function's caller, of all files together: the ones that were used last are kept. A file with more than
    /// this has none, and its callers are found by frame pointers.
    pub tables: u64,
    /// Debug information of one file: with more it has names of functions, and neither lines nor inlined functions.
    pub debug: u64,
    /// Tables of functions' names of one file: with more it has none.
    pub names: u64,
    /// CPU time that finding names may take of the files of one process. Ordinary programs take some hundredths of a second.
    pub naming: Duration,
}

impl Bounds {
    /// Of a command, or of what is watched for a while.
    pub const LARGE: Bounds = Bounds {
        tables: 1 << 30,
        debug: 512 << 20,
        names: 4 << 30,
        naming: Duration::from_secs(5),
    };

    /// Of a recorder, which runs beside everything else for good.
    pub const SMALL: Bounds = Bounds {
        tables: 6 << 20,
        debug: 4 << 20,
        names: 8 << 20,
        naming: Duration::from_secs(1),
    };
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds::LARGE
    }
}
