//! Waits for what a server sends at times of its own: a stream of events, a subscription, a log that is followed.
//!
//! The problem: whoever passes such a stream on, or reads it, waits for its next piece nearly all the time, and its server waits for whatever the
//! next piece is about, by a timer, a condition or a queue. Neither is late. In: waits for one server, and what came from it without a question
//! ([`Pushed`]). Out: whether all of it is a stream, in words.

use super::{Extend, Rule, Run, Waits, duration, say};
use holdup_evidence::facts::Pushed;
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, ThreadName};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// What came while nobody asked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    connections: u64,
    pieces: u64,
    bytes: u64,
}

/// What a process was sent without asking, where it asks for nothing on other connections to that server either.
fn unasked<'a>(run: &Run<'a>, pid: u32) -> impl Iterator<Item = &'a Pushed> {
    let all = run.facts.pushed.iter().flatten();
    all.filter(move |one| one.pid == pid && one.asked == 0 && one.pieces > 0)
}

/// Whether somebody in a chain of waits may rest until the next piece is due: nothing is to be done before.
fn rests(run: &Run<'_>, pid: u32, cause: Cause) -> bool {
    match cause {
        Cause::NetReceive | Cause::NetTls => unasked(run, pid).next().is_some(),
        // A condition, a monitor and a queue are what hands out events inside of a program.
        Cause::LockFutex | Cause::LockMonitor | Cause::IpcQueue | Cause::PollWait => true,
        _ => cause.rests(),
    }
}

/// Part of the time that is of no matter, one part of this many: a thread is woken, and has no CPU for a moment.
const NO_MATTER: Ns = 10;

/// Whether nobody who is in the way of these waits has anything to do.
fn all_rest(run: &Run<'_>, waits: &Waits<'_>) -> bool {
    let matters = |wait: &&AttributedWait| wait.ns.saturating_mul(NO_MATTER) >= waits.own();
    waits.iter().filter(matters).all(|wait| rests_behind(run, wait))
}

fn rests_behind(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let longest = wait.holders.iter().max_by_key(|holder| holder.ns);
    let holder = longest.and_then(|holder| Some((holder.name.pid, holder.doing?)));
    let matters = |ns: Ns| ns.saturating_mul(NO_MATTER) >= wait.ns.min(wait.max);
    let behind = wait
        .chain
        .iter()
        .filter(|link| link.name != wait.asker.name && matters(link.ns));
    let mut all = behind.map(|link| (link.name.pid, link.cause)).chain(holder);
    all.all(|(pid, cause)| rests(run, pid, cause))
}

/// What ends so near to the end of observation went on until then, nanoseconds: not all threads are looked at in one instant.
const NEAR_END_NS: Ns = 10_000_000;

/// Whether one of these waits stands, and has for most of the time watched: whoever wrote some lines and is stuck since looks so. The longest of
/// several may have ended, and have begun before observation.
fn stands(run: &Run<'_>, waits: &Waits<'_>) -> bool {
    let wall = run.attributed.wall;
    let ends = run.attributed.waits.iter().map(|one| one.max_ended);
    let end = ends.max().unwrap_or(0);
    let goes_on = |one: &AttributedWait| {
        let is_last = one.count == 1 || one.max_ended.saturating_add(NEAR_END_NS) >= end;
        one.open && is_last && one.max.min(wall).saturating_mul(2) > wall
    };
    waits.iter().any(goes_on)
}

/// Waits for a pipe that ended as something came, from which its reader hears now and then.
const MIN_HEARD: u64 = 2;

/// How many of these waits ended because something came.
fn heard(waits: &Waits<'_>) -> u64 {
    let ended = waits.count().saturating_sub(waits.timed_out());
    ended.saturating_sub(u64::from(waits.open()))
}

/// How many pieces came in the pipes that a process reads, where nobody who writes has anything to do until the next one is due: `tail -f` before a
/// filter. Nothing can be asked in a pipe.
pub(super) fn of_pipe(run: &Run<'_>, waits: &Waits<'_>) -> Option<u64> {
    let known = |wait: &AttributedWait| wait.holders.iter().any(|holder| holder.doing.is_some());
    let rest = waits.iter().any(known) && all_rest(run, waits) && !stands(run, waits);
    let heard = heard(waits);
    (run.attributed.of_threads && rest && heard >= MIN_HEARD).then_some(heard)
}

