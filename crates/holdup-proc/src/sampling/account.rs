//! Where a thread's time went between two looks at it.
//!
//! The kernel counts how long a thread ran and queued, so how long it was blocked is known to the nanosecond. In what it was
//! blocked is seen at the looks alone. If the thread has not run from one look to the next, both fall into one and the same
//! wait, and that is certain. Else what it was blocked in between is dealt out, each look standing for half of the interval on
//! either side of it: an estimate, and each piece says how much of it is one ([`Piece::doubt`]).
//!
//! In: looks, in the order of time. Out: [`Piece`]s whose lengths, with the CPU and queue time, tile the thread's life. Nothing
//! here reads anything.

use super::clocks::Counted;
use holdup_evidence::{Clock, Ns};

/// How far the kernel's count of a running thread's time may be behind, in nanoseconds: it is brought up to date at least at
/// every tick, of which there are 100 a second at the slowest.
const TICK: Ns = 10_000_000;

/// For so long, in nanoseconds, a thread that is seen running again and again, and blocks in between, is left unplaced in the hope
/// that it is seen in what it blocks in.
const HOPE: Ns = 1_000_000_000;

/// For so long, in nanoseconds, a thread that was seen running is taken to run on, where nobody can ask any more. Longer than that it is not
/// known what it did.
const RUNS_ON: Ns = 100_000_000;

/// One look at a thread.
#[derive(Debug, Clone)]
pub struct Look<S> {
    /// When.
    pub at: Ns,
    /// What the kernel had counted.
    pub counted: Counted,
    /// What it waited in; `None` when it ran or queued.
    pub asleep: Option<S>,
}

/// Time that a thread was blocked in one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<S> {
    /// In what; `None` where it was never seen in it.
    pub site: Option<S>,
    /// When it began.
    pub start: Ns,
    /// When it ended.
    pub end: Ns,
    /// How many waits it was.
    pub count: u64,
    /// How much of it rests on looks alone.
    pub doubt: Ns,
    /// Whether its end is that of a wait which was seen: a single one, the last that had been looked at.
    pub seen: bool,
    /// The thread's clock at its end.
    pub clock: Clock,
}

/// What is known from elsewhere of when a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Nothing.
    Anywhere,
    /// Not before this instant.
    NotBefore(Ns),
    /// At this instant, as far as the kernel's counts allow.
    At(Ns),
}

/// When a thread ran, queueing first.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// From when on, and its clock then.
    pub from: (Ns, Clock),
    /// How long it queued.
    pub queued: Ns,
    /// How long it was on a CPU after that.
    pub cpu: Ns,
}

impl Ran {
    /// An instant of it, as near to this one as may be, and the thread's clock then.
    #[must_use]
    pub fn nearest(&self, at: Ns) -> (Ns, Clock) {
        let (from, mut clock) = self.from;
        let passed = at.saturating_sub(from).min(self.queued + self.cpu);
        clock.queued += passed.min(self.queued);
        clock.cpu += passed.saturating_sub(self.queued);
        (from + passed, clock)
    }
}

/// What an interval came to.
#[derive(Debug, Clone)]
pub struct Interval<S> {
    /// Pieces before the thread ran.
    pub before: Vec<Piece<S>>,
    /// From when on it ran and queued, and its clock then.
    pub ran: (Ns, Clock),
    /// How long it queued, and ran, from there on.
    pub queued: Ns,
    /// Time on CPUs after that.
    pub cpu: Ns,
    /// Pieces after it had run; the one that goes on is not among them.
    pub after: Vec<Piece<S>>,
}

impl<S> Interval<S> {
    /// When in it the thread ran.
    #[must_use]
    pub fn running(&self) -> Ran {
        Ran {
            from: self.ran,
            queued: self.queued,
            cpu: self.cpu,
        }
    }
}

/// What a thread waits in now.
#[derive(Debug, Clone)]
struct Asleep<S> {
    site: S,
    since: Ns,
    /// How much of it rests on looks.
    doubt: Ns,
}

/// Time that is not placed yet.
#[derive(Debug, Clone, Copy, Default)]
struct Unplaced {
    cpu: Ns,
    queued: Ns,
    blocked: Ns,
    count: u64,
}

/// A thread's account.
#[derive(Debug, Clone)]
pub struct Account<S> {
    /// Up to when time has been reported; while it sleeps, when that began.
    at: Ns,
    /// When it was looked at last.
    looked: Ns,
    counted: Counted,
    clock: Clock,
    /// What the kernel counted and there was no room for yet.
    late: (Ns, Ns),
    /// What was reported before the kernel counted it: CPU, queued.
    early: (Ns, Ns),
    asleep: Option<Asleep<S>>,
    unplaced: Unplaced,
    last_site: Option<S>,
    /// Whether it was seen running when it was looked at last.
    runs: bool,
    /// CPU time that interrupts took, as far as it is not known yet.
    interrupted: Ns,
}

