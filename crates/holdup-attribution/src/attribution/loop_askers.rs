//! Which of an event loop's tasks a poll is for.
//!
//! The problem: the thread polls for all its tasks, so its stack is the library's, from where the program started the loop. The choice: a task
//! that awaits the other end of the connection that the poll is for has asked; of several the place with most of them. In: waits, and tasks as
//! they were when observation ended. Out: polls that are not over, with the frames of that task above those of the loop.

use super::asker;
use super::task_queues::Look;
use holdup_evidence::{Cause, Frame, Language, TaskRuntime};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, Common, Task, TaskState};
use std::collections::BTreeMap;

/// Tasks of which each awaits the next, that are followed to one with a place in the program.
const AWAITED_MAX: usize = 16;

/// Puts the frames of tasks into the stacks of the polls that are for them.
pub(super) fn put_in_place(waits: &mut [AttributedWait], tasks: &[Task]) {
    let waiting: Vec<&Task> = tasks
        .iter()
        .filter(|task| task.runtime == TaskRuntime::Asyncio && task.state == TaskState::Waiting)
        .collect();
    let of_node: Vec<&Task> = tasks
        .iter()
        .filter(|task| task.runtime == TaskRuntime::Node && task.stood > 0)
        .collect();
    for wait in waits.iter_mut().filter(|_| !of_node.is_empty()) {
        if let Some(frames) = asks_for_names(wait, &of_node) {
            // The loop below has called none of them: they go on when it does.
            wait.asker.stack = frames;
            let asking = asker::choose(&wait.asker.stack);
            (wait.asker.frame, wait.asker.module) = (asking.frame, asking.module);
        }
    }
    if waiting.is_empty() {
        return;
    }
    for wait in waits {
        let polls = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll);
        let python = |frame: &Frame| frame.language == Language::Python;
        let Some(at) = wait.asker.stack.iter().position(python) else {
            continue;
        };
        if !polls || !wait.open {
            continue;
        }
        let Some(frames) = asked(wait, &waiting) else {
            continue;
        };
        wait.asker.stack.splice(at..at, frames);
        let asking = asker::choose(&wait.asker.stack);
        (wait.asker.frame, wait.asker.module) = (asking.frame, asking.module);
    }
}

/// Of tasks that looks met while they awaited what a poll is for, the part that must stand in one place for it to be the asker.
const MIN_SHARE_IN_ONE_PLACE: f64 = 0.75;

/// The same of polls that are over, by the tasks that looks met while observation went on: those that awaited the same peer, or a timer where the
/// poll ended by one. Where they stand in several places none of which has nearly all of them, it is not known for which a poll was.
pub(super) fn put_in_place_by_looks(waits: &mut [AttributedWait], looks: &[Look]) {
    let waiting: Vec<&Task> = looks
        .iter()
        .flat_map(|look| &look.tasks)
        .filter(|task| task.runtime == TaskRuntime::Asyncio && task.state == TaskState::Waiting)
        .collect();
    if waiting.is_empty() {
        return;
    }
    for wait in waits {
        let polls = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll);
        let python = |frame: &Frame| frame.language == Language::Python;
        let first = wait.asker.stack.iter().position(python);
        let Some(at) = first.filter(|at| polls && of_loop(&wait.asker.stack[*at])) else {
            continue;
        };
        let pid = wait.asker.name.pid;
        let is_for = |task: &&&Task| {
            task.pid == pid
                && match (wait.cause, &wait.resource.detail.peer) {
                    (Cause::TimerSleep, _) => task.cause == Cause::TimerSleep,
                    (_, Some(peer)) => task.resource.detail.peer.as_ref() == Some(peer),
                    _ => false,
                }
        };
        let mut places: BTreeMap<Place, (usize, &Task)> = BTreeMap::new();
        for task in waiting.iter().filter(is_for) {
            let place = asker::place(&task.stack).filter(asker::is_applications);
            let place = place.map_or((None, None), |place| (place.symbol, place.line));
            places.entry(place).or_insert((0, task)).0 += 1;
        }
        let all: usize = places.values().map(|(count, _)| count).sum();
        let most = places.into_iter().max_by_key(|(_, (count, _))| *count);
        let Some(((Some(_), _), (count, task))) = most else {
            continue;
        };
        if (count as f64) < all as f64 * MIN_SHARE_IN_ONE_PLACE {
            continue;
        }
        wait.asker.stack.splice(at..at, task.stack.iter().cloned());
        let asking = asker::choose(&wait.asker.stack);
        (wait.asker.frame, wait.asker.module) = (asking.frame, asking.module);
    }
}

/// Whether a frame is of the library's event loop, which no task's frame is above yet.
fn of_loop(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    let own = ["selectors.py", "asyncio/base_events.py", "asyncio/runners.py"];
    own.iter().any(|own| file.ends_with(own))
}

/// The frames of the asynchronous function that a poll of Node.js is for, if all that stand await names, in one place: the resolver is a library
/// in C, and no handle of JavaScript refers to its sockets.
fn asks_for_names(wait: &AttributedWait, tasks: &[&Task]) -> Option<Vec<Frame>> {
    let polls = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll);
    let javascript = |frame: &Frame| frame.language == Language::JavaScript;
    let of_peer = matches!(wait.cause, Cause::NetReceive | Cause::NetDns);
    if !polls || !of_peer || wait.asker.stack.iter().any(javascript) {
        return None;
    }
    let mut own = tasks.iter().filter(|task| task.pid == wait.asker.name.pid);
    let first = own.next()?;
    let same = |task: &&&Task| task.cause == Cause::NetDns && task.place == first.place;
    let all = first.cause == Cause::NetDns && first.place.is_some() && own.all(|task| same(&task));
    all.then(|| first.stack.clone())
}

