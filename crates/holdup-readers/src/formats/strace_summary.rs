//! `strace -c` and `perf trace -s` like tables: how much time each call took in all.
//!
//! In: a table with the columns `% time`, `seconds`, `usecs/call`, `calls`, `errors`, `syscall`. Out: [`Calls`]. With `-w` the
//! seconds are of the wall clock, without they are CPU time in the kernel, and the table does not say which. A call that
//! took a second each cannot have been that long on a CPU: so much of it was waiting.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{CallTime, Calls};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("strace-summary", Family::Calls, recognise)
    .about("strace -c")
    .openings(&["% time     seconds", "syscall          % time"]);

/// Microseconds a call from which it can't be CPU time: the kernel is preemptible, and no call computes for a tenth of a
/// second at a stretch but for calls that read or write hundreds of megabytes.
const WAITED_US: u64 = 100_000;

fn recognise(head: &[u8]) -> Sureness {
    let header = head
        .split(|byte| *byte == b'\n')
        .any(|line| columns(line).is_some());
    if header { Sureness::Certain } else { Sureness::No }
}

/// What stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Calls,
    /// Left empty by strace where no call failed.
    Errors,
    /// Together: seconds, or of perf milliseconds.
    Seconds,
    TotalMs,
    /// Of one call on average, at least and at most.
    AverageUs,
    AverageMs,
    LongestSeconds,
    LongestMs,
    /// Says nothing to us.
    Other,
}

/// The columns of a table by its header (`-U` chooses them and their order); of `perf trace -s` too.
fn columns(line: &[u8]) -> Option<Vec<Column>> {
    let mut words = words(line).peekable();
    let mut columns = Vec::new();
    while let Some(word) = words.next() {
        columns.push(match word {
            b"%" if words.peek() == Some(&&b"time"[..]) => {
                words.next();
                Column::Other
            }
            b"syscall" => Column::Name,
            b"calls" => Column::Calls,
            b"errors" => Column::Errors,
            b"seconds" => Column::Seconds,
            b"total" => Column::TotalMs,
            b"usecs/call" => Column::AverageUs,
            b"avg" => Column::AverageMs,
            b"longest" => Column::LongestSeconds,
            b"max" => Column::LongestMs,
            b"shortest" | b"min" | b"stddev" => Column::Other,
            _ => return None,
        });
    }
    let has = |column| columns.contains(&column);
    (has(Column::Name) && has(Column::Calls)).then_some(columns)
}

/// ` bash (16335), 530 events, 47.4%`: whose table follows.
fn whose(line: &[u8]) -> Option<(String, u32)> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let (who, rest) = text.split_once("), ")?;
    let (name, tid) = who.rsplit_once(" (")?;
    rest.contains(" events, ")
        .then_some((name.to_owned(), tid.parse().ok()?))
}

#[derive(Debug, Default)]
struct Reader {
    calls: Vec<CallTime>,
    columns: Option<Vec<Column>>,
    /// Of perf's tables: the thread.
    whose: Option<(String, u32)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if let Some(columns) = columns(line) {
            // perf has a table for each thread: they are of one trace.
            if self.whose.is_none() {
                self.flush(out);
            }
            self.columns = Some(columns);
            return Understood::Evidence;
        }
        if let Some(whose) = whose(line) {
            self.whose = Some(whose);
            self.columns = None;
            return Understood::Evidence;
        }
        if line.trim_ascii() == b"Summary of events:" || line.trim_ascii().starts_with(b"(msec)") {
            return Understood::Ignorable;
        }
        if line.iter().all(|byte| matches!(byte, b'-' | b' ' | b'\t')) {
            return Understood::Ignorable;
        }
        // What strace says of processes that it begins to follow, and the "[...]" of a shortened table.
        if line.starts_with(b"strace: ") || line.trim_ascii() == b"[...]" {
            return Understood::Ignorable;
        }
        let Some(columns) = &self.columns else {
            return Understood::No;
        };
        let fields: Vec<&[u8]> = words(line).collect();
        let at = columns.iter().position(|column| *column == Column::Name);
        let name = if at == Some(0) {
            fields.first()
        } else {
            fields.last()
        };
        if name == Some(&&b"total"[..]) {
            self.columns = None;
            return Understood::Evidence;
        }
        match row(columns, &fields) {
            Some(call) => {
                let (thread, tid) = self.whose.clone().unwrap_or_default();
                self.calls.push(CallTime {
                    thread,
                    tid,
                    quote: out.here(),
                    ..call
                });
                Understood::Evidence
            }
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }
}

impl Reader {
    fn flush(&mut self, out: &mut Out<'_>) {
        let mut calls = std::mem::take(&mut self.calls);
        if calls.is_empty() {
            return;
        }
        calls.sort_by_key(|call| std::cmp::Reverse(call.ns));
        let waited = calls.iter().any(|call| call.max >= WAITED_US * 1_000);
        out.calls(Calls {
            elapsed: Some(calls.iter().map(|call| call.ns).fold(0, Ns::saturating_add)),
            // perf's are of the wall clock.
            wall: (waited || self.whose.is_some()).then_some(true),
            calls,
            ..Calls::default()
        });
    }
}

