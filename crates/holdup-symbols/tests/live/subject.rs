//! A process to look at: started by a test, looked at when the kernel says that it is in the call in which it
//! stays, its registers and stack read from outside, as the collector does by BPF.

use holdup_evidence::Frame;
use holdup_evidence::arch::{SAVED, SavedRegisters};
use holdup_symbols::{Mapping, ProcessKey, RawStack, UserStacks};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The number that tests give to the process.
pub(crate) const KEY: ProcessKey = ProcessKey(7);

/// As much as the collector copies of a stack, in bytes.
const STACK_BYTES: usize = 16 * 1024;

/// A process that is killed when the test is over, however it ends.
pub(crate) struct Subject(Child);

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a thread in a system call looks like from outside.
pub(crate) struct Seen {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) saved: SavedRegisters,
    pub(crate) bytes: Vec<u8>,
}

impl Subject {
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Self(
            command
                .spawn()
                .unwrap_or_else(|error| panic!("{}: {error}", program.display())),
        )
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    fn proc(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.pid()))
    }

    /// Waits until the process sleeps in system call `number`, and reads what `/proc` tells of it: the
    /// instruction and stack pointers, but not rbp and the other registers.
    pub(crate) fn in_call(&self, number: i64) -> Seen {
        loop {
            let text = fs::read_to_string(self.proc("syscall")).unwrap();
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(
                !words.is_empty(),
                "the process ended before it was in call {number}"
            );
            if words[0] == number.to_string() {
                let word = |index: usize| u64::from_str_radix(&words[index][2..], 16).unwrap();
                let (sp, ip) = (word(7), word(8));
                return Seen {
                    ip,
                    sp,
                    saved: [0; SAVED],
                    bytes: self.memory(sp),
                };
            }
            std::thread::yield_now();
        }
    }

    /// The same with all registers, for which the process has to be stopped.
    pub(crate) fn in_call_with_registers(&self, number: i64) -> Seen {
        let Seen { sp, bytes, .. } = self.in_call(number);
        let pid = self.pid() as libc::pid_t;
        let mut status = 0;
        // SAFETY: an all-zero user_regs_struct is valid.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: pid is our own child, and the pointers are to live values of the types asked for.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0), 0);
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0), 0);
        }
        let r = registers;
        assert_eq!(r.rsp, sp, "the process slept on");
        Seen {
            ip: r.rip,
            sp,
            saved: [r.rbx, r.rbp, r.r12, r.r13, r.r14, r.r15],
            bytes,
        }
    }

    fn memory(&self, from: u64) -> Vec<u8> {
        let memory = fs::File::open(self.proc("mem")).unwrap();
        let mut bytes = vec![0; STACK_BYTES];
        let read = memory.read_at(&mut bytes, from).unwrap();
        bytes.truncate(read);
        bytes
    }

    pub(crate) fn mappings(&self) -> Vec<Mapping> {
        let maps = fs::read_to_string(self.proc("maps")).unwrap();
        maps.lines().filter_map(mapping).collect()
    }

    pub(crate) fn stack<'a>(&self, seen: &'a Seen) -> RawStack<'a> {
        RawStack {
            process: KEY,
            pid: self.pid(),
            at: 0,
            ip: seen.ip,
            sp: seen.sp,
            saved: seen.saved,
            partial: false,
            bytes: &seen.bytes,
        }
    }

    pub(crate) fn frames(&self, seen: &Seen) -> Vec<Frame> {
        let mut stacks = UserStacks::new();
        stacks.exec(KEY);
        for mapping in self.mappings() {
            stacks.map(KEY, self.pid(), mapping);
        }
        let id = stacks.intern(&self.stack(seen));
        stacks.finish().swap_remove(id.0 as usize)
    }
}

/// An executable mapping from a line of `/proc/PID/maps`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let executable = words.next()?.contains('x');
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let (major, minor) = words.next()?.split_once(':')?;
    let device = (
        u32::from_str_radix(major, 16).ok()?,
        u32::from_str_radix(minor, 16).ok()?,
    );
    let inode = words.next()?.parse().ok()?;
    let path = words.collect::<Vec<_>>().join(" ");
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    executable.then_some(Mapping {
        start,
        end,
        offset,
        path,
        device,
        inode,
    })
}

/// Compiles `source` with the machine's C compiler.
pub(crate) fn compile(directory: &TempDir, source: &str, options: &[&str]) -> PathBuf {
    let (code, program) = (
        directory.path().join("subject.c"),
        directory.path().join("subject"),
    );
    fs::write(&code, source).unwrap();
    let output = Command::new("cc")
        .args(["-O2", "-fomit-frame-pointer"])
        .args(options)
        .arg(&code)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler named cc is installed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}
