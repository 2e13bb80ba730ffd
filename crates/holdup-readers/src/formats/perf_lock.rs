//! `perf lock contention` and `perf lock report`: how long locks were waited for.
//!
//! In: a heading that names the columns, and a row for each lock, caller or task; `contention` gives each time its unit, and so does a
//! new `report`, an old one has nanoseconds. Out: a statement about the lock that was waited for longest in all. Source: the manual
//! perf-lock(1).

use super::lock_stat::MIN_LONG_WAIT_NS;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, whole};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{counted, duration};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("perf-lock", Family::Host, recognise)
    .about("perf lock contention and report")
    .openings(&["contended total wait max wait avg wait"]);

/// Bytes of a line and of a name.
const LINE_BYTES: usize = 400;
const NAME_BYTES: usize = 120;

/// Rows that are no chance, without a heading.
const MIN_ROWS: usize = 2;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut rows = 0;
    for line in text.lines() {
        if Columns::of(line).is_some() {
            return Sureness::Certain;
        }
        rows += usize::from(Row::of(line, Columns::Contention(Who::Unknown)).is_some());
        if rows >= MIN_ROWS {
            return Sureness::Certain;
        }
    }
    Sureness::No
}

/// What the last columns of a row name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Unknown,
    /// The kind of lock, and the function that waits for it.
    Caller,
    /// The lock's address and its name.
    Symbol,
    /// The id and the name of the task that waits, or that has the lock.
    Task,
    Owner,
}

/// Which of the tables it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Columns {
    Contention(Who),
    Report,
}

impl Columns {
    fn of(heading: &str) -> Option<Columns> {
        let words: Vec<&str> = heading.split_whitespace().take(16).collect();
        let has = |name: &[&str]| words.windows(name.len()).any(|some| some == name);
        if words.first() == Some(&"contended") && has(&["total", "wait"]) && has(&["max", "wait"]) {
            let who = match words.last() {
                Some(&"caller") => Who::Caller,
                Some(&"symbol") => Who::Symbol,
                Some(&"comm") => Who::Task,
                Some(&"owner") => Who::Owner,
                _ => Who::Unknown,
            };
            return Some(Columns::Contention(who));
        }
        let report = words.first() == Some(&"Name") && has(&["acquired", "contended"]);
        report.then_some(Columns::Report)
    }
}

/// What was waited for.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    /// Who, with what was done: `spinlock in wake_up was waited for`, `worker (pid 7) waited for locks for`.
    who: String,
    count: u64,
    total: Ns,
    longest: Ns,
}

/// `787.16 us`, or nanoseconds as they are; how many words they are.
fn time(words: &[&str]) -> Option<(Ns, usize)> {
    let value = decimal(words.first()?.as_bytes()).filter(|value| (0.0..1e15).contains(value))?;
    let (unit, taken) = match words.get(1).copied().unwrap_or_default() {
        "ns" => (1.0, 2),
        "us" => (1e3, 2),
        "ms" => (1e6, 2),
        "s" => (1e9, 2),
        "m" => (6e10, 2),
        _ => (1.0, 1),
    };
    Some(((value * unit).min(1e18) as Ns, taken))
}

