//! Engines that a test has written down, whole and damaged.

use super::{Caller, Engine, Refused, SYMBOLS, Stack, Version, Walk};
use crate::memory::Written;
use holdup_evidence::{Frame, Language};
use std::collections::HashMap;
use std::sync::Arc;

const CONSTANTS: u64 = 0x10_0000;
const MAPS: u64 = 0x20_0000;
const HEAP: u64 = 0x30_0000;
const STACK: u64 = 0x7fff_0000;

const FUNCTION: u16 = 2065;
const SHARED: u16 = 262;
const SCRIPT: u16 = 167;
const SCOPE: u16 = 261;
const BYTECODE: u16 = 191;
const ARRAY: u16 = 175;
const ONE_BYTE: u16 = 8;
const TWO_BYTE: u16 = 0;
const CONS: u16 = 9;
const SLICED: u16 = 11;
const THIN: u16 = 13;
const EXTERNAL: u16 = 10;

/// The source of the program: `prices` begins on line 2, its call is on line 3.
const SOURCE: &str = "// shop\r\nfunction prices() {\n  return wait();\n}\nprices();\n";

/// Constants of a version, as its file has them.
fn constants(version: (i32, i32)) -> HashMap<&'static str, i32> {
    let (major, minor) = version;
    let (shared, name, script, data, first) = match major {
        13 => (32, 24, 40, 64, 5),
        12 => (32, 16, 32, 64, 3),
        _ => (24, 16, 32, 54, 3),
    };
    let (named, scripted) = match major {
        13 => ("Tagged_NameOrScopeInfoT_", "script__Tagged_HeapObject_"),
        12 => ("Tagged_Object_", "script__Tagged_HeapObject_"),
        _ => ("Object", "script_or_debug_info__HeapObject"),
    };
    let mut all = HashMap::from([
        (SYMBOLS[0], major),
        (SYMBOLS[1], minor),
        ("v8dbg_HeapObjectTag", 1),
        ("v8dbg_TaggedSize", 8),
        ("v8dbg_SmiShiftSize", 31),
        ("v8dbg_SmiValueShift", 1),
        ("v8dbg_off_fp_function", -16),
        ("v8dbg_off_fp_context_or_frame_type", -8),
        ("v8dbg_off_fp_bytecode_array", -32),
        ("v8dbg_off_fp_bytecode_offset", -40),
        ("v8dbg_frametype_EntryFrame", 1),
        ("v8dbg_frametype_ConstructEntryFrame", 2),
        ("v8dbg_class_Map__instance_type__uint16_t", 12),
        ("v8dbg_class_JSFunction__shared__SharedFunctionInfo", shared),
        (
            "v8dbg_class_SharedFunctionInfo__raw_function_token_offset__int16_t",
            48,
        ),
        ("v8dbg_class_Script__source__Object", 8),
        ("v8dbg_class_Script__name__Object", 16),
        ("v8dbg_class_Script__line_ends__Object", 56),
        ("v8dbg_class_String__length__int32_t", 12),
        ("v8dbg_class_SeqOneByteString__chars__char", 16),
        ("v8dbg_class_SeqTwoByteString__chars__char", 16),
        ("v8dbg_class_ConsString__first__String", 16),
        ("v8dbg_class_ConsString__second__String", 24),
        ("v8dbg_class_SlicedString__parent__String", 16),
        ("v8dbg_class_SlicedString__offset__SMI", 24),
        ("v8dbg_class_ThinString__actual__String", 16),
        ("v8dbg_class_FixedArrayBase__length__SMI", 8),
        ("v8dbg_class_FixedArray__data__uintptr_t", 16),
        ("v8dbg_class_BytecodeArray__data__uintptr_t", data),
        ("v8dbg_scopeinfo_idx_ncontextlocals", 2),
        ("v8dbg_scopeinfo_idx_first_vars", first),
        ("v8dbg_FirstNonstringType", 128),
        ("v8dbg_StringRepresentationMask", 7),
        ("v8dbg_StringEncodingMask", 8),
        ("v8dbg_OneByteStringTag", 8),
        ("v8dbg_SeqStringTag", 0),
        ("v8dbg_ConsStringTag", 1),
        ("v8dbg_SlicedStringTag", 3),
        ("v8dbg_ThinStringTag", 5),
        (
            "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
            SHARED.into(),
        ),
        ("v8dbg_type_Script__SCRIPT_TYPE", SCRIPT.into()),
        ("v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", SCOPE.into()),
        ("v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", BYTECODE.into()),
        ("v8dbg_type_FixedArray__FIXED_ARRAY_TYPE", ARRAY.into()),
    ]);
    for (symbol, value) in [
        (format!("name_or_scope_info__{named}"), name),
        (scripted.to_owned(), script),
    ] {
        let symbol = format!("v8dbg_class_SharedFunctionInfo__{symbol}");
        let known = SYMBOLS.iter().find(|known| **known == symbol).unwrap();
        all.insert(known, value);
    }
    if major >= 12 {
        all.insert("v8dbg_class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_", 16);
    }
    all
}

