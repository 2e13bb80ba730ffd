//! The lines between frames that tell of locks.

use holdup_evidence::observed::{LockRef, LockWait};
use memchr::memchr;

const WAITS: &[(&[u8], LockWait)] = &[
    (b"- waiting to lock ", LockWait::Enter),
    (b"- waiting to re-lock in wait() ", LockWait::Enter),
    (b"- blocked on ", LockWait::Enter),
    (b"- waiting on ", LockWait::Wait),
    (b"- parking to wait for ", LockWait::Park),
];

const HELD: &[&[u8]] = &[b"- locked ", b"- "];

/// Digits of an address that is reported without `0x`.
const MIN_BARE: usize = 6;

const CLASS: &[u8] = b"- waiting on the Class initialization monitor for ";

/// A lock; `None` where the line names none.
pub(super) fn parse(line: &[u8]) -> Option<LockRef> {
    if let Some(class) = line.strip_prefix(CLASS) {
        let class = text(class);
        return Some(super::waits(LockWait::ClassInit, &class, &class));
    }
    for (start, wait) in WAITS {
        if let Some(rest) = line.strip_prefix(*start) {
            return object(rest, Some(*wait));
        }
    }
    HELD.iter()
        .find_map(|start| line.strip_prefix(*start))
        .and_then(|rest| object(rest, None))
}

/// Whether a line about locks is one that names none: nothing is held, or the compiler did away with the object.
pub(super) fn says_nothing(line: &[u8]) -> bool {
    let starts: [&[u8]; 5] = [
        b"- None",
        b"- eliminated ",
        b"- locked <no object",
        b"- waiting on <no object",
        b"- locked <owner is scalar",
    ];
    starts.iter().any(|start| line.starts_with(start))
}

/// `<0x…> (a java.lang.Object)`, or `<java.lang.Object@b084aeb>` with an owner's number.
fn object(rest: &[u8], wait: Option<LockWait>) -> Option<LockRef> {
    let rest = rest.trim_ascii_start().strip_prefix(b"<")?;
    let end = memchr(b'>', rest)?;
    let id = rest.get(..end)?;
    let after = rest.get(end + 1..).unwrap_or_default();
    // JVMs of some systems print addresses without `0x`.
    let bare = id.len() >= MIN_BARE && id.iter().all(u8::is_ascii_hexdigit);
    let is_id = bare || id.starts_with(b"0x") || memchr(b'@', id).is_some();
    let class = match (after.strip_prefix(b" (a "), memchr(b'@', id)) {
        // Android says behind it who has the lock.
        (Some(class), _) => memchr(b')', class)
            .and_then(|end| class.get(..end))
            .unwrap_or(class),
        (None, Some(at)) => id.get(..at)?,
        (None, None) => b"",
    };
    let owner = after.strip_prefix(b", owner ").map(text);
    is_id.then(|| LockRef {
        id: text(id),
        class: text(class),
        wait,
        owner,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
