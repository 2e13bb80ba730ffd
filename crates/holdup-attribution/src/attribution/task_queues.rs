//! Queues of tasks for locks, from looks at a program while it was observed.
//!
//! The problem: a task that waits for a lock has no thread that does, and a command's tasks are gone when it has ended. The choice: tasks are
//! looked at now and then, and what lies between two looks is taken to be like the nearer one. So a queue's time is an estimate, and one
//! that a few looks met is told as that. In: the looks. Out: for each lock, pool or semaphore who waited for it where, how many, for
//! about how long, and who had it meanwhile.

use holdup_evidence::{Finish, Frame, Ns, TaskRuntime};
use holdup_knowledge::asyncio;
use holdup_model::attributed::{Task, TaskHas, TaskHolder, TaskOthers, TaskQueue, TaskQueueFor, TaskState};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Queues that a report has.
const QUEUES_MAX: usize = 64;

/// Places of holders that one has.
const HOLDERS_MAX: usize = 3;

/// Tasks as they were at one instant.
pub(super) struct Look {
    at: Ns,
    /// For how long they stand, nanoseconds: half of the time to the look before and half of that to the next one.
    covers: Ns,
    pub(super) tasks: Vec<Task>,
}

/// The looks of an observation.
pub(super) fn looks(finish: &Finish) -> Vec<Look> {
    let at: Vec<Ns> = finish.task_looks.iter().map(|look| look.at).collect();
    // The first and the last stand for as long on their open side as on the other one, within the observation.
    let covers = |place: usize| {
        let now = at[place];
        let before = place
            .checked_sub(1)
            .map(|before| now.saturating_sub(at[before]) / 2);
        let after = at.get(place + 1).map(|after| after.saturating_sub(now) / 2);
        let open = before.or(after).unwrap_or(0);
        let before = before.unwrap_or_else(|| open.min(now.saturating_sub(finish.started)));
        before + after.unwrap_or_else(|| open.min(finish.ended.saturating_sub(now)))
    };
    let each = finish.task_looks.iter().enumerate();
    each.map(|(place, look)| Look {
        at: look.at,
        covers: covers(place),
        tasks: super::runtime_tasks::of(&look.tasks, finish),
    })
    .collect()
}

/// What tells a queue from others: the process, and the lock; where that is not known, the function and line in which they stand.
type Key = (u32, Option<u64>, Option<(Option<String>, Option<u32>)>);

/// A function of a file, and the line.
type Spot = (Option<String>, Option<String>, Option<u32>);

fn spot(frame: &Frame) -> Spot {
    (frame.symbol.clone(), frame.file.clone(), frame.line)
}

