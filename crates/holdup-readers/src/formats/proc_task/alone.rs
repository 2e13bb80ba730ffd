//! A process of one thread that waits for a lock within itself: nobody is left to release it.
//!
//! In: lines of strace beside a task's `status`, and the tasks. Out: a statement. `FUTEX_WAIT_PRIVATE` waits for a word that only threads of the same
//! process can change; without a limit, in the only thread, it never ends. A fork that copied a locked lock, a thread that ended with it, and a
//! handler of a signal that takes it once more come to that. Other values than a lock's may be a semaphore, which a handler of a signal may post.

use super::TaskFiles;
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

/// Bytes of a line that are looked at.
const LOOKED_AT: usize = 300;

/// The value of the C library's mutex while somebody waits for it.
const CONTENDED: &str = "2";

/// The wait of one thread that has not come back, as strace shows it.
#[derive(Debug, Default)]
pub(super) struct Alone {
    /// Whom strace was attached to.
    pid: Option<u32>,
    wait: Option<(String, String, Quote)>,
    /// Whether more than one thread or call was traced.
    others: bool,
}

impl Alone {
    /// Takes a line; whether it is strace's.
    pub(super) fn line(&mut self, line: &[u8], out: &Out<'_>) -> bool {
        let line = line.get(..LOOKED_AT).unwrap_or(line);
        let attached = line.starts_with(b"strace: Process ") || line.starts_with(b"Process ");
        if attached && line.ends_with(b" attached") {
            let text = text_of(line);
            let pid = text.split_whitespace().find_map(|word| word.parse().ok());
            self.others |= self.pid.is_some() && self.pid != pid;
            self.pid = pid;
            return true;
        }
        if !line.starts_with(b"futex(") {
            return false;
        }
        let text = text_of(line);
        self.others |= self.wait.is_some();
        match wait(&text) {
            Some((address, value)) => self.wait = Some((address.to_owned(), value.to_owned(), out.here())),
            None => self.others = true,
        }
        true
    }

    /// Says so where it is the only thread of the only process that is shown.
    pub(super) fn end(self, seen: &[TaskFiles], out: &mut Out<'_>) {
        let (Some((address, value, quote)), [task], false) = (self.wait, seen, self.others) else {
            return;
        };
        let pid = task.thread.pid.or(task.thread.tid);
        let same = self.pid.is_none() || self.pid == pid || self.pid == task.thread.tid;
        if task.threads != Some(1) || !same || value != CONTENDED {
            return;
        }
        let who = match (task.thread.name.as_str(), pid) {
            ("", Some(pid)) => format!("process {pid}"),
            (name, Some(pid)) => format!("{name} (pid {pid})"),
            (name, None) => name.to_owned(),
        };
        let text = format!(
            "{who} waits without limit for the futex {address} (value {value}: a lock that is held), which only threads of its own process can \
             release, and it has a single thread: no other thread is left to wake it, a deadlock with itself or with a thread that is gone"
        );
        out.statement(statements::one(StatementKind::Deadlock, None, quote, text));
    }
}

/// `futex(0x55, FUTEX_WAIT_PRIVATE, 2, NULL) = ? ERESTARTSYS (…)`, or one that has not come back: address and value.
fn wait(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("futex(")?;
    let mut parts = inside.split(", ");
    let (address, operation, value) = (parts.next()?, parts.next()?, parts.next()?);
    let limit = parts.next()?;
    let private = operation.starts_with("FUTEX_WAIT") && operation.contains("PRIVATE");
    let unlimited = limit.starts_with("NULL");
    // One that came back was woken.
    let came = text
        .rsplit_once(") = ")
        .is_some_and(|(_, result)| !result.starts_with('?'));
    (private && unlimited && !came).then_some((address, value.trim_end_matches(['<', ' '])))
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(futex: &str, threads: u32) -> Vec<(StatementKind, String)> {
        let text = format!(
            "# strace -p 811\nstrace: Process 811 attached\n{futex}\nName:\tworker\nState:\tS (sleeping)\nTgid:\t811\nPid:\t811\n\
             PPid:\t1\nTracerPid:\t0\nThreads:\t{threads}\nvoluntary_ctxt_switches:\t14\n"
        );
        let all = read_text("t", text.as_bytes()).observed.statements;
        all.into_iter().map(|one| (one.kind, one.text)).collect()
    }

    const HELD: &str =
        "futex(0x7f01, FUTEX_WAIT_PRIVATE, 2, NULL) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)";

    #[test]
    fn the_only_thread_of_a_process_waits_for_nobody() {
        let all = said(HELD, 1);
        assert_eq!(all[0].0, StatementKind::Deadlock, "{all:?}");
        assert!(
            all[0].1.starts_with(
                "worker (pid 811) waits without limit for the futex 0x7f01 (value 2: a lock that is held)"
            ),
            "{all:?}"
        );
        let open = "futex(0x7f01, FUTEX_WAIT_BITSET_PRIVATE, 2, NULL, FUTEX_BITSET_MATCH_ANY";
        assert!(
            said(open, 1)[0].1.contains("has a single thread"),
            "{:?}",
            said(open, 1)
        );
    }

    #[test]
    fn others_may_wake_it() {
        for (futex, threads) in [
            (HELD, 2),
            // Another process may have the word, too.
            ("futex(0x7f01, FUTEX_WAIT, 2, NULL", 1),
            ("futex(0x7f01, FUTEX_WAIT_PRIVATE, 2, {tv_sec=1, tv_nsec=0}", 1),
            ("futex(0x7f01, FUTEX_WAIT_PRIVATE, 2, NULL) = 0", 1),
            // A semaphore, and a condition.
            (
                "futex(0x7f01, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_MATCH_ANY <detached ...>",
                1,
            ),
            ("futex(0x7f01, FUTEX_WAIT_PRIVATE, 4711, NULL", 1),
        ] {
            let all = said(futex, threads);
            assert!(
                all.iter().all(|(_, said)| !said.contains("single thread")),
                "{all:?}"
            );
        }
    }
}
