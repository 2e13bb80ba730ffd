//! What may lie in the compiled programs at all. Most of what an older kernel lacks is cut out before it looks;
//! these two things it looks for in every instruction it is given, used or not, and refuses the program.

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind, SymbolKind};

/// The object that is part of the library.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));

/// Bytes of an instruction.
const SIZE: usize = 8;
/// Operation code of an atomic operation on 32 and on 64 bits.
const ATOMIC: [u8; 2] = [0xc3, 0xdb];
/// Operation code of loading a 64-bit constant, which an address is.
const LOAD_ADDRESS: u8 = 0x18;
/// The programs that only kernels with task work are given.
const WITH_CALLBACK: [&str; 2] = ["on_switch", "on_async_done"];

#[test]
fn no_atomic_operation_returns_a_value() {
    let file = object::File::parse(OBJECT).unwrap();
    let mut atomics = 0;
    for section in file.sections().filter(|one| one.kind() == SectionKind::Text) {
        for (number, instruction) in section.data().unwrap().chunks(SIZE).enumerate() {
            if ATOMIC.contains(&instruction[0]) {
                atomics += 1;
                // What lies behind the offset says which operation; 0 adds and returns nothing, all Linux 5.10 has.
                assert_eq!(
                    instruction[4..],
                    [0; 4],
                    "instruction {number} of {}: kernels before 5.12 refuse it; next_number() hands out numbers",
                    section.name().unwrap()
                );
            }
        }
    }
    assert!(atomics > 0, "there are counters");
}

#[test]
fn callbacks_are_only_where_every_kernel_that_gets_them_knows_them() {
    let file = object::File::parse(OBJECT).unwrap();
    let mut callbacks = 0;
    for section in file.sections().filter(|one| one.kind() == SectionKind::Text) {
        let data = section.data().unwrap();
        for (offset, relocation) in section.relocations() {
            let at = usize::try_from(offset).unwrap();
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let target = file.symbol_by_index(index).unwrap();
            let is_function = target.kind() == SymbolKind::Text
                || target.section_index().is_some_and(|index| {
                    file.section_by_index(index)
                        .is_ok_and(|one| one.kind() == SectionKind::Text)
                });
            if data[at] != LOAD_ADDRESS || !is_function {
                continue;
            }
            callbacks += 1;
            let program = file
                .symbols()
                .filter(|one| one.kind() == SymbolKind::Text && one.section_index() == Some(section.index()))
                .find(|one| (one.address()..one.address() + one.size()).contains(&offset))
                .and_then(|one| one.name().ok().map(str::to_owned));
            let program = program.unwrap_or_default();
            assert!(
                WITH_CALLBACK.contains(&program.as_str()),
                "kernels before 5.13 refuse {program}"
            );
        }
    }
    assert!(callbacks > 0, "errands are run by a callback");
}
