//! `/proc/net/dev`: what network devices dropped and could not read.
//!
//! In: the file, of holdup's own network namespace. Out: [`Link`]s with what was counted since each is there.

use crate::root::{Root, text_if_there};

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Packets that came in and were dropped: nobody took them, or there was no room.
    pub dropped: u64,
    /// Packets that came in damaged.
    pub damaged: u64,
}

/// All but the loopback device, which has nobody to lose packets of.
#[must_use]
pub fn read(root: &Root) -> Vec<Link> {
    let text = text_if_there(&root.proc.join("net/dev")).unwrap_or_default();
    text.lines()
        .filter_map(link)
        .filter(|link| link.name != "lo")
        .collect()
}

/// `eth0: bytes packets errs drop …`, received first.
fn link(line: &str) -> Option<Link> {
    let (name, counters) = line.rsplit_once(':')?;
    let mut counters = counters.split_ascii_whitespace().skip(2);
    let mut next = || counters.next()?.parse().ok();
    Some(Link {
        damaged: next()?,
        dropped: next()?,
        name: name.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Link, read};
    use crate::root::Tree;

    #[test]
    fn headings_and_loopback_are_left_out() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
                    lo:       9       1    5    6    0     0          0         0        9       1    0\n  \
                    eth0: 1234567    9000    3    7    0     0          0         0  7654321    8000    0\n";
        let tree = Tree::new(&[("proc/net/dev", text)]);
        let eth0 = Link {
            name: "eth0".to_owned(),
            dropped: 7,
            damaged: 3,
        };
        assert_eq!(read(&tree.root), [eth0]);
        assert!(read(&Tree::new(&[]).root).is_empty());
    }
}
