//! `iotop` and `iotop-c`: which thread reads and writes how much, and for which part of the time it waits for the disk.
//!
//! In: screens with their sums above the rows, in batch mode or copied, with a time before each line or without. Out: what each process
//! reads and writes a second, as figures of a report; a statement about the one that waits most.
//! Source: `iotop/ui.py` of iotop, `src/view_batch.c` of iotop-c, `Documentation/accounting/delay-accounting.rst` of the kernel.

use super::report::{any_line, name_of, number, rounded, text_in};
use crate::day_time::time_of_day;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Metric, Quote, Statement, StatementKind, When};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("iotop", Family::Host, recognise)
    .about("iotop")
    .openings(&["Total DISK READ", "TOTAL DISK READ"]);

/// The part of the time from which a thread does nothing but wait for a disk: the delay accounting counts what is not spent on a CPU.
const WAITS: f64 = 0.9;

/// Rows of one screen that are looked at.
const MAX_ROWS: u64 = 50_000;

/// Words of a row.
const MAX_WORDS: usize = 40;

/// Bytes of a KiB.
const KIB: f64 = 1024.0;

fn recognise(head: &[u8]) -> Sureness {
    // The names of the columns alone may be of another tool.
    let is_certain = |line: &str| matches!(Line::of(line), Some((_, Line::Sums | Line::Row(_))));
    Sureness::certain_if(any_line(head, is_certain))
}

/// What a row tells.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    /// `mysqld (pid 812)`.
    name: String,
    /// KiB each second; of sums since the beginning, none.
    read: Option<f64>,
    write: Option<f64>,
    swap_share: Option<f64>,
    io_share: Option<f64>,
}

#[derive(Debug, PartialEq)]
enum Line {
    /// The sums of all threads.
    Sums,
    Heading,
    Row(Row),
}

impl Line {
    fn of(text: &str) -> Option<(Option<When>, Line)> {
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (at, text) = match time_of_day(first.as_bytes()) {
            Some(at) => (Some(at), rest.trim_start()),
            None => (None, text),
        };
        let lower = text.to_ascii_lowercase();
        if lower.contains("disk read") && lower.contains("disk write") {
            let sums =
                lower.starts_with("total ") || lower.starts_with("actual ") || lower.starts_with("current ");
            return Some((at, if sums { Line::Sums } else { Line::Heading }));
        }
        Row::of(text).map(|row| (at, Line::Row(row)))
    }
}

/// An amount, and whether it is of each second or a sum.
#[derive(Debug, Clone, Copy)]
struct Amount {
    kib: f64,
    is_rate: bool,
}

impl Amount {
    /// KiB each second; `None` of a sum.
    fn rate(self) -> Option<f64> {
        self.is_rate.then_some(self.kib)
    }
}

/// `27.94 K/s`, or `24.00 K` of a sum.
fn amount(figure: &str, unit: &str) -> Option<Amount> {
    let value = number(figure)?;
    let (letter, is_rate) = match unit.strip_suffix("/s") {
        Some(letter) => (letter, true),
        None => (unit, false),
    };
    let factor = match letter {
        "B" => 1.0 / KIB,
        "K" => 1.0,
        "M" => KIB,
        "G" => KIB * KIB,
        "T" => KIB * KIB * KIB,
        _ => return None,
    };
    Some(Amount {
        kib: value * factor,
        is_rate,
    })
}

impl Row {
    /// `882 be/4 root 499.57 K/s 1604.78 K/s 0.00 % 98.60 % [btrfs-transacti]`.
    fn of(text: &str) -> Option<Row> {
        let words: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
        let [pid, class, _user, read, read_unit, write, write_unit, rest @ ..] = words.as_slice() else {
            return None;
        };
        let pid: u32 = pid.parse().ok()?;
        let is_class = class.split_once('/').is_some_and(|(class, level)| {
            matches!(class, "be" | "rt" | "idle" | "none" | "?sys" | "?") && level.parse::<u8>().is_ok()
        });
        if !is_class && *class != "idle" {
            return None;
        }
        let (read, write) = (amount(read, read_unit)?.rate(), amount(write, write_unit)?.rate());
        let (swap_share, io_share, command) = shares(rest);
        let command = command.trim_matches(['[', ']']);
        if command.is_empty() {
            return None;
        }
        Some(Row {
            name: format!("{} (pid {pid})", program(command)),
            read,
            write,
            swap_share,
            io_share,
        })
    }
}

