//! All tasks of the machine at some instants: who runs, who is blocked and where, and what each process used meanwhile.
//!
//! In: the tree, at some times. Out: [`Snapshot`]s as the readers of task lists make them, and the processes' use. A wait channel
//! is read of blocked tasks only; a stack and the file of a call, which can block for as long as the process is in the middle of an
//! exec, by processes that can be left behind.

use super::aside::Aside;
use super::looked_up::named;
use super::places::{Looker, Place};
use super::spent::Spent;
use holdup_evidence::host::Use;
use holdup_evidence::observed::{Quote, SeenThread, Snapshot, SnapshotKind, State, When};
use holdup_evidence::{Ns, Observed};
use holdup_knowledge::programs;
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::{Lister, Process, Task, TaskList};
use holdup_proc::{Root, blocking};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Blocked tasks of a list whose place is looked at; the others are like them.
const CHANNELS: usize = 500;

/// Tasks of a list that are looked at more closely: of each program at each place a few, for they may be at several files.
const PLACES: usize = 24;
const EACH: usize = 3;

/// How long is waited for what is seen of them.
const PATIENCE: Duration = Duration::from_millis(50);

/// Files of threads that stay open between two lists; the kernel needs some 5 KiB for each.
const KEPT: u64 = 6_000;

/// Interpreters that are asked for what they interpret.
const NAMED: usize = 2_000;

/// Threads of all lists that are kept: some 400 bytes each.
const MAX_THREADS: usize = 60_000;

/// Ticks of `USER_HZ` in a second.
const TICKS: f64 = 100.0;

/// Percent in a whole.
const WHOLE: f64 = 100.0;

const SECOND: f64 = 1e9;

/// Processes that are reported of each kind of use.
pub(super) const USERS: usize = 10;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    lists: Vec<Snapshot>,
    /// Where tasks stand, by list and thread.
    places: BTreeMap<(usize, usize), Place>,
    kept: usize,
    /// CPU time of all processes that were listed.
    spent: Spent,
    last: TaskList,
    lister: Lister,
    /// holdup's own process, which is not listed.
    own: u32,
    /// Blocked tasks whose place the kernel did not tell.
    pub(super) untold: u64,
}

impl Snapshots {
    /// Without this process.
    pub(super) fn without(own: u32) -> Snapshots {
        Snapshots {
            own,
            lister: Lister::keeping(descriptors()),
            ..Snapshots::default()
        }
    }

    /// Lists all tasks; `now` is in seconds since boot.
    pub(super) fn turn(&mut self, root: &Root, now: Option<f64>) {
        let mut list = self.lister.read(root);
        let others = |pid: u32| pid != self.own && !holdup_detached::is_ours(pid);
        list.processes.retain(|process| others(process.pid));
        list.busy.retain(|task| others(task.pid));
        self.spent.turn(&list.processes);
        let room = MAX_THREADS.saturating_sub(self.kept);
        // Threads give themselves names by the dozen; who reads this knows the program's.
        let names: HashMap<u32, &str> = list
            .processes
            .iter()
            .map(|process| (process.pid, process.name.as_str()))
            .collect();
        let named = |task: &Task| SeenThread {
            name: names
                .get(&task.pid)
                .map_or(task.name.as_str(), |name| name)
                .to_owned(),
            ..seen(task)
        };
        let mut threads: Vec<SeenThread> = list.busy.iter().take(room).map(named).collect();
        self.kept += threads.len();
        self.channels(root, &mut threads);
        tracers(root, &mut threads);
        parents(&mut threads, &list.processes);
        self.read_places(root, &threads);
        self.lists.push(Snapshot {
            at: now.map(|seconds| When::SinceBoot((seconds * SECOND) as Ns)),
            threads,
            total: Some(list.threads),
            of_threads: Some(true),
            ..Snapshot::new(SnapshotKind::Kernel, Quote::default())
        });
        self.last = list;
    }

