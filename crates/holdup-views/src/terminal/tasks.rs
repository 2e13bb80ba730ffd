//! The lines about tasks of language runtimes: those of one state and place together.

use super::margins;
use crate::sheet::Sheet;
use crate::units::{counted, duration};
use holdup_evidence::{Ns, TaskRuntime};
use holdup_model::attributed::TaskState;
use holdup_model::report::{Report, Task};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Groups listed; more are counted.
const LISTED: usize = 8;

/// A process, whether its tasks are idle, whose tasks they are, and where they stand for what.
type Place = (u32, bool, TaskRuntime, String);

/// Tasks that stand in one place for one thing.
#[derive(Debug, Default)]
struct Group {
    count: u64,
    longest: Ns,
}

/// Writes them below the header. Idle ones are only counted; beside a finding they are no news.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let idle = report.findings.is_empty() || sheet.style().verbose;
    let shown = report
        .tasks
        .iter()
        .filter(|task| idle || task.state != TaskState::Idle);
    let shown: Vec<&Task> = shown.collect();
    let found = lines(&shown);
    let all = found.len();
    margins::lines(sheet, found.into_iter().take(LISTED), all, |more| {
        format!(
            "{}; the JSON report lists all tasks",
            counted(more, "more place", "more places")
        )
    });
}

fn lines(tasks: &[&Task]) -> Vec<String> {
    let mut groups: BTreeMap<Place, Group> = BTreeMap::new();
    for task in tasks {
        let idle = task.state == TaskState::Idle;
        let place = (task.asker.pid, idle, task.runtime, stands(task));
        let group = groups.entry(place).or_default();
        group.count += 1;
        group.longest = group.longest.max(task.since_ns);
    }
    let mut groups: Vec<(Place, Group)> = groups.into_iter().collect();
    groups.sort_by_key(|((pid, idle, ..), group)| (*idle, Reverse(group.count), *pid));
    let line = |((_, idle, runtime, stands), group): (Place, Group)| {
        let since = match group.longest {
            0 => String::new(),
            _ if idle => String::new(),
            longest if group.count == 1 => format!(", for about {}", duration(longest)),
            longest => format!(", one of them for about {}", duration(longest)),
        };
        let (one, many) = match runtime {
            TaskRuntime::Go => ("goroutine", "goroutines"),
            TaskRuntime::Asyncio => ("asyncio task", "asyncio tasks"),
            TaskRuntime::Java => ("virtual thread", "virtual threads"),
            TaskRuntime::Node => ("call of an async function", "calls of async functions"),
            TaskRuntime::Tokio => ("tokio task", "tokio tasks"),
        };
        format!("{} {stands}{since}", counted(group.count, one, many))
    };
    groups.into_iter().map(line).collect()
}

/// `of shop (pid 7) waiting for a sync.Mutex in main.pay, pay.go:41`.
fn stands(task: &Task) -> String {
    let of = format!("of {} (pid {})", task.asker.process, task.asker.pid);
    let what = match task.resource.name.as_str() {
        "" => task.cause.phrase().to_owned(),
        name => format!("waiting for {name}"),
    };
    match task.state {
        TaskState::Idle => format!("{of} idle"),
        TaskState::Running => format!("{of} running"),
        TaskState::Ready => format!("{of} runnable{}", place(task)),
        TaskState::Waiting => format!("{of} {what}{}", place(task)),
    }
}

fn place(task: &Task) -> String {
    let Some(frame) = &task.asker.frame else {
        return String::new();
    };
    let file = task
        .asker
        .file
        .as_deref()
        .and_then(|file| file.rsplit('/').next());
    match (file, task.asker.line) {
        (Some(file), Some(line)) => format!(" in {frame}, {file}:{line}"),
        _ => format!(" in {frame}"),
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use holdup_evidence::{Cause, TaskRuntime};
    use holdup_model::attributed::{Resource, ResourceKind, TaskState};
    use holdup_model::report::{Task, TaskAsker};

    fn task(id: u64, state: TaskState, what: &str, frame: Option<&str>, since_ns: u64) -> Task {
        Task {
            runtime: TaskRuntime::Go,
            id: id.to_string(),
            name: None,
            state,
            cause: Cause::LockFutex,
            since_ns,
            ns: 0,
            asker: TaskAsker {
                pid: 7,
                process: "shop".to_owned(),
                frame: frame.map(str::to_owned),
                module: None,
                file: frame.map(|_| "/srv/shop/pay.go".to_owned()),
                line: frame.map(|_| 41),
                stack: Vec::new(),
            },
            resource: Resource::named(ResourceKind::Lock, what),
            held_by: None,
            awaited_by: Vec::new(),
        }
    }

    #[test]
    fn tasks_of_one_place_are_one_line_and_idle_ones_come_last() {
        let waiting = |id, since| task(id, TaskState::Waiting, "a sync.Mutex", Some("main.pay"), since);
        let tasks = [
            task(1, TaskState::Idle, "", None, 9_000_000_000),
            waiting(2, 0),
            waiting(3, 2_000_000_000),
            task(4, TaskState::Waiting, "", None, 1_000_000_000),
            task(5, TaskState::Idle, "work of Go's runtime", None, 0),
            task(6, TaskState::Idle, "", None, 0),
        ];
        let found = lines(&tasks.iter().collect::<Vec<_>>());
        assert_eq!(
            found,
            [
                "2 goroutines of shop (pid 7) waiting for a sync.Mutex in main.pay, pay.go:41, one of them for \
                 about 2.00 s",
                "1 goroutine of shop (pid 7) waiting for a user-space lock or condition, for about 1.00 s",
                "3 goroutines of shop (pid 7) idle",
            ]
        );
        assert!(lines(&[]).is_empty());
    }
}
