//! Who waits for whose answer when a segment of a recording ends, and which file systems are frozen then.
//!
//! The problem: events tell what began and ended while a machine was recorded; a server that withholds its service sleeps, its clients poll
//! again and again, and no event joins the two. In: the kernel's tables, once. Out: the same waits as `holdup host` finds in them, for the same
//! judgement. Lists of tasks are read only where somebody has waited for long.

use super::asks;
use super::beyond;
use super::frozen_volumes;
use super::instead;
use super::last_words;
use super::looked_up::named;
use super::owed::Processes;
use super::own_pool;
use super::queued;
use super::replicas;
use super::silence;
use holdup_evidence::observed::{
    Awaited, FrozenVolume, Owed, Quote, SeenClient, SeenProcess, SeenWait, Short,
};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::listen_queues::ListenQueue;
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::Lister;
use holdup_proc::{Root, conversations, listen_queues, names, tasks};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

/// The shortest wait that is looked at: what is shorter the recording itself tells.
const MIN_NS: Ns = 3_000_000_000;

/// Waits that are kept, longest first.
const WAITS_MAX: usize = 200;

/// Processes that wait for one frozen file system, and that others are looked for behind.
const WAITERS_MAX: usize = 4;

/// What a server must use of one CPU, percent, if it works on a request: with less it waits for a CPU rather than others for it.
const MIN_CPU_PERCENT: u32 = 10;

/// Such servers that are looked at.
const BUSY_MAX: usize = 8;

/// Threads of a server of which whom it works for is looked for.
const THREADS_MAX: usize = 64;

/// Between two lists of tasks, to see whether a server does anything.
const BETWEEN: Duration = Duration::from_millis(500);

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Who waits for whose answer now.
pub(crate) fn answers(root: &Root, own: u32) -> Vec<SeenWait> {
    let connections = conversations::read();
    let queues = listen_queues::read();
    let mut asks = asks::of(&connections, &queues);
    asks.retain(|ask| ask.ns >= MIN_NS);
    let (mut asks, elsewhere): (Vec<_>, Vec<_>) = asks.into_iter().partition(|ask| ask.server != 0);
    if asks.is_empty() && elsewhere.is_empty() {
        return Vec::new();
    }
    let wanted = asks.iter().flat_map(|ask| [ask.client, ask.server]);
    let wanted = wanted.chain(elsewhere.iter().map(|ask| ask.client));
    let wanted: HashSet<Open> = wanted.map(Open::Socket).collect();
    let holders = descriptors::holders(root, &wanted, own);
    // Of several that take clients from one queue nobody knows which would take this one.
    asks.retain(|ask| {
        !ask.queued
            || holders
                .get(&Open::Socket(ask.server))
                .is_none_or(|pids| pids.len() == 1)
    });
    let of = |inode: u64| holders.get(&Open::Socket(inode))?.first().copied();
    let mut known: BTreeMap<(u32, u32), (String, Ns, bool, bool)> = BTreeMap::new();
    for ask in asks {
        let Some((client, server)) = of(ask.client).zip(of(ask.server)) else {
            continue;
        };
        let longest = known.entry((client, server)).or_default();
        if client != server && ask.ns > longest.1 {
            *longest = (ask.at, ask.ns, ask.unread, false);
        }
    }
    known.retain(|_, (_, ns, ..)| *ns > 0);
    let asked: Vec<(u32, u32, Ns)> = known.iter().map(|(ids, one)| (ids.0, ids.1, one.1)).collect();
    for (client, server, at, ns) in last_words::beyond(root, own, &asked, &connections, &queues) {
        known.entry((client, server)).or_insert((at, ns, false, true));
    }
    let mut known: Vec<_> = known.into_iter().collect();
    known.sort_by_key(|(ids, (_, ns, ..))| (std::cmp::Reverse(*ns), *ids));
    known.truncate(WAITS_MAX);
    let mut elsewhere: Vec<(u32, _)> = elsewhere
        .into_iter()
        .filter_map(|ask| Some((of(ask.client)?, ask)))
        .collect();
    elsewhere.truncate(WAITS_MAX);
    let pids: BTreeSet<u32> = known
        .iter()
        .flat_map(|(ids, _)| [ids.0, ids.1])
        .chain(elsewhere.iter().map(|(client, _)| *client))
        .collect();
    let names = named(root, pids.into_iter().collect());
    let process = |pid: u32| SeenProcess {
        pid,
        name: names.get(&pid).cloned().unwrap_or_default(),
        ..SeenProcess::default()
    };
    let waits = known
        .into_iter()
        .map(|((client, server), (at, ns, unread, inferred))| SeenWait {
            waiter: process(client),
            on: Awaited::Answer,
            name: at,
            holder: Some(process(server)),
            ns,
            alone: tasks::threads(root, client).len() == 1,
            short: Short::Answer(Owed {
                unread,
                inferred,
                ..Owed::default()
            }),
            ..SeenWait::default()
        });
    // Who waits for another machine keeps others waiting, and is not to blame.
    let elsewhere = elsewhere.into_iter().map(|(client, ask)| SeenWait {
        waiter: process(client),
        on: Awaited::Answer,
        name: ask.at,
        ns: ask.ns,
        alone: tasks::threads(root, client).len() == 1,
        short: Short::Answer(Owed::default()),
        ..SeenWait::default()
    });
    let elsewhere: Vec<SeenWait> = elsewhere.collect();
    let away: Vec<u32> = elsewhere.iter().map(|wait| wait.waiter.pid).collect();
    let mut waits: Vec<SeenWait> = waits.chain(elsewhere).collect();
    waits.extend(files_away(root, own, away, &connections));
    replicas::add(root, own, &connections, &Quote::default(), &mut waits);
    own_pool::add(root, own, &connections, &queues, &Quote::default(), &mut waits);
    let lived = watch(root, &mut waits);
    works_for(root, own, &connections, &queues, &mut waits);
    silence::tell(root, own, &connections, &queues, &lived, &mut waits);
    instead::tell(root, own, &connections, &queues, now(root), &mut waits);
    waits
}

