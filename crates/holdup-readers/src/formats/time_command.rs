//! What `time` printed: of bash, of POSIX (`-p`), of zsh and csh, of GNU time in its two layouts.
//!
//! In: the figures, and the command line before them where it was pasted along. Out: elapsed, user and system time as spans,
//! and how many pieces of work the time was for, where a loop on the command line says so.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, quoted};
use crate::numbers::{decimal, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Span, SpanKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("time", Family::Times, recognise)
    .about("time")
    .openings(&["Command being timed:"]);

/// Names of lines of `time -v` that say nothing to us.
const IGNORABLE: &[&[u8]] = &[
    b"Percent of CPU",
    b"Average ",
    b"Maximum resident",
    b"Major (requiring",
    b"Minor (reclaiming",
    b"Voluntary context",
    b"Involuntary context",
    b"Swaps:",
    b"File system ",
    b"Socket messages",
    b"Signals delivered",
    b"Page size",
    b"Exit status",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut best = Sureness::No;
    for line in head.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let sure = match of_line(line).as_slice() {
            [] => continue,
            [_] => Sureness::Likely,
            _ => Sureness::Certain,
        };
        best = best.max(sure);
    }
    best
}

#[derive(Debug, Default)]
struct Reader {
    /// The command line that was seen last, and where.
    command: Option<(String, Quote)>,
    /// Whether a time was reported since.
    reported: bool,
    /// In a command that `time -v` quotes over several lines.
    quoting: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = line.trim_ascii();
        if text.is_empty() {
            return Understood::Ignorable;
        }
        if self.quoting {
            self.quoting = !text.ends_with(b"\"");
            return Understood::Ignorable;
        }
        let times = of_line(line);
        if let Some(command) = zsh_command(text).filter(|_| times.len() == 3) {
            self.command(command, out);
        }
        for (kind, ns) in &times {
            self.tell(*kind, *ns, line, out);
        }
        if !times.is_empty() {
            return Understood::Evidence;
        }
        if let Some(command) = text.strip_prefix(b"Command being timed: \"") {
            self.quoting = !command.ends_with(b"\"");
            self.command(command.strip_suffix(b"\"").unwrap_or(command), out);
            return Understood::Evidence;
        }
        if IGNORABLE.iter().any(|known| text.starts_with(known)) || text.ends_with(b"swaps") {
            return Understood::Ignorable;
        }
        if let Some(command) = typed(text) {
            self.command(command, out);
            return Understood::Evidence;
        }
        Understood::No
    }
}

impl Reader {
    fn command(&mut self, command: &[u8], out: &Out<'_>) {
        self.command = Some((quoted(command), out.here()));
        self.reported = false;
    }

    fn tell(&mut self, kind: SpanKind, ns: Ns, line: &[u8], out: &mut Out<'_>) {
        let command = self.command.as_ref().map(|(command, _)| command.clone());
        let span = Span {
            kind,
            name: command.clone().unwrap_or_default(),
            began: None,
            ns,
            thread: None,
            usual: None,
            quote: out.here(),
            text: quoted(line),
        };
        if kind == SpanKind::CommandElapsed
            && !self.reported
            && let Some((command, quote)) = &self.command
            && let Some((count, what)) = work(command)
        {
            out.span(Span {
                kind: SpanKind::Requests,
                name: format!("{count} {what}"),
                quote: quote.clone(),
                text: command.clone(),
                ..span.clone()
            });
            self.reported = true;
        }
        out.span(span);
    }
}

/// The times of a line, as far as it is one of `time`.
fn of_line(line: &[u8]) -> Vec<(SpanKind, Ns)> {
    let text = line.trim_ascii();
    let gnu = [
        (&b"User time (seconds): "[..], SpanKind::CommandUser),
        (b"System time (seconds): ", SpanKind::CommandSystem),
        (
            b"Elapsed (wall clock) time (h:mm:ss or m:ss): ",
            SpanKind::CommandElapsed,
        ),
    ];
    for (name, kind) in gnu {
        if let Some(value) = text.strip_prefix(name) {
            return clock(value).map(|ns| (kind, ns)).into_iter().collect();
        }
    }
    let fields: Vec<&[u8]> = words(text).take(64).collect();
    if let [name, value] = fields.as_slice() {
        let kind = match *name {
            b"real" => SpanKind::CommandElapsed,
            b"user" => SpanKind::CommandUser,
            b"sys" => SpanKind::CommandSystem,
            _ => return Vec::new(),
        };
        return minutes(value).map(|ns| (kind, ns)).into_iter().collect();
    }
    one_line(&fields).unwrap_or_default()
}

