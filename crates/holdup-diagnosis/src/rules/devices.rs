//! The device behind a wait, as rules about disks name it, and the limit that a cgroup sets on it.
//!
//! In: a wait's resource and the facts. Out: [`Device`]. A limit comes before the device: where a cgroup slows the
//! requests, a faster disk changes nothing.

use super::{MATTERS, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_evidence::facts::IoLimit;
use holdup_model::attributed::{AttributedWait, ResourceKind};
use holdup_model::attributed::{Disk, Facts};
use holdup_model::finding::{Evidence, Finding, Remedy, Verdict};

/// Requests that one wait may stand for: a commit of a journal writes a handful of blocks before it is waited for.
const REQUESTS_A_WAIT: u64 = 8;

/// Bytes that one wait may stand for: what read-ahead or write-back commonly has in flight at once.
const BYTES_A_WAIT: u64 = 4 << 20;

/// A device as a reader knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Device {
    /// Its name (`sda1`), or what else is known: the file, "a disk".
    pub name: String,
    /// The file that was waited for, where it is one.
    pub file: Option<String>,
    /// Bytes that may at most wait to be written to it, where that is strict.
    pub dirty_limit: Option<u64>,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// The file behind a loop device.
    backing_file: Option<String>,
    /// The limit that slows it.
    limit: Option<Limit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Limit {
    cgroup: String,
    /// The kernel's file and the value in it; `None` where only the cgroup is known.
    setting: Option<(String, u64)>,
}

/// The device that a wait was for.
pub(super) fn device(run: &Run<'_>, wait: &AttributedWait) -> Device {
    let resource = &wait.resource;
    let holds = |text: &String| !text.is_empty();
    let name_if = |kind| (resource.kind == kind && !resource.name.is_empty()).then(|| resource.name.clone());
    let file = resource
        .detail
        .file
        .clone()
        .filter(holds)
        .or_else(|| name_if(ResourceKind::File));
    let named = resource
        .detail
        .device
        .as_ref()
        .map(Disk::to_string)
        .filter(holds)
        .or_else(|| name_if(ResourceKind::Device));
    let named = named.map(|name| name.trim_start_matches("/dev/").to_owned());
    let known = run.facts.block_devices.iter().find(|known| {
        named
            .as_ref()
            .is_some_and(|name| *name == known.name || *name == known.number.to_string())
    });
    let limits = run.facts.cgroup.io_limits.iter();
    let limit = known.and_then(|known| {
        let mut of_device = limits.filter(|limit| known.number == limit.device);
        of_device.find(|limit| fits_kind(limit, wait) && reached(limit, wait))
    });
    let limit = match limit {
        Some(limit) => Some(Limit {
            cgroup: limit.cgroup.clone(),
            setting: Some((limit.setting.clone(), limit.value)),
        }),
        None => name_if(ResourceKind::Cgroup).map(|cgroup| Limit {
            cgroup,
            setting: None,
        }),
    };
    // A guest's disk says that it turns unless its host has said otherwise, whatever it is.
    let guest = run.facts.random.virtual_machine == Some(true);
    let name = known
        .map(|device| device.name.clone())
        .or(named)
        .or_else(|| file.clone());
    Device {
        name: name.unwrap_or_else(|| "a disk".to_owned()),
        file,
        dirty_limit: known.and_then(|device| device.dirty_limit),
        rotational: known.and_then(|device| device.rotational).filter(|_| !guest),
        backing_file: known.and_then(|device| device.backing_file.clone()),
        limit,
    }
}

/// Whether a limit is on reads or on writes, as the wait is.
fn fits_kind(limit: &IoLimit, wait: &AttributedWait) -> bool {
    let reads = matches!(wait.cause, Cause::DiskRead | Cause::MemPagefault);
    let setting = limit.setting.as_str();
    let on_reads = ["read", "rbps", "riops"]
        .iter()
        .any(|word| setting.contains(word));
    on_reads == reads
}

/// Whether a limit counts bytes rather than requests.
fn in_bytes(setting: &str) -> bool {
    setting.contains("bps")
}

/// Whether as much was waited for as the limit lets through. One that is far away slows nothing.
fn reached(limit: &IoLimit, wait: &AttributedWait) -> bool {
    let one_wait = if in_bytes(&limit.setting) {
        BYTES_A_WAIT
    } else {
        REQUESTS_A_WAIT
    };
    let seconds = wait.ns as f64 / 1e9;
    wait.count as f64 * one_wait as f64 >= limit.value as f64 * seconds
}

impl Limit {
    fn words(&self) -> String {
        let Some((setting, value)) = &self.setting else {
            return format!("an I/O limit of cgroup {}", self.cgroup);
        };
        let unit = if in_bytes(setting) { "bytes" } else { "requests" };
        format!("{setting} is {value} {unit} a second in cgroup {}", self.cgroup)
    }
}

impl Device {
    /// Whether a cgroup's limit slows it.
    pub(super) fn limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Adds the limit as what the wait was for, and what to do about it; else what stands behind the device.
    pub(super) fn tell(&self, mut finding: Finding) -> Finding {
        let Some(limit) = &self.limit else {
            let Some(backing) = &self.backing_file else {
                return finding;
            };
            let text = format!("{} is a loop device on {backing}", self.name);
            return finding.and(Evidence::new(text, "/sys/block loop/backing_file"));
        };
        let resource = &mut finding.resource;
        resource.kind = ResourceKind::Cgroup;
        resource.name.clone_from(&limit.cgroup);
        resource.detail.add(Facts {
            device: Some(self.name.as_str().into()),
            file: self.file.clone(),
            setting: limit.setting.as_ref().map(|(setting, _)| setting.clone()),
            value: limit.setting.as_ref().map(|(_, value)| *value),
            ..Facts::default()
        });
        let words = limit.words();
        finding
            .and(Evidence::new(
                format!("a limit slows it, not the device: {words}"),
                "the cgroup's I/O settings",
            ))
            .remedy(Remedy::changing(
                format!("raise or lift the limit: {words}"),
                "this program may then slow other users of the device",
            ))
            .remedy(Remedy::pointless(
                "a faster disk: the limit would slow it just the same",
            ))
    }
}

/// A finding for each device that matters. `finding`: of the waits for it, given it and who waits most.
pub(super) fn for_each_device(
    run: &Run<'_>,
    waits: &Waits<'_>,
    finding: impl Fn(&Waits<'_>, &Device, &str) -> Finding,
) -> Verdict {
    let groups = run.worth(waits, waits.split(|wait| device(run, wait).name), MATTERS);
    let finding = |group: &Waits<'_>| {
        let main = group.main();
        finding(group, &device(run, main), &say::who(&main.asker.name))
    };
    Verdict::Fires(groups.iter().map(finding).collect())
}
