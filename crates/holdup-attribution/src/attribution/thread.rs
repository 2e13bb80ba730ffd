//! A living thread: its clock, its ledger and its path.
//!
//! Time only ever moves on by [`Thread::advance`], which deals out exactly the time from the thread's last
//! known instant to the new one. What the counters do not explain is lost time; what they claim beyond it is
//! a contradiction. So the books balance whatever a source says.

use super::chain::{KeptWaitingList, Segment, Segments, Stacks};
use super::deadlock::Blocked;
use super::ended_wait::EndedWait;
use super::follow_blocker::Way;
use super::keys::BEFORE;
use super::ledger::{Book, Ledger, Owner};
use super::numbers::NumberMap;
use super::outstanding::Outstanding;
use super::path::{Path, Share};
use super::requests::{self, Spent as WithRequests};
use super::stretch::Doing;
use super::task_table::{Identity, NameId};
use super::what::WhatId;
use super::windows::Axis;
use holdup_evidence::{
    AskerSample, Call, Cause, Clock, KernelStackId, Ns, ObjectId, OpenState, Seq, TaskName, ThreadId,
    UserStackId, Wait,
};

/// Calls and objects of a thread whose last kernel stack is remembered.
const MAX_KERNEL_STACKS: usize = 64;

/// How time from one instant to the next was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) cpu: Ns,
    pub(super) queued: Ns,
    /// On a CPU, but taken by interrupts.
    pub(super) interrupted: Ns,
    /// Runnable with a spent quota.
    pub(super) throttled: Ns,
    pub(super) lost: Ns,
    /// In waits that were like the last one reported, and how many they were.
    pub(super) repeated: Ns,
    pub(super) repeats: u64,
    /// In the wait that ended at the new instant.
    pub(super) waited: Ns,
    /// Of it: what the path has.
    pub(super) on_path: Ns,
    /// The new instant, or where the thread was already if that is later: the wait ended there.
    pub(super) until: Ns,
    /// Time about which the source contradicts itself.
    pub(super) contradicted: Ns,
}

/// What of the time between two instants was spent with a request to answer.
struct Served {
    cpu: Ns,
    queued: Ns,
}

impl Served {
    fn between(before: &Clock, now: &Clock) -> Served {
        Served {
            cpu: now.served_cpu.saturating_sub(before.served_cpu),
            queued: now.served_queued.saturating_sub(before.served_queued),
        }
    }

    /// Takes from it the part of a piece of time; of lost time only whether there was a request is known.
    fn of(&mut self, cause: Cause, ns: Ns, has_request: bool) -> Ns {
        let left = match cause {
            Cause::CpuUser | Cause::CpuInterrupt => &mut self.cpu,
            Cause::SchedRunqueue | Cause::SchedThrottled => &mut self.queued,
            _ if has_request => return ns,
            _ => return 0,
        };
        let part = ns.min(*left);
        *left -= part;
        part
    }
}

/// A wait whose memory has not arrived yet: its time is in no site so far.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) wait: Wait,
    pub(super) waited: Ns,
    /// Of it: what the path has, where it did not go to the waker.
    pub(super) on_path: Ns,
    /// When it ended, in the thread's books.
    pub(super) until: Ns,
    /// Whether the path went to the waker.
    pub(super) handed_on: bool,
    /// User stacks that came before it was told what the wait was: stack, weight.
    pub(super) askers: Vec<(UserStackId, Ns)>,
}

/// Where the last wait was booked: those that are like it have no records.
#[derive(Debug, Clone, Copy)]
pub(super) struct BookedWait {
    pub(super) site: usize,
    pub(super) cause: Cause,
    pub(super) timed_out: bool,
}

/// A kernel stack seen in a call on an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelStackSeen {
    pub(super) stack: KernelStackId,
    /// What that wait was.
    pub(super) what: Option<WhatId>,
    /// Whether waits in this call on this object were for different things.
    pub(super) varied: bool,
}

/// CPU samples of one class in a row.
#[derive(Debug, Clone, Copy)]
struct Run {
    site: usize,
    /// The system call they were in; `None` in user mode.
    call: Option<i32>,
    /// When the first was taken.
    first: Ns,
}

