//! `netstat` of net-tools and busybox, in its lists of sockets: `-tanp`, `-an`, `-o`.
//!
//! In: rows of TCP, UDP and Unix sockets. Out: a list of the TCP ones. What it prints of a listener's queue is how many
//! wait, not how many may.

use super::tally::{ConnectionDetails, Tally};
use super::{Row, is_address, state};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::observed::TcpState;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("netstat", Family::Host, recognise)
    .about("netstat")
    .openings(&[
        "Active Internet connections",
        "Proto Recv-Q Send-Q",
        "Active UNIX domain sockets",
    ]);

/// Rows without a heading from which it is no chance: nothing else begins with a protocol, two numbers and two addresses.
const ROWS: usize = 1;
const LOOKED_AT: usize = 40;

fn recognise(head: &[u8]) -> Sureness {
    let mut rows = 0;
    for line in head.split(|byte| *byte == b'\n').take(LOOKED_AT) {
        if is_heading(line) {
            return Sureness::Certain;
        }
        rows += usize::from(row(line).is_some());
    }
    if rows >= ROWS {
        Sureness::Likely
    } else {
        Sureness::No
    }
}

fn is_heading(line: &[u8]) -> bool {
    let mut words = words(line);
    words.next() == Some(b"Proto") && words.next() == Some(b"Recv-Q")
}

#[derive(Debug, Default)]
struct Reader {
    tally: Tally,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() {
            return Understood::Ignorable;
        }
        if is_heading(trimmed) {
            self.tally.flush(out);
            self.tally.begin(out);
            return Understood::Evidence;
        }
        if let Some((row, address)) = row(trimmed) {
            self.tally.add(&row, &address, false, out);
            return Understood::Evidence;
        }
        let first = words(trimmed).next().unwrap_or_default();
        match first {
            b"udp" | b"udp6" | b"raw" | b"raw6" | b"unix" | b"udplite" | b"bluetooth" | b"sctp" => {
                Understood::Ignorable
            }
            // `Active UNIX domain sockets (servers and established)` and the heading below it, in any language.
            b"Proto" => Understood::Ignorable,
            b"tcp" | b"tcp6" => Understood::No,
            _ if trimmed.ends_with(b")") && words(trimmed).count() >= 4 => Understood::Ignorable,
            // `(Not all processes could be identified, …` in two lines, and the like in other languages.
            _ if trimmed.starts_with(b"(") => Understood::Ignorable,
            b"will" => Understood::Ignorable,
            _ => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.tally.flush(out);
    }
}

/// A row of a TCP socket.
fn row(line: &[u8]) -> Option<(Row<'_>, ConnectionDetails)> {
    let mut words = words(line);
    if !matches!(words.next()?, b"tcp" | b"tcp6") {
        return None;
    }
    let (received, to_send) = (whole(words.next()?)?, whole(words.next()?)?);
    let (local, peer) = (words.next()?, words.next()?);
    if !is_address(local) || !is_address(peer) {
        return None;
    }
    let state = state(words.next()?)?;
    let mut process = None;
    let mut details = ConnectionDetails::default();
    while let Some(word) = words.next() {
        // Time left, times that data was sent again, probes without an answer.
        let times = |word: Option<&[u8]>, at: usize| {
            let inside = word?.strip_prefix(b"(")?.strip_suffix(b")")?;
            whole(inside.split(|byte| *byte == b'/').nth(at)?)
        };
        match word {
            b"on" => details.unanswered = times(words.next(), 1).unwrap_or(0),
            b"probe" => (details.probes, details.unanswered) = (true, times(words.next(), 2).unwrap_or(0)),
            // `12071/python3`; with -e the user and the inode stand in front.
            word => {
                let name = word.iter().position(|byte| *byte == b'/');
                let name = name.and_then(|at| {
                    let pid = word.get(..at)?;
                    whole(pid)?;
                    word.get(at + 1..)
                });
                process = process.or(name.filter(|name| !name.is_empty()));
            }
        }
    }
    // A state that closes has nobody's timer that says something.
    if matches!(state, TcpState::TimeWait | TcpState::Listen) {
        details = ConnectionDetails::default();
    }
    let row = Row {
        state,
        received,
        to_send,
        local,
        peer,
        process: process.map(|name| name.strip_suffix(b":").unwrap_or(name)),
    };
    Some((row, details))
}
