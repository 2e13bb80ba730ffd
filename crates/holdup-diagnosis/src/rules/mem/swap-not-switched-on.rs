//! A swap area is there, and the kernel does not use it.

use crate::rules::{Extend, Rule, RuleId, Run, say};
use holdup_evidence::observed::SeenDevice;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::SwapNotSwitchedOn, check)
    .about("a swap area exists but is not enabled")
    .causes(&[Cause::MemReclaim]);

/// Bytes from which an empty disk is worth a word beside a swap area that is not used: less than that is no swap for
/// anything that runs today.
const MIN_DISK_BYTES: u64 = 256 << 20;

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    if observed.devices.is_empty() {
        return Verdict::CannotTell(
            "which swap areas there are: `lsblk -o NAME,TYPE,SIZE,FSTYPE,MOUNTPOINT`".into(),
        );
    }
    if observed.devices.iter().all(|device| device.file_system.is_none()) {
        return Verdict::CannotTell("what is on the block devices: the FSTYPE column of `lsblk -f`".into());
    }
    // A device that was listed more than once is as it was last seen.
    let last: BTreeMap<&str, &SeenDevice> = observed
        .devices
        .iter()
        .map(|device| (base(&device.name), device))
        .collect();
    let areas: Vec<&SeenDevice> = last.values().copied().filter(|device| is_swap(device)).collect();
    let known = !observed.swap_lists.is_empty() || areas.iter().all(|area| area.mount.is_some());
    if !areas.is_empty() && !known {
        return Verdict::CannotTell("which swap areas are enabled: `swapon --show` or /proc/swaps".into());
    }
    let off: Vec<&SeenDevice> = areas
        .iter()
        .copied()
        .filter(|area| !is_on(observed, area))
        .collect();
    if off.is_empty() {
        return Verdict::Clear(format!(
            "{} of the {} there {} enabled",
            areas.len(),
            say::several(areas.len() as u64, "swap area"),
            if areas.len() == 1 { "is" } else { "are" }
        ));
    }
    let empty = observed.devices.iter().find(|device| is_empty(observed, device));
    Verdict::Fires(
        off.into_iter()
            .map(|area| finding(observed, area, empty))
            .collect(),
    )
}

fn is_swap(device: &SeenDevice) -> bool {
    device.file_system.as_deref() == Some("swap")
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_on(observed: &Observed, area: &SeenDevice) -> bool {
    let listed = observed.swap_lists.iter().flat_map(|list| &list.areas);
    let mut listed = listed.map(|swap| base(&swap.path));
    // Volumes have another name in the kernel's list than in lsblk's: by mount point they are known, too.
    area.mount.as_deref() == Some("[SWAP]") || listed.any(|path| path == base(&area.name))
}

/// A whole disk with nothing on it.
fn is_empty(observed: &Observed, device: &SeenDevice) -> bool {
    let has_parts = || {
        observed.devices.iter().any(|other| {
            let part = other
                .name
                .strip_prefix(&device.name)
                .is_some_and(|rest| !rest.is_empty());
            part || other.parent.as_ref() == Some(&device.name)
        })
    };
    device.kind == "disk"
        && device.file_system.as_deref() == Some("")
        && device.mount.as_deref().unwrap_or_default().is_empty()
        && device.size.is_some_and(|size| size >= MIN_DISK_BYTES)
        && !has_parts()
}

fn finding(observed: &Observed, area: &SeenDevice, empty: Option<&SeenDevice>) -> Finding {
    let size = area
        .size
        .map(|size| format!(", {}", say::bytes(size)))
        .unwrap_or_default();
    let path = format!("/dev/{}", area.name.trim_start_matches("/dev/"));
    let name = base(&area.name);
    let aside = if size.is_empty() { "" } else { "," };
    let title = format!("The swap area {name}{size}{aside} exists but is not enabled");
    let kind = say::name_or(&area.kind, "device");
    let first = Evidence::new(
        format!("{name} is a {kind} of type swap{size}, in use by nothing"),
        observed.place(&area.quote),
    );
    let mut found =
        Finding::without_duration(RULE.id.id(), Severity::Warning, title, Cause::MemReclaim, first);
    for list in &observed.swap_lists {
        let text = match list.areas.as_slice() {
            [] => "0 swap areas are enabled".to_owned(),
            areas => {
                let names: Vec<&str> = areas.iter().map(|area| base(&area.path)).collect();
                format!("enabled: {}, not {name}", names.join(", "))
            }
        };
        found = found.and(Evidence::new(text, observed.place(&list.quote)));
    }
    let empty = empty.map(|disk| {
        let size = say::bytes(disk.size.unwrap_or(0));
        Evidence::new(
            format!(
                "{} is an empty disk of {size}: neither file system nor partition is on it",
                base(&disk.name)
            ),
            observed.place(&disk.quote),
        )
    });
    let resource = Resource {
        kind: ResourceKind::Device,
        name: path.clone(),
        ..Resource::default()
    };
    found
        .and_if(empty)
        .about(resource, Asker::default())
        .confidence(if observed.swap_lists.is_empty() {
            Confidence::Strong
        } else {
            Confidence::Proved
        })
        .remedy(
            Remedy::changing(
                "enable it: without swap the kernel kills a process when memory is used up",
                "a machine that always needs swap is slow: find the processes that use the memory",
            )
            .with_command(format!("swapon {}", say::quoted(&path))),
        )
        .remedy(
            Remedy::safe(
                "enable it at each boot: add a line to /etc/fstab, and remove lines with a missing device",
            )
            .with_command(format!("echo '{path} none swap sw 0 0' # for /etc/fstab")),
        )
}
