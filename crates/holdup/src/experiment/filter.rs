//! A filter on system calls that answers some of them at once: with success and without having done anything, or with a refusal.
//!
//! In: which calls. Out: a program of classic BPF for seccomp(2), to be put on a process before it becomes CMD; its children inherit it
//! and nobody else has it. There is no supervisor: the kernel answers by itself, so a call costs a microsecond, in static programs
//! and under any user.
//!
//! A process may use more than one table of system calls (x86-64, its x32 variant, i386), and a number means another call in each, so
//! the program looks at the table first. A library that makes such programs was looked at (seccompiler): it knows one table a program
//! and has processes that use another one killed.
//!
//! CMD as it is gets the same program with every answer "do it": what the filter itself costs is then in both arms.

use libc::sock_filter;

/// Calls that are answered, as seccomp's tables number them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// As manual pages have it.
    pub(crate) name: &'static str,
    /// x86-64, and x32 with another bit set.
    x86_64: Option<u32>,
    /// i386.
    i386: Option<u32>,
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
    /// A call with its numbers in both tables.
    pub(crate) const fn new(name: &'static str, x86_64: u32, i386: u32) -> Call {
        Call {
            name,
            x86_64: Some(x86_64),
            i386: Some(i386),
            only_if: None,
        }
    }

    /// A call that has a number of its own for x32, without that bit.
    pub(crate) const fn of_x32(name: &'static str, x32: u32) -> Call {
        Call {
            name,
            x86_64: Some(x32),
            i386: None,
            only_if: None,
        }
    }

    /// A call that only i386 has.
    pub(super) const fn of_i386(name: &'static str, i386: u32) -> Call {
        Call {
            name,
            x86_64: None,
            i386: Some(i386),
            only_if: None,
        }
    }

    /// The same, answered only if argument `argument`, counted from 0, has one of the `bits`.
    pub(super) const fn only_if(self, argument: u32, bits: u32) -> Call {
        Call {
            only_if: Some(Condition::HasBits(argument, bits)),
            ..self
        }
    }

    /// The same, answered only if argument `argument`, counted from 0, is one of these.
    pub(crate) const fn only_if_one_of(self, argument: u32, values: &'static [u32]) -> Call {
        Call {
            only_if: Some(Condition::Is(argument, values)),
            ..self
        }
    }
}

/// What becomes of such calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The kernel does them: CMD as it is.
    Done,
    /// 0, and nothing is done.
    AtOnce,
    /// EPERM, and nothing is done. A table of calls that is not known here has none that are done.
    Refused,
}

/// linux/audit.h: the tables of system calls.
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const AUDIT_ARCH_I386: u32 = 0x4000_0003;

