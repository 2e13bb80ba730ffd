//! Calls that failed in a way that says what is wrong, and calls that a trace without times leaves open.
//!
//! In: calls that came back with an error, and those that never did. Out: statements. Most errors are a program's way to look around
//! (`ENOENT`, `EAGAIN`); these are not: nobody asks for a network that is not there, or for a disk that is full.

use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::Quote;
use holdup_evidence::observed::StatementKind::{self, Deadlock, Exhausted, Failed, TimedOut, Unreachable};

/// Errors that say what is wrong.
const ERRORS: &[(&str, StatementKind)] = &[
    ("ENETUNREACH", Unreachable),
    ("EHOSTUNREACH", Unreachable),
    ("ENETDOWN", Unreachable),
    ("EHOSTDOWN", Unreachable),
    ("ETIMEDOUT", TimedOut),
    ("ECONNRESET", Failed),
    ("ENOSPC", Exhausted),
    ("EDQUOT", Exhausted),
    ("EMFILE", Exhausted),
    ("ENFILE", Exhausted),
    ("ENOMEM", Exhausted),
    ("EIO", Failed),
    ("ESTALE", Failed),
    ("EREMOTEIO", Failed),
    ("EDEADLK", Deadlock),
];

/// Calls with a limit of time of their own, which runs out as a matter of course, and those that are resumed after a signal.
const LIMITED: &[&[u8]] = &[
    b"futex",
    b"restart_syscall",
    b"io_uring_enter",
    b"mq_timedreceive",
    b"mq_timedsend",
    b"semtimedop",
    b"rt_sigtimedwait",
];

/// Calls that somebody is waited for in; where one is left open, that is where the thread stands. Those of workers without work are
/// not among them.
const STANDS: &[&[u8]] = &[
    b"write",
    b"writev",
    b"pwrite64",
    b"sendto",
    b"sendmsg",
    b"connect",
    b"fsync",
    b"fdatasync",
    b"sync",
    b"flock",
    b"fcntl",
    b"open",
    b"openat",
    b"close",
    b"stat",
    b"newfstatat",
    b"statfs",
    b"unlink",
    b"rename",
    b"ioctl",
    b"umount2",
];

/// Different failures that are kept; of others there is only the number.
const MAX_KINDS: usize = 200;

/// Bytes of a name, an argument or an error that are kept.
const MAX_TEXT_BYTES: usize = 80;

#[derive(Debug)]
struct Failure {
    kind: StatementKind,
    /// Which call, of what, and which error.
    text: String,
    times: u64,
    quote: Quote,
}

/// Those of one trace.
#[derive(Debug, Default)]
pub(super) struct Failures {
    failed: Vec<Failure>,
    /// Failures beyond those, and one of them.
    left_out: Option<(u64, Quote)>,
    /// The first call that is left open.
    open: Option<(u32, String, Quote)>,
    /// Other calls that are.
    also_open: u64,
}

