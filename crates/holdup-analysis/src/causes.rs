//! The pages of causes, as `holdup explain` prints them.
//!
//! A page is `causes/<id>.md` beside the source; a cause without one does not compile.

use holdup_evidence::Cause;

macro_rules! pages {
    ($($cause:ident = $id:literal),* $(,)?) => {
        /// The page of a cause, in Markdown.
        #[must_use]
        pub fn page(cause: Cause) -> &'static str {
            match cause {
                $(Cause::$cause => include_str!(concat!("../causes/", $id, ".md")),)*
            }
        }

        #[cfg(test)]
        const IDS: &[(Cause, &str)] = &[$((Cause::$cause, $id)),*];
    };
}

pages! {
    CpuUser = "cpu.user",
    CpuKernel = "cpu.kernel",
    CpuInterrupt = "cpu.interrupt",
    SchedRunqueue = "sched.runqueue",
    SchedThrottled = "sched.throttled",
    SchedSteal = "sched.steal",
    DiskRead = "disk.read",
    DiskWrite = "disk.write",
    DiskSync = "disk.sync",
    DiskWriteback = "disk.writeback",
    DiskDiscard = "disk.discard",
    DiskJournal = "disk.journal",
    FsFuse = "fs.fuse",
    FsNetwork = "fs.network",
    FsFrozen = "fs.frozen",
    MemPagefault = "mem.pagefault",
    MemSwapin = "mem.swapin",
    MemReclaim = "mem.reclaim",
    MemLimit = "mem.limit",
    MemMmaplock = "mem.mmaplock",
    MemUserfault = "mem.userfault",
    LockFutex = "lock.futex",
    LockMonitor = "lock.monitor",
    LockFile = "lock.file",
    LockKernel = "lock.kernel",
    LockSysv = "lock.sysv",
    IpcPipe = "ipc.pipe",
    IpcUnix = "ipc.unix",
    IpcQueue = "ipc.queue",
    IpcSignal = "ipc.signal",
    IpcTty = "ipc.tty",
    NetConnect = "net.connect",
    NetAccept = "net.accept",
    NetReceive = "net.receive",
    NetSend = "net.send",
    NetDns = "net.dns",
    NetTls = "net.tls",
    PollWait = "poll.wait",
    TimerSleep = "timer.sleep",
    ProcessChild = "process.child",
    ProcessExec = "process.exec",
    ProcessExit = "process.exit",
    ProcessStopped = "process.stopped",
    ProcessFrozen = "process.frozen",
    RandomUnseeded = "random.unseeded",
    RandomDevice = "random.device",
    RuntimeSafepoint = "runtime.safepoint",
    RuntimeGc = "runtime.gc",
    RuntimeInterpreter = "runtime.interpreter",
    GpuWait = "gpu.wait",
    IoAsync = "io.async",
    KernelWork = "kernel.work",
    DeviceWait = "device.wait",
    SecurityDecision = "security.decision",
    Idle = "idle",
    Unknown = "unknown",
}

#[cfg(test)]
mod tests {
    use super::{IDS, page};
    use holdup_evidence::Cause;
    use std::path::Path;

    const HEADINGS: [&str; 4] = [
        "## What it means",
        "## How we know",
        "## What it does not say",
        "## What to look at next",
    ];

    #[test]
    fn every_cause_has_its_own_page() {
        for cause in Cause::ALL {
            let (_, id) = IDS
                .iter()
                .find(|(named, _)| named == cause)
                .expect("every cause is in the list");
            assert_eq!(*id, cause.id());
            let page = page(*cause);
            assert!(
                page.starts_with(&format!("# {id}\n")),
                "{id}: the page begins with another name"
            );
            assert!(
                page.contains(cause.phrase()),
                "{id}: the page lacks the cause's phrase"
            );
            let mut rest = page;
            for heading in HEADINGS {
                let (_, after) = rest
                    .split_once(heading)
                    .unwrap_or_else(|| panic!("{id}: no {heading:?}"));
                assert!(!after.trim_start().starts_with('#'), "{id}: {heading:?} is empty");
                rest = after;
            }
        }
    }

    #[test]
    fn every_page_has_its_cause() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("causes");
        for entry in std::fs::read_dir(folder).expect("the folder of pages is there") {
            let path = entry.expect("a readable entry").path();
            let id = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .expect("a page has a name");
            assert!(Cause::from_id(id).is_some(), "{id}.md is no cause's page");
        }
    }
}
