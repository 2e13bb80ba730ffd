//! What need not be looked at twice: how full file systems are, swap areas, frozen cgroups and limits of
//! cgroups, what processes have open, who reads and writes.
//!
//! In: the tree. Out: what was seen in time. All of it can block, so it is begun when the look begins, and taken when that
//! is over.

use super::aside::{Aside, Sight};
use super::snapshots::{USERS, most};
use holdup_collect::jvms;
use holdup_detached::Confinement;
use holdup_evidence::Jvm;
use holdup_evidence::facts::BlockDevice;
use holdup_evidence::host::{HostSight, Use};
use holdup_evidence::observed::{Quote, SeenCgroup, SeenDevice, SeenFileSystem};
use holdup_proc::cgroup_limits::{self, Limits};
use holdup_proc::deleted::{self, Askable, Opened};
use holdup_proc::mountinfo::Line;
use holdup_proc::room::{self, Room};
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::Process;
use holdup_proc::{Root, block, blocking, frozen, mountinfo, names, schedulers, swap_areas, tasks};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long is waited in the end for what has not come meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);

/// The same for the limits of cgroups: each takes a lock of the kernel's, and a machine that runs into limits is slow.
const PATIENCE_WITH_CGROUPS: Duration = Duration::from_secs(2);

/// Processes whose descriptors are looked at, and whose reads and writes are.
const PROCESSES: usize = 20_000;

/// A thread that each Java virtual machine has, and how many of a process's threads are looked at for it: it is among the first
/// twenty that a machine starts, whatever the number of CPUs and collector.
const VM_THREAD: &str = "VM Thread";
const FIRST_THREADS: usize = 96;

/// Bytes of a KiB.
const KIB: f64 = 1024.0;

/// How full a mounted file system is; a test says it itself.
pub(super) type Ask = fn(&str) -> Option<Room>;

/// Bytes read and written by a process so far; `None` if that can't be seen.
type Io = Option<(u64, u64)>;

/// What is on a device, and its size in bytes.
type OnDevice = (Option<String>, Option<u64>);

/// What a reader may keep.
const READER: Confinement = blocking::reader(c"holdup-host");

fn of_all_cgroups(_: &usize) -> String {
    "the cgroups".to_owned()
}

/// What is being looked at.
#[derive(Debug)]
pub(super) struct Once {
    root: Root,
    rooms: Aside<Line, Option<Room>>,
    devices: Aside<BlockDevice, OnDevice>,
    frozen: Aside<(), Vec<String>>,
    limits: Aside<(), Limits>,
    opened: Aside<u32, Option<Opened>>,
    io: Aside<u32, Io>,
    /// Processes that there were when the look began.
    began: HashSet<u32>,
    jvms: Aside<u32, Option<Jvm>>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) file_systems: Vec<SeenFileSystem>,
    pub(super) devices: Vec<SeenDevice>,
    pub(super) cgroups: Vec<SeenCgroup>,
    /// Bytes read and written by processes when the look began.
    io: HashMap<u32, (u64, u64)>,
    /// Processes that there were then; others have read and written nothing by then.
    began: HashSet<u32>,
}

/// The Java virtual machines among processes, by the name of a thread that each has, and what they say of themselves.
fn jvms(root: &Root, pids: Vec<u32>) -> Aside<u32, Option<Jvm>> {
    let root = root.clone();
    Aside::start(
        READER,
        |_| "a process".to_owned(),
        pids,
        move |pid| {
            let threads = tasks::threads(&root, *pid).into_iter().take(FIRST_THREADS);
            let has_vm_thread = threads
                .filter_map(|tid| names::comm(&root, tid))
                .any(|name| name == VM_THREAD);
            has_vm_thread.then(|| jvms::read_once(&root, *pid))
        },
    )
}

