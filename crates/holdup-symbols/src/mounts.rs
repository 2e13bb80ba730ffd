//! File systems that must not be touched.
//!
//! Opening a file on FUSE or NFS can block for as long as its server likes, and that server may be the very
//! thing that is being observed. The answer must come before the first open, so it is read from the text of
//! `/proc/PID/mountinfo`, which never blocks. In comes that text, out comes a yes or no for a device and a
//! path.

use holdup_knowledge::file_systems::{self, is_below};

/// The mounts of one mount namespace.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Vec<Mount>);

#[derive(Debug)]
struct Mount {
    id: u32,
    device: (u32, u32),
    point: String,
    kind: String,
    source: String,
    options: String,
    remote: bool,
}

impl Mount {
    fn known(&self) -> file_systems::Mount<'_> {
        file_systems::Mount {
            target: &self.point,
            file_system: &self.kind,
            source: &self.source,
            options: &self.options,
        }
    }
}

impl Mounts {
    /// Reads the text of a `mountinfo` file; lines that make no sense are left out.
    pub(crate) fn parse(text: &str) -> Self {
        let mut mounts: Vec<Mount> = text.lines().filter_map(parse_line).collect();
        let table: Vec<file_systems::Mount<'_>> = mounts.iter().map(Mount::known).collect();
        let blocking = file_systems::blocking(&table);
        for (mount, remote) in mounts.iter_mut().zip(blocking) {
            mount.remote = remote;
        }
        Self(mounts)
    }

    /// Whether the mount with this number is of a remote file system; `None` where it is not here.
    pub(crate) fn remote(&self, id: u32) -> Option<bool> {
        self.0
            .iter()
            .find(|mount| mount.id == id)
            .map(|mount| mount.remote)
    }

    /// Whether the file system with this device number is mounted here.
    pub(crate) fn lists(&self, device: (u32, u32)) -> bool {
        self.0.iter().any(|mount| mount.device == device)
    }

    /// Whether the file system with this device number is a remote one.
    pub(crate) fn remote_device(&self, device: (u32, u32)) -> bool {
        self.0.iter().any(|mount| mount.remote && mount.device == device)
    }

    /// Whether walking to `path` would cross a remote file system.
    pub(crate) fn remote_path(&self, path: &str) -> bool {
        self.0
            .iter()
            .any(|mount| mount.remote && is_below(path, &mount.point))
    }
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - TYPE SOURCE OPTIONS`
fn parse_line(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ');
    let id = fields.next()?.parse().ok()?;
    let mut fields = fields.skip(1);
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let point = unescape(fields.nth(1)?);
    let mut after = after.split(' ');
    let kind = after.next()?.to_owned();
    let source = unescape(after.next().unwrap_or_default());
    let options = unescape(after.next().unwrap_or_default());
    Some(Mount {
        id,
        device,
        point,
        kind,
        source,
        options,
        remote: false,
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits behind a backslash.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:45 / /mnt/my\\040share rw - nfs4 server:/x rw
31 22 0:46 / /home/me/remote rw shared:2 master:3 - fuse.sshfs me@host: rw
32 22 0:47 / /run/vm rw - virtiofs vm rw
33 22 0:48 / /media/usb rw - fuseblk /dev/sdb1 rw
broken line
34 22 x:1 / /odd rw - ext4 /dev/sdc rw
35 22 0:49 / /mnt/auto rw - autofs systemd-1 rw
36 22 0:50 / /mnt/local rw - overlay overlay rw,lowerdir=/usr:/opt,upperdir=/up,workdir=/work
37 22 0:51 / /mnt/both rw - overlay overlay rw,lowerdir=/usr:/mnt/my\\040share/base,upperdir=/up,workdir=/work
";

    #[test]
    fn remote_file_systems_are_known_by_device() {
        let mounts = Mounts::parse(TEXT);
        for device in [(0, 45), (0, 46), (0, 48), (0, 49), (0, 51)] {
            assert!(mounts.remote_device(device), "{device:?}");
        }
        for device in [(8, 1), (0, 47), (0, 50), (0, 99)] {
            assert!(!mounts.remote_device(device), "{device:?}");
        }
        assert_eq!(
            [22, 31, 99].map(|id| mounts.remote(id)),
            [Some(false), Some(true), None]
        );
        assert!(mounts.lists((8, 1)));
        assert!(!mounts.lists((0, 99)));
    }

    #[test]
    fn remote_file_systems_are_known_by_path() {
        let mounts = Mounts::parse(TEXT);
        assert!(mounts.remote_path("/mnt/my share/lib/x.so"));
        assert!(mounts.remote_path("/home/me/remote"));
        assert!(!mounts.remote_path("/home/me/remote-not/x"));
        assert!(!mounts.remote_path("/usr/lib/x.so"));
    }

    #[test]
    fn a_remote_root_covers_every_path() {
        let mounts = Mounts::parse("22 1 0:30 / / rw - nfs server:/ rw\n");
        assert!(mounts.remote_path("/usr/lib/x.so"));
    }
}
