//! From where the times of a boot are counted.
//!
//! In: [`Observed`] and its [`Clock`]. Out: the kernel's first line, or the first line that tells a time, and how long after
//! that anything happened.

use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, KernelEvent, Quote, What, When};
use holdup_evidence::{Ns, Observed};

/// How long after the kernel's first line something is of the boot, nanoseconds: slower boots are rare, what came later is of
/// the machine at work, or, where nothing but a clock on the wall joins two artefacts, perhaps of another boot.
const OF_BOOT: Ns = 900 * 1_000_000_000;

/// Where a boot begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) quote: &'a Quote,
    /// Zero, on the clock of that place.
    at: When,
    /// Whether that is the kernel's first line; else it is the first line there is.
    pub(crate) of_kernel: bool,
    /// The line that tells the kernel's release.
    pub(crate) line: Option<&'a Happening>,
}

impl<'a> Origin<'a> {
    /// The last boot's, of the artefact in which the kernel says most.
    pub(crate) fn of(observed: &'a Observed) -> Option<Origin<'a>> {
        let lines = |one: &Happening| {
            let source = observed.sources.get(one.quote.source as usize);
            source.map_or(0, |source| source.kernel_lines)
        };
        let all = || observed.happenings.iter();
        let boots = all().filter(|one| is_boot(one) && zero(one).is_some());
        if let Some(line) = boots.max_by_key(|one| (lines(one), one.quote.line)) {
            return Some(Origin {
                quote: &line.quote,
                at: zero(line)?,
                of_kernel: true,
                line: Some(line),
            });
        }
        // Its beginning is no longer in the log, and the time since then is.
        let since_boot = all().filter(|one| one.since_boot.is_some() && zero(one).is_some());
        if let Some(one) = since_boot.max_by_key(|one| lines(one)) {
            return Some(Origin {
                quote: &one.quote,
                at: zero(one)?,
                of_kernel: true,
                line: None,
            });
        }
        let first = all().find(|one| one.at.is_some() && matches!(one.what, What::Unit(_)))?;
        Some(Origin {
            quote: &first.quote,
            at: first.at?,
            of_kernel: false,
            line: None,
        })
    }

    /// How long after it something of the boot happened; `None` where that is not known, or it was before, long after, or in
    /// another boot.
    pub(crate) fn since(&self, clock: &Clock<'_>, one: &Happening) -> Option<Ns> {
        let same = clock.same_boot(self.quote, &one.quote);
        match same {
            Some(false) => return None,
            Some(true) if self.of_kernel && one.since_boot.is_some() => {
                return one.since_boot.filter(|since| *since <= OF_BOOT);
            }
            _ => {}
        }
        let apart = clock.apart((self.quote, self.at), (&one.quote, one.at?))?;
        Ns::try_from(apart).ok().filter(|apart| *apart <= OF_BOOT)
    }
}

fn is_boot(one: &Happening) -> bool {
    matches!(one.what, What::Kernel(KernelEvent::Boot { .. }))
}

/// The beginning of the boot on the clock of a line.
fn zero(one: &Happening) -> Option<When> {
    match (one.at, one.since_boot) {
        (Some(at), Some(since)) => at.before(since),
        (None, Some(_)) => Some(When::SinceBoot(0)),
        (Some(at), None) if is_boot(one) => Some(at),
        _ => None,
    }
}
