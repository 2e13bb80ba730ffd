//! Opening and reading files that observed processes have mapped, in a process that can be abandoned.
//!
//! The problem: a file that another process has chosen can lie on a file system that never answers, be cut short, or be a device. The
//! choice: the process that observes does not open it. A child does (`reader` starts it), and hands over the headers, a descriptor of
//! the place (`O_PATH`: it can be held and closed without effects), and copies of the few sections that unwinding needs. In: questions. Out:
//! answers, with descriptors.

use crate::debug_file::build_id;
use crate::elf::{Elf, Head};
use crate::go;
use crate::maps::Mapping;
use crate::open::again;
use crate::opener::Opener;
use crate::perf_map;
use crate::symbols::addresses;
use crate::unwind;
use holdup_detached::Answer as Sent;
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// The file of a mapping of a process, by the kernel's link.
    Linked(u32, Mapping),
    /// The same, by the path that the process used.
    AtPath(u32, Mapping),
    /// With the place of a file: its headers.
    Head,
    /// A process's own list of the code that it has written.
    List(u32),
    /// With the place of a file: what unwinding needs of it; with or without descriptions of frames.
    Frames(bool),
    /// With the place of a file: where these symbols are in it.
    Symbols(Vec<String>),
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// There is none.
    Nothing,
    /// The file was not touched: its file system may block for ever.
    MayBlock,
    /// With the place.
    Place,
    /// The file's headers, and its build id.
    Head(Head, Option<String>),
    /// With a file in memory that holds these parts one after the other, so many bytes each.
    Frames([Option<u64>; FrameBytes::PARTS]),
    /// In the order of the question.
    Symbols(Vec<Option<u64>>),
}

/// What unwinding needs of a file.
#[derive(Debug, Default)]
pub(crate) struct FrameBytes {
    /// `.eh_frame`.
    pub(crate) eh: Option<Vec<u8>>,
    /// `.debug_frame`.
    pub(crate) debug: Option<Vec<u8>>,
    /// Go's table.
    pub(crate) go: Option<Vec<u8>>,
    /// What Go's linker says of the module.
    pub(crate) go_module: Option<Vec<u8>>,
}

impl FrameBytes {
    const PARTS: usize = 4;

    /// Reads them.
    pub(crate) fn of(elf: &Elf, descriptions: bool) -> FrameBytes {
        let section = |name: &str, limit| elf.bytes(elf.section(name)?, limit);
        let described = |name| {
            let wanted = descriptions && unwind::understands(elf);
            wanted.then(|| section(name, unwind::FRAME_BYTES_MAX)).flatten()
        };
        FrameBytes {
            eh: described(".eh_frame"),
            debug: described(".debug_frame"),
            go: go::SECTIONS
                .into_iter()
                .find(|name| elf.section(name).is_some())
                .and_then(|name| section(name, go::TABLE_BYTES_MAX)),
            go_module: section(go::MODULE_SECTION, go::MODULE_BYTES_MAX),
        }
    }

    fn parts(&self) -> [Option<&Vec<u8>>; Self::PARTS] {
        [&self.eh, &self.debug, &self.go, &self.go_module].map(Option::as_ref)
    }

    /// Puts them into a file in memory.
    fn write(&self) -> Option<Sent<Answer>> {
        let copy = File::from(memfd_create("holdup-frames", MFdFlags::MFD_CLOEXEC).ok()?);
        let mut end = 0;
        for part in self.parts().into_iter().flatten() {
            copy.write_all_at(part, end).ok()?;
            end += part.len() as u64;
        }
        let sizes = self.parts().map(|part| part.map(|part| part.len() as u64));
        Some(Sent {
            value: Answer::Frames(sizes),
            descriptors: vec![copy.into()],
        })
    }

    /// Reads them from there.
    pub(crate) fn read(copy: OwnedFd, sizes: [Option<u64>; Self::PARTS]) -> Option<FrameBytes> {
        let copy = File::from(copy);
        let length = copy.metadata().ok()?.len();
        if sizes
            .iter()
            .flatten()
            .try_fold(0_u64, |sum, size| sum.checked_add(*size))?
            > length
        {
            return None;
        }
        let mut at = 0;
        let mut next = |size: Option<u64>| -> Option<Vec<u8>> {
            let size = size?;
            let mut bytes = vec![0; usize::try_from(size).ok()?];
            copy.read_exact_at(&mut bytes, at).ok()?;
            at += size;
            Some(bytes)
        };
        let [eh, debug, go, go_module] = sizes.map(&mut next);
        Some(FrameBytes {
            eh,
            debug,
            go,
            go_module,
        })
    }
}

/// Answers questions.
#[derive(Debug)]
pub(crate) struct Files {
    opener: Opener,
}

impl Files {
    /// `proc` is where the proc file system is.
    pub(crate) fn new(proc: PathBuf) -> Files {
        Files {
            opener: Opener { proc },
        }
    }

    pub(crate) fn answer(&self, question: &Question, descriptors: Vec<OwnedFd>) -> Sent<Answer> {
        let place = descriptors.into_iter().next();
        let answer = match question {
            Question::Linked(pid, mapping) | Question::AtPath(pid, mapping)
                if self.opener.may_block(*pid, mapping) =>
            {
                Some(Answer::MayBlock.into())
            }
            Question::Linked(pid, mapping) => self.opener.by_link(*pid, mapping).map(at),
            Question::AtPath(pid, mapping) => self.opener.by_path(*pid, mapping).map(at),
            Question::Head => elf(place).map(|elf| {
                let build_id = build_id(&elf);
                Answer::Head(elf.head, build_id).into()
            }),
            Question::List(pid) => perf_map::open(&self.opener.proc, *pid).map(|opened| at(opened.place)),
            Question::Frames(descriptions) => {
                elf(place).and_then(|elf| FrameBytes::of(&elf, *descriptions).write())
            }
            Question::Symbols(wanted) => elf(place).map(|elf| {
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                Answer::Symbols(addresses(&elf, &wanted)).into()
            }),
        };
        answer.unwrap_or_else(|| Answer::Nothing.into())
    }
}

fn at(place: File) -> Sent<Answer> {
    Sent {
        value: Answer::Place,
        descriptors: vec![place.into()],
    }
}

/// The file at a place.
pub(crate) fn elf(place: Option<OwnedFd>) -> Option<Elf> {
    let file = again(&File::from(place?), |_| true)?;
    Elf::read(file).ok()
}
