//! `lsblk`: block devices, as a tree or a list, with any columns.
//!
//! In: a head beginning with `NAME` and a line for each device, the tree's characters there or lost, columns aligned or
//! not. Out: devices. A field's column is known by what it is, not by where it stands, because pasted text has lost that; what
//! could be anything (a label) is left out.

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::json;
use crate::numbers::{whole, words};
use crate::sizes;
use holdup_evidence::observed::{Quote, SeenDevice};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("lsblk", Family::Host, recognise)
    .about("lsblk")
    .openings(&[
        "NAME MAJ:MIN",
        "NAME FSTYPE",
        "NAME TYPE SIZE FSTYPE",
        "NAME TYPE SIZE MOUNTPOINT",
        "NAME TYPE FSTYPE",
        "NAME TYPE MOUNTPOINT",
        "NAME SIZE",
        "NAME MOUNTPOINT",
        "NAME KNAME",
        "NAME LABEL",
        "NAME UUID",
        "NAME ROTA",
        "NAME RM",
    ]);

/// Columns of which at least one must be in a head, for it to be one of lsblk.
const COLUMNS: &[&[u8]] = &[
    b"MAJ:MIN",
    b"FSTYPE",
    b"MOUNTPOINT",
    b"MOUNTPOINTS",
    b"FSSIZE",
    b"ROTA",
    b"PARTTYPE",
    b"PKNAME",
];

/// Kinds of devices.
const KINDS: &[&[u8]] = &[
    b"disk", b"part", b"lvm", b"loop", b"rom", b"crypt", b"mpath", b"dm", b"md", b"linear", b"raid0",
    b"raid1", b"raid4", b"raid5", b"raid6", b"raid10", b"zram", b"dmraid", b"swap",
];

/// What is found on devices.
const FILE_SYSTEMS: &[&[u8]] = &[
    b"swap",
    b"swsuspend",
    b"ext2",
    b"ext3",
    b"ext4",
    b"xfs",
    b"btrfs",
    b"vfat",
    b"exfat",
    b"ntfs",
    b"iso9660",
    b"udf",
    b"squashfs",
    b"erofs",
    b"f2fs",
    b"jfs",
    b"reiserfs",
    b"nilfs2",
    b"bcachefs",
    b"bcache",
    b"ocfs2",
    b"gfs2",
    b"zfs_member",
    b"LVM2_member",
    b"LVM1_member",
    b"crypto_LUKS",
    b"BitLocker",
    b"linux_raid_member",
    b"isw_raid_member",
    b"ddf_raid_member",
    b"drbd",
    b"ceph_bluestore",
    b"VMFS",
    b"minix",
    b"hfsplus",
    b"apfs",
];

fn recognise(head: &[u8]) -> Sureness {
    let header = head
        .split(|byte| *byte == b'\n')
        .any(|line| Head::of(line).is_some());
    if header { Sureness::Certain } else { Sureness::No }
}

/// Which columns there are.
#[derive(Debug, Clone, Copy)]
struct Head {
    kind: bool,
    size: bool,
    file_system: bool,
    mount: bool,
}

impl Head {
    fn of(line: &[u8]) -> Option<Head> {
        let mut all = words(line);
        if all.next() != Some(b"NAME") {
            return None;
        }
        let there = |name: &[u8]| all.clone().any(|word| word == name);
        COLUMNS.iter().any(|name| there(name)).then(|| Head {
            kind: there(b"TYPE"),
            size: there(b"SIZE"),
            file_system: there(b"FSTYPE"),
            mount: there(b"MOUNTPOINT") || there(b"MOUNTPOINTS"),
        })
    }

