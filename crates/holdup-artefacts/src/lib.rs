//! From what artefacts show to waits, so that the rules about waits judge them as they judge a live run's.
//!
//! In: [`Observed`]. Out: an [`Attributed`] whose waits are the calls that an artefact gives a duration to. Nothing is on a
//! critical path but where one thread was traced: its own time is the elapsed time. What threads of a dump wait for is not
//! here: an instant has no duration.

pub mod clock;
pub mod dumps;
mod objects;
pub mod profile;
pub mod sessions;
mod stacks;

use holdup_attribution::attribution::choose;
use holdup_attribution::classify;
use holdup_attribution::classify::{Classified, Site};
use holdup_evidence::observed::{CallTime, Calls, Refused};
use holdup_evidence::units::duration;
use holdup_evidence::{
    Call, Cause, DeviceNumber, Ns, ObjectId, ObjectKind, Observed, PolledFd, TaskState, ThreadId, WaitMemory,
    Waker,
};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::Disk;
use holdup_model::attributed::{
    Asker, Attributed, AttributedWait, Holder, How, HowKnown, Pace, Resource, Tally, ThreadName,
};
use holdup_model::connections::Connections;
use objects::object;

/// Minor number of `/dev/urandom`.
const URANDOM: u32 = 9;
const POLLIN: u16 = 0x001;
const POLLOUT: u16 = 0x004;

/// Attributes what the artefacts show.
#[must_use]
pub fn attribute(observed: &Observed) -> Attributed {
    let mut attributed = Attributed::default();
    for calls in observed.calls.iter().filter(|calls| calls.wall == Some(true)) {
        add(&mut attributed, observed, calls);
    }
    attributed.waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    let waits = attributed.waits.iter();
    let found = waits.clone().filter(|wait| wait.cause != Cause::Unknown);
    attributed.coverage.observed = attributed.elapsed;
    attributed.coverage.attributed = found.map(|wait| wait.ns).fold(0, Ns::saturating_add);
    let unknown = waits.filter(|wait| wait.cause == Cause::Unknown);
    attributed.coverage.unknown = unknown.map(|wait| wait.ns).fold(0, Ns::saturating_add);
    attributed
}

/// From which length of a call on it can't be the kernel's own work for it: what a call computes for is microseconds, and
/// strace itself makes a call some ten microseconds longer.
const SLOW: Ns = 1_000_000;

/// Up to which length on average calls are the kernel's own work although one of them was longer: it lost its CPU then.
const MAX_OWN_WORK_NS: Ns = 100_000;

/// Adds one trace. Several traces are of several runs: their elapsed times add up.
fn add(attributed: &mut Attributed, observed: &Observed, calls: &Calls) {
    let elapsed = calls.elapsed.unwrap_or(0);
    attributed.elapsed = attributed.elapsed.saturating_add(elapsed);
    let mut threads: Vec<u32> = calls.calls.iter().map(|call| call.tid).collect();
    threads.sort_unstable();
    threads.dedup();
    // Where it is not known who began whom, it is not known who waited for whom: each one's time is its own.
    let way = match () {
        () if calls.followed => Way::Followed,
        () if threads.len() <= 1 => Way::Alone,
        () => Way::Unknown,
    };
    let mut on_the_way: Ns = 0;
    for call in &calls.calls {
        let wait = wait(observed, calls, call, way);
        on_the_way = on_the_way.saturating_add(wait.path_ns);
        // What is short and not reported is the kernel's work for the call, not a wait.
        let short = wait.max < SLOW || wait.ns / wait.count < MAX_OWN_WORK_NS;
        if wait.cause == Cause::Unknown && short {
            on_the_way = on_the_way.saturating_sub(wait.path_ns);
            continue;
        }
        let tally: &mut Tally = attributed.path.entry(wait.cause).or_default();
        tally.ns = tally.ns.saturating_add(wait.path_ns);
        tally.count += wait.count;
        tally.max = tally.max.max(wait.max);
        tally.open |= wait.open;
        attributed.waits.push(wait);
    }
    let rest = elapsed.saturating_sub(on_the_way);
    if way != Way::Unknown && rest > 0 && calls.followed {
        attributed.coverage.not_measured.push((
            format!("{} between calls and in short ones", duration(rest)),
            "a trace of system calls does not separate running from waiting for a CPU or for memory"
                .to_owned(),
            "a profile of the CPU, or `holdup run`".to_owned(),
        ));
    }
    if way == Way::Unknown {
        attributed.coverage.not_measured.push((
            "the thread that the others waited for".to_owned(),
            "the trace has several threads and does not show which thread started which".to_owned(),
            "a trace from the beginning with `strace -f -T -tt -yy`, or `holdup run`".to_owned(),
        ));
    }
    attributed.connections.extend(calls.refused.iter().map(refused));
}

