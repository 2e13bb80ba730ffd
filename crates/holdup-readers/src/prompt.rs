//! Prompts: people paste several commands and their outputs into one text, and the prompt's line names the command.
//!
//! In: a line. Out: whether it is a prompt's, and of which format the output below it is. Only what looks like a prompt for
//! sure counts (`user@host:~# …`, `[user@host dir]$ …`), and `$ ` or `# ` in front of a command that is known.

use crate::format::Format;
use crate::formats::ALL;
use crate::numbers::words;
use memchr::memchr;

/// What a line says of what comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Prompt {
    /// It is no prompt's line.
    No,
    /// It is one, of a command that is not known, or of none.
    Other,
    /// The output of this format follows.
    Of(&'static Format),
}

/// Bytes in which a prompt ends.
const MAX_PROMPT_BYTES: usize = 160;

/// Formats by the command that prints them.
const COMMANDS: &[(&str, &str)] = &[
    ("atop", "atop"),
    ("ctest", "ctest"),
    ("df", "df"),
    ("dig", "dig"),
    ("dstat", "dstat"),
    ("fio", "fio"),
    ("free", "free"),
    ("getdelays", "getdelays"),
    ("hdparm", "disk-speed"),
    ("iostat", "iostat"),
    ("ioping", "disk-speed"),
    ("iotop", "iotop"),
    ("iperf3", "iperf"),
    ("jstat", "jstat"),
    ("lsblk", "lsblk"),
    ("lscpu", "lscpu"),
    ("mount", "mounts"),
    ("mountstats", "nfs-mountstats"),
    ("mpstat", "mpstat"),
    ("mtr", "mtr"),
    ("nfsstat", "nfsstat"),
    ("nstat", "nstat"),
    ("numastat", "numastat"),
    ("nvidia-smi", "nvidia-smi"),
    ("pgbench", "pgbench"),
    ("pidstat", "pidstat"),
    ("ping", "ping"),
    ("ps", "ps"),
    ("sar", "sar"),
    ("slabtop", "slabtop"),
    ("smartctl", "smartctl"),
    ("ss", "ss"),
    ("swapon", "swaps"),
    ("sysctl", "sysctl"),
    ("tc", "tc-queues"),
    ("top", "top"),
    ("traceroute", "traceroute"),
    ("turbostat", "turbostat"),
    ("uname", "uname"),
    ("uptime", "uptime"),
    ("vmstat", "vmstat"),
    ("w", "uptime"),
    ("xentop", "xentop"),
];

/// Formats by the file that has them: how a path begins and how it ends.
const FILES: &[(&str, &str, &str)] = &[
    ("/proc/cmdline", "", "kernel-command-line"),
    ("/proc/cpuinfo", "", "cpuinfo"),
    ("/proc/diskstats", "", "diskstats"),
    ("/proc/drbd", "", "drbd"),
    ("/proc/mdstat", "", "mdstat"),
    ("/proc/meminfo", "", "meminfo"),
    ("/proc/mounts", "", "mounts"),
    ("/proc/net/netstat", "", "net-counters"),
    ("/proc/net/snmp", "", "net-counters"),
    ("/proc/net/sockstat", "", "sockstat"),
    ("/proc/net/softnet_stat", "", "softnet-stat"),
    ("/proc/pressure/", "", "pressure"),
    ("/proc/self/mounts", "", "mounts"),
    ("/proc/self/mountstats", "", "nfs-mountstats"),
    ("/proc/stat", "", "proc-stat"),
    ("/proc/swaps", "", "swaps"),
    ("/proc/sys/", "", "sysctl"),
    ("/proc/version", "", "uname"),
    ("/proc/vmstat", "", "vmstat-counters"),
    ("/proc/slabinfo", "", "slabtop"),
    ("/sys/fs/cgroup/", ".pressure", "pressure"),
    ("/sys/fs/cgroup/", "/cpu.stat", "cpu-stat"),
    ("/proc/loadavg", "", "loadavg"),
    ("/proc/", "/stack", "proc-task"),
    ("/proc/", "/stat", "proc-task"),
    ("/proc/", "/status", "proc-task"),
    ("/proc/", "/syscall", "proc-task"),
    ("/proc/", "/wchan", "proc-task"),
];

/// Programs that print files as they are, or nearly.
const PRINTERS: &[&[u8]] = &[b"cat", b"grep", b"head", b"tail", b"more", b"less", b"egrep"];

/// Programs behind a pipe that count lines.
const COUNTERS: &[&[u8]] = &[b"| uniq -c", b"|uniq -c", b"| wc", b"|wc"];

/// Words in front of a command that do not change what it prints.
const BEFORE: &[&[u8]] = &[b"sudo", b"time", b"nice", b"timeout", b"-n", b"watch"];

/// What a line says.
pub(crate) fn of(line: &[u8]) -> Prompt {
    match line.first() {
        Some(b'$' | b'#') if matches!(line.get(1), Some(b' ')) => {
            command(line.get(2..).unwrap_or_default()).map_or(Prompt::No, Prompt::Of)
        }
        Some(_) => match after(line) {
            Some(rest) => command(rest).map_or(Prompt::Other, Prompt::Of),
            None => Prompt::No,
        },
        None => Prompt::No,
    }
}

