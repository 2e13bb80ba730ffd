//! Block devices with a swap area on them, whether or not it is switched on.
//!
//! In: the machine's block devices. Out: what is on each, as far as it can be known without waiting: by what the device manager
//! noted when it saw the device, else, for root, by the signature on the device itself. Reading a device can block for as
//! long as it does not answer, and wakes a disk that sleeps: [`signature`] is for a process that can be left behind, and is
//! asked only of devices that the device manager knows nothing of.

use crate::root::{Root, text_if_there};
use holdup_evidence::DeviceNumber;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// Bytes in which a signature is, at the end of the first page: pages have 4 KiB to 64 KiB.
const HEAD: usize = 64 << 10;

/// What stands in the last ten bytes of the first page.
const SIGNATURES: [&[u8]; 2] = [b"SWAPSPACE2", b"SWAP-SPACE"];

/// Names of devices that hold no swap area of anybody's, or that it costs something to read.
const PASSED: [&str; 6] = ["dm-", "fd", "md", "ram", "sr", "zram"];

/// What the device manager knows to be on a device: the file system, empty for none; `None` if it knows nothing of it.
#[must_use]
pub fn noted(root: &Root, device: DeviceNumber) -> Option<String> {
    let file = root.run().join("udev/data").join(format!("b{device}"));
    let text = text_if_there(&file)?;
    let kind = text.lines().find_map(|line| line.strip_prefix("E:ID_FS_TYPE="));
    Some(kind.unwrap_or_default().to_owned())
}

/// Whether a device of this name is one to be read.
#[must_use]
pub fn is_worth_reading(name: &str) -> bool {
    !PASSED.iter().any(|start| name.starts_with(start))
}

/// Whether a swap signature is on a device; `None` if it can't be read.
#[must_use]
pub fn signature(root: &Root, name: &str) -> Option<bool> {
    // The kernel's names of devices have `!` where their files have `/`.
    let file = root.dev.join(name.replace('!', "/"));
    let mut head = Vec::with_capacity(HEAD);
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(file)
        .ok()?
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .ok()?;
    let pages = [4096, 8192, 16384, 32768, 65536];
    let is_it = |end: usize| {
        let last = end.checked_sub(10).and_then(|start| head.get(start..end));
        last.is_some_and(|last| SIGNATURES.contains(&last))
    };
    Some(pages.into_iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::{noted, signature};
    use crate::root::Tree;
    use holdup_evidence::DeviceNumber;

    #[test]
    fn notes_come_first_and_signatures_are_known() {
        let tree = Tree::new(&[
            ("run/udev/data/b8:2", "S:disk/by-uuid/x\nE:ID_FS_TYPE=swap\n"),
            ("run/udev/data/b8:3", "E:ID_PATH=x\n"),
            ("dev/empty", ""),
        ]);
        let number = |minor| DeviceNumber { major: 8, minor };
        assert_eq!(noted(&tree.root, number(2)).as_deref(), Some("swap"));
        assert_eq!(noted(&tree.root, number(3)).as_deref(), Some(""));
        assert_eq!(noted(&tree.root, number(4)), None);
        let mut swap = vec![0; 1 << 17];
        swap[4086..4096].copy_from_slice(b"SWAPSPACE2");
        std::fs::write(tree.path("dev/swap"), swap).unwrap();
        assert_eq!(signature(&tree.root, "swap"), Some(true));
        assert_eq!(signature(&tree.root, "empty"), Some(false));
        assert_eq!(signature(&tree.root, "none"), None);
    }
}
