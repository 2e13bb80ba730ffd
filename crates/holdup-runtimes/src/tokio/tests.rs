//! Tasks in memory that somebody has written down.

use super::{Does, Place, Program, Sleeper, Task};
use crate::memory::Written;
use holdup_evidence::{BlockingCode, Member, TaskHead, TaskKind, TypeLayout, TypeLayouts, Variant, Variants};
use std::sync::Arc;

const FILE: u64 = 0x40_0000;
const TABLE: u64 = FILE + 0x1000;
const POLL: u64 = 0x500;
const HEAP: u64 = 0x70_0000;
const LOCK: u64 = 0x71_0000;
/// Code that blocks on the future, and the stack of the thread that runs it.
const BLOCKS: u64 = 0x800;
const STACK: u64 = 0x72_0000;
const STACK_BYTES: u64 = 0x400;
const SLEEPS: u8 = 4;
const LOCKS: u8 = 3;

/// Numbers of types.
const CELL: u32 = 0;
const CORE: u32 = 1;
const STAGE: u32 = 2;
const RUNNING: u32 = 3;
const CONSUMED: u32 = 4;
const FUTURE: u32 = 5;
const BEGIN: u32 = 6;
const AT_LOCK: u32 = 7;
const AT_SLEEP: u32 = 8;
const ACQUIRE: u32 = 9;
const POINTER: u32 = 10;
const SEMAPHORE: u32 = 11;
const SLEEP: u32 = 12;
const GUARD: u32 = 13;
const MUTEX: u32 = 14;
const MUTEX_POINTER: u32 = 15;
const NUMBER: u32 = 16;
const ENDED: u32 = 17;

fn member(name: &str, offset: u64, of: u32) -> Member {
    Member {
        name: name.to_owned(),
        offset,
        of,
    }
}

fn structure(path: &str, size: u64, members: Vec<Member>) -> TypeLayout {
    TypeLayout {
        path: path.to_owned(),
        size,
        members,
        ..TypeLayout::default()
    }
}

fn pointer(to: u32) -> TypeLayout {
    TypeLayout {
        size: 8,
        points_to: Some(to),
        ..TypeLayout::default()
    }
}

fn variant(value: u64, of: u32, line: u32) -> Variant {
    Variant {
        value: Some(value),
        of,
        at: Some((0, line)),
    }
}

/// A task that takes a lock, and sleeps with it.
fn layouts() -> TypeLayouts {
    let mut types = vec![TypeLayout::default(); 18];
    let mut put = |at: u32, layout| types[at as usize] = layout;
    put(
        CELL,
        structure(
            "tokio::runtime::task::core::Cell",
            128,
            vec![member("core", 32, CORE)],
        ),
    );
    put(
        CORE,
        structure(
            "tokio::runtime::task::core::Core",
            96,
            vec![member("task_id", 0, NUMBER), member("stage", 8, STAGE)],
        ),
    );
    put(
        STAGE,
        TypeLayout {
            variants: Some(Variants {
                number: Some((0, 4)),
                all: vec![variant(0, RUNNING, 1), variant(1, CONSUMED, 1)],
            }),
            ..structure("tokio::runtime::task::core::Stage", 72, vec![])
        },
    );
    put(
        RUNNING,
        structure(
            "tokio::runtime::task::core::Running",
            72,
            vec![member("__0", 8, FUTURE)],
        ),
    );
    put(
        CONSUMED,
        structure("tokio::runtime::task::core::Consumed", 72, vec![]),
    );
    put(
        FUTURE,
        TypeLayout {
            function: Some("shop::pay".to_owned()),
            variants: Some(Variants {
                number: Some((0, 1)),
                all: vec![
                    variant(0, BEGIN, 7),
                    variant(1, ENDED, 9),
                    variant(u64::from(LOCKS), AT_LOCK, 8),
                    variant(u64::from(SLEEPS), AT_SLEEP, 9),
                ],
            }),
            ..structure("shop::pay::{async_fn_env#0}", 56, vec![])
        },
    );
    put(BEGIN, structure("shop::pay::Unresumed", 56, vec![]));
    put(ENDED, structure("shop::pay::Returned", 56, vec![]));
    put(
        AT_LOCK,
        structure("shop::pay::Suspend0", 56, vec![member("__awaitee", 8, ACQUIRE)]),
    );
    put(
        AT_SLEEP,
        structure(
            "shop::pay::Suspend1",
            56,
            vec![member("guard", 24, GUARD), member("__awaitee", 32, SLEEP)],
        ),
    );
    put(
        ACQUIRE,
        structure(
            "tokio::sync::batch_semaphore::Acquire",
            16,
            vec![member("semaphore", 0, POINTER)],
        ),
    );
    put(POINTER, pointer(SEMAPHORE));
    put(
        SEMAPHORE,
        structure("tokio::sync::batch_semaphore::Semaphore", 40, vec![]),
    );
    put(SLEEP, structure("tokio::time::sleep::Sleep", 16, vec![]));
    put(
        GUARD,
        structure(
            "tokio::sync::mutex::MutexGuard",
            8,
            vec![member("lock", 0, MUTEX_POINTER)],
        ),
    );
    put(
        MUTEX,
        structure("tokio::sync::mutex::Mutex", 56, vec![member("s", 16, SEMAPHORE)]),
    );
    put(MUTEX_POINTER, pointer(MUTEX));
    TypeLayouts {
        types,
        files: vec!["/srv/shop/src/main.rs".to_owned()],
        head: Some(TaskHead {
            state: 0,
            table: 16,
            owner: Some(24),
            poll: 0,
            align: 128,
        }),
        tasks: vec![TaskKind { poll: POLL, of: CELL }],
        blocking: vec![BlockingCode {
            begin: BLOCKS,
            end: BLOCKS + 0x100,
            of: FUTURE,
        }],
        objects: Vec::new(),
        cut: false,
    }
}

