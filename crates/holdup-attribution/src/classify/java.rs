//! What a wait of a Java virtual machine's thread was for, by its Java frames: to the kernel all of them are waits for a futex.
//!
//! In: the cause that the kernel's side showed, its call, and the user stack with the Java frames in it. Out: the cause and resource
//! that take its place, where the frames prove them. A method is looked at only behind frames of the runtime or of well-known
//! libraries: what a program's own code waits for inside of a pool's method is not the pool.

use super::objects::named;
use holdup_evidence::{Cause, Frame, Language};
use holdup_knowledge::handlers::has_request;
use holdup_knowledge::java::{
    IDLE, LOOPS, NEAR, POOLS, TASKS, asker, bare, class, is, method, of_library, of_pool, of_runtime,
    waits_for_child,
};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::attributed::{Awaits, Common, JavaLock, SleepsBy};

/// The file that holds the virtual machine, and the one that starts it.
const JVM: &str = "libjvm.so";
const LAUNCHER: &str = "libjli.so";

/// Native methods in which a thread is parked, waits for a notification, sleeps.
const PARK: &[&str] = &[
    "jdk.internal.misc.Unsafe.park",
    "sun.misc.Unsafe.park",
    "java.lang.VirtualThread.park",
];
/// The method in which a virtual thread sleeps, and those that take it off its carrier.
const SLEEPS_VIRTUALLY: &[&str] = &["java.lang.VirtualThread.sleepNanos"];
const YIELDS: &[&str] = &[
    "jdk.internal.vm.Continuation.",
    "java.lang.VirtualThread.yieldContinuation",
];
const WAIT: &[&str] = &["java.lang.Object.wait"];
const SLEEP: &[&str] = &["java.lang.Thread.sleep"];

/// Locks of `java.util.concurrent`, by the methods that take them, and how they are called.
const LOCKS: &[(&str, &str, JavaLock)] = &[
    (
        "java.util.concurrent.locks.ReentrantLock.",
        "ReentrantLock",
        JavaLock::Lock,
    ),
    (
        "java.util.concurrent.locks.ReentrantReadWriteLock$",
        "ReentrantReadWriteLock",
        JavaLock::Lock,
    ),
    (
        "java.util.concurrent.locks.StampedLock.",
        "StampedLock",
        JavaLock::Lock,
    ),
    (
        "java.util.concurrent.Semaphore.",
        "Semaphore",
        JavaLock::Semaphore,
    ),
];

/// Methods of the queued synchroniser that wait until it can be acquired.
const ACQUIRE: &[&str] = &[
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.doAcquire",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.tryAcquire",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.parkAndCheckInterrupt",
    "java.util.concurrent.locks.AbstractQueuedLongSynchronizer.",
    "java.util.concurrent.locks.StampedLock.acquire",
];

/// The virtual machine's functions in which a thread waits for a monitor, whoever enters it: the interpreter, compiled code, JNI.
/// OpenJDK's builds have their names in them.
const ENTERS_MONITOR: &[&str] = &["ObjectMonitor::enter", "ObjectMonitor::EnterI"];

/// The same after a notification: who is notified must have the monitor again before it goes on.
const ENTERS_AGAIN: &[&str] = &[
    "ObjectMonitor::ReenterI",
    "ObjectMonitor::reenter",
    "ObjectMonitor::enter",
];

/// The virtual machine's functions in which a thread waits until another has initialised a class.
const INITIALISES_CLASS: &[&str] = &["InstanceKlass::initialize", "InstanceKlass::wait_for_init"];

/// The virtual machine's function by which the first thread of a program ends it.
const ENDS: &str = "jni_DestroyJavaVM";

/// The C library's functions that wait for a mutex.
const LOCKS_MUTEX: &[&str] = &["lll_lock_wait", "mutex_lock", "mutex_cond_lock"];

/// The method in which a thread, or a virtual one that keeps its carrier, is parked until the machine's own threads that poll say that
/// something has come to a socket.
const POLLS: &str = "sun.nio.ch.Poller.poll";

/// What the methods of the runtime that wait so are called, and what they wait for. Of others it is data.
const SOCKETS: [(&str, Cause); 4] = [
    ("connect", Cause::NetConnect),
    ("accept", Cause::NetAccept),
    ("write", Cause::NetSend),
    ("send", Cause::NetSend),
];

