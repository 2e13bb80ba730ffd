//! Java virtual machines among what is observed: which processes are some, when they stopped their threads, what they say of themselves.
//!
//! A process that has libjvm mapped is one. Its pauses are put together from the waits that its VM thread ended: all that
//! began before the first of them was let go are one pause. What it was for is known by its own account of its operations, where its
//! library tells where that is (`operations.rs`); else, whether it collected garbage meanwhile, by its counters
//! (`holdup_jvm`). Both are read after the waits have been taken from the ring and before they are attributed: so each
//! collection that they count belongs to a pause that is known, of several the longest.
//!
//! In: raw records in the order of time. Out: [`Event::IsJvm`] and [`Event::JvmPause`], before the waits that these are about; at
//! the end the machines.

pub(super) mod operations;
mod pauses;
mod reader;

use holdup_attribution::attribution::{collects, is_own_thread};
use holdup_bpf::{Change, Mapped, RawEvent};
use holdup_evidence::jvm::Figures;
use holdup_evidence::{Collector, Event, Jvm, JvmCounters, JvmPause, Ns, PauseWork, ThreadId, Wait, Waker};
pub(crate) use holdup_jvm::is_libjvm;
use holdup_jvm::{Itself, Machines};
use holdup_proc::{Root, clocks, maps, mountinfo};
use operations::Account;
use pauses::{Kind, ObservedPause, Pauses};
pub use reader::read_once;
use reader::{Late, Reader};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

/// Machines that are followed; of more nothing is reported.
const MAX_MACHINES: usize = 64;

/// Machines that nobody asked about, remembered because their threads may come to be observed.
const MAX_OTHERS: usize = 4_096;

/// Between two readings of a machine's counters while it stops nobody, nanoseconds.
const READ_AGAIN: Ns = 1_000_000_000;

/// Of a machine that starts the same is a part of its age, one in so many, and no less than this: much happens at first, and what a
/// short life came to is asked when nobody answers any more.
const YOUNG_PART: Ns = 8;
const YOUNG_LEAST: Ns = 20_000_000;

/// The same until they are there for the first time: a machine that starts needs some 20 ms to write them.
const TRY_AGAIN: Ns = 50_000_000;

/// Tries at that pace; then it shares none, or is stuck.
const TRIES: u32 = 40;

/// Why nothing is reported of a machine whose memory can't be read in time.
const SLOW: &str = "reading its memory took too long";

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Jvms {
    /// By their structures.
    structures: Machines,
    machines: BTreeMap<u32, Machine>,
    threads: HashMap<ThreadId, (u32, Kind)>,
    /// Found, and not yet reported.
    new: Vec<u32>,
    /// Processes that are observed, and others that have libjvm mapped: the kernel announces everybody's mappings.
    observed: HashSet<u32>,
    others: HashSet<u32>,
}

#[derive(Debug)]
struct Machine {
    reader: Option<Reader>,
    /// Whether the process has not become another program, nor ended.
    lives: bool,
    pauses: Pauses,
    /// What it said first, and last.
    last_read: Option<(Jvm, Ns)>,
    after: JvmCounters,
    read_at: Ns,
    tried_at: Ns,
    tries: u32,
    why_not: Option<Figures>,
    /// Names of its threads tell the collector where it does not.
    by_threads: Option<Collector>,
    collecting_threads: u32,
    /// Collections counted before the pause that they belong to was seen, and how long they took.
    early: (u64, Ns),
    operations: Account,
    /// What it is by its structures, where it shares no figures.
    itself: Option<Itself>,
}

impl Jvms {
    /// Those that these structures are of.
    pub(super) fn read_by(structures: Machines) -> Jvms {
        Jvms {
            structures,
            ..Jvms::default()
        }
    }

    /// Changes of address spaces.
    pub(super) fn mapped(&mut self, changes: &[Mapped]) {
        for change in changes {
            match &change.change {
                Change::Map(mapping) if is_libjvm(&mapping.path) => self.found(change.pid),
                Change::Map(_) => {}
                // Another program runs there now. What the old one said stays.
                Change::Exec => {
                    self.others.remove(&change.pid);
                    if let Some(machine) = self.machines.get_mut(&change.pid) {
                        machine.reader = None;
                        machine.lives = false;
                    }
                }
            }
        }
    }

