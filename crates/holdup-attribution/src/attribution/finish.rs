//! The end of observation: closes what is open, reads the path, deals it out, and makes the whole.
//!
//! The elapsed time is that of the path: from the run's start to the end of CMD's last thread. CMD's parent
//! may see that end some nanoseconds earlier or later; [`Finish::ended`] counts only where no end was seen.

use super::crowd::{Crowd, complete_chains};
use super::earlier::EarlierRequests;
use super::fold::fold;
use super::ledger::{Ledger, Owner};
use super::life::process_name;
use super::lock_queues::{self, LockKey};
use super::orphans::{self, Standing};
use super::owned::complete_unfinished;
use super::path::{Key, Path, Share};
use super::rows::{CauseSamples, Rows};
use super::run_path::Scope;
use super::site::Site;
use super::task_table::{NameId, TaskTable};
use super::timeline::When;
use super::what::{self, WhatId, Whats};
use super::{Attribution, Faults, keys};
use holdup_evidence::{Cause, Clock, Finish, LossClass, Ns, Role, SystemFacts, ThreadId};
use holdup_model::attributed::{
    Attributed, AttributedWait, Coverage, How, Tally, ThreadLedger, ThreadName, Unanswered, Upstream,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Servers that were asked for requests, listed.
const MAX_UPSTREAMS: usize = 16;

/// Threads listed each for itself, from the contract.
const LISTED: usize = 200;

/// Servers that were asked for requests, the one that took most time first.
fn upstreams(finish: &Finish, tasks: &TaskTable) -> Vec<Upstream> {
    let found = finish.upstreams.iter().map(|one| Upstream {
        server: one.server.map(|server| server.to_string()),
        by: ThreadName {
            pid: one.pid,
            tid: one.pid,
            process: tasks.name_of(one.pid).unwrap_or_default().to_owned(),
            thread: tasks.name_of(one.pid).unwrap_or_default().to_owned(),
        },
        asked: one.asked,
        ns: one.ns,
        most: one.most,
        watched: finish.ended.saturating_sub(one.since),
    });
    let mut found: Vec<Upstream> = found.collect();
    found.sort_by_cached_key(|one| (Reverse(one.ns), one.server.clone()));
    found.truncate(MAX_UPSTREAMS);
    found
}

/// Makes the whole of a run.
pub(super) fn attributed(mut run: Attribution, finish: &Finish, facts: &SystemFacts) -> Attributed {
    run.judge_late();
    close_endless(&mut run, finish.ended);
    let crowd = Crowd::new(&run.threads, &run.tasks);
    complete_unfinished(&mut run.threads, &run.tasks, &crowd);
    complete_chains(&mut run.threads, &run.tasks, &crowd);
    let last = run.run_path.take_last();
    let mut path = match &last {
        Some(last) => last.path.clone(),
        None if run.run_path.scope == Scope::Threads => Path::new(),
        None => super::thread::unknown_path(finish.started, finish.ended),
    };
    let elapsed = path.total();
    let open = last.and_then(|last| last.open);

    let ends = run.threads.values().map(|thread| thread.at);
    let end = ends.fold(finish.ended, Ns::max);
    let gone = std::mem::take(&mut run.ended).into_ledgers();
    let (mut singles, folded, mut into) = (gone.single, gone.folded, gone.into);
    let mut living: Vec<(ThreadId, Ledger)> = run
        .threads
        .drain()
        .map(|(id, thread)| (id, thread.ledger))
        .collect();
    living.sort_by_key(|(id, _)| *id);
    singles.extend(living);
    let ledgers = singles.into_iter().map(|(_, ledger)| ledger);
    // Those that are followed answer nobody's question: they say only what they did while they were in the way.
    let (mut ledgers, followed): (Vec<Ledger>, Vec<Ledger>) =
        ledgers.partition(|ledger| ledger.role == Role::Subject);
    let mut folded: Vec<Ledger> = folded.into_values().collect();
    let whole_path = path.clone();
    let key_causes = key_causes(&ledgers, &folded, &run.book.whats);
    let before = deal_out(&mut path, &mut ledgers, &mut folded, &run.book.whats, elapsed);
    let (ledgers, names) = list(ledgers, folded, &mut into, &mut run, &finish.pointed_at);

    let (by_process, by_run) = cpu_samples(&ledgers, &run.book.whats, &run.tasks);
    let rows = Rows {
        whats: &run.book.whats,
        tasks: &run.tasks,
        objects: &run.objects,
        user_stacks: &finish.user_stacks,
        facts,
        name_resource: run.classifier.name_resource,
        by_user_stack: run.classifier.by_user_stack,
        of_runtime: run.classifier.of_runtime,
        by_process: &by_process,
        by_run: &by_run,
    };
    let mut whole = Attributed {
        elapsed,
        source: run.blockers.source,
        ..Attributed::default()
    };
    let mut when = When::new(run.book.axis.clone(), end);
    let mut standing: BTreeMap<u32, Standing> = BTreeMap::new();
    let mut locks: Vec<Option<LockKey>> = Vec::new();
    for ledger in &ledgers {
        let who = name(ledger, &run.tasks);
        standing.entry(who.pid).or_default().add(ledger);
        let (rows, origins) = rows.of(ledger, &who, &mut whole.path);
        when.add(
            ledger,
            &who,
            (&rows, &origins, whole.waits.len()),
            &run.book.whats,
        );
        count_path(&mut whole.path, ledger, &rows, &run.book.whats);
        locks.extend(lock_queues::of_rows(ledger, &origins));
        whole.threads.push(thread_ledger(ledger, who, &rows));
        whole.waits.extend(rows);
    }
    let answered_in = std::mem::take(&mut run.requests.answering.answered_in);
    super::causes_by_stack::correct(&mut whole.waits);
    let by_stacks = followed.iter().chain(&ledgers).flat_map(|ledger| {
        let tid = name(ledger, &run.tasks).tid;
        rows.judged_causes(ledger).into_iter().map(move |one| (tid, one))
    });
    super::causes_by_stack::correct_by_stacks(&mut whole.waits, by_stacks);
    super::children_by_stack::add(&mut whole.waits, &run.tasks);
    if !run.blockers.source.measures_interrupts() {
        whole.waits.iter_mut().for_each(measured_interrupts);
    }
    super::shared_words::name(&mut whole.waits, &finish.shared_words);
    orphans::mark_standing(&mut whole.waits, &standing, end);
    lock_queues::tell(&mut whole.waits, &locks, &whole_path);
    match run.run_path.scope {
        Scope::Run => path_times(&mut whole.path, &whole.waits, before, open),
        Scope::Threads => {
            of_threads(&mut whole, finish);
            let (untold, untaken) = (&finish.untold_requests, run.requests.earlier.untaken());
            let mut requests =
                std::mem::take(&mut run.requests.answering).finish(finish.ended, untold, untaken);
            requests.earlier_told = run.requests.served.by_tcp_only();
            requests.upstreams = upstreams(finish, &run.tasks);
            whole.requests = finish.requests_told.then_some(requests);
            whole.datagrams = super::datagrams::judged(finish, finish.ended, &run.tasks);
            whole.unanswered = unanswered(&run.requests.earlier, finish, &run.tasks);
        }
    }
    whole.churn = Some(std::mem::take(&mut run.churning).finish(&run.tasks, finish));
    whole.connections = run.network.connections(&run.tasks);
    let threads = sort(&mut whole.threads, |thread| Reverse(thread.wall));
    let rows = sort(&mut whole.waits, |row| {
        (Reverse(row.ns), row.cause, row.asker.name.tid)
    });
    whole.began = when.axis().began();
    whole.windows = when.windows();
    if run.run_path.scope == Scope::Run {
        when.path(&whole_path, &key_causes, before.ns, &mut whole.windows);
    }
    if whole.requests.is_some() {
        answered_in.tell(&mut whole.windows, when.axis());
    }
    let folded = into
        .iter()
        .filter_map(|(thread, name)| Some((*thread, *names.get(name)?)))
        .collect();
    let pieces = std::mem::take(&mut run.book.pieces);
    let places = (rows.as_slice(), threads.as_slice());
    whole.timeline = when.timeline(pieces, &folded, &run.tasks, &mut run.book.whats, places);
    whole.event_loops.clone_from(&finish.event_loops);
    super::interpreter_locks::name_holders(&mut whole, finish);
    whole.tasks = super::runtime_tasks::tasks(finish);
    let looks = super::task_queues::looks(finish);
    whole.task_looks = looks.len() as u64;
    whole.task_queues = super::task_queues::of(&looks, finish);
    super::blocked_on::put_in_place(&mut whole.waits, &mut whole.tasks, &finish.tasks);
    super::loop_askers::put_in_place(&mut whole.waits, &whole.tasks);
    super::loop_askers::put_in_place_by_looks(&mut whole.waits, &looks);
    super::poller_askers::put_in_place(&mut whole.waits, &whole.tasks, finish);
    super::library_askers::put_in_place(&mut whole.waits);
    super::calls_of_tasks::tell(&mut whole.tasks, &whole.waits, facts);
    whole.pools.clone_from(&finish.pools);
    whole.coverage = coverage(&whole, finish, &run.faults);
    super::unread_tasks::note(&mut whole, &finish.tokio_read);
    if let Some(graph) = run.graph.take() {
        whole.predictions = Some(crate::prediction::predict(*graph, &whole));
    }
    whole
}

/// Sorts, and says where each went that was at a place before.
fn sort<T, K: Ord>(list: &mut Vec<T>, key: impl Fn(&T) -> K) -> Vec<u32> {
    let mut placed: Vec<(usize, T)> = std::mem::take(list).into_iter().enumerate().collect();
    placed.sort_by_key(|(_, one)| key(one));
    let mut places = vec![0; placed.len()];
    for (place, (before, _)) in (0..).zip(&placed) {
        places[*before] = place;
    }
    list.extend(placed.into_iter().map(|(_, one)| one));
    places
}

/// The whole is the threads' time: every wait costs what it lasted, but for waits for work, which cost nobody anything.
fn of_threads(whole: &mut Attributed, finish: &Finish) {
    whole.of_threads = true;
    whole.wall = finish.ended.saturating_sub(finish.started);
    whole.path.clear();
    for row in &mut whole.waits {
        row.handed_on_ns = 0;
        row.path_ns = match row.cause {
            Cause::Idle => 0,
            _ => row.ns,
        };
        whole.elapsed = whole.elapsed.saturating_add(row.path_ns);
        let tally = whole.path.entry(row.cause).or_default();
        tally.ns = tally.ns.saturating_add(row.ns);
        tally.count += row.count;
        tally.max = tally.max.max(row.max);
        tally.open |= row.open;
    }
    // Who rests but for milliseconds has lost nothing: what counts is a part of the time watched at least.
    whole.elapsed = whole.elapsed.max(whole.wall);
}

/// Clients without an answer since before observation, of the process that has most of them.
fn unanswered(earlier: &EarlierRequests, finish: &Finish, tasks: &TaskTable) -> Unanswered {
    let found = earlier.unanswered(finish.started, finish.ended);
    found.map_or_else(Unanswered::default, |(pid, clients, longest)| Unanswered {
        clients,
        longest,
        by: ThreadName {
            pid,
            process: tasks.name_of(pid).unwrap_or_default().to_owned(),
            ..ThreadName::default()
        },
    })
}

/// Threads whose end was lost: what they did since their last record is not known.
fn close_endless(run: &mut Attribution, ended: Ns) {
    let mut ids: Vec<ThreadId> = run.threads.keys().copied().collect();
    ids.sort_unstable();
    for id in ids {
        run.settle(id);
        let process = process_name(&run.threads, &mut run.tasks, id);
        let Some(thread) = run.threads.get_mut(&id).filter(|thread| !thread.ended) else {
            continue;
        };
        let until = ended.max(thread.at);
        let clock = Clock {
            blocked: thread.clock.blocked.saturating_add(until - thread.at),
            ..thread.clock
        };
        let spent = thread.advance(&clock, until, None, true, process, &mut run.book);
        thread.end_stretch(None, &mut run.book);
        thread.close_pieces(until, true);
        thread.ledger.ended(until.saturating_sub(thread.born), 0);
        thread.ledger.open = true;
        run.faults.endless.0 += 1;
        run.faults.endless.1 = run.faults.endless.1.saturating_add(spent.lost);
        if run.run_path.is_of_cmd(thread) {
            run.run_path.step(thread, until, Some(Cause::Unknown));
        }
    }
}

/// The cause that time under each key was booked under: what shares a key has one.
fn key_causes(ledgers: &[Ledger], folded: &[Ledger], whats: &Whats) -> HashMap<Key, Cause> {
    let mut causes = HashMap::new();
    for site in ledgers.iter().chain(folded).flat_map(|ledger| &ledger.sites) {
        let cause = whats.get(site.what).cause;
        for key in site.more_keys.iter().chain([&site.key]) {
            causes.insert(*key, cause);
        }
    }
    causes.remove(&keys::BEFORE);
    causes
}

/// Gives each site its part of the path; what was before an unknown birth is returned.
fn deal_out(
    path: &mut Path,
    ledgers: &mut [Ledger],
    folded: &mut [Ledger],
    whats: &Whats,
    elapsed: Ns,
) -> Share {
    let mut all: Vec<&mut Ledger> = ledgers.iter_mut().chain(folded).collect();
    let mut members: HashMap<Key, Vec<(usize, usize)>> = HashMap::new();
    for (at, ledger) in all.iter().enumerate() {
        for (site, tally) in ledger.sites.iter().enumerate() {
            for key in tally.more_keys.iter().chain([&tally.key]) {
                members.entry(*key).or_default().push((at, site));
            }
        }
    }
    let mut nobodys = Share::default();
    for (key, share) in path.entries() {
        let Some(members) = members.get(&key).filter(|_| key != keys::BEFORE) else {
            nobodys.add(share);
            continue;
        };
        // A site has no more time on the path than it has time.
        let room = |of: &dyn Fn(&Site) -> u64| -> Vec<u64> {
            members
                .iter()
                .map(|(ledger, site)| of(&all[*ledger].sites[*site]))
                .collect()
        };
        let times = room(&|site| site.tally.ns.saturating_sub(site.on_path.ns));
        let counts = room(&|site| {
            let pieces = match whats.get(site.what).role {
                what::Role::CpuClass => site.samples,
                _ => site.tally.count,
            };
            pieces.saturating_sub(site.on_path.count)
        });
        let times = super::cpu::apportion(share.ns, &times);
        let counts = super::cpu::apportion(share.count, &counts);
        let handed_on = super::cpu::apportion(share.handed_on, &room(&|site| site.tally.ns));
        for (part, (ledger, site)) in members.iter().enumerate() {
            let on_path = &mut all[*ledger].sites[*site].on_path;
            on_path.add(Share {
                ns: times[part],
                count: counts[part],
                handed_on: handed_on[part],
            });
            on_path.handed_on = on_path.handed_on.min(elapsed);
        }
    }
    nobodys
}

/// One part in this many of the longest life is too little for a thread to tell anything: each of a hundred commands that live for a moment
/// waits for something.
const DUST: Ns = 1000;

/// What a thread's time tells of trouble. A machine has hundreds of threads that all live for as long, and most of them rest; one that waits
/// for a disk, a server or a lock's holder must not be one of many. Threads of pools wait for user-space locks and in polls too.
fn telling(ledger: &Ledger, whats: &Whats) -> Ns {
    let of = |site: &Site| match whats.get(site.what).cause {
        cause if cause.rests() => 0,
        Cause::LockFutex | Cause::PollWait | Cause::Unknown => site.tally.ns / 4,
        cause if cause.on_cpu() => site.tally.ns / 4,
        _ => site.tally.ns,
    };
    ledger.sites.iter().map(of).fold(0, Ns::saturating_add)
}

/// At most [`LISTED`] ledgers of single threads, those that matter most to the run, then those of processes that clients wait for, then
/// those that tell most and then the longest lived; the others by process name. Also where which name is, and, in `into`, which name a thread is under.
fn list(
    mut ledgers: Vec<Ledger>,
    folded: Vec<Ledger>,
    into: &mut HashMap<ThreadId, NameId>,
    run: &mut Attribution,
    pointed_at: &[u32],
) -> (Vec<Ledger>, HashMap<NameId, usize>) {
    let longest = ledgers.iter().map(|ledger| ledger.wall).max();
    let dust = longest.unwrap_or(0) / DUST;
    ledgers.sort_by_cached_key(|ledger| {
        let on_path = ledger.sites.iter().fold(0u64, |sum, site| {
            sum.saturating_add(site.on_path.ns)
                .saturating_add(site.on_path.handed_on)
        });
        let telling = telling(ledger, &run.book.whats);
        let telling = if telling < dust { 0 } else { telling };
        let is_pointed_at = pointed_at.contains(&name(ledger, &run.tasks).pid);
        Reverse((on_path, is_pointed_at, telling, ledger.wall))
    });
    let rest = ledgers.split_off(ledgers.len().min(LISTED));
    let mut by_name = HashMap::new();
    for ledger in folded.into_iter().chain(rest) {
        let thread = ledger.thread;
        let name = fold(&mut by_name, ledger, &mut run.tasks, &mut run.book);
        into.extend(thread.map(|thread| (thread, name)));
    }
    let mut many: Vec<(NameId, Ledger)> = by_name.into_iter().collect();
    many.sort_by_key(|(name, _)| *name);
    let mut names = HashMap::new();
    for (name, ledger) in many {
        names.insert(name, ledgers.len());
        ledgers.push(ledger);
    }
    (ledgers, names)
}

fn cpu_samples(
    ledgers: &[Ledger],
    whats: &Whats,
    tasks: &TaskTable,
) -> (HashMap<NameId, CauseSamples>, CauseSamples) {
    let mut by_process: HashMap<NameId, CauseSamples> = HashMap::new();
    let mut by_run = CauseSamples::new();
    for ledger in ledgers {
        let process = match ledger.owner {
            Owner::Thread(identity) => tasks.process_name(identity.process),
            Owner::Folded { process, .. } => process,
        };
        for site in ledger.sites.iter().filter(|site| site.samples > 0) {
            let cause = whats.get(site.what).cause;
            *by_process.entry(process).or_default().entry(cause).or_default() += site.samples;
            *by_run.entry(cause).or_default() += site.samples;
        }
    }
    (by_process, by_run)
}

fn name(ledger: &Ledger, tasks: &TaskTable) -> ThreadName {
    match &ledger.owner {
        Owner::Thread(identity) => tasks.describe(&tasks.named(identity)),
        Owner::Folded { process, pid } => ThreadName {
            pid: *pid,
            tid: 0,
            process: tasks.text(*process).to_owned(),
            thread: String::new(),
        },
    }
}

fn thread_ledger(ledger: &Ledger, name: ThreadName, rows: &[AttributedWait]) -> ThreadLedger {
    let mut causes: BTreeMap<Cause, Tally> = BTreeMap::new();
    for row in rows {
        let tally = causes.entry(row.cause).or_default();
        tally.ns = tally.ns.saturating_add(row.ns);
        tally.count += row.count;
        tally.max = tally.max.max(row.max);
        tally.open |= row.open;
    }
    debug_assert_eq!(ledger.total(), ledger.wall, "a thread's time adds up to its life");
    ThreadLedger {
        name,
        threads: ledger.threads,
        wall: ledger.wall,
        causes,
        lost: ledger.tally(WhatId::LOST).ns,
        open: ledger.open,
    }
}

/// Adds the number of a ledger's pieces on the path, but for waits. Those of CPU time are split as their time is.
fn count_path(path: &mut BTreeMap<Cause, Tally>, ledger: &Ledger, rows: &[AttributedWait], whats: &Whats) {
    for site in ledger.sites.iter().filter(|site| site.on_path.count > 0) {
        let what = whats.get(site.what);
        match what.role {
            what::Role::Queue | what::Role::Lost | what::Role::Interrupt | what::Role::Throttled => {
                path.entry(what.cause).or_default().count += site.on_path.count
            }
            // Counted by cause as their rows are made: a user stack may have told another.
            what::Role::Wait | what::Role::CpuClass => {}
            what::Role::Cpu => {
                let sampled = |row: &&AttributedWait| row.cause.on_cpu() && row.cause != Cause::CpuInterrupt;
                let on_cpu: Vec<&AttributedWait> = rows.iter().filter(sampled).collect();
                let weights: Vec<Ns> = on_cpu.iter().map(|row| row.path_ns).collect();
                let counts = super::cpu::apportion(site.on_path.count, &weights);
                for (row, count) in on_cpu.iter().zip(counts) {
                    path.entry(row.cause).or_default().count += count;
                }
            }
        }
    }
}

/// The path's times by cause. The longest piece of a cause is that of its longest row on the path.
fn path_times(
    path: &mut BTreeMap<Cause, Tally>,
    rows: &[AttributedWait],
    before: Share,
    open: Option<Cause>,
) {
    for row in rows.iter().filter(|row| row.path_ns > 0) {
        let tally = path.entry(row.cause).or_default();
        tally.ns = tally.ns.saturating_add(row.path_ns);
        tally.max = tally.max.max(row.max.min(row.path_ns));
    }
    if before.ns > 0 {
        let unknown = path.entry(Cause::Unknown).or_default();
        unknown.ns = unknown.ns.saturating_add(before.ns);
        unknown.count += before.count;
        unknown.max = unknown.max.max(before.ns);
    }
    path.retain(|_, tally| tally.ns > 0);
    for tally in path.values_mut() {
        tally.count = tally.count.max(1);
    }
    if let Some(tally) = open.and_then(|cause| path.get_mut(&cause)) {
        tally.open = true;
    }
}

fn coverage(whole: &Attributed, finish: &Finish, faults: &Faults) -> Coverage {
    let observed = whole
        .threads
        .iter()
        .fold(0u64, |sum, thread| sum.saturating_add(thread.wall));
    let unknown = whole
        .threads
        .iter()
        .filter_map(|thread| thread.causes.get(&Cause::Unknown))
        .fold(0u64, |sum, tally| sum.saturating_add(tally.ns));
    let mut lost: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
    for loss in &finish.losses {
        let entry = lost.entry(loss.class.phrase()).or_default();
        entry.0 = entry.0.saturating_add(loss.count);
        entry.1 = entry.1.saturating_add(loss.ns);
    }
    // The source counts dropped records, the threads' clocks say how much time they were: one loss, not two. Waits that nobody was
    // shown leave the same gap in a thread's numbers, and are reported as what they are.
    let unseen = lost.get(LossClass::Switch.phrase()).copied().unwrap_or_default();
    let dropped = (
        faults.lost_waits.0.saturating_sub(unseen.0),
        faults.lost_waits.1.saturating_sub(unseen.1),
    );
    if dropped.0 > 0 {
        let entry = lost.entry(LossClass::WaitRecord.phrase()).or_default();
        *entry = (entry.0.max(dropped.0), entry.1.max(dropped.1));
    }
    for (words, (count, ns)) in [
        ("contradictory records", faults.contradictory),
        ("stack samples that arrived too late", (faults.late_askers, 0)),
        (
            "threads whose drops the BPF programs count differently",
            faults.unequal_losses,
        ),
        ("threads whose exit was not observed", faults.endless),
    ] {
        if count > 0 {
            lost.insert(words, (count, ns));
        }
    }
    Coverage {
        observed,
        attributed: observed.saturating_sub(unknown),
        unknown,
        lost: lost
            .into_iter()
            .map(|(words, (count, ns))| (words.to_owned(), count, ns))
            .collect(),
        not_measured: finish
            .not_measured
            .iter()
            .map(|missing| (missing.what.clone(), missing.why.clone(), missing.fix.clone()))
            .collect(),
        own_cost: finish.own_cost,
        budget: finish.budget.clone(),
    }
}

/// What interrupts took was not seen but measured for moments of the same time.
fn measured_interrupts(wait: &mut AttributedWait) {
    /// One part in this many may be wrong: as much as measurements of one second to the next were seen to differ.
    const WRONG: Ns = 4;
    if wait.cause == Cause::CpuInterrupt {
        wait.how = How::Sampled;
        wait.error = wait.error.max(wait.ns / WRONG);
    }
}
