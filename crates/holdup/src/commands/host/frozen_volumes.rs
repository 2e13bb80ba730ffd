//! File systems that somebody has frozen, and who uses them and does not wait.
//!
//! The problem: whoever froze one has done so in the past, and the kernel tells nobody who it was. In: a list of tasks. Out: file systems that
//! blocked tasks wait to write to, and processes that were started with the mount point or the device in their arguments, or have files open
//! there: whoever copies what was frozen for that does. Arguments and calls are read in children that can be left behind.

use super::aside::Aside;
use super::looked_up::named;
use super::places;
use holdup_collect::paths::{awaits_frozen, of_call};
use holdup_evidence::Ns;
use holdup_evidence::observed::{FrozenVolume, SeenClient, VolumeUser};
use holdup_knowledge::system_calls;
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::{Process, TaskList};
use holdup_proc::{Root, block, blocking, mountinfo, tasks, titles};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Blocked tasks that are looked at, and file systems and users of each that are kept.
const TASKS_MAX: usize = 64;
const VOLUMES_MAX: usize = 4;
const USERS_MAX: usize = 3;

/// Descriptors and arguments of a process that are looked at.
const DESCRIPTORS_MAX: usize = 1024;
const WORDS_MAX: usize = 256;

/// How long is waited for what blocked tasks and other processes say.
const PATIENCE: Duration = Duration::from_millis(500);

/// Ticks of `USER_HZ` in a second, nanoseconds in a second.
const TICKS: f64 = 100.0;
const SECOND: f64 = 1e9;

/// Everybody's parent.
const INIT: u32 = 1;

/// What stands for a file system in arguments and descriptors.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Volume {
    mount: String,
    /// Its device, and the file behind that.
    devices: Vec<String>,
}

/// How a process uses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Uses {
    volume: usize,
    named: bool,
}

/// Those that tasks of this list wait for; `own` is the process that looks, and `now` is in seconds since boot.
pub(crate) fn look(root: &Root, own: u32, list: &TaskList, now: f64) -> Vec<FrozenVolume> {
    let blocked = list.busy.iter().filter(|task| task.state == 'D');
    let blocked: Vec<(u32, u32)> = blocked.map(|task| (task.pid, task.tid)).take(TASKS_MAX).collect();
    if blocked.is_empty() {
        return Vec::new();
    }
    let of_tasks = root.clone();
    let places = Aside::start(
        blocking::reader_of_stacks(c"holdup-host"),
        |_| "a blocked process".to_owned(),
        blocked,
        move |(pid, tid)| awaited(&of_tasks, *pid, *tid),
    );
    let mut by_mount: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for ((pid, _), mount) in places.take(PATIENCE).seen {
        if let Some(mount) = mount {
            by_mount.entry(mount).or_default().insert(pid);
        }
    }
    used(root, own, list, by_mount, now)
}

/// The same of file systems of which it is known who waits for them; `own` is the process that looks, and `now` is in seconds since boot.
pub(super) fn used(
    root: &Root,
    own: u32,
    list: &TaskList,
    by_mount: BTreeMap<String, BTreeSet<u32>>,
    now: f64,
) -> Vec<FrozenVolume> {
    let volumes: Vec<Volume> = (by_mount.keys().take(VOLUMES_MAX))
        .map(|mount| volume(root, mount))
        .collect();
    if volumes.is_empty() {
        return Vec::new();
    }
    let mut users = users(root, own, list, &volumes);
    let found = by_mount.into_iter().take(VOLUMES_MAX).enumerate();
    let found = found.map(|(at, (mount, waiters))| {
        let mut theirs = users.remove(&at).unwrap_or_default();
        // Whoever has frozen it may write there by mistake, and wait for its own thaw.
        theirs.retain(|(process, named)| *named || !waiters.contains(&process.pid));
        FrozenVolume {
            users: told(root, &theirs, &waiters, now),
            waiters: waiters.into_iter().collect(),
            served_behind: Vec::new(),
            mount,
        }
    });
    found.collect()
}

/// The frozen file system that a task waits to write to. In a child.
fn awaited(root: &Root, pid: u32, tid: u32) -> Option<String> {
    let folder = root.proc.join(pid.to_string());
    let stack = text_if_there(&folder.join(format!("task/{tid}/stack")))?;
    let frames: Vec<String> = stack.lines().filter_map(places::frame).collect();
    if !awaits_frozen(&frames) {
        return None;
    }
    let by_descriptor = || {
        let call = tasks::call(root, tid)?;
        let argument = system_calls::numbered(call.number)?.descriptor?;
        let descriptor = *call.args.get(usize::from(argument))?;
        let link = std::fs::read_link(folder.join("fd").join(descriptor.to_string())).ok()?;
        Some(link.to_string_lossy().into_owned()).filter(|path| path.starts_with('/'))
    };
    let path = by_descriptor().or_else(|| of_call(root, tid))?;
    let mounts = mountinfo::of_process(root, pid, &mut Vec::new());
    Some(mountinfo::of_path(&mounts, &path)?.target.clone())
}

