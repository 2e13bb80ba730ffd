//! How throughput and latency change as workers are added, and whether the workers are in each other's way: `holdup scale`.
//!
//! In: slices, each so many workers doing the same again and again, of the subject and of a control that shares nothing; what was
//! observed of a slice with one worker and of one with many. Out: the report's [`Scaling`]: points with intervals, the verdict
//! ([`verdict`]), the fitted law ([`usl`]), and words.

mod grown;
pub mod lengths;
mod usl;
mod verdict;
mod words;

pub use grown::{SliceWaits, WORKER};

use crate::comparison::chance::Draws;
use holdup_evidence::Ns;
use holdup_model::report::{PerOperation, Scaling, ScalingPoint};
use lengths::{Counted, percentile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use verdict::Judged;

/// So many workers for a while.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// How many.
    pub workers: u32,
    /// Operations of all.
    pub operations: u64,
    /// Each worker's time from its begin to its end, added up.
    pub wall: Ns,
    /// Of that, on a CPU.
    pub cpu: Ns,
    /// Of the time on a CPU, as the kernel's clock ticks found it: in their own code.
    pub ticks_user: Ns,
    /// And in the kernel.
    pub ticks_kernel: Ns,
    /// Ready to run, without a CPU.
    pub queued: Ns,
    /// Waiting; of workers that gave up their CPU.
    pub blocked: Ns,
    /// How long operations took.
    pub lengths: Vec<Counted>,
}

/// All that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What a worker does, in words: `reads of 4096 bytes from /dev/urandom`.
    pub what: String,
    /// One of that.
    pub unit: String,
    /// Whether each is a program of its own.
    pub programs: bool,
    /// What the control does, in words.
    pub control_what: String,
    /// CPUs that the workers may use.
    pub cpus: u32,
    /// What the order was drawn with.
    pub seed: u64,
    /// Slices of the subject, in any order.
    pub subject: Vec<Slice>,
    /// Of the control.
    pub control: Vec<Slice>,
    /// What is to be kept in mind.
    pub notes: Vec<String>,
}

/// One arm at one number of workers: a value for each repeat, nanoseconds an operation.
#[derive(Debug, Clone, Default)]
struct Arm {
    programs: bool,
    /// Operations a second.
    rates: Vec<f64>,
    cpu: Vec<f64>,
    queued: Vec<f64>,
    blocked: Vec<f64>,
    all: Vec<f64>,
    /// The part of CPU time in the kernel, of all repeats together.
    kernel_share: f64,
    operations: u64,
    lengths: Vec<Counted>,
}

/// Both arms at one number of workers.
#[derive(Debug)]
struct At<'a> {
    workers: u32,
    subject: &'a Arm,
    control: &'a Arm,
}

/// A slice that is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// So many workers.
    pub workers: u32,
    /// Of the control.
    pub control: bool,
}

/// All that is to be measured, in an order that is drawn: what changes on the machine meanwhile then meets all points alike.
#[must_use]
pub fn order(workers: &[u32], repeats: u32, seed: u64) -> Vec<Turn> {
    let both = |workers: &u32| {
        [false, true].map(|control| Turn {
            workers: *workers,
            control,
        })
    };
    let once: Vec<Turn> = workers.iter().flat_map(both).collect();
    let mut all = once.repeat(repeats as usize);
    let count = all.len();
    Draws::new(seed).shuffle(&mut all, count);
    all
}

/// The middle value; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => (sorted[even / 2 - 1] + sorted[even / 2]) / 2.0,
    }
}

/// Where the true median lies: between two of the values, as far inwards as still leaves out at most 5 % (the sign test's interval;
/// Thompson, Ann. Math. Statist. 7, 1936). Of five values or fewer it is their whole range, and less sure.
fn interval_of_median(values: &[f64]) -> [f64; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    if count == 0 {
        return [0.0; 2];
    }
    let (mut inwards, mut way, mut left_out) = (0, 1.0_f64, 0.0_f64);
    let all = 2.0_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    // So many of `all` ways have at most `inwards` values on one side.
    while inwards < count / 2 {
        left_out += 2.0 * way / all;
        if left_out > 0.05 {
            break;
        }
        inwards += 1;
        way = way * (count - inwards + 1) as f64 / inwards as f64;
    }
    let from = inwards.saturating_sub(1);
    [sorted[from], sorted[count - 1 - from]]
}

