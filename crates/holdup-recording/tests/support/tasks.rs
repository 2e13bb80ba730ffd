//! Tasks and their queues, made of dice.

use super::Dice;
use holdup_evidence::{Cause, TaskChannels, TaskRuntime};
use holdup_model::attributed::{
    Resource, ResourceKind, Task, TaskHas, TaskHolder, TaskOthers, TaskQueue, TaskQueueFor, TaskState,
};

impl Dice {
    pub(super) fn task(&mut self) -> Task {
        let dice = self;
        Task {
            runtime: dice.of(&[TaskRuntime::Go, TaskRuntime::Asyncio, TaskRuntime::Java]),
            pid: dice.below(9) as u32,
            process: dice.text(),
            id: dice.number(),
            state: dice.of(&[TaskState::Ready, TaskState::Waiting, TaskState::Idle]),
            cause: dice.of(&[Cause::LockFutex, Cause::Idle]),
            since: dice.number(),
            ns: dice.number(),
            stood: dice.number(),
            lock: dice.below(2) == 0,
            pool: dice.below(2) == 0,
            sends: dice.below(2) == 0,
            channels: TaskChannels {
                awaits: dice.list(2, Dice::number),
                refers: dice.list(2, Dice::number),
                uses: dice.list(2, Dice::number),
                timed: dice.below(2) == 0,
            },
            others: dice.some(|dice| dice.of(&[TaskOthers::Group, TaskOthers::First])),
            started_by: dice.some(Dice::number),
            resource: Resource::named(ResourceKind::Lock, dice.text()),
            place: None,
            name: dice.some(Dice::text),
            awaits: dice.some(Dice::number),
            held_by: dice.some(Dice::number),
            held_by_thread: dice.some(|dice| dice.below(9) as u32),
            stack: dice.list(3, Dice::frame),
        }
    }

    pub(super) fn task_queue(&mut self) -> TaskQueue {
        let dice = self;
        TaskQueue {
            runtime: dice.of(&[TaskRuntime::Go, TaskRuntime::Asyncio]),
            pid: dice.below(9) as u32,
            process: dice.text(),
            cause: Cause::LockFutex,
            resource: Resource::named(ResourceKind::Lock, dice.text()),
            kind: dice.of(&[TaskQueueFor::Lock, TaskQueueFor::Pool, TaskQueueFor::Taker]),
            place: dice.frame(),
            stack: dice.list(3, Dice::frame),
            other_places: dice.number(),
            tasks: dice.number(),
            most: dice.number(),
            met: dice.number(),
            looks: dice.number(),
            covered: dice.number(),
            waited: dice.number(),
            longest: dice.number(),
            holders: dice.list(2, |dice| TaskHolder {
                has: dice.of(&[TaskHas::Noted, TaskHas::Taken, TaskHas::Uses]),
                place: dice.frame(),
                cause: dice.cause(),
                resource: Resource::named(ResourceKind::Lock, dice.text()),
                looks: dice.number(),
            }),
        }
    }
}
