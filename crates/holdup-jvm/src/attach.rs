//! The JVM's own word on its threads, asked for as `jstack` asks: a last resort.
//!
//! A dump stops all Java threads, and to begin with the JVM must be sent a signal that ends a program which does not expect it. So it
//! is first decided whether to ask at all ([`decide`]): a process that can't run is not asked, nor one that has no handler for the
//! signal, is too young to have one, was reported not to answer, or has so many threads that the pause would be longer than what it may be.
//!
//! Paths are those of the process, in its own root, and anybody may have put anything there: they are looked up below that root without
//! following any link, the socket must belong to the JVM's user, and who answers on it must be that very process. All of it is done by a
//! child process ([`Asking`]) with the ids of the JVM and without capabilities ([`ids`]): the kernel refuses what the JVM's own user could
//! not have done.
//!
//! In: a process and a budget. Out: [`Dump`], the text with what it cost, or [`Refused`], in words why there is none. Nothing is left
//! behind in the process's `/tmp` but the socket that the JVM itself makes there.

mod asking;
mod files;
mod ids;
mod options;
mod process;
mod refused;
mod status;
mod switches;

pub use asking::{Asking, Expendable, Silent};
pub use refused::Refused;
pub use status::Status;
pub use switches::{Unmoved, waits};

use files::{Tmp, open_root};
use holdup_evidence::Ns;
use holdup_proc::{Root, clocks, frozen};
use ids::{Ids, NoIds};
use nix::sys::socket::sockopt::{PeerCredentials, ReceiveTimeout, SendTimeout};
use nix::sys::socket::{getsockopt, setsockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use process::Process;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use switches::Switches;

/// How long a dump stops a JVM for each of its threads, nanoseconds, and before JDK 21: by measurement some 6 to 25 µs for JDK 17, and 55 to
/// 95 for JDK 25, with a hundred to five thousand threads.
const EACH_THREAD: Ns = 100_000;
const EACH_THREAD_BEFORE_21: Ns = 25_000;

/// What it takes however few they are, nanoseconds: to stop them, and to let them go. With some twenty threads JDK 17 answers after 0.5 ms,
/// JDK 25 after 0.8 to 2.3, and for the first time after up to 8.
const AT_LEAST: Ns = 1_500_000;
const AT_LEAST_BEFORE_21: Ns = 500_000;

/// A JVM younger than this may not have its handler for the signal, whatever its mask says: they are set within some 10 ms, on a machine
/// that is not busy.
const YOUNG: Duration = Duration::from_secs(2);

/// How long is waited for the socket, and for the whole of an answer: a dump of ten thousand threads takes one second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks for the socket.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long one part of an answer is waited for before it is seen whether anybody still wants it, microseconds.
const POLL_US: i64 = 100_000;

/// Most of a dump that is read, bytes: ten thousand threads with a hundred frames are 80 MB.
const MAX_DUMP_BYTES: usize = 128 << 20;

/// What is read at a time, bytes.
const PIECE: usize = 64 << 10;

/// The request for a dump, in the first version of the protocol, which all answer: version, command, three arguments.
const REQUEST: &[u8] = b"1\0threaddump\0\0\0\0";

/// What a JVM said of its threads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Dump {
    /// Its text, as `jstack` prints it. Hostile.
    pub text: Vec<u8>,
    /// When it was asked, `CLOCK_MONOTONIC`.
    pub from: Ns,
    /// When it had answered. It stood still for at most as long as lies between the two.
    pub to: Ns,
    /// Threads that it had.
    pub threads: u32,
    /// Those that did not run meanwhile: what it says of them is what they did all the while.
    pub unmoved: Unmoved,
}

/// What is known of a process and of what may be done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// How long it may stand still.
    pub budget: Ns,
    /// Java's feature version, where it is known.
    pub java: Option<u32>,
    /// Its options, where it tells them itself; else those that it was started with are looked at.
    pub options: Option<Vec<String>>,
}

