//! poll, select and epoll: the time belongs to the object that ended the wait, or that was awaited.
//!
//! In: a wait in one of these calls. Out: a cause and resource, and whether the time ran out. What is not
//! known stays `poll.wait`, with the descriptors named.

use super::objects::{self, Use};
use super::{ETIMEDOUT_OR_AGAIN, Site};
use holdup_evidence::{Call, Cause, Object, ObjectKind, PolledFd, SocketAddress, Waker};
use holdup_knowledge::calls::Kind;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_knowledge::{calls, system_calls};
use holdup_model::attributed::{Common, Resource, ResourceKind};

const POLLIN: u16 = 0x001;
const POLLOUT: u16 = 0x004;
/// `POLLRDNORM`, `POLLRDBAND`: what select asks for under the name of reading.
const READING: u16 = POLLIN | 0x002 | 0x040 | 0x080;

/// How many descriptors `poll.wait` names before it says how many more there are.
const NAMED_DESCRIPTORS: usize = 4;

/// What a poll came to.
pub(super) struct Polled {
    pub(super) cause: Cause,
    pub(super) resource: Resource,
    pub(super) timed_out: bool,
}

/// A descriptor of a set, and what was awaited of it.
#[derive(Clone, Copy)]
struct Awaited<'a> {
    object: &'a Object,
    used: Use,
    /// Known to have its other end in the waiter's own process.
    own: bool,
}

impl Awaited<'_> {
    fn cause(&self) -> Option<Cause> {
        objects::polled_cause(self.object, self.used)
    }

    /// Whether only the program itself can make it ready: an event loop that awaits nothing else sleeps.
    fn by_itself(&self) -> bool {
        self.own || self.object.kind == ObjectKind::Eventfd
    }
}

/// Classifies a wait in poll, select or epoll.
pub(super) fn classify(site: &Site, kind: Kind) -> Polled {
    if calls::polls_nothing(&site.call) {
        return nothing(site);
    }
    let awaited = awaited(site, kind);
    let returned = site.memory.and_then(|memory| memory.returned);
    let timed_out = returned == Some(0) || returned.is_some_and(|value| ETIMEDOUT_OR_AGAIN.contains(&value));
    // A signal ended it, or nothing has: what it awaited is reported as for one whose time ran out.
    let unfinished = returned.is_some_and(|value| value < 0);
    if unfinished && ended_by_child(site) {
        return Polled {
            cause: Cause::ProcessChild,
            resource: Resource::of(Common::Child),
            timed_out: false,
        };
    }
    if !timed_out && let Some(found) = ended_by(site, &awaited) {
        return found;
    }
    let complete = site.memory.is_some_and(|memory| {
        !memory.polled_truncated && memory.polled.len() == awaited.len() && !awaited.is_empty()
    }) || (calls::polled_count(&site.call) == Some(1) && awaited.len() == 1);
    // What becomes ready is on an epoll's list before its waiter is woken: with an empty list the time ran out, a
    // signal came, or nothing has come yet.
    let nothing_came = kind == Kind::Epoll && site.ready.is_none();
    // Nobody saw what ended it: what the program is known to wake itself by is not what it awaited of others.
    let unseen = matches!(site.waker, Waker::Unknown) && returned.is_none();
    let candidates = if timed_out || unfinished || nothing_came {
        without_own_wakeups(&awaited)
    } else if unseen {
        of_others(&awaited)
    } else {
        awaited.clone()
    };
    if let Some(found) = being_made(&candidates, timed_out).or_else(|| room(&candidates, timed_out)) {
        return found;
    }
    if complete && awaited.iter().all(Awaited::by_itself) {
        return by_itself_alone(site, &awaited, timed_out);
    }
    if complete && let Some(first) = candidates.first() {
        let cause = first.cause();
        if let Some(cause) = cause
            && candidates.iter().all(|other| other.cause() == Some(cause))
        {
            return Polled {
                cause,
                resource: objects::resource(first.object),
                timed_out,
            };
        }
    }
    Polled {
        cause: Cause::PollWait,
        resource: descriptors(site, &awaited),
        timed_out,
    }
}

