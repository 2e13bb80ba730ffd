//! Threads that are runnable and get no CPU while others have those that they may use: the machine may be half idle meanwhile.
//!
//! In: lists of tasks, and the scheduler's own account of each busy thread (`/proc/PID/task/TID/schedstat`). Out: those that hardly ran
//! although they were runnable in nearly all lists, each with the program that had their CPUs, and why the kernel prefers that one. A
//! machine on which all get their share has none, however long its run queues are: the other one must have had many times as much.

use super::aside::Aside;
use holdup_evidence::Ns;
use holdup_evidence::observed::{CpuShare, Precedence};
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::TaskList;
use holdup_proc::{Root, blocking, clocks};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

/// Threads that are followed: a machine has some hundred that run or are runnable.
const MAX_THREADS: usize = 512;

/// Lists, and part of them, in which a thread must be runnable.
const MIN_LISTS: u32 = 3;
const MIN_RUNNABLE_SHARE: f64 = 0.8;

/// The shortest time in which that is no chance.
const MIN_WATCHED_NS: Ns = 2_000_000_000;

/// The most that a thread may have run of the time, if it gets no CPU; and of what each would have if all that are runnable got as much.
const MAX_RAN_SHARE: f64 = 0.1;
const MAX_FAIR_SHARE: f64 = 0.2;

/// How much of one CPU the other program must have had.
const MIN_TAKEN_SHARE: f64 = 0.15;

/// Waits that are reported.
const MAX_REPORTED: usize = 32;

/// How long is waited for the weights of cgroups.
const PATIENCE: Duration = Duration::from_millis(300);

/// Numbers of scheduling policies: first in, first out; round robin; what runs only where nobody else wants to; deadlines.
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const IDLE: u32 = 5;
const DEADLINE: u32 = 6;

/// Percent and per mille in a whole.
const PERCENT: f64 = 100.0;
const PERMILLE: f64 = 1000.0;

/// A thread that was runnable.
#[derive(Debug, Clone, Copy)]
struct Followed {
    /// When it was seen for the first time and the last, with its CPU time by then.
    first: (Ns, Ns),
    last: (Ns, Ns),
    lists: u32,
    /// The list in which it was seen first.
    since: u32,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Starved {
    lists: u32,
    threads: HashMap<(u32, u32), Followed>,
}

/// One that gets no CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) pid: u32,
    /// The process that has most of what it may use.
    pub(super) holder: u32,
    pub(super) ns: Ns,
    pub(super) share: CpuShare,
}

/// What the kernel says of a thread.
#[derive(Debug, Clone, Default)]
struct Kept {
    /// The CPU that it ran on last.
    cpu: u32,
    nice: i32,
    policy: u32,
}

impl Starved {
    /// Looks once.
    pub(super) fn turn(&mut self, root: &Root, list: &TaskList) {
        self.lists += 1;
        let now = clocks::monotonic();
        for task in list.busy.iter().filter(|task| task.state == 'R') {
            let id = (task.pid, task.tid);
            if !self.threads.contains_key(&id) && self.threads.len() >= MAX_THREADS {
                continue;
            }
            let Some(ran) = ran(root, id) else { continue };
            let known = self.threads.entry(id).or_insert(Followed {
                first: (now, ran),
                last: (now, ran),
                lists: 0,
                since: self.lists,
            });
            known.last = (now, ran);
            known.lists += 1;
        }
    }

    /// What each thread would have of one CPU, if all that were runnable on these CPUs got as much.
    fn fair(&self, allowed: &Allowed, places: &HashMap<(u32, u32), Kept>) -> f64 {
        let there = self.threads.iter().filter(|(id, _)| {
            let place = places.get(id);
            place.is_none_or(|place| allowed.has(place.cpu))
        });
        let at_a_time: f64 =
            there.map(|(_, one)| f64::from(one.lists)).sum::<f64>() / f64::from(self.lists.max(1));
        allowed.count as f64 / at_a_time.max(1.0)
    }

