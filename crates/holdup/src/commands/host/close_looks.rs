//! Looks at single processes that can block: titles, arguments, calls and descriptors' pages, for [`super::behind`].
//!
//! In: questions. Out: answers, of those that came in time. Each is asked of a child process that can be left behind.

use super::aside::Aside;
use super::filled;
use super::instead::{self, Stands};
use super::looked_up::waiting_threads;
use super::open_question;
use holdup_collect::paths;
use holdup_evidence::facts::SessionState;
use holdup_evidence::observed::FilledVolume;
use holdup_knowledge::system_calls::Kind;
use holdup_knowledge::{name_servers, postgres_titles, programs, system_calls};
use holdup_proc::descriptors::{self, Open};
use holdup_proc::root::text_if_there;
use holdup_proc::{Root, blocking, file_locks, frozen, mountinfo, names, room, tasks, titles};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// How long is waited for answers.
const PATIENCE: Duration = Duration::from_millis(500);

/// A question about a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// What its title says of a session.
    Session { pid: u32 },
    /// The script that it interprets.
    Program { pid: u32 },
    /// For which file's lock it waits, and who has that; `noted`: whom the kernel names.
    Lock {
        waiter: u32,
        noted: Option<u32>,
        own: u32,
    },
    /// On which mount the file of a thread's call is.
    Mount { pid: u32, tid: u32 },
    /// Whether one of its threads is in a call on this, as its link has it.
    At { pid: u32, end: String },
    /// What a thread waits to write to.
    Room { pid: u32, tid: u32 },
    /// On which full file system it has files open to write to.
    Full { pid: u32 },
    /// Whether it waits for the answer to a question on this socket.
    Asks { pid: u32, socket: u64 },
    /// The name servers that its own arguments name, of a server that asks others.
    Forwards { pid: u32 },
    /// Which processes are frozen with their cgroups.
    Frozen,
    /// Which file one has locked that the other has open.
    Tried { waiter: u32, holder: u32 },
    /// On which file system that is short of room it has files open to write to, and who has the largest file open there.
    Filled { pid: u32 },
    /// What its threads stand in.
    Stands { pid: u32 },
    /// Its title.
    Title { pid: u32 },
}

impl Question {
    /// The process that is asked for its session.
    pub(super) fn session(&self) -> Option<u32> {
        match self {
            Question::Session { pid } => Some(*pid),
            _ => None,
        }
    }
}

/// What came of a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Answer {
    Session(SessionState),
    Arguments(Vec<String>),
    Lock { file: String, holder: Option<u32> },
    Mount(u32),
    At,
    Asks,
    Room(String),
    Full(String),
    Forwards(Vec<SocketAddr>),
    Frozen(Vec<(u32, String)>),
    Tried(String),
    Filled(FilledVolume),
    Stands(Stands),
    Title(String),
}

/// Looks that go on.
#[derive(Debug)]
pub(super) struct Close(Aside<Question, Option<Answer>>);

/// What came of them.
#[derive(Debug, Default)]
pub(super) struct Answers(HashMap<Question, Answer>);

impl Close {
    /// Begins.
    pub(super) fn start(root: &Root, questions: Vec<Question>) -> Close {
        let root = root.clone();
        Close(Aside::start(
            blocking::reader(c"holdup-host"),
            |_| "a process that others may wait for".to_owned(),
            questions,
            move |question| answer(&root, question),
        ))
    }

    /// The answers.
    pub(super) fn take(self) -> Answers {
        let seen = self.0.take(PATIENCE).seen.into_iter();
        Answers(
            seen.filter_map(|(question, answer)| Some((question, answer?)))
                .collect(),
        )
    }
}

impl Answers {
    /// What a session does.
    pub(super) fn session(&self, pid: u32) -> Option<SessionState> {
        match self.0.get(&Question::Session { pid })? {
            Answer::Session(state) => Some(*state),
            _ => None,
        }
    }

    /// What a person calls a process; `name` is the kernel's name for it.
    pub(super) fn program(&self, pid: u32, name: &str) -> Option<String> {
        match self.0.get(&Question::Program { pid })? {
            Answer::Arguments(arguments) => programs::named(name, arguments.iter().map(String::as_str)),
            _ => None,
        }
    }

    /// The file whose lock is waited for, and who has it.
    pub(super) fn lock(&self, waiter: u32, noted: Option<u32>) -> (String, Option<u32>) {
        let same = |question: &&Question| matches!(question, Question::Lock { waiter: one, noted: other, .. } if *one == waiter && *other == noted);
        let known = self.0.keys().find(same).and_then(|question| self.0.get(question));
        match known {
            Some(Answer::Lock { file, holder }) => (file.clone(), *holder),
            _ => (String::new(), noted),
        }
    }

