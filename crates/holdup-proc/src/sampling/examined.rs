//! Which calls a thread is in while the kernel works for it: a call for each of the kernel's ticks.
//!
//! In: threads whose ticks in the kernel grow. Each is examined now and then: first where its calls come from is found ([`Probe::places`]),
//! then a few calls from each of those places are timed ([`Probe::calls`], [`super::measured`]), then what their descriptors are is asked
//! for. Out: a call and an object for each tick, dealt out by what was measured; a tick of which that is not known stays without a call. While a
//! thread is examined its ticks wait.
//!
//! Who would miss it: a user who may not trace and whose program spends its CPU time in the kernel. Without it the report has the share of the
//! kernel and no more. With it the report names the call and its object, and the rules that need them fire: in the sampled scenarios
//! `random-reads` (`random-reads-dominate`) and `slow-clocksource`, and in `kernel-time` the finding names the device.

use super::clocks::Stat;
use super::look::{Question, Want};
use super::measured::{Part, parts, places};
use super::probe::{HITS, Hit, Probe};
use super::sampler::{Sampler, Stacks};
use holdup_evidence::{Call, Ns, Object, ObjectId, TaskState, ThreadId};
use nix::errno::Errno;
use std::collections::BTreeMap;

/// Ticks in the kernel within [`LATELY`] from which a thread is worth it.
const WORTH: u64 = 2;
const LATELY: Ns = 200_000_000;

/// Threads that are examined at the same time: each has nine events at most.
const MAX_THREADS: usize = 2;

/// From the beginning of an examination to the next of the same thread, nanoseconds: one costs the thread some milliseconds.
const EVERY: Ns = 1_000_000_000;

/// After so many refusals in a row nobody is examined any more: one may be for want of memory that the user may lock, which others of
/// the user's programs have at the moment.
const REFUSALS: u32 = 8;

/// The same, for each time in a row, where nothing was found: it may have been in no call for a while.
const SOON: Ns = 50_000_000;

/// How long each step may take, nanoseconds.
const STEP: Ns = 200_000_000;

/// The same where no call is made from a place: it made one there before it came to what it does now.
const NOTHING: Ns = 50_000_000;

/// How long what was found is good for, nanoseconds.
const GOOD_FOR: Ns = 3 * EVERY;

/// Samples of its own code that tell where its calls come from; fewer where [`STEP`] is over.
const SAMPLES: usize = 12;

/// Of so many, three quarters from one place, that is the one that its calls come from.
const SOLE: usize = 8;

/// Places that are measured, and how many at the same time: a CPU has four breakpoints, and a call takes two.
const PLACES: usize = 6;
const AT_ONCE: usize = 2;

/// This part of the time in the kernel may be lacking where its calls are taken to be all of it: what the ticks and the few calls
/// can be wrong by.
const LACKING: f64 = 0.2;

/// What is known of a thread's time in the kernel.
#[derive(Debug)]
struct Known {
    at: Ns,
    of: Vec<Dealt>,
    untold: f64,
}

/// A call that ticks are dealt to.
#[derive(Debug)]
struct Dealt {
    call: Call,
    object: Option<ObjectId>,
    /// Of the ticks, 0 to 1.
    share: f64,
    /// What it has not been given yet, in ticks.
    owed: f64,
}

/// An examination under way.
#[derive(Debug)]
struct Examination {
    /// When this step began.
    step: Ns,
    /// Ticks of its own code and of the kernel as it began, and as seen last.
    ticks: [(u64, u64); 2],
    probe: Option<Probe>,
    hits: Vec<Hit>,
    /// Places that are measured now, and those that come next; empty while they are looked for.
    now: Vec<u64>,
    next: Vec<u64>,
    /// The place that nearly all its calls come from, if there is one.
    main: Option<u64>,
    parts: Vec<Part>,
    /// Whether descriptors are being asked for, and what came.
    asked: bool,
    objects: Vec<(Call, Option<ObjectId>)>,
}

/// All that is known and under way.
#[derive(Debug, Default)]
pub(super) struct Examined {
    known: BTreeMap<ThreadId, Known>,
    under_way: BTreeMap<ThreadId, Examination>,
    /// Since when ticks in the kernel are counted, and how many it had used by then, of those that are not examined.
    lately: BTreeMap<ThreadId, (Ns, u64)>,
    /// From when on each may be examined again, and how often in a row nothing was found.
    again: BTreeMap<ThreadId, (Ns, u32)>,
    /// Times that a thread was seen as a call began or ended.
    timed: u64,
    /// How often in a row the kernel did not let this user.
    refused: u32,
}

