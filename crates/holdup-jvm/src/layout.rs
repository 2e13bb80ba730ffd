//! Where in HotSpot's structures everything is that is looked at, for one machine.
//!
//! In: what the machine says of its structures. Out: offsets under names of our own, so that the rest need not know how
//! they differ from JDK to JDK; `None` of the whole where it lacks what no version lacks.

use crate::memory::{Memory, Source};
use crate::structures::Structures;

/// The whole.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// The JDK's number: 8, 11, 17, 21, 25.
    pub(crate) version: u32,
    pub(crate) cache: CodeCache,
    pub(crate) blob: Blob,
    pub(crate) compiled: Compiled,
    pub(crate) method: Method,
    pub(crate) interpreter: Interpreter,
    pub(crate) thread: Thread,
}

/// The heaps of code.
#[derive(Debug, Clone)]
pub(crate) struct CodeCache {
    pub(crate) heaps: Heaps,
    /// First address of a heap, and that behind its last one that is in use.
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// Where a heap's map of segments begins: a byte for each.
    pub(crate) segments: u64,
    pub(crate) segments_end: u64,
    pub(crate) segment_bits: u64,
    /// What stands before each blob, bytes, and where in it is told whether it is in use.
    pub(crate) header: u64,
    pub(crate) used: u64,
}

/// How the heaps are listed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heaps {
    /// A growable array, which this static points to, with its length and its elements.
    Several { array: u64, length: u64, elements: u64 },
    /// One heap, which this static points to (JDK 8).
    One(u64),
}

/// A piece of code.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) name: u64,
    pub(crate) size: u64,
    pub(crate) frame_size: u64,
    pub(crate) frame_complete: u64,
    /// The latter is of two bytes (JDK 23 and later).
    pub(crate) frame_complete_short: bool,
    pub(crate) code: Start,
}

/// Where a part begins, known by a pointer or by an offset from something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start {
    Pointer(u64),
    Offset(u64),
}

/// A compiled method.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) method: u64,
    pub(crate) compile_id: u64,
    /// What cannot change lives apart (JDK 23 and later), and the offsets of what follows count from there.
    pub(crate) apart: Option<u64>,
    pub(crate) pcs: u64,
    pub(crate) pcs_end: u64,
    pub(crate) scopes: Start,
    pub(crate) metadata: Metadata,
    pub(crate) deoptimise: Option<Start>,
    pub(crate) original_pc: u64,
    /// Of a place in the code: its distance from the beginning, and where its scope is described.
    pub(crate) pc_offset: u64,
    pub(crate) pc_scope: u64,
    pub(crate) pc_size: u64,
}

/// Where a compiled method lists its metadata.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Metadata {
    /// So many bytes into the blob, as this field says.
    Within(u64),
    /// Behind the relocations, so many bytes as the second field says, of what the first points to (JDK 24 and later).
    Behind(u64, u64),
}

/// A method, its constants, its class, and texts.
#[derive(Debug, Clone)]
pub(crate) struct Method {
    pub(crate) constant: u64,
    /// Of the constant part: its constants, the name's number among them, its flags, its bytecodes.
    pub(crate) constants: u64,
    pub(crate) name_index: u64,
    pub(crate) flags: u64,
    pub(crate) has_lines: u16,
    pub(crate) code_size: u64,
    pub(crate) code: u64,
    /// Of a pool of constants.
    pub(crate) pool_holder: u64,
    pub(crate) pool_length: u64,
    pub(crate) pool_tags: u64,
    pub(crate) pool_file: Option<u64>,
    pub(crate) pool_entries: u64,
    pub(crate) tags: u64,
    pub(crate) class_name: u64,
    pub(crate) text_length: u64,
    pub(crate) text: u64,
}

/// What tells the interpreter's frames, and the way from native code into Java.
#[derive(Debug, Clone)]
pub(crate) struct Interpreter {
    /// A static that points to the interpreter's queue of code, and the queue's fields.
    pub(crate) code: u64,
    pub(crate) begin: u64,
    pub(crate) limit: u64,
    /// A static: where calls into Java return to.
    pub(crate) call_return: u64,
    /// Of the frame, from rbp, bytes downward: where the bytecode pointer is.
    pub(crate) bytecode: u64,
    /// A static: the place in the frame under those of a virtual thread (JDK 21 and later).
    pub(crate) continuation_return: Option<u64>,
}

/// A Java thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) continuation: Option<u64>,
}

/// The first version whose debug information knows no byte of zero.
pub(crate) const WITHOUT_ZEROS: u32 = 20;

impl Layout {
    /// What the tables say.
    pub(crate) fn read<S: Source>(memory: &mut Memory<S>, tables: &Structures) -> Option<Layout> {
        let version = memory.int(tables.address("Abstract_VM_Version", "_vm_major_version")?)?;
        // JDK 8 calls itself 25 there, the number of its HotSpot.
        let version = if tables.address("CodeCache", "_heap").is_some() {
            8
        } else {
            version
        };
        Some(Layout {
            version,
            cache: CodeCache::read(tables)?,
            blob: Blob::read(tables)?,
            compiled: Compiled::read(tables)?,
            method: Method::read(tables)?,
            interpreter: Interpreter::read(tables, version)?,
            thread: Thread::read(tables)?,
        })
    }
}

