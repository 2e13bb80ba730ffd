//! Known figures in a line: each number with the name before it.

use super::table::{Named, Row, find, may_end_name};
use super::value::{Judged, OfName, unit_of_name, value};
use crate::find::find as find_bytes;

/// Bytes of a line that are looked at: an answer without line breaks is one line.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Bytes of a name with what stands before it, and of labels.
const MAX_NAME_BYTES: usize = 160;
const MAX_LABEL_BYTES: usize = 1_000;
const MAX_BRACKET_BYTES: usize = 120;

/// Bytes between a name and its value: blanks of a list, and what leads the eye.
const MAX_GAP_BYTES: usize = 80;

/// Dots in a row that lead the eye.
const MIN_LEADERS: usize = 3;

/// A figure in a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure<'a> {
    pub(super) row: &'static Row,
    pub(super) judged: Judged,
    /// The name as it stands there, and its value.
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// What it is of: labels behind the name.
    pub(super) labels: &'a [u8],
    /// Where the name begins and the value ends.
    pub(super) from: usize,
    pub(super) end: usize,
}

/// Calls `found` for each known figure of a line; whether it has a known name with a number, whatever that is.
pub(super) fn figures<'a>(line: &'a [u8], mut found: impl FnMut(Figure<'a>)) -> bool {
    let line = line.get(..MAX_LINE_BYTES).unwrap_or(line);
    // What a file says about its names, and what is commented out.
    if line.first() == Some(&b'#') || line.starts_with(b"//") {
        return false;
    }
    if let Some(sample) = Sample::of(line) {
        return sample.figure(&mut found);
    }
    let mut some = false;
    let mut at = 0;
    while let Some(digit) = line
        .get(at..)
        .and_then(|rest| rest.iter().position(u8::is_ascii_digit))
    {
        let from = at + digit;
        let rest = line.get(from..).unwrap_or_default();
        let of_number = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
        at = from + rest.iter().take_while(of_number).count();
        let Some(name) = name_before(line, from) else {
            continue;
        };
        some = true;
        let from = if line.get(from.wrapping_sub(1)) == Some(&b'-') {
            from - 1
        } else {
            from
        };
        if let Some(figure) = name.with_value(line, from) {
            at = at.max(figure.end);
            found(figure);
        }
    }
    some
}

/// A known name in a line.
#[derive(Debug, Clone, Copy)]
struct Name<'a> {
    named: Named,
    name: &'a [u8],
    labels: &'a [u8],
    from: usize,
}

impl<'a> Name<'a> {
    fn with_value(&self, line: &'a [u8], from: usize) -> Option<Figure<'a>> {
        let (read, end) = value(line, from)?;
        let judged = self.named.row.bad.judge(read, self.named.of_name)?;
        Some(Figure {
            row: self.named.row,
            judged,
            name: self.name,
            value: line.get(from..end)?,
            labels: self.labels,
            from: self.from,
            end,
        })
    }
}

/// The known name of which a number is the value.
fn name_before(line: &[u8], number: usize) -> Option<Name<'_>> {
    let last = number.checked_sub(1)?;
    let number = match line.get(last)? {
        b' ' | b':' | b'=' | b'"' | b'\'' | b'\t' | b'|' | b'>' => number,
        b'-' => last,
        b'.' if line.get(..number)?.ends_with(b"...") => number,
        byte if *byte >= 128 => number,
        _ => return None,
    };
    let end = end_of_name(line, number)?;
    let before = line.get(..end)?;
    let window = end.saturating_sub(MAX_BRACKET_BYTES);
    let (before, labels) = match before.last()? {
        b']' => {
            let open = before.get(window..)?.iter().rposition(|byte| *byte == b'[')? + window;
            (before.get(..open)?, before.get(open + 1..end - 1)?)
        }
        _ => (before, &b""[..]),
    };
    let (unit, before) = unit_of_name(before);
    if !may_end_name(before) {
        return None;
    }
    let begin = begin_of_name(before);
    let mut named = find(before.get(begin..)?)?;
    if unit.is_some() {
        named.of_name = OfName { unit, of_row: false };
    }
    let from = begin + named.from;
    Some(Name {
        named,
        name: before.get(from..)?,
        labels,
        from,
    })
}

