//! Processes that wait for what a machine or a cgroup has too little of, as waits of one process for another: the one that has most of it.
//!
//! In: threads that get no CPU, cgroups without memory, queues of devices. Out: [`SeenWait`]s beside those of the kernel's tables, so that
//! whoever waits for these processes is followed to the same end.

use super::device_queue;
use super::looked_up::named;
use super::starved;
use holdup_evidence::Ns;
use holdup_evidence::observed::{
    Awaited, Doing, Limited, MemoryShare, Quote, SeenCgroup, SeenProcess, SeenWait, Short,
};
use holdup_proc::Root;
use std::collections::{BTreeSet, HashMap};

/// Part of the periods of a cgroup in which its CPU time was used up, from which its threads wait for that.
const THROTTLED_SHARE: f64 = 0.25;

/// Processes whose cgroups have used up their CPU time.
pub(super) fn throttled(cgroups: &[SeenCgroup]) -> BTreeSet<u32> {
    let spent = |one: &&SeenCgroup| {
        one.what == Limited::CpuTime && one.limit > 0.0 && one.used / one.limit >= THROTTLED_SHARE
    };
    cgroups
        .iter()
        .filter(spent)
        .flat_map(|one| one.members.iter().copied())
        .collect()
}

/// What was found, before names.
#[derive(Debug)]
pub(super) struct Shortages<'a> {
    pub(super) starved: Vec<starved::Waits>,
    pub(super) devices: Vec<device_queue::Waits>,
    pub(super) cgroups: &'a [SeenCgroup],
    /// Processes with a thread that is blocked (D).
    pub(super) blocked: &'a BTreeSet<u32>,
    pub(super) look: Ns,
    pub(super) quote: Quote,
}

