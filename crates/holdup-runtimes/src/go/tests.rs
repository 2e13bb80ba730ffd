//! Made-up memory of each layout, and a real program.

use super::layout::{DEAD, IN_SYSTEM_CALL, LAYOUTS, Layout, PC, RUNNING, SP, WAITING};
use super::{Awaited, Awaits, Goroutine, Place, Program, Refused, Status, TablePlace, Whose};
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
        goroutines: Some(SLICE),
        reasons: Some(REASONS),
        table: None,
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
                awaited: Awaited::default(),
                refers: Vec::new(),
                started_by: None,
                at: FIRST,
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

const TABLE: u64 = 0x60_0000;
const CODE: u64 = 0x40_0000;
const POLL: u64 = 0x70_0000;
const CHANNEL: u64 = 0x70_1000;
const RECORD: u64 = 0x70_2000;
const CONNECTION: u64 = 0x70_3000;

/// A table of three functions, of 0x100 bytes each, without files.
fn put_table(memory: &mut Written, names: [&str; 3]) -> TablePlace {
    let (at_names, descriptions) = (0x100_u64, 0x400_u64);
    memory.put(TABLE, &0xffff_fff1_u32.to_le_bytes());
    memory.put(TABLE + 4, &[0, 0, 1, 8]);
    for (offset, word) in [
        (8, 3),
        (24, CODE),
        (32, at_names),
        (40, 0x80),
        (48, 0x80),
        (56, 0x300),
        (64, descriptions),
    ] {
        memory.word(TABLE + offset, word);
    }
    let mut name_at = 0;
    for (index, name) in names.into_iter().enumerate() {
        let index = index as u64;
        let description = 0x40 + index * 0x40;
        memory.put(TABLE + at_names + name_at, name.as_bytes());
        memory.put(TABLE + at_names + name_at + name.len() as u64, &[0]);
        memory.put(
            TABLE + descriptions + index * 8,
            &(index as u32 * 0x100).to_le_bytes(),
        );
        memory.put(
            TABLE + descriptions + index * 8 + 4,
            &(description as u32).to_le_bytes(),
        );
        memory.put(
            TABLE + descriptions + description + 4,
            &(name_at as u32).to_le_bytes(),
        );
        name_at += name.len() as u64 + 1;
    }
    memory.put(TABLE + descriptions + 3 * 8, &0x300_u32.to_le_bytes());
    TablePlace {
        table: TABLE,
        module: None,
    }
}

/// A goroutine of a library that reads a connection, and one of the application that waits for a channel of that.
fn client(layout: &Layout) -> (Written, Place) {
    let (mut memory, mut place) = program(layout);
    let (reader, asker) = (FIRST, FIRST + 0x1c0);
    memory.put(asker + layout.status, &WAITING.to_le_bytes());
    memory.put(reader + layout.reason, &[2]);
    memory.word(REASONS + 2 * 16, TEXTS + 12);
    memory.word(REASONS + 2 * 16 + 8, 7);
    // The reader stands in a library's function; in the poller's frame are the poll descriptor, and where that notes the reader.
    memory.word(reader + PC, CODE + 0x10);
    memory.word(STACKS + 0x708, CODE + 0x20);
    memory.word(STACKS + 0x788, CODE + 0x30);
    memory.word(reader + SP, STACKS + 0x6f0);
    memory.word(STACKS + 0x710, POLL + 32);
    memory.word(STACKS + 0x720, POLL);
    memory.word(POLL + 8, 9);
    memory.word(POLL + 32, reader);
    // Its connection has the channel.
    memory.word(STACKS + 0x730, CONNECTION);
    memory.word(CONNECTION + 0x40, CHANNEL);
    // The asker stands in the application's function.
    memory.word(asker + PC, CODE + 0x10);
    memory.word(STACKS + STACK_BYTES + 0x708, CODE + 0x140);
    memory.word(asker + layout.status + 176, RECORD);
    memory.word(RECORD, asker);
    memory.word(RECORD + 96, CHANNEL);
    memory.word(CHANNEL + 56, RECORD);
    place.table = Some(put_table(&mut memory, ["lib.read", "main.fetch", "lib.begin"]));
    (memory, place)
}

fn whose(function: &super::Function) -> Whose {
    match function.name.starts_with("main.") {
        true => Whose::Application,
        false => Whose::Library,
    }
}

#[test]
fn a_descriptor_leads_to_the_application_through_a_channel() {
    for layout in LAYOUTS {
        let (memory, place) = client(&layout);
        let mut found = Program::find(memory, place).unwrap();
        let all = found.goroutines().unwrap();
        assert_eq!(all.all[0].awaited.descriptor, Some(9));
        assert_eq!(all.all[1].awaited.channels, [CHANNEL]);
        let lines = found.lines(&all, whose);
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].awaits, lines[0].asks), (Awaits::Descriptor(9), true));
        assert_eq!(lines[0].stacks.len(), 2);
        assert_eq!(lines[0].stacks[1][1], CODE + 0x140);
    }
}

#[test]
fn who_refers_to_a_channel_that_another_waits_to_send_to_is_known() {
    let (memory, place) = client(&LAYOUTS[0]);
    let mut found = Program::find(memory, place).unwrap();
    let mut all = found.goroutines().unwrap();
    found.refer(&mut all, |reason| reason == "IO wait");
    assert_eq!(all.all[0].refers, [0; 0], "nobody waits to send");
    found.refer(&mut all, |reason| reason == "chan receive");
    let refers: Vec<&[u64]> = all.all.iter().map(|one| &*one.refers).collect();
    assert_eq!(refers, [&[CHANNEL][..], &[], &[]]);
}