/// All three on a line: GNU time's `0.00user 0.00system 0:01.00elapsed`, zsh's `0.00s user 0.00s system 0% cpu 1.002 total`, and
/// csh's `0.000u 0.001s 0:01.00 0.0%`.
fn one_line(fields: &[&[u8]]) -> Option<Vec<(SpanKind, Ns)>> {
    let three = |user, system, elapsed| {
        Some(vec![
            (SpanKind::CommandElapsed, elapsed?),
            (SpanKind::CommandUser, user?),
            (SpanKind::CommandSystem, system?),
        ])
    };
    let number = |field: &[u8], unit: &[u8]| clock(field.strip_suffix(unit)?);
    if let [user, system, elapsed, ..] = fields
        && let (Some(user), Some(system), Some(elapsed)) = (
            number(user, b"user"),
            number(system, b"system"),
            number(elapsed, b"elapsed"),
        )
    {
        return three(Some(user), Some(system), Some(elapsed));
    }
    if let [
        ..,
        user,
        b"user",
        system,
        b"system",
        percent,
        b"cpu",
        total,
        b"total",
    ] = fields
        && percent.ends_with(b"%")
    {
        return three(number(user, b"s"), number(system, b"s"), clock(total));
    }
    if let [user, system, elapsed, percent, ..] = fields
        && percent.ends_with(b"%")
        && elapsed.contains(&b':')
    {
        return three(number(user, b"u"), number(system, b"s"), clock(elapsed));
    }
    None
}

/// What stands before zsh's figures.
fn zsh_command(text: &[u8]) -> Option<&[u8]> {
    let end = memchr::memmem::find(text, b"s user ")?;
    let command = text.get(..end)?;
    let at = command.iter().rposition(u8::is_ascii_whitespace)?;
    Some(command.get(..at)?.trim_ascii()).filter(|command| !command.is_empty())
}

/// A command line with its prompt, where `time` is one of its words.
fn typed(text: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find_iter(text, b"time ").find(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        before.is_none_or(|byte| matches!(byte, b' ' | b'/' | b'$' | b'#' | b'%' | b'>'))
    })?;
    Some(text.get(at + 5..)?.trim_ascii())
}

/// `0m28,930s`, `1h2m3.0s` or `28.93`.
fn minutes(value: &[u8]) -> Option<Ns> {
    let Some(rest) = value.strip_suffix(b"s") else {
        return seconds(value);
    };
    let (hours, rest) = before(rest, b'h');
    let (minutes, rest) = before(rest, b'm');
    let whole = |text: Option<&[u8]>| text.map_or(Some(0), crate::numbers::whole);
    let minutes = whole(hours)?.checked_mul(60)?.checked_add(whole(minutes)?)?;
    minutes.checked_mul(60_000_000_000)?.checked_add(seconds(rest)?)
}

fn before(text: &[u8], unit: u8) -> (Option<&[u8]>, &[u8]) {
    match memchr::memchr(unit, text) {
        Some(at) => (text.get(..at), text.get(at + 1..).unwrap_or_default()),
        None => (None, text),
    }
}

/// `1:02:03`, `1:02.03` or `2.03`.
fn clock(value: &[u8]) -> Option<Ns> {
    let mut total: Ns = 0;
    let mut parts = value.split(|byte| *byte == b':').peekable();
    while let Some(part) = parts.next() {
        total = total.checked_mul(60)?;
        total = total.checked_add(match parts.peek() {
            Some(_) => crate::numbers::whole(part)?.checked_mul(1_000_000_000)?,
            None => seconds(part)?,
        })?;
    }
    Some(total)
}

