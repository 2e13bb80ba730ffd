//! What filters answer, without a kernel: to the calls that an experiment takes away, and to input for a terminal.

use super::super::without::{sleep, sync};
use holdup_subject::filter::{
    AND, ARGUMENT, ARGUMENTS, AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, Answer,
    IF_BITS, IF_EQUAL, LOAD, NUMBER, Processor, RETURN, RETURN_0, RETURN_ENOSYS, RETURN_EPERM, TABLE,
    X32_BIT, program, program_for,
};

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
fn on_arm_calls_have_the_numbers_of_its_tables() {
    let answered = |calls, table| -> Vec<u32> {
        let program = program_for(Processor::Arm, calls, Answer::AtOnce);
        let answered = |number: &u32| runs(&program, table, *number, [0; 6]) == RETURN_0;
        (0..500).filter(answered).collect()
    };
    assert_eq!(answered(sync::CALLS, AUDIT_ARCH_AARCH64), [81, 82, 83, 84, 267]);
    assert_eq!(answered(sync::CALLS, AUDIT_ARCH_ARM), [36, 118, 148, 341, 373]);
    assert_eq!(answered(sleep::CALLS, AUDIT_ARCH_AARCH64), [101, 115]);
    assert_eq!(answered(sleep::CALLS, AUDIT_ARCH_ARM), [162, 265, 407]);
    assert!(answered(sync::CALLS, AUDIT_ARCH_X86_64).is_empty());
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
    let program = holdup_subject::subject::no_terminal_input();
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
