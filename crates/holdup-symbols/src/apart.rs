//! Work on hostile contents, in a process of its own.
//!
//! In comes work that makes a value, out comes the value, or nothing: a reader that recurses until its stack is full,
//! asks for all memory there is, or never comes back, takes that process with it and nothing else. The library that
//! reads debug information does all three when a file is made for it; a depth or a size that ought not to be there is
//! not the only way, so what is bounded is what the kernel can bound: CPU time, memory, file size.

use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, setrlimit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// More address space than the process has already, bytes: the debug information of a browser and what is made of it.
const MEMORY_MAX: u64 = 4 << 30;

/// The largest value, in bytes of its text: some frames for each of a few hundred thousand addresses.
const VALUE_MAX: u64 = 256 << 20;

/// Does `work` apart and returns its value; `None` when it did not come to an end within `cpu`, which is reduced by what
/// was used. Call it where no other thread holds a lock that `work` needs.
pub(crate) fn apart<T: Serialize + DeserializeOwned>(
    cpu: &mut Duration,
    work: impl FnOnce() -> T,
) -> Option<T> {
    // The kernel counts in seconds.
    let seconds = cpu.as_secs();
    if seconds == 0 {
        return None;
    }
    let value = File::from(memfd_create("holdup-names", MFdFlags::MFD_CLOEXEC).ok()?);
    let parent = nix::unistd::getpid();
    // SAFETY: the child only does `work`, writes its value and ends without returning.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            let work = AssertUnwindSafe(|| write(&value, &work()));
            // A panic must not unwind into what the parent was doing.
            let done = confine(parent.as_raw(), seconds).and_then(|()| catch_unwind(work).ok()?);
            // SAFETY: ends the child at once, without the parent's exit handlers.
            unsafe { libc::_exit(i32::from(done.is_none())) }
        }
        child => {
            let (ended, used) = wait(child);
            *cpu = cpu.saturating_sub(used);
            ended.then(|| read(value))?
        }
    }
}

/// What the process may use. It ends with its parent, leaves no core dump, and says nothing on the parent's terminal.
fn confine(parent: libc::pid_t, seconds: u64) -> Option<()> {
    // SAFETY: settings of this process only; none takes a pointer that outlives the call.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            return None;
        }
        let last = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const last);
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        let silence = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        libc::dup2(silence, libc::STDERR_FILENO);
    }
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').next()?.parse().ok()?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    let memory = pages
        .checked_mul(u64::try_from(page).ok()?)?
        .checked_add(MEMORY_MAX)?;
    for (resource, limit) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_CPU, seconds),
        (Resource::RLIMIT_AS, memory),
        (Resource::RLIMIT_FSIZE, VALUE_MAX),
    ] {
        setrlimit(resource, limit, limit).ok()?;
    }
    Some(())
}

/// Waits for the child's end: whether it ended well, and the CPU time it used.
fn wait(child: libc::pid_t) -> (bool, Duration) {
    let mut status = 0;
    // SAFETY: integers only, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are written to before the call returns.
    while unsafe { libc::wait4(child, &raw mut status, 0, &raw mut usage) } == -1 {
        if nix::errno::Errno::last() != nix::errno::Errno::EINTR {
            return (false, Duration::ZERO);
        }
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    let well = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    (well, time(usage.ru_utime) + time(usage.ru_stime))
}

fn write<T: Serialize>(file: &File, value: &T) -> Option<()> {
    let mut out = BufWriter::new(file);
    serde_json::to_writer(&mut out, value).ok()?;
    out.flush().ok()
}

fn read<T: DeserializeOwned>(mut file: File) -> Option<T> {
    file.rewind().ok()?;
    serde_json::from_reader(BufReader::new(file)).ok()
}

#[cfg(test)]
mod tests {
    use super::apart;
    use std::time::Duration;

    const PLENTY: Duration = Duration::from_secs(20);

    #[test]
    fn the_value_comes_back() {
        let mut cpu = PLENTY;
        let text = "\u{1b}[2J \u{0} ä".to_owned();
        assert_eq!(apart(&mut cpu, || (text.clone(), 7_u64)), Some((text, 7)));
    }

    #[test]
    fn neither_a_panic_nor_a_full_stack_nor_all_memory_comes_back() {
        fn deep(levels: u64) -> u64 {
            let here = std::hint::black_box([levels; 64]);
            if levels == 0 {
                0
            } else {
                here[0] + deep(levels - 1)
            }
        }
        let mut cpu = PLENTY;
        let cpu = &mut cpu;
        assert_eq!(apart::<u64>(cpu, || panic!("over hostile contents")), None);
        assert_eq!(apart(cpu, || deep(u64::MAX / 2)), None);
        let all = || {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            // Address space is what is bounded: it need not be touched.
            (0..1 << 10).for_each(|_| kept.push(Vec::with_capacity(1 << 28)));
            kept.iter().map(Vec::capacity).sum::<usize>()
        };
        assert_eq!(apart(cpu, all), None);
        assert_eq!(apart(cpu, || 1), Some(1));
    }

    #[test]
    fn what_never_ends_is_ended_and_what_is_used_up_is_gone() {
        let mut cpu = Duration::from_secs(1);
        let forever = || -> u64 {
            loop {
                std::hint::black_box(0);
            }
        };
        assert_eq!(apart(&mut cpu, forever), None);
        assert!(cpu < Duration::from_secs(1));
        assert_eq!(apart(&mut cpu, || 1), None);
    }
}
