//! Threads that are runnable and get no CPU while others have those that they may use: the machine may be half idle meanwhile.
//!
//! In: lists of tasks, and the scheduler's own account of each busy thread (`/proc/PID/task/TID/schedstat`: how long it ran, and how long it was
//! queued). Out: those that hardly ran although they were runnable in nearly all lists, or that were queued for long and for fifty times as long as
//! they ran, each with the program that had their CPUs, and why the kernel prefers that one. Lists are a second apart: of a service and
//! its clients that get no CPU now one and now another is runnable in them, and each sleeps until the other had its turn. A
//! machine on which all get their share has none, however long its run queues are: the other one must have had many times as much.

use holdup_evidence::Ns;
use holdup_evidence::observed::{CpuShare, Precedence};
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::TaskList;
use holdup_proc::{Root, clocks};
use std::collections::{BTreeSet, HashMap};

/// Threads that are followed: a machine has some hundred that run or are runnable.
const MAX_THREADS: usize = 512;

/// Lists, and part of them, in which a thread must be runnable.
const MIN_LISTS: u32 = 3;
const MIN_RUNNABLE_SHARE: f64 = 0.8;

/// What needs no lists: the shortest time in the queue by the scheduler's account, its part of all the time, and the most that a thread ran of the
/// time in which it ran or was queued. What sleeps and is woken on a busy machine is queued for some ten times as long as it runs then.
const MIN_QUEUED_NS: Ns = 1_000_000_000;
const MIN_QUEUED_SHARE: f64 = 0.2;
const MAX_RAN_OF_WANTED: f64 = 0.02;

/// The shortest time in which that is no chance.
const MIN_WATCHED_NS: Ns = 2_000_000_000;

/// The most that a thread may have run of the time, if it gets no CPU; and of what each would have if all that are runnable got as much.
const MAX_RAN_SHARE: f64 = 0.1;
const MAX_FAIR_SHARE: f64 = 0.2;

/// How much of one CPU the other program must have had.
const MIN_TAKEN_SHARE: f64 = 0.15;

/// Waits that are reported.
const MAX_REPORTED: usize = 32;

/// Numbers of scheduling policies: first in, first out; round robin; what runs only where nobody else wants to; deadlines.
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const IDLE: u32 = 5;
const DEADLINE: u32 = 6;

/// Percent and per mille in a whole.
const PERCENT: f64 = 100.0;
const PERMILLE: f64 = 1000.0;

/// The scheduler's account of a thread.
#[derive(Debug, Clone, Copy)]
struct Account {
    ran: Ns,
    queued: Ns,
}

/// A thread that was runnable.
#[derive(Debug, Clone, Copy)]
struct Followed {
    /// When it was seen for the first time and the last, with its account by then.
    first: (Ns, Account),
    last: (Ns, Account),
    lists: u32,
    /// The list in which it was seen first.
    since: u32,
}

impl Followed {
    /// What it waited, if it hardly ran; else the share of the time for which it ran. There were so many lists, and a time in the queue
    /// that long tells by itself.
    fn hungry(&self, id: (u32, u32), lists: u32, long: Ns) -> Result<Hungry, f64> {
        let watched = self.last.0.saturating_sub(self.first.0);
        let ran = self.last.1.ran.saturating_sub(self.first.1.ran);
        let queued = self.last.1.queued.saturating_sub(self.first.1.queued);
        let share = ran as f64 / watched.max(1) as f64;
        let possible = lists + 1 - self.since;
        let in_lists =
            self.lists >= MIN_LISTS && f64::from(self.lists) >= MIN_RUNNABLE_SHARE * f64::from(possible);
        let (hardly, waited, got) = if in_lists {
            (
                watched >= MIN_WATCHED_NS && share <= MAX_RAN_SHARE,
                watched,
                share,
            )
        } else {
            let of_wanted = ran as f64 / ran.saturating_add(queued).max(1) as f64;
            (
                queued >= long && of_wanted <= MAX_RAN_OF_WANTED,
                queued.min(watched),
                of_wanted,
            )
        };
        let hungry = Hungry {
            id,
            waited,
            share,
            got,
        };
        hardly.then_some(hungry).ok_or(share)
    }
}

