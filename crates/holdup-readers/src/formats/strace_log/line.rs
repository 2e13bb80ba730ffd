//! The parts of a line of an strace log.
//!
//! In: one line, in any of the forms that strace's options make of it (`-f`, `-t`, `-tt`, `-ttt`, `-r`, `-T`, `-Y`). Out: a
//! [`Line`]: who, when, what. Nothing here remembers anything.

use memchr::{memchr, memmem, memrchr};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// What a line begins with: who and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The thread, where the line names one.
    pub(super) tid: Option<u32>,
    /// Its name (`-Y`).
    pub(super) comm: Option<&'a [u8]>,
    pub(super) stamp: Stamp,
    pub(super) body: &'a [u8],
}

/// When, as a line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Not at all.
    None,
    /// Time of day, ns; whether it has parts of a second.
    OfDay(u64, bool),
    /// Since the epoch, ns; whether it has parts of a second.
    Unix(u64, bool),
    /// Since the line before, ns.
    Relative(u64),
}

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A whole call.
    Call(Call<'a>),
    /// The beginning of a call.
    Began { name: &'a [u8], args: &'a [u8] },
    /// Its end; without a name where another program's words had broken the line.
    Resumed(Call<'a>),
    /// A call that never comes back: exit.
    NoReturn { name: &'a [u8] },
    /// A signal, or a stop by one.
    Signal,
    /// The thread is over.
    Ended,
    /// The thread became another by an execve in a program with several.
    Superseded,
    /// A frame of a stack (`-k`).
    Frame(&'a [u8]),
    /// strace itself says something; the thread that it has begun to follow.
    Attached(Option<u32>),
    /// The rest of a line that was broken by another.
    Nothing,
}

/// A call with its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a [u8],
    /// Of a resumed call only what was not printed at its beginning.
    pub(super) args: &'a [u8],
    /// After the `=`, without the duration.
    pub(super) result: &'a [u8],
    /// `-T`.
    pub(super) ns: Option<u64>,
}

/// The beginning of a line.
pub(super) fn line(text: &[u8]) -> Line<'_> {
    let text = text.trim_ascii();
    let (tid, comm, rest) = tid(text);
    let (stamp, body) = stamp(rest);
    Line {
        tid,
        comm,
        stamp,
        body,
    }
}

/// `[pid  6824] `, `[pid 6824<sleep>] `, `6824  `, `6824<sleep> `.
fn tid(text: &[u8]) -> (Option<u32>, Option<&[u8]>, &[u8]) {
    if let Some(rest) = text.strip_prefix(b"[pid ") {
        if let Some(end) = memchr(b']', rest)
            && let Some((tid, comm)) = rest.get(..end).and_then(|who| who_is(who.trim_ascii()))
        {
            return (
                Some(tid),
                comm,
                rest.get(end + 1..).unwrap_or_default().trim_ascii_start(),
            );
        }
        return (None, None, text);
    }
    let Some(end) = memchr(b' ', text) else {
        return (None, None, text);
    };
    match who_is(text.get(..end).unwrap_or_default()) {
        // Ten digits are seconds since the epoch.
        Some((tid, comm)) if end < 10 || comm.is_some() => (
            Some(tid),
            comm,
            text.get(end..).unwrap_or_default().trim_ascii_start(),
        ),
        _ => (None, None, text),
    }
}

fn who_is(text: &[u8]) -> Option<(u32, Option<&[u8]>)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let tid = number(text.get(..digits)?)?;
    let tid = u32::try_from(tid).ok().filter(|tid| *tid > 0)?;
    match text.get(digits..)? {
        [] => Some((tid, None)),
        [b'<', comm @ .., b'>'] => Some((tid, Some(comm))),
        _ => None,
    }
}

