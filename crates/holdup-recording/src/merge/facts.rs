//! What the machine said of itself in several segments: as it stood at the end, with what was counted meanwhile added up.

use holdup_evidence::SystemFacts;
use holdup_evidence::facts::{CpuTime, MemoryCgroup, TaskLimit};
use holdup_evidence::observed::{CgroupUser, Limited, SeenCgroup, SeenWait};

/// Cgroups at their memory limit that are kept of all segments.
const LIMITS_MAX: usize = 256;

/// Full file systems that are kept of all segments.
const FULL_MAX: usize = 64;

/// Names of interpreters that are kept of all segments.
const PROGRAMS_MAX: usize = 2048;

/// Waits for answers that are kept of all segments.
const ANSWERS_MAX: usize = 500;

/// Who waited for whose answer at the end of one of the segments: of the same wait the last one, unless an earlier one was longer.
fn add_answers(whole: &mut Vec<SeenWait>, before: Vec<SeenWait>) {
    let holder = |wait: &SeenWait| wait.holder.as_ref().map(|holder| holder.pid);
    for earlier in before {
        let same = |one: &&mut SeenWait| {
            one.waiter.pid == earlier.waiter.pid && holder(one) == holder(&earlier) && one.on == earlier.on
        };
        let room = whole.len() < ANSWERS_MAX;
        match whole.iter_mut().find(same) {
            Some(known) if known.ns < earlier.ns => *known = earlier,
            Some(_) => {}
            None if room => whole.push(earlier),
            None => {}
        }
    }
}

/// Adds the next. `booted`: its clocks and counters are those of another boot or machine.
pub(super) fn add(whole: &mut SystemFacts, next: SystemFacts, booted: bool) {
    let before = std::mem::replace(whole, next);
    // Instants are known by the first one's clock.
    whole.unix_minus_monotonic = before.unix_minus_monotonic.or(whole.unix_minus_monotonic);
    whole.boot_minus_monotonic = before.boot_minus_monotonic.filter(|_| !booted);
    for earlier in before.cpu_times {
        add_cpu(&mut whole.cpu_times, &earlier);
    }
    whole.processes = joined(before.processes, std::mem::take(&mut whole.processes));
    whole.stopped.extend(before.stopped);
    whole.cgroups = joined(before.cgroups, std::mem::take(&mut whole.cgroups));
    let throttled = (before.cgroup.cpu_throttled, whole.cgroup.cpu_throttled);
    whole.cgroup.cpu_throttled = match throttled {
        (Some(one), Some(other)) => Some((one.0.saturating_add(other.0), one.1.saturating_add(other.1))),
        (one, other) => other.or(one),
    };
    add_memory(&mut whole.cgroup.memory, &before.cgroup.memory);
    if !booted {
        for earlier in before.cgroups_at_limit {
            add_limit(&mut whole.cgroups_at_limit, earlier);
        }
        for earlier in before.full_file_systems {
            let known = whole
                .full_file_systems
                .iter()
                .any(|one| one.mount == earlier.mount);
            if !known && whole.full_file_systems.len() < FULL_MAX {
                whole.full_file_systems.push(earlier);
            }
        }
        for earlier in before.frozen_volumes {
            let known = whole.frozen_volumes.iter().any(|one| one.mount == earlier.mount);
            if !known && whole.frozen_volumes.len() < FULL_MAX {
                whole.frozen_volumes.push(earlier);
            }
        }
        add_answers(&mut whole.answers_awaited, before.answers_awaited);
        add_task_limits(&mut whole.task_limits, before.task_limits);
        // What was so at the end counts.
        if whole.own_logs.is_none() {
            whole.own_logs = before.own_logs;
        }
        if whole.no_descriptor_left.is_none() {
            whole.no_descriptor_left = before.no_descriptor_left;
        }
        for earlier in before.stopped_children {
            let known = whole.stopped_children.iter().any(|one| one.pid == earlier.pid);
            if !known && whole.stopped_children.len() < PROGRAMS_MAX {
                whole.stopped_children.push(earlier);
            }
        }
        for earlier in before.programs {
            let known = whole.programs.iter().any(|one| one.pid == earlier.pid);
            if !known && whole.programs.len() < PROGRAMS_MAX {
                whole.programs.push(earlier);
            }
        }
    }
    for earlier in before.jvms {
        match whole
            .jvms
            .iter_mut()
            .find(|jvm| jvm.pid == earlier.pid && !booted)
        {
            Some(jvm) => {
                jvm.between = jvm.between.saturating_add(earlier.between);
                jvm.before = earlier.before;
            }
            None => whole.jvms.push(earlier),
        }
    }
}

