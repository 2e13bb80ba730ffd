//! Threads of a Python program: `py-spy dump`, `pystack`, `pytest-timeout`, and the standard library's `faulthandler`.
//!
//! In: headers of threads, frames with file and line, innermost first, of `pystack` and `pytest-timeout` last. Out: a snapshot; a frame is `function(file:line)`.

use super::dump::{Dump, call, number, owned, without_remark};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use holdup_evidence::observed::{SeenThread, SnapshotKind, State};
use holdup_evidence::units::duration;
use memchr::memmem::{find, rfind};
use std::collections::VecDeque;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("python-stacks", Family::Threads, recognise)
    .about("the threads of a Python program")
    .openings(&["Current thread 0x", "Fatal Python error: "]);

/// What lines begin with that say nothing of a thread.
const IGNORABLE: &[&str] = &[
    "Fatal Python error:",
    "Extension modules:",
    "<no Python frame>",
    "...",
    "Python runtime state:",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    if lines.any(|line| thread(line).is_some() || line == BY_GDB) {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

/// What gdb's `py-bt` prints above the frames of a thread.
const BY_GDB: &[u8] = b"Traceback (most recent call first):";

/// `<built-in method acquire of _thread.RLock object at remote 0x7f98>`: a function in C, of which gdb knows no line.
fn built_in(line: &[u8]) -> Option<Vec<u8>> {
    let rest = line.strip_prefix(b"<built-in method ")?;
    let end = find(rest, b" of ").or_else(|| find(rest, b" object "))?;
    let of = rest.get(end..)?.strip_prefix(b" of ");
    let of = of
        .and_then(|of| of.get(..find(of, b" object")?))
        .unwrap_or_default();
    let mut text = rest.get(..end)?.to_vec();
    text.push(b'(');
    text.extend_from_slice(of);
    text.push(b')');
    Some(text)
}

#[derive(Debug)]
struct Reader {
    dump: Dump,
    pid: Option<u32>,
    /// Frames of a thread whose innermost one comes last.
    outermost_first: Option<VecDeque<Vec<u8>>>,
    /// Whether gdb printed it, with the source below each frame.
    by_gdb: bool,
    /// Why the dump was written, where that is a limit of time that ran out.
    timeout: String,
}

/// Frames of one such thread that are kept, the innermost ones.
const FRAMES: usize = 1_000;

impl Reader {
    /// Gives the dump the frames that came in the other order.
    fn turn(&mut self) {
        for frame in self.outermost_first.take().unwrap_or_default().iter().rev() {
            self.dump.frame(frame);
        }
    }
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            dump: Dump::of(SnapshotKind::Python),
            pid: None,
            outermost_first: None,
            by_gdb: false,
            timeout: String::new(),
        }
    }
}

/// The limit of time that `faulthandler` was given: `Timeout (0:01:15)!`.
fn timeout(line: &[u8]) -> Option<String> {
    let (hours, rest) = number(line.strip_prefix(b"Timeout (")?)?;
    let (minutes, rest) = number(rest.strip_prefix(b":")?)?;
    let (seconds, _) = number(rest.strip_prefix(b":")?)?;
    let sum = hours
        .checked_mul(3_600)?
        .checked_add(minutes.checked_mul(60)?)?
        .checked_add(seconds)?;
    Some(format!(
        "a watchdog of {} ran out",
        duration(sum.checked_mul(1_000_000_000)?)
    ))
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if line == BY_GDB {
            self.by_gdb = true;
            if self.dump.thread().is_none() {
                self.dump.begin(SeenThread::default(), out);
            }
            return Understood::Evidence;
        }
        if let Some(frame) = built_in(line) {
            self.dump.frame(&frame);
            return Understood::Evidence;
        }
        if let Some(mut thread) = thread(line).or_else(|| super::native::thread(line)) {
            self.turn();
            thread.pid = self.pid;
            if thread.words.is_empty() {
                thread.words.clone_from(&self.timeout);
            }
            self.dump.begin(thread, out);
            self.outermost_first = (is_pystack(line) || of_pytest(line).is_some()).then(VecDeque::new);
            return Understood::Evidence;
        }
        if let Some((pid, command)) = process(line) {
            self.turn();
            self.dump.end(out);
            self.pid = u32::try_from(pid).ok();
            self.dump.snapshot(out).program = Some(owned(command));
            return Understood::Evidence;
        }
        if let Some(limit) = timeout(line) {
            self.turn();
            self.dump.end(out);
            self.timeout = limit;
            return Understood::Evidence;
        }
        if is_banner(line) {
            self.turn();
            self.dump.end(out);
            self.timeout = "the limit of time of a test ran out".to_owned();
            return Understood::Evidence;
        }
        if is_version(line) || IGNORABLE.iter().any(|start| line.starts_with(start.as_bytes())) {
            return Understood::Ignorable;
        }
        if let Some(frames) = &mut self.outermost_first {
            let of_language = ["(Python) ", "(C) "]
                .iter()
                .find_map(|language| line.strip_prefix(language.as_bytes()))
                .or_else(|| line.starts_with(b"File \"").then_some(line));
            return match of_language.map(frame) {
                Some(Some(frame)) => {
                    if frames.len() >= FRAMES {
                        frames.pop_front();
                        out.account().left_out += 1;
                    }
                    frames.push_back(frame);
                    Understood::Evidence
                }
                // The source line below a frame.
                _ => Understood::Ignorable,
            };
        }
        let found = frame(line).or_else(|| frame(without_remark(line)?));
        match found {
            Some(frame) if self.dump.frame(&frame) => Understood::Evidence,
            None if self.by_gdb => Understood::Ignorable,
            _ => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.turn();
        self.dump.end(out);
    }
}

