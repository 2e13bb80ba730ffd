//! What the script of `holdup read --collect-script` wrote: outputs of many commands in one text, each with its name and
//! the time at which it was taken.
//!
//! In: a text whose first line is `#holdup-collect 1 MARK`, with lines `#holdup-part MARK unix=S uptime=S NAME` before each
//! part and `#holdup-end MARK status=N` behind it. Out: what the formats make of the parts; each is recognised by what it
//! contains. The mark is different each time, so that a part that contains such a text is not split.

use crate::account::Files;
use crate::gather::Gather;
use crate::lines::Lines;
use crate::numbers::words;
use crate::stream;
use holdup_evidence::observed::Taken;
use std::io::Read;

/// The script.
pub const SCRIPT: &str = include_str!("collect.sh");

/// Its id among formats.
const ID: &str = "holdup-collect";

const OPENING: &[u8] = b"#holdup-collect 1 ";
const PART: &[u8] = b"#holdup-part ";
const END: &[u8] = b"#holdup-end ";

/// Lines in front of it that are forgiven: a prompt, a greeting.
const FORGIVEN: usize = 40;

/// What `timeout` ends with when the time ran out.
const RAN_OUT: i64 = 124;

/// Parts that are read; the script makes about fifty.
const MAX_PARTS: usize = 2_000;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Whether it is, from its beginning.
pub(crate) fn is_it(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').take(FORGIVEN);
    lines.any(|line| line.starts_with(OPENING))
}

/// Reads all parts.
pub(crate) fn read(name: &str, lines: &mut Lines<'_>, before: u64, gather: &mut Gather) {
    let whole = gather.begin_whole(name, ID);
    let mut number = before;
    let mut mark = Vec::new();
    while let Some(line) = lines.next() {
        number += 1;
        if let Some(found) = line.strip_prefix(OPENING) {
            mark = found.trim_ascii().to_vec();
            break;
        }
    }
    let mut files = Files::default();
    let mut problems = Vec::new();
    let mut header = next_header(lines, &mark, &mut number);
    for _ in 0..MAX_PARTS {
        let Some(part) = header else { break };
        let before = number;
        let mut body = Body {
            lines: &mut *lines,
            mark: &mark,
            number: &mut number,
            left: Vec::new(),
            at: 0,
            first: true,
            ended: None,
        };
        let first = gather.sources();
        stream::read(&format!("{name}/{}", part.name), &mut body, before, gather);
        // A reader of documents may stop before the end.
        body.skip();
        let ended = body.ended.take();
        for source in first..gather.sources() {
            gather.out_of(source as u32).source().taken = Some(part.taken);
        }
        match gather.take_back() {
            None => files.read += 1,
            // A command that said nothing had nothing to say.
            Some(account) if account.lines == 0 && account.bytes == 0 => {}
            Some(_) => files.not_recognised(&part.name),
        }
        header = match ended {
            Some(Ended::Next(header)) => Some(header),
            Some(Ended::Status(status)) => {
                if status == RAN_OUT {
                    problems.push(format!("{}: it timed out, so it may be cut", part.name));
                }
                next_header(lines, &mark, &mut number)
            }
            None => {
                problems.push(format!("ends within {}", part.name));
                None
            }
        };
    }
    let mut out = gather.out_of(whole);
    out.account().files = Some(files);
    for problem in problems {
        out.problem(problem);
    }
}

/// What stands before a part.
struct Header {
    name: String,
    taken: Taken,
}

/// How a part ended.
enum Ended {
    Status(i64),
    /// Without its own end: the command, or the shell that ran it, was killed.
    Next(Header),
}

fn next_header(lines: &mut Lines<'_>, mark: &[u8], number: &mut u64) -> Option<Header> {
    while let Some(line) = lines.next() {
        *number += 1;
        if let Some(header) = header(line, mark) {
            return Some(header);
        }
    }
    None
}

/// The rest of a line that begins with a word and the mark.
fn marked<'l>(line: &'l [u8], word: &[u8], mark: &[u8]) -> Option<&'l [u8]> {
    line.strip_prefix(word)?.strip_prefix(mark)?.strip_prefix(b" ")
}

fn header(line: &[u8], mark: &[u8]) -> Option<Header> {
    let mut taken = Taken::default();
    let mut name = Vec::new();
    for word in words(marked(line, PART, mark)?) {
        if let Some(seconds) = word.strip_prefix(b"unix=").filter(|_| name.is_empty()) {
            taken.unix = nanoseconds(seconds).map(|ns| ns as i64);
        } else if let Some(seconds) = word.strip_prefix(b"uptime=").filter(|_| name.is_empty()) {
            taken.since_boot = nanoseconds(seconds).map(|ns| ns as u64);
        } else {
            name.push(String::from_utf8_lossy(word));
        }
    }
    let name = name.join(" ");
    Some(Header { name, taken })
}

