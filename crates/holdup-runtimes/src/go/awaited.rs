//! What a parked goroutine waits for.
//!
//! In: a parked goroutine. Out: the descriptor, or the channels. Both are read from structures that point back to the goroutine, and
//! what does not point back is not believed. So it does not matter where a version keeps them: a poll descriptor is found in the
//! frames of the functions that wait for it, and the records of waits for channels (`sudog`) where all goroutines that wait for one
//! have such a record.

use super::{Awaited, Program, layout};
use crate::memory::{Memory, Source};

/// The runtime's words for a wait for a descriptor, and what those for channels begin with.
const FOR_DESCRIPTOR: &str = "IO wait";
const FOR_CHANNELS: [&str; 3] = ["chan receive", "chan send", "select"];

/// Frames above the innermost in which the functions of the poller keep the poll descriptor, and words of them.
const POLLER_FRAMES: usize = 4;
const POLLER_WORDS: u64 = 128;

/// Where a poll descriptor has its number, and where the goroutines that wait to read or to write: since Go 1.20, and before.
const NUMBER: u64 = 8;
const WAITERS: [u64; 4] = [24, 32, 40, 48];

/// Largest number of a descriptor that is believed; Linux allows no more by default.
const NUMBER_MAX: u64 = 1 << 20;

/// Where, from the state on, a goroutine may have its records of waits.
const RECORDS: std::ops::Range<u64> = 96..320;

/// Where a channel has its room, the size of a value (two bytes), and its timer.
const ROOM: u64 = 8;
const VALUE: u64 = 24;
const TIMER: u64 = 32;

/// The size of a time (`time.Time`), bytes.
const TIME_BYTES: u64 = 24;

/// Channels of one goroutine that are read: a `select` rarely has more cases.
const CHANNELS_MAX: usize = 16;

/// Words of a channel's structure up to the end of its lists of waiters.
const CHANNEL_WORDS: u64 = 14;

/// Where a record of a wait has what, bytes.
#[derive(Debug, Clone, Copy)]
struct Record {
    channel: u64,
    /// The next record of the same goroutine.
    next: u64,
}

/// Go 1.26, and before.
const FORMS: [Record; 2] = [
    Record {
        channel: 96,
        next: 72,
    },
    Record {
        channel: 80,
        next: 64,
    },
];

/// Where a program keeps its records of waits; found out by the first goroutine that waits for a channel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sudogs {
    /// Where a goroutine has its first record, and what a record looks like.
    known: Option<(u64, Record)>,
    /// Goroutines that were searched in vain.
    tried: u32,
}

/// Goroutines of a program that are searched for such a record before none is believed to be there.
const TRIED_MAX: u32 = 64;

impl<S: Source> Program<S> {
    /// What a goroutine waits for, by its reason.
    pub(super) fn awaited(&mut self, goroutine: u64, reason: &str) -> Awaited {
        if reason == FOR_DESCRIPTOR {
            return Awaited {
                descriptor: self.descriptor(goroutine),
                ..Awaited::default()
            };
        }
        let channels = match FOR_CHANNELS.iter().any(|begin| reason.starts_with(begin)) {
            true => self.channels(goroutine).unwrap_or_default(),
            false => Vec::new(),
        };
        Awaited {
            descriptor: None,
            timed: channels.iter().any(|channel| self.is_timers(*channel)),
            channels,
        }
    }

    /// Whether a timer sends to a channel: it notes the timer, or it has room for one value of the size of a time. Before Go 1.23, and in programs
    /// that ask for what was then, only the latter.
    fn is_timers(&mut self, channel: u64) -> bool {
        let memory = &mut self.memory;
        let mut word = |offset| channel.checked_add(offset).and_then(|at| memory.word(at));
        let noted = word(TIMER).is_some_and(|timer| timer != 0);
        let of_times = word(ROOM) == Some(1) && word(VALUE).is_some_and(|size| size & 0xffff == TIME_BYTES);
        of_times || noted && self.layout.channels_note_timers()
    }

