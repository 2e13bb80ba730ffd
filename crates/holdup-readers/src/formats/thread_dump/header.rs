//! The line that a thread of a dump begins with.

use crate::numbers::{decimal, whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::State;
use memchr::memrchr;

/// What the line tells.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) number: Option<u64>,
    pub(super) tid: Option<u32>,
    pub(super) state: State,
    pub(super) cpu: Option<Ns>,
    pub(super) elapsed: Option<Ns>,
    pub(super) is_virtual: bool,
    /// "in Object.wait()": the JVM waits in it on a monitor, of the program or of its own.
    pub(super) in_wait: bool,
}

/// `"main" #1 [27892] prio=5 os_prio=0 cpu=51.59ms elapsed=7.93s tid=0x… nid=0x6837 waiting on condition [0x…]`; older
/// JVMs leave out most of it. `None` for anything else.
pub(super) fn parse(line: &[u8]) -> Option<Header> {
    let rest = line.strip_prefix(b"\"")?;
    // A name may contain quotes, what follows it contains none.
    let (name, rest) = split_at_quote(rest)?;
    let mut header = Header {
        name: String::from_utf8_lossy(name).into_owned(),
        ..Header::default()
    };
    let mut is_header = false;
    let mut found = None;
    for word in words(rest) {
        if let Some(value) = word.strip_prefix(b"nid=") {
            is_header = true;
            header.tid = tid(value).or(header.tid);
        } else if word.starts_with(b"tid=") || word.starts_with(b"prio=") || word.starts_with(b"os_prio=") {
            is_header = true;
        } else if let Some(value) = word.strip_prefix(b"cpu=") {
            header.cpu = value.strip_suffix(b"ms").and_then(|ms| length(ms, 1e6));
        } else if let Some(value) = word.strip_prefix(b"elapsed=") {
            header.elapsed = value.strip_suffix(b"s").and_then(|seconds| length(seconds, 1e9));
        } else if let Some(number) = word.strip_prefix(b"#") {
            header.number = whole(number);
        } else if let Some(number) = word.strip_prefix(b"[") {
            if let Some(number) = number.strip_suffix(b"]").and_then(whole) {
                header.tid = u32::try_from(number).ok();
            }
        } else if word == b"virtual" {
            header.is_virtual = true;
        } else if is_header {
            header.in_wait |= word == b"Object.wait()";
            found = found.or(Some(word));
        }
    }
    header.state = match found {
        Some(b"runnable") => State::Runnable,
        Some(b"sleeping") => State::Sleeping,
        // Of Android's runtime, which has the states of its threads here.
        Some(b"Blocked" | b"MONITOR") => State::Blocked,
        Some(b"Waiting" | b"WAIT") => State::Waiting,
        Some(b"TimedWaiting" | b"TIMED_WAIT") => State::TimedWaiting,
        _ => State::Unknown,
    };
    is_header.then_some(header)
}

/// `#17 "name" virtual WAITING 2026-11-22T04:28:44.324697445Z`; before JDK 24 without state and time.
pub(super) fn parse_numbered(line: &[u8]) -> Option<Header> {
    let rest = line.strip_prefix(b"#")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = whole(rest.get(..digits)?)?;
    let (name, rest) = split_at_quote(rest.get(digits..)?.strip_prefix(b" \"")?)?;
    let mut header = Header {
        name: String::from_utf8_lossy(name).into_owned(),
        number: Some(number),
        ..Header::default()
    };
    for word in words(rest) {
        match word {
            b"virtual" => header.is_virtual = true,
            _ if header.state == State::Unknown => header.state = state(word),
            _ => {}
        }
    }
    Some(header)
}

fn split_at_quote(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memrchr(b'"', rest)?;
    Some((rest.get(..end)?, rest.get(end + 1..)?))
}

/// The kernel's id: hexadecimal up to JDK 21, decimal after.
fn tid(value: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(value).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn length(value: &[u8], unit: f64) -> Option<Ns> {
    let value = decimal(value).filter(|value| *value >= 0.0)?;
    Some((value * unit).round() as Ns)
}

/// A state as `java.lang.Thread.State` names it, with or without what follows.
pub(super) fn state(text: &[u8]) -> State {
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    let sleeps = text.ends_with(b"(sleeping)");
    match text.get(..end).unwrap_or_default() {
        b"RUNNABLE" => State::Runnable,
        b"BLOCKED" => State::Blocked,
        b"TIMED_WAITING" if sleeps => State::Sleeping,
        b"TIMED_WAITING" => State::TimedWaiting,
        b"WAITING" => State::Waiting,
        b"NEW" | b"TERMINATED" => State::Ended,
        _ => State::Unknown,
    }
}
