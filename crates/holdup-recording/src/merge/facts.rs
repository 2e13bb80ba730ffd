//! What the machine said of itself in several segments: as it stood at the end, with what was counted meanwhile added up.

use holdup_evidence::SystemFacts;
use holdup_evidence::facts::{CpuTime, MemoryCgroup};

/// Adds the next. `booted`: its clocks and counters are those of another boot or machine.
pub(super) fn add(whole: &mut SystemFacts, next: SystemFacts, booted: bool) {
    let before = std::mem::replace(whole, next);
    // Instants are told by the first one's clock.
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
