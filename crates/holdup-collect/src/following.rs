//! Watches who is in the way of what is observed, beyond the processes that were asked about.
//!
//! Now and then the waits that go on are asked for, who is in their way is looked up ([`super::neighbours`]), and those processes are
//! watched too, until there is nobody new: so a chain of waits is followed across the borders of processes to its end. Their time
//! answers nobody's question, and is not counted.

use super::behind::Readers;
use super::lock_files::LockFiles;
use super::look::{self, Sight};
use super::moment::Moment;
use super::queued::Queued;
use super::set_aside::Loops;
use super::{Observation, database_locks, elsewhere, serving};
use holdup_evidence::facts::LockFile;
use holdup_evidence::{Event, NotMeasured, Ns, Role, Serving, Wait};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::{Root, tasks};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a look at those that are in the way may take.
pub(super) const NEXT_LOOK: Duration = Duration::from_millis(100);

/// Neighbours that are watched: chains are shorter, and a server with more clients than this is not waiting for them.
const MAX_NEIGHBOURS: usize = 64;

/// Rounds of looking for who is in the way of those in the way.
const MAX_ROUNDS: usize = 8;

/// Between two times of looking who is in the way. Not a second: programs that wake once a second would be met each time as they begin
/// to wait.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(900);

/// Between two such times there are at least so many times the CPU time that the last look took, so that it costs no more than a fifth of a per cent of a
/// core: with ten thousand sleeping threads a look takes a tenth of a second.
pub(super) const LOOK_SPARSELY: u32 = 500;

/// After how long those in the way of a command are looked for first: most commands are over by then, and cost nothing.
pub(super) const FIRST_LOOK_OF_RUN: Duration = Duration::from_millis(250);

/// A wait that goes on for so long is looked into, nanoseconds: the others will be known by who ends them.
const GOES_ON: Ns = 50_000_000;

/// The same of the time, in all, of waits that a process outside ended: it is watched from then on.
const WAITED_FOR: Ns = 50_000_000;

/// Who is watched.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// Processes that were asked about.
    pub(super) subjects: BTreeSet<u32>,
    neighbours: BTreeSet<u32>,
    lock_files: LockFiles,
    queued: Queued,
}

impl Following {
    /// Processes that are watched because others wait for them.
    pub(super) fn neighbours(&self) -> &BTreeSet<u32> {
        &self.neighbours
    }

    /// Lock files beside those that sleep.
    pub(super) fn lock_files(&self) -> Vec<LockFile> {
        self.lock_files.finish()
    }

    /// Connections of these that nobody has accepted.
    pub(super) fn queued(&mut self) -> &mut Queued {
        &mut self.queued
    }

