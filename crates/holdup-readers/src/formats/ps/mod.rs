//! `ps` in all its shapes (`aux`, `-ef`, `-eLf`, `-eLo pid,tid,stat,wchan:32,comm`, forests), of procps and busybox, once
//! or again and again, with `date`, `uptime` or `/proc/loadavg` between.
//!
//! In: heads, which name the columns, and rows below them; or rows below a prompt whose command names the columns. Out: a
//! snapshot for each head, of those tasks that do not just sleep; how many threads large processes have; load averages that
//! stand between. What `%CPU` is here, an average since the process began, is not taken.

mod columns;
mod headless;
mod piled;

pub(crate) use piled::Piled;

use super::databases::titles;
use crate::day_time::{date_line, length};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::load;
use crate::numbers::{decimal, whole};
use crate::statements;
use crate::tasks::{self, Listed, Tasks};
use columns::{Columns, Row};
use holdup_evidence::observed::{Metric, SeenThread, State, StatementKind, What, When};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("ps", Family::Host, recognise)
    .about("ps")
    .openings(&[
        "USER PID %CPU %MEM",
        "UID PID PPID",
        "F S UID PID",
        "F UID PID PPID",
        "PID TID STAT",
        "PID LWP TTY",
        "PID LWP S",
        "PID TTY STAT",
        "PID TTY TIME",
        "PID PPID STAT",
        "PID STAT WCHAN",
        "STAT PID",
        "PID USER TIME COMMAND",
        "PID USER VSZ STAT COMMAND",
    ]);

/// Lines of the beginning in which the head must be.
const LOOKED_AT: usize = 60;

/// Columns from which a head is beyond doubt.
const MIN_COLUMNS: usize = 4;

/// Threads of a process from which their number is worth a figure: thread pools of large servers stay below it.
const NOTABLE_THREADS: u64 = 500;

/// The longest name of the kernel's, bytes: a longer text is a command line.
const COMM: usize = 15;

/// Bytes of a name that are kept.
const LONGEST_NAME: usize = 64;

/// What the list has behind the name of a process that is over.
const DEFUNCT: &[u8] = b"<defunct>";

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    match lines.find_map(Columns::of_head) {
        Some(columns) if columns.count() >= MIN_COLUMNS => Sureness::Certain,
        Some(_) => Sureness::Likely,
        None if are_rows(head) => Sureness::Certain,
        None => Sureness::No,
    }
}

/// Whether most of a text is rows that lost their head, as what somebody picked out of a list has.
fn are_rows(head: &[u8]) -> bool {
    let lines = head
        .split(|byte| *byte == b'\n')
        .take(LOOKED_AT)
        .filter(|line| !line.trim_ascii().is_empty());
    let (rows, others): (Vec<_>, Vec<_>) = lines.partition(|line| Columns::of_row(line).is_some());
    !rows.is_empty() && rows.len() >= others.len()
}

#[derive(Debug, Default)]
struct Reader {
    columns: Option<Columns>,
    tasks: Tasks,
    /// What a date or a load between the lists says of when the next one was made.
    at: Option<When>,
    /// Threads that follow each other and are of one process: its id, its name, how many.
    run: Option<(u32, String, u64)>,
    piled: Piled,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let row = self.columns.as_ref().and_then(|columns| columns.row(line));
        if let Some(row) = row {
            self.row(&row, out);
            return Understood::Evidence;
        }
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        if let Some(columns) = Columns::of_head(line) {
            self.begin(columns, out);
            return Understood::Evidence;
        }
        if let Some(load) = load::of(line) {
            self.over(out);
            self.at = load.at.or(self.at);
            load.put(self.at, out);
            return Understood::Evidence;
        }
        if let Some(at) = date_line(line) {
            self.over(out);
            self.at = Some(at);
            return Understood::Evidence;
        }
        if let Some(columns) = Columns::of_command(line) {
            self.begin(columns, out);
            return Understood::Evidence;
        }
        // The head was left out.
        if let Some(columns) = Columns::of_row(line).filter(|_| self.columns.is_none()) {
            if let Some(row) = columns.row(line) {
                self.begin(columns.clone(), out);
                self.row(&row, out);
            }
            return Understood::Evidence;
        }
        Understood::No
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.over(out);
    }
}

impl Reader {
    fn begin(&mut self, columns: Columns, out: &mut Out<'_>) {
        self.over(out);
        let at = self.at.take();
        out.report(at, None, false);
        let listed = Listed {
            of_threads: Some(columns.of_threads()),
            states: columns.states(),
        };
        self.tasks.begin(at, listed, out);
        self.columns = Some(columns);
    }

