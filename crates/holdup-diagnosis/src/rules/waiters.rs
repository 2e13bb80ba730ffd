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
    pub(crate) fn told(&self) -> String {
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

/// What a blocked task waits for, by its stack or its function.
pub(crate) fn cause(observed: &Observed, task: &SeenThread) -> Cause {
    let frames: Vec<String> = match (task.kernel_stack, &task.kernel_function) {
        (Some(stack), _) => observed.stacks.frames(stack).map(str::to_owned).collect(),
        (None, Some(function)) => vec![function.clone()],
        (None, None) => return Cause::Unknown,
    };
    classify::of_task(TaskState::Uninterruptible, &frames, task.call).cause
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
    let lists = observed.snapshots.iter().filter(kernel);
    let (mut count, mut all) = (0, 0);
    let mut programs: BTreeMap<&str, usize> = BTreeMap::new();
    let mut causes: BTreeMap<Cause, usize> = BTreeMap::new();
    let mut file = None;
    for list in lists {
        count += 1;
        for ((process, _), group) in groups(observed, list) {
            if group.disks.len() != 1 || !group.disks.contains(disk) {
                continue;
            }
            all += group.tasks;
            *programs.entry(process).or_default() += group.tasks;
            *causes.entry(group.cause.unwrap_or(Cause::Unknown)).or_default() += group.tasks;
            file = file.or(group.file);
        }
    }
    let mut programs: Vec<(&str, usize)> = programs.into_iter().collect();
    programs.sort_by_key(|(name, tasks)| (std::cmp::Reverse(*tasks), *name));
    let (process, _) = programs.first()?;
    let (cause, _) = causes.into_iter().max_by_key(|(_, tasks)| *tasks)?;
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
        group.disks.insert(&seen.disk);
        group.cause = group.cause.or_else(|| Some(cause(observed, task)));
        group.file = group
            .file
            .or(Some(seen.path.as_str()).filter(|path| !path.is_empty()));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::of;
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
            kind: SnapshotKind::Kernel,
            at: None,
            program: None,
            threads,
            deadlocks: Vec::new(),
            total: Some(100),
            of_threads: Some(true),
            states: true,
            quote: Default::default(),
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
    fn of_a_program_at_several_disks_nothing_is_said() {
        let observed = Observed {
            snapshots: vec![list(vec![task("dd", Some("sdb")), task("dd", Some("sdc"))])],
            ..Observed::default()
        };
        assert_eq!(of(&observed, "sdb"), None);
    }
}
