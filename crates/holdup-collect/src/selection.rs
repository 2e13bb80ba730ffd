//! `holdup attach` and `record`: which processes are meant.
//!
//! In: what the command line says. Out: process ids, or one sentence that says why there are none. Nothing here opens what
//! a program names, and nothing can block: only `/proc/PID/{comm,status}` and the cgroup tree are read.

use anyhow::{Context, bail};
use holdup_proc::{Root, mountinfo, names, task_list, tasks};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders below a cgroup that are looked through.
const MAX_CGROUPS: usize = 4096;

/// Processes that are looked below: as many as a kernel numbers by default.
const MAX_PROCESSES: usize = 32_768;

/// What was chosen.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pids: Vec<u32>,
    /// Whether a process id means the processes below it, too.
    below: bool,
    names: Vec<String>,
    /// Folders of the cgroups.
    cgroups: Vec<PathBuf>,
    /// All programs of the machine.
    everything: bool,
    /// Processes that are never among them.
    without: Vec<u32>,
    /// What was asked for, in words.
    said: String,
}

impl Selection {
    /// What the command line says. `only`: a process id means that process, and none of those below it.
    ///
    /// # Errors
    /// When there is no such unit or cgroup.
    pub fn new(
        pids: &[u32],
        only: bool,
        names: &[String],
        units: &[String],
        cgroups: &[PathBuf],
    ) -> anyhow::Result<Selection> {
        Ok(Selection {
            pids: pids.to_vec(),
            below: !only,
            names: names.to_vec(),
            cgroups: cgroups_of(units, cgroups)?,
            ..Selection::default()
        })
    }

    /// What a recorder watches: everything, where nothing is named.
    ///
    /// # Errors
    /// When there is no such unit or cgroup.
    pub fn of_record(units: &[String], cgroups: &[PathBuf]) -> anyhow::Result<Selection> {
        let named = units.iter().map(|unit| format!("unit {unit}"));
        let paths = cgroups.iter().map(|path| format!("cgroup {}", path.display()));
        let said: Vec<String> = named.chain(paths).collect();
        Ok(Selection {
            cgroups: cgroups_of(units, cgroups)?,
            everything: said.is_empty(),
            said: if said.is_empty() {
                "the whole machine".to_owned()
            } else {
                said.join(", ")
            },
            ..Selection::default()
        })
    }

    /// The same without these processes.
    pub fn without(&self, pids: &[u32]) -> Selection {
        Selection {
            without: pids.to_vec(),
            ..self.clone()
        }
    }

    /// What a recorder was asked for, in words.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// The processes that it means now, lowest id first; holdup itself is never among them.
    ///
    /// # Errors
    /// When something that was named is not there.
    pub fn resolve(&self) -> anyhow::Result<Vec<u32>> {
        let root = Root::system();
        let mut pids = BTreeSet::new();
        for pid in &self.pids {
            pids.insert(process(&root, *pid)?);
        }
        if self.below {
            add_below(&root, &mut pids);
        }
        for name in &self.names {
            let named = tasks::processes(&root).into_iter();
            let before = pids.len();
            pids.extend(named.filter(|pid| names::comm(&root, *pid).as_deref() == Some(name)));
            if pids.len() == before {
                bail!(
                    "no process is called {name:?}; the kernel keeps the first 15 bytes of a name: `ps -eo pid,comm` lists them"
                );
            }
        }
        for folder in &self.cgroups {
            let before = pids.len();
            members(folder, &mut pids);
            if pids.len() == before && self.pids.is_empty() && self.names.is_empty() {
                bail!("no process is in the cgroup {}", folder.display());
            }
        }
        if self.everything {
            pids.extend(task_list::programs(&root));
        }
        self.leave_out(&mut pids);
        if pids.is_empty() {
            bail!("holdup does not observe itself");
        }
        Ok(pids.into_iter().collect())
    }

    /// Processes that have come since: into the cgroups, or by a name; what is gone is no matter. Of a whole machine all that come
    /// are children of those that are watched.
    pub fn more(&self, known: &mut Known) -> Vec<u32> {
        let mut pids = known.newcomers(&Root::system(), &self.names);
        for folder in &self.cgroups {
            members(folder, &mut pids);
        }
        self.leave_out(&mut pids);
        pids.into_iter().collect()
    }

    fn leave_out(&self, pids: &mut BTreeSet<u32>) {
        pids.remove(&std::process::id());
        pids.retain(|pid| !self.without.contains(pid) && !holdup_detached::is_ours(*pid));
    }
}

