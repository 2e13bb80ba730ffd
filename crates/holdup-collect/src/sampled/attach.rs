//! The same for what runs already: the processes that were asked about, and what they make from now on.
//!
//! The first look says what each thread is in now; who has not run since, a moment later, is stuck in it, and whoever asked is told so within
//! a second. Then looks go on as for a command. In: a selection. Out: as from tracing, without the time before the first look.

use super::super::attach::{EndedBefore, Notice};
use super::super::full_outputs;
use super::super::moment::Moment;
use super::super::moved;
use super::super::owed;
use super::super::own_logs::OwnLogs;
use super::super::programs;
use super::super::pushed;
use super::super::queues::Queues;
use super::super::sessions::Sessions;
use super::super::set_aside::Loops;
use super::super::unread_answers::Unsent;
use super::super::workers::{self, Standing};
use super::super::{Collected, Figures, clients, elsewhere, full_file_systems, resolvers, serving};
use super::conversations::Conversations;
use super::{Sampling, room, timeout};
use crate::attributing::{Attributing, EventsFile};
use crate::budget::Ceiling;
use crate::haste::Haste;
use crate::line::{Line, watching};
use crate::pulse::{Beats, Pulse};
use crate::selection::{Known, Selection};
use holdup_events::Settings;
use holdup_evidence::{Event, Finish, NotMeasured, Ns, SystemFacts, Wait};
use holdup_model::attributed::Source;
use holdup_model::report::Backend;
use holdup_proc::{Root, clocks, facts, filters, tasks};
use holdup_subject::signals::{Control, Signals};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long it may take until each thread was seen in something, at the begin and at the end.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// When the first word is due: with the start before it, within a second.
const FIRST_WORD: Duration = Duration::from_millis(700);

/// Who sleeps in the same for so long after that start is what a person attaches for, nanoseconds.
const STUCK: Ns = 600_000_000;

/// Between two times of looking who has come into what was asked about.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Between two times of looking who is in the way, and is to be followed, too: a chain is as long as there are such times.
const LOOK_FOR_NEIGHBOURS: Duration = Duration::from_millis(100);

/// Those in the way that are followed: chains are shorter, and a server with more clients than this is not waiting for them.
const MAX_NEIGHBOURS: usize = 64;

/// Looks at the end: the first may learn only which code a process has.
const LAST_LOOKS: usize = 2;

/// The longest sleep, so that the end of the time, or of what is watched, is not slept through.
const MAX_NAP: Duration = Duration::from_millis(100);

/// How to sample what runs already.
#[derive(Debug, Clone, Copy)]
pub struct SampledHow<'a> {
    /// Why it is not traced, where that was not asked for.
    pub why: Option<&'a str>,
    /// Whether those who are in the way of what is observed are watched too.
    pub follow: bool,
    /// Whether logs that observed processes have open are read.
    pub logs: bool,
    /// How much CPU time it may take, if somebody has said so.
    pub budget: Option<Ceiling>,
    /// How often what is known so far is wanted, if it is.
    pub pulse: Option<Pulse>,
}