impl Known {
    /// What the next tick went into.
    fn deal(&mut self) -> (Call, Option<ObjectId>) {
        let rest = Dealt {
            call: Call::untold(),
            object: None,
            share: 1.0 - self.of.iter().map(|dealt| dealt.share).sum::<f64>(),
            owed: 0.0,
        };
        self.of.iter_mut().for_each(|dealt| dealt.owed += dealt.share);
        self.untold += rest.share.max(0.0);
        let most = self.of.iter_mut().max_by(|a, b| a.owed.total_cmp(&b.owed));
        match most.filter(|most| most.owed >= self.untold) {
            Some(most) => {
                most.owed -= 1.0;
                (most.call, most.object)
            }
            None => {
                self.untold -= 1.0;
                (rest.call, None)
            }
        }
    }
}

impl Examination {
    /// Its parts of the time in the kernel.
    fn shares(&self) -> Vec<f64> {
        let [before, now] = self.ticks;
        let (user, kernel) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        let in_kernel = match user + kernel {
            0 => 1.0,
            all => kernel.max(1) as f64 / all as f64,
        };
        let of_kernel = self.parts.iter().map(|part| part.share / in_kernel);
        let shares: Vec<f64> = of_kernel.collect();
        let all: f64 = shares.iter().sum();
        // From the others none was seen.
        if let [only] = self.parts.as_slice()
            && only.too_fast
            && self.main == Some(only.place)
        {
            return vec![1.0];
        }
        let whole = if all >= 1.0 - LACKING { all } else { 1.0 };
        shares.iter().map(|share| share / whole).collect()
    }

    fn known(&self, at: Ns) -> Known {
        let object = |call: &Call| {
            let of = |(asked, _): &&(Call, _)| asked == call;
            self.objects
                .iter()
                .find(of)
                .and_then(|(_, object): &(Call, Option<ObjectId>)| *object)
        };
        let of = self.parts.iter().zip(self.shares());
        let of = of.filter(|(_, share)| *share > 0.0).map(|(part, share)| Dealt {
            call: part.call,
            object: object(&part.call),
            share,
            owed: 0.0,
        });
        Known {
            at,
            of: of.collect(),
            untold: 0.0,
        }
    }
}

impl Examined {
    /// Calls that were timed.
    pub(super) fn timed(&self) -> u64 {
        self.timed / 2
    }

    /// Whether a thread's ticks wait for what is found of it.
    pub(super) fn waits(&mut self, id: ThreadId, stat: &Stat) -> bool {
        let Some(examination) = self.under_way.get_mut(&id) else {
            return false;
        };
        examination.ticks[1] = (stat.user, stat.kernel);
        !self.known.contains_key(&id)
    }

    /// What a tick in the kernel went into.
    pub(super) fn deal(&mut self, id: ThreadId, now: Ns) -> (Call, Option<ObjectId>) {
        let known = self.known.get_mut(&id);
        let known = known.filter(|known| now.saturating_sub(known.at) < GOOD_FOR);
        known.map_or((Call::untold(), None), Known::deal)
    }

    /// Whether a thread that has used so many ticks is worth an examination, and has none.
    pub(super) fn due(&mut self, id: ThreadId, stat: &Stat, now: Ns) -> bool {
        let again = self.again.get(&id);
        if self.refused >= REFUSALS || again.is_some_and(|(at, _)| now < *at) {
            return false;
        }
        let lately = self.lately.entry(id).or_insert((now, stat.kernel));
        let used = stat.kernel.saturating_sub(lately.1);
        if now.saturating_sub(lately.0) > LATELY {
            *lately = (now, stat.kernel);
        }
        used >= WORTH && self.under_way.len() < MAX_THREADS
    }

    /// It ends, or runs another program.
    pub(super) fn forget(&mut self, id: ThreadId) {
        self.known.remove(&id);
        self.under_way.remove(&id);
        self.lately.remove(&id);
        self.again.remove(&id);
    }

    /// What a descriptor of a call is, of one under examination.
    pub(super) fn described(&mut self, id: ThreadId, call: Call, object: Option<ObjectId>) {
        if let Some(examination) = self.under_way.get_mut(&id) {
            examination.objects.push((call, object));
        }
    }
}

