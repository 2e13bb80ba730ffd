//! Tasks of runtimes, as the report has them.
//!
//! In: tasks as they were when observation ended, and the frames of their stacks. Out: what each waited for, and where in the
//! application's code. Their waits are none of the threads', so the ledger is as it was.

use super::command_output;
use crate::classify::{virtual_thread, waits_for_room};
use holdup_evidence::{Cause, Finish, Frame, RuntimeTask, TaskDoes, TaskRuntime};
use holdup_knowledge::{asyncio, go, java, javascript, python, rust, tokio};
use holdup_model::attributed::{JavaLock, Peer, Resource, ResourceKind, Task, TaskOthers, TaskState};
use std::net::SocketAddr;

/// All tasks.
pub(super) fn tasks(finish: &Finish) -> Vec<Task> {
    of(&finish.tasks, finish)
}

/// These tasks, which are those of one look.
pub(super) fn of(tasks: &[RuntimeTask], finish: &Finish) -> Vec<Task> {
    let mut tasks: Vec<Task> = tasks.iter().map(|one| task(one, finish)).collect();
    command_output::await_output(&mut tasks);
    tasks
}

fn task(one: &RuntimeTask, finish: &Finish) -> Task {
    let stack = one
        .stack
        .and_then(|stack| finish.user_stacks.get(stack.0 as usize))
        .map_or(&[][..], Vec::as_slice);
    let (state, wait) = match one.does {
        // A coroutine or a virtual thread may block its thread; what that waits for is said of the thread.
        TaskDoes::Runs
            if matches!(
                one.runtime,
                TaskRuntime::Asyncio | TaskRuntime::Java | TaskRuntime::Tokio
            ) =>
        {
            (TaskState::Running, Wait::of(Cause::Unknown))
        }
        TaskDoes::Runs => (TaskState::Running, Wait::of(Cause::CpuUser)),
        TaskDoes::Ready => (TaskState::Ready, Wait::of(Cause::SchedRunqueue)),
        // What the call is for is said of the thread that makes it.
        TaskDoes::Calls => {
            let what = Some("a system call".to_owned());
            let wait = Wait {
                what,
                ..Wait::of(Cause::Unknown)
            };
            (TaskState::Waiting, wait)
        }
        TaskDoes::Waits => waits(one, stack),
    };
    let cause = wait.cause;
    let peer = peer(one, cause).filter(|_| state == TaskState::Waiting);
    let since = match state {
        TaskState::Running | TaskState::Ready => None,
        // The runtime's clock is another one in a time namespace.
        TaskState::Waiting | TaskState::Idle => one.since.and_then(|since| finish.ended.checked_sub(since)),
    };
    let stood = one
        .stood_since
        .filter(|_| matches!(state, TaskState::Waiting | TaskState::Idle))
        .map_or(0, |since| finish.ended.saturating_sub(since));
    let since = since.unwrap_or_default();
    Task {
        runtime: one.runtime,
        pid: one.pid,
        process: one.process.clone(),
        id: one.id,
        state,
        cause,
        since,
        ns: since.min(finish.ended.saturating_sub(finish.started)),
        stood,
        lock: wait.lock,
        pool: wait.pool,
        sends: state == TaskState::Waiting && sends(one, stack),
        others: wait.others,
        started_by: one.started_by,
        channels: one.channels.clone(),
        resource: wait
            .what
            .map_or_else(Resource::default, |what| Resource::named(kind(cause), what))
            .with(|facts| {
                facts.peer = peer.map(Peer::Address);
                facts.java_lock = wait.java_lock;
            }),
        place: place(one.runtime, stack).cloned(),
        name: one.name.clone(),
        awaits: one.awaits,
        held_by: one.holder,
        held_by_thread: one.holder_thread,
        stack: stack.to_vec(),
    }
}

/// What a task waits for.
struct Wait {
    cause: Cause,
    what: Option<String>,
    lock: bool,
    pool: bool,
    java_lock: Option<JavaLock>,
    others: Option<TaskOthers>,
}

impl Wait {
    fn of(cause: Cause) -> Wait {
        Wait {
            cause,
            what: None,
            lock: false,
            pool: false,
            java_lock: None,
            others: None,
        }
    }
}