/// A set in which only the program itself can make something ready. With a time limit it sleeps until then, whether that has come or not;
/// without one it waits for one of its own threads, and for no peer.
fn by_itself_alone(site: &Site, awaited: &[Awaited<'_>], timed_out: bool) -> Polled {
    let sleeps = timed_out || matches!(calls::poll_limit_ms(&site.call), Some(Some(_)));
    if sleeps {
        return Polled {
            cause: Cause::TimerSleep,
            resource: Resource::of(Common::Timer),
            timed_out,
        };
    }
    let resource = match awaited {
        [first, ..] if awaited.iter().any(|one| one.own) => own_wakeup(first),
        _ => descriptors(site, awaited),
    };
    Polled {
        cause: Cause::IpcQueue,
        resource,
        timed_out,
    }
}

/// A pipe or pair of sockets with both ends in the process: what an eventfd is to others.
fn own_wakeup(one: &Awaited<'_>) -> Resource {
    Resource::of(Common::OwnWakeup).with(|facts| facts.fd_kind = objects::resource(one.object).detail.fd_kind)
}

/// A connection that is being made, if one is among what nobody has made ready. It was asked for, and is in the set for only as
/// long as there is no answer: whatever else a loop listens to, and however often it looks at its timers meanwhile. Where
/// several are being made, the first stands for them.
fn being_made(candidates: &[Awaited<'_>], timed_out: bool) -> Option<Polled> {
    let connecting = candidates
        .iter()
        .find(|one| one.used == Use::Out && objects::is_connecting(one.object))?;
    Some(Polled {
        cause: connecting.cause()?,
        resource: objects::resource(connecting.object),
        timed_out,
    })
}

/// Room to send on, where no socket of the set is awaited for anything else. Who has data to send and reads from nobody meanwhile is
/// held up by the one that takes it, whatever else may stir it: a signal, its parent's end, a time limit. A loop that listens to others
/// beside one that is slow to read goes on with those.
fn room(candidates: &[Awaited<'_>], timed_out: bool) -> Option<Polled> {
    let mut sockets = candidates
        .iter()
        .filter(|one| matches!(one.object.kind, ObjectKind::Socket { .. }));
    let first = sockets.next().filter(|first| first.used == Use::Out)?;
    sockets.all(|one| one.used == Use::Out).then_some(())?;
    Some(Polled {
        cause: first.cause()?,
        resource: objects::resource(first.object),
        timed_out,
    })
}

/// A poll of no descriptors: a sleep, or, without a time limit, a wait for a signal.
fn nothing(site: &Site) -> Polled {
    let (cause, common) = match calls::poll_limit_ms(&site.call) {
        Some(None) => (Cause::IpcSignal, Common::Signal),
        _ => (Cause::TimerSleep, Common::Timer),
    };
    let mut resource = Resource::of(common);
    if let Some(Some(limit)) = calls::poll_limit_ms(&site.call) {
        resource = resource.with(|facts| facts.asked_ms = Some(limit));
    }
    Polled {
        cause,
        resource,
        timed_out: cause == Cause::TimerSleep,
    }
}

/// The set as far as it is known: from the thread's memory, else the one object that the source resolved.
fn awaited<'a>(site: &Site<'a>, kind: Kind) -> Vec<Awaited<'a>> {
    if let Some(memory) = site.memory.filter(|memory| !memory.polled.is_empty()) {
        let known = memory.polled.iter().filter_map(|fd| {
            let object = (site.objects)(fd.object?)?;
            Some(Awaited {
                object,
                used: awaited_for(fd.events, object),
                own: fd.own,
            })
        });
        return known.collect();
    }
    let single = kind == Kind::Poll && calls::polled_count(&site.call).is_none_or(|count| count == 1);
    let object = site
        .object
        .filter(|object| single && object.kind != ObjectKind::Epoll);
    object
        .map(|object| Awaited {
            object,
            used: guess_use(object),
            own: false,
        })
        .into_iter()
        .collect()
}

/// The object that is known to have ended the wait.
fn ended_by(site: &Site, awaited: &[Awaited]) -> Option<Polled> {
    let found = |object: &Object, used| {
        // A thread of the process has written into its other end, whichever way it was seen.
        let own = awaited.iter().find(|one| one.own && one.object == object);
        let (cause, resource) = match own {
            Some(own) => (Cause::IpcQueue, own_wakeup(own)),
            None => (objects::polled_cause(object, used)?, objects::resource(object)),
        };
        Some(Polled {
            cause,
            resource,
            timed_out: false,
        })
    };
    // Before the call returns, or when it fails, `revents` still holds what an earlier call left there.
    let successful = site
        .memory
        .filter(|memory| memory.returned.is_some_and(|value| value > 0));
    let polled: &[PolledFd] = successful.map_or(&[], |memory| &memory.polled);
    let mut ready = polled.iter().filter(|fd| fd.revents != 0);
    let by_memory = ready.find_map(|fd| {
        let object = (site.objects)(fd.object?)?;
        // An error or hang-up counts as what had been asked for.
        let used = if fd.revents & (READING | POLLOUT) == 0 {
            fd.events
        } else {
            fd.revents
        };
        // The descriptor was looked up after the call, when a connection that was awaited is made.
        let before = site
            .object
            .filter(|before| objects::was_connecting(before, object));
        found(before.unwrap_or(object), use_of(used, object))
    });
    by_memory
        .or_else(|| {
            let object = site.ready?;
            let used = awaited.iter().find(|other| std::ptr::eq(other.object, object));
            found(object, used.map_or_else(|| guess_use(object), |other| other.used))
        })
        .or_else(|| {
            site.woken_by_socket
                .and_then(|object| found(object, guess_use(object)))
        })
        .or_else(|| by_waker(site, awaited).and_then(|one| found(one.object, one.used)))
}

/// Whether a process that ended sent the signal that a call of its parent failed with: what an ending process
/// sends is SIGCHLD. make waits so for children and tokens at once.
fn ended_by_child(site: &Site) -> bool {
    let Waker::Thread { call, .. } = site.waker else {
        return false;
    };
    system_calls::is(call, Does::Exits)
}

/// The only descriptor of the set that the waker's system call can have made ready.
fn by_waker<'a>(site: &Site, awaited: &[Awaited<'a>]) -> Option<Awaited<'a>> {
    let (Waker::Thread { call, .. } | Waker::Outside { call, .. }) = site.waker else {
        return None;
    };
    let mut fitting = awaited.iter().filter(|one| can_wake(call, one.object));
    let first = fitting.next()?;
    let cause = first.cause();
    fitting.all(|other| other.cause() == cause).then_some(*first)
}