impl Sampler {
    /// Looks where a thread's calls come from, from now on.
    pub(super) fn begin_to_examine(&mut self, id: ThreadId, stat: &Stat) {
        let Some(thread) = self.threads.get(&id) else {
            return;
        };
        self.examined.again.entry(id).or_default().0 = self.now + EVERY;
        self.examined.lately.remove(&id);
        match Probe::places(thread.tid) {
            Ok(probe) => {
                self.examined.refused = 0;
                let examination = Examination {
                    step: self.now,
                    ticks: [(stat.user, stat.kernel); 2],
                    probe: Some(probe),
                    hits: Vec::new(),
                    now: Vec::new(),
                    next: Vec::new(),
                    main: None,
                    parts: Vec::new(),
                    asked: false,
                    objects: Vec::new(),
                };
                self.examined.under_way.insert(id, examination);
            }
            // It is gone.
            Err(Errno::ESRCH) => {}
            Err(_) => {
                self.examined.refused += 1;
                let later = SOON * u64::from(self.examined.refused);
                self.examined.again.entry(id).or_default().0 = self.now + later;
            }
        }
    }

    /// Takes examinations further, and says what is to be asked for.
    pub(super) fn examine(&mut self, stacks: &dyn Stacks) -> Vec<Question> {
        let mut questions = Vec::new();
        let now = self.now;
        let ids: Vec<ThreadId> = self.examined.under_way.keys().copied().collect();
        for id in ids {
            let (Some(thread), Some(examination)) =
                (self.threads.get(&id), self.examined.under_way.get_mut(&id))
            else {
                self.examined.under_way.remove(&id);
                continue;
            };
            if let Some(probe) = &mut examination.probe {
                let hits = probe.drain();
                if !examination.now.is_empty() {
                    self.examined.timed += hits.len() as u64;
                }
                examination.hits.extend(hits);
            }
            let nothing = !examination.now.is_empty() && examination.hits.is_empty();
            let most = if nothing { NOTHING } else { STEP };
            let over = now.saturating_sub(examination.step) > most;
            let step = if examination.asked {
                // Answers come in the round in which they were asked for, or are not waited for any longer.
                Step::Over
            } else if examination.now.is_empty() {
                let known = |place: u64| stacks.knows(thread.pid, place);
                let step = examination.place(&known, over);
                if let (Step::GoesOn, Some(hit), Some(process)) =
                    (step, examination.hits.last(), self.processes.get_mut(&thread.pid))
                {
                    process.runs_unknown |= !known(hit.ip);
                }
                step
            } else {
                examination.measure(over)
            };
            match step {
                Step::GoesOn => continue,
                Step::Measure => {
                    let probe = Probe::calls(thread.tid, &examination.now);
                    let refused = probe.is_err();
                    (examination.probe, examination.step) = (probe.ok(), now);
                    if refused {
                        self.examined.under_way.remove(&id);
                    }
                }
                Step::Ask => {
                    examination.probe = None;
                    examination.asked = true;
                    for part in &examination.parts {
                        questions.push(Question {
                            key: id.0,
                            pid: thread.pid,
                            tid: thread.tid,
                            state: TaskState::Interruptible,
                            want: Want::default(),
                            runs_in: Some(part.call),
                        });
                    }
                }
                Step::Over => {
                    if let Some(examination) = self.examined.under_way.remove(&id) {
                        let known = examination.known(now);
                        let (again, failed) = self.examined.again.entry(id).or_default();
                        if known.of.is_empty() {
                            *failed += 1;
                            *again = now + EVERY.min(SOON * u64::from(*failed));
                        } else {
                            *failed = 0;
                            self.examined.known.insert(id, known);
                        }
                    }
                }
            }
        }
        questions
    }

    /// What a running thread's call is about.
    pub(super) fn described_running(&mut self, id: ThreadId, call: Call, object: Option<(String, Object)>) {
        let object = object.and_then(|object| self.met.object(object, &mut self.events));
        self.examined.described(id, call, object);
    }
}

/// How an examination goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    GoesOn,
    Measure,
    Ask,
    Over,
}

