//! Predictions over whatever a machine may do.

use super::classifier;
use super::simulator::{Machine, Step};
use crate::attribution::Attribution;
use crate::prediction::TOGETHER;
use holdup_evidence::{Event, Ns, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::prediction::Question;
use proptest::prelude::*;

/// CPUs that are enough for every thread of the simulator.
const ENOUGH: usize = 16;

fn predicted(machine: &Machine, cpus: usize) -> Attributed {
    let question = Question {
        cpus: u32::try_from(cpus).expect("few"),
        together: &[],
    };
    let mut attribution = Attribution::with(classifier()).predicting(question);
    for event in &machine.events {
        attribution.push(event);
    }
    attribution.finish(&machine.finish(), &SystemFacts::default())
}

/// Whether several threads of CMD end at nearly one instant. Which of them its end waited for no record says: the path is that of the last,
/// and a prediction takes CMD's first thread, which ends a process more often than any other. Only where they are one do the two agree.
fn end_together(machine: &Machine, elapsed: Ns) -> bool {
    let ends = || {
        machine.events.iter().filter_map(|event| match event {
            Event::End(end) => Some((end.task.pid, end.at)),
            _ => None,
        })
    };
    let cmd = machine.events.iter().find_map(|event| match event {
        Event::Start(start) => Some(start.task.pid),
        _ => None,
    });
    let last = ends().map(|(_, at)| at).max().unwrap_or(0);
    ends()
        .filter(|(pid, at)| Some(*pid) == cmd && at + elapsed / TOGETHER >= last)
        .count()
        > 1
}

/// Whether CMD's last thread has ended, so that there is an end to predict.
fn ended(run: &Attributed) -> bool {
    run.path.values().all(|tally| !tally.open)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// The run itself is replayed as it was, and without a wait it never takes longer.
    #[test]
    fn as_it_was_it_takes_what_it_took(cpus in 1usize..4, steps in proptest::collection::vec(any::<Step>(), 1..400)) {
        let machine = Machine::run(cpus, &steps);
        let run = predicted(&machine, cpus);
        let predictions = run.predictions.as_ref().expect("asked for");
        let not = predictions.not.as_deref();
        prop_assert!(not.is_none_or(|not| not == "the command had not ended"), "{not:?}");
        prop_assert!(predictions.list.iter().all(|one| one.elapsed_ns <= run.elapsed));
    }

    /// With a CPU for each thread, what is not on the path gains nothing.
    #[test]
    fn what_is_off_the_path_gains_nothing(steps in proptest::collection::vec(any::<Step>(), 1..400)) {
        let machine = Machine::run(ENOUGH, &steps);
        let run = predicted(&machine, ENOUGH);
        prop_assume!(ended(&run));
        let predictions = run.predictions.as_ref().expect("asked for");
        // CPU time is split by samples, of which a run this short has hardly any.
        for one in predictions.list.iter().filter(|one| !one.without.on_cpu()) {
            let rows = run.waits.iter().filter(|row| row.cause == one.without);
            let cost: u64 = rows.map(|row| row.cost_ns()).sum();
            let gain = run.elapsed - one.elapsed_ns;
            prop_assert!(cost > 0 || gain <= 1 || end_together(&machine, run.elapsed), "{one:?} gains {gain} of {}", run.elapsed);
        }
    }
}