impl Shortages<'_> {
    /// Adds who waits for what.
    pub(super) fn add(self, root: &Root, waits: &mut Vec<SeenWait>) {
        let paused = self
            .cgroups
            .iter()
            .filter(|one| one.what == Limited::Memory && one.paused);
        let paused: Vec<&SeenCgroup> = paused.collect();
        let mut pids: BTreeSet<u32> = BTreeSet::new();
        for one in &self.starved {
            pids.extend([one.pid, one.holder]);
        }
        for one in &self.devices {
            pids.extend([one.pid, one.holder]);
            pids.extend(one.asked_by);
        }
        for one in &paused {
            pids.extend(&one.members);
        }
        if pids.is_empty() {
            return;
        }
        let names = named(root, pids.into_iter().collect());
        let process = |pid: u32| SeenProcess {
            pid,
            name: names.get(&pid).cloned().unwrap_or_default(),
            ..SeenProcess::default()
        };
        for one in paused {
            self.memory(one, &names, waits);
        }
        for one in self.starved {
            waits.push(SeenWait {
                waiter: process(one.pid),
                on: Awaited::Cpu,
                name: one.share.cpus.clone(),
                holder: Some(process(one.holder)),
                ns: one.ns,
                alone: true,
                short: Short::Cpu(one.share),
                quote: self.quote.clone(),
                ..SeenWait::default()
            });
        }
        for one in self.devices {
            if let Some(client) = one.asked_by {
                waits.push(SeenWait {
                    waiter: process(client),
                    on: Awaited::Answer,
                    holder: Some(process(one.pid)),
                    ns: one.ns,
                    quote: self.quote.clone(),
                    ..SeenWait::default()
                });
            }
            waits.push(SeenWait {
                waiter: process(one.pid),
                on: Awaited::Device,
                name: one.device,
                holder: Some(process(one.holder)),
                ns: one.ns,
                alone: true,
                short: Short::Device(one.queue),
                quote: self.quote.clone(),
                ..SeenWait::default()
            });
        }
    }

    /// Who waits for memory in a cgroup in which nobody may be killed: those that are blocked there, and those for which others wait.
    fn memory(&self, cgroup: &SeenCgroup, names: &HashMap<u32, String>, waits: &mut Vec<SeenWait>) {
        let Some(most) = cgroup.users.first() else { return };
        let members: BTreeSet<u32> = cgroup.members.iter().copied().collect();
        let awaited = waits
            .iter()
            .filter_map(|wait| wait.holder.as_ref())
            .map(|holder| holder.pid);
        let wanted: BTreeSet<u32> = awaited.chain(self.blocked.iter().copied()).collect();
        // One that looks for memory that it could take from others runs all the time.
        for wait in waits.iter_mut() {
            let of_holder = wait
                .holder
                .as_mut()
                .filter(|holder| members.contains(&holder.pid));
            for one in of_holder.into_iter().filter(|one| one.doing == Doing::Running) {
                (one.doing, one.load, one.client) = (Doing::Unknown, None, None);
                if wait.on == Awaited::Turn {
                    wait.on = Awaited::Answer;
                }
            }
        }
        for pid in members.intersection(&wanted).filter(|pid| **pid != most.pid) {
            waits.push(SeenWait {
                waiter: SeenProcess {
                    pid: *pid,
                    name: names.get(pid).cloned().unwrap_or_default(),
                    ..SeenProcess::default()
                },
                on: Awaited::Memory,
                name: cgroup.cgroup.clone(),
                holder: Some(SeenProcess {
                    pid: most.pid,
                    name: most.name.clone(),
                    ..SeenProcess::default()
                }),
                ns: self.look,
                alone: true,
                short: Short::Memory(MemoryShare {
                    limit: cgroup.limit as u64,
                    taken: most.amount as u64,
                }),
                quote: self.quote.clone(),
                ..SeenWait::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Shortages, throttled};
    use holdup_evidence::observed::{
        Awaited, CgroupUser, Doing, Limited, Quote, SeenCgroup, SeenLoad, SeenProcess, SeenWait,
    };
    use holdup_proc::Root;
    use std::collections::BTreeSet;

    fn cgroup(what: Limited, used: f64, limit: f64) -> SeenCgroup {
        SeenCgroup {
            cgroup: "/maps".to_owned(),
            what,
            used,
            limit,
            refused: None,
            cpus: None,
            whole: None,
            hits: None,
            read_again: None,
            watched: None,
            processes: Vec::new(),
            members: vec![7, 8, 9],
            users: vec![CgroupUser {
                name: "tiles".to_owned(),
                pid: 9,
                processes: 1,
                amount: 40.0,
            }],
            paused: what == Limited::Memory,
            quote: Quote::default(),
        }
    }

    #[test]
    fn of_a_cgroup_without_memory_the_one_that_has_most_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut waits = vec![SeenWait {
            waiter: SeenProcess {
                pid: 20,
                ..SeenProcess::default()
            },
            on: Awaited::Turn,
            holder: Some(SeenProcess {
                pid: 7,
                doing: Doing::Running,
                load: Some(SeenLoad::default()),
                ..SeenProcess::default()
            }),
            ..SeenWait::default()
        }];
        let cgroups = [cgroup(Limited::Memory, 50.0, 50.0)];
        Shortages {
            starved: Vec::new(),
            devices: Vec::new(),
            cgroups: &cgroups,
            blocked: &BTreeSet::from([8, 9, 500]),
            look: 5,
            quote: Quote::default(),
        }
        .add(&Root::below(folder.path()), &mut waits);
        let known: Vec<_> = (waits.iter())
            .map(|wait| (wait.waiter.pid, wait.on, wait.holder.as_ref().unwrap().pid))
            .collect();
        assert_eq!(
            known,
            [
                (20, Awaited::Answer, 7),
                (7, Awaited::Memory, 9),
                (8, Awaited::Memory, 9)
            ]
        );
        assert_eq!(waits[0].holder.as_ref().unwrap().doing, Doing::Unknown);
    }

    #[test]
    fn who_has_used_up_its_cpu_time_is_throttled() {
        assert_eq!(
            throttled(&[cgroup(Limited::CpuTime, 30.0, 50.0)]),
            BTreeSet::from([7, 8, 9])
        );
        assert!(throttled(&[cgroup(Limited::CpuTime, 1.0, 50.0)]).is_empty());
        assert!(throttled(&[cgroup(Limited::Tasks, 49.0, 50.0)]).is_empty());
    }
}
