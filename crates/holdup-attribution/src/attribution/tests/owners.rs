//! Owners of locks, recognised by the memory of locks and by the kernel.

use super::scene::{By, Scene, WRITE, row, words};
use holdup_evidence::{
    Call, Cause, Event, FUTEX_AT, Inside, KernelLock, KernelLockKind, LockHolder, LockOwner, RuntimeLock,
    RuntimeLockKind, RuntimeLockSource, TaskName, ThreadId, Wait,
};
use holdup_model::attributed::{HowKnown, Orphaned};

/// The first holder of a wait of CMD's only thread for a futex, and how it is known. Thread 1 (tid 101) ends the wait; it
/// belongs to the same process, 2 (tid 102) to another, 900 to a process outside the run.
fn holder(expected: u64, flags: u64, lock: LockHolder) -> (u32, u32, HowKnown) {
    let mut scene = Scene::new("server");
    scene.thread(1, 0, "worker");
    scene.process(2, 0, "other");
    scene.events.push(Event::Outsider(TaskName {
        pid: 899,
        tid: 900,
        name: "stranger".to_owned(),
        kernel: false,
    }));
    scene.cpu(1, 100);
    let wait = scene.wait(0, Cause::LockFutex, 100, By::Thread(1, WRITE));
    wait.call.args[1] = flags;
    wait.call.args[2] = expected;
    wait.holder = Some(lock);
    for id in 0..3 {
        scene.end(id);
    }
    let run = scene.attributed();
    let row = row(&run, 0, Cause::LockFutex);
    let first = &row.holders[0];
    (first.name.pid, first.name.tid, first.how_known)
}

const PRIVATE: u64 = 128;
const SHARED: u64 = 0;
const WITH_BITSET: u64 = 9 | PRIVATE;
const WAITERS: u32 = 0x8000_0000;
const BY_WAKER: (u32, u32, HowKnown) = (100, 101, HowKnown::Waker);

#[test]
fn the_word_the_value_awaited_the_kind_and_the_owner_must_fit() {
    let look_up = |lock: &[u32]| holder(2, PRIVATE, words(lock));
    assert_eq!(look_up(&[2, 0, 101, 1]), (100, 101, HowKnown::MutexOwner));
    assert_eq!(
        look_up(&[2, 5, 101, 1, 1]),
        (100, 101, HowKnown::MutexOwner),
        "recursive"
    );
    for no_mutex in [
        [0, 0, 101, 1, 0],
        [2, 0, 102, 1, 0],
        [2, 0, 999, 1, 0],
        [7, 0, 101, 1, 0],
        [2, 0, 0, 1, 0],
        [2, 0, 101, 0, 0],
        [2, 0, 101, 1, 0x1000],
        [2, 0, 101, 1, 64],
    ] {
        assert_eq!(look_up(&no_mutex), BY_WAKER, "{no_mutex:?}");
    }
    let lock = || words(&[2, 0, 101, 1]);
    assert_eq!(holder(1, PRIVATE, lock()), BY_WAKER, "it waits for another value");
    assert_eq!(holder(2, WITH_BITSET, lock()), BY_WAKER, "as Rust waits");
}

#[test]
fn a_robust_mutex_names_its_owner_in_the_word_itself() {
    let awaited = u64::from(101 | WAITERS);
    let look_up = |lock: &[u32]| holder(awaited, PRIVATE, words(lock));
    assert_eq!(
        look_up(&[101 | WAITERS, 0, 101, 1, 16]),
        (100, 101, HowKnown::RobustList)
    );
    assert_eq!(look_up(&[101 | WAITERS, 0, 101, 1, 0]), BY_WAKER, "not robust");
    assert_eq!(look_up(&[102 | WAITERS, 0, 101, 1, 16]), BY_WAKER);
}