/// Threads that live, and those that ended so lately that others may still be woken by them.
pub(super) type Threads = NumberMap<ThreadId, Box<Thread>>;

/// A thread.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    /// Its number.
    pub(super) id: ThreadId,
    pub(super) identity: Identity,
    /// Who created it, where that was seen.
    pub(super) creator: Option<ThreadId>,
    /// Since when its creator is known to be gone, where nobody saw who that was.
    pub(super) orphan: Option<Ns>,
    /// Whether its names are still to be learned, because its start was lost.
    pub(super) nameless: bool,
    /// Whether it has ended: a thread that is ending still wakes others after the end of its own time.
    pub(super) ended: bool,
    pub(super) born: Ns,
    /// Whether it lived before it was watched, since when is not known: [`Thread::born`] is when that began.
    pub(super) adopted: bool,
    /// Last known instant.
    pub(super) at: Ns,
    /// Counters at that instant.
    pub(super) clock: Clock,
    pub(super) last_seq: Seq,
    /// Waits whose record was lost.
    pub(super) lost_waits: u64,
    pub(super) ledger: Ledger,
    pub(super) path: Path,
    /// From when on another thread's path is its own, and that path: as another ended its process, or told it something by memory.
    pub(super) taken_over: Option<(Ns, Path)>,
    /// Whether it has ended its process.
    pub(super) ends_process: bool,
    pub(super) pending: Vec<Pending>,
    pub(super) booked: Option<BookedWait>,
    pub(super) recent: Segments,
    pub(super) stacks: Stacks,
    /// Kept where the source looks now and then.
    pub(super) way: Way,
    pub(super) kept_waiting: KeptWaitingList,
    /// Of its next wait, where the source looks now and then: how many it stands for, how much of its time is in doubt.
    pub(super) estimated: Option<(u64, Ns)>,
    /// Its last wait for a lock whose owner is known.
    pub(super) blocked: Option<Blocked>,
    /// Processes that could end its last wait, where nobody has.
    pub(super) could_end: Vec<u32>,
    /// Requests that it has read and nobody has answered.
    pub(super) requests: u32,
    /// Since when its last wait was, where that was a poll whose time limit ran out.
    pub(super) timer_ran_since: Option<Ns>,
    /// It has answered a request as such a limit had run out.
    pub(super) answers_by_timer: bool,
    /// Those of them that it had read before anybody looked.
    pub(super) earlier: u32,
    /// Of an event loop: since when it awaits answers.
    pub(super) outstanding: Outstanding,
    /// Its time while it had such.
    pub(super) with_requests: WithRequests,
    /// What it does since it last did something else.
    pub(super) doing: Doing,
    /// User stacks of a wait that is not known yet: it is open.
    pub(super) early: Vec<AskerSample>,
    /// CPU and queue time of the piece that has begun.
    piece: (Ns, Ns),
    /// When that piece began.
    piece_began: Ns,
    /// CPU samples of one class in a row.
    run: Option<Run>,
    kernel_stacks: NumberMap<(i32, Option<ObjectId>), KernelStackSeen>,
}

impl Thread {
    /// A thread born at `born` with its creator's path of that instant.
    pub(super) fn born(
        id: ThreadId,
        identity: Identity,
        process: NameId,
        born: Ns,
        path: Path,
        own: bool,
        book: &mut Book,
    ) -> Thread {
        let mut ledger = Ledger::new(Owner::Thread(identity), own, process, book);
        ledger.thread = Some(id);
        Thread {
            id,
            identity,
            creator: None,
            orphan: None,
            nameless: false,
            ended: false,
            born,
            adopted: false,
            at: born,
            clock: Clock::default(),
            last_seq: 0,
            lost_waits: 0,
            ledger,
            path,
            taken_over: None,
            ends_process: false,
            pending: Vec::new(),
            booked: None,
            recent: Segments::default(),
            stacks: Stacks::default(),
            way: Way::default(),
            kept_waiting: KeptWaitingList::default(),
            estimated: None,
            blocked: None,
            could_end: Vec::new(),
            requests: 0,
            timer_ran_since: None,
            answers_by_timer: false,
            earlier: 0,
            outstanding: Outstanding::default(),
            with_requests: Vec::new(),
            doing: Doing::default(),
            early: Vec::new(),
            piece: (0, 0),
            piece_began: born,
            run: None,
            kernel_stacks: NumberMap::default(),
        }
    }