/// Processes whose names were looked at: a name is read twice, because a process gets its own a moment after its birth, and
/// then no more, because there may be thousands.
#[derive(Debug, Default)]
pub struct Known {
    once: BTreeSet<u32>,
    twice: BTreeSet<u32>,
}

impl Known {
    fn newcomers(&mut self, root: &Root, wanted: &[String]) -> BTreeSet<u32> {
        if wanted.is_empty() {
            return BTreeSet::new();
        }
        let living: BTreeSet<u32> = tasks::processes(root).into_iter().collect();
        let looked: BTreeSet<u32> = living.difference(&self.twice).copied().collect();
        let named = |pid: &u32| names::comm(root, *pid).is_some_and(|name| wanted.contains(&name));
        let found = looked.iter().copied().filter(named).collect();
        self.twice = (&living & &self.twice)
            .into_iter()
            .chain(&looked & &self.once)
            .collect();
        self.once = looked;
        found
    }
}

/// The process of this id, or of this thread id.
fn process(root: &Root, id: u32) -> anyhow::Result<u32> {
    let Some(pid) = names::process_of(root, id) else {
        bail!("there is no process {id}; `ps -e` lists all processes");
    };
    // A main thread may have ended while others run.
    let ended = |tid: u32| names::state(root, tid).is_none_or(|state| state == 'Z' || state == 'X');
    if names::state(root, pid) == Some('Z') && tasks::threads(root, pid).into_iter().all(ended) {
        bail!(
            "process {pid} has ended and its parent has not reaped it (a zombie), so it has no threads to observe"
        );
    }
    Ok(pid)
}

