//! Interpreters that a test has written down, whole and damaged.

use super::{Interpreter, Place, PythonFrame, Refused, Thread, Unread, Version, evaluates};
use crate::damage::read_damaged;
use crate::memory::Written;

const RUNTIME: u64 = 0x10_0000;
const INTERPRETER: u64 = 0x20_0000;
const THREAD: u64 = 0x30_0000;
const PTHREAD: u64 = 0x40_0000;
const FRAMES: u64 = 0x50_0000;
const CODES: u64 = 0x60_0000;
const TYPE: u64 = 0x70_0000;
const TEXTS: u64 = 0x80_0000;
const TID: u32 = 4711;
/// Where an interpreter points to its global lock, and a second thread.
const GLOBAL_LOCK: u64 = 0x200;
const OTHER: u64 = 0x30_8000;

/// Three functions, innermost first, and the lines that they stand at.
const FUNCTIONS: [(&str, u32); 3] = [("inner", 12), ("Middle.run", 22), ("<module>", 32)];

fn place(minor: u8) -> Place {
    Place {
        runtime: RUNTIME,
        number: None,
        named: Some(Version { major: 3, minor }),
    }
}

fn put_text(image: &mut Written, at: u64, (kind, ascii): (u32, u64), text: &str) {
    image.word(at + 16, text.len() as u64);
    // Compact, ASCII, one byte a character.
    image.put(at + 32, &((1_u32 | 8 | 16) << kind).to_le_bytes());
    image.put(at + ascii, text.as_bytes());
}

fn put_bytes(image: &mut Written, at: u64, bytes: &[u8]) {
    image.word(at + 16, bytes.len() as u64);
    image.put(at + 32, bytes);
}

/// A code object with its type and texts. `fields`: where file, name, table and first line are.
fn put_code(
    image: &mut Written,
    number: u64,
    fields: [u64; 4],
    text: (u32, u64),
    name: &str,
    first: u32,
    table: &[u8],
) -> u64 {
    let code = CODES + number * 0x1000;
    let [file_at, name_at, table_at, line_at] = fields;
    let texts = TEXTS + number * 0x1000;
    image.word(code + 8, TYPE);
    image.word(TYPE + 24, TYPE + 0x100);
    image.put(TYPE + 0x100, b"code\0");
    put_text(image, texts, text, "/srv/app.py");
    put_text(image, texts + 0x100, text, name);
    put_bytes(image, texts + 0x200, table);
    image.word(code + file_at, texts);
    image.word(code + name_at, texts + 0x100);
    image.word(code + table_at, texts + 0x200);
    image.put(code + line_at, &first.to_le_bytes());
    code
}

/// A thread of one interpreter, by where its state has the C library's handle of it.
fn put_thread(image: &mut Written, interpreters: u64, threads: u64, pthread: u64) {
    image.word(RUNTIME + interpreters, INTERPRETER);
    image.word(INTERPRETER, 0);
    image.word(INTERPRETER + threads, THREAD);
    image.word(THREAD + 8, 0);
    image.word(THREAD + 16, INTERPRETER);
    image.word(THREAD + pthread, PTHREAD);
    image.word(PTHREAD, PTHREAD);
    image.word(PTHREAD + 16, PTHREAD);
    image.put(PTHREAD + 720, &TID.to_le_bytes());
}

/// CPython 3.8.
fn old() -> Written {
    let mut image = Written::default();
    put_thread(&mut image, 32, 8, 176);
    image.word(THREAD + 24, FRAMES);
    for (number, (name, line)) in (0..).zip(FUNCTIONS) {
        let code = put_code(
            &mut image,
            number,
            [104, 112, 120, 40],
            (2, 48),
            name,
            line - 2,
            &[0, 1, 8, 1, 8, 1],
        );
        let frame = FRAMES + number * 0x200;
        let back = if number < 2 { frame + 0x200 } else { 0 };
        image.word(frame + 24, back);
        image.word(frame + 32, code);
        image.put(frame + 104, &10_u32.to_le_bytes());
    }
    image
}

/// A location table: the definition's line for two units, then a line further for eight and another one.
const LOCATIONS: [u8; 8] = [0xd1, 0, 0, 0xdf, 0, 0, 0xd8, 0];

