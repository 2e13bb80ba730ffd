//! Disks, file systems and networks.

use super::text::{after, number, owned, until, word};
use crate::find::find;
use holdup_evidence::observed::{DeviceRequest, KernelEvent, ResetReason};
use memchr::memrchr;

/// What a message tells. Each form is known by how it begins: most messages are none of them, and are soon done with.
pub(super) fn event(text: &[u8]) -> Option<KernelEvent> {
    match text.first()? {
        b'b' | b'c' | b'e' | b'p' | b'I' | b'B' => io_error(text)
            .or_else(|| file_system(text))
            .or_else(|| syn_flood(text)),
        b'a' => ata(text),
        b'n' => nvme(text).or_else(|| nfs(text)).or_else(|| conntrack(text)),
        b's' => scsi(text),
        b'm' => mmc(text),
        b'l' => nfs(text),
        b'i' => conntrack(text),
        b'T' | b'r' => syn_flood(text),
        b'C' => cifs(text),
        b'E' | b'X' | b'A' | b'F' | b'J' => file_system(text),
        b'N' => transmit_timeout(text),
        _ => None,
    }
    .or_else(|| adapter_reset(text))
}

fn has(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}

fn reset(device: &[u8], reason: Option<ResetReason>) -> Option<KernelEvent> {
    let device = owned(device);
    (!device.is_empty()).then_some(KernelEvent::DeviceReset { device, reason })
}

/// What a request was for that the block layer names: `op 0x1:(WRITE)`, `async page read`, `lost sync page write`.
fn of_block_layer(text: &[u8]) -> Option<DeviceRequest> {
    let operation = after(text, b" op 0x").and_then(|text| after(text, b":("));
    match operation.and_then(|text| until(text, b")")) {
        Some(b"READ") => Some(DeviceRequest::Read),
        Some(b"WRITE") => Some(DeviceRequest::Write),
        Some(b"FLUSH") => Some(DeviceRequest::Flush),
        Some(_) => None,
        None if text.ends_with(b" page read") => Some(DeviceRequest::Read),
        None if text.ends_with(b" page write") => Some(DeviceRequest::Write),
        None => None,
    }
}

/// The same of a command of ATA: `READ FPDMA QUEUED`, `WRITE DMA EXT`. Others read a log or settings, and no data.
fn of_command(command: &[u8]) -> Option<DeviceRequest> {
    let mut words = command.split(|byte| *byte == b' ');
    let what = words.next()?;
    let is_data = matches!(words.next()?, b"DMA" | b"FPDMA" | b"SECTOR(S)" | b"MULTIPLE");
    match what {
        b"READ" if is_data => Some(DeviceRequest::Read),
        b"WRITE" if is_data => Some(DeviceRequest::Write),
        b"FLUSH" => Some(DeviceRequest::Flush),
        _ => None,
    }
}

/// `I/O error, dev vda, sector 8 op 0x0:(READ)` with the name of a function before it on older kernels, and
/// `Buffer I/O error on dev vda, logical block 0`. Requests that a device does not know are no failure of it.
fn io_error(text: &[u8]) -> Option<KernelEvent> {
    let text = [
        &b"blk_update_request: "[..],
        b"print_req_error: ",
        b"end_request: ",
    ]
    .iter()
    .find_map(|function| text.strip_prefix(*function))
    .unwrap_or(text);
    let device = if let Some(said) = text.strip_prefix(b"Buffer I/O error on dev") {
        word(said.strip_prefix(b"ice").unwrap_or(said).trim_ascii_start())
    } else if [
        &b"I/O error, dev "[..],
        b"critical medium error, dev ",
        b"critical target error, dev ",
        b"critical space allocation error, dev ",
        b"recoverable transport error, dev ",
    ]
    .iter()
    .any(|kind| text.starts_with(kind))
    {
        word(after(text, b", dev ")?)
    } else {
        return None;
    };
    // A drive for disks that can be taken out says so when there is none in it, and machines have such drives that
    // nobody uses.
    let removable = device.starts_with(b"fd") || device.starts_with(b"sr");
    (!device.is_empty() && !removable).then(|| match text.starts_with(b"critical medium error") {
        true => medium(device),
        false => KernelEvent::IoError {
            device: owned(device),
            request: of_block_layer(text),
        },
    })
}

