//! Properties over whatever a machine may do and a source may lose.

use super::simulator::{Machine, Step, Times};
use super::timeline::{path_truly, truly};
use super::{attribute, balances};
use holdup_evidence::{Cause, Event, Loss, LossClass, Ns, SystemFacts, ThreadId};
use holdup_model::attributed::{Attributed, AttributedWait};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(any::<Step>(), 1..400)
}

/// Rows by thread and cause; CPU time but for interrupts as one, because samples split it.
fn by_cause(run: &Attributed, time: fn(&AttributedWait) -> Ns) -> Times {
    let mut times = Times::new();
    for row in &run.waits {
        let cause = if row.cause.on_cpu() && row.cause != Cause::CpuInterrupt {
            Cause::CpuUser
        } else {
            row.cause
        };
        *times.entry((row.asker.name.tid, cause)).or_default() += time(row);
    }
    without_nothing(times)
}

fn without_nothing(mut times: Times) -> Times {
    times.retain(|_, ns| *ns > 0);
    times
}

/// Drops the events that `lost` says, as a full ring buffer would, and tells each thread's end what it lost.
fn drop_events(events: &[Event], lost: &[bool], starts_too: bool) -> Vec<Event> {
    let mut waits: BTreeMap<ThreadId, (Ns, u64)> = BTreeMap::new();
    let mut kept = Vec::new();
    for (event, lost) in events.iter().zip(lost.iter().cycle()) {
        match event {
            Event::Wait(wait) if *lost => {
                let entry = waits.entry(wait.thread).or_default();
                *entry = (entry.0 + wait.end - wait.start, entry.1 + 1);
            }
            Event::Start(start) if *lost && starts_too && start.thread != ThreadId(0) => {}
            Event::End(end) => {
                let mut end = end.clone();
                end.lost = waits.get(&end.thread).copied().unwrap_or_default();
                kept.push(Event::End(end));
            }
            other => kept.push(other.clone()),
        }
    }
    kept
}

