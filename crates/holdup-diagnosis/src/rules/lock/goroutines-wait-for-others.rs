//! Tasks of a language runtime wait for what only other tasks of their process give, and those stand themselves.
//!
//! The problem: to wait for a value, a signal or the end of a group is also how a task without work waits. The choice: who must go on is
//! known by what it is: it waits for the end of a group, answers a request, or is the first task of a program that serves nobody. From
//! there the rule follows who refers to what is waited for, or was started by who waits, to those that stand. Whoever runs, has no work, or
//! is sent to by a timer ends the search: it may give any time.

use crate::rules::{Extend, Rule, RuleId, Run, say, tasks};
use holdup_evidence::{Cause, TaskRuntime};
use holdup_knowledge::go;
use holdup_model::attributed::{Task, TaskOthers, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Tasks that are followed from one, at most: beyond it, who would go on is not known.
const MAX_FOLLOWED: usize = 256;

/// Number of a program's first goroutine.
const FIRST: u64 = 1;

/// What the tasks wait for, as it follows "wait", where nobody does.
const WHAT: &str = "for what only other tasks give";

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::GoroutinesWaitForOthers, check)
    .about("goroutines wait for others of their process, which wait themselves")
    .causes(&[Cause::LockFutex])
    .from(0.0);

fn check(run: &Run<'_>) -> Verdict {
    let pids: BTreeSet<u32> = run.attributed.tasks.iter().map(|task| task.pid).collect();
    let processes: BTreeMap<u32, Process<'_>> =
        pids.into_iter().map(|pid| (pid, Process::of(run, pid))).collect();
    let why = |task: &Task| processes.get(&task.pid)?.why(task);
    let found = tasks::judge(
        run,
        WHAT,
        |task| why(task).is_some(),
        |run, waiting| {
            let shown = largest(waiting);
            let stuck = why(shown[0]).unwrap_or(Stuck::Nobody);
            finding(run, waiting, &shown, &stuck)
        },
    );
    match found {
        Verdict::Clear(_) => Verdict::Clear(format!(
            "0 of {} stood for others that stand themselves",
            say::several(run.attributed.tasks.len() as u64, "task")
        )),
        other => other,
    }
}

/// Why those that a task waits for do not go on.
#[derive(Debug)]
enum Stuck<'a> {
    /// They wait for something outside, for time, or for a lock.
    Further(Vec<&'a Task>),
    /// They wait for each other and for who waits for them.
    Circle(Vec<&'a Task>),
    /// There is nobody.
    Nobody,
}

/// What is known of one process's tasks.
struct Process<'a> {
    all: Vec<&'a Task>,
    /// Who refers to a channel or group.
    referring: BTreeMap<u64, Vec<&'a Task>>,
    /// Who was started by whom.
    started: BTreeMap<u64, Vec<&'a Task>>,
    /// Whether somebody waits for clients.
    accepts: bool,
    /// Whether somebody waits for signals of the operating system.
    signals: bool,
}