impl Row {
    fn of(line: &str, columns: Columns) -> Option<Row> {
        let line = line.get(..LINE_BYTES).unwrap_or(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        match columns {
            Columns::Contention(who) => Row::of_contention(&words, who),
            Columns::Report => Row::of_report(&words),
        }
    }

    /// `802  1.26 ms  11.73 us  1.58 us  spinlock  __wake_up_common_lock+0x62`.
    fn of_contention(words: &[&str], who: Who) -> Option<Row> {
        let (first, mut rest) = words.split_first()?;
        let count = whole(first.as_bytes())?;
        let mut times = [0; 3];
        for slot in &mut times {
            let (time, taken) = time(rest)?;
            // Without its unit it may be any number.
            (taken == 2).then_some(())?;
            *slot = time;
            rest = rest.get(taken..)?;
        }
        let [total, longest, _] = times;
        let (kind, name) = rest.split_first().filter(|(_, name)| !name.is_empty())?;
        let name: String = name.join(" ").chars().take(NAME_BYTES).collect();
        let function = name.split("+0x").next().unwrap_or_default();
        let who = match who {
            Who::Symbol => format!("lock {name} was waited for"),
            Who::Task => format!("{name} (pid {kind}) waited for locks for"),
            Who::Owner => format!("{name} (pid {kind}) had locks that were waited for"),
            Who::Caller => format!("{kind} in {function} was waited for"),
            Who::Unknown if kind.starts_with("ffff") => format!("lock {name} was waited for"),
            Who::Unknown if whole(kind.as_bytes()).is_some() => {
                format!("locks of {name} (pid {kind}) were waited for")
            }
            Who::Unknown => format!("{kind} in {function} was waited for"),
        };
        Some(Row {
            who,
            count,
            total,
            longest,
        })
    }

    /// `rcu_state  61  61  5.91 us  360.61 us  12.21 us  1.01 us`: acquired, contended; mean, all, longest and shortest wait.
    fn of_report(words: &[&str]) -> Option<Row> {
        let at = words
            .iter()
            .position(|word| whole(word.as_bytes()).is_some())
            .filter(|at| *at > 0)?;
        let (name, mut rest) = words.split_at_checked(at)?;
        let contended = whole(rest.get(1)?.as_bytes())?;
        rest = rest.get(2..)?;
        let mut times = [0; 4];
        for slot in &mut times {
            let (time, taken) = time(rest)?;
            *slot = time;
            rest = rest.get(taken..)?;
        }
        let [_, total, longest, _] = times;
        let name: String = name.join(" ").chars().take(NAME_BYTES).collect();
        Some(Row {
            who: format!("lock {name} was waited for"),
            count: contended,
            total,
            longest,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    columns: Option<Columns>,
    rows: u64,
    all: Ns,
    longest: Option<(Row, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(columns) = Columns::of(text) {
            self.end(out);
            self.columns = Some(columns);
            return Understood::Evidence;
        }
        let columns = self.columns.unwrap_or(Columns::Contention(Who::Unknown));
        let Some(row) = Row::of(text, columns) else {
            // A stack of the caller's, with -v.
            let frame = text.starts_with("0x") && text.contains("+0x");
            return if frame {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        self.rows += 1;
        self.all = self.all.saturating_add(row.total);
        if self
            .longest
            .as_ref()
            .is_none_or(|(longest, _)| row.total > longest.total)
        {
            self.longest = Some((row, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some((row, quote)) = all.longest else { return };
        // How long was measured is not told, so of many short waits nothing can be judged.
        let kind = match row.longest >= MIN_LONG_WAIT_NS {
            true => StatementKind::Stalled,
            false => StatementKind::Took,
        };
        let of = match all.rows {
            0 | 1 => String::new(),
            rows => format!(", of {} in {rows} rows", duration(all.all)),
        };
        let text = format!(
            "{} {} in {}, the longest {} (from {} for one wait on it is long){of}",
            row.who,
            duration(row.total),
            counted(row.count, "wait", "waits"),
            duration(row.longest),
            duration(MIN_LONG_WAIT_NS)
        );
        out.statement(Statement {
            share: (all.all > 0).then(|| row.total as f64 / all.all as f64),
            ..statements::one(kind, Some(row.total), quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const ROWS: &str = "         802      1.26 ms     11.73 us      1.58 us     spinlock   wake_them+0x62\n          \
        13    787.16 ms    105.44 ms     60.55 ms     rwlock:W   leave_group+0x14\n";

    #[test]
    fn the_lock_that_was_waited_for_longest() {
        let heading = "   contended   total wait     max wait     avg wait         type   caller\n\n";
        for text in [format!("{heading}{ROWS}"), ROWS.to_owned()] {
            let reading = read_text("p", text.as_bytes());
            assert_eq!(reading.observed.sources[0].format, "perf-lock");
            assert_eq!(reading.accounts[0].not_understood, 0);
            let one = &reading.observed.statements[0];
            assert_eq!((one.kind, one.ns), (StatementKind::Stalled, Some(787_160_000)));
            assert_eq!(
                one.text,
                "rwlock:W in leave_group was waited for 787 ms in 13 waits, the longest 105 ms (from 10.0 ms for one wait on it is long), of \
                 788 ms in 2 rows"
            );
        }
    }

    #[test]
    fn tasks_symbols_and_the_older_report() {
        let tasks = " contended   total wait     max wait     avg wait          pid   comm\n\n  743    591.92 us    442.96 us     31.58 us      1431   worker\n";
        let reading = read_text("p", tasks.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
        assert_eq!(
            reading.texts(),
            [
                "worker (pid 1431) waited for locks for 592 \u{b5}s in 743 waits, the longest 443 \u{b5}s (from 10.0 ms for one wait on it is long)"
            ]
        );
        let report = "                Name   acquired  contended   avg wait (ns) total wait (ns)   max wait (ns)   min wait (ns)\n\n\
            &mm->map_lock      61      61      12000000      360000000      200000000      900\n";
        assert!(
            read_text("p", report.as_bytes()).texts()[0]
                .starts_with("lock &mm->map_lock was waited for 360 ms in 61 waits, the longest 200 ms")
        );
    }

    #[test]
    fn rubbish_and_other_tables_are_none() {
        for text in [
            "13 787 105 60 a b\n14 787 105 60 a b\n",
            "802 1 ms 2 ms\n803 1 ms 2 ms\n",
        ] {
            let reading = read_text("p", text.as_bytes());
            assert_ne!(reading.observed.sources[0].format, "perf-lock", "{text}");
        }
    }
}
