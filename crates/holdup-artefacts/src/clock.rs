//! One clock for several artefacts: which instants of one are which of another.
//!
//! In: [`Observed`]. Out: how far two instants are apart, or that it is not known. Artefacts count from different zeros: the
//! epoch, a wall without a zone, a boot, the start of a process. A zero is known in terms of another only from lines that
//! carry both. Boots are distinguished by what the artefacts say of them (ids, when each began, how long each took to seed its
//! generator), and times since boot are compared only within one boot: two boots look alike, and what happened 105 s
//! after the one says nothing of the other.

use holdup_evidence::observed::{Happening, KernelEvent, Quote, Source, What, When};
use holdup_evidence::{Ns, Observed};

/// The format whose lines have the time at which they were taken, and the kernel's first lines are older than that.
const JOURNAL: &str = "journal";

/// How far two readings of one boot's beginning may be apart, nanoseconds: logs without fractions cut up to a second off
/// each, and the kernel's clock starts some tens of milliseconds late.
const SAME_BOOT: Ns = 2_000_000_000;

/// Nanoseconds by which the wall clock may move against the time since boot before the two can't be converted: rounding,
/// and lines that were taken late.
const STEPPED: Ns = 2_000_000_000;

/// How much later than its boot's beginning a journal can have taken the kernel's first line, nanoseconds: its daemon starts
/// some seconds after the kernel, minutes after it where a disk's check or a password is waited for.
const TAKEN_LATE: Ns = 600_000_000_000;

/// How long a journal's daemon takes to read what was waiting when it started, nanoseconds: a second or two, six were seen on an
/// emulated processor.
const BACKLOG: Ns = 10_000_000_000;

/// What is known of one boot from one artefact.
#[derive(Debug, Clone, Default)]
struct Boot<'a> {
    source: u32,
    from_line: u64,
    id: Option<&'a str>,
    release: &'a str,
    /// When it began, by a clock that outlives it.
    began: Option<When>,
    /// That is when the journal's daemon took the kernel's first line: the boot began before it.
    taken_late: bool,
    /// How long after that its generator was seeded.
    seeded: Option<Ns>,
    /// The same by the last line that tells both.
    last: Option<When>,
}

/// The clocks of all artefacts.
#[derive(Debug)]
pub struct Clock<'a> {
    observed: &'a Observed,
    /// In the order of their places.
    boots: Vec<Boot<'a>>,
}

