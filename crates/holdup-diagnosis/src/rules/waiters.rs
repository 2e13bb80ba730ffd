//! Who waits for a disk, where lists of tasks tell which files those are at.
//!
//! In: [`Observed`]. Out: [`Waiters`]. A few tasks of each program at each place are looked at closely; the others there are
//! like them, if those are all at the same disk.

use holdup_attribution::classify;
use holdup_evidence::observed::{SeenThread, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed, TaskState};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks that wait for a disk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiters {
    /// How many at a time.
    pub(crate) tasks: f64,
    /// Whose most of them are.
    pub(crate) process: String,
    /// What most of them wait for there.
    pub(crate) cause: Cause,
    /// A file that one of them is at.
    pub(crate) file: Option<String>,
    /// All programs of them, with the tasks of each at a time, most first.
    pub(crate) programs: Vec<(String, f64)>,
}

impl Waiters {
    /// `46.2 tasks at a time, most of dd: waiting for data to be safe on disk, as at /spool/5`.
    pub(crate) fn sentence(&self) -> String {
        let file = self
            .file
            .as_ref()
            .map(|file| format!(", as at {file}"))
            .unwrap_or_default();
        format!(
            "{:.1} tasks at a time, most of {}: {}{file}",
            self.tasks,
            self.process,
            self.cause.phrase()
        )
    }
}

/// In which sleep a task is taken to be for what its functions say: where that is not known, it is blocked.
pub(crate) fn state(task: &SeenThread) -> TaskState {
    match task.state {
        State::Interruptible => TaskState::Interruptible,
        _ => TaskState::Uninterruptible,
    }
}

/// What a blocked task waits for, by its stack or its function.
pub(crate) fn cause(observed: &Observed, task: &SeenThread) -> Cause {
    let frames: Vec<String> = match (task.kernel_stack, &task.kernel_function) {
        (Some(stack), _) => observed.stacks.frames(stack).map(str::to_owned).collect(),
        (None, Some(function)) => vec![function.clone()],
        (None, None) => return Cause::Unknown,
    };
    classify::of_task(state(task), &frames, task.call).cause
}

/// Tasks of one program at one place in the kernel, in one list.
#[derive(Default)]
struct Group<'a> {
    tasks: usize,
    disks: BTreeSet<&'a str>,
    cause: Option<Cause>,
    file: Option<&'a str>,
}

/// Who waits for a disk; `None` where nobody does, or it was not looked at.
pub(crate) fn of(observed: &Observed, disk: &str) -> Option<Waiters> {
    let kernel = |list: &&Snapshot| list.kind == SnapshotKind::Kernel && list.states;
    let lists = || observed.snapshots.iter().filter(kernel);
    // A wait of a few milliseconds is over before it is looked at closely: those of one program at one place are like each other in all
    // lists, and so are those whose place nobody saw in time.
    let mut known: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for ((process, function), group) in lists().flat_map(|list| groups(observed, list)) {
        for key in [(process, function), (process, "")] {
            known.entry(key).or_default().extend(&group.disks);
        }
    }
    let at_it = |key: (&str, &str)| {
        known
            .get(&key)
            .is_some_and(|disks| disks.len() == 1 && disks.contains(disk))
    };
    let (mut count, mut all) = (0, 0);
    let mut programs: BTreeMap<&str, usize> = BTreeMap::new();
    let mut causes: BTreeMap<Cause, usize> = BTreeMap::new();
    let mut file = None;
    for list in lists() {
        count += 1;
        for ((process, function), group) in groups(observed, list) {
            let here = match group.disks.is_empty() {
                true => at_it((process, function)),
                false => group.disks.len() == 1 && group.disks.contains(disk),
            };
            if !here {
                continue;
            }
            all += group.tasks;
            *programs.entry(process).or_default() += group.tasks;
            if let Some(cause) = group.cause {
                *causes.entry(cause).or_default() += group.tasks;
            }
            file = file.or(group.file);
        }
    }
    let mut programs: Vec<(&str, usize)> = programs.into_iter().collect();
    programs.sort_by_key(|(name, tasks)| (std::cmp::Reverse(*tasks), *name));
    let (process, _) = programs.first()?;
    let cause = causes.into_iter().max_by_key(|(_, tasks)| *tasks);
    let cause = cause.map_or(Cause::Unknown, |(cause, _)| cause);
    Some(Waiters {
        tasks: all as f64 / f64::from(count.max(1)),
        process: (*process).to_owned(),
        cause,
        file: file.map(str::to_owned),
        programs: programs
            .iter()
            .map(|(name, tasks)| ((*name).to_owned(), *tasks as f64 / f64::from(count.max(1))))
            .collect(),
    })
}