/// Whether a thread that takes in clients, too, has read no request meanwhile: so it has passed none on.
fn serves_nobody(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let requests = run.attributed.requests.as_ref();
    let none = requests.is_some_and(|one| one.count + one.open + one.resting == 0);
    let thread = |name: &ThreadName| (name.pid, name.tid);
    let own = |other: &AttributedWait| thread(&other.asker.name) == thread(&wait.asker.name);
    let loops = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll | Kind::Polls);
    none && loops
        && run
            .attributed
            .waits
            .iter()
            .any(|other| other.cause == Cause::Idle && own(other))
}

/// The same of a relay's event loop and a Unix socket, of which the kernel does not tell what it has carried.
fn of_unix(run: &Run<'_>, waits: &Waits<'_>) -> Option<Stream> {
    let receives = |wait: &AttributedWait| wait.cause == Cause::IpcUnix && serves_nobody(run, wait);
    let all = waits.iter().all(receives) && all_rest(run, waits) && !stands(run, waits);
    let pieces = heard(waits);
    (run.attributed.of_threads && all && pieces > 0).then_some(Stream {
        pieces,
        ..Stream::default()
    })
}

/// Whether somebody waits for the observed processes meanwhile.
pub(super) fn clients_wait(run: &Run<'_>) -> bool {
    let requests = run.attributed.requests.as_ref();
    run.attributed.unanswered.clients > 0 || requests.is_some_and(|one| one.open > 0)
}

/// The stream that all of these waits are for; `peer` is where its server is.
pub(super) fn of(run: &Run<'_>, waits: &Waits<'_>, peer: &str) -> Option<Stream> {
    if waits.cause() == Cause::IpcUnix {
        return of_unix(run, waits);
    }
    let server: SocketAddr = peer.parse().ok()?;
    if !run.attributed.of_threads || clients_wait(run) {
        return None;
    }
    if !all_rest(run, waits) || stands(run, waits) {
        return None;
    }
    let mut stream = Stream::default();
    let mut met = BTreeSet::new();
    for wait in waits.iter() {
        let receives = matches!(wait.cause, Cause::NetReceive | Cause::NetTls);
        if !receives {
            return None;
        }
        let pid = wait.asker.name.pid;
        let came = unasked(run, pid).find(|one| one.server == Some(server))?;
        if met.insert(pid) {
            stream.connections += u64::from(came.connections);
            stream.pieces += came.pieces;
            stream.bytes += came.bytes;
        }
    }
    Some(stream)
}

impl Stream {
    /// The finding: `nginx waits for what python3 (pid 7) at 127.0.0.1:80 sends by itself: 4 pieces came in 5.0 s, and nobody asked for them`.
    pub(super) fn finding(
        &self,
        run: &Run<'_>,
        rule: &Rule,
        waits: &Waits<'_>,
        [who, verb, peer]: [&str; 3],
    ) -> Finding {
        let pieces = say::several(self.pieces, "piece");
        let title = format!(
            "{who} {verb} for what {peer} sends by itself: {pieces} came in {}, and it was asked for nothing",
            duration(run.attributed.wall)
        );
        let holders = waits.holders();
        let came = match self.connections {
            0 => Evidence::new(
                "no request was read meanwhile that could have been passed on: a stream of events, or a log that is followed",
                "requests on accepted connections",
            ),
            connections => Evidence::new(
                format!(
                    "{pieces} ({}) came on {}, behind answers that had begun before, and nothing was asked there: a stream of events, a \
                     subscription, or a log that is followed",
                    say::bytes(self.bytes),
                    say::several(connections, "connection")
                ),
                "TCP sockets (sock_diag)",
            ),
        };
        let finding = rule
            .finding(Severity::Note, title, waits)
            .and(came)
            .and_if(holders.first().map(say::meanwhile))
            .and_if(say::way(waits))
            .proved_if(false)
            .remedy(Remedy::safe(
                "nothing, if that is a stream: between two pieces both ends rest",
            ));
        let look = Remedy::safe(format!(
            "if pieces should come more often, find out what {peer} waits for between two of them"
        ));
        finding.remedy(match holders.first() {
            Some(holder) => look.with_command(format!("holdup attach -p {}", holder.name.pid)),
            None => look,
        })
    }
}
