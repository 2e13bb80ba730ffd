//! `holdup host`: how the whole machine does, from the kernel's files alone.
//!
//! In: this machine, for some seconds. Out: the report. What was seen goes through the readers and rules of `holdup read`, so
//! that a machine is judged in the same way whether it is looked at or its artefacts are read. Nothing is traced, and
//! nothing that can block is waited for.

mod aside;
mod asks;
mod behind;
mod beyond;
mod close_looks;
mod counters;
mod databases;
mod device_queue;
mod filled;
mod frozen_volumes;
mod halted;
mod instead;
mod kernel_log;
mod last_words;
mod listeners;
mod looked_up;
mod names_asked;
mod once;
mod open_question;
mod owed;
mod own_pool;
mod places;
mod queued;
mod replicas;
mod room;
mod served;
mod short;
mod silence;
mod snapshots;
mod spent;
pub(crate) mod standing;
mod starved;
#[cfg(test)]
mod tests;
mod tried_locks;
mod weights;

use crate::cli::{Color, HostArgs};
use crate::gate::Gate;
use crate::output::{Outputs, Place};
use crate::progress::Progress;
use crate::recorded::{Evidence, Recording, Scope};
use crate::verdict::{self, machine};
use behind::Behind;
use counters::Counters;
use device_queue::Devices;
use holdup_artefacts::attribute;
use holdup_collect::budget::Ceiling;
use holdup_collect::line::watching;
use holdup_collect::privileges::{self, Part};
use holdup_collect::{Figures, own_cpu_time};
use holdup_evidence::SystemFacts;
use holdup_evidence::host::{Hole, HostLook, HostSight, ProcessLimit, Use};
use holdup_evidence::observed::{Metric, Point, Quote, SeenTransfer, Series, Source};
use holdup_evidence::randomness::Randomness;
use holdup_model::attributed::Attributed;
use holdup_model::report::Report;
use holdup_proc::links::{self, Link};
use holdup_proc::pressure;
use holdup_proc::randomness::{self, try_generator};
use holdup_proc::{Root, clocks, conversations, device_queues, facts, listen_queues};
use holdup_readers::{Account, Readers, Reading};
use holdup_report::Subject;
use holdup_subject::signals::{Control, Signals};
use listeners::Listeners;
use nix::poll::PollTimeout;
use once::Once;
use owed::Processes;
use short::Shortages;
use snapshots::Snapshots;
use starved::Starved;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use tried_locks::Held;

/// The shortest time between two turns: what is shorter shows no more, and the kernel's counters of CPU time have hundredths.
const MIN_BETWEEN: Duration = Duration::from_secs(1);

/// Turns of a look: of a long one every second would fill memory and say nothing more.
const TURNS: u32 = 120;

/// Part of one CPU that a look may take where nobody has said otherwise: 2 %.
const BUDGET: f64 = 0.02;

/// The part of that which the turns may take; the rest is for its begin, which costs most, and its end.
const TURNS_PART: f64 = 0.35;

/// Format of the lists of tasks among artefacts: they are of all tasks.
const LISTS: &str = "host-tasks";

/// Where the lists are read.
const TASKS: &str = "/proc/PID/stat";

/// Where the limits of cgroups are.
const LIMITS: &str = "/sys/fs/cgroup";

/// Where the kernel counts how long tasks stood still.
const STALLS: &str = "/proc/pressure";

