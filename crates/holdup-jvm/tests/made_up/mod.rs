//! A machine that never ran: memory with all that is read of one, described by tables of its own.
//!
//! In: which version's way of laying things out. Out: memory, where the library's variables are in it, and the registers and
//! stack of a thread that waits: native code, called from Java's `Store.wait0` (native), from `Store.take` with `Store.get`
//! put into it (compiled), from `Main.run` (interpreted), from native code. Another thread has the monitor it wants, and initialises a
//! class that a third one needs.

use holdup_evidence::arch::SAVED;
use holdup_jvm::{Source, structures::SYMBOLS};
use holdup_symbols::Registers;
use std::collections::{BTreeMap, HashMap};

/// Where Java code has its thread among the registers: r15, x28.
const THREAD_REGISTER: usize = match cfg!(target_arch = "aarch64") {
    true => 9,
    false => 5,
};

/// Where everything is.
const VARIABLES: u64 = 0x10_0000;
const TEXTS: u64 = 0x20_0000;
const TABLES: u64 = 0x30_0000;
const STATICS: u64 = 0x40_0000;
/// What a hostile program would change: everything from here on.
pub(crate) const HOSTILE: u64 = 0x50_0000;
const HEAP: u64 = HOSTILE;
const SEGMENTS: u64 = HOSTILE + 0x1000;
const CODE: u64 = HOSTILE + 0x2000;
const METHODS: u64 = HOSTILE + 0x4000;
const THREADS: u64 = HOSTILE + 0x6000;
const OBJECTS: u64 = HOSTILE + 0x8000;
/// The stack's first byte.
pub(crate) const STACK: u64 = 0x7f_0000;

/// A segment of the code heap, bytes, as a power of two.
const SEGMENT_BITS: u64 = 7;

/// Where the pieces of code begin, in segments.
const INTERPRETER: u64 = 0;
const STUBS: u64 = 4;
const NATIVE: u64 = 8;
const COMPILED: u64 = 16;

/// Where calls into Java return to.
const CALL_RETURN: u64 = CODE + (STUBS << SEGMENT_BITS) + 0x80;

/// The machine's memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MadeUp {
    pages: BTreeMap<u64, Vec<u8>>,
    fields: Vec<(String, String, bool, u64)>,
    offsets: HashMap<(String, String), u64>,
    next: HashMap<String, u64>,
    texts: u64,
    tables: u64,
    statics: u64,
    metadata: u64,
    /// The thread that waits.
    pub(crate) registers: Option<Registers>,
    /// Its stack.
    pub(crate) stack: Vec<u8>,
}

impl Source for MadeUp {
    fn page(&mut self, address: u64, page: &mut [u8; 4096]) -> bool {
        self.pages
            .get(&address)
            .map(|bytes| page.copy_from_slice(bytes))
            .is_some()
    }
}

impl MadeUp {
    /// The addresses of the library's variables.
    pub(crate) fn symbols() -> Vec<u64> {
        (0..SYMBOLS.len() as u64).map(|n| VARIABLES + n * 8).collect()
    }

