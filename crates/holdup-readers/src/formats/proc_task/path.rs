//! Paths of the files that the kernel has of each task, and where texts name them.
//!
//! In: a line, or the name of an artefact. Out: which task and which file.

use crate::numbers::whole;
use memchr::memmem;

/// A file of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    Status,
    Stat,
    Stack,
    Wchan,
    Syscall,
    Comm,
    /// Any other, which says nothing here.
    Other,
}

/// Whose file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Task {
    /// The process; `None` of `/proc/self`.
    pub(super) pid: Option<u32>,
    /// The thread, where the path has one.
    pub(super) tid: Option<u32>,
}

/// The first path of a task's file in a text: whose, which (none of a folder), and what stands behind it.
pub(super) fn find(text: &[u8]) -> Option<(Task, Option<File>, &[u8])> {
    let at = memmem::find(text, b"proc/")?;
    let from_start = at == 0 || text.get(at - 1).is_some_and(|byte| matches!(byte, b'/' | b' '));
    let rest = text.get(at + 5..).filter(|_| from_start)?;
    let (pid, rest) = part(rest);
    let pid = match pid {
        b"self" | b"thread-self" => None,
        pid => Some(number(pid)?),
    };
    let mut task = Task { pid, tid: None };
    let (mut name, mut behind) = part(rest.strip_prefix(b"/").unwrap_or(b""));
    if name == b"task"
        && let Some(more) = behind.strip_prefix(b"/")
    {
        let (tid, more) = part(more);
        task.tid = Some(number(tid)?);
        (name, behind) = part(more.strip_prefix(b"/").unwrap_or(b""));
        if name.is_empty() {
            return Some((task, None, more));
        }
    }
    let file = match name {
        b"" => return Some((task, None, rest)),
        b"status" => File::Status,
        b"stat" => File::Stat,
        b"stack" => File::Stack,
        b"wchan" => File::Wchan,
        b"syscall" => File::Syscall,
        b"comm" => File::Comm,
        _ => File::Other,
    };
    Some((task, Some(file), behind))
}

/// A part of a path, and what is behind it.
fn part(text: &[u8]) -> (&[u8], &[u8]) {
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let end = text.iter().take_while(|byte| name(byte)).count();
    text.split_at_checked(end).unwrap_or((text, b""))
}

fn number(text: &[u8]) -> Option<u32> {
    whole(text).and_then(|id| u32::try_from(id).ok())
}

#[cfg(test)]
mod tests {
    use super::{File, Task, find};

    #[test]
    fn paths_of_tasks() {
        let task = |pid, tid| Task { pid: Some(pid), tid };
        for (text, whose, file, behind) in [
            (
                "/proc/12/stack:[<0>] x",
                task(12, None),
                Some(File::Stack),
                ":[<0>] x",
            ),
            (
                "==> /proc/12/task/13/wchan <==",
                task(12, Some(13)),
                Some(File::Wchan),
                " <==",
            ),
            (
                "collected/cat /proc/12/status",
                task(12, None),
                Some(File::Status),
                "",
            ),
            ("/proc/12", task(12, None), None, ""),
            ("/proc/12/task/13:", task(12, Some(13)), None, ":"),
            ("sos/proc/12/stat", task(12, None), Some(File::Stat), ""),
            ("/proc/12/maps", task(12, None), Some(File::Other), ""),
        ] {
            assert_eq!(
                find(text.as_bytes()),
                Some((whose, file, behind.as_bytes())),
                "{text}"
            );
        }
        for text in [
            "",
            "proc/",
            "/proc/x/stack",
            "/proc/99999999999/stack",
            "xproc/12/stack",
            "/proc/12/task/x",
        ] {
            assert_eq!(find(text.as_bytes()), None, "{text}");
        }
    }
}
