//! System calls: what each of them does, and what its arguments are.
//!
//! In: a call by its number or name. Out: its row of the one table. Numbers and names come from the `syscalls` crate, so a
//! row cannot be misspelled. A call without a row exists; nothing is known of it.

mod table;
#[cfg(test)]
mod tests;

pub use table::SYSTEM_CALLS;

use holdup_evidence::Call;
use std::ops::BitOr;
use std::sync::LazyLock;
use syscalls::x86_64::Sysno;

/// What a call does. A call can be of several kinds: `exit` ends a thread and closes its descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads from a descriptor.
    Reads,
    /// Writes to a descriptor.
    Writes,
    /// Moves data from one descriptor to another, or between memory and a pipe.
    MovesData,
    /// Changes how long a file is, or reserves room for it.
    Resizes,
    /// Receives from a socket.
    Receives,
    /// Sends by a socket.
    Sends,
    /// Ends one direction of a connection.
    ShutsDown,
    /// Connects a socket.
    Connects,
    /// Accepts a connection.
    Accepts,
    /// Opens a file by its path, and so waits for the other end of a FIFO.
    Opens,
    /// Closes descriptors, also as part of something else: the last user of a pipe or of an open file may be gone.
    Closes,
    /// Locks or unlocks a file. `fcntl` does it with some of its commands only.
    LocksFiles,
    /// `ioctl`.
    Controls,
    /// Waits for one of several descriptors that its arguments list.
    Polls,
    /// Waits for one of the descriptors of an epoll instance.
    WaitsForEpoll,
    /// Waits for asynchronous operations.
    WaitsForCompletions,
    /// Starts asynchronous operations.
    Submits,
    /// Waits until data is on the disk.
    Syncs,
    /// Looks up or changes names and properties of files.
    Metadata,
    /// Can wait for a futex. `futex` does it with some of its operations only.
    WaitsForFutex,
    /// Can wake those that wait for a futex.
    WakesFutex,
    /// Waits for a System V semaphore.
    Semaphores,
    /// Sends to a message queue.
    SendsToQueue,
    /// Receives from a message queue.
    ReceivesFromQueue,
    /// Works on a System V object, by its id.
    SystemV,
    /// Sleeps for a time.
    Sleeps,
    /// Goes on with a call that a signal interrupted.
    Restarts,
    /// Reads the clock.
    ReadsClock,
    /// Waits for a signal.
    WaitsForSignal,
    /// Sends a signal.
    Signals,
    /// Makes a process or thread.
    Creates,
    /// Can wait until the process that it made runs another program or ends. `clone` does it with `CLONE_VFORK` only.
    WaitsForExec,
    /// Runs another program.
    Execs,
    /// Ends the thread, or the process.
    Exits,
    /// Ends all other threads of the process.
    EndsThreads,
    /// Waits for a child to end or to stop.
    WaitsForChild,
    /// Changes which memory is mapped, under the lock of the memory map.
    ChangesMappings,
    /// Belongs to what is done to start a process, to run a program in it, and to end it.
    ProcessLife,
    /// Belongs to what the C library does to start and end a thread, and to keep its stack.
    ThreadLife,
    /// Gives random bytes.
    Random,
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds(u64);

impl Kinds {
    const fn of(kinds: &[Kind]) -> Kinds {
        let mut bits = 0;
        let mut at = 0;
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u64;
            at += 1;
        }
        Kinds(bits)
    }

    /// Whether the two have a kind in common.
    #[must_use]
    pub fn overlaps(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl From<Kind> for Kinds {
    fn from(kind: Kind) -> Kinds {
        Kinds::of(&[kind])
    }
}

impl BitOr for Kind {
    type Output = Kinds;

    fn bitor(self, other: Kind) -> Kinds {
        Kinds::of(&[self, other])
    }
}

impl BitOr<Kind> for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kind) -> Kinds {
        Kinds(self.0 | Kinds::from(other).0)
    }
}

/// Where a call's arguments name a path. Arguments are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The address of the path.
    pub argument: u8,
    /// The descriptor of the directory where it begins; the current directory if there is none.
    pub directory: Option<u8>,
    /// The call looks up another path too, and nothing says in which of them a thread is stuck.
    pub one_of_two: bool,
}

