//! Which process is delayed most, reads or writes most, waits longest for a CPU, uses most of one; and which tasks are blocked.

use super::values::{self, Value, figure, parts};
use super::{Rank, Ranked};
use crate::rules::list::{tasks_pile_up, tasks_stall_for_io};
use crate::rules::{blocked, kernel_places, saturated, waiters};
use holdup_evidence::observed::{
    Happening, KernelEvent, Metric, SeenThread, Snapshot, SnapshotKind, State, What,
};
use holdup_evidence::units::duration;
use holdup_evidence::{Cause, Observed};
use std::collections::BTreeMap;

/// Clock ticks in a second, in which the kernel tells delays: `USER_HZ`, the same on every x86 and ARM kernel.
const TICKS: f64 = 100.0;

/// Frames of a stack that are quoted.
const FRAMES: usize = 8;

/// Tasks that are named one by one.
const NAMED: usize = 3;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    add_delayed(observed, all);
    add_waits_for_cpu(observed, all);
    add_switches(observed, all);
    add_cpu(observed, all);
    add_memory(observed, all);
    for list in observed
        .snapshots
        .iter()
        .filter(|list| list.kind == SnapshotKind::Kernel)
    {
        add_blocked(observed, list, all);
    }
    add_hung(observed, all);
}

/// The name of a process without its number, as many may have it.
fn program(of: &str) -> &str {
    of.split_once(" (pid ").map_or(of, |(name, _)| name)
}

/// How many processes of the same artefact have the same name.
fn same_name(all: &[Value<'_>], one: &Value<'_>) -> usize {
    let same = |other: &&Value<'_>| {
        other.series.source == one.series.source && program(other.of()) == program(one.of())
    };
    all.iter().filter(same).count()
}