#[test]
fn only_a_lock_that_processes_share_names_another_process() {
    let lock = |owner| words(&[2, 0, owner, 1, 128]);
    assert_eq!(holder(2, SHARED, lock(102)), (102, 102, HowKnown::MutexOwner));
    assert_eq!(holder(2, SHARED, lock(900)), (899, 900, HowKnown::MutexOwner));
    assert_eq!(holder(2, SHARED, lock(901)), BY_WAKER, "nobody lives there");
    assert_eq!(holder(2, PRIVATE, lock(102)), BY_WAKER);
    assert_eq!(holder(2, PRIVATE, lock(900)), BY_WAKER);
}

/// Memory of a reader-writer lock, seen from the futex that is its word number `at`.
fn rwlock(at: usize, lock: [u32; 8]) -> LockHolder {
    let mut seen = [0; holdup_evidence::FUTEX_WORDS];
    for (place, word) in lock.into_iter().enumerate() {
        if let Some(slot) = (FUTEX_AT + place)
            .checked_sub(at)
            .and_then(|index| seen.get_mut(index))
        {
            *slot = word;
        }
    }
    LockHolder::FutexWords(seen)
}

#[test]
fn a_writer_of_a_reader_writer_lock_is_named_to_readers_and_writers() {
    let one_reader = 3 | (1 << 3);
    let look_up = |at, lock| holder(3, PRIVATE, rwlock(at, lock));
    let writer = (100, 101, HowKnown::MutexOwner);
    assert_eq!(look_up(2, [one_reader, 0, 3, 1, 0, 0, 101, 0]), writer);
    assert_eq!(look_up(3, [3, 1, 1, 3, 0, 0, 101, 0]), writer);
    assert_eq!(
        look_up(2, [1 << 3, 0, 3, 1, 0, 0, 101, 0]),
        BY_WAKER,
        "readers have it"
    );
    assert_eq!(look_up(2, [one_reader, 0, 3, 1, 0, 0, 0, 0]), BY_WAKER);
    assert_eq!(
        look_up(2, [one_reader, 0, 3, 1, 0, 0, 102, 0]),
        BY_WAKER,
        "of another process"
    );
}

#[test]
fn ids_in_a_lock_are_those_of_the_waiters_namespace() {
    let mut scene = Scene::new("server");
    scene.process(1, 0, "inner");
    scene.thread(2, 1, "worker");
    let mut inner = 10;
    for event in &mut scene.events {
        if let Event::Start(start) = event
            && start.thread != ThreadId(0)
        {
            start.inside = Some(Inside {
                namespace: 77,
                tid: inner,
            });
            inner += 1;
        }
    }
    scene.cpu(2, 100);
    let wait = scene.wait(1, Cause::LockFutex, 100, By::Interrupt);
    wait.call.args[2] = 2;
    wait.holder = Some(words(&[2, 0, 11, 1]));
    for id in [1, 2, 0] {
        scene.end(id);
    }
    let run = scene.attributed();
    let first = &row(&run, 1, Cause::LockFutex).holders[0];
    assert_eq!((first.name.tid, first.how_known), (102, HowKnown::MutexOwner));
}

/// Who is in the way of a wait that this prepares, as tid and way of knowing.
fn named(cause: Cause, prepare: impl FnOnce(&mut Wait)) -> Vec<(u32, HowKnown)> {
    let mut scene = Scene::new("server");
    scene.thread(1, 0, "worker");
    scene.cpu(1, 100);
    prepare(scene.wait(0, cause, 100, By::Interrupt));
    for id in 0..2 {
        scene.end(id);
    }
    let run = scene.attributed();
    let holders = &row(&run, 0, cause).holders;
    holders
        .iter()
        .map(|holder| (holder.name.tid, holder.how_known))
        .collect()
}

#[test]
fn the_kernel_names_the_owner_of_a_futex_that_lends_its_priority() {
    let owner = |tid| LockHolder::PiFutex(LockOwner { pid: 100, tid });
    let named = |tid| named(Cause::LockFutex, |wait| wait.holder = Some(owner(tid)));
    assert_eq!(named(101), [(101, HowKnown::PiFutex)]);
    assert_eq!(named(950), [(950, HowKnown::PiFutex)], "outside the run");
}

