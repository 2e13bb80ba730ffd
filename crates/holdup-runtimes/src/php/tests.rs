//! PHPs that a test has written down, whole and damaged.

use super::{Interpreter, Place, Refused, Version, evaluates, may_be_in};
use crate::damage::read_damaged;
use crate::interpreted::{Interpreted, Unread, shown};
use crate::memory::Written;

const MODULES: u64 = 0x10_0000;
const RUNNING: u64 = 0x20_0000;
const CALLS: u64 = 0x30_0000;
const FUNCTIONS: u64 = 0x40_0000;
const TEXTS: u64 = 0x50_0000;
const INSTRUCTIONS: u64 = 0x60_0000;
const CLASS: u64 = 0x70_0000;
const MAIN: u32 = 4711;

/// The flag of a call that C code makes.
const FROM_C: u32 = 1 << 17;

const PLACE: Place = Place {
    modules: MODULES,
    running: Some(RUNNING),
};

/// Version, interface, and where the innermost call, files, instructions, a generator's own call, its parent and its stand-in are.
type Table = ((u8, u8), u32, [u64; 6]);

const OLD: Table = ((7, 4), 20_190_902, [488, 136, 64, 64, 160, 200]);
const NEW: Table = ((8, 2), 20_220_829, [488, 152, 88, 56, 152, 184]);
const NEWEST: Table = ((8, 5), 20_250_925, [512, 168, 104, 56, 152, 184]);

fn put_text(image: &mut Written, number: u64, text: &str) -> u64 {
    let at = TEXTS + number * 0x200;
    image.put(at + 4, &0x56_u32.to_le_bytes());
    image.word(at + 16, text.len() as u64);
    image.put(at + 24, text.as_bytes());
    at
}

fn put_modules(image: &mut Written, version: &str, interface: u32, built: [u8; 2]) {
    let (entries, module) = (MODULES + 0x100, MODULES + 0x200);
    image.word(MODULES + 16, entries);
    image.put(MODULES + 24, &14_u32.to_le_bytes());
    image.word(entries, module);
    image.put(module + 4, &interface.to_le_bytes());
    image.put(module + 8, &built);
    image.word(module + 88, MODULES + 0x300);
    image.put(MODULES + 0x300, version.as_bytes());
}

/// A call of a function of a script, or of C (without a line).
struct Called {
    name: Option<&'static str>,
    class: bool,
    line: Option<u32>,
    flags: u32,
}

fn called(name: Option<&'static str>, class: bool, line: Option<u32>, flags: u32) -> Called {
    Called {
        name,
        class,
        line,
        flags,
    }
}

/// A call, its function, and its caller behind it.
fn put_call(image: &mut Written, table: Table, number: u64, one: &Called, last: bool) {
    let (_, _, [_, file, instructions, ..]) = table;
    let call = CALLS + number * 0x100;
    let function = FUNCTIONS + number * 0x100;
    let instruction = INSTRUCTIONS + number * 0x400;
    image.word(call + 24, function);
    image.put(call + 40, &one.flags.to_le_bytes());
    image.word(call + 48, if last { 0 } else { call + 0x100 });
    image.put(function, &[if one.line.is_some() { 2 } else { 1 }]);
    if let Some(name) = one.name {
        let name = put_text(image, number * 2 + 2, name);
        image.word(function + 8, name);
    }
    if one.class {
        image.word(function + 16, CLASS);
    }
    if let Some(line) = one.line {
        let path = put_text(image, 0, "/srv/shop/prices.php");
        image.word(function + file, path);
        image.word(function + instructions, instruction);
        image.word(call, instruction + 64);
        image.put(instruction + 64 + 24, &line.to_le_bytes());
    }
}

/// `sleep` below a method, a closure, a function that C has called, and the script.
fn image(table: Table) -> Written {
    let ((major, minor), interface, [current, ..]) = table;
    let mut image = Written::default();
    let text = format!("{major}.{minor}.36-1~deb12u1\0");
    put_modules(&mut image, &text, interface, [0, 0]);
    image.word(RUNNING + current, CALLS);
    let class = put_text(&mut image, 1, "App\\Shop");
    image.word(CLASS + 8, class);
    let calls = [
        called(Some("sleep"), false, None, 0),
        called(Some("checkout"), true, Some(8), 0),
        called(Some("App\\{closure}"), true, Some(10), FROM_C),
        called(Some("array_map"), false, None, 0),
        called(Some("App\\work"), false, Some(27), 0),
        called(None, false, Some(29), FROM_C),
    ];
    let last = calls.len() - 1;
    for (number, one) in calls.iter().enumerate() {
        put_call(&mut image, table, number as u64, one, number == last);
    }
    image
}

