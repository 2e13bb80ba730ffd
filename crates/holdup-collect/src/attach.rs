//! Observes what runs already: the processes that were asked about, and those that they wait for.
//!
//! First the processes are looked at and adopted ([`super::look`], [`holdup_bpf::Tracer::adopt`]). Then, and again now and then, who is in
//! their way is watched too ([`super::following`]).

use super::attributing::{Attributing, EventsFile};
use super::descriptors_left;
use super::following::{Following, LOOK_AGAIN, LOOK_SPARSELY, NEXT_LOOK};
use super::full_file_systems;
use super::full_outputs;
use super::left_unread::Left;
use super::lock_files;
use super::memory_limits::MemoryLimits;
use super::moment::Moment;
use super::moved;
use super::owed;
use super::own_logs::OwnLogs;
use super::programs;
use super::pushed;
use super::queues::Queues;
use super::sessions_answer;
use super::set_aside::Loops;
use super::task_limits::TaskLimits;
use super::unread_answers::Unsent;
use super::workers::{self, Standing};
use super::{
    Collected, Figures, How, Observation, PERIOD_MS, Priority, awaited_peers, clients, connected,
    database_files::{self, Locked},
    database_locks, database_memory, name_servers, own_cpu_time, resolvers, serving,
};
use crate::haste::Haste;
use crate::line::{Line, watching};
use crate::privileges;
use crate::pulse::{Beats, Pulse};
use crate::selection::{Known, Selection};
use holdup_bpf::{Loaded, Pace};
use holdup_events::Settings;
use holdup_evidence::facts::{NameServer, Unaccepted, Workers};
use holdup_evidence::{Cause, Event, Ns, Role, Serving, SocketAddress, Wait};
use holdup_model::attributed::{Attributed, AttributedWait, Peer};
use holdup_proc::{Root, tasks};
use holdup_subject::signals::{Control, Signals};
use nix::poll::PollTimeout;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long the first look at all processes may take. A process takes a millisecond or two.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// Between two looks of a recorder for who is in the way: nobody waits for its word, and who is in the way for long is still there then.
const RECORDERS_LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How long the loop sleeps, milliseconds, while there is little to take: fewer and longer turns cost less.
const QUIET_PERIOD_MS: u16 = 50;

/// The same of a recorder, whose reader comes tomorrow.
const RECORDERS_PERIOD_MS: u16 = 200;

/// So many records at the end of a sleep are little: they would fill the ring in half a minute.
const QUIET: usize = 2_000;

/// When the first word is due: with the start before it, within a second.
const FIRST_WORD: Duration = Duration::from_millis(200);

/// Settings of the network, below `/proc/sys`.
const OF_NETWORK: &str = "net/";

/// A wait that has lasted for so long is what a person attaches for, nanoseconds.
const STUCK: Ns = 1_000_000_000;

/// What a recorder keeps from one observation to the next; nobody else has any.
#[derive(Default)]
pub struct Kept<'a> {
    /// Programs that are loaded.
    pub loaded: Option<Loaded>,
    /// Whether all is to be reported now.
    pub in_detail: Option<&'a mut dyn FnMut() -> bool>,
    /// How many single pieces of time are kept; `None`: as many as of anything that is looked at.
    pub pieces: Option<usize>,
    /// How often what is known so far is wanted, if it is.
    pub pulse: Option<Pulse>,
    /// Where a copy of what goes into attribution is to be written.
    pub events: Option<&'a EventsFile>,
}

impl Kept<'_> {
    fn attribution(&self) -> std::io::Result<Attributing> {
        let settings = Settings {
            of_threads: true,
            pieces: self.pieces,
            ..Settings::default()
        };
        Attributing::begin(settings, &[], self.events)
    }
}

