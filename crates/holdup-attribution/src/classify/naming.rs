//! The last step: device numbers become names, paths get their mount, and a limit that a cgroup sets is named
//! as what was waited for.
//!
//! In: a resource as a wait made it, and the machine's facts. Out: the same with more `detail`; for waits for
//! a disk that a cgroup limits, the limit instead of the file. What the facts do not know stays as it is.

use super::objects::served_by;
use holdup_evidence::facts::{BlockDevice, IoLimit, Mount};
use holdup_evidence::{Cause, DeviceNumber, SystemFacts};
use holdup_knowledge::functions::families;
use holdup_model::attributed::{Disk, Facts};
use holdup_model::attributed::{Resource, ResourceKind};
use std::path::Path;

/// Names what only the machine's facts can name.
pub fn name_resource(resource: &mut Resource, cause: Cause, facts: &SystemFacts) {
    name_peer(resource, facts);
    name_memory_limit(resource, cause, facts);
    name_quota(resource, cause, facts);
    name_swap(resource, cause, facts);
    name_freezer(resource, cause, facts);
    let number = resource.detail.device.as_ref().and_then(Disk::number);
    let mount = mount_of(resource, cause, number, facts);
    let Some(number) = number.or(mount.map(|mount| mount.device)) else {
        return;
    };
    let device = device_of(number, mount, facts);
    let device_name = match (device, mount) {
        (Some(device), _) => Some(device.name.clone()),
        (None, Some(mount)) if mount.source.starts_with("/dev/") => {
            Some(mount.source.trim_start_matches("/dev/").to_owned())
        }
        (None, _) => None,
    };
    resource.detail.add(Facts {
        mount: mount.map(|mount| mount.target.clone()),
        file_system: mount.map(|mount| mount.file_system.clone()),
        device: Some(Disk::Number(number)),
        device_name,
        backing_file: device.and_then(|device| device.backing_file.clone()),
        disk: device.and_then(|device| device.disk.clone()),
        ..Facts::default()
    });
    name_io_limit(resource, cause, number, device, facts);
}

/// The process at the other end of a Unix socket, where it is outside the run.
fn name_peer(resource: &mut Resource, facts: &SystemFacts) {
    let pid = resource.detail.peer_pid;
    if let Some(name) = pid.and_then(|pid| facts.processes.get(&pid)) {
        resource.detail.peer_process.get_or_insert_with(|| name.clone());
    }
}

/// memory.high and memory.max, with their values.
fn name_memory_limit(resource: &mut Resource, cause: Cause, facts: &SystemFacts) {
    let cgroup = &facts.cgroup;
    let in_cgroup = resource
        .detail
        .function
        .as_deref()
        .is_some_and(families::of_cgroup);
    let (setting, value) = match cause {
        Cause::MemLimit => ("memory.high", cgroup.memory_high),
        Cause::MemReclaim if in_cgroup => ("memory.max", cgroup.memory_max),
        _ => return,
    };
    let (Some(value), Some(path)) = (value, &cgroup.memory.cgroup) else {
        return;
    };
    resource.kind = ResourceKind::Cgroup;
    resource.name = format!("{setting} = {value} of cgroup {path}");
    resource.detail.cgroup.get_or_insert_with(|| path.clone());
}

/// The cgroup whose CPU quota is spent, with quota and period.
fn name_quota(resource: &mut Resource, cause: Cause, facts: &SystemFacts) {
    let (Cause::SchedThrottled, Some(quota)) = (cause, &facts.cgroup.cpu_quota) else {
        return;
    };
    resource.kind = ResourceKind::Cgroup;
    resource.name.clone_from(&quota.cgroup);
    resource.detail.quota_us.get_or_insert(quota.quota_us);
    resource.detail.period_us.get_or_insert(quota.period_us);
}

/// Where memory comes back from: of several areas all, for which of them it was is not known.
fn name_swap(resource: &mut Resource, cause: Cause, facts: &SystemFacts) {
    if cause != Cause::MemSwapin || facts.swaps.is_empty() {
        return;
    }
    let areas: Vec<&str> = facts.swaps.iter().map(|area| area.path.as_str()).collect();
    resource.kind = ResourceKind::Device;
    resource.name = format!("swap on {}", areas.join(", "));
    if let [only] = areas.as_slice() {
        let name = only.trim_start_matches("/dev/").to_owned();
        resource.detail.device_name.get_or_insert(name);
    }
    if let Some(cgroup) = &facts.cgroup.memory.cgroup {
        resource.detail.cgroup.get_or_insert_with(|| cgroup.clone());
    }
}

