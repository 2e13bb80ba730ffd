//! Interpreters that a test has written down, whole and damaged.

mod locks;

use super::{Interpreter, Place, Refused, RubyFrame, Thread, Unread, Version, evaluates, may_be_in};
use crate::damage::read_damaged;
use crate::memory::Written;

const VERSION: u64 = 0x10_0000;
const CURRENT: u64 = 0x11_0000;
const INTERPRETER: u64 = 0x20_0000;
const RACTOR: u64 = 0x21_0000;
const THREAD: u64 = 0x30_0000;
const CONTEXT: u64 = 0x31_0000;
const NATIVE: u64 = 0x32_0000;
const PTHREAD: u64 = 0x40_0000;
const STACK: u64 = 0x50_0000;
const WORDS: u64 = 0x200;
const ENVIRONMENTS: u64 = 0x60_0000;
const CODES: u64 = 0x70_0000;
const TEXTS: u64 = 0x80_0000;
const METHODS: u64 = 0x90_0000;
const NAMES: u64 = 0xa0_0000;
const FUNCTION: u64 = 0xb0_0000;
const TID: u32 = 4711;

/// The number of the name of the innermost method, which is written in C.
const SLEEP: u64 = 700;

/// An object's flags.
const TEXT: u64 = 0x05;
const ARRAY: u64 = 0x07;
const LONG: u64 = 1 << 13;
const CODE: u64 = 0x1a | 7 << 12;
const METHOD: u64 = 0x1a | 6 << 12;
const VARIABLES: u64 = 0x1a | 2 << 12;

/// A frame's flags.
const IN_C: u64 = 0x5555_0081;
const BLOCK: u64 = 0x2222_0021;
const OF_METHOD: u64 = 0x1111_0001;
const TOP: u64 = 0x7777_0021;
const FIRST: u64 = 0x7999_00a1;

/// What stands in the stack, innermost first.
const STANDS: [(&str, Option<u32>); 4] = [
    ("sleep", None),
    ("block in pay", Some(12)),
    ("checkout", Some(22)),
    ("<main>", Some(32)),
];

/// Where a version keeps what.
#[derive(Clone, Copy)]
struct Shape {
    number: &'static str,
    main: u64,
    ractors: Option<(u64, u64)>,
    list: u64,
    of: u64,
    context: u64,
    pthread: u64,
    behind: bool,
    context_thread: u64,
    frame: u64,
    entries: u64,
    entry: u64,
    word: bool,
    few: bool,
}

const SHAPES: [Shape; 4] = [
    Shape {
        number: "2.7.4",
        main: 192,
        ractors: None,
        list: 312,
        of: 24,
        context: 32,
        pthread: 72,
        behind: false,
        context_thread: 56,
        frame: 56,
        entries: 120,
        entry: 8,
        word: false,
        few: true,
    },
    Shape {
        number: "3.1.2",
        main: 40,
        ractors: Some((8, 568)),
        list: 304,
        of: 32,
        context: 40,
        pthread: 80,
        behind: false,
        context_thread: 48,
        frame: 64,
        entries: 120,
        entry: 12,
        word: false,
        few: true,
    },
    Shape {
        number: "3.3.8",
        main: 40,
        ractors: Some((8, 432)),
        list: 256,
        of: 32,
        context: 48,
        pthread: 16,
        behind: true,
        context_thread: 48,
        frame: 56,
        entries: 112,
        entry: 12,
        word: true,
        few: false,
    },
    Shape {
        number: "3.4.1",
        main: 40,
        ractors: Some((8, 432)),
        list: 256,
        of: 32,
        context: 48,
        pthread: 16,
        behind: true,
        context_thread: 48,
        frame: 56,
        entries: 112,
        entry: 12,
        word: true,
        few: false,
    },
];

const PLACE: Place = Place {
    version: VERSION,
    interpreter: Some(CURRENT),
    reads_interpreter: None,
    reads_names: Some(FUNCTION + 0x100),
};

/// A circle of one behind its head.
fn put_list(image: &mut Written, head: u64, one: u64) {
    image.word(head, one);
    image.word(one, head);
}