/// What whoever asked is told while it goes on.
pub enum Notice<'a> {
    /// From now on what was asked about is watched.
    Began,
    /// What is known after a moment, where something has been stuck since before.
    FirstWord(&'a Collected),
    /// What is known so far, without stacks: as often as was asked for.
    SoFar(&'a Collected),
}

/// Observes until the time is over, the subject has ended, or the person wants no more.
///
/// # Errors
/// When nothing can be observed here, or what was named is not there.
pub fn attach(
    selection: &Selection,
    duration: Option<Duration>,
    signals: &mut Signals,
    how: How,
    mut kept: Kept<'_>,
    progress: &mut dyn Line,
    notice: &mut dyn FnMut(Notice<'_>),
) -> anyhow::Result<Collected> {
    // Before anything is loaded: what is not there is a matter of a moment.
    let pids = selection.resolve()?;
    let mut observation = Observation::begin(how, kept.loaded.take(), kept.attribution()?, None)?;
    // What the kernel refuses is known while there are all rights to sample instead.
    observation.tracer.prepare_looks()?;
    let mut priority = Priority::begin(how.tracing.buffer);
    how.keep.map_or(Ok(()), privileges::keep)?;
    let mut attached = Attached::default();
    let mut moment = Moment::now();
    attached.serving(&mut observation, &pids, &mut moment);
    let asked: BTreeSet<u32> = pids.iter().copied().collect();
    let memory = match how.tracing.pace {
        Pace::Record => MemoryLimits::begin(),
        Pace::Command | Pace::Service => MemoryLimits::default(),
    };
    let task_limits = TaskLimits::begin();
    let descriptors = descriptors_left::look(&asked, &moment.root);
    let queues = Queues::look(&asked, &mut moment);
    let standing = Standing::look(&asked, &mut moment);
    let loops = Loops::look(&asked, &mut moment);
    let unsent = Unsent::look(&asked, &mut moment);
    let outputs = full_outputs::Unsent::look(&asked, &mut moment);
    let left = Left::look(&asked, &mut moment);
    let (carried, moved) = match how.tracing.pace {
        // Each of a recorder's minutes would begin with a list of all connections.
        Pace::Record => Default::default(),
        Pace::Command | Pace::Service => (pushed::Before::look(), moved::Before::look(&asked, &moment.root)),
    };
    tell_loops(&mut observation, &loops);
    for event in sessions_answer::look(&asked, &mut moment) {
        observation.attribution.push(&event);
    }
    drop(moment);
    let resolver = resolvers::look(&pids);
    attached
        .following
        .adopt(&mut observation, &pids, Role::Subject, FIRST_LOOK)?;
    observation.naming.look_at_goroutines();
    let began = Instant::now();
    let mut figures = match how.tracing.pace {
        Pace::Record => Figures::begin_sparse(&Root::system()),
        Pace::Command | Pace::Service => Figures::begin(&Root::system()),
    };
    if observation.started.is_none() {
        return Err(EndedBefore.into());
    }
    notice(Notice::Began);
    if let Some(pid) = pids.first() {
        observation.cgroup.look(*pid);
    }
    let mut logs = OwnLogs::begin(how.logs, &attached.following.subjects);
    if how.follow {
        attached.following.follow(&mut observation)?;
        if let Some(logs) = &mut logs {
            logs.note(attached.following.neighbours());
        }
    }
    observation.begin_spending(duration);
    let mut looked = Instant::now();
    let (quiet_period, soonest) = match how.tracing.pace {
        Pace::Record => (RECORDERS_PERIOD_MS, RECORDERS_LOOK_AGAIN),
        Pace::Command | Pace::Service => (QUIET_PERIOD_MS, LOOK_AGAIN),
    };
    let mut look_again = soonest;
    let mut period = PERIOD_MS;
    let mut beats = Beats::begin(kept.pulse);
    let mut said = beats.are_wanted();
    let over = |began: Instant| duration.is_some_and(|duration| began.elapsed() >= duration);
    while !over(began)
        && !observation.living.is_empty()
        && !observation.is_over_budget()
        && signals.interrupted() == Control::Continue
    {
        if let Some(in_detail) = &mut kept.in_detail {
            observation.tracer.tell_all(in_detail());
        }
        signals.sleep(PollTimeout::from(period));
        figures.turn();
        let found = observation.turn();
        priority.adapt(found);
        progress.tell(&|| watching(began.elapsed(), duration, observation.living.len()));
        period = if found < QUIET { quiet_period } else { PERIOD_MS };
        if !said && how.tracing.pace != Pace::Record && began.elapsed() >= FIRST_WORD {
            said = true;
            let waits = under_way(&mut observation);
            if waits
                .iter()
                .any(|wait| wait.end.saturating_sub(wait.start) >= STUCK)
            {
                progress.clear();
                notice(Notice::FirstWord(&observation.so_far(&waits)));
            }
        }
        beats.tell(|| {
            let waits = under_way(&mut observation);
            let mut so_far = observation.so_far(&waits);
            so_far.attributed.host_figures = figures.so_far();
            notice(Notice::SoFar(&so_far));
        });
        observation.naming.look_at_tokio();
        if how.tracing.pace != Pace::Record {
            observation.naming.look_at_tasks();
        }
        if looked.elapsed() >= look_again {
            let before = own_cpu_time();
            if let Some(pid) = pids.first() {
                observation.cgroup.look(*pid);
            }
            attached.newcomers(&mut observation, selection)?;
            let large = observation.naming.take_large_sets();
            if !large.is_empty() {
                let large = &large & &attached.following.subjects;
                let loops = Loops::look(&large, &mut Moment::now());
                tell_loops(&mut observation, &loops);
            }
            if how.follow {
                attached.following.follow(&mut observation)?;
            }
            observation.naming.look_at_functions_again();
            looked = Instant::now();
            let took = Duration::from_nanos(own_cpu_time().saturating_sub(before));
            look_again = (took * LOOK_SPARSELY).max(soonest);
        }
    }
    observation.end_spending();
    progress.tell(&|| "watched; putting it together".to_owned());
    match how.follow {
        true => attached.following.follow(&mut observation)?,
        false => {
            observation.sessions.look(attached.following.subjects.iter());
            database_locks::look(&mut observation, &attached.following.subjects);
        }
    }
    if how.tracing.pace == Pace::Record {
        // The next segment is under way, and would have this time as well.
        observation.freeze();
    }
    observation.take_logs(
        logs,
        &attached.following.subjects,
        attached.following.neighbours(),
    );
    let mut moment = Moment::now();
    let workers = workers::look(&attached.following.subjects, &standing, &mut moment);
    let mut unaccepted = Queues::look(&attached.following.subjects, &mut moment).since(&queues, &moment.root);
    connected::of_queues(&mut unaccepted, &mut moment);
    let listeners = connected::look(&attached.following.subjects, &mut moment);
    let elsewhere = moment.namespace(std::process::id());
    let elsewhere = pids.iter().any(|pid| moment.namespace(*pid) != elsewhere);
    let set_aside = Loops::look(&attached.following.subjects, &mut moment).since(&loops, &mut moment);
    let unread_answers = Unsent::look(&asked, &mut moment).since(&unsent, &mut moment);
    let full_outputs = full_outputs::Unsent::look(&asked, &mut moment).zip(outputs.as_ref());
    let full_outputs = full_outputs.map(|(now, before)| now.since(before, &mut moment));
    let left_unread = Left::look(&asked, &mut moment).since(&left, &mut moment);
    let moved = moved.since(&moment.root);
    let hear = &attached.following.subjects | attached.following.neighbours();
    let pushed = match how.tracing.pace {
        Pace::Record => None,
        Pace::Command | Pace::Service => Some(carried.since(&hear, &mut moment)),
    };
    // Whoever is behind such a loop was not followed: the loop waits for its clients as well.
    if !set_aside.is_empty() {
        observation.sessions.look(tasks::processes(&moment.root).iter());
    }
    let owed_answers = owed::look(&attached.following.subjects, &mut moment);
    let other_clients = clients::look(&attached.following.subjects, &mut moment);
    drop(moment);
    let thread_sessions = database_memory::look(&mut observation, &attached.following.subjects);
    let cgroups_at_limit = memory.finish();
    let task_limits = task_limits.finish(&attached.following.subjects);
    let no_descriptor_left = descriptors_left::since(&descriptors, &Root::system());
    let full_file_systems = full_file_systems::look();
    let mut clients = observation.locks.clients();
    clients.extend(connected::pids(&unaccepted));
    let answered = set_aside.iter().flat_map(|one| &one.answers);
    clients.extend(answered.filter_map(|one| one.pid));
    let readers = unread_answers.iter().flat_map(|one| &one.readers);
    clients.extend(readers.filter_map(|one| one.pid));
    let receivers = full_outputs
        .iter()
        .flatten()
        .filter_map(|one| one.reader.as_ref());
    clients.extend(receivers.filter_map(|one| one.pid));
    clients.extend(left_unread.iter().filter_map(|one| one.server_pid));
    let Locked {
        databases: database_files,
        others: locked_files,
    } = database_files::look(&attached.following.subjects, &Root::system());
    let mut awaited = attached.following.neighbours().clone();
    awaited.extend(database_files.iter().map(|one| one.holder));
    clients.extend(database_files.iter().map(|one| one.holder));
    clients.extend(locked_files.iter().map(|one| one.holder));
    observation.lock_files = attached.following.lock_files();
    clients.extend(lock_files::named(&observation.lock_files));
    clients.extend(owed_answers.iter().filter_map(|one| one.by.as_ref()?.pid));
    let awaited_peers = awaited_peers::look(&awaited);
    let programs = programs::look(
        attached
            .following
            .subjects
            .iter()
            .chain(attached.following.neighbours())
            .chain(&clients),
    );
    let stopped_children = programs::stopped(attached.following.subjects.iter());
    let figures = figures.finish();
    let haste = match how.tracing.pace {
        Pace::Record => Haste::none(),
        Pace::Command | Pace::Service => Haste::of(signals, None),
    };
    observation.pointed_at = pointed_at(&unaccepted, &workers);
    let mut collected = observation.finish(None, haste);
    collected.attributed.host_figures = figures.since(collected.started);
    collected.facts.programs = programs;
    collected.facts.stopped_children = stopped_children;
    collected.facts.cgroups_at_limit = cgroups_at_limit;
    collected.facts.task_limits = Some(task_limits);
    collected.facts.no_descriptor_left = Some(no_descriptor_left);
    collected.facts.workers = workers;
    collected.facts.full_file_systems = full_file_systems;
    collected.facts.unaccepted = Some(unaccepted);
    collected.facts.set_aside = Some(set_aside);
    collected.facts.unread_answers = Some(unread_answers);
    collected.facts.full_outputs = full_outputs;
    collected.facts.owed_answers = Some(owed_answers);
    collected.facts.left_unread = Some(left_unread);
    collected.facts.pushed = pushed;
    collected.facts.moved = moved;
    collected.facts.other_clients = other_clients;
    collected.facts.thread_sessions = thread_sessions;
    collected.facts.awaited_peers = awaited_peers;
    collected.facts.database_files = database_files;
    collected.facts.locked_files = locked_files;
    resolver.tell(&mut collected.facts.resolver);
    if elsewhere {
        // Settings of the network are each namespace's own, and the kernel shows them to who is in it.
        collected
            .facts
            .sysctl
            .retain(|setting, _| !setting.starts_with(OF_NETWORK));
    }
    match listeners {
        Some(listeners) => collected.facts.listeners = listeners,
        None if elsewhere => collected.facts.listeners.clear(),
        None => {}
    }
    collected.facts.name_servers = asked_for_names(&collected.attributed, &attached.following.subjects);
    if let (Some(pid), Some(churn)) = (pids.first(), &collected.attributed.churn) {
        let facts = &mut collected.facts;
        let clients = connected::of_ended(*pid, churn, &mut facts.listeners, &mut Moment::now());
        facts.programs.extend(programs::look(clients.iter()));
    }
    Ok(collected)
}

/// Waits that are under way.
fn under_way(observation: &mut Observation) -> Vec<Wait> {
    observation.tracer.peek();
    observation.turn();
    let peeked = observation.naming.take_peeked().into_iter();
    peeked.map(|(_, wait)| wait).collect()
}

/// Processes that clients wait for at their listeners.
fn pointed_at(unaccepted: &[Unaccepted], workers: &[Workers]) -> Vec<u32> {
    let queued = unaccepted.iter().flat_map(|queue| &queue.processes);
    let stands = |one: &&Workers| one.at.iter().any(|at| at.before > 0 && at.after > 0);
    let workers = workers.iter().filter(stands).flat_map(|one| &one.pids);
    queued.chain(workers).copied().collect()
}

/// The name servers of the observed processes' own machine that they asked, and whom those ask.
fn asked_for_names(attributed: &Attributed, subjects: &BTreeSet<u32>) -> Vec<NameServer> {
    let waits = attributed.waits.iter().filter(|wait| wait.cause == Cause::NetDns);
    let waits = waits.filter(|wait| subjects.contains(&wait.asker.name.pid));
    let at = |wait: &AttributedWait| match &wait.resource.detail.peer {
        Some(Peer::Address(address)) => Some(*address),
        _ => wait.resource.name.parse().ok(),
    };
    let tasks = attributed.tasks.iter().filter(|task| task.cause == Cause::NetDns);
    let by_tasks = tasks.filter_map(|task| match &task.resource.detail.peer {
        Some(Peer::Address(address)) if subjects.contains(&task.pid) => Some((task.pid, *address)),
        _ => None,
    });
    // Others that are asked over UDP are looked up in the same tables.
    let by_datagrams = attributed.datagrams.iter().flat_map(|all| &all.peers);
    let by_datagrams = by_datagrams.filter(|one| one.unanswered > 0 && one.protocol.is_some());
    let by_datagrams = by_datagrams.filter_map(|one| Some((one.by.pid, one.peer.parse().ok()?)));
    let asked: Vec<(u32, SocketAddr)> = waits
        .filter_map(|wait| Some((wait.asker.name.pid, at(wait)?)))
        .chain(by_tasks)
        .chain(by_datagrams.filter(|(pid, _)| subjects.contains(pid)))
        .collect();
    let Some((pid, _)) = asked.first() else {
        return Vec::new();
    };
    let servers = asked.iter().map(|(_, address)| *address).collect();
    name_servers::look(*pid, &servers, &mut Moment::now())
}

/// Of which loops it is known who can stir them: their sets were read.
fn tell_loops(observation: &mut Observation, loops: &Loops) {
    let loops = loops.stirred_by_clients();
    if !loops.is_empty() {
        observation.attribution.push(&Event::Serving(Serving {
            loops,
            ..Serving::default()
        }));
    }
}

/// All that was named has ended between being found and being watched, or the kernel does not show it, as some virtual machines'
/// do with their first process.
#[derive(Debug)]
pub struct EndedBefore;

impl std::fmt::Display for EndedBefore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "none of the selected processes could be observed: they have ended, or the kernel does not show \
             them",
        )
    }
}

impl std::error::Error for EndedBefore {}

/// Who is watched.
#[derive(Debug, Default)]
struct Attached {
    following: Following,
    known: Known,
}

impl Attached {
    /// Processes that have come into what was asked about other than by birth.
    fn newcomers(&mut self, observation: &mut Observation, selection: &Selection) -> anyhow::Result<()> {
        let more = selection.more(&mut self.known);
        let new: Vec<u32> = more
            .into_iter()
            .filter(|pid| !self.following.subjects.contains(pid))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.serving(observation, &new, &mut Moment::now());
        self.following.adopt(observation, &new, Role::Subject, NEXT_LOOK)
    }

    fn serving(&mut self, observation: &mut Observation, pids: &[u32], moment: &mut Moment) {
        let serving = serving::look(pids, moment);
        let ports = serving.addresses.iter().filter_map(|address| match address {
            SocketAddress::Inet(address) => Some(address.port()),
            SocketAddress::Unix(_) | SocketAddress::Other(_) => None,
        });
        let gaps = serving::unwatched(&serving.masters, pids, moment);
        observation.not_measured.extend(gaps);
        observation.requests_told = observation.tracer.serve(ports);
        observation.attribution.push(&Event::Serving(serving));
    }
}
