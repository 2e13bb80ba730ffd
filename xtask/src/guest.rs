//! `cargo xtask guest`: other kernels, and holdup's verdicts on them.
//!
//! QEMU boots Debian's kernels under software emulation, with a CPU that has no RDRAND and no source of randomness
//! attached, into a memory file system with the scenarios, sshd and holdup. `holdup run -- sshd -t` is the first to
//! need the kernel's generator. Then the scenarios run as they do on the host, and some that need what a guest has:
//! a disk with a limit of the emulator's, modules for slow disks and networks. What they leave is judged here as on
//! the host; the table says kernel by kernel what was right. Beside them boot guests that have a source of randomness,
//! for the generator alone. Nothing outlives the run but files under `target/guest`.
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
mod seeding;
mod source;
mod systemd;
mod table;

use crate::scenarios::{self, Scenario};
use crate::setup::{self, Packages};
use crate::workspace;
use anyhow::{Context, bail};
use boot::{Guest, Left};
use clap::ValueEnum;
use image::{Content, Ring};
use kernel::{KERNELS, Kernel, Ready};
use source::Source;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
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

/// The kernel on which guests with a source of randomness are booted without being asked for: Debian 12's own.
const WITH_SOURCES: &str = "6.1";

/// A guest to be booted.
struct Boot<'a> {
    kernel: &'a Kernel,
    ready: &'a Ready,
    source: Source,
}

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
    /// Guests with a source of randomness on every kernel, and no scenarios; without, on one kernel beside the others
    #[arg(long, conflicts_with_all = ["names", "all"])]
    sources: bool,
    /// A guest that systemd starts, on one kernel, and nothing else
    #[arg(long, conflicts_with_all = ["names", "all", "sources", "kernel"])]
    systemd: bool,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// Boots the guests, shows what they said and judges it.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.systemd {
        return with_systemd(args);
    }
    let folder = workspace::root().join("scenarios");
    let chosen = choose(&folder, args)?;
    install_for(&chosen)?;
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
    let (holdup, ring) = (holdup.as_path(), |runs| Ring {
        scenarios: &folder,
        programs: &programs,
        packages: &packages,
        runs,
    });
    let build = |ring| image::build(&Content { holdup, ring }, &scratch);
    // Without scenarios it is unpacked in a tenth of the time.
    let (userspace, small) = (build((!args.sources).then(|| ring(&runs)))?, build(None)?);

    let ready = kernels(args, &scratch)?;
    let boots: Vec<Boot<'_>> = ready
        .iter()
        .flat_map(|(kernel, ready)| {
            let all = Source::value_variants().iter().copied();
            let of_this = all.filter(|source| {
                let asked = args.sources || (kernel.name == WITH_SOURCES && args.names.is_empty());
                asked || *source == Source::Nothing
            });
            of_this.map(move |source| Boot {
                kernel,
                ready,
                source,
            })
        })
        .collect();
    let begin = |boot: &Boot<'_>| {
        eprintln!(
            "xtask: booting {}, seeded by {}",
            boot.ready.package,
            boot.source.word()
        );
        let folder = scratch.join(boot.folder());
        let (userspace, runs) = match boot.source {
            Source::Nothing => (&userspace, runs.len()),
            Source::VirtioRng | Source::Rdrand => (&small, 0),
        };
        let guest = Guest {
            kernel: boot.ready,
            source: boot.source,
            userspace,
            runs,
            words: "",
        };
        boot::boot(guest, &folder)
    };
    let left = in_queue(&boots, &begin);
    let mut columns: Vec<Column> = Vec::new();
    for (boot, left) in boots.iter().zip(left) {
        let cells = left
            .and_then(|left| judge(boot, &left, &chosen))
            .with_context(|| {
                format!(
                    "the guest with Linux {}, seeded by {}",
                    boot.kernel.name,
                    boot.source.word()
                )
            })?;
        // Guests of one kernel are side by side.
        match columns
            .last_mut()
            .filter(|column| column.kernel == boot.kernel.name)
        {
            Some(column) => column.cells.extend(cells),
            None => columns.push(Column {
                kernel: boot.kernel.name.to_owned(),
                cells,
            }),
        }
    }
    tell(&columns, &scratch)
}

/// Installs what the guests and the scenarios that run in them without being named need.
pub(crate) fn install() -> anyhow::Result<()> {
    install_for(&of_themselves(&workspace::root().join("scenarios"))?)
}

fn install_for(chosen: &[Scenario]) -> anyhow::Result<()> {
    setup::install(&[
        PACKAGES,
        Packages {
            purpose: "make stalls",
            names: IN_THE_GUEST,
        },
    ])?;
    scenarios::install_packages(chosen)
}

