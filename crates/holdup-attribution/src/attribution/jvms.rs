//! Threads of a Java virtual machine that were stopped by it, and its own threads at rest.
//!
//! The problem: whatever a JVM's thread waits for looks like a futex, and so does being stopped for a safepoint. What tells them apart
//! without names of functions, of which a stripped library has none: all that are stopped wait on one word, with an operation that
//! condition variables do not use, until the machine's VM thread lets them go with one call. Who asked the VM thread for an
//! operation waits on a condition until that thread says that it is done; nobody else's wait is ended by it. Whether garbage was
//! collected meanwhile is known by the source, which has read the machine's counters (see [`JvmPause`]).
//!
//! In: which processes are such machines, their pauses, and waits. Out: for each wait what it was for, where that is one of these.

use super::blocker::meanwhile;
use super::holders::{Blocker, Who};
use super::site::Site;
use super::task_table::TaskTable;
use super::thread::{Thread, Threads};
use super::what::Whats;
use crate::classify::Classified;
use holdup_evidence::{
    Call, Cause, Collector, JvmPause, JvmStop, LockHolder, PauseWork, ThreadId, Wait, Waker,
};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::Common;
use holdup_model::attributed::{HowKnown, Resource, ResourceKind};
use std::collections::{HashMap, VecDeque};

/// Pauses of a machine that are remembered: waits of one are reported together, so the last two would do.
const REMEMBERED: usize = 64;
/// Machines that are kept apart.
const MAX_MACHINES: usize = 4_096;

/// The thread that executes a machine's operations.
pub const VM_THREAD: &str = "VM Thread";

/// What the names of a machine's own threads begin with, that never run Java: the kernel keeps 15 bytes of a name.
const OWN_THREADS: [&str; 22] = [
    VM_THREAD,
    "VM Periodic Tas",
    "GC Thread#",
    "G1 Main Marker",
    "G1 Conc#",
    "G1 Refine#",
    "G1 Service",
    "G1 Young RemSet",
    "ZDirector",
    "ZDriver",
    "ZStat",
    "ZUncommitter",
    "ZUnmapper",
    "ZWorker",
    "RuntimeWorker#",
    "Shenandoah",
    "C1 CompilerThre",
    "C2 CompilerThre",
    "Sweeper thread",
    "Service Thread",
    "Monitor Deflati",
    "Signal Dispatch",
];

/// The same of threads that run Java, and are the machine's all the same: they live until it ends.
const SYSTEM_THREADS: [&str; 4] = [
    "Reference Handl",
    "Finalizer",
    "Common-Cleaner",
    "Notification Th",
];

/// The thread that answers tools which ask the machine, holdup among them: what it waits for is theirs.
const ANSWERS_TOOLS: &str = "Attach Listener";

/// Of its own threads, those of a collector that works beside the program, and whose word its threads wait for.
const CONCURRENT: [(&str, Collector); 8] = [
    ("ZDirector", Collector::Z),
    ("ZDriver", Collector::Z),
    ("ZWorker", Collector::Z),
    ("RuntimeWorker#", Collector::Z),
    ("Shenandoah", Collector::Shenandoah),
    ("G1 Main Marker", Collector::G1),
    ("G1 Conc#", Collector::G1),
    ("G1 Service", Collector::G1),
];

/// What begins the names of threads that collect garbage.
const COLLECTING: [&str; 8] = [
    "GC Thread#",
    "G1 ",
    "ZDirector",
    "ZDriver",
    "ZWorker",
    "RuntimeWorker#",
    "Shenandoah",
    "Concurrent Mark",
];

/// Whether a thread of a machine works for the machine itself, by its name.
#[must_use]
pub fn is_own_thread(name: &str) -> bool {
    OWN_THREADS.iter().any(|own| is_called(name, own))
}

/// Bytes of a name that the kernel keeps.
const KEPT: usize = 15;

/// Whether a name is one of the machine's own: the whole of it, cut where the kernel cuts, or with a number behind it. A program may
/// have a `Service Thread-3`, or a `ZDirectoryWatcher`.
fn is_called(name: &str, own: &str) -> bool {
    let Some(rest) = name.strip_prefix(own) else {
        return false;
    };
    let families = ["Shenandoah", "ZDriver", "ZWorker", "G1 "];
    own.len() >= KEPT
        || own.ends_with('#')
        || families.iter().any(|family| own.starts_with(family))
        || rest.is_empty()
        || rest.starts_with('#')
}

