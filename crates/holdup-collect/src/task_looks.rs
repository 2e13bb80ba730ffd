//! Looks at tasks of runtimes while a command runs: when it has ended, they are gone.
//!
//! In: processes whose memory can be read. Out: their tasks at some instants ([`TaskLook`]), which lie evenly over the observation and are few.
//! A look waits for the child that reads, as the last one does; so they get rarer until all of them together take a hundredth of the
//! time, and where there are no tasks they get rarer still.

use holdup_evidence::{Ns, RuntimeTask, TaskDoes, TaskLook, TaskRuntime};
use holdup_proc::clocks;

/// When the first look comes, after the first time that it is asked for one, nanoseconds: most runtimes have begun by then.
const FIRST_NS: Ns = 100_000_000;

/// Time between two looks at the least, nanoseconds.
const SPACING_NS: Ns = 100_000_000;

/// Looks take one part in so many of the time.
const SHARE: u64 = 100;

/// Looks that are kept. Where there are more every second one is forgotten, and from then on they come half as often.
const LOOKS_MAX: usize = 24;

/// The time between two looks doubles so often at the most while a program has no tasks, and so often because there are too many looks.
const DOUBLED_MAX: u32 = 5;
const THINNED_MAX: u32 = 20;

/// The looks.
#[derive(Debug, Default)]
pub(super) struct TaskLooks {
    kept: Vec<TaskLook>,
    /// When the next one is due; 0 before the first time that one is asked for.
    due: Ns,
    /// How often the time between two has doubled because there were too many.
    thinned: u32,
    /// How many in a row met no tasks.
    empty: u32,
    /// Whether one is over.
    began: bool,
}

impl TaskLooks {
    /// Whether a look is due, and when it begins if so.
    pub(super) fn is_due(&mut self) -> Option<Ns> {
        let now = clocks::monotonic();
        if self.due == 0 {
            self.due = now.saturating_add(FIRST_NS);
        }
        (now >= self.due).then_some(now)
    }

    /// What a look that began then has met.
    pub(super) fn met(&mut self, begun: Ns, tasks: Vec<RuntimeTask>) {
        // When it is over: a task that has been read stood there by then, or has gone on since.
        let at = clocks::monotonic();
        self.empty = if tasks.is_empty() {
            self.empty.saturating_add(1)
        } else {
            0
        };
        // The first look at a program finds out about it, and takes longer than those that follow.
        let pause = match self.began {
            false => 0,
            true => at.saturating_sub(begun).saturating_mul(SHARE),
        };
        self.began = true;
        if !tasks.is_empty() {
            self.keep(TaskLook { at, tasks });
        }
        let spacing = (SPACING_NS << self.thinned) << self.empty.min(DOUBLED_MAX);
        self.due = at.saturating_add(pause.max(spacing));
    }

    fn keep(&mut self, look: TaskLook) {
        if self.kept.len() >= LOOKS_MAX {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            self.thinned = (self.thinned + 1).min(THINNED_MAX);
        }
        self.kept.push(look);
    }

    /// The looks, in their order.
    pub(super) fn finish(&mut self) -> Vec<TaskLook> {
        std::mem::take(&mut self.kept)
    }
}

/// Corrects since when tasks stand where they were met at the first look and at the last: who was not met there by a look in between has gone on
/// meanwhile, and stands there again. A task that none of these looks could meet keeps what is known of it.
pub(super) fn shorten(tasks: &mut [RuntimeTask], looks: &[TaskLook]) {
    // Those of Node.js are looked at by others.
    let looked_at = |task: &&mut RuntimeTask| task.runtime != TaskRuntime::Node;
    let stands = |looked: &RuntimeTask, now: &RuntimeTask| {
        (looked.pid, looked.id) == (now.pid, now.id)
            && looked.does == TaskDoes::Waits
            && (&looked.reason, looked.stack) == (&now.reason, now.stack)
    };
    for task in tasks.iter_mut().filter(looked_at) {
        let Some(since) = task.stood_since else { continue };
        let later = looks.iter().rev().take_while(|look| look.at > since);
        let mut streak = later.map(|look| (look.at, look.tasks.iter().any(|one| stands(one, task))));
        let mut met = None;
        let gone = streak.any(|(at, there)| {
            if there {
                met = Some(at);
            }
            !there
        });
        if gone {
            task.stood_since = met;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOKS_MAX, TaskLooks, shorten};
    use holdup_evidence::{RuntimeTask, TaskChannels, TaskDoes, TaskLook, TaskRuntime, UserStackId};

    fn waits(id: u64, stack: u32, stood_since: Option<u64>) -> RuntimeTask {
        RuntimeTask {
            runtime: TaskRuntime::Asyncio,
            pid: 7,
            process: "shop".to_owned(),
            id,
            does: TaskDoes::Waits,
            reason: None,
            since: None,
            stood_since,
            channels: TaskChannels::default(),
            stack: Some(UserStackId(stack)),
            name: None,
            blocks: None,
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

    #[test]
    fn who_has_gone_on_between_two_looks_has_not_stood_there() {
        let look = |at, tasks| TaskLook { at, tasks };
        let looks = [
            look(200, vec![waits(1, 0, None), waits(2, 0, None), waits(3, 0, None)]),
            look(300, vec![waits(1, 0, None), waits(2, 9, None)]),
            look(400, vec![waits(1, 0, None), waits(2, 0, None)]),
        ];
        let mut tasks = [
            waits(1, 0, Some(100)),
            waits(2, 0, Some(100)),
            waits(3, 0, Some(100)),
            waits(4, 0, None),
        ];
        shorten(&mut tasks, &looks);
        let since = tasks.map(|task| task.stood_since);
        assert_eq!(since, [Some(100), Some(400), None, None]);
    }

    #[test]
    fn without_looks_in_between_the_first_and_the_last_stand() {
        let mut tasks = [waits(1, 0, Some(100))];
        shorten(&mut tasks, &[]);
        shorten(
            &mut tasks,
            &[TaskLook {
                at: 50,
                tasks: Vec::new(),
            }],
        );
        assert_eq!(tasks[0].stood_since, Some(100));
    }

    #[test]
    fn looks_stay_few_and_lie_over_all_of_the_time() {
        let mut looks = TaskLooks::default();
        for at in 0..1_000 {
            looks.keep(TaskLook {
                at,
                tasks: Vec::new(),
            });
        }
        assert!(looks.thinned > 0);
        let kept = looks.finish();
        assert!(kept.len() <= LOOKS_MAX && kept.len() >= LOOKS_MAX / 2);
        assert!(kept.is_sorted_by_key(|look| look.at));
        assert_eq!(kept.last().unwrap().at, 999);
    }
}
