//! Stacks, each once.
//!
//! The same few stacks stand behind many waits, and the same frames in many stacks. In a file each frame and each stack is
//! reported once, and where a stack was is its number. In: an [`Attributed`] with all its stacks. Out: one without, and the tables;
//! and back.

use holdup_evidence::Frame;
use holdup_model::attributed::Attributed;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Frames that all stacks together may come to once each stands in its place again: ten thousand waits of two hundred frames.
pub(crate) const MOST_FRAMES: usize = 2_000_000;

/// The tables.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stacks {
    frames: Vec<Frame>,
    /// By numbers of frames, innermost first.
    stacks: Vec<Vec<u32>>,
    /// For each place where a stack was, in the order of [`places`], its number.
    at: Vec<u32>,
}

/// Why tables don't fit what they belong to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// A number that stands for nothing, or too few or too many of them.
    Number,
    /// More than [`MOST_FRAMES`].
    TooMany,
}

/// Every place where a stack is, in an order that depends on nothing but the rest of what is reported.
fn places(attributed: &mut Attributed) -> impl Iterator<Item = &mut Vec<Frame>> {
    let waits = attributed.waits.iter_mut().flat_map(|wait| {
        let holders = wait.holders.iter_mut().map(|holder| &mut holder.stack);
        std::iter::once(&mut wait.asker.stack).chain(holders)
    });
    let churn = attributed.churn.iter_mut().flat_map(|churn| {
        let made = churn.made.iter_mut().map(|births| &mut births.by.stack);
        let connections = churn.connections.iter_mut().map(|one| &mut one.by.stack);
        made.chain(connections)
    });
    let tasks = attributed.tasks.iter_mut().map(|task| &mut task.stack);
    let queues = attributed.task_queues.iter_mut().map(|queue| &mut queue.stack);
    waits.chain(churn).chain(tasks).chain(queues)
}

impl Stacks {
    /// Takes all stacks out.
    pub(crate) fn take_from(attributed: &mut Attributed) -> Stacks {
        let mut tables = Stacks::default();
        let mut frames = HashMap::new();
        let mut stacks = HashMap::new();
        let number = |length: usize| u32::try_from(length).expect("a segment has fewer than 2^32 stacks");
        for place in places(attributed) {
            let stack: Vec<u32> = std::mem::take(place)
                .into_iter()
                .map(|frame| {
                    *frames.entry(frame).or_insert_with_key(|frame| {
                        tables.frames.push(frame.clone());
                        number(tables.frames.len() - 1)
                    })
                })
                .collect();
            let at = *stacks.entry(stack).or_insert_with_key(|stack| {
                tables.stacks.push(stack.clone());
                number(tables.stacks.len() - 1)
            });
            tables.at.push(at);
        }
        tables
    }

    /// Puts all stacks back.
    ///
    /// # Errors
    /// When these are the tables of something else, or made to fill memory.
    pub(crate) fn put_into(&self, attributed: &mut Attributed) -> Result<(), Misfit> {
        let mut at = self.at.iter();
        let mut room = MOST_FRAMES;
        for place in places(attributed) {
            let number = *at.next().ok_or(Misfit::Number)?;
            let stack = self.stacks.get(number as usize).ok_or(Misfit::Number)?;
            room = room.checked_sub(stack.len()).ok_or(Misfit::TooMany)?;
            let frames = stack
                .iter()
                .map(|frame| self.frames.get(*frame as usize).cloned());
            *place = frames.collect::<Option<_>>().ok_or(Misfit::Number)?;
        }
        at.next().map_or(Ok(()), |_| Err(Misfit::Number))
    }
}
