//! Performance data put together by hand: sound, cut, circular and hostile.

use super::{Index, Unreadable};

/// Such memory, put together by hand.
struct Memory(Vec<u8>);

enum Value<'a> {
    Number(i64),
    Text(&'a [u8]),
}

impl Memory {
    fn new(entries: &[(&str, Value<'_>)]) -> Memory {
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        bytes.extend([0; 16]);
        bytes.extend(32i32.to_le_bytes());
        bytes.extend(i32::try_from(entries.len()).unwrap().to_le_bytes());
        for (name, value) in entries {
            let data = (20 + name.len() + 1).next_multiple_of(8);
            let (kind, elements, value): (u8, usize, Vec<u8>) = match value {
                Value::Number(number) => (b'J', 0, number.to_le_bytes().to_vec()),
                Value::Text(text) => (b'B', text.len(), text.to_vec()),
            };
            let mut entry = Vec::new();
            let length = (data + value.len()).next_multiple_of(8);
            for word in [length, 20, elements] {
                entry.extend(i32::try_from(word).unwrap().to_le_bytes());
            }
            entry.extend([kind, 0, 1, 1]);
            entry.extend(i32::try_from(data).unwrap().to_le_bytes());
            entry.extend(name.as_bytes());
            entry.resize(data, 0);
            entry.extend(value);
            entry.resize(length, 0);
            bytes.extend(entry);
        }
        Memory(bytes)
    }

    fn set(mut self, at: usize, word: i32) -> Memory {
        self.0[at..at + 4].copy_from_slice(&word.to_le_bytes());
        self
    }

    fn index(&self) -> Index {
        Index::parse(&self.0).unwrap()
    }
}

fn two() -> Memory {
    Memory::new(&[
        ("sun.rt.safepoints", Value::Number(12)),
        ("java.property.java.version", Value::Text(b"17.0.15\0\0\0")),
    ])
}

#[test]
fn numbers_and_texts_are_found_by_name() {
    let memory = two();
    let index = memory.index();
    assert_eq!(index.len(), 2);
    assert_eq!(index.number(&memory.0, "sun.rt.safepoints"), Some(12));
    let version = index.text(&memory.0, "java.property.java.version");
    assert_eq!(version.as_deref(), Some("17.0.15"));
    assert_eq!(index.text(&memory.0, "sun.rt.safepoints"), None, "it is a number");
    assert_eq!(index.number(&memory.0, "java.property.java.version"), None);
    assert_eq!(index.number(&memory.0, "sun.rt.nothing"), None);
}

#[test]
fn a_later_copy_is_read_by_the_same_index_until_there_is_more() {
    let (before, mut after) = (two(), two());
    let index = before.index();
    let at = after
        .0
        .windows(8)
        .position(|word| word == 12i64.to_le_bytes())
        .unwrap();
    after.0[at..at + 8].copy_from_slice(&13i64.to_le_bytes());
    assert_eq!(index.number(&after.0, "sun.rt.safepoints"), Some(13));
    assert!(!index.is_outgrown_by(&after.0));
    assert!(index.is_outgrown_by(&after.set(28, 3).0));
    // A copy that is shorter than the one before tells nothing, and not something else.
    assert_eq!(index.number(&before.0[..40], "sun.rt.safepoints"), None);
}

#[test]
fn what_is_no_such_memory_is_refused() {
    assert_eq!(Index::parse(b""), Err(Unreadable::NotPerfData));
    assert_eq!(Index::parse(&[0; 64]), Err(Unreadable::NotPerfData));
    let with = |at: usize, byte: u8| {
        let mut memory = two();
        memory.0[at] = byte;
        Index::parse(&memory.0)
    };
    assert_eq!(
        with(4, 0),
        Err(Unreadable::OtherFormat),
        "the other order of bytes"
    );
    assert_eq!(with(5, 1), Err(Unreadable::OtherFormat));
    assert_eq!(with(7, 0), Err(Unreadable::NotFilled));
    assert_eq!(Index::parse(&two().set(28, -1).0), Err(Unreadable::OtherFormat));
}

#[test]
fn entries_that_lead_nowhere_or_in_circles_end_the_list() {
    for length in [0, 8, 19, -8, i32::MAX, i32::MIN] {
        let memory = two().set(32, length);
        assert!(memory.index().is_empty(), "an entry of {length} bytes");
    }
    for first in [0, 28, -1, 1 << 20, i32::MAX] {
        assert!(two().set(24, first).index().is_empty(), "begins at {first}");
    }
    // More are counted than there are.
    assert_eq!(two().set(28, i32::MAX).index().len(), 2);
}

#[test]
fn an_entry_that_points_out_of_itself_is_left_out_and_the_next_is_read() {
    // Of the first: where its name is, how many elements it has, where its value is.
    for (at, word) in [
        (36, 4_000),
        (36, -1),
        (40, 1),
        (48, 4_000),
        (48, -8),
        (48, 0),
        (48, 65),
    ] {
        let memory = two().set(at, word);
        let index = memory.index();
        assert_eq!(index.len(), 1, "{word} at {at}");
        assert!(index.text(&memory.0, "java.property.java.version").is_some());
    }
}

#[test]
fn a_text_may_hold_anything_and_is_cut() {
    let long = [b'x'; 100_000];
    let memory = Memory::new(&[("a", Value::Text(b"\x1b[31m\xff\n")), ("b", Value::Text(&long))]);
    let index = memory.index();
    assert_eq!(index.text(&memory.0, "a").unwrap(), "\u{1b}[31m\u{fffd}\n");
    assert_eq!(index.text(&memory.0, "b").unwrap().len(), 4_096);
}
