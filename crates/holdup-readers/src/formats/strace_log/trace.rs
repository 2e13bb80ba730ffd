//! From calls to entries: what each is about, how long it took, whose way it lies on.
//!
//! In: calls with thread and time, from whichever tracer's log. Out: [`Calls`].

use super::arguments::{descriptor, returned, split, string};
use super::describe::{after_key, inet_peer, sleeps};
use super::failures::Failures;
use super::futexes::Futexes;
use super::line::Call;
use super::refusals::{REFUSED, Refusals};
use super::tally::{Entry, Name, Single, Tally};
use super::threads::{Open, Place, Threads, makes, makes_thread, waits_for_child};
use crate::gather::Out;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Calls, Quote, When};
use memchr::memmem;

/// Bytes of a call's arguments that are kept until it comes back.
const KEPT: usize = 4096;

/// The trace as it is read.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) threads: Threads,
    pub(super) tally: Tally,
    refusals: Refusals,
    failures: Failures,
    /// The command of the first thread.
    command: Option<String>,
    first: Option<i64>,
    last: Option<i64>,
    /// The time of the last line: earlier than the latest where the clock was set back.
    latest_line: Option<i64>,
    /// Lengths that only the thread's next call tells.
    at_most: bool,
    /// What instants are counted from, to turn them back.
    pub(super) zero: Zero,
    /// Entry of the last call that came back, where it is the longest there and long enough to ask who asked for it.
    pub(super) last_long: Option<Entry>,
    seen: bool,
}

/// How an instant in the log is to be reported.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Zero {
    /// Nothing tells times.
    #[default]
    None,
    /// Nanoseconds since the first midnight.
    OfDay,
    Unix,
    Start,
}

/// From which length of a call on its stack is kept.
pub(super) const WORTH_A_STACK: Ns = 1_000_000;

/// Where and when.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) place: Option<Place>,
    pub(super) began: Option<i64>,
    pub(super) ended: Option<i64>,
    pub(super) quote: Quote,
    /// How coarse the times are.
    pub(super) coarse: Ns,
}

impl Trace {
    /// The log has come to this instant.
    pub(super) fn now(&mut self, now: Option<i64>) {
        if let Some(now) = now {
            self.first = Some(self.first.map_or(now, |first| first.min(now)));
            self.last = Some(self.last.map_or(now, |last| last.max(now)));
            self.latest_line = Some(now);
        }
    }

    /// A line tells the thread's name.
    pub(super) fn named(&mut self, place: Place, name: &[u8]) {
        let name = self.tally.name(&String::from_utf8_lossy(name));
        if let Some(thread) = self.threads.get(place) {
            thread.program = name;
        }
    }

    fn when(&self, at: Option<i64>) -> Option<When> {
        /// Nanoseconds of a day.
        const DAY: i64 = 86_400_000_000_000;
        let at = at?;
        match self.zero {
            Zero::None => None,
            Zero::OfDay => u64::try_from(at.rem_euclid(DAY)).ok().map(|of_day| {
                When::Civil(holdup_evidence::observed::Civil {
                    day: None,
                    year_known: false,
                    of_day,
                })
            }),
            Zero::Unix => Some(When::Unix(at)),
            Zero::Start => u64::try_from(at).ok().map(When::SinceStart),
        }
    }

    /// A call begins, and its end is on a later line.
    pub(super) fn begins(&mut self, at: &At, name: &[u8], args: &[u8]) {
        self.seen = true;
        self.next_of(at);
        let Some(place) = at.place else { return };
        let before = self.threads.get(place).and_then(|thread| thread.open.take());
        // Broken a second time, by another's line.
        let (mut args_so_far, began) = match before {
            Some(open) if *open.name == *name => (open.args, open.began),
            _ => (Vec::new(), at.began),
        };
        let room = KEPT.saturating_sub(args_so_far.len());
        args_so_far.extend_from_slice(args.get(..args.len().min(room)).unwrap_or_default());
        let reads_pipe = name == b"read" && {
            let process = self.threads.at(place).map_or(place, |thread| thread.process);
            let known = self.threads.at(process).map(|process| &process.descriptors);
            let object = descriptor(args).and_then(|(fd, said)| known?.object(fd, said));
            object.is_some_and(|object| object.starts_with("pipe:"))
        };
        let waits_for_exec = name == b"vfork" || memmem::find(args, b"CLONE_VFORK").is_some();
        if waits_for_child(name) || waits_for_exec || reads_pipe {
            self.threads.waits(place, at.began);
        }
        if let Some(thread) = self.threads.get(place) {
            thread.open = Some(Open {
                name: name.into(),
                args: args_so_far,
                began,
                quote: at.quote.clone(),
            });
        }
    }