fn stamp(text: &[u8]) -> (Stamp, &[u8]) {
    let Some(end) = memchr(b' ', text) else {
        return (Stamp::None, text);
    };
    let (word, rest) = text.split_at(end);
    let rest = rest.trim_ascii_start();
    let stamp = match word {
        [a, b, b':', c, d, b':', e, f, part @ ..] => {
            let two = |tens: &u8, ones: &u8| digit(*tens)?.checked_mul(10)?.checked_add(digit(*ones)?);
            let (Some(hours), Some(minutes), Some(seconds)) = (two(a, b), two(c, d), two(e, f)) else {
                return (Stamp::None, text);
            };
            let part_ns = match part {
                [] => Some(0),
                [b'.' | b',', digits @ ..] => fraction(digits),
                _ => None,
            };
            let Some(part_ns) = part_ns else {
                return (Stamp::None, text);
            };
            Stamp::OfDay(
                (hours * 3600 + minutes * 60 + seconds) * NS_PER_SECOND + part_ns,
                !part.is_empty(),
            )
        }
        _ => match seconds(word) {
            Some((ns, exact)) if ns >= 100_000_000 * NS_PER_SECOND => Stamp::Unix(ns, exact),
            Some((ns, true)) => Stamp::Relative(ns),
            _ => return (Stamp::None, text),
        },
    };
    // With -r beside another stamp: `(+     0.000123) `.
    if let Some(more) = rest.strip_prefix(b"(+")
        && let Some(close) = memchr(b')', more)
    {
        return (
            stamp,
            more.get(close + 1..).unwrap_or_default().trim_ascii_start(),
        );
    }
    (stamp, rest)
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

/// A whole number in decimal digits.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits
        .iter()
        .try_fold(0u64, |sum, byte| sum.checked_mul(10)?.checked_add(digit(*byte)?))
}

/// Up to nine digits after a point, as nanoseconds.
fn fraction(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let missing = u32::try_from(9 - digits.len()).ok()?;
    number(digits)?.checked_mul(10u64.checked_pow(missing)?)
}

/// Seconds with a fraction or without, as nanoseconds, and whether they had one.
pub(super) fn seconds(word: &[u8]) -> Option<(u64, bool)> {
    let point = word.iter().position(|byte| matches!(byte, b'.' | b','));
    let (whole, part) = match point {
        Some(point) => (word.get(..point)?, fraction(word.get(point + 1..)?)?),
        None => (word, 0),
    };
    let ns = number(whole)?.checked_mul(NS_PER_SECOND)?.checked_add(part)?;
    Some((ns, point.is_some()))
}

/// What the rest of a line tells; `None` where it is not strace's.
pub(super) fn body(text: &[u8]) -> Option<Body<'_>> {
    if is_negative(text) {
        return None;
    }
    match *text.first()? {
        b'<' => not_a_call(text),
        b'-' => text.starts_with(b"--- ").then_some(Body::Signal),
        b'+' => match text.strip_prefix(b"+++ ")? {
            rest if rest.starts_with(b"superseded") => Some(Body::Superseded),
            _ => Some(Body::Ended),
        },
        b'>' => text.strip_prefix(b"> ").map(Body::Frame),
        // The rest of a call that strace's own words had broken.
        b',' | b')' => finished(b"", text).map(Body::Resumed),
        _ => match text.strip_prefix(b"strace: ") {
            Some(said) => Some(Body::Attached(attached(said))),
            None => call(text),
        },
    }
}

/// Whether the call took less than no time: the clock was set back meanwhile, so how long it took is not known.
fn is_negative(text: &[u8]) -> bool {
    let length = text
        .trim_ascii_end()
        .strip_suffix(b">")
        .and_then(|text| text.get(memrchr(b'<', text)? + 1..));
    matches!(length, Some([b'-', digit, ..]) if digit.is_ascii_digit())
}

/// `Process 17 attached`, `Process 17 attached with 3 threads`.
fn attached(said: &[u8]) -> Option<u32> {
    let rest = said.strip_prefix(b"Process ")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let tid = number(rest.get(..digits)?)?;
    (rest.get(digits..)? == b" attached").then_some(u32::try_from(tid).ok()?)
}

/// The same where it stands at the end of a call that it broke.
pub(super) fn announced(text: &[u8]) -> Option<u32> {
    let at = memmem::find(text, b"strace: Process ")?;
    attached(text.get(at + b"strace: ".len()..)?)
}

fn not_a_call(text: &[u8]) -> Option<Body<'_>> {
    if text.starts_with(b"<unfinished ...>") || text.starts_with(b"<detached ...>") {
        return Some(Body::Nothing);
    }
    let rest = text.strip_prefix(b"<... ")?;
    let end = memmem::find(rest, b" resumed>")?;
    let name = rest.get(..end)?;
    let after = rest.get(end + b" resumed>".len()..)?;
    if let Some(cut) = open_end(after) {
        return Some(Body::Began { name, args: cut });
    }
    finished(name, after).map(Body::Resumed)
}

