//! Waits of a machine of threads, pauses and rests, as the kernel shows them.

use super::{Jvms, OfJvm, Waiter, collects, is_own_thread};
use holdup_evidence::{Call, Cause, Collector, JvmPause, PauseWork, ThreadId, Wait};

/// `futex(word, FUTEX_WAIT_PRIVATE)`, as the word that stops all threads is waited on; `FUTEX_WAIT_BITSET_PRIVATE` with the clock
/// of the day, as the C library's conditions are; the same on memory that may be shared, as the end of a thread is.
const BARRIER: u64 = 0x80;
const CONDITION: u64 = 0x189;
const JOIN: u64 = 0x109;

fn wait(operation: u64, start: u64, end: u64) -> Wait {
    let call = Call {
        number: 202,
        args: [0x1000, operation, 3, 0],
    };
    Wait::new(ThreadId(1), 1, (start, end), call)
}

fn pause(work: PauseWork) -> JvmPause {
    JvmPause {
        pid: 7,
        by: ThreadId(100),
        from: 1_000,
        reached: None,
        to: 5_000,
        late: None,
        work,
    }
}

fn collection() -> PauseWork {
    PauseWork::Collection {
        collector: Some(Collector::G1),
        why: Some("G1 Evacuation Pause".to_owned()),
    }
}

fn machine(pauses: &[JvmPause]) -> Jvms {
    let mut jvms = Jvms::default();
    jvms.is(7);
    pauses.iter().for_each(|pause| jvms.paused(pause));
    jvms
}

fn by<'a>(name: &'a str, waker: Option<&'a str>) -> Waiter<'a> {
    Waiter {
        pid: 7,
        name,
        first: false,
        waker,
        unseen: false,
    }
}

fn cause(judged: Option<OfJvm>) -> Option<Cause> {
    match judged? {
        OfJvm::Stopped { cause, .. } => Some(cause),
        OfJvm::AtRest | OfJvm::Unasked => Some(Cause::Idle),
    }
}

const VM: Option<&str> = Some("VM Thread");

#[test]
fn who_is_stopped_while_garbage_is_collected_waits_for_that() {
    let jvms = machine(&[pause(collection())]);
    let found = jvms.judge(&by("worker-1", VM), &wait(BARRIER, 1_100, 5_010));
    let Some(OfJvm::Stopped { cause, resource, .. }) = found else {
        panic!("{found:?}");
    };
    assert_eq!(cause, Cause::RuntimeGc);
    assert_eq!(resource.name, "a collection by G1");
    assert_eq!(resource.detail.gc_cause.as_deref(), Some("G1 Evacuation Pause"));
}

#[test]
fn who_asked_for_the_collection_waits_for_it_on_a_condition() {
    let jvms = machine(&[pause(collection())]);
    let found = jvms.judge(&by("main", VM), &wait(CONDITION, 1_000, 5_050));
    assert_eq!(cause(found), Some(Cause::RuntimeGc));
    // And who waits meanwhile for the lock that it has, until it lets that go.
    let found = jvms.judge(&by("worker-2", Some("main")), &wait(BARRIER, 1_200, 5_090));
    assert_eq!(cause(found), Some(Cause::RuntimeGc));
}

#[test]
fn other_operations_are_safepoints_and_so_are_those_that_nobody_can_tell() {
    let named = PauseWork::Operation("ThreadDump".to_owned());
    for work in [PauseWork::Other, PauseWork::Unknown, named] {
        let jvms = machine(&[pause(work)]);
        let found = jvms.judge(&by("worker-1", VM), &wait(BARRIER, 1_100, 5_010));
        assert_eq!(cause(found), Some(Cause::RuntimeSafepoint));
    }
    let jvms = machine(&[]);
    let found = jvms.judge(&by("worker-1", VM), &wait(BARRIER, 1_100, 5_010));
    assert_eq!(cause(found), Some(Cause::RuntimeSafepoint));
}

#[test]
fn a_pause_that_is_mostly_spent_until_all_have_stopped_is_the_late_threads() {
    let late = JvmPause {
        reached: Some(4_500),
        late: Some(ThreadId(9)),
        ..pause(collection())
    };
    let jvms = machine(&[late]);
    let found = jvms.judge(&by("worker-1", VM), &wait(BARRIER, 1_100, 5_010));
    let Some(OfJvm::Stopped { cause, late, .. }) = found else {
        panic!("{found:?}");
    };
    assert_eq!((cause, late), (Cause::RuntimeSafepoint, Some(ThreadId(9))));
    // The late one itself waited for the collection alone.
    let own = Wait {
        thread: ThreadId(9),
        ..wait(BARRIER, 4_490, 5_010)
    };
    assert_eq!(
        super::tests::cause(jvms.judge(&by("late", VM), &own)),
        Some(Cause::RuntimeGc)
    );
}

