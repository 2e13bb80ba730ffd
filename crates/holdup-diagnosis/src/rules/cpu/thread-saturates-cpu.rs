//! One thread of several uses a CPU fully: its share of all threads' time is small, and the work of that thread is at its limit.

use super::busy_waits;
use crate::rules::{Extend, Rule, RuleId, Run, Waits, commands, duration, fires, percent, say, within};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::facts::Unaccepted;
use holdup_evidence::{Cause, Frame, Language, Ns, TaskRuntime};
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind, TaskState, ThreadLedger, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// Part of the time outside of queues for a CPU that a thread runs, from which it has no more to give.
const MIN_RUNNING_SHARE: f64 = 0.95;

/// Part of all its time from which it had a CPU; below, it would use one fully and mostly queued for it.
const MIN_CPU_SHARE: f64 = 0.8;

/// CPU time from which what it does outside of queues is no chance, nanoseconds.
const MIN_CPU_NS: Ns = 200_000_000;

/// Below this a thread was not observed for long enough, nanoseconds.
const MIN_OBSERVED_NS: Ns = 1_000_000_000;

/// Functions that are named at most.
const MAX_FUNCTIONS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ThreadSaturatesCpu, check)
    .about("one thread among several uses one CPU fully")
    .causes(&[Cause::CpuUser, Cause::CpuKernel])
    .from(0.0)
    .explains(&[RuleId::BusyWaits]);

/// A thread's time.
struct Busy<'a> {
    thread: &'a ThreadLedger,
    cpu: Ns,
    /// In queues for a CPU.
    queued: Ns,
    /// Of the time outside of queues for a CPU.
    running: f64,
}

fn of_thread(wait: &&AttributedWait, name: &ThreadName) -> bool {
    (wait.asker.name.pid, wait.asker.name.tid) == (name.pid, name.tid)
}

fn busy<'a>(run: &Run<'a>, thread: &'a ThreadLedger) -> Busy<'a> {
    let rows = || {
        run.attributed
            .waits
            .iter()
            .filter(|wait| of_thread(wait, &thread.name))
    };
    let sum = |which: &dyn Fn(Cause) -> bool| {
        let found = rows().filter(|wait| which(wait.cause)).map(|wait| wait.ns);
        let ledger = thread
            .causes
            .iter()
            .filter(|(cause, _)| which(**cause))
            .map(|(_, tally)| tally.ns);
        found
            .fold(0, Ns::saturating_add)
            .max(ledger.fold(0, Ns::saturating_add))
    };
    let cpu = sum(&|cause| cause.on_cpu());
    let queued = sum(&|cause| cause == Cause::SchedRunqueue);
    Busy {
        thread,
        cpu,
        queued,
        running: cpu as f64 / thread.wall.saturating_sub(queued).max(1) as f64,
    }
}

fn check(run: &Run<'_>) -> Verdict {
    // An entry of several threads has the time of none of them.
    let single = |thread: &&ThreadLedger| thread.threads == 1 && thread.wall >= MIN_OBSERVED_NS;
    let threads = run.attributed.threads.iter();
    let mut all: Vec<Busy<'_>> = threads.filter(single).map(|thread| busy(run, thread)).collect();
    all.sort_by(|one, other| other.running.total_cmp(&one.running));
    let Some(busiest) = all.first() else {
        return Verdict::Clear("0 threads were observed for a second".to_owned());
    };
    let saturated = |one: &&Busy<'_>| one.running >= MIN_RUNNING_SHARE && one.cpu >= MIN_CPU_NS;
    let full = all.iter().filter(saturated).count();
    let count: u64 = run
        .attributed
        .threads
        .iter()
        .map(|thread| u64::from(thread.threads))
        .sum();
    // Of several, work is shared; of all, there is nobody beside them.
    if full != 1 || count < 2 {
        return Verdict::Clear(format!(
            "{full} of {} use a CPU fully; the busiest runs for {} of the time outside of queues for a CPU",
            say::several(count, "thread"),
            percent(busiest.running.min(1.0))
        ));
    }
    let rows = run.waits(|wait| wait.cause.on_cpu() && of_thread(&wait, &busiest.thread.name));
    match rows {
        Some(rows) => fires(finding(run, busiest, &rows, count)),
        None => Verdict::CannotTell("what the busiest thread runs: no CPU time of it has a cause".to_owned()),
    }
}

/// The function that it mostly runs, with its line where that is known.
fn mostly_in(main: &AttributedWait) -> Option<String> {
    let name = main.asker.frame.as_deref()?;
    let chosen = chosen_frame(&main.asker.stack).filter(|frame| frame.symbol.as_deref() == Some(name));
    Some(chosen.map_or_else(|| name.to_owned(), say::place))
}

/// Part of the time that the other threads of a process run, or would if they got a CPU, together, from which they may run goroutines as well.
const MAX_BESIDE_SHARE: f64 = 0.2;

/// Ready goroutines from which they queue: one may have become ready just then.
const MIN_READY: usize = 2;

/// Goroutines of the process that were ready to run at the last look, while no thread but this one ran: Go's runtime lets no second one run.
fn ready(run: &Run<'_>, busy: &Busy<'_>) -> usize {
    let pid = busy.thread.name.pid;
    let threads = run.attributed.threads.iter();
    let others = threads.filter(|thread| thread.name.pid == pid && thread.name.tid != busy.thread.name.tid);
    let beside: Ns = others
        .map(|thread| self::busy(run, thread))
        .map(|other| other.cpu.saturating_add(other.queued))
        .fold(0, Ns::saturating_add);
    if beside as f64 > MAX_BESIDE_SHARE * run.attributed.elapsed as f64 {
        return 0;
    }
    let all = run.attributed.tasks.iter();
    let ready = all.filter(|task| {
        let go = task.pid == pid && task.runtime == TaskRuntime::Go;
        go && task.state == TaskState::Ready
    });
    Some(ready.count())
        .filter(|count| *count >= MIN_READY)
        .unwrap_or(0)
}

