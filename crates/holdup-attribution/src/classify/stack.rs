//! What a kernel stack says of the wait that it was taken in.
//!
//! In: function names, innermost first, with or without the scheduler's own frames; the state and whether
//! the kernel counted the wait as I/O. Out: the strongest [`Verdict`], by the order of
//! [`holdup_knowledge::functions::Rank`].

use holdup_evidence::Cause;
use holdup_knowledge::calls::Kind;
use holdup_knowledge::functions::{Direction, Meaning, Rank, locks, meaning, plain};

/// What a stack shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict<'a> {
    /// How strong this is against what the system call says.
    pub(super) rank: Rank,
    /// What the wait was for.
    pub(super) cause: Cause,
    /// The function that shows it; of a kernel lock, who takes it.
    pub(super) function: &'a str,
}

/// A stack, seen from the function that sleeps.
pub(super) struct Stack<'a> {
    /// Names without compiler suffixes and what they mean, innermost first, without the frames that only put it to sleep.
    frames: Vec<(&'a str, Option<Meaning>)>,
    /// The lock functions that were cut off the front, innermost last.
    lock: Option<&'a str>,
}

impl<'a> Stack<'a> {
    pub(super) fn new(names: &'a [String]) -> Stack<'a> {
        let named = names.iter().map(|name| plain(name));
        let frames = named.map(|name| (name, meaning(name)));
        let mut frames: Vec<(&str, Option<Meaning>)> = frames.skip_while(is(Meaning::Sleep)).collect();
        let locking = frames.iter().take_while(|frame| is(Meaning::Lock)(frame)).count();
        let lock = frames.drain(..locking).next_back().map(|(name, _)| name);
        Stack { frames, lock }
    }

    /// The function that sleeps, or that takes the lock.
    pub(super) fn innermost(&self) -> Option<&'a str> {
        let (name, _) = self.frames.first()?;
        (!is_entry(name)).then_some(*name)
    }

    /// Whether a frame of this name is in it.
    pub(super) fn contains(&self, function: &str) -> bool {
        self.frames.iter().any(|(name, _)| *name == function)
    }

    /// Work on memory that is short, done on a CPU: freeing some before it is given out, getting it back from swap.
    pub(super) fn memory_work(&self) -> Option<(Cause, &'static str)> {
        let work = self.frames.iter().find_map(|(_, meaning)| match (*meaning)? {
            Meaning::Is(Rank::Memory, cause) => Some(cause),
            _ => None,
        })?;
        match work {
            Cause::MemReclaim => Some((work, "freeing memory (reclaim)")),
            Cause::MemSwapin => Some((work, "getting memory back from swap")),
            _ => None,
        }
    }

    /// The strongest thing that this stack shows. `blocked` is an uninterruptible sleep, `iowait` what the
    /// kernel counted, `kind` the system call for waits whose direction no frame tells.
    pub(super) fn verdict(&self, blocked: bool, iowait: bool, kind: Kind) -> Option<Verdict<'a>> {
        let found =
            self.frames
                .iter()
                .enumerate()
                .filter_map(|(depth, (function, meaning))| match (*meaning)? {
                    Meaning::Is(rank, cause) => Some(Verdict {
                        rank,
                        cause,
                        function,
                    }),
                    Meaning::Innermost(rank, cause) if depth == 0 && self.lock.is_none() => Some(Verdict {
                        rank,
                        cause,
                        function,
                    }),
                    _ => None,
                });
        found
            .chain(self.lock_wait(blocked && !iowait))
            .chain(self.device_wait(iowait, kind))
            .min_by_key(|verdict| verdict.rank)
    }

    /// A wait for a lock of the kernel's own, known by who takes it.
    fn lock_wait(&self, plain_sleep: bool) -> Option<Verdict<'a>> {
        let function = self.innermost()?;
        let shown = self.lock.is_some();
        let verdict = |rank, cause| {
            Some(Verdict {
                rank,
                cause,
                function,
            })
        };
        let per_cpu = self
            .lock
            .is_some_and(|lock| locks::listed(locks::PERCPU_READERS, lock));
        if per_cpu && locks::listed(locks::FILE_SYSTEM_WRITERS, function) {
            return verdict(Rank::Remote, Cause::FsFrozen);
        }
        let ambiguous = locks::listed(locks::ADDRESS_SPACE_IF_LOCK_SHOWS, function);
        let address_space = locks::listed(locks::ADDRESS_SPACE, function);
        if (shown && ambiguous) || ((shown || plain_sleep) && address_space) {
            return verdict(Rank::Memory, Cause::MemMmaplock);
        }
        if shown || (plain_sleep && locks::listed(locks::KERNEL_LOCK, function)) {
            return verdict(Rank::KernelLock, Cause::LockKernel);
        }
        None
    }

    /// A wait for a block device, and which way.
    fn device_wait(&self, iowait: bool, kind: Kind) -> Option<Verdict<'a>> {
        let waiting = self
            .frames
            .iter()
            .position(|(_, meaning)| *meaning == Some(Meaning::Block));
        let from = waiting.or(iowait.then_some(0))?;
        let mut toward = self
            .frames
            .get(from..)?
            .iter()
            .filter_map(|(_, meaning)| match *meaning {
                Some(Meaning::Toward(direction)) => Some(direction),
                _ => None,
            });
        let nearest = toward.next().or_else(|| kind.direction())?;
        let in_fault = nearest == Direction::Fault || toward.any(|direction| direction == Direction::Fault);
        let cause = match nearest {
            Direction::Write => Cause::DiskWrite,
            _ if in_fault => Cause::MemPagefault,
            _ => Cause::DiskRead,
        };
        let function = self.innermost()?;
        Some(Verdict {
            rank: Rank::Disk,
            cause,
            function,
        })
    }
}

fn is(wanted: Meaning) -> impl Fn(&(&str, Option<Meaning>)) -> bool {
    move |(_, meaning)| *meaning == Some(wanted)
}

/// Whether a function is only the way into the kernel.
fn is_entry(name: &str) -> bool {
    name.starts_with("entry_SYSCALL")
        || name.starts_with("el0_svc")
        || matches!(
            name,
            "do_syscall_64" | "x64_sys_call" | "do_el0_svc" | "invoke_syscall"
        )
        || matches!(name, "el0t_64_sync" | "el0t_64_sync_handler")
}

/// Functions that are entered only when a spinning lock of the kernel is held by another.
const SPINNING: &[&str] = &[
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
];

/// The first function above the spinning ones, when a stack taken on a CPU was inside a spinlock that another held.
pub(super) fn spins_for(names: &[String]) -> Option<&str> {
    let locking = |name: &&str| {
        SPINNING.contains(name)
            || name.contains("spin_lock")
            || name.contains("read_lock")
            || name.contains("write_lock")
    };
    let mut frames = names
        .iter()
        .map(|name| plain(name))
        .skip_while(|name| !SPINNING.contains(name));
    frames.find(|name| !locking(name))
}
