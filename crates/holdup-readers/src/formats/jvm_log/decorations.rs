//! What stands before the message of a JVM's line: `[30,994s][info][os,thread] `, or `2026-11-22T04:03:17.123+0000: 1.234: `.

use super::super::timed_log::Stamps;
use crate::find::find;
use crate::numbers::decimal;
use holdup_evidence::Ns;
use holdup_evidence::observed::When;

const LEVELS: [&[u8]; 5] = [b"trace", b"debug", b"info", b"warning", b"error"];

/// Groups in brackets: there are twelve decorations.
const GROUPS: usize = 12;

/// Milliseconds and nanoseconds since the epoch are later than 2001, those since the start are less.
const EPOCH_MS: u64 = 1_000_000_000_000;
const EPOCH_NS: u64 = 1_000_000_000_000_000_000;

/// What the decorations tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Decorations {
    /// Nanoseconds on the clock that measures best: since the start, or else since the epoch.
    pub ns: Option<Ns>,
    /// Since the JVM's start.
    pub since_start: Option<Ns>,
    /// Since the epoch.
    pub unix: Option<i64>,
    /// Whether there is a level, which nobody else puts in small letters beside a time.
    pub level: bool,
    /// Whether there are tags or something like them.
    pub tags: bool,
}

impl Decorations {
    /// Whether a JVM wrote this, whatever the message.
    pub(super) fn own(&self) -> bool {
        self.level || (self.tags && self.since_start.is_some())
    }

    pub(super) fn at(&self) -> Option<When> {
        self.unix
            .map(When::Unix)
            .or(self.since_start.map(When::SinceStart))
    }

    fn done(mut self) -> Decorations {
        self.ns = self
            .since_start
            .or(self.unix.and_then(|unix| Ns::try_from(unix).ok()));
        self
    }
}

/// The decorations of a line and its message; `None` where there are none.
pub(super) fn decorations(line: &[u8]) -> Option<(Decorations, &[u8])> {
    match line.first()? {
        b'[' if line.starts_with(b"[GC") || line.starts_with(b"[Full GC") => {
            super::is_own(line).then_some((Decorations::default(), line))
        }
        b'[' => unified(line),
        b'0'..=b'9' => old(line),
        b'T' | b'A' if super::is_own(line) => Some((Decorations::default(), line)),
        _ => None,
    }
}

fn unified(line: &[u8]) -> Option<(Decorations, &[u8])> {
    let mut decorations = Decorations::default();
    let mut rest = line;
    let mut understood = 0;
    for _ in 0..GROUPS {
        let Some(inner) = rest.strip_prefix(b"[") else {
            break;
        };
        // A collection's own brackets are the message.
        if understood > 0 && (inner.starts_with(b"GC") || inner.starts_with(b"Full")) {
            break;
        }
        let close = memchr::memchr(b']', inner.get(..64).unwrap_or(inner))?;
        group(inner.get(..close)?.trim_ascii(), &mut decorations)?;
        rest = inner.get(close + 1..)?;
        understood += 1;
    }
    (understood > 0 && (decorations.level || decorations.since_start.is_some() || decorations.unix.is_some()))
        .then(|| (decorations.done(), rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// One group; `None` where a JVM would not write it.
fn group(text: &[u8], decorations: &mut Decorations) -> Option<()> {
    if LEVELS.contains(&text) {
        decorations.level = true;
        return Some(());
    }
    if let Some(number) = text.strip_suffix(b"ms").or(text.strip_suffix(b"ns"))
        && let Some(value) = crate::numbers::whole(number)
    {
        let ms = text.ends_with(b"ms");
        let epoch = value >= if ms { EPOCH_MS } else { EPOCH_NS };
        let ns = if ms { value.checked_mul(1_000_000)? } else { value };
        match epoch {
            true => decorations.unix = Some(i64::try_from(ns).ok()?),
            false => decorations.since_start = Some(ns),
        }
        return Some(());
    }
    if let Some(seconds) = text.strip_suffix(b"s").and_then(decimal) {
        decorations.since_start = Some(super::ns(seconds, 1e9).or_else(|| long(seconds))?);
        return Some(());
    }
    if text.iter().all(u8::is_ascii_digit) {
        // Process and thread ids.
        return Some(());
    }
    if text.get(10) == Some(&b'T') {
        let stamp = Stamps::default().of(text)?;
        if let Some(When::Unix(ns)) = stamp.when() {
            decorations.unix = Some(ns);
        }
        return Some(());
    }
    // Tags, and the host's name.
    decorations.tags = true;
    text.iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b",.-_ ".contains(byte))
        .then_some(())
}

/// More than a day since the start.
fn long(seconds: f64) -> Option<Ns> {
    // Three years.
    (0.0..1e8).contains(&seconds).then_some((seconds * 1e9) as Ns)
}

/// JDK 8: a date, the seconds since the start, or both, each with a colon.
fn old(line: &[u8]) -> Option<(Decorations, &[u8])> {
    let mut decorations = Decorations::default();
    let mut rest = line;
    if rest.get(10) == Some(&b'T') {
        let end = find(rest.get(..40).unwrap_or(rest), b": ")?;
        if let Some(When::Unix(ns)) = Stamps::default().of(rest.get(..end)?)?.when() {
            decorations.unix = Some(ns);
        }
        rest = rest.get(end + 2..)?;
    }
    if let Some(end) = find(rest.get(..24).unwrap_or(rest), b": ")
        && let Some(seconds) = rest.get(..end).and_then(decimal).filter(|value| *value >= 0.0)
        && rest
            .get(..end)
            .is_some_and(|number| number.iter().any(|byte| !byte.is_ascii_digit()))
    {
        decorations.since_start = long(seconds);
        rest = rest.get(end + 2..)?;
    }
    (decorations.unix.is_some() || decorations.since_start.is_some()).then(|| (decorations.done(), rest))
}

#[cfg(test)]
mod tests {
    use super::decorations;

    #[test]
    fn every_choice_of_decorations() {
        let of = |line: &str| {
            let (found, message) = decorations(line.as_bytes())?;
            Some((
                found.since_start,
                found.unix,
                String::from_utf8_lossy(message).into_owned(),
            ))
        };
        let x = "x".to_owned();
        assert_eq!(
            of("[30,994s][info][os,thread] x"),
            Some((Some(30_994_000_000), None, x.clone()))
        );
        assert_eq!(
            of("[994ms][info][gc  ] x"),
            Some((Some(994_000_000), None, x.clone()))
        );
        let unix = Some(1_795_320_197_123_000_000);
        assert_eq!(
            of("[2026-11-22T04:03:17.123+0000][3ms][66][67][info][gc] x"),
            Some((Some(3_000_000), unix, x.clone()))
        );
        assert_eq!(of("[1795320197123ms][info][gc] x"), Some((None, unix, x.clone())));
        assert_eq!(
            of("2026-11-22T04:03:17.123+0000: 1.5: x"),
            Some((Some(1_500_000_000), unix, x))
        );
        for none in [
            "",
            "[",
            "[]",
            "[info",
            "[main] x",
            "1: x",
            "[1.2.3s] x",
            "[\0] x",
            "2026-11-22T",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
