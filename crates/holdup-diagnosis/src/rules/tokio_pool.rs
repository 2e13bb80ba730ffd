//! tokio's pool of threads for what blocks (`spawn_blocking`, files): whether all of it is taken while tasks need it.
//!
//! In: waits with their stacks, and tasks. Out: the waits that all threads of one process's pool were in at once, and the tasks that stand behind
//! them. tokio starts another thread for what is asked of the pool as long as it has fewer than it may have and none is free, so tasks that stand
//! while none is free have met that limit. The threads on which the scheduler runs tasks are of the same pool, and are none of those.

use super::full_pool::{self, Full};
use super::{Run, say, tasks};
use crate::rules::duration;
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Frame, Ns, TaskRuntime};
use holdup_model::attributed::{AttributedWait, Task, TaskState};
use holdup_model::finding::{Evidence, Remedy};
use std::collections::BTreeSet;

/// Part of the names of functions that a thread of the pool runs, of what it runs while it is taken, and of what makes it one of the scheduler's.
const POOL: &str = "tokio::runtime::blocking::pool::";
const TAKEN: &str = "tokio::runtime::blocking::task::BlockingTask";
const SCHEDULER: &str = "tokio::runtime::scheduler::";

/// What tasks need the pool for, by what they await; and the module, of tokio or of the standard library, in which a thread of the pool is then.
const FILES: &str = "tokio::fs::";
const FILES_MODULE: &str = "fs";

fn has(stack: &[Frame], part: &str) -> bool {
    let mut symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    symbols.any(|symbol| symbol.contains(part))
}

fn of_pool(wait: &AttributedWait) -> bool {
    let stack = &wait.asker.stack;
    (has(stack, POOL) || has(stack, TAKEN)) && !has(stack, SCHEDULER)
}

fn waits_for_work(wait: &AttributedWait) -> bool {
    !has(&wait.asker.stack, TAKEN)
}

/// Whether each thread that has the name of the pool's is one of those, or one of the scheduler's: of another, which may have computed all the
/// time, nothing says whether it is free.
fn knows_all(run: &Run<'_>, pool: &Full<'_>) -> bool {
    let main = &pool.waits.main().asker.name;
    let known: BTreeSet<u32> = run
        .attributed
        .waits
        .iter()
        .filter(|wait| of_pool(wait) || has(&wait.asker.stack, SCHEDULER))
        .map(|wait| wait.asker.name.tid)
        .collect();
    let mut same = run
        .attributed
        .threads
        .iter()
        .filter(|thread| thread.name.pid == main.pid && thread.name.thread == main.thread);
    same.all(|thread| known.contains(&thread.name.tid))
}

/// A pool whose threads were all taken, and the tasks that need one.
pub(super) struct Taken<'a> {
    pub(super) pool: Full<'a>,
    behind: Vec<&'a Task>,
}

/// The pools of tokio that were full while tasks stood behind them. Where a thread of the pool works on a file, it may be for a task that waits.
pub(super) fn taken<'a>(run: &Run<'a>) -> Vec<Taken<'a>> {
    let full = full_pool::full(run, of_pool, waits_for_work).into_iter();
    let taken = full.filter_map(|pool| {
        let in_files = |wait: &AttributedWait| {
            let mut symbols = wait
                .asker
                .stack
                .iter()
                .filter_map(|frame| frame.symbol.as_deref());
            symbols.any(|symbol| symbol.split("::").any(|part| part == FILES_MODULE))
        };
        if pool.waits.iter().any(in_files) {
            return None;
        }
        if !knows_all(run, &pool) {
            return None;
        }
        let pid = pool.waits.main().asker.name.pid;
        // One that goes round in a pool that is busy by turns is met in the same place twice as well.
        let behind = |stood: Ns| stood > 0 && pool.both >= stood / 2;
        let needs = |task: &&Task| {
            let waits = task.runtime == TaskRuntime::Tokio && task.state == TaskState::Waiting;
            task.pid == pid && waits && behind(task.stood) && has(&task.stack, FILES)
        };
        let behind: Vec<&Task> = run.attributed.tasks.iter().filter(needs).collect();
        (!behind.is_empty()).then_some(Taken { pool, behind })
    });
    taken.collect()
}

impl Taken<'_> {
    /// The first sentence.
    pub(super) fn title(&self) -> String {
        let main = self.pool.waits.main();
        let who = say::name_or(&main.asker.name.process, "the program");
        let what = full_pool::awaited(&self.pool.waits).map_or_else(String::new, |what| format!(", {what}"));
        let place = chosen_frame(&main.asker.stack)
            .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
        let first = self.behind.first();
        let named = first.map_or("task", |task| tasks::name(task));
        let behind = match self.behind.len() {
            1 => format!("1 {named} that needs one waits behind"),
            count => format!("{count} {named}s that need one wait behind"),
        };
        let places = tasks::say_places(&tasks::places(&self.behind, tasks::place));
        match self.pool.threads {
            1 => format!(
                "The one thread of tokio's pool for blocking calls in {who} waits{what}{place}: {behind}, in {places}"
            ),
            count => format!(
                "All {count} threads of tokio's pool for blocking calls in {who} wait at once{what}{place}: {behind}, in {places}"
            ),
        }
    }

    /// What it rests on.
    pub(super) fn evidence(&self) -> [Evidence; 2] {
        let alone = format!("for {} none of them was free", duration(self.pool.both));
        let stood = self
            .behind
            .iter()
            .map(|task| task.stood)
            .min()
            .unwrap_or_default();
        let behind = format!(
            "these tasks wait for {FILES}…, which needs a thread of the pool, and stood so for at least {}",
            duration(stood)
        );
        [
            Evidence::new(alone, "user stacks, and when each wait began and ended"),
            Evidence::new(behind, "tasks at a first look and at a last"),
        ]
    }

    /// What to do.
    pub(super) fn remedies() -> [Remedy; 3] {
        [
            Remedy::safe(
                "let no blocking task wait for what needs the same pool: within it use the standard library's files, and end it before something else is asked",
            ),
            Remedy::safe(
                "give what the blocking tasks wait for a time limit, or do it with tokio's own calls",
            ),
            Remedy::changing(
                "more threads: max_blocking_threads of the runtime's builder",
                "tasks that wait for each other come to the new limit as well",
            ),
        ]
    }
}