/// A mount point with the device that is mounted there.
fn volume(root: &Root, mount: &str) -> Volume {
    let mounts = mountinfo::read(root, &mut Vec::new());
    let line = mountinfo::of_path(&mounts, mount).filter(|line| line.target == mount);
    let mut devices = Vec::new();
    if let Some(line) = line {
        devices.push(line.source.clone());
        let all = block::devices(root, &mut Vec::new());
        let device = all.into_iter().find(|device| device.number == line.device);
        devices.extend(device.and_then(|device| device.backing_file));
    }
    devices.retain(|path| path.starts_with('/'));
    Volume {
        mount: mount.to_owned(),
        devices,
    }
}

/// Who uses each of these: by their places.
fn users<'a>(
    root: &Root,
    own: u32,
    list: &'a TaskList,
    volumes: &[Volume],
) -> HashMap<usize, Vec<(&'a Process, bool)>> {
    let by_pid: HashMap<u32, &Process> = list.processes.iter().map(|one| (one.pid, one)).collect();
    let others = |one: &&Process| !one.kernel && one.pid != own && !holdup_detached::is_ours(one.pid);
    let pids: Vec<u32> = list.processes.iter().filter(others).map(|one| one.pid).collect();
    let (root, volumes) = (root.clone(), volumes.to_vec());
    let looks = Aside::start(
        blocking::reader(c"holdup-host"),
        |_| "a process that may use a frozen file system".to_owned(),
        pids,
        move |pid| uses(&root, *pid, &volumes),
    );
    let mut found: HashMap<usize, Vec<(&Process, bool)>> = HashMap::new();
    for (pid, uses) in looks.take(PATIENCE).seen {
        for one in uses {
            found
                .entry(one.volume)
                .or_default()
                .extend(by_pid.get(&pid).map(|process| (*process, one.named)));
        }
    }
    found
}

/// Which of these a process uses. In a child.
fn uses(root: &Root, pid: u32, volumes: &[Volume]) -> Vec<Uses> {
    let folder = root.proc.join(pid.to_string());
    let current = std::fs::read_link(folder.join("cwd")).unwrap_or_default();
    let arguments = titles::arguments(root, pid).unwrap_or_default();
    let named = paths(&current, &arguments);
    let entries = std::fs::read_dir(folder.join("fd")).into_iter().flatten();
    let open = entries.take(DESCRIPTORS_MAX).flatten();
    let mut links: Vec<PathBuf> = open
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .collect();
    links.push(current);
    let of = |(at, volume): (usize, &Volume)| {
        let is_device = |path: &PathBuf| volume.devices.iter().any(|device| path == Path::new(device));
        let is_it = |path: &PathBuf| path == Path::new(&volume.mount) || is_device(path);
        // At the root of all, and below it, there is everybody.
        let below =
            |path: &PathBuf| is_device(path) || volume.mount != "/" && path.starts_with(&volume.mount);
        let told = named.iter().any(is_it);
        (told || links.iter().chain(&named).any(below)).then_some(Uses {
            volume: at,
            named: told,
        })
    };
    volumes.iter().enumerate().filter_map(of).collect()
}

/// The paths in arguments, as they lead from this directory on. An argument may be a line of a shell.
fn paths(current: &Path, arguments: &[String]) -> Vec<PathBuf> {
    let is_end = |letter: char| letter.is_whitespace() || ";&|\"'=()".contains(letter);
    let words = arguments.iter().flat_map(|one| one.split(is_end));
    let words = words.filter(|word| !word.is_empty() && !word.starts_with('-'));
    words
        .take(WORDS_MAX)
        .map(|word| plain(&current.join(word)))
        .collect()
}