/// The cgroup that was frozen.
fn name_freezer(resource: &mut Resource, cause: Cause, facts: &SystemFacts) {
    if let (Cause::ProcessFrozen, Some(cgroup)) = (cause, &facts.cgroup.freezer) {
        resource.kind = ResourceKind::Cgroup;
        resource.name.clone_from(cgroup);
    }
}

/// The mount a resource is on: by its device, and among several of that device by its path. A path alone may lead over a link
/// to another file system: where a daemon or another machine was waited for, it is one of those.
fn mount_of<'a>(
    resource: &Resource,
    cause: Cause,
    number: Option<DeviceNumber>,
    facts: &'a SystemFacts,
) -> Option<&'a Mount> {
    // A FIFO has a path and no device that matters.
    let file = resource.kind == ResourceKind::File && resource.detail.fd_kind.is_none();
    let path = (file && resource.name.starts_with('/')).then(|| Path::new(&resource.name));
    let contains = |mount: &&Mount| path.is_some_and(|path| path.starts_with(&mount.target));
    let nearest = |mounts: &mut dyn Iterator<Item = &'a Mount>| {
        mounts.filter(contains).max_by_key(|mount| mount.target.len())
    };
    match number {
        Some(number) => {
            let of_device = || facts.mounts.iter().filter(move |mount| mount.device == number);
            nearest(&mut of_device()).or_else(|| of_device().next())
        }
        None => nearest(&mut facts.mounts.iter()).filter(|mount| match cause {
            Cause::FsFuse | Cause::FsNetwork => served_by(&mount.file_system) == Some(cause),
            _ => true,
        }),
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
        resource.detail.file.get_or_insert(file);
    }
    let names: Vec<String> = limits
        .iter()
        .map(|limit| format!("{} {} = {}", limit.setting, limit.device, limit.value))
        .collect();
    resource.kind = ResourceKind::Cgroup;
    resource.name = format!("{} of cgroup {}", names.join(", "), first.cgroup);
    resource.detail.cgroup = Some(first.cgroup.clone());
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

#[cfg(test)]
mod tests {
    use super::name_resource;
    use holdup_evidence::facts::{BlockDevice, CgroupFacts, IoLimit, MemoryCgroup, Mount, SwapArea};
    use holdup_evidence::{Cause, DeviceNumber, SystemFacts};
    use holdup_model::attributed::{Resource, ResourceKind};

    fn number(major: u32, minor: u32) -> DeviceNumber {
        DeviceNumber { major, minor }
    }

    fn facts() -> SystemFacts {
        let mount = |device, target: &str, file_system: &str, source: &str| Mount {
            device,
            target: target.to_owned(),
            file_system: file_system.to_owned(),
            source: source.to_owned(),
            options: String::new(),
        };
        let device = |number, name: &str, disk: Option<&str>, backing: Option<&str>| BlockDevice {
            number,
            name: name.to_owned(),
            disk: disk.map(str::to_owned),
            backing_file: backing.map(str::to_owned),
            ..BlockDevice::default()
        };
        let limit = |device, setting: &str, value| IoLimit {
            device,
            setting: setting.to_owned(),
            value,
            cgroup: "/slow".to_owned(),
        };
        SystemFacts {
            mounts: vec![
                mount(number(8, 1), "/", "ext4", "/dev/sda1"),
                mount(number(7, 0), "/srv", "ext4", "/dev/loop0"),
                mount(number(0, 40), "/data", "btrfs", "/dev/sdb"),
                mount(number(0, 25), "/dev/shm", "tmpfs", "tmpfs"),
            ],
            block_devices: vec![
                device(number(8, 0), "sda", None, None),
                device(number(8, 1), "sda1", Some("sda"), None),
                device(number(8, 16), "sdb", None, None),
                device(number(7, 0), "loop0", None, Some("/var/disk.img")),
            ],
            cgroup: CgroupFacts {
                memory: MemoryCgroup {
                    cgroup: Some("/job".to_owned()),
                    ..MemoryCgroup::default()
                },
                memory_high: Some(4096),
                io_limits: vec![
                    limit(number(7, 0), "blkio.throttle.write_iops_device", 20),
                    limit(number(7, 0), "blkio.throttle.read_bps_device", 1000),
                    limit(number(8, 0), "io.max wiops", 50),
                    limit(number(8, 16), "io.max rbps", 7),
                ],
                ..CgroupFacts::default()
            },
            processes: [(42, "postgres".to_owned())].into(),
            ..SystemFacts::default()
        }
    }

    fn named(cause: Cause, path: &str, device: Option<&str>) -> Resource {
        let mut resource = Resource {
            kind: ResourceKind::File,
            name: path.to_owned(),
            ..Resource::default()
        };
        if let Some(device) = device {
            resource.detail.device = Some(device.into());
        }
        name_resource(&mut resource, cause, &facts());
        resource
    }