    /// Watches these processes from now on; looking at them takes no longer than `limit`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn adopt(
        &mut self,
        observation: &mut Observation,
        pids: &[u32],
        role: Role,
        limit: Duration,
    ) -> anyhow::Result<()> {
        elsewhere::note(&mut observation.elsewhere, pids);
        let Sight { seen, late } = look::look(pids, limit);
        if !late.is_empty() {
            let whose: Vec<String> = late.iter().take(8).map(u32::to_string).collect();
            observation.not_measured.push(NotMeasured {
                what: format!("who asked, in what {} had mapped before", whose.join(", ")),
                why: "its address space is locked, or the machine is too busy: reading it took too long"
                    .into(),
                fix: "none is needed for causes; try again for stacks".into(),
            });
        }
        let mut looked = Vec::new();
        for one in seen {
            observation.jvms.was_mapped(one.pid, &one.mappings);
            observation.naming.was_mapped(one.pid, one.mappings);
            looked.extend(one.looked);
        }
        let wanted: Vec<(u32, Role)> = pids.iter().map(|pid| (*pid, role)).collect();
        if !observation.tracer.adopt(&wanted, &looked)? {
            observation.not_measured.push(NotMeasured {
                what: "requests that had been read before".into(),
                why: "the kernel does not let holdup read the open connections".into(),
                fix: "none is needed for what is read from now on".into(),
            });
        }
        observation.turn();
        observation.naming.adopted();
        match role {
            Role::Subject => self.subjects.extend(pids),
            Role::Neighbour => self.neighbours.extend(pids),
        }
        Ok(())
    }

    /// Looks at the database servers among those that are watched. Returns who is at the ends of chains of locks.
    fn look_at_databases(&self, observation: &mut Observation) -> BTreeSet<u32> {
        let watched = &self.subjects | &self.neighbours;
        observation.sessions.look(watched.iter());
        database_locks::look(observation, &watched)
    }

    /// Looks who is in the way of waits that go on, until there is nobody new.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn follow(&mut self, observation: &mut Observation) -> anyhow::Result<()> {
        let watched = &self.subjects | &self.neighbours;
        let mut at_the_ends = self.look_at_databases(observation);
        for _ in 0..MAX_ROUNDS {
            let mut lasting = waits_that_last(observation);
            // A path counts if its thread is found in the same wait after it was read.
            if observation.naming.read_paths(&lasting) {
                lasting = waits_that_last(observation);
            }
            let found = observation.naming.neighbours().of(&lasting);
            if !found.queued.is_empty() {
                self.queued.await_acceptance(&found.queued);
            }
            at_the_ends.extend(self.lock_files.look(&lasting, &watched));
            for end in found.ends {
                observation.attribution.push(&Event::OtherEnd(end));
            }
            let awaited = observation.waited_for.iter();
            let awaited = awaited.filter(|(_, ns)| **ns >= WAITED_FOR).map(|(pid, _)| *pid);
            let own = std::process::id();
            let known = |pid: &u32| {
                *pid == 0
                    || *pid == own
                    || holdup_detached::is_ours(*pid)
                    || self.subjects.contains(pid)
                    || self.neighbours.contains(pid)
                    || observation.naming.watches(*pid)
            };
            let ends = std::mem::take(&mut at_the_ends);
            let new: BTreeSet<u32> = found.processes.into_iter().chain(awaited).chain(ends).collect();
            let room = MAX_NEIGHBOURS.saturating_sub(self.neighbours.len());
            let new: Vec<u32> = new.into_iter().filter(|pid| !known(pid)).take(room).collect();
            if new.is_empty() {
                break;
            }
            tell_resting_servers(observation, &new);
            self.adopt(observation, &new, Role::Neighbour, NEXT_LOOK)?;
            at_the_ends.extend(self.look_at_databases(observation));
        }
        Ok(())
    }
}

/// Of those in the way, servers whose loops nobody but clients can stir: in such a loop they wait for their clients, and work for none of
/// them. What others of them poll may be what a request waits for.
fn tell_resting_servers(observation: &mut Observation, pids: &[u32]) {
    let mut moment = Moment::now();
    let mut resting: Readers<u32, bool> = Readers::new(|| Box::new(|pid| rests(&Root::system(), pid)));
    let loops = Loops::look(&pids.iter().copied().collect(), &mut moment).stirred_by_clients();
    let (loops, servers): (Vec<(u32, bool)>, Vec<u32>) = loops
        .into_iter()
        .filter(|(pid, by_clients)| *by_clients && resting.ask(*pid, *pid) == Some(true))
        .map(|(pid, by_clients)| ((pid, by_clients), pid))
        .unzip();
    if servers.is_empty() {
        return;
    }
    let found = serving::look(&servers, &mut moment);
    observation.attribution.push(&Event::Serving(Serving {
        loops,
        masters: Vec::new(),
        ..found
    }));
}

/// Threads of a server that are looked at; one with more may have anything in hand.
const MAX_THREADS: usize = 256;

/// Whether no thread of a process runs, sleeps, or waits for a disk, a peer or a process: a loop that rests may have given the request to
/// another thread, whose work it may be. May block, as the kernel's files of a call may.
fn rests(root: &Root, pid: u32) -> bool {
    let threads = tasks::threads(root, pid);
    let idle = Kind::WaitsForEpoll | Kind::Polls | Kind::WaitsForFutex | Kind::WaitsForSignal | Kind::Accepts;
    let is_idle = |tid: &u32| {
        let call = tasks::call(root, *tid).and_then(|call| system_calls::numbered(call.number));
        call.is_some_and(|call| call.is(idle))
    };
    threads.len() <= MAX_THREADS && threads.iter().all(is_idle)
}

/// Waits that go on for longer than is worth a look, of a process each.
fn waits_that_last(observation: &mut Observation) -> Vec<(u32, Wait)> {
    observation.tracer.peek();
    observation.turn();
    let waits = observation.naming.take_peeked();
    let lasts = |(_, wait): &(u32, Wait)| wait.end.saturating_sub(wait.start) >= GOES_ON;
    waits.into_iter().filter(lasts).collect()
}
