//! From addresses to frames, at the end of a run.
//!
//! In come modules and the addresses that stacks went through, out come their frames: functions, inlined
//! ones included, with file and line where the file holds debug information; the functions of its symbol
//! tables elsewhere; and where no symbol covers an address, the address itself. The symbol table of a debug
//! file that is installed apart serves only where the file's own have nothing: before them it would name the
//! same function differently from machine to machine (`__libc_read` for `read`). Of its debug information
//! nothing is used. Code that was written at run time has the names of the program's own list.
//!
//! blazesym reads the debug information, from a copy (see `debug_copy`) and in a thread with a stack of its
//! own size: a panic over hostile contents costs the inlined names of one module.

use crate::debug_copy::debug_copy;
use crate::debug_file::debug_file;
use crate::demangle::demangle;
use crate::elf::Elf;
use crate::go::GoTable;
use crate::modules::{Module, ModuleId, Modules};
use crate::perf_map;
use crate::stacks::Address;
use crate::symbols::Symbols;
use blazesym::symbolize::source::{Elf as ElfSource, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use holdup_evidence::{Frame, Language};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::thread;

/// Stack of the thread that reads debug information, in bytes. It recurses once for each level of inlining
/// in the file, a few hundred bytes at a time; memory is taken only as far as it is used.
const THREAD_STACK_BYTES: usize = 256 * 1024 * 1024;

/// The frames of each address, innermost (most deeply inlined) first.
pub(crate) fn frames(modules: &Modules, addresses: BTreeSet<Address>) -> HashMap<Address, Vec<Frame>> {
    let mut by_module: HashMap<ModuleId, Vec<Address>> = HashMap::new();
    for address in addresses {
        by_module.entry(address.module).or_default().push(address);
    }
    by_module
        .into_iter()
        .flat_map(|(id, addresses)| {
            let frames = module_frames(modules.get(id), &addresses);
            addresses.into_iter().zip(frames).collect::<Vec<_>>()
        })
        .collect()
}

/// The frames of addresses of one module, address by address.
pub(crate) fn module_frames(module: &Module, addresses: &[Address]) -> Vec<Vec<Frame>> {
    if let Some((list, language)) = &module.listed {
        return listed(list, *language, addresses);
    }
    let Some(elf) = &module.elf else {
        return addresses
            .iter()
            .map(|address| vec![unnamed(module, address)])
            .collect();
    };
    let names = Names::of(elf, module.go());
    let described = debug_frames(elf, addresses).unwrap_or_default();
    let mut described = described.into_iter();
    addresses
        .iter()
        .map(|address| match described.next() {
            Some(mut frames) if !frames.is_empty() => {
                for frame in &mut frames {
                    frame.module.clone_from(&module.name);
                }
                frames
            }
            _ => vec![by_symbol(module, &names, address)],
        })
        .collect()
}

/// Frames of code that the program has written and listed.
fn listed(list: &File, language: Language, addresses: &[Address]) -> Vec<Vec<Frame>> {
    let wanted = addresses.iter().map(|address| address.looked_up).collect();
    let names = perf_map::names(list, &wanted);
    let frame = |address: &Address| {
        // An address of one process's memory says nothing to anybody without a name.
        let (name, start) = names.get(&address.looked_up)?;
        Some(Frame {
            symbol: Some(demangle(name)),
            offset: address.shown().wrapping_sub(*start),
            language,
            ..Frame::default()
        })
    };
    addresses
        .iter()
        .map(|address| vec![frame(address).unwrap_or_default()])
        .collect()
}

fn unnamed(module: &Module, address: &Address) -> Frame {
    Frame {
        module: module.name.clone(),
        offset: address.shown(),
        ..Frame::default()
    }
}

/// The functions of one file; a debug file is read when nothing else covers an address.
struct Names<'a> {
    elf: &'a Elf,
    own: Symbols,
    go: Option<&'a GoTable>,
    apart: OnceCell<Option<Symbols>>,
}

impl<'a> Names<'a> {
    fn of(elf: &'a Elf, go: Option<&'a GoTable>) -> Self {
        Self {
            elf,
            own: Symbols::read(elf),
            go,
            apart: OnceCell::new(),
        }
    }

    /// The function that covers `address`: its name, and its own address.
    fn find(&self, address: u64) -> Option<(String, u64)> {
        let go = || self.go?.function(address);
        let apart = || {
            let read = || debug_file(self.elf).map(|file| Symbols::read(&file));
            self.apart.get_or_init(read).as_ref()?.find(address)
        };
        self.own.find(address).or_else(go).or_else(apart)
    }
}

fn by_symbol(module: &Module, names: &Names<'_>, address: &Address) -> Frame {
    let unnamed = unnamed(module, address);
    match names.find(address.looked_up) {
        Some((name, start)) => Frame {
            symbol: Some(name),
            offset: address.shown().wrapping_sub(start),
            ..unnamed
        },
        None => unnamed,
    }
}

/// Frames by debug information, for each address in turn, empty where it says nothing of an address; `None`
/// where the file has none or it cannot be used.
fn debug_frames(elf: &Elf, addresses: &[Address]) -> Option<Vec<Vec<Frame>>> {
    let copy = debug_copy(elf)?;
    let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
    let work = || {
        let symbolizer = Symbolizer::builder().enable_demangling(false).build();
        let source = Source::Elf(ElfSource::new(&path));
        let one = |address: &Address| match symbolizer
            .symbolize_single(&source, Input::VirtOffset(address.looked_up))
        {
            Ok(Symbolized::Sym(symbol)) => described(&symbol, address),
            _ => Vec::new(),
        };
        addresses.iter().map(one).collect()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("symbols".to_owned())
            .stack_size(THREAD_STACK_BYTES);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// The frames that one machine address stands for.
fn described(symbol: &Sym<'_>, address: &Address) -> Vec<Frame> {
    let covers = symbol
        .size
        .is_some_and(|size| (symbol.offset as u64) < size as u64);
    if symbol.name.is_empty() || !covers {
        return Vec::new();
    }
    let function = Frame {
        offset: address.shown().wrapping_sub(symbol.addr),
        ..frame(&symbol.name, symbol.code_info.as_deref())
    };
    let inlined = symbol.inlined.iter().rev().map(|inlined| Frame {
        inlined: true,
        ..frame(&inlined.name, inlined.code_info.as_ref())
    });
    inlined.chain([function]).collect()
}

fn frame(name: &str, place: Option<&CodeInfo<'_>>) -> Frame {
    Frame {
        symbol: (!name.is_empty()).then(|| demangle(name)),
        file: place.map(|place| place.to_path().to_string_lossy().into_owned()),
        line: place.and_then(|place| place.line),
        language: Language::Native,
        ..Frame::default()
    }
}
