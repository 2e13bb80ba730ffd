//! Reports of lockdep: a task takes locks in an order in which others may deadlock, or takes one that it has.
//!
//! In: the lines of a report. Out: one statement with the task, the lock that it takes, the lock that it holds, where it took
//! each, and the order that was known before.

use super::text::{after, owned, until};
use crate::find::find;
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

/// Lines of a report that are looked at.
const LINES: u32 = 240;

/// Locks of the known order that are reported.
const CHAIN: usize = 8;

/// Bytes of a line that mail programs have wrapped, of which both parts are needed.
const WRAPPED: usize = 400;

/// How a report begins, and what it is in words.
const BEGINS: [(&[u8], &str); 6] = [
    (
        b"possible circular locking dependency detected",
        "possible deadlock",
    ),
    (
        b"possible recursive locking detected",
        "possible deadlock with itself",
    ),
    (b"inconsistent lock state", "possible deadlock with an interrupt"),
    (
        b"possible irq lock inversion dependency",
        "possible deadlock with an interrupt",
    ),
    (
        b"unsafe lock order detected",
        "possible deadlock with an interrupt",
    ),
    (
        b"Invalid wait context",
        "a lock that sleeps is taken where nothing may sleep",
    ),
];

/// A lock, and the function that took it.
#[derive(Debug)]
struct Lock {
    name: String,
    at: Option<String>,
}

/// Which of the two locks the next lines name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Nothing,
    Takes,
    Holds,
}

/// A report that is being read.
#[derive(Debug)]
pub(super) struct LockOrder {
    quote: Quote,
    what: &'static str,
    lines: u32,
    task: Option<String>,
    takes: Option<Lock>,
    holds: Option<Lock>,
    next: Next,
    /// What the lines since the last heading have, joined.
    joined: Vec<u8>,
    chain: Vec<String>,
}

impl LockOrder {
    /// The report that a message begins.
    pub(super) fn begins(text: &[u8], out: &Out<'_>) -> Option<LockOrder> {
        // `WARNING: `, `[ INFO: `, `[ BUG: ` and the like: nearly every other message ends the look here.
        let level = matches!(
            text.trim_ascii_start().first(),
            Some(b'W' | b'I' | b'B' | b'[' | b'p' | b'i')
        );
        let (_, what) = BEGINS
            .iter()
            .filter(|_| level)
            .find(|(begin, _)| find(text, begin).is_some())?;
        Some(LockOrder {
            quote: out.here(),
            what,
            lines: 0,
            task: None,
            takes: None,
            holds: None,
            next: Next::Nothing,
            joined: Vec::new(),
            chain: Vec::new(),
        })
    }

    /// Takes a line; whether the report goes on.
    pub(super) fn line(&mut self, text: &[u8]) -> bool {
        self.lines += 1;
        let text = text.trim_ascii();
        if self.lines > LINES || text.starts_with(b"stack backtrace") {
            return false;
        }
        let acting = [
            &b" is trying to acquire lock"[..],
            b" is trying to lock:",
            b" takes:",
        ]
        .into_iter()
        .find_map(|words| until(text, words));
        if let Some(task) = acting {
            let task = until(task, b" [").unwrap_or(task);
            self.task.get_or_insert_with(|| owned(task));
            self.expect(Next::Takes);
        } else if find(text, b"is already holding lock").is_some()
            || find(text, b"and this task is already holding").is_some()
        {
            self.expect(Next::Holds);
        } else if text.starts_with(b"-> #") {
            self.expect(Next::Nothing);
            if let Some(name) = name_of(text).filter(|_| self.chain.len() < CHAIN) {
                self.chain.push(name);
            }
        } else if text.is_empty() {
            self.next = Next::Nothing;
        } else if self.next != Next::Nothing {
            self.lock(text);
        }
        true
    }

    fn expect(&mut self, next: Next) {
        self.next = next;
        self.joined.clear();
    }

    fn lock(&mut self, text: &[u8]) {
        if self.joined.len() + text.len() > WRAPPED {
            return;
        }
        if !self.joined.is_empty() {
            self.joined.push(b' ');
        }
        self.joined.extend_from_slice(text);
        let Some(name) = name_of(&self.joined) else { return };
        let place = after(&self.joined, b"at:").map(<[u8]>::trim_ascii_start);
        // Older kernels put the address before the function.
        let place = place.map(|place| after(place, b">] ").unwrap_or(place));
        let at = place.and_then(|place| until(place, b"+0x")).map(owned);
        let complete = at.is_some();
        let lock = Some(Lock { name, at });
        match self.next {
            Next::Takes => self.takes = lock,
            Next::Holds => self.holds = lock,
            Next::Nothing => {}
        }
        if complete {
            self.next = Next::Nothing;
        }
    }

