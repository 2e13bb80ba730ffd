//! What is said of those who wait for something that there is too little of, and of the one that has most of it.
//!
//! In: a wait for a CPU, for memory of a cgroup, or for the queue of a network device. Out: its title, evidence and remedies.

use super::awaited_said::{sentence, who};
use super::{awaited_standby as standby, duration, say};
use crate::machine::seen::{Behind, Root};
use holdup_attribution::classify;
use holdup_evidence::observed::{
    Awaited, CpuShare, DeviceQueue, Precedence, SeenPool, SeenProcess, SeenThread, SeenWait, Short, Snapshot,
    SnapshotKind, State, When,
};
use holdup_evidence::{Cause, Observed, TaskState};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::Remedy;
use holdup_model::title::Title;

/// Nanoseconds in a second, and bits in a byte.
const SECOND: f64 = 1e9;
const BITS: f64 = 8.0;

/// Per mille in a percent.
const PERMILLE_IN_PERCENT: f64 = 10.0;

/// Who waits for it directly, and who behind those: `python3 search.py waits for it, and 2 processes of curl wait behind`.
fn waiters(root: &Root<'_>, directly: &str) -> String {
    let (direct, through): (Vec<Behind<'_>>, Vec<Behind<'_>>) =
        root.behind.iter().cloned().partition(|one| one.directly);
    match (direct.is_empty(), through.is_empty()) {
        (true, _) => format!("{} behind it", sentence(&through)),
        (false, true) => format!("{} {directly}", sentence(&direct)),
        (false, false) => format!(
            "{} {directly}, and {} behind",
            sentence(&direct),
            sentence(&through)
        ),
    }
}

/// `CPU 1`, `CPUs 0-1`, or all of them.
fn cpus(share: &CpuShare) -> String {
    match share.cpus.as_str() {
        "" => "the CPUs".to_owned(),
        one if one.bytes().all(|byte| byte.is_ascii_digit()) => format!("CPU {one}"),
        several => format!("CPUs {several}"),
    }
}

/// A rate in bits, as limits of networks are given.
fn rate(bytes_per_second: u64) -> String {
    let bits = bytes_per_second as f64 * BITS;
    match bits {
        bits if bits >= 1e9 => format!("{:.1} Gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.1} Mbit/s", bits / 1e6),
        bits => format!("{:.0} kbit/s", bits / 1e3),
    }
}

/// How long a byte stands in a queue.
fn delay(queue: &DeviceQueue) -> String {
    let seconds = queue.backlog as f64 / queue.rate.max(1) as f64;
    duration((seconds * SECOND) as u64)
}

pub(super) fn title(root: &Root<'_>, has: &SeenWait, holder: &str, long: &str) -> Title {
    match &has.short {
        Short::Cpu(share) => {
            let others = match share.processes {
                0 | 1 => String::new(),
                several => format!(" and {} more of it", several - 1),
            };
            let first = root.behind.iter().find(|one| one.directly);
            let ran = format!(
                "for a CPU and ran {:.1} % of the time",
                f64::from(share.ran_permille) / PERMILLE_IN_PERCENT
            );
            // What one ran says nothing of several.
            let one = root.behind.iter().filter(|one| one.directly).count() == 1 && first.is_some();
            let directly = if one { ran.as_str() } else { "for a CPU" };
            Title::from(format!(
                "{holder}{others} has {}, {} % of one",
                cpus(share),
                share.taken_percent
            ))
            .with(format!(": {}, {long}", waiters(root, directly)))
        }
        Short::Memory(share) => Title::from(format!(
            "The cgroup {} is at its limit of {} of memory, and its OOM killer is disabled",
            has.name,
            say::bytes(share.limit)
        ))
        .with(format!("; {holder} has {} of it", say::bytes(share.taken)))
        .with(format!(": {}, {long}", waiters(root, "for memory"))),
        Short::Device(queue) => Title::from(format!(
            "{holder} fills the queue of the network device {} ({}, {})",
            has.name,
            say::name_or(&queue.kind, "a queue"),
            rate(queue.limit.unwrap_or(queue.rate))
        ))
        .with(format!(
            ": {}, {} for each packet",
            waiters(root, "to send there"),
            delay(queue)
        )),
        Short::Pool(pool) => own_pool(root, has, pool, (holder, long)),
        Short::Standby(one) => standby::title(root, one, long),
        Short::Nothing | Short::Answer(_) => Title::from(format!("{holder} has {}", has.name))
            .with(format!(": {}, {long}", waiters(root, "for it"))),
    }
}