#[test]
fn a_channel_of_times_is_a_timers() {
    for layout in LAYOUTS {
        let (mut memory, place) = client(&layout);
        let timed = |memory: &Written| {
            let mut found = Program::find(memory.clone(), place).unwrap();
            found.goroutines().unwrap().all[1].awaited.timed
        };
        assert!(!timed(&memory));
        memory.word(CHANNEL + 8, 1);
        memory.word(CHANNEL + 24, 24);
        assert!(timed(&memory));
    }
}

#[test]
fn who_started_a_goroutine_is_where_all_of_them_have_it() {
    for layout in LAYOUTS {
        let (mut memory, place) = client(&layout);
        for (at, by) in [(0, 0), (1, 1), (2, 1)] {
            let noted = FIRST + at * 0x1c0 + layout.status + 200;
            memory.word(noted, by);
            memory.word(noted + 8, CODE + 0x10);
            memory.word(noted + 24, CODE + 0x100);
        }
        let started = |memory: &Written| {
            let mut found = Program::find(memory.clone(), place).unwrap();
            let mut all = found.goroutines().unwrap();
            found.started(&mut all);
            all.all.iter().map(|one| one.started_by).collect::<Vec<_>>()
        };
        assert_eq!(started(&memory), [None, Some(1), Some(1)]);
        // Where one of them has no function there, it is not the place.
        memory.word(FIRST + layout.status + 224, CODE + 0x101);
        assert_eq!(started(&memory), [None; 3]);
    }
}

#[test]
fn who_refers_to_a_group_that_another_waits_for_is_known() {
    const GROUP: u64 = 0x60_0000;
    let (mut memory, place) = client(&LAYOUTS[0]);
    let asker = FIRST + 0x1c0;
    memory.put(TEXTS + 64, b"sync.WaitGroup.Wait");
    memory.word(REASONS + 7 * 16, TEXTS + 64);
    memory.word(REASONS + 7 * 16 + 8, 19);
    memory.word(asker + SP, STACKS + STACK_BYTES + 0x6f0);
    memory.word(STACKS + STACK_BYTES + 0x6f0, RECORD);
    memory.word(STACKS + STACK_BYTES + 0x6f8, 0);
    memory.word(STACKS + STACK_BYTES + 0x700, STACKS + STACK_BYTES + 0x780);
    memory.word(RECORD + 24, GROUP + 8);
    memory.word(STACKS + 0x6f0, GROUP);
    let mut found = Program::find(memory, place).unwrap();
    let mut all = found.goroutines().unwrap();
    found.groups(&mut all);
    assert_eq!(all.all[1].awaited.channels, [GROUP]);
    assert_eq!(all.all[0].refers, [GROUP]);
}

#[test]
fn what_does_not_point_back_is_no_descriptor_and_no_channel() {
    let (memory, place) = client(&LAYOUTS[0]);
    let read = |change: fn(&mut Written)| {
        let mut memory = memory.clone();
        change(&mut memory);
        let mut found = Program::find(memory, place).unwrap();
        let all = found.goroutines().unwrap();
        let lines = found.lines(&all, whose);
        (
            all.all[0].awaited.descriptor,
            all.all[1].awaited.channels.len(),
            lines.first().map(|line| (line.stacks.len(), line.asks)),
        )
    };
    let other = |memory: &mut Written| memory.word(POLL + 32, FIRST + 0x1c0);
    assert_eq!(read(other), (None, 1, None));
    let number = |memory: &mut Written| memory.word(POLL + 8, u64::MAX);
    assert_eq!(read(number), (None, 1, None));
    let record = |memory: &mut Written| memory.word(RECORD, FIRST);
    assert_eq!(read(record), (Some(9), 0, Some((1, false))));
    let unlisted = |memory: &mut Written| memory.word(CHANNEL + 56, 0);
    assert_eq!(read(unlisted), (Some(9), 0, Some((1, false))));
    let elsewhere = |memory: &mut Written| memory.word(CONNECTION + 0x40, 0);
    assert_eq!(read(elsewhere), (Some(9), 1, Some((1, false))));
}

#[test]
fn a_stripped_program_is_read_by_the_runtimes_code() {
    let layout = &LAYOUTS[0];
    let (mut memory, _) = client(layout);
    let names = ["runtime.allgadd", "runtime.waitReason.String", "lib.begin"];
    let place = Place {
        goroutines: None,
        reasons: None,
        table: Some(put_table(&mut memory, names)),
    };
    assert_eq!(
        Program::find(memory.clone(), place).map(|_| ()),
        Err(Refused::NoList)
    );
    let mut put = |at: u64, code: [u8; 3], target: u64| {
        let distance = i32::try_from(target as i64 - (at + 7) as i64).unwrap();
        memory.put(at, &code);
        memory.put(at + 3, &distance.to_le_bytes());
    };
    // The list, its length and its room; something else; the texts.
    put(CODE + 0x10, [0x48, 0x8b, 0x0d], SLICE + 16);
    put(CODE + 0x20, [0x4c, 0x89, 0x05], SLICE + 8);
    put(CODE + 0x30, [0x48, 0x8b, 0x05], SLICE);
    put(CODE + 0x40, [0x48, 0x8b, 0x05], SLICE + 0x100);
    put(CODE + 0x110, [0x48, 0x8d, 0x15], REASONS);
    for number in (1..=8).filter(|number| *number != 2) {
        memory.word(REASONS + number * 16, TEXTS);
        memory.word(REASONS + number * 16 + 8, 12);
    }
    let mut found = Program::find(memory, place).unwrap();
    let all = found.goroutines().unwrap();
    assert_eq!(all.all[0].reason.as_deref(), Some("IO wait"));
    assert_eq!(all.all[0].awaited.descriptor, Some(9));
}