/// CPython 3.11: the two inner functions share a call of the evaluation function.
fn newer() -> Written {
    let mut image = Written::default();
    put_thread(&mut image, 40, 16, 152);
    image.word(THREAD + 56, FRAMES - 0x100);
    image.word(FRAMES - 0x100 + 8, FRAMES);
    for (number, (name, line)) in (0..).zip(FUNCTIONS) {
        let code = put_code(
            &mut image,
            number,
            [112, 128, 136, 72],
            (2, 48),
            name,
            line - 1,
            &LOCATIONS,
        );
        // The name without its class is not what is wanted.
        image.word(code + 120, 0);
        let frame = FRAMES + number * 0x200;
        let back = if number < 2 { frame + 0x200 } else { 0 };
        image.word(frame + 48, back);
        image.word(frame + 32, code);
        image.word(frame + 56, code + 184 + 2 * 5);
        image.put(frame + 68, &[u8::from(number != 0)]);
    }
    image
}

/// A version that describes itself. The frame behind the second function is no function's.
fn described(minor: u8, free_threaded: bool) -> Written {
    let mut image = Written::default();
    image.put(RUNTIME, b"xdebugpy");
    let newest = usize::from(minor >= 14);
    let mut put = |word: usize, value: u64| image.word(RUNTIME + word as u64 * 8, value);
    put(14 + newest, GLOBAL_LOCK);
    for (word, value) in [(1, 0x40), (3, 0x50), (4, 0x48)] {
        put(14 + newest + word, value);
    }
    put(1, (3 << 24) | (u64::from(minor) << 16));
    put(2, u64::from(free_threaded));
    put(5, 2048);
    put(8, 0);
    put(9, 7344);
    let [thread, frame, code, object, kind, bytes, text] =
        [[19, 28, 34, 44, 46, 64, 67], [22, 31, 39, 50, 52, 74, 77]][newest];
    for (word, value) in [
        (thread + 2, 8),
        (thread + 3, 16),
        (thread + 4, 72),
        (thread + 5, 152),
        (thread + 6, 160),
        (frame + 1, 8),
        (frame + 2, 0),
        (frame + 3, 56),
        (frame + 5, 70),
        (code + 1, 112),
        (code + 2, 120),
        (code + 3, 128),
        (code + 4, 136),
        (code + 5, 68),
        (code + 9, 200),
        (object + 1, 8),
        (kind + 1, 24),
        (bytes + 1, 16),
        (bytes + 2, 32),
        (text + 1, 32),
        (text + 2, 16),
        (text + 3, 40),
    ] {
        put(word, value);
    }
    put_thread(&mut image, 2048, 7344, 152);
    image.word(THREAD + 72, FRAMES);
    let tag = newest as u64;
    let kind = if newest == 1 { 16 } else { 2 };
    let shim = FRAMES + 0x200;
    image.put(shim + 70, &[3 + newest as u8]);
    image.word(shim + 8, FRAMES + 0x400);
    for ((name, line), frame) in FUNCTIONS
        .into_iter()
        .zip([FRAMES, FRAMES + 0x400, FRAMES + 0x600])
    {
        let number = (frame - FRAMES) / 0x200;
        let code = put_code(
            &mut image,
            number,
            [112, 128, 136, 68],
            (kind, 40),
            name,
            line - 1,
            &LOCATIONS,
        );
        image.word(frame, code | tag);
        let back = if number < 3 { frame + 0x200 } else { 0 };
        image.word(frame + 8, back);
        image.word(frame + 56, code + 200 + 2 * 5);
    }
    image
}

fn read(image: Written, minor: u8) -> Result<Vec<PythonFrame>, Unread> {
    let found = Interpreter::find(image, place(minor));
    found.map_err(|_| Unread::Torn)?.frames(TID)
}

fn shown(frames: &[PythonFrame]) -> Vec<(&str, u32)> {
    let each = frames.iter().map(|one| {
        assert_eq!(one.frame.file.as_deref(), Some("/srv/app.py"));
        (one.frame.symbol.as_deref().unwrap(), one.frame.line.unwrap())
    });
    each.collect()
}

fn entries(frames: &[PythonFrame]) -> Vec<bool> {
    frames.iter().map(|one| one.entry).collect()
}

#[test]
fn frames_of_each_kind_of_version_have_function_file_and_line() {
    for (image, minor, entry) in [
        (old(), 8, [true, true, true]),
        (old(), 9, [true, true, true]),
        (newer(), 11, [false, true, true]),
        (described(13, false), 13, [true, false, false]),
        (described(13, true), 13, [true, false, false]),
        (described(14, false), 14, [true, false, false]),
    ] {
        let frames = read(image, minor).unwrap();
        assert_eq!(shown(&frames), FUNCTIONS, "3.{minor}");
        assert_eq!(entries(&frames), entry, "3.{minor}");
    }
}

