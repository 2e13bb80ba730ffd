//! What of observed processes was not read or named, and why.
//!
//! Out: values; whoever makes the report puts them into words.

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// Callers in stacks of a process: finding them takes too much work.
    Callers {
        /// Its process id.
        pid: u32,
    },
    /// A file did not let itself be opened or read.
    File {
        /// Its base name. Hostile text.
        name: String,
        /// A process that has mapped it.
        pid: u32,
        /// Why not.
        why: Why,
    },
    /// Names of functions of a file, or of code that a process has written.
    Names {
        /// Its base name. Hostile text.
        name: String,
        /// A process that has mapped it.
        pid: u32,
        /// Why not.
        why: Why,
    },
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Its file system did not answer.
    Silent,
    /// It is on a file system that may block for ever, so it was not opened.
    MayBlock,
    /// It takes too much work.
    Costly,
    /// It broke what read it.
    Broken,
    /// Whoever waits for the report wanted no more of it.
    Interrupted,
}