    /// Who gets no CPU, and who has it; `throttled` are processes whose cgroup has used up its CPU time, `named` are the names of processes.
    pub(super) fn finish(
        self,
        root: &Root,
        throttled: &BTreeSet<u32>,
        named: &dyn Fn(u32) -> Option<String>,
    ) -> Vec<Waits> {
        let lists = self.lists;
        let mut starved: Vec<((u32, u32), Ns, f64)> = Vec::new();
        let mut running: Vec<((u32, u32), f64)> = Vec::new();
        for (id, one) in &self.threads {
            let watched = one.last.0.saturating_sub(one.first.0);
            let share = one.last.1.saturating_sub(one.first.1) as f64 / watched.max(1) as f64;
            let possible = lists + 1 - one.since;
            let runnable = f64::from(one.lists) >= MIN_RUNNABLE_SHARE * f64::from(possible);
            let known = watched >= MIN_WATCHED_NS && one.lists >= MIN_LISTS && runnable;
            match known && share <= MAX_RAN_SHARE {
                true if !throttled.contains(&id.0) => starved.push((*id, watched, share)),
                true => {}
                false => running.push((*id, share)),
            }
        }
        if starved.is_empty() {
            return Vec::new();
        }
        starved.sort_unstable_by_key(|(id, ns, _)| (std::cmp::Reverse(*ns), *id));
        starved.truncate(MAX_REPORTED);
        let places: HashMap<(u32, u32), Kept> = (running.iter())
            .map(|(id, _)| *id)
            .chain(starved.iter().map(|(id, ..)| *id))
            .filter_map(|id| Some((id, kept(root, id)?)))
            .collect();
        let found = starved.into_iter().filter_map(|(id, ns, share)| {
            let allowed = allowed(root, id)?;
            let fair = self.fair(&allowed, &places);
            let Taker {
                id: holder,
                sum: taken,
                most,
                processes,
            } = taker(&running, &places, &allowed, id, named)?;
            let unfair = share <= MAX_FAIR_SHARE * fair && most >= fair.min(1.0) / 2.0;
            (taken >= MIN_TAKEN_SHARE && unfair).then(|| Waits {
                pid: id.0,
                holder: holder.0,
                ns,
                share: CpuShare {
                    ran_permille: (share * PERMILLE).round() as u32,
                    taken_percent: (taken * PERCENT).round() as u32,
                    processes,
                    cpus: match allowed.all {
                        true => String::new(),
                        false => allowed.text.clone(),
                    },
                    by: precedence(&places, id, holder),
                },
            })
        });
        let found: Vec<Waits> = found.collect();
        weighed(root, found)
    }
}

/// The program that ran most on some CPUs.
struct Taker {
    /// Its thread that ran most.
    id: (u32, u32),
    /// What all of them ran, of one CPU, and what that one did.
    sum: f64,
    most: f64,
    /// By how many processes.
    processes: u32,
}

/// The program that ran most on these CPUs.
fn taker(
    running: &[((u32, u32), f64)],
    places: &HashMap<(u32, u32), Kept>,
    allowed: &Allowed,
    own: (u32, u32),
    named: &dyn Fn(u32) -> Option<String>,
) -> Option<Taker> {
    /// What a program took, its thread that took most, and its processes.
    #[derive(Default)]
    struct Taken {
        sum: f64,
        most: f64,
        id: (u32, u32),
        processes: BTreeSet<u32>,
    }
    let mut programs: HashMap<String, Taken> = HashMap::new();
    for (id, share) in running {
        let there = places.get(id).is_some_and(|place| allowed.has(place.cpu));
        if id.0 == own.0 || !there {
            continue;
        }
        let Some(name) = named(id.0) else { continue };
        let program = programs.entry(name).or_default();
        program.sum += share;
        program.processes.insert(id.0);
        if *share >= program.most {
            (program.most, program.id) = (*share, *id);
        }
    }
    let most = programs.into_values().max_by(|a, b| a.sum.total_cmp(&b.sum))?;
    let processes = u32::try_from(most.processes.len()).unwrap_or(u32::MAX);
    Some(Taker {
        id: most.id,
        sum: most.sum,
        most: most.most,
        processes,
    })
}

/// Why the kernel prefers the other one, as far as the threads themselves tell.
fn precedence(places: &HashMap<(u32, u32), Kept>, own: (u32, u32), other: (u32, u32)) -> Precedence {
    let Some((own, other)) = places.get(&own).zip(places.get(&other)) else {
        return Precedence::Unknown;
    };
    let real_time = |one: &Kept| matches!(one.policy, FIFO | ROUND_ROBIN | DEADLINE);
    match () {
        () if real_time(other) && !real_time(own) => Precedence::RealTime,
        () if own.policy == IDLE && other.policy != IDLE => Precedence::Idle,
        () if own.nice > other.nice => Precedence::Nice {
            own: own.nice,
            other: other.nice,
        },
        () => Precedence::Unknown,
    }
}

