//! What is read of a program may never come. holdup gives its report all the same, and ends: its parent gets its status, and no zombie
//! stays. What could not be read is named, and so is the reader that is stuck behind it.
//!
//! Each test is an attack. A time limit is the outermost bound of a test that has failed, and nothing else is asserted of time.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

#[path = "stuck/mute.rs"]
mod mute;
mod support;

use mute::Mute;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Guarded, HOLDUP, lossy};

/// When this is over, the attack has won.
const PATIENCE: Duration = Duration::from_secs(60);

/// A thread of its own for each attack: the file system is mounted for that thread only.
fn alone(attack: impl FnOnce() + Send + 'static) {
    assert!(nix::unistd::geteuid().is_root(), "these attacks are on root");
    if let Err(panic) = std::thread::spawn(attack).join() {
        std::panic::resume_unwind(panic);
    }
}

/// A process that is killed in the end.
struct Target(Pid);

impl Target {
    /// Forks. `act` makes system calls only: other threads may hold any lock.
    fn fork(act: impl FnOnce()) -> Target {
        // SAFETY: the child makes system calls only, and ends without the parent's handlers.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Other tests' devices would live on in it.
                libc::close_range(3, libc::c_uint::MAX, 0);
                act();
                libc::_exit(1);
            }
            Target(Pid::from_raw(child))
        }
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0)).unwrap()
    }

    fn until(&self, is: impl Fn(&Target) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is(self) {
            assert!(
                Instant::now() < end,
                "the target is not where it should be: {}",
                ["status", "syscall", "wchan"]
                    .map(|name| self.file(name))
                    .join("\n")
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        kill(self.0, Signal::SIGKILL).ok();
        // A file system that is still mute keeps it; it ends with that, and with this test's process.
        let flags = Some(nix::sys::wait::WaitPidFlag::WNOHANG);
        nix::sys::wait::waitpid(self.0, flags).ok();
    }
}

fn text_of(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// The report of `holdup attach`, which must end by itself and be reaped.
fn attached(to: Pid, options: &[&str]) -> serde_json::Value {
    let mut command = Command::new(HOLDUP);
    command
        .args(["attach", "-d", "1", "--format", "json", "-p", &to.to_string()])
        .args(options)
        .stdin(Stdio::null());
    let output = ends(&mut command);
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs it to its end; the test fails if that does not come.
fn ends(command: &mut Command) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let [out, err] = ["out", "err"].map(|name| folder.path().join(name));
    // Files and not pipes: the question is whether the process ends, and not who else has its stdout.
    command
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&err).unwrap());
    let mut holdup = Guarded::spawn(command);
    let end = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = holdup.0.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= end {
            let pid = holdup.0.id();
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            // It would be waited for in vain.
            std::mem::forget(holdup);
            panic!(
                "holdup has not ended: {status:?} {:?}",
                std::fs::read_to_string(&err)
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Output {
        status,
        stdout: std::fs::read(out).unwrap(),
        stderr: std::fs::read(err).unwrap(),
    }
}

/// Readers that the report says are stuck in a process.
fn stuck_readers(report: &serde_json::Value, process: Pid) -> Vec<u32> {
    let about = format!("all of process {process} (");
    let gaps = report["coverage"]["not_measured"].as_array().unwrap();
    gaps.iter()
        .filter(|gap| gap["what"].as_str().unwrap().starts_with(&about))
        .map(|gap| {
            let why = gap["why"].as_str().unwrap();
            let (_, pid) = why.split_once(", pid ").unwrap();
            let (pid, _) = pid.split_once(')').unwrap();
            pid.parse().unwrap()
        })
        .collect()
}

fn gone(pid: u32) {
    let end = Instant::now() + PATIENCE;
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < end, "reader {pid} stays");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One descriptor to poll for ever: nothing is to be read from an end of a pipe whose other end the same process has.
fn polls() -> Vec<u8> {
    // The first descriptor that the target has free after its file.
    let fd = 4_i32;
    let mut page = Vec::new();
    page.extend(fd.to_ne_bytes());
    page.extend(libc::POLLIN.to_ne_bytes());
    page.resize(4096, 0);
    page
}

/// Polls an array that is a file's page.
fn poll_in(path: &CString) {
    let mut pipe = [0; 2];
    // SAFETY: plain system calls; the page is as long as what is polled.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY);
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file,
            0,
        );
        libc::pipe(pipe.as_mut_ptr());
        // Brought now: were `poll` to bring it, the daemon might become mute meanwhile, and wait for that page itself.
        page.cast::<u8>().read_volatile();
        libc::poll(page.cast(), 1, -1);
    }
}

fn an_array_that_never_comes(options: &'static [&str]) {
    alone(move || {
        let mute = Mute::mount(polls());
        let path = text_of(&mute.file());
        let target = Target::fork(|| poll_in(&path));
        target.until(|target| target.file("syscall").starts_with("7 "));
        mute.become_mute();
        let report = attached(target.0, options);
        let readers = stuck_readers(&report, target.0);
        assert!(!readers.is_empty(), "{:#}", report["coverage"]);
        for reader in &readers {
            let name = std::fs::read_to_string(format!("/proc/{reader}/comm")).unwrap();
            assert!(name.starts_with("holdup"), "{name}");
        }
        mute.end();
        for reader in readers {
            gone(reader);
        }
    });
}

#[test]
fn an_array_on_a_page_that_a_daemon_never_brings() {
    an_array_that_never_comes(&[]);
}

#[test]
fn the_same_where_waits_are_sampled() {
    an_array_that_never_comes(&["--backend", "proc"]);
}

/// `mmap` over a page that is written back holds the lock of the address space while the daemon does not answer.
#[test]
fn an_address_space_that_is_locked() {
    alone(|| {
        let mute = Mute::mount(vec![0; 4096]);
        let path = text_of(&mute.file());
        let folder = mute.beside().join("go");
        let go = text_of(&folder);
        let target = Target::fork(|| {
            // SAFETY: plain system calls on a page of its own.
            unsafe {
                let file = libc::open(path.as_ptr(), libc::O_RDWR);
                let all = libc::PROT_READ | libc::PROT_WRITE;
                let page = libc::mmap(std::ptr::null_mut(), 4096, all, libc::MAP_SHARED, file, 0);
                page.cast::<u8>().write_volatile(1);
                while libc::access(go.as_ptr(), libc::F_OK) != 0 {
                    libc::usleep(1000);
                }
                let over = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(page, 4096, all, over, -1, 0);
            }
        });
        // It has written, and waits for the file.
        target.until(|target| target.file("syscall").starts_with("230 "));
        mute.become_mute_with_pages();
        std::fs::write(&folder, "").unwrap();
        // In mmap, and not to be woken.
        target.until(|target| {
            target.file("status").contains("\nState:\tD") && target.file("syscall").starts_with("9 ")
        });
        let report = attached(target.0, &[]);
        assert!(!report["threads"].as_array().unwrap().is_empty());
        let report = attached(target.0, &["--backend", "proc"]);
        assert!(!report["threads"].as_array().unwrap().is_empty());
        mute.end();
    });
}