    /// The statement; nothing where the report was cut before it names a lock.
    pub(super) fn end(self, out: &mut Out<'_>) {
        let describe = |lock: &Lock, word: &str| match &lock.at {
            Some(at) => format!("{} {word} {at}", lock.name),
            None => lock.name.clone(),
        };
        let mut text = self.what.to_owned();
        let task = self.task.as_deref().unwrap_or("a task");
        match (&self.takes, &self.holds) {
            (Some(takes), Some(holds)) => text.push_str(&format!(
                ": {task} takes the lock {} while it holds {}",
                describe(takes, "in"),
                describe(holds, "from")
            )),
            (Some(lock), None) | (None, Some(lock)) => {
                text.push_str(&format!(": {task} takes the lock {}", describe(lock, "in")));
            }
            (None, None) => {
                text.push_str(", in the kernel's words; the report was cut before it names a lock")
            }
        }
        if self.chain.len() > 1 {
            // The kernel lists the last one first.
            let chain: Vec<&str> = self.chain.iter().map(String::as_str).collect();
            text.push_str(&format!("; the order known before: {}", chain.join(" <- ")));
        }
        out.statement(statements::one(StatementKind::Deadlock, None, self.quote, text));
    }
}

/// The name in `ffff8881 (&q->lock){+.+.}-{3:3}, at: …`.
fn name_of(text: &[u8]) -> Option<String> {
    let end = find(text, b"){")?;
    let begin = memchr::memchr(b'(', text)?;
    text.get(begin + 1..end)
        .filter(|name| !name.is_empty())
        .map(owned)
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn a_report_of_lockdep_names_both_locks_and_the_task() {
        let text = "[    9.100000][  T77] WARNING: possible circular locking dependency detected\n\
            [    9.100001][  T77] 6.1.0 #3 Not tainted\n\
            [    9.100002][  T77] umount/77 is trying to acquire lock:\n\
            [    9.100003][  T77] ffff88810a (&fs->sync){+.+.}-{3:3}, at: fs_sync_all+0x1a/0x200\n\
            [    9.100004][  T77] \n\
            [    9.100005][  T77] but task is already holding lock:\n\
            [    9.100006][  T77] ffff88810b\n(&type->s_umount_key#9){++++}-{3:3}, at:\ndeactivate_super+0x33/0x60\n\
            [    9.100007][  T77] the existing dependency chain (in reverse order) is:\n\
            [    9.100008][  T77] -> #1 (&type->s_umount_key#9){++++}-{3:3}:\n\
            [    9.100009][  T77]        down_write+0x33/0x90\n\
            [    9.100010][  T77] -> #0 (&fs->sync){+.+.}-{3:3}:\n\
            [    9.100011][  T77]  *** DEADLOCK ***\n\
            [    9.100012][  T77] stack backtrace:\n\
            [    9.100013][  T77] CPU: 1 PID: 77 Comm: umount Not tainted 6.1.0 #3\n";
        let reading = read_text("log", text.as_bytes());
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{:?}", reading.observed.statements)
        };
        assert_eq!(
            one.text,
            "possible deadlock: umount/77 takes the lock &fs->sync in fs_sync_all while it holds &type->s_umount_key#9 from \
             deactivate_super; the order known before: &type->s_umount_key#9 <- &fs->sync"
        );
    }

    #[test]
    fn a_report_of_lockdep_that_is_cut_hides_nothing_that_follows() {
        let text = "[    9.100000] WARNING: possible recursive locking detected\n\
            [    9.200000] INFO: task dd:9 blocked for more than 120 seconds.\n";
        let reading = read_text("log", text.as_bytes());
        assert_eq!(reading.observed.statements.len(), 1);
        assert_eq!(reading.observed.happenings.len(), 1);
    }

    #[test]
    fn a_report_of_an_older_lockdep_without_times() {
        let text = "=============================================\n[ INFO: possible recursive locking detected ]\n3.10.0 #1\n\
            ---------------------------------------------\nflush/9/1480 is trying to acquire lock:\n \
            (&io->lock){+.+...}, at: [<ffffffffa051fac8>] io_add+0x88/0x150 [fs]\n\nbut task is already holding lock:\n \
            (&io->lock){+.+...}, at: [<ffffffffa051faa2>] io_parent+0x62/0x150 [fs]\n\nstack backtrace:\n";
        let reading = read_text("log", text.as_bytes());
        let parts = reading.texts();
        assert_eq!(
            parts,
            [
                "possible deadlock with itself: flush/9/1480 takes the lock &io->lock in io_add while it holds &io->lock from io_parent"
            ]
        );
    }
}
