//! Processes that the kernel ends for their memory. What memory and swap there was stands in the lines before.

use super::text::{after, number, owned, until};
use crate::find::find;
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{KernelEvent, Quote, StatementKind};
use memchr::memrchr;

/// What the lines since a shortage began tell.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Whether one is being reported.
    reporting: bool,
    /// Who asked for memory that there was none of, as long as nobody was ended for it.
    asked: Option<(String, Quote)>,
    cgroup: Option<String>,
    free_swap_kib: Option<u64>,
    total_swap_kib: Option<u64>,
    /// Of the processes that are listed the one with most memory: its name and number, and how many pages it has.
    largest: Option<(String, u64, u64)>,
}

/// KiB of a page on nearly all machines: the list counts in pages and does not say how large they are.
const PAGE_KIB: u64 = 4;

impl Memory {
    /// Takes a line that may be of such a report; whether it is.
    pub(super) fn note(&mut self, text: &[u8], here: impl Fn() -> Quote) -> bool {
        if let Some(who) = until(text, b" invoked oom-killer: ") {
            *self = Memory {
                reporting: true,
                asked: Some((owned(who), here())),
                ..Memory::default()
            };
            return true;
        }
        // A copy that begins behind the first line of the report.
        if let Some(name) = text.strip_prefix(b"Memory cgroup stats for ")
            && self.asked.is_none()
        {
            let name = owned(until(name, b": ").unwrap_or(name).trim_ascii());
            self.reporting = true;
            self.asked = Some((format!("a process of the memory cgroup {name}"), here()));
            return true;
        }
        if !self.reporting {
            return false;
        }
        let text = text.trim_ascii();
        if let Some(free) = text.strip_prefix(b"Free swap") {
            self.free_swap_kib = after(free, b"= ").and_then(number);
            return true;
        }
        if let Some(total) = text.strip_prefix(b"Total swap = ") {
            self.total_swap_kib = number(total);
            return true;
        }
        // Since 4.20.
        if let Some(said) = text.strip_prefix(b"oom-kill:") {
            let cgroup = after(said, b"oom_memcg=").and_then(|rest| until(rest, b",task_memcg="));
            self.cgroup = cgroup.map(owned).or(self.cgroup.take());
            return true;
        }
        // The heading of the list, whose last but one name is of a figure and says nothing itself.
        if text.ends_with(b"oom_score_adj name") {
            return true;
        }
        if let Some(listed) = listed(text) {
            if self.largest.as_ref().is_none_or(|largest| listed.2 > largest.2) {
                self.largest = Some(listed);
            }
            return true;
        }
        // Before.
        if let Some(cgroup) = after(text, b"killed as a result of limit of ") {
            self.cgroup = Some(owned(cgroup));
            return true;
        }
        false
    }

    /// Whether no shortage is being reported.
    pub(super) fn is_idle(&self) -> bool {
        !self.reporting
    }

    /// The log ends before it says who was ended: it was cut, or nobody could be.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        let Some((who, quote)) = self.asked.take() else {
            return;
        };
        let largest = self.largest.take().map(|(name, pid, pages)| {
            let mib = pages.saturating_mul(PAGE_KIB) >> 10;
            format!("; of the processes that are listed {name} (pid {pid}) has most memory, {pages} pages ({mib} MiB)")
        });
        let text = format!(
            "{who} asked for memory when there was none left (invoked oom-killer); who was ended for it is not in this text{}",
            largest.unwrap_or_default()
        );
        out.statement(statements::one(StatementKind::Exhausted, None, quote, text));
    }

    /// `Memory cgroup out of memory: Killed process 12 (java) total-vm:1kB, anon-rss:1kB, ...`, with a comma and a user
    /// behind the number or the name on some.
    pub(super) fn kill(&mut self, text: &[u8]) -> Option<KernelEvent> {
        const BEGIN: [&[u8]; 3] = [b"Out of memory", b"Memory cgroup", b"Killed process"];
        if !BEGIN.iter().any(|begin| text.starts_with(begin)) {
            return None;
        }
        let said = after(text, b"Killed process ")?;
        let pid = number(said).and_then(|pid| u32::try_from(pid).ok())?;
        let sizes = find(said, b"total-vm:").or_else(|| find(said, b"vsz:"));
        let head = said.get(..sizes.unwrap_or(said.len()))?;
        let name = after(head, b"(").and_then(|name| name.get(..memrchr(b')', name)?))?;
        let of_cgroup = text.starts_with(b"Memory cgroup") || self.cgroup.is_some();
        let found = std::mem::take(self);
        Some(KernelEvent::OomKill {
            process: owned(name),
            pid,
            resident_kib: resident(said),
            cgroup: of_cgroup.then(|| found.cgroup.unwrap_or_default()),
            // A cgroup's report has the figures of the cgroup, under other names.
            free_swap_kib: found.free_swap_kib,
            total_swap_kib: found.total_swap_kib,
        })
    }
}

/// A process of the list: `[  19388]  1000 19388  5588434   138005  8069120        0           999 node`.
fn listed(text: &[u8]) -> Option<(String, u64, u64)> {
    let inner = text.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', inner)?;
    let pid = crate::numbers::whole(inner.get(..end)?.trim_ascii())?;
    let rest = inner.get(end + 1..)?;
    let pages = crate::numbers::words(rest)
        .nth(3)
        .and_then(crate::numbers::whole)?;
    let name = rest.iter().position(u8::is_ascii_alphabetic)?;
    Some((owned(rest.get(name..)?.trim_ascii_end()), pid, pages))
}

/// Anonymous, of files and shared together.
fn resident(said: &[u8]) -> Option<u64> {
    let part = |name: &[u8]| after(said, name).and_then(number);
    let anonymous = part(b"anon-rss:")?;
    let others = [&b"file-rss:"[..], b"shmem-rss:"].into_iter().filter_map(part);
    Some(others.fold(anonymous, u64::saturating_add))
}
