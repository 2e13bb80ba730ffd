//! What the kernel says of single tasks: `/proc/PID/{status,stat,stack,wchan,syscall}`, also of threads, one file or many in
//! one text: by `grep -H . /proc/*/stack`, by `tail -n +1 FILE…` or `head FILE…` with its headings, by `cat` below a prompt.
//!
//! In: lines, each of the file that its prefix, the last heading, the prompt or the artefact's own name says; without any of
//! these the line says it itself. Out: a snapshot of those tasks, each with its state, its stack in the kernel and its
//! call; another snapshot when the same file of the same task comes again.

mod alone;
mod path;

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{whole, words};
use crate::tasks::{self, Listed, Tasks};
use alone::Alone;
use holdup_evidence::Call;
use holdup_evidence::observed::{Metric, SeenThread, State};
use path::{File, Task};
use std::collections::HashMap;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("proc-task", Family::Host, recognise)
    .about("/proc/PID/{status,stat,stack,wchan,syscall}")
    // The old form, `[<ffffffff8106a54f>] do_wait`, stands in the middle of kernel logs, too.
    .openings(&["==> /proc/", "[<0>] "]);

/// Lines of the beginning that are looked at.
const LOOKED_AT: usize = 100;

/// Frames of a stack that are kept: the kernel prints 64 at most.
const FRAMES: usize = 64;

/// Tasks of one snapshot that are kept.
const MAX_TASKS: usize = 20_000;

/// Threads of a process from which their number is worth a figure, as in a list of `ps`.
const NOTABLE_THREADS: u64 = 500;

/// Fields of `/proc/PID/stat` behind the name: 50 since Linux 3.5; fewer before.
const STAT_FIELDS: usize = 35;

fn recognise(head: &[u8]) -> Sureness {
    let mut sure = Sureness::No;
    let mut status = 0;
    let mut lines = 0;
    for line in head.split(|byte| *byte == b'\n').take(LOOKED_AT) {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        lines += 1;
        let prefixed = matches!(path::find(line), Some((_, Some(file), behind))
            if file != File::Other && (behind.starts_with(b":") || behind == b" <=="));
        let stack = frame(line).is_some() && line.starts_with(b"[<");
        if prefixed || stack || stat(line).is_some() {
            sure = sure.max(Sureness::Likely);
        }
        status += usize::from(matches!(
            line.split(|byte| *byte == b':').next(),
            Some(b"State" | b"Tgid" | b"PPid" | b"TracerPid" | b"voluntary_ctxt_switches")
        ));
    }
    if status >= 4 {
        return Sureness::Certain;
    }
    let only = head.trim_ascii();
    // A wait channel or a call alone in a file.
    if lines == 1 && (call(only).is_some() || wait_channel(only).is_some_and(|name| name.contains(&b'_'))) {
        sure = sure.max(Sureness::Weak);
    }
    sure
}

/// The files of one task.
#[derive(Debug, Default)]
struct TaskFiles {
    thread: SeenThread,
    frames: Vec<String>,
    threads: Option<u64>,
    /// Files of it that are there, as bits.
    files: u8,
}

