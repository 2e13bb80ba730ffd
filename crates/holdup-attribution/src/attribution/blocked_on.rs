//! The futures on which threads block, and the waits that are for them.
//!
//! The problem: a thread in `block_on` stands in the library's code, and the application's is in the future that it runs; but a thread may also stand
//! within that future, or in a task that it runs meanwhile, and then the future's last `await` is not where it waits. The choice: the native stack
//! of the wait that goes on says so. In: waits, and tasks as they were when observation ended. Out: tasks without the futures in which their
//! threads stand, and waits with the frames of the future above those of the library.

use super::asker;
use holdup_evidence::{Frame, RuntimeTask};
use holdup_knowledge::rust;
use holdup_model::attributed::{AttributedWait, Task};

/// Puts the frames of futures into the stacks of the waits that are for them, and removes futures of which no such wait is known. `observed`: what the
/// tasks were made of.
pub(super) fn put_in_place(waits: &mut [AttributedWait], tasks: &mut Vec<Task>, observed: &[RuntimeTask]) {
    let threads: Vec<Option<u32>> = observed.iter().map(|one| one.blocks).collect();
    if threads.iter().all(Option::is_none) {
        return;
    }
    let mut threads = threads.into_iter();
    tasks.retain(|task| match threads.next().flatten() {
        Some(tid) => ask(waits, task, tid),
        None => true,
    });
}

/// Whether the thread waits for this future now; then the wait has its frames.
fn ask(waits: &mut [AttributedWait], task: &Task, tid: u32) -> bool {
    let mut is_for_it = false;
    for wait in waits {
        let name = &wait.asker.name;
        if (name.pid, name.tid) != (task.pid, tid) || !wait.open {
            continue;
        }
        let Some(at) = rust::blocks_on(&wait.asker.stack) else {
            continue;
        };
        is_for_it = true;
        // Earlier waits with this stack were for the same only if it stood there all the time.
        let same = wait.count <= 1 || task.stood > 0;
        if same && task.place.is_some() {
            // A future that is no function has no place.
            let functions = task.stack.iter().filter(|frame| frame.file.is_some());
            let frames: Vec<Frame> = functions.cloned().collect();
            wait.asker.stack.splice(at..at, frames);
            let asking = asker::choose(&wait.asker.stack);
            (wait.asker.frame, wait.asker.module) = (asking.frame, asking.module);
        }
    }
    is_for_it
}

#[cfg(test)]
mod tests {
    use super::put_in_place;
    use crate::attribution::runtime_tasks;
    use holdup_evidence::{
        Cause, Finish, Frame, RuntimeTask, TaskChannels, TaskDoes, TaskRuntime, UserStackId,
    };
    use holdup_model::attributed::{AttributedWait, Task};

    const OWN: &str = "/srv/shop/src/main.rs";

    fn frame(symbol: &str, file: Option<&str>) -> Frame {
        let module = if symbol.contains("::") {
            "shop"
        } else {
            "libc.so.6"
        };
        Frame {
            symbol: Some(symbol.to_owned()),
            module: Some(module.to_owned()),
            file: file.map(str::to_owned),
            line: file.map(|_| 41),
            ..Frame::default()
        }
    }

    const OF_TOKIO: &str = "/x/registry/src/y/tokio-1.54.1/src/sync/mutex.rs";

    /// A thread's wait that goes on, with these functions of its stack.
    fn wait(tid: u32, count: u64, symbols: &[&str]) -> AttributedWait {
        let wait = serde_json::json!({"cause": Cause::LockFutex, "ns": 9, "count": count, "open": true,
            "asker": {"name": {"pid": 7, "tid": tid}, "frame": "tokio::runtime::Runtime::block_on"}});
        let mut wait: AttributedWait = serde_json::from_value(wait).unwrap();
        let of = |symbol: &&str| symbol.contains("::").then_some(OF_TOKIO);
        let frames = symbols.iter().map(|symbol| frame(symbol, of(symbol)));
        wait.asker.stack = frames.chain([frame("shop::main", Some(OWN))]).collect();
        wait
    }

    const WAITS: [&str; 3] = [
        "syscall",
        "tokio::runtime::park::Inner::park",
        "tokio::runtime::park::CachedParkThread::block_on",
    ];

    fn observed(id: u64, blocks: Option<u32>, stood_since: Option<u64>) -> RuntimeTask {
        RuntimeTask {
            runtime: TaskRuntime::Tokio,
            pid: 7,
            process: "shop".to_owned(),
            id,
            does: TaskDoes::Waits,
            reason: Some("tokio::sync::mutex::lock".to_owned()),
            since: None,
            stood_since,
            channels: TaskChannels::default(),
            stack: Some(UserStackId(0)),
            name: None,
            blocks,
            started_by: None,
            awaits: None,
            descriptor: None,
            peer: None,
            opened: None,
            called_in: None,
            holder: None,
            holder_thread: None,
            datagrams: false,
        }
    }

    /// What the waits and the tasks come to.
    fn placed(mut waits: Vec<AttributedWait>, tasks: Vec<RuntimeTask>) -> (Vec<AttributedWait>, Vec<Task>) {
        let finish = Finish {
            ended: 900,
            user_stacks: vec![vec![
                frame("tokio::sync::batch_semaphore::Acquire", None),
                frame("tokio::sync::mutex::lock", Some(OF_TOKIO)),
                frame("shop::Till::book", Some(OWN)),
            ]],
            tasks,
            ..Finish::default()
        };
        let mut tasks = runtime_tasks::tasks(&finish);
        put_in_place(&mut waits, &mut tasks, &finish.tasks);
        (waits, tasks)
    }

    #[test]
    fn the_wait_of_a_thread_has_the_place_of_the_future_that_it_runs() {
        let (waits, tasks) = placed(vec![wait(7, 1, &WAITS)], vec![observed(1, Some(7), None)]);
        assert_eq!(tasks.len(), 1);
        let asker = &waits[0].asker;
        assert_eq!(asker.frame.as_deref(), Some("shop::Till::book"));
        let symbols: Vec<_> = asker
            .stack
            .iter()
            .map(|frame| frame.symbol.as_deref().unwrap())
            .collect();
        assert_eq!(
            symbols,
            [
                WAITS[0],
                WAITS[1],
                "tokio::sync::mutex::lock",
                "shop::Till::book",
                WAITS[2],
                "shop::main"
            ]
        );
    }

    #[test]
    fn a_thread_that_stands_in_its_future_or_elsewhere_does_not_wait_for_it() {
        let within = ["syscall", "hyper::lock", "tokio::task::coop::budget", WAITS[2]];
        let (waits, tasks) = placed(vec![wait(7, 1, &within)], vec![observed(1, Some(7), None)]);
        assert_eq!((waits[0].asker.stack.len(), tasks.len()), (5, 0));
        let (waits, tasks) = placed(
            vec![wait(8, 1, &WAITS)],
            vec![observed(1, Some(7), None), observed(2, None, None)],
        );
        assert_eq!(waits[0].asker.stack.len(), 4);
        assert_eq!(tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn earlier_waits_may_have_been_for_another_place() {
        let (waits, tasks) = placed(vec![wait(7, 5, &WAITS)], vec![observed(1, Some(7), None)]);
        assert_eq!((waits[0].asker.stack.len(), tasks.len()), (4, 1));
        let (waits, _) = placed(vec![wait(7, 5, &WAITS)], vec![observed(1, Some(7), Some(100))]);
        assert_eq!(waits[0].asker.stack.len(), 6);
    }
}
