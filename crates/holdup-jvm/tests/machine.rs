//! Frames of a machine that is only memory, laid out in both ways.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod made_up;

use holdup_jvm::{Kind, Machine, Source};
use holdup_symbols::{Registers, StackBytes};
use made_up::{HOSTILE, MadeUp, STACK};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn walk(made: &MadeUp, interrupted: bool) -> (Vec<String>, Option<Registers>) {
    let mut machine = Machine::new(made.clone(), MadeUp::symbols());
    let bytes = StackBytes {
        start: STACK,
        bytes: &made.stack,
    };
    let walk = machine
        .walk(made.registers.unwrap(), interrupted, bytes, 0)
        .unwrap();
    let frames = walk.frames.iter().map(|frame| {
        let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
        let inlined = if frame.inlined { " inlined" } else { "" };
        format!("{}{line}{inlined}", frame.symbol.as_deref().unwrap())
    });
    (frames.collect(), walk.caller)
}

#[test]
fn native_compiled_and_interpreted_frames_are_walked_through_to_native_code() {
    for version in [17, 25] {
        let (frames, caller) = walk(&MadeUp::machine(version), false);
        assert_eq!(
            frames,
            [
                "com.shop.Store.wait0",
                "com.shop.Store.get:9 inlined",
                "com.shop.Store.take:7",
                "com.shop.Main.run:9",
            ],
            "{version}"
        );
        let caller = caller.unwrap();
        assert_eq!((caller.ip, caller.sp), (0x1234_5678, STACK + 0x210));
        let kept = [1, 0xbeef, 12, 13, 14, 15].map(Some);
        assert_eq!(caller.saved, kept);
    }
}

#[test]
fn a_thread_has_its_name_and_waits_for_the_monitor_of_another_and_a_third_for_a_class() {
    for version in [17, 25] {
        let made = MadeUp::machine(version);
        let mut machine = Machine::new(made.clone(), MadeUp::symbols());
        let bytes = StackBytes {
            start: STACK,
            bytes: &made.stack,
        };
        let walk = machine.walk(made.registers.unwrap(), false, bytes, 0).unwrap();
        assert_eq!(walk.name, Some((100, "till".into())), "{version}");
        let waits = machine.locks().locks;
        assert_eq!(waits.len(), 2, "{version}: {waits:?}");
        assert_eq!((waits[0].tid, waits[0].owner), (100, Some(101)), "{version}");
        assert_eq!(waits[0].class, "com.shop.Counter");
        let (kind, class) = (waits[1].kind, waits[1].class.as_str());
        assert_eq!((kind, class), (Kind::Class, "com.shop.Rates"), "{version}");
        assert_eq!((waits[1].tid, waits[1].owner), (102, Some(101)), "{version}");
    }
}

#[test]
fn a_stack_that_was_not_copied_whole_ends_where_it_does() {
    let mut made = MadeUp::machine(17);
    made.stack.truncate(0x50);
    let (frames, caller) = walk(&made, false);
    assert_eq!(frames.len(), 3);
    assert_eq!(caller, None);
}

/// Memory that counts what is read of it.
#[derive(Debug)]
struct Counted(MadeUp, Arc<AtomicUsize>);

impl Source for Counted {
    fn page(&mut self, address: u64, page: &mut [u8; 4096]) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.page(address, page)
    }
}

#[test]
fn what_was_read_for_an_answer_is_given_back_with_it() {
    let made = MadeUp::machine(17);
    let mut machine = Machine::new(made.clone(), MadeUp::symbols());
    let bytes = StackBytes {
        start: STACK,
        bytes: &made.stack,
    };
    let given_back = |machine: &Machine<MadeUp>| format!("{machine:?}").contains("pages: {}");
    assert!(machine.walk(made.registers.unwrap(), false, bytes, 0).is_some());
    assert!(given_back(&machine));
    assert_eq!(machine.locks().locks.len(), 2);
    assert!(given_back(&machine));
}

#[test]
fn a_heap_that_cannot_be_read_is_not_looked_for_at_each_look() {
    let mut made = MadeUp::machine(17);
    // Its classes, which say where objects have what.
    made.put(HOSTILE + 0x4000, &[0; 0x2000]);
    let reads = Arc::new(AtomicUsize::new(0));
    let mut machine = Machine::new(Counted(made, Arc::clone(&reads)), MadeUp::symbols());
    let mut look = || {
        let before = reads.load(Ordering::Relaxed);
        assert!(machine.locks().locks.is_empty());
        reads.load(Ordering::Relaxed) - before
    };
    let costs: Vec<usize> = (0..64).map(|_| look()).collect();
    assert_eq!(
        costs[1..].iter().filter(|cost| **cost > 0).count(),
        6,
        "{costs:?}"
    );
}
