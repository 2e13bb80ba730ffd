//! Tasks of a language runtime wait for a lock of the program, at a first look and at a last. No thread waits for it.

use crate::rules::{Rule, RuleId, Run, say, tasks};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame, Ns, TaskRuntime};
use holdup_knowledge::{go, java};
use holdup_model::attributed::{AttributedWait, JavaLock, Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::TasksWaitForLock, check)
    .about("tasks of a runtime wait for a lock, at a first look and at a last")
    .causes(&[Cause::LockFutex, Cause::LockMonitor])
    .explains(&[RuleId::TasksQueueForLock])
    .from(0.0);

/// What the tasks wait for, as it follows "wait".
const WHAT: &str = "for a lock";

fn check(run: &Run<'_>) -> Verdict {
    let dials = |pid: u32| {
        let mut own = run.attributed.tasks.iter().filter(|task| task.pid == pid);
        own.any(|task| go::dials_for_http(&task.stack))
    };
    // Who waits for a connection of HTTP that is being made waits for the server.
    let is_made = |task: &Task| go::waits_for_http(&task.stack) && dials(task.pid);
    tasks::judge(
        run,
        WHAT,
        |task| task.lock || task.pool && !is_made(task),
        finding,
    )
}

/// What Python puts between a function and what is defined within it.
const WITHIN_FUNCTION: &str = "<locals>";

/// Who has the lock that most of them want.
enum Has<'a> {
    Task(&'a Task),
    /// The thread, by what it waited for longest.
    Thread(&'a AttributedWait),
}

impl Has<'_> {
    /// `virtual thread till in Till.count (Till.java:7)`.
    fn who(&self) -> String {
        match self {
            Has::Task(task) => {
                let kind = match task.runtime {
                    TaskRuntime::Java => "virtual thread ",
                    TaskRuntime::Go | TaskRuntime::Asyncio | TaskRuntime::Node | TaskRuntime::Tokio => "",
                };
                let name = say::name_or(task.name.as_deref().unwrap_or_default(), "a task");
                format!("{kind}{name} in {}", tasks::place(task))
            }
            Has::Thread(wait) => {
                let place = chosen_frame(&wait.asker.stack)
                    .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
                format!("{}{place}", say::who(&wait.asker.name))
            }
        }
    }

    /// What it waits for.
    fn does(&self) -> String {
        let (cause, name) = match self {
            Has::Task(task) => (task.cause, &task.resource.name),
            Has::Thread(wait) => (wait.cause, &wait.resource.name),
        };
        match name.as_str() {
            "" => cause.phrase().to_owned(),
            name => format!("waiting for {name}"),
        }
    }
}

fn holder<'a>(run: &Run<'a>, tasks: &[&Task]) -> Option<Has<'a>> {
    let pid = tasks.first()?.pid;
    let mut held: BTreeMap<(Option<u64>, Option<u32>), usize> = BTreeMap::new();
    for task in tasks {
        *held.entry((task.held_by, task.held_by_thread)).or_default() += 1;
    }
    held.remove(&(None, None));
    let most = held.into_iter().max_by_key(|(_, count)| *count);
    match most?.0 {
        (Some(id), _) => {
            let mut all = run.attributed.tasks.iter();
            all.find(|one| (one.pid, one.id) == (pid, id)).map(Has::Task)
        }
        (None, tid) => {
            let own = |wait: &AttributedWait| (wait.asker.name.pid, Some(wait.asker.name.tid)) == (pid, tid);
            let waits = run.attributed.waits.iter().filter(|wait| own(wait));
            waits.max_by_key(|wait| wait.ns).map(Has::Thread)
        }
    }
}

/// By what tasks are known, or taken, to have what others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// The runtime's or the library's own structures.
    Structures,
    /// Their code takes it, and their frames refer to it.
    Code,
    /// They are in the function in which the others wait, and further in.
    SameFunction,
    /// Their code uses the lock.
    Uses,
    /// They are in a method of the same type.
    SameType,
}

