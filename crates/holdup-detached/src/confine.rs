//! What a child gives up before it reads anything.
//!
//! In: what it may keep. Out: a process without the parent's descriptors, terminal, priority, user id and capabilities, which can't start
//! programs, can't write to files that exist, can't trace or signal anybody, and ends with its parent. A step that this user is not
//! allowed is left out where the process then has no such right anyway; all others must succeed.

use crate::arch::here as arch;
use crate::capabilities::Capabilities;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal};
use nix::unistd::{Gid, Pid, Uid, geteuid, getppid, setgroups, setresgid, setresuid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

/// When a child gives up its rights, and what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// It has none of them from the start, and is killed when its parent ends.
    GivenUp,
    /// It keeps the parent's user id, capabilities and system calls until it gives them up by itself, as a child must that acts as another
    /// user. It has something to put away, so the end of its parent does not kill it: it must watch for that. It is in a session of its own,
    /// so that a signal for the parent's group does not end it either. The limit is how long it may live, seconds.
    ItsOwnToGiveUp {
        /// After so many seconds the kernel ends it.
        lifetime_seconds: u32,
    },
}

/// What a child may keep.
#[derive(Debug, Clone, Copy)]
pub struct Confinement {
    /// Its name, 15 bytes at most: in lists of processes, and in [`crate::left_behind`].
    pub name: &'static CStr,
    /// Capabilities that it keeps, of those that the parent has.
    pub capabilities: Capabilities,
    /// CPU time in all; the kernel counts whole seconds. `None`: no limit.
    pub cpu_time: Option<Duration>,
    /// Address space beyond what the parent has, bytes.
    pub memory_bytes: u64,
    /// Open files.
    pub files: u64,
}

/// Nobody: the id that the kernel shows for users that it can't name (`/proc/sys/kernel/overflowuid`).
const NOBODY: u32 = 65_534;

/// The descriptor of the channel in the child: the first behind stdin, stdout and stderr.
const CHANNEL: libc::c_int = 3;

/// System calls that no reader of another's data needs, beside [`arch::REFUSED`]. What makes processes, runs programs, reaches the network, changes other processes, the
/// kernel or file systems.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_truncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_fsetxattr,
    // Its flags are in memory, where no filter reads them.
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
];

/// Confines this process, a child of `parent`, and returns the channel in its new place.
pub(crate) fn confine(
    what: &Confinement,
    rights: Rights,
    parent: Pid,
    channel: OwnedFd,
) -> io::Result<OwnedFd> {
    // SAFETY: a setting of this process only; the name outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, what.name.as_ptr()) };
    if let Rights::ItsOwnToGiveUp { lifetime_seconds } = rights {
        let channel = leave_descriptors(channel)?;
        limit(what)?;
        stand_alone(lifetime_seconds)?;
        return Ok(channel);
    }
    // SAFETY: a setting of this process only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let channel = leave_descriptors(channel)?;
    limit(what)?;
    give_up_rights(what.capabilities)?;
    // Changing user ids clears it.
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if getppid() != parent {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let filter = filter()?;
    seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
    Ok(channel)
}

/// Leaves the parent's session, and has the kernel end this process after a time. Other signals stay blocked, as they are when it is forked.
fn stand_alone(lifetime_seconds: u32) -> io::Result<()> {
    nix::unistd::setsid()?;
    // SAFETY: the default action is no handler of this process's.
    unsafe { nix::sys::signal::signal(Signal::SIGALRM, SigHandler::SigDfl) }?;
    nix::unistd::alarm::set(lifetime_seconds);
    let mut alarm = SigSet::empty();
    alarm.add(Signal::SIGALRM);
    Ok(alarm.thread_unblock()?)
}

/// Closes all descriptors but the channel: a stuck child must hold nothing open that others wait for, no pipe, no BPF program, no lock.
fn leave_descriptors(channel: OwnedFd) -> io::Result<OwnedFd> {
    // The parent may have been started without stdin, stdout or stderr: then the channel is in the place of one of them.
    let moved = fcntl(&channel, FcntlArg::F_DUPFD_CLOEXEC(CHANNEL + 1))?;
    drop(channel);
    // SAFETY: plain integers; the descriptors below CHANNEL are replaced on purpose, and those above it are nobody's in this process.
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for standard in 0..CHANNEL {
            if nothing < 0 || (nothing != standard && libc::dup2(nothing, standard) < 0) {
                libc::close(standard);
            }
        }
        if libc::dup2(moved, CHANNEL) < 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::close_range(CHANNEL.cast_unsigned() + 1, libc::c_uint::MAX, 0) != 0 {
            close_each();
        }
        Ok(OwnedFd::from_raw_fd(CHANNEL))
    }
}

