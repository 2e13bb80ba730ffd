//! A boot that waits for the device of its root file system: dracut, initramfs-tools, systemd, the kernel.
//!
//! In: lines of a console or a kernel log. Out: who waits, for which device, how often and how long that was said; nothing where the root file
//! system was mounted after all.

use super::{Told, length_ns, seconds_since_boot};
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;

/// Who starts all that the boot needs.
const SYSTEMD: &str = "systemd";

/// Characters of a device's name.
const MAX_DEVICE_CHARS: usize = 120;

/// What is said once the root file system is there.
const CAME: [&str; 6] = [
    "Mounted root",
    "mounted root",
    "Mounted /sysroot",
    "Mounted sysroot.mount",
    "mounted filesystem",
    "Switching root",
];

/// What ends a wait of systemd's: it has jobs for devices of swap and of data, too.
const FOUND: [&str; 4] = ["Found device", "Reached target", "Startup finished", "login:"];

/// Who waits, by what the line has of them.
const WAITERS: [(&str, &str); 8] = [
    ("initqueue", "dracut-initqueue"),
    ("ave up waiting for", "the initramfs"),
    ("ropping to a shell", "the initramfs"),
    ("nable to find root device", "the initramfs"),
    ("start job is running for", SYSTEMD),
    ("aiting for root file system", "the initramfs"),
    ("aiting for root", "the kernel"),
    ("annot open root device", "the kernel"),
];

/// The boot of one artefact.
#[derive(Debug, Default)]
pub(super) struct Boot {
    waiter: Option<&'static str>,
    /// Whether it gave up.
    gave_up: bool,
    device: Option<String>,
    times: u64,
    /// Seconds since the boot of the first and the last line.
    first_s: Option<f64>,
    last_s: Option<f64>,
    /// The longest that a line gives.
    longest_ns: Option<f64>,
    lines: Vec<u64>,
}

/// Lines that are kept as told.
const MAX_LINES: usize = 500;

/// A device's name at the beginning of a text, to the next sign that is no part of one.
fn name(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['"', '\'', ' ']);
    let end = text.find(|char: char| char.is_whitespace() || matches!(char, '"' | '\'' | ',' | '(' | '['));
    let name = text
        .get(..end.unwrap_or(text.len()))?
        .trim_end_matches(['.', ':']);
    let is_name = name.starts_with("/dev/")
        || ["UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=", "dev-", "mapper/"]
            .iter()
            .any(|begin| name.starts_with(begin));
    (is_name && name.len() > 4).then(|| name.chars().take(MAX_DEVICE_CHARS).collect())
}

/// The device that a line of a wait names.
fn device(text: &str) -> Option<String> {
    // dracut's hook is a test of the shell's: `[ -e "/dev/root" ]`.
    for before in [
        "-e \"",
        "ALERT!",
        "root device ",
        "running for ",
        "for device ",
        "initqueue: ",
    ] {
        if let Some((_, behind)) = text.split_once(before)
            && let Some(name) = name(behind)
        {
            return Some(name);
        }
    }
    let at = ["/dev/", "UUID=", "PARTUUID=", "LABEL="]
        .iter()
        .filter_map(|begin| text.find(begin))
        .min()?;
    name(text.get(at..)?)
}

impl Boot {
    /// Whether it was said that somebody waits.
    pub(super) fn waits(&self) -> bool {
        self.waiter.is_some()
    }

    /// Whether a line says that the root file system, or what systemd waited for, is there: then nobody waits any more.
    pub(super) fn came(&mut self, text: &str) -> bool {
        let found = self.waiter == Some(SYSTEMD) && FOUND.iter().any(|said| text.contains(said));
        let came = found || CAME.iter().any(|said| text.contains(said));
        if came {
            *self = Boot::default();
        }
        came
    }

    /// Takes a line.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        if self.came(text) {
            return;
        }
        let Some((_, waiter)) = WAITERS.iter().find(|(said, _)| text.contains(said)) else {
            return;
        };
        // systemd has start jobs of everything: a check of a file system on a device has that device.
        let named = match *waiter == SYSTEMD {
            true => text.split_once("running for ").and_then(|(_, job)| name(job)),
            false => device(text),
        };
        if *waiter == SYSTEMD && named.is_none() {
            return;
        }
        if self.lines.len() < MAX_LINES {
            self.lines.push(number);
        }
        self.waiter = self.waiter.or(Some(*waiter));
        self.device = self.device.take().or(named);
        self.gave_up |= ["ave up", "ropping to a shell", "annot open", "nable to find"]
            .iter()
            .any(|said| text.contains(said));
        let repeats = text.contains("still waiting") || text.contains("start job is running");
        self.times += u64::from(repeats);
        if let Some(at) = seconds_since_boot(text) {
            self.first_s = self.first_s.or(Some(at));
            self.last_s = Some(at);
        }
        // `(1min 30s / no limit)`.
        let so_far = text.rsplit_once('(').and_then(|(_, rest)| rest.split_once(" / "));
        if let Some(ns) = so_far.and_then(|(so_far, _)| length_ns(so_far))
            && self.longest_ns.is_none_or(|longest| ns > longest)
        {
            self.longest_ns = Some(ns);
        }
    }

    /// Who waits, and for what.
    pub(super) fn end(&mut self, told: &mut Told) -> Option<Fact> {
        let boot = std::mem::take(self);
        let waiter = boot.waiter?;
        // One line of the kernel's that it waits is said in every boot with `rootwait`.
        let once = boot.lines.len() < 2 && waiter == "the kernel" && !boot.gave_up;
        // dracut tells of its queue in every boot.
        let of_queue = waiter == "dracut-initqueue" && boot.times == 0;
        // So does Debian's initramfs, before it goes on.
        let begins = waiter == "the initramfs" && !boot.gave_up;
        if once || of_queue || begins {
            return None;
        }
        for line in &boot.lines {
            told.add(*line);
        }
        let device = match &boot.device {
            Some(device) => format!("{device}, which does not appear"),
            None => "the device of the root file system, which does not appear".to_owned(),
        };
        let does = if boot.gave_up {
            "gave up waiting"
        } else {
            "is waiting"
        };
        let mut text = format!("the boot {does} in {waiter} for {device}");
        if boot.times > 1 {
            text.push_str(&format!("; still waiting was reported {} times", boot.times));
        }
        match (boot.first_s, boot.last_s) {
            (Some(first), Some(last)) if last > first => {
                text.push_str(&format!(
                    "; from {first:.1} s to {last:.1} s after the boot began"
                ));
            }
            (Some(at), _) => text.push_str(&format!("; {at:.1} s after the boot began")),
            (None, _) => {}
        }
        let ns = boot.longest_ns.or(boot.last_s.map(|seconds| seconds * 1e9));
        Some(Fact {
            kind: StatementKind::TimedOut,
            share: None,
            ns: ns.map(|ns| ns.clamp(0.0, super::MAX_LENGTH_NS) as Ns),
            line: *boot.lines.first()?,
            text,
        })
    }
}
