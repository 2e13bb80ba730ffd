//! Futexes in files that processes share, for which threads wait as observation ends: which file that is, and who has it mapped.
//!
//! The problem: a named semaphore is a futex at an address, of which nothing shows what it is or who could post it. The choice: the address is
//! in a mapping of a file, and the processes that have that file mapped are all that can. In: processes. Out: a [`SharedWord`] for each
//! address. Reading mappings can block, so a child does it that can be left behind ([`super::behind`]).

use super::behind::{Answerer, Readers};
use holdup_evidence::{SharedUser, SharedWord};
use holdup_jvm::{Memory, Running};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::descriptors::{self, Ends};
use holdup_proc::{Root, maps, memory, names, tasks};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};

/// Processes that are asked about, threads of each that are looked at, and words of each that are reported.
const PROCESSES_MAX: usize = 64;
const THREADS_MAX: usize = 256;
const WORDS_MAX: usize = 8;

/// Processes of the machine whose mappings are looked through for a file, and those that are reported of.
const SEARCHED_MAX: usize = 2_048;
const USERS_MAX: usize = 32;

/// `FUTEX_PRIVATE_FLAG`, `FUTEX_CMD_MASK`, and the operations that wait.
const PRIVATE: u64 = 128;
const OPERATION: u64 = 0x7f;
const WAITS: [u64; 2] = [0, 9];

/// What the kernel calls memory that is shared after `fork` and has no name.
const NAMELESS: [&str; 2] = ["/dev/zero", "/SYSV"];

/// How often the users of a file are looked at: a lock that changes hands between two of them would seem to be nobody's.
const LOOKS: usize = 2;

/// What the kernel writes after the path of a file that has no name any more.
const UNLINKED: &str = " (deleted)";

/// Ancestors of a process that are looked at.
const ANCESTORS_MAX: usize = 64;

/// States of a process that has ended.
const ENDED: [char; 2] = ['Z', 'X'];

/// What is asked: a process that may wait for such words.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Question(u32);

type Answer = Vec<SharedWord>;

/// The words for which threads of these processes wait.
pub(super) fn awaited(processes: impl IntoIterator<Item = u32>) -> Vec<SharedWord> {
    let mut readers: Readers<Question, Answer> = Readers::new(answerer);
    let mut found = Vec::new();
    for pid in processes.into_iter().take(PROCESSES_MAX) {
        // Machines have many processes, and few of them wait for what they share.
        found.extend(readers.ask_patiently(pid, Question(pid)).unwrap_or_default());
    }
    found
}

fn answerer() -> Answerer<Question, Answer> {
    Box::new(|Question(pid)| words(&Root::system(), pid))
}

/// What the threads of a process do.
#[derive(Debug, Default)]
struct Threads {
    /// The addresses of shared futexes for which they wait.
    awaited: BTreeSet<u64>,
    /// Whether all of them do.
    all_wait: bool,
    /// Whether one of them may be passing data on.
    transfers: bool,
}

/// Looks at the threads of a process. `waiter`: what the one that waits can read and write.
fn look(root: &Root, pid: u32, waiter: &Ends) -> Threads {
    let threads = tasks::threads(root, pid);
    let whole = !threads.is_empty() && threads.len() <= THREADS_MAX;
    let mut found = Threads {
        all_wait: whole,
        transfers: !whole,
        ..Threads::default()
    };
    for tid in threads.into_iter().take(THREADS_MAX) {
        let call = tasks::call(root, tid);
        let pipe = |fd: u64| pipe(root, pid, fd);
        found.transfers |= call.as_ref().is_none_or(|call| may_transfer(call, waiter, &pipe));
        match call.and_then(|call| shared(&call)) {
            Some(address) => {
                found.awaited.insert(address);
            }
            None => found.all_wait = false,
        }
    }
    found
}

/// What a descriptor is, as far as a queue between processes is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Descriptor {
    Pipe(u64),
    Else,
    Unknown,
}

