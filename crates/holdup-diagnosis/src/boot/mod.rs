//! How a machine came up, from its logs and from what its service manager says of itself.
//!
//! In: [`Observed`], of this machine or of another's files. Out: [`Boot`], the part of a report that only `holdup boot` has, and
//! what of it is proved to have been a wait ([`attribute`]). The rules below `rules/boot` and `rules/random` judge by the same
//! [`waits`], so that the headline and the findings can't differ. Nothing here needs a service manager: from a kernel log alone
//! there is a time line and when the generator was seeded.

pub(crate) mod chain;
mod milestones;
mod origin;
pub(crate) mod seeding;
#[cfg(test)]
mod tests;
pub(crate) mod units;
pub(crate) mod waits;

use crate::rules::{duration, logs};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Span, SpanKind, UnitEvent, What};
use holdup_evidence::{Ns, Observed};
use holdup_model::attributed::{Attributed, Tally};
use holdup_model::report::MilestoneKind;
use holdup_model::report::{Boot, BootPhase, BootWait, Milestone};
use origin::Origin;
use waits::{For, Waited};

const SECOND: Ns = 1_000_000_000;

/// From which length on a wait is worth the headline, nanoseconds, and from which part of the boot.
const HEADLINE: Ns = SECOND;
const HEADLINE_PART: Ns = 10;

/// From which length on a hole in the chain is worth it, nanoseconds: a second or two is usual on a slow machine.
const HOLE: Ns = 5 * SECOND;

/// How late the seeding is trouble although nobody is known to have waited for it, nanoseconds: as the rule has it.
const LATE: Ns = 30 * SECOND;

/// What systemd calls the parts of a boot that begin with the kernel's first line.
const OF_KERNEL: [&str; 3] = ["kernel", "initrd", "userspace"];

/// Tells the boot.
#[must_use]
pub fn of(observed: &Observed) -> Boot {
    let clock = Clock::of(observed);
    let origin = Origin::of(observed);
    let milestones = origin.map_or(Vec::new(), |origin| milestones::all(observed, &clock, &origin));
    let phases = phases(observed);
    let chain = chain::units(observed);
    let holes = chain::holes(observed, &clock);
    let mut waited = waits::all(observed, &clock);
    // What is on the same clock and has no place in the boot came later.
    waited.retain(|wait| {
        origin.is_none_or(|origin| {
            let known = clock.same_boot(origin.quote, &wait.began.quote) == Some(true);
            !known || origin.since(&clock, wait.began).is_some()
        })
    });
    let since = |wait: &Waited<'_>| origin.and_then(|origin| origin.since(&clock, wait.began));
    let took = took(observed, &clock, origin.as_ref(), &milestones, &phases);
    let release = observed.happenings.iter().rev().find_map(|one| match &one.what {
        What::Kernel(holdup_evidence::observed::KernelEvent::Boot { release, .. }) if !release.is_empty() => {
            Some(release.clone())
        }
        _ => None,
    });
    let mut boot = Boot {
        verdict: String::new(),
        release,
        host: observed.sources.iter().find_map(|source| source.host.clone()),
        took_ns: took.as_ref().map(|took| took.ns),
        at_least: took.as_ref().is_some_and(|took| took.at_least),
        until: took.as_ref().map(|took| took.until.clone()),
        seeded_ns: at(&milestones, &MilestoneKind::RandomSeeded),
        from_kernel: origin.is_some_and(|origin| origin.of_kernel),
        taken_late: origin
            .and_then(|origin| origin.line)
            .is_some_and(|line| clock.is_at_least(line)),
        phases,
        milestones,
        waits: waited
            .iter()
            .map(|wait| BootWait {
                unit: match wait.what {
                    For::Device => waits::device_path(wait.unit),
                    _ => wait.unit.to_owned(),
                },
                cause: wait.what.cause(),
                text: wait.words(),
                ns: wait.ns,
                began_ns: since(wait),
                source: observed.place(&wait.began.quote),
                ended: observed.place(&wait.ended.quote),
            })
            .collect(),
        chain,
        holes,
        apart: apart_from(observed, &clock, origin.as_ref()),
        missing: Vec::new(),
        randomness: Vec::new(),
    };
    let lost = origin.is_some_and(|origin| origin.of_kernel && origin.line.is_none());
    boot.verdict = verdict(&boot, took.as_ref(), &waited, lost);
    boot
}