/// Where network devices count.
const LINKS: &str = "/proc/net/dev";

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Looks, judges, prints.
///
/// # Errors
/// When the report can't be written, or signals can't be watched.
pub(crate) fn run(args: &HostArgs, color: Color) -> anyhow::Result<u8> {
    let gate = Gate::open(&args.gate)?;
    let outputs = Outputs::open(&args.report, Place::Stdout, color)?;
    let recording = Recording::open(&args.recording, Scope::default())?;
    let signals = Signals::watch()?;
    privileges::keep(Part::Look)?;
    let root = Root::system();
    let began = clocks::monotonic();
    let ask = Ask {
        room: holdup_proc::room::of,
        queues: listen_queues::read,
        conversations: conversations::read,
        datagrams: conversations::datagrams,
        devices: device_queues::read,
    };
    let mut host = Host::new(&root, std::process::id(), ask);
    let mut figures = Figures::begin(&root);
    let mut progress = Progress::begin(args.report.quiet);
    let ceiling = Ceiling::of(args.budget.budget, BUDGET);
    let start = own_cpu_time();
    watch(
        &mut host,
        &mut figures,
        signals,
        Duration::from_secs_f64(args.duration),
        ceiling.share * TURNS_PART,
        &mut progress,
    );
    let spent = own_cpu_time().saturating_sub(start);
    let looked = clocks::monotonic().saturating_sub(began);
    let (look, facts) = host.finish();
    let look = HostLook {
        randomness: randomness::read(&root, try_generator(), &mut Vec::new()),
        ..look
    };
    let attributed = Attributed {
        wall: looked,
        host_figures: figures.finish().since(began),
        ..attribute(&look.observed)
    };
    let mut evidence = Evidence {
        attributed,
        facts,
        build_ids: BTreeMap::new(),
        look: Some(look),
    };
    evidence.attributed.coverage.own_cost = own_cpu_time();
    evidence.attributed.coverage.budget = Some(ceiling.of_look(looked, start, spent));
    let subject = machine::subject(began);
    let report = Report {
        machine: verdict::this_machine(),
        ..report(subject.clone(), &evidence)
    };
    drop(progress);
    let status = outputs.write_judged(report, gate.as_ref());
    recording.map_or(Ok(()), |recording| recording.write(subject, evidence))?;
    Ok(status)
}

/// Judges what was seen.
fn report(subject: Subject, evidence: &Evidence) -> Report {
    let look = evidence.look.as_ref().expect("it is one of a machine");
    machine::report(subject, &evidence.attributed, &evidence.facts, look)
}

/// Takes turns until the time is over: the counters in each, all tasks as often as they may cost. `share`: the part of one CPU that they may take.
fn watch(
    host: &mut Host,
    figures: &mut Figures,
    mut signals: Signals,
    duration: Duration,
    share: f64,
    progress: &mut Progress,
) {
    let began = Instant::now();
    let until = began + duration;
    let pause = MIN_BETWEEN.max(duration / TURNS);
    let mut next_list = Instant::now();
    loop {
        let before = own_cpu_time();
        let is_last = until <= Instant::now();
        if is_last || next_list <= Instant::now() {
            host.turn();
            let cost = own_cpu_time().saturating_sub(before) as f64 / SECOND;
            let between = Duration::from_secs_f64(cost / share).max(pause);
            next_list = Instant::now() + between.saturating_sub(pause / 2);
            host.sight.interval = u64::try_from(between.as_nanos()).unwrap_or(u64::MAX);
        } else {
            host.counters.turn(&host.root);
            host.devices();
            host.behind.names_turn(host.own, host.counters.now());
        }
        figures.turn();
        if is_last {
            return;
        }
        let threads = usize::try_from(host.snapshots.threads()).unwrap_or(usize::MAX);
        progress.tell(|| watching(began.elapsed(), Some(duration), threads));
        // The last turn is at the end, so that the first and the last are as far apart as was asked for.
        let left = until.saturating_duration_since(Instant::now());
        let next = Instant::now() + if left < pause * 3 / 2 { left } else { pause };
        loop {
            let rest = next.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            // A millisecond more than none: a rest of less must not become a busy wait.
            let rest = rest.as_millis() + 1;
            signals.sleep(PollTimeout::try_from(rest).unwrap_or(PollTimeout::MAX));
            if signals.interrupted() == Control::EndObservation {
                host.turn();
                return;
            }
        }
    }
}

/// What is asked of the kernel itself and not read from its files; a test says it.
#[derive(Debug, Clone, Copy)]
struct Ask {
    room: once::Ask,
    queues: listeners::Ask,
    conversations: behind::Ask,
    datagrams: behind::Ask,
    devices: fn() -> Vec<device_queues::DeviceQueue>,
}

