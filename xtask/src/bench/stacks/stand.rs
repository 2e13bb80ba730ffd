//! One program, started under holdup, asleep, and left asleep.
//!
//! In: a [`Program`]. Out: holdup's report of it and the processes that still sleep; they are ended when the
//! stand is dropped.

use super::programs::Program;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a program may take until it sleeps; a database on a busy machine takes some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long all threads must have slept, and no new one have come, to count as blocked.
const SETTLED: Duration = Duration::from_millis(1500);

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A folder, a silent server and a free port.
pub(super) struct Stand {
    folder: TempDir,
    root: PathBuf,
    deaf: TcpListener,
    port: u16,
    /// A server that its client has left does not wait for it any more.
    client: RefCell<Option<TcpStream>>,
    /// What must not outlive the stand.
    left: RefCell<BTreeSet<u32>>,
}

impl Drop for Stand {
    fn drop(&mut self) {
        for pid in self.left.get_mut().iter() {
            // It may be gone with its parent.
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    }
}

impl Stand {
    /// Prepares what the program needs.
    pub(super) fn new(root: &Path, program: &Program) -> anyhow::Result<Stand> {
        let folder = tempfile::tempdir().context("make a folder")?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
            .context("open the folder to all")?;
        let free = TcpListener::bind(("127.0.0.1", 0)).context("find a free port")?;
        let stand = Stand {
            root: root.to_owned(),
            deaf: TcpListener::bind(("127.0.0.1", 0)).context("listen")?,
            port: free.local_addr().context("a port")?.port(),
            folder,
            client: RefCell::default(),
            left: RefCell::default(),
        };
        drop(free);
        nix::unistd::mkfifo(&stand.folder.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU)
            .context("make a FIFO")?;
        let mut prepare = Command::new("sh");
        stand.dress(prepare.args(["-ec", program.prepare]))?;
        let output = prepare.output().context("start sh")?;
        if !output.status.success() {
            bail!(
                "preparing failed: {}",
                String::from_utf8_lossy(&output.stderr).trim_end()
            );
        }
        Ok(stand)
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn dress(&self, command: &mut Command) -> anyhow::Result<()> {
        command
            .env("DIR", self.folder.path())
            .env("ROOT", &self.root)
            .env("PORT", self.port.to_string())
            .env(
                "DEAF",
                self.deaf.local_addr().context("a port")?.port().to_string(),
            )
            .current_dir(self.folder.path());
        Ok(())
    }

    /// Runs the program under holdup until all its threads sleep; the report and the processes.
    pub(super) fn observe(
        &self,
        holdup: &Path,
        program: &Program,
    ) -> anyhow::Result<(PathBuf, BTreeSet<u32>)> {
        let report = self.folder.path().join("holdup.json");
        let log = self.folder.path().join("output");
        let output = fs::File::create(&log).context("make a file for the output")?;
        let mut command = Command::new(holdup);
        command
            .args(["run", "--quiet", "--json"])
            .arg(&report)
            .args(["--", "sh", "-c"]);
        // What reads from this shell's stdin is the shell alone: a shell gives its background none.
        command.arg(format!("{}\nread -r line", program.start));
        self.dress(&mut command)?;
        command
            .stdin(Stdio::piped())
            .stdout(output.try_clone().context("share a file")?)
            .stderr(output);
        let mut child = command.spawn().context("start holdup")?;
        let settled = self.settle(&mut child, program);
        self.left.replace(
            settled
                .as_ref()
                .cloned()
                .unwrap_or_else(|_| descendants(child.id())),
        );
        let mut stdin = child.stdin.take().context("the pipe to the shell")?;
        // The shell may be gone.
        let _ = stdin.write_all(b"\n");
        drop(stdin);
        child.wait().context("wait for holdup")?;
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let pids = settled.with_context(said)?;
        if !report.exists() {
            bail!("holdup wrote no report: {}", said());
        }
        Ok((report, pids))
    }

    /// Waits until the program's processes are all there and asleep.
    fn settle(&self, child: &mut Child, program: &Program) -> anyhow::Result<BTreeSet<u32>> {
        let began = Instant::now();
        let mut client = self.client.borrow_mut();
        let mut since = Instant::now();
        let mut before = BTreeSet::new();
        loop {
            if child.try_wait().context("look at holdup")?.is_some() {
                bail!("it ended by itself");
            }
            if began.elapsed() > PATIENCE {
                bail!("it did not come to rest within {} s", PATIENCE.as_secs());
            }
            if let (Some(words), None) = (program.client, &*client) {
                *client = TcpStream::connect(("127.0.0.1", self.port)).ok();
                if let Some(client) = &mut *client {
                    client.write_all(words.as_bytes()).context("write to it")?;
                }
            }
            let all = descendants(child.id());
            let shell = children(child.id());
            let pids: BTreeSet<u32> = all.difference(&shell).copied().collect();
            let ready = pids.len() >= program.processes && (client.is_some() || program.client.is_none());
            let threads: BTreeSet<(u32, u32)> = pids
                .iter()
                .flat_map(|&pid| tasks(pid).into_iter().map(move |tid| (pid, tid)))
                .collect();
            if !ready || threads != before || !threads.iter().all(|&(pid, tid)| asleep(pid, tid)) {
                since = Instant::now();
            }
            before = threads;
            if since.elapsed() >= SETTLED {
                return Ok(pids);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn numbers(text: &str) -> BTreeSet<u32> {
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn tasks(pid: u32) -> BTreeSet<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return BTreeSet::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

fn children(pid: u32) -> BTreeSet<u32> {
    let of = |tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    tasks(pid).into_iter().flat_map(|tid| numbers(&of(tid))).collect()
}

fn descendants(pid: u32) -> BTreeSet<u32> {
    children(pid)
        .into_iter()
        .flat_map(|child| descendants(child).into_iter().chain([child]))
        .collect()
}

fn asleep(pid: u32, tid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with(['S', 'D']))
}