/// Whether a thread of a machine collects garbage, by its name. The serial collector has none: the VM thread collects.
#[must_use]
pub fn collects(name: &str) -> bool {
    COLLECTING.iter().any(|own| is_called(name, own))
}

/// Whether a thread of a machine compiles, by its name.
#[must_use]
pub fn compiles(name: &str) -> bool {
    ["C1 CompilerThre", "C2 CompilerThre"]
        .iter()
        .any(|own| is_called(name, own))
}

/// Operations on a futex, without the flags for a clock and for memory that is not shared.
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const OPERATION: u64 = 0x7f;
const PRIVATE: u64 = 0x80;

/// What is known of machines.
#[derive(Debug, Clone, Default)]
pub(super) struct Jvms {
    pauses: HashMap<u32, VecDeque<JvmPause>>,
}

/// What a wait of a thread of a machine was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OfJvm {
    /// The machine had stopped it, or was doing what it had asked for.
    Stopped {
        /// Which.
        cause: Cause,
        /// What for.
        resource: Resource,
        /// The thread that came last to a stop, where that was the most of it.
        late: Option<ThreadId>,
    },
    /// One of the machine's own threads had nothing to do.
    AtRest,
    /// The thread that answers tools had none that asked, or one that was slow to.
    Unasked,
}

/// Who a wait is about.
struct Waiter<'a> {
    pid: u32,
    name: &'a str,
    /// Whether it is the first thread of its process, which the launcher leaves to wait for the others' end.
    first: bool,
    /// Name of the thread of the same process that ended the wait, in its own context.
    waker: Option<&'a str>,
    /// Whether the kernel did not show who did.
    unseen: bool,
}

impl Jvms {
    /// A process is such a machine.
    pub(super) fn is(&mut self, pid: u32) {
        if self.pauses.len() < MAX_MACHINES {
            self.pauses.entry(pid).or_default();
        }
    }

    /// All threads of a machine were stopped.
    fn paused(&mut self, pause: &JvmPause) {
        if let Some(pauses) = self.pauses.get_mut(&pause.pid) {
            if pauses.len() == REMEMBERED {
                pauses.pop_front();
            }
            pauses.push_back(pause.clone());
        }
    }

    /// What a wait was for, if its process is such a machine and that is the machine's doing.
    pub(super) fn of_wait(&self, wait: &Wait, threads: &Threads, tasks: &TaskTable) -> Option<OfJvm> {
        if self.pauses.is_empty() {
            return None;
        }
        let thread = threads.get(&wait.thread)?;
        let pid = tasks.pid(thread.identity.process);
        let waker = match &wait.waker {
            // An end of the process ends all its threads' waits, and is no word of anybody.
            Waker::Thread {
                thread: waker, call, ..
            } if *waker != wait.thread && futex(call).is_some() => {
                let waker = threads.get(waker);
                let same = waker.filter(|waker| waker.identity.process == thread.identity.process);
                same.map(|waker| tasks.text(waker.identity.name))
            }
            _ => None,
        };
        let who = Waiter {
            pid,
            name: tasks.text(thread.identity.name),
            first: thread.identity.tid == pid,
            waker,
            unseen: wait.waker == Waker::Unknown,
        };
        self.judge(&who, wait)
    }