/// Tasks that have what others wait for, or may have it.
struct Candidates<'a> {
    basis: Basis,
    all: Vec<(&'a Task, &'a Frame)>,
}

impl Candidates<'_> {
    /// Whether they are several of which nothing says that one has it, and it is known that nobody is past the place where the others wait.
    fn is_no_help(&self, waiting: &[&Task]) -> bool {
        self.basis == Basis::SameType && self.all.len() > 1 && none_past(waiting).is_some()
    }

    /// For the end of a title; empty where they are too uncertain.
    fn outcome(&self, waiting: &[&Task]) -> String {
        let own: Vec<&Task> = self.all.iter().map(|(task, _)| *task).collect();
        let count = own.len() as u64;
        let name = tasks::name(own[0]);
        // An asynchronous function that has a lock awaits another one.
        let shown = match own[0].runtime {
            TaskRuntime::Tokio => tasks::stands_called,
            TaskRuntime::Go | TaskRuntime::Asyncio | TaskRuntime::Java | TaskRuntime::Node => stands,
        };
        let places = tasks::say_places(&tasks::places(&own, shown));
        let waits = |task: &&Task| waiting.iter().any(|one| one.id == task.id);
        match self.basis {
            Basis::Structures if own.iter().all(waits) => {
                let called = own.iter().find_map(|task| tasks::caller(task));
                let called =
                    called.map_or_else(String::new, |frame| format!(", called by {}", say::place(frame)));
                match waiting.len() {
                    1 => format!("; it has one itself{called}"),
                    _ => format!("; {count} of them have one themselves{called}"),
                }
            }
            // A word that is left of an earlier call lies where a goroutine sleeps, too: that it works with one is then not known.
            Basis::Structures
                if waiting[0].runtime == TaskRuntime::Go && own.iter().all(|task| sleeps(task)) =>
            {
                format!(
                    "; results or transactions that are not closed keep them: {} {} to one, in {places}",
                    say::several(count, name),
                    if count == 1 { "refers" } else { "refer" }
                )
            }
            Basis::Structures => {
                let what = if waiting[0].pool { "one" } else { "it" };
                format!(
                    "; {} {} {what}, in {places}",
                    say::several(count, name),
                    has(count)
                )
            }
            Basis::Code => self.by_code(waiting),
            Basis::SameFunction => format!(
                "; {} further in {} to have it, in {places}",
                say::several(count, name),
                if count == 1 { "seems" } else { "seem" }
            ),
            Basis::Uses => format!(
                "; {} {} it, and may have it: in {places}",
                say::several(count, &format!("other {name}")),
                if count == 1 { "uses" } else { "use" }
            ),
            // Another object of the type has another lock: of several it is not known whether any of them has this one.
            Basis::SameType if count == 1 => {
                format!("; 1 {name} in a method of the same type may have it: {places}")
            }
            Basis::SameType => String::new(),
        }
    }

    fn evidence(&self) -> Evidence {
        let mut named: Vec<String> = self.all.iter().map(doing).collect();
        named.dedup();
        named.truncate(tasks::MAX_PLACES);
        let named = named.join("; ");
        let candidates = match self.all.len() {
            1 => "one task is a candidate".to_owned(),
            count => format!("{count} tasks are candidates"),
        };
        match self.basis {
            Basis::Structures => Evidence::new(
                format!("who has it: {named}"),
                "the program's own structures, read from its memory",
            ),
            Basis::Code => Evidence::new(
                format!(
                    "the runtime does not note who has the lock; by the code of the functions in which they stand, and what their frames refer to, it was taken by {named}"
                ),
                "the program's code and stacks, read from its memory",
            ),
            Basis::SameFunction => Evidence::new(
                format!(
                    "the runtime does not note who has it; {candidates}, further in the same function: {named}"
                ),
                "the functions in which tasks stand",
            ),
            Basis::Uses => Evidence::new(
                format!(
                    "the library does not note who has it; {candidates}, by the names that their code uses: {named}"
                ),
                "the program's own structures, read from its memory",
            ),
            Basis::SameType => Evidence::new(
                format!(
                    "the runtime does not note who has the lock; {candidates}, in a method of the same object's type: {named}"
                ),
                "the methods in which tasks stand",
            ),
        }
    }
}

