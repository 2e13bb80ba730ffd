//! What the kernel says of a process that is to be asked: its user, its threads, whether it handles the signal, its age.

use holdup_proc::Root;
use holdup_proc::root::text_if_there;
use std::time::Duration;

/// `SIGQUIT`, as a bit of a mask of signals.
const QUIT: u64 = 1 << (libc::SIGQUIT - 1);

/// What `/proc/PID/status` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Effective user.
    pub user: u32,
    /// Effective group.
    pub group: u32,
    /// Its id in its own pid namespace: it names its files by that.
    pub inside: u32,
    /// How many threads it has.
    pub threads: u32,
    /// Whether it handles `SIGQUIT`.
    pub handles_quit: bool,
    /// Whether it is stopped, or traced and stopped.
    pub stopped: bool,
}

impl Status {
    /// Reads it; `None` of a process that is gone.
    #[must_use]
    pub fn read(root: &Root, pid: u32) -> Option<Status> {
        Status::parse(&text_if_there(&root.proc.join(pid.to_string()).join("status"))?)
    }

    fn parse(text: &str) -> Option<Status> {
        let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let second = |key: &str| of(key)?.split_whitespace().nth(1)?.parse().ok();
        let mask = u64::from_str_radix(of("SigCgt:")?.trim(), 16).ok()?;
        let state = of("State:")?.trim_start().chars().next()?;
        Some(Status {
            user: second("Uid:")?,
            group: second("Gid:")?,
            inside: of("NSpid:")?.split_whitespace().next_back()?.parse().ok()?,
            threads: of("Threads:")?.trim().parse().ok()?,
            handles_quit: mask & QUIT != 0,
            stopped: matches!(state, 'T' | 't'),
        })
    }
}

/// Since when a process has run.
pub(super) fn age(root: &Root, pid: u32) -> Option<Duration> {
    let stat = text_if_there(&root.proc.join(pid.to_string()).join("stat"))?;
    let uptime = text_if_there(&root.proc.join("uptime"))?;
    // Its name may contain anything but is followed by the last bracket; the start is the twentieth word after that.
    let ticks: f64 = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .parse()
        .ok()?;
    let now: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    // SAFETY: `sysconf` reads a constant of the system and takes no pointer.
    let hertz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    (hertz > 0.0).then(|| Duration::from_secs_f64((now - ticks / hertz).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::{Status, age};
    use holdup_proc::Root;
    use std::time::Duration;

    #[test]
    fn what_matters_is_read_of_a_jvm_in_a_container() {
        let text = "Name:\tjava\nState:\tS (sleeping)\nUid:\t1000\t1001\t1000\t1000\nGid:\t5\t6\t5\t5\nNSpid:\t4711\t7\n\
                    Threads:\t40\nSigCgt:\t2000000181005ccf\n";
        let status = Status::parse(text).unwrap();
        assert_eq!((status.user, status.group, status.inside), (1001, 6, 7));
        assert_eq!(status.threads, 40);
        assert!(status.handles_quit && !status.stopped);
        let without = Status::parse(&text.replace("2000000181005ccf", "2000000181005ccb")).unwrap();
        assert!(!without.handles_quit);
        assert!(
            Status::parse(&text.replace("S (sleeping)", "T (stopped)"))
                .unwrap()
                .stopped
        );
        assert_eq!(Status::parse("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_not_run_for_a_day() {
        let age = age(&Root::system(), std::process::id()).unwrap();
        assert!(age < Duration::from_secs(86_400), "{age:?}");
    }
}
