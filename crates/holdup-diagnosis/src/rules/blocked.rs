//! Tasks that are blocked in the kernel, as lists of them (`ps`, `top`, `/proc/PID`) show: how many, where, and who.
//!
//! In: [`Observed`]. Out: a [`Series`] of lists of one kind, each with its blocked tasks by the kernel function that they
//! sleep in. What a function means is said by the tables that also judge observed waits; where a stack of one of the
//! tasks is there, it says more than the function.

use crate::rules::{figures, kernel_places, own_io, say, waiters};
use holdup_attribution::classify::{self, Channel};
use holdup_evidence::observed::{Metric, Quote, SeenThread, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed, TaskState};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Evidence, Finding, Remedy};
use std::collections::{BTreeMap, HashMap};

/// Programs that are named at most.
const MAX_PROGRAMS: usize = 3;

/// Frames of a stack that are quoted.
const MAX_FRAMES: usize = 6;

/// Percent of an interval with a request in flight from which figures of the disks tell more than a list of tasks: as
/// much as calls a disk busy.
const MIN_BUSY_PERCENT: f64 = 60.0;

/// Formats of what shows tasks that somebody chose, and never all.
const CHOSEN: [&str; 2] = ["proc-task", "crash-bt"];

/// Lists of one kind, in their order.
#[derive(Debug)]
pub(super) struct Series<'a> {
    observed: &'a Observed,
    pub(super) instants: Vec<Instant<'a>>,
    /// Whether they show all tasks, or those that somebody chose.
    pub(super) whole: bool,
}

/// One list.
#[derive(Debug)]
pub(super) struct Instant<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Blocked tasks, those at the same place together, most first.
    pub(super) groups: Vec<Group<'a>>,
}

/// Tasks that are blocked at the same place.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    /// The kernel function; empty where the list does not tell.
    pub(super) function: &'a str,
    pub(super) tasks: Vec<&'a SeenThread>,
}

/// The lists that tell states and show most; `None` where there is none.
pub(super) fn series(observed: &Observed) -> Option<Series<'_>> {
    let mut by_format: BTreeMap<&str, Vec<Instant<'_>>> = BTreeMap::new();
    let kernel = observed
        .snapshots
        .iter()
        .filter(|snapshot| snapshot.kind == SnapshotKind::Kernel);
    for snapshot in kernel {
        let instant = Instant::of(observed, snapshot);
        // Without states only a function can tell that a task is blocked.
        if snapshot.states || !instant.groups.is_empty() {
            by_format
                .entry(format_of(observed, snapshot))
                .or_default()
                .push(instant);
        }
    }
    // Lists that name functions say more than those that do not; then those with more lists.
    let best = by_format.into_iter().max_by_key(|(format, instants)| {
        let functions = instants.iter().flat_map(|instant| &instant.groups);
        let named: usize = functions
            .filter(|group| !group.function.is_empty())
            .map(|group| group.tasks.len())
            .sum();
        let blocked: usize = instants.iter().map(Instant::blocked).sum();
        (named, blocked, !CHOSEN.contains(format), instants.len())
    });
    best.map(|(format, instants)| Series {
        observed,
        instants,
        whole: !CHOSEN.contains(&format),
    })
}

/// Format of the artefact that a list was read from.
fn format_of<'a>(observed: &'a Observed, snapshot: &Snapshot) -> &'a str {
    let source = observed.sources.get(snapshot.quote.source as usize);
    source.map_or("", |source| source.format.as_str())
}

/// Whether a list shows all tasks, or as many as somebody asked for, and not single ones that somebody chose.
pub(crate) fn is_whole(observed: &Observed, snapshot: &Snapshot) -> bool {
    !CHOSEN.contains(&format_of(observed, snapshot))
}

/// Whether a task is blocked: by its state; or by what its functions say, where they are waits that nobody begins for
/// having nothing to do.
pub(crate) fn is_blocked(observed: &Observed, task: &SeenThread) -> bool {
    let state = match task.state {
        State::Uninterruptible => return true,
        State::Unknown => TaskState::Uninterruptible,
        State::Interruptible => TaskState::Interruptible,
        _ => return false,
    };
    let names: Vec<String> = match (task.kernel_stack, &task.kernel_function) {
        (Some(stack), _) => observed.stacks.frames(stack).map(str::to_owned).collect(),
        (None, Some(function)) => vec![function.clone()],
        (None, None) => return false,
    };
    let cause = classify::of_task(state, &names, task.call).cause;
    let family = cause.id().split('.').next();
    matches!(family, Some("disk" | "fs" | "mem" | "random")) || cause == Cause::LockKernel
}