/// Whether a call in another thread can make such a descriptor ready.
fn can_wake(call: &Call, object: &Object) -> bool {
    let Some(known) = system_calls::of(call) else {
        return false;
    };
    let socket = matches!(object.kind, ObjectKind::Socket { .. });
    let by_socket = Does::Sends | Does::Receives | Does::Connects | Does::Accepts | Does::ShutsDown;
    let channel = socket || matches!(object.kind, ObjectKind::Pipe | ObjectKind::Fifo);
    match &object.kind {
        _ if socket && known.is(by_socket) => true,
        _ if channel && known.is(Does::Closes) => true,
        ObjectKind::Timerfd => false,
        ObjectKind::Pidfd => known.is(Does::Exits),
        ObjectKind::Signalfd => known.is(Does::Signals),
        _ => known.is(Does::Reads | Does::Writes | Does::MovesData),
    }
}

/// Whether a descriptor is awaited for nothing but room to write to it.
#[must_use]
pub fn awaits_room(fd: &PolledFd) -> bool {
    fd.events & POLLOUT != 0 && fd.events & READING == 0
}

/// Whether a thread that waits to send may wait for this descriptor: for nothing but room, or, where its poll reports states, for room beside others.
#[must_use]
pub fn may_await_room(fd: &PolledFd) -> bool {
    awaits_room(fd) || fd.events & POLLOUT != 0 && fd.events & PolledFd::LEVEL != 0
}

/// Reading or writing, from `POLLIN` and `POLLOUT`. Only writing awaited is a wait for room.
fn use_of(events: u16, object: &Object) -> Use {
    if events & POLLOUT != 0 && (events & READING == 0 || objects::is_connecting(object)) {
        Use::Out
    } else {
        Use::In
    }
}