fn put_text(image: &mut Written, shape: Shape, at: u64, text: &str) {
    let length = text.len() as u64;
    if length > 20 {
        image.word(at, TEXT | LONG);
        image.word(at + 16, length);
        image.word(at + 24, at + 0x40);
        image.put(at + 0x40, text.as_bytes());
    } else if shape.word {
        image.word(at, TEXT);
        image.word(at + 16, length);
        image.put(at + 24, text.as_bytes());
    } else {
        image.word(at, TEXT | length << 14);
        image.put(at + 16, text.as_bytes());
    }
}

/// Code whose first two entries are a line for the definition and the wanted one.
fn put_code(image: &mut Written, shape: Shape, number: u64, name: &str, line: u32) -> (u64, u64) {
    let (code, texts) = (CODES + number * 0x1000, TEXTS + number * 0x1000);
    let (body, encoded, entries) = (code + 0x100, code + 0x400, code + 0x800);
    image.word(code, CODE);
    image.word(code + 16, body);
    image.put(body + 4, &20_u32.to_le_bytes());
    image.word(body + 8, encoded);
    image.word(encoded, FUNCTION + 0x800);
    // Both paths, as an array of two.
    image.word(body + 64, texts);
    image.word(texts, ARRAY | LONG | 2 << 15);
    image.word(texts + 16, texts + 0x100);
    image.word(texts + 24, texts + 0x200);
    put_text(image, shape, texts + 0x100, "app.rb");
    put_text(image, shape, texts + 0x200, "/srv/shop/with/a/long/name/app.rb");
    image.word(body + 80, texts + 0x300);
    put_text(image, shape, texts + 0x300, name);
    let index = entries + 0x100;
    image.word(body + shape.entries, entries);
    image.put(body + shape.entries + 16, &2_u32.to_le_bytes());
    image.word(body + shape.entries + 24, index);
    image.put(entries, &(line - 1).to_le_bytes());
    image.put(entries + shape.entry, &line.to_le_bytes());
    // The second entry begins with the fifth instruction.
    let counts = |word: u64| {
        (0..9)
            .map(|one| (1 + u64::from(word * 9 + one >= 4)) << (one * 7))
            .sum()
    };
    for word in 0..6 {
        image.word(index + word * 8, counts(word));
    }
    (code, encoded + 8 * 8)
}

/// The table of names; a function hands on to one that reads it.
fn put_names(image: &mut Written, shape: Shape) {
    image.put(NAMES, &900_u32.to_le_bytes());
    image.word(NAMES + 16, NAMES + 0x100);
    let parts = NAMES + 0x1000;
    let short = LONG | 2 << 15;
    match shape.few {
        true => {
            image.word(NAMES + 0x100, ARRAY);
            image.word(NAMES + 0x110, 2);
            image.word(NAMES + 0x120, NAMES + 0x200);
        }
        false => image.word(NAMES + 0x100, ARRAY | short),
    }
    let list = if shape.few { NAMES + 0x200 } else { NAMES + 0x110 };
    for part in 0..2 {
        let at = parts + part * 0x8000;
        image.word(list + part * 8, at);
        image.word(at, ARRAY);
        image.word(at + 16, 1024);
        image.word(at + 32, at + 0x100);
    }
    let text = NAMES + 0x400;
    put_text(image, shape, text, "sleep");
    image.word(parts + 0x8000 + 0x100 + (SLEEP - 512) * 16, text);
    let jump = FUNCTION + 0x100;
    image.put(jump, &[0x48, 0xc1, 0xe8, 4, 0xe9]);
    image.put(jump + 5, &0xf7_i32.to_le_bytes());
    // mov rdi, [rip + …]
    let reads = FUNCTION + 0x200;
    let distance = i32::try_from(NAMES.cast_signed() + 16 - (reads.cast_signed() + 7)).unwrap();
    image.put(reads, &[0x48, 0x8b, 0x3d]);
    image.put(reads + 3, &distance.to_le_bytes());
}

