//! Commands in remedies that name a process: kept only where that process can still be there.
//!
//! The problem: once a process has ended, a command with its id is about nothing, or about another process that got the id. In: findings of
//! any rule. Out: the same without such commands; what to do stays in words.

use super::Run;
use holdup_model::finding::Finding;

/// Leaves out commands about processes that had ended when observation did.
pub(super) fn keep_what_works(run: &Run<'_>, findings: &mut [Finding]) {
    for remedy in findings.iter_mut().flat_map(|finding| &mut finding.remedies) {
        let names_ended = |command: &String| pids(command).any(|pid| has_ended(run, pid));
        remedy.command = remedy.command.take().filter(|command| !names_ended(command));
    }
}

/// What stands before the id of a process in the commands of remedies. Any other number is a port, a time, or how much is shown.
const BEFORE_PIDS: [&str; 12] = [
    "/proc/",
    " -p ",
    " --pid ",
    // Of `chrt`, behind a priority.
    " --pid 0 ",
    " --tid ",
    " -pc ",
    " -cp ",
    " -CONT ",
    " attach ",
    "jcmd ",
    "pid=",
    "pg_terminate_backend(",
];

/// A program that has a port behind what is a process of others.
const ASKS_A_PORT: &str = "dig ";

/// The ids of processes in a command, such as in `kill -CONT 7` and `cat /proc/7/cgroup`.
fn pids(command: &str) -> impl Iterator<Item = u32> + '_ {
    let commands = command.split([';', '|', '&']);
    let commands = commands.filter(|one| !one.trim_start().starts_with(ASKS_A_PORT));
    commands.flat_map(|one| {
        BEFORE_PIDS
            .iter()
            .flat_map(move |before| numbers_behind(one, before))
    })
}

/// The numbers that stand behind this.
fn numbers_behind<'a>(command: &'a str, before: &'a str) -> impl Iterator<Item = u32> + 'a {
    command.match_indices(before).filter_map(move |(at, _)| {
        let rest = command.get(at + before.len()..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest.get(..digits)?.parse().ok()
    })
}

/// Whether a process was observed, and none of its threads lived on when observation ended. Of those that were not observed nothing is known.
pub(super) fn has_ended(run: &Run<'_>, pid: u32) -> bool {
    let mut own = run
        .attributed
        .threads
        .iter()
        .filter(|thread| thread.name.pid == pid)
        .peekable();
    own.peek().is_some() && own.all(|thread| !thread.open)
}

#[cfg(test)]
mod tests {
    use super::keep_what_works;
    use crate::rules::Run;
    use holdup_evidence::Cause;
    use holdup_evidence::facts::SystemFacts;
    use holdup_model::attributed::{Attributed, ThreadLedger, ThreadName};
    use holdup_model::finding::{Evidence, Finding, Remedy, Severity};

    fn thread(pid: u32, tid: u32, open: bool) -> ThreadLedger {
        ThreadLedger {
            name: ThreadName {
                pid,
                tid,
                ..ThreadName::default()
            },
            open,
            ..ThreadLedger::default()
        }
    }

    /// What is left of a command, of a run of these threads: 7 lives on, 9 has ended.
    fn left(command: &str) -> Option<String> {
        let attributed = Attributed {
            threads: vec![thread(7, 7, false), thread(7, 8, true), thread(9, 9, false)],
            ..Attributed::default()
        };
        let facts = SystemFacts::default();
        let run = Run::new(&attributed, &facts);
        let seen = Evidence::new("seen", "");
        let remedy = Remedy::safe("look").with_command(command);
        let finding =
            Finding::without_duration("rule", Severity::Note, "title", Cause::Unknown, seen).remedy(remedy);
        let mut findings = [finding];
        keep_what_works(&run, &mut findings);
        findings[0].remedies[0].command.clone()
    }

    #[test]
    fn a_process_that_has_ended_gets_no_command() {
        for command in [
            "holdup attach -p 9",
            "cat /proc/9/cgroup",
            "taskset -pc 9",
            "holdup attach -p 7 -p 9",
            "kill -CONT 9",
            "chrt --other --pid 0 9",
            "prlimit --nofile=4096: --pid 9",
            "ss -ltnp | grep pid=9,",
            "jcmd 9 GC.class_histogram",
            "grep char /proc/9/io; sleep 5; grep char /proc/9/io",
            "psql -c \"select pg_terminate_backend(9)\"",
        ] {
            assert_eq!(left(command), None, "{command}");
        }
    }

    #[test]
    fn one_of_which_a_thread_lives_on_does() {
        assert!(left("kill -CONT 7").is_some());
    }

    #[test]
    fn one_that_was_not_observed_may_be_there() {
        assert!(left("holdup attach -p 11").is_some());
    }

    #[test]
    fn other_numbers_are_no_processes() {
        for command in [
            "smartctl -a /dev/nvme9n1",
            "pidstat -d 1 9",
            "cat /sys/block/sd9",
            "tail -n 9 /var/log/shop.log",
            "ss -ltnp sport = :9",
            "grep char /proc/7/io; sleep 9; grep char /proc/7/io",
            "renice -n 9 -p 7",
            "dig @10.0.0.9 -p 9 NAME",
        ] {
            assert!(left(command).is_some(), "{command}");
        }
    }
}
