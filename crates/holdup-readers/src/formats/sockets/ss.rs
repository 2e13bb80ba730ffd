//! `ss` with any options: `-tan`, `-p`, `-i`, `-o`, `-m`, `-e`, `-l`, `-x`, `-s`, with or without its heading.
//!
//! In: a row for each socket, perhaps followed by a line of figures (`-i`). The state's column is missing where only one
//! state was asked for: then the command line, where it is there, tells which. Out: a list of sockets.

use super::tally::{ConnectionDetails, Tally};
use super::{Row, is_address, state};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, whole, words};
use holdup_evidence::observed::{Metric, TcpState};
use memchr::memmem;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("ss", Family::Host, recognise)
    .about("ss")
    .openings(&[
        "State Recv-Q Send-Q",
        "Netid State Recv-Q",
        "Netid Recv-Q Send-Q",
        "Recv-Q Send-Q Local",
    ]);

/// Rows without a heading from which it is no chance.
const ROWS: usize = 2;

/// Lines that are looked at for that.
const LOOKED_AT: usize = 40;

/// What stands in front of the state where sockets of several kinds are listed.
const KINDS: &[&[u8]] = &[
    b"tcp", b"udp", b"raw", b"icmp6", b"u_str", b"u_dgr", b"u_seq", b"nl", b"p_raw", b"p_dgr", b"sctp",
    b"dccp", b"v_str", b"v_dgr", b"tipc", b"xdp", b"mptcp", b"???",
];

const MILLISECOND: u64 = 1_000_000;

fn recognise(head: &[u8]) -> Sureness {
    let mut rows = 0;
    let lines = head.split(|byte| *byte == b'\n');
    for line in lines.take(LOOKED_AT) {
        if is_heading(line) || is_summary(line) {
            return Sureness::Certain;
        }
        let row =
            row(line).is_some_and(|(kind, row)| row.is_some() && kind.is_none_or(|kind| kind != b"udp"));
        rows += usize::from(row);
    }
    if rows >= ROWS {
        Sureness::Likely
    } else {
        Sureness::No
    }
}

fn is_heading(line: &[u8]) -> bool {
    let mut words = words(line).skip_while(|word| matches!(*word, b"Netid" | b"State"));
    words.next() == Some(b"Recv-Q") && words.next() == Some(b"Send-Q") && words.next() == Some(b"Local")
}

/// `TCP:   173 (estab 52, closed 101, …`.
fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"TCP:") && memmem::find(line, b"(estab ").is_some()
}

#[derive(Debug, Default)]
struct Reader {
    tally: Tally,
    /// Whether the heading has no column for the state.
    stateless: bool,
    /// The state that the command line asked for.
    asked: Option<TcpState>,
    /// Whether the row before was one.
    after_row: bool,
    told_stateless: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        if is_heading(line) {
            self.tally.flush(out);
            self.tally.begin(out);
            self.asked = out.source().tool.as_deref().and_then(asked);
            self.stateless = !words(line).take(2).any(|word| word == b"State");
            self.after_row = false;
            return Understood::Evidence;
        }
        let indented = line.first().is_some_and(u8::is_ascii_whitespace);
        if !indented && let Some((kind, row)) = row(line) {
            self.after_row = true;
            return self.row(line, kind, row, out);
        }
        if self.after_row && is_figures(line) {
            self.figures(line);
            return Understood::Evidence;
        }
        summary(line, out)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.tally.flush(out);
    }
}

