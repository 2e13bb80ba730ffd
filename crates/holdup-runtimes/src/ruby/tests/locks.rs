//! Locks that a test has written down.

use super::{Interpreter, PLACE, PTHREAD, SHAPES, Shape, THREAD, TID, Thread, Unread, Written, written};
use crate::interpreted::{AwaitedLock, LockKind};

const OBJECT: u64 = 0xc0_0000;
const DESCRIBED: u64 = 0xc1_0000;
const LOCK: u64 = 0xc2_0000;
const OTHER_LOCK: u64 = 0xc2_0100;
const KEEPER: u64 = 0xc3_0000;
const KEEPER_NATIVE: u64 = 0xc4_0000;
const KEEPER_PTHREAD: u64 = 0xc5_0000;
const FIBER: u64 = 0xc6_0000;
const KEEPER_TID: u32 = 4712;

/// A structure of C.
const DATA: u64 = 0x0c;

/// Where a thread of each version keeps the lock that it waits for.
const LOCKING: [u64; 4] = [248, 264, 344, 344];

const WAITER: Thread = Thread {
    tid: TID,
    state: THREAD,
};
const OWNER: Thread = Thread {
    tid: KEEPER_TID,
    state: KEEPER,
};

/// A thread waits for a lock, which is the second of those that another has.
fn waiting(shape: Shape, locking: u64) -> Written {
    let mut image = written(shape);
    image.word(THREAD + locking, OBJECT);
    image.word(THREAD + locking + 8, 0);
    image.word(OBJECT, DATA);
    image.word(OBJECT + 16, DESCRIBED);
    image.word(OBJECT + 24, 1);
    image.word(OBJECT + 32, LOCK);
    image.word(DESCRIBED, DESCRIBED + 0x100);
    image.put(DESCRIBED + 0x100, b"mutex\0");
    image.word(LOCK, FIBER);
    image.word(LOCK + 8, 0);
    image.word(OTHER_LOCK, FIBER);
    image.word(OTHER_LOCK + 8, LOCK);
    image.word(KEEPER + locking, 0);
    image.word(KEEPER + locking + 8, OTHER_LOCK);
    let native = if shape.behind { KEEPER_NATIVE } else { KEEPER };
    if shape.behind {
        image.word(KEEPER + 40, KEEPER_NATIVE);
    }
    image.word(native + shape.pthread, KEEPER_PTHREAD);
    image.word(KEEPER_PTHREAD, KEEPER_PTHREAD);
    image.word(KEEPER_PTHREAD + 16, KEEPER_PTHREAD);
    image.put(KEEPER_PTHREAD + 720, &KEEPER_TID.to_le_bytes());
    image
}

fn awaited(image: Written) -> Result<Option<AwaitedLock>, Unread> {
    let found = Interpreter::find(image, PLACE);
    found
        .map_err(|_| Unread::Torn)?
        .awaited_lock(WAITER, &[WAITER, OWNER])
}

fn owned_by(owner: Option<u32>) -> Result<Option<AwaitedLock>, Unread> {
    Ok(Some(AwaitedLock {
        kind: LockKind::RubyMutex,
        address: LOCK,
        owner,
    }))
}

#[test]
fn whoever_has_the_lock_in_its_list_owns_it() {
    for (shape, locking) in SHAPES.into_iter().zip(LOCKING) {
        assert_eq!(
            awaited(waiting(shape, locking)),
            owned_by(Some(KEEPER_TID)),
            "{}",
            shape.number
        );
        let mut none = waiting(shape, locking);
        none.word(THREAD + locking, 0);
        assert_eq!(awaited(none), Ok(None));
        let mut let_go = waiting(shape, locking);
        let_go.word(LOCK, 0);
        assert_eq!(awaited(let_go), owned_by(None));
        let mut of_two = waiting(shape, locking);
        of_two.word(THREAD + locking + 8, LOCK);
        assert_eq!(awaited(of_two), owned_by(None), "only one of them can have it");
        let mut gone = waiting(shape, locking);
        gone.put(KEEPER_PTHREAD + 720, &1_u32.to_le_bytes());
        assert_eq!(
            awaited(gone),
            owned_by(None),
            "another thread has its state by now"
        );
    }
}

#[test]
fn what_is_no_lock_is_not_told_as_one() {
    let (shape, locking) = (SHAPES[1], LOCKING[1]);
    let damaged = |at: u64, word: u64| {
        let mut image = waiting(shape, locking);
        image.word(at, word);
        awaited(image)
    };
    // A number, an object of another kind, one without a type, one of another type, and a structure that is not there.
    for (at, word) in [
        (THREAD + locking, 3),
        (THREAD + locking, u64::MAX - 7),
        (OBJECT, 0x05),
        (OBJECT + 24, 3),
        (DESCRIBED + 0x100, u64::from_le_bytes(*b"queue\0\0\0")),
        (OBJECT + 32, 0),
        (OBJECT + 32, LOCK + 1),
        (OBJECT + 32, u64::MAX - 7),
    ] {
        assert_eq!(damaged(at, word), Err(Unread::Torn), "{at:#x} {word:#x}");
    }
    // A list without end.
    assert_eq!(damaged(OTHER_LOCK + 8, OTHER_LOCK), owned_by(None));
    assert_eq!(damaged(OTHER_LOCK + 8, u64::MAX - 7), owned_by(None));
    // The waiter has ended.
    assert_eq!(damaged(PTHREAD + 720, 1), Err(Unread::NoThread));
}
