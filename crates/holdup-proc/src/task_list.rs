//! `/proc/PID/task/TID/stat`: every thread of the machine with its state, and what its process used so far.
//!
//! In: the tree. Out: a [`TaskList`] with the threads that do not merely sleep, and all processes. One small file is read for
//! each thread, none of which can block: they take neither the address space nor the lock that an exec holds. What comes and
//! goes meanwhile is left out.

use crate::root::Root;
use crate::tasks;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The kernel's letter for what it does.
    pub state: char,
    /// Its process's parent.
    pub parent: u32,
    /// Whether it has a terminal.
    pub terminal: bool,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// When it began, in ticks since boot: an id that is used again is another process.
    pub began: u64,
    /// CPU time of all its threads, in ticks.
    pub ticks: u64,
    /// CPU time of the children that it has waited for, and of theirs, in ticks.
    pub children_ticks: u64,
    /// Its parent.
    pub parent: u32,
    /// Its nice value.
    pub nice: i32,
    /// Pages in memory.
    pub pages: u64,
    /// Whether it is the kernel's own.
    pub kernel: bool,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskList {
    /// Threads that are not merely asleep.
    pub busy: Vec<Task>,
    /// Processes.
    pub processes: Vec<Process>,
    /// How many threads there are.
    pub threads: u64,
}

/// The flag of the kernel's own threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Bytes of a `stat`: 52 numbers and a name.
const MAX_STAT_BYTES: usize = 2048;

/// Bytes of `TID/stat`.
const LONGEST_NAME: usize = 16;

/// A line of `stat`.
struct Line {
    id: u32,
    name: String,
    state: char,
    parent: u32,
    terminal: bool,
    flags: u64,
    ticks: u64,
    children_ticks: u64,
    nice: i32,
    threads: u64,
    began: u64,
    pages: u64,
}

impl Line {
    /// The process that it is of.
    fn process(&self, pid: u32) -> Process {
        Process {
            pid,
            name: self.name.clone(),
            began: self.began,
            ticks: self.ticks,
            children_ticks: self.children_ticks,
            parent: self.parent,
            nice: self.nice,
            pages: self.pages,
            kernel: self.flags & KERNEL_THREAD != 0,
        }
    }
}

/// Processes that are programs: neither the kernel's own threads nor what is left of ended ones. Lowest id first.
#[must_use]
pub fn programs(root: &Root) -> Vec<u32> {
    let mut buffer = [0; MAX_STAT_BYTES];
    let all = tasks::processes(root).into_iter();
    all.filter(|pid| {
        let stat = root.proc.join(pid.to_string()).join("stat");
        line(&stat, &mut buffer)
            .is_some_and(|line| line.flags & KERNEL_THREAD == 0 && !matches!(line.state, 'Z' | 'X'))
    })
    .collect()
}

/// One process, by its folder in `/proc`.
pub(crate) fn process(folder: &Path) -> Option<Process> {
    let mut buffer = [0; MAX_STAT_BYTES];
    let whole = line(&folder.join("stat"), &mut buffer)?;
    Some(whole.process(whole.id))
}

/// Lists all threads, again and again. Files of threads stay open between two lists, which saves more than half of what the next
/// one costs.
#[derive(Debug, Default)]
pub struct Lister {
    /// Files of all threads of a process.
    kept: HashMap<u32, Vec<File>>,
    /// How many may be kept.
    most: usize,
    /// How many are.
    count: usize,
}

impl Lister {
    /// Keeps so many files open at most; each takes the kernel some 5 KiB.
    #[must_use]
    pub fn keeping(most: usize) -> Lister {
        Lister {
            most,
            ..Lister::default()
        }
    }

    /// Lists all threads.
    pub fn read(&mut self, root: &Root) -> TaskList {
        let mut list = TaskList::default();
        let mut buffer = [0; MAX_STAT_BYTES];
        for pid in tasks::processes(root) {
            let folder = root.proc.join(pid.to_string());
            let Some(whole) = line(&folder.join("stat"), &mut buffer) else {
                continue;
            };
            list.processes.push(whole.process(pid));
            list.threads += whole.threads.max(1);
            if whole.threads <= 1 {
                list.busy.extend(busy(pid, whole));
                continue;
            }
            let before = list.busy.len();
            if !self.again(pid, whole.threads, &mut buffer, &mut list.busy) {
                list.busy.truncate(before);
                self.threads(&folder.join("task"), pid, &mut buffer, &mut list.busy);
            }
        }
        list
    }

