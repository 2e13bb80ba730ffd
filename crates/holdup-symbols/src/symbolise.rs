//! From addresses to frames, at the end of a run.
//!
//! In come modules and the addresses that stacks went through, out come their frames: functions, inlined
//! ones included, with file and line where the file holds debug information; the functions of its symbol
//! tables elsewhere; and where no symbol covers an address, the address itself. The symbol table of a debug
//! file that is installed apart serves only where the file's own have nothing: before them it would name the
//! same function differently from machine to machine (`__libc_read` for `read`). Of its debug information
//! nothing is used. Code that was written at run time has the names of the program's own list.
//!
//! blazesym reads the debug information, from a copy (see `debug_copy`), in a process of its own (see `apart`) and there
//! in a thread with a large stack: hostile contents cost the inlined names of one module, and no more than an allowance
//! of time for all modules together.

use crate::apart::apart;
use crate::bounds::Bounds;
use crate::debug_copy::{debug_bytes, debug_copy};
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
use std::time::Duration;

/// Stack of the thread that reads debug information, in bytes. It recurses once for each level of inlining
/// in the file, a few hundred bytes at a time; memory is taken only as far as it is used.
const THREAD_STACK_BYTES: usize = 256 * 1024 * 1024;

/// What naming may use up in all, so that many files made to be slow are no slower than one.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// CPU time for debug information; ordinary files take some hundredths of a second each.
    cpu: Duration,
    /// Bytes of tables and of debug information that are read; a browser has one gigabyte.
    bytes: u64,
    /// What of one file is read.
    bounds: Bounds,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(30),
            bytes: 4 << 30,
            bounds: Bounds::default(),
        }
    }
}

impl Allowance {
    /// Takes so many bytes off, if there are as many.
    fn take(&mut self, bytes: u64) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }
}

/// The frames of each address, innermost (most deeply inlined) first.
pub(crate) fn frames(modules: &Modules, addresses: BTreeSet<Address>) -> HashMap<Address, Vec<Frame>> {
    let mut by_module: HashMap<ModuleId, Vec<Address>> = HashMap::new();
    for address in addresses {
        by_module.entry(address.module).or_default().push(address);
    }
    let mut allowance = Allowance {
        bounds: modules.bounds,
        ..Allowance::default()
    };
    by_module
        .into_iter()
        .flat_map(|(id, addresses)| {
            let frames = module_frames(modules.get(id), &addresses, &mut allowance);
            addresses.into_iter().zip(frames).collect::<Vec<_>>()
        })
        .collect()
}

/// The frames of addresses of one module, address by address.
pub(crate) fn module_frames(
    module: &Module,
    addresses: &[Address],
    allowance: &mut Allowance,
) -> Vec<Vec<Frame>> {
    if let Some((list, language)) = &module.listed {
        return listed(list, *language, addresses);
    }
    let Some(elf) = &module.elf else {
        return addresses
            .iter()
            .map(|address| vec![unnamed(module, address)])
            .collect();
    };
    let bytes = Symbols::bytes(elf);
    let own = if bytes <= allowance.bounds.names && allowance.take(bytes) {
        Symbols::read(elf)
    } else {
        Symbols::default()
    };
    let names = Names::of(elf, own, module.go());
    let described = debug_frames(elf, addresses, allowance).unwrap_or_default();
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
    let names = perf_map::names(list, wanted);
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
    fn of(elf: &'a Elf, own: Symbols, go: Option<&'a GoTable>) -> Self {
        Self {
            elf,
            own,
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
fn debug_frames(elf: &Elf, addresses: &[Address], allowance: &mut Allowance) -> Option<Vec<Vec<Frame>>> {
    let bytes = debug_bytes(elf);
    if bytes > allowance.bounds.debug || !allowance.take(bytes) {
        return None;
    }
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
    let in_a_thread = || {
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("symbols".to_owned())
                .stack_size(THREAD_STACK_BYTES);
            thread.spawn_scoped(scope, work).ok()?.join().ok()
        })
    };
    apart(&mut allowance.cpu, in_a_thread)?
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
