//! A file system that a process writes to and that is short of room, and who has filled it.
//!
//! The problem: a server may stop to take work long before a write fails, at a limit of its own on free space. In: the server. Out: the file
//! system, and whose file there is the largest that is still open to write to. Sizes are asked of local file systems, which may block: it runs
//! in a child that can be left behind.

use holdup_evidence::observed::{FilledVolume, SeenClient};
use holdup_proc::{Root, descriptors, mountinfo, names, room, tasks};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Percent that is used, from which a file system is short of room for a server that keeps some free.
const MIN_USED_PERCENT: f64 = 75.0;

/// Part of a file system that one file must make out, to be named.
const MIN_PART: f64 = 0.1;

/// Descriptors of a process that are looked at.
const DESCRIPTORS_MAX: usize = 1024;

/// Bytes of a KiB, and of a block as `stat` counts them.
const KIB: f64 = 1024.0;
const BLOCK_BYTES: u64 = 512;

/// Permission of a link in `/proc/PID/fd`: the descriptor may be written to.
const WRITES: u32 = 0o200;

/// That of this process. One that nobody is known to have filled says nothing: a server writes to several, and a log among them may be on a
/// disk that is always rather full.
pub(super) fn volume(root: &Root, server: u32) -> Option<FilledVolume> {
    let mounts = mountinfo::read(root, &mut Vec::new());
    let local: Vec<String> = room::local(&mounts)
        .into_iter()
        .map(|one| one.target.clone())
        .collect();
    let written = descriptors::written_by(root, server, &local).into_iter();
    let found = written.filter_map(|one| filled(root, server, &one.below, &local));
    found.max_by(|one, other| part(one).total_cmp(&part(other)))
}

/// The part of a file system that the file makes out.
fn part(volume: &FilledVolume) -> f64 {
    volume.bytes as f64 / volume.size.max(1) as f64
}

/// A file system that is short of room, and much of it is one file that another process has open.
fn filled(root: &Root, server: u32, mount: &str, local: &[String]) -> Option<FilledVolume> {
    let room =
        room::of(mount).filter(|room| room.used_percent.is_some_and(|used| used >= MIN_USED_PERCENT))?;
    let others = tasks::processes(root).into_iter().filter(|pid| *pid != server);
    let (pid, (bytes, file)) = others
        .filter_map(|pid| Some((pid, largest(root, pid, mount, local)?)))
        .max_by_key(|(_, (bytes, _))| *bytes)?;
    let volume = FilledVolume {
        mount: mount.to_owned(),
        size: (room.size_kib * KIB) as u64,
        left: (room.available_kib * KIB) as u64,
        by: Some(SeenClient {
            pid,
            name: names::comm(root, pid).unwrap_or_default(),
        }),
        file,
        bytes,
    };
    (part(&volume) >= MIN_PART).then_some(volume)
}

/// The largest file on this mount that a process has open to write to.
fn largest(root: &Root, pid: u32, mount: &str, local: &[String]) -> Option<(u64, String)> {
    let entries = std::fs::read_dir(root.proc.join(pid.to_string()).join("fd")).ok()?;
    let links = entries.take(DESCRIPTORS_MAX).flatten().map(|entry| entry.path());
    let found = links.filter_map(|link| {
        let target = std::fs::read_link(&link).ok()?;
        let written = std::fs::symlink_metadata(&link).ok()?.mode() & WRITES != 0;
        (written && is_on(&target, mount, local)).then(|| size(&link, target))?
    });
    found.max_by_key(|(bytes, _)| *bytes)
}

/// Whether this is the mount that a path is on.
fn is_on(path: &Path, mount: &str, local: &[String]) -> bool {
    let above = local.iter().filter(|one| path.starts_with(one.as_str()));
    above.max_by_key(|one| one.len()).is_some_and(|one| *one == mount)
}

fn size(link: &Path, target: PathBuf) -> Option<(u64, String)> {
    let meta = std::fs::metadata(link).ok().filter(Metadata::is_file)?;
    Some((
        meta.blocks().saturating_mul(BLOCK_BYTES),
        target.to_string_lossy().into_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::{is_on, largest};
    use holdup_proc::Root;
    use std::io::Write;

    #[test]
    fn of_mounts_below_each_other_the_deepest_counts() {
        let local = ["/", "/srv", "/srv/spool"].map(str::to_owned);
        let on = |path: &str, mount| is_on(std::path::Path::new(path), mount, &local);
        assert!(on("/srv/spool/q", "/srv/spool") && !on("/srv/spool/q", "/srv") && !on("/srv/spool/q", "/"));
    }

    #[test]
    fn the_largest_file_that_is_written_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut large = std::fs::File::create(path("large.log")).unwrap();
        large.write_all(&[1; 1 << 20]).unwrap();
        large.sync_all().unwrap();
        let _small = std::fs::File::create(path("small.log")).unwrap();
        std::fs::write(path("read.log"), [1; 4096]).unwrap();
        let _read = std::fs::File::open(path("read.log")).unwrap();
        let mount = folder.path().to_string_lossy().into_owned();
        let (bytes, file) = largest(
            &Root::system(),
            std::process::id(),
            &mount,
            &["/".to_owned(), mount.clone()],
        )
        .unwrap();
        assert!(bytes >= 1 << 20 && file.ends_with("large.log"), "{bytes} {file}");
    }
}