impl Once {
    /// Begins.
    pub(super) fn start(root: &Root, ask: Ask) -> Once {
        let mounts = mountinfo::read(root, &mut Vec::new());
        let local: Vec<Line> = room::local(&mounts).into_iter().cloned().collect();
        let pids: Vec<u32> = tasks::processes(root).into_iter().take(PROCESSES).collect();
        let (of_device, of_cgroups, of_files) = (root.clone(), root.clone(), root.clone());
        let of_limits = root.clone();
        let askable = Askable::read(root);
        Once {
            root: root.clone(),
            rooms: Aside::start(
                READER,
                |_| "a mounted file system".to_owned(),
                local,
                move |mount: &Line| ask(&mount.target),
            ),
            devices: Aside::start(
                READER,
                |_| "a block device".to_owned(),
                block::devices(root, &mut Vec::new()),
                move |device| {
                    let on_it = on_device(&of_device, &mounts, device);
                    (on_it, size_of(&of_device, device))
                },
            ),
            frozen: Aside::start(READER, of_all_cgroups, vec![()], move |()| {
                frozen::read(&of_cgroups)
            }),
            limits: Aside::start(READER, of_all_cgroups, vec![()], move |()| {
                cgroup_limits::find(&of_limits)
            }),
            opened: Aside::start(
                READER,
                |_| "a process".to_owned(),
                pids.clone(),
                move |pid| deleted::of(&of_files, *pid, &askable),
            ),
            jvms: jvms(root, pids.clone()),
            began: pids.iter().copied().collect(),
            io: {
                let mut io = io_of(root, pids);
                // What is read later is less than what was read and written meanwhile.
                io.gather(PATIENCE);
                io
            },
        }
    }

    /// Takes what was seen; what was not is said in `sight`. Cgroups are of the second source.
    pub(super) fn take(self, source: u32, limits: u32, sight: &mut HostSight) -> (Seen, Vec<Jvm>) {
        let rooms = self.rooms.take(PATIENCE);
        late(sight, &rooms, "how full some file systems are");
        let devices = self.devices.take(PATIENCE);
        late(sight, &devices, "whether some block devices are swap areas");
        let hidden = |(device, (on_it, size)): &&(BlockDevice, OnDevice)| {
            on_it.is_none() && *size != Some(0) && swap_areas::is_worth_reading(&device.name)
        };
        if devices.seen.iter().any(|device| hidden(&device)) && !is_root(&self.root) {
            super::hole(
                sight,
                "swap areas that are not enabled, on disks that udev has no data about",
                "only root can read disks",
                "sudo holdup host",
            );
        }
        let frozen = self.frozen.take(PATIENCE);
        late(sight, &frozen, "frozen cgroups");
        sight.frozen = frozen.seen.into_iter().flat_map(|((), frozen)| frozen).collect();
        let opened = self.opened.take(PATIENCE);
        let unseen = opened.seen.iter().filter(|(_, files)| files.is_none()).count();
        for opened in opened.seen.into_iter().filter_map(|(_, opened)| opened) {
            sight.deleted.extend(opened.deleted);
            sight.descriptors.extend(opened.descriptors);
        }
        if unseen > 0 && !is_root(&self.root) {
            super::hole(
                sight,
                "deleted files that processes of other users keep open, and their number of open descriptors",
                "only root can read their descriptors",
                "sudo holdup host",
            );
        }
        sight.schedulers = schedulers::read(&self.root);
        let quote = Quote { source, line: 0 };
        let cgroups = cgroups(self.limits.take(PATIENCE_WITH_CGROUPS), limits, sight);
        let io = self.io.take(PATIENCE).seen.into_iter();
        let jvms = self.jvms.take(PATIENCE);
        late(sight, &jvms, "whether some processes are Java virtual machines");
        let jvms = jvms.seen.into_iter().filter_map(|(_, jvm)| jvm).collect();
        let seen = Seen {
            began: self.began,
            cgroups,
            file_systems: rooms
                .seen
                .into_iter()
                .filter_map(|(mount, room)| Some(file_system(mount, room?, &quote)))
                .collect(),
            devices: devices
                .seen
                .into_iter()
                .filter(|(_, (_, size))| *size != Some(0))
                .map(|(device, (on_it, size))| SeenDevice {
                    size,
                    kind: match (&device.disk, &device.backing_file) {
                        (Some(_), _) => "part",
                        (None, Some(_)) => "loop",
                        (None, None) => "disk",
                    }
                    .to_owned(),
                    name: device.name,
                    parent: device.disk,
                    file_system: on_it,
                    quote: quote.clone(),
                    ..SeenDevice::default()
                })
                .collect(),
            io: io.filter_map(|(pid, bytes)| Some((pid, bytes?))).collect(),
        };
        (seen, jvms)
    }
}