/// The parts of the time in waits for swap and for disks, and the command behind them. Without the kernel's accounting of delays there
/// are none.
fn shares(words: &[&str]) -> (Option<f64>, Option<f64>, String) {
    let mut found = Vec::new();
    let mut rest = words;
    while found.len() < 2 {
        let (value, used) = match rest {
            [figure, "%", ..] => (number(figure), 2),
            [figure, ..] if figure.ends_with('%') => (number(figure.trim_end_matches('%')), 1),
            ["?unavailable?", ..] => (None, 1),
            _ => break,
        };
        found.push(value.filter(|share| *share <= 100.0).map(|share| share / 100.0));
        rest = rest.get(used..).unwrap_or_default();
    }
    let command = rest.join(" ");
    match found.as_slice() {
        [swap, io] => (*swap, *io, command),
        // The newer ones have no column for swap.
        [io] => (None, *io, command),
        _ => (None, None, command),
    }
}

/// The program's name, without its path and arguments.
fn program(command: &str) -> String {
    let first = command.split_whitespace().next().unwrap_or_default();
    let name = match first.starts_with('/') {
        true => first.rsplit('/').next().unwrap_or(first),
        false => first,
    };
    name_of(name.trim_end_matches(':'))
}

#[derive(Debug, Default)]
struct Reader {
    rows: u64,
    /// Whether the lines above the rows began the report.
    begun: bool,
    /// Of all screens, the row that waited most.
    worst: Option<(f64, String, Quote)>,
    screens: u64,
    /// Whether a row had no part of the time.
    unavailable: bool,
    most: Option<(f64, String, Quote)>,
}