fn at(milestones: &[Milestone], what: &MilestoneKind) -> Option<Ns> {
    let found = milestones.iter().find(|one| one.what == *what);
    found.map(|one| one.at_ns)
}

/// How long the boot took, and what tells.
#[derive(Debug)]
struct Took {
    ns: Ns,
    until: String,
    /// Whether it may have gone on.
    at_least: bool,
    /// Whether it counts from when systemd began and not from the kernel's first line.
    of_manager: bool,
}

fn took(
    observed: &Observed,
    clock: &Clock<'_>,
    origin: Option<&Origin<'_>>,
    milestones: &[Milestone],
    phases: &[BootPhase],
) -> Option<Took> {
    let parts = phases
        .iter()
        .filter(|phase| OF_KERNEL.contains(&phase.name.as_str()));
    let sum: Ns = parts.map(|phase| phase.ns).fold(0, Ns::saturating_add);
    let took = |ns, until: &str, at_least| Took {
        ns,
        until: until.to_owned(),
        at_least,
        of_manager: false,
    };
    if sum > 0 {
        return Some(took(sum, "systemd had finished", false));
    }
    for target in ["graphical.target", "multi-user.target"] {
        if let Some(ns) = at(milestones, &MilestoneKind::Target(target.to_owned())) {
            return Some(took(ns, &format!("{target} was reached"), false));
        }
    }
    let chain = chain::units(observed);
    if let Some(last) = chain.iter().max_by_key(|unit| unit.reached_ns) {
        return Some(Took {
            ns: last.reached_ns,
            until: format!("{} was reached", last.unit),
            at_least: false,
            of_manager: true,
        });
    }
    // Whatever came last: it took that long, and perhaps longer.
    let origin = origin?;
    let units = observed.happenings.iter().filter_map(|one| {
        let (What::Unit(UnitEvent::Started { unit }) | What::Unit(UnitEvent::TimedOut { unit, .. })) =
            &one.what
        else {
            return None;
        };
        Some((origin.since(clock, one)?, format!("{unit} was up")))
    });
    let steps = milestones
        .iter()
        .filter(|one| one.what != MilestoneKind::RandomSeeded)
        .map(|one| (one.at_ns, format!("\"{}\"", one.text)));
    let seeded = at(milestones, &MilestoneKind::RandomSeeded)
        .map(|ns| (ns, "the random generator was seeded".to_owned()));
    // What a unit says is better known than what the kernel does; without units, whatever came last.
    let mut units = units.peekable();
    let (ns, until) = match units.peek() {
        Some(_) => units.chain(seeded).max_by_key(|(ns, _)| *ns)?,
        None => steps.chain(seeded).max_by_key(|(ns, _)| *ns)?,
    };
    (ns > 0).then(|| took(ns, &until, true))
}

/// The parts of the boot as systemd has them, of whichever artefact tells them last.
fn phases(observed: &Observed) -> Vec<BootPhase> {
    let all = || {
        observed
            .spans
            .iter()
            .filter(|span| span.kind == SpanKind::BootPhase)
    };
    let Some(last) = all().next_back() else {
        return Vec::new();
    };
    let same = |span: &&Span| span.quote == last.quote;
    all()
        .filter(same)
        .map(|span| BootPhase {
            name: span.name.clone(),
            ns: span.ns,
        })
        .collect()
}

/// Artefacts with times that have no place on this boot's time line.
fn apart_from(observed: &Observed, clock: &Clock<'_>, origin: Option<&Origin<'_>>) -> Vec<String> {
    let Some(origin) = origin else { return Vec::new() };
    let mut apart = Vec::new();
    for (number, source) in (0..).zip(&observed.sources) {
        let mut own = observed
            .happenings
            .iter()
            .filter(|one| one.quote.source == number)
            .peekable();
        if own.peek().is_some() && !own.any(|one| origin.since(clock, one).is_some()) {
            apart.push(source.name.clone());
        }
    }
    apart
}

