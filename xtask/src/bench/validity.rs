//! Whether a measured run counts: a tool that sees less is cheaper, so what it saw is checked against the kernel.

use crate::report::{Report, Thread};

/// How far the report's blockings may be from the kernel's, as a share. A waking that comes while the thread is on its
/// way off the CPU is a voluntary switch by the kernel's count, and a wait of no length, which the report has not: with
/// many writers on two busy CPUs that is one in a hundred.
const BLOCKINGS_TOLERANCE: f64 = 0.02;

/// And in any case: whether a thread's last switch is in its process's usage depends on who reaps it when. This is for
/// each thread.
const BLOCKINGS_SLACK: u64 = 1;

/// Share of the elapsed time on a CPU from which a thread is busy and must have stacks.
const BUSY: f64 = 0.1;

/// Says why a run does not count.
///
/// `blockings` are those of the wrapped command; the wrapper itself is CMD, and is left out of the report's sum.
pub(super) fn check(report: &Report, blockings: u64) -> Result<(), String> {
    let wrapper = report.subject.pids.first().copied();
    let observed = || report.threads.iter().filter(|thread| Some(thread.pid) != wrapper);

    let seen: u64 = observed().map(blocked).sum();
    let threads: u64 = report.threads.iter().map(|thread| thread.threads).sum();
    let tolerance = (blockings as f64 * BLOCKINGS_TOLERANCE) as u64 + BLOCKINGS_SLACK * threads;
    if seen.abs_diff(blockings) > tolerance {
        return Err(format!(
            "the report has {seen} blockings, the kernel counted {blockings}"
        ));
    }
    for thread in observed() {
        let busy = on_cpu_ns(thread) as f64 >= BUSY * report.subject.wall_ns as f64;
        if busy && !has_stack(report, thread) {
            return Err(format!("thread {} was busy and has no stack", thread.tid));
        }
    }
    Ok(())
}

/// How often a thread blocked: the pieces of everything but running and being ready to.
fn blocked(thread: &Thread) -> u64 {
    let causes = thread.causes.iter();
    causes
        .filter(|cause| !cause.cause.starts_with("cpu.") && !cause.cause.starts_with("sched."))
        .map(|cause| cause.count)
        .sum()
}

fn on_cpu_ns(thread: &Thread) -> u64 {
    thread
        .causes
        .iter()
        .filter(|cause| cause.cause.starts_with("cpu."))
        .map(|cause| cause.ns)
        .sum()
}

fn has_stack(report: &Report, thread: &Thread) -> bool {
    let mut waits = report.waits.iter();
    waits.any(|wait| {
        wait.asker.pid == thread.pid && wait.asker.tid == thread.tid && !wait.asker.stack.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::Report;

    /// A wrapper (pid 10) and one busy thread (11) that blocked 1,000 times.
    fn report(stack: &str) -> Report {
        let text = format!(
            r#"{{"schema": "holdup.report/1", "subject": {{"pids": [10, 11], "wall_ns": 1000, "exit": 0}}, "causes": [], "findings": [],
            "threads": [
              {{"pid": 10, "tid": 10, "causes": [{{"cause": "process.child", "ns": 990, "share": 0.99, "count": 500}}]}},
              {{"pid": 11, "tid": 11, "causes": [
                {{"cause": "ipc.pipe", "ns": 400, "share": 0.4, "count": 1000}},
                {{"cause": "cpu.kernel", "ns": 500, "share": 0.5, "count": 1001}},
                {{"cause": "sched.runqueue", "ns": 100, "share": 0.1, "count": 800}}]}}],
            "waits": [{{"cause": "ipc.pipe", "ns": 400, "max_ns": 1, "max_started_boot_ns": 0,
              "asker": {{"pid": 11, "tid": 11, "frame": null, "module": null, "stack": {stack}}}}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_run_that_saw_what_the_kernel_counted_counts() {
        assert_eq!(check(&report("[{}]"), 1_000), Ok(()));
        assert_eq!(check(&report("[{}]"), 1_020), Ok(()));
    }

    #[test]
    fn one_that_saw_less_or_has_no_stack_does_not() {
        assert!(
            check(&report("[{}]"), 1_030)
                .unwrap_err()
                .contains("1000 blockings")
        );
        assert!(check(&report("[{}]"), 970).unwrap_err().contains("counted 970"));
        assert!(check(&report("[]"), 1_000).unwrap_err().contains("no stack"));
    }
}