/// Where the name ends whose value begins at a place: blanks, a colon, a sign, quotation marks and a stroke may stand between.
fn end_of_name(line: &[u8], number: usize) -> Option<usize> {
    let mut end = number;
    let least = number.saturating_sub(MAX_GAP_BYTES);
    let (mut strokes, mut colons, mut signs) = (0, 0, 0);
    while end > least {
        let byte = *line.get(end - 1)?;
        match byte {
            b' ' | b'\t' | b'"' | b'\'' | b'\\' => {}
            b':' => colons += 1,
            b'|' => strokes += 1,
            b'=' => {
                // A comparison is no value.
                let before = end.checked_sub(2).and_then(|before| line.get(before));
                if matches!(before, Some(b'<' | b'>' | b'=' | b'!' | b'~' | b'+')) {
                    return None;
                }
                signs += 1;
            }
            b'>' if end == number && is_element(line.get(..end - 1)?) => return Some(end - 1),
            b'>' => {
                let before = end.checked_sub(2).and_then(|before| line.get(before))?;
                matches!(before, b'=' | b'-').then_some(())?;
                end -= 1;
                signs += 1;
            }
            b'.' => {
                let dots = line.get(least..end)?.iter().rev();
                let dots = dots.take_while(|byte| **byte == b'.').count();
                (dots >= MIN_LEADERS).then_some(())?;
                end -= dots - 1;
            }
            // The strokes of a frame are three bytes each.
            0x82 if line.get(..end)?.ends_with("│".as_bytes()) => {
                end -= 2;
                strokes += 1;
            }
            _ => break,
        }
        end -= 1;
    }
    let apart = end < number;
    (apart && strokes <= 1 && colons <= 1 && signs <= 1).then_some(end)
}

/// Whether a text ends with an element that is opened: `<name`.
fn is_element(before: &[u8]) -> bool {
    let of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let name = before
        .iter()
        .rev()
        .take(MAX_NAME_BYTES)
        .take_while(of_name)
        .count();
    name > 0 && before.len().checked_sub(name + 1).and_then(|at| before.get(at)) == Some(&b'<')
}

/// Where what a name may consist of begins, before its end.
fn begin_of_name(before: &[u8]) -> usize {
    let least = before.len().saturating_sub(MAX_NAME_BYTES);
    let mut at = before.len();
    while at > least {
        let byte = before.get(at - 1).copied().unwrap_or_default();
        let two = byte == b' ' && before.get(at.wrapping_sub(2)) == Some(&b' ');
        let ends = matches!(
            byte,
            b',' | b';' | b'|' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'"' | b'\'' | b'\t' | b'<' | b'>'
        );
        if ends || two || byte >= 128 {
            break;
        }
        at -= 1;
    }
    at
}

/// A line of an exporter: `name{labels} value`.
struct Sample<'a> {
    line: &'a [u8],
    name: &'a [u8],
    labels: &'a [u8],
    /// Where the value begins.
    value: usize,
}

impl<'a> Sample<'a> {
    fn of(line: &'a [u8]) -> Option<Sample<'a>> {
        let of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.');
        let end = line.iter().take(MAX_NAME_BYTES).take_while(of_name).count();
        if end == 0 || line.get(end) != Some(&b'{') {
            return None;
        }
        let close = memchr::memrchr(b'}', line)?;
        let gap = |byte: &&u8| matches!(byte, b' ' | b'=' | b'>' | b'\t');
        let behind = line.get(close + 1..)?;
        let value = close + 1 + behind.iter().take_while(gap).count();
        Some(Sample {
            line,
            name: line.get(..end)?,
            labels: line.get(end + 1..close)?,
            value,
        })
    }

    /// Whether there is a label of this name: `role="x"` is no `le="x"`.
    fn has_label(&self, name: &[u8]) -> bool {
        let at = find_bytes(self.labels, name);
        at.is_some_and(|at| match at.checked_sub(1) {
            Some(before) => matches!(self.labels.get(before), Some(b',' | b' ')),
            None => true,
        })
    }

    fn figure(&self, found: &mut impl FnMut(Figure<'a>)) -> bool {
        let of_bounds = self.has_label(b"le=\"") || self.has_label(b"quantile=\"");
        let part = of_bounds || self.name.ends_with(b"_bucket");
        if part || !may_end_name(self.name) {
            return false;
        }
        let Some(named) = find(self.name) else {
            return false;
        };
        let name = Name {
            named,
            name: self.name,
            labels: self.labels.get(..MAX_LABEL_BYTES).unwrap_or(self.labels),
            from: 0,
        };
        if let Some(figure) = name.with_value(self.line, self.value) {
            found(figure);
        }
        true
    }
}