/// Servers of file systems that are connected with one who waits for another machine.
fn files_away(root: &Root, own: u32, away: Vec<u32>, connections: &[Connection]) -> Vec<SeenWait> {
    if away.is_empty() {
        return Vec::new();
    }
    let servers = descriptors::fuse_servers(root, own).into_iter();
    let servers: BTreeSet<u32> = servers.map(|one| one.pid).collect();
    let ends = beyond::Ends {
        away,
        ..beyond::Ends::default()
    };
    let ways = beyond::behind(root, own, &ends, &servers, connections);
    let pids: BTreeSet<u32> = ways.iter().flat_map(|(server, end)| [*server, *end]).collect();
    let names = match pids.is_empty() {
        true => return Vec::new(),
        false => named(root, pids.into_iter().collect()),
    };
    let process = |pid: u32| SeenProcess {
        pid,
        name: names.get(&pid).cloned().unwrap_or_default(),
        ..SeenProcess::default()
    };
    let wait = |(server, end): (u32, u32)| SeenWait {
        waiter: process(server),
        on: Awaited::Peer,
        holder: Some(process(end)),
        ns: MIN_NS,
        ..SeenWait::default()
    };
    ways.into_iter().map(wait).collect()
}

/// Whether no two threads of a process run: of several nobody knows which works for whom.
fn one_runs(root: &Root, pid: u32) -> bool {
    let threads = tasks::threads(root, pid);
    let runs = |tid: &&u32| names::state(root, **tid) == Some('R');
    threads.len() <= THREADS_MAX && threads.iter().filter(runs).count() <= 1
}