    /// The number of the descriptor: in the frames of the poller stands a poll descriptor, and where in it the goroutine is noted.
    fn descriptor(&mut self, goroutine: u64) -> Option<u32> {
        let words = self.poller_words(goroutine)?;
        let memory = &mut self.memory;
        for noted in &words {
            if noted % 8 != 0 || memory.word(*noted) != Some(goroutine) {
                continue;
            }
            for offset in WAITERS {
                let Some(poll) = noted.checked_sub(offset).filter(|poll| words.contains(poll)) else {
                    continue;
                };
                let number = memory.word(poll.checked_add(NUMBER)?)?;
                if number < NUMBER_MAX {
                    return u32::try_from(number).ok();
                }
            }
        }
        None
    }

    /// What the innermost frames but one hold.
    fn poller_words(&mut self, goroutine: u64) -> Option<Vec<u64>> {
        let memory = &mut self.memory;
        let high = memory.word(goroutine.checked_add(8)?)?;
        let first = self.layout.frame_pointer(memory, goroutine)?;
        let mut last = first;
        for _ in 0..POLLER_FRAMES {
            let above = memory.word(last)?;
            if above <= last || above >= high {
                break;
            }
            last = above;
        }
        let words = ((last - first) / 8 + 4).min(POLLER_WORDS);
        Some(
            (2..words)
                .map_while(|at| memory.word(first.checked_add(at * 8)?))
                .collect(),
        )
    }

    /// The channels of a goroutine's records of waits.
    fn channels(&mut self, goroutine: u64) -> Option<Vec<u64>> {
        let (records, form) = match self.sudogs.known {
            Some(known) => known,
            None => {
                if self.sudogs.tried >= TRIED_MAX {
                    return None;
                }
                let found = self.records(goroutine);
                self.sudogs.tried += u32::from(found.is_none());
                self.sudogs.known = found;
                found?
            }
        };
        let memory = &mut self.memory;
        let mut record = memory.word(goroutine.checked_add(records)?)?;
        let mut channels = Vec::new();
        while record != 0 && channels.len() < CHANNELS_MAX {
            if memory.word(record)? != goroutine {
                return None;
            }
            let one = memory.word(record.checked_add(form.channel)?)?;
            if one != 0 && !channels.contains(&one) {
                channels.push(one);
            }
            record = memory.word(record.checked_add(form.next)?)?;
        }
        Some(channels)
    }

    /// Where records are, by one goroutine that has some: a record has its goroutine first, and its channel has the record in one of its
    /// lists of waiters.
    fn records(&mut self, goroutine: u64) -> Option<(u64, Record)> {
        let status = self.layout.status;
        let memory = &mut self.memory;
        for offset in RECORDS.step_by(8) {
            let Some(record) = memory.pointer(goroutine.checked_add(status + offset)?) else {
                continue;
            };
            if record % 8 != 0 || memory.word(record) != Some(goroutine) {
                continue;
            }
            for form in FORMS {
                let channel = record.checked_add(form.channel).and_then(|at| memory.pointer(at));
                if channel.is_some_and(|channel| lists(memory, channel, record)) {
                    return Some((status + offset, form));
                }
            }
        }
        None
    }

    /// The saved stack pointer, and where the stack ends.
    pub(super) fn stack_of(&mut self, goroutine: u64) -> Option<(u64, u64)> {
        let sp = self.memory.word(goroutine.checked_add(layout::SP)?)?;
        let (low, high) = (
            self.memory.word(goroutine)?,
            self.memory.word(goroutine.checked_add(8)?)?,
        );
        (low..high).contains(&sp).then_some((sp, high))
    }
}

/// Whether a channel has a record as the first or last of one of its lists of waiters.
fn lists<S: Source>(memory: &mut Memory<S>, channel: u64, record: u64) -> bool {
    let mut words = (0..CHANNEL_WORDS).map_while(|at| memory.word(channel.checked_add(at * 8)?));
    words.any(|word| word == record)
}
