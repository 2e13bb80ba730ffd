//! A device fails requests, or is reset because it does not answer.

use crate::rules::{Rule, RuleId, Run, fires, logs, say};
use holdup_evidence::observed::{DeviceRequest, Happening, KernelEvent, ResetReason};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::DeviceFailsRequests, check)
    .about("a device fails requests or needs resets")
    .causes(&[Cause::DiskRead]);

/// Seconds that a request to a disk may take before it is given up: the default of the SCSI layer and of nvme.
const COMMAND_SECONDS: u32 = 30;

/// Lines of the log that are quoted, each of another kind.
const LINES: usize = 5;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Error(Option<DeviceRequest>),
    /// A place that cannot be read or written.
    Medium,
    Reset(Option<ResetReason>),
    /// An interface did not send what is in this queue.
    Silent(Option<u32>),
}

impl Kind {
    fn is_reset(self) -> bool {
        matches!(self, Kind::Reset(_) | Kind::Silent(_))
    }
}

/// How names of files in `/dev` begin that `smartctl` takes.
const DISKS: &[&str] = &["sd", "hd", "nvme"];

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lines = logs::happenings(observed, |event| match event {
        KernelEvent::IoError { device, request } => Some((device.as_str(), Kind::Error(*request))),
        KernelEvent::MediumError { device } => Some((device.as_str(), Kind::Medium)),
        KernelEvent::DeviceReset { device, reason } => Some((device.as_str(), Kind::Reset(*reason))),
        KernelEvent::TransmitTimeout { device, queue } => Some((device.as_str(), Kind::Silent(*queue))),
        _ => None,
    });
    let mut devices: Vec<&str> = lines.iter().map(|(_, (device, _))| *device).collect();
    devices.sort_unstable();
    devices.dedup();
    let Some((first, (device, _))) = lines.first() else {
        return logs::kernel_silent(observed, "failed requests or resets");
    };
    let resets = lines.iter().filter(|(_, (_, kind))| kind.is_reset()).count();
    let errors = lines.len() - resets;
    let silent = lines.iter().find_map(|(_, (device, kind))| match kind {
        Kind::Silent(queue) => Some((*device, *queue)),
        _ => None,
    });
    let which = match devices.len() {
        1 => (*device).to_owned(),
        // A link, its drive and its partitions are several names of one trouble.
        count => format!("{device} and {} more", count - 1),
    };
    let (damaged, places) = damaged(&lines);
    let (what, why) = (requests(&lines), reasons(&lines));
    let title = match (errors, resets, silent) {
        _ if places > 0 => format!(
            "{damaged} cannot read some places on its medium: it reports uncorrectable errors{}",
            if resets > 0 { ", and had to be reset" } else { "" }
        ),
        (0, _, Some((device, queue))) => format!(
            "{device} did not send: its transmit queue{} timed out",
            queue.map_or_else(String::new, |queue| format!(" {queue}"))
        ),
        (0, _, None) => format!("The kernel had to reset {which}, because it did not answer{why}"),
        (_, 0, _) => format!("Requests to {which} fail{what}"),
        _ => format!("Requests to {which} fail{what}, and it had to be reset{why}"),
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        title,
        Cause::DiskRead,
        logs::quote(observed, first),
    )
    .and(logs::about(
        observed,
        first,
        format!(
            "{errors} errors and {resets} resets or timeouts are logged, of: {}",
            devices.join(", ")
        ),
    ));
    if places > 0 {
        let text = format!(
            "{} of the medium: the disk is failing; it tries for seconds to read such a place before it gives up, and other requests wait \
             meanwhile",
            say::several(places as u64, "error")
        );
        finding = finding.and(logs::about(observed, first, text));
    }
    for one in kinds_of_lines(&lines).into_iter().skip(1) {
        finding = finding.and(logs::quote(observed, one));
    }
    if resets > 0 {
        let text =
            format!("each timeout delays its waiters by the time limit, {COMMAND_SECONDS} s by default");
        finding = finding.and(logs::about(observed, first, text));
    }
    fires(
        finding
            .remedy(
                Remedy::safe(
                    "ask the disk itself, and check cable, slot and controller; in a virtual \
                 machine, check the storage of the host",
                )
                .with_command(command(device)),
            )
            .remedy(Remedy::changing(
                "copy important data to another disk, and replace this one",
                "reading all of a failing disk can break it: start with the most important data",
            )),
    )
}

