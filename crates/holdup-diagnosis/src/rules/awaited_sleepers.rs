//! Who sleeps while others wait for it, or beside others that wait: a sleep says less than what those wait for.
//!
//! In: a run. Out: processes whose sleep comes behind, and causes of waits before which it does.

use super::Run;
use holdup_evidence::Cause;
use holdup_model::finding::Finding;
use std::collections::BTreeSet;

/// Processes of which something better is known than that they sleep.
pub(super) struct Inside {
    /// They wait for others.
    waiting: BTreeSet<u32>,
    /// Somebody who is observed waits for them, and what is said of that one names them.
    awaited: BTreeSet<u32>,
}

impl Inside {
    /// By all that was found.
    pub(super) fn of<'a>(run: &Run<'_>, found: impl Iterator<Item = &'a Finding>) -> Inside {
        let waiting = found
            .filter(|finding| for_others(finding.cause) && run.attributed.of_threads)
            .map(|finding| finding.asker.name.pid)
            .filter(|pid| *pid != 0);
        Inside {
            waiting: waiting.collect(),
            awaited: pids(run),
        }
    }

    /// Whether a finding is of one of them.
    pub(super) fn has(&self, finding: &Finding) -> bool {
        let pid = finding.asker.name.pid;
        self.waiting.contains(&pid) || finding.cause == Cause::TimerSleep && self.awaited.contains(&pid)
    }
}

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
fn pids(run: &Run<'_>) -> BTreeSet<u32> {
    let waits = run.attributed.waits.iter().filter(|_| run.attributed.of_threads);
    waits
        .filter(|wait| wait.cause == Cause::ProcessChild)
        .flat_map(|wait| &wait.holders)
        .filter(|holder| holder.doing == Some(Cause::TimerSleep))
        .map(|holder| holder.name.pid)
        .collect()
}
