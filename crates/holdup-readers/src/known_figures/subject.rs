//! What figures are of, where a line has a name and a value alone: the headings above it, or a name beside it.

use super::Line;
use crate::find::find;
use crate::gather::text_of;

/// Keys whose values name what the figures beside them are of.
const NAMES: [&str; 32] = [
    "name",
    "queue",
    "topic",
    "node",
    "node_name",
    "host",
    "hostname",
    "instance",
    "server",
    "table",
    "index",
    "pool",
    "database",
    "db",
    "datname",
    "cluster",
    "device",
    "disk",
    "volume",
    "interface",
    "consumer",
    "group",
    "consumer_group",
    "subscription",
    "stream",
    "shard",
    "region",
    "pod",
    "container",
    "service",
    "keyspace",
    "channel",
];

/// Headings that are kept, and those that are told.
const MAX_HEADINGS: usize = 12;
const MAX_TOLD_HEADINGS: usize = 3;

/// Bytes of a heading.
const MAX_HEADING_BYTES: usize = 80;

/// Bytes around a figure in which a name is looked for.
const AROUND: usize = 600;

/// Lines below a heading that are of it.
const MAX_LINES: u64 = 100;

/// The headings above a line, each with how far it is set in.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    headings: Vec<Heading>,
}

#[derive(Debug)]
struct Heading {
    indent: usize,
    number: u64,
    /// Whether it is the value of a name.
    is_name: bool,
    text: String,
}

impl Subjects {
    /// Takes a line without a figure; whether it says what the figures below it are of.
    pub(super) fn line(&mut self, line: Line<'_>) -> bool {
        let Some(heading) = heading(line.text) else {
            return false;
        };
        let Line { indent, number, .. } = line;
        // A name stands among the figures that it names, and before headings within them; what else was set in as far or farther is over.
        let is_name = !matches!(line.text.last(), Some(b':' | b'{' | b'[' | b']'));
        self.headings
            .retain(|other| other.indent < indent || other.indent == indent && other.is_name && !is_name);
        if self.headings.len() >= MAX_HEADINGS {
            self.headings.remove(0);
        }
        let text = text_of(heading);
        self.headings.push(Heading {
            indent,
            number,
            is_name,
            text,
        });
        true
    }

    /// What the headings above a line say.
    pub(super) fn of(&self, line: Line<'_>) -> String {
        let is_above = |heading: &&Heading| {
            heading.indent <= line.indent && line.number.saturating_sub(heading.number) <= MAX_LINES
        };
        let above = self.headings.iter().filter(is_above);
        let all: Vec<&str> = above.map(|heading| heading.text.as_str()).collect();
        let last = all.len().saturating_sub(MAX_TOLD_HEADINGS);
        all.get(last..).unwrap_or_default().join(", ")
    }
}

/// The words of a heading: `Queue orders:`, `"node-1": {`, `[client]`, `name: orders`.
fn heading(text: &[u8]) -> Option<&[u8]> {
    let last = *text.last()?;
    if text.len() > 2 * MAX_HEADING_BYTES {
        return None;
    }
    let inner = match last {
        b':' => text.get(..text.len() - 1)?,
        b'{' | b'[' => {
            let key = text.get(..text.len() - 1)?.trim_ascii_end();
            key.strip_suffix(b":").or_else(|| key.strip_suffix(b"="))?
        }
        b']' => text.strip_prefix(b"[")?.strip_suffix(b"]")?,
        _ => named(text)?,
    };
    let signs = |byte: &u8| matches!(byte, b'"' | b'\'' | b' ' | b'-' | b'*' | b'=' | b'#');
    let from = inner.iter().take_while(|byte| signs(byte)).count();
    let inner = inner.get(from..)?;
    let behind = inner.iter().rev().take_while(|byte| signs(byte)).count();
    let inner = inner.get(..inner.len() - behind)?;
    let fits = inner.len() <= MAX_HEADING_BYTES && inner.iter().any(u8::is_ascii_alphabetic);
    fits.then_some(inner)
}

/// The value of a line that is a name: `name: orders`, `"topic" : "orders",`.
fn named(text: &[u8]) -> Option<&[u8]> {
    let signs = |byte: u8| matches!(byte, b'"' | b'\'' | b' ' | b'-' | b'{' | b'|');
    let from = text.iter().take_while(|byte| signs(**byte)).count();
    let text = text.get(from..)?;
    let key = text.iter().take(MAX_HEADING_BYTES);
    let key = key
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let (key, rest) = text.split_at_checked(key)?;
    NAMES
        .iter()
        .any(|name| key.eq_ignore_ascii_case(name.as_bytes()))
        .then_some(())?;
    let between = |byte: u8| matches!(byte, b'"' | b'\'' | b' ' | b':' | b'=' | b'|' | b'\t');
    let gap = rest.iter().take_while(|byte| between(**byte)).count();
    let sign = rest
        .get(..gap)?
        .iter()
        .any(|byte| matches!(byte, b':' | b'=' | b'|'));
    let value = rest.get(gap..).filter(|_| sign)?;
    let end = |byte: u8| matches!(byte, b'"' | b'\'' | b',' | b'|' | b'}');
    let length = value.iter().take_while(|byte| !end(**byte)).count();
    Some(value.get(..length)?.trim_ascii())
}

/// The name that stands beside a figure of a line of JSON: before it, else behind it, in the same object.
pub(super) fn beside(text: &[u8], from: usize, end: usize) -> Option<&[u8]> {
    let before = text.get(from.saturating_sub(AROUND)..from)?;
    let open = before.iter().rposition(|byte| *byte == b'{').unwrap_or(0);
    let behind = text.get(end..text.len().min(end + AROUND))?;
    let close = behind
        .iter()
        .position(|byte| *byte == b'}')
        .unwrap_or(behind.len());
    let in_object = |part: &[u8]| find(part, b"\"").is_some();
    let own = before.get(open..).filter(|part| in_object(part));
    own.and_then(|part| name_in(part).map(|at| (part, at)))
        .or_else(|| {
            let part = behind.get(..close)?;
            name_in(part).map(|at| (part, at))
        })
        .or_else(|| name_in(before).map(|at| (before, at)))
        .and_then(|(part, at)| named(part.get(at..)?))
        .filter(|name| !name.is_empty() && name.len() <= MAX_HEADING_BYTES)
}

/// Where the last key stands whose value is a name.
fn name_in(text: &[u8]) -> Option<usize> {
    let mut last = None;
    let mut at = 0;
    while let Some(next) = find(text.get(at..)?, b"\"") {
        let quote = at + next;
        let rest = text.get(quote..)?;
        if named(rest).is_some_and(|name| name.iter().any(u8::is_ascii_alphabetic)) {
            last = Some(quote);
        }
        at = quote + 1;
    }
    last
}