    /// What a process had mapped that ran already.
    pub(super) fn was_mapped(&mut self, pid: u32, mappings: &[maps::Mapping]) {
        if mappings.iter().any(|mapping| is_libjvm(&mapping.path)) {
            self.found(pid);
        }
    }

    fn found(&mut self, pid: u32) {
        if !self.observed.contains(&pid) {
            if self.others.len() < MAX_OTHERS {
                self.others.insert(pid);
            }
            return;
        }
        if self.machines.len() < MAX_MACHINES && !self.machines.contains_key(&pid) {
            self.machines.insert(pid, Machine::new(pid));
            self.new.push(pid);
        }
    }

    /// What is to be reported before these records.
    pub(super) fn before(&mut self, raw: &[RawEvent]) -> Vec<Event> {
        for record in raw {
            if let RawEvent::Start(start) = record
                && self.observed.insert(start.task.pid)
                && self.others.remove(&start.task.pid)
            {
                self.found(start.task.pid);
            }
        }
        let mut events: Vec<Event> = self.new.drain(..).map(|pid| Event::IsJvm { pid }).collect();
        if self.machines.is_empty() {
            return events;
        }
        for record in raw {
            match record {
                RawEvent::Start(start) => self.named(start.thread, start.task.pid, &start.task.name),
                RawEvent::Renamed { thread, name } => {
                    if let Some((pid, _)) = self.threads.get(thread) {
                        self.named(*thread, *pid, name);
                    }
                }
                RawEvent::Wait(wait) => self.wait(wait),
                RawEvent::End { end, .. } => {
                    self.threads.remove(&end.thread);
                    // The end of observation ends threads, too, when nobody asks any more.
                    if let Some(machine) = self.machines.get_mut(&end.task.pid) {
                        machine.lives &= end.task.tid != end.task.pid;
                    }
                }
                _ => {}
            }
        }
        let now = clocks::monotonic();
        let until = Instant::now() + reader::LIMIT;
        let structures = &self.structures;
        for (pid, machine) in &mut self.machines {
            let pauses = machine.turn(now, until, *pid, structures);
            events.extend(pauses.into_iter().map(Event::JvmPause));
        }
        events
    }

    fn named(&mut self, thread: ThreadId, pid: u32, name: &str) {
        let Some(machine) = self.machines.get_mut(&pid) else {
            return;
        };
        let kind = Kind::of(name);
        let before = self.threads.insert(thread, (pid, kind));
        if kind == Kind::Collects && before.is_none_or(|(_, kind)| kind != Kind::Collects) {
            machine.meets_collecting(name);
        }
    }

    fn wait(&mut self, wait: &Wait) {
        let Some((pid, kind)) = self.threads.get(&wait.thread) else {
            return;
        };
        let vm_thread = match &wait.waker {
            Waker::Thread { thread, call, .. } if call.name() == Some("futex") => Some(*thread),
            _ => None,
        };
        let vm_thread = vm_thread.filter(|by| self.threads.get(by) == Some(&(*pid, Kind::VmThread)));
        if let Some(machine) = self.machines.get_mut(pid) {
            machine.pauses.wait(wait, *kind, vm_thread);
        }
    }

    /// All of them that live, with what each has said of itself.
    pub(super) fn known(&self) -> impl Iterator<Item = (u32, Option<&Jvm>)> {
        let living = self.machines.iter().filter(|(_, machine)| machine.lives);
        living.map(|(pid, machine)| (*pid, machine.last_read.as_ref().map(|(jvm, _)| jvm)))
    }

    /// What the machines said of themselves.
    pub(super) fn finish(mut self) -> Vec<Jvm> {
        let now = clocks::monotonic();
        let until = Instant::now() + reader::LIMIT;
        for machine in self.machines.values_mut() {
            machine.read(now, until);
        }
        self.so_far()
    }

    /// The same while observation goes on.
    pub(super) fn so_far(&self) -> Vec<Jvm> {
        let machines = self.machines.iter();
        machines.map(|(pid, machine)| machine.jvm(*pid)).collect()
    }
}