/// What stands before a mark that the call goes on.
fn open_end(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_end();
    let marks: [&[u8]; 2] = [b"<unfinished ...>", b"<detached ...>"];
    marks.into_iter().find_map(|mark| text.strip_suffix(mark))
}

fn call(text: &[u8]) -> Option<Body<'_>> {
    let name_end = text
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    if name_end == 0 || name_end > 64 || text.get(name_end) != Some(&b'(') {
        return None;
    }
    let (name, rest) = text.split_at(name_end);
    let args = rest.get(1..)?;
    if let Some(args) = open_end(args) {
        return Some(Body::Began { name, args });
    }
    if args.trim_ascii_end().ends_with(b"<no return ...>") {
        return Some(Body::NoReturn { name });
    }
    // `vfork(strace: Process 17 attached`: strace's own words on the same terminal.
    if let Some(at) = memmem::find(args, b"strace: Process ") {
        return Some(Body::Began {
            name,
            args: args.get(..at)?,
        });
    }
    match finished(name, args) {
        Some(call) if call.result == b"?" => Some(Body::NoReturn { name }),
        Some(call) => Some(Body::Call(call)),
        // Cut in the middle.
        None => Some(Body::Began { name, args }),
    }
}

/// Arguments, result and duration of a call that came back.
fn finished<'a>(name: &'a [u8], text: &'a [u8]) -> Option<Call<'a>> {
    let mut text = text.trim_ascii_end();
    let mut ns = None;
    if text.last() == Some(&b'>')
        && let Some(open) = memrchr(b'<', text)
        && let Some((length, _)) = text.get(open + 1..text.len() - 1).and_then(seconds)
    {
        ns = Some(length);
        text = text.get(..open)?.trim_ascii_end();
    }
    // The last ` = ` that follows a closing bracket: arguments and paths may hold others.
    let mut end = text.len();
    loop {
        let at = memrchr(b'=', text.get(..end)?)?;
        let before = text.get(..at)?;
        let after = text.get(at + 1..)?;
        let args = before.trim_ascii_end();
        if after.first() == Some(&b' ') && args.len() < before.len() && args.last() == Some(&b')') {
            return Some(Call {
                name,
                args: args.get(..args.len() - 1)?,
                result: after.trim_ascii(),
                ns,
            });
        }
        end = at;
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, Stamp, body, line};

    #[test]
    fn who_and_when_in_all_forms() {
        let of = |text: &'static str| {
            let line = line(text.as_bytes());
            (line.tid, line.stamp)
        };
        assert_eq!(of("read(3, \"\", 1) = 0"), (None, Stamp::None));
        assert_eq!(
            of("6730  04:02:07.5 brk(NULL) = 0"),
            (Some(6730), Stamp::OfDay(14_527_500_000_000, true))
        );
        assert_eq!(
            of("[pid  6824] 1795320129.125 brk(NULL) = 0"),
            (Some(6824), Stamp::Unix(1_795_320_129_125_000_000, true))
        );
        assert_eq!(of("1795320129.125 brk(NULL) = 0").0, None);
        assert_eq!(of("     0.000019 brk(NULL) = 0"), (None, Stamp::Relative(19_000)));
        assert_eq!(
            of("7<sh> 04:02:07 (+     0.5) brk(NULL) = 0"),
            (Some(7), Stamp::OfDay(14_527_000_000_000, false))
        );
    }

    #[test]
    fn results_are_told_from_arguments_that_look_like_them() {
        let Some(Body::Call(call)) = body(b"write(1</tmp/a = b>, \") = 7\", 5) = 5 <0.000029>") else {
            panic!()
        };
        assert_eq!((call.result, call.ns), (&b"5"[..], Some(29_000)));
        assert_eq!(
            body(b"exit_group(0)     = ?"),
            Some(Body::NoReturn { name: b"exit_group" })
        );
        assert!(matches!(body(b"read(3, \"ab"), Some(Body::Began { .. })));
        assert!(matches!(
            body(b"vfork(strace: Process 6824 attached"),
            Some(Body::Began { args: b"", .. })
        ));
        assert_eq!(body(b"strace: Process 7 attached"), Some(Body::Attached(Some(7))));
        let Some(Body::Resumed(call)) = body(b"<... read resumed>\"\", 16384) = 0 <0.000158>") else {
            panic!()
        };
        assert_eq!((call.name, call.ns), (&b"read"[..], Some(158_000)));
        assert_eq!(body(b"Some other log line"), None);
    }
}
