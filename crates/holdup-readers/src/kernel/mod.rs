//! What the kernel's messages tell, in whichever log they stand.
//!
//! In: messages without what a log puts before them, in order, with their times. Out: happenings. Some troubles are reported
//! over many lines (a hung task and its stack, the state of memory before a kill): a [`Kernel`] remembers what is needed of
//! them. Messages of other subsystems than those that rules judge by are read and say nothing to us.

mod devices;
mod listed;
mod lock_order;
mod lockups;
mod memory;
mod pauses;
mod random;
mod slow_ports;
mod steps;
mod tasks;
mod text;
mod workqueues;

use crate::format::Understood;
use crate::gather::{Out, quoted};
use crate::inert::Inert;
use crate::stamp::Stamp;
use holdup_evidence::observed::{Happening, KernelEvent, What};
use listed::Listed;
use lock_order::LockOrder;
use lockups::Lockup;
use memory::Memory;
use pauses::Pauses;
use slow_ports::SlowPorts;
use std::mem::Discriminant;
use tasks::Stack;
use workqueues::Workqueues;

/// Happenings of one kind that are kept of one log: a device that fails says so thousands of times, and must not push
/// the others out.
const OF_A_KIND: u32 = 2_000;

/// A message and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    /// What the kernel says.
    pub(crate) text: &'a [u8],
    /// When.
    pub(crate) stamp: Stamp,
    /// The whole line, to be quoted.
    pub(crate) line: &'a [u8],
}

/// One log's kernel messages, as far as they have been read.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    /// A hung task whose stack and owner are still to come.
    hung: Option<(Happening, u32, Stack)>,
    /// A lockup or stall whose task and functions are still to come.
    lockup: Option<(Happening, Lockup)>,
    /// A report of lockdep that is being read.
    order: Option<LockOrder>,
    listed: Listed,
    memory: Memory,
    pauses: Pauses,
    slow_ports: SlowPorts,
    workqueues: Workqueues,
    /// Whether the beginning of this boot has been seen.
    began: bool,
    /// The id of the boot that begins, until its first line tells more.
    boot_id: Option<String>,
    kept: Vec<(Discriminant<KernelEvent>, u32)>,
    /// Messages that say nothing, by shape.
    inert: Inert,
}

impl Kernel {
    /// Takes one message.
    pub(crate) fn message(&mut self, message: Message<'_>, out: &mut Out<'_>) -> Understood {
        out.source().kernel_lines += 1;
        self.pauses.line(message, out);
        self.slow_ports.line(message, out);
        let shape = match self.is_idle() {
            true => self.inert.shape(message.text),
            false => None,
        };
        if shape.is_some_and(|shape| self.inert.has(shape)) {
            return Understood::Ignorable;
        }
        let understood = self.look(message, out);
        if let Some(shape) = shape
            && understood == Understood::Ignorable
            && self.is_idle()
        {
            self.inert.add(shape, false);
        }
        understood
    }

    /// Whether no report is being read.
    fn is_idle(&self) -> bool {
        self.hung.is_none()
            && self.lockup.is_none()
            && self.order.is_none()
            && self.listed.is_idle()
            && self.memory.is_idle()
            && self.workqueues.is_idle()
    }