/// The first thread has the global lock, `offset` bytes into the runtime's state, or where its interpreter points; there is a second one.
fn put_lock(image: &mut Written, offset: Option<u64>) -> u64 {
    let lock = offset.map_or(INTERPRETER + 0x1000, |offset| RUNTIME + offset);
    if offset.is_none() {
        image.word(INTERPRETER + GLOBAL_LOCK, lock);
    }
    image.word(lock + 8, THREAD);
    image.put(lock + 16, &1_u32.to_le_bytes());
    image.word(THREAD + 8, OTHER);
    image.word(OTHER + 8, 0);
    image.word(OTHER + 16, INTERPRETER);
    lock
}

#[test]
fn who_has_the_global_lock_is_read_with_its_frames() {
    for (image, minor, offset) in [
        (old(), 8, Some(1152)),
        (old(), 9, Some(352)),
        (newer(), 11, Some(360)),
        (described(13, false), 13, None),
        (described(14, false), 14, None),
    ] {
        let mut image = image;
        let alone = Interpreter::find(image.clone(), place(minor)).unwrap().holder();
        assert_eq!(alone, Err(Unread::NoThread), "nobody waits for it");
        let lock = put_lock(&mut image, offset);
        let holder = |image: &Written| Interpreter::find(image.clone(), place(minor)).unwrap().holder();
        let held = holder(&image).unwrap().unwrap();
        assert_eq!(
            (held.tid, shown(&held.frames)),
            (TID, FUNCTIONS.to_vec()),
            "3.{minor}"
        );
        image.put(lock + 16, &0_u32.to_le_bytes());
        assert_eq!(holder(&image), Ok(None), "3.{minor}");
        image.put(lock + 16, &1_u32.to_le_bytes());
        image.word(lock + 8, FRAMES);
        assert_eq!(holder(&image), Err(Unread::Torn), "3.{minor}: that is no thread");
    }
}

#[test]
fn a_frame_that_has_not_begun_stands_at_its_definition() {
    let mut image = old();
    image.put(FRAMES + 104, &(-1_i32).to_le_bytes());
    assert_eq!(read(image, 8).unwrap()[0].frame.line, Some(10));
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let version = |minor| Version { major: 3, minor };
    let refused = |image: Written, place| Interpreter::find(image, place).map(|_| ()).unwrap_err();
    let unnamed = Place {
        named: None,
        ..place(8)
    };
    assert_eq!(refused(old(), unnamed), Refused::NoVersion);
    assert_eq!(refused(old(), place(7)), Refused::Unsupported(version(7)));
    assert_eq!(refused(old(), place(11)), Refused::NoThreads(version(11)));
    let mut other = old();
    other.word(RUNTIME + 40, INTERPRETER);
    other.word(INTERPRETER + 16, FRAMES);
    assert_eq!(refused(other, place(11)), Refused::Implausible(version(11)));
    assert_eq!(
        refused(described(14, true), place(14)),
        Refused::FreeThreaded(version(14))
    );
    assert_eq!(
        refused(described(15, false), place(15)),
        Refused::Unsupported(version(15))
    );
    assert_eq!(refused(Written::default(), place(8)), Refused::Memory);
    let mut wild = described(13, false);
    wild.word(RUNTIME + 9 * 8, u64::MAX - 7);
    assert_eq!(refused(wild, place(13)), Refused::Implausible(version(13)));
}

#[test]
fn the_number_of_the_version_counts_more_than_the_files_name() {
    let mut image = newer();
    image.word(TEXTS + 0x9000, 0x030b_07f0);
    let place = Place {
        number: Some(TEXTS + 0x9000),
        ..place(8)
    };
    let mut interpreter = Interpreter::find(image, place).unwrap();
    assert_eq!(interpreter.version(), Version { major: 3, minor: 11 });
    assert_eq!(shown(&interpreter.frames(TID).unwrap()), FUNCTIONS);
}

