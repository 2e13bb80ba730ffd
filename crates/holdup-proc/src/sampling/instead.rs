//! Who had the CPUs while threads of the run queued for them.
//!
//! How long a thread queued the kernel counts. Behind whom it does not say: but who used CPU time meanwhile, on the CPU where the thread
//! queued, is what it was behind. So when threads have queued for long enough to be worth it, all processes' CPU time is read, and again
//! later. In: times queued. Out: [`Event::RanInstead`]. Where nobody is seen to have used the CPU for at least half of the time (a
//! `/proc` that hides others, a hypervisor), nobody is named.

use super::clocks::{Stat, TICK, stat};
use super::sampler::{Sampler, Tracked};
use crate::root::{Root, text_if_there};
use crate::tasks;
use holdup_evidence::{Allowed, Event, Ns, RanInstead, Scheduling, TaskName, ThreadId};
use std::collections::{BTreeMap, HashMap};

/// Time in queues, of all threads or of one that ends, from which it is worth a look at everybody: nanoseconds, and a part of the time
/// since the first look at anybody. What is less is no finding, and the look would cost more than it tells.
const WORTH: Ns = 50_000_000;
const ONE_PART_IN: Ns = 10;

/// Between two such looks, and before one for the sake of a thread that ends: each reads a file for every process.
const EVERY: Ns = 500_000_000;
const AT_AN_END: Ns = 100_000_000;

/// Processes beyond which nobody looks.
const MAX_PROCESSES: usize = 4_096;

/// Who is named of those that had the CPU.
const NAMED: usize = 4;

/// What is known of who runs.
#[derive(Debug, Default)]
pub(super) struct Instead {
    /// When threads were looked at first.
    begun: Option<Ns>,
    /// When everybody was looked at, and what each had used by then.
    looked: Option<(Ns, HashMap<u32, Stat>)>,
    /// How long each thread has queued since, by CPU, and as what.
    queued: BTreeMap<(ThreadId, u32), (Ns, Stat)>,
    /// By whom it was asked for since then: the cgroup that shares CPUs. Who is gone can't be asked.
    groups: BTreeMap<ThreadId, Option<String>>,
}

/// One that has used a CPU.
#[derive(Debug, Clone, PartialEq)]
struct User {
    pid: u32,
    stat: Stat,
    used: Ns,
    /// Where it was at both looks, as far as it was there at the first.
    cpus: (Option<u32>, u32),
}

impl User {
    /// What it used of a CPU: all, if it was there at both looks; half, if at one of them, or if it has several threads, of which but one is
    /// known to be there.
    fn used_on(&self, cpu: u32) -> Ns {
        let (before, now) = (self.cpus.0.unwrap_or(self.cpus.1) == cpu, self.cpus.1 == cpu);
        match (before, now) {
            (true, true) if self.stat.threads <= 1 => self.used,
            (false, false) => 0,
            _ => self.used / 2,
        }
    }
}

impl Instead {
    /// A thread has queued where it was last.
    pub(super) fn queued(&mut self, root: &Root, (thread, pid): (ThreadId, u32), stat: &Stat, ns: Ns) {
        if ns > 0 {
            let group = self.groups.entry(thread);
            group.or_insert_with(|| cpu_group(root, pid));
            let queued = self.queued.entry((thread, stat.cpu));
            let queued = queued.or_insert_with(|| (0, stat.clone()));
            queued.0 += ns;
            // Its rank is what it is by now: a program that sets it has queued before.
            queued.1.scheduling = stat.scheduling;
        }
    }

    fn owed(&self, to: Option<ThreadId>) -> Ns {
        let of = |id: ThreadId| to.is_none_or(|to| to == id);
        let owed = self.queued.iter().filter(|((id, _), _)| of(*id));
        owed.map(|(_, (ns, _))| ns).sum()
    }
}

impl Sampler {
    /// Says who ran instead, if that is due. `ends`: who is about to be gone.
    pub(super) fn tell_instead(&mut self, ends: Option<ThreadId>) {
        let begun = *self.instead.begun.get_or_insert(self.now);
        let worth = WORTH.max(self.now.saturating_sub(begun) / ONE_PART_IN);
        if self.instead.owed(ends) < WORTH || self.instead.owed(None) < worth {
            return;
        }
        let since = self
            .instead
            .looked
            .as_ref()
            .map(|(at, _)| self.now.saturating_sub(*at));
        let enough = if ends.is_some() { AT_AN_END } else { EVERY };
        if since.is_some_and(|since| since < enough) {
            return;
        }
        let Some(all) = everybody(&self.root) else {
            return;
        };
        let before = self.instead.looked.replace((self.now, all.clone()));
        let Some((_, before)) = before else {
            return;
        };
        let users = users(&before, all);
        let groups = std::mem::take(&mut self.instead.groups);
        for ((id, cpu), (ns, own)) in std::mem::take(&mut self.instead.queued) {
            if let Some(thread) = self.threads.get(&id) {
                let group = groups.get(&id).and_then(Option::as_deref);
                let own = (id, thread, &own, group);
                let listed = events_of(&self.root, own, (cpu, ns), self.now, &users);
                self.events.extend(listed);
            }
        }
    }
}

