//! The children that there are, and those that did not end.
//!
//! In: a function for the child, and what it may keep. Out: a process that is killed when its owner lets go of it. A killed process
//! that is stuck in the kernel stays: it is kept in a list, so that the report can say so, and is not waited for.

use crate::channel::Channel;
use crate::confine::{Confinement, Rights, confine};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{ForkResult, Pid, fork, getpid};
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a killed child is waited for. One that is not stuck ends within a millisecond; on a busy machine it waits for a CPU.
const GRACE: Duration = Duration::from_millis(100);

/// Between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_micros(200);

/// A child that was killed and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// Its process id.
    pub pid: u32,
    /// What it was for: the name of its confinement.
    pub name: String,
    /// The process or file that it is stuck in, where that is known.
    pub stuck_in: Option<String>,
}

/// A child in the list.
#[derive(Debug)]
struct Entry {
    /// Who made it: a fork of holdup inherits the list and none of the children.
    parent: Pid,
    pid: Pid,
    name: String,
    stuck_in: Option<String>,
    killed: bool,
}

#[derive(Debug)]
struct List {
    entries: Vec<Entry>,
    /// CPU time of those that have ended.
    ended_cpu: Duration,
}

static LIST: Mutex<List> = Mutex::new(List {
    entries: Vec::new(),
    ended_cpu: Duration::ZERO,
});

/// A running child; dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Child(Pid);

impl Child {
    /// Forks. `life` runs in the child, after it has been confined.
    pub(crate) fn start(
        confinement: &Confinement,
        rights: Rights,
        theirs: Channel,
        life: impl FnOnce(Channel),
    ) -> io::Result<Child> {
        let parent = getpid();
        // A signal for the group must not reach a child that is not yet confined: handlers are the parent's.
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
        // SAFETY: the child runs what it is given and ends by `_exit`, so nothing of the parent runs twice. Other threads' locks are
        // the caller's to keep away from, as the documentation says.
        let forked = unsafe { fork() };
        if let Ok(ForkResult::Child) = forked {
            let confined = confine(confinement, rights, parent, theirs.into_socket());
            if let Ok(socket) = confined {
                life(Channel::of(socket));
            }
            // SAFETY: ends the child at once, without the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        let ForkResult::Parent { child } = forked? else {
            unreachable!("the child has ended above")
        };
        with_list(|list| {
            list.entries.push(Entry {
                parent,
                pid: child,
                name: confinement.name.to_string_lossy().into_owned(),
                stuck_in: None,
                killed: false,
            });
        });
        Ok(Child(child))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.as_raw().cast_unsigned()
    }

    pub(crate) fn cpu_time(&self) -> Duration {
        cpu_time_of(self.0)
    }

    /// Notes what it is stuck in, for the list.
    pub(crate) fn stuck_in(&mut self, what: &str) {
        with_list(|list| {
            if let Some(entry) = list.entries.iter_mut().find(|entry| entry.pid == self.0) {
                entry.stuck_in = Some(what.to_owned());
            }
        });
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let mine = with_list(|list| {
            let entry = list.entries.iter_mut().find(|entry| entry.pid == self.0);
            entry
                .filter(|entry| entry.parent == getpid())
                .map(|entry| entry.killed = true)
                .is_some()
        });
        if !mine {
            return;
        }
        kill(self.0, Signal::SIGKILL).ok();
        let until = Instant::now() + GRACE;
        while !with_list(|list| list.reap(self.0)) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }
}

impl List {
    /// Whether it has ended; takes it out of the list then.
    fn reap(&mut self, pid: Pid) -> bool {
        let used = cpu_time_of(pid);
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
        let ended = match waitid(Id::Pid(pid), flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => false,
            // Whoever waits for all children may have been first.
            Ok(_) | Err(_) => true,
        };
        if ended {
            self.ended_cpu += used;
            self.entries.retain(|entry| entry.pid != pid);
        }
        ended
    }
}

fn with_list<T>(act: impl FnOnce(&mut List) -> T) -> T {
    let mut list = LIST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    act(&mut list)
}

/// CPU time of a process that has not been waited for.
fn cpu_time_of(pid: Pid) -> Duration {
    let clock = nix::time::clock_getcpuclockid(pid).and_then(nix::time::clock_gettime);
    clock.map_or(Duration::ZERO, Duration::from)
}

/// Children of this process that were killed and have not ended.
#[must_use]
pub fn left_behind() -> Vec<LeftBehind> {
    let parent = getpid();
    with_list(|list| {
        let killed = |entry: &&Entry| entry.killed && entry.parent == parent;
        let pids: Vec<Pid> = list
            .entries
            .iter()
            .filter(killed)
            .map(|entry| entry.pid)
            .collect();
        for pid in pids {
            list.reap(pid);
        }
        list.entries
            .iter()
            .filter(killed)
            .map(|entry| LeftBehind {
                pid: entry.pid.as_raw().cast_unsigned(),
                name: entry.name.clone(),
                stuck_in: entry.stuck_in.clone(),
            })
            .collect()
    })
}

/// Whether a process is such a child of this one: it is no part of what is observed.
#[must_use]
pub fn is_ours(pid: u32) -> bool {
    let parent = getpid();
    with_list(|list| {
        list.entries
            .iter()
            .any(|entry| entry.pid.as_raw().cast_unsigned() == pid && entry.parent == parent)
    })
}

/// CPU time that all such children of this process have used, ended ones included.
#[must_use]
pub fn cpu_time() -> Duration {
    let parent = getpid();
    with_list(|list| {
        let living = list.entries.iter().filter(|entry| entry.parent == parent);
        living.map(|entry| cpu_time_of(entry.pid)).sum::<Duration>() + list.ended_cpu
    })
}

/// CPU time of those that have ended: the kernel counts it for this process's children (`RUSAGE_CHILDREN`).
#[must_use]
pub fn ended_cpu_time() -> Duration {
    with_list(|list| list.ended_cpu)
}