    /// Moves on to `at`, where the counters are `clock`; `wait` is the wait that ends there. Its own time
    /// goes to the ledger, and to the path too if `keep_path`: else the caller replaces the path. The wait's
    /// own time is left to the caller.
    pub(super) fn advance(
        &mut self,
        clock: &Clock,
        at: Ns,
        wait: Option<(Ns, Ns)>,
        keep_path: bool,
        process: NameId,
        book: &mut Book,
    ) -> Spent {
        let mut spent = self.account(clock, at, wait);
        let from = self.at;
        let mut served = Served::between(&self.clock, clock);
        self.at = self.at.max(at);
        self.clock = Clock {
            cpu: self.clock.cpu.max(clock.cpu),
            queued: self.clock.queued.max(clock.queued),
            blocked: self.clock.blocked.max(clock.blocked),
            interrupt: self.clock.interrupt.max(clock.interrupt),
            throttled: self.clock.throttled.max(clock.throttled),
            served_cpu: self.clock.served_cpu.max(clock.served_cpu),
            served_queued: self.clock.served_queued.max(clock.served_queued),
            repeats: self.clock.repeats.max(clock.repeats),
            repeated: self.clock.repeated.max(clock.repeated),
        };
        // There the walk backwards leaves it, for whoever that was.
        let from_here = match self.taken_over.take_if(|(when, _)| *when < at) {
            Some((when, path)) => {
                self.path = path;
                when
            }
            None => 0,
        };
        // Like which wait is known as long as its record was not lost.
        let found = self.booked.filter(|_| spent.repeated > 0);
        if found.is_none() {
            spent.lost = spent.lost.saturating_add(std::mem::take(&mut spent.repeated));
        }
        let lost_site = (spent.lost > 0).then(|| self.ledger.site(WhatId::LOST, process, book));
        let mut rare = |what, ns| (ns > 0).then(|| self.ledger.site(what, process, book));
        let throttled_site = rare(WhatId::THROTTLED, spent.throttled);
        let interrupt_site = rare(WhatId::INTERRUPT, spent.interrupted);
        let sites = [
            (throttled_site, Cause::SchedThrottled, spent.throttled),
            (Some(Ledger::QUEUE), Cause::SchedRunqueue, spent.queued),
            (interrupt_site, Cause::CpuInterrupt, spent.interrupted),
            (Some(Ledger::CPU), Cause::CpuUser, spent.cpu),
            (lost_site, Cause::Unknown, spent.lost),
            (
                found.map(|found| found.site),
                found.map_or(Cause::Unknown, |found| found.cause),
                spent.repeated,
            ),
        ];
        let mixed = !self.ended && self.is_mixed(from, &sites, book);
        let mut start = from;
        for (site, cause, ns) in sites {
            let Some(site) = site.filter(|_| ns > 0) else {
                continue;
            };
            let repeated = found.is_some_and(|found| found.site == site);
            if !self.ended {
                if repeated {
                    // What they interrupt goes on in turns with them.
                    self.end_stretch(None, book);
                    self.ledger.sites[site].repeat(
                        spent.repeats,
                        ns,
                        found.is_some_and(|found| found.timed_out),
                    );
                }
                if !mixed && repeated {
                    self.ledger.sites[site].spend(&mut book.axis, start, start + ns);
                } else if !mixed {
                    self.ledger.sites[site].spend(&mut book.axis, start, start + ns);
                    let piece_of = if Some(site) == interrupt_site {
                        Ledger::CPU
                    } else {
                        site
                    };
                    self.continue_stretch(piece_of, start, start + ns, book);
                }
                let served = served.of(cause, ns, self.requests > 0);
                if served > 0 && !repeated {
                    requests::spend(&mut self.with_requests, cause, served, false);
                }
            }
            // Of these each stretch is a piece; CPU and queueing go on from one record to the next.
            let piece = [lost_site, throttled_site, interrupt_site].contains(&Some(site));
            if keep_path {
                let count = match repeated {
                    true => spent.repeats,
                    false => u64::from(piece && Some(site) != lost_site),
                };
                let ns = (start + ns).saturating_sub(start.max(from_here));
                self.path.spend(self.ledger.sites[site].key, ns, count);
            }
            if piece && !self.ended {
                self.ledger.sites[site].piece(start, start + ns);
            }
            self.recent.push(Segment {
                cause,
                start,
                end: start + ns,
                waker: None,
                of_client: false,
            });
            self.way.push(self.ledger.sites[site].key, start, start + ns);
            start += ns;
        }
        if !self.ended {
            self.piece.0 += spent.cpu;
            self.piece.1 += spent.queued;
        }
        if wait.is_some() {
            self.end_stretch(None, book);
            self.close_pieces(start, keep_path);
        }
        spent.on_path = (start + spent.waited).saturating_sub(start.max(from_here));
        spent
    }