fn waits(one: &RuntimeTask, stack: &[Frame]) -> (TaskState, Wait) {
    let mut wait = match one.runtime {
        TaskRuntime::Go => {
            let wait = go::wait(one.reason.as_deref(), stack);
            Wait {
                what: wait.what.map(str::to_owned),
                lock: wait.lock,
                pool: wait.pool,
                others: wait.others,
                ..Wait::of(wait.cause)
            }
        }
        // The class of the pool.
        TaskRuntime::Asyncio if one.reason.is_some() => Wait {
            what: one.reason.as_deref().map(|class| asyncio::lent(class, stack)),
            pool: true,
            ..Wait::of(Cause::LockFutex)
        },
        TaskRuntime::Asyncio => {
            let wait = asyncio::wait(stack, one.awaits.is_some(), one.descriptor.is_some());
            let what = wait.what.map(|what| match one.descriptor {
                Some(descriptor) => format!("{what} {descriptor}"),
                None => what.to_owned(),
            });
            Wait {
                what,
                lock: wait.lock,
                ..Wait::of(wait.cause)
            }
        }
        TaskRuntime::Node => {
            let awaits = javascript::awaits(one.reason.as_deref(), one.called_in.as_deref());
            Wait {
                what: Some(awaits.what),
                lock: awaits.lock,
                pool: awaits.pool,
                ..Wait::of(awaits.cause)
            }
        }
        TaskRuntime::Tokio => {
            let wait = tokio::wait(one.reason.as_deref(), one.descriptor.is_some());
            // A library's future that is none of tokio's is known by its path.
            let what = wait.what.map(str::to_owned).or_else(|| one.reason.clone());
            Wait {
                what,
                lock: wait.lock,
                pool: wait.pool,
                ..Wait::of(wait.cause)
            }
        }
        TaskRuntime::Java => {
            let (cause, what, java_lock) = virtual_thread(one.reason.as_deref(), stack);
            Wait {
                what: Some(what),
                lock: cause == Cause::LockMonitor,
                java_lock,
                ..Wait::of(cause)
            }
        }
    };
    // Which descriptor it is says less than who is at its other end.
    if let Some(peer) = one.peer.filter(|_| is_for_descriptor(wait.cause)) {
        wait.what = Some(match (wait.cause, one.datagrams) {
            (Cause::NetDns, _) => format!("the name server {peer}"),
            (_, true) => format!("{peer} (udp)"),
            (_, false) => format!("{peer} (tcp)"),
        });
    }
    let is_plain = |wait: &Wait| is_for_descriptor(wait.cause) && wait.cause != Cause::NetDns;
    if let Some(opened) = one.opened.as_ref().filter(|_| is_plain(&wait)) {
        wait.what = Some(match wait.cause {
            Cause::NetSend if one.peer.is_none() => format!("room to send to {opened}"),
            _ => opened.clone(),
        });
    }
    let state = match wait.cause {
        Cause::Idle => TaskState::Idle,
        _ => TaskState::Waiting,
    };
    (state, wait)
}

/// Who is asked on the descriptor that a task waits for. Who sends datagrams somewhere need not wait for an answer from there, unless it asks
/// for a name.
fn peer(one: &RuntimeTask, cause: Cause) -> Option<SocketAddr> {
    let asks = !one.datagrams || cause == Cause::NetDns;
    one.peer.filter(|_| asks && is_for_descriptor(cause))
}

/// Whether a task waits for a descriptor, whatever it is open on.
pub(super) fn is_for_descriptor(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::PollWait | Cause::NetConnect | Cause::NetSend | Cause::NetDns
    )
}

fn sends(one: &RuntimeTask, stack: &[Frame]) -> bool {
    match one.runtime {
        TaskRuntime::Go => one.reason.as_deref().is_some_and(go::sends),
        // What a coroutine puts into a full queue is not distinguished from what it takes.
        TaskRuntime::Asyncio | TaskRuntime::Node => false,
        TaskRuntime::Tokio => tokio::wait(one.reason.as_deref(), false).sends,
        TaskRuntime::Java => one.does == TaskDoes::Waits && waits_for_room(stack),
    }
}

fn place(runtime: TaskRuntime, stack: &[Frame]) -> Option<&Frame> {
    match runtime {
        TaskRuntime::Go => go::application(stack),
        TaskRuntime::Asyncio => python::application(stack),
        TaskRuntime::Java => in_java(stack),
        // Its frames are the program's only.
        TaskRuntime::Node => stack.first(),
        TaskRuntime::Tokio => stack
            .iter()
            .find(|frame| frame.file.is_some() && !rust::of_library(frame)),
    }
}

/// The innermost frame that is neither the runtime's nor a well-known library's.
fn in_java(stack: &[Frame]) -> Option<&Frame> {
    let own = |frame: &&Frame| !java::of_library(frame.symbol.as_deref().unwrap_or_default());
    stack.iter().find(own)
}

fn kind(cause: Cause) -> ResourceKind {
    match cause {
        Cause::LockFutex | Cause::LockMonitor => ResourceKind::Lock,
        Cause::PollWait
        | Cause::NetConnect
        | Cause::NetReceive
        | Cause::NetSend
        | Cause::NetAccept
        | Cause::NetDns => ResourceKind::Socket,
        _ => ResourceKind::Name,
    }
}