impl Candidates<'_> {
    /// For the end of a title: who has taken it by its code. Who does not wait for one of these locks is further along.
    fn by_code(&self, waiting: &[&Task]) -> String {
        let all: Vec<&Task> = self.all.iter().map(|(task, _)| *task).collect();
        let waits = |task: &Task| waiting.iter().any(|one| one.id == task.id);
        let name = tasks::name(all[0]);
        let again = all.iter().find(|task| waits(task) && has_what_it_wants(task));
        if let Some(task) = again {
            let already =
                tasks::caller(task).map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
            let writer = waiting.iter().find(|one| go::writes(&one.stack));
            return match writer.filter(|_| go::reads(&task.stack)) {
                Some(writer) => format!(
                    "; the {name} in {} seems to read it already{already}, and wants to do so again behind the writer in {}: neither can go on",
                    tasks::place(task),
                    tasks::place(writer)
                ),
                None => format!(
                    "; the {name} in {} seems to have it already{already}: it waits for itself",
                    tasks::place(task)
                ),
            };
        }
        if let [first, second, ..] = in_circle(&all).as_slice() {
            let taken = |task: &Task| tasks::caller(task).map_or_else(|| tasks::place(task), say::place);
            return format!(
                "; a deadlock: {} and {} seem to have the locks that the other one wants",
                taken(first),
                taken(second)
            );
        }
        let further: Vec<&Task> = all.iter().filter(|task| !waits(task)).copied().collect();
        let shown = if further.is_empty() { &all } else { &further };
        let count = shown.len() as u64;
        format!(
            "; {} {} to have it, in {}",
            say::several(count, name),
            if count == 1 { "seems" } else { "seem" },
            tasks::say_places(&tasks::places(shown, tasks::stands_called))
        )
    }
}

/// Whether a task waits for what it seems to have.
fn has_what_it_wants(task: &Task) -> bool {
    let has = |one: &u64| task.channels.refers.contains(one);
    task.channels.awaits.iter().any(has)
}

/// Two of the tasks of which each has what the other one waits for.
fn in_circle<'a>(all: &[&'a Task]) -> Vec<&'a Task> {
    let wants = |from: &Task, to: &Task| {
        let mut awaits = from.channels.awaits.iter();
        awaits.any(|one| to.channels.refers.contains(one))
    };
    for (at, first) in all.iter().enumerate() {
        let second = all[at + 1..]
            .iter()
            .find(|second| wants(first, second) && wants(second, first));
        if let Some(second) = second {
            return vec![first, second];
        }
    }
    Vec::new()
}

/// Whether a goroutine only sleeps, and not below Go's library for databases.
fn sleeps(task: &Task) -> bool {
    let mut symbols = task.stack.iter().filter_map(|frame| frame.symbol.as_deref());
    task.cause == Cause::TimerSleep && !symbols.any(go::of_database)
}

fn has(count: u64) -> &'static str {
    if count == 1 { "has" } else { "have" }
}

/// Those that have it by the program's structures: what others wait for is among what they refer to.
fn by_structures<'a>(all: &'a [Task], waiting: &[&Task]) -> Vec<(&'a Task, &'a Frame)> {
    let wanted: BTreeSet<u64> = waiting
        .iter()
        .flat_map(|task| task.channels.awaits.iter().copied())
        .collect();
    let pid = waiting.first().map(|task| task.pid);
    let has =
        |task: &&Task| Some(task.pid) == pid && task.channels.refers.iter().any(|one| wanted.contains(one));
    all.iter()
        .filter(has)
        .filter_map(|task| Some((task, task.place.as_ref()?)))
        .collect()
}

