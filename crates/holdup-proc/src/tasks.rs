//! `/proc/PID/task`: the threads of a process, the calls that they are in, and its children.

use crate::root::{Root, text_if_there};
use holdup_evidence::arch;
use std::path::Path;

/// The call that a sleeping thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Its number, in the numbering of [`holdup_evidence::Call`].
    pub number: i32,
    /// Its arguments.
    pub args: [u64; 6],
}

/// Numbers of all processes, lowest first.
#[must_use]
pub fn processes(root: &Root) -> Vec<u32> {
    numbers(&root.proc)
}

/// Thread ids of a process, lowest first; empty when it is gone.
#[must_use]
pub fn threads(root: &Root, pid: u32) -> Vec<u32> {
    numbers(&root.proc.join(pid.to_string()).join("task"))
}

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The call that a thread sleeps in; `None` when it runs, is in none, or can't be looked at. May block: the kernel takes the
/// lock that an exec of the process holds.
#[must_use]
pub fn call(root: &Root, tid: u32) -> Option<Call> {
    sleeping(root, tid).map(|sleeping| sleeping.call)
}

/// A thread that sleeps in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleeping {
    /// The call.
    pub call: Call,
    /// Its stack pointer.
    pub sp: u64,
}

/// The same, with the thread's stack pointer. May block as [`call`] does.
#[must_use]
pub fn sleeping(root: &Root, tid: u32) -> Option<Sleeping> {
    let text = text_if_there(&root.proc.join(tid.to_string()).join("syscall"))?;
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok().map(arch::call);
    let number = number.filter(|number| *number >= 0)?;
    let mut args = [0; 6];
    let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    for arg in &mut args {
        *arg = word()?;
    }
    let call = Call { number, args };
    Some(Sleeping { call, sp: word()? })
}

/// Where the stack of a thread is that sleeps in a call; `None` when it runs, is in none, or can't be looked at. May block, as [`call`] may.
#[must_use]
pub fn stack_pointer(root: &Root, tid: u32) -> Option<u64> {
    let text = text_if_there(&root.proc.join(tid.to_string()).join("syscall"))?;
    let mut words = text.split_ascii_whitespace();
    words.next()?.parse::<i32>().ok().filter(|number| *number >= 0)?;
    u64::from_str_radix(words.nth(6)?.strip_prefix("0x")?, 16).ok()
}

/// The children of a process, whichever of its threads made them; empty where the kernel does not list them.
#[must_use]
pub fn children(root: &Root, pid: u32) -> Vec<u32> {
    let folder = root.proc.join(pid.to_string()).join("task");
    let lists = threads(root, pid)
        .into_iter()
        .filter_map(|tid| text_if_there(&folder.join(tid.to_string()).join("children")));
    let mut children: Vec<u32> = lists
        .flat_map(|list| {
            let numbers = list.split_ascii_whitespace().filter_map(|word| word.parse().ok());
            numbers.collect::<Vec<u32>>()
        })
        .collect();
    children.sort_unstable();
    children
}

#[cfg(test)]
mod tests {
    use super::{Call, call, children, processes, threads};
    use crate::root::Tree;

    #[test]
    fn threads_calls_and_children_are_found() {
        let tree = Tree::new(&[
            (
                "proc/7/syscall",
                "202 0x7f 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd 0x7f1\n",
            ),
            ("proc/8/syscall", "running\n"),
            ("proc/9/syscall", "-1 0x7ffd 0x7f1\n"),
            ("proc/uptime", ""),
            ("proc/7/task/7/children", "12 11 \n"),
            ("proc/7/task/10/children", "\n"),
        ]);
        let args = [0x7f, 0x189, 0, 0, 0, 0xffff_ffff];
        assert_eq!(call(&tree.root, 7), Some(Call { number: 202, args }));
        assert_eq!(call(&tree.root, 8), None);
        assert_eq!(call(&tree.root, 9), None);
        assert_eq!(call(&tree.root, 10), None);
        assert_eq!(threads(&tree.root, 7), [7, 10]);
        assert_eq!(children(&tree.root, 7), [11, 12]);
        assert_eq!(processes(&tree.root), [7, 8, 9]);
    }
}
