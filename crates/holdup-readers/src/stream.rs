//! From a stream to its readers: which format it is, and where another begins.

use crate::collected;
use crate::copied::{self, AHEAD, Ahead, Copied};
use crate::emphasis;
use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::formats::{ALL, LOG, text};
use crate::gather::{Gather, Out, quoted};
use crate::known_figures;
use crate::lines::{Lines, MAX_LINE_BYTES};
use crate::messages;
use crate::prompt::{self, Prompt};
use crate::quoted::{Unquoted, is_quoted};
use crate::statements::{self, Statements};
use crate::text::{Cleaner, Text, Utf16, is_binary};
use crate::typography::{Plain, has_signs};
use std::io::{ErrorKind, Read};

/// Bytes from which a format is recognised.
pub const HEAD: usize = 64 << 10;

/// The longest document that is read as a whole.
pub(crate) const DOCUMENT: usize = 256 << 20;

/// Parts of different formats that one artefact is read as; of what comes then the last reader makes what it can.
const MAX_PARTS: usize = 500;

/// Places of one artefact at which is looked whether a format begins: people paste a few outputs, and a log has empty lines without end.
const LOOKS: u32 = 24;

/// What is said of what is no text and no format.
pub(crate) const BINARY: &str = "binary data of no format that is known";

/// Reads a stream to its end. `before` are the lines of the artefact that come before it.
pub(crate) fn read(name: &str, stream: &mut dyn Read, before: u64, gather: &mut Gather) {
    let (head, failure) = beginning(stream, HEAD);
    let mut stream = Chained::new(head, failure, stream);
    let text = Text::of(&stream.head);
    let raw = recognise(&stream.head[text.mark..]);
    if let Some(format) = raw
        && let Shape::Document(read) = format.shape
    {
        stream.at = text.mark;
        document(name, &mut stream, format, read, gather);
        return;
    }
    stream.at = text.mark;
    match text.utf16 {
        Some(high_first) => {
            let mut stream = Utf16::new(&mut stream, high_first);
            let mut lines = Lines::new(&mut stream, Cleaner::new(text));
            let format = recognise(lines.head(HEAD));
            parts(name, &mut lines, format, before, gather);
        }
        None if is_quoted(&stream.head) => {
            let mut stream = Unquoted::new(&mut stream);
            let mut lines = Lines::new(&mut stream, Cleaner::new(text));
            let format = recognise(lines.head(HEAD));
            parts(name, &mut lines, format, before, gather);
        }
        None if has_signs(&stream.head) => {
            let head = stream.head.clone();
            let mut stream = Plain::new(&mut stream, &head);
            let mut lines = Lines::new(&mut stream, Cleaner::new(text));
            let format = recognise(lines.head(HEAD));
            parts(name, &mut lines, format, before, gather);
        }
        None if emphasis::has_cells(&stream.head) => {
            let mut stream = emphasis::Plain::new(&mut stream);
            let mut lines = Lines::new(&mut stream, Cleaner::new(text));
            let format = recognise(lines.head(HEAD));
            parts(name, &mut lines, format, before, gather);
        }
        None => {
            let binary = raw.is_none() && is_binary(&stream.head);
            let mut lines = Lines::new(&mut stream, Cleaner::new(text));
            let format = if text.plain {
                raw
            } else {
                recognise(lines.head(HEAD))
            };
            if binary && format.is_none() {
                let mut out = gather.begin(name, "");
                out.problem(BINARY);
                out.account().bytes = lines.head(HEAD).len() as u64;
                return;
            }
            parts(name, &mut lines, format, before, gather);
        }
    }
}

/// Reads a text as one format, and as nothing else.
pub(crate) fn read_as(format: &'static Format, mut text: &[u8], gather: &mut Gather) {
    // To be asked too: it is for any text.
    let _ = (format.recognise)(&text[..text.len().min(HEAD)]);
    if let Shape::Document(read) = format.shape {
        document("text", &mut text, format, read, gather);
        return;
    }
    let mut lines = Lines::new(&mut text, Cleaner::default());
    let mut out = gather.begin("text", format.id);
    let mut reader = Reader::of(format);
    let mut place = Place {
        number: 0,
        looks: 0,
        carried: None,
        copied: Copied::default(),
    };
    part(&mut lines, None, &mut reader, &mut out, &mut place);
    reader.end(&mut out);
    finish(&lines, &mut out);
}

