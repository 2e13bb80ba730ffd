//! `/proc/self/status`: what holdup itself may do.

use crate::root::{Problem, Root, note, text};

/// Capabilities that tracing can need, by bit of `CapEff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Everything the next three allow, and more.
    SysAdmin = 21,
    /// Look into other processes' memory.
    SysPtrace = 19,
    /// Performance events and kernel stacks.
    Perfmon = 38,
    /// Load BPF programs.
    Bpf = 39,
    /// Read the kernel log where it is restricted.
    Syslog = 34,
}

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Effective user id.
    pub euid: Option<u32>,
    /// Effective capabilities.
    pub effective: Option<u64>,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: Option<u32>,
}

impl Status {
    /// Whether a capability is effective.
    #[must_use]
    pub fn has(&self, capability: Capability) -> Option<bool> {
        self.effective.map(|bits| bits >> (capability as u32) & 1 == 1)
    }
}

/// What the kernel says of holdup.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> Status {
    let file = root.proc.join("self/status");
    let mut status = Status::default();
    for (index, line) in text(&file, problems).unwrap_or_default().lines().enumerate() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        let understood = match key {
            "Uid" => {
                status.euid = value.split_whitespace().nth(1).and_then(|uid| uid.parse().ok());
                status.euid.is_some()
            }
            "CapEff" => {
                status.effective = u64::from_str_radix(value, 16).ok();
                status.effective.is_some()
            }
            "Seccomp" => {
                status.seccomp = value.parse().ok();
                status.seccomp.is_some()
            }
            _ => true,
        };
        if !understood {
            note(
                problems,
                &file,
                Some(index + 1),
                format!("numbers expected after {key}:"),
            );
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::{Capability, read};
    use crate::root::Tree;

    #[test]
    fn capabilities_are_bits() {
        let tree = Tree::new(&[(
            "proc/self/status",
            "Name:\tx\nUid:\t1000\t0\t0\t0\nCapEff:\t000000c000000000\nSeccomp:\t2\n",
        )]);
        let status = read(&tree.root, &mut Vec::new());
        assert_eq!(status.euid, Some(0));
        assert_eq!(status.seccomp, Some(2));
        assert_eq!(status.has(Capability::Bpf), Some(true));
        assert_eq!(status.has(Capability::Perfmon), Some(true));
        assert_eq!(status.has(Capability::SysAdmin), Some(false));
        assert_eq!(status.has(Capability::SysPtrace), Some(false));
    }

    #[test]
    fn what_is_not_there_is_not_no() {
        let status = read(&Tree::new(&[]).root, &mut Vec::new());
        assert_eq!(status.has(Capability::Bpf), None);
    }
}
