//! Names of addresses, in a process that can be abandoned.
//!
//! In come one file after the other, by descriptors of their places, and addresses in them; out come frames: functions, inlined
//! ones included, with file and line where the file holds debug information; the functions of its symbol
//! tables elsewhere; and where no symbol covers an address, the address itself. The symbol table of a debug
//! file that is installed apart serves only where the file's own have nothing: before them it would name the
//! same function differently from machine to machine (`__libc_read` for `read`). Of its debug information
//! nothing is used. Code that was written at run time has the names of the program's own list.
//!
//! All of it is done in a thread with a large stack: blazesym recurses once for each level of inlining. It reads debug information
//! from a copy (see `debug_copy`). Whatever it does to its process (`symbolise` starts it) costs names, and nothing else.

use crate::debug_copy::{debug_bytes, debug_copy};
use crate::debug_file::debug_file;
use crate::demangle::demangle;
use crate::elf::Elf;
use crate::files::{FrameBytes, elf};
use crate::go::{GoPlace, GoTable};
use crate::open::again;
use crate::perf_map;
use crate::symbols::Symbols;
use blazesym::symbolize::source::{Elf as ElfSource, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use holdup_evidence::{Frame, Language};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Stack of the thread that reads debug information, in bytes. It recurses once for each level of inlining
/// in the file, a few hundred bytes at a time; memory is taken only as far as it is used.
const THREAD_STACK_BYTES: usize = 256 * 1024 * 1024;

/// Longest name of a function or a source file that is kept, in bytes. No report shows more, and names are copied for each frame.
const NAME_BYTES_MAX: usize = 8 * 1024;

/// Most functions inlined into one another that are kept of an address. Compilers reach some twenty.
const INLINED_MAX: usize = 64;

/// An address in a file: where it is looked up, and as what it is shown.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) looked_up: u64,
    pub(crate) shown: u64,
}

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// With the place of a file: the next addresses are in it.
    File {
        /// Its base name.
        name: Option<String>,
        /// Most bytes of symbol tables that are read.
        names: u64,
        /// Most bytes of debug information that are read.
        debug: u64,
    },
    /// With the place of a list of code that was written at run time: the next addresses are in it, and are among these.
    List(Language, Vec<u64>),
    /// Addresses in what was named last.
    Addresses(Vec<Place>),
}

/// The answer: for each address its frames, innermost (most deeply inlined) first. Nothing for a file.
pub(crate) type Answer = Vec<Vec<Frame>>;

/// Answers questions, in a thread of its own.
#[derive(Debug)]
pub(crate) struct Namer {
    questions: Sender<(Question, Vec<OwnedFd>)>,
    answers: Receiver<Answer>,
}