#[derive(Debug, Default)]
struct Reader {
    /// Whose file the last heading, prompt or line of a status named, and which.
    current: Option<(Task, Option<File>)>,
    seen: Vec<TaskFiles>,
    /// Where in the list a task is, by process and thread.
    places: HashMap<(u32, u32), usize>,
    /// The one that lines without any name belong to.
    last: Option<usize>,
    begun: bool,
    /// The file of the last line, to tell a second stack from the same one.
    last_file: Option<(usize, File)>,
    /// What strace says beside it.
    alone: Alone,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if !std::mem::replace(&mut self.begun, true) {
            // A part of a collection, or a file of a report, has its path as its name.
            let name = out.source().name.clone();
            self.current = path::find(name.as_bytes()).map(|(task, file, _)| (task, file));
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if self.alone.line(line, out) {
            return Understood::Evidence;
        }
        match path::find(line) {
            Some((task, Some(file), behind)) if behind.starts_with(b":") => {
                let text = behind.get(1..).unwrap_or_default().trim_ascii();
                return self.of_file(task, file, text, out);
            }
            // A heading, a prompt with a command, or a folder that a loop printed.
            Some((task, file, _)) if frame(line).is_none() => {
                self.current = Some((task, file));
                return Understood::Evidence;
            }
            _ => {}
        }
        match self.current {
            Some((task, Some(file))) => match self.of_file(task, file, line, out) {
                // Several files printed by one command: each line says itself what it is.
                Understood::No => self.by_itself(line, out),
                understood => understood,
            },
            _ => self.by_itself(line, out),
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        std::mem::take(&mut self.alone).end(&self.seen, out);
        self.flush(out);
    }
}

impl Reader {
    /// A line of a file of a task.
    fn of_file(&mut self, task: Task, file: File, line: &[u8], out: &mut Out<'_>) -> Understood {
        match file {
            File::Status => self.status(Some(task), line, out),
            File::Stat => self.stat(line, out),
            File::Stack => self.frame(Some(task), line, out),
            File::Wchan => match wait_channel(line) {
                Some(name) => {
                    let name = text_of(name);
                    let seen = self.take(Some(task), File::Wchan, out);
                    seen.thread.kernel_function = Some(name).filter(|name| name != "0");
                    Understood::Evidence
                }
                None => Understood::No,
            },
            File::Syscall => self.call(Some(task), line, out),
            File::Comm => {
                let name = text_of(line);
                self.take(Some(task), File::Comm, out).thread.name = name;
                Understood::Evidence
            }
            File::Other => Understood::Ignorable,
        }
    }

    /// A line whose file nothing names.
    fn by_itself(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let task = self.current.map(|(task, _)| task);
        if frame(line).is_some() {
            return self.frame(task, line, out);
        }
        if stat(line).is_some() {
            return self.stat(line, out);
        }
        if call(line).is_some() {
            return self.call(task, line, out);
        }
        if line.contains(&b':') {
            return self.status(task, line, out);
        }
        match wait_channel(line) {
            Some(name) if name.contains(&b'_') => {
                let name = text_of(name);
                self.take(task, File::Wchan, out).thread.kernel_function = Some(name);
                Understood::Evidence
            }
            _ => Understood::No,
        }
    }

    /// The task that a line is of; a file that comes again begins another snapshot.
    fn take(&mut self, task: Option<Task>, file: File, out: &mut Out<'_>) -> &mut TaskFiles {
        let bit = 1 << file as u8;
        let ids = task.map(|task| {
            let pid = task.pid.unwrap_or(0);
            (pid, task.tid.unwrap_or(pid))
        });
        let known = match ids {
            Some(ids) => self.places.get(&ids).copied(),
            None => self.last,
        };
        let again = known.is_some_and(|at| {
            let more = self.last_file == Some((at, file)) && matches!(file, File::Status | File::Stack);
            !more && self.seen.get(at).is_some_and(|seen| seen.files & bit != 0)
        });
        if again {
            self.flush(out);
        }
        let at = match known.filter(|_| !again) {
            Some(at) => at,
            None if self.seen.len() >= MAX_TASKS => {
                out.account().left_out += 1;
                self.seen.len() - 1
            }
            None => {
                let known = |id: u32| Some(id).filter(|id| *id > 0);
                self.seen.push(TaskFiles {
                    thread: SeenThread {
                        pid: ids.and_then(|(pid, _)| known(pid)),
                        tid: ids.and_then(|(_, tid)| known(tid)),
                        quote: out.here(),
                        ..SeenThread::default()
                    },
                    ..TaskFiles::default()
                });
                let at = self.seen.len() - 1;
                if let Some(ids) = ids {
                    self.places.insert(ids, at);
                }
                at
            }
        };
        self.last = Some(at);
        self.last_file = Some((at, file));
        let seen = &mut self.seen[at];
        seen.files |= bit;
        seen
    }