    fn look(&mut self, message: Message<'_>, out: &mut Out<'_>) -> Understood {
        if self.hung.is_some() && self.of_hung_task(message.text, out) {
            return Understood::Evidence;
        }
        if let Some(event) = self.event(message.text) {
            self.happened(event, message, out);
            return Understood::Evidence;
        }
        if self.of_order(message.text, out) {
            return Understood::Evidence;
        }
        if self.of_lockup(message.text, out) {
            return Understood::Evidence;
        }
        if self.workqueues.note(message.text, || out.here()) {
            return Understood::Evidence;
        }
        if tasks::is_hint(message.text) {
            return Understood::Evidence;
        }
        // The task of a report that has its first line is known from there.
        let reported = self.hung.is_some();
        if self.listed.note(message.text, message.stamp.at, reported, out) {
            return Understood::Evidence;
        }
        if self.memory.note(message.text, || out.here()) {
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    /// Takes the rest of a line of a report that is being read; whether it is that.
    pub(crate) fn goes_on(&mut self, text: &[u8], out: &mut Out<'_>) -> bool {
        self.of_order(text, out)
            || (self.hung.is_some() && self.of_hung_task(text, out))
            || self.of_lockup(text, out)
            || self.workqueues.goes_on(text)
            || self.listed.goes_on(text)
    }

    /// Another boot begins: what the log itself says between lines. The first message tells its release.
    pub(crate) fn another_boot(&mut self, id: Option<String>, line: &[u8], out: &mut Out<'_>) {
        self.end(out);
        self.began = false;
        self.memory = Memory::default();
        self.pauses = Pauses::default();
        self.slow_ports = SlowPorts::default();
        let boot = KernelEvent::Boot {
            release: String::new(),
            id: id.clone(),
        };
        out.happened(What::Kernel(boot), None, None, line);
        self.boot_id = id;
    }

    /// The log has ended.
    pub(crate) fn end(&mut self, out: &mut Out<'_>) {
        self.listed.end(out);
        self.memory.end(out);
        self.workqueues.end(out);
        self.close(out);
    }

    /// The report of one trouble is over.
    fn close(&mut self, out: &mut Out<'_>) {
        if let Some(order) = self.order.take() {
            order.end(out);
        }
        if let Some((mut happening, _, lines)) = self.hung.take() {
            if let What::Kernel(KernelEvent::HungTask { stack, .. }) = &mut happening.what {
                *stack = lines.done();
            }
            out.happening(happening);
        }
        if let Some((mut happening, lockup)) = self.lockup.take() {
            let told = lockup.done();
            happening.text.push_str(&lockups::words_of(&told));
            match &mut happening.what {
                What::Kernel(
                    KernelEvent::SoftLockup { stall, .. } | KernelEvent::HardLockup { stall, .. },
                ) => {
                    *stall = told;
                }
                What::Kernel(event) if !told.is_empty() => *event = KernelEvent::CpuStall(told),
                _ => {}
            }
            out.happening(happening);
        }
    }

    fn event(&mut self, text: &[u8]) -> Option<KernelEvent> {
        if let Some(release) = text.strip_prefix(b"Linux version ") {
            self.began = true;
            self.memory = Memory::default();
            let release = release.split(|byte| *byte == b' ').next().unwrap_or_default();
            return Some(KernelEvent::Boot {
                release: text::owned(release),
                id: self.boot_id.take(),
            });
        }
        if let Some(said) = text.strip_prefix(b"random: ") {
            if !self.began && random::in_start_kernel(said) {
                self.began = true;
                return Some(KernelEvent::Boot {
                    release: String::new(),
                    id: self.boot_id.take(),
                });
            }
            return random::event(said);
        }
        tasks::event(text)
            .or_else(|| self.memory.kill(text))
            .or_else(|| devices::event(text))
            .or_else(|| steps::event(text))
    }

    fn happened(&mut self, event: KernelEvent, message: Message<'_>, out: &mut Out<'_>) {
        self.close(out);
        if !self.room(&event) {
            out.account().left_out += 1;
            return;
        }
        let hung = matches!(event, KernelEvent::HungTask { .. });
        let lockup = matches!(
            event,
            KernelEvent::SoftLockup { .. } | KernelEvent::HardLockup { .. } | KernelEvent::RcuStall
        );
        let (at, since_boot) = (message.stamp.at, message.stamp.since_boot);
        let happening = Happening {
            what: What::Kernel(event),
            at,
            since_boot,
            quote: out.here(),
            text: quoted(message.line),
        };
        if hung {
            self.hung = Some((happening, 0, Stack::default()));
        } else if lockup {
            self.lockup = Some((happening, Lockup::begin(message.text)));
        } else {
            out.happening(happening);
        }
    }

    fn room(&mut self, event: &KernelEvent) -> bool {
        let kind = std::mem::discriminant(event);
        match self.kept.iter_mut().find(|(of, _)| *of == kind) {
            Some((_, count)) => {
                *count = count.saturating_add(1);
                *count <= OF_A_KIND
            }
            None => {
                self.kept.push((kind, 1));
                true
            }
        }
    }

    /// Takes a line of a report of lockdep, or that begins one.
    fn of_order(&mut self, text: &[u8], out: &mut Out<'_>) -> bool {
        if let Some(mut order) = self.order.take() {
            if order.line(text) {
                self.order = Some(order);
            } else {
                order.end(out);
            }
            return true;
        }
        self.order = LockOrder::begins(text, out);
        self.order.is_some()
    }

    /// Takes a line of the report of a lockup or stall.
    fn of_lockup(&mut self, text: &[u8], out: &mut Out<'_>) -> bool {
        let Some((happening, lockup)) = &mut self.lockup else {
            return false;
        };
        if let What::Kernel(KernelEvent::SoftLockup { process, .. }) = &mut happening.what
            && process.is_empty()
            && let Some(name) = tasks::in_brackets(text)
        {
            // The name stands on a line of its own where a mail program has wrapped the first.
            *process = name;
            return true;
        }
        match lockup.note(text) {
            Some(said) => said,
            None => {
                self.close(out);
                false
            }
        }
    }

    /// Takes a line of the report of a hung task: its stack, who owns what it waits for.
    fn of_hung_task(&mut self, text: &[u8], out: &mut Out<'_>) -> bool {
        let Some((happening, lines, stack)) = &mut self.hung else {
            return false;
        };
        *lines += 1;
        let What::Kernel(KernelEvent::HungTask { owner, .. }) = &mut happening.what else {
            return false;
        };
        if let Some(likely) = tasks::owner(text) {
            *owner = Some(likely);
            self.close(out);
            return true;
        }
        if *lines > tasks::REPORT_LINES {
            self.close(out);
            return false;
        }
        stack.take(text) || tasks::in_report(text)
    }
}

#[cfg(test)]
mod tests;
