//! Control groups, version 1 and 2: the limits that a run lived under.
//!
//! In: `/proc/PID/cgroup` of processes of the run and the limit files of those cgroups and their ancestors.
//! Out: [`CgroupFacts`]. A run may be in several cgroups (a shell that moves itself and execs), so a
//! [`Watch`] is shown processes while they live, remembers what limited each cgroup when it was first seen
//! (it may be removed before the run ends) and what its throttling counters said then.

use crate::mountinfo::Line;
use crate::root::{Root, text_if_there};
use holdup_evidence::facts::{CgroupFacts, CpuQuota, IoLimit, MemoryCgroup};
use holdup_evidence::{DeviceNumber, Ns};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const NS_PER_US: u64 = 1_000;
/// Cgroups a run is followed into: what a container manager makes for one job, with room.
const MEMBERSHIPS: usize = 64;
/// In version 1 memory.limit_in_bytes is the largest multiple of a page when there is no limit.
const NO_MEMORY_LIMIT: u64 = i64::MAX as u64 & !0xffff;

/// Follows a run through its cgroups.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    hierarchies: Hierarchies,
    /// By the text of `/proc/PID/cgroup`.
    seen: BTreeMap<String, Seen>,
    /// The text that was seen last.
    current: Option<String>,
}

#[derive(Debug)]
struct Seen {
    membership: Membership,
    limits: Limits,
    throttled: Option<(u64, Ns)>,
    memory: MemoryCgroup,
}

/// Mount point and mounted root of the hierarchies that matter.
#[derive(Debug, Default)]
struct Hierarchies {
    /// Version 1, by controller.
    v1: BTreeMap<&'static str, (PathBuf, String)>,
    /// Version 2.
    unified: Option<(PathBuf, String)>,
}

/// A cgroup in one hierarchy.
#[derive(Debug, Clone)]
struct Place {
    /// Mount point of the hierarchy.
    mount: PathBuf,
    /// Path below the mount point, without leading slash.
    below: String,
    /// Path as `/proc/PID/cgroup` has it.
    path: String,
}

impl Place {
    /// Its directory and those of its ancestors, nearest first, each with its path as the kernel has it.
    fn levels(&self) -> impl Iterator<Item = (PathBuf, String)> + '_ {
        let depth = self.below.split('/').filter(|part| !part.is_empty()).count();
        let directory = self.mount.join(&self.below);
        let path = Path::new(&self.path);
        let directories = directory
            .ancestors()
            .take(depth + 1)
            .map(Path::to_owned)
            .collect::<Vec<_>>();
        directories
            .into_iter()
            .zip(path.ancestors().map(|path| path.to_string_lossy().into_owned()))
    }
}

/// Where a process is.
#[derive(Debug, Default)]
struct Membership {
    cpu: Option<Place>,
    block: Option<Place>,
    memory: Option<Place>,
    freezer: Option<Place>,
    unified: Option<Place>,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Limits {
    cpu_quota: Option<CpuQuota>,
    io: Vec<IoLimit>,
    memory_high: Option<u64>,
    memory_max: Option<u64>,
}

/// The limits on disks that a process lives under now. For a process that can be left behind: the kernel takes the lock that
/// whoever makes cgroups holds.
#[must_use]
pub fn io_limits_of(root: &Root, mounts: &[Line], pid: u32) -> Vec<IoLimit> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
    Membership::of(&text, &Hierarchies::of(mounts)).io_limits()
}

/// The quota of CPU time that a process lives under now, the nearest. For a process that can be left behind, as above.
#[must_use]
pub fn cpu_quota_of(root: &Root, mounts: &[Line], pid: u32) -> Option<CpuQuota> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
    Membership::of(&text, &Hierarchies::of(mounts)).limits().cpu_quota
}

impl Watch {
    /// Starts with holdup's own cgroup, which CMD inherits. `mounts` is holdup's own mount table.
    #[must_use]
    pub fn new(root: &Root, mounts: &[Line]) -> Watch {
        let mut watch = Watch {
            root: root.clone(),
            hierarchies: Hierarchies::of(mounts),
            seen: BTreeMap::new(),
            current: None,
        };
        watch.look_at("self");
        watch
    }

    /// Looks where a process of the run is now; an exec is a good time. Costs the read of one small file.
    pub fn look(&mut self, pid: u32) {
        self.look_at(&pid.to_string());
    }

    /// The cgroup by which a process gets its share of the CPUs; `None` when it is gone, or in the root.
    #[must_use]
    pub fn of_process(&self, pid: u32) -> Option<String> {
        let text = text_if_there(&self.root.proc.join(pid.to_string()).join("cgroup"))?;
        let membership = Membership::of(&text, &self.hierarchies);
        let path = membership.cpu.or(membership.unified)?.path;
        (path != "/").then_some(path)
    }