    fn channels(&mut self, root: &Root, threads: &mut [SeenThread]) {
        let blocked = threads
            .iter_mut()
            .filter(|thread| thread.state == State::Uninterruptible);
        for thread in blocked.take(CHANNELS) {
            let found = folder(root, thread).and_then(|folder| {
                let channel = text_if_there(&folder.join("wchan"))?;
                still_blocked(&folder).then_some(channel)
            });
            thread.kernel_function = found
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty() && name != "0");
            self.untold += u64::from(thread.kernel_function.is_none());
        }
    }

    fn read_places(&mut self, root: &Root, threads: &[SeenThread]) {
        let mut chosen: HashMap<(&str, &str), usize> = HashMap::new();
        let mut asked = Vec::new();
        for (at, thread) in threads.iter().enumerate() {
            let (Some(function), Some((pid, tid))) =
                (thread.kernel_function.as_deref(), thread.pid.zip(thread.tid))
            else {
                continue;
            };
            let of_place = chosen.entry((thread.name.as_str(), function)).or_default();
            if *of_place < EACH && asked.len() < PLACES {
                *of_place += 1;
                asked.push((at, pid, tid, thread.name.clone()));
            }
        }
        if asked.is_empty() {
            return;
        }
        let looker = Looker::new(root);
        let reader = blocking::reader_of_stacks(c"holdup-host");
        let about = |_: &usize| "a blocked process".to_owned();
        let aside = Aside::start(reader, about, asked, move |(_, pid, tid, name)| {
            looker.look(*pid, *tid, name)
        });
        for ((at, ..), place) in aside.take(PATIENCE).seen {
            self.places.insert((self.lists.len(), at), place);
        }
    }

    /// How many lists there are.
    pub(super) fn count(&self) -> usize {
        self.lists.len()
    }

    /// Threads of the last list.
    pub(super) fn threads(&self) -> u64 {
        self.last.threads
    }

    /// Processes of the last list, the kernel's own left out.
    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.last.processes.iter().filter(|process| !process.kernel)
    }

    /// The program that most short-lived children of a process ran.
    pub(super) fn short_lived(&self, parent: u32) -> Option<&str> {
        self.spent.short_lived(parent)
    }

    /// The last list.
    pub(super) fn last(&self) -> &TaskList {
        &self.last
    }

    /// Threads that were blocked (D) in the last list; `None` if nothing was listed.
    pub(super) fn blocked(&self) -> Option<BTreeSet<u32>> {
        let tasks = self.last.busy.iter();
        let blocked = tasks.filter(|task| task.state == 'D').map(|task| task.tid);
        (self.last.threads > 0).then(|| blocked.collect())
    }

    /// Processes with a thread that was blocked (D) in the last list.
    pub(super) fn blocked_processes(&self) -> BTreeSet<u32> {
        let blocked = self.last.busy.iter().filter(|task| task.state == 'D');
        blocked.map(|task| task.pid).collect()
    }

    /// Gives interpreters the names of what they interpret.
    pub(super) fn name(&mut self, root: &Root) {
        let wanted = |process: &&Process| !process.kernel && programs::is_interpreter(&process.name);
        let asked: Vec<u32> = (self.last.processes.iter().filter(wanted))
            .take(NAMED)
            .map(|process| process.pid)
            .collect();
        let names = named(root, asked);
        for process in &mut self.last.processes {
            let Some(name) = names
                .get(&process.pid)
                .filter(|_| programs::is_interpreter(&process.name))
            else {
                continue;
            };
            let threads = self.lists.iter_mut().flat_map(|list| &mut list.threads);
            for thread in
                threads.filter(|thread| thread.pid == Some(process.pid) && thread.name == process.name)
            {
                thread.name.clone_from(name);
            }
            self.spent.name((process.pid, process.began), name);
            process.name.clone_from(name);
        }
    }

    /// Who used CPUs between the first list and the last, percent of one CPU.
    pub(super) fn cpu(&self, root: &Root, watched: f64) -> Vec<Use> {
        if watched <= 0.0 {
            return Vec::new();
        }
        let percent = |mut one: Use| {
            one.amount = one.amount / TICKS / watched * WHOLE;
            one
        };
        let is_own = |pid: u32| is_holdup(root, pid);
        most(
            root,
            self.spent.by_program(is_own).into_iter().map(percent).collect(),
        )
    }

    /// Who has memory, KiB; pages have `page` bytes.
    pub(super) fn memory(&self, root: &Root, page: u64) -> Vec<Use> {
        let kib = |process: &Process| process.pages.saturating_mul(page) as f64 / 1024.0;
        most(
            root,
            self.processes()
                .map(|process| of(process, kib(process)))
                .collect(),
        )
    }

    /// Puts the lists with what else was seen; they are of this source.
    pub(super) fn hand_over(mut self, source: u32, observed: &mut Observed) {
        for (number, mut list) in std::mem::take(&mut self.lists).into_iter().enumerate() {
            let quote = Quote { source, line: 0 };
            for (at, thread) in list.threads.iter_mut().enumerate() {
                thread.quote = quote.clone();
                let Some(place) = self.places.remove(&(number, at)) else {
                    continue;
                };
                if !place.frames.is_empty() {
                    let frames = place.frames.iter().map(String::as_str);
                    thread.kernel_stack = Some(observed.stacks.intern(frames));
                }
                thread.call = place.call;
                thread.file = place.file;
            }
            list.quote = quote;
            observed.snapshots.push(list);
        }
    }
}