impl CodeCache {
    fn read(tables: &Structures) -> Option<CodeCache> {
        let heaps = match tables.address("CodeCache", "_heaps") {
            Some(array) => Heaps::Several {
                array,
                length: tables
                    .offset("GrowableArrayBase", "_len")
                    .or_else(|| tables.offset("GenericGrowableArray", "_len"))?,
                elements: tables.offset("GrowableArray<int>", "_data")?,
            },
            None => Heaps::One(tables.address("CodeCache", "_heap")?),
        };
        let space =
            |field, end| Some(tables.offset("CodeHeap", field)? + tables.offset("VirtualSpace", end)?);
        Some(CodeCache {
            heaps,
            low: space("_memory", "_low")?,
            high: space("_memory", "_high")?,
            segments: space("_segmap", "_low")?,
            segments_end: space("_segmap", "_high")?,
            segment_bits: tables.offset("CodeHeap", "_log2_segment_size")?,
            header: tables.size("HeapBlock")?,
            used: tables.offset("HeapBlock", "_header")? + tables.offset("HeapBlock::Header", "_used")?,
        })
    }
}

impl Blob {
    fn read(tables: &Structures) -> Option<Blob> {
        let of = |field| tables.offset("CodeBlob", field);
        Some(Blob {
            name: of("_name")?,
            size: of("_size")?,
            frame_size: of("_frame_size")?,
            frame_complete: of("_frame_complete_offset")?,
            frame_complete_short: of("_kind").is_some(),
            code: of("_code_begin")
                .map(Start::Pointer)
                .or_else(|| of("_code_offset").map(Start::Offset))?,
        })
    }
}

impl Compiled {
    fn read(tables: &Structures) -> Option<Compiled> {
        let of = |field| {
            tables
                .offset("nmethod", field)
                .or_else(|| tables.offset("CompiledMethod", field))
        };
        let apart = of("_immutable_data");
        let metadata = match of("_metadata_offset") {
            Some(offset) => Metadata::Within(offset),
            None => Metadata::Behind(
                tables.offset("CodeBlob", "_mutable_data")?,
                tables.offset("CodeBlob", "_relocation_size")?,
            ),
        };
        let deoptimise = of("_deopt_handler_begin").map(Start::Pointer).or_else(|| {
            let offset = [
                "_deopt_handler_entry_offset",
                "_deopt_handler_offset",
                "_deoptimize_offset",
            ]
            .into_iter()
            .find_map(of)?;
            Some(Start::Offset(offset))
        });
        Some(Compiled {
            method: of("_method")?,
            compile_id: of("_compile_id")?,
            apart,
            pcs: of("_scopes_pcs_offset")?,
            pcs_end: if apart.is_some() {
                of("_scopes_data_offset")?
            } else {
                of("_dependencies_offset")?
            },
            scopes: of("_scopes_data_begin")
                .map(Start::Pointer)
                .or_else(|| of("_scopes_data_offset").map(Start::Offset))?,
            metadata,
            deoptimise,
            original_pc: of("_orig_pc_offset")?,
            pc_offset: tables.offset("PcDesc", "_pc_offset")?,
            pc_scope: tables.offset("PcDesc", "_scope_decode_offset")?,
            pc_size: tables.size("PcDesc")?,
        })
    }
}

impl Method {
    fn read(tables: &Structures) -> Option<Method> {
        let constant = |field| tables.offset("ConstMethod", field);
        let pool = |field| tables.offset("ConstantPool", field);
        let has_lines = tables
            .constant("ConstMethod::_has_linenumber_table")
            .or_else(|| tables.constant("ConstMethodFlags::_misc_has_linenumber_table"));
        Some(Method {
            constant: tables.offset("Method", "_constMethod")?,
            constants: constant("_constants")?,
            name_index: constant("_name_index")?,
            flags: constant("_flags").or_else(|| constant("_flags._flags"))?,
            has_lines: u16::try_from(has_lines.unwrap_or(0)).ok()?,
            code_size: constant("_code_size")?,
            code: tables.size("ConstMethod")?,
            pool_holder: pool("_pool_holder")?,
            pool_length: pool("_length")?,
            pool_tags: pool("_tags")?,
            pool_file: pool("_source_file_name_index"),
            pool_entries: tables.size("ConstantPool")?,
            tags: tables.offset("Array<u1>", "_data")?,
            class_name: tables.offset("Klass", "_name")?,
            text_length: tables.offset("Symbol", "_length")?,
            text: tables
                .offset("Symbol", "_body")
                .or_else(|| tables.offset("Symbol", "_body[0]"))?,
        })
    }
}

impl Interpreter {
    fn read(tables: &Structures, version: u32) -> Option<Interpreter> {
        Some(Interpreter {
            code: tables.address("AbstractInterpreter", "_code")?,
            begin: tables.offset("StubQueue", "_stub_buffer")?,
            limit: tables.offset("StubQueue", "_buffer_limit")?,
            call_return: tables.address("StubRoutines", "_call_stub_return_address")?,
            // The frame holds the method's class since JDK 9: a word more before it.
            bytecode: if version >= 9 { 64 } else { 56 },
            continuation_return: tables.address("ContinuationEntry", "_return_pc"),
        })
    }
}

impl Thread {
    fn read(tables: &Structures) -> Option<Thread> {
        let of = |field| tables.of_thread(field);
        Some(Thread {
            continuation: of("_cont_entry"),
        })
    }
}
