//! Who waits for whom among the sessions of a database.
//!
//! In: what a server's log, its list of sessions or a list of processes says of them. Out: for each session its longest wait,
//! and the sessions at the root: those that have a lock and wait for none at the same time. Only what the server says of who
//! has a lock is followed.

use super::clock::Clock;
use holdup_evidence::observed::{DatabaseServer, Happening, SeenSession, SessionDoing, What};
use holdup_evidence::{Ns, Observed};
use std::collections::{BTreeMap, BTreeSet};

/// Sessions that are followed from one that waits to the root: a chain of more is a circle.
const MAX_CHAIN: usize = 64;

/// The state of a session at one time, as an artefact reports it.
#[derive(Debug, Clone, Copy)]
pub struct SessionRecord<'a> {
    /// The session.
    pub session: &'a SeenSession,
    /// The line of the artefact that reports it.
    pub happening: &'a Happening,
}

impl SessionRecord<'_> {
    /// How long it waited; 0 where the artefact does not report it.
    pub fn waited(&self) -> Ns {
        self.session.doing_ns.unwrap_or(0)
    }
}

/// All sessions of the artefacts.
#[derive(Debug)]
pub struct Sessions<'a> {
    /// Everything, in the order of the artefacts.
    pub all: Vec<SessionRecord<'a>>,
    clock: Clock<'a>,
    /// Places in `all`, by session.
    of: BTreeMap<Id<'a>, Vec<usize>>,
    /// Of each session its longest wait for a lock.
    waits: BTreeMap<Id<'a>, SessionRecord<'a>>,
}

type Id<'a> = (DatabaseServer, &'a str);

/// Sessions that wait behind the same ones.
#[derive(Debug)]
pub struct Queue<'a> {
    /// The ids of those at the root; empty where nothing tells who has the lock.
    pub roots: Vec<&'a str>,
    /// The longest first.
    pub waits: Vec<SessionRecord<'a>>,
}

impl<'a> Sessions<'a> {
    /// Of all artefacts.
    pub fn of(observed: &'a Observed) -> Sessions<'a> {
        let all = observed
            .happenings
            .iter()
            .filter_map(|happening| match &happening.what {
                What::Session(session) => Some(SessionRecord { session, happening }),
                _ => None,
            });
        let mut sessions = Sessions {
            all: all.collect(),
            clock: Clock::of(observed),
            of: BTreeMap::new(),
            waits: BTreeMap::new(),
        };
        for (place, one) in sessions.all.iter().enumerate() {
            let id = (one.session.server, one.session.id.as_str());
            sessions.of.entry(id).or_default().push(place);
            let waits = matches!(
                one.session.doing,
                SessionDoing::Waits | SessionDoing::Waited | SessionDoing::Deadlocked
            );
            let named = !one.session.id.is_empty() && !one.session.lock.is_empty()
                || one.session.doing == SessionDoing::Waits;
            if !(waits && named) {
                continue;
            }
            // A log says who has the lock when a wait has lasted for a while, and how long it took when it is over.
            let known = sessions.waits.get(&id);
            if known.is_none_or(|known| known.waited() < one.waited()) {
                sessions.waits.insert(id, *one);
            }
        }
        sessions
    }

    /// Whether a wait was over when the last line about it was written.
    pub fn over(&self, wait: &SessionRecord<'a>) -> bool {
        let session = wait.session;
        let gave_up = || self.doing(session.server, &session.id, SessionDoing::GaveUp);
        session.doing != SessionDoing::Waits
            || gave_up().is_some_and(|end| {
                end.happening.quote.source == wait.happening.quote.source
                    && end.happening.quote.line > wait.happening.quote.line
            })
    }

    /// How many sessions wait, or have waited, for a lock.
    pub fn waiting(&self) -> usize {
        self.waits.len()
    }

    /// The longest wait for a lock.
    pub fn longest(&self) -> Option<Ns> {
        self.waits.values().filter_map(|one| one.session.doing_ns).max()
    }

    /// What was reported of a session that it did, with this.
    pub fn doing(&self, server: DatabaseServer, id: &str, doing: SessionDoing) -> Option<SessionRecord<'a>> {
        let mut all = self.records(server, id).into_iter().rev();
        all.find(|one| one.session.doing == doing)
    }