    /// The kernel's number of the mount that a thread waits for.
    pub(super) fn mount(&self, pid: u32, tid: u32) -> Option<u32> {
        match self.0.get(&Question::Mount { pid, tid })? {
            Answer::Mount(number) => Some(*number),
            _ => None,
        }
    }

    /// The link of what a thread waits to write to.
    pub(super) fn room(&self, pid: u32, tid: u32) -> Option<&str> {
        match self.0.get(&Question::Room { pid, tid })? {
            Answer::Room(link) => Some(link),
            _ => None,
        }
    }

    /// The full file system on which a process has files open to write to.
    pub(super) fn full(&self, pid: u32) -> Option<&str> {
        match self.0.get(&Question::Full { pid })? {
            Answer::Full(mount) => Some(mount),
            _ => None,
        }
    }

    /// Whether a process waits for the answer to a question on this socket.
    pub(super) fn asks(&self, pid: u32, socket: u64) -> bool {
        self.0.contains_key(&Question::Asks { pid, socket })
    }

    /// The name servers that a process was started to ask.
    pub(super) fn forwards(&self, pid: u32) -> &[SocketAddr] {
        match self.0.get(&Question::Forwards { pid }) {
            Some(Answer::Forwards(servers)) => servers,
            _ => &[],
        }
    }

    /// Processes that are frozen, each with its cgroup.
    pub(super) fn frozen(&self) -> &[(u32, String)] {
        match self.0.get(&Question::Frozen) {
            Some(Answer::Frozen(processes)) => processes,
            _ => &[],
        }
    }

    /// The file that one has locked and the other has open.
    pub(super) fn tried(&self, waiter: u32, holder: u32) -> Option<&str> {
        match self.0.get(&Question::Tried { waiter, holder })? {
            Answer::Tried(file) => Some(file),
            _ => None,
        }
    }

    /// The file system that a process writes to and that is short of room.
    pub(super) fn filled(&self, pid: u32) -> Option<&FilledVolume> {
        match self.0.get(&Question::Filled { pid })? {
            Answer::Filled(volume) => Some(volume),
            _ => None,
        }
    }

    /// The title of a process.
    pub(super) fn title(&self, pid: u32) -> Option<&str> {
        match self.0.get(&Question::Title { pid })? {
            Answer::Title(title) => Some(title),
            _ => None,
        }
    }

    /// What the threads of a process stand in.
    pub(super) fn stands(&self, pid: u32) -> Option<&Stands> {
        match self.0.get(&Question::Stands { pid })? {
            Answer::Stands(stands) => Some(stands),
            _ => None,
        }
    }

    /// Whether a process is in a call on this.
    pub(super) fn is_at(&self, pid: u32, end: &str) -> bool {
        let question = Question::At {
            pid,
            end: end.to_owned(),
        };
        self.0.contains_key(&question)
    }
}

/// An end as links of descriptors have it.
pub(super) fn link(end: &Open) -> String {
    match end {
        Open::PipeToRead(inode) | Open::PipeToWrite(inode) => format!("pipe:[{inode}]"),
        Open::Socket(inode) => format!("socket:[{inode}]"),
        Open::PathToRead(path) | Open::PathToWrite(path) => path.clone(),
    }
}

