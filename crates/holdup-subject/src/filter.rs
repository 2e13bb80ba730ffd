//! A filter on system calls that answers some of them at once: with success and without having done anything, or with a refusal.
//!
//! In: which calls. Out: a program of classic BPF for seccomp(2), to be put on a process before it becomes CMD; its children inherit it
//! and nobody else has it. There is no supervisor: the kernel answers by itself, so a call costs a microsecond, in static programs
//! and under any user.
//!
//! A process may use more than one table of system calls (x86-64, its x32 variant, i386; aarch64, ARM's), and a number means another call
//! in each, so the program looks at the table first. A library that makes such programs was looked at (seccompiler): it knows one table a
//! program and has processes that use another one killed.
//!
//! CMD as it is gets the same program with every answer "do it": what the filter itself costs is then in both arms.

use libc::sock_filter;

/// Calls that are answered, as seccomp's tables number them.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// As manual pages have it.
    pub name: &'static str,
    /// x86-64, and x32 with another bit set.
    x86_64: Option<u32>,
    /// i386.
    i386: Option<u32>,
    /// aarch64.
    aarch64: Option<u32>,
    /// 32-bit ARM (EABI).
    arm: Option<u32>,
    /// Only then.
    only_if: Option<Condition>,
}

/// What an argument must be, counted from 0. Only its lower half is looked at: the kernel's own calls that are asked about take no more.
#[derive(Debug, Clone, Copy)]
enum Condition {
    /// It has one of these bits.
    HasBits(u32, u32),
    /// It is one of these.
    Is(u32, &'static [u32]),
}

impl Call {
    /// A call with its numbers in both tables of x86.
    pub const fn new(name: &'static str, x86_64: u32, i386: u32) -> Call {
        Call {
            name,
            x86_64: Some(x86_64),
            i386: Some(i386),
            aarch64: None,
            arm: None,
            only_if: None,
        }
    }

    /// A call that has a number of its own for x32, without that bit.
    pub const fn of_x32(name: &'static str, x32: u32) -> Call {
        Call {
            name,
            x86_64: Some(x32),
            i386: None,
            aarch64: None,
            arm: None,
            only_if: None,
        }
    }

    /// The same, with its numbers in both tables of ARM.
    pub const fn on_arm(self, aarch64: u32, arm: u32) -> Call {
        Call {
            aarch64: Some(aarch64),
            arm: Some(arm),
            ..self
        }
    }

    /// A call that only 32-bit programs have.
    pub const fn of_32_bit(name: &'static str, i386: u32, arm: u32) -> Call {
        Call {
            name,
            x86_64: None,
            i386: Some(i386),
            aarch64: None,
            arm: Some(arm),
            only_if: None,
        }
    }

    /// The same, answered only if argument `argument`, counted from 0, has one of the `bits`.
    pub const fn only_if(self, argument: u32, bits: u32) -> Call {
        Call {
            only_if: Some(Condition::HasBits(argument, bits)),
            ..self
        }
    }

    /// The same, answered only if argument `argument`, counted from 0, is one of these.
    pub const fn only_if_one_of(self, argument: u32, values: &'static [u32]) -> Call {
        Call {
            only_if: Some(Condition::Is(argument, values)),
            ..self
        }
    }
}

/// What becomes of such calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The kernel does them: CMD as it is.
    Done,
    /// 0, and nothing is done.
    AtOnce,
    /// EPERM, and nothing is done. A table of calls that is not known here has none that are done.
    Refused,
}

/// linux/audit.h: x86-64's table of system calls, which x32 shares.
pub const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// The same of i386.
pub const AUDIT_ARCH_I386: u32 = 0x4000_0003;
/// aarch64's.
pub const AUDIT_ARCH_AARCH64: u32 = 0xc000_00b7;
/// 32-bit ARM's.
pub const AUDIT_ARCH_ARM: u32 = 0x4000_0028;