impl Examination {
    /// Where its calls come from. `known`: whether there is code at an address.
    fn place(&mut self, known: &dyn Fn(u64) -> bool, over: bool) -> Step {
        let mut found = places(&self.hits);
        found.retain(|(place, _)| known(*place));
        let seen: usize = found.iter().map(|(_, count)| count).sum();
        if seen < SAMPLES && !over {
            return Step::GoesOn;
        }
        let main = found
            .first()
            .filter(|(_, count)| seen >= SOLE && count * 4 >= seen * 3);
        self.main = main.map(|(place, _)| *place);
        self.next = found.iter().map(|(place, _)| *place).take(PLACES).collect();
        self.go_on(Step::Over)
    }

    fn go_on(&mut self, otherwise: Step) -> Step {
        self.hits.clear();
        self.now = self.next.drain(..self.next.len().min(AT_ONCE)).collect();
        match self.now.as_slice() {
            [] => otherwise,
            _ => Step::Measure,
        }
    }

    fn measure(&mut self, over: bool) -> Step {
        let all = self.now.len() * 2 * usize::from(HITS);
        if self.hits.len() < all && !over {
            return Step::GoesOn;
        }
        self.parts.extend(parts(&self.hits, &self.now));
        self.go_on(Step::Ask)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dealt, Examination, Known, Step};
    use crate::sampling::measured::Part;
    use crate::sampling::probe::Hit;
    use holdup_evidence::Call;

    fn part(name: &str, share: f64, too_fast: bool) -> Part {
        Part {
            place: 0x1002,
            call: Call::named(name),
            share,
            too_fast,
        }
    }

    /// Half of its ticks were the kernel's.
    fn examination(parts: Vec<Part>, sole: bool) -> Examination {
        Examination {
            step: 0,
            ticks: [(10, 10), (20, 20)],
            probe: None,
            hits: Vec::new(),
            now: Vec::new(),
            next: Vec::new(),
            main: sole.then_some(0x1002),
            parts,
            asked: false,
            objects: Vec::new(),
        }
    }

    fn at(place: u64) -> Hit {
        Hit {
            clock: 1,
            ip: 5,
            cx: place,
            ax: 0,
            args: [0; 4],
        }
    }

    #[test]
    fn ticks_are_dealt_out_by_shares_and_the_rest_is_untold() {
        let dealt = |name, share| Dealt {
            call: Call::named(name),
            object: None,
            share,
            owed: 0.0,
        };
        let mut known = Known {
            at: 0,
            of: vec![dealt("read", 0.6), dealt("write", 0.2)],
            untold: 0.0,
        };
        let calls: Vec<Call> = (0..100).map(|_| known.deal().0).collect();
        let of = |call: Call| calls.iter().filter(|one| **one == call).count();
        let counts = [
            of(Call::named("read")),
            of(Call::named("write")),
            of(Call::untold()),
        ];
        assert_eq!(counts, [60, 20, 20]);
    }

    #[test]
    fn shares_are_of_the_time_in_the_kernel() {
        let of = |parts, sole| examination(parts, sole).shares();
        assert_eq!(of(vec![part("read", 0.25, false)], false), [0.5]);
        assert_eq!(
            of(vec![part("read", 0.45, false)], false),
            [1.0],
            "the rest is within the error"
        );
        assert_eq!(
            of(vec![part("read", 0.6, false), part("write", 0.6, false)], false),
            [0.5, 0.5]
        );
        assert_eq!(
            of(vec![part("write", 0.01, false)], true),
            [0.02],
            "the only place that was seen, and little time in it"
        );
        assert_eq!(of(vec![part("clock_gettime", 0.0, true)], true), [1.0]);
        assert_eq!(of(vec![part("clock_gettime", 0.0, true)], false), [0.0]);
    }

    #[test]
    fn places_with_code_are_measured_two_at_a_time() {
        let mut one = examination(Vec::new(), false);
        one.hits = [at(8), at(8), at(16), at(24), at(99)].to_vec();
        let known = |place: u64| place != 99;
        assert_eq!(one.place(&known, false), Step::GoesOn, "few are seen yet");
        assert_eq!(one.place(&known, true), Step::Measure);
        assert_eq!(
            (one.now.as_slice(), one.next.as_slice()),
            (&[8, 16][..], &[24][..])
        );
        assert_eq!(one.measure(false), Step::GoesOn);
        assert_eq!(one.measure(true), Step::Measure);
        assert_eq!(one.now, [24]);
        assert_eq!(one.measure(true), Step::Ask);
        assert_eq!(
            examination(Vec::new(), false).place(&known, true),
            Step::Over,
            "nothing was seen"
        );
    }
}
