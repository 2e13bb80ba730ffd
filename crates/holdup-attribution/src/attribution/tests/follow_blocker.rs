//! Waits that nobody was seen to end, where looks have shown who was in the way.

use super::scene::{By, Scene, path, row, waits_for_mutex_of};
use super::{balances, classifier};
use crate::attribution::Attribution;
use holdup_evidence::{Cause, Event, Finish, ObjectId, OtherEnd, ThreadId, Wait, Waker};
use holdup_model::attributed::{Attributed, HowKnown, Source};

/// Attributes a scene as sampling observes it, without wakers.
fn looked_at(scene: &Scene) -> Attributed {
    let mut attribution = Attribution::with(classifier()).observed_by(Source::Sampled);
    for event in &scene.events {
        match event {
            Event::Wait(wait) => attribution.push(&Event::Wait(Box::new(Wait {
                waker: Waker::Unknown,
                ..(**wait).clone()
            }))),
            other => attribution.push(other),
        }
    }
    let finish = Finish {
        ended: 1_100,
        ..Finish::default()
    };
    let run = attribution.finish(&finish, &scene.facts);
    assert_eq!(balances(&run), Ok(()));
    run
}

/// CMD waits from 100 to 1000 for a mutex of its other thread, which works until 300, sleeps until 900, and works on.
fn scene() -> Scene {
    let mut scene = Scene::new("bank");
    scene.thread(1, 0, "teller");
    scene.cpu(1, 300);
    scene.wait(1, Cause::TimerSleep, 900, By::Interrupt);
    scene.cpu(1, 50);
    scene.wait(1, Cause::NetReceive, 960, By::Interrupt);
    scene.cpu(0, 100);
    scene
}

#[test]
fn what_the_owner_did_meanwhile_takes_the_place_of_the_wait() {
    let mut scene = scene();
    waits_for_mutex_of(scene.wait(0, Cause::LockFutex, 1_000, By::Interrupt), 101);
    scene.cpu(0, 100);
    scene.end(1);
    scene.end(0);
    let run = looked_at(&scene);
    let of = |cause| {
        path(&run)
            .into_iter()
            .find(|(one, _)| *one == cause)
            .map_or(0, |(_, ns)| ns)
    };
    // Its own 200, and of the owner's 250 those that the wait lasted.
    assert_eq!(of(Cause::CpuUser), 200 + 200 + 50);
    assert_eq!(of(Cause::TimerSleep), 600);
    assert_eq!(of(Cause::NetReceive), 10);
    // What the owner did after that had not been reported.
    assert_eq!(of(Cause::LockFutex), 40);
    let waited = row(&run, 0, Cause::LockFutex);
    assert_eq!(waited.ns, 900);
    assert_eq!(waited.holders[0].how_known, HowKnown::MutexOwner);
}

#[test]
fn a_wait_of_which_nobody_is_known_to_have_been_in_the_way_stays_the_waiters() {
    let mut scene = scene();
    scene.wait(0, Cause::LockFutex, 1_000, By::Interrupt);
    scene.cpu(0, 100);
    scene.end(1);
    scene.end(0);
    let run = looked_at(&scene);
    assert!(path(&run).contains(&(Cause::LockFutex, 900)));
}

/// A shell reads a pipe until 1000, of which another process has the other end; that one ends then, or much earlier.
fn reads_from(orphan: bool, ends: u64) -> Attributed {
    /// Longer than two looks are apart.
    const MUCH: u64 = 100_000_000;
    let mut scene = Scene::new("bash");
    scene.process(1, 0, "daemon");
    if orphan {
        scene.events.push(Event::Orphan {
            at: 100,
            thread: ThreadId(1),
        });
    }
    let Some(Event::Start(start)) = scene.events.iter_mut().find(|event| {
        let of_it = |thread| thread == ThreadId(1);
        matches!(event, Event::Start(start) if of_it(start.thread))
    }) else {
        unreachable!("it was just told")
    };
    // Nobody saw who made it.
    start.parent = start.parent.filter(|_| !orphan);
    let pipe = ObjectId(3);
    scene.events.push(Event::OtherEnd(OtherEnd {
        object: pipe,
        processes: vec![101],
        listens: false,
    }));
    scene.wait(1, Cause::TimerSleep, ends * MUCH, By::Interrupt);
    scene.end(1);
    scene.wait(0, Cause::IpcPipe, 10 * MUCH, By::Interrupt).object = Some(pipe);
    scene.end(0);
    looked_at(&scene)
}

#[test]
fn a_pipe_is_held_open_by_the_only_one_that_has_it_and_ends_with_the_wait() {
    let held = |orphan, ends| row(&reads_from(orphan, ends), 0, Cause::IpcPipe).held_open_ns;
    assert_eq!(held(true, 10), 10 * 100_000_000 - 100);
    assert_eq!(held(true, 5), 0, "somebody else had it open, too");
    assert_eq!(held(false, 10), 0, "its creator lives");
}
