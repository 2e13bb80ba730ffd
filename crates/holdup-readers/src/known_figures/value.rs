//! A number with its unit, and the bound from which on it is bad.

/// What a number measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// How many.
    Count,
    /// Nanoseconds.
    Time,
    /// Per cent.
    Share,
    Bytes,
}

/// A unit, and what it is in that of its measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    pub(super) measure: Measure,
    factor: f64,
}

const US: f64 = 1e3;
const MS: f64 = 1e6;
const SECOND: f64 = 1e9;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 3_600.0 * SECOND;
const DAY: f64 = 86_400.0 * SECOND;

const KIB: f64 = 1024.0;

/// Units behind a number. Letters alone that count by thousands are of whatever the figure counts.
const UNITS: &[(&str, Measure, f64)] = &[
    ("ns", Measure::Time, 1.0),
    ("us", Measure::Time, US),
    ("\u{b5}s", Measure::Time, US),
    ("\u{3bc}s", Measure::Time, US),
    ("usec", Measure::Time, US),
    ("ms", Measure::Time, MS),
    ("msec", Measure::Time, MS),
    ("msecs", Measure::Time, MS),
    ("s", Measure::Time, SECOND),
    ("sec", Measure::Time, SECOND),
    ("secs", Measure::Time, SECOND),
    ("m", Measure::Time, MINUTE),
    ("min", Measure::Time, MINUTE),
    ("mins", Measure::Time, MINUTE),
    ("minute", Measure::Time, MINUTE),
    ("h", Measure::Time, HOUR),
    ("hr", Measure::Time, HOUR),
    ("hrs", Measure::Time, HOUR),
    ("hour", Measure::Time, HOUR),
    ("d", Measure::Time, DAY),
    ("day", Measure::Time, DAY),
    ("%", Measure::Share, 1.0),
    ("Percent", Measure::Share, 1.0),
    ("B", Measure::Bytes, 1.0),
    ("kB", Measure::Bytes, KIB),
    ("KB", Measure::Bytes, KIB),
    ("KiB", Measure::Bytes, KIB),
    ("Ki", Measure::Bytes, KIB),
    ("MB", Measure::Bytes, KIB * KIB),
    ("MiB", Measure::Bytes, KIB * KIB),
    ("Mi", Measure::Bytes, KIB * KIB),
    ("GB", Measure::Bytes, KIB * KIB * KIB),
    ("GiB", Measure::Bytes, KIB * KIB * KIB),
    ("Gi", Measure::Bytes, KIB * KIB * KIB),
    ("TB", Measure::Bytes, KIB * KIB * KIB * KIB),
    ("TiB", Measure::Bytes, KIB * KIB * KIB * KIB),
    ("Ti", Measure::Bytes, KIB * KIB * KIB * KIB),
    ("k", Measure::Count, 1e3),
    ("K", Measure::Count, 1e3),
    ("M", Measure::Count, 1e6),
    ("G", Measure::Count, 1e9),
];

/// Words of names that are units, too.
const NAMED: &[(&str, Measure, f64)] = &[
    ("ns", Measure::Time, 1.0),
    ("nanos", Measure::Time, 1.0),
    ("nanosecond", Measure::Time, 1.0),
    ("us", Measure::Time, US),
    ("usec", Measure::Time, US),
    ("usecs", Measure::Time, US),
    ("micros", Measure::Time, US),
    ("microsecond", Measure::Time, US),
    ("ms", Measure::Time, MS),
    ("msec", Measure::Time, MS),
    ("msecs", Measure::Time, MS),
    ("millis", Measure::Time, MS),
    ("millisecond", Measure::Time, MS),
    ("s", Measure::Time, SECOND),
    ("sec", Measure::Time, SECOND),
    ("secs", Measure::Time, SECOND),
    ("second", Measure::Time, SECOND),
    ("minute", Measure::Time, MINUTE),
    ("hour", Measure::Time, HOUR),
    ("percent", Measure::Share, 1.0),
    ("percentage", Measure::Share, 1.0),
    ("pct", Measure::Share, 1.0),
    ("ratio", Measure::Share, 100.0),
    ("byte", Measure::Bytes, 1.0),
    ("kb", Measure::Bytes, KIB),
    ("mb", Measure::Bytes, KIB * KIB),
    ("gb", Measure::Bytes, KIB * KIB * KIB),
];

fn look_up(list: &[(&str, Measure, f64)], word: &str) -> Option<Unit> {
    let (_, measure, factor) = list.iter().find(|(name, _, _)| *name == word)?;
    Some(Unit {
        measure: *measure,
        factor: *factor,
    })
}