/// The same with weights of cgroups: where those differ, they decide before nice values do. Read aside: files of cgroups take locks.
fn weighed(root: &Root, found: Vec<Waits>) -> Vec<Waits> {
    let pairs: BTreeSet<(u32, u32)> = found.iter().map(|one| (one.pid, one.holder)).collect();
    let reader = root.clone();
    let aside = Aside::start(
        blocking::reader(c"holdup-host"),
        |_| "the weights of cgroups".to_owned(),
        pairs.into_iter().collect(),
        move |(own, other): &(u32, u32)| weights(&reader, *own, *other),
    );
    let known: HashMap<(u32, u32), Option<Weighed>> = aside.take(PATIENCE).seen.into_iter().collect();
    let with = |mut one: Waits| {
        let weights = known.get(&(one.pid, one.holder)).cloned().flatten();
        if let Some((own, other)) = weights.filter(|_| one.share.by != Precedence::RealTime) {
            one.share.by = Precedence::Weight { own, other };
        }
        one
    };
    found.into_iter().map(with).collect()
}

/// Two cgroups with their weights.
type Weighed = ((String, u64), (String, u64));

/// The weights of two processes' cgroups at the first level at which these differ, if the other one's is larger.
fn weights(root: &Root, own: u32, other: u32) -> Option<Weighed> {
    let (own, other) = (cgroup(root, own)?, cgroup(root, other)?);
    if own.0 != other.0 {
        return None;
    }
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let (ours, theirs) = (parts(&own.1), parts(&other.1));
    let at = (ours.iter().zip(&theirs))
        .take_while(|(one, other)| one == other)
        .count();
    let level = |all: &[String]| format!("/{}", all[..(at + 1).min(all.len())].join("/"));
    let (ours, theirs) = (level(&ours), level(&theirs));
    let weight = |path: &str| {
        let folder = root
            .sys
            .join("fs/cgroup")
            .join(own.0)
            .join(path.trim_start_matches('/'));
        ["cpu.weight", "cpu.shares"]
            .iter()
            .find_map(|file| number(&folder.join(file)))
    };
    let found = ((ours.clone(), weight(&ours)?), (theirs.clone(), weight(&theirs)?));
    (ours != theirs && found.0.1 < found.1.1).then_some(found)
}

fn number(file: &Path) -> Option<u64> {
    text_if_there(file)?.trim().parse().ok()
}

/// The hierarchy that shares out CPU time, below the mount point of all, and a process's place in it.
fn cgroup(root: &Root, pid: u32) -> Option<(&'static str, String)> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("cgroup"))?;
    let line = |wanted: &dyn Fn(&str) -> bool| {
        let lines = text
            .lines()
            .filter_map(|line| line.split_once(':')?.1.split_once(':'));
        lines
            .filter(|(controllers, _)| wanted(controllers))
            .map(|(_, path)| path.to_owned())
            .next()
    };
    let v1 = line(&|controllers| controllers.split(',').any(|name| name == "cpu"));
    match v1 {
        Some(path) => Some(("cpu", path)),
        None => line(&str::is_empty).map(|path| ("", path)),
    }
}

/// CPU time of a thread so far.
fn ran(root: &Root, (pid, tid): (u32, u32)) -> Option<Ns> {
    let file = root.proc.join(format!("{pid}/task/{tid}/schedstat"));
    text_if_there(&file)?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Fields of `stat` behind the name and the state, by number: nice value, CPU, policy.
const NICE: usize = 15;
const CPU: usize = 35;
const POLICY: usize = 37;

fn kept(root: &Root, (pid, tid): (u32, u32)) -> Option<Kept> {
    let text = text_if_there(&root.proc.join(format!("{pid}/task/{tid}/stat")))?;
    let rest: Vec<&str> = text
        .rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .skip(1)
        .collect();
    Some(Kept {
        cpu: rest.get(CPU)?.parse().ok()?,
        nice: rest.get(NICE)?.parse().ok()?,
        policy: rest.get(POLICY)?.parse().ok()?,
    })
}

/// The CPUs that a thread may use.
#[derive(Debug)]
struct Allowed {
    text: String,
    ranges: Vec<(u32, u32)>,
    /// How many they are, and whether these are all that are online.
    count: u64,
    all: bool,
}

impl Allowed {
    fn has(&self, cpu: u32) -> bool {
        self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&cpu))
    }
}

fn allowed(root: &Root, (pid, tid): (u32, u32)) -> Option<Allowed> {
    let status = text_if_there(&root.proc.join(format!("{pid}/task/{tid}/status")))?;
    let text = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?
        .trim()
        .to_owned();
    let ranges = ranges(&text);
    let online = text_if_there(&root.sys.join("devices/system/cpu/online"))?;
    let count = |all: &[(u32, u32)]| all.iter().map(|(from, to)| u64::from(to - from) + 1).sum::<u64>();
    let own = count(&ranges);
    Some(Allowed {
        count: own,
        all: own >= count(&self::ranges(online.trim())),
        ranges,
        text,
    })
}

