//! What hostile ELF files can do to us: nothing.
//!
//! A real program with debug information is cut short and corrupted in many ways, and everything that reads
//! it is run over the result. Nothing here asserts what is found, only that reading ends, without a panic and
//! without asking for absurd amounts of memory.

use crate::arch::HERE;
use crate::debug_copy::debug_copy;
use crate::elf::Elf;
use crate::files::FrameBytes;
use crate::modules::Modules;
use crate::stacks::Address;
use crate::symbolise;
use crate::symbols::Symbols;
use crate::unwind::{FrameTable, Registers, StackBytes};
use holdup_evidence::arch::SAVED;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A small program with a symbol table, frame information and debug information.
fn program() -> Vec<u8> {
    let directory = TempDir::new().unwrap();
    let (code, program) = (directory.path().join("a.c"), directory.path().join("a"));
    fs::write(
        &code,
        "static inline int f(int n) { return n * 3; }\nint main(int n, char **w) { return f(n); }\n",
    )
    .unwrap();
    let status = Command::new("cc")
        .args(["-O2", "-g"])
        .arg(&code)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.expect("a C compiler named cc is installed").success());
    fs::read(program).unwrap()
}

fn in_memory(bytes: &[u8]) -> File {
    let mut file = File::from(memfd_create("hostile", MFdFlags::MFD_CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    file
}

/// Runs everything that reads ELF files over `bytes`; whether they were understood.
fn read_all(bytes: &[u8]) -> bool {
    let Ok(elf) = Elf::read(in_memory(bytes)) else {
        return false;
    };
    let addresses: Vec<u64> = (0..0x5000).step_by(0x161).chain([u64::MAX, 1 << 63]).collect();
    let mut frames = FrameTable::read(&elf, FrameBytes::of(&elf, true));
    let stack = vec![0x41; 512];
    let stack = StackBytes {
        start: 0x7000,
        bytes: &stack,
    };
    let symbols = Symbols::read(&elf);
    for &address in &addresses {
        elf.address_of(address);
        symbols.find(address);
        if let Some(rule) = frames.make(address).0 {
            for sp in [0, 0x7000, u64::MAX - 7] {
                rule.caller(
                    &HERE,
                    &Registers {
                        ip: address,
                        sp,
                        sp_known: true,
                        saved: [Some(0x7010); SAVED],
                    },
                    &stack,
                );
            }
        }
    }
    true
}

fn name_all(bytes: &[u8]) -> Vec<String> {
    let file = in_memory(bytes);
    let Ok(elf) = Elf::read(file.try_clone().unwrap()) else {
        return Vec::new();
    };
    let mut modules = Modules::new(PathBuf::from("/proc"));
    let id = modules.add_file(elf.head, file.into());
    let addresses: BTreeSet<Address> = (0..0x5000)
        .step_by(8)
        .map(|address| Address::new(id, address))
        .collect();
    let (frames, _) = symbolise::frames(&modules, addresses.clone(), &mut || false);
    assert_eq!(frames.len(), addresses.len());
    addresses
        .iter()
        .flat_map(|address| frames[address].clone())
        .filter_map(|frame| frame.symbol)
        .collect()
}

/// A small generator with a fixed seed, so that a failure can be seen again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn the_program_as_it_is_is_understood() {
    let bytes = program();
    assert!(read_all(&bytes));
    let names = name_all(&bytes);
    assert!(
        names.iter().any(|name| name == "main") && names.iter().any(|name| name == "f"),
        "{names:?}"
    );
}

#[test]
fn files_that_are_cut_short() {
    let bytes = program();
    for length in (0..bytes.len()).step_by(bytes.len() / 97) {
        read_all(&bytes[..length]);
        name_all(&bytes[..length]);
    }
}

#[test]
fn files_with_wrong_bytes() {
    let bytes = program();
    let mut random = Random(1);
    for round in 0..300 {
        let mut broken = bytes.clone();
        for _ in 0..1 + random.below(64) {
            let place = random.below(broken.len());
            broken[place] = random.below(256) as u8;
        }
        read_all(&broken);
        if round % 8 == 0 {
            name_all(&broken);
        }
    }
}

/// Each of the fields of the headers, and of the sections that are read, with each of the values that break
/// careless arithmetic.
#[test]
fn files_with_extreme_numbers() {
    let bytes = program();
    let elf = Elf::read(in_memory(&bytes)).unwrap();
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let read = [
        ".eh_frame",
        ".debug_info",
        ".debug_line",
        ".debug_rnglists",
        ".symtab",
    ];
    let mut places: Vec<usize> = (16..64 + 13 * 56).chain(table..bytes.len()).step_by(4).collect();
    for section in read.map(|name| elf.section(name).unwrap()) {
        let (start, size) = (section.offset as usize, section.size as usize);
        places.extend((start..start + size.min(400)).step_by(4));
    }
    for (round, place) in places.into_iter().enumerate() {
        for value in [0x8000_0000, u32::MAX] {
            let mut broken = bytes.clone();
            let end = (place + 4).min(broken.len());
            broken[place..end].copy_from_slice(&value.to_le_bytes()[..end - place]);
            read_all(&broken);
            if round % 32 == 0 {
                name_all(&broken);
            }
        }
    }
}

#[test]
fn random_bytes_behind_a_good_beginning() {
    let bytes = program();
    let mut random = Random(2);
    for _ in 0..100 {
        let mut broken = bytes.clone();
        for byte in &mut broken[64..] {
            *byte = random.below(256) as u8;
        }
        read_all(&broken);
        name_all(&broken);
    }
}

#[test]
fn things_that_are_no_elf_files() {
    assert!(!read_all(b""));
    assert!(!read_all(b"#!/bin/sh\n"));
    assert!(!read_all(&[0x7f; 4096]));
    let mut other_class = program();
    other_class[4] = 1;
    assert!(!read_all(&other_class));
    assert!(Elf::read(File::open("/").unwrap()).is_err());
}

/// A function whose debug information says that calls are inlined into one another so deep: a byte a level.
fn nested(levels: u32) -> Vec<u8> {
    let code = format!(
        r#"
            .file 1 "a.c"
            .globl _start
            .type _start, @function
            _start:
            .Lstart: .loc 1 1
            .fill 256,1,0x90
            ret
            .Lend:
            .size _start, .-_start
            .section .debug_info,"",@progbits
            .long .Linfo_end - .Linfo
            .Linfo: .value 4
            .long .Labbreviations
            .byte 8
            .uleb128 1
            .quad .Lstart, .Lend - .Lstart
            .long .Llines
            .uleb128 2
            .quad .Lstart, .Lend - .Lstart
            .asciz "outermost"
            .fill {levels},1,3
            .fill {levels},1,0
            .byte 0, 0
            .Linfo_end:
            .section .debug_abbrev,"",@progbits
            .Labbreviations:
            .byte 1, 0x11, 1, 0x11,0x01, 0x12,0x07, 0x10,0x17, 0,0
            .byte 2, 0x2e, 1, 0x11,0x01, 0x12,0x07, 0x03,0x08, 0,0
            .byte 3, 0x1d, 1, 0,0
            .byte 0
            .section .debug_line,"",@progbits
            .Llines:
        "#
    );
    let directory = TempDir::new().unwrap();
    let (source, program) = (directory.path().join("a.s"), directory.path().join("a"));
    fs::write(&source, code).unwrap();
    let status = Command::new("cc")
        .args(["-nostdlib", "-static-pie"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.unwrap().success());
    fs::read(program).unwrap()
}

#[test]
fn debug_information_deeper_than_any_stack_costs_itself_alone() {
    assert!(name_all(&nested(10)).iter().any(|name| name == "outermost"));
    // At 80 bytes of stack a level.
    let names = name_all(&nested(3_000_000));
    assert!(names.iter().any(|name| name == "_start"), "{names:?}");
}

#[test]
fn only_debug_sections_are_set_apart() {
    let elf = Elf::read(in_memory(&program())).unwrap();
    let copy = Elf::read(debug_copy(&elf).unwrap()).unwrap();
    let names: Vec<&str> = copy
        .sections
        .iter()
        .map(|section| section.name.as_str())
        .collect();
    assert!(
        names.contains(&".debug_info") && names.contains(&".debug_line"),
        "{names:?}"
    );
    assert!(
        names
            .iter()
            .all(|name| name.is_empty() || name.starts_with(".debug_") || *name == ".shstrtab")
    );
}
