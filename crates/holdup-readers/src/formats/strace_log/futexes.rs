//! Threads that a trace leaves in a futex: which lock it is, or whose end is awaited, by the futex's value.
//!
//! In: calls that have not come back when the trace ends. Out: one statement. The C library's mutex has the value 2 while somebody waits for
//! it, and a thread's own word has its number until the kernel clears it at its end: who waits on that joins it.

use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

/// Waits that are kept.
const WAITS: usize = 10_000;

/// The value of a mutex that others wait for.
const CONTENDED: u64 = 2;

/// One wait without a limit.
#[derive(Debug)]
struct Wait {
    tid: u32,
    address: String,
    value: u64,
    quote: Quote,
}

/// Those of one trace.
#[derive(Debug, Default)]
pub(super) struct Futexes {
    waits: Vec<Wait>,
}

impl Futexes {
    /// A futex call that has not come back: `0x7f64, FUTEX_WAIT, 11677, NULL`.
    pub(super) fn open(&mut self, tid: u32, args: &[u8], quote: &Quote) {
        let args = String::from_utf8_lossy(args.get(..200).unwrap_or(args)).into_owned();
        let parts: Vec<&str> = args.split(',').map(str::trim).collect();
        let [address, operation, value, limit, ..] = parts.as_slice() else {
            return;
        };
        let waits = operation.starts_with("FUTEX_WAIT") || operation.starts_with("FUTEX_LOCK_PI");
        let (Ok(value), true) = (
            value.parse(),
            waits && *limit == "NULL" && self.waits.len() < WAITS,
        ) else {
            return;
        };
        self.waits.push(Wait {
            tid,
            address: (*address).to_owned(),
            value,
            quote: quote.clone(),
        });
    }

    /// What a thread stands in that is alone in its trace; who waits for the end of which thread, and what that one waits for; else which lock most wait for.
    pub(super) fn end(self, is_alone: bool, is_thread: impl Fn(u32) -> bool, out: &mut Out<'_>) {
        let lock = |wait: &Wait| {
            let waiters = self
                .waits
                .iter()
                .filter(|other| other.address == wait.address && other.value == CONTENDED)
                .count();
            format!(
                "the lock (futex) {} has the value {CONTENDED}: somebody holds it, and {waiters} of these threads wait for it without limit",
                wait.address
            )
        };
        let contended = |wait: &&Wait| wait.value == CONTENDED;
        let joins = self.waits.iter().find_map(|wait| {
            let other = u32::try_from(wait.value)
                .ok()
                .filter(|other| *other != wait.tid && is_thread(*other))?;
            let behind = self.waits.iter().filter(contended).find(|one| one.tid == other);
            Some((wait, other, behind))
        });
        // A main thread that joins its workers is as it should be.
        let (kind, quote, text) = match joins {
            Some((wait, other, behind)) => {
                let kind = if behind.is_some() {
                    StatementKind::Stalled
                } else {
                    StatementKind::Took
                };
                let behind = behind
                    .map(|behind| format!(", and {other} waits: {}", lock(behind)))
                    .unwrap_or_default();
                (
                    kind,
                    &wait.quote,
                    format!(
                        "thread {} waits without limit for thread {other} to end (join: futex {} has that number){behind}",
                        wait.tid, wait.address
                    ),
                )
            }
            None => {
                let held = self.waits.iter().find(contended);
                // A worker without work waits so as well: that is for the reader to say.
                match held.or_else(|| self.waits.first().filter(|_| is_alone)) {
                    Some(wait) if wait.value == CONTENDED => (
                        StatementKind::Stalled,
                        &wait.quote,
                        format!("thread {} waits: {}", wait.tid, lock(wait)),
                    ),
                    Some(wait) => (
                        StatementKind::Took,
                        &wait.quote,
                        format!(
                            "the traced thread waits without limit in futex {} (value {}) until another thread wakes it: for a lock or a \
                             condition",
                            wait.address, wait.value
                        ),
                    ),
                    None => return,
                }
            }
        };
        out.statement(statements::one(kind, None, quote.clone(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn who_joins_whom_and_what_that_one_waits_for() {
        let text = "strace: Process 41 attached with 3 threads\n[pid    43] futex(0x55f89ac92580, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>\n\
            [pid    42] futex(0x55f89ac83c58, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>\n\
            [pid    41] futex(0x7f6483d009d0, FUTEX_WAIT, 43, NULL <unfinished ...>\n";
        let reading = read_text("s", text.as_bytes());
        let texts = reading.texts();
        assert_eq!(
            texts,
            [
                "thread 41 waits without limit for thread 43 to end (join: futex 0x7f6483d009d0 has that number), and 43 waits: the lock \
                 (futex) 0x55f89ac92580 has the value 2: somebody holds it, and 1 of these threads wait for it without limit"
            ]
        );
    }

    #[test]
    fn a_thread_that_is_alone_stands_in_its_futex() {
        let text = "[root@box ~]# strace -p 4394\nstrace: Process 4394 attached\nfutex(0xc000084550, FUTEX_WAIT_PRIVATE, 0, NULL\n";
        assert_eq!(
            read_text("s", text.as_bytes()).texts(),
            [
                "the traced thread waits without limit in futex 0xc000084550 (value 0) until another thread wakes it: for a lock or a condition"
            ]
        );
    }

    #[test]
    fn a_wait_for_work_states_nothing() {
        let text = "[pid    42] futex(0x55f8, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>\n[pid    43] futex(0x55f9, FUTEX_WAIT_PRIVATE, 2, \
            {tv_sec=1, tv_nsec=0} <unfinished ...>\n[pid 44] futex( <unfinished ...>\n";
        assert!(read_text("s", text.as_bytes()).observed.statements.is_empty());
    }
}