/// Memory of a process, and a stack in it.
#[derive(Clone)]
struct Image {
    written: Written,
    constants: HashMap<&'static str, i32>,
    next: u64,
    stack: Vec<u8>,
}

fn small(number: u64) -> u64 {
    number << 32
}

impl Image {
    fn new(version: (i32, i32)) -> Image {
        Image {
            written: Written::default(),
            constants: constants(version),
            next: HEAP,
            stack: vec![0; 4096],
        }
    }

    /// A new object of a type; its reference.
    fn object(&mut self, kind: u16, bytes: u64) -> u64 {
        let map = MAPS + u64::from(kind) * 64;
        self.written.put(map + 12, &kind.to_le_bytes());
        let object = self.next;
        self.next += bytes.next_multiple_of(8) + 64;
        self.written.word(object, map + 1);
        object + 1
    }

    fn set(&mut self, object: u64, offset: i32, word: u64) {
        self.written
            .word(object - 1 + u64::try_from(offset).unwrap(), word);
    }

    fn text(&mut self, text: &str) -> u64 {
        let string = self.string(ONE_BYTE, text.len(), text.len() as u64);
        self.written.put(string + 15, text.as_bytes());
        string
    }

    fn string(&mut self, kind: u16, length: usize, bytes: u64) -> u64 {
        let string = self.object(kind, 32 + bytes);
        let length = u32::try_from(length).unwrap();
        self.written.put(string + 11, &length.to_le_bytes());
        string
    }

    fn script(&mut self, name: u64, source: u64) -> u64 {
        let script = self.object(SCRIPT, 64);
        self.set(script, 8, source);
        self.set(script, 16, name);
        script
    }

    /// What all closures share. `positions`: where it begins and ends.
    fn shared(&mut self, script: u64, names: [u64; 2], locals: &[u64], positions: [u64; 2]) -> u64 {
        let scope = self.object(SCOPE, 256 + 16 * locals.len() as u64);
        let mut words = vec![small(1), 0, small(locals.len() as u64)];
        let positions = positions.map(small);
        let early = self.constants[SYMBOLS[0]] >= 13;
        if early {
            words.extend(positions);
        }
        words.extend(locals);
        words.extend(locals.iter().map(|_| small(18)));
        words.extend([names[0], small(u64::from(u32::MAX)), names[1]]);
        if !early {
            words.extend(positions);
        }
        for (word, at) in words.into_iter().zip(1..) {
            self.set(scope, at * 8, word);
        }
        let shared = self.object(SHARED, 64);
        let of = |name: &str, constants: &HashMap<&str, i32>| {
            let mut all = constants.iter();
            let found = all.find(|(symbol, _)| symbol.contains(&format!("SharedFunctionInfo__{name}")));
            *found.unwrap().1
        };
        let (name_at, script_at) = (of("name_or", &self.constants), of("script", &self.constants));
        self.set(shared, name_at, scope);
        self.set(shared, script_at, script);
        self.written.put(shared + 47, &9_u16.to_le_bytes());
        shared
    }

    fn closure(&mut self, shared: u64) -> u64 {
        let closure = self.object(FUNCTION, 64);
        let at = self.constants["v8dbg_class_JSFunction__shared__SharedFunctionInfo"];
        self.set(closure, at, shared);
        closure
    }

    fn bytecode(&mut self, positions: &[u8]) -> u64 {
        let table = self.object(200, 16 + positions.len() as u64);
        self.set(table, 8, small(positions.len() as u64));
        self.written.put(table + 15, positions);
        let bytecode = self.object(BYTECODE, 128);
        let at = if self.constants[SYMBOLS[0]] >= 12 { 24 } else { 32 };
        self.set(bytecode, at, table);
        bytecode
    }

