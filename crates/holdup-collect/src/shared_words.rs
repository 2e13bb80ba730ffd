//! Futexes in files that processes share, for which threads wait as observation ends: which file that is, and who has it mapped.
//!
//! The problem: a named semaphore is a futex at an address, of which nothing shows what it is or who could post it. The choice: the address is
//! in a mapping of a file, and the processes that have that file mapped are all that can. In: processes. Out: a [`SharedWord`] for each
//! address. Reading mappings can block, so a child does it that can be left behind ([`super::behind`]).

use super::behind::{Answerer, Readers};
use holdup_evidence::{SharedUser, SharedWord};
use holdup_jvm::{Memory, Running};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::{Root, maps, memory, names, tasks};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Processes that are asked about, threads of each that are looked at, and words of each that are told.
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

/// The addresses of shared futexes for which threads of a process wait, and whether all of its threads do.
fn waits(root: &Root, pid: u32) -> (BTreeSet<u64>, bool) {
    let threads = tasks::threads(root, pid);
    let mut all = !threads.is_empty() && threads.len() <= THREADS_MAX;
    let mut found = BTreeSet::new();
    for tid in threads.into_iter().take(THREADS_MAX) {
        match tasks::call(root, tid).and_then(|call| shared(&call)) {
            Some(address) => {
                found.insert(address);
            }
            None => all = false,
        }
    }
    (found, all)
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
    let (addresses, _) = waits(root, pid);
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
        let (users, all_asked) = users(root, of);
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

/// The processes that have a file mapped, and whether all could be asked.
fn users(root: &Root, file: &maps::Mapping) -> (Vec<SharedUser>, bool) {
    let processes = tasks::processes(root);
    let mut all = processes.len() <= SEARCHED_MAX;
    let mut users = Vec::new();
    for pid in processes.into_iter().take(SEARCHED_MAX) {
        let Some(mapped) = maps::shared(root, pid) else {
            // Whoever cannot be asked, and is not gone, may be the one that could end the wait.
            all &= names::state(root, pid).is_none_or(|state| ENDED.contains(&state));
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
        let (addresses, every) = waits(root, pid);
        let within = |address: &u64| own.iter().any(|one| (one.start..one.end).contains(address));
        users.push(SharedUser {
            pid,
            process: names::comm(root, pid).unwrap_or_default(),
            waits: every && addresses.iter().all(within),
        });
    }
    (users, all)
}

#[cfg(test)]
mod tests {
    use super::shared;
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
}
