//! Goroutines that wait for a command, and those that copy its output for them.
//!
//! In: tasks. Out: who waits for a command waits for what its output comes through.

use super::runtime_tasks::is_for_descriptor;
use holdup_evidence::{Cause, TaskRuntime};
use holdup_knowledge::go;
use holdup_model::attributed::{Resource, Task, TaskState};
use std::collections::BTreeMap;

/// A goroutine that waits for a command of its own waits for what those wait for that copy the command's output: a process that it left behind
/// may have the pipe long after it has ended.
pub(super) fn await_output(tasks: &mut [Task]) {
    let symbols = |task: &Task| -> Vec<String> {
        let frames = task.stack.iter();
        frames.filter_map(|frame| frame.symbol.clone()).collect()
    };
    let is = |task: &Task, stands: fn(&[String]) -> bool| {
        task.runtime == TaskRuntime::Go && task.state == TaskState::Waiting && stands(&symbols(task))
    };
    let copies = |task: &&Task| {
        is_for_descriptor(task.cause)
            && is(task, |symbols| {
                go::copies_output(symbols.iter().map(String::as_str))
            })
    };
    let copying: BTreeMap<(u32, u64), (Cause, Resource)> = tasks
        .iter()
        .filter(copies)
        .filter_map(|task| Some(((task.pid, task.started_by?), (task.cause, task.resource.clone()))))
        .collect();
    for task in tasks.iter_mut() {
        let Some((cause, resource)) = copying.get(&(task.pid, task.id)) else {
            continue;
        };
        if is(task, |symbols| {
            go::awaits_output(symbols.iter().map(String::as_str))
        }) {
            (task.cause, task.resource, task.others) = (*cause, resource.clone(), None);
        }
    }
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

    fn task(id: u64, by: Option<u64>, cause: &str, what: &str, stack: &[&str]) -> Task {
        let stack: Vec<_> = stack.iter().map(|symbol| json!({ "symbol": symbol })).collect();
        let task = json!({
            "runtime": "go", "pid": 7, "id": id, "state": "waiting", "cause": cause, "started_by": by,
            "resource": {"kind": "file", "name": what}, "stack": stack,
        });
        serde_json::from_value(task).unwrap()
    }

    #[test]
    fn who_waits_for_a_command_waits_for_what_its_output_comes_through() {
        let pipe = "a pipe of fontcached (pid 21)";
        let channel = "a channel to receive from";
        let mut tasks = [
            task(1, None, "lock.futex", channel, &WAITS),
            task(2, Some(1), "poll.wait", pipe, &COPIES),
            // Another one's command, whose goroutines have ended: its child has not.
            task(3, None, "lock.futex", channel, &WAITS),
            // It only began such a goroutine.
            task(4, None, "lock.futex", channel, &["main.feed"]),
            task(5, Some(4), "poll.wait", pipe, &COPIES),
        ];
        await_output(&mut tasks);
        let named = tasks.each_ref().map(|task| task.resource.name.as_str());
        assert_eq!(named, [pipe, pipe, channel, channel, pipe]);
        assert_eq!(tasks[0].cause, tasks[1].cause);
    }
}
