//! What the programs need to know of system calls, as tables by number.
//!
//! In: the table of system calls. Out: arrays of the size that the programs have.

use holdup_evidence::arch;
use holdup_knowledge::system_calls::{SYSTEM_CALLS, SystemCall};

/// Number of system calls that the programs' tables have room for.
pub const TABLE: usize = 512;

/// Number of io_uring operations that the programs' table has room for.
pub const OPERATIONS: usize = 64;

/// For each number of a 32-bit call: 1 + that of the same 64-bit one; 0 where there is none. What the others wait for is reported
/// by the kernel's stack.
pub(crate) fn calls_of_32_bit() -> [u16; TABLE] {
    let mut table = [0; TABLE];
    for call in SYSTEM_CALLS {
        for number in call.of_32_bit {
            let slot = arch::here::call_of_32_bit(*number).and_then(|here| table.get_mut(usize::from(here)));
            if let (Some(slot), Ok(same)) = (slot, u16::try_from(call.number())) {
                *slot = same + 1;
            }
        }
    }
    table
}

/// For each number of this machine's calls: 1 + that of x86-64; 0 where there is none.
pub(crate) fn calls_of_machine() -> [u16; TABLE] {
    std::array::from_fn(|number| {
        let same = i32::try_from(number).ok().and_then(arch::here::call);
        same.and_then(|same| u16::try_from(same).ok())
            .map_or(0, |same| same + 1)
    })
}

/// For each io_uring operation the number of the system call that does the same, -1 where none does.
#[must_use]
pub fn calls_of_operations() -> [i16; OPERATIONS] {
    let mut table = [-1; OPERATIONS];
    for call in SYSTEM_CALLS {
        let slot = call
            .operation
            .and_then(|operation| table.get_mut(usize::from(operation)));
        if let (Some(slot), Ok(number)) = (slot, i16::try_from(call.number())) {
            *slot = number;
        }
    }
    table
}

/// For each call number 1 + the index of its descriptor argument, 0 where it has none.
#[must_use]
pub fn descriptor_arguments() -> [u8; TABLE] {
    arguments(|call| call.descriptor)
}

/// For each call number 1 + the index of its path argument, 0 where it has none.
#[must_use]
pub fn path_arguments() -> [u8; TABLE] {
    arguments(|call| Some(call.path?.argument))
}

fn arguments(argument: impl Fn(&SystemCall) -> Option<u8>) -> [u8; TABLE] {
    let mut table = [0; TABLE];
    for call in SYSTEM_CALLS {
        let slot = usize::try_from(call.number())
            .ok()
            .and_then(|number| table.get_mut(number));
        if let (Some(slot), Some(argument)) = (slot, argument(call)) {
            *slot = argument + 1;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{calls_of_32_bit, calls_of_operations, descriptor_arguments, path_arguments};

    #[test]
    fn an_operation_without_a_call_has_none() {
        let table = calls_of_operations();
        assert_eq!(i64::from(table[3]), libc::SYS_fsync);
        assert_eq!(table[0], -1);
    }

    #[test]
    fn a_32_bit_call_has_the_number_of_the_same_64_bit_one() {
        let table = calls_of_32_bit();
        assert_eq!(i64::from(table[3]), libc::SYS_read + 1);
        assert_eq!(i64::from(table[407]), libc::SYS_clock_nanosleep + 1);
        assert_eq!(table[1], 0);
    }

    #[test]
    fn arguments_are_counted_from_one() {
        assert_eq!(descriptor_arguments()[libc::SYS_read as usize], 1);
        assert_eq!(descriptor_arguments()[libc::SYS_openat as usize], 0);
        assert_eq!(path_arguments()[libc::SYS_openat as usize], 2);
        assert_eq!(path_arguments()[libc::SYS_lchown as usize], 1);
        // The name of the link is looked up; what it will lead to is not.
        assert_eq!(path_arguments()[libc::SYS_symlink as usize], 2);
    }
}
