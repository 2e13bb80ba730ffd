//! Goroutines as Go's runtime prints them: on SIGQUIT, in a panic, `/debug/pprof/goroutine?debug=2` and `?debug=1`.
//!
//! In: headers with a state, functions, their places on lines of their own; or groups of goroutines with the same stack. Out: a snapshot; a frame is
//! `package.function(file:line)`. A goroutine that waits for a mutex has the address of its semaphore in its frames.

use super::dump::{Dump, call, number, owned};
use super::go_objects::{Objects, Seen};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{LockRef, LockWait, SeenThread, SnapshotKind, State};
use memchr::memmem::{find, rfind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("goroutines", Family::Threads, recognise)
    .about("a Go program's goroutines")
    .openings(&["SIGQUIT: quit", "goroutine "]);

/// What a profile of goroutines begins with.
const PROFILE: &[u8] = b"goroutine profile: total ";

const MINUTE: Ns = 60_000_000_000;

/// What Go says before it gives a program up whose goroutines all wait.
const DEADLOCK: &[u8] = b"fatal error: all goroutines are asleep - deadlock!";

/// Words of whoever ends a program because it hangs: the package `testing`, those that catch a signal, watchdogs. The stacks tell why.
const GAVE_UP: [&[u8]; 3] = [b"test timed out after ", b"terminated by signal", b"watchdog"];

/// A line without the signs of whoever quotes it, in a mail or in a report in Markdown.
fn unquoted(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b">").unwrap_or(text).trim_ascii_start();
    let begin = text.iter().take_while(|byte| **byte == b'`').count();
    let text = text.get(begin..).unwrap_or_default();
    let end = text.iter().rev().take_while(|byte| **byte == b'`').count();
    text.get(..text.len() - end).unwrap_or_default().trim_ascii()
}

/// Why the program ended, in the runtime's words.
fn ended(text: &[u8]) -> Option<&[u8]> {
    let why = text
        .strip_prefix(b"panic: ")
        .or_else(|| text.strip_prefix(b"fatal error: "))?;
    let tells = !why.is_empty() && !GAVE_UP.iter().any(|words| find(why, words).is_some());
    tells.then_some(text)
}

/// What lines begin with that say nothing of a goroutine.
const IGNORABLE: &[&str] = &[
    "SIGQUIT: quit",
    "SIGABRT: abort",
    "PC=",
    "fatal error:",
    "panic:",
    "[signal ",
    "exit status ",
    "created by ",
    "goroutine running on other thread",
    "...additional frames elided",
    "[originating from ",
    "Showing ",
    "-----",
];

/// Registers at the end of what SIGQUIT prints.
const REGISTERS: &[&str] = &[
    "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "rbp", "rsp", "r8", "r9", "r1", "r2", "rip", "rflags", "cs",
    "fs", "gs", "lr", "sp", "pc", "fault", "r0", "r3", "r4", "r5", "r6", "r7", "eax", "ebx", "ecx", "edx",
    "edi", "esi", "ebp", "esp", "eip", "eflags",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut listed = (false, false);
    for line in head.split(|byte| *byte == b'\n') {
        if header(line).is_some() || several(line.trim_ascii()).is_some() || line.starts_with(PROFILE) {
            return Sureness::Certain;
        }
        listed.0 |= debuggers(line).is_some();
        listed.1 |= one_line(line.trim_ascii()).is_some();
    }
    match listed {
        (true, true) => Sureness::Certain,
        _ => Sureness::No,
    }
}