/// What is known of who waited for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The reader has followed it.
    Followed,
    /// There is one thread.
    Alone,
    /// Nothing.
    Unknown,
}

fn refused(peer: &Refused) -> Connections {
    Connections {
        peer: peer.peer.clone(),
        by: ThreadName {
            pid: peer.pid,
            tid: peer.pid,
            process: named(&peer.by, peer.pid),
            thread: String::new(),
        },
        made: peer.made,
        refused: peer.refused,
        slept_ns: peer.slept,
        sleeps: peer.sleeps,
        refused_until: peer.until,
        ..Connections::default()
    }
}

/// The name of a thread, or what to call one that the trace names nowhere.
fn named(name: &str, pid: u32) -> String {
    match (name, pid) {
        ("", 0) => "the traced program".to_owned(),
        ("", pid) => format!("process {pid}"),
        (name, _) => name.to_owned(),
    }
}

/// What a call waited for, from what the trace tells of it.
fn classified(call: &CallTime) -> Classified {
    let object = call
        .object
        .as_deref()
        .filter(|name| !name.starts_with("futex:"))
        .map(object);
    let mut number = Call::named(&call.call);
    // Without arguments: a poll of several things, so that it is not taken for one of nothing.
    number.args = call.args.unwrap_or([1, 2, 1, 0]);
    let polled = object.as_ref().filter(|_| number.args[1] > 0).map(|_| {
        let events = if call.writing { POLLOUT } else { POLLIN };
        PolledFd {
            fd: -1,
            events,
            own: false,
            revents: if call.ready { events } else { 0 },
            object: Some(ObjectId(0)),
        }
    });
    let polls = system_calls::is_named(Some(&call.call), Kind::Polls);
    let memory = WaitMemory {
        returned: call.returned,
        polled: polled.filter(|_| polls).into_iter().collect(),
        polled_truncated: number.args[1] > 1,
        ..WaitMemory::empty(ThreadId(0), 0)
    };
    // A call on a file that takes long is in the uninterruptible sleep of a wait for its disk.
    let on_disk = call.max >= SLOW
        && object
            .as_ref()
            .is_some_and(|object| object.kind == ObjectKind::File);
    let mut classified = classify::wait(&Site {
        call: number,
        state: if on_disk {
            TaskState::Uninterruptible
        } else {
            TaskState::Interruptible
        },
        iowait: on_disk,
        object: object.as_ref(),
        ready: None,
        woken_by_socket: None,
        kernel_stack: None,
        kernel_lock: None,
        nobody_asked: false,
        memory: call.returned.is_some().then_some(&memory),
        objects: &|_| object.as_ref(),
        waker: &Waker::Unknown,
        duration: call.max,
    });
    // The kernel's memory devices compute what is read and wait for nothing; /dev/random is reported before.
    if let Some(ObjectKind::CharDevice(DeviceNumber { major: 1, minor })) =
        object.as_ref().map(|object| &object.kind)
        && classified.cause == Cause::DeviceWait
    {
        classified.cause = if *minor == URANDOM {
            Cause::CpuKernel
        } else {
            Cause::Unknown
        };
    }
    let writes = system_calls::is_named(Some(&call.call), Kind::Writes);
    if on_disk && classified.cause == Cause::Unknown && writes {
        classified.cause = match () {
            () if call.durable => Cause::DiskSync,
            () if call.direct => Cause::DiskWrite,
            () => Cause::Unknown,
        };
    }
    if classified.cause == Cause::Unknown {
        let why = match (&call.object, on_disk) {
            (None, _) => "the trace does not name the object of the call: strace -yy does",
            (Some(_), true) => "a trace of calls does not show what a call on a file waits for",
            (Some(_), false) => "the object of the call does not show the reason of the wait",
        };
        classified.why_unknown = Some(why.to_owned());
    }
    classified
}

