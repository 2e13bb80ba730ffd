//! The columns: name, what stands in it, and how it is reported of a row. The page `docs/recordings.md` has the same, and a test
//! holds the two against each other.

use super::rows::Row;
use crate::Segment;
use holdup_evidence::{Frame, Ns};
use holdup_model::attributed::{AttributedWait, Holder, How};
use serde::Serialize;
use std::borrow::Cow;

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What stands in it, with its unit.
    pub about: &'static str,
    pub(super) cells: Cells,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers of 64 bits.
    Integer,
    /// Instants: microseconds since the epoch, UTC.
    Timestamp,
    /// Numbers that need not be whole.
    Number,
    /// Truth values.
    Boolean,
    /// Text.
    Text,
    /// Lists of text.
    Texts,
}

impl Column {
    /// What its values are.
    #[must_use]
    pub fn values(&self) -> Values {
        match self.cells {
            Cells::Number(_) => Values::Integer,
            Cells::Instant(_) => Values::Timestamp,
            Cells::Real(_) => Values::Number,
            Cells::Flag(_) => Values::Boolean,
            Cells::Text(_) => Values::Text,
            Cells::Texts(_) => Values::Texts,
        }
    }

    /// Its type, as people call it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.values() {
            Values::Integer => "integer",
            Values::Timestamp => "timestamp",
            Values::Number => "number",
            Values::Boolean => "boolean",
            Values::Text => "text",
            Values::Texts => "list of text",
        }
    }
}

type Cell<T> = fn(&Segment, &Row<'_>) -> T;

/// How a cell is reported, by the type of the column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cells {
    /// A number.
    Number(Cell<Option<i64>>),
    /// Microseconds since the epoch, UTC.
    Instant(Cell<Option<i64>>),
    /// A number that need not be whole.
    Real(Cell<Option<f64>>),
    /// A truth value.
    Flag(Cell<Option<bool>>),
    /// Text.
    Text(for<'a> fn(&'a Segment, &'a Row<'_>) -> Option<Cow<'a, str>>),
    /// A list of text.
    Texts(Cell<Vec<String>>),
}

macro_rules! columns {
    ($($name:literal, $about:literal, $kind:ident($cell:expr);)*) => {
        /// All columns, in their order. Columns are added at the end and never change their meaning.
        pub static COLUMNS: &[Column] = &[$(Column { name: $name, about: $about, cells: Cells::$kind($cell) }),*];
    };
}

