//! Numbers of calls, held against the kernel's tables (asm-generic/unistd.h, arm's and x86's syscall.tbl).

use super::{aarch64, x86_64};
use crate::Call;

#[test]
fn calls_of_aarch64_have_the_numbers_of_x86_64() {
    let same = [
        (29, 16),   // ioctl
        (63, 0),    // read
        (64, 1),    // write
        (56, 257),  // openat
        (72, 270),  // pselect6
        (73, 271),  // ppoll
        (79, 262),  // newfstatat
        (22, 281),  // epoll_pwait
        (82, 74),   // fsync
        (98, 202),  // futex
        (101, 35),  // nanosleep
        (115, 230), // clock_nanosleep
        (203, 42),  // connect
        (260, 61),  // wait4
        (435, 435), // clone3
        (441, 441), // epoll_pwait2
    ];
    for (here, there) in same {
        assert_eq!(aarch64::call(here), Some(there), "{here}");
    }
}

#[test]
fn numbers_that_are_no_calls_are_none() {
    // 244 to 259 belong to each architecture, and aarch64 has none of them.
    for number in [-1, 244, 259, 511, 512, i32::MAX] {
        assert_eq!(aarch64::call(number), None, "{number}");
    }
    assert_eq!(super::call(-1), Call::NONE);
}

#[test]
fn no_two_calls_of_aarch64_are_the_same() {
    let mut calls: Vec<i32> = (0..512).filter_map(aarch64::call).collect();
    let all = calls.len();
    assert!(all > 300, "{all}");
    calls.sort_unstable();
    calls.dedup();
    assert_eq!(calls.len(), all);
}

#[test]
fn calls_of_32_bit_programs_go_by_name() {
    let same = [
        (3, 3),     // read
        (142, 142), // _newselect
        (168, 168), // poll
        (240, 240), // futex
        (256, 252), // epoll_wait
        (267, 265), // clock_nanosleep
        (369, 290), // sendto
        (407, 407), // clock_nanosleep_time64
    ];
    for (i386, arm) in same {
        assert_eq!(aarch64::call_of_32_bit(i386), Some(arm), "{i386}");
        assert_eq!(x86_64::call_of_32_bit(i386), Some(i386));
    }
    // waitpid, which ARM has no more.
    assert_eq!(aarch64::call_of_32_bit(7), None);
}
