//! One look at a thread that sleeps: its call, what that is about, and its memory.
//!
//! In: a thread's folder and what is wanted. Out: texts and bytes, as they were in one and the same wait: whoever asked compares
//! [`Answer::turns`] with what it has seen before. Everything here may block, and is only called beside the loop.

use super::arguments::{around, length, path, poll_set, select_set, unix_address};
use super::clocks::{Turns, turns};
use super::described;
use super::site::Site;
use super::sockets::diag::Diag;
use super::sockets::route;
use super::sockets::tcp_state::{self, Watched};
use super::sockets::unix_peers;
use super::task::{self, text_in};
use crate::descriptors;
use crate::mountinfo;
use crate::root::Root;
use crate::sockets::{self, Sockets};
use crate::{clocks as machine, maps, memory, names};
use holdup_detached::Bytes;
use holdup_evidence::{Call, FUTEX_WORDS, LockOwner, Ns, Object, ObjectKind, SocketAddress, TaskState};
use nix::fcntl::readlinkat;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// Descriptors of a polled set that are looked at.
pub(super) const POLLED: usize = 16;

/// At most so much of a thread's stack is read, bytes. One function of Node.js alone has 20 KiB.
const STACK: usize = 48 * 1024;

/// How long tables of mounts, and of sockets that ask for a connection, are good for, in nanoseconds.
const FRESH: Ns = 200_000_000;

/// The same of a socket that is in no table: it may be a moment old, or of a kind that has none.
const NEW: Ns = 5_000_000;

/// So often a descriptor is looked at again that is another socket by the time that its own is looked up.
const AGAIN: usize = 2;

/// What is wanted beside the call.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Want {
    /// The memory of its stack.
    pub stack: bool,
    /// The kernel's functions.
    pub kernel_stack: bool,
    /// Which code its process has where.
    pub maps: bool,
}

/// A question about a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// The asker's own number for the thread.
    pub key: u32,
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// How it sleeps.
    pub state: TaskState,
    /// What is wanted.
    pub want: Want,
    /// Of one that runs: the call that it was seen in, whose descriptor is asked for, and nothing else.
    pub runs_in: Option<Call>,
}

/// A descriptor of a polled set: its number, what is asked for, what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polled {
    /// Whether its process has the other end, too: by such a pipe or socket a program wakes itself.
    pub own: bool,
    /// The descriptor.
    pub fd: i32,
    /// `POLLIN` and the like.
    pub events: u16,
    /// What it is, and a key that is the same for the same thing.
    pub object: Option<(String, Object)>,
}

/// What was seen.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Of which question.
    pub key: u32,
    /// What was wanted.
    pub want: Want,
    /// Whether the kernel says which call it is in, or that it is in none.
    pub shown: bool,
    /// Of a running thread: which call it was asked about.
    pub runs_in: Option<Call>,
    /// How often the thread had run, before and after everything else was read.
    pub turns: (Option<Turns>, Option<Turns>),
    /// What it waits in.
    pub site: Site,
    /// The kernel's functions, innermost first; `None` where they may not be seen.
    pub kernel_stack: Option<Vec<String>>,
    /// What its call is about, and a key that is the same for the same thing.
    pub object: Option<(String, Object)>,
    /// Whether that is a pipe of which its process has the other end, too.
    pub own: bool,
    /// By such keys: the inodes of the other ends of sockets.
    pub peers: Vec<(String, u64)>,
    /// The state of the TCP connection that it is for, where it is for a single one.
    pub tcp: Option<Watched>,
    /// How long its call may last, where its memory says so, nanoseconds.
    pub limit: Option<Ns>,
    /// Whether a socket may be younger than the tables: what it is will be known at the next look.
    pub stale: bool,
    /// What it polls; `None` where it does not, or that could not be read.
    pub polled: Option<(Vec<Polled>, bool)>,
    /// The path that its call names. Hostile text.
    pub path: Option<String>,
    /// The words around the futex that it waits for.
    pub words: Option<[u32; FUTEX_WORDS]>,
    /// Who holds the lock on a file that it waits for; 0 where the kernel keeps nobody.
    pub lock_holder: Option<u32>,
    /// io_uring: whether every request that was made had completed.
    pub ring_at_rest: bool,
    /// Who traces it, of one that stands still for that.
    pub tracer: Option<LockOwner>,
    /// Its stack's memory from the stack pointer upward.
    pub stack: Option<Bytes>,
    /// Whether that was refused.
    pub refused: bool,
    /// The executable mappings of its process.
    pub maps: Option<Vec<maps::Mapping>>,
}

