//! Observes a command by looking at it now and then: where tracing is not to be had.
//!
//! In: CMD, held back until the first look. Out: the same [`Collected`] as from tracing, with what could not be seen. The looks
//! are [`holdup_proc::sampling`]'s; here they are made as often as the budget allows, stacks get numbers ([`stacks`]), and the
//! whole is put together.

mod attach;
mod beyond;
mod conversations;
mod machines;
mod refused;
mod room;
mod stacks;
mod stops;
mod unnamed;
mod unseen;

pub use attach::{SampledHow, attach};

use super::attributing::{Attributing, EventsFile};
use super::run::Limit;
use super::{Collected, Cut, left_behind, own_cpu_time};
use crate::budget::Ceiling;
use crate::haste::Haste;
use beyond::Beyond;
use holdup_events::Settings;
use holdup_evidence::budget::Budget;
use holdup_evidence::facts::CpuTime;
use holdup_evidence::{Event, Finish, Loss, LossClass, NotMeasured, Ns};
use holdup_model::attributed::Source;
use holdup_model::report::Backend;
use holdup_proc::sampling::{NotWatched, Rate, Sampler};
use holdup_proc::{Problem, Root, cgroup, clocks, cpu_times, facts, mountinfo};
use holdup_subject::signals::{Control, Signals};
use holdup_subject::subject::{Ended, NotShown, Subject};
use machines::SampledMachines;
use nix::errno::Errno;
use nix::poll::PollTimeout;
use stacks::SampledStacks;
use std::collections::BTreeSet;
use std::time::Duration;

/// What looking gathers.
struct Sampling {
    sampler: Sampler,
    stacks: SampledStacks,
    machines: SampledMachines,
    beyond: Beyond,
    /// Processes that are followed because they are in the way of others.
    neighbours: BTreeSet<u32>,
    attribution: Attributing,
    rate: Rate,
    cgroup: cgroup::Watch,
    cpu_times: Vec<CpuTime>,
    problems: Vec<Problem>,
    started: Ns,
    /// Whether running threads are seen.
    running: Result<(), NotWatched>,
    /// What else was not seen.
    not_measured: Vec<NotMeasured>,
    /// What somebody has set.
    limit: Option<Ceiling>,
    /// CPU time before that.
    spent_before: Ns,
}

/// Runs CMD to its end, or until the person wants no more. `why`: why it is not traced, where that was not asked for.
///
/// # Errors
/// When CMD did not start.
pub fn run(
    subject: &mut Subject,
    signals: &mut Signals,
    why: Option<&str>,
    budget: Option<Ceiling>,
    events: Option<&EventsFile>,
) -> anyhow::Result<Collected> {
    adopt_orphans();
    let go_on = |subject: &Subject, signals: &mut Signals| signals.serve(subject) == Control::Continue;
    let (sampling, ended) = observe(subject, signals, std::process::id(), (budget, events), go_on)?;
    let haste = Haste::of_run(signals, subject, ended.as_ref());
    Ok(sampling.finish(ended, why, haste))
}

/// Runs CMD to its end if that comes within `limit`, and if no signal tells holdup to end. `adopter`: the process in whose PID namespace
/// CMD is, and which is given what there loses its parent.
///
/// # Errors
/// As above.
pub fn run_for(
    subject: &mut Subject,
    signals: &mut Signals,
    adopter: u32,
    limit: Duration,
    why: &str,
) -> anyhow::Result<Result<Collected, Cut>> {
    let mut limit = Limit::new(limit);
    let (sampling, ended) = observe(subject, signals, adopter, (None, None), |_, signals| {
        limit.go_on(signals)
    })?;
    Ok(match (ended, limit.cut) {
        (None, Some(cut)) => Err(cut),
        (ended, _) => Ok(sampling.finish(ended, Some(why), Haste::of_many(signals))),
    })
}

/// Lets CMD go and looks at it until it ends, or until it is not to be gone on with.
fn observe(
    subject: &mut Subject,
    signals: &mut Signals,
    adopter: u32,
    (budget, events): (Option<Ceiling>, Option<&EventsFile>),
    mut go_on: impl FnMut(&Subject, &mut Signals) -> bool,
) -> anyhow::Result<(Sampling, Option<Ended>)> {
    room::make();
    subject.wait_until_ready()?;
    let mut sampling = Sampling::begin(subject.pid(), adopter, events)?;
    sampling.keep_to(budget);
    subject.go();
    let mut nap = Duration::ZERO;
    while go_on(subject, signals) {
        signals.wait(subject, timeout(nap));
        sampling.cgroup.look(subject.pid());
        // CMD is looked at once more after its end, before its last figures go with it. It may end during this round as well, after
        // it was looked at; then there is another one.
        let over = subject.can_be_reaped();
        sampling.round();
        if over {
            return Ok((sampling, subject.try_wait()?));
        }
        nap = sampling.rate.sleep(clocks::monotonic(), own_cpu_time());
    }
    Ok((sampling, None))
}

/// A nap for `poll`, which takes whole milliseconds, the shortest being one.
fn timeout(nap: Duration) -> PollTimeout {
    PollTimeout::try_from(nap.as_millis().max(1)).unwrap_or(PollTimeout::MAX)
}