/// A path without dots; links are not followed: that could block.
fn plain(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

/// Those that may have frozen it: who was started with its name first, then who began last. A child goes with its parent.
fn told(root: &Root, users: &[(&Process, bool)], waiters: &BTreeSet<u32>, now: f64) -> Vec<VolumeUser> {
    let waits = |process: &Process| waiters.contains(&process.pid);
    let is_user = |pid: u32| pid != INIT && users.iter().any(|(process, _)| process.pid == pid);
    let child = |pid: u32| {
        let mut children = users.iter().filter(|(process, _)| process.parent == pid);
        children.next().map(|(process, _)| process.pid)
    };
    let mut first: Vec<&(&Process, bool)> = users
        .iter()
        .filter(|(process, _)| process.pid != INIT && !is_user(process.parent))
        .collect();
    // Who works with a child, such as a copy, does more than to look.
    first.sort_by_key(|(process, named)| {
        let alone = child(process.pid).is_none();
        (!named, waits(process), alone, std::cmp::Reverse(process.began))
    });
    first.truncate(USERS_MAX);
    let pids: Vec<u32> = (first.iter())
        .flat_map(|(process, _)| [Some(process.pid), child(process.pid)])
        .flatten()
        .collect();
    let names = named(root, pids);
    let client = |pid: u32| SeenClient {
        pid,
        name: names.get(&pid).cloned().unwrap_or_default(),
    };
    first
        .into_iter()
        .map(|(process, named)| VolumeUser {
            process: client(process.pid),
            runs: child(process.pid).map(client),
            named: *named,
            waits: waits(process),
            lived: ((now - process.began as f64 / TICKS).max(0.0) * SECOND) as Ns,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Uses, Volume, paths, told, uses};
    use holdup_evidence::observed::VolumeUser;
    use holdup_proc::Root;
    use holdup_proc::task_list::Process;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    fn process(pid: u32, parent: u32, began: u64) -> Process {
        Process {
            pid,
            parent,
            began,
            ..Process::default()
        }
    }

    #[test]
    fn paths_in_arguments_are_whole() {
        let arguments = ["-c", "fsfreeze -f vol/a && cp /srv/x ../y", "--to=vol/b/./c"].map(str::to_owned);
        let found = paths(Path::new("/srv/job"), &arguments);
        let has = |path: &str| found.contains(&PathBuf::from(path));
        let all = ["/srv/job/vol/a", "/srv/x", "/srv/y", "/srv/job/vol/b/c"];
        assert!(all.into_iter().all(has) && !has("/srv/job/-f"), "{found:?}");
    }

    #[test]
    fn who_was_started_with_the_mount_point_or_copies_the_device_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |pid: u32, arguments: &str, links: &[(&str, &str)]| {
            let process = folder.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(process.join("fd")).unwrap();
            std::fs::write(process.join("cmdline"), arguments.replace(' ', "\0")).unwrap();
            for (name, target) in links {
                symlink(target, process.join(name)).unwrap();
            }
        };
        write(7, "nightly mnt/vol out", &[("cwd", "/srv")]);
        write(
            8,
            "rsync img/vol.img out",
            &[("cwd", "/srv"), ("fd/3", "/srv/img/vol.img")],
        );
        write(9, "server", &[("cwd", "/"), ("fd/5", "/srv/mnt/vol/data/1")]);
        write(
            10,
            "server mnt/volume",
            &[("cwd", "/srv"), ("fd/5", "/srv/mnt/volume/1")],
        );
        let volumes = [Volume {
            mount: "/srv/mnt/vol".to_owned(),
            devices: vec!["/dev/loop3".to_owned(), "/srv/img/vol.img".to_owned()],
        }];
        let of = |pid: u32| uses(&Root::below(folder.path()), pid, &volumes);
        let one = |named: bool| vec![Uses { volume: 0, named }];
        assert_eq!(
            (of(7), of(8), of(9), of(10)),
            (one(true), one(true), one(false), vec![])
        );
    }

    #[test]
    fn a_child_goes_with_its_parent_and_who_was_told_stands_first() {
        let folder = tempfile::tempdir().unwrap();
        let (job, copy, server) = (process(7, 1, 900), process(8, 7, 950), process(9, 1, 100));
        let users = [(&server, false), (&copy, true), (&job, true)];
        let told = |waiters: &[u32]| -> Vec<_> {
            let waiters = waiters.iter().copied().collect();
            let found = told(&Root::below(folder.path()), &users, &waiters, 20.0);
            let runs = |one: &VolumeUser| one.runs.as_ref().map(|child| child.pid);
            found
                .iter()
                .map(|one| (one.process.pid, runs(one), one.named, one.waits))
                .collect()
        };
        assert_eq!(told(&[]), [(7, Some(8), true, false), (9, None, false, false)]);
        assert_eq!(told(&[7]), [(7, Some(8), true, true), (9, None, false, false)]);
    }
}
