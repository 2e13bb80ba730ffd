//! Stacks of a dump: each is taken apart once, however often it stands there.

use crate::gather::Out;
use holdup_evidence::observed::StackId;
use memchr::memchr;
use std::collections::HashMap;

/// Bytes of stacks that are kept to be known again; those of a thousand different threads take about two million.
const KNOWN: usize = 32 << 20;

/// Frames of one stack that are kept, the innermost: `StackOverflowError` shows 1024.
const DEEPEST: usize = 1024;

/// Bytes of one stack that are kept: frames have some hundred.
const MAX_STACK_BYTES: usize = 1 << 20;

/// The frames of the thread that is being read, and the stacks that were read.
#[derive(Debug)]
pub(in crate::formats) struct Frames {
    /// A frame as it is kept, made of one as it was written.
    kept_as: fn(&str) -> String,
    raw: Vec<u8>,
    depth: usize,
    known: HashMap<Box<[u8]>, StackId>,
    bytes: usize,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames::kept_as(plain)
    }
}

impl Frames {
    /// No frame yet.
    pub(in crate::formats) fn kept_as(kept_as: fn(&str) -> String) -> Frames {
        Frames {
            kept_as,
            raw: Vec::new(),
            depth: 0,
            known: HashMap::new(),
            bytes: 0,
        }
    }

    /// The next frame outwards.
    pub(in crate::formats) fn push(&mut self, frame: &[u8]) {
        if self.depth < DEEPEST && self.raw.len() + frame.len() <= MAX_STACK_BYTES {
            self.depth += 1;
            self.raw.extend_from_slice(frame);
            self.raw.push(b'\n');
        }
    }

    /// The innermost frame so far, as it stands in the dump.
    pub(super) fn innermost(&self) -> Option<&[u8]> {
        self.raw
            .split(|byte| *byte == b'\n')
            .next()
            .filter(|frame| !frame.is_empty())
    }

    /// The stack is whole.
    pub(in crate::formats) fn finish(&mut self, out: &mut Out<'_>) -> Option<StackId> {
        if self.raw.is_empty() {
            return None;
        }
        let id = match self.known.get(self.raw.as_slice()) {
            Some(id) => *id,
            None => self.intern(out),
        };
        self.raw.clear();
        self.depth = 0;
        Some(id)
    }

    fn intern(&mut self, out: &mut Out<'_>) -> StackId {
        let text = String::from_utf8_lossy(&self.raw);
        let frames: Vec<String> = text.lines().map(self.kept_as).collect();
        let id = out.stack(frames.iter().map(String::as_str));
        if self.bytes + self.raw.len() <= KNOWN {
            self.bytes += self.raw.len();
            self.known.insert(self.raw.as_slice().into(), id);
        }
        id
    }
}

/// A frame without the module it is of, which some dumps put before the class and some before the file:
/// `java.base/java.lang.Thread.run(Thread.java:840)`, `java.lang.Thread.run(java.base@17.0.15/Thread.java:840)`.
pub(super) fn plain(frame: &str) -> String {
    let frame = frame.trim();
    let Some((method, place)) = frame.split_once('(') else {
        return frame.to_owned();
    };
    let place = place.rsplit('/').next().unwrap_or(place);
    // A hidden class (a lambda) has a slash and an address in its name; a module stands before the first point.
    let method = match memchr(b'/', method.as_bytes()).map(|at| method.split_at(at)) {
        Some((module, class)) if is_module(module) => class.trim_start_matches('/'),
        _ => method,
    };
    format!("{method}({place}")
}

fn is_module(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@-+".contains(c);
    !name.contains("$$") && name.chars().all(plain)
}