/// Where cgroups are mounted: version 2, or version 1's hierarchy that systemd keeps, then any other.
fn hierarchies(root: &Root) -> Vec<PathBuf> {
    let mounts = mountinfo::read(root, &mut Vec::new());
    let mut found: Vec<(u8, PathBuf)> = mounts
        .iter()
        .filter_map(|mount| {
            let rank = match (mount.file_system.as_str(), mount.target.as_str()) {
                ("cgroup2", _) => 0,
                ("cgroup", target) if target.ends_with("systemd") => 1,
                ("cgroup", _) => 2,
                _ => return None,
            };
            Some((rank, PathBuf::from(&mount.target)))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// A path of a cgroup as `/proc/PID/cgroup` has it, or as a folder.
fn cgroup_at(hierarchies: &[PathBuf], path: &Path) -> anyhow::Result<PathBuf> {
    if path.components().any(|part| part.as_os_str() == "..") {
        bail!("{path:?} is not the path of a cgroup: it contains \"..\"");
    }
    let given = hierarchies
        .iter()
        .filter(|mount| path.starts_with(mount))
        .map(|_| path.to_owned());
    let below = hierarchies
        .iter()
        .map(|mount| mount.join(path.strip_prefix("/").unwrap_or(path)));
    let mut folders = given.chain(below);
    folders
        .find(|folder| folder.join("cgroup.procs").exists())
        .with_context(|| {
            format!("there is no cgroup {path:?}; `systemd-cgls` and /proc/PID/cgroup list them")
        })
}

/// The folders of units and cgroups.
fn cgroups_of(units: &[String], paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let hierarchies = hierarchies(&Root::system());
    let mut cgroups = Vec::new();
    for unit in units {
        cgroups.push(cgroup_of_unit(&hierarchies, unit)?);
    }
    for path in paths {
        cgroups.push(cgroup_at(&hierarchies, path)?);
    }
    Ok(cgroups)
}

/// The cgroup of a systemd unit, which is named after it.
fn cgroup_of_unit(hierarchies: &[PathBuf], unit: &str) -> anyhow::Result<PathBuf> {
    let name = match unit.contains('.') {
        true => unit.to_owned(),
        false => format!("{unit}.service"),
    };
    for mount in hierarchies {
        let mut left = vec![mount.clone()];
        let mut seen = 0;
        while let Some(folder) = left.pop() {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                if entry.file_name() == *name && entry.path().join("cgroup.procs").exists() {
                    return Ok(entry.path());
                }
                seen += 1;
                if seen < MAX_CGROUPS {
                    left.push(entry.path());
                }
            }
        }
    }
    bail!("no unit {name:?} is running; `systemctl list-units` lists running units")
}

/// The children of these processes, their children and so on; holdup's own processes are not among them.
fn add_below(root: &Root, pids: &mut BTreeSet<u32>) {
    let own = std::process::id();
    let mut left: Vec<u32> = pids.iter().copied().collect();
    while let Some(pid) = left.pop() {
        if pids.len() > MAX_PROCESSES {
            return;
        }
        let children = tasks::children(root, pid).into_iter();
        left.extend(children.filter(|child| *child != own && pids.insert(*child)));
    }
}

/// Processes of a cgroup and of all below it.
fn members(folder: &Path, pids: &mut BTreeSet<u32>) {
    let mut left = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = left.pop() {
        let list = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        pids.extend(
            list.lines()
                .filter_map(|line| line.parse::<u32>().ok())
                .filter(|pid| *pid != 0),
        );
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            seen += 1;
            if seen < MAX_CGROUPS {
                left.push(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Root, Selection, add_below, cgroup_at, cgroup_of_unit, members};
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn tree() -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        for (cgroup, pids) in [
            ("", "1\n"),
            ("system.slice", ""),
            ("system.slice/web.service", "7\n8\n"),
            ("system.slice/web.service/worker", "9\n0\n"),
        ] {
            let path = folder.path().join(cgroup);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("cgroup.procs"), pids).unwrap();
        }
        let mount = vec![folder.path().to_owned()];
        (folder, mount)
    }

    #[test]
    fn a_unit_is_its_cgroup_and_all_below_it() {
        let (_folder, mounts) = tree();
        let unit = cgroup_of_unit(&mounts, "web").unwrap();
        let mut pids = BTreeSet::new();
        members(&unit, &mut pids);
        assert_eq!(pids, BTreeSet::from([7, 8, 9]));
        assert_eq!(
            cgroup_at(&mounts, Path::new("/system.slice/web.service")).unwrap(),
            unit
        );
        assert_eq!(cgroup_at(&mounts, &unit).unwrap(), unit);
        let error = cgroup_of_unit(&mounts, "no\x1bne").unwrap_err().to_string();
        assert!(
            error.starts_with("no unit \"no\\u{1b}ne.service\" is running"),
            "{error}"
        );
        assert!(cgroup_at(&mounts, Path::new("../etc")).is_err());
    }

    #[test]
    fn who_gets_the_name_later_is_found_and_who_has_another_is_asked_twice() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root {
            proc: folder.path().to_owned(),
            ..Root::system()
        };
        let named = |pid: &str, name: &str| {
            std::fs::create_dir_all(folder.path().join(pid)).unwrap();
            std::fs::write(folder.path().join(pid).join("comm"), format!("{name}\n")).unwrap();
        };
        let mut known = Known::default();
        let mut look = || {
            known
                .newcomers(&root, &["worker".to_owned()])
                .into_iter()
                .collect::<Vec<_>>()
        };
        named("7", "worker");
        named("8", "sh");
        assert_eq!(look(), [7]);
        named("8", "worker");
        named("9", "sh");
        assert_eq!(look(), [7, 8], "it had just been born");
        look();
        named("9", "worker");
        assert_eq!(look(), [0_u32; 0], "it was something else for long");
        std::fs::remove_dir_all(folder.path().join("9")).unwrap();
        look();
        named("9", "worker");
        assert_eq!(look(), [9], "another of the same number");
    }

    #[test]
    fn a_process_means_those_below_it_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root {
            proc: folder.path().to_owned(),
            ..Root::system()
        };
        for (pid, children) in [("7", "8 9 \n"), ("8", "10 "), ("9", ""), ("10", ""), ("11", "")] {
            let thread = folder.path().join(pid).join("task").join(pid);
            std::fs::create_dir_all(&thread).unwrap();
            std::fs::write(thread.join("children"), children).unwrap();
        }
        let mut pids = BTreeSet::from([7]);
        add_below(&root, &mut pids);
        assert_eq!(pids, BTreeSet::from([7, 8, 9, 10]));
    }

    #[test]
    fn what_is_not_there_is_a_sentence() {
        let of = |pids: &[u32], names: &[&str]| {
            let selection = Selection {
                pids: pids.to_vec(),
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                cgroups: Vec::new(),
                ..Selection::default()
            };
            selection.resolve().map_err(|error| error.to_string())
        };
        assert_eq!(
            of(&[u32::MAX - 1], &[]).unwrap_err(),
            "there is no process 4294967294; `ps -e` lists all processes"
        );
        assert!(
            of(&[], &["nobody is called so"])
                .unwrap_err()
                .starts_with("no process is called")
        );
        assert_eq!(
            of(&[std::process::id()], &[]).unwrap_err(),
            "holdup does not observe itself"
        );
        assert_eq!(of(&[1], &[]).unwrap(), [1]);
    }
}