    fn put(&mut self, at: u64, word: u64) {
        let at = usize::try_from(at - STACK).unwrap();
        self.stack[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// A frame whose pointer is `frame`, with the words below it, nearest first.
    fn frame(&mut self, frame: u64, above: u64, below: &[u64]) {
        self.put(frame, above);
        self.put(frame + 8, 0x1234_0000 + (frame - STACK));
        for (word, at) in below.iter().zip(1..) {
            self.put(frame - 8 * at, *word);
        }
    }

    fn engine(&mut self) -> Result<Engine<Written>, Refused> {
        let mut addresses = Vec::new();
        for (symbol, at) in SYMBOLS.iter().zip(0..) {
            let address = CONSTANTS + at * 4;
            addresses.push(match self.constants.get(symbol) {
                Some(value) => {
                    self.written.put(address, &value.to_le_bytes());
                    address
                }
                None => 0,
            });
        }
        Engine::find(self.written.clone(), &addresses)
    }

    fn walk(&mut self, frame: u64) -> Option<Walk> {
        let stack = self.stack.clone();
        let stack = Stack {
            start: STACK,
            bytes: &stack,
        };
        self.engine().unwrap().walk(frame, stack)
    }
}

/// A stub, `prices` where it calls, the program where it is compiled, and the entry from native code.
fn shop(version: (i32, i32)) -> Image {
    let mut image = Image::new(version);
    let name = image.text("file:///srv/shop/prices.js");
    let source = image.text(SOURCE);
    let script = image.script(name, source);
    let (prices, empty) = (image.text("prices"), image.text(""));
    let local = image.text("cart");
    // The token `function` is nine characters before the position at which its scope begins.
    let inner = image.shared(script, [prices, empty], &[local], [9 + 9, 45]);
    let outer = image.shared(script, [empty, empty], &[], [0, 60]);
    let (inner, outer) = (image.closure(inner), image.closure(outer));
    let context = image.object(300, 16);
    // Position 40, at offset 3 of the bytecode: on the third line.
    let bytecode = image.bytecode(&[0, 20, 6, 0x90, 1]);
    let data = u64::try_from(image.constants["v8dbg_class_BytecodeArray__data__uintptr_t"]).unwrap();
    image.frame(STACK + 0x100, STACK + 0x200, &[3 << 1, 0]);
    let offset = small(data - 1 + 4);
    image.frame(
        STACK + 0x200,
        STACK + 0x300,
        &[context, inner, 0, bytecode, offset],
    );
    image.frame(STACK + 0x300, STACK + 0x400, &[context, outer, 0, 0, 0]);
    image.frame(STACK + 0x400, STACK + 0x500, &[1 << 1]);
    image
}

fn frame(symbol: &str, line: Option<u32>) -> Arc<Frame> {
    Arc::new(Frame {
        symbol: Some(symbol.to_owned()),
        file: Some("/srv/shop/prices.js".to_owned()),
        line,
        language: Language::JavaScript,
        ..Frame::default()
    })
}

const VERSIONS: [(i32, i32); 4] = [(10, 2), (11, 3), (12, 4), (13, 6)];

#[test]
fn frames_of_all_versions_are_read_up_to_the_entry_from_native_code() {
    for version in VERSIONS {
        let walk = shop(version).walk(STACK + 0x100).unwrap();
        // Of compiled code it is not known on which of its lines it is.
        let frames = [frame("prices", Some(3)), frame("(anonymous)", None)];
        assert_eq!(walk.frames, frames, "{version:?}");
        let caller = Caller {
            ip: 0x1234_0400,
            sp: STACK + 0x410,
            frame: STACK + 0x500,
        };
        assert_eq!(walk.caller, Some(caller), "{version:?}");
    }
}

#[test]
fn what_is_no_frame_of_the_engine_is_left_to_the_walker() {
    let mut image = shop((11, 3));
    for at in [
        0,
        STACK - 8,
        STACK,
        STACK + 0x108,
        STACK + 0x500,
        STACK + 4092,
        u64::MAX - 3,
    ] {
        assert_eq!(image.walk(at), None, "{at:#x}");
    }
    // Where the copy of the stack ends, so does the walk.
    image.stack.truncate(0x300);
    let walk = image.walk(STACK + 0x100).unwrap();
    assert_eq!((walk.frames.len(), walk.caller), (1, None));
}

#[test]
fn frames_in_a_circle_end() {
    let mut image = shop((11, 3));
    image.put(STACK + 0x300, STACK + 0x200);
    let walk = image.walk(STACK + 0x100).unwrap();
    assert_eq!((walk.frames.len(), walk.caller), (2, None));
}

#[test]
fn a_function_that_was_moved_or_given_up_has_no_frame() {
    let mut image = shop((11, 3));
    let mut walked = |word: u64| {
        image.put(STACK + 0x200 - 16, word);
        image.walk(STACK + 0x100).map(|walk| walk.frames.len())
    };
    // What lies there is another object, a number, nothing, or beyond all memory.
    for word in [HEAP + 1, small(7), 0, 0x5555_0001, u64::MAX - 2] {
        assert_eq!(walked(word), Some(0), "{word:#x}");
    }
}

#[test]
fn names_and_sources_are_whatever_kinds_of_strings_they_are() {
    let mut image = Image::new((12, 4));
    let [first, second] = ["/srv/sh", "op/prices.js!"].map(|text| image.text(text));
    let sliced = image.string(SLICED, 12, 0);
    image.set(sliced, 16, second);
    image.set(sliced, 24, 0);
    let cons = image.string(CONS, 19, 0);
    image.set(cons, 16, first);
    image.set(cons, 24, sliced);
    let thin = image.string(THIN, 19, 0);
    image.set(thin, 16, cons);
    let source = image.string(TWO_BYTE, 5, 10);
    for (unit, at) in "a\u{2028}b\nc".encode_utf16().zip(0..) {
        image.written.put(source + 15 + at * 2, &unit.to_le_bytes());
    }
    let script = image.script(thin, source);
    let (empty, inferred) = (image.text(""), image.text("Shop.open"));
    let shared = image.shared(script, [empty, inferred], &[], [4 + 9, 5]);
    let closure = image.closure(shared);
    let context = image.object(300, 16);
    image.frame(STACK + 0x200, STACK + 0x300, &[context, closure]);
    let walk = image.walk(STACK + 0x200).unwrap();
    assert_eq!(walk.frames, [frame("Shop.open", Some(3))]);
    // Source outside of the heap is not read.
    let outside = image.string(EXTERNAL, 5, 10);
    image.set(script, 8, outside);
    let walk = image.walk(STACK + 0x200).unwrap();
    assert_eq!(walk.frames, [frame("Shop.open", None)]);
}

#[test]
fn strings_of_strings_without_end_are_given_up() {
    let mut image = shop((11, 3));
    let cons = image.string(CONS, 8, 0);
    image.set(cons, 16, cons);
    image.set(cons, 24, cons);
    let thin = image.string(THIN, 8, 0);
    image.set(thin, 16, thin);
    for name in [cons, thin] {
        let script = image.script(name, name);
        let shared = image.shared(script, [name, name], &[], [0, 1]);
        let closure = image.closure(shared);
        image.put(STACK + 0x200 - 16, closure);
        let walk = image.walk(STACK + 0x100).unwrap();
        assert_eq!(walk.frames, [frame("(anonymous)", None)], "only the other one");
    }
}

#[test]
fn any_damage_is_borne() {
    // Each word of the heap and of the stack is replaced by what an attacker might put there.
    let whole = shop((13, 6));
    for hostile in [
        0,
        1,
        3,
        HEAP + 1,
        MAPS + 1,
        STACK + 0x201,
        small(u64::from(u32::MAX)),
        u64::MAX,
        1 << 63,
    ] {
        for at in (HEAP..whole.next).step_by(8) {
            let mut image = whole.clone();
            image.written.word(at, hostile);
            let walk = image.walk(STACK + 0x100);
            assert!(walk.is_some_and(|walk| walk.frames.len() <= 2));
        }
        for at in (STACK..STACK + 0x508).step_by(8) {
            let mut image = whole.clone();
            image.put(at, hostile);
            let walk = image.walk(STACK + 0x100);
            assert!(walk.is_none_or(|walk| walk.frames.len() <= 2));
        }
    }
}

#[test]
fn other_versions_and_files_without_constants_are_refused() {
    let refused = |change: &dyn Fn(&mut Image)| {
        let mut image = shop((11, 3));
        change(&mut image);
        image.engine().unwrap_err()
    };
    let version = |major, minor| Version { major, minor };
    for (major, minor) in [(9, 4), (10, 1), (13, 7), (14, 1)] {
        let found = refused(&|image| {
            image.constants.insert(SYMBOLS[0], major);
            image.constants.insert(SYMBOLS[1], minor);
        });
        let number = |number| u32::try_from(number).unwrap();
        assert_eq!(found, Refused::Unsupported(version(number(major), number(minor))));
    }
    let none = refused(&|image| _ = image.constants.remove(SYMBOLS[1]));
    assert_eq!(none, Refused::NoVersion);
    let lacking = Refused::NoConstants(version(11, 3));
    for (symbol, value) in [
        ("v8dbg_TaggedSize", 4),
        ("v8dbg_off_fp_function", 16),
        ("v8dbg_off_fp_context_or_frame_type", i32::MIN),
        ("v8dbg_class_Script__name__Object", i32::MAX),
        ("v8dbg_class_Map__instance_type__uint16_t", -1),
    ] {
        let found = refused(&|image| _ = image.constants.insert(symbol, value));
        assert_eq!(found, lacking, "{symbol}");
    }
    let found = refused(&|image| _ = image.constants.remove("v8dbg_type_Script__SCRIPT_TYPE"));
    assert_eq!(found, lacking);
    assert_eq!(
        Engine::find(Written::default(), &[CONSTANTS; SYMBOLS.len()]).unwrap_err(),
        Refused::Memory
    );
}
