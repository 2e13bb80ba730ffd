//! What a line that states a failure blames: a peer, a name, a pool, a path, a process.
//!
//! In: a line of which it is known that it states a failure. Out: which thing, and what it did or did not do; `None` where the
//! line names none, or where the one who gave up is a client. One pass for the words, one for the things.

pub(super) mod locks;
mod named;
mod peers;

use super::matcher::Matcher;
use holdup_evidence::observed::{Blame, How, StatementKind};
use std::sync::LazyLock;

/// Things that one statement blames, each for itself; of more only how often is kept.
const MAX_BLAMES: usize = 32;

/// What words say, most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Says {
    /// It was the client who went away: nothing that the line names is to blame.
    Client,
    How(How),
}

/// The words: errno's texts and names, those of servers, drivers and pools.
const WORDS: &[(Says, &[&str])] = &[
    (
        Says::Client,
        &[
            "client prematurely closed",
            "client closed",
            "client disconnected",
            "client timed out",
            "client has disconnected",
        ],
    ),
    (
        Says::How(How::Unresolved),
        &[
            "name or service not known",
            "no such host",
            "could not resolve",
            "couldn't resolve",
            "cannot resolve",
            "can't resolve",
            "unable to resolve",
            "failed to resolve",
            "failure in name resolution",
            "could not translate host name",
            "host not found",
            "enotfound",
            "eai_again",
            "eai_noname",
            "unknownhostexception",
            "unknown host",
            "unknown mysql server host",
            "nxdomain",
            "nodename nor servname",
            "no address associated",
        ],
    ),
    (
        Says::How(How::Refused),
        &[
            "connection refused",
            "econnrefused",
            "actively refused",
            "refused the connection",
        ],
    ),
    (
        Says::How(How::NoSpace),
        &[
            "no space left",
            "enospc",
            "disk full",
            "disk is full",
            "disk quota exceeded",
            "edquot",
        ],
    ),
    (
        Says::How(How::NoFreeConnection),
        &[
            "connection is not available, request timed out",
            "no free connection",
            "unable to get a connection, pool",
            "timeout waiting for idle object",
            "waiting for connection from pool",
            "waiting for a connection from the pool",
            "could not obtain a connection from the pool",
            "connection pool exhausted",
            "queuepool limit",
            "pool is exhausted",
            "cannot get a connection, pool",
        ],
    ),
    (
        // Too many open files are those of the one who writes the line: no peer or path on it is to blame.
        Says::How(How::TooMany),
        &[
            "too many connections",
            "too many clients",
            "remaining connection slots",
            "too many requests",
            "max number of clients reached",
        ],
    ),
    (
        Says::How(How::ReadOnly),
        &[
            "read-only file system",
            "erofs",
            "readonly you can't write",
            "is read-only",
            "remounting filesystem read-only",
        ],
    ),
    (
        Says::How(How::Denied),
        &[
            "permission denied",
            "operation not permitted",
            "eacces",
            "eperm",
            "access denied",
        ],
    ),
    (
        Says::How(How::Killed),
        &["killed", "sigkill", "oomkill", "signal 9", "exit code 137"],
    ),
    (
        Says::How(How::Broken),
        &[
            "connection reset",
            "econnreset",
            "broken pipe",
            "epipe",
            "prematurely closed",
            "closed the connection unexpectedly",
            "connection closed unexpectedly",
            "closed unexpectedly",
            "connection lost",
            "lost connection",
            "connection was lost",
            "gone away",
            "unexpected eof",
            "connection aborted",
            "econnaborted",
            "disconnected",
        ],
    ),
    (
        Says::How(How::NoConnection),
        &[
            "could not be established",
            "cannot connect",
            "can't connect",
            "could not connect",
            "couldn't connect",
            "failed to connect",
            "unable to connect",
            "error connecting",
            "connection failed",
            "connect failed",
            "failed to dial",
            "no route to host",
            "ehostunreach",
            "enetunreach",
            "unreachable",
            "host is down",
            "ehostdown",
            "layer4 connection problem",
            "unsuccessful connection",
            "not reachable",
            "cannot reach",
            "could not reach",
        ],
    ),
    (
        Says::How(How::NoAnswer),
        &[
            "timed out",
            "timedout",
            "timed-out",
            "timeout",
            "time out",
            "time-out",
            "deadline exceeded",
            "not responding",
            "no response",
            "did not respond",
            "did not answer",
            "no answer",
        ],
    ),
    (
        Says::How(How::Unavailable),
        &[
            "unavailable",
            "not available",
            "is down",
            "no longer available",
            "not connected",
        ],
    ),
    (
        Says::How(How::NotFound),
        &[
            "no such file or directory",
            "enoent",
            "no such device",
            "enodev",
            "stale file handle",
            "estale",
        ],
    ),
];

