//! `/proc/PID/limits` and the number of links in `/proc/PID/fd`: whether a process can open one more descriptor.

use crate::root::{Root, text_if_there};
use holdup_evidence::facts::DescriptorLimit;
use std::os::unix::fs::MetadataExt;

/// Descriptors that are counted one by one, where the kernel does not tell their number (it does since Linux 6.2).
const COUNTED_MAX: usize = 65_536;

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
    use super::{limits, read};
    use crate::root::Root;

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
