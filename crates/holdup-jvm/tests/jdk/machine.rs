//! A Java program that runs, looked at from outside as holdup does, and asked by the JDK's own tool.

use holdup_evidence::{Frame, Language, UserStackId};
use holdup_jvm::{Machines, Sighting, Virtuals};
use holdup_symbols::{Mapping, ProcessKey, RawStack, UserStacks};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How much of a stack is copied, bytes.
const STACK_BYTES: usize = 128 * 1024;

const KEY: ProcessKey = ProcessKey(1);

/// The JDKs of this machine, each once.
pub(crate) fn jdks() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/jvm")
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::canonicalize(entry.ok()?.path()).ok())
        .filter(|home| home.join("bin/javac").exists())
        .collect();
    found.sort();
    found.dedup();
    assert!(
        !found.is_empty(),
        "no JDK below /usr/lib/jvm: apt install openjdk-17-jdk-headless"
    );
    found
}

/// A JDK's number.
pub(crate) fn feature(home: &Path) -> u32 {
    let release = fs::read_to_string(home.join("release")).unwrap();
    let version = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
    let first = version.and_then(|version| version.split(['.', '"']).next()?.parse().ok());
    first.expect("each JDK has a version")
}

/// The program.
pub(crate) struct Java {
    pub(crate) what: String,
    home: PathBuf,
    child: Child,
    _classes: TempDir,
}

/// A thread as the machine prints it.
#[derive(Debug)]
pub(crate) struct DumpedThread {
    pub(crate) nid: i32,
    pub(crate) frames: Vec<String>,
}

/// A thread as it is seen from outside.
pub(crate) struct Seen {
    pub(crate) name: Option<String>,
    pub(crate) frames: Vec<Frame>,
}

impl Java {
    /// Starts one of the programs, and returns when its threads wait.
    pub(crate) fn start(home: &Path, settings: &[&str], program: &str, argument: &str) -> Java {
        let classes = TempDir::new().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/jdk/{program}.java"));
        let compiled = Command::new(home.join("bin/javac"))
            .args(["-g", "-d"])
            .args([classes.path(), &source])
            .status()
            .unwrap();
        assert!(compiled.success());
        let mut child = Command::new(home.join("bin/java"))
            .args(settings)
            .arg("-cp")
            .arg(classes.path())
            .args([program, argument])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Before that the machine may warn of settings.
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let ready = lines.map_while(Result::ok).any(|line| line == "ready");
        assert!(ready, "{settings:?}");
        Java {
            what: format!("{} {}", home.file_name().unwrap().display(), settings.join(" ")),
            home: home.to_owned(),
            child,
            _classes: classes,
        }
    }

