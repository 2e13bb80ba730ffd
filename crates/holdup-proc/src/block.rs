//! `/proc/diskstats` and `/sys/dev/block`: block devices by number.
//!
//! In: one line per device. Out: its name, what a loop device stands on, the disk that a partition belongs
//! to, whether it spins and how long it was busy. Where `/sys` isn't mounted the names are still there.

use crate::root::{Problem, Root, note, text, text_if_there};
use holdup_evidence::DeviceNumber;
use holdup_evidence::facts::BlockDevice;
use std::path::Path;

/// Field of "time spent doing I/Os", milliseconds, counted from 0 after the name.
const BUSY_FIELD: usize = 9;

/// All block devices that the kernel lists.
pub fn devices(root: &Root, problems: &mut Vec<Problem>) -> Vec<BlockDevice> {
    let file = root.proc.join("diskstats");
    let Some(text) = text(&file, problems) else {
        return Vec::new();
    };
    let mut devices = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match parse(line) {
            Some(device) => devices.push(complete(root, device)),
            None => note(
                problems,
                &file,
                Some(index + 1),
                "major, minor, name and counters expected",
            ),
        }
    }
    devices
}

fn parse(line: &str) -> Option<BlockDevice> {
    let mut fields = line.split_whitespace();
    let number = DeviceNumber {
        major: fields.next()?.parse().ok()?,
        minor: fields.next()?.parse().ok()?,
    };
    Some(BlockDevice {
        number,
        name: fields.next()?.to_owned(),
        busy_ms: fields.nth(BUSY_FIELD).and_then(|field| field.parse().ok()),
        ..BlockDevice::default()
    })
}

/// Adds what `/sys` knows. `/sys/dev/block/8:1` is a link to `…/block/sda/sda1`, so that a partition's disk
/// is the directory above it.
fn complete(root: &Root, mut device: BlockDevice) -> BlockDevice {
    let link = root.sys.join("dev/block").join(device.number.to_string());
    let Ok(directory) = link.canonicalize() else {
        return device;
    };
    let disk = if directory.join("partition").exists() {
        let disk = directory.parent().unwrap_or(&directory).to_owned();
        device.disk = disk.file_name().map(|name| name.to_string_lossy().into_owned());
        disk
    } else {
        directory.clone()
    };
    let limits = root.sys.join("class/bdi").join(device.number.to_string());
    device.dirty_limit = first_line(&limits.join("strict_limit"))
        .filter(|strict| strict == "1")
        .and_then(|_| first_line(&limits.join("max_bytes"))?.parse().ok());
    device.rotational = first_line(&disk.join("queue/rotational")).map(|value| value == "1");
    device.backing_file = first_line(&directory.join("loop/backing_file"));
    device
}

fn first_line(file: &Path) -> Option<String> {
    let text = text_if_there(file)?;
    Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::devices;
    use crate::root::Tree;
    use holdup_evidence::DeviceNumber;
    use holdup_evidence::facts::BlockDevice;

    const DISKSTATS: &str = "   8       0 sda 1 2 3 4 5 6 7 8 9 777 11\n   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11 12 13\n   7       0 loop0 1 0 2 0 0 0 0 0 0 5 0\nnonsense\n";

    #[test]
    fn partitions_loops_and_disks() {
        let tree = Tree::new(&[
            ("proc/diskstats", DISKSTATS),
            ("sys/class/bdi/8:0/strict_limit", "0\n"),
            ("sys/class/bdi/8:0/max_bytes", "4096\n"),
            ("sys/class/bdi/7:0/strict_limit", "1\n"),
            ("sys/class/bdi/7:0/max_bytes", "262144\n"),
            ("sys/devices/pci/block/sda/queue/rotational", "1\n"),
            ("sys/devices/pci/block/sda/sda1/partition", "1\n"),
            ("sys/devices/virtual/block/loop0/queue/rotational", "0\n"),
            (
                "sys/devices/virtual/block/loop0/loop/backing_file",
                "/srv/an image\n",
            ),
        ]);
        std::fs::create_dir_all(tree.path("sys/dev/block")).unwrap();
        for (number, target) in [
            ("8:0", "pci/block/sda"),
            ("8:1", "pci/block/sda/sda1"),
            ("7:0", "virtual/block/loop0"),
        ] {
            std::os::unix::fs::symlink(
                format!("../../devices/{target}"),
                tree.path(&format!("sys/dev/block/{number}")),
            )
            .unwrap();
        }
        let mut problems = Vec::new();
        let number = |major, minor| DeviceNumber { major, minor };
        assert_eq!(
            devices(&tree.root, &mut problems),
            [
                BlockDevice {
                    number: number(8, 0),
                    name: "sda".into(),
                    rotational: Some(true),
                    busy_ms: Some(777),
                    ..BlockDevice::default()
                },
                BlockDevice {
                    number: number(8, 1),
                    name: "sda1".into(),
                    disk: Some("sda".into()),
                    rotational: Some(true),
                    busy_ms: Some(10),
                    ..BlockDevice::default()
                },
                BlockDevice {
                    number: number(7, 0),
                    name: "loop0".into(),
                    backing_file: Some("/srv/an image".into()),
                    rotational: Some(false),
                    dirty_limit: Some(262_144),
                    busy_ms: Some(5),
                    ..BlockDevice::default()
                },
            ]
        );
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, Some(4));
    }

    #[test]
    fn without_sysfs_names_remain() {
        let tree = Tree::new(&[("proc/diskstats", DISKSTATS)]);
        let devices = devices(&tree.root, &mut Vec::new());
        assert_eq!(devices[1].name, "sda1");
        assert_eq!(devices[1].rotational, None);
    }
}
