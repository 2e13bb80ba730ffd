//! Probes of the network: what comes back of packets that are sent for that, and when.

pub(super) mod dig;
pub(super) mod mtr;
pub(super) mod ping;
pub(super) mod time_sources;
pub(super) mod traceroute;

/// Bytes of a host's name that are kept.
const NAME: usize = 100;

/// A name, cut between characters.
fn cut(text: &str) -> String {
    text.chars().take(NAME).collect()
}

/// `40 %` of `40.0%`, `1.25 %`.
fn percent(text: &str) -> Option<f64> {
    let text = text.strip_suffix('%').unwrap_or(text);
    let share = crate::numbers::decimal(text.as_bytes())?;
    (0.0..=100.0).contains(&share).then_some(share)
}

/// Milliseconds as nanoseconds.
fn ms(value: f64) -> u64 {
    (value.clamp(0.0, 1e12) * 1e6) as u64
}
