//! `/proc/PID/comm`: names of processes that a run had to do with.
//!
//! Only `comm`: reading `cmdline` takes the process's address space lock and can block for as long as the
//! very stall that is being looked at.

use crate::root::{Root, text_if_there};

/// The name of a process that still exists, hostile text of at most 15 bytes.
#[must_use]
pub fn comm(root: &Root, pid: u32) -> Option<String> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("comm"))?;
    Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The process of a thread that still exists.
#[must_use]
pub fn process_of(root: &Root, tid: u32) -> Option<u32> {
    let text = text_if_there(&root.proc.join(tid.to_string()).join("status"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::{comm, process_of};
    use crate::root::Tree;

    #[test]
    fn a_name_may_contain_anything() {
        let tree = Tree::new(&[("proc/7/comm", " a\nb \n")]);
        assert_eq!(comm(&tree.root, 7).as_deref(), Some(" a\nb "));
        assert_eq!(comm(&tree.root, 8), None);
    }

    #[test]
    fn a_thread_belongs_to_the_process_that_its_status_names() {
        let tree = Tree::new(&[
            ("proc/9/status", "Name:\tTgid:\t1\nTgid:\t7\nPid:\t9\n"),
            ("proc/10/status", ""),
        ]);
        assert_eq!(process_of(&tree.root, 9), Some(7));
        assert_eq!(process_of(&tree.root, 10), None);
        assert_eq!(process_of(&tree.root, 11), None);
    }
}
