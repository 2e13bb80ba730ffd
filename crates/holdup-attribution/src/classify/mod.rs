//! From the evidence of one wait to its cause and resource.
//!
//! In: the system call, its object, the kernel stack, what the thread's memory said, who woke it. Out: a
//! [`Classified`]. The order in [`wait`] is that of the list of causes ("Which one, when several fit"); what
//! kernel functions mean is data in `functions`, what calls and objects mean in `calls` and `objects`.
//! Nothing is guessed: what cannot be shown is [`Cause::Unknown`] and says why.

mod about;
mod channel;
mod frozen;
mod go;
mod java;
mod naming;
mod node;
mod objects;
mod poll;
mod ruby;
mod runtime;
mod stack;
#[cfg(test)]
mod tests;

pub use channel::{Channel, of_task};
pub use java::{machines_own, virtual_thread, waits_for_room};
pub use naming::name_resource;
pub use objects::{is_connecting, is_over, served_by};
pub use poll::{awaits_room, may_await_room};
pub use runtime::by_user_stack;

use about::{child, object_or, random_generator, resource_for, unknown_resource};
use holdup_evidence::{
    Call, Cause, KernelLock, Ns, Object, ObjectId, ObjectKind, RuntimeLock, RuntimeLockKind, TaskState,
    WaitMemory, Waker,
};
use holdup_knowledge::calls::Kind;
use holdup_knowledge::functions::Rank;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_knowledge::{calls, system_calls};
use holdup_model::attributed::{Common, Copies, JavaLock, Spin};
use holdup_model::attributed::{Resource, ResourceKind};
use objects::{Use, named};
use stack::{Stack, Verdict};

/// The evidence of one wait.
pub struct Site<'a> {
    /// The system call the thread was in.
    pub call: Call,
    /// Kind of sleep.
    pub state: TaskState,
    /// Whether the kernel counted it as waiting for I/O.
    pub iowait: bool,
    /// What the call was about.
    pub object: Option<&'a Object>,
    /// epoll: the first descriptor that was ready.
    pub ready: Option<&'a Object>,
    /// The socket that became ready just before an interrupt woke the thread.
    pub woken_by_socket: Option<&'a Object>,
    /// Kernel functions, innermost first.
    pub kernel_stack: Option<&'a [String]>,
    /// The lock in the kernel that it slept for, where the kernel tells.
    pub kernel_lock: Option<&'a KernelLock>,
    /// io_uring: whether every request that was made on the ring had completed as it began.
    pub nobody_asked: bool,
    /// What the thread's memory said after the wait.
    pub memory: Option<&'a WaitMemory>,
    /// Looks up the objects of `memory`.
    pub objects: &'a dyn Fn(ObjectId) -> Option<&'a Object>,
    /// Who or what ended it.
    pub waker: &'a Waker,
    /// How long it was, in nanoseconds.
    pub duration: Ns,
}

/// What a wait, or a stretch of CPU time, was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// What the time was for.
    pub cause: Cause,
    /// What it was about.
    pub resource: Resource,
    /// Whether it ended because its time ran out rather than by what was waited for.
    pub timed_out: bool,
    /// The bytes the call asked for.
    pub bytes: Option<u64>,
    /// The call's name.
    pub call: Option<&'static str>,
    /// For [`Cause::Unknown`]: why it could not be determined.
    pub why_unknown: Option<String>,
}