    /// What runs and queues until here is one piece each.
    pub(super) fn close_pieces(&mut self, until: Ns, keep_path: bool) {
        let (cpu, queued) = std::mem::take(&mut self.piece);
        for (site, ns, start) in [
            (Ledger::QUEUE, queued, self.piece_began),
            (Ledger::CPU, cpu, until.saturating_sub(cpu)),
        ] {
            if ns > 0 {
                let site = &mut self.ledger.sites[site];
                site.piece(start, start + ns);
                if keep_path {
                    self.path.spend(site.key, 0, 1);
                }
            }
        }
        self.run = None;
    }

    /// Marks what it was doing when observation ended; an open wait is marked when it is booked.
    pub(super) fn mark_open(&mut self, state: &OpenState) {
        match state {
            OpenState::Running => self.ledger.sites[Ledger::CPU].tally.open = true,
            OpenState::Runnable => self.ledger.sites[Ledger::QUEUE].tally.open = true,
            OpenState::Blocked(_) => {}
        }
    }

    /// A new stretch of running and queueing begins here.
    pub(super) fn open_pieces(&mut self) {
        self.piece_began = self.at;
    }

    fn account(&self, clock: &Clock, at: Ns, wait: Option<(Ns, Ns)>) -> Spent {
        let length = wait.map_or(0, |(start, end)| end.saturating_sub(start));
        let mut left = at.saturating_sub(self.at);
        let mut take = |wanted: Ns| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        // A wait that was open when observation began may be longer than the thread's life so far.
        let began_before = wait.is_some_and(|(start, _)| start < self.born);
        let waited = take(length);
        let wanted_cpu = clock.cpu.saturating_sub(self.clock.cpu);
        let wanted_queued = clock.queued.saturating_sub(self.clock.queued);
        let wanted_blocked = clock.blocked.saturating_sub(self.clock.blocked);
        let cpu = take(wanted_cpu);
        let queued = take(wanted_queued);
        let interrupted = clock.interrupt.saturating_sub(self.clock.interrupt).min(cpu);
        let throttled = clock.throttled.saturating_sub(self.clock.throttled).min(queued);
        let repeated = take(clock.repeated.saturating_sub(self.clock.repeated));
        let lost = left;
        let blocked = if began_before {
            wanted_blocked.abs_diff(waited + repeated + lost).min(lost)
        } else {
            wanted_blocked
                .abs_diff(length.saturating_add(repeated).saturating_add(lost))
                .max(length - waited)
        };
        let backwards = [
            (self.at, at),
            (self.clock.cpu, clock.cpu),
            (self.clock.queued, clock.queued),
            (self.clock.blocked, clock.blocked),
        ]
        .into_iter()
        .fold(0u64, |sum, (before, now)| {
            sum.saturating_add(before.saturating_sub(now))
        });
        Spent {
            cpu: cpu - interrupted,
            queued: queued - throttled,
            interrupted,
            throttled,
            lost,
            repeated,
            repeats: clock.repeats.saturating_sub(self.clock.repeats),
            waited,
            on_path: waited,
            until: self.at.max(at),
            contradicted: (wanted_cpu - cpu)
                .saturating_add(wanted_queued - queued)
                .saturating_add(blocked)
                .saturating_add(backwards),
        }
    }