/// Which pipe a descriptor of a process is.
fn pipe(root: &Root, pid: u32, fd: u64) -> Descriptor {
    let link = root.proc.join(pid.to_string()).join("fd").join(fd.to_string());
    let Ok(target) = std::fs::read_link(link) else {
        return Descriptor::Unknown;
    };
    let target = target.to_string_lossy();
    match target
        .strip_prefix("pipe:[")
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(inode) => inode.parse().map_or(Descriptor::Unknown, Descriptor::Pipe),
        None => Descriptor::Else,
    }
}

/// Whether a thread in this call may have the lock of a queue for which another process waits: it reads or writes at the queue's pipe, whose
/// same end that one has open, or waits until it can at this one alone.
fn may_transfer(call: &tasks::Call, waiter: &Ends, pipe: &dyn Fn(u64) -> Descriptor) -> bool {
    let Some(known) = system_calls::numbered(call.number) else {
        return true;
    };
    let [first, count, ..] = call.args;
    let at = |ends: &HashSet<u64>| match pipe(first) {
        Descriptor::Pipe(inode) => ends.contains(&inode),
        Descriptor::Else => false,
        Descriptor::Unknown => true,
    };
    if known.is(Kind::Reads) {
        return at(&waiter.read);
    }
    if known.is(Kind::Writes) {
        return at(&waiter.written);
    }
    if known.is(Kind::Polls) {
        return count == 1;
    }
    let rests =
        Kind::WaitsForFutex | Kind::WaitsForEpoll | Kind::Sleeps | Kind::WaitsForChild | Kind::WaitsForSignal;
    !known.is(rests)
}

/// The address of the futex for which a call waits, if processes may share it and no time limit was set.
fn shared(call: &tasks::Call) -> Option<u64> {
    let [address, operation, _, limit, ..] = call.args;
    let known = system_calls::numbered(call.number)?;
    let waits = known.is(Kind::WaitsForFutex) && known.name() == "futex";
    let operates = WAITS.contains(&(operation & OPERATION)) && operation & PRIVATE == 0;
    (waits && operates && limit == 0).then_some(address)
}

fn words(root: &Root, pid: u32) -> Answer {
    let waiter = descriptors::ends(root, pid).unwrap_or_default();
    let addresses = look(root, pid, &waiter).awaited;
    if addresses.is_empty() {
        return Vec::new();
    }
    let Some(mapped) = maps::shared(root, pid) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for address in addresses.into_iter().take(WORDS_MAX) {
        let of = mapped.iter().find(|one| (one.start..one.end).contains(&address));
        let named = |one: &&maps::Mapping| {
            one.inode != 0 && !NAMELESS.iter().any(|begin| one.path.starts_with(begin))
        };
        let Some(of) = of.filter(named) else { continue };
        let (users, all_asked) = users(root, of, &waiter);
        let value = (!memory::is_refused(pid, address))
            .then(|| Memory::new(Running(pid)).int(address))
            .flatten();
        found.push(SharedWord {
            pid,
            address,
            path: of.path.clone(),
            value,
            users,
            all_asked,
        });
    }
    found
}

/// Whether a process that cannot be asked may have a file mapped that these have. One without a name is had by who made it and who descends
/// from that one: nobody else can open it.
fn may_have(root: &Root, file: &maps::Mapping, pid: u32, users: &[SharedUser]) -> bool {
    let parent = |pid: u32| names::parent(root, pid);
    let of_family = |user: &SharedUser| {
        let mut above = std::iter::successors(parent(pid), |pid| parent(*pid)).take(ANCESTORS_MAX);
        parent(user.pid) == Some(pid) || above.any(|above| above == user.pid)
    };
    !file.path.ends_with(UNLINKED) || users.iter().any(of_family)
}

