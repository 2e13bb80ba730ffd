//! What a format is: how it is recognised, and how it is read.

use crate::gather::{Out, text_of};

/// One format of artefacts.
pub struct Format {
    /// Its name, as a report has it.
    pub id: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// What kind of artefact it is.
    pub family: Family,
    /// How sure this is it, from the beginning of an artefact (up to [`HEAD`](crate::stream::HEAD) bytes, cut anywhere).
    pub(crate) recognise: fn(&[u8]) -> Sureness,
    /// What a line begins with that can only be the beginning of this format, after any blanks. It ends another format in
    /// the middle of an artefact: people paste several outputs into one file.
    pub(crate) openings: &'static [&'static str],
    /// How it is read.
    pub(crate) shape: Shape,
}

impl Format {
    /// Read line by line, each artefact by a new reader.
    pub(crate) const fn lines<R: LineReader + Default + 'static>(
        id: &'static str,
        family: Family,
        recognise: fn(&[u8]) -> Sureness,
    ) -> Self {
        Self::new(id, family, recognise, Shape::Lines(|| Box::<R>::default()))
    }

    /// With no openings.
    pub(crate) const fn new(
        id: &'static str,
        family: Family,
        recognise: fn(&[u8]) -> Sureness,
        shape: Shape,
    ) -> Self {
        Self {
            id,
            about: id,
            family,
            recognise,
            openings: &[],
            shape,
        }
    }

    /// What it is, in a few words.
    pub(crate) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// What a line begins with that can only be the beginning of this format.
    pub(crate) const fn openings(self, openings: &'static [&'static str]) -> Self {
        Self { openings, ..self }
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

/// What kind of artefact a format is of: sixty formats are too many to name in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// What each thread of a program does.
    Threads,
    /// Where many samples fell.
    Profiles,
    /// Which system calls a program made.
    Calls,
    /// Figures and lists of a machine.
    Host,
    /// What the kernel and the system's services say.
    Logs,
    /// What database servers say of their sessions.
    Databases,
    /// What runtimes and libraries say of themselves.
    Runtime,
    /// Anything with times.
    Times,
}

impl Family {
    /// Its name, in the plural.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Threads => "thread dumps",
            Family::Profiles => "profiles",
            Family::Calls => "system call traces",
            Family::Host => "figures of a host",
            Family::Logs => "kernel and system logs",
            Family::Databases => "logs and sessions of databases",
            Family::Runtime => "JVM and TLS logs",
            Family::Times => "logs with times",
        }
    }
}

/// How sure it is that an artefact is of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sureness {
    /// It is not.
    No,
    /// It has what any of many formats has (lines with times).
    Weak,
    /// It looks like it.
    Likely,
    /// Something is there that no other format has.
    Certain,
}

impl Sureness {
    /// Of what no other format has, or not at all.
    pub(crate) fn certain_if(holds: bool) -> Self {
        match holds {
            true => Sureness::Certain,
            false => Sureness::No,
        }
    }
}

/// How a format is read.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Line by line, however long the artefact is.
    Lines(fn() -> Box<dyn LineReader>),
    /// As a whole (JSON, SVG, binary), if it is at most [`DOCUMENT`](crate::stream::DOCUMENT) bytes long.
    Document(fn(&[u8], &mut Out<'_>)),
}

/// Reads lines of one format.
pub(crate) trait LineReader {
    /// Takes one line, without its end. Bytes, because artefacts are in all encodings.
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood;

    /// Whether a line that opens this very format begins another artefact of it, to be kept apart from this one.
    fn begins_anew(&self, _line: &[u8]) -> bool {
        false
    }

    /// Whether a line that opens another format stays with this reader: a heading said of which file the lines are.
    fn keeps(&self, _other: &Format) -> bool {
        false
    }

    /// The artefact, or this part of it, has ended.
    fn end(&mut self, _out: &mut Out<'_>) {}
}

/// Reads lines of a format in which neither indentation nor empty lines mean anything.
pub(crate) trait TextReader {
    /// Takes what stands on one line; it is never empty.
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood;

    /// The artefact, or this part of it, has ended.
    fn end(&mut self, _out: &mut Out<'_>) {}
}

impl<T: TextReader> LineReader for T {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        match text_of(line).trim() {
            "" => Understood::Ignorable,
            text => self.text(text, out),
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        TextReader::end(self, out);
    }
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Understood {
    /// It gave evidence, or is part of something that does.
    Evidence,
    /// It is one of the lines of this format that say nothing to us.
    Ignorable,
    /// No.
    No,
}
