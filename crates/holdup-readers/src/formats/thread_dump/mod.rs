//! Thread dumps of a HotSpot JVM as text: jstack, `jcmd Thread.print`, `kill -3`, `jcmd Thread.dump_to_file`.
//!
//! In: dumps of JDK 5 to 25, one after another, with or without the lines around the threads, indented or not. Out: a
//! [`Snapshot`] for each dump. A stack is looked up whole, as bytes: in a series of dumps most threads stand where they
//! stood, so that names are taken apart once.

mod frames;
mod header;
pub(super) mod javacore;
pub(super) mod json;
mod lock;
mod moment;
#[cfg(test)]
mod tests;

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
pub(super) use frames::Frames;
use header::Header;
use holdup_evidence::observed::{LockRef, LockWait, SeenThread, Snapshot, SnapshotKind, State, When};
use memchr::memmem::find;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("thread-dump", Family::Threads, recognise)
    .about("a JVM's thread dump")
    .openings(&[FULL]);

/// What a dump begins with.
const FULL: &str = "Full thread dump ";

/// Threads of one artefact that are kept: a thousand dumps of two hundred, or one with its virtual threads.
const THREADS: usize = 200_000;

/// What lines begin with that say nothing of a thread.
const IGNORABLE: &[&str] = &[
    "Threads class SMR info",
    "_java_thread_list=",
    "_to_delete_list",
    "JNI global ref",
    "No compile task",
    "Compiling:",
    "Found ",
    "Attaching to ",
    "Debugger attached",
    "Server compiler detected",
    "JVM version is ",
    "Deadlock Detection:",
    "No deadlocks found",
    "Carrying virtual thread",
    "Attach",
    "Total number of threads",
    "}",
    "=====",
    "-----",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut numbered = false;
    let mut named = false;
    for line in head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if named && waits_for_lock(line) {
            return Sureness::Certain;
        }
        named = name_alone(line).is_some();
        if line.starts_with(FULL.as_bytes()) || header::parse(line).is_some() || begins_deadlock(line) {
            return Sureness::Certain;
        }
        if header::parse_numbered(line).is_some() {
            numbered = true;
        } else if numbered && line.starts_with(b"at ") {
            return Sureness::Certain;
        }
    }
    if numbered { Sureness::Likely } else { Sureness::No }
}

/// Where the part about a deadlock begins, whatever sign a page has put in front of it.
fn begins_deadlock(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"# ").unwrap_or(line);
    line.starts_with(b"Found one Java-level deadlock")
}

/// The name of a thread that stands alone before a colon, as the part about a deadlock has it: `"pool-1-thread-3":`.
fn name_alone(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"\"")?.strip_suffix(b"\":")
}

/// What the part about a deadlock says below a thread's name.
fn waits_for_lock(line: &[u8]) -> bool {
    line.starts_with(b"waiting to lock ") || line.starts_with(b"waiting for ownable synchronizer ")
}

/// Which part of a dump the lines are of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Threads,
    /// "Found one Java-level deadlock": names and what they wait for.
    Deadlock,
    /// The stacks of those threads, once more.
    Again,
    /// The heap's figures.
    Heap,
    /// The addresses of all threads.
    Addresses,
}

#[derive(Debug, Default)]
struct Reader {
    part: Part,
    /// Whether a deadlock is all that there is of the dump: its threads are those of it.
    alone: bool,
    /// Date and process id of the dump that is about to begin: they stand before it.
    at: Option<When>,
    pid: Option<u32>,
    dump: Option<Snapshot>,
    thread: Option<SeenThread>,
    /// Whether its header says that it is in `Object.wait`.
    in_wait: bool,
    frames: Frames,
    kept: usize,
    /// Of the deadlocks: who waits for what whom has. Without `-l` it is reported nowhere else who has a lock of
    /// `java.util.concurrent`.
    owners: Vec<(String, String)>,
    /// The name on the last line, where only a deadlock's lines may follow: whoever copied it left out the heading.
    named: Option<String>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if let Some(name) = self.named.take()
            && waits_for_lock(line)
        {
            self.begin_deadlock(out);
            self.in_deadlock(name, out);
        }
        let Some(first) = line.first() else {
            if self.part == Part::Heap {
                self.part = Part::Threads;
            }
            return Understood::Ignorable;
        };
        match first {
            b'a' if line.starts_with(b"at ") => self.frame(line),
            b'-' if line.starts_with(b"- ") => self.lock(line),
            b'"' => self.quoted(line, out),
            b'#' if begins_deadlock(line) || line.starts_with(b"# Java stack information") => {
                self.other(line.get(2..).unwrap_or_default(), out)
            }
            b'#' => match header::parse_numbered(line) {
                Some(header) => self.begin_thread(header, out),
                None => Understood::No,
            },
            _ => self.other(line, out),
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.end_dump(out);
    }
}

