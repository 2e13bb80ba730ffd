//! Starting and ending programs costs more than what they do.

use crate::rules::{
    HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, duration, fires, percent, say, short_lives,
};
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::{AttributedWait, ThreadLedger};
use holdup_model::churn::{Births, Born, Churn};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ManyShortPrograms, check)
    .about("many short-lived programs are started")
    .causes(&[
        Cause::CpuUser,
        Cause::CpuKernel,
        Cause::MemPagefault,
        Cause::ProcessExec,
        Cause::ProcessExit,
    ])
    .from(0.0)
    .explains(&[
        RuleId::CpuBound,
        RuleId::KernelTimeDominates,
        RuleId::ProgramLoadSlow,
    ]);

/// Starts from which they are many.
const MIN_STARTS: u64 = 50;

/// Share of the elapsed time that all of them together must take.
const MIN_SHARE: f64 = 0.30;

/// How long a program runs and waits, without queueing for a CPU, that hardly does anything, in nanoseconds: loading a
/// dynamically linked `true` and ending it takes 0.6 to 1.5 ms on machines of today.
const MAX_SHORT_RUN_NS: Ns = 4_000_000;

/// The same of a program that spends half of its time or more on being started and ended: on slow machines that alone takes so long.
const MAX_SHORT_START_NS: Ns = 10_000_000;

/// Looks between which there was one that none of them met, from which there are many: as many by chance is hardly to be had, and fewer are
/// of any script.
const MIN_UNSAMPLED_STARTS: u64 = 10;

/// Programs that are named at most.
const MAX_PROGRAMS: usize = 3;

/// Programs of one name.
#[derive(Default)]
struct Program {
    starts: u64,
    /// All their lives without queueing, in nanoseconds.
    lived: Ns,
    /// Each of those with how many there were of it, and the process; none for those that the report lists together.
    lives: Vec<(Ns, u64, Option<u32>)>,
    /// Time of theirs that went into starting and ending them, in nanoseconds.
    starting: Ns,
    /// The processes that were short.
    pids: BTreeSet<u32>,
}

impl Program {
    /// Leaves those that were short, where half of all were: of a compiler that is called on many files some are, too, and it is not
    /// the program that is short. `None` where it is not.
    fn short(mut self) -> Option<Program> {
        let median = self.median();
        let starting = self.starting / self.starts.max(1);
        let limit = match starting.saturating_mul(2) >= median {
            true => MAX_SHORT_START_NS,
            false => MAX_SHORT_RUN_NS,
        };
        if median > limit {
            return None;
        }
        self.lives.retain(|(lived, ..)| *lived <= limit);
        self.starts = self.lives.iter().map(|(_, count, _)| count).sum();
        self.lived = self.lives.iter().fold(0, |sum: Ns, (lived, count, _)| {
            sum.saturating_add(lived.saturating_mul(*count))
        });
        self.pids = self.lives.iter().filter_map(|(.., pid)| *pid).collect();
        Some(self)
    }

    fn median(&mut self) -> Ns {
        self.lives.sort_unstable();
        let mut before = 0;
        let middle = self.lives.iter().find(|(_, count, _)| {
            before += count;
            before * 2 >= self.starts
        });
        middle.map_or(0, |(lived, ..)| *lived)
    }
}

/// Whether a wait, or time on a CPU, is what starting or ending a program takes.
fn starts_or_ends(wait: &AttributedWait) -> bool {
    match (wait.cause, wait.call.as_deref()) {
        (Cause::ProcessExec | Cause::ProcessExit | Cause::MemPagefault, _) => true,
        // Page faults are in no call.
        (Cause::CpuKernel, call) => call.is_none() || system_calls::is_named(call, Kind::ProcessLife),
        _ => false,
    }
}

