//! From a prepared child to attributed evidence: the loop that stands beside CMD.
//!
//! The source of evidence is a [`Tracer`] today; what it hands out is named ([`naming`]) and pushed into the
//! attribution at once, so that memory does not grow with the number of waits.

mod naming;
mod own_ends;

use crate::commands::run::Collected;
use crate::signals::{Control, Signals};
use crate::subject::{Ended, Subject};
use anyhow::Context;
use holdup_analysis::attribution::Attribution;
use holdup_bpf::{Options, RawEvent, Tracer};
use holdup_evidence::{DeviceNumber, Event, Finish, Loss, NotMeasured, Ns, RanInstead, ThreadId};
use holdup_proc::{Root, cgroup, clocks, cpu_times, facts, mountinfo};
use holdup_symbols::KernelSymbols;
use naming::Naming;
use nix::poll::PollTimeout;
use nix::sys::resource::{UsageWho, getrusage};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// How long a loop without news sleeps, milliseconds. At 400,000 waits a second it finds 1.5 MB in the ring of
/// 16 MB.
const PERIOD_MS: u16 = 20;

/// How long a turn may take before signals and CMD are looked at again.
const TURN: Duration = Duration::from_millis(100);

/// Names of others whose cgroups are looked up.
const OTHERS: usize = 64;

/// How long a reaped process's last switch is waited for: many turns of others on its CPU.
const LAST_SWITCH: Duration = Duration::from_millis(200);

/// What the loop gathers.
struct Observation {
    tracer: Tracer,
    naming: Naming,
    attribution: Attribution,
    /// Reused from one turn to the next.
    events: Vec<Event>,
    started: Option<Ns>,
    /// When the last thread of CMD's process seen to end did.
    ended: Option<Ns>,
    /// Whether the end of CMD's main thread has come.
    leader_ended: bool,
    /// Of those who ran instead, by name; `None`: in no cgroup of their own.
    cgroups: BTreeMap<String, Option<String>>,
    cmd: u32,
    last_turn: Instant,
}

/// Runs CMD to its end, or until the person wants no more.
///
/// # Errors
/// When nothing can be observed here, or CMD did not start.
pub(crate) fn run(
    subject: &mut Subject,
    signals: &mut Signals,
    options: Options,
) -> anyhow::Result<Collected> {
    let root = Root::system();
    let mut problems = Vec::new();
    let mut not_measured = Vec::new();
    let mounts = mountinfo::read(&root, &mut problems);
    let mut cgroup = cgroup::Watch::new(&root, &mounts);
    let cpu_times = cpu_times::read(&root, &mut problems);
    let kernel = kernel_symbols(&root, &mut not_measured);
    let mut observation = Observation {
        tracer: Tracer::load(options)?,
        naming: Naming::new(kernel, whole_mounts(&mounts)),
        attribution: Attribution::new(),
        events: Vec::new(),
        started: None,
        ended: None,
        leader_ended: false,
        cgroups: BTreeMap::new(),
        cmd: subject.pid(),
        last_turn: Instant::now(),
    };
    let mut priority = Priority::begin();
    subject
        .wait_until_ready()
        .context("the child that becomes the command does not answer")?;
    observation.tracer.watch(subject.pid());
    subject.go();
    let mut ended: Option<Ended> = None;
    while ended.is_none() && signals.serve(subject) == Control::Continue {
        signals.wait(subject, PollTimeout::from(PERIOD_MS));
        ended = subject.try_wait()?;
        cgroup.look(subject.pid());
        priority.adapt(observation.turn(&mut cgroup));
    }
    if ended.is_some() {
        observation.await_last_switch(&mut cgroup);
    }
    observation.tracer.freeze(clocks::monotonic());
    observation.last_turns(&mut cgroup);
    let started = observation.started.unwrap_or_default();
    let refused: Vec<Loss> = observation.naming.losses().collect();
    let (user_stacks, known) = observation.naming.finish();
    let question = facts::Question {
        cgroup: Some(cgroup),
        cpu_times,
        cgroups: std::mem::take(&mut observation.cgroups)
            .into_iter()
            .filter_map(|(name, cgroup)| Some((name, cgroup?)))
            .collect(),
        known,
        ..facts::Question::default()
    };
    let facts = facts::collect(&root, &question, &mut problems);
    let mut report = observation.tracer.report();
    report.losses.extend(refused);
    not_measured.extend(report.not_measured);
    let finish = Finish {
        started,
        ended: observation
            .ended
            .filter(|_| ended.is_some())
            .unwrap_or_else(clocks::monotonic),
        user_stacks,
        losses: report.losses,
        not_measured,
        own_cost: own_cpu_time() + report.programs,
        kernel_stack_budget: report.kernel_stack_budget,
        user_stack_budget: report.user_stack_budget,
        cpu_sample_period: report.cpu_sample_period,
    };
    Ok(Collected {
        attributed: observation.attribution.finish(&finish, &facts),
        started,
        facts,
        ended,
        problems,
    })
}

