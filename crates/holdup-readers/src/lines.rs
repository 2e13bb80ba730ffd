//! Lines of a stream, without an end to how long the stream may be.

use crate::text::Cleaner;
use memchr::memchr;
use std::io::{ErrorKind, Read};

/// How much is read at once of what is long, bytes.
const CHUNK: usize = 1 << 20;

/// Bytes that there is room for at first: an archive may have a hundred thousand files of nothing, and room for long ones costs time.
const FIRST_ROOM: usize = 64 << 10;

/// How much longer the room becomes each time that it was full.
const GROWTH: usize = 4;

/// A longer line is cut here and its rest is skipped: no line that people read is longer.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

/// Reads lines.
pub(crate) struct Lines<'a> {
    stream: &'a mut dyn Read,
    buffer: Vec<u8>,
    /// What of the buffer was handed out.
    from: usize,
    /// Where its data ends.
    to: usize,
    ended: bool,
    /// Why reading ended early.
    pub(crate) failure: Option<String>,
    /// Lines that were cut.
    pub(crate) cut: u64,
    cleaner: Cleaner,
    /// Bytes that were read, what was taken out not counted.
    bytes: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(stream: &'a mut dyn Read, cleaner: Cleaner) -> Lines<'a> {
        Lines {
            stream,
            buffer: vec![0; FIRST_ROOM],
            from: 0,
            to: 0,
            ended: false,
            failure: None,
            cut: 0,
            cleaner,
            bytes: 0,
        }
    }

    /// The beginning of what has not been handed out, at most `most` bytes.
    pub(crate) fn head(&mut self, most: usize) -> &[u8] {
        while self.to - self.from < most && self.more() {}
        &self.buffer[self.from..self.to.min(self.from + most)]
    }

    /// Bytes that were handed out.
    pub(crate) fn consumed(&self) -> u64 {
        self.bytes - (self.to - self.from) as u64
    }

    /// The next line without its end (`\n`, `\r\n`); `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.from..self.to];
            if let Some(at) = memchr(b'\n', &unread[searched..]) {
                let (start, end) = (self.from, self.from + searched + at);
                self.from = end + 1;
                return Some(without_return(&self.buffer[start..end]));
            }
            searched = unread.len();
            if searched >= MAX_LINE_BYTES {
                self.cut += 1;
                let start = self.from;
                let line = self.buffer[start..start + MAX_LINE_BYTES].to_vec();
                self.skip_line();
                // Back into the buffer's front, which is free once the line is skipped.
                return Some(self.lend(line));
            }
            if !self.more() {
                let (start, end) = (self.from, self.to);
                self.from = self.to;
                return (start < end).then(|| without_return(&self.buffer[start..end]));
            }
        }
    }

    fn lend(&mut self, line: Vec<u8>) -> &[u8] {
        let unread = self.buffer[self.from..self.to].to_vec();
        self.buffer.clear();
        self.buffer.extend_from_slice(&line);
        self.buffer.extend_from_slice(&unread);
        self.from = line.len();
        self.to = line.len() + unread.len();
        self.buffer.resize((CHUNK + MAX_LINE_BYTES).max(self.to), 0);
        &self.buffer[..line.len()]
    }

    /// Drops the rest of a line that is too long.
    fn skip_line(&mut self) {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.from..self.to]) {
                self.from += at + 1;
                return;
            }
            self.from = self.to;
            if !self.more() {
                return;
            }
        }
    }

    /// Reads more behind what is there; whether there was any.
    fn more(&mut self) -> bool {
        if self.ended {
            return false;
        }
        if self.to == self.buffer.len() && self.to < CHUNK + MAX_LINE_BYTES {
            self.buffer
                .resize((self.to * GROWTH).min(CHUNK + MAX_LINE_BYTES), 0);
        }
        if self.from == self.to {
            self.from = 0;
            self.to = 0;
        } else if self.to == self.buffer.len() {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.to == self.buffer.len() {
            return false;
        }
        loop {
            match self.stream.read(&mut self.buffer[self.to..]) {
                Ok(0) => break,
                Ok(length) => {
                    let half = usize::from(self.cleaner.is_half(&self.buffer[self.from..self.to]));
                    let read = &mut self.buffer[self.to - half..self.to + length];
                    let length = self.cleaner.clean(read) - half;
                    self.to += length;
                    self.bytes += length as u64;
                    if length > 0 {
                        return true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error.to_string());
                    break;
                }
            }
        }
        self.ended = true;
        false
    }
}

/// The rest of the stream as it is, where a line is not what it consists of.
impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.from == self.to && !self.more() {
            return self
                .failure
                .take()
                .map_or(Ok(0), |why| Err(std::io::Error::other(why)));
        }
        let unread = &self.buffer[self.from..self.to];
        let length = unread.len().min(buffer.len());
        buffer[..length].copy_from_slice(&unread[..length]);
        self.from += length;
        Ok(length)
    }
}

/// Terminals and careless copies make it more than one.
fn without_return(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r'] = line {
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Lines, MAX_LINE_BYTES};
    use crate::text::Cleaner;
    use std::io::Read;

    fn lines(mut stream: impl Read) -> (Vec<Vec<u8>>, u64) {
        let mut lines = Lines::new(&mut stream, Cleaner::default());
        let mut all = Vec::new();
        while let Some(line) = lines.next() {
            all.push(line.to_vec());
        }
        (all, lines.cut)
    }

    #[test]
    fn lines_end_as_they_end() {
        let (all, cut) = lines(&b"one\r\n\ntwo\nlast"[..]);
        assert_eq!(all, [&b"one"[..], b"", b"two", b"last"]);
        assert_eq!(cut, 0);
        assert_eq!(lines(&b""[..]).0, Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_line_without_end_is_cut_and_the_next_one_is_whole() {
        let mut text = vec![b'x'; 3 * MAX_LINE_BYTES + 17];
        text.extend_from_slice(b"\nnext\n");
        for _ in 0..40_000 {
            text.extend_from_slice(b"a line of some forty bytes or a few more\n");
        }
        let (all, cut) = lines(&text[..]);
        assert_eq!((all[0].len(), cut), (MAX_LINE_BYTES, 1));
        assert_eq!(all[1], b"next");
        assert_eq!(all.len(), 40_002);
        assert!(all[2..].iter().all(|line| line.len() == 40));
    }
}
