//! Runs written by hand, with the path that a person would give.

use super::call_for;
use super::scene::{By, ENDS, Scene, WRITE, exiting, path, row, waits_for_mutex_of};
use holdup_evidence::{Cause, Event, ThreadId, WaitMemory};
use holdup_model::attributed::HowKnown;

/// `slow | count`: the shell waits for both, the reader for the writer, the writer for a disk.
fn pipeline() -> Scene {
    let mut scene = Scene::new("sh");
    scene.cpu(0, 10);
    scene.process(1, 0, "sh");
    scene.cpu(0, 10);
    scene.process(2, 0, "sh");
    scene.cpu(0, 5);
    scene.cpu(1, 5);
    scene.exec(1, "slow");
    scene.wait(1, Cause::DiskRead, 900, By::Interrupt);
    scene.cpu(2, 5);
    scene.exec(2, "count");
    scene.cpu(1, 50);
    scene.wait(2, Cause::IpcPipe, 950, By::Thread(1, WRITE));
    scene.cpu(1, 1);
    scene.end(1);
    scene.wait(0, Cause::ProcessChild, 951, By::Thread(1, exiting()));
    scene.cpu(0, 1);
    scene.cpu(2, 40);
    scene.end(2);
    scene.wait(0, Cause::ProcessChild, 990, By::Thread(2, exiting()));
    scene.cpu(0, 10);
    scene.end(0);
    scene
}

#[test]
fn a_pipeline_waits_for_the_writers_disk() {
    let run = pipeline().attributed();
    assert_eq!(run.elapsed, 1000);
    // sh to the first fork, slow's exec, its disk and its counting, count's own work, sh's last words.
    assert_eq!(
        path(&run),
        [(Cause::CpuUser, 10 + 5 + 50 + 40 + 10), (Cause::DiskRead, 885)]
    );
    let shell = row(&run, 0, Cause::ProcessChild);
    assert_eq!((shell.ns, shell.path_ns, shell.count), (926 + 38, 0, 2));
    assert_eq!(
        shell.handed_on_ns, 38,
        "the first child's end is not on the way to the last one's"
    );
    let reader = row(&run, 2, Cause::IpcPipe);
    assert_eq!(
        (reader.ns, reader.handed_on_ns, reader.cost_ns()),
        (925, 925, 925)
    );
    let holder = &reader.holders[0];
    assert_eq!(holder.how_known, HowKnown::PipePeer);
    assert_eq!(
        (holder.name.process.as_str(), holder.ns, holder.doing),
        ("slow", 925, Some(Cause::DiskRead))
    );
    let chain: Vec<(&str, Cause, u64)> = reader
        .chain
        .iter()
        .map(|link| (link.name.process.as_str(), link.cause, link.ns))
        .collect();
    assert_eq!(
        chain,
        [("count", Cause::IpcPipe, 925), ("slow", Cause::DiskRead, 875)]
    );
}

/// A recorder tells the first of many like waits, and of the others their number and time.
#[test]
fn waits_without_records_are_booked_where_the_last_one_told_is() {
    let mut scene = Scene::new("server");
    scene.cpu(0, 10);
    scene.wait(0, Cause::DiskSync, 110, By::Interrupt);
    scene.repeats(0, 3, 90);
    scene.cpu(0, 10);
    scene.wait(0, Cause::DiskRead, 250, By::Interrupt);
    scene.repeats(0, 2, 60);
    scene.end(0);
    let run = scene.attributed();
    let (syncs, reads) = (row(&run, 0, Cause::DiskSync), row(&run, 0, Cause::DiskRead));
    assert_eq!((syncs.ns, syncs.count, syncs.max), (190, 4, 100));
    assert_eq!((reads.ns, reads.count, reads.max), (100, 3, 40));
    assert_eq!((run.elapsed, run.coverage.unknown), (310, 0));
    assert_eq!(
        path(&run),
        [
            (Cause::CpuUser, 20),
            (Cause::DiskRead, 100),
            (Cause::DiskSync, 190)
        ]
    );
    let windows: u64 = run
        .windows
        .iter()
        .map(|window| window.causes[&Cause::DiskSync])
        .sum();
    assert_eq!(windows, 190, "when is told of them, too");
}