/// The unit that stands behind a number.
pub(super) fn unit(word: &str) -> Option<Unit> {
    look_up(UNITS, word).or_else(|| named_unit(word))
}

/// The unit that a word of a name in small letters is: `seconds`, `ms`, `percent`.
pub(super) fn named_unit(word: &str) -> Option<Unit> {
    // One, or several of it.
    let one = || word.strip_suffix('s').filter(|one| one.len() > 2);
    look_up(NAMED, word).or_else(|| look_up(NAMED, one()?))
}

/// All words that are units of names.
pub(super) fn unit_words() -> impl Iterator<Item = String> {
    let one = NAMED.iter().map(|(name, _, _)| (*name).to_owned());
    one.chain(NAMED.iter().map(|(name, _, _)| format!("{name}s")))
}

/// What was read of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    number: f64,
    unit: Option<Unit>,
}

/// Parts of a length: `1d2h3m4s`.
const MAX_PARTS: usize = 5;

/// Bytes of a unit.
const MAX_UNIT_BYTES: usize = 12;

/// Counts that stand for "no limit" or "not known".
const NO_COUNTS: [f64; 3] = [2_147_483_647.0, 4_294_967_295.0, 9e18];

/// The value that begins at a place, and where it ends; `None` where a number is a part of something else: a date, a version, an address,
/// a part of a whole.
pub(super) fn value(line: &[u8], from: usize) -> Option<(Value, usize)> {
    if let Some((ns, end)) = clock(line, from) {
        let unit = unit("ns");
        return ends(line, end).then_some((Value { number: ns, unit }, end));
    }
    let (mut number, mut end) = number(line, from)?;
    let (mut unit, mut behind) = match unit_behind(line, end) {
        Some((unit, behind)) => (Some(unit), behind),
        None => (None, end),
    };
    // `1m30s`, `2h3m`.
    for _ in 0..MAX_PARTS {
        let Some(first) = unit.filter(|unit| unit.measure == Measure::Time) else {
            break;
        };
        let digit = line.get(behind).is_some_and(u8::is_ascii_digit);
        let Some((more, of_number)) = self::number(line, behind).filter(|_| digit) else {
            break;
        };
        let (next, of_unit) = unit_behind(line, of_number)?;
        (next.measure == Measure::Time).then_some(())?;
        number = number * first.factor + more * next.factor;
        unit = self::unit("ns");
        behind = of_unit;
    }
    if unit.is_some() {
        end = behind;
    }
    ends(line, end).then_some((Value { number, unit }, end))
}

/// `00:05:23`, `2-03:10:22.5`, in nanoseconds.
fn clock(line: &[u8], from: usize) -> Option<(f64, usize)> {
    let rest = line.get(from..)?;
    let of_clock = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-');
    let text = rest.get(..rest.iter().take(24).take_while(of_clock).count())?;
    let text = std::str::from_utf8(text).ok()?;
    if text.bytes().filter(|byte| *byte == b':').count() != 2 {
        return None;
    }
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let mut parts = time.split(':').map(str::parse::<f64>);
    let mut next = || parts.next()?.ok();
    let (days, hours, minutes, seconds) = (days.parse::<f64>().ok()?, next()?, next()?, next()?);
    let fits = minutes < 60.0 && seconds < 60.0 && hours < 1e6;
    fits.then_some((
        days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND,
        from + text.len(),
    ))
}

/// A number at a place, and where it ends: `12`, `-1`, `1,234`, `0.5`, `5.6e+07`.
fn number(line: &[u8], from: usize) -> Option<(f64, usize)> {
    let rest = line.get(from..)?;
    let digits = |at: usize| {
        let behind = rest.get(at..).unwrap_or_default();
        behind.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = usize::from(rest.first() == Some(&b'-'));
    let whole = digits(end);
    if whole == 0 {
        return None;
    }
    end += whole;
    // Thousands between commas; any other comma before a digit makes it something else.
    while rest.get(end) == Some(&b',') && digits(end + 1) > 0 {
        if digits(end + 1) != 3 || whole > 3 {
            return None;
        }
        end += 4;
    }
    if rest.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
        let power = digits(end + 1 + sign);
        end += if power > 0 { 1 + sign + power } else { 0 };
    }
    let text: Vec<u8> = rest
        .get(..end)?
        .iter()
        .copied()
        .filter(|byte| *byte != b',')
        .collect();
    let value: f64 = std::str::from_utf8(&text).ok()?.parse().ok()?;
    value.is_finite().then_some((value, from + end))
}

