//! What CPU time holdup itself has used.

use holdup_evidence::Ns;
use nix::sys::resource::{UsageWho, getrusage};

/// CPU time of this process so far, all threads, and of the children that read for it.
pub fn own_cpu_time() -> Ns {
    let children = Ns::try_from(holdup_detached::cpu_time().as_nanos()).unwrap_or(Ns::MAX);
    own_threads_cpu_time().saturating_add(children)
}

fn own_threads_cpu_time() -> Ns {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return 0;
    };
    let time = |time: nix::sys::time::TimeVal| {
        Ns::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
            + Ns::try_from(time.tv_usec()).unwrap_or(0) * 1_000
    };
    time(usage.user_time()) + time(usage.system_time())
}
