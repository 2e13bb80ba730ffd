//! The device behind a wait, as rules about disks name it, and the limit that a cgroup sets on it.
//!
//! In: a wait's resource and the facts. Out: [`Device`]. A limit comes before the device: where a cgroup slows the
//! requests, a faster disk changes nothing.

use super::Run;
use crate::attributed::{AttributedWait, ResourceKind};
use crate::finding::{Evidence, Finding, Remedy};
use holdup_evidence::Cause;
use holdup_evidence::facts::IoLimit;

/// A device as a reader knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Device {
    /// Its name (`sda1`), or what else is known: the file, "a disk".
    pub name: String,
    /// The file that was waited for, where it is one.
    pub file: Option<String>,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// For a loop device the file behind it.
    pub backing_file: Option<String>,
    /// The limit that slows it, in words: setting, value, cgroup.
    pub limit: Option<String>,
}

/// The device that a wait was for.
pub(super) fn device(run: &Run<'_>, wait: &AttributedWait) -> Device {
    let resource = &wait.resource;
    let detail = |key: &str| {
        resource
            .detail
            .get(key)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    };
    let file = detail("file").map(str::to_owned).or_else(|| {
        (resource.kind == ResourceKind::File && !resource.name.is_empty()).then(|| resource.name.clone())
    });
    let named = detail("device")
        .map(|device| device.trim_start_matches("/dev/"))
        .or_else(|| {
            (resource.kind == ResourceKind::Device).then(|| resource.name.trim_start_matches("/dev/"))
        });
    let known = run
        .facts
        .block_devices
        .iter()
        .find(|known| named.is_some_and(|name| name == known.name || name == known.number.to_string()));
    let name = known
        .map(|device| device.name.clone())
        .or_else(|| named.map(str::to_owned));
    let limited = resource.kind == ResourceKind::Cgroup;
    let limit: Option<&IoLimit> = limited
        .then(|| {
            let of_device = |limit: &&IoLimit| known.is_some_and(|device| device.number == limit.device);
            let limits = &run.facts.cgroup.io_limits;
            let kind = |limit: &&IoLimit| fits_kind(limit, wait);
            limits
                .iter()
                .find(|l| of_device(l) && kind(l))
                .or_else(|| limits.iter().find(of_device))
        })
        .flatten();
    Device {
        name: name
            .or_else(|| file.clone())
            .unwrap_or_else(|| "a disk".to_owned()),
        file,
        rotational: known.and_then(|device| device.rotational),
        backing_file: known.and_then(|device| device.backing_file.clone()),
        limit: match limit {
            Some(limit) => Some(format!(
                "{} {} of cgroup {}",
                limit.setting, limit.value, limit.cgroup
            )),
            None => limited.then(|| {
                let words = [detail("setting").or(detail("limit")), detail("value")];
                let words: Vec<&str> = words.into_iter().flatten().collect();
                match words.is_empty() {
                    true => format!("an I/O limit of cgroup {}", resource.name),
                    false => format!("{} of cgroup {}", words.join(" "), resource.name),
                }
            }),
        },
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

impl Device {
    /// The limit, or what stands behind the device.
    pub(super) fn evidence(&self) -> Option<Evidence> {
        if let Some(limit) = &self.limit {
            let text = format!("what slows it is a limit, not the device: {limit}");
            return Some(Evidence::new(text, "the cgroup's I/O settings"));
        }
        let backing = self.backing_file.as_deref()?;
        Some(Evidence::new(
            format!("{} is a loop device on {backing}", self.name),
            "/sys/block loop/backing_file",
        ))
    }

    /// First of all the limit is to be raised, where there is one.
    pub(super) fn limit_remedy(&self, finding: Finding) -> Finding {
        let Some(limit) = &self.limit else { return finding };
        finding
            .remedy(Remedy::changing(
                format!("raise or lift the limit: {limit}"),
                "whoever shares the device may be slowed by this program then",
            ))
            .remedy(Remedy::pointless(
                "a faster disk: the limit would slow it just the same",
            ))
    }
}
