//! What is said of it: the verdict in plain words, with the times that it rests on.

use super::Measured;
use super::verdict::Judged;
use holdup_model::report::{ScalingPoint, ScalingVerdict};

/// Many workers who do so many times the work of the first point's are of use, though they contend.
const MORE: f64 = 1.25;

/// One worker has a CPU when it wants one, but for the interrupts and short programs of a machine at rest: from this part of
/// an operation on, it has to share.
const DISTURBED: f64 = 0.25;

/// The sentences, the answer first.
pub(super) fn words(measured: &Measured, points: &[ScalingPoint], judged: &Judged) -> Vec<String> {
    let (Some(one), Some(many)) = (points.first(), points.last()) else {
        return vec!["Nothing was measured.".to_owned()];
    };
    let what = &measured.what;
    let unit = &measured.unit;
    let cpus = counted(measured.cpus, "CPU");
    if points.len() == 1 {
        return vec![format!(
            "One point shows nothing about more workers: {what}, {} a {unit}.",
            time(one.each.all_ns)
        )];
    }
    let (few, most) = (counted(one.workers, "worker"), counted(many.workers, "worker"));
    let first = match (judged.verdict, &judged.on) {
        (ScalingVerdict::Contends, Some(on)) if !on.name.is_empty() && judged.on_cpu => {
            format!(
                "They contend: {what} use more kernel time with more workers, in {}.",
                on.name
            )
        }
        (ScalingVerdict::Contends, Some(on)) if !on.name.is_empty() => {
            format!(
                "They contend: {what} wait for each other, {}: {}.",
                on.cause.phrase(),
                on.name
            )
        }
        (ScalingVerdict::Contends, Some(on)) => {
            format!("They contend: {what} wait for each other, {}.", on.cause.phrase())
        }
        (ScalingVerdict::Contends, None) => {
            format!("They contend: {what} block each other; the reason is unknown.")
        }
        (ScalingVerdict::CpuBound, _) => {
            format!("They do not contend: {what} are short of CPUs, and do not block each other.")
        }
        (ScalingVerdict::Scales, _) => format!("They scale: {what} do not block each other."),
    };
    let grew = |what: &str, of: fn(&ScalingPoint) -> f64| {
        format!("{} {what} ({few}: {})", time(of(many)), time(of(one)))
    };
    let kernel = grew("in the kernel", |at| at.each.kernel_ns);
    let waiting = grew("of waiting", |at| at.each.blocked_ns);
    let queued = grew("without a CPU", |at| at.each.queued_ns);
    let running = grew("on one", |at| at.each.user_ns + at.each.kernel_ns);
    let parts = match judged.verdict {
        ScalingVerdict::Contends if judged.on_cpu => [kernel, waiting, queued],
        ScalingVerdict::Contends => [waiting, queued, running],
        ScalingVerdict::CpuBound | ScalingVerdict::Scales => [queued, running, waiting],
    };
    let second = format!(
        "With {most} on {cpus} a {unit} takes {}: {}.",
        time(many.each.all_ns),
        parts.join(", ")
    );
    let times = |rate: f64, of: f64| match of {
        of if of > 0.0 => format!("{:.2} times", rate / of),
        _ => "no".to_owned(),
    };
    let more = many.throughput > MORE * one.throughput;
    let still = match judged.verdict {
        ScalingVerdict::Contends if more => "still do",
        _ => "do",
    };
    let third = format!(
        "{most} {still} {} the work of {few} in the same time; of the control ({}) {}.",
        times(many.throughput, one.throughput),
        measured.control_what,
        times(many.control, one.control),
    );
    let mut all = vec![first, second, third];
    if one.each.queued_ns > DISTURBED * one.each.all_ns {
        all.push(format!(
            "Other programs use these CPUs: {few} alone was runnable without a CPU for {} of the {} of a \
             {unit}, so these factors are unreliable. Measure again on an idle machine.",
            time(one.each.queued_ns),
            time(one.each.all_ns)
        ));
    }
    all
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A time with about three digits; views have words for whole nanoseconds, and these are parts of them.
fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1.0 => "0 ns".to_owned(),
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e4 => format!("{:.1} µs", ns / 1e3),
        _ if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        _ if ns < 1e8 => format!("{:.1} ms", ns / 1e6),
        _ if ns < 1e9 => format!("{:.0} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}
