//! File systems: what stands behind each, and whether a look at a file can block for as long as somebody likes.
//!
//! In: the kernel's name of a file system, or the mounts of a namespace. Out: its row of the one table, or which mounts can
//! block. A file system without a row is one that nothing is known of.

/// What answers for the files of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// A disk of this machine.
    Disk,
    /// Memory of this machine, which may be in swap.
    Memory,
    /// The kernel itself, at once.
    Kernel,
    /// A process: FUSE.
    Process,
    /// Another machine.
    Network,
    /// Other file systems, which are its layers.
    Layers,
    /// Whoever mounts what belongs there, when somebody looks.
    Automount,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct FileSystem {
    /// The kernel's name of it.
    pub name: &'static str,
    /// What answers for its files.
    pub backing: Backing,
    /// The hypervisor may answer instead: virtual machines boot from it, so it is taken as a disk.
    hypervisor: bool,
    /// It is made to be written to: read-only, it is so by choice or after an error.
    pub written: bool,
    /// It is made full, and never grows.
    pub image: bool,
}

impl FileSystem {
    const fn hypervisor(self) -> FileSystem {
        FileSystem {
            hypervisor: true,
            ..self
        }
    }

    const fn image(self) -> FileSystem {
        FileSystem { image: true, ..self }
    }

    const fn written(self) -> FileSystem {
        FileSystem {
            written: true,
            ..self
        }
    }
}

const fn row(name: &'static str, backing: Backing) -> FileSystem {
    FileSystem {
        name,
        backing,
        hypervisor: false,
        written: false,
        image: false,
    }
}

/// The table.
pub static FILE_SYSTEMS: &[FileSystem] = &[
    row("bcachefs", Backing::Disk),
    row("btrfs", Backing::Disk).written(),
    row("cramfs", Backing::Disk).image(),
    row("erofs", Backing::Disk).image(),
    row("exfat", Backing::Disk),
    row("ext2", Backing::Disk).written(),
    row("ext3", Backing::Disk).written(),
    row("ext4", Backing::Disk).written(),
    row("f2fs", Backing::Disk).written(),
    row("hfsplus", Backing::Disk),
    row("iso9660", Backing::Disk).image(),
    row("jfs", Backing::Disk),
    row("msdos", Backing::Disk),
    row("nilfs2", Backing::Disk),
    row("ntfs3", Backing::Disk),
    row("reiserfs", Backing::Disk),
    row("romfs", Backing::Disk).image(),
    row("squashfs", Backing::Disk).image(),
    row("udf", Backing::Disk).image(),
    row("vfat", Backing::Disk),
    row("xfs", Backing::Disk).written(),
    row("tmpfs", Backing::Memory),
    row("bpf", Backing::Kernel),
    row("cgroup", Backing::Kernel),
    row("cgroup2", Backing::Kernel),
    row("configfs", Backing::Kernel),
    row("debugfs", Backing::Kernel),
    row("devpts", Backing::Kernel),
    row("devtmpfs", Backing::Kernel),
    row("hugetlbfs", Backing::Kernel),
    row("mqueue", Backing::Kernel),
    row("nsfs", Backing::Kernel),
    row("proc", Backing::Kernel),
    row("pstore", Backing::Kernel),
    row("ramfs", Backing::Kernel),
    row("rootfs", Backing::Kernel),
    row("securityfs", Backing::Kernel),
    row("sysfs", Backing::Kernel),
    row("tracefs", Backing::Kernel),
    row("fuse", Backing::Process),
    row("fuseblk", Backing::Process),
    row("virtiofs", Backing::Process).hypervisor(),
    row("9p", Backing::Network).hypervisor(),
    row("afs", Backing::Network),
    row("ceph", Backing::Network),
    row("cifs", Backing::Network),
    row("coda", Backing::Network),
    row("gfs2", Backing::Network),
    row("lustre", Backing::Network),
    row("ncpfs", Backing::Network),
    row("nfs", Backing::Network),
    row("nfs4", Backing::Network),
    row("ocfs2", Backing::Network),
    row("smb3", Backing::Network),
    row("smbfs", Backing::Network),
    row("ecryptfs", Backing::Layers),
    row("overlay", Backing::Layers),
    row("shiftfs", Backing::Layers),
    row("autofs", Backing::Automount),
];

/// How many file systems the kernel stacks on each other (`FILESYSTEM_MAX_STACK_DEPTH`).
const MAX_STACKED: usize = 2;