/// Up to so many bytes of a stream, and why there are no more.
pub(crate) fn beginning(stream: &mut dyn Read, most: usize) -> (Vec<u8>, Option<std::io::Error>) {
    let mut head = vec![0; most];
    let mut length = 0;
    let mut failure = None;
    while length < most {
        match stream.read(&mut head[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    head.truncate(length);
    (head, failure)
}

/// A stream with its beginning put back.
pub(crate) struct Chained<'a> {
    pub(crate) head: Vec<u8>,
    /// What of it was handed out.
    pub(crate) at: usize,
    failure: Option<std::io::Error>,
    rest: &'a mut dyn Read,
}

impl<'a> Chained<'a> {
    pub(crate) fn new(head: Vec<u8>, failure: Option<std::io::Error>, rest: &'a mut dyn Read) -> Chained<'a> {
        Chained {
            head,
            at: 0,
            failure,
            rest,
        }
    }
}

impl Read for Chained<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = &self.head[self.at..];
        if !left.is_empty() {
            let length = left.len().min(buffer.len());
            buffer[..length].copy_from_slice(&left[..length]);
            self.at += length;
            return Ok(length);
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.rest.read(buffer),
        }
    }
}

/// Reads what is read as a whole.
fn document(
    name: &str,
    stream: &mut dyn Read,
    format: &'static Format,
    read: fn(&[u8], &mut Out<'_>),
    gather: &mut Gather,
) {
    let mut out = gather.begin(name, format.id);
    let mut whole = Vec::new();
    if let Err(error) = stream.take(DOCUMENT as u64 + 1).read_to_end(&mut whole) {
        out.problem(format!("could not be read to its end: {error}"));
    }
    out.account().bytes = whole.len() as u64;
    if whole.len() > DOCUMENT {
        out.problem(format!(
            "longer than {} MiB, and this format can't be read in parts",
            DOCUMENT >> 20
        ));
        return;
    }
    read(&whole, &mut out);
}

/// Reads lines, part by part.
fn parts(
    name: &str,
    lines: &mut Lines<'_>,
    format: Option<&'static Format>,
    before: u64,
    gather: &mut Gather,
) {
    if collected::is_it(lines.head(HEAD)) {
        collected::read(name, lines, before, gather);
        return;
    }
    if let Some(format) = format
        && let Shape::Document(read) = format.shape
    {
        document(name, lines, format, read, gather);
        return;
    }
    let openings = Openings::new();
    let mut place = Place {
        number: before,
        looks: LOOKS,
        carried: None,
        copied: Copied::default(),
    };
    // Of several outputs in one text the surest need not be the first.
    let first = openings.of_first(lines.head(HEAD));
    let (mut format, copied) = match (first, begins_copied(lines.head(AHEAD), format)) {
        (_, Some(ahead)) => (ahead.format, ahead.copied),
        (Some(first), None) => (first, Copied::default()),
        (None, None) => (format.unwrap_or(&text::FORMAT), Copied::default()),
    };
    place.copied = copied;
    // Each turn is a part of one format; the line that ended the last one is the first of the next.
    for left in (0..MAX_PARTS).rev() {
        let mut out = gather.begin(name, format.id);
        let mut reader = Reader::of(format);
        let consumed = lines.consumed();
        let openings = Some(&openings).filter(|_| left > 0);
        if openings.is_none() {
            out.problem(format!("changes its format more than {MAX_PARTS} times"));
        }
        let next = part(lines, openings, &mut reader, &mut out, &mut place);
        reader.end(&mut out);
        out.account().bytes = lines.consumed() - consumed;
        match next {
            Some(other) => format = other,
            None => {
                finish(lines, &mut out);
                return;
            }
        }
    }
}

/// How far the reading of an artefact is.
struct Place {
    /// The last line's number.
    number: u64,
    /// How often may still be looked whether a format begins.
    looks: u32,
    /// The line that begins the next part, as it was before it was copied.
    carried: Option<Vec<u8>>,
    /// What is undone of each line.
    copied: Copied,
}

/// What an artefact is whose lines have something in front, or that is of no format as a whole.
fn begins_copied(ahead: &[u8], whole: Option<&'static Format>) -> Option<Ahead> {
    if is_known(whole.unwrap_or(&text::FORMAT)) {
        let sure = whole.map_or(Sureness::No, |format| (format.recognise)(ahead));
        return copied::undone(ahead, sure);
    }
    copied::look(ahead).filter(|ahead| ahead.sure >= Sureness::Likely)
}

/// Whether a format is more than what is left where none fits.
fn is_known(format: &Format) -> bool {
    format.id != text::ID && format.id != LOG.id
}

/// What begins behind a line at which something may begin.
fn begins_behind(ahead: &[u8], format: &Format, announced: bool) -> Option<Ahead> {
    let least = match announced && format.id == text::ID {
        true => Sureness::Likely,
        false => Sureness::Certain,
    };
    copied::look(ahead).filter(|found| found.sure >= least && found.format.id != format.id)
}

/// Reads a part: by the reader of its format, and what that does not use for what it states in words.
struct Reader {
    format: &'static Format,
    own: Box<dyn LineReader>,
    statements: Statements,
}

impl Reader {
    fn of(format: &'static Format) -> Reader {
        let (format, reader) = match format.shape {
            Shape::Lines(reader) => (format, reader),
            Shape::Document(_) => (&text::FORMAT, text::reader as fn() -> Box<dyn LineReader>),
        };
        Reader {
            format,
            own: reader(),
            statements: Statements::default(),
        }
    }

    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let understood = self.own.line(line, out);
        if self.format.id != text::ID && statements::reads(self.format, understood) {
            self.statements.line(line, out);
            return understood;
        }
        if understood == Understood::Evidence {
            self.statements.evidence(line);
            if self.format.family == Family::Logs {
                self.statements.kept(line, out.here().line);
            }
        }
        if understood == Understood::Ignorable && self.has_message(line) {
            self.statements.line(line, out);
            return understood;
        }
        if self.has_figures(understood) {
            self.statements.figures(line, out);
        }
        understood
    }

    /// Whether a line that a reader of figures passes over is a well-known message of a cause: the log of a server below the test that it failed.
    fn has_message(&self, line: &[u8]) -> bool {
        let of_figures = matches!(self.format.family, Family::Host | Family::Times);
        of_figures && messages::of(line).is_some_and(|found| found.message.is_cause())
    }

    /// Whether lines that the reader understood so may have known figures that it does not know.
    fn has_figures(&self, understood: Understood) -> bool {
        match understood {
            Understood::Evidence => known_figures::reads(self.format.id),
            Understood::Ignorable => {
                self.format.id != text::ID && matches!(self.format.family, Family::Host | Family::Times)
            }
            Understood::No => false,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.own.end(out);
        self.statements.end(out);
    }
}

/// Reads lines until one opens another format; which.
fn part(
    lines: &mut Lines<'_>,
    openings: Option<&Openings>,
    reader: &mut Reader,
    out: &mut Out<'_>,
    place: &mut Place,
) -> Option<&'static Format> {
    let format = reader.format;
    let take = |line: &[u8], prompt: Prompt, reader: &mut Reader, out: &mut Out<'_>| {
        if let Prompt::Of(_) = prompt {
            out.source().tool = Some(quoted(line));
        }
        let understood = reader.line(line, out);
        // A reader may learn from the command's options; else the line says nothing more.
        let prompted = understood == Understood::No && !matches!(prompt, Prompt::No);
        out.count(
            line,
            if prompted {
                Understood::Ignorable
            } else {
                understood
            },
        );
    };
    if let Some(line) = place.carried.take() {
        out.at_line(place.number);
        take(&line, prompt::of(&line), reader, out);
    }
    let mut room = Vec::new();
    while let Some(line) = lines.next() {
        place.number += 1;
        out.at_line(place.number);
        let line = match place.copied.is_nothing() {
            true => line,
            false => place.copied.undo(line, &mut room),
        };
        let prompt = if openings.is_some() {
            prompt::of(line)
        } else {
            Prompt::No
        };
        // Each command is an artefact of its own: a second `free -m` is not the same report as the first.
        if let Prompt::Of(other) = prompt
            && (out.account().lines > 0 || format.id != other.id)
        {
            place.carried = Some(line.to_vec());
            return Some(other);
        }
        let other = openings
            .and_then(|openings| openings.of(line))
            .filter(|other| format.id != other.id || reader.own.begins_anew(line))
            .filter(|other| !reader.own.keeps(other));
        if let Some(other) = other {
            place.carried = Some(line.to_vec());
            return Some(other);
        }
        if openings.is_none() || !copied::may_begin_behind(line, prompt, is_known(format)) {
            take(line, prompt, reader, out);
            continue;
        }
        let fence = copied::is_fence(line);
        let announced = fence || !line.trim_ascii().is_empty();
        match fence {
            // It is nobody's.
            true => out.count(line, Understood::Ignorable),
            false => take(line, prompt, reader, out),
        }
        if place.looks == 0 {
            continue;
        }
        place.looks -= 1;
        let found = begins_behind(lines.head(AHEAD), format, announced);
        if let Some(found) = found.filter(|found| !reader.own.keeps(found.format)) {
            place.copied = found.copied;
            return Some(found.format);
        }
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
            MAX_LINE_BYTES >> 10
        ));
    }
}

/// The format that is surest of the beginning of an artefact ([`HEAD`] bytes of it), unpacked and in ASCII or UTF-8.
#[must_use]
pub fn recognise(head: &[u8]) -> Option<&'static Format> {
    // Archives have empty files by the ten thousand.
    if head.is_empty() {
        return None;
    }
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
        let by_lines = ALL
            .iter()
            .filter(|format| matches!(format.shape, Shape::Lines(_)));
        for &format in by_lines {
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

    /// What the first line of an artefact says, where it opens a format or is a prompt.
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
    let (mut line, mut opening) = (line, opening);
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
