//! Reports of the kernel that the workers of a pool do not get on: `BUG: workqueue lockup`.
//!
//! In: the pools that are stuck, and below them what each work queue has in flight and pending. Out: a statement for each of the pools that
//! were stuck longest: the function that has its worker, for how long, and what waits behind it. Reports come again every half minute;
//! the last of a pool stands for all. Source: the kernel's documentation, "Workqueue", and what its watchdog prints.

mod words;

use super::tasks;
use super::text::{after, number, owned, until};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};

/// What a report begins with.
const BEGINS: &[u8] = b"BUG: workqueue lockup - pool";

/// Lines of a report that are looked at: a machine has hundreds of work queues.
const MAX_LINES: u32 = 600;

/// Pools that are kept of a log, and that are told.
const MAX_POOLS: usize = 512;
const MAX_POOLS_TOLD: usize = 3;

/// Functions that are in flight and that are pending, of one pool.
const MAX_FLYING: usize = 16;
const MAX_PENDING: usize = 64;

/// Frames of where a worker is.
const MAX_FRAMES: usize = 3;

/// A work that a worker has.
#[derive(Debug)]
struct Flying {
    function: String,
    worker: String,
    queue: String,
    /// For how long, where the kernel tells it (`for 52s`).
    seconds: Option<u64>,
}

/// A pool of workers that is stuck.
#[derive(Debug, Default)]
struct Pool {
    cpus: String,
    nice: String,
    seconds: u64,
    quote: Quote,
    flying: Vec<Flying>,
    /// Functions, and how often each waits.
    pending: Vec<(String, u64)>,
    /// All that wait, those that are not kept included.
    waits: u64,
    /// Where its worker is, innermost first.
    frames: Vec<String>,
}

/// What the items of a list are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Flying,
    Pending,
}

/// What was reported so far.
#[derive(Debug, Default)]
pub(super) struct Workqueues {
    pools: Vec<Pool>,
    /// Lines of the report that are still looked at.
    left: u32,
    /// The pool whose first line was cut by a mail program.
    cut: Option<usize>,
    /// The work queue, and the pool, whose lists follow.
    queue: String,
    current: Option<usize>,
    list: Option<List>,
    /// Whether stacks of workers follow, and of which pool.
    stacks: bool,
}

impl Workqueues {
    /// Whether no report is being read.
    pub(super) fn is_idle(&self) -> bool {
        self.left == 0
    }

