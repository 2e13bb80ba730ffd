//! All workers of a pool stand in the same wait, so that nobody is left for new work.

use crate::rules::beside::doing;
use crate::rules::full_pool::{self, Full};
use crate::rules::tokio_pool::{self, Taken};
use crate::rules::{
    Extend, Generality, HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, beside, dumps as dumped, duration,
    java_waits as java, libuv_pool, say,
};
use holdup_artefacts::dumps::{Doing, Dump, DumpThread, Graph, dumps};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::observed::SnapshotKind;
use holdup_evidence::{Cause, Frame, Language, Observed};
use holdup_knowledge::java::{of_library, of_pool, of_runtime};
use holdup_knowledge::pools;
use holdup_model::attributed::{AttributedWait, Common, ThreadName};
use holdup_model::attributed::{Awaits, JavaLock};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::{BTreeMap, BTreeSet};

/// Workers from which a pool is judged: of two, both busy is an ordinary instant.
const MIN_WORKERS: usize = 3;

/// Who asked, at most.
const MAX_ASKERS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::WorkerPoolExhausted, check, seen)
    .about("all workers of a pool are in the same wait")
    .causes(&[
        Cause::LockMonitor,
        Cause::LockFutex,
        Cause::NetReceive,
        Cause::NetDns,
        Cause::IpcPipe,
        Cause::DiskRead,
        Cause::DiskSync,
        Cause::FsFuse,
        Cause::FsNetwork,
    ])
    .generality(Generality::Consequence)
    .explains(&[
        RuleId::ManyWaitInOnePlace,
        RuleId::ThreadStandsStill,
        RuleId::WaitUncategorised,
    ]);

/// Part of their time that the workers of a pool spend in one wait, from which the pool is exhausted.
const MIN_BUSY_SHARE: f64 = 0.9;

/// Threads from which they queue for a pool's connections.
const MIN_QUEUED_THREADS: usize = 2;

/// By waits: threads that want a connection of a pool which has none, and pools whose workers wait for others' tasks.
fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let worth = |group: &Waits<'_>| run.matters(group.cost(), MATTERS);
    let connections = waits.only(wants_connection);
    let processes = connections.map_or_else(Vec::new, |all| all.split(|wait| wait.asker.name.pid));
    let wanted = processes
        .iter()
        .filter(|group| worth(group) && (java::threads(group) >= MIN_QUEUED_THREADS || stands(run, group)));
    let mut findings: Vec<Finding> = wanted.map(|group| connection_wanted(run, group)).collect();
    let tasks = waits.only(|wait| java::awaits(wait) == Some(Awaits::Task) && of_pool(&java::frames(wait)));
    let pools = tasks.map_or_else(Vec::new, |all| {
        all.split(|wait| {
            (
                wait.asker.name.pid,
                java::pool_of(&wait.asker.name.thread).to_owned(),
            )
        })
    });
    let stuck = pools
        .iter()
        .filter(|pool| worth(pool) && java::threads(pool) >= MIN_WORKERS);
    let left = stuck.filter(|pool| nobody_left(run, pool));
    findings.extend(left.map(|pool| tasks_wanted(run, pool)));
    let taken = libuv_pool::full(run);
    let taken = taken
        .iter()
        .filter(|pool| told_with(pool) == Some(waits.cause()))
        .filter(|pool| pool.both >= HARM_FLOOR && worth(&pool.waits));
    findings.extend(taken.map(pool_taken));
    let blocking = tokio_pool::taken(run);
    let blocking = blocking
        .iter()
        .filter(|taken| told_with(&taken.pool) == Some(waits.cause()))
        .filter(|taken| taken.pool.both >= HARM_FLOOR && worth(&taken.pool.waits));
    findings.extend(blocking.map(blocking_taken));
    match findings.is_empty() {
        true => Verdict::Clear(format!(
            "{} for a connection of a pool, 0 pools whose workers all wait",
            say::several(processes.iter().map(Waits::count).sum(), "wait")
        )),
        false => Verdict::Fires(findings),
    }
}

/// Whether none of those that wait for a connection got one for as long as they were watched: nobody gives one back.
fn stands(run: &Run<'_>, group: &Waits<'_>) -> bool {
    run.attributed.of_threads && group.iter().all(|wait| java::stands(run, wait))
}

/// The cause with which a pool is reported: each is judged by itself, and a pool may wait for several.
fn told_with(pool: &Full<'_>) -> Option<Cause> {
    let mut causes = pool.waits.iter().map(|wait| wait.cause);
    causes.find(|cause| RULE.causes.contains(cause))
}