impl Kind {
    fn of(name: &str) -> Kind {
        match name {
            "VM Thread" => Kind::VmThread,
            _ if collects(name) => Kind::Collects,
            _ if is_own_thread(name) => Kind::Own,
            _ => Kind::Java,
        }
    }
}

impl Machine {
    fn new(pid: u32) -> Machine {
        Machine {
            reader: Reader::start(pid),
            lives: true,
            pauses: Pauses::new(pid),
            last_read: None,
            after: JvmCounters::default(),
            read_at: 0,
            tried_at: 0,
            tries: 0,
            why_not: None,
            by_threads: None,
            collecting_threads: 0,
            early: (0, 0),
            operations: Account::default(),
            itself: None,
        }
    }

    fn meets_collecting(&mut self, name: &str) {
        let collector = [
            ("G1", Collector::G1),
            ("Z", Collector::Z),
            ("RuntimeWorker", Collector::Z),
            ("Shenandoah", Collector::Shenandoah),
            ("Concurrent Mark", Collector::Cms),
        ];
        let known = collector.iter().find(|(begins, _)| name.starts_with(begins));
        // What all have in common tells the one that has nothing else.
        let found = known.map_or(Collector::Parallel, |(_, collector)| *collector);
        if known.is_some() || self.by_threads.is_none() {
            self.by_threads = Some(found);
        }
        if name.starts_with("GC Thread#") || name.starts_with("ZWorker") || name.starts_with("Shenandoah GC")
        {
            self.collecting_threads += 1;
        }
    }

    /// The pauses since the last turn. `until`: all machines together are waited for so long.
    fn turn(&mut self, now: Ns, until: Instant, pid: u32, structures: &Machines) -> Vec<JvmPause> {
        let begun = self.pauses.take();
        let due = match &self.last_read {
            Some((jvm, first)) => {
                let age = jvm.uptime.unwrap_or(0).max(now.saturating_sub(*first));
                let again = (age / YOUNG_PART).clamp(YOUNG_LEAST, READ_AGAIN);
                now.saturating_sub(self.read_at) >= again
            }
            None => self.tries < TRIES && now.saturating_sub(self.tried_at) >= TRY_AGAIN,
        };
        let before = (self.after.collections, self.after.collecting);
        let known = self.last_read.is_some();
        let mut named = vec![None; begun.len()];
        if due || !begun.is_empty() {
            if let Some(operations) = structures.operations(pid, until) {
                named = self.operations.read(operations, &begun);
            }
            if self.last_read.is_none() && self.itself.is_none() {
                self.itself = structures.itself(pid, until);
            }
        }
        if due || (known && !begun.is_empty()) {
            self.read(now, until);
        }
        let counted_before = known.then_some(before);
        let works = self.works(&begun, &named, counted_before);
        let found = begun.into_iter().zip(works);
        found.map(|(pause, work)| pause.into_pause(work)).collect()
    }

    /// What each of these pauses was for. `before`: collections, and how long they took, when the counters were read last.
    fn works(
        &mut self,
        begun: &[ObservedPause],
        named: &[Option<Arc<str>>],
        before: Option<(u64, Ns)>,
    ) -> Vec<PauseWork> {
        let read = self.last_read.as_ref().filter(|_| self.reader.is_some());
        let by_itself = self.itself.as_ref().and_then(|itself| itself.collector);
        let (collector, why, of_collections) = match read.zip(before) {
            None => (by_itself.or(self.by_threads), None, None),
            Some(((jvm, _), before)) => {
                let counted = self.after.collections.saturating_sub(before.0) + self.early.0;
                let took = match jvm.collector.is_some_and(Collector::is_concurrent) {
                    // Those count the time in which they work beside the program, too.
                    true => 0,
                    false => self.after.collecting.saturating_sub(before.1) + self.early.1,
                };
                let (collector, why) = (jvm.collector, self.after.last_cause.clone());
                let of_collections = pauses::of_collections(begun, counted, took);
                // A pause that ended as the counters were read comes with the next records; an older one was seen by nobody.
                let found = of_collections.len() as u64;
                self.early = match counted.saturating_sub(found) {
                    0 => (0, 0),
                    _ if found == 0 => (1, took / counted.max(1)),
                    _ => (1, 0),
                };
                (collector, why, Some(of_collections))
            }
        };
        let collection = || PauseWork::Collection {
            collector,
            why: why.clone(),
        };
        let each = begun.iter().zip(named).enumerate();
        let work = each.map(|(at, (pause, name))| match (name, &of_collections) {
            (Some(name), _) if operations::collects(name) => collection(),
            (Some(name), _) => PauseWork::Operation(name.to_string()),
            (None, Some(of_collections)) if of_collections.contains(&at) => collection(),
            (None, Some(_)) => PauseWork::Other,
            // Without counters its threads tell: only for a collection do those that collect work while all stand still.
            (None, None) if pause.worked() => collection(),
            (None, None) => PauseWork::Unknown,
        });
        work.collect()
    }