    /// Adds a wait's time to its site, its path and its recent past; says whether it is the site's longest.
    pub(super) fn waited(
        &mut self,
        site: usize,
        cause: Cause,
        ended: &EndedWait,
        waker: Option<ThreadId>,
        book: &mut Book,
    ) -> bool {
        let wait = ended.wait;
        let (count, doubt) = self.estimated.take().unwrap_or((1, 0));
        let tally = &mut self.ledger.sites[site];
        tally.spend(
            &mut book.axis,
            ended.until.saturating_sub(ended.waited),
            ended.until,
        );
        let longest = tally.pieces(wait.start, wait.end, count);
        tally.doubt.add(doubt.min(ended.waited));
        let share = if ended.handed_on {
            Share {
                handed_on: ended.waited,
                ..Share::default()
            }
        } else {
            Share {
                ns: ended.on_path,
                count,
                handed_on: 0,
            }
        };
        self.path.add(tally.key, share);
        self.recent.push(Segment {
            cause,
            start: wait.start,
            end: wait.end,
            waker,
            of_client: false,
        });
        longest
    }

    /// It has a request to answer that it had read before anybody looked.
    pub(super) fn has_earlier(&mut self) {
        self.earlier += 1;
        self.requests += 1;
    }

    /// The number of a wait: counts those missing before it.
    pub(super) fn numbered(&mut self, seq: Seq) {
        self.lost_waits += u64::from(seq.saturating_sub(self.last_seq).saturating_sub(1));
        self.last_seq = self.last_seq.max(seq);
    }

    /// A CPU sample of a class: counts it in the ledger and on the path. `call`: the system call, in the kernel.
    pub(super) fn sampled(&mut self, site: usize, call: Option<i32>, at: Ns, axis: &mut Axis) {
        let class = &mut self.ledger.sites[site];
        class.samples += 1;
        self.path.spend(class.key, 0, 1);
        class.windows.add(axis, at, 1);
        self.doing.sampled(site);
        let same_call = |run: &Run| call.is_some() && run.call == call;
        let first = match self.run {
            Some(run) if run.site == site => run.first,
            // An interrupt that hit the call is no end of it.
            Some(run) if same_call(&run) => return,
            _ => {
                self.run = Some(Run {
                    site,
                    call,
                    first: at,
                });
                at
            }
        };
        let length = at.saturating_sub(first);
        if length >= class.tally.max {
            class.tally.max = length;
            class.longest = (first, at);
        }
    }

    /// The kernel stack that a longer wait in the same call on the same object had.
    pub(super) fn borrowed_stack(&self, call: &Call, object: Option<ObjectId>) -> Option<KernelStackSeen> {
        self.kernel_stacks.get(&(call.number, object)).copied()
    }

    /// Remembers the kernel stack of a wait and what that wait was.
    pub(super) fn lend_stack(
        &mut self,
        call: &Call,
        object: Option<ObjectId>,
        stack: KernelStackId,
        what: WhatId,
    ) {
        let key = (call.number, object);
        if self.kernel_stacks.len() >= MAX_KERNEL_STACKS && !self.kernel_stacks.contains_key(&key) {
            self.kernel_stacks.clear();
        }
        let seen = self.kernel_stacks.entry(key).or_insert(KernelStackSeen {
            stack,
            what: None,
            varied: false,
        });
        seen.stack = stack;
        seen.varied |= seen.what.is_some_and(|before| before != what);
        seen.what = Some(what);
    }
}

/// The path of a thread that nothing is known of before `born`.
pub(super) fn unknown_path(run_start: Ns, born: Ns) -> Path {
    let mut path = Path::new();
    path.spend(BEFORE, born.saturating_sub(run_start), 1);
    path
}

/// The name of a thread whose start was lost, until its end tells.
pub(super) fn nobody() -> TaskName {
    TaskName {
        pid: 0,
        tid: 0,
        name: "?".to_owned(),
        kernel: false,
    }
}
