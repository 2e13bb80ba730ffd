//! What the lines after a lockup or stall tell of it: who had the CPU, in which function, for how long.

use super::tasks;
use super::text::{after, number, owned, until};
use crate::find::find;

/// Lines of a report that are looked at: the modules alone can take twenty.
const LINES: u32 = 120;

/// Functions that are reported.
const MAX_LOCKUPS: usize = 8;

/// What was reported so far.
#[derive(Debug, Default)]
pub(super) struct Lockup {
    lines: u32,
    task: Option<String>,
    at: Option<String>,
    length: Option<String>,
    work: Option<String>,
    stack: Vec<String>,
}

impl Lockup {
    /// Takes a line of the report; whether it says something. `None`: the report is over.
    pub(super) fn note(&mut self, text: &[u8]) -> Option<bool> {
        self.lines += 1;
        if self.lines > LINES {
            return None;
        }
        let text = text.trim_ascii();
        let text = text.strip_prefix(b"rcu:").unwrap_or(text).trim_ascii();
        // Another CPU's stack follows.
        if text.starts_with(b"NMI backtrace for") && !self.stack.is_empty() {
            return None;
        }
        let said = self.process(text) || self.place(text) || self.time(text);
        if said {
            return Some(true);
        }
        if let Some(work) = text.strip_prefix(b"Workqueue: ") {
            self.work = Some(owned(work));
            return Some(true);
        }
        let frame = match memchr::memchr(b'>', text) {
            // `<IRQ>  [<ffffffff8170cafa>] sched_show_task+0x31a/0x325`
            Some(end) if text.starts_with(b"<") => tasks::frame(text.get(end + 1..).unwrap_or_default()),
            _ => tasks::frame(text),
        };
        let Some(frame) = frame else {
            return Some(tasks::in_report(text));
        };
        // What is inside of an interrupt is how the stall was found, and not what stalled.
        if ["interrupt", "asm_sysvec", "ret_from_intr"]
            .iter()
            .any(|part| frame.contains(part))
        {
            self.stack.clear();
        } else if self.stack.len() < tasks::FRAMES {
            self.stack.push(frame);
        }
        Some(true)
    }

    /// `CPU: 10 UID: 0 PID: 1524681 Comm: ntpd Not tainted`, `task:syz-executor.0  state:R  running task … pid:17688`,
    /// `syz-executor5   R running task on cpu   1     0 16797`.
    fn process(&mut self, text: &[u8]) -> bool {
        let pid =
            |text: &[u8], before: &[u8]| after(text, before).and_then(|pid| number(pid.trim_ascii_start()));
        let named = |name: &[u8], pid: Option<u64>| match pid {
            Some(pid) => format!("{} (pid {pid})", owned(name)),
            None => owned(name),
        };
        let found = if let Some(name) = after(text, b" Comm: ") {
            let end = [&b" Not tainted"[..], b" Tainted", b" Kdump"]
                .into_iter()
                .filter_map(|end| find(name, end))
                .min();
            Some(named(
                name.get(..end.unwrap_or(name.len())).unwrap_or(name),
                pid(text, b"PID: "),
            ))
        } else if text.ends_with(b" Comm:") {
            // A mail program has put the name on the next line.
            pid(text, b"PID: ").map(|pid| format!("with pid {pid}"))
        } else if let Some(task) = text.strip_prefix(b"task:") {
            until(task, b" state:").map(|name| named(name.trim_ascii_end(), pid(text, b" pid:")))
        } else {
            // Some kernels say `R running task`, some `R running` alone.
            until(text, b" R running ").map(|name| named(name.trim_ascii(), None))
        };
        let is_found = found.is_some();
        self.task = self.task.take().or(found);
        is_found
    }

    /// `RIP: 0010:lock_acquire+0x1ef/0x740`, `RIP: 0010:[<…>]  [<…>] native_safe_halt+0x6/0x10`, `pc : el1_interrupt+0x24/0x80`.
    fn place(&mut self, text: &[u8]) -> bool {
        let Some(said) = text
            .strip_prefix(b"RIP: ")
            .or_else(|| text.strip_prefix(b"pc : "))
        else {
            return false;
        };
        let said = until(said, b"+0x").unwrap_or_default();
        let from = said
            .iter()
            .rposition(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')));
        let name = said.get(from.map_or(0, |at| at + 1)..).unwrap_or_default();
        if self.at.is_none() && !name.is_empty() {
            self.at = Some(owned(name));
        }
        true
    }

    /// `(t=105000 jiffies g=29066`, `(detected by 1, t=10502 jiffies, g=49045`.
    fn time(&mut self, text: &[u8]) -> bool {
        let jiffies = after(text, b"t=").filter(|_| text.starts_with(b"("));
        let jiffies = jiffies
            .filter(|rest| find(rest, b" jiffies").is_some())
            .and_then(number);
        if let Some(jiffies) = jiffies {
            self.length = Some(format!("{jiffies} jiffies"));
        }
        jiffies.is_some()
    }

    /// Everything, behind the line that begins the report.
    pub(super) fn words(&self) -> String {
        let mut listed = Vec::new();
        listed.extend(self.task.as_ref().map(|task| format!("task {task}")));
        listed.extend(self.length.clone());
        listed.extend(self.work.as_ref().map(|work| format!("work {work}")));
        let mut functions: Vec<&str> = self.at.as_deref().into_iter().collect();
        functions.extend(
            self.stack
                .iter()
                .map(String::as_str)
                .filter(|frame| Some(*frame) != self.at.as_deref()),
        );
        functions.truncate(MAX_LOCKUPS);
        if !functions.is_empty() {
            listed.push(format!("in {}", functions.join(" < ")));
        }
        match listed.is_empty() {
            true => String::new(),
            false => format!(" … {}", listed.join(", ")),
        }
    }
}
