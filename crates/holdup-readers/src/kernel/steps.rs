//! How far the boot has come: the few messages of a boot that say so.

use super::text::{after, owned, until, word};
use crate::find::find;
use holdup_evidence::observed::{BootStep, KernelEvent};

/// What a message tells. Each form is known by how it begins or ends: most messages are none of them.
pub(super) fn event(text: &[u8]) -> Option<KernelEvent> {
    let step = match text.first()? {
        b'R' => first_program(text),
        b'F' => ready(text),
        b'V' => root(text),
        b'W' => waits_for_root(text),
        b'A' => swap(text),
        b'E' | b'X' | b'B' => mounted(text),
        _ => None,
    };
    step.or_else(|| link(text)).map(KernelEvent::Step)
}

/// `Run /sbin/init as init process`.
fn first_program(text: &[u8]) -> Option<BootStep> {
    let program = until(text.strip_prefix(b"Run ")?, b" as init process")?;
    Some(BootStep::InitStarted {
        program: owned(program),
    })
}

/// `Freeing unused kernel image (initmem) memory: 2824K`; `Freeing unused kernel memory` before 5.0.
fn ready(text: &[u8]) -> Option<BootStep> {
    let init = text.starts_with(b"Freeing unused kernel ") || text.starts_with(b"Freeing init memory");
    init.then_some(BootStep::KernelReady)
}

/// `VFS: Mounted root (ext4 filesystem) readonly on device 254:1.`, where there is no initial file system in memory.
fn root(text: &[u8]) -> Option<BootStep> {
    let said = text.strip_prefix(b"VFS: Mounted root (")?;
    Some(BootStep::Mounted {
        on: owned(word(after(said, b" on device ")?)),
        root: true,
    })
}

/// `Waiting for root device /dev/sda2...`, `Waiting for root device PARTUUID=…...`.
fn waits_for_root(text: &[u8]) -> Option<BootStep> {
    let device = text.strip_prefix(b"Waiting for root device ")?;
    let end = device.len() - device.iter().rev().take_while(|byte| **byte == b'.').count();
    Some(BootStep::WaitsForRoot {
        device: owned(device.get(..end)?.trim_ascii()),
    })
}

/// `Adding 1046524k swap on /dev/vda2.  Priority:-2 extents:1`.
fn swap(text: &[u8]) -> Option<BootStep> {
    let area = after(text.strip_prefix(b"Adding ")?, b"k swap on ")?;
    Some(BootStep::SwapOn {
        area: owned(word(area)),
    })
}

/// `EXT4-fs (vda1): mounted filesystem …`, `XFS (vda1): Ending clean mount`, `BTRFS info (device vda1): first mount of
/// filesystem …`.
fn mounted(text: &[u8]) -> Option<BootStep> {
    let inside = |begin: &[u8], said: &[&[u8]]| {
        let rest = text.strip_prefix(begin)?;
        let device = until(rest, b")")?;
        let rest = rest.get(device.len()..)?.strip_prefix(b"): ")?;
        let device = until(device, b" ").unwrap_or(device);
        said.iter().any(|said| rest.starts_with(said)).then_some(device)
    };
    const EXT: &[&[u8]] = &[b"mounted filesystem"];
    let on = inside(b"EXT4-fs (", EXT)
        .or_else(|| inside(b"EXT3-fs (", EXT))
        .or_else(|| inside(b"EXT2-fs (", EXT))
        .or_else(|| inside(b"XFS (", &[b"Ending clean mount", b"Ending recovery"]))
        .or_else(|| inside(b"BTRFS info (device ", &[b"first mount of filesystem"]))?;
    Some(BootStep::Mounted {
        on: owned(on),
        root: false,
    })
}

/// `e1000: eth0 NIC Link is Up 1000 Mbps`, `r8169 0000:02:00.0 eth0: Link is Up - 1Gbps/Full`, `IPv6:
/// ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready`, `mlx5_core 0000:01:00.0 eth0: Link up`.
fn link(text: &[u8]) -> Option<BootStep> {
    const FORMS: [&[u8]; 5] = [
        b" NIC Link is Up",
        b": Link is Up",
        b": link becomes ready",
        b": Link up",
        b": link up",
    ];
    // All of them have one of these letters, which are cheap to look for.
    find(text, b"ink ")?;
    let before = FORMS.iter().find_map(|form| until(text, form))?;
    let interface = before.rsplit(|byte| *byte == b' ').next()?;
    let interface = interface.strip_suffix(b":").unwrap_or(interface);
    (!interface.is_empty() && interface != b"lo").then(|| BootStep::LinkUp {
        interface: owned(interface),
    })
}