    /// A call comes back that began on an earlier line.
    pub(super) fn resumes(&mut self, at: &At, call: &Call<'_>) {
        let open = at
            .place
            .and_then(|place| self.threads.get(place))
            .and_then(|thread| thread.open.take());
        let Some(mut open) = open.filter(|open| *open.name == *call.name || call.name.is_empty()) else {
            // Its beginning was before the log's.
            return self.comes_back(
                &At {
                    began: None,
                    ..at.clone()
                },
                call,
            );
        };
        let room = KEPT.saturating_sub(open.args.len());
        open.args
            .extend_from_slice(call.args.get(..call.args.len().min(room)).unwrap_or_default());
        let length = || u64::try_from(at.ended?.checked_sub(open.began?)?).ok();
        let whole = Call {
            name: &open.name,
            args: &open.args,
            result: call.result,
            ns: call.ns.or_else(length),
        };
        self.comes_back(
            &At {
                began: open.began,
                quote: open.quote,
                ..at.clone()
            },
            &whole,
        );
    }

    /// The thread's next line has come: a call whose length was not known is over.
    pub(super) fn next_of(&mut self, at: &At) {
        let Some(place) = at.place else { return };
        let deferred = self.threads.get(place).and_then(|thread| thread.deferred.take());
        let Some((entry, single, began, quote)) = deferred else {
            return;
        };
        let now = at.began.or(at.ended).unwrap_or(began);
        let ns = u64::try_from(now.saturating_sub(began))
            .unwrap_or(0)
            .saturating_sub(at.coarse);
        self.at_most = true;
        self.account(place, entry, &single, ns, Some(began), Some(now), &quote);
    }

