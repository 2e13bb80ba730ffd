//! Pid namespaces: which thread of the machine has an id in one of them.
//!
//! The problem: a lock in memory names its owner by the id that the owner has in its own namespace, a container's; outside, that is another
//! process's id, often a kernel thread's. In: a process of the namespace, and an id there. Out: that thread as this machine has it.

use crate::root::{Root, text_if_there};
use crate::{names, tasks};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long all processes are looked through, at most.
const SEARCH_TIME: Duration = Duration::from_millis(500);

/// A pid namespace other than holdup's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within {
    link: String,
}

/// Where a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In holdup's own pid namespace: ids are the same.
    Here,
    /// In another one.
    Within(Within),
    /// That may not be asked, or it is gone.
    Unknown,
}

/// Which pid namespace a process is in.
#[must_use]
pub fn place(root: &Root, pid: u32) -> Place {
    let own = || std::fs::read_link(root.proc.join("self/ns/pid")).ok();
    match (names::namespace(root, pid, "pid"), own()) {
        (Some(link), Some(own)) if own.to_str() == Some(link.as_str()) => Place::Here,
        (Some(link), Some(_)) => Place::Within(Within { link }),
        _ => Place::Unknown,
    }
}

impl Within {
    /// The namespace's own number; `None` where the kernel's text is not understood.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        let number = self.link.strip_prefix("pid:[")?.strip_suffix(']')?;
        number.parse().ok()
    }

    /// The process and the thread id, as this machine has them, of the thread that has this id in the namespace.
    #[must_use]
    pub fn thread(&self, root: &Root, inside: u32) -> Option<(u32, u32)> {
        let until = Instant::now() + SEARCH_TIME;
        let all = tasks::processes(root).into_iter();
        let mut all = all.take_while(|_| Instant::now() < until);
        all.find_map(|pid| {
            if names::namespace(root, pid, "pid")? != self.link {
                return None;
            }
            let folder = root.proc.join(pid.to_string()).join("task");
            let is_it = |tid: &u32| id_inside(&folder.join(tid.to_string())) == Some(inside);
            let tid = tasks::threads(root, pid).into_iter().find(is_it)?;
            Some((pid, tid))
        })
    }
}

/// A thread's id in its own pid namespace.
fn id_inside(folder: &Path) -> Option<u32> {
    inside(&text_if_there(&folder.join("status"))?)
}

/// The same by the text of its `status`.
#[must_use]
pub fn inside(status: &str) -> Option<u32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Place, place};
    use crate::root::{Root, Tree};

    fn tree(processes: &[(&str, u32, &str)]) -> Tree {
        let tree = Tree::new(&[]);
        for (process, namespace, inside) in processes {
            let status = format!("Name:\tx\nNSpid:\t{process}\t{inside}\n");
            tree.write(&format!("proc/{process}/task/{process}/status"), &status);
            let folder = tree.path(&format!("proc/{process}/ns"));
            std::fs::create_dir_all(&folder).unwrap();
            std::os::unix::fs::symlink(format!("pid:[{namespace}]"), folder.join("pid")).unwrap();
        }
        tree
    }

    #[test]
    fn an_id_is_looked_up_in_its_own_namespace_alone() {
        let tree = tree(&[
            ("self", 1, "9"),
            ("2", 1, "2"),
            ("70", 5, "2"),
            ("80", 6, "2"),
            ("71", 5, "3"),
        ]);
        assert_eq!(place(&tree.root, 2), Place::Here);
        assert_eq!(place(&tree.root, 90), Place::Unknown);
        let Place::Within(within) = place(&tree.root, 71) else {
            panic!("another namespace");
        };
        assert_eq!(within.number(), Some(5));
        assert_eq!(within.thread(&tree.root, 2), Some((70, 70)));
        assert_eq!(within.thread(&tree.root, 3), Some((71, 71)));
        assert_eq!(within.thread(&tree.root, 4), None, "nobody lives there");
    }

    #[test]
    fn this_process_is_here() {
        assert_eq!(place(&Root::system(), std::process::id()), Place::Here);
    }
}
