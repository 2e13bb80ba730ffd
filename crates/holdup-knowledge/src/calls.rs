//! What a system call can wait for, by its name: numbers differ between machines, names do not.

use super::functions::Direction;
use crate::system_calls::{self, Kind as Does, PollSet};
use holdup_evidence::Call;

/// Calls that wait alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No call: a page fault, or on the way out of one.
    None,
    /// poll and select.
    Poll,
    /// epoll.
    Epoll,
    /// A futex.
    Futex,
    /// nanosleep.
    Sleep,
    /// A signal.
    Signal,
    /// fsync and its like.
    Sync,
    /// execve.
    Exec,
    /// exit.
    Exit,
    /// wait.
    Child,
    /// vfork and what may be one.
    Vfork,
    /// read from a descriptor.
    Read,
    /// write to a descriptor.
    Write,
    /// Receive from a socket.
    Receive,
    /// Send to a socket.
    Send,
    /// connect.
    Connect,
    /// accept.
    Accept,
    /// flock and fcntl's locks.
    FileLock,
    /// System V semaphores.
    Semaphore,
    /// Message queues.
    Queue,
    /// io_uring and aio.
    Async,
    /// getrandom.
    Random,
    /// open.
    Open,
    /// Names and inodes: stat, unlink, rename …
    Metadata,
    /// ioctl.
    Ioctl,
    /// The rest of a call that a signal had interrupted.
    Restart,
    /// Anything else.
    Other,
}

/// `FUTEX_CMD_MASK`: the operation without its flags.
const FUTEX_OPERATION: u64 = 0x7f;
/// `FUTEX_WAIT`, `FUTEX_WAIT_BITSET`: the futex operations that condition variables and semaphores sleep in.
const FUTEX_PLAIN_WAITS: [u64; 2] = [0, 9];
/// `F_SETLKW` and `F_OFD_SETLKW`.
const FCNTL_LOCK_WAITS: [u64; 2] = [7, 38];
/// Whether it makes a process that has a copy of its maker's memory, rather than the same: of `clone3` the registers do not say.
pub fn copies_memory(call: &Call) -> bool {
    const CLONE_VM: u64 = 0x100;
    let flagged = call.name() == Some("clone") && call.args[0] & CLONE_VM == 0;
    call.name() == Some("fork") || flagged
}

/// `CLONE_VFORK`.
const CLONE_VFORK: u64 = 0x4000;

/// What calls do, and what they can wait for then.
const KINDS: &[(Does, Kind)] = &[
    (Does::Polls, Kind::Poll),
    (Does::WaitsForEpoll, Kind::Epoll),
    (Does::WaitsForFutex, Kind::Futex),
    (Does::Sleeps, Kind::Sleep),
    (Does::WaitsForSignal, Kind::Signal),
    (Does::Syncs, Kind::Sync),
    (Does::Execs, Kind::Exec),
    (Does::Exits, Kind::Exit),
    (Does::WaitsForChild, Kind::Child),
    (Does::WaitsForExec, Kind::Vfork),
    (Does::Reads, Kind::Read),
    (Does::Writes, Kind::Write),
    (Does::Resizes, Kind::Write),
    (Does::Receives, Kind::Receive),
    (Does::Sends, Kind::Send),
    (Does::Connects, Kind::Connect),
    (Does::Accepts, Kind::Accept),
    (Does::LocksFiles, Kind::FileLock),
    (Does::Semaphores, Kind::Semaphore),
    (Does::SendsToQueue, Kind::Queue),
    (Does::ReceivesFromQueue, Kind::Queue),
    (Does::WaitsForCompletions, Kind::Async),
    (Does::Random, Kind::Random),
    (Does::Opens, Kind::Open),
    (Does::Metadata, Kind::Metadata),
    (Does::Controls, Kind::Ioctl),
    (Does::Restarts, Kind::Restart),
];

