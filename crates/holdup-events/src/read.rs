//! Reads events again.
//!
//! In: a file that anybody may have written. Out: its head, its events one by one, its end. Nothing is kept of what was read, and no
//! line is longer than a bound, so memory does not grow with the file.

use crate::{Ending, Head, Line, VERSION};
use flate2::read::MultiGzDecoder;
use holdup_evidence::Event;
use std::io::{BufRead, BufReader, Read};

/// The longest line, bytes. The last one has the frames of all stacks: some tens of megabytes of a large program.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading or unpacking failed.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// A line is not what it should be.
    #[error("line {line} is not an event: {error}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A line is too long.
    #[error("line {line} is longer than 256 MiB")]
    TooLong {
        /// Counted from 1.
        line: u64,
    },
    /// The file is of a later holdup.
    #[error("the file has version {0} of the form, and this holdup reads up to version {VERSION}")]
    Later(u32),
    /// There is something after the end.
    #[error("line {line} stands behind the end")]
    GoesOn {
        /// Counted from 1.
        line: u64,
    },
    /// There is no end.
    #[error("the file is cut short: it does not say how the observation ended")]
    CutShort,
}

/// A file that is being read.
#[derive(Debug)]
pub struct Events<R: Read> {
    lines: BufReader<MultiGzDecoder<R>>,
    line: u64,
    bytes: Vec<u8>,
    head: Head,
    end: Option<Box<Ending>>,
}

impl<R: Read> Events<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When it is no such file, or of a later version.
    pub fn open(file: R) -> Result<Events<R>, ReadError> {
        let mut events = Events {
            lines: BufReader::new(MultiGzDecoder::new(file)),
            line: 0,
            bytes: Vec::new(),
            head: Head {
                holdup_events: VERSION,
                holdup: String::new(),
                settings: crate::Settings::default(),
            },
            end: None,
        };
        events.head = events.read()?.ok_or(ReadError::CutShort)?;
        match events.head.holdup_events {
            version if version > VERSION => Err(ReadError::Later(version)),
            _ => Ok(events),
        }
    }

    /// What was read first.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The next event; `None` when there are no more.
    ///
    /// # Errors
    /// When what comes is none.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        if self.end.is_some() {
            return Ok(None);
        }
        match self.read()? {
            None => Ok(None),
            Some(Line::Event(event)) => Ok(Some(event)),
            Some(Line::End(end)) => {
                self.end = Some(end);
                Ok(None)
            }
        }
    }

    /// How it ended, once all events were read.
    ///
    /// # Errors
    /// When the file does not say, or goes on after that.
    pub fn end(mut self) -> Result<(Head, Ending), ReadError> {
        let end = self.end.take().ok_or(ReadError::CutShort)?;
        // Reading to the end compares the checksum, too.
        match self.read::<serde::de::IgnoredAny>()? {
            None => {}
            Some(_) => return Err(ReadError::GoesOn { line: self.line }),
        }
        Ok((self.head, *end))
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, ReadError> {
        self.bytes.clear();
        self.line += 1;
        let line = self.line;
        let mut bounded = (&mut self.lines).take(LINE_BYTES_MAX);
        if bounded.read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(None);
        }
        if self.bytes.last() != Some(&b'\n') {
            return Err(match self.bytes.len() as u64 {
                LINE_BYTES_MAX => ReadError::TooLong { line },
                _ => ReadError::CutShort,
            });
        }
        serde_json::from_slice(&self.bytes)
            .map(Some)
            .map_err(|error| ReadError::Line { line, error })
    }
}
