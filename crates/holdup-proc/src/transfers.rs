//! `/proc/PID/io`: what a process has read and written with system calls since it began.

use crate::root::{Root, text_if_there};

/// Bytes, whatever they were read from and written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Those of a process; `None` where it is gone, or the kernel does not count or tell them.
#[must_use]
pub fn of(root: &Root, pid: u32) -> Option<Transfers> {
    parse(&text_if_there(&root.proc.join(pid.to_string()).join("io"))?)
}

fn parse(text: &str) -> Option<Transfers> {
    let field = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
        values.next()?.trim().parse().ok()
    };
    Some(Transfers {
        read: field("rchar:")?,
        written: field("wchar:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Transfers, of, parse};
    use crate::root::Root;

    #[test]
    fn both_directions_are_read_and_half_a_file_says_nothing() {
        let text = "rchar: 2012\nwchar: 7\nsyscr: 7\nsyscw: 1\nread_bytes: 4096\n";
        assert_eq!(
            parse(text),
            Some(Transfers {
                read: 2012,
                written: 7
            })
        );
        assert_eq!(parse("rchar: 2012\n"), None);
        assert_eq!(parse("rchar: many\nwchar: 7\n"), None);
    }

    #[test]
    fn what_a_process_writes_is_counted() {
        let (root, own) = (Root::system(), std::process::id());
        let Some(before) = of(&root, own) else { return };
        let mut file = std::fs::File::create("/dev/null").unwrap();
        std::io::Write::write_all(&mut file, &[7; 4096]).unwrap();
        let now = of(&root, own).unwrap();
        assert!(now.written >= before.written + 4096);
    }
}
