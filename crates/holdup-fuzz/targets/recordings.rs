//! Recordings. Input: a file; or, of anything that does not begin as one, the JSON in it, which a checksum guards in a file.

use std::io::{Seek, Write};
use std::os::fd::AsRawFd;

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 4_000;

/// Reads it.
pub(crate) fn run(bytes: &[u8]) {
    if !bytes.starts_with(b"PAR1") {
        holdup_recording::contents(bytes).ok();
        return;
    }
    let mut file = tempfile::tempfile().expect("a temporary file can be made");
    file.write_all(bytes).expect("it can be written");
    file.rewind().expect("it can be read again");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    holdup_recording::peek(path.as_ref()).ok();
    holdup_recording::read_one(path.as_ref()).ok();
}
