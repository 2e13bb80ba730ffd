//! The kernels that guests boot: fetched, with the modules that scenarios need, as an archive of their own.
//!
//! In: a line of [`KERNELS`]. Out: the kernel's file, an archive of its modules in the order of loading, and which
//! modules it does not have.

use super::cpio::Archive;
use super::package::Lists;
use crate::process;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel that a guest can boot. A further one is one more entry.
pub(super) struct Kernel {
    /// What `--kernel` calls it.
    pub(super) name: &'static str,
    /// What its packages' names begin with; the newest that apt knows is taken.
    package_prefix: &'static str,
    /// The release whose security updates have it; `None` where this machine's own lists do.
    release: Option<&'static str>,
}

/// What the packages' names end with: Debian's full kernels. Its cloud kernels have neither dm-delay nor netem.
const PACKAGE_SUFFIX: &str = "-amd64";

/// Debian's kernels: of Debian 11, of Debian 12, and the newer one for Debian 12.
pub(super) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "5.10",
        package_prefix: "linux-image-5.10.",
        release: Some("bullseye"),
    },
    Kernel {
        name: "6.1",
        package_prefix: "linux-image-6.1.",
        release: None,
    },
    Kernel {
        name: "6.12",
        package_prefix: "linux-image-6.12.",
        release: None,
    },
];

/// Modules that the guest itself needs (its disks), then those of the stages and scenarios.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "crc32c_generic",
    "ext4",
    "loop",
    "fuse",
    "dm_delay",
    "veth",
    "sch_netem",
];

/// The first of them where the guest has a random device: the driver that an initramfs or udev loads before services start.
const EARLY: &[&str] = &["virtio_pci", "virtio_rng"];

/// A kernel, ready to be booted.
#[derive(Debug)]
pub(super) struct Ready {
    /// The package that it is from.
    pub(super) package: String,
    /// The kernel's file.
    pub(super) image: PathBuf,
    /// Its modules under `/modules`, and `/modules/order`, the file that names them in the order of loading; in
    /// `/modules/early` those that its random device needs.
    pub(super) modules: Vec<u8>,
}

impl Kernel {
    /// Fetches it, unless it is in `folder` already.
    pub(super) fn ready(&self, folder: &Path) -> anyhow::Result<Ready> {
        let lists = match self.release {
            Some(release) => Lists::of_security(release, folder)?,
            None => Lists::of_this_machine(),
        };
        let package = lists.newest(self.package_prefix, PACKAGE_SUFFIX)?;
        let files = lists.unpack(&package, folder)?;
        let version = package
            .strip_prefix("linux-image-")
            .expect("the prefix of every kernel's package");
        Ok(Ready {
            image: files.join(format!("boot/vmlinuz-{version}")),
            modules: modules(&files, version)?,
            package,
        })
    }
}

fn modules(files: &Path, version: &str) -> anyhow::Result<Vec<u8>> {
    let folder = files.join("lib/modules").join(version);
    let list = folder.join("modules.dep");
    if !list.exists() {
        process::run(Command::new("depmod").arg("--basedir").arg(files).arg(version))?;
    }
    let read = |name: &str| {
        let file = folder.join(name);
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))
    };
    let needs = dependencies(&read("modules.dep")?);
    let built_in = read("modules.builtin")?;
    let mut archive = Archive::default();
    let mut packed = BTreeSet::new();
    for (list, wanted) in [("order", MODULES), ("early", EARLY)] {
        let mut names: Vec<String> = Vec::new();
        for module in wanted {
            let paths = match needs.get(*module) {
                Some(paths) => paths.as_slice(),
                None if built_in.lines().any(|path| name_of(path) == *module) => &[],
                None => bail!("the kernel {version} has no module {module}"),
            };
            for path in paths {
                let name = format!("{}.ko", name_of(path));
                if packed.insert(name.clone()) {
                    archive.file(&format!("/modules/{name}"), 0o644, &plain(&folder.join(path))?);
                }
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let text = names.iter().fold(String::new(), |text, name| text + name + "\n");
        archive.file(&format!("/modules/{list}"), 0o644, text.as_bytes());
    }
    Ok(archive.finish())
}

/// For each module the files to load, what it needs first.
fn dependencies(list: &str) -> BTreeMap<String, Vec<String>> {
    list.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| {
            // What is needed by something else in the line stands behind it.
            let mut paths: Vec<String> = needs.split_whitespace().rev().map(str::to_owned).collect();
            paths.push(path.to_owned());
            (name_of(path), paths)
        })
        .collect()
}

/// A module's name: its file's without endings; in names `-` and `_` are the same.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

/// A module's file, unpacked where it is packed.
fn plain(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "xz") {
        let output = Command::new("xz")
            .args(["--decompress", "--stdout"])
            .arg(path)
            .output();
        let output = output.context("start xz; the package xz-utils has it")?;
        if !output.status.success() {
            bail!("xz can't unpack {}", path.display());
        }
        return Ok(output.stdout);
    }
    std::fs::read(path).with_context(|| format!("read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::dependencies;

    #[test]
    fn what_is_needed_comes_first() {
        let list = "kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko kernel/fs/mbcache.ko\n\
                    kernel/drivers/md/dm-delay.ko.xz: kernel/drivers/md/dm-mod.ko.xz\nkernel/lib/crc16.ko:\n";
        let found = dependencies(list);
        assert_eq!(
            found["ext4"],
            [
                "kernel/fs/mbcache.ko",
                "kernel/fs/jbd2/jbd2.ko",
                "kernel/lib/crc16.ko",
                "kernel/fs/ext4/ext4.ko"
            ]
        );
        assert_eq!(found["dm_delay"].len(), 2);
        assert_eq!(found["crc16"], ["kernel/lib/crc16.ko"]);
    }
}
