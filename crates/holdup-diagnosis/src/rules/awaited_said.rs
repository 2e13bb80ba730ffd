//! What is said of those who wait behind a process, as the kernel's own tables have it.
//!
//! In: a root. Out: its title, and names of programs and of what is waited for.

use super::awaited_short as short;
use super::{duration, say};
use crate::machine::seen::{Behind, Key, Root};
use holdup_evidence::observed::{Awaited, Doing, SeenClient, SeenProcess, SeenWait};
use holdup_evidence::{Cause, Ns};
use holdup_model::title::Title;
use std::collections::BTreeMap;

/// Programs that a sentence names.
const MAX_NAMES: usize = 3;

/// `python3 app.py (pid 7)`.
pub(super) fn who(process: &SeenProcess) -> String {
    match (process.name.as_str(), process.pid) {
        (name, 0) => say::name_or(name, "a process").to_owned(),
        (name, pid) => format!("{} (pid {pid})", say::name_or(name, "a process")),
    }
}

pub(super) fn client(client: &SeenClient) -> String {
    format!("{} (pid {})", say::name_or(&client.name, "a process"), client.pid)
}

/// Programs with their number of processes and their longest wait: those next to the root first, of these the one with most processes.
pub(super) fn programs<'a>(behind: &[Behind<'a>]) -> Vec<(&'a str, u64, Ns)> {
    let mut programs: BTreeMap<&str, (u64, Ns, usize)> = BTreeMap::new();
    for one in behind {
        let of = programs
            .entry(one.process.name.as_str())
            .or_insert((0, 0, one.steps));
        *of = (of.0 + 1, of.1.max(one.ns), of.2.min(one.steps));
    }
    let mut programs: Vec<_> = programs.into_iter().collect();
    programs.sort_by_key(|(name, (count, ns, steps))| (*steps, std::cmp::Reverse((*count, *ns)), *name));
    programs
        .into_iter()
        .map(|(name, (count, ns, _))| (name, count, ns))
        .collect()
}