fn place() -> Place {
    Place {
        layouts: Arc::new(layouts()),
        moved: FILE,
        mapped: FILE..FILE + 0x10_0000,
    }
}

/// Puts a task: its number, the bits of its state, and at which `await` it stands.
fn put(memory: &mut Written, number: u64, state: u64, stands: u8) -> u64 {
    let at = HEAP + number * 128;
    memory.word(at, state);
    memory.word(at + 16, TABLE);
    memory.word(at + 24, 1);
    memory.word(at + 32, number);
    memory.word(at + 40, 0);
    let future = at + 48;
    memory.put(future, &[stands]);
    memory.word(future + 8, LOCK + 16);
    memory.word(future + 24, LOCK);
    at
}

fn image() -> Written {
    let mut memory = Written::default();
    memory.word(TABLE, FILE + POLL);
    memory.word(LOCK, 0);
    memory
}

fn tasks(memory: Written) -> Vec<Task> {
    let mut program = Program::find(memory, place()).unwrap();
    let range = HEAP..HEAP + 0x2000;
    program.tasks(&[range], &[]).unwrap().all
}

#[test]
fn a_task_stands_at_its_await_and_who_has_its_lock_is_known_by_the_guard() {
    let mut memory = image();
    put(&mut memory, 1, 0x80, SLEEPS);
    put(&mut memory, 2, 0x80, LOCKS);
    let found = tasks(memory);
    let each: Vec<_> = found
        .iter()
        .map(|task| {
            let own = task.frames.last().unwrap();
            (
                task.id,
                own.symbol.as_deref().unwrap(),
                own.line,
                task.reason.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        each,
        [
            (1, "shop::pay", Some(9), "tokio::time::sleep::Sleep"),
            (2, "shop::pay", Some(8), "tokio::sync::batch_semaphore::Acquire"),
        ]
    );
    assert_eq!(
        (&found[0].has[..], &found[0].objects[..]),
        (&[LOCK + 16][..], &[][..])
    );
    assert_eq!(
        (&found[1].has[..], &found[1].objects[..]),
        (&[][..], &[LOCK + 16][..])
    );
}

#[test]
fn what_has_ended_or_is_a_copy_is_no_task() {
    let mut memory = image();
    put(&mut memory, 1, 0x82, SLEEPS);
    put(&mut memory, 2, 0x0, SLEEPS);
    // Its future is gone.
    let gone = put(&mut memory, 3, 0x80, SLEEPS);
    memory.word(gone + 40, 1);
    // No scheduler has it.
    let copy = put(&mut memory, 4, 0xcc, SLEEPS);
    memory.word(copy + 24, 0);
    // Another table.
    let other = put(&mut memory, 5, 0x80, SLEEPS);
    memory.word(other + 16, TABLE + 8);
    assert_eq!(tasks(memory), []);
}

#[test]
fn a_task_that_runs_is_not_read_and_one_in_a_queue_could_run() {
    let mut memory = image();
    put(&mut memory, 1, 0x81, SLEEPS);
    put(&mut memory, 2, 0x84, LOCKS);
    put(&mut memory, 3, 0x84, 0);
    let found = tasks(memory);
    let each: Vec<_> = found
        .iter()
        .map(|task| (task.does, task.frames.len(), task.reason.is_some()))
        .collect();
    assert_eq!(
        each,
        [
            (Does::Runs, 0, false),
            (Does::Ready, 2, true),
            // It has not begun, so it stands at no line.
            (Does::Ready, 1, false),
        ]
    );
    assert_eq!(found[2].frames[0].line, None);
}

/// A thread that is called from code that blocks on the future.
fn stack() -> Written {
    let mut memory = image();
    for at in (STACK..STACK + STACK_BYTES).step_by(8) {
        memory.word(at, 0);
    }
    memory.word(STACK + 0x40, FILE + BLOCKS + 0x10);
    memory
}

/// Puts the future: where on the stack, and at which `await` it stands.
fn put_on_stack(memory: &mut Written, offset: u64, stands: u8) {
    let future = STACK + offset;
    memory.put(future, &[stands]);
    memory.word(future + 8, LOCK + 16);
    memory.word(future + 24, LOCK);
}

fn blocked(memory: Written) -> Vec<Task> {
    let mut program = Program::find(memory, place()).unwrap();
    let stack = STACK..STACK + STACK_BYTES;
    program.tasks(&[], &[Sleeper { tid: 71, stack }]).unwrap().all
}

#[test]
fn the_future_on_a_threads_stack_stands_at_its_await() {
    let mut memory = stack();
    put_on_stack(&mut memory, 0x80, LOCKS);
    // A copy from before it was run, and one of a future that is over.
    put_on_stack(&mut memory, 0x100, 0);
    put_on_stack(&mut memory, 0x180, 1);
    let found = blocked(memory);
    let [task] = found.as_slice() else {
        panic!("{} futures", found.len())
    };
    assert_eq!((task.thread, task.does), (Some(71), Does::Waits));
    assert_eq!(task.frames.last().unwrap().line, Some(8));
    assert_eq!(task.objects, [LOCK + 16]);
}

#[test]
fn of_several_futures_on_a_stack_none_is_taken() {
    let mut memory = stack();
    put_on_stack(&mut memory, 0x80, LOCKS);
    put_on_stack(&mut memory, 0x100, SLEEPS);
    assert_eq!(blocked(memory), []);
}

#[test]
fn what_is_not_called_by_code_that_blocks_has_no_future() {
    let mut memory = stack();
    put_on_stack(&mut memory, 0x80, LOCKS);
    // It was called from behind that code, and below it lies what was called before.
    memory.word(STACK + 0x40, FILE + BLOCKS + 0x101);
    assert_eq!(blocked(memory.clone()), []);
    memory.word(STACK + 0x100, FILE + BLOCKS + 0x100);
    assert_eq!(blocked(memory), []);
}

#[test]
fn too_much_memory_is_not_swept() {
    let mut program = Program::find(image(), place()).unwrap();
    let range = 0..2 << 30;
    assert_eq!(program.tasks(&[range], &[]), None);
}

#[test]
fn damaged_memory_and_layouts_that_refer_to_themselves_come_to_an_end() {
    let mut memory = image();
    for number in 1..9 {
        put(
            &mut memory,
            number,
            0x80,
            if number % 2 == 0 { LOCKS } else { SLEEPS },
        );
    }
    for at in 0..512_u64 {
        for with in [0, 1, u64::MAX, HEAP + 128, TABLE] {
            let mut damaged = memory.clone();
            damaged.word(HEAP + 128 + at * 2, with);
            tasks(damaged);
            let mut damaged = stack();
            put_on_stack(&mut damaged, 0x80, LOCKS);
            damaged.word(STACK + at * 2, with);
            blocked(damaged);
        }
    }
    // Each type refers to the next, the last to the first, by parts and by pointers.
    let mut turned = place();
    let layouts = Arc::make_mut(&mut turned.layouts);
    let count = u32::try_from(layouts.types.len()).unwrap();
    for (at, layout) in (0_u32..).zip(&mut layouts.types) {
        layout.members.push(member("__awaitee", 0, (at + 1) % count));
        if at % 3 == 0 {
            layout.points_to = Some((at + 5) % count);
        }
    }
    memory.word(STACK, FILE + BLOCKS + 1);
    let mut program = Program::find(memory, turned).unwrap();
    let range = HEAP..HEAP + 0x2000;
    let stack = STACK..STACK + STACK_BYTES;
    program.tasks(&[range], &[Sleeper { tid: 71, stack }]).unwrap();
}
