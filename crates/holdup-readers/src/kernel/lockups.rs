//! What the lines after a lockup or stall tell of it: who had the CPU, in which function, for how long.

use super::tasks;
use super::text::{after, number, owned, until};
use crate::find::find;
use crate::numbers::words;
use holdup_evidence::observed::Stall;

/// Lines of a report that are looked at: the modules alone can take twenty.
const LINES: u32 = 120;

/// Functions that are quoted.
const MAX_QUOTED: usize = 8;

/// CPUs that are kept of one report.
const MAX_CPUS: usize = 64;

/// What was reported so far.
#[derive(Debug, Default)]
pub(super) struct Lockup {
    lines: u32,
    stall: Stall,
    at: Option<String>,
    /// Whether what follows is of RCU's own thread, which is a victim.
    of_rcu: bool,
}

impl Lockup {
    /// With what the first line tells: `INFO: rcu_sched detected stalls on CPUs/tasks: { 1}`.
    pub(super) fn begin(text: &[u8]) -> Lockup {
        let mut lockup = Lockup::default();
        if let Some(list) = after(text, b"{ ").and_then(|list| until(list, b"}")) {
            for cpu in words(list).filter(|word| word.first().is_some_and(u8::is_ascii_digit)) {
                lockup.cpu(number(cpu));
            }
        }
        lockup
    }

    /// Takes a line of the report; whether it says something. `None`: the report is over.
    pub(super) fn note(&mut self, text: &[u8]) -> Option<bool> {
        self.lines += 1;
        if self.lines > LINES {
            return None;
        }
        let text = text.trim_ascii();
        let text = text.strip_prefix(b"rcu:").unwrap_or(text).trim_ascii();
        // Another CPU's stack follows.
        if text.starts_with(b"NMI backtrace for") && !self.stall.stack.is_empty() {
            return None;
        }
        let said = self.cpus(text) || self.process(text) || self.place(text) || self.time(text);
        if said {
            return Some(true);
        }
        if let Some(work) = text.strip_prefix(b"Workqueue: ") {
            if !self.of_rcu && self.stall.work.is_empty() {
                self.stall.work = owned(work);
            }
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
            self.stall.stack.clear();
        } else if !self.of_rcu && self.stall.stack.len() < tasks::FRAMES {
            self.stall.stack.push(frame);
        }
        Some(true)
    }

    fn cpu(&mut self, cpu: Option<u64>) {
        let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok());
        if let Some(cpu) = cpu.filter(|cpu| !self.stall.cpus.contains(cpu))
            && self.stall.cpus.len() < MAX_CPUS
        {
            self.stall.cpus.push(cpu);
        }
    }

    /// `40-...0: (1 GPs behind) idle=…`, `55-....: (19027 ticks this GP)`.
    fn cpus(&mut self, text: &[u8]) -> bool {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let behind = text.get(digits..).unwrap_or_default();
        let marked = behind.strip_prefix(b"-").and_then(|marks| until(marks, b": ("));
        let is_one = digits > 0
            && marked.is_some_and(|marks| {
                marks.len() <= MARKS
                    && marks
                        .iter()
                        .all(|byte| byte.is_ascii_alphanumeric() || b".!?".contains(byte))
            });
        if is_one {
            self.cpu(number(text));
        }
        is_one
    }

    /// `CPU: 10 UID: 0 PID: 1524681 Comm: ntpd Not tainted`, `task:syz-executor.0  state:R  running task … pid:17688`,
    /// `syz-executor5   R running task on cpu   1     0 16797`, of POWER `in_nmi: 0 current: 217 (kworker/40:0H)`.
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
            // A task that does nothing has pid 0: an interrupt came to it.
            let name = name.get(..end.unwrap_or(name.len())).unwrap_or(name);
            Some(named(name, pid(text, b"PID: ").filter(|pid| *pid > 0)))
        } else if text.ends_with(b" Comm:") {
            // A mail program has put the name on the next line.
            pid(text, b"PID: ").map(|pid| format!("with pid {pid}"))
        } else if let Some(task) = text.strip_prefix(b"task:") {
            until(task, b" state:").map(|name| named(name.trim_ascii_end(), pid(text, b" pid:")))
        } else if let Some(task) = after(text, b" current: ").filter(|_| text.starts_with(b"irq_soft_mask:"))
        {
            let name = after(task, b"(").and_then(|name| until(name, b")"));
            name.map(|name| named(name, number(task)))
        } else {
            // Some kernels say `R running task`, some `R running` alone.
            until(text, b" R running ").map(|name| named(name.trim_ascii(), None))
        };
        let Some(found) = found else {
            return false;
        };
        self.of_rcu = found.starts_with("rcu_");
        if !self.of_rcu && self.stall.task.is_empty() {
            self.stall.task = found;
        }
        true
    }

    /// `RIP: 0010:lock_acquire+0x1ef/0x740`, `RIP: 0010:[<…>]  [<…>] native_safe_halt+0x6/0x10`, `pc : el1_interrupt+0x24/0x80`,
    /// `PC is at __do_softirq+0x7c/0x344`.
    fn place(&mut self, text: &[u8]) -> bool {
        let starts = [&b"RIP: "[..], b"pc : ", b"epc : ", b"PC is at "];
        let Some(said) = starts.iter().find_map(|start| text.strip_prefix(*start)) else {
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

    /// `(t=105000 jiffies g=29066`, `(detected by 1, t=10502 jiffies, g=49045`, `rcu_sched kthread starved for 6002 jiffies!`.
    fn time(&mut self, text: &[u8]) -> bool {
        let starved = after(text, b" kthread starved for ");
        // A mail program may have left a part of the time in front.
        let detected = text.starts_with(b"(") || find(text, b"(detected by ").is_some();
        let jiffies = after(text, b"t=").filter(|_| detected);
        let jiffies = jiffies
            .filter(|rest| find(rest, b" jiffies").is_some())
            .or(starved)
            .and_then(number);
        self.stall.starved |= starved.is_some();
        self.stall.jiffies = jiffies.or(self.stall.jiffies);
        jiffies.is_some()
    }

    /// All that was told.
    pub(super) fn done(mut self) -> Stall {
        if let Some(at) = self.at.take() {
            self.stall.stack.retain(|frame| *frame != at);
            self.stall.stack.insert(0, at);
        }
        self.stall
    }
}

/// Bytes of the marks behind a CPU's number.
const MARKS: usize = 8;

/// The same in words, behind the line that begins the report.
pub(super) fn words_of(stall: &Stall) -> String {
    let mut listed = Vec::new();
    if !stall.task.is_empty() {
        listed.push(format!("task {}", stall.task));
    }
    listed.extend(stall.jiffies.map(|jiffies| format!("{jiffies} jiffies")));
    if !stall.work.is_empty() {
        listed.push(format!("work {}", stall.work));
    }
    let functions: Vec<&str> = stall.stack.iter().map(String::as_str).take(MAX_QUOTED).collect();
    if !functions.is_empty() {
        listed.push(format!("in {}", functions.join(" < ")));
    }
    match listed.is_empty() {
        true => String::new(),
        false => format!(" … {}", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests;