impl Reader {
    fn frame(&mut self, line: &[u8]) -> Understood {
        match (&self.thread, self.part) {
            (_, Part::Deadlock | Part::Again) if !self.alone => Understood::Ignorable,
            (Some(_), _) => {
                self.frames.push(line.get(3..).unwrap_or_default());
                Understood::Evidence
            }
            (None, _) => Understood::No,
        }
    }

    fn lock(&mut self, line: &[u8]) -> Understood {
        if matches!(self.part, Part::Deadlock | Part::Again) && !self.alone {
            return Understood::Ignorable;
        }
        let (Some(thread), Some(lock)) = (&mut self.thread, lock::parse(line)) else {
            return if lock::says_nothing(line) {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        match lock.wait {
            Some(_) => thread.waits_for = Some(lock),
            // The same lock once more: it was taken again further out.
            None if thread.holds.contains(&lock) => {}
            None => thread.holds.push(lock),
        }
        Understood::Evidence
    }

    /// A line that begins with a name: a thread, or one of a deadlock.
    fn quoted(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if let Some(header) = header::parse(line) {
            return self.begin_thread(header, out);
        }
        let Some(name) = name_alone(line) else {
            return Understood::No;
        };
        match self.part {
            Part::Deadlock => {
                self.in_deadlock(String::from_utf8_lossy(name).into_owned(), out);
                Understood::Evidence
            }
            Part::Again if self.alone => {
                self.of_deadlock(String::from_utf8_lossy(name).into_owned(), out);
                Understood::Evidence
            }
            Part::Again => Understood::Ignorable,
            Part::Threads => {
                self.named = Some(String::from_utf8_lossy(name).into_owned());
                Understood::Evidence
            }
            _ => Understood::No,
        }
    }

    /// The part about a deadlock begins.
    fn begin_deadlock(&mut self, out: &mut Out<'_>) {
        self.end_thread(out);
        self.part = Part::Deadlock;
        let dump = self.begin_dump(out);
        dump.deadlocks.push(Vec::new());
        let alone = dump.threads.is_empty();
        self.alone |= alone;
    }

    /// A thread of the deadlock that is being read.
    fn in_deadlock(&mut self, name: String, out: &mut Out<'_>) {
        let circle = self.dump.as_mut().and_then(|dump| dump.deadlocks.last_mut());
        if let Some(circle) = circle {
            circle.push(name.clone());
        }
        if self.alone {
            self.of_deadlock(name, out);
        }
    }

    /// A thread of a deadlock that stands alone: what is reported of it comes in two places.
    fn of_deadlock(&mut self, name: String, out: &mut Out<'_>) {
        self.end_thread(out);
        let threads = &mut self.begin_dump(out).threads;
        let known = threads.iter().position(|thread| thread.name == name);
        let known = known.map(|at| threads.remove(at));
        self.kept = self.kept.saturating_sub(usize::from(known.is_some()));
        self.thread = Some(match known {
            Some(thread) => thread,
            None => SeenThread {
                name,
                state: State::Blocked,
                quote: out.here(),
                ..SeenThread::default()
            },
        });
    }

    /// `waiting to lock monitor 0x02c9 (object 0x0958, a org.jajuk.Registry),`, `waiting for ownable synchronizer 0x0958, (a java.util…),`
    fn waits_in_deadlock(&mut self, line: &[u8]) {
        let Some(thread) = &mut self.thread else { return };
        let object = find(line, b"object ").map(|at| at + 7);
        let object = object.or_else(|| Some(find(line, b"synchronizer ")? + 13));
        let class = find(line, b", a ").map(|at| at + 4);
        let class = class.or_else(|| Some(find(line, b"(a ")? + 3));
        let until = |from: usize| {
            let rest = line.get(from..).unwrap_or_default();
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b')' | b' '))
                .unwrap_or(rest.len());
            String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
        };
        if let Some(object) = object {
            let class = class.map(until).unwrap_or_default();
            thread.waits_for = Some(waits(LockWait::Enter, &until(object), &class));
        }
    }