/// Whether these threads are all the workers of their pool, and do nothing else.
fn nobody_left(run: &Run<'_>, pool: &Waits<'_>) -> bool {
    let name = &pool.main().asker.name;
    let same_pool = |other: &ThreadName| {
        other.pid == name.pid && java::pool_of(&other.thread) == java::pool_of(&name.thread)
    };
    let all = run
        .attributed
        .threads
        .iter()
        .filter(|thread| same_pool(&thread.name));
    let wall = all.map(|thread| thread.wall).fold(0, u64::saturating_add);
    pool.own() as f64 >= MIN_BUSY_SHARE * wall as f64
}

fn wants_connection(wait: &AttributedWait) -> bool {
    java::lock(wait) == Some(JavaLock::Pool) || wait.resource.common() == Some(Common::PooledConnection)
}

/// Those of the process that have a connection of the pool, and what most of them wait for meanwhile.
struct Keepers<'a> {
    threads: usize,
    main: &'a AttributedWait,
}

impl<'a> Keepers<'a> {
    fn of(run: &Run<'a>, group: &Waits<'_>) -> Option<Keepers<'a>> {
        let waiter = group.main();
        let keeps = |wait: &AttributedWait| {
            let same = wait.asker.name.pid == waiter.asker.name.pid;
            let own = wait.resource.detail.asks_for_threads.is_none();
            same && own && !wait.cause.on_cpu() && pools::has_one(&wait.asker.stack, &waiter.asker.stack)
        };
        let all = run.waits(keeps)?;
        let threads = java::threads(&all);
        let main = all.main();
        Some(Keepers { threads, main })
    }

    /// What they do with it, for a title.
    fn clause(&self) -> String {
        let main = self.main;
        let on = match main.resource.name.as_str() {
            "" => String::new(),
            name => format!(": {name}"),
        };
        let place = chosen_frame(&main.asker.stack)
            .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
        let doing = main.cause.phrase();
        match self.threads {
            1 => format!(": 1 thread has one, {doing}{place}{on}"),
            several => format!(": {several} threads have one each, mostly {doing}{place}{on}"),
        }
    }
}

/// Who may keep connections: other threads that stand in a wait for something outside of the process, else whoever wants one.
fn may_keep(run: &Run<'_>, group: &Waits<'_>) -> String {
    let main = group.main();
    let own: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let mut others = beside::outside(run, main.asker.name.pid);
    others.retain(|wait| {
        let asked = chosen_frame(&wait.asker.stack);
        !own.contains(&wait.asker.name.tid)
            && asked.is_some_and(is_applications)
            && !matches!(wait.cause, Cause::NetAccept | Cause::PollWait)
    });
    others.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    let Some(first) = others.first() else {
        return called_by(main);
    };
    let same = others.iter().filter(|wait| doing(wait) == doing(first)).count();
    match same as u64 {
        1 => format!("; another thread may keep one, {}", doing(first)),
        several => format!("; {several} other threads may keep one each, {}", doing(first)),
    }
}

/// Who called the function that wants the connection: who waits may keep one itself, there.
fn called_by(wait: &AttributedWait) -> String {
    let Some(place) = chosen_frame(&wait.asker.stack) else {
        return String::new();
    };
    let mut outer = wait
        .asker
        .stack
        .iter()
        .skip_while(|frame| frame.symbol != place.symbol);
    let own = |frame: &&Frame| {
        let same_kind = frame.language == place.language && frame.symbol != place.symbol;
        same_kind && pools::is_application(frame)
    };
    match outer.find(own) {
        Some(frame) => format!("; {}, which called it, may keep one itself", say::place(frame)),
        None => String::new(),
    }
}

