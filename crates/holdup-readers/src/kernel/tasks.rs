//! Tasks and CPUs that do not get on: hung tasks, soft lockups, stalls that RCU finds, the clock.

use super::text::{after, number, owned, until, word};
use crate::find::find;
use holdup_evidence::Ns;
use holdup_evidence::observed::{KernelEvent, Stall};
use memchr::memrchr;

const NS_PER_SECOND: Ns = 1_000_000_000;

/// Lines of a hung task's report in which its stack and its owner are looked for: a stack is at most some 50 lines.
pub(super) const REPORT_LINES: u32 = 100;

/// Frames of its stack that are kept.
pub(super) const FRAMES: usize = 40;

/// What a message tells.
pub(super) fn event(text: &[u8]) -> Option<KernelEvent> {
    match text.first()? {
        b'I' => hung(text).or_else(|| rcu(text)),
        b'r' => rcu(text),
        b'w' | b'B' | b'N' => soft_lockup(text)
            .or_else(|| hard_lockup(text))
            .or_else(|| clock(text)),
        b'W' => hard_lockup(text),
        b'c' | b'C' | b't' | b'T' => clock(text),
        _ => None,
    }
}

/// `INFO: task dd:123 blocked for more than 120 seconds.`; since 6.19 also `blocked in I/O wait for more than`.
fn hung(text: &[u8]) -> Option<KernelEvent> {
    let said = text.strip_prefix(b"INFO: task ")?;
    let at = find(said, b" blocked ")?;
    let seconds = number(after(said.get(at..)?, b"for more than ")?)?;
    let (process, pid) = task(said.get(..at)?)?;
    Some(KernelEvent::HungTask {
        process,
        pid,
        ns: seconds.saturating_mul(NS_PER_SECOND),
        owner: None,
        stack: Vec::new(),
    })
}

/// `name:123`, or `name:123 <writer>`; a name can have colons and blanks.
fn task(text: &[u8]) -> Option<(String, u32)> {
    let colon = memrchr(b':', text)?;
    let pid = number(text.get(colon + 1..)?)?;
    Some((owned(text.get(..colon)?), u32::try_from(pid).ok()?))
}

/// `INFO: task cat:12 is blocked on a mutex likely owned by task dd:34.`, since 6.16; since 6.17 of semaphores too, with
/// `<reader>` or `<writer>` behind each.
pub(super) fn owner(text: &[u8]) -> Option<String> {
    let said = text.strip_prefix(b"INFO: task ")?;
    let owner = after(said, b" likely owned by task ")?;
    let (name, pid) = task(owner)?;
    Some(format!("{name}:{pid}"))
}

/// A frame of a stack: `__schedule+0x34d/0x9e0 [ext4]`, up to 4.9 with `[<address>] ` before it; of 32 bits of ARM
/// `[<address>] (__schedule) from [<address>] (schedule+0x58/0xb8)`, or without the addresses. Those with a question mark are leftovers.
pub(super) fn frame(text: &[u8]) -> Option<String> {
    let text = text.trim_ascii();
    if let Some(called) = until(text, b" from ") {
        let address = |text: &[u8]| after(text, b">] ").unwrap_or_default().trim_ascii().to_vec();
        let called = if called.starts_with(b"[<") {
            address(called)
        } else {
            called.to_vec()
        };
        let name = called.strip_prefix(b"(").unwrap_or(&called);
        return function(word(name.strip_suffix(b")").unwrap_or(name)));
    }
    let text = match text.strip_prefix(b"[<") {
        Some(address) => after(address, b">] ")?.trim_ascii_start(),
        // Of POWER, with the stack's address and the code's.
        None if is_address(text) => {
            let behind = after(text, b"] ")?;
            let behind = if is_address(behind) {
                after(behind, b"] ")?
            } else {
                behind
            };
            behind.trim_ascii_start()
        }
        // Somebody took the addresses out.
        None => text.strip_prefix(b"[] ").unwrap_or(text),
    };
    function(until(text, b"+0x").or_else(|| decoded(text))?)
}

/// `[c000000012973420] `.
fn is_address(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"[").unwrap_or_default();
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    matches!(count, 8 | 16) && digits.get(count) == Some(&b']')
}

/// The name in a frame that the kernel's own script `decode_stacktrace.sh` gave files and lines: `schedule (kernel/sched/core.c:6857) btrfs`.
fn decoded(text: &[u8]) -> Option<&[u8]> {
    let name = until(text, b" (")?;
    let place = until(text.get(name.len()..)?, b")")?;
    let of_source = [&b".c:"[..], b".h:", b".S:", b".rs:"]
        .iter()
        .any(|source| find(place, source).is_some());
    of_source.then_some(name)
}