    fn look_at(&mut self, process: &str) {
        let Some(text) = text_if_there(&self.root.proc.join(process).join("cgroup")) else {
            return;
        };
        if !self.seen.contains_key(&text) {
            if self.seen.len() >= MEMBERSHIPS {
                return;
            }
            let membership = Membership::of(&text, &self.hierarchies);
            let seen = Seen {
                limits: membership.limits(),
                throttled: membership.throttled(),
                memory: memory::read(&membership),
                membership,
            };
            self.seen.insert(text.clone(), seen);
        }
        self.current = Some(text);
    }

    /// What limited the run, by the cgroup that was seen last and, where that has no limit of a kind, by the
    /// others.
    #[must_use]
    pub fn facts(&self) -> CgroupFacts {
        let mut facts = CgroupFacts::default();
        let (current, others): (Vec<_>, Vec<_>) = self
            .seen
            .iter()
            .partition(|(text, _)| Some(*text) == self.current.as_ref());
        for (_, seen) in current.into_iter().chain(others) {
            seen.add_to(&mut facts);
        }
        facts
    }
}

impl Seen {
    fn add_to(&self, facts: &mut CgroupFacts) {
        let now = self.membership.limits();
        // A cgroup that is gone has no files: what it said when it was there stands.
        let limits = if now == Limits::default() {
            &self.limits
        } else {
            &now
        };
        facts.cpu_quota = facts.cpu_quota.take().or(limits.cpu_quota.clone());
        facts.memory_high = facts.memory_high.or(limits.memory_high);
        // The one that it ran into: whoever helps raises it before the run has ended.
        facts.memory_max = facts.memory_max.or(self.limits.memory_max).or(limits.memory_max);
        for limit in &limits.io {
            if !facts.io_limits.contains(limit) {
                facts.io_limits.push(limit.clone());
            }
        }
        if facts.memory.cgroup.is_none() {
            facts.memory = memory::since(&self.memory, memory::read(&self.membership));
        }
        // In version 1 a process that is just ending is said to be in the root.
        if facts.freezer.as_deref().is_none_or(|path| path == "/") {
            facts.freezer = self.membership.freezer().or(facts.freezer.take());
        }
        let throttled = self.membership.throttled().zip(self.throttled);
        if let Some(((times, ns), (times_before, ns_before))) = throttled {
            let (old_times, old_ns) = facts.cpu_throttled.unwrap_or_default();
            facts.cpu_throttled = Some((
                old_times.max(times.saturating_sub(times_before)),
                old_ns.max(ns.saturating_sub(ns_before)),
            ));
        }
    }
}

impl Hierarchies {
    fn of(mounts: &[Line]) -> Hierarchies {
        let mut hierarchies = Hierarchies::default();
        for mount in mounts {
            let place = (PathBuf::from(&mount.target), mount.root.clone());
            match mount.file_system.as_str() {
                "cgroup2" => hierarchies.unified = Some(place),
                "cgroup" => {
                    for controller in ["cpu", "blkio", "memory", "freezer"] {
                        if mount.super_options.split(',').any(|option| option == controller) {
                            hierarchies.v1.insert(controller, place.clone());
                        }
                    }
                }
                _ => {}
            }
        }
        hierarchies
    }
}

impl Membership {
    fn of(text: &str, hierarchies: &Hierarchies) -> Membership {
        let mut membership = Membership::default();
        for line in text.lines() {
            // number:controllers:path, where the path may contain colons.
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            if controllers.is_empty() {
                membership.unified = hierarchies.unified.as_ref().map(|mount| place(mount, path));
            }
            for controller in controllers.split(',') {
                let place = hierarchies.v1.get(controller).map(|mount| place(mount, path));
                match controller {
                    "cpu" => membership.cpu = place,
                    "blkio" => membership.block = place,
                    "memory" => membership.memory = place,
                    "freezer" => membership.freezer = place,
                    _ => {}
                }
            }
        }
        membership
    }

    /// The cgroup that can be frozen: of version 1 if that is not the root, else of version 2.
    fn freezer(&self) -> Option<String> {
        let old = self.freezer.as_ref().filter(|place| place.path != "/");
        old.or(self.unified.as_ref()).map(|place| place.path.clone())
    }