    fn judge(&self, who: &Waiter<'_>, wait: &Wait) -> Option<OfJvm> {
        let pauses = self.pauses.get(&who.pid)?;
        let own = is_own_thread(who.name);
        let Some((operation, private)) = futex(&wait.call) else {
            if who.name == ANSWERS_TOOLS {
                return Some(OfJvm::Unasked);
            }
            let sleeps = system_calls::is(&wait.call, Does::Sleeps);
            // The VM thread sleeps for moments while it waits for others to stop, and for nothing else.
            return match sleeps && own {
                true if who.name == VM_THREAD => Some(OfJvm::Stopped {
                    cause: Cause::RuntimeSafepoint,
                    resource: Resource::of(Common::JvmReaching),
                    late: None,
                }),
                true => Some(OfJvm::AtRest),
                false => None,
            };
        };
        // Whoever collects is not stopped by it, and nor is who stops the others.
        if own && (who.name == VM_THREAD || collects(who.name)) {
            return (operation == FUTEX_WAIT_BITSET).then_some(OfJvm::AtRest);
        }
        if let Some(LockHolder::Stopped(stop)) = &wait.holder
            && !own
        {
            return Some(by_look(stop));
        }
        let by_vm_thread = who.waker == Some(VM_THREAD);
        // The word that all stopped threads wait on, or a lock that whoever asked for a collection has meanwhile.
        if operation == FUTEX_WAIT && private && (who.waker.is_some() || who.unseen) {
            let pause = pauses.iter().rev().find(|pause| of_pause(pause, wait));
            if let Some(pause) = pause {
                return Some(stopped(Some(pause), wait));
            }
            return by_vm_thread.then(|| stopped(None, wait));
        }
        if own && operation == FUTEX_WAIT_BITSET {
            return Some(OfJvm::AtRest);
        }
        if operation != FUTEX_WAIT_BITSET {
            return None;
        }
        if who.first && !private {
            return Some(OfJvm::AtRest);
        }
        // Those wait for work from the machine on a condition, as its own threads do; a lock that one wants is known by its frames.
        if SYSTEM_THREADS.contains(&who.name) {
            return Some(OfJvm::AtRest);
        }
        if by_vm_thread {
            let done = |pause: &&JvmPause| pause.from < wait.end && wait.start < pause.to;
            return Some(stopped(pauses.iter().rev().find(done), wait));
        }
        let collector = concurrent(who.waker?)?;
        let resource = resource(&format!("{}, which has not freed memory yet", collector.name()));
        Some(OfJvm::Stopped {
            cause: Cause::RuntimeGc,
            resource: resource.with(|facts| facts.collector_behind = Some(collector)),
            late: None,
        })
    }
}

/// What a call on a futex waits with, and whether only this process has that word.
fn futex(call: &Call) -> Option<(u64, bool)> {
    let [_, operation, ..] = call.args;
    (call.name() == Some("futex")).then_some((operation & OPERATION, operation & PRIVATE != 0))
}

fn concurrent(waker: &str) -> Option<Collector> {
    let known = CONCURRENT.iter().find(|(own, _)| is_called(waker, own));
    known.map(|(_, collector)| *collector)
}

/// Whether a wait was for the end of a pause: it lasted until then, and for the most part because of it.
fn of_pause(pause: &JvmPause, wait: &Wait) -> bool {
    let both = wait.end.min(pause.to).saturating_sub(wait.start.max(pause.from));
    wait.end >= pause.to && both.saturating_mul(2) >= wait.end.saturating_sub(wait.start)
}

fn stopped(pause: Option<&JvmPause>, wait: &Wait) -> OfJvm {
    let Some(pause) = pause else {
        return OfJvm::Stopped {
            cause: Cause::RuntimeSafepoint,
            resource: resource("an operation of its VM thread"),
            late: None,
        };
    };
    // A pause is one wait of each thread: it is known by what the most of it went to.
    let reaching = pause
        .reached
        .map_or(0, |reached| reached.saturating_sub(wait.start));
    let working = wait
        .end
        .saturating_sub(pause.reached.unwrap_or(wait.start).max(wait.start));
    if reaching > working {
        return OfJvm::Stopped {
            cause: Cause::RuntimeSafepoint,
            resource: Resource::of(Common::JvmReaching),
            late: pause.late.filter(|late| *late != wait.thread),
        };
    }
    let (cause, resource) = work(&pause.work);
    OfJvm::Stopped {
        cause,
        resource,
        late: None,
    }
}

/// The same by looks at what it waited on.
fn by_look(stop: &JvmStop) -> OfJvm {
    let (cause, resource) = match stop.reaching {
        true => (Cause::RuntimeSafepoint, Resource::of(Common::JvmReaching)),
        false => work(&stop.work),
    };
    OfJvm::Stopped {
        cause,
        resource,
        late: None,
    }
}

/// What a machine stopped its threads for.
fn work(work: &PauseWork) -> (Cause, Resource) {
    match work {
        PauseWork::Collection { collector, why } => {
            let name = collector.map_or("its garbage collector", Collector::name);
            let named = resource(&format!("a collection by {name}"));
            (
                Cause::RuntimeGc,
                named.with(|facts| facts.gc_cause.clone_from(why)),
            )
        }
        PauseWork::Other => (
            Cause::RuntimeSafepoint,
            resource("an operation of its VM thread, for which all threads stop"),
        ),
        PauseWork::Operation(name) => {
            let named = resource(&format!(
                "an operation of its VM thread, {name}, for which all threads stop"
            ));
            let named = named.with(|facts| facts.operation = Some(name.clone()));
            (Cause::RuntimeSafepoint, named)
        }
        PauseWork::Unknown => (Cause::RuntimeSafepoint, Resource::of(Common::JvmMayCollect)),
    }
}