fn written(shape: Shape) -> Written {
    let mut image = Written::default();
    image.put(VERSION, format!("{}\0", shape.number).as_bytes());
    image.word(CURRENT, INTERPRETER);
    image.word(INTERPRETER + shape.main, THREAD);
    match shape.ractors {
        Some((head, link)) => {
            put_list(&mut image, INTERPRETER + head, RACTOR + link);
            put_list(&mut image, RACTOR + shape.list, THREAD);
        }
        None => put_list(&mut image, INTERPRETER + shape.list, THREAD),
    }
    image.word(THREAD + shape.of, INTERPRETER);
    image.word(THREAD + shape.context, CONTEXT);
    let native = if shape.behind { NATIVE } else { THREAD };
    image.word(native + shape.pthread, PTHREAD);
    if shape.behind {
        image.word(THREAD + 40, NATIVE);
    }
    image.word(PTHREAD, PTHREAD);
    image.word(PTHREAD + 16, PTHREAD);
    image.put(PTHREAD + 720, &TID.to_le_bytes());
    image.word(CONTEXT, STACK);
    image.word(CONTEXT + 8, WORDS);
    let mut at = STACK + WORDS * 8 - 5 * shape.frame;
    image.word(CONTEXT + 16, at);
    image.word(CONTEXT + shape.context_thread, THREAD);
    for (number, ((name, line), flags)) in (0..).zip(STANDS.into_iter().zip([IN_C, BLOCK, OF_METHOD, TOP])) {
        let environment = ENVIRONMENTS + 16 + number * 0x100;
        image.word(environment, flags);
        image.word(at + 32, environment);
        if let Some(line) = line {
            let (code, pc) = put_code(&mut image, shape, number, name, line);
            image.word(at, pc);
            image.word(at + 16, code);
        } else {
            image.word(environment - 16, METHODS);
        }
        at += shape.frame;
    }
    // The outermost is none of the program's.
    image.word(at + 32, ENVIRONMENTS + 0x800);
    image.word(ENVIRONMENTS + 0x800, FIRST);
    image.word(METHODS, VARIABLES);
    image.word(METHODS + 8, METHODS + 0x100);
    image.word(METHODS + 0x100, METHOD);
    image.word(METHODS + 0x110, METHODS + 0x200);
    image.word(METHODS + 0x220, SLEEP << 4);
    put_names(&mut image, shape);
    image
}

fn read(image: Written) -> Result<Vec<RubyFrame>, Unread> {
    let found = Interpreter::find(image, PLACE);
    found.map_err(|_| Unread::Torn)?.frames(TID)
}

fn refused(image: Written, place: Place) -> Refused {
    Interpreter::find(image, place).map(|_| ()).unwrap_err()
}

fn shown(frames: &[RubyFrame]) -> Vec<(&str, Option<u32>)> {
    let each = frames.iter().map(|one| {
        let file = one.frame.line.map(|_| "/srv/shop/with/a/long/name/app.rb");
        assert_eq!(one.frame.file.as_deref(), file);
        (one.frame.symbol.as_deref().unwrap(), one.frame.line)
    });
    each.collect()
}

