//! `cargo xtask guest`: a machine without randomness, and holdup's verdict in it.
//!
//! QEMU boots one of Debian's kernels under software emulation, with a CPU that has no RDRAND and no source of
//! randomness attached, into a memory file system with sshd and holdup. `holdup run -- sshd -t` is the first
//! to need the kernel's generator. What it printed, its JSON and the kernel's log leave by serial ports of
//! their own and are judged here. No device, no network, no image: nothing outlives the run but files under
//! `target/guest`.
//!
//! Packages that carry services or that conflict with others (sshd, busybox, kernels) are unpacked there and
//! never installed.

mod boot;
mod cpio;
mod image;
pub(crate) mod package;
mod verdict;

use crate::setup::{self, Packages};
use crate::tally::Tally;
use crate::workspace;
use anyhow::{Context, bail};
use std::path::PathBuf;

/// What the guest needs of this machine: the emulator, a host key, and the libraries of sshd.
pub(crate) const PACKAGES: Packages = Packages {
    purpose: "boot the guest",
    names: &[
        "libgssapi-krb5-2",
        "libkrb5-3",
        "libpam0g",
        "libwrap0",
        "openssh-client",
        "qemu-system-x86",
    ],
};

/// A kernel that the guest can boot. A further one is one more entry.
struct Kernel {
    /// What `--kernel` calls it.
    name: &'static str,
    /// What its packages' names begin with; the newest that apt knows is taken.
    package_prefix: &'static str,
    /// What they end with.
    package_suffix: &'static str,
}

/// Debian's cloud kernels: everything that a virtual machine needs is built in.
const KERNELS: &[Kernel] = &[
    Kernel {
        name: "6.1",
        package_prefix: "linux-image-6.1.",
        package_suffix: "-cloud-amd64",
    },
    Kernel {
        name: "6.12",
        package_prefix: "linux-image-6.12.",
        package_suffix: "-cloud-amd64",
    },
];

/// Which guest.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which of Debian's kernels
    #[arg(long, default_value = KERNELS[0].name, value_parser = KERNELS.iter().map(|k| k.name).collect::<Vec<_>>())]
    kernel: String,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// Boots the guest, shows what it said and judges it.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let kernel = KERNELS
        .iter()
        .find(|kernel| kernel.name == args.kernel)
        .expect("clap takes only these names");
    setup::install(&[PACKAGES])?;
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let folder = workspace::scratch("guest")?;
    let package = package::newest(kernel.package_prefix, kernel.package_suffix)?;
    let vmlinuz = package::unpack(&package, &folder)?.join(format!(
        "boot/vmlinuz-{}",
        package
            .strip_prefix("linux-image-")
            .expect("the prefix of every kernel's package")
    ));

    let initramfs = folder.join("initramfs.cpio");
    std::fs::write(&initramfs, image::build(&holdup, &folder)?)
        .with_context(|| format!("write {}", initramfs.display()))?;
    eprintln!("xtask: booting {package}");
    let said = boot::boot(&vmlinuz, &initramfs, &folder)?;

    println!("{}", said.console.trim_end());
    for line in said.kernel_log.lines().filter(|line| line.contains("random: ")) {
        println!("{line}");
    }
    let checks = verdict::judge(&said);
    println!();
    for check in &checks {
        match &check.failure {
            None => println!("ok      {}", check.name),
            Some(why) => println!("FAILED  {}: {why}", check.name),
        }
    }
    let tally: Tally = checks
        .iter()
        .map(|check| Tally::one(check.failure.is_none()))
        .sum();
    println!("{tally}");
    if tally.failed > 0 {
        bail!(
            "the guest's report is not what it must be; all it said is in {}",
            folder.display()
        );
    }
    Ok(())
}
