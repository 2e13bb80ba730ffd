//! `/sys/block/*/queue`: how the requests of each disk are put in order.
//!
//! In: the disks. Out: a [`DiskScheduler`] for each that has something behind it: what only stands on other disks (loop, device
//! mapper, RAID) or in memory has its order from those, or needs none.

use crate::root::{Root, text_if_there};
use holdup_evidence::host::DiskScheduler;

/// Names of what is no disk itself.
const PASSED: [&str; 9] = ["dm-", "drbd", "fd", "loop", "md", "nbd", "ram", "sr", "zram"];

/// All of them.
#[must_use]
pub fn read(root: &Root) -> Vec<DiskScheduler> {
    let entries = std::fs::read_dir(root.sys.join("block")).into_iter().flatten();
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut all: Vec<DiskScheduler> = names
        .filter(|name| !PASSED.iter().any(|start| name.starts_with(start)))
        .filter_map(|name| of(root, name))
        .collect();
    all.sort_by(|a, b| a.disk.cmp(&b.disk));
    all
}

fn of(root: &Root, disk: String) -> Option<DiskScheduler> {
    let queue = root.sys.join("block").join(&disk).join("queue");
    let text = text_if_there(&queue.join("scheduler"))?;
    let words = || text.split_ascii_whitespace();
    let chosen = words().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))?;
    Some(DiskScheduler {
        chosen: chosen.to_owned(),
        offered: words()
            .map(|word| word.trim_matches(['[', ']']).to_owned())
            .collect(),
        rotational: text_if_there(&queue.join("rotational")).map(|text| text.trim() == "1"),
        disk,
    })
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;

    #[test]
    fn the_chosen_one_is_in_brackets() {
        let tree = Tree::new(&[
            ("sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n"),
            ("sys/block/sda/queue/rotational", "1\n"),
            ("sys/block/loop0/queue/scheduler", "[none] mq-deadline\n"),
            ("sys/block/odd/queue/scheduler", "none\n"),
        ]);
        let all = read(&tree.root);
        assert_eq!(all.len(), 1);
        assert_eq!(
            (all[0].disk.as_str(), all[0].chosen.as_str()),
            ("sda", "mq-deadline")
        );
        assert_eq!(all[0].offered, ["none", "mq-deadline", "bfq"]);
        assert_eq!(all[0].rotational, Some(true));
        assert!(read(&Tree::new(&[]).root).is_empty());
    }
}