impl<'a> Instant<'a> {
    fn of(observed: &Observed, snapshot: &'a Snapshot) -> Instant<'a> {
        let mut groups: BTreeMap<&str, Vec<&SeenThread>> = BTreeMap::new();
        for task in snapshot.threads.iter().filter(|task| is_blocked(observed, task)) {
            let function = task.kernel_function.as_deref().map_or("", plain);
            groups.entry(function).or_default().push(task);
        }
        let mut groups: Vec<Group<'_>> = groups
            .into_iter()
            .map(|(function, tasks)| Group { function, tasks })
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.tasks.len()));
        Instant { snapshot, groups }
    }

    /// How many tasks are blocked.
    pub(super) fn blocked(&self) -> usize {
        self.groups.iter().map(|group| group.tasks.len()).sum()
    }
}

/// A function's name without what the compiler added to it.
fn plain(name: &str) -> &str {
    name.split_once('.').map_or(name, |(plain, _)| plain)
}

impl<'a> Series<'a> {
    /// How many tasks are blocked in each list.
    pub(super) fn blocked(&self) -> Vec<f64> {
        self.instants
            .iter()
            .map(|instant| instant.blocked() as f64)
            .collect()
    }

    /// The place at which at least so many tasks are blocked in each list, with the list in which most are.
    pub(super) fn same_place(&self, least: usize) -> Option<Group<'a>> {
        let first = self.instants.first()?;
        let candidates = first.groups.iter().filter(|group| {
            self.instants.iter().all(|instant| {
                let mut same = instant
                    .groups
                    .iter()
                    .filter(|other| other.function == group.function);
                same.any(|other| other.tasks.len() >= least)
            })
        });
        let functions: Vec<&str> = candidates.map(|group| group.function).collect();
        self.largest(|group| functions.contains(&group.function))
    }

    /// The largest group of all lists.
    pub(super) fn largest(&self, which: impl Fn(&Group<'a>) -> bool) -> Option<Group<'a>> {
        let groups = self.instants.iter().flat_map(|instant| &instant.groups);
        let fits = groups.filter(|group| which(group));
        fits.max_by_key(|group| (group.tasks.len(), !group.function.is_empty()))
            .cloned()
    }

    /// What the tasks of a group wait for: by a stack of one of them, or by their function.
    pub(super) fn channel(&self, group: &Group<'a>) -> Channel {
        let one = self.stack_of(group);
        let names = match &one {
            Some((_, frames)) => frames.iter().map(|frame| (*frame).to_owned()).collect(),
            None if group.function.is_empty() => Vec::new(),
            None => vec![group.function.to_owned()],
        };
        let first = group.tasks.first().copied();
        let state = first.map_or(TaskState::Uninterruptible, waiters::state);
        let call = one.and_then(|(task, _)| task.call);
        classify::of_task(state, &names, call)
    }

    /// What a group waits for, as ` (waiting for …)`; nothing where that is not known.
    pub(super) fn phrase(&self, group: &Group<'a>) -> String {
        match self.channel(group) {
            channel if channel.cause == Cause::Unknown && group.function.ends_with('…') => {
                " (the list cuts the name)".to_owned()
            }
            channel if channel.cause == Cause::Unknown => String::new(),
            channel => format!(" ({})", channel.phrase()),
        }
    }

    /// The stack of one of them, wherever it was read, with the task as it was read there.
    fn stack_of(&self, group: &Group<'a>) -> Option<(&'a SeenThread, Vec<&'a str>)> {
        let threads = self
            .observed
            .snapshots
            .iter()
            .flat_map(|snapshot| &snapshot.threads);
        let with_stack: HashMap<u32, &SeenThread> = threads
            .filter(|task| task.kernel_stack.is_some())
            .filter_map(|task| Some((task.tid?, task)))
            .collect();
        let own = group
            .tasks
            .iter()
            .copied()
            .find(|task| task.kernel_stack.is_some());
        let elsewhere = || {
            group
                .tasks
                .iter()
                .find_map(|task| with_stack.get(&task.tid?).copied())
        };
        let known = own.or_else(elsewhere)?;
        let frames: Vec<&str> = self.observed.stacks.frames(known.kernel_stack?).collect();
        // A task may have gone on between the list and its stack.
        let same = group.function.is_empty() || frames.iter().any(|frame| plain(frame) == group.function);
        (same && !frames.is_empty()).then_some((known, frames))
    }

    /// How many tasks of a group, where, and who.
    pub(super) fn evidence(&self, group: &Group<'a>, how_often: &str) -> Evidence {
        let place = match group.function {
            "" => "in an unknown place".to_owned(),
            function => format!("in {function}{}", self.phrase(group)),
        };
        let in_state = group
            .tasks
            .iter()
            .all(|task| task.state == State::Uninterruptible);
        let text = format!(
            "{} {}{how_often}, {place}: {}",
            tasks(group.tasks.len()),
            if in_state { "in state D" } else { "blocked" },
            names(&group.tasks)
        );
        let first = group.tasks.first();
        Evidence::new(
            text,
            first.map_or_else(String::new, |task| read_at(self.observed, &task.quote)),
        )
    }

    /// The stack of one of them.
    pub(super) fn stack(&self, group: &Group<'a>) -> Option<Evidence> {
        let (task, frames) = self.stack_of(group)?;
        let quoted: Vec<&str> = frames.iter().take(MAX_FRAMES).copied().collect();
        let told = kernel_places::told(frames.iter().copied());
        let text = format!(
            "{} {} in {} ({} frames)",
            name_of(task),
            told.as_ref()
                .map_or_else(|| "waits".to_owned(), |told| format!("{told}:")),
            quoted.join(" < "),
            frames.len()
        );
        Some(Evidence::new(text, read_at(self.observed, &task.quote)))
    }

    /// The one among them that the others need to go on.
    fn circle(&self, group: &Group<'a>) -> Option<Evidence> {
        let (text, place) = own_io::circle(group.function, &group.tasks)?;
        let task = group.tasks.get(place)?;
        Some(Evidence::new(text, read_at(self.observed, &task.quote)))
    }

    /// The disk of a journal whose own thread is blocked with them.
    pub(super) fn journal(&self) -> Option<Evidence> {
        let groups = self.instants.iter().flat_map(|instant| &instant.groups);
        let mut tasks = groups.flat_map(|group| &group.tasks);
        let journal = tasks.find_map(|task| {
            let name = task.name.trim_start_matches('[').trim_end_matches(']');
            let disk = name
                .strip_prefix("jbd2/")
                .or_else(|| name.strip_prefix("xfsaild/"))?;
            // The kernel's own number of the journal stands behind the disk's name.
            let disk = match disk.rsplit_once('-') {
                Some((disk, _)) if name.starts_with("jbd2/") => disk,
                _ => disk,
            };
            Some((task, disk))
        });
        let (task, disk) = journal?;
        let text = format!(
            "{} is blocked with them: the thread of the journal on {disk}",
            task.name
        );
        Some(Evidence::new(text, read_at(self.observed, &task.quote)))
    }

    /// Where the first list begins.
    pub(super) fn place(&self) -> String {
        let first = self.instants.first();
        first.map_or_else(String::new, |instant| {
            read_at(self.observed, &instant.snapshot.quote)
        })
    }

    /// Whether figures of the disks say more of such a wait.
    pub(super) fn told_by_disk(&self, channel: Channel) -> bool {
        let of_disk = matches!(
            channel.cause,
            Cause::DiskRead
                | Cause::DiskWrite
                | Cause::DiskSync
                | Cause::DiskJournal
                | Cause::DiskWriteback
                | Cause::MemPagefault
                | Cause::Unknown
        );
        let busy =
            |disk: figures::Intervals<'_>| figures::often(disk.from(MIN_BUSY_PERCENT).len(), disk.count());
        of_disk && figures::of(self.observed, Metric::DiskUtilPercent).any(busy)
    }
}

/// What to call a task: by its name, or by its id.
pub(super) fn name_of(task: &SeenThread) -> String {
    match (task.name.as_str(), task.tid) {
        ("", Some(tid)) => format!("task {tid}"),
        ("", None) => "a task".to_owned(),
        (name, _) => name.to_owned(),
    }
}

/// Where a task, or a list, was read.
pub(super) fn read_at(observed: &Observed, quote: &Quote) -> String {
    match observed.place(quote) {
        place if place.is_empty() => "the list of tasks".to_owned(),
        place => place,
    }
}

/// `1 task is`, `34 tasks are`.
pub(super) fn tasks(count: usize) -> String {
    match count {
        1 => "1 task is".to_owned(),
        count => format!("{count} tasks are"),
    }
}

/// Whose tasks they are, most first: `31 of sendmail, 2 of qmgr`.
pub(super) fn names(tasks: &[&SeenThread]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        *counts.entry(program(&task.name)).or_default() += 1;
    }
    // Files that tell no names.
    if let (1, Some(first)) = (counts.len(), tasks.first().filter(|task| task.name.is_empty())) {
        return match tasks.len() {
            1 => name_of(first),
            more => format!("{} and {} more", name_of(first), more - 1),
        };
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let named: Vec<String> = counts
        .iter()
        .take(MAX_PROGRAMS)
        .map(|(name, count)| match count {
            1 => (*name).to_owned(),
            count => format!("{count} of {name}"),
        })
        .collect();
    match counts.len().saturating_sub(MAX_PROGRAMS) {
        0 => named.join(", "),
        more => format!("{} and {}", named.join(", "), say::several(more as u64, "other")),
    }
}

/// The name that most of them have.
pub(super) fn most_named<'a>(tasks: &[&'a SeenThread]) -> &'a str {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        *counts.entry(program(&task.name)).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
    most.map_or("", |(name, _)| name)
}

