//! Who asked: the one function of a user stack that a reader should look at.
//!
//! The problem: the innermost frames are always the C library's, and the outermost its start code; neither
//! says who wanted it. The choice: from the innermost outward the first code that is neither. In the program's
//! own code that is the innermost function with a name. In a library it is the outermost: what the program
//! called (`RAND_status`), not what the library does inside. Code without names is named by module and offset.
//! Where there are Java frames, one of those asked: what is under them is the virtual machine. Where there are Python frames, the
//! innermost one that is neither of the standard library nor of an installed package; likewise of JavaScript, Ruby, PHP, Perl,
//! Go and Rust. C++'s runtime counts as the C library does where the program has names, and so do its templates within the program.

use holdup_evidence::{Cause, Frame, Language};
use holdup_knowledge::user_code::of_c_library;
use holdup_knowledge::{bash, cpp, go, java, javascript, perl, php, python, ruby, rust};
use holdup_model::attributed::{Judge, JudgedBy};

/// Functions that every program or thread starts in.
const START: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "__libc_start_main_stage2",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__clone_internal",
];

/// What names of shared libraries have.
const LIBRARY: &str = ".so";

/// The function to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asking {
    /// Its name, or `module+0xoffset`.
    pub frame: Option<String>,
    /// Its module.
    pub module: Option<String>,
    /// Whether `frame` is a name.
    pub named: bool,
}

