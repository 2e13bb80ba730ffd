//! Which descriptors of a process are logs, and what was written there. Runs in a child that can be left behind.
//!
//! In: a process. Out: its logs with their sizes, or with what they say. Only regular files are read, on file systems of this machine's own
//! disks and memory, and never more than a bounded part of the end.

use holdup_evidence::Ns;
use holdup_evidence::facts::OwnLog;
use holdup_knowledge::file_systems::{self, Mount};
use holdup_proc::{Root, mountinfo};
use holdup_readers::own_log::{self, LogText};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file: device and inode.
pub(super) type FileId = (u64, u64);

/// How long files were, bytes.
pub(super) type Sizes = BTreeMap<FileId, u64>;

/// Descriptors that are looked at: a service opens its logs among its first.
const DESCRIPTORS_MAX: usize = 1024;

/// Logs of one process.
const LOGS_MAX: usize = 16;

/// Bytes before the beginning of observation that are read: a service that says once that an alarm is set says little else.
const BEFORE_BYTES: u64 = 64 << 10;

/// Bytes of what was written during observation that are read, the last ones.
const ADDED_BYTES: u64 = 512 << 10;

/// Permission of a link in `/proc/PID/fd`: the descriptor may be written to.
const WRITES: u32 = 0o200;

/// The kernel's text behind the path of a file that has no name any more.
const DELETED: &str = " (deleted)";

/// What a process is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// Its logs with their sizes.
    Sizes(u32),
    /// What they say.
    Said {
        pid: u32,
        /// As observation began.
        sizes: Sizes,
        /// Logs that were read for another process.
        known: BTreeSet<FileId>,
        watched: Ns,
        /// Bytes that may still be read.
        bytes: u64,
    },
}

/// What there is to say.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Sizes(Vec<(FileId, u64)>),
    Said { logs: Vec<Found>, leads: Option<Leads> },
}

/// A log; `said` is `None` where it was read for another process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) id: FileId,
    pub(super) said: Option<OwnLog>,
}

/// Where a log goes that nobody but its reader can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Leads {
    Pipe,
    Socket,
}

/// Answers.
pub(super) fn answer(question: Question, root: &Root) -> Answer {
    match question {
        Question::Sizes(pid) => {
            let (logs, _) = logs(root, pid);
            let size = |log: Log| {
                let (_, meta) = log.open()?;
                Some(((meta.dev(), meta.ino()), meta.size()))
            };
            Answer::Sizes(logs.into_iter().filter_map(size).collect())
        }
        Question::Said {
            pid,
            sizes,
            known,
            watched,
            mut bytes,
        } => {
            let (logs, leads) = logs(root, pid);
            let lives = lives(root, pid).unwrap_or(Ns::MAX);
            let mut found: Vec<Found> = Vec::new();
            for log in logs {
                let Some((file, meta)) = log.open() else { continue };
                let id = (meta.dev(), meta.ino());
                if found.iter().any(|one| one.id == id) {
                    continue;
                }
                let said = match known.contains(&id) {
                    true => None,
                    false => {
                        let size = sizes.get(&id).copied();
                        let Some(part) = Part::read(&file, meta.size(), size, bytes) else {
                            continue;
                        };
                        bytes = bytes.saturating_sub(part.bytes.len() as u64);
                        Some(said(&log, &part, &meta, watched, lives))
                    }
                };
                found.push(Found { id, said });
            }
            Answer::Said { logs: found, leads }
        }
    }
}

/// A descriptor that is a log.
#[derive(Debug)]
struct Log {
    link: PathBuf,
    path: String,
    /// Whether its number or name says so.
    named: bool,
}

impl Log {
    /// Opens it, if it is a regular file. No lease and no terminal keeps the reader.
    fn open(&self) -> Option<(File, std::fs::Metadata)> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&self.link)
            .ok()?;
        let meta = file.metadata().ok()?;
        meta.is_file().then_some((file, meta))
    }
}

