//! How busy the CPUs are, and with what: all of them, the one that stands out, the load, the tasks that wait, pressure.

use super::values::{self, Value, figure, parts};
use super::{Rank, Ranked};
use crate::rules::list::{
    cpu_waits_for_disk, load_is_not_cpu, tasks_pile_up, tasks_stall_for_io, tasks_stall_for_memory,
};
use crate::rules::{figures, pressures, saturated};
use holdup_evidence::Observed;
use holdup_evidence::observed::{Metric, Series};
use std::collections::{BTreeMap, HashMap};

/// Kinds of CPU time, in words.
const TIMES: [(Metric, &str); 7] = [
    (Metric::CpuUserPercent, "in programs"),
    (Metric::CpuSystemPercent, "in the kernel"),
    (Metric::CpuNicePercent, "in work of low priority"),
    (Metric::CpuIowaitPercent, "waiting for disks (iowait)"),
    (Metric::CpuStealPercent, "taken by the hypervisor (steal)"),
    (Metric::CpuSoftirqPercent, "in soft interrupts"),
    (Metric::CpuIrqPercent, "in hardware interrupts"),
];

/// Percent of the time from which a kind of it is named: less is in the rounding.
const NAMED: f64 = 1.0;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let mut times: Times<'_> = HashMap::new();
    for (metric, _) in TIMES {
        times.extend(
            observed
                .of(metric)
                .map(|series| ((series.source, series.of.as_str(), metric), series)),
        );
    }
    let mut of_sources: BTreeMap<u32, Vec<Cpu<'_>>> = BTreeMap::new();
    for idle in values::largest(observed, Metric::CpuIdlePercent) {
        if let Some(cpu) = Cpu::busiest(&idle, &times) {
            of_sources.entry(idle.series.source).or_default().push(cpu);
        }
    }
    for cpus in of_sources.values() {
        add_cpus(observed, cpus, all);
    }
    add_load(observed, &of_sources, all);
    add_blocked(observed, all);
    add_pressure(observed, all);
}

/// Kinds of CPU time by artefact and CPU.
type Times<'a> = HashMap<(u32, &'a str, Metric), &'a Series>;

/// The times of one CPU, or of all, in the report in which it has least to spare.
#[derive(Debug, Clone)]
struct Cpu<'a> {
    idle: Value<'a>,
    times: Vec<(Metric, f64)>,
}

