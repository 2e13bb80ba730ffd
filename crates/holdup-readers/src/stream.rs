//! From a stream to its readers: which format it is, and where another begins.

use crate::format::{Format, LineReader, Shape, Sureness, Understood};
use crate::formats::ALL;
use crate::gather::{Gather, Out, quoted};
use crate::lines::{LONGEST, Lines};
use crate::prompt::{self, Prompt};
use std::io::Read;

/// Bytes from which a format is recognised.
pub(crate) const HEAD: usize = 64 << 10;

/// The longest document that is read as a whole.
pub(crate) const DOCUMENT: usize = 256 << 20;

/// Reads a stream to its end.
pub(crate) fn read(name: &str, stream: &mut dyn Read, gather: &mut Gather) {
    let mut lines = Lines::new(stream);
    let openings = Openings::new();
    let head = lines.head(HEAD);
    let format = openings.of_first(head).or_else(|| recognise(head));
    if let Some(Shape::Document(read)) = format.map(|format| format.shape) {
        let mut out = gather.begin(name, format);
        match lines.rest(DOCUMENT) {
            Some(document) => {
                out.account().bytes = document.len() as u64;
                read(&document, &mut out);
            }
            None => out.problem(format!(
                "longer than {} MiB, and this format can't be read in parts",
                DOCUMENT >> 20
            )),
        }
        finish(&lines, &mut out);
        return;
    }
    let mut format = format;
    let mut number = 0;
    // Each turn is a part of one format; the line that ended the last one is the first of the next.
    let mut carried: Option<Vec<u8>> = None;
    loop {
        let mut out = gather.begin(name, format);
        let mut reader = format.and_then(reader_of);
        let before = lines.bytes;
        let next = part(
            &mut lines,
            &openings,
            format,
            &mut reader,
            &mut out,
            &mut number,
            carried.take(),
        );
        if let Some(reader) = &mut reader {
            reader.end(&mut out);
        }
        out.account().bytes = lines.bytes - before;
        match next {
            Some((other, line)) => {
                format = Some(other);
                carried = Some(line);
            }
            None => {
                finish(&lines, &mut out);
                return;
            }
        }
    }
}

fn reader_of(format: &'static Format) -> Option<Box<dyn LineReader>> {
    match format.shape {
        Shape::Lines(reader) => Some(reader()),
        Shape::Document(_) => None,
    }
}

/// Reads lines until one opens another format; which, and that line.
fn part(
    lines: &mut Lines<'_>,
    openings: &Openings,
    format: Option<&'static Format>,
    reader: &mut Option<Box<dyn LineReader>>,
    out: &mut Out<'_>,
    number: &mut u64,
    carried: Option<Vec<u8>>,
) -> Option<(&'static Format, Vec<u8>)> {
    let mut take = |line: &[u8], prompt: Prompt, out: &mut Out<'_>| {
        if !matches!(prompt, Prompt::No) {
            out.count(line, Understood::Ignorable);
            if let Prompt::Of(_) = prompt {
                out.source().tool = Some(quoted(line));
            }
            return;
        }
        let understood = match reader {
            Some(reader) => reader.line(line, out),
            None if line.iter().all(u8::is_ascii_whitespace) => Understood::Ignorable,
            None => Understood::No,
        };
        out.count(line, understood);
    };
    if let Some(line) = carried {
        out.at_line(*number);
        take(&line, prompt::of(&line), out);
    }
    while let Some(line) = lines.next() {
        *number += 1;
        out.at_line(*number);
        let prompt = prompt::of(line);
        // Each command is an artefact of its own: a second `free -m` is not the same report as the first.
        if let Prompt::Of(other) = prompt
            && (out.account().lines > 0 || format.is_none_or(|format| format.id != other.id))
        {
            return Some((other, line.to_vec()));
        }
        let other = openings
            .of(line)
            .filter(|other| format.is_none_or(|format| format.id != other.id));
        if let Some(other) = other {
            return Some((other, line.to_vec()));
        }
        take(line, prompt, out);
    }
    None
}

fn finish(lines: &Lines<'_>, out: &mut Out<'_>) {
    if let Some(why) = &lines.failure {
        out.problem(format!("could not be read to its end: {why}"));
    }
    if lines.cut > 0 {
        out.problem(format!(
            "{} lines are longer than {} KiB and were cut",
            lines.cut,
            LONGEST >> 10
        ));
    }
}

/// The format that is surest of it.
fn recognise(head: &[u8]) -> Option<&'static Format> {
    let mut best: Option<(Sureness, &'static Format)> = None;
    for &format in ALL {
        let sure = (format.recognise)(head);
        if sure > best.map_or(Sureness::No, |(best, _)| best) {
            best = Some((sure, format));
        }
    }
    best.map(|(_, format)| format)
}

/// What lines begin with that begin a format, by first byte: asked of every line of every artefact.
struct Openings {
    by_first: [Vec<(&'static [u8], &'static Format)>; 256],
}

impl Openings {
    fn new() -> Openings {
        let mut by_first = std::array::from_fn(|_| Vec::new());
        for &format in ALL {
            for opening in format.openings {
                let bytes = opening.as_bytes();
                by_first[bytes[0] as usize].push((bytes, format));
            }
        }
        Openings { by_first }
    }

    fn of(&self, line: &[u8]) -> Option<&'static Format> {
        let line = line.trim_ascii_start();
        let candidates = &self.by_first[*line.first()? as usize];
        let found = candidates.iter().find(|(opening, _)| begins(line, opening));
        found.map(|(_, format)| *format)
    }

    /// What the first line of an artefact says, where it opens a format or is a prompt: of several outputs in one text
    /// the surest need not be the first.
    fn of_first(&self, head: &[u8]) -> Option<&'static Format> {
        let mut lines = head.split(|byte| *byte == b'\n');
        let first = lines.find(|line| !line.trim_ascii().is_empty())?;
        match prompt::of(first) {
            Prompt::Of(format) => Some(format),
            _ => self.of(first),
        }
    }
}

/// Whether a line begins so; blanks in the opening stand for any number of them, as columns of tables have.
fn begins(line: &[u8], opening: &[u8]) -> bool {
    let mut line = line;
    let mut opening = opening;
    while let Some((first, rest)) = opening.split_first() {
        if *first == b' ' {
            if !matches!(line.first(), Some(b' ' | b'\t')) {
                return false;
            }
            line = line.trim_ascii_start();
            opening = opening.trim_ascii_start();
            continue;
        }
        match line.split_first() {
            Some((same, behind)) if same == first => (line, opening) = (behind, rest),
            _ => return false,
        }
    }
    true
}