impl Reader {
    fn row(
        &mut self,
        line: &[u8],
        kind: Option<&[u8]>,
        row: Option<Parts<'_>>,
        out: &mut Out<'_>,
    ) -> Understood {
        let Some(row) = row else {
            return Understood::No;
        };
        let process = process(line);
        let unix = kind.is_some_and(|kind| kind.starts_with(b"u_"));
        if unix {
            if row.state == Some(TcpState::Listen) {
                self.tally.begin(out);
                let of_listener = as_row(&row, TcpState::Listen, process);
                self.tally
                    .queue(&of_listener, true, Some(row.to_send), out.here());
                return Understood::Evidence;
            }
            return Understood::Ignorable;
        }
        if kind.is_some_and(|kind| kind != b"tcp" && kind != b"mptcp") {
            let internet = [
                &b"udp"[..],
                b"icmp",
                b"icmp6",
                b"raw",
                b"dccp",
                b"sctp",
                b"udplite",
            ];
            if kind.is_some_and(|kind| internet.contains(&kind)) && row.received > 0 {
                self.tally.begin(out);
                // Datagrams have no states; only their queue is of use.
                self.tally
                    .datagrams(&as_row(&row, TcpState::Closed, process), out.here());
                return Understood::Evidence;
            }
            return Understood::Ignorable;
        }
        let Some(state) = row.state.or(self.asked) else {
            // Without its state a socket says nothing.
            if !std::mem::replace(&mut self.told_stateless, true) {
                out.problem(
                    "the state of these sockets is not in the list, and the command line is not there",
                );
            }
            return Understood::Ignorable;
        };
        let mut found = timer(line);
        // With -O the figures stand in the same line.
        let all_in_one = memmem::find(line, b" cwnd:").is_some();
        if all_in_one {
            self.tally.figures();
            found = figures(line, found, row.to_send);
        }
        self.tally.add(&as_row(&row, state, process), &found, true, out);
        Understood::Evidence
    }

    fn figures(&mut self, line: &[u8]) {
        if memmem::find(line, b"cwnd:").is_some() {
            self.tally.figures();
        }
        if self.tally.is_open() {
            self.tally.tell(&figures(line, ConnectionDetails::default(), 1));
        }
    }
}

fn as_row<'a>(parts: &Parts<'a>, state: TcpState, process: Option<&'a [u8]>) -> Row<'a> {
    Row {
        state,
        received: parts.received,
        to_send: parts.to_send,
        local: parts.local,
        peer: parts.peer,
        process,
    }
}

/// A row in parts.
#[derive(Debug, Clone, Copy)]
struct Parts<'a> {
    state: Option<TcpState>,
    received: u64,
    to_send: u64,
    local: &'a [u8],
    peer: &'a [u8],
}

/// The kind of socket, where known, and the row; `None` in it where it is cut. `None` where it is no row.
fn row(line: &[u8]) -> Option<(Option<&[u8]>, Option<Parts<'_>>)> {
    let mut words = words(line);
    let mut word = words.next()?;
    let kind = KINDS.iter().copied().find(|kind| *kind == word);
    if kind.is_some() {
        word = words.next()?;
    }
    let named = state(word);
    if named.is_some() {
        word = words.next()?;
    }
    let Some(received) = whole(word) else {
        return (kind.is_some() && named.is_some()).then_some((kind, None));
    };
    let Some(to_send) = words.next().and_then(whole) else {
        return named.is_some().then_some((kind, None));
    };
    let (Some(local), second) = (words.next(), words.next()) else {
        return named.is_some().then_some((kind, None));
    };
    let unix = kind.is_some_and(|kind| kind.starts_with(b"u_") || !matches!(kind, b"tcp" | b"udp" | b"raw"));
    // A copy may be cut behind the address of a listener, whose peer says nothing.
    let cut = named == Some(TcpState::Listen) && second.is_none();
    let addresses = is_address(local) && (cut || second.is_some_and(is_address));
    if !(unix || addresses) {
        return (kind.is_some() || named.is_some()).then_some((kind, None));
    }
    let peer = second.unwrap_or_default();
    let parts = Parts {
        state: named,
        received,
        to_send,
        local,
        peer,
    };
    Some((kind, Some(parts)))
}

/// The state of `ss … state NAME`.
fn asked(command: &str) -> Option<TcpState> {
    let mut words = command.split_whitespace().skip_while(|word| *word != "state");
    words.next()?;
    let name = words.next()?;
    // Names of groups (`connected`, `big`) are of several states.
    match name {
        "established" => Some(TcpState::Established),
        "listening" => Some(TcpState::Listen),
        name => state(name.to_ascii_uppercase().as_bytes()),
    }
}

/// `python3` of `users:(("python3",pid=12071,fd=17))`. A name may have anything in it.
fn process(line: &[u8]) -> Option<&[u8]> {
    let at = memmem::find(line, b"users:((\"")?;
    let name = line.get(at + b"users:((\"".len()..)?;
    name.get(..memmem::find(name, b"\",")?)
}

