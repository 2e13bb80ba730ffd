//! What the programs take, as the kernel itself counts it: every run, those too that return at once because they are about somebody else.
//!
//! The kernel counts only while somebody has asked for it, and counting costs each run two readings of a clock. So it is asked for moments, and what
//! they show stands for the time between them (`holdup-collect`, `budget`). In: programs. Out: their runs and run time while it was counted.

use crate::skeleton::TraceSkel;
use crate::tracer::Tracer;
use libbpf_rs::libbpf_sys;
use libbpf_rs::skel::Skel;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// What a run takes beside what the kernel counts as run time: to get into the program and out of it, nanoseconds. An assumption: it was not
/// measured.
const AROUND_A_RUN_NS: u64 = 20;

/// Runs that were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Runs {
    /// How many.
    pub count: u64,
    /// Run time, nanoseconds.
    pub ns: u64,
}

impl Runs {
    /// What came since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Runs) -> Runs {
        Runs {
            count: self.count.saturating_sub(earlier.count),
            ns: self.ns.saturating_sub(earlier.ns),
        }
    }

    /// CPU time in all.
    #[must_use]
    pub fn cpu_time(self) -> u64 {
        self.ns.saturating_add(self.count.saturating_mul(AROUND_A_RUN_NS))
    }
}

/// Has the kernel count runs until the descriptor is closed. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
/// When the kernel refuses, or is older than 5.8.
pub fn count_runs() -> io::Result<OwnedFd> {
    // SAFETY: no pointer is passed.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(-descriptor));
    }
    // SAFETY: it is a new descriptor, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

impl Tracer {
    /// Runs of all programs that were counted so far.
    #[must_use]
    pub fn runs(&self) -> Runs {
        runs(self.skeleton())
    }
}

fn runs(skeleton: &TraceSkel<'static>) -> Runs {
    let mut all = Runs::default();
    // Those that are not loaded have no descriptor.
    for program in skeleton.object().progs().filter(|program| program.autoload()) {
        let descriptor = program.as_fd().as_raw_fd();
        let mut info = MaybeUninit::<libbpf_sys::bpf_prog_info>::zeroed();
        let mut length = u32::try_from(size_of::<libbpf_sys::bpf_prog_info>()).expect("a small structure");
        // SAFETY: the kernel writes no more than `length` bytes, which is what there is; zeros ask for no arrays.
        let looked =
            unsafe { libbpf_sys::bpf_prog_get_info_by_fd(descriptor, info.as_mut_ptr(), &raw mut length) };
        if looked != 0 {
            continue;
        }
        // SAFETY: any bytes are such a structure, and all of it was zeros before.
        let info = unsafe { info.assume_init() };
        all.count = all.count.saturating_add(info.run_cnt);
        all.ns = all.ns.saturating_add(info.run_time_ns);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{AROUND_A_RUN_NS, Runs};

    #[test]
    fn a_run_takes_more_than_its_program() {
        let runs = Runs { count: 10, ns: 1_000 };
        assert_eq!(runs.cpu_time(), 1_000 + 10 * AROUND_A_RUN_NS);
        let later = Runs { count: 12, ns: 1_500 };
        assert_eq!(later.since(runs), Runs { count: 2, ns: 500 });
        assert_eq!(runs.since(later), Runs::default(), "counters never go back");
    }
}