/// The logs of a process, and where its standard error leads if that is no file.
fn logs(root: &Root, pid: u32) -> (Vec<Log>, Option<Leads>) {
    let process = root.proc.join(pid.to_string());
    let mut logs: Vec<Log> = Vec::new();
    let mut leads = None;
    let mut blocking: Option<BTreeSet<u32>> = None;
    let entries = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    for entry in entries.take(DESCRIPTORS_MAX).flatten() {
        let (link, number) = (entry.path(), entry.file_name());
        let Ok(target) = std::fs::read_link(&link) else {
            continue;
        };
        let target = target.to_string_lossy();
        let number = number.to_string_lossy();
        if number == "2" {
            leads = match target.split(':').next() {
                Some("pipe") => Some(Leads::Pipe),
                Some("socket") => Some(Leads::Socket),
                _ => None,
            };
        }
        let path = target.strip_suffix(DELETED).unwrap_or(&target);
        let standard = number == "1" || number == "2";
        if !is_file(path) || is_data(path) {
            continue;
        }
        let may = std::fs::symlink_metadata(&link).map_or(0, |link| link.mode());
        if may & WRITES == 0 {
            continue;
        }
        let Some(info) = Info::of(&process.join("fdinfo").join(&*number)) else {
            continue;
        };
        let named = standard || is_named(path);
        if !named && !info.appends {
            continue;
        }
        let blocking = blocking.get_or_insert_with(|| blocking_mounts(root, pid));
        if blocking.contains(&info.mount) {
            continue;
        }
        logs.push(Log {
            link,
            path: path.to_owned(),
            named,
        });
        if logs.len() >= LOGS_MAX {
            break;
        }
    }
    (logs, leads)
}

/// What the kernel says of a descriptor.
struct Info {
    appends: bool,
    mount: u32,
}

impl Info {
    fn of(file: &Path) -> Option<Info> {
        let text = std::fs::read_to_string(file).ok()?;
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
        Some(Info {
            appends: flags & libc::O_APPEND != 0,
            mount: field("mnt_id:")?.parse().ok()?,
        })
    }
}

/// Mounts of a process's namespace at which a look at a file can block.
fn blocking_mounts(root: &Root, pid: u32) -> BTreeSet<u32> {
    let lines = mountinfo::of_process(root, pid, &mut Vec::new());
    let mounts: Vec<Mount<'_>> = lines.iter().map(mountinfo::Line::known).collect();
    let blocking = file_systems::blocking(&mounts);
    let both = lines.iter().zip(blocking).filter(|(_, blocks)| *blocks);
    both.map(|(line, _)| line.number).collect()
}

/// Whether a path is one of a file, and not of memory, a device or the kernel.
fn is_file(path: &str) -> bool {
    let kernel = ["/dev/", "/proc/", "/sys/", "/memfd:", "/SYSV"];
    path.starts_with('/') && !kernel.iter().any(|begin| path.starts_with(begin))
}

/// Endings of files that programs append to, and that are no logs for people.
const DATA: [&str; 24] = [
    ".aof", ".bin", ".csv", ".db", ".dat", ".data", ".gz", ".ibd", ".idx", ".index", ".journal", ".lck",
    ".ldb", ".lock", ".mdb", ".pcap", ".pid", ".rdb", ".sqlite", ".sqlite3", ".sst", ".wal", "-journal",
    "-wal",
];

fn is_data(path: &str) -> bool {
    DATA.iter().any(|ending| path.ends_with(ending))
}

/// Parts of names that logs have.
const NAMES: [&str; 5] = ["log", "err", "out", "console", "trace"];

/// Whether a file, or the folder that it is in, is named as logs are.
fn is_named(path: &str) -> bool {
    let name = |part: &str| {
        let part = part.to_ascii_lowercase();
        NAMES.iter().any(|name| part.contains(name))
    };
    let mut parts = path.rsplit('/');
    let file = parts.next().is_some_and(name);
    file || parts
        .next()
        .is_some_and(|folder| folder == "log" || folder == "logs")
}

