//! A real program under test: its memory, and its end.

use holdup_runtimes::memory::{PAGE, Source};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Child;

/// The memory of a process, `/proc/PID/mem`.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) File);

impl Source for Running {
    fn page(&mut self, address: u64, page: &mut [u8; PAGE]) -> bool {
        self.0.read_exact_at(page, address).is_ok()
    }
}

/// A program that is killed when the test is over.
pub(crate) struct Sleeper(pub(crate) Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
