//! Paths that calls name in which threads are stuck.
//!
//! A call with a path has no descriptor, and the path is in the memory of a thread that sleeps: it is read from outside. In: a
//! wait that goes on. Out: the path, from the root of its process on, and the file system that it is on as that process's table
//! of mounts says, as an object of the wait. The path itself is never touched: we would be stuck there, too. Links on the way can't
//! be followed so; therefore a file system is believed only if the kernel's stack does not speak of another.

use super::behind::Readers;
use holdup_attribution::classify::{self, served_by, served_by_stack};
use holdup_evidence::{
    Call, Cause, DeviceNumber, KernelStackId, Ns, Object, ObjectId, ObjectKind, Seq, TaskState, ThreadId,
    Wait, WaitMemory,
};
use holdup_knowledge::system_calls;
use holdup_proc::{Root, clocks, memory, mountinfo, tasks};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The kernel's limit on a path, bytes.
const PATH_MAX: usize = 4096;

/// Paths that are read at each look: of a hundred threads that are stuck in one place the first say what the rest do.
const MAX_PER_LOOK: usize = 64;

/// Objects that are made of paths. Their numbers are the last ones there are; the programs count up from the first.
const MAX_OBJECTS: u32 = 4096;

/// `AT_FDCWD`: names begin at the working directory.
const AT_FDCWD: i32 = -100;

/// A path that a call names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Named {
    /// From the root of the process on, where that is known; else as the call has it. Hostile text.
    path: String,
    /// The file system that it is on if there are no links on the way.
    mounted: Option<Mounted>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Mounted {
    device: DeviceNumber,
    file_system: String,
}

/// What was read, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    named: Named,
    /// After that.
    at: Ns,
    /// The thread's voluntary context switches after that.
    switches: u64,
}

/// Where a call has its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    tid: u32,
    address: u64,
    /// The directory in which names begin that have no `/` before them: a descriptor.
    from: i32,
}

/// Paths of calls that go on.
#[derive(Debug)]
pub(super) struct Paths {
    readers: Readers<Question, Option<Answer>>,
    /// Of each thread's last wait that was looked at; nothing where it could not be read.
    known: HashMap<ThreadId, (Seq, Option<Answer>)>,
    objects: HashMap<Named, ObjectId>,
    /// Kernel stacks that wait for a file system's server.
    served: HashMap<KernelStackId, Cause>,
}

impl Default for Paths {
    fn default() -> Paths {
        Paths {
            readers: Readers::new(|| Box::new(|question| read(&Root::system(), question))),
            known: HashMap::new(),
            objects: HashMap::new(),
            served: HashMap::new(),
        }
    }
}

impl Paths {
    /// Reads what these waits name, of threads of a process each, and says whether there was any.
    pub(super) fn look<'a>(&mut self, waits: impl Iterator<Item = (u32, u32, &'a Wait)>) -> bool {
        let mut looks = 0;
        for (pid, tid, wait) in waits {
            if looks >= MAX_PER_LOOK {
                break;
            }
            looks += usize::from(self.look_at(pid, tid, wait));
        }
        looks > 0
    }

    fn look_at(&mut self, pid: u32, tid: u32, wait: &Wait) -> bool {
        if wait.object.is_some()
            || self
                .known
                .get(&wait.thread)
                .is_some_and(|(seq, _)| *seq == wait.seq)
        {
            return false;
        }
        let Some(question) = question(tid, &wait.call) else {
            return false;
        };
        let answer = self.readers.ask(pid, question).flatten();
        self.known.insert(wait.thread, (wait.seq, answer));
        true
    }

    /// A kernel stack is described.
    pub(super) fn stack_seen(&mut self, id: KernelStackId, frames: &[String]) {
        if let Some(cause) = served_by_stack(frames) {
            self.served.insert(id, cause);
        }
    }

    /// Completes a wait by what it names, if that was read while it went on: the thread has not run meanwhile. Returns an
    /// object that is to be described before.
    pub(super) fn complete(&mut self, wait: &mut Wait) -> Option<(ObjectId, Object)> {
        let (seq, answer) = self.known.get(&wait.thread)?;
        let answer = answer.as_ref()?;
        let named = (*seq == wait.seq && answer.at <= wait.end).then(|| answer.named.clone())?;
        self.name(wait, named)
    }

    /// The same of a wait that observation ends with, of a thread of a process that had blocked so many times.
    pub(super) fn complete_last(
        &mut self,
        pid: u32,
        tid: u32,
        wait: &mut Wait,
        switches: u64,
    ) -> Option<(ObjectId, Object)> {
        self.look_at(pid, tid, wait);
        let (seq, answer) = self.known.get(&wait.thread)?;
        let answer = answer.as_ref()?;
        let named = (*seq == wait.seq && answer.switches == switches).then(|| answer.named.clone())?;
        self.name(wait, named)
    }

    fn name(&mut self, wait: &mut Wait, named: Named) -> Option<(ObjectId, Object)> {
        wait.asked.get_or_insert_with(|| {
            Box::new(WaitMemory {
                path: Some(named.path.clone()),
                ..WaitMemory::empty(wait.thread, wait.seq)
            })
        });
        let mounted = named.mounted.clone()?;
        let shown = self.served.get(&wait.kernel_stack?);
        if shown.copied() != served_by(&mounted.file_system) {
            return None;
        }
        let next = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        let known = self.objects.get(&named).copied();
        wait.object = known.or_else(|| (next < MAX_OBJECTS).then(|| ObjectId(u32::MAX - next)));
        let id = wait.object.filter(|_| known.is_none())?;
        self.objects.insert(named.clone(), id);
        let object = Object {
            kind: ObjectKind::File,
            path: Some(named.path),
            inode: 0,
            device: mounted.device,
            file_system: mounted.file_system,
        };
        Some((id, object))
    }

    /// Processes whose memory or mounts could not be read in time.
    pub(super) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.readers.stuck()
    }

    /// A thread is gone.
    pub(super) fn forget(&mut self, thread: ThreadId) {
        self.known.remove(&thread);
    }
}