/// The unit behind a number, right there or behind one blank, and where it ends.
fn unit_behind(line: &[u8], end: usize) -> Option<(Unit, usize)> {
    let blank = usize::from(line.get(end) == Some(&b' '));
    let begin = end + blank;
    let rest = line.get(begin..)?;
    if rest.first() == Some(&b'%') {
        return Some((unit("%")?, begin + 1));
    }
    let letter = |byte: &&u8| byte.is_ascii_alphabetic() || **byte >= 128;
    let word = rest.get(..rest.iter().take(MAX_UNIT_BYTES).take_while(letter).count())?;
    let word = std::str::from_utf8(word).ok()?;
    // A letter apart is a word or a state of its own.
    if blank > 0 && word.len() == 1 && word != "s" {
        return None;
    }
    Some((unit(word)?, begin + word.len()))
}

/// Whether what stands behind a value leaves it one.
fn ends(line: &[u8], end: usize) -> bool {
    match line.get(end) {
        None => true,
        Some(b' ' | b'\t' | b'\r' | b',' | b';' | b')' | b']' | b'}' | b'"' | b'\'' | b'|' | b'<') => true,
        // The end of a sentence.
        Some(b'.' | b'!') => line.get(end + 1).is_none_or(|next| *next == b' '),
        // A sign of a frame.
        Some(byte) => *byte == 0xe2,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
}

/// When a figure is bad by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bad {
    compare: Compare,
    /// In the unit of its measure.
    limit: f64,
    measure: Measure,
    /// The unit of a value that has none.
    bare: Option<Unit>,
}

/// A figure that was judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    pub(super) bad: bool,
    /// The value in the unit of its measure.
    pub(super) amount: f64,
    pub(super) measure: Measure,
    /// How bad: of two the larger one is worse.
    pub(super) badness: f64,
}

/// Where a value's unit is not with it: in its name, which may be that of the row or have more words.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct OfName {
    pub(super) unit: Option<Unit>,
    /// Whether the row's own name has that unit: then its bound is in it, too.
    pub(super) of_row: bool,
}

impl Bad {
    /// `>0`, `>=90%`, `>5s`, `<10%`, `=0`, `>5 (s)`.
    pub(super) fn of(text: &str) -> Option<Bad> {
        const SIGNS: [(&str, Compare); 5] = [
            (">=", Compare::AtLeast),
            ("<=", Compare::AtMost),
            (">", Compare::Above),
            ("<", Compare::Below),
            ("=", Compare::Equal),
        ];
        let (sign, compare) = SIGNS.iter().find(|(sign, _)| text.starts_with(sign))?;
        let (limit, of_bare) = match text.split_once(" (") {
            Some((limit, rest)) => (limit, Some(unit(rest.strip_suffix(')')?)?)),
            None => (text, None),
        };
        let limit = limit.strip_prefix(sign)?.trim();
        let (number, end) = number(limit.as_bytes(), 0)?;
        let own = match limit.get(end..)?.trim() {
            "" => None,
            name => Some(unit(name)?),
        };
        let count = Unit {
            measure: Measure::Count,
            factor: 1.0,
        };
        let of_limit = own.or(of_bare).unwrap_or(count);
        let bare = of_bare.or(own.is_none().then_some(count));
        Some(Bad {
            compare: *compare,
            limit: number * of_limit.factor,
            measure: of_limit.measure,
            bare,
        })
    }

    /// Judges a value; `None` where its unit is not known, or of another kind.
    pub(super) fn judge(&self, value: Value, of_name: OfName) -> Option<Judged> {
        let whole = value.number.abs();
        if NO_COUNTS.contains(&whole) || whole >= 9e18 {
            return None;
        }
        // A bound without a unit is one of per cent where it is more than 1: else it is one of a part of 1.
        let of_percent = self.measure == Measure::Count && self.limit > 1.0;
        let fits = |unit: &Unit| {
            unit.measure == self.measure || unit.measure == Measure::Share && of_percent && !of_name.of_row
        };
        let named = of_name.unit.filter(fits);
        let plain = self.measure == Measure::Count && (of_name.unit.is_none() || of_name.of_row);
        let unit = match value.unit {
            Some(unit) => unit,
            None => named
                .or(self.bare.filter(|_| self.measure != Measure::Count))
                .or(self.bare.filter(|_| plain || self.limit == 0.0))?,
        };
        let same = unit.measure == self.measure
            || self.limit == 0.0 && value.unit.is_some()
            || unit.measure == Measure::Share && of_percent
            // `512M` of what is counted in bytes.
            || unit.measure == Measure::Count && self.measure == Measure::Bytes;
        let amount = value.number * unit.factor;
        let less = matches!(self.compare, Compare::Below | Compare::AtMost);
        // Less than nothing stands for what is not known.
        if !same || less && amount < 0.0 {
            return None;
        }
        let bad = match self.compare {
            Compare::Above => amount > self.limit,
            Compare::AtLeast => amount >= self.limit,
            Compare::Below => amount < self.limit,
            Compare::AtMost => amount <= self.limit,
            Compare::Equal => amount == self.limit,
        };
        Some(Judged {
            bad,
            amount,
            measure: unit.measure,
            badness: if less { -amount } else { amount },
        })
    }
}