/// Clients that wait for the thread, where it is the one of a Node program, which alone accepts: they stood at its listener when observation began
/// and when it ended. Of a program with several threads it is not known which of them would accept.
fn waiting(run: &Run<'_>, busy: &Busy<'_>, main: &AttributedWait) -> Option<String> {
    let name = &busy.thread.name;
    let is_script = |frame: &Frame| frame.language == Language::JavaScript;
    if name.pid != name.tid || !main.asker.stack.iter().any(is_script) {
        return None;
    }
    let own = |queue: &&Unaccepted| queue.processes == [name.pid] && queue.children.is_empty();
    let queues = run.facts.unaccepted.iter().flatten().filter(own);
    let (clients, queue) = queues
        .map(|queue| (queue.before.min(queue.after), queue))
        .max_by_key(|(clients, _)| *clients)?;
    let wait = match clients {
        0 => return None,
        1 => "1 client waits".to_owned(),
        many => format!("{many} clients wait"),
    };
    Some(format!("{wait} at {} to be accepted", queue.address))
}

/// To profile a thread; with a command if it is one thread, and there still.
fn profile(run: &Run<'_>, name: &ThreadName) -> Remedy {
    let remedy = Remedy::safe("profile that thread, and move its work to several threads or processes");
    match name.tid == 0 || commands::has_ended(run, name.pid) {
        true => remedy,
        false => remedy.with_command(format!("perf record -g --tid {} -- sleep 5", name.tid)),
    }
}

fn finding(run: &Run<'_>, busy: &Busy<'_>, rows: &Waits<'_>, count: u64) -> Finding {
    let name = &busy.thread.name;
    let who = say::who(name);
    let spins = rows.only(|wait| wait.resource.detail.spins.is_some());
    let spins = spins.filter(|spins| spins.own() > busy.cpu / 2);
    let spin = spins
        .as_ref()
        .and_then(|spins| spins.main().resource.detail.spins.as_ref());
    let named = rows.only(|wait| wait.asker.frame.is_some());
    let functions: Vec<String> = named
        .iter()
        .flat_map(|named| named.split(|wait| wait.asker.frame.clone()))
        .take(MAX_FUNCTIONS)
        .map(|group| {
            let frame = group.main().asker.frame.as_deref().unwrap_or_default();
            format!("{frame} {}", percent(group.own() as f64 / busy.cpu.max(1) as f64))
        })
        .collect();
    let place = match spin {
        Some(spin) => format!(": it spins in {}", spin.id()),
        None => match within::place(rows) {
            Some(place) => format!(", within {place}"),
            None => mostly_in(rows.main()).map_or_else(String::new, |place| format!(", mostly in {place}")),
        },
    };
    let ready = ready(run, busy);
    let waiting = waiting(run, busy, rows.main());
    let behind = match ready {
        0 => waiting
            .as_ref()
            .map_or_else(String::new, |waiting| format!(", while {waiting}")),
        1 => "; 1 goroutine is ready and does not get to run".to_owned(),
        count => format!("; {count} goroutines are ready and do not get to run"),
    };
    let part = (busy.cpu as f64 / busy.thread.wall.max(1) as f64).min(1.0);
    let title = match part >= MIN_CPU_SHARE {
        true => format!(
            "{who} (tid {}) uses {} of one CPU{place}",
            name.tid,
            percent(part)
        ),
        false => format!(
            "{who} (tid {}) needs one CPU fully and had {} of one{place}",
            name.tid,
            percent(part)
        ),
    };
    let title = Title::from(title).with(behind);
    // A thread that computes is no trouble as such; clients that wait for it, or a spin that nobody needs, are.
    let requests = run.attributed.requests.as_ref();
    let asked = requests.is_some_and(|requests| requests.count + requests.open > 0);
    let severity = match spin.is_some() || asked || ready > 0 || waiting.is_some() {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let seen = Evidence::new(
        format!(
            "it ran for {} of {}, and waited for nothing but a CPU in the rest; {} of {count} threads did so",
            duration(busy.cpu),
            duration(busy.thread.wall),
            1
        ),
        say::SCHEDULER,
    );
    let finding = Finding::new(RULE.id.id(), severity, title, rows.cause(), busy.cpu, seen)
        .and_if((!functions.is_empty()).then(|| Evidence::new(functions.join(", "), "CPU samples")))
        .confidence(Confidence::Strong);
    let main = rows.main();
    let frame = main.asker.frame.as_deref().unwrap_or(&main.asker.name.process);
    let finding = finding.about(Resource::named(ResourceKind::Name, frame), main.asker.clone());
    let finding = match spin {
        Some(spin) => finding.remedy(Remedy::safe(busy_waits::cure(spin))),
        None => finding.remedy(profile(run, name)),
    };
    if ready > 0 {
        return finding
            .remedy(Remedy::safe(
                "check GOMAXPROCS, in the environment and in the code: goroutines were ready, and no second thread ran them. Where nobody sets it, it is \
                 the number of CPUs that the process may use when it starts",
            ));
    }
    finding.remedy(Remedy::pointless(
        "more CPUs, or more threads of other kinds: one thread runs on one CPU",
    ))
}