/// In a child.
fn answer(root: &Root, question: &Question) -> Option<Answer> {
    match question {
        Question::Session { pid } => postgres_titles::state(&titles::read(root, *pid)?).map(Answer::Session),
        Question::Program { pid } => titles::arguments(root, *pid).map(Answer::Arguments),
        Question::Lock { waiter, noted, own } => {
            let mut file = of_call(root, *waiter, *waiter).map(|(_, path)| path);
            if file.is_none() {
                let threads = waiting_threads(root, *waiter).into_iter();
                file = threads
                    .filter_map(|tid| of_call(root, *waiter, tid))
                    .map(|(_, path)| path)
                    .next();
            }
            // Who asked for it may have handed it on, and be gone.
            let path = file.as_deref().map(Path::new).filter(|path| path.is_absolute());
            let holder = noted.and_then(|noted| match file_locks::has(root, noted, noted) {
                true => Some(noted),
                false => file_locks::keeper(root, noted, *own, path)
                    .or(Some(noted).filter(|pid| root.proc.join(pid.to_string()).exists())),
            });
            Some(Answer::Lock {
                file: file.filter(|path| path.starts_with('/')).unwrap_or_default(),
                holder,
            })
        }
        Question::Mount { pid, tid } => {
            let Some((descriptor, _)) = of_call(root, *pid, *tid) else {
                let path = paths::of_call(root, *tid)?;
                let mounts = mountinfo::of_process(root, *pid, &mut Vec::new());
                return Some(Answer::Mount(mountinfo::of_path(&mounts, &path)?.number));
            };
            let info = root
                .proc
                .join(pid.to_string())
                .join("fdinfo")
                .join(descriptor.to_string());
            let info = text_if_there(&info)?;
            let number = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
            number.trim().parse().ok().map(Answer::Mount)
        }
        Question::At { pid, end } => {
            let mut threads = waiting_threads(root, *pid).into_iter();
            let at = |tid: u32| of_call(root, *pid, tid).is_some_and(|(_, link)| link == *end);
            threads.any(at).then_some(Answer::At)
        }
        Question::Room { pid, tid } => {
            let call = tasks::call(root, *tid)?;
            let writes = system_calls::numbered(call.number)?.is(Kind::Writes | Kind::Sends);
            let link = || of_call(root, *pid, *tid).map(|(_, link)| link);
            writes.then(link).flatten().map(Answer::Room)
        }
        Question::Asks { pid, socket } => open_question::is_open(root, *pid, *socket).then_some(Answer::Asks),
        Question::Frozen => Some(Answer::Frozen(frozen::processes(root))),
        Question::Tried { waiter, holder } => tried(root, *waiter, *holder).map(Answer::Tried),
        Question::Full { pid } => full(root, *pid).map(Answer::Full),
        Question::Filled { pid } => filled::volume(root, *pid).map(Answer::Filled),
        Question::Title { pid } => titles::read(root, *pid).map(Answer::Title),
        Question::Stands { pid } => Some(Answer::Stands(instead::look(root, *pid))),
        Question::Forwards { pid } => {
            let name = names::comm(root, *pid)?;
            let arguments = titles::arguments(root, *pid)?;
            Some(Answer::Forwards(name_servers::forwards_to(
                &name,
                arguments.iter().map(String::as_str),
            )))
        }
    }
}

/// Descriptors of a process that are looked through for a locked file.
const MAX_DESCRIPTORS: usize = 1_024;

/// The file that one process has locked for writing and another one has open.
fn tried(root: &Root, waiter: u32, holder: u32) -> Option<String> {
    let folder = |pid: u32, name: &str| root.proc.join(pid.to_string()).join(name);
    let numbers = |pid: u32| {
        let entries = std::fs::read_dir(folder(pid, "fd"))
            .into_iter()
            .flatten()
            .flatten();
        entries.map(|entry| entry.file_name()).take(MAX_DESCRIPTORS)
    };
    let link = |pid: u32, number: &std::ffi::OsStr| {
        let path = std::fs::read_link(folder(pid, "fd").join(number)).ok()?;
        Some(path.to_string_lossy().into_owned()).filter(|path| path.starts_with('/'))
    };
    let open: HashSet<String> = numbers(waiter)
        .filter_map(|number| link(waiter, &number))
        .collect();
    numbers(holder).find_map(|number| {
        let path = link(holder, &number).filter(|path| open.contains(path))?;
        let info = text_if_there(&folder(holder, "fdinfo").join(&number))?;
        let is_lock = |line: &str| line.starts_with("lock:") && line.contains("WRITE");
        info.lines().any(is_lock).then_some(path)
    })
}

/// The first full file system on which a process has files open to write to.
fn full(root: &Root, pid: u32) -> Option<String> {
    let mounts = mountinfo::read(root, &mut Vec::new());
    let local: Vec<String> = room::local(&mounts)
        .into_iter()
        .map(|one| one.target.clone())
        .collect();
    let written = descriptors::written_by(root, pid, &local).into_iter();
    let mut below: Vec<String> = written.map(|one| one.below).collect();
    below.sort_unstable();
    below.dedup();
    below
        .into_iter()
        .find(|mount| room::of(mount).is_some_and(|room| room.is_full() || room.is_without_inodes()))
}

/// The descriptor of the call that a thread is in, and what it leads to.
pub(super) fn of_call(root: &Root, pid: u32, tid: u32) -> Option<(u64, String)> {
    let call = tasks::call(root, tid)?;
    let argument = system_calls::numbered(call.number)?.descriptor?;
    let descriptor = *call.args.get(usize::from(argument))?;
    let link = std::fs::read_link(
        root.proc
            .join(pid.to_string())
            .join("fd")
            .join(descriptor.to_string()),
    )
    .ok()?;
    Some((descriptor, link.to_string_lossy().into_owned()))
}