/// Who waits for disks, and who reads or writes most.
fn add_delayed(observed: &Observed, all: &mut Vec<Ranked>) {
    let of = |metric| values::largest(observed, metric).into_iter().next();
    let kinds = [
        (
            of(Metric::ProcessReadKibPerSecond),
            Metric::ProcessReadKibPerSecond,
            "reads",
        ),
        (
            of(Metric::ProcessWriteKibPerSecond),
            Metric::ProcessWriteKibPerSecond,
            "writes",
        ),
    ];
    let moved: Option<(Value<'_>, Metric, &str)> = kinds
        .into_iter()
        .filter_map(|(value, metric, verb)| Some((value?, metric, verb)))
        .filter(|(value, ..)| value.value() >= 1.0)
        .max_by(|one, other| one.0.value().total_cmp(&other.0.value()));
    let mover = moved.map(|(most, metric, verb)| {
        let everybody = values::largest(observed, metric);
        let beside = everybody.iter().filter_map(|value| {
            let point = value.series.in_report(most.point.report)?;
            (value.series.source == most.series.source).then(|| (program(value.of()), point.value))
        });
        let beside: Vec<(&str, f64)> = beside.collect();
        let sum: f64 = beside.iter().map(|(_, value)| value).sum();
        let percent = |part: f64| figure((part / sum.max(most.value()) * 100.0).round());
        let share = most.value() / sum.max(most.value());
        let mut text = format!(
            "{} {verb} most: {} KiB/s, {} % of what all together do",
            most.of(),
            figure(most.value()),
            percent(most.value())
        );
        let name = program(most.of());
        let alike = beside
            .iter()
            .filter(|(other, value)| *other == name && *value > 0.0);
        let alike: Vec<f64> = alike.map(|(_, value)| *value).collect();
        if alike.len() > 1 {
            let together: f64 = alike.iter().sum();
            text.push_str(&format!(
                "; {} processes named {name} move {} KiB/s together, {} %",
                alike.len(),
                figure(together),
                percent(together)
            ));
        }
        (most, share, text)
    });
    let delayed = of(Metric::ProcessIoDelayTicks).filter(|delayed| delayed.value() >= 1.0);
    if let Some(delayed) = delayed {
        let mut text = format!(
            "{} was delayed by disks for {} ticks ({} s)",
            delayed.of(),
            figure(delayed.value()),
            figure(delayed.value() / TICKS)
        );
        let seconds = delayed
            .point
            .over
            .map(|over| over as f64 / 1e9)
            .filter(|over| *over > 0.0);
        let share = seconds.map(|seconds| delayed.value() / TICKS / seconds);
        if let Some(seconds) = seconds {
            text.push_str(&format!(" in {} s", figure(seconds)));
        }
        if let Some((most, _, words)) = &mover {
            match most.of() == delayed.of() {
                true => text.push_str(&format!("; it {}", words.replacen(most.of(), "", 1).trim_start())),
                false => text.push_str(&format!("; {words}")),
            }
        }
        let much = share.is_some_and(|share| share * 100.0 >= tasks_stall_for_io::MIN_SOME_PERCENT);
        let rank = if much { Rank::Saturated } else { Rank::Largest };
        let line = Ranked::new(rank, delayed.of(), text, (observed, &delayed.point.quote));
        all.push(line.share(share.unwrap_or(0.0)));
    } else if let Some((most, share, text)) = mover {
        let line = Ranked::new(Rank::Largest, most.of(), text, (observed, &most.point.quote));
        all.push(line.share(share));
    }
}

/// Who is ready to run and has no CPU.
fn add_waits_for_cpu(observed: &Observed, all: &mut Vec<Ranked>) {
    let waiting = values::largest(observed, Metric::ProcessWaitPercent);
    let Some(most) = waiting.first().filter(|most| most.value() >= 1.0) else {
        return;
    };
    let same: Vec<&Value<'_>> = waiting
        .iter()
        .filter(|one| program(one.of()) == program(most.of()))
        .collect();
    let count = same
        .iter()
        .filter(|one| one.value() >= most.value() / 2.0)
        .count();
    let others = match count {
        0 | 1 => String::new(),
        _ => format!(
            "; {count} processes named {} wait at least half as long",
            program(most.of())
        ),
    };
    let rank = match most.value() >= saturated::MIN_PRESSURE_PERCENT {
        true => Rank::Saturated,
        false => Rank::Ordinary,
    };
    let text = format!(
        "{} waits for a CPU {} % of the time ({} % is much){others}",
        most.of(),
        figure(most.value()),
        saturated::MIN_PRESSURE_PERCENT
    );
    all.push(Ranked::new(rank, most.of(), text, (observed, &most.point.quote)).share(most.value() / 100.0));
}

/// Who is made to leave its CPU most often, or leaves it.
fn add_switches(observed: &Observed, all: &mut Vec<Ranked>) {
    let kinds = [
        (
            Metric::ProcessForcedSwitchesPerSecond,
            "had to leave its CPU to others (involuntary context switches)",
        ),
        (
            Metric::ProcessVoluntarySwitchesPerSecond,
            "left its CPU to wait (voluntary context switches)",
        ),
    ];
    let most = kinds.into_iter().filter_map(|(metric, what)| {
        let most = values::largest(observed, metric).into_iter().next()?;
        (most.value() >= 1.0).then_some((most, what))
    });
    if let Some((most, what)) = most.max_by(|one, other| one.0.value().total_cmp(&other.0.value())) {
        let text = format!("{} {what} {} times a second", most.of(), figure(most.value()));
        all.push(Ranked::new(
            Rank::Largest,
            most.of(),
            text,
            (observed, &most.point.quote),
        ));
    }
}

fn add_cpu(observed: &Observed, all: &mut Vec<Ranked>) {
    let users = values::largest(observed, Metric::ProcessCpuPercent);
    let Some(most) = users.first().filter(|most| most.value() >= 1.0) else {
        return;
    };
    // As little left of one CPU as makes a CPU short.
    let whole = 100.0 - saturated::MAX_IDLE_PERCENT;
    let rank = match (most.value() >= whole, most.is_average()) {
        (true, _) => Rank::Saturated,
        (false, true) => Rank::Largest,
        (false, false) => Rank::Ordinary,
    };
    let kernel = match is_kernel_thread(program(most.of())) {
        true => ", a thread of the kernel,",
        false => "",
    };
    let same = same_name(&users, most);
    let others = match same {
        0 | 1 => String::new(),
        _ => {
            let sum: f64 = users
                .iter()
                .filter(|one| program(one.of()) == program(most.of()))
                .map(Value::value)
                .sum();
            format!(
                "; {same} named {} use {} % together",
                program(most.of()),
                figure(sum)
            )
        }
    };
    let state = state_of(observed, most.of())
        .map(|state| format!(" and is {state}"))
        .unwrap_or_default();
    let text = format!(
        "{}{kernel} uses {} % of a CPU{state}{others} (from {whole} % on a CPU is used up)",
        most.of(),
        figure(most.value())
    );
    all.push(Ranked::new(rank, most.of(), text, (observed, &most.point.quote)).share(most.value() / 100.0));
}

/// The state of a task that a list has, where that is remarkable.
fn state_of(observed: &Observed, of: &str) -> Option<&'static str> {
    let (name, pid) = of.strip_suffix(')')?.rsplit_once(" (pid ")?;
    let pid: u32 = pid.parse().ok()?;
    let mut tasks = observed.snapshots.iter().flat_map(|list| &list.threads);
    let task = tasks.find(|task| (task.tid == Some(pid) || task.pid == Some(pid)) && task.name == name)?;
    match task.state {
        State::Uninterruptible => Some("in state D (blocked)"),
        State::Stopped => Some("stopped"),
        _ => None,
    }
}

