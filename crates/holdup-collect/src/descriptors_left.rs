//! Observed processes that can open nothing more: what fails with `EMFILE` blocks nobody, so no event tells of it.
//!
//! In: processes, when observation begins and when it ends. Out: those that had as many descriptors open as they may both times.

use holdup_evidence::facts::NoDescriptorLeft;
use holdup_proc::{Root, descriptor_limits, descriptors};
use std::collections::BTreeSet;

/// Processes that are looked at.
const PROCESSES_MAX: usize = 4096;

/// Those of these processes that have no descriptor left now.
pub(super) fn look(pids: &BTreeSet<u32>, root: &Root) -> BTreeSet<u32> {
    let used_up = |pid: &u32| descriptor_limits::used_up(root, *pid).is_some();
    pids.iter().take(PROCESSES_MAX).copied().filter(used_up).collect()
}

/// Those of them that still have none, with what they have open.
pub(super) fn since(before: &BTreeSet<u32>, root: &Root) -> Vec<NoDescriptorLeft> {
    let still = |pid: &u32| {
        let limit = descriptor_limits::used_up(root, *pid)?;
        let ends = descriptors::ends(root, *pid).unwrap_or_default();
        Some(NoDescriptorLeft {
            limit,
            sockets: ends.sockets.len() as u64,
            pipes: ends.read.union(&ends.written).count() as u64,
        })
    };
    before.iter().filter_map(still).collect()
}

#[cfg(test)]
mod tests {
    use super::{look, since};
    use holdup_proc::Root;
    use std::collections::BTreeSet;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_can_open_nothing_more_is_found_with_what_it_has() {
        let program = "import os,resource,socket,time\n\
                       resource.setrlimit(resource.RLIMIT_NOFILE,(20,20))\n\
                       keep=[]\n\
                       try:\n    while True: keep.append(socket.socket())\n\
                       except OSError: os.write(1,b'ready\\n')\n\
                       time.sleep(600)\n";
        let mut child = Command::new("python3")
            .args(["-c", program])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        let pids = BTreeSet::from([child.id(), std::process::id()]);
        let before = look(&pids, &Root::system());
        assert_eq!(before, BTreeSet::from([child.id()]));
        let found = since(&before, &Root::system());
        // It may have been given one beyond the limit that it has set itself.
        assert!(found[0].limit.open >= 20, "{found:?}");
        assert_eq!(found[0].limit.soft, 20);
        assert!(found[0].sockets >= 10, "{found:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(since(&before, &Root::system()), [], "it is gone");
    }
}