fn candidates<'a>(run: &Run<'a>, waiting: &[&Task]) -> Option<Candidates<'a>> {
    let all = &run.attributed.tasks;
    // A lock of Go's has no note of who took it; a pool's connections have.
    let by_reference = match waiting
        .iter()
        .all(|task| task.lock && task.runtime == TaskRuntime::Go)
    {
        true => Basis::Code,
        false => Basis::Structures,
    };
    [
        (by_reference, by_structures(all, waiting)),
        (Basis::SameFunction, tasks::further_in(all, waiting)),
        (Basis::Uses, uses(all, waiting)),
        (Basis::SameType, of_same_type(all, waiting)),
    ]
    .into_iter()
    .find(|(_, all)| !all.is_empty())
    .map(|(basis, all)| Candidates { basis, all })
}

/// Those whose code uses the lock, and who are at work: who has no work has let it go.
fn uses<'a>(all: &'a [Task], waiting: &[&Task]) -> Vec<(&'a Task, &'a Frame)> {
    let mut found = tasks::users(all, waiting);
    found.retain(|task| task.state != TaskState::Idle);
    found
        .into_iter()
        .filter_map(|task| Some((task, task.place.as_ref()?)))
        .collect()
}

/// Where a candidate stands, and what it waits for.
fn stands(task: &Task) -> String {
    format!("{}{}", tasks::place(task), tasks::waits_for(task))
}

/// What a candidate does: `main.askExchange (main.go:21) in main.(*Cache).refresh, waiting for a descriptor`.
fn doing((task, method): &(&Task, &Frame)) -> String {
    let own = task
        .place
        .as_ref()
        .is_some_and(|place| place.symbol == method.symbol);
    let method = match own {
        true => String::new(),
        false => format!(", called by {}", say::place(method)),
    };
    let what = match task.resource.name.as_str() {
        "" => task.cause.phrase().to_owned(),
        what => format!("waiting for {what}"),
    };
    format!("{}{method}, {what}", tasks::place(task))
}

/// Tasks that may have the lock for which others wait in methods of one type: those that wait for something else in a method of that type.
/// Other objects of the type have locks of their own, so these are candidates and no more.
fn of_same_type<'a>(all: &'a [Task], waiting: &[&Task]) -> Vec<(&'a Task, &'a Frame)> {
    let types: BTreeSet<&str> = waiting
        .iter()
        .filter_map(|task| type_of(task, task.place.as_ref()?.symbol.as_deref()?))
        .collect();
    let (Some(wanted), 1, Some(pid)) = (types.first(), types.len(), waiting.first().map(|task| task.pid))
    else {
        return Vec::new();
    };
    let elsewhere = all
        .iter()
        .filter(|task| task.pid == pid && !task.lock && !task.pool && task.state != TaskState::Idle);
    elsewhere
        .filter_map(|task| {
            let of_type = |frame: &&Frame| {
                let symbol = frame.symbol.as_deref();
                symbol.and_then(|symbol| type_of(task, symbol)) == Some(*wanted)
            };
            Some((task, task.stack.iter().find(of_type)?))
        })
        .collect()
}

/// The type of which a function is a method.
fn type_of<'a>(task: &Task, symbol: &'a str) -> Option<&'a str> {
    match task.runtime {
        TaskRuntime::Go => go::receiver(symbol),
        TaskRuntime::Java => Some(java::class(symbol)),
        // V8 notes a method without its class.
        TaskRuntime::Node | TaskRuntime::Tokio => None,
        // From Python 3.11 on a method has its class; what is within a function is none.
        TaskRuntime::Asyncio => symbol
            .rsplit_once('.')
            .map(|(class, _)| class)
            .filter(|class| !class.ends_with(WITHIN_FUNCTION)),
    }
}

