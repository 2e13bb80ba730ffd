//! From a stream to its readers: which format it is, and where another begins.

use crate::format::{Format, LineReader, Shape, Sureness, Understood};
use crate::formats::ALL;
use crate::gather::{Gather, Out};
use crate::lines::{LONGEST, Lines};
use std::io::Read;

/// Bytes from which a format is recognised.
pub(crate) const HEAD: usize = 64 << 10;

/// The longest document that is read as a whole.
pub(crate) const DOCUMENT: usize = 256 << 20;

/// Reads a stream to its end.
pub(crate) fn read(name: &str, stream: &mut dyn Read, gather: &mut Gather) {
    let mut lines = Lines::new(stream);
    let format = recognise(lines.head(HEAD));
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
    let openings = Openings::new();
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
    let take = |line: &[u8], reader: &mut Option<Box<dyn LineReader>>, out: &mut Out<'_>| {
        let understood = match reader {
            Some(reader) => reader.line(line, out),
            None if line.iter().all(u8::is_ascii_whitespace) => Understood::Ignorable,
            None => Understood::No,
        };
        out.count(line, understood);
    };
    if let Some(line) = carried {
        out.at_line(*number);
        take(&line, reader, out);
    }
    while let Some(line) = lines.next() {
        *number += 1;
        out.at_line(*number);
        let anew = |line| reader.as_ref().is_some_and(|reader| reader.begins_anew(line));
        let other = openings
            .of(line)
            .filter(|other| format.is_none_or(|format| format.id != other.id) || anew(line));
        if let Some(other) = other {
            return Some((other, line.to_vec()));
        }
        take(line, reader, out);
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
        let found = candidates.iter().find(|(opening, _)| line.starts_with(opening));
        found.map(|(_, format)| *format)
    }
}
