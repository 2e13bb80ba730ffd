//! `systemd-analyze blame`: how long each unit took to start, longest first.
//!
//! In: lines of a length and a unit. Out: a span each. Units start side by side: their times do not add up to the boot's.

use super::length;
use crate::copied;
use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::manager::is_unit;
use crate::timespan;
use holdup_evidence::Ns;
use holdup_evidence::observed::SpanKind;

pub(crate) static FORMAT: Format = Format::new(
    "systemd-blame",
    Family::Logs,
    recognise,
    Shape::Lines(|| Box::new(Reader)),
)
.about("systemd-analyze blame");

/// Bytes of a length without blanks.
const CROWDED: usize = 40;

fn recognise(head: &[u8]) -> Sureness {
    // The last line of a head may be cut.
    let lines: Vec<&[u8]> = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && !copied::is_fence(line))
        .take(10)
        .collect();
    let units = lines.iter().filter(|line| row(line).is_some()).count();
    match units {
        0 => Sureness::No,
        _ if units + 1 >= lines.len() => Sureness::Certain,
        _ => Sureness::No,
    }
}

struct Reader;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Understood::Ignorable;
        }
        let Some((ns, name)) = row(line) else {
            return Understood::No;
        };
        out.span(length(SpanKind::UnitStart, name, ns, line.trim_ascii(), out));
        Understood::Evidence
    }
}

/// `1min 30.123s foo.service`.
fn row(line: &[u8]) -> Option<(Ns, &[u8])> {
    let line = line.trim_ascii();
    let begin = memchr::memrchr(b' ', line).map_or(0, |last| last + 1);
    let (length, name) = line.split_at_checked(begin)?;
    match name.first() {
        Some(b'0'..=b'9') => crowded(line, begin),
        _ if is_unit(name) => Some((timespan::parse(length)?, name)),
        _ => None,
    }
}

/// `30.123sfoo.service`: a copy that has lost the blanks between its columns. A unit may begin with a letter of a length.
fn crowded(line: &[u8], begin: usize) -> Option<(Ns, &[u8])> {
    let word = line.get(begin..)?;
    // A unit may begin with a digit too.
    let apart = timespan::parse(line.get(..begin)?).filter(|_| is_unit(word));
    let ends = (2..=word.len().min(CROWDED)).rev();
    let mut ends = ends.map(|end| begin + end);
    let crowded = ends.find_map(|end| {
        let (length, name) = line.split_at_checked(end)?;
        let parts = is_unit(name) && name.first().is_some_and(u8::is_ascii_alphabetic);
        Some((timespan::parse(length).filter(|_| parts)?, name))
    });
    crowded.or_else(|| Some((apart?, word)))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn blanks_that_a_copy_has_lost_are_not_needed() {
        let text = "[me@box~]#systemd-analyze blame\n1min 30.852sstore.service\n16.994smssql.service\n...\n103mssystemd-sysctl.service\n2.5s 9p.mount\n";
        let reading = read_text("b", text.as_bytes());
        let spans = reading.observed.spans.iter();
        let read: Vec<(&str, u64)> = spans
            .map(|span| (span.name.as_str(), span.ns / 1_000_000))
            .collect();
        assert_eq!(
            read,
            [
                ("store.service", 90_852),
                ("mssql.service", 16_994),
                ("systemd-sysctl.service", 103),
                ("9p.mount", 2_500)
            ]
        );
        assert_eq!(reading.accounts.len(), 1);
    }

    #[test]
    fn rows_are_spans_and_rubbish_is_counted() {
        // As far as an empty line it is what it looks like.
        let text = "     1min 30.123s dev-sdb1.device\n           2.5s x.service\n\0\n99s\n5 x.service\n 300ms y.mount\n 1";
        let reading = read_text("b", text.as_bytes());
        assert_eq!(reading.observed.spans.len(), 3);
        assert_eq!(reading.accounts[0].not_understood, 3);
        let text = "     2.5s x.service\nrubbish\n99s\n5 x.service\n 300ms y.mount\n 1";
        let spans = read_text("b", text.as_bytes()).observed.spans;
        assert!(spans.is_empty(), "half of its beginning is rubbish: {spans:?}");
        let text = "     1min 30.123s dev-sdb1.device\n           2.5s x.service\n 300ms y.mount\n 1";
        let reading = read_text("b", text.as_bytes());
        let read = reading.spans_ms();
        assert_eq!(
            read,
            [
                ("dev-sdb1.device", 90_123),
                ("x.service", 2_500),
                ("y.mount", 300)
            ]
        );
        assert_eq!(reading.accounts[0].not_understood, 1);
    }
}
