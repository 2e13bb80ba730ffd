//! Logs of `perf trace`: ` 21.350 (300.165 ms): sleep/16354 clock_nanosleep(rqtp: 0x7f, rmtp: 0x7f) = 0`.
//!
//! In: such lines; a call that another thread's line broke ends in `...` and goes on in a line with `[continued]`. Out: the
//! same calls as of an strace log. Arguments have names before them, flags have no prefix.

use super::line::{Call, number};
use super::trace::{At, Trace, Zero};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use memchr::{memchr, memmem, memrchr};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("perf-trace", Family::Calls, recognise).about("perf trace");

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 100;

fn recognise(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    if lines.filter(|line| parse(line).is_some()).count() >= 2 {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

#[derive(Debug)]
struct Line<'a> {
    began: Option<i64>,
    ns: Option<u64>,
    comm: &'a [u8],
    tid: u32,
    body: &'a [u8],
}

fn parse(text: &[u8]) -> Option<Line<'_>> {
    let text = text.trim_ascii();
    let open = memmem::find(text, b" (")?;
    let began = match text.get(..open)?.trim_ascii() {
        b"?" => None,
        word => Some(i64::try_from(milliseconds(word)?).ok()?),
    };
    let rest = text.get(open + 2..)?;
    let close = memmem::find(rest, b"): ")?;
    let ns = match rest.get(..close)?.trim_ascii() {
        b"" => None,
        word => Some(milliseconds(word.strip_suffix(b" ms")?)?),
    };
    let rest = rest.get(close + 3..)?;
    // The name may hold blanks and slashes: the number is what stands before the call.
    let mut end = memchr(b' ', rest)?;
    loop {
        let who = rest.get(..end)?;
        let slash = memrchr(b'/', who);
        let tid = slash.and_then(|at| number(who.get(at + 1..)?));
        if let (Some(slash), Some(tid)) = (slash, tid) {
            return Some(Line {
                began,
                ns,
                comm: who.get(..slash)?,
                tid: u32::try_from(tid).ok()?,
                body: rest.get(end..)?.trim_ascii(),
            });
        }
        end += 1 + memchr(b' ', rest.get(end + 1..)?)?;
    }
}

/// Milliseconds with three digits after the point, as nanoseconds.
fn milliseconds(word: &[u8]) -> Option<u64> {
    let word = word.trim_ascii();
    let point = memchr(b'.', word)?;
    let part = word.get(point + 1..)?;
    let whole = number(word.get(..point)?)?.checked_mul(1_000_000)?;
    (part.len() == 3).then_some(whole.checked_add(number(part)? * 1_000)?)
}

#[derive(Default)]
struct Reader {
    trace: Trace,
}