#[cfg(test)]
mod tests {
    use super::tasks;
    use holdup_evidence::{
        Cause, Finish, Frame, RuntimeTask, TaskChannels, TaskDoes, TaskRuntime, UserStackId,
    };
    use holdup_knowledge::asyncio::DRAINS;
    use holdup_model::attributed::TaskState;

    fn one(id: u64, does: TaskDoes, reason: Option<&str>, since: Option<u64>) -> RuntimeTask {
        RuntimeTask {
            runtime: TaskRuntime::Go,
            pid: 7,
            process: "shop".to_owned(),
            id,
            does,
            reason: reason.map(str::to_owned),
            since,
            stood_since: None,
            channels: TaskChannels::default(),
            stack: Some(UserStackId(0)),
            name: None,
            blocks: None,
            started_by: None,
            awaits: None,
            descriptor: None,
            peer: None,
            opened: None,
            called_in: None,
            holder: None,
            holder_thread: None,
            datagrams: false,
        }
    }

    #[test]
    fn a_task_has_its_cause_its_place_and_how_long_it_has_waited() {
        let frame = |symbol: &str, line| Frame {
            symbol: Some(symbol.to_owned()),
            line: Some(line),
            ..Frame::default()
        };
        let finish = Finish {
            started: 1_000,
            ended: 3_000,
            user_stacks: vec![vec![
                frame("runtime.gopark", 9),
                frame("sync.(*Mutex).Lock", 8),
                frame("main.pay", 41),
            ]],
            tasks: vec![
                one(1, TaskDoes::Waits, Some("sync.Mutex.Lock"), Some(500)),
                one(2, TaskDoes::Waits, Some("finalizer wait"), Some(9_000)),
                one(3, TaskDoes::Runs, None, Some(500)),
                one(4, TaskDoes::Calls, None, None),
                RuntimeTask {
                    stack: Some(UserStackId(8)),
                    ..one(5, TaskDoes::Ready, None, None)
                },
            ],
            ..Finish::default()
        };
        let found = tasks(&finish);
        let each: Vec<_> = found
            .iter()
            .map(|task| (task.id, task.state, task.cause, task.since, task.ns))
            .collect();
        assert_eq!(
            each,
            [
                (1, TaskState::Waiting, Cause::LockFutex, 2_500, 2_000),
                (2, TaskState::Idle, Cause::Idle, 0, 0),
                (3, TaskState::Running, Cause::CpuUser, 0, 0),
                (4, TaskState::Waiting, Cause::Unknown, 0, 0),
                (5, TaskState::Ready, Cause::SchedRunqueue, 0, 0),
            ]
        );
        assert_eq!(found[0].resource.name, "a sync.Mutex");
        let place = found[0].place.as_ref().unwrap();
        assert_eq!(
            (place.symbol.as_deref(), place.line),
            (Some("main.pay"), Some(41))
        );
        assert_eq!((found[4].stack.len(), &found[4].place), (0, &None));
    }

    #[test]
    fn a_task_that_drains_a_pipe_waits_for_room_there() {
        let frame = |symbol: &str, file: &str, line| Frame {
            symbol: Some(symbol.to_owned()),
            file: Some(file.to_owned()),
            line: Some(line),
            language: holdup_evidence::Language::Python,
            ..Frame::default()
        };
        let finish = Finish {
            user_stacks: vec![vec![
                frame(DRAINS, "/usr/lib/python3.12/asyncio/streams.py", 172),
                frame("encode", "/srv/thumbs.py", 5),
            ]],
            tasks: vec![RuntimeTask {
                runtime: TaskRuntime::Asyncio,
                descriptor: Some(9),
                opened: Some("a pipe of convert (pid 21)".to_owned()),
                ..one(1, TaskDoes::Waits, None, None)
            }],
            ..Finish::default()
        };
        let found = tasks(&finish);
        assert_eq!(
            (found[0].cause, found[0].resource.name.as_str()),
            (Cause::NetSend, "room to send to a pipe of convert (pid 21)")
        );
    }

    #[test]
    fn a_task_that_waits_for_a_descriptor_waits_for_its_other_end() {
        let peer = "127.0.0.1:5432".parse().unwrap();
        let with_peer = |id, reason| RuntimeTask {
            descriptor: Some(7),
            peer: Some(peer),
            ..one(id, TaskDoes::Waits, Some(reason), None)
        };
        let frame = |symbol: &str| Frame {
            symbol: Some(symbol.to_owned()),
            ..Frame::default()
        };
        let connects = vec![frame("runtime.gopark"), frame("database/sql.(*DB).conn")];
        let finish = Finish {
            user_stacks: vec![connects],
            tasks: vec![
                with_peer(1, "IO wait"),
                with_peer(2, "sleep"),
                with_peer(3, "select"),
            ],
            ..Finish::default()
        };
        let found = tasks(&finish);
        let each: Vec<_> = found
            .iter()
            .map(|task| {
                (
                    task.resource.name.as_str(),
                    task.resource.detail.peer.is_some(),
                    task.pool,
                )
            })
            .collect();
        assert_eq!(
            each,
            [
                ("127.0.0.1:5432 (tcp)", true, false),
                ("a timer", false, false),
                ("a free connection of a pool", false, true)
            ]
        );
    }

