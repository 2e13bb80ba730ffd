//! Tasks of a snapshot by the kernel, as `top`, `ps` and `/proc` list them: those that are worth keeping.
//!
//! In: one task after another. Out: a [`Snapshot`] without the many that only sleep, which are counted; but with the parents
//! of those that wait to be seen to by them. Figures of those that use much become series.

use crate::gather::{Out, text_of};
use holdup_evidence::observed::{Metric, Quote, SeenThread, Snapshot, SnapshotKind, State, When};

/// Percent of a CPU or of memory from which a process is worth a figure: less explains nothing by itself.
pub(crate) const NOTABLE_PERCENT: f64 = 1.0;

/// Tasks of one snapshot that are kept; a machine with more blocked ones is known by the first of them.
const MAX_TASKS: usize = 20_000;

/// Bytes of the names that are remembered of one snapshot, for those who turn out to be parents.
const NAMES: usize = 4 << 20;

/// A snapshot in the making.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    threads: Vec<SeenThread>,
    total: u64,
    begun: Option<Quote>,
    at: Option<When>,
    listed: Listed,
    names: Names,
}

/// What a list is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Whether it is of threads, and not of processes; `None` where that is not known.
    pub(crate) of_threads: Option<bool>,
    /// Whether it tells states.
    pub(crate) states: bool,
}

/// Names of processes by their ids, in one piece of memory.
#[derive(Debug, Default)]
struct Names {
    text: Vec<u8>,
    /// Process id, line, and where in the text its name ends.
    ends: Vec<(u32, u64, usize)>,
}

/// A state letter of the kernel (`Ss+`, `R<l`, `D`).
pub(crate) fn state(text: &[u8]) -> Option<State> {
    // Behind it are signs of its priority and its terminal; a word in capitals is a state of something else (`TIMED_WAIT`).
    let word = |second: &u8| second.is_ascii_uppercase() && !b"NL".contains(second);
    if text.get(1).is_some_and(word) {
        return None;
    }
    Some(match text.first()? {
        b'R' => State::Runnable,
        b'S' => State::Interruptible,
        b'D' => State::Uninterruptible,
        b'T' => State::Stopped,
        b't' => State::Traced,
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
    pub(crate) fn begin(&mut self, at: Option<When>, listed: Listed, out: &mut Out<'_>) {
        self.flush(out);
        self.at = at;
        self.listed = listed;
        self.begun = Some(out.here());
    }

    /// One that is not kept.
    pub(crate) fn count(&mut self) {
        self.total = self.total.saturating_add(1);
    }

    /// How many there were.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The name of one that may turn out to be a parent.
    pub(crate) fn remember(&mut self, pid: u32, name: &[u8], out: &Out<'_>) {
        let names = &mut self.names;
        if names.text.len() < NAMES {
            names.text.extend_from_slice(name);
            names.ends.push((pid, out.here().line, names.text.len()));
        }
    }

    /// One that may be worth keeping.
    pub(crate) fn add(&mut self, task: SeenThread, out: &mut Out<'_>) {
        self.count();
        if self.begun.is_none() {
            self.begun = Some(out.here());
        }
        if self.threads.len() < MAX_TASKS {
            self.threads.push(task);
        } else {
            out.account().left_out += 1;
        }
    }

    /// The list is over.
    pub(crate) fn flush(&mut self, out: &mut Out<'_>) {
        self.add_parents(out);
        let begun = self.begun.take();
        let total = std::mem::take(&mut self.total);
        let threads = std::mem::take(&mut self.threads);
        if total == 0 {
            return;
        }
        out.snapshot(Snapshot {
            at: self.at.take(),
            threads,
            total: Some(total),
            of_threads: self.listed.of_threads,
            states: self.listed.states,
            ..Snapshot::new(SnapshotKind::Kernel, begun.unwrap_or_default())
        });
    }

    /// Parents of zombies are kept, whatever they do.
    fn add_parents(&mut self, out: &Out<'_>) {
        let zombies = self.threads.iter().filter(|task| task.state == State::Zombie);
        let mut parents: Vec<u32> = zombies.filter_map(|task| task.parent).collect();
        parents.sort_unstable();
        parents.dedup();
        let mut start = 0;
        for (pid, line, end) in self.names.ends.drain(..) {
            let name = self.names.text.get(start..end).unwrap_or_default();
            start = end;
            let kept = |task: &SeenThread| task.pid.or(task.tid) == Some(pid);
            if parents.binary_search(&pid).is_err() || self.threads.iter().any(kept) {
                continue;
            }
            self.threads.push(SeenThread {
                name: text_of(name),
                tid: Some(pid),
                pid: Some(pid),
                quote: Quote { line, ..out.here() },
                ..SeenThread::default()
            });
        }
        self.names.text.clear();
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

#[cfg(test)]
mod tests {
    use super::{State, state};

    #[test]
    fn a_letter_with_signs_is_a_state_and_a_word_is_none() {
        let of_kernel = [&b"T"[..], b"Tl", b"TN", b"TL+"].map(state);
        assert_eq!(of_kernel, [Some(State::Stopped); 4]);
        assert_eq!([&b"TIMED_WAIT"[..], b"RUNNABLE", b"-", b""].map(state), [None; 4]);
        assert_eq!(state(b"D (disk sleep)"), Some(State::Uninterruptible));
    }
}
