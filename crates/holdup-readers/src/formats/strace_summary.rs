//! `strace -c` and `perf trace -s` like tables: how much time each call took in all.
//!
//! In: a table with the columns `% time`, `seconds`, `usecs/call`, `calls`, `errors`, `syscall`. Out: [`Calls`]. With `-w` the
//! seconds are of the wall clock, without they are CPU time in the kernel, and the table does not say which. A call that
//! took a second each cannot have been that long on a CPU: so much of it was waiting.

use crate::format::{Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{CallTime, Calls};

pub(crate) static FORMAT: Format = Format {
    id: "strace-summary",
    about: "strace -c",
    recognise,
    openings: &["% time     seconds"],
    shape: Shape::Lines(|| Box::<Reader>::default()),
};

/// Microseconds a call from which it can't be CPU time: the kernel is preemptible, and no call computes for a tenth of a
/// second at a stretch but for calls that read or write hundreds of megabytes.
const WAITED_US: u64 = 100_000;

fn recognise(head: &[u8]) -> Sureness {
    let header = head.split(|byte| *byte == b'\n').any(is_header);
    if header { Sureness::Certain } else { Sureness::No }
}

fn is_header(line: &[u8]) -> bool {
    words(line).eq([
        &b"%"[..],
        b"time",
        b"seconds",
        b"usecs/call",
        b"calls",
        b"errors",
        b"syscall",
    ])
}

#[derive(Debug, Default)]
struct Reader {
    calls: Vec<CallTime>,
    in_table: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if is_header(line) {
            self.flush(out);
            self.in_table = true;
            return Understood::Evidence;
        }
        if line.iter().all(|byte| matches!(byte, b'-' | b' ' | b'\t')) {
            return Understood::Ignorable;
        }
        // What strace says of processes that it begins to follow, and the "[...]" of a shortened table.
        if line.starts_with(b"strace: ") || line.trim_ascii() == b"[...]" {
            return Understood::Ignorable;
        }
        if !self.in_table {
            return Understood::No;
        }
        let fields: Vec<&[u8]> = words(line).collect();
        if fields.last() == Some(&&b"total"[..]) {
            self.in_table = false;
            return Understood::Evidence;
        }
        match row(&fields) {
            Some(call) => {
                self.calls.push(CallTime {
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
            wall: waited.then_some(true),
            calls,
            ..Calls::default()
        });
    }
}

/// A row of the table. Five columns where no call failed, six where some did.
fn row(fields: &[&[u8]]) -> Option<CallTime> {
    let (errors, name) = match fields {
        [_, _, _, _, name] => (0, name),
        [_, _, _, _, errors, name] => (whole(errors)?, name),
        _ => return None,
    };
    let seconds = decimal(fields[1]).filter(|seconds| *seconds >= 0.0)?;
    let per_call = whole(fields[2])?;
    let name = std::str::from_utf8(name).ok()?;
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| CallTime {
        call: name.to_owned(),
        count: whole(fields[3]).unwrap_or(0),
        errors,
        ns: (seconds * 1e9) as Ns,
        // The average: the longest was at least that.
        max: per_call.saturating_mul(1_000),
        ..CallTime::default()
    })
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
    fn decimal_commas_and_a_cut_table() {
        let text = TABLE.replace("101.677521", "101,677521");
        let text = &text[..text.find("0.008712").unwrap()];
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.calls[0].calls[0].ns, 101_677_521_000);
        assert_eq!(reading.accounts[0].not_understood, 1);
    }
}