/// What goroutines or asyncio's tasks wait for in their language's own word, if all wait for the same kind of lock.
fn own_word(waiting: &[&Task]) -> Option<String> {
    // Without whether it is to read or to write.
    fn kind(task: &Task) -> &str {
        task.resource.name.split(", ").next().unwrap_or_default()
    }
    let name = kind(waiting[0]);
    let named = |task: &Task| {
        matches!(
            task.runtime,
            TaskRuntime::Go | TaskRuntime::Asyncio | TaskRuntime::Tokio
        )
    };
    let same = |task: &&Task| named(task) && kind(task) == name;
    (!name.is_empty() && waiting.iter().all(same)).then(|| format!("for {name}"))
}

/// Whether all of these virtual threads wait for permits of a `Semaphore`. Nobody owns one.
fn want_permits(waiting: &[&Task]) -> bool {
    let wants = |task: &&Task| task.resource.detail.java_lock == Some(JavaLock::Semaphore);
    waiting.iter().all(wants)
}

/// Whether of tokio's tasks that were read none has a place of the semaphore for which all of these wait. One may be kept outside of all tasks, or was
/// forgotten. Who runs cannot be read.
fn none_has_place(run: &Run<'_>, waiting: &[&Task]) -> bool {
    // Those that only wait to be woken by it are idle.
    let wants =
        |task: &&Task| task.runtime == TaskRuntime::Tokio && task.pool && task.state == TaskState::Waiting;
    let rests = |task: &&Task| tasks::runs(run, task.pid) <= tasks::RUNS_SHARE;
    waiting.first().is_some_and(rests) && waiting.iter().all(wants)
}

/// For the end of a title: that of tasks of asyncio none is past the place where all of these wait. It says of nobody that he has it.
fn none_past(waiting: &[&Task]) -> Option<String> {
    let of_asyncio = waiting.iter().all(|task| task.runtime == TaskRuntime::Asyncio);
    let one = tasks::places(waiting, tasks::place).len() == 1;
    (of_asyncio && one).then(|| "; no task is further in that function".to_owned())
}

/// For the end of a title: what keeps the connections of Go's client of HTTP.
fn of_http(run: &Run<'_>, waiting: &[&Task]) -> Option<String> {
    let own = || {
        let tasks = run.attributed.tasks.iter();
        tasks.filter(|task| task.pid == waiting[0].pid)
    };
    let reading: Vec<&Task> = own().filter(|task| go::reads_http_body(&task.stack)).collect();
    let unread = own()
        .filter(|task| go::has_unread_body(task.others, &task.stack))
        .count();
    let asking: Vec<&Task> = own().filter(|task| go::asks_by_http(&task.stack)).collect();
    let busy = if reading.is_empty() { &asking } else { &reading };
    if unread > 0 && reading.is_empty() {
        return Some(format!(
            "; {} {} an answer whose body was neither read to its end nor closed",
            say::several(unread as u64, "connection"),
            has(unread as u64)
        ));
    }
    let mut servers = own().filter(|task| go::awaits_http_answer(task.others, &task.stack));
    let server = servers.next().map_or_else(String::new, tasks::waits_for);
    (!busy.is_empty()).then(|| {
        let count = busy.len() as u64;
        format!(
            "; {} {} one, in {}{server}",
            say::several(count, tasks::name(busy[0])),
            has(count),
            tasks::say_places(&tasks::places(busy, tasks::place))
        )
    })
}

