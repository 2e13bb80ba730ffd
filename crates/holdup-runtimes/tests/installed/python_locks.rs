//! Locks of CPythons that are installed here: which one a thread waits for, and who has it.

use crate::pythons::{each, interpreter};
use crate::support::Sleeper;
use holdup_runtimes::interpreted::{AwaitedLock, LockKind};
use holdup_runtimes::python::Thread;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A thread that has all locks, two of them by other objects' `with`, and one that waits for each of them.
const PROGRAM: &str = r#"
import threading, time

plain, again, places = threading.Lock(), threading.RLock(), threading.Semaphore(1)
changed, taken_by_hand = threading.Condition(threading.Lock()), threading.Lock()
ready = threading.Event()

def keep():
    with plain:
        try:
            with again, places, changed:
                taken_by_hand.acquire()
                ready.set()
                time.sleep(600)
        finally:
            pass

def enter(lock):
    for _ in range(1):
        with lock:
            raise SystemExit

def by_hand():
    plain.acquire()

def rest():
    with changed_too:
        changed_too.wait()

def let_go(condition, entered):
    with condition:
        entered.set()
        condition.wait()

# These wait in a condition of a lock, so that they have it no longer, though they stand in its block.
for lock in (plain, taken_by_hand):
    entered = threading.Event()
    threading.Thread(target=let_go, args=(threading.Condition(lock), entered), daemon=True).start()
    entered.wait()

changed_too = threading.Condition()
keeper = threading.Thread(target=keep)
keeper.start()
ready.wait()
waiters = [threading.Thread(target=enter, args=(lock,)) for lock in (plain, again, places, changed, taken_by_hand)]
waiters += [threading.Thread(target=by_hand), threading.Thread(target=rest)]
for thread in waiters:
    thread.start()

def tid(thread):
    # Not all versions have it.
    return getattr(thread, "native_id", None)

print(tid(keeper), *[tid(thread) for thread in waiters], flush=True)
keeper.join()
"#;

/// The word of memory on which a thread sleeps.
fn word(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap();
    let mut fields = text.split_whitespace();
    (fields.next()? == "202")
        .then(|| u64::from_str_radix(fields.next()?.trim_start_matches("0x"), 16).ok())?
}

fn check(python: &Path, file: &Path) {
    let mut sleeper = Sleeper::start(Command::new(python).arg(file));
    let said = sleeper.line();
    let tids: Vec<u32> = said.split_whitespace().map(|tid| tid.parse().unwrap()).collect();
    let (keeper, waiters) = tids.split_first().unwrap();
    let mut interpreter = interpreter(&sleeper, python);
    let all = interpreter.threads().unwrap();
    let threads: BTreeMap<u32, Thread> = all.iter().map(|thread| (thread.tid, *thread)).collect();
    let owner = Some(*keeper);
    let expected = [
        Some((LockKind::Lock, owner)),
        Some((LockKind::RLock, owner)),
        Some((LockKind::Semaphore, owner)),
        Some((LockKind::Lock, owner)),
        Some((LockKind::Lock, None)),
        Some((LockKind::Lock, owner)),
        None,
    ];
    for (number, (tid, expected)) in waiters.iter().zip(expected).enumerate() {
        let mut read = || {
            let word = word(sleeper.pid(), *tid)?;
            let frames = interpreter.frames_of(threads[tid]).ok()?;
            let found = interpreter.awaited_lock(threads[tid], word, &frames, &all).ok()?;
            Some(found.map(|AwaitedLock { kind, owner, .. }| (kind, owner)))
        };
        // It may be on its way there.
        let mut found = None;
        for _ in 0..100_000 {
            found = read();
            if found == Some(expected) {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(found, Some(expected), "{}: waiter {number}", python.display());
    }
}

#[test]
fn waiters_are_told_which_lock_it_is_and_who_has_it() {
    each("locks", PROGRAM, check);
}