    #[test]
    fn a_limit_that_a_cgroup_sets_is_what_is_named() {
        let sync = named(Cause::DiskSync, "/srv/f", Some("7:0"));
        assert_eq!(sync.kind, ResourceKind::Cgroup);
        assert_eq!(
            sync.name,
            "blkio.throttle.write_iops_device 7:0 = 20 of cgroup /slow"
        );
        assert_eq!(sync.detail.file.as_deref().unwrap(), "/srv/f");
        assert_eq!(sync.detail.device_name.as_deref().unwrap(), "loop0");
        assert_eq!(sync.detail.backing_file.as_deref().unwrap(), "/var/disk.img");
        assert_eq!(sync.detail.mount.as_deref().unwrap(), "/srv");
        let read = named(Cause::DiskRead, "/srv/f", Some("7:0"));
        assert_eq!(
            read.name,
            "blkio.throttle.read_bps_device 7:0 = 1000 of cgroup /slow"
        );
        // A partition is limited with its disk; reads of it are not limited here.
        assert_eq!(
            named(Cause::DiskWrite, "/f", Some("8:1")).name,
            "io.max wiops 8:0 = 50 of cgroup /slow"
        );
        assert_eq!(named(Cause::DiskRead, "/f", Some("8:1")).name, "/f");
        // A file system with a number of its own is known by what is mounted.
        assert_eq!(
            named(Cause::DiskRead, "/data/f", Some("0:40"))
                .detail
                .device_name
                .as_deref()
                .unwrap(),
            "sdb"
        );
        assert_eq!(
            named(Cause::DiskRead, "/data/f", Some("0:40")).kind,
            ResourceKind::Cgroup
        );
        // A mapped file stays the file.
        assert_eq!(named(Cause::MemPagefault, "/srv/f", Some("7:0")).name, "/srv/f");
    }

    #[test]
    fn a_path_alone_finds_its_mount() {
        let unlinked = named(Cause::DiskJournal, "/srv/dir/f", None);
        assert_eq!(unlinked.detail.texts()["device"], "7:0");
        assert_eq!(unlinked.kind, ResourceKind::Cgroup);
        let elsewhere = named(Cause::DiskRead, "/srvx/f", None);
        assert_eq!(elsewhere.detail.mount.as_deref().unwrap(), "/");
        let relative = named(Cause::DiskRead, "f", None);
        assert!(relative.detail.is_empty());
        // Over a link.
        let served = named(Cause::FsFuse, "/srv/link/f", None);
        assert!(served.detail.is_empty());
    }

    #[test]
    fn what_has_no_device_gets_none() {
        let shared = named(Cause::LockFile, "/dev/shm/x", Some("0:25"));
        assert!(shared.detail.device_name.is_none());
        let unknown = named(Cause::DiskRead, "/somewhere/else", Some("9:9"));
        assert_eq!(unknown.name, "/somewhere/else");
        assert!(unknown.detail.device_name.is_none());
    }

    #[test]
    fn swap_areas_and_frozen_cgroups_are_named() {
        let mut facts = facts();
        facts.swaps = vec![SwapArea {
            path: "/dev/sda2".to_owned(),
            ..SwapArea::default()
        }];
        facts.cgroup.memory.cgroup = Some("/job".to_owned());
        facts.cgroup.freezer = Some("/paused".to_owned());
        let mut swap = Resource::default();
        name_resource(&mut swap, Cause::MemSwapin, &facts);
        assert_eq!(
            (swap.name.as_str(), swap.detail.device_name.as_deref().unwrap()),
            ("swap on /dev/sda2", "sda2")
        );
        assert_eq!(swap.detail.cgroup.as_deref().unwrap(), "/job");
        let mut frozen = Resource::default();
        name_resource(&mut frozen, Cause::ProcessFrozen, &facts);
        assert_eq!(
            (frozen.kind, frozen.name.as_str()),
            (ResourceKind::Cgroup, "/paused")
        );
    }

    #[test]
    fn peers_and_memory_limits_are_named() {
        let mut socket = Resource {
            kind: ResourceKind::Socket,
            ..Resource::default()
        };
        socket.detail.peer_pid = Some(42);
        name_resource(&mut socket, Cause::IpcUnix, &facts());
        assert_eq!(socket.detail.peer_process.as_deref().unwrap(), "postgres");
        let mut limit = Resource {
            name: "memory.high".to_owned(),
            ..Resource::default()
        };
        name_resource(&mut limit, Cause::MemLimit, &facts());
        assert_eq!(limit.name, "memory.high = 4096 of cgroup /job");
    }
}
