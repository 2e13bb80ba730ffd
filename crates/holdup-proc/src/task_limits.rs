//! Users who have as many processes and threads as one of their processes may make: `RLIMIT_NPROC`.
//!
//! In: processes that are observed. Out: the users of those that can make no more, and who has them. The kernel counts the threads of all
//! processes with the same real user, and compares with the limit of the one that asks; root and whoever has `CAP_SYS_RESOURCE` or
//! `CAP_SYS_ADMIN` are not bound.

use crate::root::{Root, text_if_there};
use crate::tasks;
use std::collections::BTreeMap;

/// Processes that are counted.
const COUNTED_MAX: usize = 32_768;

/// How the line of this limit begins.
const LINE: &str = "Max processes";

/// Capabilities of whoever is not bound, as bits: `CAP_SYS_ADMIN`, `CAP_SYS_RESOURCE`.
const UNBOUND: u64 = 1 << 21 | 1 << 24;

/// A user with nothing left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    /// The user's number.
    pub uid: u32,
    /// The lowest limit that binds one of the observed processes.
    pub limit: u64,
    /// Processes and threads of that user.
    pub used: u64,
    /// Those of the observed processes that can make no more.
    pub binds: Vec<u32>,
    /// All processes of that user, each with its threads.
    pub processes: Vec<(u32, u64)>,
}

/// What a process is counted as.
struct Counted {
    uid: u32,
    threads: u64,
    unbound: bool,
}

/// Users of these whose limit is used up.
pub fn used_up<'a>(root: &Root, observed: impl Iterator<Item = &'a u32>) -> Vec<UsedUp> {
    // Most observed processes are root's or bound by nothing: all processes are read only for the others.
    let bound: BTreeMap<u32, Counted> = observed
        .filter_map(|pid| Some((*pid, count(root, *pid)?)))
        .filter(|(_, one)| one.uid != 0 && !one.unbound)
        .collect();
    if bound.is_empty() {
        return Vec::new();
    }
    let all = tasks::processes(root).into_iter().take(COUNTED_MAX);
    let counted: BTreeMap<u32, Counted> = all.filter_map(|pid| Some((pid, count(root, pid)?))).collect();
    let mut used: BTreeMap<u32, u64> = BTreeMap::new();
    for one in counted.values() {
        let sum = used.entry(one.uid).or_default();
        *sum = sum.saturating_add(one.threads);
    }
    let mut found: BTreeMap<u32, UsedUp> = BTreeMap::new();
    for (pid, one) in &bound {
        let used = used.get(&one.uid).copied().unwrap_or(0);
        let Some(limit) = limit(root, *pid).filter(|limit| used >= *limit) else {
            continue;
        };
        let user = found.entry(one.uid).or_insert_with(|| UsedUp {
            uid: one.uid,
            limit,
            used,
            binds: Vec::new(),
            processes: Vec::new(),
        });
        user.limit = user.limit.min(limit);
        user.binds.push(*pid);
    }
    for user in found.values_mut() {
        let theirs = counted.iter().filter(|(_, one)| one.uid == user.uid);
        user.processes = theirs.map(|(pid, one)| (*pid, one.threads)).collect();
    }
    found.into_values().collect()
}

fn count(root: &Root, pid: u32) -> Option<Counted> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("status"))?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()
    };
    Some(Counted {
        uid: value("Uid:")?.parse().ok()?,
        threads: value("Threads:")?.parse().ok()?,
        unbound: u64::from_str_radix(value("CapEff:")?, 16).ok()? & UNBOUND != 0,
    })
}

/// `Max processes             12                   12                   processes`.
fn limit(root: &Root, pid: u32) -> Option<u64> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("limits"))?;
    let rest = text.lines().find_map(|line| line.strip_prefix(LINE))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// The name of a user in the machine's own file; its number where there is none.
#[must_use]
pub fn user(root: &Root, uid: u32) -> String {
    let number = uid.to_string();
    let text = text_if_there(&root.etc.join("passwd")).unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.split(':').nth(2) == Some(number.as_str()));
    let name = line.and_then(|line| line.split(':').next());
    name.filter(|name| !name.is_empty()).map_or(number, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{used_up, user};
    use crate::root::Tree;

    fn status(uid: u32, threads: u32, capabilities: &str) -> String {
        format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nThreads:\t{threads}\nCapEff:\t{capabilities}\n")
    }

    #[test]
    fn threads_of_a_user_count_against_the_limit_of_the_one_that_asks() {
        let none = "0000000000000000";
        let all = "000001ffffffffff";
        let (games, tired, root, able) = (
            status(5, 3, none),
            status(5, 9, none),
            status(0, 90, all),
            status(5, 0, all),
        );
        let limits = |limit: &str| {
            format!("Max processes             {limit}                   20                   processes \n")
        };
        let (low, high) = (limits("12"), limits("unlimited"));
        let tree = Tree::new(&[
            ("proc/7/status", &games),
            ("proc/7/limits", &low),
            ("proc/8/status", &tired),
            ("proc/8/limits", &high),
            ("proc/9/status", &root),
            ("proc/9/limits", &low),
            ("proc/10/status", &able),
            ("proc/10/limits", &low),
            (
                "etc/passwd",
                "root:x:0:0::/:/bin/sh\ngames:x:5:60:games:/usr/games:/bin/sh\n",
            ),
        ]);
        let found = used_up(&tree.root, [7, 8, 9, 10, 11].iter());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].uid, found[0].limit, found[0].used), (5, 12, 12));
        assert_eq!(found[0].binds, [7]);
        assert_eq!(found[0].processes, [(7, 3), (8, 9), (10, 0)]);
        assert_eq!(user(&tree.root, 5), "games");
        assert_eq!(user(&tree.root, 6), "6");
    }

    #[test]
    fn with_one_left_nothing_is_used_up() {
        let status = status(5, 11, "0");
        let tree = Tree::new(&[
            ("proc/7/status", &status),
            ("proc/7/limits", "Max processes  12  12  processes\n"),
        ]);
        assert_eq!(used_up(&tree.root, [7].iter()), []);
    }
}