impl<'a> Clock<'a> {
    /// Learns what the artefacts tell of their clocks.
    #[must_use]
    pub fn of(observed: &'a Observed) -> Clock<'a> {
        let mut happenings: Vec<&Happening> = observed.happenings.iter().collect();
        happenings.sort_by_key(|one| (one.quote.source, one.quote.line));
        let mut boots: Vec<Boot<'a>> = Vec::new();
        // The last thing was the log's own word that another boot begins; the kernel's first line adds to it.
        let mut announced = false;
        for one in happenings {
            let source = one.quote.source;
            if boots.last().is_none_or(|boot| boot.source != source) {
                announced = true;
                boots.push(Boot {
                    source,
                    ..Boot::default()
                });
            }
            if let What::Kernel(KernelEvent::Boot { release, id }) = &one.what {
                if !announced {
                    boots.push(Boot {
                        source,
                        from_line: one.quote.line,
                        ..Boot::default()
                    });
                }
                announced = release.is_empty() && one.at.is_none();
                let Some(boot) = boots.last_mut() else { continue };
                boot.id = id.as_deref().or(boot.id);
                boot.release = release;
                // A line that tells both is asked below.
                if one.since_boot.is_none() {
                    boot.began = one.at.filter(|at| absolute(*at));
                    let format = observed
                        .sources
                        .get(source as usize)
                        .map(|source| source.format.as_str());
                    boot.taken_late = boot.began.is_some() && format == Some(JOURNAL);
                }
            } else {
                announced = false;
            }
            if let Some(boot) = boots.last_mut() {
                boot.learn(one);
            }
        }
        for (number, source) in (0..).zip(&observed.sources) {
            // Whoever took it wrote down both clocks: of the boot that ran then.
            let taken = source
                .taken
                .and_then(|taken| When::Unix(taken.unix?).before(taken.since_boot?));
            let Some(zero) = taken else { continue };
            match boots.iter_mut().rfind(|boot| boot.source == number) {
                Some(boot) => boot.began = boot.began.or(Some(zero)),
                None => boots.push(Boot {
                    source: number,
                    began: Some(zero),
                    ..Boot::default()
                }),
            }
        }
        boots.sort_by_key(|boot| (boot.source, boot.from_line));
        Clock { observed, boots }
    }

    /// How much later the second is than the first, nanoseconds; `None` where that is not known. Each is an instant and
    /// where it was read.
    #[must_use]
    pub fn apart(&self, first: (&Quote, When), second: (&Quote, When)) -> Option<i128> {
        let ((here, earlier), (there, later)) = (first, second);
        let comparable = match (earlier, later) {
            (When::Unix(_), When::Unix(_)) => true,
            (When::Civil(_), When::Civil(_)) => self.same_wall(here, there),
            (When::SinceBoot(_), When::SinceBoot(_)) => self.same_boot(here, there) == Some(true),
            (When::SinceStart(_), When::SinceStart(_)) => here.source == there.source,
            _ => false,
        };
        if comparable {
            return later.since(earlier);
        }
        if matches!((earlier, later), (When::SinceBoot(_), When::SinceBoot(_)))
            && self.contradict(here, there)
        {
            return None;
        }
        let (earlier, later) = (self.absolute(here, earlier)?, self.absolute(there, later)?);
        let walls = matches!((earlier, later), (When::Civil(_), When::Civil(_)));
        if walls && !self.same_wall(here, there) {
            return None;
        }
        later.since(earlier)
    }

    /// Whether two instants are the same within so many nanoseconds; `None` where that is not known.
    #[must_use]
    pub fn same_instant(&self, first: (&Quote, When), second: (&Quote, When), within: Ns) -> Option<bool> {
        let apart = self.apart(first, second)?;
        Some(apart.unsigned_abs() <= u128::from(within))
    }

    /// How long after the beginning of its boot something happened; `None` where its artefact does not tell.
    #[must_use]
    pub fn since_boot(&self, one: &Happening) -> Option<Ns> {
        one.since_boot.or_else(|| {
            let since = one.at?.since(self.boot(&one.quote)?.began?)?;
            Ns::try_from(since).ok()
        })
    }

    /// Whether the beginning of its boot is earlier than its artefact tells, so that [`Clock::since_boot`] is too short.
    #[must_use]
    pub fn is_at_least(&self, one: &Happening) -> bool {
        one.since_boot.is_none() && self.boot(&one.quote).is_some_and(|boot| boot.taken_late)
    }

    /// Whether a line may be older than its artefact has it: it is one of those that were waiting when the journal's daemon
    /// started.
    #[must_use]
    pub fn was_taken_late(&self, one: &Happening) -> bool {
        let first = self.boot(&one.quote).filter(|_| self.is_at_least(one));
        let since = first.and_then(|boot| one.at?.since(boot.began?));
        since.is_some_and(|ns| ns <= i128::from(BACKLOG))
    }

    /// How much later the second happened than the first, nanoseconds; `None` where that is not known. Where both have
    /// their time since one boot, that counts: the time on the wall is when a log's daemon took a line.
    #[must_use]
    pub fn between(&self, first: &Happening, second: &Happening) -> Option<i128> {
        if let (Some(earlier), Some(later)) = (first.since_boot, second.since_boot)
            && self.same_boot(&first.quote, &second.quote) == Some(true)
        {
            return Some(i128::from(later) - i128::from(earlier));
        }
        self.apart((&first.quote, first.at?), (&second.quote, second.at?))
    }

    /// Whether two places are of one boot: proved, disproved, or not known.
    #[must_use]
    pub fn same_boot(&self, first: &Quote, second: &Quote) -> Option<bool> {
        let (Some(one), Some(other)) = (self.boot(first), self.boot(second)) else {
            // Without a word about boots, an artefact is of one.
            return (first.source == second.source).then_some(true);
        };
        if std::ptr::eq(one, other) {
            return Some(true);
        }
        if one.source == other.source {
            return Some(false);
        }
        if let (Some(one), Some(other)) = (one.id, other.id) {
            return Some(one == other);
        }
        let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        if differ(one.release, other.release) || !self.same_host(first, second) {
            return Some(false);
        }
        match (one.taken_late, other.taken_late) {
            (true, false) => return one.is_late_of(other),
            (false, true) => return other.is_late_of(one),
            _ => {}
        }
        let seeded = one.seeded.zip(other.seeded);
        if seeded.is_some_and(|(one, other)| one.abs_diff(other) > SAME_BOOT) {
            return Some(false);
        }
        let began = one.began.zip(other.began);
        let apart = began.and_then(|(one, other)| one.since(other))?;
        Some(apart.unsigned_abs() <= u128::from(SAME_BOOT))
    }

    /// Whether two boots can't be one and yet seem to have begun together: then what is known of them is wrong.
    fn contradict(&self, first: &Quote, second: &Quote) -> bool {
        let began = |quote| self.boot(quote).and_then(|boot| boot.began);
        let apart = began(first)
            .zip(began(second))
            .and_then(|(one, other)| one.since(other));
        let together = apart.is_none_or(|apart| apart.unsigned_abs() <= u128::from(SAME_BOOT));
        together && self.same_boot(first, second) == Some(false)
    }

    /// The boot that a place is in.
    fn boot(&self, quote: &Quote) -> Option<&Boot<'a>> {
        let place = (quote.source, quote.line);
        let after = self
            .boots
            .partition_point(|boot| (boot.source, boot.from_line) <= place);
        let last = after.checked_sub(1).and_then(|last| self.boots.get(last))?;
        (last.source == quote.source).then_some(last)
    }

