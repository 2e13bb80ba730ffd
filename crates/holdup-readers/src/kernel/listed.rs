//! Blocked tasks with their stacks, as SysRq-W (and SysRq-T) lists them.

use super::tasks::{self, Stack};
use super::text::{after, number, owned};
use crate::find::find;
use crate::gather::Out;
use holdup_evidence::observed::{Quote, SeenThread, Snapshot, SnapshotKind, State, When};

/// Tasks that are kept of one list; more are left out.
const TASKS: usize = 2_000;

/// One list, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Listed {
    list: Option<List>,
}

#[derive(Debug)]
struct List {
    at: Option<When>,
    quote: Quote,
    tasks: Vec<(SeenThread, Stack)>,
    /// Whether the last task's stack is being read; one that is not blocked is passed over.
    open: bool,
}

impl Listed {
    /// Takes a line that may be of a list; whether it is. `reported` says whether a task's own report is being read.
    pub(super) fn note(&mut self, text: &[u8], at: Option<When>, reported: bool, out: &mut Out<'_>) -> bool {
        let text = text.trim_ascii();
        let new = |out: &Out<'_>| List {
            at,
            quote: out.here(),
            tasks: Vec::new(),
            open: false,
        };
        if begins(text) {
            self.end(out);
            self.list = Some(new(out));
            return true;
        }
        let task = task(text).filter(|_| !reported);
        // A copy may begin below the heading, or below the first line of a report.
        if self.list.is_none() && task.as_ref().is_some_and(|(_, blocked)| *blocked) {
            self.list = Some(new(out));
        }
        let Some(list) = &mut self.list else {
            return false;
        };
        if let Some((task, blocked)) = task {
            list.open = blocked && list.tasks.len() < TASKS;
            if list.open {
                let quote = out.here();
                list.tasks.push((SeenThread { quote, ..task }, Stack::default()));
            } else if blocked {
                out.account().left_out += 1;
            }
            return true;
        }
        let is_frame = match list.tasks.last_mut().filter(|_| list.open) {
            Some((_, stack)) => stack.take(text),
            None => tasks::frame(text).is_some(),
        };
        is_frame || tasks::in_report(text)
    }

    /// Whether no list is being read.
    pub(super) fn is_idle(&self) -> bool {
        self.list.is_none()
    }

    /// Takes the rest of a task's first line, where a mail program has wrapped it; whether it is that.
    pub(super) fn goes_on(&mut self, text: &[u8]) -> bool {
        let Some(list) = self.list.as_mut().filter(|list| list.open) else {
            return false;
        };
        let (Some(pid), Some((task, _))) = (text.trim_ascii().strip_prefix(b"pid:"), list.tasks.last_mut())
        else {
            return false;
        };
        if task.tid.is_none() {
            task.tid = number(pid.trim_ascii_start()).and_then(|pid| u32::try_from(pid).ok());
        }
        true
    }

    /// The log, or the list, has ended.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        let Some(list) = self.list.take().filter(|list| !list.tasks.is_empty()) else {
            return;
        };
        let mut threads = Vec::with_capacity(list.tasks.len());
        for (mut task, stack) in list.tasks {
            let stack = stack.done();
            if !stack.is_empty() {
                // What all that sleep have in common says nothing.
                let own = stack
                    .iter()
                    .map(String::as_str)
                    .skip_while(|frame| is_scheduler(frame));
                task.kernel_stack = Some(out.stack(own));
            }
            threads.push(task);
        }
        out.snapshot(Snapshot {
            at: list.at,
            threads,
            of_threads: Some(true),
            ..Snapshot::new(SnapshotKind::Kernel, list.quote)
        });
    }
}

fn is_scheduler(frame: &str) -> bool {
    matches!(
        frame,
        "__switch_to" | "context_switch" | "__schedule" | "schedule" | "__sched_text_start"
    )
}

/// `sysrq: Show Blocked State`, before 4.11 `SysRq : Show Blocked State`.
fn begins(text: &[u8]) -> bool {
    let said = text
        .strip_prefix(b"sysrq: ")
        .or_else(|| text.strip_prefix(b"SysRq : "));
    said.is_some_and(|said| said.starts_with(b"Show Blocked State") || said.starts_with(b"Show State"))
}

/// A task's first line and whether it is blocked.
fn task(text: &[u8]) -> Option<(SeenThread, bool)> {
    let (name, state, pid) = modern(text).or_else(|| old(text))?;
    let task = SeenThread {
        name,
        tid: pid,
        state: State::Uninterruptible,
        ..SeenThread::default()
    };
    Some((task, state == b'D'))
}

/// `task:umount.nfs4     state:D stack:0     pid:3542745 ppid:3542744 flags:0x00004000`, since 5.12.
fn modern(text: &[u8]) -> Option<(String, u8, Option<u32>)> {
    let said = text.strip_prefix(b"task:")?;
    let at = find(said, b" state:")?;
    let state = *said.get(at + b" state:".len())?;
    let pid = after(said, b" pid:").and_then(|pid| number(pid.trim_ascii_start()));
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    Some((owned(said.get(..at)?.trim_ascii_end()), state, pid))
}

/// `events/4      D 0000000000000000     0   103      2 0x00000000`: name, state, on older kernels an address, room left on the
/// stack, process, parent, flags.
fn old(text: &[u8]) -> Option<(String, u8, Option<u32>)> {
    // The flags are last, and nearly every other message has no such end.
    let last = text
        .iter()
        .rposition(|byte| *byte == b' ')
        .map_or(Some(text), |at| text.get(at + 1..));
    if !last?.starts_with(b"0x") {
        return None;
    }
    let words: Vec<&[u8]> = crate::numbers::words(text).take(12).collect();
    let at = words
        .iter()
        .position(|word| matches!(word, [b'D' | b'S' | b'R' | b'T' | b'I' | b'Z']))?;
    let (name, rest) = (words.get(..at)?, words.get(at + 1..)?);
    let [before @ .., pid, _parent, flags] = rest else {
        return None;
    };
    let has_stack = matches!(before, [_] | [_, _]);
    if !has_stack || !flags.starts_with(b"0x") || name.is_empty() {
        return None;
    }
    let pid = crate::numbers::whole(pid)?;
    Some((
        owned(&name.join(&b' ')),
        words.get(at)?[0],
        u32::try_from(pid).ok(),
    ))
}