fn seconds(value: &[u8]) -> Option<Ns> {
    // A year of seconds: longer is no time of a command.
    let value = decimal(value).filter(|value| (0.0..3.2e7).contains(value))?;
    Some((value * 1e9).round() as Ns)
}

/// How many pieces of work a loop on the command line makes, and of what kind.
fn work(command: &str) -> Option<(u64, &'static str)> {
    let number = |text: &str| -> Option<u64> {
        let digits = text.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    };
    let times = if let Some((_, after)) = command.split_once("seq ") {
        let bounds: Vec<u64> = after
            .split([' ', '`', ')', ';'])
            .map_while(|word| word.parse().ok())
            .collect();
        match bounds.as_slice() {
            [last] => *last,
            [first, last] => last.checked_sub(*first)?.checked_add(1)?,
            [first, step, last] => last.checked_sub(*first)?.checked_div(*step)?.checked_add(1)?,
            _ => return None,
        }
    } else {
        let (_, after) = command.split_once('{')?;
        let (range, _) = after.split_once('}')?;
        let (first, last) = range.split_once("..")?;
        number(last)?.checked_sub(number(first)?)?.checked_add(1)?
    };
    let requests = ["curl", "wget", "http", "ab ", "nc "];
    let what = if requests.iter().any(|tool| command.contains(tool)) {
        "requests"
    } else {
        "runs"
    };
    (times > 1).then_some((times, what))
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::SpanKind::{CommandElapsed, CommandSystem, CommandUser, Requests};

    fn spans(text: &str) -> Vec<(holdup_evidence::observed::SpanKind, u64)> {
        let reading = read_text("t", text.as_bytes());
        reading
            .observed
            .spans
            .iter()
            .map(|span| (span.kind, span.ns / 1_000_000))
            .collect()
    }

    #[test]
    fn the_same_times_in_every_layout() {
        let all = [(CommandElapsed, 61_500), (CommandUser, 250), (CommandSystem, 30)];
        for text in [
            "\nreal\t1m1.500s\nuser\t0m0.250s\nsys\t0m0.030s\n",
            "\r\nreal\t1m1,500s\r\nuser\t0m0,250s\r\nsys\t0m0,030s\r\n",
            "real 61.50\nuser 0.25\nsys 0.03\n",
            "make  0.25s user 0.03s system 0% cpu 1:01.50 total\n",
            "0.25user 0.03system 1:01.50elapsed 0%CPU (0avgtext+0avgdata 1784maxresident)k\n0inputs+0outputs (0major+99minor)pagefaults 0swaps\n",
            "0.250u 0.030s 1:01.50 0.4%\t0+0k 0+0io 0pf+0w\n",
        ] {
            assert_eq!(spans(text), all, "{text}");
        }
        let verbose = "\tCommand being timed: \"sleep 61.5\"\n\tUser time (seconds): 0.25\n\tSystem time (seconds): 0.03\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:01.50\n";
        assert_eq!(spans(verbose), [all[1], all[2], all[0]]);
    }

    #[test]
    fn work_of_a_loop() {
        let of = |line: &str| {
            let reading = read_text("t", format!("{line}\nreal\t0m5,000s\n").as_bytes());
            let spans = reading.observed.spans;
            spans
                .iter()
                .find(|span| span.kind == Requests)
                .map(|span| span.name.clone())
        };
        let curl =
            of("me@host1:~$ time for i in `seq 1 500`; do curl -s https://localhost/ > /dev/null; done\t");
        assert_eq!(curl.as_deref(), Some("500 requests"));
        assert_eq!(
            of("$ time for i in {1..20}; do ./job; done").as_deref(),
            Some("20 runs")
        );
        assert_eq!(of("$ time ./job 500"), None);
    }

    #[test]
    fn rubbish_is_no_time() {
        for text in [
            "real\t-1m5.0s\n",
            "real\t99999999999999999999m1s\n",
            "real \n",
            "real\tm\n",
            "user\tx\0y\n",
            "real nan\n",
        ] {
            let reading = read_text("t", text.as_bytes());
            assert!(reading.observed.spans.is_empty(), "{text}");
        }
    }
}