impl Classified {
    /// A wait for a lock that a runtime keeps.
    #[must_use]
    pub fn runtime_lock(call: &Call, lock: &RuntimeLock) -> Classified {
        let (kind, cause) = match lock.kind {
            RuntimeLockKind::Monitor => (Some(JavaLock::Monitor), Cause::LockMonitor),
            RuntimeLockKind::Lock => (Some(JavaLock::Lock), Cause::LockMonitor),
            RuntimeLockKind::Class => (Some(JavaLock::Class), Cause::LockMonitor),
            RuntimeLockKind::Mutex
            | RuntimeLockKind::Recursive
            | RuntimeLockKind::Queued
            | RuntimeLockKind::Semaphore => (None, Cause::LockFutex),
            RuntimeLockKind::Global => (None, Cause::RuntimeInterpreter),
        };
        let name = match (lock.kind, lock.identity) {
            // There is one in a process.
            (RuntimeLockKind::Global, _) => lock.class.clone(),
            (RuntimeLockKind::Class, _) => format!("class {} to be initialised", lock.class),
            (_, 0) => lock.class.clone(),
            (_, identity) => format!("{}@{identity:x}", lock.class),
        };
        let resource = named(ResourceKind::Lock, name).with(|facts| {
            facts.java_lock = kind;
            facts.call = call.name().map(str::to_owned);
        });
        Classified {
            cause,
            resource,
            timed_out: false,
            bytes: None,
            call: call.name(),
            why_unknown: None,
        }
    }

    /// A wait for time to pass.
    #[must_use]
    pub fn sleep(call: &Call) -> Classified {
        let resource = Resource::of(Common::Timer);
        Classified {
            cause: Cause::TimerSleep,
            resource: match call.name() {
                Some(name) => resource.in_call(name),
                None => resource,
            },
            timed_out: true,
            bytes: None,
            call: call.name(),
            why_unknown: None,
        }
    }

    /// A wait for work, in words.
    #[must_use]
    pub fn idle(call: &Call, work: String) -> Classified {
        let mut resource = named(ResourceKind::Name, work);
        if let Some(name) = call.name() {
            resource = resource.in_call(name);
        }
        Classified {
            cause: Cause::Idle,
            resource,
            timed_out: false,
            bytes: None,
            call: call.name(),
            why_unknown: None,
        }
    }
}

/// `-ETIMEDOUT`: the time limit of a lock, connection or queue passed.
const ETIMEDOUT: i64 = -110;
/// `-EAGAIN`: the same from a receive or a semaphore that had blocked; `-ETIME` from `io_uring_enter`.
const ETIMEDOUT_OR_AGAIN: [i64; 3] = [ETIMEDOUT, -11, -62];
/// Why short waits may stay unknown.
const NO_STACK: &str = "no kernel stack was sampled for these short waits";

/// Why nobody knows in which call the kernel worked.
const NO_CALL_SHOWN: &str = "samples of /proc do not show the call of a running thread; tracing does";

/// Of short waits: where not even the call was seen.
const UNTOLD: &str = "it ended before its call could be read, or reading it is not permitted";

/// Classifies a wait.
#[must_use]
pub fn wait(site: &Site) -> Classified {
    let kind = calls::kind(&site.call);
    let stack = site
        .kernel_stack
        .filter(|frames| !frames.is_empty())
        .map(Stack::new);
    let found = by_state(site)
        .or_else(|| by_strong_stack(site, stack.as_ref(), kind))
        .or_else(|| frozen::by_name(site, kind))
        .or_else(|| by_call(site, stack.as_ref(), kind))
        .or_else(|| by_weak_stack(site, stack.as_ref(), kind))
        .or_else(|| by_object_alone(site, stack.is_some(), kind))
        .or_else(|| kernel_thread_idle(site));
    let mut result = Classified {
        cause: Cause::Unknown,
        resource: Resource::default(),
        timed_out: false,
        bytes: calls::bytes(&site.call),
        call: site.call.name(),
        why_unknown: None,
    };
    match found {
        Some(found) => {
            result.cause = found.cause;
            result.resource = found.resource;
            result.timed_out = found.timed_out;
        }
        None => {
            result.resource = unknown_resource(site, stack.as_ref());
            result.why_unknown = Some(why_unknown(site, stack.as_ref()));
        }
    }
    if let Some(call) = result.call {
        result.resource.detail.call = Some(call.to_owned());
    }
    result
}