impl<'a> Process<'a> {
    fn of(run: &Run<'a>, pid: u32) -> Process<'a> {
        let all: Vec<&Task> = run
            .attributed
            .tasks
            .iter()
            .filter(|task| task.pid == pid)
            .collect();
        let any = |is: fn(&str) -> bool| {
            let mut symbols = all
                .iter()
                .flat_map(|task| &task.stack)
                .filter_map(|frame| frame.symbol.as_deref());
            symbols.any(is)
        };
        let (mut referring, mut started) = (BTreeMap::new(), BTreeMap::new());
        // The runtime's own give nothing, whatever lies beside what their stacks refer to.
        for task in all
            .iter()
            .filter(|task| task.place.is_some() || task.state != TaskState::Idle)
        {
            for channel in &task.channels.refers {
                referring.entry(*channel).or_insert_with(Vec::new).push(*task);
            }
            if let Some(by) = task.started_by {
                started.entry(by).or_insert_with(Vec::new).push(*task);
            }
        }
        Process {
            referring,
            started,
            accepts: any(go::accepts),
            signals: any(go::awaits_signals),
            all,
        }
    }

    /// Whether a task must go on, so that somebody lacks what it waits for.
    fn must_go_on(&self, task: &Task) -> bool {
        let symbols = || task.stack.iter().filter_map(|frame| frame.symbol.as_deref());
        let alone = !self.accepts && !self.signals;
        match task.others {
            Some(TaskOthers::Group) => true,
            // Who answers a request may wait for events as long as the client likes, and then for the client's end as well.
            Some(TaskOthers::Value) => symbols().any(go::serves) || task.id == FIRST && alone,
            Some(TaskOthers::First) => task.id == FIRST && alone,
            Some(TaskOthers::Condition) => {
                symbols().any(go::serves) || alone || !self.faced_by(task).is_empty()
            }
            None => false,
        }
    }

    /// Those of whom one may end the wait of a task.
    fn givers(&self, task: &Task) -> Vec<&'a Task> {
        let channels = task.channels.awaits.iter();
        let referring = channels
            .filter_map(|channel| self.referring.get(channel))
            .flatten();
        let referring: Vec<&Task> = referring.filter(|one| one.id != task.id).copied().collect();
        // What lies beside what a stack refers to is taken for a part of it: one that only ticks is rarely who gives.
        let steady: Vec<&Task> = referring
            .iter()
            .filter(|one| !one.channels.timed)
            .copied()
            .collect();
        if !steady.is_empty() {
            return steady;
        }
        if task.others != Some(TaskOthers::Group) {
            return referring;
        }
        let started = self.started.get(&task.id).cloned().unwrap_or_default();
        // One that ticks beside others is rarely a member; where all of them tick, they may be, unless another function began them.
        let members: Vec<&Task> = started
            .iter()
            .filter(|one| !one.channels.timed)
            .copied()
            .collect();
        match members.is_empty() {
            true => started
                .into_iter()
                .filter(|one| !is_of_another(one, task))
                .collect(),
            false => members,
        }
    }

