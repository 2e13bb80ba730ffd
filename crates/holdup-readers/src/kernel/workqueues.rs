//! Reports of the kernel that the workers of a pool do not get on: `BUG: workqueue lockup`.
//!
//! In: the pools that are stuck, and below them what each work queue has in flight and pending. Out: a statement for each of the pools that
//! were stuck longest: the function that has its worker, for how long, and what waits behind it. Reports come again every half minute;
//! the last of a pool stands for all. Source: the kernel's documentation, "Workqueue", and what its watchdog prints.

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

/// Functions that a statement names, and frames of where they are.
const MAX_NAMED: usize = 4;
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
#[derive(Debug)]
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
        let known = self
            .pools
            .iter()
            .position(|pool| pool.cpus == cpus && pool.nice == nice);
        let pool = Pool {
            cpus,
            nice,
            seconds: seconds.unwrap_or(0),
            quote,
            flying: Vec::new(),
            pending: Vec::new(),
            waits: 0,
            frames: Vec::new(),
        };
        let at = match known {
            Some(at) => {
                // A shorter one is of another time: the longest stands.
                let longer = self.pools.get(at).is_some_and(|known| known.seconds <= pool.seconds);
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
                    match pool.pending.iter_mut().find(|(known, _)| *known == function) {
                        Some((_, known)) => *known = known.saturating_add(count),
                        None if pool.pending.len() < MAX_PENDING => pool.pending.push((function, count)),
                        None => {}
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
            let mut text = told(&pool);
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

fn told(pool: &Pool) -> String {
    let cpus = match pool.cpus.as_str() {
        "" => String::new(),
        cpus if cpus.bytes().all(|byte| byte.is_ascii_digit()) => format!(" of CPU {cpus}"),
        cpus => format!(" of CPUs {cpus}"),
    };
    let nice = match pool.nice.as_str() {
        "" | "0" => String::new(),
        nice => format!(" with nice {nice}"),
    };
    let long = match pool.seconds {
        0 => String::new(),
        seconds => format!(" for {seconds} s"),
    };
    let place = format!("the kernel's worker pool{cpus}{nice}");
    let mut text = match pool.flying.split_first() {
        Some((first, others)) => {
            let mut who = format!(
                "{} (work queue {}, worker {})",
                first.function, first.queue, first.worker
            );
            for other in others.iter().take(MAX_NAMED - 1) {
                who.push_str(&format!(", {} (worker {})", other.function, other.worker));
            }
            let runs = first.seconds.map_or_else(String::new, |seconds| format!(" for {seconds} s"));
            format!("{who} is in flight{runs} in {place}, which has been stuck{long} (workqueue lockup)")
        }
        None => format!("{place} has been stuck{long} (workqueue lockup), and nothing in flight is told of it"),
    };
    if !pool.frames.is_empty() {
        text.push_str(&format!("; its worker is in {}", pool.frames.join(" < ")));
    }
    if pool.waits > 0 {
        let mut pending: Vec<&(String, u64)> = pool.pending.iter().collect();
        pending.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let named: Vec<String> = pending
            .iter()
            .take(MAX_NAMED)
            .map(|(name, count)| match count {
                1 => name.clone(),
                count => format!("{count} {name}"),
            })
            .collect();
        let end = if pending.len() > MAX_NAMED { ", …" } else { "" };
        text.push_str(&format!("; {} wait for it: {}{end}", pool.waits, named.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const TEXT: &str = "[ 336.887598] BUG: workqueue lockup - pool cpus=2 node=0 flags=0x0 nice=0 stuck for 42s!
[ 336.887606] Showing busy workqueues and worker pools:
[ 336.887607] workqueue events: flags=0x0
[ 336.887608]   pwq 10: cpus=5 node=0 flags=0x0 nice=0 active=3/256 refcnt=4
[ 336.887611]     pending: other_work, other_work
[ 336.887619]   pwq 4: cpus=2 node=0 flags=0x0 nice=0 active=15/256 refcnt=16
[ 336.887621]     in-flight: 3701:flush_all [blk]
[ 336.887624]     pending: average, 3*average, sweep [net], BAR(3701)
[ 336.887643] workqueue events_power_efficient: flags=0x80
[ 336.887644]   pwq 4: cpus=2 node=0 flags=0x0 nice=0 active=1/256 refcnt=2
[ 336.887645]     pending: sweep
[ 336.887646] pool 4: cpus=2 node=0 flags=0x0 nice=0 hung=42s workers=3 idle: 12 34
";

    #[test]
    fn the_function_that_has_the_worker_and_who_waits_for_it() {
        let reading = read_text("d", TEXT.as_bytes());
        assert_eq!(
            reading.texts(),
            [
                "flush_all (work queue events, worker 3701) is in flight in the kernel's worker pool of CPU 2, which has been stuck for 42 s \
                (workqueue lockup); 7 wait for it: 4 average, 2 sweep, BAR"
            ]
        );
        let one = &reading.observed.statements[0];
        assert_eq!((one.kind, one.ns), (StatementKind::Stalled, Some(42_000_000_000)));
        // The report comes again, and the later one stands.
        let again = TEXT.replace("42s", "73s").replace("[ 336", "[ 367");
        let texts = read_text("d", format!("{TEXT}{again}").as_bytes());
        assert!(texts.texts()[0].contains("stuck for 73 s"), "{texts:?}");
        assert_eq!(texts.texts().len(), 1);
    }

    #[test]
    fn newer_kernels_tell_how_long_a_work_runs() {
        let text = TEXT.replace("flush_all [blk]", "flush_all [blk] for 41s, bh:tasklet_run for 3s");
        let reading = read_text("d", text.as_bytes());
        assert!(
            reading.texts()[0].starts_with(
                "flush_all (work queue events, worker 3701), tasklet_run (worker bh) is in flight for 41 s in the kernel's worker pool"
            ),
            "{reading:?}"
        );
    }

    #[test]
    fn a_report_without_times_that_was_quoted_and_wrapped() {
        let bare: String = TEXT
            .lines()
            .map(|line| format!("> {}\n", line.get(14..).unwrap_or_default()))
            .collect();
        let wrapped = bare.replace(" stuck for 42s!", " stuck\n> for 42s!");
        for text in [bare, wrapped] {
            let reading = read_text("d", text.as_bytes());
            assert_eq!(reading.observed.sources[0].format, "dmesg", "{text}");
            assert!(
                reading.texts()[0].starts_with("flush_all (work queue events, worker 3701)"),
                "{reading:?}"
            );
            assert!(reading.texts()[0].contains("for 42 s"), "{reading:?}");
        }
    }

    #[test]
    fn nothing_in_flight_and_rubbish() {
        let text = "[ 9.1] BUG: workqueue lockup - pool cpus=0-7 flags=0x4 nice=-20 stuck for 31s!\n[ 9.2] Freeing unused memory\n";
        assert_eq!(
            read_text("d", text.as_bytes()).texts(),
            [
                "the kernel's worker pool of CPUs 0-7 with nice -20 has been stuck for 31 s (workqueue lockup), and nothing in flight is \
                told of it"
            ]
        );
        for text in [
            "BUG: workqueue lockup - pool\nin-flight: :,:(\npending: *,99999999999999999999*x\npwq \n",
            "workqueue events: flags=0x0\n  in-flight: 3:x\n",
        ] {
            assert!(read_text("d", text.as_bytes()).observed.statements.len() <= 1, "{text}");
        }
    }
}
