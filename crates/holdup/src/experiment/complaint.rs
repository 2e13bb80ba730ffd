//! What CMD says on stderr: its last words, for when it fails.
//!
//! In: a pipe that CMD writes to, emptied by a thread so that CMD never waits for us. A thread that reads a pipe ends with its process.
//! Out: the end of it, bounded.

use anyhow::Context;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

/// Bytes that are kept: some lines.
const KEPT: usize = 2_000;

/// The last words, when all writers are gone.
#[derive(Debug)]
pub(super) struct Complaint(JoinHandle<Vec<u8>>);

/// Starts to listen; what is returned beside is CMD's stderr.
///
/// # Errors
/// When the system refuses a pipe or a thread.
pub(super) fn listen() -> anyhow::Result<(OwnedFd, Complaint)> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).context("cannot make a pipe")?;
    let thread = std::thread::Builder::new()
        .spawn(move || last_of(File::from(read)))
        .context("cannot start a thread")?;
    Ok((write, Complaint(thread)))
}

impl Complaint {
    /// The last lines; waits until nobody can write any more.
    pub(super) fn words(self) -> String {
        let bytes = self.0.join().unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

fn last_of(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..length]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{KEPT, last_of};

    #[test]
    fn the_end_is_kept_and_no_more() {
        assert_eq!(last_of(&b"no space left"[..]), b"no space left");
        let long: Vec<u8> = (0..=u8::MAX).cycle().take(50_000).collect();
        assert_eq!(last_of(&long[..]), long[50_000 - KEPT..]);
    }
}
