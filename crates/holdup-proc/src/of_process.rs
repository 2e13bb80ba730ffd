//! Files as a process has them: below its own root, in its own mount namespace.
//!
//! The problem: a process in a container has files of its own under every path, and its links lead wherever it likes. The choice: a path is
//! looked up below a descriptor of the process's root, which no link leads out of, and only an ordinary file is read, so much of it. That
//! may take as long as the file system does: only a child that can be left behind reads so ([`crate::blocking`]).
//!
//! In: a process, and a path as it has it. Out: the text, or nothing.

use crate::root::Root;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

/// The most that is read of one file, bytes: configurations are a few hundred.
const MOST_BYTES: u64 = 64 << 10;

/// The text of an ordinary file that a process has under this path. What is not UTF-8 is replaced.
#[must_use]
pub fn text(root: &Root, pid: u32, path: &Path) -> Option<String> {
    let top = root.proc.join(pid.to_string()).join("root");
    let place = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let top = open(&top, place, Mode::empty()).ok()?;
    // First only its place: to open a device or a FIFO may do something.
    let found = below(&top, path, OFlag::O_PATH)?;
    if !found.metadata().ok()?.is_file() {
        return None;
    }
    let file = below(&top, path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file below a root that links cannot lead out of: those that begin with `/` begin there.
fn below(top: impl AsFd, path: &Path, flags: OFlag) -> Option<File> {
    let inside = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(inside);
    openat2(top, path, how).ok().map(File::from)
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::root::{Root, Tree};
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn a_path_is_looked_up_below_the_root_of_the_process_and_nowhere_else() {
        let tree = Tree::new(&[
            ("own/etc/resolv.conf", "nameserver 192.0.2.53\n"),
            ("own/run/stub.conf", "nameserver 192.0.2.54\n"),
            ("etc/secret", "of the machine\n"),
        ]);
        let own = tree.root.etc.parent().unwrap().join("own");
        std::fs::create_dir_all(tree.root.proc.join("7")).unwrap();
        symlink(&own, tree.root.proc.join("7/root")).unwrap();
        let read = |path: &str| text(&tree.root, 7, Path::new(path));
        assert_eq!(read("/etc/resolv.conf").unwrap(), "nameserver 192.0.2.53\n");
        symlink("/run/stub.conf", own.join("etc/absolute")).unwrap();
        assert_eq!(read("/etc/absolute").unwrap(), "nameserver 192.0.2.54\n");
        symlink("../../../run/stub.conf", own.join("etc/up")).unwrap();
        assert_eq!(
            read("/etc/up").unwrap(),
            "nameserver 192.0.2.54\n",
            "never above its root"
        );
        symlink("../../etc/secret", own.join("etc/escape")).unwrap();
        assert_eq!(read("/etc/escape"), None);
        symlink("/proc/self/root/etc/passwd", own.join("etc/magic")).unwrap();
        assert_eq!(read("/etc/magic"), None);
        symlink("loop", own.join("etc/loop")).unwrap();
        assert_eq!(read("/etc/loop"), None);
    }

    #[test]
    fn what_is_no_ordinary_file_is_not_opened() {
        let tree = Tree::new(&[("own/etc/hosts", "")]);
        let own = tree.root.etc.parent().unwrap().join("own");
        std::fs::create_dir_all(tree.root.proc.join("7")).unwrap();
        symlink(&own, tree.root.proc.join("7/root")).unwrap();
        // Nobody writes into it: to read it would take for ever.
        nix::unistd::mkfifo(&own.join("etc/resolv.conf"), Mode::S_IRWXU).unwrap();
        assert_eq!(text(&tree.root, 7, Path::new("/etc/resolv.conf")), None);
        assert_eq!(text(&tree.root, 7, Path::new("/etc")), None);
        assert_eq!(text(&tree.root, 8, Path::new("/etc/hosts")), None);
    }

    #[test]
    fn an_own_file_is_read() {
        let own = std::process::id();
        assert!(text(&Root::system(), own, Path::new("/etc/passwd")).is_some());
    }
}