/// Runs all boots; what each left is in their order. Each guest is one thread of the emulator's, and its clock counts instructions: side
/// by side they are as right. There are no more at a time than kernels, and those without scenarios, which are short, come last.
fn in_queue<'a, T: Send>(boots: &'a [Boot<'a>], begin: &(impl Fn(&Boot<'a>) -> T + Sync)) -> Vec<T> {
    let mut order: Vec<usize> = (0..boots.len()).collect();
    order.sort_by_key(|at| boots[*at].source != Source::Nothing);
    let kernels = boots.iter().filter(|boot| boot.source == Source::Nothing).count();
    let queue = Mutex::new(order.into_iter());
    let mut left: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..kernels)
            .map(|_| {
                scope.spawn(|| {
                    let mut left = Vec::new();
                    // A statement of its own, so that the queue is free again while the guest runs.
                    while let Some(at) = {
                        let mut queue = queue.lock().expect("no holder panics");
                        queue.next()
                    } {
                        left.push((at, begin(&boots[at])));
                    }
                    left
                })
            })
            .collect();
        let left = workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a boot that panics has a defect"));
        left.collect()
    });
    left.sort_by_key(|(at, _)| *at);
    left.into_iter().map(|(_, left)| left).collect()
}

/// The kernels that were asked for, fetched if need be.
fn kernels(args: &Args, scratch: &Path) -> anyhow::Result<Vec<(&'static Kernel, Ready)>> {
    let wanted = KERNELS
        .iter()
        .filter(|kernel| args.kernel.is_empty() || args.kernel.iter().any(|name| name == kernel.name));
    wanted
        .map(|kernel| Ok((kernel, kernel.ready(scratch)?)))
        .collect()
}

/// Prints the table; an error where something is wrong.
fn tell(columns: &[Column], scratch: &Path) -> anyhow::Result<()> {
    print!("{}", table::render(columns));
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

/// Boots the guest that systemd starts.
fn with_systemd(args: &Args) -> anyhow::Result<()> {
    setup::install(&[PACKAGES, systemd::PACKAGES])?;
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let scratch = workspace::scratch("guest")?;
    let userspace = image::build_with_systemd(&holdup, &scratch)?;
    let kernel = KERNELS
        .iter()
        .find(|kernel| kernel.name == WITH_SOURCES)
        .expect("it is one of them");
    let ready = kernel.ready(&scratch)?;
    eprintln!("xtask: booting {} with systemd", ready.package);
    let guest = Guest {
        kernel: &ready,
        source: Source::Nothing,
        userspace: &userspace,
        // It takes as long as a few scenarios do.
        runs: 4,
        words: systemd::WORDS,
    };
    let left = boot::boot(guest, &scratch.join(systemd::NAME))?;
    println!("{}\n{}", ready.package, left.console.trim_end());
    let column = Column {
        kernel: kernel.name.to_owned(),
        cells: vec![(systemd::NAME.to_owned(), systemd::judge(&left.out)?)],
    };
    tell(&[column], &scratch)
}

impl Boot<'_> {
    /// The folder for its files.
    fn folder(&self) -> String {
        match self.source {
            Source::Nothing => self.kernel.name.to_owned(),
            source => format!("{}-{}", self.kernel.name, source.word()),
        }
    }
}

/// What is to be said of each thing that ran in a guest.
fn judge(boot: &Boot<'_>, left: &Left, chosen: &[Scenario]) -> anyhow::Result<Vec<(String, Cell)>> {
    println!("{}\n{}", boot.ready.package, left.console.trim_end());
    let seeded = seeding::judge(&left.out, boot.source, boot.kernel.name)?;
    let mut cells = vec![(seeding::name(boot.source), seeded)];
    if boot.source == Source::Nothing {
        cells.push((randomness::NAME.to_owned(), randomness::judge(&left.out)?));
        for (number, scenario) in chosen.iter().enumerate() {
            cells.push((scenario.name.clone(), ring::judge(&left.out, number, scenario)));
        }
    }
    Ok(cells)
}

/// Those that run without being named: the host's that run everywhere, and the guests' own.
fn of_themselves(folder: &Path) -> anyhow::Result<Vec<Scenario>> {
    let mut all = scenarios::load(folder, &[])?;
    all.retain(|scenario| scenario.about.everywhere);
    all.extend(scenarios::load(&folder.join(OWN), &[])?);
    Ok(all)
}

/// The scenarios to run: the host's, then the guests' own.
fn choose(folder: &Path, args: &Args) -> anyhow::Result<Vec<Scenario>> {
    if args.sources {
        return Ok(Vec::new());
    }
    if args.names.is_empty() && !args.all {
        return of_themselves(folder);
    }
    let mut all = scenarios::load(folder, &[])?;
    all.extend(scenarios::load(&folder.join(OWN), &[])?);
    if args.all {
        return Ok(all);
    }
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