/// Before any wait is reported there is none to be like: that is a contradiction of the source, and its time is not known.
#[test]
fn waits_without_records_and_without_a_first_one_are_lost() {
    let mut scene = Scene::new("server");
    scene.cpu(0, 10);
    scene.repeats(0, 3, 90);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!((run.elapsed, run.coverage.unknown), (100, 90));
}

/// Four threads take turns at a lock; one of them holds it four times as long as the others together.
#[test]
fn a_lock_convoy_names_who_held_it_longest() {
    let mut scene = Scene::new("server");
    for id in 1..=3 {
        scene.thread(id, 0, &format!("worker{id}"));
    }
    scene.queue(1, 0);
    // Thread 3 waits; worker 1 has the lock for 800, then worker 2 for 200.
    scene.wait(1, Cause::DiskSync, 790, By::Interrupt);
    scene.cpu(1, 10);
    let wait = scene.wait(
        3,
        Cause::LockFutex,
        800,
        By::Thread(1, call_for(Cause::LockFutex, 0)),
    );
    waits_for_mutex_of(wait, 101);
    scene.cpu(2, 1000);
    let wait = scene.wait(
        3,
        Cause::LockFutex,
        1000,
        By::Thread(2, call_for(Cause::LockFutex, 0)),
    );
    waits_for_mutex_of(wait, 102);
    scene.cpu(3, 5);
    scene.end(3);
    scene.wait(0, Cause::LockFutex, 1005, By::Thread(3, exiting()));
    scene.end(0);
    scene.end(1);
    scene.end(2);
    let run = scene.attributed();
    let convoy = row(&run, 3, Cause::LockFutex);
    let holders: Vec<_> = convoy
        .holders
        .iter()
        .map(|holder| {
            (
                holder.name.thread.as_str(),
                holder.how_known,
                holder.ns,
                holder.doing,
            )
        })
        .collect();
    assert_eq!(
        holders,
        [
            ("worker1", HowKnown::MutexOwner, 800, Some(Cause::DiskSync)),
            ("worker2", HowKnown::MutexOwner, 200, Some(Cause::CpuUser)),
        ]
    );
    assert_eq!((convoy.ns, convoy.count, convoy.max), (1000, 2, 800));
    assert_eq!((convoy.p50 >= 200 * 7 / 8, convoy.p99), (true, 800));
    assert_eq!(
        path(&run),
        [(Cause::CpuUser, 1005)],
        "the path runs through worker 2 to the last"
    );
}

#[test]
fn a_join_goes_to_the_thread_that_is_joined() {
    let mut scene = Scene::new("main");
    scene.cpu(0, 100);
    scene.thread(1, 0, "worker");
    scene.queue(1, 50);
    scene.wait(1, Cause::NetReceive, 850, By::Interrupt);
    scene.cpu(1, 50);
    scene.end(1);
    scene.wait(0, Cause::LockFutex, 900, By::Thread(1, ENDS));
    scene.queue(0, 3);
    scene.cpu(0, 97);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(
        path(&run),
        [
            (Cause::CpuUser, 100 + 50 + 97),
            (Cause::SchedRunqueue, 53),
            (Cause::NetReceive, 700)
        ]
    );
    let join = row(&run, 0, Cause::LockFutex);
    assert_eq!((join.path_ns, join.handed_on_ns), (0, 800));
}

#[test]
fn children_of_children_are_followed() {
    let mut scene = Scene::new("make");
    scene.cpu(0, 10);
    scene.process(1, 0, "sh");
    scene.cpu(1, 10);
    scene.process(2, 1, "sleep");
    scene.wait(2, Cause::TimerSleep, 970, By::Interrupt);
    scene.end(2);
    scene.wait(1, Cause::ProcessChild, 970, By::Thread(2, exiting()));
    scene.cpu(1, 10);
    scene.end(1);
    scene.wait(0, Cause::ProcessChild, 980, By::Thread(1, exiting()));
    scene.cpu(0, 20);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(path(&run), [(Cause::CpuUser, 50), (Cause::TimerSleep, 950)]);
    let make = row(&run, 0, Cause::ProcessChild);
    assert_eq!(make.handed_on_ns, 970);
    let chain: Vec<&str> = make.chain.iter().map(|link| link.name.process.as_str()).collect();
    assert_eq!(chain, ["make", "sh", "sleep"]);
}