    /// Adds the busy threads of a process by files that are open already; `false` where its threads are others than then: there are
    /// more or fewer, or one of them is gone.
    fn again(
        &mut self,
        pid: u32,
        threads: u64,
        buffer: &mut [u8; MAX_STAT_BYTES],
        busy_ones: &mut Vec<Task>,
    ) -> bool {
        let Some(files) = self.kept.get(&pid) else {
            return false;
        };
        let same = files.len() as u64 == threads
            && files.iter().all(|file| match file.read_at(buffer, 0) {
                Ok(length) if length > 0 => {
                    busy_ones.extend(buffer.get(..length).and_then(|text| awake(pid, text)));
                    true
                }
                _ => false,
            });
        if !same {
            self.count -= files.len();
            self.kept.remove(&pid);
        }
        same
    }

    /// Adds the busy threads of a process. All files are opened from the process's folder: there are thousands.
    fn threads(
        &mut self,
        folder: &Path,
        pid: u32,
        buffer: &mut [u8; MAX_STAT_BYTES],
        busy_ones: &mut Vec<Task>,
    ) {
        let (Ok(entries), Ok(from)) = (std::fs::read_dir(folder), File::open(folder)) else {
            return;
        };
        let mut path = Vec::with_capacity(LONGEST_NAME);
        let mut files = Vec::new();
        for entry in entries.flatten() {
            path.clear();
            path.extend_from_slice(entry.file_name().as_bytes());
            path.extend_from_slice(b"/stat");
            let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
            let Ok(file) = openat(&from, path.as_slice(), flags, Mode::empty()) else {
                continue;
            };
            let mut file = File::from(file);
            if let Some(text) = take(&mut file, buffer) {
                busy_ones.extend(awake(pid, text));
                if self.count + files.len() < self.most {
                    files.push(file);
                }
            }
        }
        self.count += files.len();
        self.kept.insert(pid, files);
    }
}

/// The thread of a line, unless it only sleeps: nearly all do, and of those no more than the state is looked at.
fn awake(pid: u32, text: &[u8]) -> Option<Task> {
    if is_asleep(text) {
        return None;
    }
    busy(pid, parse(text)?)
}

/// Whether the state of a line is that of a thread that only sleeps.
fn is_asleep(text: &[u8]) -> bool {
    let close = text.iter().rposition(|byte| *byte == b')');
    matches!(close.and_then(|close| text.get(close + 2)), Some(b'S' | b'I'))
}

/// The thread, unless it only sleeps.
fn busy(pid: u32, line: Line) -> Option<Task> {
    let asleep = matches!(line.state, 'S' | 'I');
    (!asleep).then_some(Task {
        pid,
        tid: line.id,
        name: line.name,
        state: line.state,
        parent: line.parent,
        terminal: line.terminal,
    })
}

fn line(file: &Path, buffer: &mut [u8; MAX_STAT_BYTES]) -> Option<Line> {
    parse(take(&mut File::open(file).ok()?, buffer)?)
}

/// The text of a file, in the buffer.
fn take<'a>(file: &mut File, buffer: &'a mut [u8; MAX_STAT_BYTES]) -> Option<&'a [u8]> {
    let mut length = 0;
    while let Some(room) = buffer.get_mut(length..).filter(|room| !room.is_empty()) {
        match file.read(room) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(_) => return None,
        }
        // The kernel hands it out whole, up to the end of its line.
        if length.checked_sub(1).and_then(|last| buffer.get(last)) == Some(&b'\n') {
            break;
        }
    }
    buffer.get(..length)
}