/// Whether a listening socket is where a JVM answers tools, by its path.
#[must_use]
pub fn is_for_tools(path: &str) -> bool {
    files::is_socket(path)
}

/// How long a dump would stop a JVM.
#[must_use]
pub fn estimate(threads: u32, java: Option<u32>) -> Ns {
    let (least, each) = match java {
        Some(..21) => (AT_LEAST_BEFORE_21, EACH_THREAD_BEFORE_21),
        _ => (AT_LEAST, EACH_THREAD),
    };
    least.saturating_add(each.saturating_mul(Ns::from(threads)))
}

/// What is seen of a process before it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What the kernel says of it.
    pub status: Status,
    /// Whether its cgroup is frozen.
    pub frozen: bool,
    /// Since when it runs.
    pub age: Duration,
    /// Whether it has answered somebody before, so that it needs no signal.
    pub listens: bool,
}

/// Whether to ask. `user`: the effective user that asks.
///
/// # Errors
/// With the reason not to.
pub fn decide(seen: &Seen, question: &Question, user: u32) -> Result<(), Refused> {
    let Seen { status, .. } = seen;
    if status.stopped {
        return Err(Refused::Stopped);
    }
    if seen.frozen {
        return Err(Refused::Frozen);
    }
    let options = question.options.as_deref().unwrap_or_default();
    if options::disabled(options) {
        return Err(Refused::Disabled);
    }
    if user != 0 && user != status.user {
        return Err(Refused::AnotherUsers);
    }
    let estimate = estimate(status.threads, question.java);
    if estimate > question.budget {
        return Err(Refused::OverBudget {
            threads: status.threads,
            estimate,
            budget: question.budget,
        });
    }
    if seen.listens {
        return Ok(());
    }
    if !status.handles_quit {
        return Err(Refused::NoHandler);
    }
    if options::leaves_signals(options) {
        return Err(Refused::ReducedSignals);
    }
    if seen.age < YOUNG {
        return Err(Refused::Young);
    }
    Ok(())
}

/// What of a JVM is looked at before its user's ids are taken: all that a look at `/proc` wants capabilities for.
#[derive(Debug)]
struct Prepared {
    process: Process,
    pid: u32,
    status: Status,
    ids: Ids,
    /// Its root, from which everything of its own is looked up.
    top: File,
    seen: Seen,
    question: Question,
}

/// Asks a JVM for a dump of its threads, as its own user: afterwards this process has no rights but that user's. May block, and takes
/// seconds where the JVM does not answer: the child is expendable.
///
/// # Errors
/// With the reason why there is none.
pub fn dump(root: &Root, pid: u32, question: &Question, child: &Expendable) -> Result<Dump, Refused> {
    let prepared = prepare(root, pid, question)?;
    prepared.ids.assume().map_err(Refused::NotItsUser)?;
    ask_for_dump(root, prepared, child)
}

/// Looks at the process and touches nothing of its own.
fn prepare(root: &Root, pid: u32, question: &Question) -> Result<Prepared, Refused> {
    // Held before anything is looked at: its number can't become another's unnoticed.
    let process = Process::open(root, pid)?;
    let status = Status::read(root, pid).ok_or(Refused::Gone)?;
    let ids = Ids::read(root, pid).map_err(|none| match none {
        NoIds::Gone => Refused::Gone,
        NoIds::Mixed => Refused::MixedIds,
    })?;
    let mut question = question.clone();
    if question.options.is_none() {
        question.options = Some(options::at_start(root, pid));
    }
    let seen = Seen {
        status,
        frozen: frozen::is(root, pid),
        age: status::age(root, pid).ok_or(Refused::Gone)?,
        listens: true,
    };
    // What forbids it anyway does so before anything of the process's is touched.
    decide(&seen, &question, nix::unistd::geteuid().as_raw())?;
    Ok(Prepared {
        process,
        pid,
        status,
        ids,
        top: open_root(root, pid).map_err(Refused::NoTmp)?,
        seen,
        question,
    })
}

