//! Room for open files: each thread that is followed has some.
//!
//! In: the limit that holdup was started with. Out: how many more may be opened.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Asks for what the system allows at most. CMD, forked before, keeps its own limit.
pub(super) fn make() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        setrlimit(Resource::RLIMIT_NOFILE, most, most).ok();
    }
}

/// Files that may still be opened.
pub(super) fn left() -> usize {
    /// The lowest numbers are given out first, and holdup has opened few by then.
    const LOOKED_AT: libc::c_int = 4_096;
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(libc::RLIM_INFINITY, |(limit, _)| limit);
    // SAFETY: asks, and changes nothing.
    let is_open = |descriptor: &libc::c_int| unsafe { libc::fcntl(*descriptor, libc::F_GETFD) } >= 0;
    // Listing /proc/self/fd would take a descriptor, and there may be none.
    let open = (0..LOOKED_AT).filter(is_open).count();
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(open)
}