/// What a descriptor is awaited for. A loop whose poll reports states, and not their changes, would not wait if there were room on what it
/// asks for both of: it has something to send.
fn awaited_for(events: u16, object: &Object) -> Use {
    match events & POLLOUT != 0 && events & PolledFd::LEVEL != 0 {
        true => Use::Out,
        false => use_of(events, object),
    }
}

/// The same where the events are not known: a connecting socket is awaited to be writable.
fn guess_use(object: &Object) -> Use {
    if objects::is_connecting(object) {
        Use::Out
    } else {
        Use::In
    }
}

/// The set without the descriptors that a program wakes itself by: eventfds; pipes and unnamed Unix sockets
/// when anything else remains.
fn without_own_wakeups<'a>(awaited: &[Awaited<'a>]) -> Vec<Awaited<'a>> {
    let others: Vec<_> = awaited.iter().copied().filter(|one| !one.by_itself()).collect();
    let remote: Vec<_> = others
        .iter()
        .copied()
        .filter(|one| !may_be_own(one.object))
        .collect();
    match (others.is_empty(), remote.is_empty()) {
        (true, _) => awaited.to_vec(),
        (false, true) => others,
        (false, false) => remote,
    }
}

/// The set without what is known to be a program's own; all of it where nothing else is.
fn of_others<'a>(awaited: &[Awaited<'a>]) -> Vec<Awaited<'a>> {
    let others: Vec<_> = awaited.iter().copied().filter(|one| !one.by_itself()).collect();
    match others.is_empty() {
        true => awaited.to_vec(),
        false => others,
    }
}

/// A pipe or a Unix socket without a path can have both its ends in the same program.
fn may_be_own(object: &Object) -> bool {
    match &object.kind {
        ObjectKind::Pipe => true,
        ObjectKind::Socket {
            local: SocketAddress::Unix(own),
            peer: SocketAddress::Unix(other),
            ..
        } => own.is_empty() && other.is_empty(),
        _ => false,
    }
}

/// The set as a resource.
fn descriptors(site: &Site, awaited: &[Awaited]) -> Resource {
    let mut names: Vec<String> = awaited
        .iter()
        .map(|one| objects::resource(one.object).name)
        .collect();
    names.dedup();
    let more = names.len().saturating_sub(NAMED_DESCRIPTORS);
    let mut name = names
        .iter()
        .take(NAMED_DESCRIPTORS)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        name.push_str(&format!(" and {more} more"));
    }
    if name.is_empty() {
        name.push_str("descriptors that could not be read");
    }
    let mut resource = objects::named(ResourceKind::Name, name);
    if let Some(memory) = site.memory.filter(|memory| !memory.polled.is_empty()) {
        let listed = memory.polled.iter().map(|fd| {
            let object = fd.object.and_then(|id| (site.objects)(id));
            let what = object.map_or_else(|| "?".to_owned(), |object| objects::resource(object).name);
            format!("{} {what}", fd.fd)
        });
        let listed = listed.collect::<Vec<_>>().join(", ");
        resource = resource.with(|facts| facts.descriptors = Some(listed));
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::can_wake;
    use holdup_evidence::{Call, DeviceNumber, Object, ObjectKind};

    #[test]
    fn a_call_makes_ready_what_it_works_on() {
        let can = |name: &str, kind: ObjectKind| {
            let object = Object {
                kind,
                path: None,
                file_system: String::new(),
                device: DeviceNumber { major: 0, minor: 0 },
                inode: 1,
            };
            can_wake(&Call::named(name), &object)
        };
        for name in [
            "tee",
            "vmsplice",
            "preadv2",
            "dup2",
            "close_range",
            "execve",
            "write",
            "exit",
        ] {
            assert!(can(name, ObjectKind::Pipe), "{name}");
        }
        for name in ["pidfd_send_signal", "rt_sigqueueinfo", "kill"] {
            assert!(can(name, ObjectKind::Signalfd), "{name}");
        }
        // The end of a process makes it ready, and closing another descriptor of it does not.
        assert!(can("exit_group", ObjectKind::Pidfd) && !can("close", ObjectKind::Pidfd));
        assert!(!can("write", ObjectKind::Timerfd) && !can("kill", ObjectKind::Pipe));
        assert!(!can("getppid", ObjectKind::Pipe));
    }
}
