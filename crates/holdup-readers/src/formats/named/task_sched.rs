//! `/proc/PID/sched`: how long a task ran and how long it waited for a CPU.
//!
//! Out: both, and the longest wait. Times are milliseconds.

use super::{Names, Reader, has, seconds};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "task-sched",
    Family::Host,
    |head| {
        has(
            head,
            &[
                "se.exec_start",
                "se.vruntime",
                "se.sum_exec_runtime",
                "nr_switches",
            ],
            3,
        )
    },
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("/proc/PID/sched");

/// The part of its time that a task may wait for a CPU before that holds it up.
const MIN_WAITING_SHARE: f64 = 0.2;

fn judge(names: &Names) -> Vec<Statement> {
    // Kernels from 5.16 on have the short names.
    let of = |name: &str| {
        let long = format!("se.statistics.{name}");
        names.number(&long).or_else(|| names.number(name))
    };
    let Some((ran, waited)) = names.number("se.sum_exec_runtime").zip(of("wait_sum")) else {
        return Vec::new();
    };
    let heading = names.all.first().map_or("", |(name, _, _)| name.as_str());
    let task = heading
        .split_once(", #threads")
        .map_or("the task", |(task, _)| task);
    let task = if task.contains('(') && !task.ends_with(')') {
        format!("{task})")
    } else {
        task.to_owned()
    };
    let ns = |ms: f64| seconds(ms / 1e3);
    let share = waited / (waited + ran).max(1.0);
    let kind = match share >= MIN_WAITING_SHARE && waited >= 1_000.0 {
        true => StatementKind::Stalled,
        false => StatementKind::WithinNorm,
    };
    let longest = of("wait_max").map_or_else(String::new, |ms| format!(", the longest {}", duration(ns(ms))));
    let text = format!(
        "{task} waited {} for a CPU and ran {}: {:.0} % of that time it waited{longest} (from {:.0} % on it is much)",
        duration(ns(waited)),
        duration(ns(ran)),
        share * 100.0,
        MIN_WAITING_SHARE * 100.0
    );
    vec![Statement {
        ns: Some(ns(waited)),
        share: Some(share),
        ..names.say(kind, "se.sum_exec_runtime", text)
    }]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn a_task_that_waits_more_than_it_runs_and_one_that_does_not() {
        let of = |waited: &str| {
            let text = format!(
                "java (312, #threads: 88)\n-------\nse.exec_start : 123123.1\nse.vruntime : 12.1\nse.sum_exec_runtime : 120000.1\n\
                 se.statistics.wait_sum : {waited}\nse.statistics.wait_max : 812.3\nnr_switches : 12\n"
            );
            read_text("s", text.as_bytes()).observed.statements.remove(0)
        };
        let one = of("480000.3");
        assert_eq!(one.kind, StatementKind::Stalled);
        assert!(
            one.text.starts_with("java (312) waited 8 min 0 s for a CPU and ran 2 min 0 s: 80 % of that time it waited, the longest 812 ms"),
            "{}",
            one.text
        );
        assert_eq!(of("480.3").kind, StatementKind::WithinNorm);
    }
}