    /// An instant by a clock that outlives boots and processes.
    fn absolute(&self, quote: &Quote, at: When) -> Option<When> {
        match at {
            When::Unix(_) | When::Civil(_) => Some(at),
            When::SinceBoot(ns) => {
                let boot = self.boot(quote).filter(|boot| !boot.stepped())?;
                boot.began?.after(ns)
            }
            When::SinceStart(ns) => self.source(quote)?.started?.after(ns),
        }
    }

    /// Whether two clocks on the wall are one: artefacts that name different hosts may be in different zones.
    fn same_wall(&self, first: &Quote, second: &Quote) -> bool {
        first.source == second.source || self.same_host(first, second)
    }

    fn same_host(&self, first: &Quote, second: &Quote) -> bool {
        let host = |quote| self.source(quote).and_then(|source| source.host.as_deref());
        match (host(first), host(second)) {
            // One has it with its domain.
            (Some(one), Some(other)) => {
                let name = |host: &'a str| host.split('.').next().unwrap_or_default();
                name(one).eq_ignore_ascii_case(name(other))
            }
            _ => true,
        }
    }

    fn source(&self, quote: &Quote) -> Option<&'a Source> {
        self.observed.sources.get(quote.source as usize)
    }
}

impl Boot<'_> {
    fn learn(&mut self, one: &Happening) {
        let both = one.at.filter(|at| absolute(*at)).zip(one.since_boot);
        if let Some(zero) = both.and_then(|(at, since_boot)| at.before(since_boot)) {
            // A line is taken late, never early: the earliest zero is the right one. The first lines of a boot are taken
            // when the log's daemon starts, later ones at once: if their zero is another, the clock was set.
            let earlier = self
                .began
                .and_then(|began| zero.since(began))
                .is_none_or(|later| later < 0);
            if earlier {
                self.began = Some(zero);
            }
            self.last = Some(zero);
        }
        let seeded = matches!(one.what, What::Kernel(KernelEvent::RandomSeeded { fully: true }));
        if seeded && self.seeded.is_none() {
            let since = || Ns::try_from(one.at?.since(self.began?)?).ok();
            self.seeded = one.since_boot.or_else(since);
        }
    }

    /// Whether it is the other boot, of which it is known how long before the first line that was taken here it began.
    fn is_late_of(&self, other: &Boot<'_>) -> Option<bool> {
        if let Some((here, there)) = self.seeded.zip(other.seeded)
            && here > there.saturating_add(SAME_BOOT)
        {
            return Some(false);
        }
        let late = self.began?.since(other.began?)?;
        if late < -i128::from(SAME_BOOT) || late > i128::from(TAKEN_LATE) {
            return Some(false);
        }
        // The generator was seeded at one instant. Where that was before the first line was taken, it is not known.
        let (here, there) = self.seeded.zip(other.seeded)?;
        let apart = late + i128::from(here) - i128::from(there);
        if apart.unsigned_abs() <= u128::from(SAME_BOOT) {
            return Some(true);
        }
        (here > SAME_BOOT).then_some(false)
    }

    /// Whether the wall clock was set while it ran: its times since boot then have no time on the wall.
    fn stepped(&self) -> bool {
        let apart = self
            .last
            .zip(self.began)
            .and_then(|(last, began)| last.since(began));
        apart.is_some_and(|apart| apart.unsigned_abs() > u128::from(STEPPED))
    }
}

fn absolute(at: When) -> bool {
    matches!(at, When::Unix(_) | When::Civil(_))
}

#[cfg(test)]
mod tests;