/// A kernel worker's name without its number: they are many and the same.
fn program(name: &str) -> &str {
    match name.trim_start_matches('[').split_once('/') {
        Some((worker, _)) if worker == "kworker" => worker,
        _ => name,
    }
}

/// A finding with what all such findings have: whose stack, whose journal, what to do.
pub(super) fn tell<'a>(finding: Finding, series: &Series<'a>, group: &Group<'a>) -> Finding {
    let channel = series.channel(group);
    let mut finding = finding;
    let circle = series.circle(group);
    for evidence in [circle, series.stack(group), series.journal()]
        .into_iter()
        .flatten()
    {
        finding = finding.and(evidence);
    }
    let resource = Resource {
        kind: ResourceKind::Kernel,
        name: group.function.to_owned(),
        ..Resource::default()
    };
    let mut asker = Asker::default();
    asker.name.process = most_named(&group.tasks).to_owned();
    finding = finding.about(resource, asker);
    let family = channel.cause.id().split('.').next();
    finding = match (family, channel.cause) {
        (Some("disk"), _) | (_, Cause::MemPagefault) => finding.remedy(
            Remedy::safe("find the slow disk, and check whether it is busy").with_command("iostat -xz 1 5"),
        ),
        (_, Cause::FsNetwork) => finding.remedy(
            Remedy::safe(
                "check whether the file server answers: its load, the network to it, the kernel log",
            )
            .with_command("nfsstat -m; dmesg | grep -i 'not responding'"),
        ),
        (_, Cause::ProcessFrozen) => finding.remedy(Remedy::changing(
            "find out what froze the cgroup, and thaw it",
            "it may have been frozen for a reason",
        )),
        (_, Cause::LockKernel | Cause::MemMmaplock) => finding.remedy(Remedy::safe(
            "find the lock holder: the task whose stack does not wait where the others do",
        )),
        _ => finding,
    };
    if series.stack(group).is_none() {
        finding = finding.remedy(
            Remedy::safe("read their full kernel stacks, as root")
                .with_command("grep -H . /proc/[0-9]*/task/*/stack /proc/[0-9]*/task/*/status"),
        );
    }
    finding.remedy(Remedy::pointless(
        "more CPUs or a higher priority: none of these tasks is runnable",
    ))
}