fn connection_wanted(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::name_or(&main.asker.name.process, "the program");
    let keepers = Keepers::of(run, group);
    let threads = java::threads(group);
    let place = chosen_frame(&main.asker.stack);
    let clause = match (&keepers, stands(run, group)) {
        (Some(keepers), _) => keepers.clause(),
        (None, true) => format!(", and nobody gave one back{}", may_keep(run, group)),
        (None, false) => String::new(),
    };
    let title = Title::from(format!(
        "{} of {who} {} for a free connection of a pool{}",
        say::several(threads as u64, "thread"),
        if threads == 1 { "waits" } else { "wait" },
        place.map_or_else(String::new, |frame| format!(" in {}", say::place(frame))),
    ))
    .with(clause);
    let frames = java::frames(main);
    let scripted = pools::entry(&main.asker.stack).map(say::place);
    let pool = java::entry(&frames, |frame| of_library(frame) && !of_runtime(frame));
    let pool = scripted.as_deref().or(pool).unwrap_or("its pool");
    let text = format!(
        "they wait in {pool}, called by {}",
        java::askers(group, MAX_ASKERS).join(", ")
    );
    let finding = RULE
        .finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "the frames of the waits"))
        .and_if(group.holders().first().map(say::meanwhile))
        .confidence(Confidence::Strong);
    let finding = match &keepers {
        Some(keepers) => finding.remedy(Remedy::safe(format!(
            "give the connection back before waiting for anything else: {} keeps it while it is {}",
            chosen_frame(&keepers.main.asker.stack).map_or_else(|| "the code".to_owned(), say::place),
            keepers.main.cause.phrase()
        ))),
        None => finding,
    };
    keeps_connections(finding, place.map(|frame| frame.language))
}

/// That something queues is not seen; that it would is.
fn pool_taken(pool: &Full<'_>) -> Finding {
    let main = pool.waits.main();
    let who = say::name_or(&main.asker.name.process, "the program");
    let what = full_pool::awaited(&pool.waits).map_or_else(String::new, |what| format!(", {what}"));
    let title = match pool.threads {
        1 => Title::from(format!("The one thread of libuv's pool in {who} waits{what}"))
            .with(": calls for files and names queue behind it"),
        count => Title::from(format!(
            "All {count} threads of libuv's pool in {who} wait at once{what}"
        ))
        .with(": calls for files and names queue behind them"),
    };
    let mut does: BTreeMap<Cause, usize> = BTreeMap::new();
    for wait in pool.waits.iter() {
        *does.entry(wait.cause).or_default() += 1;
    }
    let does: Vec<String> = does
        .iter()
        .map(|(cause, count)| format!("{count} {}", cause.phrase()))
        .collect();
    let text = format!(
        "for {} none of them was free: {}",
        duration(pool.both),
        does.join(", ")
    );
    RULE.finding(Severity::Warning, title, &pool.waits)
        .and(Evidence::new(
            text,
            "user stacks, and when each wait began and ended",
        ))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "find out what they wait for: fs, dns.lookup, crypto and zlib calls queue behind them, while the \
             event loop looks idle",
        ))
        .remedy(Remedy::changing(
            "more threads: UV_THREADPOOL_SIZE, set before the program starts",
            "the slow resource gets more load",
        ))
        .remedy(Remedy::safe(
            "use dns.resolve for names, which does not use the pool; use a socket or a stream for pipes and \
             devices",
        ))
}

fn blocking_taken(taken: &Taken<'_>) -> Finding {
    let finding = RULE
        .finding(Severity::Warning, taken.title(), &taken.pool.waits)
        .confidence(Confidence::Strong);
    let finding = taken.evidence().into_iter().fold(finding, Finding::and);
    Taken::remedies().into_iter().fold(finding, Finding::remedy)
}

fn tasks_wanted(run: &Run<'_>, pool: &Waits<'_>) -> Finding {
    let main = pool.main();
    let name = java::pool_of(&main.asker.name.thread);
    let by_library = beside::asks_for_words(run, pool);
    let title = Title::from(format!(
        "All {} workers of {name} wait for the result of other tasks",
        java::threads(pool)
    ))
    .with(by_library.as_deref().unwrap_or_default());
    let text = format!(
        "they wait for {}, asked for by {}",
        main.resource.name,
        java::askers(pool, MAX_ASKERS).join(", ")
    );
    let finding = RULE
        .finding(Severity::Warning, title, pool)
        .and(Evidence::new(text, "Java frames of the waits"))
        .confidence(Confidence::Strong);
    if by_library.is_some() {
        return finding.remedy(Remedy::safe("set a timeout for what the library is asked for"));
    }
    tasks_of_tasks(finding)
}

/// In which language the program of a dump is written, where settings of a pool are known for it.
fn dumped_language(kind: SnapshotKind) -> Option<Language> {
    (kind == SnapshotKind::Jvm).then_some(Language::Java)
}