    /// A line of a status: `State:  D (disk sleep)`.
    fn status(&mut self, task: Option<Task>, line: &[u8], out: &mut Out<'_>) -> Understood {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Understood::No;
        };
        let (key, value) = line.split_at_checked(colon).unwrap_or((line, b""));
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if !key
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        {
            return Understood::No;
        }
        // The first line of one: of another task, where nothing else says so.
        if key == b"Name" && task.is_none() {
            self.last = None;
        }
        let id = || {
            whole(value)
                .and_then(|id| u32::try_from(id).ok())
                .filter(|id| *id > 0)
        };
        let seen = self.take(task, File::Status, out);
        match key {
            b"Name" => seen.thread.name = text_of(value),
            b"State" => match tasks::state(value) {
                Some(state) => {
                    seen.thread.state = state;
                    seen.thread.quote = out.here();
                }
                None => return Understood::No,
            },
            b"Tgid" => seen.thread.pid = id().or(seen.thread.pid),
            b"Pid" => seen.thread.tid = id().or(seen.thread.tid),
            b"PPid" => seen.thread.parent = id(),
            b"TracerPid" => seen.thread.tracer = id(),
            b"Threads" => seen.threads = whole(value),
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn stat(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let Some(stat) = stat(line) else {
            return Understood::No;
        };
        // In a thread's file it is the thread's id.
        let task = match self.current {
            Some((task, _)) if task.tid == Some(stat.id) => task,
            _ => Task {
                pid: Some(stat.id),
                tid: None,
            },
        };
        let name = text_of(stat.name);
        let seen = self.take(Some(task), File::Stat, out);
        seen.thread.name = name;
        seen.thread.state = stat.state;
        seen.thread.parent = Some(stat.parent).filter(|pid| *pid > 0);
        seen.thread.terminal = stat.terminal;
        seen.threads = stat.threads.or(seen.threads);
        Understood::Evidence
    }

    fn frame(&mut self, task: Option<Task>, line: &[u8], out: &mut Out<'_>) -> Understood {
        let Some(name) = frame(line) else {
            return Understood::No;
        };
        let name = (!name.is_empty()).then(|| text_of(name));
        let seen = self.take(task, File::Stack, out);
        if let Some(name) = name.filter(|_| seen.frames.len() < FRAMES) {
            seen.frames.push(name);
        }
        Understood::Evidence
    }

    fn call(&mut self, task: Option<Task>, line: &[u8], out: &mut Out<'_>) -> Understood {
        let Some(found) = call(line) else {
            return Understood::No;
        };
        let seen = self.take(task, File::Syscall, out);
        match found {
            InCall::Runs => {
                seen.thread.state = match seen.thread.state {
                    State::Unknown => State::Runnable,
                    state => state,
                }
            }
            InCall::Is(call) => seen.thread.call = Some(call),
        }
        Understood::Evidence
    }

    /// What was read is a snapshot.
    fn flush(&mut self, out: &mut Out<'_>) {
        self.places.clear();
        (self.last, self.last_file) = (None, None);
        let all = std::mem::take(&mut self.seen);
        if all.is_empty() {
            return;
        }
        let mut tasks = Tasks::default();
        out.report(None, None, false);
        let listed = Listed {
            of_threads: None,
            states: all.iter().any(|seen| seen.thread.state != State::Unknown),
        };
        tasks.begin(None, listed, out);
        for seen in all {
            let TaskFiles {
                mut thread,
                frames,
                threads,
                ..
            } = seen;
            if let Some(count) = threads.filter(|count| *count >= NOTABLE_THREADS) {
                let of = tasks::named(&thread.name, thread.pid);
                out.figure(Metric::ProcessThreads, &of, count as f64);
            }
            if !frames.is_empty() {
                thread.kernel_stack = Some(out.stack(frames.iter().map(String::as_str)));
            }
            if thread.kernel_function.is_none() {
                thread.kernel_function = frames.into_iter().next();
            }
            tasks.add(thread, out);
        }
        tasks.flush(out);
    }
}

/// The function of a line of a stack: `[<0>] do_wait+0x5f/0xa0`, `[<ffffffff8106a54f>] do_wait+0x1bf/0x220 [ext4]`; empty for
/// the mark of the end, `[<ffffffffffffffff>] 0xffffffffffffffff`.
fn frame(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"[<")?;
    let end = rest.iter().position(|byte| *byte == b'>')?;
    let (address, rest) = rest.split_at_checked(end)?;
    let rest = rest.strip_prefix(b">] ")?;
    address.iter().all(u8::is_ascii_hexdigit).then_some(())?;
    let name = rest.split(|byte| matches!(byte, b'+' | b' ')).next()?;
    if name.starts_with(b"0x") {
        return Some(b"");
    }
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    (!name.is_empty() && name.iter().all(fits)).then_some(name)
}

/// A wait channel, or `0` for none.
fn wait_channel(line: &[u8]) -> Option<&[u8]> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    // No function of the kernel has a longer name, nor begins with a digit.
    const MAX_BYTES: usize = 128;
    let named = line
        .first()
        .is_some_and(|byte| byte.is_ascii_lowercase() || *byte == b'_');
    (line == b"0" || (named && line.len() <= MAX_BYTES && line.iter().all(fits))).then_some(line)
}