/// The file system with this name. FUSE adds a name of its own behind a dot (`fuse.sshfs`).
#[must_use]
pub fn named(name: &str) -> Option<&'static FileSystem> {
    let plain = name.split('.').next().unwrap_or(name);
    FILE_SYSTEMS.iter().find(|known| known.name == plain)
}

/// What answers for the files of this file system, if it is known.
#[must_use]
pub fn backing(name: &str) -> Option<Backing> {
    Some(named(name)?.backing)
}

/// Whether only this machine's own disks and memory stand behind it.
#[must_use]
pub fn is_local(name: &str) -> bool {
    matches!(backing(name), Some(Backing::Disk | Backing::Memory))
}

/// Whether a process of this machine answers for its files.
#[must_use]
pub fn is_served_here(name: &str) -> bool {
    named(name).is_some_and(|known| known.backing == Backing::Process && !known.hypervisor)
}

/// A line of a mount table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Where it is mounted.
    pub target: &'a str,
    /// The name of its file system.
    pub file_system: &'a str,
    /// What is mounted.
    pub source: &'a str,
    /// Options of the file system itself.
    pub options: &'a str,
}

/// For each mount of a table, in the kernel's order, whether a look at a file on it can block for as long as a process or
/// another machine likes. Stacked file systems are as remote as their layers. A layer that the table does not show, because
/// it belongs to another namespace, is taken as local: the files of every container are on such layers.
#[must_use]
pub fn blocking(mounts: &[Mount<'_>]) -> Vec<bool> {
    let mut blocking: Vec<bool> = (0..mounts.len()).map(|at| blocks_itself(mounts, at)).collect();
    for _ in 0..MAX_STACKED {
        let mut more = Vec::new();
        for (at, mount) in mounts.iter().enumerate() {
            if !blocking[at] && layers(mount).any(|layer| is_on_blocking(mounts, &blocking, &layer)) {
                more.push(at);
            }
        }
        if more.is_empty() {
            break;
        }
        for at in more {
            blocking[at] = true;
        }
    }
    blocking
}

/// Whether the path, or the directory, is below the other one, or the same.
#[must_use]
pub fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn blocks_itself(mounts: &[Mount<'_>], at: usize) -> bool {
    let mount = &mounts[at];
    let Some(known) = named(mount.file_system) else {
        return false;
    };
    match known.backing {
        Backing::Process | Backing::Network => !(known.hypervisor && is_by_hypervisor(mount)),
        // What is mounted on it hides it.
        Backing::Automount => !mounts[at + 1..].iter().any(|later| later.target == mount.target),
        Backing::Disk | Backing::Memory | Backing::Kernel | Backing::Layers => false,
    }
}

/// A 9p mount says how it is reached, unless by TCP, which is the default; virtiofs is always the hypervisor's.
fn is_by_hypervisor(mount: &Mount<'_>) -> bool {
    const TRANSPORTS: [&str; 2] = ["trans=virtio", "trans=xen"];
    named(mount.file_system).is_some_and(|known| known.backing == Backing::Process)
        || mount
            .options
            .split(',')
            .any(|option| TRANSPORTS.contains(&option))
}

/// The directories that a stacked file system is made of, as whoever mounted it named them.
fn layers(mount: &Mount<'_>) -> impl Iterator<Item = String> {
    const OPTIONS: [&str; 4] = ["lowerdir=", "lowerdir+=", "datadir+=", "upperdir="];
    let stacked = backing(mount.file_system) == Some(Backing::Layers);
    let source = Some(mount.source)
        .filter(|source| stacked && source.starts_with('/'))
        .map(str::to_owned);
    let options = mount.options.split(',').filter(move |_| stacked);
    let directories = options.filter_map(|option| OPTIONS.iter().find_map(|name| option.strip_prefix(name)));
    source.into_iter().chain(directories.flat_map(parts))
}

/// The directories of a list with colons. A backslash takes away the meaning of the next character.
fn parts(list: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = list.chars();
    while let Some(character) = characters.next() {
        let part = match character {
            ':' => {
                parts.push(String::new());
                continue;
            }
            '\\' => characters.next(),
            other => Some(other),
        };
        if let Some(last) = parts.last_mut() {
            last.extend(part);
        }
    }
    parts.retain(|part| part.starts_with('/'));
    parts
}

/// Whether a path is on a mount that can block. Of the mounts that it leads over, the last one counts.
fn is_on_blocking(mounts: &[Mount<'_>], blocking: &[bool], path: &str) -> bool {
    let over = |at: &usize| is_below(path, mounts[*at].target);
    // Few mounts can block: most paths are done with here.
    let near = (0..mounts.len()).any(|at| blocking[at] && over(&at));
    let last = || {
        (0..mounts.len())
            .filter(over)
            .max_by_key(|at| (mounts[*at].target.len(), *at))
    };
    near && last().is_some_and(|at| blocking[at])
}

#[cfg(test)]
mod tests {
    use super::{Backing, FILE_SYSTEMS, Mount, backing, blocking, is_below, is_local, is_served_here, parts};
    use std::collections::BTreeSet;

    fn mount<'a>(target: &'a str, file_system: &'a str, options: &'a str) -> Mount<'a> {
        Mount {
            target,
            file_system,
            source: "none",
            options,
        }
    }

    fn one(file_system: &str, options: &str) -> bool {
        blocking(&[mount("/", file_system, options)])[0]
    }

    #[test]
    fn every_file_system_has_one_row() {
        let names: BTreeSet<&str> = FILE_SYSTEMS.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), FILE_SYSTEMS.len());
    }

    #[test]
    fn fuse_file_systems_have_names_of_their_own() {
        for name in ["fuse", "fuse.sshfs", "fuseblk", "fuseblk.ntfs"] {
            assert_eq!(backing(name), Some(Backing::Process), "{name}");
            assert!(is_served_here(name) && one(name, "rw"), "{name}");
        }
        // Where FUSE is controlled, no process answers; virtiofs is answered by the hypervisor.
        assert!(!is_served_here("fusectl") && !one("fusectl", "rw"));
        assert!(!is_served_here("virtiofs") && !one("virtiofs", "rw"));
    }

    #[test]
    fn a_server_can_block_and_a_disk_cannot() {
        for name in [
            "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "gfs2", "ocfs2", "coda",
        ] {
            assert!(one(name, "rw") && !is_local(name), "{name}");
        }
        for name in ["ext4", "xfs", "tmpfs", "proc", "nobody_knows"] {
            assert!(!one(name, "rw"), "{name}");
        }
        assert!(is_local("tmpfs") && !is_local("proc") && !is_local("nobody_knows"));
    }

    #[test]
    fn the_hypervisor_or_another_machine_answers_for_9p() {
        assert!(!one("9p", "rw,trans=virtio"));
        assert!(one("9p", "rw"));
        assert!(one("9p", "rw,trans=fd,rfdno=4"));
    }

    #[test]
    fn an_automount_blocks_until_something_is_mounted_on_it() {
        assert_eq!(
            blocking(&[mount("/data", "autofs", ""), mount("/data", "ext4", "")]),
            [false, false]
        );
        assert_eq!(
            blocking(&[mount("/data", "autofs", ""), mount("/data/one", "ext4", "")]),
            [true, false]
        );
    }

    #[test]
    fn an_overlay_is_as_remote_as_its_layers() {
        let of = |options| {
            let mounts = [
                mount("/", "ext4", ""),
                mount("/srv", "nfs4", ""),
                mount("/srv/disk", "xfs", ""),
                mount("/mnt", "overlay", options),
            ];
            blocking(&mounts)[3]
        };
        assert!(of("rw,lowerdir=/a:/srv/b,upperdir=/c,workdir=/w"));
        assert!(of("rw,lowerdir=/a,upperdir=/srv/c,workdir=/srv/w"));
        assert!(of("ro,lowerdir+=/a,lowerdir+=/srv"));
        assert!(!of("rw,lowerdir=/a:/b,upperdir=/c,workdir=/w"));
        assert!(!of("rw,lowerdir=/srv/disk/a:/srvb,upperdir=/c"));
        // Names from another namespace.
        assert!(!of("rw,lowerdir=l/A:l/B"));
    }

    #[test]
    fn an_overlay_on_an_overlay_is_as_remote_as_the_lowest() {
        let mounts = [
            mount("/", "ext4", ""),
            mount("/srv", "fuse.sshfs", ""),
            mount("/two", "overlay", "lowerdir=/one/x:/a"),
            mount("/one", "overlay", "lowerdir=/srv/x:/b"),
            // Its layers lead to itself, as in a container.
            mount("/self", "overlay", "lowerdir=/self/x"),
            Mount {
                source: "/srv/secret",
                ..mount("/home", "ecryptfs", "rw")
            },
        ];
        assert_eq!(blocking(&mounts), [false, true, true, true, false, true]);
    }

    #[test]
    fn a_colon_can_be_part_of_a_layer() {
        assert_eq!(parts(r"/a\:b:/c"), ["/a:b", "/c"]);
        assert_eq!(parts("/a::/b:"), ["/a", "/b"]);
        assert!(is_below("/a/b", "/a") && is_below("/a", "/a/") && !is_below("/ab", "/a"));
    }
}
