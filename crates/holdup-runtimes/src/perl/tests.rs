//! Perls that a test has written down, whole and damaged.

use super::{Interpreter, Place, Refused, Version, evaluates, may_be_in};
use crate::damage::read_damaged;
use crate::interpreted::{Interpreted, Unread, shown};
use crate::memory::Written;

const SYMBOLS: u64 = 0x10_0000;
const INTERPRETER: u64 = 0x20_0000;
const STACKS: u64 = 0x30_0000;
const STATEMENTS: u64 = 0x40_0000;
const VALUES: u64 = 0x50_0000;
const TEXTS: u64 = 0x60_0000;
const MAIN: u32 = 4711;

const PLACE: Place = Place {
    version: SYMBOLS,
    interpreter: SYMBOLS + 8,
    threads: true,
};

/// Kinds of contexts.
const FUNCTION: u64 = 9;
const EVAL: u64 = 11;
const BLOCK_OF_EVAL: u64 = 11 | 0x40;
const LOOP: u64 = 5;

/// A version, and where an interpreter has the statement and the contexts.
type Table = (u8, u64, u64);

const OLD: Table = (32, 224, 240);
const NEW: Table = (36, 208, 224);

fn put_text(image: &mut Written, number: u64, text: &str) -> u64 {
    let at = TEXTS + number * 0x100;
    image.put(at + 4, &u32::try_from(text.len()).unwrap().to_le_bytes());
    image.put(at + 8, text.as_bytes());
    image.put(at + 8 + text.len() as u64, &[0]);
    at
}

/// A statement on this line.
fn put_statement(image: &mut Written, number: u64, line: u32) -> u64 {
    let at = STATEMENTS + number * 0x100;
    let file = put_text(image, 0, "/srv/shop/prices.pl") + 8;
    image.put(at + 36, &line.to_le_bytes());
    image.word(at + 48, file);
    at
}

/// A value with its body behind it.
fn put_value(image: &mut Written, number: u64, flags: u32) -> (u64, u64) {
    let at = VALUES + number * 0x200;
    image.word(at, at + 0x40);
    image.put(at + 12, &flags.to_le_bytes());
    (at, at + 0x40)
}

/// A package, its name at this place of its body or behind its table.
fn put_package(image: &mut Written, table: Table, number: u64, name: &str) -> u64 {
    let (package, body) = put_value(image, number, 12 | 0x0200_0000);
    let name = put_text(image, number + 20, name);
    let more = if table.0 < 36 {
        let entries = package + 0x100;
        image.word(package + 16, entries);
        image.word(body + 24, 7);
        entries + 64
    } else {
        body + 32
    };
    image.word(more, name);
    package
}

/// A function with a glob of this name, or with the name itself.
fn put_function(image: &mut Written, number: u64, package: u64, name: &str, itself: bool) -> u64 {
    let (function, body) = put_value(image, number, 13);
    let name = put_text(image, number + 20, name);
    if itself {
        image.put(body + 92, &0x8000_u32.to_le_bytes());
        image.word(body + 56, name);
        image.word(body + 32, package);
    } else {
        let (glob, glob_body) = put_value(image, number + 1, 9);
        image.word(body + 56, glob);
        image.word(glob_body + 32, name);
        image.word(glob_body + 40, package);
    }
    function
}

/// A context: kind, statement before, where it returns to, what it has loaded, its function.
fn put_context(image: &mut Written, stack: u64, number: u64, words: [u64; 5]) {
    let at = STACKS + stack * 0x1000 + 0x100 + number * 104;
    for (offset, word) in [0, 16, 48, 64, 72].into_iter().zip(words) {
        image.word(at + offset, word);
    }
}

fn put_stack(image: &mut Written, number: u64, contexts: u32, before: u64) -> u64 {
    let at = STACKS + number * 0x1000;
    image.word(at + 8, at + 0x100);
    image.word(at + 16, before);
    image.put(at + 32, &contexts.wrapping_sub(1).to_le_bytes());
    at
}

/// `checkout` below a block, a function without a name that C code has called, a text, a loop and a file that is loaded.
fn image(table: Table) -> Written {
    let (version, statement, contexts) = table;
    let mut image = Written::default();
    image.put(SYMBOLS, &[version]);
    image.word(SYMBOLS + 8, INTERPRETER);
    let shop = put_package(&mut image, table, 1, "Shop");
    let main = put_package(&mut image, table, 2, "main");
    let checkout = put_function(&mut image, 3, shop, "checkout", false);
    let nameless = put_function(&mut image, 5, main, "__ANON__", true);
    let lines = [11, 13, 28, 3, 33];
    let at: Vec<u64> = (0..)
        .zip(lines)
        .map(|(number, line)| put_statement(&mut image, number, line))
        .collect();
    image.word(INTERPRETER + statement, at[0]);
    let outer = put_stack(&mut image, 0, 3, 0);
    let inner = put_stack(&mut image, 1, 3, outer);
    image.word(INTERPRETER + contexts, inner);
    // Outermost first.
    put_context(&mut image, 0, 0, [EVAL, at[4], 8, 8, 0]);
    put_context(&mut image, 0, 1, [LOOP, at[4], 8, 0, 0]);
    put_context(&mut image, 0, 2, [EVAL, at[3], 8, 0, 0]);
    put_context(&mut image, 1, 0, [FUNCTION, at[2], 0, 0, nameless]);
    put_context(&mut image, 1, 1, [FUNCTION, at[1], 8, 0, checkout]);
    put_context(&mut image, 1, 2, [BLOCK_OF_EVAL, at[0], 8, 0, 0]);
    image
}