#[derive(Debug)]
struct Reader {
    dump: Dump,
    /// The function whose place is on the next line.
    function: Option<Vec<u8>>,
    /// Whether the next place is of the one that made the goroutine.
    creator: bool,
    deadlock: bool,
    /// The methods of the goroutine that is being read, and what all do with their objects.
    seen: Seen,
    objects: Objects,
    /// Whether it was told why the program ended: what panics then is what cleans up.
    ended: bool,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            dump: Dump::of(SnapshotKind::Go),
            function: None,
            creator: false,
            deadlock: false,
            seen: Seen::default(),
            objects: Objects::default(),
            ended: false,
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let indented = line.first().is_some_and(u8::is_ascii_whitespace);
        let text = line.trim_ascii();
        if text.is_empty() {
            self.flush();
            self.creator = false;
            return Understood::Ignorable;
        }
        if let Some(goroutine) = header(text) {
            self.flush();
            self.goroutine_ended();
            self.dump.begin(goroutine, out);
            if std::mem::take(&mut self.deadlock) {
                self.dump.snapshot(out).deadlocks.push(Vec::new());
            }
            return Understood::Evidence;
        }
        if let Some((alike, goroutine)) = several(text) {
            self.flush();
            self.dump.begin(goroutine, out);
            self.dump.stands_for(alike);
            return Understood::Evidence;
        }
        if let Some(goroutine) = debuggers(text) {
            self.flush();
            self.dump.begin(goroutine, out);
            return Understood::Evidence;
        }
        if let Some((function, place)) = one_line(text) {
            if self.dump.thread().is_none() {
                // Of one whose heading is not in the copy.
                self.dump.begin(SeenThread::default(), out);
            }
            self.lock(function, b"");
            return self.frame(function, place);
        }
        if text.starts_with(PROFILE) {
            self.dump.end(out);
            return Understood::Evidence;
        }
        if let Some(alike) = group(text) {
            self.dump.begin(of_group(alike), out);
            self.dump.stands_for(alike);
            return Understood::Evidence;
        }
        if let Some(frame) = text.strip_prefix(b"#\t") {
            return self.grouped(frame);
        }
        if unquoted(text) == DEADLOCK {
            self.deadlock = true;
            return Understood::Evidence;
        }
        if let Some(why) = ended(unquoted(text)).filter(|_| !self.ended) {
            self.ended = true;
            self.flush();
            out.statement(statements::ended(why, out.here()));
            return Understood::Evidence;
        }
        if indented && let Some(place) = place(text) {
            if std::mem::take(&mut self.creator) {
                return Understood::Ignorable;
            }
            return match self.function.take() {
                Some(function) => self.frame(&function, place),
                None => Understood::No,
            };
        }
        self.creator = text.starts_with(b"created by ");
        if IGNORABLE.iter().any(|start| text.starts_with(start.as_bytes())) || is_register(text) {
            self.flush();
            return Understood::Ignorable;
        }
        match call(text) {
            Some((function, arguments)) if self.dump.thread().is_some() => {
                self.flush();
                self.seen.call(function, arguments);
                self.lock(function, arguments);
                self.function = Some(function.to_vec());
                Understood::Evidence
            }
            _ => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.flush();
        self.goroutine_ended();
        self.objects.end(out);
        self.dump.end(out);
    }
}

impl Reader {
    /// The goroutine has no more frames.
    fn goroutine_ended(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        if let Some(thread) = self.dump.thread() {
            let who = (thread.number, thread.words.as_str(), thread.waited);
            self.objects.take(seen, who, &thread.quote);
        }
    }

    /// A function without a place.
    fn flush(&mut self) {
        if let Some(function) = self.function.take() {
            self.frame(&function, b"");
        }
    }

    fn frame(&mut self, function: &[u8], place: &[u8]) -> Understood {
        let mut text = function.to_vec();
        text.push(b'(');
        text.extend_from_slice(place);
        text.push(b')');
        self.dump.frame(&text);
        Understood::Evidence
    }

    /// A frame of a group: an address, the function with the way into it, its place; between tabs.
    fn grouped(&mut self, frame: &[u8]) -> Understood {
        let mut parts = frame.split(|byte| *byte == b'\t').filter(|part| !part.is_empty());
        let (Some(_), Some(function), at) = (parts.next(), parts.next(), parts.next()) else {
            return Understood::No;
        };
        if self.dump.thread().is_none() {
            return Understood::No;
        }
        let function = function.get(..rfind(function, b"+0x").unwrap_or(function.len()));
        let function = function.unwrap_or_default();
        self.lock(function, b"");
        self.frame(function, at.and_then(place).unwrap_or_default())
    }

    /// The lock that a goroutine waits for, by the functions that take it. An address with a question mark may be a value of
    /// another time; where the lock's own address is not known, that of its semaphore stands for it.
    fn lock(&mut self, function: &[u8], arguments: &[u8]) {
        const TAKE: [(&[u8], &str); 7] = [
            (b"runtime_SemacquireMutex", "sync.Mutex"),
            (b"runtime_SemacquireRWMutexR", "sync.RWMutex"),
            (b"runtime_SemacquireRWMutex", "sync.RWMutex"),
            (b"(*Mutex).lockSlow", "sync.Mutex"),
            (b"(*Mutex).Lock", "sync.Mutex"),
            (b"(*RWMutex).RLock", "sync.RWMutex"),
            (b"(*RWMutex).Lock", "sync.RWMutex"),
        ];
        let of_sync = function.starts_with(b"sync.") || function.starts_with(b"internal/sync.");
        let known = TAKE.iter().find(|(name, _)| function.ends_with(name));
        let (Some((_, class)), Some(thread)) = (known.filter(|_| of_sync), self.dump.thread()) else {
            return;
        };
        self.seen.waits();
        let first = arguments.split(|byte| *byte == b',').next().unwrap_or_default();
        let sure = first.starts_with(b"0x") && !first.ends_with(b"?");
        let lock = thread.waits_for.get_or_insert_with(|| LockRef {
            wait: Some(LockWait::Enter),
            ..LockRef::default()
        });
        (*class).clone_into(&mut lock.class);
        if sure {
            lock.id = owned(first);
        }
    }
}