/// What a reader keeps from one look to the next.
#[derive(Debug)]
pub struct Eye {
    root: Root,
    /// By network namespace: that of the process it was read for.
    sockets: HashMap<u32, Tables>,
    mounts: HashMap<u32, (Ns, Vec<mountinfo::Line>)>,
    /// By process and inode: whether the process has both ends of a pipe.
    own_pipes: HashMap<(u32, u64), bool>,
    /// For questions about sockets; `None` where they are refused.
    diag: Option<Diag>,
}

/// Sockets of a network namespace, and when those were read that are not TCP's, and TCP's.
#[derive(Debug, Default)]
struct Tables {
    read: Ns,
    tcp_read: Ns,
    all: Sockets,
}

/// Processes of which tables are kept.
const TABLES: usize = 256;

impl Eye {
    /// Reads below this root.
    #[must_use]
    pub fn new(root: Root) -> Eye {
        Eye {
            root,
            sockets: HashMap::new(),
            mounts: HashMap::new(),
            own_pipes: HashMap::new(),
            diag: Diag::open(libc::NETLINK_SOCK_DIAG),
        }
    }

    /// Whether a socket is known, after all but TCP's were read if they are no longer new.
    fn knows_without_tcp(&mut self, pid: u32, inode: u64) -> bool {
        if self.sockets.len() > TABLES {
            self.sockets.clear();
        }
        let now = machine::monotonic();
        let Tables { read, all, .. } = self.sockets.entry(pid).or_default();
        if !all.knows(inode) && (*read == 0 || now.saturating_sub(*read) > NEW) {
            *all = Sockets {
                tcp: std::mem::take(&mut all.tcp),
                ..sockets::without_tcp(&self.root, pid)
            };
            *read = now;
        }
        all.knows(inode)
    }

    fn sockets(&mut self, pid: u32, inode: u64) -> &Sockets {
        let known = self.knows_without_tcp(pid, inode);
        let now = machine::monotonic();
        let Tables { tcp_read, all, .. } = self.sockets.entry(pid).or_default();
        let good_for = if known { FRESH } else { NEW };
        let may_tell = !known || all.knocks(inode);
        if may_tell && (*tcp_read == 0 || now.saturating_sub(*tcp_read) > good_for) {
            all.set_tcp(sockets::tcp_of(&self.root, pid));
            *tcp_read = now;
        }
        all
    }

    /// What was read of a process's sockets is read again when one is looked up.
    fn forget_sockets(&mut self, pid: u32) {
        self.sockets.remove(&pid);
    }

    fn mounts(&mut self, pid: u32) -> &[mountinfo::Line] {
        if self.mounts.len() > TABLES {
            self.mounts.clear();
        }
        let now = machine::monotonic();
        let (read, table) = self.mounts.entry(pid).or_default();
        if *read == 0 || now.saturating_sub(*read) > FRESH * 10 {
            *table = mountinfo::of_process(&self.root, pid, &mut Vec::new());
            *read = now;
        }
        table
    }
}