    /// All that was reported of a session, in order.
    fn records(&self, server: DatabaseServer, id: &str) -> Vec<SessionRecord<'a>> {
        let places = self.of.get(&(server, id)).into_iter().flatten();
        places.filter_map(|place| self.all.get(*place).copied()).collect()
    }

    /// Sessions of a server that do this.
    pub fn that(
        &self,
        server: DatabaseServer,
        doing: SessionDoing,
    ) -> impl Iterator<Item = SessionRecord<'a>> {
        let all = self.all.iter().copied();
        all.filter(move |one| one.session.server == server && one.session.doing == doing)
    }

    /// Those that wait, by whom they wait for in the end; the queue with most waiting first.
    pub fn queues(&self) -> Vec<Queue<'a>> {
        let mut queues: BTreeMap<(DatabaseServer, Vec<&'a str>), Vec<SessionRecord<'a>>> = BTreeMap::new();
        for ((server, _), wait) in &self.waits {
            queues
                .entry((*server, self.roots(*wait)))
                .or_default()
                .push(*wait);
        }
        let mut queues: Vec<Queue<'a>> = queues
            .into_iter()
            .map(|((_, roots), mut waits)| {
                waits.sort_by_key(|one| std::cmp::Reverse(one.waited()));
                Queue { roots, waits }
            })
            .collect();
        queues.sort_by_key(|queue| {
            std::cmp::Reverse(
                queue
                    .waits
                    .iter()
                    .map(SessionRecord::waited)
                    .fold(0, Ns::saturating_add),
            )
        });
        queues
    }

    /// Who has, in the end, what a session waits for.
    fn roots(&self, wait: SessionRecord<'a>) -> Vec<&'a str> {
        let mut roots = BTreeSet::new();
        let mut seen = BTreeSet::from([wait.session.id.as_str()]);
        let mut next = vec![wait];
        while let Some(waits) = next.pop() {
            for holder in self.holders(waits) {
                if !seen.insert(holder) || seen.len() > MAX_CHAIN {
                    continue;
                }
                let own = self.waits.get(&(waits.session.server, holder));
                match own.filter(|own| self.at_once(waits, **own)) {
                    Some(own) => next.push(*own),
                    None => {
                        roots.insert(holder);
                    }
                }
            }
        }
        roots.into_iter().collect()
    }

    /// Who had the lock of a wait, as any line about that wait tells.
    pub fn holders(&self, wait: SessionRecord<'a>) -> Vec<&'a str> {
        let of = wait.session;
        let same = self.records(of.server, &of.id).into_iter().filter(|one| {
            let session = one.session;
            !session.held_by.is_empty()
                && (session.lock.is_empty() || of.lock.is_empty() || begins_alike(&session.lock, &of.lock))
                && self.at_once(*one, wait)
        });
        let holders: BTreeSet<&str> = same
            .flat_map(|one| one.session.held_by.iter().map(String::as_str))
            .collect();
        holders.into_iter().collect()
    }

    /// Whether two waits can have lasted at the same time. A list of sessions is of one instant.
    fn at_once(&self, first: SessionRecord<'a>, second: SessionRecord<'a>) -> bool {
        let Some(later) = self.clock.between(first.happening, second.happening) else {
            return first.happening.quote.source == second.happening.quote.source
                || first.happening.at.is_none()
                || second.happening.at.is_none();
        };
        // When the second was reported, by when the first was; each began as long before as it had lasted. What still waited
        // when it was reported went on.
        let goes_on = |record: &SessionRecord<'_>| record.session.doing == SessionDoing::Waits;
        let (of_first, of_second) = (i128::from(first.waited()), i128::from(second.waited()));
        (goes_on(&first) || later - of_second <= 0) && (goes_on(&second) || -of_first <= later)
    }
}

/// One is what the other says with more behind it: the table that a lock is about is not always told.
fn begins_alike(first: &str, second: &str) -> bool {
    first.starts_with(second) || second.starts_with(first)
}