/// Seconds with a fraction; `date` of busybox has no `%N` and prints the letter.
fn nanoseconds(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.split_once(".N").map_or(text, |(whole, _)| whole);
    let text = text.split_once(".%").map_or(text, |(whole, _)| whole);
    let seconds: f64 = text.parse().ok()?;
    // Four centuries: what is more is no time.
    (seconds.is_finite() && (0.0..1e10).contains(&seconds)).then_some(seconds * SECOND)
}

/// A part's text.
struct Body<'a, 'l> {
    lines: &'a mut Lines<'l>,
    mark: &'a [u8],
    number: &'a mut u64,
    /// Text that was not handed out yet, from `at`.
    left: Vec<u8>,
    at: usize,
    /// Whether no line was read yet. The end of a line is handed out with the next one: the script writes one before its
    /// own lines, whether or not the command ended with one.
    first: bool,
    ended: Option<Ended>,
}

impl Body<'_, '_> {
    /// Reads on; whether there is more of the part.
    fn more(&mut self) -> bool {
        if self.ended.is_some() {
            return false;
        }
        let Some(line) = self.lines.next() else {
            return false;
        };
        *self.number += 1;
        if let Some(status) = marked(line, END, self.mark) {
            let status = status.strip_prefix(b"status=").unwrap_or_default();
            let status = std::str::from_utf8(status).ok();
            let status = status.and_then(|status| status.trim().parse().ok());
            self.ended = Some(Ended::Status(status.unwrap_or(0)));
            return false;
        }
        if let Some(next) = header(line, self.mark) {
            self.ended = Some(Ended::Next(next));
            return false;
        }
        self.left.clear();
        self.at = 0;
        if !std::mem::take(&mut self.first) {
            self.left.push(b'\n');
        }
        self.left.extend_from_slice(line);
        true
    }

    /// To its end.
    fn skip(&mut self) {
        while self.more() {}
    }
}

impl Read for Body<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.left.len() {
            if !self.more() {
                return Ok(0);
            }
        }
        let length = buffer.len().min(self.left.len() - self.at);
        buffer[..length].copy_from_slice(&self.left[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Reading, read_text};

    const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 99.96  101.677521   101677521         1           getrandom
";

    fn collected(parts: &str) -> Reading {
        read_text(
            "c",
            format!("$ sh collect\n#holdup-collect 1 77\n{parts}").as_bytes(),
        )
    }

    #[test]
    fn parts_have_their_names_lines_and_clocks() {
        let reading = collected(&format!(
            "#holdup-part 77 unix=1700000000.5 uptime=12.25 strace -c  x\n{TABLE}\n#holdup-end 77 status=124\n\
             #holdup-part 77 unix=1700000001.N odd\nhello\n#holdup-part 78 no mark of this one\n\n#holdup-end 77 status=0\n\
             #holdup-part 77 silent\n\n#holdup-end 77 status=1\n"
        ));
        let [whole, table] = reading.observed.sources.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!((&*whole.name, &*whole.format), ("c", "holdup-collect"));
        assert_eq!(
            (&*table.name, &*table.format),
            ("c/strace -c x", "strace-summary")
        );
        let taken = table.taken.unwrap();
        assert_eq!(
            (taken.unix, taken.since_boot),
            (Some(1_700_000_000_500_000_000), Some(12_250_000_000))
        );
        assert_eq!(
            reading.observed.calls[0].calls[0].quote.line, 6,
            "of the whole file"
        );
        let account = &reading.accounts[0];
        assert!(account.problems[0].contains("it timed out"), "{account:?}");
        let files = account.files.as_ref().unwrap();
        assert_eq!(
            (files.read, files.not_recognised, &files.names[..]),
            (1, 1, &["odd".to_owned()][..])
        );
        assert_eq!(reading.accounts[1].not_understood, 0, "{:?}", reading.accounts[1]);
    }

    #[test]
    fn a_cut_collection_is_read_as_far_as_it_goes() {
        let reading = collected(&format!("#holdup-part 77 a\n{}", &TABLE[..TABLE.len() - 9]));
        assert_eq!(reading.observed.sources.len(), 2);
        assert!(reading.accounts[0].problems[0].contains("ends within a"));
        let killed = collected(&format!("#holdup-part 77 a\n{TABLE}#holdup-part 77 b\n{TABLE}"));
        assert_eq!(killed.observed.calls.len(), 2);
    }
}