    /// A list is over.
    fn over(&mut self, out: &mut Out<'_>) {
        self.end_run(out);
        let whole_list = self
            .columns
            .as_ref()
            .is_some_and(|columns| columns.of_threads() && !columns.picked);
        if whole_list && self.tasks.total() > 0 {
            out.figure(Metric::ThreadsTotal, "", self.tasks.total() as f64);
        }
        self.tasks.flush(out);
        if let Some((line, text)) = self.piled.told() {
            let mut quote = out.here();
            quote.line = line;
            out.statement(statements::one(StatementKind::Stalled, None, quote, text));
        }
    }

    fn row(&mut self, row: &Row<'_>, out: &mut Out<'_>) {
        let (whole_name, over) = match row.name.strip_suffix(DEFUNCT) {
            Some(name) => (name.trim_ascii(), true),
            None => (row.name, false),
        };
        let name = program(without_tree(whole_name));
        self.threads(row, name, out);
        let command = without_tree(whole_name);
        self.piled.row(row.pid, row.parent, command, out.here().line);
        let pid = row.pid.or(row.tid);
        if let Some(pid) = row.pid.filter(|pid| row.tid.is_none_or(|tid| tid == *pid)) {
            self.tasks.remember(pid, name, out);
        }
        let leader = row.pid.filter(|pid| row.tid.is_none_or(|tid| tid == *pid));
        if let Some(session) = leader.and_then(|pid| titles::session(pid, without_tree(whole_name))) {
            out.happened(What::Session(session), self.at, None, whole_name);
        }
        let memory = decimal(row.memory).filter(|share| *share >= tasks::NOTABLE_PERCENT);
        if memory.is_some() && row.tid.is_none_or(|tid| Some(tid) == row.pid) {
            let resident = row.resident.map(|kib| kib as f64);
            tasks::usage(out, &tasks::named(&text_of(name), pid), None, memory, resident);
        }
        let state = match tasks::state(row.state) {
            Some(state) => state,
            None if over => State::Zombie,
            None => State::Unknown,
        };
        if tasks::sleeps(state) || state == State::Unknown {
            self.tasks.count();
            return;
        }
        let function = row.waits_in().map(|(name, cut)| {
            let end = if cut { "…" } else { "" };
            format!("{}{end}", String::from_utf8_lossy(name))
        });
        let task = SeenThread {
            name: text_of(name),
            tid: row.tid.or(row.pid),
            pid: row.pid,
            state,
            cpu: length(row.time),
            elapsed: length(row.elapsed).or_else(|| whole(row.elapsed)?.checked_mul(1_000_000_000)),
            kernel_function: function,
            parent: row.parent,
            terminal: (!row.terminal.is_empty()).then_some(!matches!(row.terminal, b"?" | b"-")),
            quote: out.here(),
            ..SeenThread::default()
        };
        self.tasks.add(task, out);
    }

    /// How many threads a process has, by its column or by its rows.
    fn threads(&mut self, row: &Row<'_>, name: &[u8], out: &mut Out<'_>) {
        if let Some(count) = row.threads {
            if count >= NOTABLE_THREADS && row.tid.is_none_or(|tid| Some(tid) == row.pid) {
                let of = tasks::named(&text_of(name), row.pid);
                out.figure(Metric::ProcessThreads, &of, count as f64);
            }
            return;
        }
        let Some((pid, _)) = row.pid.zip(row.tid) else {
            return;
        };
        match &mut self.run {
            Some((of, _, count)) if *of == pid => *count += 1,
            _ => {
                self.end_run(out);
                self.run = Some((pid, text_of(name), 1));
            }
        }
    }

    fn end_run(&mut self, out: &mut Out<'_>) {
        let Some((pid, name, count)) = self.run.take() else {
            return;
        };
        if count >= NOTABLE_THREADS {
            out.figure(
                Metric::ProcessThreads,
                &tasks::named(&name, Some(pid)),
                count as f64,
            );
        }
    }
}

/// A name without the lines of a forest in front of it.
fn without_tree(mut name: &[u8]) -> &[u8] {
    loop {
        name = name.trim_ascii_start();
        name = match name {
            [b'|', rest @ ..] => rest,
            [b'\\', b'_', b' ', rest @ ..] => rest,
            _ => return name,
        };
    }
}

/// The program of a command line; a name of the kernel's is shorter and stays as it is.
fn program(name: &[u8]) -> &[u8] {
    if name.len() <= COMM && name.first() != Some(&b'/') {
        return name;
    }
    let word = name.split(u8::is_ascii_whitespace).next().unwrap_or(name);
    let word = match word.first() {
        Some(b'/') => word.rsplit(|byte| *byte == b'/').next().unwrap_or(word),
        _ => word,
    };
    let word = word.strip_suffix(b":").unwrap_or(word);
    word.get(..LONGEST_NAME).unwrap_or(word)
}

#[cfg(test)]
mod tests;
