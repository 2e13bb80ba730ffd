//! Stacks of made-up processes: equal ones, deep ones, and those that make no sense.

use super::*;
use holdup_evidence::arch::{FRAME_POINTER, SAVED};

const KEY: ProcessKey = ProcessKey(1);

fn raw(ip: u64, bp: u64, bytes: &[u8]) -> RawStack<'_> {
    let mut saved = [0; SAVED];
    saved[FRAME_POINTER] = bp;
    RawStack {
        process: KEY,
        pid: 1,
        at: 0,
        ip,
        sp: 0x7000,
        saved,
        partial: false,
        bytes,
    }
}

fn with_anonymous_code() -> UserStacks {
    let mut stacks = UserStacks::with_proc(PathBuf::from("/nonexistent"));
    let code = Mapping {
        start: 0x1000,
        end: 0x2000,
        offset: 0,
        path: String::new(),
        device: (0, 0),
        inode: 0,
    };
    stacks.map(KEY, 1, code);
    stacks
}

/// A chain of `frames` frame pointers, each with a return address into anonymous code.
fn chain(frames: u64) -> Vec<u8> {
    let words = (1..=frames).flat_map(|frame| [0x7000 + frame * 16, 0x1000 + frame]);
    words.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn collected_stacks_can_be_handed_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<UserStacks>();
}

#[test]
fn code_that_no_file_holds_is_a_frame_without_names() {
    let mut stacks = with_anonymous_code();
    let id = stacks.intern(&raw(0x1800, 0x7000, &chain(2)));
    assert_eq!(stacks.finish()[id.0 as usize], vec![Frame::default(); 3]);
}

#[test]
fn what_a_runtime_said_stands_for_code_without_a_file_and_all_outside_of_it() {
    let mut stacks = with_anonymous_code();
    let frame = Arc::new(Frame {
        symbol: Some("com.shop.Till.run".to_owned()),
        language: Language::Java,
        ..Frame::default()
    });
    let said = [Arc::clone(&frame), Arc::clone(&frame)];
    let id = stacks.intern_said(
        &raw(0x1800, 0x7000, &chain(2)),
        Beside {
            said: &said,
            ..Beside::default()
        },
    );
    // Where nothing of the stack could be read it stands alone.
    let alone = stacks.intern_said(
        &raw(0x9000, 0x7000, &[]),
        Beside {
            said: &said,
            ..Beside::default()
        },
    );
    assert_eq!(id, alone);
    assert_eq!(stacks.finish()[id.0 as usize], vec![(*frame).clone(); 2]);
}

#[test]
fn stacks_differ_by_their_interpreted_frames() {
    let mut stacks = with_anonymous_code();
    let called = |symbol: &str, entry| Interpreted {
        frame: Arc::new(Frame {
            symbol: Some(symbol.to_owned()),
            language: Language::Python,
            ..Frame::default()
        }),
        entry,
    };
    let native = chain(1);
    let mut intern = |frames: &[Interpreted]| {
        stacks.intern_said(
            &raw(0x1800, 0x7000, &native),
            Beside {
                interpreted: frames,
                ..Beside::default()
            },
        )
    };
    let one = intern(&[called("pay", false), called("main", true)]);
    let other = intern(&[called("main", true)]);
    assert_eq!(intern(&[called("pay", false), called("main", true)]), one);
    assert_ne!(one, other);
    let stacks = stacks.finish();
    let symbols = |id: UserStackId| -> Vec<&str> {
        let frames = stacks[id.0 as usize].iter();
        frames.filter_map(|frame| frame.symbol.as_deref()).collect()
    };
    assert_eq!(symbols(one), ["pay", "main"]);
    assert_eq!(symbols(other), ["main"]);
}

#[test]
fn a_stack_in_no_known_code_is_empty() {
    let mut stacks = with_anonymous_code();
    let id = stacks.intern(&raw(0x9000, 0x7000, &chain(2)));
    let other = stacks.intern(&RawStack {
        process: ProcessKey(99),
        ..raw(0x1800, 0x7000, &chain(2))
    });
    assert_eq!(id, other);
    assert_eq!(stacks.finish(), vec![Vec::new()]);
}

#[test]
fn a_return_address_outside_all_code_ends_the_stack() {
    let mut stacks = with_anonymous_code();
    let mut bytes = chain(5);
    bytes[24..32].copy_from_slice(&0xdead_u64.to_le_bytes());
    let id = stacks.intern(&raw(0x1800, 0x7000, &bytes));
    assert_eq!(stacks.finish()[id.0 as usize].len(), 2);
}

#[test]
fn frame_pointers_that_go_in_circles_end() {
    let mut stacks = with_anonymous_code();
    let mut bytes = chain(1);
    bytes[..8].copy_from_slice(&0x7000_u64.to_le_bytes());
    let id = stacks.intern(&raw(0x1800, 0x7000, &bytes));
    assert_eq!(stacks.finish()[id.0 as usize].len(), 2);
}

#[test]
fn registers_at_the_edges_of_the_address_space_end_the_stack() {
    let mut stacks = with_anonymous_code();
    for bp in [0, 1, u64::MAX, u64::MAX - 7, u64::MAX - 15] {
        let id = stacks.intern(&RawStack {
            sp: bp,
            ..raw(0x1800, bp, &chain(2))
        });
        assert!(stacks.stacks[id.0 as usize].len() <= 3, "{bp:#x}");
    }
}

#[test]
fn deep_stacks_keep_their_innermost_frames() {
    let mut stacks = with_anonymous_code();
    let id = stacks.intern(&raw(0x1800, 0x7000, &chain(500)));
    assert_eq!(stacks.finish()[id.0 as usize].len(), FRAMES_MAX);
}

#[test]
fn stacks_beyond_the_memory_for_them_are_counted_and_empty() {
    let mut stacks = with_anonymous_code();
    stacks.frames_total = FRAMES_TOTAL_MAX - 2;
    let kept = stacks.intern(&raw(0x1800, 0x7000, &chain(1)));
    let refused = stacks.intern(&raw(0x1800, 0x7000, &chain(2)));
    assert_eq!(stacks.intern(&raw(0x1800, 0x7000, &chain(3))), refused);
    assert_eq!(stacks.intern(&raw(0x1800, 0x7000, &chain(1))), kept);
    assert_eq!(
        stacks.refused(),
        Refused {
            stacks: 2,
            ..Refused::default()
        }
    );
    assert_eq!(stacks.finish().iter().map(Vec::len).collect::<Vec<_>>(), [2, 0]);
}