/// What is expected of it: name, line, and whether C code has called it.
const EXPECTED: [(&str, Option<u32>, bool); 5] = [
    ("Shop::checkout", Some(11), false),
    ("__ANON__", Some(13), true),
    ("(eval)", Some(28), false),
    ("require", Some(3), false),
    ("(main)", Some(33), true),
];

fn read(image: Written) -> Result<Vec<Interpreted>, Unread> {
    Interpreter::find(image, PLACE, MAIN).unwrap().frames(MAIN)
}

#[test]
fn each_layout_has_its_frames() {
    for table in [OLD, NEW] {
        let frames = read(image(table)).unwrap();
        assert_eq!(shown(&frames), EXPECTED, "{}", table.0);
        let file = Some("/srv/shop/prices.pl");
        assert!(frames.iter().all(|one| one.frame.file.as_deref() == file));
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let find = |image, place| Interpreter::find(image, place, MAIN).map(|_| ()).unwrap_err();
    let mut odd = image(NEW);
    odd.put(SYMBOLS, &[37]);
    assert_eq!(find(odd, PLACE), Refused::Unsupported(Version(37)));
    let threads = false;
    assert_eq!(
        find(image(NEW), Place { threads, ..PLACE }),
        Refused::WithoutThreads(Version(36))
    );
    let mut starting = image(NEW);
    starting.word(SYMBOLS + 8, 0);
    assert_eq!(find(starting, PLACE), Refused::NoInterpreter);
    assert_eq!(find(Written::default(), PLACE), Refused::Memory);
    assert_eq!(Place::of(&[Some(1), None, Some(2)]), None);
}

#[test]
fn other_threads_have_interpreters_of_their_own() {
    let mut interpreter = Interpreter::find(image(NEW), PLACE, MAIN).unwrap();
    assert_eq!(interpreter.frames(MAIN + 1), Err(Unread::NoThread));
    assert_eq!(interpreter.version(), Version(36));
}

#[test]
fn names_that_are_gone_are_left_out() {
    let names = |damage: &dyn Fn(&mut Written)| {
        let mut image = image(NEW);
        damage(&mut image);
        let frames = read(image).unwrap();
        frames[0].frame.symbol.clone().unwrap()
    };
    let (function, package) = (VALUES + 3 * 0x200, VALUES + 0x200);
    assert_eq!(names(&|image| image.word(function + 0x40 + 56, 0)), "__ANON__");
    assert_eq!(names(&|image| image.word(package + 0x40 + 32, 0)), "checkout");
    assert_eq!(
        names(&|image| image.put(package + 12, &12_u32.to_le_bytes())),
        "checkout"
    );
    let several = |image: &mut Written| {
        let name = TEXTS + 21 * 0x100;
        image.word(TEXTS + 0x8000, name);
        image.word(package + 0x40 + 32, TEXTS + 0x8000);
        image.put(package + 0x40 + 60, &2_u32.to_le_bytes());
    };
    assert_eq!(names(&several), "Shop::checkout");
}

#[test]
fn a_circle_is_an_error_and_deep_recursion_keeps_its_innermost_frames() {
    let mut circle = image(NEW);
    circle.word(STACKS + 16, STACKS + 0x1000);
    assert_eq!(read(circle), Err(Unread::Torn));
    let mut deep = image(NEW);
    put_stack(&mut deep, 1, 2000, 0);
    let checkout = VALUES + 3 * 0x200;
    for number in 0..2000 {
        put_context(&mut deep, 1, number, [FUNCTION, STATEMENTS, 8, 0, checkout]);
    }
    assert_eq!(read(deep).unwrap().len(), 512);
}

/// Damage of all kinds: whatever is read, it ends, and no frame is without a name.
#[test]
fn damaged_memory_is_no_panic_and_ends() {
    read_damaged(&[image(OLD), image(NEW)], 3, |image, _| {
        let found = Interpreter::find(image, PLACE, MAIN);
        let Ok(Ok(frames)) = found.map(|mut interpreter| interpreter.frames(MAIN)) else {
            return false;
        };
        assert!(frames.len() <= 513 && frames.iter().all(|one| one.frame.symbol.is_some()));
        true
    });
}

#[test]
fn files_and_the_function_that_runs_code_are_known_by_name() {
    for file in ["perl", "perl5.36.0", "libperl.so.5.36"] {
        assert!(may_be_in(file), "{file}");
    }
    assert!(!may_be_in("python3") && !may_be_in("libc.so.6"));
    assert!(evaluates("Perl_runops_standard") && evaluates("Perl_runops_standard.cold"));
    assert!(!evaluates("Perl_runops_debug") && !evaluates("perl_run"));
}