/// Processes whose parent ends become holdup's children instead of the system's first process's, so that they are still found.
fn adopt_orphans() {
    // SAFETY: changes nothing but who orphans among this process's descendants are given to.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

impl Sampling {
    fn begin(pid: u32, adopter: u32, events: Option<&EventsFile>) -> anyhow::Result<Sampling> {
        let settings = Settings {
            source: Source::Sampled,
            ..Settings::default()
        };
        let attribution = Attributing::begin(settings, &[], events)?;
        let mut sampling = Sampling::of_nobody(adopter, attribution);
        if !sampling.sampler.begin(pid, sampling.started) {
            return Err(NotShown.into());
        }
        sampling.watch_running();
        Ok(sampling)
    }

    /// From now on running threads are seen, where that is allowed, by half of the files that may still be opened at most; what that leaves is for
    /// those that are followed.
    fn watch_running(&mut self) {
        let files = room::left();
        self.running = match files {
            0 => Err(NotWatched::Refused(Errno::EMFILE)),
            files => self.sampler.watch_running(files / 2),
        };
        self.sampler.keep_within(room::left());
    }

    fn of_nobody(adopter: u32, attribution: Attributing) -> Sampling {
        let root = Root::system();
        let mut problems = Vec::new();
        let mounts = mountinfo::read(&root, &mut problems);
        let cgroup = cgroup::Watch::new(&root, &mounts);
        let cpu_times = cpu_times::read(&root, &mut problems);
        let started = clocks::monotonic();
        let machines = SampledMachines::default();
        Sampling {
            running: Ok(()),
            sampler: Sampler::new(root, adopter),
            stacks: SampledStacks::told_by(machines.reader()),
            machines,
            beyond: Beyond::default(),
            neighbours: BTreeSet::new(),
            attribution,
            rate: Rate::new(started, own_cpu_time(), started),
            cgroup,
            cpu_times,
            problems,
            started,
            limit: None,
            spent_before: 0,
            not_measured: Vec::new(),
        }
    }

    /// Keeps to what somebody has said.
    fn keep_to(&mut self, budget: Option<Ceiling>) {
        if let Some(limit) = budget {
            let thousandths = (limit.share * 1000.0) as Ns;
            self.rate = Rate::within(thousandths, self.started, own_cpu_time(), self.started);
        }
        self.limit = budget;
        self.spent_before = own_cpu_time();
    }

    fn round(&mut self) {
        let before = own_cpu_time();
        let events = self.sampler.round(clocks::monotonic(), &mut self.stacks);
        self.stacks.round_took(own_cpu_time().saturating_sub(before));
        self.push(events);
    }

    /// Looking less often is all that is done for it: what is sampled is an estimate, and says how sure it is.
    fn budget(&self, limit: Ceiling, now: Ns) -> Budget {
        let used = own_cpu_time().saturating_sub(self.spent_before);
        limit.of_look(now.saturating_sub(self.started), self.spent_before, used)
    }

    fn push(&mut self, events: Vec<Event>) {
        let events = self.machines.judge(events, self.stacks.began());
        let met = self.sampler.met_with_holder(clocks::monotonic());
        for event in self.beyond.resolve(events, met) {
            self.attribution.push(&event);
        }
        self.sampler.know_joins(self.machines.joins());
    }

    /// Ends observation, and makes the whole of it.
    fn finish(mut self, ended: Option<Ended>, why: Option<&str>, mut haste: Haste<'_>) -> Collected {
        self.machines.look_now();
        let now = clocks::monotonic();
        let budget = self.limit.map(|limit| self.budget(limit, now));
        let events = self.sampler.leave(now);
        self.push(events);
        let shortfall = self.sampler.shortfall();
        let stuck: Vec<u32> = self.sampler.stuck().collect();
        let unseen = unseen::Unseen {
            why,
            shortfall,
            stuck: &stuck,
            lasted: now.saturating_sub(self.started),
            running: self.running.err(),
            followed: self.sampler.most_threads(),
            timed_calls: self.sampler.timed_calls(),
            interrupts: self.sampler.interrupts_unmeasured(),
            cpu_unseen: unseen::cpu_of_children().saturating_sub(self.sampler.cpu_seen()),
        };
        let unseen = unseen.not_measured();
        let losses = (shortfall.threads > 0).then_some(Loss {
            class: LossClass::Thread,
            count: shortfall.threads,
            ns: 0,
        });
        let parked = self.stacks.parked(&self.machines.machines());
        self.not_measured.extend(parked.not_measured);
        self.not_measured.extend(self.stacks.refused_interpreters());
        let user_stacks = self.stacks.finish();
        let build_ids = user_stacks.build_ids();
        let named = user_stacks.finish_unless(&mut || haste.is_wanted());
        haste.over();
        let user_stacks = named.stacks;
        drop((self.sampler, self.machines));
        let not_measured: Vec<NotMeasured> = unseen
            .into_iter()
            .chain(self.not_measured)
            .chain(left_behind::not_measured())
            .collect();
        let met = self.beyond.finish();
        let question = facts::Question {
            cgroup: Some(self.cgroup),
            cpu_times: self.cpu_times,
            known: met.names,
            ..facts::Question::default()
        };
        let mut problems = self.problems;
        let mut facts = facts::collect(&Root::system(), &question, &mut problems);
        facts.stopped = met.stopped;
        facts.failed_tasks = parked.failed;
        let finish = Finish {
            started: self.started,
            ended: now,
            user_stacks,
            losses: losses.into_iter().collect(),
            not_measured: [not_measured, super::naming::unread_not_measured(&named.unread)].concat(),
            own_cost: own_cpu_time(),
            budget,
            tasks: parked.tasks,
            tokio_read: parked.tokio_read,
            pools: parked.pools,
            shared_words: parked.shared_words,
            ..Finish::default()
        };
        let (mut attributed, mut events) = self.attribution.finish(finish, &facts);
        let unnamed = unnamed::not_measured(&attributed);
        if let Some(copy) = &mut events {
            copy.unmeasured(&unnamed);
        }
        attributed.coverage.not_measured.extend(unnamed);
        Collected {
            backend: Backend::Proc,
            attributed,
            started: self.started,
            facts,
            ended,
            problems,
            elsewhere: Vec::new(),
            build_ids,
            events,
        }
    }
}
