//! A file's debug information, set apart.
//!
//! In comes an ELF file of the observed program, out comes a file in memory with its debug sections and
//! nothing else. blazesym maps the file it is given, and a file that is cut short while it is mapped means
//! SIGBUS; it also follows the paths that the file names (`.gnu_debuglink` and the like), which for a hostile
//! file could be any device or FIFO. Nobody else can change the copy, and it links to nothing.

use crate::elf::{Elf, Head, Section};
use flate2::read::ZlibDecoder;
use nix::sys::memfd::{MFdFlags, memfd_create};
use object::LittleEndian;
use object::elf::{
    CompressionHeader64, ELFCLASS64, ELFCOMPRESS_ZLIB, ELFDATA2LSB, ELFMAG, ELFOSABI_NONE, ET_DYN,
    EV_CURRENT, FileFlags, FileHeader64, Ident, Machine, SHF_COMPRESSED, SHT_NOBITS, SHT_NULL, SHT_STRTAB,
    SectionFlags, SectionHeader64, SectionType, SymbolSection,
};
use object::endian::{U16, U32, U64};
use object::pod::{self, bytes_of, bytes_of_slice};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Most debug information that is copied, in bytes; a browser's is larger, and does without.
const DEBUG_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A packed section unpacks to so many times its size at most. Those of Go programs come to three times.
const UNPACKED_TIMES: u64 = 8;

const ENDIAN: LittleEndian = LittleEndian;

type SectionHeader = SectionHeader64<LittleEndian>;

/// The copy, where the file has debug information that can be read and is not too large.
pub(crate) fn debug_copy(elf: &Elf) -> Option<File> {
    let sections = wanted(elf);
    if debug_bytes(elf) == 0 || !sections.iter().any(|section| section.name == ".debug_info") {
        return None;
    }
    write(elf, &sections).ok()
}

/// How many bytes the copy has at most; 0 where there is none, or too much of it.
pub(crate) fn debug_bytes(head: &Head) -> u64 {
    let size = |section: &Section| match is_packed(section) {
        true => section.size.saturating_mul(UNPACKED_TIMES),
        false => section.size,
    };
    let sizes = wanted(head).into_iter().map(size);
    Some(sizes.fold(0, u64::saturating_add))
        .filter(|bytes| *bytes <= DEBUG_BYTES_MAX)
        .unwrap_or(0)
}

fn wanted(head: &Head) -> Vec<&Section> {
    let wanted = |section: &&Section| {
        section.name.starts_with(".debug_")
            // This one names another file.
            && section.name != ".debug_sup"
            && section.kind != SHT_NOBITS.0
    };
    head.sections.iter().filter(wanted).collect()
}

fn write(elf: &Elf, sections: &[&Section]) -> io::Result<File> {
    let copy = File::from(memfd_create("holdup-debug", MFdFlags::MFD_CLOEXEC)?);
    let mut end = size_of::<FileHeader64<LittleEndian>>() as u64;
    let mut append = |bytes: &[u8]| -> io::Result<u64> {
        // Headers are read in place, which needs their natural alignment.
        let start = end.next_multiple_of(8);
        copy.write_all_at(bytes, start)?;
        end = start + bytes.len() as u64;
        Ok(start)
    };
    let mut names = vec![0_u8];
    // Index 0 means "no section".
    let mut headers = vec![section_header(0, SHT_NULL, 0, 0)];
    for section in sections {
        let bytes = section_bytes(elf, section).ok_or(io::ErrorKind::UnexpectedEof)?;
        let kind = SectionType(section.kind);
        let size = bytes.len() as u64;
        headers.push(section_header(names.len(), kind, append(&bytes)?, size));
        names.extend_from_slice(section.name.as_bytes());
        names.push(0);
    }
    let own_name = names.len();
    names.extend_from_slice(b".shstrtab\0");
    headers.push(section_header(
        own_name,
        SHT_STRTAB,
        append(&names)?,
        names.len() as u64,
    ));
    let table = append(bytes_of_slice(&headers))?;
    copy.write_all_at(
        bytes_of(&file_header(elf.machine, table, headers.len() as u16)),
        0,
    )?;
    Ok(copy)
}