/// A function of the program and the line in it.
type Place = (Option<String>, Option<u32>);

/// The frames of the task that a poll is for.
fn asked(wait: &AttributedWait, tasks: &[&Task]) -> Option<Vec<Frame>> {
    let own = |task: &&&Task| task.pid == wait.asker.name.pid;
    let is_for = |task: &&&Task| match (&wait.resource.detail.peer, wait.cause) {
        (Some(peer), _) => task.resource.detail.peer.as_ref() == Some(peer),
        // Only another thread of the process can end it: the tasks wait for no descriptor.
        (None, Cause::IpcQueue) => {
            wait.resource.common() == Some(Common::OwnWakeup)
                && task.cause == Cause::LockFutex
                && task.awaits.is_none()
        }
        (None, Cause::IpcPipe | Cause::IpcUnix) => {
            task.cause == Cause::PollWait && task.resource.detail.peer.is_none()
        }
        _ => false,
    };
    let mut places: BTreeMap<Place, (usize, Vec<Frame>)> = BTreeMap::new();
    for task in tasks.iter().filter(own).filter(is_for) {
        let frames = frames(task, tasks);
        let Some(place) = asker::place(&frames).filter(asker::is_applications) else {
            continue;
        };
        places.entry((place.symbol, place.line)).or_insert((0, frames)).0 += 1;
    }
    // One of its own pipes says less than the connection: with tasks in several places it is not known whose it is.
    if wait.resource.detail.peer.is_none() && places.len() > 1 {
        return None;
    }
    let most = places.into_values().max_by_key(|(count, _)| *count);
    most.map(|(_, frames)| frames)
}

/// The frames of a task, and of those that await it where it is of a library.
fn frames(task: &Task, tasks: &[&Task]) -> Vec<Frame> {
    let mut frames = task.stack.clone();
    let mut now = task;
    for _ in 0..AWAITED_MAX {
        let awaits = |other: &&&Task| other.pid == now.pid && other.awaits == Some(now.id);
        let Some(next) = tasks.iter().find(awaits).filter(|_| now.place.is_none()) else {
            break;
        };
        frames.extend(next.stack.iter().cloned());
        now = next;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::put_in_place;
    use holdup_evidence::{Cause, Frame, Language, TaskChannels, TaskRuntime};
    use holdup_model::attributed::{AttributedWait, Peer, Resource, ResourceKind, Task, TaskState};

    fn frame(file: &str, symbol: &str, line: u32) -> Frame {
        Frame {
            symbol: Some(symbol.to_owned()),
            file: Some(file.to_owned()),
            line: Some(line),
            language: Language::Python,
            ..Frame::default()
        }
    }

    const LOOP: &str = "/usr/lib/python3.11/asyncio/base_events.py";

    fn poll(peer: &str) -> AttributedWait {
        let wait = serde_json::json!({"cause": Cause::NetReceive, "ns": 1, "call": "epoll_wait", "open": true, "asker": {"name": {"pid": 7, "tid": 7}}});
        let mut wait: AttributedWait = serde_json::from_value(wait).unwrap();
        wait.resource = Resource::named(ResourceKind::Socket, peer.to_owned())
            .with(|facts| facts.peer = Some(Peer::Address(peer.parse().unwrap())));
        wait.asker.stack = vec![
            frame(LOOP, "BaseEventLoop._run_once", 1),
            frame("/srv/shop.py", "<module>", 90),
        ];
        wait
    }

    fn task(peer: &str, symbol: &str) -> Task {
        Task {
            runtime: TaskRuntime::Asyncio,
            pid: 7,
            process: "python3".to_owned(),
            id: 1,
            state: TaskState::Waiting,
            cause: Cause::PollWait,
            since: 0,
            ns: 0,
            stood: 0,
            lock: false,
            pool: false,
            sends: false,
            channels: TaskChannels::default(),
            resource: poll(peer).resource,
            place: None,
            name: None,
            awaits: None,
            held_by: None,
            held_by_thread: None,
            others: None,
            started_by: None,
            stack: vec![
                frame("/usr/lib/python3.11/asyncio/streams.py", "StreamReader.read", 5),
                frame("/srv/shop.py", symbol, 12),
            ],
        }
    }

    #[test]
    fn a_poll_is_asked_for_by_the_task_that_awaits_the_same_server() {
        let tasks = [
            task("127.0.0.1:9", "other"),
            task("127.0.0.1:8", "price"),
            task("127.0.0.1:8", "stock"),
            task("127.0.0.1:8", "stock"),
        ];
        let mut waits = [poll("127.0.0.1:8"), poll("127.0.0.1:7")];
        put_in_place(&mut waits, &tasks);
        assert_eq!(waits[0].asker.frame.as_deref(), Some("stock"));
        assert_eq!(waits[0].asker.stack.len(), 4);
        assert_eq!(
            (waits[1].asker.frame.as_deref(), waits[1].asker.stack.len()),
            (None, 2)
        );
        // What is over may have been for another task.
        let mut over = [AttributedWait {
            open: false,
            ..poll("127.0.0.1:8")
        }];
        put_in_place(&mut over, &tasks);
        assert_eq!(over[0].asker.stack.len(), 2);
    }
}