/// What failed, in words. How many is not told: one request has a line of each layer that it went through.
fn requests(rows: &[(&Happening, (&str, Kind))]) -> String {
    let has = |request| {
        let is = Kind::Error(Some(request));
        rows.iter().any(|(_, (_, kind))| *kind == is)
    };
    let known = [
        (DeviceRequest::Read, "reads"),
        (DeviceRequest::Write, "writes"),
        (DeviceRequest::Flush, "flushes of its cache"),
    ];
    let names: Vec<&str> = known
        .into_iter()
        .filter_map(|(request, name)| has(request).then_some(name))
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" ({})", names.join(", ")),
    }
}

/// Why it had to be reset, in words, and how often that is logged.
fn reasons(rows: &[(&Happening, (&str, Kind))]) -> String {
    let count = |reason| {
        let is = Kind::Reset(Some(reason));
        rows.iter().filter(|(_, (_, kind))| *kind == is).count()
    };
    let known = [
        (ResetReason::Frozen, "its port was frozen"),
        (ResetReason::TimedOut, "requests timed out"),
    ];
    let told: Vec<String> = known
        .into_iter()
        .map(|(reason, words)| (count(reason), words))
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{words} {}", logs::times(count)))
        .collect();
    match told.is_empty() {
        true => String::new(),
        false => format!(": {}", told.join(", ")),
    }
}

/// The devices with places that cannot be read, in words, and how often they said so.
fn damaged(rows: &[(&Happening, (&str, Kind))]) -> (String, usize) {
    let of = rows.iter().filter(|(_, (_, kind))| *kind == Kind::Medium);
    let mut devices: Vec<&str> = of.clone().map(|(_, (device, _))| *device).collect();
    // A drive and the disk by the block layer's name are several names of one trouble.
    devices.sort_unstable();
    devices.dedup();
    let words = match devices.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    (words, of.count())
}

/// What to type to ask a disk. A link or a port of a controller has a name of its own, and no file in `/dev`: which disk is behind it is to be
/// found first.
fn command(device: &str) -> String {
    let is_disk = DISKS.iter().any(|kind| device.starts_with(kind));
    let lines = format!("dmesg | grep -E '{device}|ata|nvme'");
    match is_disk {
        true => format!("smartctl -a /dev/{device}; {lines}"),
        false => format!("{lines}; smartctl --scan"),
    }
}

/// The first line of each kind: what failed stands in one, and why in another. Lines that differ in numbers alone are of one kind.
fn kinds_of_lines<'a>(rows: &[(&'a Happening, (&str, Kind))]) -> Vec<&'a Happening> {
    let mut kinds: Vec<(String, &Happening)> = Vec::new();
    for (one, _) in rows {
        if kinds.len() >= LINES {
            break;
        }
        let words = one.text.chars().filter(|c| !c.is_ascii_hexdigit());
        let kind: String = words.collect();
        if kinds.iter().all(|(known, _)| *known != kind) {
            kinds.push((kind, one));
        }
    }
    kinds.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_disk_is_asked_by_its_name() {
        assert!(command("sdb").starts_with("smartctl -a /dev/sdb; "));
        assert!(command("nvme0n1").starts_with("smartctl -a /dev/nvme0n1; "));
    }

    #[test]
    fn what_has_no_file_in_dev_is_not() {
        for name in ["ata1.00", "ata1", "eth0", "mmcblk0"] {
            let command = command(name);
            assert!(!command.contains("/dev/"), "{command}");
            assert!(command.contains(&format!("'{name}|ata|nvme'")), "{command}");
        }
    }
}
