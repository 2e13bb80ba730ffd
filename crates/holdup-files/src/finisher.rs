//! The process that gives files their names when holdup itself has no rights any more to do so.
//!
//! The problem: `sudo holdup run --json r.json` writes into a folder of the caller's, where root writes only by a capability for any file of
//! anybody. A process that reads hostile text must not have that one while it reads, and a file gets its name at the end. The choice: before
//! holdup gives its rights up it forks a process that keeps this right and does one thing: it gives the files that were open by then the
//! names that they were opened for, each at most once. All it reads is which.
//!
//! In: the files that are open ([`note`]), and their numbers. Out: files with names. It ends with holdup, and removes hidden names that were
//! never made real.

use crate::new_file::Place;
use holdup_detached::Capabilities;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{ForkResult, Pid, fork, getpid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What it takes to give a file a name in a folder of anybody's: to look at the folder, to write to it, and, where it has the sticky bit,
/// to replace what is another's (`CAP_DAC_OVERRIDE`, `CAP_FOWNER`).
const RIGHTS: Capabilities = Capabilities::DAC_READ_SEARCH
    .or(Capabilities::number(1))
    .or(Capabilities::number(3));

/// A file's number, as it is sent.
pub(crate) type Number = u64;

#[derive(Debug)]
struct State {
    next: Number,
    open: BTreeMap<Number, Arc<Place>>,
    finisher: Option<Finisher>,
}

#[derive(Debug)]
struct Finisher {
    /// Who started it: a fork of that process has no finisher.
    parent: Pid,
    socket: File,
    /// Files that it knows.
    knows: BTreeSet<Number>,
}

static STATE: Mutex<State> = Mutex::new(State {
    next: 0,
    open: BTreeMap::new(),
    finisher: None,
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a file that is open.
pub(crate) fn note(place: &Arc<Place>) -> Number {
    let mut state = state();
    state.next += 1;
    let number = state.next;
    state.open.insert(number, Arc::clone(place));
    number
}

/// It is open no more.
pub(crate) fn forget(number: Number) {
    state().open.remove(&number);
}

/// Starts the finisher, if any file is open and this process has rights that it will give up. Call it before that, while no other thread runs.
///
/// # Errors
/// When the system has no process or descriptor left.
pub fn finish_apart() -> io::Result<()> {
    let mut state = state();
    let rights = Capabilities::permitted()?.and(RIGHTS);
    if state.open.is_empty() || rights == Capabilities::NONE || state.finisher.is_some() {
        return Ok(());
    }
    let (ours, theirs) = socketpair(
        AddressFamily::Unix,
        SockType::Stream,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    let parent = getpid();
    // A signal for the group is holdup's to answer: this process ends when holdup does.
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    // SAFETY: the child serves and ends by `_exit`, so nothing of the parent runs twice; there is no other thread.
    let forked = unsafe { fork() };
    if let Ok(ForkResult::Child) = forked {
        drop(ours);
        let files = std::mem::take(&mut state.open);
        serve(files, theirs.into(), rights);
        // SAFETY: ends the child at once, without the parent's exit handlers.
        unsafe { libc::_exit(0) }
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    forked?;
    state.finisher = Some(Finisher {
        parent,
        socket: ours.into(),
        knows: state.open.keys().copied().collect(),
    });
    Ok(())
}

/// Has a file given its name, where a finisher knows it.
pub(crate) fn finish(number: Number) -> Option<Result<(), Errno>> {
    let mut state = state();
    let finisher = state.finisher.as_mut()?;
    if finisher.parent != getpid() || !finisher.knows.remove(&number) {
        return None;
    }
    let mut errno = [0; size_of::<i32>()];
    let sent = finisher.socket.write_all(&number.to_ne_bytes());
    let done = sent.and_then(|()| finisher.socket.read_exact(&mut errno));
    Some(match (done, i32::from_ne_bytes(errno)) {
        (Err(_), _) => Err(Errno::EPIPE),
        (Ok(()), 0) => Ok(()),
        (Ok(()), errno) => Err(Errno::from_raw(errno)),
    })
}

/// The finisher's life.
fn serve(mut files: BTreeMap<Number, Arc<Place>>, mut socket: File, rights: Capabilities) {
    let kept = files.values().flat_map(|place| place.descriptors());
    close_others(kept.chain([socket.as_raw_fd()]).collect());
    rights.bound();
    // SAFETY: a setting of this process only.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if rights.keep_only().is_err() {
        return;
    }
    let mut number = [0; size_of::<Number>()];
    while socket.read_exact(&mut number).is_ok() {
        let done = files
            .remove(&Number::from_ne_bytes(number))
            .map_or(Err(Errno::ENOENT), |place| place.make_real());
        let errno = done.map_or_else(|errno| errno as i32, |()| 0);
        if socket.write_all(&errno.to_ne_bytes()).is_err() {
            break;
        }
    }
    for place in files.values() {
        place.clear();
    }
}

/// Closes all descriptors but these: this process must hold nothing open that others wait for.
fn close_others(kept: BTreeSet<i32>) {
    let mut first: u32 = 0;
    for kept in kept {
        let kept = kept.unsigned_abs();
        if first < kept {
            close_range(first, kept - 1);
        }
        first = kept + 1;
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    // SAFETY: these descriptors are nobody's in this process, which has what it needs by number.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}
