//! Where a blocked task stands: its stack in the kernel, the call that it is in, the file of that call, the disk below it and what
//! limits the task there.
//!
//! In: a task. Out: a [`Place`]. All of it can block for as long as the process is in the middle of an exec, or while somebody
//! makes cgroups: it is for a process that can be left behind. The file is read off its link and never opened.

use holdup_evidence::facts::BlockDevice;
use holdup_evidence::observed::SeenFile;
use holdup_evidence::{Call, DeviceNumber};
use holdup_knowledge::system_calls;
use holdup_proc::mountinfo::{self, Line};
use holdup_proc::root::text_if_there;
use holdup_proc::{Root, block, cgroup, tasks};

/// What was seen of a task.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Place {
    /// Functions of its stack, innermost first.
    pub(super) frames: Vec<String>,
    /// The call that it is in.
    pub(super) call: Option<Call>,
    /// What that works on.
    pub(super) file: Option<SeenFile>,
}

/// Looks at tasks.
#[derive(Debug)]
pub(super) struct Looker {
    root: Root,
    mounts: Vec<Line>,
    devices: Vec<BlockDevice>,
}

impl Looker {
    /// With the mounts and disks of now.
    pub(super) fn new(root: &Root) -> Looker {
        Looker {
            mounts: mountinfo::read(root, &mut Vec::new()),
            devices: block::devices(root, &mut Vec::new()),
            root: root.clone(),
        }
    }

    /// Looks at a task.
    pub(super) fn look(&self, pid: u32, tid: u32, name: &str) -> Place {
        let folder = self
            .root
            .proc
            .join(pid.to_string())
            .join("task")
            .join(tid.to_string());
        let stack = text_if_there(&folder.join("stack")).unwrap_or_default();
        let call = tasks::call(&self.root, tid);
        let file = match call {
            Some(call) => self.file(pid, &call),
            None => journal(name).map(|disk| SeenFile {
                disk: self.whole(disk),
                ..SeenFile::default()
            }),
        };
        Place {
            frames: stack.lines().filter_map(frame).collect(),
            call: call.map(|call| Call {
                number: call.number,
                args: [call.args[0], call.args[1], call.args[2], call.args[3]],
            }),
            file,
        }
    }

    fn file(&self, pid: u32, call: &tasks::Call) -> Option<SeenFile> {
        let argument = system_calls::numbered(call.number)?.descriptor?;
        let descriptor = *call.args.get(usize::from(argument))?;
        let process = self.root.proc.join(pid.to_string());
        let link = std::fs::read_link(process.join("fd").join(descriptor.to_string())).ok()?;
        let path = link.to_str().filter(|path| path.starts_with('/'))?.to_owned();
        let info = text_if_there(&process.join("fdinfo").join(descriptor.to_string()))?;
        let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        let mount: Option<u32> = mount.and_then(|number| number.trim().parse().ok());
        let device = mount.and_then(|number| self.device(pid, number));
        let disk = device.as_ref().map_or_else(String::new, |device| {
            device.disk.clone().unwrap_or_else(|| device.name.clone())
        });
        let numbers: Vec<DeviceNumber> = device.iter().map(|device| device.number).collect();
        let mut limits = match numbers.is_empty() {
            true => Vec::new(),
            false => cgroup::io_limits_of(&self.root, &self.mounts, pid),
        };
        let of_disk = |number: DeviceNumber| {
            let known = self.devices.iter().find(|device| device.number == number);
            numbers.contains(&number) || known.is_some_and(|device| device.name == disk)
        };
        limits.retain(|limit| of_disk(limit.device));
        Some(SeenFile { path, disk, limits })
    }

    /// The block device of a mount, by the kernel's number of that.
    fn device(&self, pid: u32, number: u32) -> Option<BlockDevice> {
        let own = self.mounts.iter().find(|mount| mount.number == number).cloned();
        // In a container mounts are others.
        let mount = own.or_else(|| {
            let mounts = mountinfo::of_process(&self.root, pid, &mut Vec::new());
            mounts.into_iter().find(|mount| mount.number == number)
        })?;
        let by_number = self.devices.iter().find(|device| device.number == mount.device);
        // File systems of several disks have a number of their own; what they are mounted from is one of the disks.
        let by_source = || {
            let name = mount.source.strip_prefix("/dev/")?;
            self.devices.iter().find(|device| device.name == name)
        };
        by_number.or_else(by_source).cloned()
    }

    /// The disk that a part belongs to.
    fn whole(&self, name: &str) -> String {
        let known = self.devices.iter().find(|device| device.name == name);
        known
            .and_then(|device| device.disk.clone())
            .unwrap_or_else(|| name.to_owned())
    }
}

/// The disk of a journal's thread, by its name: `jbd2/sda1-8`, `xfsaild/sdb1`.
fn journal(name: &str) -> Option<&str> {
    if let Some(disk) = name.strip_prefix("jbd2/") {
        // The kernel's own number of the journal stands behind the disk's name.
        return Some(disk.rsplit_once('-').map_or(disk, |(disk, _)| disk));
    }
    name.strip_prefix("xfsaild/")
}

/// The function of a line of a stack: `[<0>] do_wait+0x5f/0xa0`.
pub(super) fn frame(line: &str) -> Option<String> {
    let name = line.split_once("] ")?.1.split(['+', ' ']).next()?;
    (!name.is_empty() && !name.starts_with("0x")).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Looker, journal};
    use holdup_proc::Root;
    use std::path::Path;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_file_of_a_call_leads_to_its_disk_and_to_the_limit_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(
            root,
            "proc/self/mountinfo",
            "30 1 8:17 / /spool rw - ext4 /dev/sdb1 rw\n31 1 0:9 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n",
        );
        write(
            root,
            "proc/diskstats",
            "   8      16 sdb 1 2 3 4 5 6 7 8 9 10 11\n   8      17 sdb1 1 2 3 4 5 6 7 8 9 10 11\n",
        );
        let fsync = format!("{} 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f1\n", libc::SYS_fsync);
        write(root, "proc/70/syscall", &fsync);
        write(
            root,
            "proc/70/task/70/stack",
            "[<0>] jbd2_log_wait_commit+0x1/0x2\n[<0>] 0xffff\n",
        );
        std::fs::create_dir_all(root.join("proc/70/fd")).unwrap();
        std::os::unix::fs::symlink("/spool/q1", root.join("proc/70/fd/5")).unwrap();
        write(root, "proc/70/fdinfo/5", "pos:\t0\nflags:\t02\nmnt_id:\t30\n");
        let looker = Looker::new(&Root::below(root));
        let place = looker.look(70, 70, "sendmail");
        assert_eq!(place.frames, ["jbd2_log_wait_commit"]);
        let file = place.file.unwrap();
        assert_eq!((file.path.as_str(), file.disk.as_str()), ("/spool/q1", "sdb1"));
        assert!(file.limits.is_empty());
        // Gone, nothing is known of it.
        assert!(looker.look(71, 71, "x").file.is_none());
    }

    #[test]
    fn a_journal_s_thread_names_its_disk() {
        assert_eq!(journal("jbd2/dm-3-8"), Some("dm-3"));
        assert_eq!(journal("xfsaild/sdb"), Some("sdb"));
        assert_eq!(journal("kworker/0:1"), None);
    }
}
