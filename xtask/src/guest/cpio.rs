//! The archive that a kernel unpacks as its first root: cpio in the form "newc".
//!
//! Written here because a folder with the right owners, modes and absolute links is harder to make than the
//! archive itself.

use std::collections::BTreeSet;
use std::path::Path;

/// An archive that grows; [`Archive::finish`] gives its bytes.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    entries: u32,
}

/// Mode of a folder that everyone may read.
const FOLDER: u32 = 0o040_755;
/// Type bits of a regular file.
const FILE: u32 = 0o100_000;
/// Mode of a symbolic link.
const LINK: u32 = 0o120_777;
/// What ends an archive.
const TRAILER: &str = "TRAILER!!!";

impl Archive {
    /// Adds a folder, and those that it is in.
    pub(super) fn folder(&mut self, path: &str) {
        let path = path.trim_start_matches('/');
        let mut above: Vec<&str> = Path::new(path).ancestors().filter_map(Path::to_str).collect();
        above.reverse();
        for folder in above {
            if !folder.is_empty() && self.folders.insert(folder.to_owned()) {
                self.entry(folder, FOLDER, &[]);
            }
        }
    }

    /// Adds a file with these permissions, and the folders that it is in.
    pub(super) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        let path = path.trim_start_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.entry(path, FILE | permissions, content);
    }

    /// Adds a symbolic link, and the folders that it is in.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        let path = path.trim_start_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.entry(path, LINK, target.as_bytes());
    }

    /// The archive's bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size =
            u32::try_from(content.len()).expect("a file for a small memory file system is below 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a path is short");
        // inode, mode, uid, gid, links, mtime, size, device, device of a node, name's size, no checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    /// Names, modes and sizes, read back by the format's own rules.
    fn entries(archive: &[u8]) -> Vec<(String, u32, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < archive.len() {
            assert_eq!(&archive[at..at + 6], b"070701");
            let field = |n: usize| {
                let digits = &archive[at + 6 + n * 8..at + 14 + n * 8];
                u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
            };
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = &archive[at + 110..at + 110 + name_size - 1];
            found.push((String::from_utf8(name.to_vec()).unwrap(), mode, size));
            at = (at + 110 + name_size).next_multiple_of(4);
            at = (at + size).next_multiple_of(4);
        }
        found
    }

    #[test]
    fn folders_come_before_what_is_in_them_and_once() {
        let mut archive = Archive::default();
        archive.file("/usr/lib/a.so", 0o755, b"12345");
        archive.file("/usr/lib/b.so", 0o644, b"");
        archive.folder("/proc");
        archive.link("/bin", "usr/bin");
        let found = entries(&archive.finish());
        let found: Vec<(&str, u32, usize)> = found
            .iter()
            .map(|(name, mode, size)| (name.as_str(), *mode, *size))
            .collect();
        assert_eq!(
            found,
            [
                ("usr", 0o040_755, 0),
                ("usr/lib", 0o040_755, 0),
                ("usr/lib/a.so", 0o100_755, 5),
                ("usr/lib/b.so", 0o100_644, 0),
                ("proc", 0o040_755, 0),
                ("bin", 0o120_777, 7),
                ("TRAILER!!!", 0, 0),
            ]
        );
    }
}