/// Which kind of server a file's data is waited for from, as a kernel stack shows it: a FUSE daemon or another machine.
#[must_use]
pub fn served_by_stack(frames: &[String]) -> Option<Cause> {
    let shown = Stack::new(frames).verdict(false, false, Kind::Other)?.cause;
    matches!(shown, Cause::FsFuse | Cause::FsNetwork).then_some(shown)
}

/// Classifies time on a CPU.
#[must_use]
pub fn on_cpu(
    call: Call,
    user: bool,
    object: Option<&Object>,
    kernel_stack: Option<&[String]>,
) -> Classified {
    let frames = kernel_stack.unwrap_or_default();
    let stack = Stack::new(frames);
    let unseeded = ["try_to_generate_entropy", "wait_for_random_bytes"];
    let name = call.name();
    let (cause, mut resource) = if !user && unseeded.iter().any(|function| stack.contains(function)) {
        (Cause::RandomUnseeded, random_generator())
    } else if user {
        (Cause::CpuUser, named(ResourceKind::Name, ""))
    } else if let Some((work, what)) = stack.memory_work() {
        let resource = named(ResourceKind::Kernel, what).with(|facts| facts.memory_work = Some(work));
        (Cause::CpuKernel, resource)
    } else if let Some(object) = object {
        (Cause::CpuKernel, objects::resource(object))
    } else {
        let fault = ["exc_page_fault", "do_user_addr_fault", "do_mem_abort"];
        let fault = fault.iter().any(|entry| stack.contains(entry));
        let what = name.unwrap_or(if fault { "page fault" } else { "kernel" });
        (Cause::CpuKernel, named(ResourceKind::Kernel, what))
    };
    if cause == Cause::CpuKernel
        && let Some(function) = stack::spins_for(frames)
    {
        let of = std::mem::replace(&mut resource.name, format!("spinlock in {function}"));
        resource.kind = ResourceKind::Lock;
        resource.detail.spinlock = Some(function.to_owned());
        resource.detail.of = Some(of);
    }
    if cause == Cause::CpuKernel && calls::poll_limit_ms(&call) == Some(Some(0)) {
        resource.detail.spins = Some(Spin::PollsWithoutWaiting);
    }
    if cause == Cause::CpuKernel && name == Some("sched_yield") {
        resource.detail.spins = Some(Spin::Yield);
    }
    if cause == Cause::CpuKernel && calls::copies_memory(&call) {
        resource.detail.copies = Some(Copies::Memory);
    }
    if let Some(name) = name.filter(|_| !user) {
        resource = resource.in_call(name);
    }
    Classified {
        cause,
        resource,
        timed_out: false,
        bytes: if user { None } else { calls::bytes(&call) },
        call: name.filter(|_| !user),
        why_unknown: (!user && call.number == Call::UNTOLD).then(|| NO_CALL_SHOWN.to_owned()),
    }
}

/// A cause and what it is about.
struct Found {
    cause: Cause,
    resource: Resource,
    timed_out: bool,
}

impl Found {
    fn new(cause: Cause, resource: Resource) -> Option<Found> {
        Some(Found {
            cause,
            resource,
            timed_out: false,
        })
    }
}

/// A kernel thread that sleeps in its own main function, and in nothing that this called, waits to be given work.
fn kernel_thread_idle(site: &Site) -> Option<Found> {
    let [function, under, ..] = site.kernel_stack? else {
        return None;
    };
    let own = under == "kthread" || (function == "kthreadd" && under == "ret_from_fork");
    own.then(|| Found::new(Cause::Idle, named(ResourceKind::Name, "work for the kernel")))?
}