columns! {
    "segment_start", "when the observation began", Instant(|segment, _| Some(segment.head.started_unix.div_euclid(1_000)));
    "segment_ns", "how long it lasted, nanoseconds", Number(|segment, _| number(segment.head.length));
    "host", "the host's name; empty where `--redact` took it out", Text(|segment, _| text(segment.head.host.as_ref()));
    "boot_id", "one boot of it: the kernel's `random/boot_id`", Text(|segment, _| text(segment.head.boot_id.as_ref()));
    "kernel", "`uname -r`", Text(|segment, _| text(segment.head.kernel.as_ref()));
    "unit", "the systemd unit that was asked for", Text(|segment, _| text(segment.head.unit.as_ref()));
    "cgroup", "the cgroup that was asked for", Text(|segment, _| text(segment.head.cgroup.as_ref()));
    "kind", "what the row tells: `wait`, `path`, `thread`, `request` or `figure`", Text(|_, row| Some(row.kind.id().into()));
    "pid", "process id; empty of `path`, `request` and `figure`", Number(|_, row| row.name.map(|name| i64::from(name.pid)));
    "tid", "thread id; 0 of a row that stands for several threads", Number(|_, row| row.name.map(|name| i64::from(name.tid)));
    "process", "the process's name", Text(|_, row| text(row.name.map(|name| &name.process)));
    "thread", "the thread's name", Text(|_, row| text(row.name.map(|name| &name.thread)));
    "threads", "of `thread`: for how many threads the row stands", Number(|_, row| row.threads.map(i64::from));
    "cause", "what the time was for; `holdup explain CAUSE` says more; empty of `figure`", Text(|_, row| Some(row.cause?.id().into()));
    "ns", "how much time, nanoseconds", Number(|_, row| number(row.tally?.ns));
    "count", "in how many pieces: how often the thread blocked", Number(|_, row| number(row.tally?.count));
    "max_ns", "the longest of them, nanoseconds", Number(|_, row| number(row.tally?.max));
    "open", "whether one still lasted at the end", Flag(|_, row| Some(row.tally?.open));
    "p50_ns", "of `wait`: the median, nanoseconds", Number(|_, row| number(row.wait?.p50));
    "p99_ns", "of `wait`: the 99th percentile, nanoseconds", Number(|_, row| number(row.wait?.p99));
    "max_start", "of `wait`: when the longest began", Instant(max_start);
    "path_ns", "of `wait`: how much of the critical path it is itself, nanoseconds", Number(|_, row| number(row.wait?.path_ns));
    "handed_on_ns", "of `wait`: how much of the critical path others spent while it waited for them, nanoseconds",
        Number(|_, row| number(row.wait?.handed_on_ns));
    "sampled", "of `wait`: whether the time rests on samples", Flag(|_, row| Some(row.wait?.how == How::Sampled));
    "error_ns", "of `wait`: one standard error of `ns`, where it rests on samples", Number(|_, row| number(row.wait?.error));
    "timed_out", "of `wait`: how many of `count` timed out", Number(|_, row| number(row.wait?.timed_out));
    "call", "of `wait`: the system call", Text(|_, row| text(row.wait?.call.as_ref()));
    "resource_kind", "of `wait`: the kind of what was waited for: `file`, `device`, `socket`, `lock`, `process`, `cgroup`, `kernel`, `name`",
        Text(|_, row| named(row.wait?.resource.kind));
    "resource", "of `wait`: its name", Text(|_, row| text(Some(&row.wait?.resource.name)));
    "asker_frame", "of `wait`: the function that asked", Text(|_, row| text(row.wait?.asker.frame.as_ref()));
    "asker_module", "of `wait`: the file it is in", Text(|_, row| text(row.wait?.asker.module.as_ref()));
    "asker_build_id", "of `wait`: that file's build id, where it is known", Text(build_id);
    "stack", "of `wait`: the user stack, innermost first", Texts(|_, row| stack(row.wait));
    "kernel_stack", "of `wait`: the kernel stack that most of it was seen in, innermost first",
        Texts(|_, row| row.wait.map_or_else(Vec::new, |wait| wait.kernel_stack.clone()));
    "held_by_pid", "of `wait`: the process that blocked it longest", Number(|_, row| Some(i64::from(holder(row)?.name.pid)));
    "held_by_process", "of `wait`: its name", Text(|_, row| text(Some(&holder(row)?.name.process)));
    "held_by_thread", "of `wait`: its thread's name", Text(|_, row| text(Some(&holder(row)?.name.thread)));
    "held_how", "of `wait`: how that is known: `mutex-owner`, `waker` …", Text(|_, row| named(holder(row)?.how_known));
    "held_doing", "of `wait`: the cause that it was in meanwhile, mostly",
        Text(|_, row| Some(holder(row)?.doing?.id().into()));
    "held_ns", "of `wait`: for how long it blocked, nanoseconds", Number(|_, row| number(holder(row)?.ns));
    "figure", "of `figure`: what was measured, its unit at the end: `disk-util-percent`, `memory-available-kib` …",
        Text(|_, row| named(row.series?.metric));
    "figure_of", "of `figure`: of which disk, CPU, process …; empty of the whole machine",
        Text(|_, row| Some(row.series?.of.as_str().into()).filter(|of: &Cow<'_, str>| !of.is_empty()));
    "figure_mean", "of `figure`: the mean of its observed values", Real(|_, row| Some(row.series?.mean));
    "figure_max", "of `figure`: the greatest of them", Real(|_, row| Some(row.series?.greatest));
}

/// As a signed number; longer than 292 years is that.
fn number(ns: Ns) -> Option<i64> {
    Some(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn text(text: Option<&String>) -> Option<Cow<'_, str>> {
    text.map(|text| Cow::Borrowed(text.as_str()))
}

/// The id of an enum's value, as the JSON report has it.
fn named(value: impl Serialize) -> Option<Cow<'static, str>> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(id)) => Some(Cow::Owned(id)),
        _ => None,
    }
}

fn max_start(segment: &Segment, row: &Row<'_>) -> Option<i64> {
    let at = row.wait.map(|wait| wait.max_started).filter(|at| *at > 0)?;
    let offset = segment.facts.unix_minus_monotonic?;
    Some(i64::try_from(at).ok()?.checked_add(offset)?.div_euclid(1_000))
}

fn build_id<'a>(segment: &'a Segment, row: &'a Row<'_>) -> Option<Cow<'a, str>> {
    text(segment.head.build_ids.get(row.wait?.asker.module.as_ref()?))
}

/// As in the report: the last of those that were in the way longest.
fn holder<'a>(row: &Row<'a>) -> Option<&'a Holder> {
    row.wait?.holders.iter().rev().max_by_key(|holder| holder.ns)
}

fn stack(wait: Option<&AttributedWait>) -> Vec<String> {
    wait.map_or_else(Vec::new, |wait| wait.asker.stack.iter().map(frame).collect())
}

/// `RAND_status+0x31 (libcrypto.so.3)`; without a name `libcrypto.so.3+0x1b2f31`.
fn frame(frame: &Frame) -> String {
    let module = frame.module.as_deref();
    match (&frame.symbol, module) {
        (Some(symbol), Some(module)) => format!("{symbol}+{:#x} ({module})", frame.offset),
        (Some(symbol), None) => symbol.clone(),
        (None, module) => format!("{}+{:#x}", module.unwrap_or("[anonymous]"), frame.offset),
    }
}