#[test]
fn the_owner_of_a_kernel_lock_is_named_where_the_wait_is_for_one() {
    let lock = |owner| {
        LockHolder::KernelLock(KernelLock {
            owner,
            kind: KernelLockKind::Mutex,
            shared: false,
            address_space: None,
            object: None,
        })
    };
    let owner = LockOwner { pid: 40, tid: 41 };
    for cause in [Cause::LockKernel, Cause::MemMmaplock] {
        let named = named(cause, |wait| wait.holder = Some(lock(Some(owner))));
        assert_eq!(named, [(41, HowKnown::KernelLock)]);
    }
    assert_eq!(
        named(Cause::LockKernel, |wait| wait.holder = Some(lock(None))),
        []
    );
    assert_eq!(
        named(Cause::DiskRead, |wait| wait.holder = Some(lock(Some(owner)))),
        []
    );
}

/// What a wait was for whose lock a runtime names, and the first holder.
fn told_by_runtime(owner: Option<u32>, source: RuntimeLockSource) -> (String, u32, HowKnown) {
    told_of(RuntimeLockKind::Monitor, owner, source)
}

fn told_of(kind: RuntimeLockKind, owner: Option<u32>, source: RuntimeLockSource) -> (String, u32, HowKnown) {
    let mut scene = Scene::new("shop");
    scene.thread(1, 0, "till");
    scene.process(2, 0, "other");
    scene.cpu(1, 100);
    let lock = RuntimeLock {
        kind,
        class: "com.shop.Till".to_owned(),
        identity: 0xa,
        owner,
        seen: (0, 0),
        source,
    };
    let wait = scene.wait(0, Cause::LockFutex, 100, By::Thread(1, WRITE));
    wait.holder = Some(LockHolder::Runtime(lock));
    // What the stack tells is less than what the runtime does.
    scene.asked(0, "take_gil", 100);
    for id in 0..3 {
        scene.end(id);
    }
    let run = scene.attributed();
    let cause = match kind {
        RuntimeLockKind::Queued => Cause::LockFutex,
        _ => Cause::LockMonitor,
    };
    let row = row(&run, 0, cause);
    let first = &row.holders[0];
    (row.resource.name.clone(), first.name.tid, first.how_known)
}

#[test]
fn a_runtimes_lock_has_a_name_and_the_owner_that_the_runtime_tells() {
    let source = RuntimeLockSource::Structures;
    let name = "com.shop.Till@a".to_owned();
    assert_eq!(
        told_by_runtime(Some(101), source),
        (name.clone(), 101, HowKnown::Monitor)
    );
    assert_eq!(
        told_by_runtime(None, source),
        (name.clone(), 101, HowKnown::Waker)
    );
    let of_another_process = told_by_runtime(Some(102), source);
    assert_eq!(of_another_process, (name.clone(), 101, HowKnown::Waker));
    let dumped = told_by_runtime(Some(101), RuntimeLockSource::Dump);
    assert_eq!(dumped, (name, 101, HowKnown::Dump));
    let class = "class com.shop.Till to be initialised".to_owned();
    let found = told_of(RuntimeLockKind::Class, Some(101), source);
    assert_eq!(found, (class, 101, HowKnown::Vmstructs));
    let found = told_of(RuntimeLockKind::Queued, Some(101), source);
    assert_eq!(found, ("com.shop.Till@a".to_owned(), 101, HowKnown::Interpreter));
}

/// `futex`.
const FUTEX: Call = Call {
    number: 202,
    args: [0; 4],
};