/// `0-3,7`.
fn ranges(text: &str) -> Vec<(u32, u32)> {
    let parts = text.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to).then_some((from, to))
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::{Followed, Precedence, Starved, Waits, ranges, weights};
    use holdup_proc::Root;
    use std::collections::BTreeSet;

    const S: u64 = 1_000_000_000;

    /// A machine with two CPUs. Threads: process, CPU, nice value, policy, what they may use, and part of 5 s for which they ran, per mille.
    fn found(threads: &[(u32, u32, i32, u32, &str, u64)]) -> Vec<Waits> {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: String, text: String| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/online".into(), "0-1\n".into());
        let mut starved = Starved {
            lists: 5,
            ..Starved::default()
        };
        for (pid, cpu, nice, policy, allowed, permille) in threads {
            let before = "1 ".repeat(15);
            let between = "1 ".repeat(19);
            write(
                format!("proc/{pid}/task/{pid}/stat"),
                format!("{pid} (p) R {before}{nice} {between}{cpu} 0 {policy} 0\n"),
            );
            write(
                format!("proc/{pid}/task/{pid}/status"),
                format!("Cpus_allowed_list:\t{allowed}\n"),
            );
            let followed = Followed {
                first: (S, 0),
                last: (6 * S, 5 * S * permille / 1000),
                lists: 5,
                since: 1,
            };
            starved.threads.insert((*pid, *pid), followed);
        }
        starved.finish(&Root::below(folder.path()), &BTreeSet::from([99]), &|pid| {
            Some(format!("p{}", pid / 10))
        })
    }

    #[test]
    fn who_hardly_runs_on_a_cpu_that_others_have_is_told_with_them() {
        let found = found(&[
            (7, 1, 0, 0, "1", 3),
            (20, 1, 0, 0, "0-1", 490),
            (21, 1, 0, 0, "1", 495),
            (30, 0, 0, 0, "0-1", 900),
        ]);
        let [one] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((one.pid, one.holder, one.ns), (7, 21, 5 * S));
        assert_eq!((one.share.ran_permille, one.share.taken_percent), (3, 99));
        assert_eq!((one.share.processes, one.share.cpus.as_str()), (2, "1"));
        assert_eq!(one.share.by, Precedence::Unknown);
    }

    #[test]
    fn the_thread_itself_may_tell_why() {
        let by = |own: (i32, u32), other: (i32, u32)| {
            let threads = [
                (7, 1, own.0, own.1, "0-1", 3),
                (20, 1, other.0, other.1, "1", 950),
            ];
            found(&threads).swap_remove(0).share.by
        };
        assert_eq!(by((0, 0), (0, 1)), Precedence::RealTime);
        assert_eq!(by((0, 5), (0, 0)), Precedence::Idle);
        assert_eq!(by((19, 0), (-5, 0)), Precedence::Nice { own: 19, other: -5 });
    }

    #[test]
    fn a_long_run_queue_that_is_shared_fairly_starves_nobody() {
        let equal: Vec<_> = (1..21).map(|pid| (pid * 10, pid % 2, 0, 0, "0-1", 100)).collect();
        assert!(found(&equal).is_empty());
        // Some get less than their share, as what is niced does; it is no standstill.
        let mut uneven = equal.clone();
        uneven.push((500, 1, 10, 0, "0-1", 30));
        assert!(found(&uneven).is_empty());
        // One whose cgroup has used up its CPU time waits for that.
        assert!(found(&[(99, 1, 0, 0, "1", 3), (20, 1, 0, 0, "1", 950)]).is_empty());
        // Others run on other CPUs.
        assert!(found(&[(7, 1, 0, 0, "1", 3), (20, 0, 0, 0, "0", 950)]).is_empty());
    }

    #[test]
    fn weights_are_compared_where_the_cgroups_part() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "proc/1/cgroup",
                "4:cpu,cpuacct:/shop/web\n1:name=systemd:/\n0::/x\n",
            ),
            ("proc/2/cgroup", "4:cpu,cpuacct:/shop/batch/deep\n0::/y\n"),
            ("proc/3/cgroup", "4:cpu,cpuacct:/shop/web\n"),
            ("sys/fs/cgroup/cpu/shop/web/cpu.shares", "2\n"),
            ("sys/fs/cgroup/cpu/shop/batch/cpu.shares", "60000\n"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::below(folder.path());
        let (own, other) = weights(&root, 1, 2).unwrap();
        assert_eq!(own, ("/shop/web".to_owned(), 2));
        assert_eq!(other, ("/shop/batch".to_owned(), 60_000));
        assert_eq!(weights(&root, 2, 1), None);
        assert_eq!(weights(&root, 1, 3), None);
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(ranges("0-3,7"), [(0, 3), (7, 7)]);
        assert!(ranges("x,3-1,").is_empty());
    }
}