impl LineReader for Reader {
    fn line(&mut self, text: &[u8], out: &mut Out<'_>) -> Understood {
        let Some(line) = parse(text) else {
            let blank = text.trim_ascii().is_empty();
            return if blank {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        self.trace.zero = Zero::Start;
        let ended = line
            .began
            .map(|began| began.saturating_add(line.ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(0)));
        self.trace.now(line.began);
        self.trace.now(ended);
        let at = At {
            place: self.trace.threads.of(Some(line.tid)),
            began: line.began,
            ended,
            quote: out.here(),
            coarse: 0,
        };
        if let Some(place) = at.place {
            self.trace.named(place, line.comm);
        }
        if let Some(rest) = line.body.strip_prefix(b"... [continued]: ") {
            let Some(call) = call(rest, line.ns) else {
                return Understood::No;
            };
            self.trace.resumes(&at, &call);
            return Understood::Evidence;
        }
        if let Some(begun) = line.body.strip_suffix(b"...") {
            let Some((name, args)) = name_and_args(begun) else {
                return Understood::No;
            };
            self.trace.begins(&at, name, &plain(name, args));
            return Understood::Evidence;
        }
        let Some(call) = call(line.body, line.ns) else {
            return Understood::No;
        };
        if call.result == b"?" {
            if let Some(place) = at.place {
                self.trace.threads.ended(place);
            }
            return Understood::Evidence;
        }
        let args = plain(call.name, call.args);
        self.trace.comes_back(&at, &Call { args: &args, ..call });
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        std::mem::take(&mut self.trace).finish(out);
    }
}

fn name_and_args(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii();
    let open = memchr(b'(', text)?;
    let args = text.get(open + 1..)?;
    let name = text.get(..open)?;
    let is_name = !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    is_name.then_some((name, args.strip_suffix(b")").unwrap_or(args)))
}

fn call(text: &[u8], ns: Option<u64>) -> Option<Call<'_>> {
    let equals = memrchr(b'=', text)?;
    let (name, args) = name_and_args(text.get(..equals)?)?;
    Some(Call {
        name,
        args: args.strip_suffix(b")").unwrap_or(args),
        result: text.get(equals + 1..)?.trim_ascii(),
        ns,
    })
}

/// Arguments without their names, and with the flags by the names that strace has for them.
fn plain(name: &[u8], args: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(args.len());
    for (at, part) in super::arguments::split(args).enumerate() {
        if at > 0 {
            plain.extend_from_slice(b", ");
        }
        let colon = memmem::find(part, b": ");
        let named = colon.filter(|at| {
            part.iter()
                .take(*at)
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        });
        plain.extend_from_slice(named.and_then(|at| part.get(at + 2..)).unwrap_or(part));
    }
    if super::threads::makes(name) {
        for (flag, strace) in [
            (&b"THREAD"[..], &b" CLONE_THREAD"[..]),
            (b"VFORK", b" CLONE_VFORK"),
        ] {
            if args
                .split(|byte| !byte.is_ascii_uppercase())
                .any(|word| word == flag)
            {
                plain.extend_from_slice(strace);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TEXT: &str = "         ? (         ): bash/16353  ... [continued]: execve())                                           = 0
    12.594 ( 0.308 ms): bash/16353 clone(clone_flags: CHILD_CLEARTID|0x11, child_tidptr: 0x7f) = 16354 (bash)
    13.997 (         ): bash/16354 execve(filename: 0x8d, argv: 0x55, envp: 0x55) ...
    13.997 ( 3.775 ms): sleep/16354  ... [continued]: execve())                                           = 0
    14.443 (         ): bash/16353 wait4(upid: -1, stat_addr: 0x7ffc94e91300)                         ...
    21.350 (300.165 ms): sleep/16354 clock_nanosleep(rqtp: 0x7ffc, rmtp: 0x7ffc)           = 0
   321.644 (         ): sleep/16354 exit_group()                                                          = ?
    14.443 (307.485 ms): bash/16353  ... [continued]: wait4())                                            = 16354 (sleep)
";

    #[test]
    fn calls_and_who_waited_for_whom() {
        let reading = read_text("p", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "perf-trace");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let calls = &reading.observed.calls[0];
        assert!(calls.followed);
        let of = |name: &str| calls.calls.iter().find(|call| call.call == name).unwrap();
        assert_eq!(
            (of("wait4").handed_on, of("clock_nanosleep").main),
            (307_485_000, 300_165_000)
        );
        assert_eq!(of("clock_nanosleep").thread, "sleep");
    }

    #[test]
    fn cut_and_hostile_lines_end_nothing() {
        for cut in 0..TEXT.len() {
            let _ = read_text("p", TEXT.as_bytes().get(..cut).unwrap_or_default());
        }
        let text = format!(
            "{TEXT}\0 ( ms): /9 x( = \n 1.999999 (99999999999999999999.1 ms): a b/c/7 r(fd: 3<) = \n"
        );
        assert_eq!(read_text("p", text.as_bytes()).accounts[0].not_understood, 2);
    }
}