    fn other(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if let Some(rest) = line.strip_prefix(FULL.as_bytes()) {
            self.end_dump(out);
            let rest = rest.strip_suffix(b":").unwrap_or(rest);
            self.begin_dump(out).program = Some(String::from_utf8_lossy(rest).into_owned());
            return Understood::Evidence;
        }
        if let Some(state) = line.strip_prefix(b"java.lang.Thread.State: ") {
            return self.state(state);
        }
        if let Some(at) = moment::parse(line) {
            self.end_dump(out);
            self.at = Some(at);
            return Understood::Evidence;
        }
        if let Some(pid) = pid(line) {
            self.end_dump(out);
            self.pid = Some(pid);
            return Understood::Evidence;
        }
        if let Some(number) = line.strip_prefix(b"Mounted virtual thread #") {
            return self.mounted(number, out);
        }
        if line == b"Locked ownable synchronizers:" {
            return Understood::Ignorable;
        }
        if begins_deadlock(line) {
            self.begin_deadlock(out);
            return Understood::Evidence;
        }
        if line.starts_with(b"Java stack information for the threads listed above") {
            self.part = Part::Again;
            return Understood::Ignorable;
        }
        if line == b"Heap" {
            self.end_thread(out);
            self.part = Part::Heap;
            return Understood::Ignorable;
        }
        if line.starts_with(b"_java_thread_list=") {
            self.part = Part::Addresses;
        }
        if self.alone && self.part == Part::Deadlock && line.starts_with(b"waiting ") {
            self.waits_in_deadlock(line);
            return Understood::Evidence;
        }
        if let (Part::Deadlock, Some(owner)) = (self.part, line.strip_prefix(b"which is held by \"")) {
            let waiter = self.dump.as_ref().and_then(|dump| dump.deadlocks.last()?.last());
            if let (Some(waiter), Some(owner)) = (waiter, owner.strip_suffix(b"\"")) {
                let owner = String::from_utf8_lossy(owner).into_owned();
                self.owners.push((waiter.clone(), owner));
            }
            return Understood::Evidence;
        }
        // `Thread.dump_to_file` of JDK 21 writes frames without `at`.
        if self.part == Part::Threads && self.thread.is_some() && is_frame(line) {
            self.frames.push(line);
            return Understood::Evidence;
        }
        let in_part = match self.part {
            Part::Heap => true,
            Part::Addresses => line.starts_with(b"0x"),
            Part::Deadlock => ["waiting ", "in JNI", "which is held by"]
                .iter()
                .any(|start| line.starts_with(start.as_bytes())),
            Part::Threads | Part::Again => false,
        };
        let known =
            in_part || is_version(line) || IGNORABLE.iter().any(|start| line.starts_with(start.as_bytes()));
        if known {
            Understood::Ignorable
        } else {
            Understood::No
        }
    }

    fn state(&mut self, state: &[u8]) -> Understood {
        let Some(thread) = &mut self.thread else {
            return Understood::No;
        };
        thread.state = header::state(state);
        Understood::Evidence
    }

    /// Behind a carrier's frames, those of the virtual thread on it: a thread of its own.
    fn mounted(&mut self, number: &[u8], out: &mut Out<'_>) -> Understood {
        if self.thread.is_none() || matches!(self.part, Part::Deadlock | Part::Again) {
            return Understood::Ignorable;
        }
        self.end_thread(out);
        self.in_wait = false;
        self.thread = Some(SeenThread {
            pid: self.pid,
            number: crate::numbers::whole(number),
            is_virtual: true,
            quote: out.here(),
            ..SeenThread::default()
        });
        Understood::Evidence
    }

    fn begin_dump(&mut self, out: &Out<'_>) -> &mut Snapshot {
        let at = &mut self.at;
        self.dump.get_or_insert_with(|| Snapshot {
            at: at.take(),
            ..Snapshot::new(SnapshotKind::Jvm, out.here())
        })
    }

    fn begin_thread(&mut self, header: Header, out: &mut Out<'_>) -> Understood {
        self.end_thread(out);
        // The dump has all threads after all.
        if std::mem::take(&mut self.alone)
            && let Some(dump) = &mut self.dump
        {
            dump.threads.clear();
        }
        self.part = Part::Threads;
        // A dump without its first line, after another: the same thread again.
        let again = self.dump.as_ref().is_some_and(|dump| {
            let first = dump.threads.first();
            first.is_some_and(|first| {
                first.tid.is_some() && first.tid == header.tid && first.name == header.name
            })
        });
        if again {
            self.end_dump(out);
        }
        self.begin_dump(out);
        self.in_wait = header.in_wait;
        self.thread = Some(SeenThread {
            name: header.name,
            tid: header.tid,
            pid: self.pid,
            number: header.number,
            state: header.state,
            cpu: header.cpu,
            elapsed: header.elapsed,
            is_virtual: header.is_virtual,
            quote: out.here(),
            ..SeenThread::default()
        });
        Understood::Evidence
    }

