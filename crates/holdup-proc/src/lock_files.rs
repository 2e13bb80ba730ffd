//! Lock files: files and symbolic links that have the id of the process that made them, as many programs keep them instead of a lock.
//!
//! In: a process. Out: those in its working directory, in directories that its arguments name, and in hidden directories of both, which
//! name another process that lives. It opens what others have named and reads another process's arguments, so it may block: only for a child
//! that can be abandoned ([`crate::blocking`]). Of a file nothing is kept but that number. No symbolic link is followed.

use crate::root::Root;
use crate::{names, titles};
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Directories that are looked through, entries of each, and files of those that are read.
const DIRECTORIES_MAX: usize = 16;
const ENTRIES_MAX: usize = 512;
const FILES_MAX: usize = 32;

/// Arguments that may name a directory.
const ARGUMENTS_MAX: usize = 16;

/// Ancestors of a process that are looked at.
const ANCESTORS_MAX: usize = 32;

/// What of a file is read, bytes: the first line has the number.
const READ_BYTES_MAX: u64 = 64;

/// The largest file that is one, bytes: a list of packages is larger.
const FILE_BYTES_MAX: u64 = 1024;

/// A file that names a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its path, as the process sees it. Hostile text.
    pub path: String,
    /// Whom it names.
    pub pid: u32,
}

/// The lock files around a process that name another one, which is neither its ancestor nor its child.
#[must_use]
pub fn around(root: &Root, pid: u32) -> Vec<Found> {
    let process = root.proc.join(pid.to_string());
    let mut found = Vec::new();
    let mut left = FILES_MAX;
    let own = related(root, pid);
    for (folder, path) in folders(root, pid, &process).into_iter().take(DIRECTORIES_MAX) {
        for (name, claim) in claims(&folder, &mut left) {
            let lives = names::comm(root, claim).is_some();
            let other = claim > 1 && !own.contains(&claim) && !related(root, claim).contains(&pid);
            if lives && other && may_speak_for(root, claim, &folder, &name) {
                found.push(Found {
                    path: path.join(name).to_string_lossy().into_owned(),
                    pid: claim,
                });
            }
        }
    }
    found
}

/// A process and its ancestors.
fn related(root: &Root, pid: u32) -> Vec<u32> {
    let up = std::iter::successors(Some(pid), |pid| names::parent(root, *pid).filter(|pid| *pid > 1));
    up.take(ANCESTORS_MAX).collect()
}

/// Whether a file can be believed that it is this process's lock. Whoever may write in a directory can name any process there: only the
/// process's own user, and root, speak for it. And a process that did not live yet when the file was written has its number from another.
fn may_speak_for(root: &Root, pid: u32, folder: &File, name: &str) -> bool {
    let (Some(lived), Some(users)) = (lived(root, pid), users(root, pid)) else {
        return false;
    };
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(file) = openat(folder.as_fd(), name, flags, Mode::empty()) else {
        return false;
    };
    let Ok(about) = File::from(file).metadata() else {
        return false;
    };
    let since = about.modified().ok().and_then(|at| at.elapsed().ok());
    // Both clocks have ticks; what was written as the process began is its own.
    let is_older = since.is_none_or(|since| since.as_secs() <= lived.saturating_add(1));
    is_older && is_of(about.uid(), &users)
}

/// Whether a file's owner is one of a process's users, or root.
fn is_of(owner: u32, users: &[u32]) -> bool {
    owner == 0 || users.contains(&owner)
}

/// The users of a process: real, effective, saved, and the one whose files it makes.
fn users(root: &Root, pid: u32) -> Option<Vec<u32>> {
    let text = std::fs::read_to_string(root.proc.join(pid.to_string()).join("status")).ok()?;
    let users = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().map(|user| user.parse().ok()).collect()
}

/// For how long a process has lived, seconds.
fn lived(root: &Root, pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(root.proc.join(pid.to_string()).join("stat")).ok()?;
    let after = stat.rsplit_once(')')?.1;
    let ticks: u64 = after.split_whitespace().nth(19)?.parse().ok()?;
    let uptime = std::fs::read_to_string(root.proc.join("uptime")).ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    // Every kernel shows a hundred ticks a second here.
    Some((uptime as u64).saturating_sub(ticks / 100))
}