/// Whether a text is a number, perhaps with a unit, and nothing else.
pub(super) fn is_number(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    value(text, 0).is_some_and(|(_, end)| end == text.len())
}

/// Bytes in brackets behind a name, and words there that make it a bound.
const MAX_ASIDE_BYTES: usize = 32;
const BOUNDS: [&str; 6] = ["max", "min", "limit", "threshold", "allowed", "total"];

/// The unit that stands in brackets behind a name, or is its last sign, and the name without it: `Lag (ms)`, `used %`.
pub(super) fn unit_of_name(name: &[u8]) -> (Option<Unit>, &[u8]) {
    if let Some(inner) = name.strip_suffix(b"%") {
        return (unit("%"), inner.trim_ascii_end());
    }
    let Some(inner) = name.strip_suffix(b")") else {
        return (None, name);
    };
    let open = memchr::memrchr(b'(', inner).filter(|open| inner.len() - open <= MAX_ASIDE_BYTES);
    let parts = open.and_then(|open| inner.split_at_checked(open));
    let Some((before, within)) = parts else {
        return (None, name);
    };
    let word = std::str::from_utf8(within.get(1..).unwrap_or_default()).unwrap_or_default();
    let mut parts = word.split(' ');
    let is_bound = parts.any(|part| BOUNDS.contains(&part));
    match unit(word) {
        Some(unit) => (Some(unit), before.trim_ascii_end()),
        // `(last five minutes)`.
        None if !is_bound => (None, before.trim_ascii_end()),
        None => (None, name),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bad, Judged, OfName, named_unit, value};

    fn judged(bad: &str, text: &str) -> Option<bool> {
        let (value, _) = value(text.as_bytes(), 0)?;
        let judged: Judged = Bad::of(bad).unwrap().judge(value, OfName::default())?;
        Some(judged.bad)
    }

    #[test]
    fn values_are_compared_in_their_units() {
        for (bad, worse, well) in [
            (">0", "1", "0"),
            (">0", "3 ms", "0"),
            (">=90%", "90%", "89.9 %"),
            (">5s", "5001ms", "5s"),
            (">5s", "1m30s", "4,999 ms"),
            (">5s", "00:00:06", "00:00:04"),
            (">1h", "1-00:00:00", "00:59:59"),
            (">5 (s)", "6", "5"),
            (">5e9 (ns)", "6000000000", "4000000000"),
            ("<10%", "9%", "10%"),
            ("=0", "0", "1"),
            (">1000", "1,001", "1,000"),
            (">1000", "2k", "0.5k"),
            (">1GiB", "2 GiB", "900MB"),
            (">0 (bytes)", "1", "0"),
            (">1e6", "1.5e+06", "9e5"),
            (">=97", "98%", "96 %"),
        ] {
            assert_eq!(judged(bad, worse), Some(true), "{bad} {worse}");
            assert_eq!(judged(bad, well), Some(false), "{bad} {well}");
        }
    }

    #[test]
    fn what_has_no_known_unit_or_is_a_part_of_something_else_is_not_judged() {
        for (bad, text) in [
            (">5s", "9"),
            (">0.9", "5%"),
            (">=90%", "99"),
            (">1000", "5000 ms"),
            (">5s", "7%"),
            (">0", "2026-03-03"),
            (">0", "1.2.3"),
            (">0", "3/5"),
            (">0", "10:45"),
            (">0", "5abc"),
            (">0", "0x1f"),
            ("=0", "0,87"),
            (">0", "18446744073709551615"),
            (">0", "2147483647"),
            ("<10%", "-1%"),
            (">0", ""),
        ] {
            assert_eq!(judged(bad, text), None, "{bad} {text}");
        }
    }

    #[test]
    fn bounds_and_units_of_names() {
        for wrong in ["", "5", ">", ">x", ">5 parsecs", ">5 (x)", "!5"] {
            assert!(Bad::of(wrong).is_none(), "{wrong}");
        }
        for word in ["seconds", "ms", "percent", "bytes", "milliseconds", "ratio"] {
            assert!(named_unit(word).is_some(), "{word}");
        }
        for word in ["total", "min", "as", "queues"] {
            assert!(named_unit(word).is_none(), "{word}");
        }
    }
}