/// Says whom servers work for that use a CPU while requests before them are not read.
fn works_for(
    root: &Root,
    own: u32,
    connections: &[Connection],
    queues: &[ListenQueue],
    waits: &mut [SeenWait],
) {
    let busy = |wait: &SeenWait| match (&wait.short, &wait.holder) {
        (Short::Answer(owed), Some(holder)) => {
            let runs = owed.cpu_percent.is_some_and(|percent| percent >= MIN_CPU_PERCENT);
            (owed.unread && runs).then_some(holder.pid)
        }
        _ => None,
    };
    let servers: BTreeSet<u32> = waits.iter().filter_map(busy).collect();
    let of: HashMap<u32, u32> = (servers.into_iter().take(BUSY_MAX))
        .filter(|pid| one_runs(root, *pid))
        .filter_map(|pid| Some((pid, queued::works_for(root, own, pid, connections, queues)?)))
        .collect();
    let names = match of.is_empty() {
        true => return,
        false => named(root, of.values().copied().collect()),
    };
    for holder in waits.iter_mut().filter_map(|wait| wait.holder.as_mut()) {
        // Of others it may be known already.
        if let Some(pid) = of.get(&holder.pid) {
            holder.client = Some(SeenClient {
                pid: *pid,
                name: names.get(pid).cloned().unwrap_or_default(),
            });
        }
    }
}

/// Sees what servers do meanwhile. Returns how long processes have lived.
fn watch(root: &Root, waits: &mut [SeenWait]) -> HashMap<u32, Ns> {
    let mut lister = Lister::keeping(0);
    let mut processes = Processes::default();
    let began = Instant::now();
    processes.turn(&lister.read(root));
    std::thread::sleep(BETWEEN);
    let last = lister.read(root);
    processes.turn(&last);
    let blocked = last.busy.iter().filter(|task| task.state == 'D');
    let blocked = blocked.map(|task| task.pid).collect();
    let watched = began.elapsed().as_secs_f64();
    processes.tell(root, now(root), watched, &blocked, waits);
    processes.lived(now(root))
}

/// File systems that somebody still waited for when the recording ended because they are frozen.
pub(crate) fn frozen(root: &Root, own: u32, waits: &[AttributedWait]) -> Vec<FrozenVolume> {
    let frozen = waits
        .iter()
        .filter(|wait| wait.cause == Cause::FsFrozen && wait.open);
    let mut by_mount: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for wait in frozen {
        if let Some(mount) = &wait.resource.detail.mount {
            by_mount
                .entry(mount.clone())
                .or_default()
                .insert(wait.asker.name.pid);
        }
    }
    if by_mount.is_empty() {
        return Vec::new();
    }
    let list = Lister::keeping(0).read(root);
    let mut found = frozen_volumes::used(root, own, &list, by_mount, now(root));
    let servers = descriptors::fuse_servers(root, own)
        .into_iter()
        .map(|one| one.pid);
    let servers: BTreeSet<u32> = servers.collect();
    if !servers.is_empty() {
        let connections = conversations::read();
        for volume in &mut found {
            let ends = volume.waiters.iter().filter(|pid| !servers.contains(pid));
            let mut behind: BTreeSet<u32> = BTreeSet::new();
            for one in ends.take(WAITERS_MAX) {
                let ways = beyond::connected(root, own, std::iter::once(*one), &servers, &connections);
                behind.extend(ways.into_keys());
            }
            volume.served_behind = behind.into_iter().collect();
        }
    }
    found
}

/// Seconds since boot.
fn now(root: &Root) -> f64 {
    let text = text_if_there(&root.proc.join("uptime")).unwrap_or_default();
    let first = text.split_ascii_whitespace().next();
    first.and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0)
}

/// Seconds as nanoseconds.
pub(super) fn ns(seconds: f64) -> Ns {
    (seconds.max(0.0) * SECOND) as Ns
}

#[cfg(test)]
mod tests {
    use super::one_runs;
    use holdup_proc::Root;
    use std::fs;

    #[test]
    fn of_several_threads_that_run_nobody_knows_for_whom() {
        let folder = tempfile::tempdir().unwrap();
        let runs = |states: &[(u32, char)]| {
            for (tid, state) in states {
                let proc = folder.path().join("proc");
                fs::create_dir_all(proc.join(format!("5/task/{tid}"))).unwrap();
                fs::create_dir_all(proc.join(tid.to_string())).unwrap();
                let status = format!("Name:\tserver\nState:\t{state} (x)\n");
                fs::write(proc.join(format!("{tid}/status")), status).unwrap();
            }
            one_runs(&Root::below(folder.path()), 5)
        };
        assert!(runs(&[(5, 'R')]));
        assert!(runs(&[(5, 'S'), (6, 'R')]));
        assert!(!runs(&[(5, 'R'), (6, 'R')]));
    }
}