/// What a stack shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    /// A lock that somebody has: of which kind, and its name.
    Lock(JavaLock, String),
    /// Something that another thread of the process does: of which kind, and its name.
    Awaits(Awaits, String),
    /// Something that comes to a socket, or room in it.
    Socket(Cause),
    /// Time.
    Sleeps,
    /// Work.
    Idle,
}

/// What a wait of a JVM's thread was for; `None` where the stack shows no more than the kernel did, or is of another program.
pub(super) fn of_stack(cause: Cause, call: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    let futex = system_calls::is_named(call, Does::WaitsForFutex);
    let frames: Vec<&str> = stack
        .iter()
        .filter(|frame| frame.language == Language::Java)
        .filter_map(|frame| frame.symbol.as_deref())
        .collect();
    if frames.is_empty() {
        let own = futex && matches!(cause, Cause::LockFutex | Cause::TimerSleep);
        return match called_from_java(stack) {
            Some(native) => own.then(|| by_native(call, native))?,
            None => (own && (of_machine(stack) || awaits_end(stack)))
                .then(|| idle(call, Common::JvmOwnWork.name())),
        };
    }
    if !futex {
        let polls = matches!(cause, Cause::PollWait | Cause::IpcQueue | Cause::NetReceive);
        return (polls && is_idle(near(&frames))).then(|| idle(call, "work from another thread"));
    }
    if !matches!(cause, Cause::LockFutex | Cause::TimerSleep | Cause::Idle) {
        return None;
    }
    let natives: Vec<&str> = stack
        .iter()
        .take_while(|frame| frame.language != Language::Java)
        .filter_map(|frame| frame.symbol.as_deref())
        .collect();
    let shown = shown(&natives, &frames)?;
    Some(match (shown, cause) {
        (Shown::Lock(kind, name), _) => {
            let resource = named(ResourceKind::Lock, name).with(|facts| facts.java_lock = Some(kind));
            (Cause::LockMonitor, resource.in_call(call.unwrap_or("futex")))
        }
        (Shown::Idle, _) => idle(call, "work from another thread"),
        (Shown::Socket(awaits), _) => {
            let resource = Resource::of(Common::UnseenSocket);
            (awaits, resource.in_call(call.unwrap_or("futex")))
        }
        // What a server's thread without a request waits for is work, unless it has some in hand: what it wants to put into a queue, or what
        // it needs another's result for.
        (Shown::Awaits(kind, _), Cause::Idle) if !has_work(kind, &frames, stack) => return None,
        (Shown::Sleeps, Cause::Idle) if !has_request(stack) => return None,
        // A time limit that passed was a pause.
        (Shown::Awaits(Awaits::Queue | Awaits::Room | Awaits::Signal, _), Cause::TimerSleep) => {
            return None;
        }
        (Shown::Awaits(kind, name), _) => {
            let resource = named(ResourceKind::Lock, name).with(|facts| facts.awaits = Some(kind));
            (Cause::LockFutex, resource.in_call(call.unwrap_or("futex")))
        }
        (Shown::Sleeps, _) => sleeps(call),
    })
}

/// What a virtual thread that waits is said to wait for, by its collector: a monitor.
const MONITOR: &str = "monitor";

/// What a virtual thread waits for, and its name, by its own frames; `reason`: the runtime's word for its state.
pub fn virtual_thread(reason: Option<&str>, stack: &[Frame]) -> (Cause, String, Option<JavaLock>) {
    let symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    let yields = |frame: &&str| YIELDS.iter().any(|start| frame.starts_with(start));
    let frames: Vec<&str> = symbols.skip_while(yields).collect();
    // Where it stands is reported beside it.
    let without_place = |name: String| name.split(" in ").next().unwrap_or_default().to_owned();
    if reason == Some(MONITOR) {
        return (
            Cause::LockMonitor,
            "a monitor".to_owned(),
            Some(JavaLock::Monitor),
        );
    }
    if near(&frames).iter().any(|frame| any(frame, SLEEPS_VIRTUALLY)) {
        return (Cause::TimerSleep, "a timer".to_owned(), None);
    }
    let parked = frames
        .first()
        .is_some_and(|frame| any(frame, PARK) || any(frame, WAIT));
    match parked.then(|| shown(&[], &frames)).flatten() {
        Some(Shown::Lock(kind, name)) => (Cause::LockMonitor, without_place(name), Some(kind)),
        Some(Shown::Awaits(_, name)) => (Cause::LockFutex, name, None),
        Some(Shown::Socket(cause)) => (cause, "a socket".to_owned(), None),
        Some(Shown::Sleeps) => (Cause::TimerSleep, "a timer".to_owned(), None),
        Some(Shown::Idle) => (Cause::Idle, "work from another thread".to_owned(), None),
        None => (Cause::Unknown, String::new(), None),
    }
}