impl<S: Clone> Account<S> {
    /// Of a thread for which the kernel had counted this much when its life under observation began.
    #[must_use]
    pub fn beginning(born: Ns, counted: Counted) -> Account<S> {
        Account {
            at: born,
            looked: born,
            counted,
            clock: Clock::default(),
            late: (0, 0),
            early: (0, 0),
            asleep: None,
            unplaced: Unplaced::default(),
            last_site: None,
            runs: false,
            interrupted: 0,
        }
    }

    /// Of the CPU time that is reported next, interrupts took so much more.
    pub fn interrupted(&mut self, ns: Ns) {
        self.interrupted = self.interrupted.saturating_add(ns);
    }

    /// What it waits in, since when.
    #[must_use]
    pub fn asleep(&self) -> Option<(&S, Ns)> {
        self.asleep.as_ref().map(|asleep| (&asleep.site, asleep.since))
    }

    /// The same, to add to it what was learnt later.
    pub fn asleep_in(&mut self) -> Option<&mut S> {
        self.asleep.as_mut().map(|asleep| &mut asleep.site)
    }

    /// How often it had run when it was looked at last.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.counted.turns
    }

    /// What the kernel had counted then.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// When it was looked at last.
    #[must_use]
    pub fn looked(&self) -> Ns {
        self.looked
    }

    /// It has not run since the last look: what it waited in, it still does.
    pub fn still(&mut self, at: Ns) {
        if self.asleep.is_some() {
            self.looked = self.looked.max(at);
        }
    }

    /// What it was seen in last, of one that was seen running since, and how often it had blocked by then.
    #[must_use]
    pub fn ran_after(&self) -> Option<(&S, Option<u64>)> {
        let site = self.last_site.as_ref().filter(|_| self.asleep.is_none());
        Some((site?, self.counted.blockings))
    }

    /// When what it was seen waiting in would be told to have ended, by a look and nothing else.
    #[must_use]
    pub fn ended_by(&self, look: Look<S>) -> Option<Ns> {
        let found = self.clone().look(look, Ends::Anywhere);
        let waited = found.before.first().filter(|piece| piece.seen);
        waited.map(|piece| piece.end)
    }

    /// It was looked at. `ends`: when what it had waited in ended.
    pub fn look(&mut self, look: Look<S>, ends: Ends) -> Interval<S> {
        if self.is_uncounted(&look) && ends == Ends::Anywhere {
            self.runs = true;
            return self.nothing();
        }
        self.settle(look, ends)
    }

    fn settle(&mut self, look: Look<S>, ends: Ends) -> Interval<S> {
        let at = look.at.max(self.looked);
        let room = at - self.looked;
        // It sleeps on until then, whatever the counts of a moment later say.
        let slept = match (ends, &self.asleep) {
            (Ends::NotBefore(before), Some(_)) => before.saturating_sub(self.looked).min(room),
            _ => 0,
        };
        let (cpu, queued, mut count) = self.ran(&look, room - slept);
        let mut blocked = room - cpu - queued;
        let old = self.asleep.take();
        self.runs = look.asleep.is_none();
        if look.asleep.is_some() && old.is_none() {
            count = count.max(1);
        }
        let mut more = (0, 0);
        if count == 0 && old.is_none() {
            // It was never blocked: the kernel has not counted all of it yet.
            let queues = cpu == 0 && blocked > 2 * TICK;
            more = if queues { (0, blocked) } else { (blocked, 0) };
            self.early.0 += more.0;
            self.early.1 += more.1;
            blocked = 0;
        }
        let unplaced = Unplaced {
            cpu: self.unplaced.cpu + cpu + more.0,
            queued: self.unplaced.queued + queued + more.1,
            blocked: self.unplaced.blocked + blocked,
            count: self.unplaced.count + count,
        };
        self.looked = at;
        let again = self.again(&look, unplaced, ends).filter(|_| old.is_none());
        if again.is_some() {
            count = unplaced.count - 1;
        }
        let old = old.or(again);
        if old.is_none() && look.asleep.is_none() {
            self.unplaced = unplaced;
            // Somebody was seen to wait for what it did just now, and it is known what it does in between.
            let now = matches!(ends, Ends::At(_)) && self.last_site.is_some();
            if at - self.at > HOPE || unplaced.blocked == 0 || now {
                return self.place();
            }
            return self.nothing();
        }
        self.unplaced = Unplaced::default();
        match (old, look.asleep) {
            (Some(old), new) => self.after_wait(old, new, (unplaced, count), ends),
            (None, new) => {
                let share = unplaced.blocked / unplaced.count.max(1);
                let interval = self.interval(Vec::new(), &unplaced);
                let rest = (unplaced.blocked - share, unplaced.count.saturating_sub(1));
                self.falls_asleep(interval, new, rest, share)
            }
        }
    }

    /// Whether it has run or queued since the last look, and the kernel has counted neither yet: the next look will tell which.
    fn is_uncounted(&self, look: &Look<S>) -> bool {
        let counted = |of: &Counted| (of.cpu, of.queued, of.turns, of.blockings);
        self.asleep.is_none()
            && look.asleep.is_none()
            && counted(&look.counted) == counted(&self.counted)
            && look.at.saturating_sub(self.looked) <= 2 * TICK
    }

    /// What a thread was seen in before it was seen running, if it was in the same again and that is over: what it was for has ended.
    fn again(&self, look: &Look<S>, unplaced: Unplaced, ends: Ends) -> Option<Asleep<S>> {
        let over = matches!(ends, Ends::NotBefore(_)) && unplaced.count > u64::from(look.asleep.is_some());
        let site = self.last_site.clone().filter(|_| over)?;
        Some(Asleep {
            site,
            since: self.at,
            doubt: unplaced.blocked,
        })
    }

    /// A thread that has waited, and has run since or runs now.
    fn after_wait(
        &mut self,
        old: Asleep<S>,
        new: Option<S>,
        (spent, count): (Unplaced, u64),
        ends: Ends,
    ) -> Interval<S> {
        let looked = self.looked - spent.cpu - spent.queued - spent.blocked;
        let count = if new.is_some() { count.max(1) } else { count };
        let even = spent.blocked / (count + 1);
        let mut first = match ends {
            Ends::Anywhere => even,
            Ends::NotBefore(before) => even.max(before.saturating_sub(looked)),
            Ends::At(end) => end.saturating_sub(looked),
        }
        .min(spent.blocked);
        let mut last = if new.is_some() { even } else { 0 };
        let between = count - u64::from(new.is_some());
        if between == 0 {
            match &new {
                Some(_) => last = spent.blocked - first,
                None if matches!(ends, Ends::At(_)) => {}
                None => first = spent.blocked,
            }
        }
        last = last.min(spent.blocked - first);
        let rest = spent.blocked - first - last;
        let with_new = if new.is_some() { rest / 2 } else { 0 };
        let count_new = if new.is_some() { between / 2 } else { 0 };
        let guessed = count > 0;
        let mut before = Vec::new();
        self.last_site = Some(old.site.clone());
        self.piece(
            &mut before,
            (Some(old.site.clone()), looked + first - self.at, 1),
            old.doubt + if guessed { first } else { 0 },
            true,
        );
        let of_old = (Some(old.site), rest - with_new, between - count_new);
        self.piece(&mut before, of_old, rest - with_new, false);
        let interval = self.interval(before, &spent);
        self.falls_asleep(interval, new, (with_new, count_new), last)
    }

    /// The end of an interval in which it may have fallen asleep; `rest`: other waits that are taken for the same.
    fn falls_asleep(
        &mut self,
        mut interval: Interval<S>,
        new: Option<S>,
        rest: (Ns, u64),
        share: Ns,
    ) -> Interval<S> {
        let of_new = (new.clone(), rest.0, rest.1);
        self.piece(&mut interval.after, of_new, rest.0, false);
        self.asleep = new.map(|site| Asleep {
            site,
            since: self.at,
            doubt: share,
        });
        self.last_site = self
            .asleep
            .as_ref()
            .map(|asleep| asleep.site.clone())
            .or(self.last_site.take());
        interval
    }

    fn piece(
        &mut self,
        pieces: &mut Vec<Piece<S>>,
        (site, length, count): (Option<S>, Ns, u64),
        doubt: Ns,
        seen: bool,
    ) {
        if length == 0 && !seen {
            return;
        }
        let start = self.at;
        self.at += length;
        self.clock.blocked += length;
        pieces.push(Piece {
            site,
            start,
            end: self.at,
            count: count.max(1),
            doubt: doubt.min(length),
            seen,
            clock: self.clock,
        });
    }

    /// It runs from here on, for as long as was counted.
    fn interval(&mut self, before: Vec<Piece<S>>, spent: &Unplaced) -> Interval<S> {
        let ran = (self.at, self.clock);
        self.at += spent.cpu + spent.queued;
        self.clock.cpu += spent.cpu;
        self.clock.queued += spent.queued;
        let taken = self.interrupted.min(spent.cpu);
        self.interrupted -= taken;
        self.clock.interrupt += taken;
        Interval {
            before,
            ran,
            queued: spent.queued,
            cpu: spent.cpu,
            after: Vec::new(),
        }
    }

    fn nothing(&self) -> Interval<S> {
        Interval {
            before: Vec::new(),
            ran: (self.at, self.clock),
            queued: 0,
            cpu: 0,
            after: Vec::new(),
        }
    }

    /// What was not placed is taken for what it was last seen in.
    fn place(&mut self) -> Interval<S> {
        let unplaced = std::mem::take(&mut self.unplaced);
        let mut before = Vec::new();
        let of_last = (self.last_site.clone(), unplaced.blocked, unplaced.count);
        self.piece(&mut before, of_last, unplaced.blocked, false);
        self.interval(before, &unplaced)
    }

    /// How long it ran and queued since the last look, and how often it blocked.
    fn ran(&mut self, look: &Look<S>, room: Ns) -> (Ns, Ns, u64) {
        let (now, then) = (&look.counted, &self.counted);
        let since = |now: Ns, then: Ns, late: &mut Ns, early: &mut Ns| {
            let counted = now.saturating_sub(then) + std::mem::take(late);
            let found = counted.min(*early);
            *early -= found;
            counted - found
        };
        let cpu = since(now.cpu, then.cpu, &mut self.late.0, &mut self.early.0);
        let queued = since(now.queued, then.queued, &mut self.late.1, &mut self.early.1);
        let turns = now.turns.saturating_sub(then.turns);
        let count = match (now.blockings, then.blockings) {
            (Some(now), Some(then)) => now.saturating_sub(then),
            _ => turns,
        };
        self.counted = look.counted;
        let ran = cpu.min(room);
        let waited = queued.min(room - ran);
        self.late = (cpu - ran, queued - waited);
        (ran, waited, count)
    }

    /// It has ended at `at`, having been counted so, if that could still be read; `ends` as for a look. Returns its
    /// final clock too.
    pub fn end(&mut self, at: Ns, counted: Option<Counted>, ends: Ends) -> (Interval<S>, Clock) {
        let at = at.max(self.looked);
        let mut interval = match (counted, &self.asleep) {
            // The last time it gave its CPU up was for good.
            (Some(counted), _) => {
                let counted = Counted {
                    blockings: counted.blockings.map(|count| {
                        count
                            .saturating_sub(1)
                            .max(self.counted.blockings.unwrap_or_default())
                    }),
                    ..counted
                };
                self.settle(
                    Look {
                        at,
                        counted,
                        asleep: None,
                    },
                    ends,
                )
            }
            // What it did last is all that is known.
            (None, Some(_)) => {
                let unseen = at - self.looked;
                self.looked = at;
                let mut before = Vec::new();
                if let Some(old) = self.asleep.take() {
                    let length = at - self.at;
                    self.piece(&mut before, (Some(old.site), length, 1), old.doubt + unseen, true);
                }
                self.interval(before, &Unplaced::default())
            }
            (None, None) if self.runs => {
                let unseen = at - self.looked;
                self.unplaced.cpu += unseen.min(RUNS_ON);
                self.unplaced.blocked += unseen.saturating_sub(RUNS_ON);
                self.looked = at;
                self.nothing()
            }
            // It was gone before it could be looked at.
            (None, None) => {
                self.unplaced.blocked += at - self.looked;
                self.looked = at;
                self.nothing()
            }
        };
        let placed = self.place();
        if interval.queued + interval.cpu == 0 && interval.after.is_empty() {
            interval.before.extend(placed.before);
            (interval.ran, interval.queued, interval.cpu) = (placed.ran, placed.queued, placed.cpu);
        } else {
            interval.after.extend(placed.before);
        }
        (interval, self.clock)
    }

    /// Observation is over while it lives on. What it waits in goes on, and is returned apart, with its clock.
    pub fn leave(&mut self, at: Ns) -> (Interval<S>, Option<Piece<S>>, Clock) {
        let at = at.max(self.looked);
        let mut open = Vec::new();
        let interval = match self.asleep.take() {
            Some(asleep) => {
                // It may have run since.
                let doubt = asleep.doubt + (at - self.looked);
                self.looked = at;
                let length = at - self.at;
                let interval = self.nothing();
                self.piece(&mut open, (Some(asleep.site), length, 1), doubt, true);
                interval
            }
            None => {
                self.unplaced.cpu += at - self.looked;
                self.looked = at;
                self.place()
            }
        };
        (interval, open.pop(), self.clock)
    }
}

#[cfg(test)]
mod tests;
