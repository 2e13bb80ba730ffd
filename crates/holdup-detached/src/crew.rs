//! Many questions, answered by a few children: one that is stuck does not keep the others from what is left.
//!
//! The first question starts one child. When it is silent for too long, another child takes over what the first has not begun with.
//! So the usual case costs one fork, and each stuck question costs one child. In: questions. Out: answers, in any order.

use crate::{Answer, Confinement, Detached, Failed};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// A child that is silent for so long gets company. Most answers take less than a millisecond; on a busy machine a child waits for a CPU.
const PATIENCE: Duration = Duration::from_millis(50);

/// Questions that a child is given ahead of its answers, so that it need not wait for us. They fit into the buffer of a socket.
const AHEAD: usize = 32;

type Start<Q, A> = dyn Fn() -> io::Result<Detached<(u64, Q), (u64, A)>>;

/// Children that answer questions of one kind.
pub struct Crew<Q, A> {
    start: Box<Start<Q, A>>,
    /// What a question is about: a process, or a file.
    about: fn(&Q) -> String,
    children_max: usize,
    started: usize,
    members: Vec<Member<Q, A>>,
    /// Questions without an answer, by number.
    open: BTreeMap<u64, Q>,
    /// Those of them that no child has, or that a silent child has not begun with.
    left: VecDeque<u64>,
    next: u64,
}

struct Member<Q, A> {
    child: Detached<(u64, Q), (u64, A)>,
    /// What it has to answer, in order.
    given: VecDeque<u64>,
    /// When it answered last, or began to have something to answer.
    since: Instant,
    silent: bool,
}

impl<Q, A> Crew<Q, A>
where
    Q: Clone + Serialize + DeserializeOwned + 'static,
    A: Serialize + DeserializeOwned + 'static,
{
    /// A crew of at most so many children. `begin` runs in each of them, and makes what answers. `about` says what a question is about,
    /// for the list of those left behind.
    pub fn new<W, B>(
        confinement: Confinement,
        children_max: usize,
        about: fn(&Q) -> String,
        begin: B,
    ) -> Crew<Q, A>
    where
        B: Fn() -> W + 'static,
        W: FnMut(Q) -> A,
    {
        let start = move || {
            Detached::start(&confinement, || {
                let mut work = begin();
                move |(number, question): (u64, Q), _| Answer::from((number, work(question)))
            })
        };
        Crew {
            start: Box::new(start),
            about,
            children_max,
            started: 0,
            members: Vec::new(),
            open: BTreeMap::new(),
            left: VecDeque::new(),
            next: 0,
        }
    }

    /// Adds a question. A child begins with it at once, if one has time.
    pub fn ask(&mut self, question: Q) {
        self.open.insert(self.next, question);
        self.left.push_back(self.next);
        self.next += 1;
        self.hand_out();
    }

    /// The next answer, and its question; `None` when there is none more, or none came before `until`.
    pub fn answer(&mut self, until: Instant) -> Option<(Q, A)> {
        while !self.open.is_empty() {
            self.hand_out();
            if self.members.is_empty() {
                return None;
            }
            self.wait(until);
            if let Some(answered) = self.take() {
                return Some(answered);
            }
            self.note_silent();
            if Instant::now() >= until {
                return None;
            }
        }
        None
    }

    /// Questions that have no answer.
    pub fn unanswered(&self) -> impl Iterator<Item = &Q> {
        self.open.values()
    }

    /// Gives each child that answers some of what is left; starts one where there is none.
    fn hand_out(&mut self) {
        self.left.retain(|number| self.open.contains_key(number));
        if self.left.is_empty() {
            return;
        }
        let all_silent = self.members.iter().all(|member| member.silent);
        if all_silent
            && self.started < self.children_max
            && let Ok(child) = (self.start)()
        {
            self.started += 1;
            self.members.push(Member {
                child,
                given: VecDeque::new(),
                since: Instant::now(),
                silent: false,
            });
        }
        let now = Instant::now();
        for member in self.members.iter_mut().filter(|member| !member.silent) {
            while member.given.len() < AHEAD
                && let Some(number) = self.left.pop_front()
            {
                let question = (number, self.open[&number].clone());
                if member.child.ask(&question, &[], now).is_err() {
                    // It takes no more: its end is noticed where answers are taken.
                    self.left.push_front(number);
                    break;
                }
                if member.given.is_empty() {
                    member.since = now;
                }
                member.given.push_back(number);
            }
        }
    }

    /// Until a child has something to say, one has been silent for too long, or the time is over.
    fn wait(&self, until: Instant) {
        let patience = self.members.iter().filter(|member| !member.silent);
        let patience = patience.map(|member| member.since + PATIENCE).min();
        let until = patience.map_or(until, |patience| patience.min(until));
        let left = until.saturating_duration_since(Instant::now()).as_micros();
        let timeout = PollTimeout::try_from(left.div_ceil(1000)).unwrap_or(PollTimeout::MAX);
        let mut ready: Vec<PollFd<'_>> = self
            .members
            .iter()
            .map(|member| PollFd::new(member.child.as_fd(), PollFlags::POLLIN))
            .collect();
        // An error means that it is time to look, which the caller does anyway.
        poll(&mut ready, timeout).ok();
    }

    fn take(&mut self) -> Option<(Q, A)> {
        let now = Instant::now();
        let mut at = 0;
        while let Some(member) = self.members.get_mut(at) {
            match member.child.answer(now) {
                Ok(Answer {
                    value: (number, answer),
                    ..
                }) => {
                    (member.since, member.silent) = (now, false);
                    // It answers in order; another number is none of its questions.
                    if member.given.pop_front() == Some(number)
                        && let Some(question) = self.open.remove(&number)
                    {
                        return Some((question, answer));
                    }
                }
                Err(Failed::Late) => at += 1,
                Err(Failed::Gone) => {
                    let mut given = self.members.remove(at).given;
                    // It broke over the first.
                    if let Some(broken) = given.pop_front() {
                        self.open.remove(&broken);
                    }
                    self.left.extend(given);
                }
            }
        }
        None
    }

    fn note_silent(&mut self) {
        for member in &mut self.members {
            if !member.silent && !member.given.is_empty() && member.since.elapsed() >= PATIENCE {
                member.silent = true;
                self.left.extend(member.given.iter().skip(1));
            }
        }
    }
}

impl<Q, A> Drop for Crew<Q, A> {
    fn drop(&mut self) {
        for member in self.members.drain(..) {
            let stuck_in = member.given.front().and_then(|number| self.open.get(number));
            match stuck_in {
                Some(question) => member.child.abandon(&(self.about)(question)),
                None => drop(member.child),
            }
        }
    }
}

impl<Q: fmt::Debug, A> fmt::Debug for Crew<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew")
            .field("started", &self.started)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}