/// Workers that wait for themselves.
fn own_pool(root: &Root<'_>, has: &SeenWait, pool: &SeenPool, (holder, long): (&str, &str)) -> Title {
    let (all, same) = match pool.workers {
        1 => ("its only worker waits".to_owned(), "this same worker"),
        count => (format!("all {count} workers wait"), "these same workers"),
    };
    let requests = say::several(u64::from(pool.queued), "request");
    Title::from(format!(
        "{holder} waits for itself: {all} for {} at {} to answer",
        say::name_or(&pool.through, "a proxy"),
        pool.at
    ))
    .with(format!(
        ", which waits for {same} with {requests} in the queue of {}",
        has.name
    ))
    .with(format!("; {}, {long}", waiters(root, "for it")))
}

/// A file system that somebody froze.
pub(super) fn frozen(root: &Root<'_>, has: &SeenWait, long: &str) -> Title {
    let which = match has.name.as_str() {
        "" => "A file system".to_owned(),
        mount if has.users.is_empty() => format!("The file system of {mount}"),
        mount => format!("The file system {mount}"),
    };
    let by = super::frozen::by(&has.users);
    Title::from(format!("{which} is frozen{by}"))
        .with(format!(": {}, {long}", waiters(root, "to write there")))
}

/// Tasks that wait in all lists for a frozen file system to be thawed. Nobody is told who froze it.
pub(super) fn frozen_waits(observed: &Observed) -> Vec<SeenWait> {
    let kernel = |list: &&Snapshot| list.kind == SnapshotKind::Kernel && list.states;
    let lists: Vec<&Snapshot> = observed.snapshots.iter().filter(kernel).collect();
    let Some((last, before)) = lists.split_last().filter(|(_, before)| !before.is_empty()) else {
        return Vec::new();
    };
    let is_frozen = |task: &SeenThread| {
        let stack = task
            .kernel_stack
            .map(|stack| observed.stacks.frames(stack).map(str::to_owned).collect());
        let frames: Vec<String> = stack.unwrap_or_else(|| task.kernel_function.iter().cloned().collect());
        let cause = || classify::of_task(TaskState::Uninterruptible, &frames, None).cause;
        task.state == State::Uninterruptible && !frames.is_empty() && cause() == Cause::FsFrozen
    };
    let blocked = |list: &Snapshot, tid: Option<u32>| {
        let mut tasks = list.threads.iter();
        tasks.any(|task| task.tid == tid && task.state == State::Uninterruptible)
    };
    let long = lists
        .first()
        .and_then(|first| Some((last.at.as_ref()?, first.at.as_ref()?)));
    let ns = match long {
        Some((When::SinceBoot(last), When::SinceBoot(first))) => last.saturating_sub(*first),
        _ => return Vec::new(),
    };
    let mut found: Vec<SeenWait> = Vec::new();
    for task in last.threads.iter().filter(|task| is_frozen(task)) {
        let Some(pid) = task
            .pid
            .filter(|_| before.iter().all(|list| blocked(list, task.tid)))
        else {
            continue;
        };
        if found.iter().any(|wait| wait.waiter.pid == pid) {
            continue;
        }
        let volume = observed
            .frozen_volumes
            .iter()
            .find(|one| one.waiters.contains(&pid));
        found.push(SeenWait {
            users: volume.map_or_else(Vec::new, |volume| volume.users.clone()),
            waiter: SeenProcess {
                pid,
                name: task.name.clone(),
                ..SeenProcess::default()
            },
            on: Awaited::Frozen,
            name: match (volume, &task.file) {
                (Some(volume), _) => volume.mount.clone(),
                (None, Some(file)) => file.path.clone(),
                (None, None) => String::new(),
            },
            ns,
            alone: true,
            quote: task.quote.clone(),
            ..SeenWait::default()
        });
    }
    found
}

