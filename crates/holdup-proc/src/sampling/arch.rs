//! Registers in samples of performance events, as the kernel numbers and orders them, by processor.
//!
//! In: the values of a sample, in the order of their numbers. Out: which is which.

#[cfg_attr(
    all(target_arch = "x86_64", not(test)),
    expect(dead_code, reason = "of the other processor")
)]
mod aarch64;
#[cfg_attr(
    all(target_arch = "aarch64", not(test)),
    expect(dead_code, reason = "of the other processor")
)]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{CALLS, STACK, stack};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{CALLS, STACK, stack};

/// How a thread that is seen in its own code is known to come from a call, and from which.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    /// A bit for each register that is asked for.
    pub(super) mask: u64,
    /// Of the registers that are asked for, lowest number first: which is the number of a call as it begins, which the address that it returns
    /// to behind it, which are its arguments, and which is the place in the code.
    pub(super) number: usize,
    pub(super) returned_to: usize,
    pub(super) args: [usize; 4],
    pub(super) ip: usize,
}

/// Instruction pointer, stack pointer, and what functions keep for their callers.
pub(super) type Stack<const N: usize> = (u64, u64, [u64; N]);

#[cfg(test)]
pub(super) use x86_64::X86_64_CALLS;

#[cfg(test)]
mod tests {
    use super::{aarch64, x86_64};

    #[test]
    fn registers_of_a_sample_come_by_their_numbers() {
        assert_eq!(x86_64::STACK.count_ones(), 8);
        let values = [3, 6, 7, 8, 112, 113, 114, 115];
        assert_eq!(x86_64::stack(&values), (8, 7, [3, 6, 112, 113, 114, 115]));
        // x19 to x30, sp, pc.
        assert_eq!(aarch64::STACK.count_ones(), 14);
        let values: [u64; 14] = std::array::from_fn(|at| 19 + at as u64);
        let saved = std::array::from_fn(|at| 19 + at as u64);
        assert_eq!(aarch64::stack(&values), (32, 31, saved));
    }

    #[test]
    fn only_one_processor_tells_where_a_call_came_from() {
        assert!(x86_64::CALLS.is_some_and(|calls| calls.mask.count_ones() == 7));
        assert!(aarch64::CALLS.is_none());
    }
}