    /// A line below the head.
    fn device(&self, line: &[u8]) -> Option<SeenDevice> {
        let mut fields = words(line);
        let name = fields.next()?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:+!@".contains(byte);
        if !name.iter().all(is_name) || !name.first()?.is_ascii_alphanumeric() && !name.starts_with(b"/dev/")
        {
            return None;
        }
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let mut device = SeenDevice {
            name: text(name),
            file_system: self.file_system.then(String::new),
            mount: self.mount.then(String::new),
            ..SeenDevice::default()
        };
        let (mut kind, mut size, mut other) = (self.kind, self.size, 0);
        let mut any = false;
        for word in fields {
            let is_empty = |one: &Option<String>| one.as_ref().is_some_and(String::is_empty);
            // Some kinds and some file systems have one name.
            let swap = word == b"swap" && is_empty(&device.file_system);
            if kind && KINDS.contains(&word) && !swap {
                device.kind = text(word);
                kind = false;
            } else if size && let Some(bytes) = sizes::with_unit(word) {
                device.size = Some(bytes as u64);
                size = false;
            } else if is_empty(&device.file_system) && FILE_SYSTEMS.contains(&word) {
                device.file_system = Some(text(word));
            } else if is_empty(&device.mount) && (word.starts_with(b"/") || word == b"[SWAP]") {
                device.mount = Some(text(word));
            } else if word.contains(&b':') || whole(word).is_some() {
                // Device numbers, flags.
            } else {
                other += 1;
                continue;
            }
            any = true;
        }
        // A word that is none of those may be a file system that is not on the list.
        if other > 0 && device.file_system.as_ref().is_some_and(String::is_empty) {
            device.file_system = None;
        }
        // With `-f` an empty disk has nothing in its columns.
        (any || is_disk(name)).then_some(device)
    }
}

/// Whether a name alone tells that it is one of a block device.
fn is_disk(name: &[u8]) -> bool {
    const BEGIN: [&[u8]; 11] = [
        b"sd", b"vd", b"xvd", b"hd", b"nvme", b"mmcblk", b"dm-", b"md", b"sr", b"nbd", b"zram",
    ];
    BEGIN.iter().any(|begin| name.starts_with(begin))
}

#[derive(Debug, Default)]
struct Reader {
    head: Option<Head>,
    /// Depth and name of the devices above the current one.
    above: Vec<(usize, String)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        if let Some(head) = Head::of(line) {
            self.head = Some(head);
            self.above.clear();
            return Understood::Evidence;
        }
        let Some(head) = self.head else {
            return Understood::No;
        };
        let (depth, rest) = without_tree(line);
        // Further mount points of the device above stand in lines of their own.
        if rest.starts_with(b"/") && !rest.starts_with(b"/dev/") || rest == b"[SWAP]" {
            return Understood::Ignorable;
        }
        let Some(device) = head.device(rest) else {
            return Understood::No;
        };
        while self.above.last().is_some_and(|(above, _)| *above >= depth) {
            self.above.pop();
        }
        let parent = self.above.last().map(|(_, name)| name.clone());
        self.above.push((depth, device.name.clone()));
        out.device(SeenDevice {
            parent,
            quote: out.here(),
            ..device
        });
        Understood::Evidence
    }
}

/// How deep a device is in the tree, in characters, and its line without them.
fn without_tree(line: &[u8]) -> (usize, &[u8]) {
    let mut rest = line;
    let mut depth = 0;
    loop {
        rest = match rest {
            [b' ' | b'|' | b'`' | b'-' | b'\t', rest @ ..] => rest,
            // Box drawing, and the no-break space.
            [0xe2, 0x94, _, rest @ ..] | [0xc2, 0xa0, rest @ ..] => rest,
            _ => return (depth, rest.trim_ascii_end()),
        };
        depth += 1;
    }
}

/// `lsblk -J`.
pub(crate) static JSON: Format = Format::new(
    "lsblk-json",
    Family::Host,
    |head| {
        let head = head.trim_ascii_start();
        let begins = head.starts_with(b"{") && memchr::memmem::find(head, b"\"blockdevices\"").is_some();
        if begins { Sureness::Certain } else { Sureness::No }
    },
    Shape::Document(document),
)
.about("lsblk -J");

/// How deep devices can be in each other; the kernel's stacking ends before.
const DEEPEST: usize = 32;

fn document(bytes: &[u8], out: &mut Out<'_>) {
    if !json::is_within(bytes) {
        return out.problem("more devices than any machine has");
    }
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<serde_json::Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return out.problem(format!("not whole: {error}")),
        None => return,
    };
    out.at_line(1);
    let mut count = 0;
    if let Some(list) = value.get("blockdevices") {
        json_devices(list, None, 0, &mut count, out);
    }
    let account = out.account();
    account.lines += count;
    account.evidence += count;
}