/// What is expected of it: name, line, and whether C code has called it.
const EXPECTED: [(&str, Option<u32>, bool); 6] = [
    ("sleep", None, false),
    ("App\\Shop::checkout", Some(8), false),
    ("App\\Shop::{closure}", Some(10), true),
    ("array_map", None, false),
    ("App\\work", Some(27), false),
    ("{main}", Some(29), true),
];

fn read(image: Written) -> Result<Vec<Interpreted>, Unread> {
    Interpreter::find(image, PLACE, MAIN).unwrap().frames(MAIN)
}

#[test]
fn each_layout_has_its_frames() {
    for table in [OLD, NEW, NEWEST] {
        let frames = read(image(table)).unwrap();
        assert_eq!(shown(&frames), EXPECTED, "{:?}", table.0);
        for one in &frames {
            let file = one.frame.line.map(|_| "/srv/shop/prices.php");
            assert_eq!(one.frame.file.as_deref(), file);
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let refused = |version: &str, interface, built| {
        let mut image = image(NEW);
        put_modules(&mut image, version, interface, built);
        Interpreter::find(image, PLACE, MAIN).map(|_| ()).unwrap_err()
    };
    let version = |major, minor| Version { major, minor };
    let (_, interface, _) = NEW;
    assert_eq!(
        refused("8.2.0\0", interface, [0, 1]),
        Refused::ThreadSafe(version(8, 2))
    );
    assert_eq!(
        refused("8.2.0\0", interface, [1, 0]),
        Refused::DebugBuild(version(8, 2))
    );
    assert_eq!(
        refused("8.2.0\0", interface, [7, 0]),
        Refused::Implausible(version(8, 2))
    );
    assert_eq!(
        refused("8.6.0\0", 20_260_925, [0, 0]),
        Refused::Unsupported(version(8, 6))
    );
    assert_eq!(
        refused("7.3.9\0", 20_180_731, [0, 0]),
        Refused::Unsupported(version(7, 3))
    );
    assert_eq!(refused("dev\0", 1, [0, 0]), Refused::NoVersion);
    assert_eq!(refused("4.6.0\0", 20_260_925, [0, 0]), Refused::NoVersion);
    let mut early = image(NEW);
    put_modules(&mut early, "4.2.36\0", interface, [0, 0]);
    let frames = Interpreter::find(early, PLACE, MAIN).unwrap().frames(MAIN);
    assert_eq!(
        shown(&frames.unwrap()),
        EXPECTED,
        "the text is of the engine so far"
    );
    let find = |image, place| Interpreter::find(image, place, MAIN).map(|_| ()).unwrap_err();
    let mut starting = image(NEW);
    starting.put(MODULES + 24, &[0; 4]);
    assert_eq!(find(starting, PLACE), Refused::NoModules);
    assert_eq!(find(Written::default(), PLACE), Refused::Memory);
    let threads = Place {
        running: None,
        ..PLACE
    };
    assert_eq!(find(image(NEW), threads), Refused::Implausible(version(8, 2)));
}

#[test]
fn only_the_main_thread_runs_scripts_and_without_one_it_has_no_frames() {
    let mut interpreter = Interpreter::find(image(NEW), PLACE, MAIN).unwrap();
    assert_eq!(interpreter.frames(MAIN + 1), Err(Unread::NoThread));
    assert_eq!(interpreter.version(), Version { major: 8, minor: 2 });
    let mut idle = image(NEW);
    idle.word(RUNNING + 488, 0);
    assert_eq!(read(idle), Ok(Vec::new()));
}

#[test]
fn generators_that_delegate_stand_behind_the_one_that_runs() {
    for table in [OLD, NEW] {
        let (_, _, [.., own_call, parent, stand_in]) = table;
        let mut image = image(table);
        // `checkout` is a generator that two others wait for: the outer one has called for it.
        let (outer, inner, root) = (0x80_0000, 0x80_1000, 0x80_2000);
        let class = put_text(&mut image, 40, "Generator");
        image.word(0x81_0000 + 8, class);
        image.word(outer + 16, 0x81_0000);
        image.word(root + parent, 0);
        for (generator, its_parent, call) in [(outer, inner, 20), (inner, root, 21)] {
            image.word(generator + parent, its_parent);
            image.word(generator + own_call, CALLS + call * 0x100);
        }
        put_call(
            &mut image,
            table,
            20,
            &called(Some("outer"), false, Some(40), FROM_C),
            true,
        );
        put_call(
            &mut image,
            table,
            21,
            &called(Some("inner"), false, Some(41), FROM_C),
            true,
        );
        let fake = outer + stand_in;
        image.word(CALLS + 0x100 + 48, fake);
        image.word(fake + 32, outer);
        image.word(fake + 48, CALLS + 0x200);
        let frames = read(image.clone()).unwrap();
        let names = shown(&frames)
            .into_iter()
            .map(|(name, ..)| name)
            .collect::<Vec<&str>>();
        assert_eq!(
            names[1..5],
            ["App\\Shop::checkout", "inner", "outer", "App\\Shop::{closure}"]
        );
        let mut circle = image.clone();
        circle.word(root + parent, outer);
        assert_eq!(read(circle), Err(Unread::Torn));
        // Another object's stand-in stands for nobody.
        image.word(outer + 16, CLASS);
        assert_eq!(read(image).unwrap().len(), EXPECTED.len());
    }
}

#[test]
fn a_script_without_a_function_is_called_as_it_was_included() {
    let includes = |kind: u8, about: u32| {
        let mut image = image(NEW);
        image.word(FUNCTIONS + 0x100 + 8, 0);
        image.word(FUNCTIONS + 0x100 + 16, 0);
        let instruction = INSTRUCTIONS + 2 * 0x400 + 64;
        image.put(instruction + 28, &[kind]);
        image.put(instruction + 20, &about.to_le_bytes());
        let frames = read(image).unwrap();
        frames[1].frame.symbol.clone().unwrap()
    };
    assert_eq!(includes(73, 16), "require_once");
    assert_eq!(includes(73, 1), "eval");
    assert_eq!(includes(60, 1), "{main}");
}

#[test]
fn names_are_those_that_php_gives() {
    let named = |name: &str| {
        let mut image = image(NEW);
        put_text(&mut image, 2 * 2, name);
        read(image).unwrap()[1].frame.symbol.clone().unwrap()
    };
    assert_eq!(named("{closure}"), "App\\Shop::{closure}");
    assert_eq!(
        named("{closure:App\\Shop::pay():5}"),
        "{closure:App\\Shop::pay():5}"
    );
    assert_eq!(named("écoute"), "App\\Shop::écoute");
    let long = "x".repeat(400);
    let mut image = image(NEW);
    put_text(&mut image, 4, &long);
    image.word(TEXTS + 4 * 0x200 + 16, u64::MAX);
    assert!(read(image).unwrap()[1].frame.symbol.as_ref().unwrap().len() < 1100);
}

#[test]
fn an_instruction_that_is_not_the_functions_has_no_line() {
    let mut image = image(NEW);
    image.word(CALLS + 0x100, RUNNING);
    assert_eq!(
        shown(&read(image).unwrap())[1],
        ("App\\Shop::checkout", None, false)
    );
}

#[test]
fn a_circle_is_an_error_and_deep_recursion_keeps_its_innermost_frames() {
    let mut circle = image(NEW);
    circle.word(CALLS + 5 * 0x100 + 48, CALLS);
    assert_eq!(read(circle), Err(Unread::Torn));
    let mut deep = image(NEW);
    for number in 0..2000 {
        let call = 0x90_0000 + number * 0x80;
        deep.word(call + 24, FUNCTIONS);
        deep.word(call + 48, call + 0x80);
    }
    deep.word(RUNNING + 488, 0x90_0000);
    assert_eq!(read(deep).unwrap().len(), 512);
}

/// Damage of all kinds: whatever is read, it ends, and no frame is without a name.
#[test]
fn damaged_memory_is_no_panic_and_ends() {
    read_damaged(&[image(OLD), image(NEW), image(NEWEST)], 3, |image, _| {
        let found = Interpreter::find(image, PLACE, MAIN);
        let Ok(Ok(frames)) = found.map(|mut interpreter| interpreter.frames(MAIN)) else {
            return false;
        };
        assert!(frames.len() <= 512 && frames.iter().all(|one| one.frame.symbol.is_some()));
        true
    });
}

#[test]
fn files_and_the_function_that_runs_scripts_are_known_by_name() {
    for file in ["php", "php8.2", "php-fpm8.2", "php-cgi", "libphp8.2.so"] {
        assert!(may_be_in(file), "{file}");
    }
    assert!(!may_be_in("python3") && !may_be_in("libc.so.6"));
    assert!(evaluates("execute_ex") && evaluates("execute_ex.cold"));
    assert!(!evaluates("dtrace_execute_ex") && !evaluates("zend_execute"));
}
