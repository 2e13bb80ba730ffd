//! The last step: device numbers become names, paths get their mount, and a limit that a cgroup sets is named
//! as what was waited for.
//!
//! In: a resource as a wait made it, and the machine's facts. Out: the same with more `detail`; for waits for
//! a disk that a cgroup limits, the limit instead of the file. What the facts do not know stays as it is.

use crate::attributed::{Resource, ResourceKind};
use holdup_evidence::facts::{BlockDevice, IoLimit, Mount};
use holdup_evidence::{Cause, DeviceNumber, SystemFacts};
use std::path::Path;

/// Names what only the machine's facts can name.
pub fn name_resource(resource: &mut Resource, cause: Cause, facts: &SystemFacts) {
    name_peer(resource, facts);
    name_memory_limit(resource, cause, facts);
    let number = resource.detail.get("device").and_then(|text| parse(text));
    let mount = mount_of(resource, number, facts);
    let Some(number) = number.or(mount.map(|mount| mount.device)) else {
        return;
    };
    if let Some(mount) = mount {
        add(resource, "mount", &mount.target);
        add(resource, "file_system", &mount.file_system);
    }
    add(resource, "device", &number.to_string());
    let device = device_of(number, mount, facts);
    if let Some(device) = device {
        add(resource, "device_name", &device.name);
        if let Some(file) = &device.backing_file {
            add(resource, "backing_file", file);
        }
        if let Some(disk) = &device.disk {
            add(resource, "disk", disk);
        }
    } else if let Some(mount) = mount.filter(|mount| mount.source.starts_with("/dev/")) {
        add(resource, "device_name", mount.source.trim_start_matches("/dev/"));
    }
    name_io_limit(resource, cause, number, device, facts);
}

/// The process at the other end of a Unix socket, where it is outside the run.
fn name_peer(resource: &mut Resource, facts: &SystemFacts) {
    let pid = resource.detail.get("peer_pid").and_then(|pid| pid.parse().ok());
    if let Some(name) = pid.and_then(|pid: u32| facts.processes.get(&pid)) {
        add(resource, "peer_process", name);
    }
}

/// memory.high and memory.max, with their values.
fn name_memory_limit(resource: &mut Resource, cause: Cause, facts: &SystemFacts) {
    let cgroup = &facts.cgroup;
    let in_cgroup = resource
        .detail
        .get("function")
        .is_some_and(|function| function.contains("cgroup"));
    let (setting, value) = match cause {
        Cause::MemLimit => ("memory.high", cgroup.memory_high),
        Cause::MemReclaim if in_cgroup => ("memory.max", cgroup.memory_max),
        _ => return,
    };
    let (Some(value), Some(path)) = (value, &cgroup.path) else {
        return;
    };
    resource.kind = ResourceKind::Cgroup;
    resource.name = format!("{setting} = {value} of cgroup {path}");
    add(resource, "cgroup", path);
}

fn add(resource: &mut Resource, key: &str, value: &str) {
    resource
        .detail
        .entry(key.to_owned())
        .or_insert_with(|| value.to_owned());
}

/// Reads `major:minor`.
fn parse(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// The mount a resource is on: by its device, and among several of that device by its path.
fn mount_of<'a>(
    resource: &Resource,
    number: Option<DeviceNumber>,
    facts: &'a SystemFacts,
) -> Option<&'a Mount> {
    let path = (resource.kind == ResourceKind::File && resource.name.starts_with('/'))
        .then(|| Path::new(&resource.name));
    let contains = |mount: &&Mount| path.is_some_and(|path| path.starts_with(&mount.target));
    let nearest = |mounts: &mut dyn Iterator<Item = &'a Mount>| {
        mounts.filter(contains).max_by_key(|mount| mount.target.len())
    };
    match number {
        Some(number) => {
            let of_device = || facts.mounts.iter().filter(move |mount| mount.device == number);
            nearest(&mut of_device()).or_else(|| of_device().next())
        }
        None => nearest(&mut facts.mounts.iter()),
    }
}

/// The block device of a number. File systems on several devices have a number of their own: then it is what
/// is mounted there.
fn device_of<'a>(
    number: DeviceNumber,
    mount: Option<&Mount>,
    facts: &'a SystemFacts,
) -> Option<&'a BlockDevice> {
    let by_number = facts.block_devices.iter().find(|device| device.number == number);
    by_number.or_else(|| {
        let name = mount?.source.strip_prefix("/dev/")?;
        facts.block_devices.iter().find(|device| device.name == name)
    })
}

/// Replaces the file or device by the cgroup's limit on that device and direction, if there is one.
fn name_io_limit(
    resource: &mut Resource,
    cause: Cause,
    number: DeviceNumber,
    device: Option<&BlockDevice>,
    facts: &SystemFacts,
) {
    let writes = match cause {
        Cause::DiskRead => false,
        Cause::DiskWrite
        | Cause::DiskSync
        | Cause::DiskWriteback
        | Cause::DiskJournal
        | Cause::DiskDiscard => true,
        _ => return,
    };
    let disk = device.and_then(|device| device.disk.as_ref());
    let disk = facts.block_devices.iter().find(|other| Some(&other.name) == disk);
    let numbers = [
        Some(number),
        device.map(|device| device.number),
        disk.map(|disk| disk.number),
    ];
    let limits: Vec<&IoLimit> = facts
        .cgroup
        .io_limits
        .iter()
        .filter(|limit| {
            numbers.contains(&Some(limit.device)) && limits_writes(&limit.setting) == Some(writes)
        })
        .collect();
    let Some(first) = limits.first() else {
        return;
    };
    if resource.kind == ResourceKind::File {
        let file = std::mem::take(&mut resource.name);
        add(resource, "file", &file);
    }
    let names: Vec<String> = limits
        .iter()
        .map(|limit| format!("{} {} = {}", limit.setting, limit.device, limit.value))
        .collect();
    resource.kind = ResourceKind::Cgroup;
    resource.name = format!("{} of cgroup {}", names.join(", "), first.cgroup);
    resource.detail.insert("cgroup".to_owned(), first.cgroup.clone());
}

/// Whether a setting limits writes (or reads): `blkio.throttle.write_bps_device`, `io.max wiops`.
fn limits_writes(setting: &str) -> Option<bool> {
    let last = setting.rsplit(['.', ' ']).next().unwrap_or(setting);
    if last.starts_with("write") || matches!(last, "wiops" | "wbps") {
        Some(true)
    } else if last.starts_with("read") || matches!(last, "riops" | "rbps") {
        Some(false)
    } else {
        None
    }
}