/// Whether a parked virtual thread waits for room in a queue.
pub fn waits_for_room(stack: &[Frame]) -> bool {
    let symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    let yields = |frame: &&str| YIELDS.iter().any(|start| frame.starts_with(start));
    let frames: Vec<&str> = symbols.skip_while(yields).collect();
    matches!(shown(&[], &frames), Some(Shown::Awaits(Awaits::Room, _)))
}

/// The outermost method of a thread that the program has started.
const STARTED: &str = "java.lang.Thread.run";

/// Whether a thread that waits for what others do has work in hand meanwhile.
fn has_work(awaits: Awaits, frames: &[&str], stack: &[Frame]) -> bool {
    match awaits {
        Awaits::Room => true,
        // Who hands a client what comes, as it comes, takes that from a queue.
        Awaits::Signal => has_request(stack),
        // The first thread of a program waits so for the program's end.
        Awaits::Task => of_pool(frames) || frames.last().is_some_and(|frame| is(frame, STARTED)),
        Awaits::Queue => false,
    }
}

fn sleeps(call: Option<&str>) -> (Cause, Resource) {
    let timer = Resource::of(Common::Timer);
    let resource = timer.with(|facts| facts.sleeps = Some(SleepsBy::ThreadSleep));
    (Cause::TimerSleep, resource.in_call(call.unwrap_or("futex")))
}

/// Where Java frames could not be read, but the virtual machine's own show that Java code runs beneath: the function by which that asked,
/// empty if it has no name here. Such a thread is a program's, whatever the rest of its stack looks like.
fn called_from_java(stack: &[Frame]) -> Option<&str> {
    let symbols = || stack.iter().filter_map(|frame| frame.symbol.as_deref());
    symbols()
        .any(|name| name.starts_with("JavaCalls::call"))
        .then(|| {
            symbols()
                .find(|name| name.starts_with("JVM_"))
                .unwrap_or_default()
        })
}

/// What it waits for by that function.
fn by_native(call: Option<&str>, native: &str) -> Option<(Cause, Resource)> {
    match native {
        "JVM_Sleep" => Some(sleeps(call)),
        "JVM_WaitForReferencePendingList" => Some(idle(call, Common::JvmOwnWork.name())),
        _ => None,
    }
}

fn idle(call: Option<&str>, work: &str) -> (Cause, Resource) {
    let resource = named(ResourceKind::Name, work);
    (Cause::Idle, resource.in_call(call.unwrap_or("futex")))
}

/// A thread that is the virtual machine's own wherever a stack of it was taken is that also where none was: its waits for a futex
/// there are for work, too.
pub fn machines_own(rows: &mut [AttributedWait]) {
    let own =
        |row: &AttributedWait| row.cause == Cause::Idle && row.resource.common() == Some(Common::JvmOwnWork);
    let java = |row: &AttributedWait| {
        row.asker
            .stack
            .iter()
            .any(|frame| frame.language == Language::Java)
    };
    let one = rows.iter().all(|row| row.asker.name.tid != 0);
    if !one || rows.iter().any(java) || !rows.iter().any(own) {
        return;
    }
    for row in rows {
        let futex = system_calls::is_named(row.call.as_deref(), Does::WaitsForFutex);
        if row.asker.stack.is_empty() && futex && matches!(row.cause, Cause::LockFutex | Cause::TimerSleep) {
            (row.cause, row.resource) = idle(row.call.as_deref(), Common::JvmOwnWork.name());
        }
    }
}

/// Whether a whole stack is of the virtual machine's own code, as are those of its collectors and compilers, or of the thread that has
/// started it and awaits its end.
fn of_machine(stack: &[Frame]) -> bool {
    let within = |frame: &Frame, file: &str| frame.module.as_deref() == Some(file);
    let of_c = holdup_knowledge::user_code::of_c_library;
    let asks = stack.iter().find(|frame| !of_c(frame));
    // Of its own locks it is nobody's work that it waits for.
    let locks = |frame: &Frame| {
        let name = frame.symbol.as_deref().unwrap_or_default();
        LOCKS_MUTEX.iter().any(|function| name.contains(function))
    };
    if stack.iter().take_while(|frame| of_c(frame)).any(locks) {
        return false;
    }
    // Whoever comes by the launcher into the virtual machine starts it, and waits for that.
    if asks.is_some_and(|frame| within(frame, LAUNCHER)) {
        return true;
    }
    let complete = stack.last().is_some_and(of_c);
    let own = |frame: &Frame| within(frame, JVM) || of_c(frame);
    complete && asks.is_some() && stack.iter().all(own)
}