    /// What the JDK's own tool prints.
    pub(crate) fn dump(&self) -> Vec<(String, DumpedThread)> {
        let output = Command::new(self.home.join("bin/jcmd"))
            .args([self.child.id().to_string().as_str(), "Thread.print"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut threads: Vec<(String, DumpedThread)> = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix('"') {
                let Some((name, nid)) = rest.rsplit_once("\" ").zip(nid(rest)) else {
                    continue;
                };
                let frames = Vec::new();
                threads.push((name.0.to_owned(), DumpedThread { nid, frames }));
            } else if let Some(frame) = line.trim().strip_prefix("at ")
                && let Some((_, thread)) = threads.last_mut()
            {
                thread.frames.push(plain(frame));
            }
        }
        threads
    }

    /// The virtual threads that the JDK's own tool writes to a file: number, and frames.
    pub(crate) fn dump_of_virtuals(&self) -> BTreeMap<u64, Vec<String>> {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("threads");
        let asked = Command::new(self.home.join("bin/jcmd"))
            .args([self.child.id().to_string().as_str(), "Thread.dump_to_file"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(asked.status.success());
        let mut all: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let mut number = None;
        for line in fs::read_to_string(file).unwrap().lines() {
            if let Some(thread) = line.strip_prefix('#') {
                let is_virtual = thread.rsplit('"').next().unwrap().starts_with(" virtual");
                number = thread
                    .split(' ')
                    .next()
                    .unwrap()
                    .parse()
                    .ok()
                    .filter(|_| is_virtual);
                all.extend(number.map(|number| (number, Vec::new())));
            } else if let Some((number, frame)) = number.zip(line.trim().strip_prefix("at ")) {
                all.entry(number).or_default().push(plain(frame));
            }
        }
        all
    }

    /// The virtual threads, from outside.
    pub(crate) fn virtuals(&self, tid: i32) -> Virtuals {
        let (machines, mut stacks) = self.begun();
        let (registers, bytes) = taken(tid);
        stacks.intern(&raw(self.child.id(), &registers, &bytes));
        let until = Instant::now() + Duration::from_secs(60);
        machines.virtuals(self.child.id(), until).unwrap()
    }

    fn begun(&self) -> (Machines, UserStacks) {
        let pid = self.child.id();
        // However busy the machine is on which this runs.
        let machines = Machines::waiting(Duration::MAX);
        let mut stacks = UserStacks::new().told_by(Box::new(machines.clone()));
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        for mapping in maps.lines().filter_map(mapping) {
            stacks.map(KEY, pid, mapping);
        }
        (machines, stacks)
    }

    /// All frames of some threads, and what Java calls them, from outside.
    pub(crate) fn seen(&self, tids: &[i32]) -> (Vec<Seen>, Vec<Sighting>) {
        let pid = self.child.id();
        let (machines, mut stacks) = self.begun();
        let mut intern = |tid: &i32| {
            let (registers, bytes) = taken(*tid);
            let id = stacks.intern(&raw(pid, &registers, &bytes));
            (stacks.take_thread_name(), id)
        };
        let ids: Vec<_> = tids.iter().map(&mut intern).collect();
        let looks = machines.look_now();
        let stacks = stacks.finish();
        let seen = |(name, id): (Option<(u32, Arc<str>)>, UserStackId)| Seen {
            name: name.map(|(_, name)| name.to_string()),
            frames: stacks[id.0 as usize].clone(),
        };
        let seen = ids.into_iter().map(seen).collect();
        (seen, looks.into_iter().flat_map(|look| look.waiting).collect())
    }
}

fn raw<'a>(pid: u32, registers: &libc::user_regs_struct, bytes: &'a [u8]) -> RawStack<'a> {
    RawStack {
        process: KEY,
        pid,
        at: 0,
        ip: registers.rip,
        sp: registers.rsp,
        saved: [
            registers.rbx,
            registers.rbp,
            registers.r12,
            registers.r13,
            registers.r14,
            registers.r15,
        ],
        partial: false,
        bytes,
    }
}

/// The Java frames of a stack, as the JDK's own tool writes them.
pub(crate) fn java<F: Borrow<Frame>>(frames: &[F]) -> Vec<String> {
    frames
        .iter()
        .map(Borrow::borrow)
        .filter(|frame| frame.language == Language::Java)
        .map(|frame| {
            let place = match (&frame.file, frame.line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => String::new(),
            };
            format!("{}({place})", frame.symbol.as_deref().unwrap_or_default())
        })
        .collect()
}

impl Drop for Java {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `nid=0x1a2b` up to JDK 18, `nid=1234` later.
fn nid(line: &str) -> Option<i32> {
    let text = line.split("nid=").nth(1)?.split(' ').next()?;
    match text.strip_prefix("0x") {
        Some(digits) => i32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A frame of a dump without module and version, without the place in memory of what has no name of its own, and without
/// what only says that there is no line.
fn plain(frame: &str) -> String {
    let (method, place) = frame.trim_end_matches(')').split_once('(').unwrap();
    let place = place.rsplit('/').next().unwrap();
    let method = match method.split_once("/0x") {
        Some((class, rest)) => format!("{class}.{}", rest.rsplit('.').next().unwrap()),
        None => method.to_owned(),
    };
    let method = method.rsplit('/').next().unwrap();
    let place = if place.ends_with("Native Method") || place.ends_with("Unknown Source") {
        ""
    } else {
        place
    };
    format!("{method}({place})")
}

fn taken(tid: i32) -> (libc::user_regs_struct, Vec<u8>) {
    // SAFETY: all bytes zero are registers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: stops a thread of our own child, reads its registers, and lets it go on.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, tid, 0, 0), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0), 0);
        assert_eq!(libc::waitpid(tid, std::ptr::null_mut(), libc::__WALL), tid);
        assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers), 0);
    }
    let memory = fs::File::open(format!("/proc/{tid}/mem")).unwrap();
    let mut bytes = vec![0; STACK_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        let end = (filled + 4096).min(bytes.len());
        match memory.read_at(&mut bytes[filled..end], registers.rsp + filled as u64) {
            Ok(read) if read > 0 => filled += read,
            _ => break,
        }
    }
    bytes.truncate(filled);
    // SAFETY: as above.
    unsafe { assert_eq!(libc::ptrace(libc::PTRACE_DETACH, tid, 0, 0), 0) };
    (registers, bytes)
}

fn mapping(line: &str) -> Option<Mapping> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = fields[0].split_once('-')?;
    let (major, minor) = fields[3].split_once(':')?;
    (fields[1].as_bytes().get(2) == Some(&b'x')).then_some(())?;
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(fields[2])?,
        path: fields.get(5).copied().unwrap_or_default().to_owned(),
        device: (hex(major)? as u32, hex(minor)? as u32),
        inode: fields[4].parse().ok()?,
    })
}