/// What to read to know the path that a call names.
fn question(tid: u32, call: &Call) -> Option<Question> {
    // Of two paths nothing says on which one a thread is stuck.
    let path = system_calls::of(call)?.path.filter(|path| !path.one_of_two)?;
    let address = call.args.get(usize::from(path.argument))?;
    // A descriptor is an int: the rest of the register is anything.
    let descriptor = |at: u8| {
        let register = call.args.get(usize::from(at))? & u64::from(u32::MAX);
        Some(u32::try_from(register).ok()?.cast_signed())
    };
    let from = path.directory.map_or(Some(AT_FDCWD), descriptor)?;
    Some(Question {
        tid,
        address: *address,
        from,
    })
}

fn read(root: &Root, question: Question) -> Option<Answer> {
    let Question { tid, address, from } = question;
    let bytes = memory::read(tid, address, PATH_MAX)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let path = whole(&name, || directory(root, tid, from));
    let mounted = path.as_ref().and_then(|path| {
        let lines = mountinfo::of_process(root, tid, &mut Vec::new());
        let line = mountinfo::of_path(&lines, path)?;
        Some(Mounted {
            device: line.device,
            file_system: line.file_system.clone(),
        })
    });
    Some(Answer {
        named: Named {
            path: path.unwrap_or(name),
            mounted,
        },
        at: clocks::monotonic(),
        switches: memory::voluntary_switches(root, tid)?,
    })
}

/// Whether a blocked task waits for a frozen file system; `frames` are the functions of its stack in the kernel, innermost first.
#[must_use]
pub fn awaits_frozen(frames: &[String]) -> bool {
    classify::of_task(TaskState::Uninterruptible, frames, None).cause == Cause::FsFrozen
}

/// The path that a sleeping thread's call names, from its root on. It reads the thread's memory: it is for a process that can be left behind.
#[must_use]
pub fn of_call(root: &Root, tid: u32) -> Option<String> {
    let call = tasks::call(root, tid)?;
    let [first, second, third, fourth, ..] = call.args;
    let call = Call {
        number: call.number,
        args: [first, second, third, fourth],
    };
    let Question { tid, address, from } = question(tid, &call)?;
    let bytes = memory::read(tid, address, PATH_MAX)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    whole(&String::from_utf8_lossy(&bytes[..end]), || {
        directory(root, tid, from)
    })
}

/// The directory in which a thread's names begin, from its root on. Reads links of `/proc`, and nothing that they lead to.
fn directory(root: &Root, tid: u32, from: i32) -> Option<String> {
    let folder = root.proc.join(tid.to_string());
    let link = match from {
        AT_FDCWD => folder.join("cwd"),
        _ => folder.join("fd").join(from.to_string()),
    };
    let text = |link| Some(std::fs::read_link(link).ok()?.to_string_lossy().into_owned());
    below(&text(folder.join("root"))?, &text(link)?)
}