/// A look at a machine.
#[derive(Debug)]
struct Host {
    root: Root,
    counters: Counters,
    snapshots: Snapshots,
    once: Once,
    listeners: Listeners,
    behind: Behind,
    starved: Starved,
    devices: Devices,
    processes: Processes,
    held: Held,
    ask: Ask,
    own: u32,
    /// Pressure when the look began.
    stalled: Vec<(Metric, u64)>,
    /// Network devices when the look began.
    links: Vec<Link>,
    sight: HostSight,
}

impl Host {
    /// Begins a look at a machine; `own` is the process that looks, and is not listed.
    fn new(root: &Root, own: u32, ask: Ask) -> Host {
        Host {
            once: Once::start(root, ask.room),
            listeners: Listeners::new(ask.queues),
            behind: Behind::start(root, ask.conversations, ask.datagrams),
            starved: Starved::default(),
            devices: Devices::default(),
            processes: Processes::default(),
            held: Held::start(root),
            ask,
            own,
            stalled: pressure::read(root),
            links: links::read(root),
            root: root.clone(),
            counters: Counters::default(),
            snapshots: Snapshots::without(own),
            sight: HostSight::default(),
        }
    }

    /// Looks once.
    fn turn(&mut self) {
        self.counters.turn(&self.root);
        self.snapshots.turn(&self.root, self.counters.now());
        self.behind.names_turn(self.own, self.counters.now());
        self.behind.turn(
            self.own,
            self.snapshots.last(),
            self.counters.now(),
            self.ask.queues,
        );
        self.starved.turn(&self.root, self.snapshots.last());
        self.processes.turn(self.snapshots.last());
        self.devices();
        self.listeners.turn();
    }

    /// Looks at the queues of devices.
    fn devices(&mut self) {
        let queues = (self.ask.devices)();
        let now = self.counters.now().unwrap_or(0.0);
        let ask = self.ask;
        self.devices.turn(now, &queues, ask.conversations, ask.datagrams);
    }

