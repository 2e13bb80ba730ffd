//! Tasks that have ended with an exception, and that others wait for in vain.
//!
//! The problem: whoever reads the answers of a shared connection, or works on a queue, may have died of an exception that nobody has asked for;
//! the tasks that it was to serve wait for ever, and none of what they await names it. In: the tasks that have ended and that the program still
//! keeps, and those that wait. Out: each that failed, where its exception was raised, and which tasks wait beside it: their code stands in a
//! method of an object that the failed one's code worked on, or they await something that its code names. CPython keeps the frames of an
//! exception as long as the exception.

use super::super::objects_layout::Coroutines;
use super::super::{Interpreter, PythonFrame};
use super::{Found, TASK, TaskStatus};
use crate::memory::Source;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Tasks that have failed, of which the frames are read.
const FAILED_MAX: usize = 64;

/// Frames between where an exception was raised and its task.
const FRAMES_MAX: usize = 64;

/// The state of a future that has a result or an exception.
const FINISHED: u8 = 2;

/// Of a future its exception. Behind its state a word of which one bit says that nobody has asked for that.
const EXCEPTION: u64 = 48;
const NOBODY_ASKED: u64 = 4;

/// Where an exception has its frames: from 3.11, and before.
const FRAMES: [u64; 2] = [40, 32];

/// What those are called, and of each the next one further in, its frame, and its line.
const TRACEBACK: &str = "traceback";
const NEXT: u64 = 16;
const FRAME: u64 = 24;
const LINE: u64 = 36;

/// Of a frame that is an object what is read of frames, from 3.11.
const WITHIN: u64 = 24;

/// A task that has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTask {
    /// Its address.
    pub id: u64,
    /// Its name.
    pub name: Option<String>,
    /// The type of the exception.
    pub exception: String,
    /// Where it was raised, innermost first.
    pub frames: Vec<PythonFrame>,
    /// Whether nobody has asked for its result since.
    pub unasked: bool,
    /// The tasks that wait beside it.
    pub waiting: Vec<u64>,
    /// Whether its code names what each of them awaits; else the code of both only works on the same object.
    pub by_name: bool,
}

/// What is found first of such a task.
pub(super) struct Failed {
    task: FailedTask,
    /// The addresses of its frames.
    pub(super) frames: Vec<u64>,
    /// What tasks await that its code names.
    pub(super) uses: Vec<u64>,
}

impl<S: Source> Interpreter<S> {
    /// Those of these tasks that have failed.
    pub(super) fn failed(&mut self, tasks: &[u64]) -> Vec<Failed> {
        let mut found = Vec::new();
        for task in tasks {
            if found.len() < FAILED_MAX {
                found.extend(self.failed_task(*task));
            }
        }
        found
    }

    fn failed_task(&mut self, task: u64) -> Option<Failed> {
        let fields = self.layout.objects?.tasks;
        let state = task.checked_add(fields.state)?;
        if !self.is_a(task, TASK) || self.memory.byte(state)? != FINISHED {
            return None;
        }
        let exception = self.at(task, EXCEPTION).filter(|exception| *exception != 0)?;
        let kind = self.type_name(exception)?;
        let name = self.at(task, fields.name)?;
        let name = self.task_name(name);
        let (mut frames, mut shown) = (Vec::new(), Vec::new());
        for (frame, line) in self.came_through(exception)? {
            let read = self.frame(frame).ok()?;
            shown.push(PythonFrame {
                frame: Arc::new(holdup_evidence::Frame {
                    line: line.or(read.frame.line),
                    ..holdup_evidence::Frame::clone(&read.frame)
                }),
                entry: true,
            });
            frames.push(frame);
        }
        shown.reverse();
        let unasked = self.memory.byte(state.checked_add(NOBODY_ASKED)?)? & 1 != 0;
        let task = FailedTask {
            id: task,
            name,
            exception: kind,
            frames: shown,
            unasked,
            waiting: Vec::new(),
            by_name: false,
        };
        Some(Failed {
            task,
            frames,
            uses: Vec::new(),
        })
    }

    /// The frames that an exception came through, outermost first, and the line in each.
    fn came_through(&mut self, exception: u64) -> Option<Vec<(u64, Option<u32>)>> {
        let mut places = FRAMES.into_iter();
        let mut now = places.find_map(|offset| {
            let frames = self.at(exception, offset).filter(|frames| *frames != 0)?;
            (self.type_name(frames)? == TRACEBACK).then_some(frames)
        })?;
        let within = matches!(self.layout.objects?.coroutines, Coroutines::Within { .. });
        let (mut found, mut met) = (Vec::new(), HashSet::new());
        while now != 0 && found.len() < FRAMES_MAX && met.insert(now) {
            let object = self.at(now, FRAME)?;
            let frame = if within { self.at(object, WITHIN)? } else { object };
            // From 3.12 on it may be worked out when it is asked for.
            let line = self.memory.int(now.checked_add(LINE)?)?.cast_signed();
            found.push((frame, u32::try_from(line).ok().filter(|line| *line > 0)));
            now = self.at(now, NEXT)?;
        }
        Some(found)
    }

    /// Those of them beside which tasks wait.
    pub(super) fn beside(&mut self, failed: Vec<Failed>, found: &[Found]) -> Vec<FailedTask> {
        if failed.is_empty() {
            return Vec::new();
        }
        let mut waiting: Vec<(u64, Option<u64>, BTreeSet<u64>)> = Vec::new();
        for one in found.iter().filter(|one| one.task.status == TaskStatus::Waiting) {
            let objects = one.chain.frames.iter();
            let objects = objects.filter_map(|frame| self.first_variable(*frame)).collect();
            waiting.push((one.task.id, one.task.object, objects));
        }
        let mut beside = Vec::new();
        for one in failed {
            // What its outermost function worked on: the rest may be tools that all share.
            let own = one.frames.first().and_then(|frame| self.first_variable(*frame));
            let own = own.filter(|own| self.is_of_program(*own));
            let links = waiting.iter().filter_map(|(id, object, objects)| {
                let names = object.is_some_and(|object| one.uses.contains(&object));
                let shares = own.is_some_and(|own| objects.contains(&own));
                (names || shares).then_some((*id, names))
            });
            let (waiting, named): (Vec<u64>, Vec<bool>) = links.unzip();
            if !waiting.is_empty() {
                let by_name = named.into_iter().all(|named| named);
                beside.push(FailedTask {
                    waiting,
                    by_name,
                    ..one.task
                });
            }
        }
        beside
    }

    /// Whether an object has attributes: a number and a text are shared by code that has nothing to do with each other.
    fn is_of_program(&mut self, object: u64) -> bool {
        self.attributes(object)
            .is_some_and(|attributes| !attributes.is_empty())
    }
}