/// All processes, as they are; `None` where they are too many.
fn everybody(root: &Root) -> Option<HashMap<u32, Stat>> {
    let pids = tasks::processes(root);
    if pids.len() > MAX_PROCESSES {
        return None;
    }
    let of = |pid: u32| {
        let text = text_if_there(&root.proc.join(pid.to_string()).join("stat"))?;
        Some((pid, stat(&text)?))
    };
    Some(pids.into_iter().filter_map(of).collect())
}

/// Who has used a CPU from one look to the next, most first.
fn users(before: &HashMap<u32, Stat>, now: HashMap<u32, Stat>) -> Vec<User> {
    let ticks = |stat: &Stat| stat.user + stat.kernel;
    let of = |(pid, stat): (u32, Stat)| {
        let known = before.get(&pid).filter(|known| known.began == stat.began);
        let used = ticks(&stat).saturating_sub(known.map_or(0, ticks)) * TICK;
        let cpus = (known.map(|known| known.cpu), stat.cpu);
        (used > 0).then_some(User {
            pid,
            stat,
            used,
            cpus,
        })
    };
    let mut users: Vec<User> = now.into_iter().filter_map(of).collect();
    users.sort_by_key(|user| (std::cmp::Reverse(user.used), user.pid));
    users
}

/// Whom a thread was behind on a CPU, each with its part of the time. Those of the thread's own process are not distinguished from it.
fn behind(own: u32, (cpu, ns): (u32, Ns), users: &[User]) -> Vec<(&User, Ns)> {
    let there = |user: &User| match user.pid == own {
        true => 0,
        false => user.used_on(cpu),
    };
    let mut there: Vec<(&User, Ns)> = users.iter().map(|user| (user, there(user))).collect();
    there.retain(|(_, used)| *used > 0);
    there.sort_by_key(|(user, used)| (std::cmp::Reverse(*used), user.pid));
    there.truncate(NAMED);
    let all: Ns = there.iter().map(|(_, used)| used).sum();
    if all.saturating_mul(2) < ns || all == 0 {
        return Vec::new();
    }
    let part = |used: Ns| u128::from(ns) * u128::from(used) / u128::from(all);
    there
        .into_iter()
        .map(|(user, used)| (user, Ns::try_from(part(used)).unwrap_or(ns)))
        .collect()
}

fn events_of(
    root: &Root,
    (id, thread, own, group): (ThreadId, &Tracked, &Stat, Option<&str>),
    (cpu, ns): (u32, Ns),
    at: Ns,
    users: &[User],
) -> Vec<Event> {
    let behind = behind(thread.pid, (cpu, ns), users);
    let allowed = thread.folder.text("status").as_deref().and_then(allowed);
    let of = |(user, ns): (&User, Ns)| {
        Event::RanInstead(RanInstead {
            at,
            thread: id,
            ns,
            by: Some(TaskName {
                pid: user.pid,
                tid: user.pid,
                name: user.stat.name.clone(),
                kernel: user.stat.of_kernel,
            }),
            cpu,
            by_class: user.stat.scheduling,
            class: own.scheduling,
            same_group: in_same_group(root, (group, own), (user.pid, &user.stat)),
            allowed: allowed.unwrap_or_default(),
        })
    };
    behind.into_iter().map(of).collect()
}

/// Whether nice values of two processes count against each other: in one cgroup, and in one session where each session is a group.
fn in_same_group(root: &Root, (here, own): (Option<&str>, &Stat), (other, by): (u32, &Stat)) -> bool {
    let fair = |scheduling| !matches!(scheduling, Scheduling::RealTime);
    if !fair(own.scheduling) || !fair(by.scheduling) {
        return false;
    }
    let (Some(here), Some(there)) = (here, cpu_group(root, other)) else {
        return false;
    };
    // Tasks of the root cgroup are in their session's group, where sessions have some.
    let sessions = text_if_there(&root.proc.join("sys/kernel/sched_autogroup_enabled"));
    let by_session = sessions.is_some_and(|text| text.trim() == "1") && here == "/";
    here == there && (!by_session || own.session == by.session)
}

/// The cgroup whose share of the CPUs a process has, from `/proc/PID/cgroup`. Of version 2 it is the nearest above it that the controller is
/// turned on for; others count for other things.
fn cpu_group(root: &Root, pid: u32) -> Option<String> {
    cpu_group_of(
        root,
        &text_if_there(&root.proc.join(pid.to_string()).join("cgroup"))?,
    )
}