    fn end_thread(&mut self, out: &mut Out<'_>) {
        let Some(mut thread) = self.thread.take() else {
            return;
        };
        if thread.is_virtual && thread.state == State::Unknown && thread.name.is_empty() {
            thread.state = mounted_state(self.frames.innermost());
        }
        initialisation(&mut thread, self.in_wait, self.frames.innermost());
        thread.stack = self.frames.finish(out);
        settle(&mut thread);
        if self.kept >= THREADS {
            out.account().left_out += 1;
            return;
        }
        self.kept += 1;
        self.begin_dump(out).threads.push(thread);
    }

    fn end_dump(&mut self, out: &mut Out<'_>) {
        self.end_thread(out);
        self.alone = false;
        self.part = Part::Threads;
        let Some(mut dump) = self.dump.take() else { return };
        self.pid = None;
        name_owners(&mut dump);
        for (waiter, owner) in self.owners.drain(..) {
            let waiter = dump.threads.iter_mut().find(|thread| thread.name == waiter);
            if let Some(lock) = waiter.and_then(|waiter| waiter.waits_for.as_mut()) {
                lock.owner = Some(owner);
            }
        }
        dump.deadlocks.retain(|circle| !circle.is_empty());
        if !dump.threads.is_empty() {
            out.snapshot(dump);
        }
    }
}

/// A thread that is RUNNABLE in `Object.wait`, and not by calling it, waits in the JVM for a class that another thread
/// initialises. Up to some updates of JDK 8 and 11 no line names the class.
fn initialisation(thread: &mut SeenThread, in_wait: bool, innermost: Option<&[u8]>) {
    let called = innermost.is_none_or(|frame| find(frame, b"java.lang.Object.wait").is_some());
    if in_wait && !called && thread.state == State::Runnable && thread.waits_for.is_none() {
        thread.waits_for = Some(waits(LockWait::ClassInit, "", ""));
    }
}

/// The state of a mounted virtual thread, which a dump of platform threads leaves out: it is on a carrier, so that it
/// runs, unless it is pinned there and waits.
fn mounted_state(innermost: Option<&[u8]>) -> State {
    const WAIT: [&[u8]; 2] = [b"jdk.internal.misc.Unsafe.park(", b"java.lang.Object.wait"];
    match innermost {
        Some(frame) if WAIT.iter().any(|method| find(frame, method).is_some()) => State::Waiting,
        Some(_) => State::Runnable,
        None => State::Unknown,
    }
}

/// A monitor that a thread waits on in `Object.wait` is listed as locked too, and is let go meanwhile. So is one that it
/// waits to enter again.
fn settle(thread: &mut SeenThread) {
    if let Some(lock) = &thread.waits_for {
        thread.holds.retain(|held| held.id != lock.id);
    }
}

/// An owner that is known by its number gets its name.
fn name_owners(dump: &mut Snapshot) {
    let look_up = |thread: &SeenThread| {
        let owner = thread.waits_for.as_ref()?.owner.as_deref()?;
        owner.strip_prefix('#')?.parse::<u64>().ok()
    };
    if !dump.threads.iter().any(|thread| look_up(thread).is_some()) {
        return;
    }
    let names: std::collections::HashMap<u64, String> = dump
        .threads
        .iter()
        .filter_map(|thread| Some((thread.number?, thread.name.clone())))
        .collect();
    for thread in &mut dump.threads {
        let name = look_up(thread).and_then(|number| names.get(&number));
        if let (Some(name), Some(lock)) = (name.filter(|name| !name.is_empty()), &mut thread.waits_for) {
            lock.owner = Some(name.clone());
        }
    }
}

/// `27890:` of jcmd, `27890` of a dump to a file.
fn pid(line: &[u8]) -> Option<u32> {
    let digits = line.strip_suffix(b":").unwrap_or(line);
    let all = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all.then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
}

/// The version of the JVM on a line of its own: `25.0.3+9-LTS`.
fn is_version(line: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".+-_".contains(byte);
    line.first().is_some_and(u8::is_ascii_digit) && find(line, b".").is_some() && line.iter().all(plain)
}

/// How a thread waits for a lock, with nothing else known.
fn waits(wait: LockWait, id: &str, class: &str) -> LockRef {
    LockRef {
        id: id.to_owned(),
        class: class.to_owned(),
        wait: Some(wait),
        owner: None,
    }
}

/// A thread's state as Java names it.
fn state_of(word: &[u8]) -> State {
    header::state(word)
}

/// `java.base/java.lang.Thread.run(Thread.java:1583)`.
fn is_frame(line: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'(', line).filter(|_| line.ends_with(b")")) else {
        return false;
    };
    let method = line.get(..open).unwrap_or_default();
    let fits = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'.' | b'/' | b'_' | b'$' | b'<' | b'>' | b'@' | b'-' | b'+')
    };
    memchr::memchr(b'.', method).is_some() && method.iter().all(fits)
}