/// Of x86-64's numbers: this bit is x32's.
pub const X32_BIT: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`, on a little-endian machine the lower half of each: the number of the call.
pub const NUMBER: u32 = 0;
/// The table.
pub const TABLE: u32 = 4;
/// The arguments.
pub const ARGUMENTS: u32 = 16;
/// From one argument to the next.
pub const ARGUMENT: u32 = 8;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
/// The call is not made and returns 0: an error of number 0 is none.
pub const RETURN_0: u32 = libc::SECCOMP_RET_ERRNO;

/// The call is not made and fails with EPERM.
pub const RETURN_EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
/// ENOSYS for calls by a table that is not known.
pub const RETURN_ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();

/// Statements of classic BPF: loads a word of `struct seccomp_data`.
pub const LOAD: u16 = 0x20;
/// Keeps these bits.
pub const AND: u16 = 0x54;
/// Jumps by whether it is equal.
pub const IF_EQUAL: u16 = 0x15;
/// Jumps by whether it has one of these bits.
pub const IF_BITS: u16 = 0x45;
/// Ends with this answer.
pub const RETURN: u16 = 0x06;

/// Processors whose kernels have the same tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// x86-64, i386.
    X86,
    /// aarch64, 32-bit ARM.
    Arm,
}

impl Processor {
    /// This machine's.
    pub const HERE: Processor = match cfg!(target_arch = "aarch64") {
        true => Processor::Arm,
        false => Processor::X86,
    };
}

/// The program for these calls on this machine.
pub fn program(calls: &[Call], answer: Answer) -> Vec<sock_filter> {
    program_for(Processor::HERE, calls, answer)
}

/// The program for these calls.
pub fn program_for(processor: Processor, calls: &[Call], answer: Answer) -> Vec<sock_filter> {
    let of = |number: fn(&Call) -> Option<u32>, mask| table(calls, number, mask, answer);
    let tables = match processor {
        Processor::X86 => [
            (AUDIT_ARCH_X86_64, of(|call| call.x86_64, Some(!X32_BIT))),
            (AUDIT_ARCH_I386, of(|call| call.i386, None)),
        ],
        Processor::Arm => [
            (AUDIT_ARCH_AARCH64, of(|call| call.aarch64, None)),
            (AUDIT_ARCH_ARM, of(|call| call.arm, None)),
        ],
    };
    let mut program = vec![statement(LOAD, TABLE)];
    for (number, table) in tables {
        let length = u8::try_from(table.len()).expect("a table is a few dozen statements");
        program.push(jump(IF_EQUAL, number, 0, length));
        program.extend(table);
    }
    program.push(statement(
        RETURN,
        match answer {
            Answer::Done | Answer::AtOnce => ALLOW,
            Answer::Refused => RETURN_ENOSYS,
        },
    ));
    program
}

/// Puts a program on the calling process, if there is one; with errno set where the kernel does not take it. Without `no_new_privs`, which
/// would break programs that become another user, that takes CAP_SYS_ADMIN. Async-signal-safe.
pub fn put_on(program: &[sock_filter]) -> bool {
    let Ok(len) = u16::try_from(program.len()) else {
        return false;
    };
    let filter = libc::sock_fprog {
        len,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: a program whose length is said; the kernel checks it. Without the flag, kernels before 5.16 slow the process down for fear
    // of it.
    len == 0
        || unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                &raw const filter,
            ) == 0
        }
}

/// The part for one table; it returns in every case.
fn table(
    calls: &[Call],
    number: impl Fn(&Call) -> Option<u32>,
    mask: Option<u32>,
    answer: Answer,
) -> Vec<sock_filter> {
    let answered = match answer {
        Answer::Done => ALLOW,
        Answer::AtOnce => RETURN_0,
        Answer::Refused => RETURN_EPERM,
    };
    let mut part = vec![statement(LOAD, NUMBER)];
    part.extend(mask.map(|mask| statement(AND, mask)));
    for call in calls {
        let Some(number) = number(call) else { continue };
        let then = match call.only_if {
            None => vec![statement(RETURN, answered)],
            Some(Condition::Is(argument, values)) => {
                let mut then = vec![statement(LOAD, ARGUMENTS + ARGUMENT * argument)];
                for value in values {
                    then.push(jump(IF_EQUAL, *value, 0, 1));
                    then.push(statement(RETURN, answered));
                }
                then.push(statement(RETURN, ALLOW));
                then
            }
            Some(Condition::HasBits(argument, bits)) => vec![
                statement(LOAD, ARGUMENTS + ARGUMENT * argument),
                jump(IF_BITS, bits, 0, 1),
                statement(RETURN, answered),
                statement(RETURN, ALLOW),
            ],
        };
        let length = u8::try_from(then.len()).expect("a few statements");
        part.push(jump(IF_EQUAL, number, 0, length));
        part.extend(then);
    }
    part.push(statement(RETURN, ALLOW));
    part
}

fn statement(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}
