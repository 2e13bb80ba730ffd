//! Goroutines that wait for a command, and those that copy its output for them.
//!
//! In: tasks. Out: who waits for a command waits for what its output comes through.

use super::runtime_tasks::is_for_descriptor;
use holdup_evidence::{Cause, TaskRuntime};
use holdup_knowledge::go;
use holdup_model::attributed::{Resource, Task, TaskState};
use std::collections::BTreeMap;

/// A goroutine that waits for the output of a command of its own waits for what those wait for that copy it: a process that the command left
/// behind may have the pipe long after it has ended. Where those that it started wait for different things, whose output it is is not known.
pub(super) fn await_output(tasks: &mut [Task]) {
    let mut copied: BTreeMap<(u32, u64), Option<(Cause, Resource)>> = BTreeMap::new();
    for task in tasks.iter().filter(|task| copies(task)) {
        let Some(by) = task.started_by else { continue };
        let known = copied
            .entry((task.pid, by))
            .or_insert_with(|| Some((task.cause, task.resource.clone())));
        let same = known
            .as_ref()
            .is_some_and(|(_, resource)| resource.name == task.resource.name);
        if !same {
            *known = None;
        }
    }
    for task in tasks.iter_mut().filter(|task| awaits(task)) {
        if let Some(Some((cause, resource))) = copied.get(&(task.pid, task.id)) {
            (task.cause, task.resource, task.others) = (*cause, resource.clone(), None);
        }
    }
}

/// Whether a goroutine copies what a command writes, and waits for more of it.
fn copies(task: &Task) -> bool {
    waits(task) && is_for_descriptor(task.cause) && go::copies_output(symbols(task))
}

/// Whether a goroutine waits for those that copy. Before that it waits for the command itself, in the same function.
fn awaits(task: &Task) -> bool {
    waits(task) && task.others.is_some() && go::awaits_output(symbols(task))
}

fn waits(task: &Task) -> bool {
    task.runtime == TaskRuntime::Go && task.state == TaskState::Waiting
}

fn symbols(task: &Task) -> impl Iterator<Item = &str> {
    task.stack.iter().filter_map(|frame| frame.symbol.as_deref())
}

#[cfg(test)]
mod tests {
    use super::await_output;
    use holdup_model::attributed::Task;
    use serde_json::json;

    const WAITS: [&str; 3] = [
        "os/exec.(*Cmd).awaitGoroutines",
        "os/exec.(*Cmd).Wait",
        "main.render",
    ];
    const COPIES: [&str; 2] = ["io.Copy", "os/exec.(*Cmd).writerDescriptor.func1"];

    const CHANNEL: &str = "a channel to receive from";

    fn task(id: u64, by: Option<u64>, what: &str, stack: &[&str]) -> Task {
        let stack: Vec<_> = stack.iter().map(|symbol| json!({ "symbol": symbol })).collect();
        let (cause, others) = match what {
            CHANNEL => ("lock.futex", json!("value")),
            _ => ("poll.wait", json!(null)),
        };
        let task = json!({
            "runtime": "go", "pid": 7, "id": id, "state": "waiting", "cause": cause, "started_by": by, "others": others,
            "resource": {"kind": "file", "name": what}, "stack": stack,
        });
        serde_json::from_value(task).unwrap()
    }

    fn named<const N: usize>(mut tasks: [Task; N]) -> [String; N] {
        await_output(&mut tasks);
        tasks.map(|task| task.resource.name)
    }

    const PIPE: &str = "a pipe of fontcached (pid 21)";

    #[test]
    fn who_waits_for_a_command_waits_for_what_its_output_comes_through() {
        let named = named([
            task(1, None, CHANNEL, &WAITS),
            task(2, Some(1), PIPE, &COPIES),
            // Its standard error, which the same process has.
            task(6, Some(1), PIPE, &COPIES),
            // Another one's command, whose goroutines have ended: its child has not.
            task(3, None, CHANNEL, &WAITS),
            // It only began such a goroutine.
            task(4, None, CHANNEL, &["main.feed"]),
            task(5, Some(4), PIPE, &COPIES),
        ]);
        assert_eq!(named, [PIPE, PIPE, PIPE, CHANNEL, CHANNEL, PIPE]);
    }

    #[test]
    fn of_two_commands_the_one_that_is_waited_for_is_not_known() {
        let other = "a pipe of indexer (pid 22)";
        let named = named([
            task(1, None, CHANNEL, &WAITS),
            task(2, Some(1), PIPE, &COPIES),
            task(3, Some(1), other, &COPIES),
        ]);
        assert_eq!(named, [CHANNEL, PIPE, other]);
    }

    #[test]
    fn who_waits_for_the_command_itself_does_not_wait_for_its_output_yet() {
        let call = "a system call";
        let stack = ["syscall.wait4", "os.(*Process).Wait", WAITS[1], WAITS[2]];
        let named = named([task(1, None, call, &stack), task(2, Some(1), PIPE, &COPIES)]);
        assert_eq!(named, [call, PIPE]);
    }
}
