//! The parts of an ELF file that unwinding and naming need.
//!
//! In comes an open file, out come its segments, its sections, and bytes of it on request. The file is read,
//! not mapped: it belongs to the observed program, and a mapped file that is cut short while we look at it
//! kills the reader with SIGBUS. Each count and size that the file states is checked against a bound before
//! memory is asked for. Only 64-bit little-endian files are understood; of others only the name is known.

use nix::unistd::{SysconfVar, sysconf};
use object::LittleEndian;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFMAG, FileHeader64, PF_X, PT_LOAD, ProgramHeader64, SHF_COMPRESSED,
    SHT_NOBITS, SectionHeader64,
};
use object::pod::{Pod, from_bytes, slice_from_bytes};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

const ENDIAN: LittleEndian = LittleEndian;

/// Bytes of a page where the kernel does not say.
const PAGE: u64 = 4096;

/// Files are mapped by pages of this size, bytes: some kernels have pages of 16 or 64 KiB.
fn page_bytes() -> u64 {
    static BYTES: LazyLock<u64> = LazyLock::new(|| {
        let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
        size.and_then(|bytes| u64::try_from(bytes).ok())
            .filter(|bytes| bytes.is_power_of_two())
            .unwrap_or(PAGE)
    });
    *BYTES
}

/// Most program headers that are read; real files have about 15.
const SEGMENTS_MAX: u16 = 256;

/// Most section headers that are read; a linked file has fewer than 100.
const SECTIONS_MAX: u16 = 4096;

/// Largest table of section names that is read, in bytes.
const SECTION_NAMES_BYTES_MAX: u64 = 1024 * 1024;

/// Longest section name that is distinguished, in bytes; those that we look for are shorter.
const SECTION_NAME_BYTES_MAX: usize = 32;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ElfError {
    /// Reading failed, or the file is shorter than it says.
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The bytes are those of something else.
    #[error("not a 64-bit little-endian ELF file")]
    NotElf64,
    /// A count or size is beyond what such files have.
    #[error("the headers make no sense")]
    Nonsense,
}

/// An open ELF file, its headers understood.
#[derive(Debug)]
pub(crate) struct Elf {
    file: File,
    /// The headers.
    pub(crate) head: Head,
}

/// The headers of an ELF file, without the file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The `e_machine` number.
    pub(crate) machine: u16,
    loads: Vec<Load>,
    /// All sections, in the file's order.
    pub(crate) sections: Vec<Section>,
}

impl Deref for Elf {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

/// A loaded segment.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Load {
    offset: u64,
    /// Bytes in the file.
    size: u64,
    address: u64,
    executable: bool,
}

/// A section's header.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Section {
    /// Name, cut after 32 bytes; empty where the file has no good one.
    pub(crate) name: String,
    /// `sh_type`.
    pub(crate) kind: u32,
    /// `sh_flags`.
    pub(crate) flags: u64,
    /// Stated virtual address of its first byte; 0 for what is not loaded.
    pub(crate) address: u64,
    /// Where it is in the file, in bytes.
    pub(crate) offset: u64,
    /// Its size in the file, in bytes.
    pub(crate) size: u64,
    /// Index of the section it refers to (a symbol table's names).
    pub(crate) link: u32,
}

impl Elf {
    /// Reads the headers of `file`, which stays open for as long as this value lives.
    pub(crate) fn read(file: File) -> Result<Self, ElfError> {
        let bytes = read(&file, 0, size_of::<FileHeader64<LittleEndian>>() as u64)?;
        let header: &FileHeader64<LittleEndian> = one(&bytes)?;
        let ident = &header.e_ident;
        if ident.magic != ELFMAG || ident.class != ELFCLASS64 || ident.data != ELFDATA2LSB {
            return Err(ElfError::NotElf64);
        }
        let loads = read_loads(&file, header)?;
        // A file whose section table is gone or broken can still be mapped and run.
        let sections = read_sections(&file, header).unwrap_or_default();
        Ok(Self {
            head: Head {
                machine: header.e_machine.get(ENDIAN).0,
                loads,
                sections,
            },
            file,
        })
    }

    /// A section's bytes, unless it is larger than `limit` bytes, compressed, or not all there.
    pub(crate) fn bytes(&self, section: &Section, limit: u64) -> Option<Vec<u8>> {
        let compressed = section.flags & SHF_COMPRESSED.0 != 0;
        match compressed {
            true => None,
            false => self.packed(section, limit),
        }
    }

    /// A section's bytes as they are in the file, compressed or not, unless there are more than `limit` or not all are there.
    pub(crate) fn packed(&self, section: &Section, limit: u64) -> Option<Vec<u8>> {
        if section.kind == SHT_NOBITS.0 || section.size > limit {
            return None;
        }
        read(&self.file, section.offset, section.size).ok()
    }
}