fn lost(run: &Attributed, words: &str) -> Option<(u64, Ns)> {
    run.coverage
        .lost
        .iter()
        .find(|loss| loss.0 == words)
        .map(|loss| (loss.1, loss.2))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// The path found forwards is the one found by walking backwards, and so is what was handed on.
    #[test]
    fn forwards_is_backwards(cpus in 1usize..4, steps in steps()) {
        let machine = Machine::run(cpus, &steps);
        let run = attribute(&machine.events, &machine.finish(), &SystemFacts::default());
        let (path, handed_on) = machine.walk();
        prop_assert_eq!(run.elapsed, machine.elapsed());
        prop_assert_eq!(by_cause(&run, |row| row.path_ns), without_nothing(path));
        prop_assert_eq!(by_cause(&run, |row| row.handed_on_ns), without_nothing(handed_on));
        prop_assert!(run.waits.iter().all(|row| row.path_ns <= row.ns));
    }

    /// Each thread's ledger is its own time, and nothing is missing where nothing was lost.
    #[test]
    fn ledgers_are_the_threads_own_time(cpus in 1usize..4, steps in steps()) {
        let machine = Machine::run(cpus, &steps);
        let run = attribute(&machine.events, &machine.finish(), &SystemFacts::default());
        prop_assert_eq!(balances(&run), Ok(()));
        prop_assert_eq!(by_cause(&run, |row| row.ns), without_nothing(machine.own()));
        prop_assert_eq!(run.coverage.unknown, 0);
        prop_assert_eq!(&run.coverage.lost, &vec![]);
    }

    /// Time whose record was dropped is unknown, to the nanosecond; everything still adds up.
    #[test]
    fn dropped_waits_are_unknown_time(cpus in 1usize..4, steps in steps(), drops in proptest::collection::vec(any::<bool>(), 1..64)) {
        let machine = Machine::run(cpus, &steps);
        let events = drop_events(&machine.events, &drops, false);
        let run = attribute(&events, &machine.finish(), &SystemFacts::default());
        prop_assert_eq!(balances(&run), Ok(()));
        prop_assert_eq!(run.elapsed, machine.elapsed());
        let missing = events.iter().filter_map(|event| match event {
            Event::End(end) => Some(end.lost),
            _ => None,
        });
        let (ns, count) = missing.fold((0, 0), |sum, lost| (sum.0 + lost.0, sum.1 + lost.1));
        prop_assert_eq!(run.coverage.unknown, ns);
        prop_assert_eq!(lost(&run, "waits whose record was dropped"), (count > 0).then_some((count, ns)));
        prop_assert_eq!(lost(&run, "contradictory records"), None);
        prop_assert_eq!(lost(&run, "threads whose drops the BPF programs count differently"), None);
    }

    /// The same gap is reported as what it is where the source knows that it was shown nothing.
    #[test]
    fn what_was_not_shown_is_no_dropped_record(cpus in 1usize..4, steps in steps(), drops in proptest::collection::vec(any::<bool>(), 1..64)) {
        let machine = Machine::run(cpus, &steps);
        let events = drop_events(&machine.events, &drops, false);
        let missing = events.iter().filter_map(|event| match event {
            Event::End(end) => Some(end.lost),
            _ => None,
        });
        let (ns, count) = missing.fold((0, 0), |sum, lost| (sum.0 + lost.0, sum.1 + lost.1));
        let mut finish = machine.finish();
        finish.losses.push(Loss { class: LossClass::Switch, count, ns });
        let run = attribute(&events, &finish, &SystemFacts::default());
        prop_assert_eq!(run.coverage.unknown, ns);
        prop_assert_eq!(lost(&run, LossClass::WaitRecord.phrase()), None);
        prop_assert_eq!(lost(&run, LossClass::Switch.phrase()), Some((count, ns)));
    }

    /// Threads whose birth was not known are met all the same, and their names learned at their end.
    #[test]
    fn births_may_be_lost(cpus in 1usize..4, steps in steps(), drops in proptest::collection::vec(any::<bool>(), 1..64)) {
        let machine = Machine::run(cpus, &steps);
        let events = drop_events(&machine.events, &drops, true);
        let run = attribute(&events, &machine.finish(), &SystemFacts::default());
        prop_assert_eq!(balances(&run), Ok(()));
        prop_assert_eq!(run.elapsed, machine.elapsed());
        prop_assert!(run.threads.iter().all(|thread| thread.name.thread.starts_with('t')), "{:?}", run.threads);
        prop_assert_eq!(run.coverage.observed, machine.own().values().sum::<Ns>());
    }

    /// Waits are in the windows that they passed in, to the nanosecond; running and queueing are, taken together.
    #[test]
    fn windows_are_when_it_happened(cpus in 1usize..4, steps in steps(), unit in 1u64..2_000_000) {
        let machine = Machine::in_units(cpus, &steps, unit);
        let run = attribute(&machine.events, &machine.finish(), &SystemFacts::default());
        prop_assert_eq!(balances(&run), Ok(()));
        prop_assert_eq!(truly(&run, &machine), Ok(()));
    }

    /// The path is in the windows that it passed in.
    #[test]
    fn the_path_is_when_it_was(cpus in 1usize..4, steps in steps(), unit in 1u64..2_000_000) {
        let machine = Machine::in_units(cpus, &steps, unit);
        let mut events = machine.events.clone();
        events.retain(|event| !matches!(event, Event::WaitMemory(_)));
        for event in &mut events {
            if let Event::Wait(wait) = event {
                wait.memory_follows = false;
            }
        }
        let run = attribute(&events, &machine.finish(), &SystemFacts::default());
        prop_assert_eq!(balances(&run), Ok(()));
        prop_assert_eq!(path_truly(&run, &machine), Ok(()));
    }

    /// So they are where waits began before observation, and where records were lost: that time is unknown then.
    #[test]
    fn windows_balance_whatever_is_lost(
        cpus in 1usize..4, steps in steps(), unit in 1u64..2_000_000,
        drops in proptest::collection::vec(any::<bool>(), 1..64), earlier in any::<u32>(),
    ) {
        let machine = Machine::in_units(cpus, &steps, unit);
        let mut events = drop_events(&machine.events, &drops, true);
        let mut begun = std::collections::BTreeSet::new();
        for event in &mut events {
            if let Event::Wait(wait) = event && begun.insert(wait.thread) {
                wait.start = wait.start.saturating_sub(Ns::from(earlier));
            }
        }
        let run = attribute(&events, &machine.finish(), &SystemFacts::default());
        prop_assert_eq!(balances(&run), Ok(()));
    }

    /// Numbers that cannot be true neither stop it nor unbalance the books.
    #[test]
    fn contradictions_balance(cpus in 1usize..4, steps in steps(), lies in proptest::collection::vec((any::<u16>(), 0u8..6, prop_oneof![any::<u64>(), 0u64..5000]), 1..40)) {
        let machine = Machine::run(cpus, &steps);
        let mut events = machine.events.clone();
        for (at, kind, number) in lies {
            let at = at as usize % events.len();
            match (&mut events[at], kind) {
                (Event::Wait(wait), 0) => wait.clock.cpu = number,
                (Event::Wait(wait), 1) => wait.clock.blocked = number,
                (Event::Wait(wait), 2) => wait.start = number,
                (Event::Wait(wait), 3) => wait.end = number,
                (Event::Wait(wait), 4) => wait.seq = number as u32,
                (Event::Wait(wait), _) => wait.thread = ThreadId((number % 20) as u32),
                (Event::Start(start), 0) => start.at = number,
                (Event::Start(start), 1) => start.thread = ThreadId((number % 20) as u32),
                (Event::End(end), 0) => end.at = number,
                (Event::End(end), 1) => end.clock.queued = number,
                (Event::End(end), 2) => end.thread = ThreadId(number as u32),
                (Event::Asker(asker), 0) => asker.seq = number as u32,
                (_, 3) => { let event = events[at].clone(); events.push(event); }
                (_, 4) => { events.remove(at); if events.is_empty() { break; } }
                _ => {}
            }
        }
        let run = attribute(&events, &machine.finish(), &SystemFacts::default());
        // Lifetimes that are lies may add up to more than any number holds.
        if run.threads.iter().try_fold(0u64, |sum, thread| sum.checked_add(thread.wall)).is_some() {
            prop_assert_eq!(balances(&run), Ok(()));
        }
    }
}
