//! Whose files and links are taken for the caller's own.
//!
//! In: a user id. Out: whether this user may decide where holdup writes. Those are root, the user that holdup runs as, and, for root, the
//! user who called `sudo`. `SUDO_UID` is in the environment, which only the person who started holdup controls; it is looked at only
//! where holdup is root, so nobody gains by setting it.

use nix::unistd::geteuid;

/// The variable in which sudo(8) says who called it.
const CALLER: &str = "SUDO_UID";

/// Whether this user may decide where holdup writes.
pub(crate) fn trusted(uid: u32) -> bool {
    let own = geteuid();
    uid == 0 || uid == own.as_raw() || (own.is_root() && caller() == Some(uid))
}

fn caller() -> Option<u32> {
    std::env::var(CALLER).ok()?.parse().ok()
}