#[test]
fn frames_of_each_version_have_function_file_and_line() {
    for shape in SHAPES {
        let mut interpreter = Interpreter::find(written(shape), PLACE).unwrap();
        assert!(shape.number.starts_with(&interpreter.version().to_string()));
        assert_eq!(interpreter.executor(), None);
        let frames = interpreter.frames(TID).unwrap();
        assert_eq!(shown(&frames), STANDS, "{}", shape.number);
        let entries: Vec<bool> = frames.iter().map(|one| one.entry).collect();
        assert_eq!(entries, [false, true, false, true]);
        assert_eq!(interpreter.executor(), Some(FUNCTION + 0x800));
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let version = |major, minor| Version { major, minor };
    for shape in SHAPES {
        let own = version(
            shape.number.as_bytes()[0] - b'0',
            shape.number.as_bytes()[2] - b'0',
        );
        let mut none = written(shape);
        none.word(CURRENT, 0);
        assert_eq!(refused(none, PLACE), Refused::NoThreads(own));
        let mut wild = written(shape);
        wild.word(CURRENT, u64::MAX - 7);
        assert_eq!(refused(wild, PLACE), Refused::Implausible(own));
        let mut other = written(shape);
        other.word(CONTEXT + shape.context_thread, INTERPRETER);
        assert_eq!(refused(other, PLACE), Refused::Implausible(own));
        let mut circle = written(shape);
        circle.word(THREAD, THREAD);
        assert_eq!(refused(circle, PLACE), Refused::Implausible(own));
        let hidden = Place {
            interpreter: None,
            ..PLACE
        };
        assert_eq!(refused(written(shape), hidden), Refused::NoState(own));
    }
    for (number, why) in [
        ("1.9.3", Refused::Unsupported(version(1, 9))),
        ("3.9.0", Refused::Unsupported(version(3, 9))),
        ("jruby", Refused::NoVersion),
        ("3", Refused::NoVersion),
        ("3.1.2 and more than that", Refused::NoVersion),
    ] {
        let mut image = written(SHAPES[1]);
        image.put(VERSION, format!("{number}\0").as_bytes());
        assert_eq!(refused(image, PLACE), why);
    }
    assert_eq!(refused(Written::default(), PLACE), Refused::Memory);
    assert_eq!(Place::of(&[None, Some(1)]), None);
    assert_eq!(
        Place::of(&[Some(1), None]).map(|place| (place.version, place.interpreter)),
        Some((1, None))
    );
}

#[test]
fn where_the_interpreter_is_not_exported_instructions_say_it() {
    let hidden = Place {
        interpreter: None,
        reads_interpreter: Some(FUNCTION),
        ..PLACE
    };
    for through_table in [false, true] {
        let mut image = written(SHAPES[2]);
        let target = if through_table { CURRENT + 0x100 } else { CURRENT };
        image.word(CURRENT + 0x100, CURRENT);
        let distance = i32::try_from(target.cast_signed() - (FUNCTION.cast_signed() + 13)).unwrap();
        // push rbp; push rbx; mov rbx, rdi; nop; mov rbp, [rip + …]
        image.put(FUNCTION, &[0x55, 0x53, 0x48, 0x89, 0xfb, 0x90, 0x48, 0x8b, 0x2d]);
        image.put(FUNCTION + 9, &distance.to_le_bytes());
        let mut empty = image.clone();
        let mut interpreter = Interpreter::find(image, hidden).unwrap();
        assert_eq!(shown(&interpreter.frames(TID).unwrap()), STANDS);
        empty.word(CURRENT, 0);
        let version = Version { major: 3, minor: 3 };
        assert_eq!(refused(empty, hidden), Refused::NoThreads(version));
    }
}

#[test]
fn a_method_in_c_without_a_name_is_there_all_the_same() {
    let nameless = Place {
        reads_names: None,
        ..PLACE
    };
    for shape in SHAPES {
        let mut interpreter = Interpreter::find(written(shape), nameless).unwrap();
        let frames = interpreter.frames(TID).unwrap();
        assert_eq!(frames.len(), STANDS.len());
        assert_eq!(frames[0].frame.symbol, None);
    }
}

#[test]
fn a_frame_that_has_not_begun_is_none() {
    let shape = SHAPES[1];
    let mut image = written(shape);
    let main = STACK + WORDS * 8 - 2 * shape.frame;
    image.word(main, CODES + 3 * 0x1000 + 0x400);
    assert_eq!(shown(&read(image).unwrap()), STANDS[..3]);
}

#[test]
fn code_that_is_evaluated_or_handles_an_exception_is_named_as_ruby_names_it() {
    let body = CODES + 0x1000 + 0x100;
    for (shape, kind, shown_as) in [
        (SHAPES[2], 6, vec!["sleep", "block in pay", "checkout", "<main>"]),
        (SHAPES[3], 6, vec!["sleep", "checkout", "checkout", "<main>"]),
        // It stands for the method that it belongs to.
        (SHAPES[3], 4, vec!["sleep", "checkout", "<main>"]),
    ] {
        let mut image = written(shape);
        image.put(body, &u32::to_le_bytes(kind));
        image.word(body + 160, CODES + 2 * 0x1000);
        let frames = read(image).unwrap();
        let names: Vec<&str> = frames
            .iter()
            .map(|one| one.frame.symbol.as_deref().unwrap())
            .collect();
        assert_eq!(names, shown_as);
    }
    let mut circle = written(SHAPES[3]);
    circle.put(body, &4_u32.to_le_bytes());
    circle.word(body + 160, CODES + 0x1000);
    assert!(read(circle).is_ok());
}

#[test]
fn a_thread_that_was_found_has_frames_unless_its_state_is_anothers_by_now() {
    for shape in SHAPES {
        let mut interpreter = Interpreter::find(written(shape), PLACE).unwrap();
        assert_eq!(interpreter.frames(TID + 1), Err(Unread::NoThread));
        let (tid, state) = (TID, THREAD);
        assert_eq!(interpreter.threads(), Ok(vec![Thread { tid, state }]));
        assert_eq!(
            shown(&interpreter.frames_of(Thread { tid, state }).unwrap()),
            STANDS
        );
        let tid = TID + 1;
        assert_eq!(
            interpreter.frames_of(Thread { tid, state }),
            Err(Unread::NoThread)
        );
        let state = THREAD + 0x800;
        assert_eq!(
            interpreter.frames_of(Thread { tid, state }),
            Err(Unread::NoThread)
        );
    }
}

#[test]
fn the_kernels_number_is_taken_where_the_c_library_has_none() {
    for (shape, own) in [(SHAPES[1], THREAD + 88), (SHAPES[2], NATIVE + 24)] {
        let mut image = written(shape);
        image.word(PTHREAD, 0);
        image.put(own, &TID.to_le_bytes());
        assert_eq!(shown(&read(image).unwrap()), STANDS);
    }
}

#[test]
fn deep_recursion_keeps_its_innermost_frames() {
    let shape = SHAPES[1];
    let mut image = written(shape);
    let words = 0x1_0000;
    image.word(CONTEXT, STACK - words * 8);
    image.word(CONTEXT + 8, words + WORDS);
    let outermost = STACK + WORDS * 8 - 3 * shape.frame;
    let (code, pc) = (CODES + 2 * 0x1000, CODES + 2 * 0x1000 + 0x440);
    for number in 0..2000 {
        let at = outermost - number * shape.frame;
        image.word(at, pc);
        image.word(at + 16, code);
        image.word(at + 32, ENVIRONMENTS + 16 + 2 * 0x100);
        image.word(CONTEXT + 16, at);
    }
    let frames = read(image).unwrap();
    assert_eq!(frames.len(), 512);
    assert!(frames.iter().all(|one| one.frame.line == Some(22)));
}

/// Damage of all kinds: whatever is read, it ends.
#[test]
fn damaged_memory_is_no_panic_and_ends() {
    read_damaged(&SHAPES.map(written), 12, |image, _| {
        if let Ok(mut interpreter) = Interpreter::find(image.clone(), PLACE) {
            let held = interpreter.holder();
            assert!(held.is_err() || held.is_ok_and(|held| held.is_none_or(|held| held.frames.len() <= 512)));
        }
        let frames = read(image);
        assert!(frames.as_ref().is_ok_and(|frames| frames.len() <= 512) || frames.is_err());
        frames.is_ok()
    });
}

#[test]
fn files_and_functions_are_known_by_their_names() {
    for file in ["ruby", "ruby3.1", "libruby-3.1.so.3.1.2", "libruby.so.2.7"] {
        assert!(may_be_in(file), "{file}");
    }
    assert!(!may_be_in("python3.11") && !may_be_in("jruby") && !may_be_in("librb.so"));
    assert!(evaluates("rb_vm_exec") && evaluates("vm_exec.cold"));
    assert!(!evaluates("vm_exec_core") && !evaluates("rb_vm_exec_x"));
}
