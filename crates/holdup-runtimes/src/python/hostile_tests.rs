//! Objects that refer to each other at random: whatever is read of them ends, and nothing panics.

use super::versions::Version;
use super::{Interpreter, Place, Thread};
use crate::memory::Written;

const POOL: u64 = 0x10_0000;
const OBJECTS: u64 = 48;
const OBJECT_BYTES: u64 = 0x400;
const TYPES: u64 = 0x20_0000;
const NAMES: u64 = 0x30_0000;

/// Types whose objects are followed, and one that is not.
const KINDS: [&str; 16] = [
    "_asyncio.Task",
    "_asyncio.Future",
    "_GatheringFuture",
    "coroutine",
    "generator",
    "async_generator",
    "coroutine_wrapper",
    "async_generator_asend",
    "tuple",
    "Handle",
    "method",
    "builtin_function_or_method",
    "weakref.ReferenceType",
    "_thread.lock",
    "_thread.RLock",
    "Shop",
];

struct Dice(u64);

impl Dice {
    fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn object(&mut self) -> u64 {
        POOL + self.number() % OBJECTS * OBJECT_BYTES
    }
}

fn image(dice: &mut Dice) -> Written {
    let mut image = Written::default();
    for (at, name) in (0..).zip(KINDS) {
        let (kind, text) = (TYPES + at * 0x800, NAMES + at * 0x80);
        image.put(text, name.as_bytes());
        for word in 0..128 {
            image.word(kind + word * 8, dice.number() % 1024);
        }
        image.word(kind + 24, text);
        image.word(kind + 256, 0);
        image.word(kind + 168, dice.number() % 32);
        image.word(kind + 872, dice.object());
        image.word(kind + 880, dice.object());
    }
    for object in 0..OBJECTS {
        let object = POOL + object * OBJECT_BYTES;
        for word in 0..OBJECT_BYTES / 8 {
            let value = match dice.number() % 6 {
                0 => dice.number() % 8,
                1 => dice.number(),
                2 => u64::MAX - dice.number() % 64,
                3 => dice.object() + dice.number() % 128 * 8,
                _ => dice.object(),
            };
            image.word(object + word * 8, value);
        }
        let kind = TYPES + dice.number() % KINDS.len() as u64 * 0x800;
        image.word(object + 8, kind);
    }
    image
}

#[test]
fn objects_that_refer_to_each_other_at_random_are_read_to_an_end() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut chains, mut owners) = (0, 0);
    for round in 0..150_u64 {
        let minor = 8 + (round % 5) as u8;
        let place = Place {
            runtime: POOL,
            number: None,
            named: Some(Version { major: 3, minor }),
        };
        let image = image(&mut dice);
        let mut interpreter = Interpreter::unchecked(image, place).unwrap();
        let threads: Vec<Thread> = (1..4)
            .map(|tid| Thread {
                tid,
                state: dice.object(),
            })
            .collect();
        for _ in 0..8 {
            let (one, other) = (dice.object(), dice.object());
            interpreter.memory.forget();
            chains += usize::from(
                interpreter
                    .chain(one)
                    .is_some_and(|chain| chain.frames.len() <= 64),
            );
            drop(interpreter.attributes(one));
            let _ = interpreter.attribute(other, "_waiters");
            drop(interpreter.members(one));
            drop(interpreter.below_blocks(one));
            drop(interpreter.references(other));
            let _ = interpreter.bound(one, "__exit__");
            interpreter.memory.forget();
            drop(interpreter.tasks());
            let _ = interpreter.tasks_of_busy_loops();
            drop(interpreter.holder());
            for thread in &threads {
                let found = interpreter.awaited_lock(*thread, other, &[], &threads);
                owners += usize::from(found.is_ok());
            }
        }
    }
    assert!(
        chains > 100 && owners > 0,
        "{chains} chains, {owners} looks for an owner"
    );
}
