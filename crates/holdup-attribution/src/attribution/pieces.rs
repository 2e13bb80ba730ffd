//! The longest single pieces of time.
//!
//! The problem: there are a million waits a minute, and whoever looks at a picture sees some thousands at most. The choice: those that
//! are longest. Twice as many as that are gathered, then the shorter half goes, and from then on whatever is shorter
//! than what was kept is not even looked at; so a wait costs a comparison.
//!
//! In: pieces, as they are booked, and user stacks of some. Out: at most [`MAX_PIECES`] of them, or fewer where that was asked for.

use super::ended_wait::EndedWait;
use super::ledger::Book;
use super::task_table::{Identity, Named, TaskTable};
use super::thread::Threads;
use super::what::WhatId;
use holdup_evidence::{AskerSample, Ns, Role, Seq, ThreadId, UserStackId, Waker};
use holdup_model::timeline::MAX_PIECES;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Who or what ended a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Nobody: it is no wait, or it goes on.
    Nobody,
    /// A thread that is observed, and what it was called then.
    Thread(ThreadId, Identity),
    /// Another task.
    Task(Named),
    /// Its time ran out.
    Timer,
    /// A device.
    Device,
    /// An interrupt, of a timer or a device.
    Interrupt,
    /// That is not known.
    Unknown,
}

/// A piece of a thread's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Whose.
    pub(super) thread: ThreadId,
    /// What it was called then.
    pub(super) identity: Identity,
    /// What for.
    pub(super) what: WhatId,
    /// Of a wait: its number.
    pub(super) seq: Seq,
    /// When it began, within the observed time.
    pub(super) start: Ns,
    /// When it ended.
    pub(super) end: Ns,
    /// How much longer it was, before observation began.
    pub(super) before: Ns,
    /// Who ended it.
    pub(super) by: By,
    /// Whether it goes on.
    pub(super) open: bool,
}

impl Piece {
    fn length(&self) -> Ns {
        self.end.saturating_sub(self.start)
    }
}

/// A user stack of waits of one call.
#[derive(Debug, Clone, Copy)]
struct Asked {
    first: Seq,
    last: Seq,
    stack: UserStackId,
}

/// Pieces.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    kept: Vec<Piece>,
    /// How many are kept.
    most: usize,
    /// What is shorter is not kept.
    least: Ns,
    /// How many there were.
    count: u64,
    /// Who asked for those that may be kept.
    asked: Vec<(ThreadId, Asked)>,
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::at_most(MAX_PIECES)
    }
}

impl Pieces {
    /// None so far, and so many in the end.
    pub(super) fn at_most(most: usize) -> Pieces {
        Pieces {
            kept: Vec::new(),
            most: most.clamp(1, MAX_PIECES),
            least: 0,
            count: 0,
            asked: Vec::new(),
        }
    }

    /// Counts a piece of this length that is over; whether it may be one to keep.
    pub(super) fn counts(&mut self, ns: Ns) -> bool {
        self.count += 1;
        ns >= self.least
    }

    /// Keeps a piece.
    pub(super) fn keep(&mut self, piece: Piece) {
        self.kept.push(piece);
        if self.kept.len() >= 2 * self.most {
            self.prune();
        }
    }

    /// A user stack of waits that took so long, all in all.
    pub(super) fn asked_by(&mut self, sample: &AskerSample, ns: Ns) {
        if sample.on_cpu || ns < self.least {
            return;
        }
        let asked = Asked {
            first: sample.first.min(sample.seq),
            last: sample.seq,
            stack: sample.stack,
        };
        self.asked.push((sample.thread, asked));
        if self.asked.len() >= 4 * self.most {
            let of_kept = self.threads();
            self.asked.retain(|(thread, _)| of_kept.contains(thread));
            let surplus = self.asked.len().saturating_sub(2 * self.most);
            self.asked.drain(..surplus);
        }
    }

    /// Threads with pieces.
    pub(super) fn threads(&self) -> HashSet<ThreadId> {
        self.kept.iter().map(|piece| piece.thread).collect()
    }

    fn prune(&mut self) {
        if self.kept.len() > self.most {
            let longest = |piece: &Piece| Reverse(piece.length());
            self.kept.select_nth_unstable_by_key(self.most, longest);
            self.kept.truncate(self.most);
            let shortest = self.kept.iter().map(Piece::length).min();
            self.least = shortest.unwrap_or(0).saturating_add(1);
        }
    }

    /// The longest, by thread and begin, each with its user stack where that is known, and how many others there were.
    pub(super) fn into_parts(mut self) -> (Vec<(Piece, Option<UserStackId>)>, u64) {
        self.prune();
        self.kept
            .sort_unstable_by_key(|piece| (piece.thread, piece.start, piece.end));
        let left_out = self.count.saturating_sub(self.kept.len() as u64);
        let mut asked: HashMap<ThreadId, Vec<Asked>> = HashMap::new();
        for (thread, one) in self.asked {
            asked.entry(thread).or_default().push(one);
        }
        for of_thread in asked.values_mut() {
            of_thread.sort_by_key(|one| one.last);
        }
        let stack = |piece: &Piece| {
            let of_thread = asked.get(&piece.thread).filter(|_| piece.seq > 0)?;
            let next = of_thread.partition_point(|one| one.last < piece.seq);
            let one = of_thread.get(next).filter(|one| one.first <= piece.seq)?;
            Some(one.stack)
        };
        let found = self.kept.iter().map(|piece| (*piece, stack(piece)));
        (found.collect(), left_out)
    }
}

impl Book {
    /// Keeps a wait that has been booked at this site. `in_time`: whether it ended when its time was over.
    pub(super) fn keep_wait(
        &mut self,
        ended: &EndedWait,
        site: usize,
        in_time: bool,
        threads: &Threads,
        tasks: &mut TaskTable,
    ) {
        let wait = ended.wait;
        let Some(thread) = threads.get(&wait.thread) else {
            return;
        };
        let counts = ended.waited > 0 && thread.ledger.role != Role::Neighbour;
        if !counts || !self.pieces.counts(ended.waited) {
            return;
        }
        let what = thread.ledger.sites[site].what;
        let piece = Piece {
            thread: wait.thread,
            identity: thread.identity,
            what,
            seq: wait.seq,
            start: ended.until.saturating_sub(ended.waited),
            end: ended.until,
            before: match wait.start < thread.born {
                true => wait.end.saturating_sub(wait.start).saturating_sub(ended.waited),
                false => 0,
            },
            by: By::Unknown,
            open: ended.open,
        };
        let device = self.whats.get(what).cause.id().starts_with("disk.");
        let by = match &wait.waker {
            _ if ended.open => By::Nobody,
            Waker::Thread { thread, .. } => match threads.get(thread) {
                Some(waker) => By::Thread(*thread, waker.identity),
                None => By::Unknown,
            },
            Waker::Outside { task, .. } => By::Task(tasks.named_task(task)),
            Waker::Interrupt { .. } if in_time => By::Timer,
            Waker::Interrupt { socket, .. } if device || socket.is_some() => By::Device,
            Waker::Interrupt { .. } => By::Interrupt,
            Waker::Unknown => By::Unknown,
        };
        self.pieces.keep(Piece { by, ..piece });
    }
}
