//! What this machine and these privileges offer to a tracer: raw facts for `holdup doctor`, undecided.
//!
//! In: files that can be read without privilege. Out: [`Machine`]; `None` where a file did not tell. What only
//! trying can tell (tracepoints, loading a program) is `holdup-bpf`'s.

use crate::mountinfo;
use crate::root::{Problem, Root, number, text_if_there, word};
use crate::status::{self, Status};
use std::io::Read;

/// The kernel's self-imposed limits on root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lockdown {
    /// None.
    None,
    /// Nothing may change the kernel; BPF still reads.
    Integrity,
    /// Nothing may read kernel memory; BPF can't either.
    Confidentiality,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// Own ids, capabilities, seccomp.
    pub status: Status,
    /// `None` when the kernel has no lockdown or its state can't be read.
    pub lockdown: Option<Lockdown>,
    /// Where tracefs is mounted; holdup doesn't need it, others do.
    pub tracefs: Option<String>,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Option<u32>,
    /// Whether `/proc/kallsyms` shows addresses.
    pub kernel_symbols: Option<bool>,
    /// `kernel.perf_event_paranoid`; `None` when the kernel has no performance events.
    pub perf_event_paranoid: Option<i32>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub unprivileged_bpf_disabled: Option<u32>,
    /// Whether the kernel log can be read.
    pub kernel_log: Option<bool>,
}

/// Looks at the machine.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> Machine {
    let kernel = root.proc.join("sys/kernel");
    Machine {
        kernel_release: word(&kernel.join("osrelease"), problems),
        status: status::read(root, problems),
        lockdown: text_if_there(&root.sys.join("kernel/security/lockdown")).and_then(|text| lockdown(&text)),
        tracefs: mountinfo::read(root, problems)
            .into_iter()
            .find(|mount| mount.file_system == "tracefs")
            .map(|mount| mount.target),
        kptr_restrict: number(&kernel.join("kptr_restrict"), problems),
        kernel_symbols: kernel_symbols(root),
        perf_event_paranoid: number(&kernel.join("perf_event_paranoid"), problems),
        unprivileged_bpf_disabled: number(&kernel.join("unprivileged_bpf_disabled"), problems),
        kernel_log: kernel_log(root),
    }
}

/// The state in force is in brackets: `none [integrity] confidentiality`.
fn lockdown(text: &str) -> Option<Lockdown> {
    let (_, rest) = text.split_once('[')?;
    match rest.split_once(']')?.0 {
        "none" => Some(Lockdown::None),
        "integrity" => Some(Lockdown::Integrity),
        "confidentiality" => Some(Lockdown::Confidentiality),
        _ => None,
    }
}

/// Addresses are all zero for those who may not see them. A few lines are enough; the file has megabytes.
fn kernel_symbols(root: &Root) -> Option<bool> {
    const MAX_BYTES: u64 = 4096;
    let mut start = String::new();
    std::fs::File::open(root.proc.join("kallsyms"))
        .ok()?
        .take(MAX_BYTES)
        .read_to_string(&mut start)
        .ok()?;
    Some(
        start
            .lines()
            .filter_map(|line| line.split(' ').next())
            .any(|address| {
                // Per-CPU symbols have small addresses even when shown, so any digit but 0 will do.
                address.bytes().any(|digit| digit != b'0')
            }),
    )
}

fn kernel_log(root: &Root) -> Option<bool> {
    let file = root.dev.join("kmsg");
    file.exists().then(|| {
        let mut problems = Vec::new();
        crate::kernel_log::seeded(root, &mut problems);
        problems.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::{Lockdown, Machine, lockdown, read};
    use crate::root::Tree;

    #[test]
    fn the_state_in_brackets_counts() {
        assert_eq!(
            lockdown("none [integrity] confidentiality\n"),
            Some(Lockdown::Integrity)
        );
        assert_eq!(
            lockdown("[none] integrity confidentiality\n"),
            Some(Lockdown::None)
        );
        assert_eq!(lockdown("none integrity [new]\n"), None);
    }

    #[test]
    fn hidden_symbols_are_zeros() {
        let symbols =
            |text: &str| read(&Tree::new(&[("proc/kallsyms", text)]).root, &mut Vec::new()).kernel_symbols;
        let line = "0000000000000000 A fixed_percpu_data\n";
        assert_eq!(symbols(&line.repeat(200)), Some(false));
        assert_eq!(symbols(&format!("{line}ffffffff81000000 T _text\n")), Some(true));
    }

    #[test]
    fn an_empty_machine_tells_nothing() {
        let mut problems = Vec::new();
        assert_eq!(read(&Tree::new(&[]).root, &mut problems), Machine::default());
        assert_eq!(problems, []);
    }

    #[test]
    fn this_machine_says_what_it_allows() {
        let machine = read(&crate::Root::system(), &mut Vec::new());
        assert!(machine.status.effective.is_some());
    }
}