impl Observation {
    /// Takes what has come since the last turn; after that, or when a turn's time is used up, the loop looks at
    /// signals and CMD again.
    /// Returns how many records there were.
    fn turn(&mut self, cgroup: &mut cgroup::Watch) -> usize {
        let elapsed = self.last_turn.elapsed();
        self.last_turn = Instant::now();
        self.tracer
            .adapt(Ns::try_from(elapsed.as_nanos()).unwrap_or(Ns::MAX));
        let mut found = 0;
        loop {
            let taken = self.take(cgroup);
            found += taken;
            if taken == 0 || self.last_turn.elapsed() >= TURN {
                return found;
            }
        }
    }

    /// A process can be reaped before its main thread has left its CPU for the last time, on a busy machine by many
    /// milliseconds; until then its end is not told, and no list of tasks has it any more.
    fn await_last_switch(&mut self, cgroup: &mut cgroup::Watch) {
        let began = Instant::now();
        loop {
            self.turn(cgroup);
            if self.leader_ended || began.elapsed() >= LAST_SWITCH {
                return;
            }
            std::thread::sleep(LAST_SWITCH / 100);
        }
    }

    /// Takes all that is left.
    fn last_turns(&mut self, cgroup: &mut cgroup::Watch) {
        while self.take(cgroup) > 0 {}
    }

    /// Takes a batch; returns how many records that were.
    fn take(&mut self, cgroup: &mut cgroup::Watch) -> usize {
        let (mapped, raw) = self.tracer.drain();
        let taken = raw.len();
        self.naming.mapped(mapped);
        for raw in raw {
            self.note(&raw, cgroup);
            self.naming.event(raw, &mut self.events);
            for event in self.events.drain(..) {
                self.attribution.push(&event);
            }
        }
        taken
    }

    /// Remembers the cgroup of one who ran instead while it is likely to be there still.
    fn meet(&mut self, ran: &RanInstead, cgroup: &cgroup::Watch) {
        let Some(by) = ran.by.as_ref().filter(|by| !by.kernel) else {
            return;
        };
        if self.cgroups.len() < OTHERS && !self.cgroups.contains_key(&by.name) {
            self.cgroups.insert(by.name.clone(), cgroup.of_process(by.pid));
        }
    }

    fn note(&mut self, raw: &RawEvent, cgroup: &mut cgroup::Watch) {
        match raw {
            // A program that moves itself into another cgroup mostly does so before it execs.
            RawEvent::Exec { task, .. } => cgroup.look(task.pid),
            RawEvent::RanInstead(ran) => self.meet(ran, cgroup),
            RawEvent::Start(start) if start.thread == ThreadId(0) => self.started = Some(start.at),
            RawEvent::End { end, .. } if end.task.pid == self.cmd => {
                self.ended = self.ended.max(Some(end.at));
                self.leader_ended |= end.task.tid == self.cmd;
            }
            _ => {}
        }
    }
}

/// Where each file system's own root is mounted; of several places the first.
fn whole_mounts(mounts: &[mountinfo::Line]) -> HashMap<DeviceNumber, String> {
    let mut targets = HashMap::new();
    for mount in mounts.iter().filter(|mount| mount.root == "/") {
        targets
            .entry(mount.device)
            .or_insert_with(|| mount.target.clone());
    }
    targets
}

/// holdup runs at the best nice value. With thousands of runnable threads beside it even that is too small a share
/// of the CPUs to take records as fast as they come: once it has fallen behind, it runs before ordinary threads, and leaves them a good part of the CPU by sleeping between turns ([`TURN`], [`PERIOD_MS`]). It
/// does not do so from the start, because such a thread stays on a busy CPU where another would have moved to an
/// idle one. CMD, forked before, keeps its own policy.
#[derive(Default)]
struct Priority {
    first: bool,
}

/// So many records found at the end of a sleep mean that holdup cannot keep up: they fill a quarter of the ring, and
/// at [`PERIOD_MS`] would stand for a million waits a second.
const BEHIND: usize = 20_000;

impl Priority {
    fn begin() -> Priority {
        // SAFETY: changes this process's own nice value; without the privilege it stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        Priority::default()
    }

    /// `found` is how many records a turn took.
    fn adapt(&mut self, found: usize) {
        if !self.first && found > BEHIND {
            self.first = true;
            let first = libc::sched_param { sched_priority: 1 };
            // SAFETY: as above, of its scheduling policy.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const first) };
        }
    }
}

/// Without them no wait can be told by the function it sleeps in.
fn kernel_symbols(root: &Root, not_measured: &mut Vec<NotMeasured>) -> Option<KernelSymbols> {
    let why = match KernelSymbols::load(root.proc.join("kallsyms")) {
        Ok(symbols) if !symbols.hidden() => return Some(symbols),
        Ok(_) => "the kernel hides its addresses (kernel.kptr_restrict)".to_owned(),
        Err(error) => error.to_string(),
    };
    not_measured.push(NotMeasured {
        what: "which kernel function a thread slept in".into(),
        why,
        fix: "sysctl kernel.kptr_restrict=1, and run as root".into(),
    });
    None
}

/// CPU time of this process so far, all threads.
fn own_cpu_time() -> Ns {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return 0;
    };
    let time = |time: nix::sys::time::TimeVal| {
        Ns::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
            + Ns::try_from(time.tv_usec()).unwrap_or(0) * 1_000
    };
    time(usage.user_time()) + time(usage.system_time())
}