/// Puts it all together. `seen`: one worker, and many.
#[must_use]
pub fn judge(measured: &Measured, seen: Option<&[SliceWaits<'_>; 2]>) -> Scaling {
    let subject = arms(&measured.subject, measured.programs);
    let control = arms(&measured.control, false);
    let nothing = Arm::default();
    let all: Vec<At<'_>> = subject
        .iter()
        .map(|(workers, arm)| At {
            workers: *workers,
            subject: arm,
            control: control.get(workers).unwrap_or(&nothing),
        })
        .collect();
    let (fit, no_fit) = fitted(&all, measured);
    let judged = match (all.first(), all.last()) {
        (Some(one), Some(many)) if all.len() > 1 => {
            verdict::judge(one, many, measured.cpus, measured.seed, seen)
        }
        _ => Judged {
            verdict: holdup_model::report::ScalingVerdict::Scales,
            on: None,
            on_cpu: false,
        },
    };
    let points: Vec<ScalingPoint> = all
        .iter()
        .map(|at| point(at, &all[0], fit.as_ref().filter(|_| at.workers <= measured.cpus)))
        .collect();
    let words = words::words(measured, &points, &judged);
    Scaling {
        sigma: fit.map(|fit| fit.sigma_interval),
        kappa: fit.map(|fit| fit.kappa_interval),
        fit: fit.map(|fit| [fit.sigma, fit.kappa]),
        no_fit,
        verdict: judged.verdict,
        contends_on: judged.on.as_ref().map(|on| on.name.clone()),
        contends_cause: judged.on.as_ref().map(|on| on.cause),
        what: measured.what.clone(),
        unit: measured.unit.clone(),
        control: measured.control_what.clone(),
        cpus: measured.cpus,
        repeats: all
            .iter()
            .map(|at| at.subject.rates.len() as u32)
            .min()
            .unwrap_or(0),
        seed: measured.seed,
        words,
        notes: measured.notes.clone(),
        points,
    }
}

/// The law, or why there is none.
fn fitted(all: &[At<'_>], measured: &Measured) -> (Option<usl::Fit>, Option<String>) {
    let rates: Vec<usl::Rates> = all
        .iter()
        .filter(|at| at.workers <= measured.cpus)
        .map(|at| usl::Rates {
            workers: at.workers,
            subject: at.subject.rates.clone(),
            control: at.control.rates.clone(),
        })
        .collect();
    let few = rates.len() < usl::LEAST_POINTS;
    match usl::fit(&rates, measured.seed) {
        Some(fit) => (Some(fit), None),
        None if few => {
            let cpus = match measured.cpus {
                1 => "1 CPU".to_owned(),
                more => format!("{more} CPUs"),
            };
            let why = format!(
                "no sigma and kappa: a fit needs {} numbers of workers, 1 among them, that are no more than the CPUs; here are {} on {cpus}",
                usl::LEAST_POINTS,
                rates.len(),
            );
            (None, Some(why))
        }
        None => (
            None,
            Some("no sigma and kappa: at one of the points nothing was done in time".to_owned()),
        ),
    }
}

fn arms(slices: &[Slice], programs: bool) -> BTreeMap<u32, Arm> {
    let mut arms: BTreeMap<u32, Arm> = BTreeMap::new();
    let mut ticks: BTreeMap<u32, (Ns, Ns)> = BTreeMap::new();
    for slice in slices {
        let arm = arms.entry(slice.workers).or_default();
        arm.programs = programs;
        let operations = slice.operations.max(1) as f64;
        let each = |ns: Ns| ns as f64 / operations;
        let seconds = slice.wall as f64 / f64::from(slice.workers.max(1)) / 1e9;
        let rate = slice.operations as f64 / seconds;
        arm.rates.push(if rate.is_finite() { rate } else { 0.0 });
        arm.cpu.push(each(slice.cpu));
        arm.queued.push(each(slice.queued));
        arm.blocked.push(each(slice.blocked));
        arm.all.push(each(slice.wall));
        arm.operations += slice.operations;
        add(&mut arm.lengths, &slice.lengths);
        let (user, kernel) = ticks.entry(slice.workers).or_default();
        *user += slice.ticks_user;
        *kernel += slice.ticks_kernel;
    }
    // A short slice may have met no tick: then what all of them met tells.
    let whole = ticks
        .values()
        .fold((0, 0), |(a, b), (user, kernel)| (a + user, b + kernel));
    for (workers, arm) in &mut arms {
        let own = ticks.get(workers).copied().unwrap_or_default();
        let (user, kernel) = if own.0 + own.1 > 0 { own } else { whole };
        arm.kernel_share = match user + kernel {
            0 => 1.0,
            sum => kernel as f64 / sum as f64,
        };
    }
    arms
}

fn add(to: &mut Vec<Counted>, more: &[Counted]) {
    for (bucket, count) in more {
        match to.iter_mut().find(|(known, _)| known == bucket) {
            Some((_, sum)) => *sum += count,
            None => to.push((*bucket, *count)),
        }
    }
}

fn each(arm: &Arm) -> PerOperation {
    PerOperation {
        user_ns: arm.cpu() * (1.0 - arm.kernel_share),
        kernel_ns: arm.cpu() * arm.kernel_share,
        queued_ns: arm.queued(),
        blocked_ns: arm.blocked(),
        all_ns: arm.all(),
    }
}

fn point(at: &At<'_>, one: &At<'_>, fit: Option<&usl::Fit>) -> ScalingPoint {
    let rate = |arm: &Arm| median(&arm.rates);
    let alone = rate(one.subject);
    let machine = rate(at.control) / rate(one.control);
    ScalingPoint {
        workers: at.workers,
        throughput: rate(at.subject),
        p50_ns: percentile(&at.subject.lengths, 50),
        p99_ns: percentile(&at.subject.lengths, 99),
        control: rate(at.control),
        throughput_interval: interval_of_median(&at.subject.rates),
        control_interval: interval_of_median(&at.control.rates),
        control_p50_ns: percentile(&at.control.lengths, 50),
        fitted: fit
            .map(|fit| alone * machine * fit.relative(at.workers))
            .filter(|rate| rate.is_finite()),
        ideal: alone * f64::from(at.workers) / f64::from(one.workers.max(1)),
        operations: at.subject.operations,
        each: each(at.subject),
        control_each: each(at.control),
    }
}

#[cfg(test)]
mod tests;