/// From so long a wait for a thing of a pool is trouble, whether or not the pool goes round, nanoseconds: many clients give up after 5 s.
const TOO_LONG_NS: Ns = 4_000_000_000;

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let holder = holder(run, waiting);
    let candidates = match holder {
        Some(_) => None,
        None => candidates(run, waiting).filter(|found| !found.is_no_help(waiting)),
    };
    let permits = want_permits(waiting);
    let nowhere = none_has_place(run, waiting);
    let outcome = match (&holder, &candidates) {
        (Some(holder), _) => format!("; {} has it", holder.who()),
        (None, _) if go::waits_for_http(&waiting[0].stack) => of_http(run, waiting).unwrap_or_default(),
        (None, Some(candidates)) => candidates.outcome(waiting),
        (None, None) if nowhere => "; no task that was read has a place of it".to_owned(),
        (None, None) => none_past(waiting).unwrap_or_default(),
    };
    // All of one kind: it has a name.
    let pool = waiting[0]
        .pool
        .then(|| format!("for {}", waiting[0].resource.name));
    let lock = match permits {
        true => Some("for a permit of a Semaphore".to_owned()),
        false => own_word(waiting),
    };
    let what = pool.as_deref().or(lock.as_deref()).unwrap_or(WHAT);
    let who = match (&holder, &candidates) {
        (Some(holder), _) => Evidence::new(
            format!("held by {}, {}", holder.who(), holder.does()),
            "the layout of the runtime's locks",
        ),
        (None, Some(candidates)) => candidates.evidence(),
        (None, None) if none_past(waiting).is_some() => Evidence::new(
            "the library does not note who took it; no other task stands in that function past the place where these wait: whoever took it \
             is elsewhere with it, or has ended without giving it back",
            "the functions in which tasks stand",
        ),
        (None, None) if nowhere => Evidence::new(
            "no task that was read keeps a permit over its await: whoever took one has forgotten it (`forget`), runs, or keeps it outside of all tasks",
            "the program's own structures, read from its memory",
        ),
        (None, None) if permits => Evidence::new(
            "a semaphore notes no owner: the two looks cannot tell whether its permits are given back late or not at all",
            "the functions in which tasks stand",
        ),
        (None, None) => Evidence::new(
            "who has the lock is not known: the runtime does not note it",
            "the layout of the runtime's locks",
        ),
    };
    // Of a pool that is used up and goes round, many wait at any time, each of them for a short while.
    let longest = waiting.iter().map(|task| task.stood).max().unwrap_or_default();
    let goes_round = (pool.is_some() || permits)
        && longest < TOO_LONG_NS
        && tasks::runs(run, waiting[0].pid) > tasks::RUNS_SHARE;
    let (severity, confidence) = match goes_round {
        true => (Severity::Note, Confidence::Suspect),
        false => (Severity::Warning, Confidence::Strong),
    };
    let finding = tasks::finding(run, RULE.id, severity, waiting, [what, &outcome])
        .confidence(confidence)
        .and(who);
    if holder.is_none() && candidates.is_none() && nowhere {
        return finding
            .remedy(Remedy::safe(
                "give each permit back on every path, also behind `?` and an early `return`: keep it as a guard instead of `forget` and `add_permits`",
            ))
            .remedy(Remedy::pointless("more permits: the same path loses them, too"));
    }
    if pool.is_some() {
        return finding
            .remedy(Remedy::safe(
                "give back what has been taken before waiting for anything else: close results, end transactions",
            ))
            .remedy(Remedy::pointless(
                "a larger pool, before that is known: the same code then keeps more of it",
            ));
    }
    let finding = match (tasks::places(waiting, tasks::place).len(), outcome.is_empty()) {
        (1, _) | (_, false) => finding,
        _ => finding.remedy(Remedy::safe(
            "check whether these functions take the same locks in different orders: each then waits for a lock that another of them has",
        )),
    };
    if let Some(holder) = holder {
        return finding.remedy(Remedy::safe(format!(
            "do not wait while holding it: the holder is {}",
            holder.does()
        )));
    }
    finding.remedy(match candidates {
        None if permits => Remedy::safe(
            "give each permit back on every path, also where an exception is thrown: `release` belongs into a `finally`",
        ),
        Some(_) => Remedy::safe("do not wait for anything else while holding it, or with a time limit"),
        None if none_past(waiting).is_some() => Remedy::safe(
            "give it back on every path, also where an exception is raised: `async with` does so",
        ),
        None => Remedy::safe(
            "look in a dump of all tasks for one that has locked it and waits for something else, or has returned without unlocking it",
        ),
    })
}
