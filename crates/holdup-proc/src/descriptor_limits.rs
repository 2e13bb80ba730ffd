//! `/proc/PID/limits` and the number of links in `/proc/PID/fd`: whether a process can open one more descriptor.

use crate::root::{Root, text_if_there};
use holdup_evidence::facts::DescriptorLimit;
use std::os::unix::fs::MetadataExt;

/// Descriptors that are counted one by one, where the kernel does not tell their number (it does since Linux 6.2).
const COUNTED_MAX: usize = 65_536;

/// Above one in so many descriptors beyond the limit, the limit was lowered below what was open.
const BEYOND_PART: usize = 4;

/// How the line of this limit begins.
const LINE: &str = "Max open files";

/// What a limit is called that there is not.
const NONE: &str = "unlimited";

/// The limit and the number of a process; `None` where either is not known.
#[must_use]
pub fn read(root: &Root, pid: u32) -> Option<DescriptorLimit> {
    let process = root.proc.join(pid.to_string());
    let (soft, hard) = limits(&text_if_there(&process.join("limits"))?)?;
    let folder = process.join("fd");
    let found = std::fs::metadata(&folder).ok()?.size();
    let open = match found {
        0 => std::fs::read_dir(&folder)
            .ok()?
            .flatten()
            .take(COUNTED_MAX)
            .count() as u64,
        found => found,
    };
    Some(DescriptorLimit {
        pid,
        open,
        soft,
        hard,
    })
}

/// The limit of a process that can open nothing more; `None` where it can, or where that is not known.
///
/// Each number below the limit must be in use: only those are given out. A process that lowers its limit far below what it has open does
/// so on purpose, to open nothing from then on, as a part of a server that gives up its rights. Whoever starts a program may leave it a
/// few numbers beyond the limit, so not every such number is a sign of that.
#[must_use]
pub fn used_up(root: &Root, pid: u32) -> Option<DescriptorLimit> {
    let limit = read(root, pid).filter(|one| one.open >= one.soft)?;
    let most = usize::try_from(limit.soft).unwrap_or(usize::MAX);
    if most > COUNTED_MAX {
        return Some(limit);
    }
    let folder = std::fs::read_dir(root.proc.join(pid.to_string()).join("fd")).ok()?;
    let numbers = folder.flatten().take(COUNTED_MAX.saturating_mul(2));
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let (within, beyond): (Vec<u64>, Vec<u64>) = numbers.partition(|number| *number < limit.soft);
    let lowered = beyond.len().saturating_mul(BEYOND_PART) > within.len();
    (within.len() >= most && !lowered).then_some(limit)
}

/// `Max open files            1024                 524288               files`.
fn limits(text: &str) -> Option<(u64, u64)> {
    let rest = text.lines().find_map(|line| line.strip_prefix(LINE))?;
    let mut words = rest.split_ascii_whitespace();
    let mut number = || match words.next()? {
        NONE => Some(u64::MAX),
        word => word.parse().ok(),
    };
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::{limits, read, used_up};
    use crate::root::{Root, Tree};

    /// A process with these descriptors and this limit.
    fn has(limit: u64, numbers: impl Iterator<Item = u64>) -> bool {
        let limits =
            format!("Max open files            {limit}                 524288               files     \n");
        let names: Vec<String> = numbers.map(|number| format!("proc/7/fd/{number}")).collect();
        let mut files = vec![("proc/7/limits", limits.as_str())];
        files.extend(names.iter().map(|name| (name.as_str(), "")));
        let tree = Tree::new(&files);
        used_up(&tree.root, 7).is_some()
    }

    #[test]
    fn numbers_that_are_given_out_must_be_used_up() {
        assert!(has(20, 0..20));
        assert!(!has(20, 0..19), "one is free");
        assert!(has(20, (0..20).chain([255])), "its parent has left it one more");
        assert!(!has(20, (0..19).chain([255])), "below the limit, one is free");
    }

    #[test]
    fn a_limit_that_was_lowered_below_what_is_open_is_no_trouble() {
        assert!(
            !has(1, 0..6),
            "a part of a server that may open nothing from now on"
        );
        assert!(!has(0, 0..6), "the same");
        assert!(!has(16, 0..64), "most of what it has is beyond");
    }

    #[test]
    fn limits_are_read_and_descriptors_counted() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             100                  100                  processes \n\
                    Max open files            1024                 unlimited            files     \n";
        assert_eq!(limits(text), Some((1024, u64::MAX)));
        assert_eq!(limits("Max open files x"), None);
        let own = read(&Root::system(), std::process::id()).unwrap();
        assert!(
            own.open >= 3 && own.open <= own.soft && own.soft <= own.hard,
            "{own:?}"
        );
        assert_eq!(read(&Root::system(), u32::MAX), None);
    }
}