/// The processes that have a file mapped, and whether all could be asked.
fn users(root: &Root, file: &maps::Mapping, waiter: &Ends) -> (Vec<SharedUser>, bool) {
    let processes = tasks::processes(root);
    let mut all = processes.len() <= SEARCHED_MAX;
    let mut users = Vec::new();
    let mut unasked: Vec<u32> = Vec::new();
    for pid in processes.into_iter().take(SEARCHED_MAX) {
        let Some(mapped) = maps::shared(root, pid) else {
            // Whoever cannot be asked, and is not gone, may be the one that could end the wait.
            let ended = names::state(root, pid).is_none_or(|state| ENDED.contains(&state));
            unasked.extend((!ended).then_some(pid));
            continue;
        };
        let same = |one: &&maps::Mapping| (one.device, one.inode) == (file.device, file.inode);
        let own: Vec<&maps::Mapping> = mapped.iter().filter(same).collect();
        if own.is_empty() {
            continue;
        }
        if users.len() == USERS_MAX {
            all = false;
            break;
        }
        let threads = look(root, pid, waiter);
        let within = |address: &u64| own.iter().any(|one| (one.start..one.end).contains(address));
        users.push(SharedUser {
            pid,
            process: names::comm(root, pid).unwrap_or_default(),
            waits: threads.all_wait && threads.awaited.iter().all(within),
            transfers: Some(threads.transfers),
        });
    }
    all &= !unasked.iter().any(|pid| may_have(root, file, *pid, &users));
    for _ in 1..LOOKS {
        for user in &mut users {
            let again = look(root, user.pid, waiter);
            user.transfers = user.transfers.map(|transfers| transfers || again.transfers);
        }
    }
    (users, all)
}

#[cfg(test)]
mod tests {
    use super::{Descriptor, Ends, may_transfer, shared};
    use holdup_knowledge::system_calls::named;
    use holdup_proc::tasks::Call;

    #[test]
    fn only_waits_for_what_processes_share_and_without_a_limit_count() {
        let number = named("futex").unwrap().number();
        let call = |operation, limit| Call {
            number,
            args: [0x7f00, operation, 0, limit, 0, 0],
        };
        // FUTEX_WAIT_BITSET with and without FUTEX_CLOCK_REALTIME.
        assert_eq!(shared(&call(9, 0)), Some(0x7f00));
        assert_eq!(shared(&call(9 | 256, 0)), Some(0x7f00));
        assert_eq!(shared(&call(9 | 128, 0)), None, "private");
        assert_eq!(shared(&call(9, 0x7ffd)), None, "with a limit");
        assert_eq!(shared(&call(1, 0)), None, "wakes");
    }

    #[test]
    fn who_sleeps_or_waits_for_a_futex_has_no_queues_lock_and_who_reads_or_polls_may() {
        let waiter = Ends {
            read: [10].into(),
            written: [20].into(),
            ..Ends::default()
        };
        let in_call = |name: &str, args: [u64; 2], at: Descriptor| {
            let call = Call {
                number: named(name).unwrap().number(),
                args: [args[0], args[1], 0, 0, 0, 0],
            };
            may_transfer(&call, &waiter, &|_| at)
        };
        let may = |name: &str| in_call(name, [3, 1], Descriptor::Unknown);
        assert_eq!(["read", "write", "poll", "openat"].map(may), [true; 4]);
        assert_eq!(
            ["futex", "clock_nanosleep", "wait4", "epoll_wait"].map(may),
            [false; 4]
        );
        let at = |name: &str, inode: u64| in_call(name, [3, 1], Descriptor::Pipe(inode));
        assert!(at("read", 10) && at("write", 20));
        assert!(
            !at("read", 30),
            "the pipe of the results, of which the waiter has no end to read"
        );
        assert!(!at("write", 10));
        assert!(!in_call("read", [3, 1], Descriptor::Else), "a file");
        assert!(
            !in_call("poll", [3, 4], Descriptor::Unknown),
            "who watches the workers"
        );
    }
}
