//! Tasks of a snapshot by the kernel, as `top`, `ps` and `/proc` list them: those that are worth keeping.
//!
//! In: one task after another. Out: a [`Snapshot`] without the many that only sleep, which are counted. Figures of those
//! that use much become series.

use crate::gather::Out;
use holdup_evidence::observed::{Metric, Quote, SeenThread, Snapshot, SnapshotKind, State, When};

/// Percent of a CPU or of memory from which a process is worth a figure: less explains nothing by itself.
pub(crate) const NOTABLE_PERCENT: f64 = 1.0;

/// Tasks of one snapshot that are kept; a machine with more blocked ones is told by the first of them.
const MOST: usize = 20_000;

/// A snapshot in the making.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    threads: Vec<SeenThread>,
    total: u64,
    begun: Option<Quote>,
    at: Option<When>,
}

/// A state letter of the kernel (`Ss+`, `R<l`, `D`).
pub(crate) fn state(text: &[u8]) -> Option<State> {
    Some(match text.first()? {
        b'R' => State::Runnable,
        b'S' => State::Interruptible,
        b'D' => State::Uninterruptible,
        b'T' | b't' => State::Stopped,
        b'Z' => State::Zombie,
        b'I' => State::Idle,
        b'X' | b'x' => State::Ended,
        b'W' | b'P' | b'K' => State::Unknown,
        _ => return None,
    })
}

/// Whether a task in this state only sleeps, as most do.
pub(crate) fn sleeps(state: State) -> bool {
    matches!(state, State::Interruptible | State::Idle)
}

/// A process as series name it.
pub(crate) fn named(name: &str, pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("{name} (pid {pid})"),
        None => name.to_owned(),
    }
}

impl Tasks {
    /// A new list begins here.
    pub(crate) fn begin(&mut self, at: Option<When>, out: &mut Out<'_>) {
        self.flush(out);
        self.at = at;
        self.begun = Some(out.here());
    }

    /// One that is not kept.
    pub(crate) fn count(&mut self) {
        self.total = self.total.saturating_add(1);
    }

    /// One that may be worth keeping.
    pub(crate) fn add(&mut self, task: SeenThread, out: &mut Out<'_>) {
        self.count();
        if self.begun.is_none() {
            self.begun = Some(out.here());
        }
        if self.threads.len() < MOST {
            self.threads.push(task);
        } else {
            out.account().left_out += 1;
        }
    }

    /// The list is over.
    pub(crate) fn flush(&mut self, out: &mut Out<'_>) {
        let begun = self.begun.take();
        let total = std::mem::take(&mut self.total);
        let threads = std::mem::take(&mut self.threads);
        if total == 0 {
            return;
        }
        out.snapshot(Snapshot {
            kind: SnapshotKind::Kernel,
            at: self.at.take(),
            program: None,
            threads,
            deadlocks: Vec::new(),
            total: Some(total),
            quote: begun.unwrap_or_default(),
        });
    }
}

/// What a process uses, where it is much.
pub(crate) fn usage(
    out: &mut Out<'_>,
    of: &str,
    cpu: Option<f64>,
    memory: Option<f64>,
    resident_kib: Option<f64>,
) {
    let notable = |share: &f64| *share >= NOTABLE_PERCENT;
    if let Some(cpu) = cpu.filter(notable) {
        out.figure(Metric::ProcessCpuPercent, of, cpu);
    }
    if let Some(memory) = memory.filter(notable) {
        out.figure(Metric::ProcessMemoryPercent, of, memory);
        if let Some(resident) = resident_kib {
            out.figure(Metric::ProcessResidentKib, of, resident);
        }
    }
}