impl<'a> Cpu<'a> {
    fn busiest(idle: &Value<'a>, times: &Times<'a>) -> Option<Cpu<'a>> {
        let mut points: Vec<_> = idle.series.of_intervals().collect();
        if points.is_empty() {
            points.extend(idle.series.points.first());
        }
        let key = |metric| (idle.series.source, idle.of(), metric);
        let own: Vec<(Metric, &Series)> = TIMES
            .iter()
            .filter_map(|(metric, _)| Some((*metric, *times.get(&key(*metric))?)))
            .collect();
        let of_points = points.into_iter().map(|point| Cpu {
            idle: Value { point, ..*idle },
            times: own
                .iter()
                .filter_map(|(metric, series)| Some((*metric, series.in_report(point.report)?.value)))
                .collect(),
        });
        of_points.min_by(|one, other| one.free().total_cmp(&other.free()))
    }

    fn of(&self, metric: Metric) -> f64 {
        let mut times = self.times.iter();
        times
            .find(|(other, _)| *other == metric)
            .map_or(0.0, |(_, value)| *value)
    }

    /// Idle, and not because something waits for a disk.
    fn free(&self) -> f64 {
        self.idle.value()
    }

    fn waits(&self) -> f64 {
        self.of(Metric::CpuIowaitPercent)
    }

    /// The part of the time that it is idle or waits for disks, so that a task that is ready finds it free.
    fn spare(&self) -> f64 {
        self.free() + self.waits()
    }

    fn is_used_up(&self) -> bool {
        self.spare() <= saturated::MAX_IDLE_PERCENT
    }

    fn is_short(&self) -> bool {
        self.is_used_up()
            || self.waits() >= cpu_waits_for_disk::WAITS
            || self.of(Metric::CpuStealPercent) >= saturated::MIN_STEAL_PERCENT
            || self.interrupts() >= saturated::MIN_INTERRUPTS_PERCENT
    }

    fn interrupts(&self) -> f64 {
        self.of(Metric::CpuSoftirqPercent) + self.of(Metric::CpuIrqPercent)
    }

    /// `62 % in programs, 38 % in the kernel and 0 % idle`.
    fn words(&self) -> String {
        let mut times: Vec<&(Metric, f64)> = self.times.iter().filter(|(_, share)| *share >= NAMED).collect();
        times.sort_by(|one, other| other.1.total_cmp(&one.1));
        let named = |metric: Metric| {
            TIMES
                .iter()
                .find(|(other, _)| *other == metric)
                .map_or("", |(_, name)| name)
        };
        let mut found: Vec<String> = times
            .into_iter()
            .map(|(metric, share)| format!("{} % {}", figure(*share), named(*metric)))
            .collect();
        found.push(format!("{} % idle", figure(self.free())));
        parts(&found)
    }

    /// What it lacks most, in the first words of a sentence.
    fn trouble(&self, name: &str, verb: &str) -> String {
        if self.of(Metric::CpuStealPercent) >= saturated::MIN_STEAL_PERCENT
            && self.of(Metric::CpuStealPercent) >= self.waits()
        {
            return format!(
                "the hypervisor takes {} % of the time of {name}",
                figure(self.of(Metric::CpuStealPercent))
            );
        }
        if self.waits() >= cpu_waits_for_disk::WAITS {
            return format!(
                "{name} {verb} for disks (iowait) {} % of the time",
                figure(self.waits())
            );
        }
        if self.interrupts() >= saturated::MIN_INTERRUPTS_PERCENT {
            return format!(
                "interrupts take {} % of the time of {name}",
                figure(self.interrupts())
            );
        }
        let is = if verb == "waits" { "is" } else { "are" };
        format!("{name} {is} used up: {} % busy", figure(100.0 - self.free()))
    }
}