/// The stack of a task as it is reported, frame by frame.
#[derive(Debug, Default)]
pub(super) struct Stack {
    frames: Vec<String>,
    /// Those with a question mark: what the unwinder found and could not prove. Some kernels prove none.
    doubtful: Vec<String>,
}

impl Stack {
    /// Takes a line; whether it is a frame that counts.
    pub(super) fn take(&mut self, text: &[u8]) -> bool {
        let (frames, found, counts) = match frame(text) {
            Some(found) => (&mut self.frames, Some(found), true),
            None => (&mut self.doubtful, leftover(text), false),
        };
        if let Some(found) = found.filter(|_| frames.len() < FRAMES) {
            frames.push(found);
        }
        counts
    }

    /// The frames that are proven, or else those that are not.
    pub(super) fn done(self) -> Vec<String> {
        match self.frames.is_empty() {
            true => self.doubtful,
            false => self.frames,
        }
    }
}

/// `[<address>] ? schedule+0x32/0x80`.
fn leftover(text: &[u8]) -> Option<String> {
    let at = find(text, b"? ")?;
    let frame = text.get(at + 2..)?;
    function(until(frame, b"+0x").or_else(|| decoded(frame))?)
}

/// The kernel's hint below the first line of a hung task's report. A copy may begin with it.
pub(super) fn is_hint(text: &[u8]) -> bool {
    text.trim_ascii()
        .starts_with(b"\"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\"")
}

/// A function's name, if it can be one.
fn function(name: &[u8]) -> Option<String> {
    let is_name = !name.is_empty()
        && !name.iter().all(u8::is_ascii_digit)
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    is_name.then(|| owned(name))
}

/// Whether a line is of the report of a hung task, though no frame.
pub(super) fn in_report(text: &[u8]) -> bool {
    const BEGIN: [&[u8]; 17] = [
        b"Not tainted",
        b"Tainted:",
        b"\"echo 0 >",
        b"task:",
        b"Call Trace:",
        b"Call trace:",
        b"<TASK>",
        b"</TASK>",
        b"? ",
        b"[] ? ",
        b"RIP:",
        b"RSP:",
        b"RAX:",
        b"RDX:",
        b"RBP:",
        b"R10:",
        b"R13:",
    ];
    let text = text.trim_ascii();
    text.is_empty() || BEGIN.iter().any(|begin| text.starts_with(begin))
}

/// `watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [dd:123]`, with `NMI watchdog: ` or nothing before it.
fn soft_lockup(text: &[u8]) -> Option<KernelEvent> {
    let said = after(text, b"soft lockup - CPU#")?;
    let seconds = number(after(said, b"stuck for ")?)?;
    let process = after(said, b"[").and_then(|name| name.get(..memrchr(b']', name)?));
    Some(KernelEvent::SoftLockup {
        cpu: u32::try_from(number(said)?).ok()?,
        process: process.map(owned).unwrap_or_default(),
        ns: seconds.saturating_mul(NS_PER_SECOND),
        stall: Stall::default(),
    })
}

/// `NMI watchdog: Watchdog detected hard LOCKUP on cpu 7`, `watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 5`.
fn hard_lockup(text: &[u8]) -> Option<KernelEvent> {
    let said = after(text, b"detected hard LOCKUP on cpu")?;
    let cpu = u32::try_from(number(said.trim_ascii_start())?).ok()?;
    Some(KernelEvent::HardLockup {
        cpu,
        stall: Stall::default(),
    })
}

/// `[dd:123]` and nothing else.
pub(super) fn in_brackets(text: &[u8]) -> Option<String> {
    let name = text.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    task(name).map(|_| owned(name))
}

/// `rcu: INFO: rcu_sched self-detected stall on CPU`, and `INFO: rcu_...` of older kernels.
fn rcu(text: &[u8]) -> Option<KernelEvent> {
    let said = text.strip_prefix(b"rcu: ").unwrap_or(text);
    let said = said.strip_prefix(b"INFO: rcu")?;
    find(said, b" stall").is_some().then_some(KernelEvent::RcuStall)
}

/// `clocksource: timekeeping watchdog on CPU0: Marking clocksource 'tsc' as unstable because the skew is too large:`,
/// `Clocksource tsc unstable (delta = ...)`, `tsc: Marking TSC unstable due to ...`.
fn clock(text: &[u8]) -> Option<KernelEvent> {
    let from = if let Some(said) = text.strip_prefix(b"clocksource: ") {
        until(after(said, b"Marking clocksource '")?, b"' as unstable")?
    } else if let Some(said) = text.strip_prefix(b"Clocksource ") {
        until(said, b" unstable")?
    } else if after(text, b"Marking TSC unstable").is_some() {
        b"tsc"
    } else {
        return None;
    };
    Some(KernelEvent::ClockUnstable { from: owned(from) })
}
