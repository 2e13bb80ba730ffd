//! `cargo xtask guest`: other kernels, and holdup's verdicts on them.
//!
//! QEMU boots Debian's kernels under software emulation, with a CPU that has no RDRAND and no source of randomness
//! attached, into a memory file system with the scenarios, sshd and holdup. `holdup run -- sshd -t` is the first to
//! need the kernel's generator. Then the scenarios run as they do on the host, and some that need what a guest has:
//! a disk with a limit of the emulator's, modules for slow disks and networks. What they leave is judged here as on
//! the host; the table says kernel by kernel what was right. Nothing outlives the run but files under
//! `target/guest`.
//!
//! Packages that carry services or that conflict with others (sshd, busybox, kernels) are unpacked there and
//! never installed.

mod boot;
mod cpio;
mod image;
mod kernel;
pub(crate) mod package;
mod packages;
mod randomness;
mod ring;
mod table;

use crate::scenarios::{self, Scenario};
use crate::setup::{self, Packages};
use crate::workspace;
use anyhow::{Context, bail};
use boot::Left;
use image::Content;
use kernel::{KERNELS, Kernel, Ready};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use table::{Cell, Column};

/// What the guests need of this machine: the emulator, what unpacks modules, a host key and the libraries of sshd.
pub(crate) const PACKAGES: Packages = Packages {
    purpose: "boot the guests",
    names: &[
        "kmod",
        "libgssapi-krb5-2",
        "libkrb5-3",
        "libpam0g",
        "libwrap0",
        "openssh-client",
        "qemu-system-x86",
        "tar",
        "xz-utils",
    ],
};

/// What the guests' own scripts and the stage run, beside what the scenarios name.
const IN_THE_GUEST: &[&str] = &[
    "bash",
    "coreutils",
    "dash",
    "dmsetup",
    "e2fsprogs",
    "findutils",
    "grep",
    "iproute2",
    "libc-bin",
    "mount",
    "procps",
    "sed",
    "tar",
    "util-linux",
];

/// The folder of the scenarios that need what only a guest has.
const OWN: &str = "guest";

/// Which guests, and what runs in them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Scenarios to run, of the host's and of the guests' own; without any those that say that they run everywhere,
    /// and the guests' own
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// All scenarios
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Which of Debian's kernels; all without any
    #[arg(long, value_name = "NAME", value_parser = KERNELS.iter().map(|k| k.name).collect::<Vec<_>>())]
    kernel: Vec<String>,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// Boots the guests, shows what they said and judges it.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = workspace::root().join("scenarios");
    let chosen = choose(&folder, args)?;
    setup::install(&[
        PACKAGES,
        Packages {
            purpose: "make stalls",
            names: IN_THE_GUEST,
        },
    ])?;
    scenarios::install_packages(&chosen)?;
    let programs = workspace::scratch("scenarios")?;
    scenarios::programs::compile(&folder.join("stage"), &chosen, &programs)?;
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let scratch = workspace::scratch("guest")?;
    let packages: BTreeSet<String> = IN_THE_GUEST
        .iter()
        .map(|name| (*name).to_owned())
        .chain(scenarios::packages(&chosen))
        .collect();
    let runs = ring::runs(&folder, &chosen);
    let userspace = image::build(
        &Content {
            holdup: &holdup,
            scenarios: &folder,
            programs: &programs,
            packages: &packages,
            runs: &runs,
        },
        &scratch,
    )?;

    let wanted = KERNELS
        .iter()
        .filter(|kernel| args.kernel.is_empty() || args.kernel.iter().any(|name| name == kernel.name));
    let ready: Vec<(&Kernel, Ready)> = wanted
        .map(|kernel| Ok((kernel, kernel.ready(&scratch)?)))
        .collect::<anyhow::Result<_>>()?;
    // Each guest is one thread of the emulator's, and its clock counts instructions: side by side they are as right.
    let left = std::thread::scope(|scope| {
        let boots: Vec<_> = ready
            .iter()
            .map(|(kernel, ready)| {
                eprintln!("xtask: booting {}", ready.package);
                let folder = scratch.join(kernel.name);
                let (userspace, runs) = (&userspace, runs.len());
                scope.spawn(move || boot::boot(ready, userspace, runs, &folder))
            })
            .collect();
        boots
            .into_iter()
            .map(|boot| boot.join().expect("a boot that panics has a defect"))
            .collect::<Vec<_>>()
    });
    let mut columns = Vec::new();
    for ((kernel, ready), left) in ready.iter().zip(left) {
        let cells = left
            .and_then(|left| judge(ready, &left, &chosen))
            .with_context(|| format!("the guest with Linux {}", kernel.name))?;
        columns.push(Column {
            kernel: kernel.name.to_owned(),
            cells,
        });
    }
    print!("{}", table::render(&columns));
    if columns
        .iter()
        .flat_map(|column| &column.cells)
        .any(|(_, cell)| matches!(cell, Cell::Wrong(_)))
    {
        bail!(
            "not all is right; what the guests left is in {}",
            scratch.display()
        );
    }
    Ok(())
}

/// What is to be said of each thing that ran in a guest.
fn judge(ready: &Ready, left: &Left, chosen: &[Scenario]) -> anyhow::Result<Vec<(String, Cell)>> {
    println!("{}\n{}", ready.package, left.console.trim_end());
    let mut cells = vec![(randomness::NAME.to_owned(), randomness::judge(&left.out)?)];
    for (number, scenario) in chosen.iter().enumerate() {
        cells.push((scenario.name.clone(), ring::judge(&left.out, number, scenario)));
    }
    Ok(cells)
}

/// The scenarios to run: the host's, then the guests' own.
fn choose(folder: &Path, args: &Args) -> anyhow::Result<Vec<Scenario>> {
    let mut all = scenarios::load(folder, &[])?;
    let own = scenarios::load(&folder.join(OWN), &[])?;
    if args.names.is_empty() {
        all.retain(|scenario| args.all || scenario.about.everywhere);
        all.extend(own);
        return Ok(all);
    }
    all.extend(own);
    if let Some(unknown) = args
        .names
        .iter()
        .find(|name| all.iter().all(|scenario| scenario.name != **name))
    {
        bail!("there is no scenario {unknown}");
    }
    all.retain(|scenario| args.names.contains(&scenario.name));
    Ok(all)
}