/// What `/proc/PID/syscall` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InCall {
    /// `running`.
    Runs,
    /// It sleeps in this call, or in none.
    Is(Call),
}

/// `7 0x7ffd 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd8 0x7f30`, `-1 0x7ffd8 0x7f30`, `running`.
fn call(line: &[u8]) -> Option<InCall> {
    if line == b"running" {
        return Some(InCall::Runs);
    }
    let mut fields = words(line);
    let number: i32 = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let hex = |word: &[u8]| {
        let digits = std::str::from_utf8(word.strip_prefix(b"0x")?).ok()?;
        u64::from_str_radix(digits, 16).ok()
    };
    let mut args = [0; 4];
    let mut count = 0;
    for word in fields {
        let value = hex(word)?;
        if let Some(slot) = args.get_mut(count).filter(|_| number >= 0) {
            *slot = value;
        }
        count += 1;
    }
    let fits = if number == Call::NONE {
        count == 2
    } else {
        number >= 0 && count == 8
    };
    fits.then_some(InCall::Is(Call { number, args }))
}

/// What of a line of `/proc/PID/stat` is used.
struct Stat<'l> {
    id: u32,
    name: &'l [u8],
    state: State,
    parent: u32,
    terminal: Option<bool>,
    threads: Option<u64>,
}

/// `77 (a name (with) anything) S 1 77 …`.
fn stat(line: &[u8]) -> Option<Stat<'_>> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let small = |word: &[u8]| whole(word).and_then(|id| u32::try_from(id).ok());
    let id = small(line.get(..open)?.trim_ascii())?;
    let mut fields = words(line.get(close + 1..)?);
    let letter = fields.next().filter(|letter| letter.len() == 1)?;
    let parent = small(fields.next()?)?;
    let number = |word: &&[u8]| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    let count = fields.clone().take_while(number).count();
    (count >= STAT_FIELDS).then_some(())?;
    // The seventh of all fields, and the twentieth; four are taken.
    const TERMINAL: usize = 7 - 5;
    const THREADS: usize = 20 - 5;
    Some(Stat {
        id,
        name: line.get(open + 1..close)?,
        state: tasks::state(letter)?,
        parent,
        terminal: fields.clone().nth(TERMINAL).map(|number| number != b"0"),
        threads: fields.nth(THREADS).and_then(whole),
    })
}

#[cfg(test)]
mod tests;
