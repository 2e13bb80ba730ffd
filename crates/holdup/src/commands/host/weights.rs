//! Weights of cgroups between a thread that gets no CPU and the one that has it: where they differ, they decide before nice values do.
//!
//! In: who waits for whom. Out: the same, with the two cgroups at which their paths part, if the other one's weight is larger.

use super::aside::Aside;
use super::starved::Waits;
use holdup_evidence::observed::Precedence;
use holdup_proc::root::text_if_there;
use holdup_proc::{Root, blocking};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

/// How long is waited for the weights of cgroups.
const PATIENCE: Duration = Duration::from_millis(300);

/// The same with weights of cgroups: where those differ, they decide before nice values do. Read aside: files of cgroups take locks.
pub(super) fn weighed(root: &Root, found: Vec<Waits>) -> Vec<Waits> {
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

#[cfg(test)]
mod tests {
    use super::weights;
    use holdup_proc::Root;

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
}