/// Why nobody could have ended CMD's wait: it has `threads` other threads in its process, 2 (tid 102) is of another process.
fn orphaned(threads: bool, lock: &[u32], flags: u64, limit: u64, by: By) -> Option<Orphaned> {
    let mut scene = Scene::new("server");
    if threads {
        scene.thread(1, 0, "worker");
        scene.cpu(1, 100);
    }
    scene.process(2, 0, "other");
    scene.cpu(2, 100);
    let wait = scene.wait(0, Cause::LockFutex, 100, by);
    wait.call.args = [0x1000, flags, 2, limit];
    wait.holder = Some(words(lock));
    if threads {
        scene.end(1);
    }
    for id in [2, 0] {
        scene.end(id);
    }
    row(&scene.attributed(), 0, Cause::LockFutex).orphaned.clone()
}

#[test]
fn a_private_lock_of_another_process_is_a_copy_that_nobody_releases() {
    let copied = [2, 0, 102, 1];
    let look_up = |threads, lock: &[u32]| orphaned(threads, lock, PRIVATE, 0, By::Interrupt);
    let owner = |threads, lock: &[u32]| look_up(threads, lock).and_then(|orphaned| orphaned.owner);
    assert_eq!(
        owner(true, &copied).map(|owner| (owner.pid, owner.tid)),
        Some((102, 102))
    );
    assert_eq!(
        owner(true, &[2, 0, 999, 1]).map(|owner| (owner.pid, owner.tid)),
        Some((0, 999))
    );
    assert_eq!(look_up(true, &[2, 0, 101, 1]), None, "the owner is there");
    assert_eq!(look_up(true, &[0, 0, 0, 0]), None, "no lock that names its owner");
    assert!(look_up(false, &[0, 0, 0, 0]).is_some_and(|orphaned| orphaned.alone && orphaned.owner.is_none()));
    assert_eq!(
        orphaned(false, &copied, SHARED, 0, By::Interrupt),
        None,
        "others may share it"
    );
    assert_eq!(
        orphaned(false, &copied, PRIVATE, 7, By::Interrupt),
        None,
        "it has a time limit"
    );
    assert_eq!(
        orphaned(true, &copied, PRIVATE, 0, By::Thread(1, FUTEX)),
        None,
        "somebody released it"
    );
}

/// Why nobody could have ended CMD's wait for a mutex that processes share, with these flags and this time limit. `gone`: the ids under which
/// the source found nobody.
fn shared_orphan(lock: &[u32], gone: &[u32], flags: u64, limit: u64, by: By) -> Option<Orphaned> {
    let mut scene = Scene::new("server");
    scene.process(2, 0, "other");
    scene.cpu(2, 100);
    for tid in gone {
        scene.events.push(Event::OwnerGone { tid: *tid });
    }
    let wait = scene.wait(0, Cause::LockFutex, 100, by);
    wait.call.args = [0x1000, flags, 2, limit];
    wait.holder = Some(words(lock));
    for id in [2, 0] {
        scene.end(id);
    }
    row(&scene.attributed(), 0, Cause::LockFutex).orphaned.clone()
}

#[test]
fn a_shared_mutex_of_an_owner_that_has_ended_is_released_by_nobody() {
    let held = |owner| [2, 0, owner, 1];
    let look_up = |owner, gone: &[u32]| shared_orphan(&held(owner), gone, SHARED, 0, By::Interrupt);
    let found = look_up(999, &[999]).expect("its owner is gone");
    assert_eq!(found.owner.map(|owner| (owner.pid, owner.tid)), Some((0, 999)));
    assert!(!found.alone, "others share it, and none of them has it");
    assert_eq!(look_up(999, &[]), None, "nobody has looked for it");
    assert_eq!(look_up(102, &[999]), None, "its owner lives");
    assert_eq!(
        shared_orphan(&held(999), &[999], SHARED, 7, By::Interrupt),
        None,
        "it has a time limit"
    );
    assert_eq!(
        shared_orphan(&held(999), &[999], SHARED, 0, By::Thread(2, FUTEX)),
        None,
        "somebody released it"
    );
    // A robust mutex is released by the kernel.
    let robust = [0x8000_0000 | 999, 0, 999, 1, 16];
    assert_eq!(shared_orphan(&robust, &[999], SHARED, 0, By::Interrupt), None);
}
