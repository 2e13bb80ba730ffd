//! What a call of a trace was about, from its arguments and from what the trace told before.
//!
//! In: a call, and the descriptors known so far. Out: its name for the table of calls: object, peers, limits.

use super::arguments::{self, descriptor, polled, set, split, string, value};
use super::descriptors::{CONNECTING, may_be_own};
use super::line::{Call, number};
use super::tally::{Entry, Key, NO_NAME, Name, Single, Way};
use super::threads::Place;
use super::trace::{Trace, WORTH_A_STACK};
use memchr::memmem;

impl Trace {
    /// The entry of a call: what it is about, and what is distinguished beyond that.
    pub(super) fn describe(
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
            // The first argument is a set of semaphores, and no descriptor.
            b"semop" | b"semtimedop" => {
                single.args = split(call.args).next().and_then(value).map(|set| [set, 0, 0, 0]);
            }
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
                        // Of a poll it is not known what was polled.
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
}

/// The peer of a TCP connection as the report has it.
pub(super) fn inet_peer(object: &str) -> Option<&str> {
    let object = object.strip_prefix(CONNECTING).unwrap_or(object);
    let inside = object
        .strip_prefix("TCP:[->")
        .or_else(|| object.strip_prefix("TCPv6:[->"))?;
    inside.strip_suffix(']')
}

/// Whether a call that came back with 0 let time pass and nothing else.
pub(super) fn sleeps(call: &Call<'_>) -> bool {
    match call.name {
        b"nanosleep" | b"clock_nanosleep" => true,
        b"poll" => split(call.args).nth(1) == Some(b"0"),
        _ => call.args.starts_with(b"0, NULL, NULL, NULL"),
    }
}

pub(super) fn after_key(text: &[u8], key: &[u8]) -> Option<u64> {
    let rest = text.get(memmem::find(text, key)? + key.len()..)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    number(rest.get(..digits)?)
}