    /// Why a task that must go on does not; `None` of one that need not, and if somebody may end its wait.
    fn why(&self, task: &Task) -> Option<Stuck<'a>> {
        let stands = task.runtime == TaskRuntime::Go && task.place.is_some() && self.must_go_on(task);
        if stands { self.stuck(task) } else { None }
    }

    /// Why nobody ends the wait of a task; `None` if somebody may.
    fn stuck<'b>(&self, task: &'b Task) -> Option<Stuck<'a>>
    where
        'a: 'b,
    {
        if task.others == Some(TaskOthers::Condition) {
            return Some(self.beside(task));
        }
        if task.channels.timed {
            return None;
        }
        let (mut further, mut circle) = (Vec::new(), Vec::new());
        let mut met = BTreeSet::from([task.id]);
        let mut next: VecDeque<&'b Task> = VecDeque::from([task]);
        while let Some(one) = next.pop_front() {
            if met.len() > MAX_FOLLOWED {
                return None;
            }
            for giver in self.givers(one) {
                if !met.insert(giver.id) {
                    continue;
                }
                match does(giver)? {
                    Does::Further => further.push(giver),
                    Does::ForOthers => {
                        circle.push(giver);
                        next.push_back(giver);
                    }
                }
            }
        }
        match (further.is_empty(), circle.is_empty()) {
            (false, _) => Some(Stuck::Further(further)),
            (true, false) => Some(Stuck::Circle(circle)),
            // Who has a channel in a variable of a package refers to nothing.
            (true, true) => {
                let noted = !self.started.is_empty() && task.others == Some(TaskOthers::Group);
                noted.then_some(Stuck::Nobody)
            }
        }
    }

    /// Of a condition nothing notes who signals it: whoever else of the application's stands for something.
    fn beside(&self, task: &Task) -> Stuck<'a> {
        let same = |one: &Task| one.others == task.others;
        let others = self.all.iter().filter(|one| one.place.is_some() && !same(one));
        let further: Vec<&Task> = others
            .filter(|one| matches!(does(one), Some(Does::Further)))
            .copied()
            .collect();
        let faced_by = self.faced_by(task);
        match (further.is_empty(), faced_by.is_empty()) {
            (false, _) => Stuck::Further(further),
            (true, false) => Stuck::Circle(faced_by),
            (true, true) => Stuck::Nobody,
        }
    }

    /// Those that wait in another method of the same type for a condition: who puts and who takes cannot both have to wait, unless a signal has
    /// woken one of the wrong kind. Nobody, where some of the application's goroutines may go on or wait for something else: one of those may be
    /// who gives to both. Nor in a program that takes in clients: those who work for them and those who clear up after them have nothing to do
    /// until one comes.
    fn faced_by(&self, task: &Task) -> Vec<&'a Task> {
        let method = |one: &Task| one.place.as_ref().and_then(|place| place.symbol.clone());
        let Some(own) = method(task) else {
            return Vec::new();
        };
        let Some(receiver) = go::receiver(&own) else {
            return Vec::new();
        };
        let of_application = || self.all.iter().filter(|one| one.place.is_some());
        // One that ticks is rarely who gives.
        let goes_on = |one: &&&Task| match one.state {
            TaskState::Running | TaskState::Ready => true,
            TaskState::Idle => false,
            TaskState::Waiting => matches!(does(one), Some(Does::Further)),
        };
        if self.accepts || of_application().any(|one| goes_on(&one)) {
            return Vec::new();
        }
        let faces = |one: &&&Task| {
            let other = method(one).filter(|other| *other != own);
            one.others == task.others && other.is_some_and(|other| go::receiver(&other) == Some(receiver))
        };
        of_application().filter(faces).copied().collect()
    }
}

/// Whether a goroutine is a function within another one than that in which the waiter stands.
fn is_of_another(one: &Task, waiter: &Task) -> bool {
    let place = waiter.place.as_ref().and_then(|place| place.symbol.as_deref());
    let begins = one
        .stack
        .iter()
        .rev()
        .filter(|frame| go::is_application(frame) && !go::is_wrapper(frame))
        .find_map(|frame| frame.symbol.as_deref());
    let within = begins.and_then(go::enclosing);
    within.is_some() && within != place
}

/// What a task does that stands.
enum Does {
    /// It waits for what others of its process give.
    ForOthers,
    /// It waits for something else.
    Further,
}

/// `None` of one that may go on any time.
fn does(task: &Task) -> Option<Does> {
    let for_others = task.others.is_some() || task.sends;
    match task.state {
        TaskState::Running | TaskState::Ready | TaskState::Idle => None,
        TaskState::Waiting if task.channels.timed => None,
        TaskState::Waiting if for_others => Some(Does::ForOthers),
        TaskState::Waiting => Some(Does::Further),
    }
}

/// Those that wait for the same in the same place: of all, who waits for a group first.
fn largest<'a>(waiting: &[&'a Task]) -> Vec<&'a Task> {
    let mut places: BTreeMap<(Option<TaskOthers>, String), Vec<&Task>> = BTreeMap::new();
    for task in waiting {
        places
            .entry((task.others, tasks::place(task)))
            .or_default()
            .push(task);
    }
    places.into_values().next().unwrap_or_default()
}