fn add_cpus(observed: &Observed, cpus: &[Cpu<'_>], all: &mut Vec<Ranked>) {
    let single: Vec<&Cpu<'_>> = cpus.iter().filter(|cpu| !cpu.idle.of().is_empty()).collect();
    let machine = cpus.iter().find(|cpu| cpu.idle.of().is_empty());
    if let Some(machine) = machine {
        all.push(of_machine(observed, machine));
    }
    let worst = |cpu: &&&Cpu<'_>| {
        (
            cpu.waits().max(cpu.of(Metric::CpuStealPercent)) >= cpu_waits_for_disk::WAITS,
            cpu.waits(),
        )
    };
    let stands_out = single.iter().filter(|cpu| cpu.is_short()).max_by(|one, other| {
        let (one_waits, other_waits) = (worst(one), worst(other));
        one_waits
            .0
            .cmp(&other_waits.0)
            .then(one_waits.1.total_cmp(&other_waits.1))
            .then(other.free().total_cmp(&one.free()))
    });
    let many = single.len();
    if let Some(cpu) = stands_out
        && machine.is_none_or(|machine| !machine.is_short())
    {
        let name = figures::cpu_name(cpu.idle.of());
        let used_up = single.iter().filter(|cpu| cpu.is_used_up()).count();
        let text = if machine.is_none() && many > 1 && used_up == many {
            let mean =
                |metric: fn(&Cpu<'_>) -> f64| single.iter().map(|cpu| metric(cpu)).sum::<f64>() / many as f64;
            format!(
                "all {many} CPUs are used up: {} % idle, {} % in programs and {} % in the kernel at the mean{}",
                figure(mean(|cpu| cpu.free())),
                figure(mean(|cpu| cpu.of(Metric::CpuUserPercent))),
                figure(mean(|cpu| cpu.of(Metric::CpuSystemPercent))),
                beside(observed, &cpu.idle)
            )
        } else {
            let mean = machine.map(|machine| {
                let (what, at_mean) = match cpu.waits() >= cpu_waits_for_disk::WAITS {
                    true => ("iowait", machine.waits()),
                    false => ("busy", 100.0 - machine.free()),
                };
                format!("; at the mean of all CPUs {} % {what}", figure(at_mean))
            });
            format!(
                "{}; {}{}",
                cpu.trouble(&name, "waits"),
                cpu.words(),
                mean.unwrap_or_default()
            )
        };
        let rank = if cpu.idle.is_average() && cpu.idle.point.since_boot {
            Rank::Largest
        } else {
            Rank::Saturated
        };
        all.push(
            Ranked::new(rank, name, text, (observed, &cpu.idle.point.quote)).share(1.0 - cpu.free() / 100.0),
        );
    } else if machine.is_none()
        && let Some(busiest) = single
            .iter()
            .min_by(|one, other| one.free().total_cmp(&other.free()))
    {
        let name = figures::cpu_name(busiest.idle.of());
        let text = format!(
            "{name} is the busiest: {} ({} % idle or less is short)",
            busiest.words(),
            saturated::MAX_IDLE_PERCENT
        );
        all.push(
            Ranked::new(Rank::Ordinary, name, text, (observed, &busiest.idle.point.quote))
                .share(1.0 - busiest.free() / 100.0),
        );
    }
}

fn of_machine(observed: &Observed, machine: &Cpu<'_>) -> Ranked {
    let here = (observed, &machine.idle.point.quote);
    let share = 1.0 - machine.free() / 100.0;
    if machine.is_short() && !machine.idle.point.since_boot {
        let text = format!(
            "{}; {}{}",
            machine.trouble("the CPUs", "wait"),
            machine.words(),
            beside(observed, &machine.idle)
        );
        return Ranked::new(Rank::Saturated, "CPU", text, here).share(share);
    }
    let since_boot = machine.idle.since_boot();
    let rank = if machine.idle.is_average() {
        Rank::Largest
    } else {
        Rank::Ordinary
    };
    let text = format!(
        "the CPUs are{since_boot} {} ({} % idle or less is short)",
        machine.words(),
        saturated::MAX_IDLE_PERCENT
    );
    Ranked::new(rank, "CPU", text, here).share(share)
}

/// What the same report has of tasks that are ready, of switches between them, and of who uses most.
fn beside(observed: &Observed, idle: &Value<'_>) -> String {
    let mut listed = Vec::new();
    if let Some(ready) = idle
        .other(Metric::ProcessesRunnable, "")
        .filter(|ready| *ready >= 1.0)
    {
        listed.push(format!("{} tasks are runnable", figure(ready)));
    }
    if let Some(switches) = idle
        .other(Metric::ContextSwitchesPerSecond, "")
        .filter(|count| *count >= 1.0)
    {
        listed.push(format!("{} context switches a second", figure(switches)));
    }
    if let Some(load) = idle.other(Metric::LoadAverage1, "") {
        listed.push(format!("load {}", figure(load)));
    }
    let leader = values::largest(observed, Metric::ProcessCpuPercent)
        .into_iter()
        .find(|value| value.series.source == idle.series.source);
    if let Some(leader) = leader {
        listed.push(format!(
            "{} uses most, {} % of a CPU",
            leader.of(),
            figure(leader.value())
        ));
    }
    match listed.is_empty() {
        true => String::new(),
        false => format!("; {}", listed.join(", ")),
    }
}

/// The load, where it is more than the CPUs do.
fn add_load(observed: &Observed, of_sources: &BTreeMap<u32, Vec<Cpu<'_>>>, all: &mut Vec<Ranked>) {
    let Some(load) = values::largest(observed, Metric::LoadAverage1).into_iter().next() else {
        return;
    };
    let cpus = of_sources.get(&load.series.source).map_or(&[][..], Vec::as_slice);
    let count = cpus.iter().filter(|cpu| !cpu.idle.of().is_empty()).count();
    let high = load_is_not_cpu::HIGH.max(load_is_not_cpu::HIGH_EACH * count as f64);
    let later: Vec<String> = [(Metric::LoadAverage5, "5"), (Metric::LoadAverage15, "15")]
        .into_iter()
        .filter_map(|(metric, minutes)| {
            let value = load.other(metric, "")?;
            Some(format!("{} in the last {minutes} minutes", figure(value)))
        })
        .collect();
    let later = match later.is_empty() {
        true => String::new(),
        false => format!(" ({})", later.join(", ")),
    };
    let spare = cpus.iter().map(Cpu::spare).reduce(f64::min);
    let value = figure(load.value());
    let (rank, text) = match spare {
        _ if load.value() < high => (
            Rank::Ordinary,
            format!(
                "the load is {value}{later}; from {} {} people call it high",
                figure(high),
                if count == 0 {
                    "on, on a small machine,"
                } else {
                    "on"
                }
            ),
        ),
        Some(spare) if spare >= load_is_not_cpu::MIN_IDLE_PERCENT => (
            Rank::Saturated,
            format!(
                "the load is {value}{later}, while each CPU is at least {} % idle or waits for disks: {}",
                figure(spare),
                blocked_or_interrupted(cpus)
            ),
        ),
        _ => (
            Rank::Largest,
            format!("the load is {value}{later}; how many CPUs there are is not known"),
        ),
    };
    all.push(Ranked::new(rank, "load", text, (observed, &load.point.quote)));
}

/// Percent of all CPUs' time from which interrupts may be all of one CPU of four, which a mean of all CPUs does not show.
const MAY_FILL_ONE_CPU_PERCENT: f64 = 20.0;

/// What a load is of that the CPUs' mean does not show.
fn blocked_or_interrupted(cpus: &[Cpu<'_>]) -> String {
    let means = cpus.iter().filter(|cpu| cpu.idle.of().is_empty());
    let interrupts = means.map(Cpu::interrupts).fold(0.0, f64::max);
    let single = cpus.iter().any(|cpu| !cpu.idle.of().is_empty());
    match interrupts >= MAY_FILL_ONE_CPU_PERCENT && !single {
        true => format!(
            "interrupts take {} % of the time of all CPUs, which may be the whole of one, and its tasks wait",
            figure(interrupts)
        ),
        false => "the tasks are blocked, not running".to_owned(),
    }
}

/// Tasks that are blocked, by a count of them.
fn add_blocked(observed: &Observed, all: &mut Vec<Ranked>) {
    let Some(blocked) = values::largest(observed, Metric::ProcessesBlocked)
        .into_iter()
        .find(|blocked| blocked.value() >= 1.0)
    else {
        return;
    };
    let least = tasks_pile_up::MIN_TASKS_IN_EACH_LIST as f64;
    let rank = if blocked.often(least) {
        Rank::Saturated
    } else {
        Rank::Ordinary
    };
    let text = format!(
        "up to {} tasks are blocked at a time, mostly by disks (from {least} in each report on they pile up)",
        figure(blocked.value())
    );
    all.push(Ranked::new(
        rank,
        "blocked tasks",
        text,
        (observed, &blocked.point.quote),
    ));
}

/// For how much of the time tasks stood still for want of something.
fn add_pressure(observed: &Observed, all: &mut Vec<Ranked>) {
    let kinds = [
        (
            Metric::PressureIoFullPercent,
            "all tasks waited for I/O",
            tasks_stall_for_io::MIN_FULL_PERCENT,
        ),
        (
            Metric::PressureIoSomePercent,
            "some task waited for I/O",
            tasks_stall_for_io::MIN_SOME_PERCENT,
        ),
        (
            Metric::PressureMemoryFullPercent,
            "all tasks waited for memory",
            tasks_stall_for_memory::MIN_FULL_PERCENT,
        ),
        (
            Metric::PressureMemorySomePercent,
            "some task waited for memory",
            tasks_stall_for_memory::MIN_SOME_PERCENT,
        ),
        (
            Metric::PressureCpuSomePercent,
            "some task waited for a CPU",
            saturated::MIN_PRESSURE_PERCENT,
        ),
    ];
    for (metric, what, norm) in kinds {
        let high = pressures::high(observed, metric, norm);
        let rank = if high.is_some() {
            Rank::Saturated
        } else {
            Rank::Ordinary
        };
        let Some(pressure) = high.or_else(|| pressures::high(observed, metric, f64::MIN_POSITIVE)) else {
            continue;
        };
        let text = format!(
            "{what} {}{}: {norm} % is much",
            pressure.words(),
            pressure.place()
        );
        all.push(
            Ranked::new(rank, "pressure", text, (observed, &pressure.worst.quote))
                .share(pressure.worst.value / 100.0),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::account::values::tests::{report, reports};
    use crate::account::{account, judged};
    use holdup_evidence::observed::Metric;
    use holdup_model::report::AccountOutcome;

    #[test]
    fn one_cpu_that_waits_stands_out_behind_a_harmless_mean() {
        let observed = report(&[
            (Metric::CpuIdlePercent, "", 92.0),
            (Metric::CpuIowaitPercent, "", 5.64),
            (Metric::CpuIdlePercent, "cpu0", 98.0),
            (Metric::CpuIdlePercent, "cpu9", 30.0),
            (Metric::CpuIowaitPercent, "cpu9", 67.33),
        ]);
        let lines = account(&observed);
        assert_eq!(
            lines[0].text,
            "CPU 9 waits for disks (iowait) 67.3 % of the time; 67.3 % waiting for disks (iowait) and 30 % idle; at the mean of \
             all CPUs 5.6 % iowait"
        );
        assert_eq!(judged(&observed).1, Some(AccountOutcome::CannotTell));
    }

    #[test]
    fn cpus_that_are_used_up_say_with_what_and_by_whom() {
        let observed = report(&[
            (Metric::CpuUserPercent, "", 16.0),
            (Metric::CpuSystemPercent, "", 84.0),
            (Metric::CpuIdlePercent, "", 0.0),
            (Metric::ProcessesRunnable, "", 8.0),
            (Metric::ContextSwitchesPerSecond, "", 1_392_312.0),
            (Metric::ProcessCpuPercent, "ping-pong (pid 7)", 780.0),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "the CPUs are used up: 100 % busy; 84 % in the kernel, 16 % in programs and 0 % idle; 8 tasks are runnable, 1392312 \
             context switches a second, ping-pong (pid 7) uses most, 780 % of a CPU"
        );
    }

    #[test]
    fn a_load_of_thousands_beside_idle_cpus_is_blocked_tasks() {
        let observed = report(&[
            (Metric::LoadAverage1, "", 6061.0),
            (Metric::CpuIdlePercent, "", 65.0),
        ]);
        let first = &account(&observed)[0].text;
        assert!(
            first.starts_with("the load is 6061, while each CPU is at least 65 % idle"),
            "{first}"
        );
    }

    #[test]
    fn a_machine_at_rest_is_healthy_by_its_figures() {
        let quiet: &[_] = &[
            (Metric::CpuUserPercent, "", 3.0),
            (Metric::CpuIdlePercent, "", 96.0),
            (Metric::PressureIoSomePercent, "", 0.5),
        ];
        let observed = reports(&[quiet, quiet]);
        assert_eq!(judged(&observed).1, Some(AccountOutcome::Healthy));
        let lines = account(&observed);
        assert_eq!(
            lines[0].text,
            "the CPUs are 3 % in programs and 96 % idle (10 % idle or less is short)"
        );
    }
}
