//! What was made, in other user lands: bare root file systems in a namespace of their own.
//!
//! In: the binary and the package. Out: a table of what was started where; an error where something failed. The kernel is this machine's: other
//! kernels are the guests' ([`crate::guest`]).

use super::{Release, packages};
use crate::guest::package::Lists;
use crate::process;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// A user land, and how it is made.
#[derive(Debug, Clone, Copy)]
enum Land {
    /// Nothing but the binary.
    Bare,
    /// Busybox alone, as Alpine and small images have it; without GNU's C library.
    Busybox,
    /// Debian's smallest system of this release.
    Debian(&'static str),
}

const LANDS: [Land; 4] = [
    Land::Bare,
    Land::Busybox,
    Land::Debian("bullseye"),
    Land::Debian("bookworm"),
];

impl Land {
    fn name(self) -> String {
        match self {
            Land::Bare => "nothing but the binary".to_owned(),
            Land::Busybox => "busybox".to_owned(),
            Land::Debian(release) => format!("Debian {release}"),
        }
    }

    fn make(self, root: &Path) -> anyhow::Result<()> {
        for folder in ["proc", "sys", "tmp", "usr/bin"] {
            std::fs::create_dir_all(root.join(folder)).with_context(|| format!("make {folder}"))?;
        }
        match self {
            Land::Bare => Ok(()),
            Land::Busybox => {
                std::fs::create_dir_all(root.join("bin")).context("make bin")?;
                // Unpacked: installed, it would take the place of the one that tests look at.
                let unpacked = tempfile::tempdir().context("make a folder for busybox")?;
                let busybox = Lists::of_this_machine().unpack("busybox-static", unpacked.path())?;
                std::fs::copy(busybox.join("bin/busybox"), root.join("bin/busybox"))
                    .context("copy busybox")?;
                for name in ["sh", "sleep", "true"] {
                    std::os::unix::fs::symlink("busybox", root.join("bin").join(name))
                        .context("link to busybox")?;
                }
                Ok(())
            }
            Land::Debian(release) => {
                let mut debootstrap = Command::new("debootstrap");
                debootstrap
                    .args(["--variant=minbase", release])
                    .arg(root)
                    .stdout(std::process::Stdio::null());
                process::run(&mut debootstrap)
            }
        }
    }
}

/// Tries everything; an error where something failed.
pub(super) fn all(release: &Release) -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("other root file systems are made and entered by root");
    }
    let mut wrong = 0;
    for land in LANDS {
        let said = in_land(release, land);
        let word = match &said {
            Ok(()) => "right".to_owned(),
            Err(error) => format!("NOT RIGHT: {error:#}"),
        };
        wrong += usize::from(said.is_err());
        println!("{:<28} {word}", land.name());
    }
    if wrong > 0 {
        bail!("{wrong} of {} user lands are not right", LANDS.len());
    }
    Ok(())
}

fn in_land(release: &Release, land: Land) -> anyhow::Result<()> {
    let root = tempfile::tempdir().context("make a root")?;
    land.make(root.path())?;
    match land {
        Land::Bare | Land::Busybox => {
            std::fs::copy(&release.binary, root.path().join("usr/bin/holdup")).context("copy the binary")?;
            starts(root.path())
        }
        Land::Debian(_) => {
            let now = packages::deb(release, &release.version)?;
            let next_version = format!("{}+next", release.version);
            let next = packages::deb(release, &next_version)?;
            let dpkg = |args: &[&str]| inside(root.path(), "/usr/bin/dpkg", args);
            for (file, name) in [(&now, "now.deb"), (&next, "next.deb")] {
                std::fs::copy(file, root.path().join("tmp").join(name)).context("copy the package")?;
            }
            std::fs::remove_file(&next).context("remove the package that is only tried")?;
            dpkg(&["--install", "/tmp/now.deb"])?;
            starts(root.path())?;
            if release.fleet.is_some() {
                inside(root.path(), "/usr/bin/holdup", &["fleet", "--help"])?;
            }
            dpkg(&["--install", "/tmp/next.deb"])?;
            let version = inside(
                root.path(),
                "/usr/bin/dpkg-query",
                &["--show", "--showformat=${Version}", "holdup"],
            )?;
            if version != next_version {
                bail!("after the upgrade it is {version}");
            }
            starts(root.path())?;
            dpkg(&["--purge", "holdup"])?;
            let left = process::output(Command::new("find").arg(root.path().join("usr")).args([
                "-name",
                "*holdup*",
                "-not",
                "-path",
                "*/doc-base/*",
            ]))?;
            match left.is_empty() {
                true => Ok(()),
                false => bail!("removed, it leaves {left}"),
            }
        }
    }
}

/// holdup says its version there, and what it can see, and observes itself saying its version.
fn starts(root: &Path) -> anyhow::Result<()> {
    let holdup = "/usr/bin/holdup";
    inside(root, holdup, &["--version"])?;
    inside(root, holdup, &["doctor"])?;
    let report = inside(root, holdup, &["run", "--json", "-", "--", holdup, "--version"])?;
    // What is observed prints before the report.
    match report.contains("\"backend\": \"bpf\"") {
        true => Ok(()),
        false => bail!("no report of a trace"),
    }
}

/// What a program prints that runs there, in a mount namespace that ends with it. Not in a PID namespace: there holdup can't trace.
fn inside(root: &Path, program: &str, args: &[&str]) -> anyhow::Result<String> {
    let script = "mount -t proc proc \"$1/proc\" && mount --rbind /sys \"$1/sys\" && exec chroot \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(root)
        .arg(program)
        .args(args)
        .stdin(std::process::Stdio::null());
    process::output(&mut command)
}