/// How long a process lives that is not kept to be used again, in nanoseconds: servers that keep processes give them hundreds of
/// requests or minutes.
const MAX_LIFETIME_NS: Ns = 1_000_000_000;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    if let Some(churn) = short_lives::of_threads(run) {
        return live(run, waits, churn);
    }
    let short: BTreeMap<&str, Program> = programs(run)
        .into_iter()
        .filter_map(|(name, program)| Some((name, program.short()?)))
        .collect();
    let starts = short.values().map(|program| program.starts).sum();
    let theirs = |wait: &AttributedWait| {
        let name = &wait.asker.name;
        let program = short.get(name.process.as_str());
        program.is_some_and(|program| name.pid == 0 || name.tid == 0 || program.pids.contains(&name.pid))
    };
    let all = run.waits(|wait| theirs(wait) && wait.path_ns > 0);
    let path = all.as_ref().map_or(0, Waits::path);
    if starts < MIN_STARTS || path < HARM_FLOOR || !run.matters(path, MIN_SHARE) {
        if let Some(verdict) = between_samples(run, waits) {
            return verdict;
        }
        return Verdict::Clear(format!(
            "{} that did almost nothing took {} of the elapsed time",
            say::several(starts, "program"),
            percent(run.share(path))
        ));
    }
    // One finding for all causes, under the one that costs most.
    let by_cause = all.map_or_else(Vec::new, |all| all.split(|wait| wait.cause));
    let spoken = by_cause
        .iter()
        .filter(|waits| RULE.causes.contains(&waits.cause()));
    let most = spoken.max_by_key(|waits| waits.path());
    match most {
        Some(most) if most.cause() == waits.cause() => fires(finding(run, most, &short, starts, path)),
        _ => Verdict::Clear(format!("{} is not most of {}", waits.cause(), duration(path))),
    }
}

/// What runs already: what making and ending processes costs, without what they do.
fn live(run: &Run<'_>, waits: &Waits<'_>, churn: &Churn) -> Verdict {
    let short = |one: &&Births| one.what == Born::Process && one.p50 < MAX_LIFETIME_NS && one.ended > 0;
    let births: Vec<&Births> = churn.made.iter().filter(short).collect();
    let ended: u64 = births.iter().map(|one| one.ended).sum();
    let makers: BTreeSet<u32> = births.iter().map(|one| one.by.name.pid).collect();
    let names: BTreeSet<&str> = births
        .iter()
        .flat_map(|one| one.names.iter().map(|called| called.name.as_str()))
        .collect();
    let makes = |wait: &AttributedWait| {
        let name = &wait.asker.name;
        let of_maker = makers.contains(&name.pid);
        let of_child = names.contains(name.process.as_str()) && !of_maker;
        starts_or_ends(wait) && (of_child || of_maker && wait.call.is_some())
    };
    let all = run.waits(|wait| makes(wait) && wait.path_ns > 0);
    let path = all.as_ref().map_or(0, Waits::path);
    let (Some(all), Some(by)) = (all, births.iter().max_by_key(|one| one.ended)) else {
        return Verdict::Clear(format!(
            "{} ended within a second",
            say::several(ended, "process")
        ));
    };
    if ended < MIN_STARTS || path < HARM_FLOOR || !run.matters_without_queueing(path, MATTERS) {
        return Verdict::Clear(format!(
            "{} ended within a second; starting and ending them took {} of the time",
            say::several(ended, "process"),
            percent(run.share_of_own(path))
        ));
    }
    // One finding for all causes, under the one that costs most.
    let most = all.split(|wait| wait.cause).into_iter().max_by_key(Waits::path);
    let Some(most) = most.filter(|most| most.cause() == waits.cause()) else {
        return Verdict::Clear(format!("{} is not most of {}", waits.cause(), duration(path)));
    };
    let who = say::name_or(&by.by.name.process, "The program").to_owned();
    let title = format!(
        "{who} starts {:.0} processes a second: starting and ending them takes {} of the time",
        churn.per_second(ended),
        percent(run.share_of_own(path))
    );
    let named: Vec<&str> = by
        .names
        .iter()
        .take(MAX_PROGRAMS)
        .map(|called| called.name.as_str())
        .collect();
    let lived = format!(
        "{} ({}) started and ended, median lifetime {}",
        say::several(ended, "process"),
        named.join(", "),
        duration(by.p50)
    );
    let mut finding = short_lives::finding(&RULE, title, &most, by, lived, "fork")
        .remedy(Remedy::safe(
            "use a pool of processes (pre-forked workers, FastCGI instead of CGI) instead of one process for \
             each piece of work",
        ))
        .remedy(Remedy::safe(
            "use a library instead of the other program, or start it once for many pieces of work",
        ));
    finding.ns = Some(path);
    fires(finding)
}