/// Descriptors that the lists may take: of those that holdup may have, of its own limit, half are for everything else.
fn descriptors() -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 0;
    };
    let wanted = KEPT.saturating_mul(2).clamp(soft, hard.max(soft));
    let may = match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => wanted,
        Err(_) => soft,
    };
    usize::try_from(KEPT.min(may / 2)).unwrap_or(0)
}

/// Who holds the traced ones.
fn tracers(root: &Root, threads: &mut [SeenThread]) {
    for thread in threads.iter_mut().filter(|thread| thread.state == State::Traced) {
        let status = folder(root, thread).and_then(|folder| text_if_there(&folder.join("status")));
        let line = status
            .iter()
            .flat_map(|text| text.lines())
            .find_map(|line| line.strip_prefix("TracerPid:"));
        thread.tracer = line
            .and_then(|pid| pid.trim().parse().ok())
            .filter(|pid| *pid > 0);
    }
}

/// Adds the parents of those that are over and not seen to, so that they have a name.
fn parents(threads: &mut Vec<SeenThread>, processes: &[Process]) {
    let zombies = threads.iter().filter(|thread| thread.state == State::Zombie);
    let wanted: BTreeSet<u32> = zombies.filter_map(|zombie| zombie.parent).collect();
    for parent in processes.iter().filter(|process| wanted.contains(&process.pid)) {
        if threads.iter().any(|thread| thread.tid == Some(parent.pid)) {
            continue;
        }
        threads.push(SeenThread {
            name: parent.name.clone(),
            pid: Some(parent.pid),
            tid: Some(parent.pid),
            state: State::Interruptible,
            ..SeenThread::default()
        });
    }
}

/// The use of a process.
pub(super) fn of(process: &Process, amount: f64) -> Use {
    Use {
        process: process.name.clone(),
        pid: process.pid,
        amount,
        ..Use::default()
    }
}

/// Those who use most, most first.
pub(super) fn most(root: &Root, mut all: Vec<Use>) -> Vec<Use> {
    all.retain(|one| one.amount > 0.0);
    all.sort_by(|a, b| b.amount.total_cmp(&a.amount));
    // What holdup itself uses is reported elsewhere: a recorder is nobody's trouble.
    let others = all
        .into_iter()
        .filter(|one| one.pid == 0 || !is_holdup(root, one.pid));
    others.take(USERS).collect()
}

/// Whether a process is another holdup, such as a recorder or a reader of one: it runs the same file.
fn is_holdup(root: &Root, pid: u32) -> bool {
    let of = |pid: &str| std::fs::read_link(root.proc.join(pid).join("exe")).ok();
    of("self").is_some_and(|own| of(&pid.to_string()) == Some(own))
}

/// Whether the task of this folder is blocked now: since the list it may have gone on, and sleep elsewhere.
fn still_blocked(folder: &std::path::Path) -> bool {
    let stat = text_if_there(&folder.join("stat"));
    let state = stat
        .as_deref()
        .and_then(|stat| stat.rsplit_once(')'))
        .map(|(_, after)| after);
    state.is_some_and(|state| state.trim_start().starts_with('D'))
}

fn folder(root: &Root, thread: &SeenThread) -> Option<std::path::PathBuf> {
    let (pid, tid) = (thread.pid?, thread.tid?);
    Some(root.proc.join(pid.to_string()).join("task").join(tid.to_string()))
}

fn seen(task: &Task) -> SeenThread {
    let state = match task.state {
        'R' => State::Runnable,
        'D' => State::Uninterruptible,
        'T' => State::Stopped,
        't' => State::Traced,
        'Z' => State::Zombie,
        'X' | 'x' => State::Ended,
        _ => State::Unknown,
    };
    SeenThread {
        name: task.name.clone(),
        pid: Some(task.pid),
        tid: Some(task.tid),
        parent: Some(task.parent).filter(|pid| *pid > 0),
        terminal: Some(task.terminal),
        state,
        ..SeenThread::default()
    }
}