/// Fields behind the name, from the state on, which is the third of all.
fn parse(text: &[u8]) -> Option<Line> {
    const STATE: usize = 3;
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let id = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - STATE).copied();
    let number = |at: usize| field(at).and_then(|field| field.parse::<u64>().ok());
    Some(Line {
        id,
        name: String::from_utf8_lossy(text.get(open + 1..close)?).into_owned(),
        state: field(STATE)?.chars().next()?,
        parent: u32::try_from(number(4)?).ok()?,
        terminal: field(7)? != "0",
        flags: number(9)?,
        ticks: number(14)?.saturating_add(number(15)?),
        children_ticks: number(16).unwrap_or(0).saturating_add(number(17).unwrap_or(0)),
        nice: field(19).and_then(|field| field.parse().ok()).unwrap_or(0),
        threads: number(20)?,
        began: number(22)?,
        pages: number(24).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::{Lister, Process, Task};
    use crate::root::{Root, Tree};

    const REST: &str = "1 7 7 0 -1 4194304 1 2 3 4 10 5 6 7 20 0 1 0 900 4096 33 1844";

    #[test]
    fn threads_that_do_something_are_kept_and_all_are_counted() {
        let two = REST.replace(" 20 0 1 0 ", " 20 0 2 0 ");
        let tree = Tree::new(&[
            ("proc/7/stat", &format!("7 (a) b) S {two}\n")),
            ("proc/7/task/7/stat", &format!("7 (a) b) S {two}\n")),
            ("proc/7/task/8/stat", &format!("8 (writer) D {two}\n")),
            ("proc/9/stat", &format!("9 (one) T {REST}\n")),
            ("proc/10/stat", "10 (cut) S 1\n"),
            ("proc/uptime", "1.0 1.0\n"),
        ]);
        let mut lister = Lister::keeping(10);
        let list = lister.read(&tree.root);
        assert_eq!(list.threads, 3);
        let task = |pid, tid, name: &str, state| Task {
            pid,
            tid,
            name: name.into(),
            state,
            parent: 1,
            terminal: false,
        };
        assert_eq!(list.busy, [task(7, 8, "writer", 'D'), task(9, 9, "one", 'T')]);
        assert_eq!(
            list.processes[0],
            Process {
                pid: 7,
                name: "a) b".into(),
                began: 900,
                ticks: 15,
                children_ticks: 13,
                parent: 1,
                nice: 0,
                pages: 33,
                kernel: false,
            }
        );
        // By open files it is the same, and what has changed is seen.
        assert_eq!(lister.read(&tree.root), list);
        std::fs::write(tree.path("proc/7/task/8/stat"), format!("8 (writer) S {two}\n")).unwrap();
        assert_eq!(lister.read(&tree.root).busy.len(), 1);
    }

    #[test]
    fn a_thread_more_is_found_though_files_are_open() {
        let two = REST.replace(" 20 0 1 0 ", " 20 0 2 0 ");
        let three = REST.replace(" 20 0 1 0 ", " 20 0 3 0 ");
        let tree = Tree::new(&[
            ("proc/7/stat", &format!("7 (a) S {two}\n")),
            ("proc/7/task/7/stat", &format!("7 (a) S {two}\n")),
            ("proc/7/task/8/stat", &format!("8 (b) S {two}\n")),
        ]);
        let mut lister = Lister::keeping(2);
        assert!(lister.read(&tree.root).busy.is_empty());
        std::fs::write(tree.path("proc/7/stat"), format!("7 (a) S {three}\n")).unwrap();
        std::fs::create_dir_all(tree.path("proc/7/task/9")).unwrap();
        std::fs::write(tree.path("proc/7/task/9/stat"), format!("9 (c) D {three}\n")).unwrap();
        for _ in 0..2 {
            let list = lister.read(&tree.root);
            assert_eq!(list.busy.iter().map(|task| task.tid).collect::<Vec<_>>(), [9]);
        }
        assert_eq!(lister.count, 2);
    }

    #[test]
    fn this_machine_lists_this_program() {
        let list = Lister::default().read(&Root::system());
        let own = std::process::id();
        assert!(list.processes.iter().any(|process| process.pid == own));
        assert!(list.threads >= list.processes.len() as u64);
    }
}