/// The bytes of a section, unpacked.
pub(crate) fn section_bytes(elf: &Elf, section: &Section) -> Option<Vec<u8>> {
    match is_packed(section) {
        true => elf
            .packed(section, DEBUG_BYTES_MAX)
            .and_then(|packed| unpacked(&packed)),
        false => elf.bytes(section, DEBUG_BYTES_MAX),
    }
}

/// Whether a section is packed, as Go's linker does it.
fn is_packed(section: &Section) -> bool {
    section.flags & SHF_COMPRESSED.0 != 0
}

/// What a packed section holds, if it is packed by zlib and is as large as it says.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let (header, packed_bytes) = pod::from_bytes::<CompressionHeader64<LittleEndian>>(packed).ok()?;
    let (kind, size) = (header.ch_type.get(ENDIAN), header.ch_size.get(ENDIAN));
    let most = (packed.len() as u64).saturating_mul(UNPACKED_TIMES);
    if kind != ELFCOMPRESS_ZLIB || size > most {
        return None;
    }
    let mut bytes = Vec::new();
    // One byte more shows that it is larger than it says.
    ZlibDecoder::new(packed_bytes)
        .take(size.saturating_add(1))
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}

fn section_header(name: usize, kind: SectionType, offset: u64, size: u64) -> SectionHeader {
    SectionHeader {
        sh_name: U32::new(ENDIAN, name as u32),
        sh_type: U32::new(ENDIAN, kind),
        sh_flags: U64::new(ENDIAN, SectionFlags(0)),
        sh_addr: U64::new(ENDIAN, 0),
        sh_offset: U64::new(ENDIAN, offset),
        sh_size: U64::new(ENDIAN, size),
        sh_link: U32::new(ENDIAN, 0),
        sh_info: U32::new(ENDIAN, 0),
        sh_addralign: U64::new(ENDIAN, 1),
        sh_entsize: U64::new(ENDIAN, 0),
    }
}

fn file_header(machine: u16, section_table: u64, sections: u16) -> FileHeader64<LittleEndian> {
    FileHeader64 {
        e_ident: Ident {
            magic: ELFMAG,
            class: ELFCLASS64,
            data: ELFDATA2LSB,
            version: EV_CURRENT,
            os_abi: ELFOSABI_NONE,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(ENDIAN, ET_DYN),
        e_machine: U16::new(ENDIAN, Machine(machine)),
        e_version: U32::new(ENDIAN, u32::from(EV_CURRENT.0)),
        e_entry: U64::new(ENDIAN, 0),
        e_phoff: U64::new(ENDIAN, 0),
        e_shoff: U64::new(ENDIAN, section_table),
        e_flags: U32::new(ENDIAN, FileFlags(0)),
        e_ehsize: U16::new(ENDIAN, size_of::<FileHeader64<LittleEndian>>() as u16),
        e_phentsize: U16::new(ENDIAN, 0),
        e_phnum: U16::new(ENDIAN, 0),
        e_shentsize: U16::new(ENDIAN, size_of::<SectionHeader>() as u16),
        e_shnum: U16::new(ENDIAN, sections),
        e_shstrndx: U16::new(ENDIAN, SymbolSection(sections - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::unpacked;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn packed(kind: u32, size: u64, bytes: &[u8]) -> Vec<u8> {
        let mut section = Vec::new();
        section.extend(kind.to_le_bytes());
        section.extend([0; 4]);
        section.extend(size.to_le_bytes());
        section.extend(1_u64.to_le_bytes());
        let mut zlib = ZlibEncoder::new(section, Compression::default());
        zlib.write_all(bytes).unwrap();
        zlib.finish().unwrap()
    }

    #[test]
    fn a_packed_section_is_as_large_as_it_says_or_is_not_used() {
        let bytes: Vec<u8> = (0..200).collect();
        assert_eq!(unpacked(&packed(1, 200, &bytes)), Some(bytes.clone()));
        assert_eq!(unpacked(&packed(1, 199, &bytes)), None);
        assert_eq!(unpacked(&packed(1, 201, &bytes)), None);
        assert_eq!(unpacked(&packed(2, 200, &bytes)), None, "another way to pack");
        let whole = packed(1, 200, &bytes);
        for end in 0..whole.len() {
            assert_eq!(unpacked(&whole[..end]), None, "{end}");
        }
        let bomb = packed(1, 1 << 20, &vec![0; 1 << 20]);
        assert_eq!(unpacked(&bomb), None, "a thousand times its size");
    }
}
