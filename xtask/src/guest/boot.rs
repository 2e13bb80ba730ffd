//! Runs the emulator until the guest powers off, and collects what came out of its serial ports.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a guest said before it powered off.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Its console: sshd's and holdup's own output.
    pub(super) console: String,
    /// holdup's report as JSON.
    pub(super) report: String,
    /// The kernel's log.
    pub(super) kernel_log: String,
}

/// How long a guest may take before it is hung: it is done in about 10 s on an idle machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// How often to look whether the emulator has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Memory of the guest in MiB: the initramfs is there twice while it is unpacked.
const MEMORY_MIB: &str = "1024";

/// Nothing that could be trusted for randomness, a panic ends the guest, and only errors on the console.
const COMMAND_LINE: &str =
    "console=ttyS0 quiet loglevel=3 panic=-1 random.trust_cpu=off random.trust_bootloader=off";

/// The ports' files, in the order of the guest's ttyS0 to ttyS2.
const PORTS: [&str; 3] = ["console.txt", "report.json", "kernel.log"];

/// Boots, waits, reads.
pub(super) fn boot(kernel: &Path, initramfs: &Path, folder: &Path) -> anyhow::Result<Said> {
    let mut command = Command::new("qemu-system-x86_64");
    command
        // Software emulation everywhere, so that the guest is the same on every machine; two CPUs, so that
        // holdup does not compete with a waiter that loops.
        .args(["-accel", "tcg", "-cpu", "qemu64", "-smp", "2", "-m", MEMORY_MIB])
        .args(["-nodefaults", "-no-reboot", "-display", "none"])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", COMMAND_LINE])
        .stdin(Stdio::null());
    for port in PORTS {
        let file = folder.join(port);
        // A port's file of an earlier run must not speak for this one.
        std::fs::write(&file, "").with_context(|| format!("empty {}", file.display()))?;
        command.arg("-serial").arg(format!("file:{}", file.display()));
    }
    let status = within_patience(&mut command)?;
    let read = |port: &str| -> anyhow::Result<String> {
        let file = folder.join(port);
        let bytes = std::fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
    };
    let said = Said {
        console: read(PORTS[0])?,
        report: read(PORTS[1])?,
        kernel_log: read(PORTS[2])?,
    };
    match status {
        Some(status) if status.success() => Ok(said),
        Some(status) => bail!("the emulator failed: {status}; the guest said:\n{}", said.console),
        None => bail!(
            "the guest hung for {} s and was ended; it said:\n{}",
            PATIENCE.as_secs(),
            said.console
        ),
    }
}

/// The emulator's status; `None` when it had to be ended.
fn within_patience(command: &mut Command) -> anyhow::Result<Option<ExitStatus>> {
    let mut emulator = command.spawn().context("start qemu-system-x86_64")?;
    let began = Instant::now();
    loop {
        if let Some(status) = emulator.try_wait().context("wait for the emulator")? {
            return Ok(Some(status));
        }
        if began.elapsed() > PATIENCE {
            emulator.kill().context("end the emulator")?;
            emulator.wait().context("wait for the emulator")?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
