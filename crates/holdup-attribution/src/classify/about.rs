//! What a wait was about: its object where it can be that, else a path, a function, or plain words.

use super::objects;
use super::objects::{Use, named};
use super::stack::Stack;
use super::{Site, futex, on_disk};
use holdup_evidence::{Call, Cause, Object, ObjectKind};
use holdup_knowledge::calls::Kind;
use holdup_knowledge::functions::families;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Child;
use holdup_model::attributed::Common;
use holdup_model::attributed::{Resource, ResourceKind};

/// What a wait that the stack decided was about: the call's object where it can be that, else the function.
pub(super) fn resource_for(site: &Site, cause: Cause, function: Option<&str>, kind: Kind) -> Resource {
    let by_function =
        |kind, name: &str| named(kind, name).with(|facts| facts.function = function.map(str::to_owned));
    let path = site.memory.and_then(|memory| memory.path.clone());
    let of_path = |otherwise: &str| match &path {
        Some(path) => named(ResourceKind::File, path.clone()),
        None => by_function(ResourceKind::Kernel, otherwise),
    };
    match cause {
        Cause::MemReclaim => by_function(ResourceKind::Kernel, "free memory"),
        Cause::MemLimit => by_function(ResourceKind::Cgroup, "memory.high"),
        Cause::MemSwapin => by_function(ResourceKind::Device, "swap"),
        Cause::MemMmaplock => {
            let resource = by_function(ResourceKind::Lock, "the address space lock (mmap_lock)");
            let space = site.kernel_lock.and_then(|lock| lock.address_space);
            resource.with(|facts| facts.address_space_of = space)
        }
        Cause::MemUserfault => by_function(ResourceKind::Process, "a userfaultfd handler"),
        Cause::LockKernel => {
            let resource = named(ResourceKind::Lock, function.unwrap_or("a kernel lock"));
            let locked = site.kernel_lock.and_then(|lock| (site.objects)(lock.object?));
            let object = locked
                .or(site.object)
                .map(|object| objects::resource(object).name);
            resource.with(|facts| facts.object = object)
        }
        Cause::KernelWork | Cause::Unknown => match site.object {
            Some(object) if objects::cause(object, Use::In) == Some(cause) => objects::resource(object),
            _ => named(ResourceKind::Kernel, function.unwrap_or("the kernel")),
        },
        Cause::SecurityDecision => {
            let resource = by_function(ResourceKind::Process, decides(function));
            // Of a descriptor the kernel asks nobody about opening it; the name that was asked for is the file.
            let file = path.filter(|_| function.is_some_and(families::of_fanotify));
            resource.with(|facts| facts.file = file)
        }
        Cause::RandomUnseeded => random_generator(),
        Cause::ProcessStopped => named(ResourceKind::Process, "a stop signal"),
        Cause::ProcessFrozen => named(ResourceKind::Cgroup, "a freezer"),
        Cause::ProcessChild => Resource::of(Common::Child),
        Cause::ProcessExit => by_function(ResourceKind::Process, "its own end"),
        Cause::ProcessExec => match site.object.filter(|object| on_disk(object)) {
            Some(object) => program(object, path.as_deref()),
            None => of_path(Common::Program.name()),
        },
        Cause::TimerSleep => Resource::of(Common::Timer),
        Cause::Idle => by_function(ResourceKind::Kernel, "requests"),
        // In a system call the object is the call's, and the page is another file's.
        Cause::MemPagefault if kind != Kind::None => by_function(ResourceKind::File, "a mapped file"),
        Cause::LockFutex => futex(site).resource,
        _ => match site.object.filter(|object| can_be_about(cause, object)) {
            Some(object) => objects::resource(object),
            None if cause == Cause::MemPagefault => by_function(ResourceKind::File, "a mapped file"),
            None => of_path(site.call.name().unwrap_or(cause.phrase())),
        },
    }
}

/// Who decides whether a call may go on, by the function that waits for the answer.
fn decides(function: Option<&str>) -> &'static str {
    match function {
        Some("fanotify_handle_event" | "fanotify_get_response") => "a scanner of files (fanotify)",
        Some("__seccomp_filter" | "seccomp_do_user_notification") => "a sandbox's supervisor (seccomp)",
        Some("audit_log_start") => "room in the audit log's queue",
        Some("call_sbin_request_key" | "request_key_and_link" | "wait_for_key_construction") => {
            "a helper that makes a key (request_key)"
        }
        _ => "a permission decision",
    }
}

/// The program whose pages an exec waits for; by the name that was asked for where the file has no path.
fn program(file: &Object, asked: Option<&str>) -> Resource {
    let mut resource = objects::resource(file);
    if let (None, Some(asked)) = (&file.path, asked) {
        asked.clone_into(&mut resource.name);
    }
    resource
}

/// Whether a wait for this cause can be about this object: `sendfile` and `splice` have two.
fn can_be_about(cause: Cause, object: &Object) -> bool {
    let file = on_disk(object);
    match cause {
        Cause::DiskRead
        | Cause::DiskWrite
        | Cause::DiskSync
        | Cause::DiskWriteback
        | Cause::DiskDiscard
        | Cause::DiskJournal
        | Cause::FsFuse
        | Cause::FsNetwork
        | Cause::FsFrozen
        | Cause::MemPagefault
        | Cause::LockFile => file,
        Cause::IpcPipe => matches!(object.kind, ObjectKind::Pipe | ObjectKind::Fifo),
        Cause::IpcTty | Cause::DeviceWait | Cause::GpuWait | Cause::RandomDevice => {
            !file && !matches!(object.kind, ObjectKind::Socket { .. })
        }
        Cause::IpcUnix
        | Cause::NetConnect
        | Cause::NetAccept
        | Cause::NetReceive
        | Cause::NetSend
        | Cause::NetDns => matches!(object.kind, ObjectKind::Socket { .. }),
        _ => true,
    }
}

pub(super) fn unknown_resource(site: &Site, stack: Option<&Stack>) -> Resource {
    if let Some(object) = site.object {
        return objects::resource(object);
    }
    let function = stack.and_then(Stack::innermost).or(site.call.name());
    let nowhere = match site.call.number {
        Call::UNTOLD => "a call that was not observed",
        _ => "outside any system call",
    };
    named(ResourceKind::Kernel, function.unwrap_or(nowhere))
}

pub(super) fn object_or(site: &Site, otherwise: &str) -> Resource {
    site.object
        .map_or_else(|| named(ResourceKind::Kernel, otherwise), objects::resource)
}

pub(super) fn random_generator() -> Resource {
    named(ResourceKind::Kernel, "the kernel's random number generator")
}

/// Whom wait4 or waitid asked for.
pub(super) fn child(call: &Call) -> Resource {
    match system_calls::awaited_child(call) {
        Some(Child::Process(pid)) => {
            named(ResourceKind::Process, format!("process {pid}")).with(|facts| facts.pid = Some(pid))
        }
        Some(Child::Any) | None => Resource::of(Common::Child),
    }
}