/// Those that no sample met. How long each of them lived is not known, only that there was another one between any two samples.
fn between_samples(run: &Run<'_>, waits: &Waits<'_>) -> Option<Verdict> {
    if run.attributed.source.records_each_process() {
        return None;
    }
    let all = run.waits(|wait| wait.asker.name.pid == 0 && wait.path_ns > 0)?;
    let names: BTreeSet<&str> = all.iter().map(|wait| wait.asker.name.process.as_str()).collect();
    let ledgers = run.attributed.threads.iter();
    let of_them =
        ledgers.filter(|thread| thread.name.pid == 0 && names.contains(thread.name.process.as_str()));
    let starts: u64 = of_them.map(|thread| u64::from(thread.threads)).sum();
    if starts < MIN_UNSAMPLED_STARTS || all.path() < HARM_FLOOR || !run.matters(all.path(), MIN_SHARE) {
        return None;
    }
    let by_cause = all.split(|wait| wait.cause);
    let spoken = by_cause
        .iter()
        .filter(|waits| RULE.causes.contains(&waits.cause()));
    let most = spoken.max_by_key(|waits| waits.path())?;
    if most.cause() != waits.cause() {
        return None;
    }
    let parents =
        run.waits(|wait| wait.handed_on_ns > 0 && wait.holders.iter().any(|holder| holder.name.pid == 0));
    let parent = parents.map_or_else(|| "It".to_owned(), |parents| say::who(&parents.main().asker.name));
    let named: Vec<&str> = names.into_iter().take(MAX_PROGRAMS).collect();
    let title = format!(
        "{parent} starts one short program after the other ({}): they take {} of the time",
        named.join(", "),
        percent(run.share(all.path()))
    );
    let text = format!(
        "at least {starts} started and ended between two samples, by the CPU time that their parent was \
         charged"
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, most)
        .and(Evidence::new(text, "process and thread starts and exits"))
        .confidence(Confidence::Suspect);
    finding.ns = Some(all.path());
    Some(fires(with_remedies(finding)))
}

/// Processes by program. The threads that the report lists together count as one process each where every other
/// process of the name has one thread.
fn programs<'a>(run: &Run<'a>) -> BTreeMap<&'a str, Program> {
    let threads: &'a [ThreadLedger] = &run.attributed.threads;
    let mut programs: BTreeMap<&str, Program> = BTreeMap::new();
    let several: BTreeSet<&str> = threads
        .iter()
        .filter(|thread| thread.name.tid != thread.name.pid && thread.name.tid != 0)
        .map(|thread| thread.name.process.as_str())
        .collect();
    for thread in threads {
        let name = thread.name.process.as_str();
        if several.contains(name) || thread.open {
            continue;
        }
        let queued = thread
            .causes
            .get(&Cause::SchedRunqueue)
            .map_or(0, |tally| tally.ns);
        let lived = thread.wall.saturating_sub(queued);
        let program = programs.entry(name).or_default();
        let count = u64::from(thread.threads);
        program.starts += count;
        program.lived = program.lived.saturating_add(lived);
        let pid = (count == 1).then_some(thread.name.pid);
        program.lives.push((lived / count.max(1), count, pid));
    }
    for wait in run.attributed.waits.iter().filter(|wait| starts_or_ends(wait)) {
        if let Some(program) = programs.get_mut(wait.asker.name.process.as_str()) {
            program.starting = program.starting.saturating_add(wait.ns);
        }
    }
    programs
}

fn finding(
    run: &Run<'_>,
    most: &Waits<'_>,
    short: &BTreeMap<&str, Program>,
    starts: u64,
    path: Ns,
) -> Finding {
    let mut names: Vec<(&str, &Program)> = short.iter().map(|(name, program)| (*name, program)).collect();
    names.sort_by_key(|(_, program)| std::cmp::Reverse(program.starts));
    let lived: Ns = names.iter().map(|(_, program)| program.lived).sum();
    let named: Vec<String> = names
        .iter()
        .take(MAX_PROGRAMS)
        .map(|(name, program)| format!("{name} {} times", program.starts))
        .collect();
    let parents = run.waits(|wait| wait.cause == Cause::ProcessChild);
    let parent = parents.map_or_else(|| "It".to_owned(), |parents| say::who(&parents.main().asker.name));
    // Processes that lived between two samples are not counted one by one.
    let about = match run.attributed.source.records_each_process() {
        true => "",
        false => "at least ",
    };
    let title = format!(
        "{parent} starts {about}{starts} programs that do almost nothing: starting and ending them takes {} \
         of the time",
        percent(run.share(path))
    );
    let text = format!(
        "{}; each lives {} without queueing",
        named.join(", "),
        duration(lived / starts.max(1))
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, most)
        .and(Evidence::new(text, "process and thread starts and exits"))
        .confidence(Confidence::Strong);
    finding.ns = Some(path);
    with_remedies(finding)
}

fn with_remedies(finding: Finding) -> Finding {
    finding
        .remedy(Remedy::safe(
            "do the work of many in one: shell builtins instead of expr, basename, sed; one awk for the \
             whole input",
        ))
        .remedy(Remedy::safe(
            "give a program many files at once (xargs, find -exec … +)",
        ))
}