#[test]
fn another_thread_has_no_frames_and_a_circle_is_an_error() {
    let mut interpreter = Interpreter::find(old(), place(8)).unwrap();
    assert_eq!(interpreter.frames(TID + 1), Err(Unread::NoThread));
    let mut circle = old();
    circle.word(FRAMES + 2 * 0x200 + 24, FRAMES);
    assert_eq!(read(circle, 8), Err(Unread::Torn));
    let mut threads = old();
    threads.word(THREAD + 8, THREAD);
    assert_eq!(
        Interpreter::find(threads, place(8)).map(|_| ()).unwrap_err(),
        Refused::Implausible(Version { major: 3, minor: 8 })
    );
}

#[test]
fn a_thread_that_was_found_has_frames_unless_its_state_is_anothers_by_now() {
    let mut interpreter = Interpreter::find(old(), place(8)).unwrap();
    let (tid, state) = (TID, THREAD);
    assert_eq!(interpreter.threads(), Ok(vec![Thread { tid, state }]));
    let frames = interpreter.frames_of(Thread { tid, state }).unwrap();
    assert_eq!(shown(&frames), FUNCTIONS);
    let tid = TID + 1;
    assert_eq!(
        interpreter.frames_of(Thread { tid, state }),
        Err(Unread::NoThread)
    );
}

#[test]
fn the_kernels_number_is_taken_where_the_c_library_has_none() {
    let mut image = newer();
    image.word(PTHREAD, 0);
    image.word(THREAD + 160, u64::from(TID));
    assert_eq!(shown(&read(image, 11).unwrap()), FUNCTIONS);
    // musl keeps it elsewhere, and has one pointer to itself.
    let mut musl = old();
    musl.word(PTHREAD + 16, 0);
    musl.put(PTHREAD + 720, &[0; 4]);
    musl.put(PTHREAD + 48, &TID.to_le_bytes());
    assert_eq!(shown(&read(musl, 8).unwrap()), FUNCTIONS);
}

#[test]
fn long_names_are_cut_and_other_alphabets_are_read() {
    let mut image = old();
    image.word(TEXTS + 0x100 + 16, 1 << 31);
    for page in 0..2 {
        image.put(TEXTS + 0x400 + page * 0x400, &[b'x'; 0x400]);
    }
    let name = read(image, 8).unwrap()[0].frame.symbol.clone().unwrap();
    assert_eq!(name.chars().count(), 1024);
    let mut image = old();
    let name = "écoute_файл".encode_utf16().flat_map(u16::to_le_bytes);
    image.word(TEXTS + 0x100 + 16, 11);
    image.put(TEXTS + 0x100 + 32, &((2_u32 | 8) << 2).to_le_bytes());
    image.put(TEXTS + 0x100 + 72, &name.collect::<Vec<u8>>());
    assert_eq!(
        read(image, 8).unwrap()[0].frame.symbol.as_deref(),
        Some("écoute_файл")
    );
}

#[test]
fn deep_recursion_keeps_its_innermost_frames() {
    let mut image = old();
    let code = CODES;
    for number in 0..2000 {
        let frame = FRAMES + 0x1000 + number * 0x80;
        image.word(frame + 24, frame + 0x80);
        image.word(frame + 32, code);
        image.put(frame + 104, &10_u32.to_le_bytes());
    }
    image.word(THREAD + 24, FRAMES + 0x1000);
    assert_eq!(read(image, 8).unwrap().len(), 512);
}

/// Damage of all kinds: whatever is read, it ends, and no frame is without a name.
#[test]
fn damaged_memory_is_no_panic_and_ends() {
    let minors = [8, 11, 13, 14];
    let mut images = [old(), newer(), described(13, false), described(14, false)];
    for (image, offset) in images.iter_mut().zip([Some(1152), Some(360), None, None]) {
        put_lock(image, offset);
    }
    read_damaged(&images, 3, |image, index| {
        if let Ok(mut interpreter) = Interpreter::find(image.clone(), place(minors[index])) {
            let held = interpreter.holder().ok().flatten();
            assert!(held.is_none_or(|held| held.frames.len() <= 512));
        }
        let Ok(frames) = read(image, minors[index]) else {
            return false;
        };
        assert!(frames.len() <= 512 && frames.iter().all(|one| one.frame.symbol.is_some()));
        true
    });
}

#[test]
fn the_evaluation_function_is_known_by_its_name() {
    assert!(evaluates("_PyEval_EvalFrameDefault"));
    assert!(evaluates("_PyEval_EvalFrameDefault.cold"));
    assert!(!evaluates("PyEval_EvalCode") && !evaluates("_PyEval_EvalFrameDefaultX"));
}
