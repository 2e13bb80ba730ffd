//! Scales, cpu-bound or contends: by what grows for each operation as workers are added, beyond the control.
//!
//! Not by the clock: a machine that is busy with others makes everything slower. Judged are times that the kernel counts for each
//! worker: on a CPU, ready and without one, waiting. One operation's time on a CPU is the same however busy the machine is, and a
//! worker that never gave up its CPU never waited. What the machine itself does to CPU time (two hardware threads share a core, all
//! share caches) the control shows, and more than a core shared by two can explain is believed without another sign; less only where
//! the growth was seen in a function that spins.
//!
//! In: slices of both arms at one worker and at many; what was seen to grow. Out: the verdict, and what it rests on.

use super::grown::{self, Grown, SliceWaits, grown};
use super::usl::{drawn_median, interval};
use super::{Arm, At, median};
use crate::comparison::chance::Draws;
use holdup_evidence::Cause;
use holdup_model::report::ScalingVerdict;

/// Growth counts from this part of what an operation takes of CPU and waiting when there is one worker: what is less does not
/// change what a person would do.
const NOTABLE: f64 = 0.25;

/// Two hardware threads of a core slow each other by at most this factor, and what a worker does may suffer where the control does
/// not: growth of CPU time below it is no proof.
const SHARED_CORE: f64 = 2.0;

/// A program's waits for its own children are not known by counters; where the CPUs are so busy with all of it, they are what is short.
const BUSY: f64 = 0.9;

/// Workers who wait for a CPU for so much of an operation have too few of them, whoever else uses them.
const MIN_WAITING_SHARE: f64 = 0.5;

/// How often repeats are drawn again for an interval.
const DRAWN: usize = 500;

/// The verdict and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: ScalingVerdict,
    /// What they contend for.
    pub(super) on: Option<Grown>,
    /// Of contention: whether it is spun for rather than waited for.
    pub(super) on_cpu: bool,
}

/// A figure that is made of medians, with what takes the median of repeats.
type Statistic<'a> = dyn Fn(&mut dyn FnMut(&[f64]) -> f64) -> f64 + 'a;

/// Judges many workers beside one. `cpus` are those that they may use.
pub(super) fn judge(
    one: &At<'_>,
    many: &At<'_>,
    cpus: u32,
    seed: u64,
    seen: Option<&[SliceWaits<'_>; 2]>,
) -> Judged {
    let mut draws = Draws::new(seed);
    let alone = one.subject.cpu() + one.subject.blocked();
    let waits = seen
        .map(|[few, many]| grown(few, many, false))
        .unwrap_or_default();
    let spins = seen.map(|[few, many]| grown(few, many, true)).unwrap_or_default();
    let low = |draws: &mut Draws, of: &Statistic<'_>| {
        let mut values: Vec<f64> = (0..DRAWN)
            .map(|_| of(&mut |values| drawn_median(values, draws)))
            .collect();
        interval(&mut values).map_or(0.0, |[low, _]| low)
    };

    let blocked = low(&mut draws, &|middle| {
        let control_alone = (one.control.cpu() + one.control.blocked()).max(1.0);
        let control = middle(&many.control.blocked) - middle(&one.control.blocked);
        middle(&many.subject.blocked)
            - middle(&one.subject.blocked)
            - control.max(0.0) * alone / control_alone
    });
    // Counters of a program do not tell its own children's queueing from waiting: there the waits must have been seen.
    let of_waits: f64 = waits.iter().map(|one| one.ns).sum();
    let cpu_busy = many.subject.busy(many.workers);
    let real = match (many.subject.programs, seen) {
        (false, _) => true,
        (true, Some(_)) => of_waits > NOTABLE * alone,
        (true, None) => cpu_busy < BUSY * f64::from(cpus),
    };
    if blocked > NOTABLE * alone && real {
        return Judged {
            verdict: ScalingVerdict::Contends,
            on: waits.into_iter().next(),
            on_cpu: false,
        };
    }

    let kernel = low(&mut draws, &|middle| {
        let share = |arm: &Arm| arm.kernel_share;
        let control = middle(&many.control.cpu) / middle(&one.control.cpu).max(1.0);
        let before = middle(&one.subject.cpu) * share(one.subject) * control.max(1.0);
        middle(&many.subject.cpu) * share(many.subject) / before.max(1.0)
    });
    let kernel_alone = one.subject.cpu() * one.subject.kernel_share;
    let notable = (kernel - 1.0) * kernel_alone > NOTABLE * alone;
    let spun: f64 = spins.iter().map(|one| one.ns).sum();
    let seen_spinning = spun > NOTABLE / 2.0 * alone;
    if notable && (seen_spinning || kernel > SHARED_CORE) {
        return Judged {
            verdict: ScalingVerdict::Contends,
            on: spins.into_iter().next().or_else(|| hottest(seen)),
            on_cpu: true,
        };
    }

    let queued = low(&mut draws, &|middle| {
        middle(&many.subject.queued) - middle(&one.subject.queued)
    });
    // Counters tell of a program's main thread alone.
    let queued = match seen {
        Some([few, many]) if many.programs => grown::queued(many) - grown::queued(few),
        _ => queued,
    };
    let short = queued > NOTABLE * alone || many.subject.queued() > MIN_WAITING_SHARE * many.subject.all();
    Judged {
        verdict: match short || (many.subject.programs && cpu_busy >= BUSY * f64::from(cpus)) {
            true => ScalingVerdict::CpuBound,
            false => ScalingVerdict::Scales,
        },
        on: None,
        on_cpu: false,
    }
}

/// Where most kernel time of many workers went, where no spinning was seen.
fn hottest(seen: Option<&[SliceWaits<'_>; 2]>) -> Option<Grown> {
    let [_, many] = seen?;
    let own = many.own().filter(|wait| wait.cause == Cause::CpuKernel);
    let wait = own.max_by_key(|wait| wait.ns)?;
    Some(Grown {
        cause: Cause::CpuKernel,
        name: wait.kernel_stack.first().unwrap_or(&wait.resource.name).clone(),
        ns: wait.ns as f64 / many.operations.max(1) as f64,
    })
}

/// What is a rate of many slices: the middle one.
impl Arm {
    pub(super) fn cpu(&self) -> f64 {
        median(&self.cpu)
    }

    pub(super) fn queued(&self) -> f64 {
        median(&self.queued)
    }

    pub(super) fn blocked(&self) -> f64 {
        median(&self.blocked)
    }

    pub(super) fn all(&self) -> f64 {
        median(&self.all)
    }

    /// How many CPUs all workers together kept busy.
    fn busy(&self, workers: u32) -> f64 {
        match self.all() {
            all if all > 0.0 => self.cpu() / all * f64::from(workers),
            _ => 0.0,
        }
    }
}