    /// Takes a message; whether it is of such a report.
    pub(super) fn note(&mut self, text: &[u8], here: impl FnOnce() -> Quote) -> bool {
        let text = text.trim_ascii();
        if text.starts_with(BEGINS) {
            self.begin(text, here());
            return true;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        if let Some(cut) = self.cut.take()
            && self.complete(cut, text)
        {
            return true;
        }
        self.report(text)
    }

    /// Takes the rest of a line that a mail program has wrapped; whether it is that.
    pub(super) fn goes_on(&mut self, text: &[u8]) -> bool {
        if self.left == 0 {
            return false;
        }
        let text = text.trim_ascii();
        if let Some(cut) = self.cut.take() {
            return self.complete(cut, text);
        }
        let Some(list) = self.list else { return false };
        let names = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.,:*()[] ".contains(byte);
        let fits = text.iter().all(names);
        if fits {
            self.items(text, list);
        }
        fits
    }

    fn begin(&mut self, text: &[u8], quote: Quote) {
        self.left = MAX_LINES;
        (self.current, self.list, self.stacks) = (None, None, false);
        let (cpus, nice) = (value(text, b"cpus="), value(text, b"nice="));
        let seconds = after(text, b" stuck for ").and_then(number);
        let is_it = |pool: &Pool| pool.cpus == cpus && pool.nice == nice;
        let known = self.pools.iter().position(is_it);
        let pool = Pool {
            cpus,
            nice,
            seconds: seconds.unwrap_or(0),
            quote,
            ..Pool::default()
        };
        let at = match known {
            Some(at) => {
                // A shorter one is of another time: the longest stands.
                let longer = self
                    .pools
                    .get(at)
                    .is_some_and(|known| known.seconds <= pool.seconds);
                if let Some(known) = self.pools.get_mut(at).filter(|_| longer) {
                    *known = pool;
                }
                at
            }
            None if self.pools.len() < MAX_POOLS => {
                self.pools.push(pool);
                self.pools.len() - 1
            }
            None => return,
        };
        self.cut = seconds.is_none().then_some(at);
    }

    /// The rest of a first line: `flags=0x0 nice=0 stuck for 65s!`, `for 49s!`.
    fn complete(&mut self, cut: usize, text: &[u8]) -> bool {
        let seconds = after(text, b"stuck for ")
            .or_else(|| text.strip_prefix(b"for "))
            .and_then(number);
        let Some((seconds, pool)) = seconds.zip(self.pools.get_mut(cut)) else {
            return false;
        };
        pool.seconds = seconds;
        if pool.nice.is_empty() {
            pool.nice = value(text, b"nice=");
        }
        true
    }

    fn report(&mut self, text: &[u8]) -> bool {
        if let Some(queue) = text.strip_prefix(b"workqueue ") {
            self.queue = owned(until(queue, b":").unwrap_or(queue));
            (self.current, self.list) = (None, None);
            return true;
        }
        if text.starts_with(b"pwq ") {
            let (cpus, nice) = (value(text, b"cpus="), value(text, b"nice="));
            let is_it = |pool: &Pool| pool.cpus == cpus && (pool.nice == nice || pool.nice.is_empty());
            self.current = self.pools.iter().position(is_it);
            self.list = None;
            return true;
        }
        if let Some(items) = text.strip_prefix(b"in-flight:") {
            self.list = Some(List::Flying);
            self.items(items, List::Flying);
            return true;
        }
        if let Some(items) = text.strip_prefix(b"pending:") {
            self.list = Some(List::Pending);
            self.items(items, List::Pending);
            return true;
        }
        self.list = None;
        if text.starts_with(b"Showing backtraces of running workers") {
            self.stacks = true;
            return true;
        }
        if text.starts_with(b"Showing ") || text.starts_with(b"delayed:") || text.starts_with(b"inactive:") {
            return true;
        }
        if let Some(pool) = text.strip_prefix(b"pool ") {
            // `pool 4:` above a stack, `pool 4: cpus=2 node=0 … hung=72s workers=3 idle: 9` in the list.
            return number(pool).is_some();
        }
        if !self.stacks {
            return false;
        }
        match tasks::frame(text) {
            Some(frame) => {
                // One stack follows for each pool, in the order of the pools; with one pool it is known whose it is.
                if let [pool] = self.pools.as_mut_slice()
                    && pool.frames.len() < MAX_FRAMES
                    && !frame.starts_with("__schedule")
                {
                    pool.frames.push(frame);
                }
                true
            }
            None => tasks::in_report(text) || text.starts_with(b"Workqueue: "),
        }
    }

    /// `3760137:psi_avgs_work, 12(RESCUER):other [module]`; `psi_avgs_work, 3*other, BAR(99)`.
    fn items(&mut self, text: &[u8], list: List) {
        let Some(pool) = self.current.and_then(|at| self.pools.get_mut(at)) else {
            return;
        };
        for item in text.split(|byte| *byte == b',') {
            let item = item.trim_ascii();
            let (front, name) = match list {
                List::Flying => match memchr::memchr(b':', item) {
                    Some(colon) => item.split_at_checked(colon).unwrap_or_default(),
                    None => continue,
                },
                List::Pending => match memchr::memchr(b'*', item) {
                    Some(star) => item.split_at_checked(star).unwrap_or_default(),
                    None => (&b"1"[..], item),
                },
            };
            let name = name
                .split(|byte| matches!(byte, b' ' | b'(' | b':' | b'*'))
                .find(|word| !word.is_empty());
            let Some(function) = name.map(owned) else { continue };
            match list {
                List::Flying if pool.flying.len() < MAX_FLYING => pool.flying.push(Flying {
                    function,
                    worker: owned(until(front, b"(").unwrap_or(front)),
                    queue: self.queue.clone(),
                    seconds: after(item, b" for ").and_then(number),
                }),
                List::Flying => {}
                List::Pending => {
                    let count = number(front).unwrap_or(1);
                    pool.waits = pool.waits.saturating_add(count);
                    let known = pool.pending.iter().position(|(known, _)| *known == function);
                    match known.and_then(|at| pool.pending.get_mut(at)) {
                        Some((_, known)) => *known = known.saturating_add(count),
                        None => {
                            if pool.pending.len() < MAX_PENDING {
                                pool.pending.push((function, count));
                            }
                        }
                    }
                }
            }
        }
    }

    /// The log has ended.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        let mut pools = std::mem::take(self).pools;
        pools.sort_by_key(|pool| std::cmp::Reverse((pool.seconds, pool.flying.len())));
        let more = pools.len().saturating_sub(MAX_POOLS_TOLD);
        for (at, pool) in pools.into_iter().take(MAX_POOLS_TOLD).enumerate() {
            let mut text = words::told(&pool);
            if at == 0 && more > 0 {
                text.push_str(&format!("; {more} more pools are stuck than are told here"));
            }
            let ns: Ns = pool.seconds.saturating_mul(1_000_000_000);
            out.statement(statements::one(
                StatementKind::Stalled,
                Some(ns).filter(|ns| *ns > 0),
                pool.quote,
                text,
            ));
        }
    }
}

/// The word behind `cpus=`.
fn value(text: &[u8], name: &[u8]) -> String {
    let value = after(text, name).unwrap_or_default();
    owned(until(value, b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests;
