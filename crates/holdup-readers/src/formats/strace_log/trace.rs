//! From calls to entries: what each is about, how long it took, whose way it lies on.
//!
//! In: calls with thread and time, from whichever tracer's log. Out: [`Calls`].

use super::arguments::{self, descriptor, polled, returned, set, split, string, value};
use super::descriptors::{CONNECTING, may_be_own};
use super::line::{Call, number};
use super::refusals::{REFUSED, Refusals};
use super::tally::{Entry, Key, NO_NAME, Name, Single, Tally, Way};
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
    tally: Tally,
    refusals: Refusals,
    /// The command of the first thread.
    command: Option<String>,
    first: Option<i64>,
    last: Option<i64>,
    /// Lengths that only the thread's next call tells.
    at_most: bool,
    /// What instants are counted from, to turn them back.
    pub(super) zero: Zero,
    /// Entry of the last call that came back, where it is the longest there and long enough to ask who asked for it.
    pub(super) last_long: Option<Entry>,
    seen: bool,
}

/// How an instant in the log is to be told.
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
const WORTH_A_STACK: Ns = 1_000_000;

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

    /// The thread's next line has come: a call whose length was not told is over.
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

    /// The entry of a call: what it is about, and what is told apart beyond that.
    fn describe(
        &mut self,
        place: Place,
        process: Place,
        call: &Call<'_>,
        result: Option<i64>,
    ) -> (Entry, Single, Name) {
        let mut way = Way::default();
        let mut single = Single {
            returned: result,
            ..Single::default()
        };
        let thread = self.threads.at(place);
        let program = thread.map_or(NO_NAME, |thread| thread.program);
        let known = self.threads.at(process).map(|process| &process.descriptors);
        let first = descriptor(call.args);
        let mut call_name = std::str::from_utf8(call.name).unwrap_or_default();
        let of = |fd: u32, said| known.and_then(|known| known.object(fd, said)).map(String::from);
        let mut object = None;
        match call.name {
            b"poll" | b"ppoll" => {
                let mut parts = split(call.args);
                let list = parts.next().unwrap_or_default();
                let mut count = parts.next().and_then(value).unwrap_or(0);
                let limit = parts.next().unwrap_or_default();
                let ready = memmem::find(call.result, b"fd=").and_then(|_| polled(call.result).next());
                let ended_by = ready.filter(|_| result.is_some_and(|value| value > 0));
                let awaited = || {
                    let mut others = polled(list).filter(|(fd, said, _)| {
                        let object = of(*fd, *said);
                        count == 1 || !object.as_deref().is_some_and(may_be_own)
                    });
                    let first = others.next()?;
                    others.next().is_none().then_some(first)
                };
                if let Some((fd, said, writing)) = ended_by.or_else(awaited) {
                    count = 1;
                    // The result says what is ready, the list what it is.
                    let said = said.or_else(|| polled(list).find(|one| one.0 == fd)?.1);
                    object = of(fd, said);
                    way.writing = writing;
                    way.ready = ended_by.is_some();
                }
                way.timed_out = result == Some(0);
                way.operation = u8::try_from(count).unwrap_or(u8::MAX);
                let limit = match limit.strip_prefix(b"-") {
                    Some(_) => u64::from(u32::MAX),
                    None => value(limit).unwrap_or(1),
                };
                single.args = Some([0, count, limit, 0]);
            }
            b"select" | b"pselect6" => {
                let mut parts = split(call.args);
                let count = parts.next().and_then(value).unwrap_or(0);
                let sets: Vec<&[u8]> = parts.take(3).collect();
                let reading = sets.first().copied().unwrap_or_default();
                let writing = sets.get(1).copied().unwrap_or_default();
                let both = set(reading)
                    .map(|one| (one, false))
                    .chain(set(writing).map(|one| (one, true)));
                let all: Vec<_> = both.collect();
                let answer = ["in [", "out ["].into_iter().find_map(|key| {
                    let at = memmem::find(call.result, key.as_bytes())?;
                    let list = call.result.get(at + key.len() - 1..)?;
                    set(list).next().map(|one| (one, key == "out ["))
                });
                let answer = answer.filter(|_| result.is_some_and(|value| value > 0));
                if let Some(((fd, said), writing)) = answer.or(match all.as_slice() {
                    [one] => Some(*one),
                    _ => None,
                }) {
                    object = of(fd, said);
                    way.writing = writing;
                    way.ready = answer.is_some();
                }
                way.timed_out = result == Some(0);
                way.operation = u8::try_from(all.len()).unwrap_or(u8::MAX);
                single.args = Some([count, u64::from(!all.is_empty()), 0, 0]);
            }
            b"epoll_wait" | b"epoll_pwait" | b"epoll_pwait2" => {
                object = first.and_then(|(fd, said)| of(fd, said));
                way.timed_out = result == Some(0);
            }
            b"futex" => {
                let mut parts = split(call.args);
                let address = parts.next().and_then(value).unwrap_or(0);
                let operation = parts.next().unwrap_or_default();
                let operation = match () {
                    () if operation.starts_with(b"FUTEX_WAIT_BITSET") => 9,
                    () if operation.starts_with(b"FUTEX_WAIT") => 0,
                    () if operation.starts_with(b"FUTEX_LOCK_PI") => 6,
                    () => 1,
                };
                let expected = parts.next().and_then(value).unwrap_or(0);
                let limited = parts.next().is_some_and(|limit| limit.starts_with(b"{"));
                object = (operation != 1).then(|| format!("futex:{address:#x}"));
                // -ETIMEDOUT
                way.timed_out = result == Some(-110);
                way.operation = operation;
                single.args = Some([address, u64::from(operation), expected, u64::from(limited)]);
            }
            b"fcntl" => {
                object = first.and_then(|(fd, said)| of(fd, said));
                let command = split(call.args).nth(1).unwrap_or_default();
                way.operation = match command {
                    b"F_SETLKW" => 7,
                    b"F_OFD_SETLKW" => 38,
                    _ => 0,
                };
                single.args = Some([0, u64::from(way.operation), 0, 0]);
            }
            b"wait4" | b"waitid" | b"vfork" => {}
            b"clone" => {
                let vfork = memmem::find(call.args, b"CLONE_VFORK").is_some();
                single.args = Some([if vfork { 0x4000 } else { 0 }, 0, 0, 0]);
            }
            b"open" | b"openat" | b"openat2" | b"execve" | b"stat" | b"lstat" | b"newfstatat" | b"statx"
            | b"access" | b"unlink" | b"unlinkat" | b"rename" | b"renameat2" | b"mkdir" | b"mkdirat"
            | b"creat" => {
                // Paths are many, and matter only where the call was slow.
                if call.ns.is_none_or(|ns| ns >= WORTH_A_STACK) {
                    let said = super::descriptors::annotated(call.result).and_then(super::descriptors::plain);
                    let path = || split(call.args).find_map(string).map(str::to_owned);
                    object = said.map(String::from).or_else(path);
                }
            }
            b"mmap" | b"brk" | b"munmap" | b"mprotect" | b"rt_sigaction" | b"rt_sigprocmask" => {}
            b"connect" => {
                // The line shows the socket before the call, and the address that is asked for.
                let asked = first.and_then(|(fd, said)| {
                    let transport = known
                        .and_then(|known| known.get(fd))
                        .map(|known| known.transport());
                    let transport = transport.filter(|known| !known.is_empty());
                    let said = super::descriptors::transport_of(said.unwrap_or_default());
                    arguments::address(call.args, transport.unwrap_or(said))
                });
                object = asked;
                way.timed_out = result == Some(-110);
            }
            b"restart_syscall" => {
                // `<... resuming interrupted nanosleep ...>`
                if let Some(at) = memmem::find(call.args, b"interrupted ") {
                    let rest = call.args.get(at + b"interrupted ".len()..).unwrap_or_default();
                    let word = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
                    let word = std::str::from_utf8(word).unwrap_or_default();
                    if !word.is_empty() && word != "system" {
                        call_name = word;
                        // Of a poll it is not told what was polled.
                        single.args = word.ends_with("poll").then_some([0, 2, 0, 0]);
                    }
                }
            }
            _ => {
                object = first.and_then(|(fd, said)| of(fd, said));
                if let Some(known) = first.and_then(|(fd, _)| known?.get(fd)) {
                    way.durable = known.durable;
                    way.direct = known.direct;
                }
                // -EAGAIN of a receive that has a limit; one that does not block comes back at once.
                way.timed_out = result == Some(-110)
                    || (result == Some(-11) && call.ns.is_some_and(|ns| ns >= WORTH_A_STACK));
                let place = match call.name {
                    b"read" | b"write" | b"pread64" | b"pwrite64" | b"recvfrom" | b"sendto" => Some(2),
                    b"getrandom" => Some(1),
                    b"sendfile" | b"fallocate" => Some(3),
                    _ => None,
                };
                // Splitting is the dearest part of a line: only where it can become the longest.
                if call.ns.is_none_or(|ns| ns >= WORTH_A_STACK / 10) {
                    single.bytes = place
                        .and_then(|place| split(call.args).nth(place))
                        .and_then(value);
                }
            }
        }
        let connected = object
            .as_deref()
            .is_some_and(|object| object.starts_with(CONNECTING));
        if connected
            && way.ready
            && let Some((fd, _)) = polled(call.args).next().map(|one| (one.0, one.1)).or(first)
            && let Some(process) = self.threads.get(process)
        {
            process.descriptors.connected(fd);
        }
        let key = Key {
            thread: place,
            program,
            call: self.tally.name(call_name),
            object: object
                .as_deref()
                .map_or(NO_NAME, |object| self.tally.name(object)),
            way,
        };
        (self.tally.entry(key), single, key.object)
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
        let last = self.last;
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

/// The peer of a TCP connection as the report has it.
fn inet_peer(object: &str) -> Option<&str> {
    let object = object.strip_prefix(CONNECTING).unwrap_or(object);
    let inside = object
        .strip_prefix("TCP:[->")
        .or_else(|| object.strip_prefix("TCPv6:[->"))?;
    inside.strip_suffix(']')
}

/// Whether a call that came back with 0 let time pass and nothing else.
fn sleeps(call: &Call<'_>) -> bool {
    match call.name {
        b"nanosleep" | b"clock_nanosleep" => true,
        b"poll" => split(call.args).nth(1) == Some(b"0"),
        _ => call.args.starts_with(b"0, NULL, NULL, NULL"),
    }
}

fn after_key(text: &[u8], key: &[u8]) -> Option<u64> {
    let rest = text.get(memmem::find(text, key)? + key.len()..)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    number(rest.get(..digits)?)
}