/// Of what stacks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedOf<'a> {
    /// Of CPU time.
    Cpu,
    /// Of a wait: its cause and call, unless its purpose is known better than stacks tell it.
    Wait(Option<(Cause, Option<&'a str>)>),
}

impl<'a> AskedOf<'a> {
    /// The cause and call of a wait of which stacks may tell more.
    pub(super) fn wait(self) -> Option<(Cause, Option<&'a str>)> {
        match self {
            AskedOf::Wait(wait) => wait,
            AskedOf::Cpu => None,
        }
    }
}

/// Whether stacks may tell what a wait was for: a runtime that named the lock knows better.
pub(super) fn may_be_told(judged_by: Option<JudgedBy>) -> bool {
    judged_by.is_none_or(|by| by.judge != Judge::RuntimeLock)
}

fn starts(frame: &Frame) -> bool {
    frame.symbol.as_deref().is_some_and(|symbol| {
        let bare = symbol.split(['@', '.']).next().unwrap_or(symbol);
        START.contains(&bare)
    })
}

fn of(frame: &Frame) -> Asking {
    let name = frame.symbol.clone().unwrap_or_else(|| {
        let module = frame.module.as_deref().unwrap_or("[anonymous]");
        format!("{module}+{:#x}", frame.offset)
    });
    Asking {
        frame: Some(name),
        module: frame.module.clone(),
        named: frame.symbol.is_some(),
    }
}

/// Of Java frames: who asked, or, where all are the runtime's own, what the thread began with.
fn in_java(stack: &[Frame]) -> Option<Asking> {
    let frames: Vec<&str> = stack
        .iter()
        .filter(|frame| frame.language == Language::Java)
        .filter_map(|frame| frame.symbol.as_deref())
        .collect();
    let begins = |frame: &&&str| java::class(frame) != "java.lang.Thread";
    let outermost = || frames.iter().rev().find(begins).or(frames.last()).copied();
    let asker = java::asker(&frames).or_else(outermost)?;
    Some(Asking {
        frame: Some(java::bare(asker).to_owned()),
        module: None,
        named: true,
    })
}

/// Of Python frames: who asked, or, where none is the program's own, what the thread began with.
fn in_python(stack: &[Frame]) -> Option<Asking> {
    let asker = python::asker(stack)?;
    Some(Asking {
        frame: asker.symbol.clone(),
        module: None,
        named: asker.symbol.is_some(),
    })
}

/// Of JavaScript frames: who asked, or, where none is the program's own, what the program began with.
fn in_javascript(stack: &[Frame]) -> Option<Asking> {
    let frames = || {
        stack
            .iter()
            .filter(|frame| frame.language == Language::JavaScript)
    };
    let file = |frame: &&Frame| frame.file.clone().unwrap_or_default();
    let own = frames().find(|frame| !javascript::of_library(&file(frame)));
    let installed = || frames().find(|frame| javascript::is_installed(&file(frame)));
    let asker = own.or_else(installed).or_else(|| frames().next_back())?;
    Some(Asking {
        frame: asker.symbol.clone(),
        module: None,
        named: asker.symbol.is_some(),
    })
}

/// Of a script's frames: who asked, or, where none is the program's own, what the program began with.
fn in_script(stack: &[Frame], language: Language, of_library: fn(&str) -> bool) -> Option<Asking> {
    let frames = || stack.iter().filter(|frame| frame.language == language);
    let own = frames().find(|frame| !of_library(frame.file.as_deref().unwrap_or_default()));
    let asker = own.or_else(|| frames().next_back())?;
    Some(Asking {
        frame: asker.symbol.clone(),
        module: None,
        named: asker.symbol.is_some(),
    })
}

/// Of Go frames: who asked, or, where none is the application's own, what a goroutine of a library began with, or else the innermost
/// function of the runtime that does more than make a call.
fn in_go(stack: &[Frame]) -> Option<Asking> {
    let frames = || stack.iter().filter(|frame| frame.language == Language::Go);
    let names = |frame: &&Frame, one: fn(&str) -> bool| frame.symbol.as_deref().is_some_and(one);
    let own = frames().find(|frame| go::is_application(frame));
    let begun = || frames().rfind(|frame| names(frame, |symbol| !go::is_of_the_runtimes_code(symbol)));
    let runtime = || frames().find(|frame| names(frame, |symbol| !go::makes_calls(symbol)));
    own.or_else(begun).or_else(runtime).map(of)
}

/// Of a Rust program's own code, where that is innermost: who asked, of the frames that are neither the C library's nor start code. The
/// standard library and fetched crates are compiled into the program.
fn in_rust(left: &[&Frame]) -> Option<Asking> {
    let module = left.first()?.module.as_deref();
    let mut own = left
        .iter()
        .take_while(|frame| frame.module.as_deref() == module)
        .filter(|frame| frame.symbol.is_some());
    own.find(|frame| !rust::of_library(frame)).map(|frame| of(frame))
}

/// Of compiled code, the C library's frames and start code left out: of the program, the innermost function with a name that is no template of
/// the standard library; of a library, what the program called.
fn in_modules(left: &[&Frame]) -> Option<Asking> {
    let (first, last) = (left.first()?, left.last()?);
    let named = || {
        left.iter()
            .take_while(|frame| frame.module == first.module)
            .filter(|frame| frame.symbol.is_some())
    };
    // A library may have begun the thread in which the program runs.
    let of_program = first.module == last.module || !is_library(first);
    let chosen = match of_program {
        true => named()
            .find(|frame| !cpp::of_library(frame))
            .or_else(|| named().next()),
        false => named().last(),
    };
    Some(of(chosen.unwrap_or(first)))
}

/// Whether code is of a shared library, by the name of its file.
fn is_library(frame: &Frame) -> bool {
    frame
        .module
        .as_deref()
        .is_none_or(|module| module.contains(LIBRARY))
}

/// The frame of the function to look at, where it has a name.
pub fn frame(stack: &[Frame]) -> Option<&Frame> {
    let chosen = choose(stack);
    let name = chosen.frame.filter(|_| chosen.named)?;
    stack
        .iter()
        .find(|frame| frame.symbol.as_deref() == Some(name.as_str()))
}

/// Whether a function is of the application: neither of its runtime, nor of a library, nor of an installed package.
#[must_use]
pub fn is_applications(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    match frame.language {
        Language::Java => !frame.symbol.as_deref().is_none_or(java::of_library),
        Language::Python => !python::is_of_library(frame),
        Language::JavaScript => !javascript::of_library(file) && !javascript::is_installed(file),
        Language::Ruby => !ruby::of_library(file),
        Language::Php => !php::of_library(file),
        Language::Perl => !perl::of_library(file),
        Language::Bash => !bash::of_library(file),
        Language::Go => go::is_application(frame),
        Language::Kernel => false,
        Language::Native => {
            !is_library(frame)
                && !rust::of_library(frame)
                && !cpp::of_library(frame)
                && !cpp::of_runtime(frame)
        }
    }
}

/// Chooses; nothing when there is no frame that could be it.
pub fn choose(stack: &[Frame]) -> Asking {
    if let Some(asking) = in_java(stack) {
        return asking;
    }
    if let Some(asking) = in_python(stack) {
        return asking;
    }
    if let Some(asking) = in_javascript(stack) {
        return asking;
    }
    if let Some(asking) = in_script(stack, Language::Ruby, ruby::of_library) {
        return asking;
    }
    if let Some(asking) = in_script(stack, Language::Php, php::of_library) {
        return asking;
    }
    if let Some(asking) = in_script(stack, Language::Perl, perl::of_library) {
        return asking;
    }
    if let Some(asking) = in_script(stack, Language::Bash, bash::of_library) {
        return asking;
    }
    if let Some(asking) = in_go(stack) {
        return asking;
    }
    let left: Vec<&Frame> = stack
        .iter()
        .filter(|frame| !of_c_library(frame) && !starts(frame))
        .collect();
    // A library that Rust calls is named as ever.
    let rust = rust::is_rust(stack) && left.first().is_some_and(|frame| rust::of_library(frame));
    if let Some(asking) = rust.then(|| in_rust(&left)).flatten() {
        return asking;
    }
    let program: Vec<&Frame> = left
        .iter()
        .copied()
        .filter(|frame| !cpp::of_runtime(frame))
        .collect();
    // Without names of the program, what it called of the runtime says more.
    let asking = in_modules(&program).filter(|asking| asking.named);
    if let Some(asking) = asking.or_else(|| in_modules(&left)) {
        return asking;
    }
    stack
        .iter()
        .rev()
        .find(|frame| !starts(frame))
        .map(of)
        .unwrap_or_default()
}

/// Where in the application's code a stack stands: the frame of the function that asked, where that has a name and a source file.
pub(super) fn place(stack: &[Frame]) -> Option<Frame> {
    let asking = choose(stack);
    let asker = asking.frame.filter(|_| asking.named)?;
    let is = |frame: &&Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        match frame.language {
            Language::Java => java::bare(symbol) == asker,
            _ => symbol == asker && (asking.module.is_none() || frame.module == asking.module),
        }
    };
    let frame = stack.iter().find(is).filter(|frame| frame.file.is_some())?;
    Some(Frame {
        symbol: Some(asker),
        ..frame.clone()
    })
}

#[cfg(test)]
mod tests;
