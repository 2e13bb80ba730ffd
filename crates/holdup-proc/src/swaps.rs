//! `/proc/swaps`: where memory goes that does not fit.
//!
//! In: the kernel's table. Out: one [`SwapArea`] a line.

use crate::root::{Problem, Root, note, text};
use holdup_evidence::facts::SwapArea;

/// The kernel's table counts in KiB.
const UNIT: u64 = 1024;

/// The active swap areas; none where the kernel has no such table.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> Vec<SwapArea> {
    let file = root.proc.join("swaps");
    if !file.exists() {
        return Vec::new();
    }
    let mut areas = Vec::new();
    for (index, line) in text(&file, problems)
        .unwrap_or_default()
        .lines()
        .enumerate()
        .skip(1)
    {
        match parse(line) {
            Some(area) => areas.push(area),
            None => note(
                problems,
                &file,
                Some(index + 1),
                "path, type, size, used and priority expected",
            ),
        }
    }
    areas
}

/// Blanks in a path are written as octal numbers, so that the fields are words; a file that was deleted has one more.
fn parse(line: &str) -> Option<SwapArea> {
    let mut from_end = line.split_whitespace().rev();
    let priority = from_end.next()?.parse().ok()?;
    let size: u64 = from_end.nth(1)?.parse().ok()?;
    Some(SwapArea {
        path: line.split_whitespace().next()?.to_owned(),
        size: size.saturating_mul(UNIT),
        priority,
    })
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;
    use holdup_evidence::facts::SwapArea;

    #[test]
    fn areas_and_a_line_that_is_none() {
        let tree = Tree::new(&[(
            "proc/swaps",
            "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0  partition\t1024\t8\t100\n/swap\\040file\\040(deleted) file\t4\t0\t-2\n/dev/sda2 partition\n",
        )]);
        let mut problems = Vec::new();
        let area = |path: &str, size, priority| SwapArea {
            path: path.to_owned(),
            size,
            priority,
        };
        assert_eq!(
            read(&tree.root, &mut problems),
            [
                area("/dev/zram0", 1 << 20, 100),
                area("/swap\\040file\\040(deleted)", 4096, -2)
            ]
        );
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn a_kernel_without_swap_is_no_problem() {
        let mut problems = Vec::new();
        assert_eq!(read(&Tree::new(&[]).root, &mut problems), []);
        assert_eq!(problems, []);
    }
}
