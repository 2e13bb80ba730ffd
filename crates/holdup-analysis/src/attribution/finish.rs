//! The end of observation: closes what is open, reads the path, deals it out, and makes the whole.
//!
//! The elapsed time is that of the path: from the run's start to the end of CMD's last thread. CMD's parent
//! may see that end some nanoseconds earlier or later; [`Finish::ended`] counts only where no end was seen.

use super::fold::fold;
use super::ledger::{Ledger, Owner};
use super::path::{Key, Path, Share};
use super::people::{NameId, People};
use super::rows::{CauseSamples, Rows};
use super::what::{Role, WhatId, Whats};
use super::{Attribution, Faults, LastOfCmd, keys};
use crate::attributed::{Attributed, AttributedWait, Coverage, Tally, ThreadLedger, ThreadName};
use holdup_evidence::{Cause, Clock, Finish, LossClass, Ns, SystemFacts, ThreadId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Threads listed each for itself, from the contract.
const LISTED: usize = 200;

/// Makes the whole of a run.
pub(super) fn attributed(mut run: Attribution, finish: &Finish, facts: &SystemFacts) -> Attributed {
    close_endless(&mut run, finish.ended);
    run.complete_unfinished();
    let last = run.last_of_cmd.take();
    let mut path = match &last {
        Some(last) => last.path.clone(),
        None => super::thread::unknown_path(finish.started, finish.ended),
    };
    let elapsed = path.total();
    let open = last.and_then(|last| last.open);

    let (mut singles, folded) = std::mem::take(&mut run.ended).into_ledgers();
    let mut living: Vec<(ThreadId, Ledger)> = run
        .threads
        .drain()
        .map(|(id, thread)| (id, thread.ledger))
        .collect();
    living.sort_by_key(|(id, _)| *id);
    singles.extend(living);
    let mut ledgers: Vec<Ledger> = singles.into_iter().map(|(_, ledger)| ledger).collect();
    let mut folded: Vec<Ledger> = folded.into_values().collect();
    let before = deal_out(&mut path, &mut ledgers, &mut folded, &run.book.whats, elapsed);
    let ledgers = list(ledgers, folded, &mut run);

    let (by_process, by_run) = cpu_samples(&ledgers, &run.book.whats, &run.people);
    let rows = Rows {
        whats: &run.book.whats,
        people: &run.people,
        sights: &run.sights,
        user_stacks: &finish.user_stacks,
        facts,
        name_resource: run.classifier.name_resource,
        by_user_stack: run.classifier.by_user_stack,
        by_process: &by_process,
        by_run: &by_run,
    };
    let mut whole = Attributed {
        elapsed,
        ..Attributed::default()
    };
    for ledger in &ledgers {
        let who = name(ledger, &run.people);
        let rows = rows.of(ledger, &who, &mut whole.path);
        count_path(&mut whole.path, ledger, &rows, &run.book.whats);
        whole.threads.push(thread_ledger(ledger, who, &rows));
        whole.waits.extend(rows);
    }
    path_times(&mut whole.path, &whole.waits, before, open);
    whole.connections = run.network.connections(&run.people);
    whole.threads.sort_by_key(|thread| Reverse(thread.wall));
    whole
        .waits
        .sort_by_key(|row| (Reverse(row.ns), row.cause, row.asker.name.tid));
    whole.coverage = coverage(&whole, finish, &run.faults);
    whole
}

/// Threads whose end was lost: what they did since their last record is not known.
fn close_endless(run: &mut Attribution, ended: Ns) {
    let mut ids: Vec<ThreadId> = run.threads.keys().copied().collect();
    ids.sort_unstable();
    for id in ids {
        run.settle(id);
        let process = run.process_name(id);
        let Some(thread) = run.threads.get_mut(&id).filter(|thread| !thread.ended) else {
            continue;
        };
        let until = ended.max(thread.at);
        let clock = Clock {
            blocked: thread.clock.blocked.saturating_add(until - thread.at),
            ..thread.clock
        };
        let spent = thread.advance(&clock, until, None, true, process, &mut run.book);
        thread.close_pieces(until, true);
        thread.ledger.ended(until.saturating_sub(thread.born), 0);
        thread.ledger.open = true;
        run.faults.endless.0 += 1;
        run.faults.endless.1 = run.faults.endless.1.saturating_add(spent.lost);
        let of_cmd = Some(thread.identity.process) == run.cmd;
        if of_cmd && run.last_of_cmd.as_ref().is_none_or(|last| last.at <= until) {
            run.last_of_cmd = Some(LastOfCmd {
                at: until,
                path: thread.path.clone(),
                open: Some(Cause::Unknown),
            });
        }
    }
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
        let room = |of: &dyn Fn(&super::site::Site) -> u64| -> Vec<u64> {
            members
                .iter()
                .map(|(ledger, site)| of(&all[*ledger].sites[*site]))
                .collect()
        };
        let times = room(&|site| site.tally.ns.saturating_sub(site.on_path.ns));
        let counts = room(&|site| {
            let pieces = match whats.get(site.what).role {
                Role::CpuClass => site.samples,
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

/// At most [`LISTED`] ledgers of single threads, those that matter most to the run and then the longest
/// lived; the others by process name.
fn list(mut ledgers: Vec<Ledger>, folded: Vec<Ledger>, run: &mut Attribution) -> Vec<Ledger> {
    ledgers.sort_by_cached_key(|ledger| {
        let on_path = ledger.sites.iter().fold(0u64, |sum, site| {
            sum.saturating_add(site.on_path.ns)
                .saturating_add(site.on_path.handed_on)
        });
        Reverse((on_path, ledger.wall))
    });
    let rest = ledgers.split_off(ledgers.len().min(LISTED));
    let mut by_name = HashMap::new();
    for ledger in folded.into_iter().chain(rest) {
        fold(&mut by_name, ledger, &mut run.people, &mut run.book);
    }
    let mut many: Vec<(NameId, Ledger)> = by_name.into_iter().collect();
    many.sort_by_key(|(name, _)| *name);
    ledgers.extend(many.into_iter().map(|(_, ledger)| ledger));
    ledgers
}

fn cpu_samples(
    ledgers: &[Ledger],
    whats: &Whats,
    people: &People,
) -> (HashMap<NameId, CauseSamples>, CauseSamples) {
    let mut by_process: HashMap<NameId, CauseSamples> = HashMap::new();
    let mut by_run = CauseSamples::new();
    for ledger in ledgers {
        let process = match ledger.owner {
            Owner::Thread(identity) => people.process_name(identity.process),
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

fn name(ledger: &Ledger, people: &People) -> ThreadName {
    match &ledger.owner {
        Owner::Thread(identity) => people.describe(&people.named(identity)),
        Owner::Folded { process, pid } => ThreadName {
            pid: *pid,
            tid: 0,
            process: people.text(*process).to_owned(),
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
            Role::Queue | Role::Lost | Role::Interrupt | Role::Throttled => {
                path.entry(what.cause).or_default().count += site.on_path.count
            }
            // Counted by cause as their rows are made: a user stack may have told another.
            Role::Wait | Role::CpuClass => {}
            Role::Cpu => {
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
    // The source counts dropped records, the threads' clocks say how much time they were: one loss, not two.
    if faults.lost_waits.0 > 0 {
        let entry = lost.entry(LossClass::WaitRecord.phrase()).or_default();
        *entry = (entry.0.max(faults.lost_waits.0), entry.1.max(faults.lost_waits.1));
    }
    for (words, (count, ns)) in [
        ("contradictory records", faults.contradictory),
        ("stack samples that came too late", (faults.late_askers, 0)),
        (
            "threads whose losses the kernel side counts otherwise",
            faults.unequal_losses,
        ),
        ("threads whose end was not seen", faults.endless),
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
    }
}