/// Stopped and frozen are the scheduler's word.
fn by_state(site: &Site) -> Option<Found> {
    match site.state {
        TaskState::Stopped => Found::new(
            Cause::ProcessStopped,
            named(ResourceKind::Process, "a stop signal"),
        ),
        TaskState::Traced => Found::new(Cause::ProcessStopped, named(ResourceKind::Process, "a tracer")),
        TaskState::Frozen => Found::new(Cause::ProcessFrozen, named(ResourceKind::Cgroup, "a freezer")),
        _ => None,
    }
}

/// What a stack shows that beats the system call; and the calls that beat the waits under them.
fn by_strong_stack(site: &Site, stack: Option<&Stack>, kind: Kind) -> Option<Found> {
    let shown = stack
        .and_then(|stack| verdict(site, stack, kind))
        .filter(|shown| shown.rank < Rank::Object);
    let by_call = match kind {
        Kind::Sync => Some((Rank::Sync, Cause::DiskSync)),
        Kind::Exec => Some((Rank::Edge, Cause::ProcessExec)),
        Kind::Exit => Some((Rank::Edge, Cause::ProcessExit)),
        _ => None,
    };
    let (cause, function) = match (shown, by_call) {
        (Some(shown), Some((rank, cause))) if rank <= shown.rank => (cause, Some(shown.function)),
        (Some(shown), _) if shown.cause == Cause::LockKernel => (lock_of(site), Some(shown.function)),
        (Some(shown), _) => (shown.cause, Some(shown.function)),
        (None, Some((_, cause))) => (cause, None),
        (None, None) if unexplained_lock(site, stack, kind) => {
            (lock_of(site), stack.and_then(Stack::innermost))
        }
        (None, None) => return None,
    };
    let cause = served_elsewhere(site, cause, kind);
    Found::new(cause, resource_for(site, cause, function, kind))
}

/// The cause of a wait for a lock in the kernel.
fn lock_of(site: &Site) -> Cause {
    match site.kernel_lock {
        Some(lock) if lock.address_space.is_some() => Cause::MemMmaplock,
        _ => Cause::LockKernel,
    }
}

/// Whether the kernel tells of a lock, and the stack, where there is one, shows functions that tell nothing else.
fn unexplained_lock(site: &Site, stack: Option<&Stack>, kind: Kind) -> bool {
    site.kernel_lock.is_some() && stack.is_none_or(|stack| verdict(site, stack, kind).is_none())
}

/// Calls and objects that decide by themselves.
fn by_call(site: &Site, stack: Option<&Stack>, kind: Kind) -> Option<Found> {
    let unrecognised =
        stack.is_some_and(|stack| stack.innermost().is_some() && verdict(site, stack, kind).is_none());
    // These sleep interruptibly. An uninterruptible sleep in functions that nobody knows is something else.
    let doubtful = unrecognised && site.state == TaskState::Uninterruptible;
    let certain = !doubtful;
    match kind {
        Kind::Poll | Kind::Epoll if certain => {
            let poll::Polled {
                cause,
                resource,
                timed_out,
            } = poll::classify(site, kind);
            Some(Found {
                cause,
                resource,
                timed_out,
            })
        }
        Kind::Futex if certain => Some(futex(site)),
        Kind::Sleep if certain => Found::new(Cause::TimerSleep, Resource::of(Common::Timer)),
        Kind::Signal if certain => with_limit(site, Cause::IpcSignal, Resource::of(Common::Signal)),
        Kind::Random => Found::new(Cause::RandomUnseeded, random_generator()),
        Kind::Child if certain => Found::new(Cause::ProcessChild, child(&site.call)),
        Kind::Vfork if !unrecognised => Found::new(Cause::ProcessChild, Resource::of(Common::Child)),
        Kind::FileLock if certain => with_limit(site, Cause::LockFile, object_or(site, "a file")),
        Kind::Semaphore if certain => {
            let set = site.call.args[0];
            let resource = named(ResourceKind::Lock, format!("System V semaphore set {set}"));
            let resource = resource.with(|facts| facts.semaphore_set = Some(set));
            with_limit(site, Cause::LockSysv, resource)
        }
        Kind::Queue if certain => {
            let system_v = system_calls::is(&site.call, Does::SystemV);
            let resource = if system_v {
                named(
                    ResourceKind::Kernel,
                    format!("System V message queue {}", site.call.args[0]),
                )
            } else {
                object_or(site, "a message queue")
            };
            with_limit(site, Cause::IpcQueue, resource)
        }
        Kind::Async if certain && site.nobody_asked => Found::new(
            Cause::Idle,
            named(ResourceKind::Name, "a request to be made on its io_uring"),
        ),
        Kind::Async if certain => {
            let completed = site.memory.and_then(|memory| memory.completed);
            let resource = match completed.and_then(|id| (site.objects)(id)) {
                Some(object) => objects::resource(object),
                None => object_or(site, "asynchronous I/O"),
            };
            with_limit(site, Cause::IoAsync, resource)
        }
        Kind::Read | Kind::Receive if certain => used(site, Use::In),
        Kind::Write | Kind::Send if certain => used(site, Use::Out),
        Kind::Connect if certain => used(site, Use::Connect),
        Kind::Accept if certain => used(site, Use::Accept),
        Kind::Open => opened(site),
        _ => None,
    }
}

