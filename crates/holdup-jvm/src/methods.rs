//! Methods by name, and lines of their bytecodes.
//!
//! In: the address of a method's structure. Out: `java.lang.Thread.sleep` and the name of its source file; a line where the
//! class file had a table of them. An address counts as a method's only if everything that it leads to fits: a pool of
//! constants that has a text at the name's number, a class with a name.

use crate::compressed::Numbers;
use crate::layout::Layout;
use crate::memory::{Memory, Source};
use holdup_evidence::{Frame, Language, Ns};
use std::collections::HashMap;
use std::sync::Arc;

/// Methods that are kept before all are forgotten; large servers run some ten thousand.
const METHODS_MAX: usize = 32_768;

/// Places of one method that are kept before they are forgotten. A method calls others at some ten places.
const PLACES_MAX: usize = 1024;

/// Longest name of a class or method that is shown, bytes. The format allows 65,535.
const NAME_MAX: u16 = 1024;

/// For so long a method is taken to be what it was, nanoseconds: classes go when a collector finds nobody who uses them.
const FRESH: Ns = 1_000_000_000;

/// The tag of a text in a pool of constants.
const UTF8: u8 = 1;

/// A method that was seen.
#[derive(Debug, Clone)]
pub(crate) struct Method {
    /// What it had by then, to be known again by.
    identity: Identity,
    seen: Ns,
    name: Arc<str>,
    file: Option<Arc<str>>,
    /// Frames by bytecode; `None`: without one.
    frames: HashMap<Option<u32>, Arc<Frame>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    constant: u64,
    pool: u64,
    name: u16,
}

/// Those that were seen.
#[derive(Debug, Default)]
pub(crate) struct Methods(HashMap<u64, Method>);

impl Methods {
    /// The frame of a method at a bytecode, if that is known; `None` where there is no method at this address.
    pub(crate) fn frame<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        layout: &Layout,
        method: u64,
        bytecode: Option<u32>,
        at: Ns,
    ) -> Option<Arc<Frame>> {
        let known = self.known(memory, layout, method, at)?;
        if let Some(frame) = known.frames.get(&bytecode) {
            return Some(Arc::clone(frame));
        }
        let line = bytecode.and_then(|bytecode| line(memory, layout, known.identity.constant, bytecode));
        let frame = Arc::new(Frame {
            symbol: Some(known.name.to_string()),
            file: known.file.as_ref().map(|file| file.to_string()),
            line,
            language: Language::Java,
            ..Frame::default()
        });
        if known.frames.len() >= PLACES_MAX {
            known.frames.clear();
        }
        known.frames.insert(bytecode, Arc::clone(&frame));
        Some(frame)
    }

    /// Which bytecode of a method a pointer is to.
    pub(crate) fn bytecode<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        layout: &Layout,
        method: u64,
        pointer: u64,
    ) -> Option<u32> {
        let constant = memory.pointer(method.checked_add(layout.method.constant)?)?;
        let code = constant.checked_add(layout.method.code)?;
        let size = memory.short(constant.checked_add(layout.method.code_size)?)?;
        let bytecode = u16::try_from(pointer.checked_sub(code)?).ok()?;
        (bytecode < size).then_some(u32::from(bytecode))
    }

    fn known<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        layout: &Layout,
        method: u64,
        at: Ns,
    ) -> Option<&mut Method> {
        let fresh = |known: &Method| at.saturating_sub(known.seen) < FRESH;
        if !self.0.get(&method).is_some_and(fresh) {
            let identity = identity(memory, layout, method)?;
            match self.0.get_mut(&method) {
                Some(known) if known.identity == identity => known.seen = at,
                _ => {
                    let read = read(memory, layout, identity, at)?;
                    if self.0.len() >= METHODS_MAX {
                        self.0.clear();
                    }
                    self.0.insert(method, read);
                }
            }
        }
        self.0.get_mut(&method)
    }
}

fn identity<S: Source>(memory: &mut Memory<S>, layout: &Layout, method: u64) -> Option<Identity> {
    let fields = &layout.method;
    let constant = memory.pointer(method.checked_add(fields.constant)?)?;
    Some(Identity {
        constant,
        pool: memory.pointer(constant.checked_add(fields.constants)?)?,
        name: memory.short(constant.checked_add(fields.name_index)?)?,
    })
}

fn read<S: Source>(memory: &mut Memory<S>, layout: &Layout, identity: Identity, at: Ns) -> Option<Method> {
    let fields = &layout.method;
    let class = memory.pointer(identity.pool.checked_add(fields.pool_holder)?)?;
    let class = class_name(memory, layout, class)?;
    let name = constant_text(memory, layout, identity.pool, identity.name)?;
    let file = fields.pool_file.and_then(|offset| {
        let index = memory.short(identity.pool.checked_add(offset)?)?;
        constant_text(memory, layout, identity.pool, index)
    });
    Some(Method {
        identity,
        seen: at,
        name: format!("{class}.{name}").into(),
        file: file.map(Into::into),
        frames: HashMap::new(),
    })
}

/// A class's name as programs write it.
pub(crate) fn class_name<S: Source>(memory: &mut Memory<S>, layout: &Layout, class: u64) -> Option<String> {
    let name = memory.pointer(class.checked_add(layout.method.class_name)?)?;
    let name = symbol(memory, layout, name)?.replace('/', ".");
    // Behind it stands where in memory a class without a name of its own lies, which differs from run to run.
    match name.split_once("+0x") {
        Some((name, _)) => Some(name.to_owned()),
        None => Some(name),
    }
}

/// The text at a number of a pool of constants.
pub(crate) fn constant_text<S: Source>(
    memory: &mut Memory<S>,
    layout: &Layout,
    pool: u64,
    index: u16,
) -> Option<String> {
    let fields = &layout.method;
    let length = memory.int(pool.checked_add(fields.pool_length)?)?;
    let index = u64::from(index);
    if index == 0 || index >= u64::from(length) {
        return None;
    }
    let tags = memory.pointer(pool.checked_add(fields.pool_tags)?)?;
    let tag = memory.byte(tags.checked_add(fields.tags)?.checked_add(index)?)?;
    if tag != UTF8 {
        return None;
    }
    let entry = memory.pointer(pool.checked_add(fields.pool_entries + index * 8)?)?;
    symbol(memory, layout, entry)
}

fn symbol<S: Source>(memory: &mut Memory<S>, layout: &Layout, symbol: u64) -> Option<String> {
    let length = memory.short(symbol.checked_add(layout.method.text_length)?)?;
    if length == 0 {
        return None;
    }
    memory.text(
        symbol.checked_add(layout.method.text)?,
        usize::from(length.min(NAME_MAX)),
    )
}

fn line<S: Source>(memory: &mut Memory<S>, layout: &Layout, constant: u64, bytecode: u32) -> Option<u32> {
    let fields = &layout.method;
    let flags = memory.short(constant.checked_add(fields.flags)?)?;
    if flags & fields.has_lines == 0 {
        return None;
    }
    let size = memory.short(constant.checked_add(fields.code_size)?)?;
    let table = constant.checked_add(fields.code + u64::from(size))?;
    Numbers::at(table, layout.version).line(memory, bytecode)
}
