//! What looking now and then does not show, in words, each with what would show it.
//!
//! In: what was counted while sampling. Out: lines of the report.

use super::refused::{self, AS_THEIR_USER};
use holdup_evidence::{NotMeasured, Ns};
use holdup_proc::sampling::{NotWatched, Shortfall};
use holdup_proc::{Root, sysctl};
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};

/// CPU time of what was never seen that is worth a line, nanoseconds.
const WORTH_SAYING: Ns = 10_000_000;

/// The highest value of `kernel.perf_event_paranoid` with which the kernel lets a user see their own programs.
const MOST_PARANOID: i64 = 2;

/// All that is to be said.
pub(super) struct Unseen<'a> {
    /// Why it is not traced, where that was not asked for.
    pub(super) why: Option<&'a str>,
    pub(super) shortfall: Shortfall,
    /// Processes that could not be read in time.
    pub(super) stuck: &'a [u32],
    /// How long was looked.
    pub(super) lasted: Ns,
    /// Why running threads are not seen, where they are not.
    pub(super) running: Option<NotWatched>,
    /// How many threads may be followed.
    pub(super) followed: usize,
    /// Calls of running threads that were timed.
    pub(super) timed_calls: u64,
    /// A CPU and its interrupts a second, where there were many and what they took could not be measured.
    pub(super) interrupts: Option<(u32, u64)>,
    /// CPU time of children that no thread that was seen has used.
    pub(super) cpu_unseen: Ns,
}

/// The same again.
const SAME: &str = "trace, as above";

/// What gives all that tracing gives.
const TRACE: &str =
    "run holdup as root on a kernel that it can trace on; `holdup doctor` says what is missing";

impl Unseen<'_> {
    pub(super) fn not_measured(&self) -> Vec<NotMeasured> {
        let line = |what: String, why: String, fix: &str| NotMeasured {
            what,
            why,
            fix: fix.to_owned(),
        };
        let why = match self.why {
            Some(why) => format!("/proc was sampled, because tracing is not to be had here: {why}"),
            None => "/proc was sampled, as --backend proc asks".to_owned(),
        };
        let fix = match self.why {
            Some(_) => TRACE,
            None => "leave --backend out",
        };
        let interval = self.lasted / self.shortfall.rounds.max(1);
        let untraced = || "only tracing shows it".to_owned();
        let mut lines = vec![
            line(
                "wakers (the critical path continues only where a lock owner or a peer was observed, or is \
                 the only possible one)"
                    .to_owned(),
                why,
                fix,
            ),
            line(
                format!(
                    "waits that ended between two samples, {} apart on average and {} at most",
                    milliseconds(interval),
                    milliseconds(self.shortfall.longest_interval),
                ),
                "their time is known, and is assigned to the sampled waits".to_owned(),
                SAME,
            ),
            line(
                "kernel stacks beyond the innermost function".to_owned(),
                untraced(),
                SAME,
            ),
            line(
                "callers beyond a function that is found by a register".to_owned(),
                "of a sleeping thread only the stack pointer is known".to_owned(),
                SAME,
            ),
        ];
        if let Some(refused) = self.running {
            let (why, fix) = why_not_running(refused);
            lines.push(line("user stacks of threads on a CPU".to_owned(), why, fix));
        }
        if self.timed_calls > 0 {
            lines.push(line(
                format!(
                    "in which calls the kernel worked, but for {} calls that stand for all",
                    self.timed_calls
                ),
                "/proc does not show it for a running thread; these were timed with hardware breakpoints, \
                 which cost the thread some microseconds each"
                    .to_owned(),
                SAME,
            ));
        }
        if let Some((cpu, rate)) = self.interrupts {
            lines.push(line(
                format!(
                    "the time of {rate} interrupts a second on CPU {cpu}, which may be counted as time \
                 of the program"
                ),
                "no moment of that CPU could be measured: holdup may not run there, or it is too busy"
                    .to_owned(),
                SAME,
            ));
        }
        let shortfall = &self.shortfall;
        lines.extend(refused::not_measured(shortfall, self.followed));
        if shortfall.without_turns {
            lines.push(line(
                "time in queues for a CPU, and CPU time finer than 10 ms".to_owned(),
                "/proc/PID/schedstat is missing or may not be read".to_owned(),
                "a kernel with CONFIG_SCHED_INFO, and its own /proc",
            ));
        }
        if shortfall.without_blockings {
            lines.push(line(
                "how often each thread waited".to_owned(),
                "/proc/PID/status is missing or may not be read".to_owned(),
                "the kernel's own /proc",
            ));
        }
        if let Some(apart) = shortfall.without_children {
            lines.push(line(
                format!(
                    "processes that lived between two samples of all processes, {} apart at most",
                    milliseconds(apart)
                ),
                "/proc/PID/task/TID/children is missing, so children are found by their parents' numbers"
                    .to_owned(),
                "a kernel with CONFIG_PROC_CHILDREN, and its own /proc",
            ));
        }
        if !self.stuck.is_empty() {
            let pids: Vec<String> = self.stuck.iter().map(u32::to_string).collect();
            lines.push(line(
                format!("calls, memory and stacks of {}", pids.join(", ")),
                "they could not be read in time: the process is in the middle of an exec, or its address space is locked".to_owned(),
                "none is needed for its CPU time and the lengths of its waits",
            ));
        }
        if self.cpu_unseen >= WORTH_SAYING {
            lines.push(line(
                format!(
                    "processes and threads that lived between two samples: {} of CPU time, from the counters \
                     of their parents",
                    milliseconds(self.cpu_unseen)
                ),
                "they started and ended between two samples".to_owned(),
                SAME,
            ));
        }
        lines
    }
}