/// Threads of the kernel that lists name without brackets, as `top` does.
fn is_kernel_thread(name: &str) -> bool {
    const KNOWN: [&str; 14] = [
        "kworker/",
        "ksoftirqd/",
        "kswapd",
        "kcompactd",
        "khugepaged",
        "migration/",
        "rcu_",
        "jbd2/",
        "scsi_eh_",
        "xfsaild/",
        "kipmi",
        "bcache_",
        "md",
        "ksmbd:",
    ];
    let name = name.trim_start_matches('[');
    KNOWN.iter().any(|known| {
        name.strip_prefix(known).is_some_and(|rest| {
            // `md127_raid5`, and no program that begins so.
            *known != "md" || rest.starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

fn add_memory(observed: &Observed, all: &mut Vec<Ranked>) {
    let Some(most) = values::largest(observed, Metric::ProcessMemoryPercent)
        .into_iter()
        .next()
    else {
        return;
    };
    let text = format!(
        "{} has {} % of memory, the most of all processes",
        most.of(),
        figure(most.value())
    );
    let line = Ranked::new(Rank::Ordinary, most.of(), text, (observed, &most.point.quote));
    all.push(line.share(most.value() / 100.0));
}

/// Tasks in a list that are blocked, those at one place together.
fn add_blocked(observed: &Observed, list: &Snapshot, all: &mut Vec<Ranked>) {
    let blocked: Vec<&SeenThread> = list
        .threads
        .iter()
        .filter(|task| is_blocked(observed, list, task))
        .collect();
    let mut places: BTreeMap<String, Vec<&SeenThread>> = BTreeMap::new();
    for task in &blocked {
        places.entry(place(observed, task)).or_default().push(task);
    }
    let Some((place, tasks)) = places
        .into_iter()
        .max_by_key(|(place, tasks)| (tasks.len(), !place.is_empty()))
    else {
        return;
    };
    let first = tasks[0];
    let in_state = if first.state == State::Uninterruptible {
        " in state D"
    } else {
        ""
    };
    // Only of a task that somebody chose; it can be woken by a signal.
    let asleep = first.state == State::Interruptible;
    let who = match tasks.len() {
        1 if asleep => format!("{} sleeps", called(first)),
        1 => format!("{} is blocked{in_state}", called(first)),
        count => {
            let mut names: Vec<String> = tasks.iter().take(NAMED).map(|task| called(task)).collect();
            if count > NAMED {
                names.push(format!("{} more", count - NAMED));
            }
            match asleep {
                true => format!("{count} tasks sleep ({})", parts(&names)),
                false => format!("{count} tasks are blocked{in_state} ({})", parts(&names)),
            }
        }
    };
    let cause = match waiters::cause(observed, first) {
        Cause::Unknown => String::new(),
        cause => format!(", {}", cause.phrase()),
    };
    let place = match place.as_str() {
        "" => String::new(),
        place => format!(": in {place}"),
    };
    // Whoever reads the stack of one task asks what it waits for; a list of all has some that wait at any instant.
    let chosen = is_chosen(observed, list);
    let rank = match (chosen, tasks.len() >= tasks_pile_up::MIN_TASKS_IN_EACH_LIST) {
        (true, _) => Rank::Waits,
        (false, true) => Rank::Saturated,
        (false, false) => Rank::Largest,
    };
    all.push(Ranked::new(
        rank,
        called(first),
        format!(
            "{who}{cause}{place}{}",
            kernel_places::of_tasks(observed, first, tasks.len())
        ),
        (observed, &first.quote),
    ));
}

/// Whether a task is blocked: by its state; or by a stack in the kernel, where somebody chose it and no state is reported. Of several that were
/// chosen together most have nothing to do: those count whose functions say that they wait.
fn is_blocked(observed: &Observed, list: &Snapshot, task: &SeenThread) -> bool {
    let stands = |task: &SeenThread| {
        task.kernel_stack
            .is_some_and(|stack| observed.stacks.frames(stack).next().is_some())
    };
    match task.state {
        State::Uninterruptible => true,
        State::Unknown | State::Interruptible => {
            let alone = list.threads.len() == 1;
            is_chosen(observed, list) && stands(task) && (alone || blocked::is_blocked(observed, task))
        }
        _ => false,
    }
}

/// Whether a list shows tasks that somebody chose, or that were blocked, and not all.
fn is_chosen(observed: &Observed, list: &Snapshot) -> bool {
    list.total.is_none() || !blocked::is_whole(observed, list)
}

/// Where a task stands in the kernel: its stack, or the function that it sleeps in.
fn place(observed: &Observed, task: &SeenThread) -> String {
    match (task.kernel_stack, &task.kernel_function) {
        (Some(stack), _) => {
            let frames: Vec<&str> = observed.stacks.frames(stack).take(FRAMES).collect();
            frames.join(" < ")
        }
        (None, Some(function)) => function.clone(),
        (None, None) => String::new(),
    }
}

/// A task by name and number.
fn called(task: &SeenThread) -> String {
    match (task.name.as_str(), task.tid.or(task.pid)) {
        ("", Some(id)) => format!("task {id}"),
        ("", None) => "a task".to_owned(),
        (name, Some(id)) => format!("{name} (pid {id})"),
        (name, None) => name.to_owned(),
    }
}

/// Tasks that the kernel's watchdog found blocked.
fn add_hung(observed: &Observed, all: &mut Vec<Ranked>) {
    let hung = observed
        .happenings
        .iter()
        .filter_map(|happening: &Happening| match &happening.what {
            What::Kernel(KernelEvent::HungTask {
                process,
                pid,
                ns,
                owner,
                stack,
            }) => Some((happening, process, pid, *ns, owner, stack)),
            _ => None,
        });
    let hung: Vec<_> = hung.collect();
    let Some((happening, process, pid, ns, owner, stack)) =
        hung.iter().max_by_key(|one| (one.3, !one.5.is_empty())).cloned()
    else {
        return;
    };
    let frames: Vec<&str> = stack.iter().take(FRAMES).map(String::as_str).collect();
    let place = match frames.is_empty() {
        true => String::new(),
        false => format!(", in {}", frames.join(" < ")),
    };
    let told = kernel_places::told(stack.iter().map(String::as_str))
        .map(|told| format!("; it {told}"))
        .unwrap_or_default();
    let owner = owner
        .as_ref()
        .map(|owner| format!("; the lock is likely held by {owner}"))
        .unwrap_or_default();
    let others = match hung.len() {
        1 => String::new(),
        count => format!("; {} more reports of blocked tasks", count - 1),
    };
    let text = format!(
        "{process} (pid {pid}) was blocked for more than {}{place}{told}{owner}{others}",
        duration(ns)
    );
    all.push(Ranked::new(Rank::Waits, process, text, (observed, &happening.quote)).ns(ns));
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use crate::account::values::tests::report;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{
        Happening, KernelEvent, Metric, Quote, SeenThread, Snapshot, SnapshotKind, State, What,
    };

    #[test]
    fn the_delayed_process_is_told_beside_the_one_that_writes() {
        let observed = report(&[
            (Metric::ProcessIoDelayTicks, "kworker/u4:2 (pid 20065)", 1503.0),
            (Metric::ProcessIoDelayTicks, "python (pid 18940)", 96.0),
            (Metric::ProcessWriteKibPerSecond, "python (pid 18940)", 46_000.0),
            (Metric::ProcessWriteKibPerSecond, "jbd2/sda1-8 (pid 354)", 0.0),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "kworker/u4:2 (pid 20065) was delayed by disks for 1503 ticks (15 s); python (pid 18940) writes most: 46000 KiB/s, 100 \
             % of what all together do"
        );
    }

    #[test]
    fn what_processes_of_one_name_move_is_summed() {
        let observed = report(&[
            (Metric::ProcessWriteKibPerSecond, "fio (pid 1)", 5000.0),
            (Metric::ProcessWriteKibPerSecond, "fio (pid 2)", 4000.0),
            (Metric::ProcessWriteKibPerSecond, "fio (pid 3)", 0.0),
            (Metric::ProcessWriteKibPerSecond, "rsyslogd (pid 4)", 1000.0),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "fio (pid 1) writes most: 5000 KiB/s, 50 % of what all together do; 2 processes named fio move 9000 KiB/s together, 90 %"
        );
    }

    #[test]
    fn processes_of_one_name_that_wait_for_a_cpu_are_counted() {
        let names: Vec<String> = (0..48).map(|pid| format!("stress (pid {pid})")).collect();
        let figures: Vec<_> = names
            .iter()
            .map(|name| (Metric::ProcessWaitPercent, name.as_str(), 75.0))
            .collect();
        let first = &account(&report(&figures))[0].text;
        assert!(
            first.ends_with("waits for a CPU 75 % of the time (50 % is much); 48 processes named stress wait at least half as long"),
            "{first}"
        );
    }

    #[test]
    fn a_thread_of_the_kernel_that_spins_is_named_as_one() {
        let observed = report(&[
            (Metric::ProcessCpuPercent, "ksoftirqd/1 (pid 9)", 98.1),
            (Metric::CpuIdlePercent, "", 80.0),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "ksoftirqd/1 (pid 9), a thread of the kernel, uses 98.1 % of a CPU (from 90 % on a CPU is used up)"
        );
    }

    #[test]
    fn a_task_of_which_somebody_read_the_stack_is_told_with_it() {
        let mut observed = Observed::default();
        let stack = observed
            .stacks
            .intern(["md_super_wait", "md_bitmap_unplug", "raid1_unplug"]);
        observed.snapshots.push(Snapshot {
            threads: vec![SeenThread {
                name: "ar".to_owned(),
                tid: Some(29_594),
                kernel_stack: Some(stack),
                ..SeenThread::default()
            }],
            states: false,
            ..Snapshot::new(SnapshotKind::Kernel, Quote::default())
        });
        let first = account(&observed)[0].text.clone();
        assert!(first.starts_with("ar (pid 29594) is blocked"), "{first}");
        assert!(
            first.ends_with(
                ": in md_super_wait < md_bitmap_unplug < raid1_unplug; it waits for the superblocks of an array (md) to be written"
            ),
            "{first}"
        );
        observed.snapshots[0].threads[0].state = State::Interruptible;
        assert!(account(&observed)[0].text.starts_with("ar (pid 29594) sleeps"));
        observed.snapshots[0].threads[0].state = State::Unknown;
        // In a list of all tasks one that is blocked is an instant's.
        observed.snapshots[0].total = Some(200);
        assert_eq!(account(&observed), []);
        observed.snapshots[0].threads[0].state = State::Uninterruptible;
        assert!(account(&observed)[0].text.contains("in state D"));
    }

    #[test]
    fn tasks_that_have_nothing_to_do_are_not_blocked() {
        let mut observed = Observed::default();
        let idle = "schedule kthreadd,schedule kswapd,schedule xfsaild,schedule kjournald2,schedule rescuer_thread,\
            schedule schedule_timeout svc_recv,schedule schedule_hrtimeout_range_clock ep_poll,\
            schedule schedule_timeout inet_csk_accept,schedule pipe_read vfs_read ksys_read,schedule n_tty_read tty_read";
        let tasks = (10..).zip(idle.split(',')).map(|(pid, names)| SeenThread {
            tid: Some(pid),
            state: State::Interruptible,
            kernel_stack: Some(observed.stacks.intern(names.split(' '))),
            ..SeenThread::default()
        });
        let threads = tasks.collect();
        observed.snapshots.push(Snapshot {
            threads,
            states: false,
            ..Snapshot::new(SnapshotKind::Kernel, Quote::default())
        });
        assert_eq!(account(&observed), []);
        let names = "__schedule schedule rwsem_down_write_slowpath ext4_setattr";
        let stack = observed.stacks.intern(names.split(' '));
        observed.snapshots[0].threads[3].kernel_stack = Some(stack);
        assert!(account(&observed)[0].text.starts_with("task 13 sleeps"));
    }

    #[test]
    fn the_longest_hung_task_is_told_with_its_functions() {
        let hung = |process: &str, seconds: u64| Happening {
            what: What::Kernel(KernelEvent::HungTask {
                process: process.to_owned(),
                pid: 103,
                ns: seconds * 1_000_000_000,
                owner: None,
                stack: vec!["io_schedule".to_owned(), "get_request_wait".to_owned()],
            }),
            at: None,
            since_boot: None,
            quote: Quote::default(),
            text: String::new(),
        };
        let observed = Observed {
            happenings: vec![hung("events/4", 120), hung("events/5", 241)],
            ..Observed::default()
        };
        assert_eq!(
            account(&observed)[0].text,
            "events/5 (pid 103) was blocked for more than 4 min 1 s, in io_schedule < get_request_wait; 1 more reports of blocked \
             tasks"
        );
    }
}