/// A line without a prompt in front of its command.
pub(crate) fn behind(line: &[u8]) -> &[u8] {
    let plain = line.strip_prefix(b"$ ").or_else(|| line.strip_prefix(b"# "));
    plain.or_else(|| after(line)).unwrap_or(line).trim_ascii()
}

/// What stands behind `user@host…# `.
fn after(line: &[u8]) -> Option<&[u8]> {
    let head = line.get(..MAX_PROMPT_BYTES).unwrap_or(line);
    let at = memchr(b'@', head)?;
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'[' | b'_' | b'-' | b'.');
    if at == 0 || !head.get(..at)?.iter().all(name) {
        return None;
    }
    // Directly behind host, folder or bracket.
    let ends = |three: &[u8]| matches!(three, [before, b'#' | b'$', b' '] if *before != b' ');
    let behind = head.get(at..)?;
    // A copy may have lost the blank, and brackets say where the prompt ends all the same.
    let bracket = |two: &[u8]| matches!(two, [b']', b'#' | b'$']);
    let crowded = || {
        behind
            .windows(2)
            .position(bracket)
            .filter(|_| head.first() == Some(&b'['))
    };
    let apart = behind.windows(3).position(ends).map(|end| end + 3);
    let end = match apart.or_else(|| Some(crowded()? + 2)) {
        Some(end) => end,
        None if matches!(behind.last(), Some(b'#' | b'$')) => behind.len(),
        None => return None,
    };
    // A host and a folder: two words at most.
    (words(behind.get(..end)?).count() <= 3).then(|| line.get(at + end..).unwrap_or_default())
}

/// The format that a command line prints.
pub(crate) fn command(line: &[u8]) -> Option<&'static Format> {
    // What is counted is no longer what the command printed.
    if COUNTERS
        .iter()
        .any(|counter| memchr::memmem::find(line, counter).is_some())
    {
        return None;
    }
    let mut words = words(line).filter(|word| !BEFORE.contains(word));
    let assigns = |word: &&[u8]| memchr(b'=', word).is_some_and(|at| at > 0);
    let first = words.by_ref().find(|word| !assigns(word))?;
    let program = first.rsplit(|byte| *byte == b'/').next()?;
    if PRINTERS.contains(&program) {
        return words.find_map(file);
    }
    if program == b"systemd-analyze" {
        let of = |word: &[u8]| match word {
            b"blame" => Some("systemd-blame"),
            b"critical-chain" => Some("systemd-chain"),
            b"plot" => Some("systemd-plot"),
            b"dump" => Some("systemd-dump"),
            b"time" => Some("systemd-time"),
            _ => None,
        };
        return match words.next() {
            None => by_id("systemd-time"),
            Some(word) => by_id(of(word)?),
        };
    }
    let (_, id) = COMMANDS.iter().find(|(name, _)| name.as_bytes() == program)?;
    by_id(id)
}

/// The format of a file, by its path.
pub(crate) fn file(path: &[u8]) -> Option<&'static Format> {
    let fits = |(start, end, _): &&(&str, &str, &str)| {
        path.starts_with(start.as_bytes()) && path.ends_with(end.as_bytes())
    };
    by_id(FILES.iter().find(fits)?.2)
}

fn by_id(id: &str) -> Option<&'static Format> {
    ALL.iter().copied().find(|format| format.id == id)
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, FILES, Prompt, by_id, of};

    fn prompt_of(line: &str) -> Option<&'static str> {
        match of(line.as_bytes()) {
            Prompt::No => None,
            Prompt::Other => Some("other"),
            Prompt::Of(format) => Some(format.id),
        }
    }

    #[test]
    fn every_command_prints_a_format_that_is_read() {
        let ids = COMMANDS
            .iter()
            .map(|(_, id)| id)
            .chain(FILES.iter().map(|(_, _, id)| id));
        for id in ids {
            assert!(by_id(id).is_some(), "{id}");
        }
    }

    #[test]
    fn a_prompt_names_what_follows() {
        assert_eq!(prompt_of("$ free -m"), Some("free"));
        assert_eq!(prompt_of("root@host:~# swapon"), Some("swaps"));
        assert_eq!(prompt_of("[root@host log]# /sbin/swapon -s"), Some("swaps"));
        assert_eq!(
            prompt_of("me@host:/var/my dir$ sudo LC_ALL=C top -b -n1"),
            Some("top")
        );
        assert_eq!(prompt_of("$ cat /proc/swaps"), Some("swaps"));
        assert_eq!(
            prompt_of("[me@host ~]$ systemd-analyze blame"),
            Some("systemd-blame")
        );
        assert_eq!(prompt_of("me@host:~$ systemd-analyze"), Some("systemd-time"));
        assert_eq!(
            prompt_of("me@host:~$ systemd-analyze verify a.service"),
            Some("other")
        );
        assert_eq!(
            prompt_of("[root@host~]#systemd-analyze blame"),
            Some("systemd-blame")
        );
        assert_eq!(prompt_of("root@host:~#"), Some("other"));
        assert_eq!(prompt_of("root@host:~# ls -l"), Some("other"));
    }

    #[test]
    fn other_lines_are_no_prompts() {
        for line in [
            "",
            "#",
            "# time seconds",
            "$ ls",
            "user@host wrote: # 1",
            "@# free",
            "Thread-1@5a2b3c waits for # of it, and for # of that",
        ] {
            assert_eq!(prompt_of(line), None, "{line}");
        }
    }
}