/// Why the kernel shows no running thread, and what would change that.
fn why_not_running(why: NotWatched) -> (String, &'static str) {
    let refused = match why {
        NotWatched::Refused(refused) => refused,
        NotWatched::Kills => {
            return (
                "a filter on system calls (seccomp) kills a process that calls perf_event_open".to_owned(),
                "allow perf_event_open in that filter, or run holdup outside",
            );
        }
        NotWatched::Others => {
            return (
                "users may watch their own programs, if those may be traced: not all of these are".to_owned(),
                AS_THEIR_USER,
            );
        }
    };
    match refused {
        Errno::EACCES | Errno::EPERM => {
            let setting = sysctl::number(&Root::system(), "kernel/perf_event_paranoid");
            match setting {
                Some(level) if level > MOST_PARANOID => (
                    format!(
                        "kernel.perf_event_paranoid is {level}: ordinary users may not watch their own programs"
                    ),
                    "sysctl kernel.perf_event_paranoid=2",
                ),
                _ => (
                    "perf_event_open is refused, as containers' filters do".to_owned(),
                    "allow perf_event_open in the container's seccomp profile, or run holdup outside",
                ),
            }
        }
        Errno::ENOSYS | Errno::ENOENT | Errno::EOPNOTSUPP => (
            "the kernel has no performance events".to_owned(),
            "a kernel with CONFIG_PERF_EVENTS",
        ),
        Errno::EMFILE => (
            "each thread takes an open file for each CPU, and there may be no more".to_owned(),
            "a higher limit on open files (ulimit -n), or fewer threads",
        ),
        Errno::ENODEV => (
            "neither /sys/devices/system/cpu nor /proc/stat lists the CPUs".to_owned(),
            "the kernel's own /sys or /proc/stat",
        ),
        Errno::E2BIG => (
            "the machine has too many CPUs for an event of each thread on each of them".to_owned(),
            SAME,
        ),
        other => (format!("the kernel shows none: {}", other.desc()), SAME),
    }
}

fn milliseconds(ns: Ns) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

/// CPU time of all children that were waited for, and of theirs; holdup's own readers left out.
pub(super) fn cpu_of_children() -> Ns {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return 0;
    };
    let time = |time: nix::sys::time::TimeVal| {
        Ns::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
            + Ns::try_from(time.tv_usec()).unwrap_or(0) * 1_000
    };
    let readers = Ns::try_from(holdup_detached::ended_cpu_time().as_nanos()).unwrap_or(Ns::MAX);
    (time(usage.user_time()) + time(usage.system_time())).saturating_sub(readers)
}

#[cfg(test)]
mod tests {
    use super::{Unseen, why_not_running};
    use holdup_proc::sampling::{NotWatched, Shortfall};
    use nix::errno::Errno;

    #[test]
    fn what_is_never_seen_is_always_said_and_the_rest_where_it_happened() {
        let mut unseen = Unseen {
            timed_calls: 0,
            interrupts: None,
            why: Some("not root"),
            shortfall: Shortfall {
                rounds: 10,
                ..Shortfall::default()
            },
            stuck: &[],
            lasted: 100_000_000,
            running: None,
            followed: 20_000,
            cpu_unseen: 0,
        };
        let usual = unseen.not_measured();
        assert!(usual[0].why.contains("not root"), "{usual:?}");
        assert!(usual.iter().all(|line| !line.fix.is_empty()), "{usual:?}");
        assert!(usual.iter().any(|line| line.what.contains("10.0 ms apart")));
        unseen.shortfall.without_turns = true;
        unseen.shortfall.without_blockings = true;
        unseen.stuck = &[7];
        unseen.shortfall.without_children = Some(1);
        unseen.running = Some(NotWatched::Refused(Errno::ENOSYS));
        unseen.cpu_unseen = 20_000_000;
        assert_eq!(unseen.not_measured().len(), usual.len() + 6);
    }

    #[test]
    fn why_running_threads_are_not_seen_is_told_apart() {
        let all = [
            NotWatched::Kills,
            NotWatched::Others,
            NotWatched::Refused(Errno::ENOSYS),
            NotWatched::Refused(Errno::EMFILE),
            NotWatched::Refused(Errno::ENODEV),
            NotWatched::Refused(Errno::E2BIG),
        ]
        .map(why_not_running);
        for (place, one) in all.iter().enumerate() {
            assert!(!one.1.is_empty());
            assert!(all[..place].iter().all(|other| other.0 != one.0), "{one:?}");
        }
    }
}