    fn limits(&self) -> Limits {
        let memory_v1 = nearest(&self.memory, |directory, _| {
            file_number(&directory.join("memory.limit_in_bytes")).filter(|limit| *limit < NO_MEMORY_LIMIT)
        });
        let memory_v2 = |file: &'static str| {
            nearest(&self.unified, move |directory, _| {
                file_number(&directory.join(file))
            })
        };
        Limits {
            cpu_quota: nearest(&self.cpu, quota_v1).or_else(|| nearest(&self.unified, quota_v2)),
            io: self.io_limits(),
            memory_high: memory_v2("memory.high"),
            memory_max: memory_v1.or_else(|| memory_v2("memory.max")),
        }
    }

    /// In version 1 only a cgroup's own limits count; in version 2 its ancestors' do too, and the nearest is
    /// the one to change first.
    fn io_limits(&self) -> Vec<IoLimit> {
        let mut limits: Vec<IoLimit> = Vec::new();
        if let Some((directory, cgroup)) = self.block.as_ref().and_then(|place| place.levels().next()) {
            for setting in [
                "blkio.throttle.read_bps_device",
                "blkio.throttle.write_bps_device",
                "blkio.throttle.read_iops_device",
                "blkio.throttle.write_iops_device",
            ] {
                let text = text_if_there(&directory.join(setting)).unwrap_or_default();
                for (device, words) in device_lines(&text) {
                    let Some(value) = words.parse().ok() else { continue };
                    limits.push(IoLimit {
                        device,
                        setting: setting.to_owned(),
                        value,
                        cgroup: cgroup.clone(),
                    });
                }
            }
        }
        for (directory, cgroup) in self.unified.iter().flat_map(Place::levels) {
            let text = text_if_there(&directory.join("io.max")).unwrap_or_default();
            for (device, words) in device_lines(&text) {
                for (kind, value) in words.split_whitespace().filter_map(|word| word.split_once('=')) {
                    let (setting, Ok(value)) = (format!("io.max {kind}"), value.parse()) else {
                        continue;
                    };
                    if !limits
                        .iter()
                        .any(|limit| limit.device == device && limit.setting == setting)
                    {
                        limits.push(IoLimit {
                            device,
                            setting,
                            value,
                            cgroup: cgroup.clone(),
                        });
                    }
                }
            }
        }
        limits
    }

    /// Times and time that the cgroup and its ancestors were throttled since they exist.
    fn throttled(&self) -> Option<(u64, Ns)> {
        let levels = self.cpu.iter().chain(&self.unified).flat_map(Place::levels);
        levels
            .filter_map(|(directory, _)| throttled(&text_if_there(&directory.join("cpu.stat"))?))
            .reduce(|sum, level| (sum.0.saturating_add(level.0), sum.1.saturating_add(level.1)))
    }
}

/// Where `path` of `/proc/PID/cgroup` is below a mount point: a container may see only a part mounted.
fn place((mount, mounted): &(PathBuf, String), path: &str) -> Place {
    let below = path
        .strip_prefix(mounted.as_str())
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let below = if mounted == "/" {
        path
    } else {
        below.unwrap_or("/")
    };
    Place {
        mount: mount.clone(),
        // A path that leads out of a cgroup namespace ("/../x") has nothing to be read.
        below: if below.contains("..") {
            String::new()
        } else {
            below.trim_matches('/').to_owned()
        },
        path: path.to_owned(),
    }
}

/// What the nearest level says that says anything; `read` gets its directory and its path.
fn nearest<T>(place: &Option<Place>, read: impl Fn(&Path, String) -> Option<T>) -> Option<T> {
    place
        .as_ref()?
        .levels()
        .find_map(|(directory, path)| read(&directory, path))
}

fn quota_v1(directory: &Path, cgroup: String) -> Option<CpuQuota> {
    Some(CpuQuota {
        cgroup,
        quota_us: file_number(&directory.join("cpu.cfs_quota_us"))?,
        period_us: file_number(&directory.join("cpu.cfs_period_us"))?,
    })
}

fn quota_v2(directory: &Path, cgroup: String) -> Option<CpuQuota> {
    let text = text_if_there(&directory.join("cpu.max"))?;
    let (quota, period) = text.trim().split_once(' ')?;
    Some(CpuQuota {
        cgroup,
        quota_us: quota.parse().ok()?,
        period_us: period.parse().ok()?,
    })
}

/// `None` for "max", for -1 and for no file: no limit here.
fn file_number(file: &Path) -> Option<u64> {
    text_if_there(file)?.trim().parse().ok()
}

fn device_lines(text: &str) -> impl Iterator<Item = (DeviceNumber, &str)> {
    text.lines().filter_map(|line| {
        let (number, words) = line.split_once(' ')?;
        let (major, minor) = number.split_once(':')?;
        let device = DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        };
        Some((device, words.trim()))
    })
}

/// Version 1 counts nanoseconds (`throttled_time`), version 2 microseconds (`throttled_usec`).
fn throttled(stat: &str) -> Option<(u64, Ns)> {
    let field = |name: &str| {
        stat.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(' ')?
                .trim()
                .parse::<u64>()
                .ok()
        })
    };
    let time =
        field("throttled_time").or_else(|| field("throttled_usec").map(|us| us.saturating_mul(NS_PER_US)))?;
    Some((field("nr_throttled")?, time))
}

mod memory;
#[cfg(test)]
mod tests;