    /// Reads what it says, if it can be read in time.
    fn read(&mut self, now: Ns, until: Instant) {
        self.tried_at = now;
        self.tries += 1;
        let Some(reader) = &mut self.reader else { return };
        match reader.read(until) {
            Ok(Ok(jvm)) => {
                self.read_at = now;
                self.after = jvm.after.clone();
                match &mut self.last_read {
                    // A machine that starts may not have written all of it when it was read first.
                    Some((known, _)) => {
                        let before = std::mem::take(&mut known.before);
                        *known = Jvm { before, ..jvm };
                    }
                    None => self.last_read = Some((jvm, now)),
                }
            }
            Ok(Err(why)) => self.why_not = Some(why),
            Err(Late::Today) => self.why_not = Some(Figures::Unreadable(SLOW.to_owned())),
            // It is left behind.
            Err(Late::ForGood) => {
                self.why_not = Some(Figures::Unreadable(SLOW.to_owned()));
                self.reader = None;
            }
        }
    }

    fn jvm(&self, pid: u32) -> Jvm {
        let mut jvm = match &self.last_read {
            Some((jvm, first)) => Jvm {
                after: self.after.clone(),
                between: self.read_at.saturating_sub(*first),
                ..jvm.clone()
            },
            None => Jvm {
                pid,
                figures: self.why_not.clone().unwrap_or_default(),
                ..Jvm::default()
            },
        };
        if let Some(itself) = &self.itself {
            jvm.version = jvm.version.or_else(|| itself.version.clone());
            jvm.collector = jvm.collector.or(itself.collector);
            jvm.max_heap = jvm.max_heap.or(itself.max_heap);
        }
        jvm.collector = jvm.collector.or(self.by_threads);
        jvm.operations = self.operations.counts();
        jvm.collecting_threads = self.collecting_threads;
        jvm
    }
}

/// How many processors a machine has, by the rules that it follows itself: its option, else those that it may run on, and no more
/// than its quota pays for.
pub(crate) fn processors(root: &Root, pid: u32, options: &[String]) -> Option<u32> {
    let set = |option: &String| option.strip_prefix("-XX:ActiveProcessorCount=")?.parse().ok();
    if let Some(number) = options.iter().rev().find_map(set) {
        return Some(number);
    }
    let may_run_on = holdup_proc::names::allowed_cpus(root, pid)?;
    if options.iter().any(|option| option == "-XX:-UseContainerSupport") {
        return Some(may_run_on);
    }
    let mounts = mountinfo::read(root, &mut Vec::new());
    let quota = holdup_proc::cgroup::cpu_quota_of(root, &mounts, pid);
    let paid = quota.map_or(u32::MAX, |quota| quota.cpus().ceil() as u32);
    Some(may_run_on.min(paid).max(1))
}

#[cfg(test)]
mod tests {
    use super::Jvms;
    use holdup_bpf::{Change, Mapped};

    #[test]
    fn an_id_whose_process_runs_another_program_is_no_machine_any_more() {
        let mut jvms = Jvms::default();
        jvms.found(7);
        assert!(jvms.others.contains(&7));
        jvms.mapped(&[Mapped {
            at: 1,
            pid: 7,
            change: Change::Exec,
        }]);
        assert!(jvms.others.is_empty());
    }
}
