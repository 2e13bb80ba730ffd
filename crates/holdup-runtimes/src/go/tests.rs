//! Made-up memory of each layout, and a real program.

use super::layout::{DEAD, IN_SYSTEM_CALL, LAYOUTS, Layout, PC, RUNNING, WAITING};
use super::{Goroutine, Place, Program, Refused, Status};
use crate::memory::Written;

const LIST: u64 = 0x50_0000;
const SLICE: u64 = 0x2000;
const REASONS: u64 = 0x3000;
const TEXTS: u64 = 0x4000;
const FIRST: u64 = 0x10_0000;
const STACKS: u64 = 0x20_0000;
const STACK_BYTES: u64 = 0x800;

/// Four goroutines: one that waits at three frames, one in a system call, one that runs, one that ended.
fn program(layout: &Layout) -> (Written, Place) {
    let mut memory = Written::default();
    let states = [WAITING, IN_SYSTEM_CALL, RUNNING, DEAD];
    memory.word(SLICE, LIST);
    memory.word(SLICE + 8, states.len() as u64);
    memory.word(SLICE + 16, 16);
    memory.word(REASONS + 7 * 16, TEXTS);
    memory.word(REASONS + 7 * 16 + 8, 12);
    memory.put(TEXTS, b"chan receiveIO wait");
    for (at, state) in states.into_iter().enumerate() {
        let at = at as u64;
        let goroutine = FIRST + at * 0x1c0;
        let low = STACKS + at * STACK_BYTES;
        memory.word(LIST + at * 8, goroutine);
        memory.word(goroutine, low);
        memory.word(goroutine + 8, low + STACK_BYTES);
        memory.word(goroutine + PC, 0x40_0000 + at);
        memory.word(goroutine + 72, goroutine);
        memory.word(goroutine + layout.frame, low + 0x700);
        memory.put(goroutine + layout.status, &state.to_le_bytes());
        memory.word(goroutine + layout.id, 1 + at);
        memory.put(goroutine + layout.reason, &[7]);
        memory.word(low + 0x700, low + 0x780);
        memory.word(low + 0x708, 0x41_0000);
        memory.word(low + 0x780, 0);
        memory.word(low + 0x788, 0x42_0000);
    }
    let place = Place {
        goroutines: SLICE,
        reasons: Some(REASONS),
    };
    (memory, place)
}

#[test]
fn each_layout_is_told_by_the_goroutines_themselves() {
    for layout in LAYOUTS {
        let (memory, place) = program(&layout);
        let mut found = Program::find(memory, place).unwrap();
        assert_eq!(found.layout, layout);
        let read = found.goroutines().unwrap();
        assert_eq!((read.left_out, read.torn), (0, 0));
        let states: Vec<(u64, Status)> = read.all.iter().map(|one| (one.id, one.status)).collect();
        assert_eq!(
            states,
            [
                (1, Status::Waiting),
                (2, Status::InSystemCall),
                (3, Status::Running)
            ]
        );
        assert_eq!(
            read.all[0],
            Goroutine {
                id: 1,
                status: Status::Waiting,
                reason: Some("chan receive".to_owned()),
                seen_waiting: 0,
                addresses: vec![0x40_0000, 0x41_0000, 0x42_0000],
            }
        );
        assert_eq!(read.all[1].reason, None);
        assert_eq!(read.all[2].addresses, [0; 0]);
    }
}

#[test]
fn what_does_not_hold_together_is_refused() {
    let (memory, place) = program(&LAYOUTS[0]);
    let refused = |change: fn(&mut Written)| {
        let mut memory = memory.clone();
        change(&mut memory);
        Program::find(memory, place).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(|memory| memory.word(SLICE + 8, 0)), Refused::NoGoroutines);
    assert_eq!(
        refused(|memory| memory.word(SLICE + 8, 17)),
        Refused::Memory,
        "more than it has room for"
    );
    assert_eq!(
        refused(|memory| memory.word(FIRST + 72, FIRST + 8)),
        Refused::Unknown,
        "registers of another"
    );
    assert_eq!(
        refused(|memory| memory.word(FIRST + LAYOUTS[0].frame, 0x70)),
        Refused::Unknown,
        "no frame within its stack"
    );
    assert_eq!(
        refused(|memory| memory.put(FIRST + LAYOUTS[0].status, &[77])),
        Refused::Unknown
    );
}

#[test]
fn a_stack_that_goes_round_or_down_ends() {
    let (mut memory, place) = program(&LAYOUTS[0]);
    memory.word(STACKS + 0x780, STACKS + 0x700);
    let mut found = Program::find(memory.clone(), place).unwrap();
    assert_eq!(found.goroutines().unwrap().all[0].addresses.len(), 3);
    // One that goes up in small steps ends at the limit.
    for at in (0x100..0x7f8).step_by(8) {
        memory.word(STACKS + at, STACKS + at + 8);
    }
    memory.word(FIRST + LAYOUTS[0].frame, STACKS + 0x100);
    let mut found = Program::find(memory, place).unwrap();
    assert_eq!(
        found.goroutines().unwrap().all[0].addresses.len(),
        super::FRAMES_MAX
    );
}

#[test]
fn hostile_counts_and_texts_cost_a_bounded_read() {
    let (mut memory, place) = program(&LAYOUTS[0]);
    let mut found = Program::find(memory.clone(), place).unwrap();
    found.memory = crate::memory::Memory::new({
        memory.word(SLICE + 8, u64::MAX / 2);
        memory.word(SLICE + 16, u64::MAX);
        memory.word(REASONS + 7 * 16 + 8, u64::MAX);
        memory
    });
    let read = found.goroutines().unwrap();
    assert_eq!(read.left_out, u64::MAX / 2 - super::GOROUTINES_MAX);
    assert_eq!(read.torn, super::GOROUTINES_MAX - 4);
    assert_eq!(read.all[0].reason, None);
}