/// Whether a thread has nothing to do but to end the virtual machine once all others have ended.
fn awaits_end(stack: &[Frame]) -> bool {
    stack.iter().any(|frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        frame.module.as_deref() == Some(JVM) && symbol.starts_with(ENDS)
    })
}

fn near<'f, 'a>(frames: &'f [&'a str]) -> &'f [&'a str] {
    frames.get(..NEAR.min(frames.len())).unwrap_or_default()
}

fn any(frame: &str, list: &[&str]) -> bool {
    list.iter().any(|method| is(frame, method))
}

/// The first frame of these methods, if none but those that `inner` allows are inside of it.
fn first<'a>(frames: &[&'a str], list: &[&str], inner: fn(&str) -> bool) -> Option<&'a str> {
    let at = frames.iter().position(|frame| any(frame, list))?;
    frames[..at].iter().all(|frame| inner(frame)).then(|| frames[at])
}

/// Whether a worker stands where it does without work.
fn is_idle(near: &[&str]) -> bool {
    first(near, IDLE, of_library).is_some() || first(near, LOOPS, of_runtime).is_some()
}

fn shown(natives: &[&str], frames: &[&str]) -> Option<Shown> {
    let top = frames.first()?;
    let near = near(frames);
    let (parked, waits) = (any(top, PARK), any(top, WAIT));
    if any(top, SLEEP) {
        return Some(Shown::Sleeps);
    }
    if !parked && !waits {
        return inside(natives, frames).or_else(|| is_idle(near).then_some(Shown::Idle));
    }
    if waits && called(natives, ENTERS_AGAIN) {
        return Some(Shown::Lock(JavaLock::Monitor, the_monitor(frames)));
    }
    if is_idle(near) {
        return Some(Shown::Idle);
    }
    if let Some(awaits) = socket(near) {
        return Some(Shown::Socket(awaits));
    }
    if let Some(pool) = pool(near) {
        let class = class(pool).rsplit('.').next().unwrap_or(pool);
        return Some(Shown::Lock(
            JavaLock::Pool,
            format!("a free connection of a pool ({class})"),
        ));
    }
    if let Some(task) = first(near, TASKS, of_runtime) {
        return Some(Shown::Awaits(Awaits::Task, awaited(task)));
    }
    if near.iter().any(|frame| waits_for_child(frame)) {
        return Some(Shown::Awaits(
            Awaits::Signal,
            "the end of a child process (Process.waitFor)".to_owned(),
        ));
    }
    if waits {
        return Some(Shown::Awaits(
            Awaits::Signal,
            "a notification (Object.wait)".to_owned(),
        ));
    }
    Some(synchronised(near))
}

/// What a thread that is parked until something has come to a socket waits for.
fn socket(near: &[&str]) -> Option<Cause> {
    let own: Vec<&&str> = near.iter().take_while(|frame| of_runtime(frame)).collect();
    let polls = own.iter().rposition(|frame| bare(frame) == POLLS)?;
    let mut outwards = own[polls + 1..].iter().map(|frame| method(frame).to_lowercase());
    let known = outwards.find_map(|method| {
        let is = |(word, _): &&(&str, Cause)| method.contains(word);
        SOCKETS.iter().find(is).map(|(_, cause)| *cause)
    });
    Some(known.unwrap_or(Cause::NetReceive))
}

/// The method by which a pool is asked, if nothing is inside of it but the runtime and the pool's own classes: one that makes a new
/// connection waits in a driver, for something else.
fn pool<'a>(near: &[&'a str]) -> Option<&'a str> {
    let at = near.iter().position(|frame| any(frame, POOLS))?;
    let own = library(near[at]);
    let inner = |frame: &&str| of_runtime(frame) || frame.starts_with(own);
    near[..at].iter().all(inner).then(|| near[at])
}

/// What the names of a library's classes begin with, by one of them: the first three parts.
fn library(frame: &str) -> &str {
    let third = frame.match_indices('.').nth(2);
    third.map_or(frame, |(at, _)| &frame[..=at])
}

