//! Which waits happen in which system calls: what time that was not resolved could have been.
//!
//! In: a cause and a call. Out: whether the one happens in the other.

use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};

/// Whether a wait of this cause happens in this system call: unresolved time in the call could then be it.
pub(super) fn happens_in(cause: Cause, call: &str) -> bool {
    let Some(known) = system_calls::named(call) else {
        return cause == Cause::SecurityDecision;
    };
    let polls = known.is(Kind::Polls | Kind::WaitsForEpoll);
    let reads = known.is(Kind::Reads | Kind::MovesData);
    let writes = known.is(Kind::Writes | Kind::MovesData | Kind::Resizes);
    let receives = known.is(Kind::Receives);
    let sends = known.is(Kind::Sends);
    let syncs = known.is(Kind::Syncs);
    let opens = known.is(Kind::Opens | Kind::Metadata);
    let connects = known.is(Kind::Connects);
    match cause {
        Cause::RandomUnseeded => reads || known.is(Kind::Random),
        Cause::RandomDevice => reads || polls || opens,
        Cause::DiskRead => reads || opens,
        Cause::DiskSync => syncs || writes,
        Cause::DiskWrite | Cause::DiskWriteback | Cause::DiskJournal => writes || syncs || opens,
        Cause::FsFrozen => writes || opens,
        Cause::SecurityDecision => true,
        Cause::FsFuse => reads || writes || syncs || opens,
        Cause::IpcPipe => reads || writes || polls || opens,
        Cause::IpcTty => reads || writes || polls,
        Cause::IpcUnix => reads || writes || receives || sends || polls || connects,
        Cause::NetReceive => reads || receives || polls,
        Cause::NetSend => writes || sends || polls,
        Cause::NetDns => receives || polls,
        Cause::NetConnect => connects || polls,
        Cause::NetAccept => known.is(Kind::Accepts) || polls,
        Cause::LockFutex | Cause::LockMonitor | Cause::RuntimeInterpreter => known.is(Kind::WaitsForFutex),
        Cause::LockFile => known.is(Kind::LocksFiles),
        Cause::LockSysv => known.is(Kind::Semaphores),
        Cause::IpcQueue => reads || polls || known.is(Kind::SendsToQueue | Kind::ReceivesFromQueue),
        Cause::LockKernel | Cause::MemMmaplock => opens || known.is(Kind::ChangesMappings),
        Cause::ProcessChild => known.is(Kind::WaitsForChild | Kind::WaitsForExec),
        Cause::ProcessExec => known.is(Kind::Execs),
        Cause::TimerSleep => polls || known.is(Kind::Sleeps),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::happens_in;
    use holdup_evidence::Cause;

    #[test]
    fn a_wait_happens_in_every_call_that_does_what_it_needs() {
        for (cause, call) in [
            (Cause::DiskRead, "unlink"),
            (Cause::DiskRead, "copy_file_range"),
            (Cause::DiskWrite, "fallocate"),
            (Cause::LockFutex, "futex_waitv"),
            (Cause::MemMmaplock, "mremap"),
            (Cause::SecurityDecision, "no_such_call"),
        ] {
            assert!(happens_in(cause, call), "{cause:?} {call}");
        }
        assert!(!happens_in(Cause::DiskRead, "futex") && !happens_in(Cause::NetAccept, "read"));
        assert!(!happens_in(Cause::DiskRead, "no_such_call"));
    }
}