impl Failures {
    /// A call that came back: `read(12, 0x55f8, 5) = -1 ENETUNREACH (Network is unreachable)`.
    pub(super) fn came_back(&mut self, name: &[u8], args: &[u8], result: &[u8], quote: &Quote) {
        let Some(error) = result.strip_prefix(b"-1 ") else {
            return;
        };
        let end = error.iter().position(|byte| *byte == b' ').unwrap_or(error.len());
        let known = ERRORS
            .iter()
            .find(|(known, _)| known.as_bytes() == error.get(..end).unwrap_or_default());
        let Some((_, kind)) = known.filter(|_| !LIMITED.contains(&name)) else {
            return;
        };
        // Who looks for addresses asks for one of IPv6 first, whether there is such a network or not.
        if *kind == Unreachable && name == b"connect" && memchr::memmem::find(args, b"AF_INET6").is_some() {
            return;
        }
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..MAX_TEXT_BYTES).unwrap_or(bytes)).into_owned();
        let of = args
            .split(|byte| matches!(byte, b',' | b' '))
            .next()
            .unwrap_or_default();
        let text = format!(
            "{} of {} failed: {}",
            text(name),
            text(of),
            text(error.trim_ascii())
        );
        let room = self.failed.len() < MAX_KINDS;
        match self.failed.iter_mut().find(|one| one.text == text) {
            Some(known) => known.times += 1,
            None if room => self.failed.push(Failure {
                kind: *kind,
                text,
                times: 1,
                quote: quote.clone(),
            }),
            None => {
                let left_out = self.left_out.get_or_insert_with(|| (0, quote.clone()));
                left_out.0 += 1;
            }
        }
    }

    /// A call that has not come back, in a trace without times.
    pub(super) fn left_open(&mut self, tid: u32, name: &[u8], args: &[u8], quote: &Quote) {
        if !STANDS.contains(&name) {
            return;
        }
        if self.open.is_some() {
            self.also_open += 1;
            return;
        }
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..MAX_TEXT_BYTES).unwrap_or(bytes)).into_owned();
        self.open = Some((
            tid,
            format!("{}({}…)", text(name), text(args.trim_ascii_end())),
            quote.clone(),
        ));
    }

    pub(super) fn end(self, out: &mut Out<'_>) {
        for one in self.failed {
            let times = match one.times {
                1 => String::new(),
                times => format!(", {times} times"),
            };
            let text = format!("{}{times}", one.text);
            out.statement(statements::one(one.kind, None, one.quote, text));
        }
        if let Some((calls, quote)) = self.left_out {
            let text = format!("{calls} more calls failed, in other ways than the first {MAX_KINDS}");
            out.statement(statements::one(Failed, None, quote, text));
        }
        if let Some((tid, call, quote)) = self.open {
            let who = match tid {
                0 => "the program".to_owned(),
                tid => format!("thread {tid}"),
            };
            let also = match self.also_open {
                0 => String::new(),
                1 => ", like one other call".to_owned(),
                calls => format!(", like {calls} other calls"),
            };
            let text = format!("{who} stands in {call}, which does not come back in this trace{also}");
            out.statement(statements::one(StatementKind::Took, None, quote, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let statements = read_text("s", text.as_bytes()).observed.statements.into_iter();
        statements.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn errors_that_say_what_is_wrong_are_told_and_others_are_not() {
        let text = "openat(AT_FDCWD, \"/a\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
            read(12, 0x55f8, 5) = -1 ENETUNREACH (Network is unreachable)\n\
            read(12, 0x55f8, 5) = -1 ENETUNREACH (Network is unreachable)\n\
            futex(0x7f, FUTEX_WAIT, 1, {1, 0}) = -1 ETIMEDOUT (Connection timed out)\n\
            connect(3, {sa_family=AF_INET6, sin6_port=htons(53)}, 28) = -1 ENETUNREACH (Network is unreachable)\n\
            write(4, \"x\", 1) = -1 ENOSPC (No space left on device)\n";
        assert_eq!(
            said(text),
            [
                (
                    StatementKind::Unreachable,
                    "read of 12 failed: ENETUNREACH (Network is unreachable), 2 times".to_owned()
                ),
                (
                    StatementKind::Exhausted,
                    "write of 4 failed: ENOSPC (No space left on device)".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let mut text = String::new();
        for fd in 0..super::MAX_KINDS + 7 {
            text += &format!("write({fd}, \"x\", 1) = -1 ENOSPC (No space left on device)\n");
        }
        let (kind, last) = said(&text).pop().unwrap();
        assert_eq!(kind, StatementKind::Failed);
        assert_eq!(last, "7 more calls failed, in other ways than the first 200");
        let open = "[pid    41] write(2, \"a\", 1 <unfinished ...>\n[pid    42] fsync(3 <unfinished ...>\n";
        let text = format!("strace: Process 41 attached with 2 threads\n{open}");
        let (_, stands) = said(&text).pop().unwrap();
        assert!(
            stands.ends_with("does not come back in this trace, like one other call"),
            "{stands}"
        );
    }

    #[test]
    fn a_call_that_is_left_open_is_where_its_thread_stands() {
        let text = "strace: Process 41 attached with 2 threads\n[pid    42] futex(0x55f8, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>\n\
            [pid    41] write(2, \"text\", 4 <unfinished ...>\n";
        assert_eq!(
            said(text),
            [(
                StatementKind::Took,
                "thread 41 stands in write(2, \"text\", 4…), which does not come back in this trace"
                    .to_owned()
            )]
        );
    }
}
