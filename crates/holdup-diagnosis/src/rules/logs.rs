//! What rules about kernel and system logs share: finding what was reported, quoting it, and ruling out.
//!
//! In: [`Observed`]. A log that says nothing of a trouble rules it out only by the number of its lines; without any line of
//! the kernel's (or the service manager's) a rule can't tell.

use super::duration;
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, KernelEvent, SpanKind, What, When};
use holdup_evidence::{Ns, Observed};
use holdup_model::finding::{Evidence, Verdict};
use std::collections::HashMap;

/// Lines that one finding quotes; more of the same are counted.
pub(super) const QUOTED: usize = 5;

/// Nanoseconds that the same line may be apart in two logs: a journal's daemon that is busy takes it late.
const TAKEN_LATE: u128 = 10_000_000_000;

/// What the kernel reported about something, in order. What two logs of one boot have (a journal, and `dmesg` beside it) counts once.
pub(crate) fn happenings<'a, T>(
    observed: &'a Observed,
    pick: impl Fn(&'a KernelEvent) -> Option<T>,
) -> Vec<(&'a Happening, T)> {
    let happenings = observed.happenings.iter();
    let mut all: Vec<(&Happening, T)> = happenings
        .filter_map(|one| match &one.what {
            What::Kernel(event) => pick(event).map(|picked| (one, picked)),
            _ => None,
        })
        .collect();
    let first = all.first().map(|(one, _)| one.quote.source);
    if all.iter().any(|(one, _)| Some(one.quote.source) != first) {
        once(&mut all, &Clock::of(observed));
    }
    all
}

/// Leaves out what an earlier artefact has too: the same words, for the same time (a disk says one thing often), and where
/// both have a time by one clock, at the same instant.
fn once<T>(all: &mut Vec<(&Happening, T)>, clock: &Clock<'_>) {
    let mut seen: HashMap<String, Vec<&Happening>> = HashMap::new();
    // How many of these words the source has had.
    let mut had: HashMap<(String, u32), usize> = HashMap::new();
    all.retain(|(one, _)| {
        let words = format!("{:?}", one.what);
        let before = had.entry((words.clone(), one.quote.source)).or_default();
        let place = *before;
        *before += 1;
        let others = seen.entry(words).or_default();
        let mut places: HashMap<u32, usize> = HashMap::new();
        let again = others.iter().any(|other| {
            let at = places.entry(other.quote.source).or_default();
            let same_place = *at == place;
            *at += 1;
            let near = clock
                .between(other, one)
                .is_none_or(|ns| ns.unsigned_abs() <= TAKEN_LATE);
            other.quote.source != one.quote.source
                && same_place
                && near
                && clock.same_boot(&other.quote, &one.quote) != Some(false)
        });
        others.push(*one);
        !again
    });
}

/// The line itself.
pub(crate) fn quote(observed: &Observed, one: &Happening) -> Evidence {
    Evidence::new(one.text.trim(), place(observed, one))
}

/// How long before its log was taken something happened, nanoseconds; `None` where whoever took the log wrote down no instant.
pub(crate) fn ago(observed: &Observed, one: &Happening) -> Option<Ns> {
    let source = observed.sources.get(usize::try_from(one.quote.source).ok()?)?;
    let taken = source.taken?;
    let own = match one.at {
        Some(When::SinceBoot(at)) => Some(at),
        _ => one.since_boot,
    };
    if let (Some(now), Some(then)) = (taken.since_boot, own) {
        return now.checked_sub(then);
    }
    match (taken.unix, one.at) {
        (Some(now), Some(When::Unix(then))) => Ns::try_from(i128::from(now) - i128::from(then)).ok(),
        _ => None,
    }
}

/// Something said about a line.
pub(crate) fn about(observed: &Observed, one: &Happening, text: impl Into<String>) -> Evidence {
    Evidence::new(text, place(observed, one))
}

fn place(observed: &Observed, one: &Happening) -> String {
    match observed.place(&one.quote) {
        place if place.is_empty() => "the log".to_owned(),
        place => place,
    }
}

/// Lines that the kernel wrote, of all artefacts.
pub(crate) fn kernel_lines(observed: &Observed) -> u64 {
    observed.sources.iter().map(|source| source.kernel_lines).sum()
}

/// The verdict where the kernel told nothing of `what`.
pub(crate) fn kernel_silent(observed: &Observed, what: &str) -> Verdict {
    match kernel_lines(observed) {
        0 => Verdict::CannotTell("what the kernel said: `dmesg`, or `journalctl -k`".to_owned()),
        lines => Verdict::Clear(format!("0 of {lines} lines of the kernel log mention {what}")),
    }
}

/// The verdict where the service manager told nothing of `what`.
pub(crate) fn manager_silent(observed: &Observed, what: &str) -> Verdict {
    let lines: u64 = observed.sources.iter().map(|source| source.manager_lines).sum();
    match lines {
        0 => Verdict::CannotTell("what systemd said of its units: `journalctl -b`".to_owned()),
        lines => Verdict::Clear(format!("0 of {lines} lines of systemd mention {what}")),
    }
}

/// Seconds to the millisecond, up to ten minutes; anything else as lengths are printed elsewhere. People compare these
/// with limits that are given in seconds, and with the log beside them.
pub(crate) fn seconds(ns: Ns) -> String {
    const SECOND: Ns = 1_000_000_000;
    match ns {
        0..SECOND => duration(ns),
        _ if ns < 600 * SECOND => format!("{} s", (ns / 1_000_000) as f64 / 1e3),
        _ => duration(ns),
    }
}

/// `, first at …`: when the first was, as its own line has it, is in the quote; how often is said here.
pub(crate) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// An instant as a clock shows it, to the second.
pub(crate) fn clock_face(at: When) -> String {
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

/// Clear where there is a log with times, none of whose lines says that somebody `did` so; `None` without one.
pub(super) fn nobody_gave_up(observed: &Observed, did: &str) -> Option<Verdict> {
    let log = observed
        .spans
        .iter()
        .find(|span| span.kind == SpanKind::LogCovers)?;
    Some(Verdict::Clear(format!(
        "{}, and none says that somebody {did}",
        log.name
    )))
}