/// `language`: that of the program, where it is known.
fn keeps_connections(finding: Finding, language: Option<Language>) -> Finding {
    let logged = match language {
        Some(Language::Java) => ": log unreturned connections (leakDetectionThreshold, removeAbandoned)",
        _ => "",
    };
    finding
        .remedy(Remedy::safe(format!(
            "find the code that keeps the connections{logged}, give them back on each path, and make transactions shorter"
        )))
        .remedy(Remedy::pointless(
            "more workers: each one waits for the same connections",
        ))
}

fn tasks_of_tasks(finding: Finding) -> Finding {
    finding
        .remedy(Remedy::safe(
            "run tasks that wait for other tasks in a separate pool: in the same pool, the other tasks can \
             never begin",
        ))
        .remedy(Remedy::pointless(
            "waiting longer, if the tasks are queued in the same pool",
        ))
}

fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let mut findings: BTreeMap<&str, Finding> = BTreeMap::new();
    let mut pools_seen = 0;
    for dump in &dumps {
        for (name, workers) in pools(dump) {
            pools_seen += 1;
            if let Some(finding) = exhausted(run, dump, name, &workers) {
                findings.entry(name).or_insert(finding);
            }
        }
    }
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "of {} of at least {MIN_WORKERS} workers in the dumps, 0 have all of them in one wait",
            say::several(pools_seen, "pool")
        ));
    }
    Verdict::Fires(findings.into_values().collect())
}

/// The workers of each pool: threads of one name but for the number at its end, under a pool's loop.
fn pools<'d, 'a>(dump: &'d Dump<'a>) -> Vec<(&'a str, Vec<(usize, &'d DumpThread<'a>)>)> {
    let mut pools: BTreeMap<&'a str, Vec<(usize, &'d DumpThread<'a>)>> = BTreeMap::new();
    for (place, seen) in dump.threads.iter().enumerate() {
        if of_pool(&seen.frames) {
            pools
                .entry(java::pool_of(&seen.thread.name))
                .or_default()
                .push((place, seen));
        }
    }
    pools
        .into_iter()
        .filter(|(_, workers)| workers.len() >= MIN_WORKERS)
        .collect()
}

fn exhausted(
    run: &Run<'_>,
    dump: &Dump<'_>,
    pool: &str,
    workers: &[(usize, &DumpThread<'_>)],
) -> Option<Finding> {
    let (_, first) = workers.first()?;
    let doing = first.doing;
    let asker = first.asker();
    let same = workers
        .iter()
        .all(|(_, seen)| seen.doing == doing && seen.asker() == asker);
    let graph = Graph::of(dump);
    // Behind a lock whose holder is known the queue is reported, not the pool.
    let known = workers.iter().all(|(place, _)| graph.holder(*place).is_some());
    let cause = match doing {
        Doing::Waits(cause) if cause != Cause::RandomDevice => cause,
        Doing::WaitsForPool | Doing::WaitsForTask => Cause::LockMonitor,
        _ => return None,
    };
    if !same || known {
        return None;
    }
    let count = workers.len();
    let title = match doing {
        Doing::WaitsForPool => format!("All {count} workers of {pool} wait for a free connection"),
        Doing::WaitsForTask => format!("All {count} workers of {pool} wait for the result of other tasks"),
        _ => format!("All {count} workers of {pool} are {}", cause.phrase()),
    };
    let text = format!("{count} of {count} workers are in the same place: none is left for new work");
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        cause,
        Evidence::new(text, dumped::place(run, first)),
    )
    .and(dumped::stands(run, first))
    .and_if(waited_for(run, first))
    .about(
        first
            .thread
            .waits_for
            .as_ref()
            .map(dumped::lock)
            .unwrap_or_default(),
        dumped::asker(first),
    )
    .confidence(Confidence::Strong);
    Some(match doing {
        Doing::WaitsForPool => keeps_connections(finding, dumped_language(first.kind)),
        Doing::WaitsForTask => tasks_of_tasks(finding),
        _ => finding
            .remedy(Remedy::safe(
                "set a timeout for this wait, and find out why there is no answer",
            ))
            .remedy(Remedy::changing(
                "use more workers, if the resource they wait for can serve more at a time",
                "the slow resource gets more load",
            )),
    })
}

fn waited_for(run: &Run<'_>, seen: &DumpThread<'_>) -> Option<Evidence> {
    let lock = seen.thread.waits_for.as_ref()?;
    let text = format!("{} waits for {}", dumped::name(seen), dumped::lock_name(lock));
    Some(Evidence::new(text, dumped::place(run, seen)))
}