const PYSTACK: &[u8] = b"Traceback for thread ";

/// `Traceback for thread 112 (python) [Has the GIL] (most recent call last):`
fn is_pystack(line: &[u8]) -> bool {
    line.starts_with(PYSTACK)
}

fn of_pystack(line: &[u8]) -> Option<SeenThread> {
    let (tid, rest) = number(line.strip_prefix(PYSTACK)?)?;
    let rest = rest.strip_suffix(b"(most recent call last):")?.trim_ascii();
    let name = rest
        .strip_prefix(b"(")
        .and_then(|rest| rest.get(..find(rest, b")")?));
    let found = find(rest, b"[").and_then(|at| rest.get(at + 1..rest.len().checked_sub(1)?));
    Some(SeenThread {
        name: name.map_or_else(|| format!("thread {tid}"), owned),
        tid: u32::try_from(tid).ok(),
        words: found.map(owned).unwrap_or_default(),
        ..SeenThread::default()
    })
}

/// `~~~~ Stack of Thread-6 (139742417913600) ~~~~`: pytest-timeout, of each thread of a test whose time ran out.
fn of_pytest(line: &[u8]) -> Option<SeenThread> {
    let bare = line.trim_ascii();
    let inner = bare.strip_prefix(b"~~~")?;
    let at = find(inner, b"Stack of ")?;
    let (waves, rest) = inner.split_at_checked(at)?;
    let wave = |byte: &u8| matches!(byte, b'~' | b' ');
    let end = rest.iter().rposition(|byte| !wave(byte))? + 1;
    let rest = rest.get(b"Stack of ".len()..end)?;
    let open = rfind(rest, b" (")?;
    let (id, behind) = number(rest.get(open + 2..)?)?;
    (waves.iter().all(wave) && behind == b")").then(|| SeenThread {
        name: owned(rest.get(..open).unwrap_or_default()),
        number: Some(id),
        ..SeenThread::default()
    })
}

/// `++++ Timeout ++++`: what pytest-timeout prints above and below the stacks.
fn is_banner(line: &[u8]) -> bool {
    let inner = line
        .strip_prefix(b"+++")
        .and_then(|line| line.strip_suffix(b"+++"));
    inner.is_some_and(|inner| {
        let plus = |byte: &u8| matches!(byte, b'+' | b' ');
        let from = inner.iter().position(|byte| !plus(byte)).unwrap_or(0);
        let end = inner.iter().rposition(|byte| !plus(byte)).map_or(0, |at| at + 1);
        inner.get(from..end) == Some(b"Timeout")
    })
}

/// `Thread 13515 (active+gil): "MainThread"`, `Thread 0x7F39 (idle)`, `Current thread 0x00007f399da63b80 [name] (most recent call first):`
fn thread(line: &[u8]) -> Option<SeenThread> {
    if is_pystack(line) {
        return of_pystack(line);
    }
    if let Some(thread) = of_pytest(line) {
        return Some(thread);
    }
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
    let (found, rest) = rest.split_at(close);
    let state = match found.split(|byte| *byte == b'+').next()? {
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
        words: owned(found),
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
            let function = function.strip_prefix(b",").unwrap_or(function);
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
