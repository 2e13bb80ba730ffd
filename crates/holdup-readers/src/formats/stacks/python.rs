//! Threads of a Python program: `py-spy dump`, and the standard library's `faulthandler`.
//!
//! In: headers of threads, frames with file and line, innermost first. Out: a snapshot; a frame is `function(file:line)`.

use super::dump::{Dump, call, number, owned};
use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use holdup_evidence::observed::{SeenThread, SnapshotKind, State};
use memchr::memmem::{find, rfind};

pub(crate) static FORMAT: Format = Format {
    id: "python-stacks",
    about: "the threads of a Python program",
    family: Family::Threads,
    recognise,
    openings: &["Current thread 0x", "Fatal Python error: "],
    shape: Shape::Lines(|| Box::<Reader>::default()),
};

/// What lines begin with that say nothing of a thread.
const IGNORABLE: &[&str] = &[
    "Fatal Python error:",
    "Extension modules:",
    "Timeout (",
    "<no Python frame>",
    "...",
    "Python runtime state:",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    if lines.any(|line| thread(line).is_some()) {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

#[derive(Debug)]
struct Reader {
    dump: Dump,
    pid: Option<u32>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            dump: Dump::of(SnapshotKind::Python),
            pid: None,
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(mut thread) = thread(line) {
            thread.pid = self.pid;
            self.dump.begin(thread, out);
            return Understood::Evidence;
        }
        if let Some((pid, command)) = process(line) {
            self.dump.end(out);
            self.pid = u32::try_from(pid).ok();
            self.dump.snapshot(out).program = Some(owned(command));
            return Understood::Evidence;
        }
        if is_version(line) || IGNORABLE.iter().any(|start| line.starts_with(start.as_bytes())) {
            return Understood::Ignorable;
        }
        match frame(line) {
            Some(frame) if self.dump.frame(&frame) => Understood::Evidence,
            _ => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.dump.end(out);
    }
}

/// `Thread 13515 (active+gil): "MainThread"`, `Thread 0x7F39 (idle)`, `Current thread 0x00007f399da63b80 [name] (most recent call first):`
fn thread(line: &[u8]) -> Option<SeenThread> {
    let current = line.strip_prefix(b"Current thread ");
    let rest = current.or_else(|| line.strip_prefix(b"Thread "))?;
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let (id, rest) = rest.split_at(end);
    let rest = rest.trim_ascii_start();
    let tid = number(id).filter(|(_, rest)| rest.is_empty());
    let hex = id
        .strip_prefix(b"0x")
        .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    if tid.is_none() && hex.is_none() {
        return None;
    }
    if let Some(name) = rest.strip_suffix(b"(most recent call first):") {
        let name = name.trim_ascii_end();
        let name = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
        return Some(SeenThread {
            name: owned(name.unwrap_or(id)),
            number: hex.and_then(|hex| u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()),
            ..SeenThread::default()
        });
    }
    let rest = rest.strip_prefix(b"(")?;
    let close = rest.iter().position(|byte| *byte == b')')?;
    let (told, rest) = rest.split_at(close);
    let state = match told.split(|byte| *byte == b'+').next()? {
        b"active" => State::Runnable,
        b"idle" => State::Waiting,
        _ => return None,
    };
    let name = rest
        .strip_prefix(b"):")
        .or_else(|| rest.strip_prefix(b")"))?
        .trim_ascii();
    let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
    Some(SeenThread {
        name: owned(name.unwrap_or(id)),
        tid: tid.and_then(|(tid, _)| u32::try_from(tid).ok()),
        state,
        words: owned(told),
        ..SeenThread::default()
    })
}

/// `Process 13515: python3 app.py`
fn process(line: &[u8]) -> Option<(u64, &[u8])> {
    let (pid, rest) = number(line.strip_prefix(b"Process ")?)?;
    Some((pid, rest.strip_prefix(b": ")?))
}

/// `Python v3.11.7 (/usr/bin/python3.11)`
fn is_version(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"Python v");
    rest.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
}

/// A frame as both write it: `pay (app.py:10)`, `File "/srv/app.py", line 10 in pay`.
fn frame(line: &[u8]) -> Option<Vec<u8>> {
    let (function, file, number_of) = match line.strip_prefix(b"File \"") {
        Some(rest) => {
            let end = find(rest, b"\", line ")?;
            let (file, rest) = rest.split_at(end);
            let rest = rest.get(8..)?;
            let (_, function) = number(rest)?;
            let line = rest.get(..rest.len() - function.len())?;
            (function.strip_prefix(b" in ")?, file, line)
        }
        None => {
            let (function, place) = call(line)?;
            let at = rfind(place, b":")?;
            (function, place.get(..at)?, place.get(at + 1..)?)
        }
    };
    if number_of.is_empty() || !number_of.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut text = function.to_vec();
    text.push(b'(');
    text.extend_from_slice(file);
    text.push(b':');
    text.extend_from_slice(number_of);
    text.push(b')');
    Some(text)
}