impl Reader {
    fn row(&mut self, row: &Row, out: &mut Out<'_>) {
        if let Some(read) = row.read {
            out.figure(Metric::ProcessReadKibPerSecond, &row.name, read);
        }
        if let Some(write) = row.write {
            out.figure(Metric::ProcessWriteKibPerSecond, &row.name, write);
        }
        self.unavailable |= row.io_share.is_none();
        let moved = row.read.unwrap_or(0.0) + row.write.unwrap_or(0.0);
        let figures = match (row.read, row.write) {
            (Some(read), Some(write)) => format!(
                ", reads {} KiB/s and writes {} KiB/s",
                rounded(read),
                rounded(write)
            ),
            _ => String::new(),
        };
        let waits = |share: f64, what: &str| {
            format!(
                "{} waits for {what} {} % of the time{figures}",
                row.name,
                rounded(share * 100.0)
            )
        };
        for (share, what) in [(row.io_share, "disks"), (row.swap_share, "swap")] {
            let more = share.filter(|share| self.worst.as_ref().is_none_or(|(worst, ..)| share > worst));
            if let Some(share) = more.filter(|share| *share > 0.0) {
                self.worst = Some((share, waits(share, what), out.here()));
            }
        }
        if self.most.as_ref().is_none_or(|(most, ..)| moved > *most) && moved > 0.0 {
            self.most = Some((moved, format!("{}{figures}", row.name), out.here()));
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.trim_start_matches("> ").as_bytes());
        let Some((at, line)) = Line::of(&text) else {
            return Understood::No;
        };
        match line {
            Line::Sums | Line::Heading => {
                // Two lines of sums, and the names of the columns, are of one screen.
                if !self.begun {
                    out.report(at, None, false);
                    self.begun = true;
                    self.rows = 0;
                    self.screens += 1;
                }
            }
            Line::Row(row) => {
                if !self.begun && self.rows == 0 {
                    out.report(at, None, false);
                    self.screens += 1;
                }
                self.begun = false;
                self.rows += 1;
                if self.rows > MAX_ROWS {
                    out.account().left_out += 1;
                    return Understood::Evidence;
                }
                self.row(&row, out);
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        if let Some((share, text, quote)) = read.worst {
            let kind = match share >= WAITS {
                true => StatementKind::Stalled,
                false => StatementKind::Took,
            };
            out.statement(Statement {
                share: Some(share),
                ..statements::one(kind, None, quote, text)
            });
            return;
        }
        let more = match read.unavailable {
            true => "; the part of the time that it waits is not measured (kernel.task_delayacct is off)",
            false => "; no thread waits for a disk for a part of the time that shows",
        };
        if let Some((_, text, quote)) = read.most {
            out.statement(statements::one(
                StatementKind::Took,
                None,
                quote,
                format!("{text}{more}"),
            ));
        } else if read.screens > 0 {
            let text = "no thread reads from or writes to a disk".to_owned();
            out.statement(statements::one(StatementKind::WithinNorm, None, out.here(), text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Metric, StatementKind as K};

    const WAITS: &str = "Total DISK READ :     499.57 K/s | Total DISK WRITE :    1639.00 K/s\n\
        Actual DISK READ:     492.73 K/s | Actual DISK WRITE:       0.00 B/s\n\
        \x20 TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND\n\
        \x20 882 be/4 root      499.57 K/s    1.50 M/s  0.00 % 98.60 % [btrfs-transacti]\n\
        21829 be/4 root        0.00 B/s    0.00 B/s  0.00 %  0.23 % /usr/sbin/mysqld --daemonize\n";

    #[test]
    fn a_thread_that_does_nothing_but_wait() {
        let reading = read_text("i", WAITS.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "iotop");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "btrfs-transacti (pid 882) waits for disks 98.6 % of the time, reads 500 KiB/s and writes 1536 KiB/s"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, K::Stalled);
        let writes = reading
            .observed
            .of(Metric::ProcessWriteKibPerSecond)
            .next()
            .unwrap();
        assert_eq!(
            (writes.of.as_str(), writes.greatest().unwrap().value),
            ("btrfs-transacti (pid 882)", 1536.0)
        );
    }

    #[test]
    fn with_times_sums_and_without_accounting() {
        let text = "16:19:43 Total DISK READ :       0.00 K/s | Total DISK WRITE :       0.00 K/s\n\
            16:19:43 Actual DISK READ:       0.00 K/s | Actual DISK WRITE:       0.00 K/s\n\
            \x20   TIME  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND\n\
            16:19:43   354 be/3 root        0.00 K/s   12.00 K/s ?unavailable?  [jbd2/sda1-8]\n";
        let reading = read_text("i", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "iotop");
        assert!(
            reading.texts()[0].starts_with(
                "jbd2/sda1-8 (pid 354), reads 0 KiB/s and writes 12 KiB/s; the part of the time"
            ),
            "{:?}",
            reading.texts()
        );
        let none = "Total DISK READ: 0.00 B/s | Total DISK WRITE: 0.00 B/s\n  PID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN     IO>    COMMAND\n";
        let reading = read_text("i", none.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, K::WithinNorm);
    }

    #[test]
    fn rubbish_is_no_row() {
        for text in [
            "Total DISK READ | Total DISK WRITE\n1 be/4\n1 be/4 root 1 K/s 1e999 K/s % % %\n",
            "882 be/4 root x K/s 1 K/s 1 % 1 % a\n",
            "a be/4 root 1 K/s 1 K/s 1 % 1 % a\n",
        ] {
            let statements = read_text("i", text.as_bytes()).observed.statements;
            assert!(statements.iter().all(|one| one.kind == K::WithinNorm), "{text}");
        }
    }
}
