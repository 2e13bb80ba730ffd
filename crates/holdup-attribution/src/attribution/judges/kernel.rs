//! The kernel's stack, and the system call with its object, as `classify` reads them.
//!
//! The kernel always has a verdict. Where a thread waits for a device, for memory or in a stop, that is the purpose. Where it
//! waits until somebody else does something, the kernel shows only by what means.

use super::{Case, Subject, Verdict};
use holdup_evidence::{Cause, Wait};
use holdup_model::attributed::{Certainty, Reason};

pub(super) fn judge(case: &Case<'_>) -> Option<Verdict> {
    Some(verdict(case))
}

/// What the kernel shows.
pub(super) fn verdict(case: &Case<'_>) -> Verdict {
    let (reason, certainty) = case.shown;
    Verdict {
        cause: case.reading.cause,
        subject: Subject::AsRead,
        certainty,
        reason,
        timed_out: case.reading.timed_out,
        late: None,
    }
}

/// By what the kernel shows it.
pub(super) fn reason(wait: &Wait, borrowed_stack: bool) -> Reason {
    match wait.kernel_stack {
        Some(_) => Reason::KernelStack,
        None if borrowed_stack => Reason::SimilarKernelStack,
        None => Reason::SystemCall,
    }
}

/// How much a cause that the kernel shows says of the purpose.
pub(super) fn certainty(cause: Cause) -> Certainty {
    match cause {
        Cause::IpcPipe
        | Cause::IpcQueue
        | Cause::IpcSignal
        | Cause::IpcUnix
        | Cause::LockFile
        | Cause::LockFutex
        | Cause::LockKernel
        | Cause::NetAccept
        | Cause::NetReceive
        | Cause::NetSend
        | Cause::PollWait
        | Cause::TimerSleep
        | Cause::Unknown => Certainty::Mechanism,
        _ => Certainty::Purpose,
    }
}