/// Looks; nothing where the thread is gone.
///
/// The folder is opened anew for each look. If another thread has the number by then, it has had other turns, and its answer counts for
/// nothing.
#[must_use]
pub fn at(eye: &mut Eye, question: Question) -> Option<Answer> {
    let Question {
        key,
        pid,
        tid,
        state,
        want,
        runs_in,
    } = question;
    let folder = task::folder(&eye.root, pid, tid)?;
    let counted = || turns(&text_in(&folder, "schedstat")?);
    let before = counted();
    let (site, shown) = match runs_in {
        Some(call) => (Site::of_running(call), true),
        None => {
            let syscall = text_in(&folder, "syscall");
            let wchan = text_in(&folder, "wchan");
            let shown = syscall.as_deref().is_some_and(is_shown);
            (Site::read(state, syscall.as_deref(), wchan.as_deref()), shown)
        }
    };
    let call = site.call.unwrap_or_default();
    let mut answer = Answer {
        key,
        want,
        shown,
        runs_in,
        turns: (before, None),
        kernel_stack: None,
        object: None,
        own: false,
        peers: Vec::new(),
        tcp: None,
        limit: described::time_limit(&call, site.fifth).and_then(|limit| length(tid, limit)),
        stale: false,
        polled: None,
        path: None,
        words: None,
        lock_holder: None,
        ring_at_rest: false,
        tracer: (state == TaskState::Traced)
            .then(|| tracer(&eye.root, &folder))
            .flatten(),
        stack: None,
        refused: false,
        maps: None,
        site,
    };
    if want.kernel_stack {
        answer.kernel_stack = text_in(&folder, "stack").map(|text| functions(&text));
    }
    let mut links = Seen {
        eye,
        pid,
        folder: &folder,
        peers: Vec::new(),
        stale: false,
    };
    match described::about(&call) {
        described::About::Descriptor(fd) if runs_in.is_some() => {
            answer.object = links.describe(fd, &answer.site);
        }
        // What its memory says is of another call by now.
        _ if runs_in.is_some() => {}
        described::About::Nothing => answer.object = links.faulted(&answer.site),
        described::About::Descriptor(fd) => {
            answer.object = links.describe(fd, &answer.site);
            answer.own = links.has_both(answer.object.as_ref());
        }
        described::About::Lock(fd) => {
            answer.object = links.describe(fd, &answer.site);
            answer.lock_holder = described::lock_holder(&links.eye.root, pid);
        }
        described::About::Epoll(fd) => {
            answer.object = links.describe(fd, &answer.site);
            answer.polled = text_in(&folder, &format!("fdinfo/{fd}"))
                .map(|text| described::epoll_set(&text))
                .map(|set| links.polled(set));
        }
        described::About::Ring(fd) => {
            answer.object = links.describe(fd, &answer.site);
            answer.ring_at_rest = text_in(&folder, &format!("fdinfo/{fd}"))
                .is_some_and(|text| described::is_ring_at_rest(&text));
        }
        described::About::Poll { at, count } => {
            answer.polled = poll_set(tid, at, count).map(|set| links.polled(set));
        }
        described::About::Select { count, sets } => {
            answer.polled = Some(links.polled(select_set(tid, count, sets)));
        }
        described::About::Connect { fd, at, length } => {
            answer.object = links.describe(fd, &answer.site);
            if let (Some(object), Some(path)) = (&mut answer.object, unix_address(tid, at, length)) {
                links.connects_to(object, path);
            }
        }
        described::About::Futex(at) => answer.words = around(tid, at),
        described::About::Path(at) => {
            answer.path = path(tid, at);
            if let Some(path) = answer.path.as_deref().filter(|path| path.starts_with('/')) {
                let fifo = described::is_pipe(&answer.site);
                answer.object = described::file(path, None, links.eye.mounts(pid), fifo)
                    .map(|object| (path.to_owned(), object));
            }
        }
    }
    answer.tcp = links.connection(&answer);
    (answer.peers, answer.stale) = (std::mem::take(&mut links.peers), links.stale);
    if want.maps {
        answer.maps = maps::executable_in(&folder);
    }
    if want.stack
        && let Some((sp, _)) = answer.site.registers
    {
        answer.stack = memory::read(tid, sp, STACK).map(Bytes);
        answer.refused = answer.stack.is_none() && memory::is_refused(tid, sp);
    }
    answer.turns.1 = counted();
    Some(answer)
}