/// Directories to look through, with their paths.
fn folders(root: &Root, pid: u32, process: &Path) -> Vec<(File, PathBuf)> {
    let mut found = Vec::new();
    let cwd = open_folder(&process.join("cwd"));
    let cwd_name = std::fs::read_link(process.join("cwd")).unwrap_or_default();
    let top = open_folder(&process.join("root"));
    if let Some(cwd) = &cwd {
        add(&mut found, cwd.try_clone().ok(), cwd_name.clone());
    }
    let arguments = titles::arguments(root, pid).unwrap_or_default();
    for argument in arguments.iter().skip(1).take(ARGUMENTS_MAX) {
        // `--repository=/srv/app` names one as well.
        let path = Path::new(
            argument
                .split_once('=')
                .map_or(argument.as_str(), |(_, path)| path),
        );
        let (start, named) = match path.is_absolute() {
            true => (&top, path.to_owned()),
            false => (&cwd, cwd_name.join(path)),
        };
        let Some(start) = start else { continue };
        if let Some(folder) = step_down(start, path) {
            add(&mut found, Some(folder), named);
        }
    }
    found
}

/// Adds a directory and its hidden ones: version control keeps its locks there.
fn add(found: &mut Vec<(File, PathBuf)>, folder: Option<File>, path: PathBuf) {
    let Some(folder) = folder.filter(|_| found.len() < DIRECTORIES_MAX) else {
        return;
    };
    if found.iter().any(|(_, known)| *known == path) {
        return;
    }
    let inner: Vec<String> = entries(&folder)
        .into_iter()
        .filter(|name| (name.starts_with('.') && name.len() > 1) || is_lock(name))
        .collect();
    for name in inner {
        if let Some(below) = step_down(&folder, Path::new(&name)) {
            found.push((below, path.join(name)));
        }
    }
    found.push((folder, path));
}

fn open_folder(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    let mut options = File::options();
    options.read(true).custom_flags(flags).open(path).ok()
}

/// The directory of a path below another one, without links and without a way up.
fn step_down(start: &File, path: &Path) -> Option<File> {
    let mut at = start.try_clone().ok()?;
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                at = openat(at.as_fd(), name, flags, Mode::empty()).ok()?.into();
            }
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(at)
}

/// The names in a directory.
fn entries(folder: &File) -> Vec<String> {
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let all = std::fs::read_dir(path).into_iter().flatten().flatten();
    let names = all
        .take(ENTRIES_MAX)
        .filter_map(|entry| entry.file_name().into_string().ok());
    names.collect()
}

/// Whether a name is one of a file that says who uses something. A pid file says only who runs: whoever polls beside it waits for something else.
fn is_lock(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let extension = Path::new(&name).extension().and_then(|one| one.to_str());
    name.contains("lock") || extension == Some("lck")
}

/// Files with such names whose contents are a process id.
fn claims(folder: &File, left: &mut usize) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    // In a directory that is called so, whatever it is called.
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).unwrap_or_default();
    let inside = path
        .file_name()
        .is_some_and(|name| is_lock(&name.to_string_lossy()));
    for name in entries(folder) {
        if !(is_lock(&name) || inside && name.contains("pid")) {
            continue;
        }
        if *left == 0 {
            break;
        }
        *left -= 1;
        if let Some(pid) = claim(folder, &name) {
            found.push((name, pid));
        }
    }
    found
}