/// A thread that hardly ran.
#[derive(Debug, Clone, Copy)]
struct Hungry {
    id: (u32, u32),
    waited: Ns,
    /// What it ran of all the time, and of that in which it wanted a CPU.
    share: f64,
    got: f64,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Starved {
    lists: u32,
    /// When the first list was seen, and the last.
    began: Ns,
    ended: Ns,
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
        if self.lists == 1 {
            self.began = now;
        }
        self.ended = now;
        for task in list.busy.iter().filter(|task| task.state == 'R') {
            let id = (task.pid, task.tid);
            if !self.threads.contains_key(&id) && self.threads.len() >= MAX_THREADS {
                continue;
            }
            let Some(account) = account(root, id) else {
                continue;
            };
            let known = self.threads.entry(id).or_insert(Followed {
                first: (now, account),
                last: (now, account),
                lists: 0,
                since: self.lists,
            });
            known.last = (now, account);
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
        let mut starved: Vec<Hungry> = Vec::new();
        let mut running: Vec<((u32, u32), f64)> = Vec::new();
        let all = self.ended.saturating_sub(self.began);
        let long = MIN_QUEUED_NS.max((MIN_QUEUED_SHARE * all as f64) as Ns);
        for (id, one) in &self.threads {
            match one.hungry(*id, lists, long) {
                Ok(_) if throttled.contains(&id.0) => {}
                Ok(hungry) => starved.push(hungry),
                Err(share) => running.push((*id, share)),
            }
        }
        if starved.is_empty() {
            return Vec::new();
        }
        starved.sort_unstable_by_key(|one| (std::cmp::Reverse(one.waited), one.id));
        starved.truncate(MAX_REPORTED);
        let places: HashMap<(u32, u32), Kept> = (running.iter())
            .map(|(id, _)| *id)
            .chain(starved.iter().map(|one| one.id))
            .filter_map(|id| Some((id, kept(root, id)?)))
            .collect();
        let found = starved.into_iter().filter_map(|one| {
            let id = one.id;
            let allowed = allowed(root, id)?;
            let fair = self.fair(&allowed, &places);
            let Taker {
                id: holder,
                sum: taken,
                most,
                processes,
            } = taker(&running, &places, &allowed, id, named)?;
            let unfair = one.got <= MAX_FAIR_SHARE * fair && most >= fair.min(1.0) / 2.0;
            (taken >= MIN_TAKEN_SHARE && unfair).then(|| Waits {
                pid: id.0,
                holder: holder.0,
                ns: one.waited,
                share: CpuShare {
                    ran_permille: (one.share * PERMILLE).round() as u32,
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
        super::weights::weighed(root, found)
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

/// What the scheduler says of a thread so far.
fn account(root: &Root, (pid, tid): (u32, u32)) -> Option<Account> {
    let file = root.proc.join(format!("{pid}/task/{tid}/schedstat"));
    let text = text_if_there(&file)?;
    let mut fields = text.split_ascii_whitespace();
    Some(Account {
        ran: fields.next()?.parse().ok()?,
        queued: fields.next()?.parse().ok()?,
    })
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
    use super::{Account, Followed, Precedence, Starved, Waits, ranges};
    use holdup_proc::Root;
    use std::collections::BTreeSet;

    const S: u64 = 1_000_000_000;

    /// A machine with two CPUs. Threads: process, CPU, nice value, policy, what they may use, and part of 5 s for which they ran, per mille. All
    /// are in all lists.
    fn found(threads: &[(u32, u32, i32, u32, &str, u64)]) -> Vec<Waits> {
        found_in(threads, |_| (5, 0))
    }

    /// The same with the number of lists in which a process is runnable, and for which part of 5 s it was queued, per mille.
    fn found_in(
        threads: &[(u32, u32, i32, u32, &str, u64)],
        runnable: impl Fn(u32) -> (u32, u64),
    ) -> Vec<Waits> {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: String, text: String| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/online".into(), "0-1\n".into());
        let mut starved = Starved {
            lists: 5,
            began: S,
            ended: 6 * S,
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
            let (lists, queued) = runnable(*pid);
            let of_time = |permille: u64| 5 * S * permille / 1000;
            let account = |ran, queued| Account { ran, queued };
            let followed = Followed {
                first: (S, account(0, 0)),
                last: (6 * S, account(of_time(*permille), of_time(queued))),
                lists,
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
    fn what_is_queued_between_the_lists_is_told_by_the_schedulers_account() {
        let threads = [(7, 1, 0, 0, "1", 3), (20, 1, 0, 0, "1", 990)];
        let seldom = |lists, queued| {
            found_in(&threads, move |pid| match pid {
                7 => (lists, queued),
                _ => (5, 0),
            })
        };
        let found = seldom(2, 300);
        assert_eq!((found[0].pid, found[0].holder), (7, 20));
        assert_eq!(found[0].ns, 5 * S * 300 / 1000, "it slept for the rest");
        assert_eq!(seldom(5, 300)[0].ns, 5 * S);
        // What mostly sleeps, and what is queued for ten times as long as it runs: busy machines have both.
        assert!(seldom(2, 150).is_empty());
        assert!(seldom(2, 30).is_empty());
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
    fn lists_of_cpus_are_read() {
        assert_eq!(ranges("0-3,7"), [(0, 3), (7, 7)]);
        assert!(ranges("x,3-1,").is_empty());
    }
}