#[test]
fn waits_that_have_nothing_to_do_with_a_pause_stay_what_they_are() {
    let jvms = machine(&[pause(collection())]);
    // A lock that was waited for long before, or let go before the pause was over.
    for (start, end) in [(0, 900), (1_100, 4_000), (0, 100_000), (6_000, 7_000)] {
        let found = jvms.judge(&by("worker-1", Some("worker-2")), &wait(BARRIER, start, end));
        assert_eq!(found, None, "{start} to {end}");
    }
    // A parked thread that another one wakes during the pause.
    let found = jvms.judge(&by("worker-1", Some("worker-2")), &wait(CONDITION, 1_100, 5_010));
    assert_eq!(found, None);
    // Other processes are none of this machine.
    let other = Waiter {
        pid: 8,
        ..by("worker-1", VM)
    };
    assert_eq!(jvms.judge(&other, &wait(BARRIER, 1_100, 5_010)), None);
}

#[test]
fn a_wait_for_a_collector_that_works_beside_the_program_is_for_memory() {
    let jvms = machine(&[]);
    for (waker, name) in [
        ("ZDriverMinor", "ZGC"),
        ("ZWorkerYoung#0", "ZGC"),
        ("Shenandoah Cont", "Shenandoah"),
    ] {
        let found = jvms.judge(&by("worker-1", Some(waker)), &wait(CONDITION, 0, 1_000));
        let Some(OfJvm::Stopped { cause, resource, .. }) = found else {
            panic!("{waker}: {found:?}");
        };
        assert_eq!(cause, Cause::RuntimeGc);
        assert_eq!(resource.detail.collector_behind.map(Collector::name), Some(name));
    }
    // Its own threads give each other work.
    let found = jvms.judge(
        &by("ZWorkerYoung#1", Some("ZDriverMinor")),
        &wait(CONDITION, 0, 1_000),
    );
    assert_eq!(found, Some(OfJvm::AtRest));
}

#[test]
fn a_machines_own_threads_rest_and_so_does_the_launcher() {
    let jvms = machine(&[]);
    for name in ["VM Thread", "GC Thread#3", "C2 CompilerThre", "G1 Service"] {
        assert!(is_own_thread(name), "{name}");
        assert_eq!(
            jvms.judge(&by(name, None), &wait(CONDITION, 0, 1_000)),
            Some(OfJvm::AtRest)
        );
    }
    let first = Waiter {
        first: true,
        ..by("java", None)
    };
    assert_eq!(jvms.judge(&first, &wait(JOIN, 0, 1_000)), Some(OfJvm::AtRest));
    let nap = Wait {
        call: Call {
            number: 230,
            args: [0; 4],
        },
        ..wait(0, 0, 1_000)
    };
    assert_eq!(
        jvms.judge(&by("VM Periodic Tas", None), &nap),
        Some(OfJvm::AtRest)
    );
    assert_eq!(
        cause(jvms.judge(&by("VM Thread", None), &nap)),
        Some(Cause::RuntimeSafepoint)
    );
    // Threads of the program do not, whatever the launcher does.
    assert_eq!(jvms.judge(&by("main", None), &wait(CONDITION, 0, 1_000)), None);
    assert!(!is_own_thread("main") && !is_own_thread("Finalizer"));
    assert!(collects("GC Thread#0") && !collects("VM Thread"));
    for name in [
        "Shenandoah GC T",
        "ZDriverMinor",
        "ZWorker#1",
        "ZDirector",
        "Concurrent Mark-Sweep GC Thread",
    ] {
        assert!(collects(name), "{name}");
    }
    for name in [
        "ZDirectoryWatcher",
        "Service Thread-3",
        "VM Threads",
        "ZStatistics",
    ] {
        assert!(!is_own_thread(name) && !collects(name), "{name}");
    }
}

#[test]
fn memory_is_bounded_however_many_pauses_there_are() {
    let many: Vec<JvmPause> = (0..10_000).map(|_| pause(PauseWork::Other)).collect();
    assert_eq!(machine(&many).pauses[&7].len(), super::REMEMBERED);
}

#[test]
fn the_thread_that_answers_tools_waits_for_nobody_of_the_program() {
    let mut accepts = wait(0, 10, 20);
    accepts.call.number = 43;
    let look_up = |name| {
        let who = Waiter {
            pid: 7,
            name,
            first: false,
            waker: None,
            unseen: false,
        };
        machine(&[]).judge(&who, &accepts)
    };
    assert_eq!(look_up("Attach Listener"), Some(OfJvm::Unasked));
    assert_eq!(look_up("http-acceptor"), None);
    assert!(OfJvm::Unasked.fits(Cause::NetAccept));
    assert!(!OfJvm::Unasked.fits(Cause::DiskRead));
    assert!(!OfJvm::AtRest.fits(Cause::NetAccept));
}
