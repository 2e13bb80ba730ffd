//! The closed list of causes: what a thread's time was spent on.
//!
//! Ids are stable; one may be retired, none is reused. Each has a phrase in plain words for the first line
//! of a verdict. Its page is `crates/holdup-diagnosis/causes/<id>.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $phrase:literal;)*) => {
        /// What a nanosecond of a thread was spent on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Cause {
            $(
                #[doc = $phrase]
                #[serde(rename = $id)]
                $variant,
            )*
        }

        impl Cause {
            /// Every cause, in the order of the list.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant),*];

            /// The stable dotted id.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Cause::$variant => $id),* }
            }

            /// What the thread is doing, in plain words: completes "the time went to …" or stands alone.
            #[must_use]
            pub fn phrase(self) -> &'static str {
                match self { $(Cause::$variant => $phrase),* }
            }
        }
    };
}

causes! {
    CpuUser = "cpu.user", "running its own code";
    CpuKernel = "cpu.kernel", "running in the kernel";
    CpuInterrupt = "cpu.interrupt", "on a CPU, but interrupts used its time";
    SchedRunqueue = "sched.runqueue", "runnable, waiting for a CPU";
    SchedThrottled = "sched.throttled", "throttled: its cgroup's CPU quota is spent";
    SchedSteal = "sched.steal", "runnable, but the hypervisor ran something else";
    DiskRead = "disk.read", "waiting for a disk to read";
    DiskWrite = "disk.write", "waiting for a disk to write";
    DiskSync = "disk.sync", "waiting for data to be safe on disk";
    DiskWriteback = "disk.writeback", "waiting because too many pages are dirty";
    DiskDiscard = "disk.discard", "waiting for a discard (trim)";
    DiskJournal = "disk.journal", "waiting for the file system's journal";
    FsFuse = "fs.fuse", "waiting for a FUSE daemon";
    FsNetwork = "fs.network", "waiting for a network file system";
    FsFrozen = "fs.frozen", "waiting for a frozen file system";
    MemPagefault = "mem.pagefault", "waiting for a page of a mapped file";
    MemSwapin = "mem.swapin", "waiting for its memory to be read from swap";
    MemReclaim = "mem.reclaim", "reclaiming memory before it can allocate";
    MemLimit = "mem.limit", "slowed by its cgroup's memory.high";
    MemMmaplock = "mem.mmaplock", "waiting for the lock of its address space";
    MemUserfault = "mem.userfault", "waiting for a userfaultfd handler";
    LockFutex = "lock.futex", "waiting for a user-space lock or condition";
    LockMonitor = "lock.monitor", "waiting for a Java monitor or lock";
    LockFile = "lock.file", "waiting for a file lock";
    LockKernel = "lock.kernel", "waiting for a lock inside the kernel";
    LockSysv = "lock.sysv", "waiting for a System V semaphore";
    IpcPipe = "ipc.pipe", "waiting for the other end of a pipe";
    IpcUnix = "ipc.unix", "waiting for the other end of a Unix socket";
    IpcQueue = "ipc.queue", "waiting on an eventfd, signalfd, message queue or inotify";
    IpcSignal = "ipc.signal", "waiting for a signal";
    IpcTty = "ipc.tty", "waiting for a terminal";
    NetConnect = "net.connect", "waiting for a connection to be established";
    NetAccept = "net.accept", "waiting for a client to connect";
    NetReceive = "net.receive", "waiting for a network peer to send";
    NetSend = "net.send", "waiting for room to send to a network peer";
    NetDns = "net.dns", "waiting for a name to be resolved";
    NetTls = "net.tls", "waiting in a TLS handshake";
    PollWait = "poll.wait", "waiting in select, poll or epoll";
    TimerSleep = "timer.sleep", "sleeping on purpose";
    ProcessChild = "process.child", "waiting for a child process";
    ProcessExec = "process.exec", "waiting for a program to be loaded";
    ProcessExit = "process.exit", "waiting for its own exit to complete";
    ProcessStopped = "process.stopped", "stopped by a signal or a tracer";
    ProcessFrozen = "process.frozen", "frozen with its cgroup";
    RandomUnseeded = "random.unseeded", "waiting for the kernel's random generator to be seeded";
    RandomDevice = "random.device", "waiting for a random device";
    RuntimeSafepoint = "runtime.safepoint", "stopped for a runtime's safepoint";
    RuntimeGc = "runtime.gc", "waiting for garbage collection";
    RuntimeInterpreter = "runtime.interpreter", "waiting for an interpreter's global lock";
    GpuWait = "gpu.wait", "waiting for a GPU";
    IoAsync = "io.async", "waiting for asynchronous I/O to complete";
    KernelWork = "kernel.work", "waiting for work inside the kernel";
    DeviceWait = "device.wait", "waiting for a device driver";
    SecurityDecision = "security.decision", "waiting for a permission decision";
    Idle = "idle", "waiting for work";
    Unknown = "unknown", "waiting, reason unknown";
}

impl Cause {
    /// The cause with this id, if there is one.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|cause| cause.id() == id)
    }

    /// Whether the thread was on a CPU.
    #[must_use]
    pub fn on_cpu(self) -> bool {
        matches!(self, Cause::CpuUser | Cause::CpuKernel | Cause::CpuInterrupt)
    }

    /// Whether that is what a program does until something comes that it is there for: work, an instant, a client, the end of a child. On a
    /// machine it is trouble only if somebody waits for that program.
    #[must_use]
    pub fn rests(self) -> bool {
        matches!(
            self,
            Cause::Idle | Cause::TimerSleep | Cause::ProcessChild | Cause::NetAccept
        )
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;

    #[test]
    fn ids_are_unique_and_found_again() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_id(cause.id()), Some(*cause));
        }
    }
}
