//! `getrandom`, the call.

use super::Reader;
use nix::errno::Errno;

/// So many bytes at a time.
pub(super) struct Getrandom(Vec<u8>);

impl Getrandom {
    /// Of so many bytes.
    pub(super) fn new(size: usize) -> Getrandom {
        Getrandom(vec![0; size])
    }
}

impl Reader for Getrandom {
    fn once(&mut self) -> Result<(), Errno> {
        // The system call itself: the C library may have a generator of its own in front of it.
        // SAFETY: fills at most as much as the buffer holds.
        let got = unsafe { libc::syscall(libc::SYS_getrandom, self.0.as_mut_ptr(), self.0.len(), 0) };
        Errno::result(got).map(|_| ())
    }
}