/// What is gathered of one.
struct Gathered<'a> {
    first: &'a Task,
    places: BTreeMap<Spot, (u64, &'a Task)>,
    tasks: BTreeSet<u64>,
    most: u64,
    met: u64,
    covered: Ns,
    waited: Ns,
    /// Since when each task that the last look met in it was met there, and when that look was.
    since: BTreeMap<u64, Ns>,
    last: Option<usize>,
    longest: Ns,
    holders: BTreeMap<(TaskHas, Spot), (u64, &'a Task)>,
}

/// The queues, the longest first.
pub(super) fn of(looks: &[Look], finish: &Finish) -> Vec<TaskQueue> {
    let mut queues: BTreeMap<Key, Gathered<'_>> = BTreeMap::new();
    for (place, look) in looks.iter().enumerate() {
        let mut waiting: BTreeMap<Key, Vec<&Task>> = BTreeMap::new();
        for task in look.tasks.iter().filter(|task| kind(task).is_some()) {
            let lock = task.channels.awaits.first().copied();
            let stands = task
                .place
                .as_ref()
                .map(|place| (place.symbol.clone(), place.line));
            let key = (task.pid, lock, stands.filter(|_| lock.is_none()));
            waiting.entry(key).or_default().push(task);
        }
        for (key, tasks) in waiting {
            let known = queues.entry(key).or_insert_with(|| Gathered {
                first: tasks[0],
                places: BTreeMap::new(),
                tasks: BTreeSet::new(),
                most: 0,
                met: 0,
                covered: 0,
                waited: 0,
                since: BTreeMap::new(),
                last: None,
                longest: 0,
                holders: BTreeMap::new(),
            });
            known.take(place, look, &tasks);
        }
    }
    let mut found: Vec<TaskQueue> = queues
        .into_values()
        .filter_map(|one| one.finish(looks, finish))
        .collect();
    found.sort_by_key(|queue| Reverse((queue.covered, queue.waited, queue.tasks)));
    found.truncate(QUEUES_MAX);
    found
}

/// In what queue a task stands for what others have or take, in the application's code.
fn kind(task: &Task) -> Option<TaskQueueFor> {
    let puts = || task.sends || task.runtime == TaskRuntime::Asyncio && asyncio::puts(&task.stack);
    if task.state != TaskState::Waiting || task.place.is_none() {
        return None;
    }
    match (task.lock, task.pool) {
        (true, _) => Some(TaskQueueFor::Lock),
        (_, true) => Some(TaskQueueFor::Pool),
        _ => puts().then_some(TaskQueueFor::Taker),
    }
}

impl<'a> Gathered<'a> {
    fn take(&mut self, number: usize, look: &'a Look, tasks: &[&'a Task]) {
        let count = tasks.len() as u64;
        let followed = self.last.is_some_and(|last| last + 1 == number);
        let before = std::mem::take(&mut self.since);
        self.last = Some(number);
        self.most = self.most.max(count);
        self.met += 1;
        self.covered = self.covered.saturating_add(look.covers);
        self.waited = self.waited.saturating_add(look.covers.saturating_mul(count));
        for task in tasks {
            self.tasks.insert(task.id);
            let since = before
                .get(&task.id)
                .filter(|_| followed)
                .copied()
                .unwrap_or(look.at);
            self.since.insert(task.id, since);
            self.longest = self.longest.max(look.at.saturating_sub(since));
            if let Some(place) = &task.place {
                self.places.entry(spot(place)).or_insert((0, task)).0 += 1;
            }
        }
        let mut here: BTreeSet<(TaskHas, Spot)> = BTreeSet::new();
        for (has, holder) in holders(look, tasks) {
            let Some(place) = &holder.place else { continue };
            let key = (has, spot(place));
            // Several in one place at one look are one.
            if here.insert(key.clone()) {
                self.holders.entry(key).or_insert((0, holder)).0 += 1;
            }
        }
    }

    fn finish(self, looks: &[Look], finish: &Finish) -> Option<TaskQueue> {
        let other_places = self.places.len().saturating_sub(1) as u64;
        let (_, main) = self.places.into_values().max_by_key(|(count, _)| *count)?;
        let mut holders: Vec<TaskHolder> = self
            .holders
            .into_iter()
            .filter_map(|((has, _), (looks, task))| {
                Some(TaskHolder {
                    has,
                    place: task.place.clone()?,
                    cause: task.cause,
                    resource: task.resource.clone(),
                    looks,
                })
            })
            .collect();
        holders.sort_by_key(|one| Reverse(one.looks));
        holders.truncate(HOLDERS_MAX);
        let of_process = |look: &&Look| look.tasks.iter().any(|task| task.pid == self.first.pid);
        Some(TaskQueue {
            runtime: self.first.runtime,
            pid: self.first.pid,
            process: self.first.process.clone(),
            cause: self.first.cause,
            resource: self.first.resource.clone(),
            kind: kind(self.first).unwrap_or_default(),
            place: main.place.clone()?,
            stack: main.stack.clone(),
            other_places,
            tasks: self.tasks.len() as u64,
            most: self.most,
            met: self.met,
            looks: looks.iter().filter(of_process).count() as u64,
            covered: self.covered.min(finish.ended.saturating_sub(finish.started)),
            waited: self.waited,
            longest: self.longest,
            holders,
        })
    }
}