impl Namer {
    /// Starts the thread.
    pub(crate) fn start() -> Option<Namer> {
        let (questions, asked) = channel::<(Question, Vec<OwnedFd>)>();
        let (answer, answers) = channel();
        let work = move || {
            let mut current = Current::default();
            while let Ok((question, descriptors)) = asked.recv() {
                let place = descriptors.into_iter().next();
                if answer.send(current.answer(question, place)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("symbols".to_owned())
            .stack_size(THREAD_STACK_BYTES);
        thread.spawn(work).ok()?;
        Some(Namer { questions, answers })
    }

    /// The answer; `None` when the thread has broken.
    pub(crate) fn answer(&self, question: Question, descriptors: Vec<OwnedFd>) -> Option<Answer> {
        self.questions.send((question, descriptors)).ok()?;
        self.answers.recv().ok()
    }
}

/// What addresses are in.
#[derive(Default)]
enum Current {
    #[default]
    Nothing,
    File(Box<Named>),
    List(Language, HashMap<u64, (String, u64)>),
}

/// A file of which names are known.
struct Named {
    name: Option<String>,
    functions: Functions,
    debug: Option<Debug>,
}

impl Current {
    fn answer(&mut self, question: Question, place: Option<OwnedFd>) -> Answer {
        match question {
            Question::File { name, names, debug } => {
                let file = elf(place).map(|elf| Named::read(elf, name, names, debug));
                *self = file.map_or(Current::Nothing, |file| Current::File(Box::new(file)));
                Vec::new()
            }
            Question::List(language, wanted) => {
                let list = place.and_then(|place| again(&File::from(place), |_| true));
                let names = list.map(|list| perf_map::names(&list, wanted.into_iter().collect()));
                *self = Current::List(language, names.unwrap_or_default());
                Vec::new()
            }
            Question::Addresses(places) => places.iter().map(|place| self.frames(place)).collect(),
        }
    }

    fn frames(&self, place: &Place) -> Vec<Frame> {
        match self {
            Current::Nothing => Vec::new(),
            Current::File(file) => file.frames(place),
            Current::List(language, names) => vec![listed(*language, names, place)],
        }
    }
}

impl Named {
    fn read(elf: Elf, name: Option<String>, names: u64, debug: u64) -> Named {
        let own = match Symbols::bytes(&elf) <= names {
            true => Symbols::read(&elf),
            false => Symbols::default(),
        };
        let debug = (debug_bytes(&elf) <= debug).then(|| Debug::of(&elf)).flatten();
        Named {
            name,
            functions: Functions::of(elf, own),
            debug,
        }
    }

    fn frames(&self, place: &Place) -> Vec<Frame> {
        let mut frames = self.named(place);
        if self.functions.is_go(place.looked_up) {
            for frame in &mut frames {
                frame.language = Language::Go;
            }
        }
        frames
    }

    fn named(&self, place: &Place) -> Vec<Frame> {
        let begins = || self.functions.find(place.looked_up).map(|(_, start)| start);
        let described = self.debug.as_ref().map(|debug| debug.frames(place, begins));
        match described {
            Some(mut frames) if !frames.is_empty() => {
                for frame in &mut frames {
                    frame.module.clone_from(&self.name);
                }
                frames
            }
            _ => self.by_symbol(place),
        }
    }

    fn by_symbol(&self, place: &Place) -> Vec<Frame> {
        let unnamed = unnamed(self.name.clone(), place);
        let function = match self.functions.find(place.looked_up) {
            Some((name, start)) => Frame {
                symbol: Some(cut(name)),
                offset: place.shown.wrapping_sub(start),
                ..unnamed
            },
            None => unnamed,
        };
        let places = self.functions.places(place.looked_up);
        if places.is_empty() {
            return vec![function];
        }
        let frames = places.into_iter().map(|GoPlace { inlined, line }| {
            let (file, line) = line.unzip();
            Frame {
                symbol: inlined
                    .as_ref()
                    .map(|name| cut(name.clone()))
                    .or(function.symbol.clone()),
                inlined: inlined.is_some(),
                file: file.map(cut),
                line,
                ..function.clone()
            }
        });
        frames.collect()
    }
}

/// The frame of an address that nothing covers.
pub(crate) fn unnamed(module: Option<String>, place: &Place) -> Frame {
    Frame {
        module,
        offset: place.shown,
        ..Frame::default()
    }
}

/// The frame of code that the program has written and listed.
fn listed(language: Language, names: &HashMap<u64, (String, u64)>, place: &Place) -> Frame {
    // An address of one process's memory says nothing to anybody without a name.
    let Some((name, start)) = names.get(&place.looked_up) else {
        return Frame::default();
    };
    Frame {
        symbol: Some(cut(demangle(name))),
        offset: place.shown.wrapping_sub(*start),
        language,
        ..Frame::default()
    }
}

/// A name without what is beyond the bound.
fn cut(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rev().find(|&end| name.is_char_boundary(end));
        name.truncate(end.unwrap_or(0));
    }
    name
}

/// The functions of one file; a debug file is read when nothing else covers an address.
struct Functions {
    elf: Elf,
    own: Symbols,
    go: Option<GoTable>,
    apart: OnceCell<Option<Symbols>>,
}

impl Functions {
    fn of(elf: Elf, own: Symbols) -> Self {
        let bytes = FrameBytes::of(&elf, false);
        Self {
            go: GoTable::read(&elf, bytes.go, bytes.go_module.as_deref()),
            elf,
            own,
            apart: OnceCell::new(),
        }
    }

    /// What an address stands for, where the file says that without debug information: of Go code.
    fn places(&self, address: u64) -> Vec<GoPlace> {
        self.go.as_ref().map_or_else(Vec::new, |go| go.places(address))
    }

    /// Whether an address is in Go code.
    fn is_go(&self, address: u64) -> bool {
        self.go.as_ref().is_some_and(|go| go.covers(address))
    }

    /// The function that covers `address`: its name, and its own address.
    fn find(&self, address: u64) -> Option<(String, u64)> {
        let go = || self.go.as_ref()?.function(address);
        let apart = || {
            let read = || debug_file(&self.elf).map(|file| Symbols::read(&file));
            self.apart.get_or_init(read).as_ref()?.find(address)
        };
        self.own.find(address).or_else(go).or_else(apart)
    }
}

/// The debug information of one file.
struct Debug {
    symbolizer: Symbolizer,
    source: Source<'static>,
    /// What it is read from.
    _copy: File,
}

impl Debug {
    fn of(elf: &Elf) -> Option<Debug> {
        let copy = debug_copy(elf)?;
        let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
        Some(Debug {
            symbolizer: Symbolizer::builder().enable_demangling(false).build(),
            source: Source::Elf(ElfSource::new(path)),
            _copy: copy,
        })
    }

    /// Frames of an address; none where it says nothing of it. `begins`: where the function begins that the symbol table has there.
    fn frames(&self, place: &Place, begins: impl Fn() -> Option<u64>) -> Vec<Frame> {
        let input = Input::VirtOffset(place.looked_up);
        match self.symbolizer.symbolize_single(&self.source, input) {
            Ok(Symbolized::Sym(symbol)) => described(&symbol, place, begins),
            _ => Vec::new(),
        }
    }
}

/// The frames that one machine address stands for.
fn described(symbol: &Sym<'_>, place: &Place, begins: impl Fn() -> Option<u64>) -> Vec<Frame> {
    let start = match symbol.size {
        Some(size) if (symbol.offset as u64) < size as u64 => Some(symbol.addr),
        Some(_) => None,
        // A function in several pieces, as compilers make them of what is rarely run: debug information names it, and the symbol table has
        // where the piece begins.
        None if symbol.addr == 0 && symbol.code_info.is_some() => begins(),
        None => None,
    };
    let Some(start) = start.filter(|_| !symbol.name.is_empty()) else {
        return Vec::new();
    };
    let function = Frame {
        offset: place.shown.wrapping_sub(start),
        ..frame(&symbol.name, symbol.code_info.as_deref())
    };
    let inlined = symbol
        .inlined
        .iter()
        .rev()
        .take(INLINED_MAX)
        .map(|inlined| Frame {
            inlined: true,
            ..frame(&inlined.name, inlined.code_info.as_ref())
        });
    inlined.chain([function]).collect()
}

fn frame(name: &str, place: Option<&CodeInfo<'_>>) -> Frame {
    Frame {
        symbol: (!name.is_empty()).then(|| cut(demangle(name))),
        file: place.map(|place| cut(place.to_path().to_string_lossy().into_owned())),
        line: place.and_then(|place| place.line),
        language: Language::Native,
        ..Frame::default()
    }
}
