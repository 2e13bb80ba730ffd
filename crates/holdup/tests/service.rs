//! The unit of the recorder: how exposed it is by systemd's own measure, and that it records within its limits.
//!
//! A systemd that is not the machine's first process starts the unit as it is but for its program, its folder and its pace: in a mount
//! namespace and cgroups of its own, which go with the test.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Guarded, HOLDUP, lossy};

/// When this is over, the test has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// The most that is allowed, in tenths: 3.0.
const EXPOSURE_TENTHS_MAX: &str = "30";

/// What it may have: BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, SYSLOG, SYS_RESOURCE, SYS_NICE.
const CAPABILITIES: u64 = 1 << 39 | 1 << 38 | 1 << 19 | 1 << 2 | 1 << 34 | 1 << 24 | 1 << 23;

fn unit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/holdup-record.service")
}

#[test]
fn its_exposure_is_below_three() {
    let output = Command::new("systemd-analyze")
        .args(["security", "--no-pager", "--offline=true"])
        .arg(format!("--threshold={EXPOSURE_TENTHS_MAX}"))
        .arg(unit())
        .output()
        .expect("systemd-analyze is installed");
    assert!(output.status.success(), "{}", lossy(&output.stdout));
}

/// Starts systemd for this unit alone. `$1`: a folder that has units, and room for its state; `$2`: a name for its cgroups.
const MANAGER: &str = r#"
mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/own || exit
for cgroup in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
    [ -e "$cgroup/cgroup.procs" ] && mkdir -p "$cgroup/$2" && echo $$ >"$cgroup/$2/cgroup.procs"
done
export XDG_RUNTIME_DIR=/run/own XDG_CONFIG_HOME="$1/state" XDG_STATE_HOME="$1/state" XDG_DATA_HOME="$1/data"
export SYSTEMD_UNIT_PATH="$1/units:/usr/lib/systemd/user"
exec /lib/systemd/systemd --user --unit=holdup-record.service --log-target=null
"#;

/// Cgroups of a manager, and what is in them: ended and removed.
struct Cgroups(String);

impl Cgroups {
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let roots = [
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/unified",
            "/sys/fs/cgroup/systemd",
        ];
        roots.into_iter().map(|root| Path::new(root).join(&self.0))
    }

    /// Ends what is in it, and removes it, from its leaves on.
    fn remove(folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                Cgroups::remove(&entry.path());
            }
        }
        let end = Instant::now() + PATIENCE;
        while folder.exists() && fs::remove_dir(folder).is_err() && Instant::now() < end {
            let pids = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for pid in pids.lines().filter_map(|pid| pid.parse().ok()) {
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
                    .ok();
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        self.folders().for_each(|folder| Cgroups::remove(&folder));
    }
}

fn until<T>(what: &str, log: &Path, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        let said = fs::read_to_string(log).unwrap_or_default();
        assert!(Instant::now() < end, "{what}; it said: {said}");
        std::thread::yield_now();
    }
}

/// Files with that ending, below a folder.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|is| is == "parquet"))
        .collect()
}

#[test]
fn it_records_within_its_limits() {
    assert!(nix::unistd::geteuid().is_root(), "the recorder is root's");
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let units = place.path().join("units/holdup-record.service.d");
    fs::create_dir_all(&units).unwrap();
    fs::copy(unit(), place.path().join("units/holdup-record.service")).unwrap();
    // Not below /tmp or /var/tmp, which the unit has for itself.
    let program = place.path().join("holdup");
    fs::copy(HOLDUP, &program).unwrap();
    let log = place.path().join("log");
    let recordings = place.path().join("state/holdup");
    let here = format!(
        "[Service]\nExecStart=\nExecStart={} record --every 5s --dir {}\nStandardError=file:{}\nRestart=no\n",
        program.display(),
        recordings.display(),
        log.display()
    );
    fs::write(units.join("here.conf"), here).unwrap();
    let cgroups = Cgroups(format!("holdup-service-{}", std::process::id()));
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--", "sh", "-c", MANAGER, "sh"])
        .args([place.path().as_os_str(), cgroups.0.as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let manager = Guarded::spawn(&mut command);
    let written = until("no segment", &log, || segments(&recordings).pop());
    // It is the unit's limits that it records in.
    let recorder = until("no recorder", &log, || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let runs = |path: &PathBuf| fs::read_link(path.join("exe")).is_ok_and(|exe| exe == program);
        all.map(|entry| entry.path()).find(runs)
    });
    let status = fs::read_to_string(recorder.join("status")).unwrap();
    let of = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    let bounding = u64::from_str_radix(&of("CapBnd:"), 16).unwrap();
    assert_eq!(bounding & !CAPABILITIES, 0, "{status}");
    assert_eq!(
        (of("NoNewPrivs:"), of("Seccomp:")),
        ("1".to_owned(), "2".to_owned())
    );
    let mounts = fs::read_to_string(recorder.join("mounts")).unwrap();
    let root = mounts
        .lines()
        .rfind(|line| line.split(' ').nth(1) == Some("/"))
        .unwrap();
    assert!(root.split(' ').nth(3).unwrap().starts_with("ro"), "{root}");
    let shown = Command::new(HOLDUP).arg("show").arg(&written).output().unwrap();
    assert!(shown.status.success(), "{}", lossy(&shown.stderr));
    drop(manager);
    drop(cgroups);
}
