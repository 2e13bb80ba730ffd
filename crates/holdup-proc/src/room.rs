//! How full local file systems are.
//!
//! In: the mount table. Out: which of them are on this machine's own disks or in its memory ([`local`]), and for one of those
//! what `statfs` says ([`of`]). A network file system, FUSE and automounts can block for ever and are never asked. A disk
//! that does not answer can block, too: [`of`] is for a process that can be left behind.

use crate::mountinfo::Line;
use holdup_knowledge::file_systems::{self, Backing, Mount, is_below, is_local};
use nix::sys::statvfs::statvfs;
use std::path::Path;

/// Mounts of local file systems, each file system once, by the mount whose path is shortest; those that are hidden by a later
/// mount on the same directory are left out.
#[must_use]
pub fn local(mounts: &[Line]) -> Vec<&Line> {
    let table: Vec<Mount<'_>> = mounts.iter().map(Line::known).collect();
    let blocking = file_systems::blocking(&table);
    let mut chosen: Vec<&Line> = Vec::new();
    for (at, mount) in mounts.iter().enumerate() {
        let later = mounts.iter().skip(at + 1);
        let hidden = later.clone().any(|other| other.target == mount.target);
        // Below a later mount the path leads elsewhere, perhaps to a server that does not answer.
        let covered = later
            .filter(|other| !is_local(&other.file_system))
            .any(|other| is_below(&mount.target, &other.target));
        if hidden || covered || !is_local(&mount.file_system) {
            continue;
        }
        match chosen.iter_mut().find(|known| known.device == mount.device) {
            Some(known) if mount.target.len() < known.target.len() => *known = mount,
            Some(_) => {}
            None => chosen.push(mount),
        }
    }
    chosen
        .into_iter()
        .filter(|mount| leads_through_local(mount, mounts, &blocking))
        .collect()
}

/// Whether every mount on the way to it is one that cannot block: a path that leads through a server is not walked.
fn leads_through_local(mount: &Line, mounts: &[Line], blocking: &[bool]) -> bool {
    let answers = |kind: &str| {
        let backing = file_systems::backing(kind);
        is_local(kind) || matches!(backing, Some(Backing::Kernel | Backing::Layers))
    };
    let mut above = mounts
        .iter()
        .zip(blocking)
        .filter(|(other, _)| other.target != mount.target && is_below(&mount.target, &other.target));
    above.all(|(other, blocks)| !blocks && answers(&other.file_system))
}

/// How full one is.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Room {
    /// Share of what users may use that is used, percent, rounded up as `df` does.
    pub used_percent: Option<f64>,
    /// What users can still use, KiB.
    pub available_kib: f64,
    /// Its size, KiB.
    pub size_kib: f64,
    /// Share of the inodes that is used, percent; `None` where it makes them as it needs them.
    pub inodes_used_percent: Option<f64>,
    /// Inodes that are free.
    pub inodes_free: f64,
}

/// Percent from which a file system is full, if what is left is less than [`ALMOST_KIB`], KiB: who writes a little more at once than the
/// others gets nothing.
const ALMOST_PERCENT: f64 = 99.0;
const ALMOST_KIB: f64 = 1024.0;

impl Room {
    /// Whether nothing, or next to nothing, is left of its bytes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let almost = self.used_percent.is_some_and(|used| used >= ALMOST_PERCENT);
        self.size_kib > 0.0 && (self.available_kib <= 0.0 || almost && self.available_kib < ALMOST_KIB)
    }

    /// Whether no inode is left.
    #[must_use]
    pub fn is_without_inodes(&self) -> bool {
        self.inodes_used_percent.is_some() && self.inodes_free <= 0.0
    }
}

/// Asks a file system. May block where its disk does not answer.
#[must_use]
pub fn of(mount: &str) -> Option<Room> {
    let found = statvfs(Path::new(mount)).ok()?;
    let kib = |blocks: u64| blocks as f64 * found.fragment_size() as f64 / 1024.0;
    let share = |used: u64, all: u64| (all > 0).then(|| (used as f64 * 100.0 / all as f64).ceil());
    let used = found.blocks().saturating_sub(found.blocks_free());
    let inodes = found.files().saturating_sub(found.files_free());
    Some(Room {
        used_percent: share(used, used.saturating_add(found.blocks_available())),
        available_kib: kib(found.blocks_available()),
        size_kib: kib(found.blocks()),
        inodes_used_percent: share(inodes, found.files()),
        inodes_free: found.files_free() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::{Room, local, of};
    use crate::mountinfo;
    use crate::root::Tree;

    #[test]
    fn servers_and_what_lies_behind_them_are_never_asked() {
        let table = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     2 1 0:30 / /srv rw - nfs4 host:/srv rw\n\
                     3 2 8:2 / /srv/disk rw - ext4 /dev/sdb1 rw\n\
                     4 1 8:1 /x /mnt/bind rw - ext4 /dev/sda1 rw\n\
                     5 1 0:40 / /mnt/fuse rw - fuse.sshfs h:/ rw\n\
                     6 1 0:41 / /run rw - tmpfs tmpfs rw\n\
                     7 1 0:42 / /auto rw - autofs systemd-1 rw\n\
                     8 1 8:3 / /var rw - xfs /dev/sdc1 rw\n\
                     9 8 0:43 / /var rw - fuse over rw\n";
        let tree = Tree::new(&[("proc/self/mountinfo", table)]);
        let mounts = mountinfo::read(&tree.root, &mut Vec::new());
        let asked: Vec<&str> = local(&mounts).iter().map(|one| one.target.as_str()).collect();
        assert_eq!(asked, ["/", "/run"]);
    }

    #[test]
    fn one_is_full_where_next_to_nothing_is_left() {
        let room = |used: f64, available_kib: f64| Room {
            used_percent: Some(used),
            available_kib,
            size_kib: 6588.0,
            inodes_used_percent: Some(3.0),
            inodes_free: 9.0,
        };
        assert!(room(100.0, 0.0).is_full() && room(99.0, 89.0).is_full());
        assert!(!room(99.0, 4e6).is_full() && !room(97.0, 180.0).is_full());
        assert!(!Room::default().is_full(), "one without a size, such as /proc");
        assert!(!room(1.0, 1.0).is_without_inodes());
    }

    #[test]
    fn a_file_system_of_this_machine_tells_its_room() {
        let room = of("/").unwrap();
        assert!(room.size_kib > 0.0 && room.available_kib <= room.size_kib);
        assert!(
            room.used_percent
                .is_some_and(|used| (0.0..=100.0).contains(&used))
        );
        assert_eq!(of("/no/such/place"), None);
    }
}
