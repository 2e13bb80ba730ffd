//! The kernel's clocks: what turns the monotonic clock of the evidence into time since boot and into dates.

use holdup_evidence::Ns;
use nix::time::{ClockId, clock_gettime};

const NS_PER_S: i64 = 1_000_000_000;

/// `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`: the time that the machine was suspended.
#[must_use]
pub fn boot_minus_monotonic() -> Option<Ns> {
    u64::try_from(minus_monotonic(ClockId::CLOCK_BOOTTIME)?).ok()
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
#[must_use]
pub fn unix_minus_monotonic() -> Option<i64> {
    minus_monotonic(ClockId::CLOCK_REALTIME)
}

/// `CLOCK_MONOTONIC` now; 0 where the system refuses to tell, which Linux doesn't.
#[must_use]
pub fn monotonic() -> Ns {
    now(ClockId::CLOCK_MONOTONIC)
        .and_then(|ns| u64::try_from(ns).ok())
        .unwrap_or_default()
}

/// Reads the monotonic clock on both sides of the other and takes the middle, so that being preempted in
/// between costs half of that at most.
fn minus_monotonic(clock: ClockId) -> Option<i64> {
    let before = now(ClockId::CLOCK_MONOTONIC)?;
    let other = now(clock)?;
    let after = now(ClockId::CLOCK_MONOTONIC)?;
    let difference = other - (before + (after - before) / 2);
    // Without suspend the two clocks are one; the middle must not make that negative.
    Some(if clock == ClockId::CLOCK_BOOTTIME {
        difference.max(0)
    } else {
        difference
    })
}

fn now(clock: ClockId) -> Option<i64> {
    let time = clock_gettime(clock).ok()?;
    time.tv_sec().checked_mul(NS_PER_S)?.checked_add(time.tv_nsec())
}

#[cfg(test)]
mod tests {
    use super::{boot_minus_monotonic, unix_minus_monotonic};

    #[test]
    fn dates_are_after_this_was_written() {
        const YEAR_2025_NS: i64 = 1_735_689_600 * 1_000_000_000;
        assert!(unix_minus_monotonic().unwrap() + i64::MAX / 1000 > YEAR_2025_NS);
        assert!(boot_minus_monotonic().is_some());
    }
}