#[test]
fn a_daemon_that_lives_on_is_open_and_off_the_path() {
    let mut scene = Scene::new("start");
    scene.cpu(0, 10);
    scene.process(1, 0, "daemon");
    scene.cpu(1, 5);
    scene.cpu(0, 90);
    scene.end(0);
    scene.left_waiting(1, Cause::NetAccept, 100, |_| {});
    let run = scene.attributed();
    assert_eq!(path(&run), [(Cause::CpuUser, 100)]);
    let accept = row(&run, 1, Cause::NetAccept);
    assert_eq!((accept.ns, accept.open, accept.count), (85, true, 1));
    let daemon = run.threads.iter().find(|thread| thread.name.process == "daemon");
    assert_eq!(daemon.map(|thread| (thread.open, thread.wall)), Some((true, 90)));
    assert!(!run.path[&Cause::CpuUser].open);
}

#[test]
fn what_a_poll_awaited_may_come_after_its_waker_has_moved_on() {
    let look_up = |memory: bool| {
        let mut scene = Scene::new("client");
        scene.thread(1, 0, "feeder");
        scene.wait(1, Cause::DiskRead, 100, By::Interrupt);
        scene
            .wait(0, Cause::PollWait, 100, By::Thread(1, WRITE))
            .memory_follows = true;
        scene.asked(0, "loop", 100);
        scene.wait(1, Cause::TimerSleep, 150, By::Interrupt);
        scene.thread(2, 1, "extra");
        if memory {
            scene.events.push(Event::WaitMemory(Box::new(WaitMemory {
                returned: Some(i64::from(call_for(Cause::IpcUnix, 0).number)),
                ..WaitMemory::empty(ThreadId(0), 1)
            })));
        }
        scene.cpu(0, 100);
        scene.end(0);
        scene.end(1);
        scene.end(2);
        scene.attributed()
    };
    for (memory, cause) in [(true, Cause::IpcUnix), (false, Cause::PollWait)] {
        let run = look_up(memory);
        assert_eq!(
            path(&run),
            [(Cause::CpuUser, 100), (Cause::DiskRead, 100)],
            "not what the feeder did later"
        );
        let poll = row(&run, 0, cause);
        assert_eq!((poll.ns, poll.handed_on_ns), (100, 100));
        assert_eq!(
            poll.asker.frame.as_deref(),
            Some("loop"),
            "a stack may come before the memory"
        );
    }
}

#[test]
fn what_a_poll_asked_for_stands_in_for_a_memory_that_does_not_come() {
    let asked = WaitMemory {
        returned: Some(i64::from(call_for(Cause::IpcUnix, 0).number)),
        ..WaitMemory::empty(ThreadId(0), 1)
    };
    for (follows, cause) in [(true, Cause::IpcPipe), (false, Cause::IpcUnix)] {
        let mut scene = Scene::new("client");
        let wait = scene.wait(0, Cause::PollWait, 100, By::Interrupt);
        wait.memory_follows = true;
        wait.asked = Some(Box::new(asked.clone()));
        if follows {
            scene.events.push(Event::WaitMemory(Box::new(WaitMemory {
                returned: Some(i64::from(call_for(Cause::IpcPipe, 0).number)),
                ..asked.clone()
            })));
        }
        scene.cpu(0, 1);
        scene.end(0);
        assert_eq!(row(&scene.attributed(), 0, cause).ns, 100);
    }
}

#[test]
fn a_look_at_a_woken_thread_in_the_kernel_does_not_come_before_its_memory() {
    for (user, cause) in [(false, Cause::IpcUnix), (true, Cause::PollWait)] {
        let mut scene = Scene::new("client");
        scene.wait(0, Cause::PollWait, 100, By::Interrupt).memory_follows = true;
        scene.look(0, user, None);
        scene.events.push(Event::WaitMemory(Box::new(WaitMemory {
            returned: Some(i64::from(call_for(Cause::IpcUnix, 0).number)),
            ..WaitMemory::empty(ThreadId(0), 1)
        })));
        scene.cpu(0, 1);
        scene.end(0);
        assert_eq!(row(&scene.attributed(), 0, cause).ns, 100);
    }
}

