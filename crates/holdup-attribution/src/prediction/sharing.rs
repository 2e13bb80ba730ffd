//! How threads share CPUs, and what each piece of a run took of its share.
//!
//! In: the graph as it was seen. Out: for each piece of running how much CPU time a fair share would have been in the time that it took.
//! Where that is more than the CPU time it had, others than the run's threads were in its way, or a waking took its time; where
//! it is less, it was favoured. Either way a replay that asks for as much of a fair share, and no less time than the CPU time that it had,
//! gives the time that was seen, and gives less where fewer threads share.

use super::record::{Graph, Step};
use holdup_evidence::Ns;

/// The share of a CPU that each ready thread of each pool has; `queueing`: what is left of their waiting for CPUs, 1 for all.
pub(super) fn rates(graph: &Graph, ready: &[usize], queueing: f64, rates: &mut Vec<f64>) {
    let all: usize = ready.iter().sum();
    let cpus = f64::from(graph.question.cpus.max(1));
    rates.clear();
    for (size, ready) in graph.pools.iter().zip(ready) {
        let of_pool = size / (*ready).max(1) as f64;
        let of_all = cpus / all.max(1) as f64;
        let rate = of_pool.min(of_all).min(1.0);
        rates.push(1.0 / (1.0 + queueing * (1.0 / rate - 1.0)));
    }
}

/// Of each thread's steps: the fair share that it had, in nanoseconds; 0 of waits.
pub(super) fn demands(graph: &Graph) -> Vec<Vec<f64>> {
    let mut demands: Vec<Vec<f64>> = graph
        .lines
        .iter()
        .map(|line| vec![0.0; line.steps.len()])
        .collect();
    let mut borders: Vec<(Ns, bool, usize, usize)> = Vec::new();
    for (index, line) in graph.lines.iter().enumerate() {
        for (at, step) in line.steps.iter().enumerate() {
            if let Step::Run { end, length, .. } = step {
                borders.push((end.saturating_sub(*length), true, index, at));
                borders.push((*end, false, index, at));
            }
        }
    }
    borders.sort_unstable();
    let mut ready = vec![0usize; graph.pools.len()];
    let mut shared = vec![0.0f64; graph.pools.len()];
    let mut rate = Vec::new();
    let mut now = graph.start;
    for (at, begins, line, step) in borders {
        if at > now {
            rates(graph, &ready, 1.0, &mut rate);
            for (shared, rate) in shared.iter_mut().zip(&rate) {
                *shared += rate * (at - now) as f64;
            }
            now = at;
        }
        let pool = graph.lines[line].pool;
        let demand = &mut demands[line][step];
        if begins {
            ready[pool] += 1;
            *demand = shared[pool];
        } else {
            ready[pool] = ready[pool].saturating_sub(1);
            *demand = shared[pool] - *demand;
        }
    }
    demands
}