fn medium(device: &[u8]) -> KernelEvent {
    KernelEvent::MediumError {
        device: owned(device),
    }
}

/// `ata1.00: failed command: READ FPDMA QUEUED`, `ata1: hard resetting link`, `ata1.00: error: { UNC }`: uncorrectable.
fn ata(text: &[u8]) -> Option<KernelEvent> {
    let rest = text.strip_prefix(b"ata")?;
    number(rest)?;
    let said = after(rest, b": ")?;
    if said.starts_with(b"error: {") {
        return has(said, b" UNC ").then(|| medium(word(text)));
    }
    // What it will do about it: nothing but to try again, or a reset.
    let tries_again = said.starts_with(b"exception Emask") && has(said, b" action 0x0");
    if tries_again || said.starts_with(b"failed command") {
        return Some(KernelEvent::IoError {
            device: owned(word(text)),
            request: said.strip_prefix(b"failed command: ").and_then(of_command),
        });
    }
    let resets = said.starts_with(b"hard resetting link") || said.starts_with(b"exception Emask");
    let reason = said.ends_with(b" frozen").then_some(ResetReason::Frozen);
    resets.then(|| reset(word(text), reason))?
}

/// `nvme nvme0: I/O 12 QID 3 timeout, aborting`, `nvme nvme0: controller is down; will reset`.
fn nvme(text: &[u8]) -> Option<KernelEvent> {
    let said = text.strip_prefix(b"nvme ")?;
    let timed_out = has(said, b" timeout, ");
    let failed = timed_out || has(said, b"controller is down; will reset");
    failed.then(|| reset(word(said), timed_out.then_some(ResetReason::TimedOut)))?
}

/// `sd 2:0:0:0: [sda] tag#5 timing out command, waited 180s`, `scsi host2: ...`.
fn scsi(text: &[u8]) -> Option<KernelEvent> {
    let said = text
        .strip_prefix(b"sd ")
        .or_else(|| text.strip_prefix(b"scsi "))?;
    const FORMS: [&[u8]; 8] = [
        b"timing out command",
        b"attempting task abort",
        b"DID_TIME_OUT",
        b"Device offlined",
        b"rejecting I/O to offline device",
        b"Power-on or device reset occurred",
        b"abort: ",
        b"device reset",
    ];
    // What the disk itself says of a request that it failed.
    let unreadable =
        has(said, b"Sense Key : Medium Error") || has(said, b"Add. Sense: Unrecovered read error");
    if !unreadable && !FORMS.iter().any(|form| has(said, form)) {
        return None;
    }
    // Every disk says it once when it is found.
    if has(said, b"Power-on or device reset occurred") {
        return None;
    }
    let name = after(said, b"[").and_then(|name| until(name, b"]"));
    let name = name.filter(|name| name.starts_with(b"sd") || name.starts_with(b"vd"));
    let name = name.unwrap_or_else(|| word(said));
    match unreadable {
        true => Some(medium(name)),
        false => {
            let timed_out = has(said, b"timing out command") || has(said, b"DID_TIME_OUT");
            reset(name, timed_out.then_some(ResetReason::TimedOut))
        }
    }
}

/// `mmc0: Timeout waiting for hardware interrupt.`
fn mmc(text: &[u8]) -> Option<KernelEvent> {
    number(text.strip_prefix(b"mmc")?)?;
    let timed_out = has(text, b": Timeout waiting for hardware");
    timed_out.then(|| reset(word(text), Some(ResetReason::TimedOut)))?
}

/// `NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out`.
fn transmit_timeout(text: &[u8]) -> Option<KernelEvent> {
    let said = text.strip_prefix(b"NETDEV WATCHDOG: ")?;
    let said = said
        .strip_prefix(b"CPU: ")
        .map_or(Some(said), |cpu| after(cpu, b": "));
    let said = said?;
    let queue = after(text, b"transmit queue ")?;
    // `eth0 (igb): transmit queue 0 timed out`.
    let device = until(said, b": ").map_or_else(|| owned(word(said)), owned);
    Some(KernelEvent::TransmitTimeout {
        device,
        queue: number(queue).and_then(|queue| u32::try_from(queue).ok()),
    })
}