fn finding(run: &Run<'_>, waiting: &[&Task], shown: &[&Task], why: &Stuck<'_>) -> Finding {
    let first = shown[0];
    let group = first.others == Some(TaskOthers::Group);
    let (outcome, known) = match why {
        Stuck::Further(further) => (further_along(further, first.others), Severity::Note),
        Stuck::Circle(circle) => (
            format!(
                "; {}, so that none can go on",
                match circle.len() {
                    1 => format!(
                        "1 {} that could end that waits itself in {}",
                        tasks::name(first),
                        stands(circle)
                    ),
                    count => format!(
                        "{count} {}s that could end that wait themselves in {}",
                        tasks::name(first),
                        stands(circle)
                    ),
                }
            ),
            Severity::Warning,
        ),
        Stuck::Nobody if group => (
            format!("; no {} that it started is left to end it", tasks::name(first)),
            Severity::Warning,
        ),
        Stuck::Nobody => (": nobody signalled".to_owned(), Severity::Note),
    };
    let share = tasks::runs(run, first.pid);
    let severity = match share > tasks::RUNS_SHARE {
        true => Severity::Note,
        false => known,
    };
    let confidence = match (severity, why) {
        (Severity::Warning, Stuck::Circle(_)) if first.others != Some(TaskOthers::Condition) => {
            Confidence::Strong
        }
        _ => Confidence::Suspect,
    };
    let what = format!("for {}", first.resource.name);
    let basis = match why {
        Stuck::Circle(_) if first.others == Some(TaskOthers::Condition) => {
            "they stand in methods of one type: who puts and who takes do not both have to wait, unless a signal has woken one that could not go on"
        }
        _ if first.others == Some(TaskOthers::Condition) => {
            "who signals a condition is noted nowhere: those named stand for something else"
        }
        Stuck::Nobody => "no task was started by it, and no stack refers to the group",
        Stuck::Further(_) | Stuck::Circle(_) => {
            "those named refer to what it waits for, or were started by it, or others of them lead there"
        }
    };
    tasks::finding(run, RULE.id, severity, shown, [&what, &outcome])
        .confidence(confidence)
        .and(Evidence::new(basis, "channels, and the stacks of all tasks"))
        .and_if(also(waiting, shown))
        .and(Evidence::new(
            format!("its threads ran for {:.1} % of the time", share * 100.0),
            say::SCHEDULER,
        ))
        .remedy(remedy(why, first.others))
}

/// Where those stand who must go on first, and for what.
fn further_along(further: &[&Task], others: Option<TaskOthers>) -> String {
    let role = match others {
        Some(TaskOthers::Condition) => "may be the one that signals it",
        Some(TaskOthers::Group) => "has to end first",
        _ => "may be the one that sends it",
    };
    let places = tasks::say_places(&tasks::places(further, tasks::stands_called));
    match further.len() {
        1 => format!("; 1 {} {role}, in {places}", tasks::name(further[0])),
        count => format!(
            "; one of {count} {}s {role}, in {places}",
            tasks::name(further[0])
        ),
    }
}

fn stands(all: &[&Task]) -> String {
    tasks::say_places(&tasks::places(all, |task| {
        format!("{}{}", tasks::place(task), tasks::waits_for(task))
    }))
}

/// Who else stands so.
fn also(waiting: &[&Task], shown: &[&Task]) -> Option<Evidence> {
    let others: Vec<&Task> = waiting
        .iter()
        .filter(|task| shown.iter().all(|one| one.id != task.id))
        .copied()
        .collect();
    (!others.is_empty())
        .then(|| Evidence::new(format!("so do {}", stands(&others)), "the stacks of all tasks"))
}

fn remedy(why: &Stuck<'_>, others: Option<TaskOthers>) -> Remedy {
    Remedy::safe(match (why, others) {
        (Stuck::Further(_), _) => {
            "look at what the named task waits for, and give that a time limit (a context)"
        }
        (_, Some(TaskOthers::Group)) => {
            "call Done in a `defer` at the beginning of each task, so that an early return or an error does not skip it"
        }
        (_, Some(TaskOthers::Condition)) => {
            "use Broadcast where waiters wait for different things: Signal wakes one, which may be the wrong one"
        }
        (_, _) => {
            "close the channel when the last value has been sent, and let who waits also wait for the end of a context (`select`)"
        }
    })
}
