//! What the arguments of a call point to, in the memory of the thread that is in it.
//!
//! In: a thread and addresses. Out: paths, sets of descriptors, lengths of time, the words around a futex; `None` where the memory can't be
//! read. All of it is another program's and may be anything.

use super::described;
use super::look::POLLED;
use crate::memory;
use holdup_evidence::{FUTEX_AT, FUTEX_WORDS, Ns};

/// Longest path that is read from a thread's memory, bytes.
const PATH: usize = 1024;

/// The path of `struct sockaddr_un` in memory, an abstract one with `@` for its zero.
pub(super) fn unix_address(tid: u32, at: u64, length: u64) -> Option<String> {
    /// Bytes of the family, and of the whole at most.
    const FAMILY: usize = 2;
    const MAX_BYTES: usize = 110;
    let length = usize::try_from(length & 0xffff_ffff).ok()?.min(MAX_BYTES);
    let bytes = memory::read(tid, at, length)?;
    let (family, path) = bytes.split_first_chunk::<FAMILY>()?;
    if u16::from_ne_bytes(*family) != described::AF_UNIX {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match path {
        [] => None,
        [0, name @ ..] => Some(format!("@{}", text(name))),
        path => path.split(|byte| *byte == 0).next().map(text),
    }
}

/// The length that is in a thread's memory: seconds, and parts of a second.
pub(super) fn length(tid: u32, limit: described::TimeLimit) -> Option<Ns> {
    const SECOND: Ns = 1_000_000_000;
    let bytes = memory::read(tid, limit.at, 16)?;
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let parts = word(8)?.checked_mul(limit.unit)?;
    word(0)?.checked_mul(SECOND)?.checked_add(parts)
}

/// `struct pollfd` from memory.
pub(super) fn poll_set(tid: u32, at: u64, count: u64) -> Option<Vec<(i32, u16)>> {
    const SIZE: usize = 8;
    let count = usize::try_from(count).ok()?.min(POLLED + 1);
    if count == 0 {
        return Some(Vec::new());
    }
    let bytes = memory::read(tid, at, count * SIZE)?;
    let one = |bytes: &[u8; SIZE]| {
        let [a, b, c, d, low, high, ..] = *bytes;
        (i32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([low, high]))
    };
    Some(
        bytes
            .as_chunks::<SIZE>()
            .0
            .iter()
            .map(one)
            .filter(|(fd, _)| *fd >= 0)
            .collect(),
    )
}

/// The descriptors of a select's three sets, as far as 1,024.
pub(super) fn select_set(tid: u32, count: u64, sets: [u64; 3]) -> Vec<(i32, u16)> {
    /// What a set stands for, in the words of `poll`.
    const EVENTS: [u16; 3] = [1, 4, 2];
    let count = usize::try_from(count).unwrap_or(1024).min(1024);
    let mut set = Vec::new();
    for (at, events) in sets.into_iter().zip(EVENTS).filter(|(at, _)| *at != 0) {
        let bytes = memory::read(tid, at, count.div_ceil(64) * 8).unwrap_or_default();
        for fd in 0..count {
            if bytes.get(fd / 8).is_some_and(|byte| byte >> (fd % 8) & 1 == 1) {
                set.push((i32::try_from(fd).unwrap_or(i32::MAX), events));
            }
        }
    }
    set
}

/// The words around a futex; those before it may be in no mapping, and are 0 then.
pub(super) fn around(tid: u32, futex: u64) -> Option<[u32; FUTEX_WORDS]> {
    let word = size_of::<u32>();
    let before = FUTEX_AT * word;
    let whole = futex
        .checked_sub(before as u64)
        .and_then(|at| memory::read(tid, at, FUTEX_WORDS * word))
        .filter(|bytes| bytes.len() > before);
    let bytes = match whole {
        Some(bytes) => bytes,
        None => {
            let mut bytes = vec![0; before];
            bytes.extend(memory::read(tid, futex, FUTEX_WORDS * word - before)?);
            bytes
        }
    };
    let mut words = [0; FUTEX_WORDS];
    for (place, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *place = u32::from_ne_bytes(*bytes);
    }
    Some(words)
}

/// A path in a thread's memory.
pub(super) fn path(tid: u32, at: u64) -> Option<String> {
    let bytes = memory::read(tid, at, PATH)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{around, path, poll_set, select_set, unix_address};
    use holdup_evidence::FUTEX_AT;

    #[test]
    fn memory_of_calls_is_read() {
        let own = std::process::id();
        let words: Vec<u32> = (1..=16).collect();
        let address = |index: usize| &raw const words[index] as u64;
        assert_eq!(around(own, address(FUTEX_AT)).unwrap()[..], words[..10]);
        let set = [5u32, 1, 7, 4, u32::MAX, 1];
        assert_eq!(poll_set(own, set.as_ptr() as u64, 3).unwrap(), [(5, 1), (7, 4)]);
        let bits = [0b101u64];
        assert_eq!(select_set(own, 3, [bits.as_ptr() as u64, 0, 0]), [(0, 1), (2, 1)]);
        let text = [b"/a b\0".as_slice(), &[7; 2048]].concat();
        assert_eq!(path(own, text.as_ptr() as u64).as_deref(), Some("/a b"));
        assert_eq!(path(own, 8), None);
    }

    #[test]
    fn a_unix_address_is_a_path_or_a_name() {
        let own = std::process::id();
        let of = |bytes: &[u8]| unix_address(own, bytes.as_ptr() as u64, bytes.len() as u64);
        let with = |family: u16, path: &[u8]| [&family.to_ne_bytes()[..], path].concat();
        assert_eq!(of(&with(1, b"/run/a b\0left over")).as_deref(), Some("/run/a b"));
        assert_eq!(of(&with(1, b"\0name")).as_deref(), Some("@name"));
        assert_eq!(of(&with(2, b"\x1f\x90")), None, "an internet address");
        assert_eq!(of(&with(1, b"")), None);
        assert_eq!(unix_address(own, 8, 16), None);
    }
}
