//! Everything the rules may know of the machine, in one go: read when CMD has ended.

use crate::root::{Problem, Root, word};
use crate::{
    block, cgroup, clocks, cpu_times, cpuinfo, listeners, mountinfo, names, random, resolver, swaps, sysctl,
};
use holdup_evidence::SystemFacts;
use holdup_evidence::facts::CpuTime;
use std::collections::BTreeMap;

/// What only the collector can know.
#[derive(Debug, Default)]
pub struct Question {
    /// The run's cgroups, watched since before CMD began.
    pub cgroup: Option<cgroup::Watch>,
    /// What [`cpu_times::read`] said before CMD began; empty: nobody looked.
    pub cpu_times: Vec<CpuTime>,
    /// Cgroups of processes that ran while the run was ready to, by the process's name.
    pub cgroups: BTreeMap<String, String>,
    /// Processes outside the run that events refer to and whose names aren't known yet.
    pub pids: Vec<u32>,
    /// Names that were looked up while the run went on; they win, for a number may belong to another by now.
    pub known: BTreeMap<u32, String>,
}

/// Reads all facts. What can't be read is `None` and, where that is odd, in `problems`.
pub fn collect(root: &Root, question: &Question, problems: &mut Vec<Problem>) -> SystemFacts {
    let mut processes = question.known.clone();
    for pid in &question.pids {
        if !processes.contains_key(pid)
            && let Some(name) = names::comm(root, *pid)
        {
            processes.insert(*pid, name);
        }
    }
    SystemFacts {
        kernel_release: word(&root.proc.join("sys/kernel/osrelease"), problems),
        cpus: cpuinfo::online(root, problems),
        cpu_times: match question.cpu_times.as_slice() {
            [] => Vec::new(),
            before => cpu_times::between(before, &cpu_times::read(root, problems)),
        },
        clocksource: word(
            &root
                .sys
                .join("devices/system/clocksource/clocksource0/current_clocksource"),
            problems,
        ),
        cgroups: question.cgroups.clone(),
        random: random::read(root, problems),
        block_devices: block::devices(root, problems),
        swaps: swaps::read(root, problems),
        mounts: mountinfo::read(root, problems)
            .into_iter()
            .map(Into::into)
            .collect(),
        cgroup: question
            .cgroup
            .as_ref()
            .map(cgroup::Watch::facts)
            .unwrap_or_default(),
        resolver: resolver::read(root, problems),
        listeners: listeners::read(root),
        name_servers: Vec::new(),
        unaccepted: None,
        unread_answers: None,
        full_outputs: None,
        owed_answers: None,
        lock_files: Vec::new(),
        left_unread: None,
        pushed: None,
        moved: Vec::new(),
        failed_tasks: Vec::new(),
        database_files: Vec::new(),
        locked_files: Vec::new(),
        workers: Vec::new(),
        other_clients: Vec::new(),
        database_sessions: Vec::new(),
        thread_sessions: Vec::new(),
        lock_sessions: Vec::new(),
        awaited_peers: Vec::new(),
        programs: Vec::new(),
        stopped_children: Vec::new(),
        cgroups_at_limit: Vec::new(),
        full_file_systems: Vec::new(),
        frozen_volumes: Vec::new(),
        answers_awaited: Vec::new(),
        task_limits: None,
        no_descriptor_left: None,
        own_logs: None,
        set_aside: None,
        jvms: Vec::new(),
        sysctl: sysctl::read(root, problems),
        processes,
        observer: names::own(root),
        stopped: std::collections::BTreeSet::new(),
        boot_minus_monotonic: clocks::boot_minus_monotonic(),
        unix_minus_monotonic: clocks::unix_minus_monotonic(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Question, collect};
    use crate::root::{Root, Tree};
    use holdup_evidence::SystemFacts;

    #[test]
    fn an_empty_tree_yields_clocks_and_nothing_else() {
        let mut problems = Vec::new();
        let facts = collect(&Tree::new(&[]).root, &Question::default(), &mut problems);
        assert_eq!(
            SystemFacts {
                boot_minus_monotonic: None,
                unix_minus_monotonic: None,
                ..facts
            },
            SystemFacts::default()
        );
        assert_eq!(problems, []);
    }

    #[test]
    fn a_name_that_was_known_wins() {
        let tree = Tree::new(&[("proc/5/comm", "new\n"), ("proc/6/comm", "six\n")]);
        let question = Question {
            pids: vec![5, 6, 7],
            known: [(5, "old".to_owned())].into(),
            ..Question::default()
        };
        let facts = collect(&tree.root, &question, &mut Vec::new());
        assert_eq!(
            facts.processes,
            [(5, "old".to_owned()), (6, "six".to_owned())].into()
        );
    }

    #[test]
    fn this_machine_is_understood_without_problems() {
        let mut problems = Vec::new();
        let facts = collect(&Root::system(), &Question::default(), &mut problems);
        assert!(facts.cpus.unwrap() > 0);
        assert!(facts.mounts.iter().any(|mount| mount.target == "/"));
        // The kernel log needs a privilege that a test may lack.
        problems.retain(|problem| !problem.file.ends_with("kmsg"));
        assert_eq!(problems, []);
    }
}