impl Seen {
    /// Who read and wrote between the first look and now, KiB a second; and who has memory in swap, if there is any there.
    pub(super) fn users(
        &self,
        root: &Root,
        processes: &[Process],
        watched: f64,
        swapped: bool,
        short_lived: impl Fn(u32) -> Option<String>,
        sight: &mut HostSight,
    ) {
        let names: HashMap<u32, &Process> = processes.iter().map(|process| (process.pid, process)).collect();
        let now = io_of(root, names.keys().copied().take(PROCESSES).collect()).take(PATIENCE);
        let hidden = now.seen.iter().filter(|(_, bytes)| bytes.is_none()).count();
        if hidden > 0 && !is_root(root) {
            super::hole(
                sight,
                "how much each process reads and writes",
                "only root can read this of other users' processes",
                "sudo holdup host",
            );
        }
        let amount = |pid: u32, bytes: u64| Use {
            process: names
                .get(&pid)
                .map_or_else(String::new, |process| process.name.clone()),
            pid,
            amount: bytes as f64 / KIB / watched,
            ..Use::default()
        };
        if watched > 0.0 {
            let grown = now.seen.iter().filter_map(|(pid, bytes)| {
                let new = (!self.began.contains(pid)).then_some((0, 0));
                let (before, now) = (self.io.get(pid).copied().or(new)?, (*bytes)?);
                Some((
                    *pid,
                    now.0.saturating_sub(before.0),
                    now.1.saturating_sub(before.1),
                ))
            });
            let grown: Vec<(u32, u64, u64)> = grown.collect();
            let charged = charged(root, &grown, short_lived);
            let who = |pid: u32, bytes: u64| match charged.get(&pid) {
                Some(child) => {
                    let parent = amount(pid, bytes);
                    Use {
                        process: child.clone(),
                        run_by: parent.process.clone(),
                        ..parent
                    }
                }
                None => amount(pid, bytes),
            };
            let reads = grown.iter().map(|(pid, read, _)| who(*pid, *read));
            let writes = grown.iter().map(|(pid, _, written)| who(*pid, *written));
            (sight.reads, sight.writes) = (most(root, by_program(reads)), most(root, by_program(writes)));
        }
        if swapped {
            let in_swap = processes.iter().filter_map(|process| {
                let status = text_if_there(&root.proc.join(process.pid.to_string()).join("status"))?;
                let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"))?;
                let kib: f64 = line.split_ascii_whitespace().next()?.parse().ok()?;
                Some(super::snapshots::of(process, kib))
            });
            sight.swap = most(root, in_swap.collect());
        }
    }
}

/// Processes that are charged with what ended children of theirs have read and written, each with the program of these.
fn charged(
    root: &Root,
    grown: &[(u32, u64, u64)],
    short_lived: impl Fn(u32) -> Option<String>,
) -> HashMap<u32, String> {
    let mut by_bytes: Vec<&(u32, u64, u64)> = grown.iter().collect();
    by_bytes.sort_by_key(|(_, read, written)| std::cmp::Reverse(read.saturating_add(*written)));
    let asked: Vec<(u32, u64)> = (by_bytes.into_iter().take(USERS))
        .filter(|(pid, read, written)| read.saturating_add(*written) > 0 && short_lived(*pid).is_some())
        .map(|(pid, read, written)| (*pid, read.saturating_add(*written)))
        .collect();
    let pids = asked.iter().map(|(pid, _)| *pid).collect();
    // What a thread itself has read and written does not have its children's.
    let own = io_of_threads(root, pids).take(PATIENCE).seen;
    let own: HashMap<u32, (u64, u64)> = (own.into_iter())
        .filter_map(|(pid, bytes)| Some((pid, bytes?)))
        .collect();
    let charged = asked.into_iter().filter_map(|(pid, grown)| {
        let (read, written) = own.get(&pid)?;
        (read.saturating_add(*written) < grown / 2).then(|| Some((pid, short_lived(pid)?)))?
    });
    charged.collect()
}

/// The use of all processes of a program together; `pid` is the one that used most.
fn by_program(all: impl Iterator<Item = Use>) -> Vec<Use> {
    let mut programs: BTreeMap<String, (Use, f64)> = BTreeMap::new();
    for one in all.filter(|one| one.amount > 0.0) {
        let (sum, most) = programs.entry(one.process.clone()).or_insert_with(|| {
            (
                Use {
                    amount: 0.0,
                    ..one.clone()
                },
                0.0,
            )
        });
        sum.amount += one.amount;
        sum.processes += 1;
        if one.amount > *most {
            (sum.pid, *most) = (one.pid, one.amount);
            sum.run_by.clone_from(&one.run_by);
        }
    }
    programs.into_values().map(|(sum, _)| sum).collect()
}