    /// What was seen.
    fn finish(mut self) -> (HostLook, SystemFacts) {
        let (root, mut sight) = (self.root, self.sight);
        let watched = self.counters.watched();
        sight.watched = (watched * SECOND) as u64;
        sight.lists = u32::try_from(self.snapshots.count()).unwrap_or(u32::MAX);
        sight.threads = self.snapshots.threads();
        holes(&root, &self.counters, &self.snapshots, &mut sight);

        let mut readers = Readers::new();
        self.counters.hand_over(&mut readers);
        if let Some(text) = holdup_proc::root::text_if_there(&root.proc.join("swaps")) {
            readers.read_taken("/proc/swaps", &mut text.as_bytes(), counters::now());
        }
        let log = kernel_log::read(&root, self.counters.now(), &mut sight);
        if !log.is_empty() {
            readers.read_taken(kernel_log::NAME, &mut log.as_bytes(), counters::now());
        }
        let mut reading = readers.finish();
        let blocked = self.snapshots.blocked();
        kernel_log::keep_trouble(&mut reading.observed, self.counters.now(), &blocked, &mut sight);
        self.counters.place(&mut reading);

        let source = add_source(&mut reading, TASKS, LISTS);
        let limits = add_source(&mut reading, LIMITS, "");
        let behind = add_source(&mut reading, behind::NAME, "");
        let quote = Quote {
            source: behind,
            line: 0,
        };
        let now = self.counters.now().unwrap_or(0.0);
        let frozen = frozen_volumes::look(&root, self.own, self.snapshots.last(), now);
        let queues = (self.ask.queues)();
        let mut waits = self
            .behind
            .finish(self.own, watched, &queues, quote.clone(), &frozen);
        reading.observed.frozen_volumes = frozen;
        let connections = (self.ask.conversations)();
        databases::add(
            &root,
            self.snapshots.processes(),
            &connections,
            &quote,
            &mut waits,
        );
        replicas::add(&root, self.own, &connections, &quote, &mut waits);
        let blocked_processes = self.snapshots.blocked_processes();
        self.processes
            .tell(&root, now, watched, &blocked_processes, &mut waits);
        let lived = self.processes.lived(now);
        silence::tell(&root, self.own, &connections, &queues, &lived, &mut waits);
        instead::tell(&root, self.own, &connections, &queues, now, &mut waits);
        own_pool::add(&root, self.own, &connections, &queues, &quote, &mut waits);
        self.held.add(&root, self.own, &quote, &mut waits);
        self.snapshots.name(&root);
        let (seen, jvms) = self.once.take(source, limits, &mut sight);
        let processes: Vec<_> = self.snapshots.processes().cloned().collect();
        let swapped = (reading.observed.of(Metric::SwapUsedKib))
            .any(|series| series.points.last().is_some_and(|point| point.value > 0.0));
        let short_lived = |pid| self.snapshots.short_lived(pid).map(str::to_owned);
        seen.users(&root, &processes, watched, swapped, short_lived, &mut sight);
        reading.observed.file_systems = seen.file_systems;
        reading.observed.devices = seen.devices;
        reading.observed.cgroups = seen.cgroups;
        let names: HashMap<u32, &str> = (processes.iter())
            .map(|process| (process.pid, process.name.as_str()))
            .collect();
        let cgroups = &reading.observed.cgroups;
        let shortages = Shortages {
            starved: self.starved.finish(&root, &short::throttled(cgroups), &|pid| {
                names.get(&pid).map(|name| (*name).to_owned())
            }),
            devices: self.devices.finish(&root, self.own),
            cgroups,
            blocked: &blocked_processes,
            look: (watched * SECOND) as u64,
            quote,
        };
        shortages.add(&root, &mut waits);
        for wait in &mut waits {
            for holder in wait.holder.iter_mut() {
                let used_up = |one: &&ProcessLimit| one.pid == holder.pid && one.used >= one.limit;
                holder.descriptors = sight.descriptors.iter().find(used_up).map(|one| one.limit);
            }
        }
        reading.observed.waits = Some(waits);
        sight.cpu = self.snapshots.cpu(&root, watched);
        sight.memory = self.snapshots.memory(&root, page());
        for (metric, used) in [
            (Metric::ProcessCpuPercent, &sight.cpu),
            (Metric::ProcessReadKibPerSecond, &sight.reads),
            (Metric::ProcessWriteKibPerSecond, &sight.writes),
        ] {
            let series = used.iter().map(|one| of_process(metric, one, source, &sight));
            reading.observed.series.extend(series);
        }
        for (writes, used) in [(false, &sight.reads), (true, &sight.writes)] {
            let transfers = used.iter().map(|one| SeenTransfer {
                program: one.process.clone(),
                who: one.who(),
                writes,
                kib_per_second: one.amount,
                quote: Quote { source, line: 0 },
            });
            reading.observed.transfers.extend(transfers);
        }
        let stalls = add_source(&mut reading, STALLS, "");
        let stalled = stalled(&self.stalled, &pressure::read(&root), stalls, watched);
        reading.observed.series.extend(stalled);
        let queues = add_source(&mut reading, listeners::NAME, "");
        self.listeners
            .hand_over(&root, self.own, queues, &mut reading.observed);
        let devices = add_source(&mut reading, LINKS, "");
        let links = lost(&self.links, &links::read(&root), devices, watched);
        reading.observed.series.extend(links);
        self.snapshots.hand_over(source, &mut reading.observed);
        let facts = SystemFacts {
            jvms,
            ..facts_of(&root, &reading.facts)
        };
        let look = HostLook {
            observed: reading.observed,
            sight,
            randomness: Randomness::default(),
        };
        (look, facts)
    }
}

/// Adds what something was read from.
fn add_source(reading: &mut Reading, name: &str, format: &str) -> u32 {
    reading.observed.sources.push(Source {
        name: name.to_owned(),
        format: format.to_owned(),
        ..Source::default()
    });
    reading.accounts.push(Account::default());
    u32::try_from(reading.observed.sources.len() - 1).expect("artefacts are far fewer than 2^32")
}

