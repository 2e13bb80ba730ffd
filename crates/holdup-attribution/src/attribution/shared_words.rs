//! Waits for futexes in files that processes share.
//!
//! In: all rows, and what is known of such words. Out: the rows, with the name of the file or semaphore, and marked where all processes that
//! have it mapped wait for it: no process is left that could end that. A lock of Python's `multiprocessing` notes no owner; of those who have its
//! semaphore mapped the one that stands within the function in which the others wait to enter has it.

use holdup_evidence::{Cause, Frame, Ns, SharedWord};
use holdup_knowledge::python;
use holdup_model::attributed::{Address, AttributedWait, Holder, HowKnown, Orphaned};

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

/// Whether this stands in that function and is not about to enter the block.
fn stands_within(row: &AttributedWait, function: &Frame) -> bool {
    let same = |frame: &Frame| frame.symbol == function.symbol && frame.file == function.file;
    python::enters_shared_lock(&row.asker.stack).is_none() && row.asker.stack.iter().any(same)
}

/// Who has the lock of `multiprocessing` that each of these waits is for, by place in the list.
fn owners(rows: &[AttributedWait], words: &[SharedWord]) -> Vec<(usize, Holder)> {
    let of = |(place, row): (usize, &AttributedWait)| {
        let function = python::enters_shared_lock(&row.asker.stack)?;
        function.symbol.as_ref()?;
        let word = word_of(row, words).filter(|word| word.value == Some(0))?;
        let user = |pid: u32| pid != row.asker.name.pid && word.users.iter().any(|user| user.pid == pid);
        let mut others = rows
            .iter()
            .filter(|other| user(other.asker.name.pid) && other.open && stands_within(other, function));
        let owner = others.next()?;
        // Several that are in there are in other blocks, or have places of a semaphore.
        let alone = others.all(|other| other.asker.name == owner.asker.name);
        alone.then(|| {
            let holder = Holder {
                name: owner.asker.name.clone(),
                how_known: HowKnown::Interpreter,
                doing: Some(owner.cause),
                ns: row.ns,
                stack: owner.asker.stack.clone(),
                place: None,
                others_busy: 0,
            };
            (place, holder)
        })
    };
    rows.iter().enumerate().filter_map(of).collect()
}

/// The word that a wait is for.
fn word_of<'a>(row: &AttributedWait, words: &'a [SharedWord]) -> Option<&'a SharedWord> {
    let at = row.resource.detail.address.clone();
    let is = |word: &&SharedWord| word.pid == row.asker.name.pid && at == Some(Address::Memory(word.address));
    let waits = row.cause == Cause::LockFutex && row.open;
    waits.then(|| words.iter().find(is)).flatten()
}

/// Names what the waits are for.
pub(super) fn name(rows: &mut [AttributedWait], words: &[SharedWord]) {
    for (place, holder) in owners(rows, words) {
        if rows[place].holders.is_empty() {
            rows[place].holders.push(holder);
        }
    }
    for row in rows.iter_mut() {
        let Some(word) = word_of(row, words) else {
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

#[cfg(test)]
mod tests {
    use super::name;
    use holdup_evidence::{Cause, Frame, Language, SharedUser, SharedWord};
    use holdup_model::attributed::{Address, AttributedWait, ThreadName};

    fn row(pid: u32, cause: Cause, stack: &[(&str, &str)]) -> AttributedWait {
        let row = serde_json::json!({"cause": cause, "ns": 5_000_000_000_u64, "open": true});
        let mut row: AttributedWait = serde_json::from_value(row).unwrap();
        row.asker.name = ThreadName {
            pid,
            tid: pid,
            ..ThreadName::default()
        };
        row.resource.detail.address = Some(Address::Memory(0x7000));
        row.asker.stack = (stack.iter())
            .map(|(file, symbol)| Frame {
                symbol: Some((*symbol).to_owned()),
                file: Some((*file).to_owned()),
                language: Language::Python,
                ..Frame::default()
            })
            .collect();
        row
    }

    const ENTERS: (&str, &str) = (
        "/usr/lib/python3.11/multiprocessing/synchronize.py",
        "SemLock.__enter__",
    );
    const WORK: (&str, &str) = ("/srv/press.py", "work");

    /// The process that has the lock for which process 7 waits in `work`, besides these that share it.
    fn owner(others: &[AttributedWait]) -> Option<u32> {
        let users = [7, 8, 9].map(|pid| SharedUser {
            pid,
            ..SharedUser::default()
        });
        let word = SharedWord {
            pid: 7,
            address: 0x7000,
            path: "/dev/shm/sem.x (deleted)".to_owned(),
            value: Some(0),
            users: users.into(),
            all_asked: true,
        };
        let mut rows = vec![row(7, Cause::LockFutex, &[ENTERS, WORK])];
        rows.extend_from_slice(others);
        name(&mut rows, &[word]);
        rows[0].holders.first().map(|holder| holder.name.pid)
    }

    #[test]
    fn who_stands_within_the_block_has_the_lock() {
        let sleeps = row(8, Cause::TimerSleep, &[("/srv/press.py", "print"), WORK]);
        let waits = row(9, Cause::LockFutex, &[ENTERS, WORK]);
        assert_eq!(owner(&[sleeps.clone(), waits.clone()]), Some(8));
        assert_eq!(owner(&[waits]), None, "all wait");
        let elsewhere = row(8, Cause::ProcessChild, &[("/srv/press.py", "main")]);
        assert_eq!(owner(&[elsewhere]), None, "who has started them");
        let other = row(70, Cause::TimerSleep, &[WORK]);
        assert_eq!(owner(&[other]), None, "a process that does not share it");
        let also = row(9, Cause::NetReceive, &[WORK]);
        assert_eq!(owner(&[sleeps, also]), None, "two are in there");
    }
}
