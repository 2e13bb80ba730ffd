//! When a dump was taken: a line of its own before it.

use holdup_evidence::observed::{Civil, When};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

const NS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// `2026-11-22 04:29:10`, without a zone, or `2026-11-22T04:28:49.007487762Z`; `None` for anything else.
pub(super) fn parse(line: &[u8]) -> Option<When> {
    let digits = line.len() >= 19 && line.first()?.is_ascii_digit() && line.get(4) == Some(&b'-');
    let text = std::str::from_utf8(line).ok().filter(|_| digits)?;
    match text.as_bytes().last() {
        Some(b'Z') => {
            let at: Timestamp = text.parse().ok()?;
            i64::try_from(at.as_nanosecond()).ok().map(When::Unix)
        }
        _ if text.len() == 19 => civil(text.parse().ok()?),
        _ => None,
    }
}

/// An instant without a zone.
pub(super) fn civil(at: DateTime) -> Option<When> {
    let epoch = Date::constant(1970, 1, 1).to_datetime(jiff::civil::Time::midnight());
    let seconds = at.duration_since(epoch).as_secs();
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY) * NS_PER_SECOND + i64::from(at.subsec_nanosecond());
    Some(When::Civil(Civil {
        day: Some(seconds.div_euclid(SECONDS_PER_DAY)),
        year_known: true,
        of_day: u64::try_from(of_day).ok()?,
    }))
}