    /// Puts bytes at an address.
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            let page = self.pages.entry(at & !0xfff).or_insert_with(|| vec![0; 4096]);
            page[(at & 0xfff) as usize] = *byte;
        }
    }

    /// Puts a word at an address.
    pub(crate) fn word(&mut self, address: u64, word: u64) {
        self.put(address, &word.to_le_bytes());
    }

    fn text(&mut self, text: &str) -> u64 {
        let at = TEXTS + self.texts;
        self.put(at, text.as_bytes());
        self.put(at + text.len() as u64, &[0]);
        self.texts += text.len() as u64 + 1;
        at
    }

    /// Where a class has a field; it has it from now on.
    fn at(&mut self, class: &str, field: &str) -> u64 {
        let key = (class.to_owned(), field.to_owned());
        if let Some(offset) = self.offsets.get(&key) {
            return *offset;
        }
        let next = self.next.entry(class.to_owned()).or_default();
        let offset = *next;
        *next += 8;
        self.offsets.insert(key.clone(), offset);
        self.fields.push((key.0, key.1, false, offset));
        offset
    }

    fn set(&mut self, structure: u64, class: &str, field: &str, value: u64) {
        let offset = self.at(class, field);
        self.word(structure + offset, value);
    }

    fn fixed(&mut self, class: &str, field: &str, value: u64) {
        let at = STATICS + self.statics;
        self.statics += 8;
        self.word(at, value);
        self.fields.push((class.to_owned(), field.to_owned(), true, at));
    }

    fn variable(&mut self, name: &str, value: u64) {
        let index = SYMBOLS
            .iter()
            .position(|symbol| *symbol == name)
            .expect("it is one");
        self.word(VARIABLES + index as u64 * 8, value);
    }

    fn table(&mut self, variable: &str, rows: &[Vec<u64>]) {
        let start = TABLES + self.tables;
        for (row, at) in rows.iter().zip((start..).step_by(40)) {
            for (word, at) in row.iter().zip((at..).step_by(8)) {
                self.word(at, *word);
            }
        }
        self.tables += (rows.len() as u64 + 1) * 40;
        self.word(TABLES + self.tables - 40, 0);
        self.variable(variable, start);
    }

    fn describe(&mut self, types: &[(&str, u64)], constants: &[(&str, u64)]) {
        let fields = std::mem::take(&mut self.fields);
        let rows: Vec<Vec<u64>> = fields
            .iter()
            .map(|(class, field, fixed, place)| {
                let (class, field) = (self.text(class), self.text(field));
                vec![class, field, u64::from(*fixed), *place, *place]
            })
            .collect();
        self.table("gHotSpotVMStructs", &rows);
        let pairs = |made: &mut MadeUp, all: &[(&str, u64)]| -> Vec<Vec<u64>> {
            all.iter()
                .map(|(name, value)| vec![made.text(name), *value])
                .collect()
        };
        let rows = pairs(self, types);
        self.table("gHotSpotVMTypes", &rows);
        let rows = pairs(self, constants);
        self.table("gHotSpotVMIntConstants", &rows);
        self.table("gHotSpotVMLongConstants", &[]);
        for (index, name) in SYMBOLS.into_iter().enumerate() {
            let value = match name {
                _ if name.ends_with("ArrayStride") => 40,
                _ if name.ends_with("TypeNameOffset") || name.ends_with("ConstantEntryNameOffset") => 0,
                _ if name.ends_with("IsStaticOffset") => 16,
                _ if name.ends_with("OffsetOffset") => 24,
                _ if name.ends_with("AddressOffset") => 32,
                _ if name.ends_with("Offset") => 8,
                _ => continue,
            };
            self.word(VARIABLES + index as u64 * 8, value);
        }
    }

    fn symbol(&mut self, text: &str) -> u64 {
        let at = METHODS + self.metadata;
        self.metadata += 16 + text.len() as u64;
        let (length, body) = (self.at("Symbol", "_length"), self.at("Symbol", "_body"));
        self.put(at + length, &(text.len() as u16).to_le_bytes());
        self.put(at + body, text.as_bytes());
        at
    }

    fn class(&mut self, name: &str) -> u64 {
        let name = self.symbol(name);
        let at = METHODS + self.metadata.next_multiple_of(8);
        self.metadata = at - METHODS + 128;
        self.set(at, "Klass", "_name", name);
        at
    }

    /// A method whose line table says that bytecode 0 is line 7, and 4 line 9.
    fn method(&mut self, class: u64, name: &str) -> u64 {
        let name = self.symbol(name);
        let file = self.symbol("Store.java");
        let start = METHODS + self.metadata.next_multiple_of(8);
        let (method, constant, pool, tags) = (start, start + 0x40, start + 0xc0, start + 0x140);
        self.metadata = start + 0x180 - METHODS;
        self.set(method, "Method", "_constMethod", constant);
        self.set(constant, "ConstMethod", "_constants", pool);
        for (field, value) in [("_name_index", 1), ("_flags", 1), ("_code_size", 8)] {
            self.set(constant, "ConstMethod", field, value);
        }
        self.put(constant + 0x40 + 8, &[7, 4 << 3 | 2, 0]);
        self.set(pool, "ConstantPool", "_pool_holder", class);
        self.set(pool, "ConstantPool", "_length", 3);
        self.set(pool, "ConstantPool", "_tags", tags);
        self.set(pool, "ConstantPool", "_source_file_name_index", 2);
        self.word(pool + 0x40 + 8, name);
        self.word(pool + 0x40 + 16, file);
        let data = self.at("Array<u1>", "_data");
        self.put(tags + data, &[0, 1, 1]);
        method
    }

    fn blob(&mut self, segment: u64, segments: u64, name: &str, frame_words: u64) -> u64 {
        let block = CODE + (segment << SEGMENT_BITS);
        let used = self.at("HeapBlock::Header", "_used");
        self.put(block + used, &[1]);
        self.put(SEGMENTS + segment, &[0]);
        for back in 1..segments {
            self.put(SEGMENTS + segment + back, &[back as u8]);
        }
        let start = block + 16;
        let name = self.text(name);
        self.set(start, "CodeBlob", "_name", name);
        self.set(start, "CodeBlob", "_size", (segments << SEGMENT_BITS) - 16);
        self.set(start, "CodeBlob", "_frame_size", frame_words);
        self.set(start, "CodeBlob", "_frame_complete_offset", 0);
        start
    }

    /// The whole, laid out as JDK 17 does or as JDK 25 does.
    pub(crate) fn machine(version: u64) -> MadeUp {
        let mut made = MadeUp::default();
        let new = version >= 23;
        made.at("HeapBlock", "_header");
        made.at("HeapBlock::Header", "_length");
        made.fixed("Abstract_VM_Version", "_vm_major_version", version);
        // Names of the first field of each word: bytes are enough where fields are short.
        made.at("Array<int>", "_length");
        made.at("Array<u1>", "_length");
        let store = made.class("com/shop/Store");
        let main = made.class("com/shop/Main+0x00007f0000001000");
        let methods = [
            made.method(store, "wait0"),
            made.method(store, "take"),
            made.method(store, "get"),
            made.method(main, "run"),
        ];
        made.code(new, methods);
        made.running(methods[3]);
        made.at("Klass", "_super");
        // Fields of classes with instances lie behind those of all classes.
        made.next.insert("InstanceKlass".to_owned(), 0x20);
        let classes = Classes {
            thread: made.class("java/lang/Thread"),
            string: made.class("java/lang/String"),
            other: made.class("com/shop/Counter"),
            needed: made.class("com/shop/Rates"),
        };
        made.fields(new, classes.thread, &[FIELDS[0], FIELDS[1], FIELDS[2], STATUS]);
        made.fields(new, classes.string, &FIELDS[3..]);
        made.threads(new, classes);
        let types = [
            ("HeapBlock", 16),
            ("ConstMethod", 0x40),
            ("ConstantPool", 0x40),
            ("PcDesc", 16),
            ("JVMFlag", 24),
        ];
        let constants = [
            ("ConstMethod::_has_linenumber_table", 1),
            ("_thread_blocked", 10),
            ("JavaThreadStatus::RUNNABLE", 5),
            ("InstanceKlass::being_initialized", 3),
        ];
        made.describe(&types, &constants);
        made
    }

    fn code(&mut self, new: bool, [wait0, take, get, _]: [u64; 4]) {
        let heap = HEAP + 0x100;
        self.fixed("CodeCache", "_heaps", HEAP);
        self.set(HEAP, "GrowableArrayBase", "_len", 1);
        self.at("GrowableArray<int>", "_spare");
        self.set(HEAP, "GrowableArray<int>", "_data", HEAP + 0x80);
        self.word(HEAP + 0x80, heap);
        let (low, high) = (self.at("VirtualSpace", "_low"), self.at("VirtualSpace", "_high"));
        let memory = self.at("CodeHeap", "_memory");
        self.at("CodeHeap", "_spare");
        let map = self.at("CodeHeap", "_segmap");
        self.at("CodeHeap", "_spare2");
        self.set(heap, "CodeHeap", "_log2_segment_size", SEGMENT_BITS);
        self.word(heap + memory + low, CODE);
        self.word(heap + memory + high, CODE + 0x2000);
        self.word(heap + map + low, SEGMENTS);
        self.word(heap + map + high, SEGMENTS + 0x40);
        self.put(SEGMENTS, &[0xff; 0x40]);
        let queue = HEAP + 0x300;
        self.fixed("AbstractInterpreter", "_code", queue);
        self.set(queue, "StubQueue", "_stub_buffer", CODE + 0x40);
        self.set(queue, "StubQueue", "_buffer_limit", 0x100);
        self.fixed("StubRoutines", "_call_stub_return_address", CALL_RETURN);
        for (segment, segments, name, words, method) in [
            (INTERPRETER, 4, "Interpreter", 0, None),
            (STUBS, 4, "StubRoutines (1)", 0, None),
            (NATIVE, 8, "native nmethod", 4, Some(wait0)),
            (COMPILED, 16, "nmethod", 6, Some(take)),
        ] {
            let start = self.blob(segment, segments, name, words);
            let data = start + 0x300;
            if new {
                self.set(start, "CodeBlob", "_kind", 1);
                self.set(start, "CodeBlob", "_code_offset", 0x100);
                self.set(start, "CodeBlob", "_mutable_data", data + 0x100 - 0x10);
                self.set(start, "CodeBlob", "_relocation_size", 0x10);
            } else {
                self.set(start, "CodeBlob", "_code_begin", start + 0x100);
            }
            // Fields of compiled methods lie behind those of blobs.
            self.next.entry("nmethod".to_owned()).or_insert(0x60);
            let base = if new { data } else { start };
            let offset = |to: u64| data + to - base;
            if new {
                self.set(start, "nmethod", "_immutable_data", data);
                self.set(start, "nmethod", "_scopes_data_offset", offset(0x80));
            } else {
                self.set(start, "nmethod", "_dependencies_offset", offset(0x80));
                self.set(start, "nmethod", "_metadata_offset", offset(0x100));
                self.set(start, "nmethod", "_scopes_data_begin", data + 0x80);
            }
            self.set(start, "nmethod", "_scopes_pcs_offset", offset(0x40));
            self.set(start, "nmethod", "_method", method.unwrap_or(0));
            self.set(start, "nmethod", "_compile_id", segment);
            self.set(start, "nmethod", "_orig_pc_offset", 0);
            self.at("PcDesc", "_pc_offset");
            self.next.insert("PcDesc".to_owned(), 4);
            self.at("PcDesc", "_scope_decode_offset");
            // Before the first place, the place 0x20 in scope 8, behind the last.
            for (row, (place, scope)) in [(-1_i32, 0_u32), (0x20, 8), (0x200, 0)].into_iter().enumerate() {
                let at = data + 0x40 + row as u64 * 16;
                self.put(at, &place.to_le_bytes());
                self.put(at + 4, &scope.to_le_bytes());
            }
            // Scope 8: in scope 4, the second method, bytecode 4. Scope 4: in none, the first method, bytecode 0.
            let more = u8::from(new);
            self.put(data + 0x80 + 4, &[more, 1 + more, 1 + more]);
            self.put(data + 0x80 + 8, &[4 + more, 2 + more, 5 + more]);
            self.word(data + 0x100, take);
            self.word(data + 0x108, get);
        }
    }

    /// The thread that waits, as far as it is on the stack.
    fn running(&mut self, run: u64) {
        let code = |segment: u64| CODE + (segment << SEGMENT_BITS) + 16 + 0x100;
        let word = |stack: &mut Vec<u8>, at: u64, value: u64| {
            let at = (at - STACK) as usize;
            stack[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        let mut stack = vec![0; 0x400];
        // The native method's frame: four words, its caller's rbp and the return address at their end.
        word(&mut stack, STACK + 0x18, code(COMPILED) + 0x20);
        // The compiled one's: six words. Its caller is interpreted, and has its frame at 0x100.
        let frame = STACK + 0x100;
        word(&mut stack, STACK + 0x20 + 0x20, frame);
        word(&mut stack, STACK + 0x20 + 0x28, CODE + 0x60);
        let pointer = run + 0x40 + 0x40 + 4;
        let stub = STACK + 0x200;
        for (offset, value) in [(0, stub), (8, CALL_RETURN)] {
            word(&mut stack, frame + offset, value);
        }
        for (below, value) in [(8, frame + 16), (24, run), (64, pointer)] {
            word(&mut stack, frame - below, value);
        }
        // The stub's, which keeps what native code wants back.
        for (offset, value) in [(0, 0xbeef), (8, 0x1234_5678)] {
            word(&mut stack, stub + offset, value);
        }
        for (below, value) in [(56, 1), (64, 12), (72, 13), (80, 14), (88, 15)] {
            word(&mut stack, stub - below, value);
        }
        self.stack = stack;
        let mut saved = [None; SAVED];
        saved[THREAD_REGISTER] = Some(THREADS);
        self.registers = Some(Registers {
            ip: code(NATIVE) + 8,
            sp: STACK,
            sp_known: true,
            saved,
        });
    }

    /// Three threads, of which the second has the monitor that the first wants to enter, and initialises the class that the third needs.
    fn threads(&mut self, new: bool, classes: Classes) {
        let Classes {
            thread,
            string,
            other,
            needed,
        } = classes;
        for (name, class) in [("Thread", thread), ("String", string)] {
            let name = format!("_klasses[static_cast<int>(vmClassID::{name}_klass_knum)]");
            self.fixed("vmClasses", &name, class);
        }
        self.fixed("JVMFlag", "flags", HEAP + 0x800);
        self.fixed("JVMFlag", "numFlags", 0);
        for field in ["_name", "_addr"] {
            self.at("JVMFlag", field);
        }
        self.at("oopDesc", "_mark");
        let class_at = self.at("oopDesc", "_metadata._klass");
        let list = THREADS + 0xe00;
        self.fixed("ThreadsSMRSupport", "_java_thread_list", list);
        self.set(list, "ThreadsList", "_length", 3);
        self.set(list, "ThreadsList", "_threads", list + 0x80);
        for (index, name) in ["till", "clerk", "needs"].into_iter().enumerate() {
            let at = THREADS + index as u64 * 0x400;
            self.word(list + 0x80 + index as u64 * 8, at);
            let (system, slot) = (at + 0x200, at + 0x280);
            let object = OBJECTS + index as u64 * 0x200;
            let (text, bytes) = (object + 0x80, object + 0x100);
            self.set(at, "JavaThread", "_osthread", system);
            self.set(at, "JavaThread", "_threadObj", slot);
            self.set(at, "JavaThread", "_current_pending_monitor", 0);
            self.set(at, "JavaThread", "_stack_base", STACK + 0x400);
            self.set(at, "JavaThread", "_stack_size", 0x400);
            if new {
                self.set(at, "JavaThread", "_monitor_owner_id", 30 + index as u64);
                let stack = self.at("JavaThread", "_lock_stack");
                self.at("LockStack", "_top");
                self.at("LockStack", "_base[0]");
                self.next.insert("JavaThread".to_owned(), stack + 0x40);
                self.put(at + stack, &(stack as u32 + 8).to_le_bytes());
            }
            self.set(system, "OSThread", "_thread_id", 100 + index as u64);
            self.word(slot, object);
            self.word(object + class_at, thread);
            self.word(object + FIELDS[0].1, text);
            self.word(text + class_at, string);
            self.word(text + FIELDS[3].1, bytes);
            self.put(bytes + class_at + 8, &(name.len() as u32).to_le_bytes());
            self.put(bytes + class_at + if new { 12 } else { 16 }, name.as_bytes());
        }
        let (monitor, slot, object) = (THREADS + 0xc00, THREADS + 0xc80, OBJECTS + 0x800);
        let pending = self.at("JavaThread", "_current_pending_monitor");
        self.word(THREADS + pending, monitor);
        self.set(monitor, "ObjectMonitor", "_object", slot);
        self.set(
            monitor,
            "ObjectMonitor",
            "_owner",
            if new { 31 } else { THREADS + 0x400 },
        );
        self.word(slot, object);
        self.word(object + class_at, other);
        let (needs, stack) = (THREADS + 0x800, OBJECTS + 0xf00);
        self.set(needs, "JavaThread", "_thread_state", 10);
        self.word(OBJECTS + 0x400 + STATUS.1, 5);
        let (anchor, sp) = (
            self.at("JavaThread", "_anchor"),
            self.at("JavaFrameAnchor", "_last_Java_sp"),
        );
        self.word(needs + anchor + sp, stack);
        self.word(stack - 0x80, needed);
        self.set(needed, "InstanceKlass", "_init_state", 3);
        self.set(needed, "InstanceKlass", "_init_thread", THREADS + 0x400);
    }

    /// Fields of a class, listed as its version does, with numbers of the pool's names.
    fn fields(&mut self, new: bool, class: u64, fields: &[(&str, u64)]) {
        let start = METHODS + self.metadata.next_multiple_of(8);
        let (pool, tags, list) = (start, start + 0x80, start + 0xc0);
        self.metadata = start + 0x140 - METHODS;
        self.set(class, "InstanceKlass", "_constants", pool);
        self.set(pool, "ConstantPool", "_length", fields.len() as u64 + 1);
        self.set(pool, "ConstantPool", "_tags", tags);
        let data = self.at("Array<u1>", "_data");
        self.set(list, "Array<int>", "_length", fields.len() as u64 * 6);
        self.at("Array<u2>", "_length");
        let wide = self.at("Array<u2>", "_data");
        if new {
            self.set(class, "InstanceKlass", "_fieldinfo_stream", list);
            self.put(list + data, &[fields.len() as u8 + 1, 1]);
        } else {
            self.set(class, "InstanceKlass", "_fields", list);
            self.set(class, "InstanceKlass", "_java_fields_count", fields.len() as u64);
        }
        for (index, (name, offset)) in fields.iter().enumerate() {
            let name = self.symbol(name);
            let number = index as u64 + 1;
            self.word(pool + 0x40 + number * 8, name);
            self.put(tags + data + number, &[1]);
            if new {
                let packed = [number as u8 + 1, 1, *offset as u8 + 1, 1, 1];
                self.put(list + data + 2 + index as u64 * 5, &packed);
            } else {
                let at = list + wide + index as u64 * 12;
                self.put(at + 2, &(number as u16).to_le_bytes());
                self.put(at + 8, &((*offset as u16) << 2).to_le_bytes());
            }
        }
    }
}

/// Classes of objects.
struct Classes {
    thread: u64,
    string: u64,
    other: u64,
    needed: u64,
}

/// A further field of threads.
const STATUS: (&str, u64) = ("threadStatus", 40);

/// Fields of threads and strings, and where they are in them.
const FIELDS: [(&str, u64); 5] = [
    ("name", 16),
    ("parkBlocker", 24),
    ("eetop", 32),
    ("value", 16),
    ("coder", 24),
];