/// `e1000e 0000:00:19.0 eth0: Reset adapter unexpectedly`.
fn adapter_reset(text: &[u8]) -> Option<KernelEvent> {
    let before = until(text, b": Reset adapter")?;
    reset(before.rsplit(|byte| *byte == b' ').next()?, None)
}

/// `nf_conntrack: nf_conntrack: table full, dropping packet`; `ip_conntrack` once.
fn conntrack(text: &[u8]) -> Option<KernelEvent> {
    let of = text.starts_with(b"nf_conntrack: ") || text.starts_with(b"ip_conntrack: ");
    (of && has(text, b"table full, dropping packet")).then_some(KernelEvent::ConntrackFull)
}

/// `TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.`; since 6.3 with the address: `0.0.0.0:80`.
fn syn_flood(text: &[u8]) -> Option<KernelEvent> {
    let said = after(text, b"ossible SYN flooding on port ")?;
    let place = until(said, b". ").unwrap_or(said);
    let port = memrchr(b':', place).map_or(Some(place), |colon| place.get(colon + 1..))?;
    let port = u16::try_from(number(port)?).ok()?;
    Some(KernelEvent::SynFlood { port })
}

/// `nfs: server nas not responding, still trying`, `nfs: server nas OK`; `lockd: ` the same.
fn nfs(text: &[u8]) -> Option<KernelEvent> {
    let said = text
        .strip_prefix(b"nfs: server ")
        .or_else(|| text.strip_prefix(b"lockd: server "))?;
    let server = word(said);
    let ok = said.ends_with(b" OK");
    let silent = has(said, b" not responding");
    (ok || silent).then(|| KernelEvent::NfsServer {
        server: owned(server),
        ok,
        gave_up: said.ends_with(b"timed out"),
    })
}

/// `CIFS: VFS: \\nas has not responded in 180 seconds. Reconnecting...`; older without the second colon, with `Server `.
fn cifs(text: &[u8]) -> Option<KernelEvent> {
    let before = until(text.strip_prefix(b"CIFS")?, b" has not responded in ")?;
    let server = before.rsplit(|byte| *byte == b' ').next()?;
    let slashes = server.iter().take_while(|byte| **byte == b'\\').count();
    Some(KernelEvent::NfsServer {
        server: owned(server.get(slashes..)?),
        ok: false,
        gave_up: false,
    })
}

/// Errors of ext4, XFS, Btrfs and FAT, and that one is read-only or shut down for one.
fn file_system(text: &[u8]) -> Option<KernelEvent> {
    const NAMES: [&[u8]; 8] = [
        b"EXT4-fs ",
        b"EXT3-fs ",
        b"EXT2-fs ",
        b"BTRFS ",
        b"BTRFS: ",
        b"FAT-fs (",
        b"Aborting journal on device ",
        b"XFS (",
    ];
    const READ_ONLY: [&[u8]; 7] = [
        b"Remounting filesystem read-only",
        b"emounting filesystem read-only",
        b"forced readonly",
        b"set read-only",
        b"Shutting down filesystem",
        b"hutting down filesystem",
        b"Aborting journal on device",
    ];
    const ERRORS: [&[u8]; 8] = [
        b"EXT4-fs error (device ",
        b"EXT3-fs error (device ",
        b"EXT2-fs error (device ",
        b"BTRFS error (device ",
        b"BTRFS: error (device ",
        b"FAT-fs (",
        b"Aborting journal on device ",
        b"BTRFS critical (device ",
    ];
    // Most messages begin with none of these: seven searches in each took a part of the time of a log.
    if !NAMES.iter().any(|name| text.starts_with(name)) {
        return None;
    }
    let read_only = READ_ONLY.iter().any(|form| has(text, form));
    let on = if let Some(begin) = ERRORS.iter().find(|begin| text.starts_with(begin)) {
        // FAT also tells of other things under that name.
        if begin.starts_with(b"FAT") && !has(text, b"): error, ") && !read_only {
            return None;
        }
        let rest = text.get(begin.len()..)?;
        let end = rest.iter().position(|byte| matches!(byte, b')' | b' ' | b':'));
        rest.get(..end.unwrap_or(rest.len()))?
    } else if let Some(rest) = text.strip_prefix(b"XFS (") {
        let failed = read_only
            || has(rest, b"Corruption detected")
            || has(rest, b"orruption of in-memory data")
            || has(rest, b"metadata I/O error")
            || has(rest, b"log I/O error");
        failed.then(|| until(rest, b")"))??
    } else if let Some(rest) = text.strip_prefix(b"EXT4-fs (") {
        read_only.then(|| until(rest, b")"))??
    } else if read_only && text.starts_with(b"BTRFS info (device ") {
        until(after(text, b"(device ")?, b")")?
    } else {
        return None;
    };
    let on = on.split(|byte| *byte == b':').next().unwrap_or_default();
    (!on.is_empty()).then(|| KernelEvent::FileSystemError {
        on: owned(on.strip_suffix(b".").unwrap_or(on)),
        read_only,
    })
}