/// A path as one has it whose root is there.
fn below(root: &str, path: &str) -> Option<String> {
    let inside = path.strip_prefix(root.trim_end_matches('/'))?;
    (inside.starts_with('/') && !inside.ends_with(" (deleted)")).then(|| inside.to_owned())
}

/// A name as a path without dots; `None` where that can't be reported without touching it, as of `link/..`.
fn whole(name: &str, directory: impl FnOnce() -> Option<String>) -> Option<String> {
    let from = if name.starts_with('/') {
        String::new()
    } else {
        directory()?
    };
    let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    let mut may_be_link = false;
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." if may_be_link => return None,
            ".." => drop(parts.pop()),
            part => {
                may_be_link = true;
                parts.push(part);
            }
        }
    }
    Some(format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::{AT_FDCWD, Answer, Mounted, Named, Paths, Question, below, read, whole};
    use holdup_evidence::{Call, Clock, DeviceNumber, KernelStackId, TaskState, ThreadId, Wait, Waker};
    use holdup_proc::Root;
    use std::ffi::CString;

    #[test]
    fn who_waits_to_write_to_a_frozen_file_system_is_known_by_the_stack() {
        let stack = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let frozen = [
            "percpu_rwsem_wait",
            "__percpu_down_read",
            "mnt_want_write",
            "path_openat",
        ];
        assert!(super::awaits_frozen(&stack(&frozen)));
        assert!(!super::awaits_frozen(&stack(&[
            "folio_wait_bit",
            "ext4_sync_file"
        ])));
        assert!(!super::awaits_frozen(&[]));
    }

    const FUSE: KernelStackId = KernelStackId(1);
    const OTHER: KernelStackId = KernelStackId(2);

    /// An `openat` whose path on a file system of this type was read at 500.
    fn looked_at(file_system: &str) -> Paths {
        let mut paths = Paths::default();
        let frames =
            |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        paths.stack_seen(
            FUSE,
            &frames(&["request_wait_answer", "fuse_lookup_name", "path_openat"]),
        );
        paths.stack_seen(OTHER, &frames(&["io_schedule", "ext4_find_entry", "path_openat"]));
        let mounted = Mounted {
            device: DeviceNumber { major: 0, minor: 41 },
            file_system: file_system.to_owned(),
        };
        let answer = Answer {
            named: Named {
                path: "/mnt/data".to_owned(),
                mounted: Some(mounted),
            },
            at: 500,
            switches: 3,
        };
        paths.known.insert(ThreadId(0), (4, Some(answer)));
        paths
    }

    fn wait(seq: u32, end: u64, stack: KernelStackId) -> Wait {
        Wait {
            thread: ThreadId(0),
            seq,
            start: 0,
            end,
            clock: Clock::default(),
            state: TaskState::Uninterruptible,
            iowait: false,
            call: Call::named("openat"),
            object: None,
            ready: None,
            waker: Waker::Unknown,
            holder: None,
            kernel_stack: Some(stack),
            serves: false,
            unanswered: None,
            memory_follows: false,
            asked: None,
        }
    }

    fn path(wait: &Wait) -> Option<&str> {
        wait.asked.as_ref()?.path.as_deref()
    }

    #[test]
    fn what_was_read_during_a_wait_is_what_it_names() {
        let mut paths = looked_at("fuse.sshfs");
        let mut goes_on = wait(4, 500, FUSE);
        let (id, object) = paths.complete(&mut goes_on).unwrap();
        assert_eq!((goes_on.object, path(&goes_on)), (Some(id), Some("/mnt/data")));
        assert_eq!(
            (object.device.minor, object.file_system.as_str()),
            (41, "fuse.sshfs")
        );
        let mut later = wait(4, 600, FUSE);
        assert_eq!(paths.complete(&mut later), None, "it has been described");
        assert_eq!(later.object, Some(id));
        for mut over in [wait(4, 499, FUSE), wait(5, 600, FUSE)] {
            assert_eq!(paths.complete(&mut over), None);
            assert_eq!(
                (over.object, path(&over)),
                (None, None),
                "the thread has run meanwhile"
            );
        }
    }

    #[test]
    fn a_file_system_that_the_stack_contradicts_is_none() {
        for (file_system, stack) in [("ext4", FUSE), ("nfs4", FUSE), ("fuse", OTHER)] {
            let mut wait = wait(4, 500, stack);
            assert_eq!(looked_at(file_system).complete(&mut wait), None);
            assert_eq!(
                (wait.object, path(&wait)),
                (None, Some("/mnt/data")),
                "{file_system}"
            );
        }
        let mut wait = wait(4, 500, OTHER);
        assert!(looked_at("ext4").complete(&mut wait).is_some());
    }

    #[test]
    fn the_last_wait_is_known_by_how_often_its_thread_had_blocked() {
        for (switches, known) in [(3, Some("/mnt/data")), (4, None)] {
            let mut last = wait(4, 400, FUSE);
            looked_at("fuse").complete_last(1, 1, &mut last, switches);
            assert_eq!(path(&last), known);
        }
    }

    #[test]
    fn a_name_begins_where_its_process_is() {
        let at = |name, directory: &str| whole(name, || Some(directory.to_owned()));
        assert_eq!(at("/mnt//a/./b", "/x").as_deref(), Some("/mnt/a/b"));
        assert_eq!(at("data", "/mnt").as_deref(), Some("/mnt/data"));
        assert_eq!(at("../data", "/mnt/a").as_deref(), Some("/mnt/data"));
        assert_eq!(at("../../..", "/mnt").as_deref(), Some("/"));
        assert_eq!(
            at("", "/mnt/a").as_deref(),
            Some("/mnt/a"),
            "the descriptor itself"
        );
        assert_eq!(
            at("link/../data", "/mnt"),
            None,
            "where a link leads is not known"
        );
        assert_eq!(whole("data", || None), None);
        assert_eq!(whole("/data", || None).as_deref(), Some("/data"));
    }

    #[test]
    fn another_root_is_taken_off() {
        assert_eq!(below("/", "/mnt/a").as_deref(), Some("/mnt/a"));
        assert_eq!(below("/srv/jail", "/srv/jail/a").as_deref(), Some("/a"));
        assert_eq!(below("/srv/jail", "/srv/jailbird"), None);
        assert_eq!(below("/srv/jail", "/mnt"), None);
        assert_eq!(below("/", "/mnt/a (deleted)"), None);
        assert_eq!(below("/", "pipe:[7]"), None);
    }

    #[test]
    fn a_path_in_memory_is_read_with_its_mount() {
        let root = Root::system();
        let read = |path: &CString| {
            let question = Question {
                tid: std::process::id(),
                address: path.as_ptr() as u64,
                from: AT_FDCWD,
            };
            read(&root, question).map(|answer: Answer| answer.named)
        };
        let absolute = read(&CString::new("/proc/self/mounts").unwrap()).unwrap();
        assert_eq!(absolute.path, "/proc/self/mounts");
        assert_eq!(absolute.mounted.unwrap().file_system, "proc");
        let relative = read(&CString::new("x").unwrap()).unwrap();
        let own = std::env::current_dir().unwrap().join("x");
        assert_eq!(relative.path, own.to_string_lossy());
        // Longer than the kernel takes.
        assert_eq!(read(&CString::new(vec![b'x'; 5000]).unwrap()), None);
    }

    #[test]
    fn a_call_has_its_path_where_its_manual_says() {
        let asked = |number: libc::c_long, args| {
            let number = i32::try_from(number).unwrap();
            let question = super::question(7, &Call { number, args })?;
            Some((question.address, question.from))
        };
        let minus_one = u64::from(u32::MAX);
        assert_eq!(
            asked(libc::SYS_openat, [minus_one - 99, 8, 9, 0]),
            Some((8, AT_FDCWD))
        );
        assert_eq!(asked(libc::SYS_openat, [5, 8, 9, 0]), Some((8, 5)));
        assert_eq!(asked(libc::SYS_stat, [8, 9, 0, 0]), Some((8, AT_FDCWD)));
        assert_eq!(asked(libc::SYS_mount, [8, 9, 0, 0]), Some((9, AT_FDCWD)));
        assert_eq!(asked(libc::SYS_rename, [8, 9, 0, 0]), None);
        assert_eq!(asked(libc::SYS_symlink, [8, 9, 0, 0]), Some((9, AT_FDCWD)));
        assert_eq!(asked(libc::SYS_symlinkat, [8, 5, 9, 0]), Some((9, 5)));
        assert_eq!(asked(libc::SYS_read, [8, 9, 0, 0]), None);
        assert_eq!(asked(-1, [8, 9, 0, 0]), None);
    }
}