/// The headline.
fn verdict(boot: &Boot, took: Option<&Took>, waited: &[Waited<'_>], lost: bool) -> String {
    let whole = took.map(|took| {
        let ns = duration(took.ns);
        match (took.of_manager, took.at_least) {
            (true, _) => format!("systemd took {ns} until {}", took.until),
            (false, true) => format!("The boot took {ns} at least, until {}", took.until),
            (false, false) => format!("The boot took {ns}"),
        }
    });
    let part = |words: &str, ns: Ns| match &whole {
        Some(whole) => format!("{whole}; {} of it {words}.", tenths(ns)),
        None => format!("{} of the boot {words}.", tenths(ns)),
    };
    let longest = waited.iter().find(|wait| {
        let of_boot =
            took.is_none_or(|took| wait.ns >= took.ns / HEADLINE_PART && wait.ns <= took.ns + 2 * SECOND);
        wait.ns >= HEADLINE && of_boot
    });
    if let Some(wait) = longest {
        let words = match wait.what {
            For::Device => format!(
                "waiting for {}, which did not appear",
                waits::device_path(wait.unit)
            ),
            For::Network => format!("waiting for the network to be online ({})", wait.unit),
            For::Seeding | For::Unknown => format!("{} {}", wait.unit, wait.words()),
        };
        return part(&words, wait.ns);
    }
    if let Some(hole) = boot.holes.first().filter(|hole| hole.ns >= HOLE) {
        let words = format!(
            "passed between {} and {}, and no unit of the critical chain was starting",
            hole.after, hole.unit
        );
        return part(&words, hole.ns);
    }
    if let Some(ns) = boot.seeded_ns.filter(|ns| *ns >= LATE) {
        return format!(
            "The random generator was seeded {} after the kernel's first line; its waiters are not in the \
             log.",
            logs::seconds(ns)
        );
    }
    let pause = boot
        .milestones
        .iter()
        .filter(|one| one.what == MilestoneKind::Pause)
        .count();
    match (whole, pause) {
        (Some(whole), 0) => format!("{whole}. No hold-up found."),
        (Some(whole), _) => format!("{whole}; the kernel logged nothing for a part of it, see below."),
        (None, _) if lost => {
            "The kernel log no longer covers the boot, and there is no other source.".to_owned()
        }
        (None, _) => "The duration of the boot is not known.".to_owned(),
    }
}

/// Seconds to the tenth, up to ten minutes: a part of a boot that people compare with a limit of 90 or 120 s.
fn tenths(ns: Ns) -> String {
    let tenths = (ns + SECOND / 20) / (SECOND / 10);
    match (ns / SECOND, tenths % 10) {
        (10..600, 0) => format!("{} s", tenths / 10),
        (10..600, rest) => format!("{}.{rest} s", tenths / 10),
        _ => duration(ns),
    }
}

/// Gives the time that is proved to its causes: no instant to two of them; where waits overlap the longest has it.
pub fn attribute(observed: &Observed, boot: &Boot, attributed: &mut Attributed) {
    let Some(took) = boot.took_ns else { return };
    attributed.elapsed = took;
    let clock = Clock::of(observed);
    let waits = waits::all(observed, &clock);
    let Some(axis) = waits.first() else { return };
    let mut given: Vec<(i128, i128)> = Vec::new();
    let mut left = i128::from(took);
    for wait in &waits {
        let (Some(begin), Some(end)) = (
            clock.between(axis.began, wait.began),
            clock.between(axis.began, wait.ended),
        ) else {
            continue;
        };
        let free = free(begin, end, &given).min(left);
        if free <= 0 {
            continue;
        }
        given.push((begin, end));
        left -= free;
        let tally: &mut Tally = attributed.path.entry(wait.what.cause()).or_default();
        let ns = Ns::try_from(free).unwrap_or(0);
        tally.ns = tally.ns.saturating_add(ns);
        tally.count += 1;
        tally.max = tally.max.max(ns);
    }
}

/// How much of an interval is in none of these.
fn free(begin: i128, end: i128, given: &[(i128, i128)]) -> i128 {
    let mut given: Vec<(i128, i128)> = given.to_vec();
    given.sort_unstable();
    let (mut at, mut free) = (begin, 0);
    for (from, to) in given {
        if from > at {
            free += from.min(end) - at.min(end);
        }
        at = at.max(to);
    }
    free + (end - at).max(0)
}