/// What this call can wait for.
pub fn kind(call: &Call) -> Kind {
    let Some(known) = system_calls::of(call) else {
        return if call.number == Call::NONE {
            Kind::None
        } else {
            Kind::Other
        };
    };
    let [flags, command, ..] = call.args;
    // Only some of the commands of these two wait.
    let unlike = match call.name() {
        Some("clone") => flags & CLONE_VFORK == 0,
        name => name == Some("fcntl") && !FCNTL_LOCK_WAITS.contains(&command),
    };
    if unlike {
        return Kind::Other;
    }
    KINDS
        .iter()
        .find(|(does, _)| known.is(*does))
        .map_or(Kind::Other, |(_, kind)| *kind)
}

impl Kind {
    /// Which way data goes between the caller and a block device.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Kind::Read | Kind::Open | Kind::Metadata | Kind::Exec => Some(Direction::Read),
            Kind::Write => Some(Direction::Write),
            Kind::None => Some(Direction::Fault),
            _ => None,
        }
    }
}

/// How many bytes the call asked for, where its arguments say so.
pub fn bytes(call: &Call) -> Option<u64> {
    let argument = system_calls::of(call)?.bytes?;
    call.args.get(usize::from(argument)).copied()
}

/// Whether a futex call waits plainly, as condition variables do, and has a time limit.
pub fn futex_with_limit(call: &Call) -> bool {
    let plain = call.name() != Some("futex") || FUTEX_PLAIN_WAITS.contains(&(call.args[1] & FUTEX_OPERATION));
    let limited = system_calls::waits_forever(call) == Some(false);
    system_calls::is(call, Does::WaitsForFutex) && plain && limited
}

/// The time limit of a poll in milliseconds, where the arguments hold it: `None` where they do not,
/// `Some(None)` for "no limit".
pub fn poll_limit_ms(call: &Call) -> Option<Option<u32>> {
    system_calls::milliseconds(call)
}

/// Whether a poll was given no descriptor at all.
pub fn polls_nothing(call: &Call) -> bool {
    let argument = |at: u8| call.args.get(usize::from(at)).copied();
    match system_calls::of(call).and_then(|known| known.poll_set) {
        Some(PollSet::Array { count, .. }) => argument(count) == Some(0),
        Some(PollSet::Bits { count, sets }) => {
            argument(count) == Some(0) || sets.iter().all(|set| argument(*set) == Some(0))
        }
        None => false,
    }
}

/// How many descriptors a poll was given, where the arguments say so.
pub fn polled_count(call: &Call) -> Option<u64> {
    match system_calls::of(call)?.poll_set? {
        PollSet::Array { count, .. } => call.args.get(usize::from(count)).copied(),
        PollSet::Bits { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, kind};
    use holdup_evidence::Call;

    #[test]
    fn what_a_call_can_wait_for_follows_from_what_it_does() {
        let of = |name, args| {
            kind(&Call {
                args,
                ..Call::named(name)
            })
        };
        assert_eq!(of("fcntl", [3, 7, 0, 0]), Kind::FileLock);
        assert_eq!(of("fcntl", [3, 1, 0, 0]), Kind::Other);
        assert_eq!(of("clone", [super::CLONE_VFORK, 0, 0, 0]), Kind::Vfork);
        assert_eq!(of("clone", [0; 4]), Kind::Other);
        assert_eq!(of("ftruncate", [0; 4]), Kind::Write);
        for name in [
            "lchown",
            "utime",
            "fchmod",
            "fchown",
            "fsetxattr",
            "fstatfs",
            "fchmodat2",
        ] {
            assert_eq!(of(name, [0; 4]), Kind::Metadata, "{name}");
        }
        // It moves waiters from one futex to another and waits for none.
        assert_eq!(of("futex_requeue", [0; 4]), Kind::Other);
        assert_eq!(kind(&Call::none()), Kind::None);
        assert_eq!(kind(&Call::untold()), Kind::Other);
    }
}