/// Whether one of these functions of the virtual machine is among the native frames.
fn called(natives: &[&str], list: &[&str]) -> bool {
    natives
        .iter()
        .any(|name| list.iter().any(|function| name.contains(function)))
}

/// A monitor of which only the place is known.
fn the_monitor(frames: &[&str]) -> String {
    let mut own = frames.iter().filter(|frame| !any(frame, WAIT));
    let place = own
        .next()
        .map_or_else(String::new, |frame| format!(" in {}", bare(frame)));
    format!("the monitor{place}")
}

/// What the virtual machine itself waits for, for a thread in Java code.
fn inside(natives: &[&str], frames: &[&str]) -> Option<Shown> {
    if called(natives, INITIALISES_CLASS) {
        return Some(Shown::Lock(
            JavaLock::Class,
            "a class to be initialised".to_owned(),
        ));
    }
    called(natives, ENTERS_MONITOR).then(|| Shown::Lock(JavaLock::Monitor, the_monitor(frames)))
}

/// How what another thread does is called.
fn awaited(task: &str) -> String {
    match class(task) {
        "java.lang.Thread" => "the end of a thread (Thread.join)".to_owned(),
        "java.util.concurrent.CountDownLatch" => "a CountDownLatch to open".to_owned(),
        class => {
            let class = class.rsplit('.').next().unwrap_or(class);
            format!("the result of a task ({class}.{})", method(task))
        }
    }
}

/// Where threads meet, by the beginning of the names of its methods, and what one that has come waits for.
const MEETINGS: [(&str, &str); 3] = [
    ("java.util.concurrent.CyclicBarrier.", "others at a CyclicBarrier"),
    ("java.util.concurrent.Phaser.", "others at a Phaser"),
    (
        "java.util.concurrent.Exchanger.",
        "another thread at an Exchanger",
    ),
];

/// What a parked thread waits for, by the runtime's frames that parked it.
fn synchronised(near: &[&str]) -> Shown {
    let own = near.iter().take_while(|frame| of_runtime(frame));
    let runtime: Vec<&str> = own.copied().collect();
    let condition =
        |frame: &&str| frame.contains("$ConditionObject.await") || frame.contains("$ConditionNode.block");
    let acquires = runtime.iter().position(|frame| any(frame, ACQUIRE));
    let awaits = runtime.iter().position(condition);
    let acquires = acquires.filter(|at| awaits.is_none_or(|awaits| *at < awaits));
    if acquires.is_some() {
        let by = runtime
            .iter()
            .find_map(|frame| LOCKS.iter().find(|(start, ..)| is(frame, start)));
        let kind = by.map_or(JavaLock::Lock, |(.., kind)| *kind);
        let by = by.map(|(_, name, _)| *name);
        let place = asker(near).map_or_else(String::new, |frame| format!(" in {}", bare(frame)));
        return Shown::Lock(
            kind,
            format!("the {}{place}", by.unwrap_or("lock of java.util.concurrent")),
        );
    }
    let queue = runtime.iter().rev().find(|frame| {
        let class = class(frame);
        let of_queues = is(frame, "java.util.concurrent.") && !is(frame, "java.util.concurrent.locks.");
        of_queues && (class.contains("Queue") || class.contains("Deque"))
    });
    let met = |(class, _): &&(&str, &str)| runtime.iter().any(|frame| is(frame, class));
    if let Some((_, what)) = MEETINGS.iter().find(met) {
        return Shown::Awaits(Awaits::Signal, (*what).to_owned());
    }
    match queue {
        Some(queue) => {
            let name = class(queue).rsplit('.').next().unwrap_or(queue);
            let puts = ["put", "offer"]
                .iter()
                .any(|start| method(queue).starts_with(start));
            let what = if puts { "room in" } else { "something to take from" };
            let article = match name.starts_with(['A', 'E', 'I', 'O', 'U']) {
                true => "an",
                false => "a",
            };
            let kind = if puts { Awaits::Room } else { Awaits::Queue };
            Shown::Awaits(kind, format!("{what} {article} {name}"))
        }
        None if awaits.is_some() => Shown::Awaits(Awaits::Signal, "a condition to be signalled".to_owned()),
        None => Shown::Awaits(Awaits::Signal, "to be unparked".to_owned()),
    }
}

#[cfg(test)]
#[path = "tests/java.rs"]
mod tests;