impl Head {
    /// The virtual address, as the file states it, of the code byte at `offset` of the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let covers = |load: &&Load| {
            offset
                .checked_sub(load.offset)
                .is_some_and(|into| into < load.size)
        };
        let code = || self.loads.iter().filter(|load| load.executable);
        // Whole pages are mapped: the mapping of a segment that begins within a page begins before it.
        let mapped = |load: &&Load| {
            let from = load.offset - load.offset % page_bytes();
            offset.checked_sub(from).is_some_and(|into| into < page_bytes())
        };
        let load = code()
            .find(covers)
            .or_else(|| code().find(mapped))
            .or_else(|| self.loads.iter().find(covers))?;
        Some(load.address.wrapping_add(offset).wrapping_sub(load.offset))
    }

    /// The lowest and the highest address that the file states of what is loaded of it.
    pub(crate) fn extent(&self) -> Option<(u64, u64)> {
        let low = self.loads.iter().map(|load| load.address).min()?;
        let ends = self
            .loads
            .iter()
            .map(|load| load.address.saturating_add(load.size));
        Some((low, ends.max()?))
    }

    /// The section with this name that has bytes in the file.
    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| section.name == name && section.kind != SHT_NOBITS.0)
    }
}

/// Reads exactly `size` bytes, having made sure that the file is that long before asking for memory.
fn read(file: &File, offset: u64, size: u64) -> Result<Vec<u8>, ElfError> {
    let end = offset.checked_add(size).ok_or(ElfError::Nonsense)?;
    if end > file.metadata()?.len() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| ElfError::Nonsense)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn one<T: Pod>(bytes: &[u8]) -> Result<&T, ElfError> {
    from_bytes(bytes)
        .map(|(header, _)| header)
        .map_err(|_| ElfError::Nonsense)
}

/// Reads a table of `count` headers of `T`; an empty one where the file has headers of another size.
fn read_table<T: Pod>(file: &File, offset: u64, count: u16, entry: u16) -> Result<Vec<u8>, ElfError> {
    if count == 0 || usize::from(entry) != size_of::<T>() {
        return Ok(Vec::new());
    }
    read(file, offset, u64::from(count) * u64::from(entry))
}

fn table<T: Pod>(bytes: &[u8]) -> &[T] {
    let count = bytes.len() / size_of::<T>();
    slice_from_bytes(bytes, count)
        .map(|(table, _)| table)
        .unwrap_or_default()
}

fn read_loads(file: &File, header: &FileHeader64<LittleEndian>) -> Result<Vec<Load>, ElfError> {
    let count = header.e_phnum.get(ENDIAN);
    if count > SEGMENTS_MAX {
        return Err(ElfError::Nonsense);
    }
    let bytes = read_table::<ProgramHeader64<LittleEndian>>(
        file,
        header.e_phoff.get(ENDIAN),
        count,
        header.e_phentsize.get(ENDIAN),
    )?;
    let segments = table::<ProgramHeader64<LittleEndian>>(&bytes);
    let loads = segments
        .iter()
        .filter(|segment| segment.p_type.get(ENDIAN) == PT_LOAD);
    Ok(loads
        .map(|segment| Load {
            offset: segment.p_offset.get(ENDIAN),
            size: segment.p_filesz.get(ENDIAN),
            address: segment.p_vaddr.get(ENDIAN),
            executable: segment.p_flags.get(ENDIAN).0 & PF_X.0 != 0,
        })
        .collect())
}

fn read_sections(file: &File, header: &FileHeader64<LittleEndian>) -> Result<Vec<Section>, ElfError> {
    let count = header.e_shnum.get(ENDIAN);
    if count > SECTIONS_MAX {
        return Err(ElfError::Nonsense);
    }
    let bytes = read_table::<SectionHeader64<LittleEndian>>(
        file,
        header.e_shoff.get(ENDIAN),
        count,
        header.e_shentsize.get(ENDIAN),
    )?;
    let headers = table::<SectionHeader64<LittleEndian>>(&bytes);
    let names = headers
        .get(usize::from(header.e_shstrndx.get(ENDIAN).0))
        .filter(|names| names.sh_size.get(ENDIAN) <= SECTION_NAMES_BYTES_MAX)
        .ok_or(ElfError::Nonsense)?;
    let names = read(file, names.sh_offset.get(ENDIAN), names.sh_size.get(ENDIAN))?;
    Ok(headers
        .iter()
        .map(|header| Section {
            name: section_name(&names, header.sh_name.get(ENDIAN)),
            kind: header.sh_type.get(ENDIAN).0,
            flags: header.sh_flags.get(ENDIAN).0,
            address: header.sh_addr.get(ENDIAN),
            offset: header.sh_offset.get(ENDIAN),
            size: header.sh_size.get(ENDIAN),
            link: header.sh_link.get(ENDIAN),
        })
        .collect())
}

fn section_name(names: &[u8], offset: u32) -> String {
    let rest = names.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(SECTION_NAME_BYTES_MAX)];
    let name = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