    /// A call has come back.
    pub(super) fn comes_back(&mut self, at: &At, call: &Call<'_>) {
        self.seen = true;
        self.last_long = None;
        self.failures
            .came_back(call.name, call.args, call.result, &at.quote);
        let Some(place) = at.place else { return };
        let result = returned(call.result);
        let process = self.threads.at(place).map_or(place, |thread| thread.process);
        let (entry, single, object) = self.describe(place, process, call, result);
        if let Some(thread) = self.threads.get(process) {
            thread.descriptors.learn(call, result);
        }
        self.learn(place, call, result, at);
        let child = result.filter(|value| *value > 0 && waits_for_child(call.name));
        let child = match call.name {
            b"vfork" => result.filter(|value| *value > 0),
            b"clone" | b"clone3" if memmem::find(call.args, b"CLONE_VFORK").is_some() => {
                result.filter(|value| *value > 0)
            }
            // Of waitid the child stands in what it filled in.
            b"waitid" => after_key(call.args, b"si_pid=").and_then(|pid| i64::try_from(pid).ok()),
            b"read" | b"write" => self.by_pipe(place, call, object, result, at),
            _ => child,
        };
        match (call.ns, at.began) {
            (Some(ns), _) => {
                let ended = at
                    .began
                    .map(|began| began.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX)));
                self.now(ended);
                let ended = ended.or(at.ended);
                match child.and_then(|child| u32::try_from(child).ok()) {
                    Some(child) => {
                        let when = self.when(at.began);
                        self.tally.add(entry, &single, ns, when, &at.quote);
                        self.threads
                            .waited(&mut self.tally, place, entry, ns, ended, child);
                    }
                    None => self.account(place, entry, &single, ns, at.began, ended, &at.quote),
                }
            }
            (None, Some(began)) => {
                if let Some(thread) = self.threads.get(place) {
                    thread.deferred = Some((entry, single, began, at.quote.clone()));
                }
            }
            // No time at all: it happened.
            (None, None) => {
                self.tally.add(entry, &single, 0, None, &at.quote);
            }
        }
    }

    /// Who ended a read from a pipe that another thread's line had broken: one that did something meanwhile.
    fn by_pipe(
        &mut self,
        place: Place,
        call: &Call<'_>,
        object: Name,
        result: Option<i64>,
        at: &At,
    ) -> Option<i64> {
        if !self.tally.text(object).starts_with("pipe:[") {
            return None;
        }
        if call.name == b"write" {
            self.threads.wrote(place, object);
            return None;
        }
        let broken = at.began.is_none() || at.ended != at.began;
        let writer = broken.then(|| self.threads.wrote_for(place, object, result == Some(0)));
        writer.flatten().map(i64::from)
    }

    #[expect(clippy::too_many_arguments, reason = "one call")]
    fn account(
        &mut self,
        place: Place,
        entry: Entry,
        single: &Single,
        ns: Ns,
        began: Option<i64>,
        ended: Option<i64>,
        quote: &Quote,
    ) {
        let when = self.when(began);
        let longest = self.tally.add(entry, single, ns, when, quote);
        self.last_long = (longest && ns >= WORTH_A_STACK).then_some(entry);
        self.threads.spent(&mut self.tally, place, entry, ns, ended);
    }

    /// What a call does to what is known of threads and peers.
    fn learn(&mut self, place: Place, call: &Call<'_>, result: Option<i64>, at: &At) {
        match call.name {
            b"execve" | b"execveat" if result == Some(0) => {
                let path = split(call.args).find_map(string).unwrap_or_default();
                let program = path.rsplit('/').next().unwrap_or_default();
                let name = self.tally.name(program);
                if place == 0 && self.command.is_none() {
                    self.command = Some(program.to_owned());
                }
                if let Some(thread) = self.threads.get(place) {
                    thread.program = name;
                }
            }
            b"prctl" if call.args.starts_with(b"PR_SET_NAME") => {
                if let Some(name) = split(call.args).nth(1).and_then(string) {
                    let name = self.tally.name(name);
                    if let Some(thread) = self.threads.get(place) {
                        thread.program = name;
                    }
                }
            }
            name if makes(name) => {
                if let Some(tid) = result
                    .filter(|tid| *tid > 0)
                    .and_then(|tid| u32::try_from(tid).ok())
                {
                    self.threads.cloned(place, tid, makes_thread(call.args));
                }
            }
            b"connect" | b"nanosleep" | b"clock_nanosleep" | b"select" | b"pselect6" | b"poll"
            | b"getsockopt" => {
                self.peers(place, call, result, at);
            }
            _ => {}
        }
    }

    /// Requests for connections, and sleeps between them.
    fn peers(&mut self, place: Place, call: &Call<'_>, result: Option<i64>, at: &At) {
        let Some(thread) = self.threads.at(place) else {
            return;
        };
        let parent = thread
            .parent
            .and_then(|parent| self.threads.at(parent))
            .map(|parent| parent.process);
        let family = (thread.process, parent);
        // What came of a connection that was begun and not waited for is asked for later.
        let came_of_it = call.name == b"getsockopt" && memmem::find(call.args, b"SO_ERROR").is_some();
        let came_of_it = came_of_it.then(|| match memmem::find(call.args, b"[ECONNREFUSED]") {
            Some(_) => REFUSED,
            None => i64::from(memmem::find(call.args, b"SO_ERROR, [0]").is_none()),
        });
        if call.name == b"connect" || came_of_it.is_some() {
            let Some((fd, _)) = descriptor(call.args) else {
                return;
            };
            let process = self.threads.at(thread.process);
            let object = process.and_then(|process| process.descriptors.object(fd, None));
            let Some(peer) = object.as_deref().and_then(inet_peer) else {
                return;
            };
            let by = (self.tally.text(thread.program), thread.tid);
            let result = came_of_it.or(result);
            self.refusals.connect(family, peer, by, result, at.began);
        } else if result == Some(0) && sleeps(call) {
            self.refusals.sleep(family, call.ns.unwrap_or(0));
        }
    }

    /// Who asked for the call that came back last.
    pub(super) fn asked(&mut self, frames: &[String], out: &mut Out<'_>) {
        if let Some(entry) = self.last_long.take() {
            let stack = out.stack(frames.iter().map(String::as_str));
            self.tally.stack(entry, stack);
        }
    }

    /// The log is over.
    pub(super) fn finish(mut self, out: &mut Out<'_>) {
        if !self.seen {
            return;
        }
        // Of what has not come back the last line tells how long it is out, and not the latest time.
        let last = self.latest_line;
        let mut futexes = Futexes::default();
        let is_alone = self.threads.live().len() == 1;
        for place in self.threads.live().to_vec() {
            let quote = out.here();
            let at = At {
                place: Some(place),
                began: last,
                ended: last,
                quote,
                coarse: 0,
            };
            self.next_of(&at);
            let Some(open) = self.threads.get(place).and_then(|thread| thread.open.take()) else {
                continue;
            };
            // Where there are times, they say more.
            if last.is_none() {
                let tid = self.threads.at(place).map_or(0, |thread| thread.tid);
                match &*open.name {
                    b"futex" => futexes.open(tid, &open.args, &open.quote),
                    name => self.failures.left_open(tid, name, &open.args, &open.quote),
                }
            }
            let length = || u64::try_from(last?.checked_sub(open.began?)?).ok();
            let ns = length().unwrap_or(0);
            let process = self.threads.at(place).map_or(place, |thread| thread.process);
            let call = Call {
                name: &open.name,
                args: &open.args,
                result: b"",
                ns: Some(ns),
            };
            let (entry, single, _) = self.describe(place, process, &call, None);
            self.tally.open(entry);
            self.account(place, entry, &single, ns, open.began, last, &open.quote);
        }
        let elapsed = self.first.zip(self.last);
        let elapsed = elapsed.and_then(|(first, last)| u64::try_from(last.checked_sub(first)?).ok());
        let threads = self.threads;
        futexes.end(is_alone, |tid| threads.knows(tid), out);
        self.failures.end(out);
        let who = |place: Place| {
            let thread = threads.at(place);
            let process = thread.and_then(|thread| threads.at(thread.process));
            (
                thread.map_or(0, |thread| thread.tid),
                process.map_or(0, |process| process.tid),
            )
        };
        let calls = self.tally.finish(who);
        let main = || {
            calls
                .iter()
                .map(|call| call.main.saturating_add(call.handed_on))
                .fold(0, Ns::saturating_add)
        };
        out.calls(Calls {
            elapsed: elapsed.filter(|elapsed| *elapsed > 0).or_else(|| Some(main())),
            command: self.command,
            wall: Some(true),
            followed: threads.followed(),
            at_most: self.at_most,
            refused: self.refusals.finish(),
            calls,
            ..Calls::default()
        });
    }
}
