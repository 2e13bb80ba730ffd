//! Who asked, who was in the way, who ran instead: written by hand.

use super::scene::{By, Scene, WRITE, exiting, path, row};
use crate::attribution::what::{Role, Whats};
use crate::classify::Classified;
use holdup_evidence::{
    Allowed, Call, Cause, Event, Frame, LockHolder, RanInstead, Scheduling, SignalSent, TaskName, TaskState,
    ThreadId, Waker,
};
use holdup_model::attributed::StopSignal;
use holdup_model::attributed::{How, HowKnown, Resource, ResourceKind};

#[test]
fn a_site_is_split_by_who_asked() {
    let mut scene = Scene::new("app");
    scene.wait(0, Cause::DiskSync, 700, By::Interrupt);
    scene.asked(0, "save", 700);
    scene.wait(0, Cause::DiskSync, 1001, By::Interrupt);
    scene.asked(0, "log", 300);
    scene.end(0);
    let run = scene.attributed();
    let rows: Vec<_> = run
        .waits
        .iter()
        .map(|row| {
            (
                row.asker.frame.as_deref(),
                row.ns,
                row.path_ns,
                row.count,
                row.max,
                row.how,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (Some("save"), 701, 701, 1, 700, How::Sampled),
            (Some("log"), 300, 300, 1, 300, How::Sampled),
        ]
    );
    assert!(run.waits[0].error > 0);
}

#[test]
fn cpu_time_is_split_by_samples_and_named_by_function() {
    let mut scene = Scene::new("app");
    for sample in 0..10 {
        scene.cpu(0, 10);
        match sample {
            0..6 => scene.look(0, true, Some("compress")),
            6..8 => scene.look(0, true, Some("hash")),
            _ => scene.look(0, false, Some("compress")),
        }
    }
    scene.end(0);
    let run = scene.attributed();
    let rows: Vec<_> = run
        .waits
        .iter()
        .map(|row| {
            (
                row.cause,
                row.resource.name.as_str(),
                row.asker.frame.as_deref(),
                row.ns,
                row.how,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (Cause::CpuUser, "compress", Some("compress"), 60, How::Sampled),
            (Cause::CpuUser, "hash", Some("hash"), 20, How::Sampled),
            (Cause::CpuKernel, "0", Some("compress"), 20, How::Sampled),
        ]
    );
    assert_eq!(path(&run), [(Cause::CpuUser, 80), (Cause::CpuKernel, 20)]);
    let kernel = row(&run, 0, Cause::CpuKernel);
    assert_eq!(
        (kernel.max, kernel.max_started, kernel.max_ended),
        (10, 90, 100),
        "samples of one class on end are one stretch"
    );
}

#[test]
fn a_thread_without_samples_is_split_as_its_process_and_said_to_be_in_doubt() {
    let mut scene = Scene::new("app");
    scene.thread(1, 0, "brief");
    scene.cpu(1, 8);
    scene.end(1);
    for user in [true, true, true, false] {
        scene.cpu(0, 100);
        scene.look(0, user, None);
    }
    scene.end(0);
    let run = scene.attributed();
    let (user, kernel) = (row(&run, 1, Cause::CpuUser), row(&run, 1, Cause::CpuKernel));
    assert_eq!((user.ns, user.error, user.how), (6, 6, How::Sampled));
    assert_eq!((kernel.ns, kernel.error), (2, 2));
    assert_eq!(user.resource.name, "app");
}

#[test]
fn a_short_wait_borrows_the_kernel_stack_of_a_longer_one() {
    let mut scene = Scene::new("app");
    let stack = scene.kernel_stack(1, "do_wait");
    scene.wait(0, Cause::DiskSync, 100, By::Interrupt);
    scene.wait(0, Cause::DiskRead, 200, By::Interrupt).kernel_stack = Some(stack);
    scene.wait(0, Cause::DiskRead, 210, By::Interrupt);
    scene.end(0);
    let run = scene.attributed();
    let read = row(&run, 0, Cause::DiskRead);
    assert_eq!((read.ns, read.how, read.error), (110, How::Sampled, 0));
    assert_eq!(read.kernel_stack, ["do_wait"]);
    let sync = row(&run, 0, Cause::DiskSync);
    assert_eq!(
        (sync.how, sync.kernel_stack.len()),
        (How::Exact, 0),
        "another call's stack is none of its own"
    );
}

/// A stop signal from a task outside the run, unless `kernel`, or from the thread itself (`tid` 100).
fn stop(signal: i32, tid: u32, kernel: bool) -> Event {
    Event::Signal(SignalSent {
        at: 0,
        thread: ThreadId(0),
        signal,
        by: TaskName {
            pid: if tid == 100 { 100 } else { 40 },
            tid,
            name: "kill".to_owned(),
            kernel,
        },
    })
}

#[test]
fn a_stopped_thread_names_who_sent_the_signal() {
    let mut scene = Scene::new("app");
    scene.events.push(stop(19, 41, false));
    scene
        .wait(0, Cause::ProcessStopped, 100, By::Outside(50, "bash"))
        .state = TaskState::Stopped;
    scene
        .wait(0, Cause::ProcessStopped, 120, By::Outside(50, "gdb"))
        .state = TaskState::Traced;
    scene.end(0);
    let run = scene.attributed();
    let stopped = row(&run, 0, Cause::ProcessStopped);
    let holders: Vec<_> = stopped
        .holders
        .iter()
        .map(|holder| {
            (
                holder.name.tid,
                holder.name.thread.as_str(),
                holder.how_known,
                holder.ns,
            )
        })
        .collect();
    assert_eq!(
        holders,
        [
            (41, "kill", HowKnown::Waker, 100),
            (50, "gdb", HowKnown::Tracer, 20)
        ]
    );
    assert_eq!(stopped.resource.name, "SIGSTOP from kill (pid 40)");
    assert_eq!(stopped.resource.detail.signal, Some(StopSignal::Stop));
    assert_eq!(stopped.resource.detail.pid, Some(40));
}

#[test]
fn job_control_names_the_signal_and_nobody() {
    for (by, kernel) in [(100, false), (7, true)] {
        let mut scene = Scene::new("app");
        scene.events.push(stop(21, by, kernel));
        scene
            .wait(0, Cause::ProcessStopped, 100, By::Outside(50, "bash"))
            .state = TaskState::Stopped;
        scene.end(0);
        let run = scene.attributed();
        let stopped = row(&run, 0, Cause::ProcessStopped);
        assert_eq!(stopped.holders, []);
        assert_eq!(stopped.resource.name, "SIGTTIN");
    }
}

#[test]
fn a_tracer_is_what_a_traced_thread_waits_for() {
    let mut scene = Scene::new("app");
    scene
        .wait(0, Cause::ProcessStopped, 100, By::Outside(50, "gdb"))
        .state = TaskState::Traced;
    scene.end(0);
    let run = scene.attributed();
    let traced = row(&run, 0, Cause::ProcessStopped);
    assert_eq!(traced.resource.name, "tracer gdb (pid 50)");
    assert!(traced.resource.detail.signal.is_none());
}

#[test]
fn a_wait_for_children_names_the_one_that_took_longest() {
    let mut scene = Scene::new("make");
    scene.process(1, 0, "cc1");
    scene.wait(1, Cause::DiskRead, 900, By::Interrupt);
    scene.end(1);
    scene.wait(0, Cause::ProcessChild, 900, By::Thread(1, exiting()));
    let only = {
        let mut scene = scene.clone();
        scene.end(0);
        scene.attributed()
    };
    let pid = row(&only, 1, Cause::DiskRead).asker.name.pid;
    let child = &row(&only, 0, Cause::ProcessChild).resource;
    assert_eq!(
        (child.kind, child.name.as_str()),
        (ResourceKind::Process, format!("cc1 (pid {pid})").as_str())
    );
    assert_eq!(child.detail.pid, Some(pid));
    scene.process(2, 0, "as");
    scene.wait(2, Cause::DiskRead, 950, By::Interrupt);
    scene.end(2);
    scene.wait(0, Cause::ProcessChild, 950, By::Thread(2, exiting()));
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(
        row(&run, 0, Cause::ProcessChild).resource.name,
        format!("cc1 (pid {pid}) and others")
    );
}

#[test]
fn who_interrupts_a_wait_for_a_child_is_not_the_child() {
    let mut scene = Scene::new("sh");
    scene.wait(0, Cause::ProcessChild, 100, By::Outside(50, "kill"));
    scene.end(0);
    let run = scene.attributed();
    let name = &row(&run, 0, Cause::ProcessChild).resource.name;
    assert!(!name.contains("kill"), "{name}");
}

#[test]
fn a_wait_for_a_child_that_a_key_broke_off_was_for_the_child_that_lived_and_for_what_that_did() {
    let mut scene = Scene::new("sh");
    scene.process(1, 0, "xargs");
    scene.process(2, 1, "sleep");
    scene.wait(0, Cause::ProcessChild, 1000, By::Interrupt);
    scene.wait(1, Cause::ProcessChild, 1001, By::Interrupt);
    scene.wait(2, Cause::TimerSleep, 1002, By::Interrupt);
    for id in [0, 1, 2] {
        scene.end(id);
    }
    let run = scene.attributed();
    let row = row(&run, 0, Cause::ProcessChild);
    let holder = &row.holders[0];
    assert_eq!(
        (&*holder.name.process, holder.how_known),
        ("xargs", HowKnown::Child)
    );
    assert_eq!(holder.doing, Some(Cause::ProcessChild));
    let way = |cause| {
        move |link: &holdup_model::attributed::Link| (link.name.process == "sleep") && link.cause == cause
    };
    assert!(row.chain.iter().any(way(Cause::TimerSleep)), "{:?}", row.chain);
}

#[test]
fn who_waits_for_a_signal_and_has_one_child_waits_for_that_whoever_sends_it() {
    let mut scene = Scene::new("timeout");
    scene.process(1, 0, "sleep");
    scene.wait(0, Cause::IpcSignal, 1000, By::Outside(900, "bash"));
    scene.wait(1, Cause::TimerSleep, 1001, By::Interrupt);
    for id in [0, 1] {
        scene.end(id);
    }
    let run = scene.attributed();
    let holder = &row(&run, 0, Cause::IpcSignal).holders[0];
    assert_eq!(
        (&*holder.name.process, holder.how_known),
        ("sleep", HowKnown::Child)
    );
}

#[test]
fn of_several_children_that_lived_none_is_named() {
    let mut scene = Scene::new("sh");
    scene.process(1, 0, "one");
    scene.process(2, 0, "two");
    scene.wait(0, Cause::ProcessChild, 1000, By::Interrupt);
    for id in [1, 2] {
        scene.wait(id, Cause::TimerSleep, 1001, By::Interrupt);
    }
    for id in [0, 1, 2] {
        scene.end(id);
    }
    assert!(
        row(&scene.attributed(), 0, Cause::ProcessChild)
            .holders
            .is_empty()
    );
}

#[test]
fn a_wait_that_went_no_further_has_no_chain() {
    let mut scene = Scene::new("sleep");
    scene.wait(0, Cause::TimerSleep, 100, By::Interrupt);
    scene.wait(0, Cause::ProcessChild, 120, By::Outside(50, "kill"));
    scene.end(0);
    let run = scene.attributed();
    assert!(run.waits.iter().all(|wait| wait.chain.is_empty()));
}

#[test]
fn a_file_lock_names_its_owner_from_the_kernels_list() {
    let mut scene = Scene::new("app");
    scene
        .wait(0, Cause::LockFile, 100, By::Outside(50, "flock"))
        .holder = Some(LockHolder::FileLock { pid: 77 });
    scene.wait(0, Cause::DiskRead, 150, By::Interrupt);
    scene.end(0);
    scene.facts.processes.insert(77, "keeper".to_owned());
    let run = scene.attributed();
    let holder = &row(&run, 0, Cause::LockFile).holders[0];
    assert_eq!(holder.name.process, "keeper");
    assert_eq!(
        (holder.name.pid, holder.how_known, holder.doing),
        (77, HowKnown::FileLock, None)
    );
    assert!(
        row(&run, 0, Cause::DiskRead).holders.is_empty(),
        "an interrupt is nobody"
    );
}

#[test]
fn a_file_lock_that_was_handed_on_is_of_the_one_that_gives_it_back() {
    let holder = |waking: Call, stopped: bool| {
        let mut scene = Scene::new("app");
        let wait = scene.wait(0, Cause::LockFile, 100, By::Outside(50, "bash"));
        wait.holder = Some(LockHolder::FileLock { pid: 77 });
        if let Waker::Outside { call, .. } = &mut wait.waker {
            *call = waking;
        }
        scene.end(0);
        if stopped {
            scene.facts.stopped.insert(50);
        }
        let run = scene.attributed();
        let holder = &row(&run, 0, Cause::LockFile).holders[0];
        (holder.name.pid, holder.how_known, holder.doing)
    };
    assert_eq!(holder(exiting(), false), (50, HowKnown::FileLock, None));
    assert_eq!(
        holder(exiting(), true),
        (50, HowKnown::FileLock, Some(Cause::ProcessStopped))
    );
    assert_eq!(
        holder(WRITE, false),
        (77, HowKnown::FileLock, None),
        "that releases nothing"
    );
}

#[test]
fn who_ran_instead_is_named_by_its_process() {
    let mut scene = Scene::new("app");
    scene.queue(0, 100);
    for (tid, ns) in [(60, 30), (61, 50), (60, 20)] {
        scene.events.push(Event::RanInstead(RanInstead {
            at: 100,
            thread: ThreadId(0),
            ns,
            by: Some(TaskName {
                pid: 60,
                tid,
                name: if tid == 60 { "burn" } else { "spin" }.to_owned(),
                kernel: false,
            }),
            cpu: 0,
            by_class: Scheduling::default(),
            class: Scheduling::default(),
            same_group: true,
            allowed: Allowed::default(),
        }));
    }
    scene.end(0);
    let run = scene.attributed();
    let queue = row(&run, 0, Cause::SchedRunqueue);
    assert_eq!((queue.ns, queue.how), (100, How::Exact));
    assert_eq!(
        queue.ran_instead,
        [("burn".to_owned(), 50), ("spin".to_owned(), 50)]
    );
}

#[test]
fn a_stack_may_come_after_its_thread_is_gone() {
    let mut scene = Scene::new("sh");
    scene.process(1, 0, "child");
    scene.wait(1, Cause::DiskRead, 50, By::Interrupt);
    scene.end(1);
    scene.wait(0, Cause::ProcessChild, 50, By::Thread(1, exiting()));
    scene.asked(1, "load", 50);
    scene.end(0);
    let run = scene.attributed();
    assert_eq!(row(&run, 1, Cause::DiskRead).asker.frame.as_deref(), Some("load"));
    assert_eq!(run.coverage.lost, []);
}

#[test]
fn a_stack_of_a_wait_that_nobody_knows_is_counted() {
    let mut scene = Scene::new("app");
    scene.wait(0, Cause::DiskRead, 50, By::Interrupt);
    scene.events.pop();
    scene.asked(0, "load", 50);
    scene.end(0);
    let run = scene.attributed();
    let unknown = row(&run, 0, Cause::Unknown);
    assert_eq!((unknown.ns, unknown.asker.frame.as_deref()), (50, None));
    let lost: Vec<(&str, u64, u64)> = run
        .coverage
        .lost
        .iter()
        .map(|(words, count, ns)| (words.as_str(), *count, *ns))
        .collect();
    assert_eq!(
        lost,
        [
            ("stack samples that arrived too late", 1, 0),
            ("threads whose drops the BPF programs count differently", 1, 50),
            ("waits whose record was dropped", 1, 50),
        ]
    );
}

#[test]
fn the_first_instruction_of_a_program_has_not_asked_for_its_exec() {
    let mut scene = Scene::new("sh");
    scene.wait(0, Cause::ProcessExec, 100, By::Interrupt);
    scene.asked(0, "_start", 100);
    scene.end(0);
    let asker = |scene: &Scene| row(&scene.attributed(), 0, Cause::ProcessExec).asker.clone();
    let of_success = asker(&scene);
    assert_eq!((of_success.frame, of_success.stack), (None, Vec::new()));
    // An exec that failed comes back to who asked.
    let caller = Frame {
        symbol: Some("main".to_owned()),
        ..Frame::default()
    };
    scene.stacks[0].push(caller);
    assert_eq!(asker(&scene).frame.as_deref(), Some("main"));
}

#[test]
fn more_files_than_can_be_told_apart_still_have_their_device() {
    let mut whats = Whats::new();
    let mut resource = Resource {
        kind: ResourceKind::File,
        name: "/srv/one".to_owned(),
        ..Resource::default()
    };
    for (key, value) in [("device", "8:1"), ("call", "read")] {
        resource.detail.read(key.to_owned(), value.to_owned());
    }
    let one = whats.classified(
        Role::Wait,
        Classified {
            cause: Cause::DiskRead,
            resource,
            timed_out: false,
            bytes: None,
            call: Some("read"),
            why_unknown: None,
        },
    );
    let many = whats.coarse(one);
    let many = &whats.get(many).resource;
    assert_eq!(
        (many.name.as_str(), many.detail.texts()["device"].as_str()),
        ("many files", "8:1")
    );
    assert!(many.detail.call.is_none());
}
