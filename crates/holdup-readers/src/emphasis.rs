//! Markdown's bold cells: `**121347**` for `121347`, as people mark a figure in a table that they paste.
//!
//! In: bytes of a stream whose beginning has such cells. Out: the same, with blanks in place of the marks, so that columns stay where they
//! are.

use memchr::memchr_iter;
use memchr::memmem::Finder;
use std::io::Read;

/// What is around a bold cell.
const MARK: &[u8] = b"**";

/// Bytes of a bold cell: a figure, an address, a name.
const MAX_CELL_BYTES: usize = 60;

/// Bytes that are read at once; a line that is longer is left as it is.
const CHUNK_BYTES: usize = 64 << 10;

/// The first bold cell: where its first mark begins, and where its second one ends.
fn cell(line: &[u8]) -> Option<(usize, usize)> {
    let finder = Finder::new(MARK);
    let mut from = 0;
    while let Some(begin) = finder.find(line.get(from..)?).map(|at| from + at) {
        let inner = line.get(begin + MARK.len()..)?;
        let bytes = inner
            .iter()
            .take(MAX_CELL_BYTES)
            .take_while(|byte| !byte.is_ascii_whitespace() && **byte != b'*')
            .count();
        let end = begin + MARK.len() + bytes + MARK.len();
        let alone = (begin == 0 || line.get(begin - 1).is_some_and(u8::is_ascii_whitespace))
            && line.get(end).is_none_or(u8::is_ascii_whitespace);
        let value = inner
            .get(..bytes)
            .is_some_and(|value| value.iter().any(u8::is_ascii_alphanumeric));
        if alone && value && inner.get(bytes..bytes + MARK.len()) == Some(MARK) {
            return Some((begin, end));
        }
        from = begin + MARK.len();
    }
    None
}

/// Whether the beginning of a text has such cells.
pub(crate) fn has_cells(head: &[u8]) -> bool {
    cell(head).is_some()
}

/// Puts blanks in the place of the marks.
pub(crate) struct Plain<'a> {
    stream: &'a mut dyn Read,
    /// What was read; its first `ready` bytes are done.
    kept: Vec<u8>,
    ready: usize,
    ended: bool,
}

impl<'a> Plain<'a> {
    pub(crate) fn new(stream: &'a mut dyn Read) -> Plain<'a> {
        Plain {
            stream,
            kept: Vec::new(),
            ready: 0,
            ended: false,
        }
    }

    /// Reads on until a line is complete, or there is more of one than is looked at.
    fn fill(&mut self) -> std::io::Result<()> {
        while self.ready == 0 && !(self.ended && self.kept.is_empty()) {
            if !self.ended {
                let old = self.kept.len();
                self.kept.resize(old + CHUNK_BYTES, 0);
                let read = self.stream.read(self.kept.get_mut(old..).unwrap_or_default());
                self.kept.truncate(old + *read.as_ref().unwrap_or(&0));
                self.ended = read? == 0;
            }
            let whole = memchr::memrchr(b'\n', &self.kept).map_or(0, |at| at + 1);
            self.ready = match self.ended || self.kept.len() > CHUNK_BYTES && whole == 0 {
                true => self.kept.len(),
                false => whole,
            };
            let done = self.kept.get_mut(..self.ready).unwrap_or_default();
            let mut begin = 0;
            let ends: Vec<usize> = memchr_iter(b'\n', done).collect();
            for end in ends.into_iter().chain([done.len()]) {
                unmark(done.get_mut(begin..end).unwrap_or_default());
                begin = end + 1;
            }
        }
        Ok(())
    }
}

/// Of one line.
fn unmark(mut line: &mut [u8]) {
    while let Some((begin, end)) = cell(line) {
        let (done, rest) = line.split_at_mut(end);
        for at in [begin, end - MARK.len()] {
            done.get_mut(at..at + MARK.len()).unwrap_or_default().fill(b' ');
        }
        line = rest;
    }
}

impl Read for Plain<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.fill()?;
        let bytes = self.ready.min(buffer.len());
        let (Some(to), Some(from)) = (buffer.get_mut(..bytes), self.kept.get(..bytes)) else {
            return Ok(0);
        };
        to.copy_from_slice(from);
        self.kept.drain(..bytes);
        self.ready -= bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Plain, has_cells};
    use std::io::Read;

    fn changed(mut text: &[u8], chunk: usize) -> Vec<u8> {
        let mut stream = Plain::new(&mut text);
        let (mut all, mut buffer) = (Vec::new(), vec![0; chunk]);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return all,
                length => all.extend_from_slice(&buffer[..length]),
            }
        }
    }

    #[test]
    fn bold_cells_are_cells_and_stay_in_their_columns() {
        let text = b"tcp   **121347**      0 **a:1**\n**%util**  **99.8**\nno\n";
        let plain = b"tcp     121347        0   a:1  \n  %util      99.8  \nno\n";
        assert!(has_cells(text));
        for chunk in [1, 7, 4_096] {
            assert_eq!(changed(text, chunk), plain);
        }
    }

    #[test]
    fn other_asterisks_stay() {
        let text = "x = 2**8**2; /** doc **/ **two words** ** ** **** glob/**/x **open\n";
        assert!(!has_cells(text.as_bytes()));
        assert_eq!(changed(text.as_bytes(), 3), text.as_bytes());
    }

    #[test]
    fn a_line_without_an_end_comes_out() {
        let long = vec![b'x'; 300_000];
        assert_eq!(changed(&long, 5_000), long);
    }
}