/// Who has at this look what these wait for.
fn holders<'a>(look: &'a Look, waiting: &[&Task]) -> Vec<(TaskHas, &'a Task)> {
    let pid = waiting[0].pid;
    let noted: BTreeSet<u64> = waiting.iter().filter_map(|task| task.held_by).collect();
    let wanted: BTreeSet<u64> = waiting
        .iter()
        .flat_map(|task| &task.channels.awaits)
        .copied()
        .collect();
    let waits_here: BTreeSet<u64> = waiting.iter().map(|task| task.id).collect();
    // A lock of Go's has no note of who took it; a pool's connections have.
    let by_reference = match waiting
        .iter()
        .all(|task| task.lock && task.runtime == TaskRuntime::Go)
    {
        true => TaskHas::Taken,
        false => TaskHas::Noted,
    };
    let taken = waiting.iter().all(|task| kind(task) == Some(TaskQueueFor::Taker));
    let own = || look.tasks.iter().filter(|task| task.pid == pid);
    if taken {
        return own()
            .filter(|task| !waits_here.contains(&task.id) && !beside(task, waiting) && takes(task, &wanted))
            .map(|task| (TaskHas::Uses, task))
            .collect();
    }
    own()
        .filter_map(|task| {
            if noted.contains(&task.id) {
                return Some((TaskHas::Noted, task));
            }
            let refers = task.channels.refers.iter().any(|one| wanted.contains(one));
            // Who waits for it himself may refer to it because of that.
            (refers && !waits_here.contains(&task.id)).then_some((by_reference, task))
        })
        .collect()
}

/// Whether a task stands in a function in which these wait: it has sent, and is past that.
fn beside(task: &Task, waiting: &[&Task]) -> bool {
    let own = |task: &Task| task.place.as_ref().and_then(|place| place.symbol.clone());
    waiting.iter().any(|one| own(one) == own(task))
}

/// Whether a task may take what is sent on one of these. Who waits for the end of others, or for one of them, has only handed the channel on; who has no
/// work would take it at once.
fn takes(task: &Task, wanted: &BTreeSet<u64>) -> bool {
    let mut known = task.channels.refers.iter().chain(&task.channels.uses);
    let hands_on = task.others == Some(TaskOthers::Group) || task.awaits.is_some();
    task.state != TaskState::Idle && !hands_on && known.any(|one| wanted.contains(one))
}

#[cfg(test)]
mod tests {
    use super::{looks, of};
    use holdup_evidence::{
        Finish, Frame, Language, RuntimeTask, TaskChannels, TaskDoes, TaskLook, TaskRuntime, UserStackId,
    };
    use holdup_model::attributed::{TaskHas, TaskQueueFor};

    const MS: u64 = 1_000_000;

    fn frame(symbol: &str, line: u32) -> Frame {
        Frame {
            symbol: Some(symbol.to_owned()),
            line: Some(line),
            language: Language::Go,
            ..Frame::default()
        }
    }

