//! From what artefacts show to waits, so that the rules about waits judge them as they judge a live run's.
//!
//! In: [`Observed`]. Out: an [`Attributed`] whose waits are the calls that an artefact gives a duration to. Nothing is on a
//! critical path but where one thread was traced: its own time is the elapsed time. What threads of a dump wait for is not
//! here: an instant has no duration.

pub mod clock;

use crate::attributed::{Asker, Attributed, AttributedWait, Coverage, How, Resource, Tally, ThreadName};
use crate::classify::{self, Site};
use holdup_evidence::observed::{CallTime, Calls};
use holdup_evidence::{Call, Cause, Ns, Object, ObjectKind, Observed, TaskState, Waker};

/// Attributes what the artefacts show.
#[must_use]
pub fn attribute(observed: &Observed) -> Attributed {
    let mut attributed = Attributed::default();
    for calls in observed.calls.iter().filter(|calls| calls.wall == Some(true)) {
        add(&mut attributed, observed, calls);
    }
    attributed.waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    let waits = attributed.waits.iter();
    let told = waits.clone().filter(|wait| wait.cause != Cause::Unknown);
    attributed.coverage = Coverage {
        observed: attributed.elapsed,
        attributed: told.map(|wait| wait.ns).fold(0, Ns::saturating_add),
        ..Coverage::default()
    };
    let unknown = waits.filter(|wait| wait.cause == Cause::Unknown);
    attributed.coverage.unknown = unknown.map(|wait| wait.ns).fold(0, Ns::saturating_add);
    attributed
}

/// Adds one trace. Several traces are of several runs: their elapsed times add up.
fn add(attributed: &mut Attributed, observed: &Observed, calls: &Calls) {
    let elapsed = calls.elapsed.unwrap_or(0);
    attributed.elapsed = attributed.elapsed.saturating_add(elapsed);
    let mut threads: Vec<u32> = calls.calls.iter().map(|call| call.tid).collect();
    threads.sort_unstable();
    threads.dedup();
    // Of several threads it is not told who waited for whom: each one's time is its own, and at most the whole.
    let alone = threads.len() <= 1;
    for call in &calls.calls {
        let wait = wait(observed, calls, call, alone);
        let tally: &mut Tally = attributed.path.entry(wait.cause).or_default();
        tally.ns += wait.path_ns;
        tally.count += wait.count;
        tally.max = tally.max.max(wait.max);
        tally.open |= wait.open;
        attributed.waits.push(wait);
    }
}

fn wait(observed: &Observed, calls: &Calls, call: &CallTime, alone: bool) -> AttributedWait {
    let object = call.object.as_deref().map(object);
    let classified = classify::wait(&Site {
        call: Call::named(&call.call),
        state: TaskState::Interruptible,
        iowait: false,
        object: object.as_ref(),
        ready: None,
        woken_by_socket: None,
        kernel_stack: None,
        kernel_lock: None,
        memory: None,
        objects: &|_| None,
        waker: &Waker::Unknown,
        duration: call.max,
    });
    let count = call.count.max(1);
    AttributedWait {
        cause: classified.cause,
        ns: call.ns,
        path_ns: if alone { call.ns } else { 0 },
        handed_on_ns: 0,
        count,
        max: call.max,
        p50: call.ns / count,
        p99: call.max,
        max_started: 0,
        max_ended: 0,
        how: How::Exact,
        error: 0,
        open: call.open,
        held_open_ns: 0,
        timed_out: call.timed_out,
        call: Some(call.call.clone()),
        bytes: call.bytes,
        resource: resource(classified.resource, call),
        asker: Asker {
            name: ThreadName {
                pid: call.tid,
                tid: call.tid,
                process: if call.thread.is_empty() {
                    calls.command.clone().unwrap_or_default()
                } else {
                    call.thread.clone()
                },
                thread: call.thread.clone(),
            },
            ..Asker::default()
        },
        holders: Vec::new(),
        chain: Vec::new(),
        deadlock: false,
        ran_instead: Vec::new(),
        queue: None,
        kernel_stack: Vec::new(),
        why_unknown: classified.why_unknown,
        tcp: None,
        read_at: observed.place(&call.quote),
    }
}

fn resource(mut resource: Resource, call: &CallTime) -> Resource {
    if resource.name.is_empty()
        && let Some(object) = &call.object
    {
        resource.name.clone_from(object);
    }
    resource
}

/// What a trace calls an object: a path, or the kernel's name for what has none.
fn object(name: &str) -> Object {
    let kind = match name {
        _ if name.starts_with("pipe:") => ObjectKind::Pipe,
        _ if name.starts_with("anon_inode:") => match name.trim_start_matches("anon_inode:") {
            "[eventpoll]" => ObjectKind::Epoll,
            "[eventfd]" => ObjectKind::Eventfd,
            "[timerfd]" => ObjectKind::Timerfd,
            "[signalfd]" => ObjectKind::Signalfd,
            "inotify" | "[inotify]" | "[fanotify]" => ObjectKind::Inotify,
            other => ObjectKind::Anonymous(other.to_owned()),
        },
        "/dev/random" | "/dev/urandom" => ObjectKind::CharDevice(holdup_evidence::DeviceNumber {
            major: 1,
            minor: if name == "/dev/random" { 8 } else { 9 },
        }),
        _ if name.starts_with('/') => ObjectKind::File,
        _ => ObjectKind::Other(0),
    };
    Object {
        kind,
        path: name.starts_with('/').then(|| name.to_owned()),
        inode: 0,
        device: holdup_evidence::DeviceNumber::default(),
        file_system: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::attribute;
    use holdup_evidence::observed::{CallTime, Calls};
    use holdup_evidence::{Cause, Observed};

    fn call(tid: u32, name: &str, object: Option<&str>) -> CallTime {
        CallTime {
            tid,
            call: name.to_owned(),
            object: object.map(str::to_owned),
            count: 1,
            ns: 7_000_000_000,
            max: 7_000_000_000,
            ..CallTime::default()
        }
    }

    fn of(calls: Vec<CallTime>, wall: Option<bool>) -> super::Attributed {
        attribute(&Observed {
            calls: vec![Calls {
                elapsed: Some(10_000_000_000),
                wall,
                calls,
                ..Calls::default()
            }],
            ..Observed::default()
        })
    }

    #[test]
    fn a_call_is_a_wait_for_what_it_was_about() {
        let attributed = of(
            vec![
                call(1, "fsync", Some("/var/lib/x")),
                call(1, "read", Some("/dev/random")),
                call(1, "nanosleep", None),
            ],
            Some(true),
        );
        let causes: Vec<Cause> = attributed.waits.iter().map(|wait| wait.cause).collect();
        assert_eq!(causes, [Cause::DiskSync, Cause::RandomDevice, Cause::TimerSleep]);
        assert_eq!(attributed.waits[0].path_ns, 7_000_000_000);
        assert_eq!(attributed.elapsed, 10_000_000_000);
    }

    #[test]
    fn of_several_threads_nothing_is_on_the_path_and_cpu_time_is_no_wait() {
        let two = of(vec![call(1, "fsync", None), call(2, "fsync", None)], Some(true));
        assert!(two.waits.iter().all(|wait| wait.path_ns == 0 && wait.ns > 0));
        assert_eq!(of(vec![call(1, "fsync", None)], None).waits, []);
    }
}
