//! `/proc/stat`: how long each CPU was idle, and how long the hypervisor kept it from this machine.
//!
//! In: two readings, before CMD began and after it ended. Out: one [`CpuTime`] a CPU, the difference. The kernel
//! counts in ticks of `USER_HZ`, so that a figure is right to a hundredth of a second.

use crate::root::{Problem, Root, note, text};
use holdup_evidence::Ns;
use holdup_evidence::facts::CpuTime;

/// Nanoseconds in a tick of `USER_HZ`, which is 100 on every machine that Linux runs on but Alpha.
const TICK: Ns = 10_000_000;

/// Columns of a `cpuN` line after its name: user nice system idle iowait irq softirq steal guest guest_nice.
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;

/// Each CPU's times since boot.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> Vec<CpuTime> {
    let file = root.proc.join("stat");
    let Some(text) = text(&file, problems) else {
        return Vec::new();
    };
    let mut times = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(cpu) = words.next().and_then(|name| name.strip_prefix("cpu")) else {
            break;
        };
        if cpu.is_empty() {
            continue;
        }
        let columns: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let (Ok(cpu), Some(columns)) = (cpu.parse(), columns) else {
            note(
                problems,
                &file,
                Some(number + 1),
                "a CPU's number and its times expected",
            );
            continue;
        };
        let column = |at: usize| columns.get(at).copied().unwrap_or(0).saturating_mul(TICK);
        times.push(CpuTime {
            cpu,
            idle: column(IDLE).saturating_add(column(IOWAIT)),
            stolen: column(STEAL),
        });
    }
    times
}

/// What passed between two readings, of the CPUs that are in both.
#[must_use]
pub fn between(before: &[CpuTime], after: &[CpuTime]) -> Vec<CpuTime> {
    let passed = |after: &CpuTime| {
        let before = before.iter().find(|before| before.cpu == after.cpu)?;
        Some(CpuTime {
            cpu: after.cpu,
            // Idle time has been seen to run backwards by a tick.
            idle: after.idle.saturating_sub(before.idle),
            stolen: after.stolen.saturating_sub(before.stolen),
        })
    };
    after.iter().filter_map(passed).collect()
}

#[cfg(test)]
mod tests {
    use super::{between, read};
    use crate::root::Tree;
    use holdup_evidence::facts::CpuTime;

    const STAT: &str =
        "cpu  10 0 0 100 0 0 0 7 0 0\ncpu0 5 0 0 60 2 0 0 3 0 0\ncpu3 5 0 0 40 0 0 0 4 0 0\nintr 12 0\n";

    #[test]
    fn each_cpu_has_its_line_and_the_sum_is_left_out() {
        let tree = Tree::new(&[("proc/stat", STAT)]);
        let mut problems = Vec::new();
        let times = read(&tree.root, &mut problems);
        let one = |cpu, idle, stolen| CpuTime { cpu, idle, stolen };
        assert_eq!(
            times,
            [one(0, 620_000_000, 30_000_000), one(3, 400_000_000, 40_000_000)]
        );
        assert!(problems.is_empty());
        let later = [one(3, 900_000_000, 40_000_000), one(4, 5, 5)];
        assert_eq!(between(&times, &later), [one(3, 500_000_000, 0)]);
    }

    #[test]
    fn a_line_that_is_none_is_a_problem_and_the_others_are_read() {
        let tree = Tree::new(&[("proc/stat", "cpu 1\ncpu0 one 2 3\ncpu1 1 1 1 1\n")]);
        let mut problems = Vec::new();
        let times = read(&tree.root, &mut problems);
        assert_eq!((times.len(), problems.len()), (1, 1));
        assert_eq!(times[0].cpu, 1);
    }
}
