//! `/sys/kernel/btf/vmlinux`: which tracepoints and kernel functions a BPF program of this kernel can name.
//!
//! Every tracepoint that a program can attach to has a type named `btf_trace_NAME`, and every kernel function
//! that programs may call has its own name there. So the list of strings tells what is present without
//! tracefs and without privilege. Only the strings are looked at: libbpf reads the types.

use crate::root::{Problem, Root, note};
use std::collections::BTreeSet;
use std::io::ErrorKind;

/// Magic number of the format, little endian.
const MAGIC: [u8; 2] = [0x9f, 0xeb];

/// The strings of the kernel's type information.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(BTreeSet<Vec<u8>>);

impl Names {
    /// Whether there is a type or function of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name.as_bytes())
    }

    /// Whether BPF programs can attach to this tracepoint.
    #[must_use]
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.has(&format!("btf_trace_{name}"))
    }
}

/// Which of the wanted names the kernel's type information has; `None` when there is none.
pub fn names(root: &Root, wanted: &[String], problems: &mut Vec<Problem>) -> Option<Names> {
    let file = root.sys.join("kernel/btf/vmlinux");
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            note(problems, &file, None, error.to_string());
            return None;
        }
    };
    let Some(strings) = strings(&bytes) else {
        note(
            problems,
            &file,
            None,
            "type information (BTF) of this machine's byte order expected",
        );
        return None;
    };
    let present = strings.split(|byte| *byte == 0);
    Some(Names(
        present
            .filter(|name| wanted.iter().any(|wanted| wanted.as_bytes() == *name))
            .map(<[u8]>::to_vec)
            .collect(),
    ))
}

/// The string section: the header gives its length and its offset behind the header.
fn strings(bytes: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let field = bytes.get(at..at + 4)?;
        usize::try_from(u32::from_ne_bytes(field.try_into().ok()?)).ok()
    };
    if bytes.get(..2)? != MAGIC {
        return None;
    }
    let (header, offset, length) = (word(4)?, word(16)?, word(20)?);
    let start = header.checked_add(offset)?;
    bytes.get(start..start.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::names;
    use crate::root::Tree;

    /// A header and a string section.
    fn btf(strings: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let length = u32::try_from(strings.len()).unwrap();
        for word in [24_u32, 0, 0, 0, length] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn names_are_whole_strings() {
        let tree = Tree::new(&[("sys/kernel/btf/vmlinux", "")]);
        let file = tree.path("sys/kernel/btf/vmlinux");
        std::fs::write(&file, btf(b"\0btf_trace_sched_switch\0xbpf_task\0")).unwrap();
        let wanted = ["btf_trace_sched_switch", "bpf_task", "btf_trace_sched"].map(str::to_owned);
        let mut problems = Vec::new();
        let found = names(&tree.root, &wanted, &mut problems).unwrap();
        assert!(found.has_tracepoint("sched_switch"));
        assert!(!found.has_tracepoint("sched"));
        assert!(!found.has("bpf_task"));
        assert_eq!(problems, []);

        std::fs::write(&file, &btf(b"\0abc\0")[..20]).unwrap();
        assert_eq!(names(&tree.root, &wanted, &mut problems), None);
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn no_file_is_no_type_information() {
        let mut problems = Vec::new();
        assert_eq!(names(&Tree::new(&[]).root, &[], &mut problems), None);
        assert_eq!(problems, []);
    }
}
