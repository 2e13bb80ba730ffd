//! The account of artefacts: the largest things that they show, whether or not a rule has a name for them.
//!
//! In: [`Observed`]. Out: lines, the first of which is what a person would point at. Each file beside this one knows one kind
//! of evidence and says what is largest in it; here they are put in order. A line states a thing and its size. Whether that
//! is too much is for a rule, or for the reader, to say.

mod statements;

use holdup_evidence::Observed;
use holdup_model::report::AccountLine;

/// Lines that an account has at most.
const MAX_LINES: usize = 12;

/// How a line ranks among others, gravest first. Within one rank the order is that of the share, and then of the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It stops the work: a deadlock, a process that was ended, something used up.
    Stops,
    /// Something waits or was waited for until somebody gave up, by the artefact's own words.
    Waits,
    /// A resource is used for nearly all of the time, or somebody queues for it.
    Saturated,
    /// Something failed or was slow, by the artefact's own words.
    Failed,
    /// The largest of its kind, with nothing to measure it by.
    Largest,
    /// It is within what is usual.
    Ordinary,
}

/// A line, and how it ranks.
#[derive(Debug, Clone, PartialEq)]
struct Ranked {
    rank: Rank,
    line: AccountLine,
}

/// The account of what was read.
#[must_use]
pub fn account(observed: &Observed) -> Vec<AccountLine> {
    let mut all = Vec::new();
    statements::add(observed, &mut all);
    all.sort_by(|one, other| {
        let share = |ranked: &Ranked| ranked.line.share.unwrap_or(0.0);
        one.rank
            .cmp(&other.rank)
            .then(share(other).total_cmp(&share(one)))
            .then(other.line.ns.cmp(&one.line.ns))
    });
    all.truncate(MAX_LINES);
    all.into_iter().map(|ranked| ranked.line).collect()
}