fn groups<'a>(observed: &Observed, list: &'a Snapshot) -> BTreeMap<(&'a str, &'a str), Group<'a>> {
    let mut groups: BTreeMap<(&str, &str), Group<'_>> = BTreeMap::new();
    let blocked = list
        .threads
        .iter()
        .filter(|task| task.state == State::Uninterruptible);
    for task in blocked {
        let function = task.kernel_function.as_deref().unwrap_or_default();
        let group = groups.entry((task.name.as_str(), function)).or_default();
        group.tasks += 1;
        let Some(seen) = &task.file else { continue };
        // The disk of some is not known.
        if !seen.disk.is_empty() {
            group.disks.insert(&seen.disk);
        }
        group.cause = group.cause.or_else(|| Some(cause(observed, task)));
        group.file = group
            .file
            .or(Some(seen.path.as_str()).filter(|path| !path.is_empty()));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::{cause, of};
    use holdup_evidence::observed::{SeenFile, SeenThread, Snapshot, SnapshotKind, State};
    use holdup_evidence::{Cause, Observed};

    fn task(name: &str, disk: Option<&str>) -> SeenThread {
        SeenThread {
            name: name.to_owned(),
            state: State::Uninterruptible,
            kernel_function: Some("jbd2_log_wait_commit".to_owned()),
            file: disk.map(|disk| SeenFile {
                path: "/spool/1".to_owned(),
                disk: disk.to_owned(),
                limits: Vec::new(),
            }),
            ..SeenThread::default()
        }
    }

    fn list(threads: Vec<SeenThread>) -> Snapshot {
        Snapshot {
            threads,
            total: Some(100),
            of_threads: Some(true),
            ..Snapshot::new(SnapshotKind::Kernel, Default::default())
        }
    }

    #[test]
    fn those_beside_one_that_was_looked_at_wait_for_the_same_disk() {
        let observed = Observed {
            snapshots: vec![
                list(vec![task("dd", Some("sdb")), task("dd", None), task("cp", None)]),
                list(Vec::new()),
            ],
            ..Observed::default()
        };
        let waiters = of(&observed, "sdb").unwrap();
        assert_eq!((waiters.tasks, waiters.process.as_str()), (1.0, "dd"));
        assert_eq!(
            (waiters.cause, waiters.file.as_deref()),
            (Cause::DiskSync, Some("/spool/1"))
        );
        assert_eq!(of(&observed, "sda"), None);
    }

    #[test]
    fn tasks_that_nobody_looked_at_in_time_are_like_those_of_their_program_in_other_lists() {
        let unseen = |name: &str| SeenThread {
            kernel_function: None,
            ..task(name, None)
        };
        let elsewhere = SeenThread {
            kernel_function: Some("pipe_read".to_owned()),
            ..task("dd", None)
        };
        let observed = Observed {
            snapshots: vec![
                list(vec![task("dd", Some("sdb"))]),
                list(vec![unseen("dd"), unseen("cp"), elsewhere]),
            ],
            ..Observed::default()
        };
        let waiters = of(&observed, "sdb").unwrap();
        assert_eq!(waiters.programs, [("dd".to_owned(), 1.0)]);
    }

    #[test]
    fn a_task_that_sleeps_in_a_pipe_waits_for_no_lock() {
        let mut observed = Observed::default();
        let stack = observed.stacks.intern(["pipe_read", "vfs_read", "ksys_read"]);
        let mut reader = SeenThread {
            kernel_stack: Some(stack),
            state: State::Uninterruptible,
            ..SeenThread::default()
        };
        assert_eq!(cause(&observed, &reader), Cause::LockKernel);
        reader.state = State::Interruptible;
        assert_ne!(cause(&observed, &reader), Cause::LockKernel);
    }

    #[test]
    fn of_a_program_at_several_disks_nothing_is_said() {
        let observed = Observed {
            snapshots: vec![list(vec![task("dd", Some("sdb")), task("dd", Some("sdc"))])],
            ..Observed::default()
        };
        assert_eq!(of(&observed, "sdb"), None);
    }
}