#[cfg(test)]
mod tests {
    use super::event;
    use holdup_evidence::observed::{DeviceRequest, KernelEvent, ResetReason};

    #[test]
    fn what_a_failed_request_was_for() {
        use DeviceRequest::{Flush, Read, Write};
        for (message, of) in [
            ("ata7.00: failed command: READ DMA EXT", Some(Read)),
            ("ata7.00: failed command: WRITE FPDMA QUEUED", Some(Write)),
            ("ata7.00: failed command: FLUSH CACHE EXT", Some(Flush)),
            // A log of the drive, and a hint.
            ("ata7.00: failed command: READ LOG EXT", None),
            ("ata7.00: failed command: DATA SET MANAGEMENT", None),
            ("ata7.00: failed command: READ", None),
            (
                "I/O error, dev sdq, sector 64 op 0x1:(WRITE) flags 0x800",
                Some(Write),
            ),
            ("I/O error, dev sdq, sector 64 op 0x3:(DISCARD) flags 0x0", None),
            ("blk_update_request: I/O error, dev sdq, sector 64", None),
            (
                "Buffer I/O error on dev sdq1, logical block 3, lost async page write",
                Some(Write),
            ),
        ] {
            let found = event(message.as_bytes());
            let Some(KernelEvent::IoError { request, .. }) = found else {
                panic!("{message}: {found:?}");
            };
            assert_eq!(request, of, "{message}");
        }
    }

    #[test]
    fn why_a_device_was_reset() {
        for (message, why) in [
            (
                "ata7.00: exception Emask 0x0 SAct 0x4 SErr 0x0 action 0x6 frozen",
                Some(ResetReason::Frozen),
            ),
            ("ata7.00: exception Emask 0x10 SAct 0x4 SErr 0x0 action 0x6", None),
            ("ata7: hard resetting link", None),
            (
                "nvme nvme2: I/O 9 QID 1 timeout, aborting",
                Some(ResetReason::TimedOut),
            ),
            (
                "mmc1: Timeout waiting for hardware interrupt.",
                Some(ResetReason::TimedOut),
            ),
        ] {
            let found = event(message.as_bytes());
            let Some(KernelEvent::DeviceReset { reason, .. }) = found else {
                panic!("{message}: {found:?}");
            };
            assert_eq!(reason, why, "{message}");
        }
    }

    #[test]
    fn places_that_cannot_be_read_in_the_words_of_each_layer() {
        for (message, device) in [
            (
                "blk_update_request: critical medium error, dev sda, sector 8",
                "sda",
            ),
            (
                "critical medium error, dev nvme0n1, sector 8 op 0x0:(READ)",
                "nvme0n1",
            ),
            ("ata1.00: error: { UNC }", "ata1.00"),
            (
                "sd 2:0:0:0: [sdb] tag#3 Sense Key : Medium Error [current]",
                "sdb",
            ),
            (
                "sd 2:0:0:0: [sdb] Add. Sense: Unrecovered read error - auto reallocate failed",
                "sdb",
            ),
        ] {
            let device = device.to_owned();
            let found = event(message.as_bytes());
            assert_eq!(found, Some(KernelEvent::MediumError { device }), "{message}");
        }
        for healthy in [
            "ata1.00: error: { ABRT }",
            "sd 2:0:0:0: [sdb] tag#3 Sense Key : Illegal Request [current]",
            "sr 11:0:0:0: [sr0] tag#3 Sense Key : Medium Error [current]",
        ] {
            assert_eq!(event(healthy.as_bytes()), None, "{healthy}");
        }
    }
}