/// Of x86-64's numbers: this bit is x32's.
const X32_BIT: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`: number, table, and the lower half of the first argument on a little-endian machine.
const NUMBER: u32 = 0;
const TABLE: u32 = 4;
const ARGUMENTS: u32 = 16;
const ARGUMENT: u32 = 8;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
/// The call is not made and returns 0: an error of number 0 is none.
const RETURN_0: u32 = libc::SECCOMP_RET_ERRNO;

/// EPERM, and ENOSYS for calls by a table that is not known.
const RETURN_EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
const RETURN_ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;

/// The program for these calls.
pub(crate) fn program(calls: &[Call], answer: Answer) -> Vec<sock_filter> {
    let x86_64 = table(calls, |call| call.x86_64, Some(!X32_BIT), answer);
    let i386 = table(calls, |call| call.i386, None, answer);
    let mut program = vec![statement(LOAD, TABLE)];
    for (number, table) in [(AUDIT_ARCH_X86_64, x86_64), (AUDIT_ARCH_I386, i386)] {
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
pub(crate) fn put_on(program: &[sock_filter]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::{
        AND, ARGUMENT, ARGUMENTS, AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, Answer, IF_BITS, IF_EQUAL, LOAD,
        NUMBER, RETURN, RETURN_0, RETURN_ENOSYS, RETURN_EPERM, TABLE, X32_BIT, program,
    };
    use crate::experiment::without::{sleep, sync};

    /// What the kernel would make of it.
    fn runs(program: &[libc::sock_filter], table: u32, number: u32, arguments: [u32; 6]) -> u32 {
        let (mut at, mut a) = (0, 0_u32);
        loop {
            let one = program[at];
            at += 1;
            match one.code {
                LOAD => {
                    a = match one.k {
                        NUMBER => number,
                        TABLE => table,
                        offset => arguments[((offset - ARGUMENTS) / ARGUMENT) as usize],
                    }
                }
                AND => a &= one.k,
                IF_EQUAL => at += usize::from(if a == one.k { one.jt } else { one.jf }),
                IF_BITS => at += usize::from(if a & one.k != 0 { one.jt } else { one.jf }),
                RETURN => return one.k,
                code => panic!("{code:#x}"),
            }
        }
    }

    #[test]
    fn calls_are_answered_in_each_table_by_its_own_number_and_no_other_is() {
        let program = program(sync::CALLS, Answer::AtOnce);
        let answered =
            |table, number: i64| runs(&program, table, u32::try_from(number).unwrap(), [0; 6]) == RETURN_0;
        for number in [
            libc::SYS_fsync,
            libc::SYS_fdatasync,
            libc::SYS_sync,
            libc::SYS_syncfs,
            libc::SYS_sync_file_range,
        ] {
            assert!(answered(AUDIT_ARCH_X86_64, number), "{number}");
            assert!(
                answered(AUDIT_ARCH_X86_64, number | i64::from(X32_BIT)),
                "{number}"
            );
        }
        let of_i386: Vec<i64> = (0..500)
            .filter(|number| answered(AUDIT_ARCH_I386, *number))
            .collect();
        assert_eq!(of_i386, [36, 118, 148, 314, 344]);
        let of_x86_64: Vec<i64> = (0..500)
            .filter(|number| answered(AUDIT_ARCH_X86_64, *number))
            .collect();
        assert_eq!(of_x86_64, [74, 75, 162, 277, 306]);
        let of_another: Vec<i64> = (0..500).filter(|number| answered(0xc000_00b7, *number)).collect();
        assert!(of_another.is_empty());
    }

    #[test]
    fn msync_is_answered_only_if_it_would_wait() {
        let program = program(sync::CALLS, Answer::AtOnce);
        let of = |flags| {
            let number = u32::try_from(libc::SYS_msync).unwrap();
            runs(&program, AUDIT_ARCH_X86_64, number, [1, 4096, flags, 0, 0, 0]) == RETURN_0
        };
        let flag = i32::cast_unsigned;
        assert!(of(flag(libc::MS_SYNC)) && of(flag(libc::MS_SYNC | libc::MS_INVALIDATE)));
        assert!(!of(flag(libc::MS_ASYNC)) && !of(0));
    }

    #[test]
    fn input_for_a_terminal_is_refused_in_each_table_whatever_the_upper_half_of_a_request_is() {
        let program = crate::subject::no_terminal_input();
        const TIOCSTI: u32 = 0x5412;
        const TIOCLINUX: u32 = 0x541c;
        const TCGETS: u32 = 0x5401;
        let of = |table, number, request| runs(&program, table, number, [0, request, 0, 0, 0, 0]);
        for (table, number) in [
            (AUDIT_ARCH_X86_64, 16),
            (AUDIT_ARCH_X86_64, X32_BIT | 16),
            (AUDIT_ARCH_X86_64, X32_BIT | 514),
            (AUDIT_ARCH_I386, 54),
        ] {
            // The program loads no upper half, so none can get past it.
            assert_eq!(of(table, number, TIOCSTI), RETURN_EPERM, "{table:#x} {number}");
            assert_eq!(of(table, number, TIOCLINUX), RETURN_EPERM, "{table:#x} {number}");
            assert_eq!(of(table, number, TCGETS), libc::SECCOMP_RET_ALLOW);
            assert_eq!(of(table, number + 1, TIOCSTI), libc::SECCOMP_RET_ALLOW);
        }
        let loads = program.iter().filter(|one| one.code == LOAD).map(|one| one.k);
        assert!(
            loads
                .into_iter()
                .all(|offset| [NUMBER, TABLE, ARGUMENTS + ARGUMENT].contains(&offset))
        );
        assert_eq!(
            of(0xc000_00b7, 29, TCGETS),
            RETURN_ENOSYS,
            "a table that is not known"
        );
    }

    #[test]
    fn as_it_is_the_same_program_lets_everything_be_done() {
        for calls in [sync::CALLS, sleep::CALLS] {
            let (done, at_once) = (program(calls, Answer::Done), program(calls, Answer::AtOnce));
            assert_eq!(done.len(), at_once.len());
            assert!(
                done.iter()
                    .all(|one| one.code != RETURN || one.k == libc::SECCOMP_RET_ALLOW)
            );
        }
    }
}