fn wait(observed: &Observed, calls: &Calls, call: &CallTime, way: Way) -> AttributedWait {
    let mut found = classified(call);
    let stack = call
        .stack
        .map(|stack| stacks::frames(observed, stack))
        .unwrap_or_default();
    if let Some((cause, resource)) = classify::by_user_stack(found.cause, Some(&call.call), &stack) {
        found.cause = cause;
        found.resource = resource;
    }
    let asking = choose(&stack);
    let count = call.count.max(1);
    let pid = if call.pid == 0 { call.tid } else { call.pid };
    let name = match call.thread.as_str() {
        "" => calls.command.as_deref().unwrap_or_default(),
        name => name,
    };
    AttributedWait {
        cause: found.cause,
        ns: call.ns,
        path_ns: match way {
            Way::Followed => call.main,
            Way::Alone => call.ns,
            Way::Unknown => 0,
        },
        handed_on_ns: if way == Way::Followed { call.handed_on } else { 0 },
        count,
        max: call.max,
        p50: call.median.unwrap_or(call.ns / count),
        p99: call.max,
        max_started: 0,
        max_ended: 0,
        how: How::Exact,
        error: 0,
        open: call.open,
        held_open_ns: 0,
        pace: Pace::Unknown,
        timed_out: call.timed_out,
        call: Some(call.call.clone()),
        bytes: call.bytes,
        resource: resource(found.resource, call),
        asker: Asker {
            name: ThreadName {
                pid,
                tid: call.tid,
                process: named(name, pid),
                thread: call.thread.clone(),
            },
            frame: asking.frame,
            module: asking.module,
            stack,
        },
        holders: call
            .children
            .iter()
            .map(|child| holder(calls, found.cause, child))
            .collect(),
        chain: Vec::new(),
        deadlock: false,
        orphaned: None,
        ran_instead: Vec::new(),
        queue: None,
        kernel_stack: Vec::new(),
        why_unknown: found.why_unknown,
        tcp: None,
        read_at: read_at(observed, calls, call),
        judged_by: None,
        outstanding: 0,
    }
}

/// Where it was read; how far the lengths there can be relied on.
fn read_at(observed: &Observed, calls: &Calls, call: &CallTime) -> String {
    let place = observed.place(&call.quote);
    match calls.at_most {
        true => format!("{place}, up to the next call of the thread: strace -T records the length"),
        false => place,
    }
}

/// A child that was waited for, and what it did meanwhile.
fn holder(calls: &Calls, cause: Cause, (tid, ns): &(u32, Ns)) -> Holder {
    let own = || calls.calls.iter().filter(|call| call.tid == *tid);
    let longest = own().max_by_key(|call| call.main.saturating_add(call.handed_on));
    let name = longest.map(|call| call.thread.clone()).unwrap_or_default();
    let doing = own().map(|call| (call.ns, classified(call).cause));
    let mostly = doing
        .filter(|(_, cause)| *cause != Cause::Unknown)
        .max_by_key(|(ns, _)| *ns);
    Holder {
        name: ThreadName {
            pid: *tid,
            tid: *tid,
            process: named(&name, *tid),
            thread: name,
        },
        how_known: if cause == Cause::IpcPipe {
            HowKnown::PipePeer
        } else {
            HowKnown::Waker
        },
        doing: mostly.map(|(_, cause)| cause),
        ns: *ns,
        stack: Vec::new(),
        place: None,
        others_busy: 0,
    }
}

fn resource(mut resource: Resource, call: &CallTime) -> Resource {
    if resource.name.is_empty()
        && let Some(object) = &call.object
    {
        resource.name.clone_from(object);
    }
    // A trace does not tell on which device a file is.
    let nowhere = Disk::Number(DeviceNumber::default());
    if resource.detail.device.as_ref() == Some(&nowhere) {
        resource.detail.device = None;
    }
    resource
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
    fn memory_devices_compute_and_short_calls_are_no_waits() {
        let mut null = call(1, "write", Some("/dev/null<char 1:3>"));
        null.count = 200_000;
        let attributed = of(
            vec![call(1, "read", Some("/dev/urandom<char 1:9>")), null],
            Some(true),
        );
        let causes: Vec<Cause> = attributed.waits.iter().map(|wait| wait.cause).collect();
        assert_eq!(causes, [Cause::CpuKernel]);
        assert_eq!(attributed.waits[0].resource.name, "/dev/urandom");
    }

    #[test]
    fn of_several_threads_nothing_is_on_the_path_and_cpu_time_is_no_wait() {
        let two = of(vec![call(1, "fsync", None), call(2, "fsync", None)], Some(true));
        assert!(two.waits.iter().all(|wait| wait.path_ns == 0 && wait.ns > 0));
        assert_eq!(of(vec![call(1, "fsync", None)], None).waits, []);
    }
}