/// Whom a file names.
fn claim(folder: &File, name: &str) -> Option<u32> {
    if let Ok(target) = readlinkat(folder.as_fd(), name) {
        return of_link(&target.to_string_lossy());
    }
    let look = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let about = File::from(openat(folder.as_fd(), name, look, Mode::empty()).ok()?);
    let about = about.metadata().ok()?;
    if !about.is_file() || about.len() > FILE_BYTES_MAX {
        return None;
    }
    let read = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(folder.as_fd(), name, read, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    of_text(&String::from_utf8_lossy(&bytes))
}

/// `build7:4711`, `user@build7.4711:1700000000`, `127.0.0.1:+4711`, `4711`.
fn of_link(target: &str) -> Option<u32> {
    let first = match target.rsplit_once('.') {
        Some((host, rest)) if host.contains('@') => rest.split(':').next()?,
        _ => target.rsplit(':').next()?.trim_start_matches('+'),
    };
    first.split('/').next()?.parse().ok()
}

/// The number that is the whole first line.
fn of_text(text: &str) -> Option<u32> {
    let first = text.lines().next()?.trim();
    let last = first.rsplit(':').next()?;
    last.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{around, is_lock, is_of, may_speak_for, of_link, of_text, users};
    use crate::root::{Root, Tree};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_and_a_file_name_their_maker() {
        assert_eq!(of_link("build7:4711"), Some(4711));
        assert_eq!(of_link("kim@build7.4711:1700000000"), Some(4711));
        assert_eq!(of_link("127.0.1.1:+4711"), Some(4711));
        assert_eq!(of_link("../store/file"), None);
        assert_eq!(of_text("  4711\n/var/lib/postgresql\n"), Some(4711));
        assert_eq!(of_text("build7:4711"), Some(4711));
        assert_eq!(of_text("GEM\n  remote: https://example.org\n"), None);
        assert_eq!(of_text(""), None);
        assert!(
            is_lock("wlock")
                && is_lock("index.LOCK")
                && is_lock("x.lck")
                && !is_lock("x.pid")
                && !is_lock("list.txt")
        );
    }

    #[test]
    fn only_a_processs_own_user_and_root_speak_for_it() {
        let tree = Tree::new(&[
            ("proc/7/status", "Name:\tx\nUid:\t1000\t1001\t1001\t1002\n"),
            ("proc/8/status", "Name:\tx\n"),
        ]);
        let of = users(&tree.root, 7).unwrap();
        assert!(is_of(0, &of) && is_of(1000, &of) && is_of(1002, &of));
        assert!(!is_of(65_534, &of));
        assert_eq!(users(&tree.root, 8), None, "whose it is is not known");
    }

    #[test]
    fn a_file_and_a_link_of_another_user_name_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        std::fs::write(folder.path().join("file.lock"), own.to_string()).unwrap();
        symlink(format!("host:{own}"), folder.path().join("link.lock")).unwrap();
        let top = super::open_folder(folder.path()).unwrap();
        let root = Root::system();
        let believed = |name| may_speak_for(&root, own, &top, name);
        assert!(believed("file.lock") && believed("link.lock"));
        // Only root may give a file away.
        let other = Some(65_534);
        let given = std::os::unix::fs::lchown(folder.path().join("file.lock"), other, other)
            .and_then(|()| std::os::unix::fs::lchown(folder.path().join("link.lock"), other, other));
        if given.is_ok() {
            assert!(!believed("file.lock") && !believed("link.lock"));
        }
    }

    #[test]
    fn whom_the_files_around_a_process_name_is_found() {
        use std::process::Command;
        let folder = tempfile::tempdir().unwrap();
        let sleep = || {
            let mut command = Command::new("sleep");
            command.arg("600").current_dir(folder.path()).spawn().unwrap()
        };
        let (mut waiter, mut holder) = (sleep(), sleep());
        std::fs::create_dir(folder.path().join(".hg")).unwrap();
        symlink(format!("host:{}", holder.id()), folder.path().join(".hg/wlock")).unwrap();
        std::fs::write(folder.path().join("own.lock"), waiter.id().to_string()).unwrap();
        std::fs::write(folder.path().join("web.pid"), holder.id().to_string()).unwrap();
        std::fs::write(folder.path().join("yarn.lock"), "# no process\n").unwrap();
        std::fs::write(folder.path().join("gone.lock"), "4194304").unwrap();
        std::fs::write(folder.path().join("parent.lock"), std::process::id().to_string()).unwrap();
        let found = around(&Root::system(), waiter.id());
        let holder_id = holder.id();
        waiter.kill().unwrap();
        holder.kill().unwrap();
        waiter.wait().unwrap();
        holder.wait().unwrap();
        let path = folder.path().canonicalize().unwrap().join(".hg/wlock");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].pid, found[0].path.as_str()),
            (holder_id, path.to_str().unwrap())
        );
    }
}
