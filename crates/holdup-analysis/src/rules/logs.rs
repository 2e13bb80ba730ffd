//! What rules about kernel and system logs share: finding what was told, quoting it, and ruling out.
//!
//! In: [`Observed`]. A log that says nothing of a trouble rules it out only by the number of its lines; without any line of
//! the kernel's (or the service manager's) a rule can't tell.

use super::duration;
use crate::finding::{Evidence, Verdict};
use holdup_evidence::observed::{Happening, KernelEvent, What, When};
use holdup_evidence::{Ns, Observed};

/// Lines that one finding quotes; more of the same are counted.
pub(super) const QUOTED: usize = 5;

/// What the kernel told of something, in order.
pub(super) fn told<'a, T>(
    observed: &'a Observed,
    pick: impl Fn(&'a KernelEvent) -> Option<T>,
) -> Vec<(&'a Happening, T)> {
    let happenings = observed.happenings.iter();
    happenings
        .filter_map(|one| match &one.what {
            What::Kernel(event) => pick(event).map(|picked| (one, picked)),
            _ => None,
        })
        .collect()
}

/// The line itself.
pub(super) fn quote(observed: &Observed, one: &Happening) -> Evidence {
    Evidence::new(one.text.trim(), place(observed, one))
}

/// Something said about a line.
pub(super) fn about(observed: &Observed, one: &Happening, text: impl Into<String>) -> Evidence {
    Evidence::new(text, place(observed, one))
}

fn place(observed: &Observed, one: &Happening) -> String {
    match observed.place(&one.quote) {
        place if place.is_empty() => "the log".to_owned(),
        place => place,
    }
}

/// Lines that the kernel wrote, of all artefacts.
pub(super) fn kernel_lines(observed: &Observed) -> u64 {
    observed.sources.iter().map(|source| source.kernel_lines).sum()
}

/// The verdict where the kernel told nothing of `what`.
pub(super) fn kernel_silent(observed: &Observed, what: &str) -> Verdict {
    match kernel_lines(observed) {
        0 => Verdict::CannotTell("what the kernel said: `dmesg`, or `journalctl -k`".to_owned()),
        lines => Verdict::Clear(format!("0 of {lines} lines that the kernel wrote tell of {what}")),
    }
}

/// The verdict where the service manager told nothing of `what`.
pub(super) fn manager_silent(observed: &Observed, what: &str) -> Verdict {
    let lines: u64 = observed.sources.iter().map(|source| source.manager_lines).sum();
    match lines {
        0 => Verdict::CannotTell("what systemd said of its units: `journalctl -b`".to_owned()),
        lines => Verdict::Clear(format!("0 of {lines} lines that systemd wrote tell of {what}")),
    }
}

/// Seconds to the millisecond, up to ten minutes; anything else as lengths are printed elsewhere. People compare these
/// with limits that are given in seconds, and with the log beside them.
pub(super) fn seconds(ns: Ns) -> String {
    const SECOND: Ns = 1_000_000_000;
    match ns {
        0..SECOND => duration(ns),
        _ if ns < 600 * SECOND => format!("{} s", (ns / 1_000_000) as f64 / 1e3),
        _ => duration(ns),
    }
}

/// `, first at …`: when the first was, as its own line has it, is in the quote; how often is said here.
pub(super) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// An instant as a clock shows it, to the second.
pub(super) fn clock_face(at: When) -> String {
    const SECOND: Ns = 1_000_000_000;
    let face = |of_day: Ns| {
        let seconds = of_day / SECOND;
        format!(
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    };
    match at {
        When::Civil(at) => face(at.of_day),
        When::Unix(ns) => {
            let of_day = ns.rem_euclid(86_400 * SECOND as i64);
            format!("{} UTC", face(of_day.unsigned_abs()))
        }
        When::SinceBoot(ns) => format!("{} after boot", seconds(ns)),
        When::SinceStart(ns) => format!("{} after the start", seconds(ns)),
    }
}
