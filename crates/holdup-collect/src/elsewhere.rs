//! Which processes are in other namespaces than holdup, as those in containers: they have other numbers and other paths.
//!
//! In: processes. Out: what each calls itself, and where its paths begin for us. Only links of `/proc/PID/ns` and the files
//! `status` and `cgroup` are read: none of them can block.

use holdup_model::report::Elsewhere;
use holdup_proc::{Root, names};

/// Processes that are reported: more make nobody the wiser.
const MAX_PROCESSES: usize = 256;

/// Adds those of these processes that are elsewhere.
pub(super) fn note(found: &mut Vec<Elsewhere>, pids: &[u32]) {
    let root = Root::system();
    let own = std::process::id();
    for pid in pids.iter().copied() {
        if found.len() < MAX_PROCESSES
            && let Some(one) = look(&root, own, pid)
        {
            found.push(one);
        }
    }
}

fn look(root: &Root, own: u32, pid: u32) -> Option<Elsewhere> {
    let differs = |kind| {
        let (theirs, ours) = (
            names::namespace(root, pid, kind),
            names::namespace(root, own, kind),
        );
        theirs.is_some() && ours.is_some() && theirs != ours
    };
    let pid_inside = differs("pid")
        .then(|| names::process_inside(root, pid))
        .flatten()
        .filter(|inside| *inside != pid);
    let paths = differs("mnt").then(|| format!("/proc/{pid}/root"));
    if pid_inside.is_none() && paths.is_none() {
        return None;
    }
    Some(Elsewhere {
        pid,
        pid_inside,
        root: paths,
        cgroup: names::cgroup(root, pid).filter(|theirs| names::cgroup(root, own).as_ref() != Some(theirs)),
    })
}
