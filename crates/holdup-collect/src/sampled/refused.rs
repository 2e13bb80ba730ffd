//! What the kernel, or whoever stands between, did not let holdup read of the threads that it follows, with what would change that.
//!
//! In: what was counted while sampling, and settings of the kernel. Out: lines of the report.

use holdup_evidence::NotMeasured;
use holdup_proc::filters::{self, Call};
use holdup_proc::sampling::{MOST_THREADS, Shortfall};
use holdup_proc::{Root, sysctl};

/// What shows a process that is another user's, or shows itself to nobody.
pub(super) const AS_THEIR_USER: &str = "run holdup as the user of those programs; as root where they are set-user-ID, or not dumpable (PR_SET_DUMPABLE)";

/// Those that were met.
pub(super) fn not_measured(shortfall: &Shortfall, followed: usize) -> Vec<NotMeasured> {
    let yama = sysctl::number(&Root::system(), "kernel/yama/ptrace_scope").unwrap_or(0);
    let kills = filters::kills(Call::Memory);
    let all = [
        threads(shortfall, followed),
        shortfall.without_reader.then(reader),
        calls(shortfall),
        arguments(shortfall, yama),
        memory(shortfall, yama, kills),
        mappings(shortfall),
    ];
    all.into_iter().flatten().collect()
}

fn line(what: String, why: &str, fix: &str) -> NotMeasured {
    NotMeasured {
        what,
        why: why.to_owned(),
        fix: fix.to_owned(),
    }
}

fn threads(shortfall: &Shortfall, followed: usize) -> Option<NotMeasured> {
    let what = || "threads beyond those that could be followed, and all that they did".to_owned();
    (shortfall.threads > 0).then(|| match followed {
        MOST_THREADS => line(
            what(),
            &format!("{MOST_THREADS} threads are followed at most"),
            "attach to fewer processes; or trace, as above",
        ),
        fewer => line(
            what(),
            &format!(
                "each takes up to three open files, and the limit on those leaves room for {fewer} threads"
            ),
            "a higher limit on open files (ulimit -n, LimitNOFILE=)",
        ),
    })
}

fn reader() -> NotMeasured {
    line(
        "the call of each wait, its reason and its asker".to_owned(),
        "no thread could be started for reads that can block: the limit of processes may be reached",
        "a higher limit on processes (ulimit -u, TasksMax=, the container's pids.max)",
    )
}

fn calls(shortfall: &Shortfall) -> Option<NotMeasured> {
    (shortfall.calls > 0).then(|| {
        line(
            format!(
                "the system call in {} of {} samples of sleeping threads",
                shortfall.calls,
                shortfall.looks.max(shortfall.calls)
            ),
            "the kernel did not show /proc/PID/syscall and wchan of them",
            AS_THEIR_USER,
        )
    })
}

fn arguments(shortfall: &Shortfall, yama: i64) -> Option<NotMeasured> {
    (shortfall.arguments > 0).then(|| {
        let (why, fix) = of_others(yama).unwrap_or((
            "/proc/PID/syscall, which has the call and where the stack is, is missing or may not be read",
            "the kernel's own /proc, and a kernel with CONFIG_HAVE_ARCH_TRACEHOOK",
        ));
        line(
            format!(
                "the object of the call and its asker, in {} of {} samples of sleeping threads",
                shortfall.arguments,
                shortfall.looks.max(shortfall.arguments)
            ),
            why,
            fix,
        )
    })
}

fn memory(shortfall: &Shortfall, yama: i64, kills: bool) -> Option<NotMeasured> {
    (shortfall.memory > 0).then(|| {
        let (why, fix) = match kills {
            true => (
                "a filter on system calls (seccomp) kills a process that calls process_vm_readv",
                "allow process_vm_readv in that filter, or run holdup outside",
            ),
            false => of_others(yama).unwrap_or((
                "process_vm_readv, which reads another process's memory, is refused",
                "allow process_vm_readv in the container's seccomp profile, or run holdup outside",
            )),
        };
        line(
            "askers (user stacks of sleeping threads), and data in memory that calls refer to: paths, polled \
             sets, lock owners"
                .to_owned(),
            why,
            fix,
        )
    })
}

fn mappings(shortfall: &Shortfall) -> Option<NotMeasured> {
    (shortfall.mappings > 0).then(|| {
        line(
            "which function asked: user stacks".to_owned(),
            "/proc/PID/maps, which has the program's code and libraries, is missing or may not be read",
            "the kernel's own /proc",
        )
    })
}

/// Where Yama lets nobody look into what is not their own descendant.
fn of_others(yama: i64) -> Option<(&'static str, &'static str)> {
    match yama {
        1 => Some((
            "kernel.yama.ptrace_scope is 1: users may read only processes that they have started",
            "start it by `holdup run`; or sysctl kernel.yama.ptrace_scope=0; or run holdup as root",
        )),
        2 => Some((
            "kernel.yama.ptrace_scope is 2: only root may read other processes",
            "run holdup as root, or sysctl kernel.yama.ptrace_scope=0",
        )),
        3.. => Some((
            "kernel.yama.ptrace_scope is 3: no user may read other processes until the next boot",
            "boot with kernel.yama.ptrace_scope at 2 or less, or trace as root, which does not need it",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{arguments, memory, not_measured};
    use holdup_proc::sampling::Shortfall;

    const ALL: Shortfall = Shortfall {
        threads: 1,
        calls: 1,
        looks: 4,
        arguments: 1,
        memory: 1,
        mappings: 1,
        without_reader: true,
        without_turns: false,
        without_blockings: false,
        without_children: None,
        longest_interval: 0,
        rounds: 1,
    };

    #[test]
    fn each_lack_has_a_line_of_its_own_and_what_was_there_has_none() {
        let lines = not_measured(&ALL, 7);
        assert_eq!(lines.len(), 6);
        for (place, one) in lines.iter().enumerate() {
            assert!(!one.why.is_empty() && !one.fix.is_empty(), "{one:?}");
            assert!(
                lines[..place].iter().all(|other| other.what != one.what),
                "{one:?}"
            );
        }
        assert!(not_measured(&Shortfall::default(), 7).is_empty());
    }

    #[test]
    fn who_stands_between_is_named() {
        let why = |yama, kills| memory(&ALL, yama, kills).unwrap().why;
        assert!(why(0, false).contains("is refused"));
        assert!(why(0, true).contains("kills"));
        assert!(why(1, false).contains("ptrace_scope is 1"));
        assert!(why(2, false).contains("ptrace_scope is 2"));
        assert!(why(3, false).contains("ptrace_scope is 3"));
        assert!(arguments(&ALL, 1).unwrap().fix.contains("holdup run"));
        assert!(arguments(&ALL, 0).unwrap().why.contains("/proc/PID/syscall"));
    }
}
