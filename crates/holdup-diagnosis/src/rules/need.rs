//! What a rule must be able to see.

/// What a rule must be able to see. Without it the rule is blind; `holdup doctor` lists the rules that are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Need {
    /// Every switch and waking of the run's threads, by BPF.
    SchedulerEvents,
    /// Kernel stacks of waits, with names.
    KernelStacks,
    /// The memory of a woken thread: what it polled, whether its time ran out.
    WaitMemory,
    /// Samples of running threads: user or kernel, in which call.
    CpuSamples,
    /// Who holds a lock: the kernel's list of file locks, the words at a futex.
    LockHolders,
    /// The kernel log of this boot.
    KernelLog,
    /// What people bring: a live run doesn't have it.
    Artefacts,
}

impl Need {
    /// Every need.
    pub const ALL: &'static [Need] = &[
        Need::SchedulerEvents,
        Need::KernelStacks,
        Need::WaitMemory,
        Need::CpuSamples,
        Need::LockHolders,
        Need::KernelLog,
        Need::Artefacts,
    ];

    /// In plain words.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Need::SchedulerEvents => "scheduler events by BPF",
            Need::KernelStacks => "kernel stacks with names",
            Need::WaitMemory => "the memory of woken threads",
            Need::CpuSamples => "samples of running threads",
            Need::LockHolders => "holders of locks",
            Need::KernelLog => "the kernel log",
            Need::Artefacts => "artefacts, for `holdup read`",
        }
    }
}