/// Which descriptors a poll waits for. Arguments are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollSet {
    /// An array of `struct pollfd`.
    Array {
        /// Its address.
        at: u8,
        /// How many there are.
        count: u8,
    },
    /// Sets of bits, as `select` has them.
    Bits {
        /// One more than the highest descriptor.
        count: u8,
        /// The addresses of the sets; an address of 0 is no set.
        sets: [u8; 3],
    },
}

/// The argument that says for how long a call waits at most. Arguments are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// An `int`, in milliseconds; no limit below 0.
    Milliseconds(u8),
    /// The address of a `struct timespec`; no limit if it is 0.
    Timespec(u8),
    /// The address of a `struct timeval`; no limit if it is 0.
    Timeval(u8),
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct SystemCall {
    number: Sysno,
    /// What it does.
    pub kinds: Kinds,
    /// The argument that is the descriptor that it works on.
    pub descriptor: Option<u8>,
    /// The path that it looks up.
    pub path: Option<Path>,
    /// The descriptors that it polls.
    pub poll_set: Option<PollSet>,
    /// The argument that is the address of the futex that it works on.
    pub futex: Option<u8>,
    /// The argument that says for how long it waits at most.
    pub limit: Option<Limit>,
    /// The argument that is the number of bytes.
    pub bytes: Option<u8>,
    /// The argument that has the flags of `open`.
    pub open_flags: Option<u8>,
    /// Its numbers in 32-bit programs on x86 (i386), where the first four arguments mean the same (the kernel's `syscall_32.tbl`).
    pub of_32_bit: &'static [u16],
    /// The io_uring operation (`IORING_OP_…`) that does the same.
    pub operation: Option<u8>,
}

impl SystemCall {
    /// Its name, as in its manual page.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.number.name()
    }

    /// Its number in 64-bit programs on x86-64, which stands for it on every machine.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.number.id()
    }

    /// Whether it is of one of these kinds.
    #[must_use]
    pub fn is(&self, kinds: impl Into<Kinds>) -> bool {
        self.kinds.overlaps(kinds.into())
    }

    const fn descriptor(self, argument: u8) -> SystemCall {
        SystemCall {
            descriptor: Some(argument),
            ..self
        }
    }

    const fn path(self, argument: u8) -> SystemCall {
        let path = Path {
            argument,
            directory: None,
            one_of_two: false,
        };
        SystemCall {
            path: Some(path),
            ..self
        }
    }

    const fn path_below(self, directory: u8, argument: u8) -> SystemCall {
        let path = Path {
            argument,
            directory: Some(directory),
            one_of_two: false,
        };
        SystemCall {
            path: Some(path),
            ..self
        }
    }

    const fn two_paths(self, argument: u8) -> SystemCall {
        let path = Path {
            argument,
            directory: None,
            one_of_two: true,
        };
        SystemCall {
            path: Some(path),
            ..self
        }
    }

    const fn two_paths_below(self, directory: u8, argument: u8) -> SystemCall {
        let path = Path {
            argument,
            directory: Some(directory),
            one_of_two: true,
        };
        SystemCall {
            path: Some(path),
            ..self
        }
    }

    const fn array(self, at: u8, count: u8) -> SystemCall {
        SystemCall {
            poll_set: Some(PollSet::Array { at, count }),
            ..self
        }
    }

    const fn sets(self, count: u8, sets: [u8; 3]) -> SystemCall {
        SystemCall {
            poll_set: Some(PollSet::Bits { count, sets }),
            ..self
        }
    }

    const fn futex(self, argument: u8) -> SystemCall {
        SystemCall {
            futex: Some(argument),
            ..self
        }
    }

    const fn limit(self, limit: Limit) -> SystemCall {
        SystemCall {
            limit: Some(limit),
            ..self
        }
    }

    const fn bytes(self, argument: u8) -> SystemCall {
        SystemCall {
            bytes: Some(argument),
            ..self
        }
    }

    const fn open_flags(self, argument: u8) -> SystemCall {
        SystemCall {
            open_flags: Some(argument),
            ..self
        }
    }

    const fn of_32_bit(self, numbers: &'static [u16]) -> SystemCall {
        SystemCall {
            of_32_bit: numbers,
            ..self
        }
    }

    const fn operation(self, operation: u8) -> SystemCall {
        SystemCall {
            operation: Some(operation),
            ..self
        }
    }
}

