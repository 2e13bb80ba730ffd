//! What CMD is kept from when it runs as another user than holdup: what root's terminal, shell and descriptors would let it do to root.
//!
//! In: what holdup has. Out: what CMD gets of it. A terminal is shared, as with `su`: CMD still can read what is typed while it runs, write
//! to it, change its modes and become its foreground group. It can't push input that root's shell would read afterwards.

use crate::filter::{Answer, Call, program};
use libc::sock_filter;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

/// asm-generic/ioctls.h: puts a byte into the input queue of a terminal; on a virtual console, pastes what is selected.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const INPUT: &[u32] = &[TIOCSTI, TIOCLINUX];

/// The second argument of ioctl is the request; the kernel looks at its lower 32 bits alone.
const REQUEST: u32 = 1;

/// ioctl, by its numbers in the kernel's tables (arch/x86/entry/syscalls, asm-generic/unistd.h, arch/arm/tools): x32 has one of its own.
const CALLS: [Call; 2] = [
    Call::new("ioctl", 16, 54)
        .on_arm(29, 54)
        .only_if_one_of(REQUEST, INPUT),
    Call::of_x32("ioctl", 514).only_if_one_of(REQUEST, INPUT),
];

/// Variables that stay: what a terminal can do, and language and time zone of the person, which decide what CMD does.
const KEPT: [&str; 6] = ["TERM", "COLORTERM", "NO_COLOR", "TZ", "LANG", "LANGUAGE"];
const KEPT_PREFIX: &[u8] = b"LC_";

/// Where programs are looked for: as sudo's `secure_path` has it.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The first descriptor that is none of the standard ones.
const FIRST: libc::c_uint = 3;

/// Descriptors that are tried one by one where the kernel can't close a range (before 5.11): as many as a process may usually have.
const MOST_DESCRIPTORS: i32 = 65_536;

/// The program that refuses to push input into a terminal.
pub fn no_terminal_input() -> Vec<sock_filter> {
    program(&CALLS, Answer::Refused)
}

/// Whether CMD keeps a variable.
pub(super) fn keeps(name: &OsStr) -> bool {
    KEPT.iter().any(|kept| name == *kept) || name.as_bytes().starts_with(KEPT_PREFIX)
}

/// Has the kernel close at exec every descriptor but the standard ones and `but`. Async-signal-safe.
pub(super) fn close_at_exec(but: Option<RawFd>) {
    // SAFETY: plain system calls with integers; what is not open is refused.
    unsafe {
        let range = libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        if range != 0 {
            for descriptor in FIRST.cast_signed()..MOST_DESCRIPTORS {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
        if let Some(descriptor) = but {
            libc::fcntl(descriptor, libc::F_SETFD, 0);
        }
    }
}

/// Leaves root's session keyring for an empty one: who has it can read the keys in it, whoever he is. A kernel without keyrings has nothing
/// to leave. Async-signal-safe.
pub(super) fn leave_keyring() {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: a number and no name, for a keyring without one.
    unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        )
    };
}

/// Variables of holdup's own that CMD keeps.
pub(super) fn kept() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| keeps(name))
}

#[cfg(test)]
mod tests {
    use super::keeps;
    use std::ffi::OsStr;

    #[test]
    fn of_the_environment_only_terminal_language_and_time_zone_stay() {
        for (name, kept) in [
            ("TERM", true),
            ("LC_ALL", true),
            ("LANG", true),
            ("TZ", true),
            ("SSH_AUTH_SOCK", false),
            ("DBUS_SESSION_BUS_ADDRESS", false),
            ("LD_PRELOAD", false),
            ("XAUTHORITY", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("LANG_", false),
        ] {
            assert_eq!(keeps(OsStr::new(name)), kept, "{name}");
        }
    }
}
