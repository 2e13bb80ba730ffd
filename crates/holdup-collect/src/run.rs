//! Observes a command that holdup starts, from its exec to its end.

use super::attributing::{Attributing, EventsFile};
use super::following::{FIRST_LOOK_OF_RUN, Following, LOOK_AGAIN, LOOK_SPARSELY};
use super::own_logs::OwnLogs;
use super::{Collected, How, LAST_SWITCH, Observation, PERIOD_MS, Priority, own_cpu_time};
use crate::haste::Haste;
use crate::privileges;
use anyhow::Context;
use holdup_events::Settings;
use holdup_evidence::NotMeasured;
use holdup_subject::signals::{Control, Signals};
use holdup_subject::subject::{Ended, Subject};
use nix::poll::PollTimeout;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Runs CMD to its end, or until the person wants no more.
///
/// # Errors
/// When nothing can be observed here, or CMD did not start.
pub fn run(
    subject: &mut Subject,
    signals: &mut Signals,
    how: How,
    events: Option<&EventsFile>,
) -> anyhow::Result<Collected> {
    let go_on = |subject: &Subject, signals: &mut Signals| signals.serve(subject) == Control::Continue;
    let (observation, ended) = observe(subject, signals, how, events, go_on)?;
    let haste = Haste::of_run(signals, subject, ended.as_ref());
    Ok(observation.finish(ended, haste))
}

/// Why a run was not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The person wants no more.
    Interrupted,
    /// It took too long.
    TimedOut,
}

/// Runs CMD to its end if that comes within `limit`, and if no signal tells holdup to end.
///
/// # Errors
/// As above.
pub fn run_for(
    subject: &mut Subject,
    signals: &mut Signals,
    how: How,
    limit: Duration,
) -> anyhow::Result<Result<Collected, Cut>> {
    let mut limit = Limit::new(limit);
    let (observation, ended) = observe(subject, signals, how, None, |_, signals| limit.go_on(signals))?;
    Ok(match (ended, limit.cut) {
        (None, Some(cut)) => Err(cut),
        (ended, _) => Ok(observation.finish(ended, Haste::of_many(signals))),
    })
}

/// Waits for the end of a command that nobody observes.
///
/// # Errors
/// When it did not start.
pub fn wait_for(
    subject: &mut Subject,
    signals: &mut Signals,
    limit: Duration,
) -> anyhow::Result<Result<Ended, Cut>> {
    let mut limit = Limit::new(limit);
    loop {
        if let Some(ended) = subject.try_wait()? {
            return Ok(Ok(ended));
        }
        if !limit.go_on(signals)
            && let Some(cut) = limit.cut
        {
            return Ok(Err(cut));
        }
        signals.wait(subject, PollTimeout::from(PERIOD_MS));
    }
}

/// How long a run is waited for, from the first time that is asked.
pub(super) struct Limit {
    limit: Duration,
    began: Option<Instant>,
    /// Why it is not waited for any more.
    pub(super) cut: Option<Cut>,
}

impl Limit {
    pub(super) fn new(limit: Duration) -> Limit {
        Limit {
            limit,
            began: None,
            cut: None,
        }
    }

    /// Whether to wait on.
    pub(super) fn go_on(&mut self, signals: &mut Signals) -> bool {
        let began = *self.began.get_or_insert_with(Instant::now);
        self.cut = match signals.interrupted() {
            Control::EndObservation => Some(Cut::Interrupted),
            Control::Continue if began.elapsed() > self.limit => Some(Cut::TimedOut),
            Control::Continue => None,
        };
        self.cut.is_none()
    }
}

/// Lets CMD go and observes it until it ends, or until it is not to be gone on with.
fn observe(
    subject: &mut Subject,
    signals: &mut Signals,
    how: How,
    events: Option<&EventsFile>,
    mut go_on: impl FnMut(&Subject, &mut Signals) -> bool,
) -> anyhow::Result<(Observation, Option<Ended>)> {
    let settings = Settings {
        predict_cpus: how.predict.map(|_| allowed_cpus()),
        ..Settings::default()
    };
    let together = how.predict.map_or(&[][..], |predict| predict.together);
    let attribution = Attributing::begin(settings, together, events)?;
    let mut observation = Observation::begin(how, None, attribution, Some(subject.pid()))?;
    let mut priority = Priority::begin(how.tracing.buffer);
    how.keep.map_or(Ok(()), privileges::keep)?;
    subject
        .wait_until_ready()
        .context("the child that becomes the command does not answer")?;
    observation.tracer.watch(subject.pid(), subject.pidfd())?;
    subject.go();
    observation.begin_spending(None);
    let mut following = Following::default();
    let own = BTreeSet::from([subject.pid()]);
    let mut follows = how.follow;
    let mut look_at = Instant::now() + FIRST_LOOK_OF_RUN;
    let mut logs: Option<OwnLogs> = None;
    let mut ended: Option<Ended> = None;
    while ended.is_none() && go_on(subject, signals) {
        signals.wait(subject, PollTimeout::from(PERIOD_MS));
        ended = subject.try_wait()?;
        observation.cgroup.look(subject.pid());
        priority.adapt(observation.turn());
        observation.naming.look_at_tokio();
        observation.naming.look_at_tasks();
        if ended.is_none() {
            following.queued().look_when_due();
        }
        if follows && ended.is_none() && Instant::now() >= look_at {
            // That is done once, and no part of what the next look will take.
            observation.tracer.prepare_looks().ok();
            let before = own_cpu_time();
            follows = following.follow(&mut observation).is_ok();
            let in_the_way = following.neighbours();
            match &mut logs {
                Some(logs) => logs.note(in_the_way),
                None => logs = OwnLogs::begin(how.logs, &(&own | in_the_way)),
            }
            observation.naming.look_at_goroutines();
            let took = Duration::from_nanos(own_cpu_time().saturating_sub(before));
            look_at = Instant::now() + (took * LOOK_SPARSELY).max(LOOK_AGAIN);
        }
    }
    observation.end_spending();
    observation.lock_files = following.lock_files();
    observation.queued = std::mem::take(following.queued());
    observation.take_logs(logs, &own, following.neighbours());
    if how.follow && !follows {
        // What is known of CMD is worth more than who blocks it.
        observation.not_measured.push(NotMeasured {
            what: "processes outside of CMD that block it, and what they wait for".into(),
            why: "the kernel did not let holdup observe them".into(),
            fix: "attach to them: `holdup attach -p PID`".into(),
        });
    }
    if ended.is_some() {
        await_last_switch(&mut observation);
    }
    Ok((observation, ended))
}

/// A process can be reaped before its main thread has left its CPU for the last time, on a busy machine by many
/// milliseconds; until then its end is not known, and no list of tasks has it any more.
fn await_last_switch(observation: &mut Observation) {
    let began = Instant::now();
    loop {
        observation.turn();
        if observation.leader_ended || began.elapsed() >= LAST_SWITCH {
            return;
        }
        std::thread::sleep(LAST_SWITCH / 100);
    }
}

/// On how many CPUs CMD may run: it inherits where holdup may.
fn allowed_cpus() -> u32 {
    let online = std::thread::available_parallelism().map_or(1, usize::from);
    let allowed = sched_getaffinity(Pid::from_raw(0)).map(|set| {
        let all = 0..CpuSet::count();
        all.filter(|cpu| set.is_set(*cpu).unwrap_or(false)).count()
    });
    let cpus = allowed.unwrap_or(online).max(1);
    u32::try_from(cpus).unwrap_or(u32::MAX)
}