    fn goroutine(id: u64, reason: &str, stack: u32, channels: TaskChannels) -> RuntimeTask {
        RuntimeTask {
            runtime: TaskRuntime::Go,
            pid: 7,
            process: "shop".to_owned(),
            id,
            does: TaskDoes::Waits,
            reason: Some(reason.to_owned()),
            since: None,
            stood_since: None,
            channels,
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

    fn waits(id: u64, lock: u64) -> RuntimeTask {
        let channels = TaskChannels {
            awaits: vec![lock],
            ..TaskChannels::default()
        };
        goroutine(id, "sync.Mutex.Lock", 0, channels)
    }

    fn has(id: u64, lock: u64) -> RuntimeTask {
        let channels = TaskChannels {
            refers: vec![lock],
            ..TaskChannels::default()
        };
        goroutine(id, "sleep", 1, channels)
    }

    fn finish(each: Vec<(u64, Vec<RuntimeTask>)>) -> Finish {
        Finish {
            started: 0,
            ended: 1_000 * MS,
            user_stacks: vec![
                vec![frame("sync.(*Mutex).Lock", 8), frame("main.pay", 41)],
                vec![frame("time.Sleep", 3), frame("main.audit", 77)],
            ],
            task_looks: each
                .into_iter()
                .map(|(at, tasks)| TaskLook { at: at * MS, tasks })
                .collect(),
            ..Finish::default()
        }
    }

    #[test]
    fn a_queue_lasts_for_the_looks_that_met_it_and_has_who_has_the_lock() {
        let finish = finish(vec![
            (200, vec![waits(1, 5), waits(2, 5), has(9, 5)]),
            (400, vec![waits(2, 5), has(9, 5)]),
            (600, vec![has(9, 6)]),
            (800, vec![waits(3, 6), has(9, 5)]),
        ]);
        let queues = of(&looks(&finish), &finish);
        let [first, second] = queues.as_slice() else {
            panic!("{queues:?}")
        };
        assert_eq!((first.tasks, first.most, first.met, first.looks), (2, 2, 2, 4));
        // The first look stands from 100 to 300 ms, the second up to 500 ms.
        assert_eq!((first.covered, first.waited), (400 * MS, 600 * MS));
        // One task was met at both.
        assert_eq!(first.longest, 200 * MS);
        assert_eq!(first.place.symbol.as_deref(), Some("main.pay"));
        assert_eq!(first.resource.name, "a sync.Mutex");
        let [holder] = first.holders.as_slice() else {
            panic!("{:?}", first.holders)
        };
        assert_eq!(
            (holder.has, holder.looks, holder.place.symbol.as_deref()),
            (TaskHas::Taken, 2, Some("main.audit"))
        );
        // Another lock is another queue, and who has the first one has not this one.
        assert_eq!((second.met, second.holders.len()), (1, 0));
    }

    #[test]
    fn who_waits_for_a_lock_does_not_have_it_by_a_reference_that_the_wait_itself_needs() {
        let mut both = waits(1, 5);
        both.channels.refers = vec![5];
        let finish = finish(vec![(100, vec![both, waits(2, 5)]), (900, vec![])]);
        let queues = of(&looks(&finish), &finish);
        assert_eq!((queues[0].most, queues[0].holders.len()), (2, 0));
        assert_eq!(queues[0].looks, 1);
    }

    #[test]
    fn who_takes_from_a_channel_is_not_who_hands_it_on() {
        let sends = |id| RuntimeTask {
            reason: Some("chan send".to_owned()),
            ..waits(id, 5)
        };
        let hands_on = RuntimeTask {
            reason: Some("sync.WaitGroup.Wait".to_owned()),
            stack: Some(UserStackId(2)),
            ..has(1, 5)
        };
        let mut finish = finish(vec![
            (100, vec![hands_on.clone(), sends(3), sends(4), has(9, 5)]),
            (200, vec![hands_on, sends(4), has(9, 5)]),
        ]);
        finish
            .user_stacks
            .push(vec![frame("sync.(*WaitGroup).Wait", 5), frame("main.main", 90)]);
        let queues = of(&looks(&finish), &finish);
        let [queue] = queues.as_slice() else {
            panic!("{queues:?}")
        };
        assert_eq!((queue.kind, queue.most, queue.met), (TaskQueueFor::Taker, 2, 2));
        let each: Vec<_> = queue
            .holders
            .iter()
            .map(|one| (one.has, one.place.symbol.as_deref(), one.looks))
            .collect();
        assert_eq!(each, [(TaskHas::Uses, Some("main.audit"), 2)]);
    }

    #[test]
    fn one_look_alone_says_nothing_of_a_length() {
        let finish = finish(vec![(100, vec![waits(1, 5)])]);
        let queues = of(&looks(&finish), &finish);
        assert_eq!((queues[0].covered, queues[0].met), (0, 1));
    }
}
