//! Filters on system calls, as containers and services have them: what they refuse, and what they kill for.

use crate::case::{COMPUTES, Case, Verdict, alone};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The capabilities that Docker leaves to root in a container.
const OF_CONTAINERS: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,\
                             +sys_chroot,+mknod,+audit_write,+setfcap";

/// Calls that Docker's default filter refuses to a container with these capabilities (moby's `profiles/seccomp/default.json`), as
/// far as an observer, or the C library, has any use for them.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Calls by which one process looks into another.
const LOOKS_IN: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
];

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// A filter by which these calls are answered so; with `first`, only those whose first argument is that.
fn filter(calls: &[libc::c_long], first: Option<i32>, answer: u32) -> Vec<libc::sock_filter> {
    /// Where a call's number and the lower half of its first argument are in what a filter is given.
    const NUMBER: u32 = 0;
    const FIRST: u32 = 16;
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let skip_unless = |value, steps| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, steps, value);
    let end = |answer| step(libc::BPF_RET | libc::BPF_K, 0, 0, answer);
    let mut filter = Vec::new();
    for call in calls {
        let then: Vec<libc::sock_filter> = match first {
            Some(first) => vec![load(FIRST), skip_unless(first as u32, 1), end(answer)],
            None => vec![end(answer)],
        };
        filter.extend([load(NUMBER), skip_unless(*call as u32, then.len() as u8)]);
        filter.extend(then);
    }
    filter.push(end(libc::SECCOMP_RET_ALLOW));
    filter
}

/// Puts a filter on the child that a command becomes.
fn under(mut command: Command, mut filter: Vec<libc::sock_filter>) -> Command {
    let install = move || {
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the filter lives until the call returns; the kernel copies it.
        let refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ) != 0
        };
        match refused {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(()),
        }
    };
    // SAFETY: two calls are made after the fork, and nothing else.
    unsafe { command.pre_exec(install) };
    command
}

fn with_filter(command: Command, calls: &[libc::c_long], answer: u32) -> Command {
    under(command, filter(calls, None, answer))
}

#[test]
fn a_container() {
    let _alone = alone();
    let case = Case::new();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let root = case.with(&[
        "--bounding-set",
        OF_CONTAINERS,
        "--inh-caps",
        "-all",
        "--no-new-privs",
    ]);
    for (name, command) in [
        ("Docker's filter and capabilities, root", root),
        ("Docker's filter, an ordinary user", case.nobody("")),
    ] {
        let found = case.observe(name, with_filter(command, REFUSED, refused));
        assert_eq!(found.backend, "proc");
        assert!(found.function);
    }
}

#[test]
fn a_filter_on_looking_into_others() {
    let _alone = alone();
    let case = Case::new();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    for (name, answer) in [
        ("no ptrace-like calls: EPERM", refused),
        ("no ptrace-like calls: killed", libc::SECCOMP_RET_KILL_PROCESS),
    ] {
        let found = case.observe(name, with_filter(case.nobody(""), LOOKS_IN, answer));
        assert_eq!(found.backend, "proc");
        // Its memory can't be read, so nobody knows which function asked; the call is known all the same.
        assert!(!found.function, "{name}");
        assert!(
            found.lacks("askers (user stacks") && found.fixed_by("process_vm_readv"),
            "{name}"
        );
    }
}

/// Calls that a filter may kill for, that are not about another's memory, and what of the report hangs on each.
const KILLED_FOR: [(&str, libc::c_long, Option<i32>, &str); 6] = [
    ("bpf", libc::SYS_bpf, None, ""),
    (
        "perf_event_open",
        libc::SYS_perf_event_open,
        None,
        "user stacks of threads on a CPU",
    ),
    ("pidfd_open", libc::SYS_pidfd_open, None, ""),
    ("kcmp", libc::SYS_kcmp, None, ""),
    ("io_uring_setup", libc::SYS_io_uring_setup, None, ""),
    ("socket(AF_NETLINK)", libc::SYS_socket, Some(libc::AF_NETLINK), ""),
];

#[test]
fn a_filter_that_kills_costs_what_the_call_would_have_told_and_not_holdup() {
    let _alone = alone();
    let case = Case::new();
    for (name, call, first, lost) in KILLED_FOR {
        for (who, command) in [("an ordinary user", case.nobody("")), ("root", case.with(&[]))] {
            let name = format!("killed for {name}, {who}");
            let found = case.observe(
                &name,
                under(command, filter(&[call], first, libc::SECCOMP_RET_KILL_PROCESS)),
            );
            assert!(found.function, "{name}");
            let takes_tracing = [libc::SYS_bpf, libc::SYS_perf_event_open].contains(&call);
            let traced = who == "root" && !takes_tracing;
            assert_eq!(found.backend == "bpf", traced, "{name}");
            assert!(traced || lost.is_empty() || found.lacks(lost), "{name}");
        }
    }
}

#[test]
fn without_descriptors_of_processes() {
    let _alone = alone();
    let case = Case::new();
    // As kernels before Linux 5.3 answer, and filters that are older than the call.
    for (name, errno) in [("ENOSYS", libc::ENOSYS), ("EPERM", libc::EPERM)] {
        let answer = libc::SECCOMP_RET_ERRNO | errno as u32;
        for (who, command) in [("an ordinary user", case.nobody("")), ("root", case.with(&[]))] {
            let name = format!("pidfd_open: {name}, {who}");
            assert!(
                case.observe(&name, with_filter(command, &[libc::SYS_pidfd_open], answer))
                    .function
            );
        }
    }
}

#[test]
fn functions_on_a_cpu_where_the_kernel_lets_users_see_their_own_programs() {
    let _alone = alone();
    let case = Case::new();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    for (name, filter) in [
        ("computes, an ordinary user", &[][..]),
        (
            "computes, perf_event_open refused",
            &[libc::SYS_perf_event_open][..],
        ),
    ] {
        let report = case.reported(name, with_filter(case.nobody(""), filter, refused), &COMPUTES);
        let result = Verdict::of(&report);
        assert_eq!(
            (result.backend.as_str(), result.cause.as_str()),
            ("proc", "cpu.user"),
            "{name}"
        );
        assert_eq!(result.function, filter.is_empty(), "{name}: {report:#}");
        let unseen = report["coverage"]["not_measured"].as_array().unwrap();
        let line = unseen
            .iter()
            .find(|line| line["what"] == "user stacks of threads on a CPU");
        assert_eq!(line.is_some(), !filter.is_empty(), "{name}: {unseen:?}");
        assert!(line.is_none_or(|line| line["fix"].as_str().unwrap().contains("perf_event_open")));
    }
}