    #[test]
    fn who_asks_a_name_server_waits_for_it_and_who_sends_datagrams_for_nobody_known() {
        let at = "127.0.0.1:5300".parse().unwrap();
        let sends = |id| RuntimeTask {
            descriptor: Some(7),
            peer: Some(at),
            datagrams: true,
            stack: Some(UserStackId(u32::try_from(id).unwrap())),
            ..one(id, TaskDoes::Waits, Some("IO wait"), None)
        };
        let frame = |symbol: &str| Frame {
            symbol: Some(symbol.to_owned()),
            ..Frame::default()
        };
        let reads = "internal/poll.(*FD).Read";
        let finish = Finish {
            user_stacks: vec![
                vec![frame(reads), frame("net.dnsPacketRoundTrip")],
                vec![frame(reads), frame("main.receiveLoop")],
                vec![frame(reads), frame("net.dnsStreamRoundTrip")],
            ],
            tasks: vec![sends(0), sends(1), sends(2)],
            ..Finish::default()
        };
        let found = tasks(&finish);
        let each: Vec<_> = found
            .iter()
            .map(|task| {
                let peer = task.resource.detail.peer.is_some();
                (task.cause, task.resource.name.as_str(), peer)
            })
            .collect();
        let server = "the name server 127.0.0.1:5300";
        assert_eq!(
            each,
            [
                (Cause::NetDns, server, true),
                (Cause::PollWait, "127.0.0.1:5300 (udp)", false),
                (Cause::NetDns, server, true),
            ]
        );
    }

    #[test]
    fn a_virtual_thread_waits_for_what_its_frames_show() {
        let frame = |symbol: &&str| Frame {
            symbol: Some((*symbol).to_owned()),
            line: Some(7),
            language: holdup_evidence::Language::Java,
            ..Frame::default()
        };
        const PARK: &str = "java.lang.VirtualThread.park";
        const SUPPORT: &str = "java.util.concurrent.locks.LockSupport.park";
        let stacks: [&[&str]; 5] = [
            &[
                "java.lang.VirtualThread.yieldContinuation",
                PARK,
                SUPPORT,
                "sun.nio.ch.Poller.poll",
                "sun.nio.ch.NioSocketImpl.implRead",
                "com.shop.Rates.fetch",
            ],
            &[
                "java.lang.VirtualThread.parkNanos",
                "java.lang.VirtualThread.sleepNanos",
                "com.shop.Rates.rest",
            ],
            &["com.shop.Rates.locked", "com.shop.Rates.get"],
            &[
                PARK,
                SUPPORT,
                "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire",
                "java.util.concurrent.locks.ReentrantLock.lock",
                "com.shop.Till.pay",
            ],
            &[PARK, SUPPORT, "java.util.concurrent.ThreadPoolExecutor.getTask"],
        ];
        let of_java = |id: u64, reason: Option<&str>| RuntimeTask {
            runtime: TaskRuntime::Java,
            stack: Some(UserStackId(u32::try_from(id).unwrap())),
            ..one(id, TaskDoes::Waits, reason, None)
        };
        let finish = Finish {
            user_stacks: stacks.map(|stack| stack.iter().map(frame).collect()).to_vec(),
            tasks: vec![
                of_java(0, None),
                of_java(1, None),
                of_java(2, Some("monitor")),
                of_java(3, Some("pinned")),
                of_java(4, None),
            ],
            ..Finish::default()
        };
        let found = tasks(&finish);
        let each: Vec<_> = found
            .iter()
            .map(|task| {
                let place = task.place.as_ref().and_then(|place| place.symbol.as_deref());
                (task.state, task.cause, task.lock, place)
            })
            .collect();
        assert_eq!(
            each,
            [
                (
                    TaskState::Waiting,
                    Cause::NetReceive,
                    false,
                    Some("com.shop.Rates.fetch")
                ),
                (
                    TaskState::Waiting,
                    Cause::TimerSleep,
                    false,
                    Some("com.shop.Rates.rest")
                ),
                (
                    TaskState::Waiting,
                    Cause::LockMonitor,
                    true,
                    Some("com.shop.Rates.locked")
                ),
                (
                    TaskState::Waiting,
                    Cause::LockMonitor,
                    true,
                    Some("com.shop.Till.pay")
                ),
                (TaskState::Idle, Cause::Idle, false, None),
            ]
        );
    }
}