/// The rest of it, with no rights but the user's.
fn ask_for_dump(root: &Root, prepared: Prepared, child: &Expendable) -> Result<Dump, Refused> {
    let Prepared {
        process,
        pid,
        status,
        top,
        mut seen,
        question,
        ..
    } = prepared;
    let tmp = Tmp::open(&top, &status).map_err(Refused::NoTmp)?;
    seen.listens = tmp.has_socket().map_err(Refused::NotItsSocket)?;
    decide(&seen, &question, nix::unistd::geteuid().as_raw())?;
    if !seen.listens {
        make_listen(&process, &tmp, child)?;
    }
    let patience = TimeVal::seconds(i64::try_from(PATIENCE.as_secs()).unwrap_or(i64::MAX));
    let stream = tmp.connect(patience)?;
    let peer =
        getsockopt(&stream, PeerCredentials).map_err(|error| Refused::NotItsSocket(error.to_string()))?;
    if u32::try_from(peer.pid()) != Ok(pid) || peer.uid() != status.user {
        return Err(Refused::NotItsSocket("another process listens there".to_owned()));
    }
    ask(root, pid, stream, child)
}

/// Has a JVM open its socket.
fn make_listen(process: &Process, tmp: &Tmp, child: &Expendable) -> Result<(), Refused> {
    // Removed again however this ends.
    let _trigger = tmp.trigger().map_err(Refused::NoTmp)?;
    process.quit()?;
    let until = Instant::now() + PATIENCE;
    while !tmp.has_socket().map_err(Refused::NotItsSocket)? {
        if Instant::now() >= until || child.is_unwanted() {
            return Err(Refused::NoSocket);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn ask(root: &Root, pid: u32, mut stream: UnixStream, child: &Expendable) -> Result<Dump, Refused> {
    let limited = setsockopt(&stream, ReceiveTimeout, &TimeVal::microseconds(POLL_US)).and(setsockopt(
        &stream,
        SendTimeout,
        &TimeVal::microseconds(POLL_US),
    ));
    limited.map_err(|_| Refused::NoAnswer)?;
    let switches = Switches::count(root, pid);
    let from = clocks::monotonic();
    stream.write_all(REQUEST).map_err(|_| Refused::NoAnswer)?;
    let answer = answer(&mut stream, MAX_DUMP_BYTES, child)?;
    let to = clocks::monotonic();
    Ok(Dump {
        text: text_of(answer)?,
        from,
        to,
        threads: switches.threads(),
        unmoved: switches.unmoved(root),
    })
}

/// All of an answer, if it comes in time and is not too long.
fn answer(stream: &mut impl Read, most: usize, child: &Expendable) -> Result<Vec<u8>, Refused> {
    let until = Instant::now() + PATIENCE;
    let mut answer = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(error) if is_late(&error) => {}
            Err(_) => return Err(Refused::NoAnswer),
        }
        if answer.len() > most {
            return Err(Refused::TooLong);
        }
        // Somebody who sends a byte now and then is no better than who sends none.
        if Instant::now() >= until || child.is_unwanted() {
            return Err(Refused::NoAnswer);
        }
    }
}

fn is_late(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// What follows the first line, if that says that all is well: `0`.
fn text_of(answer: Vec<u8>) -> Result<Vec<u8>, Refused> {
    let end = answer
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or(Refused::NoAnswer)?;
    let (first, rest) = (&answer[..end], &answer[end + 1..]);
    match first {
        b"0" => Ok(rest.to_vec()),
        _ => {
            let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = &line[..line.len().min(200)];
            Err(Refused::Answer(String::from_utf8_lossy(line).into_owned()))
        }
    }
}

#[cfg(test)]
mod tests;