/// A row of the table.
fn row(columns: &[Column], fields: &[&[u8]]) -> Option<CallTime> {
    let no_errors = fields.len() + 1 == columns.len();
    if !no_errors && fields.len() != columns.len() {
        return None;
    }
    let mut call = CallTime::default();
    let mut average = None;
    let mut longest = None;
    let mut fields = fields.iter();
    for column in columns {
        if no_errors && *column == Column::Errors {
            continue;
        }
        let field = fields.next()?;
        let ns = |unit: f64| {
            let value = decimal(field.strip_suffix(b"%").unwrap_or(field))?;
            (value >= 0.0).then_some((value * unit) as Ns)
        };
        match column {
            Column::Name => call.call = std::str::from_utf8(field).ok()?.to_owned(),
            Column::Calls => call.count = whole(field)?,
            Column::Errors => call.errors = whole(field)?,
            Column::Seconds => call.ns = ns(1e9)?,
            Column::TotalMs => call.ns = ns(1e6)?,
            Column::AverageUs => average = Some(ns(1e3)?),
            Column::AverageMs => average = Some(ns(1e6)?),
            Column::LongestSeconds => longest = Some(ns(1e9)?),
            Column::LongestMs => longest = Some(ns(1e6)?),
            Column::Other => {}
        }
    }
    let is_name = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !is_name(&call.call) {
        return None;
    }
    if !columns.contains(&Column::Seconds) && !columns.contains(&Column::TotalMs) {
        // Chosen away with -U: what one takes on average, so many times.
        call.ns = average?.saturating_mul(call.count);
    }
    // Without a column for it the longest was at least the average.
    call.max = longest.or(average).unwrap_or(call.ns / call.count.max(1));
    Some(call)
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 99.96  101.677521   101677521         1           getrandom
  0.01    0.008712         363        24         3 read
------ ----------- ----------- --------- --------- ----------------
100.00  101.718417                    25         3 total
";

    #[test]
    fn a_table_is_calls_with_their_time() {
        let reading = read_text("s", TABLE.as_bytes());
        let [calls] = reading.observed.calls.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(calls.wall, Some(true));
        assert_eq!(calls.calls[0].call, "getrandom");
        assert_eq!((calls.calls[0].ns, calls.calls[0].count), (101_677_521_000, 1));
        assert_eq!(calls.calls[1].errors, 3);
        let account = &reading.accounts[0];
        assert_eq!((account.lines, account.not_understood), (6, 0));
    }

    #[test]
    fn other_columns_in_another_order() {
        let text = "syscall            calls % time  longest usecs/call\n---------------- ------- ------ -------- ----------\n\
            fsync                10   99.0 2.500000     400000\nread                  3    1.0 0.000010          5\n\
            ---------------- ------- ------ -------- ----------\ntotal                13  100.0\n";
        let reading = read_text("s", text.as_bytes());
        let calls = &reading.observed.calls[0];
        assert_eq!(
            (calls.calls[0].ns, calls.calls[0].max),
            (4_000_000_000, 2_500_000_000)
        );
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn tables_of_perf_have_a_thread_each() {
        let text = "\n Summary of events:\n\n bash (16335), 530 events, 47.4%\n\n\
            \x20  syscall            calls  errors  total       min       avg       max       stddev\n\
            \x20                                    (msec)    (msec)    (msec)    (msec)        (%)\n\
            \x20  --------------- --------  ------ -------- --------- --------- ---------     ------\n\
            \x20  wait4                  4      2   317.821     0.013    79.455   308.433     96.10%\n\n\
            \x20sleep (16336), 30 events, 7.4%\n\n\
            \x20  syscall            calls  errors  total       min       avg       max       stddev\n\
            \x20  clock_nanosleep        1      0   300.100   300.100   300.100   300.100      0.00%\n";
        let reading = read_text("s", text.as_bytes());
        let [calls] = reading.observed.calls.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(
            (
                calls.calls[0].thread.as_str(),
                calls.calls[0].tid,
                calls.calls[0].max
            ),
            ("bash", 16335, 308_433_000)
        );
        assert_eq!(calls.calls[1].tid, 16336);
        assert_eq!((calls.wall, reading.accounts[0].not_understood), (Some(true), 0));
    }

    #[test]
    fn decimal_commas_and_a_cut_table() {
        let text = TABLE.replace("101.677521", "101,677521");
        let text = &text[..text.find("0.008712").unwrap()];
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.calls[0].calls[0].ns, 101_677_521_000);
        assert_eq!(reading.accounts[0].not_understood, 1);
    }
}