fn json_devices(
    list: &serde_json::Value,
    parent: Option<&str>,
    depth: usize,
    count: &mut u64,
    out: &mut Out<'_>,
) {
    for one in list.as_array().into_iter().flatten().filter(|_| depth < DEEPEST) {
        let Some(name) = one.get("name").and_then(|name| name.as_str()) else {
            continue;
        };
        // `null` is none; a key that is not there is not known.
        let describe = |key: &str| {
            one.get(key)
                .map(|value| value.as_str().unwrap_or_default().to_owned())
        };
        let first = one.get("mountpoints").and_then(|all| all.as_array());
        let first = first.map(|all| {
            let mut mounted = all.iter().filter_map(|mount| mount.as_str());
            mounted.next().unwrap_or_default().to_owned()
        });
        let size = one.get("size").and_then(|size| match size.as_str() {
            Some(text) => sizes::with_unit(text.as_bytes()).map(|bytes| bytes as u64),
            None => size.as_u64(),
        });
        *count += 1;
        out.device(SeenDevice {
            name: name.to_owned(),
            kind: describe("type").unwrap_or_default(),
            size,
            file_system: describe("fstype"),
            mount: describe("mountpoint").or(first),
            parent: parent.map(str::to_owned),
            quote: Quote {
                line: 0,
                ..out.here()
            },
        });
        if let Some(children) = one.get("children") {
            json_devices(children, Some(name), depth + 1, count, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const LIST: &str = "NAME    TYPE  SIZE FSTYPE MOUNTPOINT LABEL
xvdj    disk  100G ext4   /mnt/v     data
xvde    disk    6G
`-xvde1 part    6G ext4   /
xvde3   disk  896M swap
xvdk    disk    2G
";

    #[test]
    fn a_list_with_empty_fields() {
        for text in [
            LIST.to_owned(),
            LIST.split(' ')
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" "),
        ] {
            let reading = read_text("l", text.as_bytes());
            let devices = &reading.observed.devices;
            assert_eq!(devices.len(), 5, "{text}");
            assert_eq!(devices[2].parent.as_deref(), Some("xvde"));
            assert_eq!(devices[3].file_system.as_deref(), Some("swap"));
            assert_eq!(devices[3].mount.as_deref(), Some(""));
            assert_eq!(
                (devices[4].size, devices[4].file_system.as_deref()),
                (Some(2 << 30), Some(""))
            );
            assert_eq!(reading.accounts[0].not_understood, 0);
        }
    }

    #[test]
    fn the_tree_and_json_say_the_same() {
        let tree = "NAME        MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS
sda           8:0    0 931,5G  0 disk
\u{251c}\u{2500}sda1        8:1    0   512M  0 part /boot/efi
\u{2502}                                     /boot
\u{2514}\u{2500}sda2        8:2    0     4G  0 part [SWAP]
";
        let reading = read_text("l", tree.as_bytes());
        assert_eq!(reading.accounts[0].not_understood, 0);
        let json = r#"{"blockdevices": [{"name":"sda","maj:min":"8:0","size":"931.5G","type":"disk","mountpoints":[null],
            "children": [{"name":"sda1","size":"512M","type":"part","mountpoints":["/boot/efi","/boot"]},
                         {"name":"sda2","size":4294967296,"type":"part","mountpoints":["[SWAP]"]}]}]}"#;
        let other = read_text("l", json.as_bytes());
        let look_up = |reading: &crate::Reading| -> Vec<_> {
            let devices = reading.observed.devices.iter();
            devices
                .map(|d| (d.name.clone(), d.size, d.mount.clone(), d.parent.clone()))
                .collect()
        };
        assert_eq!(look_up(&reading), look_up(&other));
        assert_eq!(look_up(&reading)[2].2.as_deref(), Some("[SWAP]"));
    }

    #[test]
    fn rubbish_and_cut_lines() {
        for cut in 0..LIST.len() {
            let mut text = LIST.as_bytes()[..cut].to_vec();
            text.extend_from_slice(b"\n\xe2\x94\n\xff\x00\n`-`-`-\n");
            assert!(
                read_text("l", &text)
                    .accounts
                    .iter()
                    .map(|account| account.lines)
                    .sum::<u64>()
                    >= 3
            );
        }
        let cut = br#"{"blockdevices": [{"name":"sda""#;
        assert_eq!(read_text("l", cut).accounts[0].problems.len(), 1);
    }
}