/// The later value of each.
fn joined<K: Ord, V>(
    mut before: std::collections::BTreeMap<K, V>,
    after: std::collections::BTreeMap<K, V>,
) -> std::collections::BTreeMap<K, V> {
    before.extend(after);
    before
}

fn add_cpu(whole: &mut Vec<CpuTime>, earlier: &CpuTime) {
    match whole.iter_mut().find(|cpu| cpu.cpu == earlier.cpu) {
        Some(cpu) => {
            cpu.idle = cpu.idle.saturating_add(earlier.idle);
            cpu.stolen = cpu.stolen.saturating_add(earlier.stolen);
        }
        None => whole.push(earlier.clone()),
    }
}

/// The same cgroup ran into its limit before.
fn add_limit(whole: &mut Vec<SeenCgroup>, earlier: SeenCgroup) {
    let add = |sum: &mut Option<u64>, part: Option<u64>| {
        *sum = sum.map(|sum| sum.saturating_add(part.unwrap_or(0))).or(part);
    };
    let same = |one: &&mut SeenCgroup| one.cgroup == earlier.cgroup && one.what == earlier.what;
    if let Some(known) = whole.iter_mut().find(same) {
        add(&mut known.hits, earlier.hits);
        add(&mut known.read_again, earlier.read_again);
        add(&mut known.watched, earlier.watched);
        if known.what == Limited::CpuTime {
            known.used += earlier.used;
            known.limit += earlier.limit;
            add_users(&mut known.users, earlier.users);
            let new: Vec<u32> = (earlier.members.into_iter())
                .filter(|pid| !known.members.contains(pid))
                .take(PROGRAMS_MAX.saturating_sub(known.members.len()))
                .collect();
            known.members.extend(new);
        }
    } else if whole.len() < LIMITS_MAX {
        whole.push(earlier);
    }
}

/// Programs that used CPU time, by name. The process that is named is the later one.
fn add_users(whole: &mut Vec<CgroupUser>, earlier: Vec<CgroupUser>) {
    for one in earlier {
        if let Some(known) = whole.iter_mut().find(|known| known.name == one.name) {
            known.amount += one.amount;
            known.processes = known.processes.max(one.processes);
        } else if whole.len() < PROGRAMS_MAX {
            whole.push(one);
        }
    }
    whole.sort_by(|a, b| b.amount.total_cmp(&a.amount));
}

/// Limits on processes that were used up before, with what was refused meanwhile.
fn add_task_limits(whole: &mut Option<Vec<TaskLimit>>, earlier: Option<Vec<TaskLimit>>) {
    let Some(earlier) = earlier else { return };
    let whole = whole.get_or_insert_default();
    for one in earlier {
        if let Some(known) = whole.iter_mut().find(|known| known.of == one.of) {
            let sum = known
                .refused
                .unwrap_or(0)
                .saturating_add(one.refused.unwrap_or(0));
            known.refused = known.refused.or(one.refused).map(|_| sum);
        } else if whole.len() < LIMITS_MAX {
            whole.push(one);
        }
    }
}

fn add_memory(whole: &mut MemoryCgroup, earlier: &MemoryCgroup) {
    if whole.cgroup != earlier.cgroup {
        return;
    }
    let add = |sum: &mut Option<u64>, part: Option<u64>| {
        *sum = match (*sum, part) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
    };
    add(&mut whole.limit_reached, earlier.limit_reached);
    add(&mut whole.high_reached, earlier.high_reached);
    add(&mut whole.files_again, earlier.files_again);
    add(&mut whole.memory_again, earlier.memory_again);
}
