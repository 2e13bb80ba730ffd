//! Who sleeps while others wait for it, or beside others that wait: a sleep says less than what those wait for.
//!
//! In: a run. Out: processes whose sleep comes behind, and causes of waits before which it does.

use super::Run;
use holdup_evidence::Cause;
use std::collections::BTreeSet;

/// Whether a wait with this cause ends by what another thread or process does.
pub(super) fn for_others(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::LockFutex
            | Cause::LockMonitor
            | Cause::LockFile
            | Cause::LockSysv
            | Cause::IpcPipe
            | Cause::IpcUnix
            | Cause::IpcQueue
            | Cause::NetConnect
            | Cause::NetReceive
            | Cause::NetDns
    )
}

/// Processes that slept while their parents waited for their end, by the waits of those.
pub(super) fn pids(run: &Run<'_>) -> BTreeSet<u32> {
    let waits = run.attributed.waits.iter().filter(|_| run.attributed.of_threads);
    waits
        .filter(|wait| wait.cause == Cause::ProcessChild)
        .flat_map(|wait| &wait.holders)
        .filter(|holder| holder.doing == Some(Cause::TimerSleep))
        .map(|holder| holder.name.pid)
        .collect()
}
