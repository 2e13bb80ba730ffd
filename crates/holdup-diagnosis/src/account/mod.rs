//! The account of artefacts: the largest things that they show, whether or not a rule has a name for them.
//!
//! In: [`Observed`]. Out: lines, the first of which is what a person would point at. Each file beside this one knows one kind
//! of evidence and says what is largest in it; here they are put in order. A line states a thing and its size. Whether that
//! is too much is for a rule, or for the reader, to say.

mod devices;
mod first;
mod interfaces;
mod known;
mod lead;
mod memory;
mod near;
mod pauses;
mod processes;
mod processors;
mod sessions;
mod spans;
mod statements;
mod stops;
mod threads;
mod values;

use holdup_evidence::observed::Quote;
use holdup_evidence::{Ns, Observed};
use holdup_model::report::{AccountBasis, AccountLine, AccountOutcome};
use holdup_model::title::Title;

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
    /// Somebody warns, by the artefact's own words.
    Warned,
    /// Nothing was written for so long: there may have been nothing to do.
    Silence,
    /// It is within what is usual, by a norm that the line names.
    Ordinary,
}

impl Rank {
    fn basis(self) -> AccountBasis {
        match self {
            Rank::Stops | Rank::Waits | Rank::Failed | Rank::Warned => AccountBasis::Reported,
            Rank::Saturated => AccountBasis::Saturated,
            Rank::Largest | Rank::Silence => AccountBasis::Largest,
            Rank::Ordinary => AccountBasis::WithinNorm,
        }
    }
}

/// A line, and how it ranks.
#[derive(Debug, Clone, PartialEq)]
struct Ranked {
    rank: Rank,
    /// Whether it is a known cause of what else the artefact shows, before which no other of its rank comes.
    leads: bool,
    /// Whether others of its rank say more, however short they were: it is a sum, or names nobody.
    behind: bool,
    line: AccountLine,
}

impl Ranked {
    /// A line about a thing, with neither share nor length.
    fn new(
        rank: Rank,
        what: impl Into<String>,
        text: impl Into<Title>,
        (observed, quote): (&Observed, &Quote),
    ) -> Ranked {
        let text = text.into();
        let clauses: Vec<String> = text.clauses().map(str::to_owned).collect();
        Ranked {
            rank,
            leads: false,
            behind: false,
            line: AccountLine {
                what: what.into(),
                ns: None,
                share: None,
                headline: (!clauses.is_empty()).then(|| text.first().to_owned()),
                clauses,
                text: text.into(),
                source: observed.place(quote),
                basis: rank.basis(),
            },
        }
    }

    /// How much of what there is of its kind.
    fn share(mut self, share: f64) -> Ranked {
        self.line.share = Some(share.clamp(0.0, 1.0));
        self
    }

    /// How long.
    fn ns(mut self, ns: Ns) -> Ranked {
        self.line.ns = Some(ns);
        self
    }
}

/// The account of what was read, and what it comes to where no rule finds trouble; `None` where there is nothing to judge.
#[must_use]
pub fn judged(observed: &Observed) -> (Vec<AccountLine>, Option<AccountOutcome>) {
    let ranked = ranked(observed);
    let outcome = ranked.first().map(|first| match first.rank {
        Rank::Ordinary => AccountOutcome::Healthy,
        _ => AccountOutcome::CannotTell,
    });
    (ranked.into_iter().map(|ranked| ranked.line).collect(), outcome)
}

/// The lines alone.
#[cfg(test)]
fn account(observed: &Observed) -> Vec<AccountLine> {
    judged(observed).0
}

/// The lines, gravest first.
fn ranked(observed: &Observed) -> Vec<Ranked> {
    let mut all = Vec::new();
    // Of equals the first stays first: a unit that did not stop is why its processes were killed.
    stops::add(observed, &mut all);
    statements::add(observed, &mut all);
    // Of equals the first stays first: what swaps is busy because of that.
    memory::add(observed, &mut all);
    processors::add(observed, &mut all);
    devices::add(observed, &mut all);
    interfaces::add(observed, &mut all);
    sessions::add(observed, &mut all);
    processes::add(observed, &mut all);
    spans::add(observed, &mut all);
    pauses::add(observed, &mut all);
    threads::add(observed, &mut all);
    all.sort_by(|one, other| {
        let share = |ranked: &Ranked| ranked.line.share.unwrap_or(0.0);
        one.rank
            .cmp(&other.rank)
            .then(other.leads.cmp(&one.leads))
            .then(one.behind.cmp(&other.behind))
            .then(share(other).total_cmp(&share(one)))
            .then(other.line.ns.cmp(&one.line.ns))
    });
    all.truncate(MAX_LINES);
    all
}