/// How long a process has lived.
fn lives(root: &Root, pid: u32) -> Option<Ns> {
    /// Fields behind the name up to the one that says when it began.
    const BEGAN: usize = 19;
    const NS_PER_SECOND: f64 = 1e9;
    let stat = std::fs::read_to_string(root.proc.join(pid.to_string()).join("stat")).ok()?;
    let behind = stat.rsplit_once(')')?.1;
    let ticks: f64 = behind.split_whitespace().nth(BEGAN)?.parse().ok()?;
    // SAFETY: sysconf only reads.
    let hertz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let up = std::fs::read_to_string(root.proc.join("uptime")).ok()?;
    let up: f64 = up.split_whitespace().next()?.parse().ok()?;
    Some(((up - ticks / hertz).max(0.0) * NS_PER_SECOND) as Ns)
}

/// The end of a log.
struct Part {
    bytes: Vec<u8>,
    /// Where in it begins what was written during observation; `None` where the file was not known when that began.
    added: Option<usize>,
    /// Whether it begins where the file begins.
    whole: bool,
}

impl Part {
    /// Reads no more than `room` bytes of it. `began`: its size as observation began.
    fn read(file: &File, size: u64, began: Option<u64>, room: u64) -> Option<Part> {
        // One that was cut off meanwhile is new from its beginning.
        let grown_from = began.map(|began| if began > size { 0 } else { began });
        let added_from = grown_from.unwrap_or(size).max(size.saturating_sub(ADDED_BYTES));
        let from = added_from
            .saturating_sub(BEFORE_BYTES)
            .max(size.saturating_sub(room));
        let mut bytes = vec![0; usize::try_from(size.saturating_sub(from)).ok()?];
        let mut read = 0;
        while read < bytes.len() {
            match file.read_at(bytes.get_mut(read..)?, from + read as u64) {
                Ok(0) => break,
                Ok(length) => read += length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        bytes.truncate(read);
        let added = usize::try_from(added_from.saturating_sub(from)).ok()?.min(read);
        // The rest of a line that was cut is none.
        let cut = match from {
            0 => 0,
            _ => bytes
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(read, |at| at + 1),
        };
        bytes.drain(..cut);
        Some(Part {
            bytes,
            added: grown_from.map(|_| added.saturating_sub(cut)),
            whole: from == 0,
        })
    }
}

fn said(log: &Log, part: &Part, meta: &std::fs::Metadata, watched: Ns, lives: Ns) -> OwnLog {
    let written = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let ago = SystemTime::now()
        .duration_since(written)
        .unwrap_or(Duration::ZERO);
    let text = LogText {
        bytes: &part.bytes,
        added: part.added,
        first_line: part.whole.then_some(1),
        written_ago: Ns::try_from(ago.as_nanos()).unwrap_or(Ns::MAX),
        watched,
        lives,
        named: log.named,
    };
    let before = part.added.unwrap_or(part.bytes.len());
    OwnLog {
        file: log.path.clone(),
        added: part.bytes.len().saturating_sub(before) as u64,
        before: before as u64,
        watched,
        said: own_log::judge(&text),
        ..OwnLog::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, is_data, is_file, is_named};
    use std::io::Write;

    #[test]
    fn a_part_ends_with_whole_lines_and_begins_with_one() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        let part = Part::read(&file, 14, Some(4), 100).unwrap();
        assert_eq!(
            (part.bytes.as_slice(), part.added, part.whole),
            (&b"one\ntwo\nthree\n"[..], Some(4), true)
        );
        let part = Part::read(&file, 14, Some(8), 8).unwrap();
        assert_eq!(
            (part.bytes.as_slice(), part.added, part.whole),
            (&b"three\n"[..], Some(0), false)
        );
        let part = Part::read(&file, 14, Some(900), 100).unwrap();
        assert_eq!(part.added, Some(0), "it was cut off and is new");
        let part = Part::read(&file, 14, None, 100).unwrap();
        assert_eq!((part.bytes.len(), part.added), (14, None));
    }

    #[test]
    fn logs_are_known_by_their_names() {
        for log in [
            "/var/log/nginx/error.log",
            "/srv/app/stderr",
            "/srv/logs/today",
            "/tmp/console.txt",
        ] {
            assert!(is_file(log) && is_named(log) && !is_data(log), "{log}");
        }
        assert!(!is_named("/srv/queue/4F2A") && !is_named("/srv/data"));
        assert!(is_data("/var/lib/redis/appendonly.aof") && !is_file("/dev/null") && !is_file("pipe:[7]"));
    }
}