/// The use of a process as a figure, for the rules.
fn of_process(metric: Metric, one: &Use, source: u32, sight: &HostSight) -> Series {
    series(metric, one.who(), one.amount, source, sight.watched)
}

/// One figure over the whole look.
fn series(metric: Metric, of: String, value: f64, source: u32, watched: u64) -> Series {
    Series {
        metric,
        of,
        source,
        points: vec![Point {
            value,
            over: Some(watched),
            quote: Quote { source, line: 0 },
            ..Point::default()
        }],
        count: 1,
        sum: value,
    }
}

/// For what share of the look tasks stood still for want of something, percent.
fn stalled(before: &[(Metric, u64)], now: &[(Metric, u64)], source: u32, watched: f64) -> Vec<Series> {
    const MICROSECONDS: f64 = 1e6;
    if watched <= 0.0 {
        return Vec::new();
    }
    let known = now.iter().filter_map(|(metric, now)| {
        let (_, before) = before.iter().find(|(other, _)| other == metric)?;
        let percent = now.saturating_sub(*before) as f64 / MICROSECONDS / watched * 100.0;
        let percent = percent.min(100.0);
        Some(series(
            *metric,
            String::new(),
            percent,
            source,
            (watched * SECOND) as u64,
        ))
    });
    known.collect()
}

/// What network devices lost in a second of the look; those that were not there when it began are left out.
fn lost(before: &[Link], now: &[Link], source: u32, watched: f64) -> Vec<Series> {
    if watched <= 0.0 {
        return Vec::new();
    }
    let known = now.iter().filter_map(|link| {
        let same = before.iter().find(|other| other.name == link.name)?;
        Some((link, same))
    });
    known
        .flat_map(|(link, same)| {
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / watched;
            [
                (
                    Metric::NetworkReceiveDropsPerSecond,
                    rate(link.dropped, same.dropped),
                ),
                (
                    Metric::NetworkReceiveErrorsPerSecond,
                    rate(link.damaged, same.damaged),
                ),
            ]
            .map(|(metric, rate)| series(metric, link.name.clone(), rate, source, (watched * SECOND) as u64))
        })
        .collect()
}

/// What the machine says of itself, with the settings that the readers met.
fn facts_of(root: &Root, read: &SystemFacts) -> SystemFacts {
    let mut facts = facts::collect(root, &facts::Question::default(), &mut Vec::new());
    for (name, value) in &read.sysctl {
        facts.sysctl.entry(name.clone()).or_insert_with(|| value.clone());
    }
    facts.cpus = facts.cpus.or(read.cpus);
    facts
}

/// Bytes of a page.
fn page() -> u64 {
    /// What it is nearly everywhere, should the system not tell.
    const USUAL: u64 = 4096;
    // SAFETY: `sysconf` reads a constant of the system and takes no pointer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).ok().filter(|size| *size > 0).unwrap_or(USUAL)
}

/// Adds something that could not be seen.
fn hole(sight: &mut HostSight, what: &str, why: &str, fix: &str) {
    sight.holes.push(Hole {
        what: what.to_owned(),
        why: why.to_owned(),
        fix: fix.to_owned(),
    });
}

/// What the tree itself shows that it does not show.
fn holes(root: &Root, counters: &Counters, snapshots: &Snapshots, sight: &mut HostSight) {
    if counters.cut() {
        hole(
            sight,
            "the machine's counters until the end",
            "there are more counters than holdup keeps",
            "use a shorter -d",
        );
    }
    if snapshots.untold > 0 && !once::is_root(root) {
        hole(
            sight,
            "where tasks are blocked in the kernel",
            "only root can read this of other users' tasks",
            "sudo holdup host",
        );
    }
    let mounts = holdup_proc::mountinfo::read(root, &mut Vec::new());
    let hidden = mounts.iter().any(|mount| {
        mount.file_system == "proc"
            && mount
                .super_options
                .split(',')
                .any(|option| option.starts_with("hidepid=") && option != "hidepid=0")
    });
    if hidden && !once::is_root(root) {
        hole(
            sight,
            "other users' processes",
            "/proc is mounted with hidepid",
            "sudo holdup host",
        );
    }
}