/// What shows it.
pub(super) fn evidence(has: &SeenWait) -> Option<String> {
    let waiter = who(&has.waiter);
    match &has.short {
        Short::Cpu(share) => {
            let by = match &share.by {
                Precedence::Unknown => String::new(),
                Precedence::RealTime => "; the other one has a real-time policy".to_owned(),
                Precedence::Idle => format!("; {waiter} has the policy SCHED_IDLE"),
                Precedence::Nice { own, other } => {
                    format!("; its nice value is {own}, the other one's {other}")
                }
                Precedence::Weight { own, other } => format!(
                    "; its cgroup {} has a weight of {}, and {} of the other one {}",
                    own.0, own.1, other.0, other.1
                ),
            };
            Some(format!(
                "{waiter} was runnable in nearly all lists and ran {:.1} % of {}{by}",
                f64::from(share.ran_permille) / PERMILLE_IN_PERCENT,
                duration(has.ns)
            ))
        }
        Short::Memory(_) => Some(format!(
            "{} is under_oom, with oom_kill_disable 1: whoever needs memory waits until another one gives some back",
            has.name
        )),
        Short::Device(queue) => Some(format!(
            "{} stand in the queue of {}, {} of them its own; {} leave it in a second",
            say::bytes(queue.backlog),
            has.name,
            say::bytes(queue.taken.min(queue.backlog)),
            say::bytes(queue.rate)
        )),
        Short::Standby(one) => Some(standby::evidence(has, one)),
        Short::Pool(pool) => Some(format!(
            "whatever {} and whoever stands before it have asked, and got no answer to, is in that queue or with these workers",
            say::name_or(&pool.through, "the proxy")
        )),
        Short::Nothing | Short::Answer(_) => None,
    }
}

/// Who has it.
fn holder_name(has: &SeenWait) -> String {
    has.holder
        .as_ref()
        .map(|one| one.name.clone())
        .unwrap_or_default()
}

/// What there is too little of.
pub(super) fn resource(has: &SeenWait) -> Option<Resource> {
    match &has.short {
        Short::Cpu(share) => Some(Resource::named(ResourceKind::Name, cpus(share))),
        Short::Memory(_) => Some(Resource::named(ResourceKind::Cgroup, &has.name)),
        Short::Device(_) => Some(Resource::named(ResourceKind::Device, &has.name)),
        Short::Pool(_) => Some(Resource::named(ResourceKind::Socket, &has.name)),
        Short::Standby(_) => Some(Resource::named(ResourceKind::Process, holder_name(has))),
        Short::Nothing | Short::Answer(_) => None,
    }
}