/// What a stack shows of one kind of object, or of the kernel's own work.
fn by_weak_stack(site: &Site, stack: Option<&Stack>, kind: Kind) -> Option<Found> {
    let stack = stack?;
    if let Some(shown) = verdict(site, stack, kind) {
        if shown.cause == Cause::PollWait {
            let poll::Polled {
                cause,
                resource,
                timed_out,
            } = poll::classify(site, Kind::Poll);
            return Some(Found {
                cause,
                resource,
                timed_out,
            });
        }
        let cause = match shown.cause {
            Cause::NetReceive | Cause::NetSend if site.object.is_some_and(objects::asks_for_names) => {
                Cause::NetDns
            }
            cause => cause,
        };
        return with_limit(site, cause, resource_for(site, cause, Some(shown.function), kind));
    }
    // The rest of a nanosleep keeps no frame of its own: all of it counts as scheduler.
    if kind == Kind::Restart && stack.innermost().is_none() {
        return Found::new(Cause::TimerSleep, Resource::of(Common::Timer));
    }
    None
}

/// What is left: a device's driver, or a file in an uninterruptible sleep.
fn by_object_alone(site: &Site, have_stack: bool, kind: Kind) -> Option<Found> {
    let object = site.object?;
    if kind == Kind::Ioctl {
        let cause = objects::cause(object, Use::Control)?;
        return Found::new(cause, objects::resource(object));
    }
    let file = matches!(
        object.kind,
        ObjectKind::File | ObjectKind::Directory | ObjectKind::BlockDevice(_)
    );
    let asleep = site.state == TaskState::Uninterruptible;
    let cause = match kind {
        Kind::Read | Kind::Metadata | Kind::None if objects::is_virtual(&object.file_system) => return None,
        Kind::Read if file && asleep && !have_stack => Cause::DiskRead,
        Kind::Metadata if file && asleep && site.iowait && !have_stack => Cause::DiskRead,
        Kind::None if object.kind == ObjectKind::File && asleep && site.iowait && !have_stack => {
            Cause::MemPagefault
        }
        _ => return None,
    };
    let cause = served_elsewhere(site, cause, kind);
    Found::new(cause, objects::resource(object))
}

fn on_disk(object: &Object) -> bool {
    matches!(
        object.kind,
        ObjectKind::File | ObjectKind::Directory | ObjectKind::BlockDevice(_)
    )
}

/// What the stack shows, for this wait's state and call.
fn verdict<'a>(site: &Site, stack: &Stack<'a>, kind: Kind) -> Option<Verdict<'a>> {
    // Only of a file do the call's own words tell which way a disk was used.
    let file = site.object.is_none_or(on_disk);
    let kind = if file { kind } else { Kind::Other };
    stack.verdict(site.state == TaskState::Uninterruptible, site.iowait, kind)
}