/// `3 processes of python3 render.py, nginx and 2 other programs`; and the verb.
pub(super) fn sentence(behind: &[Behind<'_>]) -> String {
    let programs = programs(behind);
    let mut names: Vec<String> = programs
        .iter()
        .take(MAX_NAMES)
        .map(|(name, count, _)| match count {
            1 => say::name_or(name, "a process").to_owned(),
            count => format!("{count} processes of {}", say::name_or(name, "a program")),
        })
        .collect();
    match programs.len().saturating_sub(MAX_NAMES) {
        0 => {}
        1 => names.push("1 other program".to_owned()),
        more => names.push(format!("{more} other programs")),
    }
    let verb = if behind.len() == 1 { "waits" } else { "wait" };
    let names = match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    format!("{names} {verb}")
}

/// What it is that a root has.
pub(super) fn what(wait: &SeenWait) -> String {
    let named = |of: &str, name: &str| match name {
        "" => of.to_owned(),
        name => format!("{of} {name}"),
    };
    match wait.on {
        Awaited::Frozen => named("the frozen file system", &wait.name),
        Awaited::FileLock | Awaited::TriedLock => match wait.name.as_str() {
            "" => "a file's lock".to_owned(),
            name => format!("the lock on {name}"),
        },
        Awaited::Files => named("the file system", &wait.name),
        Awaited::SessionLock => match wait.name.as_str() {
            "" => "a lock of the database".to_owned(),
            name => format!("the database lock on {name}"),
        },
        Awaited::Answer | Awaited::Peer => named("an answer", &wait.name),
        Awaited::Turn => named("its turn", &wait.name),
        Awaited::OwnPool => named("a worker in", &wait.name),
        Awaited::Standby => named("the synchronous standby to replay what it commits", &wait.name),
        Awaited::Room => room(&wait.name),
        Awaited::Child => "its child".to_owned(),
        Awaited::Names => named("the name server", &wait.name),
        Awaited::Cpu => named("a CPU", &wait.name),
        Awaited::Memory => named("memory in", &wait.name),
        Awaited::Device => named("the queue of the network device", &wait.name),
    }
}

/// The kernel's names of pipes begin so.
const PIPE: &str = "pipe:[";

/// What somebody writes to, and the other end does not read.
fn room(name: &str) -> String {
    match name {
        "" => "what it is sent".to_owned(),
        pipe if pipe.starts_with(PIPE) => "its pipe".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        address => format!("what it is sent at {address}"),
    }
}

fn cause_of_room(name: &str) -> Cause {
    match name {
        pipe if pipe.starts_with(PIPE) => Cause::IpcPipe,
        address if address.parse::<std::net::SocketAddr>().is_ok() => Cause::NetSend,
        _ => Cause::IpcUnix,
    }
}

pub(super) fn cause(root: &Root<'_>) -> Cause {
    if let Some(has) = root
        .has
        .filter(|has| has.on == Awaited::Room && !matches!(root.key, Key::Halted(_)))
    {
        return cause_of_room(&has.name);
    }
    match (&root.key, root.has.map(|has| has.on)) {
        (Key::Halted(_), _) if root.holder.is_some_and(|holder| holder.doing == Doing::Frozen) => {
            Cause::ProcessFrozen
        }
        (Key::Halted(_), _) => Cause::ProcessStopped,
        (Key::Busy(_), _) => Cause::CpuUser,
        (_, Some(Awaited::Files)) => Cause::FsFuse,
        (_, Some(Awaited::Names)) => Cause::NetDns,
        (_, Some(Awaited::SessionLock)) => Cause::LockFutex,
        (_, Some(Awaited::Cpu)) => Cause::SchedRunqueue,
        (_, Some(Awaited::Frozen)) => Cause::FsFrozen,
        (_, Some(Awaited::Memory)) => Cause::MemReclaim,
        (_, Some(Awaited::Device)) => Cause::NetSend,
        (_, Some(Awaited::OwnPool | Awaited::Standby)) => Cause::NetReceive,
        _ => Cause::LockFile,
    }
}

/// ` has used up its limit of 24 file descriptors, and`: it can accept nobody.
pub(super) fn without_descriptors(process: &SeenProcess) -> String {
    process.descriptors.map_or_else(String::new, |limit| {
        format!(" has used up its limit of {limit} file descriptors, and")
    })
}

/// A server that runs all the time: how much it uses, for whom, and who waits for its turn.
fn busy(root: &Root<'_>, holder: &SeenProcess) -> Title {
    let load = holder.load.unwrap_or_default();
    let threads = match load.threads {
        0 | 1 => "one thread".to_owned(),
        several => say::several(u64::from(several), "thread"),
    };
    let of = match &holder.client {
        Some(one) => format!(" for requests of {}", client(one)),
        None => String::new(),
    };
    let long = match root.longest() {
        0 => String::new(),
        longest => format!(", up to {} at a time", duration(longest)),
    };
    let verb = if root.behind.len() == 1 { "its" } else { "their" };
    Title::from(format!(
        "{}{} uses {} % of one CPU in {threads}{of}",
        who(holder),
        without_descriptors(holder),
        load.cpu_percent
    ))
    .with(format!(": {} for {verb} turn{long}", sentence(&root.behind)))
}

/// A server that does not answer, whoever that is.
fn silent(root: &Root<'_>, has: &SeenWait, long: &str) -> Title {
    let (direct, through): (Vec<Behind<'_>>, Vec<Behind<'_>>) =
        root.behind.iter().cloned().partition(|one| one.directly);
    let behind = match through.is_empty() {
        true => String::new(),
        false => format!(", and {} behind", sentence(&through)),
    };
    let (direct, of) = match (direct.is_empty(), has.on) {
        (true, _) => (sentence(&root.behind), ""),
        (false, Awaited::Names) => (sentence(&direct), " for names"),
        (false, _) => (sentence(&direct), " for files on it"),
    };
    let behind = if direct.is_empty() { String::new() } else { behind };
    let what = say::capital(&what(has));
    Title::from(format!("{what} does not answer")).with(format!(": {direct}{of}{behind}, {long}"))
}

/// A process that does not read what others write to it.
fn unread(root: &Root<'_>, has: &SeenWait, long: &str) -> Title {
    let from = room(&has.name);
    let behind = sentence(&root.behind);
    let Some(holder) = root.holder else {
        return Title::from(format!("{} is not read", say::name_or(&has.name, "a socket")))
            .with(format!(": {behind} to send there, {long}"));
    };
    Title::from(match &holder.full {
        Some(mount) => format!(
            "{} cannot write to the full file system {mount}, and does not read {from}",
            who(holder)
        ),
        None => format!("{} does not read {from}", who(holder)),
    })
    .with(format!(": {behind} behind it, {long}"))
}

/// What keeps a holder for so long: the last wait on its own way.
fn onward(root: &Root<'_>, holder: &SeenProcess) -> String {
    let Some(last) = root.onward else {
        return String::new();
    };
    let awaited = awaited(last);
    match last.waiter.pid == holder.pid {
        true => format!(", and waits for {awaited}"),
        false => format!(", while its {} waits for {awaited}", last.waiter.name),
    }
}

/// What a wait is for, with who must do something: `nginx (pid 7) at 127.0.0.1:80 to answer`.
pub(super) fn awaited(last: &SeenWait) -> String {
    let of = match (&last.holder, last.name.as_str()) {
        (Some(holder), _) => who(holder),
        (None, "") => "somebody".to_owned(),
        (None, name) => name.to_owned(),
    };
    let at = match last.name.as_str() {
        name if name.is_empty() || last.holder.is_none() => String::new(),
        name => format!(" at {name}"),
    };
    match last.on {
        Awaited::Answer | Awaited::Turn | Awaited::Peer | Awaited::Names => format!("{of}{at} to answer"),
        Awaited::Room => format!("{of}{at} to read"),
        Awaited::FileLock | Awaited::TriedLock | Awaited::SessionLock => format!("a lock of {of}"),
        Awaited::Frozen => what(last),
        Awaited::Files => match last.name.as_str() {
            "" => format!("files that {of} serves"),
            mount => format!("files on {mount}, which {of} serves"),
        },
        Awaited::Child => format!("its child {of}"),
        Awaited::Cpu => format!("a CPU that {of} has"),
        Awaited::Memory => format!("memory that {of} has"),
        Awaited::Device => format!("the network device that {of} fills"),
        Awaited::OwnPool => format!("a worker of {of}{at}"),
        Awaited::Standby => format!("its synchronous standby, whose blocker is {of}"),
    }
}

/// Steps of a way that a line has.
const MAX_STEPS: usize = 8;

/// Whom those who wait longest wait for, one after the other, where others stand between them and the root.
pub(super) fn way(root: &Root<'_>) -> Option<String> {
    if root.way.len() < 3 {
        return None;
    }
    let steps = root.way.iter().take(MAX_STEPS);
    let steps: Vec<String> = steps
        .map(|step| format!("{} waits for {}", who(&step.waiter), awaited(step)))
        .collect();
    Some(format!("the longest way: {}", steps.join("; ")))
}

/// In which way a process stands still.
fn stands_still(holder: &SeenProcess) -> String {
    match (holder.doing, &holder.tracer, &holder.cgroup) {
        (Doing::Traced, Some(tracer), _) => format!("held by its tracer {}", client(tracer)),
        (Doing::Traced, None, _) => "held by a tracer".to_owned(),
        (Doing::Frozen, _, Some(cgroup)) => format!("frozen with its cgroup {cgroup}"),
        (Doing::Frozen, _, None) => "frozen".to_owned(),
        _ => "stopped".to_owned(),
    }
}

pub(super) fn title(root: &Root<'_>) -> Title {
    if let (Key::Busy(_), Some(holder)) = (&root.key, root.holder) {
        return busy(root, holder);
    }
    let behind = sentence(&root.behind);
    let long = format!("for at least {}", duration(root.longest()));
    let holder = root.holder.map_or_else(String::new, who);
    let serves = root
        .has
        .filter(|has| matches!(has.on, Awaited::Files | Awaited::Names));
    match (&root.key, root.has) {
        (Key::Halted(_), has) => {
            let and = match (serves, has) {
                (Some(has), _) => format!(" and serves {}", what(has)),
                (None, Some(has)) if has.on == Awaited::Room => format!(" and does not read {}", what(has)),
                (None, Some(has)) => format!(" and has {}", what(has)),
                (None, None) => String::new(),
            };
            let how = root.holder.map_or_else(String::new, stands_still);
            Title::from(format!("{holder} is {how}{and}")).with(format!(": {behind} behind it, {long}"))
        }
        (Key::Has(_), Some(has)) => {
            let idle = root
                .holder
                .filter(|holder| holder.doing == Doing::IdleInTransaction);
            match (has.on, idle) {
                (_, Some(session)) => {
                    let of = session.client.as_ref().map_or_else(
                        || "a transaction".to_owned(),
                        |one| format!("a transaction of {}", client(one)),
                    );
                    let lock = match has.name.as_str() {
                        "" => "a lock".to_owned(),
                        name => format!("the lock on {name}"),
                    };
                    let onward = onward(root, session);
                    Title::from(format!("{holder} is idle in {of}, and has {lock}{onward}"))
                        .with(format!(": {behind} behind it, {long}"))
                }
                (Awaited::Files | Awaited::Names, None) => {
                    let onward = root.holder.map_or_else(String::new, |one| onward(root, one));
                    silent(root, has, &long).with(format!("; {holder} serves it{onward}"))
                }
                (Awaited::Room, None) => unread(root, has, &long),
                (
                    Awaited::Cpu | Awaited::Memory | Awaited::Device | Awaited::OwnPool | Awaited::Standby,
                    None,
                ) => short::title(root, has, &holder, &long),
                (_, None) => {
                    let onward = root
                        .holder
                        .map_or_else(String::new, |holder| onward(root, holder));
                    Title::from(format!("{holder} has {}{onward}", what(has)))
                        .with(format!(": {behind} behind it, {long}"))
                }
            }
        }
        (_, Some(has)) if matches!(has.on, Awaited::Files | Awaited::Names) => silent(root, has, &long),
        (_, Some(has)) if has.on == Awaited::Room => unread(root, has, &long),
        (_, Some(has)) if has.on == Awaited::Frozen => short::frozen(root, has, &long),
        (_, has) => {
            let what = has.map_or_else(|| "something".to_owned(), what);
            Title::from(format!("{behind} for {what}, {long}"))
        }
    }
}
