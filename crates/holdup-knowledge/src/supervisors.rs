//! Programs that start others again when they end, and programs whose exit status is an answer.
//!
//! In: names of processes, as the kernel has them (15 bytes). Out: yes or no.

/// Programs that keep services running, as Debian 12's packages name them: systemd, runit, daemontools, s6, supervisor, monit, circus,
/// containerd, podman, process-compose, OpenRC's and BusyBox's.
const SUPERVISORS: &[&str] = &[
    "circusd",
    "conmon",
    "containerd-shim",
    "daemon",
    "dumb-init",
    "god",
    "init",
    "monit",
    "nodemon",
    "openrc-run",
    "perpd",
    "procd",
    "process-compose",
    "runsv",
    "s6-supervise",
    "start-stop-daem",
    "supervise",
    "supervise-daemo",
    "supervisord",
    "systemd",
    "tini",
];

/// Programs that answer by their status: that something is not there, differs, or is taken, is no failure.
const ANSWER_BY_STATUS: &[&str] = &[
    "[",
    "bc",
    "cmp",
    "diff",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "flock",
    "getent",
    "grep",
    "id",
    "ls",
    "mountpoint",
    "pgrep",
    "pidof",
    "pkill",
    "ps",
    "rg",
    "stat",
    "systemctl",
    "test",
    "timeout",
    "which",
    "zgrep",
];

/// Whether a process of this name keeps services running.
#[must_use]
pub fn is_supervisor(process: &str) -> bool {
    // Its name goes on with a version: `containerd-shim-runc-v2`.
    SUPERVISORS.contains(&process) || process.starts_with("containerd-shim")
}

/// Whether the status of a program of this name is an answer.
#[must_use]
pub fn answers_by_status(process: &str) -> bool {
    ANSWER_BY_STATUS.contains(&process)
}

#[cfg(test)]
mod tests {
    use super::{ANSWER_BY_STATUS, SUPERVISORS, answers_by_status, is_supervisor};

    #[test]
    fn names_are_as_the_kernel_cuts_them_and_in_order() {
        /// Bytes of a name that the kernel keeps.
        const NAME_BYTES: usize = 15;
        for names in [SUPERVISORS, ANSWER_BY_STATUS] {
            assert!(names.is_sorted(), "{names:?}");
            assert!(names.iter().all(|name| name.len() <= NAME_BYTES), "{names:?}");
        }
    }

    #[test]
    fn a_shell_keeps_nothing_running_and_grep_answers() {
        assert!(is_supervisor("runsv") && is_supervisor("containerd-shim-"));
        assert!(!is_supervisor("bash") && !is_supervisor("containerd"));
        assert!(answers_by_status("grep") && !answers_by_status("python3"));
    }
}