/// `goroutine 34 gp=0xc000 m=nil [chan send, 5 minutes, locked to thread]:`
fn header(line: &[u8]) -> Option<SeenThread> {
    let (id, rest) = number(line.trim_ascii().strip_prefix(b"goroutine ")?)?;
    let mut thread = in_state(rest)?;
    thread.name = format!("goroutine {id}");
    thread.number = Some(id);
    Some(thread)
}

/// `48 goroutines [semacquire, 4 minutes]:`: how many have the stack that follows, as tools print a dump that put those alike together.
fn several(line: &[u8]) -> Option<(usize, SeenThread)> {
    let (alike, rest) = number(line)?;
    let rest = rest.strip_prefix(b" goroutine")?;
    let mut thread = in_state(rest.strip_prefix(b"s").unwrap_or(rest))?;
    let alike = usize::try_from(alike).ok()?;
    thread.name = of_group(alike).name;
    Some((alike, thread))
}

/// A goroutine by what stands behind its name: ` [chan send, 5 minutes]:`.
fn in_state(rest: &[u8]) -> Option<SeenThread> {
    let rest = rest.strip_suffix(b":")?;
    let states = rest.get(find(rest, b" [")? + 2..)?.strip_suffix(b"]")?;
    let mut parts = states.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let found = parts.next()?;
    let found = found.strip_suffix(b" (scan)").unwrap_or(found);
    let minutes = parts.find_map(|part| {
        let (minutes, unit) = number(part)?;
        (unit == b" minutes").then_some(minutes)
    });
    Some(SeenThread {
        state: match found {
            b"running" | b"runnable" => State::Runnable,
            b"sleep" => State::Sleeping,
            _ => State::Waiting,
        },
        words: owned(found),
        waited: minutes.map(|minutes| minutes.saturating_mul(MINUTE)),
        ..SeenThread::default()
    })
}

/// `Goroutine 87`, `* Goroutine 12 - User: …`: how a debugger (Delve) lists one.
fn debuggers(line: &[u8]) -> Option<SeenThread> {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"* ").unwrap_or(line);
    let (id, rest) = number(line.strip_prefix(b"Goroutine ")?)?;
    (rest.is_empty() || rest.starts_with(b" - ") || rest.starts_with(b":")).then(|| SeenThread {
        name: format!("goroutine {id}"),
        number: Some(id),
        state: State::Waiting,
        ..SeenThread::default()
    })
}

/// `sync.(*RWMutex).RLock (/go/src/sync/rwmutex.go:71)`: function and place on one line, as a debugger prints a stack.
fn one_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_suffix(b")")?;
    let at = rfind(inner, b" (")?;
    let place = place(inner.get(at + 2..)?)?;
    let function = inner.get(..at)?;
    let is_go = place.split(|byte| *byte == b':').next()?.ends_with(b".go");
    (is_go && !function.is_empty() && !function.starts_with(b"created at")).then_some((function, place))
}

/// `7 @ 0x48614e 0x464b45`: how many goroutines have the stack that follows.
fn group(line: &[u8]) -> Option<usize> {
    let (alike, rest) = number(line)?;
    rest.starts_with(b" @ 0x").then(|| usize::try_from(alike).ok())?
}

fn of_group(alike: usize) -> SeenThread {
    SeenThread {
        name: match alike {
            1 => "a goroutine".to_owned(),
            _ => format!("one of {alike} goroutines"),
        },
        state: State::Unknown,
        ..SeenThread::default()
    }
}

/// `/src/main.go:77 +0x4d4 fp=0x…`: the file's name and the line.
fn place(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    let (place, rest) = text.split_at(end);
    let place = place.get(rfind(place, b"/").map_or(0, |at| at + 1)..)?;
    let line = place.get(rfind(place, b":")? + 1..)?;
    let is_place = !line.is_empty() && line.iter().all(u8::is_ascii_digit);
    let rest = rest.trim_ascii();
    (is_place && (rest.is_empty() || rest.starts_with(b"+0x") || rest.starts_with(b"fp="))).then_some(place)
}

fn is_register(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let value = line.get(name.len()..).unwrap_or_default().trim_ascii();
    value.starts_with(b"0x")
        && value.len() <= 18
        && REGISTERS
            .iter()
            .any(|register| name.starts_with(register.as_bytes()))
}