static MATCHER: LazyLock<Option<Matcher<Says>>> = LazyLock::new(|| {
    let each = WORDS.iter();
    Matcher::new(each.flat_map(|(says, words)| words.iter().map(|word| (*word, *says))))
});

/// What a line blames that states a failure of this kind.
pub(super) fn of(line: &[u8], kind: StatementKind) -> Option<(String, How)> {
    let blames = match kind {
        StatementKind::Ended
        | StatementKind::Exhausted
        | StatementKind::TimedOut
        | StatementKind::Unreachable
        | StatementKind::Stalled
        | StatementKind::Failed
        | StatementKind::Warned => true,
        StatementKind::Deadlock | StatementKind::Took | StatementKind::WithinNorm => false,
    };
    if !blames {
        return None;
    }
    // Who has a lock says more than that somebody did not get it.
    if let Some(lock) = locks::found(line).and_then(|_| locks::of(line)) {
        return Some(lock);
    }
    let how = how(line, kind)?;
    let of = match how {
        How::Unresolved => named::host(line)?,
        How::NoFreeConnection => named::pool(line)?,
        How::NoSpace | How::Denied | How::ReadOnly | How::NotFound => named::path(line)?,
        How::Killed => named::process(line).or_else(|| named::pod(line))?,
        How::TooMany => peers::of(line).or_else(|| named::path(line))?,
        How::HasLock | How::Locked => locks::of(line)?.0,
        How::Refused | How::Broken | How::NoConnection => named::server(line)
            .or_else(|| peers::of(line))
            .or_else(|| peers::node(line))?,
        // The kernel tells of memory on `node 0` that is unavailable: a number is no peer here.
        How::Unavailable => named::server(line).or_else(|| peers::of(line))?,
        How::NoAnswer | How::TimedOut => {
            if let Some(peer) = named::server(line).or_else(|| peers::of(line)) {
                return Some((peer, How::NoAnswer));
            }
            let given_up = named::process(line).or_else(|| named::pod(line))?;
            return Some((given_up, How::TimedOut));
        }
    };
    Some((of, how))
}

/// The most telling of the words that a line has.
fn how(line: &[u8], kind: StatementKind) -> Option<How> {
    let matcher = MATCHER.as_ref()?;
    let found = matcher.find(line).filter_map(|(at, says)| {
        let before = at.start.checked_sub(1).and_then(|at| line.get(at));
        // `preconnection refused` is no word, `dial.ConnectionRefused` has its own.
        let begins = before.is_none_or(|byte| !byte.is_ascii_lowercase());
        // A line that failed of something else may name a limit: `timeout=30s`.
        let given_up = says != Says::How(How::NoAnswer) || kind <= StatementKind::TimedOut;
        (begins && given_up).then_some(says)
    });
    match found.min()? {
        Says::Client => None,
        Says::How(how) => Some(how),
    }
}

/// Counts what a line blames.
pub(super) fn count(blames: &mut Vec<Blame>, blamed: Option<(String, How)>) {
    let Some((of, how)) = blamed else { return };
    if let Some(known) = blames.iter_mut().find(|one| one.how == how && one.of == of) {
        known.times += 1;
    } else if blames.len() < MAX_BLAMES {
        blames.push(Blame { of, how, times: 1 });
    }
}

#[cfg(test)]
mod tests;