/// How much of their limits cgroups use.
fn cgroups(limits: Sight<(), Limits>, source: u32, sight: &mut HostSight) -> Vec<SeenCgroup> {
    const WHAT: &str = "limits of some cgroups";
    late(sight, &limits, WHAT);
    if limits.seen.iter().any(|(_, limits)| limits.cut) {
        super::hole(sight, WHAT, "there are more cgroups than holdup reads", "");
    }
    let quote = Quote { source, line: 0 };
    let limits = limits.seen.into_iter().map(|((), limits)| limits).collect();
    let used = Aside::start(READER, of_all_cgroups, limits, move |limits: &Limits| {
        limits.used(&quote)
    });
    let used = used.take(PATIENCE_WITH_CGROUPS);
    late(sight, &used, WHAT);
    used.seen.into_iter().flat_map(|(_, used)| used).collect()
}

fn late<I, O>(sight: &mut HostSight, seen: &Sight<I, O>, what: &str) {
    if seen.late > 0 {
        super::hole(sight, what, &format!("{} did not answer in time", seen.late), "");
    }
}

/// Whether holdup is root, as far as the tree tells.
pub(super) fn is_root(root: &Root) -> bool {
    holdup_proc::status::read(root, &mut Vec::new()).euid == Some(0)
}

/// What is on a device: what it is mounted as, what the device manager noted, else whether a swap signature is there.
fn on_device(root: &Root, mounts: &[Line], device: &BlockDevice) -> Option<String> {
    let mounted = mounts.iter().find(|mount| mount.device == device.number);
    let found = mounted.map(|mount| mount.file_system.clone());
    found
        .or_else(|| swap_areas::noted(root, device.number))
        .or_else(|| {
            if !swap_areas::is_worth_reading(&device.name) {
                return None;
            }
            let swap = swap_areas::signature(root, &device.name)?;
            // What else may be on it was not looked for, and nothing is not what was found.
            Some(if swap { "swap" } else { "other" }.to_owned())
        })
}

/// Bytes of a device.
fn size_of(root: &Root, device: &BlockDevice) -> Option<u64> {
    const SECTOR: u64 = 512;
    let file = root.sys.join("class/block").join(&device.name).join("size");
    let sectors: u64 = text_if_there(&file)?.trim().parse().ok()?;
    Some(sectors.saturating_mul(SECTOR))
}

fn file_system(mount: Line, room: Room, quote: &Quote) -> SeenFileSystem {
    let options = holdup_evidence::facts::Mount::from(mount.clone()).options;
    SeenFileSystem {
        source: mount.source,
        kind: Some(mount.file_system),
        mount: mount.target,
        used_percent: room.used_percent,
        available_kib: Some(room.available_kib),
        size_kib: Some(room.size_kib),
        inodes_used_percent: room.inodes_used_percent,
        inodes_free: Some(room.inodes_free),
        inodes: None,
        options: Some(options),
        quote: quote.clone(),
    }
}

/// What processes have read and written so far. The kernel takes a lock for that which an exec holds.
fn io_of(root: &Root, pids: Vec<u32>) -> Aside<u32, Io> {
    io_at(root, pids, |process| Some(process.join("io")))
}

/// What the first threads of processes have read and written so far, without children and other threads.
fn io_of_threads(root: &Root, pids: Vec<u32>) -> Aside<u32, Io> {
    io_at(root, pids, |process| {
        Some(process.join("task").join(process.file_name()?).join("io"))
    })
}

fn io_at(root: &Root, pids: Vec<u32>, file: fn(&Path) -> Option<PathBuf>) -> Aside<u32, Io> {
    let root = root.clone();
    Aside::start(
        READER,
        |_| "a process".to_owned(),
        pids,
        move |pid| {
            let text = text_if_there(&file(&root.proc.join(pid.to_string()))?);
            let value = |name: &str| {
                let text = text.as_deref()?;
                let line = text.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().parse().ok()
            };
            value("read_bytes:").zip(value("write_bytes:"))
        },
    )
}