/// Where the kernel has no `close_range` (before 5.9).
fn close_each() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1 << 16, 1 << 16));
    let most = libc::c_int::try_from(most.min(1 << 20)).expect("a million fits");
    for descriptor in CHANNEL + 1..most {
        // SAFETY: nobody in this process uses them.
        unsafe { libc::close(descriptor) };
    }
}

/// Ordinary priority, and the limits.
fn limit(what: &Confinement) -> io::Result<()> {
    // SAFETY: settings of this process only; the structure outlives the call.
    unsafe {
        let ordinary = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary);
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
    }
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages
        .split(' ')
        .next()
        .and_then(|pages| pages.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?.unwrap_or(4096);
    let has = pages.saturating_mul(page.unsigned_abs());
    let limits = [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_AS, has.saturating_add(what.memory_bytes)),
        (Resource::RLIMIT_NOFILE, what.files),
    ];
    let cpu = what
        .cpu_time
        .map(|time| (Resource::RLIMIT_CPU, time.as_secs().max(1)));
    for (resource, limit) in limits.into_iter().chain(cpu) {
        let (_, most) = getrlimit(resource)?;
        let limit = limit.min(most);
        setrlimit(resource, limit, limit)?;
    }
    Ok(())
}

/// Becomes nobody with these capabilities; an ordinary user stays who he is.
///
/// Root without `CAP_SYS_PTRACE`, as in most containers, reads processes of its own user with no more capabilities than it has itself. A
/// child that is to read processes keeps both there: nobody without that capability could read none.
fn give_up_rights(wanted: Capabilities) -> io::Result<()> {
    let permitted = Capabilities::permitted()?;
    let reads_as_itself =
        wanted.contains(Capabilities::SYS_PTRACE) && !permitted.contains(Capabilities::SYS_PTRACE);
    let keeps = match reads_as_itself {
        true => permitted,
        false => wanted.and(permitted),
    };
    keeps.bound();
    if geteuid().is_root() && !reads_as_itself {
        // SAFETY: a setting of this process only.
        unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) };
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let became = setgroups(&[])
            .and_then(|()| setresgid(group, group, group))
            .and_then(|()| setresuid(user, user, user));
        // In a user namespace without that id, or without the right to change ids, root is what it is there.
        if let Err(error) = became
            && !matches!(error, nix::errno::Errno::EINVAL | nix::errno::Errno::EPERM)
        {
            return Err(error.into());
        }
    }
    keeps.keep_only()?;
    // SAFETY: as above; needed for the filter, and nothing here runs programs.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The filter of system calls: those above fail with `EPERM`, others go through.
fn filter() -> io::Result<BpfProgram> {
    // `for_writing` would be easy to get around with any one bit of these.
    let flags = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC];
    let writes = |argument: u8| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        flags
            .iter()
            .map(|flag| {
                let bit = u64::from(flag.cast_unsigned());
                let is_set = SeccompCmpOp::MaskedEq(bit);
                SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is_set, bit)
                    .and_then(|condition| SeccompRule::new(vec![condition]))
            })
            .collect()
    };
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> = REFUSED
        .iter()
        .chain(arch::REFUSED)
        .map(|call| (*call, Vec::new()))
        .collect();
    for (call, argument) in arch::OPENING {
        rules.insert(*call, writes(*argument).map_err(io::Error::other)?);
    }
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}
