//! How many sockets there are of each state, as people count a list with `awk` or `sort | uniq -c`.
//!
//! In: lines of a state and a number, in either order. Out: a list of sockets of which only the counts are known.

use super::state;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::observed::{Quote, SocketCount, SocketKey, SocketTable, TcpState};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("socket-states", Family::Host, recognise).about("counts of sockets by state");

/// Lines from which it is no chance, and in which they are looked for.
const LINES: usize = 2;
const LOOKED_AT: usize = 40;

fn recognise(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    match lines.filter(|line| count(line).is_some()).count() {
        0..LINES => Sureness::No,
        _ => Sureness::Likely,
    }
}

/// `CLOSE_WAIT 710`, `    710 CLOSE_WAIT`, `CLOSE_WAIT: 710`.
fn count(line: &[u8]) -> Option<(TcpState, u64)> {
    let mut words = words(line);
    let (first, second) = (words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let of =
        |name: &[u8], number: &[u8]| Some((state(name.strip_suffix(b":").unwrap_or(name))?, whole(number)?));
    of(first, second).or_else(|| of(second, first))
}

#[derive(Debug, Default)]
struct Reader {
    counts: Vec<SocketCount>,
    quote: Option<Quote>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Understood::Ignorable;
        }
        let Some((state, count)) = count(line) else {
            // A command above them, or what is counted that is no state (`1 established)`, `1 State`).
            let counted = words(line).next().and_then(whole).is_some() && words(line).count() <= 2;
            let command = memchr::memchr2(b'|', b'$', line).is_some();
            return match counted || command {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        // A state that comes again begins another count.
        if self.counts.iter().any(|one| one.state == state) {
            self.close(out);
        }
        let quote = out.here();
        self.quote.get_or_insert_with(|| quote.clone());
        self.counts.push(SocketCount {
            state,
            by: SocketKey::All,
            of: String::new(),
            count,
            quote,
        });
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let counts = std::mem::take(&mut self.counts);
        let Some(quote) = self.quote.take() else { return };
        let listening = counts
            .iter()
            .find(|one| one.state == TcpState::Listen)
            .map(|one| one.count);
        out.sockets(SocketTable {
            total: counts
                .iter()
                .fold(0, |sum: u64, one| sum.saturating_add(one.count)),
            listening,
            counts,
            quote,
            ..SocketTable::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn counts_in_either_order() {
        for text in [
            "netstat -an | awk '/^tcp/ {s[$NF]++} END {for (k in s) print k, s[k]}'\nTIME_WAIT 41\nCLOSE_WAIT 710\nESTABLISHED 138\n",
            "     41 TIME_WAIT\n    710 CLOSE_WAIT\n      1 established)\n    138 ESTABLISHED\n",
        ] {
            let reading = read_text("s", text.as_bytes());
            assert_eq!(reading.observed.sources[0].format, "socket-states", "{text}");
            assert_eq!(reading.accounts[0].not_understood, 0, "{text}");
            let [table] = reading.observed.sockets.as_slice() else {
                panic!("{reading:?}")
            };
            assert_eq!((table.total, table.counts.len()), (889, 3));
        }
        let _ = read_text("s", b"LISTEN 99999999999999999999\nLISTEN LISTEN\n1 1\nCLOSING 18446744073709551615\nLISTEN 18446744073709551615\n");
    }
}