fn cpu_group_of(root: &Root, text: &str) -> Option<String> {
    let of_cpu = text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then_some(path)
    });
    if let Some(path) = of_cpu {
        return Some(path.to_owned());
    }
    let mut path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounted = root.sys.join("fs/cgroup");
    while !path.is_empty()
        && !mounted
            .join(path.trim_start_matches('/'))
            .join("cpu.weight")
            .exists()
    {
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    Some(if path.is_empty() { "/" } else { path }.to_owned())
}

/// The CPUs that a thread may use, from `status`: `Cpus_allowed: ff,ffffffff`.
fn allowed(status: &str) -> Option<Allowed> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
    let groups: Vec<u32> = line
        .trim()
        .split(',')
        .map(|group| u32::from_str_radix(group, 16).ok())
        .collect::<Option<_>>()?;
    let low = groups.iter().rev().take(2).enumerate();
    Some(Allowed {
        count: groups.iter().map(|group| group.count_ones()).sum(),
        first: low.fold(0, |set, (at, group)| set | u64::from(*group) << (32 * at)),
    })
}

#[cfg(test)]
mod tests {
    use super::{User, allowed, behind, cpu_group_of, users};
    use crate::root::Tree;
    use crate::sampling::clocks::stat;
    use holdup_evidence::Allowed;
    use std::collections::HashMap;

    fn user(pid: u32, cpu: u32, threads: u32, ticks: u64) -> User {
        let text = format!(
            "{pid} (x) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0"
        );
        User {
            pid,
            stat: stat(&text).unwrap(),
            used: ticks * 10_000_000,
            cpus: (None, cpu),
        }
    }

    #[test]
    fn who_used_the_cpu_was_in_the_way() {
        let users = [
            user(7, 0, 1, 30),
            user(8, 1, 1, 90),
            user(9, 0, 1, 10),
            user(5, 0, 1, 40),
        ];
        let rows: Vec<(u32, u64)> = behind(5, (0, 400_000_000), &users)
            .into_iter()
            .map(|(user, ns)| (user.pid, ns))
            .collect();
        assert_eq!(rows, [(7, 300_000_000), (9, 100_000_000)]);
        assert!(
            behind(5, (0, 900_000_000), &users).is_empty(),
            "not half of it is seen"
        );
        assert!(behind(5, (3, 1), &users).is_empty());
        let moved = User {
            cpus: (Some(1), 0),
            ..user(7, 0, 1, 30)
        };
        assert_eq!(
            (moved.used_on(0), moved.used_on(1), moved.used_on(2)),
            (150_000_000, 150_000_000, 0)
        );
        assert_eq!(user(7, 0, 9, 30).used_on(0), 150_000_000, "of several threads");
    }

    #[test]
    fn time_is_counted_between_two_looks_and_an_id_may_be_used_again() {
        let (one, other) = (user(7, 0, 1, 30), user(7, 0, 1, 50));
        let look = |user: &User| HashMap::from([(7, user.stat.clone())]);
        assert_eq!(users(&look(&one), look(&other))[0].used, 200_000_000);
        let mut reused = look(&one);
        reused.get_mut(&7).unwrap().began = 4;
        assert_eq!(users(&reused, look(&other))[0].used, 500_000_000);
        assert!(users(&look(&one), look(&one)).is_empty());
    }

    #[test]
    fn the_cgroup_that_shares_cpus_is_told_from_others() {
        let tree = Tree::new(&[
            ("sys/fs/cgroup/a/cpu.weight", "100"),
            ("sys/fs/cgroup/a/b/memory.max", "max"),
        ]);
        let of = |text| cpu_group_of(&tree.root, text);
        let first = "4:memory:/x\n2:cpu,cpuacct:/jobs\n1:cpuset:/y\n0::/z\n";
        assert_eq!(of(first).as_deref(), Some("/jobs"));
        assert_eq!(of("4:memory:/x\n1:cpu:/\n0::/z\n").as_deref(), Some("/"));
        assert_eq!(of("0::/a/b\n").as_deref(), Some("/a"), "not turned on for b");
        assert_eq!(of("0::/c\n").as_deref(), Some("/"));
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_set_of_cpus_is_read() {
        let look_up = |text| allowed(text).unwrap();
        assert_eq!(
            look_up("a:\t1\nCpus_allowed:\t1\n"),
            Allowed { count: 1, first: 1 }
        );
        let many = look_up("Cpus_allowed:\tff,00000001,00000003\n");
        assert_eq!((many.count, many.first), (11, 0x1_0000_0003));
        assert_eq!(allowed("Cpus_allowed:\tx\n"), None);
    }
}