/// Descriptors of a thread.
struct Seen<'a> {
    eye: &'a mut Eye,
    pid: u32,
    folder: &'a OwnedFd,
    peers: Vec<(String, u64)>,
    stale: bool,
}

impl Seen<'_> {
    fn link(&self, fd: i32) -> Option<String> {
        let link = readlinkat(self.folder, format!("fd/{fd}").as_str()).ok()?;
        Some(link.to_string_lossy().into_owned())
    }

    /// What a descriptor is. Only its link is read, and the kernel's own text about it.
    fn describe(&mut self, fd: i32, site: &Site) -> Option<(String, Object)> {
        let mut link = self.link(fd)?;
        let mut socket = described::number(&link, "socket:[");
        // Who asks one question after the other has closed the socket by the time that the tables are read; the next has its number.
        for _ in 0..AGAIN {
            if let Some(inode) = socket
                && !self.eye.knows_without_tcp(self.pid, inode)
                && let Some(now) = self.link(fd).filter(|now| *now != link)
            {
                // It may be younger than the tables that were just read.
                self.eye.forget_sockets(self.pid);
                link = now;
                socket = described::number(&link, "socket:[");
            }
        }
        if let Some(inode) = socket {
            let sockets = self.eye.sockets(self.pid, inode);
            let mut object = described::socket(inode, sockets);
            self.stale |= !sockets.knows(inode);
            let peer = described::other_end(inode, &object, sockets);
            described::name_peer(&mut object, peer, sockets);
            let key = format!("{link}{}", described::socket_state(&object));
            self.peers.extend(peer.map(|peer| (key.clone(), peer)));
            return Some((key, object));
        }
        if link.starts_with('/') {
            let info = text_in(self.folder, &format!("fdinfo/{fd}")).unwrap_or_default();
            let mounts = self.eye.mounts(self.pid);
            let object = described::file(&link, Some(&info), mounts, described::is_pipe(site))?;
            return Some((link, object));
        }
        let object = described::nameless(&link);
        let key = match link.starts_with("anon_inode") {
            true => format!("{link} {} {fd}", self.pid),
            false => link,
        };
        Some((key, object))
    }

    /// The file that a thread waits for in a fault: where it reads data of a file, and has one mapped alone beside its code.
    fn faulted(&mut self, site: &Site) -> Option<(String, Object)> {
        let (_, pc) = site.registers.filter(|_| described::reads_a_page(site))?;
        if !maps::is_there(&self.eye.root, self.pid, pc)? {
            // It is its own code that is missing.
            return None;
        }
        let path = maps::only_data(&self.eye.root, self.pid)?;
        let object = described::file(&path, None, self.eye.mounts(self.pid), false)?;
        Some((path, object))
    }

    /// The state of the connection that a thread waits on: of its call's, or of the only one that it polls.
    fn connection(&self, answer: &Answer) -> Option<Watched> {
        let diag = self.eye.diag.as_ref()?;
        let polled = answer.polled.as_ref().map(|(set, _)| set.as_slice());
        let polled = polled.unwrap_or_default().iter();
        let polled = polled.filter_map(|one| one.object.as_ref());
        let ends = |(_, object): &(String, Object)| described::connection(object);
        let mut of = answer.object.iter().chain(polled).filter_map(ends);
        let (local, peer, inode) = of.next()?;
        if of.any(|(.., other)| other != inode) {
            return None;
        }
        let figures = tcp_state::of(diag, local, peer, inode, machine::monotonic())?;
        let device = figures.throttled().then(|| route::device(peer)).flatten();
        Some(Watched::new(figures, device))
    }

    /// A Unix socket that is not connected yet asks for this path: who listens there is its other end.
    fn connects_to(&mut self, (key, object): &mut (String, Object), path: String) {
        let ObjectKind::Socket { peer, .. } = &mut object.kind else {
            return;
        };
        let sockets = self.eye.sockets(self.pid, object.inode);
        let mut listening = sockets
            .unix
            .iter()
            .filter(|(_, one)| one.listens && one.path == path);
        let listener = listening.next().map(|(inode, _)| *inode);
        key.push_str(&format!(" to {path}"));
        *peer = SocketAddress::Unix(path);
        self.peers.clear();
        self.peers
            .extend(listener.map(|listener| (key.clone(), listener)));
    }

    /// Whether the process has both ends of a pipe: reported once, as it is met.
    fn has_both(&mut self, object: Option<&(String, Object)>) -> bool {
        let Some((_, object)) = object.filter(|(_, object)| object.kind == ObjectKind::Pipe) else {
            return false;
        };
        let key = (self.pid, object.inode);
        if let Some(known) = self.eye.own_pipes.get(&key) {
            return *known;
        }
        if self.eye.own_pipes.len() > TABLES {
            self.eye.own_pipes.clear();
        }
        let ends = descriptors::ends(&self.eye.root, self.pid);
        let both = ends.is_some_and(|ends| ends.read.contains(&key.1) && ends.written.contains(&key.1));
        self.eye.own_pipes.insert(key, both);
        both
    }

    /// Marks what the process has both ends of.
    fn mark_own(&self, polled: &mut [Polled]) {
        let pairs = |object: &Object| match &object.kind {
            ObjectKind::Pipe => true,
            ObjectKind::Socket { family, local, .. } => {
                *family == described::AF_UNIX && *local == SocketAddress::Unix(String::new())
            }
            _ => false,
        };
        let may_be = |one: &Polled| one.object.as_ref().is_some_and(|(_, object)| pairs(object));
        if !polled.iter().any(may_be) {
            return;
        }
        let Some(ends) = descriptors::ends(&self.eye.root, self.pid) else {
            return;
        };
        for one in polled {
            let Some((_, object)) = one.object.as_ref().filter(|(_, object)| pairs(object)) else {
                continue;
            };
            one.own = match object.kind {
                ObjectKind::Pipe => ends.read.contains(&object.inode) && ends.written.contains(&object.inode),
                _ => unix_peers::of(object.inode).is_some_and(|peer| ends.sockets.contains(&peer)),
            };
        }
    }

    fn polled(&mut self, set: Vec<(i32, u16)>) -> (Vec<Polled>, bool) {
        let more = set.len() > POLLED;
        let nothing = Site {
            state: TaskState::Interruptible,
            call: None,
            fifth: 0,
            registers: None,
            function: None,
            runs: false,
        };
        let mut polled: Vec<Polled> = set
            .into_iter()
            .take(POLLED)
            .map(|(fd, events)| Polled {
                fd,
                events,
                object: self.describe(fd, &nothing),
                own: false,
            })
            .collect();
        self.mark_own(&mut polled);
        (polled, more)
    }
}

