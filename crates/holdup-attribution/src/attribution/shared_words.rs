//! Waits for futexes in files that processes share.
//!
//! In: all rows, and what is known of such words. Out: the rows, with the name of the file or semaphore, and marked where all processes that
//! have it mapped wait for it: no process is left that could end that.

use holdup_evidence::{Cause, Ns, SharedWord};
use holdup_knowledge::python;
use holdup_model::attributed::{Address, AttributedWait, Orphaned};

/// Where the C library keeps named semaphores, and what their files' names begin with.
const SEMAPHORES: &str = "/dev/shm/sem.";

/// From so long a wait for the lock of a queue it changes hands no more, nanoseconds: who has it takes one message out.
const MIN_QUEUE_WAIT_NS: Ns = 1_000_000_000;

/// Whether a word is a queue's lock that nobody has: of those who share it each one waits for it or for something that nobody has it for.
fn is_of_the_dead(row: &AttributedWait, word: &SharedWord) -> bool {
    let rests = |transfers: Option<bool>| transfers == Some(false);
    let long = row.max >= MIN_QUEUE_WAIT_NS;
    long && python::takes_queues_lock(&row.asker.stack) && word.users.iter().all(|user| rests(user.transfers))
}

/// Names what the waits are for.
pub(super) fn name(rows: &mut [AttributedWait], words: &[SharedWord]) {
    for row in rows
        .iter_mut()
        .filter(|row| row.cause == Cause::LockFutex && row.open)
    {
        let at = row.resource.detail.address.clone();
        let is =
            |word: &&SharedWord| word.pid == row.asker.name.pid && at == Some(Address::Memory(word.address));
        let Some(word) = words.iter().find(is) else {
            continue;
        };
        if row.resource.is_futex_alone() {
            row.resource.name = named(word);
        }
        row.resource.detail.file.get_or_insert_with(|| word.path.clone());
        let nobody = word.all_asked && word.value == Some(0) && word.path.starts_with(SEMAPHORES);
        let users = word.users.len() as u64;
        if nobody && users > 0 && word.users.iter().all(|user| user.waits) && row.orphaned.is_none() {
            row.orphaned = Some(Orphaned {
                sharers: users,
                ..Orphaned::default()
            });
        }
        if nobody && users > 0 && row.orphaned.is_none() && is_of_the_dead(row, word) {
            row.orphaned = Some(Orphaned {
                queue_sharers: users,
                ..Orphaned::default()
            });
        }
    }
}

/// `the semaphore /plotter`, or the word in its file.
fn named(word: &SharedWord) -> String {
    match word.path.strip_prefix(SEMAPHORES) {
        Some(name) => format!("the semaphore /{name}"),
        None => format!("a lock in {}", word.path),
    }
}
