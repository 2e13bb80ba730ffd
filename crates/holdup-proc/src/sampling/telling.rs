//! From what a round found to events in the right order.
//!
//! A thread that made others is reported up to the instant at which it ran, then they are born. Who waited for the end of a
//! child, or of a thread, waited until then: the end of the wait is when the other one ended, and the other's end is reported first.
//! Whose end nobody waited for has ended now.
//!
//! In: [`Found`] of each thread. Out: events.

use super::account::{Ends, Interval, Piece, Ran};
use super::awaited_ends::Sleeps;
use super::clocks::Stat;
use super::sampler::{Found, Newborn, Sampler, Stacks, Tracked};
use super::spent::{connection, stop_signal, wait};
use super::waiters::Waiters;
use super::waiting::Waiting;
use super::woken::Woken;
use holdup_evidence::{
    AskerSample, Call, Clock, CpuSample, End, Estimated, Event, Ns, OpenState, TaskName, ThreadId, Waker,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The kernel's letter for a thread that a signal has stopped.
const STOPPED: char = 'T';

/// Samples of CPU time reported of one interval, at most: one for each tick of the kernel's own code and of the thread's, so that all of them
/// count the same, and that many are a minute of one CPU.
const MOST_SAMPLES: u64 = 6_000;

/// What a round found, while it is reported.
#[derive(Debug, Default)]
struct Round {
    /// Who ended, and was waited for by whom.
    waited_for: BTreeMap<ThreadId, ThreadId>,
    /// When those that were waited for ended.
    ended: BTreeMap<ThreadId, Ns>,
    /// The final clocks of those that were reported.
    final_clocks: BTreeMap<ThreadId, (Ns, Clock)>,
    /// Who woke whom.
    woken: Woken,
    /// Who is being reported: woken by whom, when, and when that one ran.
    woken_by: BTreeMap<ThreadId, WokenBy>,
}

/// Who woke a thread.
#[derive(Debug, Clone, Copy)]
struct WokenBy {
    waker: ThreadId,
    at: Ns,
    /// When that one ran.
    ran: Ran,
    /// Whether it woke nobody else, so that it can have ended other waits meanwhile, too.
    alone: bool,
}

impl WokenBy {
    /// Who ended this piece of the woken one's time.
    fn ended(&self, piece: &Piece<Arc<Waiting>>) -> Waker {
        let (at, clock) = self.ran.nearest(piece.end);
        // Others of its waits, of the same kind, were over between two looks: nobody else can have ended those either.
        let this = piece.end == self.at && piece.seen || self.alone && piece.end > self.at;
        if !this || at != piece.end {
            return Waker::Unknown;
        }
        let site = piece.site.as_ref().and_then(|waiting| waiting.site.call);
        let futex = site.and_then(|call| call.name()) == Some("futex");
        Waker::Thread {
            thread: self.waker,
            clock,
            call: if futex {
                Call::named("futex")
            } else {
                Call::untold()
            },
        }
    }
}

impl Sampler {
    /// Tells all that was found.
    pub(super) fn tell(&mut self, stacks: &mut dyn Stacks) {
        let mut round = Round::default();
        let ended = self.ended();
        let waiters = if ended.is_empty() {
            Waiters::default()
        } else {
            self.waiters()
        };
        for id in ended {
            if let Some(waiter) = self.who_waits_for(id, &waiters, Sleeps::Over) {
                let of_it = round.waited_for.entry(waiter).or_insert(id);
                // Of several children that ended between two looks, the one that waited for another ended after that one.
                if self.waited_for_somebody(id) && !self.waited_for_somebody(*of_it) {
                    *of_it = id;
                }
            }
        }
        round.woken = self.woken();
        let mut with_others: BTreeSet<ThreadId> = round.waited_for.values().copied().collect();
        // Whose end was waited for is reported with that.
        for those in round.woken.values_mut() {
            those.retain(|(_, id)| !round.waited_for.contains_key(id));
            with_others.extend(those.iter().map(|(_, id)| *id));
        }
        let mut order: Vec<ThreadId> = self.found.keys().copied().collect();
        // Those that others waited for are reported with them; and who waited for a lock or an answer after those who may have been in
        // the way, so that what they did meanwhile is known by then.
        order.sort_by_cached_key(|id| {
            (
                with_others.contains(id),
                self.told_late(*id, &round.waited_for),
                *id,
            )
        });
        for id in order {
            self.tell_of(id, &mut round, stacks);
        }
        // Whose maker is not known, or was not seen to have run.
        for newborn in std::mem::take(&mut self.newborn) {
            let born = self.began(&newborn.stat).clamp(self.last, self.now);
            if self.processes.contains_key(&newborn.parent) || newborn.pid == newborn.tid {
                self.start(newborn, None, born, false, None);
            }
        }
    }

    /// Whether somebody else may have been in the way of what a thread was seen waiting in last.
    fn waited_for_somebody(&self, id: ThreadId) -> bool {
        // Who has ended is reported in the order in which a process's threads end, its first one last.
        let leads = self
            .threads
            .get(&id)
            .is_some_and(|thread| thread.pid == thread.tid);
        if !leads && matches!(self.found.get(&id), Some(Found::Ended(_))) {
            return false;
        }
        let waiting = self.threads.get(&id).and_then(|thread| thread.account.asleep());
        waiting.is_some_and(|(waiting, _)| waiting.holder.is_some() || !waiting.ends.is_empty())
    }

    /// The same of a thread, or of the one that is reported with it because it waited for that one's end.
    fn told_late(&self, id: ThreadId, waited_for: &BTreeMap<ThreadId, ThreadId>) -> bool {
        /// A shell's shell's shell.
        const GENERATIONS: usize = 16;
        let with = std::iter::successors(Some(id), |id| waited_for.get(id).copied());
        with.take(GENERATIONS).any(|id| self.waited_for_somebody(id))
    }

    fn tell_of(&mut self, id: ThreadId, round: &mut Round, stacks: &mut dyn Stacks) {
        let Some(found) = self.found.remove(&id) else {
            return;
        };
        let awaited = round.waited_for.get(&id).copied();
        // What was waited for lived when it was looked at last.
        let not_before = awaited.and_then(|other| Some(self.threads.get(&other)?.account.looked()));
        let woken = round.woken_by.get(&id).map(|by| by.at);
        // It ran when the first of those woke that it has woken.
        let first = || round.woken.get(&id)?.first().map(|(end, _)| *end);
        let ends = match not_before {
            Some(before) => Ends::NotBefore(before),
            None => woken.or_else(first).map_or(Ends::Anywhere, Ends::At),
        };
        let end = round.ended.get(&id).copied();
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        let queued = thread.account.counted().queued;
        let now = match &found {
            Found::Looked(look, stat) => Some((look.counted.cpu, stat.cpu)),
            Found::Ended(last) => last.as_ref().map(|(counted, stat)| (counted.cpu, stat.cpu)),
        };
        if let Some((cpu, on)) = now {
            let ran = cpu.saturating_sub(thread.account.counted().cpu);
            let taken = self.interrupted.ran((id, on), ran, self.now);
            thread.account.interrupted(taken.iter().sum());
            thread.interrupts =
                std::array::from_fn(|kind| thread.interrupts[kind].saturating_add(taken[kind]));
        }
        let (interval, stat, ended) = match found {
            Found::Looked(look, stat) => (thread.account.look(look, ends), Some(stat), None),
            Found::Ended(last) => {
                // Of one that nobody can ask any more it is known that it ran when it woke somebody.
                let ran = last.is_none().then(first).flatten();
                let at = end
                    .or(ran)
                    .unwrap_or(self.all_looked_at)
                    .max(thread.account.looked());
                let (counted, stat) = last.unzip();
                let (interval, clock) = thread.account.end(at, counted, ends);
                let code = stat.as_ref().map_or(0, |stat| stat.exit_code);
                (interval, stat, Some((at, clock, code)))
            }
        };
        let cpu = interval.cpu;
        if let Some(stat) = &stat {
            self.children_counted(id, stat);
        }
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        if let Some(stat) = &stat {
            let queued = thread.account.counted().queued.saturating_sub(queued);
            self.instead.queued(&self.root, (id, thread.pid), stat, queued);
            if stat.state == STOPPED {
                self.events
                    .extend(stop_signal(&self.root, thread.pid, id, self.now));
            }
        }
        // No thread survives another program: one that is new was made by the program that has the new name.
        let (pid, tid) = (thread.pid, thread.tid);
        let thread_is_new = |newborn: &Newborn| newborn.pid == pid && newborn.tid != pid;
        if let Some(stat) = &stat
            && pid == tid
            && self.newborn.iter().any(thread_is_new)
        {
            self.tell_name(id, stat);
        }
        let ran = self.tell_interval(id, interval, awaited, round, stacks);
        if let Some(stat) = stat {
            if ended.is_none() && self.examined.due(id, &stat, self.now) {
                self.begin_to_examine(id, &stat);
            }
            if ended.is_some() || !self.examined.waits(id, &stat) {
                self.tell_samples(id, &stat, cpu, ran);
            }
            self.tell_name(id, &stat);
        }
        if let Some((at, clock, code)) = ended {
            self.tell_others_end(id, at, round, stacks);
            round.final_clocks.insert(id, (at, clock));
            self.tell_instead(Some(id));
            if pid == tid {
                let given_up = self.requests.ended(pid, at);
                self.events.extend(given_up.into_iter().map(Event::Connection));
            }
            self.tell_end(id, at, clock, code, None);
            self.forget(id, stacks);
        }
    }

    /// Tells of an interval; returns when in it the thread ran.
    fn tell_interval(
        &mut self,
        id: ThreadId,
        interval: Interval<Arc<Waiting>>,
        awaited: Option<ThreadId>,
        round: &mut Round,
        stacks: &mut dyn Stacks,
    ) -> Ns {
        let woken_by = round.woken_by.remove(&id);
        for piece in &interval.before {
            let mut waker = woken_by.map_or(Waker::Unknown, |by| by.ended(piece));
            if let Some(other) = awaited.filter(|_| piece.seen) {
                round.ended.insert(other, piece.end);
                self.tell_of(other, round, stacks);
                if let Some((at, clock)) = round.final_clocks.get(&other)
                    && *at == piece.end
                {
                    waker = Waker::Thread {
                        thread: other,
                        clock: *clock,
                        call: Call::named("exit"),
                    };
                }
            }
            if matches!(waker, Waker::Unknown) {
                waker = self.tell_unmet(id, piece).unwrap_or(waker);
            }
            self.tell_piece(id, piece, waker);
        }
        self.tell_births(id, &interval, stacks);
        self.tell_woken(id, interval.running(), round, stacks);
        for piece in &interval.after {
            let waker = self.tell_unmet(id, piece).unwrap_or(Waker::Unknown);
            self.tell_piece(id, piece, waker);
        }
        interval.ran.0
    }

    /// Those that a thread has woken, while it ran.
    fn tell_woken(&mut self, id: ThreadId, ran: Ran, round: &mut Round, stacks: &mut dyn Stacks) {
        let those = round.woken.remove(&id).unwrap_or_default();
        let alone = those.len() == 1;
        for (end, woken) in those {
            let (at, _) = ran.nearest(end);
            let asleep = self.threads.get(&woken).map(|thread| thread.account.looked());
            let Some(until) = self.found.get(&woken).and_then(|found| self.last_look(found)) else {
                continue;
            };
            // As far as can be reported it did not run while the other was woken: then that is reported for itself.
            if asleep.is_none_or(|asleep| at < asleep || at > until.at) {
                continue;
            }
            let by = WokenBy {
                waker: id,
                at,
                ran,
                alone,
            };
            round.woken_by.insert(woken, by);
            self.tell_of(woken, round, stacks);
        }
    }

    /// Those that a thread has made, by what the kernel lists; of a process's threads the first one is taken for their maker.
    fn tell_births(&mut self, id: ThreadId, interval: &Interval<Arc<Waiting>>, stacks: &mut dyn Stacks) {
        let Some(thread) = self.threads.get(&id) else {
            return;
        };
        let (pid, mine) = (thread.pid, thread.tid == thread.pid);
        let of_this = |newborn: &Newborn| newborn.parent == pid && (mine || newborn.tid != newborn.pid);
        let (born, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.newborn).into_iter().partition(of_this);
        self.newborn = others;
        for newborn in born {
            let earliest = self.began(&newborn.stat);
            let (at, clock) = interval.running().nearest(earliest);
            if newborn.pid != pid {
                stacks.born(newborn.pid, pid);
            }
            self.start(newborn, Some((id, clock)), at, false, None);
        }
    }

    fn tell_piece(&mut self, id: ThreadId, piece: &Piece<Arc<Waiting>>, waker: Waker) {
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        thread.seq += 1;
        let seq = thread.seq;
        if piece.doubt > 0 || piece.count > 1 {
            self.events.push(Event::Estimated(Estimated {
                thread: id,
                count: piece.count,
                doubt: piece.doubt,
            }));
        }
        self.events.extend(connection(id, seq, piece));
        let mut wait = wait(id, seq, piece, waker);
        wait.start = thread.began(piece, seq);
        self.events.push(Event::Wait(Box::new(wait)));
        if let Some(stack) = piece.site.as_ref().and_then(|site| site.user_stack) {
            self.events.push(Event::Asker(AskerSample {
                thread: id,
                first: seq,
                seq,
                on_cpu: false,
                stack,
                weight: piece.end - piece.start,
            }));
        }
    }

    /// The kernel's ticks tell whether it ran its own code or the kernel's.
    fn tell_samples(&mut self, id: ThreadId, stat: &Stat, cpu: Ns, at: Ns) {
        let Some(thread) = self.threads.get_mut(&id).filter(|_| cpu > 0) else {
            return;
        };
        let user = stat.user.saturating_sub(thread.ticks.0);
        let kernel = stat.kernel.saturating_sub(thread.ticks.1);
        thread.ticks = (stat.user.max(thread.ticks.0), stat.kernel.max(thread.ticks.1));
        let kinds = [(true, user), (false, kernel)].map(|(user, count)| (user, count.min(MOST_SAMPLES)));
        for (user, count) in kinds {
            for _ in 0..count {
                thread.cpu_seq += 1;
                let (call, object) = match user {
                    true => (Call::none(), None),
                    false => self.examined.deal(id, self.now),
                };
                self.events.push(Event::Cpu(CpuSample {
                    at,
                    thread: id,
                    seq: thread.cpu_seq,
                    user,
                    call,
                    object,
                    kernel_stack: None,
                }));
            }
            if user && count > 0 {
                let seq = thread.cpu_seq;
                let running = thread.running.drain(..).map(|(stack, weight)| AskerSample {
                    thread: id,
                    first: seq,
                    seq,
                    on_cpu: true,
                    stack,
                    weight,
                });
                self.events.extend(running.map(Event::Asker));
            }
        }
    }

    /// A process that has another name runs another program, as far as can be reported; a thread only calls itself so.
    fn tell_name(&mut self, id: ThreadId, stat: &Stat) {
        let Some(thread) = self
            .threads
            .get_mut(&id)
            .filter(|thread| thread.name != stat.name)
        else {
            return;
        };
        thread.name.clone_from(&stat.name);
        if thread.tid == thread.pid {
            if let Some(process) = self.processes.get_mut(&thread.pid) {
                process.mapped = false;
            }
            self.examined.forget(id);
            self.events.push(Event::Exec {
                at: self.now,
                thread: id,
                task: TaskName {
                    pid: thread.pid,
                    tid: thread.tid,
                    name: stat.name.clone(),
                    kernel: false,
                },
                program: stat.name.clone(),
            });
        } else {
            self.events.push(Event::Renamed {
                thread: id,
                name: stat.name.clone(),
            });
        }
    }

    /// With a process's first thread all others end.
    fn tell_others_end(&mut self, id: ThreadId, at: Ns, round: &mut Round, stacks: &mut dyn Stacks) {
        let Some(thread) = self.threads.get(&id).filter(|thread| thread.tid == thread.pid) else {
            return;
        };
        let members = self
            .processes
            .get(&thread.pid)
            .map(|process| process.members.clone());
        for other in members.unwrap_or_default() {
            if other != id && matches!(self.found.get(&other), Some(Found::Ended(_))) {
                round.ended.entry(other).or_insert(at);
                self.tell_of(other, round, stacks);
            }
        }
    }

    fn tell_end(&mut self, id: ThreadId, at: Ns, clock: Clock, exit_code: i32, open: Option<OpenState>) {
        let Some(thread) = self.threads.get(&id) else {
            return;
        };
        self.events.push(Event::End(Box::new(End {
            at,
            thread: id,
            task: TaskName {
                pid: thread.pid,
                tid: thread.tid,
                name: thread.name.clone(),
                kernel: false,
            },
            born: thread.born,
            clock,
            blockings: u64::from(thread.seq),
            lost: (0, 0),
            interrupts: thread.interrupts,
            account: None,
            open,
            exit_code,
        })));
    }

    /// Observation is over; those that live are reported as they are.
    pub fn leave(&mut self, at: Ns) -> Vec<Event> {
        for id in self.threads.keys().copied().collect::<Vec<_>>() {
            self.tell_instead(Some(id));
        }
        let ids: Vec<ThreadId> = self.threads.keys().copied().collect();
        for id in ids {
            let Some(thread) = self.threads.get_mut(&id) else {
                continue;
            };
            let at = at.max(thread.account.looked());
            if let Some((Found::Ended(last), _)) = self.unnoticed.remove(&id) {
                let (counted, stat) = last.unzip();
                let (interval, clock) = thread.account.end(at, counted, Ends::Anywhere);
                for piece in interval.before.iter().chain(&interval.after) {
                    self.tell_piece(id, piece, Waker::Unknown);
                }
                self.tell_end(id, at, clock, stat.map_or(0, |stat| stat.exit_code), None);
                continue;
            }
            let (interval, open, clock) = thread.account.leave(at);
            for piece in interval.before.iter().chain(&interval.after) {
                self.tell_piece(id, piece, Waker::Unknown);
            }
            let Some(thread) = self.threads.get_mut(&id) else {
                continue;
            };
            let mut asker = None;
            let state = match open {
                Some(piece) => {
                    thread.seq += 1;
                    let seq = thread.seq;
                    asker = piece
                        .site
                        .as_ref()
                        .and_then(|site| site.user_stack)
                        .map(|stack| AskerSample {
                            thread: id,
                            first: seq,
                            seq,
                            on_cpu: false,
                            stack,
                            weight: piece.end - piece.start,
                        });
                    self.events.extend(connection(id, seq, &piece));
                    let mut wait = wait(id, seq, &piece, Waker::Unknown);
                    wait.start = thread.began(&piece, seq);
                    OpenState::Blocked(Box::new(wait))
                }
                None => OpenState::Running,
            };
            self.tell_end(id, at, clock, 0, Some(state));
            self.events.extend(asker.map(Event::Asker));
        }
        std::mem::take(&mut self.events)
    }
}

impl Tracked {
    /// When a piece began, which is reported under this number: the first of one that slept when it was found did before that.
    pub(super) fn began(&self, piece: &Piece<Arc<Waiting>>, seq: u32) -> Ns {
        let found = seq == 1 && piece.seen && piece.start == self.born;
        let before = self.before.filter(|_| found);
        before.map_or(piece.start, |(since, _)| since.min(piece.start))
    }
}