/// Whether this is what the kernel writes to `syscall`: a call's number, -1 for none, or that the thread runs.
fn is_shown(text: &str) -> bool {
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    word == "running" || word.parse::<i64>().is_ok()
}

/// Who traces a thread, as its `status` says.
fn tracer(root: &Root, folder: &OwnedFd) -> Option<LockOwner> {
    let text = text_in(folder, "status")?;
    let tid = text.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    let tid = tid.trim().parse().ok().filter(|tid| *tid != 0)?;
    Some(LockOwner {
        pid: names::process_of(root, tid)?,
        tid,
    })
}

fn functions(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let name = line.split_once("] ").map_or(line, |(_, name)| name);
        name.split(['+', ' ']).next().unwrap_or_default().to_owned()
    };
    text.lines().map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{functions, is_shown};

    #[test]
    fn who_says_that_it_is_in_no_call_has_said_so() {
        assert!(
            ["running\n", "-1 0x7ffc 0x7f00\n", "0 0x1 0x2\n"]
                .into_iter()
                .all(is_shown)
        );
        assert!(!["", "\n", "rubbish 7"].into_iter().any(is_shown));
    }

    #[test]
    fn kernel_functions_have_no_offsets() {
        let text = "[<0>] futex_wait_queue+0x5c/0x90\n[<0>] do_futex+0x1 [mod]\n";
        assert_eq!(functions(text), ["futex_wait_queue", "do_futex"]);
    }
}
