//! Threads that ran already, written by hand: the whole is their time, waits for work cost nobody anything, and who has the other
//! end of a pipe is followed to the end.

use super::classifier;
use super::scene::{By, Scene, row};
use crate::attribution::{Attribution, RunPath, Scope};
use holdup_evidence::{
    Adopted, Cause, Clock, Event, Finish, ObjectId, OtherEnd, Request, RequestStep, Role, ThreadId,
};
use holdup_model::attributed::{Attributed, HowKnown};

/// What was observed from 0 to 1000.
fn watched(scene: &Scene, more: Vec<Event>, known: bool) -> Attributed {
    let mut attribution = Attribution {
        run_path: RunPath::new(Scope::Threads),
        ..Attribution::with(classifier())
    };
    for event in more.iter().chain(&scene.events) {
        attribution.push(event);
    }
    let finish = Finish {
        ended: 1000,
        requests_told: known,
        ..Finish::default()
    };
    attribution.finish(&finish, &scene.facts)
}

/// The same scene, as if its threads had been there before.
fn adopted(scene: &mut Scene, neighbours: &[u32]) {
    for event in &mut scene.events {
        if let Event::Start(start) = event {
            start.parent = None;
            start.adopted = Some(Adopted {
                process: start.task.name.clone(),
                parent: 1,
            });
            if neighbours.contains(&start.thread.0) {
                start.role = Role::Neighbour;
            }
        }
    }
}

#[test]
fn the_whole_is_the_threads_time_and_waiting_for_work_costs_nothing() {
    let mut scene = Scene::new("server");
    scene.process(1, 0, "server");
    scene.wait(0, Cause::Idle, 900, By::Interrupt);
    scene.cpu(0, 100);
    scene.wait(1, Cause::DiskSync, 400, By::Interrupt);
    scene.left_waiting(1, Cause::LockFile, 1000, |_| {});
    scene.end(0);
    adopted(&mut scene, &[]);
    let run = watched(&scene, Vec::new(), false);
    assert!(run.of_threads);
    assert_eq!(run.wall, 1000);
    let total: u64 = run.path.values().map(|tally| tally.ns).sum();
    assert_eq!((total, run.coverage.observed), (2000, 2000));
    assert_eq!(run.elapsed, 1100, "without the waits for work");
    assert_eq!(run.path[&Cause::Idle].ns, 900);
    assert!(run.path[&Cause::LockFile].open);
    assert_eq!(run.requests, None, "nothing tells of requests");
}

#[test]
fn a_wait_that_began_before_counts_what_was_seen_and_tells_how_long_it_is() {
    let mut scene = Scene::new("first");
    scene.cpu(0, 5000);
    scene.process(1, 0, "stuck");
    scene.left_waiting(1, Cause::LockFile, 6000, |wait| wait.start = 2000);
    scene.end(0);
    adopted(&mut scene, &[]);
    let run = watched(&scene, Vec::new(), false);
    let stuck = row(&run, 1, Cause::LockFile);
    assert_eq!((stuck.ns, stuck.max, stuck.open), (1000, 4000, true));
}

#[test]
fn who_has_the_other_end_is_in_the_way_and_so_on_to_the_end() {
    let mut scene = Scene::new("reader");
    scene.process(1, 0, "writer");
    scene.left_waiting(0, Cause::IpcPipe, 1000, |wait| wait.object = Some(ObjectId(7)));
    scene.left_waiting(1, Cause::TimerSleep, 1000, |_| {});
    adopted(&mut scene, &[1]);
    let end = Event::OtherEnd(OtherEnd {
        object: ObjectId(7),
        processes: vec![101],
        listens: false,
    });
    let run = watched(&scene, vec![end], false);
    assert_eq!(run.threads.len(), 1, "the neighbour's time is nobody's answer");
    let read = row(&run, 0, Cause::IpcPipe);
    let holder = &read.holders[0];
    assert_eq!((holder.name.pid, holder.how_known), (101, HowKnown::PipePeer));
    let causes: Vec<Cause> = read.chain.iter().map(|link| link.cause).collect();
    assert_eq!(causes, [Cause::IpcPipe, Cause::TimerSleep]);
}

#[test]
fn the_time_of_a_request_is_its_readers() {
    let mut scene = Scene::new("server");
    scene.cpu(0, 100);
    let at = |at, clock, step| {
        Event::Request(Request {
            at,
            thread: ThreadId(0),
            clock,
            connection: 5,
            weight: 1,
            step,
        })
    };
    let cpu = |cpu, blocked| Clock {
        cpu,
        blocked,
        ..Clock::default()
    };
    scene.events.push(at(
        100,
        cpu(100, 0),
        RequestStep::Read {
            begins: b"GET /a b".to_vec(),
            port: 80,
        },
    ));
    scene.wait(0, Cause::DiskRead, 600, By::Interrupt).serves = true;
    scene.cpu(0, 50);
    let answered = RequestStep::Answered;
    let served = Clock {
        served_cpu: 50,
        ..cpu(150, 500)
    };
    scene.events.push(at(650, served, answered.clone()));
    // Another thread wrote there in the same instant: it is one answer.
    scene.events.push(at(650, served, answered));
    scene.served(0, 50);
    scene.cpu(0, 350);
    scene.end(0);
    adopted(&mut scene, &[]);
    let run = watched(&scene, Vec::new(), true);
    let requests = run.requests.expect("they are told");
    assert_eq!((requests.count, requests.open, requests.p50), (1, 0, 550));
    let times: Vec<_> = requests
        .causes
        .iter()
        .map(|(cause, tally)| (*cause, tally.ns))
        .collect();
    assert_eq!(times, [(Cause::CpuUser, 50), (Cause::DiskRead, 500)]);
}

#[test]
fn a_thread_that_waits_is_told_by_itself_among_hundreds_that_rest() {
    const THREADS: u32 = 500;
    let mut scene = Scene::new("server");
    for id in 1..THREADS {
        scene.process(id, 0, "daemon");
    }
    scene.process(THREADS, 0, "stuck");
    for id in 0..THREADS {
        let cause = if id % 2 == 0 {
            Cause::TimerSleep
        } else {
            Cause::Idle
        };
        scene.left_waiting(id, cause, 1000, |_| {});
    }
    // It lived for less long than any of them.
    scene.left_waiting(THREADS, Cause::FsFuse, 900, |_| {});
    adopted(&mut scene, &[]);
    let run = watched(&scene, Vec::new(), false);
    let stuck = row(&run, THREADS, Cause::FsFuse);
    assert_ne!(stuck.asker.name.tid, 0);
    assert!(
        run.waits.iter().any(|row| row.asker.name.tid == 0),
        "the others are told together"
    );
}