/// What stands behind a word that ends with a colon, up to the next blank.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut from = 0;
    loop {
        let at = from + memmem::find(line.get(from..)?, name)?;
        let before = at.checked_sub(1).and_then(|at| line.get(at));
        if before.is_none_or(|byte| byte.is_ascii_whitespace()) {
            let value = line.get(at + name.len()..)?;
            return words(value).next();
        }
        from = at + name.len();
    }
}

/// Milliseconds of `6640ms(100.0%)`, as nanoseconds.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    whole(text.get(..digits)?)?.checked_mul(MILLISECOND)
}

/// `timer:(on,432ms,5)`: which timer runs, and how often it ran out.
fn timer(line: &[u8]) -> ConnectionDetails {
    let mut details = ConnectionDetails::default();
    let timer = value(line, b"timer:(").map(|timer| timer.strip_suffix(b")").unwrap_or(timer));
    let Some(timer) = timer else { return details };
    let mut parts = timer.split(|byte| *byte == b',');
    let (which, _, times) = (parts.next(), parts.next(), parts.next().and_then(whole));
    match which {
        Some(b"on") => details.unanswered = times.unwrap_or(0),
        // Probes that are answered begin again at 0.
        Some(b"persist") => (details.probes, details.unanswered) = (true, times.unwrap_or(0)),
        _ => {}
    }
    details
}

/// Whether a line is the figures of the row before it.
fn is_figures(line: &[u8]) -> bool {
    let has = |name: &[u8]| memmem::find(line, name).is_some();
    has(b"cwnd:") || has(b"rto:") || has(b"skmem:(") || has(b"ino:") || has(b"users:((")
}

/// The figures of `-i`.
fn figures(line: &[u8], before: ConnectionDetails, to_send: u64) -> ConnectionDetails {
    let number = |name: &[u8]| value(line, name).and_then(whole);
    // `retrans:1/5`: under way, and in all.
    let again = value(line, b"retrans:").and_then(|both| {
        let mut both = both.split(|byte| *byte == b'/').map(whole);
        Some((both.next()??, both.next()??))
    });
    let (under_way, in_all) = again.unwrap_or((0, 0));
    let backoff = number(b"backoff:").unwrap_or(0);
    let window_full = value(line, b"rwnd_limited:").and_then(milliseconds);
    let in_flight = number(b"unacked:").unwrap_or(0);
    // The timer backs off for probes, too: then nothing is in flight.
    let probing = in_flight == 0 && under_way == 0 && window_full.is_some() && to_send > 0 && {
        backoff > 0 || number(b"notsent:").is_some_and(|bytes| bytes > 0)
    };
    // A request for a connection has been sent as often as all that was sent again.
    let requests = if value(line, b"rtt:").is_none() {
        in_all
    } else {
        backoff
    };
    // What can't leave this machine at all is tried again by the same timer, with the peer's window open.
    let stuck = backoff > 0 && window_full.is_none() && number(b"notsent:").is_some_and(|bytes| bytes > 0);
    let unanswered = match in_flight > 0 || under_way > 0 || stuck {
        true => requests.max(backoff),
        false => 0,
    };
    ConnectionDetails {
        unanswered: before.unanswered.max(unanswered),
        retransmitted: in_all,
        segments: number(b"segs_out:").or(number(b"data_segs_out:")),
        window_full,
        silent: value(line, b"lastrcv:").and_then(milliseconds),
        probes: before.probes || probing,
    }
}

/// A line of `ss -s`.
fn summary(line: &[u8], out: &mut Out<'_>) -> Understood {
    let mut words = words(line);
    let first = words.next().unwrap_or_default();
    if is_summary(line) {
        let of = |name: &[u8]| {
            let at = memmem::find(line, name)? + name.len();
            let digits = line.get(at..)?;
            let end = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            decimal(digits.get(..end)?)
        };
        let found = [
            (Metric::TcpSocketsInUse, of(b"(estab ")),
            (Metric::TcpSocketsTimeWait, of(b"timewait ")),
        ];
        out.report(None, None, false);
        for (metric, value) in found {
            if let Some(value) = value {
                out.figure(metric, "", value);
            }
        }
        return Understood::Evidence;
    }
    let rows: [&[u8]; 9] = [
        b"Total:",
        b"Transport",
        b"*",
        b"RAW",
        b"UDP",
        b"TCP",
        b"INET",
        b"FRAG",
        b"Failed",
    ];
    if rows.contains(&first) {
        return Understood::Ignorable;
    }
    Understood::No
}