fn resource(name: &str) -> Resource {
    Resource::named(ResourceKind::Name, name)
}

impl OfJvm {
    /// Whether it explains a wait of which the kernel shows this.
    pub(super) fn fits(&self, cause: Cause) -> bool {
        match self {
            OfJvm::Stopped { .. } | OfJvm::AtRest => matches!(cause, Cause::LockFutex | Cause::TimerSleep),
            OfJvm::Unasked => matches!(
                cause,
                Cause::NetAccept | Cause::NetReceive | Cause::NetSend | Cause::IpcUnix | Cause::PollWait
            ),
        }
    }

    /// As a classification.
    pub(super) fn classified(&self, call: &Call) -> Classified {
        match self {
            OfJvm::AtRest => Classified::idle(call, "work for the Java virtual machine itself".to_owned()),
            OfJvm::Unasked => Classified::idle(call, "a tool that asks the Java virtual machine".to_owned()),
            OfJvm::Stopped { cause, resource, .. } => Classified {
                cause: *cause,
                resource: resource.clone().in_call(call.name().unwrap_or("futex")),
                timed_out: false,
                bytes: None,
                call: call.name(),
                why_unknown: None,
            },
        }
    }
}

impl Jvms {
    /// Whether a thread is one of such a machine's own, but for the one that executes what is asked of it.
    pub(super) fn has_own_thread(&self, thread: ThreadId, threads: &Threads, tasks: &TaskTable) -> bool {
        let Some(thread) = threads.get(&thread) else {
            return false;
        };
        let name = tasks.text(thread.identity.name);
        let of_jvm = self.pauses.contains_key(&tasks.pid(thread.identity.process));
        let own = is_own_thread(name) && name != VM_THREAD;
        of_jvm && (own || SYSTEM_THREADS.contains(&name))
    }

    /// Whether a thread answers tools that ask the machine: what they ask is no request to the program.
    pub(super) fn answers_tools(&self, thread: ThreadId, threads: &Threads, tasks: &TaskTable) -> bool {
        let identity = threads.get(&thread).map(|thread| &thread.identity);
        identity.is_some_and(|identity| {
            let of_jvm = self.pauses.contains_key(&tasks.pid(identity.process));
            of_jvm && tasks.text(identity.name) == ANSWERS_TOOLS
        })
    }

    /// A machine has stopped its threads. The one that did has slept for moments until all had come, and only now it is known who
    /// was late.
    pub(super) fn step(&mut self, pause: &JvmPause, threads: &mut Threads, tasks: &TaskTable, whats: &Whats) {
        self.paused(pause);
        let (Some(late), Some(reached)) = (pause.late, pause.reached) else {
            return;
        };
        let Some(named) = threads.get(&late).map(|late| tasks.named(&late.identity)) else {
            return;
        };
        let meanwhile = meanwhile(threads, Who::Thread(late), pause.from, reached);
        let naps = |site: &Site| {
            let what = whats.get(site.what);
            what.cause == Cause::RuntimeSafepoint && system_calls::is_named(what.call, Does::Sleeps)
        };
        let by = threads.get_mut(&pause.by);
        if let Some(site) = by.and_then(|by| by.ledger.sites.iter_mut().find(|site| naps(site))) {
            let late = Blocker {
                who: Who::Thread(late),
                how: HowKnown::LastToStop,
            };
            let length = reached.saturating_sub(pause.from);
            site.holders.add(late, length, meanwhile, || named);
        }
    }

    /// Whether a wait of the program in a machine was ended by a thread of the machine itself. What such a thread did before is no part
    /// of the program's way: it works beside it, for whoever asks, and else rests. So such a wait keeps its cause.
    pub(super) fn ended(&self, wait: &Wait, threads: &Threads, tasks: &TaskTable) -> bool {
        let Waker::Thread { thread: waker, .. } = &wait.waker else {
            return false;
        };
        if self.pauses.is_empty() || *waker == wait.thread {
            return false;
        }
        let (Some(waiter), Some(waker)) = (threads.get(&wait.thread), threads.get(waker)) else {
            return false;
        };
        let own = |thread: &Thread| is_own_thread(tasks.text(thread.identity.name));
        let same = waiter.identity.process == waker.identity.process;
        let of_jvm = || self.pauses.contains_key(&tasks.pid(waiter.identity.process));
        same && of_jvm() && own(waker) && !own(waiter)
    }
}

#[cfg(test)]
mod tests;