/// What to do.
pub(super) fn remedies(has: &SeenWait, holder: &SeenProcess) -> Option<Vec<Remedy>> {
    let name = who(holder);
    let (own, pid) = (who(&has.waiter), holder.pid);
    match &has.short {
        Short::Cpu(share) => {
            let give = match &share.by {
                Precedence::RealTime => Remedy::changing(
                    format!("give {name} an ordinary policy, or a CPU of its own"),
                    "what it has to do in time may come late",
                )
                .with_command(format!("chrt --other --pid 0 {pid}")),
                Precedence::Weight { own, other } => Remedy::changing(
                    format!(
                        "give the cgroup {} more weight (cpu.weight, cpu.shares), or {} less",
                        own.0, other.0
                    ),
                    "what runs there gets less CPU time",
                ),
                Precedence::Nice { .. } | Precedence::Idle => Remedy::changing(
                    format!("give {own} a lower nice value, or {name} a higher one"),
                    "what gets less runs for longer",
                )
                .with_command(format!("renice -n 10 -p {pid}")),
                Precedence::Unknown => Remedy::safe(format!("find out what {name} runs"))
                    .with_command(format!("holdup attach -p {pid}")),
            };
            let mut all = vec![give];
            if !share.cpus.is_empty() {
                all.push(
                    Remedy::safe(format!(
                        "let {own} use other CPUs than {} (taskset, cpuset.cpus)",
                        cpus(share)
                    ))
                    .with_command(format!("taskset -cp {}", has.waiter.pid)),
                );
            }
            Some(all)
        }
        Short::Memory(_) => Some(vec![
            Remedy::safe(format!("find out what {name} keeps in memory"))
                .with_command(format!("holdup attach -p {pid}")),
            Remedy::changing(
                format!(
                    "raise the limit of {} (memory.limit_in_bytes), or end {name}",
                    has.name
                ),
                "a program that never gives memory back reaches the next limit, too",
            ),
            Remedy::changing(
                "enable the OOM killer (memory.oom_control 0), and restart the killed process",
                "a process of the cgroup is killed when the limit is reached",
            ),
        ]),
        Short::Device(_) => Some(vec![
            Remedy::safe(format!("limit what {name} sends, or send it at another time")),
            Remedy::safe(format!(
                "let others not queue behind it: a queue with shares on {} (fq_codel, or a class of its own)",
                has.name
            ))
            .with_command(format!("tc -s qdisc show dev {}", say::quoted(&has.name))),
        ]),
        Short::Pool(_) => Some(vec![
            Remedy::safe("find out which page or job asks the own service")
                .with_command(format!("holdup attach -p {pid}")),
            Remedy::safe(
                "call the function itself instead of asking the own service, or have other processes answer such requests",
            ),
            Remedy::changing(
                format!("restart {name} to end the deadlock, and set a timeout for such requests"),
                "the requests that wait are lost",
            ),
        ]),
        Short::Standby(one) => Some(standby::remedies(holder, one)),
        Short::Nothing | Short::Answer(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::awaited_said;
    use super::{evidence, frozen_waits, remedies};
    use crate::machine::seen;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{
        Awaited, CpuShare, DeviceQueue, MemoryShare, Precedence, Quote, SeenPool, SeenProcess, SeenThread,
        SeenWait, Short, Snapshot, SnapshotKind, State, When,
    };

    const S: u64 = 1_000_000_000;

    fn process(pid: u32, name: &str) -> SeenProcess {
        SeenProcess {
            pid,
            name: name.to_owned(),
            ..SeenProcess::default()
        }
    }

    fn wait(waiter: SeenProcess, on: Awaited, holder: SeenProcess, short: Short) -> SeenWait {
        SeenWait {
            waiter,
            on,
            name: "x1".to_owned(),
            holder: Some(holder),
            ns: 5 * S,
            alone: true,
            short,
            ..SeenWait::default()
        }
    }

    /// The title of what a server waits for, with a client behind it; and the evidence.
    fn said(on: Awaited, short: Short) -> (String, String) {
        let server = process(7, "searchd");
        let waits = [
            wait(server.clone(), on, process(9, "rebuild"), short),
            SeenWait {
                waiter: process(20, "curl"),
                holder: Some(server),
                ns: 4 * S,
                ..SeenWait::default()
            },
        ];
        let roots = seen::of(&waits);
        assert_eq!(roots.len(), 1);
        assert!(remedies(roots[0].has.unwrap(), roots[0].holder.unwrap()).is_some());
        (
            awaited_said::title(&roots[0]).into(),
            evidence(&waits[0]).unwrap(),
        )
    }

    #[test]
    fn who_has_the_cpus_stands_first() {
        let share = CpuShare {
            ran_permille: 3,
            taken_percent: 99,
            processes: 2,
            cpus: "1".to_owned(),
            by: Precedence::Weight {
                own: ("/web".to_owned(), 2),
                other: ("/batch".to_owned(), 60_000),
            },
        };
        let (title, evidence) = said(Awaited::Cpu, Short::Cpu(share));
        assert_eq!(
            title,
            "rebuild (pid 9) and 1 more of it has CPU 1, 99 % of one: searchd waits for a CPU and ran 0.3 % of the time, and curl waits behind, for at least 5.00 s"
        );
        assert!(
            evidence.contains("its cgroup /web has a weight of 2, and /batch of the other one 60000"),
            "{evidence}"
        );
    }

    #[test]
    fn workers_that_wait_for_themselves_are_the_root_of_all_who_ask_there() {
        let pool = |workers| SeenPool {
            workers,
            queued: 12,
            through: "nginx".to_owned(),
            at: "127.0.0.1:80".to_owned(),
        };
        let (title, evidence) = said(Awaited::OwnPool, Short::Pool(pool(5)));
        assert_eq!(
            title,
            "rebuild (pid 9) waits for itself: all 5 workers wait for nginx at 127.0.0.1:80 to answer, which waits for these same workers with 12 requests in the queue of x1; searchd waits for it, and curl waits behind, for at least 5.00 s"
        );
        assert!(
            evidence.starts_with("whatever nginx and whoever stands before it"),
            "{evidence}"
        );
        let (title, _) = said(Awaited::OwnPool, Short::Pool(pool(1)));
        assert!(title.contains("its only worker waits for nginx at"), "{title}");
        // The workers themselves ask the proxy, and so do others: all of them are behind one root.
        let (proxy, worker) = (process(30, "nginx"), process(11, "php-fpm"));
        let asks = |waiter: SeenProcess| SeenWait {
            waiter,
            holder: Some(proxy.clone()),
            ns: 4 * S,
            ..SeenWait::default()
        };
        let waits = [
            wait(
                proxy.clone(),
                Awaited::OwnPool,
                process(10, "php-fpm"),
                Short::Pool(pool(1)),
            ),
            asks(worker),
            asks(process(40, "haproxy")),
        ];
        let roots = seen::of(&waits);
        let behind: Vec<u32> = roots[0].behind.iter().map(|one| one.process.pid).collect();
        assert_eq!((roots.len(), behind), (1, vec![30, 11, 40]));
    }

    #[test]
    fn who_has_the_memory_and_who_fills_a_queue_stand_first() {
        let share = MemoryShare {
            limit: 56 << 20,
            taken: 40 << 20,
        };
        let (title, _) = said(Awaited::Memory, Short::Memory(share));
        assert_eq!(
            title,
            "The cgroup x1 is at its limit of 56.0 MiB of memory, and its OOM killer is disabled; rebuild (pid 9) has 40.0 MiB of it: searchd waits for memory, and curl waits behind, for at least 5.00 s"
        );
        let queue = DeviceQueue {
            kind: "tbf".to_owned(),
            backlog: 186_000,
            rate: 62_000,
            limit: Some(62_500),
            taken: 180_000,
        };
        let (title, _) = said(Awaited::Device, Short::Device(queue));
        assert_eq!(
            title,
            "rebuild (pid 9) fills the queue of the network device x1 (tbf, 500 kbit/s): searchd waits to send there, and curl waits behind, 3.00 s for each packet"
        );
    }

    /// A server in these states in lists that are 2 s apart, blocked in these functions.
    fn lists(states: &[State], functions: &[&str]) -> Vec<SeenWait> {
        let mut observed = Observed::default();
        let stack = observed.stacks.intern(functions.iter().copied());
        let list = |(at, state): (usize, &State)| Snapshot {
            at: Some(When::SinceBoot(2 * S * at as u64)),
            threads: vec![SeenThread {
                name: "ordersd".to_owned(),
                pid: Some(7),
                tid: Some(8),
                state: *state,
                kernel_stack: Some(stack),
                ..SeenThread::default()
            }],
            ..Snapshot::new(SnapshotKind::Kernel, Quote::default())
        };
        observed.snapshots = states.iter().enumerate().map(list).collect();
        frozen_waits(&observed)
    }

    #[test]
    fn who_waits_in_all_lists_for_a_frozen_file_system_keeps_its_clients_waiting() {
        const FROZEN: &[&str] = &[
            "percpu_rwsem_wait",
            "__percpu_down_read",
            "mnt_want_write",
            "path_openat",
        ];
        let blocked = [State::Uninterruptible; 3];
        let mut waits = lists(&blocked, FROZEN);
        assert_eq!((waits.len(), waits[0].ns), (1, 4 * S));
        waits.push(SeenWait {
            waiter: process(20, "curl"),
            holder: Some(process(7, "ordersd")),
            ns: 4 * S,
            ..SeenWait::default()
        });
        let roots = seen::of(&waits);
        assert_eq!(
            awaited_said::title(&roots[0]),
            "A file system is frozen: ordersd waits to write there, and curl waits behind, for at least 4.00 s"
        );
        assert!(lists(&[State::Runnable, State::Uninterruptible], FROZEN).is_empty());
        assert!(lists(&blocked, &["folio_wait_bit", "ext4_sync_file"]).is_empty());
    }
}