/// FUSE and network file systems beat what looks like a disk on this machine: a page that a daemon delivers
/// is waited for as any other page is.
fn served_elsewhere(site: &Site, cause: Cause, kind: Kind) -> Cause {
    let disk = matches!(
        cause,
        Cause::DiskRead
            | Cause::DiskWrite
            | Cause::DiskSync
            | Cause::DiskJournal
            | Cause::DiskDiscard
            | Cause::MemPagefault
            | Cause::ProcessExec
    );
    // In a system call the object is the call's, and the page is another file's.
    let another = cause == Cause::MemPagefault && kind != Kind::None;
    let server = site
        .object
        .filter(|_| !another)
        .and_then(|object| served_by(&object.file_system));
    server.filter(|_| disk).unwrap_or(cause)
}

/// A call on an object that decides.
fn used(site: &Site, used: Use) -> Option<Found> {
    let object = site.object.or(site.woken_by_socket)?;
    let cause = objects::cause(object, used)?;
    let mut resource = objects::resource(object);
    // A Unix socket has no peer before it is connected: it is the one that was asked for.
    let asked = site.memory.and_then(|memory| memory.path.as_ref());
    if let Some(path) = asked.filter(|_| used == Use::Connect) {
        resource.name.clone_from(path);
    }
    with_limit(site, cause, resource)
}

/// An open that waits for the other end of a FIFO, or for what has been put in `/dev/random`'s place.
fn opened(site: &Site) -> Option<Found> {
    let path = site.memory.and_then(|memory| memory.path.as_deref());
    if let Some(path) = path.filter(|path| objects::is_random_path(path)) {
        return Found::new(Cause::RandomDevice, named(ResourceKind::Device, path));
    }
    let object = site
        .object
        .filter(|object| object.kind == ObjectKind::Fifo || objects::is_random(object))?;
    Found::new(objects::cause(object, Use::In)?, objects::resource(object))
}

/// A futex: a lock or condition, unless it only served to let time pass.
fn futex(site: &Site) -> Found {
    let lock = Resource::futex(site.call.args[0]);
    let returned = site.memory.and_then(|memory| memory.returned);
    let expired = match returned {
        Some(value) => value == ETIMEDOUT,
        None => matches!(site.waker, Waker::Interrupt { socket: None, .. }),
    };
    let slept = expired && calls::futex_with_limit(&site.call);
    let (cause, resource) = if slept {
        let timer = Resource::of(Common::Timer);
        (
            Cause::TimerSleep,
            timer.with(|facts| facts.address.clone_from(&lock.detail.address)),
        )
    } else {
        (Cause::LockFutex, lock)
    };
    Found {
        cause,
        resource,
        timed_out: slept || returned == Some(ETIMEDOUT),
    }
}

/// Adds whether the call's time limit ended it.
fn with_limit(site: &Site, cause: Cause, resource: Resource) -> Option<Found> {
    let returned = site.memory.and_then(|memory| memory.returned);
    let timed_out = returned.is_some_and(|value| ETIMEDOUT_OR_AGAIN.contains(&value));
    Some(Found {
        cause,
        resource,
        timed_out,
    })
}

fn why_unknown(site: &Site, stack: Option<&Stack>) -> String {
    match (stack.map(Stack::innermost), site.kernel_stack) {
        (Some(Some(function)), _) => {
            format!("it slept in the kernel function {function}, which holdup does not know")
        }
        (Some(None), _) => "its kernel stack shows only the system call entry".to_owned(),
        (None, Some(_)) => "kernel symbols are hidden, so its kernel stack has no names".to_owned(),
        (None, None) if site.call.number == Call::UNTOLD => UNTOLD.to_owned(),
        (None, None) => NO_STACK.to_owned(),
    }
}
