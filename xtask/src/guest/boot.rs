//! Runs the emulator until the guest powers off, and collects what it left on its disk.

use super::kernel::Ready;
use super::source::Source;
use crate::process;
use anyhow::{Context, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a guest left.
#[derive(Debug)]
pub(super) struct Left {
    /// All that was said on its console.
    pub(super) console: String,
    /// The folder with its files.
    pub(super) out: PathBuf,
}

/// How long a guest may take to boot and to run `sshd -t`, before it is hung: 20 s on an idle machine, and thirty
/// times that where many others want its processors.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much longer for each run of a scenario's side: some 10 s on an idle machine.
const PATIENCE_A_RUN: Duration = Duration::from_secs(120);

/// How often to look whether the emulator has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Memory of the guest in MiB: the initramfs is there twice while it is unpacked.
const MEMORY_MIB: &str = "2048";

/// A panic ends the guest; only errors on the console; the kernel's account of pressure, which Debian's keep only if
/// told to.
const COMMAND_LINE: &str = "console=ttyS0 quiet loglevel=3 panic=-1 psi=1";

/// The guest's disks, `vda` and so on, with their size in bytes and a limit of operations a second. The first takes
/// what it leaves; the limit of the second is the emulator's, so that nothing in the guest tells of it.
const DISKS: [(&str, u64, Option<u32>); 3] = [
    ("out.img", 512 << 20, None),
    ("limited.img", 64 << 20, Some(30)),
    ("free.img", 64 << 20, None),
];

/// What is booted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guest<'a> {
    /// The kernel.
    pub(super) kernel: &'a Ready,
    /// What it can be seeded by.
    pub(super) source: Source,
    /// The file system.
    pub(super) userspace: &'a [u8],
    /// Runs of scenarios' sides.
    pub(super) runs: usize,
    /// Further words of the kernel's command line.
    pub(super) words: &'a str,
}

/// Boots, waits, unpacks.
pub(super) fn boot(guest: Guest<'_>, folder: &Path) -> anyhow::Result<Left> {
    let Guest { kernel, source, .. } = guest;
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let initramfs = folder.join("initramfs.cpio");
    // The kernel unpacks one archive after the other.
    std::fs::write(&initramfs, [guest.userspace, &kernel.modules].concat())
        .with_context(|| format!("write {}", initramfs.display()))?;
    let console = folder.join("console.txt");
    // A file of an earlier run must not speak for this one.
    std::fs::write(&console, "").with_context(|| format!("empty {}", console.display()))?;
    let mut command = Command::new("qemu-system-x86_64");
    command
        // Software emulation everywhere, so that the guest is the same on every machine. Its clock counts instructions
        // while it runs, one a nanosecond, and follows ours while it is idle: to the guest its processor is as fast as
        // one can expect, however slow and busy this machine is. Several processors would not come up so.
        .args([
            "-accel", "tcg", "-icount", "shift=0", "-smp", "1", "-m", MEMORY_MIB,
        ])
        .args(source.arguments())
        .args(["-nodefaults", "-no-reboot", "-display", "none"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&initramfs)
        .args([
            "-append",
            &format!("{COMMAND_LINE} {} {}", source.command_line(), guest.words),
        ])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .stdin(Stdio::null());
    for (name, bytes, limit) in DISKS {
        command.args(disk(&folder.join(name), bytes, limit)?);
    }
    let runs = u32::try_from(guest.runs).unwrap_or(u32::MAX);
    let status = within(PATIENCE + PATIENCE_A_RUN.saturating_mul(runs), &mut command)?;
    let said = std::fs::read(&console).with_context(|| format!("read {}", console.display()))?;
    let said = String::from_utf8_lossy(&said).replace('\r', "");
    match status {
        Some(status) if status.success() => {}
        Some(status) => bail!("the emulator failed: {status}; the guest said:\n{said}"),
        None => bail!("the guest hung and was ended; it said:\n{said}"),
    }
    let out = folder.join("out");
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("empty {}", out.display()))?;
    }
    std::fs::create_dir(&out).with_context(|| format!("make {}", out.display()))?;
    let mut unpack = Command::new("tar");
    unpack.arg("-C").arg(&out).arg("-xf").arg(folder.join(DISKS[0].0));
    process::run(&mut unpack).with_context(|| format!("the guest left no files; it said:\n{said}"))?;
    // An empty disk is an empty archive.
    if !out.join("kernel.log").exists() {
        bail!("the guest did not come to its end; it said:\n{said}");
    }
    Ok(Left { console: said, out })
}

/// Makes an empty disk; returns the emulator's arguments for it.
fn disk(file: &Path, bytes: u64, limit: Option<u32>) -> anyhow::Result<[String; 2]> {
    File::create(file)
        .and_then(|made| made.set_len(bytes))
        .with_context(|| format!("make {}", file.display()))?;
    let limit = limit.map_or(String::new(), |limit| format!(",throttling.iops-total={limit}"));
    // What the guest syncs need not outlive this machine; that would make its disks as slow as ours.
    Ok([
        "-drive".to_owned(),
        format!("file={},format=raw,if=virtio,cache=unsafe{limit}", file.display()),
    ])
}

/// The emulator's status; `None` when it had to be ended.
fn within(patience: Duration, command: &mut Command) -> anyhow::Result<Option<ExitStatus>> {
    let mut emulator = command.spawn().context("start qemu-system-x86_64")?;
    let began = Instant::now();
    loop {
        if let Some(status) = emulator.try_wait().context("wait for the emulator")? {
            return Ok(Some(status));
        }
        if began.elapsed() > patience {
            emulator.kill().context("end the emulator")?;
            emulator.wait().context("wait for the emulator")?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