#[test]
fn one_copy_of_the_memory_tells_of_all_waits_of_its_call() {
    // The second wait ends by a thread of the run in the last case: then the path moves on before the copy comes.
    for (first, moves_on, causes) in [
        (1, false, [(Cause::IpcUnix, 130), (Cause::PollWait, 0)]),
        (2, false, [(Cause::IpcUnix, 30), (Cause::PollWait, 100)]),
        (1, true, [(Cause::IpcUnix, 30), (Cause::PollWait, 100)]),
    ] {
        let mut scene = Scene::new("client");
        scene.thread(1, 0, "feeder");
        scene.wait(0, Cause::PollWait, 100, By::Interrupt).memory_follows = true;
        scene.wait(1, Cause::DiskRead, 130, By::Interrupt);
        let by = if moves_on {
            By::Thread(1, WRITE)
        } else {
            By::Interrupt
        };
        scene.wait(0, Cause::PollWait, 130, by).memory_follows = true;
        scene.events.push(Event::WaitMemory(Box::new(WaitMemory {
            first,
            returned: Some(i64::from(call_for(Cause::IpcUnix, 0).number)),
            ..WaitMemory::empty(ThreadId(0), 2)
        })));
        scene.asked(0, "loop", 130);
        if let Some(Event::Asker(sample)) = scene.events.last_mut() {
            sample.first = first;
        }
        scene.cpu(0, 1);
        scene.end(0);
        scene.end(1);
        let run = scene.attributed();
        for (cause, ns) in causes {
            let mut own = run.waits.iter().filter(|wait| wait.asker.name.tid == 100);
            let found = own.find(|wait| wait.cause == cause);
            assert_eq!(found.map_or(0, |wait| wait.ns), ns, "{cause} from {first}");
            // The stack was the same in all that the copy tells of, whether its memory came in time or not.
            let asked = found.filter(|_| cause == Cause::IpcUnix || first == 1);
            assert!(
                asked.is_none_or(|wait| wait.asker.frame.as_deref() == Some("loop")),
                "{cause} from {first}"
            );
        }
    }
}

/// A build: thousands of short processes one after the other. Few entries, and every sum stays.
#[test]
fn thousands_of_processes_become_few_entries_with_their_sums() {
    const CHILDREN: u64 = 3000;
    let mut scene = Scene::new("make");
    for child in 0..CHILDREN {
        let id = u32::try_from(child + 1).expect("few");
        let start = child * 100;
        scene.cpu(0, 10);
        scene.process(id, 0, "make");
        scene.cpu(id, 20);
        scene.exec(id, if child % 3 == 0 { "cc" } else { "as" });
        scene.wait(id, Cause::DiskRead, start + 90, By::Interrupt);
        scene.cpu(id, 10);
        scene.end(id);
        scene.wait(0, Cause::ProcessChild, start + 100, By::Thread(id, exiting()));
    }
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(run.elapsed, CHILDREN * 100);
    assert_eq!(
        path(&run),
        [(Cause::CpuUser, CHILDREN * 40), (Cause::DiskRead, CHILDREN * 60)]
    );
    assert!(run.threads.len() <= 202, "{}", run.threads.len());
    let threads: u64 = run.threads.iter().map(|thread| u64::from(thread.threads)).sum();
    assert_eq!(threads, CHILDREN + 1);
    for name in ["cc", "as"] {
        let of_name = |row: &&holdup_model::attributed::AttributedWait| row.asker.name.process == name;
        let disk = run
            .waits
            .iter()
            .filter(of_name)
            .filter(|row| row.cause == Cause::DiskRead);
        let (ns, path_ns) = disk.fold((0, 0), |sum, row| (sum.0 + row.ns, sum.1 + row.path_ns));
        let share = if name == "cc" {
            CHILDREN / 3
        } else {
            CHILDREN * 2 / 3
        };
        assert_eq!((ns, path_ns), (share * 60, share * 60), "{name}");
    }
    let make = row(&run, 0, Cause::ProcessChild);
    assert_eq!((make.count, make.handed_on_ns), (CHILDREN, CHILDREN * 90));
    assert!(make.holders.len() <= 8);
}