/// Observes until the time is over, the subject has ended, or the person wants no more.
///
/// # Errors
/// When what was named is not there.
pub fn attach(
    selection: &Selection,
    duration: Option<Duration>,
    signals: &mut Signals,
    how: SampledHow<'_>,
    events: Option<&EventsFile>,
    progress: &mut dyn Line,
    notice: &mut dyn FnMut(Notice<'_>),
) -> anyhow::Result<Collected> {
    let pids = selection.resolve()?;
    room::make();
    filters::beware(&Root::system());
    let mut moment = Moment::now();
    let asked: BTreeSet<u32> = pids.iter().copied().collect();
    let queues = Queues::look(&asked, &mut moment);
    let standing = Standing::look(&asked, &mut moment);
    let loops = Loops::look(&asked, &mut moment);
    let unsent = Unsent::look(&asked, &mut moment);
    let outputs = full_outputs::Unsent::look(&asked, &mut moment);
    let (carried, moved) = (pushed::Before::look(), moved::Before::look(&asked, &moment.root));
    let resolver = resolvers::look(&pids);
    let settings = Settings {
        of_threads: true,
        source: Source::Sampled,
        ..Settings::default()
    };
    let mut sampling = Sampling::of_nobody(std::process::id(), Attributing::begin(settings, &[], events)?);
    sampling.keep_to(how.budget);
    let mut serving = serving::look(&pids, &mut moment);
    serving.loops = loops.stirred_by_clients();
    let mut conversations = Conversations::of(&serving);
    sampling.attribution.push(&Event::Serving(serving));
    // Before waits are met: who began to wait as a client had asked has that request.
    let asked = conversations.begin(&pids.iter().copied().collect(), &mut moment);
    sampling.push(asked);
    sampling.sampler.keep_within(room::left());
    sampling.sampler.adopt(&pids, sampling.started);
    if sampling.sampler.living() == 0 {
        return Err(EndedBefore.into());
    }
    sampling.watch_running();
    sampling.not_measured = before_and_beside(sampling.sampler.since_unknown());
    let mut figures = Figures::begin(&Root::system());
    let began = Instant::now();
    sampling.round();
    while !sampling.sampler.has_seen_all() && began.elapsed() < FIRST_LOOK {
        sampling.round();
    }
    let machines = sampling.machines.machines();
    sampling.stacks.look_at_goroutines(&machines);
    notice(Notice::Began);
    let mut subjects: BTreeSet<u32> = pids.iter().copied().collect();
    let logs = OwnLogs::begin(how.logs, &subjects);
    let mut known = Known::default();
    let mut looked = Instant::now();
    let mut looked_at_neighbours = Instant::now();
    let mut due = Instant::now();
    let mut beats = Beats::begin(how.pulse);
    let mut said = beats.are_wanted();
    let over = |began: Instant| duration.is_some_and(|duration| began.elapsed() >= duration);
    while !over(began) && sampling.sampler.living() > 0 && signals.interrupted() == Control::Continue {
        let now = Instant::now();
        let rest = duration.map_or(MAX_NAP, |duration| duration.saturating_sub(began.elapsed()));
        signals.sleep(timeout(due.saturating_duration_since(now).min(MAX_NAP).min(rest)));
        figures.turn();
        if Instant::now() >= due {
            let said = conversations.look(&subjects);
            sampling.push(said.since);
            sampling.look_again(&pids);
            sampling.push(said.over);
            due = Instant::now() + sampling.nap();
        }
        progress.tell(&|| watching(began.elapsed(), duration, sampling.sampler.living()));
        if !said && began.elapsed() >= FIRST_WORD {
            said = true;
            let waits = sampling.sampler.under_way(clocks::monotonic());
            if waits
                .iter()
                .any(|wait| wait.end.saturating_sub(wait.start) >= STUCK)
            {
                progress.clear();
                notice(Notice::FirstWord(&sampling.so_far(&waits)));
            }
        }
        beats.tell(|| {
            let waits = sampling.sampler.under_way(clocks::monotonic());
            let mut so_far = sampling.so_far(&waits);
            so_far.attributed.host_figures = figures.so_far();
            notice(Notice::SoFar(&so_far));
        });
        if how.follow && looked_at_neighbours.elapsed() >= LOOK_FOR_NEIGHBOURS {
            sampling.follow_neighbours();
            looked_at_neighbours = Instant::now();
        }
        if looked.elapsed() >= LOOK_AGAIN {
            let new = selection.more(&mut known).into_iter();
            let new: Vec<u32> = new.filter(|pid| subjects.insert(*pid)).collect();
            sampling.sampler.adopt(&new, clocks::monotonic());
            sampling.stacks.look_at_tokio();
            looked = Instant::now();
        }
    }
    progress.tell(&|| "watched; putting it together".to_owned());
    sampling.look_at_the_last();
    let figures = figures.finish();
    let logs = logs.map(|logs| logs.finish(&subjects, &sampling.neighbours));
    let mut moment = Moment::now();
    let workers = workers::look(&subjects, &standing, &mut moment);
    let unaccepted = Queues::look(&subjects, &mut moment).since(&queues, &moment.root);
    let set_aside = Loops::look(&subjects, &mut moment).since(&loops, &mut moment);
    let unread_answers = Unsent::look(&subjects, &mut moment).since(&unsent, &mut moment);
    let full_outputs = full_outputs::Unsent::look(&subjects, &mut moment).zip(outputs.as_ref());
    let full_outputs = full_outputs.map(|(now, before)| now.since(before, &mut moment));
    let owed_answers = owed::look(&subjects, &mut moment);
    let hear = &subjects | &sampling.neighbours;
    let pushed = carried.since(&hear, &mut moment);
    let moved = moved.since(&moment.root);
    let other_clients = clients::look(&subjects, &mut moment);
    let mut sessions = Sessions::default();
    match set_aside.is_empty() {
        true => sessions.look(subjects.iter()),
        // Whoever is behind such a loop is none of these.
        false => sessions.look(tasks::processes(&Root::system()).iter()),
    }
    let mut collected = sampling.finish(None, how.why, Haste::of(signals, None));
    collected.attributed.host_figures = figures;
    if let Some((logs, unread)) = logs {
        collected.facts.own_logs = Some(logs);
        let unread = unread.map(|one| (one.what, one.why, one.fix));
        collected.attributed.coverage.not_measured.extend(unread);
    }
    collected.facts.workers = workers;
    collected.facts.unaccepted = Some(unaccepted);
    collected.facts.other_clients = other_clients;
    collected.facts.full_file_systems = full_file_systems::look();
    resolver.tell(&mut collected.facts.resolver);
    collected.facts.set_aside = Some(set_aside);
    collected.facts.unread_answers = Some(unread_answers);
    collected.facts.full_outputs = full_outputs;
    collected.facts.owed_answers = Some(owed_answers);
    collected.facts.pushed = Some(pushed);
    collected.facts.moved = moved;
    collected.facts.database_sessions = sessions.finish();
    collected.facts.programs = programs::look(subjects.iter());
    collected.facts.stopped_children = programs::stopped(subjects.iter());
    elsewhere::note(&mut collected.elsewhere, &pids);
    Ok(collected)
}

/// What looking from now on does not show.
fn before_and_beside(since_unknown: u64) -> Vec<NotMeasured> {
    let line = |what: &str, why: &str, fix: &str| NotMeasured {
        what: what.to_owned(),
        why: why.to_owned(),
        fix: fix.to_owned(),
    };
    let unknown = (since_unknown > 0).then(|| {
        line(
            &format!("for how long the waits of {since_unknown} threads that were under way had lasted before"),
            "/proc/PID/sched, which has when a thread last ran, is missing, or a CPU may not be run on to read its clock",
            "trace, as above",
        )
    });
    let requests = line(
        "requests (number and duration), and the effect of other processes on the selected ones",
        "only tracing shows which thread reads, answers and wakes; samples show the clients that wait now, \
         and blockers",
        "trace, as above; or name them too, by a further -p",
    );
    unknown.into_iter().chain([requests]).collect()
}

impl Sampling {
    fn look_again(&mut self, pids: &[u32]) {
        if let Some(pid) = pids.first() {
            self.cgroup.look(*pid);
        }
        self.round();
    }

    /// Follows those that were found in the way since, if this user may.
    fn follow_neighbours(&mut self) {
        let found = self.beyond.take_in_the_way().into_iter();
        let found = found.chain(self.sampler.awaited_children());
        let own = std::process::id();
        let room = MAX_NEIGHBOURS.saturating_sub(self.neighbours.len());
        let new: BTreeSet<u32> = found
            .filter(|pid| *pid != own && !holdup_detached::is_ours(*pid) && !self.neighbours.contains(pid))
            .take(room)
            .collect();
        let new: Vec<u32> = new.into_iter().collect();
        self.neighbours.extend(&new);
        self.sampler.adopt_neighbours(&new, clocks::monotonic());
    }

    /// The last looks: of those that sleep to the end a stack each, as far as there is time for it.
    fn look_at_the_last(&mut self) {
        self.stacks.take_all();
        let began = Instant::now();
        let mut looks = 0;
        while looks < LAST_LOOKS || !self.sampler.has_seen_all() && began.elapsed() < FIRST_LOOK {
            self.round();
            looks += 1;
        }
    }

    /// How long to sleep now.
    fn nap(&mut self) -> Duration {
        self.rate.sleep(clocks::monotonic(), super::own_cpu_time())
    }

    /// What it would come to if observation ended now, with these waits under way; without stacks.
    fn so_far(&self, waits: &[Wait]) -> Collected {
        let mut problems = Vec::new();
        let facts: SystemFacts = facts::collect(&Root::system(), &facts::Question::default(), &mut problems);
        let finish = Finish {
            started: self.started,
            ended: clocks::monotonic(),
            ..Finish::default()
        };
        Collected {
            backend: Backend::Proc,
            attributed: self.attribution.so_far(waits, &finish, &facts),
            started: self.started,
            facts,
            ended: None,
            problems,
            elsewhere: Vec::new(),
            build_ids: BTreeMap::new(),
            events: None,
        }
    }
}