const fn row(number: Sysno, kinds: &[Kind]) -> SystemCall {
    SystemCall {
        number,
        kinds: Kinds::of(kinds),
        descriptor: None,
        path: None,
        poll_set: None,
        futex: None,
        limit: None,
        bytes: None,
        open_flags: None,
        of_32_bit: &[],
        operation: None,
    }
}

/// The row of each number.
static BY_NUMBER: LazyLock<Vec<Option<&'static SystemCall>>> = LazyLock::new(|| {
    let index = |call: &SystemCall| usize::try_from(call.number()).unwrap_or_default();
    let highest = SYSTEM_CALLS.iter().map(index).max().unwrap_or_default();
    let mut rows = vec![None; highest + 1];
    for call in SYSTEM_CALLS {
        rows[index(call)] = Some(call);
    }
    rows
});

/// The call with this number in 64-bit programs on x86-64.
#[must_use]
pub fn numbered(number: i32) -> Option<&'static SystemCall> {
    BY_NUMBER.get(usize::try_from(number).ok()?).copied().flatten()
}

/// The call with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static SystemCall> {
    numbered(name.parse::<Sysno>().ok()?.id())
}

/// The row of a call that a thread was in.
#[must_use]
pub fn of(call: &Call) -> Option<&'static SystemCall> {
    numbered(call.number)
}

/// Whether a call that a thread was in is of one of these kinds.
#[must_use]
pub fn is(call: &Call, kinds: impl Into<Kinds>) -> bool {
    of(call).is_some_and(|known| known.is(kinds))
}

/// Whether the call with this name is of one of these kinds.
#[must_use]
pub fn is_named(name: Option<&str>, kinds: impl Into<Kinds>) -> bool {
    name.and_then(named).is_some_and(|known| known.is(kinds))
}

/// Whether a call has no time limit; `None` if its arguments do not say, because it has no such argument, or a later one
/// than [`Call`] has.
#[must_use]
pub fn waits_forever(call: &Call) -> Option<bool> {
    let argument = |at: u8| call.args.get(usize::from(at)).copied();
    match of(call)?.limit? {
        // The register's upper half says nothing of an int.
        Limit::Milliseconds(at) => Some((argument(at)? as u32).cast_signed() < 0),
        Limit::Timespec(at) | Limit::Timeval(at) => Some(argument(at)? == 0),
    }
}

/// The time limit in milliseconds of a call that has it as a number: `None` for other calls, `Some(None)` for "no limit".
#[must_use]
pub fn milliseconds(call: &Call) -> Option<Option<u32>> {
    match of(call)?.limit? {
        Limit::Milliseconds(at) => {
            let limit = (*call.args.get(usize::from(at))? as u32).cast_signed();
            Some(u32::try_from(limit).ok())
        }
        Limit::Timespec(_) | Limit::Timeval(_) => None,
    }
}

/// Which child a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// Any, or any of a group, or one that is named by a descriptor.
    Any,
    /// The one with this process id, as the caller's namespace has it.
    Process(u32),
}

/// Which child a call waits for; `None` if it waits for none.
#[must_use]
pub fn awaited_child(call: &Call) -> Option<Child> {
    /// `P_PID` of waitid.
    const P_PID: u64 = 1;
    let row = of(call).filter(|row| row.is(Kind::WaitsForChild))?;
    let [first, second, ..] = call.args;
    let asked = match row.number {
        Sysno::waitid if first == P_PID => second,
        Sysno::waitid => 0,
        _ => first,
    };
    // The register holds a signed 32-bit id; 0 and below ask for any child or a group.
    let asked = (asked as u32).cast_signed();
    let process = u32::try_from(asked).ok().filter(|pid| *pid > 0);
    Some(process.map_or(Child::Any, Child::Process))
}
