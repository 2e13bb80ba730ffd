//! Programs and libraries as their makers want them: headers, symbol tables, `.eh_frame`, debug information, and the
//! stacks of the threads that run them. Input: the file; its last bytes are also the stack's memory.

use holdup_evidence::arch::{FRAME_POINTER, SavedRegisters};
use holdup_symbols::{Mapping, ProcessKey, RawStack, UserStacks};
use std::io::Write;
use std::os::unix::fs::MetadataExt;

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 600;

/// Where the file is mapped, all of it.
const START: u64 = 0x40_0000;

/// Where the stack is.
const STACK: u64 = 0x7000_0000;

/// How much of the input's end is the stack's memory, bytes.
const STACK_BYTES: usize = 1024;

/// Stacks are taken at so many places of the file, and at as many near its beginning, where a small file has its code.
const PLACES: u64 = 24;

/// How far those near the beginning are apart, bytes.
const STEP: u64 = 31;

/// Maps the file, unwinds from places all over it, and names what was found.
pub(crate) fn run(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(bytes).expect("and written");
    let found = file.as_file().metadata().expect("and looked at");
    let process = ProcessKey(1);
    // In this process, so that what is covered can be seen.
    let mut stacks = UserStacks::new().reading_here();
    let length = bytes.len() as u64;
    stacks.map(
        process,
        std::process::id(),
        Mapping {
            start: START,
            end: START + length,
            offset: 0,
            path: file.path().to_string_lossy().into_owned(),
            device: (libc::major(found.dev()), libc::minor(found.dev())),
            inode: found.ino(),
        },
    );
    let memory = &bytes[bytes.len().saturating_sub(STACK_BYTES)..];
    // Return addresses into the file, so that a stack has more than one frame.
    let mut memory = memory.to_vec();
    for (number, word) in memory
        .chunks_exact_mut(8)
        .enumerate()
        .filter(|(number, _)| number % 3 == 0)
    {
        let address = START + (number as u64 * 0x61) % length.max(1);
        word.copy_from_slice(&address.to_le_bytes());
    }
    let spread = (0..PLACES).map(|place| length * place / PLACES);
    let near = (0..PLACES).map(|place| place * STEP);
    // The frame pointer leads into the stack; the others are all sorts of things.
    let mut saved: SavedRegisters = std::array::from_fn(|at| [STACK, STACK + 8, 0, u64::MAX, 1][at % 5]);
    saved[FRAME_POINTER] = STACK + 64;
    for offset in spread.chain(near) {
        stacks.intern(&RawStack {
            process,
            pid: std::process::id(),
            at: 0,
            ip: START + offset,
            sp: STACK,
            saved,
            partial: false,
            bytes: &memory,
        });
    }
    let _ = stacks.finish();
}
